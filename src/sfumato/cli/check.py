"""Check a plan without running it: every fault in it at once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sfumato.cli._options import json_option, plan_argument, quiet_option, unjudged_option
from sfumato.cli._release import WRITE_REQUIREMENTS, require_requirement
from sfumato.cli._screen import emit_json, say
from sfumato.errors import PlanError, counted

if TYPE_CHECKING:
    from sfumato.data.table import Table


@click.command("check", help=__doc__)
@plan_argument
@click.option("--no-data", is_flag=True, help="Do not read the data; check the plan alone.")
@unjudged_option
@json_option
@quiet_option
def command(plan_path: Path, *, no_data: bool, unjudged: bool, as_json: bool, quiet: bool) -> None:
    """Check a plan."""
    from sfumato.data.checks import violations
    from sfumato.recipes.plan import Plan
    from sfumato.releasing.load import load, load_resources

    plan = Plan.read(plan_path)
    blockers = plan.blockers()
    broken: list[str] = []
    tables: dict[str, Table] = {}
    if not no_data:
        for name, part in plan.parts.items():
            load_resources(part)
            where = f"{name}: " if name else ""
            tables[name] = load(part)
            broken += [
                f"{where}{v.records} records break the promise that {v.promise}"
                for v in violations(tables[name])
            ]
    warnings = [*plan.warnings(), *broken]
    if as_json:
        emit_json({"warnings": warnings, "blockers": blockers, "plan": plan.to_dict()})
    for warning in warnings:
        say(f"warning: {warning}", quiet=quiet)
    if blockers:
        raise PlanError.gather("the plan", blockers, hint="nothing can be released until these are decided")
    require_requirement(plan, tables, WRITE_REQUIREMENTS, unjudged=unjudged)
    count = sum(len(part.recipe.steps) for part in plan.parts.values())
    say(f"{plan_path} is sound: {counted(count, 'step')}, ready to run", quiet=quiet)
