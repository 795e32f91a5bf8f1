"""The search: find recipes that meet all requirements and lose least, then confirm the best on fresh runs.

1. The data as they are set the scale: how far each requirement is missed without protection.
2. Each method alone, what promises most first, at the weakest setting that does. From some records on this is
   done on a sample of the persons, and only the best go on with everybody, from where they ended there.
3. Batches of recipes of several steps, proposed by Optuna and near the best found so far. Large data: what
   loses clearly too much on the sample is not tried on the full data.
4. The best few are run again on chance that the search never saw; only what meets everything there counts.
5. Until here losses are counted by what is quick; those few are measured by what was asked for.

Each stage has its share of the time. What would not end in it is not begun, or stopped: a limit may change
what is found. Without one, batches have a fixed size and are told in order, and chance is keyed by place:
neither the number of workers nor an interruption changes anything.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from sfumato.core.run import Run
from sfumato.errors import Cancelled
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.tuning.candidate import Candidate, RecipeJudge, RecipeResult, RunScores, Shortfall, in_order
from sfumato.tuning.proposals import Proposals
from sfumato.tuning.time_budget import CONFIRMING, ENDING, LATE, SAMPLING, SEARCHING
from sfumato.tuning.trial_runner import (
    MAX_TIME_SHARE,
    NEIGHBOUR,
    NO_TIME,
    SEARCHED,
    SINGLE,
    UNPROTECTED,
    TrialRunner,
)

#: Recipes proposed together. It is part of what a search means, so it does not depend on the workers.
BATCH: Final = 8

#: The most of the budget that single methods may take, so that there is a search at all.
SHARE_OF_SINGLES: Final = 2 / 3

#: Of the methods alone, the share that goes on from the sample to everybody, and how many do at least.
_SURVIVING: Final = 1 / 3
_FEWEST_SURVIVORS: Final = 4

#: Candidates that are run on fresh chance at most, and that must pass before the best of them is taken.
_MOST_CONFIRMATIONS: Final = 12
_ENOUGH_CONFIRMED: Final = 3

#: Candidates that are run once on fresh chance though time is up, one after the other until one passes.
_CONFIRMED_LATE: Final = 4


@dataclass(frozen=True)
class SearchResult:
    """What a search found, before anyone puts it into words."""

    candidates: tuple[Candidate, ...]
    confirmed: tuple[tuple[Candidate, RecipeResult], ...]
    failed: tuple[tuple[Candidate, RecipeResult], ...]
    judge: RecipeJudge  # of what was confirmed: as asked, or by quick measures if there was no time
    searched_by: RecipeJudge
    unreachable: Mapping[str, str] = field(default_factory=dict)
    skipped: tuple[str, ...] = ()
    sampled_only: tuple[str, ...] = ()
    stopped_early: str = ""
    planned: str = ""
    subsample: int = 0
    replayed: int = 0


class Tuner(TrialRunner):
    """One search; ``search`` carries it out."""

    def search(self, known: Sequence[Recipe] = ()) -> SearchResult:
        """Search, then confirm, then measure by what was asked for; what is known is tried first."""
        self.watch.stage = SAMPLING
        unprotected = self._work("unprotected", [Recipe()], self._evaluator("search", 1))[0] or RecipeResult()
        self.shortfall = Shortfall(self.judge.demands, unprotected)
        as_it_is = self.judge.candidate(Recipe(), UNPROTECTED, unprotected, self.shortfall)
        self.candidates.append(as_it_is)
        if not as_it_is.feasible:
            here = self.run.at(self.case.table)
            proposals = Proposals(self.space, here, utilities=len(self.judge.utilities))
            self._try_known(known, proposals)
            self._try_proposals(self._try_singles(proposals), proposals)
        confirmed, failed = self._confirm()
        judge, confirmed = self._score_confirmed(confirmed)
        return SearchResult(
            candidates=tuple(self.candidates),
            confirmed=tuple(confirmed),
            failed=tuple(failed),
            judge=judge,
            searched_by=self.judge,
            unreachable=self.unreachable,
            skipped=tuple(self.skipped),
            sampled_only=tuple(self.sampled_only),
            stopped_early=self.stopped_early,
            planned=self.planned,
            subsample=self.pruning.records,
            replayed=self.ledger.replayed,
        )

    # -------------------------------------------------------------------------------------- the three stages

    def _try_known(self, known: Sequence[Recipe], proposals: Proposals) -> None:
        """Try what is known, however little time there is, and what lies beside it where that is too weak."""
        self.watch.stage = LATE
        points = [self.space.point_of(*each.steps) if len(each.steps) == 1 else None for each in known]
        tried = self._try_recipes(known, SINGLE, points)
        self.watch.stage = SAMPLING
        for each in tried:
            proposals.learn(each)
            if not each.feasible:
                self._nudge(each)

    def _try_singles(self, proposals: Proposals) -> int:
        """Bring each method alone to its weakest setting that does; say of the others why they cannot."""
        single = filter(_is_single_step, in_order(self.candidates))
        known = {_place_of(each.recipe.steps[0]) for each in single}
        everything = [step for step in self.space.singles() if _place_of(step) not in known]
        steps = self._survivors(everything) if self.pruning.records else everything
        self.watch.stage = SEARCHING
        if self.pruning.records:  # at once something that may do, before anything is made better
            self._try_on_full_data(steps, proposals)
        room = min(max(1, int(self.budget.trials * SHARE_OF_SINGLES)), len(steps))
        done = 0
        for start in range(0, room, BATCH):
            if self._out_of_time(done):
                break
            self._now("single methods", done, room)
            batch = steps[start : min(start + BATCH, room)]
            stage = f"weakest of {self.budget.repeats}"
            found = self._work(stage, [Recipe((step,)) for step in batch], self._weakest)
            ended = []
            for step, outcome in zip(batch, found, strict=True):
                if outcome is None:
                    self.skipped.append(name_of(step, everything))
                    continue
                if not outcome["met"]:
                    self.unreachable[name_of(step, everything)] = outcome["reason"]
                if "parameters" in outcome:  # where it ended: at what does, or at the nearest miss
                    method = type(step.method).from_dict(outcome["parameters"])
                    ended.append((replace(step, method=method), outcome["met"]))
            self._try_single_steps(ended, proposals)
            done += len(batch)
        self.skipped += [name_of(step, everything) for step in steps[done:]]
        self.run.tell("single methods", done, done, self._best())
        return done

    def _try_on_full_data(self, steps: Sequence[Step], proposals: Proposals) -> None:
        """Try with everybody what did on the sample: first the quickest, so that there is something at all.

        Then the others, none for long, unless nothing has done yet.
        """
        waiting = [step for step in steps if step.digest in self.did]
        recipes = {step.digest: Recipe((step,)) for step in waiting}
        self._now("single methods", 0, len(steps))
        self._work("subsample", list(recipes.values()), self._on_part)  # which tells how long they take
        waiting.sort(key=lambda step: self.watch.expected_seconds(recipes[step.digest], len(self.case.table)))
        self._try_single_steps([(step, True) for step in waiting[:1]], proposals)
        for self.time_share in (MAX_TIME_SHARE, 1.0):
            known = {each.recipe.digest for each in self.candidates}
            rest = [step for step in steps if step.digest in self.did - known]
            if self.time_share < 1 or not in_order(self.candidates):
                self._try_single_steps([(step, True) for step in rest], proposals)

    def _survivors(self, steps: Sequence[Step]) -> list[Step]:
        """Bring each method to its weakest setting on the sample; the best of them, at that setting.

        Where too few do there, the nearest go on as well: with everybody it is easier to be alike.
        """
        self._now("methods on a sample", 0, len(steps))
        found = self._work("weakest on the sample", [Recipe((step,)) for step in steps], self._on_sample)
        placed = []
        for place, (step, outcome) in enumerate(zip(steps, found, strict=True)):
            if outcome is None:
                self.skipped.append(name_of(step, steps))
            elif "parameters" not in outcome:
                self.unreachable[name_of(step, steps)] = outcome["reason"]
            else:
                result = RecipeResult.from_dict(outcome["result"])
                losses, short = self.judge.losses(result), max(self.shortfall(result))
                met = bool(outcome["met"] and losses)
                placed.append((not met, sum(losses or ()) if met else short, place, outcome))
        placed.sort(key=lambda each: each[:3])
        doing = sum(not each[0] for each in placed)
        n_survivors = min(doing, math.ceil(_SURVIVING * len(steps)))
        n_survivors = max(n_survivors, min(doing, _FEWEST_SURVIVORS)) if doing else _FEWEST_SURVIVORS
        self.sampled_only += [name_of(steps[place], steps) for _, _, place, _ in placed[n_survivors:]]
        return [self._resume_step(steps[place], outcome) for _, _, place, outcome in placed[:n_survivors]]

    def _resume_step(self, step: Step, payload: Mapping[str, Any]) -> Step:
        """The step where it ended on the sample, from which it goes on with everybody."""
        if not payload["met"]:
            return step
        step = replace(step, method=type(step.method).from_dict(payload["parameters"]))
        self.did.add(step.digest)
        if payload["value"] is not None and payload["mild"] is not None:
            self.near[step.digest] = (payload["value"], payload["mild"])
        return step

    def _try_single_steps(self, ended: Sequence[tuple[Step, bool]], proposals: Proposals) -> None:
        """Try steps alone; where the search finds one that did too weak, also what lies beside it."""
        steps = [step for step, _ in ended]
        points = [self.space.point_of(step) for step in steps]
        tried = self._try_recipes([Recipe((step,)) for step in steps], SINGLE, points)
        for (_, met), candidate in zip(ended, tried, strict=True):
            proposals.learn(candidate)
            if met and not candidate.feasible and candidate.result.refused != NO_TIME:
                self._nudge(candidate)

    def _try_proposals(self, done: int, proposals: Proposals) -> None:
        """Try batches of proposals until the budget is spent: as many as surely fit into the time."""
        most, late = done + self._fitting(self.budget.trials - done), 0
        while done < most and not self._out_of_time(done):
            self._now("recipes tried", done, most)
            trials = proposals.ask(min(BATCH, most - done), in_order(self.candidates))
            points = [dict(trial.params) for trial in trials]
            recipes = [self.space.recipe(point) for point in points]
            made = self._try_recipes(recipes, SEARCHED, points)
            for trial, candidate in zip(trials, made, strict=True):
                proposals.tell(trial, candidate)
            missed = sum(candidate.result.refused == NO_TIME for candidate in made)
            done, late = done + len(trials) - missed, late + missed
            if missed == len(trials):
                break
        if late:
            self._note_timeout(f"{done} of {self.budget.trials} trials")
        elif done == most < self.budget.trials:
            self.planned = f"{done} of {self.budget.trials} trials, as many as fit into its time"
        self.run.tell("recipes tried", done, max(done, most), self._best())

    def _confirm(self) -> tuple[list[tuple[Candidate, RecipeResult]], list[tuple[Candidate, RecipeResult]]]:
        """Run the best again on fresh chance until enough of them pass, the best single method among them."""
        passed: list[tuple[Candidate, RecipeResult]] = []
        failed: list[tuple[Candidate, RecipeResult]] = []
        looked: set[str] = set()
        late = 0
        while len(looked) < _MOST_CONFIRMATIONS and late < _CONFIRMED_LATE:
            self.watch.stage = CONFIRMING if passed else ENDING
            self._now("confirming", len(looked), 0)
            waiting = [each for each in in_order(self.candidates) if each.recipe.digest not in looked]
            batch = waiting[: _ENOUGH_CONFIRMED - len(passed)]
            if len(passed) >= _ENOUGH_CONFIRMED and not any(_is_single_step(each) for each, _ in passed):
                batch = [each for each in waiting if _is_single_step(each)][:1]
            if not batch or (passed and self.watch.seconds_left <= 0):
                break
            results = self._fresh_of(batch)
            if not passed and not any(results):  # one must pass, whatever it takes
                self.watch.stage, batch, late = LATE, batch[:1], late + 1
                results = self._fresh_of(batch)
            looked |= {each.recipe.digest for each in batch}
            for candidate, result in zip(batch, results, strict=True):
                if result is None:
                    continue
                met = max(self.shortfall(result)) <= 0 and self.judge.losses(result) is not None
                (passed if met else failed).append((candidate, result))
                if met:
                    settled = self.judge.confirmed(candidate.recipe, result)
                    self.run.progress.found(settled.to_dict(self.judge))
                else:
                    self._nudge(candidate)
        self.run.tell("confirming", len(looked), len(looked), f"{len(passed)} confirmed")
        return passed, failed

    def _fresh_of(self, batch: Sequence[Candidate]) -> list[RecipeResult | None]:
        recipes = [each.recipe for each in batch]
        return self._work(f"confirmation of {self.budget.confirmations}", recipes, self._fresh)

    def _fresh(self, recipe: Recipe, run: Run) -> RecipeResult:
        """Fresh runs of a recipe, as many as there is time for: at least one.

        What leaves nothing to chance would come out as it did in the search.
        """
        if not recipe.stochastic:
            known = [each.result for each in self.candidates if each.recipe.digest == recipe.digest]
            return next(result for result in known if result.runs)
        here, runs = run.at("confirmation"), list[RunScores]()
        for turn in range(1 if self.watch.stage == LATE else self.budget.confirmations):
            try:
                limited = self.watch.limit_run(here)
                result = self.judge.evaluate(recipe, self.case, limited, replicates=[turn])
            except Cancelled:
                run.check()  # somebody has stopped it
                if not runs:
                    raise
                break
            if result.refused:
                return result
            runs += result.runs
        return RecipeResult(tuple(runs))

    def _score_confirmed(
        self, passed: Sequence[tuple[Candidate, RecipeResult]]
    ) -> tuple[RecipeJudge, list[tuple[Candidate, RecipeResult]]]:
        """What was confirmed, by the utilities that were asked for; by the quick ones if there is no time.

        In turns, one run of each: so that all of them have a number before one has two.
        """
        if self.final == self.judge or not passed:
            return self.final, list(passed)
        self.watch.stage, self.time_share = ENDING, 0.75  # a transport is not stopped at once
        found: list[list[Any]] = [[] for _ in passed]
        judge = replace(self.final, demands=())
        for turn in range(max(len(result.runs) for _, result in passed)):
            self._now("measuring the best", turn, 0)
            for place, (candidate, result) in enumerate(passed):
                if turn < len(result.runs) and turn == len(found[place]) and self._may_measure(turn):
                    work = self._evaluator("confirmation", [turn], judge)
                    (score,) = self._work(f"utility of run {turn}", [candidate.recipe], work)
                    found[place] += [] if score is None or not score.runs else [score.runs[0].utilities]
        if not all(found):
            self._note_timeout("the loss of the best by quick measures only")
            return self.judge, list(passed)
        merged = []
        for (candidate, result), known in zip(passed, found, strict=True):
            lost = [*known, *([()] * (len(result.runs) - len(known)))]
            runs = tuple(replace(run, utilities=u) for run, u in zip(result.runs, lost, strict=True))
            merged.append((candidate, RecipeResult(runs)))
        return self.final, merged

    def _may_measure(self, turn: int) -> bool:
        """Whether one more run can be measured: as long as the longest so far is to be had."""
        return turn == 0 or self.longest <= self.watch.seconds_left

    def _nudge(self, failed: Candidate) -> None:
        """Try what lies beside a candidate that was too weak; what is weaker still is set aside."""
        points = [] if failed.point is None else list(self.space.nudges(failed.point))
        before = len(self.candidates)
        self._try_recipes([self.space.recipe(point) for point in points], NEIGHBOUR, points)
        self.candidates[before:] = [
            replace(each, set_aside=each.shortfall >= failed.shortfall) for each in self.candidates[before:]
        ]


def _is_single_step(candidate: Candidate) -> bool:
    return len(candidate.recipe.steps) == 1


def _place_of(step: Step) -> tuple[str, frozenset[str]]:
    return step.method.name, frozenset(step.columns)


def name_of(step: Step, among: Sequence[Step]) -> str:
    """The word for a step: its method, with the columns where the method stands there more than once."""
    several = sum(other.method.name == step.method.name for other in among) > 1
    return f"{step.method.name} on {', '.join(step.columns)}" if several else step.method.name
