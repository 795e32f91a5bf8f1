"""Covers by listed pairs, nearest records, and searches that pause: against all pairs and SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from sfumato.kernels import assignment
from sfumato.kernels.assignment import covers, solver

PENALTY = 10**6


def dense_costs(rows, columns, costs, supplies, rooms):
    """Every unit a row of its own, and a dummy for each that may stay alone."""
    matrix = np.full((len(supplies), len(rooms)), 2 * PENALTY)
    matrix[rows, columns] = costs
    units = np.repeat(np.repeat(matrix, supplies, axis=0), rooms, axis=1)
    alone = np.full((units.shape[0], units.shape[0]), PENALTY)
    return np.hstack((units, alone))


@given(st.integers(0, 10**6), st.integers(1, 7), st.integers(1, 7), st.floats(0, 1))
def test_covers_are_those_of_scipy(seed, n, m, share):
    rng = np.random.default_rng(seed)
    rows, columns = np.nonzero(rng.random((n, m)) < share)
    costs = rng.integers(0, 4, len(rows))
    supplies, rooms = rng.integers(1, 4, n), rng.integers(1, 4, m)
    found = assignment.cover(rows, columns, costs, supplies, rooms, PENALTY)
    placed = np.bincount(found.rows, found.units, minlength=n)
    filled = np.bincount(found.columns, found.units, minlength=m)
    assert (placed <= supplies).all()
    assert (filled <= rooms).all()
    cost_of = dict(zip(zip(rows.tolist(), columns.tolist(), strict=True), costs.tolist(), strict=True))
    flows = list(zip(found.rows.tolist(), found.columns.tolist(), found.units.tolist(), strict=True))
    total = sum(cost_of[i, j] * units for i, j, units in flows)
    total += PENALTY * int((supplies - placed).sum())
    matrix = dense_costs(rows, columns, costs, supplies, rooms)
    assert total == matrix[linear_sum_assignment(matrix)].sum()
    u, v = found.row_prices, found.column_prices
    assert (u[rows] + v[columns] <= costs).all()
    assert all(u[i] + v[j] == cost_of[i, j] for i, j, _ in flows)
    assert (u <= PENALTY).all()
    assert (u[placed < supplies] == PENALTY).all()
    assert (v <= 0).all()
    assert not v[filled < rooms].any()
    assert u @ supplies + v @ rooms == total


def test_a_cover_goes_on_after_a_pause(monkeypatch):
    rng = np.random.default_rng(2)
    rows, columns = np.nonzero(rng.random((60, 60)) < 0.1)
    costs = rng.integers(0, 50, len(rows))
    ones = np.ones(60, dtype=np.int64)
    whole = assignment.cover(rows, columns, costs, ones, ones, PENALTY)
    monkeypatch.setattr(covers, "SCANS", 1)
    n_beats = 0

    def beat():
        nonlocal n_beats
        n_beats += 1

    paused = assignment.cover(rows, columns, costs, ones, ones, PENALTY, beat=beat)
    assert n_beats > 10
    assert paused.row_prices.sum() + paused.column_prices.sum() == (
        whole.row_prices.sum() + whole.column_prices.sum()
    )


@pytest.mark.parametrize("scans", [1, 2000])
def test_searches_that_pause_come_to_an_end_on_duplicates(monkeypatch, scans):
    """Each call went on with the first row that was left, so that the last were never reached."""
    monkeypatch.setattr(solver, "SCANS", scans)
    monkeypatch.setattr(solver, "N_ENTRIES", 0)
    monkeypatch.setattr(solver, "MAX_BIDS", 1)  # leave as much as can be to the paths
    rng = np.random.default_rng(5)
    rows = rng.lognormal(size=(60, 3)).round(1)[rng.integers(0, 60, 300)]
    columns = rows + rng.normal(size=rows.shape).round(1)
    found = assignment.solve(rows, columns[rng.permutation(300)], "euclidean", dense=0)
    assert found.certified
    costs = cdist(rows, columns)
    assert found.distance == pytest.approx(costs[linear_sum_assignment(costs)].sum(), rel=1e-9)


@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 40), st.integers(0, 2))
def test_nearest_are_the_nearest(seed, n, m, n_codes):
    rng = np.random.default_rng(seed)
    numbers = [rng.normal(size=(size, 2)) for size in (n, m)]
    codes = [rng.integers(0, 3, size=(size, n_codes)).astype(float) for size in (n, m)]
    rows, columns = (np.hstack(pair) for pair in zip(numbers, codes, strict=True))
    k = int(rng.integers(1, m + 1))
    found = assignment.nearest(rows, columns, "euclidean", k, n_codes=n_codes)
    squares = ((numbers[0][:, None] - numbers[1][None]) ** 2).sum(axis=2)
    squares += (codes[0][:, None] != codes[1][None]).sum(axis=2)
    assert all(len(set(each.tolist())) == k for each in found)
    farthest = np.take_along_axis(squares, found, axis=1).max(axis=1)
    np.testing.assert_allclose(farthest, np.sort(squares, axis=1)[:, k - 1], rtol=1e-5, atol=1e-9)


def test_nearest_of_nobody():
    assert assignment.nearest(np.empty((0, 2)), np.ones((3, 2)), "euclidean", 1).shape == (0, 1)
    assert assignment.nearest(np.ones((2, 2)), np.ones((3, 2)), "euclidean", 0).shape == (2, 0)
