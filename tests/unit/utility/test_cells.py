"""Suppressed and changed cells, counted by hand in columns of every sort."""

import numpy as np
import polars as pl
import pytest

from pairs import score, table
from sfumato.core.measure import Status
from sfumato.data.generalised.intervals import intervals
from sfumato.data.generalised.nodes import Nodes
from sfumato.data.schema import Kind
from sfumato.utility.cells import CellsChanged, SuppressedCells

NODES = Nodes.of({"a": ["a"], "b": ["b"], "a or b": ["a", "b"]}, leaves=["a", "b"])


def labels(values):
    return table({"x": pl.Series(values, dtype=NODES.dtype)}, Kind.NOMINAL, nodes={"x": NODES})


def words(values):
    return table({"x": values}, Kind.NOMINAL)


def test_suppressed_by_hand():
    """Of 5 values in two columns 2 are held back; what was missing before does not count."""
    x = table({"a": [1.0, None, 3.0], "b": ["u", "v", "w"]}, {"a": Kind.CONTINUOUS, "b": Kind.NOMINAL})
    y = table({"a": [1.0, None, None], "b": ["u", None, "w"]}, {"a": Kind.CONTINUOUS, "b": Kind.NOMINAL})
    found = score(SuppressedCells(), x, y)
    assert found.value == pytest.approx(2 / 5)
    assert found.by_column == {"a": 0.5, "b": pytest.approx(1 / 3)}
    assert (found.details["suppressed_cells"], found.details["cells"]) == (2, 5)


def test_codes_and_wildcards_are_suppressed():
    x = words(["a", "b", "a", "b"])
    assert score(SuppressedCells(), x, labels(["a", "*", "a or b", None])).value == 0.5
    coded = table({"x": ["a", "SUPP", "-9", "b"]}, Kind.NOMINAL, x={"suppressed": "SUPP", "missing": ("-9",)})
    assert score(SuppressedCells(), x, coded).value == 0.5
    numbers = table({"x": [1, 2, 3, 4]})
    wild = table({"x": intervals([1, None, None, 4], [2, None, 9, 4])})
    assert score(SuppressedCells(), numbers, wild).value == 0.25


def test_all_values_of_a_record_that_was_left_out_are_suppressed():
    x = words(["a", "b", "a", "b"])
    found = score(SuppressedCells(), x, words(["b", None]), rows=[3, 0])
    assert found.value == 0.75
    assert found.details["records_left_out"] == 2


def test_where_records_do_not_map_shares_are_compared():
    """A tenth was missing; now it is three tenths of twice the records: two ninths of what was there."""
    x = table({"x": [None, *range(9)]})
    y = table({"x": [None] * 6 + [1.0] * 14})
    assert score(SuppressedCells(), x, y, rows=None).value == pytest.approx(2 / 9)
    fewer = table({"x": [1.0] * 20})
    assert score(SuppressedCells(), x, fewer, rows=None).value == 0
    nothing = table({"x": pl.Series([], dtype=pl.Float64)})
    assert score(SuppressedCells(), x, nothing, rows=None).value == 1


def test_changed_by_hand():
    x = words(["a", "b", None, None])
    found = score(CellsChanged(), x, words(["a", "c", None, "b"]))
    assert found.value == 0.5
    assert found.by_record.tolist() == [0.0, 1.0, 0.0, 1.0]


def test_the_type_of_a_number_is_no_change():
    assert score(CellsChanged(), table({"x": [1, 2]}), table({"x": [1.0, 2.0]})).value == 0
    assert score(CellsChanged(), table({"x": ["1", "2"]}), table({"x": [1, 3]})).value == 0.5
    assert score(CellsChanged(), words([1, 2]), words(["1", "2.0"])).value == 0.5


def test_a_range_or_set_of_one_value_is_no_change():
    x = table({"x": [1, 2, 3]})
    assert score(CellsChanged(), x, table({"x": intervals([1, 2, 3], [1, 4, 3])})).value == pytest.approx(
        1 / 3
    )
    assert score(CellsChanged(), words(["a", "b", "a"]), labels(["a", "a or b", "b"])).value == pytest.approx(
        2 / 3
    )


def test_a_wildcard_is_not_a_missing_value():
    assert score(CellsChanged(), words([None, "a"]), labels([None, "a"])).value == 0
    assert score(CellsChanged(), words([None, "a"]), labels(["*", "a"])).value == 0.5


def test_sets_are_compared_as_sets():
    x = table({"s": pl.Series([["u", "v"], [], None, ["w"]])}, Kind.SET)
    same = table({"s": pl.Series([["v", "u", "u"], [], None, ["w"]])}, Kind.SET)
    other = table({"s": pl.Series([["u"], None, [], ["w"]])}, Kind.SET)
    assert score(CellsChanged(), x, same).value == 0
    assert score(CellsChanged(), x, other).value == 0.75
    assert score(SuppressedCells(), x, other).value == pytest.approx(1 / 3)


def test_a_generalised_original_is_compared_as_it_is():
    x = table({"x": intervals([1, 2, None], [3, 2, None], missing=[False, False, True])})
    assert score(CellsChanged(), x, x).value == 0
    wider = table({"x": intervals([1.0, 2.0, None], [9.0, 2.0, None], missing=[False, False, True])})
    assert score(CellsChanged(), x, wider).value == pytest.approx(1 / 3)
    exact = table({"x": [1.0, 2.0, None]})
    assert score(CellsChanged(), x, exact).value == pytest.approx(2 / 3)  # ranges became numbers
    shuffled = table({"x": x.frame["x"].gather([2, 0])})
    assert score(CellsChanged(), x, shuffled, rows=[2, 0]).by_record.tolist() == [0.0, 1.0, 0.0]


def test_copies_and_records_left_out():
    x = words(["a", "b", "c"])
    found = score(CellsChanged(), x, words(["a", "z", "b"]), rows=[0, 0, 1])
    assert found.by_record.tolist() == [0.5, 0.0, 1.0]


def test_says_why_not():
    x = words(["a", "b"])
    assert "do not map" in score(CellsChanged(), x, x, rows=None).reason
    for cls in (SuppressedCells, CellsChanged):
        nothing = words(pl.Series([], dtype=pl.String))
        assert score(cls(), nothing, nothing).status is Status.NOT_ESTIMABLE
    gone = words(pl.Series([None, None], dtype=pl.String))
    assert score(SuppressedCells(), gone, gone).status is Status.NOT_ESTIMABLE


def test_infinite_and_equal_numbers_far_out():
    x = np.array([2.0**53 - 1, 1e300])
    assert score(CellsChanged(), table({"x": x}), table({"x": x})).value == 0
    assert score(CellsChanged(), table({"x": x}), table({"x": np.nextafter(x, 0)})).value == 1
