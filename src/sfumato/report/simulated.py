"""The page of a simulation: each estimator's numbers beside the truth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sfumato.report.marks import GREY, INK, Spec, chart, inline, tip
from sfumato.report.pictures import Pictures, Section
from sfumato.report.words import figure
from sfumato.study.simulate import Simulation

_HEADERS = (
    "estimator", "truth", "estimate", "bias", "spread", "error", "interval held", "samples without a number",
)  # fmt: skip
_NAMES = (
    "measure", "truth", "estimate", "bias", "spread", "error", "interval_held", "not_estimable",
)  # fmt: skip
_WORDS = (
    "The nearest come first. Bias is how far the estimate lies above the truth on average (below 0 it "
    "understates the risk), spread how much that varies from sample to sample, error both together; an "
    "interval of 95 % should hold the truth in 0.95 of the samples."
)


def simulation_pictures(found: Simulation) -> Pictures:
    """Say a simulation as a page: for each number that is estimated a picture and a table."""
    told = found.to_dict()["estimators"]
    sections = []
    for place, what in enumerate(dict.fromkeys(each["estimates"] for each in told)):
        rivals = [each for each in told if each["estimates"] == what]
        drawn = [each for each in rivals if each["draws"]]
        charts = {f"estimators-{place}": _picture(what, drawn)} if drawn else {}
        rows = [[each[name] for name in _NAMES] for each in rivals]
        sections.append(
            Section(what[:1].upper() + what[1:], _words(rivals, first=not place), _HEADERS, rows, charts)
        )
    title = f"{found.draws} samples of {found.sample:,} of {found.people:,} people"
    return Pictures("simulation", title, found.verdict(), sections)


def _words(rivals: Sequence[dict[str, Any]], *, first: bool) -> str:
    """How to read the section, and who gave no number, and why."""
    without = [
        f"{each['measure']} gave no number of {each['not_estimable']} samples: {each['reason']}."
        for each in rivals
        if each["not_estimable"]
    ]
    return " ".join([_WORDS] * first + without)


def _picture(what: str, drawn: Sequence[dict[str, Any]]) -> Spec:
    """A mark for each estimator with its spread, and a line at the truth."""
    rows = [
        {
            "label": each["measure"].replace("(model=", ": ").removesuffix(")"), "mean": each["estimate"],
            "low": max(each["estimate"] - each["spread"], 0.0), "high": each["estimate"] + each["spread"],
            "said": figure(each["estimate"]),
        }
        for each in drawn
    ]  # fmt: skip
    truth = max(drawn, key=lambda each: each["draws"])[
        "truth"
    ]  # who has no number of some samples knows less
    x = {
        "field": "mean", "type": "quantitative", "title": f"share: {what}", "scale": {"zero": True},
        "axis": {"tickCount": 8},
    }  # fmt: skip
    y = {
        "field": "label", "type": "nominal", "sort": [row["label"] for row in rows], "title": None,
        "axis": {"labelColor": INK, "labelFontSize": 12, "labelLimit": 320, "domain": False, "ticks": False},
    }  # fmt: skip
    ends = {"y": y, "x": {**x, "field": "low"}, "x2": {"field": "high"}}
    tips = [tip("label", "Estimator"), tip("said", "Mean estimate")]
    return chart(
        f"Mean and spread of each estimate of {what}; the line is the truth, {figure(truth)}.",
        data=inline(rows),
        height=max(26 * len(rows), 60),
        layer=[
            {
                "data": inline([{"truth": truth}]),
                "mark": {"type": "rule", "color": GREY, "strokeWidth": 2},
                "encoding": {"x": {"field": "truth", "type": "quantitative"}},
            },
            {"mark": {"type": "rule", "strokeWidth": 2.5, "opacity": 0.55}, "encoding": ends},
            {"mark": {"type": "point", "filled": True, "size": 90, "opacity": 1},
             "encoding": {"y": y, "x": x, "tooltip": tips}},
        ],
    )  # fmt: skip
