"""Naive coarsening: intervals of equal length, kind by kind."""

from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brute import covers
from sfumato.core.run import Run
from sfumato.data.generalised.text_forms import to_text
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import Table
from sfumato.errors import RefusedError
from sfumato.methods.coarsening import NaiveCoarsening, begins_of


def coarsened(values, kind, *, parts, **facts):
    table = Table(pl.DataFrame({"a": values}), Schema((Column("a", kind, **facts),)))
    shown = NaiveCoarsening(resolution=parts).apply(table, Run(seed=1)).table
    return to_text(shown.frame["a"], shown.nodes.get("a")).to_list()


def test_whole_numbers():
    assert coarsened([0, 4, 5, 9], Kind.CONTINUOUS, parts=2) == ["[0;4]", "[0;4]", "[5;9]", "[5;9]"]
    assert coarsened([-3, 3], Kind.CONTINUOUS, parts=2) == ["[-4;-1]", "[0;3]"]


def test_the_declared_domain_is_cut_if_it_is_wider():
    assert coarsened([40], Kind.CONTINUOUS, parts=4, lower=0, upper=85) == ["[21;42]"]
    assert coarsened([40, 100], Kind.CONTINUOUS, parts=2, lower=0, upper=85) == ["[0;49]", "[50;100]"]


def test_decimals_meet_at_the_border_and_the_border_is_above():
    shown = coarsened([0.0, 0.5, 1.0, 0.49], Kind.CONTINUOUS, parts=2)
    assert shown == ["[0;0.5]", "[0.5;1]", "[0.5;1]", "[0;0.5]"]
    assert coarsened([0.0, 7.0], Kind.CONTINUOUS, parts=2, integer=True) == ["[0;3]", "[4;7]"]
    assert coarsened([1e308, -1e308], Kind.CONTINUOUS, parts=2) == ["[0;1e+308]", "[-1e+308;0]"]


def test_days():
    days = [date(2021, 1, 1) + timedelta(days=day) for day in (0, 181, 182, 364)]
    assert coarsened(days, Kind.DATE, parts=2) == [
        "[2021-01-01;2021-07-01]", "[2021-01-01;2021-07-01]", "[2021-07-02;2021-12-31]", "[2021-07-02;2021-12-31]",
    ]  # fmt: skip


def test_categories_by_place_or_number():
    order = ("never", "seldom", "often", "always")
    shown = coarsened(["never", "always", "seldom", "often"], Kind.ORDINAL, parts=2, order=order)
    assert shown == ["{never|seldom}", "{often|always}", "{never|seldom}", "{often|always}"]
    assert coarsened([1, 2, 3, 90], Kind.NOMINAL, parts=2) == ["{1|2|3}", "{1|2|3}", "{1|2|3}", "90"]
    assert coarsened(["a", "b", "c"], Kind.NOMINAL, parts=2) == ["a", "{b|c}", "{b|c}"]
    assert coarsened([1, 2, 3, 4], Kind.ORDINAL, parts=2) == ["[1;2]", "[1;2]", "[3;4]", "[3;4]"]


def test_one_interval_and_more_than_there_are_values():
    assert coarsened([3, 8], Kind.CONTINUOUS, parts=1) == ["[2;9]", "[2;9]"]
    assert coarsened([3, 5], Kind.CONTINUOUS, parts=50) == ["3", "5"]
    assert coarsened([4.5, 4.5], Kind.CONTINUOUS, parts=3) == ["4.5", "4.5"]


def test_missing_stays_missing():
    assert coarsened([1, None, 8], Kind.CONTINUOUS, parts=1) == ["[0;9]", None, "[0;9]"]
    assert coarsened([1, -9, 8], Kind.CONTINUOUS, parts=1, missing=(-9,)) == ["[0;9]", None, "[0;9]"]
    assert coarsened(["a", None, "b", "c"], Kind.NOMINAL, parts=2) == ["a", None, "{b|c}", "{b|c}"]
    assert coarsened(pl.Series([None, None], dtype=pl.Date), Kind.DATE, parts=2) == [None, None]


def test_a_share_is_a_number_of_intervals():
    table = Table(pl.DataFrame({"a": list(range(86))}), Schema((Column("a", Kind.CONTINUOUS),)))
    by_share = NaiveCoarsening(share=6.25).apply(table, Run(seed=1)).table.frame
    by_number = NaiveCoarsening(resolution=16).apply(table, Run(seed=1)).table.frame
    assert by_share.equals(by_number)
    twice = Table(by_share, table.schema)
    with pytest.raises(RefusedError, match="exact values, got: generalised ones in `a`"):
        NaiveCoarsening().apply(twice, Run(seed=1))


@given(
    st.lists(st.integers(-(10**12), 10**12), min_size=1, max_size=12) | st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=12),
    st.integers(1, 40),
)  # fmt: skip
def test_every_interval_holds_its_value_and_there_are_no_more_than_asked(values, parts):
    series = pl.Series("a", values)
    table = Table(series.to_frame(), Schema((Column("a", Kind.CONTINUOUS),)))
    shown = NaiveCoarsening(resolution=parts).apply(table, Run(seed=1)).table.frame["a"]
    assert covers(shown, series).all()
    assert shown.n_unique() <= parts


@given(st.integers(-50, 50), st.integers(0, 80), st.integers(1, 100))
def test_intervals_of_whole_numbers_differ_by_one_at_most(low, span, parts):
    begins = begins_of(low, low + span, parts, whole=True)
    sizes = np.diff(np.append(begins, low + span + 1))
    assert begins[0] == low
    assert sizes.max() - sizes.min() <= 1
    assert sizes.min() >= 1


def test_whole_numbers_beyond_64_bits_are_cut_too():
    accounts = pl.Series([0, 5, 2**63 + 9, 2**64 - 1], dtype=pl.UInt64)
    assert coarsened(accounts, Kind.NOMINAL, parts=2) == [
        "{0|5}",
        "{0|5}",
        *["{9223372036854775817|18446744073709551615}"] * 2,
    ]
    assert coarsened([-1e300, 1e300], Kind.CONTINUOUS, parts=2, integer=True) == ["[-1e+300;0]", "[0;1e+300]"]


def test_a_range_without_ends_is_that_of_the_values():
    unbounded = {"lower": float("-inf"), "upper": float("inf")}
    assert coarsened([0, 4, 5, 9], Kind.CONTINUOUS, parts=2, **unbounded)[::3] == ["[0;4]", "[5;9]"]
