"""The work of a search: recipes tried in the time there is, by several workers, or read in the ledger."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, TypeAlias

from sfumato.core.run import Run
from sfumato.errors import Cancelled, ParameterError
from sfumato.recipes.recipe import Recipe
from sfumato.study.evaluate import EvaluationCase
from sfumato.tuning.candidate import Candidate, RecipeJudge, RecipeResult, Shortfall, in_order
from sfumato.tuning.ledger import Ledger
from sfumato.tuning.pruning import Pruning
from sfumato.tuning.search_space import Point, SearchSpace
from sfumato.tuning.time_budget import TimeBudget, fitting

#: Of the time that is left one method may take this share, and is not awaited beyond the other.
_TIME_SHARE: Final = 1 / 4
MAX_TIME_SHARE: Final = 1 / 3

#: A piece of work on a recipe.
RecipeWork: TypeAlias = Callable[[Recipe, Run], Any]

#: What is said of work for which there was no time.
NO_TIME: Final = "there was no time for it"

#: Where a candidate comes from.
UNPROTECTED, SINGLE, SEARCHED, NEIGHBOUR = "as it is", "single method", "search", "nudged"


@dataclass(frozen=True)
class SearchBudget:
    """How much a search may do: recipes tried, runs of each, fresh runs at the end, workers, minutes."""

    trials: int = 60
    repeats: int = 3
    confirmations: int = 5
    workers: int = 1
    minutes: float | None = 5.0

    def __post_init__(self) -> None:
        for name in ("trials", "repeats", "confirmations", "workers"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ParameterError(f"`{name}` must be a whole number from 1, got: `{value}`")
        if self.minutes is not None and not self.minutes > 0:
            raise ParameterError(f"`minutes` must be a number above 0, got: `{self.minutes}`")


@dataclass
class TrialRunner:
    """What a search has at hand: its trials and its time, what is known already, and whom it tells."""

    case: EvaluationCase
    judge: RecipeJudge
    space: SearchSpace
    run: Run
    budget: SearchBudget
    ledger: Ledger
    watch: TimeBudget = field(default_factory=TimeBudget)

    def __post_init__(self) -> None:
        self.run = self.run.at("tuner")
        self.quiet = self.run.silent()
        self.final, self.judge = self.judge, self.judge.quick()
        self.pruning = Pruning(self.case, self.judge, self.quiet)
        self.candidates: list[Candidate] = []
        self.unreachable: dict[str, str] = {}
        self.skipped: list[str] = []
        self.sampled_only: list[str] = []
        self.near: dict[str, tuple[float, float]] = {}
        self.did: set[str] = set()
        self.time_share = 1.0
        self.planned = ""
        self.timeouts: list[str] = []
        self.shortfall = Shortfall(self.judge.demands, RecipeResult())
        self.longest = 0.0
        self.trial_seconds: list[float] = []
        self.task = ("unprotected data", 0, 1)

    def __getstate__(self) -> dict[str, Any]:
        """What of a search its trials need, wherever they are done."""
        names = ("case", "judge", "budget", "watch", "pruning", "candidates", "near", "time_share")
        return {name: self.__dict__[name] for name in names}

    def _try_recipes(
        self, recipes: Sequence[Recipe], origin: str, points: Sequence[Point | None]
    ) -> list[Candidate]:
        """Try recipes, on the subsample first where there is one, and remember them as candidates."""
        small = self._work("subsample", recipes, self._on_part) if self.pruning.records else []
        small = [RecipeResult(refused=NO_TIME) if result is None else result for result in small]
        worse = [origin == SEARCHED and self.pruning.clearly_worse(result) for result in small]
        full = [r for place, r in enumerate(recipes) if not small or not worse[place]]
        results = iter(self._work(f"search of {self.budget.repeats}", full, self._evaluator("search")))
        made = []
        for place, recipe in enumerate(recipes):
            pruned = bool(small) and worse[place]
            result = replace(small[place], runs=()) if pruned else next(results)
            result = result or RecipeResult(refused=NO_TIME)
            candidate = self.judge.candidate(recipe, origin, result, self.shortfall)
            made.append(replace(candidate, pruned=pruned, point=points[place]))
        # Only now, so that what is pruned does not depend on places within a batch.
        self.candidates += [each for each in made if each.result.refused != NO_TIME]
        for place, candidate in enumerate(made):
            if small:
                self.pruning.learn(small[place], candidate)
        self.pruning.best = in_order(self.candidates)
        return made

    def _evaluator(
        self, place: str, replicates: int | Sequence[int] | None = None, judge: RecipeJudge | None = None
    ) -> RecipeWork:
        return partial(self._evaluate, place, replicates or self.budget.repeats, judge or self.judge)

    def _evaluate(
        self, place: str, replicates: int | Sequence[int], judge: RecipeJudge, recipe: Recipe, run: Run
    ) -> RecipeResult:
        limited = self.watch.limit_run(run.at(place), self.time_share)
        return judge.evaluate(recipe, self.case, limited, replicates=replicates)

    def _on_part(self, recipe: Recipe, run: Run) -> RecipeResult:
        return self.pruning.evaluate(recipe, self.watch.limit_run(run))

    def _on_sample(self, recipe: Recipe, run: Run) -> dict[str, Any]:
        """Find where a method alone begins to do on the sample, and what it loses there."""
        # What promises most comes first, and may take more of the time.
        run = self.watch.limit_run(run.at("sample"), MAX_TIME_SHARE)
        payload = self._weakest_on(self.pruning.case, recipe, run, 1)
        if "parameters" in payload:
            (step,) = recipe.steps
            step = replace(step, method=type(step.method).from_dict(payload["parameters"]))
            result = self.judge.evaluate(Recipe((step,)), self.pruning.case, run, replicates=1)
            payload["result"] = result.to_dict()
        return payload

    def _weakest(self, recipe: Recipe, run: Run) -> dict[str, Any]:
        """Find where a method alone begins to do, or why it never does."""
        run = self.watch.limit_run(run.at("weakest"), MAX_TIME_SHARE)
        return self._weakest_on(self.case, recipe, run, self.budget.repeats)

    def _weakest_on(self, case: EvaluationCase, recipe: Recipe, run: Run, repeats: int) -> dict[str, Any]:
        near, hurry = (
            self.near.get(recipe.digest),
            self.watch.hurry(_TIME_SHARE),
        )  # then the best so far will do
        return self.judge.weakest(recipe, case, run, repeats=repeats, near=near, hurry=hurry)

    def _work(self, stage: str, recipes: Sequence[Recipe], work: RecipeWork) -> list[Any]:
        """Do a piece of work for each recipe, or take it from the ledger; results in their order.

        None stands for work for which there was no time; nobody keeps it.
        """
        missing = {each.digest: each for each in recipes if self.ledger.get(stage, each.digest) is None}
        for recipe, result in self._results_of(stage, list(missing.values()), work):
            if result is not None:
                payload = result.to_dict() if isinstance(result, RecipeResult) else result
                self.ledger.keep(stage, recipe.digest, recipe.to_list(), payload)
        known = [self.ledger.get(stage, recipe.digest) for recipe in recipes]
        return [
            RecipeResult.from_dict(each) if each is not None and "runs" in each else each for each in known
        ]

    def _records_of(self, stage: str) -> int:
        return self.pruning.records if "sample" in stage else len(self.case.table)

    def _measure_time(
        self, stage: str, work: RecipeWork, recipe: Recipe, run: Run
    ) -> tuple[Any, float] | None:
        """What the work came to (None: not in time), and its seconds; None if there is no time to begin."""
        if not self.watch.may_begin(recipe, self._records_of(stage), self.time_share):
            return None
        began = self.watch.now()
        try:
            done = work(recipe, run)
        except Cancelled:
            done = None
        run.check()  # somebody has stopped it: what was settled for in a hurry is not kept
        return done, self.watch.now() - began

    def _learn_from(self, stage: str, recipe: Recipe, timed: tuple[Any, float] | None) -> Any:
        """What the work came to; how long it took is remembered."""
        if timed is None:
            return None
        done, self.longest = timed
        if stage.startswith("search"):
            self.trial_seconds.append(self.longest)
        runs = len(done.runs) if isinstance(done, RecipeResult) else 0
        if runs or done is None:
            self.watch.note(recipe, self._records_of(stage), self.longest / max(runs, 1))
        if stage.startswith("confirmation") and recipe.stochastic and 0 < runs < self.budget.confirmations:
            self._note_timeout(f"{runs} of {self.budget.confirmations} fresh runs")
        return done

    def _results_of(
        self, stage: str, recipes: list[Recipe], work: RecipeWork
    ) -> Iterator[tuple[Recipe, Any]]:
        """Yield each recipe with its result as soon as it is there."""
        timed = partial(self._measure_time, stage, work)
        if self.quiet.engine.n_workers:
            for recipe, found in zip(recipes, self.quiet.spread(timed, recipes), strict=True):
                yield recipe, self._learn_from(stage, recipe, found)
                self._tell_of(recipe)
            return

        def do(recipe: Recipe) -> Any:
            return self._learn_from(stage, recipe, timed(recipe, self.quiet))

        if self.budget.workers == 1 or len(recipes) == 1:
            for recipe in recipes:
                self._tell_of(recipe)
                yield recipe, do(recipe)
            return
        pool = ThreadPoolExecutor(self.budget.workers, thread_name_prefix="sfumato-tuner")
        try:
            futures: dict[Future[Any], Recipe] = {pool.submit(do, recipe): recipe for recipe in recipes}
            for future in as_completed(futures):
                yield futures[future], future.result()
                self._tell_of(futures[future])
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _now(self, task: str, done: int, total: int) -> None:
        """Say how far it has come; until it is said again, each recipe is told of as a note to it."""
        self.task = (task, done, total)
        self.run.tell(task, done, total, self._best())

    def _tell_of(self, recipe: Recipe) -> None:
        name = " + ".join(step.method.name for step in recipe.steps)
        self.run.tell(*self.task, note="; ".join(filter(None, (name, self._best()))))

    def _best(self) -> str:
        """The best so far, in a few words."""
        first = next(iter(in_order(self.candidates)), None)
        if first is None or not first.losses:
            return ""
        names = " + ".join(step.method.name for step in first.recipe.steps) or "the data as they are"
        return f"best so far: {names}, {self.judge.utilities[0].name} {first.losses[0]:.4g}"

    def _fitting(self, most: int) -> int:
        """How many trials surely fit into the time, up to so many."""
        seconds = statistics.median(self.trial_seconds) if self.trial_seconds else 0.0
        left = self.watch.seconds_left
        return most if left >= most * seconds else fitting(left, seconds)

    def _out_of_time(self, done: int) -> bool:
        if self.watch.seconds_left > 0:
            return False
        self._note_timeout(f"{done} of {self.budget.trials} trials")
        return True

    def _note_timeout(self, with_what: str) -> None:
        """Remember that the time ended something, and what there is of it."""
        self.timeouts += [with_what] if with_what not in self.timeouts else []

    @property
    def stopped_early(self) -> str:
        """What the time limit left undone, and what to do about it; empty if nothing."""
        if not self.timeouts:
            return ""
        done, later = " and ".join(self.timeouts), "with more, or on another machine, the result may differ"
        return f"stopped after {self.budget.minutes:.3g} minutes with {done}; {later}"
