"""Laws of rounding, in exact decimal arithmetic."""

from decimal import Decimal

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.method import ColumnView
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import Table
from sfumato.kernels.rounding import RoundingCell, turns
from sfumato.methods.rounding import MultivariateRounding, Rounding

BASES = st.sampled_from(
    ["0.05", "0.1", "0.3", "0.25", "1", "2", "2.5", "3", "7", "10", "12.5", "100", "5000"]
)
CENTS = st.lists(st.integers(-(10**10), 10**10), min_size=1, max_size=40)
SMALL_CENTS = st.lists(st.integers(-3000, 3000), min_size=1, max_size=40)
MODES = st.sampled_from(["controlled", "random", "nearest"])


def rounded(values, *, base, mode, seed=0):
    view = ColumnView(Column("x", Kind.CONTINUOUS), np.array([float(value) for value in values]))
    result = Rounding(base=float(base), mode=mode).protect_column(view, np.random.default_rng(seed))
    return [Decimal(repr(value)) for value in result.tolist()]


def decimals(cents):
    return [Decimal(cent) / 100 for cent in cents]


@given(cents=st.one_of(CENTS, SMALL_CENTS), base=BASES, mode=MODES, seed=st.integers(0, 2**32))
def test_every_value_is_a_multiple_next_to_its_own(cents, base, mode, seed):
    step = Decimal(base)
    for before, after in zip(
        decimals(cents), rounded(decimals(cents), base=base, mode=mode, seed=seed), strict=True
    ):
        assert after % step == 0
        assert abs(after - before) < step
        assert before % step != 0 or after == before
        if mode == "nearest":
            assert abs(after - before) <= step / 2


@given(cents=st.one_of(CENTS, SMALL_CENTS), base=BASES, seed=st.integers(0, 2**32))
def test_controlled_keeps_the_total_and_that_up_to_any_threshold(cents, base, seed):
    step, before = Decimal(base), decimals(cents)
    after = rounded(before, base=base, mode="controlled", seed=seed)
    for threshold in {*before}:
        chosen = [position for position, value in enumerate(before) if value <= threshold]
        change = sum(after[i] for i in chosen) - sum(before[i] for i in chosen)
        assert abs(change) < step
    if sum(before) % step == 0:
        assert sum(after) == sum(before)


@given(cents=SMALL_CENTS, base=BASES, seed=st.integers(0, 2**32))
def test_a_total_that_is_a_multiple_is_kept(cents, base, seed):
    """The same with a last value that makes the total one."""
    step, before = Decimal(base), decimals(cents)
    before.append(-(sum(before) % step))
    assert sum(rounded(before, base=base, mode="controlled", seed=seed)) == sum(before)


@given(
    values=st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=20),
    base=st.floats(1e-9, 1e15),
    mode=MODES,
    coarseness=st.floats(1e-3, 1e4),
)
def test_any_floats_give_finite_neighbours(values, base, mode, coarseness):
    view = ColumnView(Column("x", Kind.CONTINUOUS), np.array(values))
    method = Rounding(base=base, coarseness=coarseness, mode=mode)
    result = method.protect_column(view, np.random.default_rng(1))
    step = method.base_of(view)
    slack = 1e-15 * np.abs(view.values)
    assert np.isfinite(result).all()
    assert (np.abs(result - view.values) <= step * (1 + 1e-12) + slack).all()


@given(values=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30), base=st.floats(0.01, 1e4))
def test_nearest_keeps_order_and_is_idempotent(values, base):
    view = ColumnView(Column("x", Kind.CONTINUOUS), np.sort(np.array(values)))
    method = Rounding(base=base, mode="nearest")
    once = method.protect_column(view, np.random.default_rng(1))
    assert (np.diff(once) >= 0).all()
    twice = method.protect_column(ColumnView(view.column, once), np.random.default_rng(1))
    np.testing.assert_array_equal(once, twice)


@given(
    share=st.lists(st.one_of(st.just(0.0), st.floats(0, 1, exclude_max=True)), max_size=60),
    seed=st.integers(0, 2**32),
)
def test_turns_of_any_run_of_neighbours_are_the_sum_of_their_shares(share, seed):
    up = turns(np.array(share, dtype=np.float64), np.random.default_rng(seed))
    counted = np.concatenate([[0], np.cumsum(up)])
    summed = np.concatenate([[0.0], np.cumsum(share)])
    assert (np.abs((counted[:, None] - counted) - (summed[:, None] - summed)) < 1 + 1e-9).all()
    assert not up[np.array(share, dtype=np.float64) == 0].any()


@given(values=st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=20), base=BASES)
def test_what_is_between_adds_up(values, base):
    between = RoundingCell.of(np.array(values), float(base))
    assert ((between.share >= 0) & (between.share < 1)).all()
    assert (between.lower == np.rint(between.lower)).all()
    back = (between.lower + between.share) * float(base)
    np.testing.assert_allclose(back, values, rtol=4e-15, atol=1e-15 * float(base))


@given(
    seed=st.integers(0, 2**32),
    n=st.integers(3, 40),
    d=st.integers(1, 4),
    width=st.floats(1e-3, 20),
    holes=st.sampled_from([0.0, 0.3]),
    offset=st.sampled_from(["random", "mean"]),
)
def test_multivariate_keeps_holes_and_ties_in_any_order_of_columns(*, seed, n, d, width, holes, offset):
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((n, d)) @ rng.standard_normal((d, d)) + 10
    values[1] = values[0]
    values[rng.random(values.shape) < holes] = np.nan
    method = MultivariateRounding(width=width, offset=offset)
    results = []
    for order in (range(d), reversed(range(d))):
        frame = pl.DataFrame({f"c{i}": values[:, i] for i in order})
        table = Table(frame, Schema(tuple(Column(name, Kind.CONTINUOUS) for name in frame.columns)))
        protected = method.apply(table, Run(seed=3)).table.frame
        results.append(protected.select(sorted(protected.columns)).to_numpy())
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(np.isnan(results[0]), np.isnan(values))
    if np.array_equal(values[0], values[1]):
        np.testing.assert_array_equal(results[0][0], results[0][1])
