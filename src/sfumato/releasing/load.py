"""Reads what a plan names: its data, as its schema says, and the other files that it uses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sfumato.data.schema import Schema
from sfumato.data.table import Table
from sfumato.errors import PlanError
from sfumato.io import FORMATS, addresses, read_contents, read_table
from sfumato.io.formats import Reading
from sfumato.io.hierarchies import read_hierarchy
from sfumato.recipes.parts import Source, located
from sfumato.recipes.plan import Plan

#: Records that are looked at to see how a text is written.
_ROWS_LOOKED_AT = 10_000


def load(plan: Plan) -> Table:
    """Read the plan's data as its schema says."""
    if plan.data is None:
        raise PlanError("the plan must name its data", hint='write [data] with path = "…"')
    return _read_source(plan.data, plan, schema=plan.schema)


def load_resources(plan: Plan, schema: Schema | None = None) -> dict[str, Any]:
    """Read the other files the plan uses; columns they share with its table are of the kinds declared there.

    ``schema`` is that of the table where the plan declares none.
    """
    return {
        name: read_hierarchy(str(source.check(plan.folder)))
        if source.holds == "hierarchy"
        else _read_source(source, plan, like=plan.schema or schema)
        for name, source in plan.resources.items()
    }


def reading_of(plan: Plan) -> Reading | None:
    """How the plan's data are read, so that a release can be written likewise; None if they are no text."""
    source = plan.data
    if source is None or source.is_builtin or addresses.is_address(source.path):
        return None
    place = Path(located(source.path, plan.folder))
    if FORMATS.get(place.suffix.lower()) != "delimited":
        return None
    return read_contents(place, schema=plan.schema, rows=_ROWS_LOOKED_AT, **source.reading).reading


def _read_source(
    source: Source, plan: Plan, *, schema: Schema | None = None, like: Schema | None = None
) -> Table:
    if source.is_builtin:
        from sfumato import datasets

        table = datasets.from_uri(source.path)
        return table if schema is None else Table(table.frame, schema)
    return read_table(source.check(plan.folder), schema=schema, like=like, **source.reading)
