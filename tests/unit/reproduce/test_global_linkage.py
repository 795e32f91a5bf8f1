"""The intruder of section 3 (b): what is derived from a method and its parameters bounds what it does."""

import numpy as np
import polars as pl
import pytest

from sfumato.core.run import Run
from sfumato.front import protect
from sfumato.reproduce import global_linkage as paper
from sfumato.reproduce.bench import numeric_keys


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(3)
    values = np.exp(rng.normal(size=(200, 3)) @ rng.normal(size=(3, 3))).round(1)
    return numeric_keys(pl.DataFrame(values, schema=["a", "b", "c"]))


def moved(table, method, seed):
    release = protect(table, method, seed=seed).table
    known, released = table.matrix(table.names), release.matrix(table.names)
    spread = np.ptp(np.vstack([known, released]), axis=0)
    return known, spread, np.sqrt((((known - released) / spread) ** 2).sum(axis=1)).max()


@pytest.mark.parametrize("name", [name for name, (_, _, sure) in paper._bounds().items() if sure == 1])
def test_a_bound_that_is_sure_holds_for_every_seed(table, name):
    method, derive, _ = paper._bounds()[name]
    for seed in range(10):
        known, spread, distortion = moved(table, method, seed)
        assert distortion <= derive(known, spread, Run(seed=1)) * (1 + 1e-12)


def test_a_quantile_holds_about_as_often_as_it_says(table):
    method, derive, sure = paper._bounds()["NA 20"]
    held = []
    for seed in range(60):
        known, spread, distortion = moved(table, method, seed)
        held.append(distortion <= derive(known, spread, Run(seed=1)))
    assert np.mean(held) == pytest.approx(sure, abs=0.09)  # three standard errors


def test_drawn_matrices_are_transitions():
    matrix = paper.drawn_matrix(np.array([50, 30, 20]), 0.8, np.random.default_rng(1))
    np.testing.assert_allclose(matrix.sum(axis=1), 1)
    assert (matrix >= 0).all()
    assert (np.diag(matrix) > 0.8).all()
