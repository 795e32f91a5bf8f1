"""Charts of each record's own chance to be found: how many have which, and who is above a threshold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from sfumato.report.marks import GREY, GREY_FILL, INK, Spec, chart, inline, tip
from sfumato.report.strip_charts import COLOR
from sfumato.report.words import figure
from sfumato.risk.individual import Cut

_HEIGHT = 240


def risk_bars(found: Mapping[str, Any]) -> Spec:
    """Bars of the original, grey, and of the release side by side; those above the threshold are marked."""
    ends, threshold = found["ends"], found["threshold"]
    labels = [f"up to {_short(ends[0])}", *(f"{_short(a)} to {_short(b)}" for a, b in pairwise(ends))]
    rows = [
        {
            "label": label, "table": table, "count": count, "order": place,
            "share": count / max(found["records"][key], 1),
            "above": end > threshold * (1 + 1e-9),
            "said": f"{count:,} of {found['records'][key]:,}",
        }
        for key, table in (("original", "Original"), ("release", "Release"))
        if found["records"][key]
        for place, (label, end, count) in enumerate(zip(labels, ends, found[key], strict=True))
    ]  # fmt: skip
    first = next(
        (label for label, end in zip(labels, ends, strict=True) if end > threshold * (1 + 1e-9)), None
    )
    x = {
        "field": "label", "type": "nominal", "sort": labels, "title": "chance to be found",
        "axis": {"labelAngle": -30, "labelLimit": 110},
    }  # fmt: skip
    bars = {
        "mark": {"type": "bar"},
        "encoding": {
            "x": x,
            "xOffset": {"field": "table", "type": "nominal", "sort": ["Original", "Release"]},
            "y": {"field": "share", "type": "quantitative", "title": "share of the records",
                  "axis": {"format": "%", "tickCount": 5}},
            "color": {
                "field": "table", "type": "nominal", "title": None,
                "scale": {"domain": ["Original", "Release"], "range": [GREY_FILL, COLOR]},
                "legend": {"orient": "top", "symbolType": "square"},
            },
            "opacity": {"condition": {"test": "datum.above", "value": 1}, "value": 0.55},
            "tooltip": [tip("label", "Chance"), tip("table", "Table"), tip("said", "Records")],
        },
    }  # fmt: skip
    rule = {
        "data": inline([{"label": first}]),
        "mark": {
            "type": "rule",
            "color": INK,
            "strokeDash": [5, 4],
            "xOffset": {"expr": "-bandwidth('x') * 0.56"},
        },
        "encoding": {"x": x},
    }
    return chart(
        "Bars show which share of the records has which chance to be found. Those right of the dashed line "
        f"are above {_short(threshold)}: records at risk. Grey is the original.",
        data=inline(rows),
        height=_HEIGHT,
        layer=[bars, *([rule] if first else [])],
    )


def _short(value: float) -> str:
    return f"{value:.2g}"


def slider_chart(title: str, rows: Sequence[Sequence[float | str | None]], told: Cut | None = None) -> Spec:
    """Records at risk and the rate over the threshold, each on its own axis; a line where one was set."""
    data = [{"threshold": at, "at_risk": above, "rate": rate} for at, above, rate in rows]
    x = {"field": "threshold", "type": "quantitative", "title": "threshold of the risk"}
    tips = [
        {"field": name, "title": named, "type": "quantitative", "format": ".4g"}
        for name, named in (("threshold", "Threshold"), ("at_risk", "Records at risk"), ("rate", "Rate"))
    ]

    def line(name: str, named: str, color: str, dash: list[int], how: str) -> Spec:
        y = {"field": name, "type": "quantitative", "title": named, "axis": {"titleColor": color}}
        mark = {"type": "line", "color": color, "strokeWidth": 2, "strokeDash": dash, "interpolate": how}
        return {"mark": mark, "encoding": {"x": x, "y": y, "tooltip": tips}}

    stands: list[Spec] = []
    if told is not None:
        mark = {"type": "rule", "color": GREY, "strokeWidth": 1}
        at = {"field": "threshold", "type": "quantitative"}
        here = inline([told._asdict()])
        stands = [{"data": here, "mark": mark, "encoding": {"x": at, "tooltip": tips}}]
    return chart(
        f"{title}: how many records are above a threshold (solid), and the share of "
        "re-identifications if they are protected down to it (dashed)."
        + (f" The line stands at {figure(told.threshold)}." if told else ""),
        data=inline(data),
        height=_HEIGHT,
        layer=[
            line("at_risk", "records at risk", INK, [1, 0], "step-after"),
            line("rate", "rate", GREY, [6, 3], "linear"),
            *stands,
        ],
        resolve={"scale": {"y": "independent"}},
    )
