"""What a table shows, and nothing besides.

A cell that is made missing keeps its value in memory: a null is a mark above it. A text that is replaced
stays in the buffer that its neighbours share, and a category that nobody has any more stays in the list of
them. Formats that write memory as it is (Arrow, Feather) give all that away. Here columns are made anew.
"""

from __future__ import annotations

import polars as pl

from sfumato.data.column_store import store_column

#: A value that fewer people have is not named where it need not be: in a set, a codebook, a public picture.
MIN_PERSONS_NAMED = 10


def strip_hidden(frame: pl.DataFrame) -> pl.DataFrame:
    """The same cells, with nothing below a null and no category that no record has; and 0 for −0.

    −0.0 and 0.0 are one value to every count of people alike, so a file must not tell them apart.
    """
    return frame.with_columns(store_column(_rebuild_series(series)) for series in frame)


def _rebuild_series(series: pl.Series) -> pl.Series:
    dtype = series.dtype
    if dtype == pl.String:
        return pl.select(pl.concat_str(pl.lit(""), series).alias(series.name)).to_series()
    if isinstance(dtype, pl.Categorical | pl.Enum):
        texts = _rebuild_series(series.cast(pl.String))
        if isinstance(dtype, pl.Enum):
            return texts.cast(pl.Enum(dtype.categories.filter(dtype.categories.is_in(texts.implode()))))
        return texts.cast(dtype)
    if isinstance(dtype, pl.List):
        members = _rebuild_series(series.explode())
        return pl.Series(series.name, series.to_list(), dtype=pl.List(members.dtype))
    if isinstance(dtype, pl.Struct):
        present = series.is_not_null()
        parts = [
            _rebuild_series(_null_where_absent(present, series.struct.field(field.name)))
            for field in dtype.fields
        ]
        return _null_where_absent(present, pl.DataFrame(parts).to_struct(series.name))
    return _emptied_below(unsigned_zeros(series))


def unsigned_zeros(series: pl.Series) -> pl.Series:
    """The same with 0 for −0, of which a file would show that it is another."""
    if not series.dtype.is_float():
        return series
    zero = series == 0
    return series.set(zero, 0.0) if zero.any() else series  # adding 0.0 would be optimised away


def _emptied_below(series: pl.Series) -> pl.Series:
    """The same with zeros below its nulls."""
    if not series.null_count():
        return series.rechunk()
    dtype, present = series.dtype, series.is_not_null()
    if not (dtype.is_numeric() or dtype.is_temporal() or dtype == pl.Boolean):
        return pl.Series(series.name, series.to_list(), dtype=dtype)
    numbers = series.cast(pl.Int8) if dtype == pl.Boolean else series.to_physical()
    return _null_where_absent(present, numbers.fill_null(0).cast(dtype))


def _null_where_absent(present: pl.Series, series: pl.Series) -> pl.Series:
    return series if present.all() else series.zip_with(present, pl.Series([None], dtype=series.dtype))
