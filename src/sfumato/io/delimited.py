"""CSV and TSV: text cut by commas, semicolons, tabs or bars.

All columns are read as text by polars, then those that are numbers throughout are turned into numbers. So the
type of a column depends on all its values, not on the first hundred; a postcode keeps its leading zero, an
account number its digits, and a code such as 250.00 beside 250.0 its last zeros.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from sfumato.data.table import Table
from sfumato.errors import ParameterError, ReadError, WriteError
from sfumato.io import lines, sniff, textual
from sfumato.io.formats import Contents, Options
from sfumato.io.sniff import Dialect
from sfumato.kernels.arrays import Bytes

_UTF8 = frozenset({"utf-8", "utf-8-sig", "ascii"})
_TABBED = frozenset({".tsv", ".tab"})
_SPARE = 100  # lines read beyond those asked for, since blank ones are no records


@dataclass(frozen=True)
class Text:
    """A delimited text in UTF-8: the file itself, or its bytes where they had to be rewritten."""

    name: str
    source: Path | bytes
    content: Bytes
    dialect: Dialect

    @property
    def layout(self) -> lines.Layout:
        """The bytes, and those that cut them into fields."""
        quote = self.dialect.quote
        return lines.Layout(self.content, ord(self.dialect.delimiter), None if quote is None else ord(quote))

    def first(self, records: int) -> Text:
        """The header and the first records only."""
        content = lines.cut(self.layout, records + 1)
        return Text(self.name, content.tobytes(), content, self.dialect)


def read(path: Path, options: Options) -> Contents:
    """Read a delimited text."""
    if options.decimal not in {None, ".", ","}:
        raise ParameterError(f"`decimal` must be `.` or `,`, got: `{options.decimal}`")
    text = _open(path, options)
    if options.decimal == text.dialect.delimiter:
        raise ParameterError(
            f"`decimal` and the delimiter of `{path.name}` must differ, got: `{options.decimal}` for both"
        )
    frame = _parse(text)
    if frame is None and options.encoding is None and _is_late_western(text):
        text = _rewritten(path, "cp1252", options)
        frame = _parse(text)
    if frame is None:
        raise _diagnosed(text)
    commas = {",": "no", ";": "yes"}.get(text.dialect.delimiter, "unless thousands")
    frame = textual.typed(frame, decimal=options.decimal, commas=commas, text=options.text)
    frame = _whole(frame, text)
    return Contents(frame if options.rows is None else frame.head(options.rows))


def write(table: Table, path: Path, suffix: str) -> None:
    """Write a delimited text, with tabs in a TSV file; a missing value is nothing, empty text is ``""``."""
    try:
        table.frame.write_csv(path, separator="\t" if suffix in _TABBED else ",")
    except pl.exceptions.PolarsError:
        wrong = [name for name, dtype in table.frame.schema.items() if not _writable(dtype)]
        raise WriteError(
            f"the columns must hold plain values to be written as text, got others in {wrong[:10]}",
            hint="write a Parquet file instead",
        ) from None


def _writable(dtype: pl.DataType) -> bool:
    return not (dtype.is_nested() or isinstance(dtype, pl.Binary | pl.Object | pl.Duration))


# Opening: which bytes, and how they are to be cut ---------------------------------------------------------


def _open(path: Path, options: Options) -> Text:
    with path.open("rb") as file:
        head = file.read(sniff.HEAD)
    if not head.strip(b"\xef\xbb\xbf \t\r\n"):
        raise ReadError(
            f"`{path.name}` must begin with a header line, got: an empty file",
            hint="the first line holds the names of the columns",
        )
    encoding = sniff.encoding_of(head, name=path.name) if options.encoding is None else options.encoding
    encoding = sniff.known_encoding(encoding)
    if encoding in _UTF8 and (b"\n" in head or b"\r" not in head):
        return _text(path, path, np.memmap(path, dtype=np.uint8, mode="r"), options)
    return _rewritten(path, encoding, options)


def _rewritten(path: Path, encoding: str, options: Options) -> Text:
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
    return _text(path, content, np.frombuffer(content, dtype=np.uint8), options)


def _text(path: Path, source: Path | bytes, content: Bytes, options: Options) -> Text:
    head = content[: sniff.HEAD].tobytes().decode("utf-8-sig", errors="replace")
    if len(content) > sniff.HEAD and "\n" in head:
        head = head[: head.rindex("\n") + 1]  # the last line may have been cut
    delimiter = options.delimiter or ("\t" if path.suffix.lower() in _TABBED else None)
    dialect = sniff.dialect_of(head, name=path.name, delimiter=delimiter)
    text = Text(path.name, source, content, dialect)
    return text if options.rows is None else text.first(options.rows + _SPARE)


def _not_decodable(name: str, line: int, encoding: str) -> ReadError:
    return ReadError(
        f"`{name}` must be text in {encoding}, got: bytes that are not, in line {line}",
        hint="say which encoding it is, for example encoding='cp1252', or save it as UTF-8",
    )


# Parsing, and finding out what went wrong -----------------------------------------------------------------


def _parse(text: Text) -> pl.DataFrame | None:
    """Read all columns as text, or None when that cannot be done."""
    try:
        frame = pl.read_csv(
            text.source,
            separator=text.dialect.delimiter,
            quote_char=text.dialect.quote,
            infer_schema=False,
            glob=False,
        )
    except (pl.exceptions.PolarsError, OSError, ValueError):  # its text may quote cells
        return None
    if len(frame.columns) != len(text.dialect.names):
        return None
    frame.columns = list(text.dialect.names)
    return frame


def _whole(frame: pl.DataFrame, text: Text) -> pl.DataFrame:
    """Make sure that no line was too short, and leave out blank lines.

    Polars refuses a line that is too long; so if the file has exactly as many delimiters as full lines have
    (and those within quotes), no line was too short either.
    """
    layout, width = text.layout, len(text.dialect.names)
    quoted = layout.quote is not None and layout.count(layout.quote) > 0
    within = _within(frame, text.dialect) if quoted else 0
    missing = (width - 1) * (frame.height + 1) + within - layout.count(layout.delimiter)
    # Polars passes over one delimiter too many at the very end, which could make up for a short line.
    if not missing and layout.content[-1] != layout.delimiter:
        return frame
    if missing < 0 or lines.uneven(layout, fields=width):
        raise _diagnosed(text)
    blank = lines.blank(layout) - 1
    if missing != len(blank) * (width - 1):
        raise _diagnosed(text)
    kept = np.ones(frame.height, dtype=bool)
    kept[blank] = False
    return frame.filter(kept)


def _within(frame: pl.DataFrame, dialect: Dialect) -> int:
    """The number of delimiters that are part of a value or a name."""
    texts = frame.select(pl.col(pl.String).str.count_matches(dialect.delimiter, literal=True).sum())
    in_values = sum(int(count) for count in texts.row(0)) if texts.width else 0
    return in_values + sum(name.count(dialect.delimiter) for name in dialect.names)


def _diagnosed(text: Text) -> ReadError:
    """Find the line that cannot be read, and say what is wrong with it but not what is in it."""
    offset = _undecodable(text)
    if offset is not None:
        return _not_decodable(text.name, text.layout.line_at(offset), "utf-8")
    layout, width = text.layout, len(text.dialect.names)
    stray, unclosed = lines.stray_quote(layout), lines.unclosed(layout)
    uneven = lines.uneven(layout, fields=width)
    if uneven is not None and (unclosed is None or uneven.line < min(unclosed, stray or unclosed)):
        return _uneven(text, uneven)
    if stray is not None:
        return ReadError(
            f"a quote in `{text.name}` must enclose a whole field, got: one within a field, in line {stray}",
            hint="double the quotes that are part of a value, and put the value in quotes",
        )
    if unclosed is not None:
        return ReadError(
            f"every quoted field of `{text.name}` must end, got: one in line {unclosed} that does not"
        )
    return ReadError(
        f"`{text.name}` must be a delimited text, got: one that cannot be read with the delimiter "
        f"`{sniff.DELIMITERS.get(text.dialect.delimiter, text.dialect.delimiter)}`",
        hint="say which `delimiter` and `encoding` it has",
    )


def _uneven(text: Text, uneven: lines.Uneven) -> ReadError:
    width = len(text.dialect.names)
    hint = "correct the line, or put a value that holds the delimiter in quotes"
    if uneven.line == 2 and uneven.fields == width + 1:  # noqa: PLR2004
        hint = "if every line has one more, it is row names: write the file with row.names=FALSE"
    return ReadError(
        f"every line of `{text.name}` must have {width} fields like its header, "
        f"got: {uneven.fields} in line {uneven.line}",
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
