"""Paper 001, Table 2: links that survive rank swapping with the p-distribution on Census.

Source: Herranz, Nin, Rodríguez, Tassa, "Revisiting distance-based record linkage for privacy-preserving release
of statistical datasets", Table 2, rows RSwp, means of 5 runs of 1080 records. Distances are Euclidean, every
column scaled by its range over original and release together. DBRL counts the records whose nearest released
record is their own (Definition 2.1), GDBRL the right pairs of the cheapest one-to-one assignment. Which normal
distribution is meant is not printed: N(p, p) per cent of n was chosen because it fits.
"""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from sfumato.core.run import Run
from sfumato.datasets import census
from sfumato.methods.swapping import RankSwappingDistribution
from sfumato.recipes.recipe import Recipe
from sfumato.reproduce.cells import WITHIN, published


def links(original, released):
    """DBRL and GDBRL by brute force."""
    both = np.vstack([original, released])
    low, spread = both.min(axis=0), np.ptp(both, axis=0)
    distances = cdist((original - low) / spread, (released - low) / spread)
    records = np.arange(len(original))
    # a tie goes to the record that stands first, which is no better than a guess
    nearest = int((distances.argmin(axis=1) == records).sum())
    return nearest, int((linear_sum_assignment(distances)[1] == records).sum())


@pytest.mark.parametrize("distance", [2, 5, 10])
def test_table_2(distance, reference_data):
    table = census(reference_data("census.csv"))
    original = table.matrix(table.names)
    recipe = Recipe.of(RankSwappingDistribution(distance=distance))
    found = [
        links(original, recipe.apply(table, Run(seed=seed)).table.matrix(table.names)) for seed in range(5)
    ]
    near, matched = np.mean(found, axis=0)
    printed = published("001").cells
    assert printed[f"table-2/RSwp {distance}/DBRL"].verdict(near) == WITHIN
    assert printed[f"table-2/RSwp {distance}/GDBRL"].verdict(matched) == WITHIN
