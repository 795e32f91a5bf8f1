"""Candidates of a search or a comparison as the page lists them: what each loses, or why it has no rank."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from sfumato.core.measure import Measure
from sfumato.core.requirement import parse_measure
from sfumato.recipes.recipe import Recipe
from sfumato.study.compare import MethodAtLevel, Study
from sfumato.study.target import RANKED_BY
from sfumato.tuning.tuning_result import describe


def candidate_of(content: Mapping[str, Any]) -> dict[str, Any]:
    """What a search (it has ``steps``) or a comparison tells of a candidate once it is settled."""
    if "steps" in content:
        return _of_search(content)
    ranked, drive = content["ranked"], content["drive"]
    at = f", {drive} = {_short(content['parameters'].get(drive))}" if drive else ""
    why = content["apart"] or ("" if ranked else content["reason"] or content["reached"])
    label = f"{content['title'] or content['method']}{at}"
    return _candidate(label, parse_measure(RANKED_BY), ranked, why)


def _of_search(content: Mapping[str, Any]) -> dict[str, Any]:
    name, spread = next(iter(content["utility"].items()))
    made = _candidate(describe(Recipe.from_list(content["steps"])), parse_measure(name), spread)
    return {**made, "steps": content["steps"]}


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _candidate(
    label: str, measure: Measure, spread: Mapping[str, Any] | None, why: str = ""
) -> dict[str, Any]:
    """One line; ``order`` sorts the best first, and what has no number has none."""
    value = spread["mean"] if spread and math.isfinite(spread["mean"]) else None
    order = None if value is None else value if measure.better == "low" else -value
    interval = list(spread["interval"]) if spread and value is not None else None
    return {
        "label": label, "value": value, "order": order, "measure": measure.title or measure.name,
        "better": measure.better, "interval": interval, "why_not": why, "steps": None,
    }  # fmt: skip


def ranking_of(study: Study, content: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The methods of a study in its order, each with its setting as a recipe; those not ranked say why."""
    return [
        {
            **candidate_of(outcome.to_dict()),
            "label": entry["label"],
            "setting": _setting(entry),
            "rank": outcome.rank,
            "remark": entry["remark"] if outcome.rank else "",
            "why_not": "" if outcome.rank else _why_not(outcome, study),
            "steps": [outcome.step.to_dict()] if outcome.rank else None,
        }
        for outcome, entry in zip(study.outcomes, content["outcomes"], strict=True)
    ]


def _setting(entry: Mapping[str, Any]) -> str:
    if not entry["parameter"] or entry["value"] is None:
        return ""
    return f"{entry['parameter']} = {_short(entry['value'])} {entry['unit']}".strip()


def _why_not(outcome: MethodAtLevel, study: Study) -> str:
    return outcome.why_not_ranked or outcome.level.sentence(study.target)
