"""Figures of the papers in the charts of the report: lines of numbers, surfaces of two settings, bars."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sfumato.report import frame
from sfumato.report.frame import Row, Spec, chart, layer, nominal, quantitative, tips
from sfumato.report.words import figure

#: Colours that people with any colour vision tell apart (Okabe and Ito).
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_HEIGHT = 280


def points_of(values: Mapping[str, Any], table: str) -> list[tuple[str, str, float]]:
    """Row, column and number of each cell of a table that has a number; of a band the mean."""
    split = ((key.split("/"), _mean(value)) for key, value in values.items())
    return [(parts[1], parts[2], value) for parts, value in split if parts[0] == table and value is not None]


def _mean(value: Any) -> float | None:
    mean = value[0] if isinstance(value, list) else value
    return mean if isinstance(mean, int | float) else None


def lines(
    caption: str, reads: str, points: Iterable[tuple[str, str, float]], *, x: str, y: str, log: bool = False
) -> Spec:
    """A line for each row, through its columns as numbers."""
    rows: list[Row] = [
        {"line": line, "x": float(at), "y": value, "text": figure(value)} for line, at, value in points
    ]
    across: Spec = {"type": "log"} if log else {"zero": False}
    both = {
        "x": quantitative("x", x, scale=across, axis={"tickCount": 7}),
        "y": quantitative("y", y, scale={"zero": False}),
        "color": _by_name([row["line"] for row in rows], "line"),
    }
    tooltip = tips(line="Line", x=x, text=y)
    return chart(
        caption, reads, layer("line", both, strokeWidth=1.8),
        layer("point", {**both, "tooltip": tooltip}, filled=True, size=46, opacity=1),
        rows=rows, height=_HEIGHT,
    )  # fmt: skip


def bars(caption: str, reads: str, points: Iterable[tuple[str, str, float]], *, y: str) -> Spec:
    """A group of bars for each row, one bar for each column."""
    rows: list[Row] = [
        {"group": row, "bar": bar, "y": value, "text": figure(value)} for row, bar, value in points
    ]
    names = list(dict.fromkeys(row["bar"] for row in rows))
    encoding = {
        "x": nominal("group", list(dict.fromkeys(row["group"] for row in rows)), title=None,
                     axis={"labelAngle": -25, "labelLimit": 180}),
        "xOffset": nominal("bar", names), "y": quantitative("y", y), "color": _by_name(names, "bar"),
        "tooltip": tips(group="Row", bar="Column", text=y),
    }  # fmt: skip
    return chart(caption, reads, layer("bar", encoding), rows=rows, height=_HEIGHT)


def surface(
    caption: str, reads: str, points: Iterable[tuple[str, str, float]], *, x: str, y: str, value: str
) -> Spec:
    """A cell with its number for each pair of settings of two parameters, darker where it is larger."""
    rows: list[Row] = [
        {"y": down, "x": across, "z": number, "text": _short(number)} for down, across, number in points
    ]
    place = {
        "x": nominal("x", _order(rows, "x"), title=x, axis={"labelAngle": 0}),
        "y": nominal("y", _order(rows, "y"), title=y),
    }
    middle = (max((row["z"] for row in rows), default=0.0) + min((row["z"] for row in rows), default=0.0)) / 2
    shade = quantitative("z", scale={"scheme": "blues"}, legend={"title": value})
    ink = {"condition": {"test": f"datum.z > {middle!r}", "value": "white"}, "value": "#1f2328"}
    return chart(
        caption, reads,
        layer("rect", {**place, "color": shade, "tooltip": tips(x=x, y=y, text=value)}),
        layer("text", {**place, "text": nominal("text"), "color": ink}, fontSize=frame.TEXT_SIZE),
        rows=rows, height=_HEIGHT,
    )  # fmt: skip


def _short(number: float) -> str:
    """A number in a cell: two decimals, or none of large and of whole ones."""
    return f"{number:,.0f}" if abs(number) >= 100 or float(number).is_integer() else f"{number:.2f}"  # noqa: PLR2004


def _order(rows: Sequence[Row], field: str) -> list[str]:
    return list(dict.fromkeys(row[field] for row in rows))


def _by_name(names: Sequence[str], field: str) -> Spec:
    distinct = list(dict.fromkeys(names))
    colors = [_COLORS[place % len(_COLORS)] for place in range(len(distinct))]
    legend = {"orient": "top", "title": None, "columns": 3}
    return nominal(field, title=None, scale={"domain": distinct, "range": colors}, legend=legend)
