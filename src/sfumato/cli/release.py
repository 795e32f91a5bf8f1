"""Make a release in one go: inspect, ask, search for a recipe, check it, and write a folder."""

from __future__ import annotations

import shlex
import sys
import textwrap
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli import _options
from sfumato.cli._questions import ask_about, ask_matters, ask_obstacles, ask_roles
from sfumato.cli._release import tell_private, warn_of_earlier
from sfumato.cli._resources import control_option, request_of
from sfumato.cli._screen import emit_json, running, say
from sfumato.errors import UnreachableError

if TYPE_CHECKING:
    from sfumato.releasing.prepare import Prepared
    from sfumato.report.release_result import Released
    from sfumato.tuning.feasibility import Obstacle

_WIDTH = 80
_EPILOG = (
    "A plan with steps is carried out as it is; else a recipe is searched for. The folder is written "
    "completely or not at all. Do not share its subfolder `private`."
)


@click.command("release", help=__doc__, epilog=f"SOURCE is {_options.SOURCE}. {_EPILOG}")
@click.argument("source")
@_options.for_option
@click.option(
    "--minutes", default=5.0, show_default=True, type=click.FloatRange(0, min_open=True),
    help="Time limit in minutes, from reading to writing.",
)  # fmt: skip
@_options.roles_option
@_options.drop_option
@_options.pseudonym_key_option
@click.option(
    "--matters", multiple=True, metavar="COLUMNS", help="Columns that analysts need most, comma-separated."
)
@_options.about_options
@click.option("--out", type=click.Path(path_type=Path), help="The folder to write.  [default: NAME-release]")
@click.option("-m", "--method", "methods", multiple=True, help="A method to try (default: all).")
@_options.only_option
@control_option
@click.option(
    "-y", "--yes", is_flag=True, help="Ask nothing: accept every proposal, and stop if a column has none."
)
@_options.override_option
@_options.reading_options
@_options.work_options
def command(source: str, **options: Any) -> None:
    """Make a release for someone."""
    from sfumato.front import make_release
    from sfumato.releasing.prepare import DEFAULT_PROFILE, prepare_release
    from sfumato.report.release_result import folder_of
    from sfumato.tuning.time_budget import Shares

    since = time.monotonic()
    quiet, reason = options["quiet"], _options.reason_of(options)
    folder = options["out"] or _default_folder(source)
    asks = on_terminal() and not options["yes"]
    request = request_of(source, options, output={"drop": _options.split(options["drop"])})
    prepared = prepare_release(request, ask=ask_roles if asks else None)
    prepared, obstacles = _feasible(prepared, asks=asks, quiet=quiet)
    also = {"obstacles": [each.to_dict() for each in obstacles]}
    if asks and prepared.table is not None:
        matters = () if options["matters"] else ask_matters(prepared.table.schema)
        prepared = prepared.with_importance(matters)
        prepared = replace(prepared, plan=ask_about(prepared.plan))
        since = time.monotonic()  # what people think about does not count
    plan = prepared.plan
    if options["profile"] is None and prepared.source is None:
        say(f"profile: {DEFAULT_PROFILE}; for another add --for public, industry or secure", quiet=quiet)
    place = folder_of(plan, folder, overwrite=options["overwrite"], source=prepared.source)
    place.check(plan)
    if prepared.table is not None and not any(each.is_final for each in obstacles):
        say(f"{Shares(options['minutes'], since)}; Ctrl-C stops it cleanly", quiet=quiet)
    with running(quiet=quiet, seed=options["seed"]) as run:
        try:
            released = make_release(
                prepared, subject=source, minutes=options["minutes"], run=run, override=reason,
                search={"methods": options["methods"]}, since=since,
            )  # fmt: skip
        except UnreachableError:
            if options["as_json"]:
                emit_json(also)
            raise
        warn_of_earlier(released.outcome, place.ledger, quiet=quiet)
        written = released.write(folder, overwrite=options["overwrite"])
    if options["as_json"]:
        emit_json({**released.to_dict(), **also})
    else:
        _tell(released, folder, source)
    _tell_files(released, folder, written, quiet=quiet)


def on_terminal() -> bool:
    """Whether there is someone to ask."""
    return sys.stdin.isatty()


def _feasible(prepared: Prepared, *, asks: bool, quiet: bool) -> tuple[Prepared, tuple[Obstacle, ...]]:
    """Say what stands in the way of what is required, and ask what to do; what is left of it."""
    from sfumato.releasing.load import load_resources
    from sfumato.tuning.feasibility import obstacles_text, obstacles_to

    while prepared.table is not None:
        plan, table = prepared.plan, prepared.table
        with running(quiet=quiet, resources=load_resources(plan)) as run:
            found = obstacles_to(plan.demands, table, run, left_out=plan.left_out)
        if asks or not any(each.is_final for each in found):  # else the error says it
            say(obstacles_text(found), quiet=quiet or not found)
        columns = ask_obstacles(found) if asks else ()
        if not columns:
            return prepared, found
        prepared = prepared.leaving_out(columns)
    return prepared, ()


def _default_folder(source: str) -> Path:
    """NAME-release; of the plan that lies in a release folder, that folder."""
    from sfumato.releasing.checksums import PRIVATE, has_private_part

    place = Path(source)
    if place.parent.name == PRIVATE and has_private_part(place.parent.parent):
        return place.parent.parent
    name = source.removeprefix("builtin:").partition("?")[0] if source.startswith("builtin:") else source
    return Path(f"{Path(name).stem or 'data'}-release")


def _tell(released: Released, folder: Path, source: str) -> None:
    for sentence in released.sentences():
        click.echo(textwrap.fill(sentence, _WIDTH, subsequent_indent="  ", break_on_hyphens=False))
    click.echo("\n".join(["Next:", *_next(released, folder, source)]))


def _next(released: Released, folder: Path, source: str) -> list[str]:
    from sfumato.releasing.checksums import PRIVATE
    from sfumato.releasing.folder import REPORT
    from sfumato.releasing.trail import PLAN

    private = folder / PRIVATE
    tables = [Path(part.output.path).name for part in released.plan.parts.values()]
    lines = [
        f"  read {private / REPORT}; do not share the folder `{PRIVATE}`",
        f"  sfumato verify {shlex.quote(str(folder))}",
    ]
    if len(tables) == 1 and len(released.part.copies) == 1 and released.release.plain:
        table = shlex.quote(str(folder / tables[0]))
        lines.append(f"  sfumato risk {shlex.quote(source)} {table}  # more measures of risk")
    plan = shlex.quote(str(private / PLAN))
    return [*lines, f"  sfumato release {plan} --overwrite  # once edited"]


def _tell_files(released: Released, folder: Path, written: Sequence[Path], *, quiet: bool) -> None:
    from sfumato.releasing.checksums import PRIVATE

    leaves = [path.name for path in written if path.parent == folder]
    say(f"written: {folder} with {', '.join(leaves)}", quiet=quiet)
    tell_private(folder / PRIVATE, released.outcome, quiet=quiet)
