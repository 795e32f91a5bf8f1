"""The risk–utility map: what each method gives over the range of its drive parameter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sfumato.core.measure import Measure
from sfumato.core.run import Run
from sfumato.data.evidence import Scenario
from sfumato.data.table import Table
from sfumato.errors import ParameterError
from sfumato.recipes.recipe import Recipe, Step
from sfumato.study.evaluate import attempt, usable


@dataclass(frozen=True)
class Point:
    """One method at one value of its drive: the mean of each measure over the replicates."""

    method: str
    title: str
    parameter: str
    value: float
    risk: float
    utility: float
    on_front: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Say the point for charts and for machines."""
        return dict(vars(self))


def frontier(
    steps: Sequence[Step],
    table: Table,
    risk: Measure,
    utility: Measure,
    run: Run,
    *,
    points: int = 7,
    repeats: int = 1,
    scenario: Scenario | None = None,
    resources: Mapping[str, Any] | None = None,
) -> tuple[Point, ...]:
    """Score every method over a grid of its drive, and mark the points no other beats on both axes."""
    options = {"scenario": scenario, "resources": resources}
    grid = [(step, value) for step in steps for value in _grid(step, table, points)]
    quiet = run.silent()
    found = []
    for step, value in run.track("risk–utility map", grid, total=len(grid)):
        recipe = Recipe((replace(step, method=step.method.with_drive(value)),))
        trials = [
            attempt(recipe, table, [risk, utility], quiet, replicate=replicate, **options)  # type: ignore[arg-type]
            for replicate in range(repeats if step.method.stochastic else 1)
        ]
        drive = step.method.drive()
        assert drive is not None
        means = [
            float(np.mean([usable(measure, trial.scores[str(measure)]) for trial in trials]))
            for measure in (risk, utility)
        ]
        found.append(Point(step.method.name, step.method.title, drive.name, value, means[0], means[1]))
    return mark_front(found, risk, utility)


def _grid(step: Step, table: Table, points: int) -> list[float | int]:
    drive = step.method.drive()
    if drive is None:
        raise ParameterError(f"{step.method.name} must have a drive parameter to be mapped, got: none")
    low, high = step.method.drive_range(table)
    return drive.grid(points, low=low, high=high)


def mark_front(points: Iterable[Point], risk: Measure, utility: Measure) -> tuple[Point, ...]:
    """Mark the points that no other point beats on one axis without losing on the other."""
    points = list(points)
    costs = np.array([[_cost(risk, point.risk), _cost(utility, point.utility)] for point in points]).reshape(
        -1, 2
    )
    return tuple(
        replace(point, on_front=not _beaten(costs, position)) for position, point in enumerate(points)
    )


def _cost(measure: Measure, value: float) -> float:
    return value if measure.better == "low" else -value


def _beaten(costs: np.ndarray[Any, Any], position: int) -> bool:
    own = costs[position]
    return bool(((costs <= own).all(axis=1) & (costs < own).any(axis=1)).any())
