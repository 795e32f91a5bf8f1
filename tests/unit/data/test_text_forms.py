"""Text forms: written and read as worked out by hand, and told from ordinary text."""

import csv
import io
from datetime import UTC, date, datetime

import numpy as np
import polars as pl
import pytest

from brute import covers, width
from sfumato.data.generalised.intervals import exact_intervals
from sfumato.data.generalised.nodes import Nodes
from sfumato.data.generalised.text_forms import looks_generalised, parse_intervals, parse_nodes, to_text
from sfumato.errors import DataError, ParameterError

at = datetime.fromisoformat
COUNTIES = ["Kern", "Fresno", "Kings", "Tulare"]

# Intervals


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


def test_times_of_a_zone_are_written_by_its_clocks():
    dtype = pl.Datetime("ms", "Europe/Madrid")
    column = exact_intervals(
        pl.Series([datetime(2020, 7, 1, 10, tzinfo=UTC)])
        .cast(pl.Datetime("ms", "UTC"))
        .dt.convert_time_zone("Europe/Madrid")
    )
    assert to_text(column).to_list() == ["2020-07-01T12:00:00+02:00"]
    assert parse_intervals(to_text(column), dtype).equals(column)
    assert parse_intervals(pl.Series(["2020-07-01T10:00:00Z"]), dtype).equals(
        column
    )  # as it was once written


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
    with pytest.raises(DataError, match="has 2 records with a text") as caught:
        parse_intervals(pl.Series("income", [text, "3", text, None]), pl.Int64)
    assert "`income`" in str(caught.value)
    assert "704" not in str(caught.value)


def test_intervals_of_words_are_refused():
    with pytest.raises(ParameterError, match="numbers, dates or times"):
        parse_intervals(pl.Series(["a"]), pl.String)


# Nodes and exact values


def test_a_node_is_written_as_its_members_or_as_its_label(counties):
    column = pl.Series("county", ["south", "Kern", None, "*", "north"], dtype=counties.dtype)
    assert to_text(column, counties).to_list() == ["{Kern|Tulare}", "Kern", None, "*", "{Fresno|Kings}"]
    assert to_text(column).to_list() == ["south", "Kern", None, "*", "north"]


def test_a_label_that_is_not_in_the_table_is_counted_and_not_shown(counties):
    with pytest.raises(DataError, match="has 2 records with a label") as caught:
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
        ("93***", r"\93***"),
        ("4*", r"\4*"),
        ("123456**", r"\123456**"),
        ("...", "..."),
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


def test_a_code_that_is_cut_short_is_every_code_that_begins_so():
    text = pl.Series("zip", ["12*", "1**", "127", "*", None])
    column, nodes = parse_nodes(text)
    assert column.to_list() == text.to_list()
    assert len(nodes.leaves) == 1000  # all codes of three digits, whoever has them
    sizes = [None if code < 0 else int(nodes.sizes[code]) for code in nodes.codes(column)]
    assert sizes == [10, 100, 1, 1000, None]
    assert nodes.members_of(nodes.labels.index_of("12*")).to_list() == [f"12{i}" for i in range(10)]
    assert to_text(column, nodes).to_list() == text.to_list()
    held = covers(column, pl.Series(["125", "125", "125", "125", "125"]), nodes=nodes)
    assert held.tolist()[:4] == [True, True, False, True]


def test_a_label_like_a_beginning_that_covers_less_is_written_as_its_values():
    nodes = Nodes.of({"12*": ["120", "121"]}, leaves=["120", "121", "122"])
    assert to_text(pl.Series(["12*"], dtype=nodes.dtype), nodes).to_list() == ["{120|121}"]


def test_a_column_of_wildcards_reads():
    column, nodes = parse_nodes(pl.Series(["*", "*"]))
    assert column.to_list() == ["*", "*"]
    assert width(column, nodes=nodes).tolist() == [1.0, 1.0]
    assert covers(column, pl.Series(["a", None]), nodes=nodes).tolist() == [True, True]


@pytest.mark.parametrize(
    "text", ["{sentinel|{b}", "{sentinel}}", "{sentinel\\}", "sentinel", "{Kern|sentinel}"]
)
def test_faulty_node_text_is_counted_and_not_shown(text):
    with pytest.raises(DataError, match="has 2 records with a text") as caught:
        parse_nodes(pl.Series("county", [text, "Kern", text]), COUNTIES)
    assert "`county`" in str(caught.value)
    assert "sentinel" not in str(caught.value)


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
        (["937**", "93721", "*", None], "node"),
        (["937**", "{93650|94000}"], "node"),
        (["937**", "9****"], "node"),
        (["937**", "937"], None),
        (["93*", "old"], None),
        (["3*", "4*"], None),
        ([""], None),
        ([], None),
        ([None], None),
    ],
)
def test_generalised_text_is_recognised_and_ordinary_text_is_not(texts, expected):
    assert looks_generalised(pl.Series(texts, dtype=pl.String)) == expected
