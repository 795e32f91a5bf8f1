"""List the measures of risk and utility, or show one in full."""

from __future__ import annotations

import click

from sfumato.cli._options import json_option
from sfumato.cli._screen import emit_json, emit_table
from sfumato.core import registry


@click.command("measures", help=__doc__)
@click.argument("name", required=False)
@json_option
def command(name: str | None, *, as_json: bool) -> None:
    """List the measures, or one of them."""
    chosen = [registry.measure(name)] if name else list(registry.measures().values())
    if as_json:
        described = [cls.describe() for cls in chosen]
        emit_json(described[0] if name else described)
    elif name:
        from sfumato.cli._describe import show

        show(chosen[0])
    else:
        rows = [
            [cls.name, cls.aspect, f"{cls.better} is better", ", ".join(sorted(cls.kinds)), cls.summary()]
            for cls in chosen
        ]
        emit_table(["measure", "aspect", "direction", "kinds of column", "what it says"], rows)
