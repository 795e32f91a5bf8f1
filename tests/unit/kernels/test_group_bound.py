"""Groups of variable size against their definitions, and the bound against every partition there is."""

import math
from functools import cache
from itertools import combinations

import numpy as np
import pytest

from sfumato.kernels.groups import least_loss as bound
from sfumato.kernels.groups import lower_bound, mdav, sequential, spanning_tree, ward
from sfumato.kernels.groups.centres import sum_of_squares_within


def least_loss(points, k):
    """The loss of the best partition, by trying them all."""

    def loss(records):
        members = points[list(records)]
        return ((members - members.mean(axis=0)) ** 2).sum()

    @cache
    def least(rest):
        if not rest:
            return 0.0
        sizes = [size for size in range(k, len(rest) + 1) if not 0 < len(rest) - size < k]
        return min(
            loss((rest[0], *others)) + least(tuple(each for each in rest[1:] if each not in others))
            for size in sizes
            for others in combinations(rest[1:], size - 1)
        )

    return least(tuple(range(len(points))))


def some_points(seed):
    """Few records: continuous, tied, constant in a column, or with an outlier."""
    rng = np.random.default_rng(seed)
    shape = int(rng.integers(4, 10)), int(rng.integers(1, 4))
    points = rng.normal(size=shape) if seed % 2 else rng.integers(-2, 3, size=shape).astype(float)
    if seed % 3 == 0:
        points[:, 0] = 1.0
    if seed % 5 == 0:
        points[0] += 40.0
    return points


@pytest.mark.parametrize("seed", range(40))
def test_no_partition_loses_less_than_the_bound(seed):
    points = some_points(seed)
    for k in (2, 3, 4):
        optimum = least_loss(points, k) if len(points) >= k else math.inf
        found = lower_bound(points, k)
        assert 0 <= found <= optimum * (1 + 1e-12) + 1e-12
        prices, _ = bound.price_by_pairs(points, k) if len(points) >= 2 * k else (np.zeros(1), None)
        assert prices.sum() <= optimum * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize("seed", range(1, 20, 2))
def test_prices_are_below_the_loss_of_every_set(seed):
    points, k = some_points(seed), 2
    prices, _ = bound.price_by_pairs(points, k)
    for size in range(k, len(points) + 1):
        for records in map(list, combinations(range(len(points)), size)):
            members = points[records]
            assert prices[records].sum() <= ((members - members.mean(axis=0)) ** 2).sum() + 1e-9


def test_pairs_that_are_not_shared_out_do_not_raise_the_bound(monkeypatch):
    points = np.random.default_rng(3).normal(size=(9, 2))
    monkeypatch.setattr(bound, "MOST_RECORDS", 0)
    for neighbours in (1, 2, 3):
        monkeypatch.setattr(bound, "NEIGHBOURS", neighbours)
        for k in (2, 3):
            assert 0 < lower_bound(points, k) <= least_loss(points, k)


def test_column_generation_comes_near_and_a_search_cut_short_is_still_a_bound(monkeypatch):
    points = np.random.default_rng(5).normal(size=(24, 2))
    best = min(
        sum_of_squares_within(points, sequential(points, 3, np.random.default_rng(seed)))
        for seed in range(10)
    )
    whole = lower_bound(points, 3)
    assert 0.9 * best < whole <= best
    monkeypatch.setattr(bound, "MOST_NODES", 100)
    assert 0 < lower_bound(points, 3) <= whole * (1 + 1e-9)


def test_the_bound_where_there_is_nothing_to_choose():
    points = np.array([[0.0], [1.0], [3.0]])
    assert lower_bound(points, 1) == 0
    assert lower_bound(points, 2) == pytest.approx(sum_of_squares_within(points, np.zeros(3, dtype=int)))
    assert lower_bound(points[:0], 3) == lower_bound(np.ones((7, 2)), 3) == 0
    with pytest.raises(ValueError, match="finite"):
        lower_bound(np.array([[np.nan]]), 1)


def ward_by_definition(points, k):
    """Join the two groups of least cost, one of them too small, until none is; part the large ones."""
    if len(points) < 2 * k:
        return [list(range(len(points)))]

    def with_nearest(seed, taken):
        free = [i for i in range(len(points)) if i not in taken]
        return sorted(free, key=lambda i: ((points[i] - points[seed]) ** 2).sum())[:k]

    first = with_nearest(int(((points - points.mean(axis=0)) ** 2).sum(axis=1).argmax()), [])
    second = with_nearest(int(((points - points[first[0]]) ** 2).sum(axis=1).argmax()), first)
    groups = [first, second, *([i] for i in range(len(points)) if i not in {*first, *second})]

    def cost(pair):
        (a, b) = (points[group] for group in pair)
        return len(a) * len(b) / (len(a) + len(b)) * ((a.mean(axis=0) - b.mean(axis=0)) ** 2).sum()

    while min(map(len, groups)) < k:
        pairs = [pair for pair in combinations(groups, 2) if min(map(len, pair)) < k]
        one, other = min(pairs, key=cost)
        groups = [group for group in groups if group not in (one, other)] + [one + other]
    return [[group[i] for i in part] for group in groups for part in ward_by_definition(points[group], k)]


def tree_by_definition(points, k):
    """Kruskal's tree, cut at its longest edges while both sides keep k; large parts by MDAV."""
    n = len(points)
    if n < 2 * k:
        return [list(range(n))]

    def parts(edges):
        label = list(range(n))
        for i, j in edges:
            label = [label[i] if each == label[j] else each for each in label]
        return [[i for i in range(n) if label[i] == each] for each in dict.fromkeys(label)]

    def length(edge):
        return ((points[edge[0]] - points[edge[1]]) ** 2).sum()

    tree = []
    for edge in sorted(combinations(range(n), 2), key=length):
        if not any({*edge} <= {*part} for part in parts(tree)):
            tree.append(edge)
    for edge in sorted(tree, key=length, reverse=True):
        left = [each for each in tree if each != edge]
        if min(map(len, parts(left))) >= k:
            tree = left
    groups = []
    for part in parts(tree):
        found = mdav(points[part], k) if len(part) >= 2 * k else np.zeros(len(part), dtype=int)
        groups += [[part[i] for i in np.flatnonzero(found == each)] for each in np.unique(found)]
    return groups


@pytest.mark.parametrize(
    ("group", "define"),
    [(ward, ward_by_definition), (spanning_tree, tree_by_definition)],
    ids=["k-ward", "spanning-tree-microaggregation"],
)
@pytest.mark.parametrize("seed", range(12))
def test_groups_are_those_of_the_definition(group, define, seed):
    rng = np.random.default_rng(seed)
    points, k = rng.normal(size=(int(rng.integers(2, 30)), int(rng.integers(1, 4)))), int(rng.integers(2, 6))
    found = group(points, k)
    members = {tuple(np.flatnonzero(found == each)) for each in np.unique(found)}
    assert members == {tuple(sorted(each)) for each in define(points, k)}


@pytest.mark.parametrize("group", [ward, spanning_tree])
def test_sizes_hold_for_ties_constants_and_few_records(group):
    rng = np.random.default_rng(1)
    for points in (np.ones((23, 2)), rng.integers(0, 2, size=(40, 2)).astype(float), np.arange(9.0)[:, None]):
        for k in (2, 3, 7):
            sizes = np.bincount(group(points, k))
            assert k <= sizes.min()
            assert sizes.max() < 2 * k or len(points) < 2 * k
    assert group(np.ones((1, 1)), 3).tolist() == [0]
    assert group(np.ones((3, 1)), 1).tolist() == [0, 1, 2]
    assert len(group(np.ones((0, 2)), 2)) == 0
    with pytest.raises(ValueError, match="at least 1"):
        group(np.ones((3, 1)), 0)


def test_progress_is_told_and_can_end_the_run():
    told = []
    for group in (ward, spanning_tree):
        group(
            np.random.default_rng(1).normal(size=(1500, 2)),
            3,
            tick=lambda done, total: told.append((done, total)),
        )
    assert all(0 <= done <= total for done, total in told)
    assert len(told) > 4
