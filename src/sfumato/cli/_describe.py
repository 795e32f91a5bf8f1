"""Lists what a registry has, or shows one entry in full."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import groupby
from typing import Any, Literal

import click

from sfumato.cli._options import split
from sfumato.cli._screen import emit_json, emit_list, emit_text, say, sentence_case
from sfumato.core import registry
from sfumato.core.component import Component
from sfumato.core.synonyms import Match
from sfumato.data.schema import Kind
from sfumato.errors import UnknownNameError

#: Where a word after ``--for`` is looked up: the words it may be, and whether a class answers to it.
Goals = Mapping[str, Callable[[type[Any]], bool]]


def show(
    what: Literal["methods", "measures"], name: str | None, *, wanted: str, goals: Goals, as_json: bool
) -> None:
    """Write one entry in full, or by family those that serve a purpose; for a machine, all of each."""
    one = {"methods": registry.method, "measures": registry.measure}[what]
    if name is not None:
        try:
            classes: list[type[Component]] = [one(name)]
        except UnknownNameError:
            if not (found := registry.search(name)):
                raise
            if len(found) > 1 and not as_json:
                _list_meanings(found)
                return
            say_meant(name, *found)
            classes = list(dict.fromkeys(match.cls for match in found))
        if as_json:
            described = [cls.describe() for cls in classes]
            emit_json(described[0] if len(described) == 1 else described)
        else:
            show_meaning(classes[0])
        return
    entries = registry.entries(what)
    for word in split((wanted,)):
        if word not in goals:
            raise UnknownNameError.of("goal", word, goals)
        entries = [entry for entry in entries if goals[word](entry.load())]
    if as_json:
        emit_json([entry.load().describe() for entry in sorted(entries, key=lambda entry: entry.name)])
        return
    emit_list(
        (heading, [(", ".join((entry.name, *entry.aliases)), entry.summary) for entry in group])
        for heading, group in groupby(entries, key=_heading)
    )
    narrower = f"`--for {next(iter(goals))}` narrows the list"
    click.echo(f"\n{len(entries)} {what}. `sfumato {what} NAME` shows one; {narrower}.")


def _list_meanings(found: Iterable[Match]) -> None:
    emit_list(
        (f"{what}s", [(str(match), match.cls.summary()) for match in group])
        for what, group in groupby(found, key=lambda match: match.what)
    )


def say_meant(word: str, *found: Match) -> None:
    """Say what a word of another tool or paper is called here; of its own name, what it is."""
    if [word] == [str(match) for match in found]:
        say(f"note: `{word}` is a {found[0].what}; `sfumato {found[0].what}s` lists all")
        return
    say(f"note: `{word}` is {' or '.join(f'the {match.what} `{match}`' for match in found)} here")


def _heading(entry: registry.Entry) -> str:
    return entry.family if entry.room == "methods" else f"{entry.room}: {entry.family}"


def goals_of_kinds() -> dict[str, Callable[[type[Any]], bool]]:
    """A kind of column as a purpose, what can be given such columns; or that more than experiments vouch."""
    return {**{kind.value: partial(_takes, kind) for kind in Kind}, "vetted": _is_vetted}


def _takes(kind: Kind, cls: type[Component]) -> bool:
    return kind in cls.kinds


def _is_vetted(cls: type[Component]) -> bool:
    return cls.vetting().level != "empirical"


def show_meaning(cls: type[Component]) -> None:
    """Write what a measure or method means, in full."""
    from sfumato.explain.words import meaning_of

    meaning = meaning_of(cls)
    emit_text(f"{meaning.name} — {meaning.title}, a {meaning.what}")
    click.echo("")
    emit_text(meaning.summary)
    if meaning.synonyms:
        emit_text(f"Also known as {', '.join(meaning.synonyms)}.")
    if meaning.side:
        click.echo(f"{sentence_case(meaning.side)}.")
    if meaning.definition:
        click.echo("")
        emit_text(meaning.definition)
    parts = {**meaning.notes, "What guessing scores": meaning.guessing}
    for head, text in parts.items():
        if text:
            click.echo(f"\n{head}")
            emit_text(text, indent=2)
    _show_parameters(cls)
    click.echo("\nWhere it comes from")
    for entry in meaning.literature:
        emit_text(entry, indent=2)


def _show_parameters(cls: type[Component]) -> None:
    """Write what can be set, if anything can."""
    if cls.parameters():
        click.echo("\nParameters")
    for each in cls.parameters():
        symbol = f" ({each.symbol})" if each.symbol not in {"", each.name} else ""
        emit_text(f"{each.name}{symbol}: {each.domain}  [default: {each.default}]", indent=2)
        emit_text(each.explanation, indent=6)
