"""Parquet: columns with their types. Intervals stay structs; nothing has to be found out."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from sfumato.data.column_store import collect
from sfumato.data.table import Table
from sfumato.errors import WriteError
from sfumato.io.formats import Contents, FileDialect, Options, damaged_file, other_format

_MAGIC = b"PAR1"


def read(path: Path, options: Options) -> Contents:
    """Read a Parquet file."""
    options.refuse_unless(frozenset({"rows", "text"}), what="Parquet files")
    with path.open("rb") as file:
        start = file.read(len(_MAGIC))
    if start != _MAGIC:
        raise other_format(path.name, "Parquet")
    try:
        frame = collect(pl.scan_parquet(path, n_rows=options.rows, glob=False, hive_partitioning=False))
    except (pl.exceptions.PolarsError, OSError, ValueError):  # its text may quote cells
        raise damaged_file(path.name, "Parquet") from None
    return Contents(frame)


def write(table: Table, path: Path, suffix: str, like: FileDialect) -> None:  # noqa: ARG001
    """Write a Parquet file."""
    try:
        table.frame.write_parquet(path)
    except pl.exceptions.PolarsError:
        kinds = ", ".join(sorted({str(dtype.base_type()) for dtype in table.frame.dtypes}))
        raise WriteError(f"a Parquet file cannot store all of these types: {kinds}") from None
