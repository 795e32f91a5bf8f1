"""From the options of a verb to a release: its plan of one step, what is told of the outcome, writing it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.cli._options import require_columns, split
from sfumato.cli._resources import declared, resourced
from sfumato.cli._screen import announce, say
from sfumato.data.schema import Role
from sfumato.errors import PlanError, RequirementError

if TYPE_CHECKING:
    from sfumato.core.run import Run
    from sfumato.data.table import Table
    from sfumato.recipes.plan import Plan
    from sfumato.recipes.recipe import Step
    from sfumato.releasing.carry_out import Outcome, Part
    from sfumato.releasing.destination import Destination


def one_step(step: Step, source: str, options: Mapping[str, Any]) -> tuple[Plan, Destination]:
    """The plan of a verb that protects a file by one step, and where the release goes, which is checked.

    A plan that the options name says the rest: columns, resources, scenarios, requirements, and what else is
    to be dropped or repaired.
    """
    from sfumato.front import read
    from sfumato.recipes.plan import Plan
    from sfumato.recipes.recipe import Recipe
    from sfumato.releasing.destination import Destination

    path, quiet = options["plan_path"], options["quiet"]
    plan = resourced(Plan.read(path) if path else Plan(), options)
    drop = split(options["drop"])
    output = replace(
        plan.output,
        path=options["out"],
        drop=tuple(dict.fromkeys((*plan.output.drop, *drop))),
        shuffle=plan.output.shuffle and not options["keep_order"],
    )
    plan = replace(plan, data=plan.source_at(source), recipe=Recipe((step,)), output=output, tables={})
    destination = Destination(plan, overwrite=options["overwrite"], also_read=(path,) if path else ())
    destination.check()
    schema = declared(plan.schema or read(source, reading=plan.source_at(source).reading).schema, options)
    require_columns(schema, (*step.columns, *step.within, *drop))
    # What the owner has not decided counts as known: a plan that is written down is stricter.
    undecided = schema.undecided()
    plan = replace(plan, schema=schema.replace(*(replace(schema[name], role=Role.KEY) for name in undecided)))
    _require_releasable(plan)
    left = [name for name in undecided if name not in (*step.resolve(schema), *step.within, *output.drop)]
    if left:
        named = ", ".join(f"`{name}`" for name in left)
        say(
            f"note: nobody has decided on {named}, released as they are: give them a role, or --drop them",
            quiet=quiet,
        )
    for warning in plan.warnings():
        say(f"warning: {warning}", quiet=quiet)
    return plan, destination


def _require_releasable(plan: Plan) -> None:
    from sfumato.recipes.plan import identifiers_left

    blockers = plan.blockers()
    if blockers and plan.schema is not None:
        named = ",".join(identifiers_left(plan.schema, plan.output.drop))
        hint = f"leave it out with --drop {named}, or correct its role in a plan and use --plan"
        raise PlanError("; ".join(blockers), hint=hint if named else "drop fewer columns")


def announce_plan(plan: Plan, table: Table, run: Run, *, quiet: bool) -> None:
    """Say what a plan will cost."""
    from sfumato.study.cost import Work

    asked = {(str(each.measure), each.scenario.name): each.measure for each in plan.demands}
    scenario, resources = plan.scenarios[0], run.resources
    work = Work(plan.recipe, tuple(asked.values()), scenario=scenario, resources=resources)
    announce(work, table, run, quiet=quiet)


def tell(outcome: Outcome, *, quiet: bool) -> None:
    """Say what came of a plan."""
    for name, part in outcome.parts.items():
        for line in _lines(part, f"{name}: " if name else ""):
            say(line, quiet=quiet)
    for what, count in outcome.dangling.items():
        say(f"note: {count} numbers of {what}", quiet=quiet)


def _lines(part: Part, where: str) -> list[str]:
    notes = [note for taken in part.release.provenance for note in taken.notes]
    return [
        *(f"{where}{each.scenario}: {each.requirement.verdict(each.score)}" for each in part.judgements),
        *(f"note: {where}{note}" for note in (*notes, *part.notes)),
        *(f"{where}{what}: {count} cells" for what, count in part.changes.items()),
        *(
            f"note: {where}{each.records} records break the promise that {each.promise}"
            for each in part.broken
        ),
    ]


def write_if_met(
    outcome: Outcome,
    destination: Destination,
    run: Run,
    *,
    seeded: bool,
    replayed: bool = False,
    quiet: bool,
    record: Mapping[str, Any] | None = None,
) -> list[Path | str]:
    """Write a release that meets every requirement, and say what was written; else say the way out."""
    from sfumato.releasing.destination import write_release
    from sfumato.releasing.trail import earlier_releases

    if outcome.unmet:
        raise RequirementError(
            f"{outcome.unmet} of {len(outcome.judgements)} requirements are not met, so nothing was written",
            hint=_way_out(outcome, fixed=seeded or replayed),
        )
    earlier = earlier_releases(destination.ledger, outcome, run)
    if earlier:
        say(
            f"warning: {earlier} releases of the same data were made here before: who has several takes the "
            "mean of them, and fresh noise is gone",
            quiet=quiet,
        )
    written = write_release(outcome, destination, run, seeded=seeded, record=record)
    say("written: " + ", ".join(str(path) for path in written), quiet=quiet)
    say(f"keep {destination.trail.name} private: with its seed the noise can be undone", quiet=quiet)
    if any(part.plan.output.shuffle for part in outcome.parts.values()):
        say("the records were shuffled: which is whose stands there too, where `risk` finds it", quiet=quiet)
    return written


def _way_out(outcome: Outcome, *, fixed: bool) -> str:
    """What to try when a release misses a requirement."""
    steps = [step for part in outcome.parts.values() for step in part.plan.recipe.steps]
    stronger = "make a step stronger, or let `sfumato tune` find one that meets them in every run"
    if fixed or not any(step.method.stochastic for step in steps):
        return stronger
    return f"every run has chance of its own: after a near miss another one may meet them; else {stronger}"
