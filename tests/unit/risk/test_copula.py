"""Copula risk: closed forms, integrals against scipy, and samples of populations that are known."""

import math

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.run import Run
from sfumato.data.classes.classes import Classes
from sfumato.data.schema import Kind, Role
from sfumato.risk import _latent_normal as latent
from sfumato.risk._cells import ContingencyCells
from sfumato.risk.copula import CopulaRisk
from toys import table_of

NOMINAL, CONTINUOUS = Kind.NOMINAL, Kind.CONTINUOUS


def score_of(columns, kind=CONTINUOUS, **parameters):
    kinds = dict.fromkeys(columns, kind)
    return CopulaRisk(**parameters).score(Evidence(table_of(columns, **kinds)), Run(seed=1))


def cells_of(columns, kind=CONTINUOUS):
    table = table_of(columns, **dict.fromkeys(columns, kind))
    return ContingencyCells.of(Classes.of(table, table.names))


def test_one_key_is_a_closed_form():
    """Nothing is integrated: p is the share of the value."""
    score = score_of({"age": [1] * 15 + [2] * 4 + [3]}, population_size=29)
    assert score.by_record.tolist() == pytest.approx([0] * 19 + [0.95**28])
    match = score_of({"age": [1] * 15 + [2] * 4 + [3]}, population_size=29, chance="match")
    assert match.by_record[-1] == pytest.approx((1 - 0.95**29) / (29 * 0.05))
    expected = sum(1 - (1 - p) ** 29 for p in (0.75, 0.2, 0.05)) / 29
    assert match.value == pytest.approx(expected, rel=0.01)
    assert score.details["population_uniques"] == pytest.approx(29 * score.value)


def test_bivariate_normal():
    for correlation in (-0.95, -0.3, 0.0, 0.6, 0.99):
        normal = multivariate_normal(cov=[[1, correlation], [correlation, 1]])
        for point in ((0.0, 0.0), (-1.2, 0.4), (2.0, 1.9), (0.3, -2.5)):
            found = latent.bivariate(np.array(point[0]), np.array(point[1]), correlation)
            assert float(found) == pytest.approx(float(normal.cdf(point)), abs=1e-6)
    rectangles = latent.rectangles(np.array([-9.0, 0, 9]), np.array([-9.0, 0, 9]), 0.5)
    assert rectangles[0, 0] == pytest.approx(0.25 + math.asin(0.5) / (2 * math.pi))  # Sheppard's formula
    assert rectangles.sum() == pytest.approx(1)


def test_boxes():
    """Against scipy's integrals in three dimensions; all boxes together are certain."""
    correlations = np.array([[1, 0.6, -0.3], [0.6, 1, 0.1], [-0.3, 0.1, 1]])
    edges = tuple(np.array([-9.0, *cuts, 9.0]) for cuts in ((-0.5, 0.8), (0.1,), (-1.0, 1.2)))
    model = latent.LatentNormal(edges, correlations)
    codes = np.stack(np.meshgrid(range(3), range(2), range(3), indexing="ij"), axis=-1).reshape(-1, 3)
    found = model.chances(codes, Run(seed=1))
    assert found.sum() == pytest.approx(1, abs=2e-3)
    normal = multivariate_normal(cov=correlations)
    for place, chance in zip(codes, found, strict=True):
        low, high = (np.array([edges[key][code + end] for key, code in enumerate(place)]) for end in (0, 1))
        assert chance == pytest.approx(float(normal.cdf(high, lower_limit=low)), rel=0.02, abs=1e-4)


@pytest.mark.parametrize("correlation", [-0.8, 0.0, 0.5])
def test_the_correlation_is_found(correlation):
    rng = np.random.default_rng(1)
    drawn = rng.multivariate_normal([0, 0], [[1, correlation], [correlation, 1]], 20_000)
    columns = {"a": np.round(drawn[:, 0] * 3).tolist(), "b": (drawn[:, 1] > 0.4).tolist()}
    model = latent.LatentNormal.fit(cells_of(columns), Run(seed=1))
    assert model.correlations[0, 1] == pytest.approx(correlation, abs=0.04)


def test_values_without_an_order_are_put_into_one():
    """Ages under other names: what is unique does not depend on the names."""
    rng = np.random.default_rng(2)
    drawn = rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], 3000)
    ages, sizes = (np.clip(np.round(column * 3), -8, 8).astype(int) for column in drawn.T)
    renamed = rng.permutation(20)[ages + 8]
    kinds = {"age": NOMINAL, "size": CONTINUOUS}
    values = []
    for column in (ages, renamed):
        table = table_of({"age": column.tolist(), "size": sizes.tolist()}, **kinds)
        values.append(CopulaRisk(fraction=0.1).score(Evidence(table), Run(seed=1)).value)
    assert values[0] == pytest.approx(values[1], rel=0.05)
    cells = cells_of({"age": renamed.tolist(), "size": sizes.tolist()})
    found = latent.LatentNormal.fit(
        latent.order_unordered_keys(cells, [True, False]), Run(seed=1)
    ).correlations[0, 1]
    assert abs(found) == pytest.approx(0.8, abs=0.05)


def test_neither_order_nor_seed_matters():
    rng = np.random.default_rng(3)
    first, second = rng.integers(0, 5, 200), rng.integers(0, 4, 200)
    columns = {"a": first.tolist(), "b": (second + first // 2).tolist(), "c": second.tolist()}
    score = score_of(columns, NOMINAL, fraction=0.1)
    turned = {name: values[::-1] for name, values in reversed(columns.items())}
    table = table_of(turned, **dict.fromkeys(turned, NOMINAL))
    again = CopulaRisk(fraction=0.1).score(Evidence(table), Run(seed=2))
    assert again.value == pytest.approx(score.value, rel=1e-9)
    assert again.by_record[::-1] == pytest.approx(score.by_record, rel=1e-9)


def test_a_population_drawn_from_the_model():
    """Mean error over samples of 5 % of the share that is unique; values that were not drawn are not seen."""
    errors = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        cov = np.array([[1, 0.7, 0.2], [0.7, 1, -0.4], [0.2, -0.4, 1]])
        people = np.round(rng.multivariate_normal([0, 0, 0], cov, 20_000) * [6, 4, 5]).astype(int)
        _, of_person, counts = np.unique(people, axis=0, return_inverse=True, return_counts=True)
        truth = (counts[of_person[:1000]] == 1).mean()
        columns = dict(zip("abc", people[:1000].T.tolist(), strict=True))
        errors.append(score_of(columns, fraction=0.05).value - truth)
    assert -0.04 < np.mean(errors) < 0.01


def test_thirty_keys_all_unique():
    rng = np.random.default_rng(1)
    columns = {f"k{place}": rng.integers(0, 3, 40).tolist() for place in range(30)}
    score = score_of(columns, NOMINAL, fraction=0.01)
    assert score.status is Status.APPROXIMATE
    assert 0.9 < score.value <= 1


@pytest.mark.parametrize("n", [1, 40])
def test_values_of_ones_own(n):
    """Whoever is drawn next has a value that nobody had: the model would know nothing of it."""
    score = score_of({"age": list(range(n)), "sex": [1] * n}, fraction=0.1)
    assert score.status is Status.NOT_ESTIMABLE
    assert "nobody else has" in score.reason


def test_the_ends():
    alike = score_of({"a": [1] * 9, "b": [2] * 9}, fraction=0.5)
    assert alike.value == 0
    assert score_of({"a": [1, None]}, fraction=0.5, missing="any").status is Status.NOT_ESTIMABLE
    worst = score_of({"a": [1, 1, 2, 2, None, None]}, fraction=0.5, missing="worst")
    assert worst.by_record.tolist() == [0, 0, 0, 0, 1, 1]
    assert worst.value >= 1 / 3
    table = table_of({"a": [1, 2], "w": [0.1, 0.1]}, a=CONTINUOUS, w=(CONTINUOUS, Role.WEIGHT))
    assert CopulaRisk().score(Evidence(table), Run(seed=1)).status is Status.NOT_ESTIMABLE
