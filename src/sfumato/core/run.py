"""One run: where its chance comes from, whom it tells of its progress, and how it is stopped."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from sfumato.core.draws import PersonalDraws
from sfumato.core.params import Resource
from sfumato.data.strata import Stratum, label_of
from sfumato.data.table import Table
from sfumato.engines.memory import Engine, Memory
from sfumato.errors import Cancelled, ParameterError, UnknownNameError
from sfumato.kernels.arrays import Flags, Ints, Words

if TYPE_CHECKING:
    from sfumato.core.series import Series

A = TypeVar("A")

SEED_BITS = 128

Label = str | int | np.integer | bytes


@dataclass(frozen=True, slots=True)
class Progress:
    """One event: how far a piece of work has come. ``total`` 0 means that nobody knows yet."""

    task: str
    done: int
    total: int
    note: str = ""


def quiet(_event: Progress) -> None:
    """Tell nobody: the library's default."""


def never() -> bool:
    """Never stop: the library's default."""
    return False


@dataclass(frozen=True)
class Chance:
    """The chance of one named place: what work that travels to another process or machine is given.

    ``key`` is derived from the seed by keyed BLAKE2, name by name. Who has it can draw what this place and
    those below it draw, but finds neither the seed nor the key of any other place. A `SeedSequence` alone
    would not do: its mixing can be run backwards.

    In a series of releases ``people`` are whose the records are that are drawn for: each has draws of its
    own, whatever other records there are.
    """

    key: bytes = field(repr=False)
    people: Words | None = field(default=None, repr=False, compare=False)

    def at(self, *labels: Label) -> Chance:
        """Enter a named place; streams drawn there differ from those of every other place."""
        key = self.key
        for label in labels:
            key = hashlib.blake2b(_named(label), digest_size=32, key=key, person=b"place").digest()
        return replace(self, key=key)

    def among(self, rows: Ints | Flags | slice) -> Chance:
        """The chance of some of the records, which in a series is what they have among all."""
        return self if self.people is None else replace(self, people=self.people[rows])

    def rng(self, *labels: Label) -> np.random.Generator:
        """Give the stream of chance of a named place: the same names give the same numbers."""
        if self.people is not None:
            return cast("np.random.Generator", PersonalDraws(self.at(*labels).key, self.people))
        drawn = hashlib.blake2b(digest_size=32, key=self.at(*labels).key, person=b"numbers").digest()
        sequence = np.random.SeedSequence(int.from_bytes(drawn, "little"))
        return np.random.Generator(np.random.PCG64DXSM(sequence))


def _named(label: Label) -> bytes:
    """Say what sort a label is, so that the column "1" and the block 1 are different places."""
    if isinstance(label, bytes):
        return b"b:" + label
    return (f"i:{int(label)}" if isinstance(label, int | np.integer) else f"s:{label}").encode()


@dataclass(frozen=True)
class Run:
    """Everything a method or measure may use besides the data.

    ``seed`` is secret: who knows it can undo the noise. It is never shown by ``repr``, and a run stays in its
    process: work that travels takes `chance` along.

    In a ``series`` of releases the chance of methods is keyed by the ``people`` whose records they protect in
    place of the table, in a ``step`` and ``stratum`` that earlier releases may have confided something of.
    """

    seed: int = field(default_factory=lambda: secrets.randbits(SEED_BITS), repr=False)
    engine: Engine = field(default_factory=Memory)
    report: Callable[[Progress], None] = quiet
    stopped: Callable[[], bool] = never
    resources: Mapping[str, Any] = field(default_factory=dict, repr=False)
    place: tuple[Label, ...] = ()
    series: Series | None = field(default=None, repr=False)
    people: Words | None = field(default=None, repr=False, compare=False)
    step: str = field(default="", repr=False)
    stratum: Stratum = field(default=(), repr=False)

    def __post_init__(self) -> None:
        whole: bool = isinstance(self.seed, int | np.integer) and not isinstance(self.seed, bool)
        if not whole or not 0 <= self.seed < 2**SEED_BITS:
            raise ParameterError(f"`seed` must be a whole number from 0 to 2^{SEED_BITS} − 1, got another")
        object.__setattr__(self, "seed", int(self.seed))

    def __reduce__(self) -> Any:
        """Refuse to be pickled, as every engine that sends work elsewhere would do."""
        raise TypeError("a run must stay in its process, for it knows the seed: send `run.chance(...)` along")

    def at(self, *labels: Label) -> Run:
        """Enter a named place; streams drawn there differ from those of every other place."""
        return replace(self, place=(*self.place, *labels))

    def on(self, table: Table) -> Run:
        """Enter a table: chance is keyed by what is in it; in a series, by whose its records are."""
        if self.series is None:
            return self.at(table.digest)
        return replace(self, people=self.series.identity.units(table))

    def taking(self, number: int, name: str, said: str) -> Run:
        """Enter a step; in a series it is told by what is ``said`` of it, wherever it stands."""
        if self.series is None:
            return self.at("step", number, name)
        return replace(self.at("step", said), step=said)

    def among(self, rows: Ints) -> Run:
        """The run for some of the records; outside of a series it is the same."""
        return self if self.people is None else replace(self, people=self.people[rows])

    def within_stratum(self, stratum: Stratum, rows: Ints) -> Run:
        """Enter a stratum; in a series who changes over to another keeps their chance."""
        if self.people is None:
            return self.at("stratum", label_of(stratum))
        return replace(self.among(rows), stratum=stratum)

    def together(self, table: Table, name: str, rows: Ints) -> Run:
        """The run for one record of each household; in a series its chance is the household's."""
        if self.people is None or self.series is None:
            return self
        return replace(self, people=self.series.identity.households(table, name, self.people)[rows])

    def anew(self, table: Table) -> Run:
        """The run with chance that is this release's alone, for what is drawn for no one person."""
        return self if self.people is None else replace(self, people=None).at(table.digest)

    def kept(self, name: str) -> Table | None:
        """What the same step confided in an earlier release of the series, by its name."""
        return None if self.series is None else self.series.kept.get((self.step, self.stratum), {}).get(name)

    def shared(self) -> Run:
        """The run outside of the table it is at: chance there is the same for all tables of a plan."""
        inside = (i for i, label in enumerate(self.place) if isinstance(label, bytes) or label == "table")
        return replace(self, place=self.place[: next(inside, len(self.place))])

    def silent(self) -> Run:
        """The same run telling nobody, for parts of a work whose whole is told; it can still be stopped."""
        return replace(self, report=quiet)

    def within(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> Run:
        """The same run, stopped after so many seconds: what is slower than thought is not awaited."""
        until = clock() + seconds
        return replace(self, stopped=lambda: self.stopped() or clock() > until)

    def chance(self, *labels: Label) -> Chance:
        """Give the chance of a named place, for work that is done elsewhere."""
        secret = self.secret if self.series is None or self.people is None else self.series.secret
        root = hashlib.blake2b(digest_size=32, key=secret, person=b"chance").digest()
        return Chance(root, self.people).at(*self.place, *labels)

    def chance_of_block(self, index: int, rows: slice) -> Chance:
        """Give the chance of a block of records; in a series blocks are no places."""
        return self.chance("block", index) if self.people is None else self.chance().among(rows)

    def rng(self, *labels: Label) -> np.random.Generator:
        """Give the stream of chance of a named place: the same names give the same numbers.

        Chance is keyed by identity, not by order, so column order, chunks, threads and engines do not
        change an answer.
        """
        return self.chance(*labels).rng()

    @property
    def secret(self) -> bytes:
        """The seed as a key: what is derived from it can be made again by who has the private half."""
        return self.seed.to_bytes(SEED_BITS // 8, "little")

    def check(self) -> None:
        """Raise if the user asked to stop."""
        if self.stopped():
            raise Cancelled("the run was stopped; nothing was written")

    def tell(self, task: str, done: int, total: int, note: str = "") -> None:
        """Report progress, and stop here if asked to."""
        self.check()
        self.report(Progress(task, done, total, note))

    def ticker(self, task: str) -> Callable[[int, int], None]:
        """Make a callback for loops that know only how far they are."""
        return lambda done, total: self.tell(task, done, total)

    def track(self, task: str, items: Iterable[A], total: int) -> Iterator[A]:
        """Go through items, telling of each."""
        done = 0
        self.tell(task, done, total)
        for item in items:
            yield item
            done += 1
            self.tell(task, done, total)

    def resource(self, name: Resource) -> Any:
        """Look up a resource of the plan by name."""
        try:
            return self.resources[str(name)]
        except KeyError:
            raise UnknownNameError.of("resource", str(name), self.resources) from None


class Stopwatch:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._start = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Seconds so far."""
        return time.perf_counter() - self._start
