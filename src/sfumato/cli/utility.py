"""Measure how useful a release still is, compared with the original."""

from __future__ import annotations

from typing import Any

import click

from sfumato.cli import _options
from sfumato.cli._engine import engine_options
from sfumato.cli._resources import hierarchy_option, resource_option
from sfumato.cli._score import score


@click.command("utility", help=__doc__, epilog=f"ORIGINAL is {_options.SOURCE}.")
@click.argument("original")
@click.argument("protected", required=False)
@click.option(
    "-m",
    "--measure",
    multiple=True,
    help="A measure, such as il1s, or all (default: the standard ones).",
)
@click.option("--require", multiple=True, help="A requirement, such as 'earth-movers-distance <= 0.2'.")
@click.option("--aligned", is_flag=True, help="The records of both files are in the same order.")
@_options.sample_option
@hierarchy_option
@resource_option
@_options.plan_option
@_options.reading_options
@_options.seed_option
@engine_options
@_options.json_option
@_options.quiet_option
def command(original: str, protected: str | None, **options: Any) -> None:
    """Score the utility of a release."""
    score("utility", original, protected, {**options, "columns": ()})
