r"""Models of a population's classes: the chance that who is unique in a sample is unique in the population.

A sample of :math:`n` people of a population of :math:`N` has :math:`u` classes, :math:`s_j` of them of
:math:`j` people. Each model gives the chance :math:`p = P(F = 1 \mid f = 1)` that a class of one person in
the sample has no other in the population, so that :math:`s_1 p` unique people are to be expected in both.
"""

from __future__ import annotations

import math

import numpy as np

from sfumato.kernels.arrays import Floats
from sfumato.risk._model_fitting import (
    LikelihoodModel,
    PopulationModel,
    SizeFrequencies,
    UniquenessEstimate,
    log_rising,
)

#: Up to this share of the population Dankar's rule takes Pitman's model.
_SMALL_FRACTION = 0.1


def _log_chance_unique(sample: SizeFrequencies, concentration: float, discount: float) -> float:
    r"""The log chance that nobody joins a person while :math:`N - n` more come to a Pitman process.

    .. math::

        \prod_{j=n}^{N-1} \left(1 - \frac{1 - \alpha}{\theta + j}\right)
            = \frac{\Gamma(\theta + N - 1 + \alpha)\, \Gamma(\theta + n)}
                   {\Gamma(\theta + n - 1 + \alpha)\, \Gamma(\theta + N)}
    """
    return _nobody_joins(concentration, discount, sample.n, sample.people)


def _nobody_joins(concentration: float, discount: float, n: float, people: float) -> float:
    """The log chance to stay alone while a Pitman process grows from n to so many people."""
    join = 1 - discount
    before, after = (log_rising(concentration + each - join, join) for each in (n, people))
    return float(before - after)


class Ewens(LikelihoodModel):
    r"""Ewens' sampling formula.

    .. math::

        P(s) \propto \frac{\theta^u}{\theta (\theta + 1) \cdots (\theta + n - 1)}, \qquad
        p = \frac{\theta + n - 1}{\theta + N - 1}
    """

    names = ("theta",)

    def ranges(self, sample: SizeFrequencies) -> tuple[tuple[float, float], ...]:
        """Up to about the square of the people, where two of them still are alike."""
        return ((-15.0, 2 * math.log(sample.n) + 5),)

    def likelihood(self, sample: SizeFrequencies, point: Floats) -> float:
        """The formula's logarithm."""
        return float(sample.classes * point[0] - log_rising(math.exp(point[0]), sample.n))

    def expected_uniques(self, sample: SizeFrequencies, point: Floats) -> float:
        """Who comes first stays alone while the others come."""
        return sample.n * math.exp(_nobody_joins(math.exp(point[0]), 0.0, 1.0, sample.n))

    def log_chance(self, sample: SizeFrequencies, point: Floats) -> float:
        """Nobody joins."""
        return _log_chance_unique(sample, math.exp(point[0]), 0.0)


class LogSeries(LikelihoodModel):
    r"""Fisher's logarithmic series: classes of :math:`j` people are Poisson with mean :math:`\theta x^j / j`.

    .. math::

        x = \frac{n}{n + \theta}, \qquad u = \theta \log(1 + n / \theta), \qquad
        p = \frac{\theta + n}{\theta + N}
    """

    names = ("theta",)

    def ranges(self, sample: SizeFrequencies) -> tuple[tuple[float, float], ...]:
        """As for Ewens."""
        return ((-15.0, 2 * math.log(sample.n) + 5),)

    def likelihood(self, sample: SizeFrequencies, point: Floats) -> float:
        """Poisson counts of classes; its root is the equation for u."""
        theta, n = math.exp(point[0]), sample.n
        return float(sample.classes * point[0] - n * math.log1p(theta / n) - theta * math.log1p(n / theta))

    def expected_uniques(self, sample: SizeFrequencies, point: Floats) -> float:
        """The first term of the series."""
        theta = math.exp(point[0])
        return theta * sample.n / (sample.n + theta)

    def log_chance(self, sample: SizeFrequencies, point: Floats) -> float:
        """The share of a class of the sample."""
        theta = math.exp(point[0])
        return math.log((theta + sample.n) / (theta + sample.people))


class Pitman(LikelihoodModel):
    r"""Pitman's sampling formula (Hoshino), with :math:`0 < \alpha < 1` and :math:`\theta > -\alpha`.

    .. math::

        P(s) \propto \frac{\prod_{i=1}^{u-1} (\theta + i \alpha)}{\prod_{i=1}^{n-1} (\theta + i)}
            \prod_j \left( \prod_{i=1}^{j-1} (i - \alpha) \right)^{s_j}, \qquad
        p = \prod_{j=n}^{N-1} \left(1 - \frac{1 - \alpha}{\theta + j}\right)
    """

    names = ("alpha", "theta + alpha")

    def ranges(self, sample: SizeFrequencies) -> tuple[tuple[float, float], ...]:
        """Log odds of alpha, and the logarithm of theta + alpha."""
        return ((-9.0, 9.0), (-15.0, 2 * math.log(sample.n) + 5))

    def parameters(self, point: Floats) -> dict[str, float]:
        """Alpha and theta."""
        alpha = _expit(point[0])
        return {"alpha": alpha, "theta": math.exp(point[1]) - alpha}

    def likelihood(self, sample: SizeFrequencies, point: Floats) -> float:
        """The formula's logarithm."""
        alpha, shifted = _expit(point[0]), math.exp(point[1])
        u, theta = sample.classes, shifted - alpha
        new = (u - 1) * math.log(alpha) + log_rising(shifted / alpha, u - 1)
        return float(
            new - log_rising(theta + 1, sample.n - 1)
            + sample.counts @ log_rising(1 - alpha, sample.sizes - 1)
        )  # fmt: skip

    def expected_uniques(self, sample: SizeFrequencies, point: Floats) -> float:
        """Who comes first stays alone while the others come."""
        alpha = _expit(point[0])
        return sample.n * math.exp(_nobody_joins(math.exp(point[1]) - alpha, alpha, 1.0, sample.n))

    def log_chance(self, sample: SizeFrequencies, point: Floats) -> float:
        """Nobody joins."""
        alpha = _expit(point[0])
        return _log_chance_unique(sample, math.exp(point[1]) - alpha, alpha)


class DirichletMultinomial(LikelihoodModel):
    r"""Counts of :math:`K` cells, multinomial with Dirichlet chances of parameter :math:`\gamma` (Takemura).

    .. math::

        P(f) \propto \frac{\Gamma(K \gamma)}{\Gamma(K \gamma + n)}
            \prod_c \frac{\Gamma(\gamma + f_c)}{\Gamma(\gamma)}, \qquad
        p = \prod_{j=n}^{N-1} \left(1 - \frac{1 + \gamma}{K \gamma + j}\right)
    """

    names = ("gamma",)

    def ranges(self, sample: SizeFrequencies) -> tuple[tuple[float, float], ...]:
        """Down to where cells are hardly used again."""
        return ((-15.0 - math.log(sample.cells), 2 * math.log(sample.n) + 5),)

    def likelihood(self, sample: SizeFrequencies, point: Floats) -> float:
        """The formula's logarithm."""
        gamma = math.exp(point[0])
        of_sizes = sample.counts @ log_rising(gamma, sample.sizes)
        return float(of_sizes - log_rising(sample.cells * gamma, sample.n))

    def expected_uniques(self, sample: SizeFrequencies, point: Floats) -> float:
        """Who comes first stays alone while the others come."""
        gamma = math.exp(point[0])
        return sample.n * math.exp(_nobody_joins(sample.cells * gamma, -gamma, 1.0, sample.n))

    def log_chance(self, sample: SizeFrequencies, point: Floats) -> float:
        """Nobody joins: as of Pitman's process with alpha of -gamma."""
        gamma = math.exp(point[0])
        return _log_chance_unique(sample, sample.cells * gamma, -gamma)


class PoissonGamma(LikelihoodModel):
    r"""Poisson counts of :math:`K` cells, whose chances are gamma of shape :math:`a`, mean 1/K (Bethlehem).

    .. math::

        f_c \sim \mathrm{NB}\left(a,\ \text{mean } \frac{n}{K}\right), \qquad
        p = \left(\frac{K a + n}{K a + N}\right)^{a + 1}
    """

    names = ("shape",)

    def ranges(self, sample: SizeFrequencies) -> tuple[tuple[float, float], ...]:
        """As for the Dirichlet-multinomial model."""
        return ((-15.0 - math.log(sample.cells), 2 * math.log(sample.n) + 5),)

    def likelihood(self, sample: SizeFrequencies, point: Floats) -> float:
        """All cells, the empty ones too."""
        shape, n = math.exp(point[0]), sample.n
        rate = shape * sample.cells
        return float(
            sample.counts @ log_rising(shape, sample.sizes)
            - rate * math.log1p(n / rate) - n * math.log(rate + n)
        )  # fmt: skip

    def expected_uniques(self, sample: SizeFrequencies, point: Floats) -> float:
        """Of all cells."""
        shape = math.exp(point[0])
        return sample.n * math.exp(-(shape + 1) * math.log1p(sample.n / (shape * sample.cells)))

    def log_chance(self, sample: SizeFrequencies, point: Floats) -> float:
        """Nobody of the rest falls into the cell."""
        shape = math.exp(point[0])
        rate = shape * sample.cells
        return (shape + 1) * (math.log(rate + sample.n) - math.log(rate + sample.people))


class SlideNegativeBinomial(LikelihoodModel):
    r"""Classes of the population have one person and a negative binomial number more (Chen, Keller-McNulty).

    .. math::

        F - 1 \sim \mathrm{NB}(a, c), \qquad
        P(f = j) = (1 - \pi)\, b_{\pi c}(j) + \pi\, b_{\pi c}(j - 1), \qquad
        p = \frac{\pi\, b_c(0)}{P(f = 1)}

    where :math:`b_c(j) = \frac{\Gamma(a + j)}{\Gamma(a)\, j!} (1 + c)^{-a} (c / (1 + c))^j`. Who is drawn is
    drawn with the chance :math:`\pi = n / N` each; classes nobody of whom is drawn are not seen.
    """

    names = ("shape", "scale")

    def ranges(self, sample: SizeFrequencies) -> tuple[tuple[float, float], ...]:
        """Logarithms of the shape and of the scale."""
        return ((-12.0, 8.0), (-10.0, math.log(sample.people) + 5))

    def likelihood(self, sample: SizeFrequencies, point: Floats) -> float:
        """Of the classes that are seen."""
        drawn = sample.n / sample.people
        shape, scale = math.exp(point[0]), drawn * math.exp(point[1])
        none = (1 - drawn) * math.exp(-shape * math.log1p(scale))
        of_sizes = sample.counts @ self._log_sizes(sample.sizes, drawn, shape, scale)
        return float(of_sizes - sample.classes * math.log1p(-none))

    @staticmethod
    def _log_sizes(sizes: Floats, drawn: float, shape: float, scale: float) -> Floats:
        """The logarithm of P(f = j): the ratio of the two binomials is taken out of the sum."""
        below = log_rising(shape, sizes - 1) - log_rising(1.0, sizes - 1)
        below += (sizes - 1) * (math.log(scale) - math.log1p(scale)) - shape * math.log1p(scale)
        ratio = (shape + sizes - 1) / sizes * scale / (1 + scale)
        return below + np.log((1 - drawn) * ratio + drawn)

    def expected_uniques(self, sample: SizeFrequencies, point: Floats) -> float:
        """Of the classes that are seen."""
        drawn = sample.n / sample.people
        shape, scale = math.exp(point[0]), drawn * math.exp(point[1])
        one = math.exp(self._log_sizes(np.ones(1), drawn, shape, scale)[0])
        return sample.classes * one / (1 - (1 - drawn) * math.exp(-shape * math.log1p(scale)))

    def log_chance(self, sample: SizeFrequencies, point: Floats) -> float:
        """The person who is always there is drawn, and there is no other."""
        drawn = sample.n / sample.people
        shape, scale = math.exp(point[0]), math.exp(point[1])
        one = self._log_sizes(np.ones(1), drawn, shape, drawn * scale)[0]
        return float(math.log(drawn) - shape * math.log1p(scale) - one)


def _expit(value: float) -> float:
    return 1 / (1 + math.exp(-value))


class Zayatz(PopulationModel):
    r"""Classes of the population have sizes as those of the sample; the draw is without replacement.

    .. math::

        p = \frac{s_1 h_1}{\sum_j s_j h_j}, \qquad h_j = j \binom{N - j}{n - 1} \Big/ \binom{N}{n}

    The variance takes the counts :math:`s_j` for Poisson; that the sample has fewer large classes than the
    population is a bias it does not tell.
    """

    def estimate(self, sample: SizeFrequencies) -> UniquenessEstimate | str:
        """The share of classes of one among those that look like one."""
        weights = sample.counts * self._looks_unique(sample)
        chance = float(weights[0] / weights.sum())  # sample uniques are the first: there are some
        others = float((weights[1:] ** 2 / sample.counts[1:]).sum()) / float(weights.sum()) ** 2
        doubt = chance**2 * ((1 - chance) ** 2 / sample.uniques + others)
        ones = sample.uniques
        return UniquenessEstimate(chance, ones * chance * (1 - chance) + ones**2 * doubt, {})

    @staticmethod
    def _looks_unique(sample: SizeFrequencies) -> Floats:
        """How likely one person of a class of each size is drawn, against a class of one."""
        # C(N − j, n − 1) / C(N − 1, n − 1), as products of j − 1 falling factors
        rest, others = sample.people - sample.n, sample.sizes - 1
        fits = others <= rest
        others = np.where(fits, others, 0.0)
        logs = log_rising(rest - others + 1, others) - log_rising(sample.people - others, others)
        return np.where(fits, sample.sizes * np.exp(logs), 0.0)


class GoodToulmin(PopulationModel):
    r"""No model of the classes: smoothed Good–Toulmin (Camerlenghi, Favaro, Naulet and Panero).

    .. math::

        s_1 p = \sum_{i \ge 0} (-\lambda)^i\, P(L \ge i)\, (i + 1)\, s_{i+1}, \qquad \lambda = \frac{N - n}{n}

    with :math:`L` binomial of :math:`\lfloor \frac{1}{2} \log_2 (n \lambda^2 / (\lambda - 1)) \rfloor` trials
    of chance :math:`2 / (2 + \lambda)` if :math:`\lambda > 1`; below, nothing is smoothed. No estimator
    without a model is consistent for a fraction below the order of :math:`1 / \log n`: there is none then.
    """

    def estimate(self, sample: SizeFrequencies) -> UniquenessEstimate | str:
        """The alternating sum, with the variance of Poisson counts."""
        n, ratio = sample.n, (sample.people - sample.n) / sample.n
        if ratio > math.log(n):
            return (
                f"without a model, a sample of {n:.0f} people gives no estimate unless more than a share of "
                f"{1 / (1 + math.log(n)):.3g} of the population was drawn"
            )
        i = sample.sizes - 1
        weights = sample.sizes * ((-ratio) ** i if ratio <= 1 else self._smoothed_terms(i, n, ratio))
        expected = float(weights @ sample.counts)
        if not 0 < expected <= sample.uniques:
            return "the estimate is outside the possible range: the sample is too small to do without a model"
        spread = float(weights[1:] ** 2 @ sample.counts[1:])
        return UniquenessEstimate(expected / sample.uniques, sample.uniques - expected + spread, {})

    @staticmethod
    def _smoothed_terms(i: Floats, n: float, ratio: float) -> Floats:
        """Binomial smoothing: (−λ)^i P(L ≥ i)."""
        from scipy.stats import binom  # slow to import

        trials = max(math.floor(0.5 * math.log2(n * ratio**2 / (ratio - 1))), 1)
        used = i <= trials
        tails = binom.sf(np.where(used, i, 0) - 1, trials, 2 / (2 + ratio))
        return np.where(used, (-ratio) ** np.where(used, i, 0) * tails, 0.0)


class Dankar(PopulationModel):
    """The rule of Dankar, El Emam, Neisa and Roffey: which model to take, by the share that was drawn.

    Up to a tenth it is Pitman's. Beyond, it is the lower of the slide negative binomial and Zayatz, or Zayatz
    alone, which overstates, where the other cannot be fitted.
    """

    def estimate(self, sample: SizeFrequencies) -> UniquenessEstimate | str:
        """Ask the model that the rule takes."""
        if sample.n <= _SMALL_FRACTION * sample.people:
            return Pitman().estimate(sample)
        found = Zayatz().estimate(sample)
        other = SlideNegativeBinomial().estimate(sample)
        if isinstance(other, str) or isinstance(found, str):
            return found
        return min(found, other, key=lambda each: each.chance)
