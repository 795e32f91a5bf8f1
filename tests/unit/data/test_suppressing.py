"""Cells that say nothing any more: missing, or covered by the wildcard."""

from __future__ import annotations

from datetime import date

import numpy as np
import polars as pl
import pytest

from brute import covers
from sfumato.data.generalised.intervals import is_interval
from sfumato.data.generalised.nodes import Nodes
from sfumato.data.generalised.suppressing import to_missing, to_wildcard
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import Table

ROWS = np.array([False, True, False, True])


def table_of(values: list[object], kind: Kind, dtype: pl.DataType | None = None, **facts: object) -> Table:
    frame = pl.DataFrame({"a": pl.Series(values, dtype=dtype)})
    return Table(frame, Schema((Column("a", kind, **facts),)))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2, 3, 4], Kind.CONTINUOUS),
        ([1.5, 2.5, 3.5, 4.5], Kind.CONTINUOUS),
        (["a", "b", "c", "d"], Kind.NOMINAL),
        ([True, False, True, False], Kind.NOMINAL),
        ([date(2020, 1, day) for day in range(1, 5)], Kind.DATE),
    ],
)
def test_emptied_cells_are_missing_and_the_others_stay(values: list[object], kind: Kind) -> None:
    table = table_of(values, kind)
    after = to_missing(table, "a", ROWS)
    assert after.frame["a"].dtype == table.frame["a"].dtype
    assert after.frame["a"].to_list() == [values[0], None, values[2], None]
    assert table.frame["a"].to_list() == values


def test_a_declared_code_for_suppressed_values_is_written() -> None:
    table = table_of([1, 2, 3, 4], Kind.CONTINUOUS, suppressed=-9)
    after = to_missing(table, "a", ROWS)
    assert after.frame["a"].to_list() == [1, -9, 3, -9]
    assert after.missing("a").tolist() == ROWS.tolist()


def test_a_code_that_the_column_cannot_hold_is_left_out() -> None:
    table = table_of([1, 2, 3, 4], Kind.CONTINUOUS, suppressed="suppressed")
    assert to_missing(table, "a", ROWS).frame["a"].to_list() == [1, None, 3, None]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2, 3, 4], Kind.CONTINUOUS),
        ([1.5, 2.5, None, 4.5], Kind.CONTINUOUS),
        ([date(2020, 1, day) for day in range(1, 5)], Kind.DATE),
    ],
)
def test_starred_numbers_are_intervals_without_ends(values: list[object], kind: Kind) -> None:
    table = table_of(values, kind)
    after = to_wildcard(table, "a", ROWS)
    assert is_interval(after.frame["a"].dtype)
    far = table_of([10**6 if kind is Kind.CONTINUOUS else date(1900, 1, 1)] * 4, kind).frame["a"]
    assert covers(after.frame["a"], far).tolist() == ROWS.tolist()
    assert covers(after.frame["a"], table.frame["a"]).all()


@pytest.mark.parametrize(
    ("values", "kind", "texts"),
    [
        (["a", "b", None, "d"], Kind.NOMINAL, ["a", "*", None, "*"]),
        ([3, 1, 2, 1], Kind.ORDINAL, ["3", "*", "2", "*"]),
        ([True, False, True, False], Kind.NOMINAL, ["true", "*", "true", "*"]),
    ],
)
def test_starred_categories_are_labels(values: list[object], kind: Kind, texts: list[str | None]) -> None:
    after = to_wildcard(table_of(values, kind), "a", ROWS)
    assert after.frame["a"].cast(pl.String).to_list() == texts
    assert covers(after.frame["a"], pl.Series(values), nodes=after.nodes["a"]).all()


def test_a_missing_code_is_missing_after_starring() -> None:
    after = to_wildcard(table_of(["a", "b", "?", "d"], Kind.NOMINAL, missing=("?",)), "a", ROWS)
    assert after.frame["a"].cast(pl.String).to_list() == ["a", "*", None, "*"]
    numbers = to_wildcard(table_of([1, 2, -9, 4], Kind.CONTINUOUS, missing=(-9,)), "a", ROWS)
    assert numbers.missing("a").tolist() == [False, False, True, False]


def test_what_is_generalised_already_is_starred_in_place() -> None:
    nodes = Nodes.of({"north": ["a", "b"], "south": ["c", "d"]}, leaves=["a", "b", "c", "d"])
    labels = pl.Series("a", ["north", "north", "south", "south"]).cast(nodes.dtype)
    table = Table(pl.DataFrame([labels]), Schema((Column("a", Kind.NOMINAL),)), nodes={"a": nodes})
    after = to_wildcard(table, "a", ROWS)
    assert after.frame["a"].cast(pl.String).to_list() == ["north", "*", "south", "*"]
    assert after.nodes["a"] == nodes
    again = to_wildcard(to_wildcard(table_of([1, 2, 3, 4], Kind.CONTINUOUS), "a", ROWS), "a", ~ROWS)
    assert again.frame["a"].n_unique() == 1


def test_nothing_to_suppress_changes_nothing() -> None:
    table = table_of([1, 2, 3, 4], Kind.CONTINUOUS)
    for suppress in (to_missing, to_wildcard):
        assert suppress(table, "a", np.zeros(4, dtype=np.bool_)) is table
