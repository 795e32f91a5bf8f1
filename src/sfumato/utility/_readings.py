"""Readings: what a released cell may stand for, be it exact, a range, a set of values, or held back.

Every column becomes numbers: continuous values and dates themselves, ordinal values by their position,
nominal ones as codes that differ or do not. A released cell is then a *span* of numbers or a set of them,
and the measures of information loss take it in one of three ways (`Reading`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
import polars as pl

from sfumato.data.codings import codes_of_both, microseconds, numbers_of_both
from sfumato.data.evidence import Evidence
from sfumato.data.generalised.intervals import ends, is_interval
from sfumato.data.generalised.nodes import WILDCARD, Codes, parse_exact
from sfumato.data.schema import Kind, Schema
from sfumato.data.table import TEXTUAL, Flags, Floats, Ints, Table
from sfumato.errors import DataError

#: How a generalised value is read: in its middle, at the member farthest from the truth, or as any member.
Reading: TypeAlias = Literal["midpoint", "worst", "expected"]

#: Records of a table: numbers of them, or all in their order, which costs no copy.
Rows: TypeAlias = Ints | slice

ORDERED = frozenset({Kind.CONTINUOUS, Kind.ORDINAL, Kind.DATE})
COMPARABLE = ORDERED | {Kind.NOMINAL}


# Which records belong together -------------------------------------------------------------------------


def unmapped(measure: str, evidence: Evidence) -> str | None:
    """Why released values cannot be held against their originals; None if they can."""
    if evidence.source_rows is None:
        return f"{measure} must know which record each released one comes from, got: records that do not map"
    return None


def coarse_original(measure: str, evidence: Evidence, names: tuple[str, ...]) -> str | None:
    """Why the original cannot be taken for the truth: it holds ranges or sets itself; None if it can."""
    coarse = [name for name in names if is_coarse(evidence.original, name)]
    if not coarse:
        return None
    listed = ", ".join(f"`{name}`" for name in coarse)
    return f"{measure} must find exact values in the original, got: ranges or sets of values in {listed}"


def is_coarse(table: Table, name: str) -> bool:
    """Whether a column holds ranges or sets of values."""
    return name in table.nodes or is_interval(table.frame.schema[name])


def pairs_of(evidence: Evidence) -> tuple[Rows, Rows]:
    """Released records and the original of each; an original that was left out stands beside none (−1).

    Slices where all are in the order of the original, which is the usual case.
    """
    sources = evidence.source_rows
    assert sources is not None  # `unmapped` saw to it
    n = len(evidence.original)
    if len(sources) == n and bool((sources == np.arange(n)).all()):
        return slice(None), slice(None)
    released = np.flatnonzero(sources >= 0)
    sources = sources[released]
    seen = np.zeros(n, dtype=np.bool_)
    seen[sources] = True
    left_out = np.flatnonzero(~seen)
    nothing = np.full(len(left_out), -1, dtype=np.int64)
    return np.concatenate([released, nothing]), np.concatenate([sources, left_out])


def n_left_out(released: Rows) -> int:
    """The number of originals that stand beside no released record."""
    return 0 if isinstance(released, slice) else int((released < 0).sum())


def by_original(values: Floats, sources: Rows, n: int) -> Floats:
    """What is known of released records, by their original: the mean of its copies, NaN where it has none."""
    if isinstance(sources, slice):
        return values
    known = ~np.isnan(values)
    counts = np.bincount(sources[known], minlength=n)
    sums = np.bincount(sources[known], weights=values[known], minlength=n)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def weights_of(evidence: Evidence) -> Floats | None:
    """The weights of the released records: their own, or else those of their originals."""
    assert evidence.protected is not None
    own = evidence.protected.weights
    if own is not None or evidence.source_rows is None or evidence.original.weights is None:
        return own
    return np.append(evidence.original.weights, 0.0)[evidence.source_rows]


# What a released cell stands for -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Sets:
    """Labels that cover values which need not be next to each other: ``values`` ascend within a label."""

    starts: Ints  # [labels + 1] the values of label c are starts[c] to starts[c + 1]
    values: Floats  # [members]
    n_leaves: int  # how many values there can be
    levels: Ints  # [labels] how many steps lead up from a value to the label

    @property
    def sizes(self) -> Ints:
        """The number of values that each label covers."""
        return np.diff(self.starts)

    def up_to(self, codes: Ints, numbers: Floats) -> Ints:
        """Where the values of each label end that are at most the number beside it."""
        grid, ranks = np.unique(self.values, return_inverse=True)
        width = len(grid) + 1
        keys = np.repeat(np.arange(len(self.starts) - 1), self.sizes) * width + ranks
        return np.searchsorted(keys, codes * width + np.searchsorted(grid, numbers, side="right"))


@dataclass(frozen=True, eq=False)
class Spans:
    """What each released cell of a column may stand for: the numbers from ``lows`` to ``highs``.

    Both are NaN where the cell says nothing: missing, suppressed, or a wildcard. With a ``step`` of 1 only
    whole numbers lie between. Where there are ``sets``, only the values of the label ``codes`` do.
    """

    lows: Floats  # [records]
    highs: Floats  # the same array where all values are exact
    domain: tuple[float, float]  # from the least to the greatest value there can be
    step: float = 0.0
    sets: Sets | None = None
    codes: Ints | None = None  # [records] the labels of the sets; −1 or any where the cell says nothing

    @property
    def exact(self) -> bool:
        """Whether no cell stands for several values."""
        return self.highs is self.lows

    @property
    def silent(self) -> Flags:
        """Which cells say nothing."""
        return np.isnan(self.lows)

    @property
    def middles(self) -> Floats:
        """The middle of each cell, NaN where it says nothing."""
        return self.lows if self.exact else self.lows / 2 + self.highs / 2

    def take(self, rows: Rows) -> Spans:
        """Keep these records; −1 is one of which nothing is said."""
        if isinstance(rows, slice):
            return self
        lows = np.append(self.lows, np.nan)[rows]
        highs = lows if self.exact else np.append(self.highs, np.nan)[rows]
        codes = None if self.codes is None else np.append(self.codes, -1)[rows]
        return replace(self, lows=lows, highs=highs, codes=codes)

    def holds(self, numbers: Floats) -> Flags:
        """Whether each cell may stand for the number beside it."""
        if self.sets is None or self.codes is None:
            return (self.lows <= numbers) & (numbers <= self.highs)
        there = ~np.isnan(self.lows) & ~np.isnan(numbers)
        codes, wanted = self.codes[there], numbers[there]
        place = self.sets.up_to(codes, wanted)
        found = np.zeros(len(there), dtype=np.bool_)
        # The last value that is at most the number: equal to it, and still of the label.
        found[there] = (place > self.sets.starts[codes]) & (self.sets.values[place - 1] == wanted)
        return found


def spans_of(original: Table, protected: Table, name: str) -> tuple[Floats, Spans]:
    """A column of both tables: the original's values as numbers, and what the released cells stand for."""
    if name in protected.nodes:
        return _of_labels(original, protected, name)
    if is_interval(protected.frame.schema[name]):
        return _of_intervals(original, protected, name)
    numbers, released = _numbers(original, protected, name)
    step = float(original.schema[name].kind in {Kind.NOMINAL, Kind.ORDINAL})
    return numbers, Spans(released, released, _domain(original, name, numbers), step)


def middles_of(original: Table, protected: Table, name: str) -> tuple[Floats, Floats]:
    """A column of both tables as numbers, generalised values at their middle; NaN where nothing is said."""
    numbers, spans = spans_of(original, protected, name)
    return numbers, spans.middles


def _numbers(original: Table, other: Table, name: str) -> tuple[Floats, Floats]:
    """Numbers that compare; of nominal columns codes."""
    if original.schema[name].kind is not Kind.NOMINAL:
        return numbers_of_both(original, other, name)
    mine, theirs = codes_of_both(original, other, name)
    return np.where(mine < 0, np.nan, mine), np.where(theirs < 0, np.nan, theirs)


def _domain(original: Table, name: str, numbers: Floats) -> tuple[float, float]:
    """From the least to the greatest value: declared, or else seen in the original."""
    column = original.schema[name]
    found = [end for end in (column.lower, column.upper) if end is not None and np.isfinite(end)]
    seen = numbers[~np.isnan(numbers)]
    if len(seen):
        found += [float(seen.min()), float(seen.max())]
    return (min(found), max(found)) if found else (0.0, 0.0)


def _of_intervals(original: Table, protected: Table, name: str) -> tuple[Floats, Spans]:
    column = original.schema[name]
    lo, hi = ends(protected.frame[name])
    lows = lo.to_physical().cast(pl.Float64).fill_null(-np.inf).to_numpy()
    highs = hi.to_physical().cast(pl.Float64).fill_null(np.inf).to_numpy()
    silent = protected.missing(name) | (np.isneginf(lows) & np.isposinf(highs))
    whole = float(lo.dtype != pl.Float64 or column.integer)
    if column.kind in {Kind.NOMINAL, Kind.ORDINAL}:
        numbers, lows, highs = _positions(original, name, lows, highs)
        whole = 1.0
    else:
        numbers = original.numbers(name)
        units = [microseconds(dtype) for dtype in (original.frame.schema[name], lo.dtype)]
        if column.kind is Kind.DATE and units[0] != units[1]:
            numbers, lows, highs = numbers * units[0], lows * units[1], highs * units[1]
    domain = _domain(original, name, numbers)
    # An open end reaches as far as the column does, and at least to the other end.
    lows = np.where(np.isneginf(lows), np.minimum(domain[0], highs), lows)
    highs = np.where(np.isposinf(highs), np.maximum(domain[1], lows), highs)
    lows[silent], highs[silent] = np.nan, np.nan
    return numbers, Spans(lows, highs, domain, whole)


def _positions(original: Table, name: str, lows: Floats, highs: Floats) -> tuple[Floats, Floats, Floats]:
    """Turn ranges of values into ranges of positions among the original's values."""
    coded = original.codes(name)
    values = coded.categories
    if values.dtype in TEXTUAL:
        raise DataError(f"the ranges of `{name}` must be of its own values, got: ranges beside text")
    places = values.to_physical().cast(pl.Float64).to_numpy()
    if (np.diff(places) <= 0).any():
        raise DataError(
            f"the ranges of `{name}` must follow the order declared for it, got: another order",
            hint="generalise it along a hierarchy instead",
        )
    first = np.searchsorted(places, lows).astype(np.float64)
    last = np.searchsorted(places, highs, side="right") - 1.0
    between = last < first  # a range in which no original value lies is between two of them
    middle = (first + last) / 2
    numbers = np.where(coded.codes < 0, np.nan, coded.codes.astype(np.float64))
    return numbers, np.where(between, middle, first), np.where(between, middle, last)


def _of_labels(original: Table, protected: Table, name: str) -> tuple[Floats, Spans]:
    nodes, series, column = protected.nodes[name], protected.frame[name], original.schema[name]
    present = pl.select(pl.when(pl.Series(~protected.missing(name))).then(series)).to_series()
    codes = nodes.codes(present.alias(name)).astype(np.int64)
    numbers, values = _numbers(original, _leaf_table(original, nodes.leaves, name), name)
    of_label = np.repeat(np.arange(len(nodes.labels)), nodes.sizes)
    members = values[nodes.members]
    order = np.lexsort((members, of_label))
    order = order[~np.isnan(members[order])]  # a leaf that is a missing code is no value
    sizes = np.bincount(of_label[order], minlength=len(nodes.labels))
    starts = np.concatenate([[0], np.cumsum(sizes)])
    sets = Sets(starts, members[order], len(nodes.leaves), _levels(starts, nodes.members[order]))
    silent = (sizes == 0) | (nodes.labels == WILDCARD).to_numpy()
    ends_of = np.append(sets.values, np.nan)
    lows = np.where(silent, np.nan, ends_of[np.where(silent, 0, starts[:-1])])
    highs = np.where(silent, np.nan, ends_of[np.where(silent, 0, starts[1:] - 1)])
    domain = _domain(original, name, np.concatenate([numbers, values]))
    # Code −1, missing, is the last.
    lows, highs = np.append(lows, np.nan)[codes], np.append(highs, np.nan)[codes]
    step = float(column.kind in {Kind.NOMINAL, Kind.ORDINAL})
    return numbers, Spans(lows, highs, domain, step, sets, codes)


def _leaf_table(original: Table, leaves: pl.Series, name: str) -> Table:
    """The leaves of a node table as values of the column."""
    column, dtype = original.schema[name], original.frame.schema[name]
    if column.kind is not Kind.NOMINAL and dtype not in TEXTUAL:
        leaves = parse_exact(leaves, pl.Float64 if column.kind is Kind.CONTINUOUS else dtype)
        if unread := leaves.null_count():
            raise DataError(f"the leaves of `{name}` must be values of its kind, got: {unread} that are not")
    return Table(pl.DataFrame({name: leaves}), Schema((column,)))


def _levels(starts: Ints, members: Codes) -> Ints:
    """How many steps lead from a value up to each label: the widths of the labels around it that differ.

    A label of one value is on level 0. A step that changes nothing of what a label covers is none.
    """
    sizes = np.diff(starts)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    order = np.lexsort((sizes[labels], members))
    labels, size, leaf = labels[order], sizes[labels[order]], members[order]
    opens = np.diff(leaf, prepend=-1) != 0
    wider = np.where(opens, size > 1, np.diff(size, prepend=0) != 0)
    steps = np.cumsum(wider)
    first = np.maximum.accumulate(np.where(opens, np.arange(len(leaf)), 0))
    levels = np.zeros(len(sizes), dtype=np.int64)
    np.maximum.at(levels, labels, steps - steps[first] + wider[first])
    return levels
