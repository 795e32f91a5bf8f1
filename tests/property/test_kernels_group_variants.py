"""CBFS, V-MDAV and MDAV in parts against their definitions, written out plainly."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from effort import examples
from sfumato.kernels.groups import cbfs, group_means, mdav, mdav_in_parts, sequential, vmdav


def distance(x, y):
    return sum((a - b) * (a - b) for a, b in zip(x, y, strict=True))


def centroid(points, records):
    return [math.fsum(points[i, c] for i in records) / len(records) for c in range(points.shape[1])]


def take_group(points, remaining, place, k):
    """The record farthest from a place and its k − 1 nearest leave; ties to the lowest."""
    seed = max(remaining, key=lambda i: (distance(points[i], place), -i))
    remaining.remove(seed)
    nearest = sorted(remaining, key=lambda i: (distance(points[i], points[seed]), i))[: k - 1]
    for i in nearest:
        remaining.remove(i)
    return [seed, *nearest]


def numbered(points, members, rest, k):
    """Number the groups; the rest go to the nearest centre, as formed, of a group with room."""
    groups = np.full(len(points), -1)
    for group, records in enumerate(members):
        groups[records] = group
    if not members:
        return np.zeros(len(points), dtype=np.int64)
    placed = groups >= 0
    centres = group_means(points[placed], groups[placed])  # a mean rounds: ties must be met alike
    for i in rest:
        free = [g for g in range(len(members)) if np.count_nonzero(groups == g) < 2 * k - 1]
        groups[i] = min(free, key=lambda g: (distance(points[i], centres[g]), g))
    return groups


def cbfs_by_definition(points, k):
    remaining, members = list(range(len(points))), []
    while len(remaining) >= k:
        members.append(take_group(points, remaining, centroid(points, remaining), k))
    return numbered(points, members, remaining, k)


def vmdav_by_definition(points, k, gain):
    remaining, members = list(range(len(points))), []
    middle = centroid(points, remaining)
    while len(remaining) >= k:
        group = take_group(points, remaining, middle, k)
        members.append(group)
        while remaining and len(group) < 2 * k - 1:
            room = sum(2 * k - 1 - len(records) for records in members)
            if len(remaining) <= k and len(remaining) > room:
                break
            inner, candidate = min(
                (min(distance(points[i], points[member]) for member in group), i) for i in remaining
            )
            others = [distance(points[candidate], points[i]) for i in remaining if i != candidate]
            if not inner < gain * gain * min(others, default=math.inf):
                break
            remaining.remove(candidate)
            group.append(candidate)
    return numbered(points, members, remaining, k)


def grids(max_records, spread=2):
    shapes = st.tuples(st.integers(1, max_records), st.integers(1, 3))
    return shapes.flatmap(lambda shape: hnp.arrays(np.float64, shape, elements=st.integers(-spread, spread)))


def with_its_origin(points):
    """A centroid is a quotient, and rounds: to meet the same ties the definition is given the same origin."""
    return points - np.sort(points, axis=0)[(len(points) - 1) // 2]


sizes = st.integers(2, 7)
gains = st.sampled_from([0.0, 0.2, 0.5, 1.0, 1.5, 4.0])


@examples(60)
@given(n=st.integers(1, 60), n_columns=st.integers(1, 4), k=sizes, seed=st.integers(0, 2**32))
def test_cbfs_equals_its_definition(n, n_columns, k, seed):
    points = np.random.default_rng(seed).normal(size=(n, n_columns))
    np.testing.assert_array_equal(cbfs(points, k), cbfs_by_definition(points, k))


@examples(80)
@given(points=grids(60), k=sizes)
def test_cbfs_equals_its_definition_where_distances_tie(points, k):
    np.testing.assert_array_equal(cbfs(points, k), cbfs_by_definition(with_its_origin(points), k))


@examples(60)
@given(n=st.integers(1, 60), n_columns=st.integers(1, 4), k=sizes, gain=gains, seed=st.integers(0, 2**32))
def test_vmdav_equals_its_definition(n, n_columns, k, gain, seed):
    points = np.random.default_rng(seed).normal(size=(n, n_columns))
    np.testing.assert_array_equal(vmdav(points, k, gain), vmdav_by_definition(points, k, gain))


@examples(80)
@given(points=grids(60), k=sizes, gain=gains)
def test_vmdav_equals_its_definition_where_distances_tie(points, k, gain):
    expected = vmdav_by_definition(with_its_origin(points), k, gain)
    np.testing.assert_array_equal(vmdav(points, k, gain), expected)


def of_all_kinds(points, k, seed):
    yield "cbfs", cbfs(points, k)
    for gain in (0.0, 0.3, 1.1, 1e9, math.inf):
        yield f"vmdav, {gain}", vmdav(points, k, gain)
    for part in (1, 10, 40):
        yield f"parts, {part}", mdav_in_parts(points, k, part)
    yield "sequential", sequential(points, k, np.random.default_rng(seed))


@examples(60)
@given(points=grids(120), k=st.integers(1, 12), seed=st.integers(0, 2**32))
def test_groups_have_k_to_2k_minus_1_records(points, k, seed):
    for name, groups in of_all_kinds(points, k, seed):
        counts = np.bincount(groups)
        assert counts.sum() == len(points), name
        assert counts.min() >= min(k, len(points)), name
        assert counts.max() <= 2 * k - 1, name


@examples(40)
@given(points=grids(100, spread=9), k=sizes, offset=st.sampled_from([1e8, -1e8, 2.0**40]))
def test_an_offset_changes_nothing(points, k, offset):
    for (name, near), (_, far) in zip(
        of_all_kinds(points, k, 1), of_all_kinds(points + offset, k, 1), strict=True
    ):
        np.testing.assert_array_equal(near, far, err_msg=name)


def parts_by_definition(points, k, part):
    """Cut by a principal axis at a multiple of k nearest below the half, lowest records first among equals."""

    def cut(records):
        if len(records) <= part or len(records) < 4 * k:
            return [records]
        here = points[records]
        axis = np.linalg.svd(here - here.mean(axis=0))[2][0]
        axis = axis if axis[np.argmax(np.abs(axis))] > 0 else -axis
        order = np.argsort(here @ axis, kind="stable")
        half = len(records) // 2 // k * k
        return cut(np.sort(records[order[:half]])) + cut(np.sort(records[order[half:]]))

    groups = np.empty(len(points), dtype=np.int64)
    n_groups = 0
    for records in cut(np.arange(len(points))):
        groups[records] = mdav(points[records], k) + n_groups
        n_groups = groups[records].max() + 1
    return groups


@examples(40)
@given(
    n=st.integers(1, 200),
    n_columns=st.integers(1, 4),
    k=sizes,
    part=st.integers(1, 120),
    seed=st.integers(0, 2**32),
)
def test_parts_equal_their_definition(n, n_columns, k, part, seed):
    # Unequal spreads: two axes of the same spread would be a tie that rounding settles.
    points = np.random.default_rng(seed).normal(size=(n, n_columns)) * 3.0 ** np.arange(n_columns)
    np.testing.assert_array_equal(mdav_in_parts(points, k, part), parts_by_definition(points, k, part))


@examples(25)
@given(n=st.integers(30, 200), k=sizes, seed=st.integers(0, 2**32))
def test_the_order_of_records_does_not_change_the_parts(n, k, seed):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, 3)) * [1.0, 2.0, 4.0]
    order = rng.permutation(n)
    before, after = mdav_in_parts(points, k, 40)[order], mdav_in_parts(points[order], k, 40)
    # The same partition, and the same numbers, since those follow the parts and the order of forming.
    np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("gain", [0.2, 1.1])
def test_vmdav_through_several_trees(gain):
    """Long tails and duplicates, over enough records that trees are rebuilt."""
    rng = np.random.default_rng(8)
    points = np.exp(rng.normal(size=(400, 3)))
    points[:100] = points[100:200]
    shifted = with_its_origin(points)
    np.testing.assert_array_equal(vmdav(points, 3, gain), vmdav_by_definition(shifted, 3, gain))
    np.testing.assert_array_equal(cbfs(points, 3), cbfs_by_definition(shifted, 3))
