"""List the methods of protection, or show one in full."""

from __future__ import annotations

from functools import partial
from typing import get_args

import click

from sfumato.cli._describe import Goals, goals_of_kinds, show
from sfumato.cli._options import json_option
from sfumato.core.method import Method, Nature


@click.command("methods", help=__doc__)
@click.argument("name", required=False)
@click.option(
    "--for",
    "wanted",
    default="",
    help="Only methods for these kinds of column, of a nature (synthetic …), that enforce `requirements`, or "
    "that are `vetted`.",
)
@json_option
def command(name: str | None, *, wanted: str, as_json: bool) -> None:
    """List the methods, or one of them."""
    goals: Goals = {
        **goals_of_kinds(),
        **{nature: partial(_is, nature) for nature in get_args(Nature)},
        "requirements": _enforces,
    }
    show("methods", name, wanted=wanted, goals=goals, as_json=as_json)


def _is(nature: Nature, cls: type[Method]) -> bool:
    return cls.nature == nature


def _enforces(cls: type[Method]) -> bool:
    from sfumato.methods._enforcing import EnforcingMethod

    return issubclass(cls, EnforcingMethod)
