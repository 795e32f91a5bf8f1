"""What local recoding shares: groups of records, the range that each key shows, and which groups may stay."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from sfumato.core.evidence import Evidence
from sfumato.core.method import Gives
from sfumato.core.params import param
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.classes.classes import Classes
from sfumato.data.generalised.ranges import RecordGroups, is_categorical, with_ranges
from sfumato.data.hierarchy.grow import from_codes
from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.data.schema import Column, Kind, Role
from sfumato.data.table import TEXTUAL, Table
from sfumato.errors import quoted
from sfumato.kernels.arrays import Flags, Ints
from sfumato.methods._analyst_notes import RANGES
from sfumato.methods._enforcing import EnforcingMethod, Guarantee
from sfumato.methods._resources import built_hierarchy, declared_hierarchy
from sfumato.methods.recode_like import learning

_NUMBER = re.compile(r"([0-9]{1,300})")


@dataclass(frozen=True, eq=False)
class Canvas:
    """A table whose records are being grouped: what groups would show, and which violate a requirement."""

    table: Table
    guarantee: Guarantee
    run: Run
    exact_ends: bool = False

    @cached_property
    def hierarchies(self) -> Mapping[str, Hierarchy]:
        """The hierarchies that columns of categories name, and those of codes."""
        columns = [self.table.schema[name] for name in self.table.chosen]
        declared = {
            each.name: declared_hierarchy(self.run, each.hierarchy, each.name)
            for each in columns
            if each.hierarchy and is_categorical(self.table, each.name)
        }
        return {**declared, **self.beginnings}

    @cached_property
    def beginnings(self) -> Mapping[str, Hierarchy]:
        """The hierarchies of codes that name none: their beginnings."""
        columns = [self.table.schema[name] for name in self.table.chosen]
        plain = [each.name for each in columns if each.kind is Kind.NOMINAL and not each.hierarchy]
        grown = {name: built_hierarchy(self.table, name, _prefix_hierarchy) for name in plain}
        return {name: found for name, found in grown.items() if found is not None}

    @cached_property
    def covers_missing(self) -> bool:
        """Whether missing keys are covered by the wildcard: where they are not a value of their own."""
        measures = (requirement.measure for requirement in self.guarantee.requirements)
        return any(getattr(measure, "missing", "category") != "category" for measure in measures)

    @cached_property
    def k(self) -> int:
        """How many records a group needs at least."""
        return min(self.guarantee.k, len(self.table))

    @cached_property
    def needs_only_k(self) -> bool:
        """Whether any group of k records may stand."""
        whose = self.table.schema.only_role(Role.PERSON)
        by_size = all(each.required_class_size is not None for each in self.guarantee.requirements)
        return by_size and whose is None and not self.guarantee.parts

    def show_groups(self, groups: RecordGroups) -> Table:
        """The table in which each key shows what the record's group spans."""
        self.run.check()
        return with_ranges(
            self.table,
            self.table.chosen,
            groups,
            hierarchies=self.hierarchies,
            sets_above=self.beginnings.keys(),
            cover_missing=self.covers_missing,
            exact_ends=self.exact_ends,
        )

    def failing(self, groups: RecordGroups) -> Flags:
        """Which groups would not meet the guarantee."""
        if not self._follows_from_groups:
            records = self.guarantee.failing(self.show_groups(groups), self.run)
            return groups.totals(records) > 0
        classes = Classes.known(
            self.table,
            self.guarantee.keys,
            groups.of_record,
            groups.sizes,
            examples=groups.order[groups.starts[:-1]],
            counts={},
        )
        return self.guarantee.failing_classes(self._evidence, classes)

    @cached_property
    def _evidence(self) -> Evidence:
        return self.guarantee.evidence(self.table, self.run)

    @cached_property
    def _follows_from_groups(self) -> bool:
        """Whether the records of a group alone say if it fails: they are alike to nobody else."""
        keys = set(self.guarantee.keys)
        measures = self.guarantee.class_measures
        return measures is not None and all(set(each.keys(self._evidence)) <= keys for each in measures)

    def release(self, groups: RecordGroups, notes: tuple[str, ...] = ()) -> Release:
        """Show what the groups span, and say how many cells no longer say anything."""
        missing = [self.table.missing(name) for name in self.table.chosen]
        mixed = sum(
            int(groups.sizes[(totals > 0) & (totals < groups.sizes)].sum())
            for totals in map(groups.totals, missing)
        )
        if self.beginnings:
            notes += (f"codes of {quoted(self.beginnings)} are shown by the prefix that each group shares",)
        if mixed:
            notes += (f"{mixed} cells show the wildcard, as the key is missing for others in their group",)
        figures = {"groups": len(groups.sizes), "cells_covered": mixed}
        return Release.record_by_record(self.show_groups(groups), notes=notes, figures=figures)


def _prefix_hierarchy(_: Column, present: pl.Series) -> Hierarchy | None:
    return from_codes(present)


class LocalRecoding(EnforcingMethod):
    """Groups the records and shows each key as the range of its group; a method writes ``group``."""

    analyst_note = RANGES
    gives = Gives(generalised=True, suppressed=True)
    cost = "n log n"

    exact_ends: bool = param(
        False,
        (
            "End ranges at the lowest and highest value of a group, as in the paper, instead of at round "
            "numbers."
        ),
        hint="these ends are values of real people",
        advanced=True,
    )

    def group(self, canvas: Canvas) -> tuple[RecordGroups, tuple[str, ...]]:
        """Put the records into groups that meet the guarantee; and what there is to say of it."""
        raise NotImplementedError  # abstract: every method in the registry has its own

    def refuses(self, table: Table) -> str | None:
        """Refuse keys that were generalised before: what they span cannot be told from a group."""
        return self.refuses_generalised(table) or super().refuses(table)

    def enforce(self, table: Table, guarantee: Guarantee, run: Run) -> Release:
        """Group the records, and show what the groups span."""
        canvas = Canvas(table, guarantee, run, self.exact_ends)
        groups, notes = self.group(canvas)
        return self.make_release(canvas, groups, notes)

    def make_release(self, canvas: Canvas, groups: RecordGroups, notes: tuple[str, ...]) -> Release:
        """Make the release: every key shows what its group spans, and other tables can be shown so too."""
        return learning(canvas.release(groups, notes), canvas.table.chosen)


def natural_places(categories: pl.Series) -> Ints | None:
    """The place of each text in the order in which anyone would list them, as G3, G5, G15, SES.

    None if they have no such order: fewer than half of them have a number.
    """
    if categories.dtype not in TEXTUAL:
        return None
    parts = [_NUMBER.split(text) for text in categories.cast(pl.String)]
    if 2 * sum(len(each) > 1 for each in parts) < max(len(parts), 1):
        return None
    keys = [[int(part) if i % 2 else part for i, part in enumerate(each)] for each in parts]
    places = np.empty(len(keys), dtype=np.int64)
    places[sorted(range(len(keys)), key=keys.__getitem__)] = np.arange(len(keys))
    return places


def join_failing_groups(groups: RecordGroups, canvas: Canvas) -> RecordGroups:
    """Join groups that fail with their neighbours until none fails.

    A group grows by its own size, from the fourth time on by twice as much each time. The union of classes
    is no farther from the table than the farthest of them, nor less diverse than the least diverse, so that
    joining never does harm; it ends with one group at the latest.
    """
    starts, rounds = groups.starts, 0
    while len(starts) > 2:  # noqa: PLR2004  — a group and the end of it
        fails = canvas.failing(RecordGroups(groups.order, starts))
        if not fails.any():
            break
        times = 2 ** min(max(rounds - 2, 0), 20)
        starts, rounds = np.delete(starts, _needless(fails, starts, times)), rounds + 1
    return RecordGroups(groups.order, starts)


def _needless(fails: Flags, starts: Ints, times: int) -> Ints:
    """The borders to take away so that failing groups grow: of those side by side every other one.

    A group grows to the right, and at the end to the left.
    """
    numbers = np.arange(len(fails))
    before = np.maximum.accumulate(np.where(fails, -1, numbers))  # the last that does not fail
    grows = np.flatnonzero(fails & ((numbers - before) % 2 == 1))
    ends = starts[grows + 1] + times * (starts[grows + 1] - starts[grows])
    lows = np.minimum(starts[grows], starts[grows] - (ends - starts[-1]))  # what is beyond the end goes left
    first = np.searchsorted(starts, np.maximum(lows, 0), side="right")
    last = np.searchsorted(starts, np.minimum(ends, starts[-1]), side="left")
    covered = np.zeros(len(starts) + 1, dtype=np.int64)
    np.add.at(covered, first, 1)
    np.add.at(covered, last, -1)
    return np.flatnonzero(np.cumsum(covered)[: len(starts)])
