"""Find the recipe that meets all requirements with the least information loss, and write its plan."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli import _options
from sfumato.cli._resources import control_option, hierarchy_option, request_of, resource_option
from sfumato.cli._screen import announce, emit_json, emit_line, emit_table, running, say
from sfumato.errors import Cancelled, ParameterError, UnreachableError

if TYPE_CHECKING:
    from sfumato.recipes.plan import Plan
    from sfumato.releasing.prepare import AssessmentRequest
    from sfumato.releasing.request import Request
    from sfumato.tuning.candidate import Candidate
    from sfumato.tuning.feasibility import Obstacle
    from sfumato.tuning.tuning_result import TuningResult

_COUNT = click.IntRange(1)

#: Options that are what the front door calls them.
_GIVEN = (
    "profile", "methods", "without", "trials", "repeats", "confirmations", "workers", "minutes", "ledger",
    "seed",
)  # fmt: skip


@click.command("tune", help=__doc__, epilog=f"SOURCE is {_options.SOURCE}.")
@click.argument("source")
@click.option("--require", multiple=True, help="A requirement on the release, such as 'dbrl <= 0.05'.")
@_options.for_option
@click.option(
    "--rank-by",
    multiple=True,
    help="The measure of utility to optimise.  [default: the profile's, or analytical-loss]",
)
@click.option("--trials", default=60, show_default=True, type=_COUNT, help="Recipes to try.")
@click.option("--repeats", default=3, show_default=True, type=_COUNT, help="Runs of each recipe.")
@click.option(
    "--confirmations", default=5, show_default=True, type=_COUNT, help="New runs of the best recipes."
)
@click.option("-m", "--method", "methods", multiple=True, help="A method to try (default: all).")
@click.option("--without", multiple=True, help="A method not to try.")
@_options.only_option
@click.option(
    "--group",
    "groups",
    multiple=True,
    metavar="NAME=COLUMNS",
    help="Columns, comma-separated, that one step protects; steps come in this order (default: derived).",
)
@click.option("--workers", default=1, show_default=True, type=_COUNT, help="Recipes tried at the same time.")
@click.option(
    "--ledger",
    type=click.Path(path_type=Path),
    help="Save finished work to this file; the same command then continues where it was stopped.",
)
@click.option(
    "--minutes",
    default=5.0,
    show_default=True,
    type=click.FloatRange(0, min_open=True),
    help="Time limit in minutes, confirmation included.",
)
@click.option("--write-plan", type=click.Path(path_type=Path), help="Write the plan for `sfumato run` here.")
@click.option(
    "-o", "--out", default="", help="Where that plan writes the release.  [default: release.SUFFIX]"
)
@_options.columns_option
@_options.roles_option
@_options.drop_option
@_options.plan_option
@hierarchy_option
@resource_option
@control_option
@_options.reading_options
@_options.work_options
def command(source: str, **options: Any) -> None:
    """Find the recipe that meets all requirements and loses least."""
    from sfumato.io import check_writable

    place: Path | None = options["write_plan"]
    originals = [source] if Path(source).is_file() else []
    if place is not None:
        check_writable(place, originals=originals, overwrite=options["overwrite"])
    obstacles: list[Obstacle] = []
    try:
        tuned = _search_recipes(source, options, obstacles)
    except UnreachableError:
        if options["as_json"]:
            emit_json(_as_json(obstacles))
        raise
    if options["as_json"]:
        emit_json({**tuned.to_dict(), **_as_json(obstacles)})
    else:
        _show(tuned)
    if place is not None:
        write_plan(tuned.plan, place, originals, options)


def write_plan(plan: Plan, place: Path, originals: Sequence[str], options: Mapping[str, Any]) -> None:
    """Write a plan, and say what must be decided before it can run."""
    from sfumato.io import write_text

    write_text(place, plan.to_toml(), originals=originals, overwrite=options["overwrite"])
    for blocker in plan.blockers():
        say(f"before it can run: {blocker}", quiet=options["quiet"])
    say(f"plan: {place}; `sfumato run {place}` makes the release", quiet=options["quiet"])


def _as_json(obstacles: Sequence[Obstacle]) -> dict[str, Any]:
    return {"obstacles": [each.to_dict() for each in obstacles]}


def _search_recipes(source: str, options: Mapping[str, Any], obstacles: list[Obstacle]) -> TuningResult:
    """Read, search, note what stands in the way, and say how to go on if it is stopped."""
    from sfumato import front
    from sfumato.releasing.prepare import prepare_question
    from sfumato.releasing.request import require_columns
    from sfumato.tuning import ledger as ledgers
    from sfumato.tuning.feasibility import obstacles_text

    request = request_of(source, options, columns=(), profile=None)
    asked = prepare_question(request)
    for note in asked.notes:
        say(f"note: {note}", quiet=options["quiet"])
    columns = _options.split(options["columns"])
    require_columns(asked.table.schema, (*columns, *_options.split(options["drop"])))
    ledger: Path | None = options["ledger"]
    seed = options["seed"]
    if seed is None and ledger is not None:
        seed = ledgers.kept_seed(ledger)
    own = () if options["require"] or options["profile"] else asked.plan.demands
    described = asked.scenario is not None and not options["profile"] and not columns

    def warn(found: Sequence[Obstacle]) -> None:
        obstacles.extend(found)
        if found and not any(each.is_final for each in found):  # else the error says it
            say(obstacles_text(found), quiet=options["quiet"])

    try:
        with running(quiet=options["quiet"], seed=seed) as run:
            return front.tune(
                asked.table,
                options["require"] or own,
                utility=options["rank_by"],
                columns=columns,
                groups=_groups(options["groups"]),
                scenario=asked.scenarios if described else None,
                resources=asked.resources,
                control=asked.plan.control,
                plan=base_plan(asked, request, options),
                run=run,
                warn=warn,
                only=options["only"] or asked.plan.only,
                before=partial(announce, quiet=options["quiet"], at_most=60 * options["minutes"]),
                **{name: options[name] for name in _GIVEN},
            )
    except Cancelled:
        if ledger is None:
            raise Cancelled(
                "the search was stopped; nothing was saved", hint="with --ledger FILE it can be continued"
            ) from None
        raise Cancelled(
            f"the search was stopped; finished work is in `{ledger}`",
            hint="the same command continues where it was stopped, and gives the same result",
        ) from None


def _groups(specs: Sequence[str]) -> dict[str, tuple[str, ...]]:
    groups = {}
    for each in specs:
        name, sign, columns = each.partition("=")
        if not sign or not name.strip() or not _options.split([columns]):
            raise ParameterError(f"a group must be written NAME=COLUMN,COLUMN, got: `{each}`")
        groups[name.strip()] = _options.split([columns])
    return groups


def base_plan(asked: AssessmentRequest, request: Request, options: Mapping[str, Any]) -> Plan:
    """What the written plan says beside the recipe, its paths as they are seen from its folder."""
    plan, place = asked.plan, options["write_plan"]
    folder = (place or Path("plan.toml")).resolve().parent

    def seen(path: str) -> str:
        return os.path.relpath(Path(path).resolve(), folder) if Path(path).is_file() else path

    drop = tuple(dict.fromkeys((*plan.output.drop, *_options.split(options.get("drop", ())))))
    output = replace(plan.output, drop=drop, path=options.get("out") or plan.output.path)
    return replace(
        plan,
        data=request.source_as_given(plan.source_at(seen(str(asked.source)))),
        schema=None,  # that of the table, with the hierarchies declared on the command line
        resources={name: replace(each, path=seen(each.path)) for name, each in plan.resources.items()},
        output=output,
        folder=folder,
    )


def _show(tuned: TuningResult) -> None:
    for sentence in tuned.sentences():
        emit_line(sentence)
    click.echo()
    measures = [measure.name for measure in tuned.found.searched_by.utilities]  # how it was set is said above
    headers = [*measures, *(str(demand) for demand in tuned.judge.demands), "met", "recipe"]
    emit_table(headers, [_row(each, tuned) for each in tuned.frontier], right=range(len(headers) - 2))


def _row(candidate: Candidate, tuned: TuningResult) -> list[str]:
    from sfumato.tuning.tuning_result import describe

    utilities, demands = tuned.found.searched_by.spreads(candidate.result)
    values = [f"{spread.mean:.4g}" if spread else "—" for spread in (*utilities, *demands)]
    return [*values, "yes" if candidate.feasible else "no", describe(candidate.recipe)]
