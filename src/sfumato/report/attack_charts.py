"""Charts of attacks: what came true of people in the release, held against chance and against strangers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.report.marks import GREY_FILL, INK, MUTED, Spec, chart, inline, tip
from sfumato.report.strip_charts import COLOR, label_axis
from sfumato.report.words import figure

_LINE = 30


def drawable(entries: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The risks that run from 0 to 1 and have a number."""
    return [each for each in entries if each["value"] is not None and each["share"]]


def attack_chart(entries: Sequence[Mapping[str, Any]]) -> Spec:
    """A dot for each risk with its interval; a tick for the blind guess, a diamond for strangers."""
    several = len({each["scenario"] for each in entries}) > 1
    rows = [
        {
            "label": each["title"] + (f" ({each['scenario']})" if several else ""),
            "value": each["value"], "original": each.get("original"),
            "low": each["interval"][0] if each["interval"] else None,
            "high": each["interval"][1] if each["interval"] else None,
            "baseline": each["baseline"], "control": each["control"], "rate": each["rate"],
            "said": figure(each["value"]), "words": each["words"],
        }
        for each in entries
    ]  # fmt: skip
    y = label_axis(rows)
    x = {
        "type": "quantitative", "title": "share of people, or chance (0 to 1; lower is safer)",
        "scale": {"domain": [0, 1]}, "axis": {"tickCount": 6},
    }  # fmt: skip
    tips = [tip("label", "Measure"), tip("said", "Release"), tip("words", "In words")]

    def mark(field: str, mark: Spec) -> Spec:
        return {
            "transform": [{"filter": f"isValid(datum.{field})"}],
            "mark": mark,
            "encoding": {"y": y, "x": {**x, "field": field}, "tooltip": tips},
        }

    interval = {
        "transform": [{"filter": "isValid(datum.low)"}],
        "mark": {"type": "rule", "strokeWidth": 2.5, "opacity": 0.55, "color": COLOR},
        "encoding": {"y": y, "x": {**x, "field": "low"}, "x2": {"field": "high"}},
    }
    between = {
        "transform": [{"filter": "isValid(datum.rate)"}],
        "mark": {"type": "rule", "strokeDash": [2, 3], "color": MUTED},
        "encoding": {"y": y, "x": {**x, "field": "control"}, "x2": {"field": "rate"}},
    }
    grey = {"type": "point", "filled": True, "color": GREY_FILL, "opacity": 1, "size": 110}
    return chart(
        "A blue dot is the risk of the release, the line through it its interval; a grey dot is the "
        "original, where that can be measured alone; a black tick is what a blind guess scores. Of attacks "
        "with a control the open circle is how often they are right of people in the release, the open "
        "diamond of people who are not: the risk is what lies between the two.",
        data=inline(rows),
        height=_LINE * max(len(rows), 1),
        layer=[
            mark("original", {**grey, "stroke": MUTED, "strokeWidth": 0.5}),
            interval,
            mark("baseline", {"type": "tick", "color": INK, "thickness": 2, "size": 18}),
            between,
            mark("rate", {"type": "point", "color": COLOR, "size": 70, "filled": False}),
            mark("control", {"type": "point", "shape": "diamond", "color": INK, "size": 90, "filled": False}),
            mark("value", {"type": "point", "filled": True, "size": 100, "color": COLOR, "opacity": 1}),
        ],
    )
