"""A requirement as a drawing: from the original to the candidate to what is asked; and its doubt in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

#: The width of the drawing, in its own units, and what stays free at both ends.
_WIDTH, _MARGIN = 220.0, 12.0
#: Numbers that lie so many times apart are drawn on a logarithmic axis.
_LOG_FROM = 20.0
#: What is said of a number that leaves no doubt.
_EXACT = "computed exactly"


def strip_of(judged: Mapping[str, Any]) -> dict[str, Any]:
    """Where the numbers of a requirement lie on its line, and what must be said beside them."""
    score, original, level = judged["score"], judged["original"], judged.get("level")
    low, high = score["interval"] or (None, None)
    numbers = {
        "original": original["value"],
        "candidate": score["value"],
        "level": level,
        "low": low,
        "high": high,
    }
    known = {name: value for name, value in numbers.items() if value is not None}
    places = dict(zip(known, _places(list(known.values())), strict=True))
    return {
        "places": places,
        "upwards": str(judged.get("sign", "")).startswith(">"),
        "width": _WIDTH,
        "words": [*_of_sample(judged.get("sampled", 0), _doubt(score)), *_not_measured(original)],
    }


def _places(values: Sequence[float]) -> list[float]:
    """Numbers as places on a line, the smallest left."""
    least, most = min(values, default=0.0), max(values, default=0.0)
    if least > 0 and most / least >= _LOG_FROM:
        values, least, most = [math.log(each) for each in values], math.log(least), math.log(most)
    span = (most - least) or 1.0
    return [round(_MARGIN + (_WIDTH - 2 * _MARGIN) * (each - least) / span, 1) for each in values]


def _doubt(score: Mapping[str, Any]) -> list[str]:
    """How sure a number is, what guessing would give, and why there is none."""
    if score["value"] is None:
        what = "does not apply" if score["status"] == "refused" else "not estimable"
        return [f"{what}, because {score['reason']}" if score["reason"] else what]
    words = [{"ok": _EXACT}.get(score["status"], "estimated")]
    if score["interval"]:
        low, high = (f"{end:.4g}" if end is not None else "?" for end in score["interval"])
        sure = "proved" if score["interval_is_proved"] else "likely"
        if score["confidence"] and not score["interval_is_proved"]:
            sure = f"with {score['confidence']:g} % confidence"
        words[0] += f", between {low} and {high} ({sure})"
    if score["bound"] is not None:
        words.append(f"proved to be no worse than {score['bound']:.4g}")
    if score["baseline"] is not None:
        words.append(f"guessing would give {score['baseline']:.4g}")
    return [*words, score["reason"]] if score["reason"] else words


def _of_sample(records: int, doubt: list[str]) -> list[str]:
    """The doubt of a number, and that it is of a sample: then it is never exact."""
    if not records:
        return doubt
    words = f"measured on a sample of {records:,} records, which meets no requirement"
    return [words, *(each for each in doubt if each != _EXACT)]


def _not_measured(original: Mapping[str, Any]) -> list[str]:
    if original["value"] is not None:
        return []
    why = f": {original['reason']}" if original["reason"] else ""
    return [f"not measured of the original{why}"]
