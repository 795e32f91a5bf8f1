"""A candidate of a search: a recipe, what it scored, and how far it misses what is demanded."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

import numpy as np

from sfumato.core.measure import Measure, Score, Status
from sfumato.core.run import Run
from sfumato.errors import Cancelled, SfumatoError
from sfumato.recipes.demand import Demand, label_demands
from sfumato.recipes.recipe import Recipe
from sfumato.study.evaluate import NUMERIC_STATUSES, EvaluationCase, evaluate, evaluate_replicates, spread_of
from sfumato.study.frontier import is_dominated_at
from sfumato.study.replicate_mean import ReplicateMean
from sfumato.study.requirements import weakest
from sfumato.tuning.search_space import Point

#: The shortfall of a demand whose measure gives no certain number: twice as bad as unprotected data.
UNKNOWN: Final = 2.0

#: The most room to spare that counts; an infinite one would leave nothing to compare.
_ROOM: Final = 1000.0

#: What a recipe may fail with without ending the search.
FAILURES: Final = (SfumatoError, ArithmeticError, np.linalg.LinAlgError)


@dataclass(frozen=True)
class RunScores:
    """The scores of one run: one for each demand, one for each measure of utility (none: not measured)."""

    demands: tuple[Score, ...]
    utilities: tuple[Score, ...]

    def to_list(self) -> list[list[list[Any]]]:
        """Say it as the ledger does."""
        return [[_plain(score) for score in scores] for scores in (self.demands, self.utilities)]

    @classmethod
    def from_list(cls, payload: Sequence[Sequence[Sequence[Any]]]) -> Self:
        """Read what the ledger says."""
        demands, utilities = (tuple(_score(each) for each in scores) for scores in payload)
        return cls(demands, utilities)


def _plain(score: Score) -> list[Any]:
    value = float(score.value)
    known = score.interval_is_proved or score.confidence is not None
    payload = [value if math.isfinite(value) else str(value), score.status.value, score.reason]
    sure = None if score.interval_is_proved else score.confidence
    return [*payload, score.interval if known else None, score.bound, sure]


def _score(payload: Sequence[Any]) -> Score:
    # Some ledgers say less.
    value, status, reason, known, bound, confidence = (*payload, None, None, None)[:6]
    interval = None if known is None else (float(known[0]), float(known[1]))
    proved = interval is not None and confidence is None
    return Score(float(value), Status(status), interval, proved, bound, reason=reason, confidence=confidence)


@dataclass(frozen=True)
class RecipeResult:
    """What came of following a recipe several times; ``refused`` says why it could not be followed."""

    runs: tuple[RunScores, ...] = ()
    refused: str = ""

    @property
    def with_utilities(self) -> tuple[RunScores, ...]:
        """The runs whose utilities were measured."""
        return tuple(run for run in self.runs if run.utilities)

    def to_dict(self) -> dict[str, Any]:
        """Say it as the ledger does."""
        return {"runs": [run.to_list() for run in self.runs], "refused": self.refused}

    @classmethod
    def from_dict(cls, payload: Mapping[str, Any]) -> Self:
        """Read what the ledger says."""
        return cls(tuple(RunScores.from_list(run) for run in payload["runs"]), payload["refused"])


@dataclass(frozen=True)
class RecipeJudge:
    """Judges recipes: by demands that must be met, and by measures of utility to lose least by."""

    demands: tuple[Demand, ...]
    utilities: tuple[Measure, ...]

    def __post_init__(self) -> None:
        label_demands(self.demands)  # raises before any work if they cannot be told apart

    def evaluate(
        self, recipe: Recipe, case: EvaluationCase, run: Run, *, replicates: int | Sequence[int]
    ) -> RecipeResult:
        """Follow a recipe with the chance of each replicate, and score what comes of it."""
        runs = []
        turns = range(replicates) if isinstance(replicates, int) else replicates
        try:
            for found in evaluate_replicates(recipe, case, self.demands, run, turns):
                lost = evaluate(found.release, case, self.utilities, run.silent()).scores
                demands = tuple(_bare(found.scores[label]) for label, _ in label_demands(self.demands))
                runs.append(RunScores(demands, tuple(_bare(lost[str(each)]) for each in self.utilities)))
                del found, lost  # before the next release is made
        except FAILURES as error:
            return RecipeResult(refused=why_failed(error))
        return RecipeResult(tuple(runs))

    def quick(self) -> RecipeJudge:
        """The judge of a search: the same demands, and utilities of the same order that cost little."""
        return replace(self, utilities=tuple(each.quick() for each in self.utilities))

    def losses(self, result: RecipeResult) -> tuple[float, ...] | None:
        """The mean loss by each measure of utility, smaller being better; None if one has no number."""
        runs = result.with_utilities
        if not runs or any(each.status not in NUMERIC_STATUSES for run in runs for each in run.utilities):
            return None
        means = tuple(
            float(np.mean([loss_of(measure, run.utilities[place].value) for run in runs]))
            for place, measure in enumerate(self.utilities)
        )
        return means if all(map(math.isfinite, means)) else None

    def spreads(
        self, result: RecipeResult
    ) -> tuple[tuple[ReplicateMean, ...], tuple[ReplicateMean | None, ...]]:
        """Each utility, and each demand whose measure gave numbers, over the runs."""
        measured, demanded = result.with_utilities, range(len(self.demands))
        utilities = [spread_of([run.utilities[i] for run in measured]) for i in range(len(self.utilities))]
        demands = [spread_of([run.demands[i] for run in result.runs]) for i in demanded]
        return tuple(each for each in utilities if each is not None), tuple(demands)

    def candidate(
        self, recipe: Recipe, origin: str, result: RecipeResult, shortfall: Shortfall | None = None
    ) -> Candidate:
        """A recipe that was tried: what it loses, and by how much it misses the demands."""
        short = shortfall or Shortfall(self.demands, RecipeResult())
        return Candidate(recipe, origin, result, self.losses(result), short(result))

    def confirmed(self, recipe: Recipe, result: RecipeResult) -> ConfirmedCandidate:
        """A recipe that met everything in fresh runs."""
        return ConfirmedCandidate(recipe, *self.spreads(result), result)

    def weakest(self, recipe: Recipe, case: EvaluationCase, run: Run, **how: Any) -> dict[str, Any]:
        """Where a method alone begins to do, or why it never does, as the ledger says it."""
        (step,) = recipe.steps
        try:
            found = weakest(step, case, self.demands, run, **how)
        except FAILURES as error:
            return {"met": False, "reason": why_failed(error)}
        ended = {"parameters": found.step.method.to_dict(), "value": found.value, "mild": found.mild}
        return {"met": found.met, "reason": found.reason, **ended}

    def required_scores(self, word: str, payload: Sequence[Any]) -> list[dict[str, Any]]:
        """Each demand, and under a word what is known of it."""
        return [
            {"requirement": str(demand.requirement), "scenario": demand.scenario.name, word: each}
            for demand, each in zip(self.demands, payload, strict=True)
        ]

    def missed_demands(self, result: RecipeResult) -> list[str]:
        """What is not met in some run, in words, with the worst run of each demand."""
        if result.refused:
            return [result.refused]
        found = []
        for place, demand in enumerate(self.demands):
            scores = [run.demands[place] for run in result.runs]
            failing = [score for score in scores if not demand.requirement.met_by(score)]
            if failing:
                worst = max(failing, key=lambda score: _excess_over_level(demand, score))
                verdict = demand.requirement.verdict(worst).removeprefix("not met: ")
                times = f" in {len(failing)} of {len(scores)} runs" if len(failing) < len(scores) else ""
                found.append(verdict + times)
        return found


@dataclass(frozen=True)
class ConfirmedCandidate:
    """A candidate that met everything in fresh runs, and what these runs say of it."""

    recipe: Recipe
    utilities: tuple[ReplicateMean, ...]
    demands: tuple[ReplicateMean | None, ...]
    result: RecipeResult = field(repr=False)

    def to_dict(self, judge: RecipeJudge) -> dict[str, Any]:
        """As a dictionary for JSON."""
        utilities = zip(judge.utilities, self.utilities, strict=True)
        scores = [each.to_dict() if each else None for each in self.demands]
        return {
            "steps": self.recipe.to_list(),
            "utility": {str(measure): each.to_dict() for measure, each in utilities},
            "requirements": judge.required_scores("score", scores),
        }


def _bare(score: Score) -> Score:
    """The score without what is known by record or column: a search keeps thousands of them."""
    return _score(_plain(score))


def why_failed(error: Exception) -> str:
    """Say why a recipe could not be followed or scored; a search that is stopped stops here."""
    if isinstance(error, Cancelled):
        raise error
    # The text of an error that is not raised on purpose may quote cells.
    return error.message if isinstance(error, SfumatoError) else f"it failed with {type(error).__name__}"


def loss_of(measure: Measure, value: float) -> float:
    """What a value of a utility loses, counted from its best possible value where it has one."""
    low, high = measure.bounds
    if measure.better == "low":
        return value - low if math.isfinite(low) else value
    return high - value if math.isfinite(high) else -value


def _excess_over_level(demand: Demand, score: Score) -> float:
    """By how much a score lies on the wrong side of the level; infinitely if it has no certain value."""
    worst = demand.requirement.worst(score)
    if math.isnan(worst):
        return math.inf
    gap = worst - demand.requirement.level
    return gap if demand.requirement.sign.startswith("<") else -gap


class Shortfall:
    """How far scores miss the demands: 1 as far as unprotected data, 0 just met, below 0 room to spare."""

    def __init__(self, demands: Sequence[Demand], unprotected: RecipeResult) -> None:
        self.demands = tuple(demands)
        self.scales = [
            self._scale(demand, unprotected.runs[0].demands[place] if unprotected.runs else None)
            for place, demand in enumerate(demands)
        ]

    @staticmethod
    def _scale(demand: Demand, score: Score | None) -> float:
        gap = _excess_over_level(demand, score) if score is not None else math.inf
        if 0 < gap < math.inf:
            return gap
        return abs(demand.requirement.level) or 1.0

    def __call__(self, result: RecipeResult) -> tuple[float, ...]:
        """The shortfall of each demand in its worst run; above 0 exactly where it is not met."""
        if not result.runs:
            return (UNKNOWN,) * len(self.demands)
        return tuple(
            max(self._one(demand, run.demands[place], self.scales[place]) for run in result.runs)
            for place, demand in enumerate(self.demands)
        )

    @staticmethod
    def _one(demand: Demand, score: Score, scale: float) -> float:
        short = min(max(_excess_over_level(demand, score) / scale, -_ROOM), UNKNOWN)
        if demand.requirement.met_by(score):
            return min(short, 0.0)
        return max(short, 1e-9)  # a strict comparison is missed at the level itself


@dataclass(frozen=True)
class Candidate:
    """A recipe that was tried, where it came from, and how it did on the runs of the search.

    ``pruned`` was tried on the subsample only; ``set_aside`` lies beside one that failed and is no safer.
    """

    recipe: Recipe
    origin: str
    result: RecipeResult
    losses: tuple[float, ...] | None
    shortfalls: tuple[float, ...]
    pruned: bool = False
    set_aside: bool = False
    point: Point | None = field(default=None, repr=False, compare=False)

    @property
    def feasible(self) -> bool:
        """Whether every run met every demand, and every utility has a number."""
        if self.pruned or self.set_aside or self.losses is None:
            return False
        return max(self.shortfalls, default=0.0) <= 0

    @property
    def is_judged(self) -> bool:
        """Whether the full data told what it loses and what it misses."""
        return not self.pruned and self.losses is not None and bool(self.result.runs)

    @property
    def shortfall(self) -> float:
        """The largest of its shortfalls."""
        return max(self.shortfalls, default=0.0)


def in_order(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The feasible candidates, least loss first; of equals the one with fewer steps, then with more room.

    Several utilities count alike, each on the scale from the best to the worst feasible candidate.
    """
    feasible = list({each.recipe.digest: each for each in candidates if each.feasible}.values())
    if not feasible:
        return []
    losses = np.array([each.losses for each in feasible], dtype=np.float64)
    best, worst = losses.min(axis=0), losses.max(axis=0)
    scaled = ((losses - best) / np.where(worst > best, worst - best, 1.0)).sum(axis=1)
    keys = [
        (float(score), len(each.recipe.steps), each.shortfall, each.recipe.digest)
        for score, each in zip(scaled, feasible, strict=True)
    ]
    return [feasible[place] for place in sorted(range(len(feasible)), key=keys.__getitem__)]


def on_front(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The judged candidates that no other beats: less loss by some utility, or less risk, without losing."""
    judged = list({each.recipe.digest: each for each in candidates if each.is_judged}.values())
    costs = np.array([(*(each.losses or ()), each.shortfall) for each in judged], dtype=np.float64)
    front = [each for place, each in enumerate(judged) if not is_dominated_at(costs, place)]
    return sorted(front, key=lambda each: (each.losses or (), each.shortfall, each.recipe.digest))
