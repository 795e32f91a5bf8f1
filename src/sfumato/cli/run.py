"""Carry out a plan: protect, judge, and write the release if it meets every requirement."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from sfumato.cli._options import json_option, overwrite_option, quiet_option, seed_option
from sfumato.cli._screen import announce, emit_json, running, say
from sfumato.core.run import Run
from sfumato.data.table import Table
from sfumato.errors import ParameterError, RequirementError
from sfumato.recipes.plan import Plan
from sfumato.releasing.carry_out import Linked, Outcome


@click.command("run", help=__doc__)
@click.argument("plan_path", metavar="PLAN", type=click.Path(path_type=Path))
@click.option(
    "--replay", type=click.Path(path_type=Path), help="Rerun with the chance of this private audit trail."
)
@seed_option
@overwrite_option
@json_option
@quiet_option
def command(
    plan_path: Path, *, replay: Path | None, seed: int | None, overwrite: bool, as_json: bool, quiet: bool
) -> None:
    """Carry out a plan."""
    from sfumato.releasing.carry_out import carry_out_linked, check_places, seed_of, write_linked

    if replay is not None and seed is not None:
        raise ParameterError("only one of --seed and --replay can be given, got: both")
    plan = Plan.read(plan_path)
    check_places(plan.parts, overwrite=overwrite)
    for warning in plan.warnings():
        say(f"warning: {warning}", quiet=quiet)
    fixed, given = seed_of(replay) if replay is not None else (seed, seed is not None)
    with running(quiet=quiet, seed=fixed) as run:
        linked = carry_out_linked(plan, run, before=partial(_announce, quiet=quiet))
        for name, outcome in linked.parts.items():
            _tell(outcome, f"{name}: " if name else "", quiet=quiet)
        for what, count in linked.dangling.items():
            say(f"note: {count} numbers of {what}", quiet=quiet)
        if as_json:
            emit_json(linked.to_dict() if plan.tables else linked.parts[""].to_dict())
        if linked.unmet:
            total = sum(len(outcome.judgements) for outcome in linked.parts.values())
            raise RequirementError(
                f"{linked.unmet} of {total} requirements are not met, so nothing was written",
                hint=_way_out(linked, fixed=fixed is not None),
            )
        *written, private = write_linked(linked, run, overwrite=overwrite, seeded=given)
    say("written: " + ", ".join(str(path) for path in (*written, private)), quiet=quiet)
    say(f"keep {Path(private).name} private: with its seed the noise can be undone", quiet=quiet)


def _way_out(linked: Linked, *, fixed: bool) -> str:
    """What to try when a release misses a requirement."""
    steps = [step for outcome in linked.parts.values() for step in outcome.plan.recipe.steps]
    stronger = "make a step stronger, or let `sfumato tune` find one that meets them in every run"
    if fixed or not any(step.method.stochastic for step in steps):
        return stronger
    return f"every run has chance of its own: after a near miss another one may meet them; else {stronger}"


def _announce(plan: Plan, table: Table, run: Run, *, quiet: bool) -> None:
    from sfumato.study.cost import Work

    asked = {(str(each.measure), each.scenario.name): each.measure for each in plan.demands}
    scenario, resources = plan.scenarios[0], run.resources
    work = Work(plan.recipe, tuple(asked.values()), scenario=scenario, resources=resources)
    announce(work, table, run, quiet=quiet)


def _tell(outcome: Outcome, where: str, *, quiet: bool) -> None:
    for judgement in outcome.judgements:
        verdict = judgement.requirement.verdict(judgement.score)
        say(f"{where}{judgement.scenario}: {verdict}", quiet=quiet)
    for note in (note for taken in outcome.release.provenance for note in taken.notes):
        say(f"note: {where}{note}", quiet=quiet)
    for what, count in outcome.touched.items():
        say(f"{where}{what}: {count} cells", quiet=quiet)
    for violation in outcome.broken:
        say(
            f"note: {where}{violation.records} records break the promise that {violation.promise}",
            quiet=quiet,
        )
