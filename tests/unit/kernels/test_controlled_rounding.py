"""Controlled rounding against every rounding there is, and bounds of cells against every table there is."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from sfumato.kernels.cell_bounds import extreme_tables
from sfumato.kernels.controlled_rounding import margin_groups, round_table


def cells(*shape):
    return np.array(list(product(*map(range, shape))), dtype=np.int64)


def bound_sum(target, *published, **options):
    """The least and the greatest value of a sum of cells."""
    return tuple(float(target @ each) for each in extreme_tables(target, *published, **options))


def excess(counts, rounded, codes, base):
    """How many sums are not rounded to a multiple beside them."""
    sums = [(np.bincount(each, rounded), np.bincount(each, counts)) for each in margin_groups(codes)]
    return sum(int((np.abs(one - other) >= base).sum()) for one, other in sums)


@pytest.mark.parametrize("shape", [(4,), (2, 3), (3, 3)])
@pytest.mark.parametrize("base", [3, 5])
@pytest.mark.parametrize("seed", range(3))
def test_the_nearest_of_all_additive_roundings_is_found(shape, base, seed):
    codes = cells(*shape)
    counts = np.random.default_rng(seed).integers(0, 9, len(codes))
    down = counts - counts % base
    best = min(
        np.abs(each - counts).sum()
        for ups in product(*[(0, 1) if count % base else (0,) for count in counts])
        for each in [down + base * np.array(ups)]
        if excess(counts, each, codes, base) == 0
    )
    rounded = round_table(counts, codes, base)
    assert excess(counts, rounded, codes, base) == 0
    assert np.abs(rounded - counts).sum() == best


@given(
    shape=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    base=st.sampled_from([2, 3, 5, 11]),
    seed=st.integers(0, 10**6),
)
def test_cells_go_to_a_multiple_beside_them_and_sums_of_two_way_tables_too(shape, base, seed):
    codes = cells(*shape)
    counts = np.random.default_rng(seed).poisson(4, len(codes))
    rounded = round_table(counts, codes, base)
    assert (rounded % base == 0).all()
    assert (np.abs(rounded - counts) < base).all()
    assert (rounded[counts % base == 0] == counts[counts % base == 0]).all()
    if len(shape) < 3:
        assert excess(counts, rounded, codes, base) == 0
    assert np.array_equal(rounded, round_table(counts, codes, base))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("shape", [(2, 3), (2, 2, 2)])
def test_bounds_of_cells_are_those_of_all_tables_with_the_same_sums(shape, seed):
    codes = cells(*shape)
    truth = np.random.default_rng(seed).integers(0, 4, len(codes))
    groups = [each for each in margin_groups(codes) if each.max(initial=0) > 0]
    rows = np.concatenate([each == np.arange(each.max() + 1)[:, None] for each in groups]).astype(float)
    sums = rows @ truth
    most = [int(sums[rows[:, place] > 0].min()) for place in range(len(codes))]
    fits = [each for each in product(*(range(m + 1) for m in most)) if np.array_equal(rows @ each, sums)]
    for place in range(len(codes)):
        target = (np.arange(len(codes)) == place).astype(float)
        found = bound_sum(target, csr_array(rows), sums, sums, truth=truth)
        values = [each[place] for each in fits]
        assert np.allclose(found, (min(values), max(values)))


def test_bounds_of_amounts_are_those_of_the_transport_polytope():
    rows = csr_array(np.array([[1.0, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]]))
    truth = np.array([1.0, 4, 5, 2])
    sums, first = rows @ truth, np.array([1.0, 0, 0, 0])
    low, high = bound_sum(first, rows, sums, sums, truth=truth, whole=False)
    assert (low, high) == pytest.approx((max(0.0, 5 + 6 - 12), min(5.0, 6.0)))
    low, high = bound_sum(first, rows, sums, sums, truth=truth, most=np.full(4, 5.5), whole=False)
    assert (low, high) == pytest.approx((0.5, 4.5))  # of 6 at most 5.5 are in one cell
