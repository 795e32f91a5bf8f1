"""Reach a level: find the value of a method's drive parameter that gives the risk or utility asked for."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import pairwise
from typing import Any

import numpy as np

from sfumato.core.measure import Measure
from sfumato.core.params import Param
from sfumato.core.run import Run
from sfumato.data.evidence import Scenario
from sfumato.data.table import Table
from sfumato.errors import ParameterError
from sfumato.recipes.recipe import Recipe, Step
from sfumato.study.evaluate import CANNOT, attempt, usable

#: Points over the range that are looked at before a bracket is narrowed.
_SCAN_POINTS = 9
#: Steps after which narrowing stops.
_MOST_STEPS = 40
#: How finely the drive is set, as a share of the range worth searching.
_FINENESS = 1e-4


class Reached(StrEnum):
    """How well the level was met."""

    WITHIN = "within tolerance"
    NEAREST = "nearest found"
    UNREACHABLE = "unreachable"
    MET = "meets the requirements"
    REFUSED = "refused"


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
    """Where the search ended: the parameter's value, what it gives, and every point tried on the way.

    ``reason`` tells it in words where a number does not: several requirements, or a method that refuses.
    A step without a drive has no ``parameter``, and its ``value`` is not a number.
    """

    step: Step
    parameter: str
    value: float
    score: float
    reached: Reached
    tried: Mapping[float, float] = field(default_factory=dict, repr=False)
    reason: str = ""

    @property
    def setting(self) -> str:
        """The parameter and its value, as a table says them."""
        return f"{self.parameter} = {self.value:.4g}" if self.parameter else ""

    def nearness(self, target: Target) -> str:
        """Say what "nearest" means: of the values that were tried, and of a risk on its safe side."""
        safe = target.measure.aspect == "risk" and target.measure.is_better(self.score, target.value)
        return f"the nearest to {target.value:g} that was found{' on the safe side' if safe else ''}"

    def sentence(self, target: Target) -> str:
        """Say in words where the search ended."""
        if self.reason:
            return f"refused: {self.reason}" if self.reached is Reached.REFUSED else self.reason
        at = f"{self.parameter} = {self.value:.4g} gives {target.measure.name} {self.score:.4g}"
        if self.reached is Reached.UNREACHABLE:
            always = target.measure.is_better(self.score, target.value)
            side = " (it is always better than that)" if always else ""
            return f"{target.value:g} is unreachable{side}: the nearest is {at}"
        if self.reached is Reached.NEAREST:
            return f"{at}, {self.nearness(target)}"
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
            quiet = self.run.silent()
            trials = [
                attempt(recipe, self.table, [measure], quiet, replicate=replicate, **self.options)
                for replicate in range(self.repeats)
            ]
            self.tried[value] = float(
                np.mean([usable(measure, trial.scores[str(measure)]) for trial in trials])
            )
        return self.tried[value]

    def miss(self, value: float) -> float:
        """How far, and on which side, the level is missed at a value."""
        return self(value) - self.target.value

    def best(self, start: float) -> float:
        """The value to take: the first that meets the level, coming from ``start``; else the nearest.

        A risk that cannot be met exactly is taken on the safe side, when that side was seen.
        """
        target, measure = self.target, self.target.measure
        met = [value for value, score in self.tried.items() if target.met_by(score)]
        if met:
            return min(met, key=lambda value: abs(value - start))
        values = sorted(self.tried)
        if measure.aspect == "risk":
            safe = [value for value in values if measure.is_better(self.tried[value], target.value)]
            values = safe or values
        return min(values, key=lambda value: abs(self.tried[value] - target.value))


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

    The measure is taken to be monotone in tendency, not in each draw. From the end of the range that
    misses the level by more, the values in between are looked at until the level is passed or met; then
    the gap is narrowed, with the same replicates at every value, until the mean is within tolerance or the
    parameter cannot be set more finely. Where the measure has levelled off, and many values give the level,
    the first of them is taken: it changes the data least.
    """
    drive = step.method.drive()
    if drive is None:
        raise ParameterError(f"{step.method.name} must have a drive parameter to reach a level, got: none")
    options = {"scenario": scenario, "resources": resources}
    probe = _Probe(step, table, target, run, repeats=repeats, options=options)
    ends = step.method.drive_range(table)
    values = _with_numbers(probe, drive.grid(_SCAN_POINTS, low=ends[0], high=ends[1]))
    if abs(probe.miss(values[-1])) > abs(probe.miss(values[0])):
        values.reverse()
    bracketed = _approach(probe, drive, values)
    value = probe.best(start=values[0])
    score = probe(value)
    if target.met_by(score):
        reached = Reached.WITHIN
    else:
        reached = Reached.NEAREST if bracketed else Reached.UNREACHABLE
    found = replace(step, method=step.method.with_drive(value))
    return Level(found, drive.name, value, score, reached, dict(sorted(probe.tried.items())))


def _with_numbers(probe: _Probe, values: Sequence[float]) -> list[float]:
    """Leave out settings at the ends at which the method refuses or the measure has no number."""
    kept, reasons = list(values), []
    for end in (-1, 0):
        while kept:
            try:
                probe(kept[end])
                break
            except CANNOT as error:
                reasons.append(error)
                kept.pop(end)
    if not kept:
        raise reasons[0]
    return kept


def _approach(probe: _Probe, drive: Param, values: Sequence[float]) -> bool:
    """Walk towards the level until it is passed or met, and narrow the gap; False if it never is."""
    if probe.target.met_by(probe(values[0])):
        return True
    if probe.miss(values[0]) * probe.miss(values[-1]) < 0:  # the ends tell enough: no need to scan
        _narrow(probe, drive, values[0], values[-1])
        return True
    for before, after in pairwise(values):
        passed = probe.miss(before) * probe.miss(after) < 0
        if passed or probe.target.met_by(probe(after)):
            _narrow(probe, drive, before, after)
            return True
    return False


def _narrow(probe: _Probe, drive: Param, first: float, second: float) -> None:
    """Narrow a bracket: by the straight line between its ends, by halving when that is slow.

    ``second`` lies beyond the level, or meets it without being beyond; then the first value that meets it
    is looked for by halving.
    """
    low, high = (drive.position(end) for end in drive.tune or (first, second))
    for turn in range(_MOST_STEPS):
        left, right = drive.position(first), drive.position(second)
        below, above = probe.miss(first), probe.miss(second)
        beyond = below * above < 0
        share = min(max(below / (below - above), 0.05), 0.95) if beyond and turn % 2 == 0 else 0.5
        value = drive.at(left + share * (right - left))
        if value in {first, second}:  # a whole number between neighbours: try the middle, then give up
            value = drive.at((left + right) / 2)
        if value in {first, second} or abs(right - left) < _FINENESS * abs(high - low):
            return
        if probe.target.met_by(probe(value)) and beyond:
            return
        if probe.target.met_by(probe(value)) or probe.miss(value) * below < 0:
            second = value
        else:
            first = value
