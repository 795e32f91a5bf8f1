"""Moments and matrix roots on small cases."""

import math

import numpy as np
import pytest

from sfumato.kernels.moments import (
    ColumnMeans,
    PairwiseMoments,
    canonical_signs,
    inverse_root,
    means_of,
    symmetric_root,
)

nan = np.nan
VALUES = np.array([[1.0, 10.0, nan], [2.0, nan, nan], [6.0, 30.0, nan], [nan, 50.0, 4.0]])


def test_means_count_what_is_present():
    means = means_of(VALUES)
    assert means.count.tolist() == [3, 3, 1]
    assert means.mean.tolist() == [3.0, 30.0, 4.0]


def test_means_of_nothing():
    for values in (np.empty((0, 2)), np.full((3, 2), nan)):
        means = means_of(values)
        assert means.count.tolist() == [0, 0]
        np.testing.assert_array_equal(means.mean, [nan, nan])


def test_merging_with_nothing_changes_nothing():
    some, nothing = means_of(VALUES), means_of(np.full((2, 3), nan))
    for merged in (some.merge(nothing), ColumnMeans.merge(nothing, some)):
        np.testing.assert_array_equal(merged.count, some.count)
        np.testing.assert_array_equal(merged.mean, some.mean)


def test_a_constant_column_has_exactly_its_mean_and_no_variance():
    values = np.full((10, 1), 0.1)
    means = means_of(values).merge(means_of(values[:7]))
    assert means.mean.tolist() == [0.1]
    assert PairwiseMoments.of(values, means.mean).variances().tolist() == [0.0]


def test_an_outlier_in_front_costs_no_digits():
    values = np.append(1e14, np.arange(999) / 10)
    assert means_of(values[:, None]).mean[0] == pytest.approx(math.fsum(values) / 1000, rel=2e-16)


def test_pairwise_moments_by_hand():
    moments = PairwiseMoments.of(VALUES, np.array([3.0, 30.0, 4.0]))
    assert moments.counts.tolist() == [[3, 2, 0], [2, 3, 1], [0, 1, 1]]
    # column 0 where column 1 is present: (1 − 3) + (6 − 3) = 1; column 1 where column 0 is: −20 + 0
    assert moments.sums[0, 1] == 1.0
    assert moments.sums[1, 0] == -20.0
    assert moments.products[0, 1] == 40.0  # (−2)(−20) + 3·0
    assert moments.means().tolist() == [3.0, 30.0, 4.0]
    covariance = moments.covariance()
    assert covariance[0, 0] == 7.0  # (4 + 1 + 9) / 2
    assert covariance[0, 1] == covariance[1, 0] == 50.0  # (1, 10) and (6, 30): (−2.5)(−10) + (2.5)(10)
    assert covariance[1, 2] == covariance[0, 2] == covariance[2, 2] == 0.0  # fewer than two records
    assert moments.variances(ddof=0)[0] == pytest.approx(14 / 3)


def test_moments_of_nothing():
    moments = PairwiseMoments.of(np.empty((0, 2)), np.array([nan, nan]))
    np.testing.assert_array_equal(moments.means(), [nan, nan])
    assert moments.covariance().tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_one_record_has_no_variance():
    assert PairwiseMoments.of(np.array([[4.0, 5.0]]), np.zeros(2)).variances().tolist() == [0.0, 0.0]


def test_different_shifts_cannot_be_merged():
    one, other = PairwiseMoments.of(VALUES, np.zeros(3)), PairwiseMoments.of(VALUES, np.ones(3))
    with pytest.raises(ValueError, match="same shift"):
        one.merge(other)


def test_far_from_zero():
    near = np.random.default_rng(1).integers(-4, 5, size=(500, 3)).astype(np.float64)
    far = near + 1e8
    means = means_of(far)
    np.testing.assert_allclose(
        means.mean - 1e8, near.mean(axis=0), atol=2e-8
    )  # half a unit in the last place
    covariance = PairwiseMoments.of(far, means.mean).covariance()
    np.testing.assert_allclose(covariance, np.cov(near, rowvar=False), rtol=1e-12)


def test_roots_by_hand():
    matrix = np.array([[4.0, 0.0], [0.0, 9.0]])
    np.testing.assert_allclose(symmetric_root(matrix), [[2, 0], [0, 3]], atol=1e-15)
    np.testing.assert_allclose(inverse_root(matrix), [[1 / 2, 0], [0, 1 / 3]], atol=1e-15)


def test_negative_directions_are_cut_off():
    np.testing.assert_allclose(symmetric_root(np.diag([4.0, -1.0])), np.diag([2.0, 0.0]), atol=1e-15)
    np.testing.assert_allclose(inverse_root(np.diag([4.0, -1.0])), np.diag([0.5, 0.0]), atol=1e-15)


@pytest.mark.parametrize("matrix", [np.zeros((2, 2)), -np.eye(2), np.zeros((0, 0))])
def test_nothing_to_invert(matrix):
    np.testing.assert_array_equal(inverse_root(matrix), np.zeros(matrix.shape))


def test_inverse_root_of_a_singular_matrix_projects():
    loadings = np.random.default_rng(2).normal(size=(5, 2))
    matrix = loadings @ loadings.T  # rank 2 of 5
    root = inverse_root(matrix, rtol=1e-10)
    projector = root @ matrix @ root
    np.testing.assert_allclose(projector @ projector, projector, atol=1e-10)
    assert np.trace(projector) == pytest.approx(2.0)


def test_directions_face_one_way():
    """Greatest entry positive; of entries alike but for rounding the first decides."""
    half = np.sqrt(0.5)
    rows = np.array([[0.6, -0.8], [half, -half - 1e-12], [-half, half + 1e-12], [0.0, 1.0]])
    assert canonical_signs(rows).tolist() == [-1.0, 1.0, -1.0, 1.0]
    assert canonical_signs(-rows).tolist() == [1.0, -1.0, 1.0, -1.0]
    assert float(canonical_signs(np.array([0.1, -2.0]))) == -1.0
