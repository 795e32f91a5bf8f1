"""The tree under `linking`: points with weights in leaves, counted by distance and window.

The answer is that of the exhaustive search, to the last bit: a key (a squared Euclidean distance, or a plain
one) is summed in column order, and the bound of a box is the same sum with smaller or greater terms, whose
order rounding keeps.

Numba's cache of a kernel does not see changes in another file: compiled code that calls these stands here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sfumato.kernels.halving import lowest_first

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LEAF = 32
MAX_DEPTH = 64  # of the tree, and so the size of a traversal's stack


class Tree(NamedTuple):
    """Points in leaves; node ``i`` has children ``2i + 1`` and ``2i + 2``, the last level are the leaves."""

    places: Floats  # [leaf, column, slot]: slots are contiguous, so a scan is vectorised
    sizes: Ints  # [leaf] slots in use
    weights: Ints  # [leaf, slot] records at this point
    totals: Ints  # [node] records below it
    lows: Floats  # [node, column] its box
    highs: Floats
    n_measured: int  # so many columns count by their difference
    n_counted: int  # so many count at all: those beyond `n_measured` by being unequal; the rest is watched
    euclidean: bool


class Questions(NamedTuple):
    """What is asked of the tree: one row for each point."""

    points: Floats  # [n, counted columns]
    lows: Floats  # [n, watched columns] the point's window
    highs: Floats
    near: Floats  # [n] keys below are nearer
    far: Floats  # [n] keys from there up to this tie


def plant(
    points: Floats, weights: Ints, *, n_measured: int, n_counted: int, euclidean: bool, by_window: bool
) -> Tree:
    """Build the tree of points, each of which stands for ``weights`` records."""
    n_leaves = 1 << (max(len(points) - 1, 0) // LEAF).bit_length()
    n_nodes, n_columns = 2 * n_leaves - 1, points.shape[1]
    tree = Tree(
        places=np.zeros((n_leaves, n_columns, LEAF)),
        sizes=np.zeros(n_leaves, dtype=np.int64),
        weights=np.zeros((n_leaves, LEAF), dtype=np.int64),
        totals=np.zeros(n_nodes, dtype=np.int64),
        lows=np.full((n_nodes, n_columns), np.inf),
        highs=np.full((n_nodes, n_columns), -np.inf),
        n_measured=n_measured,
        n_counted=n_counted,
        euclidean=euclidean,
    )
    if len(points):
        # Boxes are halved where they are widest: in units of distance, or of the ranges of what is watched.
        units = np.zeros(n_columns)
        if by_window or n_counted == 0:
            spans = np.ptp(points[:, n_counted:], axis=0)
            units[n_counted:] = 1.0 / np.where(spans > 0, spans, 1.0)
        else:
            units[:n_counted] = 1.0
        _grow(tree, points, weights, units)
    return tree


@njit(cache=True, nogil=True)
def _grow(tree: Tree, points: Floats, weights: Ints, units: Floats) -> None:
    """Halve each node at the median of its widest column, fill the leaves, then sum up their nodes."""
    n_leaves, n_columns = len(tree.sizes), points.shape[1]
    order = np.arange(len(points))
    starts, counts = np.zeros(len(tree.totals), dtype=np.int64), np.zeros(len(tree.totals), dtype=np.int64)
    counts[0] = len(points)
    for node in range(n_leaves - 1):
        start, count = starts[node], counts[node]
        left = count // 2
        if left > 0:
            _halve(tree, points, order[start : start + count], left, units)
        starts[2 * node + 1], counts[2 * node + 1] = start, left
        starts[2 * node + 2], counts[2 * node + 2] = start + left, count - left
    for leaf in range(n_leaves):
        node = n_leaves - 1 + leaf
        tree.sizes[leaf] = counts[node]
        for slot in range(counts[node]):
            point = order[starts[node] + slot]
            tree.weights[leaf, slot] = weights[point]
            tree.totals[node] += weights[point]
            for column in range(n_columns):
                value = points[point, column]
                tree.places[leaf, column, slot] = value
                tree.lows[node, column] = min(tree.lows[node, column], value)
                tree.highs[node, column] = max(tree.highs[node, column], value)
    for node in range(n_leaves - 2, -1, -1):
        left, right = 2 * node + 1, 2 * node + 2
        tree.totals[node] = tree.totals[left] + tree.totals[right]
        for column in range(n_columns):
            tree.lows[node, column] = min(tree.lows[left, column], tree.lows[right, column])
            tree.highs[node, column] = max(tree.highs[left, column], tree.highs[right, column])


@njit(cache=True, nogil=True)
def _halve(tree: Tree, points: Floats, order: Ints, middle: int, units: Floats) -> None:
    """Put the ``middle`` points lowest in the widest column first, in place."""
    widest, width = 0, -1.0
    for column in range(points.shape[1]):
        low = high = points[order[0], column]
        for point in order:
            low = min(low, points[point, column])
            high = max(high, points[point, column])
        apart = (high - low) * units[column]
        if tree.n_measured <= column < tree.n_counted:  # two codes are one unit apart, whatever they are
            apart = units[column] if high > low else 0.0
        if apart > width:
            widest, width = column, apart
    lowest_first(points[:, widest], order, middle)


@njit(cache=True, nogil=True)
def _least_key(tree: Tree, node: int, point: Floats) -> float:
    """Bound from below the keys of a node's points."""
    key = 0.0
    for column in range(tree.n_measured):
        here = point[column]
        gap = max(tree.lows[node, column] - here, here - tree.highs[node, column], 0.0)
        key += gap * gap if tree.euclidean else gap
    for column in range(tree.n_measured, tree.n_counted):
        here = point[column]
        if here < tree.lows[node, column] or here > tree.highs[node, column]:
            key += 1.0
    return key


@njit(cache=True, nogil=True)
def _greatest_key(tree: Tree, node: int, point: Floats) -> float:
    """Bound from above the keys of a node's points."""
    key = 0.0
    for column in range(tree.n_measured):
        here = point[column]
        gap = max(tree.highs[node, column] - here, here - tree.lows[node, column])
        key += gap * gap if tree.euclidean else gap
    for column in range(tree.n_measured, tree.n_counted):
        if tree.lows[node, column] != point[column] or tree.highs[node, column] != point[column]:
            key += 1.0
    return key


@njit(cache=True, nogil=True)
def _scan(tree: Tree, leaf: int, point: Floats, far: float, keys: Floats) -> bool:
    """Set the keys of a leaf's points; False if all are known to be above ``far`` before the last column."""
    size = tree.sizes[leaf]
    keys[:size] = 0.0
    half = (tree.n_measured + 1) // 2
    for column in range(tree.n_measured):
        here, row = point[column], tree.places[leaf, column]
        if tree.euclidean:
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
    for column in range(tree.n_measured, tree.n_counted):
        here, row = point[column], tree.places[leaf, column]
        for slot in range(size):
            keys[slot] += 1.0 if row[slot] != here else 0.0
    return True


@njit(cache=True, nogil=True)
def _overlap(tree: Tree, node: int, low: Floats, high: Floats) -> int:
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
def count(tree: Tree, questions: Questions, cap: int) -> tuple[Ints, Ints]:
    """Count the records in each point's window that are nearer, up to ``cap``, and those that tie."""
    points, lows, highs, near, far = questions
    n_inner, n_watched = len(tree.sizes) - 1, lows.shape[1]
    nearer, tied = np.zeros(len(points), dtype=np.int64), np.zeros(len(points), dtype=np.int64)
    nodes, bounds = np.zeros(MAX_DEPTH, dtype=np.int64), np.zeros(MAX_DEPTH)
    keys = np.empty(LEAF)
    for i in range(len(points)):
        point, low, high = points[i], lows[i], highs[i]
        nodes[0], bounds[0] = 0, _least_key(tree, 0, point)
        height = 1 if tree.totals[0] > 0 else 0
        while height > 0 and nearer[i] < cap:
            height -= 1
            node, bound = nodes[height], bounds[height]
            if bound > far[i]:
                continue
            overlap = _overlap(tree, node, low, high)
            if overlap == 0:
                continue
            if overlap == 2:  # noqa: PLR2004  — wholly within the window: perhaps wholly within reach
                greatest = _greatest_key(tree, node, point)
                if greatest < near[i]:
                    nearer[i] += tree.totals[node]
                    continue
                if bound >= near[i] and greatest <= far[i]:
                    tied[i] += tree.totals[node]
                    continue
            if node < n_inner:
                left, right = 2 * node + 1, 2 * node + 2
                of_left, of_right = _least_key(tree, left, point), _least_key(tree, right, point)
                if of_left < of_right:
                    left, right, of_left, of_right = right, left, of_right, of_left
                nodes[height], bounds[height] = left, of_left
                nodes[height + 1], bounds[height + 1] = right, of_right  # on top: the nearer goes first
                height += 2
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
                if inside and keys[slot] < near[i]:
                    nearer[i] += tree.weights[leaf, slot]
                elif inside:
                    tied[i] += tree.weights[leaf, slot]
        nearer[i] = min(nearer[i], cap)
    return nearer, tied


@njit(cache=True, nogil=True)
def least(tree: Tree, points: Floats) -> Floats:
    """Return the least key of each point."""
    n_inner = len(tree.sizes) - 1
    found = np.full(len(points), np.inf)
    nodes, bounds = np.zeros(MAX_DEPTH, dtype=np.int64), np.zeros(MAX_DEPTH)
    keys = np.empty(LEAF)
    for i in range(len(points)):
        point, best = points[i], np.inf
        nodes[0], bounds[0] = 0, _least_key(tree, 0, point)
        height = 1 if tree.totals[0] > 0 else 0
        while height > 0:
            height -= 1
            node = nodes[height]
            if bounds[height] >= best:
                continue
            if node < n_inner:
                left, right = 2 * node + 1, 2 * node + 2
                of_left, of_right = _least_key(tree, left, point), _least_key(tree, right, point)
                if of_left < of_right:
                    left, right, of_left, of_right = right, left, of_right, of_left
                nodes[height], bounds[height] = left, of_left
                nodes[height + 1], bounds[height + 1] = right, of_right
                height += 2
            elif _scan(tree, node - n_inner, point, best, keys):
                for slot in range(tree.sizes[node - n_inner]):
                    best = min(best, keys[slot])
        found[i] = best
    return found


@njit(cache=True, nogil=True)
def homes(tree: Tree, points: Floats) -> Ints:
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
