"""The words of a report: numbers as people read them, the verdict, and what a measure means."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from sfumato.study.compare import MethodAtLevel, Study, fold
from sfumato.study.level import LevelStatus, Target

_DIGITS = 4
#: Why a loss is not public.
DOMINATED = "a few people account for most of it, and it would disclose their values"
_ROLE = re.compile(r":\w+:`([^`]*)`")


def figure(value: float | None, *, decimals: int | None = None) -> str:
    """A number with four digits (or with these decimals), as tables show it."""
    if value is None or not math.isfinite(value):
        return "–"
    size = math.floor(math.log10(abs(value))) if value else 0
    if decimals is None:
        decimals = min(max(_DIGITS - 1 - size, 0), 8)
    text = f"{value:,.{decimals}f}" if -5 <= size <= 8 else f"{value:.3g}"  # noqa: PLR2004
    return text.replace("-", "−")


def setting(value: float | None) -> str:
    """A parameter's value: whole numbers as they are, others with four digits."""
    return figure(value, decimals=0) if value is not None and float(value).is_integer() else figure(value)


def rounded(value: float | None) -> str:
    """A number with three significant digits, without trailing zeros; whole from a thousand on."""
    if value is None or not math.isfinite(value):
        return "–"
    if abs(value) >= 1000:  # noqa: PLR2004
        return f"{value:,.0f}".replace("-", "−")
    text = np.format_float_positional(value, precision=3, unique=False, fractional=False, trim="-")
    return text.replace("-", "−")


def shared_decimals(values: Sequence[float]) -> int:
    """Decimals that give the largest of these four digits, so that a column of them lines up."""
    sizes = [math.floor(math.log10(abs(value))) for value in values if value]
    return min(max(_DIGITS - 1 - max(sizes, default=0), 0), 8)


def finite(value: float | None) -> float | None:
    """A number that JSON can hold; None of what is none."""
    return float(value) if value is not None and math.isfinite(value) else None


def name_list(names: Iterable[object]) -> str:
    """Names in a row."""
    return ", ".join(map(str, names)) or "nothing"


def plain(text: str) -> str:
    """A docstring's line without its markup."""
    return _ROLE.sub(r"\1", text).replace("``", "").replace("`", "")


def sample_words(entry: Mapping[str, Any]) -> str:
    """The random sample that is as good as a score, in words; empty where none was found."""
    words: str = (entry.get("like_sample") or {}).get("words", "")
    return words.removeprefix("like ")


def remark(outcome: MethodAtLevel, tied: Sequence[str], *, target: Target) -> str:
    """What must be known to read an outcome's row; ``tied`` are the labels of those that it is tied with."""
    parts = []
    if outcome.level.reached is LevelStatus.REFUSED:
        parts.append("does not apply to these data")
    elif outcome.level.reached is LevelStatus.UNJUDGED:
        parts.append("the requirements cannot be evaluated for its releases")
    elif outcome.level.reached is LevelStatus.UNREACHABLE and outcome.level.reason:
        parts.append("cannot meet the requirements")
    elif outcome.level.reached is LevelStatus.UNREACHABLE:
        parts.append(f"cannot reach {target.value:.4g}; nearest: {figure(outcome.level.score)}")
    if outcome.why_not_ranked:
        parts.append(outcome.why_not_ranked)
    elif outcome.level.reached is LevelStatus.NEAREST:
        parts.append(outcome.level.nearness(target))
    if outcome.remark and outcome.remark != outcome.why_not_ranked:
        parts.append(outcome.remark)
    if outcome.step.caution:
        parts.append(outcome.step.caution)
    if tied:
        parts.append(f"tied with {name_list(tied)}")
    return "; ".join(parts)


def verdict(study: Study, labels: Mapping[int, str], *, public: bool) -> list[str]:
    """Say which method ranks first, by how much, whether that can be chance, and what is estimated.

    ``labels`` name the outcomes by their place. Parameters are in the internal form only.
    """
    target, ranked_by = study.target, study.ranked_by
    named = [(labels[place], outcome) for place, outcome in enumerate(study.outcomes)]
    placed = [(label, outcome) for label, outcome in named if outcome.rank is not None]
    sentences = []
    if placed:
        label, winner = placed[0]
        where = f"{'Under' if study.demands else 'At'} {study.aim}"
        how = f"; its {ranked_by.title} is not published: {DOMINATED}"
        if winner.ranked:
            how = f", with {ranked_by.title} {figure(winner.ranked.mean)} ({ranked_by.side()})"
        sentences.append(f"{where}, {label} ranks first{how}.")
        sentences.append(_lead(winner, placed[1:], study, alone=len(named) == 1))
        sentences += [study.caution] if study.caution else []
    else:
        can = "meet" if study.demands else "reach"
        sentences.append(f"None of the methods compared can {can} {study.aim}.")
    out = study.inapplicable
    folded = [o for each in out.values() for o in each]
    behind = [(label, o) for label, o in named if o.rank is None and o not in folded]
    sentences += [_left_behind(label, o, study, public=public) for label, o in behind]
    for reached, outcomes in out.items():
        if outcomes:
            sentences.append(f"{fold(reached, [label for label, o in named if o in outcomes])}.")
    return sentences + [
        f"{measure.title} is estimated from samples (≈), not exact."
        for measure, spreads in (
            (target.measure, [outcome.held for outcome in study.outcomes]),
            (ranked_by, [outcome.ranked for outcome in study.outcomes]),
        )
        if any(spread and spread.approximate for spread in spreads)
    ]


def _lead(
    winner: MethodAtLevel, others: Sequence[tuple[str, MethodAtLevel]], study: Study, *, alone: bool
) -> str:
    if not others:
        return "It is the only method compared." if alone else "No other method reaches the level."
    if others[0][1].ranked is None or winner.ranked is None:
        return f"Its lead over the next, {others[0][0]}, is not published: {DOMINATED}."
    label, second = others[0][0], others[0][1].ranked
    if winner.tied_with:
        tolerance, closer = f" or the tolerance (± {study.target.share})", " or with a smaller tolerance"
        tolerance, closer = ("", "") if study.demands else (tolerance, closer)
        return (
            f"Chance{tolerance} can explain its lead over the next, {label} ({figure(second.mean)}): treat "
            f"them as tied, or compare them over more runs{closer}."
        )
    more = "lower" if study.ranked_by.better == "low" else "higher"
    share = _percent(winner.ranked.mean, second.mean)
    much = f"{share} {more}" if share else more
    varies = winner.ranked.deviation or second.deviation
    sure = ", and more than chance explains (Welch's test, 95 %)" if varies else ""
    return f"That is {much} than the next, {label} ({figure(second.mean)}){sure}."


def _percent(first: float, second: float) -> str:
    """By how many per cent of the second the first differs, where that means something."""
    if first < 0 or second <= 0:
        return ""
    share = abs(first - second) / second * 100
    return f"{share:.0f} %" if share >= 1 else f"{share:.1g} %"


def _left_behind(label: str, outcome: MethodAtLevel, study: Study, *, public: bool) -> str:
    if outcome.why_not_ranked and outcome.held and outcome.ranked:
        held, ranked = figure(outcome.held.mean), figure(outcome.ranked.mean)
        there = f"{study.target.measure.title} {held} and {study.ranked_by.title} {ranked}"
        return f"{label} is not ranked with the others: {outcome.why_not_ranked}, with {there} in fresh runs."
    if not public:
        return f"{label} is not ranked: {outcome.level.sentence(study.target)}."
    if study.demands:
        return f"{label} is not ranked: it cannot meet the requirements."
    level, nearest = f"{study.target.value:.4g}", figure(outcome.level.score)
    return f"{label} is not ranked: it cannot reach {level}; its nearest score is {nearest}."
