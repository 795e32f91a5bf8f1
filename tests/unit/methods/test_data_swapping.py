"""Data swapping: the tables it keeps, on cases worked out and against counting."""

from collections import Counter
from itertools import combinations

import numpy as np
import polars as pl
import pytest

from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import Table
from sfumato.errors import RefusedError
from sfumato.kernels.moves import combine_codes, margin_keeping_exchanges
from sfumato.methods.data_swapping import DataSwapping
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step


def table_of(frame, kind=Kind.NOMINAL, **facts):
    return Table(frame, Schema(tuple(Column(name, kind, **facts) for name in frame.columns)))


def counts(frame, names):
    return Counter(frame.select(names).rows())


def dependent(n, seed=7):
    """Four columns that hang together, and one that is left alone."""
    rng = np.random.default_rng(seed)
    base = rng.integers(0, 3, n)
    return pl.DataFrame(
        {
            "a": base,
            "b": (base + rng.integers(0, 2, n)) % 3,
            "c": (base * rng.integers(0, 2, n)),
            "d": rng.integers(0, 2, n),
            "id": np.arange(n),
        }
    )


# -------------------------------------------------------------------------------------------------- kernel


def test_joined_tells_combinations_apart():
    first, second = np.array([0, 0, 1, 1, 0]), np.array([0, 1, 0, 1, 1])
    codes = combine_codes([first, second], 5)
    assert len(set(codes.tolist())) == 4
    assert codes[1] == codes[4]
    assert combine_codes([], 3).tolist() == [0, 0, 0]


def test_joined_does_not_overflow():
    """With two columns of 2^32 codes behind it, the first would be multiplied by 2^64, that is by nothing."""
    widest = np.array([7, 7, 2**32 - 1])
    codes = combine_codes([np.array([0, 1, 0]), widest, widest], 3)
    assert len(set(codes.tolist())) == 3


def test_the_only_move_of_order_two_is_found():
    # every two of a, b, c take all four combinations once: even parity, to be turned into odd
    a, b, c = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), np.array([0, 1, 1, 0])
    rng = np.random.default_rng(1)
    pairs = margin_keeping_exchanges(c, [a, b], np.arange(4), wanted=4, rng=rng)
    assert sorted(map(sorted, pairs.tolist())) == [[0, 2], [1, 3]]  # each pair is alike in b
    pairs = margin_keeping_exchanges(c, [b, a], np.arange(4), wanted=4, rng=rng)
    assert sorted(map(sorted, pairs.tolist())) == [[0, 1], [2, 3]]


def test_the_only_move_of_order_three_is_found():
    cells = np.array([[i, j, k] for i in (0, 1) for j in (0, 1) for k in (0, 1)])
    parity = cells.sum(axis=1) % 2
    pairs = margin_keeping_exchanges(
        parity, list(cells.T.copy()), np.arange(8), wanted=1, rng=np.random.default_rng(1)
    )
    assert sorted(pairs.ravel().tolist()) == list(range(8))


def test_half_a_move_is_none():
    a, b, c = np.array([0, 0, 1]), np.array([0, 1, 0]), np.array([0, 1, 1])
    pairs = margin_keeping_exchanges(c, [a, b], np.arange(3), wanted=3, rng=np.random.default_rng(1))
    assert pairs.shape == (0, 2)


def test_records_left_out_stay_out():
    values, nothing = np.array([0, 1, 0, 1]), np.zeros(4, dtype=np.int64)
    pairs = margin_keeping_exchanges(
        values, [nothing], np.array([1, 2]), wanted=4, rng=np.random.default_rng(1)
    )
    assert sorted(pairs.ravel().tolist()) == [1, 2]


# -------------------------------------------------------------------------------------------------- method


@pytest.mark.parametrize("order", [1, 2, 3, 4, 9])
def test_all_tables_up_to_the_order_stay(order):
    frame = dependent(600)
    columns = ("a", "b", "c", "d")
    recipe = Recipe((Step(DataSwapping(order=order, share=30), columns),))
    after = recipe.apply(table_of(frame), Run(seed=2)).table.frame
    assert after["id"].equals(frame["id"])
    for size in range(1, min(order, 4) + 1):
        for names in combinations(columns, size):
            assert counts(after, names) == counts(frame, names), names
    for name in columns:  # and yet the records have changed, as many as asked for
        assert 180 <= (after[name] != frame[name]).sum() < 180 + 2**order
    if order < 3:  # higher tables do change: what is left is not only exchanges among twins
        assert counts(after, columns) != counts(frame, columns)


def test_order_one_exchanges_all_that_can_be():
    """Two values of fifty records each: every record gets the other value."""
    frame = pl.DataFrame({"x": [0] * 50 + [1] * 50})
    after = DataSwapping(order=1, share=100, sweeps=100).apply(table_of(frame), Run(seed=1)).table.frame
    assert after["x"].to_list() == [1] * 50 + [0] * 50


def test_more_sweeps_exchange_more():
    frame = dependent(400).select("a", "b", "c", "d")
    few, many = (
        DataSwapping(share=100, sweeps=sweeps).apply(table_of(frame), Run(seed=1)).table.frame
        for sweeps in (1, 30)
    )
    assert all((many[name] != frame[name]).sum() > (few[name] != frame[name]).sum() for name in frame.columns)


def test_no_move_leaves_the_table_and_says_so():
    """Each record is alone with each of its values: no table of two columns leaves room."""
    frame = pl.DataFrame({"a": range(30), "b": range(30), "c": range(30)})
    released = DataSwapping(order=2, share=50).apply(table_of(frame), Run(seed=1))
    assert released.table.frame.equals(frame)
    assert released.notes == tuple(
        f"`{name}`: 15 records fewer than requested were exchanged" for name in "abc"
    )


def test_missing_values_stay_and_count_as_a_category():
    rng = np.random.default_rng(3)
    frame = pl.DataFrame(
        {name: [None if code == 3 else "xyz"[code] for code in rng.integers(0, 4, 500)] for name in "abc"}
    )
    after = DataSwapping(order=2, share=40).apply(table_of(frame), Run(seed=1)).table.frame
    for name in frame.columns:
        assert after[name].is_null().equals(frame[name].is_null())
        assert (after[name] != frame[name]).sum() >= 0.4 * frame[name].count()
    for names in combinations(frame.columns, 2):
        assert counts(after, names) == counts(frame, names)


def test_declared_missing_codes_stay():
    frame = pl.DataFrame({"x": [-9, 1, 2, -9, 1, 2, 1, 2]})
    after = DataSwapping(order=1, share=100).apply(table_of(frame, missing=(-9,)), Run(seed=1)).table.frame
    assert after["x"].to_list() == [-9, 2, 1, -9, 2, 1, 2, 1]


def test_types_stay():
    rng = np.random.default_rng(5)
    levels = pl.Enum(["low", "high"])
    frame = pl.DataFrame(
        {
            "e": pl.Series(np.array(["low", "high"])[rng.integers(0, 2, 80)], dtype=levels),
            "c": pl.Series(np.array(["u", "v"])[rng.integers(0, 2, 80)], dtype=pl.Categorical),
            "i": pl.Series(rng.integers(0, 2, 80), dtype=pl.Int8),
        }
    )
    after = DataSwapping(share=50).apply(table_of(frame, Kind.ORDINAL), Run(seed=1)).table.frame
    assert after.schema == frame.schema
    assert not after.equals(frame)


def test_strata_keep_their_own_tables():
    frame = dependent(500).with_columns(pl.Series("s", np.arange(500) % 2))
    step = Step(DataSwapping(order=2, share=30), ("a", "b", "c"), within=("s",))
    after = Recipe((step,)).apply(table_of(frame), Run(seed=1)).table.frame
    assert not after.equals(frame)
    for names in combinations("abc", 2):
        assert counts(after, ("s", *names)) == counts(frame, ("s", *names))


def test_numbers_are_refused():
    frame = pl.DataFrame({"x": [1.0, 2.0]})
    with pytest.raises(RefusedError, match="nominal or ordinal"):
        DataSwapping().apply(table_of(frame, Kind.CONTINUOUS), Run(seed=1))
