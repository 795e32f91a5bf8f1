"""The risk–utility map: what each method gives over the range of its drive parameter."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sfumato.core.measure import Measure
from sfumato.core.run import Run
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.study._probe import Probe
from sfumato.study.evaluate import EvaluationCase, evaluate, usable


@dataclass(frozen=True)
class Point:
    """One method at one value of its drive: the mean of each measure over the replicates.

    ``step`` is the method at this value, on its columns.
    """

    method: str
    title: str
    parameter: str
    value: float
    risk: float
    utility: float
    on_front: bool = False
    step: Step | None = field(default=None, repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON and for charts."""
        return {name: value for name, value in vars(self).items() if name != "step"}


def frontier(
    steps: Sequence[Step],
    case: EvaluationCase,
    risk: Measure,
    utility: Measure,
    run: Run,
    *,
    points: int = 7,
    repeats: int = 1,
) -> tuple[Point, ...]:
    """Score every method over a grid of its drive, and mark the points no other beats on both axes."""
    probes = [Probe(step, case, [risk, utility], run, repeats=repeats) for step in steps]
    grid = [(probe, value) for probe in probes for value in probe.grid(points)]
    found = []
    for probe, value in run.track("risk–utility map", grid, total=len(grid)):
        method, name = probe.step.method, probe.drive.name if probe.drive else ""
        means = probe.mean(risk, value), probe.mean(utility, value)
        found.append(Point(method.name, method.title, name, value, *means, step=probe.at(value).step))
    return mark_front(found, risk, utility)


def place_recipe(
    recipe: Recipe, case: EvaluationCase, axes: tuple[Measure, Measure], run: Run, *, title: str
) -> Point:
    """Where a recipe lies on the map, by one run of it; one without steps is the original."""
    scores = evaluate(recipe.apply(case.table, run), case, axes, run.silent()).scores
    risk, utility = (usable(measure, scores[str(measure)]) for measure in axes)
    return Point("", title, "", math.nan, risk, utility)


def mark_front(points: Iterable[Point], risk: Measure, utility: Measure) -> tuple[Point, ...]:
    """Mark the points that no other point beats on one axis without losing on the other."""
    points = list(points)
    costs = np.array([[_cost(risk, each.risk), _cost(utility, each.utility)] for each in points])
    costs = costs.reshape(-1, 2)
    return tuple(replace(each, on_front=not is_dominated_at(costs, i)) for i, each in enumerate(points))


def _cost(measure: Measure, value: float) -> float:
    return value if measure.better == "low" else -value


def is_dominated_at(costs: np.ndarray[Any, Any], place: int) -> bool:
    """Whether another row of costs is nowhere higher and somewhere lower than the one in this place."""
    own = costs[place]
    return bool(((costs <= own).all(axis=1) & (costs < own).any(axis=1)).any())
