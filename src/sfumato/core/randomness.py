"""Where chance comes from: keyed by place from one seed, and in a series of releases by person."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self, cast

import numpy as np

from sfumato.core.person_generator import Changing, PersonGenerator
from sfumato.data.series import Course, Identity
from sfumato.data.strata import Stratum, label_of
from sfumato.data.table import Table
from sfumato.engines.parcel import Secret, StaysHereError
from sfumato.errors import ParameterError
from sfumato.kernels.arrays import Flags, Ints, Words

SEED_BITS = 128
#: A given seed of fewer bits is found by trying.
_GUESSABLE_BITS = 64

#: What a place is named by; a table stands for its fingerprint, which is found when somebody draws there.
Label = str | int | np.integer | bytes | Table


@dataclass(frozen=True)
class RandomKey:
    """The chance of one named place: what work that travels to another process or machine is given.

    ``key`` is derived from the seed by keyed BLAKE2, name by name. Who has it can draw what this place and
    those below it draw, but finds neither the seed nor the key of any other place. A `SeedSequence` alone
    would not do: its mixing can be run backwards.

    In a series of releases ``people`` are whose the records are that are drawn for: each has draws of its
    own, whatever other records there are. ``course`` says how far their amounts move over all releases, and
    ``changing`` what a draw depends on beside the person.
    """

    key: bytes = field(repr=False)
    people: Words | None = field(default=None, repr=False, compare=False)
    course: Course = field(default_factory=Course, repr=False)
    changing: Changing | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", Secret(self.key))

    def at(self, *labels: Label) -> RandomKey:
        """Enter a named place; streams drawn there differ from those of every other place."""
        key: bytes = self.key
        for label in labels:  # with its type: the column "1" and the block 1 are different places
            if isinstance(label, bytes | Table):
                name = b"b:" + (label.digest if isinstance(label, Table) else label)
            else:
                name = (f"i:{int(label)}" if isinstance(label, int | np.integer) else f"s:{label}").encode()
            key = hashlib.blake2b(name, digest_size=32, key=key, person=b"place").digest()
        return replace(self, key=key)

    def with_values(self, names: Sequence[str], values: Callable[[], Words]) -> RandomKey:
        """The chance of records with these values in some columns: in a series it changes a little with them.

        Noise that stays the same while amounts move by a known share is gone in a difference.
        """
        if self.people is None:
            return self
        return replace(self, changing=Changing(values(), self.course.own_share(names)))

    def subset(self, rows: Ints | Flags | slice) -> RandomKey:
        """The chance of some of the records, which in a series is what they have among all."""
        return self if self.people is None else replace(self, people=self.people[rows])

    def rng(self, *labels: Label) -> np.random.Generator:
        """Give the stream of chance of a named place: the same names give the same numbers."""
        if self.people is not None:
            return cast(
                "np.random.Generator", PersonGenerator(self.at(*labels).key, self.people, self.changing)
            )
        drawn = hashlib.blake2b(digest_size=32, key=self.at(*labels).key, person=b"numbers").digest()
        sequence = np.random.SeedSequence(int.from_bytes(drawn, "little"))
        return np.random.Generator(np.random.PCG64DXSM(sequence))


@dataclass(frozen=True)
class ByPlace:
    """Chance that is keyed by a seed and the place where it is drawn: the table, the step, the stratum.

    ``seed`` is secret: who knows it can undo the noise. It is never shown by ``repr``, and stays in its
    process: work that travels takes a `RandomKey` along. It ``is_given`` by somebody, or drawn by the
    operating system. ``person_seed`` keys what stands for persons; without one, in a study of which nothing
    leaves, the seed does.
    """

    seed: int = field(repr=False)
    place: tuple[Label, ...] = ()
    is_given: bool = True
    person_seed: int | None = field(default=None, repr=False)

    @classmethod
    def from_system(cls) -> ByPlace:
        """Chance of a seed that the operating system draws."""
        return cls(secrets.randbits(SEED_BITS), is_given=False)

    def of_data(self, digest: bytes) -> ByPlace:
        """Chance for a search of which nothing leaves: of the data, so that it comes to the same each time.

        A seed that somebody gave is kept.
        """
        if self.is_given:
            return self
        key = hashlib.blake2b(digest, digest_size=SEED_BITS // 8, person=b"search")
        return replace(self, seed=int.from_bytes(key.digest(), "big"), person_seed=None)

    def __post_init__(self) -> None:
        for seed in (self.seed, self.seed_of_persons):
            whole = isinstance(seed, int | np.integer) and not isinstance(seed, bool)
            if not whole or not 0 <= seed < 2**SEED_BITS:
                raise ParameterError(
                    f"`seed` must be a whole number from 0 to 2^{SEED_BITS} − 1, got another"
                )
        object.__setattr__(self, "seed", int(self.seed))

    def __reduce__(self) -> Any:
        """Refuse to be pickled, as every engine that sends work elsewhere would do."""
        raise TypeError(
            "a run must stay in its process, for it knows the seed: send `run.random_key(...)` along"
        )

    def carried(self) -> CarriedChance:
        """The same chance for long work that travels: the seed stays."""
        place = (label.digest if isinstance(label, Table) else label for label in self.place)
        return CarriedChance(-1, tuple(place), root=_root_key(self.secret))

    @property
    def secret(self) -> bytes:
        """The seed as a key: what is derived from it can be made again by who has the private half."""
        return _as_key(self.seed)

    @property
    def is_guessable(self) -> bool:
        """Whether the seed can be found by trying: somebody gave it, and it is small."""
        return self.is_given and self.seed < 2**_GUESSABLE_BITS

    @property
    def person_secret(self) -> bytes:
        """The key of what stands for persons: of pseudonyms that have none of their own."""
        return _as_key(self.seed_of_persons)

    @property
    def series_secret(self) -> bytes:
        """The secret of the series that begins with this release."""
        return series_secret(self.seed_of_persons)

    @property
    def seed_of_persons(self) -> int:
        """What keys those who stand in the release."""
        return self.seed if self.person_seed is None else self.person_seed

    @property
    def identity(self) -> Identity:
        """Who is who in all releases of the series that begins with this one."""
        return Identity.of(self.series_secret)

    @property
    def is_by_person(self) -> bool:
        """Whether what is drawn here is keyed by the persons whose records are protected."""
        return False

    def at(self, *labels: Label) -> Self:
        """Enter a named place; streams drawn there differ from those of every other place."""
        return replace(self, place=(*self.place, *labels))

    def at_root(self) -> Self:
        """Leave every place."""
        return replace(self, place=())

    def for_release(self) -> Self:
        """The same, persons keyed by the operating system: who finds a given seed finds nobody by it."""
        if self.person_seed is not None:  # a trail says what it was
            return self
        return replace(self, person_seed=secrets.randbits(SEED_BITS))

    def outside_tables(self) -> Self:
        """Leave the table: chance there is the same for all tables of a plan."""
        inside = (
            i for i, label in enumerate(self.place) if isinstance(label, bytes | Table) or label == "table"
        )
        return replace(self, place=self.place[: next(inside, len(self.place))])

    def enter_table(self, table: Table) -> Self:
        """Enter a table: chance is keyed by what is in it; in a series, by whose its records are."""
        return self.at(table)

    def enter_step(self, number: int, name: str, identity: str) -> Self:  # noqa: ARG002  — of a series
        """Enter a step; in a series the step is known by its ``identity``, whatever its number."""
        return self.at("step", number, name)

    def enter_stratum(self, stratum: Stratum, rows: Ints) -> Self:  # noqa: ARG002  — of a series
        """Enter a stratum; in a series who changes over to another keeps their chance."""
        return self.at("stratum", label_of(stratum))

    def subset(self, rows: Ints) -> Self:  # noqa: ARG002  — of a series
        """Chance for some of the records; outside of a series it is the same."""
        return self

    def per_household(self, table: Table, name: str, rows: Ints) -> Self:  # noqa: ARG002  — of a series
        """Chance for one record of each household; in a series it is the household's."""
        return self

    def fresh(self, table: Table) -> Self:  # noqa: ARG002  — of a series
        """Chance that is this release's alone, for what is drawn for no one person."""
        return self

    def previous_fit(self, name: str) -> Table | None:  # noqa: ARG002  — of a series
        """What the same step confided in an earlier release of the series, by its name."""
        return None

    def key(self, *labels: Label) -> RandomKey:
        """Give the chance of a named place, for work that is done elsewhere."""
        return _root_key(self.secret).at(*self.place, *labels)

    def block_key(self, index: int, rows: slice) -> RandomKey:  # noqa: ARG002  — of a series
        """Give the chance of a block of records; in a series blocks are no places."""
        return self.key("block", index)


def _as_key(seed: int) -> bytes:
    return seed.to_bytes(SEED_BITS // 8, "little")


def _root_key(secret: bytes) -> RandomKey:
    return RandomKey(hashlib.blake2b(digest_size=32, key=secret, person=b"chance").digest())


@dataclass(frozen=True)
class CarriedChance(ByPlace):
    """Chance that has travelled: what is drawn at a place is drawn there, and nobody finds the seed.

    The ``root`` is a secret: it travels in messages and lies in no file.
    """

    root: RandomKey = field(kw_only=True, repr=False)

    def __post_init__(self) -> None:
        """There is no seed to check."""

    def __reduce__(self) -> Any:
        """Be pickled, as no chance with a seed may be."""
        return _carried_chance, (self.place, self.root)

    @property
    def secret(self) -> bytes:
        """Stayed where it was."""
        raise StaysHereError

    @property
    def seed_of_persons(self) -> int:
        """Stayed where it was."""
        raise StaysHereError

    def key(self, *labels: Label) -> RandomKey:
        """Give the chance of a named place."""
        return self.root.at(*self.place, *labels)


def _carried_chance(place: tuple[Label, ...], root: RandomKey) -> CarriedChance:
    return CarriedChance(-1, place, root=root)


@dataclass(frozen=True)
class Series:
    """What the releases of a series have in common, known to their owner alone.

    The ``secret`` keys the chance of every person and column. ``record`` names the column that tells the
    records of one person apart, where there are several; ``course`` says how far amounts are known to move.
    ``previous_fits`` are the tables that steps of earlier releases confided, by the identity of the step and
    the stratum.
    """

    secret: bytes = field(repr=False)
    record: str = ""
    course: Course = field(default_factory=Course)
    previous_fits: Mapping[tuple[str, Stratum], Mapping[str, Table]] = field(default_factory=dict, repr=False)

    @cached_property
    def identity(self) -> Identity:
        """Who is who in all releases."""
        return Identity.of(self.secret, self.record)


def series_secret(seed: int) -> bytes:
    """The secret of the series that begins with a release whose persons have this seed."""
    return hashlib.blake2b(digest_size=32, key=_as_key(seed), person=b"series").digest()


@dataclass(frozen=True)
class ByPerson(ByPlace):
    """Chance of a release in a series: that of methods is keyed by the people whose records they protect.

    ``people`` are those of the table that was entered, in a ``step`` and ``stratum`` of which earlier
    releases may have confided something. Where nobody is entered, chance is keyed by seed and place.
    """

    series: Series = field(kw_only=True, repr=False)
    people: Words | None = field(default=None, repr=False, compare=False)
    step: str = field(default="", repr=False)
    stratum: Stratum = field(default=(), repr=False)

    def carried(self) -> CarriedChance:
        """Refuse: the chance of persons is a secret of the whole series."""
        raise StaysHereError

    @property
    def identity(self) -> Identity:
        """Who is who in all releases of the series."""
        return self.series.identity

    @property
    def is_by_person(self) -> bool:
        """Whether what is drawn here is keyed by the persons whose records are protected."""
        return self.people is not None

    def enter_table(self, table: Table) -> Self:
        """Enter a table: chance is keyed by whose its records are."""
        return replace(self, people=self.identity.units(table))

    def enter_step(self, number: int, name: str, identity: str) -> Self:  # noqa: ARG002  — wherever it stands
        """Enter a step, known by its identity in all releases."""
        return replace(self.at("step", identity), step=identity)

    def enter_stratum(self, stratum: Stratum, rows: Ints) -> Self:
        """Enter a stratum; who changes over to another keeps their chance."""
        if self.people is None:
            return super().enter_stratum(stratum, rows)
        return replace(self, people=self.people[rows], stratum=stratum)

    def subset(self, rows: Ints) -> Self:
        """Chance for some of the records."""
        return self if self.people is None else replace(self, people=self.people[rows])

    def per_household(self, table: Table, name: str, rows: Ints) -> Self:
        """Chance for one record of each household: it is the household's."""
        if self.people is None:
            return self
        return replace(self, people=self.identity.households(table, name, self.people)[rows])

    def fresh(self, table: Table) -> Self:
        """Chance that is this release's alone, for what is drawn for no one person."""
        return self if self.people is None else replace(self, people=None).at(table)

    def previous_fit(self, name: str) -> Table | None:
        """What the same step confided in an earlier release of the series, by its name."""
        return self.series.previous_fits.get((self.step, self.stratum), {}).get(name)

    def key(self, *labels: Label) -> RandomKey:
        """Give the chance of a named place, for work that is done elsewhere."""
        if self.people is None:
            return super().key(*labels)
        key = _root_key(self.series.secret).at(*self.place, *labels)
        return replace(key, people=self.people, course=self.series.course)

    def block_key(self, index: int, rows: slice) -> RandomKey:
        """Give the chance of a block of records: that of its people."""
        return super().block_key(index, rows) if self.people is None else self.key().subset(rows)
