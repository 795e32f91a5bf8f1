"""Alternatives that a search for a recipe rejected, and why."""

from __future__ import annotations

from typing import Any

from sfumato.recipes.recipe import Recipe
from sfumato.report.content import public_loss
from sfumato.tuning.tuning_result import TuningResult, describe


def rejected_candidates(
    found: TuningResult | None, taken: Recipe, *, public: bool = False, grain: float = 0.0
) -> list[dict[str, Any]]:
    """The candidates of a search that were not taken, the nearest first; in public no parameter or score."""
    if found is None:
        return []
    measure = found.judge.utilities[0]
    entries: list[dict[str, Any]] = []
    if found.recipe != taken:
        why = "met all requirements in the search, but not in the final check"
        entries.append(_entry(found.recipe, why, measure.title, None, public=public))
    for each in found.runners_up:
        if each.recipe == taken:
            continue
        differs = found.best.utilities[0].differs_from(each.utilities[0])
        why = f"meets all requirements, but loses {'more' if differs else 'no less'}"
        entries.append(_entry(each.recipe, why, measure.title, each.utilities[0].mean, public=public))
    for candidate, result in found.found.failed:
        missed = "" if public else f": {'; '.join(found.judge.missed_demands(result))}"
        why = f"met all requirements in the search, but not in fresh runs{missed}"
        entries.append(_entry(candidate.recipe, why, measure.title, None, public=public))
    entries += [
        {
            "recipe": name,
            "why": "cannot meet the requirements on its own" + ("" if public else f": {reason}"),
            "measure": measure.title,
            "loss": None,
        }
        for name, reason in found.found.unreachable.items()
    ]
    if not public:
        return entries
    # What was rejected was not kept, so it is unknown whether a few people account for its loss.
    for entry in entries:
        entry["loss"] = public_loss(measure, entry["loss"], hides_each=False, grain=grain)
    return list({(entry["recipe"], entry["why"]): entry for entry in reversed(entries)}.values())[::-1]


def _entry(recipe: Recipe, why: str, measure: str, loss: float | None, *, public: bool) -> dict[str, Any]:
    title = "; then ".join(step.method.title for step in recipe.steps) if public else describe(recipe)
    return {"recipe": title or "the original data", "why": why, "measure": measure, "loss": loss}
