"""The sorts of parameters beside plain numbers and words: by column, columns, resources, requirements."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")

#: What must hold in each group of records alone: in every region, in every region+sex of 200.
EVERY = r"\s+in\s+every\s+(?P<every>\S.*?)(\s+of\s+(?P<at_least>\d+))?"
#: A measure with or without settings, a comparison and a number; a confidence, if an estimate will do.
REQUIREMENT = re.compile(
    r"^\s*(?P<measure>[\w-]+)\s*(\((?P<settings>[^)]*)\))?\s*(?P<sign><=|>=|<|>)\s*(?P<level>[^\s<>=]+)"
    rf"(\s+at\s+(?P<confidence>[^\s%]+)\s*%)?({EVERY})?\s*$"
)
#: What stands between two requirements: a comma outside brackets, or "and".
_BETWEEN = re.compile(r"\s*,\s*(?![^()]*\))|\s+and\s+")


@dataclass(frozen=True)
class PerColumn(Generic[T]):
    """One value for all columns, with exceptions by column name."""

    default: T
    exceptions: tuple[tuple[str, T], ...] = ()

    def __getitem__(self, column: str) -> T:
        return dict(self.exceptions).get(column, self.default)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that have a value of their own."""
        return tuple(name for name, _ in self.exceptions)

    def to_plain(self) -> T | dict[str, T]:
        """Say it as a plan does: one value, or a table with ``default`` and the exceptions."""
        payload = {} if self.default is None else {"default": self.default}
        return {**payload, **dict(self.exceptions)} if self.exceptions else self.default


class Resource(str):
    """The name of a file in the plan's ``[resources]``: a hierarchy, a population table."""

    __slots__ = ()


class Columns(tuple[str, ...]):
    """Columns that a method looks at besides those it protects: names, or ``@key`` and the like."""

    __slots__ = ()

    def __str__(self) -> str:
        return "+".join(self)


class Requirements(tuple[str, ...]):
    """What a release must meet, as people say it: ``l >= 3``, ``t(distance=ordered) <= 0.2``."""

    __slots__ = ()

    @classmethod
    def split(cls, text: str) -> Requirements:
        """Read several from one text: ``l >= 3, t <= 0.2`` or ``l >= 3 and t <= 0.2``."""
        return cls(part for part in _BETWEEN.split(text.strip()) if part)

    def __str__(self) -> str:
        return " and ".join(self)


def as_names(value: object) -> Columns | None:
    """Take a list of names; a single one may be given as it is."""
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) and name for name in names):
        return None
    return Columns(names) if len(set(names)) == len(names) else None


def as_requirements(value: object) -> Requirements | None:
    """Take a list of requirements, or one text of them; what they measure is looked up when they are used."""
    parts = (value,) if isinstance(value, str) else value
    if not isinstance(parts, list | tuple) or not all(isinstance(part, str) for part in parts):
        return None
    each = Requirements(one for part in parts for one in Requirements.split(part))
    return each if all(REQUIREMENT.match(one) for one in each) else None
