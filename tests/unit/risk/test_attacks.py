"""Attacks with a control: hand-worked and brute-forced, the original as release, and no number where none is."""

from __future__ import annotations

import re
from collections import Counter
from datetime import date, timedelta
from itertools import combinations, product

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from sfumato.core import registry
from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.release import Release
from sfumato.core.requirement import Requirement, parse_measure
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.shares import wilson
from sfumato.data.table import Table
from sfumato.errors import ParameterError, PlanError
from sfumato.explain.words import meaning_of
from sfumato.methods.global_recoding import GlobalRecoding
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.risk._attack import AttackMeasure, AttackTrial, beyond_control, difference
from sfumato.risk.singling_out import _cells, singles_among
from sfumato.study.level import Target

ATTACKS = ("singling-out", "linkability", "inference(by=neighbours)", "inference", "membership")
SCHEMA = Schema(
    (
        Column("age", Kind.CONTINUOUS, Role.KEY),
        Column("area", Kind.NOMINAL, Role.KEY),
        Column("height", Kind.CONTINUOUS, Role.KEY),
        Column("school", Kind.ORDINAL, Role.KEY, order=("none", "some", "high")),
        Column("since", Kind.DATE, Role.KEY),
        Column("ill", Kind.NOMINAL, Role.SENSITIVE),
        Column("pay", Kind.CONTINUOUS, Role.SENSITIVE),
    )
)


def people(n, seed, *, holes=0.05):
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, n)
    frame = pl.DataFrame(
        {
            "age": age,
            "area": rng.choice(list("abcdefgh"), n),
            "height": np.round(rng.normal(170, 9, n), 1),
            "school": rng.choice(["none", "some", "high"], n),
            "since": [date(2020, 1, 1) + timedelta(days=int(day)) for day in rng.integers(0, 900, n)],
            "ill": np.where(rng.random(n) < age / 120, rng.choice(["flu", "gout"], n), "no"),
            "pay": np.round(age * 100 + rng.normal(0, 800, n)),
        }
    )
    gone = {name: rng.random(n) < holes for name in ("area", "height")}
    cells = [pl.when(pl.Series(~hole)).then(pl.col(name)).alias(name) for name, hole in gone.items()]
    return Table(frame.with_columns(cells), SCHEMA)


def scored(name, original, release=None, control=None, *, seed=1):
    release = Release.unchanged(original) if release is None else release
    resources = {} if control is None else {"control": control}
    return parse_measure(name).score(Evidence(original, release, resources=resources), Run(seed=seed))


# ------------------------------------------------------------------------------ shares, intervals, risks


def test_the_interval_of_wilson_is_the_textbook_one():
    low, high = wilson(8, 10, 1.959964)
    assert (low, high) == (pytest.approx(0.4901625, abs=1e-6), pytest.approx(0.9433178, abs=1e-6))
    assert wilson(0, 10, 1.96)[0] == 0
    assert wilson(10, 10, 1.96)[1] == 1


def test_a_risk_worked_by_hand():
    trial = AttackTrial(hits=60, tries=100, other_hits=20, other_tries=100, baseline=0.1)
    value, low, high = trial.risk(beyond_control, 1.959964)
    assert value == pytest.approx((0.6 - 0.2) / 0.8)
    (one, two), (three, four) = wilson(60, 100, 1.959964), wilson(20, 100, 1.959964)
    assert low == pytest.approx(
        value - np.hypot(value - (one - 0.2) / 0.8, value - (0.6 - four) / (1 - four))
    )
    assert high == pytest.approx(
        value + np.hypot((two - 0.2) / 0.8 - value, (0.6 - three) / (1 - three) - value)
    )
    assert trial.risk(difference, 1.96)[0] == pytest.approx(0.4)


def test_all_right_is_1_with_an_interval_of_some_width():
    value, low, high = AttackTrial(50, 50, 5, 50, 0.0).risk(beyond_control, 1.96)
    assert (value, high) == (1.0, 1.0)
    assert 0.9 < low < 1


@pytest.mark.parametrize(("times", "mean"), [(1.0, 0.7), (4.0, 0.2), (2.0, 1.5)])
def test_how_many_single_people_meet_a_condition_of_even_rarity_is_poisson(times, mean):
    found = singles_among(np.exp(-mean), mean * np.exp(-mean), times)
    assert found == pytest.approx(times * mean * np.exp(-times * mean), rel=1e-4)


def test_and_of_uneven_rarity_negative_binomial():
    r, mean, times = 0.8, 0.5, 5.0
    none, one = (r / (r + mean)) ** r, (r / (r + mean)) ** r * r * mean / (r + mean)
    more = times * mean
    expected = (r / (r + more)) ** r * r * more / (r + more)
    assert singles_among(none, one, times) == pytest.approx(expected, rel=1e-6)
    assert singles_among(1.0, 0.0, 4.0) == 0
    assert singles_among(0.0, 0.3, 4.0) == 0


# ---------------------------------------------------------------------------------- the original itself


@pytest.mark.parametrize("name", ATTACKS)
def test_the_original_as_release_is_all_the_risk_there_is(name):
    original, control = people(80, 1), people(60, 2)
    score = scored(name, original, control=control)
    assert score.status is Status.APPROXIMATE
    assert score.confidence == 95
    low, high = score.interval
    assert 0 <= low <= score.value <= high <= 1
    assert score.value == 1 or name == "linkability"  # facts that several people share link nobody
    assert high - low < 0.3
    assert score.baseline < 0.6
    assert {"rate", "control", "baseline", "queries", "control_queries"} <= set(score.details)


def test_facts_that_tell_everybody_apart_are_linked_for_sure():
    rng = np.random.default_rng(5)
    schema = Schema(tuple(Column(name, Kind.CONTINUOUS, Role.KEY) for name in "abcd"))
    original, control = (Table(pl.DataFrame(rng.random((60, 4)), schema=list("abcd")), schema) for _ in "12")
    score = scored("linkability(first=a+b, second=c+d)", original, control=control)
    assert score.value == 1
    assert score.by_record.tolist() == [1.0] * 60
    assert score.baseline == pytest.approx(1 / 60)


@pytest.mark.parametrize("name", ATTACKS[:3] + ATTACKS[4:])
def test_a_sample_of_others_gives_nobody_away(name):
    within = 0
    for draw in range(20):
        original, release, control = (people(60, 3 * draw + part) for part in range(3))
        score = scored(name, original, Release.of(release), control, seed=draw)
        within += score.interval is not None and score.interval[0] <= 0
    assert within >= 18


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(200, 200), (200, 60)])
@pytest.mark.parametrize("name", ATTACKS[:3] + ATTACKS[4:])
def test_the_interval_covers_0_in_nine_of_ten_draws(name, sizes):
    within = 0
    for draw in range(200):
        original, release = people(sizes[0], 3 * draw), people(sizes[0], 3 * draw + 1)
        score = scored(name, original, Release.of(release), people(sizes[1], 3 * draw + 2), seed=draw)
        within += score.interval is not None and score.interval[0] <= 0
    assert within >= 180


# -------------------------------------------------------------------------------------------- brute force


def numbers(seed, n):
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame({"a": rng.random(n), "b": rng.random(n), "c": rng.choice(["x", "y", "z"], n)})
    return frame.with_columns(d=rng.random(n), s=rng.choice(["p", "q"], n))


NUMBERS = Schema(
    (
        *(Column(name, Kind.CONTINUOUS, Role.KEY) for name in "ab"),
        Column("c", Kind.NOMINAL, Role.KEY),
        Column("d", Kind.CONTINUOUS, Role.KEY),
        Column("s", Kind.NOMINAL, Role.SENSITIVE),
    )
)


def nearest_by_hand(known, released, names, row):
    """The released record at the least Gower distance, by a look at each."""
    best, place = np.inf, -1
    for j in range(len(released)):
        total = 0.0
        for name in names:
            mine, theirs = known[name][row], released[name][j]
            if isinstance(mine, str):
                total += mine != theirs
            else:
                both = pl.concat([known[name], released[name]])
                total += abs(mine - theirs) / (both.max() - both.min())
        if total < best:
            best, place = total, j
    return place


@pytest.mark.parametrize("seed", [1, 2])
def test_linkability_and_inference_are_what_a_look_at_every_pair_gives(seed):
    original, release, control = (numbers(10 * seed + part, n) for part, n in enumerate((30, 40, 20)))
    mixed = pl.concat([release, original[:15]])  # some of the people stand in it as they are
    known = pl.concat([original, control])
    tables = [Table(each, NUMBERS) for each in (original, mixed, control)]
    hits, right = [], []
    for row in range(len(known)):
        first, second = (nearest_by_hand(known, mixed, part, row) for part in (("a", "c"), ("b", "d")))
        hits.append(first == second)
        right.append(known["s"][row] == mixed["s"][nearest_by_hand(known, mixed, "abcd", row)])
    for name, found in (
        ("linkability(first=a+c, second=b+d)", hits),
        ("inference(by=neighbours)", right),
    ):
        score = scored(name, tables[0], Release.of(tables[1]), tables[2])
        rate, other = np.mean(found[:30]), np.mean(found[30:])
        assert score.details["rate"] == pytest.approx(rate)
        assert score.details["control"] == pytest.approx(other)
        assert score.value == pytest.approx(max((rate - other) / (1 - other), 0))
        np.testing.assert_array_equal(score.by_record, np.array(found[:30], dtype=float))


def test_a_number_is_guessed_within_a_tolerance_and_a_silent_cell_is_a_wrong_guess():
    frame = pl.DataFrame({"key": np.arange(20.0), "secret": np.arange(20.0)})
    schema = Schema(
        (Column("key", Kind.CONTINUOUS, Role.KEY), Column("secret", Kind.CONTINUOUS, Role.SENSITIVE))
    )
    original = Table(frame, schema)
    control = Table(frame.with_columns(secret=pl.col("secret") + 500), schema)
    off = Table(frame.with_columns(secret=pl.col("secret") + 30), schema)
    spread = float(np.concatenate((frame["secret"], control.frame["secret"])).std())
    for within, expected in ((100 * 29 / spread, 0.0), (100 * 31 / spread, 1.0)):
        name = f"inference(by=neighbours, within={within})"
        assert scored(name, original, Release.of(off), control).value == expected
    silent = Table(frame.with_columns(secret=pl.when(pl.col("key") < 5).then("secret")), schema)
    score = scored("inference(by=neighbours)", original, Release.of(silent), control)
    assert score.details["rate"] == 0.25
    assert score.details["queries"] == 20


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_of_records_equally_near_all_are_guessed_by_and_none_is_drawn(seed):
    """Of ten alike in the key seven have the value a: whoever has it is guessed right seven times of ten."""
    schema = Schema((Column("key", Kind.NOMINAL, Role.KEY), Column("ill", Kind.NOMINAL, Role.SENSITIVE)))
    frame = pl.DataFrame({"key": ["k"] * 10 + ["m"] * 10, "ill": ["a"] * 7 + ["b"] * 3 + ["c"] * 10})
    control = Table(frame.with_columns(ill=pl.lit("b")), schema)
    score = scored("inference(by=neighbours)", Table(frame, schema), None, control, seed=seed)
    np.testing.assert_allclose(score.by_record, [0.7] * 7 + [0.3] * 3 + [1.0] * 10)
    assert score.details["rate"] == pytest.approx((0.7 * 7 + 0.3 * 3 + 10) / 20)
    assert score.details["control"] == pytest.approx(0.3 / 2)


def test_what_is_known_of_everybody_discloses_nobody():
    law = pl.when(pl.col("age") % 30 < 15).then(pl.lit("one")).otherwise(pl.lit("other")).alias("ill")
    tables = [people(60, seed, holes=0) for seed in (4, 5, 6)]
    known = [each.with_values("ill", each.frame.select(law).to_series()) for each in tables]
    original, release, control = (table.select(["age", "ill"]) for table in known)
    score = scored("inference(by=neighbours)", original, Release.of(release), control)
    assert score.details["rate"] > 0.9
    assert score.interval[0] == 0


def categories(n, seed):
    """Four columns of few values, some of them rare."""
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame({name: rng.choice(list("pqrs"), n, p=[0.6, 0.3, 0.07, 0.03]) for name in "abcd"})
    return Table(frame, Schema(tuple(Column(name, Kind.NOMINAL, Role.KEY) for name in "abcd")))


def test_of_few_categories_all_conditions_are_asked_that_single_out_and_no_others():
    original = categories(200, 1)
    rows = original.frame.rows()
    conditions = [
        [tuple(row[place] for place in places) for row in rows]
        for size in (1, 2, 3, 4)
        for places in combinations(range(4), size)
    ]
    singles = sum(list(counts.values()).count(1) for counts in map(Counter, conditions))
    score = scored("singling-out(depth=4)", original, control=categories(200, 2))
    assert 10 < score.details["queries"] == singles < 200
    distinct = sum(len(set(each)) for each in conditions)
    assert f"of {distinct} different conditions" in score.details["fewer_queries"]


def test_why_fewer_conditions_are_asked():
    """There are no more people; and as many as told need no word."""
    original, control = people(80, 1), people(60, 2)
    few = scored("singling-out", original, control=control)
    assert few.details["fewer_queries"] == "as many claims as the original has people"
    told = scored("singling-out(queries=50)", original, control=control)
    assert told.details["queries"] == 50
    assert "fewer_queries" not in told.details


# ------------------------------------------------------------------------- what an attack must not be blind to


def lognormal(n, seed, columns=4):
    rng = np.random.default_rng(seed)
    names = [f"x{number}" for number in range(columns)]
    shared = rng.normal(size=(n, 1))
    frame = pl.DataFrame(np.exp(shared + rng.normal(size=(n, columns))), schema=names)
    return Table(frame, Schema(tuple(Column(name, Kind.CONTINUOUS, Role.KEY) for name in names)))


def noisy(table, share, seed=9):
    """So much noise on every number, in shares of its standard deviation."""
    rng, frame = np.random.default_rng(seed), table.frame
    cells = [
        pl.Series(name, frame[name] + share * (frame[name].std() or 0) * rng.normal(size=len(table)))
        for name in table.names
        if table.schema[name].kind is Kind.CONTINUOUS
    ]
    return Release.of(Table(frame.with_columns(cells), table.schema), source_rows=np.arange(len(table)))


def uniform(n, columns, values, seed):
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame({f"c{number}": rng.choice(list(values), n) for number in range(columns)})
    return Table(frame, Schema(tuple(Column(name, Kind.NOMINAL, Role.KEY) for name in frame.columns)))


@pytest.mark.parametrize("digits", [1, 15])
def test_singling_out_falls_smoothly_with_noise_and_not_at_once(digits):
    """Of 0.01 % noise nobody is hidden: values are no longer equal, and anybody recognises them."""
    original, control = (
        Table(each.frame.select(pl.all().round(digits)), each.schema)
        for each in (lognormal(200, 1), lognormal(200, 2))
    )
    found = [
        scored("singling-out", original, noisy(original, share), control).value
        for share in (0, 1e-6, 1e-4, 0.1, 3)
    ]
    assert found[0] == 1
    assert min(found[1:3]) > 0.97
    assert 0.1 < found[3] < 0.9
    assert found[4] < 0.1


@pytest.mark.parametrize("n", [12, 25, 50])
def test_of_few_people_with_a_little_noise_all_are_singled_out(n):
    original, control = lognormal(n, 1), lognormal(n, 2)
    assert scored("singling-out", original, noisy(original, 1e-5), control).value == 1


def test_of_census_with_a_hundredth_of_a_per_cent_of_noise_everybody_is_singled_out(reference_data):
    frame = pl.read_csv(reference_data("census.csv"))
    keys = Schema(tuple(Column(name, Kind.CONTINUOUS, Role.KEY) for name in frame.columns))
    whole = Table(frame, keys)
    original, control = whole.take(np.arange(0, 1080, 2)), whole.take(np.arange(1, 1080, 2))
    assert scored("singling-out(queries=200)", original, noisy(original, 1e-4), control).value > 0.99


def test_ranges_are_what_a_look_at_every_pair_gives():
    original, control = lognormal(60, 1, columns=1), lognormal(60, 2, columns=1)
    release = noisy(original, 0.002)
    mine, others, theirs = (np.sort(t.frame["x0"].to_numpy()) for t in (original, control, release.table))
    claims = []
    for value in theirs:
        away = min(abs(value - other) for other in theirs if other != value)
        met = [sum(value - away / 2 <= each <= value + away / 2 for each in side) for side in (mine, others)]
        claims.append((away, met[0] == 1, met[1] == 1))
    surer = sorted(claims, reverse=True)[:30]
    score = scored("singling-out", original, release, control)
    assert score.details["attack"] == "ranges"
    assert score.details["queries"] == 30
    assert "surer half" in score.details["fewer_queries"]
    assert score.details["rate"] == pytest.approx(np.mean([right for _, right, _ in surer]))
    assert score.details["control"] == pytest.approx(np.mean([right for _, _, right in surer]))


def test_a_sample_with_a_little_noise_is_singled_out_by_narrow_ranges():
    original, control = lognormal(400, 1), lognormal(400, 2)
    rows = np.arange(0, 400, 5)
    release = Release.of(noisy(original, 1e-5).table.take(rows), source_rows=rows)
    assert scored("singling-out", original, release, control).value > 0.9


def test_noise_on_numbers_does_not_hide_who_is_alone_in_their_categories():
    tables = []
    for seed in (1, 2):
        numbers, cells = lognormal(300, seed, columns=3), uniform(300, 3, "abcdefgh", seed)
        frame = numbers.frame.hstack(cells.frame)
        tables.append(Table(frame, Schema(numbers.schema.columns + cells.schema.columns)))
    score = scored("singling-out", tables[0], noisy(tables[0], 20), tables[1])
    assert score.details["attack"] == "values of categories"
    assert score.value == 1


def test_who_is_alone_only_in_all_columns_is_singled_out():
    original, control = uniform(1500, 6, "abcd", 1), uniform(1500, 6, "abcd", 2)
    score = scored("singling-out", original, control=control)
    assert score.details["attack"] == "values of all columns"
    assert score.value == 1


def test_a_range_that_is_open_below_does_not_hold_who_has_no_value():
    """Of thirty people one has a value up to 5, and the others none: who is told is told alone."""
    frame = pl.DataFrame({"x": [1.0, *[None] * 19, *np.arange(10.0, 20.0)]})
    schema = Schema((Column("x", Kind.CONTINUOUS, Role.KEY),))
    original = Table(frame, schema)
    known, cells = _cells(original, original, ("x",))
    assert np.isneginf(known[0, 1:20]).all()
    ends = pl.DataFrame(
        {"lo": [None, *[10.0] * 29], "hi": [5.0, *[20.0] * 29]}, schema={"lo": float, "hi": float}
    )
    coarse = Table(frame.with_columns(x=ends.select(pl.struct("lo", "hi")).to_series()), schema)
    _, cells = _cells(original, coarse, ("x",))
    assert (cells.lows[0, 0] <= known[0]).sum() == 11


def candidates_by_hand(known, released, names, row):
    """All released records at the least Gower distance, by a look at each; what is missing is a value."""
    far = np.zeros(len(released))
    for name in names:
        mine, theirs = known[name][row], released[name].to_list()
        if known[name].dtype == pl.String:
            far += [mine != each for each in theirs]
        else:
            both = pl.concat([known[name], released[name]])
            width = both.max() - both.min()
            far += [
                float((mine is None) != (each is None))
                if mine is None or each is None
                else abs(mine - each) / width
                for each in theirs
            ]
    return set(np.flatnonzero(far <= far.min() + 1e-9).tolist())


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_ties_count_as_a_group_as_a_look_at_every_pair_gives(seed):
    rng = np.random.default_rng(seed)
    schema = Schema(
        (
            *(Column(name, Kind.NOMINAL, Role.KEY) for name in "ac"),
            *(Column(name, Kind.CONTINUOUS, Role.KEY) for name in "bd"),
        )
    )
    frames = []
    for n in (40, 30):
        frame = pl.DataFrame({name: rng.choice(list("xyz"), n) for name in "ac"})
        frame = frame.with_columns(pl.Series(name, rng.integers(0, 4, n) * 1.0) for name in "bd")
        hole = rng.random(n) < 0.1
        frames.append(frame.with_columns(pl.when(pl.Series(~hole)).then(name).alias(name) for name in "cd"))
    original, control = frames
    mixed = original.with_columns(original["a"].shuffle(seed=seed), d=original["d"].reverse())
    release = pl.concat([original[:25], mixed[25:]])
    known, credit = pl.concat([original, control]), []
    for row in range(len(known)):
        first, second = (candidates_by_hand(known, release, part, row) for part in ("ab", "cd"))
        credit.append(1 / len(first & second) if first & second else 0.0)
    tables = [Table(each, schema) for each in (original, release, control)]
    released = Release.of(tables[1], source_rows=np.arange(40))
    score = scored("linkability(first=a+b, second=c+d)", tables[0], released, tables[2])
    np.testing.assert_allclose(score.by_record, credit[:40])
    rate, other = np.mean(credit[:40]), np.mean(credit[40:])
    assert score.value >= (rate - other) / (1 - other) - 1e-9
    if score.details["attack"] == "common candidates":
        assert score.details["rate"] == pytest.approx(rate)
        assert score.details["control"] == pytest.approx(other)


def test_a_raw_file_of_categories_is_linked_if_both_halves_together_tell_people_apart():
    original, control = uniform(300, 6, "abcdef", 1), uniform(300, 6, "abcdef", 2)
    score = scored("linkability", original, control=control)
    assert score.value > 0.9
    assert score.details["attack"] == "common candidates"
    twins, others = uniform(300, 4, "ab", 1), uniform(300, 4, "ab", 2)
    alike = scored("linkability", twins, control=others)
    assert alike.value < 0.05
    assert "of them are in both" in alike.details["candidates"]


def test_k_neighbours_without_ties_are_the_published_attack():
    """Of 5 nearest in either set one common record is enough, however many there are."""
    original, control = lognormal(60, 1), lognormal(60, 2)
    release = noisy(original, 0.3)
    score = scored("linkability(k=5)", original, release, control)
    assert set(np.unique(score.by_record)) == {0.0, 1.0}
    assert "attack" not in score.details


@pytest.mark.parametrize("name", ATTACKS)
def test_no_attack_does_better_on_noise_than_on_the_original_itself(name):
    """On mixed tables with missing values, ties and a constant, at fixed seeds."""
    for seed in (1, 5):
        tables = [people(60, seed + each) for each in (0, 1)]
        original, control = (
            Table(
                each.frame.with_columns(same=pl.lit("x")),
                Schema((*SCHEMA.columns, Column("same", Kind.NOMINAL, Role.KEY))),
            )
            for each in tables
        )
        raw = scored(name, original, control=control).value
        shares = (1e-4, 0.3, 3) if name != "inference" else (0.3,)
        found = [scored(name, original, noisy(original, share), control).value for share in shares]
        assert max(found) <= raw + 0.05


def odd(n, seed):
    """Columns of any kind, of many values or one, with any share of them missing; one column or several."""
    rng = np.random.default_rng(seed)
    series, columns = [], []
    for number in range(rng.integers(1, 5)):
        name, kind = f"x{number}", rng.choice([Kind.CONTINUOUS, Kind.NOMINAL])
        levels = int(rng.choice([1, 2, 5, 1000]))
        dtype = pl.Float64 if kind == Kind.CONTINUOUS else pl.String
        cells = pl.Series(name, rng.integers(0, levels, 2 * n)).cast(dtype)
        gone = pl.Series(rng.random(2 * n) < rng.choice([0, 0.3, 1], p=[0.6, 0.3, 0.1]))
        series.append(cells.zip_with(~gone, pl.Series(name, [None], dtype=dtype).new_from_index(0, 2 * n)))
        columns.append(Column(name, Kind(kind), Role.KEY))
    whole = Table(pl.DataFrame(series), Schema(tuple(columns)))
    return whole.take(np.arange(n)), whole.take(np.arange(n, 2 * n))


@examples(15)
@given(st.integers(0, 10_000), st.sampled_from([1, 9, 12, 40]))
def test_odd_tables_have_a_number_or_a_reason_and_noise_no_more_than_none(seed, n):
    original, control = odd(n, seed)
    for name in ("singling-out", "linkability", "membership"):
        raw, moved = (
            scored(name, original, release, control)
            for release in (Release.unchanged(original), noisy(original, 2, seed))
        )
        for score in (raw, moved):
            assert score.reason if np.isnan(score.value) else 0 <= score.value <= 1
        if not np.isnan(raw.value) and not np.isnan(moved.value):
            assert moved.interval[0] <= raw.interval[1] + 1e-9  # of so few people the values themselves vary


@pytest.mark.parametrize("values", [[1.7e308, -1.7e308], [5e-324, 0.0]])
def test_ranges_of_numbers_of_any_size(values):
    schema = Schema((Column("x", Kind.CONTINUOUS, Role.KEY),))
    tables = [
        Table(pl.DataFrame({"x": [*values, None, *np.random.default_rng(seed).normal(size=20)]}), schema)
        for seed in (1, 2)
    ]
    score = scored("singling-out", tables[0], control=tables[1].take(np.arange(3, 23)))
    assert score.value == 1


@pytest.mark.parametrize("name", sorted(registry.measures()))
def test_each_attack_says_what_it_cannot_see(name):
    cls = registry.measure(name)
    said = cls.tells.not_seen
    assert said or not issubclass(cls, AttackMeasure)
    if said:
        assert re.match(r"It (does not test|tests only|compares by equality: it does not find) ", said)
        assert said.endswith(".")
        assert meaning_of(cls).notes["What it cannot see"] == cls.describe()["not_seen"] == said
    if issubclass(cls, AttackMeasure):
        assert scored(name, people(60, 1), control=people(60, 2)).details["not_seen"] == said


# --------------------------------------------------------------------------- generalised, mixed, odd tables


@pytest.fixture(scope="module")
def recoded():
    original = people(120, 7, holes=0.02)
    columns = ("age", "area", "height", "school", "since")
    return original, Recipe((Step(GlobalRecoding(k=3), columns),)).apply(original, Run(seed=1))


@pytest.mark.parametrize("name", ATTACKS)
def test_generalised_releases_have_a_number(name, recoded):
    original, release = recoded
    assert release.table.is_generalised(*release.table.names)
    score = scored(name, original, release, people(60, 8))
    assert score.status in {Status.APPROXIMATE, Status.NOT_ESTIMABLE}
    assert score.status is Status.APPROXIMATE or score.reason
    assert not score.value > scored(name, original, control=people(60, 8)).value


@pytest.mark.parametrize("name", ATTACKS)
def test_one_coarse_cell_changes_little(name):
    from sfumato.data.generalised.suppressing import as_ranges

    original, control = people(60, 1, holes=0), people(60, 2, holes=0)
    coarse = as_ranges(original, "height")
    release = Release.of(coarse, source_rows=np.arange(60))
    same, exact = scored(name, original, release, control), scored(name, original, control=control)
    assert same.value == pytest.approx(exact.value, abs=0.02)


@pytest.mark.parametrize("name", ATTACKS)
def test_cells_suppressed_to_missing_hide_no_more_than_those_that_say_so(name):
    """A null where people have values may be any, as beside ranges: it does not lie far from its own person."""
    from sfumato.data.generalised.suppressing import as_ranges

    original, control = people(100, 1, holes=0), people(80, 2, holes=0)
    gone = np.random.default_rng(3).random(100) < 0.3
    cells = [pl.when(pl.Series(~gone)).then(pl.col(each)).alias(each) for each in ("age", "height")]
    nulls = Table(original.frame.with_columns(cells), SCHEMA)
    coarse = as_ranges(as_ranges(nulls, "age"), "height")
    found, same = (
        scored(name, original, Release.of(each, source_rows=np.arange(100)), control)
        for each in (nulls, coarse)
    )
    assert found.value == pytest.approx(same.value, abs=0.1 if name == "inference" else 1e-9)


@pytest.mark.parametrize("name", ATTACKS)
def test_a_control_of_other_types_is_read_alike(name):
    original, control = people(60, 1, holes=0), people(60, 2, holes=0)
    frame = control.frame.with_columns(pl.col("age").cast(pl.Float64), pl.col("area").cast(pl.Categorical))
    other = Table(frame, SCHEMA)
    assert scored(name, original, control=other).value == scored(name, original, control=control).value


@pytest.mark.parametrize(
    ("name", "reason"), list(product(ATTACKS, ["control", "3 in", "missing", "same kind"]))
)
def test_where_nothing_can_be_told_there_is_a_reason_and_no_number(name, reason):
    original, control = people(40, 1), people(40, 2)
    if reason == "control":
        control = None
    elif reason == "3 in":
        original = original.take(np.arange(3))
    elif reason == "missing":
        cells = [pl.lit(None, dtype=kind).alias(name) for name, kind in original.frame.schema.items()]
        original = Table(original.frame.with_columns(cells), SCHEMA)
    else:
        control = control.select([each for each in control.names if each != "height"])
    score = scored(name, original, control=control)
    assert score.status in {Status.REFUSED, Status.NOT_ESTIMABLE}
    assert np.isnan(score.value)
    assert reason in score.reason


def test_records_that_are_all_alike_link_nobody_but_by_chance():
    alike = Table(people(60, 1, holes=0).frame.with_columns(area=pl.lit("a"), school=pl.lit("some")), SCHEMA)
    known, control = (table.select(["area", "school"]) for table in (alike, alike))
    score = scored("linkability", known, control=control)
    assert score.details["rate"] == score.details["control"] == pytest.approx(1 / 60)
    assert score.value == 0
    assert "leaves 60.0 released people" in score.details["candidates"]


@pytest.mark.parametrize("name", ["linkability", "inference"])
def test_one_column_is_too_few_to_join_or_to_learn_by(name):
    schema = Schema((Column("age", Kind.CONTINUOUS, Role.KEY),))
    tables = [Table(people(30, seed).frame.select("age"), schema) for seed in (1, 2)]
    score = scored(name, tables[0], control=tables[1])
    assert score.status is Status.REFUSED
    assert "one column" in score.reason


def test_a_control_that_is_always_guessed_or_of_another_population_tells_nothing():
    original, control = (
        Table(people(60, seed, holes=0).frame.with_columns(ill=pl.lit("flu")), SCHEMA) for seed in (1, 2)
    )
    score = scored("inference(by=neighbours, learn=ill)", original, control=control)
    assert score.status is Status.NOT_ESTIMABLE
    assert "control group" in score.reason
    release = Release.of(control)  # whose people are taken for the strangers
    swapped = scored("linkability", original, release, control)
    assert swapped.status is Status.NOT_ESTIMABLE
    assert "population" in swapped.reason


@pytest.mark.parametrize("name", ATTACKS)
def test_a_control_of_the_people_themselves_is_none(name):
    original = people(80, 1)
    half = Table(pl.concat([original.frame[:40], people(40, 2).frame]), SCHEMA)
    for control in (original, half):
        score = scored(name, original, control=control)
        assert score.status is Status.NOT_ESTIMABLE
        assert "the control group is in the original: " in score.reason


def test_columns_that_cannot_be_attacked_are_named_and_not_left_out():
    original, control = people(40, 1), people(40, 2)
    score = scored("linkability(first=age+pay, second=height)", original, control=control)
    assert (score.status, "`pay`" in score.reason) == (Status.REFUSED, True)
    rare = pl.when(pl.int_range(pl.len()) < 5).then("ill").alias("ill")
    few = [Table(each.frame.with_columns(rare), SCHEMA) for each in (original, control)]
    score = scored("inference(by=neighbours)", few[0], control=few[1])
    assert (score.details["guessed"], score.details["not_guessed"]) == (1, "ill")
    items = pl.Series("ill", [["flu"], ["gout", "flu"]] * 20)
    schema = Schema((*SCHEMA.columns[:5], Column("ill", Kind.SET, Role.SENSITIVE), SCHEMA["pay"]))
    sets = [Table(each.frame.with_columns(items), schema) for each in (original, control)]
    for name in ("inference", "disco"):
        assert "`ill` (set)" in scored(name, sets[0], control=sets[1]).reason


# ---------------------------------------------------------------------- persons who have several records

OF_PERSONS = Schema(
    (
        Column("who", Kind.NOMINAL, Role.PERSON),
        *(Column(name, Kind.CONTINUOUS, Role.KEY) for name in "ab"),
        Column("c", Kind.NOMINAL, Role.KEY),
        Column("s", Kind.NOMINAL, Role.SENSITIVE),
    )
)


def panel(persons, records, seed, *, moving=0.01):
    """Persons with so many records each, which differ a little; numbers of persons never repeat."""
    rng, n = np.random.default_rng(seed), persons * records
    of_person = {name: rng.normal(size=persons) for name in "ab"}
    of_person |= {"c": rng.choice(list("xyz"), persons), "s": rng.choice(list("pqr"), persons)}
    frame = pl.DataFrame({name: np.repeat(each, records) for name, each in of_person.items()})
    frame = frame.with_columns(pl.Series(name, frame[name] + moving * rng.normal(size=n)) for name in "ab")
    who = pl.Series("who", np.repeat(1000 * seed + np.arange(persons), records))
    return Table(frame.select(who, pl.all()), OF_PERSONS)


def without_numbers(table, rows=None):
    return Release.of(table.select([name for name in table.names if name != "who"]), source_rows=rows)


@pytest.mark.parametrize("name", ATTACKS)
def test_two_records_of_a_person_that_are_alike_hide_nobody(name):
    original, control = panel(40, 2, 1, moving=0), panel(40, 2, 2, moving=0)
    score = scored(name, original, without_numbers(original, np.arange(80)), control)
    assert score.value == 1
    assert score.details["queries"] <= 40
    assert score.confidence == 95


@pytest.mark.parametrize("name", ATTACKS[:3] + ATTACKS[4:])
def test_records_of_one_person_make_no_interval_narrower(name):
    within = 0
    for draw in range(20):
        original, release, control = (panel(20, 8, 1 + 3 * draw + part) for part in range(3))
        score = scored(name, original, without_numbers(release), control, seed=draw)
        within += score.interval is not None and score.interval[0] <= 0
    assert within >= 18


def test_all_records_of_a_person_are_attacked_or_none():
    original, control = panel(40, 5, 1), panel(40, 5, 2)
    score = scored("linkability(queries=77)", original, without_numbers(original, np.arange(200)), control)
    asked = ~np.isnan(score.by_record).reshape(40, 5)
    assert (asked.all(axis=1) == asked.any(axis=1)).all()
    assert score.details["queries"] == score.details["control_queries"] == 15
    few = scored("linkability", panel(9, 5, 1), without_numbers(panel(9, 5, 1)), control)
    assert "9 in the original" in few.reason


@pytest.mark.parametrize("name", ATTACKS)
def test_persons_of_the_original_are_no_control_whatever_their_records_say(name):
    original, control = panel(40, 2, 1), panel(40, 2, 2)
    same = control.with_values("who", pl.concat([original.frame["who"][:2], control.frame["who"][2:]]))
    score = scored(name, original, control=same)
    assert score.status is Status.NOT_ESTIMABLE
    assert "share 1 person by `who`" in score.reason


def test_a_requirement_may_rely_on_an_attack_if_it_says_so():
    original, control = people(80, 1), people(80, 2)
    score = scored("membership", original, control=control)
    assert not Requirement.parse("membership <= 0.99").met_by(score)
    assert not Requirement.parse("membership <= 0.5 at 95%").met_by(score)
    safe = scored("membership", original, Release.of(people(80, 3)), control)
    assert Requirement.parse("membership <= 0.5 at 95%").met_by(safe)


def test_scores_repeat_and_another_seed_attacks_others():
    original, control = people(200, 1), people(200, 2)
    release = Release.of(people(200, 3))
    one, again, other = (
        scored("linkability(queries=20)", original, release, control, seed=s) for s in (1, 1, 2)
    )
    assert one == again
    assert not np.array_equal(np.isnan(one.by_record), np.isnan(other.by_record))


# ----------------------------------------------------------- what is repeated, what is certain, what is near


def tabled(rows, names=("sex", "job", "ill")):
    roles = (Role.KEY, Role.KEY, Role.SENSITIVE)
    schema = Schema(tuple(Column(n, Kind.NOMINAL, r) for n, r in zip(names, roles, strict=True)))
    return Table(pl.DataFrame(rows, schema=list(names), orient="row"), schema)


ORIGINAL = [
    ("f", "cook", "flu"),
    ("f", "smith", "gout"),
    ("m", "cook", "flu"),
    ("m", "cook", "gout"),
    ("m", "smith", None),
]
RELEASED = [
    ("f", "cook", "flu"),
    ("f", "cook", "flu"),
    ("f", "smith", "flu"),
    ("m", "cook", "gout"),
    ("m", "smith", "flu"),
]


def test_replicated_uniques_by_hand():
    score = scored("repu", tabled(ORIGINAL), Release.of(tabled(RELEASED)))
    assert score.by_record.tolist() == [1, 1, 0, 0, 1]  # all but the two m cook are unique, and released
    assert score.value == pytest.approx(3 / 5)
    assert score.details["published"] == pytest.approx(2 / 5)  # f smith and m smith are unique in both
    assert (score.details["uniques"], score.details["share_of_uniques"]) == (3, 1)


def test_disclosive_and_correct_by_hand():
    score = scored("disco", tabled(ORIGINAL), Release.of(tabled(RELEASED)))
    # f cook: flu, right; f smith: flu, wrong; m cook: gout, right of one in two; who lacks a value is left out
    np.testing.assert_array_equal(score.by_record, [1, 0, 0, 1, np.nan])
    assert score.value == pytest.approx(2 / 4)
    assert score.baseline == pytest.approx(2 / 4)  # flu
    assert score.details["in_original"] == pytest.approx(2 / 4)
    assert score.details["published"] == pytest.approx(2 / 4)
    assert score.details["uniques"] == 1  # f cook; there are two m cook


def test_two_records_of_a_person_are_unique_together():
    original = panel(30, 2, 1, moving=0)
    release = without_numbers(original, np.arange(60))
    score = scored("repu", original, release)
    assert (score.value, score.details["uniques"]) == (1, 30)
    assert scored("disco", original, release).value == 1
    alone = Table(original.frame, Schema((Column("who", Kind.NOMINAL, Role.OTHER), *OF_PERSONS.columns[1:])))
    assert scored("repu", alone, release).value == 0


def test_replication_and_disco_as_a_look_at_every_pair_tells():
    rng = np.random.default_rng(4)
    tables = [tabled([tuple(rng.choice(list("abc"), 3)) for _ in range(40)]) for _ in range(2)]
    mine, theirs = (table.frame.rows() for table in tables)
    alone, certain = [], []
    for row in mine:
        same = [each for each in theirs if each[:2] == row[:2]]
        alone.append(sum(each[:2] == row[:2] for each in mine) == 1 and len(same) == 1)
        certain.append(bool(same) and {each[2] for each in same} == {row[2]})
    release = Release.of(tables[1])
    assert scored("repu", tables[0], release).details["published"] == pytest.approx(np.mean(alone))
    assert scored("disco", tables[0], release).value == pytest.approx(np.mean(certain))


def test_knowledge_gain_by_hand():
    rows = [("f", "cook", "flu"), ("f", "cook", "flu"), ("m", "cook", "flu"), ("m", "cook", "gout")]
    score = parse_measure("knowledge-gain").score(
        Evidence(tabled(rows), Release.unchanged(tabled(rows))), Run(seed=1)
    )
    # flu 3/4, gout 1/4 in all; f: (1, 0), half the differences 1/4; m: (1/2, 1/2), 1/4
    assert score.value == pytest.approx(0.25)
    # drawn from the class: 1, 1, 1/2, 1/2; from the table: 3/4, 3/4, 3/4, 1/4
    assert score.details["accuracy_gain"] == pytest.approx((3 - 2.5) / 4)


def test_the_nearest_record_is_told_and_never_required():
    original, control = people(60, 1), people(60, 2)
    same = scored("dcr", original, control=control)
    assert same.value == 0
    assert same.details["copied"] == 1
    assert same.details["control"] > 0
    other = scored("nearest-record-distance", original, Release.of(people(60, 3)))
    assert 0 < other.value < 0.5
    with pytest.raises(PlanError, match="cannot be required") as error:
        Requirement.parse("nearest-record-distance >= 0.1")
    assert "no evidence" in error.value.hint
    with pytest.raises(ParameterError, match="is only reported, not held at a level"):
        Target(parse_measure("dcr"), 0.1)
