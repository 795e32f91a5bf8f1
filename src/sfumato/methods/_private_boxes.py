"""Boxes of the declared ranges that hold about as many records, found by halving with noisy counts.

A record is in one box, so another one in its place changes two of them and no more, however many records
there are: groups of this sort are called stable (Iftikhar, Wang and Lin 2019).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sfumato.kernels.arrays import Floats, Ints
from sfumato.methods import _opendp

#: In how many steps the place of a record in its box counts, to either side.
_STEPS = 1 << 20


@dataclass(frozen=True)
class Boxes:
    """From ``lows`` to ``highs`` [box, column], places of a grid that belong to it.

    ``counts`` are how many records each box shows, which is noisy and adds up to all; ``of`` in which box
    each record is.
    """

    lows: Ints
    highs: Ints
    counts: Ints
    of: Ints

    @property
    def shown(self) -> Ints:
        """The box in which each record is shown: its own, but for those of boxes that show fewer."""
        n, order = len(self.of), np.argsort(self.of, kind="stable")
        sizes = np.bincount(self.of, minlength=len(self.counts))
        within = np.arange(n) - (np.cumsum(sizes) - sizes)[self.of[order]]
        fits = within < self.counts[self.of[order]]
        left = self.counts - np.minimum(sizes, self.counts)
        boxes = self.of.copy()
        boxes[order[~fits]] = np.repeat(np.arange(len(left)), left)
        return boxes

    def means(self, column: int, places: Ints, *, records: int, epsilon: float) -> Ints:
        """The noisy mean place of a column in each box: offsets from its middle, in halves of its width."""
        low, high = self.lows[:, column], self.highs[:, column]
        middle, half = (low + high) / 2, np.maximum((high - low) / 2, np.finfo(float).tiny)
        offsets: Floats = np.clip((places - middle[self.of]) / half[self.of], -1, 1)
        steps = np.rint(offsets * _STEPS).astype(np.int64)
        sums = np.zeros(len(low), dtype=np.int64)
        np.add.at(sums, self.of, steps)
        noisy = _opendp.laplace(sums, sensitivity=2 * _STEPS * records, epsilon=epsilon)
        found: Floats = middle + half * np.clip(noisy / (_STEPS * np.maximum(self.counts, 1)), -1, 1)
        return np.rint(found).astype(np.int64)


def levels_of(n: int, k: int) -> int:
    """How often so many records may be halved."""
    return max(0, int(math.log2(n / k))) if n >= k else 0


def halved(places: Ints, sizes: Ints, *, k: int, records: int, epsilon: float) -> Boxes:
    """Halve the whole range, its widest side first, as long as both halves show at least ``k`` records.

    How many records there are is known, as neighbours have as many; one in the place of another changes two
    counts of each level by one.
    """
    n, levels = len(places), levels_of(len(places), k)
    lows, highs = np.zeros((1, len(sizes)), dtype=np.int64), np.array([sizes], dtype=np.int64)
    counts, of, open_ = np.array([n]), np.zeros(n, dtype=np.int64), np.array([True])
    for _ in range(levels):
        axis = ((highs - lows) / np.maximum(sizes, 1)).argmax(axis=1)
        rows = np.arange(len(lows))
        middles = (lows[rows, axis] + highs[rows, axis]) // 2
        upper = (places[np.arange(n), axis[of]] > middles[of]).astype(np.int64)
        exact = np.bincount(2 * of + upper, minlength=2 * len(lows))
        noisy = _opendp.laplace(exact, sensitivity=2 * records, epsilon=epsilon / levels).reshape(-1, 2)
        above = (counts + noisy[:, 1] - noisy[:, 0]) // 2  # both halves make up the whole
        parted = open_ & (np.minimum(above, counts - above) >= k) & (highs[rows, axis] > lows[rows, axis])
        new = len(lows) + np.cumsum(parted) - 1  # where the upper half of each stands from now on
        tops, bottoms = highs[parted].copy(), lows[parted].copy()
        side = np.arange(int(parted.sum()))
        bottoms[side, axis[parted]] = middles[parted] + 1
        highs[parted, axis[parted]] = middles[parted]
        of = np.where(parted[of] & (upper == 1), new[of], of)
        lows, highs = np.vstack([lows, bottoms]), np.vstack([highs, tops])
        counts = np.concatenate([np.where(parted, counts - above, counts), above[parted]])
        open_ = np.concatenate([parted, np.ones(len(side), dtype=np.bool_)])
    return Boxes(lows, highs, counts, of)
