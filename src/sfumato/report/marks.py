"""The vocabulary of the charts: colours, text sizes, and the pieces that every specification is made of.

Names of columns and methods are only ever data or titles, never fields or expressions. Colours of text and
lines are CSS variables with a fallback, so that a chart follows the page into the dark and onto paper.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Spec = dict[str, Any]
Row = dict[str, Any]

INK, MUTED, RULE = "var(--ink, #1f2328)", "var(--muted, #5c646d)", "var(--rule, #dfe1e0)"
PAPER, GREY, GREY_FILL = "var(--paper, #ffffff)", "var(--grey, #80868d)", "var(--grey-fill, #d3d6d9)"
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


def pickable(first: str | None = None) -> list[Spec]:
    """The parameter that says whose release is shown; None: of all methods."""
    return [{"name": "shown", "value": first}]


def chart(description: str, **parts: Any) -> Spec:
    """A specification as wide as its place, which says in words what it shows."""
    return {"description": description, "width": "container", "config": CONFIG, **parts}


def inline(rows: Iterable[Row]) -> Spec:
    """Data that stand in the specification itself."""
    return {"values": list(rows)}


def named(outcomes: Sequence[Mapping[str, Any]], part: Iterable[str]) -> list[Row]:
    """The original and the methods that have this part, by key and label."""
    labels = {"original": "Original", **{o["key"]: o["label"] for o in outcomes}}
    return [{"key": key, "label": labels[key]} for key in part if key in labels]


def picked(*, original: bool) -> list[Spec]:
    """Keep the rows of the original, or of the releases that are to be shown."""
    word = "==" if original else "!="
    return [{"filter": f"datum.key {word} 'original'"}, {"filter": SHOWN}]


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


def by_method(outcomes: Sequence[Mapping[str, Any]], *, channel: str = "color", **more: Any) -> Spec:
    """Encode the method, in its own colour or shape, the same throughout."""
    scale = {"domain": [o["label"] for o in outcomes], "range": [o[channel] for o in outcomes]}
    return {"field": "label", "type": "nominal", "scale": scale, "legend": None, **more}


def dashed(outcomes: Sequence[Mapping[str, Any]], **more: Any) -> Spec:
    """Dashes for the methods beyond the colours; nothing when there are enough colours."""
    if len({tuple(outcome["dash"]) for outcome in outcomes}) < 2:  # noqa: PLR2004
        return {}
    return {"strokeDash": by_method(outcomes, channel="dash", **more)}


def tip(field: str, title: str) -> Spec:
    """A line of a tooltip."""
    return {"field": field, "title": title, "type": "nominal"}


def arrow(measure: Mapping[str, Any], *, upright: bool = False) -> str:
    """An arrow along the axis towards the better values."""
    low, high = ("↓", "↑") if upright else ("←", "→")
    return low if measure["better"] == "low" else high


def scale(values: Iterable[float | None], *, nice: bool = True, padding: int = 0) -> Spec:
    """A scale for these values: logarithmic when they are positive and span orders of magnitude."""
    known = [value for value in values if value is not None]
    log = bool(known) and min(known) > 0 and max(known) / min(known) >= _LOG_FROM
    more: Spec = {"padding": padding} if padding else {}
    return {"type": "log", "nice": False, **more} if log else {"zero": False, "nice": nice, **more}


def ticks(fitted: Spec, values: Iterable[float | None]) -> Spec:
    """Where an axis has ticks: 1, 2 and 5 of each decade on a short logarithmic scale, else 1 only."""
    if fitted.get("type") != "log":
        return {"tickCount": 7}
    known = [value for value in values if value is not None]
    decades = range(math.floor(math.log10(min(known))) - 1, math.ceil(math.log10(max(known))) + 2)
    factors = (1, 2, 5) if len(decades) <= _MOST_DECADES else (1,)
    return {"values": [float(f"{factor}e{decade}") for decade in decades for factor in factors]}
