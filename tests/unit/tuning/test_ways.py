"""The methods that enforce what is required: several, each as weak as will do, whatever time there is."""

import time

import numpy as np
import polars as pl
import pytest

from sfumato.core.requirement import Requirement, parse_measure
from sfumato.core.run import Run
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import UnreachableError
from sfumato.methods.microaggregation import Mdav
from sfumato.recipes.demand import Demand
from sfumato.recipes.plan import Plan
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.starter import safe_steps
from sfumato.recipes.step import Step
from sfumato.releasing.postprocess import postprocessor
from sfumato.study.evaluate import EvaluationCase
from sfumato.study.requirements import weakest
from sfumato.tuning.candidate import RecipeJudge
from sfumato.tuning.fallbacks import Fallbacks, ways
from sfumato.tuning.time_budget import Shares


def numbers(n=120):
    rng = np.random.default_rng(5)
    frame = pl.DataFrame({"x": rng.normal(0, 1, n).round(3), "y": rng.lognormal(0, 1, n).round(3)})
    return Table(frame, Schema(tuple(Column(name, Kind.CONTINUOUS, Role.KEY) for name in "xy")))


def mixed(n=90):
    rng = np.random.default_rng(6)
    frame = pl.DataFrame(
        {
            "age": pl.Series(rng.integers(20, 70, n)).replace(33, None),
            "town": pl.Series([str(each) for each in rng.choice(list("ABC"), n)]).replace("C", None),
            "who": [f"P{i // 2}" for i in range(n)],
        }
    )
    columns = (
        Column("age", Kind.CONTINUOUS, Role.KEY),
        Column("town", Kind.NOMINAL, Role.KEY),
        Column("who", Kind.NOMINAL, Role.PERSON),
    )
    return Table(frame, Schema(columns))


def fallbacks(table, *asked, minutes=5.0, utility="cells-changed", since=None):
    plan = Plan(schema=table.schema, requirements=tuple(map(Requirement.parse, asked)))
    judge = RecipeJudge(plan.demands, (parse_measure(utility),))
    shares = Shares(minutes, time.monotonic() if since is None else since)
    return plan, Fallbacks(plan, table, Run(seed=1), postprocessor, judge, shares)


def least_k(table, demand):
    """By brute force: the least k from which on groups of MDAV meet a demand."""
    case, k = EvaluationCase(table), len(table) // 2
    while k > 1:
        release = Recipe((Step(Mdav(k=k - 1), ("x", "y")),)).apply(table, Run(seed=1))
        score = demand.measure.score(case.evidence(release), Run(seed=1))
        if not demand.met_by(score):
            return k
        k -= 1
    return k


def test_numbers_are_microaggregated_at_the_weakest_k_that_does():
    """Means of groups lose less than the intervals of boxes, and blanks lose most."""
    table = numbers()
    _, made = fallbacks(table, "k >= 3", "dbrl <= 0.15", utility="il1s")
    plans = made.plans()
    methods = [plan.recipe.steps[0].method for plan in plans]
    assert [each.name for each in methods][:2] == ["mdav", "mondrian"]
    assert "local-suppression" in {each.name for each in methods}
    assert methods[0].k == least_k(table, Requirement.parse("dbrl <= 0.15"))
    lost = [each.losses[0] for each in made.found]
    by_name = dict(zip((each.recipe.steps[0].method.name for each in made.found), lost, strict=True))
    assert by_name["mdav"] == min(lost)


def test_noise_and_swapping_are_tried_where_nobody_must_be_alike():
    table = numbers()
    plan, made = fallbacks(table, "dbrl <= 0.15", utility="il1s")
    names = {each.recipe.steps[0].method.name for each in made.plans()}
    assert {"mdav", "sullivan-noise", "correlated-noise", "rank-swapping"} <= names
    names = {step.method.name for step in safe_steps(table.schema, plan.demands)}
    alike = fallbacks(table, "k >= 3")[0].demands
    assert names - {step.method.name for step in safe_steps(table.schema, alike)} == {
        "sullivan-noise",
        "correlated-noise",
        "rank-swapping",
    }


@pytest.mark.parametrize("asked", [("k >= 4",), ("k >= 3", "dbrl <= 0.2")])
def test_persons_missing_values_and_text(asked):
    """The number of persons stays if something does with it, and is left out else; all that passes is met."""
    table = mixed()
    _, made = fallbacks(table, *asked)
    plans = made.plans()
    assert plans
    for plan in plans:
        release = postprocessor(plan.output)(plan.recipe.apply(table, Run(seed=1)), table, Run(seed=1))
        for demand in plan.demands:
            evidence = EvaluationCase(table).evidence(release)
            assert demand.requirement.met_by(demand.measure.score(evidence, Run(seed=1)))


@pytest.mark.parametrize("records", [1, 2])
def test_too_few_records_have_no_fallback(records):
    _, made = fallbacks(numbers(records), "k >= 3")
    assert made.plans() == []


def test_a_constant_needs_hardly_anything():
    table = numbers(40)
    frame = table.frame.with_columns(x=pl.lit(1.0), y=pl.lit(2.0))
    _, made = fallbacks(Table(frame, table.schema), "k >= 3")
    assert all(each.losses == (0.0,) for each in made.found)


def test_what_is_too_weak_is_strengthened_until_it_passes():
    demand = Demand(Requirement.parse("k >= 40"), Scenario())
    step, seen = Step(Mdav(k=10), ("x", "y")), EvaluationCase(numbers(200))
    found = weakest(step, seen, [demand], Run(seed=1), repeats=1, near=(10, 2))
    assert found.met
    assert found.step.method.k == 40
    assert [tried.value for tried in found.tried][:3] == [10, 14, 20]
    never = weakest(
        step, seen, [Demand(Requirement.parse("k >= 150"), Scenario())], Run(seed=1), repeats=1, near=(10, 2)
    )
    assert not never.met
    assert max(tried.value for tried in never.tried) == 100  # half of the records


def test_without_any_time_there_is_still_one():
    plan, made = fallbacks(numbers(), "k >= 3", minutes=0.001, since=time.monotonic() - 60)
    found = list(ways(plan, made, lambda *_: pytest.fail("no time") if made.shares.to_search(1.0) else None))
    assert len(found) >= 1
    assert all("there was no time to search for a better recipe" in how for _, how in found)


def test_each_fallback_is_a_way_if_the_search_finds_nothing():
    plan, made = fallbacks(numbers(), "k >= 3")

    def search(*_):
        raise UnreachableError("nothing")

    found = [plan.recipe.steps[0].method.name for plan, _ in ways(plan, made, search)]
    assert len(found) == len(set(found)) > 1


def test_the_time_of_a_release_is_shared():
    now = 100.0
    shares = Shares(2, 90.0, clock=lambda: now)
    assert shares.left == 110
    assert shares.of_fallbacks().seconds == pytest.approx(0.5 * 110)
    assert shares.to_search(1.0) == pytest.approx(80 / 60)  # a quarter is kept
    assert shares.to_search(4.0) == pytest.approx(62 / 60)  # twelve judged runs
    assert shares.to_search(60.0) == pytest.approx(50 / 60)  # never more than half
    assert Shares(1, 0.0, clock=lambda: now).to_search(1.0) == 0
    assert str(shares).startswith(
        "2 min in all: about 30 s for methods that enforce the requirements; about 30 s for"
    )


def test_where_nothing_does_each_says_what_it_misses():
    plan, made = fallbacks(numbers(8), "k >= 3", "earth-movers-distance <= 0")

    def search(*_):
        raise UnreachableError("nothing meets it", hint="there was no time")

    with pytest.raises(UnreachableError) as caught:
        list(ways(plan, made, search))
    assert "mondrian: " in caught.value.hint
    assert "earth-movers-distance" in caught.value.hint
    assert "there was no time" in caught.value.hint
