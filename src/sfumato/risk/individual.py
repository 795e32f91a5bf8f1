"""Individual risk: the chance to find each person in a population of which the table is a sample."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sfumato.core.evidence import Evidence
from sfumato.core.intruder_view import classes_of, joining, seen_table
from sfumato.core.measure import ClassValues, Counting, EstimatedMeasure, Score, Status, Tells
from sfumato.core.params import param
from sfumato.core.run import Run
from sfumato.data.classes.classes import Classes
from sfumato.data.persons import persons_of
from sfumato.data.schema import Role
from sfumato.kernels.arrays import Floats, Ints
from sfumato.risk._key_measures import (
    Facts,
    KeyMeasure,
    WorstClassMeasure,
    by_original,
    counted_in,
    of_records,
    worst_by_person,
)
from sfumato.risk._model_fitting import SizeFrequencies
from sfumato.risk._possible_populations import PossiblePopulations
from sfumato.risk._sampling import SampledMeasure, n_drawn, with_original_weights

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

_ESTIMATED = "class sizes in the population are estimated by a model"
_UNDERSTATED = "there are fewer large classes than it expects, so it understates: the far end counts them"

_POSSIBLE = "other populations fit the class sizes as well and have smaller classes: the far end counts them"


# Of a class of f in the sample, drawn with the share p ---------------------------------------------------


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
    others = _others(alike, share, tails)
    if model != PLAIN:
        fewer = share / (share + (1.0 - share) * model.times)
        others = np.minimum(others, _others(alike + model.shift, fewer, tails))
    far: Floats = np.maximum(1.0 / (alike + others), mean_risk(alike, share))[which]
    return far


def _others(alike: Floats, share: Floats, chance: float | Floats) -> Floats:
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


# The threshold, the records at risk and the rate ------------------------------------------------------------


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


# The measures --------------------------------------------------------------------------------------------


class _SampleClassMeasure(SampledMeasure, EstimatedMeasure):
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


def _doubt(model: SizeModel, *, raised: bool) -> dict[str, str]:
    """That the model understates, where the sizes of classes tell of fewer others, or allow them."""
    reasons = [_UNDERSTATED] * (model != PLAIN) + [_POSSIBLE] * raised
    return {"doubt": "; ".join(reasons)} if reasons else {}


class IndividualRisk(_SampleClassMeasure, WorstClassMeasure):
    r"""Highest probability that a record of a sample is re-identified, estimated from the sample.

    .. math::

        r_i = E\left[\frac{1}{F_i} \,\mid\, f_i\right] = \sum_{h \ge f_i} \frac1h
        \binom{h - 1}{f_i - 1}\, p_i^{f_i} (1 - p_i)^{h - f_i}, \qquad
        p_i = \frac{f_i}{\sum_{j \sim i} w_j}

    where :math:`f_i` is the number of persons in the table who are like record :math:`i` in all keys,
    :math:`F_i` that in the population, which is not known, and :math:`w` are the sampling weights; with
    ``fraction`` or ``population_size`` the same share :math:`p` was drawn of every class. The score is the
    highest. For :math:`f = 1` it is :math:`-p \ln(p) / (1 - p)`.

    See Also
    --------
    journalist-risk : the same with a table of the population, or by the model alone.
    household-risk : the chance that some member of the household is found.
    log-linear-risk : classes that share values tell of each other. Here each stands for itself, so that all
        sample uniques drawn with the same share have the same risk; there a rare combination of common
        values has a lower one (``by_record``).

    Notes
    -----
    **How to read it.** Lower is safer; 0.05 means one chance in twenty. ``by_record`` is the risk of each
    record, and the details give how many re-identifications are expected if everybody is looked for, and
    their share (``global_risk``). They also give how many are at risk, above ``threshold``, and what
    the share would be if these were protected until they are just at it. Say with ``rate`` which share is
    tolerated, and the threshold is found. A requirement must say that an estimate will do:
    ``individual-risk <= 0.1 at 95%``; then suppression and recoding can enforce it.

    **Doubt.** It is an estimate by a model: *approximate*. The interval is that of :math:`1/F` for the worst
    record, given the sample (quantiles of the negative binomial); its far end is never below the mean. The
    model takes it that as many people are in classes of one size as of the next. Where larger classes are
    clearly fewer, people are alone in the population, too, and the score understates: that is said, and the
    far end is that of the generalised negative binomial model (Rinott and Shlomo), fitted to the numbers of
    classes of each size; where all are alone, it is 1. So
    ``<= 0.1 at 95%`` asks that each record, taken by itself, be one of at least ten in the population, with
    a chance of 97.5 % (half of the doubt lies at either end), and not only as the model has it: in no
    population that fits the numbers of classes of each size about as well as the best one does may more than
    2.5 % of those who are as many alike in the sample be one of fewer than ten (see population-uniqueness).
    Else the far end is the risk that more of them may have, which is said. Nothing in a sample rules out
    that people who are unique in it are alone in the population: with them the far end is nearly always 1.
    Of 327 samples of populations that are known none had more than 2.5 % of its records beyond the far end,
    nor had any of the 211 of which something was left when small classes were suppressed down to .1 (by the
    model alone 23, and 6 of 225). It
    takes the weights for right, so that one huge weight lowers the risk of those who are alike to it (of
    nobody else, and not the far end, which goes by the mean chance to be drawn, too), and those drawn of a
    class for a random part of it. Weights that are not
    released are the original's. If they sum to fewer people than were drawn, all of the class count as
    drawn, which is on the safe side.

    **Missing.** As in k-anonymity: a value of its own, anything, or the worst it could be.

    **Units.** Persons are counted where a column tells whose record it is, by the least of their weights; if
    the release tells which records belong together, those who are alike in all of theirs.

    **Cost.** :math:`O(n \log n)`, that of k-anonymity; what is computed of each class does not grow with f.

    Examples
    --------
    >>> schools = {"region": ["north", "north", "south"]}
    >>> score = sfumato.assess(schools, measures=["individual-risk(fraction=0.1)"])
    >>> round(score["individual-risk(fraction=0.1)"].value, 4)
    0.2558
    """

    name = "individual-risk"
    vetted = "brute-forced: unit/risk/test_individual.py::test_each_record_by_brute_force"
    synonyms = ("indivRisk", "measure_risk", "Benedetti-Franconi risk", "base individual risk")
    family = "re-identification"
    title = "Individual risk"
    tells = Tells(places={"report": 6, "records": 1}, intruder="knows the keys, but not who was sampled,")
    class_values = ClassValues(survive_merging=True)  # a larger class, and no greater a share of it drawn
    references = ("benedetti1998", "franconi2004", "rinott2006", "oleary1986", "hundepool2012")

    def of_classes(self, evidence: Evidence, classes: Classes) -> Floats:
        """The risk of each class."""
        return self.risks(evidence, classes)

    def far_of_classes(self, evidence: Evidence, classes: Classes) -> Floats:
        """The far end of the interval of each class."""
        alike, shares = classes.persons.astype(np.float64), self.shares(evidence, classes)
        far = far_risk(alike, shares, self.tail, self.size_model(classes))
        return self.possible_far(evidence, classes, alike, far, self.tail)

    @property
    def estimates(self) -> str:
        """What is estimated of all records."""
        return "matches that are right"

    def true_value(self, alike: Floats, people: Floats) -> float | None:
        """The mean of 1/F over the records: what is expected to be found if everybody is looked for."""
        return float((alike / people).sum() / alike.sum())

    def estimate_of(self, score: Score) -> float:
        """The mean risk; the score is that of the worst record."""
        return float(score.details.get("global_risk", score.value))

    def facts(self, evidence: Evidence, classes: Classes, worst: Floats) -> Facts:
        """What is expected to be found, and how many are at risk."""
        table = seen_table(evidence)
        risks = worst_by_person(table, of_records(classes, worst))
        return {"counted": counted_in(table), **self.slider(risks)}

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Take the worst class, and say how far off its risk may be."""
        evidence = with_original_weights(evidence)
        score, classes = super().measure(evidence, run), self.classes(evidence)
        alike, shares = classes.persons, self.shares(evidence, classes)
        most = np.zeros(int(alike.max()) + 1)  # of as many alike, the larger the share the worse
        np.maximum.at(most, alike, shares)
        sizes = np.flatnonzero(most).astype(np.float64)
        most = most[most > 0]
        worst = int(np.argmax(mean_risk(sizes, most)))
        near = 1.0 / (sizes + _others(sizes, most, 1.0 - self.tail))[worst]
        model = self.size_model(classes)
        by_model = far_risk(sizes, most, self.tail, model)
        far = float(self.possible_far(evidence, classes, sizes, by_model, self.tail).max())
        doubt = _doubt(model, raised=far > float(by_model.max()))
        return replace(
            score,
            status=Status.APPROXIMATE,
            interval=(min(near, score.value), max(far, score.value)),
            confidence=self.confidence,
            details={**score.details, **doubt},
            reason="; ".join((_ESTIMATED, *doubt.values())),
        )


class HouseholdRisk(_SampleClassMeasure):
    r"""Highest probability that a member of a household is re-identified, estimated from the sample.

    .. math::

        R_h = 1 - \prod_{i \in h} (1 - r_i)

    where :math:`r_i` is the individual risk of each member. Who finds one member may know the others.

    See Also
    --------
    individual-risk : the risk of each record, and how it is estimated.

    Notes
    -----
    **How to read it.** Lower is safer, and it is never below individual risk. ``by_record`` is the risk of
    the household of each record. What is expected, and who is at risk, is counted in households.

    **Doubt.** An estimate, as individual risk. Its interval takes every member at the far end of an
    interval so sure that all of them hold together with the ``confidence``.

    **Missing.** As in k-anonymity: a value of its own, anything, or the worst it could be. Who has no number
    of a household is alone.

    **Units.** Members are persons, each by the riskiest record. If the release tells which records belong
    together, a household is also looked for as a whole, and the greater of both chances counts.

    **Cost.** :math:`O(n \log n)`.
    """

    name = "household-risk"
    vetted = "brute-forced: unit/risk/test_individual.py::test_each_record_by_brute_force"
    synonyms = ("hierarchical risk", "measure_risk")
    family = "re-identification"
    title = "Household risk"
    tells = Tells(intruder="knows the keys of its household, but not who was sampled,")
    references = ("benedetti1998", "franconi2004", "hundepool2012")

    def refuses(self, evidence: Evidence) -> str | None:
        """Say that nothing tells who lives together."""
        reason = super().refuses(evidence)
        if reason is None and _household_codes(evidence) is None:
            return f"{self.name} needs a column of households: give it the role household"
        return reason

    def measure(self, evidence: Evidence, run: Run) -> Score:  # noqa: ARG002  — no chance is used
        """Put the risks of the members together, and take the worst household."""
        evidence = with_original_weights(evidence)
        homes, alone = _Households.of(evidence), self._person_classes(evidence)
        risks = homes.household_risks(of_records(alone, self.risks(evidence, alone)))
        if joining(evidence):
            joined = self.classes(evidence)
            risks = np.maximum(risks, homes.highest(of_records(joined, self.risks(evidence, joined))))
        value, far = float(risks.max()), float(self._far(evidence, homes).max())
        raised = far > float(self._far(evidence, homes, by_model=True).max())
        doubt = _doubt(self.size_model(alone), raised=raised)
        alike, shares = self._kinds(evidence, alone)
        most = alike + _others(alike, shares, 1.0 - self.tail / homes.members[homes.of_record])
        near = homes.household_risks(1.0 / most)[risks.argmax()]
        return Score(
            value=value,
            status=Status.APPROXIMATE,
            interval=(min(near, value), max(far, value)),
            confidence=self.confidence,
            by_record=by_original(evidence, risks[homes.of_record], worst="high"),
            details={
                "counted": "households",
                "households": len(risks),
                "incomplete_records": alone.incomplete,
                **self.slider(risks),
                **doubt,
            },
            reason="; ".join((_ESTIMATED, *doubt.values())),
        )

    def far_of_records(self, evidence: Evidence) -> Floats | None:
        """The far end of the interval of each record's household."""
        homes = _Households.of(evidence)
        return by_original(evidence, self._far(evidence, homes)[homes.of_record], worst="high")

    def _person_classes(self, evidence: Evidence) -> Classes:
        return classes_of(evidence, self.keys(evidence), missing=self.missing)

    def _far(self, evidence: Evidence, homes: _Households, *, by_model: bool = False) -> Floats:
        """The far end of each household: of n statements that must hold, each has an n-th of the tail."""
        whole = bool(joining(evidence))
        statements = homes.members + whole
        tails, mean_tail = self.tail / statements[homes.of_record], self.tail / float(statements.mean())

        def of_each(classes: Classes) -> Floats:
            alike, shares = self._kinds(evidence, classes)
            far = far_risk(alike, shares, tails, self.size_model(classes))
            return far if by_model else self.possible_far(evidence, classes, alike, far, mean_tail)

        far = homes.household_risks(of_each(self._person_classes(evidence)))
        return np.maximum(far, homes.highest(of_each(self.classes(evidence)))) if whole else far

    def _kinds(self, evidence: Evidence, classes: Classes) -> tuple[Floats, Floats]:
        """How many are alike to each record, and which share of them was drawn."""
        return of_records(classes, classes.persons), of_records(classes, self.shares(evidence, classes))


class _Households(NamedTuple):
    """Which records are of one household, and which of one member of it."""

    of_record: Ints  # [records]
    member: Ints  # [records]
    of_member: Ints  # [members]

    @classmethod
    def of(cls, evidence: Evidence) -> _Households:
        """Number the households of the table seen; who has none is alone."""
        codes = _household_codes(evidence)
        assert codes is not None  # else it was refused
        _, persons = np.unique(persons_of(seen_table(evidence)), return_inverse=True)
        codes = np.where(codes < 0, codes.max(initial=-1) + 1 + persons, codes)
        _, homes = np.unique(codes, return_inverse=True)
        n_persons = int(persons.max(initial=0)) + 1
        members, member = np.unique(homes * n_persons + persons, return_inverse=True)
        return cls(homes, member, members // n_persons)

    @property
    def members(self) -> Ints:
        """How many persons live in each."""
        return np.bincount(self.of_member)

    def household_risks(self, risks: Floats) -> Floats:
        """The chance that some member is found, each by the riskiest record."""
        highest = np.zeros(len(self.of_member))
        np.maximum.at(highest, self.member, risks)
        with np.errstate(divide="ignore"):  # a member who is found for sure
            missed = np.log1p(-np.minimum(highest, 1.0))
        return -np.expm1(np.bincount(self.of_member, weights=missed))

    def highest(self, risks: Floats) -> Floats:
        """The highest risk of the records of each."""
        highest = np.zeros(len(self.members))
        np.maximum.at(highest, self.of_record, risks)
        return highest


def _household_codes(evidence: Evidence) -> Ints | None:
    """The household of each record of the table seen, −1 if it has none; None if no column tells."""
    original, released, rows = evidence.original, evidence.protected, evidence.source_rows
    name = original.schema.only_role(Role.HOUSEHOLD)
    if released is None or (name is not None and rows is not None):
        codes = None if name is None else original.codes(name).codes
        return codes if codes is None or released is None else np.append(codes, -1)[rows]
    name = released.schema.only_role(Role.HOUSEHOLD)
    return None if name is None else released.codes(name).codes
