"""Hierarchies built from values: small columns with the answer worked out by hand."""

from datetime import date, datetime

import polars as pl
import pytest

from brute import covers
from sfumato.data.generalised.text_forms import parse_intervals
from sfumato.data.hierarchy.build import from_cuts, from_dates, from_intervals, from_prefix, from_tree
from sfumato.errors import DataError, ParameterError, PlanError


def rows(hierarchy):
    return [";".join(row) for row in hierarchy.levels.iter_rows()]


def test_intervals_of_whole_numbers():
    ages = from_intervals([24, 17, 25, None, 31, 24], widths=[5, 10])
    assert rows(ages) == [
        "17;[15;19];[10;19];*",
        "24;[20;24];[20;29];*",
        "25;[25;29];[20;29];*",
        "31;[30;34];[30;39];*",
    ]
    assert ages.climb(pl.Series([24.0]), 2).to_list() == ["[20;29]"]


def test_intervals_of_a_range_and_an_origin():
    ages = from_intervals(range(-3, 5), widths=[2, 4], origin=1, name="age")
    # Cuts at …, −3, −1, 1, 3, 5: −3 and −2 belong together.
    assert ages.labels(1).to_list() == ["[-3;-2]", "[-1;0]", "[1;2]", "[3;4]"]
    assert ages.labels(2).to_list() == ["[-3;0]", "[1;4]"]
    assert ages.name == "age"


def test_intervals_of_floats_that_are_whole_are_those_of_whole_numbers():
    assert from_intervals(pl.Series("age", [17.0, None, float("nan")]), widths=[5]).labels(1).to_list() == [
        "[15;19]"
    ]
    assert from_intervals([17, 18], widths=[1, 2]).labels(1).to_list() == ["17", "18"]


def test_a_decimal_on_a_cut_belongs_above_it():
    # 0.3 / 0.1 is 2.999… in binary; as it is written it lies on a cut.
    shares = from_intervals(pl.Series("share", [0.1, 0.25, 0.3, -0.05]), widths=[0.1, 0.5])
    assert shares.name == "share"
    assert rows(shares) == [
        "-0.05;[-0.1;0];[-0.5;0];*",
        "0.1;[0.1;0.2];[0;0.5];*",
        "0.25;[0.2;0.3];[0;0.5];*",
        "0.3;[0.3;0.4];[0;0.5];*",
    ]


@pytest.mark.parametrize("widths", [[5, 12], [10, 5], [0, 5], [-5], [], [float("inf")], [float("nan")]])
def test_widths_must_nest(widths):
    with pytest.raises(ParameterError):
        from_intervals([1, 2], widths=widths)


@pytest.mark.parametrize("values", [["sentinel", "1"], [float("inf"), 1.0]])
def test_intervals_are_of_numbers(values):
    with pytest.raises(DataError, match="has 1 value that cannot be read as finite numbers") as caught:
        from_intervals(values, name="x")
    assert "sentinel" not in str(caught.value)


def test_cuts_leave_the_ends_open():
    ages = from_cuts([10, 17, 18, 64, 65, 90], cuts=[[18, 65], [65]])
    assert rows(ages) == [
        "10;[;17];[;64];*",
        "17;[;17];[;64];*",
        "18;[18;64];[;64];*",
        "64;[18;64];[;64];*",
        "65;[65;];[65;];*",
        "90;[65;];[65;];*",
    ]
    incomes = from_cuts([1.5, 2.0], cuts=[[2]])
    assert rows(incomes) == ["1.5;[;2];*", "2;[2;];*"]
    assert covers(
        parse_intervals(ages.climb(pl.Series([10, 90]), 1).cast(pl.String)), pl.Series([10, 90])
    ).all()


def test_cuts_are_told_from_numbers_that_double_precision_cannot_tell_apart():
    near = 2**53
    large = from_cuts(pl.Series([near, near + 1, near + 2]), cuts=[[near + 1]])
    assert rows(large) == [
        f"{near};[;{near}];*",
        f"{near + 1};[{near + 1};];*",
        f"{near + 2};[{near + 1};];*",
    ]
    written = from_cuts(["0.29999999999999999999", "0.3"], cuts=[[0.3]])
    assert rows(written) == ["0.29999999999999999999;[;0.3];*", "0.3;[0.3;];*"]


@pytest.mark.parametrize("cuts", [[[65, 18]], [[18], [18, 65]], [[18, 18]], [[]]])
def test_cuts_must_nest(cuts):
    with pytest.raises(ParameterError, match="`cuts`"):
        from_cuts([1], cuts=cuts)


def test_prefixes_of_postcodes():
    codes = from_prefix(pl.Series("zip", ["93721", "93650", "94000", "93721", "9"]), lengths=[3, 1])
    assert codes.name == "zip"
    assert rows(codes) == ["9;9;9*;*", "93650;936*;9*;*", "93721;937*;9*;*", "94000;940*;9*;*"]
    assert from_prefix([12, 13], lengths=[1], mark="#").labels(1).to_list() == ["1#"]


def test_the_groups_of_codes_do_not_tell_which_codes_occur():
    some, others = (from_prefix([*codes, "999"], lengths=[2, 1]) for codes in (["101", "102"], ["550"]))
    assert some == others
    assert some.n_leaves == 1000
    assert rows(some)[101] == "101;10*;1**;*"


@pytest.mark.parametrize(
    ("lengths", "mark"), [([2, 3], "*"), ([2, 2], "*"), ([0], "*"), ([], "*"), ([2], ""), ([2], "**")]
)
def test_prefixes_must_shorten(lengths, mark):
    with pytest.raises(ParameterError, match="`lengths`"):
        from_prefix(["abc"], lengths=lengths, mark=mark)


def test_trees_of_either_form():
    nested = {"Europe": {"Iberia": ["Spain", "Portugal"], "Malta": None}, "Asia": {"Japan": {}}}
    expected = [
        "Spain;Iberia;Europe;*",
        "Portugal;Iberia;Europe;*",
        "Malta;Malta;Europe;*",
        "Japan;Japan;Asia;*",
    ]
    assert rows(from_tree(nested)) == expected
    parents = {
        "Spain": "Iberia",
        "Portugal": "Iberia",
        "Iberia": "Europe",
        "Malta": "Europe",
        "Japan": "Asia",
    }
    assert rows(from_tree(parents)) == expected
    assert from_tree({**parents, "Europe": "World", "Asia": "World"}).root == "World"


@pytest.mark.parametrize(
    "tree", [{"a": "b", "b": "a"}, {"a": "b", "b": "c", "c": "b"}, {"a": "a"}, {}, {"x": ["a"], "y": ["a"]}]
)
def test_faulty_trees_are_refused(tree):
    with pytest.raises(PlanError):
        from_tree(tree)


def test_dates_climb_through_the_calendar():
    days = pl.Series("born", [date(2020, 5, 17), None, date(2020, 4, 1), date(1999, 12, 31)])
    calendar = from_dates(days)
    assert rows(calendar) == [
        "1999-12-31;1999-12;1999-Q4;1999;*",
        "2020-04-01;2020-04;2020-Q2;2020;*",
        "2020-05-17;2020-05;2020-Q2;2020;*",
    ]
    assert calendar.climb(days, 2).to_list() == ["2020-Q2", None, "2020-Q2", "1999-Q4"]
    assert from_dates(days, levels=["year"]).height == 3
    assert from_dates(days, levels=["year", "decade"]).labels(2).to_list() == ["1990s", "2020s"]
    assert calendar.name == "born"


def test_times_climb_to_their_day_first():
    times = pl.Series("seen", [datetime.fromisoformat("2020-05-17T08:30:00")])
    calendar = from_dates(times, levels=["month"])
    assert rows(calendar) == ["2020-05-17T08:30:00;2020-05-17;2020-05;*"]
    assert calendar.climb(times, 1).to_list() == ["2020-05-17"]


def test_dates_must_be_dates_and_their_levels_nest():
    with pytest.raises(DataError, match="are not dates"):
        from_dates(pl.Series("x", ["2020"]))
    for levels in (["week"], ["year", "month"], ["month", "month"]):
        with pytest.raises(ParameterError, match="`levels`"):
            from_dates(pl.Series([date(2020, 1, 1)]), levels=levels)
