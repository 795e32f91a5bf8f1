"""Lists what a registry has, or shows one entry in full."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import click

from sfumato.cli._screen import emit_json, emit_table
from sfumato.core.method import Described
from sfumato.core.references import cite

D = TypeVar("D", bound=Described)


def show(
    entries: Iterable[type[D]],
    *,
    one: bool,
    as_json: bool,
    headers: Sequence[str],
    row: Callable[[type[D]], list[str]],
) -> None:
    """Write one entry in full or all of them as a table; for a machine, everything declared of each."""
    chosen = list(entries)
    if as_json:
        described = [cls.describe() for cls in chosen]
        emit_json(described[0] if one else described)
    elif one:
        _show_in_full(chosen[0])
    else:
        emit_table(headers, [row(cls) for cls in chosen])


def _show_in_full(cls: type[Described]) -> None:
    """Write the docstring, the parameters and the literature."""
    click.echo(f"{cls.name} — {cls.title}\n")
    click.echo(inspect.cleandoc(cls.__doc__ or "").replace(":math:", ""))
    show_parameters(cls)
    click.echo("\nLiterature")
    for key in cls.references:
        click.echo(f"  {cite(key)}")


def show_parameters(cls: type[Described]) -> None:
    """Write what can be set, if anything can."""
    if cls.parameters():
        click.echo("\nParameters")
        rows = [[p.name, p.symbol, p.domain, str(p.default), p.help] for p in cls.parameters()]
        emit_table(["name", "symbol", "domain", "default", "meaning"], rows)
