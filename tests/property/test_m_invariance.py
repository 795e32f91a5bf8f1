"""m-invariant releases under inserts, deletes and changes: what a reader of all of them is left with."""

from collections import Counter, defaultdict
from dataclasses import replace
from itertools import combinations
from math import prod

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp

from effort import examples
from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.randomness import ByPerson, Series, series_secret
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.core.waves import Waves
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.datasets import patients
from sfumato.errors import DataError, RefusedError, UnreachableError
from sfumato.methods._signatures import Division, plan_filling
from sfumato.methods.m_invariance import MInvariantBuckets
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.risk.counterfeits import CounterfeitInference
from sfumato.risk.intersection import IntersectionRisk
from sfumato.risk.invariance import MInvariance

SCHEMA = Schema(
    (
        Column("who", Kind.NOMINAL, Role.PERSON),
        Column("age", Kind.CONTINUOUS, Role.KEY),
        Column("ill", Kind.NOMINAL, Role.SENSITIVE),
    )
)
ILLS = [f"ill {number}" for number in range(8)]


def register(people, schema=SCHEMA):
    frame = pl.DataFrame(
        {"who": list(people), "age": [20 + who % 40 for who in people], "ill": list(people.values())},
        schema={"who": pl.Int64, "age": pl.Int64, "ill": pl.String},
    )
    return Table(frame, schema)


def published(waves, m, **more):
    """Release one state of a register after the other, handing on what the trails would."""
    recipe, kept, made = Recipe((Step(MInvariantBuckets(m=m, **more), ("age",)),)), {}, []
    for number, people in enumerate(waves):
        table = register(people)
        run = Run(randomness=ByPerson(number, series=Series(series_secret(7), previous_fits=kept)))
        release = recipe.apply(table, run)
        for each in release.provenance[0].byproducts.private_artifacts:
            kept = {(recipe.step_identities[0], each.stratum): dict(each.tables)}
        made.append((release, table))
    return made


def signature_of(release, who):
    """The values of a person's bucket, as anyone reads them in the two tables."""
    qit, st_ = release.tables["qit"].frame, release.tables["st"].frame
    bucket = qit.filter(pl.col("who") == who)["bucket"][0]
    return st_.filter(pl.col("bucket") == bucket)["ill"].to_list()


@st.composite
def histories(draw):
    """States of a register: people come, go and come back, and some values change."""
    people = {who: draw(st.sampled_from(ILLS)) for who in range(draw(st.integers(2, 20)))}
    states = [dict(people)]
    new = 100
    for _ in range(draw(st.integers(1, 3))):
        gone = draw(st.sets(st.sampled_from(sorted(people)), max_size=len(people) - 1))
        people = {who: ill for who, ill in people.items() if who not in gone}
        for who in draw(st.sets(st.sampled_from(sorted(people)), max_size=3)):
            people[who] = draw(st.sampled_from(ILLS))
        for back in draw(st.sets(st.sampled_from(sorted(gone) or [0]), max_size=2)):
            people[back] = draw(st.sampled_from(ILLS))
        for _ in range(draw(st.integers(0, 8))):
            people[new] = draw(st.sampled_from(ILLS))
            new += 1
        states.append(dict(people))
    return states


@given(histories(), st.sampled_from([2, 3]))
@examples(150)
def test_every_series_is_m_invariant(states, m):
    try:
        made = published(states, m)
    except UnreachableError:
        return  # too few values for those that have changed
    seen = {}
    for (release, _), people in zip(made, states, strict=True):
        qit, values = release.tables["qit"].frame, release.tables["st"].frame
        assert sorted(qit["who"].drop_nulls()) == sorted(people)
        assert qit.height == values.height
        false = qit.filter(pl.col("who").is_null())
        assert false.select("age").null_count().item() == false.height
        assert release.figures["counterfeits"] == false.height
        for (bucket,), group in values.group_by("bucket"):
            assert group["ill"].n_unique() == group.height >= m
            own = qit.filter(pl.col("bucket") == bucket)
            assert own["counterfeits"].unique().to_list() == [own["who"].null_count()]
        for who, ill in people.items():
            signature = signature_of(release, who)
            assert ill in signature
            for before in seen.setdefault(who, []):
                assert set(before) == set(signature) or not set(before) & set(signature)
            seen[who].append(signature)


@given(histories())
@examples(60)
def test_the_measures_say_so_too(states):
    try:
        made = published(states, 2)
    except UnreachableError:
        return
    *earlier, (last, table) = made
    evidence = Evidence(
        table, last, resources={"series": Waves.of([Evidence(own, one) for one, own in earlier])}
    )
    assert MInvariance().score(evidence, Run(seed=1)).value >= 2
    assert IntersectionRisk().score(evidence, Run(seed=1)).value == 0


def test_the_example_of_the_paper():
    """Xiao and Tao, tables 1 and 2: Alice, Andy, Helen, Ken and Paul leave, Emily, Mary, Ray, Tom and Vince come."""
    first = dict(
        enumerate(
            [
                "dyspepsia",
                "bronchitis",
                "flu",
                "gastritis",
                "gastritis",
                "flu",
                "gastritis",
                "flu",
                "dyspepsia",
                "gastritis",
                "flu",
            ]
        )
    )
    second = {who: first[who] for who in (0, 3, 4, 6, 7, 10)}
    second |= {20: "flu", 21: "dyspepsia", 22: "dyspepsia", 23: "gastritis", 24: "flu"}
    made = published([first, second], 2)
    assert made[0][0].figures["counterfeits"] <= 2
    for who in first.keys() & second.keys():
        assert set(signature_of(made[0][0], who)) == set(signature_of(made[1][0], who))


def test_a_balanced_register_needs_no_counterfeit():
    people = {who: ILLS[who % 4] for who in range(40)}
    (release, _), (again, _) = published([people, people], 4)
    assert release.figures["counterfeits"] == again.figures["counterfeits"] == 0
    assert release.layout.sources


def test_who_leaves_alone_is_replaced_by_a_counterfeit():
    people = {1: "a", 2: "b"}
    (_, _), (release, _) = published([people, {1: "a"}], 2)
    assert signature_of(release, 1) in (["a", "b"], ["b", "a"])
    assert release.provenance[0].notes == (
        "1 value is a counterfeit of no person, which are the fewest there can be: ignore the rows without keys",
    )
    assert release.source_rows.tolist().count(-1) == 1


@given(st.integers(0, 2**32), st.integers(2, 4), st.integers(8, 14))
@examples(60)
def test_a_value_that_has_changed_could_have_been_any_of_its_signature(seed, m, n_values):
    """Whoever knows all but one person, and every rule, finds each value of the new signature as likely."""
    old = tuple(range(m))

    def fresh(value):
        values = np.array([value, *range(n_values), *range(n_values)])
        division = Division(m, values, n_values, np.random.default_rng(seed))
        members = division.assign_signatures({0: [old]})
        return next(each for each, own in members.items() if 0 in own.get(value, ()))

    found = {value: fresh(value) for value in range(m, n_values)}
    for value, signature in found.items():
        assert value in signature
        assert len(signature) >= m
        assert not set(signature) & set(old)
        assert {found[other] for other in signature} == {signature}


def test_who_comes_alone_could_have_any_value_of_the_signature():
    """With one person, counterfeits are by lot: over many lots each pair of others is met."""
    met = set()
    for seed in range(200):
        (signature,) = Division(3, np.array([4]), 5, np.random.default_rng(seed)).assign_signatures({})
        met.add(signature)
    assert met == {(0, 1, 4), (0, 2, 4), (0, 3, 4), (1, 2, 4), (1, 3, 4), (2, 3, 4)}


def guessed_right(m, n_values, n_new, seed):
    """A reader who knows the rules and how frequent values were guesses the most frequent one of a bucket.

    Of the new people who stand beside counterfeits: how many that is right for, and how many they are.
    """
    rng = np.random.default_rng(seed)
    chances = np.arange(1, n_values + 1) ** -0.7
    old, new = (rng.choice(n_values, n, p=chances / chances.sum()) for n in (300, n_new))
    first = Division(m, old, n_values, np.random.default_rng([seed, 1])).assign_signatures({})
    before = {row: [each] for each, own in first.items() for rows in own.values() for row in rows if row >= 0}
    often = np.bincount(old, minlength=n_values)
    right = people = 0
    division = Division(m, np.append(old, new), n_values, np.random.default_rng([seed, 2]))
    for signature, own in division.assign_signatures(before).items():
        assert len({len(rows) for rows in own.values()}) == 1
        guess = max(signature, key=lambda value: often[value])
        real = {value: [row for row in rows if row >= 0] for value, rows in own.items()}
        fewest = min(map(len, real.values()))  # the buckets from there on have counterfeits
        for value, rows in real.items():
            asked = sum(row >= 300 for row in rows[fewest:])
            right, people = right + asked * (value == guess), people + asked
    return right, people


@pytest.mark.parametrize(("m", "n_values", "n_new"), [(3, 9, 1), (3, 9, 3), (3, 9, 10), (2, 8, 2)])
def test_new_people_beside_counterfeits_are_guessed_no_better_than_by_lot(m, n_values, n_new):
    """By the most frequent value .48, .54, .51 and .71 of them were, where their value was filled up first."""
    right, people = np.sum([guessed_right(m, n_values, n_new, seed) for seed in range(150)], axis=0)
    assert people >= 100
    assert right <= people / m + 2 * np.sqrt(people / m)


def test_a_value_that_nobody_else_has_is_not_put_among_counterfeits():
    """Counterfeits are of known values: a new one beside them is that of the only person there, or of both."""
    people = {who: ILLS[who % 6] for who in range(12)}
    same = [who for who in people if who % 6 == 0]  # of one value, and of one past
    for changed in ({0: "gout"}, {50: "gout"}, dict.fromkeys(same, "gout")):
        who = "1 person with a new value" if len(changed) == 1 else f"{len(changed)} people with new values"
        with pytest.raises(UnreachableError, match=f"got: {who} that no one else has") as caught:
            published([people, people | changed], 2)
        assert "gout" not in str(caught.value)


@pytest.mark.parametrize("changed", [{0: "gout"}, {0: "gout", 6: "gout"}])
def test_the_measure_sees_a_value_that_nobody_else_has_among_counterfeits(monkeypatch, changed):
    people = {who: ILLS[who % 6] for who in range(12)}
    monkeypatch.setattr(MInvariantBuckets, "_require_known_values", lambda *_: None)
    (first, before), (last, table) = published([people, people | changed], 2)
    series = {"series": Waves.of([Evidence(before, first)])}
    score = IntersectionRisk().score(Evidence(table, last, resources=series), Run(seed=1))
    assert np.flatnonzero(score.by_record == 1).tolist() == list(changed)
    assert score.value == pytest.approx(len(changed) / 12)


def fewest_by_enumeration(m, n_values, held, new):
    """The fewest counterfeits over all signatures and numbers of buckets: an integer programme solved exactly."""
    signatures = [each for size in range(m, n_values + 1) for each in combinations(range(n_values), size)]
    cost = np.array([len(each) for each in signatures])
    least = [max(held.get(each, {}).values(), default=0) for each in signatures]
    has = np.array([[value in each for each in signatures] for value in range(n_values)], dtype=float)
    taken = [sum(own.get(value, 0) for own in held.values()) for value in range(n_values)]
    found = milp(
        cost,
        constraints=LinearConstraint(has, np.add(taken, new), np.inf),
        bounds=Bounds(least, np.inf),
        integrality=np.ones(len(cost)),
    )
    assert found.success
    return round(found.fun) - sum(taken) - sum(new)


@st.composite
def divisions(draw):
    """People who have signatures, and new ones, of few values."""
    m, n_values = draw(st.sampled_from([(2, 3), (2, 5), (3, 4), (3, 5)]))
    every = [each for size in (m, m + 1) for each in combinations(range(n_values), size)]
    held = {}
    for signature in draw(st.sets(st.sampled_from(every), max_size=3)):
        own = {value: draw(st.integers(0, 4)) for value in signature}
        if any(own.values()):
            held[signature] = own
    return m, n_values, held, [draw(st.integers(0, 30)) for _ in range(n_values)]


@given(divisions(), st.integers(0, 2**32))
@examples(200)
def test_the_number_of_counterfeits_is_proved_to_be_the_fewest(state, seed):
    m, n_values, held, new = state
    people = [
        (value, signature) for signature, own in held.items() for value, n in own.items() for _ in range(n)
    ]
    values = np.array(
        [value for value, _ in people] + np.repeat(np.arange(n_values), new).tolist(), dtype=np.int64
    )
    before = {row: [signature] for row, (_, signature) in enumerate(people)}
    division = Division(m, values, n_values, np.random.default_rng(seed))
    members = division.assign_signatures(before)
    made = sum(row < 0 for own in members.values() for rows in own.values() for row in rows)
    fewest = fewest_by_enumeration(m, n_values, held, new)
    assert division.fewest == fewest <= made
    gaps = np.zeros(n_values, dtype=np.int64)
    for signature, own in held.items():
        np.add.at(gaps, list(signature), [max(own.values()) - own.get(value, 0) for value in signature])
    filled, _ = plan_filling(np.array(new), gaps, m)
    assert (filled >= 0).all()
    assert (filled <= np.minimum(new, gaps)).all()
    left = new - filled
    if sum(new) >= 10 * m and m * left.max(initial=0) <= left.sum():  # nobody is put among others by lot
        assert made == fewest
    assert sorted(row for own in members.values() for rows in own.values() for row in rows if row >= 0) == list(range(len(values)))  # fmt: skip


def test_values_that_are_equally_frequent_fill_gaps_together():
    """One by one none could be taken: the other would be too frequent among those who are left."""
    held = [(0, (0, 1))] * 10 + [(1, (1, 2))] * 10
    values = np.array([value for value, _ in held] + [1] * 15 + [2] * 15)
    before = {row: [signature] for row, (_, signature) in enumerate(held)}
    division = Division(2, values, 3, np.random.default_rng(1))
    members = division.assign_signatures(before)
    assert (
        division.fewest
        == sum(row < 0 for own in members.values() for rows in own.values() for row in rows)
        == 0
    )


@pytest.mark.parametrize(
    ("m", "digits", "new", "counterfeits"),
    [(3, 5, 100, [0, 64, 128]), (3, 5, 300, [0, 146, 190]), (5, 1, 300, [10, 0, 65])],
)
def test_three_waves_of_patients_have_the_fewest_counterfeits(m, digits, new, counterfeits):
    """As many leave as are new; of diagnoses as they are coded, and of their chapters."""
    people = dict(enumerate(patients(1000 + 2 * new).frame["diag_p"].str.slice(0, digits)))
    waves = [{who: people[who] for who in range(turn * new, turn * new + 1000)} for turn in range(3)]
    figures = [release.figures for release, _ in published(waves, m)]
    assert [each["counterfeits"] for each in figures] == counterfeits
    assert [each["counterfeits_needed"] for each in figures] == counterfeits


def test_near_keys_are_together():
    people = {who: ILLS[who % 2] for who in range(40)}
    ((release, _),) = published([people], 2)
    spans = (
        release.tables["qit"].frame.group_by("bucket").agg(pl.col("age").max() - pl.col("age").min())["age"]
    )
    assert spans.max() <= 1


def test_a_missing_value_is_refused_or_one_of_its_own():
    people = {1: "a", 2: None, 3: "a", 4: "b"}
    with pytest.raises(DataError, match="1 missing"):
        published([people], 2)
    (release, _), (again, _) = published([people, {2: None, 4: "b"}], 2, missing="category")
    assert None in signature_of(release, 2)
    assert set(signature_of(release, 2)) == set(signature_of(again, 2))


def test_numbers_and_dates_of_earlier_signatures_come_back():
    schema = SCHEMA.replace(Column("ill", Kind.DATE, Role.SENSITIVE))
    first = register({1: "2001-01-01", 2: "2002-02-02"})
    first = Table(first.frame.with_columns(pl.col("ill").str.to_date()), schema)
    recipe = Recipe((Step(MInvariantBuckets(m=2), ("age",)),))
    one = recipe.apply(first, Run(randomness=ByPerson(1, series=Series(series_secret(1)))))
    kept = {(recipe.step_identities[0], ()): dict(one.provenance[0].byproducts.private_artifacts[0].tables)}
    two = recipe.apply(
        first.take(pl.Series([0]).to_numpy()),
        Run(randomness=ByPerson(2, series=Series(series_secret(1), previous_fits=kept))),
    )
    assert two.tables["st"].frame["ill"].sort().to_list() == first.frame["ill"].sort().to_list()


def test_truth_values_are_released_like_any_other():
    schema = SCHEMA.replace(Column("ill", Kind.NOMINAL, Role.SENSITIVE))
    ill = [True, False, True, True, False]
    table = Table(pl.DataFrame({"who": range(5), "age": range(20, 25), "ill": ill}), schema)
    release = MInvariantBuckets(m=2).apply(table.aimed_at(("age",)), Run(seed=1))
    shown = release.tables["st"].frame
    assert shown["ill"].dtype == pl.Boolean
    assert all(sorted(group["ill"]) == [False, True] for _, group in shown.group_by("bucket"))


def test_what_cannot_be_is_refused():
    with pytest.raises(UnreachableError, match="at least 3 values"):
        published([{1: "a", 2: "b"}], 3)
    with pytest.raises(UnreachableError, match="never had, got: 0"):
        published([{1: "a", 2: "b"}, {1: "c", 2: "b"}], 2)
    weighed = Schema((*SCHEMA.columns, Column("weight", Kind.CONTINUOUS, Role.WEIGHT)))
    table = Table(register({1: "a", 2: "b"}).frame.with_columns(weight=pl.lit(2.0)), weighed)
    with pytest.raises(RefusedError, match="weights"):
        MInvariantBuckets(m=2).apply(table.aimed_at(("age",)), Run(seed=1))
    twice = pl.concat([register({1: "a", 2: "b"}).frame] * 2)
    with pytest.raises(RefusedError, match="one record per person, got: 2 more"):
        MInvariantBuckets(m=2).apply(Table(twice, SCHEMA).aimed_at(("age",)), Run(seed=1))


def test_without_a_series_the_first_release_is_kept_for_one():
    table = register({who: ILLS[who % 3] for who in range(9)})
    release = MInvariantBuckets(m=3).apply(table.aimed_at(("age",)), Run(seed=1))
    words = release.byproducts.private_artifacts[0].tables["persons"].frame["person"].to_list()
    series = Series(series_secret(1))
    assert words == [f"{word:016x}" for word in series.identity.persons(table).tolist()]


def chances_in(release, who, frequency):
    """How probable each value of a person's bucket is, over all sets of values that its people may have."""
    qit, st_ = release.tables["qit"].frame, release.tables["st"].frame
    bucket = qit.filter(pl.col("who") == who)["bucket"][0]
    values = st_.filter(pl.col("bucket") == bucket)["ill"].to_list()
    n_real = qit.filter(pl.col("bucket") == bucket)["who"].drop_nulls().len()
    sets = {each: prod(frequency[value] for value in each) for each in combinations(values, n_real)}
    total = sum(sets.values()) * n_real
    return n_real < len(values), {
        value: sum(chance for each, chance in sets.items() if value in each) / total for value in values
    }


def inferred_by_brute_force(made, people):
    """The share of people beside counterfeits in some release whose most probable value is theirs."""
    counts = Counter(people.values())
    frequency = {value: max(counts[value], 1e-6) / len(people) for value in ILLS}
    hits = []
    for who, ill in people.items():
        beside, now = chances_in(made[-1][0], who, frequency)
        scores = dict(now)
        for release, table in made[:-1]:
            if who in table.frame["who"].to_list():
                also, then = chances_in(release, who, frequency)
                if set(then) == set(now):
                    beside |= also
                    scores = {value: scores[value] * then[value] / frequency[value] for value in scores}
        if beside:
            best = [value for value in scores if scores[value] >= max(scores.values()) * (1 - 1e-9)]
            hits.append((ill in best) / len(best))
    return (sum(hits) / len(hits) if hits else 0.0), len(hits)


@given(histories(), st.sampled_from([2, 3]))
@examples(60)
def test_inference_among_counterfeits_by_all_sets(states, m):
    try:
        made = published(states, m)
    except UnreachableError:
        return
    *earlier, (last, table) = made
    series = Waves.of([Evidence(own, one) for one, own in earlier])
    score = CounterfeitInference().score(Evidence(table, last, resources={"series": series}), Run(seed=1))
    expected, people = inferred_by_brute_force(made, states[-1])
    assert score.details["persons"] == people
    assert score.value == pytest.approx(expected)


def chances_in_area(rows, ill, frequency):
    """Whether some of an area are nobody, and how probable each value is for its people; None if twice there."""
    values, n_real = [row[2] for row in rows], sum(row[0] is not None for row in rows)
    if n_real == len(values):
        return False, {value: values.count(value) / n_real for value in values}
    if len(set(values)) < len(values):
        return None
    sets = {each: prod(frequency[value] for value in each) for each in combinations(values, n_real)}
    total = sum(sets.values()) * n_real
    return True, {v: sum(chance for each, chance in sets.items() if v in each) / total for v in values}


def inferred_in_areas(waves):
    """The same share where areas are classes and may break m-invariance; None if nobody can say."""
    now = waves[-1]
    ills = Counter(ill for who, _, ill in now if who is not None)
    frequency = defaultdict(lambda: 1e-6 / ills.total()) | {v: n / ills.total() for v, n in ills.items()}
    for rows in waves:
        for area in {row[1] for row in rows}:
            inside = [row for row in rows if row[1] == area]
            if any(row[0] is not None for row in inside) and chances_in_area(inside, 0, frequency) is None:
                return None
    hits = []
    for who, _, ill in now:
        beside, scores = False, None
        for rows in reversed(waves if who is not None else []):
            for area in [row[1] for row in rows if row[0] == who]:
                also, then = chances_in_area([row for row in rows if row[1] == area], ill, frequency)
                if scores is None or ill in then:
                    scores = {v: frequency[v] for v in then} if scores is None else scores
                    scores = {v: scores[v] * then.get(v, 0.0) / frequency[v] for v in scores}
                    beside |= also
        if beside:
            best = [value for value in scores if scores[value] >= max(scores.values()) * (1 - 1e-9)]
            hits.append((ill in best) / len(best))
    return (sum(hits) / len(hits) if hits else 0.0), len(hits)


@st.composite
def waves_of_areas(draw):
    """Some of nine people in two areas, who may fall ill, and rows of nobody; values are seldom twice."""
    words = [*ILLS[:3], None]
    ills = draw(st.lists(st.sampled_from(words), min_size=9, max_size=9))
    waves = []
    for _ in range(draw(st.integers(1, 3))):
        rows, often = [], draw(st.integers(0, 9)) == 0
        for who, usual in enumerate(ills):
            area, ill = draw(st.sampled_from("nns")), draw(st.sampled_from([usual, usual, usual, *words]))
            if often or (area, ill) not in {row[1:] for row in rows}:
                rows.append((who, area, ill))
        free = [
            (None, area, ill) for area in "ns" for ill in words if (area, ill) not in {r[1:] for r in rows}
        ]
        waves.append(rows + [row for row in free if draw(st.booleans())])
    return waves


@given(waves_of_areas())
@examples(200)
def test_inference_where_releases_leave_fewer_values_than_one_shows(waves):
    """Values that only some releases have are ruled out, also in a series that is not m-invariant."""
    schema = Schema(
        (
            Column("who", Kind.NOMINAL, Role.PERSON),
            Column("area", Kind.NOMINAL, Role.KEY),
            Column("ill", Kind.NOMINAL, Role.SENSITIVE),
        )
    )
    made = []
    for rows in waves:
        shown = Table(
            pl.DataFrame(rows, {"who": pl.Int64, "area": pl.String, "ill": pl.String}, orient="row"), schema
        )
        real = [place for place, row in enumerate(rows) if row[0] is not None]
        sources = np.full(len(rows), -1)
        sources[real] = np.arange(len(real))
        made.append(Evidence(shown.take(np.array(real)), Release.of(shown, source_rows=sources)))
    evidence = replace(made[-1], resources={"series": Waves.of(made[:-1])})
    score, expected = CounterfeitInference().score(evidence, Run(seed=1)), inferred_in_areas(waves)
    if expected is None:
        assert score.status is Status.NOT_ESTIMABLE
    else:
        assert score.details["persons"] == expected[1]
        assert score.value == pytest.approx(expected[0])


def test_a_frequent_value_is_inferred_though_the_release_is_m_invariant():
    """m-invariance is met, and says one in three; who knows that most are healthy is right for most."""
    people = {who: ILLS[0] if who % 10 else ILLS[1 + who // 10 % 4] for who in range(100)}
    ((release, table),) = published([people], 3)
    evidence = Evidence(table, release, resources={"series": Waves.of([])})
    assert MInvariance().score(evidence, Run(seed=1)).value == 3
    score = CounterfeitInference().score(evidence, Run(seed=1))
    assert score.value > 0.8
    assert score.baseline == pytest.approx(1 / 3)
    assert score.interval[0] > 1 / 3


def test_counterfeits_are_spread_evenly_over_the_buckets_of_a_signature():
    people = {who: ILLS[0] if who < 30 else ILLS[1] if who < 45 else ILLS[2] for who in range(50)}
    ((release, _),) = published([people], 3)
    values = release.tables["st"].frame.group_by("bucket").agg(pl.col("ill").sort().str.join(","))
    real = release.tables["qit"].frame.group_by("bucket").agg(pl.col("who").count())
    for _, group in values.join(real, on="bucket").group_by("ill"):
        assert group["who"].max() - group["who"].min() <= 1
