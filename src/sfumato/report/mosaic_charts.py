"""Mosaics of two columns of categories: tiles as large as their share of the records, and the differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.report.marks import INK, MUTED, PAPER, SHOWN, TEXT_SIZE, Row, Spec, chart, inline, pickable, tip
from sfumato.report.pair_charts import PARTS, numbers, on_shade, shade, shaded_cells

_WIDTH, _HEIGHT = 260, 230
_NARROW, _LOW = 34, 14  # pixels that a number needs in a tile
_LABEL, _SHORT = 84, 4  # pixels of the longest label, and letters of a short one
_PLENTY = 4.0  # a residual beyond this is far more than chance explains
_SAID = {"text": {"field": "said", "type": "nominal"}}


def mosaic(entry: Mapping[str, Any], part: str, *, first: str | None) -> Spec:
    """One part of the triptych of a pair of columns; all but the original follows the method picked."""
    if part == "difference":
        return _difference(entry, first=first)
    keys = [key for key in entry["shares"] if (key == "original") is (part == "original")]
    tiles = [tile for key in keys for tile in _tiles(entry, key)]
    names = _titles(entry)
    return chart(
        f"Mosaic of {names[1]} by {names[0]}, {PARTS[part].lower()}: tiles are as large as their share.",
        title={"text": PARTS[part], "offset": -6},  # in one line with the remark
        width=_WIDTH,
        height=_HEIGHT,
        params=pickable(first),
        layer=[
            _tiled(entry, tiles),
            *_labels(entry, tiles),
            _remark([*_strengths(entry, keys), *(_reasons(entry) if part == "release" else ())]),
        ],
    )


def _titles(entry: Mapping[str, Any]) -> list[str]:
    return [label or column for label, column in zip(entry["labels"], entry["columns"], strict=True)]


def _angle(categories: Sequence[str]) -> int:
    """How far the labels below are turned: not at all when they are short."""
    return 0 if max(map(len, categories)) <= _SHORT else -40


def _below(categories: Sequence[str]) -> int:
    """How far down the legend must stand to be clear of labels that are turned."""
    return 18 + round(0.65 * min(_LABEL, 6 * max(map(len, categories)))) if _angle(categories) else 18


def _across(field: str) -> Spec:
    scale = {"domain": [0, 1], "nice": False}
    return {"field": field, "type": "quantitative", "scale": scale, "axis": None}


def _down(field: str) -> Spec:
    return {**_across(field), "scale": {"domain": [1, 0], "nice": False}}


def _tiles(entry: Mapping[str, Any], key: str) -> list[Row]:
    """Where the tiles of a table lie: columns as wide as the first category's share, cut by the second."""
    shares, residuals = entry["shares"][key], entry["residuals"][key]
    total = sum(map(sum, shares)) or 1.0
    rows: list[Row] = []
    left = 0.0
    for i, column in enumerate(shares):
        right, top = left + sum(column) / total, 0.0
        for j, share in enumerate(column):
            bottom = top + share / total / (right - left) if share else top
            if share:
                places = {"x": left, "x2": right, "y": top, "y2": bottom}
                sizes = {name: round(place, 4) for name, place in places.items()}
                rows.append({"key": key, "a": i, "b": j, "share": share, "r": residuals[i][j], **sizes})
            top = bottom
        left = right
    return rows


def _tiled(entry: Mapping[str, Any], tiles: Sequence[Row]) -> Spec:
    reach = max(_PLENTY, _largest(entry["residuals"]))
    names = _titles(entry)
    roomy = f"(datum.x2 - datum.x) * {_WIDTH} > {_NARROW} && (datum.y2 - datum.y) * {_HEIGHT} > {_LOW}"
    tips: list[Spec] = [
        tip("first", names[0]), tip("second", names[1]),
        {"field": "share", "title": "Share of records", "type": "quantitative", "format": ".1%"},
        {"field": "r", "title": "Residual", "type": "quantitative", "format": ".1f"},
    ]  # fmt: skip
    color = shade(reach, offset=_below(entry["categories"][0]))
    corners = {"x": _across("x"), "x2": {"field": "x2"}, "y": _down("y"), "y2": {"field": "y2"}}
    share = {"text": {"field": "share", "type": "quantitative", "format": ".0%"}, "color": on_shade(reach)}
    return {
        "data": inline(tiles),
        "transform": [{"filter": SHOWN}, *_category_names(entry)],
        "layer": [
            {
                "mark": {"type": "rect", "stroke": PAPER, "strokeWidth": 1.5},
                "encoding": {**corners, "color": color, "tooltip": tips},
            },
            {
                "transform": [
                    {"filter": roomy},
                    {"calculate": "(datum.x + datum.x2) / 2", "as": "middle"},
                    {"calculate": "(datum.y + datum.y2) / 2", "as": "centre"},
                ],
                "mark": {"type": "text", "fontSize": 10},
                "encoding": {"x": _across("middle"), "y": _down("centre"), **share},
            },
        ],
    }


def _largest(tables: Mapping[str, Sequence[Sequence[float]]]) -> float:
    return max((abs(cell) for table in tables.values() for row in table for cell in row), default=0.0)


def _category_names(entry: Mapping[str, Any]) -> list[Spec]:
    """Look up the names of the categories of a row by their places."""
    looked_up: list[Spec] = []
    for place, name, categories in zip("ab", ("first", "second"), entry["categories"], strict=True):
        rows = [{place: number, name: category} for number, category in enumerate(categories)]
        looked_up.append({"lookup": place, "from": {"data": inline(rows), "key": place, "fields": [name]}})
    return looked_up


def _labels(entry: Mapping[str, Any], tiles: Sequence[Row]) -> list[Spec]:
    """The categories: the first below their columns, the second beside the leftmost tiles."""
    wide = {(t["key"], t["a"]): t for t in tiles if (t["x2"] - t["x"]) * _WIDTH >= TEXT_SIZE}
    high = [t for t in tiles if t["x"] == 0 and (t["y2"] - t["y"]) * _HEIGHT >= TEXT_SIZE - 1]
    first, second = entry["categories"]
    text = {"type": "text", "fontSize": TEXT_SIZE, "color": MUTED, "align": "right", "limit": _LABEL}
    angle = _angle(first)
    below = {"angle": angle, "baseline": "top", "dy": 6, "align": "right" if angle else "center"}
    return [
        {
            "data": inline(
                {"key": t["key"], "at": (t["x"] + t["x2"]) / 2, "said": first[t["a"]]} for t in wide.values()
            ),
            "transform": [{"filter": SHOWN}],
            "mark": {**text, **below},
            "encoding": {"x": _across("at"), "y": {"value": _HEIGHT}, **_SAID},
        },
        {
            "data": inline(
                {"key": t["key"], "at": (t["y"] + t["y2"]) / 2, "said": second[t["b"]]} for t in high
            ),
            "transform": [{"filter": SHOWN}],
            "mark": {**text, "baseline": "middle", "dx": -6},
            "encoding": {"x": {"value": 0}, "y": _down("at"), **_SAID},
        },
    ]


def _strengths(entry: Mapping[str, Any], keys: Sequence[str]) -> list[Row]:
    return [{"key": key, "said": f"V = {entry['association'][key]:.2f}"} for key in keys]


def _reasons(entry: Mapping[str, Any]) -> list[Row]:
    """Why a release is not shown."""
    reasons = {
        "suppressed": "suppressed: small groups",
        "absent": "not in this release",
        "unchanged": "unchanged",
    }
    return [{"key": key, "said": said} for which, said in reasons.items() for key in entry[which]]


def _remark(rows: Sequence[Row]) -> Spec:
    """What is said of a table at the top right."""
    return {
        "data": inline(rows),
        "transform": [{"filter": SHOWN}],
        "mark": {"type": "text", "align": "right", "baseline": "bottom", "dy": -8, "color": INK},
        "encoding": {"x": {"value": _WIDTH}, "y": {"value": 0}, **_SAID},
    }


def _difference(entry: Mapping[str, Any], *, first: str | None) -> Spec:
    """By how many points of the records each cell of the release is larger than the original's."""
    names = _titles(entry)
    reach = 100 * max(0.01, _largest(entry["differences"]))
    rows = [
        {"key": key, "a": i, "b": j, "r": round(100 * cell, 2), "said": _points(cell)}
        for key, table in entry["differences"].items()
        for i, cells in enumerate(table)
        for j, cell in enumerate(cells)
    ]
    axis = {"ticks": False, "domain": False, "labelLimit": _LABEL, "labelPadding": 6, "title": None}
    across, down = entry["categories"]
    encoding = {
        "x": {
            "field": "first",
            "type": "nominal",
            "sort": across,
            "axis": {**axis, "labelAngle": _angle(across)},
        },
        "y": {"field": "second", "type": "nominal", "sort": down, "axis": axis},
        "tooltip": [tip("first", names[0]), tip("second", names[1]), tip("said", "Difference in points")],
    }
    return chart(
        f"Differences of the shares of {names[1]} by {names[0]}, release − original, as a heat map.",
        title="Release − original, in points",
        width=_WIDTH,
        height=_HEIGHT,
        params=pickable(first),
        data=inline(rows),
        transform=[{"filter": SHOWN}, *_category_names(entry)],
        layer=[shaded_cells(encoding, reach), numbers(encoding, reach, size=10)],
    )


def _points(share: float) -> str:
    """A difference of shares in points: +1.2, −0.3, 0."""
    return f"{100 * share:+.1f}".replace("-", "−") if round(100 * share, 1) else "0"
