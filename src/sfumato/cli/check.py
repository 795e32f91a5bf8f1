"""Check a plan without running it, and list all its faults."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sfumato.cli import _options
from sfumato.cli._release import WRITE_REQUIREMENTS, way_on
from sfumato.cli._screen import emit_json, say
from sfumato.errors import PlanError, count_noun

if TYPE_CHECKING:
    from sfumato.data.table import Table


@click.command("check", help=__doc__)
@_options.plan_argument
@click.option("--no-data", is_flag=True, help="Do not read the data; check the plan alone.")
@_options.unjudged_option
@_options.json_option
@_options.quiet_option
def command(plan_path: Path, *, no_data: bool, unjudged: bool, as_json: bool, quiet: bool) -> None:
    """Check a plan."""
    from sfumato.data.checks import violations
    from sfumato.recipes.plan import Plan
    from sfumato.releasing.decide import foresee
    from sfumato.releasing.load import load, load_resources

    plan = Plan.read(plan_path)
    broken: list[str] = []
    tables: dict[str, Table] = {}
    if not no_data:
        for name, part in plan.parts.items():
            load_resources(part)
            where = f"{name}: " if name else ""
            tables[name] = load(part)
            broken += [
                f"{where}constraint violated by {count_noun(v.records, 'record')}: {v.promise}"
                for v in violations(tables[name])
            ]
    warnings, blockers = [*plan.warnings(), *broken], plan.blockers()
    decision = foresee(plan, tables, subject=str(plan_path), unjudged=unjudged)
    if as_json:
        facts = {"warnings": warnings, "blockers": blockers, "plan": plan.to_dict()}
        emit_json({**facts, "findings": [each.to_dict() for each in decision.findings]})
    for warning in warnings:
        say(f"warning: {warning}", quiet=quiet)
    if blockers:
        raise PlanError.gather(
            "the plan", blockers, hint="decide these first: nothing can be released before"
        )
    decision.require_leave(hint=way_on(decision, required_by=WRITE_REQUIREMENTS, fixed=True))
    count = sum(len(part.recipe.steps) for part in plan.parts.values())
    say(f"{plan_path} has no faults: {count_noun(count, 'step')}, ready to run", quiet=quiet)
