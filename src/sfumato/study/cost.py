"""What a piece of work will cost, before it is done: seconds and memory, from small trials.

Each step and each measure is tried on samples of the table, each four times as large as the one before, after
a first call that is not counted (it compiles and imports); what then takes longer than its declared growth
allows has compiled or loaded something on the way, and is tried once more. Seconds are those of the
processor, which others who use the machine leave alone, and grow as `sfumato.study.growth` has it. The trial
ends as soon as it is certain that there is nothing to tell, or before it costs more than a small share of the
work.
"""

from __future__ import annotations

import math
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sfumato.core.component import Component
from sfumato.core.evidence import Evidence
from sfumato.core.measure import Measure
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.column_store import active_store
from sfumato.data.scenario import Scenario
from sfumato.data.table import Table
from sfumato.errors import Cancelled, SfumatoError
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.study.evaluate import EvaluationCase, score_of
from sfumato.study.growth import Growth, Timings

#: Tables with fewer records cost nothing worth telling.
FREE_UP_TO_RECORDS = 2_000
#: Work that takes less is not told of, in seconds.
SHORT_SECONDS = 10.0
#: Memory below which nothing is told of it, in bytes.
MODEST = 10**9

_SMALLEST, _RATIO, _LARGEST = 60, 4, 250_000
#: The first trial of a large table has this share of its records, and at most so many: of fewer, only what
#: every table costs shows.
_FIRST_SHARE, _LARGEST_FIRST = 1 / 2_000, 4_000
#: A trial may take so many seconds; of long work this share, up to as many seconds.
_SPENT, _SHARE, _MOST_SPENT = 0.8, 0.02, 3.0
#: Of very long work this share, up to as many seconds: its time would else be told from too few records.
_SMALL_SHARE, _MOST_OF_LONG = 0.002, 15.0
#: One measure may take so many seconds at a time, or that share of its work.
_AT_A_TIME = 0.3
#: Memory that a trial takes without meaning anything, in bytes.
_NOISE = 8 * 10**6
#: So many times the bytes of a table are used at least: the original, the release, and numbers to work on.
_COPIES = 3


@dataclass(frozen=True)
class Cost:
    """What is expected: ``seconds``, or ``most_seconds`` if all grows as declared; memory of the process."""

    seconds: float
    most_seconds: float
    memory_bytes: float
    basis: str

    @property
    def worth_telling(self) -> bool:
        """Whether somebody should know before it starts."""
        return self.seconds >= SHORT_SECONDS or self.memory_bytes >= MODEST

    def sentence(self) -> str:
        """Say it in one line."""
        text = f"about {duration(self.seconds)}"
        if self.most_seconds > 3 * self.seconds:
            text += f" (at most {duration(self.most_seconds)})"
        return f"{text} and {size(self.memory_bytes)}"


@dataclass(frozen=True)
class PlannedWork:
    """What is to be done to a table: a recipe, or a release that is there, and measures on it.

    All of it is done ``repeats`` times; by the measures ``at_end`` it is scored only the last few times.
    """

    recipe: Recipe = field(default_factory=Recipe)
    measures: tuple[Measure, ...] = ()
    release: Release | None = field(default=None, repr=False)
    repeats: int = 1
    at_end: tuple[Measure, ...] = ()
    ends: int = 1
    scenario: Scenario | None = None
    resources: Mapping[str, Any] = field(default_factory=dict, repr=False)


#: Of more steps than this some are tried, and stand for the others.
_MOST_STEPS = 8

#: Settings of a drive that a search looks at, about.
SETTINGS = 12

#: Told of the works that are about to be done, before they are.
Before = Callable[[Sequence[PlannedWork], Table, Run], None]


def works_of(
    steps: Sequence[Step], measures: Sequence[Measure], runs: float, *, ends: float = 0, **how: Any
) -> list[PlannedWork]:
    """The works of trying every step so many times; of many steps some stand for all."""
    shown = steps[:: math.ceil(len(steps) / _MOST_STEPS)] if steps else []
    share = len(steps) / max(len(shown), 1)
    repeats, last = max(1, round(runs * share)), round(ends * share)
    return [
        PlannedWork(Recipe((step,)), tuple(measures), repeats=repeats, ends=last, **how) for step in shown
    ]


def estimate(
    works: PlannedWork | Sequence[PlannedWork],
    table: Table,
    run: Run,
    *,
    clock: Callable[[], float] = time.process_time,
    peak: Callable[[], int] | None = None,
) -> Cost | None:
    """Estimate what one or several pieces of work on a table cost; None if they cannot be tried on samples.

    Parameters
    ----------
    works
        What is to be done, one after the other.
    run
        Its engine and resources are used, and it can be stopped; its chance and its reports are left alone.
    clock, peak
        Where seconds and the most memory so far (in bytes) are read.
    """
    trial = _CostTrial(table, run.silent().at("cost"), clock, peak or peak_memory)
    listed = [works] if isinstance(works, PlannedWork) else works
    parts = [part for number, work in enumerate(listed) for part in trial.run(work, number)]
    n = len(table)
    tried = max((part.points[-1][0] for part in parts if part.points), default=0)
    if trial.failed or not tried:
        return None
    copies = 0 if active_store() else _COPIES * table.frame.estimated_size()  # else they lie in files
    memory = min(trial.present + max(trial.used, copies), run.engine.memory or math.inf)
    basis = f"trials on up to {tried:,} of {n:,} records; the memory is a rough guess"
    if trial.left_out:
        basis += f"; not tried: {', '.join(sorted(trial.left_out))}"
    totals = [part.total(n) for part in parts]
    return Cost(sum(low for low, _ in totals), sum(high for _, high in totals), float(memory), basis)


class _CostShare(Timings):
    """A step or a measure, the seconds it took on each size, and how often it will be done."""

    def __init__(self, described: Component, times: int, records: int) -> None:
        # a part is all, until there are two
        super().__init__(Growth.declared_as(re.sub(r"\bpart\b", "n", described.cost)))
        self.described, self.times, self.records = described, times, records
        self.too_slow = False  # to be tried on more records

    @property
    def records_at_once(self) -> float:
        """How many records are worked on at once: what ``records`` or ``part`` says, by convention.

        Of more than are ``matched`` it is a ``sample``.
        """
        sampled = self.records > getattr(self.described, "matched", math.inf)
        caps = (getattr(self.described, name, None) for name in ("sample" if sampled else "records", "part"))
        return next((cap for cap in caps if isinstance(cap, int)), math.inf)

    def turns(self, n: int) -> float:
        """How often so many are worked on: in each of the ``draws``, or in each part of the table."""
        if n <= self.records_at_once:
            return 1.0
        if hasattr(self.described, "part"):
            return n / self.records_at_once
        return getattr(self.described, "draws", 1)

    def total(self, n: int) -> tuple[float, float]:
        """The seconds expected for n records, and the most if it grows as declared."""
        low, high = self.expected_seconds(int(min(n, self.records_at_once)))
        low = high if self.too_slow else low  # the last trial was not awaited, so it tells too little
        return self.times * self.turns(n) * low, self.times * self.turns(n) * high

    def next_seconds(self, n: int) -> float:
        """What the next trial may take: two sizes are needed to tell what grows from what does not."""
        if len(self.points) < 2:  # noqa: PLR2004
            return self.points[-1][1] if self.points else 0.0
        return self.seconds_between(n, Growth(1))


class _CostTrial:
    """Tries work on samples of a table."""

    def __init__(self, table: Table, run: Run, clock: Callable[[], float], peak: Callable[[], int]) -> None:
        self.table, self.place, self.clock, self.peak = table, run, clock, peak
        self.present = self.used = 0.0  # bytes: before anything is tried, and what the work will add
        self.aside = 0.0  # seconds of compiling and loading, which the work would have taken, too
        self.failed = False
        self.left_out: set[str] = set()

    def run(self, work: PlannedWork, number: int) -> list[_CostShare]:
        """Try a piece of work on larger and larger samples, as long as that is worth while."""
        n_all = len(self.table)
        steps = [_CostShare(step.method, work.repeats, n_all) for step in work.recipe.steps]
        measures = [_CostShare(measure, work.repeats, n_all) for measure in work.measures]
        measures += [_CostShare(measure, work.ends, n_all) for measure in work.at_end]
        parts, n = steps + measures, max(_SMALLEST, self._first_size())
        here = replace(self.place.at(number), resources={**self.place.resources, **work.resources})
        last = min(len(self.table) // 2, _LARGEST)
        while n <= last and not self._try_size(work, n, here, steps, measures):
            n *= _RATIO
        for part in parts:  # the first call compiles and imports
            part.points.clear()
        started, before, added, first = self.clock() - self.aside, self.peak(), 0.0, 0
        self.present = max(self.present, before)
        while n <= last and self._try_size(work, n, here, steps, measures):
            expected = [part.total(len(self.table)) for part in parts]
            allowed = _affordable_seconds(sum(low for low, _ in expected))
            if first:  # the first size also shows what every table takes
                grown = max(self.peak() - before - _NOISE, 0)
                added = grown * len(self.table) / (n - first)
            else:
                first, before = n, self.peak()
            coming = sum(part.next_seconds(n * _RATIO) for part in steps)
            spent = self.clock() - self.aside - started
            if sum(high for _, high in expected) < SHORT_SECONDS or spent + coming > allowed:
                break
            n *= _RATIO
        self.used = max(self.used, added)
        self.failed |= any(not part.points for part in steps)
        return parts

    def _first_size(self) -> int:
        return min(int(_FIRST_SHARE * len(self.table)), _LARGEST_FIRST)

    def _try_size(
        self, work: PlannedWork, n: int, run: Run, steps: Sequence[_CostShare], measures: Sequence[_CostShare]
    ) -> bool:
        """Follow the work on n records, noting the seconds of each part; False if a step cannot."""
        sample, release = sample_tables(self.table, work.release, n)
        try:
            if work.recipe.steps:
                release = self._time_protection(work, sample, run, steps, n)
        except (SfumatoError, ValueError, ArithmeticError):
            self.place.check()  # somebody may have stopped it
            return False
        evidence = EvaluationCase(sample, work.scenario or Scenario(), work.resources).evidence(release)
        for part in measures:
            afford = max(_AT_A_TIME, min(_SHARE * part.total(len(self.table))[0], _MOST_SPENT))
            if n <= part.records_at_once and not part.too_slow and part.next_seconds(n) <= afford:
                self._time_measure(part, evidence, run, afford, n)
        return True

    def _time_measure(self, part: _CostShare, evidence: Evidence, run: Run, afford: float, n: int) -> None:
        try:
            seconds, ended = self._time_score(part, evidence, run, afford)
            if seconds > (declared := part.at_most(n)):
                again, is_told = self._time_score(part, evidence, run, min(afford, declared))
                if is_told:
                    self.aside += max(seconds - again, 0.0)
                    seconds, ended = min(again, seconds), True
        except (SfumatoError, ValueError, ArithmeticError):  # the work itself will say what is wrong
            self.place.check()
            self.left_out.add(part.described.name)
            return
        part.too_slow = not ended
        part.points.append((n, seconds))

    def _time_score(
        self, part: _CostShare, evidence: Evidence, run: Run, afford: float
    ) -> tuple[float, bool]:
        """The seconds that a measure took, and whether it was awaited."""
        assert isinstance(part.described, Measure)
        began = self.clock()
        try:
            score_of(part.described, evidence, run.with_deadline(afford, self.clock) if part.points else run)
        except Cancelled:
            self.place.check()  # somebody has stopped it
            return self.clock() - began, False
        return self.clock() - began, True

    def _time_protection(
        self, work: PlannedWork, sample: Table, run: Run, steps: Sequence[_CostShare], n: int
    ) -> Release | None:
        release, seconds = self._time_recipe(work, sample, run, awaited=not steps[0].points)
        if any(spent > part.at_most(n) for part, spent in zip(steps, seconds, strict=True)):
            release, again = self._time_recipe(work, sample, run, awaited=False)
            self.aside += max(sum(seconds) - sum(again), 0.0)
            seconds = [min(pair) for pair in zip(seconds, again, strict=True)]
        for part, spent in zip(steps, seconds, strict=True):  # once all steps have gone well
            part.points.append((n, spent))
        return release if release.plain else None

    def _time_recipe(
        self, work: PlannedWork, sample: Table, run: Run, *, awaited: bool
    ) -> tuple[Release, list[float]]:
        """The release, and the seconds of each step."""
        release, seconds = Release.unchanged(sample), []
        here = run if awaited else run.with_deadline(_MOST_SPENT, self.clock)
        began = self.clock()
        for release in work.recipe.follow(sample, here):  # noqa: B007  — the last one is wanted
            now = self.clock()
            seconds.append(now - began)
            began = now
        return release, seconds


def _affordable_seconds(expected: float) -> float:
    """What a trial of work may take that is expected to take so long."""
    return max(_SPENT, min(_SHARE * expected, _MOST_SPENT), min(_SMALL_SHARE * expected, _MOST_OF_LONG))


def sample_tables(table: Table, release: Release | None, n: int) -> tuple[Table, Release | None]:
    """Every so-many-th record of a table, and of a release what belongs to it."""
    if release is None or not release.plain:
        return table.take(_even_rows(len(table), n)), None
    rows = _even_rows(len(release.table), n)
    if release.source_rows is None:
        return table.take(_even_rows(len(table), n)), Release.of(release.table.take(rows))
    sources, places = np.unique(release.source_rows[rows], return_inverse=True)
    return table.take(sources), Release.of(release.table.take(rows), source_rows=places.astype(np.int64))


def _even_rows(total: int, n: int) -> Any:
    return np.linspace(0, total - 1, min(n, total)).astype(np.int64) if total else np.zeros(0, dtype=np.int64)


def peak_memory() -> int:
    """The most memory the process has held so far, in bytes; 0 where the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def duration(seconds: float) -> str:
    """Say seconds as people do: 40 s, 3 min, 2 h, 5 days."""
    for unit, length, until in (("s", 1, 90), ("min", 60, 5400), ("h", 3600, 172_800)):
        if seconds < until:
            return f"{max(round(seconds / length), 1)} {unit}"
    return f"{round(seconds / 86_400):,} days"


def size(bytes_: float) -> str:
    """Say bytes as people do: 300 MB, 1.2 GB."""
    return f"{max(round(bytes_ / 1e6), 1)} MB" if bytes_ < 999.5e6 else f"{bytes_ / 1e9:.1f} GB"  # noqa: PLR2004
