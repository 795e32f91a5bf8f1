"""Usual measures of large tables: persons are drawn, never the records they are looked for among."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import sfumato
from sfumato.core import registry
from sfumato.core.evidence import PersonSampling
from sfumato.core.measure import Measure, Scaling, Status
from sfumato.core.release import Release
from sfumato.core.requirement import Requirement
from sfumato.core.run import Run
from sfumato.core.sample_interval import mean_interval
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.methods.noise import UncorrelatedNoise
from sfumato.recipes.demand import Demand
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.risk.global_linkage import GlobalLinkage
from sfumato.risk.linkage import DistanceLinkage
from sfumato.risk.ranks import PermutationDistance, RankLinkage, _RankMeasure
from sfumato.study.compare import compare
from sfumato.study.evaluate import EvaluationCase, evaluate
from sfumato.study.level import Target, level_of, reach
from sfumato.utility.losses import SseRatio

SAMPLED = [DistanceLinkage(), RankLinkage(), PermutationDistance()]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    for cls in (DistanceLinkage, _RankMeasure):
        monkeypatch.setattr(cls, "scales", Scaling(exact_up_to=150, persons_drawn=40))
    monkeypatch.setattr(GlobalLinkage, "scales", Scaling(exact_up_to=150))


def mixed(n=200, *, persons=False):
    rng = np.random.default_rng(3)
    frame = pl.DataFrame(
        {
            "age": [None if i % 17 == 0 else float(age) for i, age in enumerate(rng.integers(20, 60, n))],
            "town": rng.choice(["a", "b", "c"], n),
            "who": [str(i // 2) for i in range(n)],
        }
    )
    columns = [Column("age", Kind.CONTINUOUS, Role.KEY), Column("town", Kind.NOMINAL, Role.KEY)]
    columns += [Column("who", Kind.NOMINAL, Role.PERSON)] if persons else []
    return Table(frame.select(column.name for column in columns), Schema(tuple(columns)))


def moved(table):
    age = table.frame["age"] + np.random.default_rng(4).normal(0, 3, len(table))
    order = np.random.default_rng(5).permutation(len(table))
    frame = table.frame.select(age.alias("age"), "town")[order]
    return Release.of(Table(frame, table.schema.select(["age", "town"])), source_rows=order)


@pytest.mark.parametrize("persons", [False, True])
@pytest.mark.parametrize("measure", SAMPLED, ids=str)
def test_whoever_is_drawn_is_looked_for_among_all(measure, persons):
    table = mixed(persons=persons)
    case, release = EvaluationCase(table), moved(table)
    exact = evaluate(release, case, [measure], Run(seed=1)).scores[measure.name]
    few = evaluate(release, case, [measure], Run(seed=1), allow_sampling=True).scores[measure.name]
    seen = ~np.isnan(few.by_record)
    assert few.status is Status.APPROXIMATE
    assert exact.status is Status.OK
    assert few.by_record[seen] == pytest.approx(exact.by_record[seen], abs=0)
    whose = np.arange(len(table)) // (2 if persons else 1)
    drawn = np.unique(whose[seen])
    assert 35 <= len(drawn) <= 40  # not every rank can be linked
    if measure.name == "dbrl":
        assert seen.sum() == 40 * (2 if persons else 1)  # all records of whoever is drawn
        assert few.value == pytest.approx(np.mean([few.by_record[whose == who].max() for who in drawn]))
    assert few.interval[0] < exact.value < few.interval[1]
    assert few.interval[0] < few.value < few.interval[1]
    assert "asked for by name" in few.reason


def test_draws_of_several_seeds_are_right_in_the_mean():
    table = mixed()
    case, release = EvaluationCase(table), moved(table)
    exact = evaluate(release, case, SAMPLED[:1], Run(seed=1)).scores["dbrl"].value
    found = [
        evaluate(release, case, SAMPLED[:1], Run(seed=i), allow_sampling=True).scores["dbrl"].value
        for i in range(60)
    ]
    assert len(set(found)) > 10
    assert np.mean(found) == pytest.approx(exact, abs=4 * np.std(found) / np.sqrt(60))


def test_what_links_all_at_once_is_left_out_and_says_so():
    table = mixed()
    scores = sfumato.assess(table, moved(table), seed=1)
    assert scores["gdbrl"].status is Status.NOT_ESTIMABLE
    assert "must be asked for by name" in scores["gdbrl"].reason
    assert sfumato.assess(table, moved(table), ["gdbrl"], seed=1)["gdbrl"].value >= 0
    assert sfumato.assess(table, seed=1)["gdbrl"].status is Status.REFUSED  # for its own reason


def test_only_the_usual_ones_are_sampled_and_nobody_who_asks():
    table = mixed()
    release = moved(table)
    usual = sfumato.assess(table, release, seed=1)
    assert usual == sfumato.assess(table, release, seed=1)
    assert usual["dbrl"].status is Status.APPROXIMATE
    named = sfumato.assess(table, release, ["dbrl"], seed=1)["dbrl"]
    assert named.status is Status.OK
    assert sfumato.assess(table, release, exact=True, seed=1)["dbrl"] == named
    demand = Demand(Requirement.parse("dbrl <= 0.5"))
    judged = evaluate(release, EvaluationCase(table), [demand], Run(seed=1), allow_sampling=True).scores
    assert [score.status for score in judged.values()] == [Status.OK]


def test_small_tables_are_exact_and_few_persons_are_all_looked_for():
    small_one = mixed(100)
    usual = sfumato.assess(small_one, moved(small_one), seed=1)
    assert usual["dbrl"] == sfumato.assess(small_one, moved(small_one), ["dbrl"], seed=1)["dbrl"]
    half = Scenario(records=0.1)
    table = mixed()
    asked = moved(table), EvaluationCase(table, half), SAMPLED[:1], Run(seed=1)
    few = evaluate(*asked, allow_sampling=True).scores["dbrl"]
    held = evaluate(*asked).scores["dbrl"]
    assert few.value == held.value
    assert few.status is held.status is Status.APPROXIMATE


def test_what_is_declared_is_so():
    for cls in registry.measures().values():
        assert issubclass(cls, Measure)
        assert not cls.scales.persons_drawn or (
            cls.counts.intruder_records_only and cls.scales.exact_up_to >= cls.scales.persons_drawn
        ), cls.name


def test_an_interval_of_none_found_is_that_of_hoeffding():
    low, high = mean_interval(np.zeros(1000), (0.0, 1.0))
    assert low == 0
    assert high == pytest.approx(1 - 40 ** (-1 / 1000))
    assert mean_interval(2 * np.ones(1000), (0.0, 2.0)) == pytest.approx((2 * 40 ** (-1 / 1000), 2))


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 1.0])
def test_an_interval_holds_the_mean_of_all_more_often_than_it_promises(share):
    rng = np.random.default_rng(1)
    everyone = (np.arange(2000) < share * 2000).astype(float)
    ends = [mean_interval(rng.choice(everyone, 100, replace=False), (0.0, 1.0)) for _ in range(300)]
    held = [low - 1e-12 <= everyone.mean() <= high + 1e-12 for low, high in ends]
    assert np.mean(held) >= 0.95


def test_without_bounds_an_interval_is_students():
    low, high = mean_interval(np.array([1.0, 2.0, 3.0]), (-np.inf, np.inf))
    assert (low, high) == pytest.approx((2 - 2.4841, 2 + 2.4841), abs=1e-3)
    assert mean_interval(np.array([1.0]), (0.0, np.inf)) == (0.0, np.inf)


@pytest.mark.parametrize("persons", [False, True])
@pytest.mark.parametrize("measure", SAMPLED, ids=str)
def test_parts_of_the_persons_are_together_all_of_them(measure, persons):
    table = mixed(persons=persons)
    case, release = EvaluationCase(table), moved(table)
    whole = evaluate(release, case, [measure], Run(seed=1)).scores[str(measure)].by_record
    parts = [
        evaluate(release, case.with_some_persons(30, part), [measure], Run(seed=1)).scores[str(measure)]
        for part in range(4 if persons else 7)
    ]
    seen = np.array([np.isfinite(each.by_record) for each in parts])
    np.testing.assert_array_equal(seen.sum(axis=0), np.isfinite(whole))
    for rows, each in zip(seen, parts, strict=True):
        np.testing.assert_array_equal(each.by_record[rows], whole[rows])


def numbers(n=400):
    values = np.random.default_rng(8).normal(size=(n, 2)) @ [[1.0, 0.4], [0.0, 1.0]]
    columns = tuple(Column(name, Kind.CONTINUOUS, Role.KEY) for name in "ab")
    return EvaluationCase(Table(pl.DataFrame(values, schema=["a", "b"]), Schema(columns)))


@pytest.mark.parametrize("measure", SAMPLED, ids=str)
def test_a_level_is_looked_for_by_some_and_confirmed_by_all(measure, monkeypatch):
    asked = []
    score = Measure.score
    monkeypatch.setattr(
        Measure, "score", lambda self, seen, run: asked.append(seen.sampling) or score(self, seen, run)
    )
    case, step, run = numbers(), Step(UncorrelatedNoise()), Run(seed=1)
    target = Target(measure, level_of(Step(UncorrelatedNoise(deviation=25.0)), case, measure, run), 0.05)
    asked.clear()
    found = reach(step, case, target, run, allow_sampling=True)
    everybody = [each for each in asked if each.persons is None]
    assert 1 <= len(everybody) <= 4 < len(asked) - len(everybody)
    alone = Recipe((found.step,))
    (told,) = evaluate(alone, case, [measure], run, replicate=0).scores.values()
    assert found.score == pytest.approx(told.value)
    assert target.met_by(told.value)


def test_of_fresh_runs_each_looks_for_another_part_of_the_persons():
    case, measure = numbers(), DistanceLinkage()
    target = Target(measure, level_of(Step(UncorrelatedNoise()), case, measure, Run(seed=1)), 0.1)
    found = compare(case, [Step(UncorrelatedNoise())], Run(seed=1), target=target, ranked_by=SseRatio())
    (outcome,) = found.outcomes
    recipe, values = Recipe((outcome.step,)), []
    for part in range(5):
        here = replace(case, sampling=PersonSampling(80, part))
        values += evaluate(recipe, here, [measure], Run(seed=1), replicate=5 + part).scores.values()
    assert outcome.held.approximate
    assert outcome.held.mean == pytest.approx(np.mean([each.value for each in values]))
