"""MDAV against its definition, written out in plain numpy."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from effort import examples
from sfumato.kernels.groups import group_means, mdav
from sfumato.kernels.trees import codes


def mdav_by_definition(points, k):
    """The algorithm as published, exhaustively; ties to the lowest record."""
    remaining = list(range(len(points)))
    groups = np.empty(len(points), dtype=np.int64)
    n_groups = 0

    def distance(i, place):
        return sum((x - y) * (x - y) for x, y in zip(points[i], place, strict=True))

    def farthest(place):
        return max(remaining, key=lambda i: (distance(i, place), -i))

    def form_group(record):
        nonlocal n_groups
        remaining.remove(record)
        nearest = sorted(remaining, key=lambda i: (distance(i, points[record]), i))[: k - 1]
        for i in nearest:
            remaining.remove(i)
        groups[[record, *nearest]] = n_groups
        n_groups += 1

    while len(remaining) >= 2 * k:
        had = len(remaining)
        centroid = [math.fsum(points[i, c] for i in remaining) / had for c in range(points.shape[1])]
        r = farthest(centroid)
        form_group(r)
        if had >= 3 * k:
            form_group(farthest(points[r]))
    groups[remaining] = n_groups
    return groups


@examples(60)
@given(n=st.integers(1, 220), n_columns=st.integers(1, 4), k=st.integers(2, 8), seed=st.integers(0, 2**32))
def test_equals_the_definition(n, n_columns, k, seed):
    points = np.random.default_rng(seed).normal(size=(n, n_columns))
    np.testing.assert_array_equal(mdav(points, k), mdav_by_definition(points, k))


def grids(max_records):
    shapes = st.tuples(st.integers(1, max_records), st.integers(1, 3))
    return shapes.flatmap(lambda shape: hnp.arrays(np.float64, shape, elements=st.integers(-2, 2)))


@examples(100)
@given(points=grids(150), k=st.integers(2, 6))
def test_equals_the_definition_where_distances_tie(points, k):
    # A centroid is a quotient, and rounds: to meet the same ties the definition is given the same origin.
    origin = np.sort(points, axis=0)[(len(points) - 1) // 2]
    np.testing.assert_array_equal(mdav(points, k), mdav_by_definition(points - origin, k))


@examples(25)
@given(n=st.integers(2, 120), size=st.integers(4, 9), k=st.integers(2, 6), seed=st.integers(0, 2**32))
def test_equals_the_definition_where_columns_are_codes(n, size, k, seed):
    rng = np.random.default_rng(seed)
    places = np.vstack((np.diag(rng.uniform(0.5, 2.0, size)) - 0.25, np.zeros(size)))  # the last is missing
    points = np.hstack((places[rng.integers(-1, size, n)], places[rng.integers(-1, size, n)],
                        rng.normal(size=(n, 2))))  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codes, "FEWEST_RECORDS", 1)
        np.testing.assert_array_equal(mdav(points, k), mdav_by_definition(points, k))


@examples(60)
@given(points=grids(200), k=st.integers(1, 12))
def test_groups_have_k_to_2k_minus_1_records(points, k):
    sizes = np.bincount(mdav(points, k))
    assert sizes.sum() == len(points)
    if len(points) >= k:
        assert sizes.min() >= k
        assert sizes.max() <= 2 * k - 1


@examples(40)
@given(points=grids(150), k=st.integers(2, 6), offset=st.sampled_from([1e8, -1e8, 2.0**40]))
def test_an_offset_changes_nothing(points, k, offset):
    np.testing.assert_array_equal(mdav(points + offset, k), mdav(points, k))


@pytest.mark.parametrize(
    ("n", "n_columns", "k"), [(1500, 2, 3), (1000, 12, 20), (900, 3, 250), (700, 1, 2), (800, 50, 4)]
)
def test_equals_the_definition_through_several_trees(n, n_columns, k):
    """Long tails, duplicates and a constant column, over enough records that trees are rebuilt."""
    rng = np.random.default_rng(n)
    points = np.exp(rng.normal(size=(n, n_columns)))
    points[: n // 3] = points[n // 3 : 2 * (n // 3)]
    points[:, n_columns // 2] *= n_columns == 1
    expected = vectorised_mdav(points - np.median(points, axis=0), k)
    np.testing.assert_array_equal(mdav(points, k), expected)


def vectorised_mdav(points, k):
    """The same definition, fast enough for a thousand records."""
    remaining = np.arange(len(points))
    groups = np.empty(len(points), dtype=np.int64)
    n_groups = 0
    while len(remaining) >= 2 * k:
        had = len(remaining)
        place = points[remaining].mean(axis=0)
        for _ in range(2 if had >= 3 * k else 1):
            record = remaining[np.argmax(((points[remaining] - place) ** 2).sum(axis=1))]
            remaining = remaining[remaining != record]
            place = points[record]
            nearest = np.argsort(((points[remaining] - place) ** 2).sum(axis=1), kind="stable")[: k - 1]
            groups[np.append(remaining[nearest], record)] = n_groups
            remaining = np.delete(remaining, nearest)
            n_groups += 1
    groups[remaining] = n_groups
    return groups


values_with_holes = st.tuples(st.integers(1, 40), st.integers(1, 3)).flatmap(
    lambda shape: hnp.arrays(np.float64, shape, elements=st.one_of(st.just(np.nan), st.floats(-1e6, 1e6)))
)


@given(values=values_with_holes, seed=st.integers(0, 2**32))
def test_group_means_are_means(values, seed):
    groups = np.random.default_rng(seed).integers(0, 4, len(values))
    means = group_means(values, groups)
    assert means.shape == (groups.max() + 1, values.shape[1])
    for group in range(len(means)):
        for column in range(values.shape[1]):
            members = values[groups == group, column]
            members = members[~np.isnan(members)]
            expected = math.fsum(members) / len(members) if len(members) else np.nan
            np.testing.assert_allclose(means[group, column], expected, rtol=1e-12, atol=1e-8)
