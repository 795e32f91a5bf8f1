"""Dates and times as SPSS, Stata and SAS keep them: numbers counted from an epoch, told apart by a format.

Where a number is no whole day it becomes a date with a time, and where one of a column lies outside the years
1 to 9999, or is no time of day, the whole column stays numbers.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

_SECOND = 1_000_000  # all is counted in microseconds
_DAY = 86_400 * _SECOND
_UNIX = dt.datetime(1970, 1, 1)  # noqa: DTZ001 — clocks on the wall, of no zone
_FIRST = -62_135_596_800 * _SECOND  # the year 1
_END = 253_402_300_800 * _SECOND  # the year 10 000

#: How many of Stata's periods make a year: weeks, months, quarters, half-years since 1960.
_PERIODS = {"tw": 52, "tm": 12, "tq": 4, "th": 2}


@dataclass(frozen=True)
class Clock:
    """How a package counts: its epoch, its units in microseconds, and its formats.

    ``reads`` finds the sort of time a format shows: ``date``, ``datetime``, ``time`` or one of `_PERIODS`.
    """

    epoch: dt.datetime
    day: int
    moment: int
    reads: Mapping[str, str]
    writes: Mapping[str, str]

    def sort_of(self, shown_as: str) -> str | None:
        """What sort of time a format shows, or None for an ordinary number."""
        return next((sort for pattern, sort in self.reads.items() if re.match(pattern, shown_as)), None)

    def read(self, numbers: pl.Series, shown_as: str) -> pl.Series:
        """Make dates or times of numbers where their format says so, and all of them can be."""
        sort = self.sort_of(shown_as)
        if sort is None:
            return numbers
        if sort in _PERIODS:
            return _periods(numbers, _PERIODS[sort])
        micros = _micros(numbers, self.day if sort == "date" else self.moment)
        if micros is None:
            return numbers
        if sort == "time":
            within = micros.is_between(0, _DAY - 1).all()
            return (micros * 1000).cast(pl.Time) if within else numbers
        micros += self._epoch
        if not micros.is_between(_FIRST, _END - 1).all():
            return numbers
        moments = micros.cast(pl.Datetime("us"))
        return moments.cast(pl.Date) if sort == "date" and (micros % _DAY == 0).all() else moments

    def write(self, moments: pl.Series) -> tuple[pl.Series, str]:
        """Make numbers of dates or times, and say the format that shows them as such."""
        if moments.dtype == pl.Time:
            micros, unit, sort = moments.to_physical() // 1000, self.moment, "time"
        elif moments.dtype == pl.Date:
            micros, unit, sort = moments.to_physical().cast(pl.Int64) * _DAY - self._epoch, self.day, "date"
        else:
            plain = moments.dt.replace_time_zone(None).cast(pl.Datetime("us"))
            micros, unit, sort = plain.to_physical() - self._epoch, self.moment, "datetime"
        whole = micros // unit  # apart from the rest, since together they may exceed 2^53
        numbers = whole.cast(pl.Float64) + _divide_exactly((micros - whole * unit).cast(pl.Float64), unit)
        return numbers, self.writes[sort]

    @property
    def _epoch(self) -> int:
        return (self.epoch - _UNIX) // dt.timedelta(microseconds=1)


def _micros(numbers: pl.Series, unit: int) -> pl.Series | None:
    """Count in microseconds; None for numbers that are no time at all."""
    largest = numbers.abs().max()
    if isinstance(largest, float) and not largest * unit < 2 * _END:
        return None
    whole = numbers.floor()
    micros = whole.cast(pl.Int64) * unit + ((numbers - whole) * unit).round().cast(pl.Int64)
    if unit != _SECOND:
        return micros
    # SPSS counts seconds from 1582: a double then errs by a microsecond, but a millisecond can be known.
    millis = (numbers * 1000).round()
    return (millis.cast(pl.Int64) * 1000).zip_with(_divide_exactly(millis, 1000) == numbers, micros)


def _divide_exactly(numbers: pl.Series, by: int) -> pl.Series:
    """Divide exactly: polars would multiply by the reciprocal. Nothing becomes NaN, which equals nothing."""
    return pl.Series(numbers.to_numpy() / by)


def _periods(numbers: pl.Series, per_year: int) -> pl.Series:
    """The first days of Stata's weeks, months, quarters or half-years; its weeks begin with the year."""
    first, last = -1959 * per_year, 8040 * per_year
    if not (numbers.is_between(first, last - 1) & (numbers == numbers.floor())).all():
        return numbers
    counted = numbers.cast(pl.Int64)
    parts = pl.DataFrame({"year": 1960 + counted // per_year, "part": counted % per_year})
    if per_year == _PERIODS["tw"]:
        days = pl.date(pl.col("year"), 1, 1) + pl.duration(days=7 * pl.col("part"))
    else:
        days = pl.date(pl.col("year"), 1 + pl.col("part") * (12 // per_year), 1)
    return parts.select(days.alias(numbers.name)).to_series()


SPSS = Clock(
    epoch=dt.datetime(1582, 10, 14),  # noqa: DTZ001
    day=_SECOND,
    moment=_SECOND,
    reads={
        r"(DATETIME|YMDHMS)\d": "datetime",
        r"([AEJS]?DATE|QYR|MOYR|WKYR)\d": "date",
        r"(D|M)?TIME\d": "time",
    },
    writes={"date": "DATE11", "datetime": "DATETIME23.3", "time": "TIME11.2"},
)

STATA = Clock(
    epoch=dt.datetime(1960, 1, 1),  # noqa: DTZ001
    day=_DAY,
    moment=1000,
    reads={
        # Times of day are shown by hours first and without a day; %tC counts leap seconds, and stays numbers.
        r"%-?\d*tc[Hh]{2}[^DdNCYy]*$": "time",
        r"%-?\d*tc": "datetime",
        r"%-?\d*t?d": "date",
        **{rf"%-?\d*{period}": period for period in _PERIODS},
    },
    writes={"date": "%td", "datetime": "%tc", "time": "%tcHH:MM:SS"},
)

SAS = Clock(
    epoch=dt.datetime(1960, 1, 1),  # noqa: DTZ001
    day=_DAY,
    moment=_SECOND,
    reads={
        r"(DATETIME|DTDATE|DATEAMPM|MDYAMPM|NLDATM|(E8601|B8601|IS8601)D[TNX])[\d.]*$": "datetime",
        r"(DATE|(MMDDYY|DDMMYY|YYMMDD)[BCDNPS]?|WEEKDAT[EX]|WORDDAT[EX]|NLDATE|JULIAN)[\d.]*$": "date",
        r"((MMYY|YYMM|YYQ|YYQR)[CDNPS]?|MONYY|YYMON|(E8601|B8601|IS8601)DA)[\d.]*$": "date",
        r"(TIME|HHMM|TOD|TIMEAMPM|NLTIME|(E8601|B8601|IS8601)TM)[\d.]*$": "time",
    },
    writes={"date": "DATE9", "datetime": "DATETIME20", "time": "TIME8"},
)
