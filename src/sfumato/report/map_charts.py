"""The risk–utility map to work with: a level to move, candidates to pick, and points as they settle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.report import frame
from sfumato.report.charts import risk_utility_map
from sfumato.report.frame import Row, Spec, chart, inline, layer, layer_charts, nominal, tips
from sfumato.report.words import figure

#: How the present recipe and the original are drawn, by their names.
_STYLES: Mapping[str, Spec] = {
    "you": {"shape": "diamond", "filled": True, "color": frame.INK, "size": 200},
    "original": {"shape": "circle", "filled": False, "color": frame.MUTED, "size": 200, "strokeDash": [3, 3]},
}
#: What the line to move is called for who does not see it.
HANDLE = "The level, to drag"
_PLACE: Spec = {
    "x": {"field": "risk", "type": "quantitative"},
    "y": {"field": "utility", "type": "quantitative"},
}
#: The same for data that may be empty: an axis would make an extent of nothing.
_PLACE_IF_ANY: Spec = {
    "x": {"value": {"expr": "scale('x', datum.risk)"}},
    "y": {"value": {"expr": "scale('y', datum.utility)"}},
}


def movable_map(twin: Mapping[str, Any], marks: Sequence[Row]) -> Spec:
    """The map of a study with ``marks`` (*you*, the *original*), a level to move and candidates to pick.

    A page sets the parameter ``level`` and the data ``at_level`` (methods at the level, where they are
    estimated) and ``picked`` (candidates that are ringed); a click tells the ``id`` of its row.
    """
    axis = "x" if twin["held"]["aspect"] == "risk" else "y"
    spec = risk_utility_map(twin, marks, beneath=_handle(axis))
    words = spec["usermeta"]
    reads = f"{words['subtitle']} The blue line is the level that you move; rings on it are estimates there."
    return {
        **spec,
        "usermeta": {**words, "subtitle": reads},
        "description": f"{words['title']}. {reads}",
        "params": [{"name": "level", "value": twin["held"]["level"]}],
        "layer": [*spec["layer"], *_marks(marks), *_picking()],
    }


def _marks(marks: Sequence[Row]) -> list[Spec]:
    """The present recipe and the original, each with its name beside it."""
    rows = [
        {**mark, **{f"{name}_text": figure(mark[name]) for name in ("risk", "utility")}} for mark in marks
    ]
    tooltip = tips(label="What", risk_text="Risk", utility_text="Utility")
    name = {**_PLACE, "text": nominal("short")}
    style: Spec = {"align": "left", "dx": 11, "dy": -9, "color": frame.INK, "fontSize": 12}
    return [
        layer_charts(
            layer("point", {**_PLACE, "tooltip": tooltip}, strokeWidth=2, opacity=1, **_STYLES[row["id"]]),
            layer("text", name, **style),
            rows=[row],
        )
        for row in rows
    ]


def _picking() -> list[Spec]:
    """Methods at the level that was moved, and a ring around what is picked."""
    tooltip = tips(label="Method", rank="Rank", risk_text="Risk", utility_text="Utility (estimated)")
    estimate: Spec = {"filled": False, "size": 150, "strokeWidth": 2.5, "color": frame.COLOR, "opacity": 1}
    ring: Spec = {"filled": False, "size": 620, "strokeWidth": 3, "color": frame.INK, "opacity": 1}
    return [
        {**layer("point", {**_PLACE_IF_ANY, "tooltip": tooltip}, **estimate), "data": _page_data("at_level")},
        {**layer("point", _PLACE_IF_ANY, **ring), "data": _page_data("picked")},
    ]


def _page_data(name: str) -> Spec:
    """Data that a page fills."""
    return {"name": name, **inline([])}


def _handle(axis: str) -> list[Spec]:
    """The level as a line, with room around it to take hold of."""
    place = {axis: {"value": {"expr": f"scale('{axis}', level)"}}}
    cursor = "ew-resize" if axis == "x" else "ns-resize"
    row = [{"handle": True}]
    return [
        layer("rule", place, rows=row, color=frame.COLOR, strokeWidth=2.5),
        layer("rule", place, rows=row, strokeWidth=18, opacity=0, cursor=cursor, description=HANDLE),
    ]


def settled_map(risk: Mapping[str, Any], utility: Mapping[str, Any], rows: Sequence[Row]) -> Spec:
    """What is settled of a comparison that is still running: methods, and the settings of their lines."""
    named = [
        {**row, "risk_text": figure(row["risk"]), "utility_text": figure(row["utility"])} for row in rows
    ]
    axes = {
        "x": frame.quantitative("risk", f"{frame.arrow(risk)} {risk['title']}", scale=_scale(rows, "risk")),
        "y": frame.quantitative("utility", utility["title"], scale=_scale(rows, "utility")),
    }
    legend = {"orient": "bottom", "columns": 2, "title": None}
    color = nominal("label", list(dict.fromkeys(row["label"] for row in rows)), legend=legend)
    tooltip = tips(label="Method", risk_text=risk["title"], utility_text=utility["title"])
    lined = {**axes, "color": color, "order": {"field": "order"}}
    return chart(
        f"{utility['title']} against {risk['title']}",
        "Points appear as they settle.",
        layer("line", lined, where=["isValid(datum.order)"], strokeWidth=1.5, opacity=0.85),
        layer("point", {**axes, "color": color, "tooltip": tooltip}, filled=True, size=90, opacity=1),
        rows=named,
        height=320,
    )


def _scale(rows: Sequence[Row], field: str) -> Spec:
    return frame.scale([row[field] for row in rows], padding=14, with_zero=True)
