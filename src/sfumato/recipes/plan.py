"""A plan: data, schema, scenarios, recipe, requirements and outputs in one TOML file that reruns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Self

import tomli_w

from sfumato.core.component import Component
from sfumato.core.params import Resource
from sfumato.core.requirement import Requirement
from sfumato.core.vetting import Only, require_vetted
from sfumato.data.notebook import as_html
from sfumato.data.records import Makers, as_spec, gathering, parse_toml, raise_all, read_text, read_values
from sfumato.data.rules import Rule
from sfumato.data.scenario import CONTROL, Scenario
from sfumato.data.schema import UNIT_ROLES, Kind, Role, Schema, SchemaSpec
from sfumato.errors import PlanError, UnknownNameError, count_noun, quoted
from sfumato.io.stdin import STDIN
from sfumato.recipes.demand import Demand, repeated_names, scenario_names
from sfumato.recipes.parts import About, CountTable, Output, SeriesSpec, Source, locate, relative_to
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step

#: The parts that a plan of several tables has beside them.
_BESIDE_TABLES = frozenset({"tables", "release", "only"})
#: Roles of columns by which nobody counts records.
_NOT_COUNTED = (*UNIT_ROLES, Role.IDENTIFIER, Role.WEIGHT)


@dataclass(frozen=True)
class _JudgedScenario(Scenario):
    """A scenario with the requirements that hold against this intruder alone, or one of them."""

    requirements: tuple[Requirement, ...] = field(
        default=(), metadata={"prepare": lambda value: [value] if isinstance(value, str) else value}
    )

    @property
    def scenario(self) -> Scenario:
        """The intruder alone."""
        return Scenario(**{item.name: getattr(self, item.name) for item in fields(Scenario)})


@dataclass(frozen=True)
class _ReleaseSpec(About):
    """What its owner says of a release, with the tables of counts that leave beside it."""

    tables: tuple[CountTable, ...] = ()

    @property
    def about(self) -> About:
        """What the owner says alone."""
        return About(**{item.name: getattr(self, item.name) for item in fields(About)})


@dataclass(frozen=True)
class PlanParts(SchemaSpec):
    """The parts of a plan's file."""

    tables: Mapping[str, Any] = field(default_factory=dict)
    data: Source | None = None
    requirements: tuple[Requirement, ...] = ()
    only: Only = ""
    scenarios: tuple[_JudgedScenario, ...] = ()
    resources: Mapping[str, Source] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()
    series: SeriesSpec | None = None
    output: Output = field(default_factory=Output)
    release: _ReleaseSpec = field(default_factory=_ReleaseSpec)


_MAKERS: Makers = {Requirement: Requirement.parse, Rule: Rule, Step: Step.from_dict}


@dataclass(frozen=True, repr=False)
class Plan:
    """Everything a release needs to be made again.

    Several tables that stay linked (persons and their stays) are one plan with ``tables``, each a plan of
    its own; nothing is written unless all of them may be. ``control``, said with the data, is the share of
    the persons who sit out a rehearsal: attacks are tried there, and the release is made of everyone.
    ``about``, said as ``[release]``, is what its owner says of the release, and ``count_tables``, said as
    ``[[release.tables]]``, what leaves beside it. With ``only`` set to *vetted* no plan can be made whose
    methods or required measures were checked by experiments alone.
    """

    data: Source | None = None
    schema: Schema | None = None
    scenarios: tuple[Scenario, ...] = (Scenario(),)
    resources: Mapping[str, Source] = field(default_factory=dict)
    recipe: Recipe = field(default_factory=Recipe)
    requirements: tuple[Requirement, ...] = ()  # in every scenario
    required_in: Mapping[str, tuple[Requirement, ...]] = field(default_factory=dict)  # in one, by its name
    output: Output = field(default_factory=Output)
    series: SeriesSpec | None = None
    tables: Mapping[str, Plan] = field(default_factory=dict)
    about: About = field(default_factory=About)
    count_tables: tuple[CountTable, ...] = ()
    control: float = 0.0
    only: Only = ""
    folder: Path = field(default=Path(), compare=False)

    def __post_init__(self) -> None:
        if not self.scenarios:  # without an intruder no requirement would be looked at, and all be met
            object.__setattr__(self, "scenarios", (Scenario(),))
        if self.only:
            require_vetted(self.only, self.components)
            tables = {name: replace(plan, only=self.only) for name, plan in self.tables.items()}
            object.__setattr__(self, "tables", tables)

    @property
    def components(self) -> tuple[type[Component], ...]:
        """The methods of its steps, and the measures of all its requirements."""
        required = (*self.requirements, *(each for own in self.required_in.values() for each in own))
        measures = (type(each.measure.ungrouped) for each in required)
        return (*(type(step.method) for step in self.recipe.steps), *measures)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a plan, gathering every fault in it."""
        text = read_text(path, what="plan", hint="`sfumato inspect FILE --write-plan PLAN` writes one")
        return cls.from_dict(parse_toml(text, f"the plan `{path}`"), folder=path.parent)

    @classmethod
    def from_dict(cls, spec: Mapping[str, Any], *, folder: Path = Path()) -> Self:
        """Make a plan of what a TOML file says."""
        faults: list[str] = []
        spec, control = _without_control(spec, faults)
        values = read_values(PlanParts, spec, faults, noun="part of a plan", makers=_MAKERS)
        parts, schema = PlanParts(**values), None
        if "tables" in spec:
            tables = _read_linked_plans(spec, parts.tables, faults, folder)
            return cls(tables=tables, about=parts.release.about, only=parts.only, folder=folder)
        declared = spec.keys() & {"columns", "rules", "related"}
        if declared and declared <= values.keys():
            with gathering(faults):
                schema = parts.schema
        plan = cls(
            data=parts.data,
            schema=schema,
            scenarios=tuple(each.scenario for each in parts.scenarios),
            resources=parts.resources,
            recipe=Recipe(parts.steps),
            requirements=parts.requirements,
            required_in={each.name: each.requirements for each in parts.scenarios if each.requirements},
            output=parts.output,
            series=parts.series,
            about=parts.release.about,
            count_tables=parts.release.tables,
            control=control,
            folder=folder,
        )
        faults += repeated_names(scenario_names(spec.get("scenarios")))
        with gathering(faults):
            plan = replace(plan, only=parts.only)
        if schema is not None:
            faults += _cross_faults(plan, schema)
        if schema is not None and ("resources" in values or "resources" not in spec):
            faults += _resource_faults(plan, schema)
        raise_all("the plan", faults)
        return plan

    def to_dict(self) -> dict[str, Any]:
        """Say the plan as its TOML file does."""
        counted = [as_spec(each) for each in self.count_tables]
        about = {"release": {**as_spec(self.about), **({"tables": counted} if counted else {})}}
        only = {"only": self.only} if self.only else {}
        if self.tables:
            tables = {name: plan.to_dict() for name, plan in self.tables.items()}
            return {**only, "tables": tables, **(about if self.about != About() else {})}
        schema = self.schema.to_dict() if self.schema else {}
        named = self.scenarios != (Scenario(),) or self.required_in
        parts = {
            **only,
            "data": (as_spec(self.data) if self.data else {})
            | ({CONTROL: self.control} if self.control else {}),
            "rules": schema.get("rules"),  # TOML wants plain values before tables
            "related": schema.get("related"),
            "requirements": [str(requirement) for requirement in self.requirements],
            "columns": schema.get("columns"),
            "scenarios": [self._scenario_spec(scenario) for scenario in self.scenarios] if named else [],
            "resources": {name: as_spec(source) for name, source in self.resources.items()},
            "steps": self.recipe.to_list(),
            "series": as_spec(self.series) if self.series else None,
            "output": as_spec(self.output),
            **about,
        }
        may_be_empty = {"columns", "series"}
        return {
            key: part for key, part in parts.items() if part or (key in may_be_empty and part is not None)
        }

    def _scenario_spec(self, scenario: Scenario) -> dict[str, Any]:
        own = [str(requirement) for requirement in self.required_in.get(scenario.name, ())]
        return {**scenario.to_dict(), **({"requirements": own} if own else {})}

    def __repr__(self) -> str:
        if self.tables:
            return f"Plan({', '.join(f'{name}: {plan!r}' for name, plan in self.tables.items())})"
        parts = {
            "column": len(self.schema.columns) if self.schema else 0,
            "step": len(self.recipe.steps),
            "requirement": len(self.requirements) + sum(map(len, self.required_in.values())),
        }
        source = self.data.path if self.data else "no data"
        return f"Plan({', '.join([source, *(count_noun(count, noun) for noun, count in parts.items())])})"

    def _repr_html_(self) -> str:
        return as_html([repr(self)])

    def to_toml(self) -> str:
        """Write the plan as a person would read it."""
        return tomli_w.dumps(self.to_dict())

    @property
    def demands(self) -> tuple[Demand, ...]:
        """Every requirement with the scenario it must be met in, by scenario."""
        return tuple(
            Demand(requirement, scenario)
            for scenario in self.scenarios
            for requirement in (*self.requirements, *self.required_in.get(scenario.name, ()))
        )

    @property
    def parts(self) -> Mapping[str, Plan]:
        """The plan of each table; of a plan for one table, itself."""
        return self.tables or {"": self}

    @property
    def files(self) -> dict[str, Path | str]:
        """What is read of all tables and resources: each path as the plan says it, and where that leads."""
        sources = [
            (source, plan.folder)
            for plan in self.parts.values()
            for source in (*([plan.data] if plan.data else []), *plan.resources.values())
        ]
        files = [(source.path, folder) for source, folder in sources if not source.is_builtin]
        return {path: locate(path, folder) for path, folder in files}

    def seen_from(self, folder: Path) -> Self:
        """The same plan in another folder: every file that it reads, and its keys, as seen from there."""

        def seen(path: str, own: Path) -> str:
            place = path if path == STDIN else locate(path, own)
            return relative_to(place, folder) if isinstance(place, Path) else place

        def moved(source: Source, own: Path) -> Source:
            return source if source.is_builtin else replace(source, path=seen(source.path, own))

        if self.tables:
            tables = {name: plan.seen_from(folder) for name, plan in self.tables.items()}
            return replace(self, tables=tables, folder=folder)
        own, key = self.folder, self.output.pseudonym_key
        return replace(
            self,
            data=moved(self.data, own) if self.data else None,
            resources={name: moved(each, own) for name, each in self.resources.items()},
            output=replace(self.output, pseudonym_key=seen(key, own) if key else ""),
            series=self.series and self.series.seen_from(folder, now=own),
            folder=folder,
        )

    def source_at(self, path: str) -> Source:
        """The data at another place, read as the plan says of its own."""
        return replace(self.data, path=path, sha256="") if self.data else Source(path)

    def warnings(self) -> list[str]:
        """What is allowed but should be known."""
        if self.tables:
            return [f"{name}: {warning}" for name, plan in self.tables.items() for warning in plan.warnings()]
        found = self.recipe.warnings(self.schema) if self.schema else []
        found += self.vacuous
        if not self.recipe.steps:
            found.append("the plan has no steps: the columns would be released unchanged")
        elif self.schema:
            found += _warn_of_unprotected_keys(self.schema, self.recipe, self.left_out)
        return found + (bare_numbers(self.schema, self.output.drop) if self.schema else [])

    def blockers(self) -> list[str]:
        """Why nothing may be released under this plan yet."""
        if self.tables:
            return [f"{name}: {blocker}" for name, plan in self.tables.items() for blocker in plan.blockers()]
        if self.schema is None:
            return ["the plan declares no columns"]
        columns = [name for name in self.schema.names if name not in self.left_out]
        undecided = [name for name in self.schema.columns_without_role() if name in columns]
        blockers = []
        if not columns:
            blockers.append("no column would be released")
        if undecided:
            blockers.append(f"these columns have no role: {quoted(undecided)}")
        return blockers

    @property
    def left_out(self) -> tuple[str, ...]:
        """The columns that stay behind: those that ``drop`` names, and identifiers by their role alone."""
        drop = self.output.drop
        return (*drop, *(remaining_identifiers(self.schema, drop) if self.schema else ()))

    @property
    def risk_demands(self) -> tuple[Demand, ...]:
        """The demands that judge a risk: without one nobody has said what the release must meet."""
        return tuple(demand for demand in self.demands if demand.requirement.judges == "risk")

    @property
    def class_size(self) -> int:
        """How many persons must be alike by what is required, or the usual five."""
        asked = (each.requirement.required_class_size for each in self.demands)
        wanted = [alike for alike in asked if alike is not None]
        return max([*wanted, 2]) if wanted else 5

    @property
    def vacuous(self) -> list[str]:
        """Why requirements that no release can miss judge nothing, each with what to ask instead."""
        return [each for each in dict.fromkeys(d.requirement.vacuity for d in self.demands) if each]


def _warn_of_unprotected_keys(schema: Schema, recipe: Recipe, left_out: Sequence[str]) -> list[str]:
    """Warn if no step is about any of the keys that are released."""
    keys = [name for name in schema.with_role(Role.KEY) if name not in left_out]
    if not keys or {name for step in recipe.steps for name in step.resolve(schema)} & set(keys):
        return []
    return [f"no step protects any of the keys, {quoted(keys)}: they are released unchanged"]


def remaining_identifiers(schema: Schema, drop: Sequence[str]) -> list[str]:
    """The identifiers that nobody has dropped or given a pseudonym: they are left out by their role."""
    named = schema.with_role(Role.IDENTIFIER)
    return [name for name in named if name not in drop and not schema[name].pseudonym]


def bare_numbers(schema: Schema, drop: Sequence[str]) -> list[str]:
    """Warn of the numbers of persons, households and groups that would be released as they are."""
    return [
        f"`{column.name}` is the {column.role}'s number, released unchanged: give it a `pseudonym`"
        for column in schema.columns
        if column.role in UNIT_ROLES and not column.pseudonym and column.name not in drop
    ]


def _without_control(spec: Mapping[str, Any], faults: list[str]) -> tuple[Mapping[str, Any], float]:
    """The parts of a plan, and the share of the persons who sit out a rehearsal: it is said with the data."""
    data = spec.get("data")
    if not isinstance(data, Mapping):
        return spec, 0.0
    source = {key: value for key, value in data.items() if key != CONTROL}
    share = data.get(CONTROL, 0.0)
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share < 1:
        got = f"`{share}`" if isinstance(share, int | float) else type(share).__name__
        faults.append(f"data: `{CONTROL}` must be a share of the persons, from 0 to less than 1, got: {got}")
        share = 0.0
    rest = {key: part for key, part in spec.items() if key != "data"}
    return {**rest, **({"data": source} if source else {})}, float(share)


def _read_linked_plans(
    spec: Mapping[str, Any], parts: Mapping[str, Any], faults: list[str], folder: Path
) -> dict[str, Plan]:
    """Read the plans of several tables, gathering the faults of all."""
    beside = sorted(set(spec) - _BESIDE_TABLES)
    if beside:
        faults.append(f"a plan of several tables has all in [tables], got outside: {quoted(beside)}")
    if "tables" in spec.get("release", {}):
        faults.append(
            "[[release.tables]] must stand in the part of one table: [[tables.NAME.release.tables]]"
        )
    plans = {}
    for name, part in parts.items():
        try:
            if not isinstance(part, Mapping) or "tables" in part:
                raise PlanError("it must be a plan for one table")
            plans[name] = Plan.from_dict(part, folder=folder)
            if plans[name].output.copies > 1:
                raise PlanError("`copies` must be 1 where tables are linked")
        except PlanError as error:
            faults += [f"{name}: {line}" for line in error.lines]
    paths = [locate(plan.output.path, folder) for plan in plans.values() if plan.output.path]
    if len({path.resolve() if isinstance(path, Path) else path for path in paths}) < len(paths):
        faults.append("two tables have the same `path`: each needs its own")
    raise_all("the plan", faults)
    return plans


def _resource_faults(plan: Plan, schema: Schema) -> Iterator[str]:
    """Which resources are named that are not declared, or hold something else."""
    yield from _parameter_faults(plan)
    for scenario in plan.scenarios:
        if scenario.external and scenario.external not in plan.resources:
            yield f"scenario `{scenario.name}` names a resource that is not declared: `{scenario.external}`"
    if plan.control and CONTROL in plan.resources:
        yield f"`{CONTROL}` must be a share of the persons or a resource, got: both"
    for column in schema.columns:
        if column.hierarchy and column.hierarchy not in plan.resources:
            yield f"column `{column.name}` names a hierarchy that is not declared: `{column.hierarchy}`"


def _parameter_faults(plan: Plan) -> Iterator[str]:
    required = [*plan.requirements, *(each for own in plan.required_in.values() for each in own)]
    steps = [(f"step {number}", step.method) for number, step in enumerate(plan.recipe.steps, start=1)]
    for place, described in (*steps, *(("requirements", each.measure) for each in required)):
        yield from (f"{place}: {fault}" for fault in described.undeclared_resources(plan.resources))
        for declared in described.parameters():
            value = getattr(described, declared.name)
            if not isinstance(value, Resource) or value not in plan.resources:
                continue
            if declared.holds and plan.resources[value].holds != declared.holds:
                what = f"{place}: `{declared.name}` of {described.name}"
                yield f"{what} must name a resource that holds a {declared.holds}, got: `{value}`"


def _cross_faults(plan: Plan, schema: Schema) -> Iterator[str]:
    """What the parts of a plan say that does not fit together."""
    yield from plan.recipe.faults(schema)
    for scenario in plan.scenarios:
        try:
            schema.resolve(scenario.columns)
        except UnknownNameError as error:
            yield f"scenario `{scenario.name}`: {error.line}"
    yield from _count_table_faults(plan, schema)
    undeclared = [name for name in plan.output.drop if name not in schema]
    yield from (f"`drop` names a column that is not declared: `{name}`" for name in undeclared)
    series = plan.series
    if series is not None and schema.only_role(Role.PERSON) is None:
        yield 'series: no column numbers the persons (role = "person")'
    if series is not None and series.record and series.record not in schema:
        yield f"series: `record` names a column that is not declared: `{series.record}`"
    for name in () if series is None else series.course:
        if name not in schema:
            yield f"series: `course` names a column that is not declared: `{name}`"


def _count_table_faults(plan: Plan, schema: Schema) -> Iterator[str]:
    """Which tables of counts cannot be made, whatever the records are."""
    names = [each.name.casefold() for each in plan.count_tables]
    if len(set(names)) < len(names):
        yield "release: two tables of counts have the same `name`"
    if names and plan.output.copies > 1:
        yield "release: tables of counts need `copies` = 1"
    for each in plan.count_tables:
        what = f"release: the table `{each.name}`"
        named = (*each.columns, *each.values)
        unknown = [name for name in named if name not in schema]
        units = [name for name in named if name in schema and schema[name].role in _NOT_COUNTED]
        gone = [name for name in named if name in plan.left_out and each.counts == "protected"]
        texts = [name for name in each.values if name in schema and schema[name].kind is not Kind.CONTINUOUS]
        if unknown:
            yield f"{what} names a column that is not declared: `{unknown[0]}`"
        elif units:
            yield f"{what} must not count by `{units[0]}`, a column of the role {schema[units[0]].role}"
        elif gone:
            yield f"{what} counts the protected file, which has no `{gone[0]}`"
        elif texts:
            yield f"{what} cannot have totals or means of `{texts[0]}`, which is {schema[texts[0]].kind}"
        elif each.weighted and schema.only_role(Role.WEIGHT) is None:
            yield f'{what} cannot be weighted: no column has the role "weight"'
