"""Set cover: rivals of each point among classes that show ranges in some columns and sets of codes in others.

The classes stand in the order of their loss. Of each point only its own classes are looked at first: what
covers it at a greater loss than its own does not matter, and one that covers it at a lower ends the search.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]

#: Points between two calls of `tick`, so that each takes about a tenth of a second.
_PAIRS = 20_000_000


class Points(NamedTuple):
    """What is looked for: numbers (NaN: missing) and codes; and the classes that are a point's own."""

    numbers: Floats  # [n, ranges]
    codes: Ints  # [n, sets]
    starts: Ints  # [n] its own classes are own[starts:ends], ascending
    ends: Ints  # [n]
    own: Ints
    counts: Ints  # how many records of each of them are its own


class Shown(NamedTuple):
    """What classes show, in the order of their loss."""

    lows: Floats  # [g, ranges]
    highs: Floats
    labels: Ints  # [g, sets] rows of `members`
    members: Bytes  # [labels of all columns, codes] whether a label has a code
    losses: Ints  # [g] ascending
    sizes: Ints  # [g] records


def rivals(
    points: Points, shown: Shown, tick: Callable[[int, int], None] | None = None
) -> tuple[Ints, Ints, Ints, Ints]:
    """The loss at which each point is covered by one of its own, and who covers it at that loss or a lower.

    Returns
    -------
    losses : int64[n]
        The least loss of an own class that covers the point, −1 where none does.
    own, tied, nearer : int64[n]
        Records of its own and all records that cover it at that loss, and whether any does at a lower.
    """
    n = len(points.numbers)
    found = np.zeros((4, n), dtype=np.int64)
    stride = max(1, _PAIRS // max(len(shown.losses), 1))
    for first in range(0, n, stride):
        if tick is not None:
            tick(first, n)
        _count(points, shown, first, min(first + stride, n), found)
    return found[0], found[1], found[2], found[3]


@njit(cache=True, nogil=True)
def _covers(points: Points, i: int, shown: Shown, g: int) -> bool:
    for c in range(points.codes.shape[1]):
        if shown.members[shown.labels[g, c], points.codes[i, c]] == 0:
            return False
    for c in range(points.numbers.shape[1]):
        low, high, value = shown.lows[g, c], shown.highs[g, c], points.numbers[i, c]
        if np.isnan(value):
            if not (low == -np.inf and high == np.inf):
                return False
        elif not low <= value <= high:
            return False
    return True


@njit(cache=True, nogil=True)
def _count(points: Points, shown: Shown, first: int, stop: int, found: Ints) -> None:
    losses, own, tied, nearer = found[0], found[1], found[2], found[3]
    for i in range(first, stop):
        losses[i] = -1
        for place in range(points.starts[i], points.ends[i]):  # ascending loss: the first that covers is it
            g = points.own[place]
            if losses[i] >= 0 and shown.losses[g] > losses[i]:
                break
            if _covers(points, i, shown, g):
                losses[i] = shown.losses[g]
                own[i] += points.counts[place]
        if losses[i] < 0:
            continue
        for g in range(len(shown.losses)):
            if shown.losses[g] > losses[i]:
                break
            if _covers(points, i, shown, g):
                if shown.losses[g] < losses[i]:
                    nearer[i] = 1
                    break
                tied[i] += shown.sizes[g]
