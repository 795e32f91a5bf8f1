"""Generalised values: small columns with the answer worked out by hand."""

import csv
import io
import pickle
from datetime import UTC, date, datetime

import numpy as np
import polars as pl
import pytest

from sfumato.data.generalised import (
    Nodes,
    canonical_text,
    covers,
    ends,
    exact_intervals,
    intervals,
    is_interval,
    looks_generalised,
    match_leaves,
    midpoint,
    parse_intervals,
    parse_nodes,
    to_text,
    width,
    wildcard_intervals,
)
from sfumato.errors import DataError, ParameterError

at = datetime.fromisoformat
COUNTIES = ["Kern", "Fresno", "Kings", "Tulare"]


@pytest.fixture
def counties():
    return Nodes.of(
        {"Kern": ["Kern"], "north": ["Kings", "Fresno", "Kings"], "south": ["Kern", "Tulare"]},
        leaves=COUNTIES,
    )


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


# Interval text


@pytest.mark.parametrize(
    ("text", "dtype", "lo", "hi"),
    [
        ("[20;29]", pl.Int64, 20, 29),
        ("[-20;-3]", pl.Int64, -20, -3),
        ("25", pl.Int64, 25, 25),
        ("[;17]", pl.Int64, None, 17),
        ("[65;]", pl.Int64, 65, None),
        ("*", pl.Int64, None, None),
        ("[-0.5;1e+300]", pl.Float64, -0.5, 1e300),
        ("[20;29]", pl.Float64, 20.0, 29.0),
        ("-7", pl.Float64, -7.0, -7.0),
        ("[;0.1]", pl.Float64, -np.inf, 0.1),
        ("*", pl.Float64, -np.inf, np.inf),
        ("inf", pl.Float64, np.inf, np.inf),
        ("[2020-02-28;2020-02-29]", pl.Date, date(2020, 2, 28), date(2020, 2, 29)),
        ("[1999-12-31;]", pl.Date, date(1999, 12, 31), None),
        (
            "2020-01-01T05:06:07.000008",
            pl.Datetime("us"),
            at("2020-01-01T05:06:07.000008"),
            at("2020-01-01T05:06:07.000008"),
        ),
    ],
)
def test_interval_text_reads_and_writes(text, dtype, lo, hi):
    column = parse_intervals(pl.Series("x", [text, None]), dtype)
    assert column.to_list() == [{"lo": lo, "hi": hi}, None]
    assert column.dtype == pl.Struct({"lo": dtype, "hi": dtype})
    assert to_text(column).to_list() == [text, None]


def test_times_of_a_zone_are_written_in_utc():
    dtype = pl.Datetime("ms", "Europe/Madrid")
    column = exact_intervals(
        pl.Series([datetime(2020, 7, 1, 10, tzinfo=UTC)])
        .cast(pl.Datetime("ms", "UTC"))
        .dt.convert_time_zone("Europe/Madrid")
    )
    assert to_text(column).to_list() == ["2020-07-01T10:00:00Z"]
    assert parse_intervals(to_text(column), dtype).equals(column)


@pytest.mark.parametrize(
    ("texts", "dtype"),
    [
        (["1", "[2;3]"], pl.Int64),
        (["1", "[2.5;3]"], pl.Float64),
        (["*", "[2020-01-01;2020-01-05]"], pl.Date),
        (["2020-01-01T00:00:00"], pl.Datetime("us")),
        (["[ 2 ; 3 ]"], pl.Int64),
    ],
)
def test_the_dtype_of_intervals_is_found_out(texts, dtype):
    assert parse_intervals(pl.Series(texts)).dtype == pl.Struct({"lo": dtype, "hi": dtype})


@pytest.mark.parametrize(
    "text",
    [
        "[7041;7040]",
        "7041x",
        "",
        "[7041]",
        "[7041;7042;7043]",
        "[7041;7042[",
        "99999999999999999999",
        "7041.5",
        "nan",
    ],
)
def test_faulty_interval_text_is_counted_and_not_shown(text):
    with pytest.raises(DataError, match="got 2 records") as caught:
        parse_intervals(pl.Series("income", [text, "3", text, None]), pl.Int64)
    assert "`income`" in str(caught.value)
    assert "704" not in str(caught.value)


def test_intervals_of_words_are_refused():
    with pytest.raises(ParameterError, match="numbers, dates or times"):
        parse_intervals(pl.Series(["a"]), pl.String)


# Node tables and their text


def test_a_node_table_lists_members_in_the_order_of_leaves(counties):
    assert counties.labels.to_list() == ["Kern", "north", "south", "*"]
    assert counties.starts.tolist() == [0, 1, 3, 5, 9]
    assert counties.members.tolist() == [0, 1, 2, 0, 3, 0, 1, 2, 3]
    assert counties.members_of(1).to_list() == ["Fresno", "Kings"]
    assert counties.dtype == pl.Enum(["Kern", "north", "south", "*"])


def test_node_tables_compare_and_pickle_and_keep_their_values_to_themselves(counties):
    copy = pickle.loads(pickle.dumps(counties))
    assert copy == counties
    assert hash(copy) == hash(counties)
    assert counties != Nodes.of({"Kern": ["Kern"]}, leaves=COUNTIES)
    assert counties != "Kern"
    assert "Kern" not in repr(counties)


@pytest.mark.parametrize(
    ("members", "leaves"),
    [
        ({"sentinel": []}, ["a"]),
        ({"x": ["sentinel"]}, ["a"]),
        ({"x": ["sentinel"]}, ["sentinel", "b", "sentinel"]),
    ],
)
def test_faulty_node_tables_are_refused_without_their_values(members, leaves):
    with pytest.raises(DataError) as caught:
        Nodes.of(members, leaves=leaves)
    assert "sentinel" not in str(caught.value)


def test_a_node_is_written_as_its_members_or_as_its_label(counties):
    column = pl.Series("county", ["south", "Kern", None, "*", "north"], dtype=counties.dtype)
    assert to_text(column, counties).to_list() == ["{Kern|Tulare}", "Kern", None, "*", "{Fresno|Kings}"]
    assert to_text(column).to_list() == ["south", "Kern", None, "*", "north"]


def test_a_label_that_is_not_in_the_table_is_counted_and_not_shown(counties):
    with pytest.raises(DataError, match="got 2 records") as caught:
        to_text(pl.Series("county", ["sentinel", "sentinel", "Kern"]), counties)
    assert "sentinel" not in str(caught.value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("Kern", "Kern"),
        ("*", r"\*"),
        ("**", "**"),
        ("", "\\"),
        (" a ", " a "),
        ("[1;2]", r"\[1;2]"),
        ("[1;2", "[1;2"),
        ("{a|b}", r"\{a|b}"),
        ("{", "{"),
        ("a|b;c", "a|b;c"),
        ("\\", "\\\\"),
        ("\\*", r"\\*"),
        ("a\\b", "a\\b"),
        ("{\n}", "\\{\n}"),
    ],
)
def test_exact_text_is_escaped_only_where_it_would_misread(value, text):
    assert to_text(pl.Series([value])).to_list() == [text]
    column, nodes = parse_nodes(pl.Series([text]))
    assert nodes.leaves.to_list() == [value]
    assert column.to_list() == [text]
    assert width(column, nodes=nodes).tolist() == [0.0]


def test_awkward_values_survive_a_csv_file():
    leaves = ["a|b", "c}", "{d", "\\", "", " e ", "*", "[1;2]", "f;g", 'h"', "i\nj", "ü"]
    nodes = Nodes.of(
        {"some": leaves[:6], "other": leaves[5:], **{f"only {i}": [leaf] for i, leaf in enumerate(leaves)}},
        leaves=leaves,
    )
    column = pl.Series(nodes.labels.to_list(), dtype=nodes.dtype)
    file = io.StringIO(newline="")
    csv.writer(file).writerows([text] for text in to_text(column, nodes))
    read = pl.Series([row[0] for row in csv.reader(io.StringIO(file.getvalue(), newline=""))])
    again, table = parse_nodes(read, leaves)
    assert [set(table.members_of(code)) for code in table.codes(again)] == [
        set(nodes.members_of(code)) for code in nodes.codes(column)
    ]


def test_sets_are_read_in_the_order_of_the_leaves():
    text = pl.Series("county", ["{Kings|Kern|Kings}", "Tulare", None, "*", "{Fresno}"])
    column, nodes = parse_nodes(text, COUNTIES)
    assert column.to_list() == ["{Kern|Kings}", "Tulare", None, "*", "Fresno"]
    assert nodes.labels.to_list() == [*COUNTIES, "*", "{Kern|Kings}"]
    assert nodes.sizes.tolist() == [1, 1, 1, 1, 4, 2]
    assert parse_nodes(text)[1].leaves.to_list() == ["Fresno", "Kern", "Kings", "Tulare"]


def test_a_column_of_wildcards_reads():
    column, nodes = parse_nodes(pl.Series(["*", "*"]))
    assert column.to_list() == ["*", "*"]
    assert width(column, nodes=nodes).tolist() == [1.0, 1.0]
    assert covers(column, pl.Series(["a", None]), nodes=nodes).tolist() == [True, True]


@pytest.mark.parametrize(
    "text", ["{sentinel|{b}", "{sentinel}}", "{sentinel\\}", "sentinel", "{Kern|sentinel}"]
)
def test_faulty_node_text_is_counted_and_not_shown(text):
    with pytest.raises(DataError, match="got 2 records") as caught:
        parse_nodes(pl.Series("county", [text, "Kern", text]), COUNTIES)
    assert "`county`" in str(caught.value)
    assert "sentinel" not in str(caught.value)


# Exact values


def test_equal_numbers_have_equal_text():
    assert canonical_text(pl.Series([25, None])).to_list() == ["25", None]
    assert canonical_text(pl.Series([25.0, -0.0, 0.5, 1e18, 1e300, float("nan")])).to_list() == [
        "25",
        "0",
        "0.5",
        "1000000000000000000",
        "1e+300",
        None,
    ]
    assert canonical_text(pl.Series([25.0, 0.1], dtype=pl.Float32)).to_list() == ["25", "0.1"]
    assert canonical_text(pl.Series(["25.00"]).cast(pl.Decimal(10, 2))).to_list() == ["25"]
    with pytest.raises(DataError, match="must be plain values"):
        canonical_text(pl.Series("x", [[1]]))


def test_numbers_match_leaves_by_value():
    leaves = pl.Series(["25", "30.0", "007", "x", "8", "8.0", "9.0", "09"])
    # 8 as it is written; 9 is two leaves, so it is none.
    assert match_leaves(pl.Series([25, 30, 7, 8, 9, None]), leaves).tolist() == [0, 1, 2, 4, -2, -1]
    assert match_leaves(pl.Series([25.0, 25.5, float("nan")]), leaves).tolist() == [0, -2, -1]
    assert match_leaves(pl.Series(["25", "30", "8.0", None]), leaves).tolist() == [0, -2, 5, -1]
    assert match_leaves(pl.Series(["x"], dtype=pl.Categorical), leaves).tolist() == [3]


# Recognising


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["[20;29]", "25", "*"], "interval"),
        (["[20;29]", "", None], "interval"),
        (["25", "*"], "interval"),
        (["[;17]", "[65;]"], "interval"),
        (["[2020-01-01;2020-02-01]", "2020-01-05"], "interval"),
        (["{Kern|Fresno}", "Kings", "*"], "node"),
        (["{a|b}", r"\[1;2]"], "node"),
        (["*", "*"], "node"),
        (["25", "26"], None),
        (["2020-01-01"], None),
        (["Kern", "*"], None),
        (["*", "**", "***"], None),
        (["{name}", "{surname}"], None),
        (["{a|b}", "{c"], "node"),
        (["{a|b}", "{c}"], None),
        (["{a|b}", "[x]"], None),
        (["{a|{b}", "c"], None),
        (["[20;29]", "Kern"], None),
        (["[20;29]", "2020-01-01"], None),
        (["[29;20]"], None),
        (["[a;b]"], None),
        (["[1,2]", "[3,4]"], None),
        (["see [1;2] there"], None),
        (["a; b | c \\ d"], None),
        ([""], None),
        ([], None),
        ([None], None),
    ],
)
def test_generalised_text_is_recognised_and_ordinary_text_is_not(texts, expected):
    assert looks_generalised(pl.Series(texts, dtype=pl.String)) == expected


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
