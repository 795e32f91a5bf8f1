"""Reach a level: find the value of a method's drive parameter that gives the risk or utility asked for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import pairwise
from typing import Any

import numpy as np

from sfumato.compare.recipe import Recipe, Step
from sfumato.compare.trial import attempt, usable
from sfumato.core.measure import Measure
from sfumato.core.params import Param
from sfumato.core.run import Run
from sfumato.data.evidence import Scenario
from sfumato.data.table import Table
from sfumato.errors import ParameterError

#: Points between the ends at which a level outside the ends' values is still looked for.
_SCAN_POINTS = 9
#: Steps after which halving stops; thirty halvings tell a billionth of the range.
_MOST_STEPS = 40


class Reached(StrEnum):
    """How well the level was met."""

    WITHIN = "within tolerance"
    NEAREST = "nearest possible"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True)
class Target:
    """A level of a measure: a number, and how far from it counts as there (a share of the number)."""

    measure: Measure
    value: float
    tolerance: float = 0.01

    def __post_init__(self) -> None:
        if not math.isfinite(self.value):
            raise ParameterError(f"the level of {self.measure.name} must be a number, got: `{self.value}`")
        if not 0 < self.tolerance < 1:
            raise ParameterError(f"`tolerance` must be a share between 0 and 1, got: `{self.tolerance}`")
        low, high = self.measure.bounds
        if not low <= self.value <= high:
            raise ParameterError(
                f"the level of {self.measure.name} must be from {low:g} to {high:g}, got: `{self.value}`"
            )

    @property
    def slack(self) -> float:
        """Largest difference that counts as reached."""
        return self.tolerance * abs(self.value) if self.value else self.tolerance

    def met_by(self, value: float) -> bool:
        """Whether a value is near enough."""
        return abs(value - self.value) <= self.slack


@dataclass(frozen=True)
class Level:
    """Where the search ended: the parameter's value, what it gives, and every point tried on the way."""

    step: Step
    parameter: str
    value: float
    score: float
    reached: Reached
    tried: Mapping[float, float] = field(default_factory=dict, repr=False)

    def sentence(self, target: Target) -> str:
        """Say in words where the search ended."""
        at = f"{self.parameter} = {self.value:.4g} gives {target.measure.name} {self.score:.4g}"
        if self.reached is Reached.UNREACHABLE:
            return f"{target.value:g} is unreachable: the best is {at}"
        if self.reached is Reached.NEAREST:
            return f"{at}, the nearest to {target.value:g} that the parameter allows"
        return at


class _Probe:
    """Scores the step at values of its drive; the same replicates at each value, so that chance is common."""

    def __init__(
        self, step: Step, table: Table, target: Target, run: Run, *, repeats: int, options: Any
    ) -> None:
        self.step, self.table, self.target, self.run = step, table, target, run
        self.repeats = repeats if step.method.stochastic else 1
        self.options = options
        self.tried: dict[float, float] = {}

    def __call__(self, value: float) -> float:
        if value not in self.tried:
            note = f"{self.step.method.title}: trying {value:.4g}"
            self.run.tell("reaching the level", len(self.tried), 0, note)
            recipe = Recipe((replace(self.step, method=self.step.method.with_drive(value)),))
            measure = self.target.measure
            quiet = replace(self.run, report=lambda _event: None)
            scores = [
                attempt(recipe, self.table, [measure], quiet, replicate=replicate, **self.options).scores[
                    measure.name
                ]
                for replicate in range(self.repeats)
            ]
            self.tried[value] = float(np.mean([usable(measure, score) for score in scores]))
        return self.tried[value]

    def miss(self, value: float) -> float:
        """How far, and on which side, the level is missed at a value."""
        return self(value) - self.target.value

    def best(self) -> float:
        """The value tried that comes nearest (the smallest such)."""
        return min(sorted(self.tried), key=lambda value: abs(self.tried[value] - self.target.value))


def reach(
    step: Step,
    table: Table,
    target: Target,
    run: Run,
    *,
    repeats: int = 3,
    scenario: Scenario | None = None,
    resources: Mapping[str, Any] | None = None,
) -> Level:
    """Find the value of the step's drive parameter at which the measure's mean is at the target.

    The measure is taken to be monotone in tendency, not in each draw: the ends of the range worth
    searching are tried first, then points between them, until two neighbours lie on both sides of the
    target; then the interval between them is narrowed, with the same replicates at every point, until
    the mean is within tolerance or the parameter cannot be set more finely.
    """
    drive = step.method.drive()
    if drive is None:
        raise ParameterError(f"{step.method.name} must have a drive parameter to reach a level, got: none")
    options = {"scenario": scenario, "resources": resources}
    probe = _Probe(step, table, target, run, repeats=repeats, options=options)
    bracket = _bracket(probe, drive, step.method.drive_range(table))
    if bracket is not None:
        _narrow(probe, drive, *bracket)
    value = probe.best()
    score = probe(value)
    if target.met_by(score):
        reached = Reached.WITHIN
    else:
        reached = Reached.UNREACHABLE if bracket is None else Reached.NEAREST
    found = replace(step, method=step.method.with_drive(value))
    return Level(found, drive.name, value, score, reached, dict(sorted(probe.tried.items())))


def _bracket(probe: _Probe, drive: Param, ends: tuple[float, float]) -> tuple[float, float] | None:
    """Two values of the drive, one on each side of the target; None when no two were found."""
    for count in (2, _SCAN_POINTS):
        values = drive.grid(count, low=ends[0], high=ends[1])
        for value in values:
            if probe.target.met_by(probe(value)):
                return None
        for first, second in pairwise(values):
            if probe.miss(first) * probe.miss(second) < 0:
                return first, second
    return None


def _narrow(probe: _Probe, drive: Param, first: float, second: float) -> None:
    """Narrow a bracket: by the straight line between its ends, by halving when that is slow."""
    for turn in range(_MOST_STEPS):
        left, right = drive.position(first), drive.position(second)
        below, above = probe.miss(first), probe.miss(second)
        share = 0.5 if turn % 2 else min(max(below / (below - above), 0.05), 0.95)
        value = drive.at(left + share * (right - left))
        if value in {first, second}:  # a whole number between neighbours: try the middle, then give up
            value = drive.at((left + right) / 2)
        if value in {first, second} or abs(right - left) < 1e-9 * max(1.0, abs(left)):
            return
        miss = probe.miss(value)
        if probe.target.met_by(probe(value)):
            return
        first, second = (value, second) if miss * below > 0 else (first, value)
