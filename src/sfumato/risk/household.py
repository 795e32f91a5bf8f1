"""Risks of households: whoever finds one member finds them all."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sfumato.core.evidence import Evidence
from sfumato.core.intruder_view import classes_of, joining, seen_table
from sfumato.core.measure import Score, Status, Tells
from sfumato.core.run import Run
from sfumato.data.classes.classes import Classes
from sfumato.data.persons import persons_of
from sfumato.data.schema import Role
from sfumato.kernels.arrays import Floats, Ints
from sfumato.risk._key_measures import (
    RECORD_LAWS,
    by_original,
    of_records,
)
from sfumato.risk._sample_classes import (
    ESTIMATED,
    SampleClassMeasure,
    count_alike,
    doubt_of,
    far_risk,
)
from sfumato.risk._sampling import with_original_weights


class HouseholdRisk(SampleClassMeasure):
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
    counts = replace(SampleClassMeasure.counts, laws=RECORD_LAWS)
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
        doubt = doubt_of(self.size_model(alone), raised=raised)
        alike, shares = self._kinds(evidence, alone)
        most = alike + count_alike(alike, shares, 1.0 - self.tail / homes.members[homes.of_record])
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
            reason="; ".join((ESTIMATED, *doubt.values())),
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
