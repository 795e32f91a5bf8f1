"""What a desk or job keeps, and the tasks that it can be asked for by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.core.randomness import ByPlace
from sfumato.core.run import Progress, ProgressEvent, Run
from sfumato.data.persons import sample_by_person
from sfumato.data.records import parse_toml
from sfumato.data.table import Table
from sfumato.errors import PlanError
from sfumato.io import Contents, read_contents
from sfumato.recipes.parts import Source, locate
from sfumato.recipes.plan import Plan
from sfumato.recipes.step_memory import StepMemory
from sfumato.releasing.load import is_plan, load
from sfumato.releasing.outcome import PlanOutcome
from sfumato.study.cost import FREE_UP_TO_RECORDS, PlannedWork, estimate
from sfumato.web.candidates import candidate_of
from sfumato.web.tasks.answer_costs import AnswerCosts

Task = Callable[..., Any]
TASKS: dict[str, Task] = {}


def task(function: Task) -> Task:
    """Let the server ask for a function by its name."""
    TASKS[function.__name__] = function
    return function


@dataclass
class DeskMemory:
    """What is known of one file while it stays as it is: its table, samples of it, and what was made of them.

    One ``chance`` is kept for all answers, so that two plans differ by what they do and a step that did not
    change need not be taken again; a release draws its own.
    """

    table: Table
    chance: ByPlace = field(default_factory=lambda: ByPlace.from_system().for_release(), repr=False)
    samples: dict[int, Table] = field(default_factory=dict)
    steps: dict[int, StepMemory] = field(default_factory=dict)
    originals: dict[Any, dict[tuple[str, str], Any]] = field(default_factory=dict)
    costs: AnswerCosts = field(default_factory=AnswerCosts)

    def declare(self, plan: Plan) -> None:
        """Take over what a plan says of the columns; what was made of others is forgotten."""
        assert plan.schema is not None
        if self.table.schema != plan.schema:
            self.table = replace(self.table, schema=plan.schema)
            self.samples, self.steps, self.originals = {}, {}, {}

    def sample(self, records: int) -> Table:
        """So many records, by person, the same each time; all of them where there are no more."""
        if records >= len(self.table):
            return self.table
        if records not in self.samples:
            rows = sample_by_person(self.table, records, np.random.default_rng(0))
            self.samples[records] = self.table.take(rows)
        return self.samples[records]


@dataclass
class Desk:
    """What a process keeps between tasks: what it knows of the file, and whom it tells of its work."""

    tell: Callable[[Mapping[str, Any]], None]
    stopped: Callable[[], bool]
    known: tuple[Any, DeskMemory] | None = field(default=None, repr=False)
    held: Contents | None = field(default=None, repr=False)
    outcome: tuple[str, PlanOutcome] | None = field(default=None, repr=False)  # scored last

    def run(self, resources: Mapping[str, Any] | None = None) -> Run:
        """A run whose chance the system gives, and whose progress the page shows."""

        def report(event: ProgressEvent) -> None:
            self.tell({"kind": "progress", "content": vars_of(event)})

        def found(content: Mapping[str, Any]) -> None:
            self.tell({"kind": "found", "content": candidate_of(content)})

        progress = Progress(report=report, found=found, stopped=self.stopped)
        return Run(progress=progress, resources=resources)

    def hold(self, source: str, reading: Mapping[str, Any]) -> None:
        """Hold what a file contains until its table is made, so that it is read once."""
        self.held = self.known = self.outcome = None
        if not (source.startswith("builtin:") or is_plan(source)):
            self.held = read_contents(source, **reading)

    def tell_cost(self, works: Sequence[PlannedWork], table: Table, run: Run) -> None:
        """Say what works will cost before they are done, where that is worth knowing (`study.cost`)."""
        cost = estimate(works, table, run) if len(table) >= FREE_UP_TO_RECORDS else None
        if cost is not None and cost.worth_telling:
            self.tell({"kind": "cost", "content": f"This takes {cost.sentence()}."})

    def table(self, plan: Plan) -> Table:
        """The plan's table, read once while the file and how it is read stay as they are."""
        return self.memory(plan).table

    def memory(self, plan: Plan) -> DeskMemory:
        """What is known of the plan's file; nothing, once the file or how it is read has changed."""
        if plan.schema is None:
            raise PlanError("The plan has no columns of one table.", hint="the page shows plans of one table")
        plain = plan.schema.replace(
            *(replace(each, role=None, role_basis="", hierarchy="") for each in plan.schema.columns)
        )
        key = (str(plan.data), plan.data and state_of(plan.data, plan), str(plain.to_dict()))
        if self.known is None or self.known[0] != key:
            self.known = self.outcome = None  # one file at a time: memory is what a desk has least of
            self.known = key, DeskMemory(load(plan))
            self.held = None
        self.known[1].declare(plan)
        return self.known[1]


def vars_of(event: ProgressEvent) -> dict[str, Any]:
    """How far it has come, for JSON."""
    return {"task": event.task, "done": event.done, "total": event.total, "note": event.note}


def state_of(source: Source, plan: Plan) -> tuple[int, ...]:
    """What tells that a file has changed."""
    place = Path(locate(source.path, plan.folder))
    if source.is_builtin or not place.is_file():
        return ()
    return (place.stat().st_mtime_ns, place.stat().st_size)


def read_plan(toml: str) -> Plan:
    """The plan of a text, its files as they are seen from the folder that is served."""
    return Plan.from_dict(parse_toml(toml, "the plan"))
