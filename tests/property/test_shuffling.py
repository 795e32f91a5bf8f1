"""Laws of shuffling and resampling: what is kept, how far values move, what does not matter."""

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.params import Columns
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import Table
from sfumato.kernels.shuffles import shuffle_in_windows, window_bounds
from sfumato.methods.resampling import Resampling
from sfumato.methods.shuffling import DataShuffling, RankShuffling

few_values = st.integers(-3, 3).map(float)
columns_with_holes = st.lists(
    st.one_of(st.none(), few_values, st.floats(-1e9, 1e9, allow_nan=False)), min_size=1, max_size=60
)


def applied(method, targets=(), **columns):
    frame = pl.DataFrame({name: pl.Series(values, dtype=pl.Float64) for name, values in columns.items()})
    schema = Schema(tuple(Column(name, Kind.CONTINUOUS) for name in frame.columns))
    table = Table(frame, schema, targets=tuple(targets))
    return frame, method.apply(table, Run(seed=5)).table.frame


def assert_same_values_and_holes(before, after):
    assert after.is_null().equals(before.is_null())
    np.testing.assert_array_equal(
        np.sort(after.drop_nulls().to_numpy()), np.sort(before.drop_nulls().to_numpy())
    )


@given(n=st.integers(0, 400), width=st.integers(1, 450), data=st.data())
def test_windows_cover_all_ranks_and_are_never_wider(n, width, data):
    slide = data.draw(st.integers(1, width))
    starts, ends = window_bounds(n, width, slide)
    assert starts[0] == 0
    assert ends[-1] == n
    assert (ends - starts <= width).all()
    assert (starts[1:] <= ends[:-1]).all()  # no rank between two windows
    assert (np.diff(starts) <= slide).all() or n < width
    if width >= 3 and n >= 2:
        assert (ends - starts >= 2).all()
    if slide == width:
        np.testing.assert_array_equal(starts[1:], ends[:-1])
        assert np.ptp(ends - starts) <= 1


@given(n=st.integers(0, 300), width=st.integers(1, 320), data=st.data())
def test_shuffled_ranks_are_a_permutation_within_bounds(n, width, data):
    slide = data.draw(st.integers(1, width))
    sources = shuffle_in_windows(n, width, slide, np.random.default_rng(data.draw(st.integers(0, 2**32))))
    ranks = np.arange(n)
    np.testing.assert_array_equal(np.sort(sources), ranks)
    assert (sources - ranks <= width - 1).all()  # no value moves down by a window
    if slide == width:
        assert (ranks - sources <= width - 1).all()


@given(values=columns_with_holes, window=st.floats(0.5, 100), slide=st.floats(5, 100))
def test_rank_shuffling_keeps_values_holes_and_the_bound(values, window, slide):
    frame, after = applied(RankShuffling(window=window, slide=slide), x=values)
    assert_same_values_and_holes(frame["x"], after["x"])
    before, turned = frame["x"].drop_nulls().to_numpy(), after["x"].drop_nulls().to_numpy()
    width = max(3, int(len(before) * window / 100))
    ordered = np.sort(before)
    lowest_old, highest_old = (np.searchsorted(ordered, before, side) for side in ("left", "right"))
    lowest_new = np.searchsorted(ordered, turned, "left")
    assert (lowest_new - (highest_old - 1) <= width - 1).all()
    if slide == 100:
        highest_new = np.searchsorted(ordered, turned, "right") - 1
        assert (lowest_old - highest_new <= width - 1).all()


@given(
    rows=st.lists(
        st.tuples(*[st.one_of(st.none(), few_values, st.floats(-1e6, 1e6, allow_nan=False))] * 3), max_size=40
    ),
    independence=st.floats(0, 1, exclude_min=True),
    told=st.booleans(),
)
def test_data_shuffling_keeps_values_and_holes(rows, independence, told):
    a, b, s = ([row[place] for row in rows] for place in range(3))
    method = DataShuffling(
        independence=independence, given=Columns(["s"] if told and len(rows) >= 10 else [])
    )
    frame, after = applied(method, targets="ab", a=a, b=b, s=s)
    assert after["s"].equals(frame["s"])
    for name in "ab":
        assert_same_values_and_holes(frame[name], after[name])


@given(
    seed=st.integers(0, 2**32),
    independence=st.sampled_from([0.2, 1.0]),
    ties=st.booleans(),
    n=st.integers(10, 80),
)
def test_data_shuffling_sees_only_ranks(seed, independence, ties, n):
    """Rising transformations of any column, protected or given, change nothing but the values themselves."""
    rng = np.random.default_rng(seed)
    a, b, s = rng.standard_normal((3, n)) + rng.standard_normal(n)
    if ties:
        a, s = np.round(a), np.round(s)
    method = DataShuffling(independence=independence, given=Columns(["s"]))
    _, plain = applied(method, targets="ab", a=a, b=b, s=s)
    _, bent = applied(method, targets="ab", a=np.exp(a), b=b, s=s**3 + 2 * s)
    np.testing.assert_array_equal(bent["a"].to_numpy(), np.exp(plain["a"].to_numpy()))
    assert bent["b"].equals(plain["b"])


@given(values=columns_with_holes, samples=st.integers(1, 12))
def test_resampling_keeps_order_range_and_holes(values, samples):
    frame, after = applied(Resampling(samples=samples), x=values)
    assert after["x"].is_null().equals(frame["x"].is_null())
    before, got = frame["x"].drop_nulls().to_numpy(), after["x"].drop_nulls().to_numpy()
    if not len(before):
        return
    assert got.min() >= before.min()
    assert got.max() <= before.max()
    order = np.lexsort((got, before))
    assert (np.diff(got[order]) >= 0).all()
    if samples == 1:
        assert np.isin(got, before).all()


@given(values=st.lists(few_values, min_size=1, max_size=60), samples=st.integers(1, 12))
def test_resampling_follows_a_change_of_unit(values, samples):
    """Doubling is exact in floating point, so the doubled column gives exactly the doubled result."""
    _, plain = applied(Resampling(samples=samples), x=values)
    _, doubled = applied(Resampling(samples=samples), x=[2 * value for value in values])
    np.testing.assert_array_equal(doubled["x"].to_numpy(), 2 * plain["x"].to_numpy())
