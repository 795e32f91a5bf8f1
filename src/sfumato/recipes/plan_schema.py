"""The JSON Schema of a plan, from what the code declares: parts, columns, steps and their parameters."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import EnumType
from typing import Any

from sfumato.core import registry
from sfumato.core.method import Method
from sfumato.core.params import Columns, Param, Requirements
from sfumato.core.requirement import Requirement
from sfumato.data.rules import Rule
from sfumato.data.scenario import CONTROL
from sfumato.recipes.parts import Source
from sfumato.recipes.plan import PlanParts
from sfumato.recipes.step import Step, StepSpec

Spec = dict[str, Any]

_TEXT: Spec = {"type": "string"}
_TYPES: Mapping[Any, Spec] = {
    str: _TEXT,
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    Any: {},
    Requirement: _TEXT,
    Rule: _TEXT,
}
#: The words for bounds in a schema.
_BOUNDS = {"gt": "exclusiveMinimum", "ge": "minimum", "lt": "exclusiveMaximum", "le": "maximum"}
#: What a parameter that is a list of texts takes: names of columns, requirements.
_TEXTS: Spec = {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}]}


def plan_schema() -> Spec:
    """The schema (draft 2020-12) that every plan fits; what does not fit together is found by reading it."""
    spec = _record(PlanParts)
    spec["properties"]["tables"] = {"type": "object", "additionalProperties": {"$ref": "#"}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:sfumato:plan",
        "title": "Plan of a release",
        "description": "A plan is a TOML file; this is the schema of what it says, as JSON.",
        **spec,
    }


def _record(cls: type, given: tuple[str, ...] = ()) -> Spec:
    """The table for a record: the keys that are known, those that are required."""
    hints = typing.get_type_hints(cls)
    known = [item for item in fields(cls) if item.init and item.name not in given]
    keys = {item.name: item.metadata.get("key", item.name) for item in known}
    parts = {
        keys[item.name]: {} if "prepare" in item.metadata else _value(hints[item.name]) for item in known
    }
    required = [
        keys[item.name] for item in known if item.default is MISSING and item.default_factory is MISSING
    ]
    if cls is Source:  # the share of a control group is said with the data, perhaps alone
        parts[CONTROL], required = {"type": "number", "minimum": 0, "exclusiveMaximum": 1}, []
    return {
        "type": "object",
        "properties": parts,
        **({"required": required} if required else {}),
        "additionalProperties": False,
    }


def _value(hint: Any) -> Spec:
    """What a type hint takes."""
    if hint in _TYPES:
        return _TYPES[hint]
    if hint is Step:
        return _step()
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if isinstance(hint, EnumType):
        members: list[Any] = list(hint)
        return {"enum": [each.value for each in members]}
    if origin is typing.Literal:
        return {"enum": list(inner)}
    if origin is types.UnionType:
        return {"anyOf": [_value(each) for each in inner if each is not types.NoneType]}
    return _container(origin, inner) if inner else _record(hint)


def _container(origin: Any, inner: tuple[Any, ...]) -> Spec:
    """What a list of equal values, a list of certain ones, or a table takes."""
    if origin is Mapping:
        return {"type": "object", "additionalProperties": _record_by_name(inner[1])}
    if inner[-1] is Ellipsis:
        return {"type": "array", "items": _value(inner[0])}
    return {"type": "array", "prefixItems": [_value(each) for each in inner], "items": False}


def _record_by_name(hint: Any) -> Spec:
    """A record by its name in a table, which it does not say again."""
    is_named = is_dataclass(hint) and any(item.name == "name" for item in fields(hint))
    return _record(hint, ("name",)) if is_named else _value(hint)


def _step() -> Spec:
    """A step: a method by any of its names, with the parameters of just that one."""
    methods = registry.methods().values()
    spec = _record(StepSpec)
    spec["properties"]["method"] = {"enum": [name for each in methods for name in _names(each)]}
    spec["allOf"] = [
        {
            "if": {"properties": {"method": {"enum": _names(each)}}},
            "then": {"properties": {"parameters": _parameters(each)}},
        }
        for each in methods
    ]
    return spec


def _names(method: type[Method]) -> list[str]:
    return [method.name, *method.aliases]


def _parameters(method: type[Method]) -> Spec:
    parts = {declared.name: _parameter(declared) for declared in method.parameters()}
    return {"type": "object", "properties": parts, "additionalProperties": False}


def _parameter(declared: Param) -> Spec:
    """The domain of a parameter, for all columns or by column."""
    if declared.type in {Columns, Requirements}:
        spec = dict(_TEXTS)
    elif declared.choices:
        spec = {"enum": [*declared.choices, *declared.renamed]}
    else:
        kind = next((each for each in (bool, int, float) if declared.type is each), str)
        bounds = {word: getattr(declared, name) for name, word in _BOUNDS.items()}
        spec = {**_TYPES[kind], **{word: bound for word, bound in bounds.items() if bound is not None}}
    if declared.per_column:
        spec = {"anyOf": [spec, {"type": "object", "additionalProperties": spec}]}
    return {**spec, "description": declared.help}
