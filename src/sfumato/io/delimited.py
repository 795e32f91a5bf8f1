"""CSV and TSV: text cut by commas, semicolons, tabs or bars.

All columns are read as text by polars, then those that are numbers throughout are turned into numbers. So the
type of a column depends on all its values, not on the first hundred; a postcode keeps its leading zero, an
account number its digits, and a code such as 250.00 beside 250.0 its last zeros.
"""

from __future__ import annotations

import codecs
import io
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl

from sfumato.data.column_store import collect
from sfumato.data.date_forms import in_form
from sfumato.data.schema import Column
from sfumato.data.table import Table
from sfumato.errors import (
    NoteWarning,
    ParameterError,
    ReadError,
    SfumatoError,
    WriteError,
    count_noun,
    quoted,
)
from sfumato.io import lines, sniff, textual
from sfumato.io.formats import DELIMITERS, Contents, FileDialect, Options
from sfumato.io.sniff import Dialect
from sfumato.kernels.arrays import Bytes

_UTF8 = frozenset({"utf-8", "utf-8-sig", "ascii"})
#: Suffixes of texts that have tabs between their fields.
TABBED = frozenset({".tsv", ".tab"})
_QUOTE_STYLES: Mapping[str, Literal["necessary", "always", "non_numeric"]] = {
    "": "necessary",
    "all": "always",
    "text": "non_numeric",
}
_NUMBERS_BOXED = r"^\[[-+\d.e]*;[-+\d.e]*\]$"
_SPARE = 100  # lines read beyond those asked for, since blank ones are no records


@dataclass(frozen=True)
class Text:
    """A delimited text in UTF-8: the file itself, or its bytes where they had to be rewritten."""

    name: str
    source: Path | bytes
    content: Bytes
    dialect: Dialect
    encoding: str = "utf-8"

    @property
    def layout(self) -> lines.TextLayout:
        """The bytes, and those that cut them into fields."""
        quote = self.dialect.quote
        return lines.TextLayout(
            self.content, ord(self.dialect.delimiter), None if quote is None else ord(quote)
        )

    def first(self, records: int) -> Text:
        """The header and the first records only."""
        content = lines.cut(self.layout, records + self.dialect.header)
        return replace(self, source=content.tobytes(), content=content)


def read(path: Path, options: Options) -> Contents:
    """Read a delimited text."""
    if options.decimal not in {None, ".", ","}:
        raise ParameterError(f"`decimal` must be `.` or `,`, got: `{options.decimal}`")
    text = _open(path, options)
    quote = text.layout.quote
    if options.decimal == text.dialect.delimiter and (quote is None or not text.layout.count(quote)):
        raise ParameterError(
            f"`{options.decimal}` is given as `decimal`, but it is the delimiter of `{path.name}`"
        )
    frame = _parse(text)
    if frame is None and options.encoding is None and _is_late_western(text):
        text = _decode_whole_text(path, "cp1252", options)
        frame = _parse(text)
    if frame is None:
        raise _find_bad_line(text)
    commas = "yes" if text.dialect.delimiter == ";" else "unless thousands"
    texts, dialect = frame, text.dialect
    frame, decimal = textual.cast_columns(frame, decimal=options.decimal, commas=commas, text=options.text)
    # Numbers are typed first, as few columns are left to be looked through; but not where commas are in them.
    frame = _whole(frame, text, texts if dialect.delimiter == "," else frame)
    reading = FileDialect(
        delimiter=dialect.delimiter,
        decimal=decimal,
        encoding=text.encoding,
        header="yes" if dialect.header else "no",
        quotes=dialect.quoted,
    )
    return Contents(frame if options.rows is None else frame.head(options.rows), reading=reading)


def write(table: Table, path: Path, suffix: str, like: FileDialect) -> None:
    """Write a delimited text, with tabs in a TSV file; a missing value is nothing, empty text is ``""``.

    It is written as another was read: with its delimiter, decimal sign, quotes and encoding, if that can hold
    all values.
    """
    decimal = like.decimal or "."
    frame = table.frame.with_columns(
        _text_of_column(table.frame[column.name], column, decimal) for column in table.schema.columns
    )
    text = path if like.encoding in {"", *_UTF8} else io.BytesIO()
    try:
        frame.write_csv(
            text,
            separator="\t" if suffix in TABBED else like.delimiter or ",",
            quote_style=_QUOTE_STYLES[like.quotes],
            include_bom=like.encoding == "utf-8-sig",
        )
    except pl.exceptions.PolarsError:
        wrong = [name for name, dtype in table.frame.schema.items() if not is_writable(dtype)]
        raise WriteError(
            f"lists, bytes and durations cannot be written as text: {quoted(wrong[:10])}",
            hint="write a Parquet file instead",
        ) from None
    if isinstance(text, io.BytesIO):
        path.write_bytes(_encode_text(text.getvalue(), like.encoding))


def _text_of_column(series: pl.Series, column: Column, decimal: str) -> pl.Series:
    """A column as a text file has it: dates in their form, a code for a missing value without decimals."""
    if column.form and (series.dtype == pl.String or series.dtype.is_temporal()):
        return in_form(series, column.form)
    codes = [
        int(code) for code in column.missing_codes if isinstance(code, int | float) and code == int(code)
    ]
    if series.dtype == pl.String and decimal == ",":
        return _with_commas(series)
    if not series.dtype.is_float() or (decimal == "." and not codes):
        return series
    texts = series.cast(pl.String).replace([f"{code}.0" for code in codes], [str(code) for code in codes])
    return texts.str.replace(".", decimal, literal=True)


def _with_commas(texts: pl.Series) -> pl.Series:
    """Intervals of numbers, and single numbers beside them, with commas before their decimals."""
    boxed = texts.str.contains(_NUMBERS_BOXED).fill_null(value=False)
    if not boxed.any():
        return texts
    boxed |= texts.str.contains(r"^-?\d+\.\d+$").fill_null(value=False)
    return texts.str.replace_all(".", ",", literal=True).zip_with(boxed, texts)


def _encode_text(text: bytes, encoding: str) -> bytes:
    """The text in an encoding, or as it is, in UTF-8, where that has no letter for a value."""
    try:
        return text.decode().encode(encoding)
    except UnicodeEncodeError:
        note = f"the release is written in UTF-8, because {encoding} has no code for some of its letters"
        warnings.warn(NoteWarning(note), stacklevel=2)
        return text


def is_writable(dtype: pl.DataType) -> bool:
    """Whether values of a type can stand in a text."""
    return not (dtype.is_nested() or isinstance(dtype, pl.Binary | pl.Object | pl.Duration))


def is_utf8(path: Path) -> bool:
    """Whether a text is written in UTF-8."""
    try:
        path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


# Opening: which bytes, and how they are to be cut ---------------------------------------------------------


def _open(path: Path, options: Options) -> Text:
    with path.open("rb") as file:
        head = file.read(sniff.HEAD)
    if not head.strip(b"\xef\xbb\xbf \t\r\n"):
        raise ReadError(f"`{path.name}` is empty", hint="its first line must hold the names of the columns")
    encoding = sniff.encoding_of(head, name=path.name) if options.encoding is None else options.encoding
    encoding = sniff.known_encoding(encoding)
    if encoding in _UTF8 and (b"\n" in head or b"\r" not in head):
        text = _text(path, path, np.memmap(path, dtype=np.uint8, mode="r"), options)
        return replace(text, encoding="utf-8-sig" if head.startswith(codecs.BOM_UTF8) else "utf-8")
    return _decode_whole_text(path, encoding, options)


def _decode_whole_text(path: Path, encoding: str, options: Options) -> Text:
    """Decode a text of another encoding, or with the line ends of old Macintoshes, as a whole."""
    raw = path.read_bytes()
    try:
        decoded = raw.decode(encoding)
    except UnicodeDecodeError as error:
        if encoding != "cp1252":
            line = raw[: error.start].decode(encoding, errors="replace").count("\n") + 1
            raise _not_decodable(path.name, line, encoding) from None
        decoded = raw.decode("latin-1")  # five bytes mean nothing in Windows-1252
    decoded = decoded.removeprefix("\ufeff")
    if "\n" not in decoded:
        decoded = decoded.replace("\r", "\n")
    content = decoded.encode()
    return replace(_text(path, content, np.frombuffer(content, dtype=np.uint8), options), encoding=encoding)


def _text(path: Path, source: Path | bytes, content: Bytes, options: Options) -> Text:
    head = content[: sniff.HEAD].tobytes().decode("utf-8-sig", errors="replace")
    if len(content) > sniff.HEAD and "\n" in head:
        head = head[: head.rindex("\n") + 1]  # the last line may have been cut
    delimiter = options.delimiter or ("\t" if path.suffix.lower() in TABBED else None)
    dialect = sniff.dialect_of(head, name=path.name, delimiter=delimiter, header=options.header)
    text = Text(path.name, source, content, dialect)
    return text if options.rows is None else text.first(options.rows + _SPARE)


def _not_decodable(name: str, line: int, encoding: str) -> ReadError:
    return ReadError(
        f"line {line} of `{name}` is not text in {encoding}",
        hint="give its encoding, for example encoding='cp1252', or save it as UTF-8",
    )


# Parsing, and finding out what went wrong -----------------------------------------------------------------


def _parse(text: Text) -> pl.DataFrame | None:
    """Read all columns as text, or None when that cannot be done."""
    try:
        lazy = pl.scan_csv(
            text.source,
            separator=text.dialect.delimiter,
            quote_char=text.dialect.quote,
            has_header=text.dialect.header,
            infer_schema=False,
            glob=False,
        )
        frame = collect(lazy, by_rows=True)
    except SfumatoError:  # a scratch folder that is full says nothing about the text
        raise
    except (pl.exceptions.PolarsError, OSError, ValueError):  # its text may quote cells
        return None
    if len(frame.columns) != len(text.dialect.names):
        return None
    frame.columns = list(text.dialect.names)
    return frame


def _whole(frame: pl.DataFrame, text: Text, texts: pl.DataFrame) -> pl.DataFrame:
    """Make sure that no line was too short, and leave out blank lines.

    Polars refuses a line that is too long; so if the file has exactly as many delimiters as full lines have
    (and those within quotes, which ``texts`` still have), no line was too short either.
    """
    layout, width = text.layout, len(text.dialect.names)
    quoted = layout.quote is not None and layout.count(layout.quote) > 0
    within = _count_inner_delimiters(texts, text.dialect) if quoted else 0
    named = int(text.dialect.header)
    missing = (width - 1) * (frame.height + named) + within - layout.count(layout.delimiter)
    # Polars passes over one delimiter too many at the very end, which could make up for a short line.
    if not missing and layout.content[-1] != layout.delimiter:
        return frame
    if missing < 0 or lines.find_uneven_line(layout, fields=width):
        raise _find_bad_line(text)
    blank = lines.blank(layout) - named
    if missing != len(blank) * (width - 1):
        raise _find_bad_line(text)
    keep = np.ones(frame.height, dtype=bool)
    keep[blank] = False
    return frame.filter(keep)


def _count_inner_delimiters(frame: pl.DataFrame, dialect: Dialect) -> int:
    """The number of delimiters that are part of a value or a name."""
    texts = frame.select(pl.col(pl.String).str.count_matches(dialect.delimiter, literal=True).sum())
    in_values = sum(int(count) for count in texts.row(0)) if texts.width else 0
    return in_values + sum(name.count(dialect.delimiter) for name in dialect.names if dialect.header)


def _find_bad_line(text: Text) -> ReadError:
    """Find the line that cannot be read, and say what is wrong with it but not what is in it."""
    offset = _undecodable(text)
    if offset is not None:
        return _not_decodable(text.name, text.layout.line_at(offset), "utf-8")
    layout, width = text.layout, len(text.dialect.names)
    stray, unclosed = lines.stray_quote(layout), lines.find_unclosed_quote(layout)
    uneven = lines.find_uneven_line(layout, fields=width)
    if uneven is not None and (unclosed is None or uneven.line < min(unclosed, stray or unclosed)):
        return _uneven_line_error(text, uneven)
    if stray is not None:
        return ReadError(
            f"line {stray} of `{text.name}` has a quote within a field",
            hint="double the quotes that are part of a value, and put the value in quotes",
        )
    if unclosed is not None:
        return ReadError(f"line {unclosed} of `{text.name}` opens a quote that is never closed")
    return ReadError(
        f"`{text.name}` cannot be read as text with the delimiter "
        f"`{DELIMITERS.get(text.dialect.delimiter, text.dialect.delimiter)}`",
        hint="give its `delimiter` and `encoding`",
    )


def _uneven_line_error(text: Text, uneven: lines.UnevenLine) -> ReadError:
    width = len(text.dialect.names)
    hint = "correct the line, or put a value that holds the delimiter in quotes"
    if uneven.line == 2 and uneven.fields == width + 1:  # noqa: PLR2004
        hint = "if every line has one field more, these are row names: write the file with row.names=FALSE"
    return ReadError(
        f"line {uneven.line} of `{text.name}` has {count_noun(uneven.fields, 'field')}, its header {width}",
        hint=hint,
    )


def _undecodable(text: Text) -> int | None:
    """Where the bytes cease to be UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    for offset in range(0, len(text.content), sniff.HEAD):
        piece = text.content[offset : offset + sniff.HEAD].tobytes()
        held = len(decoder.getstate()[0])  # bytes of a character that the last piece cut in two
        try:
            decoder.decode(piece, final=offset + sniff.HEAD >= len(text.content))
        except UnicodeDecodeError as error:
            return offset - held + error.start
    return None


def _is_late_western(text: Text) -> bool:
    """Whether the first letter beyond ASCII stands late in the file and is not of UTF-8."""
    offset = _undecodable(text)
    return offset is not None and text.content[:offset].tobytes().isascii()
