"""Which formats there are, by the suffix of the file's name.

A format is a module of this room with two functions, ``read(path, options)`` and
``write(frame, file, suffix)``, named once below; it is imported when a file of that format is first met.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import BinaryIO, Protocol, cast

import polars as pl

from sfumato.errors import DataError, ParameterError

#: The module that reads and writes the files of each suffix.
FORMATS = {
    ".csv": "delimited",
    ".tsv": "delimited",
    ".tab": "delimited",
    ".txt": "delimited",
    ".parquet": "parquet",
    ".pq": "parquet",
}


@dataclass(frozen=True)
class Options:
    """What a reader may be told; None is "find out".

    ``rows`` is the number of records to read at most, ``text`` names the columns whose values must be kept as
    they are written.
    """

    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    rows: int | None = None
    text: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.rows is not None and self.rows < 0:
            raise ParameterError(f"`rows` must be a whole number of at least 0, got: `{self.rows}`")

    def refuse_unless(self, allowed: frozenset[str], *, what: str) -> None:
        """Refuse the options that a format has no use for, rather than pass over them."""
        for item in fields(self):
            if item.name not in allowed and getattr(self, item.name) != item.default:
                raise ParameterError(f"`{item.name}` is for delimited text, got: a {what} file")


class Format(Protocol):
    """What a module of this room offers."""

    def read(self, path: Path, options: Options) -> pl.DataFrame:
        """Read the records of a file."""

    def write(self, frame: pl.DataFrame, file: BinaryIO, suffix: str) -> None:
        """Write the records into an open file."""


def format_of(path: Path, *, error: type[DataError]) -> Format:
    """Find the format of a file, or raise ``error`` with the suffixes that work."""
    module = FORMATS.get(path.suffix.lower())
    if module is None:
        raise error(
            f"the name of a data file must end in one of {', '.join(FORMATS)}, got: `{path.name}`",
            hint="rename the file, or save the data in one of these formats",
        )
    return cast("Format", importlib.import_module(f"{__package__}.{module}"))
