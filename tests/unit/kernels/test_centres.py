"""Centres of groups, worked by hand."""

import numpy as np
import pytest

from sfumato.kernels.groups.centres import means, medians, modes, sse_ratio, sum_of_squares_within

GROUPS = np.array([0, 1, 0, 1, 0, 1, 1])


def test_means():
    values = np.array([1.0, 10.0, 2.0, 20.0, 6.0, 30.0, 40.0])
    assert means(values, GROUPS, 2).tolist() == [3.0, 25.0]
    weights = np.array([1.0, 1.0, 1.0, 1.0, 2.0, 1.0, 7.0])
    assert means(values, GROUPS, 2, weights).tolist() == [15 / 4, 34.0]


def test_means_far_from_zero_lose_no_digits_and_equal_values_are_their_mean():
    values = 1e8 + np.array([0.1, 0.2, 0.3])
    assert means(values, np.zeros(3, dtype=np.int64), 1)[0] == pytest.approx(1e8 + 0.2, abs=2e-8)
    alike = np.full(7, 0.1)
    weights = np.linspace(0.1, 5.0, 7)
    assert means(alike, np.zeros(7, dtype=np.int64), 1).tolist() == [0.1]
    assert means(alike, np.zeros(7, dtype=np.int64), 1, weights).tolist() == [0.1]


def test_means_of_whole_numbers_are_whole_halves_up_and_exact_beyond_floats():
    values = np.array([1, 2, -1, -2, 3, 3])
    assert means(values, np.array([0, 0, 1, 1, 2, 2]), 3).tolist() == [2, -1, 3]
    large = 2**62 + np.array([1, 3])
    assert means(large, np.array([0, 0]), 1).tolist() == [2**62 + 2]


def test_medians_lower_or_between():
    values = np.array([1.0, 10.0, 2.0, 20.0, 6.0, 30.0, 40.0])
    assert medians(values, GROUPS, 2).tolist() == [2.0, 20.0]
    assert medians(values, GROUPS, 2, between=True).tolist() == [2.0, 25.0]


def test_weighted_medians():
    values = np.array([5, 1, 9])
    one = np.zeros(3, dtype=np.int64)
    assert medians(values, one, 1, np.array([1.0, 1.0, 5.0])).tolist() == [9]
    # Half of the weight lies at 1: the lower median is 1, the upper 5.
    halves = np.array([1.0, 2.0, 1.0])
    assert medians(values, one, 1, halves).tolist() == [1]
    assert medians(values.astype(float), one, 1, halves, between=True).tolist() == [3.0]


def test_alike_weights_give_the_plain_median_though_sums_are_rounded():
    """Three and six tenths, added up, are not half and whole of the same number."""
    values, groups = np.arange(6.0), np.zeros(6, dtype=np.int64)
    assert medians(values, groups, 1, np.full(6, 0.1), between=True).tolist() == [2.5]


def test_modes_break_ties_by_the_table_then_by_order():
    #            group 0: a b | group 1: b c c | group 2: d a | group 3: d e
    values = np.array([0, 1, 1, 2, 2, 3, 0, 3, 4])
    groups = np.array([0, 0, 1, 1, 1, 2, 2, 3, 3])
    # 0: a and b both once here and twice over all, so the first; 1: c; 2: a and d alike; 3: d is more frequent.
    assert modes(values, groups, 4).tolist() == [0, 2, 0, 3]
    weights = np.array([1.0, 3.0, 1, 1, 1, 5, 1, 1, 1])
    assert modes(values, groups, 4, weights).tolist() == [1, 2, 3, 3]


def test_modes_see_weights_that_are_alike_but_for_rounding():
    """0.1 + 0.2 and 0.3 are one weight; the tie goes to the value more frequent over all, then to the first."""
    values, groups = np.array([5, 5, 2]), np.zeros(3, dtype=np.int64)
    assert modes(values, groups, 1, np.array([0.1, 0.2, 0.3])).tolist() == [2]


@pytest.mark.parametrize("centre", [means, medians, modes])
def test_a_group_without_values_shows_nothing_in_particular(centre):
    values, groups = np.array([4.0, 6.0, 8.0]), np.array([0, 2, 2])
    assert len(centre(values, groups, 4)) == 4
    assert centre(values, groups, 4)[0] == 4.0
    assert len(centre(values, groups, 4, np.ones(3))) == 4
    assert centre(values[:0], groups[:0], 2).tolist() == [0.0, 0.0]


def test_squares_and_share_lost():
    points = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 4.0], [2.0, 4.0]])
    groups = np.array([0, 0, 1, 1])
    assert sum_of_squares_within(points, groups) == 4.0
    assert sse_ratio(points, groups) == 4.0 / 20.0
    assert sse_ratio(points, np.arange(4)) == 0.0
    assert sse_ratio(np.ones((3, 2)), np.zeros(3, dtype=np.int64)) == 0.0
