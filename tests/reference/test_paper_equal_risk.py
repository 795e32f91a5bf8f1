"""Paper 000: R, EMD and the order of Table 1 on Census and EIA, as settled in our facts.

Source: Domingo-Ferrer, Ricci, Soria-Comas, "Empirical comparison of anonymization methods regarding their
risk-utility trade-off", section 5. Published: R = .45 (Census) and .58 (EIA) for all four methods; EMD as in
Table 1. The values reached by an independent prototype are the reference here; where published and reached
differ, both stand below. What was published is in `sfumato.reproduce`, where the paper is rerun as a whole.
"""

import numpy as np
import pytest

from sfumato import compare
from sfumato.core.run import Run
from sfumato.datasets import census
from sfumato.methods.microaggregation import Mdav
from sfumato.methods.multiplicative_noise import HohneNoise
from sfumato.methods.noise import CorrelatedNoise
from sfumato.methods.swapping import RankSwapping
from sfumato.recipes.recipe import Recipe
from sfumato.reproduce.cells import published
from sfumato.reproduce.equal_risk import CURVES, eia_numbers
from sfumato.risk.ranks import RankLinkage
from sfumato.study.evaluate import EvaluationCase, evaluate
from sfumato.utility.transport import EarthMoversDistance

#: method → (R reached, EMD reached), in the order of Table 1
CENSUS = {
    Mdav(k=5): (0.4505, 0.170),
    CorrelatedNoise(ratio=1): (0.451, 0.378),
    RankSwapping(window=20): (0.461, 0.295),
    HohneNoise(deviation=0.5): (0.457, 0.327),
}
EIA = {
    Mdav(k=5): (0.487, 0.022),
    CorrelatedNoise(ratio=0.05): (0.572, 0.058),
    RankSwapping(window=8): (0.570, 0.096),
    HohneNoise(deviation=0.3): (0.542, 0.063),
}


def published_order(methods, column):
    """The names of the methods as Table 1 ranks them."""
    rows = published("000").tables["table-1"].rows
    place = {"Census": 0, "EIA": 1}[column]
    by_method = dict(zip(methods, rows.values(), strict=False))
    return [method.name for method in sorted(methods, key=lambda method: by_method[method][place])]


def scores(table, method, repeats):
    repeats = repeats if method.randomness.stochastic else 1
    measures = [RankLinkage(), EarthMoversDistance()]
    trials = [
        evaluate(Recipe.of(method), EvaluationCase(table), measures, Run(seed=7), replicate=r)
        for r in range(repeats)
    ]
    return [np.mean([trial.scores[str(m)].value for trial in trials]) for m in measures]


@pytest.mark.parametrize("method", CENSUS, ids=lambda m: m.name)
def test_census(method, reference_data):
    risk, utility = scores(census(reference_data("census.csv")), method, 5)
    assert risk == pytest.approx(CENSUS[method][0], abs=0.003)
    assert utility == pytest.approx(CENSUS[method][1], abs=0.008)


@pytest.mark.slow
def test_census_order_of_table_1(reference_data):
    """Published: microaggregation, rank swapping, multiplicative noise, correlated noise."""
    table = census(reference_data("census.csv"))
    ranked = sorted(CENSUS, key=lambda method: scores(table, method, 3)[1])
    assert [method.name for method in ranked] == published_order(CENSUS, "Census")


#: All but the weight: there the ratios from .5 to 2.3 are within 1 % of the level of MDAV, k = 5.
MONEY = (
    "AGI", "EMCONTRB", "FEDTAX", "PTOTVAL", "STATETAX", "TAXINC", "POTHVAL", "INTVAL", "PEARNVAL", "FICA",
    "WSALVAL", "ERNVAL",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("columns", [(), MONEY], ids=["all", "money"])
def test_correlated_noise_at_the_level_of_mdav_is_about_the_papers(columns, reference_data):
    """The paper has ratio 1 (EMD .38); the edge of the tolerance once gave 447 (12.8), or 2.25 (.58)."""
    table = census(reference_data("census.csv"))
    found = compare(
        table, [Mdav(k=5), CorrelatedNoise()], hold="rank-linkage", columns=columns, repeats=3, seed=1
    )
    mdav, noise = found.outcomes
    assert mdav.step.method == Mdav(k=5)
    assert 0.75 <= noise.level.value <= 1.1
    assert abs(noise.held.mean - found.target.value) <= 0.0015
    assert 0.3 <= noise.ranked.mean <= 0.39
    assert noise.ranked_range[0] < noise.ranked.mean < noise.ranked_range[1]


@pytest.mark.slow
def test_eia_and_the_order_of_table_1(reference_data):
    """Published: microaggregation, correlated noise, multiplicative noise, rank swapping."""
    table = eia_numbers(reference_data("eia.csv"))
    found = {method: scores(table, method, 1) for method in EIA}
    for method, (risk, utility) in found.items():
        assert risk == pytest.approx(EIA[method][0], abs=0.004)
        assert utility == pytest.approx(EIA[method][1], abs=0.003)
    ranked = sorted(found, key=lambda method: found[method][1])
    assert [method.name for method in ranked] == published_order(EIA, "EIA")


def test_eia_microaggregated_raw(reference_data):
    """On raw values R is .539 and EMD .042, which is nearer to the published .58 and .040."""
    risk, utility = scores(eia_numbers(reference_data("eia.csv")), Mdav(k=5, scale="none"), 1)
    assert risk == pytest.approx(0.539, abs=0.002)
    assert utility == pytest.approx(0.042, abs=0.001)


@pytest.mark.slow
@pytest.mark.parametrize(("make", "grid"), CURVES.values(), ids=CURVES)
def test_figure_1_rises(make, grid, reference_data):
    """R increases strictly along all four parameter grids of Figure 1."""
    table = census(reference_data("census.csv"))
    means = []
    for value in grid:
        method = make(value)
        trials = [
            evaluate(Recipe.of(method), EvaluationCase(table), [RankLinkage()], Run(seed=2), replicate=r)
            for r in range(5 if method.randomness.stochastic else 1)
        ]
        means.append(np.mean([trial.scores["rank-linkage"].value for trial in trials]))
    assert (np.diff(means) > 0).all()
