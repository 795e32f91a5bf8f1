"""A frame takes the form its schema declares, or everything in which it does not fit is said at once."""

from __future__ import annotations

import datetime as dt

import polars as pl
import pytest

from sfumato import io
from sfumato.data.schema import Column, Kind, Schema
from sfumato.errors import PlanError

SECRET = "Xanthippe"


def conform(values, kind, generalised=(), **facts):
    frame = pl.DataFrame({"x": values})
    table = io.conform(frame, Schema((Column("x", kind, **facts),)), generalised=generalised)
    return table.frame["x"]


def faults(values, kind, **facts):
    with pytest.raises(PlanError) as caught:
        conform(values, kind, **facts)
    assert SECRET not in str(caught.value)
    return caught.value.faults


def test_numbers_in_text():
    read = conform(["1", ".", " 2 ", "", None], Kind.CONTINUOUS, missing=(".",))
    assert (read.dtype, read.to_list()) == (pl.Int64, [1, None, 2, None, None])
    assert conform(["1,5", "-9"], Kind.CONTINUOUS, missing=(-9,)).to_list() == [1.5, -9.0]
    assert conform(["007"], Kind.CONTINUOUS).to_list() == [7]
    assert conform(pl.Series(["1", "2"], dtype=pl.Categorical), Kind.CONTINUOUS).to_list() == [1, 2]


def test_text_that_is_no_number_is_counted_not_shown():
    (fault,) = faults(["1", SECRET, "x"], Kind.CONTINUOUS)
    assert "column `x` is declared continuous, but has 2 values that cannot be read as numbers" in fault


def test_a_comma_that_may_part_thousands_is_no_decimal_sign():
    assert (
        "its commas may separate thousands or decimals"
        in faults(["1,234", "2,500", "", None], Kind.CONTINUOUS)[0]
    )
    assert conform(["1,234", "2,5", " 7 ", ""], Kind.CONTINUOUS).to_list() == [1.234, 2.5, 7.0, None]


@pytest.mark.parametrize(
    "texts",
    [
        ["2026-11-15", "2026-01-02"],
        ["15.11.2026", "02.01.2026"],
        ["20261115", "20260102"],
        ["15/11/2026", "02/01/2026"],
        ["11/15/2026", "01/02/2026"],
        [" 2026-11-15 ", "2026-01-02"],
    ],
)
def test_dates_in_text(texts):
    assert conform(texts, Kind.DATE).to_list() == [dt.date(2026, 11, 15), dt.date(2026, 1, 2)]


def test_dates_with_times_numbers_and_codes():
    assert conform(["2026-11-15T10:20:30", "2026-11-15 10:20:30.5"], Kind.DATE).dtype == pl.Datetime("us")
    assert conform([20261115, None], Kind.DATE).to_list() == [dt.date(2026, 11, 15), None]
    assert conform(["2026-11-15", "?", ""], Kind.DATE, missing=("?",)).null_count() == 2
    assert conform(["2026-11-15", "9999"], Kind.DATE, missing=(9999,)).null_count() == 1


def test_dates_that_read_two_ways_are_refused():
    assert "day or month may come first" in faults(["01/02/2026", "03/04/2026"], Kind.DATE)[0]
    assert conform(["01/01/2026"], Kind.DATE).to_list() == [dt.date(2026, 1, 1)]
    assert "not all values are dates of one form" in faults(["2026-11-15", SECRET], Kind.DATE)[0]


@pytest.mark.parametrize(
    "texts", [["15.11.80"], ["80-11-15"], ["11/15/80"], ["80-11-15 10:20:30.1234"], ["0000-01-01"]]
)
def test_a_year_of_two_digits_is_not_one_of_the_first_century(texts):
    assert "not all values are dates of one form" in faults(texts, Kind.DATE)[0]


def test_all_faults_are_said_at_once():
    frame = pl.DataFrame({"a": [SECRET], "b": [SECRET], "extra": [1], "set": [1]})
    schema = Schema(
        (
            Column("a", Kind.CONTINUOUS),
            Column("b", Kind.DATE),
            Column("gone", Kind.DATE),
            Column("set", Kind.SET),
        )
    )
    with pytest.raises(PlanError) as caught:
        io.conform(frame, schema)
    assert len(caught.value.faults) == 5
    assert SECRET not in str(caught.value)


def test_generalised_text():
    assert conform(["[20;29]", "30", "*", "."], Kind.CONTINUOUS, missing=(".",)).to_list() == [
        {"lo": 20, "hi": 29},
        {"lo": 30, "hi": 30},
        {"lo": None, "hi": None},
        None,
    ]
    assert conform(["[2026-01-01;]"], Kind.DATE).to_list() == [{"lo": dt.date(2026, 1, 1), "hi": None}]
    assert isinstance(conform(["{a|b}", "c"], Kind.NOMINAL).dtype, pl.Enum)
    assert conform(["*", "*"], Kind.CONTINUOUS).dtype == pl.Struct({"lo": pl.Int64, "hi": pl.Int64})
    assert isinstance(conform(["*", "*"], Kind.NOMINAL).dtype, pl.Enum)


def test_a_star_may_be_a_rating_unless_told_otherwise():
    assert conform(["a", "*"], Kind.NOMINAL).dtype == pl.String
    assert isinstance(conform(["a", "*"], Kind.NOMINAL, generalised={"x"}).dtype, pl.Enum)
    assert conform(["*", "*", "x"], Kind.NOMINAL, generalised={"x"}, missing=("*",)).null_count() == 2


def test_malformed_sets_are_counted_not_shown():
    frame = pl.DataFrame({"x": [f"{{{SECRET}|b}}", f"{{{SECRET}"]})
    schema = Schema((Column("x", Kind.CONTINUOUS),))
    with pytest.raises(PlanError) as caught:
        io.conform(frame, schema, generalised=["x"])
    assert SECRET not in str(caught.value)


def test_what_fits_is_left_alone():
    frame = pl.DataFrame({"x": [1.5, None], "y": ["a", "*"]})
    table = io.conform(frame, Schema((Column("x", Kind.CONTINUOUS), Column("y", Kind.NOMINAL))))
    assert table.frame.equals(frame)
