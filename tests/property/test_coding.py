"""Laws of top and bottom coding, and of drawing outliers in."""

import math
from fractions import Fraction

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.method import ColumnView
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import Table
from sfumato.kernels.outlyingness import RobustCentre, scores, squares_at
from sfumato.methods.coding import MultivariateTopCoding, TopBottomCoding

# Few distinct values, so that ties are common; and floats of any size.
VALUES = st.lists(
    st.one_of(st.integers(-20, 20).map(float), st.floats(-1e9, 1e9)), min_size=1, max_size=60
).map(np.array)
SHARES = st.one_of(st.sampled_from([0.0, 1.0, 10.0, 25.0, 50.0]), st.floats(0, 50))
COUNTS = st.integers(0, 12)
REPLACES = st.sampled_from(["threshold", "mean", "median"])
SIDES = st.sampled_from(["both", "top", "bottom"])


def coded(values, *, weights=None, **settings):
    view = ColumnView(Column("x", Kind.CONTINUOUS), np.asarray(values), weights)
    return TopBottomCoding(**settings).protect_column(view, np.random.default_rng(0))


def rounded(ordered, wanted, more, replace):
    """The threshold, moved down to the roundest number that draws in at most a tenth more records."""
    threshold = ordered[len(ordered) - wanted]
    more = max(more, sum(value >= threshold for value in ordered))
    beyond = [value for value in ordered if sum(other >= value for other in ordered) > more]
    if replace != "threshold" or not beyond or not any(ordered):
        return threshold
    whole = all(value == int(value) for value in ordered)
    for power in range(11, -1 if whole else -30, -1):
        for digit in (5, 2, 1):
            step = digit * Fraction(10) ** power
            found = float(Fraction(threshold) // step * step)
            if beyond[-1] < found <= threshold:
                return found
    return threshold


def naive(values, *, share, count, side, replace):
    """Sort, cut, replace; the bottom as the top of the values upside down."""
    n = len(values)
    wanted = min(max(math.ceil(round(share * n / 100, 9)), count), n)
    if not wanted:
        return list(values)
    ordered = sorted(values)
    more = round(max(1.1 * share * n / 100, 1.1 * min(count, n)), 9)
    top = rounded(ordered, wanted, more, replace) if side != "bottom" else None
    mirrored = [-value for value in reversed(ordered)]
    bottom = -rounded(mirrored, wanted, more, replace) if side != "top" else None
    if top is not None and bottom is not None and top <= bottom:
        return [np.mean(values) if replace == "mean" else ordered[(n - 1) // 2]] * n

    def shown(group, edge, middle):
        group = sorted(group)
        return {"threshold": edge, "mean": np.mean(group), "median": group[middle(len(group))]}[replace]

    result = []
    for value in values:
        if top is not None and value >= top:
            result.append(shown([v for v in values if v >= top], top, lambda m: (m - 1) // 2))
        elif bottom is not None and value <= bottom:
            result.append(shown([v for v in values if v <= bottom], bottom, lambda m: m // 2))
        else:
            result.append(value)
    return result


@given(values=VALUES, share=SHARES, count=COUNTS, side=SIDES, replace=REPLACES)
def test_it_is_the_definition(values, share, count, side, replace):
    settings = {"share": share, "count": count, "side": side, "replace": replace}
    np.testing.assert_allclose(coded(values, **settings), naive(values, **settings), rtol=1e-12, atol=1e-6)


@given(values=VALUES, share=SHARES, count=COUNTS, replace=REPLACES)
def test_enough_records_show_the_greatest_and_the_least(values, share, count, replace):
    result = coded(values, share=share, count=count, replace=replace)
    least = min(max(math.ceil(share / 100 * len(values) - 1e-9), count), len(values))
    if least:
        assert (result == result.max()).sum() >= least
        assert (result == result.min()).sum() >= least


@given(values=VALUES, share=SHARES, count=COUNTS, side=SIDES, replace=REPLACES)
def test_order_is_not_reversed_and_once_more_changes_nothing(values, share, count, side, replace):
    settings = {"share": share, "count": count, "side": side, "replace": replace}
    once = coded(values, **settings)
    order = np.argsort(values, kind="stable")
    assert (np.diff(once[order]) >= -1e-6).all()
    np.testing.assert_array_equal(coded(once, **settings), once)


@given(values=VALUES, share=SHARES, count=COUNTS, side=SIDES)
def test_the_mean_keeps_the_total(values, share, count, side):
    result = coded(values, share=share, count=count, side=side, replace="mean")
    assert abs(result.sum() - values.sum()) <= 1e-13 * np.abs(values).sum() * len(values)


@given(values=VALUES, share=SHARES, count=COUNTS, replace=REPLACES)
def test_the_bottom_is_the_mirror_of_the_top(values, share, count, replace):
    settings = {"share": share, "count": count, "replace": replace}
    top, bottom = coded(values, side="top", **settings), coded(-values, side="bottom", **settings)
    np.testing.assert_array_equal(top, -bottom)


@given(values=VALUES, top=st.floats(-30, 30), width=st.floats(0.1, 30), count=COUNTS, replace=REPLACES)
def test_by_value_nothing_between_changes_and_nothing_beyond_is_left(values, top, width, count, replace):
    bottom = top - width
    result = coded(values, top=top, bottom=bottom, count=0, replace=replace)
    inside = (values > bottom) & (values < top)
    np.testing.assert_array_equal(result[inside], values[inside])
    if replace == "threshold":
        np.testing.assert_array_equal(result, np.clip(values, bottom, top))
    filled = coded(values, top=top, bottom=bottom, count=count)
    assert filled.max() <= max(top, bottom)
    if (values >= top).any():
        assert (filled == filled.max()).sum() >= min(count, len(values))


@given(
    pairs=st.lists(st.tuples(st.integers(-9, 9), st.integers(1, 5)), min_size=1, max_size=25),
    share=SHARES,
    side=SIDES,
    replace=REPLACES,
)
def test_a_weight_is_that_many_records(pairs, share, side, replace):
    values = np.array([float(value) for value, _ in pairs])
    weights = np.array([float(weight) for _, weight in pairs])
    settings = {"share": share, "side": side, "replace": replace, "count": 0}
    repeated = np.repeat(np.arange(len(pairs)), weights.astype(int))
    np.testing.assert_allclose(
        coded(values, weights=weights, **settings)[repeated],
        coded(values[repeated], **settings),
        rtol=1e-12,
        atol=1e-12,
    )


@given(values=VALUES, first=SHARES, second=SHARES, count=COUNTS)
def test_a_larger_share_codes_no_fewer(values, first, second, count):
    low, high = sorted((first, second))
    few, many = (coded(values, share=share, count=count, side="top") for share in (low, high))
    assert (many <= few).all()


# ------------------------------------------------------------------------------------------------------- outliers


@given(
    seed=st.integers(0, 2**32),
    shape=st.tuples(st.integers(1, 80), st.integers(1, 4)),
    share=st.floats(0.01, 100),
    holes=st.sampled_from([0.0, 0.3]),
    replace=st.sampled_from(["ellipsoid", "mean"]),
)
def test_no_record_is_left_outside(seed, shape, share, holes, replace):
    rng = np.random.default_rng(seed)
    values = rng.standard_t(2, shape) @ rng.standard_normal((shape[1], shape[1])) + 1e4
    values[rng.random(shape) < holes] = np.nan
    frame = pl.DataFrame({f"c{i}": values[:, i] for i in range(shape[1])})
    table = Table(frame, Schema(tuple(Column(name, Kind.CONTINUOUS) for name in frame.columns)))
    method = MultivariateTopCoding(share=share, replace=replace)
    result = method.apply(table, Run(seed=1)).table.frame.to_numpy()
    np.testing.assert_array_equal(np.isnan(result), np.isnan(values))

    middle = RobustCentre.of(values)
    before, sizes = middle.distances(values)
    score = scores(before, sizes)
    judged = int((sizes > 0).sum())
    wanted = min(math.ceil(share / 100 * judged - 1e-9), judged)
    moved = (result != values) & ~np.isnan(values)
    if replace == "ellipsoid" and judged:
        limit = np.sort(score)[::-1][min(wanted, judged - 1)]
        after, _ = middle.distances(result)
        assert (after <= squares_at(limit, sizes) * (1 + 1e-6) + 1e-9).all()
        assert not moved[score <= limit].any()
        assert moved.any(axis=1).sum() <= wanted
    if replace == "mean" and judged:
        here, there = np.nansum(result, axis=0), np.nansum(values, axis=0)
        np.testing.assert_allclose(here, there, rtol=1e-10)


@given(
    squares=st.lists(st.floats(0, 1e12), min_size=2, max_size=20).map(np.array),
    size=st.integers(1, 50),
)
def test_scores_keep_the_order_and_can_be_taken_back(squares, size):
    sizes = np.full(len(squares), size)
    found = scores(squares, sizes)
    order = np.argsort(squares, kind="stable")
    assert (np.diff(found[order]) >= 0).all()
    for score, square in zip(found, squares, strict=True):
        np.testing.assert_allclose(squares_at(score, sizes[:1])[0], square, rtol=1e-9, atol=1e-12)


@given(seed=st.integers(0, 2**32), factor=st.floats(1e-3, 1e3), offset=st.floats(-1e6, 1e6))
def test_units_do_not_matter(seed, factor, offset):
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((40, 3))
    one, _ = RobustCentre.of(values).distances(values)
    other_unit = values * np.array([factor, 1.0, 1.0]) + np.array([offset, 0.0, 0.0])
    other, _ = RobustCentre.of(other_unit).distances(other_unit)
    np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)
