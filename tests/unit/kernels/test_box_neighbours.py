"""The nearest boxes, and how many records meet conditions, against a look at every pair."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from sfumato.kernels import box_neighbours, predicates


def gap(value, low, high, *, is_step, blind):
    if (low, high) == (-np.inf, np.inf):
        return blind
    if np.isnan(value) or np.isnan(low):
        return 0.0 if np.isnan(value) and np.isnan(low) else 1.0
    away = max(low - value, value - high, 0.0)
    return float(away > 0) if is_step else away


@examples(30)
@given(st.integers(0, 10_000), st.integers(1, 4))
def test_the_nearest_are_those_that_a_look_at_every_pair_finds(seed, k):
    rng = np.random.default_rng(seed)
    d, m, n = int(rng.integers(1, 4)), int(rng.integers(0, 600)), 7
    points = rng.integers(0, 5, (n, d)) * 1.0
    points[rng.random((n, d)) < 0.2] = np.nan
    lows = rng.integers(0, 5, (m, d)) * 1.0
    highs = lows + rng.integers(0, 2, (m, d))
    hole, open_ = rng.random((m, d)) < 0.1, rng.random((m, d)) < 0.1
    lows[hole], highs[hole] = np.nan, np.nan
    lows[open_], highs[open_] = -np.inf, np.inf
    steps, blind, extras = rng.random(d) < 0.5, rng.random(d), rng.integers(0, 3, m) / 8
    boxes = box_neighbours.ReleasedBoxes(lows, highs, steps, blind, extras)
    places, distances = box_neighbours.nearest(points, boxes, k=k)
    for i in range(n):
        every = [
            extras[j]
            + sum(
                gap(points[i, c], lows[j, c], highs[j, c], is_step=steps[c], blind=blind[c]) for c in range(d)
            )
            for j in range(m)
        ]
        order = np.argsort(every, kind="stable")[:k]
        np.testing.assert_allclose(distances[i, : len(order)], np.array(every)[order])
        np.testing.assert_allclose(np.array(every)[places[i, : len(order)]], np.array(every)[order])
        assert (places[i, len(order) :] == -1).all()
        assert np.isposinf(distances[i, len(order) :]).all()


def test_of_boxes_equally_near_the_first_is_taken():
    same = box_neighbours.ReleasedBoxes(
        np.zeros((600, 1)), np.zeros((600, 1)), np.array([False]), np.array([0.5]), np.zeros(600)
    )
    places, _ = box_neighbours.nearest(np.ones((3, 1)), same, k=2)
    np.testing.assert_array_equal(places, [[0, 1]] * 3)


@examples(20)
@given(st.integers(0, 10_000))
def test_common_owners_are_those_that_a_look_at_every_box_finds(seed):
    rng = np.random.default_rng(seed)
    m, n, owners = int(rng.integers(1, 300)), 5, rng.integers(0, 40, 300)
    searches, within = [], []
    for d in (1, 2):
        points, lows = rng.integers(0, 4, (n, d)) * 1.0, rng.integers(0, 4, (m, d)) * 1.0
        points[rng.random((n, d)) < 0.2] = np.nan
        lows[rng.random((m, d)) < 0.1] = np.nan
        steps, blind, extras = rng.random(d) < 0.5, rng.random(d), rng.integers(0, 3, m) / 8
        radii, whose = rng.integers(0, 3, n) * 1.0, rng.permutation(owners[:m])
        boxes = box_neighbours.ReleasedBoxes(lows, lows, steps, blind, extras)
        searches.append(box_neighbours.BoxSearch(points, boxes, radii, whose))
        far = [
            [
                sum(gap(p, b, b, is_step=s, blind=0) for p, b, s in zip(*row, steps, strict=True))
                for row in pairs
            ]
            for pairs in ([(point, low) for low in lows] for point in points)
        ]
        within.append([set(whose[np.array(far[i]) + extras <= radii[i]]) for i in range(n)])
    expected = [[len(one), len(two), len(one & two)] for one, two in zip(*within, strict=True)]
    np.testing.assert_array_equal(box_neighbours.count_common(*searches), expected)


@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("of_each", [1, 4])
def test_isolation_is_the_distance_to_the_second_nearest_group(of_each, width):
    rng = np.random.default_rng(4)
    lows = rng.integers(0, 30, (3, 40)) * 1.0
    highs = lows + rng.integers(0, width, (3, 40))
    gone, open_ = rng.random((3, 40)) < 0.1, rng.random((3, 40)) < 0.1
    lows[gone], highs[gone] = -np.inf, -np.inf
    lows[open_], highs[open_] = -np.inf, np.inf
    per_unit, groups = np.array([1.0, 0.5, np.inf]), np.arange(40) // of_each
    asked, rows = rng.integers(-1, 3, (60, 2)), rng.integers(0, 40, 60)
    asked[np.isposinf(highs[asked, rows[:, None]])] = -1
    low, high = lows[asked, rows[:, None]], highs[asked, rows[:, None]]

    records = predicates.SortedRecords.of(lows, highs, groups)

    def apart(q, record):
        far = 0.0
        for place, c in enumerate(asked[q]):
            if c >= 0 and (gone[c, rows[q]] != gone[c, record] or open_[c, record]):
                far = np.inf
            elif c >= 0 and not gone[c, record]:
                gap = max(lows[c, record] - high[q, place], low[q, place] - highs[c, record], 0)
                far = max(far, gap * per_unit[c] if gap else 0.0)
        return far

    far, near = predicates.find_isolation(asked, low, high, records, per_unit=per_unit)
    for q in range(60):
        every = np.array([apart(q, record) for record in range(40)])
        by_group = sorted(every[groups == group].min() for group in np.unique(groups))
        assert far[q] == by_group[1]
        assert every[groups == near[q]].min() == by_group[0] == 0


@pytest.mark.parametrize("of_each", [1, 4])
@pytest.mark.parametrize("most", [1, 2, 1000])
def test_conditions_are_counted_as_one_by_one(most, of_each):
    rng = np.random.default_rng(3)
    columns = rng.integers(0, 6, (3, 80)) * 1.0
    columns[rng.random((3, 80)) < 0.1] = -np.inf
    asked = rng.integers(-1, 3, (50, 2))
    lows = rng.integers(0, 4, (50, 2)) * 1.0
    lows[0], highs = -np.inf, lows + 1
    highs[0] = -np.inf
    groups = np.arange(80) // of_each
    records = predicates.SortedRecords.of(columns, columns, groups)
    found = predicates.count_matches(asked, lows, highs, records, most=most)
    for q in range(50):
        met = np.ones(80, dtype=bool)
        for column, low, high in zip(asked[q], lows[q], highs[q], strict=True):
            if column >= 0:
                met &= (low <= columns[column]) & (columns[column] <= high)
        assert found[q] == min(len(np.unique(groups[met])), most)
