"""Earth mover's distance against optimal assignment, linear programming and hand-worked cases."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linear_sum_assignment, linprog
from scipy.spatial.distance import cdist

from sfumato.core.measure import Status
from sfumato.core.run import Run
from sfumato.data.evidence import Evidence
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import Table
from sfumato.utility.transport import EarthMoversDistance


def table_of(columns, kinds):
    frame = pl.DataFrame({f"c{i}": column for i, column in enumerate(columns)}, strict=False)
    return Table(frame, Schema(tuple(Column(f"c{i}", kind) for i, kind in enumerate(kinds))))


def numeric(values):
    return table_of(list(values.T), [Kind.CONTINUOUS] * values.shape[1])


def emd(original, protected, measure=None, rows=None):
    return (measure or EarthMoversDistance()).score(
        Evidence(original, protected, source_rows=rows), Run(seed=1)
    )


same_size = st.tuples(st.integers(1, 12), st.integers(1, 3)).flatmap(
    lambda shape: st.tuples(
        *(arrays(np.float64, shape, elements=st.integers(-5, 5).map(float)) for _ in range(2))
    )
)


def scaled(x, y):
    low, span = x.min(axis=0), np.ptp(x, axis=0)
    span = np.where(span > 0, span, 1.0)
    return (x - low) / span, (y - low) / span


@given(same_size)
def test_tables_of_one_size_are_an_assignment(pair):
    x, y = pair
    costs = cdist(*scaled(x, y))
    expected = costs[linear_sum_assignment(costs)].mean()
    np.testing.assert_allclose(emd(numeric(x), numeric(y)).value, expected, rtol=1e-9, atol=1e-9)


@given(
    arrays(np.float64, st.tuples(st.integers(1, 6), st.just(2)), elements=st.integers(0, 5).map(float)),
    arrays(np.float64, st.tuples(st.integers(1, 6), st.just(2)), elements=st.integers(0, 5).map(float)),
)
def test_tables_of_two_sizes_are_a_linear_programme(x, y):
    costs = cdist(*scaled(x, y))
    n, m = costs.shape
    rows = np.kron(np.eye(n), np.ones(m))
    columns = np.kron(np.ones(n), np.eye(m))
    best = linprog(
        costs.ravel(), A_eq=np.vstack([rows, columns]), b_eq=np.r_[np.full(n, 1 / n), np.full(m, 1 / m)]
    )
    np.testing.assert_allclose(emd(numeric(x), numeric(y)).value, best.fun, rtol=1e-8, atol=1e-9)


def test_by_hand():
    """One column 0…10: {0, 10} to {1, 10} moves half the mass by a tenth of the range: 0.05."""
    score = emd(numeric(np.array([[0.0], [10.0]])), numeric(np.array([[1.0], [10.0]])))
    assert score.value == pytest.approx(0.05)
    assert score.status is Status.OK


def test_only_the_same_distribution_costs_nothing():
    x = np.random.default_rng(0).normal(size=(50, 3))
    assert emd(numeric(x), numeric(x[::-1])).value == pytest.approx(0, abs=1e-12)
    assert emd(numeric(x), numeric(np.vstack([x, x]))).value == pytest.approx(0, abs=1e-12)
    assert emd(numeric(x), numeric(x + 0.001)).value > 1e-5


def test_a_suppressed_value_costs_its_whole_range():
    """Ten records, one cell suppressed of one column: a tenth of the mass moves by 1."""
    x = table_of([np.arange(10.0), np.zeros(10)], [Kind.CONTINUOUS] * 2)
    y = table_of([[None, *np.arange(1.0, 10)], np.zeros(10)], [Kind.CONTINUOUS] * 2)
    assert emd(x, y).value == pytest.approx(0.1)
    assert emd(y, y).value == pytest.approx(0, abs=1e-12)


def test_words_are_equal_or_not():
    """{a, a, b, c} to {a, b, b, c}: a quarter of the mass changes its word."""
    x = table_of([["a", "a", "b", "c"], [1.0] * 4], [Kind.NOMINAL, Kind.CONTINUOUS])
    y = table_of([["a", "b", "b", "c"], [1.0] * 4], [Kind.NOMINAL, Kind.CONTINUOUS])
    assert emd(x, y).value == pytest.approx(0.25)
    new = table_of([["a", "a", "b", "z"], [1.0] * 4], [Kind.NOMINAL, Kind.CONTINUOUS])
    assert emd(x, new).value == pytest.approx(0.25)


def test_joint_structure_counts():
    """Both columns keep their values, but the pairing is turned round: marginals alone would see 0."""
    x = np.array([[0.0, 0.0], [1.0, 1.0]] * 5)
    y = np.array([[0.0, 1.0], [1.0, 0.0]] * 5)
    assert emd(numeric(x), numeric(y)).value == pytest.approx(1.0)


def test_large_tables_are_sampled_and_say_so():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(600, 2))
    y = x + 0.3 * rng.normal(size=x.shape)
    exact = emd(numeric(x), numeric(y), rows=np.arange(600))
    rough = emd(numeric(x), numeric(y), EarthMoversDistance(records=150, draws=5), rows=np.arange(600))
    assert rough.status is Status.APPROXIMATE
    assert rough.interval[0] <= rough.value <= rough.interval[1]
    assert rough.details["records"] == 150
    assert exact.value < rough.value < 2 * exact.value  # a sample overstates it, as the docstring says


def test_triangle_inequality():
    rng = np.random.default_rng(6)
    x = rng.uniform(size=(40, 2))
    x[0], x[1] = 0.0, 1.0  # the same ranges in all three
    y, z = x.copy(), x.copy()
    y[2:], z[2:] = rng.uniform(size=(2, 38, 2))
    a, b, c = numeric(x), numeric(y), numeric(z)
    assert emd(a, c).value <= emd(a, b).value + emd(b, c).value + 1e-12
