"""Interval disclosure, linkage within intervals and rank intervals: by hand, and against all pairs."""

import numpy as np
import pytest

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.run import Run
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Kind, Role
from sfumato.methods.swapping import RankSwapping
from sfumato.risk.intervals import IntervalDisclosure, IntervalLinkage, RankIntervalLinkage, limits
from sfumato.risk.linkage import DistanceLinkage
from toys import table_of


def evidence(original, released, *, sources="same", **kinds):
    first = table_of(original, **kinds)
    second = table_of(released, **{name: kind for name, kind in kinds.items() if name in released})
    return Evidence(
        first, second, source_rows=np.arange(len(second)) if isinstance(sources, str) else sources
    )


def columns(values):
    return {f"c{i}": values[:, i] for i in range(values.shape[1])}


# ------------------------------------------------------------------------------------ interval disclosure


def test_intervals_of_a_deviation():
    """The deviation is √2: half of 100 % of it is 0.71, which 0.7 is within and 0.72 is not."""
    original = {"x": [0.0, 1.0, 2.0, 3.0, 4.0]}
    released = {"x": [0.7, 0.28, 2.0, 3.72, 9.0]}
    found = IntervalDisclosure(width=100).score(evidence(original, released), Run(seed=1))
    assert found.by_record.tolist() == [1, 0, 1, 0, 0]
    assert found.value == found.by_column["x"] == 0.4
    narrow = IntervalDisclosure(width=1).score(evidence(original, released), Run(seed=1))
    assert narrow.value == 0.2
    both = IntervalDisclosure(width=100, steps=2).score(evidence(original, released), Run(seed=1))
    assert both.value == pytest.approx((0.4 + 0.2) / 2)  # 50 % reaches 0.35: only the third


def test_intervals_of_ranks():
    """Ten records, 40 %: two ranks on either side. The released 5.0 has rank 5; its interval is 3 to 7."""
    released = np.arange(1.0, 11.0)
    lows, highs = limits(released, released, width=40, by="rank")
    assert lows.tolist() == [1, 1, 1, 2, 3, 4, 5, 6, 7, 8]
    assert highs.tolist() == [3, 4, 5, 6, 7, 8, 9, 10, 10, 10]
    original = released + np.array([0, 3, 0, 0, 2, -3, 0, 0, 0, 0.5])
    found = IntervalDisclosure(width=40, by="rank").score(
        evidence({"x": original}, {"x": released}), Run(seed=1)
    )
    assert found.by_record.tolist() == [1, 0, 1, 1, 1, 0, 1, 1, 1, 0]


def test_ties_have_all_their_ranks():
    released = np.array([1.0, 2, 2, 2, 3, np.nan])
    lows, highs = limits(released, released, width=40, by="rank")
    assert lows[:5].tolist() == [1, 1, 1, 1, 2]
    assert highs[:5].tolist() == [2, 3, 3, 3, 3]
    assert np.isnan(lows[5])


@pytest.mark.parametrize("by", ["deviation", "rank"])
def test_baseline_is_that_of_all_pairs(by):
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=40), rng.normal(size=40)
    y[3] = np.nan
    found = IntervalDisclosure(width=30, by=by).score(evidence({"x": x}, {"x": y}), Run(seed=1))
    lows, highs = limits(x, y, width=30, by=by)
    inside = (lows[:, None] <= x) & (x <= highs[:, None])
    assert found.baseline == pytest.approx(inside.mean())
    assert found.value == pytest.approx(np.diagonal(inside).mean())


def test_missing_values_disclose_nothing():
    original, released = {"x": [1.0, np.nan, 3.0]}, {"x": [1.0, 2.0, np.nan]}
    found = IntervalDisclosure().score(evidence(original, released), Run(seed=1))
    assert found.value == 0.5
    np.testing.assert_array_equal(found.by_record, [1, np.nan, 0])


@pytest.mark.parametrize("measure", [IntervalDisclosure(), IntervalLinkage()])
def test_huge_numbers_have_differences(measure):
    huge = {"x": [1.7e308, -1.7e308, 1e308, 0.0]}
    assert measure.score(evidence(huge, huge), Run(seed=1)).value == 1


def test_a_person_is_disclosed_by_the_worst_record():
    original = {"x": [0.0, 10.0, 20.0], "who": ["a", "a", "b"]}
    found = IntervalDisclosure().score(
        evidence(original, {"x": [5.0, 10.0, 5.0]}, who=(Kind.NOMINAL, Role.PERSON)), Run(seed=1)
    )
    assert found.value == 0.5


def test_the_records_of_a_release_may_stand_in_any_order():
    sources = np.array([2, 0])
    found = IntervalDisclosure().score(
        evidence({"x": [1.0, 5.0, 9.0]}, {"x": [9.0, 1.0]}, sources=sources), Run(seed=1)
    )
    np.testing.assert_array_equal(found.by_record, [1, np.nan, 1])
    refused = IntervalDisclosure().score(evidence({"x": [1.0]}, {"x": [1.0]}, sources=None), Run(seed=1))
    assert refused.status is Status.REFUSED


# --------------------------------------------------------------------------------- linkage within intervals


def exhaustive_links(mine, theirs, candidates):
    """Chances by all pairs: the nearest of the candidates, ties shared."""
    chances = np.zeros(len(mine))
    for i in range(len(mine)):
        if not candidates[i, i]:
            continue
        squares = ((mine[i] - theirs) ** 2).sum(axis=1)
        nearest = candidates[i] & (squares <= squares[candidates[i]].min() + 1e-9)
        chances[i] = nearest[i] / nearest.sum()
    return chances


@pytest.mark.parametrize("by", ["deviation", "rank"])
@pytest.mark.parametrize("width", [5, 40, 1000])
def test_interval_linkage_is_that_of_all_pairs(by, width):
    rng = np.random.default_rng(2)
    x = rng.normal(size=(60, 2))
    y = x + 0.3 * rng.normal(size=x.shape)
    found = IntervalLinkage(width=width, by=by).score(evidence(columns(x), columns(y)), Run(seed=1))
    candidates = np.ones((60, 60), dtype=bool)
    for c in range(2):
        lows, highs = limits(x[:, c], y[:, c], width=width, by=by)
        candidates &= (lows <= x[:, c, None]) & (x[:, c, None] <= highs)
    chances = exhaustive_links(x / x.std(axis=0), y / x.std(axis=0), candidates)
    np.testing.assert_allclose(found.by_record, chances, atol=1e-12)
    assert found.value == pytest.approx(chances.mean())
    assert found.details["own_among_candidates"] == np.diagonal(candidates).sum()
    if width == 1000 and by == "deviation":  # nobody is ruled out
        assert found.value == DistanceLinkage().score(evidence(columns(x), columns(y)), Run(seed=1)).value


def test_interval_linkage_rules_out_other_categories():
    tables = {"x": [1.0, 2.0, 9.0], "c": ["a", "b", "b"]}, {"x": [2.2, 1.0, 9.0], "c": ["a", "b", "b"]}
    found = evidence(*tables, c=Kind.NOMINAL)
    assert DistanceLinkage(scale="range").score(found, Run(seed=1)).by_record.tolist() == [1, 1, 1]
    assert IntervalLinkage(width=200).score(found, Run(seed=1)).by_record.tolist() == [1, 1, 1]
    turned = evidence(*tables[:1], {"x": [1.0, 2.0, 9.0], "c": ["b", "b", "b"]}, c=Kind.NOMINAL)
    assert IntervalLinkage(width=200).score(turned, Run(seed=1)).by_record.tolist() == [0, 1, 1]


def test_interval_linkage_keeps_to_the_missing():
    tables = {"x": [1.0, np.nan, np.nan, 4.0]}, {"x": [1.0, np.nan, np.nan, np.nan]}
    found = IntervalLinkage(width=100).score(evidence(*tables), Run(seed=1))
    assert found.by_record.tolist() == [1, 1 / 3, 1 / 3, 0]


# ------------------------------------------------------------------------------------------ rank intervals


def rank_candidates(x, y, window):
    """By all pairs: whether any rank of the one's ties is near enough to any rank of the other's."""
    reach = max(1, int(len(y) * window / 100))
    candidates = np.ones((len(x), len(y)), dtype=bool)
    for c in range(x.shape[1]):
        first, second = x[:, c], y[:, c]
        for i in range(len(x)):
            low, high = (first < first[i]).sum() + 1, (first <= first[i]).sum()
            for j in range(len(y)):
                lowest, highest = (second < second[j]).sum() + 1, (second <= second[j]).sum()
                candidates[i, j] &= lowest <= high + reach and highest >= low - reach
    return candidates


@pytest.mark.parametrize("spread", [4, 1000])
@pytest.mark.parametrize("window", [1, 10, 100])
def test_rank_intervals_are_those_of_all_pairs(spread, window):
    rng = np.random.default_rng(spread)
    x, y = (rng.integers(0, spread, (45, 3)).astype(float) for _ in range(2))
    found = RankIntervalLinkage(window=window).score(evidence(columns(x), columns(y)), Run(seed=1))
    candidates = rank_candidates(x, y, window)
    own = np.diagonal(candidates)
    np.testing.assert_allclose(found.by_record, np.where(own, 1 / np.maximum(candidates.sum(axis=1), 1), 0))
    assert found.details["own_among_candidates"] == own.sum()
    if window == 100:
        assert found.value == pytest.approx(1 / 45)


@pytest.mark.parametrize("window", [0.1, 2, 10])
@pytest.mark.parametrize("rounded", [False, True])
def test_rank_swapping_keeps_everyone_in_the_window(window, rounded):
    """The attack of Nin, Herranz and Torra: the own record is always a candidate."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(200, 3)) @ rng.normal(size=(3, 3))
    x = np.round(x) if rounded else x
    x[rng.random(x.shape) < 0.1] = np.nan
    original = table_of(columns(x))
    release = RankSwapping(window=window).apply(original, Run(seed=4))
    found = RankIntervalLinkage(window=window).score(release.against(original), Run(seed=1))
    assert found.details["own_among_candidates"] == 200
    assert found.value >= found.baseline


def test_rank_intervals_beat_distance_after_rank_swapping():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(1000, 8))
    original = table_of(columns(x))
    release = RankSwapping(window=15).apply(original, Run(seed=6)).against(original)
    attack = RankIntervalLinkage(window=15).score(release, Run(seed=1)).value
    assert attack > 1.2 * DistanceLinkage().score(release, Run(seed=1)).value


def test_ranks_of_a_sample_are_stretched():
    x = np.arange(100.0)
    sources = np.arange(0, 100, 2)
    found = RankIntervalLinkage(window=4).score(
        evidence({"x": x}, {"x": x[sources]}, sources=sources), Run(seed=1)
    )
    assert found.details["own_among_candidates"] == 50


def test_rank_intervals_need_the_truth():
    found = RankIntervalLinkage().score(evidence({"x": [1.0]}, {"x": [1.0]}, sources=None), Run(seed=1))
    assert found.status is Status.REFUSED
    nobody = Evidence(
        table_of({"x": [1.0]}), table_of({"x": [1.0]}), source_rows=np.array([-1]), scenario=Scenario()
    )
    for measure in (RankIntervalLinkage(), IntervalLinkage()):
        assert measure.score(nobody, Run(seed=1)).status is Status.NOT_ESTIMABLE
