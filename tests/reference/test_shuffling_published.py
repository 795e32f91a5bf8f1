"""Paper 001, Table 2: links that distance finds between Census and its shuffled releases.

Source: Herranz, Nin, Rodríguez, Tassa, "Revisiting distance-based record linkage for privacy-preserving release
of statistical datasets", Table 2, means of five runs, of 1,080 records:

* data shuffling is reached within seven links, about what five runs vary (sd of one: 5).
* IPSO-C is not reachable by draws around the regression: about 35 and 28 links.
* rank shuffling, q = 2, 3, 4 with s = q, is not reached: windows of q per cent of the ranks, as the paper describes them, leave nearly all records linked. What is pinned here is
  what we reach. A short last window, as the paper seems to have, leaves the highest values almost where they are
  and about ten records more linked (1,076, 1,060 and 1,048).

DBRL counts the original records whose nearest released record is their own, GDBRL those that the cheapest
one-to-one assignment links to their own; Euclidean distance, both by brute force. The paper does not say how
columns are scaled.
"""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from sfumato.core.params import Columns
from sfumato.core.run import Run
from sfumato.datasets import census
from sfumato.methods.ipso import IpsoC
from sfumato.methods.shuffling import DataShuffling, RankShuffling
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.reproduce.cells import WITHIN, published
from sfumato.reproduce.global_linkage import FIRST, SECOND

PRINTED = published("001").cells
RUNS = 5


def links(original, protected, spread):
    """DBRL and GDBRL; ``spread`` is the measure of a column by which it is divided.

    Shuffled columns have the values of the original, so scaling each table by its own is the same as by both.
    """
    distances = cdist(original / spread(original, axis=0), protected / spread(original, axis=0))
    own = np.arange(len(original))
    nearest, assigned = distances.argmin(axis=1), linear_sum_assignment(distances)[1]
    return np.array([(nearest == own).sum(), (assigned == own).sum()])


def mean_links(table, release_of, spread=np.ptp):
    """Mean over the runs, each with a seed of its own."""
    names = [*FIRST, *SECOND]
    original = table.matrix(names)
    return np.mean([links(original, release_of(seed).matrix(names), spread) for seed in range(RUNS)], axis=0)


def shuffled_in_halves(table, seed, method=DataShuffling):
    """Each half given the original other half."""
    release = table
    for half, other in ((FIRST, SECOND), (SECOND, FIRST)):
        method_given = method(given=Columns(other))
        protected = method_given.apply(table.aimed_at(half), Run(seed=seed)).table
        for name in half:
            release = release.with_values(name, protected.frame[name])
    return release


def test_data_shuffling_reaches_table_2_on_standard_deviations(reference_data):
    """Reached over 30 runs: 23.4 and 23.4."""
    table = census(reference_data("census.csv"))
    dbrl, gdbrl = mean_links(table, lambda seed: shuffled_in_halves(table, seed), np.std)
    assert PRINTED["table-2/DShf/DBRL"].verdict(dbrl) == WITHIN
    assert PRINTED["table-2/DShf/GDBRL"].verdict(gdbrl) == WITHIN


def test_data_shuffling_on_ranges(reference_data):
    """DBRL as published; of GDBRL we find 28.8 over 30 runs, which is pinned."""
    table = census(reference_data("census.csv"))
    dbrl, gdbrl = mean_links(table, lambda seed: shuffled_in_halves(table, seed))
    assert PRINTED["table-2/DShf/DBRL"].verdict(dbrl) == WITHIN
    assert gdbrl == pytest.approx(28.8, abs=7)


@pytest.mark.slow
def test_draws_around_a_regression_link_few(reference_data):
    """The two blocks of the paper as the two steps of a recipe; one run has a standard deviation of about 6."""
    table = census(reference_data("census.csv"))
    blocks = [Step(IpsoC(given=Columns(other)), half) for half, other in ((FIRST, SECOND), (SECOND, FIRST))]
    recipe = Recipe(tuple(blocks))
    for release_of in (
        lambda seed: shuffled_in_halves(table, seed, IpsoC),
        lambda seed: recipe.apply(table, Run(seed=seed)).table,
    ):
        dbrl, gdbrl = mean_links(table, release_of)
        assert dbrl < 60
        assert gdbrl < 60


@pytest.mark.parametrize(
    ("window", "dbrl", "gdbrl"),
    [(2, 1068, 1078), (3, 1053, 1072), (4, 1038, 1069)],
    ids=["q=2", "q=3", "q=4"],
)
def test_rank_shuffling_as_described_is_far_from_table_2(window, dbrl, gdbrl, reference_data):
    """Within 6 links of the mean of 30 runs: three standard deviations of a mean of five, or more."""
    table = census(reference_data("census.csv"))
    method = RankShuffling(window=window)
    found = mean_links(table, lambda seed: method.apply(table, Run(seed=seed)).table)
    assert found[0] == pytest.approx(dbrl, abs=6)
    assert found[1] == pytest.approx(gdbrl, abs=6)
