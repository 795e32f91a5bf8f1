"""Say whether a plan's release, or a file, may leave: for people, and for machines that build releases."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli import _options
from sfumato.cli._resources import control_option, hierarchy_option, request_of, resource_option
from sfumato.cli._screen import emit_line, running, say
from sfumato.errors import ParameterError, RequirementError, count_noun

if TYPE_CHECKING:
    from sfumato.core.run import Run
    from sfumato.releasing.decide import Decision

_EPILOG = (
    "SOURCE is a plan, which is carried out without writing anything; or a file as it would leave, or a "
    "release folder, which bring the plan along by which they were released. "
    "Exit code 0: it may leave; 1: it may not."
)


@click.command("gate", help=__doc__, epilog=_EPILOG)
@click.argument("source")
@click.option("--original", help="What a file was made of, for measures that need both.")
@click.option("--aligned", is_flag=True, help="Records of both files stand in the same order.")
@_options.require_option
@_options.for_option
@_options.roles_option
@_options.plan_option
@hierarchy_option
@resource_option
@control_option
@click.option(
    "--format", "form", type=click.Choice(["text", "json", "junit", "sarif"]), default="text",
    show_default=True, help="What is written to stdout, or to --out.",
)  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), help="A file for what was found.")
@click.option(
    "--override", metavar="REASON", help="Open the gate all the same; the reason is recorded beside SOURCE."
)
@_options.reading_options
@_options.seed_option
@_options.overwrite_option
@_options.quiet_option
def command(source: str, **options: Any) -> None:
    """Say whether a release may leave."""
    from sfumato.io import check_writable, write_text
    from sfumato.recipes.parts import fingerprint
    from sfumato.releasing.decide import override
    from sfumato.releasing.load import is_plan

    reason, out, quiet = _options.reason_of(options), options["out"], options["quiet"]
    if out is not None:
        check_writable(out, originals=[source], overwrite=options["overwrite"])
    with running(quiet=quiet, seed=options["seed"]) as run:
        decision = _of_plan(source, options, run) if is_plan(source) else _of_file(source, options, run)
    if reason and decision.findings:
        path = Path(source)
        known = fingerprint(path) if path.is_file() else ""
        decision = override(decision, reason, path if path.is_dir() else path.parent, sha256=known)
    text = _text(decision, options["form"])
    if out is None:
        emit_line(text.rstrip("\n"))
    else:
        write_text(out, text, originals=[source], overwrite=options["overwrite"])
        say(f"written: {out}", quiet=quiet)
    if not decision.may_leave:
        count = len(decision.findings)
        raise RequirementError(
            f"{source} may not leave: {count_noun(count, 'finding')}",
            hint='mend them; or --override "REASON", which is recorded',
        )


def _of_plan(source: str, options: dict[str, Any], run: Run) -> Decision:
    from sfumato.recipes.plan import Plan
    from sfumato.releasing.decide import decide_plan
    from sfumato.releasing.prepare import with_requirements
    from sfumato.releasing.request import with_control

    given = [name for name in ("original", "plan_path", "roles") if options[name]]
    if given:
        raise ParameterError("--original, --plan and --role are for a file, got: a plan, which says all that")
    plan = with_control(Plan.read(Path(source)), options["control"])
    return decide_plan(with_requirements(plan, request_of(source, options)), run, subject=source)


def _of_file(source: str, options: dict[str, Any], run: Run) -> Decision:
    from sfumato.releasing.decide import decide_file
    from sfumato.releasing.prepare import prepare_file

    asked = prepare_file(
        request_of(source, options), original=options["original"], aligned=options["aligned"]
    )
    for note in asked.notes:
        say(f"note: {note}", quiet=options["quiet"])
    run = replace(run, resources={**run.resources, **asked.resources})
    original = None if asked.release is None else asked.table
    table = asked.table if asked.release is None else asked.release.reading()
    return decide_file(
        table, asked.plan.demands, run, subject=source, original=original, release=asked.release
    )


def _text(decision: Decision, form: str) -> str:
    from sfumato.report.findings import as_junit, as_sarif

    if form == "json":
        return json.dumps(decision.to_dict(), indent=2, ensure_ascii=False)
    if form != "text":
        return as_junit(decision) if form == "junit" else as_sarif(decision)
    blocked = "overridden" if decision.override else "blocks"
    return "\n".join(
        [
            f"{decision.subject}: {'may leave' if decision.may_leave else 'may not leave'}",
            *(f"  {blocked}  {each.rule}: {each.message}" for each in decision.findings),
            *(f"  ok  {each}" for each in decision.met_requirements),
            *([f"  because: {decision.override}"] if decision.override else []),
        ]
    )
