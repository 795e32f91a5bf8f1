"""Carry out a plan: protect, judge, and write the release if it meets every requirement."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sfumato.cli import _options
from sfumato.cli._release import WRITE_REQUIREMENTS, announce_plan, tell, write_if_open
from sfumato.cli._resources import control_option
from sfumato.cli._screen import emit_json, running, say
from sfumato.errors import ParameterError

if TYPE_CHECKING:
    from sfumato.core.run import Run
    from sfumato.core.vetting import Only
    from sfumato.releasing.outcome import PlanOutcome


@click.command("run", help=__doc__)
@_options.plan_argument
@click.option(
    "--replay", type=click.Path(path_type=Path), help="Rerun with the random numbers of this private trail."
)
@control_option
@click.option(
    "--report",
    type=click.Path(path_type=Path),
    help="Write a report on the release here, as HTML and JSON. Private.",
)
@click.option(
    "--public",
    is_flag=True,
    help="Leave parameters, risks and small groups out of the report, to publish it.",
)
@_options.unjudged_option
@_options.override_option
@_options.only_option
@_options.work_options
def command(
    plan_path: Path, *, replay: Path | None, control: str, seed: int | None, overwrite: bool, as_json: bool,
    quiet: bool, unjudged: bool, override: str | None, report: Path | None, public: bool, only: Only | None,
) -> None:  # fmt: skip
    """Carry out a plan."""
    from sfumato.recipes.plan import Plan
    from sfumato.releasing.carry_out import carry_out
    from sfumato.releasing.decide import decide, require_secret_seed
    from sfumato.releasing.destination import Destination
    from sfumato.releasing.request import with_control
    from sfumato.releasing.trail import randomness_of

    if replay is not None and seed is not None:
        raise ParameterError("only one of --seed and --replay can be given")
    if public and report is None:
        raise ParameterError("`--public` needs `--report FILE.html`")
    reason = _options.reason_of({"override": override})
    plan = with_control(Plan.read(plan_path), control)
    plan = replace(plan, only=only or plan.only)
    pages = _page_paths(report) if report is not None else ()
    destination = Destination(plan, overwrite=overwrite, also_read=(plan_path,), pages=pages)
    destination.check()
    for warning in plan.warnings():
        say(f"warning: {warning}", quiet=quiet)
    again = randomness_of(replay, plan) if replay is not None else None
    with running(quiet=quiet, seed=seed, randomness=again) as run:
        require_secret_seed(plan, run, subject=str(plan_path), override=reason)
        outcome = carry_out(plan, run, before=partial(announce_plan, quiet=quiet))
        tell(outcome, quiet=quiet)
        if as_json:
            emit_json(outcome.to_dict())
        decision = decide(outcome, subject=str(plan_path), override=reason, unjudged=unjudged)
        write_if_open(
            decision, destination, required_by=WRITE_REQUIREMENTS, replayed=replay is not None, quiet=quiet,
            pages=partial(_pages, outcome, run, report, public=public) if report is not None else None,
        )  # fmt: skip


def _page_paths(report: Path) -> tuple[Path, ...]:
    from sfumato.report.page import twins  # only for who wants a report: it loads much

    return twins(report)


def _pages(outcome: PlanOutcome, run: Run, report: Path, *, public: bool) -> dict[Path, str]:
    """The report of what came of the plan, and its twin."""
    from datetime import UTC, datetime

    from sfumato.report.release_result import Released, report_files

    content = Released(outcome, None, "as the plan says", run).tell(
        generated=datetime.now(UTC).date().isoformat()
    )
    return report_files(content, report, public=public)
