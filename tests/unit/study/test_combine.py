"""Estimates of several copies combined: worked out by hand, and at their stated coverage."""

import numpy as np
import pytest

import sfumato
from sfumato.errors import ParameterError
from sfumato.study.combine import combine


def test_partially_synthetic_by_hand():
    """q̄ = 11, b = 1, ū = 4, m = 3: T = 4 + 1/3, ν = 2 (1 + 12)²."""
    found = combine([10, 12, 11], [4, 4, 4])
    assert (found.estimate, found.between, found.within) == (11, 1, 4)
    assert found.variance == pytest.approx(13 / 3)
    assert found.degrees == pytest.approx(2 * 13**2)


def test_fully_synthetic_by_hand():
    """b = 4, ū = 2, m = 2: T = 1.5 · 4 − 2 = 4, ν = (1 − 2/6)²; where T is negative, ū."""
    found = combine([0, np.sqrt(8)], [2, 2], "full")
    assert found.variance == pytest.approx(4)
    assert found.degrees == pytest.approx((1 - 2 / 6) ** 2)
    assert combine([1, 1], [3, 3], "full").variance == 3


def test_copies_that_agree_leave_the_variance_of_one():
    found = combine([5, 5], [1, 1])
    assert found.variance == 1
    low, high = found.interval()
    assert (low, high) == (pytest.approx(5 - 1.96, abs=1e-3), pytest.approx(5 + 1.96, abs=1e-3))


def test_intervals_hold_the_mean_as_often_as_they_say():
    """Records of mean 0 and variance 1 drawn by their fitted normal distribution, five copies: 400 times.

    A coverage of 95 % lies within 4 standard errors, 4 √(.95 · .05 / 400) = .044. Drawing from one fit: T = ū + b/m.
    """
    rng, n, m, held = np.random.default_rng(4), 100, 5, 0
    for _ in range(400):
        sample = rng.standard_normal(n)
        copies = rng.normal(sample.mean(), sample.std(ddof=1), (m, n))
        low, high = sfumato.combine(copies.mean(axis=1), copies.var(axis=1, ddof=1) / n).interval()
        held += low <= 0 <= high
    assert held / 400 == pytest.approx(0.95, abs=0.044)


@pytest.mark.parametrize(
    ("estimates", "variances", "kind"),
    [([1], [1], "partial"), ([1, 2], [1], "partial"), ([1, 2], [1, -1], "full"), ([1, np.nan], [1, 1], "full"),
     ([1, 2], [1, 1], "half")],
)  # fmt: skip
def test_what_cannot_be_combined(estimates, variances, kind):
    with pytest.raises(ParameterError):
        combine(estimates, variances, kind)
