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
from sfumato.core.evidence import Evidence
from sfumato.core.intruder_view import classes_of
from sfumato.data.classes.classes import Classes
from sfumato.data.generalised.cover import Cover, cover_of, extent
from sfumato.data.generalised.label_sets import Runs
from sfumato.data.schema import Kind
from sfumato.data.table import Table
from sfumato.kernels.arrays import Flags, Floats, Ints
from sfumato.risk._coordinates import CoordinateScale, Metric, Scale

Tick = Callable[[int, int], None]

UNITS = 2.0**36  # of cost, in a loss of 1 or in the greatest distance: what differs by less is equal

#: Distances between values and labels that are kept for a column; beyond, sets are taken for ranges.
_MOST_IN_TABLE = 20_000_000

#: Places of a column of numbers that are told apart when boxes that may cover are looked for.
_PLACES = 1024


@dataclass(frozen=True)
class BoxDistances:
    """The intruder's records as points, and the classes of the released ones in the order of their loss."""

    points: Any  # kernels.box_distances.Points
    shown: Any  # kernels.box_distances.Shown
    classes: Ints  # [released records] the class of each

    def links(self, persons: Ints, owners: Ints, *, tick: Tick | None = None) -> Any:
        """Rivals of each of the intruder's records, as ``kernels.linking.Rivals``."""
        own = kernels.box_distances.OwnBoxes(*_own(self.classes, persons, owners))
        found = kernels.box_distances.closer_counts(self.points, own, self.shown, tick)
        return kernels.linking.CloserCounts(*found)

    def is_covered_by_own_only(self, persons: Ints, owners: Ints, *, tick: Tick | None = None) -> Flags:
        """Whether each of the intruder's records is covered by its own, and by those of nobody else."""
        own = kernels.box_distances.OwnBoxes(*_own(self.classes, persons, owners))
        alike = self.shown._replace(losses=np.zeros_like(self.shown.losses))
        counts = kernels.box_distances.closer_counts(self.points, own, alike, tick, reach=0.0)
        distances, its, all_, _ = counts
        found: Flags = (distances == 0.0) & (its == all_)
        return found

    def of_points(self, rows: Ints) -> BoxDistances:
        """The same boxes, and only some of the intruder's records."""
        some = kernels.box_distances.QueryPoints(*(each[rows] for each in self.points))
        return BoxDistances(some, self.shown, self.classes)

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
        numbers, codes, places = self.points
        numbers = np.nan_to_num(numbers, nan=np.inf) + 0.0
        groups, samples, _ = _number_records([*numbers.T, *codes.T, *places.T], len(numbers))
        return groups, samples


@dataclass(frozen=True)
class _BoxColumn:
    """One column: where the intruder's values lie, and what each distinct released cell stands for."""

    values: Floats  # [n] NaN: missing
    lows: Floats  # [m] −∞ and ∞ where it may be any
    highs: Floats
    is_step: bool  # values are equal or not
    widths: Floats  # [m] share of the domain
    ends: tuple[float, float]  # from the least to the greatest value there is, of all the intruder's
    labels: Ints | None = None  # [m] where cells are sets: of those alike, one number
    runs: Runs | None = None  # where they are sets of categories
    near: Floats | None = None  # [labels, codes] of sets of numbers; the last code is of a missing value
    far: Floats | None = None

    def edges(self) -> tuple[Floats, int]:
        """Where the places of the intruder's values begin, and how many distinct ones share a place."""
        edges = np.unique(self.values[~np.isnan(self.values)])
        each = 1 if self.runs is not None else 1 + len(edges) // _PLACES
        return edges[::each], each

    def places(self, edges: Floats) -> Ints:
        """In which place each of the records lies: the last is that of a missing value."""
        places = np.searchsorted(edges, self.values, side="right") - 1
        places[np.isnan(self.values)] = len(edges)
        return places

    def mark_boxes(self, edges: Floats, each: int, samples: Ints) -> tuple[Ints, Ints, Ints]:
        """Where boxes are: box, first and last place.

        Of many numbers several share a place, and then boxes are wherever they may be.
        """
        boxes, (lows, highs) = np.arange(len(samples)), (self.lows[samples], self.highs[samples])
        if self.runs is not None:
            boxes, run = self.runs.laid_out(samples)
            lows, highs = self.runs.ends[:, run]
        firsts = np.searchsorted(edges, lows, side="left")
        if each > 1:
            firsts = np.maximum(np.searchsorted(edges, lows, side="right") - 1, 0)
        lasts = np.searchsorted(edges, highs, side="right") - 1
        lasts[(lows == -np.inf) & (highs == np.inf)] = len(edges)
        return boxes, firsts, lasts

    def exact(self, samples: Ints) -> Floats:
        """Which of these sets of categories are of one."""
        assert self.runs is not None  # asked for before
        boxes, run = self.runs.laid_out(samples)
        sizes = np.zeros(len(samples))
        np.add.at(sizes, boxes, self.runs.ends[1, run] - self.runs.ends[0, run] + 1.0)
        return np.where(sizes == 1.0, 1.0, 0.0)


def nearness_of(
    evidence: Evidence, names: tuple[str, ...], rows: Ints, *, metric: Metric, scale: Scale
) -> BoxDistances:
    """Put the intruder's records ``rows`` beside the classes of the released ones.

    Of released records that are written alike one is read: those of large files are many times as many.
    Of *mahalanobis* distances there is none to a box: numbers are then divided by their deviation. Nor of
    *learned* ones: they are *euclidean* then.
    """
    assert evidence.protected is not None  # measures see to it
    written = classes_of(evidence, names)
    if written.table is not evidence.protected:  # who is who was put in
        written = Classes.of(evidence.protected, names)
    known, m = evidence.known_table, len(written.examples)
    released = evidence.protected.select(names).take(written.examples)
    scale = "pooled" if metric == "gower" else "deviation" if metric == "mahalanobis" else scale
    columns = [_column(known, released, name, rows, scale, is_code=metric == "hamming") for name in names]
    ranges = [column for column in columns if column.labels is None]
    sets = [column for column in columns if column.near is not None]
    members = [column for column in columns if column.runs is not None]
    widths = sum((column.widths for column in columns), start=np.zeros(m))
    losses = np.rint(widths / max(len(columns), 1) * kernels.box_distances.UNITS).astype(np.int64)
    near, far, labels, codes = _tables(sets, len(rows), m)
    lows, highs = (_side_by_side([getattr(c, side) for c in ranges], m) for side in ("lows", "highs"))
    numbers = _side_by_side([column.values for column in ranges], len(rows))
    sort_keys = [losses, *lows.T, *highs.T, *labels.T, *(column.labels for column in members)]
    classes, samples, _ = _number_records(sort_keys, m)
    sizes = np.bincount(classes, weights=written.members, minlength=len(samples)).astype(np.int64)
    steps = [column for column in ranges if column.is_step]
    measured = [*sets, *(column for column in ranges if not column.is_step)]
    places, bits = _mark_boxes([*members, *steps, *measured], len(rows), samples)
    ends = np.array([column.ends for column in ranges]).reshape(-1, 2).T
    shown = kernels.box_distances.ReleasedCombinations(
        lows[samples], highs[samples], np.ascontiguousarray(ends),
        np.array([column.is_step for column in ranges], dtype=np.uint8), labels[samples], near, far, bits,
        _side_by_side([column.exact(samples) for column in members], len(samples)).astype(np.uint8),
        len(members) + len(steps), losses[samples], sizes, metric in {"euclidean", "mahalanobis", "learned"},
    )  # fmt: skip
    points = kernels.box_distances.QueryPoints(numbers, codes, places)
    return BoxDistances(points, shown, classes[written.of_record])


def _mark_boxes(columns: list[_BoxColumn], n: int, samples: Ints) -> tuple[Ints, Any]:
    """The rows of bits in which each of the intruder's records is in each column, and these bits."""
    edges = [column.edges() for column in columns]
    starts = np.cumsum([0, *(len(each) + 1 for each, _ in edges)])
    places = np.empty((n, len(columns)), dtype=np.int64)
    bits = kernels.box_distances.no_bits(int(starts[-1]), len(samples))
    for i, column in enumerate(columns):
        places[:, i] = column.places(edges[i][0]) + starts[i]
        boxes, firsts, lasts = column.mark_boxes(*edges[i], samples)
        kernels.box_distances.mark(bits, boxes, firsts + starts[i], lasts + starts[i])
    return places, bits


def _column(
    known: Table, released: Table, name: str, rows: Ints, scale: Scale, *, is_code: bool
) -> _BoxColumn:
    is_step = is_code or known.schema[name].kind is Kind.NOMINAL
    values, cover = cover_of(known, released, name, nested=is_step)
    widths = np.where(cover.missing, 1.0, cover.share_of_domain())
    runs = cover.boxes()
    if not is_step:
        placing = CoordinateScale.of(values, _finite(cover.lows, cover.highs), scale)
        values = np.where(np.isnan(values), np.nan, placing(values))
        cover = _scale_cover(cover, placing)
        if (runs.counts != 1).any() and runs.ends.shape[1] * len(np.unique(values)) <= _MOST_IN_TABLE:
            return _of_distances(values, rows, cover, widths)
    silent = cover.missing
    lows, highs = np.where(silent, -np.inf, cover.lows), np.where(silent, np.inf, cover.highs)
    if is_step and (runs.counts != 1).any():
        labels = np.unique(runs.starts, return_inverse=True)[1].reshape(-1)
        return _BoxColumn(values[rows], lows, highs, True, widths, (0.0, 0.0), labels, runs)
    return _BoxColumn(values[rows], lows, highs, is_step, widths, extent(values, lows, highs))


def _finite(*sides: Floats) -> Floats:
    both = np.concatenate(sides)
    return both[np.isfinite(both)]


def _scale_cover(cover: Cover, placing: CoordinateScale) -> Cover:
    """Put what cells stand for where the intruder's values are; open ends stay open."""
    return cover.map_values(lambda ends: np.where(np.isfinite(ends), placing(ends), ends))


def _of_distances(values: Floats, rows: Ints, cover: Cover, widths: Floats) -> _BoxColumn:
    """A column of sets of numbers: how far each of the intruder's values is from each label."""
    assert cover.sets is not None  # ranges have one run
    assert cover.codes is not None
    distinct = np.unique(values[~np.isnan(values)])
    known = values[rows]
    codes = np.where(np.isnan(known), np.nan, np.searchsorted(distinct, known))
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
    labels = np.where(cover.uninformative, n_labels, cover.codes)
    lows = np.where(cover.uninformative, -np.inf, np.searchsorted(distinct, cover.lows, side="left"))
    highs = np.where(cover.uninformative, np.inf, np.searchsorted(distinct, cover.highs, side="right") - 1)
    return _BoxColumn(codes, lows, highs, False, widths, (low, high), labels, near=near, far=far)


def _side_by_side(columns: list[Floats], n: int) -> Floats:
    matrix = np.empty((n, len(columns)))
    for place, column in enumerate(columns):
        matrix[:, place] = column
    return matrix


def _tables(columns: list[_BoxColumn], n: int, m: int) -> tuple[Floats, Floats, Ints, Ints]:
    """The distances of all sets of numbers in one table each; labels of released records; codes of mine.

    The last code of the tables is that of a missing value.
    """
    codes, labels = np.zeros((n, len(columns)), np.int64), np.zeros((m, len(columns)), np.int64)
    n_codes = max((column.near.shape[1] for column in columns if column.near is not None), default=1)
    near, far, n_labels = [np.zeros((0, n_codes))], [np.zeros((0, n_codes))], 0
    for place, column in enumerate(columns):
        assert column.labels is not None  # asked for before
        assert column.near is not None
        assert column.far is not None
        labels[:, place] = column.labels + n_labels
        last = column.near.shape[1] - 1
        codes[:, place] = np.nan_to_num(column.values, nan=last).astype(np.int64)
        for made, table in ((near, column.near), (far, column.far)):
            made.append(np.pad(table, ((0, 0), (0, n_codes - table.shape[1])), constant_values=1.0))
        n_labels += len(column.near)
    return np.concatenate(near), np.concatenate(far), labels, codes


def _number_records(parts: list[Any], n: int) -> tuple[Ints, Ints, Ints]:
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
    known = np.flatnonzero((owners >= 0) & np.isin(owners, persons))  # few where few are looked for
    pairs, counts = np.unique(owners[known] * n_classes + classes[known], return_counts=True)
    starts, ends = (np.searchsorted(pairs // n_classes, persons, side=side) for side in ("left", "right"))
    return starts, ends, pairs % n_classes, counts.astype(np.int64)
