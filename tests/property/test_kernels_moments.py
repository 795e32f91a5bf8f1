"""Laws of moments: blocks merge to the whole, and pairs agree with numpy."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sfumato.kernels.moments import PairwiseMoments, inverse_root, means_of, symmetric_root

tables = st.tuples(st.integers(1, 30), st.integers(1, 4)).flatmap(
    lambda shape: hnp.arrays(np.float64, shape, elements=st.one_of(st.just(np.nan), st.floats(-100, 100)))
)


@given(values=tables, cut=st.integers(0, 30), offset=st.sampled_from([0.0, 1e6]))
def test_blocks_merge_to_the_whole(values, cut, offset):
    values = values + offset
    above, below = values[:cut], values[cut:]
    whole, merged = means_of(values), means_of(above).merge(means_of(below))
    np.testing.assert_array_equal(merged.count, whole.count)
    np.testing.assert_allclose(merged.mean, whole.mean, rtol=1e-14, atol=1e-13)

    one, two = (
        PairwiseMoments.of(values, whole.mean),
        PairwiseMoments.of(above, whole.mean).merge(PairwiseMoments.of(below, whole.mean)),
    )
    np.testing.assert_array_equal(one.counts, two.counts)
    np.testing.assert_allclose(two.covariance(), one.covariance(), rtol=1e-9, atol=1e-8)
    np.testing.assert_allclose(two.means(), one.means(), rtol=1e-14, atol=1e-12)


@given(values=tables, ddof=st.sampled_from([0, 1]))
def test_pairs_agree_with_numpy(values, ddof):
    covariance = PairwiseMoments.of(values, means_of(values).mean).covariance(ddof=ddof)
    for j in range(values.shape[1]):
        for k in range(values.shape[1]):
            both = values[~np.isnan(values[:, j] + values[:, k])][:, [j, k]]
            expected = np.cov(both, rowvar=False, ddof=ddof)[0, 1] if len(both) > 1 else 0.0
            np.testing.assert_allclose(covariance[j, k], expected, rtol=1e-9, atol=1e-9)
    assert np.all(np.diagonal(covariance) >= 0)


@given(size=st.integers(1, 6), rank=st.integers(1, 6), seed=st.integers(0, 2**32))
def test_roots_square_back(size, rank, seed):
    loadings = np.random.default_rng(seed).normal(size=(size, rank))
    matrix = loadings @ loadings.T
    root = symmetric_root(matrix)
    np.testing.assert_allclose(root @ root, matrix, atol=1e-10)
    np.testing.assert_allclose(root, root.T, atol=1e-12)
    inverse = inverse_root(matrix, rtol=1e-12)
    # A pseudo-inverse by its own law: A A⁻ A = A.
    np.testing.assert_allclose(matrix @ inverse @ inverse @ matrix, matrix, atol=1e-6)
