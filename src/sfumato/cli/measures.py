"""List the measures of risk and utility, or show one in full."""

from __future__ import annotations

import click

from sfumato.cli._describe import show
from sfumato.cli._options import json_option
from sfumato.core import registry
from sfumato.core.measure import Measure


@click.command("measures", help=__doc__)
@click.argument("name", required=False)
@json_option
def command(name: str | None, *, as_json: bool) -> None:
    """List the measures, or one of them."""
    chosen = [registry.measure(name)] if name else registry.measures().values()
    headers = ["measure", "aspect", "direction", "kinds of column", "what it says"]
    show(chosen, one=name is not None, as_json=as_json, headers=headers, row=_row)


def _row(cls: type[Measure]) -> list[str]:
    return [cls.name, cls.aspect, f"{cls.better} is better", ", ".join(sorted(cls.kinds)), cls.summary()]
