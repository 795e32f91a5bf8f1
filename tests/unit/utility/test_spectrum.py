"""Covariances, eigenvalue differences and the utility of the permutation model, by hand and by rotation."""

import numpy as np
import polars as pl
import pytest
from scipy.stats import spearmanr

from pairs import numeric, score, table
from sfumato.core.measure import Status
from sfumato.data.generalised.intervals import intervals
from sfumato.utility._matrices import along_eigenvectors, correlation, covariance
from sfumato.utility.permutation import RankUtility
from sfumato.utility.spectrum import EigenvalueDifference, InverseCorrelationLoss

EIGEN, INVERSE, UM = EigenvalueDifference(), InverseCorrelationLoss(), RankUtility()


def correlated(n=300, m=4, seed=1):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 1)) + rng.normal(size=(n, m)) * np.linspace(0.3, 2, m)


# Matrices ----------------------------------------------------------------------------------------------


def test_covariance_pair_by_pair():
    x = correlated(40, 3)
    np.testing.assert_allclose(covariance(x), np.cov(x.T, ddof=0), atol=1e-12)
    x[3, 0], x[7, 2], x[8, :2] = np.nan, np.nan, np.nan
    frame = pl.DataFrame(x, schema=list("abc")).fill_nan(None)
    for i, one in enumerate("abc"):
        for j, other in enumerate("abc"):
            both = frame.select(pl.col(one).alias("x"), pl.col(other).alias("y")).drop_nulls().to_numpy()
            assert covariance(x)[i, j] == pytest.approx(np.cov(both.T, ddof=0)[0, 1], rel=1e-12)


def test_weights_are_copies():
    x, weights = correlated(30, 3), np.random.default_rng(2).integers(1, 5, 30)
    np.testing.assert_allclose(
        covariance(x, weights.astype(float)), np.cov(x.T, fweights=weights, ddof=0), atol=1e-12
    )
    np.testing.assert_allclose(correlation(x), np.corrcoef(x.T), atol=1e-12)


def test_equal_eigenvalues_have_no_directions():
    """Any basis of a plane gives the same: here the second matrix is turned within it."""
    first = np.diag([1.0, 1.0, 3.0])
    turn = np.eye(3)
    turn[:2, :2] = [[0.6, -0.8], [0.8, 0.6]]
    second = np.diag([5.0, 1.0, 2.0])
    for each in (second, turn @ second @ turn.T):
        mine, theirs = along_eigenvectors(first, each)
        np.testing.assert_allclose(mine, [3, 1, 1])
        np.testing.assert_allclose(theirs, [2, 5, 1])


# Eigenvalues -------------------------------------------------------------------------------------------


def test_eigenvalues_by_hand():
    """Deviation doubled in one of two uncorrelated columns: 1, 1 against 4, 1: 3 of 2."""
    x = table({"a": [1.0, 1, -1, -1], "b": [1.0, -1, 1, -1]})
    y = table({"a": [2.0, 2, -2, -2], "b": [1.0, -1, 1, -1]})
    assert score(EIGEN, x, y).value == pytest.approx(1.5)
    assert score(EigenvalueDifference(matrix="correlation"), x, y).value == pytest.approx(0, abs=1e-12)


def test_redundant_columns_do_no_harm():
    """A total and its parts: a trace of noise is a trace of a difference, not as with division by λ ≈ 0."""
    parts = np.random.default_rng(3).lognormal(size=(500, 3))
    x = np.column_stack([parts, parts.sum(axis=1), parts[:, 0]])
    y = x + 1e-6 * np.random.default_rng(4).normal(size=x.shape)
    value = score(EIGEN, numeric(x), numeric(y)).value
    assert 0 < value < 1e-5
    z = [np.linalg.eigvalsh(np.cov(each.T / x.std(axis=0)[:, None], ddof=0)) for each in (x, y)]
    assert value == pytest.approx(np.abs(z[0] - z[1]).sum() / z[0].sum(), rel=1e-6)
    assert np.abs((z[0] - z[1]) / z[0]).mean() > 1  # what others report


def test_a_rotation_has_the_same_eigenvalues_but_less_utility():
    x = correlated(200, 2, seed=5)
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    y = x @ turn.T
    assert score(EIGEN, numeric(x), numeric(y)).value == pytest.approx(0, abs=1e-12)
    assert score(RankUtility(of="values"), numeric(x), numeric(y)).value < 0.2


def test_eigenvalues_with_weights_and_constants():
    x = table({"a": [0.0, 2.0, 4.0], "weight": [1.0, 1.0, 2.0]})
    y = table({"a": [0.0, 2.0, 3.0]})
    unweighted = np.var([0, 2, 4])
    weighted = [np.cov(v, fweights=[1, 1, 2], ddof=0) / unweighted for v in ([0, 2, 4], [0, 2, 3])]
    assert score(EIGEN, x, y).value == pytest.approx(abs(weighted[0] - weighted[1]) / weighted[0])
    constant = table({"a": [1.0, 1.0], "b": [1.0, 2.0]})
    assert score(EIGEN, constant, constant).value == 0
    moved = table({"a": [1.0, 3.0], "b": [1.0, 2.0]})
    assert score(EIGEN, constant, moved).value > 0
    nothing = table({"a": [1.0, 1.0]})
    assert score(EIGEN, nothing, nothing).status is Status.NOT_ESTIMABLE


# Inverse correlations ----------------------------------------------------------------------------------


def inflation(x):
    """1 / (1 − R²) of each column, by a regression on the others."""
    found = []
    for j in range(x.shape[1]):
        others = np.column_stack([np.ones(len(x)), np.delete(x, j, axis=1)])
        left = x[:, j] - others @ np.linalg.lstsq(others, x[:, j], rcond=None)[0]
        found.append(x[:, j].var() / left.var())
    return np.array(found)


def inverse_loss_by_regression(x, y):
    one, other = (inflation(each) / np.linalg.norm(inflation(each)) for each in (x, y))
    return np.linalg.norm(one - other) / np.sqrt(2)


def test_inverse_correlations_by_hand():
    """a and b correlate by r, c with neither; in the release nothing does: 1/(1 − r²), twice, and 1 against 1, 1, 1."""
    x = table({"a": [3.0, 1, -1, -3, 0, 0], "b": [1.0, 3, -3, -1, 0, 0], "c": [0.0, 0, 0, 0, 1, -1]})
    y = table({"a": [1.0, 1, -1, -1, 0, 0], "b": [1.0, -1, 1, -1, 0, 0], "c": [0.0, 0, 0, 0, 1, -1]})
    inverse = 1 / (1 - 0.6**2)
    length = np.sqrt(2 * inverse**2 + 1)
    parts = np.array([inverse / length, inverse / length, 1 / length]) - 1 / np.sqrt(3)
    found = score(INVERSE, x, y)
    assert found.value == pytest.approx(np.sqrt((parts**2).sum() / 2))
    assert list(found.by_column.values()) == pytest.approx(np.abs(parts).tolist())


def test_inverse_correlations_are_shares_that_regressions_explain():
    x = correlated()
    y = x + np.random.default_rng(2).normal(size=x.shape)
    assert score(INVERSE, numeric(x), numeric(y)).value == pytest.approx(inverse_loss_by_regression(x, y))
    holes = x.copy()
    holes[3, 0], holes[9, 2] = np.nan, np.nan
    complete = np.delete(x, [3, 9], axis=0)
    assert score(INVERSE, numeric(holes), numeric(y)).value == pytest.approx(
        inverse_loss_by_regression(complete, y)
    )


def test_what_inverse_correlations_cannot_see_is_no_score():
    x = correlated()
    total = np.column_stack([x, x.sum(axis=1)])
    constant = x * [1, 1, 0, 1]
    for one, other, whose in (
        (total, total, "original"),
        (x, constant, "release"),
        (x[:3], x[:3], "original"),
    ):
        found = score(INVERSE, numeric(one), numeric(other))
        assert found.status is Status.NOT_ESTIMABLE
        assert f"correlations of the {whose} have no inverse" in found.reason
    assert score(INVERSE, numeric(x[:, :2]), numeric(x[:, :2])).status is Status.REFUSED


# The permutation model ---------------------------------------------------------------------------------


def test_utility_of_two_columns_by_hand():
    """Two columns of ranks without ties: shares (1 ± r)/2, so UM = 1 − min(1, (r − s)²/r²)."""
    rng = np.random.default_rng(6)
    for noise in (0.2, 1.0, 5.0):
        x = correlated(100, 2, seed=6)
        y = x + noise * rng.normal(size=x.shape)
        r, s = (spearmanr(each[:, 0], each[:, 1]).statistic for each in (x, y))
        expected = 1 - min(1.0, (r - s) ** 2 / r**2)
        assert score(UM, numeric(x), numeric(y)).value == pytest.approx(expected, abs=1e-9)


def test_utility_as_the_paper_writes_it():
    x = correlated(150, 4)
    y = x + np.random.default_rng(8).normal(size=x.shape)
    values, vectors = np.linalg.eigh(np.cov(x.T))
    mine = values / values.sum()
    theirs = np.array([v @ np.cov(y.T) @ v for v in vectors.T])
    theirs = theirs / theirs.sum()
    expected = 1 - min(1, ((mine - theirs) ** 2).sum() / ((mine - 1 / 4) ** 2).sum())
    assert score(RankUtility(of="values"), numeric(x), numeric(y)).value == pytest.approx(expected, rel=1e-9)


def test_order_is_all_that_ranks_see():
    x = correlated()
    assert score(UM, numeric(x), numeric(np.exp(x))).value == pytest.approx(1.0, abs=1e-12)
    assert score(RankUtility(of="values"), numeric(x), numeric(np.exp(x))).value < 0.99


def test_units_matter_to_values_only():
    x = correlated()
    y = x + np.random.default_rng(9).normal(size=x.shape)
    unit = np.array([1.0, 1e3, 1e-3, 1e150])
    for of, same in (("ranks", True), ("standardised", True), ("values", False)):
        plain, scaled = (score(RankUtility(of=of), numeric(x * u), numeric(y * u)).value for u in (1.0, unit))
        assert (scaled == pytest.approx(plain, rel=1e-9)) is same


def test_independent_columns_are_the_lower_end():
    rng = np.random.default_rng(10)
    x = correlated(2000, 3)
    y = np.column_stack([rng.permutation(column) for column in x.T])
    assert score(UM, numeric(x), numeric(y)).value < 0.02


def test_uncorrelated_originals():
    """Both without correlation: 1. A correlation that was not there is as far off as can be: 0."""
    x = table({"a": [1.0, 1, 2, 2], "b": [1.0, 2, 1, 2]})
    assert score(UM, x, x).value == 1
    assert score(UM, x, table({"a": [2.0, 2, 1, 1], "b": [5.0, 1, 5, 1]})).value == 1
    assert score(UM, x, table({"a": [1.0, 1, 2, 2], "b": [1.0, 1, 2, 2]})).value == 0


def test_redundant_columns_do_not_shake_it():
    """Two copies of each column: their eigenvalue 0 is double, and its directions are arbitrary."""
    x = correlated(100, 3)
    y = x + np.random.default_rng(11).normal(size=x.shape)
    twice = [numeric(np.column_stack([each] * 2)) for each in (x, y)]
    nearly = [numeric(np.column_stack([each, each + 1e-13 * each])) for each in (x, y)]
    assert score(UM, *twice).value == pytest.approx(score(UM, *nearly).value, abs=1e-9)


def test_synthetic_records_of_another_number():
    x = correlated(200, 3)
    assert score(UM, numeric(x), numeric(np.vstack([x, x, x])), rows=None).value == pytest.approx(1, abs=1e-4)


def test_nothing_left_and_nothing_there():
    x = numeric(correlated(20, 2))
    flat = numeric(np.zeros((20, 2)))
    assert score(UM, x, flat).value == 0
    assert score(UM, flat, x).status is Status.NOT_ESTIMABLE
    alone = score(UM, numeric(np.arange(5.0)[:, None]), numeric(np.arange(5.0)[:, None]))
    assert alone.status is Status.REFUSED
    assert "at least 2" in alone.reason


def test_generalised_and_missing_values():
    x = table({"a": [1.0, 2, 3, None], "b": [2.0, 1, 4, 3]})
    y = table(
        {
            "a": intervals([0.0, 1, 2, None], [2.0, 3, 4, None], missing=[False] * 3 + [True]),
            "b": [2.0, 1, 4, 3],
        }
    )
    for measure, best in ((UM, 1.0), (EIGEN, 0.0)):
        assert score(measure, x, y).value == pytest.approx(best, abs=1e-12)
    assert "exact values in the original" in score(UM, y, y).reason
