"""Generalised values: interval columns.

A generalised column is one of two things in a polars frame.

*An interval column* is a ``Struct(lo, hi)`` of Int64, Float64, Date or Datetime, closed at both ends;
``lo == hi`` is an exact value. An end that is null (−∞ or ∞ for Float64) is unbounded, and unbounded on both
sides is the wildcard of an unknown domain. A null struct is a *missing* value, which the wildcard is not.

*A node column* is an ``Enum`` of labels with its table (see `sfumato.data.generalised.nodes`). What the cells
of either stand for is read in `sfumato.data.generalised.cover`.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from sfumato.data.generalised.nodes import DType, Values
from sfumato.errors import DataError, count_noun


def is_interval(dtype: DType) -> bool:
    """Whether a column of this dtype holds intervals."""
    if not isinstance(dtype, pl.Struct) or [field.name for field in dtype.fields] != ["lo", "hi"]:
        return False
    lo, hi = (field.dtype for field in dtype.fields)
    return lo == hi and end_dtype(lo) == lo


def value_dtype(dtype: pl.DataType) -> pl.DataType:
    """The type of what a column of this dtype holds: of intervals, that of their ends."""
    return pl.Series(dtype=dtype).struct.field("lo").dtype if is_interval(dtype) else dtype


def end_dtype(dtype: DType) -> DType | None:
    """The dtype of the ends of intervals of such values, or None where they have no intervals."""
    if dtype.is_integer():
        return pl.Int64
    if dtype.is_numeric():
        return pl.Float64
    return dtype if dtype == pl.Date or isinstance(dtype, pl.Datetime) else None


def intervals(lo: Values, hi: Values, *, missing: Values | None = None, name: str = "") -> pl.Series:
    """Make an interval column from its lower and upper ends; a null end is unbounded.

    ``missing`` marks the records whose value is missing; without it none is.
    """
    given = pl.DataFrame({"lo": pl.Series(lo, strict=False), "hi": pl.Series(hi, strict=False)})
    kinds = {end_dtype(dtype) for dtype in given.dtypes if dtype != pl.Null} or {pl.Float64}
    kinds = {pl.Float64} if kinds == {pl.Int64, pl.Float64} else kinds
    dtype = next(iter(kinds))
    if dtype is None or len(kinds) > 1:
        raise DataError(
            f"the ends of the intervals `{name}` must be numbers, or dates or times of one kind, "
            f"got: {given.dtypes[0]} and {given.dtypes[1]}"
        )
    ends = given.cast(dtype, strict=False)
    faulty = (ends["lo"] > ends["hi"]).fill_null(value=False)
    for end in ends:
        if end.null_count() > given[end.name].null_count():  # what no end of this type can be
            faulty |= end.is_null() & given[end.name].is_not_null()
        if dtype == pl.Float64:
            faulty |= end.is_nan().fill_null(value=False)
    if faulty.any():
        raise DataError(
            f"`{name}` has {count_noun(int(faulty.sum()), 'interval')} with ends out of order",
            hint="an unbounded end is a null (not a NaN); a missing value is marked by `missing`",
        )
    gone = pl.repeat(False, len(ends), eager=True) if missing is None else pl.Series(missing)
    return _struct(ends.with_columns(missing=gone.cast(pl.Boolean))).alias(name)


def _struct(ends: pl.DataFrame) -> pl.Series:
    if ends.schema["lo"] == pl.Float64:
        ends = ends.with_columns(pl.col("lo").fill_null(-np.inf), pl.col("hi").fill_null(np.inf))
    return ends.select(pl.when(~pl.col("missing")).then(pl.struct("lo", "hi"))).to_series()


def exact_intervals(values: pl.Series) -> pl.Series:
    """Make an interval column of exact values; a null or NaN is a missing value."""
    values = values.fill_nan(None) if values.dtype.is_float() else values
    return intervals(values, values, missing=values.is_null(), name=values.name)


def ends(column: pl.Series) -> tuple[pl.Series, pl.Series]:
    """The lower and upper ends of an interval column, null where they are unbounded or missing."""
    if not is_interval(column.dtype):
        raise DataError(f"`{column.name}` does not hold intervals, but {column.dtype.base_type()}")
    lo, hi = column.struct.field("lo"), column.struct.field("hi")
    if lo.dtype == pl.Float64:
        # An exact infinity is a value; only an end on its own side is unbounded.
        return lo.replace(-np.inf, None), hi.replace(np.inf, None)
    return lo, hi
