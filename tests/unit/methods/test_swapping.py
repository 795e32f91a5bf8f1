"""Rank swapping through the table shell: what it keeps, and how far a value may move."""

from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import Table
from sfumato.methods.swapping import RankSwapping


def swapped(series, kind=Kind.CONTINUOUS, window=10.0, **facts):
    table = Table(pl.DataFrame({"x": series}), Schema((Column("x", kind, **facts),)))
    return RankSwapping(window=window).apply(table, Run(seed=3)).table.frame["x"]


@given(
    values=st.lists(st.one_of(st.none(), st.floats(-1e9, 1e9, allow_nan=False)), min_size=1, max_size=80),
    window=st.floats(0.5, 100),
)
def test_keeps_the_multiset_the_holes_and_the_window(values, window):
    series = pl.Series(values, dtype=pl.Float64)
    result = swapped(series, window=window)
    assert result.is_null().to_list() == series.is_null().to_list()
    before, after = series.drop_nulls().to_numpy(), result.drop_nulls().to_numpy()
    np.testing.assert_array_equal(np.sort(before), np.sort(after))
    reach = max(1, int(len(before) * window / 100))
    ordered = np.sort(before)
    # The nearest rank the new value can have is within reach of the rank the old one can have.
    low, high = np.searchsorted(ordered, before, "left"), np.searchsorted(ordered, before, "right") - 1
    new_low, new_high = np.searchsorted(ordered, after, "left"), np.searchsorted(ordered, after, "right") - 1
    assert (new_low - high <= reach).all()
    assert (low - new_high <= reach).all()


def test_whole_numbers_words_and_dates_keep_their_type():
    rng = np.random.default_rng(0)
    numbers = pl.Series(rng.integers(0, 1000, 200), dtype=pl.Int32)
    assert swapped(numbers).dtype == pl.Int32
    words = pl.Series(rng.choice(["low", "mid", "high"], 200))
    turned = swapped(words, Kind.ORDINAL, order=("low", "mid", "high"), window=50)
    assert turned.dtype == pl.String
    assert sorted(turned) == sorted(words)
    assert turned.to_list() != words.to_list()
    days = pl.Series([date(2020, 1, 1) + timedelta(days=int(d)) for d in rng.integers(0, 500, 200)])
    assert swapped(days, Kind.DATE).dtype == pl.Date
    assert sorted(swapped(days, Kind.DATE)) == sorted(days)


def test_ordinal_words_follow_the_declared_order():
    """With the order low < mid < high a window of one rank never carries low to high."""
    words = pl.Series(["low"] * 10 + ["mid"] * 10 + ["high"] * 10)
    turned = swapped(words, Kind.ORDINAL, order=("low", "mid", "high"), window=1.0)
    pairs = set(zip(words, turned, strict=True))
    assert ("low", "high") not in pairs
    assert ("high", "low") not in pairs


def test_a_declared_missing_code_is_no_value():
    """−9 stays where it is: were it a value, it would be the lowest and move."""
    series = pl.Series([-9, 5, -9, 3, 8, 1, -9, 7])
    turned = swapped(series, missing=(-9,), window=100)
    assert [i for i, v in enumerate(turned) if v == -9] == [0, 2, 6]
    assert sorted(turned) == sorted(series)


@pytest.mark.parametrize("window", [0.1, 5, 100])
def test_a_wider_window_moves_more(window):
    """The mean move grows with the window, and is near a third of it in the middle (uniform partner)."""
    values = pl.Series(np.arange(2000.0))
    moves = np.abs(swapped(values, window=window).to_numpy() - values.to_numpy())
    reach = max(1, int(2000 * window / 100))
    assert moves.max() <= reach
    if window == 5:
        assert 0.3 * reach < moves.mean() < 0.7 * reach
