"""Who is who in several releases of the same people, and what each release shows of them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from sfumato import kernels
from sfumato.data.evidence import Evidence
from sfumato.data.pseudonyms import keyed_numbers
from sfumato.data.schema import Role
from sfumato.data.table import Table
from sfumato.errors import DataError
from sfumato.kernels.arrays import Ints, Words

if TYPE_CHECKING:
    from sfumato.data.buckets import Buckets

#: The resource that holds the earlier releases of the same people.
SERIES = "series"

#: Whose a record is that is nobody's.
NOBODY = np.uint64(0)


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
                "the releases of a series must have a column that tells whose each record is, got: none",
                hint='declare its role in the plan: role = "person"',
            )
        if gone := int(table.missing(name).sum()):
            raise DataError(f"`{name}` must tell whose each record of a series is, got: {gone} missing")
        words = keyed_numbers(table.frame[name], self.keys[0])
        return np.where(words == NOBODY, np.uint64(1), words)

    def units(self, table: Table) -> Words:
        """Whose each record is, and which of theirs."""
        persons = self.persons(table)
        if not self.record:
            turns = occurrences(persons)
        elif self.record not in table.schema:
            raise DataError(f"`{self.record}` must tell the records of a person apart, got: no such column")
        else:
            turns = keyed_numbers(table.frame[self.record], self.keys[1]).view(np.int64)
        units = self.numbered(persons, turns)
        if self.record and (alike := len(units) - len(np.unique(units))):
            raise DataError(
                f"`{self.record}` must tell the records of a person apart, got: {alike} that it does not"
            )
        return units

    def numbered(self, persons: Words, turns: Ints) -> Words:
        """The number of a person's record by its turn; that of turn 0 is the person's own."""
        later = kernels.keyed.keyed_words(persons ^ turns.view(np.uint64), *_two_words(self.keys[1]))
        return np.where(turns == 0, persons, later)

    def households(self, table: Table, name: str, alone: Words) -> Words:
        """Which household each record is of; of one without a household its own number."""
        words = keyed_numbers(table.frame[name], self.keys[2])
        return np.where(table.missing(name), alone, words)


def _two_words(key: bytes) -> tuple[np.uint64, np.uint64]:
    first, second = np.frombuffer(key[:16], dtype=np.uint64)
    return first, second


def occurrences(persons: Words) -> Ints:
    """How many records of the same person stand before each."""
    order = np.argsort(persons, kind="stable")
    opens = np.ones(len(order), dtype=np.bool_)
    opens[1:] = persons[order][1:] != persons[order][:-1]
    firsts = np.maximum.accumulate(np.where(opens, np.arange(len(order)), 0))
    found = np.empty(len(order), dtype=np.int64)
    found[order] = np.arange(len(order)) - firsts
    return found


@dataclass(frozen=True, eq=False)
class Wave:
    """One release of a series: the table as it reads, what stands apart in it, and whose each record is.

    ``persons`` are the numbers that an `Identity` gives, 0 for a record that is nobody's; ``units`` tell the
    records of one person apart. ``original`` is what it was made of, where that is still at hand; it is
    ``keyed`` if people have the chance in it that they have in the others.
    """

    name: str
    reading: Table
    persons: Words
    units: Words
    buckets: Buckets | None = None
    original: Table | None = None
    keyed: bool = True

    @cached_property
    def order(self) -> Ints:
        """The records in the order of their units."""
        return np.argsort(self.units)

    @property
    def further(self) -> int:
        """How many records are of persons who have others."""
        there = np.sort(self.persons[self.persons != NOBODY])
        return int((there[1:] == there[:-1]).sum())

    def places_in(self, other: Wave) -> Ints:
        """Where each of its records stands in another release, −1 if it does not."""
        found = np.full(len(self.units), -1, dtype=np.int64)
        there = other.units[other.order]
        if len(there):
            wanted = self.units[self.order]  # in their order they are found much faster
            places = np.minimum(np.searchsorted(there, wanted), len(there) - 1)
            found[self.order] = np.where(
                (there[places] == wanted) & (wanted != NOBODY), other.order[places], -1
            )
        return found


@dataclass(frozen=True, eq=False)
class Waves:
    """The earlier releases of a series, the oldest first, and who is who in all of them."""

    identity: Identity
    earlier: tuple[Wave, ...] = ()

    @classmethod
    def of(cls, earlier: Sequence[Evidence], *, record: str = "") -> Waves:
        """Take releases beside their originals (``release.against(original)``), the oldest first."""
        identity = Identity.of(record=record)
        waves = [wave_of(each, identity, f"release {number}") for number, each in enumerate(earlier, start=1)]
        return cls(identity, tuple(waves))

    def now(self, evidence: Evidence) -> Wave:
        """The release that is judged, as one more of the series."""
        return evidence.remember("wave", lambda: wave_of(evidence, self.identity, "this release"))


def wave_of(evidence: Evidence, identity: Identity, name: str) -> Wave:
    """What a release shows, and whose its records are as the original says."""
    rows, reading = evidence.source_rows, evidence.protected
    if reading is None or rows is None:
        raise DataError(
            "a release of a series must tell its owner whose each record is, got: one that does not"
        )
    persons, units = (
        np.append(words, NOBODY)[rows]  # a source of −1 is nobody
        for words in (identity.persons(evidence.original), identity.units(evidence.original))
    )
    return Wave(name, reading, persons, units, evidence.buckets, evidence.original)
