"""Carry out a plan: read, protect, judge, and only then write."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from sfumato.core.measure import Score
from sfumato.core.release import Release, reordered
from sfumato.core.requirement import Requirement
from sfumato.core.run import Run
from sfumato.data.checks import Violation, violations
from sfumato.data.table import Table
from sfumato.errors import PlanError, ReadError, RequirementError, WriteError
from sfumato.io import check_writable, read_table, write, write_text
from sfumato.io.formats import format_of
from sfumato.io.hierarchies import read_hierarchy
from sfumato.recipes.plan import Plan, Source, fingerprint, located
from sfumato.releasing.postprocess import dangling, finish
from sfumato.study.evaluate import assess
from sfumato.version import __version__

#: Packages whose version may change a number.
_NUMBER_MAKERS = ("numpy", "polars", "numba", "scipy", "pot")

#: Called with a plan, its table and the run with its resources, before the work on it begins.
Loaded = Callable[[Plan, Table, Run], None]


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
class Outcome:
    """What came of a plan: the release as it would be written, and the judgement on it."""

    plan: Plan
    original: Table
    release: Release
    judgements: tuple[Judgement, ...]
    broken: tuple[Violation, ...]
    touched: Mapping[str, int] = field(default_factory=dict)

    @property
    def unmet(self) -> int:
        """How many requirements are not met, over all scenarios."""
        return sum(not judgement.met for judgement in self.judgements)

    @property
    def met(self) -> bool:
        """Whether every requirement is met in every scenario."""
        return not self.unmet

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON: nothing per record, no seed."""
        return {
            "sfumato": __version__,
            "records": len(self.release.table),
            "columns": list(self.release.table.names),
            "steps": [step.to_dict() for step in self.release.provenance],
            "met": self.met,
            "requirements": [judgement.to_dict() for judgement in self.judgements],
            "broken_promises": [vars(violation) for violation in self.broken],
            "touched": dict(self.touched),
        }


@dataclass(frozen=True)
class Linked:
    """What came of a plan for several tables, and which numbers of people no longer find each other."""

    parts: Mapping[str, Outcome]
    dangling: Mapping[str, int]

    @property
    def unmet(self) -> int:
        """How many requirements are not met, over all tables."""
        return sum(outcome.unmet for outcome in self.parts.values())

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON: nothing per record, no seed."""
        return {
            "tables": {name: outcome.to_dict() for name, outcome in self.parts.items()},
            "dangling": dict(self.dangling),
        }


def load(plan: Plan) -> Table:
    """Read the plan's data as its schema says."""
    if plan.data is None:
        raise PlanError("the plan must name its data", hint='write [data] with path = "…"')
    return _read_source(plan.data, plan, schema=plan.schema)


def load_resources(plan: Plan) -> dict[str, Any]:
    """Read the other files the plan uses."""
    return {
        name: read_hierarchy(str(source.check(plan.folder)))
        if source.holds == "hierarchy"
        else _read_source(source, plan)
        for name, source in plan.resources.items()
    }


def _read_source(source: Source, plan: Plan, *, schema: Any = None) -> Table:
    if source.path.startswith("builtin:"):
        from sfumato import datasets

        table = datasets.from_uri(source.path)
        return table if schema is None else Table(table.frame, schema)
    return read_table(source.check(plan.folder), schema=schema)


def carry_out(plan: Plan, run: Run, *, before: Loaded | None = None) -> Outcome:
    """Protect as the plan says and judge the result; nothing is written. ``before`` sees what was read."""
    blockers = plan.blockers()
    if blockers:
        raise PlanError.gather("the plan", blockers, hint="correct the columns in the plan")
    table, resources = load(plan), load_resources(plan)
    run = replace(run, resources=resources)
    if before is not None:
        before(plan, table, run)
    finished = finish(plan.recipe.apply(table, run), table, plan.output, run)
    release = finished.release
    judgements = _judge(plan, table, release, resources, run)
    if plan.output.shuffle:
        order = run.at(table.digest).rng("shuffle").permutation(len(release.table))
        release = reordered(release, order)
    return Outcome(plan, table, release, judgements, violations(release.table), finished.counts)


def carry_out_linked(plan: Plan, run: Run, *, before: Loaded | None = None) -> Linked:
    """Protect every table of a plan; people have the same pseudonym in all of them."""
    blockers = plan.blockers()
    if blockers:
        raise PlanError.gather("the plan", blockers, hint="correct the columns in the plan")
    parts = {
        name: carry_out(part, run.at("table", name) if name else run, before=before)
        for name, part in plan.parts.items()
    }
    lost = dangling({name: outcome.release.table for name, outcome in parts.items()})
    return Linked(parts, lost)


def _judge(
    plan: Plan, table: Table, release: Release, resources: Mapping[str, Any], run: Run
) -> tuple[Judgement, ...]:
    judgements = []
    for scenario in plan.scenarios:
        asked = [demand.requirement for demand in plan.demands if demand.scenario == scenario]
        measures = list({str(requirement.measure): requirement.measure for requirement in asked}.values())
        # All at once, so that measures share what they find, such as the classes of the keys.
        scores = assess(table, release, measures, run, scenario=scenario, resources=resources)
        judgements += [
            Judgement(requirement, scenario.name, scores[str(requirement.measure)]) for requirement in asked
        ]
    return tuple(judgements)


def originals(plan: Plan) -> list[Path | str]:
    """What must never be overwritten: the data, the resources."""
    return [located(path, plan.folder) for path in _files(plan)]


def _files(plan: Plan) -> list[str]:
    sources = [*([plan.data] if plan.data else []), *plan.resources.values()]
    return [source.path for source in sources if not source.path.startswith("builtin:")]


def write_release(
    outcome: Outcome, run: Run, *, overwrite: bool = False, seeded: bool = False
) -> list[Path | str]:
    """Write the release and the private half of its audit trail; return what was written."""
    return write_linked(Linked({"": outcome}, {}), run, overwrite=overwrite, seeded=seeded)


def write_linked(
    linked: Linked, run: Run, *, overwrite: bool = False, seeded: bool = False
) -> list[Path | str]:
    """Write the release of every table and one private half of the audit trail for all of them.

    Nothing is written unless everything may be: a table alone would not link to the others.
    """
    if linked.unmet:
        raise RequirementError(
            f"a release must meet its requirements to be written, got: {linked.unmet} not met"
        )
    plans = {name: outcome.plan for name, outcome in linked.parts.items()}
    places, private = check_places(plans, overwrite=overwrite)
    protected = _originals(plans)
    for name, outcome in linked.parts.items():
        table, guard = outcome.release.table, outcome.plan.output.guard
        write(table, places[name], originals=protected, overwrite=overwrite, guard=guard)
    said = {name: _trail(outcome, places[name]) for name, outcome in linked.parts.items()}
    trail = {
        **(said[""] if "" in said else {"tables": said, "dangling": dict(linked.dangling)}),
        "seed": f"{run.seed:032x}",
        "seed_given": seeded,
        "environment": environment(),
    }
    text = json.dumps(trail, indent=2, allow_nan=False)
    write_text(private, text, originals=protected, overwrite=overwrite, private=True)
    return [*places.values(), private]


def check_places(plans: Mapping[str, Plan], *, overwrite: bool = False) -> tuple[dict[str, Path | str], Path]:
    """Raise now what writing would raise later; return where each release goes, and the private trail."""
    places = {name: output_of(plan) for name, plan in plans.items()}
    private = _private_place(plans, places)
    for place in places.values():
        if isinstance(place, Path):
            format_of(place, error=WriteError)
    for place in (private, *places.values()):  # a release without its trail would be lost
        check_writable(place, originals=_originals(plans), overwrite=overwrite)
    return places, private


def _originals(plans: Mapping[str, Plan]) -> list[Path | str]:
    return [path for plan in plans.values() for path in originals(plan)]


def output_of(plan: Plan) -> Path | str:
    """Where the release of a plan goes: a file, or the address of a table in a database."""
    if not plan.output.path:
        raise PlanError("the plan must say where the release goes", hint='write [output] with path = "…"')
    return located(plan.output.path, plan.folder)


def _private_place(plans: Mapping[str, Plan], places: Mapping[str, Path | str]) -> Path:
    """Beside the release; of several tables, or of one in a database, in the folder of the plan."""
    alone = places.get("")
    if isinstance(alone, Path):
        return alone.with_suffix(".private.json")
    folder = next(iter(plans.values())).folder
    return folder / ("tables.private.json" if alone is None else "release.private.json")


def _trail(outcome: Outcome, place: Path | str) -> dict[str, Any]:
    plan = outcome.plan
    places = {path: located(path, plan.folder) for path in _files(plan)}
    return {
        **outcome.to_dict(),
        "plan": plan.to_dict(),
        "inputs": {path: fingerprint(there) for path, there in places.items() if isinstance(there, Path)},
        "contents": outcome.original.digest.hex(),  # of the records, wherever they came from
        "output": {"name": place.name, "sha256": fingerprint(place)}
        if isinstance(place, Path)
        else {"name": place},
    }


def environment() -> dict[str, str]:
    """Say the versions of everything that may change a number."""
    found = {"python": platform.python_version(), "machine": platform.machine()}
    for package in _NUMBER_MAKERS:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def seed_of(trail: Path) -> tuple[int, bool]:
    """Read the seed out of a private audit trail, and whether someone had chosen it."""
    try:
        said = json.loads(trail.read_text(encoding="utf-8"))
        return int(said["seed"], 16), bool(said["seed_given"])
    except (OSError, ValueError, KeyError, TypeError):
        raise ReadError(
            f"`{trail}` must be the private audit trail of an earlier run, got: another file",
            hint="it is written beside the release as NAME.private.json",
        ) from None
