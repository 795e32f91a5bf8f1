"""What scripts hand over: tables of any type, a single name or several, an intruder, a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import polars as pl

from sfumato.core import registry
from sfumato.core.measure import Measure
from sfumato.core.method import Method
from sfumato.core.release import Release
from sfumato.core.requirement import Requirement, parse_method
from sfumato.core.run import Run
from sfumato.core.vetting import Only, require_vetted, unvetted
from sfumato.data.scenario import CONTROL, Scenario
from sfumato.data.schema import Schema, like_schema
from sfumato.data.table import Table
from sfumato.errors import ParameterError
from sfumato.recipes.demand import Demand
from sfumato.recipes.step import Step
from sfumato.releasing.load import as_table
from sfumato.study.evaluate import EvaluationCase


@dataclass(frozen=True, repr=False)
class NativeRelease(Release):
    """A release of data that came in another type, in which its ``data`` go out."""

    native: Callable[[pl.DataFrame], Any] = field(default=lambda frame: frame, compare=False)

    def to_native(self, frame: pl.DataFrame) -> Any:
        """A protected frame in the type that the original came in."""
        return self.native(frame)


def in_native(release: Release, native: Callable[[pl.DataFrame], Any] | None) -> Release:
    """The release with the way back to the type of its original, if that is another."""
    if native is None:
        return release
    return NativeRelease(
        **{each.name: getattr(release, each.name) for each in fields(Release)}, native=native
    )


def several(value: Any) -> tuple[Any, ...]:
    """Names, measures or requirements; a single one may be given as it is."""
    return (value,) if isinstance(value, str | Measure | Requirement | Demand) else tuple(value)


def make_run(seed: int | None, run: Run | None = None, resources: Mapping[str, Any] | None = None) -> Run:
    """Make the run of a call: random numbers from the operating system unless a seed is given."""
    if run is None:
        run = Run() if seed is None else Run(seed=seed)
    return replace(run, resources={**run.resources, **resources}) if resources else run


def make_case(
    data: Any,
    columns: str | Sequence[str],
    schema: Schema | None,
    scenario: Scenario | Sequence[Scenario] | None,
    resources: Mapping[str, Any] | None,
    *,
    control: float,
) -> tuple[EvaluationCase, tuple[str, ...]]:
    """The case, and the columns to protect: an intruder who is not described knows these."""
    table, _ = as_table(data, schema=schema)
    names = several(columns)
    first = scenario if isinstance(scenario, Scenario) else next(iter(scenario or ()), None)
    return EvaluationCase(
        table, first or Scenario(columns=names), conform_resources(table, resources), control
    ), names


def conform_resources(table: Table, resources: Mapping[str, Any] | None) -> dict[str, Any]:
    """Resources whose columns are declared as the table declares those of the same name."""
    from sfumato.io import conform

    made = {}
    for name, resource in (resources or {}).items():
        # A control group may be a file or frame, as the data may.
        each = as_table(resource)[0] if name == CONTROL else resource
        if isinstance(each, Table) and not each.nodes:
            schema = like_schema(each.schema, table.schema)
            made[name] = each if schema == each.schema else conform(each.frame, schema)
        else:
            made[name] = each
    return made


def require_vetted_measures(only: Only, judged: Sequence[Demand | Measure], named: Sequence[Measure]) -> None:
    """Refuse measures that decide, or that somebody names, if only what is vetted is asked for."""
    measures = (each.measure if isinstance(each, Demand) else each for each in (*judged, *named))
    require_vetted(only, (type(each.ungrouped) for each in measures))


def make_steps(
    methods: Sequence[Method | Step | str],
    columns: Sequence[str],
    schema: Schema,
    *,
    driven: bool,
    only: Only = "",
) -> list[Step]:
    """The steps of methods that are named; else of all that can protect these columns and may be compared."""
    if methods:
        made = [parse_method(m) if isinstance(m, str) else m for m in methods]
        steps = [m if isinstance(m, Step) else Step(m, tuple(columns)) for m in made]
        require_vetted(only, (type(step.method) for step in steps))
        return steps
    # A search on the data voids the guarantee of methods without replay: they are compared only by name.
    able = [
        Step(cls(), tuple(columns))
        for cls in registry.methods().values()
        if cls.randomness.replay and (cls.drive() or not driven) and not (only and unvetted([cls]))
    ]
    able = [step for step in able if not list(step.faults(schema))]
    if not able:
        raise ParameterError("no method can protect these columns", hint="name other columns")
    return able
