"""How many points lie in each box: classes of generalised values against a population of exact ones."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sfumato.kernels.arrays import Floats, Ints
from sfumato.kernels.compiling import njit
from sfumato.kernels.trees.planting import MAX_DEPTH, by_node, plant

LEAF = 32


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
    if points.size == 0:
        return np.full(len(lows), int(amounts.sum()), dtype=np.int64)
    order, starts = plant(points, LEAF)
    points, amounts = points[order], amounts[order]
    boxes = by_node(points, starts, np.minimum), by_node(points, starts, np.maximum)
    tree = Tree(points, amounts, starts, *boxes, by_node(amounts, starts, np.add))
    counts = np.zeros(len(lows), dtype=np.int64)
    _count(tree, lows, highs, counts)
    return counts


class Tree(NamedTuple):
    """Bounding boxes; node ``i`` has children ``2i + 1`` and ``2i + 2``, the last level are the leaves."""

    points: Floats  # in the order of the leaves
    amounts: Ints
    starts: Ints  # [leaf] its first point, and the end
    lows: Floats  # [node, column]
    highs: Floats
    totals: Ints  # [node] the sum of its amounts


@njit(cache=True, nogil=True)
def _count(tree: Tree, lows: Floats, highs: Floats, counts: Ints) -> None:
    """Go down the tree for each box."""
    first_leaf, d = len(tree.starts) - 2, lows.shape[1]
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
            elif node < first_leaf:
                stack[waiting], stack[waiting + 1] = 2 * node + 1, 2 * node + 2
                waiting += 2
            else:
                for i in range(tree.starts[node - first_leaf], tree.starts[node - first_leaf + 1]):
                    hit = True
                    for j in range(d):
                        hit &= lows[box, j] <= tree.points[i, j] <= highs[box, j]
                    if hit:
                        counts[box] += tree.amounts[i]
