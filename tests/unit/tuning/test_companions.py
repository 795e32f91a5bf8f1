"""What must change along with the keys is protected along, on the way to a release that meets what is asked."""

import time

import numpy as np
import polars as pl

from sfumato.core.requirement import Requirement, parse_measure
from sfumato.core.run import Run
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.methods.mondrian import Mondrian
from sfumato.methods.univariate_microaggregation import IndividualRanking
from sfumato.recipes.demand import Demand
from sfumato.recipes.parts import Output
from sfumato.recipes.plan import Plan
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.releasing.postprocess import postprocessor
from sfumato.tuning.candidate import RecipeJudge
from sfumato.tuning.companions import Companions
from sfumato.tuning.fallbacks import Fallbacks
from sfumato.tuning.search_space import Group, Option, ParameterAxis, SearchSpace
from sfumato.tuning.time_budget import Shares

RNG = np.random.default_rng(3)
NAME = Kind.NOMINAL
CENTRE = ParameterAxis("centre", meanings={"mean": "mean", "median": "median"})


def demands(*texts):
    return [Demand(Requirement.parse(text), Scenario()) for text in texts]


def panel(n=120):
    """Three years of people whose pay rises by three per cent; the region has a code beside it."""
    who, year = np.repeat(np.arange(n), 3), np.tile([1, 2, 3], n)
    region = RNG.choice(list("abc"), n)[who]
    pay = (RNG.lognormal(8, 0.4, n)[who] * 1.03**year).round(2)
    columns = (
        Column("who", NAME, Role.PERSON), Column("year", Kind.ORDINAL, Role.KEY), Column("region", NAME, Role.KEY),
        Column("code", NAME, Role.OTHER), Column("pay", Kind.CONTINUOUS, Role.SENSITIVE),
    )  # fmt: skip
    values = {"who": who, "year": year, "region": region, "code": np.char.upper(region), "pay": pay}
    return Table(pl.DataFrame(values), Schema(columns))


def test_what_tells_keys_and_what_chains_people():
    found = Companions.of(panel(), ["who"], demands("k >= 3"))
    assert found == Companions(("code",), ("pay",))
    assert found.as_keys(panel()).schema["code"].role is Role.KEY
    assert [len(steps) for steps in found.further_steps(360)] == [0, 1, 1]


def test_nothing_beside_the_keys():
    table = panel().select(["year", "region"])
    assert Companions.of(table, [], demands("k >= 3")) == Companions()
    assert list(Companions().further_steps(360)) == [()]


def test_the_step_that_enforces_takes_them_along():
    table = panel()
    asked = tuple(each.requirement for each in demands("k >= 3", "regrouped <= 0.05"))
    plan = Plan(schema=table.schema, requirements=asked, output=Output(drop=("who",)))
    judge = RecipeJudge(plan.demands, (parse_measure("cells-changed"),))
    made = Fallbacks(plan, table, Run(seed=1), postprocessor, judge, Shares(5, time.monotonic())).plans()
    first, second = made[0].recipe.steps
    assert set(first.columns) == {"year", "region", "code"}
    assert (second.method.name, second.columns) == ("individual-ranking", ("pay",))


def test_a_step_is_divided_where_fewer_columns_allow_other_choices():
    """One method, with a choice for numbers that it does not offer where words stand among them."""
    narrow = Group(
        "numbers", ("x",), (Option(IndividualRanking, (ParameterAxis("k", 2, 9, whole=True), CENTRE)),)
    )
    wide = Group("all", ("x", "y"), (Option(IndividualRanking, (ParameterAxis("k", 2, 9, whole=True),)),))
    space = SearchSpace((narrow, wide))
    divided = space.split_step(space.point({"all": ("individual-ranking", {"k": 5})}), RNG)
    ((group, _, choices),) = space.parts(divided)
    assert (group.name, choices["k"]) == ("numbers", 5)
    assert choices["centre"] in CENTRE.meanings


def test_amounts_that_join_records_only_beside_coarse_keys_are_blurred_too():
    """Rises by chance chain nobody in the whole file, and everybody within the groups of a release."""
    rng = np.random.default_rng(4)
    n, waves = 60, 4
    rows = []
    for who in range(n):
        pay, born, sex = rng.lognormal(8, 0.3), int(rng.integers(1950, 2000)), str(rng.choice(["f", "m"]))
        for year in range(waves):
            pay *= 1.02 + 0.02 * rng.random()
            rows.append((who, year, born, sex, round(pay, 2)))
    schema = Schema(
        (
            Column("who", Kind.NOMINAL, Role.PERSON),
            Column("year", Kind.CONTINUOUS, Role.KEY),
            Column("born", Kind.CONTINUOUS, Role.KEY),
            Column("sex", Kind.NOMINAL, Role.KEY),
            Column("pay", Kind.CONTINUOUS, Role.SENSITIVE),
        )
    )
    table = Table(pl.DataFrame(rows, schema=list(schema.names), orient="row"), schema)
    none = Companions()
    grouped = Recipe((Step(Mondrian(k=4), ("year", "born", "sex")),)).apply(table, Run(seed=1))
    shown = grouped.with_table(grouped.table.select(["year", "born", "sex", "pay"]))
    assert none.also_joining_in(table, shown).amounts == ("pay",)
    raw = shown.with_table(table.select(["year", "sex"]))
    assert none.also_joining_in(table, raw) == none
