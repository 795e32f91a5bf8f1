"""The ways to a release that meets what is required: what a search recommends, and what enforces it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from sfumato.core.run import Run
from sfumato.data.schema import UNIT_ROLES
from sfumato.data.table import Table
from sfumato.errors import Cancelled, MissingDependencyError, UnreachableError
from sfumato.recipes.parts import Output
from sfumato.recipes.plan import Plan
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.starter import safe_steps
from sfumato.recipes.step import Step
from sfumato.study.column_sentences import join_names
from sfumato.study.evaluate import After, EvaluationCase
from sfumato.study.requirements import weakest
from sfumato.tuning.candidate import FAILURES, Candidate, RecipeJudge, in_order
from sfumato.tuning.companions import Companions, followed_by, without_links
from sfumato.tuning.derive_space import MANY_FOR_PAIRS, Scope
from sfumato.tuning.time_budget import Shares, TimeBudget
from sfumato.tuning.trial_runner import SINGLE
from sfumato.tuning.tuning_result import TuningResult

#: What its owner can change where nothing meets what is required.
WHAT_HELPS = "what helps: more minutes or records, fewer keys (--drop), a profile that requires less"

#: Of the time that is left to them, the share after which a method is not set more finely.
_SETTING: Final = 2 / 3

#: Runs in which a method with chance must do.
_RUNS: Final = 3

#: How many of those that enforce it the search has to be better than.
_KNOWN: Final = 3

#: What the way out does to a release before it is judged, by the plan's output.
Finish = Callable[[Output], After]

#: Whether it is time to settle for what was found.
Hurry = Callable[[], bool]

#: Searches for better than what is known; None where there is no time for that.
Search = Callable[[Plan, Sequence[Recipe]], TuningResult | None]


@dataclass
class Fallbacks:
    """Finds the steps that enforce what is required, each at its weakest setting that does.

    They are ranked by what they lose to a quick look of the ``judge``. Until one does there is no limit;
    the others have their share of the time.
    """

    plan: Plan
    table: Table
    run: Run
    finish: Finish
    judge: RecipeJudge
    shares: Shares
    scope: Scope = field(default_factory=Scope)

    def __post_init__(self) -> None:
        randomness = self.run.randomness.of_data(self.table.digest)  # nothing of it leaves
        self.judge, self.run = self.judge.quick(), replace(self.run, randomness=randomness)
        self.found: list[Candidate] = []
        self.missed: dict[str, str] = {}  # by method, why it does not
        self.one_run = 0.0  # seconds of a run that was judged

    @cached_property
    def watch(self) -> TimeBudget:
        """What they may take, from when one was tried: what is loaded and compiled before does not count."""
        return self.shares.of_fallbacks()

    def plans(self) -> list[Plan]:
        """The plans that meet what is required, least loss first.

        Where none does while a number tells whose records belong together, that number is left out. Columns
        that would give keys back are protected along with them, and amounts that would join records are made
        less exact by a further step.
        """
        case = EvaluationCase(self.table, resources=self.run.resources)
        base, _ = without_links(case, self.plan.demands, self.plan)
        numbers = [n for n in self.table.schema.with_role(*UNIT_ROLES) if n not in base.output.drop]
        for drop in ((), numbers) if numbers else ((),):
            made = replace(base, output=replace(base.output, drop=(*base.output.drop, *drop)))
            self._try_all(made)
            if self.found:
                return [replace(made, recipe=each.recipe) for each in in_order(self.found)]
        return []

    def _try_all(self, plan: Plan) -> None:
        dropped = plan.output.drop
        left = self.table.schema.select([name for name in self.table.names if name not in dropped])
        companions = Companions.of(self.table, dropped, plan.demands)
        demands = [each.among(left) for each in plan.demands]
        steps = self._steps_to_try(safe_steps(left, demands, companions.keys))
        for place, step in enumerate(steps):
            self.run.tell("enforcing methods", place, len(steps), step.method.name)
            run = self.watch.limit_run(self.run) if self.found else self.run
            try:
                if not self.one_run:
                    self._judge(Recipe((step,)), plan, run)
                companions = self._try(plan, step, companions, run, self.watch.hurry(_SETTING))
            except Cancelled:
                self.run.check()  # somebody has stopped it
            except FAILURES:
                continue  # it may not be able to at all

    def _steps_to_try(self, steps: Sequence[Step]) -> list[Step]:
        """Those that take these data, of the methods that were named; all if none of these enforces it.

        Where only what is vetted may be used, no others.
        """
        able = [step for step in steps if self._fits(step)]
        wanted = [step for step in able if step.method.name in self.scope.classes()]
        return wanted if wanted or self.scope.only else able

    def _fits(self, step: Step) -> bool:
        """Whether a method takes these data; pairs of many records are compared in parts, of few at once."""
        many, cost = len(self.table) > MANY_FOR_PAIRS, step.method.cost
        if ("part" in cost and not many) or (cost.startswith("n²") and many):
            return False
        return step.method.refuses(self.table.aimed_at(step.columns)) is None

    def _try(self, plan: Plan, step: Step, companions: Companions, run: Run, hurry: Hurry) -> Companions:
        """Find the weakest setting of a step that does; what joins records is made less exact if it must."""
        case = self._case(plan, ())
        if not self._settle(plan, step, companions, run, hurry):
            release = case.maker(Recipe((step,)))(self.table, run)
            more = companions.also_joining_in(self.table, release)
            if more != companions:
                self._settle(plan, step, more, run, hurry)
                return more
        return companions

    def _settle(self, plan: Plan, step: Step, companions: Companions, run: Run, hurry: Hurry) -> bool:
        """Remember the step at its weakest setting that does, by the mildest further steps."""
        low, _ = step.method.drive_range(self.table.aimed_at(step.columns))
        alike = getattr(step.method, "k", None)  # as many as the demands imply: a good place to begin
        near = None if alike is None else (alike, low)
        further = self._further(plan, step, companions, run)
        end = weakest(step, self._case(plan, further), plan.demands, run, repeats=1, near=near, hurry=hurry)
        if not end.met:
            self.missed[step.method.name] = end.reason
        else:
            candidate = self._judge(Recipe((end.step, *further)), plan, run)
            self.found += [candidate] if candidate.feasible else []
        return end.met

    def _further(self, plan: Plan, step: Step, companions: Companions, run: Run) -> tuple[Step, ...]:
        """The mildest further steps with which a step does, or those with which it is nearest to."""
        ways = list(companions.further_steps(len(self.table)))
        nearest, short = ways[0], math.inf
        for further in ways if len(ways) > 1 else ():
            recipe = Recipe((step, *further))
            result = RecipeJudge(plan.demands, ()).evaluate(recipe, self._case(plan, ()), run, replicates=1)
            missed = sum(max(each, 0.0) for each in self.judge.candidate(recipe, SINGLE, result).shortfalls)
            if missed < short:
                nearest, short = further, missed
            if not short:
                break
        return nearest

    def _case(self, plan: Plan, further: tuple[Step, ...]) -> EvaluationCase:
        after = followed_by(further, self.finish(plan.output))
        return EvaluationCase(self.table, resources=self.run.resources, control=plan.control, after=after)

    def _judge(self, recipe: Recipe, plan: Plan, run: Run) -> Candidate:
        began = self.shares.clock()
        result = self.judge.evaluate(recipe, self._case(plan, ()), run, replicates=_RUNS)
        self.one_run = min(self.one_run or math.inf, self.shares.clock() - began)
        return self.judge.candidate(recipe, SINGLE, result)


def ways(plan: Plan, fallbacks: Fallbacks, search: Search) -> Iterator[tuple[Plan, str]]:
    """The plans that may make the release, best first, each with how it was found; the next if one fails.

    First what the search recommends, then the steps that enforce what is required, which are found before:
    they are safe, and tell whether the numbers of persons and households can stay.
    """
    if not plan.risk_demands:
        yield plan, "nothing is required, so only direct identifiers were removed or replaced"
        return
    safe = fallbacks.plans()
    first = safe[0] if safe else plan
    try:
        found = search(first, [each.recipe for each in safe[:_KNOWN]])
        why = "there was no time to search for a better recipe"
        if found is not None:
            output = replace(first.output, drop=found.plan.output.drop)
            best = replace(first, recipe=found.recipe, output=output)
            yield best, f"the best recipe of the search, confirmed in fresh runs{_less(best, plan)}"
            why = "the recipe of the search failed in the end"
    except MissingDependencyError as error:
        why = f"to search for a better recipe, {error.hint}"
        if not safe:
            raise
    except UnreachableError as error:
        why = "the search found no better recipe in the time given"
        if not safe:
            message = f"{error.message}, so nothing was released"
            missed = [f"{name}: {reason}" for name, reason in fallbacks.missed.items()]
            hint = "; ".join(filter(None, (WHAT_HELPS, *missed, error.hint)))
            raise UnreachableError(message, hint=hint) from None
    for each in safe:
        enforcing = "a method that enforces the requirements, at the mildest setting that meets them"
        yield each, f"{why}; used instead: {enforcing}{_less(each, plan)}"


def _less(made: Plan, asked: Plan) -> str:
    kept_out = (*asked.output.drop, *asked.left_out)
    gone = [name for name in made.output.drop if name not in kept_out]
    verb = "it links" if len(gone) == 1 else "they link"
    return f"; {join_names(gone)} left out, as {verb} records that belong together" if gone else ""
