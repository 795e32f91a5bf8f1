"""What the values of a group span, kind by kind."""

from datetime import UTC, date, datetime

import numpy as np
import polars as pl
import pytest

from brute import covers
from sfumato.data.generalised.ranges import RecordGroups, numbers_and_type, with_ranges
from sfumato.data.generalised.text_forms import parse_nodes, to_text
from sfumato.data.hierarchy.build import from_tree
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import Table
from sfumato.errors import DataError

PAIRS = RecordGroups.of(np.array([0, 0, 1, 1, 2, 2]))


def shown(values, kind, *, groups=PAIRS, cover_missing=False, hierarchy=None, **facts):
    table = Table(pl.DataFrame({"a": values}), Schema((Column("a", kind, **facts),)))
    hierarchies = {} if hierarchy is None else {"a": hierarchy}
    return with_ranges(table, ["a"], groups, hierarchies=hierarchies, cover_missing=cover_missing)


def texts(table):
    return to_text(table.frame["a"], table.nodes.get("a")).to_list()


def test_groups_keep_who_is_where():
    groups = RecordGroups.of(np.array([7, 3, 7, 3, 9]))
    assert groups.order.tolist() == [1, 3, 0, 2, 4]
    assert groups.starts.tolist() == [0, 2, 4, 5]
    assert groups.of_record.tolist() == [1, 0, 1, 0, 2]
    assert groups.sizes.tolist() == [2, 2, 1]
    assert groups.totals(np.array([True, False, True, True, False])).tolist() == [1, 2, 0]


def test_whole_numbers_span_whole_intervals():
    table = shown([3, 1, 5, 5, -2, 8], Kind.CONTINUOUS)
    assert texts(table) == ["[1;3]", "[1;3]", "5", "5", "[-2;9]", "[-2;9]"]
    assert table.frame["a"].dtype == pl.Struct({"lo": pl.Int64, "hi": pl.Int64})


def test_decimals_and_both_zeros():
    assert texts(shown([0.5, 0.25, -0.0, 0.0, 1e300, -1e300], Kind.CONTINUOUS)) == [
        "[0.25;0.5]", "[0.25;0.5]", "0", "0", "[-1e+300;1e+300]", "[-1e+300;1e+300]",
    ]  # fmt: skip


@pytest.mark.parametrize("written", [True, False])
def test_dates(written):
    days = [date(2020, 1, day) for day in (3, 1, 5, 5, 2, 8)]
    table = shown([str(day) for day in days] if written else days, Kind.DATE)
    assert texts(table)[:3] == ["[2020-01-01;2020-01-03]", "[2020-01-01;2020-01-03]", "2020-01-05"]
    assert table.frame["a"].dtype == pl.Struct({"lo": pl.Date, "hi": pl.Date})


def test_instants_to_the_tick():
    instants = pl.Series([1, 3, 2**62, 2**62 + 1, 0, 0]).cast(pl.Datetime("ns"))
    low, high = (shown(instants, Kind.DATE).frame["a"].struct.field(end) for end in ("lo", "hi"))
    assert low.to_physical().to_list() == [1, 1, 2**62, 2**62, 0, 0]
    assert high.to_physical().to_list() == [3, 3, 2**62 + 1, 2**62 + 1, 0, 0]


def test_numbers_that_are_written_as_text():
    assert texts(shown(["3", "1", " 5", "5.5", "x", "0"], Kind.CONTINUOUS, missing=("x",)))[:4] == [
        "[1;3]", "[1;3]", "[5;6]", "[5;6]",
    ]  # fmt: skip
    with pytest.raises(DataError, match="1 value that cannot be read as numbers"):
        shown(["3", "1", "5", "5.5", "x", "0"], Kind.CONTINUOUS)


def test_large_numbers_are_exact_or_refused():
    assert texts(shown([2**62, 2**62 + 1, 0, 0, 0, 0], Kind.CONTINUOUS))[0] == f"[{2**62};{2**62 + 1}]"
    with pytest.raises(DataError, match="2\\^53"):
        shown(pl.Series([2**63, 0, 0, 0, 0, 0], dtype=pl.UInt64), Kind.CONTINUOUS)
    assert texts(shown(pl.Series([7, 3, 0, 0, 0, 0], dtype=pl.UInt64), Kind.CONTINUOUS))[0] == "[3;7]"


def test_categories_become_sets_of_those_that_occur():
    table = shown(["b", "a", "c", "c", "a", "c"], Kind.NOMINAL)
    assert texts(table) == ["{a|b}", "{a|b}", "c", "c", "{a|c}", "{a|c}"]
    assert table.frame["a"].to_list() == texts(table)


def test_equal_sets_have_one_label():
    groups = RecordGroups.of(np.array([0, 0, 0, 1, 1, 1, 2, 2, 3]))
    table = shown(list("abacbbbaz"), Kind.NOMINAL, groups=groups)
    assert texts(table) == ["{a|b}"] * 3 + ["{b|c}"] * 3 + ["{a|b}"] * 2 + ["z"]
    assert sorted(table.nodes["a"].labels) == ["*", "z", "{a|b}", "{b|c}"]


def test_a_set_of_all_values_is_the_wildcard():
    assert texts(shown(["b", "a", "a", "a", "b", "b"], Kind.NOMINAL)) == ["*", "*", "a", "a", "b", "b"]


def test_values_that_look_like_labels_are_told_apart():
    awkward = ["*", "{a|b}", "a|b", "a|b", "\\", "a"]
    table = shown(awkward, Kind.NOMINAL)
    assert covers(table.frame["a"], pl.Series("a", awkward), nodes=table.nodes["a"]).all()
    assert table.frame["a"].n_unique() == 3
    read, nodes = parse_nodes(pl.Series(texts(table)))
    assert covers(read, pl.Series("a", awkward), nodes=nodes).all()


def test_ordered_categories_span_all_between():
    order = ("never", "seldom", "often", "always")
    values = ["seldom", "never", "often", "never", "always", "always"]
    table = shown(values, Kind.ORDINAL, order=order)
    assert texts(table) == ["{never|seldom}"] * 2 + ["{never|seldom|often}"] * 2 + ["always"] * 2


def test_ordinal_numbers_span_intervals():
    assert texts(shown([1, 3, 2, 2, 4, 1], Kind.ORDINAL)) == ["[1;3]", "[1;3]", "2", "2", "[1;4]", "[1;4]"]
    assert texts(shown([1, 3, 2, 2, 4, 1], Kind.ORDINAL, order=(4, 3, 2, 1)))[0] == "{3|2|1}"
    assert texts(shown([0.5, 3.0, 2.0, 2.0, 4.0, 1.0], Kind.ORDINAL))[0] == "[0.5;3]"


def test_categories_climb_to_their_lowest_common_label():
    tree = {"North": {"Oslo": {}, "Bergen": {}}, "South": {"Rome": {}, "Bari": {}}}
    hierarchy = from_tree(tree, name="a")
    groups = RecordGroups.of(np.array([0, 0, 1, 1, 2, 2, 3, 3]))
    values = ["Oslo", "Bergen", "Rome", "Rome", "Bari", "Oslo", "Rome", None]
    table = shown(values, Kind.NOMINAL, groups=groups, hierarchy=hierarchy)
    assert table.frame["a"].to_list() == ["North", "North", "Rome", "Rome", "*", "*", "*", "*"]
    with pytest.raises(DataError, match="does not cover its column"):
        shown([*values[:-1], "Paris"], Kind.NOMINAL, groups=groups, hierarchy=hierarchy)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, None, None, None, 7, 9], Kind.CONTINUOUS),
        ([1.5, None, None, None, 7.5, 9.0], Kind.CONTINUOUS),
        ([1, -9, -9, -9, 7, 9], Kind.CONTINUOUS),
        (["a", None, None, None, "b", "c"], Kind.NOMINAL),
        (["a", "-9", "-9", "-9", "b", "c"], Kind.ORDINAL),
        ([datetime(2020, 1, 1, tzinfo=UTC), None, None, None, *[datetime(2021, 1, 1, tzinfo=UTC)] * 2], Kind.DATE),
    ],
)  # fmt: skip
def test_a_group_is_alike_whatever_is_missing(values, kind):
    """Missing with present: the wildcard; all missing: missing, or the wildcard where that is asked for."""
    for cover in (False, True):
        table = shown(values, kind, missing=(-9,), cover_missing=cover)
        found = texts(table)
        assert found[:4] == ["*", "*", *(["*", "*"] if cover else [None, None])]
        assert found[4] == found[5]
        assert found[4] not in {"*", None}
        assert table.frame["a"].null_count() == (0 if cover else 2)


def test_all_missing_and_no_records():
    for kind in (Kind.CONTINUOUS, Kind.NOMINAL, Kind.ORDINAL, Kind.DATE):
        dtype = {Kind.CONTINUOUS: pl.Float64, Kind.DATE: pl.Date}.get(kind, pl.String)
        table = shown(pl.Series([None] * 6, dtype=dtype), kind)
        assert table.frame["a"].null_count() == 6
        assert table.is_generalised("a")
        empty = table.take(np.arange(0))
        nothing = RecordGroups(np.zeros(0, dtype=np.int64), np.zeros(1, dtype=np.int64))
        assert with_ranges(empty, ["a"], nothing) is empty


def test_only_numbers_and_dates_are_measured():
    schema = Schema((Column("a", Kind.NOMINAL), Column("b", Kind.ORDINAL, order=(2, 1))))
    table = Table(pl.DataFrame({"a": [1, 2], "b": [1, 2]}), schema)
    assert numbers_and_type(table, "a") is None
    assert numbers_and_type(table, "b") is None


def test_labels_of_sets_are_the_same_however_many_are_written_at_a_time(monkeypatch):
    rng = np.random.default_rng(1)
    frame = pl.DataFrame({"x": rng.choice(list("abcdefgh"), 200)})
    table, groups = Table(frame, Schema((Column("x", Kind.NOMINAL),))), RecordGroups.of(np.arange(200) // 4)
    shown = to_text(with_ranges(table, ["x"], groups).frame["x"]).to_list()
    monkeypatch.setattr("sfumato.data.generalised.ranges._SETS_AT_ONCE", 3)
    assert to_text(with_ranges(table, ["x"], groups).frame["x"]).to_list() == shown
    assert shown[0] == "{" + "|".join(sorted(set(frame["x"][:4]))) + "}"
