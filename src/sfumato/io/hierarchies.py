"""Reads and writes hierarchies as the files of other tools: tables of levels, one file per column.

ARX keeps its hierarchies in the form of `sfumato.data.hierarchy.tree`, so they are read and written as
they are.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from itertools import islice
from pathlib import Path

import polars as pl

from sfumato.data.generalised.nodes import WILDCARD
from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.errors import ReadError
from sfumato.io.atomic import write_text
from sfumato.io.sniff import encoding_of

_SEPARATORS = ";,\t|"
_HEADING = re.compile(r"old|new|from|to|values?|leaf|labels?|codes?|groups?", re.IGNORECASE)
_LEVEL_HEADING = re.compile(r"level[ _.-]?\d+", re.IGNORECASE)


def read_hierarchy(
    path: str | Path,
    *,
    name: str | None = None,
    separator: str | None = None,
    header: bool | None = None,
    encoding: str | None = None,
) -> Hierarchy:
    """Read a table of levels (ARX) or of two columns, old value and new (sdcMicro), from a CSV file.

    What is not given is found out: the separator (``;``, ``,``, tab or ``|``), a header (where the first
    row alone does not end in ``*``, or has names like "old" and "new" or "level1"), the encoding (UTF-8 or
    what a byte-order mark says, else Windows-1252). Nothing is stripped but line ends and empty cells at a
    row's end.
    """
    path = Path(path)
    name = path.stem if name is None else name
    rows = _read_rows(path, separator=separator, encoding=encoding)
    if header or (header is None and _has_header(rows)):
        rows = rows[1:]
    if not rows:
        raise ReadError(f"the hierarchy file `{path.name}` has no rows")
    depth = max(len(row) for row in rows)
    levels = {str(i): [row[i] if i < len(row) else None for row in rows] for i in range(depth)}
    return Hierarchy.from_levels(pl.DataFrame(levels), name=name)


def write_hierarchy(
    hierarchy: Hierarchy, path: str | Path, *, overwrite: bool = False, private: bool = False
) -> None:
    """Write the levels as ARX reads them: separated by ``;``, without a header, in UTF-8.

    Parameters
    ----------
    hierarchy
        What is written; its name is not.
    path
        The file, which appears whole or not at all.
    overwrite
        Whether a file that is there already may be replaced.
    private
        Whether only its owner may read it.
    """
    # The csv module quotes a carriage return only where it is part of the line end.
    has_return = hierarchy.levels.select(pl.any_horizontal(pl.all().str.contains("\r").any())).item()
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=";", lineterminator="\r\n" if has_return else "\n").writerows(
        hierarchy.levels.iter_rows()
    )
    write_text(path, text.getvalue(), overwrite=overwrite, private=private)


def _read_rows(path: Path, *, separator: str | None, encoding: str | None) -> list[list[str]]:
    try:
        raw = path.read_bytes()
        # As the table's own file is read, or a value such as `5 €` would not be found among the leaves.
        text = raw.decode(encoding or encoding_of(raw, name=path.name)).removeprefix("\ufeff")
        found = separator or max(_SEPARATORS, key=lambda mark: _fit(text, mark))
        return [_trim_row(row) for row in csv.reader(io.StringIO(text, newline=""), delimiter=found) if row]
    except (OSError, UnicodeError, LookupError, csv.Error) as error:
        why = getattr(error, "strerror", None) or "it is not a table in this encoding and with this separator"
        raise ReadError(f"cannot read the hierarchy file `{path.name}`: {why}") from None


def _trim_row(row: list[str]) -> list[str]:
    # A spreadsheet pads short rows with empty cells; the value itself may be empty.
    while len(row) > 1 and not row[-1]:
        row = row[:-1]
    return row


def _fit(text: str, separator: str) -> tuple[float, float, int]:
    """How well a separator cuts the text: rows that end in the wildcard, rows of equal length, columns."""
    rows = [row for row in islice(csv.reader(io.StringIO(text, newline=""), delimiter=separator), 200) if row]
    width, n_equal = Counter(map(len, rows)).most_common(1)[0] if rows else (1, 0)
    if width == 1:
        return 0.0, 0.0, 1
    return sum(row[-1] == WILDCARD for row in rows) / len(rows), n_equal / len(rows), width


def _has_header(rows: list[list[str]]) -> bool:
    if not rows[1:] or not rows[0][1:]:
        return False
    first, ends = rows[0], {row[-1] for row in rows[1:]}
    if first[-1] in ends:
        return False
    named = all(map(_LEVEL_HEADING.fullmatch, first[1:])) or all(map(_HEADING.fullmatch, first))
    return ends == {WILDCARD} or named
