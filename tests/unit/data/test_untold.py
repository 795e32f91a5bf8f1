"""Values that few have are in no set by name, and are read back as what they may be."""

import numpy as np
import polars as pl
import pytest

from sfumato.data.generalised.cover import Cover, cover_of
from sfumato.data.generalised.intervals import exact_intervals
from sfumato.data.generalised.nodes import Nodes, canonical_text
from sfumato.data.generalised.rare_values import hide_rare_values, known_of, read_released_column
from sfumato.data.generalised.text_forms import (
    KnownValues,
    is_open,
    looks_generalised,
    parse_nodes,
    set_text,
    to_text,
)
from sfumato.data.hidden_content import MIN_PERSONS_NAMED
from sfumato.data.hierarchy.build import from_prefix
from sfumato.data.hierarchy.grow import propose
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table

DIAGNOSES = ["E11.9", "E11.21", "E10", "I10", "I11.0", "J45.0", "J45.9", "F32.1", "F32", "M54.5"]


def members(column, nodes):
    return [set(nodes.members_of(code)) if code >= 0 else None for code in nodes.codes(column)]


def table_of(values, **facts):
    return Table(pl.DataFrame({"x": values}), Schema((Column("x", Kind.NOMINAL, **facts),)))


# Codes -------------------------------------------------------------------------------------------------


def test_codes_of_any_length_climb_to_what_begins_so():
    tree = from_prefix(pl.Series("d", DIAGNOSES), lengths=[4, 3, 1])
    climbed = {leaf: labels for leaf, *labels in tree.levels.iter_rows()}
    assert climbed["E11.9"] == ["E11.*", "E11*", "E*", "*"]
    assert climbed["E10"] == ["E10", "E10*", "E*", "*"]  # shorter than four: itself
    grown = propose(Column("d", Kind.NOMINAL), pl.Series("d", DIAGNOSES))
    assert grown.labels(1).to_list()[:3] == ["E10", "E11.*", "F32"]  # of six signs at most: where codes part
    assert grown.labels(2).to_list()[:2] == ["E10*", "E11*"]


def test_a_code_that_is_cut_short_is_read_with_the_values_of_the_original():
    """E11* covers E11.9, E11.21 and the E11.4 of the original that nobody shows; E1* covers E10, too."""
    text = pl.Series("d", ["E11*", "E1*", "I10", "*", None])
    known = KnownValues([*DIAGNOSES, "E11.4"], [])
    column, nodes = parse_nodes(text, known=known)
    assert column.to_list() == to_text(column, nodes).to_list() == text.to_list()
    assert members(column, nodes)[:3] == [
        {"E11.9", "E11.21", "E11.4"},
        {"E11.9", "E11.21", "E11.4", "E10"},
        {"I10"},
    ]
    # Without the original, a leaf stands for all that begin so, and E1* covers that of E11*.
    column, nodes = parse_nodes(text)
    assert to_text(column, nodes).to_list() == text.to_list()
    assert members(column, nodes)[:3] == [{"E11..."}, {"E11...", "E1..."}, {"I10"}]


def test_digits_that_are_known_to_be_of_other_lengths_are_not_listed():
    column, nodes = parse_nodes(
        pl.Series("x", ["936*", "9360"]), known=KnownValues(["9360", "93650", "94000"], [])
    )
    assert members(column, nodes) == [{"9360", "93650"}, {"9360"}]


@pytest.mark.parametrize("texts", [["3*", "4*"], ["4.5*", "5*"], ["A*", "B"], ["G63.2*", "E11.9"]])
def test_ratings_and_the_asterisks_of_diagnoses_stay_text_until_the_original_tells(texts):
    """G63.2* is a code of ICD-10 for what comes with another disease."""
    series = pl.Series("x", texts)
    assert looks_generalised(series) is None
    assert not is_open(series, KnownValues(texts, []))
    assert is_open(series, KnownValues(["3.1", "4.5.1", "A1", "G63.21"], []))


def test_a_label_that_is_not_the_beginning_of_all_is_a_set():
    nodes = Nodes.of({"E11*": ["E11.9"]}, leaves=["E11.9", "E11.21"])
    assert to_text(pl.Series(["E11*"], dtype=nodes.dtype), nodes).to_list() == ["E11.9"]
    nodes = Nodes.of({"4*": ["4*"]}, leaves=["4*", "40"])  # a rating
    assert to_text(pl.Series(["4*"], dtype=nodes.dtype), nodes).to_list() == [r"\4*"]


# Sets --------------------------------------------------------------------------------------------------


def test_sets_name_what_many_have_or_what_is_declared():
    values = (
        ["DE"] * MIN_PERSONS_NAMED + ["TR"] * MIN_PERSONS_NAMED + ["NR"] * (MIN_PERSONS_NAMED - 1) + ["TV"]
    )
    assert known_of(table_of(values), "x") == KnownValues(["DE", "NR", "TR", "TV"], ["NR", "TV"])
    assert known_of(table_of(values, labels=(("NR", "Nauru"),)), "x").few == ["TV"]
    # The records of one person are one.
    frame = pl.DataFrame({"x": ["DE"] * 20 + ["TR"] * 20, "who": [*range(20), *[99] * 20]})
    people = Table(frame, Schema((Column("x", Kind.NOMINAL), Column("who", Kind.NOMINAL, Role.PERSON))))
    assert known_of(people, "x").few == ["TR"]


def test_values_that_few_have_are_three_dots_and_sets_that_differ_in_them_are_one():
    groups = {"a": ["DE", "NR"], "b": ["DE", "TV"], "c": ["DE", "TR"], "d": ["NR", "TV"]}
    nodes = Nodes.of({**groups, "TR": ["TR"]}, leaves=["DE", "TR", "NR", "TV"])
    column = pl.Series("x", ["a", "b", "c", "d", "TR", "*", None]).cast(nodes.dtype)
    table = Table(column.to_frame(), Schema((Column("x", Kind.NOMINAL),)), nodes={"x": nodes})
    shown, changed = hide_rare_values(table, "x", ["NR", "TV"])
    assert changed == 3
    texts = ["{DE|...}", "{DE|...}", "{DE|TR}", "{...}", "TR", "*", None]
    assert to_text(shown.frame["x"], shown.nodes["x"]).to_list() == texts
    rest = {"NR", "TV"}
    stand = [{"DE"} | rest, {"DE"} | rest, {"DE", "TR"}, rest, {"TR"}, {"DE", "TR"} | rest, None]
    assert members(shown.frame["x"], shown.nodes["x"]) == stand
    again, read = parse_nodes(
        pl.Series("x", texts), known=KnownValues(["DE", "NR", "TR", "TV"], ["NR", "TV"])
    )
    assert members(again, read) == stand
    alone, read = parse_nodes(pl.Series("x", texts))
    assert members(alone, read)[:4] == [{"DE", "..."}, {"DE", "..."}, {"DE", "TR"}, {"..."}]


def test_three_dots_that_are_a_value_are_told_apart():
    assert set_text(["a", "..."]) == r"{a|\...}"
    column, nodes = parse_nodes(pl.Series("x", [r"{a|\...}", "{b|...}", r"{c|d\|...}"]))
    assert members(column, nodes) == [{"a", "..."}, {"b", "..."}, {"c", "d|..."}]


def test_widths_are_counted_among_the_values_that_are_known():
    """Of four codes E1* covers two: (2 − 1) / (4 − 1), in memory and read back beside the original."""
    codes = ["E11.9", "E10.1", "I10", "J45"]
    nodes = from_prefix(codes, lengths=[2]).nodes()
    schema = Schema((Column("x", Kind.NOMINAL),))
    column = pl.Series("x", ["E1*", "E1*", "I10", "*"]).cast(nodes.dtype)
    made = Table(column.to_frame(), schema, nodes={"x": nodes})
    texts = to_text(column, nodes)
    series, read = parse_nodes(texts, known=known_of(table_of(codes), "x"))
    again = Table(series.to_frame(), schema, nodes={"x": read})
    for table in (made, again):
        np.testing.assert_allclose(Cover.of(table, "x").share_of_domain(), [1 / 3, 1 / 3, 0, 1])
        numbers, cover = cover_of(table_of(codes), table, "x")
        assert cover.holds(numbers).all()


def test_a_release_is_read_by_the_values_of_the_original_whatever_it_names():
    """A wildcard stands for all that the original has, and an order for values that nobody has."""
    known = known_of(table_of(["DE", "DE", "TR"]), "x")
    assert parse_nodes(pl.Series("x", ["*", "*"]), known=known)[1].leaves.to_list() == ["DE", "TR"]
    ordered = Table(
        pl.DataFrame({"x": ["low", "mid"]}),
        Schema((Column("x", Kind.ORDINAL, Role.KEY, order=("low", "mid", "high")),)),
    )
    assert known_of(ordered, "x").values == ["high", "low", "mid"]


def test_groups_that_a_step_made_are_seen_as_a_reader_sees_them():
    """Of values that the original has: those of a step that nobody names are gone, and those it lost are back."""
    original = table_of([*"aabbcc"])
    nodes = Nodes.of({"{a|b}": ["a", "b"], "made": ["made"]}, leaves=["a", "b", "made"])
    column = pl.Series("x", ["{a|b}", "*", None], dtype=nodes.dtype)
    table = Table(pl.DataFrame({"x": column}), original.schema, nodes={"x": nodes})
    seen = read_released_column(table, "x", original, ["a", "b", "c"])
    assert seen.nodes["x"].leaves.to_list() == ["a", "b", "c"]
    assert seen.nodes["x"].labels.to_list() == ["{a|b}", "*"]
    assert seen.frame["x"].cast(pl.String).to_list() == ["{a|b}", "*", None]


@pytest.mark.parametrize("values", [[3, 5, None], [1.5, 2.0, None], [True, False, None], ["a", "b", None]])
def test_a_column_of_which_every_cell_is_one_value_is_exact(values):
    original = table_of([*values, values[0]])
    texts = canonical_text(pl.Series("x", values))
    leaves = texts.drop_nulls().to_list()
    nodes = Nodes.of({leaf: [leaf] for leaf in leaves}, leaves=leaves)
    tables = [Table(pl.DataFrame({"x": texts.cast(nodes.dtype)}), original.schema, nodes={"x": nodes})]
    if isinstance(values[0], float):
        tables.append(original.take(np.arange(3)).with_values("x", exact_intervals(pl.Series(values))))
    for table in tables:
        seen = read_released_column(table, "x", original, leaves)
        assert not seen.is_generalised("x")
        assert seen.frame["x"].to_list() == values
        assert seen.frame["x"].dtype == original.frame["x"].dtype
