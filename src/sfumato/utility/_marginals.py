"""One column of both tables, read alike: exact values, and generalised ones as the values they may stand for.

An interval stands for every number from its lower to its upper end, a node for the leaves it covers; each of
them is as likely as the others. A measure takes the middle of them (*midpoint*) or spreads the mass of the
record over all of them (*expected*).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Measure, Needs
from sfumato.data.classes.packing import Coding, firsts_of, number, pack
from sfumato.data.generalised.cover import CATEGORIES, Cover, covers_of, reads_as_numbers
from sfumato.data.generalised.intervals import is_interval
from sfumato.data.schema import COMPARABLE, Kind
from sfumato.data.table import Table
from sfumato.kernels.arrays import Floats, Ints

Generalised = Literal["midpoint", "expected"]

#: Equal parts into which a wide interval is cut when its mass is spread; fewer where there are very many.
PARTS, FEWEST_PARTS, MOST_POINTS = 100, 8, 4_000_000
#: Whole numbers that lie less far apart are codes as they are.
_MAX_SPAN = 2**31

_NONE = np.zeros(0)


@dataclass(frozen=True)
class ColumnDistribution:
    """A column as masses at points; what is missing is at none. All masses sum to 1."""

    points: Floats
    masses: Floats | None  # None: 1 / n each
    missing: float
    n: int  # records, with those whose value is missing
    effective: float  # Kish's effective number of the records that are not missing
    ordered: bool = False  # whether the points ascend

    def ascending(self) -> tuple[Floats, Floats]:
        """The points in order, and the mass of the first 0, 1, 2 … of them (empty: 1 / n each)."""
        ordered = self.in_order()
        if ordered.masses is None:
            return ordered.points, _NONE
        return ordered.points, np.concatenate(([0.0], np.cumsum(ordered.masses)))

    def in_order(self) -> ColumnDistribution:
        """The same with ascending points, so that sums over them hardly depend on the order of records."""
        if self.ordered:
            return self
        if self.masses is None:
            return replace(self, points=np.sort(self.points), ordered=True)
        order = np.argsort(self.points)
        return replace(self, points=self.points[order], masses=self.masses[order], ordered=True)

    def each(self) -> Floats:
        """The mass of each point."""
        return np.full(len(self.points), 1.0 / max(self.n, 1)) if self.masses is None else self.masses


@dataclass(frozen=True)
class ColumnMarginal:
    """A column of one table: a number (or code) for each record, and what generalised values stand for."""

    values: Floats  # [n] the middle of a generalised value; NaN where it is missing
    weights: Floats | None = None  # [n]
    groups: Ints | None = None  # [n] which generalised value a record has; −1: an exact one, or none
    starts: Ints | None = None  # the values group g stands for are points[starts[g]:starts[g + 1]]
    points: Floats | None = None
    lows: Floats | None = None  # [groups] the ends of what a group stands for
    highs: Floats | None = None

    def distribution(self, generalised: Literal["midpoint", "expected", "low", "high"]) -> ColumnDistribution:
        """The distribution, with generalised values at their middle, spread evenly, or all at one end."""
        if self.groups is None or generalised == "midpoint":
            present = ~np.isnan(self.values)
            shares = None if self.weights is None else self._shares()[present]
            return self._distribution_of(self.values if present.all() else self.values[present], shares)
        assert self.lows is not None  # what has groups says what they stand for
        assert self.highs is not None
        if generalised != "expected":
            moved = np.append(self.lows if generalised == "low" else self.highs, np.nan)[self.groups]
            values = np.where(self.groups < 0, self.values, moved)
            return replace(self, values=values).distribution("midpoint")
        assert self.starts is not None
        assert self.points is not None
        coarse, shares = self.groups >= 0, self._shares()
        exact = ~coarse & ~np.isnan(self.values)
        sizes = np.diff(self.starts)
        held = np.bincount(self.groups[coarse], weights=shares[coarse], minlength=len(sizes))
        masses = np.concatenate((shares[exact], np.repeat(held / np.maximum(sizes, 1), sizes)))
        points = np.concatenate((self.values[exact], self.points))
        return self._distribution_of(points[masses > 0], masses[masses > 0])

    def _shares(self) -> Floats:
        """The share of each record."""
        if self.weights is None:
            return np.full(len(self.values), 1.0 / max(len(self.values), 1))
        total: float = self.weights.sum()
        return self.weights / total

    def _distribution_of(self, points: Floats, masses: Floats | None) -> ColumnDistribution:
        absent = np.isnan(self.values)
        n, n_absent = len(absent), int(np.count_nonzero(absent))
        if self.weights is None:
            return ColumnDistribution(points, masses, n_absent / max(n, 1), n, float(n - n_absent))
        present = self.weights[~absent] / self.weights.max(initial=1.0)
        effective = float(present.sum() ** 2 / (present**2).sum()) if len(present) else 0.0
        return ColumnDistribution(points, masses, float(self._shares()[absent].sum()), n, effective)

    def variances(self) -> Floats | None:
        """How much the values vary that each generalised one stands for, by group; None if all are exact."""
        if self.starts is None or self.points is None:
            return None
        owners, sizes = _owners(self.starts)
        means = np.bincount(owners, self.points, len(sizes)) / np.maximum(sizes, 1)
        squares = (self.points - means[owners]) ** 2
        spread: Floats = np.bincount(owners, squares, len(sizes)) / np.maximum(sizes, 1)
        return spread


def _owners(starts: Ints) -> tuple[Ints, Ints]:
    """The group of each point, and the size of each group."""
    sizes = np.diff(starts)
    return np.repeat(np.arange(len(sizes)), sizes), sizes


# Which columns can be read ------------------------------------------------------------------------------


def readable_columns(evidence: Evidence, kinds: frozenset[Kind]) -> tuple[str, ...]:
    """The columns of both tables whose original kind is one of ``kinds`` and whose values compare."""
    if evidence.protected is None:
        return evidence.of_kinds(evidence.shared_columns, kinds)
    schema = evidence.original.schema
    return tuple(
        name
        for name in evidence.shared_columns
        if schema[name].kind in kinds and _compare(evidence.original, evidence.protected, name)
    )


class DistributionMeasure(Measure):
    """Compares the distributions of columns whose values compare, of tables that have records."""

    aspect = "utility"
    better = "low"
    kinds = COMPARABLE
    needs = Needs(records=True)

    def columns(self, evidence: Evidence) -> tuple[str, ...]:
        """The columns of both tables whose values compare."""
        return readable_columns(evidence, self.kinds)


def _compare(original: Table, protected: Table, name: str) -> bool:
    kind, tables = original.schema[name].kind, (original, protected)
    ranged = any(is_interval(table.frame.schema[name]) for table in tables)
    if kind not in CATEGORIES or (kind is Kind.ORDINAL and ranged):
        return all(reads_as_numbers(table, name, kind) for table in tables)
    return not ranged and all(
        table.schema[name].kind in CATEGORIES or name in table.nodes for table in tables
    )


# Reading ------------------------------------------------------------------------------------------------


def read_both(original: Table, protected: Table, name: str) -> tuple[ColumnMarginal, ColumnMarginal]:
    """A column of both tables as numbers that compare: ordinal ones are positions, nominal ones codes.

    An ordinal column with intervals is read by its numbers, not by their positions. A wildcard stands for
    all there is.
    """
    one, other = covers_of(original, protected, name)
    return _reading(one, original.weights), _reading(other, protected.weights)


def _reading(cover: Cover, weights: Floats | None) -> ColumnMarginal:
    if cover.exact:
        return ColumnMarginal(cover.lows, weights)
    if cover.sets is not None and cover.codes is not None:
        sets, values = cover.sets, cover.means
        groups = np.where(np.isnan(values), -1, cover.codes)
        return ColumnMarginal(values, weights, groups, sets.starts, sets.values, sets.lows, sets.highs)
    closed = cover.close_ends()
    coarse = closed.lows < closed.highs
    lows, highs = closed.lows[coarse], closed.highs[coarse]
    found, counts = number(pack(map(_order_codes, (lows, highs)), len(lows)))
    firsts = firsts_of(found, len(counts))
    groups = np.full(len(coarse), -1, dtype=np.int64)
    groups[coarse] = found
    lows, highs = lows[firsts], highs[firsts]
    del found, coarse  # as long as the records
    starts, points = _cut(lows, highs, cover.step)
    return ColumnMarginal(closed.middles, weights, groups, starts, points, lows, highs)


def _order_codes(values: Floats) -> Coding:
    """Numbers as codes in their order; whole ones without being sorted."""
    low = float(values.min(initial=np.inf))
    span = float(values.max(initial=-np.inf)) - low
    if 0 <= span < _MAX_SPAN and bool(np.all(values == np.floor(values))):
        return Coding((values - low).astype(np.uint32), int(span) + 1)
    distinct, codes = np.unique(values, return_inverse=True)
    return Coding(codes.astype(np.uint64), max(len(distinct), 1))


def _cut(lows: Floats, highs: Floats, step: float) -> tuple[Ints, Floats]:
    """Points spread evenly over intervals: all the multiples of a step there are, or the middles of parts."""
    most = max(FEWEST_PARTS, min(PARTS, MOST_POINTS // max(len(lows), 1)))
    n_steps = (highs / 2 - lows / 2) / (step / 2) + 1 if step else np.full(len(lows), np.inf)
    counts = np.minimum(n_steps, most).astype(np.int64)
    starts = np.concatenate(([0], np.cumsum(counts)))
    owners, sizes = _owners(starts)
    places = np.arange(len(owners)) - starts[:-1][owners]
    shares = (places + 0.5) / sizes[owners]
    parts = (lows[owners] - step / 2) * (1 - shares) + (highs[owners] + step / 2) * shares
    return starts, np.where((n_steps <= most)[owners], lows[owners] + places * step, parts)
