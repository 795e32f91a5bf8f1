"""A profile: for whom a release is meant, and so who might look, what it must score, and why.

The kinds of release are those of Carvalho, Moniz, Faria and Antunes (2023, section 3): secure, scientific,
industry and public use. Each is a TOML file in ``profiles``; who thinks otherwise edits a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, Self

import polars as pl

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Measure
from sfumato.core.params import listed
from sfumato.core.references import references
from sfumato.core.release import Release
from sfumato.core.requirement import Requirement, parse_measure
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import PlanError, SfumatoError, UnknownNameError
from sfumato.recipes.demand import Demand
from sfumato.recipes.plan import Plan, parsed, text_of

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

    ``columns`` names them instead, for a profile that is made for one table.
    """

    name: str
    reason: str
    roles: tuple[Role, ...] = (Role.KEY,)
    kinds: tuple[Kind, ...] = tuple(Kind)
    columns: tuple[str, ...] = ()
    records: float = 1.0
    membership: bool = True
    external: str = ""

    def knows(self, schema: Schema, keys: Sequence[str] = ()) -> tuple[str, ...]:
        """The columns known in a table; ``keys`` count as keys too, and without any all about people do."""
        if self.columns:
            named = set(schema.resolve(self.columns))
        else:
            named = {column.name for column in schema.columns if column.role in self.roles}
            if Role.KEY in self.roles:
                named |= set(schema.resolve(keys) if keys else schema.known())
        return tuple(name for name in schema.names if name in named and schema[name].kind in self.kinds)

    def scenario(self, schema: Schema, keys: Sequence[str] = ()) -> Scenario:
        """The scenario in a table."""
        return Scenario(self.name, self.knows(schema, keys), self.records, self.membership, self.external)

    @property
    def nothing_known(self) -> str:
        """Why there is no such intruder in a table that has none of the columns."""
        if self.columns:
            return f"scenario `{self.name}` knows no column of its kinds"
        kinds = "" if self.kinds == tuple(Kind) else " or ".join(self.kinds) + " "
        return f"scenario `{self.name}`: the table has no {kinds}column that is {' or '.join(self.roles)}"


@dataclass(frozen=True)
class Threshold:
    """A requirement with the scenarios it must be met in (none: in all), and why."""

    requirement: Requirement
    reason: str
    scenarios: tuple[str, ...] = ()
    references: tuple[str, ...] = ()


@dataclass(frozen=True)
class Profile:
    """Who might look at a release, what it must score, and what else is worth reporting."""

    name: str
    title: str
    summary: str
    intruders: tuple[Intruder, ...]
    thresholds: tuple[Threshold, ...] = ()
    report: tuple[Measure, ...] = ()
    rank_by: Measure | None = None
    repeats: int = 5
    shuffle: bool = True
    text: str = field(default="", repr=False, compare=False)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The profiles that come with sfumato, the most trusted receiver first."""
        there = {place.name.removesuffix(".toml") for place in _folder().iterdir()}
        order = ("secure", "scientific", "industry", "public")
        return tuple(name for name in order if name in there)

    @classmethod
    def named(cls, name: str) -> Self:
        """Give a profile that comes with sfumato."""
        if name not in cls.names():
            raise UnknownNameError.of("profile", name, cls.names())
        return cls.parse(_folder().joinpath(f"{name}.toml").read_text(encoding="utf-8"), name=name)

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a profile of one's own, gathering every fault in it."""
        path = Path(path)
        hint = "`sfumato profiles public --write my.toml` writes one to edit"
        text = text_of(path, what="profile", hint=hint)
        return cls.parse(text, name=path.stem)

    @classmethod
    def of(cls, said: str | Path | Profile) -> Profile:
        """Take a profile, the name of one, or the path of a file that holds one."""
        if isinstance(said, Profile):
            return said
        if isinstance(said, Path) or said.endswith(".toml") or "/" in said:
            return cls.read(said)
        return cls.named(said)

    @classmethod
    def parse(cls, text: str, *, name: str) -> Self:
        """Make a profile of the text of its file."""
        reader = _Reader()
        facts = reader.profile(parsed(text, f"the profile `{name}`"))
        if reader.faults:  # all of them: a user mends a file once
            raise PlanError.gather(f"the profile `{name}`", reader.faults)
        intruders = tuple(Intruder(**each) for each in facts.pop("scenarios"))
        thresholds = tuple(Threshold(**each) for each in facts.pop("requirements"))
        return cls(name=name, text=text, intruders=intruders, thresholds=thresholds, **facts)

    def requirements(self, schema: Schema, *, keys: Sequence[str] = ()) -> tuple[Demand, ...]:
        """The requirements that apply to tables of a schema, each with the intruder it is judged against.

        ``keys`` are columns that count as keys beside those that the schema declares, such as those that are
        protected: who protects a column thinks that it can be known.
        """
        return tuple(each for each in self._sorted(schema, keys) if isinstance(each, Demand))

    def left_out(self, schema: Schema, *, keys: Sequence[str] = ()) -> tuple[str, ...]:
        """The requirements that do not apply to tables of a schema, each with the reason."""
        return tuple(each for each in self._sorted(schema, keys) if isinstance(each, str))

    def notes(self, schema: Schema, protected: Sequence[str]) -> tuple[str, ...]:
        """What does not apply to tables of a schema, and what intruders know that is not ``protected``."""
        out = self.left_out(schema, keys=protected)
        demands = self.requirements(schema, keys=protected)
        known = {name for demand in demands for name in schema.resolve(demand.scenario.columns)}
        bare = [name for name in schema.names if name in known - set(schema.resolve(protected))]
        if not protected or not bare:
            return out
        return (*out, f"an intruder of the profile also knows {listed(bare)}, which no step here protects")

    def _sorted(self, schema: Schema, keys: Sequence[str]) -> Iterator[Demand | str]:
        empty = _empty_table(schema)
        for threshold in self.thresholds:
            for intruder in self.intruders:
                if not threshold.scenarios or intruder.name in threshold.scenarios:
                    demand = Demand(threshold.requirement, intruder.scenario(schema, keys))
                    reason = _does_not_apply(demand, intruder, empty)
                    yield f"{demand} is left out: {reason}" if reason else demand

    def scenarios(self, schema: Schema, *, keys: Sequence[str] = ()) -> tuple[Scenario, ...]:
        """The intruders who know something of tables of a schema."""
        found = [intruder.scenario(schema, keys) for intruder in self.intruders]
        return tuple(scenario for scenario in found if scenario.columns)

    def apply_to(self, plan: Plan) -> Plan:
        """Add the scenarios and requirements to a plan that declares its columns.

        What the plan says already stays: its own requirements hold in its own scenarios as before.
        """
        if plan.schema is None:
            raise PlanError("the plan must declare its columns to take a profile, got: none")
        if plan.tables:
            raise PlanError("a profile must be applied to a plan for one table, got: several tables")
        untouched = plan.scenarios == (Scenario(),) and not plan.requirements and not plan.required_in
        kept = () if untouched else plan.scenarios
        ours = self.scenarios(plan.schema)
        clash = sorted({scenario.name for scenario in kept} & {scenario.name for scenario in ours})
        if clash:
            raise PlanError(
                f"a profile's scenario must have a name of its own in the plan, got twice: {listed(clash)}"
            )
        required = {
            scenario.name: (*plan.requirements, *plan.required_in.get(scenario.name, ())) for scenario in kept
        }
        for demand in self.requirements(plan.schema):
            before = required.get(demand.scenario.name, ())
            required[demand.scenario.name] = (*before, demand.requirement)
        return replace(
            plan,
            scenarios=(*kept, *ours),
            requirements=(),
            required_in={name: each for name, each in required.items() if each},
            output=replace(plan.output, shuffle=self.shuffle),
        )


def _folder() -> Any:
    return files("sfumato.recipes").joinpath("profiles")


def _empty_table(schema: Schema) -> Table:
    """A table without records, to ask a measure whether it applies to such columns at all."""
    return Table(pl.DataFrame(schema={c.name: _DTYPES[c.kind] for c in schema.columns}), schema)


def _does_not_apply(demand: Demand, intruder: Intruder, empty: Table) -> str | None:
    if not demand.scenario.columns:
        return intruder.nothing_known
    if intruder.external:  # what the intruder holds is not known here
        return None
    return demand.measure.refuses(Evidence(empty, Release.unchanged(empty), demand.scenario))


# ------------------------------------------------------------------------------------------ the file

#: Sorts of values, and what is of each.
_SORTS: Mapping[str, Callable[[Any], bool]] = {
    "a text": lambda value: isinstance(value, str),
    "a list of texts": lambda value: isinstance(value, list) and all(isinstance(v, str) for v in value),
    "a number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "a whole number": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "true or false": lambda value: isinstance(value, bool),
    "a table": lambda value: isinstance(value, dict),
    "a list of tables": lambda value: isinstance(value, list) and all(isinstance(v, dict) for v in value),
}

#: The words of each part with the sort of their values.
_PROFILE = {
    "title": "a text", "summary": "a text", "report": "a list of texts", "defaults": "a table",
    "scenarios": "a list of tables", "requirements": "a list of tables",
}  # fmt: skip
_DEFAULTS = {"rank_by": "a text", "repeats": "a whole number", "shuffle": "true or false"}
_SCENARIO = {
    "name": "a text", "reason": "a text", "roles": "a list of texts", "kinds": "a list of texts",
    "columns": "a list of texts", "records": "a number", "membership": "true or false", "external": "a text",
}  # fmt: skip
_REQUIREMENT = {
    "require": "a text", "reason": "a text", "scenarios": "a list of texts", "references": "a list of texts",
}  # fmt: skip


class _Reader:
    """Reads the parts of a profile into facts, noting what is wrong with each and going on."""

    def __init__(self) -> None:
        self.faults: list[str] = []

    def profile(self, said: Mapping[str, Any]) -> dict[str, Any]:
        """The facts of a profile; its scenarios and requirements are facts of their own."""
        facts = self._part("the profile", said, _PROFILE, needs=("title", "summary", "scenarios"))
        facts |= self._part("`defaults`", facts.pop("defaults", {}), _DEFAULTS)
        if facts.get("scenarios") == []:
            self.faults.append("a profile must have at least one scenario, got: none")
        facts["scenarios"] = [
            self._scenario(f"scenario {number}", each)
            for number, each in enumerate(facts.get("scenarios", ()), start=1)
        ]
        names = [each["name"] for each in facts["scenarios"] if "name" in each]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            self.faults.append(f"each scenario must have a name of its own, got twice: {listed(twice)}")
        facts["requirements"] = [
            self._requirement(f"requirement {number}", each, names)
            for number, each in enumerate(facts.get("requirements", ()), start=1)
        ]
        facts["report"] = tuple(
            self._made(parse_measure, "`report`", each) for each in facts.get("report", ())
        )
        if "rank_by" in facts:
            facts["rank_by"] = self._made(parse_measure, "`rank_by`", facts["rank_by"])
        if facts.get("repeats", 1) < 1:
            self.faults.append(f"`repeats` must be at least 1, got: `{facts['repeats']}`")
        return facts

    def _scenario(self, what: str, said: Mapping[str, Any]) -> dict[str, Any]:
        facts = self._part(what, said, _SCENARIO, needs=("name", "reason"))
        if not 0 < facts.get("records", 1.0) <= 1:
            self.faults.append(
                f"{what}: `records` must be a share above 0 and at most 1, got: `{facts['records']}`"
            )
        for key, words in (("roles", Role), ("kinds", Kind)):
            if key in facts:
                known = self._known(what, key, facts[key], [each.value for each in words])
                facts[key] = tuple(words(word) for word in known)
        return {**facts, "columns": tuple(facts.get("columns", ()))}

    def _requirement(self, what: str, said: Mapping[str, Any], scenarios: list[str]) -> dict[str, Any]:
        facts = self._part(what, said, _REQUIREMENT, needs=("require", "reason"))
        made = self._made(Requirement.parse, what, facts.pop("require")) if "require" in facts else None
        for key, known in (("scenarios", scenarios), ("references", references())):
            facts[key] = tuple(self._known(what, key, facts.get(key, ()), known))
        return {**facts, "requirement": made}

    def _part(
        self, what: str, said: Mapping[str, Any], words: Mapping[str, str], *, needs: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        """Keep the words that are known and hold the right sort of value."""
        kept = {}
        for key in self._known(what, "settings", said, words):
            if _SORTS[words[key]](said[key]):
                kept[key] = said[key]
            else:
                self.faults.append(f"{what}: `{key}` must be {words[key]}, got: {type(said[key]).__name__}")
        self.faults += [f"{what} must say its `{key}`, got: nothing" for key in needs if not said.get(key)]
        return kept

    def _known(self, what: str, sort: str, said: Iterable[str], known: Collection[str]) -> list[str]:
        """Keep the words of a fixed list, such as roles."""
        strange = [
            UnknownNameError.of(sort.removesuffix("s"), each, known) for each in said if each not in known
        ]
        self.faults += [f"{what}: {error.message} ({error.hint})" for error in strange]
        return [each for each in said if each in known]

    def _made(self, make: Callable[[str], Any], what: str, text: str) -> Any:
        try:
            return make(text)
        except SfumatoError as error:
            self.faults.append(f"{what}: {error.message}" + (f" ({error.hint})" if error.hint else ""))
            return None
