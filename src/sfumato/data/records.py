"""Records from TOML and back: what a dataclass declares of its fields is all that is known of the file.

A field is required unless it has a default, its type hint says what it takes: texts, numbers, ``bool``, a
`Literal` or `StrEnum`, tuples and mappings of those, other records, and types that a ``maker`` makes of a
value. ``field(metadata={"key": …})`` gives the key in the file where it is another one, ``"prepare"`` a
function that puts another way of saying a value into that of the type.
"""

from __future__ import annotations

import tomllib
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import date
from enum import Enum, EnumType
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

from sfumato.errors import PlanError, ReadError, SfumatoError, UnknownNameError, nearest, quoted, trouble_with

T = TypeVar("T")

#: What makes a value of a type out of what the file says.
Makers = Mapping[Any, Callable[[Any], Any]]
_NOTHING: Mapping[Any, Any] = types.MappingProxyType({})

_WORDS = {str: "a text", bool: "true or false", int: "a whole number", float: "a number"}


def read_text(path: Path, *, what: str, hint: str) -> str:
    """Read a file that a person has written; where there is none, the hint says what writes one."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ReadError(f"File not found: {path} (the {what})", hint=hint) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ReadError(f"cannot read the {what} `{path}`: {trouble_with(error)}") from None


def parse_toml(text: str, what: str) -> dict[str, Any]:
    """What a text in TOML says."""
    try:
        return tomllib.loads(text)
    except ValueError as error:  # also of a number of thousands of digits
        hint = "a text stands in quotation marks, and a name before `=` occurs once in each part"
        raise PlanError(f"{what} is not valid TOML: {error}", hint=hint) from None
    except RecursionError:
        raise PlanError(f"{what} is not valid TOML: too many brackets within each other") from None


@contextmanager
def gathering(faults: list[str], place: str = "") -> Iterator[None]:
    """Note what is raised on purpose as faults, each behind its place, and go on."""
    try:
        yield
    except SfumatoError as error:
        faults += [fault for line in error.lines if (fault := place + line) not in faults]


def raise_all(what: str, faults: list[str]) -> None:
    """Raise the faults that were gathered, if there are any: a user mends a file once."""
    if faults:
        raise PlanError.gather(what, faults)


def read_record(
    cls: type[T], spec: object, what: str, *, given: Mapping[str, Any] = _NOTHING, makers: Makers = _NOTHING
) -> T:
    """Make a record of a table of TOML, or raise all its faults together.

    ``given`` are fields that the table does not say, such as the name that it has in the file.
    """
    if not isinstance(spec, Mapping):
        raise _type_error("it", "a table", spec)
    faults: list[str] = []
    values = {**given, **read_values(cls, spec, faults, given=given, makers=makers)}
    if {item.name for item in _fields(cls).values() if _default(item) is MISSING} <= values.keys():  # type: ignore[arg-type]
        with gathering(faults):
            made = cls(**values)
    raise_all(what, faults)
    return made


def read_values(
    cls: type,
    spec: Mapping[str, Any],
    faults: list[str],
    *,
    noun: str = "setting",
    given: Iterable[str] = (),
    makers: Makers = _NOTHING,
) -> dict[str, Any]:
    """The values that a table says rightly for the fields of a record, by name; the others are faults."""
    known = {key: item for key, item in _fields(cls).items() if item.name not in given}
    values = {}
    for key, value in spec.items():
        with gathering(faults):
            if key not in known:
                raise UnknownNameError.of(noun, key, known)
            name, prepare = known[key].name, known[key].metadata.get("prepare")
            values[name] = _read(_hints(cls)[name], prepare(value) if prepare else value, f"`{key}`", makers)
    faults += [
        f"`{key}` is missing" for key, item in known.items() if _default(item) is MISSING and key not in spec
    ]
    return values


def as_spec(record: Any) -> dict[str, Any]:
    """The table of TOML for a record: all that is required, and what is not default."""
    return {
        _key(item): _plain(getattr(record, item.name))
        for item in fields(record)
        if getattr(record, item.name) != _default(item)
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    return [_plain(each) for each in value] if isinstance(value, tuple) else value


def _default(item: Field[Any]) -> Any:
    return item.default_factory() if item.default_factory is not MISSING else item.default


@cache
def _fields(cls: type) -> dict[str, Field[Any]]:
    """The fields that a caller sets, by their keys."""
    return {_key(item): item for item in fields(cls) if item.init}


def _key(item: Field[Any]) -> str:
    key: str = item.metadata.get("key", item.name)
    return key


@cache
def _hints(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def _read(hint: Any, value: object, name: str, makers: Makers, given: Mapping[str, Any] = _NOTHING) -> Any:
    """A value as its type hint wants it; what is wrong with it is said of its name."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is types.UnionType and inner[1:] == (types.NoneType,):
        return value if value is None else _read(inner[0], value, name, makers)
    if origin is tuple:
        return _read_list(inner, value, name, makers)
    if origin is Mapping:
        return _read_table(inner[1], value, name, makers)
    if hint in makers:
        return _make(makers[hint], value, name)
    if isinstance(hint, type) and is_dataclass(hint):
        read = partial(read_record, hint, what=name, given=given, makers=makers)
        return _make(read, _table(value, name), name)
    is_choice = isinstance(hint, EnumType) or origin is typing.Literal
    return (_read_choice if is_choice else _read_scalar)(hint, value, name)


def _read_scalar(hint: Any, value: object, name: str) -> Any:
    allowed = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    if hint is str and isinstance(value, date):  # TOML has dates of its own
        return value.isoformat()
    if hint is Any or any(_is_a(each, value) for each in allowed):
        return value
    raise _type_error(name, " or ".join(_WORDS[each] for each in allowed if each in _WORDS), value)


def _is_a(kind: type, value: object) -> bool:
    """Whether a value is of a type: a whole number is a number, true is none."""
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, (int, float) if kind is float else kind)


def _read_choice(hint: Any, value: object, name: str) -> Any:
    """Read one of a few words; a `StrEnum` may understand former ones."""
    choices = tuple(hint) if isinstance(hint, EnumType) else typing.get_args(hint)
    with suppress(ValueError):
        return hint(value) if isinstance(hint, EnumType) else choices[choices.index(value)]
    got = f"`{value}`" if isinstance(value, str) else type(value).__name__
    near = nearest(value, filter(None, choices)) if isinstance(value, str) else ()
    hint = f"did you mean {quoted(near, ' or ')}?" if near else None
    raise PlanError(f"{name} must be one of {', '.join(filter(None, choices))}, got: {got}", hint=hint)


def _read_list(inner: tuple[Any, ...], value: object, name: str, makers: Makers) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise _type_error(name, "a list", value)
    hints = (inner[0],) * len(value) if inner[-1] is Ellipsis else inner
    if len(value) != len(hints):
        raise PlanError(f"{name} must be a list of {len(hints)}, got: one of {len(value)}")
    plain = typing.get_args(inner[0]) if typing.get_origin(inner[0]) is types.UnionType else ()
    if inner[-1] is Ellipsis and {*map(type, value)} <= {*plain}:
        return tuple(value)  # plain values, of which an order may have very many
    numbered = inner[0] in makers or is_dataclass(inner[0])
    faults: list[str] = []
    made = []
    for number, (hint, each) in enumerate(zip(hints, value, strict=True), start=1):
        with gathering(faults):
            made.append(
                _read(hint, each, _item(name, number) if numbered else f"each item of {name}", makers)
            )
    raise_all(name, faults)
    return tuple(made)


def _read_table(hint: Any, value: object, name: str, makers: Makers) -> dict[str, Any]:
    """Read a table by names; a record in it that has a ``name`` has that one."""
    named = isinstance(hint, type) and is_dataclass(hint) and "name" in _fields(hint)
    faults: list[str] = []
    made = {}
    for key, each in _table(value, name).items():
        with gathering(faults):
            given = {"name": key} if named else _NOTHING
            made[key] = _read(hint, each, _item(name, f"`{key}`"), makers, given)
    raise_all(name, faults)
    return made


def _make(maker: Callable[[Any], Any], value: Any, name: str) -> Any:
    faults: list[str] = []
    with gathering(faults, f"{_bare(name)}: "):
        return maker(value)
    raise PlanError.gather(name, faults)


def _table(value: object, name: str) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    raise _type_error(name, "a table", value)


def _type_error(name: str, expected: str, value: object) -> PlanError:
    got = "nothing" if value is None else type(value).__name__
    return PlanError(f"{name} must be {expected}, got: {got}")


def _bare(name: str) -> str:
    """A key without its ticks; other names as they are."""
    return name[1:-1] if name.startswith("`") else name


def _item(name: str, label: object) -> str:
    """What one of several is called: step 1 and step 2 are among `steps`."""
    return f"{_bare(name).removesuffix('s')} {label}"
