"""The page of a simulation: each estimator's numbers beside the truth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sfumato.errors import count_noun
from sfumato.report.pictures import Pictures, Section
from sfumato.report.release_charts import estimator_chart
from sfumato.study.simulate import Simulation

_HEADERS = (
    "estimator", "truth", "estimate", "bias", "spread", "error", "interval right", "samples without a number",
)  # fmt: skip
_NAMES = (
    "measure", "truth", "estimate", "bias", "spread", "error", "interval_held", "not_estimable",
)  # fmt: skip
_WORDS = (
    "The best estimators come first. Bias is the mean difference from the truth (below 0 the risk is "
    "understated), spread its standard deviation over the samples, error both together; a 95 % interval "
    "should contain the truth in 0.95 of the samples."
)


def simulation_pictures(found: Simulation) -> Pictures:
    """Say a simulation as a page: for each number that is estimated a picture and a table."""
    estimators = found.to_dict()["estimators"]
    sections = []
    for place, what in enumerate(dict.fromkeys(each["estimates"] for each in estimators)):
        rivals = [each for each in estimators if each["estimates"] == what]
        drawn = [each for each in rivals if each["draws"]]
        charts = {f"estimators-{place}": estimator_chart(what, drawn)} if drawn else {}
        rows = [[each[name] for name in _NAMES] for each in rivals]
        title, words = what[:1].upper() + what[1:], _words(rivals, first=not place)
        sections.append(Section(title, words, _HEADERS, rows, charts))
    title = f"{found.draws:,} samples, each of {found.sample:,} of {found.people:,} people"
    return Pictures("simulation", title, found.verdict(), sections)


def _words(rivals: Sequence[dict[str, Any]], *, first: bool) -> str:
    """How to read the section, and who gave no number, and why."""
    without = [
        f"{each['measure']} gave no number for {count_noun(count, 'sample')}: {each['reason']}."
        for each in rivals
        if (count := each["not_estimable"])
    ]
    return " ".join([_WORDS] * first + without)
