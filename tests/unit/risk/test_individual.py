"""Individual and household risk: worked out by hand, by summation, by quadrature, record by record."""

import math
from collections import defaultdict
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, special, stats

from effort import examples
from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.method import Method
from sfumato.core.release import Release
from sfumato.core.requirement import Requirement
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import RefusedError
from sfumato.methods.local_suppression import LocalSuppression
from sfumato.methods.mondrian import Mondrian
from sfumato.methods.suppression import RecordSuppression
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.risk._sample_classes import SizeModel, cut_at, far_risk, mean_risk, size_model_of
from sfumato.risk.household import HouseholdRisk, _Households
from sfumato.risk.individual import IndividualRisk

ROLES = {"w": Role.WEIGHT, "home": Role.HOUSEHOLD, "who": Role.PERSON}


def table_of(**columns):
    frame = pl.DataFrame(columns)
    kinds = {name: Kind.CONTINUOUS if name == "w" else Kind.NOMINAL for name in columns}
    return Table(
        frame, Schema(tuple(Column(name, kinds[name], ROLES.get(name, Role.KEY)) for name in columns))
    )


def score_of(measure, table):
    return measure.score(Evidence(original=table), Run(seed=1))


def risk(f, p):
    return float(mean_risk(np.array([float(f)]), np.array([float(p)]))[0])


# ----------------------------------------------------------------------------------------- the mean of 1/F


def test_the_ten_records_of_the_practice_guide():
    weights = [180.0, 180, 215, 76, 186, 76, 180, 215, 186, 76]
    table = table_of(a=list("aabcdcefgg"), w=weights)
    score = score_of(IndividualRisk(), table)
    expected = [0.0054, 0.0054, 0.0251, 0.0126, 0.0282, 0.0126, 0.0290, 0.0251, 0.0074, 0.0074]
    assert np.round(score.by_record, 4).tolist() == expected
    assert score.by_record[2] == pytest.approx(math.log(215) / 214, rel=1e-14)
    assert score.value == score.by_record.max()
    assert score.details["expected_reidentifications"] == pytest.approx(score.by_record.sum())
    assert score.details["global_risk"] == pytest.approx(score.by_record.mean())
    assert score.status is Status.APPROXIMATE
    assert score.confidence == 95
    assert score.interval[0] <= score.value <= score.interval[1]


def test_francdat_by_hand():
    """Four keys of sdcMicro's francdat: 2 of 110, 2 of 84.5, and four who are alone, by the closed forms."""
    keys = ["1251", "1211", "1211", "3315", "4314", "4311", "6215", "1251"]
    table = table_of(a=keys, w=[18.0, 45.5, 39, 17, 541, 8, 5, 92])
    odds = [2 / (110 - 2), 2 / (84.5 - 2)]
    pairs = [p * (1 + p * math.log(p / (1 + p))) for p in odds]
    alone = [math.log(size) / (size - 1) for size in (17, 541, 8, 5)]
    expected = [pairs[0], pairs[1], pairs[1], *alone, pairs[0]]
    np.testing.assert_allclose(score_of(IndividualRisk(), table).by_record, expected, rtol=1e-13)


SHARES = [1e-6, 1e-4, 0.01, 0.1, 0.3, 0.39, 0.41, 0.5, 0.8, 0.99, 1 - 1e-9, 1.0]


@pytest.mark.parametrize("f", [1, 2, 3, 5, 19, 20, 21, 22, 100, 10_000, 1_000_000])
@pytest.mark.parametrize("p", SHARES)
def test_it_is_the_integral(f, p):
    """With u = e^−v the integral of u^(f−1)·p/(p + q·u) has no peak that quadrature would miss."""

    def height(v):
        return math.exp(-v) * p / (p + (1 - p) * math.exp(-v / f)) / f

    points = sorted({min(max(-f * math.log(p), 1e-3), 700.0), 1.0})
    parts = [0.0, *points, 800.0]
    exact = sum(
        integrate.quad(height, low, high, epsabs=0, epsrel=1e-12, limit=500)[0]
        for low, high in pairwise(parts)
        if high > low
    )
    assert risk(f, p) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("f", [1, 2, 7, 30, 200])
@pytest.mark.parametrize("p", [0.05, 0.3, 0.45, 0.9, 1.0])
def test_it_is_the_sum_over_the_negative_binomial(f, p):
    others = np.arange(int(60 * (f + 20) / p))
    assert risk(f, p) == pytest.approx((stats.nbinom.pmf(others, f, p) / (f + others)).sum(), rel=1e-9)


@pytest.mark.parametrize("p", [1e-12, 1e-6, 0.001, 0.2, 0.39, 0.6, 0.999])
def test_a_unique_record(p):
    assert risk(1, p) == pytest.approx(-math.log(p) * p / (1 - p), rel=1e-12)


def test_it_falls_with_the_number_alike_and_rises_with_the_share_drawn():
    """Above all where the recurrence hands over to the continued fraction."""
    f, p = np.meshgrid(np.arange(1.0, 60.0), np.linspace(0.001, 1, 200), indexing="ij")
    grid = mean_risk(f.ravel(), p.ravel()).reshape(f.shape)
    assert (np.diff(grid, axis=0) < 0).all()
    assert (np.diff(grid, axis=1) > 0).all()
    np.testing.assert_allclose(grid[:, -1], 1 / f[:, 0], rtol=1e-14)


# ------------------------------------------------------------------------------------------------ the doubt


@given(st.integers(1, 10**6), st.floats(1e-6, 1.0), st.floats(50, 99.99))
@examples(50)
def test_the_far_end_is_a_quantile_and_never_below_the_mean(f, p, confidence):
    tail = (1 - confidence / 100) / 2
    far = float(far_risk(np.array([float(f)]), np.array([p]), tail)[0])
    assert risk(f, p) <= far <= 1 / f
    if 1 / far < 1e9:  # fewer people are alike with a chance of at most the tail
        assert stats.nbinom.cdf(math.ceil(1 / far - 1e-6) - 1 - f, f, p) <= tail * (1 + 1e-6)


def test_the_interval_of_a_record_covers_what_is_drawn():
    rng, covered = np.random.default_rng(5), []
    for f, p in [(1, 0.01), (1, 0.3), (2, 0.05), (5, 0.1), (20, 0.02)]:
        drawn = f + rng.negative_binomial(f, p, 400)
        table = table_of(a=["x"] * f)
        low, high = score_of(IndividualRisk(fraction=p), table).interval
        covered.append(np.mean((1 / drawn >= low * (1 - 1e-9)) & (1 / drawn <= high * (1 + 1e-9))))
    assert min(covered) >= 0.92
    assert np.mean(covered) < 1  # else it would say nothing


def test_the_score_has_the_far_end_of_the_worst_record():
    """Which need not be the one of the highest mean."""
    rng = np.random.default_rng(2)
    keys = rng.integers(0, 30, 80)
    table = table_of(a=keys.tolist(), w=rng.uniform(1, 300, 80).tolist())
    measure = IndividualRisk(confidence=90)
    evidence = Evidence(original=table)
    score = measure.score(evidence, Run(seed=1))
    classes = measure.classes(evidence)
    assert score.interval[1] == pytest.approx(measure.far_of_classes(evidence, classes).max(), rel=1e-12)


# ----------------------------------------------------------------------------------------------- the slider


def test_threshold_records_at_risk_and_rate_tell_each_other():
    risks = np.array([0.01, 0.02, 0.02, 0.1, 0.5])
    cut = cut_at(risks, threshold=0.1)
    assert (cut.at_risk, cut.rate) == (1, pytest.approx(0.25 / 5))
    assert cut_at(risks, rate=0.05) == pytest.approx(cut)
    assert cut_at(risks, rate=0.9) == pytest.approx((0.5, 0, 0.13))  # all is tolerated
    assert cut_at(risks, rate=0.005).threshold == pytest.approx(0.005)  # below the lowest: all at risk


@given(st.lists(st.floats(1e-6, 1), min_size=1, max_size=12), st.floats(0, 1))
def test_the_threshold_of_a_rate_gives_the_rate(risks, share):
    risks = np.array(risks)
    rate = max(share * risks.mean(), 1e-9)
    cut = cut_at(risks, rate=rate)
    assert np.minimum(risks, cut.threshold).mean() == pytest.approx(rate, rel=1e-9)
    assert cut.rate == pytest.approx(rate, rel=1e-9)


def test_a_tolerated_rate_gives_the_threshold():
    table = table_of(a=list("aabcdcefgg"), w=[180.0, 180, 215, 76, 186, 76, 180, 215, 186, 76])
    score = score_of(IndividualRisk(rate=0.01), table)
    assert np.minimum(score.by_record, score.details["threshold"]).mean() == pytest.approx(0.01)
    assert score.details["rate_at_threshold"] == pytest.approx(0.01)


# ------------------------------------------------------------------------------------------ odd populations


def test_who_tells_nothing_of_the_population_is_refused():
    score = score_of(IndividualRisk(), table_of(a=["x"]))
    assert score.status is Status.REFUSED
    assert "`fraction`, `population_size` or weights" in score.reason
    assert (
        score_of(IndividualRisk(fraction=0.1, population_size=10), table_of(a=["x"])).status is Status.REFUSED
    )


def test_a_population_smaller_than_the_sample():
    score = score_of(IndividualRisk(population_size=2), table_of(a=["x", "y", "z"]))
    assert score.status is Status.NOT_ESTIMABLE
    assert "smaller than its sample of 3" in score.reason


@pytest.mark.parametrize("measure", [IndividualRisk(), HouseholdRisk()])
def test_weights_that_are_not_released_still_tell(measure):
    table = table_of(a=list("xxyz"), home=[1, 2, 2, 3], w=[20.0, 30, 40, 50])
    rows = np.array([3, 1, 0, 2])
    shown = table.select(["a"]).take(rows)
    score = measure.score(Evidence(table, Release.of(shown, source_rows=rows)), Run(seed=1))
    np.testing.assert_allclose(score.by_record, score_of(measure, table).by_record)
    assert "or weights" in measure.score(Evidence(table, Release.of(shown)), Run(seed=1)).reason


@pytest.mark.parametrize("weight", [0.001, 0.5, 1.0])
def test_weights_below_one_count_as_if_all_were_drawn(weight):
    score = score_of(IndividualRisk(), table_of(a=["x", "x", "y"], w=[weight] * 3))
    assert score.by_record.tolist() == [0.5, 0.5, 1.0]
    assert score.interval == (1.0, 1.0)


@pytest.mark.parametrize("keys", [["x"], ["x"] * 9, list("abcdefghi")])
@pytest.mark.parametrize("fraction", [1e-6, 0.2, 1.0])
def test_one_record_all_alike_all_unique(keys, fraction):
    score = score_of(IndividualRisk(fraction=fraction), table_of(a=keys))
    assert score.value == pytest.approx(risk(9 if keys == ["x"] * 9 else 1, fraction))
    assert score_of(IndividualRisk(population_size=len(keys) / fraction), table_of(a=keys)).value == (
        pytest.approx(score.value)
    )


# ------------------------------------------------------------------------------- every policy, by brute force


@st.composite
def weighted_tables(draw):
    n = draw(st.integers(1, 7))
    columns = {
        "a": pl.Series(
            draw(st.lists(st.sampled_from(["x", "y", None]), min_size=n, max_size=n)), dtype=pl.String
        ),
        "b": pl.Series(draw(st.lists(st.sampled_from([1, 2, None]), min_size=n, max_size=n)), dtype=pl.Int64),
        "w": draw(st.lists(st.floats(0.5, 1e4), min_size=n, max_size=n)),
        "home": draw(st.lists(st.sampled_from([1, 2, None]), min_size=n, max_size=n)),
    }
    if draw(st.booleans()):
        columns["who"] = draw(st.lists(st.sampled_from([1, 2, 3]), min_size=n, max_size=n))
    return table_of(**columns)


def brute(table, policy):
    """The risk of each record, one by one."""
    rows = list(zip(table.frame["a"], table.frame["b"], strict=True))
    weights = table.frame["w"].to_list()
    who = table.frame["who"].to_list() if "who" in table.schema else list(range(len(rows)))
    least = {each: min(w for w, of in zip(weights, who, strict=True) if of == each) for each in who}

    def alike(one, other):
        if policy == "any":
            return all(x is None or y is None or x == y for x, y in zip(one, other, strict=True))
        return one == other and (policy == "category" or None not in one)

    found = []
    for i, one in enumerate(rows):
        group = {who[j] for j, other in enumerate(rows) if i == j or alike(one, other)}
        found.append(risk(len(group), min(1.0, len(group) / sum(least[each] for each in group))))
    return found, who


@given(weighted_tables(), st.sampled_from(["category", "any", "worst"]))
@examples(150)
def test_each_record_by_brute_force(table, policy):
    found, who = brute(table, policy)
    score = score_of(IndividualRisk(missing=policy), table)
    np.testing.assert_allclose(score.by_record, found, rtol=1e-12)
    assert score.value == max(score.by_record)
    by_person = {each: max(r for r, of in zip(found, who, strict=True) if of == each) for each in who}
    assert score.details["expected_reidentifications"] == pytest.approx(sum(by_person.values()))
    homes = defaultdict(dict)
    for i, (home, each) in enumerate(zip(table.frame["home"], who, strict=True)):
        members = homes[home if home is not None else ("alone", each)]
        members[each] = max(found[i], members.get(each, 0.0))
    expected = [
        1 - math.prod(1 - r for r in homes[home if home is not None else ("alone", each)].values())
        for home, each in zip(table.frame["home"], who, strict=True)
    ]
    together = score_of(HouseholdRisk(missing=policy), table)
    np.testing.assert_allclose(together.by_record, expected, rtol=1e-9, atol=1e-12)
    assert together.value >= score.value * (1 - 1e-12)
    low, high = together.interval
    assert low <= together.value <= high <= 1


# ------------------------------------------------------------------------------------------------ households


def test_a_household_of_two():
    table = table_of(a=["x", "y", "y"], home=[1, 1, 2])
    measure = HouseholdRisk(fraction=0.1)
    score = score_of(measure, table)
    one, two = risk(1, 0.1), risk(2, 0.1)
    np.testing.assert_allclose(score.by_record, [1 - (1 - one) * (1 - two)] * 2 + [two], rtol=1e-12)
    ends = [far_risk(np.array([f]), np.array([0.1]), 0.025 / 2)[0] for f in (1.0, 2.0)]
    assert score.interval[1] == pytest.approx(1 - (1 - ends[0]) * (1 - ends[1]))
    assert score.details["households"] == 2
    assert (
        score_of(measure, table_of(a=["x"])).reason
        == "household-risk needs a column of households: give it the role household"
    )


def test_households_that_are_released_are_looked_for_as_a_whole():
    table = table_of(a=list("xyxyxx"), home=[1, 1, 2, 2, 3, 3])
    evidence = Evidence(table, Release.of(table, source_rows=np.arange(6)))
    score = HouseholdRisk(fraction=0.1).score(evidence, Run(seed=1))
    alone = score_of(HouseholdRisk(fraction=0.1), table)
    whole = risk(1, 0.1)  # only the third household is of two alike
    assert score.by_record[4] == pytest.approx(max(whole, alone.by_record[4]))
    assert score.by_record[0] == pytest.approx(max(risk(2, 0.1), alone.by_record[0]))
    assert score.confidence == 95


def test_the_far_end_of_a_household_shares_the_tail_among_members_and_the_whole():
    """Of n statements that must hold at once each may fail with an n-th of the tail."""
    table = table_of(a=list("xyxyxx"), home=[1, 1, 2, 2, 3, 3])
    measure = HouseholdRisk(fraction=0.1)

    def end(alike, statements):
        return far_risk(np.array([float(alike)]), np.array([0.1]), 0.025 / statements)[0]

    def either(*ends):
        return 1 - np.prod([1 - each for each in ends])

    def far(release, **settings):
        evidence = Evidence(table, release)
        return measure._far(evidence, _Households.of(evidence), **settings)

    left, kept = (Release.of(each, source_rows=np.arange(6)) for each in (table.select(["a"]), table))
    expected = [either(end(4, 2), end(2, 2))] * 2 + [either(end(4, 2), end(4, 2))]
    np.testing.assert_allclose(far(left, by_model=True), expected)
    members = [either(end(4, 3), end(2, 3))] * 2 + [either(end(4, 3), end(4, 3))]
    np.testing.assert_allclose(
        far(kept, by_model=True), np.maximum(members, [end(2, 3), end(2, 3), end(1, 3)])
    )
    assert (far(kept) > far(kept, by_model=True)).any()  # some population that fits has it so


def test_a_household_that_is_like_no_other_has_the_far_end_of_one_alone():
    """Of sixty households of x and y, and one of two x: each member is one of sixty, and together they are alone."""
    table = table_of(a=[*list("xy") * 60, "x", "x"], home=[*np.repeat(np.arange(60), 2).tolist(), 60, 60])
    apart, together = (
        Evidence(table, Release.of(released, source_rows=np.arange(122)))
        for released in (table.select(["a"]), table)
    )
    measure = HouseholdRisk(fraction=0.1)
    assert measure.far_of_records(apart)[-1] < 0.2
    assert measure.far_of_records(together)[-1] >= far_risk(np.ones(1), np.full(1, 0.1), 0.025)[0] > 0.3
    assert measure.score(together, Run(seed=1)).interval[1] > 0.3


# ------------------------------------------------------------------------------------------------- enforcing


@pytest.fixture(scope="module")
def survey():
    rng = np.random.default_rng(11)
    return table_of(
        a=rng.choice(list("abcdefgh"), 120, p=np.array([30, 25, 20, 10, 6, 5, 2, 2]) / 100).tolist(),
        b=rng.choice([1, 2, 3], 120).tolist(),
        w=rng.uniform(20, 60, 120).tolist(),
        home=(np.arange(120) // 3).tolist(),
    )


ASKED = "individual-risk <= 0.1 at 90%"


@pytest.mark.parametrize(
    ("method", "left"),
    [
        (LocalSuppression(k=1, also=(ASKED,), missing="category"), 60),
        (RecordSuppression(k=1, also=(ASKED,), show="drop"), 60),
        # Of so few people nearly any population fits, the more so of households.
        (RecordSuppression(k=1, also=("household-risk <= 0.2 at 80%",), show="drop"), 20),
        (Mondrian(k=1, also=(ASKED,)), 60),
    ],
    ids=lambda each: f"{each.name} {each.also}" if isinstance(each, Method) else "",
)
def test_a_threshold_is_enforced(survey, method, left):
    asked = Requirement.parse(method.also[0])
    assert not asked.met_by(asked.measure.score(Evidence(original=survey), Run(seed=1)))
    release = Recipe((Step(method, ("a", "b")),)).apply(survey, Run(seed=1))
    score = asked.measure.score(Evidence(original=release.table), Run(seed=1))
    assert asked.met_by(score)
    assert "(estimated at" in asked.verdict(score)
    assert len(release.table) > left


def test_without_a_confidence_nothing_is_enforced(survey):
    method = RecordSuppression(k=1, also=("individual-risk <= 0.1",))
    with pytest.raises(
        RefusedError, match="individual-risk must be certain to be enforced, got: approximate"
    ):
        Recipe((Step(method, ("a", "b")),)).apply(survey, Run(seed=1))


def test_a_sample_of_people_who_are_all_alone_passes_nothing():
    """Nothing in it tells of others: the model says one chance in 145, and everybody may be unique out there."""
    score = score_of(IndividualRisk(fraction=0.001), table_of(key=[f"v{i}" for i in range(200)]))
    assert score.value == pytest.approx(-math.log(0.001) * 0.001 / 0.999)
    assert score.interval[1] == 1.0
    assert "fewer large classes than it expects" in score.reason
    assert not Requirement.parse("individual-risk(fraction=0.001) <= 0.05 at 95%").met_by(score)


def sizes_of(shift, times, least, n, rng):
    """Sizes of n classes whose numbers fall as the generalised model says, none of fewer than ``least``."""
    f = np.arange(least, 4000)
    logs = special.gammaln(f + shift) - special.gammaln(f + 1) + f * np.log(times)
    chances = np.exp(logs - logs.max())
    return rng.choice(f, n, p=chances / chances.sum())


@pytest.mark.parametrize("least", [1, 2, 6])
@pytest.mark.parametrize(("shift", "times"), [(-0.6, 1.0), (0.0, 0.5), (-0.5, 0.7)])
def test_sizes_tell_of_others(least, shift, times):
    """What is left if small classes are suppressed tells the same: of (f + a)·q others each, near the least."""
    told = size_model_of(sizes_of(shift, times, least, 4000, np.random.default_rng(3)), 0.025)
    others = [(least + each.shift) * each.times for each in (told, SizeModel(shift, times))]
    assert others[0] == pytest.approx(others[1], rel=0.12)


def test_sizes_as_the_model_takes_them_tell_nothing():
    """Falsely in 1 sample of 40 at most; nor do few classes, or one."""
    samples = [sizes_of(0, 1, 1, 300, np.random.default_rng(seed)) for seed in range(40)]
    assert sum(size_model_of(sizes, 0.025) != SizeModel(0, 1) for sizes in samples) <= 3
    for few in ([1], [1, 1, 1], [7], [50, 61, 80, 200]):
        assert size_model_of(np.array(few), 0.025) == SizeModel(0, 1)


def test_all_alone_have_nobody_beside():
    told = size_model_of(np.ones(40, dtype=np.int64), 0.025)
    assert told.times < 0.01
    assert far_risk(np.ones(1), np.array([0.001]), 0.025, told)[0] == 1


@pytest.mark.parametrize("level", [0.1, 0.2])
def test_who_is_left_when_small_classes_go(level):
    """Where many are alone in the population, the classes that are left tell it still.

    By the plain model many of the records left would be above the level: more than a twentieth here, and up
    to two thirds in samples of patients.
    """
    rng, left, above = np.random.default_rng(8), np.zeros(2), np.zeros(2)
    for _ in range(6):
        people = sizes_of(-0.4, 0.93, 1, 9000, rng)
        alike = rng.binomial(people, 0.05)
        people, alike = people[alike > 0], alike[alike > 0]
        at_risk, shares = 1 / people > level * (1 + 1e-9), np.full(len(alike), 0.05)
        for way in (0, 1):
            kept = failing = np.ones(len(alike), dtype=bool)
            while (failing & kept).any():
                told = size_model_of(alike[kept], 0.025) if way else SizeModel(0, 1)
                failing = far_risk(alike.astype(float), shares, 0.025, told) > level
                kept = kept & ~failing
            left[way] += alike[kept].sum()
            above[way] += alike[kept] @ at_risk[kept]
    assert above[1] <= 0.05 * left[1] < 0.05 * left[0] < above[0]


def test_who_was_dropped_was_drawn():
    """Of a population of 100, ten were drawn; that five of them are released does not make it fewer."""
    original = table_of(key=["a"] * 5 + list("vwxyz"))
    measure = IndividualRisk(population_size=100)
    released = Evidence(original, Release.of(original.take(np.arange(5)), source_rows=np.arange(5)))
    score = measure.score(released, Run(seed=1))
    assert score.value == pytest.approx(risk(5, 0.1))
    assert measure.people(released) == 50
