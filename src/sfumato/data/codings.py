"""Columns of two tables in one coding, so that their values compare."""

from __future__ import annotations

import numpy as np
import polars as pl

from sfumato.data.generalised.nodes import canonical_text, match_leaves
from sfumato.data.schema import Kind
from sfumato.data.table import Table
from sfumato.kernels.arrays import Floats, Ints

#: Decimals up to which a column is seen to be written.
_MOST_DECIMALS = 6

#: What times are rounded to, in microseconds: days, hours, minutes, seconds, milliseconds.
_TIMES = (86_400e6, 3_600e6, 60e6, 1e6, 1e3)


def numbers_of_both(known: Table, released: Table, name: str) -> tuple[Floats, Floats]:
    """A continuous, ordinal or date column of both tables as numbers that compare, NaN where missing."""
    kind = known.schema[name].kind
    if kind is Kind.ORDINAL:
        first, second = codes_of_both(known, released, name)
        return _with_holes(first), _with_holes(second)
    one, other = known.numbers(name), released.numbers(name)
    if kind is Kind.DATE:
        units = [microseconds(table.frame.schema[name]) for table in (known, released)]
        if units[0] != units[1]:
            one, other = one * units[0], other * units[1]
    return one, other


def _with_holes(codes: Ints) -> Floats:
    return np.where(codes < 0, np.nan, codes.astype(np.float64))


def microseconds(dtype: pl.DataType) -> float:
    """How long the unit is in which a date or time is counted; text is read as days."""
    if isinstance(dtype, pl.Datetime):
        return {"ns": 1e-3, "us": 1.0, "ms": 1e3}[dtype.time_unit]
    return 86_400e6


def decimals_of(values: Floats, *, fewest: int = 0) -> int | None:
    """In how many decimals all values are written, up to six; None if they have more. −3 are thousands."""
    decimals = range(fewest, _MOST_DECIMALS + 1)
    with np.errstate(over="ignore"):  # huge numbers have no decimals
        return next((n for n in decimals if np.array_equal(np.round(values, n), values)), None)


def time_unit_of(instants: Floats) -> float:
    """What all times, in microseconds, are multiples of: a day, an hour …; 0 if nothing is so coarse."""
    return next((unit for unit in _TIMES if not (instants % unit).any()), 0.0)


def codes_of_both(known: Table, released: Table, name: str) -> tuple[Ints, Ints]:
    """Code a column of both tables into one list of values, ordinal ones in their order; −1 where missing."""
    known_codes, released_codes = known.codes(name), released.codes(name)
    first, second = canonical_text(known_codes.categories), canonical_text(released_codes.categories)
    found = match_leaves(second, first).astype(np.int64)
    new = found < 0
    found[new] = len(first) + np.arange(int(new.sum()))
    first_places = np.arange(len(first))
    if new.any() and known.schema[name].kind is Kind.ORDINAL and _has_natural_order(known, name):
        union = _order_of(known_codes.categories, released_codes.categories.filter(pl.Series(new)))
        first_places, found = union[: len(first)], union[found]
    # Code −1 is the last.
    return np.append(first_places, -1)[known_codes.codes], np.append(found, -1)[released_codes.codes]


def _has_natural_order(table: Table, name: str) -> bool:
    """Whether the order of a column is that of its values, and not one somebody listed."""
    return not table.schema[name].order and not isinstance(table.frame.schema[name], pl.Enum)


def _order_of(first: pl.Series, more: pl.Series) -> Ints:
    """The places of the values of both in their common natural order; of numbers and text in that of text."""
    if first.dtype.is_numeric() and more.dtype.is_numeric():
        pair = [first.cast(pl.Float64), more.cast(pl.Float64)]
    elif first.dtype == more.dtype:
        pair = [first, more]
    else:
        pair = [canonical_text(first), canonical_text(more)]
    values = pl.concat([each.alias("") for each in pair])
    return (values.rank("dense") - 1).to_numpy().astype(np.int64)
