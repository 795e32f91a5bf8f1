"""Probabilistic information loss against formulas written out, sampling, and hand-worked cases."""

import numpy as np
import polars as pl
import pytest
from scipy.stats import norm

from pairs import numeric, score, table
from sfumato.core.measure import Status
from sfumato.data.generalised.intervals import intervals
from sfumato.data.schema import Kind
from sfumato.utility.probabilistic_loss import ProbabilisticInformationLoss

PIL = ProbabilisticInformationLoss()
STATISTICS = ("mean", "variance", "covariance", "correlation", "quantiles")


def two_sided(moved, variance):
    return 2 * norm.cdf(abs(moved) / np.sqrt(variance)) - 1


def naive(x, y):
    """The five means, one statistic after the other, as the paper writes them."""
    n, m = y.shape
    a, b = x - x.mean(axis=0), y - y.mean(axis=0)
    found = {name: [] for name in STATISTICS}
    for i in range(m):
        found["mean"].append(two_sided(x[:, i].mean() - y[:, i].mean(), (a[:, i] ** 2).mean() / n))
        variance = ((a[:, i] ** 4).mean() - (a[:, i] ** 2).mean() ** 2) / n
        found["variance"].append(two_sided((a[:, i] ** 2).mean() - (b[:, i] ** 2).mean(), variance))
        of_column = []
        for p in np.arange(1, 20) / 20:
            place = np.quantile(y[:, i], p, method="inverted_cdf")
            below, up_to = (x[:, i] < place).mean(), (x[:, i] <= place).mean()
            of_column.append(two_sided(max(below - p, p - up_to, 0), p * (1 - p) / n))
        found["quantiles"].append(np.mean(of_column))
        for j in range(i):
            moment = lambda k, l, i=i, j=j: (a[:, i] ** k * a[:, j] ** l).mean()  # noqa: E731, E741
            moved = moment(1, 1) - (b[:, i] * b[:, j]).mean()
            found["covariance"].append(two_sided(moved, (moment(2, 2) - moment(1, 1) ** 2) / n))
            r = np.corrcoef(x[:, i], x[:, j])[0, 1]
            bracket = (
                moment(2, 2) / moment(1, 1) ** 2
                + (
                    moment(4, 0) / moment(2, 0) ** 2
                    + moment(0, 4) / moment(0, 2) ** 2
                    + 2 * moment(2, 2) / (moment(2, 0) * moment(0, 2))
                )
                / 4
                - moment(3, 1) / (moment(1, 1) * moment(2, 0))
                - moment(1, 3) / (moment(1, 1) * moment(0, 2))
            )
            moved = r - np.corrcoef(y[:, i], y[:, j])[0, 1]
            found["correlation"].append(two_sided(moved, r**2 / n * bracket))
    return {name: np.mean(values) for name, values in found.items()}


@pytest.mark.parametrize("seed", range(4))
def test_the_formulas_written_out(seed):
    rng = np.random.default_rng(seed)
    x = rng.lognormal(size=(80, 3)).cumsum(axis=1) * [1, 1e3, 1e-3]
    y = x * rng.lognormal(0, 0.02, x.shape)
    found, expected = score(PIL, numeric(x), numeric(y)), naive(x, y)
    for name in STATISTICS:
        assert found.details[name] == pytest.approx(expected[name], rel=1e-9), name
    assert found.value == pytest.approx(np.mean(list(expected.values())), rel=1e-9)


def test_one_standard_error():
    """A shift by one standard error of the mean: 68.27 %; variance and shape stay."""
    x = np.tile([-1.0, 1.0], 50)
    found = score(PIL, table({"x": x}), table({"x": x + 0.1}))
    assert found.details["mean"] == pytest.approx(2 * norm.cdf(1) - 1)
    assert found.details["variance"] == 0
    assert "covariance" not in found.details


def test_a_fresh_sample_loses_about_what_the_docstring_says():
    """Two samples differ by √2 standard errors: E[2Φ(√2|z|) − 1] = 2/π · arctan √2 = .608, ±.03 over 40 pairs."""
    rng = np.random.default_rng(7)
    found = [
        score(PIL, numeric(rng.normal(size=(500, 3))), numeric(rng.normal(size=(500, 3)))) for _ in range(40)
    ]
    for name in ("mean", "variance", "covariance"):
        assert np.mean([each.details[name] for each in found]) == pytest.approx(0.608, abs=0.06)


def test_the_same_distribution_in_another_order_loses_nothing():
    rng = np.random.default_rng(9)
    x = rng.lognormal(size=(300, 3))
    assert score(PIL, numeric(x), numeric(x[rng.permutation(300)])).value == 0
    assert score(PIL, numeric(x), numeric(np.vstack([x, x])), rows=None).value == 0


def test_swapping_columns_apart_costs_only_what_goes_together():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(400, 1)) + 0.3 * rng.normal(size=(400, 2))
    y = np.column_stack([x[:, 0], x[rng.permutation(400), 1]])
    found = score(PIL, numeric(x), numeric(y))
    assert found.details["mean"] == found.details["variance"] == found.details["quantiles"] == 0
    assert found.details["covariance"] > 0.999
    assert found.details["correlation"] > 0.999
    assert found.value == pytest.approx(0.4, abs=1e-3)


def test_bounded_however_far():
    x = np.random.default_rng(1).normal(size=(30, 2))
    for y in (x * 1e200, x + 1e12, np.zeros_like(x), -x):
        assert 0 <= score(PIL, numeric(x), numeric(y)).value <= 1


def test_constants():
    """No variance: the same is 0, any change is 1; there is no correlation to lose."""
    x = table({"a": [5.0] * 6, "b": [1.0, 2, 3, 4, 5, 6]})
    assert score(PIL, x, x).value == 0
    y = table({"a": [6.0] * 6, "b": [1.0, 2, 3, 4, 5, 6]})
    found = score(PIL, x, y)
    assert found.details["mean"] == 0.5
    assert "correlation" not in found.details


def test_a_perfect_correlation_has_no_variance():
    x = np.arange(50.0)
    pair = table({"a": x, "b": 2 * x})
    assert score(PIL, pair, pair.take(np.random.default_rng(3).permutation(50))).value == 0
    broken = table({"a": x, "b": np.r_[2 * x[:-1], 0.0]})
    assert score(PIL, pair, broken).details["correlation"] == 1


def test_a_column_that_became_constant_has_lost_its_correlation():
    x = numeric(np.random.default_rng(5).normal(size=(50, 2)))
    y = x.with_values("b", pl.Series([0.0] * 50))
    assert score(PIL, x, y).details["correlation"] == 1


def test_missing_values_and_a_column_that_is_gone():
    x = table({"a": [1.0, 2, 3, None], "b": [4.0, 3, 2, 1]})
    assert score(PIL, x, x).value == 0
    gone = x.with_values("b", pl.Series([None] * 4, dtype=pl.Float64))
    found = score(PIL, x, gone)
    assert found.by_column["b"] == 1
    assert found.details["mean"] == 0.5


def test_ranges_at_their_middle():
    x = table({"a": [1.0, 2.0, 3.0]})
    y = table({"a": intervals([0.0, 1.0, 2.0], [2.0, 3.0, 4.0])})
    assert score(PIL, x, y).value == 0


def test_says_why_not():
    nothing = table({"a": pl.Series([None], dtype=pl.Float64)})
    assert score(PIL, nothing, nothing).status is Status.NOT_ESTIMABLE
    x = table({"a": [1.0]})
    assert score(PIL, x, x.take(np.arange(0)), rows=None).status is Status.NOT_ESTIMABLE
    words = table({"a": ["u"]}, Kind.NOMINAL)
    assert score(PIL, words, words).status is Status.REFUSED
