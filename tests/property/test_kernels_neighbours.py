"""Nearest distances against all pairs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sfumato.kernels.neighbours import nearest_distance


def nearest_by_definition(points, others, norm):
    n_columns = points.shape[1]
    distances = np.full(len(points), np.inf)
    for i, x in enumerate(points):
        for y in others:
            shared = ~np.isnan(x - y)
            if not shared.any():
                continue
            difference = np.abs(x - y)[shared]
            if norm == "maximum":
                distance = difference.max()
            else:
                distance = np.sqrt(n_columns / shared.sum() * (difference**2).sum())
            distances[i] = min(distances[i], distance)
    return distances


@st.composite
def two_files(draw, elements):
    n_columns = draw(st.integers(1, 4))
    return tuple(
        draw(hnp.arrays(np.float64, (draw(st.integers(0, 15)), n_columns), elements=elements))
        for _ in range(2)
    )


complete = st.one_of(st.integers(-2, 2).map(float), st.floats(-1e3, 1e3))


@pytest.mark.parametrize("norm", ["euclidean", "maximum"])
@given(files=two_files(complete))
def test_complete_records_equal_all_pairs(norm, files):
    points, others = files
    found = nearest_distance(points, others, norm=norm)
    np.testing.assert_allclose(found, nearest_by_definition(points, others, norm), rtol=1e-12, atol=1e-150)


@pytest.mark.parametrize("norm", ["euclidean", "maximum"])
@given(files=two_files(st.one_of(st.just(np.nan), complete)))
def test_missing_values_equal_all_pairs(norm, files):
    points, others = files
    found = nearest_distance(points, others, norm=norm)
    np.testing.assert_allclose(found, nearest_by_definition(points, others, norm), rtol=1e-12, atol=1e-150)


@pytest.mark.parametrize("norm", ["euclidean", "maximum"])
@pytest.mark.parametrize("missing", [0.0, 0.02, 0.4])
def test_more_records_than_a_block(norm, missing):
    rng = np.random.default_rng(11)
    points, others = rng.normal(size=(20, 5)), rng.normal(size=(700, 5))
    for values in (points, others):
        values[rng.random(values.shape) < missing] = np.nan
    found = nearest_distance(points, others, norm=norm)
    np.testing.assert_allclose(found, nearest_by_definition(points, others, norm), rtol=1e-12)
