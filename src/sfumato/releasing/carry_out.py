"""Carry out a plan: read, protect, postprocess, judge, shuffle. Nothing is written (see `destination`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sfumato.core.release import Release, reorder
from sfumato.core.run import Run
from sfumato.data.checks import violations
from sfumato.data.schema import Role
from sfumato.data.table import Table
from sfumato.errors import PlanError
from sfumato.recipes.demand import label_demands
from sfumato.recipes.plan import Plan
from sfumato.releasing.copies import judge_copies
from sfumato.releasing.count_tables import count_beside
from sfumato.releasing.key_exposure import key_exposure_of
from sfumato.releasing.linked_tables import joins_of, unlinked_table_notes
from sfumato.releasing.load import load, load_resources
from sfumato.releasing.notes import budget_notes, format_notes, measured_risk_notes, notes_of
from sfumato.releasing.outcome import Judgement, PlanOutcome, TableOutcome
from sfumato.releasing.postprocess import dangling, postprocess
from sfumato.releasing.pseudonym_keys import keys_of
from sfumato.releasing.series import SeriesMember, enter_series
from sfumato.study.column_changes import losses
from sfumato.study.evaluate import EvaluationCase, Make

#: Called with a plan, its table and the run with its resources, before the work on it begins.
Loaded = Callable[[Plan, Table, Run], None]

#: Records from which on it takes a while to judge and write what was protected.
_WORTH_TELLING = 100_000


def carry_out(
    plan: Plan,
    run: Run,
    *,
    before: Loaded | None = None,
    protect: Make | None = None,
    table: Table | None = None,
) -> PlanOutcome:
    """Protect every table of a plan and judge what came of it; people have the same pseudonym in all of them.

    Parameters
    ----------
    plan
        For one table or for several.
    run
        Where chance comes from.
    before
        Sees each plan, its table and the run with its resources, once they are read.
    protect
        Makes the release of a table; by default the plan's recipe does.
    table
        The table of a plan for one table, where it is at hand and need not be read.
    """
    blockers = plan.blockers()
    if blockers:
        raise PlanError.gather("the plan", blockers, hint="correct the columns in the plan")
    run, (keys, new_keys) = replace(run, randomness=run.randomness.for_release()), keys_of(plan)
    parts = {}
    for name, part in plan.parts.items():
        here = run.at("table", name) if name else run
        parts[name] = _carry_out(part, here, before, protect, table, name=name, key=keys.get(name))
    tables = {name: part.release.first for name, part in parts.items()}
    return PlanOutcome(with_joins(parts, run), run.randomness, dangling(tables), new_keys)


def with_joins(parts: Mapping[str, TableOutcome], run: Run) -> dict[str, TableOutcome]:
    """The same, each requirement on a risk judged also on what the released numbers of people join.

    A person (or household) is then the set of its records in all tables that hold its number.
    """
    judged = {name: list(part.judgements) for name, part in parts.items()}
    for join in joins_of(parts):
        for name in join.tables:
            for demand in parts[name].plan.demands:
                if demand.measure.aspect == "risk":
                    score = join.score(demand.measure, demand.scenario.name, run)
                    where = f"{demand.scenario.name}, all tables joined by `{join.number}`"
                    judged[name].append(Judgement(demand.requirement, where, score))
    alone = unlinked_table_notes(parts)
    return {
        name: replace(
            part,
            judgements=tuple(judged[name]),
            notes=(*part.notes, *([alone[name]] if name in alone else [])),
        )
        for name, part in parts.items()
    }


def _carry_out(
    plan: Plan,
    run: Run,
    before: Loaded | None,
    protect: Make | None,
    table: Table | None,
    *,
    name: str,
    key: bytes | None,
) -> TableOutcome:
    table = load(plan) if table is None else table
    run = replace(run, resources={**run.resources, **load_resources(plan)})
    run = enter_series(plan, name, table, run, read=load)
    if before is not None:
        before(plan, table, run)
    protect = protect or plan.recipe.apply
    made, changes = [], dict[str, int]()
    for copy in range(plan.output.copies):
        there = run.at("copy", copy) if copy else run  # the first is the one that there would be alone
        release, own = postprocess(protect(table, there), table, plan.output, run, key=key)
        if copy and not release.plain:
            raise PlanError("`copies` above 1 needs a release of one table, got: several tables")
        shown = {name for each in release.tables.values() for name in each.names}
        if own and shown.issuperset(
            table.schema.with_role(Role.SENSITIVE, Role.WEIGHT)
        ):  # or none can measure
            plan.recipe.require_guarantees(table, release, run)
        made.append(release)
        changes = {what: max(changes.get(what, 0), own.get(what, 0)) for what in {**changes, **own}}
    beside = count_beside(plan, table, made[0], run)
    case = EvaluationCase(table, resources=run.resources, control=plan.control, make=maker(plan, protect))
    _tell_phase(table, run, "judging the release")
    judgements = (*_judge(plan, case, made, run), *beside.judgements)
    _tell_phase(table, run, "counting what changed")
    member = None if plan.series is None else SeriesMember.of(plan, table, made[0], run)
    lost, stake = losses(table, made[0]), key_exposure_of(plan, table, made[0], run)
    if plan.output.shuffle:
        _tell_phase(table, run, "shuffling the records")
        made = [_shuffle_records(each, table, run.at("copy", i) if i else run) for i, each in enumerate(made)]
    notes = (
        *notes_of(table, made[0], lost),
        *format_notes(plan, made[0]),
        *budget_notes(table, made),
        *measured_risk_notes(table, made, run),
        *(member.notes if member else ()),
        *beside.notes,
    )
    found = (violations(each.reading()) for each in made)
    broken = max(found, key=lambda each: sum(violation.records for violation in each))
    further = tuple(made[1:])
    return TableOutcome(
        plan, table, made[0], judgements, broken, changes, lost, stake, notes, further, member, beside, case
    )


def _tell_phase(table: Table, run: Run, phase: str) -> None:
    """Say what of a large table is done now; of a small one it is done before anybody has read it."""
    if len(table) >= _WORTH_TELLING:
        run.tell(phase, 0, 0)


def maker(plan: Plan, protect: Make | None = None) -> Make:
    """What makes the plan's release of a table, or of a part of it in a rehearsal, as it would be written."""
    made = protect or plan.recipe.apply
    return lambda table, run: postprocess(made(table, run), table, plan.output, run)[0]


def _shuffle_records(release: Release, table: Table, run: Run) -> Release:
    return reorder(release, run.at(table).rng("shuffle").permutation(len(release.first)))


def _judge(plan: Plan, case: EvaluationCase, copies: Sequence[Release], run: Run) -> tuple[Judgement, ...]:
    judged = judge_copies(copies, case, plan.demands, run)
    return tuple(
        Judgement(
            demand.requirement,
            ", ".join(filter(None, (demand.scenario.name, judged[label][1]))),
            judged[label][0],
        )
        for label, demand in label_demands(plan.demands)
    )
