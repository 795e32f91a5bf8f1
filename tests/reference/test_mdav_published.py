"""MDAV on the two reference files of the microaggregation literature.

Loss of information, SSE / SST in per cent on standardised data, as two independent implementations found it and
as the project's notes (FACTS.md, section 3) record it.
"""

from pathlib import Path

import numpy as np
import pytest

from sfumato.kernels.groups import group_means, mdav

SHARED = Path(__file__).resolve().parents[3] / "shared"
PUBLISHED = [
    ("census", 3, 5.692),
    ("census", 5, 9.088),
    ("census", 10, 14.156),
    ("tarragona", 3, 16.933),
    ("tarragona", 5, 22.462),
    ("tarragona", 10, 33.193),
]


@pytest.mark.skipif(
    not (SHARED / "data").is_dir(), reason="the reference files are not beside the repository"
)
@pytest.mark.parametrize(("name", "k", "published"), PUBLISHED)
def test_information_loss(name, k, published):
    values = np.loadtxt(SHARED / "data" / f"{name}.csv", delimiter=",", skiprows=1)
    points = (values - values.mean(axis=0)) / values.std(axis=0)
    groups = mdav(points, k)
    within = points - group_means(points, groups)[groups]
    assert 100 * (within**2).sum() / (points**2).sum() == pytest.approx(published, abs=0.0005)
