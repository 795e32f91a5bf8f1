"""Repair: small tables with the answer worked out by hand, and all that must be left alone."""

import math

import polars as pl
import pytest

from sfumato.data.checks import violations
from sfumato.data.generalised.nodes import Nodes
from sfumato.data.repair import RemainingViolation, repair
from sfumato.data.rules import Rule
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import Table
from sfumato.errors import ParameterError, PlanError
from toys import SECRET_NUMBER


def table(columns, *described, rules=(), **more):
    known = {column.name for column in described}
    plain = [Column(name, Kind.CONTINUOUS) for name in columns if name not in known]
    rules = tuple(Rule(text) for text in rules)
    return Table(pl.DataFrame(columns), Schema((*described, *plain), rules=rules), **more)


def column_of(repaired, name):
    return repaired.table.frame[name].to_list()


# ------------------------------------------------------------------------------------------------ columns


def test_whole_numbers_are_rounded_half_to_even():
    made = table(
        {"x": [0.5, 1.5, 2.4, -0.4, None, 7.0, -99.0]},
        Column("x", Kind.CONTINUOUS, integer=True, missing=(-99,)),
    )
    mended = repair(made)
    assert column_of(mended, "x") == [0, 2, 2, 0, None, 7, -99]
    assert mended.table.frame["x"].dtype == pl.Int64
    assert mended.counts == {"`x` rounded": 4}
    assert mended.left == ()


def test_no_zero_with_a_sign():
    made = table({"x": [-0.4, 1e300]}, Column("x", Kind.CONTINUOUS, integer=True))
    mended = repair(made)
    assert mended.table.frame["x"].dtype == pl.Float64  # no Int64 holds 1e300
    assert math.copysign(1, column_of(mended, "x")[0]) == 1


def test_ranges_are_kept():
    made = table(
        {"x": [-1, 0, 10, 11], "y": [-0.5, math.inf, math.nan, -math.inf]},
        Column("x", Kind.CONTINUOUS, lower=0, upper=10),
        Column("y", Kind.CONTINUOUS, lower=-0.25, upper=1.5),
    )
    mended = repair(made)
    assert column_of(mended, "x") == [0, 0, 10, 10]
    assert mended.table.frame["x"].dtype == pl.Int64
    assert column_of(mended, "y")[:2] == [-0.25, 1.5]
    assert math.isnan(column_of(mended, "y")[2])
    assert mended.counts == {
        "`x` raised to its lower end": 1,
        "`x` lowered to its upper end": 1,
        "`y` raised to its lower end": 2,
        "`y` lowered to its upper end": 1,
    }


def test_whole_numbers_stay_inside_ends_that_are_not():
    made = table({"x": [0.4, 9.6, 5.0]}, Column("x", Kind.CONTINUOUS, integer=True, lower=0.25, upper=9.5))
    assert column_of(repair(made), "x") == [1, 9, 5]
    with pytest.raises(PlanError, match="has no whole number"):
        repair(table({"x": [0.4]}, Column("x", Kind.CONTINUOUS, integer=True, lower=0.25, upper=0.75)))


def test_a_bound_widens_the_type_that_cannot_hold_it():
    made = table(
        {"x": [0, 1], "y": pl.Series([0.0, 1.0], dtype=pl.Float32)},
        Column("x", Kind.CONTINUOUS, lower=0.5),
        Column("y", Kind.CONTINUOUS, lower=0.1, upper=0.5),
    )
    mended = repair(made)
    assert column_of(mended, "x") == [0.5, 1.0]
    assert column_of(mended, "y") == [0.1, 0.5]
    assert violations(mended.table) == ()


def test_decimals_of_a_fixed_scale_stay_so():
    x = pl.Series(["-1.25", "3.50"]).cast(pl.Decimal(10, 2))
    mended = repair(table({"x": x}, Column("x", Kind.CONTINUOUS, lower=0)))
    assert mended.table.frame["x"].dtype == pl.Decimal(10, 2)
    assert mended.table.frame["x"].cast(pl.Float64).to_list() == [0.0, 3.5]


def test_no_value_is_mended_into_a_missing_code():
    """98.6 is somebody's age; 99 would say that it is not known."""
    age = Column("age", Kind.CONTINUOUS, integer=True, missing=(99,), missing_range=(-9.0, -7.0))
    mended = repair(table({"age": [98.6, 99.0, 97.6, -6.6, -7.5]}, age))
    assert column_of(mended, "age") == [98, 99, 98, -6, -7.5]
    x = Column("x", Kind.CONTINUOUS, upper=99, missing=(99,))
    mended = repair(table({"x": [120.0, 99.0, 5.0]}, x))
    assert column_of(mended, "x") == [120.0, 99.0, 5.0]
    assert mended.counts == {}
    assert mended.left == (RemainingViolation("`x` is at most 99", broken=1),)


def test_what_is_generalised_or_no_number_is_left_alone():
    made = table(
        {"age": [{"lo": 20, "hi": 29}], "place": ["{a|b}"], "text": ["1.5"]},
        Column("age", Kind.CONTINUOUS, integer=True, lower=50),
        Column("place", Kind.NOMINAL),
        Column("text", Kind.CONTINUOUS, integer=True),
        nodes={"place": Nodes.of({"{a|b}": ("a", "b")}, leaves=("a", "b"))},
    )
    mended = repair(made)
    assert mended.table.frame.equals(made.frame)
    assert mended.table.nodes == made.nodes
    assert (mended.counts, mended.left) == ({}, ())


def test_an_empty_table_and_one_without_promises():
    whole = Column("x", Kind.CONTINUOUS, integer=True, lower=0)
    empty = table({"x": pl.Series([], dtype=pl.Float64)}, whole)
    assert repair(empty).table.frame.height == 0
    plain = table({"x": [0.5]})
    assert repair(plain).table.frame.equals(plain.frame)


# --------------------------------------------------------------------------------------------------- sums


def test_totals_are_summed_again():
    made = table(
        {"total": [9.0, 0.3, 3.0], "a": [1.4, 0.1, 1.0], "b": [2.0, 0.2, 2.0]}, rules=["total = a + b"]
    )
    mended = repair(made)
    assert column_of(mended, "total") == [3.4, 0.3, 3.0]
    assert mended.counts == {"`total` summed again": 1}


def test_decimals_add_up_to_what_people_write():
    mended = repair(table({"total": [9.0], "a": [0.1], "b": [0.2]}, rules=["a + b = total"]))
    assert column_of(mended, "total") == [0.3]  # and not 0.30000000000000004


def test_parts_are_rounded_before_totals_are_summed():
    whole = [Column(name, Kind.CONTINUOUS, integer=True) for name in ("total", "a", "b")]
    # 2.9 is 1.45 + 1.45, but 1 + 1 is 2.
    mended = repair(table({"total": [2.9], "a": [1.45], "b": [1.45]}, *whole, rules=["total = a + b"]))
    assert mended.table.frame.rows() == [(2, 1, 1)]
    assert mended.table.frame.dtypes == [pl.Int64] * 3
    assert violations(mended.table) == ()


def test_totals_of_totals_come_after_their_parts():
    columns = {"all": [0], "men": [5], "women": [0], "girls": [2], "adults": [4]}
    mended = repair(table(columns, rules=["all = men + women", "girls + adults = women"]))
    assert mended.table.frame.rows() == [(11, 5, 6, 2, 4)]


def test_minus_signs_factors_and_constants():
    columns = {"net": [0.0], "gross": [100.0], "tax": [30.0], "year": [1.0]}
    mended = repair(table(columns, rules=["net = gross - tax", "12 * net - 10 = year"]))
    assert mended.table.frame.rows() == [(70.0, 100.0, 30.0, 830.0)]


def test_totals_that_go_round_in_a_circle_are_refused():
    made = table({"a": [1], "b": [1], "c": [1]}, rules=["a = b + c", "b = a - c"])
    with pytest.raises(PlanError, match="parts of each other") as caught:
        repair(made)
    assert "`a`" in str(caught.value)


def test_a_total_is_summed_by_the_first_rule_about_it():
    made = table({"t": [0], "a": [1], "b": [2], "c": [5], "d": [5]}, rules=["t = a + b", "t = c + d"])
    mended = repair(made)
    assert column_of(mended, "t") == [3]
    assert mended.left == (RemainingViolation("`t = c + d` holds", broken=1),)
    # An equation of two columns can be kept from either side.
    made = table({"t": [0], "a": [1], "b": [2], "c": [5]}, rules=["t = a + b", "t = c"])
    assert repair(made).table.frame.rows() == [(3, 1, 2, 3)]


def test_a_total_with_a_missing_part_stays_and_is_counted():
    made = table(
        {
            "total": [9.0, 9.0, 9.0, None, -9.0, 9.0],
            "a": [None, math.nan, -1.0, 1.0, 1.0, 1.0],
            "b": [2.0] * 6,
        },
        Column("total", Kind.CONTINUOUS, missing=(-9,)),
        Column("a", Kind.CONTINUOUS, missing=(-1,)),
        rules=["total = a + b"],
    )
    mended = repair(made)
    assert column_of(mended, "total") == [9.0, 9.0, 9.0, None, -9.0, 3.0]
    assert mended.left == (RemainingViolation("`total = a + b` holds", broken=0, unknown=5),)


def test_a_sum_that_would_read_as_missing_is_not_written():
    made = table(
        {"profit": [5, 5], "sales": [1, 2], "costs": [10, 10]},
        Column("profit", Kind.CONTINUOUS, missing=(-9,)),
        rules=["profit = sales - costs"],
    )
    mended = repair(made)
    assert column_of(mended, "profit") == [5, -8]
    assert mended.left == (RemainingViolation("`profit = sales - costs` holds", broken=1),)


def test_a_sum_wins_over_the_range_and_the_integers_of_its_total():
    made = table(
        {"total": [5, 5], "a": [8.0, 1.5], "b": [4.0, 1.0]},
        Column("total", Kind.CONTINUOUS, integer=True, upper=10),
        rules=["total = a + b"],
    )
    mended = repair(made)
    assert column_of(mended, "total") == [12.0, 2.5]
    assert mended.left == (
        RemainingViolation("`total` is a whole number", broken=1),
        RemainingViolation("`total` is at most 10", broken=1),
    )


def test_a_total_takes_the_room_that_the_tolerance_leaves():
    made = table(
        {"total": [0.0, 0.0], "a": [3e8 + 0.0000001, 1.0], "b": [2e8, 2.0]},
        Column("total", Kind.CONTINUOUS, integer=True, upper=5e8),
        rules=["total = a + b"],
    )
    mended = repair(made)
    assert column_of(mended, "total") == [500_000_000, 3]
    assert mended.left == ()


def test_sums_over_generalised_columns_cannot_be_known():
    made = table(
        {"total": [1.0, 2.0], "a": [{"lo": 0, "hi": 5}, {"lo": 5, "hi": 9}]},
        rules=["total = a"],
    )
    mended = repair(made)
    assert mended.table.frame.equals(made.frame)
    assert mended.left == (RemainingViolation("`total = a` holds", broken=0, unknown=2),)


def test_narrow_types_make_room():
    made = table(
        {name: pl.Series([values], dtype=pl.Int8) for name, values in {"t": 1, "a": 100, "b": 100}.items()},
        rules=["t = a + b"],
    )
    assert column_of(repair(made), "t") == [200]


def test_conditional_rules_and_sums_without_a_total_are_counted():
    made = table(
        {
            "age": [12, 40],
            "marital": ["married", "married"],
            "a": [1, 1],
            "b": [1, 2],
            "c": [1, 1],
            "d": [1, 1],
        },
        Column("marital", Kind.NOMINAL),
        rules=["age >= 16 OR marital = 'single'", "a + b = c + d"],
    )
    mended = repair(made)
    assert mended.table.frame.equals(made.frame)
    assert mended.left == (
        RemainingViolation("`age >= 16 OR marital = 'single'` holds", broken=1),
        RemainingViolation("`a + b = c + d` holds", broken=1),
    )


def test_only_a_continuous_column_is_summed():
    made = table({"size": [3], "a": [1], "b": [1]}, Column("size", Kind.ORDINAL), rules=["size = a + b"])
    assert repair(made).left == (RemainingViolation("`size = a + b` holds", broken=1),)


# ------------------------------------------------------------------------------- beside the original


X = Column("x", Kind.CONTINUOUS, integer=True, lower=0)
SUM = ["total = a + b"]


def test_what_was_broken_in_the_original_is_not_repaired():
    #              kept  broken  broken, then moved
    original = table({"x": [1.0, -2.5, -2.5]}, X)
    release = table({"x": [1.7, -2.5, -3.5]}, X)
    mended = repair(release, original)
    assert column_of(mended, "x") == [2.0, -2.5, -3.5]
    assert mended.left == (
        RemainingViolation("`x` is a whole number", broken=2, inherited=2),
        RemainingViolation("`x` is at least 0", broken=2, inherited=2),
    )
    assert column_of(repair(release), "x") == [2, 0, 0]


def test_a_total_follows_its_parts_unless_it_was_wrong_before():
    original = table({"total": [3, 3, 7], "a": [1, 1, 1], "b": [2, 2, 2]}, rules=SUM)
    release = table({"total": [3, 3, 7], "a": [1, 5, 5], "b": [2, 2, 2]}, rules=SUM)
    mended = repair(release, original)
    assert column_of(mended, "total") == [3, 7, 7]  # the last because 5 + 2 happens to be 7
    release = table({"total": [3, 3, 7], "a": [1, 5, 6], "b": [2, 2, 2]}, rules=SUM)
    mended = repair(release, original)
    assert column_of(mended, "total") == [3, 7, 7]
    assert mended.left == (RemainingViolation("`total = a + b` holds", broken=1, inherited=1),)


def test_an_unchanged_release_is_not_touched():
    made = table(
        {
            "x": [1.5, -3.0, None, 2.0],
            "total": [9.0, 0.30000000000000004, 1.0, 0.3],
            "a": [0.1] * 4,
            "b": [0.2] * 4,
        },
        X,
        rules=SUM,
    )
    mended = repair(made, made)
    assert mended.table.frame.equals(made.frame)
    assert mended.table.frame.schema == made.frame.schema
    assert mended.counts == {}


def test_the_type_is_that_of_the_original():
    whole, real = table({"x": [1, 2]}, X), table({"x": [1.0, 2.0]}, X)
    release = table({"x": [1.4, math.nan]}, X)
    assert repair(release, whole).table.frame["x"].to_list() == [1, None]
    assert repair(release, whole).table.frame["x"].dtype == pl.Int64
    assert repair(release, real).table.frame["x"].dtype == pl.Float64
    assert repair(release, table({"y": [1, 2]})).table.frame["x"].dtype == pl.Int64


def test_columns_that_stayed_behind_do_not_matter():
    original = table({"x": [1, 2], "name": ["a", "b"]}, Column("name", Kind.NOMINAL), X, rules=["x > 5"])
    release = table({"x": [1.4, 2.6]}, X, rules=["x > 5"])
    mended = repair(release, original)
    assert column_of(mended, "x") == [1, 3]
    assert mended.left == (RemainingViolation("`x > 5` holds", broken=2, inherited=2),)


def test_the_original_stands_beside_the_release():
    with pytest.raises(ParameterError, match="`original` has 2 records and the table 1"):
        repair(table({"x": [1.0]}, X), table({"x": [1.0, 2.0]}, X))


def test_repair_tells_no_cell():
    made = table({"x": [SECRET_NUMBER], "total": [1.0]}, X, rules=["total = x"])
    mended = repair(made)
    assert "91827" not in repr((mended, mended.counts, mended.left))
