"""What a person at a terminal is asked before a release: what open columns are, what to do, what it is."""

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
from sfumato.errors import quoted

if TYPE_CHECKING:
    from sfumato.data.guess.overview import Overview, Summary
    from sfumato.data.schema import Schema
    from sfumato.recipes.plan import Plan
    from sfumato.tuning.feasibility import Obstacle

#: Proposals that are less sure than this are asked about.
MIN_PROPOSAL_CONFIDENCE = 0.7
#: What is done with a column of which nobody says anything: it does not leave.
_SAFE = Role.IDENTIFIER
#: The roles as they are numbered, each with what it means.
MEANINGS = {
    Role.KEY: "others may know it: age, sex, town, job",
    Role.SENSITIVE: "people keep it to themselves: income, illness",
    Role.IDENTIFIER: "it may say who somebody is: left out",
    Role.PERSON: "the number of a person, who may have several records",
    Role.HOUSEHOLD: "the number of a household",
    Role.GROUP: "the number of something else that joins people: a school, a firm",
    Role.WEIGHT: "how many people of the population a record stands for",
    Role.OTHER: "nobody else knows it, and it harms nobody: stays as it is",
}
_HELP = "?"
#: What the owner is asked to say of the release, by what `sfumato.recipes.parts.About` calls it.
_ABOUT = {
    "title": "title",
    "purpose": "purpose: what it is given out for",
    "contact": "contact: whom to ask about it",
    "recipients": "recipients, with `;` between them",
}


def ask_roles(found: Overview) -> dict[str, tuple[str, str]]:
    """Ask for the roles that nothing or little speaks for; Enter takes what is proposed, or leaves it out.

    Gives the role of each column that was asked about, and whose word it is.
    """
    open_ = [
        each
        for each in found.columns
        if each.column.role is None or each.guess.confidence < MIN_PROPOSAL_CONFIDENCE
    ]
    if open_:
        say(_introduction(len(open_)))
    answers = {}
    with _compiling() if open_ else nullcontext():
        for summary in open_:
            answers[summary.column.name] = _ask_one(summary)
    return answers


def ask_matters(schema: Schema) -> tuple[str, ...]:
    """Ask which columns analysts need most; Enter: none more than another."""
    shown = [name for name in schema.said_of_people() if schema[name].importance == 1]
    say(f"Which columns do your analysts need most? Of these the search loses least: {quoted(shown)}")
    while True:
        answer = _prompt_text("names, with `,` between them; Enter: all alike")
        names = tuple(filter(None, map(str.strip, answer.split(","))))
        if strangers := [name for name in names if name not in shown]:
            say(f"  {quoted(strangers)} is none of them")
        else:
            return names


def ask_obstacles(found: Sequence[Obstacle]) -> tuple[str, ...]:
    """Ask what to do about what stands in the way: the columns to leave out; none to go on as it is.

    Enter leaves out what can never meet what is required, and else goes on.
    """
    final = [each for each in found if each.is_final]
    columns = tuple(dict.fromkeys(name for each in final or found for name in each.columns))
    if not columns:
        return ()
    leave = f"leave {quoted(columns, ' and ')} out"
    choices = [leave, "stop: nothing is released"] if final else ["go on as it is", leave]
    say("\n".join(f"  {number} {choice}" for number, choice in enumerate(choices, 1)))
    while (answer := _prompt_text(f"number; Enter: 1, {choices[0]}") or "1") not in {"1", "2"}:
        say(f"  `{answer}` is none of them")
    return columns if choices[int(answer) - 1] == leave else ()


def ask_about(plan: Plan) -> Plan:
    """The plan with what its owner says of the release; what it says already is not asked again."""
    open_ = [name for name in _ABOUT if not getattr(plan.about, name)]
    if open_:
        say("What is the release? Its data card and evidence say it. Enter: not stated.")
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


def _introduction(count: int) -> str:
    lines = [
        f"{'One column needs' if count == 1 else f'{count} columns need'} your word. What is it to others?"
    ]
    lines += [
        f"  {number} {role.value:<10} {what}" for number, (role, what) in enumerate(MEANINGS.items(), 1)
    ]
    return "\n".join(lines)


def _question(summary: Summary) -> str:
    related = f"; goes with {quoted(summary.related)}" if summary.related else ""
    return (
        f"`{summary.column.name}`: {summary.distinct} distinct values, {summary.guess.role_reason}{related}"
    )


def _answer(proposed: Role) -> Role | None:
    """The role that a person gives by number or name; None for Enter."""
    numbers = {str(number): role for number, role in enumerate(MEANINGS, 1)}
    known = {**numbers, **{role.value: role for role in MEANINGS}}
    left = ", left out" if proposed is Role.IDENTIFIER else ""
    while True:
        answer = _prompt_text(f"number or name; Enter: {proposed.value}{left}; {_HELP}: help")
        if not answer:
            return None
        if answer in known:
            return known[answer]
        if answer != _HELP:
            say(f"  `{answer}` is none of them")
        say("\n".join(f"  {number} {role.value:<10} {MEANINGS[role]}" for number, role in numbers.items()))
