"""Measures of several releases against brute force: sets of candidates, signatures, means, person by person."""

import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.origin import Origin
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.core.waves import Waves
from sfumato.data.generalised.intervals import intervals
from sfumato.data.generalised.nodes import Nodes
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.methods import Anatomy
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.risk.averaging import AveragingRisk
from sfumato.risk.intersection import IntersectionRisk
from sfumato.risk.invariance import MInvariance
from sfumato.risk.linkage import DistanceLinkage

SCHEMA = Schema(
    (
        Column("who", Kind.NOMINAL, Role.PERSON),
        Column("area", Kind.NOMINAL, Role.KEY),
        Column("age", Kind.CONTINUOUS, Role.KEY),
        Column("ill", Kind.NOMINAL, Role.SENSITIVE),
    )
)
RUN = Run(seed=1)


def evidence(rows):
    """A release as it is, of rows of (who, area, age, ill)."""
    table = Table(
        pl.DataFrame(rows, schema=["who", "area", "age", "ill"], orient="row", strict=False), SCHEMA
    )
    table = replace(table, frame=table.frame.cast({"age": pl.Float64, "ill": pl.String, "area": pl.String}))
    return Evidence(table, Release.unchanged(table))


def in_series(waves, **more):
    *earlier, last = [evidence(rows) for rows in waves]
    return replace(last, resources={"series": Waves.of(earlier, **more)})


@st.composite
def waves(draw, *, holes=True):
    """Releases of one record of each person, who come, go, move and fall ill."""
    ills = ["flu", "gout", "cold", None] if holes else ["flu", "gout", "cold"]
    found = []
    for _ in range(draw(st.integers(1, 4))):
        who = draw(st.lists(st.integers(0, 9), unique=True, min_size=1, max_size=8))
        found.append(
            [
                (
                    each,
                    draw(st.sampled_from(["n", "s"])),
                    draw(st.sampled_from([20.0, 30.0, None])),
                    draw(st.sampled_from(ills)),
                )
                for each in who
            ]
        )
    return found


def mates(rows, who):
    """The rows of the class of a person; None if they are not there."""
    own = [row for row in rows if row[0] == who]
    return [row for row in rows if row[1:3] == own[0][1:3]] if own else None


def values_of(rows, who):
    """The values that a release shows in the class of a person; none if they are not there."""
    return {row[3] for row in mates(rows, who) or [] if row[3] is not None}


def left(releases, who, leaving=()):
    """How many values all releases leave, from the last back; infinite if none tells."""
    candidates, going, last = None, True, values_of(releases[-1], who)
    for number, rows in reversed(list(enumerate(releases))):
        values = values_of(rows, who)
        if not values:
            continue
        if candidates is None:
            candidates = values
        elif number in leaving and last and values != last:
            candidates, going = candidates - values or candidates, False
        elif going and candidates & values:
            candidates = candidates & values
        else:
            going = False
    return math.inf if candidates is None else len(candidates)


def left_by(releases):
    """The releases whose values most people have left who are among others in the last."""
    found = []
    for number, rows in enumerate(releases[:-1]):
        pairs = [(own, values_of(rows, who), values_of(releases[-1], who)) for who, _, _, own in releases[-1]]
        gone = [own not in old for own, old, new in pairs if own is not None and old and old != new]
        if 2 * sum(gone) > len(gone):
            found.append(number)
    return found


@given(waves(), st.integers(2, 4))
@examples(300)
def test_candidate_values_are_what_all_releases_leave(releases, k):
    score = IntersectionRisk(k=k).score(in_series(releases), RUN)
    leaving = left_by(releases)
    counts = [min(left(releases, row[0]), left(releases, row[0], leaving)) for row in releases[-1]]
    alone = [left(releases[-1:], row[0]) for row in releases[-1]]
    assert score.status is Status.OK
    assert score.value == pytest.approx(np.mean([count < k for count in counts]))
    assert score.baseline == pytest.approx(np.mean([count < k for count in alone]))
    np.testing.assert_allclose(score.by_record, [1 / count for count in counts])


@given(waves())
@examples(200)
def test_candidate_persons_are_those_alike_in_every_release(releases):
    score = IntersectionRisk(candidates="persons").score(in_series(releases), RUN)
    everyone = {row[0] for rows in releases for row in rows}

    def trace(who):
        return [sorted(row[0] for row in mates(rows, who)) if mates(rows, who) else None for rows in releases]

    counts = [sum(trace(other) == trace(row[0]) for other in everyone) for row in releases[-1]]
    assert score.value == pytest.approx(np.mean([count < 2 for count in counts]))


def m_of(releases):
    """The largest m that holds, by the definition."""
    least = math.inf
    for rows in releases:
        for row in rows:
            values = [each[3] for each in mates(rows, row[0])]
            least = min(least, len(values) if len(set(values)) == len(values) else 1)
    for who in {row[0] for rows in releases for row in rows}:
        signatures = [{each[3] for each in mates(rows, who)} for rows in releases if mates(rows, who)]
        for one in signatures:
            if any(one != other and one & other for other in signatures):
                return 1
    return least


@given(waves())
@examples(300)
def test_the_m_that_holds(releases):
    assert MInvariance().score(in_series(releases), RUN).value == m_of(releases)


@given(st.lists(st.permutations(["flu", "gout", "cold"]), min_size=2, max_size=4), st.booleans())
@examples(50)
def test_an_invariant_series_is_found_to_be(orders, spoilt):
    """Classes of three people who keep their values; spoilt, the last gets a fourth who breaks a signature."""
    releases = [[(who, "n", 20.0, ill) for who, ill in enumerate(["flu", "gout", "cold"])] for _ in orders]
    if spoilt:
        releases[-1] = [*releases[-1], (7, "n", 20.0, "fever")]
    assert MInvariance().score(in_series(releases), RUN).value == (1 if spoilt else 3)


def test_a_signature_that_is_wholly_new_says_that_the_value_has_changed():
    first = [(1, "n", 20.0, "flu"), (2, "n", 20.0, "gout")]
    second = [(1, "n", 20.0, "cold"), (3, "n", 20.0, "fever")]
    assert MInvariance().score(in_series([first, second]), RUN).value == 2


def test_who_is_among_other_values_has_left_those_before():
    """2 and 3 keep theirs; 1 is left with two values that both releases have, but has changed: to cold."""
    stay = [(2, "s", 20.0, "flu"), (3, "s", 20.0, "gout")]
    first = [*stay, (1, "n", 20.0, "flu"), (4, "n", 20.0, "gout"), (5, "n", 20.0, "fever")]
    second = [*stay, (1, "n", 20.0, "cold"), (6, "n", 20.0, "gout"), (7, "n", 20.0, "fever")]
    score = IntersectionRisk().score(in_series([first, second]), RUN)
    assert (1 / score.by_record).tolist() == [2, 2, 1, 3, 3]
    apart = [*stay, (1, "n", 20.0, "cold"), (6, "n", 20.0, "mumps"), (7, "n", 20.0, "lupus")]
    assert (1 / IntersectionRisk().score(in_series([first, apart]), RUN).by_record)[2] == 3
    unchanged = [*stay, (1, "n", 20.0, "gout"), (6, "n", 20.0, "cold"), (7, "n", 20.0, "fever")]
    assert (1 / IntersectionRisk().score(in_series([first, unchanged]), RUN).by_record)[2] == 2


def test_the_order_of_the_records_tells_nothing():
    releases = [[(1, "n", 20.0, "flu"), (2, "n", 20.0, "gout"), (3, "s", 20.0, "flu")] for _ in range(2)]
    turned = [releases[0][::-1], releases[1][1:] + releases[1][:1]]
    for measure in (IntersectionRisk(), MInvariance(), IntersectionRisk(candidates="persons")):
        assert measure.score(in_series(releases), RUN).value == measure.score(in_series(turned), RUN).value


def ranged(values):
    """A release in which a number that is sensitive stands in ranges."""
    schema = SCHEMA.replace(Column("ill", Kind.CONTINUOUS, Role.SENSITIVE))
    rows = [(who, "n", 20.0) for who, *_ in values]
    frame = pl.DataFrame(rows, schema=["who", "area", "age"], orient="row")
    exact = Table(frame.with_columns(pl.Series("ill", [x for _, x, *_ in values])), schema)
    series = intervals([lo for *_, lo, _ in values], [hi for *_, hi in values], name="ill")
    made = exact.with_values("ill", series)
    return Evidence(exact, Release.of(made, source_rows=np.arange(len(values))))


def test_ranges_stand_for_the_values_in_them():
    """30–39 and then 35–49 leave the values from 35 to 39 that somebody has."""
    first = ranged([(1, 36.0, 30.0, 39.0), (2, 31.0, 30.0, 39.0), (3, 38.0, 30.0, 39.0)])
    second = ranged([(1, 36.0, 35.0, 49.0), (4, 48.0, 35.0, 49.0), (5, 41.0, 35.0, 49.0)])
    second = replace(second, resources={"series": Waves.of([first])})
    found = {k: IntersectionRisk(k=k).score(second, RUN) for k in (2, 3)}
    assert 1 / found[2].by_record[0] == 2  # 36 and 38
    assert found[2].value == 0
    assert found[3].value == pytest.approx(1 / 3)
    assert MInvariance().score(second, RUN).status is Status.REFUSED


def test_groups_stand_for_their_members():
    exact = evidence([(1, "n", 20.0, "flu"), (2, "n", 20.0, "gout")])
    nodes = Nodes.of({"fever": ["flu", "cold"], "gout": ["gout"]}, leaves=["flu", "cold", "gout"])
    table = exact.protected.with_nodes("ill", pl.Series(["fever", "gout"]).cast(nodes.dtype), nodes)
    first = Evidence(exact.original, Release.of(table, source_rows=np.arange(2)))
    last = replace(
        evidence([(1, "n", 20.0, "flu"), (3, "n", 20.0, "cold")]), resources={"series": Waves.of([first])}
    )
    assert 1 / IntersectionRisk().score(last, RUN).by_record[0] == 2


def test_buckets_of_values_apart_are_classes():
    """Anatomy deals anew each time: who is in both has the values that both buckets have."""
    rng = np.random.default_rng(4)
    rows = [(who, "n", float(who), str(rng.integers(6))) for who in range(60)]
    made = []
    for seed in (1, 2):
        base = evidence(rows)
        release = Recipe((Step(Anatomy(l=3), ("area", "age")),)).apply(base.original, Run(seed=seed))
        made.append((release, Evidence(base.original, release)))
    last = replace(made[1][1], resources={"series": Waves.of([made[0][1]])})
    expected = []
    for who in range(60):
        sets = []
        for release, _ in made:
            own = release.tables["qit"].frame.filter(pl.col("who") == who)["bucket"][0]
            sets.append(set(release.tables["st"].frame.filter(pl.col("bucket") == own)["ill"]))
        expected.append(len(sets[0] & sets[1]))
    score = IntersectionRisk().score(last, RUN)
    np.testing.assert_allclose(1 / score.by_record, expected)
    assert score.baseline == 0
    assert MInvariance().score(last, RUN).value == 1


def test_another_owners_release_is_one_more():
    mine = evidence([(1, "n", 20.0, "flu"), (2, "n", 20.0, "gout")])
    theirs = evidence([(1, "n", 20.0, "flu"), (9, "n", 20.0, "cold")]).original
    alone = IntersectionRisk(other="clinic").score(replace(mine, resources={"clinic": theirs}), RUN)
    assert (alone.value, alone.baseline) == (0.5, 0.0)
    missing = IntersectionRisk(other="clinic").score(mine, RUN)
    assert missing.status is Status.REFUSED
    assert missing.reason == "`other` of intersection-risk names a resource that is not declared: `clinic`"
    nobody = replace(mine, resources={"clinic": theirs.select(["area"])})
    assert "column of persons" in IntersectionRisk(other="clinic").score(nobody, RUN).reason


@pytest.mark.parametrize("measure", [IntersectionRisk(), MInvariance(), AveragingRisk()])
def test_what_cannot_be_seen_is_refused(measure):
    rows = [(1, "n", 20.0, "flu"), (1, "n", 30.0, "gout"), (2, "n", 20.0, "gout")]
    alone, twice = evidence(rows[1:]), in_series([rows, rows[1:]])
    last = in_series([rows[1:]])
    nobody = replace(last, release=replace(last.release, origin=Origin.unknown()))
    for what in (alone, twice, nobody):
        score = measure.score(what, RUN)
        assert score.status is Status.REFUSED
        assert score.reason
    assert measure.score(in_series([rows[1:], rows[1:]]), RUN).status is Status.OK


def test_a_column_tells_the_records_of_a_person_apart():
    rows = [(1, "n", 20.0, "flu"), (2, "n", 20.0, "gout"), (1, "s", 30.0, "cold"), (3, "s", 30.0, "flu")]
    again = [(1, "s", 30.0, "cold"), (4, "s", 30.0, "gout"), (1, "n", 20.0, "flu"), (2, "n", 20.0, "gout")]
    score = IntersectionRisk().score(in_series([rows, again], record="area"), RUN)
    assert score.value == pytest.approx(1 / 3)  # person 1, by the record that 4 came to
    assert score.details["persons"] == 3


def noisy(original, columns, rows=None):
    made = original
    for name, values in columns.items():
        made = made.with_values(name, pl.Series(name, values))
    rows = np.arange(len(original)) if rows is None else np.asarray(rows)
    return Evidence(original, Release.of(made.take(rows), source_rows=rows))


@given(st.integers(0, 10_000), st.integers(1, 4))
@examples(50)
def test_the_mean_links_what_is_the_mean(seed, releases):
    """The mean and the commonest value of aligned columns, made by hand and linked by the plain measure."""
    rng = np.random.default_rng(seed)
    rows = [(who, "n", float(rng.normal()), "flu") for who in range(12)]
    original = evidence(rows).original
    ages = [np.array(original.frame["age"]) + rng.normal(0, 2, 12) for _ in range(releases)]
    areas = [rng.choice(["n", "s"], 12) for _ in range(releases)]
    made = [
        noisy(original, {"age": age, "area": area}, rng.permutation(12))
        for age, area in zip(ages, areas, strict=True)
    ]
    last = replace(made[-1], resources={"series": Waves.of(made[:-1])})
    score = AveragingRisk().score(last, RUN)
    shown = [[area[i] for area in areas[::-1]] for i in range(12)]
    commonest = [max(own, key=own.count) for own in shown]
    by_hand = noisy(original, {"age": np.mean(ages, axis=0), "area": commonest})
    mean, alone = (DistanceLinkage().score(each, RUN).value for each in (by_hand, made[-1]))
    assert score.baseline == pytest.approx(alone)
    assert score.details["by_the_mean"] == pytest.approx(mean)
    assert score.value == pytest.approx(max(mean, alone))


def test_ranges_of_all_releases_are_cut_to_what_they_share():
    original = evidence([(1, "n", 25.0, "flu"), (2, "n", 35.0, "flu"), (3, "n", 45.0, "flu")]).original

    def shown(lows, highs):
        made = original.with_values("age", intervals(lows, highs, name="age"))
        return Evidence(original, Release.of(made, source_rows=np.arange(3)))

    first = shown([20.0, 20.0, 40.0], [29.0, 39.0, 49.0])
    last = shown([20.0, 30.0, 30.0], [49.0, 49.0, 49.0])
    from sfumato.risk.averaging import average_releases

    waves = Waves.of([first])
    last = replace(last, resources={"series": waves})
    made = average_releases(waves.now(last), waves.earlier, ["age"]).frame["age"]
    assert made.struct.field("lo").to_list() == [20.0, 30.0, 40.0]
    assert made.struct.field("hi").to_list() == [29.0, 39.0, 49.0]
    assert AveragingRisk().score(last, RUN).value == 1
    assert AveragingRisk().score(last, RUN).baseline < 1


def test_an_exact_value_says_more_than_a_range():
    original = evidence([(1, "n", 25.0, "flu"), (2, "n", 35.0, "flu")]).original
    coarse = original.with_values("age", intervals([0.0, 0.0], [99.0, 99.0], name="age"))
    last = Evidence(original, Release.of(coarse, source_rows=np.arange(2)))
    last = replace(last, resources={"series": Waves.of([Evidence(original, Release.unchanged(original))])})
    score = AveragingRisk().score(last, RUN)
    assert (score.value, score.baseline) == (1.0, 0.5)


def test_what_is_missing_in_one_release_is_taken_from_another():
    original = evidence([(1, "n", 25.0, "flu"), (2, "n", 35.0, "flu")]).original
    last = noisy(original, {"age": [None, None]})
    last = replace(last, resources={"series": Waves.of([Evidence(original, Release.unchanged(original))])})
    assert AveragingRisk().score(last, RUN).value == 1
