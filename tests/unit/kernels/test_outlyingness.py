"""Patterns of missing values: each row once, with the columns it has."""

import numpy as np
import pytest

from sfumato.kernels.outlyingness import patterns


@pytest.mark.parametrize("d", [1, 3, 9, 70])
def test_patterns_part_the_rows(d):
    rng = np.random.default_rng(d)
    rows_of = rng.random((6, d)) < 0.6
    present = rows_of[rng.integers(0, 6, 80)]
    seen = np.zeros(80, dtype=int)
    for columns, rows in patterns(present):
        seen[rows] += 1
        assert (np.diff(rows) > 0).all()
        for row in rows:
            assert np.flatnonzero(present[row]).tolist() == columns.tolist()
    np.testing.assert_array_equal(seen, present.any(axis=1))


def test_patterns_of_nothing():
    assert list(patterns(np.zeros((0, 3), dtype=bool))) == []
    assert list(patterns(np.zeros((3, 0), dtype=bool))) == []
    assert list(patterns(np.zeros((3, 2), dtype=bool))) == []
    [(columns, rows)] = patterns(np.ones((3, 2), dtype=bool))
    assert columns.tolist() == [0, 1]
    assert rows.tolist() == [0, 1, 2]
