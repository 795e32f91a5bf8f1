"""Charts of one release or assessment: risks beside those of the original, attacks, risks of records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from sfumato.report import frame
from sfumato.report.frame import Spec, chart, layer, nominal, quantitative, tips
from sfumato.report.words import figure, setting
from sfumato.risk._sample_classes import RiskThreshold

#: Pixels of a line with dots, of one with dots and intervals, of one with two bars, and of whole charts.
_LINE, _WIDE_LINE, _BAND, _HEIGHT = 26, 30, 34, 240
#: The original and the release, by their keys.
_TABLES = {"original": "Original", "release": "Release"}
#: What a gauge shows of each intruder.
_FACTS = {"highest": "highest risk", "mean": "mean risk", "share_at_risk": "share of records at risk"}
#: What may have happened to a cell, with its words and colour.
_PARTS = {
    "coarser": ("ranges or groups", frame.COLOR),
    "changed": ("another value", "#E69F00"),
    "made anew": ("synthetic value", "#009E73"),
    "suppressed": ("suppressed or removed", "#5c646d"),
}
#: So many columns have a bar, those that lost most first.
_MOST_BARS = 40
#: The threshold that a page can move, and a hair above it: a risk of as much is not above.
_MOVED = "threshold * (1 + 1e-9)"
#: What the line to move is called for who does not see it.
HANDLE = "The threshold, to drag"
_DOT: Spec = {"filled": True, "opacity": 1, "color": frame.COLOR}
_GREY_DOT: Spec = {**_DOT, "size": 110, "color": frame.GREY_FILL, "stroke": frame.MUTED, "strokeWidth": 0.5}


def strip_chart(
    rows: Sequence[Mapping[str, Any]], caption: str, reads: str, *, title: str, least: float = 1.0
) -> Spec:
    """A line for each measure from the original, grey, to the release; the axis goes to ``least`` or on."""
    drawn = [
        {
            "label": row["title"], "release": row["release"], "original": row["original"],
            "release_text": figure(row["release"]), "original_text": figure(row["original"]),
        }
        for row in rows
    ]  # fmt: skip
    most = max([least, *(row[key] or 0.0 for row in rows for key in _TABLES)])
    y = frame.label_axis(drawn)
    tooltip = tips(label="Measure", release_text="Release", original_text="Original")
    before, after = (
        quantitative(key, title, scale={"domain": [0, most], "nice": most > least}, axis={"tickCount": 6})
        for key in _TABLES
    )
    line, known = {"y": y, "x": before, "x2": {"field": "release"}}, ["isValid(datum.original)"]
    return chart(
        caption,
        reads,
        layer("rule", line, where=known, color=frame.GREY_FILL, strokeWidth=3),
        layer("point", {"y": y, "x": before, "tooltip": tooltip}, where=known, **_GREY_DOT),
        layer("point", {"y": y, "x": after, "tooltip": tooltip}, size=90, **_DOT),
        rows=drawn,
        height=_LINE * max(len(drawn), 1),
    )


def loss_bars(columns: Sequence[Mapping[str, Any]]) -> Spec:
    """A bar for each column that is not as it was: which share of its cells met with what."""
    ordered = sorted(columns, key=_share_lost, reverse=True)
    names = [each["column"] for each in ordered if each["shares"]][:_MOST_BARS]
    found = {each["column"]: each for each in columns}
    rows = [
        {
            "label": name, "part": label, "share": share, "place": place, "text": f"{share:.0%}",
            "span": found[name]["spans"].get(part, 1.0), "words": found[name]["became"],
        }
        for name in names
        for place, (part, (label, _)) in enumerate(_PARTS.items())
        if (share := found[name]["shares"].get(part))
    ]  # fmt: skip
    seen = [label for label, _ in _PARTS.values() if any(row["part"] == label for row in rows)]
    colors = {"domain": seen, "range": [color for label, color in _PARTS.values() if label in seen]}
    encoding = {
        "y": frame.label_axis([{"label": name} for name in names]),
        "x": {**frame.share_axis("share"), "title": "share of the cells", "stack": "zero"},
        "color": nominal("part", title=None, scale=colors, legend={"orient": "top", "columns": 4}),
        "opacity": quantitative("span", scale={"domain": [0, 1], "range": [0.3, 1]}, legend=None),
        "order": quantitative("place"),
        "tooltip": tips(label="Column", part="", text="of its cells", words="In words"),
    }
    return chart(
        "Share of cells that changed, by column",
        "The darker a bar, the wider its ranges and groups, or the farther its values are from the original; "
        "the part without a bar is unchanged.",
        layer("bar", encoding, height={"band": 0.7}),
        rows=rows,
        height=_LINE * len(names) + 30,
    )


def _share_lost(column: Mapping[str, Any]) -> float:
    """How much of a column was lost: the share of its cells, each by how much of the column it lost."""
    shares, spans = column["shares"], column["spans"]
    return float(sum(share * spans.get(part, 1.0) for part, share in shares.items()))


def drawable(entries: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The risks that run from 0 to 1 and have a number."""
    return [each for each in entries if each["value"] is not None and each["share"]]


def attack_chart(entries: Sequence[Mapping[str, Any]]) -> Spec:
    """A dot for each risk with its interval; a tick for the blind guess, a diamond for the control group."""
    several = len({each["scenario"] for each in entries}) > 1
    rows = [
        {
            "label": each["title"] + (f" ({each['scenario']})" if several else ""),
            "value": each["value"], "original": each.get("original"),
            "low": each["interval"][0] if each["interval"] else None,
            "high": each["interval"][1] if each["interval"] else None,
            "baseline": each["baseline"], "control": each["control"], "rate": each["rate"],
            "text": figure(each["value"]), "words": each["words"],
        }
        for each in entries
    ]  # fmt: skip
    y, tooltip = frame.label_axis(rows), tips(label="Measure", text="Release", words="In words")
    title = "share of people, or probability (0 to 1; lower is safer)"

    def across(field: str) -> Spec:
        return {"y": y, "x": quantitative(field, title, scale={"domain": [0, 1]}, axis={"tickCount": 6})}

    def marks(field: str, mark: str = "point", **style: Any) -> Spec:
        encoding = {**across(field), "tooltip": tooltip}
        return layer(mark, encoding, where=[f"isValid(datum.{field})"], **style)

    def line(field: str, to: str, known: str, **style: Any) -> Spec:
        ends = {**across(field), "x2": {"field": to}}
        return layer("rule", ends, where=[f"isValid(datum.{known})"], **style)

    reads = "Blue dots are the release, with intervals; grey dots the original; black ticks a blind guess."
    if any(each["control"] is not None for each in entries):
        reads += (
            " Open circles are how often an attack is right about people in the release, diamonds about the "
            "control group: the wider the gap, the higher the risk."
        )
    return chart(
        "Risk by measure",
        reads,
        marks("original", **_GREY_DOT),
        line("low", "high", "low", strokeWidth=2.5, opacity=0.55, color=frame.COLOR),
        marks("baseline", "tick", color=frame.INK, thickness=2, size=18),
        line("control", "rate", "rate", strokeDash=[2, 3], color=frame.MUTED),
        marks("rate", color=frame.COLOR, size=70, filled=False),
        marks("control", shape="diamond", color=frame.INK, size=90, filled=False),
        marks("value", size=100, **_DOT),
        rows=rows,
        height=_WIDE_LINE * max(len(rows), 1),
    )


def gauge_chart(gauges: Sequence[Mapping[str, Any]]) -> Spec:
    """For each intruder the highest risk, the mean one and the share of records at risk."""
    rows = [
        {"text": f"{gauge['title']}: {named}", **{key: (gauge[key] or {}).get(fact) for key in _TABLES}}
        for gauge in gauges
        for fact, named in _FACTS.items()
    ]
    axis = {"scale": {"domain": [0, 1]}, "axis": {"tickCount": 6}}
    caption, reads = "Re-identification risk by intruder", "Shorter bars are safer."
    return before_after(rows, "text", caption, reads, title="probability, or share of records", axis=axis)


def before_after(
    rows: Sequence[Mapping[str, Any]],
    field: str,
    caption: str,
    reads: str,
    *,
    title: str,
    axis: Spec | None = None,
) -> Spec:
    """Two bars for each line, the original's in grey above the release's."""
    drawn = [
        {"label": str(row[field]), "table": table, "value": row[key], "text": setting(row[key])}
        for row in rows
        for key, table in _TABLES.items()
        if row[key] is not None
    ]
    beside, color = frame.by_table()
    encoding = {
        "y": frame.label_axis([{"label": str(row[field])} for row in rows]),
        "yOffset": beside,
        "x": quantitative("value", title, **(axis or {"axis": {"tickCount": 5, "tickMinStep": 1}})),
        "color": color,
        "tooltip": tips(label="", table="Table", text=title),
    }
    more: Spec = {}
    if field == "column":
        more["params"], encoding["opacity"] = frame.column_pick()
    return chart(caption, reads, layer("bar", encoding), rows=drawn, height=_BAND * max(len(rows), 1), **more)


def risk_bars(found: Mapping[str, Any]) -> Spec:
    """Bars of the original, grey, and of the release side by side; those above the threshold are marked.

    A page can move the parameter ``threshold``: ``starts`` are the risks at which the bars begin.
    """
    ends, threshold = found["ends"], found["threshold"]
    labels = [f"up to {_short(ends[0])}", *(f"{_short(a)} to {_short(b)}" for a, b in pairwise(ends))]
    bars = [
        {"label": label, "start": start, "end": end}
        for label, start, end in zip(labels, (0.0, *ends), ends, strict=False)
    ]
    rows = [
        {
            **bar, "table": table, "count": count, "share": count / max(found["records"][key], 1),
            "text": f"{count:,} of {found['records'][key]:,}",
        }
        for key, table in _TABLES.items()
        if found["records"][key]
        for bar, count in zip(bars, found[key], strict=True)
    ]  # fmt: skip
    axis = {"labelAngle": -30, "labelLimit": 110}
    x, (beside, color) = nominal("label", labels, title="risk of a record", axis=axis), frame.by_table()
    encoding = {
        "x": x,
        "xOffset": beside,
        "y": quantitative("share", "share of records", axis={"format": "%", "tickCount": 5}),
        "color": color,
        "opacity": {"condition": {"test": f"datum.end > {_MOVED}", "value": 1}, "value": 0.55},
        "tooltip": tips(label="Risk", table="Table", text="Records"),
    }
    first = [f"datum.start <= {_MOVED} && {_MOVED} < datum.end"]
    line: Spec = {"rows": [{**bar, "handle": True} for bar in bars], "where": first}
    line["xOffset"] = {"expr": "-bandwidth('x') * 0.56"}
    spec = chart(
        "Share of records by their re-identification risk",
        f"Records right of the dashed line are at risk: their risk is above {_short(threshold)}.",
        layer("bar", encoding),
        layer("rule", {"x": x}, color=frame.INK, strokeDash=[5, 4], **line),
        layer("rule", {"x": x}, strokeWidth=18, opacity=0, description=HANDLE, **line),
        rows=rows,
        height=_HEIGHT,
        params=[{"name": "threshold", "value": threshold}],
    )
    return {**spec, "usermeta": {**spec["usermeta"], "starts": [bar["start"] for bar in bars]}}


def _short(value: float) -> str:
    return f"{value:.2g}"


def slider_chart(
    title: str,
    rows: Sequence[Sequence[float | str | None]],
    threshold: RiskThreshold | None = None,
    *,
    movable: bool = False,
) -> Spec:
    """Records at risk and the rate over the threshold, each on its own axis; a line where one was set.

    The line of a chart that is ``movable`` is where its parameter ``threshold`` says.
    """
    fields = {"threshold": "Threshold", "at_risk": "Records at risk", "rate": "Expected rate"}
    tooltip = [quantitative(field, named, format=".4g") for field, named in fields.items()]
    x = quantitative("threshold", "threshold of the risk")

    def line(field: str, named: str, color: str, dash: list[int], how: str) -> Spec:
        encoding = {"x": x, "y": quantitative(field, named, axis={"titleColor": color}), "tooltip": tooltip}
        return layer("line", encoding, color=color, strokeWidth=2, strokeDash=dash, interpolate=how)

    layers = [
        line("at_risk", "records at risk", frame.INK, [1, 0], "step-after"),
        line("rate", "expected rate", frame.GREY, [6, 3], "linear"),
    ]
    reads = (
        "Solid: records above the threshold. Dashed: share of records that would be re-identified if these "
        "were protected down to the threshold."
    )
    more: Spec = {"resolve": {"scale": {"y": "independent"}}}
    if threshold is not None:
        place: Spec = {"x": {"field": "threshold", "type": "quantitative"}, "tooltip": tooltip}
        if movable:
            place = {"x": {"value": {"expr": "scale('x', threshold)"}}}
            more["params"] = [{"name": "threshold", "value": threshold.threshold}]
        layers += [layer("rule", place, rows=[threshold._asdict()], color=frame.GREY, strokeWidth=1)]
        if movable:
            held: Spec = {"strokeWidth": 18, "opacity": 0, "description": HANDLE}
            layers += [layer("rule", place, rows=[{"handle": True}], **held)]
        reads += f" The vertical line is at {figure(threshold.threshold)}."
    drawn = [{"threshold": at, "at_risk": above, "rate": rate} for at, above, rate in rows]
    return chart(f"{title} by threshold", reads, *layers, rows=drawn, height=_HEIGHT, **more)


def contribution_chart(title: str, by_column: Mapping[str, float]) -> Spec:
    """A bar for each column, the longest first."""
    ordered = sorted(by_column.items(), key=lambda each: -each[1])
    rows = [{"column": column, "value": value, "text": figure(value)} for column, value in ordered]
    encoding = {
        "y": frame.label_axis(rows, "column"),
        "x": quantitative("value", title),
        "tooltip": tips(column="Column", text=title),
    }
    bar, reads = layer("bar", encoding, color=frame.GREY), "Each bar is the value for one column."
    return chart(f"{title} by column", reads, bar, rows=rows, height=24 * max(len(rows), 1))


def estimator_chart(what: str, estimators: Sequence[Mapping[str, Any]]) -> Spec:
    """A mark for each estimator with its spread, and a line at the truth."""
    rows = [
        {
            "label": each["measure"].replace("(model=", ": ").removesuffix(")"), "mean": each["estimate"],
            "low": max(each["estimate"] - each["spread"], 0.0), "high": each["estimate"] + each["spread"],
            "text": figure(each["estimate"]),
        }
        for each in estimators
    ]  # fmt: skip
    # an estimator without a number for some samples has the truth of fewer of them
    truth = max(estimators, key=lambda each: each["draws"])["truth"]
    y = frame.label_axis(rows)
    mean, low = (
        quantitative(field, f"share: {what}", scale={"zero": True}, axis={"tickCount": 8})
        for field in ("mean", "low")
    )
    place = {"x": {"field": "truth", "type": "quantitative"}}
    return chart(
        f"Estimates of {what}",
        f"Dots are mean estimates, bars the spread over the samples; the line is the truth, {figure(truth)}.",
        layer("rule", place, rows=[{"truth": truth}], color=frame.GREY, strokeWidth=2),
        layer("rule", {"y": y, "x": low, "x2": {"field": "high"}}, strokeWidth=2.5, opacity=0.55),
        layer(
            "point", {"y": y, "x": mean, "tooltip": tips(label="Estimator", text="Mean estimate")},
            filled=True, size=90, opacity=1,
        ),
        rows=rows,
        height=max(26 * len(rows), 60),
    )  # fmt: skip
