"""A search keeps to its time: what is left for each of its stages, and whether a piece of work may begin."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from sfumato import kernels
from sfumato.core.run import Run, never_stop
from sfumato.recipes.recipe import Recipe
from sfumato.study.cost import duration
from sfumato.study.growth import Growth, Timings

#: The share of the time by which a stage must have ended; the last one is the utility of the best.
#: What must be done though time is up has no end.
SAMPLING, SEARCHING, CONFIRMING, ENDING, LATE = "sampling", "searching", "confirming", "ending", "late"
_ENDS: Final = {SAMPLING: 0.25, SEARCHING: 0.7, CONFIRMING: 0.85, ENDING: 1.0, LATE: math.inf}

#: The share of the time that is planned with, in seconds of work: the rest is for others on the machine.
_PLANNED_SHARE: Final = 0.6


class WorkClock:
    """Tells the seconds in which this process worked: a busy machine does not change what fits into them.

    Of work on several processors at once it tells the time that went by; compiling does not count.
    """

    def __init__(self) -> None:
        self.lock, self.worked = threading.Lock(), 0.0
        self.last = self._read()

    def _read(self) -> tuple[float, float]:
        watch = kernels.compile_watch
        return time.monotonic() - watch.seconds, time.process_time() - watch.worked

    def __call__(self) -> float:
        """Seconds so far."""
        with self.lock:
            now = self._read()
            self.worked += min(here - before for here, before in zip(now, self.last, strict=True))
            self.last = now
            return self.worked


@dataclass
class TimeBudget:
    """Knows the time of a search, and how long recipes took so far; the clock may be another.

    Where there is a ``work`` clock too, a sure share of the seconds is counted by it, so that the same fits
    into them on a busy machine; then the clock itself ends only what has gone wrong.
    """

    seconds: float = math.inf
    clock: Callable[[], float] = time.monotonic
    stage: str = ENDING
    took: dict[tuple[str, ...], Timings] = field(default_factory=dict)
    work: Callable[[], float] | None = None
    sure: float = _PLANNED_SHARE

    def __post_init__(self) -> None:
        self.started, self.began = self.clock(), self.work() if self.work else 0.0

    def __getstate__(self) -> dict[str, Any]:
        """What travels counts by the time of day, which all machines know."""
        started = time.time() - (self.clock() - self.started)
        return {**self.__dict__, "clock": time.time, "work": None, "started": started}

    @property
    def time_left(self) -> float:
        """Seconds by the clock until the present stage must end."""
        return self.started + _ENDS[self.stage] * self.seconds - self.clock()

    @property
    def work_left(self) -> float:
        """Seconds of work that are left in the present stage."""
        if self.work is None:
            return math.inf
        return self.began + _ENDS[self.stage] * self.sure * self.seconds - self.work()

    @property
    def seconds_left(self) -> float:
        """Seconds until the present stage must end."""
        return min(self.time_left, self.work_left)

    def limit_run(self, run: Run, share: float = 1.0) -> Run:
        """The run that is stopped when the present stage must end, or after a share of what is left of it."""
        if math.isinf(self.seconds):
            return run
        run = run.with_deadline(share * self.time_left, self.clock)
        return run if self.work is None else run.with_deadline(share * self.work_left, self.work)

    def hurry(self, share: float) -> Callable[[], bool]:
        """Say when enough is tried for a share of the time; it is asked before each trial but the first.

        What the first took tells how many there will be. That is planned once, and the clock ends only what
        has gone wrong: on another day the same is tried. So it is on the first day, when kernels are
        compiled: that does not count.
        """
        if math.isinf(self.seconds):
            return never_stop
        compiled = kernels.compile_watch.seconds
        began, budget, until = self.now(), share * self.seconds_left, self.clock() + share * self.time_left
        asked, planned = 0, 0

        def is_enough() -> bool:
            nonlocal asked, planned
            compiling = kernels.compile_watch.seconds - compiled
            spent = self.now() - began - (0.0 if self.work else compiling)
            asked, planned = asked + 1, planned or fitting(budget, spent)
            return asked > planned or spent > budget or self.clock() - compiling > until

        return is_enough

    def now(self) -> float:
        """The seconds by which work is measured."""
        return self.work() if self.work else self.clock()

    def may_begin(self, recipe: Recipe, records: int, share: float = 1.0) -> bool:
        """Whether a share of the time that is left will do for one run of a recipe on so many records."""
        return self.expected_seconds(recipe, records) <= share * self.seconds_left

    def note(self, recipe: Recipe, records: int, seconds: float) -> None:
        """Remember what one run of a recipe took; the longest on the most records counts."""
        growth = max((Growth.declared_as(step.method.cost) for step in recipe.steps), default=Growth(0))
        known = self.took.setdefault(_methods(recipe), Timings(growth))
        known.points = [max([*known.points, (records, seconds)])]

    def expected_seconds(self, recipe: Recipe, records: int) -> float:
        """Seconds that a run of a recipe is likely to take: as before, or from fewer records.

        Then between what it took there, much of which does not grow, and that grown as its methods declare.
        """
        known = self.took.get(_methods(recipe))
        return known.seconds_between(records, Growth(0)) if known else 0.0


def fitting(seconds: float, each: float) -> int:
    """How many things fit into a time: a power of two, so that a little more time or less is the same."""
    return 1 << int(math.log2(min(max(seconds / max(each, 1e-9), 1.0), 2.0**30)))


#: Of the time of a whole release: what methods that enforce it may take, of which this share is planned with,
#: and their least seconds, so that of small data all of them are tried however few minutes there are.
_ENFORCING, _SURE_TO_ENFORCE, _LEAST_TO_ENFORCE = 0.5, 0.5, 40.0
#: The least and most that is kept for carrying out, measuring and writing, and how many judged runs that is.
_LEAST_TO_TELL: Final = 20.0
_LEAST_KEPT, _MOST_KEPT, _RUNS_KEPT = 0.25, 0.5, 12


@dataclass(frozen=True)
class Shares:
    """How the minutes of a release are shared, counted ``since`` a time of the clock, with reading."""

    minutes: float
    since: float
    clock: Callable[[], float] = time.monotonic

    @property
    def left(self) -> float:
        """Seconds until all is to be done."""
        return self.since + 60 * self.minutes - self.clock()

    def of_fallbacks(self) -> TimeBudget:
        """The watch of the methods that enforce what is required."""
        seconds = max(_ENFORCING * self.left, _LEAST_TO_ENFORCE)
        return TimeBudget(seconds, self._clock_at_work, work=WorkClock(), sure=_SURE_TO_ENFORCE)

    def _clock_at_work(self) -> float:
        """The clock without the time in which kernels were compiled."""
        return self.clock() - kernels.compile_watch.seconds

    def to_search(self, one_run: float) -> float:
        """Minutes for a search, if one judged run takes so many seconds; 0 where there is no time for one."""
        total = 60 * self.minutes
        kept = min(max(_RUNS_KEPT * one_run, _LEAST_KEPT * total), _MOST_KEPT * total)
        return max(self.left - kept, 0.0) / 60

    def to_tell(self) -> float:
        """Seconds for what the report measures: what is left, but never nothing."""
        return max(self.left, _LEAST_TO_TELL)

    def __str__(self) -> str:
        whole, first, last = (
            duration(60 * self.minutes * share) for share in (1.0, _ENFORCING * _SURE_TO_ENFORCE, _LEAST_KEPT)
        )
        return (
            f"{whole} in all: about {first} for methods that enforce the requirements; about {last} for "
            "releasing, measuring and writing; the rest to search for a recipe with less loss"
        )


def _methods(recipe: Recipe) -> tuple[str, ...]:
    return tuple(step.method.name for step in recipe.steps)
