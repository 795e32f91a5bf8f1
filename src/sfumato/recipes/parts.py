"""The small parts of a plan: the files it uses, what is written, the series it is of, what its owner says."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any, Literal, Self

from sfumato.data.series import RELEASES, Course
from sfumato.errors import PlanError, ReadError
from sfumato.io import addresses
from sfumato.io.formats import READING
from sfumato.io.stdin import STDIN, stdin_file

#: How many releases a series is made for, and the farthest that amounts move over them: a hundredfold.
_FEWEST_RELEASES, _MOST_RELEASES, _FARTHEST = 2, 10_000, 99.0
#: All copies are made and judged together, so that they must be held at once.
_MOST_COPIES = 1000
#: What a table of counts may be called: its name is part of that of its file.
_TABLE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True)
class Source:
    """A file (or a table of a database) the plan uses.

    A file has its fingerprint, so that another file of the same name is noticed; and how it is to be read,
    where that is not to be found out: ``delimiter``, ``decimal``, ``encoding``, the ``sheet`` of a workbook,
    and whether names stand in its first line (``header``, "yes" or "no").
    """

    path: str
    holds: Literal["table", "hierarchy"] = "table"
    sha256: str = ""
    delimiter: str = ""
    decimal: str = ""
    encoding: str = ""
    header: Literal["", "yes", "no"] = ""
    sheet: str = ""

    @property
    def reading_options(self) -> dict[str, str]:
        """What is said of how it is to be read, as a plan does."""
        return {name: getattr(self, name) for name in READING if getattr(self, name)}

    @property
    def reading(self) -> dict[str, Any]:
        """What is said of how it is to be read, as `sfumato.io.read_table` takes it."""
        return (
            {**self.reading_options, "header": self.header == "yes"}
            if self.header
            else dict(self.reading_options)
        )

    @property
    def is_builtin(self) -> bool:
        """Whether it is a built-in data set, and no file."""
        return self.path.startswith("builtin:")

    def check(self, folder: Path) -> Path | str:
        """Where it is, once it is there and is the file the plan was written for."""
        place = locate(self.path, folder)
        if isinstance(place, str):
            return place
        if not place.is_file():
            raise ReadError(f"File not found: {self.path}", hint=f"looked in {folder}")
        if self.sha256 and fingerprint(place) != self.sha256.lower():
            raise ReadError(
                f"`{self.path}` has changed since the plan was written",
                hint="correct its `sha256` in the plan if the change is intended",
            )
        return place


def locate(path: str, folder: Path) -> Path | str:
    """Where a plan's path leads from the plan's folder: a file, or the address of a table in a database."""
    if path == STDIN:
        return stdin_file()
    return addresses.resolve_in_folder(path, folder) if addresses.is_address(path) else folder / path


def relative_to(place: Path, folder: Path) -> str:
    """A path as seen from a folder, also where a folder on the way is a link; else the whole path."""
    whole = Path(os.path.realpath(place.parent), place.name)
    try:
        return Path(os.path.relpath(whole, os.path.realpath(folder))).as_posix()
    except ValueError:
        return str(whole)  # on another drive


def fingerprint(path: Path) -> str:
    """SHA-256 of a file's contents."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@dataclass(frozen=True)
class Output:
    """What is written and how.

    ``drop`` names the columns that stay behind; ``shuffle`` breaks the order of the records; ``repair``
    mends whole numbers, ranges and totals; ``guard`` keeps spreadsheets from running text as formulas;
    ``pseudonym_key`` is the file with the key of pseudonyms, made where there is none: with it people keep
    their pseudonyms from release to release. Sampling ``weights`` leave "safe", as the mean of records that
    look alike, or "exact", which puts households together again and tells strata. Of several ``copies``,
    drawn apart from each other, each is a file ``NAME.1.csv``, ``NAME.2.csv`` …
    """

    path: str = ""
    drop: tuple[str, ...] = ()
    shuffle: bool = True
    repair: bool = False
    guard: bool = False
    pseudonym_key: str = ""
    weights: Literal["safe", "exact"] = "safe"
    copies: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.copies <= _MOST_COPIES:
            raise PlanError(
                f"`copies` must be from 1 to {_MOST_COPIES:,}, got: {self.copies}",
                hint="5 to 20 show the uncertainty that drawing adds; each copy discloses more",
            )


@dataclass(frozen=True)
class SeriesSpec:
    """That a release is one of a series of the same people: the first, or the next after some ``earlier``.

    These are folders, or the private trails in them, the oldest first; ``record`` is the column that tells
    the records of one person apart, where people have several. ``releases`` is how many the series is made
    for, and ``course`` by which share amounts are known to move from the first to the last of them.
    """

    earlier: tuple[str, ...] = ()
    name: str = ""
    record: str = ""
    releases: int = RELEASES
    course: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not _FEWEST_RELEASES <= self.releases <= _MOST_RELEASES:
            raise PlanError(
                f"`releases` must be from {_FEWEST_RELEASES} to {_MOST_RELEASES:,}, got: {self.releases}"
            )
        for name, share in self.course.items():
            if not -1 < share <= _FARTHEST:
                raise PlanError(
                    f"`course` of `{name}` must be above -1 and at most {_FARTHEST:g}, got: {share:g}",
                    hint="it is a share: 0.1 for amounts that rise by 10 % over all releases",
                )

    @property
    def as_course(self) -> Course:
        """How amounts are known to move."""
        return Course(self.releases, self.course)

    def seen_from(self, folder: Path, *, now: Path) -> Self:
        """The same with the paths of a plan in one folder as they are seen from another."""
        return replace(self, earlier=tuple(relative_to(now / each, folder) for each in self.earlier))


@dataclass(frozen=True)
class CountTable:
    """A table that leaves beside a release: how many persons have each combination of values of ``columns``.

    With it go the ``totals`` and ``means`` of further columns; if ``weighted``, everyone counts by weight.
    ``counts`` says of which file: of the protected one it tells nothing new, of the original it is judged
    with the release. A cell has at least ``least`` persons (0: as many as the plan requires to be alike).
    ``otherwise`` is what becomes of a table that may not leave: the release is refused, its counts are
    rounded to multiples of ``base`` (0: of ``least``), it is left out, or written for τ-ARGUS in private.
    """

    name: str
    columns: tuple[str, ...]
    counts: Literal["protected", "original"] = "protected"
    totals: tuple[str, ...] = ()
    means: tuple[str, ...] = ()
    weighted: bool = False
    least: int = 0
    otherwise: Literal["refuse", "round", "leave out", "tau-argus"] = "refuse"
    base: int = 0

    def __post_init__(self) -> None:
        if not _TABLE_NAME.fullmatch(self.name):
            raise PlanError("`name` of a table of counts must be letters, digits, `-` or `_`, up to 64")
        if not self.columns or any(
            len(set(each)) < len(each) for each in (self.columns, self.means, self.totals)
        ):
            raise PlanError(f"`columns` of the table of counts `{self.name}` must be one or more, each once")
        if self.least < 0 or self.least == 1 or self.base < 0 or self.base == 1:
            raise PlanError(
                f"`least` and `base` of the table `{self.name}` must be 2 or more, or 0 for the default"
            )
        if self.otherwise == "round" and (self.values or self.weighted):
            raise PlanError(
                f"the table `{self.name}` cannot be rounded: only plain counts are",
                hint='give totals, means and weighted counts another table, with otherwise = "leave out"',
            )

    @property
    def values(self) -> tuple[str, ...]:
        """The columns of which it has totals or means, each once."""
        return tuple(dict.fromkeys((*self.totals, *self.means)))


@dataclass(frozen=True)
class About:
    """What its owner says of a release, for its data card and its evidence; nothing of it changes a record.

    ``title`` and ``description`` of what it is, the ``population`` and ``period`` it speaks of; ``publisher``
    and ``contact``; ``purpose`` and ``legal_basis`` of giving it out, ``recipients`` and the ``terms`` they
    agree to; ``safeguards`` around it; the ``threats`` that were thought of, what the people it is about were
    told (``transparency``), and a log of attempts to find someone (``intruder_test``); what the decision
    rests on (``basis``), who answers for it (``expert``), and the ``review_date`` on which it is looked at
    again.
    """

    title: str = ""
    description: str = ""
    population: str = ""
    period: str = ""
    publisher: str = ""
    contact: str = ""
    purpose: str = ""
    legal_basis: str = ""
    recipients: tuple[str, ...] = ()
    terms: str = ""
    safeguards: str = ""
    threats: str = ""
    transparency: str = ""
    intruder_test: str = ""
    basis: str = ""
    expert: str = ""
    review_date: str = ""

    def __post_init__(self) -> None:
        try:
            date.fromisoformat(self.review_date or "2000-01-01")
        except ValueError:
            raise PlanError("`review_date` must be a date as in 2030-12-31, got: another text") from None
