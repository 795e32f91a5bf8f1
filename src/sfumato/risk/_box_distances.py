"""Distances to generalised records: the distinct released ones as boxes, in the space of ordinary linkage.

Numbers are placed and scaled as in `risk._spaces`; a range is as far as its nearer end, a set of values as
the nearest of them, and categories are one unit apart if the released one does not stand for the other. What
covers a record is at no distance from it, and then its loss tells: the mean over the columns of the share of
the domain it spans. A missing released cell may be any value, as a wildcard.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato import kernels
from sfumato.data.evidence import Evidence
from sfumato.data.generalised.cover import Cover, Runs, cover_of, extent
from sfumato.data.schema import Kind
from sfumato.kernels.arrays import Floats, Ints
from sfumato.risk._spaces import Metric, Placing, Scale

Tick = Callable[[int, int], None]

UNITS = 2.0**36  # of cost, in a loss of 1 or in the greatest distance: what differs by less is equal

#: Distances between values and labels that are kept for a column; beyond, sets are taken for ranges.
_MOST_IN_TABLE = 20_000_000


@dataclass(frozen=True)
class Nearness:
    """The intruder's records as points, and the classes of the released ones in the order of their loss."""

    points: Any  # kernels.box_distances.Points
    shown: Any  # kernels.box_distances.Shown
    classes: Ints  # [released records] the class of each

    def links(self, persons: Ints, owners: Ints, *, tick: Tick | None = None) -> Any:
        """Rivals of each of the intruder's records, as ``kernels.linking.Rivals``."""
        own = kernels.box_distances.Own(*_own(self.classes, persons, owners))
        found = kernels.box_distances.rivals(self.points, own, self.shown, tick)
        return kernels.linking.Rivals(*found)

    def of_points(self, rows: Ints) -> Nearness:
        """The same boxes, and only some of the intruder's records."""
        some = kernels.box_distances.Points(self.points.numbers[rows], self.points.codes[rows])
        return Nearness(some, self.shown, self.classes)

    def pairs(
        self, pricing: Any, limits: Ints, prices: Ints, *, most: int, tick: Tick | None = None
    ) -> tuple[Ints, Ints, Ints] | None:
        """Points, classes and costs of the pairs that cost no more than limit and price; None if too many."""
        found: tuple[Ints, Ints, Ints] | None = kernels.box_distances.pairs(
            self.points, self.shown, pricing, limits, prices, most, tick
        )
        return found

    def covering(self, *, most: int, tick: Tick | None = None) -> tuple[Ints, Ints, Ints] | None:
        """Those of the pairs that cover, at the cost of their loss."""
        anything = np.full(len(self.points.numbers), kernels.box_distances.NEVER)
        free = np.zeros(len(self.shown.losses), dtype=np.int64)
        return self.pairs(kernels.box_distances.Pricing(UNITS, 0.0), anything, free, most=most, tick=tick)

    def distinct_points(self) -> tuple[Ints, Ints]:
        """Number the distinct ones of the intruder's records, and name one record of each."""
        numbers = np.nan_to_num(self.points.numbers, nan=np.inf) + 0.0
        groups, samples, _ = _numbered([*numbers.T, *self.points.codes.T], len(numbers))
        return groups, samples


@dataclass(frozen=True)
class _Column:
    """One column: where the intruder's values lie, and what each released cell stands for."""

    values: Floats  # [n] NaN: missing
    lows: Floats  # [m] −∞ and ∞ where it may be any
    highs: Floats
    is_step: bool  # values are equal or not
    widths: Floats  # [m] share of the domain
    labels: Ints | None = None  # [m] where cells are sets: rows of the tables
    near: Floats | None = None  # [labels, codes] the last code is that of a missing value
    far: Floats | None = None


def nearness_of(
    evidence: Evidence, names: tuple[str, ...], rows: Ints, *, metric: Metric, scale: Scale
) -> Nearness:
    """Put the intruder's records ``rows`` beside the classes of the released ones.

    Of *mahalanobis* distances there is none to a box: numbers are then divided by their deviation.
    """
    assert evidence.protected is not None  # measures see to it
    m = len(evidence.protected)
    scale = "pooled" if metric == "gower" else "deviation" if metric == "mahalanobis" else scale
    columns = [_column(evidence, name, scale, is_code=metric == "hamming") for name in names]
    ranges = [column for column in columns if column.labels is None]
    sets = [column for column in columns if column.labels is not None]
    widths = sum((column.widths for column in columns), start=np.zeros(m))
    losses = np.rint(widths / max(len(columns), 1) * kernels.box_distances.UNITS).astype(np.int64)
    near, far, labels, codes = _tables(sets, rows, m)
    lows, highs = (_side_by_side([getattr(c, side) for c in ranges], m) for side in ("lows", "highs"))
    numbers = _side_by_side([column.values[rows] for column in ranges], len(rows))
    classes, samples, sizes = _numbered([losses, *lows.T, *highs.T, *labels.T], m)
    ends = np.array([extent(c.values, c.lows, c.highs) for c in ranges]).reshape(-1, 2).T
    shown = kernels.box_distances.Shown(
        lows[samples], highs[samples], np.ascontiguousarray(ends),
        np.array([column.is_step for column in ranges], dtype=np.uint8), labels[samples], near, far,
        losses[samples], sizes, metric in {"euclidean", "mahalanobis"},
    )  # fmt: skip
    return Nearness(kernels.box_distances.Points(numbers, codes), shown, classes)


def _column(evidence: Evidence, name: str, scale: Scale, *, is_code: bool) -> _Column:
    assert evidence.protected is not None  # measures see to it
    known, released = evidence.known_table, evidence.protected
    is_step = is_code or known.schema[name].kind is Kind.NOMINAL
    values, cover = cover_of(known, released, name, nested=is_step)
    widths = np.where(cover.missing, 1.0, cover.spread())
    runs = cover.boxes()
    if not is_step:
        placing = Placing.of(values, _finite(cover.lows, cover.highs), scale)
        values = np.where(np.isnan(values), np.nan, placing(values))
        cover = _placed(cover, placing)
        if (runs.counts != 1).any() and runs.ends.shape[1] * len(np.unique(values)) <= _MOST_IN_TABLE:
            return _of_distances(values, cover, widths)
    elif (runs.counts != 1).any():
        return _of_members(values, runs, widths)
    silent = cover.missing
    lows, highs = np.where(silent, -np.inf, cover.lows), np.where(silent, np.inf, cover.highs)
    return _Column(values, lows, highs, is_step, widths)


def _finite(*sides: Floats) -> Floats:
    both = np.concatenate(sides)
    return both[np.isfinite(both)]


def _placed(cover: Cover, placing: Placing) -> Cover:
    """Put what cells stand for where the intruder's values are; open ends stay open."""
    return cover.mapped(lambda ends: np.where(np.isfinite(ends), placing(ends), ends))


def _of_members(values: Floats, runs: Runs, widths: Floats) -> _Column:
    """A column of sets of categories: which of them each label has."""
    _, firsts, labels = np.unique(runs.starts, return_index=True, return_inverse=True)
    place, run = runs.laid_out(firsts)
    lows, highs = runs.ends[:, run]
    greatest = _finite(runs.ends.reshape(-1), values).max(initial=0.0)
    n_codes = 2 + int(greatest)
    changes = np.zeros((len(firsts), n_codes + 1), dtype=np.int32)
    open_ = np.isinf(lows) & np.isinf(highs)
    np.add.at(changes, (place, np.where(open_, 0, lows).astype(np.int64)), 1)
    np.add.at(changes, (place, np.where(open_, n_codes, highs + 1).astype(np.int64)), -1)
    members = np.cumsum(changes, axis=1)[:, :-1] > 0
    near = np.where(members, 0.0, 1.0)
    far = np.where(members & (members.sum(axis=1) == 1)[:, None], 0.0, 1.0)
    ends = np.empty(0)
    return _Column(values, ends, ends, True, widths, labels.reshape(-1), near, far)


def _of_distances(values: Floats, cover: Cover, widths: Floats) -> _Column:
    """A column of sets of numbers: how far each of the intruder's values is from each label."""
    assert cover.sets is not None  # ranges have one run
    assert cover.codes is not None
    distinct = np.unique(values[~np.isnan(values)])
    codes = np.where(np.isnan(values), len(distinct), np.searchsorted(distinct, values)).astype(np.float64)
    n_labels = len(cover.sets.sizes)
    near, far = np.ones((n_labels + 1, len(distinct) + 1)), np.ones((n_labels + 1, len(distinct) + 1))
    for label in range(n_labels):
        leaves = cover.sets.values[cover.sets.starts[label] : cover.sets.starts[label + 1]]
        if len(leaves):
            after = np.searchsorted(leaves, distinct)
            below, above = leaves[np.maximum(after - 1, 0)], leaves[np.minimum(after, len(leaves) - 1)]
            near[label, :-1] = np.minimum(np.abs(distinct - below), np.abs(above - distinct))
            far[label, :-1] = np.maximum(np.abs(distinct - leaves[0]), np.abs(leaves[-1] - distinct))
    # The last label may be any value: that of cells that say nothing.
    low, high = extent(distinct, cover.sets.values)
    near[-1], far[-1, :-1] = 0.0, np.maximum(distinct - low, high - distinct)
    labels = np.where(cover.silent, n_labels, cover.codes)
    ends = np.empty(0)
    return _Column(codes, ends, ends, False, widths, labels, near, far)


def _side_by_side(columns: list[Floats], n: int) -> Floats:
    matrix = np.empty((n, len(columns)))
    for place, column in enumerate(columns):
        matrix[:, place] = column
    return matrix


def _tables(columns: list[_Column], rows: Ints, m: int) -> tuple[Floats, Floats, Ints, Ints]:
    """The distances of all columns of sets in one table each; the labels of released records; codes of mine.

    The last code of the tables is that of a missing value.
    """
    codes, labels = np.zeros((len(rows), len(columns)), np.int64), np.zeros((m, len(columns)), np.int64)
    n_codes = max((column.near.shape[1] for column in columns if column.near is not None), default=1)
    near, far, n_labels = [np.zeros((0, n_codes))], [np.zeros((0, n_codes))], 0
    for place, column in enumerate(columns):
        assert column.labels is not None  # asked for before
        assert column.near is not None
        assert column.far is not None
        labels[:, place] = column.labels + n_labels
        values = column.values[rows]
        last = column.near.shape[1] - 1
        codes[:, place] = np.where(np.isnan(values), last, np.nan_to_num(values)).astype(np.int64)
        for made, table in ((near, column.near), (far, column.far)):
            made.append(np.pad(table, ((0, 0), (0, n_codes - table.shape[1])), constant_values=1.0))
        n_labels += len(column.near)
    return np.concatenate(near), np.concatenate(far), labels, codes


def _numbered(parts: list[Any], n: int) -> tuple[Ints, Ints, Ints]:
    """Number distinct records in the order of their parts, first part first; one record and size of each."""
    if not parts or not n:
        return np.zeros(n, dtype=np.int64), np.arange(min(n, 1)), np.array([n] if n else [], dtype=np.int64)
    order = np.lexsort(parts[::-1])
    opens = np.ones(n, dtype=np.bool_)
    opens[1:] = np.any([part[order][1:] != part[order][:-1] for part in parts], axis=0)
    numbers = np.cumsum(opens) - 1
    groups = np.empty(n, dtype=np.int64)
    groups[order] = numbers
    return groups, order[opens].astype(np.int64), np.bincount(numbers)


def _own(classes: Ints, persons: Ints, owners: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """The classes of each person's own released records, ascending, and how many records of each."""
    n_classes = int(classes.max(initial=0)) + 1
    known = owners >= 0
    pairs, counts = np.unique(owners[known] * n_classes + classes[known], return_counts=True)
    starts, ends = (np.searchsorted(pairs // n_classes, persons, side=side) for side in ("left", "right"))
    return starts, ends, pairs % n_classes, counts.astype(np.int64)
