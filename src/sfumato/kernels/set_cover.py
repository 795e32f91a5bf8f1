"""Set cover: which classes cover which points, if they show ranges in some columns and sets in others.

The classes stand in the order of their loss. For the rivals of a point only its own classes are looked at
first: what covers it at a greater loss than its own does not matter, and one that covers it at a lower ends
the search.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numba import njit

from sfumato.kernels.arrays import Bytes, Floats, Ints
from sfumato.kernels.pace import Tick

#: Points between two calls of `tick`, so that each takes about a tenth of a second.
_PAIRS = 20_000_000


class Points(NamedTuple):
    """What is looked for: numbers (NaN: missing) and codes."""

    numbers: Floats  # [n, ranges]
    codes: Ints  # [n, sets]


class Own(NamedTuple):
    """The classes that are a point's own."""

    starts: Ints  # [n] they are classes[starts:ends], ascending
    ends: Ints  # [n]
    classes: Ints
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
    points: Points, belongings: Own, shown: Shown, tick: Tick | None = None
) -> tuple[Ints, Ints, Ints, Ints]:
    """The loss at which each point is covered by one of its own, and who covers it at that loss or a lower.

    Returns
    -------
    losses : int64[n]
        The least loss of an own class that covers the point, −1 where none does.
    own, tied, nearer : int64[n]
        Records of its own and all records that cover it at that loss, and whether any does at a lower.
    """
    found = np.zeros((4, len(points.numbers)), dtype=np.int64)
    for first, stop in _spans(points, shown, tick):
        _count(points, belongings, shown, (first, stop), found)
    return found[0], found[1], found[2], found[3]


def pairs(points: Points, shown: Shown, *, most: int, tick: Tick | None = None) -> tuple[Ints, Ints] | None:
    """List who is covered by which class, ascending; None if there are more than ``most`` such pairs."""
    n = len(points.numbers)
    counts, nothing = np.zeros(n, dtype=np.int64), np.zeros(0, dtype=np.int64)
    total = 0
    for first, stop in _spans(points, shown, tick):
        _list(points, shown, (first, stop), counts, nothing)
        total += int(counts[first:stop].sum())
        if total > most:
            return None
    classes = np.empty(total, dtype=np.int64)
    places = np.cumsum(counts) - counts
    for first, stop in _spans(points, shown, tick):
        _list(points, shown, (first, stop), places, classes)
    return np.repeat(np.arange(n), counts), classes


def _spans(points: Points, shown: Shown, tick: Tick | None) -> Iterator[tuple[int, int]]:
    """Runs of points that take a moment each."""
    n, stride = len(points.numbers), max(1, _PAIRS // max(len(shown.losses), 1))
    for first in range(0, n, stride):
        if tick is not None:
            tick(first, n)
        yield first, min(first + stride, n)


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
def _count(points: Points, belongings: Own, shown: Shown, span: tuple[int, int], found: Ints) -> None:
    losses, own, tied, nearer = found[0], found[1], found[2], found[3]
    for i in range(span[0], span[1]):
        losses[i] = -1
        for place in range(belongings.starts[i], belongings.ends[i]):  # ascending loss: the first is it
            g = belongings.classes[place]
            if losses[i] >= 0 and shown.losses[g] > losses[i]:
                break
            if _covers(points, i, shown, g):
                losses[i] = shown.losses[g]
                own[i] += belongings.counts[place]
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


@njit(cache=True, nogil=True)
def _list(points: Points, shown: Shown, span: tuple[int, int], places: Ints, classes: Ints) -> None:
    """Write the classes of each point from its place on; with nowhere to write, only count them."""
    writing = len(classes) > 0
    for i in range(span[0], span[1]):
        place = places[i]
        for g in range(len(shown.losses)):
            if _covers(points, i, shown, g):
                if writing:
                    classes[place] = g
                place += 1
        if not writing:
            places[i] = place
