"""CBFS, V-MDAV, MDAV in parts and sequential clustering on small cases."""

import os

import numpy as np
import pytest

from sfumato.kernels.groups import (
    cbfs,
    group_means,
    mdav,
    mdav_in_parts,
    parts,
    relocation,
    sequential,
    vmdav,
)

KINDS = {
    "cbfs": cbfs,
    "vmdav": lambda points, k, **more: vmdav(points, k, 1.1, **more),
    "parts": lambda points, k, **more: mdav_in_parts(points, k, 100, **more),
    "sequential": lambda points, k, **more: sequential(points, k, np.random.default_rng(1), **more),
}
of_each_kind = pytest.mark.parametrize("group", KINDS.values(), ids=KINDS)


def column(*values):
    return np.array(values, dtype=np.float64)[:, None]


def loss(points, groups):
    return ((points - group_means(points, groups)[groups]) ** 2).sum()


def test_cbfs_by_hand():
    # Mean 4: farthest 10, with 6. Mean 4/3: farthest 3, with 1. 0 is left: centres 8 and 2.
    assert cbfs(column(0, 1, 3, 6, 10), 2).tolist() == [1, 1, 1, 0, 0]


def test_vmdav_by_hand():
    # Mean 11. Farthest 0, not 22 which comes later, with 1; 2 joins, as 1 < 1.1 · 18. Then 22 with 21; 20 joins.
    assert vmdav(column(0, 1, 2, 20, 21, 22), 2, 1.1).tolist() == [0, 0, 0, 1, 1, 1]


def test_vmdav_without_gain_never_extends():
    # 0 with 1 and 22 with 21; of 2 and 20, as far from 11, the first takes the other.
    assert vmdav(column(0, 1, 2, 20, 21, 22), 2, 0.0).tolist() == [0, 0, 2, 2, 1, 1]


def test_vmdav_leaves_room_for_the_last():
    # 0 with 1; if 2 joined there were no room for 3, which is too few for a group.
    assert vmdav(column(0, 1, 2, 3), 2, 1e9).tolist() == [0, 0, 1, 1]


def test_parts_by_hand():
    # Cut at 6 of 13, a multiple of 2, across the longer axis; then of 3 and 4 pairs each side is grouped.
    long = np.array([5.0, 0, 11, 2, 3, 8, 1, 6, 4, 9, 10, 7, 12])
    groups = mdav_in_parts(np.stack([long * 10, long % 2], axis=1), 2, 8)
    lower = long < 6
    assert set(groups[lower].tolist()) == {0, 1, 2}
    assert set(groups[~lower].tolist()) == {3, 4, 5}
    np.testing.assert_array_equal(groups[lower], mdav(np.stack([long * 10, long % 2], axis=1)[lower], 2))


def test_what_needs_no_cut_is_mdav():
    points = np.random.default_rng(2).normal(size=(500, 3))
    np.testing.assert_array_equal(mdav_in_parts(points, 4), mdav(points, 4))
    np.testing.assert_array_equal(mdav_in_parts(points[:15], 4, 1), mdav(points[:15], 4))


def test_parts_lose_little():
    rng = np.random.default_rng(3)
    normal = rng.normal(size=(20_000, 8))
    correlated = np.linalg.cholesky(np.full((8, 8), 0.5) + 0.5 * np.eye(8))
    skewed = np.exp(rng.normal(size=(20_000, 8)) @ correlated.T)
    for points in (normal, skewed / skewed.std(axis=0)):
        groups = mdav_in_parts(points, 5, 10_000)
        assert np.bincount(groups).tolist() == [5] * 4000
        assert loss(points, groups) <= 1.05 * loss(points, mdav(points, 5))


def test_threads_do_not_change_the_answer(monkeypatch):
    points = np.random.default_rng(4).normal(size=(3000, 3))
    whole = mdav_in_parts(points, 3, 200)
    for n_threads in (None, 1, 7):
        monkeypatch.setattr(os, "cpu_count", lambda n_threads=n_threads: n_threads)
        np.testing.assert_array_equal(mdav_in_parts(points, 3, 200), whole)


def test_sequential_finds_what_is_plain():
    rng = np.random.default_rng(5)
    truth = np.repeat(np.arange(40), rng.integers(4, 8, 40))
    points = rng.normal(size=(40, 3))[truth] * 50 + rng.normal(size=(len(truth), 3)) * 0.1
    groups = sequential(points, 4, rng)
    assert len(set(zip(groups.tolist(), truth.tolist(), strict=True))) == 40


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_sequential_loses_less_than_mdav(seed):
    rng = np.random.default_rng(seed)
    scattered = rng.normal(size=(1500, 5))
    clustered = 3 * rng.normal(size=(200, 5))[rng.integers(0, 200, 1500)] + 0.3 * rng.normal(size=(1500, 5))
    for points, share in ((scattered, 0.95), (clustered, 0.7)):
        assert loss(points, sequential(points, 5, rng)) < share * loss(points, mdav(points, 5))


def test_sequential_draws_from_its_generator():
    points = np.random.default_rng(6).normal(size=(300, 2))
    once, again, other = (sequential(points, 3, np.random.default_rng(seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(once, again)
    assert not np.array_equal(once, other)


@of_each_kind
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5])
def test_fewer_than_two_k_are_one_group(group, n):
    assert group(np.arange(n, dtype=np.float64)[:, None] ** 2, 3).tolist() == [0] * n


@of_each_kind
def test_k_of_one_leaves_each_record_alone(group):
    assert group(np.zeros((5, 2)), 1).tolist() == [0, 1, 2, 3, 4]


@of_each_kind
def test_all_equal_or_no_column(group):
    for points in (np.full((310, 2), 7.25), np.empty((310, 0))):
        counts = np.bincount(group(points, 3))
        assert counts.sum() == 310
        assert counts.min() >= 3
        assert counts.max() <= 5


@of_each_kind
@pytest.mark.parametrize("scale", [2.0**-1000, 2.0**1000])
def test_neither_overflow_nor_underflow(group, scale):
    points = np.random.default_rng(7).normal(size=(300, 2))
    np.testing.assert_array_equal(group(points * scale, 3), group(points, 3))


@of_each_kind
def test_memory_layout_does_not_matter(group):
    points = np.random.default_rng(8).normal(size=(300, 3))
    by_column = np.asfortranarray(points)
    by_column.flags.writeable = False
    np.testing.assert_array_equal(group(by_column, 3), group(points, 3))


@of_each_kind
def test_what_cannot_be_grouped_is_refused(group):
    with pytest.raises(ValueError, match="finite"):
        group(column(1, np.nan), 2)
    with pytest.raises(ValueError, match="`k` must be at least 1, got: 0"):
        group(np.zeros((3, 1)), 0)


@pytest.mark.parametrize("gain", [-0.1, np.nan])
def test_a_gain_below_nothing_is_refused(gain):
    with pytest.raises(ValueError, match="`gain` must be 0 or more"):
        vmdav(np.zeros((9, 1)), 2, gain)


def test_a_part_of_nothing_is_refused():
    with pytest.raises(ValueError, match="`part` must be at least 1, got: 0"):
        mdav_in_parts(np.zeros((9, 1)), 2, 0)


@of_each_kind
def test_ticks_rise_and_do_not_change_the_answer(group, monkeypatch):
    monkeypatch.setattr(relocation, "CHUNK", 100)
    monkeypatch.setattr(parts, "SLICE", 0.001)
    points = np.random.default_rng(9).normal(size=(1000, 3))
    ticks = []
    np.testing.assert_array_equal(
        group(points, 3, tick=lambda done, n: ticks.append((done, n))), group(points, 3)
    )
    done = [count for count, _ in ticks]
    assert len(done) > 2
    assert done == sorted(done)
    assert (
        990 <= done[-1] <= 1000 or group is KINDS["parts"]
    )  # whose parts each keep their last to themselves
    assert {n for _, n in ticks} == {1000}


@of_each_kind
def test_a_tick_can_cancel(group):
    def stop(done, n):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        group(np.random.default_rng(10).normal(size=(1000, 2)), 3, tick=stop)


def test_cancelling_while_parts_are_grouped_stops_the_threads():
    begun = []

    def stop(done, n):
        begun.append(done)
        if done > 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mdav_in_parts(np.random.default_rng(11).normal(size=(40_000, 6)), 3, 20_000, tick=stop)
    assert 0 < begun[-1] < 40_000
