"""Records at risk in a release, as data: re-identification risks, rare combinations, attribute disclosure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sfumato.core.measure import Measure, Score
from sfumato.core.requirement import Requirement
from sfumato.kernels.arrays import Floats
from sfumato.report.release_scores import ReleaseScores, is_number
from sfumato.report.words import finite
from sfumato.risk._sample_classes import cut_at

#: Where the bars of risks end; a class of five is at 0.2.
_ENDS = (1e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 1 / 3, 0.5, 1.0)
#: Thresholds of the slider.
_STOPS = 40
_FLOAT_TOLERANCE = 1e-12
#: What is counted without a requirement on sensitive values: classes in which all share one.
_DIVERSE = Requirement.parse("l >= 2")


def individual_risks(found: ReleaseScores) -> dict[str, Any] | None:
    """How many records have which risk, before and after, and how many are above the threshold."""
    shown = [(each, score) for each, score in found.shown_in("records") if is_number(score)]
    if not shown or shown[0][1].by_record is None:
        return None
    measure, score = shown[0]
    after, before = _known_risks(score), _known_risks(found.main.before.get(str(measure)))
    if not len(after):
        return None
    threshold = _threshold(found)
    first = next((place for place, end in enumerate(_ENDS) if end >= min(after.min(), _least(before))), 0)
    ends = np.array(_ENDS[first:])
    return {
        "measure": measure.name,
        "title": measure.title,
        "threshold": threshold,
        "ends": ends.tolist(),
        "original": _histogram(before, ends),
        "release": _histogram(after, ends),
        "at_risk": {
            key: int((risks > threshold * (1 + _FLOAT_TOLERANCE)).sum())
            for key, risks in (("original", before), ("release", after))
        },
        "records": {"original": len(before), "release": len(after)},
        "expected": {"original": float(before.sum()), "release": float(after.sum())},
        "slider": slider(after, (threshold, *ends[: np.searchsorted(ends, after.max()) + 1])),
    }


def _threshold(found: ReleaseScores) -> float:
    """Above which risk a record is at risk: that of the gauges, so that both count the same records."""
    scores = (score for _, score in (*found.shown_in("gauges"), *found.shown_in("records")))
    return next(float(each.details["threshold"]) for each in scores if "threshold" in each.details)


def _known_risks(score: Score | None) -> Floats:
    if score is None or score.by_record is None:
        return np.empty(0)
    return score.by_record[np.isfinite(score.by_record)]


def _least(risks: Floats) -> float:
    return float(risks.min()) if len(risks) else 1.0


def _histogram(risks: Floats, ends: Floats) -> list[int]:
    """How many are at most at each end, and above the one before."""
    places = np.searchsorted(ends * (1 + _FLOAT_TOLERANCE), np.minimum(risks, 1.0), side="left")
    return [int(count) for count in np.bincount(places, minlength=len(ends))[: len(ends)]]


def slider(risks: Floats, also: Sequence[float] = ()) -> list[list[float | str | None]]:
    """At thresholds over all risks: how many records are above, and the rate if these are lowered to it."""
    quantiles = np.quantile(risks, np.linspace(0, 1, _STOPS), method="nearest")
    stops = np.unique(np.concatenate([quantiles, np.asarray(also, dtype=np.float64)]))
    return [[*cut_at(risks, threshold=float(stop))] for stop in stops]


def gauges(found: ReleaseScores) -> list[dict[str, Any]]:
    """The risk from a prosecutor, a journalist and a marketer."""
    return [_gauge(each, score, found.main.before.get(str(each))) for each, score in found.shown_in("gauges")]


def _gauge(measure: Measure, score: Score, before: Score | None) -> dict[str, Any]:
    payload: dict[str, Any] = {
        "measure": measure.name, "title": measure.title, "status": score.status.value,
        "reason": score.reason, "release": None, "original": None,
    }  # fmt: skip
    for key, each in (("release", score), ("original", before)):
        if each is not None and is_number(each):
            facts = ("highest", "mean", "share_at_risk", "threshold")
            payload[key] = {name: float(each.details[name]) for name in facts if name in each.details}
    return payload


def combinations(found: ReleaseScores) -> dict[str, Any] | None:
    """How many records are rare in how many keys, and which keys take part, before and after."""
    numbers = [each for each in found.shown_in("combinations") if is_number(each[1])]
    if not numbers:
        return None
    measure, score = numbers[0]
    before, uniques = found.main.before.get(str(measure)), found.shown_in("uniques")
    return {
        "fewer_than": measure.to_dict()["k"],
        "records": int(score.details["records"]),
        "keys": [
            {
                "keys": size,
                "release": score.details[f"unsafe_{size}"],
                "original": before.details.get(f"unsafe_{size}") if before else None,
            }
            for size in range(1, len(score.by_column) + 1)
            if f"unsafe_{size}" in score.details
        ],
        "columns": _by_column(score, before),
        "suda": [
            row
            for each, special in uniques[:1]
            if is_number(special)
            for row in _by_column(special, found.main.before.get(str(each)))
        ],
    }


def _by_column(score: Score, before: Score | None) -> list[dict[str, Any]]:
    there = before.by_column if before else {}
    names = dict.fromkeys((*there, *score.by_column))
    return [
        {
            "column": name,
            "release": finite(score.by_column.get(name)),
            "original": finite(there.get(name)),
        }
        for name in names
    ]


def attribute_exposure(found: ReleaseScores) -> dict[str, Any] | None:
    """What classes disclose of each sensitive column, before and after, and where that is too much."""
    numbers = {each: score for each, score in found.shown_in("sensitive") if is_number(score)}
    if not numbers:
        return None
    columns = dict.fromkeys(name for score in numbers.values() for name in score.by_column)
    return {
        "columns": [
            {
                "column": name,
                **{
                    each.name: {
                        "release": finite(score.by_column.get(name)),
                        "original": finite(_of_original(found, each, name)),
                    }
                    for each, score in numbers.items()
                },
            }
            for name in columns
        ],
        "violations": _violations(found),
    }


def _of_original(found: ReleaseScores, measure: Measure, name: str) -> float | None:
    before = found.main.before.get(str(measure))
    return before.by_column.get(name) if before else None


def _violations(found: ReleaseScores) -> list[dict[str, Any]]:
    """Of how many records a sensitive value is disclosed more surely than required."""
    judged: list[tuple[Requirement, Score, str]] = [
        (each.requirement, each.score, each.scenario)
        for each in found.part.judgements
        if each.requirement.measure.threat == "inference" and is_number(each.score)
    ]
    score = found.score_of(_DIVERSE.measure)
    if not judged and score is not None and is_number(score):
        judged = [(_DIVERSE, score, found.main.name)]
    return [
        {
            "requirement": requirement.short,
            "scenario": scenario,
            "records": int(requirement.failing(_known_risks(score)).sum()),
            "of": len(_known_risks(score)),
        }
        for requirement, score, scenario in judged
        if score.by_record is not None
    ]


def strip(found: ReleaseScores, utilities: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Risks and losses that run from 0 to 1 or above, beside those of the original."""
    risks = [
        {
            "title": measure.title,
            "release": finite(score.value),
            "original": finite(before.value) if before else None,
        }
        for name, (measure, score) in found.main.risks.items()
        if measure.bounds == (0.0, 1.0) and measure.better == "low" and is_number(score)
        if not measure.needs.control  # these have charts of their own, beside their control
        for before in [found.main.before.get(name)]
    ]
    return {"risks": risks, "losses": losses_strip(utilities)}


def losses_strip(utilities: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The losses, of which the original has none."""
    return [
        {"title": each["title"], "release": each["value"], "original": 0.0}
        for each in utilities
        if each["from_zero"] and each["value"] is not None and not each["model"]
    ]
