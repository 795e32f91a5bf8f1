"""Population uniqueness: closed forms, the ends of what can be told, and draws from each model."""

import math

import numpy as np
import pytest
from scipy.special import comb, gammaln, psi

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.schema import Kind, Role
from sfumato.risk._model_fitting import SizeFrequencies, log_rising
from sfumato.risk._population_models import Ewens, Zayatz
from sfumato.risk.population import _MODELS, PopulationUniqueness
from toys import table_of

NOMINAL = Kind.NOMINAL
FITTED = (
    "pitman",
    "ewens",
    "log-series",
    "dirichlet-multinomial",
    "poisson-gamma",
    "slide-negative-binomial",
)


def score_of(values, *, more=None, **parameters):
    columns, kinds = more or ({}, {})
    table = table_of({"key": list(values), **columns}, key=NOMINAL, **kinds)
    return PopulationUniqueness(**parameters).score(Evidence(table), Run(seed=1))


def classes(*sizes):
    """A key whose values occur so often."""
    return np.repeat(np.arange(len(sizes)), sizes).tolist()


# 30 who are unique, 15 pairs, 5 of three, 2 of ten.
MIXED = classes(*[1] * 30, *[2] * 15, *[3] * 5, *[10] * 2)
N, U = len(MIXED), 52


# ---------------------------------------------------------------------------------------- closed forms


def test_ewens():
    score = score_of(MIXED, model="ewens", fraction=0.1)
    theta = score.details["theta"]
    assert theta * (psi(theta + N) - psi(theta)) == pytest.approx(U, rel=1e-6)  # the likelihood's root
    chance = (theta + N - 1) / (theta + 10 * N - 1)
    assert score.value == pytest.approx(30 * chance / N, rel=1e-9)
    assert score.status is Status.APPROXIMATE
    assert 0 <= score.interval[0] < score.value < score.interval[1] <= 30 / N
    assert score.by_record[:30].tolist() == [pytest.approx(chance)] * 30
    assert not score.by_record[30:].any()


def test_log_series():
    score = score_of(MIXED, model="log-series", fraction=0.1)
    theta = score.details["theta"]
    assert theta * math.log1p(N / theta) == pytest.approx(U, rel=1e-6)
    assert score.details["chance"] == pytest.approx((theta + N) / (theta + 10 * N), rel=1e-9)


def test_pitman_product():
    """Person by person: nobody joins while the rest of the population comes."""
    score = score_of(MIXED, model="pitman", population_size=4 * N)
    alpha, theta = score.details["alpha"], score.details["theta"]
    chance = math.prod(1 - (1 - alpha) / (theta + j) for j in range(N, 4 * N))
    assert 0 < alpha < 1
    assert score.details["chance"] == pytest.approx(chance, rel=1e-9)
    assert score.details["population_uniques"] == pytest.approx(30 * chance * 4)


def test_dirichlet_multinomial_product():
    # The key has as many cells as values: 52.
    score = score_of(MIXED, model="dirichlet-multinomial", fraction=0.5)
    gamma = score.details["gamma"]
    chance = math.prod(1 - (1 + gamma) / (U * gamma + j) for j in range(N, 2 * N))
    assert score.details["chance"] == pytest.approx(chance, rel=1e-9)


def test_slide_negative_binomial_adds_up():
    """The chance is that of a population drawn size by size."""
    score = score_of(MIXED, model="slide-negative-binomial", fraction=0.25)
    shape, scale = score.details["shape"], score.details["scale"]
    others = np.arange(3000.0)
    sizes = np.exp(
        gammaln(shape + others) - gammaln(shape) - gammaln(others + 1)
        - shape * math.log1p(scale) + others * (math.log(scale) - math.log1p(scale))
    )  # fmt: skip
    one_drawn = (others + 1) * 0.25 * 0.75**others
    assert score.details["chance"] == pytest.approx(sizes[0] * 0.25 / (sizes @ one_drawn), rel=1e-8)


def test_zayatz():
    """Hypergeometric, with whole numbers."""
    n, people = 12, 30
    sample = SizeFrequencies.of(np.array([1, 1, 1, 2, 3, 4]), people, 6)
    looks = {j: j * comb(people - j, n - 1, exact=True) for j in (1, 2, 3, 4)}
    expected = 3 * looks[1] / (3 * looks[1] + looks[2] + looks[3] + looks[4])
    assert Zayatz().estimate(sample).chance == pytest.approx(expected, rel=1e-12)


def test_good_toulmin_without_smoothing():
    """Of a sample of two thirds: λ = 1/2."""
    score = score_of(MIXED, model="good-toulmin", fraction=2 / 3)
    terms = 30 - 0.5 * 2 * 15 + 0.5**2 * 3 * 5 - 0.5**9 * 10 * 2
    assert score.details["uniques_in_both"] == pytest.approx(terms)


def test_logarithms_of_large_factorials():
    for start, times in ((0.3, 5), (2e3, 7), (999.5, 1e4), (1e9, 3)):
        exact = sum(math.log(start + i) for i in range(int(times)))
        assert float(log_rising(start, times)) == pytest.approx(exact, rel=1e-13)


# ------------------------------------------------------------------------------- ends of what can be told


@pytest.mark.parametrize("model", _MODELS)
def test_a_whole_population_is_certain(model):
    score = score_of(MIXED, model=model, fraction=1)
    assert (score.value, score.status, score.interval) == (30 / N, Status.OK, None)


@pytest.mark.parametrize("model", _MODELS)
def test_nobody_unique_in_the_sample(model):
    score = score_of(classes(5, 5), model=model, fraction=0.1)
    assert (score.value, score.status) == (0, Status.OK)


@pytest.mark.parametrize("model", _MODELS)
@pytest.mark.parametrize("sizes", [[1], [1] * 40], ids=["one record", "all unique"])
def test_all_unique_is_never_safe(model, sizes):
    """A model that cannot be fitted gives no number; zayatz says the worst."""
    score = score_of(classes(*sizes), model=model, fraction=0.1)
    if model == "zayatz":
        assert score.value == 1
    else:
        assert score.status is Status.NOT_ESTIMABLE
        assert score.reason


def test_all_alike_but_one():
    """Little is known, and the interval says so: from nothing to the one who is unique."""
    score = score_of(classes(1, 200), model="ewens", fraction=0.1)
    assert score.interval[0] < 1e-5
    assert score.interval[1] > 0.9 / 201


def test_too_small_a_fraction_for_no_model():
    score = score_of(MIXED, model="good-toulmin", fraction=0.01)
    assert score.status is Status.NOT_ESTIMABLE
    assert "gives no estimate" in score.reason


def test_no_maximum_inside():
    """Classes of equal size are more alike than any mixture: the parameters run away."""
    for model, parameter in {
        "poisson-gamma": "shape",
        "dirichlet-multinomial": "gamma",
        "pitman": "alpha",
    }.items():
        score = score_of(classes(*[20] * 30, 1), model=model, fraction=0.1)
        assert score.status is Status.NOT_ESTIMABLE
        assert f"{parameter} goes to the edge" in score.reason


def test_a_model_that_does_not_fit_says_so():
    """Many unique beside few large classes: no single parameter tells both."""
    values = classes(*[1] * 200, *[100] * 5)
    score = score_of(values, model="ewens", fraction=0.1)
    assert "does not fit" in score.reason
    assert score.interval[1] == 200 / 700  # the interval does not rest on the model: all may be alone
    assert score.details["expected_uniques"] < 150
    fits = score_of(MIXED, model="pitman", fraction=0.1)
    assert "does not fit" not in fits.reason
    assert fits.confidence == score.confidence == 95


@pytest.mark.parametrize("model", ["pitman", "ewens", "dirichlet-multinomial"])
def test_expected_uniques(model):
    """By the product over who comes: nobody joins the first."""
    details = score_of(MIXED, model=model, fraction=0.1).details
    alpha, gamma = details.get("alpha", 0), details.get("gamma", 0)
    theta = details.get("theta", U * gamma)
    alone = math.prod(1 - (1 - alpha + gamma) / (theta + j) for j in range(1, N))
    assert details["expected_uniques"] == pytest.approx(N * alone)


def test_what_was_drawn_must_be_told():
    assert score_of(MIXED).status is Status.REFUSED
    weights = ({"w": [4.0] * N}, {"w": (Kind.CONTINUOUS, Role.WEIGHT)})
    told = score_of(MIXED, more=weights, model="ewens")
    assert told.value == pytest.approx(score_of(MIXED, model="ewens", fraction=0.25).value)
    light = score_of(MIXED, more=({"w": [0.5] * N}, weights[1]), model="ewens")
    assert light.status is Status.NOT_ESTIMABLE


def test_missing_keys():
    holes = [*MIXED, None, None]
    score = score_of(holes, model="ewens", fraction=0.5, missing="worst")
    assert score.details["sample_uniques"] == 32
    assert score_of(holes, model="ewens", fraction=0.5, missing="any").status is Status.NOT_ESTIMABLE


def test_at_worst_who_lacks_a_key_is_unique_out_there():
    """Ten of 105 lack the key; the others are as if they were all."""
    plain = score_of(MIXED, fraction=0.1, model="ewens")
    worst = score_of([*MIXED, *[None] * 10], fraction=0.1, model="ewens", missing="worst")
    assert worst.value == pytest.approx((10 + N * plain.value) / (N + 10))
    assert worst.interval == pytest.approx([(10 + N * end) / (N + 10) for end in plain.interval])
    assert worst.by_record[-10:].tolist() == [1] * 10
    nobody = score_of([None] * 4, fraction=0.1, missing="worst")
    assert (nobody.value, nobody.status) == (1, Status.OK)


def test_a_surer_interval_is_wider():
    many = MIXED + [value + 100 for value in MIXED] + [value + 200 for value in MIXED]
    usual, surer = (score_of(many, model="ewens", fraction=0.5, confidence=c).interval for c in (60, 95))
    assert surer[0] <= usual[0] < usual[1] < surer[1]


# ------------------------------------------------------------------------------------ draws from each model


def pitman_process(rng, n, theta, alpha):
    """People come one by one and join a class by its size less alpha, or begin a new one."""
    of_person, sizes = np.empty(n, dtype=np.int64), []
    for i in range(n):
        if rng.random() * (theta + i) < theta + alpha * len(sizes):
            of_person[i] = len(sizes)
            sizes.append(1)
            continue
        joined = of_person[rng.integers(i)]
        while rng.random() * sizes[joined] < alpha:
            joined = of_person[rng.integers(i)]
        of_person[i] = joined
        sizes[joined] += 1
    return of_person


def shuffled(rng, sizes):
    return rng.permutation(np.repeat(np.arange(len(sizes)), sizes))


CELLS = 1000
DRAWS = {
    "ewens": lambda rng, n: pitman_process(rng, n, 60, 0),
    "pitman": lambda rng, n: pitman_process(rng, n, 30, 0.5),
    "log-series": lambda rng, n: shuffled(
        rng, np.repeat(np.arange(1, 20 * n), rng.poisson(60 * (n / (n + 60)) ** np.arange(1, 20 * n) / np.arange(1, 20 * n)))
    ),
    "dirichlet-multinomial": lambda rng, n: rng.choice(CELLS, n, p=rng.dirichlet(np.full(CELLS, 0.2))),
    "poisson-gamma": lambda rng, n: shuffled(rng, rng.poisson(n * rng.gamma(0.2, 5 / CELLS, CELLS))),
    "slide-negative-binomial": lambda rng, n: shuffled(rng, 1 + rng.negative_binomial(0.5, 1 / 11, n // 6)),
}  # fmt: skip


#: What has no model of its own is asked of draws from another, of such a share. Dankar's rule is to take
#: Pitman's model of few; of more it takes the lower of two. Zayatz takes the population to be like the sample.
RULES = {
    "zayatz": ("pitman", 0.5),
    "good-toulmin": ("ewens", 0.6),
    "dankar": ("pitman", 0.1),
    "dankar of many": ("pitman", 0.5),
}
FEW = [(model, model, 0.05) for model in ("ewens", "log-series", "dirichlet-multinomial", "poisson-gamma")]
OF_EACH = [(model, model, 0.25) for model in DRAWS] + [(model, *by) for model, by in RULES.items()] + FEW


def covered(model, by, share, seeds, people=2000):
    """Of how many draws the interval holds the share that is unique in both, and the mean error."""
    hits, errors = [], []
    for seed in seeds:
        of_person = DRAWS[by](np.random.default_rng(seed), people)
        n = int(len(of_person) * share)
        population = np.bincount(of_person)
        sample = np.bincount(of_person[:n], minlength=len(population))
        truth = int(((population == 1) & (sample == 1)).sum())
        counts = SizeFrequencies.of(sample[sample > 0], len(of_person), CELLS)
        found = _MODELS[model.removesuffix(" of many")].estimate(counts)
        if isinstance(found, str):
            assert model in RULES, found  # a sample may be too small for no model, or for two parameters
            continue
        low, high = PopulationUniqueness()._by_model(counts.uniques, found)
        hits.append(low * counts.uniques <= truth <= high * counts.uniques)
        errors.append((found.chance * counts.uniques - truth) / n)
    assert len(hits) > len(seeds) / 2
    return np.mean(hits), np.mean(errors)


@pytest.mark.parametrize(("model", "by", "share"), OF_EACH)
def test_draws_from_the_model(model, by, share):
    """Of 8 intervals of 95 %, 6 hold the truth but for 1 time in 150."""
    held, error = covered(model, by, share, range(8))
    assert held >= 6 / 8
    assert abs(error) < 0.03


@pytest.mark.slow
@pytest.mark.parametrize(("model", "by", "share"), OF_EACH)
def test_most_intervals_cover(model, by, share):
    """Of 200 intervals of 95 % at least 90 % hold the truth."""
    held, error = covered(model, by, share, range(200))
    assert held >= 0.9
    assert abs(error) < 0.01


def test_one_model_is_the_end_of_another():
    """Ewens' estimate is that of Dirichlet cells without number."""
    sizes = np.array([1] * 30 + [2] * 15 + [3] * 5 + [10] * 2)
    many = _MODELS["dirichlet-multinomial"].estimate(SizeFrequencies.of(sizes, 950.0, 1e9))
    assert many.chance == pytest.approx(
        Ewens().estimate(SizeFrequencies.of(sizes, 950.0, 1e9)).chance, rel=1e-5
    )


def test_weights_that_are_not_released_still_tell():
    columns, kinds = {"key": MIXED, "w": [4.0] * N}, {"key": NOMINAL, "w": (Kind.CONTINUOUS, Role.WEIGHT)}
    table = table_of(columns, **kinds)
    evidence = Evidence(table, Release.of(table.select(("key",)), source_rows=np.arange(N)))
    told = PopulationUniqueness(model="ewens").score(evidence, Run(seed=1))
    assert told.value == pytest.approx(score_of(MIXED, model="ewens", fraction=0.25).value)
