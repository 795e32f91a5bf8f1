"""Chances to be found: by who knows that someone is in, by who does not, and by who looks for everybody."""

from __future__ import annotations

import math
from typing import ClassVar, Literal

import numpy as np

from sfumato.core.evidence import Evidence
from sfumato.core.intruder_view import seen_table
from sfumato.core.measure import ClassMeasure, ClassValues, Counting, Score, Status, Tells
from sfumato.core.params import Resource, param
from sfumato.core.run import Run
from sfumato.data.classes.classes import Classes
from sfumato.data.classes.packing import fits
from sfumato.data.generalised.cover import suppressed_records
from sfumato.data.schema import Role
from sfumato.kernels.arrays import Floats, Ints
from sfumato.risk._key_measures import (
    CLASS_LAWS,
    RECORD_LAWS,
    KeyMeasure,
    by_original,
    counted_in,
    of_records,
    worst_by_person,
    yes_or_no,
)
from sfumato.risk._population import population_sizes, why_no_population
from sfumato.risk._sample_classes import mean_risk


class _ClassSizeRisk(KeyMeasure):
    """The chance to find someone in a class is one over its size."""

    better = "low"
    bounds = (0.0, 1.0)
    score_is: ClassVar[Literal["highest", "mean"]] = "highest"
    counts = Counting(people=True, joins_person_records=True, classes_only=True, laws=CLASS_LAWS)

    threshold: float = param(
        0.2,
        "Probability above which a record is at risk.",
        gt=0,
        le=1,
        hint="0.2 is a class of five, 0.09 one of eleven",
    )

    def summary_of(
        self, evidence: Evidence, classes: Classes, sizes: Ints | Floats
    ) -> dict[str, float | int]:
        """The highest and the mean risk, and how many are at risk: by person, the riskiest record counts."""
        table, risks = seen_table(evidence), _chances(sizes)
        people = classes.members
        original = None if evidence.protected is None else evidence.original
        silent = evidence.remember_for_all(
            ("suppressed", table, classes.keys),
            lambda: suppressed_records(table, classes.keys, original, evidence.source_rows),
        )
        highest = float(risks.max())
        says = ~silent[classes.examples]  # of who says nothing, no share is taken: as if left out
        if says.any():
            risks, people = np.where(says, risks, 0.0), np.where(says, people, 0)
        if table.schema.only_role(Role.PERSON) is not None:
            risks = worst_by_person(table, of_records(classes, risks))
            people = (risks > 0).astype(np.int64)
            mean = _mean(risks, people)
        else:
            mean = _mean_of_classes(sizes, people)
        at_risk = int(people[risks > self.threshold * (1 + 1e-12)].sum())  # 1/5 is not above 0.2
        return {
            "highest": highest,
            "mean": mean,
            "at_risk": at_risk,
            "share_at_risk": at_risk / int(people.sum()),
            "suppressed": table.count(silent),
        }

    def sizes_of(self, evidence: Evidence, classes: Classes) -> tuple[Ints | Floats, str]:  # noqa: ARG002
        """The sizes of the classes, and where they come from."""
        return classes.persons, "this table"

    def measure(self, evidence: Evidence, run: Run) -> Score:  # noqa: ARG002  — no chance is used
        """Take the highest or the mean chance; an estimate is labelled so."""
        classes = self.classes(evidence)
        sizes, basis = self.sizes_of(evidence, classes)
        facts, estimated = self.summary_of(evidence, classes, sizes), basis == "sums of weights"
        details: dict[str, float | int | str] = {
            "counted": counted_in(seen_table(evidence)),
            "sizes": basis,
            "classes": len(classes),
            "incomplete_records": classes.incomplete,
            **facts,
            "threshold": self.threshold,
            "feasible": yes_or_no(holds=not facts["at_risk"]),
        }
        return Score(
            value=facts[self.score_is],
            status=Status.APPROXIMATE if estimated else Status.OK,
            by_record=by_original(evidence, of_records(classes, _chances(sizes)), worst="high"),
            details=details,
            reason="class sizes are estimated from weights" if estimated else "",
        )


def _chances(sizes: Ints | Floats) -> Floats:
    """One over the size, and never more than certainty: nobody is like a record less than itself."""
    chances: Floats = 1.0 / np.maximum(sizes.astype(np.float64), 1.0)
    return chances


def _mean(risks: Floats, people: Ints | Floats) -> float:
    """The mean, whatever the order of the classes: equal risks are counted before they are added."""
    values, which = np.unique(risks, return_inverse=True)
    counts = np.bincount(which, weights=people)
    return math.fsum((values * counts).tolist()) / int(people.sum())


def _mean_of_classes(sizes: Ints | Floats, people: Ints) -> float:
    """The mean of one over the size: a table of the sizes spares a sort of all classes, if it has room."""
    if sizes.dtype.kind != "i" or not fits(int(sizes.max(initial=0)), len(sizes)):
        return _mean(_chances(sizes), people)
    counts = np.bincount(sizes, weights=people)
    return _mean(_chances(np.arange(len(counts))), counts)


class _InPopulation(_ClassSizeRisk):
    """Class sizes in a population: of a table, or estimated by weights."""

    counts = Counting(  # a population shows single records
        people=True, compares_kept_relations=True, classes_only=True, laws=CLASS_LAWS
    )

    population: Resource | None = param(
        None, "The table of the population; by default weights estimate the class sizes.", holds="table"
    )

    def refuses(self, evidence: Evidence) -> str | None:
        """Say what is wrong with the population."""
        reason = super().refuses(evidence)
        if reason is not None or self.population is None:
            return reason
        return why_no_population(self.name, evidence, str(self.population), self.columns(evidence))

    def sizes_of(self, evidence: Evidence, classes: Classes) -> tuple[Ints | Floats, str]:
        """The sizes of the classes, and where they come from; a class is at least what was released of it.

        Of sums of weights, one over the mean of 1/F: one over the mean of F would be too large a class.
        """
        if self.population is not None:
            sizes = population_sizes(evidence, classes, str(self.population))
            return np.maximum(sizes, 1), f"population `{self.population}`"
        if seen_table(evidence).weights is not None:
            alike = classes.persons.astype(np.float64)
            share = alike / np.fmax(classes.weights, alike)  # nobody stands for less than themselves
            return 1.0 / mean_risk(alike, share), "sums of weights"
        return super().sizes_of(evidence, classes)


class ProsecutorRisk(_ClassSizeRisk, ClassMeasure):
    r"""Highest probability of re-identification by an intruder who knows that the person is in the table.

    .. math::

        R = \max_i \frac{1}{f_i}

    where :math:`f_i` is the number of persons alike to record :math:`i` in all keys. The intruder (the
    prosecutor) looks for one person and knows that the person is in.

    Notes
    -----
    **How to read it.** Lower is safer; 1 means that somebody is found with certainty, and it is one over
    k-anonymity. The details give the mean, and how many are at risk: above ``threshold``; ``feasible`` says
    whether nobody is. ``by_record`` is the risk of each record.

    **Doubt.** Exact.

    **Missing.** As in k-anonymity: a value of its own, anything, or the worst it could be.

    **Units.** Persons are counted where a column tells whose record it is, each by the riskiest record.

    **Cost.** :math:`O(n \log n)`, shared with all measures of classes.
    """

    name = "prosecutor-risk"
    vetted = "brute-forced: property/test_anonymity.py::test_identity"
    synonyms = ("re-identification risk", "highest risk")
    family = "re-identification"
    title = "Prosecutor risk"
    tells = Tells(
        places={"report": 3, "gauges": 1, "records": 2},
        intruder="knows its keys, and that it is in the file,",
    )
    class_values = ClassValues(independent=True, survive_merging=True, are_sizes=True)
    references = ("elemam2008",)

    def of_sizes(self, persons: Ints) -> Floats:
        """One over the number of persons of each class."""
        return _chances(persons)


class JournalistRisk(_InPopulation):
    r"""Highest probability of re-identification by an intruder who does not know who is in the table.

    .. math::

        R = \max_i \frac{1}{F_i}

    where :math:`F_i` is the number of people in the population who are like record :math:`i` in all keys.
    The intruder (the journalist) wants to show that anyone at all can be found.

    Notes
    -----
    **How to read it.** Lower is safer, and it is never above prosecutor risk if the population holds all who
    were released. The details say where the sizes come from, how many records are at risk (above
    ``threshold``), and whether nobody is (``feasible``).

    **Doubt.** Exact with a table of the population. With weights alone, :math:`1/F_i` is estimated from the
    persons of the class and the sum of their weights (of a person with several records the least, once), as
    in `individual-risk`: one over that sum is less than :math:`E[1/F_i]`, for a single person who stands for
    ten 0.1 in place of 0.26. The score is *approximate*, and small classes may be far off. Without either it
    is refused.

    **Missing.** As in k-map: a value of its own, anything, or the worst it could be.

    **Units.** Persons are counted where a column tells whose record it is, each by the riskiest record.

    **Cost.** That of k-map.
    """

    name = "journalist-risk"
    vetted = "brute-forced: property/test_anonymity.py::test_k_map"
    family = "re-identification"
    title = "Journalist risk"
    tells = Tells(places={"report": 4, "gauges": 2}, intruder="does not know who is in the file")
    references = ("elemam2008",)

    def refuses(self, evidence: Evidence) -> str | None:
        """Say that a population or weights are needed."""
        reason = super().refuses(evidence)
        if reason is None and self.population is None and seen_table(evidence).weights is None:
            return f"{self.name} needs the population: give its table as `population`, or weights"
        return reason


class MarketerRisk(_InPopulation):
    r"""Share of people re-identified by an intruder who links every record of the table.

    .. math::

        R = \frac{1}{n} \sum_i \frac{1}{F_i}

    where :math:`F_i` is the number of people in the population who are like record :math:`i` in all keys.
    The intruder (the marketer) does not mind single errors and links everyone, by chance within a class.

    Notes
    -----
    **How to read it.** Lower is safer: 0.1 means that one link in ten is right. If the table itself is the
    population (neither a population nor weights are given), it is the number of classes over that of records.
    Records of which no key says anything count as if they were left out, here and in the share at risk
    (``suppressed`` says how many they are); in the highest risk they count.

    **Doubt.** Exact with a table of the population, or if this table is it. With weights :math:`1/F_i` is
    estimated as in `journalist-risk`, and the score is *approximate*.

    **Missing.** As in k-map: a value of its own, anything, or the worst it could be.

    **Units.** Persons are counted where a column tells whose record it is, each by the riskiest record.

    **Cost.** That of k-map.
    """

    name = "marketer-risk"
    vetted = "brute-forced: property/test_anonymity.py::test_identity"
    synonyms = ("average re-identification risk", "expected re-identifications", "global risk")
    family = "re-identification"
    title = "Marketer risk"
    tells = Tells(places={"report": 5, "gauges": 3}, intruder="looks for everybody")
    score_is = "mean"
    references = ("elemam2008", "dankar2010")


class Distinction(KeyMeasure):
    r"""Number of distinct combinations of keys, as a share of the records.

    .. math::

        D = \frac{1}{n} \sum_i \frac{1}{f_i}

    where :math:`f_i` is the number of records alike to record :math:`i` in all keys: for classes that do not
    overlap it is their number over :math:`n`.

    Notes
    -----
    **How to read it.** Lower is safer. 1 means that the keys tell all records apart. It says how much the
    keys of a scenario can do, and so which column to treat first: compare scenarios with and without it.

    **Doubt.** Exact. Records are counted, not persons.

    **Missing.** As in k-anonymity: a value of its own, anything, or the worst it could be.

    **Cost.** :math:`O(n \log n)`, shared with all measures of classes.
    """

    name = "distinction"
    vetted = "brute-forced: property/test_anonymity.py::test_identity"
    family = "equivalence classes"
    title = "Distinction of the keys"
    counts = Counting(people=True, classes_only=True, laws=RECORD_LAWS)
    tells = Tells(intruder="knows the keys")
    better = "low"
    bounds = (0.0, 1.0)
    references = ("motwani2007",)

    def measure(self, evidence: Evidence, run: Run) -> Score:  # noqa: ARG002  — no chance is used
        """Count the combinations."""
        classes = self.classes(evidence)
        chances = of_records(classes, _chances(classes.sizes))
        n = seen_table(evidence).n_records
        return Score(
            value=_mean_of_classes(classes.sizes, classes.members),
            by_record=by_original(evidence, chances, worst="high"),
            details={"records": n, "classes": len(classes)},
        )


class Separation(KeyMeasure):
    r"""Share of pairs of records that differ in at least one key.

    .. math::

        S = 1 - \frac{\sum_i (f_i - 1)}{n (n - 1)}

    where :math:`f_i` is the number of records alike to record :math:`i` in all keys.

    Notes
    -----
    **How to read it.** Lower is safer. It is near 1 even for coarse keys (two halves give about one half, a
    hundred equal classes 0.99), so compare it between scenarios rather than with a fixed level.

    **Doubt.** Exact. Records are counted, not persons.

    **Missing.** As in k-anonymity: a value of its own, anything, or the worst it could be.

    **Cost.** :math:`O(n \log n)`, shared with all measures of classes.
    """

    name = "separation"
    vetted = "brute-forced: property/test_anonymity.py::test_identity"
    family = "equivalence classes"
    title = "Separation by the keys"
    counts = Counting(people=True, classes_only=True, laws=RECORD_LAWS)
    better = "low"
    bounds = (0.0, 1.0)
    references = ("motwani2007",)

    def measure(self, evidence: Evidence, run: Run) -> Score:  # noqa: ARG002  — no chance is used
        """Count the pairs."""
        classes = self.classes(evidence)
        n = seen_table(evidence).n_records
        if n < 2:  # noqa: PLR2004  — a pair
            return Score.not_estimable("there are fewer than two records")
        alike = int((classes.members * (classes.sizes - 1)).sum())
        pairs = n * (n - 1)
        return Score(
            value=(pairs - alike) / pairs,
            details={"records": n, "classes": len(classes), "pairs_alike": alike // 2},
        )
