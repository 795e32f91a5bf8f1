"""Makes a plan of what was asked: **the one place** where options, answers and files get their meaning."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.core.release import Release
from sfumato.core.requirement import Requirement
from sfumato.data.guess.columns import guess
from sfumato.data.persons import persons_of
from sfumato.data.scenario import CONTROL, Scenario
from sfumato.data.schema import MATTERS, Kind, Role, Schema, with_roles
from sfumato.data.table import Table
from sfumato.errors import DataError, ParameterError, PlanError, ReadError, quoted
from sfumato.io import frames
from sfumato.io.formats import written_suffix
from sfumato.kernels.arrays import count_distinct
from sfumato.recipes.parts import Source
from sfumato.recipes.plan import Plan
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.releasing.load import inspect, is_plan, load_resources, read, read_counts
from sfumato.releasing.read_release import merged_columns, read_release, require_written_alike
from sfumato.releasing.request import (
    Request,
    require_columns,
    resolve,
    share_of,
    with_control,
    with_files,
    with_hierarchies,
    with_key,
)

if TYPE_CHECKING:
    from sfumato.core.measure import Measure
    from sfumato.data.guess.overview import Overview
    from sfumato.recipes.profile import Profile

#: Whom a release is for, unless someone says.
DEFAULT_PROFILE = "scientific"

#: Whose word the role of a column is where nobody has declared it: what `Column.role_basis` says.
GUESSED, ACCEPTED, ANSWERED = "guessed", "proposed, and accepted with Enter", "answered"

#: Which share of the persons sits out a rehearsal, unless someone says; of fewer persons nobody does.
SITTING_OUT, _FEWEST_ATTACKED = 0.2, 400

#: Asks a person for the roles that nothing or little speaks for: by column the role, and whose word it is.
Ask = Callable[["Overview"], Mapping[str, tuple[str, str]]]


# What is looked at: `risk`, `utility`, `explain`, `compare`, `tune`, a file at the gate -------------------


@dataclass(frozen=True)
class AssessmentRequest:
    """What is asked about: an original, the intruders, other tables, and perhaps a release that was made."""

    plan: Plan
    table: Table
    scenarios: tuple[Scenario, ...]
    resources: Mapping[str, Any]
    release: Release | None = None
    source: Any = None
    notes: tuple[str, ...] = ()
    merged: tuple[str, ...] = ()  #: columns of a file at the gate that show apart what was read as one value

    @property
    def scenario(self) -> Scenario | None:
        """The first intruder, where only one can be looked at; None where nobody describes any."""
        return None if self.scenarios == (Scenario(),) else self.scenarios[0]

    @property
    def others(self) -> str:
        """What to know where only the first intruder is looked at, and there are others."""
        if len(self.scenarios) == 1:
            return ""
        return f"measured against `{self.scenarios[0].name}`, the first of {len(self.scenarios)} scenarios"


def prepare_question(
    request: Request,
    *,
    released: Any = None,
    aligned: bool = False,
    counted_for: Sequence[Measure] = (),
    judged: bool = True,
) -> AssessmentRequest:
    """Read what is asked about; where a plan has several intruders, each of them is meant.

    Of a released file that is ``judged`` no column may tell people apart who are read as alike.
    What is ``counted_for`` some measures stays in its database (see `read_counts`).
    """
    named = resolve(request, released=released)
    plan = with_files(named.plan, request)
    scenarios = (Scenario(columns=request.columns),) if request.columns else plan.scenarios
    if counted_for:
        table = read_counts(named.data, counted_for, scenarios, schema=plan.schema, as_released=True)
    else:
        table = named.read(request)
    schema = with_roles(with_hierarchies(table.schema, request), request.roles)
    table = replace(table, schema=schema)
    require_columns(schema, request.columns)
    resources = load_resources(plan, schema)
    other: Any = released if named.released is None else named.released
    if isinstance(other, str) and other.startswith("builtin:"):
        other = read(other).frame
    release = None
    if other is not None:
        how = {"resources": resources, "reading": named.reading(request)}
        release = read_release(table, other, aligned=aligned, **how)
        if judged and isinstance(other, str | Path):
            require_written_alike(release.reading(), Path(other), named.reading(request), scenarios)
    return AssessmentRequest(plan, table, scenarios, resources, release, named.data, named.notes)


def prepare_file(
    request: Request, *, original: str | None = None, aligned: bool = False
) -> AssessmentRequest:
    """Read a file as it would leave, with what is required of it and, where that is known, its original.

    A file that was released brings its plan along: roles, requirements, and the original if that is still
    where the plan looks for it and still the same.
    """
    named = resolve(request, released=request.source)
    file, plan = named.released or Path(request.source), named.plan
    if plan.data is not None and original is None and request.plan is None:
        original = _original_of(plan)
    if request.control and share_of(str(request.control)) is not None:
        raise ParameterError("`--control` of a file must be a file of other people, got: a share")
    asked = replace(request, source=str(original or file), plan=plan, require=(), profile=None, roles={})
    released = None if original is None else file
    question = prepare_question(asked, released=released, aligned=aligned, judged=False)
    table = question.table if question.release is None else question.release.reading()
    schema = with_roles(_with_guesses(table.schema, plan), request.roles)
    plan = with_requirements(replace(question.plan, schema=schema), request)
    if question.release is None:
        question = replace(question, table=replace(table, schema=schema))
    merged = merged_columns(table, file, named.reading(request))
    return replace(question, plan=plan, notes=named.notes, merged=merged)


def _original_of(plan: Plan) -> str | None:
    """Where the data of a plan are, if they are still there."""
    assert plan.data is not None
    try:
        return plan.data.path if plan.data.is_builtin else str(plan.data.check(plan.folder))
    except ReadError:
        return None


def _with_guesses(schema: Schema, plan: Plan) -> Schema:
    """The schema of a file, saying of roles that no plan declares that they are guessed."""
    if plan.schema is not None:
        return schema
    guessed = (replace(each, role_basis=GUESSED) for each in schema.columns if each.role)
    return schema.replace(*guessed)


# What is protected by one step: `protect`, `protocol` -----------------------------------------------------


@dataclass(frozen=True)
class Prepared:
    """The plan that was asked for; its table and the way back to its type where they are at hand."""

    plan: Plan
    table: Table | None = None
    native: Any = None
    profile: Profile | None = None
    source: Path | None = None
    notes: tuple[str, ...] = ()

    def with_importance(self, matters: Sequence[str]) -> Prepared:
        """The same, with the columns that analysts need most worth more than the others."""
        if self.plan.schema is None or self.table is None:
            return self
        schema = with_importance(self.plan.schema, matters)
        return replace(self, plan=replace(self.plan, schema=schema), table=replace(self.table, schema=schema))

    def leaving_out(self, columns: Sequence[str]) -> Prepared:
        """The same without some columns; the profile asks nothing of sensitive ones among them."""
        assert self.plan.schema is not None
        assert self.table is not None
        schema = self.plan.schema.dropping(columns)
        plan = replace(_dropping(self.plan, columns), schema=schema)
        if self.profile is not None and self.profile.thresholds:
            plan = _asked_by(self.profile, plan)
        return replace(self, plan=plan, table=replace(self.table, schema=schema))


def prepare_step(request: Request, step: Step, *, check: Callable[[Plan], None] | None = None) -> Prepared:
    """The plan that protects a file by one step.

    A plan that is named says the rest: columns, resources, scenarios, requirements, and what else is to be
    dropped or repaired. ``check`` sees the plan before the data are read.
    """
    named = resolve(request)
    plan = with_files(named.plan, request)
    drop = tuple(request.output.get("drop", ()))
    output = replace(
        plan.output,
        path=str(request.output["path"]),
        drop=tuple(dict.fromkeys((*plan.output.drop, *drop))),
        shuffle=plan.output.shuffle and not request.output.get("keep_order"),
    )
    data = request.source_as_given(plan.source_at(str(named.data)))
    plan = replace(plan, data=data, recipe=Recipe((step,)), output=output, tables={})
    if check is not None:
        check(plan)
    schema = with_hierarchies(plan.schema or read(named.data, **data.reading).schema, request)
    require_columns(schema, (*step.columns, *step.within, *drop))
    schema = _pseudonymous(with_roles(schema, request.roles), request)
    if faults := plan.recipe.faults(schema):
        raise PlanError.gather("the recipe", faults)
    # What the owner has not decided counts as known: a plan that is written down is stricter.
    undecided = schema.columns_without_role()
    basis = "no role given, so taken as a key"
    known = (replace(schema[name], role=Role.KEY, role_basis=basis) for name in undecided)
    plan = with_requirements(replace(plan, schema=schema.replace(*known)), request, step)
    if blockers := plan.blockers():
        raise PlanError("; ".join(blockers), hint="drop fewer columns")
    left = [name for name in undecided if name not in (*step.resolve(schema), *step.within, *plan.left_out)]
    notes = [f"warning: {warning}" for warning in plan.warnings()]
    if left:
        free = f"released unchanged, as no role is given: {quoted(left)}"
        notes.insert(0, f"note: {free}; give a --role, or --drop the column")
    return Prepared(plan, source=named.path, notes=(*named.notes, *notes))


def _pseudonymous(schema: Schema, request: Request) -> Schema:
    """A schema with pseudonyms for numbers of persons and households, where a key for them is named."""
    from sfumato.recipes.starter import with_pseudonyms

    if not request.pseudonym_key:
        return schema
    schema = with_pseudonyms(schema)
    if not any(column.pseudonym for column in schema.columns):
        raise PlanError(
            "--pseudonym-key needs a column that numbers persons or households, got: none",
            hint="name it with --role COLUMN=person",
        )
    return schema


def with_requirements(plan: Plan, request: Request, step: Step | None = None) -> Plan:
    """The plan with what is required beside its own: single requirements, and those of a profile.

    Where nothing is required of the risk, a method that enforces something asks for that.
    """
    from sfumato.recipes.profile import Profile

    wanted = (r if isinstance(r, Requirement) else Requirement.parse(r) for r in request.require)
    plan = replace(plan, requirements=(*plan.requirements, *wanted), only=request.only or plan.only)
    if request.profile:
        return Profile.of(request.profile).apply_to(plan)
    return plan if step is None or plan.risk_demands else _with_enforced_requirements(plan, step)


def _with_enforced_requirements(plan: Plan, step: Step) -> Plan:
    """The plan that requires what its step enforces: of all keys, or of combinations of columns."""
    assert plan.schema is not None  # it was read, or the plan declares it
    enforced = step.method.enforced_requirements(plan.schema, step.resolve(plan.schema))
    whole = tuple(Requirement.parse(text) for text, columns in enforced if not columns)
    parts: dict[Scenario, tuple[Requirement, ...]] = {}
    for text, columns in enforced:
        if columns:
            intruder = Scenario("+".join(columns), columns)
            parts[intruder] = (*parts.get(intruder, ()), Requirement.parse(text))
    if not parts:
        return replace(plan, requirements=(*plan.requirements, *whole))
    required = {each.name: (*plan.required_in.get(each.name, ()), *whole) for each in plan.scenarios}
    required |= {scenario.name: each for scenario, each in parts.items()}
    return replace(
        plan,
        scenarios=(*plan.scenarios, *parts),
        required_in={name: each for name, each in required.items() if each},
    )


# What is released for someone: `release` ------------------------------------------------------------------


def prepare_release(request: Request, *, ask: Ask | None = None) -> Prepared:
    """The plan of a release: that which is named, or one with every role decided and a profile's demands.

    A plan that has steps is taken as it stands. Else columns are looked at, ``ask`` is asked for the roles
    that nothing or little speaks for, and each role says whose word it is.
    """
    from sfumato.recipes.profile import Profile
    from sfumato.recipes.starter import with_pseudonyms

    data, path = request.source, Path(request.source) if is_plan(request.source) else None
    plan = with_control(_named_plan(request), request.control)
    about = replace(plan.about, **request.about)
    plan = replace(plan, about=about, only=request.only or plan.only)
    plan = _dropping(plan, request.output.get("drop", ()))
    if plan.tables or plan.recipe.steps:
        return Prepared(_as_it_stands(plan, request), profile=_profile_of(request), source=path)
    if plan.series is not None:
        raise PlanError(
            "a plan in a series needs steps, so that each person keeps the same noise, got: none",
            hint="make the first release without [series], and copy the steps from its plan",
        )
    profile = _profile_of(request)  # a wrong name is told before the file is read
    overview = inspect(data, roles=request.roles, **request.reading)
    if not overview.records:
        raise DataError(
            "the table has names of columns and no records",
            hint="give a file with the records below the names",
        )
    schema = with_importance(_decide_roles(overview, request, ask), request.matters)
    require_columns(schema, request.output.get("drop", ()))
    require_roles(schema.select([name for name in schema.names if name not in plan.output.drop]))
    native = None
    if not isinstance(data, Table | str | Path):
        _, form = frames.to_polars(data)
        native = partial(frames.to_native, native=form)
    how: Mapping[str, Any] = {**overview.reading, **request.source_as_given(Source("")).reading_options}
    as_is = isinstance(data, Table) or is_plan(data)
    table = read(data) if as_is else read(data, schema=schema, **request.reading)
    source = replace(plan.data, **how) if plan.data else None
    plan = replace(plan, data=source, output=with_key(plan, plan.folder, request))
    plan = replace(_with_place(plan), schema=with_pseudonyms(schema.dropping(plan.output.drop)))
    if not request.control and _enough_persons(replace(table, schema=schema)):
        plan = with_control(plan, plan.control or SITTING_OUT) if CONTROL not in plan.resources else plan
    if request.profile or not plan.risk_demands:
        profile = Profile.of(request.profile or DEFAULT_PROFILE)
        plan = _asked_by(profile, plan)
    if not plan.risk_demands:
        plan = replace(plan, schema=_with_pseudonyms(plan.schema or schema, table))
    return Prepared(plan, replace(table, schema=plan.schema or schema), native, profile, path)


def _dropping(plan: Plan, columns: Sequence[str]) -> Plan:
    """The plan that also leaves out some columns."""
    if columns and plan.tables:
        raise ParameterError("--drop works for one table, got: a plan of several")
    drop = tuple(dict.fromkeys((*plan.output.drop, *columns)))
    return replace(plan, output=replace(plan.output, drop=drop))


def _asked_by(profile: Profile, plan: Plan) -> Plan:
    """The plan with what a profile asks in place of its own."""
    return profile.apply_to(replace(plan, scenarios=(), requirements=(), required_in={}))


def _with_pseudonyms(schema: Schema, table: Table) -> Schema:
    """The schema with pseudonyms for keys that are numbers of someone: no step will change them."""
    named = {each.column.name for each in guess(table.frame) if each.column.role is Role.IDENTIFIER}
    keys = [each for each in schema.columns if each.role is Role.KEY and each.name in named]
    codes = [each for each in keys if each.kind is Kind.NOMINAL]  # an amount would be lost
    return schema.replace(*(replace(each, pseudonym=each.pseudonym or each.name) for each in codes))


def _with_place(plan: Plan, name: str = "release") -> Plan:
    """The plan with a file for each table, of the format that its data have, where it names none."""
    if plan.tables:
        return replace(plan, tables={table: _with_place(part, table) for table, part in plan.tables.items()})
    path = plan.output.path or f"{name}{written_suffix(plan.data.path if plan.data else '')}"
    return replace(plan, output=replace(plan.output, path=path))


def _enough_persons(table: Table) -> bool:
    """Whether a share of the persons can sit out a rehearsal, so that attacks on the release are tried."""
    return count_distinct(persons_of(table)) >= _FEWEST_ATTACKED


def _named_plan(request: Request) -> Plan:
    """What is known of a plan before its data are looked at: at least where a file is."""
    if isinstance(request.plan, Plan):
        return request.plan
    if is_plan(request.source):
        return Plan.read(Path(request.source))
    is_file = isinstance(request.source, str | Path)
    return Plan(Source(str(request.source))) if is_file else Plan()


def _profile_of(request: Request) -> Profile:
    """The profile that is asked for; else one that stands for what the plan itself requires."""
    from sfumato.recipes.profile import Profile

    if request.profile:
        return Profile.of(request.profile)
    own: dict[str, Any] = {"name": "plan", "title": "", "summary": ""}
    return replace(Profile.of(DEFAULT_PROFILE), **own, intruders=(), thresholds=())


def _as_it_stands(plan: Plan, request: Request) -> Plan:
    """A plan that has its steps, with roles that were given, and what a profile requires beside it."""
    from sfumato.recipes.profile import Profile

    refused = [name for name in ("pseudonym_key", "control") if plan.tables and getattr(request, name)]
    if refused:
        option = refused[0].replace("_", "-")
        raise ParameterError(f"--{option} works for one table, got: a plan of several")
    if plan.tables and not any(part.recipe.steps for part in plan.parts.values()):
        raise PlanError(
            "a plan of several tables needs steps, got: none",
            hint="find the steps of one table at a time with `sfumato tune`",
        )
    if request.roles and plan.schema is None:
        raise PlanError("roles can only be given to a plan that declares its columns")
    if request.roles and plan.schema is not None:
        plan = replace(plan, schema=with_roles(plan.schema, request.roles))
    if request.matters and plan.schema is not None:
        plan = replace(plan, schema=with_importance(plan.schema, request.matters))
    plan = _with_place(replace(plan, output=with_key(plan, plan.folder, request)))
    return Profile.of(request.profile).apply_to(plan) if request.profile else plan


def with_importance(schema: Schema, matters: Sequence[str]) -> Schema:
    """The schema in which the columns that analysts need most are worth more than the others."""
    require_columns(schema, matters)
    return schema.replace(*(replace(schema[name], importance=MATTERS) for name in schema.resolve(matters)))


def _decide_roles(overview: Overview, request: Request, ask: Ask | None) -> Schema:
    """The schema with a role for each column, and whose word each is."""
    answers = ask(overview) if ask is not None else {}
    columns = []
    for summary in overview.columns:
        column = summary.column
        if column.name in answers:
            role, basis = answers[column.name]
            columns.append(replace(column, role=Role(role), role_basis=basis))
        elif column.name not in request.roles and summary.guess.is_guessed:
            reason = f"{GUESSED}: {summary.guess.role_reason}"
            columns.append(replace(column, role_basis=reason if column.role else ""))
    return overview.schema.replace(*columns)


def require_roles(schema: Schema) -> None:
    """Stop if nothing says what a column is to others; list the columns, and what to type."""
    if undecided := schema.columns_without_role():
        them = f"{'it' if len(undecided) == 1 else 'them'}: --drop {shlex.quote(','.join(undecided))}"
        role = shlex.quote(f"{undecided[0]}=sensitive")
        raise PlanError(
            f"these columns have no role: {quoted(undecided)}",
            hint=f"give each one: --role {role}, key or other; or remove {them}",
        )
