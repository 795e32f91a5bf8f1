"""The tuner: search recipes that meet all requirements and lose least, then confirm the best on fresh runs.

1. The data as they are set the scale: how far each requirement is missed without protection.
2. Each method alone, at the weakest setting that does: no recipe is recommended that such a one beats.
3. Batches of recipes of several steps, proposed by Optuna and near the best found so far. Large data: what
   loses clearly too much on a subsample is not tried on the full data.
4. The best few are run again on chance that the search never saw; only what meets everything there counts.

Batches have a fixed size and are told in order, and chance is keyed by place: neither the number of workers
nor an interruption changes anything.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from typing import Any, Final

from sfumato.core.run import Run
from sfumato.errors import ParameterError
from sfumato.recipes.recipe import Recipe, Step
from sfumato.study.evaluate import Case
from sfumato.study.requirements import weakest
from sfumato.tuning.candidate import (
    FAILURES,
    Candidate,
    Judge,
    Result,
    Shortfall,
    in_order,
    why_failed,
)
from sfumato.tuning.ledger import Ledger
from sfumato.tuning.proposals import Proposals
from sfumato.tuning.pruning import Pruning
from sfumato.tuning.search_space import Point, SearchSpace

#: Recipes proposed together. It is part of what a search means, so it does not depend on the workers.
BATCH: Final = 8

#: The most of the budget that single methods may take, so that there is a search at all.
SHARE_OF_SINGLES: Final = 2 / 3

#: Candidates that are run on fresh chance at most, and that must pass before the best of them is taken.
_MOST_CONFIRMATIONS: Final = 12
_ENOUGH_CONFIRMED: Final = 3

AS_IT_IS, SINGLE, SEARCHED, NUDGED = "as it is", "single method", "search", "nudged"


@dataclass(frozen=True)
class Budget:
    """How much a search may do: recipes tried, runs of each, fresh runs at the end, workers, minutes."""

    trials: int = 60
    repeats: int = 3
    confirmations: int = 5
    workers: int = 1
    minutes: float | None = None

    def __post_init__(self) -> None:
        for name in ("trials", "repeats", "confirmations", "workers"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ParameterError(f"`{name}` must be a whole number from 1, got: `{value}`")
        if self.minutes is not None and not self.minutes > 0:
            raise ParameterError(f"`minutes` must be a number above 0, got: `{self.minutes}`")


@dataclass(frozen=True)
class Found:
    """What a search found, before anyone puts it into words."""

    candidates: tuple[Candidate, ...]
    confirmed: tuple[tuple[Candidate, Result], ...]
    failed: tuple[tuple[Candidate, Result], ...]
    unreachable: Mapping[str, str] = field(default_factory=dict)
    skipped: tuple[str, ...] = ()
    stopped_early: str = ""
    subsample: int = 0
    replayed: int = 0


@dataclass
class Tuner:
    """One search; ``search`` carries it out."""

    case: Case
    judge: Judge
    space: SearchSpace
    run: Run
    budget: Budget
    ledger: Ledger

    def __post_init__(self) -> None:
        self.run = self.run.at("tuner")
        self.quiet = self.run.silent()
        self.started = time.monotonic()
        self.pruning = Pruning(self.case, self.judge, self.quiet)
        self.candidates: list[Candidate] = []
        self.unreachable: dict[str, str] = {}
        self.skipped: list[str] = []
        self.stopped_early = ""
        self.task = ("unprotected data", 0, 1)

    def search(self) -> Found:
        """Search, then confirm."""
        unprotected = self._work("unprotected", [Recipe()], self._evaluator("search", 1))[0]
        self.shortfall = Shortfall(self.judge.demands, unprotected)
        as_it_is = self._candidate(Recipe(), AS_IT_IS, unprotected)
        self.candidates.append(as_it_is)
        if not as_it_is.feasible:
            here = self.run.at(self.case.table.digest)
            proposals = Proposals(self.space, here, utilities=len(self.judge.utilities))
            self._try_proposals(self._try_singles(proposals), proposals)
        confirmed, failed = self._confirm()
        return Found(
            candidates=tuple(self.candidates),
            confirmed=tuple(confirmed),
            failed=tuple(failed),
            unreachable=self.unreachable,
            skipped=tuple(self.skipped),
            stopped_early=self.stopped_early,
            subsample=self.pruning.records,
            replayed=self.ledger.replayed,
        )

    # -------------------------------------------------------------------------------------- the three stages

    def _try_singles(self, proposals: Proposals) -> int:
        """Bring each method alone to its weakest setting that does; say of the others why they cannot."""
        steps = self.space.singles()
        room = max(1, int(self.budget.trials * SHARE_OF_SINGLES))
        done = 0
        for start in range(0, min(room, len(steps)), BATCH):
            if self._out_of_time(done):
                break
            self._now("single methods", done, min(room, len(steps)))
            batch = steps[start : min(start + BATCH, room)]
            found = self._work(
                f"weakest of {self.budget.repeats}", [Recipe((step,)) for step in batch], self._weakest
            )
            ended = []
            for step, said in zip(batch, found, strict=True):
                if not said["met"]:
                    self.unreachable[name_of(step, steps)] = said["reason"]
                if "parameters" in said:  # where it ended: at what does, or at the nearest miss
                    method = type(step.method).from_dict(said["parameters"])
                    ended.append((replace(step, method=method), said["met"]))
            self._try_alone(ended, proposals)
            done += len(batch)
        self.skipped += [name_of(step, steps) for step in steps[done:]]
        self.run.tell("single methods", done, done)
        return done

    def _try_alone(self, ended: Sequence[tuple[Step, bool]], proposals: Proposals) -> None:
        """Try steps alone; where the search finds one that did too weak, also what lies beside it."""
        steps = [step for step, _ in ended]
        points = [self.space.point_of(step) for step in steps]
        tried = self._tried([Recipe((step,)) for step in steps], SINGLE, points)
        for (_, met), candidate in zip(ended, tried, strict=True):
            proposals.learn(candidate)
            if met and not candidate.feasible:
                self._nudge(candidate)

    def _try_proposals(self, done: int, proposals: Proposals) -> None:
        """Try batches of proposals until the budget is spent."""
        while done < self.budget.trials and not self._out_of_time(done):
            self._now("recipes tried", done, self.budget.trials)
            trials = proposals.ask(min(BATCH, self.budget.trials - done), in_order(self.candidates))
            points = [dict(trial.params) for trial in trials]
            recipes = [self.space.recipe(point) for point in points]
            for trial, candidate in zip(trials, self._tried(recipes, SEARCHED, points), strict=True):
                proposals.tell(trial, candidate)
            done += len(trials)
        self.run.tell("recipes tried", done, max(done, self.budget.trials))

    def _confirm(self) -> tuple[list[tuple[Candidate, Result]], list[tuple[Candidate, Result]]]:
        """Run the best again on fresh chance until enough of them pass, the best single method among them."""
        passed: list[tuple[Candidate, Result]] = []
        failed: list[tuple[Candidate, Result]] = []
        looked: set[str] = set()
        while len(looked) < _MOST_CONFIRMATIONS:
            self._now("confirming", len(looked), 0)
            waiting = [each for each in in_order(self.candidates) if each.recipe.digest not in looked]
            batch = waiting[: _ENOUGH_CONFIRMED - len(passed)]
            if len(passed) >= _ENOUGH_CONFIRMED and not any(_alone(each) for each, _ in passed):
                batch = [each for each in waiting if _alone(each)][:1]
            if not batch:
                break
            looked |= {each.recipe.digest for each in batch}
            stage = f"confirmation of {self.budget.confirmations}"
            work = self._evaluator("confirmation", self.budget.confirmations)
            results = self._work(stage, [each.recipe for each in batch], work)
            for candidate, result in zip(batch, results, strict=True):
                met = max(self.shortfall(result)) <= 0 and self.judge.losses(result) is not None
                (passed if met else failed).append((candidate, result))
                if not met:
                    self._nudge(candidate)
        self.run.tell("confirming", len(looked), len(looked), f"{len(passed)} confirmed")
        return passed, failed

    def _nudge(self, failed: Candidate) -> None:
        """Try what lies beside a candidate that was too weak; what is weaker still is set aside."""
        points = [] if failed.point is None else list(self.space.nudges(failed.point))
        before = len(self.candidates)
        self._tried([self.space.recipe(point) for point in points], NUDGED, points)
        self.candidates[before:] = [
            replace(each, set_aside=each.shortfall >= failed.shortfall) for each in self.candidates[before:]
        ]

    # ------------------------------------------------------------------------------------------- the work

    def _tried(
        self, recipes: Sequence[Recipe], origin: str, points: Sequence[Point | None]
    ) -> list[Candidate]:
        """Try recipes, on the subsample first where there is one, and remember them as candidates."""
        small = self._work("subsample", recipes, self.pruning.evaluate) if self.pruning.records else []
        worse = [origin == SEARCHED and self.pruning.clearly_worse(result) for result in small]
        full = [r for place, r in enumerate(recipes) if not small or not worse[place]]
        results = iter(self._work(f"search of {self.budget.repeats}", full, self._evaluator("search")))
        made = []
        for place, recipe in enumerate(recipes):
            if small and worse[place]:
                result = replace(small[place], runs=())
                candidate = replace(self._candidate(recipe, origin, result, points[place]), pruned=True)
            else:
                candidate = self._candidate(recipe, origin, next(results), points[place])
            made.append(candidate)
        # Only now, so that what is pruned does not depend on places within a batch.
        self.candidates += made
        for place, candidate in enumerate(made):
            if small:
                self.pruning.learn(small[place], candidate)
        self.pruning.best = in_order(self.candidates)
        return made

    def _candidate(
        self, recipe: Recipe, origin: str, result: Result, point: Point | None = None
    ) -> Candidate:
        return Candidate(
            recipe, origin, result, self.judge.losses(result), self.shortfall(result), point=point
        )

    def _evaluator(self, place: str, replicates: int | None = None) -> Callable[[Recipe], Result]:
        run, count = self.quiet.at(place), replicates or self.budget.repeats
        return lambda recipe: self.judge.evaluate(recipe, self.case, run, replicates=count)

    def _weakest(self, recipe: Recipe) -> dict[str, Any]:
        """Find where a method alone begins to do, or why it never does."""
        (step,) = recipe.steps
        run = self.quiet.at("weakest")
        try:
            found = weakest(step, self.case, self.judge.demands, run, repeats=self.budget.repeats)
        except FAILURES as error:
            return {"met": False, "reason": why_failed(error)}
        return {"met": found.met, "reason": found.reason, "parameters": found.step.method.to_dict()}

    def _work(self, stage: str, recipes: Sequence[Recipe], work: Callable[[Recipe], Any]) -> list[Any]:
        """Do a piece of work for each recipe, or take it from the ledger; results in their order."""
        missing = {
            recipe.digest: recipe for recipe in recipes if self.ledger.get(stage, recipe.digest) is None
        }
        for recipe, result in self._done(list(missing.values()), work):
            said = result.to_dict() if isinstance(result, Result) else result
            self.ledger.keep(stage, recipe.digest, recipe.to_list(), said)
        known = [self.ledger.get(stage, recipe.digest) for recipe in recipes]
        return [Result.from_dict(said) if "runs" in said else said for said in known]

    def _done(self, recipes: list[Recipe], work: Callable[[Recipe], Any]) -> Iterator[tuple[Recipe, Any]]:
        """Yield each recipe with its result as soon as it is there."""
        if self.budget.workers == 1 or len(recipes) == 1:
            for recipe in recipes:
                self._tell_of(recipe)
                yield recipe, work(recipe)
            return
        pool = ThreadPoolExecutor(self.budget.workers, thread_name_prefix="sfumato-tuner")
        try:
            futures: dict[Future[Any], Recipe] = {pool.submit(work, recipe): recipe for recipe in recipes}
            for future in as_completed(futures):
                yield futures[future], future.result()
                self._tell_of(futures[future])
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _now(self, task: str, done: int, total: int) -> None:
        """Say how far it has come; until it is said again, each recipe is told of as a note to it."""
        self.task = (task, done, total)
        self.run.tell(task, done, total)

    def _tell_of(self, recipe: Recipe) -> None:
        self.run.tell(*self.task, note=" + ".join(step.method.name for step in recipe.steps))

    def _out_of_time(self, done: int) -> bool:
        limit = self.budget.minutes
        if limit is None or time.monotonic() - self.started <= 60 * limit:
            return False
        self.stopped_early = (
            f"stopped after {limit:g} minutes with {done} of {self.budget.trials} trials; on another machine "
            "the result may be another"
        )
        return True


def _alone(candidate: Candidate) -> bool:
    return len(candidate.recipe.steps) == 1


def name_of(step: Step, among: Sequence[Step]) -> str:
    """The word for a step: its method, with the columns where the method stands there more than once."""
    several = sum(other.method.name == step.method.name for other in among) > 1
    return f"{step.method.name} on {', '.join(step.columns)}" if several else step.method.name
