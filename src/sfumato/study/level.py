"""Reach a level: find the value of a method's drive parameter that gives the risk or utility asked for."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import pairwise, takewhile

from sfumato.core.measure import Measure, Score
from sfumato.core.requirement import Requirement
from sfumato.core.run import Run
from sfumato.errors import ParameterError
from sfumato.recipes.step import Step
from sfumato.study._probe import Probe, ProbeResult
from sfumato.study.evaluate import EXPECTED_ERRORS, EvaluationCase
from sfumato.study.replicate_mean import ReplicateMean

#: Steps after which narrowing stops.
_MOST_STEPS = 40
#: How finely the drive is set, as a share of the range worth searching; and where the measure has levelled
#: off, which it has if runs cannot tell settings apart that are so far from each other.
_FINENESS, _COARSE, _LEVELLED = 1e-4, 0.01, 0.05
#: The least that runs need tell of the level, as a share of the tolerance.
_FINEST = 0.1
#: So many settings are looked at in all runs. Of others that miss the level by so many tolerances, and
#: standard deviations between runs, one run tells enough.
_LOOKS_IN_FULL, _FAR_TOLERANCES, _DEVIATIONS = 3, 3, 4
#: From so many records on runs differ little, and one setting is looked at in all of them.
_MANY_RECORDS = 20_000
#: Where some persons are looked for, what they tell is no finer, and all persons are asked so many times.
_FINEST_OF_SOME, _MOST_CONFIRMATIONS = 0.5, 3
#: A bracket is narrowed by at least this share of it.
_SHORTEST = 0.1
#: An edge of the tolerance is looked for at this share of it, so many times.
_INSIDE, _LOOKS_AT_EDGE = 0.9, 3


class LevelStatus(StrEnum):
    """How well the level was met."""

    WITHIN = "within tolerance"
    NEAREST = "nearest found"
    BETTER = "always better than the level"
    UNREACHABLE = "unreachable"
    MET = "meets the requirements"
    ESTIMATED = "estimated between settings"
    REFUSED = "refused"
    UNJUDGED = "cannot be judged"


@dataclass(frozen=True)
class Target:
    """A level of a measure: a number, and how far from it counts as there (a share of the number)."""

    measure: Measure
    value: float
    tolerance: float = 0.01

    def __post_init__(self) -> None:
        if why := self.measure.tells.why_not_required:
            raise ParameterError(f"{self.measure.name} is only reported, not held at a level", hint=why)
        if not math.isfinite(self.value):
            raise ParameterError(f"the level of {self.measure.name} must be a number, got: `{self.value}`")
        if not 0 < self.tolerance < 1:
            raise ParameterError(f"`tolerance` must be a share between 0 and 1, got: `{self.tolerance}`")
        low, high = self.measure.bounds
        if not low <= self.value <= high:
            raise ParameterError(
                f"the level of {self.measure.name} must be from {low:g} to {high:g}, got: `{self.value}`"
            )

    @property
    def slack(self) -> float:
        """Largest difference that counts as reached."""
        return self.tolerance * abs(self.value) if self.value else self.tolerance

    @property
    def share(self) -> str:
        """The tolerance as it is said."""
        return f"{100 * self.tolerance:g}%"

    @property
    def requirement(self) -> Requirement:
        """What a release must score that is as good as the level, or worse by the tolerance."""
        sign, gap = ("<=", self.slack) if self.measure.better == "low" else (">=", -self.slack)
        low, high = self.measure.bounds
        return Requirement(self.measure, sign, min(max(float(f"{self.value + gap:.6g}"), low), high))

    def met_by(self, value: float) -> bool:
        """Whether a value is near enough."""
        return abs(value - self.value) <= self.slack

    def missed_by(self, spread: ReplicateMean) -> bool:
        """Whether repeated runs lie outside the tolerance by more than chance explains."""
        low, high = spread.interval
        near = min(max(self.value, low), high)
        return not self.met_by(spread.mean) and not self.met_by(near)

    def side_of(self, value: float) -> str:
        """On which side of the level a value lies, in a word."""
        better = self.measure.is_better(value, self.value)
        if self.measure.aspect == "risk":
            return "safer" if better else "riskier"
        return "more useful" if better else "less useful"


@dataclass(frozen=True)
class LevelResult:
    """Where the search ended: the parameter's value, what it gives, and every point tried on the way.

    ``reason`` tells it in words where a number does not: several requirements, or a method that refuses.
    A step without a drive has no ``parameter``, and its ``value`` is not a number. ``edges`` are the step
    where the tolerance ends, on both sides of it.
    """

    step: Step
    parameter: str
    value: float
    score: float
    reached: LevelStatus
    tried: Mapping[float, float] = field(default_factory=dict, repr=False)
    reason: str = ""
    edges: tuple[Step, ...] = field(default=(), repr=False)

    @property
    def setting(self) -> str:
        """The parameter and its value, as a table says them."""
        return f"{self.parameter} = {self.value:.4g}" if self.parameter else ""

    def nearness(self, target: Target) -> str:
        """Say what "nearest" means: of the values that were tried, and of a risk on its safe side."""
        safe = target.measure.aspect == "risk" and target.measure.is_better(self.score, target.value)
        return f"the nearest to {target.value:g} that was found{' on the safe side' if safe else ''}"

    def sentence(self, target: Target) -> str:
        """Say in words where the search ended."""
        if self.reason:
            refused = self.reached in {LevelStatus.REFUSED, LevelStatus.UNJUDGED}
            return f"{self.reached}: {self.reason}" if refused else self.reason
        at = f"{self.parameter} = {self.value:.4g} gives {target.measure.name} {self.score:.4g}"
        if self.reached is LevelStatus.BETTER:
            return f"it is always {target.side_of(self.score)} than {target.value:g}: the nearest is {at}"
        if self.reached is LevelStatus.UNREACHABLE:
            return f"{target.value:g} is unreachable: the nearest is {at}"
        if self.reached is LevelStatus.NEAREST:
            return f"{at}, {self.nearness(target)}"
        return at


class _LevelSearch(Probe):
    """Looks for the setting at which the mean of a measure is as near to the target as its runs can tell."""

    finest = _FINEST

    def __init__(self, step: Step, case: EvaluationCase, target: Target, run: Run, *, repeats: int) -> None:
        super().__init__(step, case, [target.measure], run, repeats=repeats, task="reaching the level")
        self.target = target
        self.tried: dict[float, ReplicateMean] = {}
        self.start = 0.0  # the end of the range to come from: the worse one by the measure

    def has_told_enough(self, scores: Mapping[str, Score]) -> bool:
        """One run that is far from the level, by more than runs of the setting most like it differ."""
        if len(self.tried) < (1 if len(self.case.table) >= _MANY_RECORDS else _LOOKS_IN_FULL):
            return False
        score = scores[str(self.target.measure)].value
        full = [spread for spread in self.tried.values() if spread.runs == self.repeats]
        alike = min(full, key=lambda spread: abs(spread.mean - score), default=ReplicateMean(score, 0.0, 1))
        missed = abs(score - self.target.value)
        return missed > _FAR_TOLERANCES * self.target.slack + _DEVIATIONS * alike.deviation

    def score(self, value: float) -> ReplicateMean:
        """What the measure gives at a setting."""
        if value not in self.tried:
            measure, mean = self.target.measure, self.mean(self.target.measure, value)
            runs = [scores[str(measure)].value for scores in self.seen[value].runs]
            self.tried[value] = replace(ReplicateMean.of(runs), mean=mean)
        return self.tried[value]

    def miss(self, value: float) -> float:
        """How far, and on which side, the level is missed at a setting."""
        return self.score(value).mean - self.target.value

    def meets(self, value: float) -> bool:
        """Whether a setting is within the tolerance."""
        return self.target.met_by(self.score(value).mean)

    def doubt(self, value: float) -> float:
        """What the runs at a setting cannot tell: their standard error, within reason of the tolerance."""
        return min(max(self.score(value).error, self.finest * self.target.slack), self.target.slack)

    def is_near(self, value: float) -> bool:
        """Whether the runs at a setting cannot tell it from the level."""
        return abs(self.miss(value)) <= self.doubt(value)

    def passes(self, first: float, second: float) -> bool:
        """Whether the level lies between two settings."""
        return self.miss(first) * self.miss(second) < 0

    @property
    def line(self) -> list[float]:
        """The settings that were tried, from the start of the search on."""
        return sorted(self.tried, key=lambda value: abs(value - self.start))

    def best(self) -> float:
        """The setting to take: the nearest; where the measure has levelled off, the first that is like it.

        A risk that is not met within the tolerance is taken on the safe side, when that side was seen.
        """
        target, values = self.target, self.line
        admitted = [value for value in values if self.meets(value)]
        if not admitted and target.measure.aspect == "risk":
            admitted = [v for v in values if target.measure.is_better(self.score(v).mean, target.value)]
        admitted = admitted or values
        nearest = min(admitted, key=lambda value: abs(self.miss(value)))
        alike = [v for v in admitted if abs(self.miss(v)) <= abs(self.miss(nearest)) + self.doubt(v)]
        return alike[0] if self.width(alike[0], alike[-1]) >= _LEVELLED else nearest

    def width(self, first: float, second: float) -> float:
        """How far apart two settings are, as a share of the range worth searching."""
        assert self.drive is not None
        position = self.drive.position
        low, high = map(position, self.drive.tune or (first, second))
        return abs(position(second) - position(first)) / (high - low)

    def is_flat(self, first: float, second: float) -> bool:
        """Whether between two settings the measure has levelled off: runs hardly see that it moves."""
        moved = abs(self.miss(second) - self.miss(first))
        return moved * _LEVELLED <= self.doubt(first) * self.width(first, second)

    def confirm(self, value: float) -> bool:  # noqa: ARG002  — all were asked
        """Whether everybody is where those are who were asked."""
        return True

    def confirmed(self, value: float) -> float:
        """The setting to take: all were asked at each."""
        return value

    def edges(self, value: float) -> tuple[Step, ...]:
        """The step where the tolerance ends, on both sides of a setting, as far as it was looked at."""
        line = self.line
        place = line.index(value)
        found = {self._edge(line[place::-1]), self._edge(line[place:])} - {value}
        return tuple(self.step.with_drive(each) for each in sorted(found))

    def _edge(self, away: Sequence[float]) -> float:
        """The last setting within the tolerance on a way that begins with one: as seen, or looked for."""
        within = list(takewhile(self.meets, away))
        inside = within[-1]
        if len(within) == len(away):
            return inside
        outside = away[len(within)]
        near, far = self.miss(inside), self.miss(outside)
        for _ in range(_LOOKS_AT_EDGE):
            share = (math.copysign(_INSIDE * self.target.slack, far) - near) / (far - near)
            value = self.setting_between(inside, outside, _FINENESS, share) if share > 0 else None
            if value is None:
                break
            outside, far = value, self._glimpse(value, beside=away[0])
            if abs(far) <= self.target.slack:
                return value
        return inside

    def _glimpse(self, value: float, beside: float) -> float:
        """How far the level is missed, by one run with the chance of the first at a setting that was seen."""
        seen, label = ProbeResult(value, self.step.with_drive(value)), str(self.target.measure)
        self.go_on(seen, self.run, 1)
        first, score = self.seen[beside].runs[0][label].value, math.inf
        if seen.runs and math.isfinite(seen.runs[0][label].value):
            score = seen.runs[0][label].value
        return self.miss(beside) + score - first


class _SampledLevelSearch(_LevelSearch):
    """The same in one run that looks for some of the persons, by the records as they are.

    All persons, and what else an intruder may do, are asked at the setting that the step came with and at the
    one that is found. What they tell moves what is known of all others as much: at neighbouring settings the
    same persons differ alike.
    """

    finest = _FINEST_OF_SOME

    def __init__(self, step: Step, case: EvaluationCase, target: Target, run: Run) -> None:
        some = case.with_some_persons(target.measure.scales.persons_drawn)
        super().__init__(step, some, target, run, repeats=1)
        self.everybody = Probe(step, case, [target.measure], run, repeats=1)
        self.offset = 0.0

    def score(self, value: float) -> ReplicateMean:
        """What the measure gives at a setting, as far as is known."""
        found = super().score(value)
        if value in self.everybody.seen:
            return replace(found, mean=self.everybody.mean(self.target.measure, value))
        return replace(found, mean=found.mean + self.offset)

    def confirm(self, value: float) -> bool:
        """Ask all persons, unless they were, and correct what is known; whether the setting stays near."""
        if value in self.everybody.seen:
            return True
        self.offset = self.everybody.mean(self.target.measure, value) - super().score(value).mean
        return self.is_near(value)

    def confirmed(self, value: float) -> float:
        """The setting, or the nearest at which all persons were asked."""
        asked = [each for each in self.everybody.seen if each is not None]
        return value if value in asked else min(asked, key=lambda each: abs(self.miss(each)), default=value)


def reach(
    step: Step,
    case: EvaluationCase,
    target: Target,
    run: Run,
    *,
    repeats: int = 3,
    allow_sampling: bool = False,
) -> LevelResult:
    """Find the value of the step's drive parameter at which the measure's mean is nearest to the target.

    The measure is taken to be monotone in tendency, not in each draw. From the end of the range that is
    worse by the measure, the values in between are looked at until the level is passed; then the gap is
    narrowed, with the same replicates at every value, until they cannot tell the mean from the level or the
    parameter cannot be set more finely. Of several values that they cannot tell apart, for the measure has
    levelled off, the first is taken: of a risk that is the one that changes the data least. The method as it
    is given is the first value inside the range that is looked at; far from the level one run is enough.

    With ``allow_sampling``, of many persons some are looked for in one run, and all only where that ends.
    """
    if allow_sampling and case.may_draw_persons(target.measure):
        search: _LevelSearch = _SampledLevelSearch(step, case, target, run)
    else:
        search = _LevelSearch(step, case, target, run, repeats=repeats)
    values = _with_numbers(search, search.grid())
    first, last = search.score(values[0]).mean, search.score(values[-1]).mean
    if target.measure.is_better(first, last):
        values.reverse()
    search.start = values[0]
    bracketed = _approach(search, values)
    _come_back(search)
    value = search.best()
    for _ in range(_MOST_CONFIRMATIONS):
        if search.confirm(value):
            break
        bracketed = _cross(search, search.line)
        _come_back(search)
        value = search.best()
    value = search.confirmed(value)
    score = search.score(value).mean
    reached = LevelStatus.NEAREST if bracketed else LevelStatus.UNREACHABLE
    if not bracketed and target.measure.is_better(score, target.value):
        reached = LevelStatus.BETTER
    within = search.meets(value)
    return LevelResult(
        step=search.at(value).step,
        parameter=search.drive.name if search.drive else "",
        value=value,
        score=score,
        reached=LevelStatus.WITHIN if within else reached,
        tried={each: search.score(each).mean for each in sorted(search.tried)},
        edges=search.edges(value) if within else (),
    )


def level_of(step: Step, case: EvaluationCase, measure: Measure, run: Run, *, repeats: int = 3) -> float:
    """The level a step reaches with its parameters as they are: "as safe as this"."""
    repeats = 1 if case.may_draw_persons(measure) else repeats  # of many records runs differ little
    return Probe(step, case, [measure], run, repeats=repeats).mean(measure, None)


def _with_numbers(search: _LevelSearch, values: Sequence[float]) -> list[float]:
    """Leave out settings at the ends at which the method refuses or the measure has no number."""
    values_left, reasons = list(values), []
    for end in (-1, 0):
        while values_left:
            try:
                search.score(values_left[end])
                break
            except EXPECTED_ERRORS as error:
                reasons.append(error)
                values_left.pop(end)
    if not values_left:
        raise reasons[0]
    return values_left


def _approach(search: _LevelSearch, values: Sequence[float]) -> bool:
    """Walk towards the level until it is passed or met, and narrow the gap; False if it never is."""
    first, last = values[0], values[-1]
    if not search.is_near(first) and search.passes(first, last):  # the ends tell enough: no need to scan
        own = _as_given(search, first, last)
        for value in own:
            search.confirm(value)
        values = [first, *own, last]
    return _cross(search, values)


def _cross(search: _LevelSearch, values: Sequence[float]) -> bool:
    """Go along settings until the level is passed or met, and narrow the gap; False if it never is."""
    if search.is_near(values[0]):
        return True
    for before, after in pairwise(values):
        if search.is_near(after) or search.passes(before, after):
            _narrow(search, before, after)
            return True
    return False


def _as_given(search: _LevelSearch, first: float, last: float) -> list[float]:
    """The setting that the step came with, where it lies between two and has a number."""
    own = getattr(search.step.method, search.drive.name) if search.drive else None
    if not isinstance(own, int | float) or not min(first, last) < own < max(first, last):
        return []
    try:
        search.score(own)
    except EXPECTED_ERRORS:
        return []
    return [own]


def _narrow(search: _LevelSearch, first: float, second: float) -> None:
    """Narrow a bracket until its far end is near: by a straight line between its ends, or halving if slow."""
    slow = False
    for _ in range(_MOST_STEPS):
        below, above = search.miss(first), search.miss(second)
        share = below / (below - above) if search.passes(first, second) and not slow else 0.5
        share = share if _SHORTEST < share < 1 - _SHORTEST else 0.5
        value = None if search.is_near(second) else search.setting_between(first, second, _FINENESS, share)
        if value is None:
            return
        if search.is_near(value) or search.passes(first, value):
            second, slow = value, share > 0.5  # noqa: PLR2004  — more than half of the bracket is left
        else:
            first, slow = value, share < 0.5  # noqa: PLR2004


def _come_back(search: _LevelSearch) -> None:
    """Where the measure has levelled off, look for the first setting that does by halving the gap before."""
    for _ in range(_MOST_STEPS):
        line, value = search.line, search.best()
        place = line.index(value)
        levelled = line[place + 1 :][:1]
        if place == 0 or not search.meets(value) or not all(search.is_flat(value, each) for each in levelled):
            return
        middle = search.setting_between(line[place - 1], value, _COARSE)
        if middle is None:
            return
        search.score(middle)
