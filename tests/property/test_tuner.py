"""Laws of the tuner's parts: points stay inside the space, orders are orders, the ledger forgets nothing."""

import json
import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from sfumato.core import registry
from sfumato.core.measure import Score, Status
from sfumato.core.requirement import Requirement, parse_measure
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.recipes.demand import Demand
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.tuning.candidate import (
    Candidate,
    RecipeJudge,
    RecipeResult,
    RunScores,
    Shortfall,
    in_order,
    on_front,
)
from sfumato.tuning.derive_space import Scope, derive
from sfumato.tuning.search_space import ParameterAxis


def mixed():
    n = 24
    frame = pl.DataFrame(
        {
            "a": np.arange(float(n)),
            "b": np.arange(n) % 5,
            "c": [str(i % 3) for i in range(n)],
            "d": [["l", "m", "h"][i % 3] for i in range(n)],
            "s": np.arange(float(n))[::-1],
        }
    )
    columns = (
        Column("a", Kind.CONTINUOUS, Role.KEY),
        Column("b", Kind.CONTINUOUS, Role.KEY),
        Column("c", Kind.NOMINAL, Role.KEY),
        Column("d", Kind.ORDINAL, Role.KEY, order=("l", "m", "h")),
        Column("s", Kind.CONTINUOUS, Role.SENSITIVE),
    )
    return Table(frame, Schema(columns))


SPACE = derive(mixed(), Scope(), requirements=[Requirement.parse("l >= 2")])


class Dice:
    """Chooses as a sampler does, from a stream of chance."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def suggest_categorical(self, name, choices):
        return choices[int(self.rng.integers(len(choices)))]

    def suggest_float(self, name, low, high, *, log=False):
        assert low <= high
        return float(
            np.exp(self.rng.uniform(np.log(low), np.log(high))) if log else self.rng.uniform(low, high)
        )

    def suggest_int(self, name, low, high, *, log=False):
        return int(self.rng.integers(low, high + 1))


def assert_inside(point):
    """The recipe can be made, each step is one the space offers, and every number lies on its axis."""
    recipe = SPACE.recipe(point)
    parts = list(SPACE.parts(point))
    assert [step.columns for step in recipe.steps] == [group.columns for group, _, _ in parts]
    for (group, option, said), step in zip(parts, recipe.steps, strict=True):
        assert type(step.method) is registry.methods()[option.name]
        assert {mixed().schema[name].kind for name in group.columns} <= step.method.kinds
        for axis in option.axes:
            chosen = said[axis.name]
            assert chosen in axis.meanings if axis.meanings else axis.low <= chosen <= axis.high
    return recipe


@given(st.integers(0, 2**32))
@examples(30)
def test_chosen_points_and_their_neighbours_are_recipes(seed):
    point = SPACE.choose(Dice(seed))
    assert_inside(point)
    rng = np.random.default_rng(seed)
    for stride in (0.3, 0.01):
        near = SPACE.neighbour(point, rng, stride=stride)
        assert_inside(near)
    assert_inside(SPACE.split_step(point, rng))
    for each in (*SPACE.nudges(point), *SPACE.along(point, seed, (-0.3, 0.01, 2.0))):
        assert SPACE.structure(each) == SPACE.structure(point)
        assert_inside(each)
    for step in SPACE.recipe(point).steps:
        alone = SPACE.point_of(step)
        if alone is not None:
            assert SPACE.recipe(alone) == Recipe((step,))


@given(st.integers(0, 2**32))
def test_the_same_chance_gives_the_same_neighbour(seed):
    point = SPACE.choose(Dice(seed))
    first, second = (SPACE.neighbour(point, np.random.default_rng(seed)) for _ in range(2))
    assert first == second


@given(
    st.booleans(), st.booleans(), st.floats(-2, 2, allow_nan=False), st.integers(1, 40), st.integers(0, 400)
)
def test_moving_on_an_axis_stays_on_it_and_goes_the_right_way(log, whole, share, low, width):
    axis = ParameterAxis("p", low, low + width, log=log, whole=whole)
    start = low + width // 2
    moved = axis.shift_choice(start, share)
    assert axis.low <= moved <= axis.high
    assert (moved - start) * share >= -1e-9 * abs(start)
    assert isinstance(moved, int) or not whole


numbers = st.floats(-10, 10, allow_nan=False).map(lambda value: round(value, 1))


@st.composite
def candidates(draw):
    made = []
    for number in range(draw(st.integers(1, 12))):
        recipe = Recipe((Step(registry.method("mdav")(k=2 + number), ("a",)),))
        losses = draw(st.none() | st.tuples(numbers, numbers))
        short = tuple(draw(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.5, 2.0]), min_size=2, max_size=2)))
        runs = RecipeResult((RunScores((), ()),)) if draw(st.booleans()) else RecipeResult(refused="no")
        pruned = draw(st.booleans()) and draw(st.booleans())
        made.append(Candidate(recipe, "search", runs, losses, short, pruned=pruned))
    return made


@given(candidates())
def test_the_order_holds_every_feasible_candidate_once_best_first(pool):
    ordered = in_order(pool)
    feasible = [
        each for each in pool if not each.pruned and each.losses is not None and max(each.shortfalls) <= 0
    ]
    assert sorted(each.recipe.digest for each in ordered) == sorted(each.recipe.digest for each in feasible)
    for place, better in enumerate(ordered):
        for worse in ordered[place + 1 :]:
            assert not (
                worse.losses[0] <= better.losses[0]
                and worse.losses[1] <= better.losses[1]
                and worse.losses != better.losses
                and sum(worse.losses) < sum(better.losses) - 1e-9
            )
    assert in_order(list(reversed(pool))) == ordered


@given(candidates())
def test_the_frontier_is_brute_force(pool):
    judged = [each for each in pool if not each.pruned and each.losses is not None and each.result.runs]
    costs = {each.recipe.digest: (*each.losses, each.shortfall) for each in judged}
    kept = {each.recipe.digest for each in on_front(pool)}
    for digest, cost in costs.items():
        beaten = any(
            all(o <= c for o, c in zip(other, cost, strict=True)) and other != cost
            for other in costs.values()
        )
        assert (digest in kept) == (not beaten)
    assert kept <= set(costs)


scores = st.builds(
    Score,
    st.floats(-5, 5) | st.just(math.nan) | st.just(math.inf),
    status=st.sampled_from(Status),
    reason=st.text(max_size=5),
)


@given(st.lists(st.tuples(scores, scores), min_size=1, max_size=3), st.text(max_size=4))
def test_a_result_survives_the_ledger(runs, refused):
    result = RecipeResult(tuple(RunScores((first,), (second,)) for first, second in runs), refused)
    text = json.dumps(result.to_dict(), allow_nan=False)
    again = RecipeResult.from_dict(json.loads(text))
    assert repr(again) == repr(result)
    assert json.dumps(again.to_dict()) == text


@given(
    st.sampled_from(["<=", "<", ">=", ">"]),
    numbers,
    st.lists(scores, min_size=1, max_size=4),
    scores,
)
def test_a_shortfall_is_above_nought_exactly_where_a_demand_is_missed(sign, level, runs, unprotected):
    demand = Demand(Requirement(parse_measure("dbrl"), sign, level), Scenario())
    raw = RecipeResult((RunScores((unprotected,), ()),))
    result = RecipeResult(tuple(RunScores((score,), ()) for score in runs))
    (short,) = Shortfall([demand], raw)(result)
    assert (short <= 0) == all(demand.requirement.met_by(score) for score in runs)
    assert not math.isnan(short)
    assert bool(RecipeJudge((demand,), ()).missed_demands(result)) == (short > 0)


def test_unprotected_data_fall_short_by_one():
    demand = Demand(Requirement.parse("dbrl <= 0.05"), Scenario())
    raw = RecipeResult((RunScores((Score(0.85),), ()),))
    shortfall = Shortfall([demand], raw)
    assert shortfall(raw) == pytest.approx((1.0,))
    assert shortfall(RecipeResult((RunScores((Score(0.45),), ()),))) == pytest.approx((0.5,))
    assert shortfall(RecipeResult((RunScores((Score(0.05),), ()),))) == (0.0,)
    assert shortfall(RecipeResult(refused="no")) == (2.0,)
