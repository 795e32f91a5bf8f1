"""Which box covers a point, of many that may overlap: the first one in an order of preference.

The boxes lie in leaves of a few under a binary tree of bounding boxes. A part of the tree is passed over if
its bounding box does not hold the point, or if its most preferred box is no better than the one found.

A side of a box that is no range (a set of values with gaps) is the range from its least to its greatest
value together with a list of its members, which is looked at last.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sfumato.kernels.arrays import Bytes, Floats, Ints
from sfumato.kernels.compiling import njit
from sfumato.kernels.threads import Tick
from sfumato.kernels.trees.planting import MAX_DEPTH, by_node, plant

LEAF = 8
CHUNK = 65_536  # points looked at between two ticks


class BoxTree(NamedTuple):
    """Boxes in the order of the leaves; node ``i`` has children ``2i + 1`` and ``2i + 2``."""

    lows: Floats  # [box, column]
    highs: Floats
    lists: Ints  # [box, column] the list of members of a side with gaps, −1 for a range
    boxes: Ints  # [box] its number, which is its place in the order of preference
    node_lows: Floats  # [node, column]
    node_highs: Floats
    firsts: Ints  # [node] the most preferred box below it
    starts: Ints  # [leaf] its first box, and the end


def first_covering(
    points: Floats, lows: Floats, highs: Floats, *, lists: Ints, members: Bytes, tick: Tick | None = None
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


def _plant(lows: Floats, highs: Floats, lists: Ints) -> BoxTree:
    """Build the tree of all boxes."""
    # Where the middles lie decides how the boxes are divided, nothing else: any finite number will do. They
    # are divided where they spread most for their range, so that a column of large numbers does not rule.
    middles = np.nan_to_num(np.clip(lows, -1e300, 1e300) / 2 + np.clip(highs, -1e300, 1e300) / 2)
    spread = np.ptp(middles, axis=0)
    order, starts = plant(middles, LEAF, units=1.0 / np.where(spread > 0.0, spread, 1.0))
    lows, highs = np.ascontiguousarray(lows[order]), np.ascontiguousarray(highs[order])
    boxes = by_node(lows, starts, np.minimum), by_node(highs, starts, np.maximum)
    firsts = by_node(order, starts, np.minimum)
    return BoxTree(lows, highs, np.ascontiguousarray(lists[order]), order, *boxes, firsts, starts)


@njit(cache=True, nogil=True)
def _look(tree: BoxTree, members: Bytes, points: Floats, found: Ints) -> None:
    """Go down the tree for each point, the side with the more preferred box first."""
    n_columns = points.shape[1]
    first_leaf = len(tree.starts) - 2
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
            for i in range(tree.starts[node - first_leaf], tree.starts[node - first_leaf + 1]):
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
