"""Which formats there are, by the suffix of the file's name.

A format is a module of this room with two functions, ``read(path, options)``, which gives the `Contents` of a
file, and ``write(table, path, suffix, like)``; it is named once below and imported when such a file is first
met.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Protocol, cast

import polars as pl

from sfumato.data.table import Table
from sfumato.errors import DataError, ParameterError, ReadError, quoted

#: The module that reads and writes the files of each suffix.
FORMATS = {
    ".csv": "delimited",
    ".tsv": "delimited",
    ".tab": "delimited",
    ".txt": "delimited",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".xlsx": "excel",
    ".sav": "statistical",
    ".zsav": "statistical",
    ".por": "statistical",
    ".dta": "statistical",
    ".sas7bdat": "statistical",
    ".xpt": "statistical",
    ".asc": "fixed_format",
}

#: Formats whose files are described by another beside them, and the suffix of that.
_DESCRIBED_BY = {".asc": ".rda"}

#: Formats that can only be read, and what the same package reads instead.
_INSTEAD = {".por": ".sav", ".sas7bdat": ".xpt"}

#: What may be said of how a file is read.
READING = ("delimiter", "decimal", "encoding", "header", "sheet")

DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}

#: The formats that can hold an interval as it is, not as text.
KEEP_INTERVALS = frozenset({"parquet", "arrow"})


@dataclass(frozen=True)
class Options:
    """What a reader may be told; None is "find out".

    ``rows`` is the number of records to read at most, ``text`` names the columns whose values must be kept as
    they are written, ``sheet`` is the one of a workbook, ``header`` is whether names stand in the first line.
    """

    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    rows: int | None = None
    text: frozenset[str] = frozenset()
    sheet: str | None = None
    header: bool | None = None

    def __post_init__(self) -> None:
        if self.rows is not None and self.rows < 0:
            raise ParameterError(f"`rows` must be a whole number of at least 0, got: `{self.rows}`")

    def refuse_unless(self, allowed: frozenset[str], *, what: str) -> None:
        """Refuse the options that a format has no use for, rather than pass over them."""
        for item in fields(self):
            if item.name not in allowed and getattr(self, item.name) != item.default:
                raise ParameterError(f"`{item.name}` does not apply to {what}")


@dataclass(frozen=True)
class FileDialect:
    """How a file was read: what was said of it, and what was found out; empty where it does not apply.

    ``quotes`` is "all" or "text" where every field, or every text, stands in quotes; ``sheet`` is the one of
    a workbook that was read, ``sheets`` are its others.
    """

    delimiter: str = ""
    decimal: str = ""
    encoding: str = ""
    header: str = ""
    sheet: str = ""
    quotes: str = ""
    sheets: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, str]:
        """What has to be said to read the file so again, as a plan's ``[data]`` does."""
        payload = {name: getattr(self, name) for name in READING if name != "sheet" or self.sheets}
        usual = {"delimiter": ",", "decimal": ".", "encoding": "utf-8", "header": "yes"}
        return {name: value for name, value in payload.items() if value and value != usual.get(name)}

    def notes(self) -> list[str]:
        """What should be known of how the file was read, in words."""
        payload = self.to_dict()
        words = (
            [f"{DELIMITERS.get(payload['delimiter'], payload['delimiter'])} between fields"]
            if "delimiter" in payload
            else []
        )
        words += ["a comma before decimals"] if "decimal" in payload else []
        words += [f"encoding {payload['encoding']}"] if "encoding" in payload else []
        found = [f"read with {', '.join(words)}"] if words else []
        if payload.get("header") == "no":
            found.append(
                "the first line looks like a record, so the columns are numbered: give the file a header "
                "line, or say --header if the first line is one"
            )
        if self.sheets:
            found.append(f"read from the sheet `{self.sheet}`; other sheets: {quoted(self.sheets)}")
        return found


@dataclass(frozen=True)
class Contents:
    """The records of a file, and what the file itself says of its columns.

    ``facts`` has, for some columns, facts as `sfumato.data.schema.Column` takes them: ``kind``, ``label``,
    ``labels``, ``missing``, ``missing_range``, ``order``. They are surer than any guess. ``reading`` is how
    the file was read, as `FileDialect` says it.
    """

    frame: pl.DataFrame
    facts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    reading: FileDialect = field(default_factory=FileDialect)


class Format(Protocol):
    """What a module of this room offers."""

    def read(self, path: Path, options: Options) -> Contents:
        """Read a file."""

    def write(self, table: Table, path: Path, suffix: str, like: FileDialect) -> None:
        """Write a table into a file that is there and empty; it is moved to its place afterwards.

        ``table`` holds no generalised nodes (they are text by then), and intervals only for Parquet and
        Arrow; its schema has the labels, missing codes and kinds to keep. ``like`` is how another file was
        read that this one shall be like.
        """


def description_path(path: Path) -> Path | None:
    """Where the description of a file stands; None if the file needs none."""
    suffix = _DESCRIBED_BY.get(path.suffix.lower())
    return None if suffix is None else path.with_suffix(suffix)


def written_suffix(source: str) -> str:
    """The suffix by which a release of this source is written: its own, or that of the next best format."""
    suffix = Path(source).suffix.lower()
    return _INSTEAD.get(suffix, suffix) if suffix in FORMATS and not source.startswith("builtin:") else ".csv"


def format_of(path: Path, *, error: type[DataError]) -> Format:
    """Find the format of a file, or raise ``error`` with the suffixes that work."""
    module = FORMATS.get(path.suffix.lower())
    if module is None:
        raise error(
            f"the format of `{path.name}` is not known: data files end in {', '.join(FORMATS)}",
            hint="rename the file, or save the data in one of these formats",
        )
    return cast("Format", importlib.import_module(f"{__package__}.{module}"))


def damaged_file(name: str, what: str, hint: str = "copy or export it again") -> ReadError:
    """The error for a file that is not whole."""
    return ReadError(f"the {what} file `{name}` is damaged or cut short", hint=hint)


def other_format(
    name: str, what: str, hint: str = "was it saved in another format, or under a wrong name?"
) -> ReadError:
    """The error for a file that is not what its suffix says."""
    return ReadError(f"`{name}` is not in {what} format", hint=hint)
