"""Interval columns: small columns with the answer worked out by hand."""

import io
from datetime import date, datetime

import numpy as np
import polars as pl
import pytest

from sfumato.data.generalised.intervals import ends, exact_intervals, intervals, is_interval
from sfumato.data.generalised.text_forms import parse_intervals, to_text
from sfumato.errors import DataError

at = datetime.fromisoformat

# Making intervals


@pytest.mark.parametrize(
    ("lo", "hi", "dtype"),
    [
        ([1, 2], [3, 2], pl.Int64),
        (np.array([1, 2], dtype=np.uint8), np.array([3, 2], dtype=np.int16), pl.Int64),
        ([1, 2], [3.5, 2.0], pl.Float64),
        (np.array([1, 2], dtype=np.float32), [None, None], pl.Float64),
        ([date(2020, 1, 1), None], [date(2020, 1, 31), None], pl.Date),
        ([at("2020-01-01")], [at("2020-01-02")], pl.Datetime("us")),
    ],
)
def test_intervals_take_numbers_dates_and_times(lo, hi, dtype):
    column = intervals(lo, hi, name="x")
    assert column.dtype == pl.Struct({"lo": dtype, "hi": dtype})
    assert is_interval(column.dtype)
    assert column.name == "x"


def test_a_missing_interval_is_not_the_wildcard():
    column = intervals(
        pl.Series([20, None, None], dtype=pl.Int64),
        pl.Series([29, None, None], dtype=pl.Int64),
        missing=[False, False, True],
    )
    assert column.is_null().to_list() == [False, False, True]
    assert to_text(column).to_list() == ["[20;29]", "*", None]


def test_exact_values_keep_what_is_missing():
    assert exact_intervals(pl.Series("x", [1.5, None, float("nan")])).to_list() == [
        {"lo": 1.5, "hi": 1.5},
        None,
        None,
    ]


@pytest.mark.parametrize(
    "dtype",
    [
        pl.Int64,
        pl.Struct({"lo": pl.Int64, "hi": pl.Float64}),
        pl.Struct({"a": pl.Int64, "b": pl.Int64}),
        pl.Struct({"lo": pl.String, "hi": pl.String}),
        pl.Struct({"lo": pl.Int32, "hi": pl.Int32}),
    ],
)
def test_other_dtypes_are_no_intervals(dtype):
    assert not is_interval(dtype)


@pytest.mark.parametrize(
    ("lo", "hi"),
    [
        ([7041, 1], [7040, 2]),
        ([7041.0, float("nan")], [7042.0, 1.0]),
        (pl.Series([2**63], dtype=pl.UInt64), pl.Series([2**63], dtype=pl.UInt64)),
    ],
)
def test_faulty_ends_are_counted_and_not_shown(lo, hi):
    with pytest.raises(DataError, match="has 1 interval with ends out of order") as caught:
        intervals(lo, hi, name="income")
    assert "`income`" in str(caught.value)
    assert "704" not in str(caught.value)


@pytest.mark.parametrize(
    ("lo", "hi"), [(["a"], ["b"]), ([1], [date(2020, 1, 1)]), ([date(2020, 1, 1)], [1.5])]
)
def test_ends_must_be_of_one_kind(lo, hi):
    with pytest.raises(DataError, match="the ends of the intervals"):
        intervals(lo, hi)


def test_ends_of_another_column_are_refused():
    with pytest.raises(DataError, match="does not hold intervals"):
        ends(pl.Series("x", [1]))


@pytest.mark.parametrize("dtype", [pl.Int64, pl.Float64, pl.Date, pl.Datetime("us")])
def test_empty_columns_pass(dtype):
    column = exact_intervals(pl.Series([], dtype=dtype))
    assert to_text(column).to_list() == []
    assert parse_intervals(to_text(column), dtype).dtype == column.dtype


def test_intervals_survive_parquet():
    column = parse_intervals(pl.Series("x", ["[20;29]", "*", None]), pl.Int64)
    file = io.BytesIO()
    column.to_frame().write_parquet(file)
    file.seek(0)
    read = pl.read_parquet(file)["x"]
    assert read.dtype == column.dtype
    assert to_text(read).to_list() == ["[20;29]", "*", None]
