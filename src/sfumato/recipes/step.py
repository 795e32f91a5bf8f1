"""A step: one method on some columns, within strata, for households together."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain
from typing import Any, Self

import numpy as np
import polars as pl

from sfumato.core import registry
from sfumato.core.budget import NO_GUARANTEE
from sfumato.core.memory import free_memory
from sfumato.core.method import Method
from sfumato.core.origin import Origin
from sfumato.core.params import Columns, PerColumn
from sfumato.core.release import BELOW_K, Byproducts, Provenance, Release, concatenate_releases
from sfumato.core.run import Run, Stopwatch
from sfumato.data.generalised.intervals import is_interval
from sfumato.data.persons import persons_of
from sfumato.data.records import as_spec, read_record
from sfumato.data.schema import Schema
from sfumato.data.strata import Stratum, strata
from sfumato.data.table import Table
from sfumato.errors import (
    DataError,
    PlanError,
    UnknownNameError,
    UnreachableError,
    count_noun,
    quoted,
)
from sfumato.kernels.arrays import Flags, Ints, count_distinct

#: So many pieces of work at most the strata of a table are.
_CHUNKS = 16


@dataclass(frozen=True)
class StepSpec:
    """What a plan says of a step."""

    method: str
    columns: tuple[str, ...] = ()
    within: tuple[str, ...] = ()
    tuned: tuple[str, ...] = ()
    together: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Step:
    """One method on some columns.

    ``columns`` are names, or words such as ``@key`` and ``@continuous`` that stand for all columns of a
    role or kind (empty: the keys and undecided columns the method can take, or everything it can take when
    none of them is a key, without those that group the records).
    ``within`` names columns whose combinations are protected apart from each other; ``together`` names
    the column (a household number) whose records share one value and are treated as one. ``tuned`` names the
    parameters that someone moved on the data, where that voids a guarantee.
    """

    method: Method
    columns: tuple[str, ...] = ()
    within: tuple[str, ...] = ()
    together: str = ""
    tuned: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for key in ("columns", "within", "tuned"):
            value = getattr(self, key)
            if isinstance(value, str):  # it would be taken letter by letter
                raise PlanError(f"`{key}` of a step must be a list of names, got: the text `{value}`")
            object.__setattr__(self, key, tuple(value))

    def with_drive(self, value: float) -> Self:
        """The step at a setting of its drive that is looked for on the data: of an ε it is noted."""
        method, drive = self.method.with_drive(value), self.method.drive()
        epsilon = self.method.randomness.epsilon_parameter
        moved = drive is not None and drive.name == epsilon
        return replace(self, method=method, tuned=(epsilon,) if moved else self.tuned)

    @property
    def caution(self) -> str:
        """What voids the guarantee of a private method; empty if nothing does."""
        epsilon = self.method.randomness.epsilon_parameter
        if not epsilon or epsilon not in self.tuned:
            return ""
        return f"`{epsilon}` was chosen by looking at the data: {NO_GUARANTEE}"

    @cached_property
    def digest(self) -> str:
        """The fingerprint of the recipe that is this step alone."""
        return digest_of([self])

    def resolve(self, schema: Schema) -> tuple[str, ...]:
        """The columns this step protects in a table of this schema."""
        if not self.columns:
            given = (getattr(self.method, each.name) for each in self.method.parameters())
            named_columns = [
                name for each in given if isinstance(each, Columns) for name in schema.resolve(each)
            ]
            apart = {*self.within, self.together, *named_columns}
            if self.method.takes.whole_records:
                personal = schema.said_of_people()
                return tuple(name for name in personal if name not in apart)
            able = [c.name for c in schema.columns if c.kind in self.method.kinds and c.name not in apart]
            return schema.select(able).known_columns()
        named = set(
            self.columns
        )  # a column that is named must be of a fitting kind, one of a group may not be
        return tuple(
            name
            for name in schema.resolve(self.columns)
            if name in named or schema[name].kind in self.method.kinds
        )

    def changes(self, schema: Schema) -> tuple[str, ...]:
        """The columns this step changes: those it protects, and what follows them."""
        return (*self.resolve(schema), *self.method.followers(schema))

    def faults(self, schema: Schema) -> Iterator[str]:
        """What is wrong with this step for a table of this schema, found without running it."""
        try:
            columns, followers = self.resolve(schema), set(self.method.followers(schema))
        except UnknownNameError as error:
            yield error.line
            return
        strange = sorted(set(self.tuned) - {declared.name for declared in self.method.parameters()})
        if strange:
            yield f"{self.method.name}: `tuned` must name its parameters, got: {quoted(strange)}"
        name, kinds = self.method.name, " or ".join(sorted(self.method.kinds))
        if not columns:
            yield f"{name} needs a {kinds} column to protect, got: none"
        wrong = [each for each in columns if schema[each].kind not in self.method.kinds]
        if wrong:
            have = ", ".join(f"`{each}` ({schema[each].kind})" for each in wrong)
            yield f"{name} protects {kinds} columns, got: {have}"
        others = (*self.within, *([self.together] if self.together else []))
        yield from (f"{name}: there is no column `{each}`" for each in others if each not in schema)
        if self.method.gives.deassociated and others:
            yield f"{name} works on all records at once: it takes neither `within` nor `together`"
        if len(set(self.within)) < len(self.within):
            yield f"{name}: `within` must name each column once, got: {quoted(self.within)}"
        if self.together and self.method.gives.new_columns:  # which are of each record, not of the first
            yield f"{name} adds columns, so it cannot be used with `together`, got: `{self.together}`"
        both = sorted({*columns, *followers} & set(others))
        if both:
            yield f"{name}: a column cannot both be protected and group the records: {quoted(both)}"
        both = sorted(followers & set(columns))
        if both:
            yield f"{name}: a column cannot both be protected and follow another: {quoted(both)}"
        yield from self._parameter_faults(schema, set(columns) - followers)

    def _parameter_faults(self, schema: Schema, columns: set[str]) -> Iterator[str]:
        for declared in self.method.parameters():
            value, what = getattr(self.method, declared.name), f"`{declared.name}` of {self.method.name}"
            strangers = set(value.columns) - columns if isinstance(value, PerColumn) else set()
            if strangers:
                yield f"{what} names columns it does not protect: {quoted(sorted(strangers))}"
            if isinstance(value, Columns):
                try:
                    schema.resolve(value)
                except UnknownNameError as error:
                    yield f"{what}: {error.line}"
                both = sorted(columns & set(value))
                if both:
                    yield f"{what} names columns that are protected themselves: {quoted(both)}"

    def _real(self, schema: Schema) -> Iterator[str]:
        """Say which columns stay as they are beside others that a method draws anew for whole records."""
        drawn = {*self.resolve(schema), *self.within}
        real = [name for name in schema.said_of_people() if name not in drawn]
        if real and self.method.takes.whole_records:
            name = self.method.name
            yield f"{quoted(real)} keep their real values in each record: {name} synthesises only the rest"

    def warnings(self, schema: Schema) -> Iterator[str]:
        """What is allowed but should be known."""
        columns = set(self.changes(schema))
        yield from self._real(schema)
        for group in schema.related:
            inside, outside = sorted(columns & set(group)), sorted(set(group) - columns)
            if inside and outside:
                yield (
                    f"{quoted(inside)} and {quoted(outside)} are strongly related, but {self.method.name} "
                    f"protects only {quoted(inside)}"
                )

    def apply(self, table: Table, run: Run) -> Release:
        """Protect the table."""
        watch = Stopwatch()
        columns = self.resolve(table.schema)
        faults = list(self.faults(table.schema))
        if faults:
            raise PlanError.gather(f"the step {self.method.name}", faults)
        aimed = table.aimed_at(columns)
        release = (_protect_together if self.together else _protect_within)(self, aimed, run)
        if self.within or self.together:
            self._require_guarantee(aimed, release, run)
        notes = [
            *self._real(table.schema),
            *_lone_groups(release, columns),
            below_k_note(release.figures),
            self.caution,
        ]
        byproducts = release.with_notes(*filter(None, notes)).byproducts
        if self.caution:
            byproducts = replace(byproducts, budget=byproducts.budget.unkept())
        taken = Provenance(
            method=self.method.name,
            parameters=self.method.to_dict(),
            columns=self.changes(table.schema),
            within=self.within,
            together=self.together,
            byproducts=byproducts,
            seconds=watch.seconds,
        )
        free_memory(len(table))
        tables = {name: each.aimed_at(()) for name, each in release.tables.items()}
        return replace(release, tables=tables, steps=(taken,), byproducts=Byproducts())

    def _require_guarantee(self, table: Table, release: Release, run: Run) -> None:
        """Raise if what holds of each part of a release does not hold of the whole."""
        unmet = self.method.unmet(table, release, run)
        if unmet:
            raise UnreachableError(
                f"{self.method.name} meets it in each part, but not in the whole release: {'; '.join(unmet)}",
                hint="leave out `within` and `together`, or require less",
            )

    def to_dict(self) -> dict[str, Any]:
        """Say the step as the plan does."""
        method, parameters = self.method.name, self.method.to_dict()
        return as_spec(StepSpec(method, self.columns, self.within, self.tuned, self.together, parameters))

    @classmethod
    def from_dict(cls, spec: Mapping[str, Any]) -> Self:
        """Read the plan's table for a step."""
        read = read_record(StepSpec, spec, "the step")
        method = registry.method(read.method).from_dict(read.parameters)
        return cls(method, read.columns, read.within, read.together, read.tuned)


def digest_of(steps: Sequence[Step]) -> str:
    """A fingerprint of what steps say: the same for ``window=50`` and ``window=50.0``."""
    text = json.dumps([step.to_dict() for step in steps], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def below_k_note(figures: Mapping[str, float]) -> str:
    """Say how many records missing values tell from others, where groups were to be of k."""
    count = int(figures.get(BELOW_K, 0))
    if not count:
        return ""
    return (
        f"in a class of fewer than k, because of missing values: {count_noun(count, 'record')}; complete the "
        "values before, or use a method that enforces k (mondrian, local-suppression)"
    )


def _lone_groups(release: Release, columns: Sequence[str]) -> Iterator[str]:
    """Say where a group of values has one member: it looks coarse and tells as much as the value."""
    for table in release.tables.values():
        for name in sorted(set(columns) & set(table.nodes)):
            codes = table.nodes[name].codes(table.frame[name])
            alone = int(table.nodes[name].lone[codes[codes >= 0]].sum())
            if alone:
                yield (
                    f"{count_noun(alone, 'record')} with a group in `{name}` that stands for one value only, "
                    "as the file reveals; a hierarchy of all possible values would hide that"
                )


def _protect_within(step: Step, table: Table, run: Run) -> Release:
    if not step.within:
        return step.method.apply(table, run)
    parts = list(strata(table, step.within))
    if not parts:
        return step.method.apply(table, run)
    chunks = list(_gather_strata(parts, math.ceil(len(table) / _CHUNKS)))
    pieces = list(chain.from_iterable(run.spread(partial(_protect_strata, step.method, table), chunks)))
    release = _void_in_strata(concatenate_releases(pieces, keep_order=not step.method.gives.other_records))
    persons = persons_of(table)
    alone = [rows for _, rows in parts if count_distinct(persons[rows]) == 1]
    n_unchanged = _count_unchanged(table, release, np.concatenate(alone)) if alone else 0
    if not n_unchanged:
        return release
    note = f"{count_noun(n_unchanged, 'record')} of persons alone in their stratum"
    gives = step.method.gives
    if gives.imputed or gives.other_records:  # to leave a record as it is may be all they do
        return release.with_notes(f"{step.method.name} left unchanged: {note}")
    raise DataError(
        f"{step.method.name} cannot change {note}",
        hint="merge small strata before, or protect these columns without `within`",
    )


def _gather_strata(
    parts: Iterable[tuple[Stratum, Ints]], records: int
) -> Iterator[list[tuple[Stratum, Ints]]]:
    """Strata one after the other, together of so many records at least, but for the last."""
    chunk, n = list[tuple[Stratum, Ints]](), 0
    for stratum, rows in parts:
        chunk.append((stratum, rows))
        n += len(rows)
        if n >= records:
            yield chunk
            chunk, n = [], 0
    if chunk:
        yield chunk


def _protect_strata(
    method: Method, table: Table, chunk: Sequence[tuple[Stratum, Ints]], run: Run
) -> list[tuple[Origin, Release]]:
    pieces = []
    for stratum, rows in chunk:
        here = replace(run, randomness=run.randomness.enter_stratum(stratum, rows))
        pieces.append((Origin.of_rows(rows), method.apply(table.take(rows), here).of_stratum(stratum)))
    return pieces


def _void_in_strata(release: Release) -> Release:
    """Void what hides whether someone is there at all: a stratum is there because someone is."""
    if all(each.neighbours != "add-remove" for each in release.budget.spent):
        return release
    note = f"which strata there are is told by the data: {NO_GUARANTEE}"
    byproducts = release.with_notes(note).byproducts
    return replace(release, byproducts=replace(byproducts, budget=byproducts.budget.unkept()))


def _count_unchanged(table: Table, release: Release, rows: Ints) -> int:
    """How many of these records are released with the values they had, if any, in what is protected."""
    if release.source_rows is None:
        return 0
    places = np.flatnonzero(np.isin(release.source_rows, rows))
    before, after = table.take(release.source_rows[places]), release.table.take(places)
    same, some = np.ones(len(places), dtype=np.bool_), np.zeros(len(places), dtype=np.bool_)
    for name in table.chosen:
        same &= _equal(before.frame[name], after.frame[name])
        some |= ~before.missing(name)
    return int((same & some).sum())


def _equal(before: pl.Series, after: pl.Series) -> Flags:
    """Which values are the same, one of a range if both its ends are."""
    if is_interval(after.dtype):
        return _equal(before, after.struct.field("lo")) & _equal(before, after.struct.field("hi"))
    dtype = pl.Float64 if before.dtype.is_numeric() and after.dtype.is_numeric() else pl.String
    if before.dtype != after.dtype:
        before, after = before.cast(dtype), after.cast(dtype)
    return before.eq_missing(after).to_numpy()


def _protect_together(step: Step, table: Table, run: Run) -> Release:
    """Protect one record per household, then give every member the household's protected values.

    A household that the method leaves out is left out with all its members.
    """
    members = table.codes(step.together).codes
    alone = members < 0  # without a household number everyone is their own household
    members[alone] = members.max(initial=-1) + 1 + np.arange(int(alone.sum()))
    _, first, household = np.unique(members, return_index=True, return_inverse=True)
    _require_equal_members(step, table, first[household])
    shared = run.randomness.per_household(table, step.together, first)
    release = _protect_within(step, table.take(first), replace(run, randomness=shared))
    places = _places(step, release, len(first))[household]  # of each member's household in the release
    rows = np.flatnonzero(places >= 0)
    protected, places = table if len(rows) == len(table) else table.take(rows), places[rows]
    for name in step.changes(table.schema):
        values = release.table.frame[name][pl.Series(places, dtype=pl.UInt32)]
        protected = protected.with_values(name, values, column=release.table.schema[name])
    protected = replace(protected, nodes=release.table.nodes)
    classes = None if release.classes is None else release.classes[places]
    return replace(release.with_table(protected), origin=Origin.of_rows(rows), classes=classes)


def _require_equal_members(step: Step, table: Table, firsts: Ints) -> None:
    """Raise if members of a household differ in what is protected for all of them, or in what bounds that."""
    changed, ruled = step.changes(table.schema), set[str]()
    for rule in table.schema.rules if step.method.takes.edit_rules else ():
        ruled |= set(rule.columns).difference(changed) if set(rule.columns) & set(changed) else set()
    for name in dict.fromkeys((*changed, *step.within, *sorted(ruled))):
        column = table.frame[name]
        differs = int((~column.eq_missing(column[pl.Series(firsts, dtype=pl.UInt32)])).sum())
        if differs:
            raise DataError(
                f"`{name}` must be equal in all records of a `{step.together}` to protect them together, "
                f"got: {count_noun(differs, 'record')} with another value",
                hint="leave out `together`: else a rule with this column would be violated"
                if name in ruled
                else "leave out `together`, or protect this column in a step of its own",
            )


def _places(step: Step, release: Release, n: int) -> Ints:
    """Where each of ``n`` records stands in a release, −1 where it was left out."""
    rows = release.source_rows
    if rows is None or count_distinct(rows) < len(rows):
        raise PlanError(f"{step.method.name} makes new records, so it cannot be used with `together`")
    places = np.full(n, -1, dtype=np.int64)
    places[rows] = np.arange(len(rows))
    return places
