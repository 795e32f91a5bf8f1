"""Certain links: by hand, against all permutations, and where they cannot be told."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.kernels import assignment
from sfumato.risk.possible_worlds import CertainLinks

SCHEMA = Schema((Column("x", Kind.CONTINUOUS, Role.KEY), Column("y", Kind.CONTINUOUS, Role.KEY)))


def score(original, released, **settings):
    tables = [
        Table(pl.DataFrame(points, schema=["x", "y"], orient="row"), SCHEMA)
        for points in (original, released)
    ]
    evidence = Evidence(tables[0], Release.of(tables[1], source_rows=np.arange(len(released))))
    return CertainLinks(**settings).score(evidence, Run(seed=1))


def test_by_hand():
    """Three records in a row: the middle one is near both ends, but the ends have only it and themselves.

    With a bound of one step every record may be its neighbour, yet whoever takes the middle one's place leaves
    it the place of an end: all pairs but those of the two ends with each other can be true.
    """
    points = [[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [50.0, 0.0]]
    result = score(points, points, bound=1.1 / np.std([0, 1, 2, 50]))
    assert result.by_record.tolist() == [0.5, pytest.approx(1 / 3), 0.5, 1.0]
    assert result.value == 0.25  # the fourth is alone
    assert result.details["near_pairs"] == 8
    assert result.details["matchable_pairs"] == 2 + 3 + 2 + 1


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 6), values=st.integers(2, 5))
def test_against_all_permutations(seed, n, values):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, values, (n, 2)).astype(float)
    columns = rng.integers(0, values, (n, 2)).astype(float)
    truth = rng.permutation(n)
    costs = np.abs(rows[:, None] - columns[None]).sum(axis=2)
    bound = costs[np.arange(n), truth].max() + rng.integers(0, 2)
    found = assignment.matchable(rows, columns, "manhattan", np.full(n, bound), truth)
    worlds = [
        chosen for chosen in permutations(range(n)) if all(costs[i, j] <= bound for i, j in enumerate(chosen))
    ]
    assert found.near.tolist() == (costs <= bound).sum(axis=1).tolist()
    assert found.matchable.tolist() == [len({chosen[i] for chosen in worlds}) for i in range(n)]


def test_nothing_moved_and_everybody_is_certain():
    points = np.random.default_rng(1).normal(size=(40, 2))
    assert score(points, points).value == 1.0
    far = score(points, points + np.random.default_rng(2).normal(size=(40, 2)) * 50)
    assert far.value < 1
    assert far.status is Status.OK


def test_where_it_cannot_be_told():
    points = np.random.default_rng(1).normal(size=(20, 2))
    moved = points + 1
    assert score(points, moved, bound=1e-6).status is Status.NOT_ESTIMABLE  # such a bound would not be true
    assert score(points, moved, bound=1e6, most_pairs=10).status is Status.NOT_ESTIMABLE
    assert score(points, moved[:10]).status is Status.OK  # who is not in the file is not looked for
    with pytest.raises(ValueError, match="complete"):
        assignment.matchable(points, points, "euclidean", np.ones(20), np.zeros(20, dtype=np.int64))


def test_a_suppressed_value_is_no_bound_on_the_others():
    points = [[0.0, 0.0], [5.0, 0.0], [20.0, 0.0]]
    assert score(points, points).value == 1
    found = score(points, [[None, 0.0], *points[1:]])
    assert found.status is Status.NOT_ESTIMABLE
    assert "suppressed" in found.reason


def test_a_persons_second_record_hides_nobody():
    """Two equal records of one person are each other's only further match: it was .6, and is 1."""
    rows = [(20.0, 1.0, "a"), (40.0, 5.0, "b"), (60.0, 9.0, "c"), (80.0, 13.0, "d"), (20.0, 1.0, "a")]
    schema = Schema((*SCHEMA.columns, Column("who", Kind.NOMINAL, Role.PERSON)))
    table = Table(pl.DataFrame(rows, schema=["x", "y", "who"], orient="row"), schema)
    released = Release.record_by_record(table.select(["x", "y"]))
    for whose, value in ((table, 1.0), (table.with_values("who", pl.Series(list("abcde"))), 0.6)):
        result = CertainLinks(bound=0.1).score(Evidence(whose, released), Run(seed=1))
        assert result.value == value
        assert result.by_record.tolist() == ([1.0] * 5 if value == 1 else [0.5, 1.0, 1.0, 1.0, 0.5])
