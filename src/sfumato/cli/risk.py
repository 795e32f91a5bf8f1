"""Measure what an intruder could learn from a release."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sfumato.cli import _options
from sfumato.cli._engine import engine_options
from sfumato.cli._resources import control_option, hierarchy_option, resource_option
from sfumato.cli._score import score


@click.command(
    "risk",
    help=__doc__,
    epilog=f"ORIGINAL is {_options.SOURCE}. --columns are those that the intruder knows.",
)
@click.argument("original")
@click.argument("protected", required=False)
@click.option(
    "-m",
    "--measure",
    multiple=True,
    help="A measure, such as dbrl, or all (default: the standard ones).",
)
@click.option(
    "--require", multiple=True, help="A requirement, such as 'rank-linkage >= 0.45'; exit code 1 if not met."
)
@click.option(
    "--in-database", is_flag=True,
    help="Count classes where the table is, and read nothing else of it. ORIGINAL is its address.",
)  # fmt: skip
@click.option("--aligned", is_flag=True, help="The records of both files are in the same order.")
@click.option("--per-record", is_flag=True, help="With --json: also the risk of each record. Private.")
@click.option(
    "--report", type=click.Path(path_type=Path),
    help="Write the scores with charts here, as HTML and JSON. Private.",
)  # fmt: skip
@_options.overwrite_option
@_options.columns_option
@hierarchy_option
@resource_option
@control_option
@_options.plan_option
@_options.reading_options
@_options.seed_option
@engine_options
@_options.json_option
@_options.quiet_option
def command(original: str, protected: str | None, **options: Any) -> None:
    """Score the risk of a release."""
    score("risk", original, protected, options)
