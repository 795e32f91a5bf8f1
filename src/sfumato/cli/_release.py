"""What verbs that write say of a release: what it will cost, what came of it, and what was written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.cli._options import split
from sfumato.cli._resources import files_of_request, request_of
from sfumato.cli._screen import announce, say

if TYPE_CHECKING:
    from sfumato.core.run import Run
    from sfumato.data.table import Table
    from sfumato.recipes.plan import Plan
    from sfumato.recipes.step import Step
    from sfumato.releasing.decide import Decision
    from sfumato.releasing.destination import Destination
    from sfumato.releasing.outcome import PlanOutcome, TableOutcome

#: The way on where a plan requires nothing.
WRITE_REQUIREMENTS = 'write requirements = ["k >= 3"] at the top of the plan'
#: How something is required of a file that is protected.
REQUIRE_IT = "add a requirement: --require 'k >= 3', or --for scientific"


def plan_of_options(step: Step, source: str, options: dict[str, Any]) -> tuple[Plan, Destination]:
    """The plan of one step that the options ask for, and where the release goes, which is checked."""
    from sfumato.releasing.destination import Destination
    from sfumato.releasing.prepare import prepare_step

    output = {
        "path": options["out"],
        "drop": split(options["drop"]),
        "keep_order": options["keep_order"],
    }
    request = request_of(source, options, columns=(), output=output)
    named = tuple(each for each in files_of_request(request) if Path(each).suffix.lower() == ".toml")

    def place(plan: Plan) -> Destination:
        return Destination(plan, overwrite=options["overwrite"], also_read=named)

    prepared = prepare_step(request, step, check=lambda plan: place(plan).check())
    for note in prepared.notes:
        say(note, quiet=options["quiet"])
    return prepared.plan, place(prepared.plan)


def announce_plan(plan: Plan, table: Table, run: Run, *, quiet: bool) -> None:
    """Say what a plan will cost."""
    from sfumato.study.cost import PlannedWork

    asked = {(str(each.measure), each.scenario.name): each.measure for each in plan.demands}
    scenario, resources = plan.scenarios[0], run.resources
    work = PlannedWork(plan.recipe, tuple(asked.values()), scenario=scenario, resources=resources)
    # Beyond that, what leaves together is judged, losses are counted, and files are written.
    announce(work, table, run, quiet=quiet, what="protecting alone")


def tell(outcome: PlanOutcome, *, quiet: bool) -> None:
    """Say what came of a plan."""
    for name, part in outcome.parts.items():
        for line in _lines(part, f"{name}: " if name else ""):
            say(line, quiet=quiet)
    for what, count in outcome.dangling.items():
        say(f"note: {count} numbers of {what}", quiet=quiet)


def _lines(part: TableOutcome, where: str) -> list[str]:
    notes = [note for taken in part.release.provenance for note in taken.notes]
    left = [name for name in part.plan.left_out if name not in part.plan.output.drop]
    return [
        *([f"{where}removed, because they identify people: {', '.join(left)}"] if left else []),
        *(f"{where}{each.sentence}" for each in part.judgements),
        *(f"note: {where}{note}" for note in (*notes, *part.notes)),
        *(f"{where}{what}: {count} cells" for what, count in part.changes.items()),
        *(f"WARNING: {where}{each}" for each in part.warnings),
    ]


def way_on(decision: Decision, *, required_by: str, fixed: bool) -> str:
    """What to try when something may not leave; ``fixed`` chance would give the same again."""
    from sfumato.releasing.decide import DRAW_SEED

    rules = {each.rule for each in decision.findings}
    override = 'or release it anyway with --override "REASON", which is recorded'
    if rules == {"nothing-required"}:
        return f"{required_by}; or release without one: --unjudged, which the private trail records"
    if rules == {"requirement-missed"}:
        return _stronger(decision, fixed=fixed)
    hints = {
        "identifier-left-in": "remove the column (role identifier, or --drop in `protect`)",
        "contact-left-in": "remove it from the texts, or remove the column (role identifier)",
        "rule-broken": "write repair = true into [output] of the plan",
        "nothing-required": required_by,
        "requirement-missed": _stronger(decision, fixed=fixed),
        "seed-guessable": DRAW_SEED,
    }
    return "; ".join([*(hint for rule, hint in hints.items() if rule in rules), override])


def _stronger(decision: Decision, *, fixed: bool) -> str:
    parts = decision.outcome.parts.values() if decision.outcome else ()
    steps = [step for part in parts for step in part.plan.recipe.steps]
    stronger = "make a step stronger, or let `sfumato tune` find a recipe that meets them in every run"
    if fixed or not any(step.method.randomness.stochastic for step in steps):
        return stronger
    return f"every run draws new random numbers: after a near miss another may meet them; else {stronger}"


def write_if_open(
    decision: Decision,
    destination: Destination,
    *,
    required_by: str,
    replayed: bool = False,
    quiet: bool,
    record: Mapping[str, Any] | None = None,
    pages: Callable[[], Mapping[Path, str]] | None = None,
) -> list[Path | str]:
    """Write a release that may leave, and say what was written; else say the way on.

    ``required_by`` says how a requirement is given; ``pages`` makes texts that are written with it, once it
    is sure that it is.
    """
    from sfumato.releasing.destination import write_release

    outcome = decision.outcome
    assert outcome is not None  # it was made here
    fixed = outcome.randomness.is_given or replayed
    decision.require_leave(hint=way_on(decision, required_by=required_by, fixed=fixed))
    tell_override(decision, quiet=quiet)
    warn_of_earlier(outcome, destination.ledger, quiet=quiet)
    texts = pages() if pages is not None else {}
    written = write_release(decision, destination, record=record, pages=texts)
    say("written: " + ", ".join(str(path) for path in written), quiet=quiet)
    trail, parts = destination.trail.name, outcome.parts.values()
    tell_private(trail, outcome, quiet=quiet)
    if any(part.plan.output.shuffle and part.release.source_rows is not None for part in parts):
        say(f"the records were shuffled; {trail} maps them to the original, and `risk` reads it", quiet=quiet)
    return written


def tell_private(place: Path | str, outcome: PlanOutcome, *, quiet: bool) -> None:
    """Say what must not be shared: the seed, and keys of pseudonyms that were made."""
    say(f"do not share {place}: it contains the random seed, which can undo the protection", quiet=quiet)
    for key in outcome.new_keys:
        why = "it gives people the same pseudonyms again, and can reveal who they are"
        say(f"keep {key.name} and do not share it: {why}", quiet=quiet)


def tell_override(decision: Decision, *, quiet: bool) -> None:
    """Say what was overridden."""
    for each in decision.findings if decision.override else ():
        say(f"WARNING: overridden: {each.rule}: {each.message}", quiet=quiet)


def warn_of_earlier(outcome: PlanOutcome, ledger: Path, *, quiet: bool) -> None:
    """Say if the same data were released here before with other noise: of several, it averages out."""
    from sfumato.releasing.write_trail import earlier_releases

    earlier = earlier_releases(ledger, outcome)
    if earlier:
        times = "once" if earlier == 1 else f"{earlier} times"
        averaging = "whoever has several releases can average the noise away"
        say(f"warning: the same data were released here {times} before: {averaging}", quiet=quiet)
