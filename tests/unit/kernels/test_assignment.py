"""Assignment on small cases whose answer is worked out or given by SciPy's dense solver."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from sfumato.kernels.assignment import solve, verify
from sfumato.kernels.assignment.costs import costs_of_all, frame

PATHS = [0, 1000]  # as if the files were large, and by the matrix of all costs


def least_cost(rows, columns, metric, n_codes=0):
    costs = costs_of_all(frame(rows, columns, metric, n_codes=n_codes).space)
    return int(costs[linear_sum_assignment(costs)].sum())


@pytest.fixture
def listed(monkeypatch):
    """Let lists be short, as in large files, where not all pairs are listed."""
    monkeypatch.setattr("sfumato.kernels.assignment.solver.N_ENTRIES", 0)


@pytest.mark.parametrize("dense", PATHS)
def test_first_example_of_the_paper(dense):
    original = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    protected = np.array([[0.0, 0.0], [0.0, 2.1], [-2.1, 0.0], [0.0, -2.1]])
    found = solve(original, protected, "euclidean", dense=dense)
    assert found.partners.tolist() == [0, 1, 2, 3]
    assert found.certified
    assert found.distance == pytest.approx(1 + 3 * 1.1, abs=1e-9)


@pytest.mark.parametrize("dense", PATHS)
def test_second_example_of_the_paper(dense):
    original, protected = np.array([[1.0], [2.0], [3.0], [4.0]]), np.array([[2.0], [3.0], [4.0], [-0.1]])
    found = solve(original, protected, "euclidean", dense=dense)
    # v1 is linked to v'4, the others to the record at their own place: no link is right.
    assert found.partners.tolist() == [3, 0, 1, 2]
    assert found.certified
    assert found.distance == pytest.approx(1.1, abs=1e-9)


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "hamming"])
@pytest.mark.parametrize(
    ("n", "m"), [(1, 1), (2, 2), (1, 5), (5, 1), (40, 40), (40, 55), (55, 40), (700, 700)]
)
@pytest.mark.parametrize("dense", PATHS)
@pytest.mark.usefixtures("listed")
def test_cost_equals_the_dense_solvers(metric, n, m, dense):
    rng = np.random.default_rng(n + 7 * m)
    rows, columns = rng.normal(size=(n, 3)), rng.normal(size=(m, 3))
    if metric == "hamming":
        rows, columns = np.round(rows), np.round(columns)
    found = solve(rows, columns, metric, dense=dense)
    assert found.cost == least_cost(rows, columns, metric)
    assert found.certified
    assert found.gap == 0
    linked = found.partners[found.partners >= 0]
    assert len(linked) == len(set(linked.tolist())) == min(n, m)


@pytest.mark.usefixtures("listed")
@pytest.mark.parametrize("n_codes", [1, 2, 3])
@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_numbers_and_codes_together(metric, n_codes):
    rng = np.random.default_rng(n_codes)
    rows, columns = rng.normal(size=(200, 3)), rng.normal(size=(200, 3))
    for values in (rows, columns):
        values[:, 3 - n_codes :] = np.round(values[:, 3 - n_codes :])
    found = solve(rows, columns, metric, n_codes=n_codes, dense=0)
    assert found.certified
    assert found.cost == least_cost(rows, columns, metric, n_codes)
    differences = np.abs(rows - columns[found.partners])
    differences[:, 3 - n_codes :] = differences[:, 3 - n_codes :] != 0
    total = differences.sum() if metric == "manhattan" else np.sqrt((differences**2).sum(axis=1)).sum()
    assert found.distance == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize("dense", PATHS)
@pytest.mark.parametrize(("n", "m"), [(0, 0), (0, 3), (3, 0)])
def test_empty_files(n, m, dense):
    found = solve(np.zeros((n, 2)), np.zeros((m, 2)), "euclidean", dense=dense)
    assert found.partners.tolist() == [-1] * n
    assert found.certified
    assert found.cost == 0


@pytest.mark.parametrize("dense", PATHS)
@pytest.mark.parametrize("n_columns", [0, 1, 2])
def test_all_records_equal(n_columns, dense):
    found = solve(np.full((30, n_columns), 7.25), np.full((30, n_columns), 7.25), "euclidean", dense=dense)
    assert sorted(found.partners.tolist()) == list(range(30))
    assert found.certified
    assert found.cost == 0


@pytest.mark.usefixtures("listed")
@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1.0, 1e12, 1e300])
@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_distances_of_any_size(scale, metric):
    rng = np.random.default_rng(3)
    rows, columns = rng.normal(size=(150, 2)), rng.normal(size=(150, 2))
    found = solve(rows * scale, columns * scale, metric, dense=0)
    assert found.certified
    assert found.distance / scale == pytest.approx(solve(rows, columns, metric).distance, rel=1e-9)


@pytest.mark.usefixtures("listed")
def test_far_from_zero():
    rng = np.random.default_rng(4)
    rows, columns = rng.integers(-50, 50, size=(150, 2)) / 8.0, rng.integers(-50, 50, size=(150, 2)) / 8.0
    found = solve(rows + 1e8, columns + 1e8, "euclidean", dense=0)
    assert found.certified
    assert found.distance == pytest.approx(solve(rows, columns, "euclidean").distance, rel=1e-11)


@pytest.mark.usefixtures("listed")
def test_one_record_far_away_from_all_others():
    """Single precision tells near records apart even beside one that is a million times farther."""
    rng = np.random.default_rng(5)
    rows, columns = rng.normal(size=(300, 3)), rng.normal(size=(300, 3))
    rows[7], columns[11] = 1e6, -1e6
    found = solve(rows, columns, "euclidean", dense=0)
    assert found.certified
    assert found.cost == least_cost(rows, columns, "euclidean")


@pytest.mark.parametrize("dense", PATHS)
@pytest.mark.usefixtures("listed")
def test_identical_records_are_one_row_with_many_units(dense):
    rng = np.random.default_rng(6)
    rows = rng.integers(0, 4, size=(400, 2)).astype(np.float64)
    columns = rng.integers(0, 5, size=(400, 2)).astype(np.float64)
    found = solve(rows, columns, "euclidean", dense=dense)
    assert found.certified
    assert found.cost == least_cost(rows, columns, "euclidean")
    assert sorted(found.partners.tolist()) == list(range(400))


def test_lines_are_sorted(monkeypatch):
    monkeypatch.setattr("sfumato.kernels.assignment.assign.Solver", None)  # not needed
    rng = np.random.default_rng(7)
    rows, columns = rng.normal(size=(5000, 1)), rng.lognormal(size=(5000, 1))
    found = solve(rows, columns, "manhattan")
    assert found.certified
    assert found.distance == pytest.approx(
        np.abs(np.sort(rows[:, 0]) - np.sort(columns[:, 0])).sum(), rel=1e-9
    )


def test_more_records_than_the_dense_solver_is_asked_for():
    rng = np.random.default_rng(8)
    rows = rng.lognormal(size=(2500, 5))
    columns = (rows + 0.2 * rng.normal(size=rows.shape))[rng.permutation(2500)]
    found = solve(rows, columns, "euclidean")
    assert found.certified
    assert found.cost == least_cost(rows, columns, "euclidean")


@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_whole_numbers_with_many_equal_distances(metric):
    """Of columns equally far, those that a search finds may all be known: it must look for more."""
    rng = np.random.default_rng(0)
    rows = np.round(2.2 * rng.normal(size=(3000, 4)))
    columns = np.clip(rows + rng.integers(-1, 2, rows.shape), -9, 9)
    found = solve(rows, columns, metric)
    assert found.certified
    assert found.cost == least_cost(rows, columns, metric)


def test_memory_layout_does_not_matter():
    rng = np.random.default_rng(9)
    rows, columns = rng.normal(size=(100, 3)), rng.normal(size=(100, 3))
    by_column = np.asfortranarray(rows)
    by_column.flags.writeable = False
    for dense in PATHS:
        expected = solve(rows, columns, "euclidean", dense=dense).partners
        np.testing.assert_array_equal(solve(by_column, columns, "euclidean", dense=dense).partners, expected)


@pytest.mark.parametrize("dense", PATHS)
@pytest.mark.usefixtures("listed")
@pytest.mark.parametrize(("n", "m"), [(120, 120), (100, 120), (120, 100)])
def test_radii_forbid_pairs(n, m, dense):
    rng = np.random.default_rng(10)
    while True:  # until the radius forbids what is best, but not all
        rows, columns = rng.normal(size=(n, 2)), rng.normal(size=(m, 2))
        distances = np.sqrt(((rows[:, None] - columns[None]) ** 2).sum(axis=2))
        radii = np.full(n, 0.95 * distances[linear_sum_assignment(distances)].max())
        allowed = np.where(distances <= radii[:, None], distances, 1e6)
        least = allowed[linear_sum_assignment(allowed)].sum()
        if least < 1e6:
            break
    found = solve(rows, columns, "euclidean", radii=radii, dense=dense)
    assert found.certified
    assert found.complete
    assert found.distance == pytest.approx(least, rel=1e-9)
    assert found.distance > solve(rows, columns, "euclidean", dense=dense).distance


@pytest.mark.parametrize("dense", PATHS)
@pytest.mark.usefixtures("listed")
def test_radii_that_the_optimum_keeps_change_nothing(dense):
    rng = np.random.default_rng(11)
    rows, columns = rng.normal(size=(80, 2)), rng.normal(size=(80, 2))
    free = solve(rows, columns, "euclidean", dense=dense)
    radii = np.sqrt(((rows - columns[free.partners]) ** 2).sum(axis=1))
    found = solve(rows, columns, "euclidean", radii=radii, dense=dense)
    assert found.certified
    np.testing.assert_array_equal(found.partners, free.partners)


@pytest.mark.parametrize("dense", PATHS)
@pytest.mark.usefixtures("listed")
def test_radii_that_allow_no_complete_matching(dense):
    rows = np.array([[0.0], [0.1], [0.2], [9.0]])
    columns = np.array([[0.0], [0.1], [9.0], [9.1]])
    found = solve(rows, columns, "euclidean", radii=np.full(4, 1.0), dense=dense)
    assert not found.complete
    assert not found.certified
    assert (found.partners >= 0).sum() == 3
    none = solve(rows, columns + 50.0, "euclidean", radii=np.full(4, 1.0), dense=dense)
    assert none.partners.tolist() == [-1] * 4
    assert not none.complete


@pytest.mark.usefixtures("listed")
def test_a_limit_leaves_a_matching_and_a_bound():
    rng = np.random.default_rng(12)
    rows, columns = rng.normal(size=(600, 3)), rng.normal(size=(600, 3))
    least = least_cost(rows, columns, "euclidean")
    found = solve(rows, columns, "euclidean", dense=0, limit=2)
    assert not found.certified
    assert found.complete
    assert sorted(found.partners.tolist()) == list(range(600))
    assert found.bound <= least <= found.cost
    assert found.gap > 0


@pytest.mark.usefixtures("listed")
def test_ticks_rise_and_do_not_change_the_answer():
    rng = np.random.default_rng(13)
    rows, columns = rng.normal(size=(700, 3)), rng.normal(size=(700, 3))
    ticks = []
    found = solve(rows, columns, "euclidean", dense=0, tick=lambda done, total: ticks.append((done, total)))
    np.testing.assert_array_equal(found.partners, solve(rows, columns, "euclidean", dense=0).partners)
    done = [count for count, _ in ticks]
    assert len(done) > 5
    assert done == sorted(done)
    assert all(0 <= count <= total for count, total in ticks)


@pytest.mark.usefixtures("listed")
def test_a_tick_can_cancel():
    def stop(done, total):
        raise KeyboardInterrupt

    rng = np.random.default_rng(14)
    with pytest.raises(KeyboardInterrupt):
        solve(rng.normal(size=(700, 3)), rng.normal(size=(700, 3)), "euclidean", dense=0, tick=stop)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"metric": "cosine"}, "`metric` must be"),
        ({"columns": np.zeros((3, 4))}, "as many attributes"),
        ({"columns": np.full((3, 2), np.nan)}, "finite"),
        ({"n_codes": 3}, "`n_codes` must be from 0 to 2"),
        ({"radii": np.zeros(2)}, "`radii` must be one number for each of the 3 rows"),
        ({"radii": np.full(3, np.nan)}, "`radii` must be"),
    ],
)
def test_refusals(change, message):
    arguments = {"rows": np.zeros((3, 2)), "columns": np.zeros((3, 2)), "metric": "euclidean"} | change
    with pytest.raises(ValueError, match=message):
        solve(**arguments)


def verdict_of(found, rows, columns, **changed):
    parts = {"row_prices": found.row_prices, "column_prices": found.column_prices, "partners": found.partners}
    return verify(rows, columns, "euclidean", **(parts | changed))


@pytest.fixture
def solved():
    rng = np.random.default_rng(15)
    rows, columns = rng.normal(size=(90, 3)), rng.normal(size=(90, 3))
    return rows, columns, solve(rows, columns, "euclidean")


def test_verify_accepts_what_is_solved(solved):
    rows, columns, found = solved
    verdict = verdict_of(found, rows, columns)
    assert verdict.certified
    assert verdict.n_violated == 0
    assert verdict.cost == verdict.bound == found.row_prices.sum() + found.column_prices.sum()


@pytest.mark.parametrize("side", ["row_prices", "column_prices"])
@pytest.mark.parametrize("change", [-1, 1])
def test_verify_rejects_a_price_that_is_off_by_one(solved, side, change):
    rows, columns, found = solved
    prices = getattr(found, side).copy()
    prices[17] += change
    verdict = verdict_of(found, rows, columns, **{side: prices})
    assert not verdict.certified
    assert verdict.is_feasible == (change < 0)
    assert not verdict.is_tight
    assert verdict.bound <= found.cost


def test_verify_rejects_partners_that_were_exchanged(solved):
    rows, columns, found = solved
    partners = found.partners.copy()
    partners[[3, 4]] = partners[[4, 3]]
    verdict = verdict_of(found, rows, columns, partners=partners)
    assert verdict.is_matching
    assert verdict.is_feasible
    assert not verdict.is_tight
    assert not verdict.certified


@pytest.mark.parametrize("partner", [-1, -2, 90, "twice"])
def test_verify_rejects_what_is_no_matching(solved, partner):
    rows, columns, found = solved
    partners = found.partners.copy()
    partners[3] = partners[4] if partner == "twice" else partner
    verdict = verdict_of(found, rows, columns, partners=partners)
    assert not verdict.is_matching
    assert not verdict.certified


def test_verify_rejects_prices_that_hold_only_on_near_pairs():
    """The optimum over the five nearest columns of each row, with its prices: feasible on all pairs listed."""
    rng = np.random.default_rng(16)
    rows, columns = rng.normal(size=(60, 4)), 0.3 * rng.normal(size=(60, 4))
    costs = costs_of_all(frame(rows, columns, "euclidean").space)
    nearest = np.argsort(costs, axis=1)[:, :5]
    radii = np.full(60, np.inf)
    far = costs.max() * 3
    listed = np.full(costs.shape, far)
    np.put_along_axis(listed, nearest, np.take_along_axis(costs, nearest, axis=1), axis=1)
    linked, its = linear_sum_assignment(listed)
    prices = np.zeros(60, dtype=np.int64)
    for _ in range(200):  # shortest paths over the exchanges that are listed
        offers = prices[its][:, None] + listed - listed[linked, its][:, None]
        prices = np.minimum(prices, offers.min(axis=0))
    row_prices = listed[linked, its] - prices[its]
    assert (row_prices[:, None] + prices <= listed).all()
    verdict = verify(rows, columns, "euclidean", row_prices, prices, its, radii=radii)
    assert not verdict.certified
    assert verdict.n_violated == int((row_prices[:, None] + prices > costs).sum()) > 0


@pytest.mark.parametrize("seed", range(4))
def test_the_bound_of_a_verdict_is_a_bound_whatever_the_prices(seed):
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 60, size=2)
    rows, columns = np.round(rng.normal(size=(n, 2)), 1), np.round(rng.normal(size=(m, 2)), 1)
    top = least_cost(rows, columns, "euclidean")
    row_prices, column_prices = (
        rng.integers(-top - 1, top + 1, size=n),
        rng.integers(-top - 1, top + 1, size=m),
    )
    verdict = verify(rows, columns, "euclidean", row_prices, column_prices, np.full(n, -1))
    assert verdict.bound <= top
    assert not verdict.certified


def test_verify_wants_one_price_for_each_record():
    with pytest.raises(ValueError, match="one for each record"):
        verify(np.zeros((3, 1)), np.zeros((3, 1)), "euclidean", np.zeros(2), np.zeros(3), np.arange(3))


def test_radii_of_much_noise_push_rows_off_their_columns_along_paths_of_others():
    rng = np.random.default_rng(1)
    rows, columns = rng.normal(size=(2100, 3)), np.repeat(3 * rng.normal(size=(140, 3)), 15, axis=0)
    radii = np.linalg.norm(rows - columns, axis=1)
    found = solve(rows, columns, "euclidean", radii=radii, dense=0)
    space = frame(rows, columns, "euclidean")
    costs = costs_of_all(space.space).astype(np.float64)
    costs[costs > radii[:, None] / space.unit + 1.5] = np.inf
    assert found.certified
    assert found.cost == costs[linear_sum_assignment(costs)].sum()


def test_rows_that_radii_leave_too_few_columns_do_not_price_them_out_of_bounds():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(2100, 3))
    columns = rows + 0.01 * rng.normal(size=rows.shape)
    rows[:60], columns[:40], columns[40:60] = 100 + rows[:60] / 100, 100 + columns[:40] / 100, -100.0
    radii = np.full(2100, 0.5)
    found = solve(rows, columns, "euclidean", radii=radii, dense=0)
    linked = np.flatnonzero(found.partners >= 0)
    assert not found.complete
    assert len(np.unique(found.partners[linked])) == len(linked) >= 2000
    assert np.linalg.norm(rows[linked] - columns[found.partners[linked]], axis=1).max() <= 0.5
    assert np.abs(found.column_prices).max() < 2**60
