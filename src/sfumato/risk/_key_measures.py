"""What measures of classes share: the keys, the sensitive columns, and how a class speaks for its records."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np

from sfumato.core.evidence import Evidence
from sfumato.core.intruder_view import classes_of, joining, seen_table, why_persons_unknown
from sfumato.core.measure import ClassMeasure, Counting, Laws, Measure, Needs, Score, Status, Threat
from sfumato.core.params import Columns, param
from sfumato.core.run import Run
from sfumato.data.classes.classes import MISSING_POLICIES, Classes, Missing
from sfumato.data.persons import persons_of
from sfumato.data.schema import COMPARABLE, Role
from sfumato.data.table import Table
from sfumato.errors import quoted
from sfumato.kernels.arrays import Flags, Floats, Ints

EMPTY = "the table has no records"
SENSITIVE_HELP = "The sensitive columns; the score is that of the worst."

#: The laws of what counts the persons who are alike: coarser or fewer keys put classes together.
CLASS_LAWS = Laws(coarser_is_safer=True, knowledge_is_risk=True, copies_hide_nobody=True)
#: The laws where records are counted, not persons.
RECORD_LAWS = replace(CLASS_LAWS, copies_hide_nobody=False)

#: What is told beside a score.
Facts = Mapping[str, float | int | str]


class KeyMeasure(Measure):
    """Looks at the equivalence classes of the table that an intruder sees."""

    aspect = "risk"
    threat: ClassVar[Threat] = "singling out"
    needs = Needs(release=False)
    counts = Counting(people=True, laws=Laws(copies_hide_nobody=True))
    kinds = COMPARABLE
    cost = "n log n"

    missing: Missing = param("category", "What a missing key counts for.", choices=MISSING_POLICIES)

    def key_columns(self, evidence: Evidence) -> tuple[str, ...]:
        """The columns whose values make records alike, whatever their kind."""
        return evidence.known_columns

    def columns(self, evidence: Evidence) -> tuple[str, ...]:
        """Those of the columns wanted that are of a kind to be compared."""
        return evidence.of_kinds(self.key_columns(evidence), self.kinds)

    def keys(self, evidence: Evidence) -> tuple[str, ...]:
        """The columns whose values make records alike."""
        return self.columns(evidence)

    def refuses(self, evidence: Evidence) -> str | None:
        """Say which of the keys cannot be compared: to leave one out would overstate the safety."""
        reason = super().refuses(evidence)
        if reason is not None:
            return reason
        usable = self.columns(evidence)
        others = [name for name in self.key_columns(evidence) if name not in usable]
        if others:
            return self._why_kinds("keys", others, evidence.original)
        if not self.keys(evidence):
            return f"{self.name} needs a key (quasi-identifier) beside the sensitive columns"
        return None

    def _why_kinds(self, what: str, names: Sequence[str], table: Table) -> str:
        """Which columns are of kinds that it cannot compare."""
        kinds = " or ".join(sorted(self.kinds))
        listed = ", ".join(f"`{name}` ({table.schema[name].kind})" for name in names)
        return f"the {what} of {self.name} must be {kinds}, got: {listed}"

    def why_not_estimable(self, evidence: Evidence) -> str | None:
        """Say that there is nobody to look at, or that nobody knows whose the records are."""
        return why_persons_unknown(evidence) if len(seen_table(evidence)) else EMPTY

    def classes(self, evidence: Evidence) -> Classes:
        """The classes of the table under the policy for missing keys."""
        joined = self.counts.joins_person_records
        return classes_of(evidence, self.keys(evidence), missing=self.missing, joined=joined)


class SensitiveMeasure(KeyMeasure):
    """Looks at the sensitive values of the records in each equivalence class."""

    threat = "inference"
    counts = replace(KeyMeasure.counts, compares_equal=True)

    sensitive: Columns = param(("@sensitive",), SENSITIVE_HELP)

    def fills_values(self) -> bool:
        """Whether suppressed values are guessed, as by all that take the release alone."""
        return self.counts.compares_equal

    def among_people(self, evidence: Evidence) -> Evidence:
        """The evidence as it is: the value of a counterfeit is one of its bucket's."""
        return evidence

    def keys(self, evidence: Evidence) -> tuple[str, ...]:
        """The columns whose values make records alike; what is to be learnt is not known before."""
        learnt = set(self.sensitive_columns(evidence))
        return tuple(name for name in self.columns(evidence) if name not in learnt)

    def seen_values(self, evidence: Evidence) -> Table:
        """What tells the sensitive values: where they stand apart, how often each is in a bucket."""
        buckets = evidence.buckets
        if buckets is None:
            return seen_table(evidence)
        there = replace(evidence, release=evidence.release and evidence.release.with_table(buckets.values))
        return evidence.remember("values in buckets", lambda: seen_table(there))

    def classes(self, evidence: Evidence) -> Classes:
        """The classes of the table; of values that stand apart from their records, the buckets.

        Keys that stand beside the values tell records of a bucket apart.
        """
        buckets, learnt = evidence.buckets, self.sensitive_columns(evidence)
        if buckets is None or not set(learnt) & set(buckets.names):
            return super().classes(evidence)
        keys = self.keys(evidence)
        name = ("buckets", keys, learnt)
        return evidence.remember(name, lambda: buckets.classes(self.seen_values(evidence), keys, learnt))

    def sensitive_columns(self, evidence: Evidence) -> tuple[str, ...]:
        """The sensitive columns that the table still has, sorted by name."""
        schema = seen_table(evidence).schema
        wanted = evidence.original.schema.resolve(self.sensitive)
        return tuple(sorted(name for name in wanted if name in schema))

    def refuses(self, evidence: Evidence) -> str | None:
        """Say why there is nothing to learn, or nothing to learn it by."""
        reason = super().refuses(evidence)
        if reason is not None:
            return reason
        learnt, table = self.sensitive_columns(evidence), seen_table(evidence)
        if not learnt:
            return f"{self.name} needs a sensitive column, and the table has none"
        others = [name for name in learnt if table.schema[name].kind not in self.kinds]
        if others:
            return self._why_kinds("sensitive columns", others, table)
        apart = set() if evidence.buckets is None else set(learnt) & set(evidence.buckets.names)
        if apart and len(apart) < len(learnt):
            found = f"{len(apart)} in buckets and {len(learnt) - len(apart)} beside their records"
            return f"{self.name} cannot judge both at once: {found}; name some of them by `sensitive`"
        if apart and (links := joining(evidence)):
            names = quoted(links, " and ")
            return f"{self.name} cannot judge buckets where {names} links the records of several of them"
        return None


class WorstClassMeasure(KeyMeasure, ClassMeasure):
    """Gives a number to each class; the worst counts. Write ``of_classes``."""

    def of_columns(self, evidence: Evidence, classes: Classes) -> Mapping[str, Floats]:  # noqa: ARG002
        """The number of each class for each column that has its own."""
        return {}

    def facts(self, evidence: Evidence, classes: Classes, worst: Floats) -> Facts:  # noqa: ARG002
        """What else to tell."""
        return {}

    def endless(self) -> str:
        """Why the worst is infinite."""
        return "the result is infinite"

    def measure(self, evidence: Evidence, run: Run) -> Score:  # noqa: ARG002  — no chance is used
        """Find the worst class of the worst column."""
        classes = self.classes(evidence)
        worst_of = np.min if self.better == "high" else np.max
        columns = self.of_columns(evidence, classes)
        values = self.worst_column(columns) if columns else self.of_classes(evidence, classes)
        value = float(worst_of(values))
        details = {
            "records": seen_table(evidence).n_records,
            "classes": len(classes),
            "incomplete_records": classes.incomplete,
            **self.facts(evidence, classes, values),
        }
        if not math.isfinite(value):
            return Score(math.nan, status=Status.NOT_ESTIMABLE, reason=self.endless(), details=details)
        worst: Literal["low", "high"] = "low" if self.better == "high" else "high"
        return Score(
            value=value,
            by_column={name: float(worst_of(column)) for name, column in columns.items()},
            by_record=by_original(evidence, of_records(classes, values), worst=worst),
            details=details,
        )

    def worst_column(self, columns: Mapping[str, Floats]) -> Floats:
        """The number of each class for its worst column."""
        worst: Floats = (np.minimum if self.better == "high" else np.maximum).reduce(list(columns.values()))
        return worst


class WorstColumnMeasure(SensitiveMeasure, WorstClassMeasure):
    """Gives a number to each class for each sensitive column; the worst counts. Write ``per_class``."""

    counts = replace(SensitiveMeasure.counts, classes_only=True)

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Find the worst class of the worst column; what is known of these tells the others, too."""
        score, learnt = super().measure(evidence, run), self.sensitive_columns(evidence)
        known = [name for name in learnt if name in self.columns(evidence)]
        if not known or len(known) == len(learnt) or evidence.sampling.ignore_person_links:
            return score
        others = Columns(name for name in learnt if name not in known)
        informed = replace(self, sensitive=others).measure(evidence, run)
        return self._worse(score, informed, f"with {quoted(known, ' and ')} known")

    def per_class(self, evidence: Evidence, classes: Classes, name: str) -> Floats:
        """The number of each class for a column."""
        raise NotImplementedError  # abstract

    def of_columns(self, evidence: Evidence, classes: Classes) -> Mapping[str, Floats]:
        """The number of each class for each sensitive column."""
        return {name: self.per_class(evidence, classes, name) for name in self.sensitive_columns(evidence)}

    def of_classes(self, evidence: Evidence, classes: Classes) -> Floats:
        """The number of each class for its worst column."""
        return self.worst_column(self.of_columns(evidence, classes))

    def always_failing_by(self, evidence: Evidence, classes: Classes, name: str, level: float) -> Floats:  # noqa: ARG002
        """The share of each class that one column makes fail, however finely it is divided."""
        return np.zeros(len(classes))

    def always_failing(self, evidence: Evidence, classes: Classes, level: float) -> Floats:
        """The largest share that some column makes fail; missing values at their worst are not thought of."""
        found = np.zeros(len(classes))
        for name in self.sensitive_columns(evidence) if self.missing != "worst" else ():
            found = np.maximum(found, self.always_failing_by(evidence, classes, name, level))
        return found


def by_original(evidence: Evidence, values: Floats, *, worst: Literal["low", "high"]) -> Floats | None:
    """What is known of each record of the seen table, in the order of the original's records.

    An original that was released several times has the worst of its values, one that was not has NaN; where
    records do not map there is nothing to say.
    """
    if evidence.protected is None:
        return values
    rows = evidence.source_rows
    if rows is None:
        return None
    sign = 1.0 if worst == "high" else -1.0
    known = rows >= 0
    spread = np.full(len(evidence.original), -np.inf)
    np.maximum.at(spread, rows[known], sign * values[known])
    return np.where(np.isneginf(spread), np.nan, sign * spread)


def worst_by_person(table: Table, risks: Floats) -> Floats:
    """The highest risk of each person's records; of each record where no column tells whose it is."""
    if table.schema.only_role(Role.PERSON) is None:
        return risks
    persons, owners = np.unique(persons_of(table), return_inverse=True)
    highest = np.full(len(persons), -np.inf)
    np.maximum.at(highest, owners, risks)
    return highest


def share_of_people(classes: Classes, chosen: Flags) -> float:
    """The share of the records whose class is chosen; of the persons with such a record, where known."""
    table = classes.table
    if table.n_records and table.schema.only_role(Role.PERSON) is None:
        return count_records(classes, chosen) / table.n_records
    return float(worst_by_person(table, of_records(classes, chosen)).mean())


def counted_in(table: Table) -> str:
    """What is counted: persons where a column tells whose record it is."""
    return "records" if table.schema.only_role(Role.PERSON) is None else "persons"


def yes_or_no(*, holds: bool) -> str:
    """Say whether a model holds, for the details of a score."""
    return "yes" if holds else "no"


def count_records(classes: Classes, chosen: Flags) -> int:
    """The number of records whose class is chosen."""
    return int(classes.members[chosen].sum())


def of_records(classes: Classes, values: Floats | Ints | Flags) -> Floats:
    """The value of each record's class."""
    return values.astype(np.float64)[classes.of_record]
