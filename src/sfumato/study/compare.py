"""A study: bring every method to the same level, or to the same requirements, and rank them."""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from sfumato.core.measure import Measure, Score
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.evidence import Scenario
from sfumato.data.notebook import as_html
from sfumato.data.table import Table
from sfumato.errors import ParameterError, PlanError, RefusedError, SfumatoError, UnreachableError
from sfumato.recipes.demand import Demand, labelled
from sfumato.recipes.recipe import Recipe, Step
from sfumato.study.evaluate import CANNOT, Case, evaluate, repeated, spread_of, spreads_of, usable
from sfumato.study.frontier import Point, frontier, mark_front
from sfumato.study.level import Level, Reached, Target, reach
from sfumato.study.requirements import weakest
from sfumato.study.spread import Spread

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

    def to_frame(self) -> pl.DataFrame:
        """The ranking, a row for each method; ``held`` is the measure made equal or the first requirement."""
        return pl.DataFrame(
            [
                {
                    "rank": each.rank,
                    "method": each.step.method.name,
                    "parameter": each.level.setting,
                    "held": each.held.mean if each.held else None,
                    "ranked": each.ranked.mean if each.ranked else None,
                    "remark": each.remark,
                }
                for each in self.outcomes
            ],
            schema_overrides={"rank": pl.Int64, "held": pl.Float64, "ranked": pl.Float64},
        )

    def _repr_html_(self) -> str:
        head = f"{len(self.original)} records, {self.aim}; ranked by {self.ranked_by.title}"
        return as_html([head, *self.notes], self.to_frame())

    def report(self, path: str | Path, *, public: bool = False, overwrite: bool = False) -> tuple[Path, Path]:
        """Write the report and its JSON twin; the room above is asked by its name, when it is needed."""
        write: Any = importlib.import_module("sfumato.report").write_report
        written: tuple[Path, Path] = write(self, Path(path), public=public, overwrite=overwrite)
        return written


def compare(
    case: Case,
    steps: Sequence[Step],
    run: Run,
    *,
    ranked_by: Measure,
    target: Target | None = None,
    demands: Sequence[Demand] = (),
    repeats: int = 5,
    points: int = 0,
    notes: Sequence[str] = (),
) -> Study:
    """Bring every step to the target level, score it there in fresh runs, and rank.

    With ``demands`` instead of a ``target`` every step is taken at its weakest setting that meets all of
    them. The runs that are scored are other runs than those the search looked at: a parameter chosen because
    it did well on some draws would look better on these than it is. A method that refuses the data is shown
    as refused; only when all do, that is an error.
    """
    comparison = _Comparison(case, target, tuple(demands), ranked_by, repeats)
    faults = [fault for step in steps for fault in step.faults(case.table.schema)]
    if faults or not steps:
        raise PlanError.gather("the comparison", faults or ["it must name at least one method, got: none"])
    outcomes: list[Outcome] = []
    refusals: list[SfumatoError] = []
    for step in run.track("methods compared", steps, total=len(steps)):
        try:
            outcomes.append(comparison.brought(step, run))
        except CANNOT as error:
            refusals.append(error)
            level = Level(step, "", math.nan, math.nan, Reached.REFUSED, reason=error.message)
            outcomes.append(Outcome(level))
    if len(refusals) == len(steps):
        raise refusals[0]
    able = [outcome.step for outcome in outcomes if outcome.level.reached is not Reached.REFUSED]
    return Study(
        original=case.table,
        target=comparison.target,
        ranked_by=ranked_by,
        outcomes=_in_order(outcomes, ranked_by),
        points=comparison.mapped(able, run, points) if points else (),
        repeats=repeats,
        scenario=case.scenario,
        demands=comparison.demands,
        notes=tuple(notes),
    )


class _Comparison:
    """What all methods are brought to and ranked by.

    Of several demands the first on what the ranking is weighed against is shown as the target.
    """

    def __init__(
        self,
        case: Case,
        target: Target | None,
        demands: tuple[Demand, ...],
        ranked_by: Measure,
        repeats: int,
    ) -> None:
        if (target is None) == (not demands):
            raise ParameterError("a comparison must have a level or requirements, got: both or neither")
        shown = min(demands, key=lambda each: each.measure.aspect == ranked_by.aspect, default=None)
        self.target = target or Target(shown.measure, shown.requirement.level)  # type: ignore[union-attr]
        if self.target.measure.aspect == ranked_by.aspect:
            raise ParameterError(
                f"a comparison must hold a risk and rank by a utility, or the reverse, got: two measures of "
                f"{ranked_by.aspect}"
            )
        if repeats < 1:
            raise ParameterError(f"`repeats` must be at least 1, got: `{repeats}`")
        self.case, self.demands, self.ranked_by, self.repeats = case, demands, ranked_by, repeats
        self.labelled = labelled(demands)
        measure = self.target.measure
        self.measures = {label: each.measure for label, each in self.labelled} or {str(measure): measure}
        self.held = next(label for label, each in self.measures.items() if each == measure)
        self.against = replace(case, scenario=shown.scenario) if shown else case  # who the held risk is from

    def brought(self, step: Step, run: Run) -> Outcome:
        """Bring a step to the target, or to meet the demands, and look at it in fresh runs.

        A setting that met the requirements in the search but not in every fresh run was found by luck: it is
        looked for again over twice as many runs, which only a stronger one survives.
        """
        searching = self.repeats
        while True:
            level = self._searched(step, run, searching)
            outcome = self._fresh(level, run, range(searching, searching + self.repeats))
            if not outcome.remark or searching >= _MOST_SEARCHING * self.repeats:
                return outcome
            searching *= 2

    def _searched(self, step: Step, run: Run, repeats: int) -> Level:
        if not self.demands:
            return reach(step, self.case, self.target, run, repeats=min(repeats, 3))
        found = weakest(step, self.case, self.demands, run, repeats=repeats)
        if not any(each.runs for each in found.tried):
            raise RefusedError(found.reason)
        return Level(
            step=found.step,
            parameter=found.parameter or "",
            value=math.nan if found.value is None else found.value,
            score=found.scores[self.held].mean if self.held in found.scores else math.nan,
            reached=Reached.MET if found.met else Reached.UNREACHABLE,
            tried={
                each.value: each.scores[self.held].mean
                for each in found.tried
                if each.value is not None and self.held in each.scores
            },
            reason=found.reason,
        )

    def _fresh(self, level: Level, run: Run, turns: range) -> Outcome:
        """Score a step at its level in runs that the search has not seen."""
        if level.reached is Reached.UNREACHABLE:
            return Outcome(level)
        asked = self.demands or [self.target.measure]
        held, ranked, example = list[Mapping[str, Score]](), list[Score](), None
        run.tell("scoring", 0, len(turns), level.step.method.title)
        for found in repeated(Recipe((level.step,)), self.case, asked, run, turns):
            # Asked apart: a measure that ranks may be held as well, against another intruder.
            ranked += evaluate(found.release, self.case, [self.ranked_by], run.silent()).scores.values()
            held.append(found.scores)
            example = example or found.release
            for label, measure in self.measures.items():
                usable(measure, found.scores[label])
            usable(self.ranked_by, ranked[-1])
            run.tell("scoring", len(held), len(turns), level.step.method.title)
        spreads = spreads_of(held)
        return Outcome(
            level,
            held=spreads[self.held],
            ranked=spread_of(ranked),
            scores={label: spreads[label] for label, _ in self.labelled},
            kept=sum(map(self._kept, held)) if self.demands else None,
            example=example,
        )

    def _kept(self, scores: Mapping[str, Score]) -> bool:
        return all(demand.requirement.met_by(scores[label]) for label, demand in self.labelled)

    def mapped(self, steps: Sequence[Step], run: Run, points: int) -> tuple[Point, ...]:
        """The risk–utility map of the methods that have one: a drive, and both measures over its range."""
        both = (self.target.measure, self.ranked_by)
        risk, utility = both if self.target.measure.aspect == "risk" else both[::-1]
        found: list[Point] = []
        for step in steps:
            try:
                found += frontier([step], self.against, risk, utility, run, points=points)
            except CANNOT:  # it has no drive, or fails at an end of its range: it is ranked, but has no line
                continue
        return mark_front(found, risk, utility)


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
