"""Resampling: against the exact distribution of sorted bootstrap samples."""

from collections import Counter
from datetime import date, timedelta
from itertools import product

import numpy as np
import polars as pl
import pytest
from scipy import stats

from sfumato.core.evidence import Evidence
from sfumato.core.method import ColumnView
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import Table
from sfumato.methods.resampling import Resampling
from sfumato.recipes.step import Step
from sfumato.study.evaluate import EvaluationCase
from sfumato.study.level import LevelStatus, Target, reach
from sfumato.utility.transport import EarthMoversDistance


def resampled(series, column=Kind.CONTINUOUS, seed=3, samples=1):
    column = column if isinstance(column, Column) else Column("x", column)
    table = Table(pl.DataFrame({"x": series}), Schema((column,)))
    return Resampling(samples=samples).apply(table, Run(seed=seed)).table.frame["x"]


def values_of(values, samples, rng):
    view = ColumnView(Column("x", Kind.CONTINUOUS), np.asarray(values, dtype=np.float64))
    return Resampling(samples=samples).protect_column(view, rng)


@pytest.mark.parametrize(("n", "samples"), [(2, 1), (3, 1), (2, 2)])
def test_few_values_have_the_exact_distribution(n, samples):
    """All n^(n·t) draws are equally likely; their sorted means are counted. Fails once in 1,000 seeds."""
    exact = Counter()
    for drawn in product(product(range(n), repeat=n), repeat=samples):
        exact[tuple(np.mean(np.sort(drawn, axis=1), axis=0).tolist())] += 1
    total, draws, rng = sum(exact.values()), 5000, np.random.default_rng(17)
    method = Resampling(samples=samples)
    view = ColumnView(Column("x", Kind.CONTINUOUS), np.arange(float(n)))
    found = Counter(tuple(method.protect_column(view, rng).tolist()) for _ in range(draws))
    assert set(found) == set(exact)
    expected = [count * draws / total for count in exact.values()]
    assert stats.chisquare([found[values] for values in exact], expected).pvalue > 0.001


def test_two_values_worked_by_hand():
    """Of 0 and 1 the lower is 0 unless both draws are 1: means 1/4 and 3/4. Within 5 sd of 1,000 samples."""
    low, high = values_of([1.0, 0.0], 1000, np.random.default_rng(1))[[1, 0]]
    assert low == pytest.approx(1 / 4, abs=5 * np.sqrt(3 / 16 / 1000))
    assert high == pytest.approx(3 / 4, abs=5 * np.sqrt(3 / 16 / 1000))


def test_many_samples_approach_the_expected_order_statistics():
    """P(i-th of a sample ≤ j-th value) = P(Bin(n, j/n) ≥ i); within 5 sd of the mean of 1,000 samples."""
    n, samples = 25, 1000
    values = np.sort(np.random.default_rng(2).lognormal(3, 1, n))
    ranks = np.arange(1, n + 1)
    below = stats.binom.sf(ranks[:, None] - 1, n, np.arange(n + 1) / n)  # row i, column j
    weights = np.diff(below, axis=1)
    expected = weights @ values
    deviation = np.sqrt(weights @ values**2 - expected**2)
    got = values_of(values, samples, np.random.default_rng(3))
    assert (np.abs(got - expected) <= 5 * deviation / np.sqrt(samples)).all()


def test_one_sample_gives_original_values_and_more_samples_stay_nearer():
    values = np.sort(np.random.default_rng(4).lognormal(3, 1, 500))
    rng = np.random.default_rng(5)
    once = values_of(values, 1, rng)
    assert np.isin(once, values).all()
    assert len(np.unique(once)) == pytest.approx(500 * (1 - np.exp(-1)), abs=5 * np.sqrt(500 * 0.1))
    errors = [np.abs(values_of(values, samples, rng) - values)[50:450].mean() for samples in (1, 10, 100)]
    assert errors[0] > 2 * errors[1] > 3 * errors[2]


def test_which_of_two_ties_parts_is_chance_not_file_order():
    """Fifty zeros, fifty ones: of the records that change sides, the last of the zeros are not the first."""
    values = pl.Series([0.0] * 50 + [1.0] * 50)
    changed = np.stack([resampled(values, seed=seed).to_numpy() != values.to_numpy() for seed in range(60)])
    assert changed.any(axis=1).sum() > 40  # P(no change) is P(Bin(100, ½) = 50), 0.08
    assert changed[:, :50].any(axis=0).sum() > 25
    assert changed[:, 50:].any(axis=0).sum() > 25


def test_a_value_that_all_samples_agree_on_keeps_its_last_digit():
    """(0.1 + 0.1 + 0.1) / 3 is not 0.1 in floating point."""
    for samples in (3, 7, 100):
        assert resampled(pl.Series([0.1] * 20), samples=samples).to_list() == [0.1] * 20


def test_the_largest_numbers_do_not_overflow():
    values = np.array([-1.7e308, 0.0, 1.7e308] * 10)
    got = values_of(values, 50, np.random.default_rng(6))
    assert np.isfinite(got).all()


def test_instants_keep_their_type_their_range_and_their_nanoseconds():
    start = 1_714_564_800_000_000_000  # noon of 1 May 2024; floats of that size have steps of 256
    instants = pl.Series(start + 1000 * np.arange(50)).cast(pl.Datetime("ns"))
    got = resampled(instants, Kind.DATE, samples=3)
    assert got.dtype == pl.Datetime("ns")
    moved = got.to_physical().to_numpy() - start
    assert moved.min() >= 0
    assert moved.max() <= 49_000
    assert (np.diff(moved) >= 0).all()
    assert (moved % 256 != 0).any()
    days = pl.Series([date(2024, 5, 1) + timedelta(days=place) for place in range(50)])
    assert resampled(days, Kind.DATE).dtype == pl.Date


def test_ordinal_words_become_categories_of_near_rank():
    words = pl.Series(["low"] * 30 + ["mid"] * 30 + ["high"] * 30)
    column = Column("x", Kind.ORDINAL, order=("low", "mid", "high"))
    got = resampled(words, column, samples=2)
    assert set(got) <= set(words)
    assert got.to_list() != words.to_list()
    assert not {("low", "high"), ("high", "low")} & set(zip(words, got, strict=True))


def test_missing_values_stay():
    series = pl.Series([-9, 5, None, 3, 8, 1, -9, 7])
    got = resampled(series, Column("x", Kind.CONTINUOUS, missing=(-9,)))
    assert [place for place, value in enumerate(got) if value == -9] == [0, 6]
    assert got.is_null().to_list() == series.is_null().to_list()
    assert got.drop_nulls().filter(got.drop_nulls() != -9).is_between(1, 8).all()


def test_a_level_is_reached_though_more_samples_protect_less():
    values = np.random.default_rng(7).normal(size=(400, 2))
    frame = pl.DataFrame(values, schema=["a", "b"])
    table = Table(frame, Schema(tuple(Column(name, Kind.CONTINUOUS) for name in "ab")))
    measure = EarthMoversDistance()
    levels = {}
    for samples in (1, 4, 16):
        table_there = Resampling(samples=samples).apply(table, Run(seed=1))
        levels[samples] = measure.score(Evidence(table, table_there), Run(seed=1)).value
    assert levels[1] > levels[4] > levels[16]
    found = reach(
        Step(Resampling()), EvaluationCase(table), Target(measure, levels[4], 0.1), Run(seed=2), repeats=5
    )
    assert found.reached is not LevelStatus.UNREACHABLE
    assert 2 <= found.value <= 8
