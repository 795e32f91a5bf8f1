"""MDAV through the table shell; its groups are checked against brute force with the kernels."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sfumato.compare.recipe import Recipe, Step
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import ParameterError
from sfumato.methods.microaggregation import Mdav, standardised


def table_of(values):
    names = [f"c{i}" for i in range(values.shape[1])]
    frame = pl.DataFrame({name: values[:, i] for i, name in enumerate(names)})
    return Table(frame, Schema(tuple(Column(name, Kind.CONTINUOUS) for name in names)))


@given(
    values=arrays(
        np.float64, st.tuples(st.integers(1, 40), st.integers(1, 3)), elements=st.floats(-1e6, 1e6)
    ),
    k=st.integers(1, 8),
)
def test_groups_have_k_to_2k_minus_1_and_means_are_kept(values, k):
    if k > len(values):
        with pytest.raises(ParameterError, match="at most the number of records"):
            Mdav(k=k).apply(table_of(values), Run(seed=1))
        return
    release = Mdav(k=k).apply(table_of(values), Run(seed=1))
    sizes = np.bincount(release.classes)
    assert sizes.min() >= k
    assert sizes.max() <= max(2 * k - 1, k)
    after = release.table.frame.to_numpy()
    for group in range(len(sizes)):
        members = release.classes == group
        expected = np.broadcast_to(values[members].mean(axis=0), after[members].shape)
        np.testing.assert_allclose(after[members], expected, atol=1e-6, rtol=1e-9)
    np.testing.assert_allclose(after.mean(axis=0), values.mean(axis=0), atol=1e-6, rtol=1e-9)


def test_missing_values_stay_missing_and_classes_are_not_vouched_for():
    values = np.array([[1.0, 5.0], [2.0, np.nan], [10.0, 6.0], [11.0, 7.0]])
    release = Mdav(k=2).apply(table_of(values), Run(seed=1))
    after = release.table.frame.to_numpy()
    # Groups {0, 1} and {2, 3}: the mean of column 1 in the first is over the one value it has.
    np.testing.assert_allclose(after, [[1.5, 5.0], [1.5, np.nan], [10.5, 6.5], [10.5, 6.5]])
    assert release.classes is None


def test_scales_decide_who_is_near():
    """By deviation both columns count alike; raw, the wide one decides alone."""
    values = np.array([[0.0, 0.0], [1.0, 1000.0], [0.0, 1000.0], [1.0, 0.0], [0.0, 10.0], [1.0, 990.0]])
    raw = Mdav(k=3, scale="none").apply(table_of(values), Run(seed=1)).classes
    assert {frozenset(np.flatnonzero(raw == g)) for g in range(2)} == {
        frozenset({0, 3, 4}),
        frozenset({1, 2, 5}),
    }
    scaled = standardised(values, "range")
    np.testing.assert_allclose(scaled.max(axis=0) - scaled.min(axis=0), 1.0)


def test_a_constant_column_does_not_divide_by_zero():
    values = np.column_stack([np.full(6, 3.0), np.arange(6.0)])
    after = Mdav(k=3).apply(table_of(values), Run(seed=1)).table.frame.to_numpy()
    np.testing.assert_array_equal(after[:, 0], 3.0)


def test_within_strata_no_group_crosses():
    rng = np.random.default_rng(2)
    frame = pl.DataFrame({"x": rng.normal(size=60), "region": ["n", "s", "e"] * 20})
    schema = Schema((Column("x", Kind.CONTINUOUS, Role.KEY), Column("region", Kind.NOMINAL, Role.OTHER)))
    release = Recipe((Step(Mdav(k=4), ("x",), within=("region",)),)).apply(Table(frame, schema), Run(seed=1))
    grouped = release.table.frame.with_columns(group=pl.Series(release.classes))
    assert grouped.group_by("group").agg(pl.col("region").n_unique(), pl.len()).select(
        (pl.col("region") == 1).all(), (pl.col("len") >= 4).all()
    ).row(0) == (True, True)
    assert release.table.frame["region"].to_list() == frame["region"].to_list()


def test_too_small_a_stratum_is_said_without_naming_it():
    frame = pl.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "region": ["Zanzibarquux", "s", "s", "s"]})
    schema = Schema((Column("x", Kind.CONTINUOUS, Role.KEY), Column("region", Kind.NOMINAL, Role.OTHER)))
    with pytest.raises(ParameterError) as caught:
        Recipe((Step(Mdav(k=2), ("x",), within=("region",)),)).apply(Table(frame, schema), Run(seed=1))
    assert "got: `2`" in str(caught.value)
    assert "Zanzibarquux" not in str(caught.value)
