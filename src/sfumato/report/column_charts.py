"""Charts of columns: distributions before and after, and what became of the correlations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from sfumato.report.marks import GREY_FILL, SHOWN, Row, Spec, by_method, chart, dashed, inline, tip

_NUMBERS_UP_TO = 15
_SMALL_CELL = 28


def _named(outcomes: Sequence[Mapping[str, Any]], part: Any) -> list[Row]:
    """The original and the methods that have this part, by key and label."""
    labels = {"original": "Original", **{o["key"]: o["label"] for o in outcomes}}
    return [{"key": key, "label": labels[key]} for key in part if key in labels]


def _picked(*, original: bool) -> list[Spec]:
    word = "==" if original else "!="
    return [{"filter": f"datum.key {word} 'original'"}, {"filter": SHOWN}]


def _title(entry: Mapping[str, Any]) -> str:
    return str(entry["label"] or entry["column"])


def histogram(entry: Mapping[str, Any], outcomes: Sequence[Mapping[str, Any]]) -> Spec:
    """Steps over common bins: the original as a grey area, each release as a line."""
    places, widths = _places(entry)
    rows, named = [], _named(outcomes, entry["shares"])
    for series in named:
        heights = [share / w for share, w in zip(entry["shares"][series["key"]], widths, strict=True)]
        rows += [
            {**series, "x": place, "y": round(height, 6)}
            for place, height in zip(places, [*heights, heights[-1]], strict=True)
        ]
    x = _value_axis(entry, "x")
    y = {"field": "y", "type": "quantitative", "axis": None, "scale": {"zero": True}}
    both = {"x": x, "y": y}
    tips = [tip("bin", _title(entry)), *(tip(s["key"], s["label"]) for s in named)]
    return chart(
        f"Distribution of {_title(entry)}: the original and {len(named) - 1} releases over common bins.",
        height=170,
        params=[{"name": "shown", "value": None}],
        data=inline(rows),
        layer=[
            {
                "transform": _picked(original=True),
                "mark": {"type": "area", "interpolate": "step-after", "color": GREY_FILL},
                "encoding": both,
            },
            {
                "transform": _picked(original=False),
                "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 1.75},
                "encoding": {**both, "color": by_method(outcomes), **dashed(outcomes)},
            },
            {
                "data": inline(_bins(entry, places, named)),
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


def _value_axis(entry: Mapping[str, Any], field: str) -> Spec:
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


def _bins(entry: Mapping[str, Any], places: Sequence[float], named: Sequence[Row]) -> list[Row]:
    last = len(places) - 2
    rows = []
    for number, (left, right) in enumerate(pairwise(places)):
        if number == 0:
            said = f"below {_tick(entry, right, above=True)}"
        elif number == last:
            said = f"{_tick(entry, left, above=True)} and above"
        else:
            said = f"{_tick(entry, left, above=True)} to {_tick(entry, right, above=False)}"
        shares = {s["key"]: f"{entry['shares'][s['key']][number]:.1%}" for s in named}
        rows.append({"x": left, "x2": right, "bin": said, **shares})
    return rows


def _tick(entry: Mapping[str, Any], place: float, *, above: bool) -> str:
    """The value at an edge; of whole numbers, the next above or below it."""
    if entry["axis"] == "date":
        return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=place)).date().isoformat()
    if entry["whole"]:
        place += 0.5 if above else -0.5
    return f"{place:,.10g}".replace("-", "−")


def quantiles(entry: Mapping[str, Any], outcomes: Sequence[Mapping[str, Any]]) -> Spec:
    """The distribution functions, drawn through quantiles: the original as a broad grey line."""
    found = entry["quantiles"]
    named = _named(outcomes, found["values"])
    rows = [
        {**series, "value": value, "level": level, "said": f"{level:.0%}"}
        for series in named
        for level, value in zip(found["levels"], found["values"][series["key"]], strict=True)
        if value > 0 or entry["axis"] != "log"
    ]
    x = _value_axis(entry, "value")
    y = {
        "field": "level", "type": "quantitative", "title": None, "scale": {"domain": [0, 1]},
        "axis": {"format": "%", "values": [0, 0.25, 0.5, 0.75, 1]},
    }  # fmt: skip
    both = {"x": x, "y": y, "order": {"field": "level"}}
    tips = [tip("label", "Table"), tip("said", "Share at or below")]
    tips.append({"field": "value", "title": _title(entry), "type": x["type"]})
    lined = {**both, "color": by_method(outcomes), **dashed(outcomes)}
    original, releases = _picked(original=True), _picked(original=False)
    grey = {"type": "line", "strokeWidth": 5, "color": GREY_FILL, "strokeCap": "round"}
    dots = {"type": "point", "size": 60, "opacity": 0, "filled": True}
    return chart(
        f"Share of records at or below each value of {_title(entry)}: the original and the releases.",
        height=170,
        params=[{"name": "shown", "value": None}],
        data=inline(rows),
        layer=[
            {"transform": original, "mark": grey, "encoding": both},
            {"transform": releases, "mark": {"type": "line", "strokeWidth": 1.5}, "encoding": lined},
            {"transform": [{"filter": SHOWN}], "mark": dots, "encoding": {"x": x, "y": y, "tooltip": tips}},
        ],
    )  # fmt: skip


def bars(entry: Mapping[str, Any], outcomes: Sequence[Mapping[str, Any]]) -> Spec:
    """A grey bar per value for the original, a mark per release."""
    categories = entry["categories"]
    gap = min(8.0, 48 / len(entry["shares"]))
    band = max(18.0, gap * len(entry["shares"]))
    y = {
        "field": "value", "type": "nominal", "sort": categories, "title": None,
        "scale": {"paddingInner": 0.1, "paddingOuter": 0.05},
        "axis": {"labelLimit": 200, "ticks": False, "domain": False},
    }  # fmt: skip
    x = {"field": "share", "type": "quantitative", "title": None, "axis": {"format": "%", "tickCount": 5}}
    tips = [tip("label", "Table"), tip("value", _title(entry)), tip("said", "Share of records")]
    both = {"x": x, "y": y, "tooltip": tips}
    beside = {"field": "offset", "type": "quantitative", "scale": None}
    marked = {"color": by_method(outcomes), "shape": by_method(outcomes, channel="shape")}
    return chart(
        f"Shares of the values of {_title(entry)} in the original and in the releases.",
        height=len(categories) * band,
        params=[{"name": "shown", "value": None}],
        data=inline(_bar_rows(entry, outcomes, gap=gap, band=band)),
        layer=[
            {
                "transform": _picked(original=True),
                "mark": {"type": "bar", "color": GREY_FILL, "height": {"band": 0.85}},
                "encoding": both,
            },
            {
                "transform": _picked(original=False),
                "mark": {"type": "point", "filled": True, "size": 55, "opacity": 0.9},
                "encoding": {**both, **marked, "yOffset": beside},
            },
        ],
    )


def _bar_rows(
    entry: Mapping[str, Any], outcomes: Sequence[Mapping[str, Any]], *, gap: float, band: float
) -> list[Row]:
    named = _named(outcomes, entry["shares"])
    middle = 0.45 * band  # offsets count from the top of a bar, which is nine tenths of its band
    return [
        {
            **series,
            "value": value,
            "share": share,
            "said": f"{share:.1%}",
            "offset": middle + gap * (i - len(named) / 2),
        }
        for i, series in enumerate(named)  # the original is the first: the releases stand around the middle
        for value, share in zip(entry["categories"], entry["shares"][series["key"]], strict=True)
    ]


# Correlations ------------------------------------------------------------------------------------------

_PARTS = {"original": "Original", "release": "Release", "difference": "Release − original"}


def correlation(found: Mapping[str, Any], part: str, *, first: str | None) -> Spec:
    """A heat map of one part of the triptych; that of the release follows the method picked."""
    names = found["columns"]
    if part == "original":
        matrices = {"original": found["original"]}
    else:
        matrices = found["releases" if part == "release" else "differences"]
    rows = [
        {"key": key, "row": row, "column": column, "r": cell, "said": _short(cell)}
        for key, matrix in matrices.items()
        for row, cells in zip(names, matrix, strict=True)
        for column, cell in zip(names, cells, strict=True)
    ]
    reach = 1.0 if part != "difference" else _reach(matrices)
    numbered = len(names) <= _NUMBERS_UP_TO
    cell = max(24 if numbered else 12, min(44, 250 // len(names)))
    axis = {"ticks": False, "domain": False, "labelLimit": 72, "labelPadding": 6, "title": None}
    encoding = {
        "x": {"field": "column", "type": "nominal", "sort": names, "axis": {**axis, "labelAngle": -40}},
        "y": {"field": "row", "type": "nominal", "sort": names, "axis": axis},
        "tooltip": [tip("row", "Column"), tip("column", "with"), tip("said", _PARTS[part])],
    }
    layers = [_blanks(encoding), _cells(encoding, reach)]
    if numbered:
        layers.append(_numbers(encoding, reach, size=10 if cell > _SMALL_CELL else 8.5))
    return chart(
        f"Correlations of {len(names)} columns, {_PARTS[part].lower()}, as a heat map.",
        title=_PARTS[part],
        width={"step": cell},
        height={"step": cell},
        params=[{"name": "shown", "value": first}],
        data=inline(rows),
        transform=[{"filter": SHOWN}],
        layer=layers,
    )


def _blanks(encoding: Spec) -> Spec:
    return {"mark": {"type": "rect", "color": GREY_FILL, "opacity": 0.35}, "encoding": encoding}


def _cells(encoding: Spec, reach: float) -> Spec:
    legend = {
        "title": None, "orient": "bottom", "gradientLength": 120, "gradientThickness": 8, "tickCount": 3,
        "labelFontSize": 10,
    }  # fmt: skip
    scale = {
        "domain": [-reach, 0, reach],
        "range": ["#b3560a", "#f6f5f2", "#1f6aa8"],
        "clamp": True,
        "interpolate": "lab",
    }
    color = {"field": "r", "type": "quantitative", "scale": scale, "legend": legend}
    return {
        "transform": [{"filter": "isValid(datum.r)"}],
        "mark": {"type": "rect"},
        "encoding": {**encoding, "color": color},
    }


def _numbers(encoding: Spec, reach: float, *, size: float) -> Spec:
    dark = {
        "condition": {"test": f"abs(datum.r) > {0.6 * reach:.6g}", "value": "#ffffff"},
        "value": "#2a2f35",
    }
    return {
        "transform": [{"filter": "isValid(datum.r)"}],
        "mark": {"type": "text", "fontSize": size},
        "encoding": {**encoding, "text": {"field": "said", "type": "nominal"}, "color": dark},
    }


def _reach(matrices: Mapping[str, Sequence[Sequence[float | None]]]) -> float:
    """The end of the scale of differences: the largest of any method, so that methods can be compared."""
    cells = [abs(c) for matrix in matrices.values() for row in matrix for c in row if c is not None]
    return max(0.1, *cells, 0.0)


def _short(cell: float | None) -> str:
    """A correlation in as few signs as will do: .42, −.07, 1."""
    if cell is None:
        return "–"
    text = f"{cell:.2f}".replace("0.", ".").replace("1.00", "1").replace("-", "−")
    return "0" if text in {".00", "−.00"} else text
