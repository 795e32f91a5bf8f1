"""Requirements: what a release must score, written as people say it: ``rank-linkage >= 0.45``."""

from __future__ import annotations

import math
import operator
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np

from sfumato.core import registry
from sfumato.core.group_measure import GroupMeasure, Groups
from sfumato.core.measure import APPROACH, Aspect, ClassMeasure, EstimatedMeasure, Measure, Score, Status
from sfumato.core.method import Method
from sfumato.core.parameter_types import REQUIREMENT, Columns
from sfumato.errors import ParameterError, PlanError, SfumatoError
from sfumato.kernels.arrays import Flags, Floats

_COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}

#: The same for arrays.
_COMPARED = {"<=": np.less_equal, ">=": np.greater_equal, "<": np.less, ">": np.greater}

#: A measure and a number with another sign between them than one of the four.
_OTHER_SIGN = re.compile(r"\s*([\w-]+)\s*(?:=[<>=]?|[<>])\s*(\d+(?:\.\d+)?)\s*")

#: A comma that parts settings, not those of a measure within one.
_COMMA = re.compile(r",(?![^()]*\))")

#: More persons are never asked to be alike.
_MOST_ALIKE = 1 << 40


def parse_measure(text: str) -> Measure:
    """Read a measure with its settings: ``earth-movers-distance`` or ``rank-linkage(floor=0.5)``.

    It may be asked in each group of records alone: ``dbrl in every region of 200``.
    """
    text, groups = Groups.cut(text)
    if groups is not None:
        return GroupMeasure(inner=parse_measure(text), groups=groups)
    name, bracket, rest = text.strip().partition("(")
    if bracket and (not rest.endswith(")") or ")" in rest[:-1]):
        raise PlanError(
            f"`{text}` is not written like a measure, name or name(setting=value, …)",
            hint="write it like `rank-linkage(floor=0.5)`",
        )
    cls = registry.measure(name.strip())
    return cls.from_dict(parse_settings(rest[:-1], cls))


def parse_method(text: str) -> Method:
    """Read a method with its settings: ``mdav`` or ``mdav(k=5)``."""
    name, bracket, rest = text.strip().partition("(")
    cls = registry.method(name.strip())
    if bracket and not rest.endswith(")"):
        raise ParameterError(
            f"`{text}` is not written like a method, name or name(setting=value, …)",
            hint="write it like `mdav(k=5)`",
        )
    return cls.from_dict(parse_settings(rest.removesuffix(")"), cls))


def parse_settings(text: str, owner: Any) -> dict[str, Any]:
    """Read ``window=5, given=age+sex`` into values of the declared types."""
    settings: dict[str, Any] = {}
    for part in filter(None, (piece.strip() for piece in _COMMA.split(text))):
        key, sign, value = (piece.strip() for piece in part.partition("="))
        if key in settings:
            raise PlanError(f"`{key}` of {owner.name} is given twice")
        if not sign or not (value or owner.parameter(key).type is Columns):  # no columns are a choice
            raise PlanError(f"`{part}` is not a setting of {owner.name}: write name=value")
        settings[key] = owner.parameter(key).read(value)
    return settings


@dataclass(frozen=True)
class Requirement:
    """A measure, a comparison and a level; with a ``confidence`` (per cent) an estimate will do."""

    measure: Measure
    sign: str
    level: float
    confidence: float | None = None

    def __post_init__(self) -> None:
        if self.measure.tells.why_not_required:
            raise PlanError(
                f"{self.measure.name} is only reported and cannot be required",
                hint=self.measure.tells.why_not_required,
            )

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``measure >= number``, ``… at 95%`` or ``… in every region``; never a measure's worse side."""
        form = REQUIREMENT.match(text) if isinstance(text, str) else None
        level = _number(form["level"]) if form else math.nan
        confidence = _number(form["confidence"]) if form and form["confidence"] else None
        if form is None or not math.isfinite(level) or math.isnan(confidence or 0.0):
            in_groups = (
                "`k >= 5 in every region`, or `k >= 5 in every region of 200` to judge smaller ones as one"
            )
            raise PlanError(
                f"`{text}` is not a requirement: a measure, a comparison and a number",
                hint=f"write it like {in_groups if ' every' in str(text) else _nearly(text)}",
            )
        settings = f"({form['settings']})" if form["settings"] else ""
        measure = parse_measure(form["measure"] + settings)
        better = "<=" if measure.better == "low" else ">="
        if form["sign"][0] != better[0]:
            raise PlanError(
                f"`{text}` asks for the worse side of {measure.name}, where {measure.better} is better",
                hint=f"write `{measure} {better} {_exact(level)}`",
            )
        measure, (_, groups) = _sure_of(measure, confidence), Groups.cut(text)
        measure = measure if groups is None else GroupMeasure(inner=measure, groups=groups)
        return cls(measure, form["sign"], level, confidence)

    @property
    def in_words(self) -> str:
        """It without settings: *k-anonymity at least 3*."""
        sign = {"<=": "at most", ">=": "at least", "<": "below", ">": "above"}[self.sign]
        return f"{self.measure.title} {sign} {self.level:g}{self.where}"

    @property
    def required_class_size(self) -> int | None:
        """How many persons must be alike, if that is what it asks, as ``k >= 5`` does; else None."""
        measure = self.measure
        if not isinstance(measure, ClassMeasure) or not measure.class_values.are_sizes:
            return None

        def enough(persons: int) -> bool:
            return not self.failing(measure.of_sizes(np.array([persons]))).any()

        least = bisect_left(range(_MOST_ALIKE), True, key=enough)  # the more the better
        return least if least < _MOST_ALIKE else None

    def failing(self, values: Floats) -> Flags:
        """Which of the values of single records or classes do not meet it; an undefined one never does."""
        return ~_COMPARED[self.sign](values, self.level)

    @property
    def can_fail(self) -> bool:
        """Whether a release can miss it; not if the worst there is meets it, as of ``k >= 1``."""
        return not _COMPARISONS[self.sign](self.measure.worst, self.level)

    @property
    def judges(self) -> Aspect | Literal["nothing"]:
        """What it judges: risk or utility; nothing, if no release can miss it."""
        return self.measure.aspect if self.can_fail else "nothing"

    @property
    def vacuity(self) -> str:
        """Why it judges nothing, and what to ask instead; empty if it can be missed."""
        if self.can_fail:
            return ""
        asked = "less" if self.measure.better == "low" else "more"
        return f"`{self.short}` is met by every release: ask for {asked} than {_exact(self.measure.worst)}"

    def worst(self, score: Score) -> float:
        """The worst that is true of a score, seen from here; NaN if nothing is certain enough."""
        if score.status is Status.OK:
            return score.value
        if score.status is not Status.APPROXIMATE:
            return math.nan
        if score.bound is not None:
            return score.bound
        if score.interval is None or not (score.interval_is_proved or self._relies_on(score)):
            return math.nan
        return score.interval[1 if self.sign.startswith("<") else 0]

    def _relies_on(self, score: Score) -> bool:
        """Whether the interval of an estimate is as sure as is asked."""
        if self.confidence is None or score.confidence is None:
            return False
        return score.confidence >= self.confidence

    def met_by(self, score: Score) -> bool:
        """Whether a score meets it: only what is certain can, or an estimate of the confidence asked."""
        return _COMPARISONS[self.sign](self.worst(score), self.level)

    def verdict(self, score: Score) -> str:
        """Say in one line whether it is met, and if not, why."""
        worst = self.worst(score)
        verb = "is" if score.status is Status.OK else "may be"
        how = f" {score.details[APPROACH]}" if APPROACH in score.details else ""
        how += f" (estimated{self.at})" if self.is_estimated(score) else ""
        if self.met_by(score):
            how += "" if self.can_fail else ", as for every release"
            return f"met: {self._measure_text} {verb} {_short_number(worst)}{how}"
        if math.isnan(worst):
            reasons = [score.reason] if score.reason else []
            if (
                self.confidence is None
                and score.confidence
                and isinstance(self.measure.ungrouped, EstimatedMeasure)
            ):
                reasons.append(f"if an estimate will do, say `at {_exact(score.confidence)}%`")
            why = f" ({'; '.join(reasons)})" if reasons else ""
            return f"not met: {self._measure_text} is {score.status}{why}"
        short = _short_number(worst)  # unless that would look as if the level were reached
        value = repr(worst) if _COMPARISONS[self.sign](float(short), self.level) else short
        why = f" ({score.reason})" if score.reason and score.status is Status.OK else ""
        must = f"must be {self.sign} {_exact(self.level)}"
        return f"not met: {self._measure_text} {verb} {value}{how}, {must}{why}"

    def is_estimated(self, score: Score) -> bool:
        """Whether what it is judged by is an estimate: neither certain nor proved."""
        proved = score.interval_is_proved or score.bound is not None
        return score.status is Status.APPROXIMATE and not proved and self._relies_on(score)

    @property
    def at(self) -> str:
        """With what confidence, as it is written behind the level; empty where only certainty will do."""
        return "" if self.confidence is None else f" at {_exact(self.confidence)}%"

    @property
    def where(self) -> str:
        """In which groups it must hold, as is written at the end; empty if in all records together."""
        return f" {self.measure.groups}" if isinstance(self.measure, GroupMeasure) else ""

    @property
    def short(self) -> str:
        """As it is said to people: settings of the measure that are as usual are left out."""
        measure = self._measure_text.removesuffix(self.where)
        return f"{measure} {self.sign} {self.level:g}{self.at}{self.where}"

    @property
    def _measure_text(self) -> str:
        """The measure, without the confidence that is said behind the level."""
        scored = self.measure.ungrouped
        if self.confidence is None or not isinstance(scored, EstimatedMeasure):
            return str(self.measure)
        return str(self.measure.with_settings(confidence=type(scored)().confidence))

    def __str__(self) -> str:
        settings = self.measure.to_dict()
        if self.confidence is not None:
            settings.pop("confidence")  # it is said behind
        settings_text = ", ".join(
            f"{key}={_parameter_text(value)}"
            for key, value in settings.items()
            if value != [] or self.measure.parameter(key).default
        )
        asked = f"{self.sign} {_exact(self.level)}{self.at}{self.where}"
        return f"{self.measure.name}{f'({settings_text})' if settings_text else ''} {asked}"


def why_unjudged(requirements: Iterable[Requirement], at_stake: str) -> str:
    """Why requirements judge no risk, each being on utility or met by all, and what is at stake."""
    every = list(dict.fromkeys(requirements))
    utility = [each.short for each in every if each.can_fail]
    only = [f"only utility is required ({', '.join(utility)})"] if utility else []
    return "; ".join([*only, *(each.vacuity for each in every if each.vacuity), at_stake])


def _nearly(text: object) -> str:
    """What was probably meant by a requirement that is none; else an example."""
    written = _OTHER_SIGN.fullmatch(text) if isinstance(text, str) else None
    with suppress(SfumatoError):
        if written is not None:
            better = registry.measure(written[1]).better
            return f"`{written[1]} {'<=' if better == 'low' else '>='} {written[2]}`"
    return "`rank-linkage >= 0.45`"


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _sure_of(measure: Measure, confidence: float | None) -> Measure:
    """The measure with an interval of the confidence that is asked for."""
    if confidence is None:
        return measure
    if not isinstance(measure, EstimatedMeasure):
        raise PlanError(
            f"{measure.name} is not an estimate with an interval, so it cannot be required with a confidence",
            hint=f"leave out `at {_exact(confidence)}%`",
        )
    return replace(measure, confidence=confidence)


def _parameter_text(value: Any) -> str:
    return "+".join(value) if isinstance(value, list) else str(value)


def _short_number(number: float) -> str:
    """A number for people: four digits that count, and all of those before the point."""
    return f"{number:.4g}" if abs(number) < 9_999.5 else f"{number:.0f}"  # noqa: PLR2004


def _exact(number: float) -> str:
    """Write a number as shortly as it can be read back: 0.45, 5, 0.0499999999."""
    short = f"{number:g}"
    return short if float(short) == number else repr(float(number))
