"""The questions before a release: roles that are not known, what analysts need, what the release is."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli._screen import say
from sfumato.data.schema import Role
from sfumato.errors import count_noun, quoted

if TYPE_CHECKING:
    from sfumato.data.guess.overview import Overview, Summary
    from sfumato.data.schema import Schema
    from sfumato.recipes.plan import Plan
    from sfumato.tuning.feasibility import Obstacle

#: Proposals that are less sure than this are asked about.
MIN_PROPOSAL_CONFIDENCE = 0.7
#: The role of a column that gets no answer: it is removed.
_SAFE = Role.IDENTIFIER
#: The roles as they are numbered, in a question and in its help.
ROLES = {
    Role.KEY: ("known to others (key)", "quasi-identifier: others may know it, such as age, sex, town"),
    Role.SENSITIVE: ("confidential (sensitive)", "people keep it to themselves, such as income or illness"),
    Role.IDENTIFIER: (
        "direct identifier (removed)",
        "names a person, such as a name, address or account number",
    ),
    Role.PERSON: ("person number", "the same in all records of a person; never released as it is"),
    Role.HOUSEHOLD: ("household number", "the same in all records of a household"),
    Role.GROUP: ("group number", "links people in another way, such as the number of a school"),
    Role.WEIGHT: ("weight", "sampling weight: how many people of the population a record represents"),
    Role.OTHER: ("none of these (other)", "not known to others and not harmful: released as it is"),
}
_NUMBERS = {str(number): role for number, role in enumerate(ROLES, 1)}
#: Other words for a role that are understood.
_SYNONYMS = {
    "quasi-identifier": Role.KEY,
    "known": Role.KEY,
    "confidential": Role.SENSITIVE,
    "direct identifier": Role.IDENTIFIER,
    "none": Role.OTHER,
}
_HELP = "?"
#: What the owner is asked to say of the release, by what `sfumato.recipes.parts.About` calls it.
_ABOUT = {
    "title": "title",
    "purpose": "purpose (why it is released)",
    "contact": "contact for questions",
    "recipients": "recipients, separated by `;`",
}


def ask_roles(found: Overview) -> dict[str, tuple[str, str]]:
    """Ask for the roles that are unknown or unsure; Enter takes the proposal, or removes the column.

    Gives the role of each column that was asked about, and whose word it is.
    """
    open_ = [
        each
        for each in found.columns
        if each.column.role is None or each.guess.confidence < MIN_PROPOSAL_CONFIDENCE
    ]
    if open_:
        need = "column needs" if len(open_) == 1 else "columns need"
        say(f"{len(open_)} {need} a role. Answer by number, by name or by its beginning.")
    answers = {}
    with _compiling() if open_ else nullcontext():
        for summary in open_:
            answers[summary.column.name] = _ask_one(summary)
    return answers


def ask_matters(schema: Schema) -> tuple[str, ...]:
    """Ask which columns analysts need most; Enter: all equally."""
    shown = [name for name in schema.said_of_people() if schema[name].importance == 1]
    say(f"Which columns do analysts need most? The search changes these least. Columns: {quoted(shown)}")
    while True:
        answer = _prompt_text("names, comma-separated; Enter: all equally")
        names = tuple(filter(None, map(str.strip, answer.split(","))))
        if strangers := [name for name in names if name not in shown]:
            say(f"  not one of these columns: {quoted(strangers)}")
        else:
            return names


def ask_obstacles(found: Sequence[Obstacle]) -> tuple[str, ...]:
    """Ask what to do about columns that hinder a requirement: those to remove; none to continue unchanged.

    Enter removes those that make a requirement unreachable, and else continues.
    """
    final = [each for each in found if each.is_final]
    columns = tuple(dict.fromkeys(name for each in final or found for name in each.columns))
    if not columns:
        return ()
    leave = f"remove {quoted(columns, ' and ')}"
    choices = [leave, "stop: nothing is released"] if final else ["continue unchanged", leave]
    say("\n".join(f"  {number} {choice}" for number, choice in enumerate(choices, 1)))
    while (answer := _prompt_text(f"number; Enter: 1, {choices[0]}") or "1") not in {"1", "2"}:
        say(f"  `{answer}` is not one of the numbers")
    return columns if choices[int(answer) - 1] == leave else ()


def ask_about(plan: Plan) -> Plan:
    """The plan with what its owner says of the release; what it says already is not asked again."""
    open_ = [name for name in _ABOUT if not getattr(plan.about, name)]
    if open_:
        say("Describe the release, for its data card and evidence. Enter leaves an answer open.")
    answers: dict[str, Any] = {name: _prompt_text(_ABOUT[name]) for name in open_}
    if "recipients" in answers:
        several = answers.pop("recipients").split(";")
        answers["recipients"] = tuple(filter(None, map(str.strip, several)))
    return replace(plan, about=replace(plan.about, **answers))


def _prompt_text(question: str) -> str:
    answer: str = click.prompt(f"  {question}", default="", show_default=False, err=True)
    return answer.strip()


def _ask_one(summary: Summary) -> tuple[str, str]:
    """Ask about one column: its role, and whose word that is."""
    from sfumato.releasing.prepare import ACCEPTED, ANSWERED, GUESSED

    proposed = summary.column.role or _SAFE
    say(_question(summary))
    answer = _answer(proposed)
    if answer is not None:
        return answer.value, ANSWERED
    reason = f"; {GUESSED}: {summary.guess.role_reason}" if summary.column.role else ""
    return proposed.value, f"{ACCEPTED}{reason}"


@contextmanager
def _compiling() -> Iterator[None]:
    """Compile in another process while a person thinks; what is compiled by then is kept."""
    words = [sys.executable, "-m", "sfumato", "doctor", "--warm", "--quiet"]
    unheard = subprocess.DEVNULL
    process = subprocess.Popen(words, stdin=unheard, stdout=unheard, stderr=unheard)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def _question(summary: Summary) -> str:
    """The column, what is known about it, and the roles by number."""
    related = f"; related to {quoted(summary.related)}" if summary.related else ""
    facts = f"{count_noun(summary.distinct, 'distinct value')}; {summary.guess.role_reason}{related}"
    choices = [f"{number} {ROLES[role][0]}" for number, role in _NUMBERS.items()]
    lines = ["  ".join(some) for some in (choices[:2], choices[2:5], choices[5:])]
    return "\n  ".join([f"Which role has `{summary.column.name}`? ({facts})", *lines])


def _answer(proposed: Role) -> Role | None:
    """The role that a person gives by number or name; None for Enter."""
    removed = ", removed" if proposed is Role.IDENTIFIER else ""
    while answer := _prompt_text(f"role [Enter = {proposed.value}{removed}; {_HELP} = help]"):
        if role := role_of(answer):
            return role
        if answer != _HELP:
            say(f"  `{answer}` is not a role")
        say("\n".join(f"  {number} {role.value:<10} {ROLES[role][1]}" for number, role in _NUMBERS.items()))
    return None


def role_of(answer: str) -> Role | None:
    """The role of a number, of a name or of a beginning that only one has; None if it is of none."""
    words, asked = {**_SYNONYMS, **{role.value: role for role in ROLES}}, answer.lower()
    meant = {role for word, role in words.items() if word.startswith(asked)}
    return _NUMBERS.get(asked) or words.get(asked) or (meant.pop() if len(meant) == 1 else None)
