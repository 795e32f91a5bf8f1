"""Decide whether a file, or what a plan makes, may be released; for people and for pipelines."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli import _options
from sfumato.cli._engine import engine_options
from sfumato.cli._resources import control_option, hierarchy_option, request_of, resource_option
from sfumato.cli._screen import emit_line, json_text, running, say
from sfumato.errors import ParameterError, RequirementError, count_noun

if TYPE_CHECKING:
    from sfumato.core.run import Run
    from sfumato.releasing.decide import Decision
    from sfumato.releasing.rehearse import Rehearsal

_EPILOG = (
    "SOURCE is a plan, which is carried out without writing anything; or a file to be released; or a "
    "release folder. A released file or folder is judged by the plan that made it. With --series, SOURCE is "
    "the plan or the folder of the last release, which is rehearsed on the new data. "
    "Exit code 0: it may be released; 1: it may not."
)


@click.command("gate", help=__doc__, epilog=_EPILOG)
@click.argument("source")
@click.option(
    "--original",
    help="The original of the file, for measures that need both; with --series, that of the last wave.",
)
@click.option(
    "--series", "wave", metavar="FILE",
    help="The next wave of the data, to tell what will fail, for how many people, and which column changed.",
)  # fmt: skip
@click.option("--aligned", is_flag=True, help="The records of both files are in the same order.")
@_options.require_option
@_options.for_option
@_options.only_option
@_options.roles_option
@_options.plan_option
@hierarchy_option
@resource_option
@control_option
@click.option(
    "--format", "form", type=click.Choice(["text", "json", "junit", "sarif"]), default="text",
    show_default=True, help="The format of the result.",
)  # fmt: skip
@_options.json_option
@click.option("--out", type=click.Path(path_type=Path), help="Write the result here instead of to stdout.")
@click.option(
    "--override",
    metavar="REASON",
    help="Allow it despite the problems found; the reason is recorded beside SOURCE.",
)
@_options.reading_options
@_options.seed_option
@engine_options
@_options.overwrite_option
@_options.quiet_option
def command(source: str, **options: Any) -> None:
    """Decide whether it may be released."""
    from sfumato.io import check_writable, write_text
    from sfumato.recipes.parts import fingerprint
    from sfumato.releasing.decide import override
    from sfumato.releasing.load import is_plan

    reason, out, quiet = _options.reason_of(options), options["out"], options["quiet"]
    if out is not None:
        check_writable(out, originals=[source], overwrite=options["overwrite"])
    rehearsal = None
    with running(quiet=quiet, seed=options["seed"]) as run:
        if options["wave"]:
            rehearsal = _rehearse(source, options, run)
            decision = rehearsal.decision
        else:
            decision = _of_plan(source, options, run) if is_plan(source) else _of_file(source, options, run)
    if reason and decision.findings:
        path = Path(source)
        known = fingerprint(path) if path.is_file() else ""
        decision = override(decision, reason, path if path.is_dir() else path.parent, sha256=known)
    text = _text(decision, "json" if options["as_json"] else options["form"], rehearsal)
    if out is None:
        emit_line(text.rstrip("\n"))
    else:
        write_text(out, text, originals=[source], overwrite=options["overwrite"])
        say(f"written: {out}", quiet=quiet)
    if not decision.may_leave:
        problems = count_noun(len(decision.findings), "problem")
        hint = 'fix what is listed; or allow it anyway with --override "REASON", which is recorded'
        if rehearsal is not None:
            hint = "nothing was released: change the plan, or look at the columns that moved"
        raise RequirementError(f"{decision.subject} may not be released: {problems}", hint=hint)


def _of_plan(source: str, options: dict[str, Any], run: Run) -> Decision:
    from sfumato.recipes.plan import Plan
    from sfumato.releasing.decide import decide_plan
    from sfumato.releasing.prepare import with_requirements
    from sfumato.releasing.request import with_control

    if any(options[name] for name in ("original", "plan_path", "roles")):
        raise ParameterError("--original, --plan and --role are for a file; a plan has its own")
    plan = with_control(Plan.read(Path(source)), options["control"])
    return decide_plan(with_requirements(plan, request_of(source, options)), run, subject=source)


def _rehearse(source: str, options: dict[str, Any], run: Run) -> Rehearsal:
    from sfumato.releasing.prepare import with_requirements
    from sfumato.releasing.rehearse import LastWave, rehearse
    from sfumato.releasing.request import with_control

    if any(options[name] for name in ("plan_path", "roles", "aligned", "override")):
        raise ParameterError("--plan, --role, --aligned and --override are for a file, got: --series")
    last = LastWave.of(source)
    plan = with_requirements(with_control(last.plan, options["control"]), request_of(source, options))
    return rehearse(replace(last, plan=plan), options["wave"], run, original=options["original"])


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
        table,
        asked.plan.demands,
        run,
        subject=source,
        original=original,
        release=asked.release,
        merged=asked.merged,
    )


def _text(decision: Decision, form: str, rehearsal: Rehearsal | None = None) -> str:
    if form == "json":
        drift = {} if rehearsal is None else {"drift": rehearsal.to_dict()}
        return json_text(decision.to_dict() | drift)
    if form != "text":
        from sfumato.report.findings import as_junit, as_sarif  # only here: it loads the report

        return as_junit(decision) if form == "junit" else as_sarif(decision)
    blocked = "overridden" if decision.override else "blocks"
    return "\n".join(
        [
            f"{decision.subject}: {'may' if decision.may_leave else 'may not'} be released",
            *(f"  {blocked}  {each.rule}: {each.message}" for each in decision.findings),
            *(f"  ok  {each}" for each in decision.met_requirements),
            *(f"  drift  {each}" for each in (rehearsal.lines if rehearsal else ())),
            *([f"  because: {decision.override}"] if decision.override else []),
        ]
    )
