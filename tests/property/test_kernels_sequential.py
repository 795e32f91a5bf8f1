"""Sequential clustering: the loss never rises, and the end cannot be bettered by a move."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from effort import examples
from sfumato.kernels.groups import relocation as kernel
from sfumato.kernels.groups import sequential


def loss(points, groups):
    """Squared error within groups, as it is defined."""
    total = 0.0
    for group in np.unique(groups):
        members = points[groups == group]
        total += ((members - members.mean(axis=0)) ** 2).sum()
    return total


def any_points():
    shapes = st.tuples(st.integers(1, 60), st.integers(1, 3))
    scattered = st.tuples(shapes, st.integers(0, 2**32)).map(
        lambda drawn: np.random.default_rng(drawn[1]).normal(size=drawn[0])
    )
    tied = shapes.flatmap(lambda shape: hnp.arrays(np.float64, shape, elements=st.integers(-2, 2)))
    return st.one_of(scattered, tied)


seeds, sizes = st.integers(0, 2**32), st.integers(2, 6)


@examples(60)
@given(points=any_points(), k=sizes, seed=seeds)
def test_no_move_within_the_bounds_lowers_the_loss(points, k, seed):
    groups = sequential(points, k, np.random.default_rng(seed))
    counts = np.bincount(groups)
    at_end = loss(points, groups)
    for record in np.flatnonzero(counts[groups] > k):
        for target in np.flatnonzero(counts < 2 * k - 1):
            moved = groups.copy()
            moved[record] = target
            assert loss(points, moved) >= at_end * (1 - 1e-8) - 1e-9


@examples(40)
@given(points=any_points(), k=st.integers(4, 12), seed=seeds)
def test_no_swap_lowers_the_loss(points, k, seed):
    groups = sequential(points, k, np.random.default_rng(seed))
    if groups.max() >= 8:  # with more groups than that, only near ones are looked at
        return
    at_end = loss(points, groups)
    for record in range(len(points)):
        for other in np.flatnonzero(groups > groups[record]):
            swapped = groups.copy()
            swapped[[record, other]] = groups[[other, record]]
            assert loss(points, swapped) >= at_end * (1 - 1e-8) - 1e-9


@examples(40)
@given(points=any_points(), k=sizes, seed=seeds)
def test_the_loss_never_rises_along_sweeps(points, k, seed):
    if len(points) < 2 * k:
        return
    points = kernel.centre_and_scale(points)
    order = np.random.default_rng(seed).permutation(len(points))
    progress = kernel._RelocationProgress(len(points), None)
    groups = np.full(len(points), -1)
    groups[order[: len(points) // k]] = np.arange(len(points) // k)
    before = np.inf
    while kernel._free_sweep(points, groups, order, progress):
        assert loss(points, groups) < before
        before = loss(points, groups)
    groups = kernel._bound_sizes(points, groups, k)
    progress.stage = 1
    before = loss(points, groups)
    while kernel._bounded_sweep(points, groups, order, k, progress):
        assert loss(points, groups) < before
        before = loss(points, groups)
    assert progress.at_rest == len(points)


@examples(60)
@given(points=any_points(), k=sizes, seed=seeds)
def test_what_is_written_down_agrees_after_each_change(points, k, seed):
    if len(points) < 2 * k:
        return
    groups = kernel.mdav(points, k)
    partition = kernel._written_down(points, groups, k)
    assert_holds_together(points, partition, k)
    tree = kernel.plant(partition.sums / np.maximum(partition.sizes, 1)[:, None], np.arange(groups.max() + 1))
    for record in np.random.default_rng(seed).permutation(len(points)):
        kernel._improve(tree, points, partition, np.array([record]), k)
        assert_holds_together(points, partition, k)


def assert_holds_together(points, partition, k):
    """What is written down about groups, in four ways, agrees."""
    counts = np.bincount(partition.groups, minlength=len(partition.sizes))
    assert counts.tolist() == partition.sizes.tolist()
    assert set(counts.tolist()) <= {0, *range(k, 2 * k)}
    assert not counts[partition.n_groups[0] :].any()
    for record in range(len(points)):
        assert partition.members[partition.groups[record], partition.slots[record]] == record
    sums = np.stack([points[partition.groups == group].sum(axis=0) for group in range(len(counts))])
    np.testing.assert_allclose(partition.sums, sums, rtol=0, atol=1e-12)
