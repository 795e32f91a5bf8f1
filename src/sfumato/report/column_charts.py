"""Charts of columns and of class sizes, before and after: by bins, value by value, by quantiles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate, pairwise

from sfumato.report import frame
from sfumato.report.class_sizes import size_group
from sfumato.report.frame import (
    Entry,
    Outcomes,
    Row,
    Spec,
    chart,
    layer,
    layer_charts,
    nominal,
    quantitative,
    tips,
)

#: Charts that stand beside each other are of one height.
CHART_HEIGHT = 190


def column_title(entry: Entry) -> str:
    """What a column is called on the page."""
    return str(entry["label"] or entry["column"])


def charts_of_column(entry: Entry, outcomes: Outcomes, place: str) -> dict[str, Spec]:
    """The charts of one column: its shape, and of numbers and dates their quantiles."""
    if not entry["drawn"]:
        return {}
    if entry["drawn"] == "bars":
        return {f"shape-{place}": bars(entry, outcomes)}
    found = {f"shape-{place}": histogram(entry, outcomes)}
    if entry["quantiles"]:
        found[f"quantiles-{place}"] = quantiles(entry, outcomes)
        if len(entry["quantiles"]["values"]) > 1:
            found[f"against-{place}"] = against_original(entry, outcomes)
    return found


def charts_of_classes(found: Entry, outcomes: Outcomes, *, suffix: str = "") -> dict[str, Spec]:
    """The charts of class sizes, where they can be shown."""
    drawn = {"sizes": class_bars, "below": class_steps} if found["shares"] else {}
    return {f"classes-{name}{suffix}": draw(found, outcomes) for name, draw in drawn.items()}


def histogram(entry: Entry, outcomes: Outcomes) -> Spec:
    """Steps over common bins: the original as a grey area, each release as a line."""
    (places, widths), log = _places(entry), entry["axis"] == "log"
    rows, tables = [], frame.method_rows(outcomes, entry["shares"])
    for series in tables:
        heights = [share / w for share, w in zip(entry["shares"][series["key"]], widths, strict=True)]
        rows += [
            {**series, "x": place, "y": round(height, 6)}
            for place, height in zip(places, [*heights, heights[-1]], strict=True)
        ]
    x = value_axis(entry, "x")
    both = {"x": x, "y": quantitative("y", axis=None, scale={"zero": True})}
    tooltip = tips(bin=column_title(entry), **{each["key"]: each["label"] for each in tables})
    lined: Spec = {**both, "color": frame.by_method(outcomes), **frame.dash_by_method(outcomes)}
    bins = {"x": x, "x2": {"field": "x2"}, "tooltip": tooltip}
    return chart(
        f"Distribution of {column_title(entry)}",
        f"Grey is the original, each coloured line a release{', on a logarithmic axis' if log else ''}.",
        layer(
            "area",
            both,
            where=frame.filter_rows(original=True),
            interpolate="step-after",
            color=frame.GREY_FILL,
        ),
        layer(
            "line", lined, where=frame.filter_rows(original=False), interpolate="step-after", strokeWidth=1.75
        ),
        layer("rect", bins, rows=_bins(entry, places, tables), opacity=0),
        rows=rows,
        height=CHART_HEIGHT,
        params=frame.pickable(),
    )


def _places(entry: Entry) -> tuple[list[float], list[float]]:
    """Where the bins are drawn, the open ones one step wide, and how many steps wide each is."""
    edges, step = entry["edges"], entry["step"]
    if entry["axis"] == "log":
        places = [edges[0] / step, *edges, edges[-1] * step]
        return places, [math.log(right / left, step) for left, right in pairwise(places)]
    places = [edges[0] - step, *edges, edges[-1] + step]
    return places, [(right - left) / step for left, right in pairwise(places)]


def value_axis(entry: Entry, field: str) -> Spec:
    """The axis of a column's own values."""
    scales: dict[str, Spec] = {"number": {"zero": False}, "log": {"type": "log"}, "date": {}}
    axis = {"grid": False, "tickCount": 6}
    kind = "temporal" if entry["axis"] == "date" else "quantitative"
    return {**quantitative(field, scale={**scales[entry["axis"]], "nice": False}, axis=axis), "type": kind}


def _bins(entry: Entry, places: Sequence[float], tables: Sequence[Row]) -> list[Row]:
    last = len(places) - 2
    rows = []
    for number, (left, right) in enumerate(pairwise(places)):
        if number == 0:
            range_text = f"below {_tick(entry, right, above=True)}"
        elif number == last:
            range_text = f"{_tick(entry, left, above=True)} and above"
        else:
            range_text = f"{_tick(entry, left, above=True)} to {_tick(entry, right, above=False)}"
        shares = {s["key"]: f"{entry['shares'][s['key']][number]:.1%}" for s in tables}
        rows.append({"x": left, "x2": right, "bin": range_text, **shares})
    return rows


def _tick(entry: Entry, place: float, *, above: bool) -> str:
    """The value at an edge; of whole numbers, the next above or below it."""
    if entry["axis"] == "date":
        return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=place)).date().isoformat()
    if entry["whole"]:
        place += 0.5 if above else -0.5
    return f"{place:,.10g}".replace("-", "−")


def bars(entry: Entry, outcomes: Outcomes, caption: str = "") -> Spec:
    """A grey bar per value for the original, a mark per release."""
    categories = entry["categories"]
    gap = min(8.0, 48 / len(entry["shares"]))
    band = max(18.0, gap * len(entry["shares"]))
    axis = {"labelLimit": 200, "labelPadding": 8, "ticks": False, "domain": False}
    y = nominal("value", categories, title=None, scale={"paddingInner": 0.1, "paddingOuter": 0.05}, axis=axis)
    x = quantitative("share", axis={"format": "%", "tickCount": 5})
    tooltip = tips(label="Table", value=column_title(entry), text="Share of records")
    both = {"x": x, "y": y, "tooltip": tooltip}
    beside = {"yOffset": {"field": "offset", "type": "quantitative", "scale": None}}
    marked = {"color": frame.by_method(outcomes), "shape": frame.by_method(outcomes, channel="shape")}
    return chart(
        caption or f"Share of records by value of {column_title(entry)}",
        "Grey bars are the original, coloured marks the releases.",
        layer(
            "bar", both, where=frame.filter_rows(original=True), color=frame.GREY_FILL, height={"band": 0.85}
        ),
        layer(
            "point", {**both, **marked, **beside}, where=frame.filter_rows(original=False),
            filled=True, size=55, opacity=0.9,
        ),
        rows=_bar_rows(entry, outcomes, gap=gap, band=band),
        height=len(categories) * band,
        params=frame.pickable(),
    )  # fmt: skip


def _bar_rows(entry: Entry, outcomes: Outcomes, *, gap: float, band: float) -> list[Row]:
    tables = frame.method_rows(outcomes, entry["shares"])
    middle = 0.45 * band  # offsets count from the top of a bar, which is nine tenths of its band
    return [
        {
            **series,
            "value": value,
            "share": share,
            "text": f"{share:.1%}",
            "offset": middle + gap * (i - len(tables) / 2),
        }
        for i, series in enumerate(tables)  # the original is the first: the releases stand around the middle
        for value, share in zip(entry["categories"], entry["shares"][series["key"]], strict=True)
    ]


def quantiles(entry: Entry, outcomes: Outcomes) -> Spec:
    """The distribution functions, drawn through quantiles: the original as a broad grey line."""
    series, x = frame.method_rows(outcomes, entry["quantiles"]["values"]), value_axis(entry, "value")
    tooltip = [*tips(label="Table", text="Share at or below"), _value_tip(x, column_title(entry))]
    return chart(
        f"Share of records at or below each value of {column_title(entry)}",
        "Where a line covers the broad grey one, the release has the distribution of the original.",
        *frame.curves(x, frame.share_axis("level"), outcomes, tooltip, order="level"),
        rows=_quantile_rows(entry, series),
        height=CHART_HEIGHT,
        params=frame.pickable(),
        transform=frame.side_by_side(series),
    )


def _value_tip(axis: Spec, title: str) -> Spec:
    return {"field": axis["field"], "title": title, "type": axis["type"]}


def against_original(entry: Entry, outcomes: Outcomes) -> Spec:
    """The quantiles of each release against those of the original; on the diagonal nothing has changed."""
    series = frame.method_rows(outcomes, entry["quantiles"]["values"])
    releases = [each for each in series if each["key"] != "original"]
    rows = [row for row in _quantile_rows(entry, series) if row["original"] is not None]
    values = [row[each["key"]] for row in rows for each in series if row[each["key"]] is not None]
    ends = [{"value": end} for end in ((min(values), max(values)) if values else ())]
    x, y = value_axis(entry, "original"), value_axis(entry, "value")
    x["axis"] = y["axis"] = {"tickCount": 5}
    tooltip = tips(label="Method", text="Share at or below")
    tooltip += [_value_tip(x, "Original"), _value_tip(y, "Release")]
    both = {"x": x, "y": y, "order": {"field": "level"}}
    lined = {**both, "color": frame.by_method(outcomes), **frame.dash_by_method(outcomes)}
    return chart(
        f"Quantiles of {column_title(entry)} in the release against the original",
        "On the grey diagonal nothing has changed.",
        frame.broad_line({"x": {**x, "field": "value"}, "y": y}, rows=ends),
        layer_charts(
            layer("line", lined, strokeWidth=1.5),
            frame.unseen_dots(x, y, tooltip),
            rows=rows,
            where=[*frame.side_by_side(releases), frame.SHOWN],
        ),
        height=CHART_HEIGHT,
        params=frame.pickable(),
    )


def _quantile_rows(entry: Entry, series: Sequence[Row]) -> list[Row]:
    """A row for each level; what a logarithmic axis cannot show is left out."""
    found = entry["quantiles"]
    keys = [each["key"] for each in series]
    return [
        {
            "level": level,
            "text": f"{level:.0%}",
            **{
                key: value if value > 0 or entry["axis"] != "log" else None
                for key, value in zip(keys, values, strict=True)
            },
        }
        for level, values in zip(
            found["levels"], zip(*(found["values"][key] for key in keys), strict=True), strict=True
        )
    ]


def class_bars(found: Entry, outcomes: Outcomes) -> Spec:
    """A grey bar per group of sizes for the original, a mark per release."""
    groups = [size_group(group) for group in found["groups"]]
    entry = {"column": "size of the class", "label": "", "categories": groups, "shares": found["shares"]}
    return bars(entry, outcomes, "Share of records by the size of their equivalence class")


def class_steps(found: Entry, outcomes: Outcomes) -> Spec:
    """The share of records in classes of fewer than 2, 3, 5, 10 … records: those that break k-anonymity."""
    series = frame.method_rows(outcomes, found["shares"])
    rows = _running_sums(found, series)
    axis = {"grid": False, "values": [row["k"] for row in rows], "labelOverlap": True}
    x = quantitative("k", scale={"type": "log", "nice": False}, axis=axis)
    tooltip = tips(label="Table", text="Class of", value="Share of records")
    tooltip[-1]["format"] = ".1%"
    return chart(
        "Share of records in equivalence classes of fewer than k",
        "The axis of k is logarithmic. Grey is the original; the lower a line, the fewer small classes.",
        *frame.curves(x, frame.share_axis("value"), outcomes, tooltip, order="k"),
        rows=rows,
        height=class_bars(found, outcomes)["height"],  # it stands beside them
        params=frame.pickable(),
        transform=frame.side_by_side(series),
    )


def _running_sums(found: Entry, series: Sequence[Row]) -> list[Row]:
    """The share of records in classes smaller than k, for each k at which a group of sizes ends."""
    sums = {each["key"]: list(accumulate(found["shares"][each["key"]])) for each in series}
    limits = [last + 1 for _, last in found["groups"]]
    return [
        {
            "k": limit,
            "text": f"fewer than {limit:,}",
            **{key: min(round(sums[key][place], 4), 1) for key in sums},
        }
        for place, limit in enumerate(limits)
    ]
