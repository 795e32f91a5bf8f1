"""Finds the column that says whose records are whose: it repeats, and determines what stays with a person.

An area, a product or a department repeats too, and determines other columns, but never birth date and sex.
So a number is believed to be a person's where it (nearly) determines two columns that stay with a person;
with one of them, and two others that people may know, it is asked about. How far one column determines
another is told by `sfumato.data.relations.associations.determination`, here among the records whose number
repeats.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from sfumato.data.guess import words
from sfumato.data.guess.facts import MOST_SHARE, Facts, Guess
from sfumato.data.guess.role import are_sexes
from sfumato.data.relations.associations import NEARLY, determination
from sfumato.data.schema import Kind, Role
from sfumato.errors import count_noun, quoted
from sfumato.kernels.arrays import Ints

_FEWEST_PERSONS, _FEWEST_RECORDS = 20, 20  # with a number that repeats, below which nothing is said
_MOST_RECORDS_EACH = 200  # a number that repeats more often is that of a place or a thing
_RECORDS = 50_000  # looked at
_TRAITS, _OTHERS_BESIDE_ONE = 2, 2
_EXACTLY, _DOUBTFUL = 0.9999, 0.65
_NAMED = 5
_MEMBERS_AT_MOST = 30  # numbers within a household


class PersonNumber(NamedTuple):
    """A column that numbers persons, why, how sure that is, and how well the name fits."""

    name: str
    reason: str
    confidence: float
    rank: tuple[bool, float, int]


def find_person_number(facts: Sequence[Facts], guesses: Sequence[Guess]) -> PersonNumber | None:
    """Find the column whose values are those of persons with several records, if any is."""
    columns = list(zip(facts, guesses, strict=True))
    traits = [each.series for each, proposal in columns if _stays(each, proposal)]
    if not traits:
        return None
    keys = [each.series for each, proposal in columns if proposal.column.role is Role.KEY]
    others = [series for series in keys if series.name not in {trait.name for trait in traits}]
    found = [
        number
        for each, proposal in columns
        if _may_number(each, proposal) and (number := _numbering(each, proposal, traits, others)) is not None
    ]
    return max(found, key=lambda number: number.rank, default=None)


def _stays(facts: Facts, proposal: Guess) -> bool:
    """Whether a column stays with a person: birth date, sex, name."""
    if facts.series.dtype.is_nested() or facts.distinct < 2:  # noqa: PLR2004
        return False
    named = facts.concepts[0].trait if facts.concepts else False
    return named or are_sexes(facts) or "names of persons" in proposal.role_reason


def _may_number(facts: Facts, proposal: Guess) -> bool:
    """Whether a column could number persons: whole numbers or words of one piece that repeat a few times."""
    role, kind = proposal.column.role, proposal.column.kind
    if role not in (None, Role.IDENTIFIER, Role.PERSON) or kind not in (Kind.CONTINUOUS, Kind.NOMINAL):
        return False
    if facts.name_contains(words.THINGS) or not (
        facts.whole or (facts.textual and facts.share(r"\s") < 1 - MOST_SHARE)
    ):
        return False
    repeated = len(facts.present) - facts.distinct
    return facts.distinct >= _FEWEST_PERSONS and 0 < repeated <= _MOST_RECORDS_EACH * facts.distinct


def _numbering(
    facts: Facts, proposal: Guess, traits: Sequence[pl.Series], others: Sequence[pl.Series]
) -> PersonNumber | None:
    rows = facts.series.is_duplicated() & facts.series.is_not_null()
    if facts.blanks:
        rows &= facts.series.str.strip_chars() != ""
    if codes := [code for code in proposal.column.missing if isinstance(code, str) == facts.textual]:
        rows &= ~facts.series.is_in(codes)
    part = max(1, int(rows.sum()) // _RECORDS)  # of many records those of some persons, and all of theirs
    chosen = (rows & (facts.series.hash() % part == 0)).arg_true()
    if len(chosen) < _FEWEST_RECORDS:
        return None
    numbers = _codes(facts.series.gather(chosen))

    def determined_columns(columns: Sequence[pl.Series]) -> Mapping[str, float]:
        beside = (column for column in columns if column.name != facts.series.name)
        shares = {each.name: _determination_share(numbers, each.gather(chosen)) for each in beside}
        return {name: share for name, share in shares.items() if share >= NEARLY}

    personal, further = determined_columns(traits), determined_columns(others)
    if len(personal) < _TRAITS and not (personal and len(further) >= _OTHERS_BESIDE_ONE):
        return None
    exact = min(personal.values()) >= _EXACTLY
    named = quoted([*personal, *further][:_NAMED])
    reason = f"it repeats, and {'' if exact else 'nearly '}determines {named}: a person's number"
    plausible = proposal.column.role is Role.PERSON or facts.name_contains(words.NUMBERS)
    rank = (plausible or proposal.column.role is None, min(personal.values()), facts.distinct)
    sure = (0.95 if exact else 0.85) if len(personal) >= _TRAITS else _DOUBTFUL
    return PersonNumber(facts.series.name, reason, sure, rank)


def _codes(values: pl.Series) -> Ints:
    """Equal values as equal numbers from 0, −1 where there is none."""
    if values.dtype.is_float():
        values = values.fill_nan(None)
    _, codes = np.unique(values.hash().to_numpy(), return_inverse=True)
    codes = np.where(values.is_null().to_numpy(), -1, codes)
    _, dense = np.unique(codes, return_inverse=True)
    return dense.astype(np.int64) - int((codes == -1).any())


def _determination_share(numbers: Ints, values: pl.Series) -> float:
    return determination(numbers, _codes(values), least=_FEWEST_RECORDS)[0]


def find_member_number(facts: Sequence[Facts], guesses: Sequence[Guess]) -> tuple[str, str] | None:
    """Find the column that numbers the persons within a household, and the household's."""
    household = next((each.column.name for each in guesses if each.column.role is Role.HOUSEHOLD), None)
    if household is None:
        return None
    of = next(each.series for each in facts if each.series.name == household)
    for each, proposal in zip(facts, guesses, strict=True):
        small = each.whole and 1 < each.distinct <= _MEMBERS_AT_MOST and len(each.present) == len(of)
        if not small or proposal.column.role not in (None, Role.IDENTIFIER):
            continue
        if pl.DataFrame([of, each.series]).is_unique().all() and each.values.min() in (0, 1):
            return each.series.name, household
    return None


def in_records(fewest: int, most: int) -> str:
    """How many records persons have, in words: 3 records each, 1 to 7 records each."""
    if fewest == most:
        return f"{count_noun(most, 'record')} each"
    return f"{fewest} to {most} records each"
