"""How many points lie in each box: classes of generalised values against a population of exact ones."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LEAF = 32
MAX_DEPTH = 64


def count_inside(points: Floats, amounts: Ints, lows: Floats, highs: Floats) -> Ints:
    r"""Sum the amounts of the points in each box, its sides included.

    Parameters
    ----------
    points : float64[n, d]
        Without NaN.
    amounts : int64[n]
        How often each point occurs.
    lows, highs : float64[m, d]
        The sides of each box; −∞ and ∞ leave it open.

    Returns
    -------
    int64[m]

    Notes
    -----
    Exact. A tree of bounding boxes: one that lies inside is counted as a whole, one outside is not opened.
    **Cost:** :math:`O(n \log^2 n)` to plant it; a box then costs what its surface cuts.
    """
    n, d = points.shape
    if n == 0 or d == 0:
        return np.full(len(lows), int(amounts.sum()), dtype=np.int64)
    n_leaves = 1 << ((n - 1) // LEAF).bit_length()
    n_nodes = 2 * n_leaves - 1
    order = np.arange(n)
    tree = Tree(
        bounds=np.empty((n_nodes, 2), dtype=np.int64),
        lows=np.empty((n_nodes, d)),
        highs=np.empty((n_nodes, d)),
        totals=np.zeros(n_nodes, dtype=np.int64),
    )
    _plant(tree, points, amounts, order)
    counts = np.zeros(len(lows), dtype=np.int64)
    _count(tree, (points[order], amounts[order]), lows, highs, counts)
    return counts


class Tree(NamedTuple):
    """Bounding boxes; node ``i`` has children ``2i + 1`` and ``2i + 2``, the last level are the leaves."""

    bounds: Ints  # [node, 2] its points in tree order
    lows: Floats  # [node, column]
    highs: Floats
    totals: Ints  # [node] the sum of its amounts


@njit(cache=True, nogil=True)
def _plant(tree: Tree, points: Floats, amounts: Ints, order: Ints) -> None:
    """Halve the points at the median of their widest column, again and again."""
    n_nodes, d = len(tree.totals), points.shape[1]
    n_leaves = (n_nodes + 1) // 2
    tree.bounds[0, 0], tree.bounds[0, 1] = 0, len(order)
    for node in range(n_nodes):
        start, end = tree.bounds[node]
        widest, column = -1.0, 0
        for j in range(d):
            low, high = np.inf, -np.inf
            for i in range(start, end):
                value = points[order[i], j]
                low, high = min(low, value), max(high, value)
            tree.lows[node, j], tree.highs[node, j] = low, high
            if end > start and high - low > widest:
                widest, column = high - low, j
        for i in range(start, end):
            tree.totals[node] += amounts[order[i]]
        if node < n_leaves - 1:
            part = order[start:end].copy()
            order[start:end] = part[np.argsort(points[part, column])]
            middle = (start + end) // 2
            tree.bounds[2 * node + 1, 0], tree.bounds[2 * node + 1, 1] = start, middle
            tree.bounds[2 * node + 2, 0], tree.bounds[2 * node + 2, 1] = middle, end


@njit(cache=True, nogil=True)
def _count(tree: Tree, placed: tuple[Floats, Ints], lows: Floats, highs: Floats, counts: Ints) -> None:
    """Go down the tree for each box."""
    points, amounts = placed
    n_nodes, d = len(tree.totals), points.shape[1]
    stack = np.empty(MAX_DEPTH, dtype=np.int64)
    for box in range(len(lows)):
        stack[0], waiting = 0, 1
        while waiting:
            waiting -= 1
            node = stack[waiting]
            apart, inside = tree.totals[node] == 0, True
            for j in range(d):
                low, high = tree.lows[node, j], tree.highs[node, j]
                apart |= high < lows[box, j] or low > highs[box, j]
                inside &= low >= lows[box, j] and high <= highs[box, j]
            if apart:
                continue
            if inside:
                counts[box] += tree.totals[node]
            elif 2 * node + 1 < n_nodes:
                stack[waiting], stack[waiting + 1] = 2 * node + 1, 2 * node + 2
                waiting += 2
            else:
                for i in range(tree.bounds[node, 0], tree.bounds[node, 1]):
                    hit = True
                    for j in range(d):
                        hit &= lows[box, j] <= points[i, j] <= highs[box, j]
                    if hit:
                        counts[box] += amounts[i]
