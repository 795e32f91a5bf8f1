"""Tests of membership: each by a look at every pair, the worst of all, and how often it cries wolf."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.release import Release
from sfumato.core.requirement import parse_measure
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.methods.global_recoding import GlobalRecoding
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.risk._attack import arena_of, sides_of
from sfumato.risk._membership_tests import TESTS, MembershipCase, look_for_members
from sfumato.risk.membership import _threshold, choose_and_test, p_value_of_best

SCHEMA = Schema(
    (
        *(Column(name, Kind.CONTINUOUS, Role.KEY) for name in "ab"),
        *(Column(name, Kind.NOMINAL, Role.KEY) for name in "cd"),
    )
)
NAMES = ("a", "b", "c", "d")


def people(n, seed, *, holes=0.1):
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "a": rng.integers(0, 15, n) * 1.0,
            "b": np.round(rng.lognormal(3, 1, n), 2),
            "c": rng.choice(list("uvwxyz"), n, p=[0.4, 0.3, 0.1, 0.1, 0.06, 0.04]),
            "d": rng.choice(list("pqr"), n),
        }
    )
    cells = [pl.when(pl.Series(rng.random(n) >= holes)).then(name).alias(name) for name in "bc"]
    return Table(frame.with_columns(cells), SCHEMA)


def scored(test, original, released, control, *, seed=1, **more):
    release = released if isinstance(released, Release) else Release.of(released)
    evidence = Evidence(original, release, resources={"control": control}, **more)
    return parse_measure(f"membership(test={test})").score(evidence, Run(seed=seed))


def with_copies(original, share, seed):
    """A release of strangers in which a share of the people stand as they are."""
    fresh = people(len(original), seed)
    kept = int(share * len(original))
    return Table(pl.concat([original.frame[:kept], fresh.frame[kept:]]), original.schema)


# ------------------------------------------------------------------------------------- by a look at every pair


def gower(mine, theirs, widths):
    total = 0.0
    for name in NAMES:
        one, other = mine[name], theirs[name]
        if one is None or other is None:
            total += float((one is None) != (other is None))
        elif isinstance(one, str):
            total += float(one != other)
        else:
            total += abs(one - other) / widths[name]
    return total


class ByHand:
    """The same case with nothing but lists: the known records, the released ones, and who is whose reference."""

    def __init__(self, seed):
        original, control = people(30, seed), people(20, seed + 1)
        released = with_copies(original, 0.5, seed + 2)
        evidence, run = (
            Evidence(original, Release.of(released), resources={"control": control}),
            Run(seed=seed),
        )
        sides = sides_of(evidence, NAMES, 2000, run)
        arena = arena_of(sides.known, released, NAMES, sides.order)
        self.case = MembershipCase.of(sides, arena, run.rng("reference"))
        self.found = look_for_members(self.case, tuple(TESTS), run, "test")
        self.known = original.frame.to_dicts() + control.frame.to_dicts()
        self.released = released.frame.to_dicts()
        both = pl.concat([original.frame, control.frame, released.frame])
        self.widths = {name: both[name].max() - both[name].min() for name in "ab"}

    def near(self, row):
        return sorted(gower(self.known[row], each, self.widths) for each in self.released)

    def reference(self, place):
        return [self.known[each] for each in self.case.references[self.case.half_of_row[place]]]

    def beyond(self, place):
        row = self.case.rows[place]
        return sorted(gower(self.known[row], each, self.widths) for each in self.reference(place))


@pytest.fixture(scope="module", params=[1, 11])
def by_hand(request):
    return ByHand(request.param)


def test_nobody_stands_for_the_population_beside_themselves(by_hand):
    case = by_hand.case
    assert {len(each) for each in case.references} == {25}
    assert set(case.references[0]) | set(case.references[1]) == set(range(50))
    for place, row in enumerate(case.rows):
        assert row not in case.references[case.half_of_row[place]]


def test_distances_are_what_a_look_at_every_pair_gives(by_hand):
    near = np.array([by_hand.near(row) for row in by_hand.case.rows])
    beyond = np.array([by_hand.beyond(place) for place in range(50)])
    found = by_hand.found
    np.testing.assert_allclose(found["distance"], -near[:, 0], atol=1e-12)
    np.testing.assert_allclose(found["distance-of-several"], -near[:, :5].mean(axis=1), atol=1e-12)
    np.testing.assert_allclose(found["distance-difference"], beyond[:, 0] - near[:, 0], atol=1e-12)
    there = (near[:, 0] > 1e-12) & (beyond[:, 0] > 1e-12)
    ratio = np.log(beyond[there, 0] / near[there, 0])
    np.testing.assert_allclose(found["density-ratio"][there], ratio, atol=1e-9)
    np.testing.assert_allclose(
        found["distance-ratio"][there], np.log(near[there, 1] / near[there, 0]), atol=1e-9
    )
    width, radius = np.median(beyond[:, :10]), np.median(near[:, 0])
    kernels = [np.exp(-each[:, :10] / width).sum(axis=1) for each in (near, beyond)]
    np.testing.assert_allclose(found["kernel-density"], np.log(kernels[0] / kernels[1]), atol=1e-9)
    counts = [1 + (each[:, :10] <= radius + 1e-12).sum(axis=1) for each in (near, beyond)]
    np.testing.assert_allclose(found["neighbour-count"], np.log(counts[0] / counts[1]), atol=1e-9)


def log_shares(values, domain):
    counts = Counter(values)
    total = sum(counts[each] + 0.5 for each in domain)
    return {each: math.log((counts[each] + 0.5) / total) for each in domain}


def test_rare_values_are_what_counting_gives(by_hand):
    for place, row in enumerate(by_hand.case.rows):
        expected = 0.0
        for name in NAMES:
            domain = {each[name] for each in by_hand.known} | {None}
            released = log_shares([each[name] for each in by_hand.released if each[name] in domain], domain)
            population = log_shares([each[name] for each in by_hand.reference(place)], domain)
            value = by_hand.known[row][name]
            expected += released[value] - population[value]
        assert by_hand.found["rare-values"][place] == pytest.approx(expected)


def test_histograms_of_categories_are_what_counting_gives():
    """Of columns with few values every value has its bin, alone and in pairs."""
    rng = np.random.default_rng(3)
    schema = Schema(tuple(Column(name, Kind.NOMINAL, Role.KEY) for name in "xyz"))
    frames = [pl.DataFrame({name: rng.choice(list("klm"), n) for name in "xyz"}) for n in (30, 20, 40)]
    tables = [Table(frame, schema) for frame in frames]
    run = Run(seed=1)
    sides = sides_of(
        Evidence(tables[0], Release.of(tables[2]), resources={"control": tables[1]}), ("x", "y", "z"), 99, run
    )
    arena = arena_of(sides.known, tables[2], ("x", "y", "z"), sides.order)
    case = MembershipCase.of(sides, arena, run.rng("reference"))
    found = look_for_members(case, ("column-histograms", "pair-histograms"), run, "test")
    known, released = frames[0].rows() + frames[1].rows(), frames[2].rows()
    for name, size in (("column-histograms", 1), ("pair-histograms", 2)):
        for place, row in enumerate(case.rows):
            reference, expected = [known[each] for each in case.references[case.half_of_row[place]]], 0.0
            for columns in combinations(range(3), size):
                domain = [()]
                for _ in columns:
                    domain = [(*each, value) for each in domain for value in ["k", "l", "m", None]]
                mine = tuple(known[row][each] for each in columns)
                for sign, records in ((1, released), (-1, reference)):
                    values = [tuple(record[each] for each in columns) for record in records]
                    expected += sign * log_shares(values, domain)[mine]
            assert found[name][place] == pytest.approx(expected)


def test_thresholds_and_choice_by_hand():
    assert _threshold(np.array([0.0, 0.1, 0.5]), np.array([0.3, 0.4, 0.6])) == (pytest.approx(2 / 3), 0.1)
    assert _threshold(np.array([2.0, 3.0]), np.array([0.0, 1.0])) == (0.0, -np.inf)
    rng = np.random.default_rng(1)
    sees, blind = (np.column_stack((np.ones(n), np.full(n, value))) for n, value in ((20, 0.0), (10, 1.0)))
    trial, auc, chosen, largest = choose_and_test(sees, blind, rng)
    assert (trial.rate, trial.other_rate, auc, chosen, largest) == (1.0, 0.0, 1.0, [1, 1], 1.0)
    assert p_value_of_best(sees, blind, rng) == 1 / 200
    trial, auc, *_ = choose_and_test(np.ones((20, 2)), np.ones((10, 2)), rng)
    assert (trial.rate, trial.other_rate, auc) == (0.0, 0.0, 0.5)
    assert p_value_of_best(np.ones((20, 2)), np.ones((10, 2)), rng) == 1


def test_the_best_of_permutations_is_what_all_of_them_give():
    """Three members and three strangers can be dealt in twenty ways."""
    rng = np.random.default_rng(5)
    looks = rng.integers(0, 4, (6, 3)) * 1.0

    def largest(members):
        others = [each for each in range(6) if each not in members]
        gains = [
            np.mean(looks[list(members), test] <= limit) - np.mean(looks[others, test] <= limit)
            for test in range(3)
            for limit in looks[:, test]
        ]
        return max(gains)

    exact = np.mean([largest(dealt) >= largest((0, 1, 2)) - 1e-9 for dealt in combinations(range(6), 3)])
    found = np.mean([p_value_of_best(looks[:3], looks[3:], np.random.default_rng(i)) for i in range(20)])
    assert found == pytest.approx(exact, abs=0.03)


# --------------------------------------------------------------------------------------------- the worst of all


@pytest.mark.parametrize("share", [0.2, 0.6])
def test_of_planted_copies_the_worst_finds_what_the_best_single_test_finds(share):
    original, control = people(300, 1), people(200, 2)
    release = with_copies(original, share, 3)
    scores = {test: scored(test, original, release, control) for test in ("worst", *TESTS)}
    worst = scores["worst"]
    assert worst.interval[1] >= max(score.value for score in scores.values())
    assert worst.value > share - 0.15
    assert worst.details["tests"] == len(TESTS) >= 10
    assert worst.details["p_value"] <= 0.01
    assert worst.details["attack"].split(" and ")[0] in TESTS


def test_values_that_are_kept_give_people_away_though_no_record_is_near():
    """Each column is shuffled by itself: no distance sees that, but numbers of many digits are still there."""
    rng = np.random.default_rng(1)
    schema = Schema(tuple(Column(name, Kind.CONTINUOUS, Role.KEY) for name in "xyz"))
    original, control = (
        Table(pl.DataFrame(rng.normal(size=(200, 3)), schema=list("xyz")), schema) for _ in "12"
    )
    mixed = original.frame.with_columns(pl.col(name).shuffle(seed=place) for place, name in enumerate("xyz"))
    shuffled = Table(mixed, schema)
    assert scored("distance", original, shuffled, control).value < 0.3
    found = scored("worst", original, shuffled, control)
    assert (found.value, found.details["attack"]) == (1, "rare-values")


def test_a_single_test_tells_its_name_and_whom_it_attacked():
    original, control = people(80, 1), people(60, 2)
    score = scored("distance", original, with_copies(original, 0.5, 3), control)
    assert (score.details["attack"], score.details["tests"]) == ("distance", 1)
    assert (score.details["queries"], score.details["control_queries"]) == (80, 60)


def test_generalised_releases_are_tested_by_all():
    original, control = people(150, 1, holes=0), people(100, 2, holes=0)
    release = Recipe((Step(GlobalRecoding(k=5), NAMES),)).apply(original, Run(seed=1))
    assert release.table.is_generalised(*release.table.names)
    for test in ("worst", *TESTS):
        score = scored(test, original, release, control)
        assert score.status is Status.APPROXIMATE
        assert 0 <= score.interval[0] <= score.value <= score.interval[1] <= 1


# ------------------------------------------------------------------------------------------------- false alarms


def persons(n, records, seed):
    """Persons with records that have little in common."""
    rng = np.random.default_rng(seed)
    table = people(n * records, seed)
    own = pl.Series("a", np.repeat(rng.integers(0, 15, n) * 1.0, records))
    who = pl.Series("who", np.repeat(1000 * seed + np.arange(n), records))
    schema = Schema((Column("who", Kind.NOMINAL, Role.PERSON), *SCHEMA.columns))
    return Table(table.frame.with_columns(own, who).select(schema.names), schema)


def false_alarms(draws, sizes, *, several=False):
    alarms = []
    for draw in range(draws):
        if several:
            original, released, control = (persons(n, 3, 1 + 3 * draw + i) for i, n in enumerate(sizes))
            released = released.select(NAMES)
        else:
            original, released, control = (people(n, 3 * draw + i) for i, n in enumerate(sizes))
        score = scored("worst", original, released, control, seed=draw)
        alarms.append((score.details.get("p_value", 1.0) <= 0.05, (score.interval or (0.0,))[0] > 0))
    return np.mean(alarms, axis=0)


def test_releases_of_others_raise_few_alarms():
    assert (false_alarms(30, (60, 60, 40)) <= 4 / 30).all()


@pytest.mark.slow
@pytest.mark.parametrize("several", [False, True])
def test_of_releases_of_others_one_in_twenty_raises_an_alarm(several):
    by_p_value, by_interval = false_alarms(1000, (100, 100, 80), several=several)
    assert 0.04 <= by_p_value <= 0.06
    assert by_interval <= 0.06


# ------------------------------------------------------------------------------------------------- odd tables


@examples(10)
@given(st.integers(0, 10_000), st.booleans(), st.sampled_from([0.0, 0.4, 1.0]))
def test_persons_missing_values_and_the_order_of_the_file(seed, several, holes):
    rng = np.random.default_rng(seed)
    if several:
        original, control = persons(20, 3, seed + 1), persons(15, 3, seed + 2)
    else:
        original, control = people(40, seed, holes=holes), people(30, seed + 1, holes=holes)
    released = original.select(NAMES)
    order = rng.permutation(len(released))
    one, other = (scored("worst", original, each, control) for each in (released, released.take(order)))
    assert one == other
    assert 0 <= one.interval[0] <= one.value <= one.interval[1] <= 1
    assert one.details["tests"] == len(TESTS) * (1 + several)
    assert one.details["queries"] == (20 if several else 40)
    assert one.value > 0.5 or holes
