"""What enforcing methods share: the guarantee they are asked for, and the proof of it on what they release.

Every model is a requirement on a measure, so that what is enforced is what is measured: ``k >= 5`` and
``l >= 3`` are checked on the release by the very measures that anyone can run on it (why that suffices:
``docs/proofs/enforced.md``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self, final

import numpy as np

from sfumato.core.evidence import Evidence, PersonSampling
from sfumato.core.group_measure import Grouping, GroupMeasure, Groups
from sfumato.core.intruder_view import classes_of
from sfumato.core.measure import ClassMeasure, EstimatedMeasure, Score, Status
from sfumato.core.method import EnforcedRequirement, Gives, Method, Randomness
from sfumato.core.origin import Origin
from sfumato.core.params import Requirements, param
from sfumato.core.release import Release, concatenate_releases
from sfumato.core.requirement import Requirement
from sfumato.core.run import Run
from sfumato.data.buckets import Buckets
from sfumato.data.classes.classes import MISSING_POLICIES, Classes, Missing
from sfumato.data.generalised.suppressing import to_missing
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Kind, Schema
from sfumato.data.table import Table
from sfumato.errors import RefusedError, SfumatoError, UnreachableError, quoted
from sfumato.kernels.arrays import Flags, Floats

#: Kinds of keys that are alike or not.
COMPARABLE = frozenset({Kind.CONTINUOUS, Kind.ORDINAL, Kind.NOMINAL, Kind.DATE})


@dataclass(frozen=True)
class Guarantee:
    """Requirements on the worst record, for an intruder who knows the ``keys``.

    ``parts`` are what must hold besides for intruders who know other keys, such as a few of these.
    """

    requirements: tuple[Requirement, ...]
    keys: tuple[str, ...]
    parts: tuple[Guarantee, ...] = ()

    @classmethod
    def of(cls, keys: Sequence[str], *, k: int, also: Sequence[str], missing: Missing) -> Guarantee:
        """Ask for k people alike, and for what else is wanted, under one policy for missing keys."""
        texts = ([f"k-anonymity >= {k}"] if k > 1 else []) + list(also)
        made = []
        for text in texts:
            requirement = Requirement.parse(text)
            own = {declared.name for declared in requirement.measure.parameters()}
            if "missing" in own and "missing=" not in text.replace(" ", ""):
                requirement = replace(requirement, measure=requirement.measure.with_settings(missing=missing))
            made.append(requirement)
        return cls(tuple(made), tuple(sorted(keys)))

    @cached_property
    def groups(self) -> Groups | None:
        """The groups that are protected alone, so that what must hold in each does; None if nothing must.

        Where it must hold in groups of several sorts, those are by all of their columns.
        """
        measures = (each.measure for each in self.requirements)
        found = {each.groups for each in measures if isinstance(each, GroupMeasure)}
        if not found:
            return None
        names = tuple(sorted({name for each in found for name in each.columns}))
        is_one_sort = len({each.columns for each in found}) == 1
        return Groups(names, min(each.at_least for each in found) if is_one_sort else 1)

    def unmet_in_groups(self, table: Table, release: Release, run: Run) -> list[str]:
        """What is not met in some group of a table by what was released of it, in words."""
        evidence = replace(self.evidence(table, run), release=release)
        asked = [each for each in self.requirements if isinstance(each.measure, GroupMeasure)]
        scored = [(each, each.measure.score(evidence, run.silent())) for each in asked]
        return [each.verdict(score) for each, score in scored if not each.met_by(score)]

    def listing(self) -> tuple[EnforcedRequirement, ...]:
        """Its requirements as plans write them, those of the parts with their keys."""
        whole = [EnforcedRequirement(str(each)) for each in self.requirements]
        parts = [
            EnforcedRequirement(str(each), part.keys) for part in self.parts for each in part.requirements
        ]
        return (*whole, *parts)

    def evidence(self, table: Table, run: Run) -> Evidence:
        """What an intruder sees of a table on its way to be released."""
        known = Scenario(columns=self.keys)
        return Evidence(table, None, known, run.resources, PersonSampling(ignore_person_links=True))

    def evidence_of(self, table: Table, buckets: Buckets | None, run: Run) -> Evidence:
        """The same of a table whose values may stand apart from their records."""
        evidence = self.evidence(table, run)
        return evidence if buckets is None else replace(evidence, release=Release.as_read(table, buckets))

    def require_applicable(self, table: Table, run: Run) -> None:
        """Raise the reason why a requirement cannot be asked of such a table."""
        evidence = self.evidence(table, run)
        for requirement in self.requirements:
            reason = requirement.measure.refuses(evidence)
            if reason is not None:
                raise RefusedError(reason)
            if not isinstance(requirement.measure, ClassMeasure) or isinstance(
                requirement.measure, EstimatedMeasure
            ):
                score = requirement.measure.score(evidence, run.silent())
                _require_certain(requirement, score)
        for part in self.parts:
            part.require_applicable(table, run)

    @cached_property
    def k(self) -> int:
        """How many persons must be alike, whichever of the requirements asks for it."""
        return max((each.required_class_size or 1 for each in self.requirements), default=1)

    @cached_property
    def class_measures(self) -> tuple[ClassMeasure, ...] | None:
        """What is measured, if classes of records alike tell of every requirement whether it is met."""
        found = tuple(each.measure for each in self.requirements if isinstance(each.measure, ClassMeasure))
        return found if len(found) == len(self.requirements) and not self.parts else None

    def failing_classes(self, evidence: Evidence, classes: Classes) -> Flags:
        """Which classes do not meet some requirement; only for requirements that classes tell of."""
        failing = np.zeros(len(classes), dtype=np.bool_)
        for requirement in self.requirements:
            failing |= _failing_classes(requirement, evidence, classes)
        return failing

    def failing(self, table: Table, run: Run) -> Flags:
        """Which records stand in the way of some requirement."""
        failing = np.zeros(len(table), dtype=np.bool_)
        if not len(table):
            return failing
        evidence = self.evidence(table, run)
        for requirement in self.requirements:
            failing |= _failing_records(requirement, evidence, run)
        for part in self.parts:
            failing |= part.failing(table, run)
        return failing

    def unmet(self, table: Table, run: Run) -> list[str]:
        """What is not met by a table, in words: measured as anyone would."""
        return self.unmet_in(self.evidence(table, run), run)

    def unmet_by(self, release: Release, run: Run) -> list[str]:
        """What is not met by a release as it reads."""
        return self.unmet_in(self.evidence_of(release.reading(), release.buckets, run), run)

    def unmet_in(self, evidence: Evidence, run: Run) -> list[str]:
        """The same of evidence that is there already, which keeps the classes that were found."""
        table = evidence.original
        if not len(table):
            return []
        scored = [(each, each.measure.score(evidence, run.silent())) for each in self.requirements]
        unmet = [requirement.verdict(score) for requirement, score in scored if not requirement.met_by(score)]
        for part in self.parts:
            among = f" in {quoted(part.keys)}"
            unmet += [verdict + among for verdict in part.unmet(table, run)]
        return unmet


def _failing_records(requirement: Requirement, evidence: Evidence, run: Run) -> Flags:
    measure = requirement.measure
    if isinstance(measure, ClassMeasure):
        classes = measure.classes(evidence)
        return _failing_classes(requirement, evidence, classes)[classes.of_record]
    score = measure.score(evidence, run.silent())
    values = score.by_record
    if score.status is Status.NOT_ESTIMABLE and values is not None:
        failing = requirement.failing(values)
        if failing.any():  # whoever spoils the score stands in its way
            return failing
    _require_certain(requirement, score)
    worst = requirement.worst(score)
    if isinstance(measure, EstimatedMeasure) and requirement.is_estimated(score):
        values = measure.far_of_records(evidence)
    if values is None or not _is_of_worst(requirement, values, worst):
        raise RefusedError(
            f"a requirement to enforce must be about the worst record, got: {measure.name}, which is not",
            hint="require k, l, t or another model whose score is that of the worst record",
        )
    return requirement.failing(values)


def _failing_classes(requirement: Requirement, evidence: Evidence, classes: Classes) -> Flags:
    """Which classes do not meet it; of an estimate the far end counts, as in the score."""
    measure = requirement.measure
    assert isinstance(measure, ClassMeasure)
    if isinstance(measure, EstimatedMeasure):
        return requirement.failing(measure.far_of_classes(evidence, classes))
    return requirement.failing(measure.of_classes(evidence, classes))


def _require_certain(requirement: Requirement, score: Score) -> None:
    if score.status is not Status.OK and not requirement.is_estimated(score):
        raise RefusedError(
            f"{requirement.measure.name} must be certain to be enforced, got: {score.status}: {score.reason}",
            hint=f"if an estimate is enough, add `at {score.confidence:g}%`" if score.confidence else "",
        )


def _is_of_worst(requirement: Requirement, values: Floats, value: float) -> bool:
    """Whether the score is that of the worst record, or a share of records that must be none."""
    worst = np.min if requirement.measure.better == "high" else np.max
    if np.isclose(worst(values), value, rtol=1e-12, atol=0):
        return True
    none = requirement.level == 0 == requirement.measure.bounds[0] and requirement.sign == "<="
    return none and bool((value > 0) == (values > 0).any())


class EnforcingMethod(Method):
    """Changes the keys until k people are alike in them, and whatever else is asked for holds.

    Write ``enforce``; its release is measured before anyone gets it.
    """

    kinds = COMPARABLE
    gives = Gives(suppressed=True)
    randomness = Randomness(stochastic=False)

    k: int = param(
        5,
        "Smallest number of people in an equivalence class (equal keys); 1 requires nothing.",
        ge=1,
        symbol="k",
        log=True,
        tune=(2, 50),
        drive=True,
    )
    also: Requirements = param(
        Requirements(),
        "Further requirements, such as l >= 3 or t <= 0.2: measures of the worst record.",
        label="Further requirements",
    )
    missing: Missing = param(
        "category", "What a missing key counts for.", choices=MISSING_POLICIES, label="Missing keys"
    )

    def guarantee(self, schema: Schema, keys: Sequence[str]) -> Guarantee:  # noqa: ARG002  — some look
        """What is asked for, of these keys."""
        return Guarantee.of(keys, k=self.k, also=self.also, missing=self.missing)

    def guarantee_for(self, table: Table) -> Guarantee:
        """What is asked for, of the chosen columns of this table."""
        return self.guarantee(table.schema, table.chosen)

    def enforced_requirements(
        self, schema: Schema, columns: Sequence[str]
    ) -> tuple[EnforcedRequirement, ...]:
        """What is asked for: k, or that of combinations of the columns, and what else must hold."""
        return self.guarantee(schema, columns).listing()

    def drive_range(self, table: Table) -> tuple[float, float]:
        """Search no more people alike than there are."""
        low, high = super().drive_range(table)
        return low, max(low, min(high, len(table)))

    def refuses(self, table: Table) -> str | None:
        """Refuse requirements that do not read."""
        reason = super().refuses(table)
        if reason is not None:
            return reason
        try:
            groups = self.guarantee_for(table).groups
            if groups is not None and groups.sorts_in(table.schema) != (groups,):
                return (
                    f"a record is in several of the groups {groups}: name a column, as in `in every region`"
                )
            return None if groups is None else groups.refuses(table)
        except SfumatoError as error:
            return error.message

    def enforce(self, table: Table, guarantee: Guarantee, run: Run) -> Release:
        """Return a release that meets the guarantee."""
        raise NotImplementedError  # abstract: every method in the registry has its own

    @final
    def protect(self, table: Table, run: Run) -> Release:
        """Enforce, then measure what came of it: a release that does not meet the guarantee is refused."""
        guarantee = self.guarantee_for(table)
        if not len(table):
            return Release.unchanged(table)
        if guarantee.groups is not None:
            return self._protect_groups(table, guarantee.groups, run)
        guarantee.require_applicable(table, run)
        try:
            release, evidence = self._protect_and_prove(table, guarantee, run)
        except UnreachableError:
            alike, names = _unify_missing_marks(table, guarantee.keys)
            if not names:
                raise
            release, evidence = self._protect_and_prove(alike, guarantee, run)
            note = f"missing values of {quoted(names)} are shown alike, as codes would distinguish records"
            release = release.with_notes(note)
        if any(release.table.schema[name].kind not in COMPARABLE for name in guarantee.keys):
            return release  # sets of items make no classes
        return replace(release, classes=classes_of(evidence, guarantee.keys).of_record)

    def _in_all(self) -> Self:
        """The same method that asks for all records together what it was to hold in every group."""
        return replace(self, also=Requirements(Groups.cut(each)[0] for each in self.also))

    def _protect_groups(self, table: Table, groups: Groups, run: Run) -> Release:
        """Protect each group alone, and measure both every group and all records together."""
        method, pieces = self._in_all(), []
        for group, rows in Grouping.of(table, groups).rows_in(table).items():
            here = replace(run, randomness=run.randomness.enter_stratum((group,), rows))
            try:
                pieces.append((Origin.of_rows(rows), method.apply(table.take(rows), here)))
            except UnreachableError as error:
                hint = f"judge smaller groups together, as in `{replace(groups, at_least=200)}`; {error.hint}"
                raise UnreachableError(f"in one of the groups, {error.message}", hint=hint) from None
        release = concatenate_releases(pieces, keep_order=not self.gives.other_records)
        unmet = self.unmet(table, release, run)
        if unmet:
            raise UnreachableError(f"{self.name} meets it in each group alone, but not: {'; '.join(unmet)}")
        return release

    def _protect_and_prove(self, table: Table, guarantee: Guarantee, run: Run) -> tuple[Release, Evidence]:
        """A release that meets the guarantee, and the evidence that keeps the classes found in it."""
        release = self.enforce(table, guarantee, run)
        evidence = guarantee.evidence(release.table, run)
        unmet = guarantee.unmet_in(evidence, run)
        if unmet:
            raise UnreachableError(
                f"{self.name} cannot meet the requirements: "
                + "; ".join(each.removeprefix("not met: ") for each in unmet),
                hint="relax the requirements, protect fewer keys, or allow more suppression",
            )
        return release, evidence

    def unmet(self, table: Table, release: Release, run: Run) -> list[str]:
        """What was asked for of a table and a release does not meet, in words."""
        guarantee = self.guarantee_for(table)
        if guarantee.groups is None:
            return guarantee.unmet_by(release, run)
        whole = tuple(each for each in guarantee.requirements if not isinstance(each.measure, GroupMeasure))
        in_all = replace(guarantee, requirements=whole).unmet_by(release, run)
        return [*in_all, *guarantee.unmet_in_groups(table, release, run)]


def _unify_missing_marks(table: Table, keys: Sequence[str]) -> tuple[Table, list[str]]:
    """Show all missing values of the keys as suppressed ones are shown; say of which keys that was needed.

    Who sees the file tells declared codes, empty cells and the code of what was suppressed apart, and so do
    measures; for the methods they are one value.
    """
    changed = []
    for name in keys:
        gone = table.missing(name)
        alike = to_missing(table, name, gone)
        if not alike.frame[name].equals(table.frame[name], null_equal=True):
            table = alike
            changed.append(name)
    return table, changed
