"""Other files a verb uses: hierarchies of columns, a table of the population, those that a plan names."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.data.scenario import CONTROL
from sfumato.data.schema import Schema
from sfumato.data.table import Table
from sfumato.errors import ParameterError, UnknownNameError
from sfumato.io.addresses import is_address

if TYPE_CHECKING:
    from sfumato.recipes.parts import Output
    from sfumato.recipes.plan import Plan

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
control_option = click.option(
    "--control",
    default="",
    metavar="SHARE|FILE",
    help="For attacks: the share of the people who sit out a rehearsal (0.2), or a file of others.",
)


def control_of(options: Mapping[str, Any]) -> float:
    """The share of the persons who sit out a rehearsal, as the options or the plan that they name say."""
    if _is_plain(options):
        return 0.0
    from sfumato.recipes.plan import Plan

    return resourced(Plan.read(options["plan_path"]) if options.get("plan_path") else Plan(), options).control


def with_resources(table: Table, options: Mapping[str, Any]) -> tuple[Table, dict[str, Any]]:
    """The table with its columns' hierarchies declared, and every file that is named, read."""
    if _is_plain(options):
        return table, {}
    from sfumato.recipes.plan import Plan
    from sfumato.releasing.load import load_resources

    plan = Plan.read(options["plan_path"]) if options.get("plan_path") else Plan()
    schema = declared(table.schema, options)
    return replace(table, schema=schema), load_resources(resourced(plan, options), schema)


def _is_plain(options: Mapping[str, Any]) -> bool:
    """Whether nothing but the data is named: then all that plans need is not even loaded."""
    return not any(
        options.get(name) for name in ("plan_path", "hierarchy_files", "resource_files", "control")
    )


def resourced(plan: Plan, options: Mapping[str, Any]) -> Plan:
    """A plan that also names the files that the options do, all as they are seen from the present folder."""
    from sfumato.recipes.parts import Source, located

    resources = {
        name: each if each.is_builtin else replace(each, path=str(located(each.path, plan.folder)))
        for name, each in plan.resources.items()
    }
    for column, path in _hierarchies(options):
        resources[_resource(column)] = Source(path, holds="hierarchy")
    for name, path in _pairs(options.get("resource_files", ()), "--resource", "NAME"):
        resources[name] = Source(path)
    series = plan.series and plan.series.seen_from(Path(), now=plan.folder)
    output = keyed(plan, Path(), options)
    plan = replace(plan, resources=resources, output=output, series=series, folder=Path())
    return controlled(plan, options)


def keyed(plan: Plan, folder: Path, options: Mapping[str, Any]) -> Output:
    """The plan's output with its key of pseudonyms as seen from another folder, or that of the options."""
    from sfumato.recipes.parts import located

    own = options.get("pseudonym_key") or ""
    key = Path(own) if own else located(plan.output.pseudonym_key, plan.folder)
    if not (own or plan.output.pseudonym_key) or not isinstance(key, Path):
        return plan.output
    return replace(plan.output, pseudonym_key=os.path.relpath(key, folder))


def controlled(plan: Plan, options: Mapping[str, Any]) -> Plan:
    """The plan with the control that the options name: a share of the persons, or a file of others."""
    from sfumato.recipes.parts import Source
    from sfumato.study.evaluate import require_share

    said = options.get("control", "")
    if not said:
        return plan
    share = _number(said)
    if share is not None:
        require_share(share)
        others = {name: each for name, each in plan.resources.items() if name != CONTROL}
        parts = {name: controlled(part, options) for name, part in plan.tables.items()}
        return replace(plan, control=share, resources=others, tables=parts)
    if plan.tables:
        raise ParameterError(
            "`--control` must be a share of the persons for a plan of several tables, got: a file",
            hint="in the plan each table can name one as its resource `control`",
        )
    is_file = not said.startswith("builtin:") and not is_address(said)
    place = os.path.relpath(said, plan.folder) if is_file else said
    return replace(plan, control=0.0, resources={**plan.resources, CONTROL: Source(place)})


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def declared(schema: Schema, options: Mapping[str, Any]) -> Schema:
    """A schema whose columns have the hierarchies that the options name."""
    for column, _ in _hierarchies(options):
        if column not in schema:
            raise UnknownNameError.of("column", column, schema.names)
        schema = schema.replace(replace(schema[column], hierarchy=_resource(column)))
    return schema


def files_named(options: Mapping[str, Any]) -> list[str]:
    """The files that the options name, which must not be overwritten."""
    named = [*_hierarchies(options), *_pairs(options.get("resource_files", ()), "--resource", "NAME")]
    plan = [str(options["plan_path"])] if options.get("plan_path") else []
    control = options.get("control", "")
    plan += [control] if control and _number(control) is None else []
    return [path for path in [path for _, path in named] + plan if not path.startswith("builtin:")]


def _hierarchies(options: Mapping[str, Any]) -> list[tuple[str, str]]:
    return _pairs(options.get("hierarchy_files", ()), "--hierarchy", "COLUMN")


def _resource(column: str) -> str:
    return f"hierarchy of {column}"


def _pairs(values: tuple[str, ...], option: str, left: str) -> list[tuple[str, str]]:
    """Read ``name=file``; a name may hold an equals sign only if the file's does not."""
    pairs = []
    for value in values:
        name, sign, path = value.rpartition("=")
        if not sign or not name or not path:
            raise ParameterError(f"`{option}` must be written {left}=FILE, got: `{value}`")
        pairs.append((name, path))
    return pairs


def sourced(source: str) -> Plan:
    """The plan that a source stands for: a plan itself, or one that names the file and says nothing else."""
    from sfumato.front import is_plan
    from sfumato.recipes.parts import Source
    from sfumato.recipes.plan import Plan

    return Plan.read(Path(source)) if is_plan(source) else Plan(Source(source))
