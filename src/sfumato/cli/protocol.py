"""Protect anew until few are linked, then release the file with its bound; or release nothing."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli._options import (
    SOURCE,
    columns_option,
    json_option,
    overwrite_option,
    plan_option,
    quiet_option,
    require_columns,
    schema_and_scenario,
    seed_option,
    split,
)
from sfumato.cli._resources import files_named, hierarchy_option, resource_option, with_resources
from sfumato.cli._screen import announce, emit_json, emit_table, running, say
from sfumato.errors import RequirementError

if TYPE_CHECKING:
    from sfumato.core.measure import Score
    from sfumato.core.run import Run
    from sfumato.data.evidence import Scenario
    from sfumato.data.table import Table
    from sfumato.recipes.recipe import Step
    from sfumato.study.protocol import Protocol

_ADVICE = "allow more with --local and --everywhere, or name a method that protects more"


@click.command("protocol", help=__doc__, epilog=f"SOURCE is {SOURCE}.")
@click.argument("source")
@click.option(
    "-m",
    "--method",
    "methods",
    multiple=True,
    required=True,
    help="A method, such as 'mdav(k=5)'; several: each after the one before, which should protect less. "
    "One alone is strengthened by itself.",
)
@click.option("-o", "--out", required=True, help="Where the release goes.")
@click.option(
    "--local", default=0.05, show_default=True, help="Largest share of records linked one by one (DBRL)."
)
@click.option(
    "--everywhere", default=0.05, show_default=True, help="Largest share linked all at once (GDBRL)."
)
@click.option(
    "--attempts", default=3, show_default=True, type=click.IntRange(1), help="Attempts at each setting."
)
@click.option(
    "--rungs", default=9, show_default=True, type=click.IntRange(2),
    help="Settings over the range of a method that is strengthened by itself.",
)  # fmt: skip
@click.option("--drop", multiple=True, help="Columns to leave out of the output, such as identifiers.")
@click.option(
    "--keep-order", is_flag=True, help="Do not shuffle the records; file order can identify people."
)
@columns_option
@hierarchy_option
@resource_option
@plan_option
@seed_option
@overwrite_option
@json_option
@quiet_option
def command(source: str, **options: Any) -> None:
    """Carry out the owner's protocol."""
    from sfumato.cli.compare import method_of
    from sfumato.data.evidence import Scenario
    from sfumato.front import read
    from sfumato.recipes.plan import bare_numbers
    from sfumato.recipes.recipe import Step
    from sfumato.releasing.destination import Destination, write_accepted

    quiet, columns = options["quiet"], split(options["columns"])
    steps = tuple(Step(method_of(text), columns) for text in options["methods"])
    place = Destination(
        options["out"], source, split(options["drop"]), shuffle=not options["keep_order"],
        overwrite=options["overwrite"], others=tuple(files_named(options)),
    )  # fmt: skip
    place.check()
    schema, scenario = schema_and_scenario(options["plan_path"])
    table, resources = with_resources(read(source, schema=schema), options)
    require_columns(table.schema, (*columns, *place.drop))
    place.check_columns(table.schema)
    for warning in (*steps[0].warnings(table.schema), *bare_numbers(table.schema, place.drop)):
        say(f"warning: {warning}", quiet=quiet)
    with running(quiet=quiet, seed=options["seed"]) as run:
        run = replace(run, resources=resources)  # noqa: PLW2901  — the same run, which knows them
        ended = _ended(table, steps, run, scenario or Scenario(columns=columns), options)
        _show(ended, as_json=options["as_json"])
        if not ended.accepted:
            raise RequirementError(f"{ended.reason}; nothing was written", hint=_ADVICE)
        *released, private = write_accepted(ended, table, place, run, seeded=options["seed"] is not None)
    say(f"released with the bound Δ = {ended.bound:g}, which may be published: no record moved "
        "farther in what the intruder knows",
        quiet=quiet)  # fmt: skip
    say("written: " + ", ".join(str(path) for path in (*released, private)), quiet=quiet)
    say(f"keep {Path(private).name} private: with its seed the noise can be undone", quiet=quiet)


def _ended(
    table: Table, steps: tuple[Step, ...], run: Run, scenario: Scenario, options: dict[str, Any]
) -> Protocol:
    from sfumato.recipes.recipe import Recipe
    from sfumato.risk.global_linkage import GlobalLinkage
    from sfumato.risk.linkage import DistanceLinkage
    from sfumato.study.cost import Work
    from sfumato.study.protocol import Limits, carry_out_protocol, strengthened

    limits = Limits(options["local"], options["everywhere"])
    work = Work(
        Recipe(steps[:1]), (DistanceLinkage(), GlobalLinkage()), scenario=scenario, resources=run.resources
    )
    announce(work, table, run, quiet=options["quiet"])
    if len(steps) == 1:
        steps = strengthened(steps[0], table, run, limits=limits, rungs=options["rungs"], scenario=scenario)
    return carry_out_protocol(
        table,
        steps,
        run,
        limits=limits,
        attempts=options["attempts"],
        scenario=scenario,
        resources=run.resources,
    )


def _show(ended: Protocol, *, as_json: bool) -> None:
    if as_json:
        emit_json(ended.to_dict())
        return
    rows = [
        [str(number), _setting(each.step), f"{each.distortion:.4g}", _share(each.local),
         _share(each.everywhere), each.verdict]
        for number, each in enumerate(ended.attempts, start=1)
    ]  # fmt: skip
    emit_table(["attempt", "method", "δ", "dbrl", "gdbrl", "verdict"], rows, right=[0])


def _setting(step: Step) -> str:
    """A method with its drive, in the digits that a table has room for."""
    drive = step.method.drive()
    if drive is None:
        return str(step.method)
    return f"{step.method.name}, {drive.name} = {getattr(step.method, drive.name):.4g}"


def _share(score: Score | None) -> str:
    return "—" if score is None or math.isnan(score.value) else f"{score.value:.4f}"
