"""Meet requirements: the weakest setting of a method at which a release meets all of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sfumato.core.measure import Score, Status
from sfumato.core.params import Param
from sfumato.core.requirement import Requirement
from sfumato.core.run import Run
from sfumato.data.evidence import Scenario
from sfumato.data.table import Table
from sfumato.errors import ParameterError
from sfumato.recipes.demand import Demand, labelled
from sfumato.recipes.recipe import Recipe, Step
from sfumato.study.evaluate import CANNOT, scores_of, spreads_of
from sfumato.study.spread import Spread

#: Settings over the range that are looked at before a gap is halved.
_SCAN_POINTS = 9
#: How finely the drive is set, as a share of the range worth searching.
_FINENESS = 1e-3
#: Fewest fresh runs that confirm a setting of a method with chance: the search has picked it among many.
_CONFIRMING_RUNS = 5
#: Rounds in which the neighbourhood of the nearest miss is looked at for an island.
_ISLAND_ROUNDS = 4


@dataclass(frozen=True)
class Tried:
    """One setting that was looked at: in how many runs, what the measures gave there, and why it fails.

    Runs end at the first that misses a requirement, so a setting that fails may have been run once only.
    """

    value: float | None
    met: bool
    runs: int
    scores: Mapping[str, Spread]
    reason: str


@dataclass(frozen=True)
class Weakest:
    """Where the search ended: the step at its weakest setting that meets all requirements, or nearest to it.

    ``scores`` are by measure (``str(measure)``; with the scenario before it where there are several) and
    hold only measures that gave a number. ``reason`` says in words why this setting, or what is missed.
    """

    step: Step
    parameter: str | None
    value: float | None
    met: bool
    scores: Mapping[str, Spread]
    reason: str
    tried: tuple[Tried, ...] = field(default=(), repr=False)


def weakest(
    step: Step,
    table: Table,
    requirements: Sequence[Requirement | Demand],
    run: Run,
    *,
    repeats: int = 3,
    scenario: Scenario | None = None,
    resources: Mapping[str, Any] | None = None,
) -> Weakest:
    """Find the setting of the step's drive that changes the data least and meets all requirements.

    The end of the drive's range that misses the requirements more is the milder one (of a demand on utility
    alone that is the strong end, so the method is taken as far as the utility allows). From there the range
    is scanned for the first setting at which every one of ``repeats`` runs meets every requirement (the same
    chance at each setting); the gap before it is halved, and what is found must hold in fresh runs too:
    otherwise the next stronger setting that was seen to do is taken. A method need not be monotone:
    a setting is returned only if it was itself seen to meet all. Where the scan finds none, the
    neighbourhood of the nearest miss is looked at more finely.

    A plain requirement is judged in ``scenario``; a ``Demand`` brings its own.
    """
    if not requirements or repeats < 1:
        raise ParameterError(
            f"a search must have a requirement and a run, got: {len(requirements)} and {repeats}"
        )
    probe = _Probe(step, table, _demands(requirements, scenario), run, repeats=repeats, resources=resources)
    drive = step.method.drive()
    if drive is None or drive.tune is None:
        return probe.ended(None, None if not probe.meets(None) else probe.seen[None])
    low, high = step.method.drive_range(table)
    values = probe.from_the_milder_end(drive.grid(_SCAN_POINTS, low=low, high=high))
    found = None if probe.refused_at(values[0], values[-1]) else _scan(probe, drive, values)
    return probe.ended(drive, None if found is None else probe.seen[found])


def milder_first(
    step: Step,
    table: Table,
    requirements: Sequence[Requirement | Demand],
    run: Run,
    *,
    count: int = _SCAN_POINTS,
    scenario: Scenario | None = None,
    resources: Mapping[str, Any] | None = None,
) -> list[float]:
    """Settings over the range of the step's drive, from the end that misses the requirements more."""
    drive = step.method.drive()
    if drive is None or drive.tune is None:
        return []
    probe = _Probe(step, table, _demands(requirements, scenario), run, repeats=1, resources=resources)
    low, high = step.method.drive_range(table)
    return probe.from_the_milder_end(drive.grid(count, low=low, high=high))


def _demands(requirements: Sequence[Requirement | Demand], scenario: Scenario | None) -> list[Demand]:
    return [
        each if isinstance(each, Demand) else Demand(each, scenario or Scenario()) for each in requirements
    ]


def _scan(probe: _Probe, drive: Param, values: Sequence[float]) -> float | None:
    """The mildest setting that does, before or at the first of the grid that does; None if none is seen."""
    for place, value in enumerate(values):
        if probe.meets(value):
            found = _settled(probe, drive, values[place - 1] if place else None, value)
            if found is not None:
                return found
    island = _island(probe, drive, values)
    return None if island is None else _settled(probe, drive, *island)


def _settled(probe: _Probe, drive: Param, failing: float | None, meeting: float) -> float | None:
    """Halve the gap between a setting that fails and one that does; then the mildest that lasts."""
    doing = [meeting]
    if failing is not None:
        low, high = (drive.position(end) for end in drive.tune or (failing, meeting))
        start, end = drive.position(failing), drive.position(meeting)
        while abs(end - start) > _FINENESS * abs(high - low):
            value = drive.at((start + end) / 2)
            if value in {drive.at(start), drive.at(end)}:
                break  # whole numbers that are neighbours
            if probe.meets(value):
                end = drive.position(value)
                doing.append(value)
            else:
                start = drive.position(value)
    return next((value for value in reversed(doing) if probe.lasts(value)), None)


def _island(probe: _Probe, drive: Param, values: Sequence[float]) -> tuple[float, float] | None:
    """Look more and more finely beside the nearest miss; a setting that fails and one beyond it that does."""
    line = list(values)
    for _ in range(_ISLAND_ROUNDS):
        nearest = line.index(min(line, key=probe.shortfall))
        for left in (nearest, nearest - 1):  # the later gap first, so that places before stay as they are
            if not 0 <= left < len(line) - 1:
                continue
            value = drive.at((drive.position(line[left]) + drive.position(line[left + 1])) / 2)
            if value in line:
                continue
            line.insert(left + 1, value)
            if probe.meets(value):
                return line[left], value
    return None


@dataclass
class _Seen:
    """The runs at one setting: the score of each demand, by its label; or why the method refused."""

    value: float | None
    step: Step
    runs: list[dict[str, Score]] = field(default_factory=list)
    refused: str = ""


class _Probe:
    """Judges the step at settings of its drive; the same runs at each, so that chance is common."""

    def __init__(
        self,
        step: Step,
        table: Table,
        demands: Sequence[Demand],
        run: Run,
        *,
        repeats: int,
        resources: Mapping[str, Any] | None,
    ) -> None:
        self.step, self.table, self.run, self.resources = step, table, run, resources
        self.repeats = repeats if step.method.stochastic else 1
        self.demands = labelled(demands)
        self.seen: dict[float | None, _Seen] = {}

    def meets(self, value: float | None) -> bool:
        """Whether every run at a setting meets every demand; the first that does not ends it."""
        if value not in self.seen:
            said = "its settings as they are" if value is None else f"trying {value:.4g}"
            self.run.tell("meeting the requirements", len(self.seen), 0, f"{self.step.method.title}: {said}")
            method = self.step.method if value is None else self.step.method.with_drive(value)
            self.seen[value] = _Seen(value, replace(self.step, method=method))
            self._go_on(self.seen[value], self.run, self.repeats)
        return self._all_met(self.seen[value])

    def lasts(self, value: float) -> bool:
        """Whether fresh runs at a setting meet every demand too: that it was found is not luck."""
        if self.meets(value) and self.step.method.stochastic:
            self._go_on(self.seen[value], self.run.at("confirming"), max(self.repeats, _CONFIRMING_RUNS))
        return self._all_met(self.seen[value])

    def _go_on(self, seen: _Seen, run: Run, runs: int) -> None:
        quiet = run.silent()
        for replicate in range(runs):
            here = quiet.at("replicate", replicate)
            try:
                release = Recipe((seen.step,)).apply(self.table, here)
                scores = scores_of(release, self.table, self.demands, here, resources=self.resources)
            except CANNOT as error:
                seen.refused = error.message
                return
            seen.runs.append(scores)
            if not self._run_met(seen.runs[-1]):
                return

    def _run_met(self, scores: Mapping[str, Score]) -> bool:
        return all(demand.requirement.met_by(scores[label]) for label, demand in self.demands)

    def _all_met(self, seen: _Seen) -> bool:
        return not seen.refused and all(self._run_met(scores) for scores in seen.runs)

    def refused_at(self, *values: float) -> bool:
        """Whether a measure does not apply at any of these settings: then no other would help."""
        runs = [scores for value in values for scores in self.seen[value].runs]
        return any(
            runs and all(scores[label].status is Status.REFUSED for scores in runs)
            for label, _ in self.demands
        )

    def from_the_milder_end(self, values: list[float]) -> list[float]:
        """The settings from the end that misses the requirements more to the one that misses them less.

        Risks decide where there are any: a demand on utility is missed at the strong end.
        """
        self.meets(values[0])
        self.meets(values[-1])
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
        self.meets(value)
        return any(math.isfinite(self.miss(value, *each)) for each in self.demands)

    def miss(self, value: float | None, label: str, demand: Demand) -> float:
        """By how much the worst run at a setting misses a demand; negative where there is room to spare."""
        seen = self.seen[value]
        sign = 1 if demand.requirement.sign.startswith("<") else -1
        worst = demand.requirement.worst
        if seen.refused or any(math.isnan(worst(scores[label])) for scores in seen.runs):
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

    def ended(self, drive: Param | None, found: _Seen | None) -> Weakest:
        """Say where the search ended: at what was found, or at the nearest miss with the reason."""
        if found is None:
            nearest = min(self.seen, key=self.shortfall)
            seen, reason = self.seen[nearest], _why_not(self, drive, nearest)
        else:
            seen, reason = found, self._why(drive, found)
        return Weakest(
            step=seen.step,
            parameter=drive.name if drive else None,
            value=seen.value,
            met=found is not None,
            scores=spreads_of(seen.runs),
            reason=reason,
            tried=tuple(self._told(each) for each in sorted(self.seen.values(), key=_by_value)),
        )

    def _why(self, drive: Param | None, found: _Seen) -> str:
        runs = "the run" if len(found.runs) == 1 else f"all {len(found.runs)} runs"
        if drive is None:
            return f"as it is, it meets the requirements in {runs}"
        return (
            f"{drive.name} = {found.value:.4g} is the weakest of {len(self.seen)} settings looked at that "
            f"meets the requirements, in {runs}"
        )

    def _told(self, seen: _Seen) -> Tried:
        missed = [
            demand.requirement.verdict(seen.runs[-1][label])
            for label, demand in self.demands
            if seen.runs and not demand.requirement.met_by(seen.runs[-1][label])
        ]
        reason = seen.refused or "; ".join(missed)
        return Tried(seen.value, self._all_met(seen), len(seen.runs), spreads_of(seen.runs), reason)


def _by_value(seen: _Seen) -> float:
    return 0.0 if seen.value is None else seen.value


def _why_not(probe: _Probe, drive: Param | None, nearest: float | None) -> str:
    """Say in words what is missed: by each demand that is met nowhere, or by all of them together."""
    if all(seen.refused for seen in probe.seen.values()):
        return probe.seen[nearest].refused
    never = [
        _at_best(probe, drive, label, demand)
        for label, demand in probe.demands
        if all(probe.miss(value, label, demand) > 0 for value in probe.seen)
    ]
    if never:
        return "; ".join(never)
    missed = [
        f"{_named(label, demand)} is {_figure(probe.worst(nearest, label, demand), demand)}"
        for label, demand in probe.demands
        if probe.miss(nearest, label, demand) > 0
    ]
    return (
        f"each requirement is met at some setting, but never all in every run: nearest{_at(drive, nearest)}, "
        f"where {', '.join(missed)}"
    )


def _at_best(probe: _Probe, drive: Param | None, label: str, demand: Demand) -> str:
    """The best that the worst run gives over all settings, or why there is no number."""
    value = min(probe.seen, key=lambda each: probe.miss(each, label, demand))
    if math.isinf(probe.miss(value, label, demand)):
        told = (scores[label] for seen in probe.seen.values() for scores in seen.runs)
        score = next(score for score in told if math.isnan(demand.requirement.worst(score)))
        return f"{_named(label, demand)}: {score.status}" + (f", {score.reason}" if score.reason else "")
    word = "at most" if demand.requirement.sign.startswith(">") else "at least"
    best = _figure(probe.worst(value, label, demand), demand)
    return f"{_named(label, demand)}: {word} {best},{_at(drive, value)}"


def _named(label: str, demand: Demand) -> str:
    return label.removesuffix(str(demand.measure)) + str(demand)


def _at(drive: Param | None, value: float | None) -> str:
    return " as it is" if drive is None or value is None else f" at {drive.name} = {value:.4g}"


def _figure(value: float, demand: Demand) -> str:
    """A number in short, unless that would look as if the requirement were met."""
    short = f"{value:.4g}"
    return repr(value) if demand.requirement.met_by(Score(float(short))) else short
