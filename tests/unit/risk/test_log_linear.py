"""Log-linear risk: by hand, against loops over all cells and statsmodels, and draws from the model."""

import math
from collections import Counter
from itertools import product

import numpy as np
import pytest

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.classes.classes import Classes
from sfumato.data.schema import Kind, Role
from sfumato.risk import _log_linear as fitting
from sfumato.risk._cells import ContingencyCells
from sfumato.risk.log_linear import LogLinearRisk
from toys import table_of

NOMINAL = Kind.NOMINAL


def keyed(columns):
    """A table of nominal keys, one for each column of an array."""
    named = {f"k{place}": column.tolist() for place, column in enumerate(np.asarray(columns).T)}
    return table_of(named, **dict.fromkeys(named, NOMINAL))


def cells_of(columns):
    table = keyed(columns)
    return ContingencyCells.of(Classes.of(table, table.names))


def score_of(columns, **parameters):
    return LogLinearRisk(**parameters).score(Evidence(keyed(columns)), Run(seed=1))


def correlated(rng, n, sizes=(4, 3, 5)):
    """Keys each of which often follows the one before."""
    columns = [rng.integers(0, sizes[0], n)]
    for size in sizes[1:]:
        columns.append(np.where(rng.random(n) < 0.5, columns[-1] % size, rng.integers(0, size, n)))
    return np.stack(columns, axis=1)


SMALL = correlated(np.random.default_rng(3), 60)


# ------------------------------------------------------------------------------------------- the means


def test_independence_is_the_product_of_shares():
    cells = cells_of(SMALL)
    means = fitting.independence(cells, Run(seed=1))
    for codes, mean in zip(cells.codes, means.filled, strict=True):
        shares = [cells.margin(key)[code] / 60 for key, code in enumerate(codes)]
        assert mean == pytest.approx(60 * math.prod(shares))
    assert means.over_all(lambda mu: mu) == pytest.approx(60)
    assert len(means.all) == cells.total


def test_two_way_against_statsmodels():
    glm = pytest.importorskip("statsmodels.genmod.generalized_linear_model")
    families = pytest.importorskip("statsmodels.genmod.families")
    cells = cells_of(correlated(np.random.default_rng(1), 3000, (2, 3, 2)))
    counted = dict(zip(map(tuple, cells.codes.tolist()), cells.counts, strict=True))
    places = list(product(*map(range, cells.sizes)))

    def dummies(code, size):
        return [float(code == value) for value in range(1, size)]

    rows = []
    for place in places:
        singles = [dummies(code, size) for code, size in zip(place, cells.sizes, strict=True)]
        pairs = [a * b for i, j in ((0, 1), (0, 2), (1, 2)) for a in singles[i] for b in singles[j]]
        rows.append([1.0, *(each for single in singles for each in single), *pairs])
    counts = np.array([counted.get(place, 0) for place in places])
    fitted = glm.GLM(counts, np.array(rows), family=families.Poisson()).fit(tol=1e-12).fittedvalues
    assert fitting.two_way(cells, Run(seed=1)).all == pytest.approx(fitted, abs=1e-3)


def test_a_tree_of_pairs():
    """The chain k0 – k1 – k2 is found, and its means are those of pairs, smoothed by so many people."""
    data = correlated(np.random.default_rng(5), 1000)
    cells = cells_of(data)
    first, second, third = fitting._best_tree(cells)
    assert [(edge.key, edge.above) for edge in (first, second, third)] == [(0, None), (1, 0), (2, 1)]
    assert 0 < second.strength < 1000
    means = fitting.tree(cells, Run(seed=1))
    for without, found in ((0, means.filled), (1, means.filled_means)):
        for codes, mean in zip(cells.codes.tolist(), found, strict=True):
            expected = 1000 * ((data[:, 0] == codes[0]).sum() - without) / (1000 - without)
            for edge in (second, third):
                row, here = data[:, edge.above] == codes[edge.above], data[:, edge.key] == codes[edge.key]
                alone = (here.sum() - without) / (1000 - without)
                expected *= ((row & here).sum() - without + edge.strength * alone) / (row.sum() - without + edge.strength)  # fmt: skip
            assert mean == pytest.approx(expected)
    assert means.over_all(lambda mu: mu) == pytest.approx(1000)


@pytest.mark.parametrize("model", [fitting.independence, fitting.tree])
def test_sums_that_are_drawn(model, monkeypatch):
    cells = cells_of(correlated(np.random.default_rng(5), 300, (8, 6, 9)))
    built = model(cells, Run(seed=1))
    monkeypatch.setattr(fitting, "MAX_CELLS", 10)
    drawn = model(cells, Run(seed=1))
    assert drawn.filled == pytest.approx(built.filled)
    assert len(drawn.all) > len(built.all)
    for function in (lambda mu: mu, lambda mu: mu * np.exp(-mu), np.square):
        assert drawn.over_all(function) == pytest.approx(built.over_all(function), rel=0.02)


# ------------------------------------------------------------------------------------------ risk and bias


def without_one(cells, place):
    """The mean of a cell by independence, as all others of the sample tell it."""
    n = cells.n
    return n * math.prod((cells.margin(key)[code] - 1) / (n - 1) for key, code in enumerate(place))


def by_loops(cells, fraction, table, risk):
    """Sum of risks over sample uniques, the bias and its variance, cell by cell."""
    counted = dict(zip(map(tuple, cells.codes.tolist()), cells.counts, strict=True))
    total = bias = variance = 0.0

    def h(mean):
        return risk((1 - fraction) / fraction * mean)

    for place in product(*map(range, cells.sizes)):
        f, mu, step = counted.get(place, 0), table[place], 1e-4 * table[place]
        first = (h(mu + step) - h(mu - step)) / (2 * step)
        second = (h(mu + step) - 2 * h(mu) + h(mu - step)) / step**2
        alone = mu * math.exp(-mu)
        if f == 1:
            total += h(without_one(cells, place))
            bias += h(without_one(cells, place)) - h(mu)
        bias += alone * (-first * (f - mu) + second / 2 * ((f - mu) ** 2 - f))
        variance += alone**2 * (first**2 * mu + second**2 / 2 * mu**2)
    return total, bias, variance


@pytest.mark.parametrize(
    ("chance", "risk"),
    [
        ("unique", lambda rest: math.exp(-rest)),
        ("match", lambda rest: (1 - math.exp(-rest)) / rest if rest else 1.0),
    ],
)
def test_score_by_loops(chance, risk):
    cells = cells_of(SMALL)
    means = fitting.independence(cells, Run(seed=1)).all.reshape(cells.sizes)
    total, bias, variance = by_loops(cells, 0.2, means, risk)
    score = score_of(SMALL, fraction=0.2, model="independence", chance=chance)
    assert score.value == pytest.approx(total / 60)
    assert score.details["bias"] == pytest.approx(bias, rel=1e-4)
    assert score.details["off"] == pytest.approx(bias / math.sqrt(variance), rel=1e-4)
    assert score.details["tau_1"] <= score.details["tau_2"] <= score.details["sample_uniques"]
    assert score.by_record.sum() == pytest.approx(total)


def test_variance_of_the_bias():
    """Counts drawn from the means have a bias of 0 and the variance that is said."""
    rng = np.random.default_rng(2)
    mu = rng.gamma(0.5, 1.0, 400)
    found = []
    for _ in range(400):
        counts = rng.poisson(mu).astype(float)
        found.append(fitting.fit_of(fitting.CellMeans(mu, mu, np.ones(400)), counts, 0.3, fitting.unique))
    biases = np.array([fit.bias for fit in found])
    assert abs(biases.mean()) < 3 * math.sqrt(found[0].bias_variance / 400)
    assert biases.var() == pytest.approx(found[0].bias_variance, rel=0.25)


@pytest.mark.parametrize(("chance", "risk"), [("unique", fitting.unique), ("match", fitting.match)])
@pytest.mark.parametrize("times", [0.9, 1.1])
def test_the_bias_to_first_order(chance, risk, times):
    """Where all cells hold more than the means the risk is overstated, by what B says; and the other way."""
    rng = np.random.default_rng(1)
    mu = rng.gamma(0.5, 1.0, 2000)
    true, means = mu * times, fitting.CellMeans(mu, mu, np.ones(len(mu)))
    exact = float((true * np.exp(-true) * (risk(4 * mu)[0] - risk(4 * true)[0])).sum())
    found = [fitting.fit_of(means, rng.poisson(true).astype(float), 0.2, risk).bias for _ in range(200)]
    assert (exact > 0) == (times > 1)
    assert np.mean(found) == pytest.approx(exact, rel=0.35)


def strong(rng, n):
    """Most people have one of a few combinations, some any of many."""
    first = rng.integers(0, 20, n)
    others = [np.where(rng.random(n) < 0.8, first % size, rng.integers(0, size, n)) for size in (12, 9)]
    return np.stack([first, *others], axis=1)


def skewed(rng, n):
    """Keys that do not go together, with rare values."""
    return (np.array([20, 15, 10]) * rng.random((n, 3)) ** 2.5).astype(int)


def test_too_simple_and_too_close_are_told_apart():
    """B is above 0 for independence of dependent keys, below for all pairs of independent ones, near 0 else."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        simple = score_of(strong(rng, 600), fraction=0.2, model="independence")
        apart = skewed(rng, 600)
        close = score_of(apart, fraction=0.2, model="two-way")
        right = score_of(apart, fraction=0.2, model="independence")
        assert close.details["off"] < -2 < right.details["off"] < 2 < simple.details["off"]
        assert "too simple" in simple.reason
        assert "too closely" in close.reason
        assert (simple.confidence, close.confidence, right.confidence) == (None, None, 95.0)


def test_too_simple_may_understate():
    """So nobody is told to which side: here few of the rare combinations are as full as is expected."""
    population = strong(np.random.default_rng(1), 12_000)
    sizes, sample = Counter(map(tuple, population.tolist())), population[:600]
    truth = sum(sizes[each] == 1 for each in map(tuple, sample.tolist())) / 600
    score = score_of(sample, fraction=0.05, model="independence")
    assert score.details["off"] > 2
    assert score.value < truth / 2
    assert "far off" in score.reason


def test_log_normal_factors():
    """Against a fine sum over the factor; without variance nothing changes."""
    mu, fraction, variance = np.array([0.01, 0.4, 3.0]), 0.1, 0.7
    z = np.linspace(-9, 9, 20_001)
    weights = np.exp(-(z**2) / 2)
    for each, found in zip(mu, fitting.log_normal(mu, fraction, variance, fitting.unique), strict=True):
        means = each * np.exp(math.sqrt(variance) * z - variance / 2)
        drawn = weights * means * np.exp(-means)
        assert found == pytest.approx((drawn @ np.exp(-9 * means)) / drawn.sum(), rel=1e-5)
    plain = fitting.log_normal(mu, fraction, 0.0, fitting.unique)
    assert plain == pytest.approx(np.exp(-9 * mu))


def test_the_spread_is_found():
    rng = np.random.default_rng(4)
    mu = np.full(40_000, 0.8)
    counts = rng.poisson(mu * np.exp(0.6 * rng.standard_normal(40_000) - 0.18)).astype(float)
    assert fitting.spread_of(fitting.CellMeans(mu, mu, np.ones(40_000)), counts) == pytest.approx(
        0.36, abs=0.05
    )
    assert fitting.spread_of(fitting.CellMeans(mu, mu, np.ones(40_000)), np.ones(40_000)) == 0
    assert score_of(SMALL, fraction=0.2, spread="log-normal").details["log_variance"] >= 0


def test_the_simplest_that_is_not_biased():
    """Keys that go together: independence is too simple, and says so; the tree is taken."""
    data = correlated(np.random.default_rng(6), 3000, (30, 25, 20))
    simple = score_of(data, fraction=0.1, model="independence")
    assert simple.details["off"] > 2
    assert "too simple" in simple.reason
    assert (simple.confidence, simple.interval) == (None, None)
    assert score_of(data, fraction=0.1).details["model"] == "tree"
    apart = np.random.default_rng(7).integers(0, (30, 25, 20), (3000, 3))
    assert score_of(apart, fraction=0.1).details["model"] == "independence"


# --------------------------------------------------------------------------------------------- the ends


def test_what_needs_no_model():
    whole = score_of(SMALL, fraction=1)
    assert whole.status is Status.OK
    assert whole.value == sum(n == 1 for n in Counter(map(tuple, SMALL.tolist())).values()) / 60
    alike = score_of(np.zeros((20, 2), dtype=int), fraction=0.1)
    assert (alike.value, alike.status) == (0, Status.OK)


@pytest.mark.parametrize("model", ["best", "independence", "tree"])
@pytest.mark.parametrize("n", [1, 50])
def test_all_unique_in_thirty_keys(model, n):
    """No table of the cross is built; what cannot be told is told as an interval or a misfit."""
    data = np.random.default_rng(1).integers(0, 4, (n, 30))
    score = score_of(data, fraction=0.1, model=model)
    assert score.status is Status.APPROXIMATE
    assert 0 < score.value <= 1


def test_too_large_for_all_pairs():
    score = score_of(np.random.default_rng(1).integers(0, 4, (50, 30)), fraction=0.1, model="two-way")
    assert score.status is Status.NOT_ESTIMABLE
    assert "2,000,000 cells" in score.reason


def test_weights_below_one_and_missing_keys():
    columns = {"key": ["a", "b", None, None], "w": [0.5] * 4}
    kinds = {"key": NOMINAL, "w": (Kind.CONTINUOUS, Role.WEIGHT)}
    light = LogLinearRisk().score(Evidence(table_of(columns, **kinds)), Run(seed=1))
    assert light.status is Status.NOT_ESTIMABLE
    holes = Evidence(table_of({"key": ["a", "a", None, None]}, key=NOMINAL))
    assert LogLinearRisk(fraction=0.5, missing="any").score(holes, Run()).status is Status.NOT_ESTIMABLE
    worst = LogLinearRisk(fraction=0.5, missing="worst").score(holes, Run(seed=1))
    assert worst.by_record.tolist() == [0, 0, 1, 1]


def test_joined_records_are_in_no_cell():
    columns = {"key": ["a", "b", "a"], "who": [1, 1, 2]}
    table = table_of(columns, key=NOMINAL, who=(NOMINAL, Role.PERSON))
    score = LogLinearRisk(fraction=0.5).score(
        Evidence(table, Release.of(table, source_rows=np.arange(3))), Run(seed=1)
    )
    assert score.status is Status.NOT_ESTIMABLE


# ------------------------------------------------------------------------------------ draws from the model


def pairs_of_all(rng, n):
    """Each pair of keys goes together, and four values of each, so that all pairs can be fitted."""
    a, b, c = (4 * rng.random((n, 3)) ** 4).astype(int).T
    b = np.where(rng.random(n) < 0.3, a, b)
    return np.stack([a, b, np.where(rng.random(n) < 0.3, np.minimum(a + b, 3), c)], axis=1)


POPULATIONS = {
    "independence": skewed,
    "tree": lambda rng, n: correlated(rng, n, (20, 12, 9)),
    "two-way": pairs_of_all,
}


def drawn(model, seeds, **parameters):
    """For samples of a fifth: whether the interval can be relied on, holds the truth, is below it; the error."""
    found = []
    for seed in seeds:
        population = POPULATIONS[model](np.random.default_rng(seed), 3000)
        sizes, sample = Counter(map(tuple, population.tolist())), population[:600]
        truth = sum(sizes[each] == 1 for each in map(tuple, sample.tolist())) / 600
        score = score_of(sample, fraction=0.2, model=model, **parameters)
        low, high = score.interval or (0, 1)
        found.append((score.confidence is not None, low <= truth <= high, truth > high, score.value - truth))
    return np.mean(found, axis=0)


@pytest.mark.parametrize("model", POPULATIONS)
def test_draws_from_the_model(model):
    sure, held, above, error = drawn(model, range(8))
    assert sure >= 0.5
    assert held >= 6 / 8
    assert above <= 1 / 8
    assert -0.01 < error < 0.04  # what is smoothed errs on the safe side


@pytest.mark.slow
@pytest.mark.parametrize("model", POPULATIONS)
def test_most_intervals_cover(model):
    sure, held, above, error = drawn(model, range(200))
    assert sure >= 0.8
    assert held >= 0.9
    assert above <= 0.05
    assert -0.01 < error < 0.04


def test_all_pairs_of_few_people_cannot_be_relied_on():
    score = score_of(SMALL, fraction=0.2, model="two-way")
    assert abs(score.details["off"]) < 2
    assert (score.confidence, score.interval) == (None, None)
    assert "too closely" in score.reason


def test_nobody_is_not_said_of_few():
    """A number near 0 that is held against one person: the far end is some people away."""
    population = np.random.default_rng(1).integers(0, (12, 9, 8), (12_000, 3))
    score = score_of(population[:600], fraction=0.05, model="independence")
    assert score.value < 1e-4
    assert score.interval[1] > 3 / 600
