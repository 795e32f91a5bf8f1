"""Interval columns and geometry: small columns with the answer worked out by hand."""

import io
from datetime import date, datetime

import numpy as np
import polars as pl
import pytest

from sfumato.data.generalised.intervals import (
    covers,
    ends,
    exact_intervals,
    intervals,
    is_interval,
    midpoint,
    width,
    wildcard_intervals,
)
from sfumato.data.generalised.text_forms import parse_intervals, parse_nodes, to_text
from sfumato.errors import DataError, ParameterError

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


def test_a_wildcard_is_the_domain_or_unbounded():
    assert to_text(wildcard_intervals(2, pl.Int64, domain=(0, 85))).to_list() == ["[0;85]"] * 2
    for dtype in (pl.Int32, pl.Float64, pl.Date, pl.Datetime("us")):
        column = wildcard_intervals(1, dtype)
        assert is_interval(column.dtype)
        assert column.null_count() == 0
        assert to_text(column).to_list() == ["*"]


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
    with pytest.raises(DataError, match="got 1 others") as caught:
        intervals(lo, hi, name="income")
    assert "`income`" in str(caught.value)
    assert "704" not in str(caught.value)


@pytest.mark.parametrize(
    ("lo", "hi"), [(["a"], ["b"]), ([1], [date(2020, 1, 1)]), ([date(2020, 1, 1)], [1.5])]
)
def test_ends_must_be_of_one_kind(lo, hi):
    with pytest.raises(DataError, match="both ends"):
        intervals(lo, hi)


def test_ends_of_another_column_are_refused():
    with pytest.raises(DataError, match="must be an interval column"):
        ends(pl.Series("x", [1]))


# Geometry


def test_intervals_cover_what_lies_within_their_closed_ends():
    column = parse_intervals(
        pl.Series(["[20;29]", "[20;29]", "[20;29]", "[20;29]", "*", "*", None, None, "[20;29]", "[65;]"]),
        pl.Int64,
    )
    values = pl.Series([20, 29, 30, 25.5, 7, None, 7, None, float("nan"), 70.0], strict=False)
    expected = [True, True, False, True, True, True, False, True, False, True]
    assert covers(column, values).tolist() == expected


def test_intervals_of_dates_cover_times_and_dates():
    column = parse_intervals(pl.Series(["[2020-01-01;2020-01-31]"] * 2))
    assert covers(column, pl.Series([date(2020, 1, 31), date(2020, 2, 1)])).tolist() == [True, False]
    with pytest.raises(DataError, match="must be of its intervals' kind"):
        covers(column, pl.Series("x", [1, 2]))
    with pytest.raises(DataError, match="must have 1 records"):
        covers(column, pl.Series("x", [date(2020, 1, 31)]))


def test_nodes_cover_their_members(counties):
    column = pl.Series(["north", "north", "Kern", "*", "*", "*", None, None, "south"], dtype=counties.dtype)
    values = pl.Series(["Kings", "Kern", "Kern", "Kern", "elsewhere", None, "Kern", None, None])
    expected = [True, False, True, True, True, True, False, True, False]
    assert covers(column, values, nodes=counties).tolist() == expected


def test_the_width_of_intervals_is_a_share_of_the_domain():
    column = parse_intervals(pl.Series(["[20;29]", "25", "*", None, "[;20]", "[90;]", "[-50;500]"]), pl.Int64)
    # Of 0 … 100: 9/100, 0, 1, missing, 20/100, 10/100, and all of it.
    np.testing.assert_allclose(width(column, domain=(0, 100)), [0.09, 0, 1, np.nan, 0.2, 0.1, 1])
    # Of its own ends −50 … 500: 9/550, 0, 1, missing, 70/550, 410/550, 1.
    np.testing.assert_allclose(width(column), [9 / 550, 0, 1, np.nan, 70 / 550, 410 / 550, 1])
    with pytest.raises(ParameterError, match="`domain`"):
        width(column, domain=(100, 0))


def test_the_width_of_dates_counts_days():
    column = parse_intervals(pl.Series(["[2020-01-01;2020-01-31]", "2020-01-05", "*"]))
    np.testing.assert_allclose(width(column, domain=(date(2020, 1, 1), date(2020, 3, 1))), [30 / 60, 0, 1])


def test_a_domain_of_one_value_has_no_width():
    column = parse_intervals(pl.Series(["5", "*", None]), pl.Float64)
    np.testing.assert_allclose(width(column), [0, 1, np.nan])
    np.testing.assert_allclose(width(parse_intervals(pl.Series(["*"]), pl.Int64)), [1])
    np.testing.assert_allclose(width(parse_intervals(pl.Series(["inf", "inf"]), pl.Float64)), [0, 0])


def test_a_wide_domain_does_not_overflow():
    column = intervals([-1.7e308, 0.0], [1.7e308, 1.7e308])
    np.testing.assert_allclose(width(column), [1, 0.5])


def test_the_width_of_nodes_counts_members(counties):
    column = pl.Series(["Kern", "north", "*", None], dtype=counties.dtype)
    # Of 4 leaves: 0/3, 1/3, all, missing.
    np.testing.assert_allclose(width(column, nodes=counties), [0, 1 / 3, 1, np.nan])


def test_midpoints():
    column = parse_intervals(pl.Series(["[20;29]", "25", "*", None, "[65;]"]), pl.Int64)
    assert midpoint(column).to_list() == [24.5, 25.0, None, None, None]
    assert midpoint(column, domain=(0, 85)).to_list() == [24.5, 25.0, 42.5, None, 75.0]
    huge = intervals([1.7e308, -np.inf], [1.7e308, 0.0])
    assert midpoint(huge).to_list() == [1.7e308, None]
    assert midpoint(parse_intervals(pl.Series(["[2020-01-01;2020-01-04]"]))).to_list() == [date(2020, 1, 2)]
    times = intervals([at("2020-01-01")], [at("2020-01-02")])
    assert midpoint(times).to_list() == [at("2020-01-01T12:00:00")]


@pytest.mark.parametrize("dtype", [pl.Int64, pl.Float64, pl.Date, pl.Datetime("us")])
def test_empty_columns_pass(dtype):
    column = wildcard_intervals(0, dtype)
    assert to_text(column).to_list() == []
    assert parse_intervals(to_text(column), dtype).dtype == column.dtype
    assert width(column).shape == midpoint(column).to_numpy().shape == (0,)
    nodes_column, nodes = parse_nodes(pl.Series([], dtype=pl.String))
    assert covers(nodes_column, pl.Series([], dtype=pl.String), nodes=nodes).shape == (0,)


def test_intervals_survive_parquet():
    column = parse_intervals(pl.Series("x", ["[20;29]", "*", None]), pl.Int64)
    file = io.BytesIO()
    column.to_frame().write_parquet(file)
    file.seek(0)
    read = pl.read_parquet(file)["x"]
    assert read.dtype == column.dtype
    assert to_text(read).to_list() == ["[20;29]", "*", None]
