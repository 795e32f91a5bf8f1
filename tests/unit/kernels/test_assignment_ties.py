"""Ties against an enumeration of all matchings of least cost."""

from __future__ import annotations

from collections import Counter
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


def links(truth):
    """The pairs that belong together."""
    return np.flatnonzero(truth >= 0), truth[truth >= 0]


def expected(pairs, right, rows, columns):
    """How many right links a map has if identical records change places at random."""
    alike = [[int((side == record).all(axis=1).sum()) for record in side] for side in (rows, columns)]
    total = 0.0
    for i, j in right:
        flow = sum((rows[a] == rows[i]).all() and (columns[b] == columns[j]).all() for a, b in pairs)
        total += flow / (alike[0][i] * alike[1][j])
    return total


@given(
    seed=st.integers(0, 2**32 - 1), n=st.integers(1, 5), m=st.integers(1, 5), d=st.integers(1, 2),
    values=st.integers(1, 4), persons=st.integers(1, 5),
)  # fmt: skip
def test_settled_if_every_optimum_has_the_same_expectation(seed, n, m, d, values, persons):  # noqa: PLR0917
    rng = np.random.default_rng(seed)
    rows, columns = (rng.integers(0, values, (size, d)).astype(float) for size in (n, m))
    mine, theirs = rng.integers(0, persons, n), rng.integers(0, persons, m)
    right = np.nonzero(mine[:, None] == theirs)
    found = assignment.solve(rows, columns, "manhattan")
    tied = assignment.ties(rows, columns, "manhattan", found, right)
    every = {tuple(sorted(flows(pairs, rows, columns).items())) for pairs in optima(rows, columns)}
    if tied.settled:
        numbers = [
            expected(pairs, list(zip(*right, strict=True)), rows, columns) for pairs in optima(rows, columns)
        ]
        assert max(numbers) - min(numbers) < 1e-9
    else:
        assert len(every) > 1


def flows(pairs, rows, columns):
    """How many pairs of a map there are of each two groups of identical records."""
    return Counter((tuple(rows[a]), tuple(columns[b])) for a, b in pairs)


def test_a_square_is_not_settled():
    corners = np.array([[0.0, 0.0], [1.0, 1.0]])
    others = np.array([[0.0, 1.0], [1.0, 0.0]])
    found = assignment.solve(corners, others, "euclidean")
    tied = assignment.ties(corners, others, "euclidean", found, links(np.arange(2)))
    assert tied == assignment.TiedLinks(0, 2, 0, exact=True, settled=False, expected=2.0)


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
    tied = assignment.ties(rows, columns, "manhattan", found, links(truth))
    true_pairs = {(i, int(j)) for i, j in enumerate(truth) if j >= 0}
    hits = [pairs & true_pairs for pairs in optima(rows, columns)]
    assert tied.exact
    assert tied.fewest == min(map(len, hits))
    assert tied.most == max(map(len, hits))
    assert tied.certain == len(set.intersection(*hits))
    if tied.expected is not None:  # the most of any optimum, if identical records change places at random
        most = max(expected(pairs, sorted(true_pairs), rows, columns) for pairs in optima(rows, columns))
        assert most <= tied.expected == pytest.approx(most, abs=1e-5)
    else:
        assert tied.settled


def test_identical_records_are_one_pair_of_groups():
    points = np.zeros((6, 2))
    found = assignment.solve(points, points, "euclidean")
    tied = assignment.ties(points, points, "euclidean", found, links(np.arange(6)), most_pairs=1)
    assert tied == assignment.TiedLinks(0, 6, 0, exact=True, settled=True)


def test_too_many_ties_give_an_interval_that_is_wide_enough():
    mine, theirs = np.arange(6.0)[:, None], np.arange(6.0, 12.0)[:, None]
    found = assignment.solve(mine, theirs, "hamming")
    whole = assignment.ties(mine, theirs, "hamming", found, links(np.arange(6)))
    assert whole == assignment.TiedLinks(0, 6, 0, exact=True, settled=False, expected=6.0)
    rough = assignment.ties(mine, theirs, "hamming", found, links(np.arange(6)), most_pairs=10)
    assert rough == assignment.TiedLinks(0, 6, 0, exact=False, settled=False)


def test_only_a_proved_matching_has_ties():
    points = np.arange(8.0).reshape(4, 2)
    found = assignment.solve(points, points, "euclidean")
    doubtful = assignment.Assignment(**{**vars(found), "certified": False})
    with pytest.raises(ValueError, match="proved"):
        assignment.ties(points, points, "euclidean", doubtful, links(np.arange(4)))
