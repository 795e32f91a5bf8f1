"""Individual risk: the chance to find each person in a population of which the table is a sample."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sfumato.core.evidence import Evidence
from sfumato.core.intruder_view import seen_table
from sfumato.core.measure import ClassValues, Score, Status, Tells
from sfumato.core.run import Run
from sfumato.data.classes.classes import Classes
from sfumato.kernels.arrays import Floats
from sfumato.risk._key_measures import (
    Facts,
    WorstClassMeasure,
    counted_in,
    of_records,
    worst_by_person,
)
from sfumato.risk._sample_classes import (
    ESTIMATED,
    SampleClassMeasure,
    count_alike,
    doubt_of,
    far_risk,
    mean_risk,
)
from sfumato.risk._sampling import with_original_weights

# Of a class of f in the sample, drawn with the share p ---------------------------------------------------


# The threshold, the records at risk and the rate ------------------------------------------------------------


# The measures --------------------------------------------------------------------------------------------


class IndividualRisk(SampleClassMeasure, WorstClassMeasure):
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
        near = 1.0 / (sizes + count_alike(sizes, most, 1.0 - self.tail))[worst]
        model = self.size_model(classes)
        by_model = far_risk(sizes, most, self.tail, model)
        far = float(self.possible_far(evidence, classes, sizes, by_model, self.tail).max())
        doubt = doubt_of(model, raised=far > float(by_model.max()))
        return replace(
            score,
            status=Status.APPROXIMATE,
            interval=(min(near, score.value), max(far, score.value)),
            confidence=self.confidence,
            details={**score.details, **doubt},
            reason="; ".join((ESTIMATED, *doubt.values())),
        )
