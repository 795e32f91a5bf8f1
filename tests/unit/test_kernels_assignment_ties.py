"""Ties against an enumeration of all matchings of least cost."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.kernels import assignment


def optima(rows, columns):
    """Every one-to-one map of the smaller file into the larger at the least total distance, as sets of pairs."""
    costs = np.abs(rows[:, None] - columns[None]).sum(axis=2)
    turned = len(rows) > len(columns)
    costs = costs.T if turned else costs
    maps = [tuple(enumerate(chosen)) for chosen in permutations(range(costs.shape[1]), costs.shape[0])]
    totals = [sum(costs[pair] for pair in pairs) for pairs in maps]
    best = [pairs for pairs, total in zip(maps, totals, strict=True) if total == min(totals)]
    return [{(j, i) if turned else (i, j) for i, j in pairs} for pairs in best]


@given(
    seed=st.integers(0, 2**32 - 1), n=st.integers(1, 5), m=st.integers(1, 5), d=st.integers(1, 2),
    values=st.integers(1, 4),
)  # fmt: skip
def test_fewest_most_and_certain(seed, n, m, d, values):
    rng = np.random.default_rng(seed)
    rows, columns = (rng.integers(0, values, (size, d)).astype(float) for size in (n, m))
    truth = rng.permutation(max(n, m))[:n]
    truth[truth >= m] = -1
    found = assignment.solve(rows, columns, "manhattan")
    tied = assignment.ties(rows, columns, "manhattan", found, truth)
    true_pairs = {(i, int(j)) for i, j in enumerate(truth) if j >= 0}
    hits = [pairs & true_pairs for pairs in optima(rows, columns)]
    assert tied.exact
    assert tied.fewest == min(map(len, hits))
    assert tied.most == max(map(len, hits))
    assert tied.certain == len(set.intersection(*hits))


def test_too_many_ties_give_an_interval_that_is_wide_enough():
    points = np.zeros((6, 2))
    found = assignment.solve(points, points, "euclidean")
    truth = np.arange(6)
    assert assignment.ties(points, points, "euclidean", found, truth) == assignment.Ties(0, 6, 0, exact=True)
    rough = assignment.ties(points, points, "euclidean", found, truth, most_pairs=10)
    assert rough == assignment.Ties(0, 6, 0, exact=False)


def test_only_a_proved_matching_has_ties():
    points = np.arange(8.0).reshape(4, 2)
    found = assignment.solve(points, points, "euclidean")
    doubtful = assignment.Assignment(**{**vars(found), "certified": False})
    with pytest.raises(ValueError, match="proved"):
        assignment.ties(points, points, "euclidean", doubtful, np.arange(4))
