"""Charts as Vega-Lite specifications: pure functions from the report's data to plain dictionaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.report import frame
from sfumato.report.column_charts import charts_of_classes, charts_of_column
from sfumato.report.frame import Row, Spec, chart, layer, layer_charts, nominal, quantitative, tips
from sfumato.report.pair_charts import charts_of_pairs
from sfumato.report.words import figure, setting

#: The room that a method takes in a legend.
_LEGEND_WIDTH = 190


def charts(twin: Mapping[str, Any]) -> dict[str, Spec]:
    """Every chart of a report, by the name of its place on the page."""
    outcomes = twin["outcomes"]
    found: dict[str, Spec] = {}
    if any(outcome["ranked"] for outcome in outcomes):
        found["ranking"] = ranking(twin)
    if twin["map"] or "ranking" in found:
        found["map"] = risk_utility_map(twin)
    for place, entry in enumerate(twin["distributions"]):
        found |= charts_of_column(entry, outcomes, str(place))
    if twin["class_sizes"]:
        found |= charts_of_classes(twin["class_sizes"], outcomes)
    return {**found, **charts_of_pairs(twin["mosaics"], twin["correlations"])}


def ranking(twin: Mapping[str, Any]) -> Spec:
    """The methods at the level: the mean of the ranking measure with its interval."""
    measure = twin["ranked_by"]
    placed = [outcome for outcome in twin["outcomes"] if outcome["ranked"]]
    rows = [
        {
            "label": o["label"], "mean": o["ranked"]["mean"], "low": o["ranked"]["interval"][0],
            "high": o["ranked"]["interval"][1], "text": figure(o["ranked"]["mean"]),
        }
        for o in placed
    ]  # fmt: skip
    values = [row[part] for row in rows for part in ("low", "mean", "high")]
    fitted = frame.scale(values, nice=False, padding=24)
    title = [f"{frame.arrow(measure)} {measure['title']}", measure["direction"]]
    axis, y = frame.ticks(fitted, values), frame.label_axis(rows)
    mean, low = (quantitative(field, title, scale=fitted, axis=axis) for field in ("mean", "low"))
    color, shape = (frame.by_method(placed, channel=channel) for channel in ("color", "shape"))
    interval = {"y": y, "x": low, "x2": {"field": "high"}, "color": color}
    tooltip = tips(label="Method", text=measure["title"])
    dots = {"y": y, "x": mean, "color": color, "shape": shape, "tooltip": tooltip}
    caption = f"{measure['title']} by method"
    scores = ", ".join(f"{row['label']} {row['text']}" for row in rows)
    return chart(
        caption,
        "Dots are means over the runs, bars 95 % intervals; a method without randomness has no interval.",
        layer("rule", interval, strokeWidth=2.5, opacity=0.55),
        layer("point", dots, filled=True, size=130, opacity=1),
        rows=rows,
        height=30 * len(rows),
        description=f"{caption}: {scores}.",
    )


def risk_utility_map(
    twin: Mapping[str, Any], marks: Sequence[Row] = (), *, beneath: Sequence[Spec] = ()
) -> Spec:
    """Every method over its parameter, the level, the front, and the methods at the level.

    ``marks`` are other places that the axes must show, ``beneath`` layers under the methods (see
    `movable_map`).
    """
    held, ranked_by = twin["held"], twin["ranked_by"]
    risk, utility = (held, ranked_by) if held["aspect"] == "risk" else (ranked_by, held)
    labels = {outcome["key"]: outcome["label"] for outcome in twin["outcomes"]}
    points = [
        {**p, "id": point_id(i), "label": labels[p["key"]], "order": i} for i, p in enumerate(twin["map"])
    ]
    reached = [_at_level(o, held["aspect"]) for o in twin["outcomes"] if o["held"] and o["ranked"]]
    seen = {row["label"] for row in (*points, *reached)}
    methods = [outcome for outcome in twin["outcomes"] if outcome["label"] in seen]
    axes = {
        "x": _map_axis("risk", risk, [*points, *marks], reached, upright=False),
        "y": _map_axis("utility", utility, [*points, *marks], reached, upright=True),
    }
    context = _Map(axes, methods, risk, utility)
    axis = "x" if held["aspect"] == "risk" else "y"
    layers = [_band(held, axis), _level_rule(held, axis), *beneath]
    if points:
        layers += context.lines(points, internal=twin["form"] == "internal")
    if reached:
        layers += context.outcomes(reached)
    layers.append(_better_corner(risk, utility))
    caption = f"Risk–utility map: {utility['title']} against {risk['title']}"
    description = f"{caption}, of {len(methods)} methods. {' '.join(twin['verdict'][:2])}"
    reads = "Large marks are the methods compared, with 95 % intervals."
    if points:
        reads = f"Each line is one method over the range of its parameter. {reads}"
    return chart(caption, reads, *layers, height=440, description=description)


def point_id(place: int) -> str:
    """The name of a point of the map; a method at the level is named by its key."""
    return f"p{place}"


def _at_level(outcome: Mapping[str, Any], held_aspect: str) -> Row:
    risk, utility = outcome["held"], outcome["ranked"]
    if held_aspect != "risk":
        risk, utility = utility, risk
    row: Row = {"id": outcome["key"], "label": outcome["label"], "rank": outcome["rank"]}
    for name, spread in (("risk", risk), ("utility", utility)):
        low, high = spread["interval"]
        row |= {name: spread["mean"], f"{name}_low": low, f"{name}_high": high}
        interval = f" ± {figure((high - low) / 2)}" if high > low else ""
        row[f"{name}_text"] = figure(spread["mean"]) + interval
    return row


def _map_axis(
    field: str, measure: Mapping[str, Any], points: Sequence[Row], reached: Sequence[Row], *, upright: bool
) -> Spec:
    values = [p[field] for p in points] + [o[field + end] for o in reached for end in ("_low", "_high")]
    level = [measure["level"]] if "level" in measure else []
    fitted = frame.scale([*values, *level], padding=14, with_zero=True)
    aspect = "Risk" if measure["aspect"] == "risk" else "Utility"
    axis_title = f"{aspect}: {measure['title']}{' (log scale)' if 'log' in fitted.get('type', '') else ''}"
    axis: Spec = frame.ticks(fitted, values)
    if upright:  # a title beside the axis would be turned, and its arrow with it
        axis |= {"titleAngle": 0, "titleAlign": "left", "titleAnchor": "end", "titleX": -34, "titleY": -30}
    first_line = f"{frame.arrow(measure, upright=upright)} {axis_title}"  # two lines: a phone is narrow
    return quantitative(field, [first_line, measure["direction"]], scale=fitted, axis=axis)


def _band(held: Mapping[str, Any], axis: str) -> Spec:
    row = {"low": held["level"] - held["slack"], "high": held["level"] + held["slack"]}
    ends = {axis: {"field": "low", "type": "quantitative"}, f"{axis}2": {"field": "high"}}
    return layer("rect", ends, rows=[row], color=frame.GREY, opacity=0.14)


def _level_rule(held: Mapping[str, Any], axis: str) -> Spec:
    place = {axis: {"field": "level", "type": "quantitative"}}
    side, shift = ({"y": {"value": 2}}, (6, 0)) if axis == "x" else ({"x": {"value": 4}}, (0, 5))
    text: Spec = {"align": "left", "baseline": "top", "dx": shift[0], "dy": shift[1], "color": frame.MUTED}
    return layer_charts(
        layer("rule", place, color=frame.MUTED, strokeDash=[5, 4]),
        layer("text", {**place, **side, "text": nominal("text")}, fontSize=frame.TEXT_SIZE, **text),
        rows=[{"level": held["level"], "text": f"level {held['level']:.4g}"}],
    )


def _better_corner(risk: Mapping[str, Any], utility: Mapping[str, Any]) -> Spec:
    left, low = risk["better"] == "low", utility["better"] == "low"
    towards = {(True, True): "↙", (True, False): "↖", (False, True): "↘", (False, False): "↗"}[left, low]
    corner = {"x": {"value": 0 if left else "width"}, "y": {"value": "height" if low else 0}}
    style: Spec = {
        "text": f"{towards} better" if left else f"better {towards}", "color": frame.MUTED,
        "fontStyle": "italic", "fontSize": 12, "align": "left" if left else "right",
        "baseline": "bottom" if low else "top", "dx": 6 if left else -6, "dy": -6 if low else 6,
    }  # fmt: skip
    return layer("text", corner, rows=[{}], **style)


class _Map:
    """The layers of the map, on common axes."""

    def __init__(self, axes: Spec, methods: Sequence[Mapping[str, Any]], risk: Any, utility: Any) -> None:
        self.axes, self.methods, self.risk, self.utility = axes, methods, risk, utility
        columns = {"expr": f"clamp(floor(width / {_LEGEND_WIDTH}), 1, {min(len(methods), 4)})"}
        legend = {"orient": "bottom", "columns": columns, "title": None, "offset": 14}
        self.color = frame.by_method(methods, legend=legend)
        self.shape = frame.by_method(methods, channel="shape", legend=legend)
        self.dashed = frame.dash_by_method(methods, legend=legend)

    def lines(self, points: Sequence[Row], *, internal: bool) -> list[Spec]:
        """A line per method through its parameter's values, and the front beneath."""
        rows = [
            {
                **p, "risk_text": figure(p["risk"]), "utility_text": figure(p["utility"]),
                "on": "yes" if p["front"] else "no",
                **({"at": f"{p['parameter']} = {setting(p['value'])}"} if internal else {}),
            }
            for p in points
        ]  # fmt: skip
        parameter = {"at": "Parameter"} if internal else {}
        labels = {"risk_text": self.risk["title"], "utility_text": self.utility["title"]}
        tooltip = tips(label="Method", **parameter, **labels, on="On the Pareto front")
        front = sorted((row for row in rows if row["front"]), key=lambda row: row["risk"])
        wide: Spec = {"strokeWidth": 11, "opacity": 0.16, "strokeCap": "round", "strokeJoin": "round"}
        lined = {**self.axes, "color": self.color, **self.dashed}
        lined |= {"detail": nominal("line"), "order": {"field": "order"}}
        dots = {
            **self.axes, "color": self.color, "shape": self.shape, "tooltip": tooltip,
            "size": {"condition": {"test": "datum.front", "value": 60}, "value": 26},
            "opacity": {"condition": {"test": "datum.front", "value": 1}, "value": 0.45},
        }  # fmt: skip
        return [
            layer("line", self.axes, rows=front, color=frame.INK, **wide),
            layer("line", lined, rows=rows, strokeWidth=1.5, opacity=0.85),
            layer("point", dots, rows=rows, filled=True),
        ]

    def outcomes(self, reached: Sequence[Row]) -> list[Spec]:
        """The methods at the level, with the intervals of both measures."""
        intervals = []
        for axis, field in (("x", "risk"), ("y", "utility")):
            low = {**self.axes[axis], "field": f"{field}_low"}
            ends = {axis: low, f"{axis}2": {"field": f"{field}_high"}}
            intervals.append(layer("rule", {**self.axes, **ends, "color": self.color}, strokeWidth=2))
        titles = {"risk_text": self.risk["title"], "utility_text": self.utility["title"]}
        tooltip = tips(label="Method", rank="Rank", **titles)
        dots = {**self.axes, "color": self.color, "shape": self.shape, "tooltip": tooltip}
        style: Spec = {"filled": True, "opacity": 1, "stroke": frame.PAPER, "strokeWidth": 1.5, "size": 230}
        return [layer_charts(*intervals, layer("point", dots, **style), rows=reached)]
