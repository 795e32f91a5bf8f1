r"""Tests of membership: how much each known record looks like one of those that a release was made of.

For each record there is a number, the larger the more it looks like a member's. The release is compared with
other people of the population: all persons are dealt into two halves by lot, members and strangers alike, and
for the people of one half those of the other stand for the population. So nobody is compared with themselves,
and if the release is of neither, members and strangers have the same chances of every number.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from sfumato import kernels
from sfumato.core.run import Run
from sfumato.kernels.arrays import Bytes, Flags, Floats, Ints
from sfumato.risk._attack import AttackSides, AttackSpace

#: The tests in the order in which of equally good ones the first is taken, and what each looks at.
TESTS = {
    "distance": "The distance to the nearest released record (GAN-leaks).",
    "distance-of-several": "The mean distance to the five nearest released records.",
    "distance-ratio": "The nearest released record against the second (NNDR).",
    "density-ratio": "The nearest released record against the nearest person of the population (DOMIAS).",
    "distance-difference": "The same as a difference of distances.",
    "local-density-ratio": "The five nearest released records against the five nearest persons.",
    "kernel-density": "The density of released records round a person against that of the population.",
    "neighbour-count": "How many released records are within a radius, against persons of the population.",
    "rank-distance": "The distance to the nearest released record, by ranks instead of values.",
    "rank-density-ratio": "The density ratio by ranks instead of values.",
    "column-histograms": "How much likelier the values of each column are in the release.",
    "pair-histograms": "How much likelier the values of each pair of columns are in the release.",
    "rare-values": "Exact values that the release has and few in the population have.",
    "classifier": "What trees say that were grown to tell the release from the population (LOGAN).",
}

#: Nearest records that are looked at, and those that count as several.
_NEAREST, _SEVERAL = 10, 5

#: Records that stand for the population, for either half.
_MOST_REFERENCES = 10_000

#: Bins of a column by itself and in pairs, the pairs that are looked at, and what is added to every count.
_BINS, _BINS_OF_PAIR, _MOST_PAIRS, _PRIOR = 20, 10, 200, 0.5

#: Trees, the records that each is grown from at most and of a leaf at least, and draws from a leaf.
_TREES, _LESSONS, _LEAF, _DRAWS = 10, 5_000, 5, 10

_BY_DISTANCE = frozenset(tuple(TESTS)[:8])
_BY_RANK = frozenset({"rank-distance", "rank-density-ratio"})


@dataclass(frozen=True)
class MembershipCase:
    """Whom to look at, which half each is of, and who stands for the population for either half."""

    arena: AttackSpace
    rows: Ints
    half_of_row: Ints  # [rows] 0 or 1
    references: tuple[Ints, Ints]  # known records

    @classmethod
    def of(cls, sides: AttackSides, arena: AttackSpace, rng: np.random.Generator) -> MembershipCase:
        """Deal the persons into halves."""
        half_of_person = rng.permutation(int(sides.persons.max()) + 1) % 2
        half = half_of_person[sides.persons]
        others = [rng.permutation(np.flatnonzero(half != each))[:_MOST_REFERENCES] for each in (0, 1)]
        return cls(arena, sides.targets, half[sides.targets], (others[0], others[1]))

    def distances(self, k: int, run: Run, task: str) -> tuple[Floats, Floats]:
        """The distances to the nearest released records, and to the nearest of the population."""
        arena = self.arena
        k = min(k, len(arena.order), *map(len, self.references))
        near = arena.nearest(self.rows, k=k, run=run, task=task)[1]
        beyond = np.empty_like(near)
        for half, others in enumerate(self.references):
            points, in_half = arena.points[others], self.half_of_row == half
            boxes = arena.boxes._replace(lows=points, highs=points, extras=np.zeros(len(points)))
            population = replace(arena, boxes=boxes, order=others)
            beyond[in_half] = population.nearest(self.rows[in_half], k=k, run=run, task=task)[1]
        return near, beyond

    def by_ranks(self) -> MembershipCase:
        """The same with numbers replaced by their ranks among the known records."""
        points, boxes = self.arena.points.copy(), self.arena.boxes
        lows, highs, blind = boxes.lows.copy(), boxes.highs.copy(), boxes.blind.copy()
        for column in np.flatnonzero(~boxes.is_step):
            known = np.sort(points[~np.isnan(points[:, column]), column])
            for values in (points, lows, highs):
                values[:, column] = _rank(values[:, column], known)
            blind[column] = 1 / 3 if len(known) else 0.0  # how far two ranks are apart on average
        ranked = boxes._replace(lows=lows, highs=highs, blind=blind)
        return replace(self, arena=replace(self.arena, points=points, boxes=ranked))

    def ratio_of_counts(self, released: Floats, count_known: Callable[[Ints], Floats], bins: Ints) -> Floats:
        """The logarithm of how much likelier each record's bin is in the release than in the population."""
        found = np.empty(len(self.rows))
        in_release = np.log((released + _PRIOR) / (released + _PRIOR).sum())
        for half, others in enumerate(self.references):
            in_half, counts = self.half_of_row == half, count_known(others) + _PRIOR
            found[in_half] = (in_release - np.log(counts / counts.sum()))[bins[in_half]]
        return found


def look_for_members(case: MembershipCase, wanted: Collection[str], run: Run, task: str) -> dict[str, Floats]:
    """How much each record looks like a member's, by each of the tests that are wanted."""
    found: dict[str, Floats] = {}
    if _BY_DISTANCE & set(wanted):
        found |= _by_distance(*case.distances(_NEAREST if set(wanted) - {"distance"} else 1, run, task))
    if _BY_RANK & set(wanted):
        near, beyond = case.by_ranks().distances(1, run, task)
        found |= {"rank-distance": -near[:, 0], "rank-density-ratio": _log_ratio(beyond, near)[:, 0]}
    if "column-histograms" in wanted:
        found["column-histograms"] = _by_columns(case, _BINS)
    if "pair-histograms" in wanted:
        found["pair-histograms"] = _by_pairs(case, run.rng("pairs"))
    if "rare-values" in wanted:
        found["rare-values"] = _by_columns(case, None)
    if "classifier" in wanted:
        found["classifier"] = _by_trees(case, run.rng("trees"))
    return {name: found[name] for name in TESTS if name in wanted}


# Distances -----------------------------------------------------------------------------------------------


def _by_distance(near: Floats, beyond: Floats) -> dict[str, Floats]:
    several = min(_SEVERAL, near.shape[1])
    ratios = _log_ratio(beyond, near)
    width, radius = float(np.median(beyond)) or 1.0, float(np.median(near[:, 0]))
    second = near[:, min(1, near.shape[1] - 1)]
    counts = [1 + (each <= radius).sum(axis=1) for each in (near, beyond)]
    return {
        "distance": -near[:, 0],
        "distance-of-several": -near[:, :several].mean(axis=1),
        "distance-ratio": _log_ratio(second, near[:, 0]),
        "density-ratio": ratios[:, 0],
        "distance-difference": beyond[:, 0] - near[:, 0],
        "local-density-ratio": ratios[:, :several].mean(axis=1),
        "kernel-density": _log_kernels(near, width) - _log_kernels(beyond, width),
        "neighbour-count": np.log(counts[0] / counts[1]),
    }


def _log_ratio(above: Floats, below: Floats) -> Floats:
    """The logarithm of a ratio of distances; those of 0 are taken for half of the least."""
    both = np.concatenate((above, below))
    least = both[both > 0].min(initial=1.0) / 2
    ratio: Floats = np.log(np.maximum(above, least)) - np.log(np.maximum(below, least))
    return ratio


def _log_kernels(distances: Floats, width: float) -> Floats:
    """The logarithm of the sum of Laplace's kernels of this width."""
    from scipy.special import logsumexp

    summed: Floats = logsumexp(-distances / width, axis=1)
    return summed


def _rank(values: Floats, known: Floats) -> Floats:
    """The share of known values below, and half of those equal; what has no value or no end stays so."""
    below, up_to = (np.searchsorted(known, values, side=side) for side in ("left", "right"))
    return np.where(np.isfinite(values), (below + up_to) / 2 / max(len(known), 1), values)


# Histograms ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ColumnBins:
    """The bins of a column: of each known record, and from which to which each released cell reaches.

    What is missing is in the last bin. A cell that says nothing reaches over all others.
    """

    known: Ints
    firsts: Ints
    lasts: Ints  # before the first, where a cell holds no value that has a bin
    size: int

    @classmethod
    def of(cls, arena: AttackSpace, column: int, most: int | None) -> ColumnBins:
        """Bins of about as many known records each, at most so many; or one for each known value."""
        points, ends = arena.points[:, column], (arena.boxes.lows[:, column], arena.boxes.highs[:, column])
        there = np.sort(points[~np.isnan(points)])
        values = np.unique(there)
        is_exact = most is None or (bool(arena.boxes.is_step[column]) and len(values) <= most)
        if most is not None and len(values) > most:
            values = np.unique(there[np.arange(most) * len(there) // most])
        if is_exact:
            places = [np.searchsorted(values, points), np.searchsorted(values, ends[0])]
            places.append(np.searchsorted(values, ends[1], side="right") - 1)
        else:
            cuts = values[:-1] / 2 + values[1:] / 2
            places = [np.searchsorted(cuts, each, side="right") for each in (points, *ends)]
        known, firsts, lasts = (
            np.where(np.isnan(each), len(values), place)
            for each, place in zip((points, *ends), places, strict=True)
        )
        return cls(known, firsts, lasts, len(values) + 1)

    @property
    def widths(self) -> Ints:
        """How many bins each released cell reaches over."""
        widths: Ints = np.maximum(self.lasts - self.firsts + 1, 0)
        return widths


def _by_columns(case: MembershipCase, most: int | None) -> Floats:
    """The logarithms of the ratios of likelihoods, added up over the columns."""
    total = np.zeros(len(case.rows))
    for column in range(case.arena.points.shape[1]):
        bins = ColumnBins.of(case.arena, column, most)
        informs = ~_is_open(case.arena, column) & (bins.widths > 0)
        shares, firsts, lasts = 1 / bins.widths[informs], bins.firsts[informs], bins.lasts[informs]
        steps = np.bincount(firsts, shares, bins.size + 1) - np.bincount(lasts + 1, shares, bins.size + 1)
        released = np.maximum(np.cumsum(steps)[: bins.size], 0.0)
        total += case.ratio_of_counts(released, _counter(bins.known, bins.size), bins.known[case.rows])
    return total


def _by_pairs(case: MembershipCase, rng: np.random.Generator) -> Floats:
    """The same over pairs of columns; of very many, over some by lot."""
    columns = [ColumnBins.of(case.arena, c, _BINS_OF_PAIR) for c in range(case.arena.points.shape[1])]
    pairs = list(combinations(range(len(columns)), 2)) or [(0, 0)]
    total = np.zeros(len(case.rows))
    for place in rng.permutation(len(pairs))[:_MOST_PAIRS]:
        one, other = (columns[each] for each in pairs[place])
        informs = ~(_is_open(case.arena, pairs[place][0]) & _is_open(case.arena, pairs[place][1]))
        informs &= (one.widths > 0) & (other.widths > 0)
        known = one.known * other.size + other.known
        released = _spread_over_pairs(one, other, np.flatnonzero(informs))
        total += case.ratio_of_counts(released, _counter(known, len(released)), known[case.rows])
    return total


def _spread_over_pairs(one: ColumnBins, other: ColumnBins, cells: Ints) -> Floats:
    """How many released records there are in each pair of bins; a wide cell is spread over all it reaches."""
    shares, steps = 1 / (one.widths * other.widths)[cells], np.zeros((one.size + 1, other.size + 1))
    for row, column, sign in (
        (one.firsts, other.firsts, 1), (one.lasts + 1, other.firsts, -1),
        (one.firsts, other.lasts + 1, -1), (one.lasts + 1, other.lasts + 1, 1),
    ):  # fmt: skip
        places = row[cells] * steps.shape[1] + column[cells]
        steps += sign * np.bincount(places, shares, steps.size).reshape(steps.shape)
    counts = np.cumsum(np.cumsum(steps, axis=0), axis=1)[:-1, :-1]
    return np.maximum(counts.reshape(-1), 0.0)


def _counter(known: Ints, size: int) -> Callable[[Ints], Floats]:
    return lambda rows: np.bincount(known[rows], minlength=size).astype(np.float64)


def _is_open(arena: AttackSpace, column: int) -> Flags:
    is_open: Flags = np.isneginf(arena.boxes.lows[:, column]) & np.isposinf(arena.boxes.highs[:, column])
    return is_open


# Trees ---------------------------------------------------------------------------------------------------


def _by_trees(case: MembershipCase, rng: np.random.Generator) -> Floats:
    """The share of released records in the leaves of trees that tell them from the population."""
    arena, found = case.arena, np.zeros(len(case.rows))
    codes, n = _codes_for_trees(arena), len(arena.points)
    is_released = (np.arange(n + len(arena.order)) >= n).astype(np.int32)
    lots = (np.arange(_DRAWS) + 0.5) / _DRAWS
    for half, others in enumerate(case.references):
        in_half = np.flatnonzero(case.half_of_row == half)
        asked = np.ascontiguousarray(codes[:, np.repeat(case.rows[in_half], _DRAWS)])
        size = min(len(others), len(arena.order), _LESSONS)
        for _ in range(_TREES):
            lessons = np.concatenate((rng.choice(others, size), n + rng.choice(len(arena.order), size)))
            tree = kernels.cart.grow(codes, arena.boxes.is_step, lessons, classes=is_released, leaf=_LEAF)
            drawn = is_released[kernels.cart.donors(tree, asked, np.tile(lots, len(in_half)))]
            found[in_half] += drawn.reshape(-1, _DRAWS).mean(axis=1) / _TREES
    return found


def _codes_for_trees(arena: AttackSpace) -> Bytes:
    """Known records, and below them released ones, in bins of each column; 0 is what says nothing."""
    most, codes = kernels.cart.CODES - 1, []
    for column in range(arena.points.shape[1]):
        bins = ColumnBins.of(arena, column, most - 1)
        middles = np.where(bins.widths > 0, (bins.firsts + bins.lasts) // 2 + 1, 0)
        middles[_is_open(arena, column)] = 0
        known = np.where(bins.known == bins.size - 1, 0, bins.known + 1)
        middles = np.where(middles == bins.size, 0, middles)
        codes.append(np.concatenate((known, middles)))
    return np.array(codes, dtype=np.uint8)
