"""A study: bring every method to the same level of one measure, and rank them by another."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sfumato.compare.frontier import Point, frontier
from sfumato.compare.level import Level, Reached, Target, reach
from sfumato.compare.recipe import Recipe, Step
from sfumato.compare.trial import Trial, attempt, usable
from sfumato.core.measure import Measure, Status
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.evidence import Scenario
from sfumato.data.table import Table
from sfumato.errors import ParameterError, PlanError, UnreachableError

#: How sure one must be to call one method better than another.
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Spread:
    """The mean of repeated runs with its doubt; one run without any chance has none.

    ``approximate`` says that the measure itself was estimated in at least one of the runs.
    """

    mean: float
    deviation: float
    runs: int
    approximate: bool = False

    @classmethod
    def of(cls, values: Sequence[float], *, approximate: bool = False) -> Spread:
        """Summarise the values of repeated runs."""
        # Equal values have no spread; the rounding of their mean would give them one.
        deviation = float(np.std(values, ddof=1)) if min(values) < max(values) else 0.0
        return cls(float(np.mean(values)), deviation, len(values), approximate)

    @property
    def error(self) -> float:
        """Standard error of the mean."""
        return self.deviation / math.sqrt(self.runs)

    @property
    def interval(self) -> tuple[float, float]:
        """Interval that holds the mean with 95 % confidence (Student's t)."""
        if self.runs == 1 or not self.deviation:
            return (self.mean, self.mean)
        from scipy.stats import t

        half = float(t.ppf((1 + CONFIDENCE) / 2, self.runs - 1)) * self.error
        return (self.mean - half, self.mean + half)

    def differs_from(self, other: Spread) -> bool:
        """Whether two means differ by more than chance explains (Welch's test)."""
        gap, variance = abs(self.mean - other.mean), self.error**2 + other.error**2
        if not variance:
            return gap > 0
        from scipy.stats import t

        parts = [(spread.error**2) ** 2 / (spread.runs - 1) for spread in (self, other) if spread.error]
        freedom = variance**2 / sum(parts)
        return bool(gap / math.sqrt(variance) > t.ppf((1 + CONFIDENCE) / 2, freedom))

    def to_dict(self) -> dict[str, Any]:
        """Say it for machines."""
        return {
            "mean": self.mean,
            "deviation": self.deviation,
            "interval": list(self.interval),
            "runs": self.runs,
            "approximate": self.approximate,
        }


@dataclass(frozen=True)
class Outcome:
    """One method at the level: its parameter, and both measures over fresh runs."""

    level: Level
    held: Spread | None = None  # the measure held equal
    ranked: Spread | None = None  # the measure the ranking is by
    rank: int | None = None
    tied_with_next: bool = False
    example: Release | None = field(default=None, repr=False, compare=False)

    @property
    def step(self) -> Step:
        """The step at the level."""
        return self.level.step

    def to_dict(self) -> dict[str, Any]:
        """Say it for machines."""
        return {
            "rank": self.rank,
            "method": self.step.method.name,
            "title": self.step.method.title,
            "parameters": self.step.method.to_dict(),
            "drive": self.level.parameter,
            "reached": self.level.reached.value,
            "held": self.held.to_dict() if self.held else None,
            "ranked": self.ranked.to_dict() if self.ranked else None,
            "tied_with_next": self.tied_with_next,
            "tried": [[value, score] for value, score in self.level.tried.items()],
        }


@dataclass(frozen=True)
class Study:
    """Methods compared at one level."""

    original: Table
    target: Target
    ranked_by: Measure
    outcomes: tuple[Outcome, ...]
    points: tuple[Point, ...] = ()
    repeats: int = 1
    scenario: Scenario = field(default_factory=Scenario)

    @property
    def winner(self) -> Outcome | None:
        """The best method that reached the level."""
        return next((outcome for outcome in self.outcomes if outcome.rank == 1), None)

    @property
    def unreached(self) -> tuple[Outcome, ...]:
        """The methods that cannot be brought to the level."""
        return tuple(outcome for outcome in self.outcomes if outcome.rank is None)

    def to_dict(self) -> dict[str, Any]:
        """Say the study for machines; nothing per record, no seed."""
        return {
            "records": len(self.original),
            "columns": {
                name: list(o.step.resolve(self.original.schema))
                for o in self.outcomes
                for name in [o.step.method.name]
            },
            "held": {
                "measure": self.target.measure.name,
                "parameters": self.target.measure.to_dict(),
                "level": self.target.value,
                "tolerance": self.target.tolerance,
            },
            "ranked_by": {
                "measure": self.ranked_by.name,
                "parameters": self.ranked_by.to_dict(),
                "better": self.ranked_by.better,
            },
            "repeats": self.repeats,
            "scenario": self.scenario.to_dict(),
            "outcomes": [outcome.to_dict() for outcome in self.outcomes],
            "map": [point.to_dict() for point in self.points],
        }


def compare(
    table: Table,
    steps: Sequence[Step],
    run: Run,
    *,
    target: Target,
    ranked_by: Measure,
    repeats: int = 5,
    points: int = 0,
    scenario: Scenario | None = None,
    resources: Mapping[str, Any] | None = None,
) -> Study:
    """Bring every step to the target level, score it there in fresh runs, and rank.

    The runs that are scored are other runs than those the search looked at: a parameter chosen because it
    did well on some draws would look better on these than it is.
    """
    _check(table, steps, target, ranked_by, repeats)
    scenario = scenario or Scenario()
    options: dict[str, Any] = {"scenario": scenario, "resources": resources}
    outcomes = []
    for step in run.track("methods compared", steps, total=len(steps)):
        level = reach(step, table, target, run, repeats=min(repeats, 3), **options)
        outcomes.append(
            _scored(level, table, target.measure, ranked_by, run, repeats=repeats, options=options)
        )
    pair = (target.measure, ranked_by) if target.measure.aspect == "risk" else (ranked_by, target.measure)
    mapped = frontier(steps, table, *pair, run, points=points, **options) if points else ()
    return Study(
        original=table,
        target=target,
        ranked_by=ranked_by,
        outcomes=_in_order(outcomes, ranked_by),
        points=mapped,
        repeats=repeats,
        scenario=scenario,
    )


def _check(table: Table, steps: Sequence[Step], target: Target, ranked_by: Measure, repeats: int) -> None:
    if target.measure.aspect == ranked_by.aspect:
        raise ParameterError(
            f"a comparison must hold a risk and rank by a utility, or the reverse, got: two measures of "
            f"{ranked_by.aspect}"
        )
    if repeats < 1:
        raise ParameterError(f"`repeats` must be at least 1, got: `{repeats}`")
    faults = [fault for step in steps for fault in step.faults(table.schema)]
    if faults or not steps:
        raise PlanError.gather("the comparison", faults or ["it must name at least one method, got: none"])


def _scored(
    level: Level,
    table: Table,
    held: Measure,
    ranked_by: Measure,
    run: Run,
    *,
    repeats: int,
    options: dict[str, Any],
) -> Outcome:
    if level.reached is Reached.UNREACHABLE:
        return Outcome(level)
    quiet = run.silent()
    trials: list[Trial] = []
    for turn in range(repeats, 2 * repeats):
        run.tell("scoring", len(trials), repeats, level.step.method.title)
        trials.append(
            attempt(Recipe((level.step,)), table, [held, ranked_by], quiet, replicate=turn, **options)
        )
        if not level.step.method.stochastic and not _estimated(trials, held, ranked_by):
            break  # no chance in the method nor in the measures: every run gives the same
    return Outcome(
        level,
        held=_spread(trials, held),
        ranked=_spread(trials, ranked_by),
        example=trials[0].release,
    )


def _spread(trials: Sequence[Trial], measure: Measure) -> Spread:
    values = [usable(measure, trial.scores[measure.name]) for trial in trials]
    return Spread.of(values, approximate=_estimated(trials, measure))


def _estimated(trials: Sequence[Trial], *measures: Measure) -> bool:
    return any(trial.scores[m.name].status is Status.APPROXIMATE for trial in trials for m in measures)


def _in_order(outcomes: Sequence[Outcome], measure: Measure) -> tuple[Outcome, ...]:
    """Best first; those that did not reach the level last, without a rank."""
    sign = 1 if measure.better == "low" else -1
    reached = sorted((o for o in outcomes if o.ranked), key=lambda o: sign * o.ranked.mean)  # type: ignore[union-attr]
    placed = [
        replace(outcome, rank=place, tied_with_next=_tied(outcome, following))
        for place, (outcome, following) in enumerate(
            zip(reached, [*reached[1:], None], strict=False), start=1
        )
    ]
    return (*placed, *(outcome for outcome in outcomes if not outcome.ranked))


def _tied(first: Outcome, second: Outcome | None) -> bool:
    if second is None or first.ranked is None or second.ranked is None:
        return False
    return not first.ranked.differs_from(second.ranked)


def level_of(
    step: Step,
    table: Table,
    measure: Measure,
    run: Run,
    *,
    repeats: int = 3,
    scenario: Scenario | None = None,
    resources: Mapping[str, Any] | None = None,
) -> float:
    """The level a step reaches with its parameters as they are: "as safe as this"."""
    turns = range(repeats if step.method.stochastic else 1)
    quiet = run.silent()
    trials = [
        attempt(Recipe((step,)), table, [measure], quiet, replicate=r, scenario=scenario, resources=resources)
        for r in turns
    ]
    return float(np.mean([usable(measure, trial.scores[measure.name]) for trial in trials]))


def require_reached(study: Study) -> None:
    """Raise when no method, of those compared, can be brought to the level."""
    if study.winner is None:
        listed = "; ".join(f"{o.step.method.name}: {o.level.sentence(study.target)}" for o in study.unreached)
        raise UnreachableError(
            f"at least one method must reach {study.target.measure.name} {study.target.value:g}, got: none",
            hint=listed,
        )
