"""Generalised values: interval columns, and what intervals and nodes cover and span.

A generalised column is one of two things in a polars frame.

*An interval column* is a ``Struct(lo, hi)`` of Int64, Float64, Date or Datetime, closed at both ends;
``lo == hi`` is an exact value. An end that is null (−∞ or ∞ for Float64) is unbounded, and unbounded on both
sides is the wildcard of an unknown domain. A null struct is a *missing* value, which the wildcard is not.

*A node column* is an ``Enum`` of labels with its table (see `sfumato.data.generalised.nodes`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from sfumato.data.generalised.nodes import (
    MISSING,
    WILDCARD,
    Bools,
    DType,
    Floats,
    Nodes,
    Values,
    match_leaves,
)
from sfumato.errors import DataError, ParameterError

# Interval columns: made and taken apart ----------------------------------------------------------------


def is_interval(dtype: DType) -> bool:
    """Whether a column of this dtype holds intervals."""
    if not isinstance(dtype, pl.Struct) or [field.name for field in dtype.fields] != ["lo", "hi"]:
        return False
    lo, hi = (field.dtype for field in dtype.fields)
    return lo == hi and end_dtype(lo) == lo


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
            f"both ends of the intervals `{name}` must be numbers, or dates or times of one kind, "
            f"got {given.dtypes[0]} and {given.dtypes[1]}"
        )
    ends = given.cast(dtype, strict=False)
    faulty = ends["lo"] > ends["hi"]
    for end in ends.columns:
        lost = ends[end].is_null() & given[end].is_not_null()
        faulty = faulty.fill_null(value=False) | lost | (ends[end].is_nan() if dtype == pl.Float64 else lost)
    if faulty.any():
        raise DataError(
            f"the intervals of `{name}` must run from a lower to an upper end, got {faulty.sum()} others",
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


def wildcard_intervals(n: int, dtype: DType, *, domain: tuple[Any, Any] = (None, None)) -> pl.Series:
    """Make ``n`` wildcards: the whole ``domain``, or unbounded where that is not known."""
    lo, hi = (pl.Series([end], dtype=end_dtype(dtype)).new_from_index(0, n) for end in domain)
    return intervals(lo, hi)


def ends(column: pl.Series) -> tuple[pl.Series, pl.Series]:
    """The lower and upper ends of an interval column, null where they are unbounded or missing."""
    if not is_interval(column.dtype):
        raise DataError(f"`{column.name}` must be an interval column, got {column.dtype.base_type()}")
    lo, hi = column.struct.field("lo"), column.struct.field("hi")
    if lo.dtype == pl.Float64:
        # An exact infinity is a value; only an end on its own side is unbounded.
        return lo.replace(-np.inf, None), hi.replace(np.inf, None)
    return lo, hi


# Geometry ----------------------------------------------------------------------------------------------


def covers(column: pl.Series, values: pl.Series, *, nodes: Nodes | None = None) -> Bools:
    """Whether each record's generalised value covers the exact value beside it.

    A missing value is covered by a missing one and by the wildcard (unbounded, or ``*``), by nothing else.
    """
    if len(column) != len(values):
        raise DataError(f"`{column.name}` must have {len(values)} records as the values, got {len(column)}")
    if nodes is not None:
        codes, found = nodes.codes(column), match_leaves(values, nodes.leaves)
        wild = (column.cast(pl.String) == WILDCARD).fill_null(value=False)
        beyond_leaves: Bools = wild.to_numpy() | ((codes == MISSING) & (found == MISSING))
        return nodes.contains(codes, found) | beyond_leaves
    lo, hi = ends(column)
    if end_dtype(values.dtype) is None or values.dtype.is_numeric() != lo.dtype.is_numeric():
        raise DataError(f"`{values.name}` must be of its intervals' kind {lo.dtype}, got {values.dtype}")
    values = values.fill_nan(None) if values.dtype.is_float() else values
    known, unbounded = column.is_not_null(), lo.is_null() & hi.is_null()
    inside = (lo.is_null() | (lo <= values)) & (hi.is_null() | (values <= hi)) & values.is_not_null()
    covered = (known & (inside.fill_null(value=False) | unbounded)) | (~known & values.is_null())
    return covered.to_numpy()


def width(column: pl.Series, *, domain: tuple[Any, Any] | None = None, nodes: Nodes | None = None) -> Floats:
    """The share of the domain that each generalised value spans, in [0, 1]; NaN where it is missing.

    An interval spans (hi − lo) / (max − min) after it is cut to the ``domain`` (without one: the bounded ends
    of the column itself), a node (members − 1) / (leaves − 1). An exact value spans 0 and the wildcard 1.
    """
    if nodes is not None:
        shares = (nodes.sizes - 1) / max(len(nodes.leaves) - 1, 1)
        shares = np.where((nodes.labels == WILDCARD).to_numpy(), 1.0, shares)
        return np.append(shares, np.nan)[nodes.codes(column)]  # code −1 is the last: missing
    lo, hi = ends(column)
    # Halves throughout: the distance of two large ends would overflow.
    start, stop = (end.to_physical().cast(pl.Float64) / 2 for end in (lo, hi))
    if domain is not None:
        limits = pl.Series(domain, dtype=pl.Float64 if lo.dtype.is_numeric() else lo.dtype)
        low, high = (limits.to_physical().cast(pl.Float64) / 2).to_numpy()
    else:
        stated = pl.concat([start, stop]).drop_nulls().to_numpy()
        stated = stated[np.isfinite(stated)]
        low, high = (stated.min(), stated.max()) if len(stated) else (0.0, 0.0)
    if not -np.inf < low <= high < np.inf:
        raise ParameterError("`domain` must run from its least to its greatest value, got ends that do not")
    spans = stop.fill_null(high).clip(low, high) - start.fill_null(low).clip(low, high)
    shares = np.where((lo.is_null() & hi.is_null()).to_numpy(), 1.0, spans.to_numpy() / ((high - low) or 1.0))
    return np.where(column.is_null().to_numpy(), np.nan, shares)


def midpoint(column: pl.Series, *, domain: tuple[Any, Any] | None = None) -> pl.Series:
    """The middle of each interval: Float64 for numbers, rounded down to a day or a tick for dates and times.

    An unbounded end is taken from the ``domain``; without one such an interval has no middle and gives null.
    """
    lo, hi = ends(column)
    if domain is not None:
        known = column.is_not_null()
        bounds = (pl.Series([bound], dtype=lo.dtype) for bound in domain)
        lo, hi = (
            end.zip_with(end.is_not_null() | ~known, bound)
            for end, bound in zip((lo, hi), bounds, strict=True)
        )
    if lo.dtype.is_numeric():
        # Halves are added, not the ends: the sum of two large ends would overflow.
        middle = (lo / 2 + hi / 2).zip_with((lo != hi).fill_null(value=True), lo.cast(pl.Float64))
    else:
        start, stop = lo.to_physical().cast(pl.Int64), hi.to_physical().cast(pl.Int64)
        middle = (start + (stop - start) // 2).cast(lo.to_physical().dtype).cast(lo.dtype)
    return middle.alias(column.name)
