"""Judges of recodings: which classes of a node do not meet what is asked, and what can be done with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from sfumato.core.evidence import Evidence
from sfumato.core.measure import ClassMeasure
from sfumato.core.requirement import Requirement
from sfumato.core.run import Run
from sfumato.data.classes.classes import Classes, Counts
from sfumato.data.generalised.levels import GeneralisationLattice
from sfumato.data.generalised.suppressing import to_wildcard
from sfumato.data.schema import Role
from sfumato.data.table import Table
from sfumato.kernels.arrays import Flags, Ints
from sfumato.methods._enforcing import Guarantee
from sfumato.methods._recoding.search import LatticeNode, Leftover, NodeJudge

#: What sums of shares may be off by, as a share of the records.
_FLOAT_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class RecodingProblem:
    """Records that are recoded together, and what is asked of them."""

    table: Table
    lattice: GeneralisationLattice
    guarantee: Guarantee
    run: Run

    def take(self, rows: Ints) -> RecodingProblem:
        """Some of the records, with the same hierarchies."""
        table = self.table.take(rows)
        keys = [key.take(rows) for key in self.lattice.keys]
        return replace(self, table=table, lattice=GeneralisationLattice.of(keys, table.weights))

    def records(self, node: LatticeNode, failing: Flags) -> Flags:
        """The records of the classes of a node that fail."""
        return failing[node.of_combination[self.lattice.of_record]]

    def leftover(self, node: LatticeNode, failing: Flags) -> Leftover | None:
        """Build the release with the suppressed records covered, then without them, and measure both."""
        rows = self.records(node, failing)
        released = self.lattice.write(self.table, node.levels)
        if not self.guarantee.unmet(cover_by_wildcard(released, self.guarantee.keys, rows), self.run):
            return "suppressed"
        if rows.all() or self.guarantee.unmet(released.take(np.flatnonzero(~rows)), self.run):
            return None
        return "dropped"


def judge_of(part: RecodingProblem, limit: int) -> NodeJudge:
    """The quick judge where classes tell all, else the one that builds each release."""
    evidence, measures = evidence_of_classes(part), part.guarantee.class_measures
    if evidence is not None and measures is not None:
        return ByClasses(part, evidence, limit, measures)
    return ByReleases(part)


def evidence_of_classes(part: RecodingProblem) -> Evidence | None:
    """What measures of classes are asked of, if the classes of nodes tell all that is asked; else None."""
    evidence, measures = part.guarantee.evidence(part.table, part.run), part.guarantee.class_measures
    is_determined = measures is not None and all(_sees(each, evidence, part) for each in measures)
    return evidence if is_determined else None


def _sees(measure: ClassMeasure, evidence: Evidence, part: RecodingProblem) -> bool:
    """Whether the classes of a node are those that a measure looks at, whatever policy it has."""
    as_category = getattr(measure, "missing", "category") == "category"
    same_keys = measure.keys(evidence) == part.guarantee.keys
    return same_keys and (as_category or not any(key.has_missing for key in part.lattice.keys))


@dataclass(eq=False)
class ByClasses:
    """Judges classes by the measures themselves, on counts that were rolled up."""

    part: RecodingProblem
    evidence: Evidence
    limit: int
    measures: tuple[ClassMeasure, ...]
    rules_out = True  # small classes are divided into smaller ones

    @cached_property
    def size_requirements(self) -> tuple[Requirement, ...]:
        """The requirements that ask for large classes, which grow with every level."""
        return tuple(
            each for each in self.part.guarantee.requirements if each.required_class_size is not None
        )

    @cached_property
    def min_class_size(self) -> int:
        """How many persons a class must have for them."""
        return max((each.required_class_size or 0 for each in self.size_requirements), default=0)

    @cached_property
    def others(self) -> Guarantee:
        """What is asked besides."""
        rest = tuple(each for each in self.part.guarantee.requirements if each not in self.size_requirements)
        return replace(self.part.guarantee, requirements=rest)

    @cached_property
    def counts_persons(self) -> bool:
        """Whether a column tells whose record it is."""
        return self.part.table.schema.only_role(Role.PERSON) is not None

    @cached_property
    def monotone(self) -> bool:
        """Sizes are at any limit; other models only if nothing is suppressed, and if all is known."""
        if not self.others.requirements:
            return True
        if self.limit or self.counts_persons:
            return False
        whole = not any(self.part.table.missing(name).any() for name in self.sensitive_columns)
        return whole and all(each.class_values.survive_merging for each in self.measures)

    @cached_property
    def sensitive_columns(self) -> tuple[str, ...]:
        """The columns whose values the measures count in classes."""
        return tuple(
            sorted({name for each in self.measures for name in each.sensitive_columns(self.evidence)})
        )

    @cached_property
    def needs_class_of_record(self) -> bool:
        """Whether records must be told their class."""
        return bool(self.others.requirements) or self.counts_persons

    @cached_property
    def base_counts(self) -> dict[str, Counts]:
        """How often sensitive values stand in each combination of values; none where persons are counted."""
        if self.counts_persons:
            return {}
        base = self._classes(
            lambda: self.part.lattice.of_record, self.part.lattice.counts, self.part.lattice.rows, {}
        )
        return {name: base.counts(name) for name in self.sensitive_columns}

    def _classes(
        self, of_record: Callable[[], Ints], members: Ints, examples: Ints, counts: Mapping[str, Counts]
    ) -> Classes:
        return Classes.known(
            self.part.table, self.part.guarantee.keys, of_record, members, examples=examples, counts=counts
        )

    def _of_node(self, node: LatticeNode) -> Classes:
        rows = self.part.lattice.rows[node.classes.firsts]

        def of_record() -> Ints:
            return node.of_combination[self.part.lattice.of_record]

        return self._classes(of_record, node.classes.counts, rows, node.counts)

    def failing(self, node: LatticeNode, limit: int) -> tuple[Flags, bool]:
        """Look at the sizes first: too many small classes are too many in all nodes below."""
        counts = node.classes.counts
        sizes = self._of_node(node).persons if self.counts_persons else counts
        small = sizes < self.min_class_size
        if int(counts[small].sum()) > limit:
            return small, True
        if not self.others.requirements:
            return small, False
        classes = self._of_node(node)
        failing = small | self.others.failing_classes(self.evidence, classes)
        if int(counts[failing].sum()) <= limit:
            return failing, False
        return failing, self.monotone or self._fails_below(classes, small, limit)

    def _fails_below(self, classes: Classes, small: Flags, limit: int) -> bool:
        """Whether too many must be suppressed in all nodes below, since no division of the classes helps."""
        if self.counts_persons:
            return False
        shares = small.astype(np.float64)
        for requirement, measure in zip(
            self.others.requirements, self.others.class_measures or (), strict=True
        ):
            own = measure.always_failing(self.evidence, classes, requirement.level)
            shares = np.maximum(shares, own)
        return bool(shares @ classes.members > limit + _FLOAT_TOLERANCE * len(self.part.table))

    def leftover(self, node: LatticeNode, failing: Flags) -> Leftover | None:
        """Whether the suppressed records are a class that meets what is asked, or must be left out."""
        if self._meets_without_failing(node, failing):
            return "suppressed"
        if failing.all():
            return None
        if all(each.class_values.independent for each in self.measures):
            return "dropped"
        return self.part.leftover(node, failing)

    def _meets_without_failing(self, node: LatticeNode, failing: Flags) -> bool:
        if not self.needs_class_of_record:
            together = int(node.classes.counts[failing].sum())
            return bool(together >= self.min_class_size)
        joined = np.where(failing, 0, np.cumsum(~failing))
        n_joined = int((~failing).sum()) + 1
        members = np.bincount(joined, node.classes.counts, minlength=n_joined).astype(np.int64)
        rows = np.zeros(n_joined, dtype=np.int64)
        rows[joined[::-1]] = self.part.lattice.rows[node.classes.firsts][::-1]
        counts = {name: each.join_classes(joined, n_joined) for name, each in node.counts.items()}
        classes = self._classes(
            lambda: joined[node.of_combination[self.part.lattice.of_record]], members, rows, counts
        )
        return not self.part.guarantee.failing_classes(self.evidence, classes).any()


@dataclass(eq=False)
class ByReleases:
    """Judges by building the release of each node: for what classes do not tell."""

    part: RecodingProblem
    rules_out = False  # nobody knows what becomes of finer classes
    base_counts: ClassVar[Mapping[str, Counts]] = {}  # nothing is rolled up

    def failing(self, node: LatticeNode, limit: int) -> tuple[Flags, bool]:  # noqa: ARG002
        """Measure every record; a class fails as a whole."""
        released = self.part.lattice.write(self.part.table, node.levels)
        records = self.part.guarantee.failing(released, self.part.run)
        of_record = node.of_combination[self.part.lattice.of_record]
        failing: Flags = np.bincount(of_record[records], minlength=len(node.classes.counts)) > 0
        return failing, False

    def leftover(self, node: LatticeNode, failing: Flags) -> Leftover | None:
        """Measure the release with the suppressed records covered, then without them."""
        return self.part.leftover(node, failing)


def cover_by_wildcard(table: Table, keys: Sequence[str], rows: Flags) -> Table:
    """Cover all keys of some records by the wildcard."""
    for name in keys:
        table = to_wildcard(table, name, rows)
    return table
