"""List the methods of protection, or show one in full."""

from __future__ import annotations

import click

from sfumato.cli._describe import show
from sfumato.cli._options import json_option
from sfumato.core import registry
from sfumato.core.method import Method


@click.command("methods", help=__doc__)
@click.argument("name", required=False)
@json_option
def command(name: str | None, *, as_json: bool) -> None:
    """List the methods, or one of them."""
    chosen = [registry.method(name)] if name else registry.methods().values()
    headers = ["method", "family", "kinds of column", "drive", "what it does"]
    show(chosen, one=name is not None, as_json=as_json, headers=headers, row=_row)


def _row(cls: type[Method]) -> list[str]:
    return [
        cls.name,
        cls.family(),
        ", ".join(sorted(cls.kinds)),
        cls.describe()["drive"] or "—",
        cls.summary(),
    ]
