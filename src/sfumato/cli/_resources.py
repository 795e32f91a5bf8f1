"""Other files a verb uses: hierarchies of columns, a table of the population, those that a plan names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from sfumato.data.schema import Schema
from sfumato.data.table import Table
from sfumato.errors import ParameterError, UnknownNameError

hierarchy_option = click.option(
    "--hierarchy",
    "hierarchy_files",
    multiple=True,
    metavar="COLUMN=FILE",
    help="The levels a column is generalised along (see `sfumato hierarchy`); without it they are proposed.",
)
resource_option = click.option(
    "--resource",
    "resource_files",
    multiple=True,
    metavar="NAME=FILE",
    help="A table that a method or measure names, such as the population.",
)


def with_resources(table: Table, options: Mapping[str, Any]) -> tuple[Table, dict[str, Any]]:
    """The table with its columns' hierarchies declared, and every file that is named, read."""
    resources = _of_plan(options.get("plan_path"))
    schema = table.schema
    for name, path in _pairs(options.get("hierarchy_files", ()), "--hierarchy", "COLUMN"):
        from sfumato.io.hierarchies import read_hierarchy

        if name not in schema:
            raise UnknownNameError.of("column", name, schema.names)
        resource = f"hierarchy of {name}"
        resources[resource] = read_hierarchy(path, name=name)
        schema = _declared(schema, name, resource)
    for name, path in _pairs(options.get("resource_files", ()), "--resource", "NAME"):
        from sfumato.front import read

        resources[name] = read(path)
    return replace(table, schema=schema), resources


def files_named(options: Mapping[str, Any]) -> list[str]:
    """The files that the options name, which must not be overwritten."""
    named = [*_pairs(options.get("hierarchy_files", ()), "--hierarchy", "COLUMN"),
             *_pairs(options.get("resource_files", ()), "--resource", "NAME")]  # fmt: skip
    plan = [str(options["plan_path"])] if options.get("plan_path") else []
    return [path for _, path in named if not path.startswith("builtin:")] + plan


def _of_plan(plan_path: Path | None) -> dict[str, Any]:
    if plan_path is None:
        return {}
    from sfumato.recipes.plan import Plan
    from sfumato.releasing.carry_out import load_resources

    return load_resources(Plan.read(plan_path))


def _declared(schema: Schema, name: str, resource: str) -> Schema:
    return schema.replace(replace(schema[name], hierarchy=resource))


def _pairs(values: tuple[str, ...], option: str, left: str) -> list[tuple[str, str]]:
    """Read ``name=file``; a name may hold an equals sign only if the file's does not."""
    pairs = []
    for value in values:
        name, sign, path = value.rpartition("=")
        if not sign or not name or not path:
            raise ParameterError(f"`{option}` must be written {left}=FILE, got: `{value}`")
        pairs.append((name, path))
    return pairs
