"""List the methods of protection, or show one in full."""

from __future__ import annotations

import click

from sfumato.cli._options import json_option
from sfumato.cli._screen import emit_json, emit_table
from sfumato.core import registry


@click.command("methods", help=__doc__)
@click.argument("name", required=False)
@json_option
def command(name: str | None, *, as_json: bool) -> None:
    """List the methods, or one of them."""
    chosen = [registry.method(name)] if name else list(registry.methods().values())
    if as_json:
        described = [cls.describe() for cls in chosen]
        emit_json(described[0] if name else described)
    elif name:
        from sfumato.cli._describe import show

        show(chosen[0])
    else:
        rows = [
            [
                cls.name,
                cls.family(),
                ", ".join(sorted(cls.kinds)),
                cls.describe()["drive"] or "—",
                cls.summary(),
            ]
            for cls in chosen
        ]
        emit_table(["method", "family", "kinds of column", "drive", "what it does"], rows)
