"""The frame of every chart: colours, axes, tooltips, and the layers that a specification is made of.

Names of columns and methods are only ever data or titles, never fields or expressions. Colours of text and
lines are CSS variables with a fallback, so that a chart follows the page into the dark and onto paper.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Spec = dict[str, Any]
Row = dict[str, Any]
#: What the twin holds of one thing, and of several methods.
Entry = Mapping[str, Any]
Outcomes = Sequence[Entry]

INK, MUTED, RULE = "var(--ink, #1f2328)", "var(--muted, #5c646d)", "var(--rule, #dfe1e0)"
PAPER, GREY, GREY_FILL = "var(--paper, #ffffff)", "var(--grey, #80868d)", "var(--grey-fill, #d3d6d9)"
#: The colour of the release in its own report, and the release as charts of several methods know it.
COLOR = "#0072B2"
OUTCOMES: Outcomes = (
    {"key": "release", "label": "Release", "color": COLOR, "shape": "circle", "dash": [1, 0]},
)
#: Which rows to show: all, or those of the original and of the method picked on the page.
SHOWN = "!isValid(shown) || datum.key == 'original' || datum.key == shown"

_FONT = "system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"
_LOG_FROM = 50.0
_MOST_DECADES = 6
TEXT_SIZE = 11

CONFIG: Spec = {
    "background": None,
    "font": _FONT,
    "view": {"stroke": None},
    "axis": {
        "labelColor": MUTED, "titleColor": INK, "gridColor": RULE, "domainColor": GREY, "tickColor": GREY,
        "labelFontSize": TEXT_SIZE, "titleFontSize": 12, "titleFontWeight": 500, "titlePadding": 10,
        "gridOpacity": 0.7,
    },
    "legend": {
        "labelColor": INK, "titleColor": INK, "labelFontSize": 12, "symbolSize": 90, "labelLimit": 240,
        "titleFontWeight": 500, "titleFontSize": TEXT_SIZE,
    },
    "title": {"color": INK, "fontSize": 13, "fontWeight": 600, "anchor": "start", "offset": 8},
}  # fmt: skip


def chart(caption: str, reads: str, *layers: Spec, rows: Iterable[Row] | None = None, **more: Any) -> Spec:
    """A specification as wide as its place; the page shows what is drawn (caption) and how to read it."""
    body = layers[0] if len(layers) == 1 else {"layer": list(layers)}
    words = {"description": f"{caption}. {reads}", "usermeta": {"title": caption, "subtitle": reads}}
    data = {} if rows is None else {"data": inline(rows)}
    return {**words, "width": "container", "config": CONFIG, **data, **body, **more}


def layer(
    mark: str,
    encoding: Spec,
    *,
    rows: Iterable[Row] | None = None,
    where: Sequence[str | Spec] = (),
    **style: Any,
) -> Spec:
    """Marks of one sort, of the rows of the chart or of its own, and only of those that pass the filters."""
    return layer_charts({"mark": {"type": mark, **style}, "encoding": encoding}, rows=rows, where=where)


def layer_charts(*layers: Spec, rows: Iterable[Row] | None = None, where: Sequence[str | Spec] = ()) -> Spec:
    """Layers that share rows and filters; a filter may be another step of a transformation."""
    spec: Spec = dict(layers[0]) if len(layers) == 1 else {"layer": list(layers)}
    if rows is not None:
        spec["data"] = inline(rows)
    if where:
        spec["transform"] = [{"filter": each} if isinstance(each, str) else each for each in where]
    return spec


def inline(rows: Iterable[Row]) -> Spec:
    """Data that stand in the specification itself."""
    return {"values": list(rows)}


def quantitative(field: str, title: str | Sequence[str] | None = None, **more: Any) -> Spec:
    """Encode a number, with a title or without."""
    return {"field": field, "type": "quantitative", "title": title, **more}


def nominal(field: str, order: Sequence[str] | None = None, **more: Any) -> Spec:
    """Encode a name, in the order given."""
    return {"field": field, "type": "nominal", **({} if order is None else {"sort": list(order)}), **more}


def label_axis(rows: Iterable[Row], field: str = "label") -> Spec:
    """The names of lines, in their order."""
    axis = {"labelColor": INK, "labelFontSize": 12, "labelLimit": 260, "labelPadding": 10}
    axis |= {"domain": False, "ticks": False}
    return nominal(field, [row[field] for row in rows], title=None, axis=axis)


def share_axis(field: str) -> Spec:
    """From none to all."""
    axis = {"format": "%", "values": [0, 0.25, 0.5, 0.75, 1]}
    return quantitative(field, scale={"domain": [0, 1]}, axis=axis)


def tips(**titles: str) -> list[Spec]:
    """The lines of a tooltip: fields, each with its title."""
    return [nominal(field, title=title) for field, title in titles.items()]


def pickable(first: str | None = None) -> list[Spec]:
    """The parameter that says whose release is shown; None: of all methods."""
    return [{"name": "shown", "value": first}]


def column_pick(field: str = "label") -> tuple[list[Spec], Spec]:
    """The parameter that says which column is looked at (None: all), and the opacity of marks of others."""
    test = f"!isValid(column) || datum.{field} == column"
    return [{"name": "column", "value": None}], {"condition": {"test": test, "value": 1}, "value": 0.2}


def method_rows(outcomes: Outcomes, part: Iterable[str]) -> list[Row]:
    """The original and the methods that have this part, by key and label."""
    labels = {"original": "Original", **{o["key"]: o["label"] for o in outcomes}}
    return [{"key": key, "label": labels[key]} for key in part if key in labels]


def filter_rows(*, original: bool) -> list[str]:
    """Keep the rows of the original, or of the releases that are to be shown."""
    return [f"datum.key {'==' if original else '!='} 'original'", SHOWN]


def side_by_side(series: Sequence[Row]) -> list[Spec]:
    """Unfold rows that hold a value for each key, and name the keys: far shorter than a row for each value.

    The keys are ours (original, m0, m1 …); the names come by a look-up, as data.
    """
    names = {"data": inline(series), "key": "key", "fields": ["label"]}
    return [
        {"fold": [each["key"] for each in series], "as": ["key", "value"]},
        {"filter": "isValid(datum.value)"},
        {"lookup": "key", "from": names},
    ]


def by_method(outcomes: Outcomes, *, channel: str = "color", **more: Any) -> Spec:
    """Encode the method, in its own colour or shape, the same throughout."""
    scale = {"domain": [o["label"] for o in outcomes], "range": [o[channel] for o in outcomes]}
    return nominal("label", scale=scale, **{"legend": None, **more})


def by_table() -> tuple[Spec, Spec]:
    """Encode whether it is the original, grey, or the release: side by side, and by colour."""
    tables = ["Original", "Release"]
    legend = {"orient": "top", "symbolType": "square"}
    scale = {"domain": tables, "range": [GREY_FILL, COLOR]}
    return nominal("table", tables), nominal("table", title=None, scale=scale, legend=legend)


def dash_by_method(outcomes: Outcomes, **more: Any) -> Spec:
    """Dashes for the methods beyond the colours; nothing when there are enough colours."""
    if len({tuple(outcome["dash"]) for outcome in outcomes}) < 2:  # noqa: PLR2004
        return {}
    return {"strokeDash": by_method(outcomes, channel="dash", **more)}


def broad_line(encoding: Spec, **more: Any) -> Spec:
    """The original, as a broad grey line."""
    return layer("line", encoding, strokeWidth=5, color=GREY_FILL, strokeCap="round", **more)


def unseen_dots(x: Spec, y: Spec, tooltip: Sequence[Spec], *, where: Sequence[str | Spec] = ()) -> Spec:
    """Dots that nobody sees, for their tooltips."""
    encoding = {"x": x, "y": y, "tooltip": tooltip}
    return layer("point", encoding, where=where, size=60, opacity=0, filled=True)


def curves(x: Spec, y: Spec, outcomes: Outcomes, tooltip: Sequence[Spec], *, order: str) -> list[Spec]:
    """Lines of the original and of the releases that are to be shown, with what they tell of each place."""
    both = {"x": x, "y": y, "order": {"field": order}}
    lined = {**both, "color": by_method(outcomes), **dash_by_method(outcomes)}
    return [
        broad_line(both, where=filter_rows(original=True)),
        layer("line", lined, where=filter_rows(original=False), strokeWidth=1.5),
        unseen_dots(x, y, tooltip, where=[SHOWN]),
    ]


def arrow(measure: Entry, *, upright: bool = False) -> str:
    """An arrow along the axis towards the better values."""
    low, high = ("↓", "↑") if upright else ("←", "→")
    return low if measure["better"] == "low" else high


def scale(
    values: Iterable[float | None], *, nice: bool = True, padding: int = 0, with_zero: bool = False
) -> Spec:
    """A scale for these values: logarithmic when they are positive and span orders of magnitude.

    ``with_zero`` there may be zeros among them, which have a place below the smallest.
    """
    known = [value for value in values if value is not None]
    above = [value for value in known if value > 0] if with_zero else known
    log = bool(above) and min(above) > 0 and max(above) / min(above) >= _LOG_FROM and min(known) >= 0
    more: Spec = {"padding": padding} if padding else {}
    if log and min(known) == 0:
        return {"type": "symlog", "constant": min(above), "nice": False, **more}
    return {"type": "log", "nice": False, **more} if log else {"zero": False, "nice": nice, **more}


def ticks(fitted: Spec, values: Iterable[float | None]) -> Spec:
    """Where an axis has ticks: 1, 2 and 5 of each decade on a short logarithmic scale, else 1 only."""
    if "log" not in fitted.get("type", ""):
        return {"tickCount": 7}
    known = [value for value in values if value is not None and value > 0]
    decades = range(math.floor(math.log10(min(known))) - 1, math.ceil(math.log10(max(known))) + 2)
    factors = (1, 2, 5) if len(decades) <= _MOST_DECADES else (1,)
    found = [float(f"{factor}e{decade}") for decade in decades for factor in factors]
    return {"values": [0.0, *found], "format": "~g"} if fitted["type"] == "symlog" else {"values": found}
