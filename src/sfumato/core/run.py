"""One run: where its chance comes from, whom it tells of its progress, and how it is stopped."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from sfumato.core.params import Resource
from sfumato.engines.memory import Engine, Memory
from sfumato.errors import Cancelled, ParameterError, UnknownNameError

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
    """

    key: bytes = field(repr=False)

    def at(self, *labels: Label) -> Chance:
        """Enter a named place; streams drawn there differ from those of every other place."""
        key = self.key
        for label in labels:
            key = hashlib.blake2b(_named(label), digest_size=32, key=key, person=b"place").digest()
        return Chance(key)

    def rng(self, *labels: Label) -> np.random.Generator:
        """Give the stream of chance of a named place: the same names give the same numbers."""
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
    """

    seed: int = field(default_factory=lambda: secrets.randbits(SEED_BITS), repr=False)
    engine: Engine = field(default_factory=Memory)
    report: Callable[[Progress], None] = quiet
    stopped: Callable[[], bool] = never
    resources: Mapping[str, Any] = field(default_factory=dict, repr=False)
    place: tuple[Label, ...] = ()

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
        root = hashlib.blake2b(digest_size=32, key=self.secret, person=b"chance").digest()
        return Chance(root).at(*self.place, *labels)

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
