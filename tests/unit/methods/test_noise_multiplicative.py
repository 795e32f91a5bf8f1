"""Multiplicative noise against the formulas, written out in the test."""

import numpy as np
import polars as pl
import pytest

from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import Table
from sfumato.engines.memory import MemoryEngine
from sfumato.methods.multiplicative_noise import HohneNoise, LognormalNoise, UniformNoise

NAMES = ["c0", "c1", "c2"]


def protected(method, values, seed=1, engine=MemoryEngine()):  # noqa: B008  — it is never changed
    names = [f"c{i}" for i in range(values.shape[1])]
    frame = pl.DataFrame({name: values[:, i] for i, name in enumerate(names)})
    table = Table(frame, Schema(tuple(Column(name, Kind.CONTINUOUS) for name in names)))
    return method.apply(table, Run(seed=seed, engine=engine)).table.frame.to_numpy()


@pytest.fixture
def incomes():
    rng = np.random.default_rng(4)
    base = rng.lognormal(10, 1, (400, 1))
    return np.hstack([base * rng.lognormal(0, 0.4, (400, 1)) for _ in range(3)])


# ------------------------------------------------------------------------------------------ uniform, lognormal


def test_uniform_noise_is_the_formula(incomes):
    place = Run(seed=1).at("block", 0)
    factors = np.stack([place.rng(name).uniform(0.7, 1.3, len(incomes)) for name in NAMES], axis=1)
    np.testing.assert_allclose(protected(UniformNoise(spread=0.3), incomes), incomes * factors, rtol=1e-12)


def test_lognormal_noise_is_the_formula(incomes):
    place, s = Run(seed=1).at("block", 0), 0.4
    draws = np.stack([place.rng(name).standard_normal(len(incomes)) for name in NAMES], axis=1)
    expected = incomes * np.exp(s * draws - s**2 / 2)
    np.testing.assert_allclose(protected(LognormalNoise(deviation=s), incomes), expected, rtol=1e-12)


@pytest.mark.parametrize("method", [UniformNoise(per="record"), LognormalNoise(per="record")], ids=str)
def test_one_factor_per_record_keeps_shares_and_sums(incomes, method):
    incomes[:, 2] = incomes[:, 0] + incomes[:, 1]
    noisy = protected(method, incomes)
    factors = noisy / incomes
    np.testing.assert_allclose(factors, factors[:, [0]] * np.ones(3), rtol=1e-12)
    np.testing.assert_allclose(noisy[:, 2], noisy[:, 0] + noisy[:, 1], rtol=1e-12)
    assert len(np.unique(factors[:, 0].round(12))) == len(incomes)  # and another for each record


def test_factors_of_cells_are_not_alike(incomes):
    factors = protected(LognormalNoise(deviation=0.5), incomes) / incomes
    assert np.abs(np.corrcoef(np.log(factors).T)[np.triu_indices(3, 1)]).max() < 0.2  # 4 standard errors


@pytest.mark.parametrize(
    ("method", "variance"),
    [(UniformNoise(spread=0.9), 0.9**2 / 3), (LognormalNoise(deviation=0.5), np.exp(0.25) - 1)],
    ids=["uniform", "lognormal"],
)
def test_factors_have_mean_one_and_the_variance_said(method, variance):
    """Over 300,000 factors; 5 standard errors, error rate below 1e-6 for each of the two."""
    factors = protected(method, np.ones((300_000, 1)))[:, 0]
    error = factors.std() / np.sqrt(len(factors))
    assert abs(factors.mean() - 1) < 5 * error
    spread = (factors - 1) ** 2
    assert abs(spread.mean() - variance) < 5 * spread.std() / np.sqrt(len(factors))


def test_variances_grow_as_the_docstring_says(incomes):
    """Var(Y) = Var(X) + Var(e)·mean(x²), over 300 runs, within 5 standard errors."""
    for method, variance in (
        (UniformNoise(spread=0.8), 0.8**2 / 3),
        (LognormalNoise(deviation=0.6, per="record"), np.exp(0.36) - 1),
    ):
        releases = [protected(method, incomes, seed) for seed in range(300)]
        found = [np.cov(release.T, ddof=0) for release in releases]
        products = incomes.T @ incomes / len(incomes)
        shared = products if method.per == "record" else np.diag(np.diag(products))
        # A mean over n records moves too, which takes 1/n of the growth away again.
        wanted = np.cov(incomes.T, ddof=0) + variance * shared * (1 - 1 / len(incomes))
        error = np.std(found, axis=0, ddof=1) / np.sqrt(len(found))
        assert (np.abs(np.mean(found, axis=0) - wanted) < 5 * error).all()


@pytest.mark.parametrize("per", ["cell", "record"])
def test_blocks_draw_factors_of_their_own(incomes, per):
    factors = protected(UniformNoise(spread=0.5, per=per), incomes, engine=MemoryEngine(64)) / incomes
    assert len(np.unique(factors[:, 0].round(12))) == len(incomes)


# ------------------------------------------------------------------------------------------------------- Höhne


@pytest.mark.parametrize("deviation", [0.05, 0.5, 3.0])
def test_hohne_restores_means_and_variances(incomes, deviation):
    noisy = protected(HohneNoise(deviation=deviation), incomes)
    np.testing.assert_allclose(noisy.mean(axis=0), incomes.mean(axis=0), rtol=1e-10)
    np.testing.assert_allclose(noisy.var(axis=0), incomes.var(axis=0), rtol=1e-10)
    assert not np.allclose(noisy, incomes)


@pytest.mark.parametrize("sizes", [(1, 1, 1), (1, 1e8, 1e-8)])
def test_hohne_restores_covariances_when_asked(incomes, sizes):
    """Also where columns differ much in size: a share beside a turnover must not become a constant."""
    values = incomes * sizes
    noisy = protected(HohneNoise(deviation=0.5, restore="covariances"), values)
    np.testing.assert_allclose(np.cov(noisy.T), np.cov(values.T), rtol=1e-8)
    np.testing.assert_allclose(noisy.mean(axis=0), values.mean(axis=0), rtol=1e-10)


def test_hohne_is_the_formula_with_one_sign_per_record(incomes):
    s, place = 0.4, Run(seed=1).at("block", 0)
    draws = np.stack([place.rng(name).standard_normal(len(incomes)) for name in NAMES], axis=1)
    signs = 2.0 * place.rng("record", "sign").integers(0, 2, len(incomes)) - 1.0
    factors = 1 + signs[:, None] * np.abs(s * draws)
    assert set(np.unique((factors > 1).sum(axis=1))) == {0, 3}  # a record's values rise or fall together
    raw = incomes * factors
    expected = (raw - raw.mean(axis=0)) * incomes.std(axis=0) / raw.std(axis=0) + incomes.mean(axis=0)
    np.testing.assert_allclose(protected(HohneNoise(deviation=s), incomes), expected, rtol=1e-9)
