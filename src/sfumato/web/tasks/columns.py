"""A column before and after: a spark at once, and what its drawer shows. Quantiles are never written down."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sfumato.data.scenario import Scenario
from sfumato.data.schema import Column, Role
from sfumato.errors import SfumatoError
from sfumato.releasing.key_exposure import key_exposure_of
from sfumato.releasing.outcome import PlanOutcome, TableOutcome
from sfumato.study.column_sentences import ColumnSentence
from sfumato.web.tasks.base import TASKS, Desk, read_plan, task
from sfumato.web.tasks.hierarchies import require_number, view_hierarchy

#: Bars of a spark and their height, in units of its drawing; columns that have one.
_MOST_BARS, _HEIGHT, _MOST_SPARKS = 24, 20, 200
#: The shares of the records at or below which quantiles are told.
_LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9)
#: The key of the release in what the report draws.
_RELEASE = "release"


def keep_columns(desk: Desk, toml: str, outcome: PlanOutcome) -> dict[str, dict[str, list[int]]]:
    """The spark of each column about people that is released; what came of the plan stays for its drawers."""
    from sfumato.report.content import about_people

    desk.outcome = (toml, outcome)
    sparks: dict[str, dict[str, list[int]]] = {}
    for part in outcome.parts.values():
        there = part.release.reading().schema
        names = [name for name in about_people(part.original) if name in there][:_MOST_SPARKS]
        drawn = {entry["column"]: _spark(entry) for entry in _distributions(part, names, public=False)}
        sparks |= {name: spark for name, spark in drawn.items() if spark}
    return sparks


def _distributions(part: TableOutcome, names: Sequence[str], *, public: bool) -> list[dict[str, Any]]:
    """The columns as the report draws them."""
    from sfumato.report.content import pictured_tables
    from sfumato.report.distributions import distributions

    original, releases, _ = pictured_tables(part.original, {_RELEASE: part.release}, public=public)
    return distributions(original, releases, names, public=public)


def _spark(entry: dict[str, Any]) -> dict[str, list[int]]:
    """Heights of bars before and after, without any value; neighbours are put together until they are few."""
    if not entry["drawn"] or _RELEASE not in entry["shares"]:
        return {}
    bars = [_merge(entry["shares"][key]) for key in ("original", _RELEASE)]
    top = max(map(max, bars)) or 1.0
    before, after = ([math.ceil(_HEIGHT * share / top) for share in each] for each in bars)
    return {"before": before, "after": after}


def _merge(shares: Sequence[float]) -> list[float]:
    width = math.ceil(len(shares) / _MOST_BARS)
    return [sum(shares[start : start + width]) for start in range(0, len(shares), width)]


@task
def describe_column(desk: Desk, toml: str, *, number: int) -> dict[str, Any]:
    """What the drawer of a column shows: what became of it, how it is distributed, whom it singles out.

    Where nothing comes of the plan the drawer says why, and its hierarchy can still be changed.
    """
    plan = read_plan(toml)
    table = desk.table(plan)
    column = table.schema[table.names[require_number(number, table)]]
    content: dict[str, Any] = {
        "name": column.name, "label": column.label, "kind": column.kind.value,
        "role": column.role.value if column.role else "", "fault": "", "became": None, "hierarchy": None,
    }  # fmt: skip
    try:
        part = next(iter(_outcome_of(desk, toml).parts.values()))
        content["became"] = _became(desk, part, column) | {"sampled": len(part.original) < len(table)}
    except SfumatoError as error:
        content["fault"] = error.message
    if column.role is Role.KEY:
        content["hierarchy"] = view_hierarchy(plan, table, column.name)
    return content


def _became(desk: Desk, part: TableOutcome, column: Column) -> dict[str, Any]:
    """What became of a column, in words, counts and shapes."""
    loss = next(each for each in part.lost if each.column == column.name)
    present = int((~part.original.missing(column.name)).sum())
    return {
        "sentence": str(ColumnSentence(loss)), "records": len(part.original), "present": present,
        "suppressed": round(loss.shares.get("suppressed", 0.0) * present),
        "exposure": _exposure(desk, part, column.name) if column.role is Role.KEY else {},
        **_shape(part, column.name),
    }  # fmt: skip


def _outcome_of(desk: Desk, toml: str) -> PlanOutcome:
    """What came of a plan, as it was scored last or else is scored now."""
    if desk.outcome is None or desk.outcome[0] != toml:
        TASKS["score"](desk, toml)
    assert desk.outcome is not None
    return desk.outcome[1]


def _shape(part: TableOutcome, name: str) -> dict[str, Any]:
    """The bars of a column; of numbers and dates quantiles, of others the shares of values that many have."""
    if part.original.schema[name].role is Role.IDENTIFIER:
        return {"spark": {}, "note": "", "quantiles": None, "shares": None}
    entry = _distributions(part, [name], public=False)[0]
    content = {"spark": _spark(entry), "note": entry.get("note", ""), "quantiles": None, "shares": None}
    if entry["drawn"] == "histogram" and entry["quantiles"]:
        content["quantiles"] = _quantiles(entry)
    elif entry["drawn"] == "bars":
        public = _distributions(part, [name], public=True)[0]
        content["shares"] = _shares(public) if public["drawn"] else None
        content["note"] = public.get("note", "")
    return content


def _quantiles(entry: dict[str, Any]) -> list[dict[str, Any]]:
    """Some quantiles before and after; dates as such."""
    levels, values = entry["quantiles"]["levels"], entry["quantiles"]["values"]
    places = [levels.index(each) for each in _LEVELS]
    return [
        {
            "share": levels[place],
            "before": _as_shown(entry, values["original"][place]),
            "after": _as_shown(entry, values[_RELEASE][place]) if _RELEASE in values else None,
        }
        for place in places
    ]


def _as_shown(entry: dict[str, Any], value: float) -> float | str:
    if entry["axis"] != "date":
        return value
    from datetime import UTC, datetime, timedelta

    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=value)).date().isoformat()


def _shares(entry: dict[str, Any]) -> list[dict[str, Any]]:
    """The share of each value before and after."""
    after = entry["shares"].get(_RELEASE) or [None] * len(entry["categories"])
    rows = zip(entry["categories"], entry["shares"]["original"], after, strict=True)
    return [{"value": value, "before": old, "after": new} for value, old, new in rows]


def _exposure(desk: Desk, part: TableOutcome, name: str) -> dict[str, Any]:
    """Whom a key alone singles out, in the original and in the release."""
    alone = replace(part.plan, scenarios=(Scenario(columns=(name,)),))
    run = desk.run().silent()
    found = {
        when: key_exposure_of(alone, part.original, release, run)
        for when, release in (("before", None), ("after", part.release))
        if release is None or name in release.reading().schema
    }
    return {
        when: {"k": each.k, "alone": each.alone, "of": each.of, "counted": each.counted}
        for when, each in found.items()
        if each is not None
    }
