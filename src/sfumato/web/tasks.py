"""What a desk or job is asked to do: each a call of the rooms below with plain data in and out, no cells."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.core import registry
from sfumato.core.measure import Score
from sfumato.core.params import Parameters
from sfumato.core.run import Progress, ProgressEvent, Run
from sfumato.data.persons import sample_by_person
from sfumato.data.records import parse_toml
from sfumato.data.schema import UNIT_ROLES, Role, with_roles
from sfumato.data.table import Table
from sfumato.errors import ParameterError, PlanError, UnknownNameError
from sfumato.recipes.demand import label_demands
from sfumato.recipes.plan import Plan
from sfumato.recipes.profile import Profile
from sfumato.recipes.recipe import Recipe, Step
from sfumato.recipes.starter import safe_steps
from sfumato.releasing.carry_out import carry_out
from sfumato.releasing.decide import decide
from sfumato.releasing.load import inspect, load, load_resources
from sfumato.releasing.outcome import PlanOutcome
from sfumato.releasing.prepare import Prepared, prepare_release
from sfumato.releasing.request import Request
from sfumato.study.column_sentences import ColumnSentence
from sfumato.study.evaluate import EvaluationCase, evaluate
from sfumato.tuning.tuning_result import describe
from sfumato.web.candidates import candidate_of, ranking_of
from sfumato.web.fields import fields_of, settings_from

#: Records of a quick look, where all of them would take longer than a second.
SAMPLED_RECORDS = 2_000
#: Records that are scored at once on every change.
_RECORDS_AT_ONCE = 20_000

Task = Callable[..., Any]
TASKS: dict[str, Task] = {}


def task(function: Task) -> Task:
    """Let the server ask for a function by its name."""
    TASKS[function.__name__] = function
    return function


@dataclass
class Desk:
    """What a process keeps between tasks: the tables that it has read, and whom it tells of its work."""

    tell: Callable[[Mapping[str, Any]], None]
    stopped: Callable[[], bool]
    tables: dict[Any, Table] = field(default_factory=dict)
    originals: dict[Any, dict[tuple[str, str], Any]] = field(default_factory=dict)

    def run(self, resources: Mapping[str, Any] | None = None) -> Run:
        """A run whose chance the system gives, and whose progress the page shows."""

        def report(event: ProgressEvent) -> None:
            self.tell({"kind": "progress", "content": vars_of(event)})

        def found(content: Mapping[str, Any]) -> None:
            self.tell({"kind": "found", "content": candidate_of(content)})

        progress = Progress(report=report, found=found, stopped=self.stopped)
        return Run(progress=progress, resources=resources)

    def table(self, plan: Plan) -> Table:
        """The plan's table, read once while the file and how it is read stay as they are."""
        if plan.schema is None:
            raise PlanError("The plan has no columns of one table.", hint="the page shows plans of one table")
        plain = plan.schema.replace(
            *(replace(each, role=None, role_basis="") for each in plan.schema.columns)
        )
        key = (_state_of(plan), str(plan.data), str(plain.to_dict()))
        if key not in self.tables:
            self.tables.clear()  # one file at a time: memory is what a desk has least of
            self.originals.clear()
            self.tables[key] = load(plan)
        return replace(self.tables[key], schema=plan.schema)


def vars_of(event: ProgressEvent) -> dict[str, Any]:
    """How far it has come, for JSON."""
    return {"task": event.task, "done": event.done, "total": event.total, "note": event.note}


def _state_of(plan: Plan) -> tuple[Any, ...]:
    """What tells that a file has changed."""
    if plan.data is None or plan.data.is_builtin:
        return ()
    place = Path(plan.data.check(plan.folder))
    return (place.stat().st_mtime_ns, place.stat().st_size) if place.is_file() else ()


def read_plan(toml: str) -> Plan:
    """The plan of a text, its files as they are seen from the folder that is served."""
    return Plan.from_dict(parse_toml(toml, "the plan"))


# Start ----------------------------------------------------------------------------------------------------


@task
def look_into(desk: Desk, source: str, reading: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ARG001
    """What is in a file, and which role each column seems to have; profiles to choose from."""
    overview = inspect(source, **reading)
    return {
        "overview": overview.to_dict(),
        "warnings": overview.warnings(),
        "roles": [role.value for role in Role],
        "profiles": [_describe_profile(name) for name in Profile.names()],
    }


def _describe_profile(name: str) -> dict[str, Any]:
    profile = Profile.load(name)
    return {
        "name": name,
        "title": profile.title,
        "summary": profile.summary,
        "intruders": [{"name": each.name, "reason": each.reason} for each in profile.intruders],
        "requirements": [
            {"text": str(each.requirement), "against": list(each.scenarios), "reason": each.reason}
            for each in profile.thresholds
            if not each.series
        ],
    }


def _prepare(request: Mapping[str, Any]) -> Prepared:
    return prepare_release(Request(**{**request, "matters": tuple(request.get("matters", ()))}))


@task
def draft(desk: Desk, request: Mapping[str, Any], *, with_step: bool) -> dict[str, Any]:  # noqa: ARG001
    """The plan that answers make: roles, profile, and for the desk a first step that can meet it."""
    prepared = _prepare(request)
    plan = prepared.plan
    if with_step and not plan.recipe.steps and plan.schema is not None:
        step = next(iter(safe_steps(plan.schema, plan.demands)), None)
        drop = dict.fromkeys(
            (*plan.output.drop, *(plan.schema.with_role(*UNIT_ROLES) if plan.demands else ()))
        )
        plan = replace(
            plan, recipe=Recipe((step,) if step else ()), output=replace(plan.output, drop=tuple(drop))
        )
    return {"toml": plan.to_toml()}


# Desk -----------------------------------------------------------------------------------------------------


@task
def score(desk: Desk, toml: str, *, whole: bool = False) -> dict[str, Any]:
    """What a plan makes: each requirement before and after, what became of the columns, what blocks.

    Of many records a sample is looked at unless the ``whole`` is asked for; such numbers meet no requirement.
    """
    plan = read_plan(toml)
    table, run = desk.table(plan), desk.run()
    sampled = len(table) > _RECORDS_AT_ONCE and not whole
    if sampled:
        table = table.take(sample_by_person(table, SAMPLED_RECORDS, np.random.default_rng(0)))
    outcome = carry_out(plan, run, table=table)
    return {
        "sampled": len(table) if sampled else 0,
        "records": len(table),
        "requirements": _requirements(desk, plan, table, outcome, run),
        "decision": decide(outcome, subject="the release").to_dict(),
        "changes": {
            each.column: str(ColumnSentence(each)) for part in outcome.parts.values() for each in part.lost
        },
        "warnings": [each for part in outcome.parts.values() for each in (*part.warnings, *part.notes)],
    }


def _requirements(
    desk: Desk, plan: Plan, table: Table, outcome: PlanOutcome, run: Run
) -> list[dict[str, Any]]:
    """Each requirement with the score of the candidate, and of the original as if it were released."""
    key = (len(table), str([str(each) for each in plan.demands]), str(plan.schema and plan.schema.to_dict()))
    if key not in desk.originals:
        case = EvaluationCase(table, resources=load_resources(plan), control=plan.control)
        unprotected = Recipe().apply(table, run.silent())
        scores = evaluate(unprotected, case, plan.demands, run.silent()).scores
        desk.originals[key] = {
            (str(demand.requirement), demand.scenario.name): scores[label].to_dict()
            for label, demand in label_demands(plan.demands)
        }
    unknown = Score.not_estimable("the plan asks for it in another way").to_dict()
    return [
        {
            **each.to_dict(),
            "original": desk.originals[key].get((str(each.requirement), each.scenario), unknown),
            "short": each.requirement.short,
            "measure": each.requirement.measure.name,
            "level": each.requirement.level,
            "sign": each.requirement.sign,
        }
        for each in outcome.judgements
    ]


@task
def recipe(desk: Desk, toml: str) -> dict[str, Any]:
    """The steps of a plan, each with the fields of its method; and methods by family with why they refuse."""
    plan = read_plan(toml)
    table = desk.table(plan)
    steps = [
        {
            "method": step.method.name,
            "title": step.method.title,
            "summary": type(step.method).summary(),
            "columns": list(step.columns),
            "resolved": list(step.resolve(table.schema)),
            "fields": [each.to_dict() for each in fields_of(step.method)],
        }
        for step in plan.recipe.steps
    ]
    return {
        "steps": steps,
        "methods": _methods(table),
        "columns": _columns(plan),
        "intruders": _intruders(plan),
    }


def _methods(table: Table) -> dict[str, list[dict[str, str]]]:
    families: dict[str, list[dict[str, str]]] = {}
    for cls in registry.methods().values():
        faults = [*Step(cls()).faults(table.schema)] if not _needs_setting(cls) else []
        families.setdefault(cls.family, []).append(
            {"name": cls.name, "title": cls.title, "summary": cls.summary(), "why_not": "; ".join(faults[:1])}
        )
    return families


def _needs_setting(cls: type[Parameters]) -> bool:
    """Whether a method cannot be made without being told something."""
    return any(each.default is dataclasses.MISSING for each in cls.parameters())


def _intruders(plan: Plan) -> list[dict[str, Any]]:
    """Each intruder with the columns that they know, who knows most first."""
    assert plan.schema is not None
    schema = plan.schema.dropping(plan.left_out)
    known = {each.name: schema.resolve(each.columns) or schema.known_columns() for each in plan.scenarios}
    some = [{"name": name, "columns": list(columns)} for name, columns in known.items()]
    return sorted(some, key=lambda each: -len(each["columns"]))


def _columns(plan: Plan) -> list[dict[str, Any]]:
    assert plan.schema is not None
    return [
        {
            "name": each.name,
            "kind": each.kind.value,
            "role": each.role.value if each.role else "",
            "released": each.name not in plan.left_out,
        }
        for each in plan.schema.columns
    ]


@task
def edit(desk: Desk, toml: str, action: str, values: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ARG001
    """A plan with one thing changed, and what was done in words."""
    plan = read_plan(toml)
    if action not in _EDITS:
        raise UnknownNameError.of("action", action, _EDITS)
    changed, words = _EDITS[action](plan, values)
    return {"toml": changed.to_toml(), "action": words}


def _with_steps(plan: Plan, steps: Sequence[Step]) -> Plan:
    changed = replace(plan, recipe=Recipe(tuple(steps)))
    return Plan.from_dict(changed.to_dict(), folder=plan.folder)  # where all its faults are found


def _number(plan: Plan, values: Mapping[str, Any]) -> int:
    number = int(values.get("step", 0))
    if not 0 <= number < len(plan.recipe.steps):
        raise ParameterError(f"There is no step {number + 1} in this plan.")
    return number


def _add_step(plan: Plan, values: Mapping[str, Any]) -> tuple[Plan, str]:
    method = registry.method(str(values["method"]))()
    return _with_steps(plan, [*plan.recipe.steps, Step(method)]), f"added {method.name}"


def _change_step(plan: Plan, values: Mapping[str, Any]) -> tuple[Plan, str]:
    number = _number(plan, values)
    old = plan.recipe.steps[number]
    method = settings_from(type(old.method), values)
    columns = tuple(str(each) for each in values.get("columns", old.columns))
    steps = [*plan.recipe.steps]
    steps[number] = replace(old, method=method, columns=columns)
    return _with_steps(plan, steps), f"{method}"


def _remove_step(plan: Plan, values: Mapping[str, Any]) -> tuple[Plan, str]:
    number = _number(plan, values)
    steps = [each for i, each in enumerate(plan.recipe.steps) if i != number]
    return _with_steps(plan, steps), f"removed {plan.recipe.steps[number].method.name}"


def _use_recipe(plan: Plan, values: Mapping[str, Any]) -> tuple[Plan, str]:
    """The steps of a candidate instead of those of the plan."""
    try:
        specs = json.loads(str(values.get("steps", "")))
    except ValueError:
        raise ParameterError("The steps of the candidate cannot be read.") from None
    recipe = Recipe.from_list(specs)
    return _with_steps(plan, recipe.steps), f"took {describe(recipe)}"


def _set_role(plan: Plan, values: Mapping[str, Any]) -> tuple[Plan, str]:
    assert plan.schema is not None
    name, role = str(values["column"]), str(values["role"])
    return replace(plan, schema=with_roles(plan.schema, {name: role})), f"{name} is {role}"


def _set_profile(plan: Plan, values: Mapping[str, Any]) -> tuple[Plan, str]:
    profile = Profile.of(str(values["profile"]))
    bare = replace(plan, scenarios=(), requirements=(), required_in={})
    return profile.apply_to(bare), f"requirements of {profile.name}"


def _set_about(plan: Plan, values: Mapping[str, Any]) -> tuple[Plan, str]:
    texts: dict[str, Any] = {
        name: str(values[name]) for name in ("title", "purpose", "contact") if name in values
    }
    return replace(plan, about=replace(plan.about, **texts)), "described the release"


_EDITS: dict[str, Callable[[Plan, Mapping[str, Any]], tuple[Plan, str]]] = {
    "add-step": _add_step,
    "change-step": _change_step,
    "remove-step": _remove_step,
    "use-recipe": _use_recipe,
    "set-role": _set_role,
    "set-profile": _set_profile,
    "describe": _set_about,
}


@task
def explain_measure(desk: Desk, name: str) -> dict[str, Any]:  # noqa: ARG001
    """What a measure means."""
    cls = registry.measure(name)
    return {"title": cls.title, "summary": cls.summary(), "description": cls.description()}


# Jobs -----------------------------------------------------------------------------------------------------


@task
def make_release(
    desk: Desk, *, request: Mapping[str, Any], minutes: float, folder: str, override: str = ""
) -> dict[str, Any]:
    """Search, judge and write, as `sfumato release` does."""
    from sfumato import front

    prepared = _prepare(request)
    released = front.make_release(
        prepared, subject=str(request["source"]), minutes=minutes, run=desk.run(), override=override
    )
    return _write_release(released, folder)


@task
def carry_out_plan(desk: Desk, *, toml: str, folder: str, override: str = "") -> dict[str, Any]:
    """Carry out a plan as it stands, judge it and write its folder."""
    from sfumato import front

    plan = read_plan(toml)
    prepared = prepare_release(Request(source=plan.data.path if plan.data else None, plan=plan))
    released = front.make_release(
        prepared, subject="the release", minutes=5.0, run=desk.run(), override=override
    )
    return _write_release(released, folder)


def _write_release(released: Any, folder: str) -> dict[str, Any]:
    written = released.write(folder, overwrite=False)
    place = Path(folder)
    return {
        "folder": folder,
        "files": [str(path.relative_to(place)) for path in written],
        "sentences": released.sentences(),
        "toml": released.plan.to_toml(),
    }


@task
def find_recipe(desk: Desk, *, toml: str, minutes: float) -> dict[str, Any]:
    """The recipe that meets the plan's requirements and loses least, as `sfumato tune` finds it."""
    from sfumato import front

    plan = read_plan(toml)
    known = (plan.recipe,) if plan.recipe.steps else ()
    tuned = front.tune(
        desk.table(plan), plan.demands, plan=plan, resources=load_resources(plan), minutes=minutes,
        known=known, run=desk.run(),
    )  # fmt: skip
    content = tuned.to_dict()
    return {
        "toml": tuned.plan.to_toml(),
        "recipe": describe(tuned.recipe),
        "candidates": [candidate_of(each) for each in (content["recommended"], *content["runners_up"])],
        "sentences": tuned.sentences(),
    }


@task
def compare_methods(
    desk: Desk, *, toml: str, methods: Sequence[str], intruder: str = "", points: int = 4
) -> dict[str, Any]:
    """Bring methods to the risk of the plan's recipe, and rank them; as `sfumato compare` does.

    The risk is that from one ``intruder``, the plan's first if none is named.
    """
    from sfumato import front
    from sfumato.report.charts import charts
    from sfumato.report.content import twin

    plan = read_plan(toml)
    table = desk.table(plan)
    known = {each.name: each for each in plan.scenarios}
    if intruder and intruder not in known:
        raise UnknownNameError.of("scenario", intruder, known)
    scenario = known[intruder] if intruder else plan.scenarios
    study = front.compare(
        table, [*plan.recipe.steps[:1], *methods], scenario=scenario, resources=load_resources(plan),
        repeats=2, points=points, run=desk.run(),
    )  # fmt: skip
    content = twin(study, public=False)
    return {
        "headline": content["headline"],
        "aim": f"{study.aim} against “{study.scenario.name}”",
        "ranking": ranking_of(study, content),
        "charts": {name: spec for name, spec in charts(content).items() if name == "map"},
    }


@task
def verify_folder(desk: Desk, *, folder: str) -> dict[str, Any]:
    """Check every file of a release folder, and make the release again."""
    from sfumato.releasing.verify import verify_release

    reports = verify_release(Path(folder), desk.run())
    return {
        "holds": all(each.holds for each in reports.values()),
        "reports": {str(path): each.to_dict() for path, each in reports.items()},
    }


@task
def pictures(desk: Desk, *, toml: str) -> dict[str, Any]:
    """The sections and charts of the internal report of what a plan makes."""
    from sfumato.report.page import sections_of_release
    from sfumato.report.pictures import specs_of
    from sfumato.report.release_result import Released

    plan, run = read_plan(toml), desk.run()
    outcome = carry_out(plan, run, table=desk.table(plan))
    released = Released(outcome, None, "the steps of the plan", run, about=plan.about, seconds=60.0)
    content = released.tell().to_dict(public=False)
    sections = sections_of_release(content)
    parts = next((each.parts for each in sections if each.title == "Distributions"), ())
    entries = content.get("distributions", ())  # several tables have theirs each: then none is by column
    return {
        "sections": [each.to_dict() for each in sections],
        "charts": specs_of(sections),
        "columns": {
            entry["column"]: {"charts": list(part.charts), "notes": list(part.notes)}
            for entry, part in zip(entries, parts, strict=False)
        },
    }


@task
def find_riskiest(desk: Desk, *, toml: str) -> dict[str, Any]:
    """The records most at risk from the intruder who knows most, and what would hide each; no value."""
    from sfumato.web.riskiest import list_riskiest

    plan = read_plan(toml)
    strongest = _intruders(plan)[0]["name"]
    scenario = next(each for each in plan.scenarios if each.name == strongest)
    return list_riskiest(plan, desk.table(plan), scenario, desk.run())


@task
def reveal_record(desk: Desk, *, toml: str, row: int) -> dict[str, Any]:
    """The values of one record of the original. They are shown once and kept nowhere."""
    from sfumato.explain.keys import cell

    table = desk.table(read_plan(toml))
    if not 0 <= row < len(table):
        raise ParameterError(f"There is no record {row} in this file.")
    return {name: cell(table, name, row) for name in table.names}
