"""The page of an assessment: the scores, which columns they come from, and the slider of risks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from sfumato.core.measure import Measure, Score
from sfumato.errors import count_noun
from sfumato.report.exposure import slider
from sfumato.report.frame import Spec
from sfumato.report.pictures import Pictures, Section
from sfumato.report.release_charts import contribution_chart, slider_chart
from sfumato.report.words import finite
from sfumato.risk._sample_classes import cut_at


def assessment_pictures(measures: Sequence[Measure], scores: Mapping[str, Score]) -> Pictures:
    """The page of scores: a table of all, and the pictures of those that have some."""
    rows = [
        [name, finite(found.value), f"{each.better}er", each.description(), found.status.value, found.reason]
        for each in measures
        if (found := scores[name := str(each)])
    ]
    headers = ("measure", "value", "better is", "meaning", "status", "remark")
    sections = [Section("Scores", "", headers, rows)]
    for place, each in enumerate(measures):
        section = _pictures_of(each, scores[str(each)], place)
        if section.charts:
            sections.append(section)
    return Pictures("assessment", count_noun(len(rows), "measure"), (), sections)


def _pictures_of(measure: Measure, found: Score, place: int) -> Section:
    charts: dict[str, Spec] = {}
    rows: list[list[float | str | None]] = []
    headers: tuple[str, ...] = ()
    words = type(measure).summary()
    if found.by_column:
        finite = {name: value for name, value in found.by_column.items() if math.isfinite(value)}
        charts[f"columns-{place}"] = contribution_chart(measure.title, finite)
    if found.by_value:
        headers = ("column", "value", "share")
        rows = [[name, *each] for name, values in found.by_value.items() for each in values.items()]
        rows.sort(key=lambda row: -float(row[2] or 0))
    if measure.tells.intruder and measure.bounds == (0.0, 1.0) and found.by_record is not None:
        risks = found.by_record[np.isfinite(found.by_record)]
        if len(risks):
            rows = slider(risks)
            headers = ("threshold", "records at risk", "expected rate")
            asked = found.details.get("threshold")
            threshold = cut_at(risks, threshold=float(asked)) if isinstance(asked, float) else None
            charts[f"slider-{place}"] = slider_chart(measure.title, rows, threshold)
            at, above, rate = threshold or rows[len(rows) // 2]
            words += (
                f" Example: {above:,} of {len(risks):,} records have a risk above {at:.3g}; if they were "
                f"protected down to it, {rate:.2%} of all records would be expected to be re-identified."
            )
    return Section(measure.title, words, headers, rows, charts)
