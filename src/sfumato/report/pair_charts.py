"""Heat maps of what hangs together: the original, the release picked on the page, and the difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.report.marks import GREY_FILL, SHOWN, Spec, chart, inline, pickable, tip

_NUMBERS_UP_TO = 15
_SMALL_CELL = 28
PARTS = {"original": "Original", "release": "Release", "difference": "Release − original"}


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
        "tooltip": [tip("row", "Column"), tip("column", "with"), tip("said", PARTS[part])],
    }
    layers = [_blanks(encoding), shaded_cells(encoding, reach)]
    if numbered:
        layers.append(numbers(encoding, reach, size=10 if cell > _SMALL_CELL else 8.5))
    return chart(
        f"Correlations of {len(names)} columns, {PARTS[part].lower()}, as a heat map.",
        title=PARTS[part],
        width={"step": cell},
        height={"step": cell},
        params=pickable(first),
        data=inline(rows),
        transform=[{"filter": SHOWN}],
        layer=layers,
    )


def _blanks(encoding: Spec) -> Spec:
    return {"mark": {"type": "rect", "color": GREY_FILL, "opacity": 0.35}, "encoding": encoding}


def shaded_cells(encoding: Spec, reach: float) -> Spec:
    """Cells in the shade of their value ``r``."""
    return {
        "transform": [{"filter": "isValid(datum.r)"}],
        "mark": {"type": "rect"},
        "encoding": {**encoding, "color": shade(reach)},
    }


def shade(reach: float, *, offset: int = 18) -> Spec:
    """From orange through nearly white at 0 to blue, by the field ``r``; its legend is this far below."""
    legend = {
        "title": None, "orient": "bottom", "gradientLength": 120, "gradientThickness": 8, "tickCount": 3,
        "labelFontSize": 10, "offset": offset,
    }  # fmt: skip
    scale = {
        "domain": [-reach, 0, reach],
        "range": ["#b3560a", "#f6f5f2", "#1f6aa8"],
        "clamp": True,
        "interpolate": "lab",
    }
    return {"field": "r", "type": "quantitative", "scale": scale, "legend": legend}


def numbers(encoding: Spec, reach: float, *, size: float) -> Spec:
    """The values of the cells in words."""
    return {
        "transform": [{"filter": "isValid(datum.r)"}],
        "mark": {"type": "text", "fontSize": size},
        "encoding": {**encoding, "text": {"field": "said", "type": "nominal"}, "color": on_shade(reach)},
    }


def on_shade(reach: float) -> Spec:
    """The colour of text on a shade: white on the dark ones."""
    return {
        "condition": {"test": f"abs(datum.r) > {0.6 * reach:.6g}", "value": "#ffffff"},
        "value": "#2a2f35",
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
