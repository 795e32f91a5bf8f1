"""The ways to a release that meets what is required: what a search recommends, and what enforces it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from sfumato.core.run import Run
from sfumato.data.schema import UNIT_ROLES
from sfumato.data.table import Table
from sfumato.errors import MissingDependencyError, SfumatoError, UnreachableError
from sfumato.recipes.parts import Output
from sfumato.recipes.plan import Plan
from sfumato.recipes.recipe import Recipe, Step
from sfumato.recipes.starter import safe_step
from sfumato.study.evaluate import After, Case
from sfumato.study.losses import named
from sfumato.study.requirements import weakest
from sfumato.tuning.companions import Companions, followed_by
from sfumato.tuning.tuned import Tuned

#: What its owner can change where nothing meets what is required.
WHAT_HELPS = (
    "what helps: more minutes or records, a key left out (role identifier), a profile that requires less"
)


#: What the way out does to a release before it is judged, by the plan's output.
Finish = Callable[[Output], After]


def enforced(plan: Plan, table: Table, run: Run, finish: Finish) -> tuple[Plan, bool]:
    """The plan whose step enforces what is required, at its weakest setting that does, and whether it does.

    Where it cannot while a number tells whose records belong together, that number is left out. Columns that
    would give keys back are protected along with them, and amounts that would join records are made less
    exact by a further step.
    """
    numbers = table.schema.with_role(*UNIT_ROLES)
    for drop in ((), numbers) if numbers else ((),):
        dropped = (*plan.output.drop, *drop)
        made = replace(plan, output=replace(plan.output, drop=dropped))
        left = table.schema.select([name for name in table.names if name not in dropped])
        companions = Companions.of(table, dropped, plan.demands)
        step = safe_step(left, plan.demands, companions.keys)
        if step is None:
            continue
        found = _weakest(made, step, companions, table, run=run, finish=finish)
        more = companions
        if found is None:
            with suppress(SfumatoError):  # the step may not be able to at all
                release = finish(made.output)(Recipe((step,)).apply(table, run), table, run)
                more = companions.also_joining_in(table, release)
        if more != companions:
            found = _weakest(made, step, more, table, run=run, finish=finish)
        if found is not None:
            return replace(made, recipe=found), True
    return plan, False


def _weakest(
    plan: Plan, step: Step, companions: Companions, table: Table, *, run: Run, finish: Finish
) -> Recipe | None:
    """The step at its weakest setting with which everything is met, by the mildest further steps."""
    for further in companions.further_steps(len(table)):
        after = followed_by(further, finish(plan.output))
        case = Case(table, resources=run.resources, control=plan.control, after=after)
        end = weakest(step, case, plan.demands, run, repeats=1)
        if end.met:
            return Recipe((end.step, *further))
    return None


def ways(
    plan: Plan, table: Table, run: Run, search: Callable[[Plan, Sequence[Recipe]], Tuned], finish: Finish
) -> Iterator[tuple[Plan, str]]:
    """The plans that may make the release, best first, each with how it was found; the next if one fails.

    First what the search recommends, then the step that enforces what is required, which is found before:
    it is safe, and it tells whether the numbers of persons and households can stay.
    """
    if not plan.risk_demands:
        yield plan, "nothing is required, so nothing was changed but what identifies people"
        return
    safe, met = enforced(plan, table, run, finish)
    try:
        found = search(safe, (safe.recipe,) if met else ())
        best = replace(safe, recipe=found.recipe, output=replace(safe.output, drop=found.plan.output.drop))
        yield best, f"the best that the search found and fresh runs confirmed{_less(best, plan)}"
        why = "what the search found failed in the end"
    except MissingDependencyError as error:
        why = f"to search for better, {error.hint}"
        if not met:
            raise
    except UnreachableError as error:
        why = "the search found nothing in time that does"
        if not met:
            message = f"{error.message}, so nothing was released"
            raise UnreachableError(message, hint="; ".join(filter(None, (WHAT_HELPS, error.hint)))) from None
    if met:
        yield (
            safe,
            f"{why}, so the method that enforces it, at its weakest setting that does{_less(safe, plan)}",
        )


def _less(made: Plan, asked: Plan) -> str:
    kept_out = (*asked.output.drop, *asked.left_out)
    gone = [name for name in made.output.drop if name not in kept_out]
    return f"; {named(gone)} left out, as it tells whose records belong together" if gone else ""
