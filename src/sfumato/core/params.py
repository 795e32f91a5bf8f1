"""Parameters as data: declared once, beside the thing they steer.

From one ``param(...)`` derive the validation and its message, the command-line option, the web field, the
docs row, the tuner's range and the test's strategy. Nothing else in the code knows a bound.
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import cache
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self, cast, dataclass_transform

import numpy as np

from sfumato.core.notation import same_word
from sfumato.core.parameter_types import Columns, PerColumn, Requirements, Resource, as_names, as_requirements
from sfumato.errors import ParameterError, PlanError, UnknownNameError, note_renamed

__all__ = [
    "Columns", "Condition", "Holds", "Param", "Parameters", "PerColumn", "Requirements", "Resource",
    "param",
]  # fmt: skip

Scalar = float | int | bool | str
Bound = float | int | None
Holds = Literal["table", "hierarchy"]


#: What values there are of a type, where neither bounds nor choices say it.
_WORDS: dict[type, str] = {
    Columns: "names of columns, or @key, @continuous …",
    Requirements: "requirements such as `l >= 3`",
    bool: "true or false",
}


@dataclass(frozen=True, slots=True)
class Condition:
    """The setting that a parameter belongs to: another parameter, with one of these values.

    Without values the other parameter must be set at all.
    """

    parameter: str
    values: tuple[str | bool, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``centre=median``, ``centre=mean|median``, ``exact=true`` or ``population``."""
        name, sign, values = text.partition("=")
        words = values.split("|") if sign else []
        return cls(name, tuple({"true": True, "false": False}.get(word, word) for word in words))

    def holds(self, settings: Mapping[str, Any]) -> bool:
        """Whether a parameter under this condition has an effect with these settings."""
        value = settings.get(self.parameter)
        return value in self.values if self.values else bool(value)

    def unknown_in(self, declared: Mapping[str, Param]) -> bool:
        """Whether it names a parameter or a value that is not there."""
        other = declared.get(self.parameter)
        return other is None or not all(other.accepts(value) for value in self.values)

    def __str__(self) -> str:
        if not self.values:
            return f"`{self.parameter}`"
        return f"`{self.parameter}` = {' or '.join(str(value).lower() for value in self.values)}"


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter: everything validation, doors, docs, tuner and tests need to know."""

    name: str
    type: type
    default: Any
    help: str
    gt: Bound = None
    ge: Bound = None
    lt: Bound = None
    le: Bound = None
    choices: Mapping[str, str] = dataclasses.field(default_factory=dict)  # each with a sentence
    unit: str = ""
    symbol: str = ""
    log: bool = False
    tune: tuple[float, float] | None = None
    drive: bool = False
    per_column: bool = False
    holds: Holds | None = None
    optional: bool = False
    hint: str = ""
    renamed: Mapping[str, str] = dataclasses.field(default_factory=dict)
    synonyms: Mapping[str, str] = dataclasses.field(default_factory=dict)  # other names of choices
    label: str = ""
    advanced: bool = False
    when: Condition | None = None

    @property
    def explanation(self) -> str:
        """The help in full: with what each choice means, and the setting that it belongs to."""
        means = [f"`{choice}`: {sentence}" for choice, sentence in self.choices.items() if sentence]
        other = [f"`{choice}` is also called {word}." for word, choice in self.synonyms.items()]
        return " ".join([self.help, *means, *other, *([f"Only with {self.when}."] if self.when else [])])

    def choice_of(self, word: str) -> str | None:
        """The choice that a word means, in whatever notation."""
        named = {**{choice: choice for choice in self.choices}, **self.renamed, **self.synonyms}
        return next((choice for name, choice in named.items() if same_word(name) == same_word(word)), None)

    @property
    def domain(self) -> str:
        """The values allowed, in words: ``a number above 0 and at most 100``."""
        words = self._scalar_domain()
        if self.per_column:
            words += ", for all columns or by column"
        return f"{words}, or nothing" if self.optional else words

    def _scalar_domain(self) -> str:
        if self.type in _WORDS:
            return _WORDS[self.type]
        if self.holds:
            return f"the name of a resource that holds a {self.holds}"
        if self.choices:
            return "one of " + ", ".join(self.choices)
        if self.type is str:
            return "a text"
        noun = "a whole number" if self.type is int else "a number"
        limits = [
            f"{word} {_plain(bound)}"
            for word, bound in (
                ("above", self.gt),
                ("at least", self.ge),
                ("below", self.lt),
                ("at most", self.le),
            )
            if bound is not None
        ]
        return f"{noun} {' and '.join(limits)}" if limits else noun

    def read(self, text: str) -> Any:
        """The value that a text means: ``5``, ``true``, ``age+sex``; `clean` says what is wrong with it."""
        if self.type is bool:
            return {"true": True, "false": False}.get(text.lower(), text)
        if self.type is Columns:
            return text.split("+") if text else []
        if self.type is Requirements:
            return Requirements.split(text)
        for number in (int, float) if self.type in {int, float} else ():
            try:
                return number(text)
            except ValueError:
                continue
        return text

    def accepts(self, value: object) -> bool:
        """Whether ``value`` lies in the domain."""
        try:
            self.clean(value, owner="")
        except ParameterError:
            return False
        return True

    def clean(self, value: object, *, owner: str) -> Any:
        """Return ``value`` in the declared type, or raise with the domain in words."""
        if value is None and self.optional:
            return None
        if not self.per_column:
            return self._scalar(value, owner)
        if isinstance(value, PerColumn):
            if "default" in value.columns:  # a plan could not tell it from the value for all others
                raise ParameterError(f"`{self.name}` cannot have an exception for a column named `default`")
            value = value.to_plain()
        if not isinstance(value, Mapping):
            return PerColumn(self._scalar(value, owner))
        by_column = {name: self._scalar(v, owner) for name, v in value.items()}
        default = by_column.pop("default", None)
        if default is None:
            default = self.default.default if isinstance(self.default, PerColumn) else self.default
        return PerColumn(default, tuple(sorted(by_column.items())))

    def _scalar(self, value: object, owner: str) -> Any:
        cleaned = _as_type(value, self.type)
        if self.renamed and cleaned in self.renamed:
            note_renamed(f"`{self.name}` =", cleaned, self.renamed[cleaned])
            cleaned = self.renamed[cleaned]
        if cleaned is None or not self._is_within(cleaned):
            whose = f" of {owner}" if owner else ""
            meant = self.choice_of(value) if isinstance(value, str) else None
            raise ParameterError(
                f"`{self.name}`{whose} must be {self.domain}, got: {_quote_value(value)}",
                hint=f"here it is `{meant}`" if meant else self.hint,
            )
        return cleaned

    def _is_within(self, value: Any) -> bool:
        if self.choices:
            return value in self.choices
        if not isinstance(value, int | float) or isinstance(value, bool):
            return True
        return (
            (self.gt is None or value > self.gt)
            and (self.ge is None or value >= self.ge)
            and (self.lt is None or value < self.lt)
            and (self.le is None or value <= self.le)
        )

    def position(self, value: float) -> float:
        """Where ``value`` lies on the axis that searches move along."""
        return math.log(value) if self.log else float(value)

    def at(self, position: float) -> float | int:
        """The value nearest to a position on the search axis, inside the range worth searching."""
        value = math.exp(position) if self.log else position
        low, high = self._range()
        value = min(max(value, low), high)
        return round(value) if self.type is int else value

    def grid(self, count: int, *, low: float | None = None, high: float | None = None) -> list[float | int]:
        """Make up to ``count`` values spread over the range worth searching, lowest first."""
        bottom, top = self._range()
        bottom = bottom if low is None else min(max(bottom, low), top)
        top = top if high is None else max(min(top, high), bottom)
        start, end = self.position(bottom), self.position(top)
        inside = {self.at(start + i * (end - start) / (count - 1)) for i in range(1, count - 1)}
        ends = {bottom, top} if count > 1 else {top}
        return sorted(inside | {round(end) if self.type is int else float(end) for end in ends})

    def _range(self) -> tuple[float, float]:
        if self.tune is None:
            raise ParameterError(f"`{self.name}` has no range to search")
        return self.tune

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON (``sfumato methods --json``)."""
        facts = {item.name: getattr(self, item.name) for item in dataclasses.fields(self)}
        facts["type"] = self.type.__name__
        facts["choices"], facts["choice_help"] = list(self.choices), dict(self.choices)
        facts["when"] = dataclasses.asdict(self.when) if self.when else None
        facts["tune"] = list(self.tune) if self.tune else None
        return {**facts, "domain": self.domain}


#: The sorts that are lists of texts, and how each is read.
_LISTS: dict[type, Callable[[object], Any]] = {Columns: as_names, Requirements: as_requirements}


def _as_type(value: object, kind: type) -> Any:
    """Convert without loss, or return None: 50 is the float 50.0, 5.0 the integer 5, but 5.5 is neither."""
    if kind is bool:
        return bool(value) if isinstance(value, bool | np.bool_) else None
    if kind in {str, Resource}:
        return kind(value) if isinstance(value, str) else None
    if kind in _LISTS:
        return _LISTS[kind](value)
    return None if isinstance(value, bool) or not isinstance(value, Real) else _as_number(value, kind)


def _as_number(value: Real, kind: type) -> float | int | None:
    if kind is int and isinstance(value, Integral):
        return int(value)
    try:
        number = float(value)
    except OverflowError:
        return None
    if not math.isfinite(number):
        return None
    if kind is int:
        return int(number) if number.is_integer() else None
    return number


def _quote_value(value: object) -> str:
    """Quote a value that was given for a parameter; of anything but a plain one only its type is said.

    Somebody may have given a column of the data, whose cells must not stand in a message.
    """
    plain = value is None or isinstance(value, str | bool | Real)
    return f"`{value}`" if plain else f"a `{type(value).__name__}`"


def _plain(bound: float) -> str:
    return f"{bound:g}"


def param(
    default: Any,
    help: str,  # noqa: A002  — the word click, argparse and our docs use
    *,
    gt: Bound = None,
    ge: Bound = None,
    lt: Bound = None,
    le: Bound = None,
    unit: str = "",
    symbol: str = "",
    log: bool = False,
    tune: tuple[float, float] | None = None,
    drive: bool = False,
    holds: Holds | None = None,
    hint: str = "",
    renamed: Mapping[str, str] | None = None,
    choices: Mapping[str, str] | None = None,
    synonyms: Mapping[str, str] | None = None,
    label: str = "",
    advanced: bool = False,
    when: str = "",
) -> Any:
    """Declare one parameter of a method or measure; its type is the field's annotation.

    Annotate with ``float``, ``int``, ``bool``, ``str``, ``Literal[...]``, ``PerColumn[float]``, ``Columns``,
    ``Requirements`` or ``Resource``; add ``| None`` where nothing is a choice. ``drive`` marks the one
    parameter that a level search moves, within ``tune``; ``renamed`` says what former choices are called.
    ``choices`` has a sentence for each value of a ``Literal``, ``synonyms`` what others call these values.
    Forms show the ``label`` (of the name, unless given), hide at first what is ``advanced``, and ask for what
    belongs to another setting only ``when="centre=median"`` holds, see `Condition`.
    """
    facts = {
        "help": help, "gt": gt, "ge": ge, "lt": lt, "le": le, "unit": unit, "symbol": symbol, "log": log,
        "tune": tune, "drive": drive, "holds": holds, "hint": hint, "renamed": renamed or {},
        "synonyms": synonyms or {}, "choices": choices or {}, "label": label, "advanced": advanced,
        "when": when,
    }  # fmt: skip
    return dataclasses.field(default=default, metadata={"param": facts})


# Not naming `param` as a field specifier makes type checkers read `x: float = param(5.0, …)` as a default.
@dataclass_transform(frozen_default=True, kw_only_default=True)
class Parameters:
    """A frozen set of checked parameters: equal, hashable, picklable, and able to say itself."""

    name: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        dataclass(frozen=True, kw_only=True)(cls)

    def __post_init__(self) -> None:
        for declared in self.parameters():
            cleaned = declared.clean(getattr(self, declared.name), owner=self.name)
            object.__setattr__(self, declared.name, cleaned)

    @classmethod
    def parameters(cls) -> tuple[Param, ...]:
        """The declared parameters, in order."""
        return _declare_params(cast("Hashable", cls))

    @classmethod
    def parameter(cls, name: str) -> Param:
        """One declared parameter by name."""
        for declared in cls.parameters():
            if declared.name == name:
                return declared
        known = [declared.name for declared in cls.parameters()]
        raise UnknownNameError.of(f"parameter of {cls.name}", name, known)

    @classmethod
    def drive(cls) -> Param | None:
        """The one parameter that level search moves, or None."""
        return next((declared for declared in cls.parameters() if declared.drive), None)

    @classmethod
    def from_dict(cls, payload: Mapping[str, Any]) -> Self:
        """Make an instance, gathering every fault among the parameters."""
        known = {declared.name: declared for declared in cls.parameters()}
        faults = []
        for key, value in payload.items():
            try:
                if key not in known:
                    raise UnknownNameError.of(f"parameter of {cls.name}", key, known)
                known[key].clean(value, owner=cls.name)
            except (ParameterError, UnknownNameError) as error:
                faults.append(error)
        if len(faults) == 1:
            raise faults[0]
        if faults:
            raise PlanError.gather(cls.name, [error.message for error in faults])
        return cls(**payload)

    def to_dict(self) -> dict[str, Any]:
        """Say every parameter, so that a plan still means the same when a default changes."""
        payload = {declared.name: getattr(self, declared.name) for declared in self.parameters()}
        return {key: _plan_value(value) for key, value in payload.items() if value is not None}

    def __str__(self) -> str:
        """The name, with the settings that are not default: ``mdav``, ``mdav(k=3)``."""
        default = {
            declared.name: declared.clean(declared.default, owner="") for declared in self.parameters()
        }
        settings = [
            f"{key}={getattr(self, key) if isinstance(value, list) else value}"
            for key, value in self.to_dict().items()
            if getattr(self, key) != default[key]
        ]
        return f"{self.name}({', '.join(settings)})" if settings else self.name

    def with_drive(self, value: float) -> Self:
        """Make the same with another value of the drive parameter."""
        drive = self.drive()
        if drive is None:
            raise ParameterError(f"{self.name} has no parameter to vary")
        changed: Self = dataclasses.replace(cast("Any", self), **{drive.name: value})
        return changed


def _plan_value(value: Any) -> Any:
    """Say a value as a plan does."""
    if isinstance(value, PerColumn):
        return value.to_plain()
    return list(value) if isinstance(value, Columns | Requirements) else value


@cache
def _declare_params(cls: Any) -> tuple[Param, ...]:
    hints = typing.get_type_hints(cls)
    declared = {item.name: _declare(cls, item, hints[item.name]) for item in dataclasses.fields(cls)}
    for each in declared.values():
        if each.when is not None and each.when.unknown_in(declared):
            raise TypeError(f"{cls.__name__}.{each.name} must belong to a setting that exists: {each.when}")
    return tuple(declared.values())


def _declare(cls: Any, item: dataclasses.Field[Any], hint: Any) -> Param:
    """Put together what the annotation and ``param(...)`` say of one field."""
    if "param" not in item.metadata:
        raise TypeError(f"{cls.__name__}.{item.name} must be declared with param(...)")
    facts = dict(item.metadata["param"])
    kind, more = _read_annotation(hint)
    if more.get("optional") and item.default is not None:  # a plan says nothing by leaving it out
        raise TypeError(f"{cls.__name__}.{item.name} may be None, so None must be its default")
    sentences, choices = facts["choices"], more.pop("choices", ())
    if sentences and set(sentences) != set(choices):
        raise TypeError(f"{cls.__name__}.{item.name} must say of each of its choices what it means")
    if not {*facts["synonyms"].values()} <= {*choices}:
        raise TypeError(f"{cls.__name__}.{item.name} must have each choice that it gives another name")
    facts["choices"] = {choice: sentences.get(choice, "") for choice in choices}
    facts["label"] = facts["label"] or _label_of(item.name)
    facts["when"] = Condition.parse(facts["when"]) if facts["when"] else None
    return Param(name=item.name, type=kind, default=item.default, **facts, **more)


def _label_of(name: str) -> str:
    """The label of a field: ``max_group`` is *Max group*, while ``k`` and other letters stay."""
    words = name.replace("_", " ")
    return words[0].upper() + words[1:] if len(words) > 1 else words


def _read_annotation(hint: Any) -> tuple[type, dict[str, Any]]:
    """Read the type of a field: what it holds, its choices, whether by column, whether optional."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in {typing.Union, types.UnionType}:
        inner = [argument for argument in arguments if argument is not type(None)]
        if len(inner) == 1 and len(arguments) == 2:  # noqa: PLR2004  — X | None
            kind, more = _read_annotation(inner[0])
            return kind, {**more, "optional": True}
    if origin is Literal:
        return str, {"choices": tuple(arguments)}
    if origin is PerColumn:
        kind, more = _read_annotation(arguments[0])
        return kind, {**more, "per_column": True}
    if hint in {Resource, Columns, Requirements}:
        return hint, {}
    if hint in {float, int, bool, str}:
        return hint, {}
    raise TypeError(
        f"a parameter must be a scalar, Literal, PerColumn, Columns, Requirements or Resource, got: {hint}"
    )
