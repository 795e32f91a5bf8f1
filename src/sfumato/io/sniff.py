"""Finds out how a delimited text is written, from its first part: encoding, quotes, delimiter, header."""

from __future__ import annotations

import codecs
import csv
import io
import re
from dataclasses import dataclass
from itertools import islice

from sfumato.errors import ParameterError, ReadError
from sfumato.io.formats import DELIMITERS

#: How much of a file is looked at.
HEAD = 1 << 20

_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_FIELD_START = r"(?:^|[,;|\t])"
_RECORDS = 200
_LINES = 20
#: A number, a date or an e-mail address: no name of a column.
_VALUE = r"\s*[-+]?[\d.,:/\-T ]*\d[\d.,:/\-TZ ]*|[\w.+\-]+@[\w\-]+\.[\w.\-]+"


@dataclass(frozen=True)
class Dialect:
    """How a delimited text is written; ``quote`` is None when quotes are letters like any other.

    ``quoted`` says which fields stand in quotes although they need none: "all", those of "text", or "".
    """

    delimiter: str
    quote: str | None
    names: tuple[str, ...]
    header: bool = True
    quoted: str = ""


def encoding_of(head: bytes, *, name: str) -> str:
    """Find the encoding from a byte-order mark, or from what the bytes can be: UTF-8, else Windows-1252."""
    for mark, encoding in _MARKS.items():  # the longer marks of UTF-32 begin like those of UTF-16
        if head.startswith(mark):
            return encoding
    if b"\0" in head:
        raise ReadError(
            f"`{name}` is not a text file: it has zero bytes",
            hint="is it an Excel file or another binary format? for text in UTF-16: encoding='utf-16-le'",
        )
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)  # a character cut at the end is no fault
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


def known_encoding(encoding: str) -> str:
    """Give the usual name of an encoding, or refuse one that does not exist."""
    try:
        return codecs.lookup(encoding).name
    except LookupError:
        raise ParameterError(
            f"there is no encoding `{encoding}`",
            hint="common ones are utf-8, cp1252, latin-1 and utf-16",
        ) from None


def dialect_of(head: str, *, name: str, delimiter: str | None = None, header: bool | None = None) -> Dialect:
    """Find the quotes, the delimiter and the names of the columns."""
    if delimiter is not None and (len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n'):
        raise ParameterError(
            f"`delimiter` must be one ASCII character other than a quote, got: `{delimiter!r}`",
            hint=f"common ones are {', '.join(repr(known) for known in DELIMITERS)}",
        )
    quote = '"' if '"' not in head or re.search(_FIELD_START + '"', head, re.MULTILINE) else None
    chosen = delimiter or _delimiter_of(head, quote)
    if quote == '"' and _has_single_quotes(head, chosen):
        quote = "'"
    records = _records(head, chosen, quote)
    first = next((record for record in records if record), [])
    if not first:
        raise ReadError(f"`{name}` is empty", hint="its first line must hold the names of the columns")
    named = not _is_record(first, records[1:]) if header is None else header
    names = first if named else [f"column_{place}" for place in range(1, len(first) + 1)]
    _require_names(names, name)
    return Dialect(chosen, quote, tuple(names), named, _quoting_style(head, chosen))


def _quoting_style(head: str, delimiter: str) -> str:
    """Which fields of the first lines stand in quotes: "all", all that are no numbers ("text"), or ""."""
    cut = re.compile(rf"{re.escape(delimiter)}(?=(?:[^\"]*\"[^\"]*\")*[^\"]*$)")
    fields = [field for line in head.splitlines()[:_LINES] for field in cut.split(line) if field]
    bare = [field for field in fields if not field.startswith('"')]
    if not fields or len(bare) == len(fields):
        return ""
    return "all" if not bare else "text" if all(re.fullmatch(_VALUE, field) for field in bare) else ""


def _is_record(first: list[str], others: list[list[str]]) -> bool:
    """Whether the first line is a record: at least half of it are numbers, dates or addresses as those below.

    Years alone may be the names of columns.
    """
    alike = [
        place
        for place, field in enumerate(first)
        if re.fullmatch(_VALUE, field)
        and (below := [each[place] for each in others if len(each) > place and each[place]])
        and sum(bool(re.fullmatch(_VALUE, each)) for each in below) * 2 > len(below)
    ]
    years = all(re.fullmatch(r"(?:19|20)\d\d", first[place]) for place in alike)
    return 2 * len(alike) >= len(first) and len(alike) > 0 and not years


def _records(text: str, delimiter: str, quote: str | None) -> list[list[str]]:
    file = io.StringIO(text, newline="")
    if quote is None:
        reader = csv.reader(file, delimiter=delimiter, quotechar=None, quoting=csv.QUOTE_NONE)
    else:
        reader = csv.reader(file, delimiter=delimiter, quotechar=quote)
    try:
        return [record for record in islice(reader, _RECORDS) if record]
    except csv.Error:  # a field longer than a field can be: the quotes do not pair under this delimiter
        return [next(csv.reader([text.lstrip().partition("\n")[0]], delimiter=delimiter), [])]


def _has_single_quotes(head: str, delimiter: str) -> bool:
    """Whether single quotes enclose fields: they do in the header, or the lines are even only then."""
    if '"' in head:
        return False
    cut = re.escape(delimiter)
    opening = len(re.findall(rf"(?:^|{cut})'", head, re.MULTILINE))
    whole = len(re.findall(rf"(?:^|{cut})'[^'\n]*'(?={cut}|[\r\n]|$)", head, re.MULTILINE))
    if whole != opening or not whole:
        return False
    names, *_ = _records(head, delimiter, '"') or [[]]
    in_header = any(len(name) > 1 and name.startswith("'") and name.endswith("'") for name in names)
    return in_header or _agreement(head, delimiter, "'")[0] > _agreement(head, delimiter, '"')[0]


def _agreement(head: str, delimiter: str, quote: str | None) -> tuple[float, int]:
    """The share of lines that have as many fields as the header, and how many that is."""
    header, *others = [len(record) for record in _records(head, delimiter, quote)] or [0]
    return sum(count == header for count in others) / len(others) if others else 1.0, header


def _delimiter_of(head: str, quote: str | None) -> str:
    """Choose the delimiter that cuts the header into many fields and the lines into as many."""
    scores = {}
    for delimiter in DELIMITERS:
        share, fields = _agreement(head, delimiter, quote)
        scores[delimiter] = (fields * share, fields) if fields > 1 else (0.0, 0)
    # In 3;1,5 both would do: the comma is of a number.
    best = max(scores, key=lambda delimiter: (scores[delimiter], delimiter == ";"))
    return best if scores[best] > (0.0, 0) else ","


def _require_names(header: list[str], name: str) -> None:
    # A file may have no header, and then these are cells: the message names positions only.
    empty = [place for place, column in enumerate(header, start=1) if not column.strip()]
    if empty:
        raise ReadError(
            f"`{name}` has columns without a name, at {in_places(empty)}",
            hint="a nameless first column is often row numbers: write it with row.names=FALSE or index=False",
        )
    patterns = [i for i, column in enumerate(header, start=1) if column[:1] == "^" and column[-1:] == "$"]
    if patterns:  # polars reads them so
        raise ReadError(
            f"`{name}` has column names that begin with ^ and end with $, at {in_places(patterns)}",
            hint="rename these columns",
        )
    require_distinct(
        header, name, hint="rename one; or does the file begin without a header line (--no-header)?"
    )


def require_distinct(names: list[str], file: str, *, hint: str) -> None:
    """Raise if two columns have one name; the message gives their places."""
    first: dict[str, int] = {}
    for place, name in enumerate(names, start=1):
        if first.setdefault(name, place) != place:
            raise ReadError(
                f"two columns of `{file}` have the same name, at positions {first[name]} and {place}",
                hint=hint,
            )


def in_places(places: list[int]) -> str:
    """Places in a row, the first of them if there are many."""
    shown = ", ".join(str(place) for place in places[:10])
    return f"position{'s' if len(places) > 1 else ''} {shown}{' and others' if len(places) > 10 else ''}"  # noqa: PLR2004
