"""Look into a file: what is in it, what each column seems to be and why; write a starter plan."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from sfumato.cli._options import SOURCE, json_option, overwrite_option, quiet_option
from sfumato.cli._screen import emit_json, emit_table, say


@click.command("inspect", help=__doc__, epilog=f"SOURCE is {SOURCE}.")
@click.argument("source")
@click.option("--plan", "plan_path", type=click.Path(path_type=Path), help="Write a starter plan here.")
@overwrite_option
@json_option
@quiet_option
def command(source: str, *, plan_path: Path | None, overwrite: bool, as_json: bool, quiet: bool) -> None:
    """Look into a file."""
    from sfumato.data.guess import guess
    from sfumato.io import read_contents, write_text

    if source.startswith("builtin:"):
        from sfumato import datasets

        table = datasets.from_uri(source)
        frame, schema = table.frame, table.schema
        described = [
            _facts(column, frame, "declared by the data set", "declared by the data set", 1.0)
            for column in schema.columns
        ]
    else:
        found = read_contents(Path(source))
        frame, guesses = found.frame, guess(found.frame, found.facts)
        described = [_facts(g.column, frame, g.kind_reason, g.role_reason, g.confidence) for g in guesses]
        from sfumato.data.schema import Schema

        schema = Schema(tuple(g.column for g in guesses))
    if as_json:
        emit_json({"source": source, "records": frame.height, "columns": described})
    else:
        say(f"{source}: {frame.height} records, {frame.width} columns", quiet=quiet)
        rows = [
            [
                d["name"],
                d["type"],
                str(d["distinct"]),
                str(d["missing"]),
                d["kind"],
                d["role"] or "?",
                d["role_reason"],
            ]
            for d in described
        ]
        emit_table(["column", "type", "distinct", "missing", "kind", "role", "why"], rows, right=[2, 3])
    if plan_path is not None:
        write_text(plan_path, starter(source, schema, plan_path), overwrite=overwrite)
        say(f"plan: {plan_path} — decide every role, then `sfumato check {plan_path}`", quiet=quiet)


def _facts(column: Any, frame: Any, kind_reason: str, role_reason: str, confidence: float) -> dict[str, Any]:
    series = frame[column.name]
    return {
        **column.to_dict(),
        "name": column.name,
        "type": str(series.dtype),
        "distinct": series.n_unique(),
        "missing": series.null_count(),
        "kind": column.kind.value,
        "role": column.role.value if column.role else None,
        "kind_reason": kind_reason,
        "role_reason": role_reason,
        "confidence": confidence,
    }


def starter(source: str, schema: Any, plan_path: Path) -> str:
    """Write a plan to start from: what was found, one method on the keys, identifiers left out."""
    from sfumato.compare.plan import Output, Plan, Source
    from sfumato.compare.recipe import Recipe, Step
    from sfumato.data.schema import Role
    from sfumato.methods.swapping import RankSwapping

    if not source.startswith("builtin:"):
        source = os.path.relpath(Path(source).resolve(), plan_path.resolve().parent)
    step = Step(RankSwapping())
    able = bool(step.resolve(schema))
    output = Output(path="release.csv", drop=schema.with_role(Role.IDENTIFIER))
    plan = Plan(Source(source), schema, recipe=Recipe((step,) if able else ()), output=output)
    undecided = schema.undecided()
    head = "# A starter plan. Give every column a role, choose the steps, then: sfumato check, sfumato run.\n"
    if undecided:
        head += f"# Not decided yet: {', '.join(undecided)}\n"
    return f"{head}\n{plan.to_toml()}"
