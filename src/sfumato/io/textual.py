"""Reads numbers, truth values and dates out of columns of text, all or nothing.

Each function returns None unless every value that is not missing reads: a column is never half converted.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import polars as pl

from sfumato.data.column_store import store_column

#: A number with more digits than this is a name for something, not a quantity.
MOST_DIGITS = 18

_SAMPLE = 1_000
_TRUTH = ({"true": True, "false": False}, {"True": True, "False": False}, {"TRUE": True, "FALSE": False})
_SPOILT = r"^\s*(\+|-?0\d)"
_MANY_DIGITS = rf"^\s*-?\d{{{MOST_DIGITS + 1},}}\s*$"
_DECIMAL_COMMA = r"^\s*-?(\d+|\d{1,3}([. '’\x{a0}\x{202f}]\d{3})+)(,\d+)?([eE][+-]?\d+)?\s*$"
_THOUSANDS = r"^\s*-?\d{1,3}(,\d{3})*\s*$"
_POINTED_THOUSANDS = r"^\s*-?\d{1,3}(\.\d{3})*\s*$"
#: Digits in threes, by the sign before the decimals: 1.100,50 and 1,100.50, or with spaces or ticks between.
_GROUPED = {
    ".": r"^\s*-?\d{1,3}((,\d{3})+|([ '’\x{a0}\x{202f}]\d{3})+)(\.\d+)?\s*$",
    ",": r"^\s*-?\d{1,3}((\.\d{3})+|([ '’\x{a0}\x{202f}]\d{3})+)(,\d+)?\s*$",
}
_GROUPING = {".": r"[, '’\x{a0}\x{202f}]", ",": r"[. '’\x{a0}\x{202f}]"}
_ISO_DATE, _ISO_TIME = "%Y-%m-%d", "%Y-%m-%dT%H:%M:%S%.f"
_DATES = (_ISO_DATE, "%Y%m%d", "%d.%m.%Y", "%Y/%m/%d", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y")


def cast_columns(
    frame: pl.DataFrame, *, decimal: str | None, commas: str, text: frozenset[str]
) -> tuple[pl.DataFrame, str]:
    """Turn the columns of text that hold numbers or truth values into such; and the decimal sign they have.

    Without ``decimal`` it is the point; or the comma, where columns read so and none of the file reads with a
    point, unless as thousands (1.234). ``commas`` says how readily: "unless thousands" (1,234 may be either)
    or "yes".
    """
    new = {name: frame[name] for name in frame.columns}
    open_to_it = [name for name in new if name not in text]
    with ThreadPoolExecutor() as pool:  # polars works outside the interpreter's lock
        read = pool.map(lambda name: _cast_text(frame[name], decimal or "."), open_to_it)
        new |= zip(open_to_it, map(store_column, read), strict=True)
    pointed = [name for name in open_to_it if new[name].dtype == pl.Float64]
    if decimal is None:
        texts = {name: frame[name] for name in open_to_it if new[name].dtype == pl.String}
        found = [name for name, series in texts.items() if _has_commas(series, commas)]
        if found and all(_all(frame[name], _POINTED_THOUSANDS) for name in pointed):
            also = [name for name, series in texts.items() if _has_commas(series, "yes")]
            new |= {name: _cast_text(frame[name], ",") for name in (*also, *pointed)}
            decimal = ","
    return pl.DataFrame(new), decimal or ("." if pointed else "")


def _all(texts: pl.Series, pattern: str) -> bool:
    present = texts.filter(texts != "")
    return bool(present.str.contains(pattern).all())


def _cast_text(series: pl.Series, decimal: str) -> pl.Series:
    # One word among the first values settles that a column is text, so that few columns are tried in full.
    sample = _some(series)
    if sample.is_empty():
        return series
    if truth_values(sample) is not None:
        read = truth_values(series)
        return series if read is None else read
    first = numbers(sample, decimal=decimal)
    if first is None or is_code(sample, first):
        return series
    read = numbers(series, decimal=decimal, whole=first.dtype == pl.Int64)
    if read is None or is_code(series, read) or (read.dtype == pl.Float64 and _differ_in_zeros(series)):
        return series
    return read


def _differ_in_zeros(texts: pl.Series) -> bool:
    """Whether two values differ in nothing but zeros at the end, as the codes 250.0 and 250.00 do."""
    ending = texts.filter(texts.str.ends_with("0"))  # quick, and most numbers do not, or only with .0
    if not ending.str.contains(r"[.,]\d+0$").any():
        return False
    distinct = texts.filter(texts.str.contains(r"^-?\d+[.,]\d+$")).unique()
    return distinct.str.strip_chars_end("0").n_unique() < len(distinct)


def _some(series: pl.Series) -> pl.Series:
    """The first values that are there."""
    for part in (series.head(_SAMPLE), series):
        present = part.filter(part.is_not_null() & (part != ""))
        if len(present):
            return present.head(_SAMPLE)
    return series.clear()


def _has_commas(series: pl.Series, commas: str) -> bool:
    sample = _some(series)
    if not sample.str.contains(_DECIMAL_COMMA).all() or not sample.str.contains(",", literal=True).any():
        return False
    return commas == "yes" or not may_be_thousands(sample)


def may_be_thousands(texts: pl.Series) -> bool:
    """Whether the commas of numbers may part thousands in all of them: 1,234 is one or a thousand."""
    return bool(texts.drop_nulls().str.contains(_THOUSANDS).all())


def is_code(series: pl.Series, read: pl.Series) -> bool:
    """Whether digits are a code that a number would spoil: a leading zero, a plus sign, or very many digits.

    ``read`` are the same values as numbers.
    """
    # Blanks, signs and 0 stand before 1 in the alphabet: few values need the slow look.
    if series.filter(series < "1").str.contains(_SPOILT).any():
        return True
    limit = 10**MOST_DIGITS
    if (read >= limit).any() or (read <= -limit).any():
        return bool(series.str.contains(_MANY_DIGITS).any())
    return False


def numbers(series: pl.Series, *, decimal: str = ".", whole: bool = True) -> pl.Series | None:
    """Read whole numbers as Int64 (if ``whole``), or else numbers as Float64; empty text is missing.

    Digits in threes are read where decimals beside them tell the two signs apart, as in 1.100,50.
    """
    read = _plain_numbers(series, decimal, whole=whole)
    if read is not None:
        return read
    grouped = series.str.contains(_GROUPED[decimal]).fill_null(value=False)
    if grouped.any() and (decimal == "," or series.filter(grouped).str.contains(".", literal=True).any()):
        bare = series.str.replace_all(_GROUPING[decimal], "")
        return _plain_numbers(bare.zip_with(grouped, series), decimal, whole=whole)
    return None


def _plain_numbers(series: pl.Series, decimal: str, *, whole: bool) -> pl.Series | None:
    if decimal == ",":
        if series.str.contains(".", literal=True).any():
            return None
        series = series.str.replace(",", ".", literal=True)
    dtypes = (pl.Int64, pl.Float64) if whole else (pl.Float64,)
    read = _cast(series, dtypes)
    return _cast(series.str.strip_chars(), dtypes) if read is None else read


def _cast(texts: pl.Series, dtypes: tuple[type[pl.DataType], ...]) -> pl.Series | None:
    empty: int | None = None
    for dtype in dtypes:
        read = texts.cast(dtype, strict=False)
        lost = read.null_count() - texts.null_count()
        if lost and empty is None:
            empty = int((texts == "").sum())
        if lost == (empty or 0):
            return read
    return None


def truth_values(series: pl.Series) -> pl.Series | None:
    """Read true and false in one of their usual spellings; empty text is missing."""
    for words in _TRUTH:
        read = series.replace_strict(words, default=None, return_dtype=pl.Boolean)
        if read.null_count() == series.null_count() + int((series == "").sum()):
            return read
    return None


def dates(series: pl.Series) -> tuple[pl.Series, ...]:
    """Read dates, or dates with times, in all the ways that read every value and do not agree.

    Years have four digits, or nothing is read: 15.11.80 would be a day of the first century.
    """
    series = series.str.strip_chars()
    series = series.set(series == "", None)
    timed = series.str.contains(":", literal=True).any()
    year, none = (r"^\d{4}", "^0000") if timed else (r"^\d{4}|\d{4}$", "^0000|0000$")  # there was no year 0
    if not series.str.contains(year).all() or series.str.contains(none).any():
        return ()
    if timed:
        days = series.str.to_date(_ISO_DATE, strict=False).cast(pl.Datetime("us"))
        times = series.str.replace(" ", "T", literal=True).str.to_datetime(_ISO_TIME, strict=False)
        times = times.zip_with(times.is_not_null(), days)
        return (times,) if times.null_count() == series.null_count() else ()
    readings: list[pl.Series] = []
    for form in _DATES:
        read = _read_dates(series, form)
        if read is not None and not any(read.equals(other) for other in readings):
            readings.append(read)
    return tuple(readings)


def _read_dates(series: pl.Series, form: str) -> pl.Series | None:
    for part in (series.head(_SAMPLE), series):
        read = part.str.to_date(form, strict=False)
        if read.null_count() != part.null_count():
            return None
    return read
