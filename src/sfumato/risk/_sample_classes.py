"""Risks of the classes of a sample: how many of the population are like them, and when to doubt it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Counting, EstimatedMeasure
from sfumato.core.params import param
from sfumato.data.classes.classes import Classes
from sfumato.kernels.arrays import Floats, Ints
from sfumato.risk._key_measures import (
    Facts,
    KeyMeasure,
)
from sfumato.risk._model_fitting import SizeFrequencies
from sfumato.risk._possible_populations import PossiblePopulations
from sfumato.risk._sampling import SampledMeasure, n_drawn

#: Up to so many alike and such a share the recurrence is exact to the last digits; beyond, the fraction is.
_STEPS, _SMALL_SHARE = 20, 0.4


#: Levels of the continued fraction that are enough beyond, for every share.
_LEVELS = 24


#: What a quantile may lie too high because of rounding.
_FLOAT_TOLERANCE = 1e-9


#: Shifts and factors of the generalised model that are tried, and beyond which class sizes it looks.
_SHIFTS = np.expm1(np.linspace(-3.0, 0.0, 31))


_TIMES = np.exp(np.linspace(-5.0, 0.0, 41))


_BEYOND = 10


ESTIMATED = "class sizes in the population are estimated by a model"


_UNDERSTATED = "there are fewer large classes than it expects, so it understates: the far end counts them"


_POSSIBLE = "other populations fit the class sizes as well and have smaller classes: the far end counts them"


def mean_risk(alike: Floats, share: Floats) -> Floats:
    r"""The mean of 1/F, where the F in the population, given f in the sample, are negative binomial.

    .. math::

        E\left[\frac1F \,\mid\, f\right] = \int_0^1 \frac{p\,u^{f-1}}{p + (1-p)\,u}\,du
        = \frac pf\; {}_2F_1(1, 1; f + 1; 1 - p)

    No power of p stands in it, so nothing is lost for large f or small p.
    """
    few = (alike <= _STEPS) & (share < _SMALL_SHARE)
    found = np.empty(len(alike))
    found[few] = _by_recurrence(alike[few], share[few])
    found[~few] = _by_fraction(alike[~few], share[~few])
    return found


def _by_recurrence(alike: Floats, share: Floats) -> Floats:
    """From f = 1, where it is −ln(p)·p/(1 − p), upwards: q·r(f + 1) = p·(1/f − r(f)), stable for small p."""
    odds = share / (1.0 - share)
    value = -np.log(share) * odds
    found = value.copy()
    for f in range(1, int(alike.max(initial=1))):
        value = odds * (1.0 / f - value)
        np.copyto(found, value, where=alike > f)
    return found


def _by_fraction(alike: Floats, share: Floats) -> Floats:
    """By the continued fraction of Gauss for the hypergeometric function."""
    rest, value = 1.0 - share, np.ones(len(alike))
    for level in range(_LEVELS, 0, -1):
        j = level // 2
        above = (j + 1) * (alike + j) if level % 2 else j * (alike + j - 1)
        value = 1.0 - above * rest / ((alike + level - 1) * (alike + level) * value)
    return share / (alike * value)


class SizeModel(NamedTuple):
    """How the others in the population are told: of f + ``shift``, and so many for each that p tells."""

    shift: float
    times: float


#: As Benedetti and Franconi take it.
PLAIN = SizeModel(0.0, 1.0)


def far_risk(alike: Floats, share: Floats, tail: float | Floats, model: SizeModel = PLAIN) -> Floats:
    """What 1/F exceeds with a chance of at most ``tail``, and never below its mean."""
    pairs, which = np.unique(alike + 1j * share, return_inverse=True)  # each kind of class once
    tails, places = np.unique(np.broadcast_to(tail, len(alike)), return_inverse=True)
    kinds, which = np.unique(which * len(tails) + places, return_inverse=True)
    alike, share = pairs.real[kinds // len(tails)], pairs.imag[kinds // len(tails)]
    tails = tails[kinds % len(tails)]
    others = count_alike(alike, share, tails)
    if model != PLAIN:
        fewer = share / (share + (1.0 - share) * model.times)
        others = np.minimum(others, count_alike(alike + model.shift, fewer, tails))
    far: Floats = np.maximum(1.0 / (alike + others), mean_risk(alike, share))[which]
    return far


def count_alike(alike: Floats, share: Floats, chance: float | Floats) -> Floats:
    """The quantile of how many are alike in the population and not in the sample."""
    from scipy.special import nbdtrik

    found = nbdtrik(chance, alike, share)
    found = np.maximum(np.ceil(found - _FLOAT_TOLERANCE * (1.0 + found)), 0.0)
    return np.where(share < 1, found, 0.0)


def size_model_of(persons: Ints, tail: float) -> SizeModel:
    r"""How the numbers of classes of each size tell of others: the generalised model of Rinott and Shlomo.

    To the model of Benedetti and Franconi classes of :math:`f` are :math:`n_f \propto 1/f`, whatever the
    share. Where many have a class of their own, larger ones are fewer. If means have a gamma distribution,

    .. math::

        \frac{n_{f+1}}{n_f} = \frac{(f + a)\, q}{f + 1}, \qquad
        E[F - f \mid f] = \frac{1 - p}{p}\, \frac{(f + 1)\, n_{f+1}}{n_f} = \frac{1 - p}{p}\, (f + a)\, q,

    and :math:`F - f` is negative binomial of :math:`f + a`. The shift a and the factor q are those of maximum
    likelihood with :math:`-1 < a \le 0 < q \le 1`, given that no class is smaller than the smallest (smaller
    ones may have been suppressed) or much more than twice as large. They are 0 and 1, as with Benedetti and
    Franconi, unless the sizes have a chance below ``tail`` then.
    """
    from scipy.special import chdtrc, gammaln

    least = int(persons.min())
    f = np.arange(least, 2 * least + _BEYOND + 1, dtype=np.float64)
    counts = np.bincount(persons[persons <= f[-1]] - least, minlength=len(f)).astype(np.float64)
    counts[0] -= 1  # the smallest is where it is by definition
    rising = gammaln(f + _SHIFTS[:, None]) - gammaln(f + 1)
    logs = rising[:, None, :] + np.log(_TIMES)[:, None] * f
    logs -= logs.max(axis=2, keepdims=True)
    likelihood = (logs - np.log(np.exp(logs).sum(axis=2, keepdims=True))) @ counts
    shift, times = np.unravel_index(int(likelihood.argmax()), likelihood.shape)
    if chdtrc(2, 2 * (likelihood[shift, times] - likelihood[-1, -1])) >= tail:
        return PLAIN
    return SizeModel(float(_SHIFTS[shift]), float(_TIMES[times]))


class RiskThreshold(NamedTuple):
    """A threshold, how many have a higher risk, and the rate of being found if theirs is lowered to it."""

    threshold: float
    at_risk: int
    rate: float


def cut_at(risks: Floats, *, threshold: float | None = None, rate: float | None = None) -> RiskThreshold:
    r"""The slider of risks: give the threshold or, with it None, the rate, and get all three.

    If all above a threshold :math:`t` are protected until they have a risk of :math:`t`, the expected share
    of re-identifications is the mean of :math:`\min(r, t)`. So the threshold for a rate that is tolerated is
    the one where that mean is the rate.
    """
    ordered = np.sort(risks)
    n = len(ordered)
    if threshold is None:
        threshold = _threshold_for(ordered, rate or 0.0)
    above = n - int(np.searchsorted(ordered, threshold * (1 + 1e-12), side="right"))
    return RiskThreshold(threshold, above, (float(ordered[: n - above].sum()) + threshold * above) / n)


def _threshold_for(ordered: Floats, rate: float) -> float:
    n = len(ordered)
    # With the i lowest as they are and the others at the risk of the next, the rate is means[i].
    below = np.concatenate(([0.0], np.cumsum(ordered)[:-1]))
    means = (below + ordered * (n - np.arange(n))) / n
    i = int(np.searchsorted(means, rate))
    return float(ordered[-1]) if i == n else float((rate * n - below[i]) / (n - i))


class SampleClassMeasure(SampledMeasure, EstimatedMeasure):
    """What is estimated of each class of the sample."""

    better = "low"
    bounds = (0.0, 1.0)
    counts = Counting(people=True, joins_person_records=True)

    threshold: float = param(0.05, "Probability above which a record is at risk.", gt=0, le=1)
    rate: float | None = param(
        None, "Tolerated share of re-identifications; it determines the threshold.", gt=0, le=1
    )

    def why_not_estimable(self, evidence: Evidence) -> str | None:
        """Say that the population is smaller than its sample."""
        reason = KeyMeasure.why_not_estimable(self, evidence)
        if reason is not None or self.population_size is None:
            return reason
        n = n_drawn(evidence)
        if self.population_size < n:
            return (
                f"the population must not be smaller than its sample of {n}, got: {self.population_size:.6g}"
            )
        return None

    def shares(self, evidence: Evidence, classes: Classes) -> Floats:
        """The share p that was drawn of the people of each class; nothing else is known if nobody tells."""
        if self.fraction is not None:
            return np.full(len(classes), self.fraction)
        if self.population_size is not None:
            return np.full(len(classes), min(n_drawn(evidence) / self.population_size, 1.0))
        return np.minimum(classes.persons / classes.weights, 1.0)  # nobody is like fewer than were drawn

    def risks(self, evidence: Evidence, classes: Classes) -> Floats:
        """The mean of 1/F for each class."""
        return mean_risk(classes.persons.astype(np.float64), self.shares(evidence, classes))

    def size_model(self, classes: Classes) -> SizeModel:
        """What the sizes of the classes tell of others, where that is fewer than the model takes."""
        return size_model_of(classes.persons, self.tail)

    @property
    def tail(self) -> float:
        """The chance to lie beyond one end of the interval."""
        return (1.0 - self.confidence / 100.0) / 2.0

    def possible_far(
        self, evidence: Evidence, classes: Classes, alike: Floats, far: Floats, tail: float
    ) -> Floats:
        """The far ends, and no less than what more than a share ``tail`` of those alike may have.

        Whatever the model says: some population that fits the numbers of classes of each size has it so.
        """
        share = self.share(evidence)
        if share >= 1:
            return far
        sample = SizeFrequencies.of(classes.persons, float(classes.persons.sum()) / share, 0.0)
        possible = PossiblePopulations.of(sample, n_drawn(evidence))
        raised = far.copy()
        for size in possible.sizes[possible.counts > 0].astype(int).tolist():
            chosen = alike == size
            fewest = possible.fewest(size, int(1 / far[chosen].min(initial=1.0)), tail)
            if fewest is not None:
                raised[chosen] = np.maximum(far[chosen], 1 / fewest)
        return raised

    def slider(self, risks: Floats) -> Facts:
        """What is expected to be found, and how many are at risk."""
        cut = cut_at(risks, threshold=None if self.rate else self.threshold, rate=self.rate)
        return {
            "expected_reidentifications": float(risks.sum()),
            "global_risk": float(risks.mean()),
            "threshold": cut.threshold,
            "at_risk": cut.at_risk,
            "rate_at_threshold": cut.rate,
        }


def doubt_of(model: SizeModel, *, raised: bool) -> dict[str, str]:
    """That the model understates, where the sizes of classes tell of fewer others, or allow them."""
    reasons = [_UNDERSTATED] * (model != PLAIN) + [_POSSIBLE] * raised
    return {"doubt": "; ".join(reasons)} if reasons else {}
