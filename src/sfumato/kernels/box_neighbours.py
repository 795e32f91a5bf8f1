"""The nearest boxes of a few points: known records, and released ones, exact or generalised."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from sfumato.kernels.arrays import Flags, Floats, Ints, Values
from sfumato.kernels.compiling import njit
from sfumato.kernels.threads import Tick, share_out
from sfumato.kernels.trees.planting import plant

LEAF = 128  # boxes that are looked at together: what is known of all of them spares most

#: Pairs of a point and a box that are listed at a time.
_PAIRS = 4_000_000


class ReleasedBoxes(NamedTuple):
    """Released records, each a range in every column.

    Both ends are NaN where a value is missing and that is a value of its own; a cell that says nothing is
    open at both ends, and as far from every point as ``blind`` says for the column.
    """

    lows: Floats  # [m, d]
    highs: Floats  # [m, d]
    is_step: Flags  # [d] values are equal or not
    blind: Floats  # [d]
    extras: Floats  # [m] what is added to each box's distance, to decide between equals


def nearest(points: Floats, boxes: ReleasedBoxes, *, k: int, tick: Tick | None = None) -> tuple[Ints, Floats]:
    """Return the ``k`` nearest boxes of each point by the sum of the distances in each column.

    Parameters
    ----------
    points : float64[n, d]
        NaN is missing: one unit from any value, none from another missing one.
    boxes : Boxes
        Of boxes that are equally near the first are taken.
    k : int
    tick : callable, optional
        Called as ``tick(done, total)`` a few times each second; what it raises ends the run.

    Returns
    -------
    int64[n, k]
        Places of the boxes, the nearest first; −1 where there are fewer.
    float64[n, k]
        Their distances, infinite where there is none.

    Notes
    -----
    Exact. Boxes lie in leaves of a tree, and leaves that are farther than what was found are not looked into.
    **Cost:** a look at each leaf for each point, and at few boxes; at all of them where columns are many.
    """
    points = np.ascontiguousarray(points, dtype=np.float64)
    places = np.full((len(points), k), -1, dtype=np.int64)
    distances = np.full((len(points), k), np.inf)
    held = _build_leaves(boxes)

    def work(part: Ints) -> None:
        if len(part):
            places[part], distances[part] = _nearest(points[part], held, k)

    share_out(np.arange(len(points)), work, tick)
    return places, distances


def within(
    points: Floats, boxes: ReleasedBoxes, radii: Floats, *, tick: Tick | None = None
) -> Iterator[tuple[Ints, Ints]]:
    """List the pairs of a point and a box no farther from it than its radius, some millions at a time.

    **Cost:** as `nearest`, twice, and a look at each box within reach.
    """
    points = np.ascontiguousarray(points, dtype=np.float64)
    held, counts, nothing = (
        _build_leaves(boxes),
        np.zeros(len(points), dtype=np.int64),
        np.empty(0, dtype=np.int64),
    )

    def work(part: Ints) -> None:
        if len(part):
            counts[part] = _within(points[part], held, radii[part], nothing)

    share_out(np.arange(len(points)), work, tick)
    ends, start = np.cumsum(counts), 0
    while start < len(points):
        before = ends[start] - counts[start]
        stop = max(start + 1, int(np.searchsorted(ends, before + _PAIRS, side="right")))
        found = np.empty(ends[stop - 1] - before, dtype=np.int64)
        _within(points[start:stop], held, radii[start:stop], found)
        yield np.repeat(np.arange(start, stop), counts[start:stop]), found
        start = stop


class BoxSearch(NamedTuple):
    """Points, the boxes they look for, how far they look, and whose box each is."""

    points: Floats  # [n, d]
    boxes: ReleasedBoxes
    radii: Floats  # [n]
    owners: Ints  # [m]


def count_common(first: BoxSearch, second: BoxSearch, *, tick: Tick | None = None) -> Ints:
    """Count the owners of boxes within the radius of each point in two searches, and in both.

    Returns
    -------
    int64[n, 3]
        Owners within reach in the first, in the second, in both.

    Notes
    -----
    Exact. **Cost:** as `nearest`, and a look at each box within reach; nothing is kept but counts.
    """
    sides = [
        (
            np.ascontiguousarray(each.points, dtype=np.float64),
            _build_leaves(each.boxes),
            each.radii,
            each.owners,
        )
        for each in (first, second)
    ]
    counts = np.zeros((len(first.points), 3), dtype=np.int64)
    size = 1 + max(int(each.owners.max(initial=-1)) for each in (first, second))

    def work(part: Ints) -> None:
        if len(part):
            one, two = (
                (points[part], leaves, radii[part], owners) for points, leaves, radii, owners in sides
            )
            counts[part] = _count_common(*one, *two, size)

    share_out(np.arange(len(counts)), work, tick)
    return counts


class _Leaves(NamedTuple):
    """Boxes that lie together, leaf by leaf, and in what all of a leaf lie."""

    boxes: ReleasedBoxes
    ranks: Ints  # [m] the place of each box as it was given
    starts: Ints  # [leaves + 1]
    lows: Floats  # [leaves, d] of the cells that say something
    highs: Floats
    has_open: Flags  # [leaves, d]
    has_hole: Flags
    extras: Floats  # [leaves] the least


def _build_leaves(boxes: ReleasedBoxes) -> _Leaves:
    """Lay together boxes whose middles are near, and say in what all of a leaf lie."""
    with np.errstate(invalid="ignore"):
        middles = boxes.lows / 2 + boxes.highs / 2
    middles = np.where(np.isfinite(middles), middles, -1.0)  # what says nothing, together
    ranks, starts = plant(middles, LEAF, most=np.where(boxes.is_step, 1.0, np.inf))
    starts = starts if len(ranks) else starts[:1]  # no box, no leaf
    lows, highs = np.ascontiguousarray(boxes.lows[ranks]), np.ascontiguousarray(boxes.highs[ranks])
    held = ReleasedBoxes(lows, highs, boxes.is_step, boxes.blind, boxes.extras[ranks])
    is_open, is_hole = np.isneginf(lows) & np.isposinf(highs), np.isnan(lows)
    silent = is_open | is_hole

    def least(values: Values, how: np.ufunc) -> Values:
        return how.reduceat(values, starts[:-1], axis=0)

    return _Leaves(
        held, ranks, starts,
        least(np.where(silent, np.inf, lows), np.minimum),
        least(np.where(silent, -np.inf, highs), np.maximum),
        least(is_open, np.logical_or), least(is_hole, np.logical_or), least(held.extras, np.minimum),
    )  # fmt: skip


@njit(cache=True, nogil=True)
def _nearest(points: Floats, leaves: _Leaves, k: int) -> tuple[Ints, Floats]:
    n, n_leaves = len(points), len(leaves.extras)
    boxes, n_columns = leaves.boxes, points.shape[1]
    places, distances = np.full((n, k), -1, dtype=np.int64), np.full((n, k), np.inf)
    bounds = np.empty(n_leaves)
    for i in range(n):
        for leaf in range(n_leaves):
            bounds[leaf] = _distance_to_leaf(points[i], leaves, leaf)
        for leaf in np.argsort(bounds):
            if bounds[leaf] > distances[i, k - 1]:
                break
            for j in range(leaves.starts[leaf], leaves.starts[leaf + 1]):
                total, limit = boxes.extras[j], distances[i, k - 1]
                for c in range(n_columns):
                    if total > limit:
                        break
                    total += _gap(
                        points[i, c], boxes.lows[j, c], boxes.highs[j, c], boxes.is_step[c], boxes.blind[c]
                    )
                rank = leaves.ranks[j]
                if total > limit or (total == limit and places[i, k - 1] >= 0 and rank > places[i, k - 1]):
                    continue
                place = k - 1
                while place > 0 and (
                    distances[i, place - 1] > total
                    or (distances[i, place - 1] == total and places[i, place - 1] > rank)
                ):
                    distances[i, place], places[i, place] = distances[i, place - 1], places[i, place - 1]
                    place -= 1
                distances[i, place], places[i, place] = total, rank
    return places, distances


@njit(cache=True, nogil=True)
def _within(points: Floats, leaves: _Leaves, radii: Floats, found: Ints) -> Ints:
    """Count the boxes within reach of each point, and write them down if there is room."""
    counts, boxes, slot = np.zeros(len(points), dtype=np.int64), leaves.boxes, 0
    for i in range(len(points)):
        for leaf in range(len(leaves.extras)):
            if _distance_to_leaf(points[i], leaves, leaf) > radii[i]:
                continue
            for j in range(leaves.starts[leaf], leaves.starts[leaf + 1]):
                total = boxes.extras[j]
                for c in range(points.shape[1]):
                    if total > radii[i]:
                        break
                    total += _gap(
                        points[i, c], boxes.lows[j, c], boxes.highs[j, c], boxes.is_step[c], boxes.blind[c]
                    )
                if total <= radii[i]:
                    counts[i] += 1
                    if len(found):
                        found[slot] = leaves.ranks[j]
                        slot += 1
    return counts


@njit(cache=True, nogil=True)
def _count_common(  # noqa: PLR0917  — two searches
    points: Floats, leaves: _Leaves, radii: Floats, owners: Ints,
    others: Floats, other_leaves: _Leaves, other_radii: Floats, other_owners: Ints, size: int,
) -> Ints:  # fmt: skip
    counts = np.zeros((len(points), 3), dtype=np.int64)
    marks = np.full((2, size), -1, dtype=np.int64)
    for i in range(len(points)):
        counts[i, 0], _ = _mark(points[i], leaves, radii[i], owners, marks, i)
        counts[i, 1], counts[i, 2] = _mark(
            others[i], other_leaves, other_radii[i], other_owners, marks[::-1], i
        )
    return counts


@njit(cache=True, nogil=True)
def _mark(  # noqa: PLR0917
    point: Floats, leaves: _Leaves, radius: float, owners: Ints, marks: Ints, sign: int
) -> tuple[int, int]:
    """Mark the owners of boxes within reach of a point, and count them, and those marked in the other row."""
    count, both, boxes = 0, 0, leaves.boxes
    for leaf in range(len(leaves.extras)):
        if _distance_to_leaf(point, leaves, leaf) > radius:
            continue
        for j in range(leaves.starts[leaf], leaves.starts[leaf + 1]):
            total = boxes.extras[j]
            for c in range(len(point)):
                if total > radius:
                    break
                total += _gap(point[c], boxes.lows[j, c], boxes.highs[j, c], boxes.is_step[c], boxes.blind[c])
            owner = owners[leaves.ranks[j]]
            if total <= radius and marks[0, owner] != sign:
                marks[0, owner] = sign
                count, both = count + 1, both + (marks[1, owner] == sign)
    return count, both


@njit(cache=True, nogil=True)
def _distance_to_leaf(point: Floats, leaves: _Leaves, leaf: int) -> float:
    """No box of a leaf is nearer: summed in the same order, so that rounding does not matter."""
    total = float(leaves.extras[leaf])
    for c in range(len(point)):
        low, high = leaves.lows[leaf, c], leaves.highs[leaf, c]
        gap = np.inf
        if low <= high:
            gap = 1.0 if np.isnan(point[c]) else _gap(point[c], low, high, leaves.boxes.is_step[c], 0.0)
        if leaves.has_open[leaf, c]:
            gap = min(gap, leaves.boxes.blind[c])
        if leaves.has_hole[leaf, c]:
            gap = min(gap, 0.0 if np.isnan(point[c]) else 1.0)
        total += gap
    return total


@njit(cache=True, nogil=True)
def _gap(value: float, low: float, high: float, is_step: bool, blind: float) -> float:  # noqa: FBT001
    """How far a value is from what a cell stands for."""
    if low == -np.inf and high == np.inf:
        return blind
    if value < low:
        return 1.0 if is_step else low - value
    if value > high:
        return 1.0 if is_step else value - high
    if low <= value:
        return 0.0
    return 0.0 if np.isnan(value) and np.isnan(low) else 1.0
