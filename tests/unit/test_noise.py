"""Noise against the formulas, written out in the test."""

import numpy as np
import polars as pl
import pytest
from scipy.linalg import sqrtm

from sfumato.core import method as methods_module
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import Table
from sfumato.errors import RefusedError
from sfumato.methods.noise import CorrelatedNoise, HohneNoise


def table_of(values):
    names = [f"c{i}" for i in range(values.shape[1])]
    frame = pl.DataFrame({name: values[:, i] for i, name in enumerate(names)})
    return Table(frame, Schema(tuple(Column(name, Kind.CONTINUOUS) for name in names)))


def protected(method, values, seed=1):
    return method.apply(table_of(values), Run(seed=seed)).table.frame.to_numpy()


@pytest.fixture
def incomes():
    rng = np.random.default_rng(4)
    base = rng.lognormal(10, 1, (400, 1))
    return np.hstack([base * rng.lognormal(0, 0.4, (400, 1)) for _ in range(3)])


def draws_of(run, block, names, count):
    return np.stack([run.at("block", block).rng(name).standard_normal(count) for name in names], axis=1)


def test_correlated_noise_is_the_formula(incomes):
    gamma = 0.3
    noise = protected(CorrelatedNoise(ratio=gamma), incomes) - incomes
    draws = draws_of(Run(seed=1), 0, ["c0", "c1", "c2"], len(incomes))
    expected = draws @ sqrtm(gamma * np.cov(incomes.T))
    np.testing.assert_allclose(noise, expected, rtol=1e-6, atol=1e-6 * incomes.std())


def test_correlated_noise_has_the_covariance_it_promises(incomes):
    """Over 200 runs the mean covariance of the noise is γΣ; its error is below 3 % of the diagonal."""
    gamma, sigma = 0.5, np.cov(incomes.T)
    noises = [protected(CorrelatedNoise(ratio=gamma), incomes, seed) - incomes for seed in range(200)]
    mean = np.mean([np.cov(noise.T) for noise in noises], axis=0)
    scale = np.sqrt(np.outer(np.diag(sigma), np.diag(sigma))) * gamma
    assert np.abs((mean - gamma * sigma) / scale).max() < 0.03
    bias = np.mean([noise.mean(axis=0) for noise in noises], axis=0) / np.sqrt(gamma * np.diag(sigma))
    assert np.abs(bias).max() < 4 / np.sqrt(200 * len(incomes))


def test_collinear_columns_stay_collinear():
    """A total that is the sum of its parts is still their sum: Σ is singular, and so is the noise."""
    rng = np.random.default_rng(1)
    parts = rng.lognormal(5, 1, (300, 2))
    values = np.hstack([parts, parts.sum(axis=1, keepdims=True)])
    noisy = protected(CorrelatedNoise(ratio=1.0), values)
    np.testing.assert_allclose(noisy[:, 0] + noisy[:, 1], noisy[:, 2], rtol=1e-6, atol=1e-5 * values.std())


def test_noise_survives_a_large_offset(incomes):
    """E[x²] − E[x]² would lose everything at a mean of 1e8 and a deviation of 1."""
    z = (incomes - incomes.mean(axis=0)) / incomes.std(axis=0)
    near, far = (protected(CorrelatedNoise(ratio=0.2), z + offset) - offset for offset in (0.0, 1e8))
    # Same shape, other data digest is not involved here: apply() is keyed by the run alone.
    np.testing.assert_allclose(near, far, atol=1e-6)


@pytest.mark.parametrize("deviation", [0.05, 0.5, 3.0])
def test_hohne_restores_means_and_variances(incomes, deviation):
    noisy = protected(HohneNoise(deviation=deviation), incomes)
    np.testing.assert_allclose(noisy.mean(axis=0), incomes.mean(axis=0), rtol=1e-10)
    np.testing.assert_allclose(noisy.var(axis=0), incomes.var(axis=0), rtol=1e-10)
    assert not np.allclose(noisy, incomes)


def test_hohne_restores_covariances_when_asked(incomes):
    noisy = protected(HohneNoise(deviation=0.5, restore="covariances"), incomes)
    np.testing.assert_allclose(np.cov(noisy.T), np.cov(incomes.T), rtol=1e-8)
    np.testing.assert_allclose(noisy.mean(axis=0), incomes.mean(axis=0), rtol=1e-10)


def test_hohne_is_the_formula_with_one_sign_per_record(incomes):
    s, run = 0.4, Run(seed=1)
    draws = draws_of(run, 0, ["c0", "c1", "c2"], len(incomes))
    signs = 2.0 * run.at("block", 0).rng("record", "sign").integers(0, 2, len(incomes)) - 1.0
    factors = 1 + signs[:, None] * np.abs(s * draws)
    assert set(np.unique((factors > 1).sum(axis=1))) == {0, 3}  # a record's values rise or fall together
    raw = incomes * factors
    expected = (raw - raw.mean(axis=0)) * incomes.std(axis=0) / raw.std(axis=0) + incomes.mean(axis=0)
    np.testing.assert_allclose(protected(HohneNoise(deviation=s), incomes), expected, rtol=1e-9)


def test_hohne_refuses_to_mix_incomplete_records(incomes):
    incomes[3, 1] = np.nan
    with pytest.raises(RefusedError, match="complete columns"):
        protected(HohneNoise(restore="covariances"), incomes)


@pytest.mark.parametrize("method", [CorrelatedNoise(ratio=0.3), HohneNoise(deviation=0.5)])
def test_many_blocks_share_one_set_of_moments(incomes, method, monkeypatch):
    """Cut into blocks of 64, moments are still those of the whole table."""
    monkeypatch.setattr(methods_module, "BLOCK_RECORDS", 64)
    noisy = protected(method, incomes)
    if isinstance(method, HohneNoise):
        np.testing.assert_allclose(noisy.mean(axis=0), incomes.mean(axis=0), rtol=1e-10)
        np.testing.assert_allclose(noisy.var(axis=0), incomes.var(axis=0), rtol=1e-10)
    else:
        draws = np.concatenate(
            [draws_of(Run(seed=1), b, ["c0", "c1", "c2"], min(64, 400 - 64 * b)) for b in range(7)]
        )
        expected = incomes + draws @ sqrtm(0.3 * np.cov(incomes.T))
        np.testing.assert_allclose(noisy, expected, rtol=1e-6)


def test_missing_values_stay_and_do_not_spread(incomes):
    holes = incomes.copy()
    holes[::7, 0] = np.nan
    for method in (CorrelatedNoise(ratio=0.1), HohneNoise(deviation=0.1)):
        noisy = protected(method, holes)
        np.testing.assert_array_equal(np.isnan(noisy), np.isnan(holes))


def test_a_constant_column_stays():
    values = np.column_stack([np.full(50, 7.0), np.arange(50.0)])
    for method in (CorrelatedNoise(ratio=0.1), HohneNoise(deviation=0.1)):
        np.testing.assert_allclose(protected(method, values)[:, 0], 7.0)
