"""Laws of the assignment: the cost of SciPy's dense solver, prices that prove it, and no false proof."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import linear_sum_assignment

from effort import examples
from sfumato.kernels.assignment import solve, solver, verify
from sfumato.kernels.assignment.costs import costs_of_all, frame

METRICS = ["euclidean", "manhattan", "chebyshev", "hamming"]

on_grid = st.integers(-2, 2).map(float)
anywhere = st.floats(-1e3, 1e3)
of_any_size = st.one_of(on_grid, st.floats(-1e12, 1e12), st.floats(-1e-9, 1e-9))


@pytest.fixture(autouse=True, scope="module")
def listed():
    """Let lists be short, as in large files, where not all pairs are listed."""
    before, solver.N_ENTRIES = solver.N_ENTRIES, 0
    yield
    solver.N_ENTRIES = before


@st.composite
def two_files(draw, elements, largest=25, *, same_size=False):
    n_columns = draw(st.integers(1, 3))
    n = draw(st.integers(1, largest))
    m = n if same_size else draw(st.integers(1, largest))
    return tuple(draw(hnp.arrays(np.float64, (size, n_columns), elements=elements)) for size in (n, m))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("n_codes", [0, 2])
def test_costs_are_distances(metric, n_codes):
    """By definition, in doubles: with numbers and codes of other weights than 1."""
    rng = np.random.default_rng(5)
    rows, columns = np.round(rng.normal(size=(40, 4)), 1), np.round(rng.normal(size=(50, 4)), 1)
    n_coded = 4 if metric == "hamming" else n_codes
    rows[:, 4 - n_coded :], columns[:, 4 - n_coded :] = (
        rng.integers(0, 2, (40, n_coded)),
        rng.integers(0, 2, (50, n_coded)),
    )
    weights = rng.uniform(0.1, 1, n_coded)
    framed = frame(rows, columns, metric, n_codes=n_codes, weights=weights)
    gaps = np.abs(rows[:, None, :] - columns[None, :, :])
    parts = gaps ** (2 if metric == "euclidean" else 1)
    parts[:, :, 4 - n_coded :] = (gaps[:, :, 4 - n_coded :] > 0) * weights
    keys = parts.max(axis=2) if metric == "chebyshev" else parts.sum(axis=2)
    distances = np.sqrt(keys) if metric == "euclidean" else keys
    np.testing.assert_allclose(
        costs_of_all(framed.space) * framed.unit, distances, atol=8 * framed.unit, rtol=1e-12
    )


@pytest.mark.parametrize("metric", METRICS)
@examples(10)
@given(seed=st.integers(0, 2**32 - 1), n_measured=st.sampled_from([0, 1, 2]))
def test_the_certificate_holds_with_codes_of_other_weights(metric, seed, n_measured):
    """Thirds, as of hierarchies of three levels: no power of two, and sums that tie but for rounding."""
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(0, 3, (550, 4)).astype(float), rng.integers(0, 3, (560, 4)).astype(float)
    weights = np.full(4 if metric == "hamming" else 4 - n_measured, 1 / 3)
    told = {"n_codes": 4 - n_measured, "weights": weights}
    found = solve(rows, columns, metric, dense=0, **told)
    costs = costs_of_all(frame(rows, columns, metric, **told).space)
    assert found.certified
    assert found.cost == int(costs[linear_sum_assignment(costs)].sum())
    assert verify(
        rows, columns, metric, found.row_prices, found.column_prices, found.partners, **told
    ).certified


def least_cost(rows, columns, metric):
    costs = costs_of_all(frame(rows, columns, metric).space)
    return int(costs[linear_sum_assignment(costs)].sum())


def assert_proved(found, rows, columns, metric):
    """Check the certificate by definition, against the matrix of all costs."""
    costs = costs_of_all(frame(rows, columns, metric).space)
    linked = np.flatnonzero(found.partners >= 0)
    its = found.partners[linked]
    assert len(set(its.tolist())) == len(linked) == min(costs.shape)
    assert (found.row_prices[:, None] + found.column_prices <= costs).all()
    np.testing.assert_array_equal(
        (found.row_prices[:, None] + found.column_prices)[linked, its], costs[linked, its]
    )
    if costs.shape[0] < costs.shape[1]:
        assert (found.column_prices <= 0).all()
    if costs.shape[0] > costs.shape[1]:
        assert (found.row_prices <= 0).all()
    assert int(found.row_prices.sum() + found.column_prices.sum()) == found.cost == found.bound
    assert found.cost == int(costs[linear_sum_assignment(costs)].sum())
    assert found.certified


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dense", [0, 1000])
@pytest.mark.parametrize("elements", [on_grid, anywhere, of_any_size], ids=["grid", "anywhere", "any size"])
@examples(40)
@given(data=st.data())
def test_the_certificate_holds(metric, dense, elements, data):
    rows, columns = data.draw(two_files(elements))
    assert_proved(solve(rows, columns, metric, dense=dense), rows, columns, metric)


@pytest.mark.parametrize("metric", METRICS)
@examples(8)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(500, 700), surplus=st.sampled_from([0, 0, -20, 30]))
def test_more_records_than_a_leaf(metric, seed, n, surplus):
    rng = np.random.default_rng(seed)
    rows, columns = rng.lognormal(size=(n, 3)), rng.lognormal(size=(n + surplus, 3))
    if seed % 2 or metric == "hamming":
        rows, columns = np.round(rows, 0), np.round(columns, 0)
    assert_proved(solve(rows, columns, metric, dense=0), rows, columns, metric)


@examples(60)
@given(files=two_files(st.one_of(on_grid, anywhere), 15), data=st.data())
def test_radii(files, data):
    rows, columns = files
    costs = costs_of_all(frame(rows, columns, "euclidean").space).astype(np.float64)
    distances = costs * frame(rows, columns, "euclidean").unit
    chosen = data.draw(hnp.arrays(np.int64, len(rows), elements=st.integers(0, len(columns) - 1)))
    radii = distances[np.arange(len(rows)), chosen]  # ties with the radius itself are the hard case
    for dense in (0, 1000):
        found = solve(rows, columns, "euclidean", radii=radii, dense=dense)
        allowed = np.where(distances <= radii[:, None] * (1 + 1e-12), costs, np.inf)
        try:
            least = allowed[linear_sum_assignment(allowed)].sum()
        except ValueError:  # there is no complete matching
            assert not found.complete
            assert not found.certified
        else:
            assert found.certified
            assert found.cost == least


@examples(40)
@given(files=two_files(st.one_of(on_grid, anywhere), 30), limit=st.integers(0, 6))
def test_an_interrupted_run_is_bounded_and_never_certified_wrongly(files, limit):
    rows, columns = files
    found = solve(rows, columns, "euclidean", dense=0, limit=limit)
    least = least_cost(rows, columns, "euclidean")
    assert found.complete
    assert found.bound <= least <= found.cost
    assert found.certified == (found.gap == 0) or found.cost == least
    if found.certified:
        assert found.cost == least


@examples(60)
@given(files=two_files(st.one_of(on_grid, anywhere), 12), data=st.data())
def test_verify_agrees_with_the_definition_on_tampered_prices(files, data):
    rows, columns = files
    metric = data.draw(st.sampled_from(METRICS))
    found = solve(rows, columns, metric)
    costs = costs_of_all(frame(rows, columns, metric).space)
    changes = st.sampled_from([0, 0, 0, 0, 0, 1, -1, 7])
    row_prices = found.row_prices + data.draw(hnp.arrays(np.int64, len(rows), elements=changes))
    column_prices = found.column_prices + data.draw(hnp.arrays(np.int64, len(columns), elements=changes))
    verdict = verify(rows, columns, metric, row_prices, column_prices, found.partners)
    over = row_prices[:, None] + column_prices > costs
    is_feasible = not over.any()
    if len(rows) < len(columns):
        is_feasible &= bool((column_prices <= 0).all())
    if len(rows) > len(columns):
        is_feasible &= bool((row_prices <= 0).all())
    assert verdict.is_feasible == is_feasible
    assert (verdict.n_violated > 0) == bool(over.any())
    assert verdict.bound <= found.cost
    unchanged = np.array_equal(row_prices, found.row_prices) and np.array_equal(
        column_prices, found.column_prices
    )
    assert verdict.certified or not unchanged
    if verdict.certified:  # then they are prices of the same optimum, and prove it as well
        assert is_feasible
        assert int(row_prices.sum() + column_prices.sum()) == found.cost


@pytest.mark.parametrize("metric", METRICS)
@examples(25)
@given(files=two_files(on_grid, 30, same_size=True), seed=st.integers(0, 1000))
def test_order_does_not_change_the_cost(metric, files, seed):
    rows, columns = files
    rng = np.random.default_rng(seed)
    found = solve(rows, columns, metric, dense=0)
    shuffled = solve(
        rows[rng.permutation(len(rows))], columns[rng.permutation(len(columns))], metric, dense=0
    )
    assert shuffled.cost == found.cost
