"""Charts of single columns: how they are distributed before and after, by bins and value by value."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from sfumato.report.marks import (
    GREY_FILL,
    Row,
    Spec,
    by_method,
    chart,
    dashed,
    inline,
    named,
    pickable,
    picked,
    tip,
)

#: Charts that stand beside each other are of one height.
CHART_HEIGHT = 190


def titled(entry: Mapping[str, Any]) -> str:
    """What a column is called on the page."""
    return str(entry["label"] or entry["column"])


def histogram(entry: Mapping[str, Any], outcomes: Sequence[Mapping[str, Any]]) -> Spec:
    """Steps over common bins: the original as a grey area, each release as a line."""
    places, widths = _places(entry)
    rows, tables = [], named(outcomes, entry["shares"])
    for series in tables:
        heights = [share / w for share, w in zip(entry["shares"][series["key"]], widths, strict=True)]
        rows += [
            {**series, "x": place, "y": round(height, 6)}
            for place, height in zip(places, [*heights, heights[-1]], strict=True)
        ]
    x = value_axis(entry, "x")
    y = {"field": "y", "type": "quantitative", "axis": None, "scale": {"zero": True}}
    both = {"x": x, "y": y}
    tips = [tip("bin", titled(entry)), *(tip(s["key"], s["label"]) for s in tables)]
    return chart(
        f"Distribution of {titled(entry)}: the original and what was released, over common bins.",
        height=CHART_HEIGHT,
        params=pickable(),
        data=inline(rows),
        layer=[
            {
                "transform": picked(original=True),
                "mark": {"type": "area", "interpolate": "step-after", "color": GREY_FILL},
                "encoding": both,
            },
            {
                "transform": picked(original=False),
                "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 1.75},
                "encoding": {**both, "color": by_method(outcomes), **dashed(outcomes)},
            },
            {
                "data": inline(_bins(entry, places, tables)),
                "mark": {"type": "rect", "opacity": 0},
                "encoding": {"x": x, "x2": {"field": "x2"}, "tooltip": tips},
            },
        ],
    )


def _places(entry: Mapping[str, Any]) -> tuple[list[float], list[float]]:
    """Where the bins are drawn, the open ones one step wide, and how many steps wide each is."""
    edges, step = entry["edges"], entry["step"]
    if entry["axis"] == "log":
        places = [edges[0] / step, *edges, edges[-1] * step]
        return places, [math.log(right / left, step) for left, right in pairwise(places)]
    places = [edges[0] - step, *edges, edges[-1] + step]
    return places, [(right - left) / step for left, right in pairwise(places)]


def value_axis(entry: Mapping[str, Any], field: str) -> Spec:
    """The axis of a column's own values."""
    scales: dict[str, Spec] = {"number": {"zero": False}, "log": {"type": "log"}, "date": {}}
    axis: Spec = {"grid": False, "tickCount": 6}
    kind = "temporal" if entry["axis"] == "date" else "quantitative"
    return {
        "field": field,
        "type": kind,
        "title": None,
        "scale": {**scales[entry["axis"]], "nice": False},
        "axis": axis,
    }


def _bins(entry: Mapping[str, Any], places: Sequence[float], tables: Sequence[Row]) -> list[Row]:
    last = len(places) - 2
    rows = []
    for number, (left, right) in enumerate(pairwise(places)):
        if number == 0:
            said = f"below {_tick(entry, right, above=True)}"
        elif number == last:
            said = f"{_tick(entry, left, above=True)} and above"
        else:
            said = f"{_tick(entry, left, above=True)} to {_tick(entry, right, above=False)}"
        shares = {s["key"]: f"{entry['shares'][s['key']][number]:.1%}" for s in tables}
        rows.append({"x": left, "x2": right, "bin": said, **shares})
    return rows


def _tick(entry: Mapping[str, Any], place: float, *, above: bool) -> str:
    """The value at an edge; of whole numbers, the next above or below it."""
    if entry["axis"] == "date":
        return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=place)).date().isoformat()
    if entry["whole"]:
        place += 0.5 if above else -0.5
    return f"{place:,.10g}".replace("-", "−")


def bars(entry: Mapping[str, Any], outcomes: Sequence[Mapping[str, Any]]) -> Spec:
    """A grey bar per value for the original, a mark per release."""
    categories = entry["categories"]
    gap = min(8.0, 48 / len(entry["shares"]))
    band = max(18.0, gap * len(entry["shares"]))
    y = {
        "field": "value", "type": "nominal", "sort": categories, "title": None,
        "scale": {"paddingInner": 0.1, "paddingOuter": 0.05},
        "axis": {"labelLimit": 200, "labelPadding": 8, "ticks": False, "domain": False},
    }  # fmt: skip
    x = {"field": "share", "type": "quantitative", "title": None, "axis": {"format": "%", "tickCount": 5}}
    tips = [tip("label", "Table"), tip("value", titled(entry)), tip("said", "Share of records")]
    both = {"x": x, "y": y, "tooltip": tips}
    beside = {"field": "offset", "type": "quantitative", "scale": None}
    marked = {"color": by_method(outcomes), "shape": by_method(outcomes, channel="shape")}
    return chart(
        f"Shares of the values of {titled(entry)} in the original and in the releases.",
        height=len(categories) * band,
        params=pickable(),
        data=inline(_bar_rows(entry, outcomes, gap=gap, band=band)),
        layer=[
            {
                "transform": picked(original=True),
                "mark": {"type": "bar", "color": GREY_FILL, "height": {"band": 0.85}},
                "encoding": both,
            },
            {
                "transform": picked(original=False),
                "mark": {"type": "point", "filled": True, "size": 55, "opacity": 0.9},
                "encoding": {**both, **marked, "yOffset": beside},
            },
        ],
    )


def _bar_rows(
    entry: Mapping[str, Any], outcomes: Sequence[Mapping[str, Any]], *, gap: float, band: float
) -> list[Row]:
    tables = named(outcomes, entry["shares"])
    middle = 0.45 * band  # offsets count from the top of a bar, which is nine tenths of its band
    return [
        {
            **series,
            "value": value,
            "share": share,
            "said": f"{share:.1%}",
            "offset": middle + gap * (i - len(tables) / 2),
        }
        for i, series in enumerate(tables)  # the original is the first: the releases stand around the middle
        for value, share in zip(entry["categories"], entry["shares"][series["key"]], strict=True)
    ]
