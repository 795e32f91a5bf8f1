"""The catalogue of the survey (002): what each of its terms is here, or why it is left out."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal, NamedTuple, get_args

from sfumato.core import registry
from sfumato.core.component import Component
from sfumato.core.method import Nature
from sfumato.core.synonyms import sentence_of
from sfumato.data.records import read_record
from sfumato.errors import UnknownNameError
from sfumato.reproduce.families import Claim

#: What became of a row; ``missing`` if the package lacks what the row says, or a word of it leads elsewhere.
RowStatus = Literal["built", "superseded", "left out", "missing"]


@dataclass(frozen=True)
class CatalogueRow:
    """A term of the survey: where it stands there, what it is here, what tests that, or why there is nothing.

    ``words`` are what is typed after ``sfumato methods`` or ``sfumato measures`` to find it.
    """

    place: str
    term: str
    of: str = ""
    words: tuple[str, ...] = ()
    ours: tuple[str, ...] = ()
    note: str = ""
    test: str = ""
    reason: str = ""

    @property
    def pages(self) -> tuple[str, ...]:
        """The page of the documentation for each method and measure, below ``reference/generated``."""
        return tuple(f"{_room(each)}/{each.partition('(')[0]}" for each in self.ours)

    @property
    def verdict(self) -> RowStatus:
        """What the package itself says of the row."""
        if not self.ours:
            return "left out" if self.reason and all(map(sentence_of, self.words)) else "missing"
        found = [{str(match) for match in registry.search(word)} for word in self.words]
        if not all(self._is_here(each) for each in self.ours) or not all(
            {*self.ours} <= each for each in found
        ):
            return "missing"
        return "superseded" if self.reason else "built"

    @staticmethod
    def _is_here(ours: str) -> bool:
        try:
            return bool(_room(ours))
        except UnknownNameError:
            return False


def _room(ours: str) -> str:
    """Whether a name is that of a method or of a measure; it may have settings."""
    name = ours.partition("(")[0]
    if name in registry.methods():
        return "methods"
    registry.measure(name)
    return "measures"


def catalogue() -> tuple[CatalogueRow, ...]:
    """All rows of the survey's tables 1, 2 and 4, of Figure 3, and what its text names besides."""
    return tuple(
        CatalogueRow(
            part["place"],
            row["term"],
            row["of"],
            tuple(row.get("words", [row["term"]])),
            tuple(row["ours"]),
            row.get("note", ""),
            row.get("test", ""),
            row.get("reason", ""),
        )
        for part in _tables()["part"]
        for row in part["rows"]
    )


def titles() -> dict[str, str]:
    """What each part of the survey is about."""
    return {part["place"]: part["title"] for part in _tables()["part"]}


class Tool(NamedTuple):
    """A row of Table 5: what a tool has, and what there is here for who comes from it."""

    name: str
    has: tuple[str, ...]
    here: str


def tools() -> tuple[Tool, ...]:
    """Table 5, with this package as the last row, as its registry says."""
    listed = [Tool(tool["name"], tuple(tool["has"]), tool["here"]) for tool in _tables()["tool"]]
    natures = {cls.nature for cls in registry.methods().values()}
    aspects = {cls.aspect for cls in registry.measures().values()}
    techniques = [each for each in get_args(Nature) if each in natures and each != "synthetic"]
    assessments = [
        f"{word} assessment"
        for word, aspect in (("privacy", "risk"), ("utility", "utility"))
        if aspect in aspects
    ]
    own = Tool("sfumato", ("open source", "web app", *techniques, *assessments), "this package")
    return (*listed, own)


def component_of(ours: str) -> type[Component]:
    """The class of a method or measure, which may have settings."""
    name = ours.partition("(")[0]
    return registry.method(name) if _room(ours) == "methods" else registry.measure(name)


def claims() -> tuple[Claim, ...]:
    """The statements of Table 3, each with what measures it."""
    return tuple(read_record(Claim, spec, "claim of Table 3") for spec in _tables()["claim"])


@cache
def _tables() -> dict[str, Any]:
    text = files("sfumato.reproduce").joinpath("published", "002.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
