"""One run: where its chance comes from, whom it tells of its progress, and how it is stopped."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from sfumato.core.params import Resource
from sfumato.core.randomness import ByPlace, CarriedChance, Label, RandomKey
from sfumato.engines.interface import Engine, Stopped, active_engine
from sfumato.engines.memory import MemoryEngine
from sfumato.engines.parcel import StaysHereError
from sfumato.errors import Cancelled, ParameterError, UnknownNameError

A = TypeVar("A")
B = TypeVar("B")


@dataclass(frozen=True, slots=True)
class ProgressEvent:
    """How far a piece of work has come. ``total`` 0 means that nobody knows yet."""

    task: str
    done: int
    total: int
    note: str = ""


def ignore(_event: Any) -> None:
    """Tell nobody: the library's default."""


def never_stop() -> bool:
    """Never stop: the library's default."""
    return False


@dataclass(frozen=True)
class Progress:
    """Whom a run tells how far it has come, and when it ends before its work does.

    ``report`` is called with each `ProgressEvent`; ``found`` with each candidate that a search has settled,
    as a dictionary for JSON without seeds and cells, so that who waits can see it already. ``stopped`` says
    whether the user asked to stop; after the ``deadline``, a time of the ``clock``, it ends by itself.
    """

    report: Callable[[ProgressEvent], None] = ignore
    found: Callable[[Mapping[str, Any]], None] = ignore
    stopped: Callable[[], bool] = never_stop
    deadline: float = math.inf
    clock: Callable[[], float] = time.monotonic

    def is_over(self) -> bool:
        """Whether to stop now."""
        return self.stopped() or self.clock() > self.deadline

    def with_deadline(self, seconds: float, clock: Callable[[], float]) -> Progress:
        """The same, over after so many seconds of a clock."""
        deadline = clock() + seconds
        if clock is self.clock or self.deadline == math.inf:
            return replace(self, deadline=min(self.deadline, deadline), clock=clock)
        return replace(self, stopped=self.is_over, deadline=deadline, clock=clock)


@dataclass(frozen=True, init=False)
class Run:
    """Everything a method or measure may use besides the data.

    Its ``randomness`` is secret, and a run stays in its process: work that travels takes `random_key` along.
    ``Run(seed=1)`` is short for randomness by place of that seed; without either the system gives one.
    """

    randomness: ByPlace
    engine: Engine
    progress: Progress
    resources: Mapping[str, Any] = field(repr=False)

    def __init__(
        self,
        seed: int | None = None,
        *,
        randomness: ByPlace | None = None,
        engine: Engine | None = None,
        progress: Progress | None = None,
        resources: Mapping[str, Any] | None = None,
    ) -> None:
        if seed is not None and randomness is not None:
            raise ParameterError("a run takes a seed or its randomness, not both")
        parts = {
            "randomness": randomness or (ByPlace.from_system() if seed is None else ByPlace(seed)),
            "engine": engine or active_engine() or MemoryEngine(),
            "progress": progress or Progress(),
            "resources": resources or {},
        }
        for name, part in parts.items():
            object.__setattr__(self, name, part)

    def at(self, *labels: Label) -> Run:
        """Enter a named place; streams drawn there differ from those of every other place."""
        return replace(self, randomness=self.randomness.at(*labels))

    def random_key(self, *labels: Label) -> RandomKey:
        """Give the chance of a named place, for work that is done elsewhere."""
        return self.randomness.key(*labels)

    def rng(self, *labels: Label) -> np.random.Generator:
        """Give the stream of chance of a named place: the same names give the same numbers.

        Chance is keyed by identity, not by order, so column order, chunks, threads and engines do not
        change an answer.
        """
        return self.randomness.key(*labels).rng()

    def silent(self) -> Run:
        """The same run telling nobody, for parts of a work whose whole is told; it can still be stopped."""
        return replace(self, progress=replace(self.progress, report=ignore, found=ignore))

    def with_deadline(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> Run:
        """The same run, stopped after so many seconds: what is slower than thought is not awaited."""
        return replace(self, progress=self.progress.with_deadline(seconds, clock))

    def check(self) -> None:
        """Raise if the user asked to stop, time is up, or the engine cannot go on."""
        self.engine.check()
        if self.progress.is_over():
            raise Cancelled("the run was stopped; nothing was written")

    def tell(self, task: str, done: int, total: int, note: str = "") -> None:
        """Report progress, and stop here if asked to."""
        self.check()
        self.progress.report(ProgressEvent(task, done, total, note))

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

    def spread(self, work: Callable[[A, Run], B], items: Sequence[A]) -> Iterator[B]:
        """Do long pieces of work that do not depend on each other, side by side where the engine can.

        Results come in the order of the items. ``work`` is given each item and a run: this one, or one that
        has travelled, draws the same and tells nobody.
        """
        there: Callable[[A, Stopped], B] | None = None
        if self.engine.n_workers and len(items) > 1:
            with suppress(StaysHereError):
                there = partial(_work_elsewhere, work, _CarriedRun.of(self))
        if there is None:
            return (work(item, self) for item in items)
        return self.engine.spread(there, items, lambda item: work(item, self), self.check)

    def resource(self, name: Resource) -> Any:
        """Look up a resource of the plan by name."""
        try:
            return self.resources[str(name)]
        except KeyError:
            raise UnknownNameError.of("resource", str(name), self.resources) from None


@dataclass(frozen=True)
class _CarriedRun:
    """What of a run travels; its ``deadline`` is a time of day, which all machines know."""

    randomness: CarriedChance
    resources: Mapping[str, Any] = field(repr=False)
    deadline: float

    @classmethod
    def of(cls, run: Run) -> _CarriedRun:
        left = run.progress.deadline - run.progress.clock()
        return cls(run.randomness.carried(), run.resources, time.time() + left)

    def arrive(self, stopped: Stopped) -> Run:
        progress = Progress(stopped=stopped, deadline=self.deadline, clock=time.time)
        return Run(randomness=self.randomness, progress=progress, resources=self.resources)


def _work_elsewhere(work: Callable[[A, Run], B], carried: _CarriedRun, item: A, stopped: Stopped) -> B:
    return work(item, carried.arrive(stopped))


class Stopwatch:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._start = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Seconds so far."""
        return time.perf_counter() - self._start
