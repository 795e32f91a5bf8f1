"""Propensity scores: by hand, against statsmodels, and against the expectation of Snoke et al."""

import numpy as np
import polars as pl
import pytest

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.utility.propensity import PropensityMeanSquare, PropensityRatio
from toys import table_of


def score(measure, original, protected, rows=None):
    return measure.score(Evidence(original, protected, source_rows=rows), Run(seed=1))


def numeric(values):
    return table_of({f"c{i}": column for i, column in enumerate(values.T)})


def correlated(n, seed, rho=0.8):
    return np.random.default_rng(seed).multivariate_normal([0, 0], [[1, rho], [rho, 1]], n)


@pytest.mark.parametrize("kind", [Kind.CONTINUOUS, Kind.NOMINAL, Kind.ORDINAL])
def test_one_column_of_two_values_by_hand(kind):
    # Of the zeros 1 of 4 is released, of the ones 3 of 4: the chances are 1/4 and 3/4, 1/4 from c = 1/2.
    original, protected = table_of({"x": [0, 0, 0, 1]}, x=kind), table_of({"x": [0, 1, 1, 1]}, x=kind)
    found = score(PropensityMeanSquare(), original, protected)
    np.testing.assert_allclose(found.value, 1 / 16, rtol=1e-9)
    # E0 = (k − 1)(1 − c)² c / N = 1 · 1/4 · 1/2 / 8 = 1/64
    np.testing.assert_allclose(found.baseline, 1 / 64)
    ratio = score(PropensityRatio(), original, protected)
    np.testing.assert_allclose(ratio.value, 4, rtol=1e-9)
    # the deviation is E0 √(2 / (k − 1)), so (4 − 1) / √2 of them
    np.testing.assert_allclose(ratio.details["standardised"], 3 / np.sqrt(2), rtol=1e-9)


@pytest.mark.parametrize("sizes", [(300, 300), (300, 200)])
@pytest.mark.parametrize("effects", ["main", "pairs"])
def test_chances_are_those_of_statsmodels(sizes, effects):
    Logit = pytest.importorskip("statsmodels.discrete.discrete_model").Logit
    first, second = correlated(sizes[0], 1), 0.3 + 1.3 * correlated(sizes[1], 2, rho=0.5)
    pooled = np.vstack([first, second])
    terms = [np.ones(len(pooled)), *pooled.T]
    if effects == "pairs":
        terms += [pooled[:, 0] ** 2, pooled[:, 1] ** 2, pooled[:, 0] * pooled[:, 1]]
    released = np.repeat([0.0, 1.0], sizes)
    chances = Logit(released, np.column_stack(terms)).fit(disp=False, tol=1e-12).predict()
    found = score(PropensityMeanSquare(effects=effects), numeric(first), numeric(second))
    np.testing.assert_allclose(found.value, ((chances - released.mean()) ** 2).mean(), rtol=1e-8)
    assert found.details["terms"] == len(terms) - 1
    assert found.details["terms_left_out"] == 0


@pytest.mark.parametrize(("n", "m"), [(400, 400), (300, 600)])
def test_a_resample_of_the_original_scores_one(n, m):
    """Mean of 60 ratios, each with variance 2 / (k − 1) = 0.4: beyond 4 standard errors in 6 of 100,000 cases."""
    original = correlated(n, 5)
    rng = np.random.default_rng(6)
    ratios = [
        score(PropensityRatio(), numeric(original), numeric(original[rng.integers(n, size=m)])).value
        for _ in range(60)
    ]
    assert abs(np.mean(ratios) - 1) < 4 * np.sqrt(2 / 5 / 60)


def test_tables_without_a_value_in_common_are_told_apart():
    original, protected = table_of({"x": np.arange(40.0)}), table_of({"x": np.arange(40.0) + 100})
    np.testing.assert_allclose(score(PropensityMeanSquare(), original, protected).value, 0.25, rtol=1e-6)


def test_the_original_scores_nothing():
    original = numeric(correlated(200, 3))
    assert score(PropensityMeanSquare(), original, original).value == 0
    assert score(PropensityRatio(), original, original).value == 0


def test_squares_see_spread_and_products_see_correlation():
    original = np.array([[-1, -1], [-1, -1], [1, 1], [1, 1], [0, 0]] * 20, dtype=float)
    wider = original * 2
    turned = original * [1, -1]
    for changed in (wider, turned):
        assert score(PropensityMeanSquare(effects="main"), numeric(original), numeric(changed)).value < 1e-12
        assert score(PropensityMeanSquare(), numeric(original), numeric(changed)).value > 0.05


def test_suppression_is_seen():
    original = table_of({"x": np.arange(100.0)})
    held_back = pl.Series("x", [None if i % 2 else float(i) for i in range(100)])
    assert score(PropensityMeanSquare(), original, table_of({"x": held_back})).value > 0.05


def test_weights_are_repeated_records():
    rng = np.random.default_rng(4)
    schema = Schema((Column("x", Kind.CONTINUOUS), Column("w", Kind.CONTINUOUS, Role.WEIGHT)))
    x, y = rng.normal(size=60), rng.normal(0.5, 1.5, size=60)
    mine, theirs = np.repeat([1, 3], 30), np.tile([1, 3], 30)
    weighted = [
        Table(pl.DataFrame({"x": values, "w": counts.astype(float)}), schema)
        for values, counts in ((x, mine), (y, theirs))
    ]
    repeated = [table_of({"x": np.repeat(values, counts)}) for values, counts in ((x, mine), (y, theirs))]
    first, second = (score(PropensityMeanSquare(), *pair) for pair in (weighted, repeated))
    # The unit of a column is not weighted, but what the model spans does not depend on it.
    np.testing.assert_allclose(first.value, second.value, rtol=1e-8)
    assert first.baseline > second.baseline  # three copies of a record do not tell as much as three records


def test_redundant_columns_are_one():
    original, protected = correlated(200, 8), correlated(200, 9) + 0.2
    twice = [table_of({"a": each[:, 0], "b": each[:, 0]}) for each in (original, protected)]
    once = [table_of({"a": each[:, 0]}) for each in (original, protected)]
    first, second = score(PropensityRatio(), *twice), score(PropensityRatio(), *once)
    np.testing.assert_allclose(first.value, second.value, rtol=1e-9)
    assert first.details["terms"] == second.details["terms"] == 2


def test_terms_are_bounded_by_the_records():
    original = numeric(np.random.default_rng(1).normal(size=(60, 6)))
    protected = numeric(np.random.default_rng(2).normal(size=(60, 6)))
    found = score(PropensityMeanSquare(), original, protected)
    assert found.details["terms"] == 6  # one for each ten records
    assert found.details["terms_left_out"] == 6 + 15  # squares and products
    assert score(PropensityMeanSquare(terms=2), original, protected).details["terms"] == 2


def test_where_nothing_varies():
    constant = table_of({"x": [3.0] * 5})
    assert score(PropensityMeanSquare(), constant, constant).value == 0
    ratio = score(PropensityRatio(), constant, constant)
    assert ratio.status is Status.NOT_ESTIMABLE
    assert "varies" in ratio.reason


def test_large_tables_are_sampled_with_an_interval():
    original, protected = correlated(2000, 1), correlated(2000, 2) * 1.5
    rows = np.arange(2000)
    whole = score(PropensityMeanSquare(), numeric(original), numeric(protected), rows)
    sampled = score(PropensityMeanSquare(records=500), numeric(original), numeric(protected), rows)
    assert whole.status is Status.OK
    assert sampled.status is Status.APPROXIMATE
    assert "5 samples" in sampled.reason
    low, high = sampled.interval
    assert low < sampled.value < high
    # The sample overstates it by about the expectation of chance, no more.
    assert low - sampled.baseline < whole.value < high
    same = score(PropensityMeanSquare(records=500), numeric(original), numeric(original), rows)
    assert same.value == 0


def test_tables_without_records_and_an_original_that_is_coarse():
    original = table_of({"x": [1.0, 2.0]})
    assert score(PropensityMeanSquare(), original, original.take(np.arange(0))).status is Status.NOT_ESTIMABLE
    struct = pl.Series("x", [{"lo": 1.0, "hi": 2.0}] * 2)
    coarse = Table(pl.DataFrame([struct]), original.schema)
    refused = score(PropensityMeanSquare(), coarse, original)
    assert refused.status is Status.REFUSED
    assert "original" in refused.reason
