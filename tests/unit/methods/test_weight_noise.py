"""Noise on weights: bounded, unbiased, and of the same total, in strata too."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.methods.weight_noise import WeightNoise
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step


def noisy(weights, spread=0.1, seed=1, within=(), role=Role.OTHER, **columns):
    frame = pl.DataFrame({"w": pl.Series(weights, dtype=pl.Float64), **columns})
    others = [Column(name, Kind.NOMINAL, Role.KEY) for name in columns]
    table = Table(frame, Schema((Column("w", Kind.CONTINUOUS, role), *others)))
    made = Recipe((Step(WeightNoise(spread=spread), ("w",), within=within),)).apply(table, Run(seed=seed))
    return made.table.frame["w"]


@examples(300)
@given(
    st.lists(st.none() | st.floats(0.01, 1e6), min_size=1, max_size=30),
    st.floats(0.01, 0.99),
    st.integers(0, 2**32),
)
def test_the_total_stays_and_no_weight_moves_farther_than_its_share(weights, spread, seed):
    found = noisy(weights, spread, seed)
    assert [value is None for value in found] == [value is None for value in weights]
    there = np.array([value for value in weights if value is not None])
    changed = found.drop_nulls().to_numpy()
    assert changed.sum() == pytest.approx(there.sum(), rel=1e-9)
    assert (np.abs(changed - there) <= spread * there * (1 + 1e-9)).all()
    assert (changed > 0).all()


def test_totals_of_strata_stay():
    weights, regions = [100.0, 100, 300, 20, 25, 30], ["n", "n", "n", "s", "s", "s"]
    found = noisy(weights, 0.3, within=("region",), role=Role.WEIGHT, region=regions)
    assert found[:3].sum() == pytest.approx(500)
    assert found[3:].sum() == pytest.approx(75)
    assert found[0] != found[1]  # members of a household are no longer told by the same weight


def test_zeros_and_a_single_weight_stay():
    assert noisy([0.0, 0.0]).to_list() == [0.0, 0.0]
    assert noisy([7.0, None]).to_list() == [7.0, None]


def test_each_weight_is_kept_in_expectation():
    weights = np.array([1.0, 5.0, 20.0, 20.0])
    mean = np.mean([noisy(weights, 0.5, seed).to_numpy() for seed in range(150)], axis=0)
    assert mean == pytest.approx(weights, rel=0.12)
