"""A column as statistical packages know it: numbers or text, labelled values, codes that stand for none.

SPSS declares a few values of a variable, or a range, as missing. Stata and SAS have special missing values
beside the ordinary one, ``.a`` to ``.z`` (SAS also ``._``). In a frame these are the numbers by which Stata
itself keeps them, so that none of its whole numbers is one: 2147483622 for ``.a`` to 2147483647 for ``.z``;
in a column of dates they are the days from 1 November 9998 on. They stand among the column's missing codes:
in a release they stay where they are, and in a file for Stata or SAS they are ``.a`` to ``.z`` again.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from sfumato.data.guess.columns import generalised_form
from sfumato.data.schema import Column, Kind, Scalar
from sfumato.data.table import TEXTUAL
from sfumato.errors import WriteError, count_noun
from sfumato.io.statistical.clocks import Clock

#: The letters of special missing values, as they follow each other in `tag`.
LETTERS = "_abcdefghijklmnopqrstuvwxyz"

_FIRST_TAG = 2_147_483_621
_FIRST_DAY = dt.date(9998, 10, 31)
_MAX_WHOLE_NUMBER = 2**53  # up to here a double is every whole number
_KINDS = {"nominal": Kind.NOMINAL, "ordinal": Kind.ORDINAL, "scale": Kind.CONTINUOUS}
_LEVELS = {Kind.NOMINAL: "nominal", Kind.ORDINAL: "ordinal", Kind.SET: "nominal"}
_LOOKS_LIKE_A_DATE = r"^\s*\d{4}-\d{2}-\d{2}"


@dataclass(frozen=True)
class Variable:
    """A variable in the terms of its package.

    ``values`` are whole numbers, numbers or text; the keys of ``labels``, the ``codes`` that stand for a
    missing value and the ends of ``span``, a range of such codes, are values like them. ``tags`` has the
    codes that mean a letter. ``level`` is that of measurement, ``shown_as`` the format.
    """

    name: str
    values: pl.Series = field(repr=False)  # a traceback must not show its cells
    label: str = ""
    labels: Mapping[Any, str] = field(default_factory=dict)
    codes: tuple[Any, ...] = ()
    span: tuple[float, float] | None = None
    tags: Mapping[Any, str] = field(default_factory=dict)
    level: str = "unknown"
    shown_as: str = ""

    @property
    def is_text(self) -> bool:
        """Whether its values are text."""
        return self.values.dtype == pl.String

    def coded(self) -> pl.Series:
        """Which values are there but stand for a missing one."""
        flags = self.values.is_in(pl.Series(self.codes, dtype=self.values.dtype, strict=False).implode())
        if self.span is not None and not self.is_text:
            flags |= self.values.is_between(*self.span)
        return flags.fill_null(value=False)


def tag(letter: str) -> int:
    """The number that stands for a special missing value."""
    return _FIRST_TAG + LETTERS.index(letter.lower())


_TAGS = {tag(letter): letter for letter in LETTERS}


# From a file -----------------------------------------------------------------------------------------------


def to_column(variable: Variable, clock: Clock) -> tuple[pl.Series, dict[str, Any]]:
    """Make a column of a variable, and say what the file tells of it as facts for its `Column`."""
    if variable.is_text:
        series = variable.values.set(variable.values == "", None)
        return series, _facts(variable, series, codes=variable.codes, labels=variable.labels)
    moments = _moments(variable, clock)
    if moments is not None:
        return moments
    whole = _are_whole(pl.concat([variable.values, _doubles(variable.codes), _doubles(variable.labels)]))
    kind = int if whole else float
    series = variable.values.cast(pl.Int64) if whole else variable.values
    labels = {kind(key): label for key, label in variable.labels.items()}
    for code, letter in variable.tags.items():
        labels.setdefault(kind(code), f".{letter}")
    return series, _facts(variable, series, codes=tuple(map(kind, variable.codes)), labels=labels)


def _doubles(values: Iterable[Any]) -> pl.Series:
    return pl.Series(list(values), dtype=pl.Float64, strict=False)


def _are_whole(numbers: pl.Series) -> bool:
    """Whether doubles are all whole numbers: the packages have nothing else for codes and counts."""
    return bool(((numbers == numbers.floor()) & (numbers.abs() <= _MAX_WHOLE_NUMBER)).all())


def _moments(variable: Variable, clock: Clock) -> tuple[pl.Series, dict[str, Any]] | None:
    """Make dates or times of a variable whose format says so; its codes and labels are the texts of such."""
    if clock.sort_of(variable.shown_as) is None:
        return None
    met = variable.values.filter(variable.coded()).unique().sort()
    codes = list(dict.fromkeys([*variable.codes, *met]))  # a column has no range of dates, so they are listed
    keys = list(variable.labels)
    every = pl.concat([variable.values, _doubles([*codes, *keys])])
    tagged = every.is_in(_doubles(variable.tags).implode()).fill_null(value=False)
    moments = clock.read(every.set(tagged, None), variable.shown_as)
    if not moments.dtype.is_temporal():
        return None
    if variable.tags:
        if moments.dtype == pl.Time or (moments >= _FIRST_DAY).any():
            return None  # no day or hour is free to stand for a letter
        days = (every - _FIRST_TAG).zip_with(tagged, pl.Series([None], dtype=pl.Float64))
        stand_ins = (days.cast(pl.Int32) + _day_number(_FIRST_DAY)).cast(pl.Date).cast(moments.dtype)
        moments = moments.zip_with(~tagged, stand_ins)
    n = len(variable.values)
    series, texts = moments[:n].alias(variable.name), _texts(moments[n:])
    labels = dict(zip(texts[len(codes) :], variable.labels.values(), strict=True))
    for code, letter in variable.tags.items():
        labels.setdefault(texts[codes.index(code)], f".{letter}")
    return series, _facts(variable, series, codes=tuple(texts[: len(codes)]), labels=labels)


def _day_number(day: dt.date) -> int:
    return (day - dt.date(1970, 1, 1)).days


def _texts(moments: pl.Series) -> list[Any]:
    """The moments as `Table.missing` compares them."""
    return moments.cast(pl.String).str.replace(r" 00:00:00(\.0+)?$", "").to_list()


def _facts(
    variable: Variable, series: pl.Series, *, codes: tuple[Any, ...], labels: Mapping[Any, str]
) -> dict[str, Any]:
    kind = _kind_of(variable, series)
    facts: dict[str, Any] = {
        "kind": None if kind is None else kind.value,
        "label": variable.label,
        "labels": tuple(labels.items()),
        "missing": codes,
        "missing_range": variable.span if series.dtype.is_numeric() else None,
        "integer": kind is Kind.CONTINUOUS and series.dtype.is_integer(),
    }
    return {fact: value for fact, value in facts.items() if value}


def _kind_of(variable: Variable, series: pl.Series) -> Kind | None:
    """What the level of measurement says, where it can be meant; None where the values tell more."""
    if series.dtype.is_numeric():
        return _KINDS.get(variable.level)
    if series.dtype.is_temporal():
        return None
    if variable.level == "ordinal":
        return Kind.ORDINAL
    # Text is nominal in SPSS unless someone says otherwise: digits are meant as text, but not a date.
    telling = generalised_form(series.drop_nulls()) or series.str.contains(_LOOKS_LIKE_A_DATE).any()
    return None if telling else Kind.NOMINAL


# To a file -------------------------------------------------------------------------------------------------


def from_column(series: pl.Series, column: Column, clock: Clock) -> Variable:
    """Make a variable of a column; what it means comes from its description."""
    values, shown_as = _plain(series, clock)
    physical = _Physical(values.dtype, series.dtype, clock)
    labels = physical.mapping(column.labels)
    if series.dtype == pl.Boolean:
        labels = {0: "false", 1: "true"} | labels
    for code in physical.each(() if column.suppressed is None else (column.suppressed,)):
        labels.setdefault(code, "suppressed")
    codes = tuple(dict.fromkeys(physical.each(column.missing_codes)))
    numeric = values.dtype != pl.String
    tags = {code: letter for code, letter in physical.tags().items() if code in codes}
    return Variable(
        series.name,
        values,
        label=column.label,
        labels={key: label for key, label in labels.items() if label.strip("\0 ")},
        codes=codes,
        span=column.missing_range if numeric and not shown_as else None,
        tags=tags,
        level=_LEVELS.get(column.kind, "scale" if numeric else "nominal"),
        shown_as=shown_as,
    )


def _plain(series: pl.Series, clock: Clock) -> tuple[pl.Series, str]:
    """Make whole numbers, numbers or text of any values, and say the format of those that are dates."""
    dtype = series.dtype
    if dtype in TEXTUAL:
        return _checked_text(series.cast(pl.String)), ""
    if dtype.is_integer() or dtype == pl.Boolean:
        return _checked_whole(series), ""
    if dtype.is_numeric() or dtype == pl.Null:
        numbers = series.cast(pl.Float64).fill_nan(None)
        if infinite := int(numbers.is_infinite().sum()):
            raise WriteError(f"`{series.name}` has {count_noun(infinite, 'infinite number')}")
        return numbers, ""
    if dtype.is_temporal() and dtype != pl.Duration:
        return clock.write(series)
    raise WriteError(
        f"`{series.name}` has the type {dtype.base_type()}; only numbers, text and dates can be written"
    )


def _checked_text(texts: pl.Series) -> pl.Series:
    if cut := int(texts.str.contains("\0", literal=True).sum()):
        raise WriteError(f"`{texts.name}` has {count_noun(cut, 'text')} with a zero byte")
    return texts.fill_null("")  # the packages know no other missing text


def _checked_whole(series: pl.Series) -> pl.Series:
    whole = series.cast(pl.Int64, strict=False)
    exact = whole.is_between(-_MAX_WHOLE_NUMBER, _MAX_WHOLE_NUMBER).fill_null(value=False)
    if large := int((~exact & series.is_not_null()).sum()):
        raise WriteError(
            f"`{series.name}` has {count_noun(large, 'number')} above 2^53, which would lose digits",
            hint="turn the column into text",
        )
    return whole


@dataclass(frozen=True)
class _Physical:
    """Turns the values that a column's description names into those of its variable."""

    dtype: pl.DataType
    given: pl.DataType
    clock: Clock

    def each(self, named: Iterable[Scalar]) -> list[Any]:
        """The values of the variable that are meant; those that it cannot hold are left out."""
        return list(self.mapping((value, "") for value in named))

    def mapping(self, pairs: Iterable[tuple[Scalar, str]]) -> dict[Any, str]:
        """The same with what each of them is given."""
        found: dict[Any, str] = {}
        for named, meaning in pairs:
            value = self._one(named)
            if value is not None:
                found.setdefault(value, meaning)
        return found

    def tags(self) -> Mapping[Any, str]:
        """The values that stand for special missing values."""
        if self.given.is_temporal() and self.given != pl.Time:
            days = [_FIRST_DAY + dt.timedelta(days=place) for place in range(len(LETTERS))]
            numbers, _ = self.clock.write(pl.Series(days, dtype=pl.Date).cast(self.given))
            return dict(zip(numbers.to_list(), LETTERS, strict=True))
        return _TAGS if self.dtype != pl.String else {}

    def _one(self, named: Scalar) -> Any:
        if self.dtype == pl.String:
            whole = isinstance(named, float) and named.is_integer()
            return str(int(named) if whole else named).strip() or None
        if self.given.is_temporal():
            return self._moment(str(named).strip())
        try:
            number = float(named)
        except ValueError:
            return None
        if self.dtype.is_integer():
            return int(number) if number.is_integer() and abs(number) <= _MAX_WHOLE_NUMBER else None
        return number if abs(number) < float("inf") else None

    def _moment(self, text: str) -> float | None:
        sort = dt.time if self.given == pl.Time else dt.datetime
        try:
            moment = sort.fromisoformat(text)
        except ValueError:
            return None
        read = pl.Series([moment]).cast(self.given)
        return float(self.clock.write(read)[0][0])
