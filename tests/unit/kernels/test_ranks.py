"""Mid-ranks and swap partners on cases worked out by hand."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from sfumato.kernels.ranks import midranks, swap_partners


def test_midranks_share_ties_and_skip_missing():
    values = np.array([30.0, 10.0, np.nan, 10.0, 20.0, 10.0, np.nan])
    # sorted: 10 10 10 20 30 -> places 1 2 3 4 5, and the three tens share 2
    np.testing.assert_array_equal(midranks(values), [5, 2, np.nan, 2, 4, 2, np.nan])


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], []),
        ([7.0], [1.0]),
        ([np.nan], [np.nan]),
        ([0.0, -0.0], [1.5, 1.5]),
        ([np.inf, 1, -np.inf], [3, 2, 1]),
    ],
)
def test_midranks_of_edge_cases(values, expected):
    np.testing.assert_array_equal(midranks(np.array(values, dtype=np.float64)), expected)


def test_midranks_leave_their_input_alone():
    values = np.array([2.0, 1.0, np.nan])
    values.flags.writeable = False
    midranks(values)


def test_reach_one_swaps_neighbours():
    # 0 can only take 1, then 2 only 3; the fifth is left alone
    assert swap_partners(5, 1, np.random.default_rng(1)).tolist() == [1, 0, 3, 2, 4]


@pytest.mark.parametrize(("n", "reach"), [(0, 0), (0, 5), (1, 0), (1, 9), (4, 0)])
def test_nobody_within_reach_keeps_place(n, reach):
    assert swap_partners(n, reach, np.random.default_rng(1)).tolist() == list(range(n))


def test_same_generator_state_same_partners():
    first, second = (swap_partners(1000, 80, np.random.default_rng(5)) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, swap_partners(1000, 80, np.random.default_rng(6)))


def test_generator_moves_on():
    rng = np.random.default_rng(5)
    assert not np.array_equal(swap_partners(1000, 80, rng), swap_partners(1000, 80, rng))


@pytest.mark.parametrize(("n", "reach"), [(-1, 1), (1, -1)])
def test_negative_sizes_are_refused(n, reach):
    with pytest.raises(ValueError, match="must not be negative"):
        swap_partners(n, reach, np.random.default_rng(1))


def exact_distribution(n, reach):
    """Probability of each outcome, by walking all draws of the definition."""
    outcomes = Counter()

    def settle(partners, probability):
        free = [i for i in range(n) if partners[i] is None]
        if not free:
            outcomes[tuple(partners)] += probability
            return
        i, *others = free
        near = [j for j in others if j <= i + reach]
        for j in near or [i]:
            chosen = list(partners)
            chosen[i], chosen[j] = j, i
            settle(chosen, probability / max(len(near), 1))

    settle([None] * n, Fraction(1))
    return outcomes


@pytest.mark.parametrize(("n", "reach"), [(7, 2), (7, 3), (6, 5), (7, 7)])
def test_partners_follow_the_definition_exactly(n, reach):
    """Chi-square on whole outcomes; with a fixed seed, a right sampler fails one seed in a thousand."""
    expected = exact_distribution(n, reach)
    rng = np.random.default_rng(20240501)
    n_draws = 20_000
    seen = Counter(tuple(swap_partners(n, reach, rng).tolist()) for _ in range(n_draws))
    assert set(seen) <= set(expected)
    outcomes = list(expected)
    observed = [seen[outcome] for outcome in outcomes]
    test = stats.chisquare(observed, [float(expected[outcome]) * n_draws for outcome in outcomes])
    assert test.pvalue > 0.001
