"""Charts of quantiles: the distribution functions, and the quantiles of a release against the original's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.report.column_charts import CHART_HEIGHT, titled, value_axis
from sfumato.report.marks import (
    GREY_FILL,
    SHOWN,
    Row,
    Spec,
    by_method,
    chart,
    dashed,
    inline,
    named,
    pickable,
    picked,
    side_by_side,
    tip,
)


def quantiles(entry: Mapping[str, Any], outcomes: Sequence[Mapping[str, Any]]) -> Spec:
    """The distribution functions, drawn through quantiles: the original as a broad grey line."""
    series = named(outcomes, entry["quantiles"]["values"])
    x = value_axis(entry, "value")
    y = {
        "field": "level", "type": "quantitative", "title": None, "scale": {"domain": [0, 1]},
        "axis": {"format": "%", "values": [0, 0.25, 0.5, 0.75, 1]},
    }  # fmt: skip
    both = {"x": x, "y": y, "order": {"field": "level"}}
    tips = [tip("label", "Table"), tip("said", "Share at or below")]
    tips.append({"field": "value", "title": titled(entry), "type": x["type"]})
    lined = {**both, "color": by_method(outcomes), **dashed(outcomes)}
    original, releases = picked(original=True), picked(original=False)
    grey = {"type": "line", "strokeWidth": 5, "color": GREY_FILL, "strokeCap": "round"}
    dots = {"type": "point", "size": 60, "opacity": 0, "filled": True}
    return chart(
        f"Share of records at or below each value of {titled(entry)}: the original and the releases.",
        height=CHART_HEIGHT,
        params=pickable(),
        data=inline(_rows(entry, series)),
        transform=side_by_side(series),
        layer=[
            {"transform": original, "mark": grey, "encoding": both},
            {"transform": releases, "mark": {"type": "line", "strokeWidth": 1.5}, "encoding": lined},
            {"transform": [{"filter": SHOWN}], "mark": dots, "encoding": {"x": x, "y": y, "tooltip": tips}},
        ],
    )  # fmt: skip


def against_original(entry: Mapping[str, Any], outcomes: Sequence[Mapping[str, Any]]) -> Spec:
    """The quantiles of each release against those of the original; on the diagonal nothing has changed."""
    series = named(outcomes, entry["quantiles"]["values"])
    releases = [each for each in series if each["key"] != "original"]
    rows = [row for row in _rows(entry, series) if row["original"] is not None]
    values = [row[each["key"]] for row in rows for each in series if row[each["key"]] is not None]
    ends = [{"value": end} for end in ((min(values), max(values)) if values else ())]
    x, y = value_axis(entry, "original"), value_axis(entry, "value")
    x["axis"] = y["axis"] = {"tickCount": 5}
    tips = [
        tip("label", "Method"), tip("said", "Share at or below"),
        {"field": "original", "title": "Original", "type": x["type"]},
        {"field": "value", "title": "Release", "type": y["type"]},
    ]  # fmt: skip
    lined = {"x": x, "y": y, "order": {"field": "level"}, "color": by_method(outcomes), **dashed(outcomes)}
    dots = {"type": "point", "size": 60, "opacity": 0, "filled": True}
    return chart(
        f"Quantiles of {titled(entry)} after against those before: on the diagonal nothing has changed.",
        height=CHART_HEIGHT,
        params=pickable(),
        layer=[
            {
                "data": inline(ends),
                "mark": {"type": "line", "strokeWidth": 5, "color": GREY_FILL, "strokeCap": "round"},
                "encoding": {"x": {**x, "field": "value"}, "y": y},
            },
            {
                "data": inline(rows),
                "transform": [*side_by_side(releases), {"filter": SHOWN}],
                "layer": [
                    {"mark": {"type": "line", "strokeWidth": 1.5}, "encoding": lined},
                    {"mark": dots, "encoding": {"x": x, "y": y, "tooltip": tips}},
                ],
            },
        ],
    )


def _rows(entry: Mapping[str, Any], series: Sequence[Row]) -> list[Row]:
    """A row for each level; what a logarithmic axis cannot show is left out."""
    found = entry["quantiles"]
    keys = [each["key"] for each in series]
    return [
        {
            "level": level,
            "said": f"{level:.0%}",
            **{
                key: value if value > 0 or entry["axis"] != "log" else None
                for key, value in zip(keys, values, strict=True)
            },
        }
        for level, values in zip(
            found["levels"], zip(*(found["values"][key] for key in keys), strict=True), strict=True
        )
    ]
