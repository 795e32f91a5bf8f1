"""MDAV and group means on small cases."""

import numpy as np
import pytest

from sfumato.kernels import threads
from sfumato.kernels.groups import group_means, mdav


def test_mdav_by_hand():
    # Mean 11.875. Farthest: 30, with 29. Farthest from 30: 0, with 1. Four of k = 2 are left: mean 8.75;
    # farthest: 11 (2.25 away), with 10; then 7 and 7.
    values = np.array([0.0, 7.0, 30.0, 1.0, 10.0, 29.0, 7.0, 11.0])
    assert mdav(values[:, None], 2).tolist() == [1, 3, 0, 1, 2, 0, 3, 2]


def test_the_last_two_k_form_a_group_around_the_farthest_and_the_rest():
    # Five of k = 2: mean 4; farthest is 10, with 6; the rest together.
    assert mdav(np.array([[0.0], [1.0], [3.0], [6.0], [10.0]]), 2).tolist() == [1, 1, 1, 0, 0]


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5])
def test_fewer_than_two_k_are_one_group(n):
    assert mdav(np.arange(n, dtype=np.float64)[:, None] ** 2, 3).tolist() == [0] * n


def test_k_of_one_leaves_each_record_alone():
    assert sorted(mdav(np.zeros((5, 2)), 1).tolist()) == [0, 1, 2, 3, 4]


def test_equal_records_are_taken_from_the_lowest():
    # All distances are 0: the first is r, with the next two; then the same again.
    assert mdav(np.full((300, 2), 7.25), 3).tolist() == np.repeat(np.arange(100), 3).tolist()


def test_no_columns_is_like_equal_records():
    assert mdav(np.empty((90, 0)), 3).tolist() == np.repeat(np.arange(30), 3).tolist()


def test_a_record_is_in_its_own_group_among_many_duplicates():
    points = np.zeros((40, 2))
    points[-1] = 5.0
    groups = mdav(points, 4)
    assert np.bincount(groups).tolist() == [4] * 10
    assert np.flatnonzero(groups == groups[-1]).tolist() == [0, 1, 2, 39]


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1.0, 1e160, 1e300])
def test_neither_overflow_nor_underflow(scale):
    points = np.random.default_rng(3).normal(size=(120, 2))
    np.testing.assert_array_equal(mdav(points * 2.0 ** np.round(np.log2(scale)), 3), mdav(points, 3))


def test_far_from_zero():
    """Values of spread 1 around 1e8, where a variance by E[x²] − E[x]² has no digit left."""
    far = np.random.default_rng(4).normal(size=(400, 3)) + 1e8
    np.testing.assert_array_equal(mdav(far, 4), mdav(far - 1e8, 4))


def test_memory_layout_does_not_matter():
    points = np.random.default_rng(5).normal(size=(200, 3))
    by_column = np.asfortranarray(points)
    by_column.flags.writeable = False
    np.testing.assert_array_equal(mdav(by_column, 3), mdav(points, 3))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_refused(value):
    with pytest.raises(ValueError, match="finite"):
        mdav(np.array([[1.0], [value]]), 2)


def test_k_below_one_is_refused():
    with pytest.raises(ValueError, match="`k` must be at least 1"):
        mdav(np.zeros((3, 1)), 0)


def test_ticks_rise_and_do_not_change_the_answer(monkeypatch):
    points = np.random.default_rng(6).normal(size=(500, 2))
    whole = mdav(points, 3)
    monkeypatch.setattr(threads, "SLICE", 0.0)  # as few rounds in a slice as can be
    ticks = []
    np.testing.assert_array_equal(mdav(points, 3, tick=lambda done, n: ticks.append((done, n))), whole)
    done = [count for count, _ in ticks]
    assert len(done) > 5
    assert done == sorted(done)
    assert {n for _, n in ticks} == {500}


def test_a_tick_can_cancel():
    def stop(done, n):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mdav(np.random.default_rng(7).normal(size=(100, 2)), 3, tick=stop)


def test_group_means_skip_what_is_missing():
    values = np.array([[1.0, np.nan], [3.0, np.nan], [np.nan, 5.0], [8.0, 7.0]])
    np.testing.assert_array_equal(group_means(values, np.array([0, 0, 1, 1])), [[2.0, np.nan], [8.0, 6.0]])


def test_group_means_of_nothing():
    assert group_means(np.empty((0, 3)), np.empty(0, dtype=np.int64)).shape == (0, 3)
    np.testing.assert_array_equal(group_means(np.array([[4.0]]), np.array([1])), [[np.nan], [4.0]])


def test_group_means_keep_equal_values_exactly():
    assert group_means(np.full((7, 1), 0.1), np.zeros(7, dtype=np.int64)).tolist() == [[0.1]]


def test_group_means_far_from_zero():
    # 2**53 and the next two numbers a double has: a sum would round, the mean is the middle one
    values = 2.0**53 + np.array([[0.0], [2.0], [4.0]])
    assert group_means(values, np.zeros(3, dtype=np.int64)).tolist() == [[2.0**53 + 2.0]]


def test_group_means_take_a_frames_arrays():
    values = np.asfortranarray(np.arange(6.0).reshape(3, 2))
    values.flags.writeable = False
    np.testing.assert_array_equal(group_means(values, np.array([0, 1, 0])), [[2.0, 3.0], [2.0, 3.0]])
