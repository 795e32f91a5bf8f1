"""Records of one unit come back by equal, near or chained values; what is shared by many, or independent, not."""

from __future__ import annotations

import datetime as dt
import random
from itertools import pairwise

import numpy as np
import polars as pl
import pytest

from sfumato.data.relations.companions import chains, drift_chains, near_sets, wave_levels, wave_ranks
from sfumato.data.relations.regrouping import (
    Regrouping,
    regroupings,
    released_units,
    right_by_chance,
    right_sets,
)
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table

RNG = np.random.default_rng(5)
NUMBERS = ("age", "weight", "salary", "income", "tax", "rent", "x")


def table(data, *columns):
    """A table of nominal columns, but for those of numbers, and those that are given."""
    frame = pl.DataFrame(data)
    given = {column.name: column for column in columns}
    kinds = {name: Kind.CONTINUOUS if name in NUMBERS else Kind.NOMINAL for name in frame.columns}
    return Table(frame, Schema(tuple(given.get(name, Column(name, kinds[name])) for name in frame.columns)))


def found(data, units, *columns):
    return regroupings(table(data, *columns), {"unit": np.asarray(units)})


def sets_of(numbers):
    """The sets as sets of records."""
    return {frozenset(np.flatnonzero(numbers == each).tolist()) for each in np.unique(numbers).tolist()}


# What counts as right -------------------------------------------------------------------------------------


def test_a_set_is_right_if_more_than_half_of_it_is_one_units():
    numbers = np.array([0, 0, 1, 1, 1, 2, 2, 2, 2, 3])
    units = np.array([7, 7, 8, 8, 9, 5, 5, 6, -1, 6])
    sets, right = right_sets(numbers, units)
    assert sets == 3  # one record is no set
    assert right.tolist() == [7, 8]  # two of four are not more than half


def test_nothing_is_right_without_units_or_records():
    none = np.zeros(0, dtype=np.int64)
    assert right_sets(none, none)[0] == 0
    assert right_sets(np.array([0, 0]), np.array([-1, -1]))[1].tolist() == []


def test_right_by_chance_by_hand():
    """Two units of two among four records: each of two pairs is one unit's with a chance of 1/3."""
    assert right_by_chance(np.array([0, 1, 0, 1]), np.array([3, 3, 4, 4])) == pytest.approx(2 / 3)
    assert right_by_chance(np.array([0, 1, 2, 3]), np.array([3, 3, 4, 4])) == 0


def test_right_by_chance_is_what_shuffling_gives():
    units = np.repeat(np.arange(60), [1, 2, 3] * 20)
    numbers = np.repeat(np.arange(40), 3)
    mean = np.mean([len(right_sets(numbers, RNG.permutation(units))[1]) for _ in range(2000)])
    assert right_by_chance(numbers, units) == pytest.approx(mean, rel=0.1)


@pytest.mark.parametrize(
    ("sets", "right", "trusted"),
    [(0, 0, False), (1, 1, False), (2, 2, True), (100, 30, False), (100, 35, True)],
)
def test_an_intruder_trusts_what_is_right_more_than_a_quarter_of_the_time(sets, right, trusted):
    numbers = np.zeros(0, dtype=np.int64)
    assert Regrouping("unit", ("x",), "equal", numbers, sets, right, right, 100).is_trusted is trusted


def test_the_share_is_of_units_with_several_records():
    numbers = np.zeros(0, dtype=np.int64)
    assert Regrouping("unit", ("x",), "equal", numbers, 4, 3, 3, 6).share == 0.5
    assert Regrouping("unit", ("x",), "equal", numbers, 0, 0, 0, 0).share == 0


# Equal values ---------------------------------------------------------------------------------------------


def survey():
    """The households of the check `r30_weights_regroup`."""
    draw, rows = random.Random(11), []
    for household in range(900):
        weight = round(draw.lognormvariate(5, 0.4), 3)
        region, tenure = draw.choice("nesw"), draw.choice(["own", "rent"])
        for _ in range(draw.choice([1, 2, 2, 3, 4])):
            age, sex, vote = draw.randint(0, 90), draw.choice("fm"), draw.choice("abcd")
            rows.append((household, age, sex, region, tenure, vote, weight))
    names = ["household", "age", "sex", "region", "tenure", "vote", "weight"]
    return pl.DataFrame(rows, schema=names, orient="row")


def test_households_come_back_by_an_exact_weight():
    frame = survey()
    several = int((frame["household"].value_counts()["count"] > 1).sum())
    weight = Column("weight", Kind.CONTINUOUS, Role.WEIGHT)
    best = found(frame.drop("household"), frame["household"], weight)
    alone = next(each for each in best if each.columns == ("weight",))
    assert (alone.how, alone.units) == ("equal", several)
    assert alone.regrouped >= several - 2  # two households have one weight
    assert best[0].regrouped >= alone.regrouped
    assert all(each.is_trusted and len(each.numbers) == len(frame) for each in best)
    assert found(frame.drop("household", "weight"), frame["household"]) == ()


def test_a_weight_that_hundreds_share_puts_nobody_together():
    frame = survey().with_columns((pl.col("weight") / 100).round())
    assert found(frame.drop("household"), frame["household"]) == ()


def test_interviewer_and_day_together():
    household = np.repeat(np.arange(400), 2)
    data = {"interviewer": household // 20, "day": household % 20, "age": RNG.integers(0, 90, 800)}
    (best,) = found(data, household)
    assert (best.columns, best.how, best.regrouped) == (("interviewer", "day"), "equal", 400)


def test_time_stamps():
    household = np.repeat(np.arange(50), 3)
    start = dt.datetime(2024, 5, 1, tzinfo=dt.UTC)
    stamps = [start + dt.timedelta(seconds=int(each) * 977) for each in household]
    data = {"sex": RNG.integers(0, 2, 150), "stamp": stamps}
    (best,) = found(data, household, Column("stamp", Kind.DATE))
    assert (best.columns, best.how, best.regrouped) == (("stamp",), "equal", 50)


def test_text_and_generalised_cells():
    household = np.repeat(np.arange(40), 2)
    text = {"street": [f"street {each}" for each in household]}
    assert found(text, household)[0].regrouped == 40
    ends = [{"lo": float(each), "hi": float(each + 3)} for each in household]
    interval = pl.Series("rent", ends, dtype=pl.Struct({"lo": pl.Float64, "hi": pl.Float64}))
    (best,) = found({"rent": interval, "sex": household % 2}, household)
    assert (best.columns, best.regrouped) == (("rent",), 40)


def test_a_record_that_lacks_the_value_is_in_no_set():
    household = np.repeat(np.arange(40), 2)
    weight = [None if each < 10 else float(each) for each in household]
    (best,) = found({"weight": weight}, household)
    assert (best.sets, best.right, best.regrouped, best.units) == (30, 30, 30, 40)
    assert len(np.unique(best.numbers[:20])) == 20


def test_a_missing_code_is_missing():
    household = np.repeat(np.arange(40), 2)
    weight = [-9.0 if each < 10 else float(each) for each in household]
    (best,) = found({"weight": weight}, household, Column("weight", Kind.CONTINUOUS, missing=(-9,)))
    assert (best.sets, best.right) == (30, 30)


def test_all_that_stays_together_where_no_pair_does():
    household = np.repeat(np.arange(729), 2)
    data = {f"c{place}": household // 3**place % 3 for place in range(6)}
    (best,) = found(data, household)
    assert (best.how, len(best.columns), best.regrouped) == ("equal", 6, 729)


def test_columns_that_are_declared_to_join_are_left_to_others():
    number = np.repeat(np.arange(40), 2)
    data = {"home": number, "code": number, "ssn": number, "sex": number % 2}
    columns = (
        Column("home", Kind.NOMINAL, Role.GROUP),
        Column("code", Kind.NOMINAL, Role.KEY, pseudonym="homes"),
        Column("ssn", Kind.NOMINAL, Role.IDENTIFIER),
    )
    assert found(data, number, *columns) == ()
    assert found(data, number)[0].regrouped == 40


def test_sets_of_items_are_passed_over():
    items = pl.Series("items", [["a"], ["a"], ["b"], ["b"]])
    assert found({"items": items}, [0, 0, 1, 1], Column("items", Kind.SET)) == ()


# Near and chained values ----------------------------------------------------------------------------------


def test_jittered_weights_come_back_within_what_stays():
    frame = survey()
    weight = frame["weight"].to_numpy() * np.random.default_rng(1).normal(1, 0.001, len(frame))
    best = found(frame.drop("household").with_columns(pl.Series("weight", weight)), frame["household"])[0]
    assert (best.columns, best.how) == (("region", "tenure", "weight"), "near")
    assert best.share > 0.8


def test_several_jittered_amounts_identify_together():
    rng, person = np.random.default_rng(3), np.tile(np.arange(300), 3)
    amounts = rng.lognormal(8, 0.6, (300, 4))
    data = {name: amounts[person, i] * rng.normal(1, 0.04, 900) for i, name in enumerate(NUMBERS[2:6])}
    best = found(data, person)[0]
    assert (best.how, len(best.columns)) == ("near", 4)
    assert best.share > 0.9


def test_near_sets_by_hand():
    """Of five records the nearest four fifths are linked; the last is as far from them as no other."""
    values = np.array([[1.0], [10.0], [1.1], [10.2], [50.0], [np.nan]])
    one = np.zeros(6, dtype=np.int64)
    assert sets_of(near_sets(values, one, 0.7)) == {
        frozenset({0, 2}), frozenset({1, 3}), frozenset({4}), frozenset({5}),
    }  # fmt: skip
    apart = np.array([0, 0, 1, 0, 0, 0])
    assert frozenset({0, 2}) not in sets_of(near_sets(values, apart, 0.7))


@pytest.mark.parametrize("share", [0.2, 0.6, 1.0])
def test_points_and_numbers_are_linked_alike(share):
    values = RNG.integers(0, 4000, 300) + 0.25 * RNG.random(300)
    values[:40] = values[40:80]
    cells = RNG.integers(0, 3, 300)
    points = np.column_stack((values, np.zeros(300)))
    assert sets_of(near_sets(points, cells, share)) == sets_of(near_sets(points[:, :1], cells, share))


def test_a_panel_of_salaries_comes_back():
    """Salaries that rise by three per cent a year, as in the check `messy_payroll`."""
    rng = np.random.default_rng(99)
    grade = rng.integers(0, 6, 800)
    pay = 40_000 + 12_000 * grade + rng.normal(0, 4000, 800)
    year, person = np.repeat([2021, 2022, 2023], 800), np.tile(np.arange(800), 3)
    salary = np.round(pay[person] * 1.03 ** (year - 2020), 2)
    order = rng.permutation(2400)
    data = {"year": year[order], "salary": salary[order], "sick": rng.integers(0, 9, 2400)}
    best = found(data, person[order])[0]
    assert (best.columns, best.how) == (("salary",), "chained")  # by what all rise, whatever year it is
    assert best.regrouped >= 798
    salary *= 1 + rng.normal(0, 1e-5, 2400)  # no two rise alike: the years are needed
    best = found(data | {"salary": salary[order]}, person[order])[0]
    assert (best.columns, best.how) == (("year", "salary"), "chained")
    assert best.share > 0.9


def test_a_common_drift_by_hand():
    """Three pairs ten apart, one that is not, and one without a value."""
    values = np.array([1.0, 11.0, 23.0, 33.0, 40.5, 50.5, 70.0, 95.25, np.nan])
    wanted = {frozenset(pair) for pair in ({0, 1}, {2, 3}, {4, 5}, {6}, {7}, {8})}
    one = np.zeros(9, dtype=np.int64)
    assert sets_of(drift_chains(-values, one)) == wanted
    assert frozenset({0, 1}) not in sets_of(drift_chains(-values, np.arange(9)))
    same = np.zeros(4)
    assert sets_of(drift_chains(same, np.zeros(4, dtype=np.int64))) == {frozenset({i}) for i in range(4)}


def test_several_jittered_amounts_of_a_panel():
    rng, person, year = np.random.default_rng(4), np.tile(np.arange(300), 3), np.repeat([1, 2, 3], 300)
    amounts = rng.lognormal(8, 0.6, (300, 4))
    drift = (1.0, 1.2, 1.5)
    data = {
        name: amounts[person, i] * np.take(drift, year - 1) * rng.normal(1, 0.04, 900)
        for i, name in enumerate(NUMBERS[2:6])
    }
    best = found({"year": year, **data}, person)[0]
    assert (best.how, best.columns[0]) == ("chained", "year")
    assert best.share > 0.9


def test_chains_by_hand():
    """Of two waves those are linked that are each other's nearest; the third wave prolongs one chain."""
    values = np.array([[1.0], [5.0], [1.2], [4.0], [4.9], [1.3], [np.nan]])
    waves = np.array([0, 0, 1, 1, 1, 2, 2])
    one = np.zeros(7, dtype=np.int64)
    wanted = {frozenset({0, 2, 5}), frozenset({1, 4}), frozenset({3}), frozenset({6})}
    assert sets_of(chains(values, one, waves)) == wanted
    assert sets_of(chains(np.repeat(values, 2, axis=1), one, waves)) == wanted
    assert sets_of(chains(values, one, np.full(7, -1))) == {frozenset({place}) for place in range(7)}


def naive_chains(values, cells, waves):
    """Each pair of consecutive waves, every record with every other."""
    links = []
    for wave, following in pairwise(range(waves.max() + 1)):
        for cell in set(cells.tolist()):
            here, there = (np.flatnonzero((waves == each) & (cells == cell)) for each in (wave, following))
            for one in here.tolist() if len(there) else ():
                other = min(there.tolist(), key=lambda each: abs(values[each] - values[one]))
                if min(here.tolist(), key=lambda each: abs(values[each] - values[other])) == one:
                    links.append((one, other))
    home = list(range(len(values)))
    for one, other in links:
        home = [home[one] if each == home[other] else each for each in home]
    return np.array(home)


@pytest.mark.parametrize("seed", range(5))
def test_chains_are_those_of_every_record_with_every_other(seed):
    rng = np.random.default_rng(seed)
    values, cells, waves = rng.random(90), rng.integers(0, 3, 90), rng.integers(0, 4, 90)
    wanted = sets_of(naive_chains(values, cells, waves))
    assert sets_of(chains(values[:, None], cells, waves)) == wanted
    assert sets_of(chains(np.column_stack((values, values)), cells, waves)) == wanted


def test_what_a_wave_has_in_common_is_taken_off():
    values = np.array([1.0, 2.0, 2.0, 10.0, 40.0, 20.0, np.nan])
    waves = np.array([0, 0, 0, 1, 1, 1, 1])
    assert wave_ranks(values, waves)[:6].tolist() == pytest.approx([1 / 6, 4 / 6, 4 / 6, 1 / 6, 5 / 6, 3 / 6])
    levels = wave_levels(values, waves)
    assert levels[[1, 2, 5]].tolist() == [0, 0, 0]  # the medians of 2 and 20
    assert levels[4] == pytest.approx(-levels[0]) == pytest.approx(-levels[3])
    assert np.isnan(levels[6])
    assert wave_levels(np.array([-1.0, 0.0, 1.0]), np.zeros(3, dtype=np.int64))[1] == 0


# Where nothing comes back ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n", [20, 60, 3000])
def test_independent_columns_are_not_trusted(n, seed):
    rng = np.random.default_rng(seed)
    data = {
        "x": rng.normal(size=n), "age": rng.integers(0, 90, n), "income": rng.lognormal(size=n).round(1),
        "a": rng.integers(0, 5, n), "b": rng.integers(0, 30, n), "year": np.arange(n) % 3,
    }  # fmt: skip
    assert found(data, np.arange(n) // 3) == ()


@pytest.mark.parametrize("units", [[], [0], [0, 1, 2], [-1, -1], [-1, 0]])
def test_units_of_one_record_are_not_put_together(units):
    assert (
        found({"weight": pl.Series([1.0] * len(units), dtype=pl.Float64)}, np.array(units, dtype=int)) == ()
    )


@pytest.mark.parametrize("weight", [[5.0] * 4, [1.0, 2.0, 3.0, 4.0], [None] * 4])
def test_one_unit(weight):
    data = {"weight": pl.Series(weight, dtype=pl.Float64), "sex": ["f", "m", "f", "m"]}
    assert all(each.units == 1 for each in found(data, [0, 0, 0, 0]))


def test_no_column_to_look_at():
    assert regroupings(table({"weight": [1.0, 1.0]}).select([]), {"unit": np.array([0, 0])}) == ()


def test_records_of_nobody_are_in_the_way_of_others():
    household = np.repeat(np.arange(40), 2)
    weight = [*household.astype(float), *np.repeat(np.arange(40.0), 3)]
    assert found({"weight": weight}, [*household, *[-1] * 120]) == ()


def test_units_of_released_records():
    original = table({"home": ["a", "a", None, "b"]}, Column("home", Kind.NOMINAL, Role.GROUP))
    assert released_units(original, np.array([3, -1, 0, 1, 2]))["home"].tolist() == [1, -1, 0, 0, -1]
    alone = table({"home": ["a", "b"]}, Column("home", Kind.NOMINAL, Role.GROUP))
    assert released_units(alone, np.array([0, 1])) == {}


# Many units -----------------------------------------------------------------------------------------------


def test_of_many_units_the_same_comes_back():
    """Above 5,000 units some are looked at first, and all in the end."""
    household = np.repeat(np.arange(8000), 2)
    town, rooms = RNG.integers(0, 3000, 8000), RNG.integers(0, 9, 8000)
    weight = RNG.permutation(8000) / 1000
    data = {"town": town[household], "rooms": rooms[household], "weight": weight[household]}
    best = found({**data, "sex": RNG.integers(0, 2, 16_000)}, household)[0]
    assert (best.columns, best.regrouped, best.units) == (("weight",), 8000, 8000)
    pair = found({name: data[name] for name in ("town", "rooms")}, household)[0]
    cells = np.unique(town * 9 + rooms, return_counts=True)[1]
    assert (pair.columns, pair.regrouped) == (("town", "rooms"), (cells == 1).sum())
    assert pair.sets == len(cells)
