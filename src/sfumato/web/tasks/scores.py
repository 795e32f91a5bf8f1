"""What a plan makes: requirements before and after, columns, steps and the methods that can be added."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any

from sfumato.core import registry
from sfumato.core.measure import Score
from sfumato.core.params import Parameters
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.table import Table
from sfumato.recipes.demand import label_demands
from sfumato.recipes.plan import Plan
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.recipes.step_memory import StepMemory
from sfumato.releasing.carry_out import carry_out
from sfumato.releasing.decide import RULES, decide
from sfumato.releasing.load import load_resources
from sfumato.releasing.outcome import Judgement
from sfumato.study.column_sentences import ColumnSentence
from sfumato.study.cost import SHORT_SECONDS, duration
from sfumato.study.evaluate import EvaluationCase, evaluate
from sfumato.web.tasks.base import Desk, DeskMemory, read_plan, state_of, task
from sfumato.web.tasks.columns import keep_columns
from sfumato.web.tasks.forms import fields_of_step

#: Records of a quick look, where all of them would take longer, and of the trial that tells whether they do.
SAMPLED_RECORDS, _TRIED_RECORDS = 2_000, 500
#: An answer that takes fewer seconds of the processor is given on all records.
_SECONDS_AT_ONCE = 1.0


@task
def score(desk: Desk, toml: str, *, whole: bool = False) -> dict[str, Any]:
    """What a plan makes: each requirement before and after, what became of the columns, what blocks.

    Where all records would take more than a second a sample is looked at, unless the ``whole`` is asked for;
    such numbers meet no requirement.
    """
    plan = read_plan(toml)
    memory = desk.memory(plan)
    n = len(memory.table)
    seconds = 0.0 if whole or n <= SAMPLED_RECORDS else _expected_seconds(desk, toml)
    if seconds <= _SECONDS_AT_ONCE:
        return {"sampled": 0, "records": n, "seconds": seconds, **_answer(desk, toml, n)}
    found = _answer(desk, toml, SAMPLED_RECORDS)
    why = f"it is judged on all {n:,} records when it is released, not on {SAMPLED_RECORDS:,}"
    unjudged = {"rule": "requirement-missed", "must": RULES["requirement-missed"], "message": why}
    others = (each for each in found["decision"]["findings"] if each["rule"] != unjudged["rule"])
    return {
        **found,
        "sampled": SAMPLED_RECORDS,
        "records": n,
        "seconds": seconds,
        "requirements": [
            {**each, "met": False, "sampled": SAMPLED_RECORDS} for each in found["requirements"]
        ],
        "decision": {**found["decision"], "open": False, "met": [], "findings": [*others, unjudged]},
    }


def _expected_seconds(desk: Desk, toml: str) -> float:
    """What an answer on all records will take, by what it took on few and on more; they are tried once."""
    plan = read_plan(toml)
    memory, sizes = desk.memory(plan), (_TRIED_RECORDS, SAMPLED_RECORDS)
    for records in sizes * 2:  # what is loaded or compiled on the way counts the first time
        if not memory.costs.is_tried(plan, *sizes):
            memory.steps.pop(records, None)
            _answer(desk, toml, records)
    return memory.costs.expected_seconds(plan, len(memory.table))


def _answer(desk: Desk, toml: str, records: int) -> dict[str, Any]:
    """What a plan makes of so many records; a step that was taken before need not be taken again."""
    plan = read_plan(toml)
    memory = desk.memory(plan)
    table, steps = memory.sample(records), memory.steps.setdefault(records, StepMemory())
    steps.basis = tuple((name, str(each), state_of(each, plan)) for name, each in plan.resources.items())
    run = replace(desk.run(), randomness=memory.chance)
    originals = _scores_of_original(memory, plan, table, steps.basis, run.silent())
    if table is not memory.table:  # the order of a sample says nothing
        plan = replace(plan, output=replace(plan.output, shuffle=False))

    def protect(other: Table, run: Run) -> Release:
        return plan.recipe.apply(other, run, steps if other is table else None)

    with memory.costs.noting(plan, records, anew=steps.is_empty):
        outcome = carry_out(plan, run, table=table, protect=protect)
        decision = decide(outcome, subject="the release")
        sparks = keep_columns(desk, toml, outcome)
    return {
        "requirements": [_requirement(each, originals) for each in outcome.judgements],
        "decision": decision.to_dict(),
        "changes": {
            each.column: str(ColumnSentence(each)) for part in outcome.parts.values() for each in part.lost
        },
        "sparks": sparks,
        "warnings": [each for part in outcome.parts.values() for each in (*part.warnings, *part.notes)],
    }


def _scores_of_original(
    memory: DeskMemory, plan: Plan, table: Table, basis: Hashable, run: Run
) -> Mapping[tuple[str, str], Any]:
    """What the original would score if it were released, by requirement and intruder."""
    key = (len(table), basis, str([str(each) for each in plan.demands]), plan.control)
    if key not in memory.originals:
        case = EvaluationCase(table, resources=load_resources(plan), control=plan.control)
        scores = evaluate(Recipe().apply(table, run), case, plan.demands, run).scores
        memory.originals[key] = {
            (str(demand.requirement), demand.scenario.name): scores[label].to_dict()
            for label, demand in label_demands(plan.demands)
        }
    return memory.originals[key]


def _requirement(judged: Judgement, originals: Mapping[tuple[str, str], Any]) -> dict[str, Any]:
    """A requirement with the score of the candidate, and of the original as if it were released."""
    unknown = Score.not_estimable("the plan asks for it in another way").to_dict()
    return {
        **judged.to_dict(),
        "sampled": 0,
        "original": originals.get((str(judged.requirement), judged.scenario), unknown),
        "short": judged.requirement.short,
        "measure": judged.requirement.measure.name,
        "level": judged.requirement.level,
        "sign": judged.requirement.sign,
    }


@task
def tell_cost(desk: Desk, toml: str) -> str:
    """How long it takes to make and judge the release of a plan once, in a sentence; "" where it is short."""
    plan = read_plan(toml)
    if desk.known is None:  # it has answered nothing yet
        return ""
    table, costs = desk.table(plan), desk.memory(plan).costs
    if len(table) <= SAMPLED_RECORDS or (seconds := costs.expected_seconds(plan, len(table))) < SHORT_SECONDS:
        return ""
    return f"This takes about {duration(seconds)} or longer."


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
            "fields": [each.to_dict() for each in fields_of_step(step, plan, table)],
        }
        for step in plan.recipe.steps
    ]
    return {
        "steps": steps,
        "methods": _methods(table),
        "columns": _columns(plan),
        "intruders": intruders_of(plan),
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


def intruders_of(plan: Plan) -> list[dict[str, Any]]:
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
def explain_measure(desk: Desk, name: str) -> dict[str, Any]:  # noqa: ARG001
    """What a measure means."""
    cls = registry.measure(name)
    return {"title": cls.title, "summary": cls.summary(), "description": cls.description()}
