"""A score as the report of a release shows it: as an entry of the twin, and in words."""

from __future__ import annotations

import math
from typing import Any

from sfumato.core.measure import Measure, Score
from sfumato.report.release_scores import is_number
from sfumato.report.words import finite, plain, rounded, setting

#: The text of an interval that covers all possible values.
_UNKNOWN = "unknown"


def score_entry(measure: Measure, score: Score, scenario: str = "") -> dict[str, Any]:
    """A score as the report shows it."""
    control = score.details.get("control")
    return {
        "measure": str(measure),
        "title": measure_title(measure),
        "scenario": scenario,
        "threat": measure.threat,
        "better": measure.better,
        "value": finite(score.value) if is_number(score) else None,
        "interval": [finite(end) for end in score.interval] if score.interval else None,
        "between": _interval_text(measure, score),
        "baseline": finite(score.baseline),
        "like_sample": score.like_sample.to_dict() if score.like_sample else None,
        "control": finite(control) if isinstance(control, float | int) else None,
        "rate": finite(float(score.details["rate"])) if isinstance(control, float | int) else None,
        "status": score.status.value,
        "reason": score.reason,
        "words": score_words(measure, score),
        "what": plain(measure.description()),
        "share": measure.bounds == (0.0, 1.0) and measure.better == "low",
        "from_zero": measure.bounds[0] == 0.0 and measure.better == "low",
        "model": "models" in measure.places(),
    }


def measure_title(measure: Measure) -> str:
    """What a measure is called, with the settings that are not as usual."""
    return f"{measure.title} {str(measure).removeprefix(measure.name)}".strip()


def score_words(measure: Measure, score: Score) -> str:
    """A score in words: the number, how sure it is, and what it is held against."""
    if not is_number(score):
        return f"no number: {score.reason}"
    about = "about " if score.status.value == "approximate" else ""
    words = [f"{about}{setting(score.value)}, {measure.side()}"]
    if score.interval and score.interval[0] < score.interval[1]:
        low, high = (setting(end) for end in score.interval)
        sure = f" with {score.confidence:g} % confidence" if score.confidence else ""
        is_known = _interval_text(measure, score) != _UNKNOWN
        words.append(f"between {low} and {high}{sure}" if is_known else f"its error is {_UNKNOWN}")
    if isinstance(score.details.get("control"), float):
        rate, control = (float(score.details[key]) for key in ("rate", "control"))
        words.append(f"right for {rate:.1%} of people in the release and {control:.1%} of the control group")
    if score.like_sample and score.like_sample.words:
        words.append(score.like_sample.words)
    if score.baseline is not None and math.isfinite(score.baseline):
        words.append(f"a blind guess scores {setting(score.baseline)}")
    return "; ".join(words)


def _interval_text(measure: Measure, score: Score) -> str | None:
    """The ends of an interval; one that covers all that the measure can score is no information."""
    if score.interval is None:
        return None
    if score.interval == measure.bounds:
        return _UNKNOWN
    return " – ".join(dict.fromkeys(map(rounded, score.interval)))
