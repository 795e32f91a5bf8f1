"""Laws of rank swapping by distance and by buckets, for any column and any setting."""

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import Table
from sfumato.kernels.ranks import bucket_partners, distant_partners
from sfumato.methods.swapping import RankSwappingBuckets, RankSwappingDistribution

sizes = st.integers(0, 120)
seeds = st.integers(0, 2**32 - 1)


def assert_pairs(partners, n):
    np.testing.assert_array_equal(partners[partners], np.arange(n))
    assert (partners == np.arange(n)).sum() <= 1


@given(n=sizes, distance=st.floats(0, 1e12), seed=seeds)
def test_distances_pair_all_ranks(n, distance, seed):
    assert_pairs(distant_partners(n, distance, np.random.default_rng(seed)), n)


@given(n=sizes, n_buckets=st.integers(1, 200), seed=seeds)
def test_buckets_pair_all_ranks(n, n_buckets, seed):
    assert_pairs(bucket_partners(n, n_buckets, np.random.default_rng(seed)), n)


@given(
    values=st.lists(st.one_of(st.none(), st.floats(-1e9, 1e9, allow_nan=False)), min_size=1, max_size=80),
    setting=st.floats(0, 100, exclude_min=True),
    seed=seeds,
    buckets=st.booleans(),
)
def test_multiset_and_holes_stay(values, setting, seed, buckets):
    method = RankSwappingBuckets(width=setting) if buckets else RankSwappingDistribution(distance=setting)
    series = pl.Series("x", values, dtype=pl.Float64)
    table = Table(series.to_frame(), Schema((Column("x", Kind.CONTINUOUS),)))
    result = method.apply(table, Run(seed=seed)).table.frame["x"]
    assert result.is_null().to_list() == series.is_null().to_list()
    assert sorted(result.drop_nulls()) == sorted(series.drop_nulls())
