"""Populations that a sample allows: against another solver, populations that are known, and the ends."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.optimize import minimize
from scipy.stats import binom, norm

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.requirement import Requirement
from sfumato.core.run import Run
from sfumato.data.schema import Kind, Role
from sfumato.risk._model_fitting import SizeFrequencies
from sfumato.risk._possible_populations import PossiblePopulations
from sfumato.risk._sample_classes import far_risk
from sfumato.risk.copula import CopulaRisk
from sfumato.risk.household import HouseholdRisk
from sfumato.risk.individual import IndividualRisk
from sfumato.risk.log_linear import LogLinearRisk
from sfumato.risk.population import PopulationUniqueness
from sfumato.risk.suda import DisSuda
from toys import table_of

NOMINAL, HOME = Kind.NOMINAL, (Kind.NOMINAL, Role.HOUSEHOLD)
TAIL = 0.025
SHARED = Path(__file__).resolve().parents[4] / "shared" / "data"


def possible(sizes, counts, share, drawn=None):
    sizes, counts = np.array(sizes, dtype=float), np.array(counts, dtype=float)
    return PossiblePopulations.of(SizeFrequencies(sizes, counts, sizes @ counts / share, 0.0), drawn or 0.0)


def score_of(measure, **columns):
    return measure.score(Evidence(table_of(columns, key=NOMINAL, home=HOME)), Run(seed=1))


# ----------------------------------------------------------------------------------------------- the equations


@pytest.mark.parametrize(("least", "share"), [(1, 0.3), (4, 0.05), (1, 1e-9)])
def test_each_row_is_what_a_class_gives_on_average(least, share):
    found = possible([least, 500], [5, 1], share)
    last = int(found.sizes[-1])
    assert found.sizes.tolist() == list(range(least, last + 1))
    for column, people in enumerate(found.people[:60]):
        assert found.chances[:, column] == pytest.approx(binom.pmf(found.sizes, people, share), rel=1e-6)
        drawn = np.arange(last + 1, min(people, 4000) + 1)
        larger = drawn @ binom.pmf(drawn, people, share)
        in_deviations = np.sqrt(500 + last**2 / 4)
        assert found.equations[-2, column] * in_deviations == pytest.approx(larger, rel=1e-6, abs=1e-12)


def by_another_solver(counts, share, sign):
    """The most (or fewest) uniques of both, over classes of every size up to 150: a constrained minimum."""
    sizes, people = np.arange(1, 17), np.arange(1, 151)
    seen = np.zeros(16)
    seen[: len(counts)] = counts
    chances, deviations = binom.pmf(sizes[:, None], people, share), np.sqrt(np.maximum(seen, 1))
    scale = seen.sum() / share

    def misfit(numbers):
        return float((((chances @ numbers * scale - seen) / deviations) ** 2).sum())

    def slope(numbers):
        return 2 * scale * chances.T @ ((chances @ numbers * scale - seen) / deviations**2)

    start = np.full(len(people), 1 / len(people) / 20)
    bounds, precise = [(0, None)] * len(people), {"maxiter": 3000, "ftol": 1e-12}
    best = minimize(misfit, start, jac=slope, bounds=bounds, method="SLSQP", options=precise)
    most = best.fun + norm.ppf(TAIL) ** 2
    unit = np.eye(len(people))[0]
    found = minimize(
        lambda numbers: -sign * numbers[0], best.x, jac=lambda _: -sign * unit, bounds=bounds, method="SLSQP",
        constraints={"type": "ineq", "fun": lambda x: most - misfit(x), "jac": lambda x: -slope(x)}, options=precise,
    )  # fmt: skip
    return float(found.x[0] * scale * share)


@pytest.mark.parametrize(("counts", "share"), [((60, 30, 12, 4, 1), 0.2), ((300, 40, 4), 0.3)])
def test_the_ends_are_those_of_another_solver(counts, share):
    low, high = possible(range(1, len(counts) + 1), counts, share).unique(TAIL)
    assert high == pytest.approx(min(by_another_solver(counts, share, 1), counts[0]), rel=0.01)
    assert low == pytest.approx(max(by_another_solver(counts, share, -1), 0), rel=0.01, abs=0.5)


# ------------------------------------------------------------------------------------------------- the ends


def test_all_unique_may_be_alone_and_pairs_tell_of_others():
    assert possible([1], [40], 0.1).unique(TAIL)[1] == 40
    # Pairs and triples as of groups of thirty: most of the uniques are of such groups, too.
    groups = binom.pmf([1, 2, 3, 4, 5, 6, 7, 8], 30, 0.1) * 1000
    low, high = possible(range(1, 9), groups, 0.1).unique(TAIL)
    assert low == 0
    assert high < 0.6 * groups[0]
    # Of few who were drawn nobody can tell one of one from one of five.
    assert possible([1, 2], [200, 1], 0.001).unique(TAIL) == (0, 200)


def test_surer_ends_are_wider():
    found = possible([1, 2, 3, 4, 10], [200, 90, 40, 12, 3], 0.2)
    usual, surer = found.unique(0.05), found.unique(0.005)
    assert surer[0] <= usual[0] <= usual[1] < surer[1] < 200


def test_how_few_the_people_of_a_class_may_be():
    found = possible([1, 2, 3, 4, 10], [200, 90, 40, 12, 3], 0.2)
    fewest = {size: found.fewest(size, 1000, TAIL) for size in (1, 2, 3, 4, 10)}
    assert fewest[1] == 1  # nothing rules out that some are alone
    assert all(few >= size for size, few in fewest.items())
    assert found.fewest(10, fewest[10], TAIL) == fewest[10] > 20
    assert found.fewest(10, fewest[10] - 1, TAIL) is None
    assert found.fewest(4, 1000, 0.2) > fewest[4]  # so few that a larger share may have it are more
    assert found.fewest(5, 1000, TAIL) is None  # nobody is in such a class


def test_who_was_suppressed_leaves_room_for_small_classes():
    """That 3,000 were drawn and 400 are left tells less than that only the 400 were drawn."""
    few, many = (possible([3, 4, 5], [100, 15, 8], 0.1, drawn).fewest(3, 1000, TAIL) for drawn in (400, 3000))
    assert many < few


@pytest.mark.parametrize("share", [1e-12, 1e-4, 0.5, 0.999999])
@pytest.mark.parametrize("sizes", [[1], [1, 2], [7], [10**6, 10**9], [1, 10**9]])
def test_any_sample_has_ends(sizes, share):
    for times in (1, 3000):
        low, high = possible(sizes, [times] * len(sizes), share).unique(TAIL)
        assert 0 <= low <= high <= (times if sizes[0] == 1 else 0)


# ------------------------------------------------------------------------------ populations that are known


def mixture(alone, size, seed, people=20_000):
    """So many have a class of their own, the others are in groups."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, people // size, people)
    return np.where(rng.random(people) < alone, people + np.arange(people), groups)


def drawn(population, fraction, seed):
    """The keys of a sample, and how many in the population are like each record."""
    _, cell, sizes = np.unique(population, return_inverse=True, return_counts=True)
    rows = np.random.default_rng(seed).choice(len(cell), int(fraction * len(cell)), replace=False)
    return cell[rows], sizes[cell[rows]]


def uniqueness_and_far(keys, people, fraction, **more):
    score = score_of(PopulationUniqueness(fraction=fraction, **more), key=keys.tolist())
    return float(((np.bincount(keys)[keys] == 1) & (people == 1)).mean()), score


@pytest.mark.parametrize(
    ("alone", "size", "fraction"),
    [
        (0.5, 100, 0.02), (0.5, 100, 0.05), (0.2, 400, 0.02), (0.2, 400, 0.05), (0.5, 8, 0.1), (0.5, 8, 0.2), (0.5, 30, 0.2),
        (0.05, 400, 0.2), (0.2, 100, 0.005), (0.05, 8, 0.02), (0.05, 100, 0.1), (0.2, 8, 0.1),
    ],
)  # fmt: skip
def test_the_truth_is_not_beyond_the_far_end(alone, size, fraction):
    """Where it was, by two to five times, in nearly every draw of the first seven that could be estimated."""
    for seed in range(2):
        keys, people = drawn(mixture(alone, size, seed), fraction, seed)
        truth, score = uniqueness_and_far(keys, people, fraction, model="zayatz")
        assert score.confidence == 95
        assert score.interval[0] <= truth <= score.interval[1]


@pytest.mark.parametrize("chance", ["unique", "match"])
def test_a_log_linear_model_that_fits_by_chance_is_not_trusted(chance):
    """Groups beside people alone, in two keys by the number of the class: the model had half of the truth."""
    keys, people = drawn(mixture(0.5, 100, 0), 0.05, 7)
    columns = {"key": (keys // 150).tolist(), "other": (keys % 150).tolist()}
    table = table_of(columns, key=NOMINAL, other=NOMINAL)
    score = LogLinearRisk(fraction=0.05, chance=chance).score(Evidence(table), Run(seed=1))
    ones = np.bincount(keys)[keys] == 1
    truth = float((ones * (people == 1 if chance == "unique" else 1 / people)).mean())
    assert score.confidence == 95
    assert score.interval[0] <= truth <= score.interval[1]
    assert score.value < 0.7 * truth


def test_matches_that_are_right_are_no_fewer_than_uniques():
    found = possible([1, 2, 3, 4, 10], [200, 90, 40, 12, 3], 0.2)
    unique, match = found.unique(TAIL), found.unique(TAIL, match=True)
    assert unique[0] <= match[0] < match[1] <= 200
    assert unique[1] <= match[1]


@pytest.mark.skipif(not SHARED.exists(), reason="the reference data are not here")
def test_adult_by_age_gain_country_and_occupation():
    names = ["age", "capital-gain", "native-country", "occupation"]
    population = pl.read_csv(SHARED / "adult" / "adult_uci.csv").select(names).hash_rows(seed=1).to_numpy()
    for fraction in (0.05, 0.1):
        keys, people = drawn(population, fraction, 3)
        truth, score = uniqueness_and_far(keys, people, fraction)
        assert score.value < truth < score.interval[1]  # Pitman's model has half of it


@pytest.mark.parametrize(
    ("alone", "size", "fraction"),
    [(0.06, 100, 0.01), (0.09, 100, 0.01), (0.06, 400, 0.005), (0.01, 400, 0.02), (0.03, 400, 0.02), (0.09, 400, 0.02)],
)  # fmt: skip
def test_no_more_records_than_said_are_beyond_the_far_end_of_individual_risk(alone, size, fraction):
    """A few alone beside groups, up to eight of which were drawn: by the model no risk was above a half."""
    keys, people = drawn(mixture(alone, size, 5), fraction, 5)
    score = score_of(IndividualRisk(fraction=fraction), key=keys.tolist())
    ones = np.bincount(keys)[keys] == 1
    assert (1 / people[ones] > score.interval[1]).mean() <= TAIL < (people[ones] == 1).mean()
    assert "fit the class sizes" in score.reason
    assert not Requirement.parse(f"individual-risk(fraction={fraction}) <= 0.9 at 95%").met_by(score)
    homes = score_of(HouseholdRisk(fraction=fraction), key=keys.tolist(), home=np.arange(len(keys)).tolist())
    assert homes.interval[1] >= score.interval[1]


def test_larger_classes_have_about_the_far_end_of_the_model():
    """Twenty and more of a tenth: that these are one of few in the population does not fit."""
    keys = np.repeat(np.arange(100), 20 + np.arange(100) % 30)
    measure = IndividualRisk(fraction=0.1)
    evidence = Evidence(table_of({"key": keys.tolist()}, key=NOMINAL))
    classes = measure.classes(evidence)
    shares, alike = np.full(100, 0.1), classes.persons.astype(float)
    by_model = far_risk(alike, shares, TAIL, measure.size_model(classes))
    far = measure.far_of_classes(evidence, classes)
    assert (far >= by_model).all()
    assert far.max() < 1.4 * by_model.max() < 0.02


@pytest.mark.parametrize("missing", ["category", "any", "worst"])
@pytest.mark.parametrize("seed", range(6))
def test_mixed_tables_of_any_shape_have_ends_about_the_estimate(seed, missing):
    """Text, holes, ties, constants, one record; and what is enforced is what the score goes by."""
    rng = np.random.default_rng(seed)
    n, most = (1, 1) if seed == 0 else (rng.integers(2, 60), rng.integers(1, 30))
    words = [None if rng.random() < 0.15 else f"w{value}" for value in rng.integers(0, most, n)]
    columns = {"key": words, "other": [1.5] * n, "w": rng.uniform(1, 400, n).tolist()}
    table = table_of(columns, key=NOMINAL, w=(Kind.CONTINUOUS, Role.WEIGHT))
    for measure in (PopulationUniqueness(model="zayatz", missing=missing), IndividualRisk(missing=missing)):
        score = measure.score(Evidence(table), Run(seed=1))
        if score.interval is not None:
            assert 0 <= score.interval[0] <= score.value <= score.interval[1] <= 1
    far = measure.far_of_classes(Evidence(table), measure.classes(Evidence(table)))
    assert far.max() == pytest.approx(score.interval[1], rel=1e-12)
    assert (far >= measure.of_classes(Evidence(table), measure.classes(Evidence(table)))).all()


# --------------------------------------------------------------------------------------------------- weights

KEYS = [*range(30), *range(30, 45), *range(30, 45), *[50] * 20]


@pytest.mark.parametrize(
    "measure", [PopulationUniqueness(model="ewens"), LogLinearRisk(), CopulaRisk(), DisSuda()], ids=lambda each: each.name
)  # fmt: skip
def test_one_huge_weight_hides_nobody(measure):
    kinds = {"key": NOMINAL, "other": NOMINAL, "w": (Kind.CONTINUOUS, Role.WEIGHT)}
    columns = {"key": [key % 9 for key in KEYS], "other": [key // 9 for key in KEYS]}

    def scored(weights):
        table = table_of({**columns, "w": weights}, **kinds)
        return measure.score(Evidence(table), Run(seed=1))

    usual, huge = scored([10.0] * len(KEYS)), scored([10.0] * (len(KEYS) - 1) + [1e12])
    assert usual.status is huge.status is Status.APPROXIMATE
    assert huge.value > 0.8 * usual.value > 0
    assert "check the largest weights" in huge.reason
    assert "weights" not in usual.reason


def test_who_tells_nothing_of_the_draw_passes_nothing():
    score = score_of(PopulationUniqueness(), key=KEYS)
    assert score.status is Status.REFUSED
    assert not Requirement.parse("population-uniqueness <= 1 at 95%").met_by(score)
