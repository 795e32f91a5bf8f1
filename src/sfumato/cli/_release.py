"""From the options of a verb to a release: its plan of one step, what is told of the outcome, writing it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.cli._options import require_columns, roles_of, split
from sfumato.cli._resources import declared, resourced
from sfumato.cli._screen import announce, say
from sfumato.data.schema import Role
from sfumato.errors import PlanError, RequirementError, quoted

if TYPE_CHECKING:
    from sfumato.core.method import EnforcedRequirement
    from sfumato.core.run import Run
    from sfumato.data.table import Table
    from sfumato.recipes.plan import Plan
    from sfumato.recipes.recipe import Step
    from sfumato.releasing.destination import Destination
    from sfumato.releasing.outcome import Outcome, Part

#: The way on where a plan requires nothing.
WRITE_REQUIREMENTS = 'write requirements = ["k >= 3"] at the top of the plan'


def one_step(step: Step, source: str, options: Mapping[str, Any]) -> tuple[Plan, Destination]:
    """The plan of a verb that protects a file by one step, and where the release goes, which is checked.

    A plan that the options name says the rest: columns, resources, scenarios, requirements, and what else is
    to be dropped or repaired.
    """
    from sfumato.data.schema import with_roles
    from sfumato.front import read
    from sfumato.recipes.plan import Plan
    from sfumato.recipes.recipe import Recipe
    from sfumato.recipes.starter import with_pseudonyms
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
    schema = with_roles(schema, roles_of(options["roles"]))
    if options.get("pseudonym_key"):
        schema = with_pseudonyms(schema)
        if not any(column.pseudonym for column in schema.columns):
            raise PlanError(
                "--pseudonym-key must find a number of persons or households, got: none",
                hint="say which column it is: --role COLUMN=person",
            )
    # What the owner has not decided counts as known: a plan that is written down is stricter.
    undecided = schema.undecided()
    plan = replace(plan, schema=schema.replace(*(replace(schema[name], role=Role.KEY) for name in undecided)))
    plan = _required(plan, step, options)
    if blockers := plan.blockers():
        raise PlanError("; ".join(blockers), hint="drop fewer columns")
    left = [name for name in undecided if name not in (*step.resolve(schema), *step.within, *plan.left_out)]
    if left:
        named = quoted(left)
        say(
            f"note: nobody has decided on {named}, released as they are: give them a --role, or --drop them",
            quiet=quiet,
        )
    for warning in plan.warnings():
        say(f"warning: {warning}", quiet=quiet)
    return plan, destination


def _required(plan: Plan, step: Step, options: Mapping[str, Any]) -> Plan:
    """The plan with what the options require: single requirements, and those of a profile.

    Where nothing is, a method that enforces something asks for that, of all keys and not only of its columns.
    """
    from sfumato.core.requirement import Requirement
    from sfumato.recipes.profile import Profile

    wanted = tuple(Requirement.parse(text) for text in options["require"])
    plan = replace(plan, requirements=(*plan.requirements, *wanted))
    if options["profile"]:
        return Profile.of(options["profile"]).apply_to(plan)
    if plan.demands or plan.schema is None:
        return plan
    return _enforced(plan, step.method.enforced_requirements(plan.schema, step.resolve(plan.schema)))


def _enforced(plan: Plan, enforced: Sequence[EnforcedRequirement]) -> Plan:
    """The plan that requires what is enforced: of all keys, and of combinations of columns in scenarios."""
    from sfumato.core.requirement import Requirement
    from sfumato.data.scenario import Scenario

    whole = tuple(Requirement.parse(text) for text, columns in enforced if not columns)
    parts: dict[Scenario, tuple[Requirement, ...]] = {}
    for text, columns in enforced:
        if columns:
            intruder = Scenario("+".join(columns), columns)
            parts[intruder] = (*parts.get(intruder, ()), Requirement.parse(text))
    if not parts:
        return replace(plan, requirements=whole)
    known = {scenario.name: whole for scenario in plan.scenarios if whole}
    required_in = known | {scenario.name: required for scenario, required in parts.items()}
    return replace(plan, scenarios=(*plan.scenarios, *parts), required_in=required_in)


def require_requirement(plan: Plan, tables: Mapping[str, Table], where: str, *, unjudged: bool) -> None:
    """Stop if nothing is required of a table, and say what is at stake in it as it is."""
    from sfumato.core.run import Run
    from sfumato.releasing.load import load_resources
    from sfumato.releasing.stakes import stake_of

    stakes = []
    for name in () if unjudged else plan.unrequired:
        part = plan.parts[name]
        run = Run(resources=load_resources(part))
        stake = stake_of(part, tables[name], None, run) if name in tables else None
        stakes.append((f"{name}: " if name else "") + (stake.sentence() if stake else "nobody has looked"))
    if stakes:
        raise nothing_required(stakes, where)


def nothing_required(stakes: Sequence[str], where: str) -> RequirementError:
    """Say what is at stake where nobody has said what a release must meet, and the way on."""
    from sfumato.releasing.destination import NOTHING_REQUIRED

    return RequirementError(
        f"{NOTHING_REQUIRED}, got: none, so nothing was written; {'; '.join(stakes)}",
        hint=f"{where}; or --unjudged, which the private trail keeps",
    )


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
    left = [name for name in part.plan.left_out if name not in part.plan.output.drop]
    return [
        *([f"{where}left out, as they identify people: {', '.join(left)}"] if left else []),
        *(f"{where}{each.scenario}: {each.requirement.verdict(each.score)}" for each in part.judgements),
        *(f"note: {where}{note}" for note in (*notes, *part.notes)),
        *(f"{where}{what}: {count} cells" for what, count in part.changes.items()),
        *(
            f"note: {where}{each.records} records break the promise that {each.promise}"
            for each in part.broken
        ),
        *(f"WARNING: {where}{each}" for each in part.warnings),
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
    unjudged: bool = False,
    where: str = "",
    pages: Callable[[], Mapping[Path, str]] | None = None,
) -> list[Path | str]:
    """Write a release that meets every requirement, and say what was written; else say the way out.

    ``pages`` makes texts that are written with it, once it is sure that it is.
    """
    from sfumato.releasing.destination import write_release

    if outcome.unjudged and not unjudged:
        raise nothing_required(outcome.unjudged, where)
    if outcome.unmet:
        raise RequirementError(
            f"{outcome.unmet} of {len(outcome.judgements)} requirements are not met, so nothing was written",
            hint=_way_out(outcome, fixed=seeded or replayed),
        )
    warn_of_earlier(outcome, destination.ledger, run, quiet=quiet)
    texts = pages() if pages is not None else {}
    written = write_release(
        outcome, destination, run, seeded=seeded, record=record, unjudged=unjudged, pages=texts
    )
    say("written: " + ", ".join(str(path) for path in written), quiet=quiet)
    say(f"keep {destination.trail.name} private: with its seed the noise can be undone", quiet=quiet)
    for place in outcome.new_keys:
        say(
            f"keep {place.name} too: it gives people the same pseudonyms again, and tells who they are",
            quiet=quiet,
        )
    parts = outcome.parts.values()
    if any(part.plan.output.shuffle and part.release.source_rows is not None for part in parts):
        say("the records were shuffled: which is whose stands there too, where `risk` finds it", quiet=quiet)
    return written


def warn_of_earlier(outcome: Outcome, ledger: Path, run: Run, *, quiet: bool) -> None:
    """Say if the same data were released here before with other chance: of several, noise averages out."""
    from sfumato.releasing.write_trail import earlier_releases

    earlier = earlier_releases(ledger, outcome, run)
    if earlier:
        times = "once" if earlier == 1 else f"{earlier} times"
        say(
            f"warning: the same data were released here {times} before: who has several releases takes the "
            "mean of them, and fresh noise is gone",
            quiet=quiet,
        )


def _way_out(outcome: Outcome, *, fixed: bool) -> str:
    """What to try when a release misses a requirement."""
    steps = [step for part in outcome.parts.values() for step in part.plan.recipe.steps]
    stronger = "make a step stronger, or let `sfumato tune` find one that meets them in every run"
    if fixed or not any(step.method.randomness.stochastic for step in steps):
        return stronger
    return f"every run has chance of its own: after a near miss another one may meet them; else {stronger}"
