"""The page of an assessment: the scores, which columns they come from, and the slider of risks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from sfumato.core.measure import Measure, Score
from sfumato.report.exposure import slider
from sfumato.report.exposure_charts import slider_chart
from sfumato.report.marks import GREY, INK, Spec, chart, inline, tip
from sfumato.report.pictures import Pictures, Section
from sfumato.report.words import figure
from sfumato.risk.individual import cut_at


def assessment_pictures(measures: Sequence[Measure], scores: Mapping[str, Score]) -> Pictures:
    """Say scores as a page: a table of all, and the pictures of those that have some."""
    rows = [
        [str(each), _finite(found.value), each.better, type(each).summary(), found.status.value, found.reason]
        for each in measures
        if (found := scores[str(each)])
    ]
    headers = ("measure", "value", "better", "what it is", "status", "remark")
    sections = [Section("Scores", "", headers, rows)]
    for place, each in enumerate(measures):
        section = _pictures_of(each, scores[str(each)], place)
        if section.charts:
            sections.append(section)
    return Pictures("assessment", f"{len(rows)} measures", (), sections)


def _pictures_of(measure: Measure, found: Score, place: int) -> Section:
    charts: dict[str, Spec] = {}
    rows: list[list[float | str | None]] = []
    headers: tuple[str, ...] = ()
    words = type(measure).summary()
    if found.by_column:
        charts[f"columns-{place}"] = _columns(measure, found.by_column)
    if found.by_value:
        headers = ("column", "value", "share")
        rows = [[name, *each] for name, values in found.by_value.items() for each in values.items()]
        rows.sort(key=lambda row: -float(row[2] or 0))
    if measure.tells.intruder and measure.bounds == (0.0, 1.0) and found.by_record is not None:
        risks = found.by_record[np.isfinite(found.by_record)]
        if len(risks):
            rows = slider(risks)
            headers = ("threshold", "records at risk", "rate")
            asked = found.details.get("threshold")
            told = cut_at(risks, threshold=float(asked)) if isinstance(asked, float) else None
            charts[f"slider-{place}"] = slider_chart(measure.title, rows, told)
            at, above, rate = told or rows[len(rows) // 2]
            words += (
                f" To read the picture: above a risk of {at:.3g} are {above:,} of {len(risks):,} records; if "
                f"they were protected down to it, {rate:.2%} of all records would be expected to be found."
            )
    return Section(measure.title, words, headers, rows, charts)


def _columns(measure: Measure, by_column: Mapping[str, float]) -> Spec:
    """A bar for each column, the longest first."""
    ordered = sorted(by_column.items(), key=lambda each: -each[1])
    rows = [
        {"column": name, "value": value, "said": figure(value)}
        for name, value in ordered
        if math.isfinite(value)
    ]
    y = {
        "field": "column", "type": "nominal", "sort": [row["column"] for row in rows], "title": None,
        "axis": {"labelColor": INK, "labelFontSize": 12, "labelLimit": 240, "domain": False, "ticks": False},
    }  # fmt: skip
    return chart(
        f"{measure.title} by column: what each contributes.",
        data=inline(rows),
        height=24 * max(len(rows), 1),
        mark={"type": "bar", "color": GREY},
        encoding={
            "y": y,
            "x": {
                "field": "value",
                "type": "quantitative",
                "title": f"what each column adds to {measure.title}",
            },
            "tooltip": [tip("column", "Column"), tip("said", measure.title)],
        },
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
