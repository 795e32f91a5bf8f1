"""Carry out a plan: read, protect, postprocess, judge, shuffle. Nothing is written (see `destination`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sfumato.core.budget import Budget
from sfumato.core.measure import Score
from sfumato.core.release import Release, reordered
from sfumato.core.requirement import Requirement
from sfumato.core.run import Run
from sfumato.data.checks import Violation, violations
from sfumato.data.schema import Schema
from sfumato.data.table import Table
from sfumato.errors import PlanError
from sfumato.io import FORMATS, addresses, read_contents, read_table
from sfumato.io.formats import Reading
from sfumato.io.hierarchies import read_hierarchy
from sfumato.recipes.demand import labelled
from sfumato.recipes.plan import Plan, Source, located
from sfumato.releasing.copies import judge_copies
from sfumato.releasing.joins import joins_of
from sfumato.releasing.notes import all_spent, budget_notes, measured_beside, notes_of
from sfumato.releasing.postprocess import dangling, postprocess
from sfumato.releasing.pseudonym_keys import keys_of
from sfumato.releasing.series import Member, entered
from sfumato.releasing.stakes import Stake, stake_of, warnings_of
from sfumato.study.evaluate import Case, Make
from sfumato.study.losses import Loss, losses
from sfumato.version import __version__

#: Called with a plan, its table and the run with its resources, before the work on it begins.
Loaded = Callable[[Plan, Table, Run], None]

#: Records that are looked at to see how a text is written.
_ROWS_LOOKED_AT = 10_000


@dataclass(frozen=True)
class Judgement:
    """One requirement in one scenario, and the score it is judged by."""

    requirement: Requirement
    scenario: str
    score: Score

    @property
    def met(self) -> bool:
        """Whether the score meets the requirement."""
        return self.requirement.met_by(self.score)

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON."""
        return {
            "requirement": str(self.requirement),
            "scenario": self.scenario,
            "met": self.met,
            "verdict": self.requirement.verdict(self.score),
            "score": self.score.to_dict(),
        }


@dataclass(frozen=True)
class Part:
    """What came of one table: the release as it would be written, and the judgement on it.

    ``changes`` are how many cells postprocessing changed, by what; ``broken`` the promises of the schema that
    the release does not keep; ``lost`` what became of each column, and ``stake`` who is alone in the
    keys; ``notes`` what else the owner should know. Of several ``copies`` the release is the first, and they
    are judged together. A ``member`` of a series of releases is judged beside the earlier ones.
    """

    plan: Plan
    original: Table
    release: Release
    judgements: tuple[Judgement, ...]
    broken: tuple[Violation, ...]
    changes: Mapping[str, int] = field(default_factory=dict)
    lost: tuple[Loss, ...] = ()
    stake: Stake | None = None
    notes: tuple[str, ...] = ()
    further: tuple[Release, ...] = ()
    member: Member | None = None

    @property
    def copies(self) -> tuple[Release, ...]:
        """All copies: the release, and any further ones."""
        return (self.release, *self.further)

    @property
    def budget(self) -> Budget:
        """What was spent for all copies together: each is drawn anew from the same people."""
        return all_spent(self.copies)

    @property
    def met(self) -> bool | None:
        """Whether every requirement is met; None if there is none, which says nothing of the release."""
        return all(judgement.met for judgement in self.judgements) if self.judgements else None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What must be known of the release, whatever was required of it."""
        fewer = len(self.release.first) < len(self.original)
        return tuple(warnings_of(self.plan, self.lost, self.stake, fewer=fewer))

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON: nothing per record, no seed."""
        return {
            "sfumato": __version__,
            "records": len(self.release.first),
            **({"copies": len(self.copies)} if self.further else {}),
            "columns": list(self.release.reading().names),
            **_tables(self.release),
            "steps": [step.to_dict() for step in self.release.provenance],
            **({"budget": self.budget.to_dict()} if self.budget else {}),
            **({} if self.member is None else {"in_series": self.member.to_dict()}),
            "met": self.met,
            "requirements": [judgement.to_dict() for judgement in self.judgements],
            "broken_promises": [vars(violation) for violation in self.broken],
            "changes": dict(self.changes),
            "warnings": list(self.warnings),
            "lost": [loss.to_dict() for loss in self.lost],
            "notes": list(self.notes),
        }


def _tables(release: Release) -> dict[str, Any]:
    """Of a release of several tables what each of them is."""
    if len(release.tables) == 1:
        return {}
    sizes = {
        name: {"records": len(table), "columns": list(table.names)} for name, table in release.tables.items()
    }
    return {"files": sizes}


@dataclass(frozen=True)
class Outcome:
    """What came of a plan: each table by its name, which one alone lacks, and how many numbers dangle.

    ``new_keys`` are keys of pseudonyms that were drawn, by the file each is to be kept in.
    """

    parts: Mapping[str, Part]
    dangling: Mapping[str, int] = field(default_factory=dict)
    new_keys: Mapping[Path, str] = field(default_factory=dict, repr=False)

    @property
    def release(self) -> Release:
        """The release of a plan for one table."""
        if len(self.parts) != 1:
            raise PlanError(f"the plan must be for one table, got: {len(self.parts)}")
        return next(iter(self.parts.values())).release

    @property
    def judgements(self) -> tuple[Judgement, ...]:
        """Every requirement in every scenario, over all tables."""
        return tuple(judgement for part in self.parts.values() for judgement in part.judgements)

    @property
    def unmet(self) -> int:
        """How many requirements are not met."""
        return sum(not judgement.met for judgement in self.judgements)

    @property
    def met(self) -> bool:
        """Whether something is required of every table, and all of it is met in every scenario."""
        return all(part.met for part in self.parts.values())

    @property
    def unjudged(self) -> list[str]:
        """The tables of which nothing was required, each as what is at stake in it."""
        return [
            (f"{name}: " if name else "") + (part.stake.sentence() if part.stake else "no key is known")
            for name, part in self.parts.items()
            if not part.judgements
        ]

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON: nothing per record, no seed."""
        said = {name: part.to_dict() for name, part in self.parts.items()}
        return said[""] if "" in said else {"tables": said, "dangling": dict(self.dangling)}


def load(plan: Plan) -> Table:
    """Read the plan's data as its schema says."""
    if plan.data is None:
        raise PlanError("the plan must name its data", hint='write [data] with path = "…"')
    return _read_source(plan.data, plan, schema=plan.schema)


def load_resources(plan: Plan, schema: Schema | None = None) -> dict[str, Any]:
    """Read the other files the plan uses; columns they share with its table are of the kinds declared there.

    ``schema`` is that of the table where the plan declares none.
    """
    return {
        name: read_hierarchy(str(source.check(plan.folder)))
        if source.holds == "hierarchy"
        else _read_source(source, plan, like=plan.schema or schema)
        for name, source in plan.resources.items()
    }


def reading_of(plan: Plan) -> Reading | None:
    """How the plan's data are read, so that a release can be written likewise; None if they are no text."""
    source = plan.data
    if source is None or source.is_builtin or addresses.is_address(source.path):
        return None
    place = Path(located(source.path, plan.folder))
    if FORMATS.get(place.suffix.lower()) != "delimited":
        return None
    return read_contents(place, schema=plan.schema, rows=_ROWS_LOOKED_AT, **source.reading).reading


def _read_source(
    source: Source, plan: Plan, *, schema: Schema | None = None, like: Schema | None = None
) -> Table:
    if source.is_builtin:
        from sfumato import datasets

        table = datasets.from_uri(source.path)
        return table if schema is None else Table(table.frame, schema)
    return read_table(source.check(plan.folder), schema=schema, like=like, **source.reading)


def carry_out(
    plan: Plan,
    run: Run,
    *,
    before: Loaded | None = None,
    protect: Make | None = None,
    table: Table | None = None,
) -> Outcome:
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
    keys, new_keys = keys_of(plan)
    parts = {
        name: _carry_out(
            part,
            run.at("table", name) if name else run,
            before,
            protect,
            table,
            name=name,
            key=keys.get(name),
        )
        for name, part in plan.parts.items()
    }
    tables = {name: part.release.first for name, part in parts.items()}
    return Outcome(with_joins(parts, run), dangling(tables), new_keys)


def with_joins(parts: Mapping[str, Part], run: Run) -> dict[str, Part]:
    """The same, each requirement on a risk judged also on what the released numbers of people join.

    A person (or household) is then the set of its records in all tables that hold its number.
    """
    judged = {name: list(part.judgements) for name, part in parts.items()}
    for join in joins_of(parts):
        for name in join.columns:
            for demand in parts[name].plan.demands:
                if demand.measure.aspect == "risk":
                    score = join.score(demand.measure, demand.scenario.name, run)
                    where = f"{demand.scenario.name}, all tables joined by `{join.number}`"
                    judged[name].append(Judgement(demand.requirement, where, score))
    return {name: replace(part, judgements=tuple(judged[name])) for name, part in parts.items()}


def _carry_out(
    plan: Plan,
    run: Run,
    before: Loaded | None,
    protect: Make | None,
    table: Table | None,
    *,
    name: str,
    key: bytes | None,
) -> Part:
    table = load(plan) if table is None else table
    run = replace(run, resources={**run.resources, **load_resources(plan)})
    run = entered(plan, name, table, run, read=load)
    if before is not None:
        before(plan, table, run)
    protect = protect or plan.recipe.apply
    made, changes = [], dict[str, int]()
    for copy in range(plan.output.copies):
        there = run.at("copy", copy) if copy else run  # the first is the one that there would be alone
        release, own = postprocess(protect(table, there), table, plan.output, run, key=key)
        if copy and not release.plain:
            raise PlanError("several copies must be of one table each, got: a release of several tables")
        if own and set(table.names) <= {name for each in release.tables.values() for name in each.names}:
            plan.recipe.require_kept(table, release, run)
        made.append(release)
        changes = {what: max(changes.get(what, 0), own.get(what, 0)) for what in {**changes, **own}}
    judgements = _judge(plan, table, made, run, maker(plan, protect))
    member = None if plan.series is None else Member.of(plan, table, made[0], run)
    lost, stake = losses(table, made[0]), stake_of(plan, table, made[0], run)
    if plan.output.shuffle:
        made = [_shuffled(each, table, run.at("copy", i) if i else run) for i, each in enumerate(made)]
    notes = (
        *notes_of(table, made[0], lost),
        *budget_notes(made),
        *measured_beside(table, made, run),
        *(member.notes if member else ()),
    )
    broken = max((violations(each.reading()) for each in made), key=lambda said: sum(v.records for v in said))
    further = tuple(made[1:])
    return Part(plan, table, made[0], judgements, broken, changes, lost, stake, notes, further, member)


def maker(plan: Plan, protect: Make | None = None) -> Make:
    """What makes the plan's release of a table, or of a part of it in a rehearsal, as it would be written."""
    made = protect or plan.recipe.apply
    return lambda table, run: postprocess(made(table, run), table, plan.output, run)[0]


def _shuffled(release: Release, table: Table, run: Run) -> Release:
    return reordered(release, run.at(table.digest).rng("shuffle").permutation(len(release.first)))


def _judge(
    plan: Plan, table: Table, copies: Sequence[Release], run: Run, make: Make
) -> tuple[Judgement, ...]:
    case = Case(table, resources=run.resources, control=plan.control, make=make)
    judged = judge_copies(copies, case, plan.demands, run)
    return tuple(
        Judgement(
            demand.requirement,
            ", ".join(filter(None, (demand.scenario.name, judged[label][1]))),
            judged[label][0],
        )
        for label, demand in labelled(plan.demands)
    )
