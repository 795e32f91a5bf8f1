"""Published experiments with noise: paper 001's links on Census, paper 004's confidentiality.

Sources: Herranz, Nin, Rodríguez, Tassa, "Revisiting distance-based record linkage for privacy-preserving release
of statistical datasets", Table 2, rows NA; Domingo-Ferrer, Muralidhar, Bras-Amorós, "General confidentiality and
utility metrics for privacy-preserving data publishing based on the permutation model", section 6.2. The linkage
is written out here, by brute force, so that nothing but the noise is ours.
"""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from scipy.stats import rankdata

from sfumato.core.run import Run
from sfumato.datasets import census
from sfumato.methods.multiplicative_noise import UniformNoise
from sfumato.methods.noise import UncorrelatedNoise
from sfumato.reproduce.cells import WITHIN, published

PRINTED = published("001").cells
#: σ in per cent
DEVIATIONS = (15, 20, 25, 30)
#: The published numbers are means of 5 runs. Ours are of 20, so that the seed does not decide: a single run
#: varies by 8 to 17 links (one standard deviation), their mean by less than 4.
RUNS = 20


def links(original, release):
    """Records linked correctly: to the nearest, and in the cheapest one-to-one assignment."""
    both = np.vstack([original, release])
    low, span = both.min(axis=0), np.ptp(both, axis=0)
    distances = cdist((original - low) / span, (release - low) / span)
    rows = np.arange(len(original))
    return (distances.argmin(axis=1) == rows).sum(), (linear_sum_assignment(distances)[1] == rows).sum()


@pytest.mark.parametrize(
    "deviation",
    [pytest.param(each, marks=pytest.mark.slow if each in {20, 25} else ()) for each in DEVIATIONS],
)
def test_links_of_table_2(deviation, reference_data):
    table = census(reference_data("census.csv"))
    original = table.matrix(table.chosen)
    method = UncorrelatedNoise(deviation=deviation)
    releases = [method.apply(table, Run(seed=seed)).table.matrix(table.chosen) for seed in range(RUNS)]
    nearest, assigned = np.mean([links(original, release) for release in releases], axis=0)
    assert PRINTED[f"table-2/NA {deviation}/DBRL"].verdict(nearest) == WITHIN
    assert PRINTED[f"table-2/NA {deviation}/GDBRL"].verdict(assigned) == WITHIN


def confidentiality(original, release):
    """CM1 and CM2: one minus the squared canonical correlations of the ranks, the largest and all of them."""
    ranks = [np.apply_along_axis(rankdata, 0, values) for values in (original, release)]
    bases = [np.linalg.qr(each - each.mean(axis=0))[0] for each in ranks]
    correlations = np.linalg.svd(bases[0].T @ bases[1], compute_uv=False).clip(0, 1)
    return 1 - correlations[0] ** 2, np.prod(1 - correlations**2)


def test_confidentiality_grows_with_the_noise_and_faster_if_it_is_additive(reference_data):
    """Section 6.2, Figures 4 and 5: four columns of Census, means of 5 runs at α = β from 0.1 to 0.9."""
    table = census(reference_data("census.csv")).select(["FICA", "FEDTAX", "INTVAL", "POTHVAL"])
    original, found = table.matrix(table.chosen), {}
    grid = [0.1, 0.3, 0.5, 0.7, 0.9]
    for make in (
        lambda size: UncorrelatedNoise(deviation=100 * size),
        lambda size: UniformNoise(spread=size),
    ):
        scores = []
        for size in grid:
            releases = [make(size).apply(table, Run(seed=seed)).table for seed in range(5)]
            scores.append(np.mean([confidentiality(original, r.matrix(r.chosen)) for r in releases], axis=0))
        found[make(0.5).name] = np.array(scores)
        assert (np.diff(scores, axis=0) > 0).all()
    assert (found["uncorrelated-noise"] > found["uniform-noise"]).all()
