"""Parquet: columns with their types. Intervals stay structs; nothing has to be found out."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import polars as pl

from sfumato.errors import ReadError, WriteError
from sfumato.io.formats import Options

_MAGIC = b"PAR1"


def read(path: Path, options: Options) -> pl.DataFrame:
    """Read a Parquet file."""
    options.refuse_unless(frozenset({"rows", "text"}), what="Parquet")
    with path.open("rb") as file:
        start = file.read(len(_MAGIC))
    if start != _MAGIC:
        raise ReadError(
            f"`{path.name}` must be a Parquet file, got: a file that does not begin like one",
            hint="was it saved in another format, or under a wrong name?",
        )
    try:
        return pl.read_parquet(path, n_rows=options.rows, glob=False, hive_partitioning=False)
    except (pl.exceptions.PolarsError, OSError, ValueError):  # its text may quote cells
        raise ReadError(
            f"`{path.name}` must be a whole Parquet file, got: one that is damaged or cut short",
            hint="copy or export it again",
        ) from None


def write(frame: pl.DataFrame, file: BinaryIO, suffix: str) -> None:  # noqa: ARG001
    """Write a Parquet file."""
    try:
        frame.write_parquet(file)
    except pl.exceptions.PolarsError:
        kinds = ", ".join(sorted({str(dtype.base_type()) for dtype in frame.dtypes}))
        raise WriteError(f"the columns must be of types that Parquet can hold, got: {kinds}") from None
