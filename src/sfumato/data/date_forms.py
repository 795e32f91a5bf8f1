"""Dates as people write them, 31.12.2024 or 12/31/2024: read, and written in the form of a file."""

from __future__ import annotations

import polars as pl

#: The forms that are known, by the name a plan gives them: what each looks like, and as which parts.
FORMS = {
    "dd.mm.yyyy": (r"(?P<d>\d{1,2})\.(?P<m>\d{1,2})\.(?P<y>\d{4})", "%d.%m.%Y"),
    "dd/mm/yyyy": (r"(?P<d>\d{1,2})/(?P<m>\d{1,2})/(?P<y>\d{4})", "%d/%m/%Y"),
    "mm/dd/yyyy": (r"(?P<m>\d{1,2})/(?P<d>\d{1,2})/(?P<y>\d{4})", "%m/%d/%Y"),
    "dd-mm-yyyy": (r"(?P<d>\d{1,2})-(?P<m>\d{1,2})-(?P<y>\d{4})", "%d-%m-%Y"),
    "mm-dd-yyyy": (r"(?P<m>\d{1,2})-(?P<d>\d{1,2})-(?P<y>\d{4})", "%m-%d-%Y"),
    "yyyy/mm/dd": (r"(?P<y>\d{4})/(?P<m>\d{1,2})/(?P<d>\d{1,2})", "%Y/%m/%d"),
    "yyyymmdd": (r"(?P<y>\d{4})(?P<m>\d{2})(?P<d>\d{2})", "%Y%m%d"),
    "yyyy-mm-dd": (r"(?P<y>\d{4})-(?P<m>\d{2})-(?P<d>\d{2})", "%Y-%m-%d"),
}
_CLOCK = r"(?:[T ](?P<c>\d{2}:\d{2})(?P<s>:\d{2}(?:\.\d+)?)?Z?)?"


def to_iso(texts: pl.Series, form: str) -> pl.Series:
    """Write the dates of a form, alone or as ends of intervals, as 2024-12-31; all else stays as it is."""
    pattern, _ = FORMS[form]
    if form == "yyyymmdd":  # digits alone would be found in longer numbers
        pattern = rf"\b{pattern}\b"
    timed = bool(texts.str.contains(":", literal=True).any())
    if not timed:
        texts = texts.str.replace_all(pattern, "${y}-${m}-${d}")
    else:
        texts = texts.str.replace_all(pattern + _CLOCK, "${y}-${m}-${d}T${c}${s}")
        texts = texts.str.replace_all(r"T(\d{2}:\d{2})(\]|;|\s|$)", "T${1}:00${2}").str.replace_all(
            r"(\d{4}-\d{1,2}-\d{1,2})T(\]|;|\s|$)", "${1}${2}"
        )
    for place in (r"(\d{4})-(\d)(-\d)", r"(\d{4}-\d{2})-(\d)(\D|$)"):  # 2024-1-5 is 2024-01-05
        texts = texts.str.replace_all(place, "${1}-0${2}${3}")
    return texts


def days(texts: pl.Series, form: str) -> pl.Series:
    """The dates of a form, with or without a time; missing where a text is no such date."""
    whole = texts.str.strip_chars()
    fits = whole.str.contains(rf"^{FORMS[form][0]}{_CLOCK}$")
    iso = to_iso(whole.set(~fits, None), form)
    found = iso.str.head(10).str.to_date("%Y-%m-%d", strict=False)
    timed = iso.str.contains("T", literal=True).fill_null(value=False)
    if not timed.any():
        return found
    times = iso.str.to_datetime("%Y-%m-%dT%H:%M:%S%.f", strict=False)
    return found.set(timed & times.is_null(), None)


def in_form(column: pl.Series, form: str) -> pl.Series:
    """Dates, or the ends of intervals of dates in text form, as a form writes them."""
    if column.dtype == pl.Date:
        return column.dt.strftime(FORMS[form][1])
    if isinstance(column.dtype, pl.Datetime):
        return column.dt.strftime(FORMS[form][1] + " %H:%M:%S")
    order = {"%d": "${3}", "%m": "${2}", "%Y": "${1}"}
    written = FORMS[form][1]
    for part, group in order.items():
        written = written.replace(part, group)
    return column.str.replace_all(r"(\d{4})-(\d{2})-(\d{2})", written)
