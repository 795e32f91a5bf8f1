"""Partitions of sorted values: worked by hand, and far from zero."""

import numpy as np
import pytest

from sfumato.kernels.groups.partitions import consecutive, optimal


@pytest.mark.parametrize(
    ("n", "k", "groups"),
    [
        (0, 3, []),
        (2, 3, [0, 0]),
        (5, 3, [0] * 5),
        (6, 3, [0] * 3 + [1] * 3),
        (8, 3, [0] * 3 + [1] * 5),
        (3, 1, [0, 1, 2]),
    ],
)
def test_consecutive_groups(n, k, groups):
    found = consecutive(n, k)
    assert found.tolist() == groups
    assert found.dtype == np.int64


@pytest.mark.parametrize(
    ("values", "k", "groups"),
    [
        # Three clusters of 3, 2 and 2: fixed groups of two would cut the first.
        ([10, 11, 12, 50, 54, 90, 92], 2, [0, 0, 0, 1, 1, 2, 2]),
        # {0, 1 | 2, 10} costs 32.5, {0, 1, 2, 10} costs 62.75: two groups; at k = 3 only one is possible.
        ([0, 1, 2, 10], 2, [0, 0, 1, 1]),
        ([0, 1, 2, 10], 3, [0, 0, 0, 0]),
        # Five values in groups of two or three: {0, 0, 0 | 7, 7} loses nothing.
        ([0, 0, 0, 7, 7], 2, [0, 0, 0, 1, 1]),
        ([0, 0, 7, 7, 7], 2, [0, 0, 1, 1, 1]),
        ([3, 1e6, 2e6], 1, [0, 1, 2]),
        ([5.0], 1, [0]),
        ([5.0], 4, [0]),
        ([], 2, []),
    ],
)
def test_optimal_groups(values, k, groups):
    assert optimal(np.array(values, dtype=np.float64), k).tolist() == groups


@pytest.mark.parametrize("offset", [0.0, 1e8, -1e8, 1e12])
def test_optimal_groups_do_not_depend_on_where_zero_is(offset):
    """Whole numbers, so that adding the offset is exact; sums of squares around zero would fail from 1e8 on."""
    steps = np.random.default_rng(3).integers(1, 50, 400)
    values = np.cumsum(steps).astype(np.float64)
    np.testing.assert_array_equal(optimal(values + offset, 4), optimal(values, 4))


@pytest.mark.parametrize("exponent", [-1000, -400, 400, 1010])
def test_optimal_groups_do_not_depend_on_the_unit(exponent):
    values = np.cumsum(np.random.default_rng(4).integers(1, 50, 200)).astype(np.float64)
    np.testing.assert_array_equal(optimal(np.ldexp(values, exponent), 3), optimal(values, 3))


def test_small_gaps_between_large_values_are_seen():
    """Clusters a billionth wide, next to values far away on both sides."""
    cluster = np.array([0, 1, 2, 40, 41, 42]) * 2.0**-30
    values = np.concatenate([[-1e6, -1e6 + 1, -1e6 + 2], cluster, [1e6, 1e6 + 1, 1e6 + 2]])
    assert optimal(values, 3).tolist() == [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3


def test_constant_values_stay_in_bounds():
    sizes = np.bincount(optimal(np.full(1000, 7.5), 7))
    assert sizes.min() >= 7
    assert sizes.max() <= 13


def test_read_only_and_strided_values_are_taken():
    values = np.arange(20.0)
    values.setflags(write=False)
    np.testing.assert_array_equal(optimal(values[::2], 2), np.repeat(np.arange(5), 2))


@pytest.mark.parametrize("call", [lambda: consecutive(3, 0), lambda: optimal(np.arange(3.0), 0)])
def test_k_must_be_positive(call):
    with pytest.raises(ValueError, match="`k` must be at least 1, got: 0"):
        call()


def test_values_must_be_finite():
    with pytest.raises(ValueError, match="finite"):
        optimal(np.array([0.0, 1.0, np.nan, np.inf]), 2)
