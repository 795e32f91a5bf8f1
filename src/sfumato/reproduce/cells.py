"""What a paper printed, as data: tables of cells, each with its reading, its tolerance and why."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from sfumato.data.records import parse_toml, read_record
from sfumato.errors import PlanError

#: What is said of a cell.
WITHIN, OUTSIDE, LISTED, NO_NUMBER, NOT_PRINTED = "within", "outside", "listed", "no number", "–"


@dataclass(frozen=True)
class Cell:
    """A printed number, and how far from it ours may be.

    ``tolerance`` is a number or a percentage of what was printed; ``why`` says where it comes from.
    ``unreachable`` is the reason why no right computation reaches the number. ``post_hoc`` means that the
    reading or the tolerance was chosen after numbers were seen: weaker evidence than one found first.
    """

    key: str
    published: float | None
    tolerance: float | str | None = None
    why: str = ""
    unreachable: str = ""
    post_hoc: bool = False
    runs: int = 1

    def margin(self, *, one_run: bool = False) -> float | None:
        """The tolerance in the unit of the number; one run in place of several widens it by their root."""
        if self.published is None or self.tolerance is None:
            return None
        wider = math.sqrt(self.runs) if one_run else 1.0
        if isinstance(self.tolerance, str):
            return wider * float(self.tolerance.removesuffix("%")) / 100 * abs(self.published)
        return wider * self.tolerance

    def verdict(self, ours: float | None, *, one_run: bool = False) -> str:
        """Whether our number is near enough; a cell that is not has a reason, or is outside."""
        if self.published is None:
            return NOT_PRINTED
        if ours is None:
            return NO_NUMBER
        margin = self.margin(one_run=one_run)
        if margin is not None and abs(ours - self.published) <= margin * (1 + 1e-12):
            return WITHIN
        return LISTED if self.unreachable else OUTSIDE


@dataclass(frozen=True)
class _CellRule:
    """Cells by a pattern (``ROW/COLUMN``) that differ from the others of their table."""

    cells: str
    tolerance: float | str | None = None
    why: str | None = None
    unreachable: str | None = None
    post_hoc: bool | None = None

    @property
    def changes(self) -> dict[str, Any]:
        """What differs."""
        named = ("tolerance", "why", "unreachable", "post_hoc")
        return {name: value for name in named if (value := getattr(self, name)) is not None}


@dataclass(frozen=True)
class PublishedTable:
    """A printed table, or the numbers that a text or a figure states: rows of numbers under columns."""

    name: str
    title: str
    place: str
    columns: tuple[str, ...]
    rows: Mapping[str, tuple[float, ...]]
    reading: str = ""
    tolerance: float | str | None = None
    why: str = ""
    post_hoc: bool = False
    runs: int = 1
    varies: Literal["", "noise", "time"] = ""
    rules: tuple[_CellRule, ...] = ()

    def __post_init__(self) -> None:
        faults = [row for row, numbers in self.rows.items() if len(numbers) != len(self.columns)]
        if faults:
            raise PlanError.gather(
                f"the table `{self.name}`", [f"{row}: not a number each" for row in faults]
            )

    def cells(self) -> Iterator[Cell]:
        """Every cell, with what is said of it; where nothing was printed (NaN) there is no number."""
        for row, numbers in self.rows.items():
            for column, number in zip(self.columns, numbers, strict=True):
                yield self.cell(row, column, None if math.isnan(number) else float(number))

    def cell(self, row: str, column: str, published: float | None = None) -> Cell:
        """A cell of this table; one that was not printed, too."""
        key = f"{self.name}/{row}/{column}"
        found = Cell(key, published, self.tolerance, self.why, "", self.post_hoc, self.runs)
        for each in self.rules:
            if fnmatchcase(f"{row}/{column}", each.cells):
                found = replace(found, **each.changes)
        return found


@dataclass(frozen=True)
class DataFile:
    """A file that an experiment needs: how to know it, and where to get it."""

    records: int
    columns: tuple[str, ...]
    origin: str
    separator: str = ","


@dataclass(frozen=True)
class Published:
    """What a paper printed, and the files that its experiments need."""

    title: str
    source: str
    tables: Mapping[str, PublishedTable] = field(default_factory=dict)
    data: Mapping[str, DataFile] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def cells(self) -> dict[str, Cell]:
        """All cells by their keys: TABLE/ROW/COLUMN."""
        return {cell.key: cell for table in self.tables.values() for cell in table.cells()}

    def __getitem__(self, key: str) -> float:
        """The printed number of a cell."""
        number = self.cells[key].published
        if number is None:
            raise KeyError(key)
        return number

    def row(self, table: str, row: str) -> tuple[float, ...]:
        """The printed numbers of a row."""
        return self.tables[table].rows[row]


@cache
def published(paper: str) -> Published:
    """What a paper printed, by its number: ``published("000")["table-1/microaggregation/Census"]``."""
    text = files("sfumato.reproduce").joinpath("published", f"{paper}.toml").read_text(encoding="utf-8")
    return read_published(text, paper)


def read_published(text: str, paper: str) -> Published:
    """Read what a paper printed from its file."""
    spec = parse_toml(text, f"what paper {paper} printed")
    tables = {
        name: read_record(PublishedTable, own, f"table {name}", given={"name": name})
        for name, own in spec.pop("tables", {}).items()
    }
    return read_record(Published, spec, f"paper {paper}", given={"tables": tables})
