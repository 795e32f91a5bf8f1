"""Which box covers a point, of many that may overlap: the first one in an order of preference.

The boxes lie in leaves of a few under a binary tree of bounding boxes. A part of the tree is passed over if
its bounding box does not hold the point, or if its most preferred box is no better than the one found.

A side of a box that is no range (a set of values with gaps) is the range from its least to its greatest
value together with a list of its members, which is looked at last.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bits = NDArray[np.uint8]

LEAF = 8
MAX_DEPTH = 128  # entries of a traversal's stack: two for each level of the tree
CHUNK = 65_536  # points looked at between two ticks


class Tree(NamedTuple):
    """Boxes in the order of the leaves; node ``i`` has children ``2i + 1`` and ``2i + 2``."""

    lows: Floats  # [box, column]
    highs: Floats
    lists: Ints  # [box, column] the list of members of a side with gaps, −1 for a range
    boxes: Ints  # [box] its number, which is its place in the order of preference
    node_lows: Floats  # [node, column]
    node_highs: Floats
    firsts: Ints  # [node] the most preferred box below it
    ends: Ints  # [node, 2] its boxes: from, to


def first_covering(
    points: Floats,
    lows: Floats,
    highs: Floats,
    *,
    lists: Ints,
    members: Bits,
    tick: Callable[[int, int], None] | None = None,
) -> Ints:
    """Find for each point the first box that covers it, −1 where none does.

    Parameters
    ----------
    points : float64[n, columns]
        No NaN; a value that nothing but an unbounded side may cover is +∞.
    lows, highs : float64[boxes, columns]
        The sides of the boxes, both ends included, the preferred boxes first.
    lists : int64[boxes, columns]
        The row of ``members`` that belongs to a side with gaps; −1 where the side is a range.
    members : uint8[lists, values]
        1 for the values (whole numbers from 0 on) that are in each list.
    tick : callable, optional
        Called with how many points were looked at, and of how many.

    Returns
    -------
    int64[n]
    """
    found = np.full(len(points), -1, dtype=np.int64)
    if not len(lows):
        return found
    tree = _plant(lows, highs, lists)
    for start in range(0, len(points), CHUNK):
        stop = min(start + CHUNK, len(points))
        _look(tree, members, points[start:stop], found[start:stop])
        if tick is not None:
            tick(stop, len(points))
    return found


def _plant(lows: Floats, highs: Floats, lists: Ints) -> Tree:
    """Build the tree of all boxes."""
    n, n_columns = lows.shape
    n_leaves = 1 << (max(n - 1, 0) // LEAF).bit_length()
    n_nodes = 2 * n_leaves - 1
    node_lows = np.full((n_nodes, n_columns), np.inf)
    node_highs = np.full((n_nodes, n_columns), -np.inf)
    firsts, ends = np.full(n_nodes, n, dtype=np.int64), np.zeros((n_nodes, 2), dtype=np.int64)
    order = np.arange(n, dtype=np.int64)
    # Where the middles lie decides how the boxes are divided, nothing else: any finite number will do.
    middles = np.nan_to_num(np.clip(lows, -1e300, 1e300) / 2 + np.clip(highs, -1e300, 1e300) / 2)
    _grow(lows, highs, np.ascontiguousarray(middles), order, node_lows, node_highs, firsts, ends)
    return Tree(
        np.ascontiguousarray(lows[order]),
        np.ascontiguousarray(highs[order]),
        np.ascontiguousarray(lists[order]),
        order,
        node_lows,
        node_highs,
        firsts,
        ends,
    )


@njit(cache=True, nogil=True)
def _grow(  # noqa: PLR0917
    lows: Floats,
    highs: Floats,
    middles: Floats,
    order: Ints,
    node_lows: Floats,
    node_highs: Floats,
    firsts: Ints,
    ends: Ints,
) -> None:
    """Halve each node at the median of the middles, in the column where they are spread most for their range.

    The spread is relative to that of all boxes, so that a column of large numbers does not rule.
    """
    n_nodes, n_columns = node_lows.shape
    first_leaf = n_nodes // 2
    spread = np.zeros(n_columns)
    ends[0, 1] = len(order)
    for node in range(n_nodes):
        start, stop = ends[node]
        for i in order[start:stop]:
            firsts[node] = min(firsts[node], i)
            for c in range(n_columns):
                node_lows[node, c] = min(node_lows[node, c], lows[i, c])
                node_highs[node, c] = max(node_highs[node, c], highs[i, c])
        if node >= first_leaf:
            continue
        half, column, widest = (start + stop) // 2, 0, -1.0
        for c in range(n_columns):
            least, most = np.inf, -np.inf
            for i in order[start:stop]:
                least, most = min(least, middles[i, c]), max(most, middles[i, c])
            if node == 0:
                spread[c] = most - least
            share = (most - least) / spread[c] if spread[c] > 0.0 else 0.0
            if share > widest:
                column, widest = c, share
        if widest > 0.0:
            part = order[start:stop]
            order[start:stop] = part[np.argsort(middles[part, column], kind="mergesort")]
        ends[2 * node + 1, 0], ends[2 * node + 1, 1] = start, half
        ends[2 * node + 2, 0], ends[2 * node + 2, 1] = half, stop


@njit(cache=True, nogil=True)
def _look(tree: Tree, members: Bits, points: Floats, found: Ints) -> None:
    """Go down the tree for each point, the side with the more preferred box first."""
    n_columns = points.shape[1]
    first_leaf = len(tree.ends) // 2
    stack = np.empty(MAX_DEPTH, dtype=np.int64)
    for p in range(len(points)):
        best = len(tree.boxes)
        stack[0], depth = 0, 1
        while depth:
            depth -= 1
            node = stack[depth]
            holds = tree.firsts[node] < best
            for c in range(n_columns):
                if not holds:
                    break
                holds = tree.node_lows[node, c] <= points[p, c] <= tree.node_highs[node, c]
            if not holds:
                continue
            if node < first_leaf:
                near, far = 2 * node + 1, 2 * node + 2
                if tree.firsts[far] < tree.firsts[near]:
                    near, far = far, near
                stack[depth], stack[depth + 1] = far, near
                depth += 2
                continue
            for i in range(tree.ends[node, 0], tree.ends[node, 1]):
                covers = tree.boxes[i] < best
                for c in range(n_columns):
                    if not covers:
                        break
                    covers = tree.lows[i, c] <= points[p, c] <= tree.highs[i, c]
                    if covers and tree.lists[i, c] >= 0:
                        covers = members[tree.lists[i, c], np.int64(points[p, c])] == 1
                if covers:
                    best = tree.boxes[i]
        if best < len(tree.boxes):
            found[p] = best
