"""Candidates of a search or a comparison as the page shows them: setting, risk, loss, or why not ranked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.core.measure import Measure
from sfumato.core.requirement import parse_measure
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.report.charts import point_id
from sfumato.report.words import remark
from sfumato.study.compare import MethodAtLevel, Study
from sfumato.study.frontier import Point
from sfumato.study.known_levels import at_level, same_method
from sfumato.study.level import LevelStatus, Target
from sfumato.tuning.tuning_result import describe


def candidate_of(content: Mapping[str, Any]) -> dict[str, Any]:
    """What a search (it has ``steps``) or a comparison tells of a candidate or line once it is settled."""
    if "line" in content:
        first = content["line"][0]
        points = [{"risk": each["risk"], "utility": each["utility"]} for each in content["line"]]
        return {**_candidate(first["title"] or first["method"], content["axes"], None), "line": points}
    if "steps" in content:
        return _of_search(content)
    ranked, drive = content["ranked"], content["drive"]
    at = f", {drive} = {_short(content['parameters'].get(drive))}" if drive else ""
    why = content["apart"] or ("" if ranked else content["reason"] or content["reached"])
    name = content["title"] or content["method"]
    return {**_candidate(f"{name}{at}", content["axes"], ranked, why, risk=content["held"]), "method": name}


def _of_search(content: Mapping[str, Any]) -> dict[str, Any]:
    name, spread = next(iter(content["utility"].items()))
    made = _candidate(describe(Recipe.from_list(content["steps"])), ["", name], spread)
    return {**made, "steps": content["steps"]}


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _candidate(
    label: str,
    axes: Sequence[str],
    spread: Mapping[str, Any] | None,
    why: str = "",
    *,
    risk: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """One line; ``order`` sorts the best first, and what has no number has none."""
    measure, value = parse_measure(axes[1]), _finite(spread)
    order = None if value is None else value if measure.better == "low" else -value
    return {
        "label": label, "method": label, "value": value, "order": order,
        "measure": measure.title or measure.name, "better": measure.better, "interval": _interval(spread),
        "why_not": why, "steps": None, "line": [],
        "risk": {**axis_of(parse_measure(axes[0])), "value": _finite(risk), "interval": _interval(risk)}
        if axes[0] else None,
    }  # fmt: skip


def _finite(spread: Mapping[str, Any] | None) -> float | None:
    return spread["mean"] if spread and math.isfinite(spread["mean"]) else None


def _interval(spread: Mapping[str, Any] | None) -> list[float] | None:
    return list(spread["interval"]) if spread and _finite(spread) is not None else None


def axis_of(measure: Measure) -> dict[str, Any]:
    """A measure as an axis of the map."""
    return {"title": measure.title or measure.name, "better": measure.better, "direction": measure.side()}


def ranking_at(study: Study, level: float, labels: Sequence[str]) -> list[dict[str, Any]]:
    """The methods in the order of a study at a level; those not ranked say what they miss, and by how much.

    ``labels`` name the methods of the study at its own level, which keep their names at others.
    """
    moved = at_level(study, level)
    places = [
        next(place for place, own in enumerate(study.outcomes) if own is each or same_method(own, each))
        for each in moved.outcomes
    ]
    names, axes = [labels[place] for place in places], [str(each) for each in study.axes]
    return [
        {
            **candidate_of({**each.to_dict(), "axes": axes}),
            "id": f"m{place}",
            "label": labels[place],
            "setting": _setting(each.step, each.level.value),
            "rank": each.rank,
            "estimated": each.level.reached is LevelStatus.ESTIMATED,
            "remark": _remark(each, [names[at] for at in each.tied_with], moved.target) if each.rank else "",
            "why_not": "" if each.rank else _why_not(each, moved.target),
            "steps": [each.step.to_dict()] if each.rank else None,
        }
        for place, each in zip(places, moved.outcomes, strict=True)
    ]


def _setting(step: Step, value: float) -> str:
    drive = step.method.drive()
    if drive is None or not math.isfinite(value):
        return ""
    return f"{drive.name} = {_short(value)} {drive.unit}".strip()


def _remark(outcome: MethodAtLevel, tied: Sequence[str], target: Target) -> str:
    words = (outcome.level.reason, remark(outcome, tied, target=target))
    return "; ".join(each for each in words if each)


def _why_not(outcome: MethodAtLevel, target: Target) -> str:
    if not outcome.why_not_ranked or outcome.held is None:
        return outcome.why_not_ranked or outcome.level.sentence(target)
    mean = outcome.held.mean
    return (
        f"{outcome.why_not_ranked}: {target.measure.title} {mean:.4g}, which misses {target.value:.4g} by "
        f"{abs(mean - target.value):.4g}"
    )


def points_of(study: Study, content: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every setting of the map that was measured, by the name that the chart gives it."""
    steps = {
        each["key"]: outcome.step for each, outcome in zip(content["outcomes"], study.outcomes, strict=True)
    }
    labels, axes = {each["key"]: each["label"] for each in content["outcomes"]}, study.axes
    return [
        {
            **_place_entry(point_id(place), labels[each["key"]], each["risk"], each["utility"], axes),
            "setting": _setting(steps[each["key"]], each["value"]),
            "front": each["front"],
            "steps": [steps[each["key"]].with_drive(each["value"]).to_dict()],
        }
        for place, each in enumerate(content["map"])
    ]


def mark_of(name: str, point: Point, study: Study) -> dict[str, Any]:
    """The present recipe or the original, as a candidate that is there to compare with."""
    return {
        **_place_entry(name, point.title, point.risk, point.utility, study.axes),
        "setting": "",
        "front": None,
    }


def _place_entry(
    name: str, label: str, risk: float, utility: float, axes: tuple[Measure, Measure]
) -> dict[str, Any]:
    """A place of the map that one run has measured."""
    spreads = [{"mean": value, "interval": (value, value)} for value in (utility, risk)]
    made = _candidate(label, [str(each) for each in axes], spreads[0], risk=spreads[1])
    return {**made, "id": name, "rank": None, "estimated": False, "remark": "by one run"}
