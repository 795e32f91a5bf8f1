"""Reach a level: find the value of a method's drive parameter that gives the risk or utility asked for."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise

from sfumato.core.measure import Measure
from sfumato.core.run import Run
from sfumato.errors import ParameterError
from sfumato.recipes.recipe import Step
from sfumato.study._probe import Probe
from sfumato.study.evaluate import CANNOT, Case
from sfumato.study.spread import Spread

#: Steps after which narrowing stops.
_MOST_STEPS = 40
#: How finely the drive is set, as a share of the range worth searching.
_FINENESS = 1e-4


class Reached(StrEnum):
    """How well the level was met."""

    WITHIN = "within tolerance"
    NEAREST = "nearest found"
    BETTER = "always better than the level"
    UNREACHABLE = "unreachable"
    MET = "meets the requirements"
    REFUSED = "refused"
    UNJUDGED = "cannot be judged"


@dataclass(frozen=True)
class Target:
    """A level of a measure: a number, and how far from it counts as there (a share of the number)."""

    measure: Measure
    value: float
    tolerance: float = 0.01

    def __post_init__(self) -> None:
        if self.measure.tells.why_not_required:
            raise ParameterError(
                f"{self.measure.name} is told and cannot be held, got: a level",
                hint=self.measure.tells.why_not_required,
            )
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

    def met_by(self, value: float) -> bool:
        """Whether a value is near enough."""
        return abs(value - self.value) <= self.slack

    def missed_by(self, spread: Spread) -> bool:
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
class Level:
    """Where the search ended: the parameter's value, what it gives, and every point tried on the way.

    ``reason`` tells it in words where a number does not: several requirements, or a method that refuses.
    A step without a drive has no ``parameter``, and its ``value`` is not a number.
    """

    step: Step
    parameter: str
    value: float
    score: float
    reached: Reached
    tried: Mapping[float, float] = field(default_factory=dict, repr=False)
    reason: str = ""

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
            refused = self.reached in {Reached.REFUSED, Reached.UNJUDGED}
            return f"{self.reached}: {self.reason}" if refused else self.reason
        at = f"{self.parameter} = {self.value:.4g} gives {target.measure.name} {self.score:.4g}"
        if self.reached is Reached.BETTER:
            return f"it is always {target.side_of(self.score)} than {target.value:g}: the nearest is {at}"
        if self.reached is Reached.UNREACHABLE:
            return f"{target.value:g} is unreachable: the nearest is {at}"
        if self.reached is Reached.NEAREST:
            return f"{at}, {self.nearness(target)}"
        return at


class _Search(Probe):
    """Looks for the setting at which the mean of a measure is at the target."""

    def __init__(self, step: Step, case: Case, target: Target, run: Run, *, repeats: int) -> None:
        super().__init__(step, case, [target.measure], run, repeats=repeats, task="reaching the level")
        self.target = target
        self.tried: dict[float, float] = {}

    def score(self, value: float) -> float:
        """What the measure gives at a setting."""
        self.tried[value] = self.mean(self.target.measure, value)
        return self.tried[value]

    def miss(self, value: float) -> float:
        """How far, and on which side, the level is missed at a setting."""
        return self.score(value) - self.target.value

    def meets(self, value: float) -> bool:
        """Whether a setting is near enough to the level."""
        return self.target.met_by(self.score(value))

    def best(self, start: float) -> float:
        """The setting to take: the first that meets the level, coming from ``start``; else the nearest.

        A risk that cannot be met exactly is taken on the safe side, when that side was seen.
        """
        target, measure = self.target, self.target.measure
        met = [value for value, score in self.tried.items() if target.met_by(score)]
        if met:
            return min(met, key=lambda value: abs(value - start))
        values = sorted(self.tried)
        if measure.aspect == "risk":
            safe = [value for value in values if measure.is_better(self.tried[value], target.value)]
            values = safe or values
        return min(values, key=lambda value: abs(self.tried[value] - target.value))


def reach(step: Step, case: Case, target: Target, run: Run, *, repeats: int = 3) -> Level:
    """Find the value of the step's drive parameter at which the measure's mean is at the target.

    The measure is taken to be monotone in tendency, not in each draw. From the end of the range that
    misses the level by more, the values in between are looked at until the level is passed or met; then
    the gap is narrowed, with the same replicates at every value, until the mean is within tolerance or the
    parameter cannot be set more finely. Where the measure has levelled off, and many values give the level,
    the first of them is taken: it changes the data least.
    """
    search = _Search(step, case, target, run, repeats=repeats)
    values = _with_numbers(search, search.grid())
    if abs(search.miss(values[-1])) > abs(search.miss(values[0])):
        values.reverse()
    bracketed = _approach(search, values)
    value = search.best(start=values[0])
    reached = Reached.NEAREST if bracketed else Reached.UNREACHABLE
    if not bracketed and target.measure.is_better(search.score(value), target.value):
        reached = Reached.BETTER
    return Level(
        step=search.at(value).step,
        parameter=search.drive.name if search.drive else "",
        value=value,
        score=search.score(value),
        reached=Reached.WITHIN if search.meets(value) else reached,
        tried=dict(sorted(search.tried.items())),
    )


def level_of(step: Step, case: Case, measure: Measure, run: Run, *, repeats: int = 3) -> float:
    """The level a step reaches with its parameters as they are: "as safe as this"."""
    return Probe(step, case, [measure], run, repeats=repeats).mean(measure, None)


def _with_numbers(search: _Search, values: Sequence[float]) -> list[float]:
    """Leave out settings at the ends at which the method refuses or the measure has no number."""
    kept, reasons = list(values), []
    for end in (-1, 0):
        while kept:
            try:
                search.score(kept[end])
                break
            except CANNOT as error:
                reasons.append(error)
                kept.pop(end)
    if not kept:
        raise reasons[0]
    return kept


def _approach(search: _Search, values: Sequence[float]) -> bool:
    """Walk towards the level until it is passed or met, and narrow the gap; False if it never is."""
    if search.meets(values[0]):
        return True
    if search.miss(values[0]) * search.miss(values[-1]) < 0:  # the ends tell enough: no need to scan
        _narrow(search, values[0], values[-1])
        return True
    for before, after in pairwise(values):
        if search.miss(before) * search.miss(after) < 0 or search.meets(after):
            _narrow(search, before, after)
            return True
    return False


def _narrow(search: _Search, first: float, second: float) -> None:
    """Narrow a bracket: by the straight line between its ends, by halving when that is slow.

    ``second`` lies beyond the level, or meets it without being beyond; then the first value that meets it
    is looked for by halving.
    """
    for turn in range(_MOST_STEPS):
        below, above = search.miss(first), search.miss(second)
        beyond = below * above < 0
        share = min(max(below / (below - above), 0.05), 0.95) if beyond and turn % 2 == 0 else 0.5
        value = search.between(first, second, _FINENESS, share)
        if value is None or (search.meets(value) and beyond):
            return
        if search.meets(value) or search.miss(value) * below < 0:
            second = value
        else:
            first = value
