"""Releases in a series: whose values stay has the same noise in all of them, whatever became of the others."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from sfumato.core.randomness import ByPerson, Series, series_secret
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.engines.memory import MemoryEngine
from sfumato.errors import PlanError, RefusedError
from sfumato.methods import CorrelatedNoise, DateShifting, LognormalNoise, UncorrelatedNoise, UniformNoise
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step

SCHEMA = Schema(
    (
        Column("who", Kind.NOMINAL, Role.PERSON),
        Column("area", Kind.NOMINAL, Role.KEY),
        Column("pay", Kind.CONTINUOUS, Role.KEY),
        Column("debt", Kind.CONTINUOUS, Role.KEY),
    )
)


def people(numbers, values, areas=None):
    areas = ["here"] * len(numbers) if areas is None else areas
    pay = [float(each) for each in values]
    debt = [None if who % 5 == 0 else 100.0 - each for who, each in zip(numbers, pay, strict=True)]
    return Table(pl.DataFrame({"who": numbers, "area": areas, "pay": pay, "debt": debt}), SCHEMA)


def series_after(*releases, recipe):
    """The series as the trails of its releases would hand it on."""
    kept = {}
    for release in releases:
        for step, taken in zip(recipe.step_identities, release.provenance, strict=True):
            for each in taken.byproducts.private_artifacts:
                kept.setdefault((step, each.stratum), {}).update(each.tables)
    return Series(series_secret(9), previous_fits=kept)


@st.composite
def two_waves(draw):
    """People, and the same after some came, some went, some values changed, and all were put in disorder."""
    first = draw(st.lists(st.integers(0, 60), min_size=4, max_size=25, unique=True))
    gone = draw(st.sets(st.sampled_from(first), max_size=len(first) - 3))
    come = draw(st.lists(st.integers(61, 90), unique=True, max_size=10))
    second = draw(st.permutations([*(who for who in first if who not in gone), *come]))
    changed = draw(st.sets(st.sampled_from(second)))
    values = {who: draw(st.integers(0, 1000)) for who in (*first, *come)}
    later = {who: values[who] + (17 if who in changed else 0) for who in second}
    areas = {who: draw(st.sampled_from(["here", "there"])) for who in second}
    return (
        people(first, [values[who] for who in first]),
        people(second, list(later.values()), list(areas.values())),
    )


def noise_of(release, table):
    moved = {}
    for name in ("pay", "debt"):
        both = zip(table.frame["who"], table.frame[name], release.table.frame[name], strict=True)
        moved |= {(who, name): after - before for who, before, after in both if before is not None}
    return moved


def whose_values_stay(first, second):
    both = (dict(zip(each.frame["who"], each.frame["pay"], strict=True)) for each in (first, second))
    before, after = both
    return {who for who in before.keys() & after.keys() if before[who] == after[who]}


@pytest.mark.parametrize("method", [UncorrelatedNoise(deviation=60), CorrelatedNoise(ratio=0.5)])
@given(waves=two_waves())
@examples(100)
def test_noise_stays_with_the_person(method, waves):
    first, second = waves
    recipe = Recipe((Step(method, ("pay", "debt")),))
    one = recipe.apply(first, Run(randomness=ByPerson(1, series=series_after(recipe=recipe))))
    two = recipe.apply(
        second,
        Run(
            randomness=ByPerson(2, series=series_after(one, recipe=recipe)),
            engine=MemoryEngine(block_records=3),
        ),
    )
    before, after = noise_of(one, first), noise_of(two, second)
    stayed = whose_values_stay(first, second)
    for cell in before.keys() & after.keys():
        if cell[0] in stayed:
            assert after[cell] == pytest.approx(before[cell], rel=1e-6, abs=1e-6)


@given(waves=two_waves())
@examples(50)
def test_who_moves_to_another_stratum_keeps_the_noise(waves):
    first, second = waves
    method = UniformNoise(spread=0.3)
    apart = Recipe((Step(method, ("pay",), within=("area",)),))
    one = Recipe((Step(method, ("pay",)),)).apply(
        first, Run(randomness=ByPerson(1, series=Series(series_secret(9))))
    )
    two = apart.apply(second, Run(randomness=ByPerson(2, series=Series(series_secret(9)))))
    factor = dict(zip(first.frame["who"], one.table.frame["pay"] / first.frame["pay"], strict=True))
    for who, before, after in zip(
        second.frame["who"], second.frame["pay"], two.table.frame["pay"], strict=True
    ):
        if who in whose_values_stay(first, second) and factor[who] == factor[who]:
            assert after == pytest.approx(before * factor[who])


def test_the_noise_of_one_release_is_none_of_another_series():
    table, recipe = people(range(50), range(50)), Recipe((Step(LognormalNoise(), ("pay",)),))
    one, other = (
        recipe.apply(table, Run(randomness=ByPerson(1, series=Series(series_secret(seed)))))
        for seed in (1, 2)
    )
    assert (one.table.frame["pay"][1:] != other.table.frame["pay"][1:]).all()


def test_other_parameters_have_other_draws():
    """The same draws times another spread would tell themselves to who has both releases."""
    table, series = people(range(200), np.arange(200) % 7), Series(series_secret(1))
    light, heavy = (
        Recipe((Step(UncorrelatedNoise(deviation=by), ("pay",)),)).apply(
            table, Run(randomness=ByPerson(1, series=series))
        )
        for by in (30, 60)
    )
    first, second = ((each.table.frame["pay"] - table.frame["pay"]).to_numpy() for each in (light, heavy))
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.2


def test_two_equal_steps_have_noise_of_their_own():
    table, series = people(range(200), np.arange(200) % 7), Series(series_secret(1))
    step = Step(UncorrelatedNoise(deviation=60), ("pay",))
    once, twice = (
        Recipe(steps).apply(table, Run(randomness=ByPerson(1, series=series))).table.frame["pay"]
        for steps in ((step,), (step, step))
    )
    first, second = (once - table.frame["pay"]).to_numpy(), (twice - once).to_numpy()
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.2


def test_the_spread_of_the_noise_stays_that_of_the_first_release():
    """Else y₁ − y₂ = (c₁ − c₂) z would tell the draws of who has not changed, and with them the values."""
    first = people(range(40), range(40))
    second = people(range(41), [*range(40), 10_000])
    recipe = Recipe((Step(UncorrelatedNoise(deviation=60), ("pay",)),))
    one = recipe.apply(first, Run(randomness=ByPerson(1, series=series_after(recipe=recipe))))
    two = recipe.apply(second, Run(randomness=ByPerson(2, series=series_after(one, recipe=recipe))))
    np.testing.assert_allclose(two.table.frame["pay"][:40], one.table.frame["pay"])


def test_a_step_must_protect_the_columns_it_did():
    first = people(range(40), range(40))
    recipe, wider = (Recipe((Step(UncorrelatedNoise(), names),)) for names in (("pay",), ("pay", "debt")))
    one = recipe.apply(first, Run(randomness=ByPerson(1, series=series_after(recipe=recipe))))
    with pytest.raises(PlanError, match="protected `pay` in the earlier release, and `debt`, `pay` now"):
        wider.apply(first, Run(randomness=ByPerson(2, series=series_after(one, recipe=recipe))))


def test_a_household_keeps_its_noise_when_its_first_member_leaves():
    columns = (*SCHEMA.columns, Column("home", Kind.NOMINAL, Role.HOUSEHOLD))
    table = people(range(6), [1, 1, 5, 5, 9, 9])
    table = Table(table.frame.with_columns(pl.Series("home", [1, 1, 2, 2, 3, 3])), Schema(columns))
    recipe = Recipe((Step(UniformNoise(spread=0.4), ("pay",), together="home"),))
    one, two = (
        recipe.apply(each, Run(randomness=ByPerson(1, series=Series(series_secret(3)))))
        .table.frame["pay"]
        .to_list()
        for each in (table, table.take(np.array([5, 1, 3])))
    )
    assert one[0] == one[1]
    assert two == [one[4], one[0], one[2]]


def test_dates_of_a_person_move_alike_in_every_release():
    frame = pl.DataFrame({"who": [1, 2, 3], "born": ["2001-01-01", "2002-02-02", "2003-03-03"]})
    schema = Schema((Column("who", Kind.NOMINAL, Role.PERSON), Column("born", Kind.DATE, Role.KEY)))
    table, recipe = Table(frame, schema), Recipe((Step(DateShifting(), ("born",)),))
    one, two = (
        recipe.apply(each, Run(randomness=ByPerson(seed, series=Series(series_secret(3)))))
        .table.frame["born"]
        .to_list()
        for seed, each in ((1, table), (2, table.take(np.array([2, 0]))))
    )
    assert two == [one[2], one[0]]


def test_noise_after_records_were_made_anew_is_refused():
    from sfumato.methods import Synthesis

    recipe = Recipe((Step(Synthesis(), ("pay",)), Step(UniformNoise(), ("pay",))))
    with pytest.raises(RefusedError, match="synthesis"):
        recipe.apply(
            people(range(30), range(30)), Run(randomness=ByPerson(1, series=Series(series_secret(1))))
        )
