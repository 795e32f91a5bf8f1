"""Charts of class sizes: how many records look alike, and how many are in classes that are too small."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from sfumato.report.class_sizes import said_group
from sfumato.report.column_charts import bars
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


def class_bars(found: Mapping[str, Any], outcomes: Sequence[Mapping[str, Any]]) -> Spec:
    """A grey bar per group of sizes for the original, a mark per release."""
    groups = [said_group(group) for group in found["groups"]]
    entry = {"column": "size of the class", "label": "", "categories": groups, "shares": found["shares"]}
    spec = bars(entry, outcomes)
    return {**spec, "description": "Shares of records by the size of their class, original and releases."}


def class_steps(found: Mapping[str, Any], outcomes: Sequence[Mapping[str, Any]]) -> Spec:
    """The share of records in classes of fewer than 2, 3, 5, 10 … records: those that break k-anonymity."""
    series = named(outcomes, found["shares"])
    rows = _running_sums(found, series)
    limits = [row["k"] for row in rows]
    x = {
        "field": "k", "type": "quantitative", "scale": {"type": "log", "nice": False}, "title": None,
        "axis": {"grid": False, "values": limits, "labelOverlap": True},
    }  # fmt: skip
    y = {
        "field": "value", "type": "quantitative", "title": None, "scale": {"domain": [0, 1]},
        "axis": {"format": "%", "values": [0, 0.25, 0.5, 0.75, 1]},
    }  # fmt: skip
    tips = [
        tip("label", "Table"),
        tip("said", "Class of"),
        {**tip("value", "Share of records"), "format": ".1%"},
    ]
    both = {"x": x, "y": y, "order": {"field": "k"}}
    line = {"type": "line", "strokeWidth": 1.5}
    grey = {"type": "line", "strokeWidth": 5, "color": GREY_FILL, "strokeCap": "round"}
    lined = {**both, "color": by_method(outcomes), **dashed(outcomes)}
    dots = {"type": "point", "size": 60, "opacity": 0, "filled": True}
    return chart(
        "Share of records in classes smaller than k, by k, of the original and of the releases.",
        height=class_bars(found, outcomes)["height"],  # it stands beside them
        params=pickable(),
        data=inline(rows),
        transform=side_by_side(series),
        layer=[
            {"transform": picked(original=True), "mark": grey, "encoding": both},
            {"transform": picked(original=False), "mark": line, "encoding": lined},
            {"transform": [{"filter": SHOWN}], "mark": dots, "encoding": {"x": x, "y": y, "tooltip": tips}},
        ],
    )  # fmt: skip


def _running_sums(found: Mapping[str, Any], series: Sequence[Row]) -> list[Row]:
    """The share of records in classes smaller than k, for each k at which a group of sizes ends."""
    sums = {each["key"]: list(accumulate(found["shares"][each["key"]])) for each in series}
    limits = [last + 1 for _, last in found["groups"]]
    return [
        {
            "k": limit,
            "said": f"fewer than {limit:,}",
            **{key: min(round(sums[key][place], 4), 1) for key in sums},
        }
        for place, limit in enumerate(limits)
    ]
