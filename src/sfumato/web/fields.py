"""Fields of a form, made from declared parameters: bounds and choices stand in the declaration alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from sfumato.core.parameter_types import REQUIREMENT, PerColumn
from sfumato.core.params import Columns, Param, Parameters, Requirements
from sfumato.errors import ParameterError

#: Steps of a slider whose parameter is no whole number.
_SLIDER_STEPS = 200
#: Of more columns the names are typed: nobody looks through so many boxes, and no page holds them.
_MOST_BOXES = 100
#: What a form says beside the settings of a method: no parameter can have these names.
RESERVED_NAMES = frozenset({"action", "number", "version", "columns"})

#: What a form says: each name with all that was sent under it.
Texts = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class FormContext:
    """What a form can offer beside what is declared.

    ``columns`` and ``measures`` are names with what they are; ``protected`` the columns of the step, each of
    which has a row in a table by column; ``resources`` are names and files with what they are, by what they
    hold.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    protected: tuple[str, ...] = ()
    measures: Mapping[str, str] = field(default_factory=dict)
    resources: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Field:
    """One field: how it is asked for (``widget``), what it is called, what it means, and what it holds.

    ``by_column`` has the values of single columns, empty where it is that of all; ``when`` the setting that
    it belongs to, also as the name and values of that; ``fault`` is what is wrong with what was entered.
    """

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
    when_parameter: str = ""
    when_values: tuple[str, ...] = ()
    by_column: Mapping[str, Any] | None = None
    fault: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON."""
        return asdict(self)

    def refill(self, texts: Texts, fault: str = "") -> Field:
        """The field as someone has filled it in, and what is wrong with that."""
        rows = None
        if self.by_column is not None:
            rows = {name: text_of(texts, f"{self.name}:{name}") for name in self.by_column}
        value: Any = text_of(texts, self.name)
        if self.widget == "columns":
            value = _lines(texts.get(self.name, ()))
        elif self.widget == "requirements":
            value = [_cut_requirement(text) for text in _requirements(self.name, texts)]
        elif self.widget == "switch":
            value = value == "true"
        return replace(self, value=value, by_column=rows, fault=fault)


def field_of(declared: Param, value: Any = None, context: FormContext = FormContext()) -> Field:
    """Make the field of a parameter: what `option_of` is for the command line."""
    value = declared.default if value is None else value
    rows = None
    if declared.per_column:
        named = dict(value.exceptions) if isinstance(value, PerColumn) else {}
        rows = {name: _as_text(named.get(name)) for name in (*context.protected[:_MOST_BOXES], *named)}
        value = value.default if isinstance(value, PerColumn) else value
    widget, when = _widget(declared), declared.when
    return Field(
        name=declared.name,
        label=declared.label,
        widget="names" if widget == "columns" and len(context.columns) > _MOST_BOXES else widget,
        help=declared.help,
        domain=declared.domain,
        value=_as_value(widget, value),
        unit=declared.unit,
        choices=_choices(declared, value, context),
        slider=_slider(declared),
        advanced=declared.advanced,
        when=str(when or ""),
        when_parameter=when.parameter if when else "",
        when_values=tuple(str(each).lower() for each in when.values) if when else (),
        by_column=rows,
    )


def fields_of(thing: Parameters, context: FormContext = FormContext()) -> list[Field]:
    """The fields of a method or measure, with its settings; those for few last."""
    fields = [field_of(each, getattr(thing, each.name), context) for each in type(thing).parameters()]
    return sorted(fields, key=lambda each: each.advanced)


def field_of_columns(columns: Sequence[str], takes: Mapping[str, str]) -> Field:
    """The field for the columns of a step, of those that its method can take."""
    return Field(
        name="columns",
        label="Columns",
        widget="names" if len(takes) > _MOST_BOXES else "columns",
        help="None chosen: the quasi-identifiers that the method can take.",
        domain="names of columns, or @key, @continuous …",
        value=list(columns),
        choices={**dict.fromkeys(columns, ""), **takes},
    )


def _choices(declared: Param, value: Any, context: FormContext) -> dict[str, str]:
    """The choices, each with its sentence; what may be left to the method has an empty one."""
    if declared.type is Columns:
        return {**dict.fromkeys(value, ""), **context.columns}
    if declared.type is Requirements:
        return {**{_cut_requirement(each)["measure"]: "" for each in value}, **context.measures}
    if declared.holds:
        there = {str(value): ""} if value else {}
        return {"": "nothing", **there, **context.resources.get(declared.holds, {})}
    if declared.type is bool and declared.optional:
        return {"": "as the method decides", "true": "yes", "false": "no"}
    empty = {"": "nothing"} if declared.choices and declared.optional else {}
    return {**empty, **declared.choices}


def _widget(declared: Param) -> str:
    if declared.choices or declared.holds or (declared.type is bool and declared.optional):
        return "choice"
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
    if declared.tune is None or declared.type not in {int, float}:
        return None
    low, high = declared.tune
    return low, high, 1 if declared.type is int else (high - low) / _SLIDER_STEPS


def _as_value(widget: str, value: Any) -> Any:
    """A value as a field of this sort holds it."""
    if widget == "columns":
        return list(value or ())
    if widget == "requirements":
        return [_cut_requirement(each) for each in value or ()]
    return value if widget == "switch" else _as_text(value)


def _as_text(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else value


def _cut_requirement(text: str) -> dict[str, str]:
    """A requirement as its measure with any settings, its sign, and its level with any confidence."""
    match = REQUIREMENT.match(text)
    if match is None:
        measure, sign, level = re.match(r"([^<>]*)([<>]=?)?(.*)", text, re.DOTALL).groups()  # type: ignore[union-attr]
        return {"measure": measure.strip(), "sign": sign or ">=", "level": level.strip()}
    sign = match["sign"]
    measure, _, level = text.partition(sign)
    return {"measure": measure.strip(), "sign": sign, "level": level.strip()}


# What was filled in -------------------------------------------------------------------------------------


def settings_from(cls: type[Parameters], texts: Texts) -> tuple[dict[str, Any], dict[str, str]]:
    """What a form says of a method or measure, and by name what is wrong with it.

    What is left empty keeps its default. Each parameter checks its own bounds, so that the message is the
    same everywhere.
    """
    settings, faults = dict[str, Any](), dict[str, str]()
    for declared in cls.parameters():
        found = _read(declared, texts)
        if found is None:
            continue
        try:
            settings[declared.name] = declared.clean(found, owner=cls.name)
        except ParameterError as error:
            faults[declared.name] = error.line
    return settings, faults


def _read(declared: Param, texts: Texts) -> Any:
    """What a form says of a parameter; None where it says nothing."""
    name = declared.name
    if declared.type is Columns:
        return names_in(texts, name)
    if declared.type is Requirements:
        return _requirements(name, texts) if {name, f"{name}.level"} & texts.keys() else None
    value = _scalar(declared, text_of(texts, name))
    if not declared.per_column:
        return value
    rows = {
        each.removeprefix(f"{name}:"): _scalar(declared, text_of(texts, each))
        for each in texts
        if each.startswith(f"{name}:")
    }
    rows = {column: found for column, found in rows.items() if found is not None}
    return {**({} if value is None else {"default": value}), **rows} if rows else value


def _scalar(declared: Param, text: str) -> Any:
    text = text.strip()
    if not text:
        return None
    if declared.type is bool:
        return text in {"on", "true", "yes"}
    if declared.type not in {int, float}:
        return text
    try:
        return int(text) if re.fullmatch(r"-?[0-9]{1,15}", text) else float(text)
    except ValueError:
        return text


def text_of(texts: Texts, name: str) -> str:
    """What was sent last under a name: a box that is ticked comes after the word for one that is not."""
    return texts[name][-1] if texts.get(name) else ""


def names_in(texts: Texts, name: str) -> tuple[str, ...] | None:
    """The columns that a form chooses; None where it does not ask for any."""
    return tuple(_lines(texts[name])) if name in texts else None


def _lines(texts: Iterable[str]) -> list[str]:
    """Names, each sent by itself or on a line of its own."""
    return [line for text in texts for line in re.split("\r?\n", text) if line.strip()]


def _requirements(name: str, texts: Texts) -> list[str]:
    """Requirements, each sent in three parts or as one text; rows that are left empty are none."""
    parts = (texts.get(f"{name}.{part}", ()) for part in ("measure", "sign", "level"))
    rows = [f"{measure} {sign} {level}" for measure, sign, level in zip(*parts, strict=False) if measure]
    return [*rows, *(text for text in texts.get(name, ()) if text.strip())]
