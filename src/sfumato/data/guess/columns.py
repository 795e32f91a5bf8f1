"""Proposes what each column is, with the reason and how sure it is; a person decides.

A *sign* is a small function that looks at the facts of one column and speaks or stays silent. Signs of the
kind stand in `sfumato.data.guess.kind`, signs of the role in `sfumato.data.guess.role`; which columns tell
the same story is found in `sfumato.data.relations.associations`. No reason ever holds a value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import polars as pl

from sfumato.data.column_store import count_values
from sfumato.data.guess.facts import Facts, Guess, KindSign, normalise_name
from sfumato.data.guess.kind import generalised_form, kind_of
from sfumato.data.guess.person_numbers import PersonNumber, find_member_number, find_person_number
from sfumato.data.guess.role import UNDECIDED, role_of
from sfumato.data.relations.associations import RelatedColumns, find_related
from sfumato.data.schema import SINGLE_ROLES, Column, Kind, Role, Schema
from sfumato.data.table import Table

__all__ = [
    "UNDECIDED",
    "FileFacts",
    "Guess",
    "RelatedColumns",
    "generalised_form",
    "guess",
    "guess_columns",
    "guess_related",
    "guess_schema",
    "is_shared_key",
    "normalise_name",
]

#: What a file itself says of its columns: facts as `Column` takes them, by the column's name.
FileFacts = Mapping[str, Mapping[str, Any]]


def guess(frame: pl.DataFrame, file_facts: FileFacts | None = None) -> tuple[Guess, ...]:
    """Propose a kind and a role for each column, each with its reason; what the file told is taken over."""
    file_facts = file_facts or {}
    facts = [Facts(series) for series in frame]
    guesses = [_guess_one(each, file_facts.get(each.series.name, {})) for each in facts]
    declared = {name for name, payload in file_facts.items() if "role" in payload}
    return _one_of_each(_with_persons(facts, guesses, declared))


def guess_columns(table: Table) -> tuple[Guess, ...]:
    """The same of a table, which remembers it for each of its columns."""
    facts = [Facts(series) for series in table.frame]
    guesses = [table.remember(each.series.name, "guess", partial(_guess_one, each, {})) for each in facts]
    return _one_of_each(_with_persons(facts, guesses, set()))


def is_shared_key(table: Table, column: Column) -> bool:
    """Whether only the name of a key speaks of an identifier, and several records share each value."""
    shown = table.frame.select(pl.col(column.name).alias("column"))
    (by_values,) = guess(shown)
    if column.role is not Role.KEY or by_values.column.role is Role.IDENTIFIER:
        return False
    shares = count_values(shown["column"].drop_nulls())["n"]
    return len(shares) > 0 and int(shares.min()) > 1  # type: ignore[arg-type]


def guess_related(frame: pl.DataFrame, guesses: Iterable[Guess]) -> tuple[RelatedColumns, ...]:
    """Propose which columns tell the same story, each group with its reason."""
    return find_related(frame, [proposal.column for proposal in guesses])


def guess_schema(frame: pl.DataFrame, file_facts: FileFacts | None = None) -> Schema:
    """Propose a schema; a column for whose role nothing speaks has none, which blocks a release."""
    guesses = guess(frame, file_facts)
    related = tuple(relation.columns for relation in guess_related(frame, guesses))
    return Schema(tuple(proposal.column for proposal in guesses), related=related)


def _guess_one(facts: Facts, file_facts: Mapping[str, Any]) -> Guess:
    kind = kind_of(facts)
    if "kind" not in file_facts and _every_value_has_label(
        facts, file_facts.get("labels", ()), kind.facts.get("missing", ())
    ):
        kind = KindSign(Kind.NOMINAL, "the file has a label for each value", 0.9)
    role = role_of(facts, kind.kind)
    if role.role is Role.WEIGHT and kind.kind is not Kind.CONTINUOUS:
        kind = KindSign(Kind.CONTINUOUS, "a weight is a quantity", role.confidence)
    if role.names and kind.kind is Kind.CONTINUOUS:
        missing = {"missing": kind.facts.get("missing", ())}
        kind = KindSign(Kind.NOMINAL, "numbers with check digits name something", role.confidence, missing)
    column = Column(facts.series.name, kind.kind, role.role, **kind.facts)
    guessed = Guess(column, kind.reason, role.reason, min(kind.confidence, role.confidence))
    return _apply_file_facts(guessed, file_facts) if file_facts else guessed


def _every_value_has_label(facts: Facts, labels: Sequence[tuple[Any, str]], missing: Sequence[Any]) -> bool:
    """Whether each value that is there has a label: then numbers are codes, however they look."""
    if not 0 < facts.distinct <= len(labels) + len(missing) or not labels:
        return False
    known = {str(value) for value, _ in labels} | {str(code) for code in missing}
    known |= {str(int(value)) for value, _ in labels if isinstance(value, float) and value.is_integer()}
    return known >= set(facts.sample)


def _apply_file_facts(guessed: Guess, file_facts: Mapping[str, Any]) -> Guess:
    """Put what the file says of a column in the place of what was guessed."""
    payload, reason = guessed.column.to_dict(), guessed.role_reason
    if file_facts.get("kind", payload["kind"]) != payload["kind"]:  # facts of another kind go with it
        payload = {key: payload[key] for key in ("kind", "role", "label") if key in payload}
        if payload.get("role") == Role.WEIGHT:
            del payload["role"]
            reason = "the name suggests a weight, but the file says it is none: choose a role"
    column = Column.from_dict(guessed.column.name, {**payload, **file_facts})
    confidence = guessed.confidence if column.role else 0.0
    kind_reason = "the file says so" if "kind" in file_facts else guessed.kind_reason
    return replace(guessed, column=column, kind_reason=kind_reason, role_reason=reason, confidence=confidence)


def _with_persons(facts: Sequence[Facts], guesses: Sequence[Guess], declared: set[str]) -> list[Guess]:
    """Propose the column that numbers persons, and the one that numbers them within a household."""
    found = {each.column.name: each for each in guesses}
    person = find_person_number(facts, guesses)
    if person is not None and person.name not in declared:
        found[person.name] = _as_number(found[person.name], person)
    member = find_member_number(facts, list(found.values()))
    if member is not None and member[0] not in declared:
        name, household = member
        reason = f"it numbers the persons within `{household}`, which others may know"
        column = replace(found[name].column, role=Role.KEY)
        found[name] = replace(found[name], column=column, role_reason=reason, confidence=0.6)
    return list(found.values())


def _as_number(guessed: Guess, person: PersonNumber) -> Guess:
    column, kind_reason = replace(guessed.column, role=Role.PERSON), guessed.kind_reason
    if column.kind is Kind.CONTINUOUS:
        column = replace(column, kind=Kind.NOMINAL, integer=False, lower=None, upper=None)
        kind_reason = "numbers that name persons"
    return Guess(column, kind_reason, person.reason, person.confidence)


def _one_of_each(proposals: Iterable[Guess]) -> tuple[Guess, ...]:
    """Leave each of the roles that only one column may have to the surest."""
    found = list(proposals)
    for role in SINGLE_ROLES:
        holders = [place for place, one in enumerate(found) if one.column.role is role]
        for place in sorted(holders, key=lambda place: -found[place].confidence)[1:]:
            reason = f"another column is more likely the {role}: choose a role"
            column = replace(found[place].column, role=None)
            found[place] = replace(found[place], column=column, role_reason=reason, confidence=0.0)
    return tuple(found)
