"""A recipe: steps one after the other, and how to follow them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

from sfumato.core.budget import NO_GUARANTEE
from sfumato.core.method import Method
from sfumato.core.randomness import ByPerson, ByPlace
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.records import read_record
from sfumato.data.schema import Kind, Schema
from sfumato.data.table import Table
from sfumato.errors import (
    PlanError,
    RefusedError,
    UnreachableError,
    quoted,
)
from sfumato.recipes.step import Step, digest_of
from sfumato.recipes.step_memory import StepMemory


@dataclass(frozen=True)
class Recipe:
    """Steps, taken one after the other."""

    steps: tuple[Step, ...] = field(default=())

    @classmethod
    def of(cls, *steps: Step | Method) -> Self:
        """Make a recipe from steps, or from methods on their usual columns."""
        return cls(tuple(step if isinstance(step, Step) else Step(step) for step in steps))

    @property
    def stochastic(self) -> bool:
        """Whether anything in it is left to chance."""
        return any(step.method.randomness.stochastic for step in self.steps)

    @property
    def unrepeatable(self) -> tuple[str, ...]:
        """The methods whose chance no seed repeats."""
        noisy = (step.method for step in self.steps if not step.method.randomness.replay)
        return tuple(dict.fromkeys(method.name for method in noisy))

    def faults(self, schema: Schema) -> list[str]:
        """What is wrong with the recipe for a table of this schema."""
        faults = [
            f"step {number}: {fault}"
            for number, step in enumerate(self.steps, start=1)
            for fault in step.faults(schema)
        ]
        faults += [
            f"step {number}: {step.method.name} must be the last step, as it separates values from their "
            "records"
            for number, step in enumerate(self.steps[:-1], start=1)
            if step.method.gives.deassociated
        ]
        return faults or list(self._why_generalised(schema))

    def _why_generalised(self, schema: Schema) -> Iterator[str]:
        """Which steps need exact values of columns that an earlier one generalises."""
        generalised: set[str] = set()
        for number, step in enumerate(self.steps, start=1):
            columns = set(step.resolve(schema))
            both = sorted(columns & generalised)
            if both and not step.method.takes.generalised:
                needs = f"{step.method.name} needs exact values, but"
                yield f"step {number}: {needs} an earlier step generalises {quoted(both)}"
            if step.method.gives.generalised:
                generalised |= columns
            elif step.method.gives.imputed:
                generalised -= columns

    def warnings(self, schema: Schema) -> list[str]:
        """What is allowed but should be known."""
        return [warning for step in self.steps for warning in step.warnings(schema)]

    def apply(self, table: Table, run: Run, memory: StepMemory | None = None) -> Release:
        """Follow the recipe; chance is keyed by the data, the step and the method, never by order.

        A ``memory`` has what its first steps made of the same table before.
        """
        release = Release.unchanged(table)
        for release in self.follow(table, run, memory):  # noqa: B007  — the last one is wanted
            pass
        if len(self.steps) > 1:
            self.require_guarantees(table, release, run)
        return release

    def require_guarantees(self, table: Table, release: Release, run: Run) -> None:
        """Raise if what an enforcing step proved does not hold of what came of all steps."""
        shown = {name for each in release.tables.values() for name in each.names}
        for number, step in enumerate(self.steps, start=1):
            columns = step.resolve(table.schema)
            if not set(columns) <= shown:  # what is not released tells nothing
                continue
            unmet = step.method.unmet(table.aimed_at(columns), release, run)
            if unmet:
                raise UnreachableError(
                    f"what step {number} ({step.method.name}) enforced does not hold after all steps: "
                    f"{'; '.join(unmet)}",
                    hint="move this step to the end, or leave its columns out of the steps after it",
                )

    def _hint_of_kinds(self, table: Table) -> str:
        """The way on where numbers are taken for codes, and a step protects numbers."""
        taken = [
            name
            for step in self.steps
            if Kind.CONTINUOUS in step.method.kinds and Kind.NOMINAL not in step.method.kinds
            for name in step.columns
            if name in table.schema
            and table.schema[name].kind is Kind.NOMINAL
            and table.frame[name].dtype.is_numeric()
        ]
        if not taken:
            return ""
        return (
            f"if the numbers of {quoted(dict.fromkeys(taken), ' and ')} are no codes, set their kind to "
            "continuous in a plan: sfumato inspect FILE --write-plan plan.toml, then give --plan plan.toml"
        )

    def follow(self, table: Table, run: Run, memory: StepMemory | None = None) -> Iterator[Release]:
        """Yield the release as it stands after each step; the last one is what `apply` gives."""
        faults = self.faults(table.schema)
        faults += [
            f"step {number}: {fault}"
            for number, step in enumerate(self.steps, start=1)
            for fault in step.method.undeclared_resources(run.resources)
        ]
        if faults:
            raise PlanError.gather("the recipe", faults, hint=self._hint_of_kinds(table))
        identities = [""] * len(self.steps)
        if isinstance(run.randomness, ByPerson):
            self._require_by_person()
            identities = self.step_identities
        texts = [json.dumps(step.to_dict(), sort_keys=True) for step in self.steps] if memory else []
        known = memory.recall(table, run.randomness, texts) if memory else []
        yield from known
        release = known[-1] if known else Release.unchanged(table)
        here = run.randomness.enter_table(table)
        for number, step in list(enumerate(self.steps))[len(known) :]:
            there = here.enter_step(number, step.method.name, identities[number])
            left = _randomness_of_remaining(there, release, step)
            made = step.apply(release.table, replace(run, randomness=left))
            release = release.then(self._void_guarantee(number, table.schema, made) if made.budget else made)
            if memory is not None and step.method.randomness.replay:
                memory.keep(number, texts[number], release)
            yield release

    @property
    def step_identities(self) -> list[str]:
        """By what each step is known in all releases of a series: method, parameters, and turn among equals.

        With other parameters its chance is another: the same draws times another number would tell
        themselves.
        """
        texts = [
            json.dumps({"method": step.method.name, **step.method.to_dict()}, sort_keys=True)
            for step in self.steps
        ]
        return [f"{each} {texts[:number].count(each)}" for number, each in enumerate(texts)]

    def _require_by_person(self) -> None:
        """Raise if a step draws what cannot be kept for a person from release to release."""
        unsuitable = [
            step.method.name
            for step in self.steps
            if step.method.randomness.replay and not step.method.by_person()
        ]
        if unsuitable:
            raise RefusedError(
                f"{quoted(dict.fromkeys(unsuitable))} cannot keep the noise of each person the same in a "
                "series, so an intruder could average several releases",
                hint="use noise, pram, date-shifting or m-invariance, or a method without randomness",
            )

    def _void_guarantee(self, number: int, schema: Schema, made: Release) -> Release:
        """Void a private step whose columns an earlier one changed that is not: its noise may hide less.

        What a group's mean or a swap made of a record stands in others too, which the noise does not know.
        """
        last = made.steps[-1]
        own = set(last.columns)
        before = [
            step.method.name
            for step in self.steps[:number]
            if not step.method.randomness.epsilon_parameter
            and (step.method.gives.other_records or own & set(step.changes(schema)))
        ]
        if not before:
            return made
        note = f"its columns or records were changed before by {quoted(before)}: {NO_GUARANTEE}"
        byproducts = replace(
            last.byproducts, notes=(*last.notes, note), budget=last.byproducts.budget.unkept()
        )
        return replace(made, steps=(*made.steps[:-1], replace(last, byproducts=byproducts)))

    @cached_property
    def digest(self) -> str:
        """A fingerprint of what the recipe says: the same for ``window=50`` and ``window=50.0``."""
        return digest_of(self.steps)

    def to_list(self) -> list[dict[str, Any]]:
        """Say the steps as the plan does."""
        return [step.to_dict() for step in self.steps]

    @classmethod
    def from_list(cls, specs: Sequence[Mapping[str, Any]]) -> Self:
        """Read the plan's steps, gathering the faults of all of them."""
        return read_record(cls, {"steps": specs}, "the recipe", makers={Step: Step.from_dict})


def _randomness_of_remaining(randomness: ByPlace, release: Release, step: Step) -> ByPlace:
    """Chance for the records that earlier steps have left; who is nobody has no chance of their own."""
    if not step.method.randomness.replay:  # noise that must never be the same twice
        return randomness.fresh(release.table)
    if not randomness.is_by_person:
        return randomness
    if release.source_rows is not None and release.origin.is_complete:
        return randomness.subset(release.source_rows)
    if step.method.randomness.stochastic:
        raise RefusedError(
            f"{step.method.name} in a series needs records of known persons, got: new records",
            hint="move it before the step that makes new records",
        )
    return randomness
