"""Excel workbooks (.xlsx): the largest sheet or one that is named, with a header in its first row.

What a cell is in Excel stays what it is: a number, a date, true or false, or text. Beyond that

- text whose every value in the column is a number becomes numbers, as in a delimited text; a leading zero or
  a plus sign, very many digits, or an exponent keep it text;
- numbers beside words in one column become text; true and false beside numbers become 1 and 0;
- whole numbers come as Int64, dates at midnight as Date, times of day as Time, others as Datetime;
- a cell that holds an error (#N/A, #DIV/0!) or empty text is a missing value; a formula is what it last gave;
- rows without any value are no records, and columns without name and values are none either.

Excel counts to 16 digits, keeps times to the millisecond and has no dates before 1900 (they are written as
text). What it cannot hold at all is refused rather than changed.
"""

from __future__ import annotations

import datetime as dt
import io
import mmap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from sfumato.data.table import TEXTUAL, Table
from sfumato.errors import (
    MissingDependencyError,
    ReadError,
    WriteError,
    count_noun,
    quoted,
    suggest,
    trouble_with,
)
from sfumato.io import textual
from sfumato.io.formats import Contents, FileDialect, Options
from sfumato.io.sniff import in_places, require_distinct

MOST_ROWS, MOST_COLUMNS, LONGEST_TEXT = 1_048_576, 16_384, 32_767

_ZIP, _OLE = b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_SPARE = 100  # rows read beyond those asked for, since empty ones are no records
_FIRST_INEXACT = 2**53
_MAX_NUMBER = 9.99e307
# What would not come out as it went in: mark-up of xlsxwriter, no characters, escapes of Excel in a row.
_SPOILT = r"(?s)^<r>.*</r>$|[\x{FFFE}\x{FFFF}]|_x[0-9A-Fa-f]{4}_x[0-9A-Fa-f]{4}_"
_NOT_DIGITS = r"[^\d\s.\-]"
_EPOCHS = (dt.date(1899, 12, 30), dt.date(1899, 12, 31))  # the day of a time without a date
_FIRST_DAY, _LAST_DAY, _LEAP = dt.date(1900, 1, 1), dt.date(9999, 12, 31), dt.date(1900, 3, 1)
_MILLISECONDS = 86_400_000
_FORMATS = {
    "date": "yyyy-mm-dd",
    "datetime": "yyyy-mm-dd hh:mm:ss.000",
    "time": "hh:mm:ss.000",
    "duration": "[h]:mm:ss.000",
}


# Reading --------------------------------------------------------------------------------------------------


def read(path: Path, options: Options) -> Contents:
    """Read one sheet of a workbook."""
    options.refuse_unless(frozenset({"rows", "text", "sheet"}), what="spreadsheets")
    _require_workbook(path)
    try:
        import fastexcel
    except ModuleNotFoundError:
        raise MissingDependencyError.of("fastexcel", extra="files", purpose="reading Excel files") from None
    try:
        book = fastexcel.read_excel(path)
        chosen = _choose_sheet(book, options.sheet, path.name)
        limit = None if options.rows is None else options.rows + _SPARE
        frame = _read_sheet(_Sheet(book, chosen, limit), path.name, options.text)
    except fastexcel.UnsupportedColumnTypeCombinationError:
        raise ReadError(
            f"a column of `{path.name}` mixes durations with other values",
            hint="give all cells of the column the same format in Excel",
        ) from None
    except (fastexcel.FastExcelError, pl.exceptions.PolarsError):  # its text may quote cells
        hint = "open it in Excel and save it again as .xlsx"
        raise ReadError(f"`{path.name}` is damaged, or not an Excel workbook", hint=hint) from None
    others = tuple(name for name in book.sheet_names if name != chosen)
    found = frame if options.rows is None else frame.head(options.rows)
    return Contents(found, reading=FileDialect(sheet=chosen, sheets=others))


def _require_workbook(path: Path) -> None:
    """Tell the files that end in .xlsx and are something else."""
    with path.open("rb") as file:
        start = file.read(len(_OLE))
        if start.startswith(_ZIP):
            return
        fault, hint = "is not an Excel workbook", "if it is a CSV file, let its name end in .csv"
        if start == _OLE:
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                locked = content.find(_ENCRYPTED) >= 0
            fault = "is protected by a password" if locked else "is in the old .xls format"
            hint = "open it in Excel and save it as .xlsx" + (" without a password" if locked else "")
    raise ReadError(f"`{path.name}` {fault}", hint=hint)


def _choose_sheet(book: Any, asked: str | None, name: str) -> str:
    """The sheet that is asked for; without a word that with most cells, of equal ones the first."""
    sheets: list[str] = book.sheet_names
    if not sheets:
        raise ReadError(f"`{name}` has no sheets")
    if asked in sheets:
        return asked
    if asked is None:
        return max(sheets, key=lambda sheet: _size(book, sheet)) if len(sheets) > 1 else sheets[0]
    raise ReadError(f"there is no sheet `{asked}` in `{name}`", hint=suggest(asked, sheets))


def _size(book: Any, sheet: str) -> int:
    """How many cells the used part of a sheet has."""
    loaded = book.load_sheet(sheet, header_row=None, dtypes="string", n_rows=1)
    return int(loaded.total_height * loaded.width)


@dataclass(frozen=True)
class _Sheet:
    """One sheet of an open workbook, of which so many rows below the header are read."""

    book: Any
    name: str
    rows: int | None

    def cells(self) -> pl.DataFrame:
        """All cells as text, the header among them; empty text is nothing."""
        more = {} if self.rows is None else {"n_rows": self.rows + 1}
        cells = self.book.load_sheet(self.name, header_row=None, dtypes="string", **more).to_polars()
        return pl.DataFrame([series.cast(pl.String).replace("", None) for series in cells])

    def columns(self, places: list[int], **how: Any) -> dict[int, pl.Series]:
        """Some columns without their header, by their place."""
        if not places:
            return {}
        more = {} if self.rows is None else {"n_rows": self.rows}
        # Chosen by a function, since a list would count the empty columns before the first.
        wanted = set(places)
        found = self.book.load_sheet(self.name, use_columns=lambda one: one.index in wanted, **how, **more)
        return dict(zip(places, found.to_polars(), strict=True))

    @property
    def others(self) -> str:
        """A hint that there are other sheets."""
        names = quoted(name for name in self.book.sheet_names if name != self.name)
        return f"this is the sheet `{self.name}`; others are {names}: choose with sheet='…'" if names else ""


def _read_sheet(sheet: _Sheet, name: str, text: frozenset[str]) -> pl.DataFrame:
    """Read all cells as text, to see what is there, and then the columns as what they are."""
    cells = sheet.cells()
    if cells.is_empty():
        raise ReadError(
            f"the sheet `{sheet.name}` of `{name}` is empty",
            hint=sheet.others or "its first row must hold the names of the columns",
        )
    header, texts = cells.row(0), cells.slice(1)
    filled = [place for place, series in enumerate(texts) if series.null_count() < len(series)]
    kept_columns = sorted({*filled, *(place for place, title in enumerate(header) if title is not None)})
    names = _names([header[place] for place in kept_columns], name, sheet.others)
    typed = sheet.columns(filled, schema_sample_rows=None)
    typed = {place: series for place, series in typed.items() if _is_whole(series, texts.to_series(place))}
    worded = [place for place in filled if place not in typed]
    numbers = sheet.columns(
        [place for place in worded if _has_number(texts.to_series(place))], dtypes="float"
    )
    columns = []
    for place, title in zip(kept_columns, names, strict=True):
        if place in typed:
            column = _refine_types(typed[place])
            column = column.cast(pl.String) if title in text and column.dtype.is_numeric() else column
        else:
            column = texts.to_series(place)
            if place in numbers:
                column = _merge_text_and_numbers(column, numbers[place], as_text=title in text)
        columns.append(column.alias(title))
    return pl.DataFrame(columns).filter(~_empty(texts))


def _is_whole(values: pl.Series, texts: pl.Series) -> bool:
    """Whether a column has a type that loses no cell: the reader takes words such as NULL for nothing."""
    return (
        values.dtype != pl.String and len(values) == len(texts) and values.null_count() == texts.null_count()
    )


def _has_number(texts: pl.Series) -> bool:
    return texts.cast(pl.Float64, strict=False).is_not_null().any()


def _merge_text_and_numbers(texts: pl.Series, numbers: pl.Series, *, as_text: bool) -> pl.Series:
    """Numbers among text, with the digits that are cut off where they are read as text.

    They become numbers where every text is one too, and none of them one that a number would spoil.
    """
    cut = (texts.cast(pl.Float64, strict=False) != numbers).fill_null(value=False)
    whole = texts.zip_with(~cut, numbers.cast(pl.String))
    if as_text or texts.str.contains(_NOT_DIGITS).any():
        return whole
    read = textual.numbers(whole)
    return whole if read is None or textual.is_code(whole, read) else read


def _refine_types(values: pl.Series) -> pl.Series:
    """Whole numbers as such, dates where all times are midnight, times of day where none has a date."""
    if values.dtype == pl.Float64:
        whole = (values == values.floor()) & (values.abs() < _FIRST_INEXACT)
        return values.cast(pl.Int64) if whole.all() else values
    if not isinstance(values.dtype, pl.Datetime):
        return values
    present = values.drop_nulls()
    if present.dt.date().is_in(_EPOCHS).all():
        return values.dt.time()
    midnight = (present.dt.time() == dt.time()).all()
    return values.dt.date() if midnight else values.dt.cast_time_unit("us")


def _names(header: list[str | None], name: str, also: str) -> list[str]:
    """The names of the columns; a message gives places only, since without a header these are cells."""
    empty = [place for place, title in enumerate(header, start=1) if title is None or not title.strip()]
    if empty:
        raise ReadError(
            f"`{name}` has columns without a name, at {in_places(empty)}",
            hint=also or "the first row must be the header: no title above it, no merged cells in it",
        )
    names = [str(title).removesuffix(" 00:00:00") for title in header]  # a date
    require_distinct(names, name, hint=also or "does the sheet begin with a header row?")
    return names


def _empty(frame: pl.DataFrame) -> pl.Series:
    """Which records have no value at all."""
    return frame.select(pl.all_horizontal(pl.all().is_null())).to_series() if frame.width else pl.Series([])


# Writing --------------------------------------------------------------------------------------------------


def write(table: Table, path: Path, suffix: str, like: FileDialect) -> None:  # noqa: ARG001
    """Write a workbook of one sheet: a header row and the records, every text as text and no formula.

    The sheet has the name of that which was read.
    """
    try:
        import xlsxwriter
    except ModuleNotFoundError:
        raise MissingDependencyError.of("xlsxwriter", extra="files", purpose="writing Excel files") from None
    _require_room(table.frame)
    cells = [_cells(series) for series in table.frame]
    _require_values(pl.DataFrame([series for series, _ in cells]))
    # In memory: temporary files would leave cells behind on the disk of a run that is killed.
    settings = {
        "in_memory": True,
        "use_zip64": True,
        "strings_to_formulas": False,
        "strings_to_urls": False,
        "strings_to_numbers": False,
    }
    written = io.BytesIO()
    book = xlsxwriter.Workbook(written, settings)
    book.set_properties({"created": dt.datetime(1980, 1, 1)})  # noqa: DTZ001 — the same table, the same bytes
    sheet = book.add_worksheet(like.sheet or None)
    formats = {word: book.add_format({"num_format": code}) for word, code in _FORMATS.items()}
    for place, (series, form) in enumerate(cells):
        sheet.write_string(0, place, series.name)
        sheet.write_column(1, place, series.to_list(), formats.get(form))
    book.close()
    try:
        path.write_bytes(written.getvalue())
    except OSError as error:
        raise WriteError(f"cannot write the workbook: {trouble_with(error)}") from None


def _require_room(frame: pl.DataFrame) -> None:
    if not frame.width:
        raise WriteError("the table has no columns to write")
    if frame.height >= MOST_ROWS or frame.width > MOST_COLUMNS:
        raise WriteError(
            f"a sheet of Excel holds at most {MOST_ROWS - 1:,} records and {MOST_COLUMNS:,} columns; "
            f"the table has {frame.height:,} and {frame.width:,}",
            hint="write CSV or Parquet",
        )
    _require_text(pl.Series("", frame.columns), what="the names of the columns")


def _require_values(frame: pl.DataFrame) -> None:
    if lost := int(_empty(frame).sum()):
        raise WriteError(
            f"{count_noun(lost, 'record')} without any value would be lost in Excel",
            hint="write CSV or Parquet",
        )


def _cells(series: pl.Series) -> tuple[pl.Series, str]:
    """A column as Excel holds it (nothing where a value is missing), and the format of its cells."""
    dtype = series.dtype
    if dtype in (pl.Boolean, pl.Null):
        return series, ""
    if dtype.is_numeric():
        return _number_cells(series), ""
    if dtype in TEXTUAL:
        return _text_cells(series.cast(pl.String)), ""
    if dtype.is_temporal():
        return _moment_cells(series)
    raise WriteError(
        f"Excel cannot hold the type of `{series.name}`, {dtype.base_type()}", hint="write Parquet"
    )


def _number_cells(series: pl.Series) -> pl.Series:
    whole = series.dtype.is_integer()
    numbers = series.cast(pl.Float64).fill_nan(None)
    wrong = int((numbers.abs() >= (_FIRST_INEXACT if whole else _MAX_NUMBER)).sum())
    if wrong:
        raise WriteError(
            f"`{series.name}` has {count_noun(wrong, 'number')} too large for Excel",
            hint="write CSV or Parquet, or turn the column into text",
        )
    return series if whole else numbers


def _text_cells(texts: pl.Series) -> pl.Series:
    _require_text(texts, what=f"the texts of `{texts.name}`")
    return texts.replace("", None)


def _require_text(texts: pl.Series, *, what: str) -> None:
    # Excel counts units of UTF-16, of which a character beyond the first plane takes two.
    long = texts.filter(texts.str.len_bytes() > LONGEST_TEXT)
    units = long.str.len_chars() + long.str.count_matches(r"[\x{10000}-\x{10FFFF}]")
    limit = f"longer than {LONGEST_TEXT:,} characters"
    spoilt = texts.str.contains(_SPOILT)
    for wrong, fault in (
        (units > LONGEST_TEXT, limit),
        (spoilt, "with characters that it would change"),
    ):
        if wrong.any():
            number = int(wrong.sum())
            raise WriteError(f"Excel cannot hold {number} of {what}: {fault}", hint="write CSV or Parquet")


def _moment_cells(series: pl.Series) -> tuple[pl.Series, str]:
    """Dates and times as the days since the end of 1899; as text where Excel has no such date."""
    dtype = series.dtype
    if dtype == pl.Duration:
        return series.dt.total_microseconds() / (1000 * _MILLISECONDS), "duration"
    if dtype == pl.Time:
        return series.cast(pl.Int64) / (1_000_000 * _MILLISECONDS), "time"
    days = series.cast(pl.Date)
    zoned = isinstance(dtype, pl.Datetime) and dtype.time_zone is not None
    if zoned or not days.drop_nulls().is_between(_FIRST_DAY, _LAST_DAY).all():
        return series.cast(pl.String), ""
    # Excel believes that there was a 29th of February 1900: earlier days are counted from one day later.
    whole = (days - _EPOCHS[0]).dt.total_days() - (days < _LEAP).cast(pl.Int64)
    if dtype == pl.Date:
        return whole, "date"
    part = series.dt.cast_time_unit("us").cast(pl.Int64) - days.cast(pl.Datetime("us")).cast(pl.Int64)
    return whole + part / (1000 * _MILLISECONDS), "datetime"
