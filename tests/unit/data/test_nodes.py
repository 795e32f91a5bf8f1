"""Node tables and the text of exact values: small columns with the answer worked out by hand."""

import pickle

import polars as pl
import pytest

from sfumato.data.generalised.nodes import Nodes, canonical_text, match_leaves
from sfumato.errors import DataError

# Node tables


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
    assert counties != Nodes.of({"Kern": ["Kern"]}, leaves=counties.leaves)
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
    spans = [canonical_text(pl.Series([1500]).cast(pl.Duration(unit))).item() for unit in ("ms", "us")]
    assert spans == ["1500000000", "1500000"]
    with pytest.raises(DataError, match="must be plain values"):
        canonical_text(pl.Series("x", [[1]]))


def test_numbers_match_leaves_by_value():
    leaves = pl.Series(["25", "30.0", "007", "x", "8", "8.0", "9.0", "09"])
    # 8 as it is written; 9 is two leaves, so it is none.
    assert match_leaves(pl.Series([25, 30, 7, 8, 9, None]), leaves).tolist() == [0, 1, 2, 4, -2, -1]
    assert match_leaves(pl.Series([25.0, 25.5, float("nan")]), leaves).tolist() == [0, -2, -1]
    assert match_leaves(pl.Series(["25", "30", "8.0", None]), leaves).tolist() == [0, -2, 5, -1]
    assert match_leaves(pl.Series(["x"], dtype=pl.Categorical), leaves).tolist() == [3]


def test_tables_of_one_column_are_joined():
    """Strata that were recoded apart: the labels of all, and the wildcard covers every value of all."""
    north = Nodes.of({"{a|b}": ("a", "b"), "a": ("a",)}, leaves=("a", "b"))
    south = Nodes.of({"{b|c}": ("b", "c"), "{a|b}": ("a", "b")}, leaves=("c", "b", "a"))
    both = Nodes.union([north, south])
    assert both.leaves.to_list() == ["a", "b", "c"]
    covered = {label: set(both.members_of(code)) for code, label in enumerate(both.labels)}
    assert covered == {"{a|b}": {"a", "b"}, "a": {"a"}, "{b|c}": {"b", "c"}, "*": {"a", "b", "c"}}
    assert Nodes.union([both]) == both
    with pytest.raises(DataError, match="the same values in all tables"):
        Nodes.union([north, Nodes.of({"{a|b}": ("a", "b", "d")}, leaves=("a", "b", "d"))])


@pytest.mark.parametrize("n", [254, 255, 256, 257, 65536])
def test_labels_are_found_however_many_the_type_of_a_column_has(n):
    """By the number polars keeps of each, which takes one byte or more: a missing one is none of them."""
    texts = [f"v{i}" for i in range(n)]
    nodes = Nodes.of({text: [text] for text in reversed(texts[:200])}, leaves=texts[:200])
    column = pl.Series("x", ["v3", None, "v199", "v0"], dtype=pl.Enum(texts))
    assert nodes.codes(column).tolist() == [196, -1, 0, 199]
    with pytest.raises(DataError, match="has 1 record with a label"):
        nodes.codes(pl.Series("x", ["v3", texts[-1], None], dtype=pl.Enum(texts)))
