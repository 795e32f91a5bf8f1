"""Carry out a plan: protect, judge, and write the release if it meets every requirement."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from sfumato.cli._options import (
    json_option,
    overwrite_option,
    plan_argument,
    quiet_option,
    seed_option,
    unjudged_option,
)
from sfumato.cli._release import WRITE_REQUIREMENTS, announce_plan, tell, write_if_met
from sfumato.cli._resources import control_option, controlled
from sfumato.cli._screen import emit_json, running, say
from sfumato.errors import ParameterError


@click.command("run", help=__doc__)
@plan_argument
@click.option(
    "--replay", type=click.Path(path_type=Path), help="Rerun with the chance of this private audit trail."
)
@control_option
@unjudged_option
@seed_option
@overwrite_option
@json_option
@quiet_option
def command(
    plan_path: Path, *, replay: Path | None, control: str, seed: int | None, overwrite: bool, as_json: bool,
    quiet: bool, unjudged: bool,
) -> None:  # fmt: skip
    """Carry out a plan."""
    from sfumato.recipes.plan import Plan
    from sfumato.releasing.carry_out import carry_out
    from sfumato.releasing.destination import Destination
    from sfumato.releasing.trail import seed_of

    if replay is not None and seed is not None:
        raise ParameterError("only one of --seed and --replay can be given, got: both")
    plan = controlled(Plan.read(plan_path), {"control": control})
    destination = Destination(plan, overwrite=overwrite, also_read=(plan_path,))
    destination.check()
    for warning in plan.warnings():
        say(f"warning: {warning}", quiet=quiet)
    fixed, given = seed_of(replay, plan) if replay is not None else (seed, seed is not None)
    with running(quiet=quiet, seed=fixed) as run:
        outcome = carry_out(plan, run, before=partial(announce_plan, quiet=quiet))
        tell(outcome, quiet=quiet)
        if as_json:
            emit_json(outcome.to_dict())
        write_if_met(
            outcome, destination, run, seeded=given, replayed=replay is not None, quiet=quiet,
            unjudged=unjudged, where=WRITE_REQUIREMENTS,
        )  # fmt: skip
