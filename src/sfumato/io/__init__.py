"""In and out: files of several formats, and the frames of other packages.

`read` gives what a file holds, `conform` brings it into the form a schema declares, `read_table` does both
and proposes a schema where none is given. `write` and its like never leave half a file behind and never touch
an original.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from pathlib import Path

import polars as pl

from sfumato.data.generalised import is_interval
from sfumato.data.guess import guess_schema
from sfumato.data.schema import Schema
from sfumato.data.table import Table
from sfumato.data.text_forms import to_text
from sfumato.errors import ReadError, WriteError
from sfumato.io.atomic import check_writable, replacing, write_bytes, write_text
from sfumato.io.conform import as_text, conform
from sfumato.io.formats import FORMATS, Options, format_of
from sfumato.io.frames import Native, back, to_polars

__all__ = [
    "FORMATS",
    "Native",
    "back",
    "check_writable",
    "conform",
    "read",
    "read_table",
    "replacing",
    "to_polars",
    "write",
    "write_bytes",
    "write_text",
]


def read(
    path: str | Path,
    *,
    schema: Schema | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    rows: int | None = None,
) -> pl.DataFrame:
    """Read a file as it stands; generalised values and dates in text stay text.

    Parameters
    ----------
    path
        The file; its suffix says the format.
    schema
        Keeps the columns as they are written that it declares to be dates or words with an order.
    delimiter, decimal, encoding
        How a delimited text is written; found out when not given.
    rows
        Read at most this many records.
    """
    place = Path(path)
    options = Options(
        delimiter=delimiter,
        decimal=decimal,
        encoding=encoding,
        rows=rows,
        text=frozenset() if schema is None else as_text(schema),
    )
    reader = format_of(place, error=ReadError)
    _require_file(place)
    try:
        return reader.read(place, options)
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise ReadError(f"`{place}` must be a file that can be read, got: {reason}") from None


def read_table(
    path: str | Path,
    schema: Schema | None = None,
    *,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    rows: int | None = None,
    generalised: Collection[str] = (),
) -> Table:
    """Read a file and bring it into the form of its schema (see `read` and `conform`).

    Without ``schema`` one is proposed, in which some columns may have no role yet.
    """
    frame = read(path, schema=schema, delimiter=delimiter, decimal=decimal, encoding=encoding, rows=rows)
    return conform(frame, guess_schema(frame) if schema is None else schema, generalised=generalised)


def write(
    data: Table | pl.DataFrame,
    path: str | Path,
    *,
    originals: Sequence[str | Path] = (),
    overwrite: bool = False,
) -> None:
    """Write a table to a file that appears whole or not at all.

    Generalised values are written in their text form; in Parquet, intervals stay structs.

    Parameters
    ----------
    data
        The records; their order is the order in the file, and no row numbers are added.
    path
        The file; its suffix says the format.
    originals
        Files that must not be overwritten, under whatever name they are met.
    overwrite
        Whether another file that is there already may be replaced.
    """
    place = Path(path)
    suffix = place.suffix.lower()
    writer = format_of(place, error=WriteError)
    frame = _with_text_forms(data, keep_intervals=FORMATS[suffix] == "parquet")
    with replacing(place, originals=originals, overwrite=overwrite) as file:
        writer.write(frame, file, suffix)


def _with_text_forms(data: Table | pl.DataFrame, *, keep_intervals: bool) -> pl.DataFrame:
    frame, nodes = (data.frame, data.nodes) if isinstance(data, Table) else (data, {})
    return frame.with_columns(
        to_text(series, nodes.get(series.name))
        for series in frame
        if series.name in nodes or (is_interval(series.dtype) and not keep_intervals)
    )


def _require_file(path: Path) -> None:
    if path.is_dir():
        raise ReadError(f"`{path}` must be a file, got: a folder", hint="name a file in it")
    if path.exists():
        return
    folder = path.parent
    if not folder.is_dir():
        raise ReadError(f"`{path}` must be a file, got: nothing, nor is there a folder `{folder}`")
    names = sorted(other.name for other in folder.iterdir() if other.suffix.lower() in FORMATS)
    near = difflib.get_close_matches(path.name, names, n=3, cutoff=0.5) or names[:5]
    hint = f"there is {' or '.join(f'`{name}`' for name in near)}" if near else f"`{folder}` has no data file"
    raise ReadError(f"`{path}` must be a file, got: nothing of that name", hint=hint)
