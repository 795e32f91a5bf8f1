"""Is a box of whole numbers covered by other boxes? Exact, by taking away what they cover in turn.

The boxes lie in leaves of a few under a binary tree of bounding boxes. To see whether a box is covered, look
for one that holds it whole; else take the one that covers most of it, cut what is left into at most two boxes
per column, and ask again for each. A part that no box touches settles the question, so that what is *not*
covered is soon found; what is covered may take long in many columns, and the work is capped. Why it is right
is proved in ``docs/proofs/box-subtraction.md``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.arrays import Codes, Ints
from sfumato.kernels.compiling import njit
from sfumato.kernels.threads import Tick
from sfumato.kernels.trees.planting import MAX_DEPTH, by_node, plant

LEAF = 8
MAX_PARTS = 4096  # parts of one box that wait to be looked at
MAX_TOUCHING = 128  # boxes looked through for the one that covers most
CHUNK = 4096  # boxes asked for between two ticks

COVERED, OPEN, UNDECIDED = 0, 1, 2

SEVERAL = -1  # the owner of a box that covers anybody's


class OwnedBoxTree(NamedTuple):
    """Boxes in the order of the leaves; node ``i`` has children ``2i + 1`` and ``2i + 2``."""

    lows: Codes  # [box, column]
    highs: Codes
    owners: Ints  # [box]
    node_lows: Codes  # [node, column]
    node_highs: Codes
    starts: Ints  # [leaf] its first box, and the end


def fits(
    lows: Codes, highs: Codes, owners: Ints, asked: Ints, *, effort: int, tick: Tick | None = None
) -> NDArray[np.int8]:
    """Say of each box asked for whether boxes of other owners cover it together.

    Parameters
    ----------
    lows, highs : int32[boxes, columns]
        Lowest and highest whole numbers that a box holds in each column, both included.
    owners : int64[boxes]
        Whose each is; a box of `SEVERAL` counts for all, its own box included.
    asked : int64[a]
        The boxes that are asked for.
    effort : int
        Comparisons of boxes spent on each at most.
    tick : callable, optional
        Called with how many were looked at, and of how many.

    Returns
    -------
    int8[a]
        `COVERED`, `OPEN` (a combination of numbers is in this box and in no other), or `UNDECIDED`.
    """
    states = np.full(len(asked), OPEN, dtype=np.int8)
    if not len(asked):
        return states
    tree = _plant(lows, highs, owners)
    for start in range(0, len(asked), CHUNK):
        now = asked[start : start + CHUNK]
        _ask(tree, lows[now], highs[now], owners[now], effort, states[start : start + CHUNK])
        if tick is not None:
            tick(min(start + CHUNK, len(asked)), len(asked))
    return states


def _plant(lows: Codes, highs: Codes, owners: Ints) -> OwnedBoxTree:
    """Build the tree of all boxes."""
    sides = lows.astype(np.float64), highs.astype(np.float64)
    units = np.ones(lows.shape[1])
    units[:1] = 2.0**40  # groups that share nothing are told apart before anything else
    order, starts = plant(sides[0] + sides[1], LEAF, sides=sides, units=units)
    lows, highs = lows[order], highs[order]
    boxes = by_node(lows, starts, np.minimum), by_node(highs, starts, np.maximum)
    return OwnedBoxTree(lows, highs, owners[order], *boxes, starts)


@njit(cache=True, nogil=True)
def _ask(  # noqa: PLR0917
    tree: OwnedBoxTree, lows: Codes, highs: Codes, owners: Ints, effort: int, states: NDArray[np.int8]
) -> None:
    """Look at each box: cut it up until every part lies in another box, or one touches none."""
    n_columns = lows.shape[1]
    part_lows = np.empty((MAX_PARTS + 2 * n_columns, n_columns), dtype=np.int32)
    part_highs = np.empty_like(part_lows)
    low, high = np.empty(n_columns, dtype=np.int32), np.empty(n_columns, dtype=np.int32)
    for a in range(len(lows)):
        part_lows[0], part_highs[0] = lows[a], highs[a]
        waiting, work = 1, 0
        states[a] = COVERED
        while waiting:
            waiting -= 1
            low[:], high[:] = part_lows[waiting], part_highs[waiting]
            found, spent = _find(tree, low, high, owners[a], True)
            work += spent
            if found >= 0:
                continue
            found, spent = _find(tree, low, high, owners[a], False)
            work += spent
            if found < 0:
                states[a] = OPEN
                break
            for c in range(n_columns):  # what sticks out of the box found, below and above
                if low[c] < tree.lows[found, c]:
                    part_lows[waiting], part_highs[waiting] = low, high
                    part_highs[waiting, c] = tree.lows[found, c] - 1
                    low[c] = tree.lows[found, c]
                    waiting += 1
                if high[c] > tree.highs[found, c]:
                    part_lows[waiting], part_highs[waiting] = low, high
                    part_lows[waiting, c] = tree.highs[found, c] + 1
                    high[c] = tree.highs[found, c]
                    waiting += 1
            if work > effort or waiting > MAX_PARTS:
                states[a] = UNDECIDED
                break


@njit(cache=True, nogil=True)
def _find(tree: OwnedBoxTree, low: Codes, high: Codes, owner: int, whole: bool) -> tuple[int, int]:  # noqa: FBT001
    """Find a box of another owner that holds a part ``whole``, or the one touching it that covers most.

    Also says how many nodes and boxes were looked at.
    """
    n_columns = len(low)
    first_leaf = len(tree.starts) - 2
    stack = np.empty(MAX_DEPTH, dtype=np.int64)
    stack[0] = 0
    depth, spent, touching = 1, 0, 0
    best, most = -1, 0.0
    while depth:
        depth -= 1
        node = stack[depth]
        spent += 1
        possible = True
        for c in range(n_columns):
            if whole:
                possible = tree.node_lows[node, c] <= low[c] and high[c] <= tree.node_highs[node, c]
            else:
                possible = tree.node_lows[node, c] <= high[c] and low[c] <= tree.node_highs[node, c]
            if not possible:
                break
        if not possible:
            continue
        if node < first_leaf:
            stack[depth], stack[depth + 1] = 2 * node + 1, 2 * node + 2
            depth += 2
            continue
        for i in range(tree.starts[node - first_leaf], tree.starts[node - first_leaf + 1]):
            spent += 1
            if tree.owners[i] == owner and owner != SEVERAL:
                continue
            holds, touches, share = True, True, 1.0
            for c in range(n_columns):
                common = np.int64(min(high[c], tree.highs[i, c])) - max(low[c], tree.lows[i, c]) + 1
                span = np.int64(high[c]) - low[c] + 1
                holds = holds and common == span
                touches = common > 0
                if not touches or (whole and not holds):
                    break
                share *= common / span
            if whole:
                if holds and touches:
                    return i, spent
                continue
            touching += touches
            if touches and (best < 0 or share > most):
                best, most = i, share
        if touching >= MAX_TOUCHING:
            break
    return best, spent
