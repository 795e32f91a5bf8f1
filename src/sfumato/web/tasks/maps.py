"""The map of a comparison: its ranking at each level, the settings measured, you and the original."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.core.run import Run
from sfumato.recipes.recipe import Recipe
from sfumato.report.map_charts import movable_map, settled_map
from sfumato.study.compare import Study
from sfumato.study.evaluate import EXPECTED_ERRORS, EvaluationCase
from sfumato.study.frontier import place_recipe
from sfumato.study.known_levels import known_levels
from sfumato.web.candidates import axis_of, mark_of, points_of, ranking_at
from sfumato.web.tasks.base import Desk, task

#: What is marked on the map beside the methods.
_MARKS = {"you": "Your recipe", "original": "The original"}


def mark_recipes(study: Study, recipe: Recipe, case: EvaluationCase, run: Run) -> list[dict[str, Any]]:
    """Where the present recipe and the original lie, as far as they have both numbers."""
    marks = []
    for name, each in (("you", recipe), ("original", Recipe())):
        try:
            point = place_recipe(each, case, study.axes, run, title=_MARKS[name])
        except EXPECTED_ERRORS:  # it refuses the data, or a measure cannot judge it: it has no place
            continue
        marks.append(mark_of(name, point, study))
    return marks


def map_of(study: Study, content: Mapping[str, Any], marks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """All that the page shows of a comparison; the ranking at every level that the line can be moved to."""
    labels, levels = [each["label"] for each in content["outcomes"]], known_levels(study)
    risk, utility = map(axis_of, study.axes)
    rows = [
        {
            "id": each["id"], "label": each["label"], "short": each["id"],
            "risk": each["risk"]["value"], "utility": each["value"],
        }
        for each in marks
    ]  # fmt: skip
    return {
        "headline": content["headline"],
        "aim": f"{study.aim} against “{study.scenario.name}”",
        "risk": risk,
        "utility": utility,
        "level": study.target.value,
        "levels": levels,
        "rankings": [ranking_at(study, level, labels) for level in levels],
        "points": points_of(study, content),
        "marks": list(marks),
        "charts": {"map": movable_map(content, rows)},
    }


@task
def draw_settled(desk: Desk, *, found: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:  # noqa: ARG001
    """The map of what a comparison has settled so far; none if nothing has a place yet."""
    placed = [each for each in found if each["risk"]]
    rows = [
        {"label": each["method"], "order": order, **place}
        for each in placed
        for order, place in _places(each)
        if all(value is not None and math.isfinite(value) for value in place.values())
    ]
    if not rows:
        return None
    first = placed[0]
    utility = {"title": first["measure"], "better": first["better"]}
    return settled_map(first["risk"], utility, rows)


def _places(settled: Mapping[str, Any]) -> list[tuple[int | None, Mapping[str, Any]]]:
    """The places of a line in their order, or that of one candidate."""
    if settled["line"]:
        return list(enumerate(settled["line"]))
    return [(None, {"risk": settled["risk"]["value"], "utility": settled["value"]})]
