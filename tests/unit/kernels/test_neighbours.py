"""Nearest distances on cases worked out by hand."""

import numpy as np
import pytest

from sfumato.kernels import threads
from sfumato.kernels.neighbours import nearest_distance

NORMS = ["euclidean", "maximum"]
nan = np.nan


def test_complete_records():
    points = np.array([[0.0, 0.0], [10.0, 10.0]])
    others = np.array([[3.0, 4.0], [10.0, 12.0], [-6.0, 1.0]])
    assert nearest_distance(points, others, norm="euclidean").tolist() == [5.0, 2.0]
    assert nearest_distance(points, others, norm="maximum").tolist() == [4.0, 2.0]


def test_only_shared_columns_count_and_are_scaled_up():
    points = np.array([[0.0, 0.0, nan, nan]])
    others = np.array([[3.0, nan, 1.0, 1.0], [2.0, 3.0, nan, 9.0]])
    # to the first: 1 of 4 columns shared, sqrt(4/1 · 9) = 6; to the second: sqrt(4/2 · 13) = 5.099
    np.testing.assert_allclose(nearest_distance(points, others, norm="euclidean"), np.sqrt(26.0))
    # 3 to both
    assert nearest_distance(points, others, norm="maximum").tolist() == [3.0]


@pytest.mark.parametrize("norm", NORMS)
def test_no_shared_column_is_no_link(norm):
    points = np.array([[1.0, nan], [nan, nan], [nan, 2.0]])
    others = np.array([[nan, 2.0], [nan, nan]])
    assert nearest_distance(points, others, norm=norm).tolist() == [np.inf, np.inf, 0.0]


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("n_columns", [0, 1, 3])
def test_nobody_to_link_to(norm, n_columns):
    points = np.ones((2, n_columns))
    assert nearest_distance(points, np.empty((0, n_columns)), norm=norm).tolist() == [np.inf, np.inf]
    assert nearest_distance(points[:0], points, norm=norm).tolist() == []


@pytest.mark.parametrize("norm", NORMS)
def test_without_columns_nothing_is_linked(norm):
    assert nearest_distance(np.ones((2, 0)), np.ones((3, 0)), norm=norm).tolist() == [np.inf, np.inf]


@pytest.mark.parametrize("norm", NORMS)
def test_one_column(norm):
    points = np.array([[-5.0], [2.0], [2.6], [nan], [99.0]])
    others = np.array([[3.0], [nan], [2.0], [0.0]])
    distances = nearest_distance(points, others, norm=norm)
    np.testing.assert_allclose(distances, [5.0, 0.0, 0.4, np.inf, 96.0], rtol=1e-15)


def test_one_column_of_only_missing():
    assert nearest_distance(np.array([[1.0]]), np.array([[nan]]), norm="maximum").tolist() == [np.inf]


@pytest.mark.parametrize("norm", NORMS)
def test_far_from_zero(norm):
    points, others = np.array([[1e8, 1e8]]), np.array([[1e8 + 1, 1e8], [1e8 + 2, 1e8 - 2]])
    assert nearest_distance(points, others, norm=norm).tolist() == [1.0]


@pytest.mark.parametrize("norm", NORMS)
def test_many_duplicates(norm):
    points = np.repeat([[0.0, 1.0], [5.0, 5.0]], 500, axis=0)
    distances = nearest_distance(points, np.repeat([[0.0, 2.0]], 5000, axis=0), norm=norm)
    expected = 5.0 if norm == "maximum" else np.sqrt(34.0)
    np.testing.assert_allclose(distances, np.repeat([1.0, expected], 500))


def some_points(n, seed, *, missing=0.0):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, 3))
    points[rng.random(points.shape) < missing] = nan
    return points


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_ticks_rise_to_the_total_and_do_not_change_the_answer(norm, missing, monkeypatch):
    points, others = some_points(400, 1, missing=missing), some_points(300, 2, missing=missing)
    whole = nearest_distance(points, others, norm=norm)
    monkeypatch.setattr(threads, "SLICE", 0.0)
    ticks = []
    again = nearest_distance(points, others, norm=norm, tick=lambda done, total: ticks.append((done, total)))
    np.testing.assert_array_equal(again, whole)
    assert len(ticks) > 5
    assert ticks == sorted(ticks)
    assert ticks[-1][0] == ticks[-1][1]


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_a_tick_can_cancel(missing):
    def stop(done, total):
        raise KeyboardInterrupt

    points = some_points(50, 1, missing=missing)
    with pytest.raises(KeyboardInterrupt):
        nearest_distance(points, points, norm="maximum", tick=stop)


def test_what_is_asked_wrongly_is_refused():
    ones = np.ones((2, 2))
    with pytest.raises(ValueError, match="`norm` must be"):
        nearest_distance(ones, ones, norm="taxicab")
    with pytest.raises(ValueError, match="as many columns"):
        nearest_distance(ones, ones[:, :1], norm="maximum")
    with pytest.raises(ValueError, match="finite or missing"):
        nearest_distance(ones, ones * np.inf, norm="maximum")
