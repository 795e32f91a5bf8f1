"""Brings a frame into the form its schema declares, or says everything in which it does not fit."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import polars as pl

from sfumato.data.date_forms import to_iso
from sfumato.data.generalised.intervals import end_dtype, value_dtype
from sfumato.data.generalised.nodes import WILDCARD, Nodes, canonical_text
from sfumato.data.generalised.rare_values import known_of
from sfumato.data.generalised.text_forms import KnownValues, is_open, parse_intervals, parse_nodes
from sfumato.data.guess.columns import generalised_form
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import Table
from sfumato.errors import DataError, PlanError, count_noun
from sfumato.io import item_texts, textual

#: Intervals of numbers with a comma before their decimals, as in a file that has such.
_COMMAS_BOXED = r"^\[[-+\d.,e]*;[-+\d.,e]*\]$"


@dataclass
class _ConformedColumns:
    """The columns as they come out, with what was found on the way."""

    frame: pl.DataFrame
    nodes: dict[str, Nodes] = field(default_factory=dict)
    dtypes: dict[str, pl.DataType] = field(default_factory=dict)  # of the original's values
    faults: list[str] = field(default_factory=list)

    def put(self, series: pl.Series, name: str) -> None:
        self.frame = self.frame.with_columns(series.alias(name))


def conform(
    frame: pl.DataFrame,
    schema: Schema,
    *,
    generalised: Collection[str] = (),
    original: Table | None = None,
    domains: Mapping[str, Collection[str]] | None = None,
) -> Table:
    """Make a table of a frame that fits a schema.

    Text declared continuous becomes numbers, with its missing codes as missing values; text declared a date
    becomes dates, and text of sets lists of their items; the text forms of intervals and groups become
    generalised values. ``generalised`` names the columns of text that are known to hold such forms, where it
    could be doubted. An ``original`` of which the frame is a release tells that, too, and the values that
    beginnings of codes and ``...`` stand for; ``domains`` are further values of its columns.
    All faults are gathered into one `PlanError`.
    """
    result = _ConformedColumns(frame)
    for column in schema.columns:
        if column.name in frame.columns:
            further = (domains or {}).get(column.name, ())
            known = None if original is None else _known_values(frame[column.name], original, further)
            if known and is_open(frame[column.name], known):
                generalised = {*generalised, column.name}
            if original is not None and column.name in original.schema:
                result.dtypes[column.name] = value_dtype(original.frame.schema[column.name])
            _conform_column(column, result, generalised=column.name in generalised, known=known)
    if result.faults:
        faults = schema.faults_with(result.frame) + result.faults
        raise PlanError.gather(
            "the schema", faults, hint="`sfumato inspect FILE` proposes a schema that fits"
        )
    return Table(result.frame, schema, nodes=result.nodes)


def _known_values(series: pl.Series, original: Table, further: Collection[str]) -> KnownValues | None:
    """What the original tells of a column of text."""
    if series.dtype != pl.String or series.name not in original.schema:
        return None
    return known_of(original, series.name, further)


def as_text(schema: Schema) -> frozenset[str]:
    """The columns whose values a reader must keep as they are written: dates, sets, words with an order."""
    ordered = {
        column.name
        for column in schema.columns
        if column.order and all(isinstance(value, str) for value in column.order)
    }
    return frozenset(ordered | set(schema.with_kind(Kind.DATE, Kind.SET)))


def _conform_column(
    column: Column, result: _ConformedColumns, *, generalised: bool, known: KnownValues | None
) -> None:
    series = result.frame[column.name]
    if column.kind is Kind.DATE and series.dtype.is_integer():
        series = series.cast(pl.String)  # 20261115
    if column.kind is Kind.SET and column.separator and not series.dtype.is_nested():
        result.put(
            item_texts.split(_without_codes(canonical_text(series), column), column.separator), column.name
        )
        return
    if not isinstance(series.dtype, pl.String | pl.Categorical | pl.Enum):
        return
    plain = _without_codes(series.cast(pl.String), column)
    if column.form:
        plain = to_iso(plain, column.form)
    if column.kind is Kind.CONTINUOUS and plain.str.contains(_COMMAS_BOXED).any():
        plain = plain.str.replace_all(",", ".", literal=True)
    form = generalised_form(plain) if series.dtype == pl.String or generalised else None
    if form is not None or generalised:
        # Nothing but wildcards, or no form at all: the kind of the column says which it would be.
        ordered = column.kind in {Kind.CONTINUOUS, Kind.DATE}
        unclear = form is None or ordered or (plain.drop_nulls() == WILDCARD).all()
        _parse_generalised(
            plain, ("interval" if ordered else "node") if unclear else str(form), result, known
        )
    elif column.kind is Kind.CONTINUOUS:
        _put_numbers(plain, result)
    elif column.kind is Kind.DATE:
        _put_dates(plain, result)
    elif column.kind is Kind.SET:
        result.put(plain, column.name)


def _without_codes(texts: pl.Series, column: Column) -> pl.Series:
    """Make the textual missing codes missing; those that are numbers stay, for the schema to tell."""
    codes = [code for code in column.missing_codes if isinstance(code, str)]
    if column.kind is Kind.DATE:
        codes = [str(code) for code in column.missing_codes]
    if not codes:
        return texts
    return texts.set(texts.str.strip_chars().is_in(codes), None)


def _parse_generalised(
    texts: pl.Series, form: str, result: _ConformedColumns, known: KnownValues | None
) -> None:
    try:
        if form == "interval":
            result.put(_intervals(texts.set(texts == "", None), result.dtypes.get(texts.name)), texts.name)
        else:
            series, result.nodes[texts.name] = parse_nodes(texts, known=known)
            result.put(series, texts.name)
    except DataError as error:
        result.put(texts, texts.name)
        result.faults.append(error.message)


def _intervals(texts: pl.Series, dtype: pl.DataType | None) -> pl.Series:
    """Read intervals of the original's type: between whole ends of decimals lie others. Else of any."""
    if dtype is not None and end_dtype(dtype) is not None:
        with suppress(DataError):  # ends need not be of the type of the values
            return parse_intervals(texts, dtype)
    return parse_intervals(texts)


def _put_numbers(texts: pl.Series, result: _ConformedColumns) -> None:
    stripped = texts.str.strip_chars()
    for decimal in (".", ","):
        read = textual.numbers(texts, decimal=decimal)
        if read is not None and (decimal == "." or not textual.may_be_thousands(stripped.replace("", None))):
            result.put(read, texts.name)
            return
    result.put(texts, texts.name)
    if read is not None:
        result.faults.append(
            f"column `{texts.name}` is declared continuous, but its commas may separate thousands or "
            "decimals: give `decimal`, or write the numbers without commas"
        )
        return
    wrong = stripped.cast(pl.Float64, strict=False).is_null() & stripped.is_not_null() & (stripped != "")
    result.faults.append(
        f"column `{texts.name}` is declared continuous, but has {count_noun(int(wrong.sum()), 'value')} that "
        "cannot be read as numbers: declare its missing codes, or another kind"
    )


def _put_dates(texts: pl.Series, result: _ConformedColumns) -> None:
    readings = textual.dates(texts)
    result.put(texts, texts.name)
    if len(readings) == 1:
        result.put(readings[0], texts.name)
    elif readings:
        result.faults.append(
            f"column `{texts.name}` is declared a date, but day or month may come first: give its `form`, "
            '"dd/mm/yyyy" or "mm/dd/yyyy"'
        )
    else:
        result.faults.append(
            f"column `{texts.name}` is declared a date, but not all values are dates of one form: "
            "write them as 2026-11-15, and declare its missing codes"
        )
