"""Rehearses the plan of the last release on the next wave: what will fail, for how many, since what moved.

Nothing is written, and whether it may leave is decided as of every plan (see `decide`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.core.run import Run
from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.data.persons import persons_of
from sfumato.data.table import Table
from sfumato.errors import Cancelled, DataError, ParameterError, PlanError, SfumatoError, count_noun, quoted
from sfumato.io.addresses import is_address
from sfumato.kernels.arrays import count_distinct
from sfumato.recipes.plan import Plan
from sfumato.releasing.decide import Decision, decide_plan
from sfumato.releasing.load import is_plan, load, load_resources
from sfumato.releasing.outcome import Judgement
from sfumato.releasing.trail import plan_of_trail, read_trail, trail_paths, trails_in
from sfumato.study.column_drift import LEVEL, ColumnDrift, find_drift, with_distribution_of


@dataclass(frozen=True)
class LastWave:
    """The plan of the last release, and its private trail where it has left one."""

    plan: Plan
    trail: Path | None = None

    @classmethod
    def of(cls, source: str) -> LastWave:
        """Find it by the plan, or by the folder, file or trail of the release."""
        if not is_plan(source):
            trail, *others = trails_in(Path(source))
            if others:
                raise ParameterError(
                    f"`{source}` must have one private trail, got: {1 + len(others)}",
                    hint="name the trail: FOLDER/NAME.private.json",
                )
            return cls(plan_of_trail(trail), trail)
        plan = Plan.read(Path(source))
        found = trail_paths(plan.folder / plan.output.path) if plan.output.path else []
        return cls(plan, found[0] if found else None)

    def read(self, original: str | None) -> tuple[Table | None, str]:
        """Its data (``original``, where they are elsewhere now), or why these are not at hand."""
        plan, contents = self.plan, None if self.trail is None else read_trail(self.trail).get("contents")
        if original is not None:
            return load(_with_data(plan, original)), ""
        try:
            table = load(plan)
        except (SfumatoError, OSError):
            return None, "the data of the last wave are not where they were"
        if contents is not None and table.digest.hex() != contents:
            return None, "the data of the last wave have changed since its release"
        return table, ""

    def followed_by(self, data: str) -> Plan:
        """The plan for the next wave: of the same steps, with this release as an earlier one of a series."""
        plan = _with_data(self.plan, data)
        if plan.series is None or self.trail is None:
            return plan
        trail = os.path.relpath(self.trail, plan.folder)
        earlier = dict.fromkeys((*plan.series.earlier, trail))
        return replace(plan, series=replace(plan.series, earlier=tuple(earlier)))


def _with_data(plan: Plan, data: str) -> Plan:
    if plan.data is None:
        raise PlanError("a rehearsal needs a plan that names the data of one table, got: none or several")
    named = data.startswith("builtin:") or is_address(data)
    path = data if named else str(Path(data).absolute())
    return replace(plan, data=replace(plan.data, path=path, sha256=""))


@dataclass(frozen=True)
class Failure:
    """A requirement that the next wave will miss: for how many persons, and since which columns moved."""

    judgement: Judgement
    persons: int | None
    of: int
    since: tuple[str, ...]
    why: str

    @property
    def sentence(self) -> str:
        """What will fail, for how many, and why."""
        whom = "" if self.persons is None else f"; for {self.persons:,} of {count_noun(self.of, 'person')}"
        return f"{self.judgement.sentence}{whom}; {self.why}"

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON."""
        return {
            "requirement": str(self.judgement.requirement),
            "scenario": self.judgement.scenario,
            "persons": self.persons,
            "of": self.of,
            "since": list(self.since),
            "why": self.why,
        }


@dataclass(frozen=True)
class Rehearsal:
    """What would come of the next wave: the decision, what will fail and why, and the columns that moved."""

    decision: Decision
    failures: tuple[Failure, ...]
    drifts: tuple[ColumnDrift, ...]
    notes: tuple[str, ...] = ()

    @property
    def lines(self) -> list[str]:
        """Sentences on the columns, and what could not be looked at."""
        return [*(each.sentence for each in self.drifts if each.is_told), *self.notes]

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON: nothing per record, and yet private."""
        return {
            "failing": [each.to_dict() for each in self.failures],
            "level": LEVEL,
            "columns": [each.to_dict() for each in self.drifts],
            "notes": list(self.notes),
        }


def rehearse(last: LastWave, data: str, run: Run, *, original: str | None = None) -> Rehearsal:
    """Carry the last plan out on new ``data`` as the next release would be, and write nothing.

    Parameters
    ----------
    last
        The plan of the last release.
    data
        The next wave.
    run
        Where chance comes from; people of a series have what its secret gives them.
    original
        The data of the last wave, where they are not where its plan says.
    """
    plan = last.followed_by(data)
    now = _read_as_declared(plan)
    before, note = last.read(original)
    drifts: tuple[ColumnDrift, ...] = ()
    if before is not None and len(before):
        drifts = find_drift(before, now, _hierarchies(plan))
    try:
        decision = decide_plan(plan, run, subject=data, table=now)
    except Cancelled:
        raise
    except SfumatoError as error:
        moves = [each.sentence for each in drifts if each.is_told]
        raise type(error)("; ".join([error.message, *moves]), hint=error.hint) from error
    missed = [each for each in decision.judgements if not each.is_met]
    moved = tuple(each.column for each in drifts if each.moved)
    causes = _Causes(last.plan, plan, (before, now), moved, run) if missed else None
    failures = tuple(
        Failure(each, _count_persons(each, now), count_distinct(persons_of(now)), *causes.of(each))
        for each in missed
        if causes is not None
    )
    sentences = {each.judgement.sentence: each.sentence for each in failures}
    findings = tuple(
        replace(each, message=sentences.get(each.message, each.message)) for each in decision.findings
    )
    notes = (f"{note}: no column can be compared; name them with --original",) if note else ()
    return Rehearsal(replace(decision, findings=findings), failures, drifts, notes)


def _read_as_declared(plan: Plan) -> Table:
    """The next wave; what the plan does not fit, where it fitted the last one, is the fault of the data."""
    try:
        table = load(plan)
    except PlanError as error:
        raise DataError(
            f"the new wave is not as the plan declares: {'; '.join(error.faults) or error.message}",
            hint="declare in the plan what is new, or have the file made as before",
        ) from error
    if not len(table):
        raise DataError("the new wave must have records, got: none")
    return table


def _hierarchies(plan: Plan) -> dict[str, Hierarchy]:
    resources = load_resources(plan)
    columns = () if plan.schema is None else plan.schema.columns
    named = {each.name: resources.get(each.hierarchy) for each in columns if each.hierarchy}
    return {name: each for name, each in named.items() if isinstance(each, Hierarchy)}


def _count_persons(judgement: Judgement, table: Table) -> int | None:
    """How many persons have a record that misses the level; None where no measure says that of each."""
    values = judgement.score.by_record
    if values is None or len(values) != len(table):
        return None
    failing = np.isfinite(values) & judgement.requirement.failing(values)
    return count_distinct(persons_of(table)[failing])


Key = tuple[str, str]


def _key(judgement: Judgement) -> Key:
    return str(judgement.requirement), judgement.scenario


class _Causes:
    """Why requirements are missed: each is judged again with columns distributed as they were."""

    def __init__(
        self, last: Plan, plan: Plan, waves: tuple[Table | None, Table], moved: tuple[str, ...], run: Run
    ) -> None:
        self.plan, (self.before, self.now), self.moved, self.run = plan, waves, moved, run
        again = self._find_met(plan, self.now, run.at("again")) if plan.recipe.stochastic else None
        self.by_chance = again or set()
        self.held = None if self.before is None else self._find_met(last, self.before, run)
        self.met = {names: self._met_if_given_back(names) for names in self._candidates()}

    def _candidates(self) -> Iterator[tuple[str, ...]]:
        yield from ((name,) for name in self.moved)
        if len(self.moved) > 1:
            yield self.moved

    def _met_if_given_back(self, names: Sequence[str]) -> set[Key]:
        assert self.before is not None  # else nothing has moved
        table = self.now
        for name in names:
            table = with_distribution_of(self.before, table, name, self.run.rng("drift", name))
        return self._find_met(self.plan, table, self.run) or set()

    def _find_met(self, plan: Plan, table: Table, run: Run) -> set[Key] | None:
        """The requirements that a table meets; None if the plan cannot be carried out on it."""
        try:
            judged = decide_plan(plan, run.silent(), subject="", table=table).judgements
        except Cancelled:
            raise
        except SfumatoError:
            return None
        return {_key(each) for each in judged if each.is_met}

    def of(self, judgement: Judgement) -> tuple[tuple[str, ...], str]:
        """The columns since whose move it is missed, and a sentence."""
        key = _key(judgement)
        if self.before is None:
            return (), "no column can be compared with the last wave"
        if self.held is not None and key not in self.held:
            return (), "the last wave missed it, too"
        if key in self.by_chance:
            return (), "with other random numbers it is met: it is near its limit"
        single = tuple(name for name in self.moved if key in self.met[(name,)])
        if single:
            return single, f"since {' or '.join(quoted([name]) for name in single)} moved"
        if len(self.moved) > 1 and key in self.met[self.moved]:
            return self.moved, f"since {quoted(self.moved)} moved; no single column explains it"
        return (), "no single column explains it"
