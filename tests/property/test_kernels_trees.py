"""Every question that is asked of trees of boxes, and of boxes by bits, against looking at every pair.

Values are quarters, so that sums of them and of their squares are exact and ties are ties.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from sfumato.kernels import box_distances, linking
from sfumato.kernels.linking import Window, count_inside
from sfumato.kernels.threads import CompileAllowance
from sfumato.kernels.trees.covering import first_covering

METRICS = ("euclidean", "manhattan", "chebyshev", "hamming")
seeds = st.integers(0, 2**32)


@pytest.fixture(scope="module", autouse=True)
def _kernels_only():
    """Small work goes by the kernels too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CompileAllowance, "granted", False)
        yield


# ------------------------------------------------------------------------------------- points, by distance and window


def two_tables(rng):
    """Points and others, how many of their columns are codes, and windows on two more columns."""
    n, m, d, n_codes = int(rng.integers(1, 40)), int(rng.integers(1, 300)), int(rng.integers(0, 5)), 0
    spread = int(rng.choice([2, 5, 60]))
    points, others = (rng.integers(0, spread, (size, d)) / 4 for size in (n, m))
    if d:
        n_codes = int(rng.integers(0, d + 1))
        points[:, d - n_codes :], others[:, d - n_codes :] = (
            np.floor(each[:, d - n_codes :] * 4) for each in (points, others)
        )
    width = int(rng.integers(0, 3))
    values, lows = rng.integers(0, 9, (m, width)) / 4, rng.integers(-1, 9, (n, width)) / 4
    highs = lows + rng.integers(-1, 6, (n, width)) / 4
    if width:
        lows[rng.random((n, width)) < 0.1], highs[rng.random((n, width)) < 0.1] = -np.inf, np.inf
    return points, others, n_codes, Window(values, lows, highs, bool(rng.integers(2)))


def keys_of_all(points, others, metric, n_codes):
    n_measured = 0 if metric == "hamming" else points.shape[1] - n_codes
    gaps = np.abs(points[:, None, :] - others[None, :, :])
    parts = np.where(gaps > 0, 1.0, 0.0)
    parts[..., :n_measured] = gaps[..., :n_measured] ** (2 if metric == "euclidean" else 1)
    return parts.max(axis=2, initial=0.0) if metric == "chebyshev" else parts.sum(axis=2)


def inside_of_all(window):
    low, value, high = window.lows[:, None], window.values[None], window.highs[:, None]
    return ((low <= value) & (value <= high)).all(axis=2)


@pytest.mark.parametrize("metric", METRICS)
@examples(60)
@given(seed=seeds, cap=st.sampled_from([None, 1, 3]))
def test_rivals_are_those_of_all_pairs(metric, seed, cap):
    rng = np.random.default_rng(seed)
    points, others, n_codes, window = two_tables(rng)
    groups, other_groups = rng.integers(-1, 30, len(points)), rng.integers(-1, 30, len(others))
    found = linking.closer_counts(
        points, others, groups, other_groups, metric=metric, n_codes=n_codes, window=window, cap=cap
    )
    keys, inside = keys_of_all(points, others, metric, n_codes), inside_of_all(window)
    for i in range(len(points)):
        own = inside[i] & (other_groups == groups[i]) & (groups[i] >= 0)
        if not own.any():
            assert np.isinf(found.references[i])
            continue
        least = keys[i, own].min()
        nearer = (inside[i] & (keys[i] < least)).sum()
        assert found.own[i] == (own & (keys[i] == least)).sum()
        assert found.nearer[i] == (nearer if cap is None else min(nearer, cap))
        if cap is None or nearer < cap:
            assert found.tied[i] == (inside[i] & (keys[i] == least)).sum()


@pytest.mark.parametrize("metric", METRICS)
@examples(60)
@given(seed=seeds)
def test_the_nearest_and_those_in_the_window_are_those_of_all_pairs(metric, seed):
    points, others, n_codes, window = two_tables(np.random.default_rng(seed))
    tied, inside = linking.nearest_in_window(points, others, metric=metric, n_codes=n_codes, window=window)
    keys = keys_of_all(points, others, metric, n_codes)
    nearest = keys == keys.min(axis=1, keepdims=True)
    np.testing.assert_array_equal(tied, nearest.sum(axis=1))
    np.testing.assert_array_equal(inside, (nearest & inside_of_all(window)).sum(axis=1))


# ------------------------------------------------------------------------------------- points in boxes


def some_boxes(rng, m, d):
    lows = rng.integers(-1, 12, (m, d)) / 4
    highs = lows + rng.integers(0, 9, (m, d)) / 4
    lows[rng.random((m, d)) < 0.1], highs[rng.random((m, d)) < 0.1] = -np.inf, np.inf
    return lows, highs


@examples(80)
@given(n=st.integers(0, 300), m=st.integers(0, 30), d=st.integers(0, 4), seed=seeds)
def test_points_in_boxes_are_counted(n, m, d, seed):
    rng = np.random.default_rng(seed)
    points, amounts = rng.integers(0, 12, (n, d)) / 4, rng.integers(1, 5, n)
    points[rng.random((n, d)) < 0.05] = np.inf
    lows, highs = some_boxes(rng, m, d)
    inside = ((lows[:, None] <= points) & (points <= highs[:, None])).all(axis=2)
    np.testing.assert_array_equal(count_inside(points, amounts, lows, highs), (inside * amounts).sum(axis=1))


@examples(80)
@given(n=st.integers(0, 40), m=st.integers(0, 300), d=st.integers(1, 4), seed=seeds)
def test_the_first_covering_box_is_that_of_all_pairs(n, m, d, seed):
    rng = np.random.default_rng(seed)
    points = rng.integers(0, 12, (n, d)).astype(np.float64)
    lows, highs = (np.floor(side) * 4 for side in some_boxes(rng, m, d))
    lists = np.where((rng.random((m, d)) < 0.3) & np.isfinite(highs), rng.integers(0, 5, (m, d)), -1)
    members = (rng.random((5, 16)) < 0.6).astype(np.uint8)
    found = first_covering(points, lows, highs, lists=lists, members=members)
    for point, box in zip(points.astype(np.int64), found, strict=True):
        covers = (lows <= point) & (point <= highs) & ((lists < 0) | (members[lists, point] == 1))
        boxes = np.flatnonzero(covers.all(axis=1))
        assert box == (boxes[0] if len(boxes) else -1)


# ------------------------------------------------------------------------------------- boxes, by bits


def mixed_boxes(rng, *, euclidean):
    """Points and boxes of two columns of each sort, and the near and the far key of every pair."""
    n, g = int(rng.integers(1, 25)), int(rng.integers(1, 150))
    n_sets, n_labels, n_codes = 2, 4, 5
    is_member = rng.random((2, n, g)) < 0.7  # sets of categories
    exact = (rng.random((g, 2)) < 0.5).astype(np.uint8)
    steps = np.array([1, 1, 0, 0], dtype=np.uint8)
    numbers = rng.integers(0, 12, (n, 4)) / 4
    numbers[rng.random((n, 4)) < 0.1] = np.nan
    lows = rng.integers(0, 12, (g, 4)) / 4
    highs = lows + rng.integers(0, 3, (g, 4)) / 4 * (rng.random((g, 4)) < 0.5)
    is_open = rng.random((g, 4)) < 0.1
    lows[is_open], highs[is_open] = -np.inf, np.inf
    codes, labels = rng.integers(0, n_codes, (n, n_sets)), rng.integers(0, n_labels, (g, n_sets))
    near = rng.integers(0, 5, (n_labels, n_codes)) / 4
    far = near + rng.integers(0, 3, (n_labels, n_codes)) / 4
    is_in = (lows <= numbers[:, None]) & (numbers[:, None] <= highs) | is_open  # [n, g, 4]
    fits = [*is_member, is_in[..., 0], is_in[..., 1]]
    fits += [near[labels[:, c], codes[:, c, None]] == 0 for c in range(n_sets)]
    fits += [is_in[..., 2], is_in[..., 3]]
    places = np.arange(len(fits) * n).reshape(len(fits), n).T.copy()
    bits = box_distances.no_bits(len(fits) * n, g)
    point, box = np.nonzero(np.concatenate(fits))
    box_distances.mark(bits, box, point, point)
    losses = np.sort(rng.integers(0, 4, g)) * 2**36
    ends = np.array([[0.0] * 4, [3.0] * 4])
    shown = box_distances.ReleasedCombinations(
        lows, highs, ends, steps, labels, near, far, bits, exact, 4, losses, rng.integers(1, 4, g), euclidean
    )
    keys = []
    for is_far in (False, True):
        table, power = (far if is_far else near), 2 if euclidean else 1
        key = sum(~each | (is_far & (exact[:, c] == 0)) for c, each in enumerate(is_member)).astype(float)
        key += sum(table[labels[:, c], codes[:, c, None]] ** power for c in range(n_sets))
        for c in range(4):
            key += _gaps(numbers[:, c, None], lows[:, c], highs[:, c], steps[c], is_far=is_far) ** power
        keys.append(key)
    return box_distances.QueryPoints(numbers, codes, places), shown, *keys


def _gaps(x, low, high, is_step, *, is_far):
    is_open = np.isinf(low)
    if is_step:
        with np.errstate(invalid="ignore"):
            inside = ((low == x) & (x == high)) if is_far else ((low <= x) & (x <= high))
        gaps = np.where(inside, 0.0, 1.0)
    elif is_far:
        low, high = np.where(is_open, 0.0, low), np.where(is_open, 3.0, high)
        gaps = np.maximum(np.abs(x - low), np.abs(high - x))
    else:
        gaps = np.maximum(np.maximum(low - x, x - high), 0.0)
    return np.where(np.isnan(x), np.where(is_open & (not is_far), 0.0, 1.0), gaps)


@examples(80)
@given(seed=seeds, euclidean=st.booleans())
def test_rivals_among_boxes_are_those_of_all_pairs(seed, euclidean):
    rng = np.random.default_rng(seed)
    points, shown, near, far = mixed_boxes(rng, euclidean=euclidean)
    n, g = near.shape
    is_own = rng.random((n, g)) < rng.choice([0.0, 2.0 / g, 0.1])
    counts = rng.integers(1, 3, is_own.sum())
    ends = np.cumsum(is_own.sum(axis=1))
    own = box_distances.OwnBoxes(ends - is_own.sum(axis=1), ends, np.nonzero(is_own)[1], counts)
    distances, its, tied, nearer = box_distances.closer_counts(points, own, shown)
    for i in range(n):
        mine = own.boxes[own.starts[i] : own.ends[i]]
        if not len(mine):
            assert np.isinf(distances[i])
            continue
        least = near[i, mine].min()
        assert distances[i] == (np.sqrt(least) if euclidean else least)
        loss = shown.losses[mine[near[i, mine] == least]].min()
        as_near = (near[i] == least) & (shown.losses == loss)
        assert its[i] == counts[own.starts[i] : own.ends[i]][as_near[mine]].sum()
        before = (shown.losses <= loss) & ((near[i] < least) | ((near[i] == least) & (shown.losses < loss)))
        before |= (shown.losses > loss) & (far[i] < least)
        assert nearer[i] == before.any()
        if not nearer[i]:
            assert tied[i] == shown.sizes[as_near].sum()


@examples(80)
@given(seed=seeds, euclidean=st.booleans(), reach=st.sampled_from([0.0, np.inf]), k=st.integers(1, 4))
def test_pairs_of_points_and_boxes_are_priced(seed, euclidean, reach, k):
    rng = np.random.default_rng(seed)
    points, shown, near, _ = mixed_boxes(rng, euclidean=euclidean)
    n, g = near.shape
    pricing = box_distances.Pricing(64.0, reach)
    cost = np.rint((np.sqrt(near) if euclidean else near) * 64 + shown.losses / 2.0**34).astype(np.int64)
    rows, boxes = np.divmod(np.arange(n * g), g)
    everywhere = box_distances.costs(points, shown, pricing._replace(reach=np.inf), rows, boxes)
    np.testing.assert_array_equal(everywhere, cost.ravel())
    limits, prices = rng.integers(0, 200, n), rng.integers(0, 40, g)
    can_be = near <= reach
    wanted = can_be & (cost <= limits[:, None] + prices)
    found = box_distances.pairs(points, shown, pricing, limits, prices, int(wanted.sum()), None)
    np.testing.assert_array_equal(found, [*np.nonzero(wanted), cost[wanted]])
    assert box_distances.pairs(points, shown, pricing, limits, prices, int(wanted.sum()) - 1, None) is None
    rows, boxes, costs = box_distances.best(points, shown, pricing, limits, prices, k, None)
    np.testing.assert_array_equal(costs, cost[rows, boxes])
    for i in range(n):
        keys = np.sort((cost[i] - prices)[can_be[i] & (cost[i] - prices < limits[i])])[:k]
        np.testing.assert_array_equal(np.sort(costs[rows == i] - prices[boxes[rows == i]]), keys)
