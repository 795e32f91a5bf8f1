"""A plan: data, schema, scenarios, recipe, requirements and outputs in one TOML file that reruns."""

from __future__ import annotations

import hashlib
import os
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import date
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

import tomli_w

from sfumato.core.params import Resource
from sfumato.core.requirement import Requirement
from sfumato.data.scenario import CONTROL, Scenario
from sfumato.data.schema import Role, Schema
from sfumato.errors import PlanError, ReadError, SfumatoError, UnknownNameError, trouble_with
from sfumato.io import addresses
from sfumato.io.formats import READING
from sfumato.io.stdin import STDIN, piped
from sfumato.recipes.demand import Demand, read_scenarios, say_scenarios
from sfumato.recipes.recipe import Recipe

T = TypeVar("T")

#: The parts of a plan, and what sort of TOML value each is.
_PARTS: Mapping[str, type] = {
    "data": dict,
    "columns": dict,
    "rules": list,
    "related": list,
    "scenarios": list,
    "resources": dict,
    "steps": list,
    "requirements": list,
    "output": dict,
    "series": dict,
    "release": dict,
    "tables": dict,
}
#: The parts that a plan of several tables has beside them.
_BESIDE_TABLES = frozenset({"tables", "release"})


@dataclass(frozen=True)
class Source:
    """A file (or a table of a database) the plan uses.

    A file has its fingerprint, so that another file of the same name is noticed; and how it is to be read,
    where that is not to be found out: ``delimiter``, ``decimal``, ``encoding``, the ``sheet`` of a workbook,
    and whether names stand in its first line (``header``, "yes" or "no").
    """

    path: str
    holds: Literal["table", "hierarchy"] = "table"
    sha256: str = ""
    delimiter: str = ""
    decimal: str = ""
    encoding: str = ""
    header: str = ""
    sheet: str = ""

    @property
    def reading(self) -> dict[str, Any]:
        """What is said of how it is to be read, as `sfumato.io.read_table` takes it."""
        said = {name: getattr(self, name) for name in READING if getattr(self, name)}
        return {**said, "header": self.header == "yes"} if self.header else said

    @property
    def is_builtin(self) -> bool:
        """Whether it is a built-in data set, and no file."""
        return self.path.startswith("builtin:")

    def check(self, folder: Path) -> Path | str:
        """Where it is, once it is there and is the file the plan was written for."""
        place = located(self.path, folder)
        if isinstance(place, str):
            return place
        if not place.is_file():
            raise ReadError(f"`{self.path}` must be a file, got: none there", hint=f"looked in {folder}")
        if self.sha256 and fingerprint(place) != self.sha256.lower():
            raise ReadError(
                f"`{self.path}` must be the file the plan was written for, got: other contents",
                hint="correct its `sha256` in the plan if the change is meant",
            )
        return place


def located(path: str, folder: Path) -> Path | str:
    """Where a plan's path leads from the plan's folder: a file, or the address of a table in a database."""
    if path == STDIN:
        return piped()
    return addresses.within(path, folder) if addresses.is_address(path) else folder / path


def _relative(place: Path, folder: Path) -> str:
    """A path as seen from a folder, also where a folder on the way is a link; else the whole path."""
    whole = Path(os.path.realpath(place.parent), place.name)
    try:
        return Path(os.path.relpath(whole, os.path.realpath(folder))).as_posix()
    except ValueError:
        return str(whole)  # on another drive


def fingerprint(path: Path) -> str:
    """SHA-256 of a file's contents."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@dataclass(frozen=True)
class Output:
    """What is written and how.

    ``drop`` names the columns that stay behind; ``shuffle`` breaks the order of the records; ``repair``
    mends whole numbers, ranges and totals; ``guard`` keeps spreadsheets from running text as formulas;
    ``pseudonym_key`` is the file with the key of pseudonyms, made where there is none: with it people keep
    their pseudonyms from release to release. Of several ``copies``, drawn apart from each other, each is a
    file ``NAME.1.csv``, ``NAME.2.csv`` …
    """

    path: str = ""
    drop: tuple[str, ...] = ()
    shuffle: bool = True
    repair: bool = False
    guard: bool = False
    pseudonym_key: str = ""
    copies: int = 1


@dataclass(frozen=True)
class Sequel:
    """That a release is one of a series of the same people: the first, or the next after some ``earlier``.

    These are folders, or the private trails in them, the oldest first; ``record`` is the column that tells
    the records of one person apart, where people have several.
    """

    earlier: tuple[str, ...] = ()
    name: str = ""
    record: str = ""

    def seen_from(self, folder: Path, *, now: Path) -> Self:
        """The same with the paths of a plan in one folder as they are seen from another."""
        return replace(self, earlier=tuple(_relative(now / each, folder) for each in self.earlier))


@dataclass(frozen=True)
class About:
    """What its owner says of a release, for its data card and its evidence; nothing of it changes a record.

    ``title`` and ``description`` of what it is, the ``population`` and ``period`` it speaks of; ``publisher``
    and ``contact``; ``purpose`` and ``legal_basis`` of giving it out, ``recipients`` and the ``terms`` they
    agree to; ``safeguards`` around it; the ``threats`` that were thought of, what the people it is about were
    told (``transparency``), and a log of attempts to find someone (``intruder_test``); what the decision
    rests on (``basis``), who answers for it (``expert``), and the ``review_date`` on which it is looked at
    again.
    """

    title: str = ""
    description: str = ""
    population: str = ""
    period: str = ""
    publisher: str = ""
    contact: str = ""
    purpose: str = ""
    legal_basis: str = ""
    recipients: tuple[str, ...] = ()
    terms: str = ""
    safeguards: str = ""
    threats: str = ""
    transparency: str = ""
    intruder_test: str = ""
    basis: str = ""
    expert: str = ""
    review_date: str = ""


def text_of(path: Path, *, what: str, hint: str) -> str:
    """Read a file that a person has written; where there is none, the hint says what writes one."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ReadError(f"the {what} `{path}` must be a file, got: none there", hint=hint) from None
    except (OSError, UnicodeDecodeError) as error:
        found = trouble_with(error)
        raise ReadError(f"the {what} `{path}` must be a readable text file, got: {found}") from None


def parsed(text: str, what: str) -> dict[str, Any]:
    """What a text in TOML says."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PlanError(f"{what} must be TOML, got: {error}") from None


@dataclass(frozen=True)
class Plan:
    """Everything a release needs to be made again.

    Several tables that stay linked (persons and their stays) are one plan with ``tables``, each a plan of
    its own; nothing is written unless all of them may be. ``control``, said with the data, is the share of
    the persons who sit out a rehearsal: attacks are tried there, and the release is made of everyone.
    ``about``, said as ``[release]``, is what its owner says of the release.
    """

    data: Source | None = None
    schema: Schema | None = None
    scenarios: tuple[Scenario, ...] = (Scenario(),)
    resources: Mapping[str, Source] = field(default_factory=dict)
    recipe: Recipe = field(default_factory=Recipe)
    requirements: tuple[Requirement, ...] = ()  # in every scenario
    required_in: Mapping[str, tuple[Requirement, ...]] = field(default_factory=dict)  # in one, by its name
    output: Output = field(default_factory=Output)
    series: Sequel | None = None
    tables: Mapping[str, Plan] = field(default_factory=dict)
    about: About = field(default_factory=About)
    control: float = 0.0
    folder: Path = field(default=Path(), compare=False)

    def __post_init__(self) -> None:
        if not self.scenarios:  # without an intruder no requirement would be looked at, and all be met
            object.__setattr__(self, "scenarios", (Scenario(),))

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a plan, gathering every fault in it."""
        text = text_of(path, what="plan", hint="`sfumato inspect FILE --write-plan PLAN` writes one")
        return cls.from_dict(parsed(text, f"the plan `{path}`"), folder=path.parent)

    @classmethod
    def from_dict(cls, said: Mapping[str, Any], *, folder: Path = Path()) -> Self:
        """Make a plan of what a TOML file says."""
        said, faults = _well_shaped(said)
        read = _Gatherer(faults)
        about = read(_about, said.get("release", {})) or About()
        if "tables" in said:
            return cls(tables=_linked(said, faults, folder), about=about, folder=folder)
        schema_part = {key: said[key] for key in ("columns", "rules", "related") if key in said}
        resources = {
            name: read(_source, f"resource `{name}`", part)
            for name, part in said.get("resources", {}).items()
        }
        data = dict(said.get("data", {}))
        control = read(_share, data.pop(CONTROL, 0.0))
        scenarios, required_in = read_scenarios(said.get("scenarios", ()), read)
        plan: dict[str, Any] = {
            "data": read(_source, "data", data) if data else None,
            "control": control or 0.0,
            "schema": read(Schema.from_dict, schema_part) if schema_part else None,
            "scenarios": scenarios or (Scenario(),),
            "required_in": required_in,
            "resources": {name: source for name, source in resources.items() if source is not None},
            "recipe": read(Recipe.from_list, said.get("steps", ())) or Recipe(),
            "requirements": tuple(read.each(Requirement.parse, said.get("requirements", ()))),
            "output": read(_record, Output, "output", said.get("output", {})) or Output(),
            "series": read(_record, Sequel, "series", said["series"]) if "series" in said else None,
            "about": about,
        }
        if plan["output"].copies < 1:
            faults.append(f"output: `copies` must be at least 1, got: {plan['output'].copies}")
        faults += _scenario_faults(plan["scenarios"])
        if isinstance(plan["schema"], Schema):
            faults += _cross_faults(plan)
        if faults:
            raise PlanError.gather("the plan", faults)
        return cls(**plan, folder=folder)

    def to_dict(self) -> dict[str, Any]:
        """Say the plan as its TOML file does."""
        about = {"release": _plain(self.about)} if self.about != About() else {}
        if self.tables:
            return {"tables": {name: plan.to_dict() for name, plan in self.tables.items()}, **about}
        said: dict[str, Any] = {}
        if self.data or self.control:
            share = {CONTROL: self.control} if self.control else {}
            said["data"] = {**(_plain(self.data) if self.data else {}), **share}
        schema = self.schema.to_dict() if self.schema else {}
        for key in ("rules", "related"):  # TOML wants plain values before tables
            if key in schema:
                said[key] = schema[key]
        if self.requirements:
            said["requirements"] = [str(requirement) for requirement in self.requirements]
        if "columns" in schema:
            said["columns"] = schema["columns"]
        if self.scenarios != (Scenario(),) or self.required_in:
            said["scenarios"] = say_scenarios(self.scenarios, self.required_in)
        if self.resources:
            said["resources"] = {name: _plain(source) for name, source in self.resources.items()}
        if self.recipe.steps:
            said["steps"] = self.recipe.to_list()
        said |= {} if self.series is None else {"series": _plain(self.series)}
        output = _plain(self.output)
        return {**said, **({"output": output} if output else {}), **about}

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
        said = [
            (source, plan.folder)
            for plan in self.parts.values()
            for source in (*([plan.data] if plan.data else []), *plan.resources.values())
        ]
        return {source.path: located(source.path, folder) for source, folder in said if not source.is_builtin}

    def seen_from(self, folder: Path) -> Self:
        """The same plan in another folder: every file that it reads, and its keys, as seen from there."""

        def seen(path: str, own: Path) -> str:
            place = path if path == STDIN else located(path, own)
            return _relative(place, folder) if isinstance(place, Path) else place

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
            return [f"{name}: {said}" for name, plan in self.tables.items() for said in plan.warnings()]
        found = self.recipe.warnings(self.schema) if self.schema else []
        if not self.recipe.steps:
            found.append("the plan has no steps: the columns would be released as they are")
        elif self.schema:
            found += _keys_untouched(self.schema, self.recipe, self.left_out)
        return found + (bare_numbers(self.schema, self.output.drop) if self.schema else [])

    def blockers(self) -> list[str]:
        """Why nothing may be released under this plan yet."""
        if self.tables:
            return [f"{name}: {said}" for name, plan in self.tables.items() for said in plan.blockers()]
        if self.schema is None:
            return ["the plan must declare the columns, got: none"]
        kept = [name for name in self.schema.names if name not in self.left_out]
        undecided = [name for name in self.schema.undecided() if name in kept]
        blockers = []
        if not kept:
            blockers.append("at least one column must be released, got: none")
        if undecided:
            blockers.append(f"every released column must have a role, got none for: {_ticked(undecided)}")
        return blockers

    @property
    def left_out(self) -> tuple[str, ...]:
        """The columns that stay behind: those that ``drop`` names, and identifiers by their role alone."""
        drop = self.output.drop
        return (*drop, *(identifiers_left(self.schema, drop) if self.schema else ()))

    @property
    def unrequired(self) -> list[str]:
        """The tables of which nothing is required; of a plan for one table, that one without a name."""
        return [name for name, plan in self.parts.items() if not plan.demands]


def _keys_untouched(schema: Schema, recipe: Recipe, left_out: Sequence[str]) -> list[str]:
    """Warn if no step is about any of the keys that are released."""
    keys = [name for name in schema.with_role(Role.KEY) if name not in left_out]
    if not keys or {name for step in recipe.steps for name in step.resolve(schema)} & set(keys):
        return []
    return [f"no step protects any of the keys, {_ticked(keys)}: they leave as they are"]


def identifiers_left(schema: Schema, drop: Sequence[str]) -> list[str]:
    """The identifiers that nobody has dropped or given a pseudonym: they are left out by their role."""
    named = schema.with_role(Role.IDENTIFIER)
    return [name for name in named if name not in drop and not schema[name].pseudonym]


def bare_numbers(schema: Schema, drop: Sequence[str]) -> list[str]:
    """Warn of the numbers of persons and households that would be released as they are."""
    return [
        f"`{column.name}` is the {column.role}'s number, released as it is: give it a `pseudonym`"
        for column in schema.columns
        if column.role in {Role.PERSON, Role.HOUSEHOLD} and not column.pseudonym and column.name not in drop
    ]


class _Gatherer:
    """Reads parts of a plan, noting what is wrong with each and going on."""

    def __init__(self, faults: list[str]) -> None:
        self.faults = faults

    def __call__(self, make: Callable[..., T], *parts: Any) -> T | None:
        try:
            return make(*parts)
        except PlanError as error:
            self.faults += error.faults or [_one_line(error)]
        except SfumatoError as error:
            self.faults.append(_one_line(error))
        return None

    def each(self, make: Callable[[Any], T], parts: Any) -> Iterator[T]:
        for part in parts:
            made = self(make, part)
            if made is not None:
                yield made


def _one_line(error: SfumatoError) -> str:
    return f"{error.message} ({error.hint})" if error.hint else error.message


def _well_shaped(said: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Keep the parts of a plan that are known and of the right sort, and note the others."""
    kept, faults = {}, []
    for key, value in said.items():
        if key not in _PARTS:
            faults.append(_one_line(UnknownNameError.of("part of a plan", key, _PARTS)))
        elif not isinstance(value, _PARTS[key]):
            word = "a table" if _PARTS[key] is dict else "a list"
            faults.append(f"`{key}` must be {word}, got: {type(value).__name__}")
        else:
            kept[key] = value
    return kept, faults


def _about(said: Mapping[str, Any]) -> About:
    """What the owner says of the release; a date may be written as TOML writes one."""
    when = said.get("review_date", "")
    about = _record(
        About, "release", {**said, "review_date": when.isoformat()} if isinstance(when, date) else said
    )
    try:
        date.fromisoformat(about.review_date or "2000-01-01")
    except ValueError:
        raise PlanError("release: `review_date` must be a date as in 2030-12-31, got: another text") from None
    if not all(isinstance(each, str) for each in about.recipients):
        raise PlanError("release: `recipients` must be a list of texts, got: other values")
    return about


def _share(said: Any) -> float:
    """The share of the persons who sit out a rehearsal."""
    if isinstance(said, bool) or not isinstance(said, int | float) or not 0 <= said < 1:
        got = f"`{said}`" if isinstance(said, int | float) else type(said).__name__
        raise PlanError(
            f"data: `{CONTROL}` must be a share of the persons, from 0 to less than 1, got: {got}"
        )
    return float(said)


def _source(what: str, said: Mapping[str, Any]) -> Source:
    source = _record(Source, what, said)
    if source.holds not in {"table", "hierarchy"}:
        raise PlanError(f"`holds` of {what} must be table or hierarchy, got: `{source.holds}`")
    if source.header not in {"", "yes", "no"}:
        raise PlanError(f"`header` of {what} must be yes or no, got: `{source.header}`")
    return source


def _record(cls: type[T], what: str, said: Mapping[str, Any]) -> T:
    """Make a plain record of the plan, checking its words and their types."""
    if not isinstance(said, Mapping):
        raise PlanError(f"{what} must be a table, got: {type(said).__name__}")
    known = {item.name: item for item in fields(cls)}  # type: ignore[arg-type]
    faults = []
    for key, value in said.items():
        if key not in known:
            faults.append(f"{what}: " + _one_line(UnknownNameError.of("setting", key, known)))
            continue
        word, expected = _sort_of(known[key].default)
        if not isinstance(value, expected) or (isinstance(value, bool) and bool not in expected):
            faults.append(f"{what}: `{key}` must be {word}, got: {type(value).__name__}")
    if "path" in known and cls is Source and "path" not in said:
        faults.append(f"{what} must name its `path`")
    if faults:
        raise PlanError.gather(what, faults)
    return cls(**{key: tuple(value) if isinstance(value, list) else value for key, value in said.items()})


def _sort_of(default: Any) -> tuple[str, tuple[type, ...]]:
    if isinstance(default, bool):
        return "true or false", (bool,)
    if isinstance(default, int):
        return "a whole number", (int,)
    return ("a list", (list, tuple)) if isinstance(default, tuple) else ("a text", (str,))


def _linked(said: Mapping[str, Any], faults: list[str], folder: Path) -> dict[str, Plan]:
    """Read the plans of several tables, gathering the faults of all."""
    beside = sorted(set(said) - _BESIDE_TABLES)
    if beside:
        faults.append(
            f"a plan of several tables says everything in its tables, got beside them: {_ticked(beside)}"
        )
    found = {}
    for name, part in said["tables"].items():
        try:
            if not isinstance(part, Mapping) or "tables" in part:
                raise PlanError("it must be a plan for one table")
            found[name] = Plan.from_dict(part, folder=folder)
            if found[name].output.copies > 1:
                raise PlanError(
                    "`copies` must be 1 where tables are linked: each copy would need the others'"
                )
        except PlanError as error:
            faults += [f"{name}: {fault}" for fault in error.faults or (_one_line(error),)]
    paths = [located(plan.output.path, folder) for plan in found.values() if plan.output.path]
    if len({path.resolve() if isinstance(path, Path) else path for path in paths}) < len(paths):
        faults.append("each table must be written to a file of its own, got: the same `path` twice")
    if faults:
        raise PlanError.gather("the plan", faults)
    return found


def _plain(record: Any) -> dict[str, Any]:
    default = {item.name: item.default for item in fields(record)}
    said = {key: getattr(record, key) for key in default if getattr(record, key) != default[key]}
    return {key: list(value) if isinstance(value, tuple) else value for key, value in said.items()}


def _scenario_faults(scenarios: Sequence[Scenario]) -> list[str]:
    names = [scenario.name for scenario in scenarios]
    twice = sorted({name for name in names if names.count(name) > 1})
    return [f"each scenario must have a name of its own, got twice: {_ticked(twice)}"] if twice else []


def _resource_faults(
    recipe: Recipe, requirements: Sequence[Requirement], resources: Mapping[str, Source]
) -> Iterator[str]:
    steps = [(f"step {number}", step.method) for number, step in enumerate(recipe.steps, start=1)]
    for place, described in (*steps, *(("requirements", each.measure) for each in requirements)):
        for declared in described.parameters():
            value = getattr(described, declared.name)
            if not isinstance(value, Resource):
                continue
            what = f"{place}: `{declared.name}` of {described.name}"
            if value not in resources:
                yield f"{what} names a resource that is not declared: `{value}`"
            elif declared.holds and resources[value].holds != declared.holds:
                yield f"{what} must name a resource that holds a {declared.holds}, got: `{value}`"


def _cross_faults(plan: Mapping[str, Any]) -> list[str]:
    """What the parts of a plan say that does not fit together."""
    schema: Schema = plan["schema"]
    faults: list[str] = plan["recipe"].faults(schema)
    required = [*plan["requirements"], *(each for own in plan["required_in"].values() for each in own)]
    faults += _resource_faults(plan["recipe"], required, plan["resources"])
    for scenario in plan["scenarios"]:
        try:
            schema.resolve(scenario.columns)
        except UnknownNameError as error:
            faults.append(f"scenario `{scenario.name}`: {_one_line(error)}")
        if scenario.external and scenario.external not in plan["resources"]:
            faults.append(
                f"scenario `{scenario.name}` names a resource that is not declared: `{scenario.external}`"
            )
    if plan["control"] and CONTROL in plan["resources"]:
        faults.append(f"`{CONTROL}` must be a share of the persons or a resource, got: both")
    faults += [
        f"`drop` names a column that is not declared: `{n}`" for n in plan["output"].drop if n not in schema
    ]
    faults += _series_faults(plan["series"], schema)
    for column in schema.columns:
        if column.hierarchy and column.hierarchy not in plan["resources"]:
            faults.append(
                f"column `{column.name}` names a hierarchy that is not declared: `{column.hierarchy}`"
            )
    return faults


def _series_faults(series: Sequel | None, schema: Schema) -> Iterator[str]:
    """What a plan lacks for people to be found again in other releases."""
    if series is None:
        return
    if schema.only_role(Role.PERSON) is None:
        yield 'series: a column must tell whose each record is (role = "person"), got: none'
    if series.record and series.record not in schema:
        yield f"series: `record` names a column that is not declared: `{series.record}`"
    wrong = sum(not isinstance(each, str) for each in series.earlier)
    if wrong:
        yield f"series: `earlier` must be a list of texts, got: {wrong} of another type"


def _ticked(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
