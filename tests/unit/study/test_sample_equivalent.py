"""As good as a random sample of x %: by closed form, by releases that are samples, and where nobody can say."""

from __future__ import annotations

import json
import math
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato
from sfumato.core import registry
from sfumato.core.measure import Measure, Score
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.core.sample_equivalent import SampleEquivalent
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.report.evidence_file import data_card
from sfumato.study import sample_equivalent
from sfumato.study.evaluate import EvaluationCase
from sfumato.study.sample_curve import SampleCurve
from sfumato.study.sample_equivalent import (
    FOLLOWS_RECORDS,
    NO_TIME,
    SAMPLES_ALIKE,
    SampleEquivalents,
    sample_sizes,
    units_of,
)

#: Shares of releases that are samples themselves, none of which was drawn for the curve.
_OTHER_SHARES = (0.03, 0.1, 0.5, 0.85)


class MeanError(Measure):
    """How far the mean of a column is off."""

    name, title, aspect, better = "toy-mean-error", "Mean error", "utility", "low"
    kinds = frozenset({Kind.CONTINUOUS})

    def measure(self, evidence, run):
        """Compare the means."""
        first, second = (table.numbers("x") for table in (evidence.original, evidence.protected))
        return Score(abs(float(np.nanmean(first) - np.nanmean(second))))


def mixed_table(n=400, *, persons=None, households=False):
    rng = np.random.default_rng(3)
    x = rng.normal(size=n)
    columns = {
        "x": pl.Series(x).set(pl.Series(rng.random(n) < 0.05), None),
        "y": x + rng.normal(size=n),
        "c": rng.choice(list("uvwxy"), n, p=[0.4, 0.3, 0.15, 0.1, 0.05]),
    }
    schema = [
        Column("x", Kind.CONTINUOUS, Role.KEY),
        Column("y", Kind.CONTINUOUS, Role.KEY),
        Column("c", Kind.NOMINAL, Role.KEY),
    ]
    if persons:
        columns["person"] = np.arange(n) // persons
        schema.append(Column("person", Kind.NOMINAL, Role.PERSON))
    if households:
        columns["house"] = np.arange(n) // 10
        schema.append(Column("house", Kind.NOMINAL, Role.HOUSEHOLD))
    return Table(pl.DataFrame(columns), Schema(tuple(schema)))


def sample_of(table, share, rng):
    units = units_of(table)
    count = int(units.max()) + 1
    drawn = rng.choice(count, round(share * count), replace=False)
    rows = np.flatnonzero(np.isin(units, drawn))
    return Release.of(table.take(rows), source_rows=rows)


def curve_of(errors, *, measure=None, best=0.0):
    return SampleCurve(measure or MeanError(), np.array(sample_equivalent.SHARES), np.array(errors), best)


def test_the_mean_of_a_sample_is_off_by_its_closed_form():
    """The standard deviation of the mean of a share f is σ √((1 − f) / (f n))."""
    x = np.random.default_rng(1).normal(size=500)
    table = Table(pl.DataFrame({"x": x}), Schema((Column("x", Kind.CONTINUOUS, Role.KEY),)))
    likes = SampleEquivalents(EvaluationCase(table), Run(seed=2))
    likes.draw([MeanError()])
    curve = likes.curves["toy-mean-error"]
    sizes = curve.shares * len(x)
    expected = x.std(ddof=1) * np.sqrt((1 - curve.shares) / sizes)
    ratios = np.sqrt((curve.scores**2).mean(axis=1)) / expected
    assert np.exp(np.log(ratios).mean()) == pytest.approx(1, abs=0.25)


@pytest.mark.parametrize("power", [0.5, 1.0])
@pytest.mark.parametrize("better", ["low", "high"])
def test_errors_that_fall_by_a_power_are_read_exactly(power, better):
    shares = np.array(sample_equivalent.SHARES)
    sign = 1 if better == "low" else -1
    measure = type("Toy", (MeanError,), {"name": "toy-power", "better": better})()
    errors = ((1 - shares) / shares)[:, None] ** power * np.ones(6)
    curve = curve_of(0.7 + sign * errors, measure=measure, best=0.7)
    assert curve.falls
    for share in (0.02, 0.1, 0.5, 0.9, 0.98):
        found = curve.equivalent(0.7 + sign * ((1 - share) / share) ** power)
        assert found.share == pytest.approx(share)
        assert found.interval[0] <= found.share <= found.interval[1]


@pytest.mark.parametrize("persons", [None, 4])
def test_a_release_that_is_a_sample_is_told_as_that_sample(persons):
    """By all measures together the interval holds the share in nine draws of ten at least."""
    table, rng = mixed_table(persons=persons), np.random.default_rng(7)
    names = ("hellinger", "column-emd", "kolmogorov-smirnov", "estimate-difference", "total-variation")
    measures = [registry.measure(name)() for name in names]
    likes = SampleEquivalents(EvaluationCase(table), Run(seed=1))
    likes.draw(measures)
    for measure in measures:
        hits, shares = [], {share: [] for share in _OTHER_SHARES}
        for share, found in shares.items():
            for _ in range(12):
                like = likes.of(measure, sample_of(table, share, rng))
                found.append(like.share)
                hits.append(like.interval[0] <= share <= like.interval[1])
        assert np.mean(hits) >= 0.9, measure
        middles = [float(np.median(found)) for found in shares.values()]
        assert middles == sorted(middles), measure
        assert np.log(middles) == pytest.approx(np.log(_OTHER_SHARES), abs=1.0), measure


@given(
    st.lists(st.lists(st.floats(-1, 10), min_size=6, max_size=6), min_size=6, max_size=6),
    st.lists(st.floats(-2, 12), min_size=2, max_size=8),
)
def test_a_worse_score_never_has_a_larger_share(errors, values):
    curve = curve_of(errors)
    found = [curve.equivalent(value) for value in sorted(values)]
    for better, worse in pairwise(found):
        assert better.share >= worse.share - 1e-12
        assert all(a >= b - 1e-12 for a, b in zip(better.interval, worse.interval, strict=True))
    assert all(each.interval[0] - 1e-9 <= each.share <= each.interval[1] + 1e-9 for each in found)


def test_whole_persons_and_households_are_drawn():
    by_person, by_household = mixed_table(persons=4), mixed_table(persons=2, households=True)
    assert int(units_of(by_person).max()) + 1 == 100
    assert int(units_of(by_household).max()) + 1 == 40
    assert np.array_equal(units_of(mixed_table(20)), np.arange(20))


def test_sizes_of_few_units_are_each_drawn_once():
    assert sample_sizes(1000) == [10, 50, 250, 750, 950, 990]
    assert sample_sizes(4) == [1, 3]
    assert sample_sizes(1) == []


@pytest.mark.parametrize("n", [0, 1, 2, 4])
def test_too_few_records_have_no_samples(n):
    table = mixed_table(400).take(np.arange(n))
    likes = SampleEquivalents(EvaluationCase(table), Run(seed=1))
    found = likes.of(MeanError(), Release.unchanged(table))
    assert math.isnan(found.share)
    assert "too few records" in found.reason


def test_what_a_sample_cannot_show_has_a_reason_and_no_number():
    table = mixed_table(100)
    measures = [registry.measure(name)() for name in ("il1s", "suppressed-cells", "average-class-size")]
    likes = SampleEquivalents(EvaluationCase(table), Run(seed=1))
    found = [likes.of(measure, Release.unchanged(table)) for measure in measures]
    assert [each.reason for each in found] == [FOLLOWS_RECORDS, SAMPLES_ALIKE, SAMPLES_ALIKE]
    assert all(math.isnan(each.share) and not each.words for each in found)


def test_what_takes_too_long_is_left_out_and_says_so():
    table = mixed_table(100)
    likes = SampleEquivalents(EvaluationCase(table), Run(seed=1), seconds=0.0)
    scores = likes.add_to(
        {"hellinger": Score(0.1)}, [registry.measure("hellinger")()], Release.unchanged(table)
    )
    assert scores["hellinger"].like_sample == SampleEquivalent.missing(NO_TIME)


def test_the_same_seed_gives_the_same_sample_whatever_else_is_asked():
    table = mixed_table(200)
    release = sfumato.protect(table, "uncorrelated-noise(deviation=50)", columns=["x", "y"], seed=3)
    alone = sfumato.assess(table, release, ["hellinger"], sample_equivalent=True, seed=1)
    asked = ["column-emd", "hellinger", "k-anonymity"]
    beside = sfumato.assess(table, release, asked, sample_equivalent=True, seed=1)
    assert alone["hellinger"].like_sample == beside["hellinger"].like_sample
    assert beside["k-anonymity"].like_sample is None
    assert 0 < alone["hellinger"].like_sample.share < 1
    assert sfumato.assess(table, release, ["hellinger"], seed=1)["hellinger"].like_sample is None


def test_the_original_itself_is_as_good_as_all_records():
    table = mixed_table(200)
    score = sfumato.assess(table, Release.unchanged(table), ["hellinger"], sample_equivalent=True, seed=1)
    assert score["hellinger"].like_sample.share == 1.0
    assert score["hellinger"].like_sample.words.startswith("like all records")


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (SampleEquivalent(0.07, (0.05, 0.1)), "like a sample of 7 % (5–10 %)"),
        (SampleEquivalent(0.01, (0.0, 0.012), "less"), "like less than a sample of 1 % (0–1.2 %)"),
        (SampleEquivalent(0.99, (0.99, 1.0), "more"), "like more than a sample of 99 % (99–100 %)"),
        (SampleEquivalent(0.5, (0.5, 0.5)), "like a sample of 50 %"),
        (SampleEquivalent.missing("why"), ""),
    ],
)
def test_it_is_said_in_words(found, words):
    assert found.words == words
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["words"] == words


def test_a_study_has_it_for_each_method_in_the_order_of_the_ranks():
    table = mixed_table(150)
    study = sfumato.compare(
        table, ["uncorrelated-noise", "mdav"], columns=["x", "y"], rank_by="hellinger", repeats=2, seed=1,
        sample_equivalent=True,
    )  # fmt: skip
    means = [(each.ranked.mean, each.like_sample.share) for each in study.outcomes if each.ranked]
    shares = [share for _, share in sorted(means)]
    assert len(shares) == 2
    assert shares == sorted(shares, reverse=True)
    assert all(each["like_sample"]["words"] for each in study.to_dict()["outcomes"])
    assert study.to_frame()["like_sample"].null_count() == 0


def test_the_data_card_says_it_of_what_is_public():
    like = SampleEquivalent(0.0712, (0.0512, 0.1), "").rounded().to_dict()
    utility = [
        {"title": "Hellinger distance", "like_sample": like},
        {"title": "Hidden", "like_sample": None},
    ]
    content = {
        "title": "T", "records": {"released": 5}, "sfumato": "0", "generated": "today", "roles": [],
        "steps": [], "utility": utility,
    }  # fmt: skip
    card = data_card(sfumato.recipes.parts.About(), content)
    assert "- Hellinger distance: a sample of 7.1 % (5.1–10 %)" in card
    assert "Hidden" not in card
    assert "random sample" not in data_card(sfumato.recipes.parts.About(), {**content, "utility": []})


def test_of_very_many_units_no_sample_is_drawn_unless_asked_for(monkeypatch):
    monkeypatch.setattr(sample_equivalent, "_UNITS_A_SECOND", 10)
    table = mixed_table()
    case, measure = EvaluationCase(table), MeanError()
    quick = SampleEquivalents(case, Run(seed=1), seconds=39.0)
    with monkeypatch.context() as patch:
        patch.setattr(Table, "take", lambda *_: pytest.fail("a sample was drawn"))
        assert quick.of(measure, Release.of(table)).reason == NO_TIME
    for seconds in (41.0, math.inf):
        assert SampleEquivalents(case, Run(seed=1), seconds).of(measure, Release.of(table)).share == 1.0
