"""Compare methods at the same level of risk or of utility."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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
from sfumato.cli._screen import emit_json, emit_table, running, say
from sfumato.compare.study import Outcome, Spread, Study


@click.command("compare", help=__doc__, epilog=f"SOURCE is {SOURCE}.")
@click.argument("source")
@click.option(
    "-m", "--method", "methods", multiple=True, help="A method, such as 'mdav' or 'mdav(k=5)' (default: all)."
)
@click.option("--hold", default="rank-linkage", show_default=True, help="The measure that is made equal.")
@click.option("--level", type=float, help="Its level (default: what the first method gives as it is).")
@click.option("--rank-by", default="earth-movers-distance", show_default=True, help="The measure that ranks.")
@click.option(
    "--tolerance", default=0.01, show_default=True, help="How near is there, as a share of the level."
)
@click.option(
    "--repeats", default=5, show_default=True, type=click.IntRange(1), help="Fresh runs per method."
)
@click.option(
    "--points", default=0, show_default=True, type=click.IntRange(0), help="Points per method on the map."
)
@click.option(
    "--report", type=click.Path(path_type=Path), help="Write an HTML report and its JSON twin here."
)
@click.option(
    "--public", is_flag=True, help="Make the report fit to publish: nothing that helps an intruder."
)
@columns_option
@plan_option
@seed_option
@overwrite_option
@json_option
@quiet_option
def command(source: str, **options: Any) -> None:
    """Compare methods at equal risk or equal utility."""
    from sfumato import front
    from sfumato.compare.study import require_reached
    from sfumato.io import check_writable
    from sfumato.report import write_report

    report: Path | None = options["report"]
    if report is not None:
        check_writable(report, overwrite=options["overwrite"])
    schema, scenario = schema_and_scenario(options["plan_path"])
    table = front.read(source, schema=schema)
    columns = split(options["columns"])
    require_columns(table.schema, columns)
    with running(quiet=options["quiet"], seed=options["seed"]) as run:
        study = front.compare(
            table,
            [_method(text) for text in options["methods"]],
            hold=options["hold"],
            level=options["level"],
            rank_by=options["rank_by"],
            columns=columns,
            tolerance=options["tolerance"],
            repeats=options["repeats"],
            points=options["points"],
            scenario=scenario,
            run=run,
        )
    _show(study, as_json=options["as_json"], quiet=options["quiet"])
    if report is not None:
        paths = write_report(study, report, public=options["public"], overwrite=options["overwrite"])
        say("report: " + ", ".join(str(path) for path in paths), quiet=options["quiet"])
    require_reached(study)


def _method(text: str) -> Any:
    from sfumato.core import registry
    from sfumato.core.requirement import parse_settings

    name, _, rest = text.strip().partition("(")
    cls = registry.method(name.strip())
    return cls.from_dict(parse_settings(rest.rstrip(") "), cls))


def _show(study: Study, *, as_json: bool, quiet: bool) -> None:
    if as_json:
        emit_json(study.to_dict())
        return
    held, ranked = study.target.measure, study.ranked_by
    say(
        f"{len(study.original)} records; {held.title} held at {study.target.value:.4g} "
        f"(± {study.target.tolerance:.0%}); ranked by {ranked.title}, {ranked.better} is better",
        quiet=quiet,
    )
    rows = [_row(outcome) for outcome in study.outcomes]
    emit_table(["rank", "method", "parameter", held.name, ranked.name, "remark"], rows, right=[0])
    if any(spread and spread.approximate for o in study.outcomes for spread in (o.held, o.ranked)):
        say("≈ estimated from samples, so not exact", quiet=quiet)
    for outcome in study.unreached:
        say(f"{outcome.step.method.name}: {outcome.level.sentence(study.target)}", quiet=quiet)


def _row(outcome: Outcome) -> list[str]:
    remarks = []
    if outcome.rank is None:
        remarks.append("level unreachable")
    elif outcome.level.reached != "within tolerance":
        remarks.append(str(outcome.level.reached))
    if outcome.tied_with_next:
        remarks.append("no better than the next, within chance")
    return [
        "—" if outcome.rank is None else str(outcome.rank),
        outcome.step.method.name,
        f"{outcome.level.parameter} = {outcome.level.value:.4g}",
        _spread(outcome.held),
        _spread(outcome.ranked),
        "; ".join(remarks),
    ]


def _spread(spread: Spread | None) -> str:
    if spread is None:
        return "—"
    low, high = spread.interval
    about = "≈ " if spread.approximate else ""
    return f"{about}{spread.mean:.4f}" + (f" ± {(high - low) / 2:.4f}" if high > low else "")
