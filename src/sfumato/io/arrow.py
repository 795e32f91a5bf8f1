"""Arrow IPC (also called Feather): columns with their types, as they lie in memory. Intervals stay structs.

Files are written with the oldest types that hold the values, so that R, pandas and older readers take them.
"""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import polars as pl

from sfumato.data.table import Table
from sfumato.errors import ReadError, WriteError
from sfumato.io.formats import Contents, FileDialect, Options, damaged_file, other_format

_FILE, _STREAM, _FEATHER_ONE = b"ARROW1", b"\xff\xff\xff\xff", b"FEA1"


def read(path: Path, options: Options) -> Contents:
    """Read an Arrow file: the file form or the stream form, whichever it is."""
    options.refuse_unless(frozenset({"rows", "text"}), what="Feather files")
    with path.open("rb") as file:
        start = file.read(len(_FILE))
    if not start.startswith((_FILE, _STREAM)):
        raise _not_arrow(path.name, start)
    with path.open(
        "rb"
    ) as file:  # again: polars reads from the current position, and takes a path for a glob
        return Contents(_parse(file, path.name, stream=start.startswith(_STREAM), rows=options.rows))


def _parse(file: BinaryIO, name: str, *, stream: bool, rows: int | None) -> pl.DataFrame:
    parse = pl.read_ipc_stream if stream else pl.read_ipc
    try:
        return parse(file, n_rows=rows)
    # Their texts may quote cells; and damaged bytes can make polars panic, which is no Exception.
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError):
        hint = "copy or export it again, with a different name for each column"
        raise damaged_file(name, "Arrow", hint) from None


def _not_arrow(name: str, start: bytes) -> ReadError:
    if start.startswith(_FEATHER_ONE):
        return ReadError(
            f"`{name}` is in version 1 of the Feather format, which cannot be read",
            hint="convert it to version 2: pandas.read_feather(…).to_feather(…)",
        )
    return other_format(name, "Arrow")


def write(table: Table, path: Path, suffix: str, like: FileDialect) -> None:  # noqa: ARG001
    """Write an Arrow file in the file form, which is Feather of version 2."""
    try:
        table.frame.write_ipc(path, compat_level=pl.CompatLevel.oldest())
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        kinds = ", ".join(sorted({str(dtype.base_type()) for dtype in table.frame.dtypes}))
        raise WriteError(f"an Arrow file cannot store all of these types: {kinds}") from None
