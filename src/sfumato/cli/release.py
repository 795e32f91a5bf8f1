"""Make a release for someone in one go: inspect, ask, search, judge, and write a folder."""

from __future__ import annotations

import shlex
import sys
import textwrap
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli._options import (
    DEFAULT_PROFILE,
    SOURCE,
    for_option,
    json_option,
    overwrite_option,
    pseudonym_key_option,
    quiet_option,
    roles_of,
    roles_option,
    seed_option,
)
from sfumato.cli._release import warn_of_earlier
from sfumato.cli._resources import control_option
from sfumato.cli._screen import emit_json, running, say

if TYPE_CHECKING:
    from sfumato.data.guess.overview import Overview, Summary
    from sfumato.recipes.plan import Plan
    from sfumato.report.released import Released

#: Proposals that are less sure than this are asked about on a terminal.
_SURE = 0.7
_WIDTH = 80


@click.command("release", help=__doc__, epilog=f"SOURCE is a plan, {SOURCE}.")
@click.argument("source")
@for_option
@click.option(
    "--minutes", default=5.0, show_default=True, type=click.FloatRange(0, min_open=True),
    help="How long to search for the recipe that loses least.",
)  # fmt: skip
@roles_option
@pseudonym_key_option
@click.option("--out", type=click.Path(path_type=Path), help="The folder to write.  [default: NAME-release]")
@click.option("-m", "--method", "methods", multiple=True, help="A method to try (default: all that can).")
@control_option
@seed_option
@overwrite_option
@json_option
@quiet_option
def command(source: str, **options: Any) -> None:
    """Make a release for someone."""
    from sfumato import front
    from sfumato.data.schema import with_roles
    from sfumato.report.released import destination_of

    quiet, seeded = options["quiet"], options["seed"] is not None
    roles = roles_of(options["roles"])
    found = front.inspect(source, roles=roles)
    roles |= asked_roles(found) if on_terminal() else {}
    folder = options["out"] or Path(f"{_stem(source)}-release")
    plan = _base(source, folder, found.reading, options)
    schema = with_roles(found.schema, roles)
    front.require_roles(schema.select([name for name in schema.names if name not in plan.output.drop]))
    if options["profile"] is None and not front.is_plan(source):
        say(f"for {DEFAULT_PROFILE} use; --for public, industry or secure for others", quiet=quiet)
    made = _made(folder)
    try:
        destination = destination_of(plan, overwrite=options["overwrite"])
        destination.check()
        say(f"searching for at most {options['minutes']:g} minutes; Ctrl-C stops it cleanly", quiet=quiet)
        with running(quiet=quiet, seed=options["seed"]) as run:
            released = front.release(
                source, for_=options["profile"], minutes=options["minutes"], roles=roles, plan=plan, run=run,
                methods=options["methods"],
            )  # fmt: skip
        warn_of_earlier(released.outcome, destination, run, quiet=quiet)
        written = released.write(folder, overwrite=options["overwrite"], seeded=seeded)
    finally:
        if made:
            with suppress(OSError):  # it stays if something was written
                folder.rmdir()
    if options["as_json"]:
        emit_json(released.to_dict())
    else:
        _tell(released, folder, source)
    say("written: " + ", ".join(str(path) for path in written), quiet=quiet)


def on_terminal() -> bool:
    """Whether there is someone to ask."""
    return sys.stdin.isatty()


def asked_roles(found: Overview) -> dict[str, str]:
    """Ask for the roles that nothing or little speaks for; what is proposed is the default, or else a key."""
    from sfumato.data.schema import Role

    answers = {}
    for summary in found.columns:
        role = summary.column.role
        if role is None or summary.guess.confidence < _SURE:
            say(_question(summary))
            choice = click.Choice([each.value for each in Role])
            proposed = role or Role.KEY
            answers[summary.column.name] = click.prompt(
                "  role", type=choice, default=proposed.value, err=True
            )
    return answers


def _question(summary: Summary) -> str:
    facts = f"{summary.distinct} distinct values, {summary.guess.role_reason}"
    return f"What is `{summary.column.name}`? ({facts}; key: others may know it)"


def _base(source: str, folder: Path, reading: Mapping[str, Any], options: Mapping[str, Any]) -> Plan:
    """The plan as it will stand in the folder: where the data are from there, and what the file is called."""
    from dataclasses import replace

    from sfumato.cli._resources import controlled, seen_from, sourced

    plan = controlled(sourced(source), options)
    plan = replace(plan, data=replace(plan.data, **reading)) if plan.data else plan
    suffix = Path(plan.data.path).suffix if plan.data else ""
    name = f"release{suffix.lower() if suffix.lower() in _WRITTEN_AS_READ else '.csv'}"
    return seen_from(replace(plan, output=replace(plan.output, path=name)), folder, options)


#: Formats of files that a release is written in as it was read.
_WRITTEN_AS_READ = frozenset({".csv", ".tsv", ".parquet", ".arrow", ".feather", ".xlsx", ".sav", ".dta"})


def _stem(source: str) -> str:
    name = source.removeprefix("builtin:").partition("?")[0] if source.startswith("builtin:") else source
    return Path(name).stem or "data"


def _made(folder: Path) -> bool:
    """Make the folder, and say whether it was not there before."""
    from sfumato.errors import WriteError

    there = folder.is_dir()
    try:
        folder.mkdir(exist_ok=True)
    except FileNotFoundError:
        raise WriteError(f"the folder of `{folder}` must exist, got: none there") from None
    except FileExistsError:
        raise WriteError(
            f"`{folder}` must be a folder, got: a file", hint="name another with --out"
        ) from None
    except OSError:
        raise WriteError(
            f"`{folder}` must be a folder that can be made, got: none", hint="name another with --out"
        ) from None
    return not there


def _tell(released: Released, folder: Path, source: str) -> None:
    for sentence in released.sentences():
        click.echo(textwrap.fill(sentence, _WIDTH, subsequent_indent="  ", break_on_hyphens=False))
    click.echo("\n".join(["Next:", *_next(released, folder, source)]))


def _next(released: Released, folder: Path, source: str) -> list[str]:
    from sfumato.report.released import OWN_PAGE, PLAN

    table = folder / released.plan.output.path
    return [
        f"  read {folder / OWN_PAGE}; what is private stays with you",
        f"  sfumato risk {shlex.quote(source)} {table}  # by other measures",
        f"  sfumato run {folder / PLAN} --overwrite  # the plan, edited",
    ]
