"""Estimates and their confidence intervals from both tables: by hand, against SciPy, and at the limits."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.generalised.intervals import intervals
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.utility.estimates import EstimateDifference, IntervalEstimate, IntervalOverlap, overlap

OF = ["mean", "variance", "quantile", "correlation"]


def table(kind=Kind.CONTINUOUS, weights=None, **columns):
    frame = pl.DataFrame(columns, strict=False)
    described = [Column(name, kind) for name in columns]
    if weights is not None:
        frame = frame.with_columns(pl.Series("weight", weights, dtype=pl.Float64))
        described.append(Column("weight", Kind.CONTINUOUS, Role.WEIGHT))
    return Table(frame, Schema(tuple(described)))


def score(measure, original, protected):
    return measure.score(Evidence(original, Release.of(protected)), Run(seed=1))


def value(measure, original, protected):
    found = score(measure, original, protected)
    assert found.status is Status.OK
    return found.value


def overlap_of(first, second):
    """The formula of Karr et al., intervals given as pairs."""
    shared = max(0.0, min(first[1], second[1]) - max(first[0], second[0]))
    return 0.5 * (shared / (first[1] - first[0]) + shared / (second[1] - second[0]))


# The overlap itself -------------------------------------------------------------------------------------


def estimate(low, high):
    return IntervalEstimate((low + high) / 2, low, high)


def test_overlap_by_hand():
    """[0, 4] and [2, 4] share 2: half of the first and all of the second."""
    assert overlap(estimate(0, 4), estimate(2, 4)) == pytest.approx(0.75)
    assert overlap(estimate(0, 1), estimate(2, 3)) == 0
    assert overlap(estimate(0, 1), estimate(1, 2)) == 0
    assert overlap(estimate(1, 3), estimate(1, 3)) == 1


def test_a_point_lies_within_or_does_not():
    assert overlap(estimate(1, 1), estimate(1, 1)) == 1
    assert overlap(estimate(1, 1), estimate(2, 2)) == 0
    assert overlap(estimate(1, 1), estimate(0, 2)) == pytest.approx(0.5)


@given(st.tuples(*[st.floats(-10, 10)] * 4))
def test_overlap_is_a_symmetric_share(ends):
    first, second = estimate(*sorted(ends[:2])), estimate(*sorted(ends[2:]))
    found = overlap(first, second)
    assert 0 <= found <= 1
    assert found == overlap(second, first)
    assert overlap(first, first) == 1


# Each estimate ------------------------------------------------------------------------------------------


def samples():
    rng = np.random.default_rng(11)
    x = rng.gamma(2, 3, 200)
    return x, x + rng.normal(0, 0.6, 200)


def test_means_have_students_interval():
    x, y = samples()
    ends = [stats.t.interval(0.95, len(v) - 1, v.mean(), stats.sem(v)) for v in (x, y)]
    found = value(IntervalOverlap(), table(a=x), table(a=y))
    assert found == pytest.approx(overlap_of(*ends), abs=1e-10)
    difference = abs(x.mean() - y.mean()) / x.std(ddof=1)
    assert value(EstimateDifference(), table(a=x), table(a=y)) == pytest.approx(difference, abs=1e-12)


def test_variances_have_the_asymptotic_interval():
    x, y = samples()
    ends = []
    for v in (x, y):
        reach = stats.norm.ppf(0.95) * np.sqrt((((v - v.mean()) ** 4).mean() - v.var() ** 2) / len(v))
        ends.append((v.var(ddof=1) - reach, v.var(ddof=1) + reach))
    found = value(IntervalOverlap(of="variance", confidence=0.9), table(a=x), table(a=y))
    assert found == pytest.approx(overlap_of(*ends), abs=1e-10)
    difference = abs(y.var(ddof=1) / x.var(ddof=1) - 1)
    assert value(EstimateDifference(of="variance"), table(a=x), table(a=y)) == pytest.approx(difference)


def test_quantiles_have_woodruffs_interval():
    x, y = samples()
    order, reach = 0.25, stats.norm.ppf(0.975) * np.sqrt(0.25 * 0.75 / 200)
    ends = [np.quantile(v, [order - reach, order + reach], method="inverted_cdf") for v in (x, y)]
    found = value(IntervalOverlap(of="quantile", order=0.25), table(a=x), table(a=y))
    assert found == pytest.approx(overlap_of(*ends), abs=1e-10)
    medians = [np.quantile(v, 0.5, method="inverted_cdf") for v in (x, y)]
    difference = abs(medians[0] - medians[1]) / x.std(ddof=1)
    assert value(EstimateDifference(of="quantile"), table(a=x), table(a=y)) == pytest.approx(difference)


def test_correlations_have_fishers_interval():
    rng = np.random.default_rng(12)
    x = rng.normal(size=(50, 2)) @ np.array([[1, 0.8], [0, 0.6]])
    y = x + 0.2 * rng.normal(size=x.shape)
    ends = [tuple(stats.pearsonr(*v.T).confidence_interval(0.95)) for v in (x, y)]
    one, other = (table(a=v[:, 0], b=v[:, 1]) for v in (x, y))
    found = value(IntervalOverlap(of="correlation"), one, other)
    assert found == pytest.approx(overlap_of(*ends), abs=1e-10)
    difference = abs(np.corrcoef(x.T)[0, 1] - np.corrcoef(y.T)[0, 1])
    assert value(EstimateDifference(of="correlation"), one, other) == pytest.approx(difference, abs=1e-12)


def test_shares_have_wilsons_interval():
    x, y = ["a"] * 30 + ["b"] * 70, ["a"] * 40 + ["b"] * 60
    shares = []
    for word in "ab":
        ends = [
            tuple(stats.binomtest(v.count(word), len(v)).proportion_ci(0.95, method="wilson")) for v in (x, y)
        ]
        shares.append(overlap_of(*ends))
    one, other = table(Kind.NOMINAL, a=x), table(Kind.NOMINAL, a=y)
    assert value(IntervalOverlap(), one, other) == pytest.approx(np.mean(shares), abs=1e-10)
    assert value(EstimateDifference(), one, other) == pytest.approx(0.1)


# What every one of them keeps ---------------------------------------------------------------------------


@pytest.mark.parametrize("of", OF)
def test_the_original_itself_is_the_best(of):
    rng = np.random.default_rng(13)
    x = rng.lognormal(size=(80, 3))
    one = table(**dict(zip("abc", x.T, strict=True)))
    turned = table(**dict(zip("abc", x[::-1].T, strict=True)))
    assert value(IntervalOverlap(of=of), one, turned) == pytest.approx(1, abs=1e-12)
    assert value(EstimateDifference(of=of), one, turned) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("of", OF)
@pytest.mark.parametrize("scale", [1e-300, 1e-3, 1e290])
def test_units_do_not_matter(of, scale):
    rng = np.random.default_rng(14)
    x, y = rng.normal(size=(2, 40, 2))
    plain = [table(a=v[:, 0], b=v[:, 1]) for v in (x, y)]
    other = [table(a=v[:, 0] * scale, b=v[:, 1] * scale) for v in (x, y)]
    for make in (IntervalOverlap, EstimateDifference):
        assert value(make(of=of), *other) == pytest.approx(value(make(of=of), *plain), rel=1e-9)


def test_equal_weights_are_none():
    x, y = samples()
    plain = table(a=x), table(a=y)
    weighted = table(a=x, weights=[7] * 200), table(a=y, weights=[3] * 200)
    for of in OF[:3]:
        for make in (IntervalOverlap, EstimateDifference):
            assert value(make(of=of), *weighted) == pytest.approx(value(make(of=of), *plain), abs=1e-10)


def test_unequal_weights_count_as_fewer_records():
    """Weights 1 and 3 in turn: the effective size is 4² / (1 + 9) · n / 2 = 0.8 n."""
    x = np.tile([1.0, 2.0, 5.0, 6.0], 25)
    weights = np.tile([1.0, 3.0, 1.0, 3.0], 25)
    mean = np.average(x, weights=weights)
    effective = 80
    variance = np.average((x - mean) ** 2, weights=weights) * effective / (effective - 1)
    reach = stats.t.ppf(0.975, effective - 1) * np.sqrt(variance / effective)
    plain_reach = stats.t.ppf(0.975, 99) * np.sqrt(x.var(ddof=1) / 100)
    expected = overlap_of((mean - reach, mean + reach), (x.mean() - plain_reach, x.mean() + plain_reach))
    found = value(IntervalOverlap(), table(a=x, weights=weights), table(a=x))
    assert found == pytest.approx(expected, abs=1e-10)


def test_fewer_values_give_wider_intervals():
    x = np.tile([0.0, 1.0], 100)
    held_back = [None if i % 4 < 2 else v for i, v in enumerate(x)]
    assert 0.6 < value(IntervalOverlap(), table(a=x), table(a=held_back)) < 0.95
    assert value(EstimateDifference(), table(a=x), table(a=held_back)) == pytest.approx(0, abs=1e-12)


def test_an_estimate_that_is_lost():
    x = table(a=[1.0, 2.0, 3.0])
    gone = x.with_values("a", pl.Series([None] * 3, dtype=pl.Float64))
    found = score(IntervalOverlap(), x, gone)
    assert found.value == 0
    assert found.details["estimates_lost"] == 1
    assert value(EstimateDifference(), x, gone) == np.inf
    assert score(IntervalOverlap(), gone, gone).status is Status.NOT_ESTIMABLE


def test_intervals_have_the_moments_of_what_they_stand_for():
    ages = np.arange(20, 60)
    lows = ages // 10 * 10
    x, y = table(a=ages), table(a=intervals(lows, lows + 9))
    for of in OF[:3]:
        assert value(EstimateDifference(of=of), x, y) == pytest.approx(0, abs=1e-9)
    between = (lows + 4.5).var(ddof=1) / ages.var(ddof=1)
    middle = value(EstimateDifference(of="variance", generalised="midpoint"), x, y)
    assert middle == pytest.approx(1 - between)


def test_one_column_is_no_pair():
    alone = table(a=[1.0, 2.0])
    assert score(IntervalOverlap(of="correlation"), alone, alone).status is Status.REFUSED


def test_words_have_no_variance():
    words = table(Kind.NOMINAL, a=["a", "b"])
    assert score(IntervalOverlap(of="variance"), words, words).status is Status.REFUSED
