"""Features: how columns of every sort become numbers, with the numbers worked out by hand."""

from datetime import date

import numpy as np
import polars as pl
import pytest

from sfumato.core.evidence import Evidence
from sfumato.core.run import Run
from sfumato.data.generalised.intervals import intervals
from sfumato.data.generalised.nodes import Nodes
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.utility._features import FARTHEST, features_of, in_order, sample_of, weights_of_both
from toys import table_of


def with_labels(table, name, labels, members, leaves):
    """The same table with one column of labels that cover leaves."""
    nodes = Nodes.of(members, leaves=leaves)
    series = pl.Series(name, labels, dtype=nodes.dtype)
    return Table(table.frame.with_columns(series), table.schema, nodes={**table.nodes, name: nodes})


def features(original, protected, **more):
    return features_of(Evidence(original, protected), original.names, **more)


def test_numbers_are_in_deviations_of_the_original_and_holes_say_so():
    made = features(table_of({"x": [1.0, 3.0]}), table_of({"x": [5.0, None]}))
    assert made.sorts == ("number", "hole")
    assert made.columns == ("x", "x")
    assert made.original.tolist() == [[-1, 0], [1, 0]]
    assert made.released.tolist() == [[3, 0], [0, 1]]


def test_ranges_lie_at_their_middle_and_a_wildcard_is_a_hole():
    original = table_of({"x": [0.0, 4.0, 8.0]})
    series = intervals(pl.Series([0.0, 4.0, None, None]), pl.Series([4.0, 4.0, None, 2.0]), name="x")
    made = features(original, Table(pl.DataFrame([series]), original.schema))
    unit = np.std([0, 4, 8])
    # [0;4] → 2, 4 → 4, * → nothing said, [;2] reaches down to the least of the original, 0 → 1
    np.testing.assert_allclose(made.released[:, 0], np.array([2 - 4, 0, 0, 1 - 4]) / unit)
    assert made.released[:, 1].tolist() == [0, 0, 1, 0]


def test_a_set_of_numbers_lies_at_its_mean():
    original = table_of({"x": [0, 1, 5, 6]})
    protected = with_labels(
        table_of({"x": ["low", "5"]}),
        "x",
        ["low", "5"],
        {"low": ["0", "1", "5"], "5": ["5"]},
        ["0", "1", "5", "6"],
    )
    made = features(original, protected)
    np.testing.assert_allclose(made.released[:, 0], (np.array([2.0, 5.0]) - 3) / np.std([0, 1, 5, 6]))


def test_a_set_of_categories_has_equal_shares():
    original = table_of({"x": ["a", "b", "c"]}, x=Kind.NOMINAL)
    protected = with_labels(original, "x", ["ab", "c", "*"], {"ab": ["a", "b"], "c": ["c"]}, ["a", "b", "c"])
    made = features(original, protected)
    assert made.sorts == ("share", "share", "share", "hole")
    assert made.original.tolist() == [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]
    assert made.released.tolist() == [[0.5, 0.5, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]


def test_categories_of_the_release_alone_have_a_feature():
    made = features(table_of({"x": ["a", "a"]}, x=Kind.NOMINAL), table_of({"x": ["a", "z"]}, x=Kind.NOMINAL))
    assert made.original.tolist() == [[1, 0], [1, 0]]
    assert made.released.tolist() == [[1, 0], [0, 1]]


def test_the_rarest_categories_are_one():
    first = table_of({"x": list("aaabbcde")}, x=Kind.NOMINAL)
    made = features(first, table_of({"x": ["e", "b", "d"]}, x=Kind.NOMINAL), many=3)
    # a and b (three each over both tables) stay, c, d and e are the third
    assert made.original.sum(axis=0).tolist() == [3, 2, 3]
    assert made.released.tolist() == [[0, 0, 1], [0, 1, 0], [0, 0, 1]]


def test_ordinal_columns_count_by_position_and_dates_by_time():
    order = Column("grade", Kind.ORDINAL, Role.KEY, order=("low", "middle", "high"))
    days = [date(2020, 1, 1), date(2020, 1, 3), date(2020, 1, 5)]
    original = table_of({"day": days, "grade": ["high", "low", "middle"]}, day=Kind.DATE, grade=order)
    made = features(original, original.take(np.array([0])))
    unit = np.std([0, 1, 2])
    np.testing.assert_allclose(made.original, np.array([[-1, 1], [0, -1], [1, 0]]) / unit)
    np.testing.assert_allclose(made.released, [[-1 / unit, 1 / unit]])


def test_ranges_of_an_ordinal_column_are_ranges_of_positions():
    original = table_of({"x": [10, 20, 40, 80]}, x=Kind.ORDINAL)
    series = intervals(pl.Series([20, 41]), pl.Series([80, 79]), name="x")
    made = features(original, Table(pl.DataFrame([series]), original.schema))
    # 20 to 80 are the positions 1 to 3; between 41 and 79 there is nothing but the way from 2 to 3
    np.testing.assert_allclose(made.released[:, 0], (np.array([2.0, 2.5]) - 1.5) / np.std([0, 1, 2, 3]))


@pytest.mark.parametrize("values", [[1e308, -1e308, 0.0], [5e-324, 0.0, 1e-320], [1e8, 1e8 + 1e-6, 1e8]])
def test_no_number_is_too_large_or_small(values):
    made = features(table_of({"x": values}), table_of({"x": [1e308, -1e308, 0.0]}))
    assert np.isfinite(made.original).all()
    assert np.abs(made.released).max() <= FARTHEST
    np.testing.assert_allclose(made.original.mean(), 0, atol=1e-7)


def test_a_constant_of_the_original_has_the_unit_of_the_release():
    made = features(table_of({"x": [7.0, 7.0]}), table_of({"x": [7.0, 9.0]}))
    assert made.original.tolist() == [[0], [0]]
    assert made.released.tolist() == [[0], [1]]


def test_a_column_with_nothing_in_it_is_a_hole():
    empty = pl.Series("x", [None, None], dtype=pl.Float64)
    made = features(table_of({"x": empty}), table_of({"x": [1.0, 2.0]}))
    assert made.original.tolist() == [[0, 1], [0, 1]]
    assert made.released[:, 1].tolist() == [0, 0]


# ------------------------------------------------------------------------------------- records and weights


def test_order_is_by_what_records_say_and_sources_follow():
    original = table_of({"x": [3.0, 1.0, 2.0], "y": ["c", "a", "b"]}, y=Kind.NOMINAL)
    protected = original.take(np.array([2, 0, 1, 0]))
    ordered = in_order(Evidence(original, protected, source_rows=np.array([2, 0, 1, -1])))
    assert ordered.original.frame["x"].to_list() == [1, 2, 3]
    assert ordered.protected.frame["x"].to_list() == [1, 2, 3, 3]
    assert ordered.source_rows[:2].tolist() == [0, 1]
    assert sorted(ordered.source_rows[2:].tolist()) == [-1, 2]


def test_samples_keep_pairs_together():
    original = table_of({"x": np.arange(100.0)})
    protected = table_of({"x": np.arange(90.0) + 1000})  # ten records were left out
    evidence = Evidence(original, protected, source_rows=np.arange(90))
    drawn = sample_of(evidence, 0.5, Run(seed=1).rng("sample"))
    assert len(drawn.original) == 50
    pairs = drawn.original.frame["x"].to_numpy()[drawn.source_rows] + 1000
    assert pairs.tolist() == drawn.protected.frame["x"].to_list()
    left_out = (drawn.original.frame["x"] >= 90).sum()
    assert len(drawn.protected) == 50 - left_out


def test_samples_of_what_does_not_map_are_equal_shares():
    original, protected = table_of({"x": np.arange(100.0)}), table_of({"x": np.arange(300.0)})
    drawn = sample_of(Evidence(original, protected), 0.1, Run(seed=1).rng("sample"))
    assert (len(drawn.original), len(drawn.protected)) == (10, 30)
    nobodys = sample_of(
        Evidence(original, protected, source_rows=np.full(300, -1)), 0.1, Run(seed=1).rng("sample")
    )
    assert (len(nobodys.original), len(nobodys.protected)) == (10, 30)


def test_weights_have_mean_one_and_come_with_the_records():
    schema = Schema((Column("x", Kind.CONTINUOUS), Column("w", Kind.CONTINUOUS, Role.WEIGHT)))
    original = Table(pl.DataFrame({"x": [1.0, 2.0], "w": [1.0, 3.0]}), schema)
    bare = table_of({"x": [1.0, 2.0, 2.0]})
    mapped = Evidence(original, bare, source_rows=np.array([0, 1, 1]))
    first, second = weights_of_both(mapped)
    assert first.tolist() == [0.5, 1.5]
    np.testing.assert_allclose(second, np.array([1, 3, 3]) * 3 / 7)
    assert weights_of_both(Evidence(original, bare))[0].tolist() == [1, 1]  # nobody knows the release's
