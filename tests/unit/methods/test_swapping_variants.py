"""Rank swapping by distance and by buckets: partners by the definition, and what the columns keep."""

import math
from collections import Counter
from datetime import date, timedelta
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from scipy import stats

from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import Table
from sfumato.kernels.ranks import bucket_partners, distant_partners
from sfumato.methods.swapping import RankSwappingBuckets, RankSwappingDistribution

BOTH = [
    lambda p: RankSwappingDistribution(distance=p),
    lambda p: RankSwappingBuckets(width=p),
]


def swapped(series, method, kind=Kind.CONTINUOUS, seed=3, **facts):
    table = Table(pl.DataFrame({"x": series}), Schema((Column("x", kind, **facts),)))
    return method.apply(table, Run(seed=seed)).table.frame["x"]


# ------------------------------------------------------------------------------------------------- kernels


@pytest.mark.parametrize(
    "draw", [lambda n, r: distant_partners(n, 3.0, r), lambda n, r: bucket_partners(n, 3, r)]
)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 10, 11])
def test_all_ranks_are_paired_but_the_odd_one(draw, n):
    partners = draw(n, np.random.default_rng(1))
    np.testing.assert_array_equal(partners[partners], np.arange(n))
    assert (partners == np.arange(n)).sum() == n % 2


def test_no_distance_swaps_neighbours():
    assert distant_partners(5, 0.0, np.random.default_rng(1)).tolist() == [1, 0, 3, 2, 4]


def test_one_rank_in_each_bucket_can_still_swap():
    partners = bucket_partners(6, 6, np.random.default_rng(1))
    assert (partners != np.arange(6)).all()


@pytest.mark.parametrize("arguments", [(-1, 1), (1, -1)])
def test_senseless_sizes_are_refused(arguments):
    with pytest.raises(ValueError, match="must not be negative"):
        distant_partners(*arguments, np.random.default_rng(1))
    with pytest.raises(ValueError, match="must not be negative"):
        bucket_partners(*arguments, np.random.default_rng(1))


def outcomes_of(n, chances):
    """Probability of each outcome, by walking the draws; ``chances(i, free)`` gives each partner's."""
    outcomes = Counter()

    def settle(partners, probability):
        free = [i for i in range(n) if partners[i] is None]
        if not free:
            outcomes[tuple(partners)] += probability
            return
        i, *others = free
        for j, chance in (chances(i, others) if others else {i: 1}).items():
            chosen = list(partners)
            chosen[i], chosen[j] = j, i
            settle(chosen, probability * chance)

    settle([None] * n, Fraction(1))
    return {outcome: float(chance) for outcome, chance in outcomes.items()}


def bucket_chances(n, n_buckets):
    """A bucket by halves, then the next up that has somebody, or else the highest; then anyone in it."""

    def chances(i, free):
        own = i * n_buckets // n
        total = Counter()
        weights = {s: Fraction(1, 2 ** (s - own + 1)) for s in range(own, n_buckets)}
        occupied = sorted({j * n_buckets // n for j in free})
        for s, weight in weights.items():
            stands_in = next((b for b in occupied if b >= s), occupied[-1])
            members = [j for j in free if j * n_buckets // n == stands_in]
            for j in members:
                total[j] += weight / sum(weights.values()) / len(members)
        return total

    return chances


def distance_chances(distance):
    """A normal distance given that it leads to a free rank: what drawing until it does amounts to."""

    def chances(i, free):
        def mass(j):
            return stats.norm.cdf(j + 0.5, i + distance, distance) - stats.norm.cdf(
                j - 0.5, i + distance, distance
            )

        total = sum(mass(j) for j in free)
        return {j: mass(j) / total for j in free}

    return chances


def assert_follows(expected, draw):
    """Chi-square on whole outcomes; with a fixed seed, a right sampler fails one seed in a thousand."""
    rng, n_draws = np.random.default_rng(20240502), 20_000
    seen = Counter(tuple(draw(rng).tolist()) for _ in range(n_draws))
    assert set(seen) <= set(expected)
    common = [outcome for outcome, chance in expected.items() if chance * n_draws >= 5]
    rare = n_draws - sum(seen[outcome] for outcome in common)
    observed = [*(seen[outcome] for outcome in common), rare]
    chances = [*(expected[outcome] for outcome in common)]
    chances.append(1 - math.fsum(chances))
    if chances[-1] * n_draws < 1e-6:
        observed, chances = observed[:-1], chances[:-1]
    expected_counts = np.array(chances) / math.fsum(chances) * n_draws
    assert stats.chisquare(observed, expected_counts).pvalue > 0.001


@pytest.mark.parametrize(("n", "n_buckets"), [(6, 1), (6, 2), (7, 3), (6, 6), (5, 9)])
def test_buckets_follow_the_definition_exactly(n, n_buckets):
    expected = outcomes_of(n, bucket_chances(n, min(n, n_buckets)))
    assert_follows(expected, lambda rng: bucket_partners(n, n_buckets, rng))


@pytest.mark.parametrize(("n", "distance"), [(4, 2.0), (6, 1.5)])
def test_distances_follow_the_definition(n, distance):
    """Each try meets a free rank with a chance of .15 at least: the 32 draws almost never run out."""
    expected = outcomes_of(n, distance_chances(distance))
    assert_follows(expected, lambda rng: distant_partners(n, distance, rng))


def test_distances_have_mean_and_deviation_where_there_is_room():
    """Ranks far from both ends: the first hundred draw from nearly all free ranks."""
    moves = []
    for seed in range(40):
        partners = distant_partners(20_000, 1000.0, np.random.default_rng(seed))
        moves.append((partners - np.arange(20_000))[:50])
    moves = np.concatenate(moves)
    truncated = stats.truncnorm(-1, np.inf, loc=1000, scale=1000)  # below the own rank nobody is free
    error = truncated.std() / np.sqrt(len(moves))
    assert abs(moves.mean() - truncated.mean()) < 3.3 * error  # one right sampler in a thousand fails
    assert moves.std() == pytest.approx(truncated.std(), rel=0.06)


# ------------------------------------------------------------------------------------------------- methods


@pytest.mark.parametrize("make", BOTH)
def test_types_and_missing_codes_stay(make):
    rng = np.random.default_rng(0)
    numbers = pl.Series(rng.integers(0, 1000, 200), dtype=pl.Int32)
    turned = swapped(numbers, make(20))
    assert turned.dtype == pl.Int32
    assert sorted(turned) == sorted(numbers)
    assert turned.to_list() != numbers.to_list()
    days = pl.Series([date(2020, 1, 1) + timedelta(days=int(d)) for d in rng.integers(0, 500, 200)])
    assert sorted(swapped(days, make(20), Kind.DATE)) == sorted(days)
    words = pl.Series(rng.choice(["low", "mid", "high"], 200))
    turned = swapped(words, make(50), Kind.ORDINAL, order=("low", "mid", "high"))
    assert turned.dtype == pl.String
    assert sorted(turned) == sorted(words)
    coded = pl.Series([-9, 5, -9, 3, 8, 1, -9, 7])
    turned = swapped(coded, make(100), missing=(-9,))
    assert [i for i, value in enumerate(turned) if value == -9] == [0, 2, 6]
    assert sorted(turned) == sorted(coded)


@pytest.mark.parametrize("make", BOTH)
def test_more_of_the_drive_moves_values_farther(make):
    values = pl.Series(np.arange(3000.0))
    means = [np.abs(swapped(values, make(p)).to_numpy() - values.to_numpy()).mean() for p in (0.5, 2, 10, 40)]
    assert (np.diff(means) > 0).all()


def test_no_window_bounds_the_move():
    """Some values go farther than any window of the same size would let them."""
    values = pl.Series(np.arange(3000.0))
    for make in BOTH:
        moves = np.abs(swapped(values, make(5)).to_numpy() - values.to_numpy())
        assert moves.max() > 2 * 0.05 * 3000


def test_smallest_settings_are_harmless():
    values = pl.Series([3.0, 1.0, 2.0, 4.0])
    for make in BOTH:
        assert sorted(swapped(values, make(5e-324))) == [1, 2, 3, 4]
