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
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import date
from enum import EnumType
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from sfumato.errors import PlanError, ReadError, SfumatoError, UnknownNameError, trouble_with

T = TypeVar("T")

#: What makes a value of a type out of what the file says.
Makers = Mapping[Any, Callable[[Any], Any]]

_WRONG: Any = object()
_WORDS = {str: "a text", bool: "true or false", int: "a whole number", float: "a number"}


def read_text(path: Path, *, what: str, hint: str) -> str:
    """Read a file that a person has written; where there is none, the hint says what writes one."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ReadError(f"the {what} `{path}` must be a file, got: none there", hint=hint) from None
    except (OSError, UnicodeDecodeError) as error:
        trouble = trouble_with(error)
        raise ReadError(f"the {what} `{path}` must be a readable text file, got: {trouble}") from None


def parse_toml(text: str, what: str) -> dict[str, Any]:
    """What a text in TOML says."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PlanError(f"{what} must be TOML, got: {error}") from None


def read_record(
    cls: type[T],
    spec: object,
    what: str,
    *,
    given: Mapping[str, Any] | None = None,
    makers: Makers | None = None,
) -> T:
    """Make a record of a table of TOML, or raise all its faults together.

    ``given`` are fields that the table does not say, such as the name that it has in the file.
    """
    reader = RecordReader(makers)
    made: T = reader.record(cls, spec, name="it", given=given)
    reader.raise_faults(what)
    return made


def as_spec(record: Any) -> dict[str, Any]:
    """The table of TOML for a record: all that is required, and what is not default."""
    return {
        _key(item): _plain(getattr(record, item.name))
        for item in fields(record)
        if getattr(record, item.name) != _default(item)
    }


def _plain(value: Any) -> Any:
    return [_plain(each) for each in value] if isinstance(value, tuple) else value


def _default(item: Field[Any]) -> Any:
    return item.default_factory() if item.default_factory is not MISSING else item.default


@cache
def _fields(cls: Any) -> dict[str, Field[Any]]:
    """The fields that a caller sets, by their keys."""
    return {_key(item): item for item in fields(cls) if item.init}


def _key(item: Field[Any]) -> str:
    key: str = item.metadata.get("key", item.name)
    return key


@cache
def _hints(cls: Any) -> dict[str, Any]:
    return typing.get_type_hints(cls)


class RecordReader:
    """Reads values by type hints, notes what is wrong with each in ``faults``, and goes on.

    A fault names the value by its ``name`` behind the ``place`` it stands in: "scenario 1: `columns` must …".
    """

    def __init__(self, makers: Makers | None = None) -> None:
        self.makers = makers or {}
        self.faults: list[str] = []

    def raise_faults(self, what: str) -> None:
        """Raise all faults together, if there are any: a user mends a file once."""
        if self.faults:
            raise PlanError.gather(what, self.faults)

    def values(
        self,
        cls: type,
        spec: Mapping[str, Any],
        *,
        place: str = "",
        noun: str = "setting",
        given: Iterable[str] = (),
    ) -> dict[str, Any]:
        """The values that a table says rightly for the fields of a record, by the fields' names."""
        known = {key: item for key, item in _fields(cls).items() if item.name not in given}
        made: dict[str, Any] = {}
        for key, value in spec.items():
            if key in known:
                item = known[key]
                prepare = item.metadata.get("prepare")
                prepared = prepare(value) if prepare else value
                made[item.name] = self.value(_hints(cls)[item.name], prepared, place=place, name=f"`{key}`")
            else:
                self.faults.append(place + UnknownNameError.of(noun, key, known).line)
        self.faults += [
            f"{place}`{key}` must be given, got: nothing"
            for key, item in known.items()
            if _default(item) is MISSING and key not in spec
        ]
        return {name: value for name, value in made.items() if value is not _WRONG}

    def record(
        self, cls: type, spec: object, *, place: str = "", name: str, given: Mapping[str, Any] | None = None
    ) -> Any:
        """Make a record of a table, if it says all that is required."""
        if not isinstance(spec, Mapping):
            return self._refuse(f"{place}{name}", "a table", _type_of(spec))
        place = f"{place}{_bare(name)}: " if name != "it" else place
        before = len(self.faults)
        given = given or {}
        values = {**given, **self.values(cls, spec, place=place, given=given)}
        if any(_default(item) is MISSING and item.name not in values for item in _fields(cls).values()):
            return _WRONG
        made = self.make(lambda each: cls(**each), values, place=place)
        return made if len(self.faults) == before else _WRONG

    def make(self, maker: Callable[[Any], Any], value: Any, *, place: str = "") -> Any:
        """What is made of a value, unless that raises faults."""
        try:
            return maker(value)
        except SfumatoError as error:
            self.faults += [place + line for line in error.lines]
            return _WRONG

    def value(self, hint: Any, value: object, *, place: str, name: str) -> Any:
        """A value as its type hint wants it."""
        origin, inner = typing.get_origin(hint), typing.get_args(hint)
        if hint in self.makers:
            return self.make(self.makers[hint], value, place=f"{place}{name}: ")
        if isinstance(hint, type) and is_dataclass(hint):
            return self.record(hint, value, place=place, name=name)
        if origin is types.UnionType and inner[1:] == (types.NoneType,):
            return value if value is None else self.value(inner[0], value, place=place, name=name)
        if origin is tuple:
            return self._items(inner, value, place, name)
        if origin is Mapping:
            return self._table(inner[1], value, place, name)
        return self._scalar(hint, value, f"{place}{name}")

    def _scalar(self, hint: Any, value: object, subject: str) -> Any:
        if hint is str and isinstance(value, date):  # TOML has dates of its own
            return value.isoformat()
        if _fits(hint, value):
            return hint(value) if isinstance(hint, EnumType) else value
        is_choice = isinstance(hint, EnumType) or typing.get_origin(hint) is typing.Literal
        got = f"`{value}`" if is_choice and isinstance(value, str) else _type_of(value)
        return self._refuse(subject, _in_words(hint), got)

    def _items(self, inner: tuple[Any, ...], value: object, place: str, name: str) -> Any:
        if not isinstance(value, list | tuple):
            return self._refuse(f"{place}{name}", "a list", _type_of(value))
        hints = (inner[0],) * len(value) if inner[-1] is Ellipsis else inner
        if len(value) != len(hints):
            return self._refuse(f"{place}{name}", f"a list of {len(hints)}", f"one of {len(value)}")
        numbered = hints and (hints[0] in self.makers or is_dataclass(hints[0]))
        made = [
            self.value(
                hint, each, place=place, name=_item(name, number) if numbered else f"each item of {name}"
            )
            for number, (hint, each) in enumerate(zip(hints, value, strict=True), start=1)
        ]
        return _WRONG if any(each is _WRONG for each in made) else tuple(made)

    def _table(self, hint: Any, value: object, place: str, name: str) -> Any:
        """Read a table by names; a record in it that has a ``name`` has that one."""
        if not isinstance(value, Mapping):
            return self._refuse(f"{place}{name}", "a table", _type_of(value))
        made = {}
        for key, each in value.items():
            label = _item(name, f"`{key}`")
            if isinstance(hint, type) and is_dataclass(hint) and "name" in _hints(hint):
                made[key] = self.record(hint, each, place=place, name=label, given={"name": key})
            else:
                made[key] = self.value(hint, each, place=place, name=label)
        return _WRONG if any(each is _WRONG for each in made.values()) else made

    def _refuse(self, subject: str, expected: str, got: str) -> Any:
        """Note what is wrong with a value, once for all items of a list."""
        fault = f"{subject} must be {expected}, got: {got}"
        if fault not in self.faults:
            self.faults.append(fault)
        return _WRONG


def _bare(name: str) -> str:
    """A key without its ticks; other names as they are."""
    return name[1:-1] if name.startswith("`") else name


def _item(name: str, label: object) -> str:
    """What one of several is called: step 1 and step 2 are among `steps`."""
    return f"{_bare(name).removesuffix('s')} {label}"


def _type_of(value: object) -> str:
    return "nothing" if value is None else type(value).__name__


def _fits(hint: Any, value: object) -> bool:
    if hint is Any:
        return True
    if isinstance(hint, EnumType):
        try:
            return hint(value) is not None
        except ValueError:
            return False
    if isinstance(hint, types.UnionType):
        return any(_fits(each, value) for each in typing.get_args(hint))
    if typing.get_origin(hint) is typing.Literal:
        return value in typing.get_args(hint)
    allowed = (int, float) if hint is float else hint  # None is a type hint, too
    return isinstance(value, allowed) and (hint is bool or not isinstance(value, bool))


def _in_words(hint: Any) -> str:
    """What a value must be."""
    if isinstance(hint, EnumType):
        return f"one of {', '.join(hint)}"
    if isinstance(hint, types.UnionType):
        return " or ".join(_in_words(each) for each in typing.get_args(hint) if each is not types.NoneType)
    if typing.get_origin(hint) is typing.Literal:
        return " or ".join(filter(None, typing.get_args(hint)))
    return _WORDS[hint]
