r"""Populations that a sample allows: whatever their classes are, if these could have given what is seen.

A class of :math:`j` people of the population has :math:`f` in a sample of the share :math:`\pi` with the
binomial chance :math:`b_j(f)`. So a population with :math:`u_j` classes of :math:`j` gives
:math:`\sum_j u_j b_j(f)` classes of :math:`f` on average, and of all numbers :math:`u_j \ge 0` those are
possible whose sum of squares is above that of the best by no more than the square of the normal quantile
(O'Leary and Rust). How many people may be in small classes is the most that any of these has: no model of the
classes is taken. That such ends hold with the stated confidence is not proved for all such problems;
``benchmarks/bench_far_end.py`` measures it.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sfumato.kernels.arrays import Floats
from sfumato.risk._model_fitting import SizeFrequencies, log_rising

#: So many sizes are looked at beyond twice the least, or this much more than it, whichever is less; the
#: people of larger classes are counted together.
_BEYOND, _MAX_SIZES = 14, 26
#: Classes of the population are of each size up to here, then of sizes that grow by such a factor.
_EACH, _FACTOR = 40, 1.05
#: What is told exactly (the people who were drawn, those asked for) may be off by this share.
_EXACT = 1e-3
#: Halvings of what lies between the number of people that is fitted and the one that cannot be.
_HALVINGS = 14


@dataclass(frozen=True, eq=False)
class PossiblePopulations:
    """What is seen, as equations of the numbers of classes of the population, each in its own deviations."""

    sizes: Floats  # [rows] of classes in the sample
    counts: Floats  # [rows] how many of them there are
    people: Floats  # [columns] sizes of classes in the population
    chances: Floats  # [rows, columns] that a class of so many has so many in the sample
    equations: Floats  # [rows + 2, columns + 1] the last column is people of still larger classes
    seen: Floats  # [rows + 2]
    fitted: Floats  # [columns + 1] the numbers of classes that fit best
    misfit: float  # their sum of squares

    @classmethod
    def of(cls, sample: SizeFrequencies, drawn: float = 0.0) -> PossiblePopulations:
        """Of a sample by the numbers of its classes of each size.

        No class is smaller than the smallest: those may have been suppressed, and count among the ``drawn``.
        """
        from scipy.special import betainc  # slow to import

        sizes, counts, share = sample.sizes, sample.counts, sample.n / sample.people
        least = int(sizes.min())
        last = least + min(least, _MAX_SIZES) + _BEYOND
        end = max((last + 6 * math.sqrt(last) + 10) / share, 2.0 * _EACH)
        steps = math.ceil(math.log(end / _EACH) / math.log(_FACTOR))
        grid = np.append(np.arange(1.0, _EACH), np.geomspace(_EACH, end, steps))
        people = np.unique(np.round(grid)).astype(np.float64)
        each, small = np.arange(least, last + 1.0), sizes <= last
        places = sizes[small].astype(np.int64) - least
        counted = np.bincount(places, counts[small], minlength=len(each)).astype(np.float64)
        chances = _binomial(each, people, share)
        # Of each class, the people who are drawn if more than the last are.
        others = np.maximum(people - last, 0.0)
        larger = np.where(others > 0, share * people * betainc(last, np.maximum(others, 1.0), share), 0.0)
        beyond, all_drawn = float(sizes[~small] @ counts[~small]), max(drawn, sample.n)
        seen = np.append(counted, (beyond, all_drawn))
        near = (sizes > last) & (sizes <= last + 4 * math.sqrt(last))  # they might have been counted by size
        variance = beyond + last**2 / 4 * (1 + float(counts[near].sum()))
        spread = np.append(np.maximum(counted, 1.0), (variance, (_EXACT * all_drawn) ** 2))
        rows = np.vstack((chances, larger, share * people))
        equations = np.column_stack((rows, np.append(np.zeros(len(each)), (1, 1))))
        deviations = np.sqrt(spread)
        equations, seen = equations / deviations[:, None], seen / deviations
        fitted, misfit = _least_squares(equations, seen)
        return cls(each, counted, people, chances, equations, seen, fitted, misfit)

    def fewest(self, size: int, up_to: int, tail: float) -> int | None:
        """How few people may be in the population's classes of those who are in classes of ``size`` here.

        That is the least number that more than a share ``tail`` of them may have, or fewer; None if it is
        more than ``up_to``. Said wrongly with a chance of ``tail``.
        """
        number = tail * size * float(self.counts[self.sizes == size].sum())

        def allowed(people: int) -> bool:
            row = self._row(size, people)
            return float(row @ self.fitted) >= number or self._fits(row, tail)(number)

        few = range(size, up_to + 1)
        if not few or number <= 0 or not allowed(up_to):
            return None
        return few[bisect_left(few, True, key=allowed)]  # of no, …, no, yes, …, yes

    def unique(self, tail: float, *, match: bool = False) -> tuple[float, float]:
        """Between which numbers those lie who are unique in the sample and in the population.

        With ``match``, how many of those who are unique in the sample are found by a match within their class
        of the population, of which one is right.
        """
        ones = float(self.counts[self.sizes == 1].sum())
        row = self._row(1, int(self.people[-1]) if match else 1)
        row[:-1] /= self.people
        fits, likely = self._fits(row, tail), min(float(row @ self.fitted), ones)
        return _last(fits, likely, 0.0), _last(fits, likely, ones)

    def _row(self, size: int, at_most: int) -> Floats:
        """How many people of classes of ``size`` in the sample each class of at most so many people adds."""
        chances = (self.sizes == size) @ self.chances
        return np.append(np.where(self.people <= at_most, size * chances, 0.0), 0.0)

    def _fits(self, row: Floats, tail: float) -> Callable[[float], bool]:
        """Whether a number of those who are asked for fits what is seen nearly as well as the best."""
        from scipy.special import ndtri  # slow to import

        most = self.misfit + float(ndtri(tail)) ** 2

        def fits(number: float) -> bool:
            deviation = _EXACT * max(number, 1.0)
            equations = np.vstack((self.equations, row / deviation))
            return _least_squares(equations, np.append(self.seen, number / deviation))[1] <= most

        return fits


def _last(fits: Callable[[float], bool], likely: float, end: float) -> float:
    """The number farthest towards an end that fits; beyond it by a rounding."""
    if fits(end):
        return end
    for _ in range(_HALVINGS):
        middle = (likely + end) / 2
        likely, end = (middle, end) if fits(middle) else (likely, middle)
    return end


def _binomial(drawn: Floats, people: Floats, share: float) -> Floats:
    """The chance of so many drawn (rows) of so many people (columns)."""
    f, j = drawn[:, None], people
    rest = np.maximum(j - f, 0.0)
    logs = log_rising(rest + 1, f) - log_rising(1.0, f) + f * math.log(share)
    with np.errstate(invalid="ignore"):  # all are drawn, and none is left
        logs += np.where(rest > 0, rest * np.log1p(-share), 0.0)
    chances: Floats = np.where(j >= f, np.exp(logs), 0.0)
    return chances


def _least_squares(equations: Floats, seen: Floats) -> tuple[Floats, float]:
    """The numbers, none below 0, that come nearest to what is seen, and the sum of squares that is left."""
    from scipy.optimize import nnls  # slow to import

    scale = np.linalg.norm(equations, axis=0)
    scale[scale == 0] = 1.0
    found, left = nnls(equations / scale, seen, maxiter=30 * len(scale))
    return found / scale, float(left) ** 2
