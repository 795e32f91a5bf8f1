"""Additive noise against the formulas, written out in the test."""

import numpy as np
import polars as pl
import pytest
from scipy.linalg import sqrtm

from sfumato.core.params import PerColumn
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.engines.memory import MemoryEngine
from sfumato.errors import DataError, RefusedError
from sfumato.kernels.outlyingness import RobustCentre
from sfumato.methods.multiplicative_noise import HohneNoise, LognormalNoise, UniformNoise
from sfumato.methods.noise import CorrelatedNoise, KimNoise, UncorrelatedNoise, mixing
from sfumato.methods.outlier_noise import OutlierNoise
from sfumato.methods.rotation import RotationNoise
from sfumato.methods.rounding import MultivariateRounding
from sfumato.methods.sullivan import SullivanNoise

ADDITIVE = [
    UncorrelatedNoise(deviation=20),
    CorrelatedNoise(ratio=0.2),
    KimNoise(ratio=0.2),
    KimNoise(ratio=0.2, restore="exactly"),
]
RESTORING = [HohneNoise(deviation=0.2), HohneNoise(deviation=0.2, restore="covariances")]
FACTORS = [UniformNoise(spread=0.2), LognormalNoise(deviation=0.2), LognormalNoise(per="record")]
SULLIVAN = [SullivanNoise(ratio=0.2), SullivanNoise(ratio=0.2, values="same")]
ALL = [*ADDITIVE, *RESTORING, *FACTORS, *SULLIVAN, RotationNoise(angle=30)]


def table_of(values):
    names = [f"c{i}" for i in range(values.shape[1])]
    frame = pl.DataFrame({name: values[:, i] for i, name in enumerate(names)})
    return Table(frame, Schema(tuple(Column(name, Kind.CONTINUOUS) for name in names)))


def protected(method, values, seed=1, engine=MemoryEngine()):  # noqa: B008  — it is never changed
    return method.apply(table_of(values), Run(seed=seed, engine=engine)).table.frame.to_numpy()


@pytest.fixture
def incomes():
    rng = np.random.default_rng(4)
    base = rng.lognormal(10, 1, (400, 1))
    return np.hstack([base * rng.lognormal(0, 0.4, (400, 1)) for _ in range(3)])


def draws_of(run, block, names, count):
    return np.stack([run.at("block", block).rng(name).standard_normal(count) for name in names], axis=1)


def correlated_draws(values, gamma, seed=1):
    """Noise of covariance γΣ by the definition: draws, root of the correlations, deviations."""
    names = [f"c{i}" for i in range(values.shape[1])]
    draws = draws_of(Run(seed=seed), 0, names, len(values))
    return np.sqrt(gamma) * draws @ sqrtm(np.corrcoef(values.T)) * values.std(axis=0, ddof=1)


# ------------------------------------------------------------------------------------------ uncorrelated noise


def test_uncorrelated_noise_is_the_formula(incomes):
    noise = protected(UncorrelatedNoise(deviation=15), incomes) - incomes
    draws = draws_of(Run(seed=1), 0, ["c0", "c1", "c2"], len(incomes))
    expected = draws * 0.15 * incomes.std(axis=0, ddof=1)
    np.testing.assert_allclose(noise, expected, rtol=1e-6, atol=1e-9 * incomes.std())


def test_uncorrelated_noise_may_differ_by_column(incomes):
    plain = protected(UncorrelatedNoise(deviation=15), incomes) - incomes
    method = UncorrelatedNoise(deviation=15, multiple=PerColumn(1.0, (("c1", 3.0),)))
    noise = protected(method, incomes) - incomes
    np.testing.assert_allclose(noise, plain * [1, 3, 1], rtol=1e-6, atol=1e-9 * incomes.std())
    again = protected(method.with_drive(30.0), incomes) - incomes  # a level search keeps the proportions
    np.testing.assert_allclose(again, 2 * noise, rtol=1e-6, atol=1e-9 * incomes.std())


@pytest.mark.parametrize(
    "method",
    [UncorrelatedNoise(), UniformNoise(), LognormalNoise(), UniformNoise(per="record")],
    ids=str,
)
def test_a_column_is_protected_as_if_alone(incomes, method):
    """Streams are keyed by column, so what a column gets does not depend on which others are protected."""
    table, run = table_of(incomes), Run(seed=1)
    together = method.apply(table, run).table.frame["c1"]
    alone = method.apply(table.aimed_at(["c1"]), run).table.frame
    # Not to the last bit: a matrix product sums in another order when there are more columns.
    np.testing.assert_allclose(together, alone["c1"], rtol=1e-12)
    assert alone["c0"].equals(table.frame["c0"])


def test_zeros_stay_and_nothing_else_changes_by_that(incomes):
    values = np.where(np.random.default_rng(1).random(incomes.shape) < 0.3, 0.0, incomes)
    plain, kept = (protected(UncorrelatedNoise(keep_zeros=keep), values) for keep in (False, True))
    np.testing.assert_array_equal(kept, np.where(values == 0, 0.0, plain))
    assert (plain != 0).all()


# ------------------------------------------------------------------------------------------ noise on outliers


def test_outliers_alone_get_the_noise_of_all(incomes):
    """The farthest are found by another way, and get what all records get in the other method."""
    method = OutlierNoise(deviation=15, share=4)
    noise = protected(method, incomes) - incomes
    middle = RobustCentre.of(incomes)
    standard = (incomes - middle.centre) / middle.scale
    squares = np.einsum("ij,jk,ik->i", standard, np.linalg.inv(middle.correlation), standard)
    outliers = np.argsort(-squares)[:16]
    names = ["c0", "c1", "c2"]
    draws = np.stack([Run(seed=1).rng(name).standard_normal(len(incomes)) for name in names], axis=1)
    expected = np.zeros_like(incomes)
    expected[outliers] = (draws * 0.15 * incomes.std(axis=0, ddof=1))[outliers]
    np.testing.assert_allclose(noise, expected, rtol=1e-6, atol=1e-9 * incomes.std())
    notes = method.apply(table_of(incomes), Run(seed=1)).byproducts.notes
    assert notes == ("16 of 400 records got noise; the others show their true values",)


def test_values_too_large_to_judge_are_refused():
    with pytest.raises(DataError, match="outlier-noise must be given values of moderate size"):
        protected(OutlierNoise(), np.array([[1.0], [2.0], [3.0], [1e300]]) * [[1, -1]])


# -------------------------------------------------------------------------------------------- correlated noise


def test_correlated_noise_is_the_formula(incomes):
    noise = protected(CorrelatedNoise(ratio=0.3), incomes) - incomes
    np.testing.assert_allclose(noise, correlated_draws(incomes, 0.3), rtol=1e-6, atol=1e-9 * incomes.std())


def test_correlated_noise_has_the_covariance_it_promises(incomes):
    """Over 200 runs the mean covariance of the noise is γΣ; its error is below 3 % of the diagonal."""
    gamma, sigma = 0.5, np.cov(incomes.T)
    noises = [protected(CorrelatedNoise(ratio=gamma), incomes, seed) - incomes for seed in range(200)]
    mean = np.mean([np.cov(noise.T) for noise in noises], axis=0)
    scale = np.sqrt(np.outer(np.diag(sigma), np.diag(sigma))) * gamma
    assert np.abs((mean - gamma * sigma) / scale).max() < 0.03
    bias = np.mean([noise.mean(axis=0) for noise in noises], axis=0) / np.sqrt(gamma * np.diag(sigma))
    assert np.abs(bias).max() < 4 / np.sqrt(200 * len(incomes))


@pytest.mark.parametrize(
    "method", [CorrelatedNoise(ratio=1.0), KimNoise(ratio=1.0), KimNoise(restore="exactly")]
)
def test_collinear_columns_stay_collinear(method):
    """A total that is the sum of its parts is still their sum: Σ is singular, and so is the noise."""
    rng = np.random.default_rng(1)
    parts = rng.lognormal(5, 1, (300, 2))
    values = np.hstack([parts, parts.sum(axis=1, keepdims=True)])
    noisy = protected(method, values)
    np.testing.assert_allclose(noisy[:, 0] + noisy[:, 1], noisy[:, 2], rtol=1e-6, atol=1e-5 * values.std())


def test_columns_of_very_different_size_keep_their_digits():
    """The root of the covariances themselves would give the shares up to 21 times the variance they should have."""
    rng = np.random.default_rng(1)
    values = rng.standard_normal((2000, 5)) @ rng.standard_normal((5, 5)) * [1, 1, 1e8, 1, 1e8]
    covariance = np.cov(values.T)
    root = mixing(covariance)
    scale = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    assert np.abs((root.T @ root - covariance) / scale).max() < 1e-13


# ------------------------------------------------------------------------------------------------ Kim's noise


def test_kim_is_the_formula(incomes):
    gamma, mean = 0.5, incomes.mean(axis=0)
    expected = mean + (incomes - mean + correlated_draws(incomes, gamma)) / np.sqrt(1 + gamma)
    np.testing.assert_allclose(protected(KimNoise(ratio=gamma), incomes), expected, rtol=1e-7)


def test_kim_exactly_is_the_formula(incomes):
    """Moments of the noisy records as they are, not as they follow from those of data and draws."""
    noisy = incomes + correlated_draws(incomes, 0.5)
    units = incomes.std(axis=0, ddof=1)
    got, wanted = np.cov((noisy / units).T), np.cov((incomes / units).T)
    turned = (noisy - noisy.mean(axis=0)) / units @ np.linalg.inv(sqrtm(got)) @ sqrtm(wanted)
    expected = turned * units + incomes.mean(axis=0)
    np.testing.assert_allclose(
        protected(KimNoise(ratio=0.5, restore="exactly"), incomes), expected, rtol=1e-7
    )


def test_kim_keeps_covariances_in_expectation(incomes):
    """Over 300 runs no entry is 5 standard errors off: with 6 entries and 3 means, error rate below 1e-5."""
    releases = [protected(KimNoise(ratio=1), incomes, seed) for seed in range(300)]
    for kept, wanted in (
        ([np.cov(release.T) for release in releases], np.cov(incomes.T)),
        ([release.mean(axis=0) for release in releases], incomes.mean(axis=0)),
    ):
        error = np.std(kept, axis=0, ddof=1) / np.sqrt(len(kept))
        assert (np.abs(np.mean(kept, axis=0) - wanted) < 5 * error).all()
        assert (error < 0.02 * np.abs(wanted)).all()  # the test would notice 10 %


@pytest.mark.parametrize("ratio", [1e-4, 1.0, 1e6])
def test_kim_keeps_moments_exactly_when_asked(incomes, ratio):
    values = np.column_stack([incomes, np.full(len(incomes), 7.0)])
    noisy = protected(KimNoise(ratio=ratio, restore="exactly"), values)
    np.testing.assert_allclose(noisy.mean(axis=0), values.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(np.cov(noisy.T), np.cov(values.T), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(noisy[:, 3], 7.0)


def test_kim_does_add_noise(incomes):
    """sdcMicro's noise that restores moments adds none; ours correlates with the original as 1/√(1+γ)."""
    values = np.vstack([incomes] * 25)
    for method in (KimNoise(ratio=3), KimNoise(ratio=3, restore="exactly")):
        noisy = protected(method, values)
        for j in range(3):  # error of a correlation of .5 over 10,000 records: .0075
            assert np.corrcoef(values[:, j], noisy[:, j])[0, 1] == pytest.approx(0.5, abs=0.04)


# ---------------------------------------------------------------------------------------------- all the family


@pytest.mark.parametrize("method", ALL, ids=str)
def test_survives_a_large_offset(method, incomes):
    """E[x²] − E[x]² would lose everything at a mean of 1e8 and a deviation of 1."""
    z = (incomes - incomes.mean(axis=0)) / incomes.std(axis=0)
    far = protected(method, z + 1e8) - 1e8
    if method in FACTORS or method in RESTORING:  # these depend on where zero is
        assert np.isfinite(far).all()
    else:
        np.testing.assert_allclose(protected(method, z), far, atol=1e-6)
    if method in RESTORING:
        np.testing.assert_allclose(far.std(axis=0), 1, rtol=1e-6)


@pytest.mark.parametrize("method", ALL, ids=str)
def test_constants_stay(method):
    values = np.column_stack([np.full(50, 0.1), np.arange(50.0) ** 2, np.zeros(50)])
    noisy = protected(method, values)
    if method not in FACTORS:  # a factor knows nothing of the other records
        np.testing.assert_array_equal(noisy[:, 0], 0.1)
    np.testing.assert_array_equal(noisy[:, 2], 0.0)


@pytest.mark.parametrize("method", ALL, ids=str)
def test_missing_values_stay_and_do_not_spread(method, incomes):
    incomes[::7, 0] = np.nan
    incomes[::5, 2] = np.nan
    if getattr(method, "restore", "") in {"exactly", "covariances"}:
        with pytest.raises(
            RefusedError, match="complete columns to restore covariances, got: missing values in `c0`, `c2`"
        ):
            protected(method, incomes)
        return
    noisy = protected(method, incomes)
    np.testing.assert_array_equal(np.isnan(noisy), np.isnan(incomes))
    assert not np.array_equal(noisy, incomes, equal_nan=True)


@pytest.mark.parametrize("method", ALL, ids=str)
def test_nothing_but_missing_codes_is_missing(method):
    """−999 is a number unless the schema says otherwise; sdcMicro drops it in silence."""
    values = np.random.default_rng(1).normal(50, 10, 40)
    values[:10] = -999.0
    complete_only = getattr(method, "restore", "") in {"exactly", "covariances"}
    for codes in [()] if complete_only else [(), (-999,)]:
        column = Column("x", Kind.CONTINUOUS, missing=codes)
        frame = pl.DataFrame({"x": values})
        after = method.apply(Table(frame, Schema((column,))), Run(seed=1)).table.frame["x"].to_numpy()
        told = after[:10] == -999
        assert told.all() if codes else not told.all()
        assert (after[10:] != values[10:]).any()


@pytest.mark.parametrize("method", ALL, ids=str)
@pytest.mark.parametrize("records", [0, 1, 2])
def test_few_records(method, records):
    values = np.array([[3.0, 4.0], [7.0, 1.0]])[:records]
    if records and isinstance(method, RotationNoise):
        with pytest.raises(RefusedError, match=f"three records or more with a value, got: {records} in `c0`"):
            protected(method, values)
        return
    noisy = protected(method, values)
    assert noisy.shape == values.shape
    assert np.isfinite(noisy).all()
    if records == 1 and method not in FACTORS:  # said in the docstrings: there is nothing to scale noise by
        np.testing.assert_allclose(noisy, values)


@pytest.mark.parametrize("method", ALL, ids=str)
def test_weights_are_not_used(method, incomes):
    table = table_of(incomes)
    frame = table.frame.with_columns(w=pl.Series(np.linspace(1, 9, len(incomes))))
    schema = Schema((*table.schema.columns, Column("w", Kind.CONTINUOUS, Role.WEIGHT)))
    weighted = Table(frame, schema, targets=table.names)
    plain = method.apply(table, Run(seed=3)).table.frame
    assert method.apply(weighted, Run(seed=3)).table.frame.select(table.names).equals(plain)


@pytest.mark.parametrize("method", ADDITIVE + RESTORING, ids=str)
def test_many_blocks_share_one_set_of_moments(incomes, method):
    """Cut into blocks of 64, moments are still those of the whole table."""
    noisy = protected(method, incomes, engine=MemoryEngine(64))
    if method in RESTORING or getattr(method, "restore", "") == "exactly":
        np.testing.assert_allclose(noisy.mean(axis=0), incomes.mean(axis=0), rtol=1e-10)
        np.testing.assert_allclose(noisy.var(axis=0), incomes.var(axis=0), rtol=1e-10)
        return
    draws = np.concatenate(
        [draws_of(Run(seed=1), b, ["c0", "c1", "c2"], min(64, 400 - 64 * b)) for b in range(7)]
    )
    root = np.eye(3) if isinstance(method, UncorrelatedNoise) else sqrtm(np.corrcoef(incomes.T))
    size = 0.2 if isinstance(method, UncorrelatedNoise) else np.sqrt(0.2)
    noise = size * draws @ root * incomes.std(axis=0, ddof=1)
    mean, shrink = incomes.mean(axis=0), 1 / np.sqrt(1.2) if isinstance(method, KimNoise) else 1.0
    np.testing.assert_allclose(noisy, mean + shrink * (incomes - mean + noise), rtol=1e-6)


@pytest.mark.parametrize("size", [1e300, 1e-300])
@pytest.mark.parametrize("method", [*ADDITIVE, *RESTORING, MultivariateRounding()], ids=repr)
def test_numbers_whose_squares_are_lost_are_refused(method, size):
    values = np.array([[1.0, 2 * size], [3.0, size], [2.0, -size], [5.0, 0.0]])
    with pytest.raises(DataError, match=r"column `c1` must hold numbers from 1e-150 to 1e\+150 in size"):
        protected(method, values)


def test_factors_need_no_squares():
    values = np.array([[1e300], [2e299]])
    assert np.isfinite(protected(UniformNoise(spread=0.2), values)).all()
