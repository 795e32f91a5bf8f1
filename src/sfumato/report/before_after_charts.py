"""Charts of before and after: rare combinations and their keys, and the gauges of intruders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.report.marks import GREY_FILL, Spec, chart, inline, tip
from sfumato.report.strip_charts import COLOR, label_axis

_BAND = 34


#: What a gauge shows of each intruder.
_FACTS = (("highest", "highest chance"), ("mean", "mean chance"), ("share_at_risk", "share at risk"))


def gauge_chart(gauges: Sequence[Mapping[str, Any]]) -> Spec:
    """For each intruder the highest chance, the mean one and the share of records at risk."""
    rows = [
        {
            "said": f"{gauge['title']}: {named}",
            **{key: (gauge[key] or {}).get(fact) for key in ("original", "release")},
        }
        for gauge in gauges
        for fact, named in _FACTS
    ]
    reads = "From 0 to 1: the bar of the original is grey, that of the release blue; shorter is safer."
    spec = before_after(rows, "said", title="chance, or share of the records", reads=reads)
    spec["encoding"]["x"] |= {"scale": {"domain": [0, 1]}, "axis": {"tickCount": 6}}
    return spec


def before_after(rows: Sequence[Mapping[str, Any]], field: str, *, title: str, reads: str) -> Spec:
    """Two bars for each line, the original's in grey above the release's."""
    order = [{"label": str(row[field])} for row in rows]
    drawn = [
        {"label": str(row[field]), "table": table, "value": row[key], "said": f"{row[key]:,.6g}"}
        for row in rows
        for key, table in (("original", "Original"), ("release", "Release"))
        if row[key] is not None
    ]
    tables = {"domain": ["Original", "Release"], "range": [GREY_FILL, COLOR]}
    return chart(
        reads,
        data=inline(drawn),
        height=_BAND * max(len(order), 1),
        mark={"type": "bar"},
        encoding={
            "y": label_axis(order),
            "yOffset": {"field": "table", "type": "nominal", "sort": ["Original", "Release"]},
            "x": {"field": "value", "type": "quantitative", "title": title,
                  "axis": {"tickCount": 5, "tickMinStep": 1}},
            "color": {"field": "table", "type": "nominal", "title": None, "scale": tables,
                      "legend": {"orient": "top", "symbolType": "square"}},
            "tooltip": [tip("label", ""), tip("table", "Table"), tip("said", title)],
        },
    )  # fmt: skip
