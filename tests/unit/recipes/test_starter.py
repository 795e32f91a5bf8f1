"""The plan to start from: a step that reaches what the profile requires, worked out by hand."""

import pytest

from sfumato.core.requirement import Requirement
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.recipes.demand import Demand
from sfumato.recipes.profile import Profile
from sfumato.recipes.starter import safe_steps, starter

SCHEMA = Schema(
    (
        Column("name", Kind.NOMINAL, Role.IDENTIFIER),
        Column("age", Kind.CONTINUOUS, Role.KEY),
        Column("sex", Kind.NOMINAL, Role.KEY),
        Column("home", Kind.NOMINAL, Role.HOUSEHOLD),
        Column("ill", Kind.NOMINAL, Role.SENSITIVE),
        Column("x", Kind.NOMINAL),
    )
)


def demands(*texts):
    return [Demand(Requirement.parse(text), Scenario(columns=("age", "sex"))) for text in texts]


@pytest.mark.parametrize(
    ("texts", "k", "also"),
    [
        (["k >= 3"], 3, ()),
        (
            ["k >= 3", "dbrl <= 0.1", "exact-match <= 0"],
            10,
            (),
        ),  # one of ten alike is found with a chance of a tenth
        (["k >= 3", "dbrl <= 0.3"], 4, ()),
        (["k >= 3", "l >= 2"], 3, ("l-diversity >= 2",)),
        (["l >= 2", "t <= 0.25"], 2, ("l-diversity >= 2", "t-closeness <= 0.25")),
    ],
)
def test_a_demand_on_a_chance_is_one_on_k(texts, k, also):
    step, *_ = safe_steps(SCHEMA, demands(*texts))
    assert (step.method.k, tuple(step.method.also), step.columns) == (k, also, ("age", "sex"))


def test_nothing_demanded_of_risk_needs_no_step():
    assert safe_steps(SCHEMA, []) == []
    assert safe_steps(SCHEMA, demands("earth-movers-distance <= 0.1")) == []


def test_the_starter_has_what_the_profile_requires():
    plan = starter(SCHEMA, Profile.load("scientific"))
    assert {str(demand) for demand in plan.demands} == {
        "k-anonymity >= 3",
        "l-diversity >= 2",
        "dbrl <= 0.1",
        "exact-match <= 0",
        "regrouped <= 0.05",
    }
    (step,) = plan.recipe.steps
    assert set(step.columns) == {"age", "sex", "x"}  # what nobody decided on may be known
    assert plan.output.drop == ("home",)
    assert plan.left_out == ("home", "name")
    assert not starter(SCHEMA, Profile.load("secure")).recipe.steps
