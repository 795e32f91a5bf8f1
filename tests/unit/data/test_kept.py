"""What a release keeps between columns is found, what it does not keep is not, and the intruder compares it."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from sfumato.core import registry
from sfumato.core.approaches import kept_views
from sfumato.core.evidence import Evidence, PersonSampling
from sfumato.core.measure import Status
from sfumato.core.origin import Origin
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.relations.invariants import KeptRelation, changed_columns, kept_relations
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import SfumatoError
from sfumato.methods.date_shifting import DateShifting
from sfumato.methods.multiplicative_noise import LognormalNoise

N = 300
RNG = np.random.default_rng(7)
DAY = dt.timedelta(days=1)


def kind_of(values):
    dtype = pl.Series(values, strict=False).dtype
    return Kind.DATE if dtype.is_temporal() else Kind.CONTINUOUS if dtype.is_numeric() else Kind.NOMINAL


def table(**columns):
    schema = Schema(tuple(Column(name, kind_of(values), Role.KEY) for name, values in columns.items()))
    return Table(pl.DataFrame(columns, strict=False), schema)


def found(original, released, rows=None):
    """The kinds and columns that are found."""
    rows = np.arange(len(released)) if rows is None else rows
    relations = kept_relations(original, released, rows, original.names)
    return [(relation.kind, relation.columns) for relation in relations]


def dates(days):
    return [None if day is None else dt.date(2024, 1, 1) + day * DAY for day in days]


CAME, STAY = RNG.integers(0, 365, N), RNG.integers(1, 30, N)
SHIFT = RNG.integers(-300, 300, N)
WAGE, RENT = RNG.lognormal(10, 0.3, N).round(2), RNG.lognormal(6.5, 0.3, N).round(2)
FACTOR = RNG.lognormal(0, 1, N)


# What is found --------------------------------------------------------------------------------------------


def test_shifted_dates_keep_their_differences():
    original = table(came=dates(CAME.tolist()), left=dates((CAME + STAY).tolist()))
    released = table(came=dates((CAME + SHIFT).tolist()), left=dates((CAME + STAY + SHIFT).tolist()))
    assert found(original, released) == [("differences", ("came", "left"))]


def test_one_factor_for_each_record_keeps_ratios_though_written_in_two_decimals():
    original = table(wage=WAGE, rent=RENT, sex=["f", "m"] * (N // 2))
    released = table(wage=WAGE * FACTOR, rent=RENT * FACTOR, sex=["f", "m"] * (N // 2))
    rounded = table(wage=(WAGE * FACTOR).round(2), rent=(RENT * FACTOR).round(2), sex=["f", "m"] * (N // 2))
    whole = table(wage=(WAGE * FACTOR).round(0), rent=(RENT * FACTOR).round(0), sex=["f", "m"] * (N // 2))
    for each in (released, rounded, whole):
        assert found(original, each) == [("ratios", ("wage", "rent"))]


def test_numbers_of_both_signs_and_zeros_keep_ratios():
    gain = np.where(np.arange(N) % 10 == 0, 0.0, RNG.normal(0, 1e4, N))
    released = table(gain=gain * FACTOR, wage=WAGE * FACTOR)
    assert found(table(gain=gain, wage=WAGE), released) == [("ratios", ("gain", "wage"))]


def test_three_columns_are_one_group_and_a_fourth_stays_out():
    other = RNG.normal(0, 1, N)
    values = {"a": WAGE, "b": RENT, "c": WAGE[::-1].copy(), "other": other}
    changed = {name: each * FACTOR for name, each in values.items()} | {"other": other + RNG.normal(0, 3, N)}
    assert found(table(**values), table(**changed)) == [("ratios", ("a", "b", "c"))]


@pytest.mark.parametrize("change", [lambda x: 1.7 * x, np.log, lambda x: x**3, lambda x: x + 1e5])
def test_other_units_and_whatever_rises_keep_ranks(change):
    assert found(table(wage=WAGE), table(wage=change(WAGE))) == [("ranks", ("wage",))]


def test_one_shift_for_all_keeps_differences_and_ranks():
    shifted = table(a=WAGE + 1e5, b=RENT + 1e5)
    assert found(table(a=WAGE, b=RENT), shifted) == [
        ("differences", ("a", "b")), ("ranks", ("a",)), ("ranks", ("b",)),
    ]  # fmt: skip


def test_times_of_day_and_zones():
    start = dt.datetime(2024, 3, 1, tzinfo=dt.UTC)
    came = [start + dt.timedelta(minutes=int(each)) for each in RNG.integers(0, 500_000, N)]
    left = [each + dt.timedelta(minutes=int(stay)) for each, stay in zip(came, 600 * STAY, strict=True)]
    moved = [
        [each + int(shift) * DAY for each, shift in zip(side, SHIFT, strict=True)] for side in (came, left)
    ]
    original, released = table(came=came, left=left), table(came=moved[0], left=moved[1])
    assert found(original, released) == [("differences", ("came", "left"))]
    unit = released.frame.with_columns(pl.all().dt.cast_time_unit("ms").dt.convert_time_zone("Asia/Tokyo"))
    assert found(original, Table(unit, released.schema)) == [("differences", ("came", "left"))]


def test_dates_shown_by_the_day_and_shifted():
    """What was known to the minute and is shown by the day: the difference is off by a day at most."""
    start = dt.datetime(2024, 3, 1)  # noqa: DTZ001
    born = [start - dt.timedelta(minutes=int(each)) for each in RNG.integers(0, 40_000_000, N)]
    came = [start + dt.timedelta(minutes=int(each)) for each in RNG.integers(0, 500_000, N)]
    original = table(born=born, came=came)
    shown = [
        [(each + int(s) * DAY).date() for each, s in zip(side, SHIFT, strict=True)] for side in (born, came)
    ]
    assert found(original, table(born=shown[0], came=shown[1])) == [("differences", ("born", "came"))]


def test_ordinal_numbers_count_and_ordinal_words_do_not():
    low, high = RNG.integers(1, 500, N), RNG.integers(1, 500, N)
    schema = Schema((Column("low", Kind.ORDINAL, Role.KEY), Column("high", Kind.ORDINAL, Role.KEY)))
    original = Table(pl.DataFrame({"low": low, "high": high}), schema)
    released = Table(pl.DataFrame({"low": low + SHIFT, "high": high + SHIFT}), schema)
    assert found(original, released) == [("differences", ("low", "high"))]
    as_text = [Table(each.frame.cast(pl.String), schema) for each in (original, released)]
    assert found(*as_text) == []


def test_fewer_records_in_another_order_and_nobodys_among_them():
    original = table(a=WAGE, b=RENT)
    rows = np.append(RNG.permutation(N)[:100], -1)
    released = table(a=np.append((WAGE + SHIFT)[rows[:-1]], 1.0), b=np.append((RENT + SHIFT)[rows[:-1]], 7.0))
    assert found(original, released, rows) == [("differences", ("a", "b"))]


def test_a_part_of_the_records_suffices_and_a_small_part_does_not():
    for share, expected in ((0.4, [("differences", ("a", "b"))]), (0.1, [])):
        together = np.arange(N) < share * N
        own = np.where(together, SHIFT, RNG.integers(-300, 300, N))
        assert found(table(a=WAGE, b=RENT), table(a=WAGE + SHIFT, b=RENT + own)) == expected


def test_missing_values_are_passed_over():
    came = [None if i % 3 == 0 else day for i, day in enumerate(CAME.tolist())]
    moved = [None if day is None else day + int(s) for day, s in zip(came, SHIFT, strict=True)]
    original = table(came=dates(came), left=dates((CAME + STAY).tolist()))
    released = table(came=dates(moved), left=dates((CAME + STAY + SHIFT).tolist()))
    assert found(original, released) == [("differences", ("came", "left"))]
    derived = KeptRelation("differences", ("came", "left")).derive(original)
    assert derived.missing("`left` − `came`").tolist() == [day is None for day in came]


def test_a_few_records():
    for size in (4, 5, 8):
        original = table(a=WAGE[:size], b=RENT[:size])
        shifts = SHIFT[:size]
        released = table(a=WAGE[:size] + shifts, b=RENT[:size] + shifts)
        assert found(original, released)[:1] == [("differences", ("a", "b"))]


# What is not ----------------------------------------------------------------------------------------------


def test_independent_noise_keeps_nothing():
    noisy = {"a": WAGE + RNG.normal(0, 5e3, N), "b": RENT + RNG.normal(0, 200, N)}
    assert found(table(a=WAGE, b=RENT), table(**noisy)) == []
    factors = {"a": WAGE * RNG.lognormal(0, 1, N), "b": RENT * RNG.lognormal(0, 1, N)}
    assert found(table(a=WAGE, b=RENT), table(**factors)) == []


@pytest.mark.parametrize("base", [1, 2, 3, 5, 10, 1000])
def test_rounding_keeps_nothing(base):
    rounded = table(a=np.round(WAGE / base) * base, b=np.round(RENT / base) * base)
    assert [kind for kind, _ in found(table(a=WAGE, b=RENT), rounded) if kind != "ranks"] == []
    whole = table(a=np.round(WAGE), b=np.round(RENT))
    coarse = table(a=np.round(WAGE / base) * base, b=np.round(RENT / base) * base)
    assert [kind for kind, _ in found(whole, coarse) if kind != "ranks"] == []


def test_rounding_to_whole_numbers_keeps_nothing_at_all():
    assert found(table(a=WAGE, b=RENT), table(a=np.round(WAGE), b=np.round(RENT))) == []
    assert found(table(a=WAGE, b=RENT), table(a=np.floor(WAGE), b=np.floor(RENT))) == []


def test_small_whole_numbers_agree_by_chance():
    a, b = RNG.integers(0, 4, N), RNG.integers(0, 4, N)
    noisy = table(a=a + RNG.integers(-1, 2, N), b=b + RNG.integers(-1, 2, N))
    assert found(table(a=a, b=b), noisy) == []
    swapped = table(a=RNG.permutation(a), b=RNG.permutation(b))
    assert found(table(a=a, b=b), swapped) == []


def test_what_did_not_change_keeps_nothing_that_values_do_not_tell():
    assert found(table(a=WAGE, b=RENT), table(a=WAGE, b=RENT)) == []


def test_a_difference_that_all_have_tells_nothing():
    released = table(a=WAGE + SHIFT, b=WAGE + SHIFT + 8)
    assert found(table(a=WAGE, b=WAGE + 8), released) == []


def test_constants_one_record_and_none():
    ones = np.ones(N)
    assert found(table(a=ones, b=ones), table(a=ones + SHIFT, b=ones + SHIFT)) == []
    assert found(table(a=ones, b=ones), table(a=ones, b=2 * ones)) == []
    for size in (0, 1):
        original = table(a=WAGE[:size], b=RENT[:size])
        assert found(original, table(a=WAGE[:size] + 5, b=RENT[:size] + 5)) == []
    assert found(table(a=[None] * 9, b=[None] * 9), table(a=[None] * 9, b=[None] * 9)) == []


def test_ranks_that_change_because_values_hardly_moved_are_none():
    """Noise below the gaps between values keeps ranks, but the values tell as much."""
    assert found(table(a=np.arange(N) * 10.0), table(a=np.arange(N) * 10.0 + RNG.uniform(-4, 4, N))) == []


def test_ties_that_others_join_are_no_kept_ranks():
    """Means of three neighbours: the middle one has the mean rank of its group."""
    order = np.argsort(np.argsort(WAGE))
    means = np.sort(WAGE).reshape(-1, 3).mean(axis=1).repeat(3)[order]
    assert found(table(a=WAGE), table(a=means)) == []


def test_generalised_columns_are_passed_over():
    original = table(a=WAGE, b=RENT)
    spans = pl.DataFrame({"lo": WAGE - 10, "hi": WAGE + 10}).to_struct("a")
    assert found(original, original.with_values("a", spans)) == []


# What is derived ------------------------------------------------------------------------------------------


def test_derived_columns_stand_in_place_of_the_others():
    original = table(a=[1.0, 5.0, None], b=[4.0, 4.0, 4.0], sex=["f", "m", "f"])
    differences = KeptRelation("differences", ("a", "b")).derive(original)
    assert differences.names == ("sex", "`b` − `a`")
    assert differences.frame["`b` − `a`"].to_list() == [3.0, -1.0, None]
    ratios = KeptRelation("ratios", ("a", "b")).derive(original)
    assert ratios.frame["`b` / `a`"].to_list() == pytest.approx([np.log(4), np.log(0.8), None])
    ranks = KeptRelation("ranks", ("a",)).derive(original)
    assert ranks.frame["rank of `a`"].to_list() == [0.25, 0.75, None]
    assert {ranks.schema[name].role for name in ranks.names} == {Role.KEY}


def test_names_do_not_clash():
    taken = {"a": WAGE, "b": RENT, "`b` − `a`": RNG.normal(0, 1, N)}
    released = taken | {"a": WAGE + SHIFT, "b": RENT + SHIFT}
    relation = kept_relations(table(**taken), table(**released), np.arange(N), ["a", "b"])[0]
    assert relation.names == ("`b` − `a`′",)
    assert relation.derive(table(**taken)).names == ("`b` − `a`", "`b` − `a`′")


def test_columns_that_changed():
    released = table(a=WAGE + SHIFT, b=RENT, c=np.round(WAGE))
    assert changed_columns(table(a=WAGE, b=RENT, c=WAGE), released, np.arange(N), ["a", "b", "c"]) == ("a",)


# What the intruder sees -----------------------------------------------------------------------------------


def stays(n=800):
    """Birth, admission and discharge, as in r33."""
    rng = np.random.default_rng(3)
    born, came = rng.integers(-30_000, -10_000, n), rng.integers(0, 366, n)
    left = came + rng.integers(1, 31, n)
    sexes = rng.choice(["f", "m"], n).tolist()
    return table(born=dates(born.tolist()), came=dates(came.tolist()), left=dates(left.tolist()), sex=sexes)


def amounts(n=800):
    rng = np.random.default_rng(3)
    drawn = {
        name: rng.lognormal(at, 0.25, n).round(2) for name, at in (("wage", 10), ("rent", 6.5), ("tax", 8))
    }
    return table(**drawn, sex=rng.choice(["f", "m"], n).tolist())


def worst(name, evidence):
    """What a measure says of the evidence, and what it would if nobody looked at what is kept."""
    measure = registry.measure(name)()
    return tuple(measure.score(each, Run(seed=1)).value for each in (evidence, plain(evidence)))


def plain(evidence):
    """The evidence before an intruder who compares values as they are."""
    return replace(evidence, sampling=PersonSampling(ignore_person_links=True))


def alone_by(look, original, released):
    """Brute force: how many have, alone in both tables, what ``look`` makes of a record."""
    known, shown = (Counter(look(row) for row in each.frame.to_dicts()) for each in (original, released))
    return sum(count == 1 and shown[key] == 1 for key, count in known.items())


def intervals(row):
    return (row["came"] - row["born"]).days, (row["left"] - row["came"]).days, row["sex"]


def shares(row):
    return round(row["rent"] / row["wage"], 4), round(row["tax"] / row["wage"], 3), row["sex"]


@pytest.mark.parametrize(
    ("original", "method", "look"),
    [
        (stays(400), DateShifting(days=365), intervals),
        (amounts(400), LognormalNoise(deviation=1.0, per="record"), shares),
    ],
)
def test_what_stays_between_columns_finds_everybody(original, method, look):
    protected = method.apply(original.aimed_at(original.names[:3]), Run(seed=1))
    frame = protected.table.frame.with_columns(pl.col(pl.Float64).round(2))
    evidence = Evidence(original, protected.read_as(Table(frame, original.schema)))
    assert alone_by(look, original, evidence.protected) >= 0.95 * len(original)
    for name in ("dbrl", "gdbrl", "interval-disclosure", "probabilistic-linkage", "exact-match"):
        together, alone = worst(name, evidence)
        assert alone < 0.4
        assert together >= 0.94
    assert worst("permutation-distance", evidence)[0] == pytest.approx(0, abs=1e-3)


def test_every_measure_that_compares_can_be_asked_of_a_view():
    original = table(**{name: stays(120).frame[name].to_list() for name in ("born", "came", "left")})
    schema = original.schema.replace(Column("ill", Kind.NOMINAL, Role.SENSITIVE))
    original = Table(original.frame.with_columns(pl.Series("ill", ["x", "y", "z"] * 40)), schema)
    half = original.take(np.arange(0, 120, 2))
    release = DateShifting(days=365).apply(half.aimed_at(["born", "came", "left"]), Run(seed=1))
    evidence = Evidence(half, release, resources={"control": original.take(np.arange(1, 120, 2))})
    (view,) = kept_views(evidence)
    for name, cls in registry.measures().items():
        if cls.counts.compares_kept_relations:
            said = [cls().score(plain(each), Run(seed=1)) for each in (evidence, view)]
            refused = [score.status is Status.REFUSED for score in said]
            assert refused[0] == refused[1], name
            assert cls.bounds[0] <= said[1].value <= cls.bounds[1] or np.isnan(said[1].value)


def test_views_of_several_kinds_and_one_without_noise():
    """Dates that move together, amounts with one factor, and an age with noise: all but that is exact."""
    original, other = stays(300), amounts(300)
    frame = original.frame.with_columns(other.frame["wage"], other.frame["rent"], pl.Series("age", CAME))
    original = table(**frame.to_dict(as_series=False))
    run = Run(seed=1)
    first = DateShifting(days=365).apply(original.aimed_at(["born", "came", "left"]), run).table
    second = LognormalNoise(deviation=1.0, per="record").apply(first.aimed_at(["wage", "rent"]), run).table
    noisy = second.with_values("age", pl.Series(CAME + RNG.normal(0, 200, N)))
    evidence = Evidence(original, Release.record_by_record(noisy))
    views = kept_views(evidence)
    assert [set(view.known_columns) for view in views] == [
        {"sex", "age", "wage", "rent", "`came` − `born`", "`left` − `born`"},
        {"sex", "age", "born", "came", "left", "`wage` / `rent`"},
        {"sex", "`came` − `born`", "`left` − `born`", "`wage` / `rent`"},
    ]
    dbrl = registry.measure("dbrl")()
    scores = [dbrl.score(plain(each), Run(seed=1)).value for each in (evidence, *views)]
    assert scores[-1] == pytest.approx(1)
    assert max(scores[:-1]) < 0.6
    assert kept_views(evidence) is views


def test_no_views_where_nobody_can_compare():
    original = stays(100)
    release = DateShifting(days=365).apply(original.aimed_at(["born", "came", "left"]), Run(seed=1))
    assert len(kept_views(Evidence(original, release))) == 1
    assert kept_views(Evidence(original)) == ()
    assert kept_views(Evidence(original, Release.as_read(release.table))) == ()
    assert kept_views(Evidence(original, Release.as_read(release.table, origin=Origin.synthetic()))) == ()
    other = Scenario(external="theirs")
    assert kept_views(Evidence(original, release, other, resources={"theirs": original})) == ()
    assert kept_views(Evidence(original, Release.unchanged(original))) == ()
    assert kept_views(Evidence(original, release, Scenario(columns=("born", "sex")))) == ()


def test_a_view_of_a_sample():
    original = stays(400)
    shifted = DateShifting(days=365).apply(original.aimed_at(["born", "came", "left"]), Run(seed=1)).table
    rows = np.random.default_rng(1).permutation(400)[:150]
    evidence = Evidence(original, Release.of(shifted.take(rows), source_rows=rows))
    assert worst("dbrl", evidence)[0] == pytest.approx(1)


# What methods declare -------------------------------------------------------------------------------------


def mixed(n=400):
    rng = np.random.default_rng(5)
    born, came = rng.integers(-30_000, -10_000, n), rng.integers(0, 366, n)
    return table(
        wage=rng.lognormal(10, 0.4, n).round(2), rent=rng.lognormal(6.5, 0.3, n).round(2),
        debt=rng.normal(0, 1e4, n).round(2), age=rng.integers(18, 90, n), born=dates(born.tolist()),
        came=dates(came.tolist()), left=dates((came + rng.integers(1, 31, n)).tolist()),
        town=rng.choice(list("abcdef"), n).tolist(),
    )  # fmt: skip


def protected_or_none(method, chosen):
    """What comes of a method, if it takes such columns without resources, hierarchies or sensitive ones."""
    try:
        return method.apply(chosen, Run(seed=3))
    except SfumatoError:
        return None


def settings_of(cls):
    yield cls()
    for each in cls.parameters():
        yield from (cls(**{each.name: choice}) for choice in each.choices if choice != each.default)


@pytest.mark.parametrize("name", sorted(registry.methods()))
def test_what_methods_keep_is_what_they_declare(name):
    original = mixed()
    cls = registry.method(name)
    kinds_found = set()
    for method in settings_of(cls):
        for kinds in ({Kind.CONTINUOUS}, {Kind.DATE}):
            chosen = original.aimed_at(original.schema.with_kind(*(kinds & method.kinds)))
            release = protected_or_none(method, chosen) if chosen.targets else None
            if release is None or release.source_rows is None:
                continue
            kept = {kind for kind, _ in found(original, release.reading(), release.source_rows)}
            assert kept <= set(method.kept_relations()), method
            kinds_found |= kept
    assert kinds_found == set(cls.gives.kept)
    assert bool(cls.kept_sentence()) == bool(cls.gives.kept)
    assert cls.describe()["gives"]["kept"] == list(cls.gives.kept)


# Against a population -------------------------------------------------------------------------------------


def in_population(name, original, released, population, rows=None):
    """A measure's score against a population, and by which approach it is so."""
    release = Release.of(released, source_rows=np.arange(len(released)) if rows is None else rows)
    evidence = Evidence(original, release, resources={"everybody": population})
    score = registry.measure(name)(population="everybody").score(evidence, Run(seed=1))
    assert score.status is Status.OK
    return score.value, score.details.get("approach", "")


def as_measured(name, inside, sizes):
    """Brute force: what each measure makes of the people of the release and population like each record."""
    if name == "k-map":
        return min(sizes)
    if name == "delta-presence":
        return max(own / size if size else np.inf for own, size in zip(inside, sizes, strict=True))
    chances = [1 / max(size, 1) for size in sizes]
    return max(chances) if name == "journalist-risk" else np.mean(chances)


def like_each(rows, population):
    """How many of the release, and of the population, have what each record has."""
    own, everybody = Counter(rows), Counter(population)
    return [own[row] for row in rows], [everybody[row] for row in rows]


MEASURES = ("k-map", "journalist-risk", "marketer-risk", "delta-presence")


@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize("seed", range(3))
def test_a_shift_that_all_have_hides_nobody_from_a_population(name, seed):
    """Few have the true ages of three people, and many those that are shown: who takes the shift back knows."""
    rng = np.random.default_rng(seed)
    population = table(age=[7, 8, 9, *rng.permutation(np.repeat(np.arange(10, 41), 40)).tolist()])
    original = population.take(np.r_[0:3, np.flatnonzero(population.frame["age"].is_between(10, 37))[:60]])
    rows = rng.permutation(63)[:60]  # some were left out
    before = original.take(rows)
    released = before.with_values("age", before.frame["age"] + 3)
    true, said = (like_each(each.frame.rows(), population.frame.rows()) for each in (before, released))
    expected, alone = (as_measured(name, *each) for each in (true, said))
    assert alone > expected if name == "k-map" else alone < expected
    value, by = in_population(name, original, released, population, rows)
    assert value == pytest.approx(expected)
    assert by == "by rank of `age`"


@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize("seed", range(3))
def test_by_differences_no_fewer_of_a_population_are_like_a_record(name, seed):
    """Who has both values has their difference: no measure is worse by it than by the values shown."""
    rng = np.random.default_rng(seed)
    low, high = rng.integers(0, 6, 3000), rng.integers(0, 6, 3000)
    population, shift = table(low=low, high=high), rng.integers(-2, 3, 60)
    fits = np.minimum(low[:60], high[:60]) + shift >= 0
    shift = np.where(fits & (np.maximum(low[:60], high[:60]) + shift < 6), shift, 0)
    released = table(low=low[:60] + shift, high=high[:60] + shift)
    original = population.take(np.arange(60))
    assert len(kept_views(Evidence(original, Release.record_by_record(released)))) == 1
    expected = as_measured(name, *like_each(released.frame.rows(), population.frame.rows()))
    assert in_population(name, original, released, population) == (pytest.approx(expected), "")
