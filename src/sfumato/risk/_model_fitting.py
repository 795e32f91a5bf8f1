"""Fitting a model of a population's classes to a sample: counts of counts, maximum likelihood, its doubt.

Likelihoods are maximised in log space: a grid brackets the maximum, which is then refined.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sfumato.kernels.arrays import Floats, Ints

#: Where Stirling's series is more accurate than the difference of two large logarithms.
_STIRLING = 1e3

#: Points of the grid along each of one or two parameters; the step of differences, in units of log.
_GRID, _STEP = {1: 61, 2: 21}, 1e-3

#: From so many standard deviations on, a number is not what a model expects.
_MAX_DEVIATIONS = 2.0

#: How near to the end of its range (in units of log) a parameter is at the edge.
_EDGE = 0.5


@dataclass(frozen=True)
class SizeFrequencies:
    """Counts of counts: ``counts`` classes are of ``sizes`` people each."""

    sizes: Floats  # distinct, rising
    counts: Floats
    people: float  # in the population
    cells: float  # combinations that the values of the keys could make

    @classmethod
    def of(cls, persons: Ints, people: float, cells: float) -> SizeFrequencies:
        """Count how many classes there are of each number of persons."""
        sizes, counts = np.unique(persons, return_counts=True)
        n = float(persons.sum())
        return cls(sizes.astype(float), counts.astype(float), max(people, n), max(cells, float(len(persons))))

    @property
    def n(self) -> float:
        """The number of people."""
        return float(self.sizes @ self.counts)

    @property
    def classes(self) -> float:
        """The number of classes."""
        return float(self.counts.sum())

    @property
    def uniques(self) -> float:
        """The number of classes of one person."""
        return float(self.counts[self.sizes == 1].sum())


@dataclass(frozen=True)
class UniquenessEstimate:
    """The chance that a sample unique is a population unique, with the variance of their number."""

    chance: float
    variance: float  # of the difference of the number of such people and what is expected of it
    parameters: dict[str, float]
    expected_uniques: float | None = None  # in the sample, if the model expects some number

    def misfits(self, sample: SizeFrequencies) -> bool:
        """Whether the model expects another number of sample uniques than there are, beyond chance.

        Given the people and the classes, more uniques are fewer pairs, and more people in larger classes.
        """
        if self.expected_uniques is None:
            return False
        larger = float(sample.counts @ np.maximum(sample.sizes - 2, 0) ** 2)
        chance = math.sqrt(min(self.expected_uniques, max(larger, 1.0)))
        return abs(self.expected_uniques - sample.uniques) > _MAX_DEVIATIONS * chance


def log_rising(start: Floats | float, times: Floats | float) -> Floats:
    r"""The logarithm of :math:`\Gamma(a + r) / \Gamma(a)`, also where both are large and nearly equal."""
    from scipy.special import gammaln  # slow to import

    a, r = np.broadcast_arrays(np.asarray(start, dtype=np.float64), np.asarray(times, dtype=np.float64))
    large = np.maximum(a, _STIRLING)
    series = (large + r - 0.5) * np.log1p(r / large) + r * np.log(large) - r
    series += (1 / (large + r) - 1 / large) / 12
    few = np.minimum(a, _STIRLING)
    logs: Floats = np.where(a >= _STIRLING, series, gammaln(few + r) - gammaln(few))
    return logs


class PopulationModel(ABC):
    """A way to tell the chance. What it cannot tell is said as a sentence."""

    @abstractmethod
    def estimate(self, sample: SizeFrequencies) -> UniquenessEstimate | str:
        """The chance with its doubt, or why there is none."""


class LikelihoodModel(PopulationModel):
    """Fitted by maximum likelihood; the variance is by its curvature, and by the chance of who is unique."""

    names: ClassVar[tuple[str, ...]]

    @abstractmethod
    def ranges(self, sample: SizeFrequencies) -> tuple[tuple[float, float], ...]:
        """Between which logarithms (or log odds) each parameter is looked for."""

    @abstractmethod
    def likelihood(self, sample: SizeFrequencies, point: Floats) -> float:
        """The logarithm of the likelihood, up to what no parameter changes."""

    @abstractmethod
    def log_chance(self, sample: SizeFrequencies, point: Floats) -> float:
        """The logarithm of the chance."""

    @abstractmethod
    def expected_uniques(self, sample: SizeFrequencies, point: Floats) -> float:
        """How many sample uniques the model expects."""

    def parameters(self, point: Floats) -> dict[str, float]:
        """The parameters as the literature has them."""
        return dict(zip(self.names, np.exp(point).tolist(), strict=True))

    def estimate(self, sample: SizeFrequencies) -> UniquenessEstimate | str:
        """Find the maximum, and how sharp it is."""
        if sample.classes >= sample.n:
            return "every person of the sample is unique in the keys, so no model of classes can be fitted"
        if sample.classes <= 1:
            return "all people of the sample have equal keys, so no model can be fitted"
        ranges = self.ranges(sample)
        point = _maximum(lambda point: self.likelihood(sample, point), ranges)
        for name, value, (low, high) in zip(self.names, point, ranges, strict=True):
            if not low + _EDGE < value < high - _EDGE:
                return f"the likelihood has no maximum: {name} goes to the edge of its range"
        curvature = _curvature(lambda point: self.likelihood(sample, point), point)
        if not (np.isfinite(curvature).all() and (np.linalg.eigvalsh(curvature) > 0).all()):
            return "the likelihood is flat at its maximum: the sample does not determine the parameters"
        chance = math.exp(self.log_chance(sample, point))
        slope = _slope(lambda point: math.exp(self.log_chance(sample, point)), point)
        doubt = float(slope @ np.linalg.solve(curvature, slope))
        ones = sample.uniques
        variance = ones * chance * (1 - chance) + ones**2 * doubt
        expected = self.expected_uniques(sample, point)
        return UniquenessEstimate(chance, variance, self.parameters(point), expected)


def _maximum(function: Callable[[Floats], float], ranges: tuple[tuple[float, float], ...]) -> Floats:
    """Bracket the maximum by a grid, and refine it from its best places."""
    from scipy.optimize import minimize  # slow to import

    axes = [np.linspace(low, high, _GRID[len(ranges)]) for low, high in ranges]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    values = np.array([function(point) for point in grid])
    starts = grid[np.argsort(-values)[:2]]  # several: the ridge of two parameters may be long
    found = [
        minimize(
            lambda point: -function(point), start, method="Nelder-Mead", bounds=ranges,
            options={"xatol": 1e-9, "fatol": 1e-10, "maxiter": 2000},
        )
        for start in starts
    ]  # fmt: skip
    return np.asarray(min(found, key=lambda each: float(each.fun)).x, dtype=np.float64)


def _slope(function: Callable[[Floats], float], point: Floats) -> Floats:
    steps = np.eye(len(point)) * _STEP
    return np.array([(function(point + step) - function(point - step)) / (2 * _STEP) for step in steps])


def _curvature(function: Callable[[Floats], float], point: Floats) -> Floats:
    """Minus the second derivatives: how much the parameters are told."""
    steps = np.eye(len(point)) * _STEP
    return -np.array(
        [
            [
                (
                    function(point + a + b)
                    - function(point + a - b)
                    - function(point - a + b)
                    + function(point - a - b)
                )
                / (4 * _STEP**2)
                for b in steps
            ]
            for a in steps
        ]
    )
