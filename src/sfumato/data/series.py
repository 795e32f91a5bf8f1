"""Who is who in several releases of the same people."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from sfumato import kernels
from sfumato.data.pseudonyms import keyed_numbers
from sfumato.data.schema import Role
from sfumato.data.table import Table
from sfumato.errors import DataError, count_noun
from sfumato.kernels.arrays import Ints, Words

#: Whose a record is that is nobody's.
NOBODY = np.uint64(0)
#: How many releases a series is made for, and how far amounts move over all of them, where nobody says.
RELEASES, USUAL_MOVE = 10, 0.1


@dataclass(frozen=True)
class Course:
    r"""For how many releases a series is made, and by which share amounts are known to move over all of them.

    Who knows that everybody's amounts move by a share :math:`d` over :math:`T` releases takes the difference
    of two, and noise that stays the same is gone; who has noise that is new each time takes the mean. So
    noise has a part that stays with the person and a part that changes with the value,

    .. math::

        e_t = \sqrt{\varrho}\,e(\text{person}) + \sqrt{1 - \varrho}\,e(\text{person}, x_t)

    and all releases tell, in units of what one does at the mean level, :math:`1/(\varrho + (1 - \varrho)/T)`
    of the level and :math:`\sum_t (c_t - \bar c)^2/(1 - \varrho)` of the course. The share taken makes the
    sum least: for an even course it is :math:`(1 + d\sqrt{(T + 1)/12})^2`.
    """

    releases: int = RELEASES
    moves: Mapping[str, float] = field(default_factory=dict)

    def move(self, names: Sequence[str]) -> float:
        """By which share of their mean level the amounts move, in the column where they do most."""
        farthest = max((self.moves.get(name, USUAL_MOVE) for name in names), key=abs, default=0.0)
        return abs(farthest) / (1 + farthest / 2)

    def own_share(self, names: Sequence[str]) -> float:
        """Which share of the variance of noise stays with the person."""
        turns = max(self.releases, 2)
        course = self.move(names) * np.sqrt(turns * (turns + 1) / (12 * (turns - 1)))
        level = (turns - 1) / turns
        return float(1 - min(course / (np.sqrt(level) + level * course), 1.0))

    def gain(self, names: Sequence[str]) -> float:
        """How much all releases tell of an amount, in units of what one does."""
        return float((1 + self.move(names) * np.sqrt((max(self.releases, 2) + 1) / 12)) ** 2)


@dataclass(frozen=True)
class Identity:
    """Gives persons and their records the same numbers in every table, by keys that only the owner has.

    ``record`` names the column that tells the records of one person apart; without one they are told by their
    order.
    """

    keys: tuple[bytes, ...] = field(repr=False)  # of persons, records and households
    record: str = ""

    @classmethod
    def of(cls, secret: bytes = b"", record: str = "") -> Identity:
        """Derive the keys of a secret."""
        keys = (
            hashlib.blake2b(name, key=secret, digest_size=32, person=b"series").digest()
            for name in (b"persons", b"records", b"households")
        )
        return cls(tuple(keys), record)

    def persons(self, table: Table, name: str = "") -> Words:
        """Whose each record is, by the column of persons."""
        name = name or table.schema.only_role(Role.PERSON) or ""
        if name not in table.schema:
            raise DataError(
                "the releases of a series need a column of person numbers, and there is none",
                hint='declare its role in the plan: role = "person"',
            )
        if gone := int(table.missing(name).sum()):
            raise DataError(
                f"the person number `{name}` is missing in {count_noun(gone, 'record')} of the series"
            )
        words = keyed_numbers(table.frame[name], self.keys[0])
        return np.where(words == NOBODY, np.uint64(1), words)

    def units(self, table: Table) -> Words:
        """Whose each record is, and which of theirs."""
        persons = self.persons(table)
        if not self.record:
            turns = occurrences(persons)
        elif self.record not in table.schema:
            raise DataError(f"there is no column `{self.record}` to distinguish the records of a person")
        else:
            turns = keyed_numbers(table.frame[self.record], self.keys[1]).view(np.int64)
        units = self.record_numbers(persons, turns)
        if self.record and (alike := len(units) - len(np.unique(units))):
            number = count_noun(alike, "record")
            raise DataError(f"`{self.record}` does not distinguish {number} from another of the same person")
        return units

    def record_numbers(self, persons: Words, turns: Ints) -> Words:
        """The number of a person's record by its turn; that of turn 0 is the person's own."""
        later = kernels.siphash.keyed_words(persons ^ turns.view(np.uint64), *_two_words(self.keys[1]))
        return np.where(turns == 0, persons, later)

    def households(self, table: Table, name: str, alone: Words) -> Words:
        """Which household each record is of; of one without a household its own number."""
        words = keyed_numbers(table.frame[name], self.keys[2])
        return np.where(table.missing(name), alone, words)


def _two_words(key: bytes) -> tuple[np.uint64, np.uint64]:
    first, second = np.frombuffer(key[:16], dtype=np.uint64)
    return first, second


def occurrences(persons: Words | Ints) -> Ints:
    """How many records of the same person, or of the same code, stand before each."""
    order = np.argsort(persons, kind="stable")
    opens = np.ones(len(order), dtype=np.bool_)
    opens[1:] = persons[order][1:] != persons[order][:-1]
    firsts = np.maximum.accumulate(np.where(opens, np.arange(len(order)), 0))
    found = np.empty(len(order), dtype=np.int64)
    found[order] = np.arange(len(order)) - firsts
    return found
