"""Builds hierarchies from the values of a column: by intervals, beginnings of codes, a tree or the calendar.

A table of levels that is there already is a hierarchy by `Hierarchy.from_levels`; where nothing is known but
the values, `sfumato.data.hierarchy.grow` finds out the rest.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from sfumato.data.column_store import distinct_values
from sfumato.data.generalised.cut_codes import codes_of
from sfumato.data.generalised.intervals import intervals
from sfumato.data.generalised.nodes import WILDCARD, Values, canonical_text
from sfumato.data.generalised.text_forms import to_text
from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.errors import DataError, ParameterError, PlanError, count_noun

Bin: TypeAlias = tuple[Fraction | None, Fraction | None]

_DATE_PARTS: dict[str, Callable[[pl.Series], pl.Series]] = {
    "day": lambda dates: dates.dt.strftime("%Y-%m-%d"),
    "month": lambda dates: dates.dt.strftime("%Y-%m"),
    "quarter": lambda dates: dates.dt.strftime("%Y-Q") + dates.dt.quarter().cast(pl.String),
    "year": lambda dates: dates.dt.strftime("%Y"),
    "decade": lambda dates: (dates.dt.year() // 10).cast(pl.String) + "0s",
}

#: Below this a number in double precision stands for itself alone.
_FIRST_INEXACT = 2**53


def from_intervals(
    values: Values, *, widths: Sequence[float] = (5, 10, 20), origin: float = 0, name: str = ""
) -> Hierarchy:
    """Build levels of intervals of equal width from numbers (or a ``range`` of them).

    A value on a cut belongs to the interval above it. Whole numbers have labels like ``[20;24]``; for
    decimals the label ``[20;25]`` names its two cuts, and 25 itself climbs to ``[25;30]``.
    """
    steps, start = [_exact_fraction(width) for width in widths], _exact_fraction(origin)
    if min(steps, default=0) <= 0 or any(wide % narrow for narrow, wide in pairwise(steps)):
        raise ParameterError(
            f"`widths` must be above 0 and each a multiple of the one before, got: `{list(widths)}`",
            hint="each level must join whole intervals of the one before: 5, 10, 20, but not 5, 12",
        )

    def binned(step: Fraction) -> Callable[[Fraction], Bin]:
        return lambda value: (lo := start + (value - start) // step * step, lo + step)

    return _from_bins(values, [binned(step) for step in steps], marks=[*steps, start], name=name)


def from_cuts(values: Values, *, cuts: Sequence[Sequence[float]], name: str = "") -> Hierarchy:
    """Build levels of intervals from the cut points of each level, as in `from_intervals`.

    The lowest and the highest interval of a level are unbounded: ``[;17]``, ``[18;64]``, ``[65;]``.
    """
    levels = [[_exact_fraction(cut) for cut in level] for level in cuts]
    unordered = any(low >= high for level in levels for low, high in pairwise(level))
    if not all(levels) or unordered or any(not set(high) <= set(low) for low, high in pairwise(levels)):
        raise ParameterError(
            "`cuts` must be ascending in each level and each level's be among those of the level before, "
            f"got: `{[list(level) for level in cuts]}`",
            hint="levels must nest: leave out cuts from one level to the next",
        )

    return by_cuts(values, levels, name=name)


def by_cuts(values: Values, levels: Sequence[Sequence[Fraction]], *, name: str = "") -> Hierarchy:
    """Build as `from_cuts` does from cuts that nest, which is not looked at here."""
    leaves = distinct_texts(values)
    real = _finite(leaves, hierarchy_name(name, values)).to_numpy()
    marks = [cut for level in levels for cut in level]
    numeric = isinstance(values, pl.Series) and values.dtype.is_numeric()
    if not numeric or np.abs(real).max(initial=0) >= _FIRST_INEXACT:
        # Double precision may not tell such values from a cut, so they are compared as they are written.
        bins = [_bin_of_cuts(level) for level in levels]
        return _from_bins(values, bins, marks=marks, name=name)
    whole = bool((real == np.floor(real)).all()) and all(mark.denominator == 1 for mark in marks)
    table = {"leaf": leaves}
    for place, level in enumerate(levels, start=1):
        labels = _interval_labels([None, *level], [*level, None], whole=whole)
        bins_of = np.searchsorted([_double(cut) for cut in level], real, side="right")
        table[str(place)] = labels.gather(bins_of)
    return Hierarchy.from_levels(add_root(table), name=hierarchy_name(name, values))


def _bin_of_cuts(level: Sequence[Fraction]) -> Callable[[Fraction], Bin]:
    bounded: list[Fraction | None] = [None, *level, None]
    return lambda value: (bounded[place := bisect_right(level, value)], bounded[place + 1])


def from_prefix(
    values: Values, *, lengths: Sequence[int] = (3, 2), mark: str = "*", name: str = "", last: bool = False
) -> Hierarchy:
    """Build levels that keep ever shorter beginnings of codes: 93721, ``937**``, ``93***``; or ``last`` ends.

    A beginning stands for every code that begins so, whether anyone has it or not. Codes of one length show
    it by their number of stars; others have one star, ``E11*``, and one that is shorter stands for itself. Of
    codes of three to five digits, all of one length, the leaves are all there can be; of others those that
    occur, by whose number widths are counted. The same holds for the ends of codes, ``***21`` and ``*123``.
    """
    if (
        min(lengths, default=0) < 1
        or any(short >= long for long, short in pairwise(lengths))
        or len(mark) != 1
    ):
        raise ParameterError(
            "`lengths` must be whole, above 0 and descending and `mark` one character, "
            f"got: `{list(lengths)}` and `{mark}`"
        )
    leaves = distinct_texts(values)
    alike = leaves.str.len_chars().n_unique() == 1
    if mark == WILDCARD and alike and leaves.str.contains(r"^[0-9]{3,5}$").all():
        leaves = pl.Series(codes_of(WILDCARD * len(leaves[0])))

    def cut(n: int) -> pl.Series:
        kept = leaves.str.tail(n) if last else leaves.str.head(n)
        stars = mark * (len(leaves[0]) - n) if alike else mark
        shown = stars + kept if last else kept + stars
        return shown if alike else leaves.zip_with(leaves.str.len_chars() < n, shown)

    levels = {str(n): cut(n) for n in lengths}
    return Hierarchy.from_levels(add_root({"leaf": leaves, **levels}), name=hierarchy_name(name, values))


def from_tree(tree: Mapping[str, Any], *, name: str = "") -> Hierarchy:
    """Build from nested mappings, ``{"Europe": {"Iberia": ["Spain", "Portugal"]}}``, or child → parent.

    A leaf that is nearer to the root than others stands on the levels below its parent as itself.
    """
    if tree and all(isinstance(parent, str) for parent in tree.values()):
        paths = _climbs(tree, name)
    else:
        paths = list(_branches(tree))
    depth = max((len(path) for path in paths), default=1)
    rows = [[path[0]] * (depth - len(path)) + path for path in paths]
    return Hierarchy.from_levels(
        pl.DataFrame(rows, schema=[str(i) for i in range(depth)], orient="row"), name=name
    )


def from_dates(
    values: pl.Series, *, levels: Sequence[str] = ("month", "quarter", "year"), name: str = ""
) -> Hierarchy:
    """Build from dates: 2020-05-17, ``2020-05``, ``2020-Q2``, ``2020``; times climb to the day first.

    The ``levels`` are some of day, month, quarter, year and decade (``2020s``).
    """
    if not (values.dtype == pl.Date or isinstance(values.dtype, pl.Datetime)):
        raise DataError(f"the values of `{values.name}` are not dates, but {values.dtype}")
    if values.dtype == pl.Datetime and "day" not in levels:
        levels = ("day", *levels)
    if [part for part in _DATE_PARTS if part in levels] != list(levels):
        raise ParameterError(
            f"`levels` must be some of {list(_DATE_PARTS)} in this order, got: `{list(levels)}`"
        )
    dates = values.drop_nulls().unique().sort()
    parts = {level: _DATE_PARTS[level](dates) for level in levels}
    table = add_root({"leaf": canonical_text(dates), **parts})
    return Hierarchy.from_levels(table, name=hierarchy_name(name, values))


def hierarchy_name(name: str, values: Values) -> str:
    """The name of a hierarchy: the one given, or that of its column."""
    return name or (values.name if isinstance(values, pl.Series) else "")


def distinct_texts(values: Values) -> pl.Series:
    """The distinct values in their own order, as text."""
    series = values if isinstance(values, pl.Series) else pl.Series(values, strict=False)
    return canonical_text(distinct_values(series).sort()).drop_nulls()


def _exact_fraction(number: Any) -> Fraction:
    """A number as it is written in decimals: 0.1 is a tenth, so that 0.3 lies on a cut of width 0.1."""
    try:
        return Fraction(str(number))
    except ValueError:
        raise ParameterError("a width, origin or cut is not a finite number") from None


def _from_bins(
    values: Values, bins: Sequence[Callable[[Fraction], Bin]], *, marks: Sequence[Fraction], name: str
) -> Hierarchy:
    """Build the levels that label each value with its bin; ``marks`` are the numbers bins are made of."""
    leaves, name = distinct_texts(values), hierarchy_name(name, values)
    _finite(leaves, name)
    numbers = [Fraction(leaf) for leaf in leaves]
    whole = all(number.denominator == 1 for number in (*numbers, *marks))
    levels = {"leaf": leaves}
    for level, binned in enumerate(bins, start=1):
        lo, hi = ([end[side] for end in map(binned, numbers)] for side in (0, 1))
        levels[str(level)] = _interval_labels(lo, hi, whole=whole)
    return Hierarchy.from_levels(add_root(levels), name=name)


def _finite(leaves: pl.Series, name: str) -> pl.Series:
    real = leaves.cast(pl.Float64, strict=False)
    if n_odd := int((~real.is_finite()).fill_null(value=True).sum()):
        raise DataError(f"`{name}` has {count_noun(n_odd, 'value')} that cannot be read as finite numbers")
    return real


def add_root(levels: Mapping[str, pl.Series]) -> pl.DataFrame:
    """A table of these levels and of the wildcard above them."""
    table = pl.DataFrame(dict(levels))
    return table.with_columns(pl.repeat(WILDCARD, table.height, eager=True).alias("root"))


def _interval_labels(
    lo: Sequence[Fraction | None], hi: Sequence[Fraction | None], *, whole: bool
) -> pl.Series:
    highs = [None if end is None else end - whole for end in hi]
    return to_text(intervals(_ends(lo, whole=whole), _ends(highs, whole=whole)))


def _ends(ends: Sequence[Fraction | None], *, whole: bool) -> pl.Series:
    if whole and all(end is None or abs(end) < 2**63 for end in ends):
        return pl.Series([None if end is None else int(end) for end in ends], dtype=pl.Int64)
    return pl.Series([None if end is None else _double(end) for end in ends], dtype=pl.Float64)


def _double(number: Fraction) -> float:
    """A number in double precision; one beyond all of that is infinite."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _climbs(parents: Mapping[str, str], name: str) -> list[list[str]]:
    """The way from each leaf to its root, where ``parents`` names the parent of each label."""
    inner = set(parents.values())
    paths = []
    for leaf in (label for label in parents if label not in inner):
        path = [leaf]
        while path[-1] in parents and len(path) <= len(parents):
            path.append(parents[path[-1]])
        paths.append(path)
    on_the_way = {label for path in paths for label in path}
    n_circling = len(parents.keys() - on_the_way) + sum(path[-1] in parents for path in paths)
    if n_circling:
        raise PlanError.gather(
            f"the tree `{name}`", [f"{count_noun(n_circling, 'label')} in a circle of parents"]
        )
    return paths


def _branches(tree: Any) -> Iterator[list[str]]:
    """The way from each leaf to its root in nested mappings; a leaf has nothing under it."""
    for label in tree:
        below = tree[label] if isinstance(tree, Mapping) else None
        if below:
            yield from ([*path, label] for path in _branches(below))
        else:
            yield [label]
