"""Planting: records halved again and again at the median of their widest column, until few are in a leaf.

All trees here have this shape: node ``i`` has children ``2i + 1`` and ``2i + 2``, the last level are the
leaves. What they hold and how they are searched differs.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from sfumato.kernels.arrays import Floats, Ints, Values
from sfumato.kernels.compiling import by_python, njit
from sfumato.kernels.threads import CompileAllowance

MAX_DEPTH = 64  # of a tree, and so the size of a traversal's stack
_ALLOWANCE = CompileAllowance(400_000)  # records on a level, by Python


def plant(
    points: Floats,
    leaf: int,
    *,
    among: Ints | None = None,
    sides: tuple[Floats, Floats] | None = None,
    units: Floats | None = None,
    most: Floats | None = None,
) -> tuple[Ints, Ints]:
    """Halve records until no leaf has more than ``leaf``; none has less than half of it, if there are two.

    Parameters
    ----------
    points : float64[n, d]
        Where the records lie, or the middles of boxes.
    leaf : int
    among : int64[m], optional
        The records to be planted, all if not given.
    sides : (float64[n, d], float64[n, d]), optional
        Lows and highs of boxes: then a column is as wide as the boxes in it, not as their middles.
    units : float64[d], optional
        What the width of a column is multiplied by.
    most : float64[d], optional
        The most that a column's width counts.

    Returns
    -------
    order : int64[m]
        The records, leaf by leaf.
    starts : int64[leaves + 1]
        Where each leaf begins in that order, and the end.
    """
    points = np.require(points, np.float64, ["C", "W"])  # one layout, so that one compilation serves all
    n_columns = points.shape[1]
    order = np.arange(len(points)) if among is None else among.copy()
    starts = np.zeros((1 << (max(len(order) - 1, 0) // leaf).bit_length()) + 1, dtype=np.int64)
    lows, highs = (points, points) if sides is None else sides
    units = np.ones(n_columns) if units is None else units
    most = np.full(n_columns, np.inf) if most is None else most
    with by_python(sides is None and _ALLOWANCE.takes(len(order) * len(starts).bit_length())):
        _halve_all((points, lows, highs), (units, most), order, starts)
    return order, starts


def by_node(values: Values, starts: Ints, ufunc: np.ufunc) -> Values:
    """Reduce values (or rows) in the order of the leaves below each node: to their sum, least, greatest.

    There must be a record.
    """
    levels = [ufunc.reduceat(values, starts[:-1])]
    while len(levels[-1]) > 1:
        levels.append(ufunc(levels[-1][::2], levels[-1][1::2]))
    return np.concatenate(levels[::-1])


def leaf_of(starts: Ints, leaf: int) -> Ints:
    """Return the place of each record if every leaf has room for ``leaf``, in the order of the leaves."""
    sizes = np.diff(starts)
    first = np.arange(len(sizes)) * leaf - starts[:-1]
    return np.arange(starts[-1]) + np.repeat(first, sizes)


def in_leaves(values: Values, starts: Ints, leaf: int) -> Values:
    """Lay out values in the order of the leaves as [leaf, slot], rows of them as [leaf, column, slot].

    So slots lie side by side, and a scan of a leaf is vectorised. What is not filled is 0.
    """
    n_leaves = len(starts) - 1
    laid_out = np.zeros((n_leaves * leaf, *values.shape[1:]), dtype=values.dtype)
    laid_out[leaf_of(starts, leaf)] = values
    by_leaf = laid_out.reshape(n_leaves, leaf, *values.shape[1:])
    return np.ascontiguousarray(np.moveaxis(by_leaf, 1, -1))


def _halve_few(
    places: tuple[Floats, Floats, Floats], scales: tuple[Floats, Floats], order: Ints, starts: Ints
) -> None:
    """The same as `_halve_all`, the widths of a node's columns by numpy."""
    (points, lows, highs), (units, most) = places, scales
    n_leaves = len(starts) - 1
    ends = [0, len(order)]
    while len(ends) <= n_leaves:
        halves = ends[:1]
        for start, stop in pairwise(ends):
            part, middle = order[start:stop], (start + stop) // 2
            if points.shape[1]:
                spans = highs[part].max(axis=0) - lows[part].min(axis=0)
                select_lowest(points[:, np.argmax(np.minimum(spans * units, most))], part, middle - start)
            halves += [middle, stop]
        ends = halves
    starts[:] = ends


@njit(_halve_few, cache=True, nogil=True)
def _halve_all(
    places: tuple[Floats, Floats, Floats], scales: tuple[Floats, Floats], order: Ints, starts: Ints
) -> None:
    """Halve each node at the median of its widest column, from the root to the leaves."""
    (points, lows, highs), (units, most) = places, scales
    n_leaves, n_columns = len(starts) - 1, points.shape[1]
    ends = np.zeros((2 * n_leaves - 1, 2), dtype=np.int64)
    ends[0, 1] = len(order)
    for node in range(n_leaves - 1):
        start, stop = ends[node]
        part, middle = order[start:stop], (start + stop) // 2
        widest, width = -1, -1.0
        for column in range(n_columns):
            low, high = np.inf, -np.inf
            for record in part:
                low = min(low, lows[record, column])
                high = max(high, highs[record, column])
            apart = min((high - low) * units[column], most[column])
            if apart > width:
                widest, width = column, apart
        if widest >= 0:
            select_lowest(points[:, widest], part, middle - start)
        ends[2 * node + 1, 0], ends[2 * node + 1, 1] = start, middle
        ends[2 * node + 2, 0], ends[2 * node + 2, 1] = middle, stop
    for leaf in range(n_leaves):  # a slice takes seconds to compile, because its errors speak
        starts[leaf + 1] = ends[n_leaves - 1 + leaf, 1]


@njit(cache=True, nogil=True, forceinline=True)
def push_children(  # noqa: PLR0917
    nodes: Ints, bounds: Floats, height: int, node: int, of_left: float, of_right: float
) -> int:
    """Put the children of a node with their bounds on a traversal's stack, the nearer on top; its height."""
    left, right = 2 * node + 1, 2 * node + 2
    if of_left < of_right:
        left, right, of_left, of_right = right, left, of_right, of_left
    nodes[height], bounds[height] = left, of_left
    nodes[height + 1], bounds[height + 1] = right, of_right
    return height + 2


@njit(cache=True, nogil=True)
def select_lowest(values: Floats, order: Ints, middle: int) -> None:
    """Rearrange ``order`` so that its ``middle`` records of lowest value stand first (Hoare's selection)."""
    left, right = 0, len(order) - 1
    while left < right:
        pivot = values[order[(left + right) // 2]]
        i, j = left, right
        while i <= j:
            while values[order[i]] < pivot:
                i += 1
            while values[order[j]] > pivot:
                j -= 1
            if i <= j:
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if middle <= j:
            right = j
        elif middle >= i:
            left = i
        else:
            return
