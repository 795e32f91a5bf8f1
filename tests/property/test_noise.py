"""Laws of the noise family on any table: offsets, sizes, ties, constants, collinear columns, gaps."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import Table
from sfumato.methods.multiplicative_noise import HohneNoise, LognormalNoise, UniformNoise
from sfumato.methods.noise import CorrelatedNoise, KimNoise, UncorrelatedNoise
from sfumato.methods.outlier_noise import OutlierNoise
from sfumato.methods.rotation import RotationNoise
from sfumato.methods.sullivan import SullivanNoise

SEEDS = st.integers(0, 2**32)


def protected(method, values, seed):
    names = [f"c{i}" for i in range(values.shape[1])]
    frame = pl.DataFrame({name: values[:, i] for i, name in enumerate(names)})
    table = Table(frame, Schema(tuple(Column(name, Kind.CONTINUOUS) for name in names)))
    return method.apply(table, Run(seed=seed)).table.frame.to_numpy()


@st.composite
def tables(draw, *, least=3, gaps=False):
    """Numbers with ties, of columns that differ in place and size; some constant, some sums of others."""
    n, d = draw(st.integers(least, 40)), draw(st.integers(1, 5))
    values = draw(arrays(np.float64, (n, d), elements=st.integers(-20, 20).map(float)))
    sizes = draw(arrays(np.float64, d, elements=st.sampled_from([1e-6, 1.0, 1e6])))
    places = draw(arrays(np.float64, d, elements=st.sampled_from([0.0, 1.0, -50.0])))
    values = (values + places) * sizes
    if d > 2 and draw(st.booleans()):
        values[:, -1] = values[:, 0] - values[:, 1]
    if gaps:
        values[draw(arrays(np.bool_, (n, d)))] = np.nan
    return values


def units_of(values):
    """Deviations; for a constant its size, and 1 for nought."""
    sizes = np.where(values[0] == 0, 1.0, np.abs(values[0]))
    return np.where(np.ptp(values, axis=0) > 0, values.std(axis=0), sizes)


def covariance_kept(before, after):
    """Means and covariances alike, measured in deviations."""
    scale = units_of(before)
    np.testing.assert_allclose((after.mean(axis=0) - before.mean(axis=0)) / scale, 0, atol=1e-9)
    difference = np.cov(after.T, ddof=0) - np.cov(before.T, ddof=0)
    np.testing.assert_allclose(np.atleast_2d(difference) / np.outer(scale, scale), 0, atol=1e-9)


@given(values=tables(), ratio=st.floats(1e-3, 1e3), seed=SEEDS)
def test_kim_keeps_moments_exactly_when_asked(values, ratio, seed):
    """Whatever the rank: also with fewer records than columns, with constants and with sums."""
    covariance_kept(values, protected(KimNoise(ratio=ratio, restore="exactly"), values, seed))


@given(values=tables(), angle=st.floats(0.01, 90), size=st.integers(3, 20), seed=SEEDS)
def test_rotation_keeps_moments(values, angle, size, seed):
    covariance_kept(values, protected(RotationNoise(angle=angle, size=size), values, seed))


@given(values=tables(least=12), deviation=st.floats(0.01, 10), seed=SEEDS)
def test_hohne_keeps_moments(values, deviation, seed):
    noisy = protected(HohneNoise(deviation=deviation), values, seed)
    units = units_of(values)
    np.testing.assert_allclose((noisy.mean(axis=0) - values.mean(axis=0)) / units, 0, atol=1e-9)
    np.testing.assert_allclose((noisy.std(axis=0) - values.std(axis=0)) / units, 0, atol=1e-9)


@given(values=tables(gaps=True), ratio=st.floats(1e-3, 1e3), same=st.booleans(), seed=SEEDS)
def test_sullivan_keeps_distributions(values, ratio, same, seed):
    """The same values exactly; new ones so that no distribution function moves by more than one record."""
    noisy = protected(SullivanNoise(ratio=ratio, values="same" if same else "new"), values, seed)
    for before, after in zip(values.T, noisy.T, strict=True):
        had, has = (np.sort(column[~np.isnan(column)]) for column in (before, after))
        if same:
            np.testing.assert_array_equal(has, had)
            continue
        assert len(has) == len(had)
        assert (has[1:] >= had[:-1]).all()
        assert (has[:-1] <= had[1:]).all()
        assert not len(had) or (has[0] >= had[0] and has[-1] <= had[-1])


@given(
    values=tables(gaps=True),
    method=st.one_of(
        st.builds(UniformNoise, spread=st.floats(0.01, 0.99), per=st.sampled_from(["cell", "record"])),
        st.builds(LognormalNoise, deviation=st.floats(0.01, 10), per=st.sampled_from(["cell", "record"])),
    ),
    seed=SEEDS,
)
def test_factors_keep_signs_and_zeros(values, method, seed):
    noisy = protected(method, values, seed)
    np.testing.assert_array_equal(np.sign(noisy), np.sign(values))
    if isinstance(method, UniformNoise):
        reach = method.spread * np.abs(values) * (1 + 1e-12)
        assert (np.abs(noisy - values)[~np.isnan(values)] <= reach[~np.isnan(values)]).all()


@given(
    values=tables(gaps=True),
    method=st.sampled_from(
        [UncorrelatedNoise(), CorrelatedNoise(), KimNoise(), HohneNoise(), SullivanNoise(), UniformNoise()]
    ),
    seed=SEEDS,
)
def test_gaps_stay_where_they_are(values, method, seed):
    noisy = protected(method, values, seed)
    np.testing.assert_array_equal(np.isnan(noisy), np.isnan(values))
    assert np.isfinite(noisy[~np.isnan(values)]).all()


@pytest.mark.parametrize(
    "method",
    [
        UncorrelatedNoise(deviation=30),
        CorrelatedNoise(ratio=0.3),
        KimNoise(ratio=0.3),
        UniformNoise(spread=0.3),
        HohneNoise(deviation=0.3),
        RotationNoise(angle=30),
    ],
    ids=lambda method: method.name,
)
@given(powers=arrays(np.int64, 3, elements=st.integers(-40, 40)), seed=SEEDS)
def test_the_unit_does_not_matter(method, powers, seed):
    """In cents or millions, a column gets the same noise: sizes may differ by a factor of 10²⁴."""
    values = np.random.default_rng(1).lognormal(0, 1, (30, 3)).cumsum(axis=1)
    units = np.exp2(powers.astype(float))
    plain = protected(method, values, seed)
    np.testing.assert_allclose(protected(method, values * units, seed) / units, plain, rtol=1e-7, atol=1e-9)


@given(values=tables(least=1, gaps=True), share=st.floats(0.1, 100), seed=SEEDS)
def test_no_more_than_the_outliers_move_and_holes_stay(values, share, seed):
    noisy = protected(OutlierNoise(share=share), values, seed)
    assert np.array_equal(np.isnan(noisy), np.isnan(values))
    moved = ((noisy != values) & ~np.isnan(values)).any(axis=1)
    varies = np.array([len(set(column[~np.isnan(column)])) > 1 for column in values.T])
    judged = (~np.isnan(values[:, varies])).any(axis=1)
    assert not moved[~judged].any()
    assert moved.any() == judged.any()
    if share == 100:
        assert np.array_equal(moved, judged)


@given(values=tables(least=1, gaps=True), seed=SEEDS)
def test_zeros_that_are_kept_are_zeros_and_the_rest_is_as_without(values, seed):
    plain, kept = (protected(UncorrelatedNoise(keep_zeros=keep), values, seed) for keep in (False, True))
    np.testing.assert_array_equal(kept, np.where(values == 0, values, plain))
