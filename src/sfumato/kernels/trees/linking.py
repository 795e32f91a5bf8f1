"""The tree under `kernels.linking`: points with weights in leaves, counted by distance and window.

The answer is that of the exhaustive search, to the last bit: a key (a squared Euclidean distance, or a plain
one) is summed in column order, and the bound of a box is the same sum with smaller or greater terms, whose
order rounding keeps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sfumato.kernels.arrays import Floats, Ints
from sfumato.kernels.compiling import njit
from sfumato.kernels.norms import Norm
from sfumato.kernels.trees import planting
from sfumato.kernels.trees.planting import MAX_DEPTH, by_node, push_children

LEAF = 32


class PointTree(NamedTuple):
    """Points in leaves; node ``i`` has children ``2i + 1`` and ``2i + 2``, the last level are the leaves."""

    places: Floats  # [leaf, column, slot]: slots are contiguous, so a scan is vectorised
    sizes: Ints  # [leaf] slots in use
    weights: Ints  # [leaf, slot] records at this point
    totals: Ints  # [node] records below it
    lows: Floats  # [node, column] its box
    highs: Floats
    norm: Norm
    n_counted: int  # so many columns count at all; the rest is watched


class Questions(NamedTuple):
    """What is asked of the tree: one row for each point."""

    points: Floats  # [n, counted columns]
    lows: Floats  # [n, watched columns] the point's window
    highs: Floats
    near: Floats  # [n] keys below are nearer
    far: Floats  # [n] keys from there up to this tie


def plant(points: Floats, weights: Ints, *, norm: Norm, n_counted: int, units: Floats) -> PointTree:
    """Build the tree of points, each of which stands for ``weights`` records.

    Boxes are halved where they are widest in these units.
    """
    most = np.full(points.shape[1], np.inf)
    most[norm.n_measured : n_counted] = norm.weights  # two codes, which are whole numbers, are so far apart
    order, starts = planting.plant(points, LEAF, units=units, most=most)
    points, weights = points[order], weights[order]
    if len(points):
        totals = by_node(weights, starts, np.add)
        lows, highs = by_node(points, starts, np.minimum), by_node(points, starts, np.maximum)
    else:
        totals = np.zeros(1, dtype=np.int64)
        lows = highs = np.zeros((1, points.shape[1]))
    return PointTree(
        places=planting.in_leaves(points, starts, LEAF),
        sizes=np.diff(starts),
        weights=planting.in_leaves(weights, starts, LEAF),
        totals=totals,
        lows=lows,
        highs=highs,
        norm=norm,
        n_counted=n_counted,
    )


@njit(cache=True, nogil=True, forceinline=True)
def _least_key(tree: PointTree, node: int, point: Floats) -> float:
    """Bound from below the keys of a node's points."""
    return _distance_to_node(tree, node, point, False)


@njit(cache=True, nogil=True, forceinline=True)
def _distance_to_node(tree: PointTree, node: int, point: Floats, above: bool) -> float:  # noqa: FBT001
    """Bound from below, or from above, the keys of a node's points."""
    key, norm = 0.0, tree.norm
    for column in range(tree.n_counted):
        here, low, high = point[column], tree.lows[node, column], tree.highs[node, column]
        gap = max(high - here, here - low) if above else max(low - here, here - high, 0.0)
        if column >= norm.n_measured:
            part = norm.weights[column - norm.n_measured] if gap > 0.0 else 0.0
        else:
            part = gap * gap if norm.euclidean else gap
        key = max(key, part) if norm.largest else key + part
    return key


@njit(cache=True, nogil=True, forceinline=True)
def _scan(tree: PointTree, leaf: int, point: Floats, far: float, keys: Floats) -> bool:
    """Set the keys of a leaf's points; False if all are known to be above ``far`` before the last column."""
    size, norm = tree.sizes[leaf], tree.norm
    keys[:size] = 0.0
    half = (norm.n_measured + 1) // 2
    for column in range(norm.n_measured):
        here, row = point[column], tree.places[leaf, column]
        if norm.largest:
            for slot in range(size):
                keys[slot] = max(keys[slot], abs(row[slot] - here))
        elif norm.euclidean:
            for slot in range(size):
                gap = row[slot] - here
                keys[slot] += gap * gap
        else:
            for slot in range(size):
                keys[slot] += abs(row[slot] - here)
        if column == half:
            least = np.inf
            for slot in range(size):
                least = min(least, keys[slot])
            if least > far:
                return False
    for column in range(norm.n_measured, tree.n_counted):
        here, row, weight = point[column], tree.places[leaf, column], norm.weights[column - norm.n_measured]
        for slot in range(size):
            part = weight if row[slot] != here else 0.0
            keys[slot] = max(keys[slot], part) if norm.largest else keys[slot] + part
    return True


@njit(cache=True, nogil=True, forceinline=True)
def _overlap(tree: PointTree, node: int, low: Floats, high: Floats) -> int:
    """Return 0 if no point of a node can lie in the window, 2 if every one does, else 1."""
    inside = 2
    for i in range(len(low)):
        column = tree.n_counted + i
        if tree.highs[node, column] < low[i] or tree.lows[node, column] > high[i]:
            return 0
        if tree.lows[node, column] < low[i] or tree.highs[node, column] > high[i]:
            inside = 1
    return inside


@njit(cache=True, nogil=True)
def count(
    tree: PointTree,
    questions: Questions,
    cap: int,
    everywhere: bool,  # noqa: FBT001
) -> tuple[Ints, Ints, Ints]:
    """Count the records in each point's window that are nearer, up to ``cap``, and those that tie.

    With ``everywhere``, count those outside of it, too, that tie or are nearer.
    """
    points, lows, highs, near, far = questions
    n_inner, n_watched = len(tree.sizes) - 1, lows.shape[1]
    nearer, tied, outside = np.zeros((3, len(points)), dtype=np.int64)
    nodes, bounds = np.zeros(MAX_DEPTH, dtype=np.int64), np.zeros(MAX_DEPTH)
    keys = np.empty(LEAF)
    for i in range(len(points)):
        point, low, high = points[i], lows[i], highs[i]
        nodes[0], bounds[0] = 0, 0.0
        height = 1 if tree.totals[0] > 0 else 0
        while height > 0 and nearer[i] < cap:
            height -= 1
            node, bound = nodes[height], bounds[height]
            if bound > far[i]:
                continue
            overlap = _overlap(tree, node, low, high)
            if overlap == 0 and not everywhere:
                continue
            if overlap != 1:  # wholly within the window, or wholly outside: perhaps wholly within reach
                greatest = _distance_to_node(tree, node, point, True)
                if overlap == 0 and greatest <= far[i]:
                    outside[i] += tree.totals[node]
                    continue
                if overlap != 0 and greatest < near[i]:
                    nearer[i] += tree.totals[node]
                    continue
                if overlap != 0 and bound >= near[i] and greatest <= far[i]:
                    tied[i] += tree.totals[node]
                    continue
            if node < n_inner:
                of_left = _least_key(tree, 2 * node + 1, point)
                of_right = _least_key(tree, 2 * node + 2, point)
                height = push_children(nodes, bounds, height, node, of_left, of_right)
                continue
            leaf = node - n_inner
            if not _scan(tree, leaf, point, far[i], keys):
                continue
            for slot in range(tree.sizes[leaf]):
                if keys[slot] > far[i]:
                    continue
                inside = True
                for c in range(n_watched):
                    value = tree.places[leaf, tree.n_counted + c, slot]
                    inside &= low[c] <= value <= high[c]
                if not inside:
                    outside[i] += tree.weights[leaf, slot]
                elif keys[slot] < near[i]:
                    nearer[i] += tree.weights[leaf, slot]
                else:
                    tied[i] += tree.weights[leaf, slot]
        nearer[i] = min(nearer[i], cap)
    return nearer, tied, outside


@njit(cache=True, nogil=True)
def least(tree: PointTree, points: Floats) -> Floats:
    """Return the least key of each point; quickest if neighbours come one after the other."""
    n_inner = len(tree.sizes) - 1
    found = np.full(len(points), np.inf)
    nodes, bounds = np.zeros(MAX_DEPTH, dtype=np.int64), np.zeros(MAX_DEPTH)
    keys = np.empty(LEAF)
    for i in range(len(points)):
        point, best = points[i], np.inf
        nodes[0], bounds[0] = 0, 0.0
        height = 1 if tree.totals[0] > 0 else 0
        while height > 0:
            height -= 1
            node = nodes[height]
            if bounds[height] >= best:
                continue
            if node < n_inner:
                of_left = _least_key(tree, 2 * node + 1, point)
                of_right = _least_key(tree, 2 * node + 2, point)
                height = push_children(nodes, bounds, height, node, of_left, of_right)
            elif _scan(tree, node - n_inner, point, best, keys):
                for slot in range(tree.sizes[node - n_inner]):
                    best = min(best, keys[slot])
        found[i] = best
    return found


@njit(cache=True, nogil=True)
def leaf_of_points(tree: PointTree, points: Floats) -> Ints:
    """Return a leaf near each point: who asks after whom, so that memory just read is read again."""
    found = np.zeros(len(points), dtype=np.int64)
    for i in range(len(points)):
        node = 0
        while node < len(tree.sizes) - 1:
            node = 2 * node + 1
            if _least_key(tree, node + 1, points[i]) < _least_key(tree, node, points[i]):
                node += 1
        found[i] = node
    return found
