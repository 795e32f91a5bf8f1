r"""How the error of a random sample falls with its share, and which share a release stands for.

A sample of the share :math:`f` of :math:`n` records has a mean with the standard deviation
:math:`\sigma\sqrt{(1 - f)/(f n)}`; errors of other statistics fall likewise. So shares are looked at by
:math:`z = \ln\frac{1 - f}{f}`, and an error, which is how much worse a score is than that of all records, by
its cube root, in which the scores of equal samples lie evenly around their mean (Wilson and Hilferty 1931).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import polars as pl

from sfumato.core.measure import Measure
from sfumato.core.sample_equivalent import SampleEquivalent
from sfumato.kernels.arrays import Floats

#: How sure an interval is to hold the share of a release that is a sample itself.
CONFIDENCE = 0.95

#: The rank correlation of error and share must be as near to −1 at least: else they have little to do with
#: each other.
_CLEAR_FALL = 0.6


@dataclass(frozen=True, eq=False)
class SampleCurve:
    """The scores of random samples, a row for each of the ``shares``, and the ``best``: that of all records.

    Shares are in ascending order.
    """

    measure: Measure
    shares: Floats
    scores: Floats
    best: float

    def equivalent(self, value: float) -> SampleEquivalent:
        """The share of the samples that score as a release; a worse score never has a larger one."""
        root = float(self._roots(value))
        if root <= 0:
            return SampleEquivalent(1.0, (self._end(root, self._lows), 1.0))
        beyond: Literal["", "less", "more"] = "less" if root > self._means[0] else ""
        beyond = "more" if root < self._means[-1] else beyond
        share = self._share_at(root, self._means)
        low, high = self._end(root, self._lows), self._end(root, self._highs)
        return SampleEquivalent(share, (low, high), beyond)

    @property
    def falls(self) -> bool:
        """Whether larger samples have smaller errors, clearly."""
        shares = np.repeat(self.shares, self.scores.shape[1])
        if np.ptp(self.scores) == 0:
            return False
        ranks = [pl.Series(each).rank() for each in (shares, self._roots(self.scores).ravel())]
        return bool(np.corrcoef(ranks)[0, 1] <= -_CLEAR_FALL)

    def _roots(self, scores: Floats | float) -> Floats:
        sign = 1.0 if self.measure.better == "low" else -1.0
        return np.cbrt(sign * (np.asarray(scores, dtype=np.float64) - self.best))

    @cached_property
    def _places(self) -> Floats:
        places: Floats = np.log((1 - self.shares) / self.shares)
        return places

    @cached_property
    def _means(self) -> Floats:
        from scipy.optimize import isotonic_regression

        means: Floats = isotonic_regression(self._roots(self.scores).mean(axis=1), increasing=False).x
        return means

    @cached_property
    def _reach(self) -> Floats:
        """How far from the mean single samples lie; neighbours, which vary much alike, are taken together."""
        from scipy.special import stdtrit

        roots = self._roots(self.scores)
        draws = roots.shape[1]
        variances = roots.var(axis=1, ddof=1)
        window = np.ones(3)
        near = np.convolve(np.ones(len(variances)), window, mode="same")
        pooled = np.convolve(variances, window, mode="same") / near
        reach: Floats = stdtrit(near * (draws - 1), (1 + CONFIDENCE) / 2) * np.sqrt(pooled * (1 + 1 / draws))
        return reach

    @cached_property
    def _lows(self) -> Floats:
        lows: Floats = np.minimum.accumulate(self._means - self._reach)
        return lows

    @cached_property
    def _highs(self) -> Floats:
        highs: Floats = np.maximum.accumulate((self._means + self._reach)[::-1])[::-1]
        return highs

    def _end(self, root: float, band: Floats) -> float:
        """Where an end of the band has a score; beyond the shares drawn it is none of them, or all.

        Nobody knows how errors go between two shares: the end is the farther one of a power and a line.
        """
        is_low = band is self._lows
        if root > band[0]:
            return 0.0 if is_low else float(self.shares[0])
        if root < band[-1]:
            return float(self.shares[-1]) if is_low else 1.0
        line = float(np.interp(root, band[::-1], self._places[::-1]))
        ends = self._share_at(root, band), _share(line)
        return min(ends) if is_low else max(ends)

    def _share_at(self, root: float, band: Floats) -> float:
        """The share at which a band has a root: between two shares errors go by a power of (1 − f) / f."""
        least = self._means[self._means > 0].min(initial=np.inf)
        unit = least if np.isfinite(least) else 1.0
        return _share(float(np.interp(_bend(root / unit), _bend(band[::-1] / unit), self._places[::-1])))


def _share(place: float) -> float:
    return float(1 / (1 + np.exp(place)))


def _bend(roots: Floats | float) -> Floats:
    """The logarithm, straight on below 1: errors may be none, or by chance less than that."""
    bent: Floats = np.where(np.asarray(roots) >= 1, np.log(np.maximum(roots, 1)), np.asarray(roots) - 1)
    return bent
