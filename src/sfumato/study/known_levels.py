"""What a study knows of its methods at other levels: between settings that were measured, and not beyond."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from sfumato.errors import ParameterError
from sfumato.study.compare import MethodAtLevel, Study, rank_outcomes
from sfumato.study.level import LevelResult, LevelStatus, Target
from sfumato.study.replicate_mean import ReplicateMean

#: Levels that lie so many times apart are spread by their ratio.
_LOG_FROM = 50.0


class _Setting(NamedTuple):
    """A setting of a method's drive that was measured: what is held there, and what ranks."""

    value: float
    held: float
    ranked: float


def known_levels(study: Study, count: int = 41) -> list[float]:
    """Levels between the lowest and the highest that was measured, with that of the study itself."""
    own = study.target.value
    held = [each.held for outcome in study.outcomes for each in _settings(study, outcome)]
    low, high = min([own, *held]), max([own, *held])
    spread = np.geomspace if low > 0 and high / low >= _LOG_FROM else np.linspace
    between = (float(f"{each:.4g}") for each in spread(low, high, count))
    return sorted({own, *(each for each in between if low <= each <= high)})


def at_level(study: Study, level: float) -> Study:
    """The study as it would be at another level, by what was measured: no method is run.

    Where the fresh runs of a method are at the level, they count. Else its line is followed from the end that
    is worse by the measure held until it passes the level, and the ranking measure is taken to run straight
    between the two settings measured there. Beyond the settings that were measured nothing is estimated.
    """
    if study.demands:
        raise ParameterError("a comparison under requirements has no level to move")
    if level == study.target.value:
        return study
    target = replace(study.target, value=level)
    outcomes = [_known_at(study, outcome, target) for outcome in study.outcomes]
    return replace(study, target=target, outcomes=rank_outcomes(outcomes, study.ranked_by))


def same_method(one: MethodAtLevel, other: MethodAtLevel) -> bool:
    """Whether two outcomes are of one method, but for the setting of its drive."""
    if one.step.method.name != other.step.method.name:
        return False
    known = other.level.parameter and math.isfinite(other.level.value)
    return (one.step.with_drive(other.level.value) if known else one.step) == other.step


def _settings(study: Study, outcome: MethodAtLevel) -> list[_Setting]:
    """The settings of a method at which both measures are known, the lowest first."""
    is_risk = study.target.measure.aspect == "risk"
    found = [
        _Setting(p.value, *((p.risk, p.utility) if is_risk else (p.utility, p.risk)))
        for p in study.line(outcome)
    ]
    if outcome.held and outcome.ranked and outcome.level.parameter:
        found = [each for each in found if each.value != outcome.level.value]
        found.append(_Setting(outcome.level.value, outcome.held.mean, outcome.ranked.mean))
    return sorted(each for each in found if all(map(math.isfinite, each)))


def _known_at(study: Study, outcome: MethodAtLevel, target: Target) -> MethodAtLevel:
    if outcome.level.reached in {LevelStatus.REFUSED, LevelStatus.UNJUDGED}:
        return outcome
    if outcome.held and target.met_by(outcome.held.mean):
        return replace(outcome, why_not_ranked="", rank=None, tied_with=())
    settings = _settings(study, outcome)
    if settings and target.measure.is_better(settings[0].held, settings[-1].held):
        settings.reverse()
    passed = (pair for pair in pairwise(settings) if _passes(*pair, target.value))
    pair = next(passed, None)
    return _interpolate(study, outcome, target, pair) if pair else _not_reached(outcome, target, settings)


def _passes(first: _Setting, second: _Setting, level: float) -> bool:
    return min(first.held, second.held) <= level <= max(first.held, second.held)


def _interpolate(
    study: Study, outcome: MethodAtLevel, target: Target, pair: tuple[_Setting, _Setting]
) -> MethodAtLevel:
    """A method at a level between two of its settings, by a straight line."""
    first, second = sorted(pair, key=lambda each: each.held)
    held, ranked = (first.held, second.held), (first.ranked, second.ranked)
    mean = float(np.interp(target.value, held, ranked))
    near = [float(np.interp(target.value + gap, held, ranked)) for gap in (-target.slack, target.slack)]
    ends = min(mean, *near), max(mean, *near)
    drive = outcome.step.method.drive()
    assert drive is not None
    share = np.interp(target.value, held, (0.0, 1.0))
    start, end = drive.position(first.value), drive.position(second.value)
    value = drive.at(start + float(share) * (end - start))
    low, high = sorted((first.value, second.value))
    how = f"estimated between {drive.name} = {low:.4g} and {high:.4g}, which were measured"
    step = outcome.step.with_drive(value)
    return MethodAtLevel(
        LevelResult(step, drive.name, value, target.value, LevelStatus.ESTIMATED, reason=how),
        held=ReplicateMean(target.value, 0.0, 1, approximate=True),
        ranked=_with_doubt(study, outcome, mean),
        ranked_range=ends if study.ranked_by.better == "low" else ends[::-1],
    )


def _with_doubt(study: Study, outcome: MethodAtLevel, mean: float) -> ReplicateMean:
    """One run, with the doubt of fresh runs of the method; of one that has none, the largest of others."""
    spreads = [each.ranked for each in study.outcomes if each.ranked and each.ranked.deviation]
    spread = outcome.ranked or max(spreads, key=lambda each: each.deviation, default=None)
    if spread is None or not spread.deviation or not outcome.step.method.randomness.stochastic:
        return ReplicateMean(mean, 0.0, 1, approximate=True)
    return ReplicateMean(mean, spread.deviation * math.sqrt(spread.runs), spread.runs, approximate=True)


def _not_reached(outcome: MethodAtLevel, target: Target, settings: Sequence[_Setting]) -> MethodAtLevel:
    """A method whose settings do not come to the level, with the nearest and by how much it misses."""
    drive = outcome.step.method.drive()
    if drive is None or not settings:
        why = "it was not measured at other settings, so nothing is known of it at this level"
        return MethodAtLevel(replace(outcome.level, reached=LevelStatus.UNREACHABLE, reason=why, edges=()))
    nearest = min(settings, key=lambda each: abs(each.held - target.value))
    why = (
        f"every setting measured is {target.side_of(nearest.held)} than {target.value:.4g}: the nearest, "
        f"{drive.name} = {nearest.value:.4g}, gives {target.measure.title} {nearest.held:.4g}, which misses "
        f"it by {abs(nearest.held - target.value):.4g}"
    )
    better = target.measure.is_better(nearest.held, target.value)
    reached = LevelStatus.BETTER if better else LevelStatus.UNREACHABLE
    step = outcome.step.with_drive(nearest.value)
    return MethodAtLevel(LevelResult(step, drive.name, nearest.value, nearest.held, reached, reason=why))
