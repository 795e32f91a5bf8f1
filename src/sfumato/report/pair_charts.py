"""Pictures of two columns at a time, as triptychs: the original, the release picked, and the difference.

Numbers are shown as a heat map of their correlations, categories as mosaics: tiles are as large as their
share of the records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.report import frame
from sfumato.report.frame import Row, Spec, chart, layer, layer_charts, nominal, quantitative, tips

PARTS = {"original": "Original", "release": "Release", "difference": "Release − original"}
_NUMBERS_UP_TO = 15
_SMALL_CELL = 28
_WIDTH, _HEIGHT = 260, 230
_NARROW, _LOW = 34, 14  # pixels that a number needs in a tile
_LABEL, _SHORT_LETTERS = 84, 4  # pixels of the longest label, and letters of a short one
_PLENTY = 4.0  # a residual beyond this is far more than chance explains
_TEXT = {"text": nominal("text")}


def charts_of_pairs(
    mosaics: Mapping[str, Any] | None, correlations: Mapping[str, Any] | None, *, suffix: str = ""
) -> dict[str, Spec]:
    """The triptychs: only the original where there is no release."""
    found: dict[str, Spec] = {}
    if mosaics:
        first = next(iter(mosaics["releases"]), None)
        for place, entry in enumerate(mosaics["pairs"]):
            for part in PARTS if len(entry["shares"]) > 1 else ("original",):
                found[f"mosaic-{place}-{part}{suffix}"] = mosaic(entry, part, first=first)
    if correlations:
        first = next(iter(correlations["releases"]), None)
        for part in PARTS if first else ("original",):
            found[f"correlation-{part}{suffix}"] = correlation(correlations, part, first=first)
    return found


def correlation(found: Mapping[str, Any], part: str, *, first: str | None) -> Spec:
    """A heat map of one part of the triptych; that of the release follows the method picked."""
    names = found["columns"]
    if part == "original":
        matrices = {"original": found["original"]}
    else:
        matrices = found["releases" if part == "release" else "differences"]
    rows = [
        {"key": key, "row": row, "column": column, "r": cell, "text": _short(cell)}
        for key, matrix in matrices.items()
        for row, cells in zip(names, matrix, strict=True)
        for column, cell in zip(names, cells, strict=True)
    ]
    numbered = len(names) <= _NUMBERS_UP_TO
    cell = max(24 if numbered else 12, min(44, 250 // len(names)))
    size = (10 if cell > _SMALL_CELL else 8.5) if numbered else None
    encoding = {
        **_cells(column=names, row=names, limit=72, angle=-40),
        "tooltip": tips(row="Column", column="with", text=PARTS[part]),
    }
    return chart(
        f"Correlations of {len(names)} columns, {PARTS[part].lower()}",
        "Blue cells are positive, orange cells negative, pale cells near 0.",
        layer("rect", encoding, color=frame.GREY_FILL, opacity=0.35),
        *_heat_map(encoding, 1.0 if part != "difference" else max(0.1, _largest(matrices)), size=size),
        rows=rows,
        title=PARTS[part],
        width={"step": cell},
        height={"step": cell},
        params=frame.pickable(first),
        transform=[{"filter": frame.SHOWN}],
    )


def _cells(*, limit: int, angle: int, **fields: Sequence[str]) -> Spec:
    """The axes of a heat map: a field with its values across, and one down."""
    axis = {"ticks": False, "domain": False, "labelLimit": limit, "labelPadding": 6, "title": None}
    (across, columns), (down, lines) = fields.items()
    return {
        "x": nominal(across, columns, axis={**axis, "labelAngle": angle}),
        "y": nominal(down, lines, axis=axis),
    }


def _heat_map(encoding: Spec, reach: float, *, size: float | None) -> list[Spec]:
    """Cells in the shade of their value ``r``, and on them the values in words, in letters of this size."""
    known = ["isValid(datum.r)"]
    cells = [layer("rect", {**encoding, "color": _shade(reach)}, where=known)]
    if size is not None:
        words = {**encoding, **_TEXT, "color": _on_shade(reach)}
        cells.append(layer("text", words, where=known, fontSize=size))
    return cells


def _shade(reach: float, *, offset: int = 18) -> Spec:
    """From orange through nearly white at 0 to blue, by the field ``r``; its legend is this far below."""
    legend = {
        "title": None, "orient": "bottom", "gradientLength": 120, "gradientThickness": 8, "tickCount": 3,
        "labelFontSize": 10, "offset": offset,
    }  # fmt: skip
    scale = {"domain": [-reach, 0, reach], "range": ["#b3560a", "#f6f5f2", "#1f6aa8"], "clamp": True}
    return {
        "field": "r", "type": "quantitative", "scale": {**scale, "interpolate": "lab"}, "legend": legend,
    }  # fmt: skip


def _on_shade(reach: float) -> Spec:
    """The colour of text on a shade: white on the dark ones."""
    dark = {"test": f"abs(datum.r) > {0.6 * reach:.6g}", "value": "#ffffff"}
    return {"condition": dark, "value": "#2a2f35"}


def _largest(tables: Mapping[str, Sequence[Sequence[float | None]]]) -> float:
    """The largest number of any release, so that they can be compared."""
    return max((abs(cell or 0.0) for table in tables.values() for row in table for cell in row), default=0.0)


def _short(cell: float | None) -> str:
    """A correlation in as few signs as will do: .42, −.07, 1."""
    if cell is None:
        return "–"
    text = f"{cell:.2f}".replace("0.", ".").replace("1.00", "1").replace("-", "−")
    return "0" if text in {".00", "−.00"} else text


def mosaic(entry: Mapping[str, Any], part: str, *, first: str | None) -> Spec:
    """One part of the triptych of a pair of columns; all but the original follows the method picked."""
    if part == "difference":
        return _difference(entry, first=first)
    keys = [key for key in entry["shares"] if (key == "original") is (part == "original")]
    tiles = [tile for key in keys for tile in _tiles(entry, key)]
    names = _titles(entry)
    return chart(
        f"Mosaic of {names[1]} by {names[0]}, {PARTS[part].lower()}",
        "Each tile is as large as its share of the records.",
        _mosaic_tiles(entry, tiles),
        *_labels(entry, tiles),
        _remark([*_strengths(entry, keys), *(_reasons(entry) if part == "release" else ())]),
        title={"text": PARTS[part], "offset": -6},  # in one line with the remark
        width=_WIDTH,
        height=_HEIGHT,
        params=frame.pickable(first),
    )


def _titles(entry: Mapping[str, Any]) -> list[str]:
    return [label or column for label, column in zip(entry["labels"], entry["columns"], strict=True)]


def _angle(categories: Sequence[str]) -> int:
    """How far the labels below are turned: not at all when they are short."""
    return 0 if max(map(len, categories)) <= _SHORT_LETTERS else -40


def _below(categories: Sequence[str]) -> int:
    """How far down the legend must stand to be clear of labels that are turned."""
    return 18 + round(0.65 * min(_LABEL, 6 * max(map(len, categories)))) if _angle(categories) else 18


def _across(field: str, *, ends: Sequence[int] = (0, 1)) -> Spec:
    scale = {"domain": list(ends), "nice": False}
    return {"field": field, "type": "quantitative", "scale": scale, "axis": None}


def _down(field: str) -> Spec:
    return _across(field, ends=(1, 0))


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


def _mosaic_tiles(entry: Mapping[str, Any], tiles: Sequence[Row]) -> Spec:
    reach = max(_PLENTY, _largest(entry["residuals"]))
    names = _titles(entry)
    roomy = f"(datum.x2 - datum.x) * {_WIDTH} > {_NARROW} && (datum.y2 - datum.y) * {_HEIGHT} > {_LOW}"
    tooltip = [
        *tips(first=names[0], second=names[1]),
        quantitative("share", "Share of records", format=".1%"),
        quantitative("r", "Residual", format=".1f"),
    ]
    color = _shade(reach, offset=_below(entry["categories"][0]))
    corners = {"x": _across("x"), "x2": {"field": "x2"}, "y": _down("y"), "y2": {"field": "y2"}}
    share = {"text": {"field": "share", "type": "quantitative", "format": ".0%"}, "color": _on_shade(reach)}
    middle: list[str | Spec] = [
        roomy,
        {"calculate": "(datum.x + datum.x2) / 2", "as": "middle"},
        {"calculate": "(datum.y + datum.y2) / 2", "as": "centre"},
    ]
    return layer_charts(
        layer("rect", {**corners, "color": color, "tooltip": tooltip}, stroke=frame.PAPER, strokeWidth=1.5),
        layer("text", {"x": _across("middle"), "y": _down("centre"), **share}, where=middle, fontSize=10),
        rows=tiles,
        where=[frame.SHOWN, *_category_names(entry)],
    )


def _category_names(entry: Mapping[str, Any]) -> list[Spec]:
    """Look up the names of the categories of a row by their places."""
    looked_up: list[Spec] = []
    for place, name, categories in zip("ab", ("first", "second"), entry["categories"], strict=True):
        rows = [{place: number, name: category} for number, category in enumerate(categories)]
        source = {"data": frame.inline(rows), "key": place, "fields": [name]}
        looked_up.append({"lookup": place, "from": source})
    return looked_up


def _labels(entry: Mapping[str, Any], tiles: Sequence[Row]) -> list[Spec]:
    """The categories: the first below their columns, the second beside the leftmost tiles."""
    wide = {(t["key"], t["a"]): t for t in tiles if (t["x2"] - t["x"]) * _WIDTH >= frame.TEXT_SIZE}
    high = [t for t in tiles if t["x"] == 0 and (t["y2"] - t["y"]) * _HEIGHT >= frame.TEXT_SIZE - 1]
    first, second = entry["categories"]
    text: Spec = {"where": [frame.SHOWN], "fontSize": frame.TEXT_SIZE, "color": frame.MUTED, "limit": _LABEL}
    angle = _angle(first)
    below: Spec = {"angle": angle, "baseline": "top", "dy": 6, "align": "right" if angle else "center"}
    beside: Spec = {"align": "right", "baseline": "middle", "dx": -6}
    columns = ({"key": t["key"], "at": (t["x"] + t["x2"]) / 2, "text": first[t["a"]]} for t in wide.values())
    lines = ({"key": t["key"], "at": (t["y"] + t["y2"]) / 2, "text": second[t["b"]]} for t in high)
    return [
        layer("text", {"x": _across("at"), "y": {"value": _HEIGHT}, **_TEXT}, rows=columns, **text, **below),
        layer("text", {"x": {"value": 0}, "y": _down("at"), **_TEXT}, rows=lines, **text, **beside),
    ]


def _strengths(entry: Mapping[str, Any], keys: Sequence[str]) -> list[Row]:
    return [{"key": key, "text": f"V = {entry['association'][key]:.2f}"} for key in keys]


def _reasons(entry: Mapping[str, Any]) -> list[Row]:
    """Why a release is not shown."""
    reasons = {"suppressed": "suppressed: small groups", "absent": "not in this release"}
    reasons["unchanged"] = "unchanged"
    return [{"key": key, "text": reason} for which, reason in reasons.items() for key in entry[which]]


def _remark(rows: Sequence[Row]) -> Spec:
    """What is said of a table at the top right."""
    place = {"x": {"value": _WIDTH}, "y": {"value": 0}, **_TEXT}
    style = {"align": "right", "baseline": "bottom", "dy": -8, "color": frame.INK}
    return layer("text", place, rows=rows, where=[frame.SHOWN], **style)


def _difference(entry: Mapping[str, Any], *, first: str | None) -> Spec:
    """By how many points of the records each cell of the release is larger than the original's."""
    names, (across, down) = _titles(entry), entry["categories"]
    rows = [
        {"key": key, "a": i, "b": j, "r": round(100 * cell, 2), "text": _points(cell)}
        for key, table in entry["differences"].items()
        for i, cells in enumerate(table)
        for j, cell in enumerate(cells)
    ]
    encoding = {
        **_cells(first=across, second=down, limit=_LABEL, angle=_angle(across)),
        "tooltip": tips(first=names[0], second=names[1], text="Difference in percentage points"),
    }
    return chart(
        f"Shares of {names[1]} by {names[0]}, release − original",
        "Blue cells have a larger share of the records than in the original, orange cells a smaller one.",
        *_heat_map(encoding, 100 * max(0.01, _largest(entry["differences"])), size=10),
        rows=rows,
        title="Release − original, in percentage points",
        width=_WIDTH,
        height=_HEIGHT,
        params=frame.pickable(first),
        transform=[{"filter": frame.SHOWN}, *_category_names(entry)],
    )


def _points(share: float) -> str:
    """A difference of shares in points: +1.2, −0.3, 0."""
    return f"{100 * share:+.1f}".replace("-", "−") if round(100 * share, 1) else "0"
