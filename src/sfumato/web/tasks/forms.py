"""The form of a step: what its fields can offer from this table, this plan and this folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from sfumato.core import registry
from sfumato.core.method import Method
from sfumato.core.params import Requirements
from sfumato.data.schema import Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.io.formats import FORMATS
from sfumato.recipes.parts import Source
from sfumato.recipes.plan import Plan
from sfumato.recipes.step import Step
from sfumato.web.fields import Field, FormContext, Texts, field_of_columns, fields_of

#: What a form sends for a file that is no resource of the plan yet.
_FILE = "file:"


def fields_of_step(step: Step, plan: Plan, table: Table) -> list[Field]:
    """The fields of a step: its columns, then the settings of its method."""
    columns = _columns(table.schema)
    takes = {
        name: what
        for name, what in columns.items()
        if name.startswith("@") or table.schema[name].kind in step.method.kinds
    }
    context = FormContext(columns, step.resolve(table.schema), _measures(type(step.method)), _resources(plan))
    return [field_of_columns(step.columns, takes), *fields_of(step.method, context)]


def _columns(schema: Schema) -> dict[str, str]:
    """Groups of columns that there are here, and the columns, each with what it is."""
    groups = {f"@{word}": f"all {word} columns" for word in (*Role, *Kind) if schema.resolve([f"@{word}"])}
    single = {
        each.name: f"{each.kind}, {each.role}" if each.role else str(each.kind) for each in schema.columns
    }
    return {**groups, **single}


def _measures(cls: type[Method]) -> Mapping[str, str]:
    """The measures that can be required, if a method asks for any: all are imported for it."""
    if not any(each.type is Requirements for each in cls.parameters()):
        return {}
    able = [each for each in registry.measures().values() if each.aspect == "risk"]
    return {each.name: each.title for each in able if not each.tells.why_not_required}


def _resources(plan: Plan) -> dict[str, dict[str, str]]:
    """The plan's resources and the files of the folder, by what they hold or could hold."""
    there = {each.path for each in (*plan.resources.values(), *([plan.data] if plan.data else []))}
    files = sorted(each.name for each in Path().iterdir() if each.is_file() and each.name[0] != ".")
    found: dict[str, dict[str, str]] = {"table": {}, "hierarchy": {}}
    for name, source in plan.resources.items():
        found[source.holds][name] = f"of the plan, in {source.path}"
    for name in files:
        kind = FORMATS.get(Path(name).suffix.lower())
        if kind is None or name in there:
            continue
        found["table"][f"{_FILE}{name}"] = "a file of this folder"
        if kind == "delimited":
            found["hierarchy"][f"{_FILE}{name}"] = "a file of this folder"
    return found


def with_chosen_files(plan: Plan, cls: type[Method], texts: Texts) -> tuple[Plan, Texts]:
    """The plan with the files that a form chooses as resources, and the form with their names."""
    offered, resources, changed = _resources(plan), dict(plan.resources), dict(texts)
    for declared in cls.parameters():
        own = [each for each in texts if each.partition(":")[0] == declared.name]
        for field in own if declared.holds else ():
            chosen = texts[field][-1]
            if not chosen.startswith(_FILE) or chosen not in offered[str(declared.holds)]:
                continue
            path = chosen.removeprefix(_FILE)
            name = next(each for each in _names(path) if each not in plan.resources)
            resources[name] = Source(path, holds=declared.holds or "table")
            changed[field] = [name]
    return replace(plan, resources=resources), changed


def _names(path: str) -> list[str]:
    """What the resource of a file can be called."""
    stem = Path(path).stem
    return [stem, *(f"{stem} {number}" for number in range(2, 1000))]
