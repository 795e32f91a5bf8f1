"""Laws of mid-ranks and swap partners."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from sfumato.kernels.ranks import midranks, swap_partners

few_values = st.sampled_from([-1.0, -0.0, 0.0, 2.5, np.inf, -np.inf, np.nan])
any_values = st.floats(allow_nan=True, allow_infinity=True)


@given(hnp.arrays(np.float64, st.integers(0, 60), elements=st.one_of(few_values, any_values)))
def test_midranks_equal_scipys(values):
    expected = np.full(len(values), np.nan)
    present = ~np.isnan(values)
    expected[present] = stats.rankdata(values[present], method="average")
    np.testing.assert_array_equal(midranks(values), expected)


@given(n=st.integers(0, 300), reach=st.integers(0, 320), seed=st.integers(0, 2**32))
def test_partners_are_mutual_and_within_reach(n, reach, seed):
    partners = swap_partners(n, reach, np.random.default_rng(seed))
    ranks = np.arange(n)
    assert partners.dtype == np.int64
    np.testing.assert_array_equal(np.sort(partners), ranks)
    np.testing.assert_array_equal(partners[partners], ranks)
    assert np.all(np.abs(partners - ranks) <= reach)


@given(n=st.integers(0, 300), reach=st.integers(1, 320), seed=st.integers(0, 2**32))
def test_who_keeps_its_place_had_nobody_within_reach(n, reach, seed):
    partners = swap_partners(n, reach, np.random.default_rng(seed))
    alone = np.flatnonzero(partners == np.arange(n))
    assert np.all(np.diff(alone) > reach)  # else the lower would have taken the higher
