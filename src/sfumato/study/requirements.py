"""Meet requirements: the weakest setting of a method at which a release meets all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sfumato.core.measure import Score, Status
from sfumato.core.requirement import Requirement
from sfumato.core.run import Run, never_stop
from sfumato.errors import ParameterError
from sfumato.recipes.demand import Demand, label_demands
from sfumato.recipes.step import Step
from sfumato.study._probe import SCAN_POINTS, Probe, ProbeResult
from sfumato.study.evaluate import EvaluationCase, spreads_of
from sfumato.study.replicate_mean import ReplicateMean

#: How finely the drive is set, as a share of the range worth searching.
_FINENESS = 1e-3
_COARSE = 0.02  # where it was found on other data before
#: Fewest fresh runs that confirm a setting of a method with chance: the search has picked it among many.
_CONFIRMING_RUNS = 5
#: Rounds in which the neighbourhood of the nearest miss is looked at for an island.
_ISLAND_ROUNDS = 4
#: How often a number of records alike that is too weak is taken times √2, and then times 2.
_STRENGTHENINGS = 8


@dataclass(frozen=True)
class SettingTrial:
    """One setting that was looked at: in how many runs, what the measures gave there, and why it fails.

    Runs end at the first that misses a requirement, so a setting that fails may have been run once only.
    """

    value: float | None
    met: bool
    runs: int
    scores: Mapping[str, ReplicateMean]
    reason: str


@dataclass(frozen=True)
class WeakestSetting:
    """Where the search ended: the step at its weakest setting that meets all requirements, or nearest to it.

    ``scores`` are by measure (``str(measure)``; with the scenario before it where there are several) and
    hold only measures that gave a number. ``reason`` says in words why this setting, or what is missed.
    """

    step: Step
    parameter: str | None
    value: float | None
    met: bool
    scores: Mapping[str, ReplicateMean]
    reason: str
    tried: tuple[SettingTrial, ...] = field(default=(), repr=False)
    mild: float | None = None  # the end of the drive's range from which it was looked for


def weakest(
    step: Step,
    case: EvaluationCase,
    requirements: Sequence[Requirement | Demand],
    run: Run,
    *,
    repeats: int = 3,
    near: tuple[float, float] | None = None,
    hurry: Callable[[], bool] = never_stop,
) -> WeakestSetting:
    """Find the setting of the step's drive that changes the data least and meets all requirements.

    The end of the drive's range that misses the requirements more is the milder one (of a demand on utility
    alone that is the strong end, so the method is taken as far as the utility allows). From there the range
    is scanned for the first setting at which every one of ``repeats`` runs meets every requirement (the same
    chance at each setting); the gap before it is halved, and what is found must hold in fresh runs too:
    otherwise the next stronger setting that was seen to do is taken. A method need not be monotone:
    a setting is returned only if it was itself seen to meet all. Where the scan finds none, the
    neighbourhood of the nearest miss is looked at more finely.

    A plain requirement is judged in the scenario of the case; a ``Demand`` brings its own. ``near`` is where
    it was found on other data, and the mild end there: then it is looked for from that setting on, and less
    finely, unless it is a whole number. Once ``hurry`` says so no other setting is looked at, and the best so
    far is taken.
    """
    if not requirements or repeats < 1:
        raise ParameterError(f"a search needs requirements and runs, got: {len(requirements)} and {repeats}")
    search = _WeakestSettingSearch(step, case, requirements, run, repeats=repeats)
    search.hurry = hurry
    if search.drive is None:
        return search.conclude(None if not search.meets(None) else search.seen[None])
    if near is not None:
        found, mild = _from(search, *near), near[1]
    else:
        values = search.from_the_milder_end(search.grid())
        found = None if search.refused_at(values[0], values[-1]) else _scan(search, values)
        mild = values[0]
    return replace(search.conclude(None if found is None else search.seen[found]), mild=mild)


def _from(search: _WeakestSettingSearch, start: float, mild: float) -> float | None:
    """The mildest setting that does, looked for from one that is likely to, towards the mild end or away."""
    assert search.drive is not None
    failing, fineness = None if start == mild else mild, 0.0 if search.drive.type is int else _COARSE
    for value in (start, *_stronger(search, start, mild)):
        if search.meets(value):
            return _bisect_setting(search, failing, value, fineness)
        failing = value
    return None


def _stronger(search: _WeakestSettingSearch, start: float, mild: float) -> list[float]:
    """Settings ever further from the mild end; records alike also beyond what is usual (10, 14, 20 …)."""
    assert search.drive is not None
    if search.drive.symbol == "k" and start >= mild:
        most = len(search.case.table) // 2
        steps = [*(turn / 2 for turn in range(1, _STRENGTHENINGS + 1)), *range(5, 5 + _STRENGTHENINGS)]
        more = [min(round(start * 2**step), most) for step in steps]
        return [value for value in dict.fromkeys(more) if value > start]
    values = sorted(search.grid(), key=lambda value: abs(value - mild))
    return [value for value in values if abs(value - mild) > abs(start - mild)]


def settings_from_mildest(
    step: Step,
    case: EvaluationCase,
    requirements: Sequence[Requirement | Demand],
    run: Run,
    *,
    count: int = SCAN_POINTS,
) -> list[float]:
    """Settings over the range of the step's drive, from the end that misses the requirements more."""
    search = _WeakestSettingSearch(step, case, requirements, run, repeats=1)
    return [] if search.drive is None else search.from_the_milder_end(search.grid(count))


def _scan(search: _WeakestSettingSearch, values: Sequence[float]) -> float | None:
    """The mildest setting that does, before or at the first of the grid that does; None if none is seen."""
    for place, value in enumerate(values):
        if search.hurry():
            return next((each for each in values if each in search.seen and search.lasts(each)), None)
        if search.meets(value):
            found = _bisect_setting(search, values[place - 1] if place else None, value)
            if found is not None:
                return found
    island = _island(search, values)
    return None if island is None else _bisect_setting(search, *island)


def _bisect_setting(
    search: _WeakestSettingSearch, failing: float | None, meeting: float, fineness: float = _FINENESS
) -> float | None:
    """Halve the gap between a setting that fails and one that does; then the mildest that lasts."""
    doing = [meeting]
    while failing is not None:
        value = search.setting_between(failing, doing[-1], fineness)
        if value is None or search.hurry():
            break
        if search.meets(value):
            doing.append(value)
        else:
            failing = value
    return next((value for value in reversed(doing) if search.lasts(value)), None)


def _island(search: _WeakestSettingSearch, values: Sequence[float]) -> tuple[float, float] | None:
    """Look more and more finely beside the nearest miss; a setting that fails and one beyond it that does."""
    line = list(values)
    for _ in range(0 if search.hurry() else _ISLAND_ROUNDS):
        nearest = line.index(min(line, key=search.shortfall))
        for left in (nearest, nearest - 1):  # the later gap first, so that places before stay as they are
            if not 0 <= left < len(line) - 1:
                continue
            value = search.setting_between(line[left], line[left + 1], 0.0)
            if value is None or value in line:
                continue
            line.insert(left + 1, value)
            if search.meets(value):
                return line[left], value
    return None


class _WeakestSettingSearch(Probe):
    """Looks for the weakest setting at which every run meets every demand."""

    def __init__(
        self,
        step: Step,
        case: EvaluationCase,
        asked: Sequence[Requirement | Demand],
        run: Run,
        *,
        repeats: int,
    ) -> None:
        demands = [each if isinstance(each, Demand) else Demand(each, case.scenario) for each in asked]
        super().__init__(step, case, demands, run, repeats=repeats, task="meeting the requirements")
        self.demands = label_demands(demands)
        self.hurry: Callable[[], bool] = never_stop

    def has_told_enough(self, scores: Mapping[str, Score]) -> bool:
        """The first run that misses a demand: no other makes up for it."""
        return not self._run_meets(scores)

    def meets(self, value: float | None) -> bool:
        """Whether every run at a setting meets every demand."""
        seen = self.at(value)
        return seen.refused is None and all(self._run_meets(scores) for scores in seen.runs)

    def lasts(self, value: float) -> bool:
        """Whether fresh runs at a setting meet every demand too: that it was found is not luck."""
        if self.meets(value) and self.step.method.randomness.stochastic:
            self.go_on(self.at(value), self.run.at("confirming"), max(self.repeats, _CONFIRMING_RUNS))
        return self.meets(value)

    def _run_meets(self, scores: Mapping[str, Score]) -> bool:
        return all(demand.requirement.met_by(scores[label]) for label, demand in self.demands)

    def refused_at(self, *values: float) -> bool:
        """Whether a measure does not apply at any of these settings: then no other would help."""
        runs = [scores for value in values for scores in self.seen[value].runs]
        return any(
            runs and all(each[label].status is Status.REFUSED for each in runs) for label, _ in self.demands
        )

    def from_the_milder_end(self, values: list[float]) -> list[float]:
        """The settings from the end that misses the requirements more to the one that misses them less.

        Risks decide where there are any: a demand on utility is missed at the strong end.
        """
        self.at(values[0])
        self.at(values[-1])
        low = next((value for value in values if self._has_numbers(value)), values[0])
        high = next((value for value in reversed(values) if self._has_numbers(value)), values[-1])
        asked = [each for each in self.demands if each[1].measure.aspect == "risk"] or self.demands
        pairs = [(self.miss(low, *each), self.miss(high, *each)) for each in asked]
        pairs = [pair for pair in pairs if all(map(math.isfinite, pair))]
        more = sum(first > 0 for first, _ in pairs) - sum(second > 0 for _, second in pairs)
        worse = sum((first > second) - (first < second) for first, second in pairs)
        lower_is_milder = (more or worse) >= 0
        return values if lower_is_milder else values[::-1]

    def _has_numbers(self, value: float) -> bool:
        """Whether a demand has a number at a setting; a method may refuse the ends of its range."""
        return any(math.isfinite(self.miss(value, *each)) for each in self.demands)

    def miss(self, value: float | None, label: str, demand: Demand) -> float:
        """By how much the worst run at a setting misses a demand; negative where there is room to spare."""
        seen = self.at(value)
        sign = 1 if demand.requirement.sign.startswith("<") else -1
        worst = demand.requirement.worst
        if seen.refused is not None or any(math.isnan(worst(scores[label])) for scores in seen.runs):
            return math.inf
        gap = sign * (self.worst(value, label, demand) - demand.requirement.level)
        met = all(demand.requirement.met_by(scores[label]) for scores in seen.runs)
        return gap if met or gap > 0 else math.ulp(0.0)  # a strict comparison is missed at the level itself

    def worst(self, value: float | None, label: str, demand: Demand) -> float:
        """What the run at a setting gives that is worst for a demand."""
        numbers = [demand.requirement.worst(scores[label]) for scores in self.seen[value].runs]
        return max(numbers) if demand.requirement.sign.startswith("<") else min(numbers)

    def shortfall(self, value: float | None) -> float:
        """By how much a setting misses the demands together, each on the scale of what was seen of it."""
        total = 0.0
        for label, demand in self.demands:
            missed = [max(self.miss(each, label, demand), 0.0) for each in self.seen]
            scale = max((each for each in missed if math.isfinite(each)), default=0.0) or 1.0
            total += max(self.miss(value, label, demand), 0.0) / scale
        return total

    def conclude(self, found: ProbeResult | None) -> WeakestSetting:
        """Say where the search ended: at what was found, or at the nearest miss with the reason."""
        seen = found or self.seen[min(self.seen, key=self.shortfall)]
        return WeakestSetting(
            step=seen.step,
            parameter=self.drive.name if self.drive else None,
            value=seen.value,
            met=found is not None,
            scores=spreads_of(seen.runs),
            reason=self._why(seen) if found else self._why_not(seen),
            tried=tuple(
                self._setting_trial(self.seen[value]) for value in sorted(self.seen, key=lambda v: v or 0.0)
            ),
        )

    def _setting_trial(self, seen: ProbeResult) -> SettingTrial:
        missed = [
            demand.requirement.verdict(seen.runs[-1][label])
            for label, demand in self.demands
            if seen.runs and not demand.requirement.met_by(seen.runs[-1][label])
        ]
        reason = seen.refused.message if seen.refused else "; ".join(missed)
        return SettingTrial(seen.value, self.meets(seen.value), len(seen.runs), spreads_of(seen.runs), reason)

    # ---------------------------------------------------------------------------------------- in words

    def _why(self, found: ProbeResult) -> str:
        runs = "the run" if len(found.runs) == 1 else f"all {len(found.runs)} runs"
        if self.drive is None:
            return f"as it is, it meets the requirements in {runs}"
        return (
            f"{self.drive.name} = {found.value:.4g} is the mildest of {len(self.seen)} settings tried "
            f"that meets the requirements, in {runs}"
        )

    def _why_not(self, nearest: ProbeResult) -> str:
        """What is missed: by each demand that is met nowhere, or by all of them together."""
        if nearest.refused is not None and all(seen.refused for seen in self.seen.values()):
            return nearest.refused.message
        never = [each for each in self.demands if all(self.miss(value, *each) > 0 for value in self.seen)]
        if never:
            return "; ".join(self._at_best(label, demand) for label, demand in never)
        missed = [
            f"{_demand_label(label, demand)} is {_figure(self.worst(nearest.value, label, demand), demand)}"
            for label, demand in self.demands
            if self.miss(nearest.value, label, demand) > 0
        ]
        return (
            "each requirement is met at some setting, but never all in every run: "
            f"nearest{self._place(nearest.value)}, where {', '.join(missed)}"
        )

    def _at_best(self, label: str, demand: Demand) -> str:
        """The best that the worst run gives over all settings, or why there is no number."""
        value = min(self.seen, key=lambda each: self.miss(each, label, demand))
        if math.isinf(self.miss(value, label, demand)):
            scores_seen = (scores[label] for seen in self.seen.values() for scores in seen.runs)
            score = next(score for score in scores_seen if math.isnan(demand.requirement.worst(score)))
            why = f", {score.reason}" if score.reason else ""
            return f"{_demand_label(label, demand)}: {score.status}{why}"
        word = "at most" if demand.requirement.sign.startswith(">") else "at least"
        best = _figure(self.worst(value, label, demand), demand)
        return f"{_demand_label(label, demand)}: {word} {best},{self._place(value)}"

    def _place(self, value: float | None) -> str:
        return " as it is" if self.drive is None or value is None else f" at {self.drive.name} = {value:.4g}"


def _demand_label(label: str, demand: Demand) -> str:
    return label.removesuffix(str(demand.measure)) + str(demand)


def _figure(value: float, demand: Demand) -> str:
    """A number in short, unless that would look as if the requirement were met."""
    short = f"{value:.4g}"
    return repr(value) if demand.requirement.met_by(Score(float(short))) else short
