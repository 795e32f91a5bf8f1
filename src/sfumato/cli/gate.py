"""Say whether a plan's release, or a file, may leave: for people, and for machines that build releases."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli._options import (
    for_option,
    overwrite_option,
    plan_option,
    quiet_option,
    reason_of,
    require_option,
    roles_of,
    roles_option,
    seed_option,
)
from sfumato.cli._resources import control_option, controlled, hierarchy_option, resource_option, resourced
from sfumato.cli._screen import emit_line, running, say
from sfumato.errors import ParameterError, RequirementError, counted

if TYPE_CHECKING:
    from sfumato.core.run import Run
    from sfumato.recipes.plan import Plan
    from sfumato.releasing.gate import Verdict

_EPILOG = (
    "SOURCE is a plan, which is carried out without writing anything, or a file as it would leave. "
    "Exit code 0: it may leave; 1: it may not."
)


@click.command("gate", help=__doc__, epilog=_EPILOG)
@click.argument("source")
@click.option("--original", help="What a file was made of, for measures that need both.")
@click.option("--aligned", is_flag=True, help="Records of both files stand in the same order.")
@require_option
@for_option
@roles_option
@plan_option
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
@seed_option
@overwrite_option
@quiet_option
def command(source: str, **options: Any) -> None:
    """Say whether a release may leave."""
    from sfumato.front import is_plan
    from sfumato.io import check_writable, write_text
    from sfumato.recipes.parts import fingerprint
    from sfumato.releasing.gate import overridden

    reason, out, quiet = reason_of(options), options["out"], options["quiet"]
    if out is not None:
        check_writable(out, originals=[source], overwrite=options["overwrite"])
    with running(quiet=quiet, seed=options["seed"]) as run:
        verdict = _of_plan(source, options, run) if is_plan(source) else _of_file(source, options, run)
    if reason and verdict.findings:
        path = Path(source)
        known = fingerprint(path) if path.is_file() else ""
        verdict = overridden(verdict, reason, path.parent, sha256=known)
    text = _told(verdict, options["form"])
    if out is None:
        emit_line(text.rstrip("\n"))
    else:
        write_text(out, text, originals=[source], overwrite=options["overwrite"])
        say(f"written: {out}", quiet=quiet)
    if not verdict.is_open:
        count = len(verdict.findings)
        raise RequirementError(
            f"{source} must pass the gate to leave, got: {counted(count, 'finding')}",
            hint='mend them; or --override "REASON", which is recorded',
        )


def _of_plan(source: str, options: dict[str, Any], run: Run) -> Verdict:
    from sfumato.recipes.plan import Plan
    from sfumato.releasing.gate import gate_plan

    given = [name for name in ("original", "plan_path", "roles") if options[name]]
    if given:
        raise ParameterError("--original, --plan and --role are for a file, got: a plan, which says all that")
    plan = controlled(Plan.read(Path(source)), options)
    return gate_plan(_required(plan, options), run, subject=source)


def _of_file(source: str, options: dict[str, Any], run: Run) -> Verdict:
    from sfumato import front
    from sfumato.data.schema import with_roles
    from sfumato.recipes.plan import Plan
    from sfumato.releasing.gate import gate_file
    from sfumato.releasing.load import load_resources

    plan = resourced(Plan.read(options["plan_path"]) if options["plan_path"] else Plan(), options)
    if options["control"] and plan.control:
        raise ParameterError(
            "`--control` of a file must be a file of others, got: a share to rehearse a plan"
        )
    original = None if options["original"] is None else front.read(options["original"], schema=plan.schema)
    release = None if original is None else front.beside(original, source, aligned=options["aligned"])
    table = front.read(source, schema=plan.schema) if release is None else release.reading()
    table = replace(table, schema=with_roles(table.schema, roles_of(options["roles"])))
    plan = _required(replace(plan, schema=table.schema), options)
    run = replace(run, resources={**run.resources, **load_resources(plan)})
    return gate_file(table, plan.demands, run, subject=source, original=original, release=release)


def _required(plan: Plan, options: dict[str, Any]) -> Plan:
    from sfumato.core.requirement import Requirement
    from sfumato.recipes.profile import Profile

    wanted = tuple(Requirement.parse(text) for text in options["require"])
    plan = replace(plan, requirements=(*plan.requirements, *wanted))
    return Profile.of(options["profile"]).apply_to(plan) if options["profile"] else plan


def _told(verdict: Verdict, form: str) -> str:
    from sfumato.report.findings import as_junit, as_sarif

    if form == "json":
        return json.dumps(verdict.to_dict(), indent=2, ensure_ascii=False)
    if form != "text":
        return as_junit(verdict) if form == "junit" else as_sarif(verdict)
    blocked = "overridden" if verdict.override else "blocks"
    return "\n".join(
        [
            f"{verdict.subject}: {'may leave' if verdict.is_open else 'may not leave'}",
            *(f"  {blocked}  {each.rule}: {each.message}" for each in verdict.findings),
            *(f"  ok  {each}" for each in verdict.met),
            *([f"  because: {verdict.override}"] if verdict.override else []),
        ]
    )
