"""The strip: each risk or loss of a release on one line, beside that of the original in grey."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.report.marks import GREY_FILL, INK, MUTED, Spec, chart, inline, tip
from sfumato.report.words import figure

#: The colour of the release, the same in all charts of its report.
COLOR = "#0072B2"
#: The release as charts of several methods know it: one of them.
OUTCOMES: Sequence[Mapping[str, Any]] = (
    {"key": "release", "label": "Release", "color": COLOR, "shape": "circle", "dash": [1, 0]},
)
_LINE = 26


def label_axis(rows: Sequence[Mapping[str, Any]], field: str = "label") -> Spec:
    """The names of lines, in their order."""
    return {
        "field": field, "type": "nominal", "sort": [row[field] for row in rows], "title": None,
        "axis": {"labelColor": INK, "labelFontSize": 12, "labelLimit": 260, "domain": False, "ticks": False,
                 "labelPadding": 10},
    }  # fmt: skip


def strip_chart(rows: Sequence[Mapping[str, Any]], *, title: str, reads: str, least: float = 1.0) -> Spec:
    """A line for each measure from the original, grey, to the release; the axis goes to ``least`` or on."""
    drawn = [
        {
            "label": row["title"], "release": row["release"], "original": row["original"],
            "release_said": figure(row["release"]), "original_said": figure(row["original"]),
        }
        for row in rows
    ]  # fmt: skip
    most = max([least, *(row[key] or 0.0 for row in rows for key in ("release", "original"))])
    y = label_axis(drawn)
    x = {
        "type": "quantitative", "title": title, "scale": {"domain": [0, most], "nice": most > least},
        "axis": {"tickCount": 6},
    }  # fmt: skip
    tips = [tip("label", "Measure"), tip("release_said", "Release"), tip("original_said", "Original")]
    known = [{"filter": "isValid(datum.original)"}]
    return chart(
        reads,
        data=inline(drawn),
        height=_LINE * max(len(drawn), 1),
        layer=[
            {"transform": known, "mark": {"type": "rule", "color": GREY_FILL, "strokeWidth": 3},
             "encoding": {"y": y, "x": {**x, "field": "original"}, "x2": {"field": "release"}}},
            {"transform": known, "mark": {"type": "point", "filled": True, "size": 110, "color": GREY_FILL,
                                          "opacity": 1, "stroke": MUTED, "strokeWidth": 0.5},
             "encoding": {"y": y, "x": {**x, "field": "original"}, "tooltip": tips}},
            {"mark": {"type": "point", "filled": True, "size": 90, "color": COLOR, "opacity": 1},
             "encoding": {"y": y, "x": {**x, "field": "release"}, "tooltip": tips}},
        ],
    )  # fmt: skip
