"""Mosaics: tables of two columns of categories, before and after, of the pairs that hang together most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from sfumato.data.generalised.nodes import on_distinct
from sfumato.data.schema import Kind
from sfumato.data.table import Table
from sfumato.kernels.arrays import Flags, Floats, Ints
from sfumato.report.values import (
    MOST_BARS,
    OTHERS,
    ChartRules,
    as_texts,
    counts_of,
    is_measured,
    order_of,
    present_values,
)

#: More pairs, columns to make pairs of, or categories of one column no reader looks at.
MOST_PAIRS, _MOST_COLUMNS, _MOST_CATEGORIES = 6, 12, 6


def mosaics(
    original: Table,
    releases: Mapping[str, Table],
    columns: Sequence[str],
    *,
    about: Sequence[str],
    public: bool,
) -> dict[str, Any] | None:
    """Tables of shares for the most associated pairs of ``columns``; None when there is no pair.

    Only pairs with one of the columns ``about`` which the comparison is are looked at, each among the
    records that have both values. Beside the shares there are Pearson's residuals from independence and the
    differences of the shares to the original's.

    In the public form categories are put together until every cell, of the original and of each release that
    is shown, is empty or has as many records as `ChartRules` asks for, and until no category of the original
    lies wholly in one of the other column: who knows one value would learn the other. Where that leaves no
    table, the pair is not shown; where it leaves none for a release, this is ``suppressed``. A release
    without the columns is ``absent``; one with the same counts as the original is ``unchanged`` and not said
    again.
    """
    rules = ChartRules.of(public=public)
    axes = [axis for name in columns if (axis := _axis(original, name, rules)) is not None][:_MOST_COLUMNS]
    pairs = [pair for pair in combinations(axes, 2) if {axis.name for axis in pair} & set(about)]
    if not pairs:
        return None
    before = _pair_counts(original, pairs)
    showable = _by_association(before, rules)
    strongest = showable[:MOST_PAIRS]
    counted = {"original": [before[place] for place in strongest]}
    drawn = [pairs[place] for place in strongest]
    counted |= {key: _pair_counts(table, drawn) for key, table in releases.items()}
    shown = [
        _pair(pair, {key: tables[rank] for key, tables in counted.items()}, rules)
        for rank, pair in enumerate(drawn)
    ]
    return {
        "pairs": shown,
        "releases": [key for key in releases if any(key in entry["shares"] for entry in shown)],
        "unchanged": [key for key in releases if shown and all(key in entry["unchanged"] for entry in shown)],
        "left_out": len(showable) - len(strongest),
        "suppressed": len(pairs) - len(showable),
    }


def _by_association(tables: Sequence[Ints | None], rules: ChartRules) -> list[int]:
    """The places of the tables that may be shown, by the association that is left in what is shown."""
    found = []
    for place, cells in enumerate(tables):
        groups = None if cells is None else _merge_until_safe(cells[None], rules)
        if cells is not None and groups is not None:
            found.append((-association(rules.round_counts(_gather(cells, groups))), place))
    return [place for _, place in sorted(found)]


# Columns as axes ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _CategoryAxis:
    """A column of categories: those of the original that are shown, in order; all others come last."""

    name: str
    label: str
    categories: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.categories, OTHERS)

    def codes(self, table: Table) -> Ints:
        """The place of each record's category; −1 where it is missing."""
        places = {category: place for place, category in enumerate(self.categories)}

        def place(values: pl.Series) -> pl.Series:
            return as_texts(values).replace_strict(places, default=len(places), return_dtype=pl.Int8)

        found = on_distinct(present_values(table, self.name), place)
        return found.fill_null(-1).to_numpy().astype(np.int64)


def _axis(original: Table, name: str, rules: ChartRules) -> _CategoryAxis | None:
    """The most frequent categories of a column; None if it is no column of two to twenty categories."""
    column = original.schema[name]
    if column.kind not in {Kind.NOMINAL, Kind.ORDINAL} or is_measured(original, name):
        return None
    counts = counts_of(original, name)
    if not 2 <= len(counts) <= MOST_BARS:  # noqa: PLR2004  — one value is no column of categories
        return None
    frequent = sorted(counts, key=lambda value: (-counts[value], value))
    room = _MOST_CATEGORIES if len(frequent) <= _MOST_CATEGORIES else _MOST_CATEGORIES - 1
    shown = [value for value in frequent[:room] if counts[value] >= rules.floor]
    if column.kind is Kind.ORDINAL:
        places = {value: place for place, value in enumerate(order_of(original, name))}
        shown.sort(key=lambda value: places.get(value, len(places)))
    return _CategoryAxis(name, column.label, tuple(shown)) if shown else None


_Pair = tuple[_CategoryAxis, _CategoryAxis]

# Tables of counts --------------------------------------------------------------------------------------

#: The categories of both axes, each a group of places; the last group of an axis is that of all others.
_Groups = tuple[list[list[int]], list[list[int]]]


def _pair_counts(table: Table, pairs: Sequence[_Pair]) -> list[Ints | None]:
    """How many records have each two categories, for each pair; None where a column is not there."""
    axes = {axis.name: axis for pair in pairs for axis in pair}
    codes = {name: axis.codes(table) for name, axis in axes.items() if _has_categories(table, name)}
    return [
        _cells(codes[first.name], codes[second.name], (len(first.names), len(second.names)))
        if first.name in codes and second.name in codes
        else None
        for first, second in pairs
    ]


def _has_categories(table: Table, name: str) -> bool:
    return name in table.schema and table.schema[name].kind is not Kind.SET


def _cells(first: Ints, second: Ints, shape: tuple[int, int]) -> Ints:
    """How many records have each two codes, of those that have both values."""
    both = (first >= 0) & (second >= 0)
    height, width = shape
    return np.bincount(first[both] * width + second[both], minlength=height * width).reshape(shape)


def _gather(cells: Ints, groups: _Groups) -> Ints:
    """The counts of groups of categories; ``cells`` [..., first, second] may be of several tables."""
    merged = np.stack([cells[..., group, :].sum(axis=-2) for group in groups[0]], axis=-2)
    return np.stack([merged[..., group].sum(axis=-1) for group in groups[1]], axis=-1)


def _merge_until_safe(tables: Ints, rules: ChartRules, groups: _Groups | None = None) -> _Groups | None:
    """Put categories together until all tables [tables, first, second], the original first, may be shown.

    Each time it is the category with the fewest records of the original among those that stand in the
    way. None when fewer than two categories of a column would be left.
    """
    start = groups or tuple([[place] for place in range(size)] for size in tables.shape[1:])
    found: _Groups = ([*start[0]], [*start[1]])
    while True:
        cells = _gather(tables, found)
        sizes = [cells.sum(axis=(0, 2 - axis)) for axis in (0, 1)]
        if min(int((cells[0].sum(axis=1 - axis) > 0).sum()) for axis in (0, 1)) < 2:  # noqa: PLR2004
            return None
        bad = _bad(cells, rules)
        if not bad.any():
            return found
        choices = [
            (bad.sum(axis=1 - axis)[place] == 0, int(cells[0].sum(axis=1 - axis)[place]), axis, place)
            for axis in (0, 1)
            for place in range(len(found[axis]) - 1)
            if (sizes[axis] > 0).sum() > 2  # noqa: PLR2004  — the last two stay apart
        ]
        if not choices:
            return None
        _, _, axis, place = min(choices)
        _join(found[axis], place, sizes[axis])


def _bad(cells: Ints, rules: ChartRules) -> Flags:
    """Which cells [first, second] may not be shown: too small in a table, or all there is of a category."""
    if not rules.coarse:
        return np.zeros(cells.shape[1:], dtype=np.bool_)
    small = ((cells > 0) & (cells < rules.floor)).any(axis=0)
    original = cells[0]
    alone = (original > 0) & (
        (original == original.sum(axis=0, keepdims=True)) | (original == original.sum(axis=1, keepdims=True))
    )
    return np.asarray(small | alone, dtype=np.bool_)


def _join(groups: list[list[int]], place: int, sizes: Ints) -> None:
    """Put a category to the others; when there are none yet, together with the next smallest one."""
    joined = [place]
    if not sizes[-1]:
        rest = [other for other in range(len(groups) - 1) if other != place and sizes[other]]
        joined.append(min(rest, key=lambda other: (sizes[other], other)))
    groups[-1] = sorted({*groups[-1], *(number for each in joined for number in groups[each])})
    for each in sorted(joined, reverse=True):
        del groups[each]


# What is said of a pair --------------------------------------------------------------------------------


def _pair(pair: _Pair, tables: Mapping[str, Ints | None], rules: ChartRules) -> dict[str, Any]:
    cells: dict[str, Ints] = {}
    others: dict[str, list[str]] = {"suppressed": [], "unchanged": [], "absent": []}
    groups: _Groups | None = None
    for key, own in tables.items():  # the best methods first: a later one must fit in with them
        if own is None:
            others["absent"].append(key)
        elif cells and np.array_equal(own, cells["original"]):
            others["unchanged"].append(key)
        elif (merged := _merge_until_safe(np.stack([*cells.values(), own]), rules, groups)) is None:
            others["suppressed"].append(key)
        else:
            cells[key], groups = own, merged
    assert groups is not None, "a pair that cannot be shown of the original is not among the strongest"
    counts = rules.round_counts(_gather(np.stack(list(cells.values())), groups))
    return {**_mosaic_data(pair, groups, dict(zip(cells, counts, strict=True)), rules), **others}


def _mosaic_data(
    pair: _Pair, groups: _Groups, counts: Mapping[str, Ints], rules: ChartRules
) -> dict[str, Any]:
    """The tables as plain data, the column with fewer categories first, without categories nobody has."""
    total = np.stack(list(counts.values())).sum(axis=0)
    present = [np.flatnonzero(total.sum(axis=1 - axis)) for axis in (0, 1)]
    turned = len(present[0]) > len(present[1])
    shown = {key: table[np.ix_(*present)] for key, table in counts.items()}
    if turned:
        shown = {key: table.T for key, table in shown.items()}
    order = (1, 0) if turned else (0, 1)
    shares = {key: np.round(table / max(int(table.sum()), 1), 4) for key, table in shown.items()}
    return {
        "columns": [pair[axis].name for axis in order],
        "labels": [pair[axis].label for axis in order],
        "categories": [[_name(pair[axis], groups[axis][place]) for place in present[axis]] for axis in order],
        "shares": {key: table.tolist() for key, table in shares.items()},
        "residuals": {key: np.round(residuals(table), 2).tolist() for key, table in shown.items()},
        "differences": {
            key: (np.round(table - shares["original"], 4) + 0.0).tolist()
            for key, table in shares.items()
            if key != "original"
        },
        "association": {key: round(association(table), rules.decimals) for key, table in shown.items()},
    }


def _name(axis: _CategoryAxis, group: Sequence[int]) -> str:
    return axis.names[group[-1]]


def residuals(counts: Ints) -> Floats:
    """Pearson's residuals from independence, (count − expected) / √expected; 0 where none is expected."""
    expected = _expected_counts(counts)
    return (
        np.where(expected > 0, (counts - expected) / np.sqrt(np.where(expected > 0, expected, 1)), 0.0) + 0.0
    )


def _expected_counts(counts: Ints) -> Floats:
    total = max(int(counts.sum()), 1)
    outer: Floats = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0, keepdims=True) / total
    return outer


def association(counts: Ints) -> float:
    """Cramér's V, corrected for the bias that small tables have (Bergsma 2013); from 0 to 1."""
    total = int(counts.sum())
    height, width = (int((counts.sum(axis=axis) > 0).sum()) for axis in (1, 0))
    if total < 2 or min(height, width) < 2:  # noqa: PLR2004  — nothing can hang together
        return 0.0
    chance = (height - 1) * (width - 1) / (total - 1)
    excess = max(0.0, float((residuals(counts) ** 2).sum()) / total - chance)
    room = min(size - (size - 1) ** 2 / (total - 1) for size in (height, width)) - 1
    return min(1.0, float(np.sqrt(excess / room))) if room > 0 else 0.0
