"""Risk and loss by group, where something is required in every group: for the owner alone."""

from __future__ import annotations

from typing import Any

from sfumato.core.group_measure import GroupMeasure
from sfumato.report.release_scores import ReleaseScores
from sfumato.report.words import finite


def group_scores(found: ReleaseScores) -> list[dict[str, Any]]:
    """Of each sort of groups a table: every group, how many records it has, and its scores."""
    judged = [(each.requirement.measure, each.scenario, each.score) for each in found.part.judgements]
    scored = [*judged, *((measure, "", score) for measure, score in found.by_group.values())]
    tables: dict[str, dict[str, Any]] = {}
    for measure, scenario, score in scored:
        if not isinstance(measure, GroupMeasure) or not score.by_value:
            continue
        records, values = score.by_value["records"], score.by_value["score"]
        empty: dict[str, Any] = {"groups": str(measure.groups), "rows": {}, "worst": {}}
        table = tables.setdefault(str(measure.groups), empty)
        side = {"risk": f"{measure.side()}{f', {scenario}' if scenario else ''}"}
        title = f"{measure.inner.title or measure.name} ({side.get(measure.aspect, measure.side())})"
        table["worst"][title] = measure.worst_group(values)
        for name, value in values.items():
            row = table["rows"].setdefault(name, {"group": name, "records": int(records[name]), "scores": {}})
            row["scores"][title] = finite(value)
    return [{**each, "rows": list(each["rows"].values())} for each in tables.values()]
