"""MDAV on the two reference files of the microaggregation literature.

Loss of information, SSE / SST in per cent on standardised data, as two independent implementations found it.
"""

import numpy as np
import pytest

from sfumato.kernels.groups import group_means, mdav
from sfumato.reproduce.cells import WITHIN, published


@pytest.mark.parametrize("k", [3, 5, 10])
@pytest.mark.parametrize("name", ["Census", "Tarragona"])
def test_information_loss(name, k, reference_data):
    values = np.loadtxt(reference_data(f"{name.lower()}.csv"), delimiter=",", skiprows=1)
    points = (values - values.mean(axis=0)) / values.std(axis=0)
    groups = mdav(points, k)
    within = points - group_means(points, groups)[groups]
    ratio = 100 * (within**2).sum() / (points**2).sum()
    assert published("004").cells[f"sse/{name}/k = {k}"].verdict(ratio) == WITHIN
