"""List the measures of risk and utility, or show one in full."""

from __future__ import annotations

import click

from sfumato.cli._describe import Goals, goals_of_kinds, show
from sfumato.cli._options import json_option


@click.command("measures", help=__doc__)
@click.argument("name", required=False)
@click.option(
    "--for",
    "wanted",
    default="",
    help="Only measures of `risk` or `utility`, for these kinds of column, or `vetted`; comma-separated.",
)
@json_option
def command(name: str | None, *, wanted: str, as_json: bool) -> None:
    """List the measures, or one of them."""
    aspects: Goals = {
        "risk": lambda cls: cls.aspect == "risk",
        "utility": lambda cls: cls.aspect == "utility",
    }
    show("measures", name, wanted=wanted, goals={**aspects, **goals_of_kinds()}, as_json=as_json)
