"""Distribution functions on a line against SciPy, and partial transport against linear programming."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import wasserstein_distance

from sfumato.kernels.distributions import LineMasses, gap, half_area_of_part

NONE = np.zeros(0)


def line(points, masses=None, n=None):
    points = np.asarray(points, dtype=np.float64)
    order = np.argsort(points, kind="stable")
    if masses is None:
        return LineMasses(points[order], NONE, n or max(len(points), 1))
    return LineMasses(
        points[order], np.concatenate(([0.0], np.cumsum(np.asarray(masses)[order]))), n or len(points)
    )


def masses_of(one):
    return np.diff(one.sums) if len(one.sums) else np.full(len(one.points), 1 / one.n)


def extremes(first, second):
    """D at every point of either, by counting; 0 before all of them."""
    grid = np.concatenate((first.points, second.points))
    levels = [
        masses_of(first)[first.points <= t].sum() - masses_of(second)[second.points <= t].sum() for t in grid
    ]
    return max([0.0, *levels]), min([0.0, *levels])


points = st.lists(st.integers(-6, 6).map(float), min_size=1, max_size=12)


@given(points, points)
def test_the_gap_of_equal_masses(x, y):
    first, second = line(x), line(y)
    found = gap(first, second)
    assert (found.highest, found.lowest) == pytest.approx(extremes(first, second), abs=1e-12)
    assert 2 * found.half_area == pytest.approx(wasserstein_distance(x, y), abs=1e-12)


@given(st.data(), points, points)
def test_the_gap_of_any_masses(data, x, y):
    masses = [
        np.array(data.draw(st.lists(st.floats(0.01, 1), min_size=len(each), max_size=len(each))))
        for each in (x, y)
    ]
    masses = [each / each.sum() for each in masses]
    first, second = line(x, masses[0]), line(y, masses[1])
    found = gap(first, second)
    assert (found.highest, found.lowest) == pytest.approx(extremes(first, second), abs=1e-12)
    assert 2 * found.half_area == pytest.approx(wasserstein_distance(x, y, *masses), abs=1e-12)


def least_work(first, second):
    """Move all of the smaller mass, as cheaply as can be; what is left of the greater costs nothing."""
    if masses_of(first).sum() < masses_of(second).sum():
        first, second = second, first
    costs = np.abs(first.points[:, None] - second.points[None, :])
    n, m = costs.shape
    best = linprog(
        costs.ravel(),
        A_ub=np.kron(np.eye(n), np.ones(m)), b_ub=masses_of(first),
        A_eq=np.kron(np.ones(n), np.eye(m)), b_eq=masses_of(second),
    )  # fmt: skip
    assert best.status == 0
    return best.fun


@given(points, points, st.integers(0, 5))
def test_part_of_equal_masses(x, y, more):
    """As many records, of which some are at no point: whole levels."""
    n = max(len(x), len(y)) + more
    first, second = line(x, n=n), line(y, n=n)
    assert 2 * half_area_of_part(first, second) == pytest.approx(least_work(first, second), abs=1e-9)


@given(points, points, st.integers(0, 5), st.integers(0, 5))
def test_part_of_any_masses(x, y, more, many):
    first, second = line(x, n=len(x) + more), line(y, n=len(y) + many)
    assert 2 * half_area_of_part(first, second) == pytest.approx(least_work(first, second), abs=1e-9)


def test_part_by_hand():
    """Three of four at 0, 1, 10 against one of four at 9: the one at 10 stays, the others are left out."""
    first, second = line([0, 1, 10], n=4), line([9], n=4)
    assert 2 * half_area_of_part(first, second) == pytest.approx(0.25)
    assert 2 * half_area_of_part(second, first) == pytest.approx(0.25)


def test_nothing_to_move():
    assert half_area_of_part(line([], n=3), line([], n=3)) == 0
    assert half_area_of_part(line([5.0], n=3), line([], n=3)) == 0
    assert gap(line([], n=3), line([], n=2)) == (0, 0, 0)


def test_far_ends_do_not_overflow():
    found = gap(line([-1.7e308, 1.7e308]), line([1.7e308, 1.7e308]))
    assert found.half_area == pytest.approx(0.85e308)
