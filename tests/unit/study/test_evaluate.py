"""One evaluation: labels, whose chance is whose, and when one run is enough."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from sfumato.core.measure import Measure, Needs, Score, Status
from sfumato.core.method import Randomness
from sfumato.core.requirement import Requirement
from sfumato.core.run import Run
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import ParameterError
from sfumato.recipes.demand import Demand
from sfumato.recipes.recipe import Recipe
from sfumato.study.evaluate import EvaluationCase, evaluate, evaluate_replicates, spread_of, spreads_of
from shifts import Moved, Shift


def case(n=20, **more):
    table = Table(pl.DataFrame({"x": np.arange(float(n))}), Schema((Column("x", Kind.CONTINUOUS, Role.KEY),)))
    return EvaluationCase(table, **more)


class Noisy(Shift):
    name = "toy-noisy"
    randomness = Randomness()

    def shift(self, rng):
        return self.by + rng.normal(0, 5)


class Drawn(Measure):
    """Draws a number and looks at nothing."""

    name, title, aspect, better = "toy-drawn", "Drawn", "utility", "low"
    needs = Needs(release=False)
    kinds = frozenset({Kind.CONTINUOUS})

    def measure(self, evidence, run):
        return Score(float(run.rng("number").random()))


class Known(Drawn):
    """How many records the intruder knows, told by the scenario."""

    name = "toy-known"

    def measure(self, evidence, run):
        return Score(evidence.scenario.records)


def drawn(what, of=None, run=None, **more):
    return evaluate(what, of or case(), [Drawn()], run or Run(seed=1), **more).scores["toy-drawn"].value


def test_a_measure_has_the_same_chance_whatever_it_is_asked_about_and_by_whom():
    run = Run(seed=1)
    number = drawn(None)
    assert drawn(Recipe.of(Shift(by=3))) == number
    assert drawn(Recipe.of(Noisy()), replicate=4) == number
    assert drawn(Recipe.of(Noisy()), run=run.at("tuner", 3)) == number
    assert drawn(evaluate(Recipe.of(Shift()), case(), [], run).release) == number
    assert drawn(None, run=Run(seed=2)) != number
    assert drawn(None, of=case(21)) != number


def test_a_replicate_is_chance_of_the_recipe():
    moved = [
        evaluate(Recipe.of(Noisy()), case(), [Moved()], Run(seed=1), replicate=r).scores["toy-moved"].value
        for r in (None, 0, 1, 0)
    ]
    assert len(set(moved)) == 3
    assert moved[1] == moved[3]
    release = Recipe.of(Noisy()).apply(case().table, Run(seed=1).at("replicate", 1))
    assert evaluate(release, case(), [Moved()], Run(seed=9)).scores["toy-moved"].value == moved[2]


def test_measures_are_asked_in_the_scenario_of_the_case_and_demands_in_their_own():
    of = case(scenario=Scenario("half", records=0.5))
    assert evaluate(None, of, [Known()], Run(seed=1)).scores["toy-known"].value == 0.5
    known = Requirement(Known(), "<=", 1)
    demands = [Demand(known, Scenario("all")), Demand(known, Scenario("few", records=0.1))]
    found = evaluate(None, of, demands, Run(seed=1))
    assert found.release is None
    assert {label: score.value for label, score in found.scores.items()} == {
        "all: toy-known": 1.0,
        "few: toy-known": 0.1,
    }
    with pytest.raises(ParameterError, match="name of its own"):
        evaluate(None, of, [demands[0], Demand(known, Scenario("all", records=0.1))], Run(seed=1))


@pytest.mark.parametrize(("method", "runs"), [(Shift(), 1), (Noisy(), 3)])
def test_what_leaves_nothing_to_chance_is_followed_once(method, runs):
    """Though the measure draws: its draws are the same in every run."""
    found = list(evaluate_replicates(Recipe.of(method), case(), [Moved(), Drawn()], Run(seed=1), range(3)))
    assert len(found) == runs
    assert len({each.scores["toy-drawn"].value for each in found}) == 1
    assert len({each.scores["toy-moved"].value for each in found}) == runs


def test_scores_of_repeated_runs_are_summarised():
    both = [Score(1.0), Score(3.0, status=Status.APPROXIMATE)]
    spread = spread_of(both)
    assert (spread.mean, spread.runs, spread.approximate) == (2.0, 2, True)
    assert spread_of([]) is None
    assert spread_of([Score(1.0), Score.refused("no")]) is None
    runs = [{"a": Score(1.0), "b": Score.not_estimable("no")}, {"a": Score(2.0), "b": Score(1.0)}]
    assert list(spreads_of(runs)) == ["a"]
    assert spreads_of([]) == {}
