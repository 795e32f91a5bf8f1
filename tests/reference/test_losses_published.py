"""Information loss of MDAV on Census and Tarragona, SSE/SST in per cent of standardised data (FACTS.md, section 3)."""

import numpy as np
import polars as pl
import pytest

from pairs import numeric
from sfumato.core.evidence import Evidence
from sfumato.core.run import Run
from sfumato.methods.microaggregation import Mdav
from sfumato.utility.losses import SseRatio


@pytest.mark.parametrize(
    ("name", "k", "published"),
    [("census", 3, 5.692), ("census", 5, 9.088), ("census", 10, 14.156), ("tarragona", 3, 16.933)],
)
def test_squares_lost_by_mdav(reference_data, name, k, published):
    original = numeric(pl.read_csv(reference_data(f"{name}.csv")).to_numpy().astype(np.float64))
    evidence = Evidence(original, Mdav(k=k).apply(original, Run(seed=1)))
    assert 100 * SseRatio().score(evidence, Run(seed=1)).value == pytest.approx(published, abs=0.0005)
