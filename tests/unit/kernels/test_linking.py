"""The linking kernel against all pairs in whole numbers, and at the edges of what it may be given."""

import numpy as np
import pytest

from sfumato.kernels.linking import Window, closer_counts, nearest_in_window

METRICS = ("euclidean", "manhattan", "chebyshev", "hamming")


def exact_keys(points, others, metric, n_codes):
    """All pairs, in whole numbers: squared distances for the Euclidean metric, plain ones for the others."""
    n_measured = 0 if metric == "hamming" else points.shape[1] - n_codes
    gaps = np.abs(points[:, None, :].astype(np.int64) - others[None, :, :].astype(np.int64))
    keys = np.where(gaps > 0, 1, 0)
    keys[:, :, :n_measured] = gaps[:, :, :n_measured] ** (2 if metric == "euclidean" else 1)
    return keys.max(axis=2) if metric == "chebyshev" else keys.sum(axis=2)


def exhaustive(points, others, groups, other_groups, *, metric, n_codes=0, window=None):
    """For each point the least key among its own, how many own and other ones have it, how many a lesser one."""
    keys = exact_keys(points, others, metric, n_codes)
    found = []
    for i in range(len(points)):
        candidates = np.ones(len(others), dtype=bool)
        if window is not None:
            values, lows, highs = window
            candidates = ((values >= lows[i]) & (values <= highs[i])).all(axis=1)
        own = candidates & (other_groups == groups[i]) & (groups[i] >= 0)
        if not own.any():
            found.append((-1, 0, 0, 0))
            continue
        least = keys[i, own].min()
        tied = candidates & (keys[i] == least)
        found.append((least, (tied & own).sum(), tied.sum(), (candidates & (keys[i] < least)).sum()))
    return np.array(found, dtype=np.int64).reshape(-1, 4)


def assert_agrees(result, expected, metric):
    has_own = expected[:, 0] >= 0
    np.testing.assert_array_equal(np.isfinite(result.references), has_own)
    lengths = np.sqrt(expected[has_own, 0]) if metric == "euclidean" else expected[has_own, 0]
    np.testing.assert_allclose(result.references[has_own], lengths, rtol=1e-14)
    np.testing.assert_array_equal(result.own, expected[:, 1])
    np.testing.assert_array_equal(result.tied[has_own], expected[has_own, 2])
    np.testing.assert_array_equal(result.nearer[has_own], expected[has_own, 3])
    chances = np.where(has_own & (expected[:, 3] == 0), expected[:, 1] / np.maximum(expected[:, 2], 1), 0)
    np.testing.assert_array_equal(result.chances, chances)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("spread", [2, 5, 1000])
@pytest.mark.parametrize("n_codes", [0, 2])
def test_agrees_with_all_pairs(metric, spread, n_codes):
    """Many leaves, many duplicates (spread 2) or hardly any tie (spread 1000), groups of several and of none."""
    rng = np.random.default_rng(spread)
    points, others = rng.integers(0, spread, (700, 4)), rng.integers(0, spread, (900, 4))
    groups, other_groups = rng.integers(-1, 500, 700), rng.integers(-1, 500, 900)
    expected = exhaustive(points, others, groups, other_groups, metric=metric, n_codes=n_codes)
    all_counted = closer_counts(
        points, others, groups, other_groups, metric=metric, n_codes=n_codes, cap=None
    )
    assert_agrees(all_counted, expected, metric)
    first_only = closer_counts(points, others, groups, other_groups, metric=metric, n_codes=n_codes)
    np.testing.assert_array_equal(first_only.chances, all_counted.chances)
    np.testing.assert_array_equal(first_only.nearer, np.minimum(all_counted.nearer, 1))
    capped = closer_counts(points, others, groups, other_groups, metric=metric, n_codes=n_codes, cap=7)
    np.testing.assert_array_equal(capped.nearer, np.minimum(all_counted.nearer, 7))


@pytest.mark.parametrize("metric", METRICS)
def test_codes_of_other_weights_agree_with_all_pairs(metric):
    """Weights of quarters: in units of ¼ (of ½ where they are squared) all keys are whole numbers."""
    rng = np.random.default_rng(12)
    points, others = rng.integers(0, 3, (400, 4)), rng.integers(0, 3, (500, 4))
    groups, other_groups = rng.integers(0, 200, 400), rng.integers(0, 200, 500)
    n_codes = 4 if metric == "hamming" else 2
    weights = np.array([1.0, 0.5, 0.25, 0.75])[-n_codes:]
    gaps = np.abs(points[:, None, :] - others[None, :, :])
    keys = 4 * gaps ** (2 if metric == "euclidean" else 1)
    keys[:, :, 4 - n_codes :] = (gaps[:, :, 4 - n_codes :] > 0) * (4 * weights).astype(int)
    keys = keys.max(axis=2) if metric == "chebyshev" else keys.sum(axis=2)
    found = closer_counts(
        points, others, groups, other_groups, metric=metric, n_codes=n_codes, weights=weights, cap=None
    )
    for i in range(len(points)):
        own = other_groups == groups[i]
        if not own.any():
            assert np.isinf(found.references[i])
            continue
        least = keys[i, own].min()
        assert found.tied[i] == (keys[i] == least).sum()
        assert found.nearer[i] == (keys[i] < least).sum()
        assert found.own[i] == (keys[i, own] == least).sum()
        reference = found.references[i] ** (2 if metric == "euclidean" else 1)
        assert 4 * reference == pytest.approx(least)


@pytest.mark.parametrize("weights", [[1.0], [0.5, 0.0], [0.5, 1.5], [0.5, np.nan]])
def test_weights_that_cannot_be(weights):
    points = np.zeros((3, 4))
    with pytest.raises(ValueError, match="`weights` must be 2 numbers"):
        closer_counts(
            points, points, np.arange(3), np.arange(3), metric="manhattan", n_codes=2, weights=weights
        )


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("decides", [False, True])
def test_window_agrees_with_all_pairs(metric, decides):
    rng = np.random.default_rng(4)
    points, others = rng.integers(0, 8, (300, 3)), rng.integers(0, 8, (400, 3))
    values = rng.integers(0, 10, (400, 2))
    lows = rng.integers(-1, 8, (300, 2))
    highs = lows + rng.integers(-1, 6, (300, 2))  # some are empty
    groups, other_groups = rng.integers(0, 60, 300), rng.integers(0, 60, 400)
    expected = exhaustive(points, others, groups, other_groups, metric=metric, window=(values, lows, highs))
    window = Window(values, lows, highs, decides)
    result = closer_counts(points, others, groups, other_groups, metric=metric, window=window, cap=None)
    assert_agrees(result, expected, metric)
    assert (expected[:, 0] >= 0).any()


def test_window_alone_counts_candidates():
    """Without columns all distances are 0: what is left is who lies in the window."""
    rng = np.random.default_rng(5)
    values = rng.integers(0, 30, (500, 3))
    lows = rng.integers(0, 25, (200, 3))
    highs = lows + 10
    groups = np.arange(200)
    other_groups = np.concatenate((np.arange(200), np.full(300, -1)))
    result = closer_counts(
        np.empty((200, 0)), np.empty((500, 0)), groups, other_groups,
        metric="hamming", window=Window(values, lows, highs),
    )  # fmt: skip
    for i in range(200):
        inside = ((values >= lows[i]) & (values <= highs[i])).all(axis=1)
        assert result.own[i] == inside[i]
        assert result.tied[i] == (inside.sum() if inside[i] else 0)


@pytest.mark.parametrize("metric", METRICS)
def test_nearest_in_window_agrees_with_all_pairs(metric):
    rng = np.random.default_rng(6)
    points, others = rng.integers(0, 4, (250, 3)), rng.integers(0, 4, (300, 3))
    values, lows = rng.integers(0, 9, (300, 1)), rng.integers(0, 9, (250, 1))
    highs = lows + 2
    tied, inside = nearest_in_window(
        points, others, metric=metric, n_codes=1, window=Window(values, lows, highs)
    )
    keys = exact_keys(points, others, metric, 1)
    nearest = keys == keys.min(axis=1, keepdims=True)
    np.testing.assert_array_equal(tied, nearest.sum(axis=1))
    in_window = (values[:, 0] >= lows) & (values[:, 0] <= highs)
    np.testing.assert_array_equal(inside, (nearest & in_window).sum(axis=1))


def test_first_example_of_herranz():
    points = np.array([[1.0, 0], [0, 1], [-1, 0], [0, -1]])
    others = np.array([[0, 0], [0, 2.1], [-2.1, 0], [0, -2.1]])
    result = closer_counts(points, others, np.arange(4), np.arange(4), metric="euclidean", cap=None)
    assert result.chances.tolist() == [1, 0, 0, 0]
    assert result.nearer.tolist() == [0, 1, 1, 1]


def test_second_example_of_herranz():
    points = np.array([[1.0], [2], [3], [4]])
    others = np.array([[2.0], [3], [4], [-0.1]])
    result = closer_counts(points, others, np.arange(4), np.arange(4), metric="euclidean", cap=None)
    assert result.chances.tolist() == [1, 0, 0, 0]
    assert result.nearer.tolist() == [0, 1, 1, 3]


@pytest.mark.parametrize("offset", [0.0, 1e8])
@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_ties_survive_rounding(metric, offset):
    """Sums of tenths differ in their last digit; that must not make one neighbour nearer than another."""
    rng = np.random.default_rng(7)
    whole_points, whole_others = rng.integers(0, 7, (300, 3)), rng.integers(0, 7, (300, 3))
    groups = np.arange(300)
    expected = exhaustive(whole_points, whole_others, groups, groups, metric=metric)
    step = 0.1 if offset == 0 else 0.125  # near 1e8 tenths are not what they seem; eighths are exact
    result = closer_counts(
        whole_points * step + offset, whole_others * step + offset, groups, groups, metric=metric, cap=None
    )
    np.testing.assert_array_equal(result.tied, expected[:, 2])
    np.testing.assert_array_equal(result.nearer, expected[:, 3])


@pytest.mark.parametrize("factor", [1e-90, 1e-9, 1e9, 1e90])
def test_the_unit_does_not_matter(factor):
    rng = np.random.default_rng(8)
    points = rng.normal(size=(200, 3))
    others = points + 0.5 * rng.normal(size=points.shape)
    groups = np.arange(200)
    plain = closer_counts(points, others, groups, groups, metric="euclidean", cap=None)
    scaled = closer_counts(points * factor, others * factor, groups, groups, metric="euclidean", cap=None)
    np.testing.assert_array_equal(plain.nearer, scaled.nearer)
    np.testing.assert_array_equal(plain.chances, scaled.chances)


@pytest.mark.parametrize("n", [0, 1, 3])
@pytest.mark.parametrize("m", [0, 1, 3])
@pytest.mark.parametrize("d", [0, 2])
def test_small_and_constant(n, m, d):
    result = closer_counts(np.ones((n, d)), np.ones((m, d)), np.arange(n), np.arange(m), metric="manhattan")
    assert result.chances.tolist() == [1 / m if i < m else 0 for i in range(n)]
    assert result.own.tolist() == [int(i < m) for i in range(n)]


def test_nobody_belongs_to_a_negative_group():
    result = closer_counts(
        np.zeros((2, 1)), np.zeros((2, 1)), np.array([-1, -1]), np.array([-1, -1]), metric="hamming"
    )
    assert result.chances.tolist() == [0, 0]
    assert np.isinf(result.references).all()


def test_minus_zero_is_zero():
    result = closer_counts(
        np.array([[0.0]]), np.array([[-0.0], [0.0]]), np.array([0]), np.array([0, 1]), metric="hamming"
    )
    assert result.tied.tolist() == [2]


def test_tells_of_progress_and_stops():
    rng = np.random.default_rng(9)
    points = rng.normal(size=(500, 2))
    told = []
    closer_counts(
        points, points, np.arange(500), np.arange(500), metric="euclidean", tick=lambda *at: told.append(at)
    )
    assert told
    assert told[-1] == (500, 500)
    window = Window(points[:, :1], points[:, :1], points[:, :1])
    told.clear()
    nearest_in_window(points, points, metric="euclidean", window=window, tick=lambda *at: told.append(at))
    assert [done for done, _ in told] == sorted(done for done, _ in told)

    def stop(_done, _total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        closer_counts(points, points, np.arange(500), np.arange(500), metric="euclidean", tick=stop)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"metric": "cosine"}, "`metric` must be"),
        ({"others": np.zeros((3, 2))}, "as many columns"),
        ({"points": np.array([[np.nan]])}, "must be finite"),
        ({"n_codes": 2}, "`n_codes` must be"),
        ({"groups": np.zeros(2, dtype=int)}, "`groups` must name"),
        ({"window": Window(np.zeros((2, 1)), np.zeros((1, 1)), np.zeros((1, 1)))}, "a window must have"),
        ({"window": Window(np.full((3, 1), np.inf), np.zeros((1, 1)), np.zeros((1, 1)))}, "must be finite"),
    ],
)
def test_says_what_is_wrong(change, message):
    given = {
        "points": np.zeros((1, 1)),
        "others": np.zeros((3, 1)),
        "groups": np.zeros(1, dtype=int),
        "other_groups": np.zeros(3, dtype=int),
        "metric": "euclidean",
        **change,
    }
    first = [given.pop(name) for name in ("points", "others", "groups", "other_groups")]
    with pytest.raises(ValueError, match=message):
        closer_counts(*first, **given)
