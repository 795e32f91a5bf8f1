"""Shows one method or measure in full."""

from __future__ import annotations

import inspect

import click

from sfumato.cli._screen import emit_table
from sfumato.core.method import Described
from sfumato.core.references import cite


def show(cls: type[Described]) -> None:
    """Write the docstring, the parameters and the literature."""
    click.echo(f"{cls.name} — {cls.title}\n")
    click.echo(inspect.cleandoc(cls.__doc__ or "").replace(":math:", ""))
    if cls.parameters():
        click.echo("\nParameters")
        rows = [[p.name, p.symbol, p.domain, str(p.default), p.help] for p in cls.parameters()]
        emit_table(["name", "symbol", "domain", "default", "meaning"], rows)
    click.echo("\nLiterature")
    for key in cls.references:
        click.echo(f"  {cite(key)}")
