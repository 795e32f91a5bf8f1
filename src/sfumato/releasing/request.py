"""What someone asks for, and what their source stands for: a plan, the data, perhaps a released file.

Whoever asks (a verb, a Python call, a page) fills a `Request`. A source may be data, a plan, or a release:
a folder that `release` wrote, or a file in one, brings the plan along by which it was released.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.core.requirement import Requirement
from sfumato.core.vetting import Only
from sfumato.data.scenario import CONTROL
from sfumato.data.schema import Schema
from sfumato.data.table import Table
from sfumato.errors import ParameterError, PlanError, ReadError, UnknownNameError, quoted
from sfumato.io.addresses import is_address
from sfumato.recipes.parts import Output, Source, locate
from sfumato.recipes.plan import Plan
from sfumato.releasing.checksums import PRIVATE
from sfumato.releasing.load import is_plan, read, require_file
from sfumato.releasing.trail import PLAN, plan_of_file
from sfumato.study.evaluate import require_share

if TYPE_CHECKING:
    from sfumato.recipes.profile import Profile

#: The way on where a folder does not say which of its files are meant.
_NAME_FILES = "name the files themselves: the original, then the released file"


@dataclass(frozen=True, kw_only=True)
class Request:
    """What someone asks for: a source, and what they say of it; the rest is found or left as usual.

    ``source`` is a path, a plan, a release, a built-in data set, a frame or a ``Table``; ``plan`` is a plan
    beside it. ``columns`` are those that the intruder knows, ``matters`` those that analysts need most.
    ``hierarchies`` are files by column,
    ``resources`` by the names that methods and measures call them; ``control`` is a share of the persons or
    a file of others. ``reading`` says how a file of data is written, where that is not to be found out;
    ``about`` what its owner says of a release, before what a plan says (see `About`); ``only`` confines it to
    what is vetted.
    """

    source: Any = None
    plan: Path | Plan | None = None
    roles: Mapping[str, str] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    require: Sequence[str | Requirement] = ()
    profile: Profile | str | Path | None = None
    matters: tuple[str, ...] = ()
    hierarchies: Mapping[str, str] = field(default_factory=dict)
    resources: Mapping[str, str] = field(default_factory=dict)
    control: str | float = ""
    pseudonym_key: str = ""
    reading: Mapping[str, Any] = field(default_factory=dict)
    output: Mapping[str, Any] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)
    only: Only = ""

    def __post_init__(self) -> None:
        require_file(self.source, self.reading)

    def source_as_given(self, source: Source) -> Source:
        """A source that is read as was said."""
        options = dict(self.reading)
        if "header" in options:
            options["header"] = "yes" if options["header"] else "no"
        return replace(source, **options)


# What a source stands for -------------------------------------------------------------------------------


@dataclass(frozen=True)
class ResolvedSource:
    """What a source stands for: a plan (an empty one where none is named), the data, and a released file."""

    plan: Plan
    data: Any
    path: Path | None = None
    released: Path | None = None
    notes: tuple[str, ...] = ()

    def read(self, request: Request) -> Table:
        """The data, as was said, or as the plan says, that they are to be read."""
        is_file = not str(self.data).startswith("builtin:") and isinstance(self.data, str | Path)
        return read(self.data, schema=self.plan.schema, **(self.reading(request) if is_file else {}))

    def reading(self, request: Request) -> dict[str, Any]:
        """How the data are to be read."""
        return request.source_as_given(self.plan.source_at("")).reading


def resolve(request: Request, *, released: Any = None) -> ResolvedSource:
    """Find out what a source and a released file beside it stand for, and the plan that belongs to them."""
    source, given = request.source, request.plan
    if given is None and isinstance(source, str | Path) and Path(source).is_dir():
        table, plan, trail = _released_in(Path(source))
        return ResolvedSource(plan, _data_of(plan, trail), None, table, _notes_on(table, trail))
    if is_plan(source):
        path = Path(source)
        plan = Plan.read(path)
        return ResolvedSource(plan, _data_of(plan, path), path, *_compare_roles(released, plan))
    if given is not None:
        file = None if isinstance(given, Plan) else given
        plan = given if isinstance(given, Plan) else Plan.read(given)
        return ResolvedSource(plan, source, file, *_compare_roles(released, plan))
    found_plan = plan_of_file(released) if isinstance(released, str | Path) else None
    if found_plan is None:
        return ResolvedSource(Plan(), source, None, *_compare_roles(released, Plan()))
    plan, trail = found_plan
    return ResolvedSource(plan, source, None, Path(released), _notes_on(Path(released), trail))


def _notes_on(released: Path, trail: Path) -> tuple[str, ...]:
    return (f"roles and scenarios come from the plan of the release `{released}`, in `{trail}`",)


def _released_in(folder: Path) -> tuple[Path, Plan, Path]:
    """The table of a release folder, the plan by which it was released, and the trail that keeps it."""
    if not (folder / PRIVATE / PLAN).is_file():
        raise ReadError(f"`{folder}` is a folder without the private part of a release", hint=_NAME_FILES)
    released_files = [
        (path, *found) for path in sorted(folder.iterdir()) if (found := plan_of_file(path)) is not None
    ]
    if not released_files:
        raise ReadError(
            f"`{folder}` contains no table as it was released",
            hint=f"`sfumato verify {folder}` shows what has changed",
        )
    if len({plan.output.path for _, plan, _ in released_files}) > 1:
        names = quoted(path.name for path, _, _ in released_files)
        raise ParameterError(f"`{folder}` contains several tables: {names}", hint=_NAME_FILES)
    return released_files[0]


def _data_of(plan: Plan, path: Path) -> str:
    if plan.data is None:
        raise PlanError(f"the plan `{path}` must name the data of one table, got: none or several")
    return plan.data.path if plan.data.is_builtin else str(plan.data.check(plan.folder))


def _compare_roles(released: Any, plan: Plan) -> tuple[Path | None, tuple[str, ...]]:
    """A released file, and how the roles of its own plan differ from those of the plan that is named."""
    if not isinstance(released, str | Path) or str(released).startswith("builtin:"):
        return None, ()
    found_plan, place = plan_of_file(released), Path(released)
    if found_plan is None or found_plan[0].schema is None or plan.schema is None:
        return place, ()
    then, now = found_plan[0].schema, plan.schema
    differing = [
        f"`{name}` ({then[name].role} then, {now[name].role or 'none'} now)"
        for name in then.names
        if name in now and then[name].role is not now[name].role
    ]
    note = f"the roles differ from those by which `{place}` was released: {', '.join(differing)}"
    return place, (note,) if differing else ()


# Other files ----------------------------------------------------------------------------------------------


def with_files(plan: Plan, request: Request) -> Plan:
    """A plan that also names the files that were asked for, all as they are seen from the present folder."""
    resources = {
        name: each if each.is_builtin else replace(each, path=str(locate(each.path, plan.folder)))
        for name, each in plan.resources.items()
    }
    for column, path in request.hierarchies.items():
        resources[hierarchy_resource(column)] = Source(path, holds="hierarchy")
    resources |= {name: Source(path) for name, path in request.resources.items()}
    series = plan.series and plan.series.seen_from(Path(), now=plan.folder)
    output = with_key(plan, Path(), request)
    plan = replace(plan, resources=resources, output=output, series=series, folder=Path())
    return with_control(plan, request.control)


def with_key(plan: Plan, folder: Path, request: Request) -> Output:
    """The plan's output with its key of pseudonyms as seen from another folder, or that asked for."""
    own = request.pseudonym_key
    key = Path(own) if own else locate(plan.output.pseudonym_key, plan.folder)
    if not (own or plan.output.pseudonym_key) or not isinstance(key, Path):
        return plan.output
    return replace(plan.output, pseudonym_key=os.path.relpath(key, folder))


def with_control(plan: Plan, control: str | float) -> Plan:
    """The plan with a control: a share of the persons who sit out a rehearsal, or a file of others."""
    share = control if isinstance(control, float) else share_of(control)
    if not control:
        return plan
    if share is not None:
        require_share(share)
        others = {name: each for name, each in plan.resources.items() if name != CONTROL}
        parts = {name: with_control(part, control) for name, part in plan.tables.items()}
        return replace(plan, control=share, resources=others, tables=parts)
    if plan.tables:
        raise ParameterError(
            "`--control` must be a share of the persons for a plan of several tables, got: a file",
            hint="in the plan each table can name one as its resource `control`",
        )
    text = str(control)
    is_file = not text.startswith("builtin:") and not is_address(text)
    place = os.path.relpath(text, plan.folder) if is_file else text
    return replace(plan, control=0.0, resources={**plan.resources, CONTROL: Source(place)})


def share_of(control: str) -> float | None:
    """A share of the persons, if that is what was given as control, and no file."""
    try:
        return float(control)
    except ValueError:
        return None


def with_hierarchies(schema: Schema, request: Request) -> Schema:
    """A schema whose columns have the hierarchies that were asked for."""
    require_columns(schema, tuple(request.hierarchies))
    named = (replace(schema[each], hierarchy=hierarchy_resource(each)) for each in request.hierarchies)
    return schema.replace(*named)


def hierarchy_resource(column: str) -> str:
    """What the resource with the hierarchy of a column is called."""
    return f"hierarchy of {column}"


def require_columns(schema: Schema, names: Sequence[str]) -> None:
    """Stop at the first column that is not there, suggesting near names."""
    for name in names:
        if not name.startswith("@") and name not in schema:
            raise UnknownNameError.of("column", name, schema.names)
