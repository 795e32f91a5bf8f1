"""A study: bring every method to the same level, or to the same requirements, and rank them."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from sfumato.core import registry
from sfumato.core.evidence import PersonSampling
from sfumato.core.measure import Measure, Score, Status
from sfumato.core.release import Release
from sfumato.core.run import Run, Stopwatch
from sfumato.core.sample_equivalent import SampleEquivalent
from sfumato.data.notebook import Tabular, as_html
from sfumato.data.persons import persons_of
from sfumato.data.scenario import Scenario
from sfumato.data.table import Table
from sfumato.errors import (
    ParameterError,
    PlanError,
    RefusedError,
    SfumatoError,
    UnjudgedError,
    UnreachableError,
    quoted,
)
from sfumato.recipes.demand import Demand, label_demands
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.study.cost import sample_tables
from sfumato.study.evaluate import (
    EXPECTED_ERRORS,
    Evaluation,
    EvaluationCase,
    evaluate,
    evaluate_replicates,
    spread_of,
    spreads_of,
    usable,
)
from sfumato.study.frontier import Point, frontier, mark_front
from sfumato.study.level import LevelResult, LevelStatus, Target, reach
from sfumato.study.replicate_mean import ReplicateMean
from sfumato.study.requirements import weakest
from sfumato.study.sample_equivalent import ESTIMATED, STUDY_SECONDS, SampleEquivalents

#: How many times as many runs the search for a setting may take, when fresh ones miss what was asked for.
_MOST_SEARCHING = 4

#: Of more records the slow ones among the risks beside a ranking are estimated from a sample of as many.
_EXACT_UP_TO = 2000

#: Of more persons than are usually drawn for them, as many are looked for in risks beside a ranking.
_PERSONS_DRAWN = 5000

#: A winner that leaves more people unique is not without a word.
_MOST_UNIQUE = 0.5


@dataclass(frozen=True)
class MethodAtLevel:
    """One method at the level: its parameter, and the measures over fresh runs.

    Where several requirements are asked for, ``scores`` has each of them by its label, and ``n_runs_meeting``
    says in how many of the fresh runs all were met. One that is ``why_not_ranked`` is measured but not
    ranked: its fresh runs are not where the others are. ``other_risks`` are risks of one release that nobody
    held. ``ranked_range`` are the best and the worst that the ranking measure gives within the tolerance;
    ``tied_with`` are the places of those that are neither better nor worse. ``like_sample`` is the random
    sample of the original that is as good by the measure of utility.
    """

    level: LevelResult
    held: ReplicateMean | None = None  # the measure held equal, or the first requirement's
    ranked: ReplicateMean | None = None  # the measure the ranking is by
    rank: int | None = None
    ranked_range: tuple[float, float] | None = None
    tied_with: tuple[int, ...] = ()
    scores: Mapping[str, ReplicateMean] = field(default_factory=dict)
    n_runs_meeting: int | None = None
    why_not_ranked: str = ""
    other_risks: Mapping[str, Score] = field(default_factory=dict, repr=False, compare=False)
    example: Release | None = field(default=None, repr=False, compare=False)
    like_sample: SampleEquivalent | None = None

    @property
    def step(self) -> Step:
        """The step at the level."""
        return self.level.step

    @property
    def remark(self) -> str:
        """What must be known of the requirements beside their numbers."""
        if self.n_runs_meeting is None or self.ranked is None or self.n_runs_meeting == self.ranked.runs:
            return ""
        return f"the requirements were met in {self.n_runs_meeting} of {self.ranked.runs} fresh runs"

    @property
    def remarks(self) -> tuple[str, ...]:
        """What must be known beside the numbers: where it lies, and what the search did to a guarantee."""
        return tuple(filter(None, (self.why_not_ranked or self.remark, self.step.caution)))

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
            "ranked_range": sorted(self.ranked_range) if self.ranked_range else None,
            "like_sample": self.like_sample.to_dict() if self.like_sample else None,
            "tied_with": list(self.tied_with),
            "scores": {label: spread.to_dict() for label, spread in self.scores.items()},
            "runs_met": self.n_runs_meeting,
            "apart": self.why_not_ranked,
            "caution": self.step.caution,
            "beside": {name: other_risk_dict(score) for name, score in self.other_risks.items()},
            "tried": [[value, score] for value, score in self.level.tried.items()],
        }


@dataclass(frozen=True, repr=False)
class Study(Tabular):
    """Methods compared at one level, or under the same requirements (``target`` is then one of them)."""

    original: Table
    target: Target
    ranked_by: Measure
    outcomes: tuple[MethodAtLevel, ...]
    points: tuple[Point, ...] = ()
    repeats: int = 1
    scenario: Scenario = field(default_factory=Scenario)
    demands: tuple[Demand, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def winner(self) -> MethodAtLevel | None:
        """The best method that reached the level."""
        return next((outcome for outcome in self.outcomes if outcome.rank == 1), None)

    @property
    def unranked_methods(self) -> tuple[MethodAtLevel, ...]:
        """The methods that are not ranked: they cannot be brought to the level, or lie apart from it."""
        return tuple(outcome for outcome in self.outcomes if outcome.rank is None)

    @property
    def inapplicable(self) -> dict[LevelStatus, tuple[MethodAtLevel, ...]]:
        """The methods that refuse the data, and those whose results no measure here can judge."""
        kinds = (LevelStatus.REFUSED, LevelStatus.UNJUDGED)
        return {kind: tuple(o for o in self.outcomes if o.level.reached is kind) for kind in kinds}

    @property
    def headline(self) -> str:
        """How many of the methods are ranked."""
        ranked, total = sum(o.rank is not None for o in self.outcomes), len(self.outcomes)
        return f"{ranked} of {total} methods ranked" if total > 1 else "1 method"

    @property
    def caution(self) -> str:
        """What must be said of a winner that protects few; empty if nothing must."""
        winner = self.winner
        unique = winner.other_risks.get("uniqueness") if winner else None
        if unique is None or not unique.value > _MOST_UNIQUE:
            return ""
        asked = "What was required" if self.demands else self.target.measure.title
        sentence = f"After this method {unique.value:.0%} of the people are still unique on the keys."
        return f"{sentence} {asked} does not measure that."

    @property
    def aim(self) -> str:
        """What the methods are brought to, in words: a level of a measure, or all the requirements."""
        if not self.demands:
            return f"{self.target.measure.title} {self.target.value:g}"
        several = len({demand.scenario for demand in self.demands}) > 1
        return " and ".join(f"{d} ({d.scenario.name})" if several else str(d) for d in self.demands)

    @property
    def axes(self) -> tuple[Measure, Measure]:
        """The risk and the utility of the map, whichever of the two is held."""
        return axes_of(self.target.measure, self.ranked_by)

    def line(self, outcome: MethodAtLevel) -> tuple[Point, ...]:
        """The points of the map that are one method's, on the same columns with the same other settings."""
        name, own = outcome.step.method.name, outcome.step.with_drive
        found = (p for p in self.points if p.method == name)
        return tuple(p for p in found if p.step is None or p.step == own(p.value))

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
        numbers = ("held", "ranked", "ranked_low", "ranked_high")
        return pl.DataFrame(
            [
                {
                    "rank": each.rank,
                    "method": each.step.method.name,
                    "parameter": each.level.setting,
                    "held": each.held.mean if each.held else None,
                    "ranked": each.ranked.mean if each.ranked else None,
                    "ranked_low": min(each.ranked_range) if each.ranked_range else None,
                    "ranked_high": max(each.ranked_range) if each.ranked_range else None,
                    "like_sample": each.like_sample.words if each.like_sample else None,
                    "remark": "; ".join(filter(None, (self._why_or_remark(each), each.step.caution))),
                }
                for each in self.outcomes
            ],
            schema_overrides={
                "rank": pl.Int64,
                "like_sample": pl.String,
                **dict.fromkeys(numbers, pl.Float64),
            },
        )

    def __repr__(self) -> str:  # no cells: it may stand in a traceback
        best = f", {self.winner.step.method} first" if self.winner else ""
        return f"Study({self._head}; {self.headline}{best})"

    def _repr_html_(self) -> str:
        return as_html([f"{self._head}; {self.headline}", *self.notes], self.to_frame())

    def _why_or_remark(self, outcome: MethodAtLevel) -> str:
        """Why a method is not ranked, or what must be known of one that is."""
        if outcome.rank is None and not outcome.why_not_ranked:
            return outcome.level.sentence(self.target)
        return outcome.why_not_ranked or outcome.remark

    @property
    def _head(self) -> str:
        return f"{len(self.original)} records, {self.aim}; ranked by {self.ranked_by.title}"

    def report(self, path: str | Path, *, public: bool = False, overwrite: bool = False) -> tuple[Path, Path]:
        """Write the report and its JSON twin; the room above is asked by its name, when it is needed."""
        write: Any = importlib.import_module("sfumato.report").write_report
        written: tuple[Path, Path] = write(self, Path(path), public=public, overwrite=overwrite)
        return written


def compare(
    case: EvaluationCase,
    steps: Sequence[Step],
    run: Run,
    *,
    ranked_by: Measure,
    target: Target | None = None,
    demands: Sequence[Demand] = (),
    repeats: int = 5,
    points: int = 0,
    sample_equivalent: bool | None = False,
    notes: Sequence[str] = (),
) -> Study:
    """Bring every step to the target level, score it there in fresh runs, and rank.

    With ``demands`` instead of a ``target`` every step is taken at its weakest setting that meets all of
    them. The runs that are scored are other runs than those the search looked at: a parameter chosen because
    it did well on some draws would look better on these than it is. A method that refuses the data is shown
    as refused; only when all do, that is an error. With ``sample_equivalent`` each method has the random
    sample that is as good; None looks for it where that takes no longer than comparing.
    """
    watch = Stopwatch()
    comparison = _MethodComparison(case, target, tuple(demands), ranked_by, repeats)
    faults = [fault for step in steps for fault in step.faults(case.table.schema)]
    if faults or not steps:
        raise PlanError.gather("the comparison", faults or ["it must name at least one method, got: none"])
    outcomes: list[MethodAtLevel] = []
    refusals: list[SfumatoError] = []
    settled = run.spread(comparison.settle, steps)
    for outcome, error in run.track("methods compared", settled, total=len(steps)):
        outcomes.append(outcome)
        refusals += [error] if error else []
        run.progress.found({**outcome.to_dict(), "axes": comparison.axes})
    if len(refusals) == len(steps):
        raise refusals[0]
    if sample_equivalent is not False:
        seconds = math.inf if sample_equivalent else max(watch.seconds, STUDY_SECONDS)
        outcomes = comparison.liken(outcomes, SampleEquivalents(case, run, seconds))
    out = (LevelStatus.REFUSED, LevelStatus.UNJUDGED)
    able = [outcome.step for outcome in outcomes if outcome.level.reached not in out]
    return Study(
        original=case.table,
        target=comparison.target,
        ranked_by=ranked_by,
        outcomes=rank_outcomes(outcomes, ranked_by),
        points=comparison.risk_utility_map(able, run, points) if points else (),
        repeats=repeats,
        scenario=case.scenario,
        demands=comparison.demands,
        notes=(*notes, *comparison.unmeasured_columns()),
    )


class _MethodComparison:
    """What all methods are brought to and ranked by.

    Of several demands the first on what the ranking is weighed against is shown as the target.
    """

    def __init__(
        self,
        case: EvaluationCase,
        target: Target | None,
        demands: tuple[Demand, ...],
        ranked_by: Measure,
        repeats: int,
    ) -> None:
        if (target is None) == (not demands):
            raise ParameterError("a comparison needs either a level or requirements, got: both or neither")
        weighed = [each for each in demands if each.requirement.can_fail]
        if demands and not weighed:
            got = "; ".join(dict.fromkeys(each.requirement.vacuity for each in demands))
            raise ParameterError(f"a comparison needs a requirement that can fail, got: {got}")
        shown = min(weighed, key=lambda each: each.measure.aspect == ranked_by.aspect, default=None)
        self.target = target or Target(shown.measure, shown.requirement.level)  # type: ignore[union-attr]
        if self.target.measure.aspect == ranked_by.aspect:
            got = f"two measures of {ranked_by.aspect}"
            raise ParameterError(
                f"a comparison fixes a risk and ranks by a utility, or the reverse, got: {got}"
            )
        if repeats < 1:
            raise ParameterError(f"`repeats` must be at least 1, got: `{repeats}`")
        self.case, self.demands, self.ranked_by, self.repeats = case, demands, ranked_by, repeats
        self.labelled = label_demands(demands)
        measure = self.target.measure
        self.measures = {label: each.measure for label, each in self.labelled} or {str(measure): measure}
        self.held = next(label for label, each in self.measures.items() if each == measure)
        self.against = replace(case, scenario=shown.scenario) if shown else case  # who the held risk is from

    @property
    def axes(self) -> list[str]:
        """The risk and the utility of the map by their names, for who is told of what is settled."""
        return [str(measure) for measure in axes_of(self.target.measure, self.ranked_by)]

    def settle(self, step: Step, run: Run) -> tuple[MethodAtLevel, SfumatoError | None]:
        """Bring a step to the target; of one that cannot be, why."""
        try:
            return self.bring_to_target(step, run), None
        except EXPECTED_ERRORS as error:
            how = LevelStatus.UNJUDGED if isinstance(error, UnjudgedError) else LevelStatus.REFUSED
            level = LevelResult(step, "", math.nan, math.nan, how, reason=error.message)
            return MethodAtLevel(level), error

    def bring_to_target(self, step: Step, run: Run) -> MethodAtLevel:
        """Bring a step to the target, or to meet the demands, and look at it in fresh runs.

        Fresh runs decide. A setting that met the requirements, or the level, in the search but not in them
        was found by luck: it is looked for again over twice as many runs. What still misses it lies apart.
        """
        searching = self.repeats
        while True:
            level = self._search_level(step, run, searching)
            outcome = self._fresh(level, run, range(searching, searching + self.repeats))
            apart = self._why_not_ranked(outcome)
            if not apart or not step.method.randomness.stochastic or level.reached is LevelStatus.BETTER:
                break
            if searching >= _MOST_SEARCHING * self.repeats:
                break
            searching *= 2
        risks = self._unlevelled_risks(outcome.example, run)
        return replace(outcome, why_not_ranked=apart, other_risks=risks)

    def _why_not_ranked(self, outcome: MethodAtLevel) -> str:
        """Why an outcome cannot be ranked with the others, in a few words; empty if it can."""
        if outcome.held is None or outcome.remark:
            return outcome.remark
        if self.demands or not self.target.missed_by(outcome.held):
            return ""
        always = "always " if outcome.level.reached is LevelStatus.BETTER else ""
        return f"{always}{self.target.side_of(outcome.held.mean)} than the level"

    def _unlevelled_risks(self, release: Release | None, run: Run) -> dict[str, Score]:
        """Risks of a release that nobody held; of large tables the slow ones in a sample."""
        if release is None:
            return {}
        quiet, found = run.silent(), dict[str, Score]()
        for measure in registry.measures_for("comparison"):
            case, shown = self.against, release
            slow = math.isfinite(measure.scales.exact_up_to) and not measure.scales.persons_drawn
            large = slow and len(case.table) > _EXACT_UP_TO
            if large and not release.plain:  # records apart from their buckets cannot be sampled
                continue
            if 0 < measure.scales.persons_drawn < len(case.table):
                case = replace(case, sampling=PersonSampling(_PERSONS_DRAWN))
            if large:
                original, part = sample_tables(case.table, release, _EXACT_UP_TO)
                case, shown = replace(case, table=original), part or release
            score = evaluate(shown, case, [measure], quiet).scores[str(measure)]
            reason = f"on a sample of {len(case.table):,} records, which overestimates the risk"
            found[measure.name] = replace(score, status=Status.APPROXIMATE, reason=reason) if large else score
        return found

    def unmeasured_columns(self) -> list[str]:
        """Which of the columns that an intruder knows a measure does not look at, in words."""
        asked = [(each.measure, each.scenario) for each in self.demands]
        sentences = {}
        for measure, scenario in asked or [(self.target.measure, self.case.scenario)]:
            evidence = self.case.evidence(Release.unchanged(self.case.table), scenario)
            blind = [name for name in evidence.known_columns if name not in measure.columns(evidence)]
            if measure.aspect == "risk" and blind:
                sentences[f"{measure.name} does not measure {quoted(blind)}, which the intruder knows"] = True
        return list(sentences)

    def _search_level(self, step: Step, run: Run, repeats: int) -> LevelResult:
        if not self.demands:
            first = repeats == self.repeats
            repeats = min(repeats, 3) if first else repeats
            return reach(step, self.case, self.target, run, repeats=repeats, allow_sampling=first)
        found = weakest(step, self.case, self.demands, run, repeats=repeats)
        tried = [each for each in found.tried if each.runs]
        if not tried:
            raise RefusedError(found.reason)
        if any(all(label not in each.scores for each in tried) for label, _ in self.labelled):
            raise UnjudgedError(found.reason)
        return LevelResult(
            step=found.step,
            parameter=found.parameter or "",
            value=math.nan if found.value is None else found.value,
            score=found.scores[self.held].mean if self.held in found.scores else math.nan,
            reached=LevelStatus.MET if found.met else LevelStatus.UNREACHABLE,
            tried={
                each.value: each.scores[self.held].mean
                for each in found.tried
                if each.value is not None and self.held in each.scores
            },
            reason=found.reason,
        )

    def _fresh(self, level: LevelResult, run: Run, turns: range) -> MethodAtLevel:
        """Score a step at its level in runs that the search has not seen."""
        if level.reached is LevelStatus.UNREACHABLE:
            return MethodAtLevel(level)
        asked = self.demands or [self.target.measure]
        held, ranked, example = list[Mapping[str, Score]](), list[Score](), None
        run.tell("scoring", 0, len(turns), level.step.method.title)
        for found in self._fresh_releases(Recipe((level.step,)), asked, run, turns):
            # Asked apart: a measure that ranks may be held as well, against another intruder.
            ranked += evaluate(found.release, self.case, [self.ranked_by], run.silent()).scores.values()
            held.append(found.numbers)
            example = example or found.release
            del found  # before the next release is made
            for label, measure in self.measures.items():
                usable(measure, held[-1][label])
            usable(self.ranked_by, ranked[-1])
            run.tell("scoring", len(held), len(turns), level.step.method.title)
        spreads, over = spreads_of(held), spread_of(ranked)
        outcome = MethodAtLevel(
            level,
            held=spreads[self.held],
            ranked=over,
            scores={label: spreads[label] for label, _ in self.labelled},
            n_runs_meeting=sum(map(self._meets_demands, held)) if self.demands else None,
            example=example,
        )
        if over is None or self._why_not_ranked(outcome):
            return outcome
        ends = self._range(level, over.mean, ranked[0].value, run, turns[0])
        return replace(outcome, ranked_range=ends)

    def _fresh_releases(
        self, recipe: Recipe, asked: Sequence[Measure] | Sequence[Demand], run: Run, turns: range
    ) -> Iterator[Evaluation]:
        """Fresh runs of a recipe; of many persons each run looks for another part, in all for everybody."""
        case, measure, once = self.case, self.target.measure, len(turns) == 1 or not recipe.stochastic
        if self.demands or once or not case.may_draw_persons(measure):
            yield from evaluate_replicates(recipe, case, asked, run, turns)
            return
        size = math.ceil((int(persons_of(case.table).max()) + 1) / len(turns))
        for part, turn in enumerate(turns):
            here = case.with_some_persons(size, part, plain=False)
            yield from evaluate_replicates(recipe, here, asked, run, [turn])

    def _range(
        self, level: LevelResult, mean: float, first: float, run: Run, turn: int
    ) -> tuple[float, float]:
        """The best and the worst of the ranking measure over the tolerance: at the level and its edges.

        At an edge one run is made, with the chance of the first run at the level, which gave ``first``: what
        differs between the two is the setting's.
        """
        seen = [mean]
        for step in level.edges:
            (found,) = evaluate_replicates(Recipe((step,)), self.case, [self.ranked_by], run, [turn])
            seen.append(mean + usable(self.ranked_by, *found.scores.values()) - first)
        ends = min(seen), max(seen)
        return ends if self.ranked_by.better == "low" else ends[::-1]

    def _meets_demands(self, scores: Mapping[str, Score]) -> bool:
        return all(demand.requirement.met_by(scores[label]) for label, demand in self.labelled)

    def liken(self, outcomes: Sequence[MethodAtLevel], likes: SampleEquivalents) -> list[MethodAtLevel]:
        """The outcomes with the random sample that each is as good as, by the measure of utility."""
        return [replace(each, like_sample=self._like_sample(each, likes)) for each in outcomes]

    def _like_sample(self, outcome: MethodAtLevel, likes: SampleEquivalents) -> SampleEquivalent | None:
        """The sample that scores as the fresh runs do in the mean, as readers have them."""
        _, utility = axes_of(self.target.measure, self.ranked_by)
        mean = outcome.ranked if utility == self.ranked_by else outcome.held
        if mean is None or outcome.example is None:
            return None
        if mean.approximate and math.isfinite(likes.seconds):
            return SampleEquivalent.missing(ESTIMATED)
        own = evaluate(outcome.example, self.case, [utility], likes.run.silent()).scores[str(utility)]
        return likes.of(utility, outcome.example, shift=mean.mean - own.value)

    def risk_utility_map(self, steps: Sequence[Step], run: Run, points: int) -> tuple[Point, ...]:
        """The risk–utility map of the methods that have one: a drive, and both measures over its range."""
        risk, utility = axes_of(self.target.measure, self.ranked_by)
        found: list[Point] = []
        for line in filter(None, run.spread(partial(self._line, points), steps)):
            found += line
            run.progress.found({"line": [point.to_dict() for point in line], "axes": self.axes})
        return mark_front(found, risk, utility)

    def _line(self, points: int, step: Step, run: Run) -> tuple[Point, ...]:
        """Where a method lies over the range of its drive; nowhere without one, or failing at an end."""
        try:
            return frontier(
                [step], self.against, *axes_of(self.target.measure, self.ranked_by), run, points=points
            )
        except EXPECTED_ERRORS:
            return ()


def axes_of(held: Measure, ranked_by: Measure) -> tuple[Measure, Measure]:
    """The risk and the utility of two measures of which one is held and one ranks."""
    return (held, ranked_by) if held.aspect == "risk" else (ranked_by, held)


def rank_outcomes(outcomes: Sequence[MethodAtLevel], measure: Measure) -> tuple[MethodAtLevel, ...]:
    """Best first; then without a rank those that lie apart from the level, and those that never reach it.

    Before a method rank those that are better than it, and no others: who are tied with all alike share one.
    """
    sign = 1 if measure.better == "low" else -1
    measured = sorted((o for o in outcomes if o.ranked), key=lambda o: sign * o.ranked.mean)  # type: ignore[union-attr]
    reached = [outcome for outcome in measured if not outcome.why_not_ranked]
    ranks = [1 + sum(_beats(other, outcome, measure) for other in reached) for outcome in reached]
    order = sorted(range(len(reached)), key=ranks.__getitem__)
    reached, ranks = [reached[place] for place in order], [ranks[place] for place in order]
    pairs = enumerate(zip(reached, ranks, strict=True))
    placed = [
        replace(o, rank=rank, tied_with=_tied_with(place, reached, measure)) for place, (o, rank) in pairs
    ]
    apart = [outcome for outcome in measured if outcome.why_not_ranked]
    return (*placed, *apart, *(outcome for outcome in outcomes if not outcome.ranked))


def _tied_with(place: int, outcomes: Sequence[MethodAtLevel], measure: Measure) -> tuple[int, ...]:
    """The places of the outcomes that are neither better nor worse than that in a place."""
    own, others = outcomes[place], [(at, each) for at, each in enumerate(outcomes) if at != place]
    return tuple(at for at, o in others if not _beats(own, o, measure) and not _beats(o, own, measure))


def _beats(first: MethodAtLevel, second: MethodAtLevel, measure: Measure) -> bool:
    """Whether one is better than another wherever both are within the tolerance, by more than chance."""
    if first.ranked is None or second.ranked is None:
        return False
    worst = replace(first.ranked, mean=first.ranked_range[1] if first.ranked_range else first.ranked.mean)
    best = replace(second.ranked, mean=second.ranked_range[0] if second.ranked_range else second.ranked.mean)
    return measure.is_better(worst.mean, best.mean) and worst.differs_from(best)


def fold(reached: LevelStatus, names: Sequence[str]) -> str:
    """Name the methods that are not even measured, in one line."""
    verb = ("does" if len(names) == 1 else "do") + " not apply to these data"
    verb = "cannot be judged by the measures given" if reached is LevelStatus.UNJUDGED else verb
    return f"{len(names)} {verb}: {', '.join(names)}"


def other_risk_dict(score: Score) -> dict[str, Any]:
    """A risk that stands beside the ranking, as a dictionary for JSON."""
    value = score.value if math.isfinite(score.value) else None
    return {"value": value, "status": score.status.value, "reason": score.reason}


def require_reachable(study: Study) -> None:
    """Raise when no method, of those compared, can be brought to the level, and none is better than it."""
    target, measure = study.target, study.target.measure
    better = any(measure.is_better(o.held.mean, target.value) for o in study.outcomes if o.held)
    if study.winner is None and (study.demands or not better):
        hint = "; ".join(f"{o.step.method.name}: {o.level.sentence(target)}" for o in study.unranked_methods)
        what = f"meet {study.aim}" if study.demands else f"reach {measure.name} {target.value:g}"
        raise UnreachableError(f"no method can {what}", hint=hint)
