"""A study: bring every method to the same level, or to the same requirements, and rank them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sfumato.core.measure import Measure, Score, Status
from sfumato.core.release import Release
from sfumato.core.requirement import Requirement
from sfumato.core.run import Run
from sfumato.data.evidence import Scenario
from sfumato.data.table import Table
from sfumato.errors import ParameterError, PlanError, RefusedError, SfumatoError, UnreachableError
from sfumato.recipes.demand import Demand, Labelled, labelled
from sfumato.recipes.recipe import Recipe, Step
from sfumato.study.evaluate import CANNOT, attempt, scores_of, spreads_of, usable
from sfumato.study.frontier import Point, frontier, mark_front
from sfumato.study.level import Level, Reached, Target, reach
from sfumato.study.requirements import weakest
from sfumato.study.spread import Spread

#: The label of the measure that ranks, among those of the requirements.
_RANKED = "ranked by"
#: How many times as many runs the search for a setting may take, when fresh ones miss the requirements.
_MOST_SEARCHING = 4


@dataclass(frozen=True)
class Outcome:
    """One method at the level: its parameter, and the measures over fresh runs.

    Where several requirements are asked for, ``scores`` has each of them by its label, and ``kept`` says in
    how many of the fresh runs all were met.
    """

    level: Level
    held: Spread | None = None  # the measure held equal, or the first requirement's
    ranked: Spread | None = None  # the measure the ranking is by
    rank: int | None = None
    tied_with_next: bool = False
    scores: Mapping[str, Spread] = field(default_factory=dict)
    kept: int | None = None
    example: Release | None = field(default=None, repr=False, compare=False)

    @property
    def step(self) -> Step:
        """The step at the level."""
        return self.level.step

    @property
    def remark(self) -> str:
        """What must be known of the requirements beside their numbers."""
        if self.kept is None or self.ranked is None or self.kept == self.ranked.runs:
            return ""
        return f"the requirements were met in {self.kept} of {self.ranked.runs} fresh runs"

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON."""
        return {
            "rank": self.rank,
            "method": self.step.method.name,
            "title": self.step.method.title,
            "parameters": self.step.method.to_dict(),
            "drive": self.level.parameter or None,
            "reached": self.level.reached.value,
            "reason": self.level.reason,
            "held": self.held.to_dict() if self.held else None,
            "ranked": self.ranked.to_dict() if self.ranked else None,
            "tied_with_next": self.tied_with_next,
            "scores": {label: spread.to_dict() for label, spread in self.scores.items()},
            "runs_met": self.kept,
            "tried": [[value, score] for value, score in self.level.tried.items()],
        }


@dataclass(frozen=True)
class Study:
    """Methods compared at one level, or under the same requirements (``target`` is then one of them)."""

    original: Table
    target: Target
    ranked_by: Measure
    outcomes: tuple[Outcome, ...]
    points: tuple[Point, ...] = ()
    repeats: int = 1
    scenario: Scenario = field(default_factory=Scenario)
    demands: tuple[Demand, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def winner(self) -> Outcome | None:
        """The best method that reached the level."""
        return next((outcome for outcome in self.outcomes if outcome.rank == 1), None)

    @property
    def unreached(self) -> tuple[Outcome, ...]:
        """The methods that cannot be brought to the level."""
        return tuple(outcome for outcome in self.outcomes if outcome.rank is None)

    @property
    def aim(self) -> str:
        """What the methods are brought to, in words: a level of a measure, or all the requirements."""
        if not self.demands:
            return f"{self.target.measure.title} {self.target.value:g}"
        several = len({demand.scenario for demand in self.demands}) > 1
        return " and ".join(f"{d} ({d.scenario.name})" if several else str(d) for d in self.demands)

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON; nothing per record, no seed."""
        return {
            "records": len(self.original),
            "columns": {
                name: list(o.step.resolve(self.original.schema))
                for o in self.outcomes
                for name in [o.step.method.name]
            },
            "held": {
                "measure": self.target.measure.name,
                "parameters": self.target.measure.to_dict(),
                "level": self.target.value,
                "tolerance": self.target.tolerance,
            },
            "requirements": [
                {"requirement": str(demand.requirement), "scenario": demand.scenario.to_dict()}
                for demand in self.demands
            ],
            "ranked_by": {
                "measure": self.ranked_by.name,
                "parameters": self.ranked_by.to_dict(),
                "better": self.ranked_by.better,
            },
            "repeats": self.repeats,
            "scenario": self.scenario.to_dict(),
            "outcomes": [outcome.to_dict() for outcome in self.outcomes],
            "map": [point.to_dict() for point in self.points],
            "notes": list(self.notes),
        }


def compare(
    table: Table,
    steps: Sequence[Step],
    run: Run,
    *,
    ranked_by: Measure,
    target: Target | None = None,
    demands: Sequence[Demand] = (),
    repeats: int = 5,
    points: int = 0,
    scenario: Scenario | None = None,
    resources: Mapping[str, Any] | None = None,
    notes: Sequence[str] = (),
) -> Study:
    """Bring every step to the target level, score it there in fresh runs, and rank.

    With ``demands`` instead of a ``target`` every step is taken at its weakest setting that meets all of
    them. The runs that are scored are other runs than those the search looked at: a parameter chosen because
    it did well on some draws would look better on these than it is. A method that refuses the data is shown
    as refused; only when all do, that is an error.
    """
    aim = _Aim(target, tuple(demands), ranked_by, scenario or Scenario(), resources)
    _check(table, steps, aim, repeats)
    outcomes: list[Outcome] = []
    refusals: list[SfumatoError] = []
    for step in run.track("methods compared", steps, total=len(steps)):
        try:
            outcomes.append(_brought(step, table, aim, run, repeats))
        except CANNOT as error:
            refusals.append(error)
            level = Level(step, "", math.nan, math.nan, Reached.REFUSED, reason=error.message)
            outcomes.append(Outcome(level))
    if len(refusals) == len(steps):
        raise refusals[0]
    able = [outcome.step for outcome in outcomes if outcome.level.reached is not Reached.REFUSED]
    return Study(
        original=table,
        target=aim.target,
        ranked_by=ranked_by,
        outcomes=_in_order(outcomes, ranked_by),
        points=_mapped(able, table, aim, run, points) if points else (),
        repeats=repeats,
        scenario=aim.scenario,
        demands=aim.demands,
        notes=tuple(notes),
    )


class _Aim:
    """What the methods are brought to and judged by: one target, or demands with the first as the target."""

    def __init__(
        self,
        target: Target | None,
        demands: tuple[Demand, ...],
        ranked_by: Measure,
        scenario: Scenario,
        resources: Mapping[str, Any] | None,
    ) -> None:
        if (target is None) == (not demands):
            raise ParameterError("a comparison must have a level or requirements, got: both or neither")
        first = demands[0].requirement if demands else None
        # The measure that is shown as held is the one that the ranking's measure is weighed against.
        against = [d.requirement for d in demands if d.measure.aspect != ranked_by.aspect]
        first = against[0] if against else first
        self.target = target or Target(first.measure, first.level)  # type: ignore[union-attr]
        self.demands, self.ranked_by, self.scenario, self.resources = demands, ranked_by, scenario, resources
        labelled(demands)  # raises before any work if they cannot be told apart

    @property
    def asked(self) -> Labelled:
        """Every measure that is held, under the label of its score."""
        held = Demand(Requirement(self.target.measure, "<=", self.target.value), self.scenario)
        return labelled(self.demands or [held])

    @property
    def held_label(self) -> str:
        """The label of the measure that is shown as held."""
        return next(label for label, demand in self.asked if demand.measure == self.target.measure)

    def searched(self, step: Step, table: Table, run: Run, repeats: int) -> Level:
        """Bring a step to the level, or to its weakest setting that meets the demands."""
        options: dict[str, Any] = {"scenario": self.scenario, "resources": self.resources}
        if not self.demands:
            return reach(step, table, self.target, run, repeats=min(repeats, 3), **options)
        found = weakest(step, table, self.demands, run, repeats=repeats, **options)
        if not any(each.runs for each in found.tried):
            raise RefusedError(found.reason)
        shown = self.held_label
        return Level(
            step=found.step,
            parameter=found.parameter or "",
            value=math.nan if found.value is None else found.value,
            score=found.scores[shown].mean if shown in found.scores else math.nan,
            reached=Reached.MET if found.met else Reached.UNREACHABLE,
            tried={
                each.value: each.scores[shown].mean
                for each in found.tried
                if each.value is not None and shown in each.scores
            },
            reason=found.reason,
        )


def _check(table: Table, steps: Sequence[Step], aim: _Aim, repeats: int) -> None:
    if aim.target.measure.aspect == aim.ranked_by.aspect:
        raise ParameterError(
            f"a comparison must hold a risk and rank by a utility, or the reverse, got: two measures of "
            f"{aim.ranked_by.aspect}"
        )
    if repeats < 1:
        raise ParameterError(f"`repeats` must be at least 1, got: `{repeats}`")
    faults = [fault for step in steps for fault in step.faults(table.schema)]
    if faults or not steps:
        raise PlanError.gather("the comparison", faults or ["it must name at least one method, got: none"])


def _brought(step: Step, table: Table, aim: _Aim, run: Run, repeats: int) -> Outcome:
    """Bring a step to the aim, and look at it in fresh runs.

    A setting that met the requirements in the search but not in every fresh run was found by luck: it is
    looked for again over twice as many runs, which only a stronger one survives.
    """
    searching = repeats
    while True:
        level = aim.searched(step, table, run, searching)
        outcome = _fresh(level, table, aim, run, range(searching, searching + repeats))
        if not outcome.remark or searching >= _MOST_SEARCHING * repeats:
            return outcome
        searching *= 2


def _fresh(level: Level, table: Table, aim: _Aim, run: Run, turns: range) -> Outcome:
    """Score a step at its level in runs that the search has not seen."""
    if level.reached is Reached.UNREACHABLE:
        return Outcome(level)
    # A measure that ranks may be held as well, perhaps against another intruder: it has a label of its own.
    asked = [*aim.asked, (_RANKED, Demand(Requirement(aim.ranked_by, "<=", 0.0), aim.scenario))]
    quiet, runs, example = run.silent(), list[dict[str, Score]](), None
    for turn in turns:
        run.tell("scoring", len(runs), len(turns), level.step.method.title)
        here = quiet.at("replicate", turn)
        release = Recipe((level.step,)).apply(table, here)
        runs.append(scores_of(release, table, asked, here, resources=aim.resources))
        for label, demand in asked:
            usable(demand.measure, runs[-1][label])
        example = example or release
        estimated = any(score.status is Status.APPROXIMATE for score in runs[-1].values())
        if not level.step.method.stochastic and not estimated:
            break  # no chance in the method nor in the measures: every run gives the same
    spreads = spreads_of(runs)
    demanded = labelled(aim.demands)
    kept = sum(all(demand.requirement.met_by(scores[label]) for label, demand in demanded) for scores in runs)
    return Outcome(
        level,
        held=spreads[aim.held_label],
        ranked=spreads[_RANKED],
        scores={label: spreads[label] for label, _ in demanded},
        kept=kept if demanded else None,
        example=example,
    )


def _mapped(steps: Sequence[Step], table: Table, aim: _Aim, run: Run, points: int) -> tuple[Point, ...]:
    """The risk–utility map of the methods that have one: a drive, and both measures all over its range."""
    held, ranked_by = aim.target.measure, aim.ranked_by
    pair = (held, ranked_by) if held.aspect == "risk" else (ranked_by, held)
    scenario = dict(aim.asked)[aim.held_label].scenario
    options: dict[str, Any] = {"points": points, "scenario": scenario, "resources": aim.resources}
    found: list[Point] = []
    for step in steps:
        drive = step.method.drive()
        if drive is None or drive.tune is None:
            continue
        try:
            found += frontier([step], table, *pair, run, **options)
        except CANNOT:  # at an end of its range: it is ranked, but has no line
            continue
    return mark_front(found, *pair)


def _in_order(outcomes: Sequence[Outcome], measure: Measure) -> tuple[Outcome, ...]:
    """Best first; those that did not reach the level last, without a rank."""
    sign = 1 if measure.better == "low" else -1
    reached = sorted((o for o in outcomes if o.ranked), key=lambda o: sign * o.ranked.mean)  # type: ignore[union-attr]
    placed = [
        replace(outcome, rank=place, tied_with_next=_tied(outcome, following))
        for place, (outcome, following) in enumerate(
            zip(reached, [*reached[1:], None], strict=False), start=1
        )
    ]
    return (*placed, *(outcome for outcome in outcomes if not outcome.ranked))


def _tied(first: Outcome, second: Outcome | None) -> bool:
    if second is None or first.ranked is None or second.ranked is None:
        return False
    return not first.ranked.differs_from(second.ranked)


def level_of(
    step: Step,
    table: Table,
    measure: Measure,
    run: Run,
    *,
    repeats: int = 3,
    scenario: Scenario | None = None,
    resources: Mapping[str, Any] | None = None,
) -> float:
    """The level a step reaches with its parameters as they are: "as safe as this"."""
    turns = range(repeats if step.method.stochastic else 1)
    quiet = run.silent()
    trials = [
        attempt(Recipe((step,)), table, [measure], quiet, replicate=r, scenario=scenario, resources=resources)
        for r in turns
    ]
    return float(np.mean([usable(measure, trial.scores[str(measure)]) for trial in trials]))


def require_reached(study: Study) -> None:
    """Raise when no method, of those compared, can be brought to the level."""
    if study.winner is None:
        listed = "; ".join(f"{o.step.method.name}: {o.level.sentence(study.target)}" for o in study.unreached)
        what = (
            f"meet {study.aim}"
            if study.demands
            else f"reach {study.target.measure.name} {study.target.value:g}"
        )
        raise UnreachableError(f"at least one method must {what}, got: none", hint=listed)
