"""Draw samples from a known population, and see which estimator of population risk comes nearest."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli import _options
from sfumato.cli._engine import engine_options
from sfumato.cli._resources import request_of
from sfumato.cli._screen import emit_json, emit_line, emit_table, running, say
from sfumato.errors import count_noun

if TYPE_CHECKING:
    from sfumato.study.simulate import Simulation


@click.command(
    "simulate", help=__doc__, epilog=f"SOURCE is {_options.SOURCE}, taken as the whole population."
)
@click.argument("source")
@click.option("--fraction", default=0.05, show_default=True, help="Share of the population in a sample.")
@click.option("--draws", default=100, show_default=True, type=click.IntRange(1), help="Number of samples.")
@click.option(
    "-m", "--measure", multiple=True,
    help="An estimator, such as 'population-uniqueness(model=ewens)' (default: all, by each model).",
)  # fmt: skip
@click.option("--minutes", type=click.FloatRange(min=0, min_open=True), help="Time limit in minutes.")
@click.option("--report", type=click.Path(path_type=Path), help="Write a report here, as HTML and JSON.")
@_options.columns_option
@_options.plan_option
@_options.reading_options
@_options.overwrite_option
@_options.seed_option
@engine_options
@_options.json_option
@_options.quiet_option
def command(source: str, **options: Any) -> None:
    """Simulate, then tell which estimator came nearest."""
    from sfumato.core.requirement import parse_measure
    from sfumato.releasing.prepare import prepare_question
    from sfumato.report import check_report, write_pictures
    from sfumato.report.simulation import simulation_pictures
    from sfumato.study.simulate import simulate

    how: dict[str, Any] = {"originals": [source], "overwrite": options["overwrite"]}
    if options["report"] is not None:
        check_report(options["report"], **how)
    measures = [parse_measure(text) for text in options["measure"]]
    asked = prepare_question(request_of(source, options))
    if asked.others:
        say(f"note: {asked.others}", quiet=options["quiet"])
    samples = count_noun(options["draws"], "sample")
    say(f"drawing {samples}; --minutes limits the time, Ctrl-C stops it cleanly", quiet=options["quiet"])
    with running(quiet=options["quiet"], seed=options["seed"]) as run:
        found = simulate(
            asked.table,
            run,
            fraction=options["fraction"],
            draws=options["draws"],
            measures=measures,
            scenario=asked.scenario,
            seconds=60 * options["minutes"] if options["minutes"] else math.inf,
        )
    if options["as_json"]:
        emit_json(found.to_dict())
    else:
        _show(found, quiet=options["quiet"])
    if options["report"] is not None:
        paths = write_pictures(simulation_pictures(found), options["report"], **how)
        say("report: " + ", ".join(str(path) for path in paths), quiet=options["quiet"])


def _show(found: Simulation, *, quiet: bool) -> None:
    say(
        f"{found.draws} samples of {found.sample:,} of {found.people:,} people ({found.fraction:.3g})"
        + (f"; {found.asked} were asked for, but time was up" if found.draws < found.asked else ""),
        quiet=quiet,
    )
    estimators = found.to_dict()["estimators"]
    for what in dict.fromkeys(each["estimates"] for each in estimators):
        rows = [_row(each) for each in estimators if each["estimates"] == what]
        truths = [each["truth"] for each in estimators if each["estimates"] == what and each["draws"]]
        emit_line(f"\n{what}, true value {truths[0]:.4f}:" if truths else f"\n{what}:")
        emit_table(
            ["estimator", "estimate", "bias", "spread", "held", "remark"], rows, right=range(1, 5), about=0
        )
    emit_line("\nheld: share of samples whose interval contains the true value; nearest estimator first\n")
    for sentence in found.verdict():
        emit_line(sentence)


def _row(each: dict[str, Any]) -> list[str]:
    numbers = [each[name] for name in ("estimate", "bias", "spread")]
    cells = ["—" if value is None else f"{value:.4f}" for value in numbers]
    held = "" if each["interval_held"] is None else f"{each['interval_held']:.0%}"
    missing = each["not_estimable"]
    remark = f"no estimate in {count_noun(missing, 'sample')}: {each['reason']}" if missing else ""
    name = each["measure"].replace("(model=", ": ").removesuffix(")")  # a table has little room
    return [name, *cells, held, remark]
