"""Fields of a form, made from declared parameters: bounds and choices stand in the declaration alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from sfumato.core.parameter_types import PerColumn
from sfumato.core.params import Columns, Param, Parameters, Requirements

#: Steps of a slider whose parameter is no whole number.
_SLIDER_STEPS = 200


@dataclass(frozen=True)
class Field:
    """One field: how it is asked for (``widget``), what it is called, what it means, and what it holds."""

    name: str
    label: str
    widget: str
    help: str
    domain: str
    value: Any
    unit: str = ""
    choices: Mapping[str, str] = field(default_factory=dict)
    slider: tuple[float, float, float] | None = None
    advanced: bool = False
    when: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON."""
        return asdict(self)


def field_of(declared: Param, value: Any = None) -> Field:
    """Make the field of a parameter: what `option_of` is for the command line."""
    value = declared.default if value is None else value
    return Field(
        declared.name,
        declared.label or declared.name.replace("_", " "),
        _widget(declared),
        declared.help,
        declared.domain,
        _as_text(value),
        declared.unit,
        _choices(declared),
        _slider(declared),
        declared.advanced,
        str(declared.when or ""),
    )


def fields_of(thing: Parameters) -> list[Field]:
    """The fields of a method or measure, with its settings; those for few last."""
    fields = [field_of(each, getattr(thing, each.name)) for each in type(thing).parameters()]
    return sorted(fields, key=lambda each: each.advanced)


def _choices(declared: Param) -> dict[str, str]:
    """The choices, each with its sentence; what may be left to the method has an empty one."""
    if declared.type is bool and declared.optional:
        return {"": "as the method decides", "true": "yes", "false": "no"}
    empty = {"": "nothing"} if declared.choices and declared.optional else {}
    return {**empty, **declared.choices}


def _widget(declared: Param) -> str:
    if _choices(declared) and not declared.per_column:
        return "choice"
    if declared.holds:
        return "resource"
    if declared.per_column:
        return "text"
    widgets = {
        bool: "switch",
        Columns: "columns",
        Requirements: "requirements",
        int: "number",
        float: "number",
    }
    return widgets.get(declared.type, "text")


def _slider(declared: Param) -> tuple[float, float, float] | None:
    """From where to where a slider goes, and its step."""
    if declared.tune is None or declared.type not in {int, float} or declared.per_column:
        return None
    low, high = declared.tune
    return low, high, 1 if declared.type is int else (high - low) / _SLIDER_STEPS


def _as_text(value: Any) -> Any:
    """A value as a form holds it; by column it is written as on the command line."""
    if isinstance(value, PerColumn):
        exceptions = [f"{name}={text}" for name, text in value.exceptions]
        return ", ".join([str(value.default), *exceptions])
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return "" if value is None else value


def settings_from(cls: type[Parameters], values: Mapping[str, Any]) -> Any:
    """The method or measure that a form asks for; what is left empty keeps its default."""
    settings = {}
    for declared in cls.parameters():
        if declared.name in values and (found := _read(declared, values[declared.name])) is not None:
            settings[declared.name] = found
    return cls(**settings)


def _read(declared: Param, text: Any) -> Any:
    """What a text of a form means; the parameter itself checks its bounds, so the message is the same."""
    if not isinstance(text, str):
        return text
    text = text.strip()
    if declared.type is bool:
        return text in {"on", "true", "yes"} if text or not declared.optional else None
    if declared.per_column and text:
        pairs = [each.rpartition("=") for each in text.split(",")]
        table = {name.strip() or "default": _number(declared, part.strip()) for name, _, part in pairs}
        return table if set(table) != {"default"} else table["default"]
    if declared.type in {Columns, Requirements}:
        return tuple(each.strip() for each in text.split(",") if each.strip())
    return _number(declared, text) if text else None


def _number(declared: Param, text: str) -> Any:
    if declared.type not in {int, float}:
        return text
    try:
        return float(text)
    except ValueError:
        return text
