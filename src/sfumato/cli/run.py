"""Carry out a plan: protect, judge, and write the release if it meets every requirement."""

from __future__ import annotations

from pathlib import Path

import click

from sfumato.cli._options import json_option, overwrite_option, quiet_option, seed_option
from sfumato.cli._screen import emit_json, running, say
from sfumato.errors import ParameterError, RequirementError


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
    from sfumato.compare.execute import carry_out, originals, seed_of, write_release
    from sfumato.compare.plan import Plan
    from sfumato.io import check_writable

    if replay is not None and seed is not None:
        raise ParameterError("only one of --seed and --replay can be given, got: both")
    plan = Plan.read(plan_path)
    if plan.output.path:
        check_writable(plan.folder / plan.output.path, originals=originals(plan), overwrite=overwrite)
    for warning in plan.warnings():
        say(f"warning: {warning}", quiet=quiet)
    fixed, given = seed_of(replay) if replay is not None else (seed, seed is not None)
    with running(quiet=quiet, seed=fixed) as run:
        outcome = carry_out(plan, run)
        for judgement in outcome.judgements:
            say(f"{judgement.scenario}: {judgement.requirement.verdict(judgement.score)}", quiet=quiet)
        for violation in outcome.broken:
            say(f"note: {violation.records} records break the promise that {violation.promise}", quiet=quiet)
        if as_json:
            emit_json(outcome.to_dict())
        if not outcome.met:
            unmet = sum(not judgement.met for judgement in outcome.judgements)
            raise RequirementError(
                f"{unmet} of {len(outcome.judgements)} requirements are not met, so nothing was written"
            )
        written = write_release(outcome, run, overwrite=overwrite, seeded=given)
    say("written: " + ", ".join(str(path) for path in written), quiet=quiet)
    say(f"keep {written[1].name} private: with its seed the noise can be undone", quiet=quiet)
