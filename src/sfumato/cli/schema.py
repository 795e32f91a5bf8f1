"""Print the JSON Schema of a plan, a report, the evidence or a study."""

from __future__ import annotations

import click

from sfumato.cli._screen import emit_json


@click.command(
    "schema",
    help=__doc__,
    epilog="Editors and pipelines check files by it: sfumato schema plan > plan.schema.json",
)
@click.argument("what", type=click.Choice(["plan", "report", "evidence", "study"]))
def command(what: str) -> None:
    """Print a schema."""
    if what == "plan":
        from sfumato.recipes.plan_schema import plan_schema

        emit_json(plan_schema())
    else:
        from sfumato.report.evidence_file import schema

        emit_json(schema(what))
