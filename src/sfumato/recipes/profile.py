"""A profile: for whom a release is meant, and so who might look, what it must score, and why.

The kinds of release are those of Carvalho, Moniz, Faria and Antunes (2023, section 3): secure, scientific,
industry and public use; the others are rules of one field, with their source. Each is a TOML file in
``profiles``; who thinks otherwise edits a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, NewType, Self

import polars as pl

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Measure
from sfumato.core.params import Resource
from sfumato.core.references import references
from sfumato.core.release import Release
from sfumato.core.requirement import Requirement, parse_measure
from sfumato.core.waves import SERIES, Waves
from sfumato.data.guess.facts import is_about
from sfumato.data.records import Makers, gathering, parse_toml, raise_all, read_record, read_text, read_values
from sfumato.data.scenario import CONTROL, Scenario
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import PlanError, UnknownNameError, quoted
from sfumato.recipes.demand import Demand, repeated_names, scenario_names
from sfumato.recipes.plan import Plan

ScenarioName = NewType("ScenarioName", str)
Reference = NewType("Reference", str)

_BY_USE = ("secure", "scientific", "industry", "public")

#: What an empty column of a kind holds.
_DTYPES: Mapping[Kind, Any] = {
    Kind.CONTINUOUS: pl.Float64,
    Kind.ORDINAL: pl.String,
    Kind.NOMINAL: pl.String,
    Kind.DATE: pl.Date,
    Kind.SET: pl.List(pl.String),
}


@dataclass(frozen=True)
class Intruder:
    """A scenario for tables that are not known yet: the columns known are said by role and kind.

    Who knows dates knows ages, too, whatever their kind is. ``columns`` names them instead, for a profile
    that is made for one table.
    """

    name: str
    reason: str
    roles: tuple[Role, ...] = (Role.KEY,)
    kinds: tuple[Kind, ...] = tuple(Kind)
    columns: tuple[str, ...] = ()
    records: float = 1.0
    membership: bool = True
    external: str = ""

    def __post_init__(self) -> None:
        Scenario(self.name, records=self.records)  # raises if there is no such share

    def knows(self, schema: Schema, keys: Sequence[str] = ()) -> tuple[str, ...]:
        """The columns known in a table; ``keys`` count as keys too, and without any all about people do."""
        if self.columns:
            named = set(schema.resolve(self.columns))
        else:
            named = {column.name for column in schema.columns if column.role in self.roles}
            if Role.KEY in self.roles:
                named |= set(schema.resolve(keys) if keys else schema.known_columns())
        return tuple(each.name for each in schema.columns if each.name in named and self._knows_kind(each))

    def _knows_kind(self, column: Column) -> bool:
        return column.kind in self.kinds or (Kind.DATE in self.kinds and is_about(column.name, "age"))

    def scenario(self, schema: Schema, keys: Sequence[str] = ()) -> Scenario:
        """The scenario in a table."""
        return Scenario(self.name, self.knows(schema, keys), self.records, self.membership, self.external)

    @property
    def why_knows_nothing(self) -> str:
        """Why there is no such intruder in a table that has none of the columns."""
        if self.columns:
            return f"scenario `{self.name}`: none of its columns has a kind that this intruder knows"
        kinds = "" if self.kinds == tuple(Kind) else " or ".join(self.kinds) + " "
        return (
            f"scenario `{self.name}`: the table has no {kinds}column with the role {' or '.join(self.roles)}"
        )


@dataclass(frozen=True)
class Threshold:
    """A requirement with the scenarios it must be met in (none: in all), and why.

    One of a ``series`` is asked of a release that is one of several of the same people, and of no other.
    """

    requirement: Requirement = field(metadata={"key": "require"})
    reason: str
    scenarios: tuple[ScenarioName, ...] = ()
    references: tuple[Reference, ...] = ()
    series: bool = False


@dataclass(frozen=True, kw_only=True)
class _Defaults:
    """What a verb takes where nobody says otherwise."""

    rank_by: Measure | None = None
    repeats: int = 5
    shuffle: bool = True

    def __post_init__(self) -> None:
        if self.repeats < 1:
            raise PlanError(f"`repeats` must be at least 1, got: `{self.repeats}`")


@dataclass(frozen=True)
class Profile(_Defaults):
    """Who might look at a release, what it must score, and what else is worth reporting."""

    name: str
    title: str
    summary: str
    intruders: tuple[Intruder, ...] = field(metadata={"key": "scenarios"})
    thresholds: tuple[Threshold, ...] = field(default=(), metadata={"key": "requirements"})
    report: tuple[Measure, ...] = ()
    text: str = field(default="", repr=False, compare=False)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The profiles that come with sfumato: by use, the most trusted receiver first; then by field."""
        there = {place.name.removesuffix(".toml") for place in _folder().iterdir()}
        return (*_BY_USE, *sorted(there - {*_BY_USE}))

    @classmethod
    def load(cls, name: str) -> Self:
        """Give a profile that comes with sfumato."""
        if name not in cls.names():
            raise UnknownNameError.of("profile", name, cls.names())
        return cls.parse(_folder().joinpath(f"{name}.toml").read_text(encoding="utf-8"), name=name)

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a profile of one's own, gathering every fault in it."""
        path = Path(path)
        hint = "`sfumato profiles public --write my.toml` writes one to edit"
        text = read_text(path, what="profile", hint=hint)
        return cls.parse(text, name=path.stem)

    @classmethod
    def of(cls, profile: str | Path | Profile) -> Profile:
        """Take a profile, the name of one, or the path of a file that holds one."""
        if isinstance(profile, Profile):
            return profile
        if isinstance(profile, Path) or profile.endswith(".toml") or "/" in profile:
            return cls.read(profile)
        return cls.load(profile)

    @classmethod
    def parse(cls, text: str, *, name: str) -> Self:
        """Make a profile of the text of its file."""
        spec = parse_toml(text, f"the profile `{name}`")
        names = scenario_names(spec.get("scenarios"))
        makers: Makers = {
            Requirement: Requirement.parse,
            Measure: parse_measure,
            ScenarioName: _one_of("scenario", names),
            Reference: _one_of("reference", list(references())),
        }
        faults: list[str] = []
        values: dict[str, Any] = {}
        with gathering(faults, "defaults: "):
            values |= vars(read_record(_Defaults, spec.pop("defaults", {}), "the defaults", makers=makers))
        given = ("name", "text", *(item.name for item in fields(_Defaults)))
        values |= read_values(cls, spec, faults, given=given, makers=makers)
        if values.get("intruders") == ():
            faults.append("a profile needs at least one scenario, got: none")
        raise_all(f"the profile `{name}`", [*faults, *repeated_names(names)])
        return cls(name=name, text=text, **values)

    def requirements(
        self, schema: Schema, *, keys: Sequence[str] = (), in_series: bool = False
    ) -> tuple[Demand, ...]:
        """The requirements that apply to tables of a schema, each with the intruder it is judged against.

        ``keys`` are columns that count as keys beside those that the schema declares, such as those that are
        protected: who protects a column thinks that it can be known. Those of a series are among them for a
        release that is ``in_series``.
        """
        found = self._demands_in_order(schema, keys, in_series=in_series)
        return tuple(each for each in found if isinstance(each, Demand))

    def left_out(self, schema: Schema, *, keys: Sequence[str] = ()) -> tuple[str, ...]:
        """The requirements that do not apply to tables of a schema, each with the reason."""
        return tuple(each for each in self._demands_in_order(schema, keys) if isinstance(each, str))

    def notes(self, schema: Schema, protected: Sequence[str]) -> tuple[str, ...]:
        """What does not apply to tables of a schema, and what intruders know that is not ``protected``."""
        out = self.left_out(schema, keys=protected)
        demands = self.requirements(schema, keys=protected)
        known = {name for demand in demands for name in schema.resolve(demand.scenario.columns)}
        bare = [name for name in schema.names if name in known - set(schema.resolve(protected))]
        if not protected or not bare:
            return out
        return (*out, f"an intruder of the profile also knows {quoted(bare)}, which no step here protects")

    def _demands_in_order(
        self, schema: Schema, keys: Sequence[str], *, in_series: bool = False
    ) -> Iterator[Demand | str]:
        empty = _empty_table(schema)
        for threshold in self.thresholds:
            if threshold.series and not in_series:
                continue
            for intruder in self.intruders:
                if not threshold.scenarios or intruder.name in threshold.scenarios:
                    demand = Demand(threshold.requirement, intruder.scenario(schema, keys))
                    reason = _why_not_applicable(demand, intruder, empty)
                    yield f"{demand} is left out: {reason}" if reason else demand

    def scenarios(self, schema: Schema) -> tuple[Scenario, ...]:
        """The intruders who know something of tables of a schema."""
        every = [intruder.scenario(schema) for intruder in self.intruders]
        return tuple(scenario for scenario in every if scenario.columns)

    def apply_to(self, plan: Plan) -> Plan:
        """Add the scenarios and requirements to a plan that declares its columns.

        What the plan says already stays: its own requirements hold in its own scenarios as before, and what
        the profile asks in a scenario that the plan has taken from it is asked once.
        """
        if plan.schema is None:
            raise PlanError("a profile can only be applied to a plan that declares its columns")
        if plan.tables:
            raise PlanError("a profile can only be applied to a plan of one table, got: several tables")
        untouched = plan.scenarios == (Scenario(),) and not plan.requirements and not plan.required_in
        scenarios = () if untouched else plan.scenarios
        ours = self.scenarios(plan.schema)
        ours = tuple(scenario for scenario in ours if scenario not in scenarios)
        clash = sorted({scenario.name for scenario in scenarios} & {scenario.name for scenario in ours})
        if clash:
            raise PlanError(f"the plan and the profile both have a scenario named {quoted(clash)}")
        required = {
            scenario.name: (*plan.requirements, *plan.required_in.get(scenario.name, ()))
            for scenario in scenarios
        }
        for demand in self.requirements(plan.schema, in_series=plan.series is not None):
            before = required.get(demand.scenario.name, ())
            required[demand.scenario.name] = tuple(dict.fromkeys((*before, demand.requirement)))
        return replace(
            plan,
            scenarios=(*scenarios, *ours),
            requirements=(),
            required_in={name: each for name, each in required.items() if each},
            output=replace(plan.output, shuffle=self.shuffle),
        )


def _one_of(noun: str, known: Sequence[str]) -> Callable[[Any], str]:
    """What takes a name if it is known."""

    def take(name: Any) -> str:
        if name not in known:
            raise UnknownNameError.of(noun, str(name), known)
        return str(name)

    return take


def _folder() -> Any:
    return files("sfumato.recipes").joinpath("profiles")


def _empty_table(schema: Schema) -> Table:
    """A table without records, to ask a measure whether it applies to such columns at all."""
    return Table(pl.DataFrame(schema={c.name: _DTYPES[c.kind] for c in schema.columns}), schema)


def _why_not_applicable(demand: Demand, intruder: Intruder, empty: Table) -> str | None:
    if not demand.scenario.columns:
        return intruder.why_knows_nothing
    if intruder.external:  # what the intruder holds is not known here
        return None
    # Of a series only what such a release is asked counts; that a control or table is lacking is told later.
    named = [str(value) for value in vars(demand.measure).values() if isinstance(value, Resource)]
    resources: dict[str, Any] = {SERIES: Waves.of(()), CONTROL: empty, **dict.fromkeys(named, empty)}
    return demand.measure.refuses(Evidence(empty, Release.unchanged(empty), demand.scenario, resources))
