"""Protect repeatedly until few records can be linked; then release the file with a bound, else nothing."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli import _options
from sfumato.cli._release import REQUIRE_IT, plan_of_options, tell, write_if_open
from sfumato.cli._resources import hierarchy_option, resource_option
from sfumato.cli._screen import announce, emit_json, emit_table, running, say
from sfumato.errors import RequirementError

if TYPE_CHECKING:
    from sfumato.core.measure import Score
    from sfumato.core.release import Release
    from sfumato.core.run import Run
    from sfumato.data.scenario import Scenario
    from sfumato.data.table import Table
    from sfumato.recipes.plan import Plan
    from sfumato.recipes.step import Step
    from sfumato.study.protocol import LinkageLimits, Protocol

_ADVICE = "allow more with --local and --everywhere, or name a method that protects more"


@click.command("protocol", help=__doc__, epilog=f"SOURCE is {_options.SOURCE}.")
@click.argument("source")
@click.option(
    "-m",
    "--method",
    "methods",
    multiple=True,
    required=True,
    help="A method, such as 'mdav(k=5)'. Give several from weak to strong, or one, which is made stronger "
    "step by step.",
)
@click.option("-o", "--out", required=True, help="The file to release.")
@click.option(
    "--local", default=0.05, show_default=True, help="Largest share of records linked one by one (DBRL)."
)
@click.option(
    "--everywhere",
    default=0.05,
    show_default=True,
    help="Largest share of records linked all at once (GDBRL).",
)
@click.option(
    "--attempts", default=3, show_default=True, type=click.IntRange(1), help="Attempts at each setting."
)
@click.option(
    "--rungs", default=9, show_default=True, type=click.IntRange(2),
    help="Strengths to try if only one method is given.",
)  # fmt: skip
@_options.drop_option
@_options.keep_order_option
@_options.columns_option
@_options.require_option
@_options.for_option
@_options.override_option
@_options.roles_option
@hierarchy_option
@resource_option
@_options.plan_option
@_options.reading_options
@_options.work_options
def command(source: str, **options: Any) -> None:
    """Carry out the owner's protocol."""
    from sfumato.cli.compare import method_of
    from sfumato.recipes.recipe import Recipe
    from sfumato.recipes.step import Step
    from sfumato.releasing.carry_out import carry_out
    from sfumato.releasing.decide import decide, require_secret_seed
    from sfumato.study.protocol import LinkageLimits

    quiet, columns = options["quiet"], _options.split(options["columns"])
    steps = tuple(Step(method_of(text), columns) for text in options["methods"])
    limits = LinkageLimits(options["local"], options["everywhere"])
    plan, destination = plan_of_options(steps[0], source, options)
    plan, scenario = _plan_with_limits(plan, limits, columns)
    ends: list[Protocol] = []

    def accepted(table: Table, run: Run) -> Release:
        ended = _run_protocol(table, steps, run, scenario=scenario, limits=limits, options=options)
        _show(ended, as_json=options["as_json"])
        if ended.release is None:
            raise RequirementError(f"{ended.reason}; nothing was written", hint=_ADVICE)
        ends.append(ended)
        return ended.release

    reason = _options.reason_of(options)
    with running(quiet=quiet, seed=options["seed"]) as run:
        require_secret_seed(plan, run, subject=source, override=reason)
        outcome = carry_out(plan, run, protect=accepted)
        taken = replace(plan, recipe=Recipe((ends[0].attempts[-1].step,)))
        outcome = replace(outcome, parts={"": replace(outcome.parts[""], plan=taken)})
        record = {"protocol": ends[0].to_dict()}
        tell(outcome, quiet=quiet)
        decision = decide(outcome, subject=source, override=reason)
        write_if_open(decision, destination, required_by=REQUIRE_IT, quiet=quiet, record=record)
    bound = f"Δ = {ends[0].bound:.4g}, which may be published"
    say(f"released with the bound {bound}: no record moved farther in the intruder's columns", quiet=quiet)


def _plan_with_limits(plan: Plan, limits: LinkageLimits, columns: tuple[str, ...]) -> tuple[Plan, Scenario]:
    """The plan with the limits as requirements, and the intruder: its first, or one who knows the columns."""
    from sfumato.data.scenario import Scenario

    required = {
        each.name: (*plan.requirements, *plan.required_in.get(each.name, ())) for each in plan.scenarios
    }
    if plan.scenarios == (Scenario(),):
        intruder = Scenario("protocol", columns=columns)
        plan = replace(plan, scenarios=(*plan.scenarios, intruder))
    else:
        intruder = plan.scenarios[0]
    required[intruder.name] = (*required.get(intruder.name, ()), *limits.requirements)
    return replace(plan, requirements=(), required_in=required), intruder


def _run_protocol(
    table: Table,
    steps: tuple[Step, ...],
    run: Run,
    *,
    scenario: Scenario,
    limits: LinkageLimits,
    options: dict[str, Any],
) -> Protocol:
    from sfumato.recipes.recipe import Recipe
    from sfumato.study.cost import PlannedWork
    from sfumato.study.protocol import carry_out_protocol, strengthen_in_rungs

    measures = tuple(each.measure for each in limits.requirements)
    how: dict[str, Any] = {"scenario": scenario, "resources": run.resources}
    announce(PlannedWork(Recipe(steps[:1]), measures, **how), table, run, quiet=options["quiet"])
    if len(steps) == 1:
        steps = strengthen_in_rungs(
            steps[0], table, run, limits=limits, rungs=options["rungs"], scenario=scenario
        )
    return carry_out_protocol(table, steps, run, limits=limits, attempts=options["attempts"], **how)


def _show(ended: Protocol, *, as_json: bool) -> None:
    if as_json:
        emit_json(ended.to_dict())
        return
    rows = [
        [str(number), _setting(each.step), f"{each.distortion:.4g}", _share(each.local),
         _share(each.everywhere), each.verdict]
        for number, each in enumerate(ended.attempts, start=1)
    ]  # fmt: skip
    emit_table(["attempt", "method", "δ", "dbrl", "gdbrl", "verdict"], rows, right=[0])


def _setting(step: Step) -> str:
    """A method with its drive, in the digits that a table has room for."""
    drive = step.method.drive()
    if drive is None:
        return str(step.method)
    return f"{step.method.name}, {drive.name} = {getattr(step.method, drive.name):.4g}"


def _share(score: Score | None) -> str:
    return "—" if score is None or math.isnan(score.value) else f"{score.value:.4f}"
