"""Kullback–Leibler divergence by hand, against scipy, and where cells are empty."""

import numpy as np
import polars as pl
import pytest
from scipy.stats import entropy

from pairs import score, table
from sfumato.core.measure import Status
from sfumato.data.generalised.intervals import intervals
from sfumato.data.generalised.nodes import Nodes
from sfumato.data.schema import Kind
from sfumato.utility.divergence import KullbackLeiblerDivergence, divergence

BARE = KullbackLeiblerDivergence(prior=1e-9)


def words(*columns):
    return table({f"c{i}": list(column) for i, column in enumerate(columns)}, Kind.NOMINAL)


def test_by_hand():
    """3/4, 1/4 against 1/2, 1/2."""
    expected = 0.75 * np.log2(1.5) + 0.25 * np.log2(0.5)
    assert score(BARE, words("aaab"), words("aabb")).value == pytest.approx(expected, abs=1e-7)


def test_what_scipy_says():
    rng = np.random.default_rng(3)
    first, second = (rng.dirichlet(np.ones(7)) for _ in range(2))
    bits = divergence(first, second, pseudo_records=1e-12, n=10**6)
    assert bits == pytest.approx(entropy(first, second, base=2), rel=1e-9)
    counts = rng.integers(0, 5, (2, 30))
    counts[:, 0] = 7  # one cell that occurs in both
    kept = counts[:, counts.sum(axis=0) > 0]
    shares = [each / each.sum() for each in counts]
    n = 100
    mixed = 0.5 * kept.shape[1] / (n + 0.5 * kept.shape[1])
    smooth = [(1 - mixed) * each / each.sum() + mixed / kept.shape[1] for each in kept]
    found = divergence(*shares, pseudo_records=0.5, n=n)
    assert found == pytest.approx(entropy(*smooth, base=2), rel=1e-9)


def test_empty_cells_are_dear_but_finite():
    """b is gone from the release: n = 4, K = 2, half a record in each cell of both."""
    mixed = 0.5 * 2 / (4 + 0.5 * 2)
    p, q = (1 - mixed) * np.array([0.75, 0.25]) + mixed / 2, (1 - mixed) * np.array([1.0, 0.0]) + mixed / 2
    found = score(KullbackLeiblerDivergence(), words("aaab"), words("aaaa"))
    assert found.value == pytest.approx(float((p * np.log2(p / q)).sum()))
    less = score(KullbackLeiblerDivergence(prior=0.01), words("aaab"), words("aaaa"))
    assert less.value > found.value  # the rarer the pseudo-record, the greater the surprise


def test_the_same_shares_cost_nothing_whatever_the_size():
    for dimension in ("one", "two"):
        measure = KullbackLeiblerDivergence(dimension=dimension)
        x = words("aaab", "uvuv")
        assert score(measure, x, x).value == 0
        assert score(measure, x, x.take(np.tile(np.arange(4), 3)), rows=None).value == pytest.approx(
            0, abs=1e-15
        )


def test_two_columns_see_what_one_does_not():
    """Both margins stay; the pairing is turned: joint 1/2, 1/2, 0, 0 against 1/4 each: one bit."""
    x, y = words("aabb" * 2, "uuvv" * 2), words("aabb" * 2, "uvuv" * 2)
    assert score(KullbackLeiblerDivergence(), x, y).value == 0
    found = score(KullbackLeiblerDivergence(dimension="two", prior=1e-9), x, y)
    assert found.value == pytest.approx(1.0, abs=1e-6)
    assert found.by_column == {"c0": pytest.approx(1.0, abs=1e-6), "c1": pytest.approx(1.0, abs=1e-6)}


def test_missing_is_a_category():
    assert score(KullbackLeiblerDivergence(), words(["a", "b"]), words(["a", None])).value > 0
    assert score(KullbackLeiblerDivergence(), words(["a", None]), words([None, "a"])).value == 0


def test_labels_are_spread_over_their_leaves():
    nodes = Nodes.of({"any": ["a", "b"]}, leaves=["a", "b"])
    y = table({"c0": pl.Series(["any"] * 4, dtype=nodes.dtype)}, Kind.NOMINAL, nodes={"c0": nodes})
    assert score(BARE, words("aabb"), y).value == pytest.approx(0, abs=1e-12)
    assert score(BARE, words("aaab"), y).value == pytest.approx(0.75 * np.log2(1.5) - 0.25, abs=1e-7)


def test_numbers_in_bins():
    """Quartiles of 1…8: all of the release in the first: log2 4 if there were no pseudo-records."""
    x = table({"x": np.arange(1.0, 9.0)})
    y = table({"x": np.full(8, 1.0)})
    found = score(KullbackLeiblerDivergence(bins=4), x, y)
    k, n = 4, 8
    mixed = 0.5 * k / (n + 0.5 * k)
    p, q = np.full(4, 0.25), (1 - mixed) * np.array([1.0, 0, 0, 0]) + mixed / 4
    assert found.value == pytest.approx(float((p * np.log2(p / q)).sum()))
    halves = table({"x": intervals([1.0] * 8, [8.0] * 8)})
    assert score(KullbackLeiblerDivergence(bins=4), x, halves).value < found.value


def test_says_why_not():
    x = words("ab")
    alone = score(KullbackLeiblerDivergence(dimension="two"), x, x)
    assert alone.status is Status.REFUSED
    assert "needs two columns" in alone.reason
    for dimension in ("one", "two"):
        x = words("ab", "cd")
        empty = score(KullbackLeiblerDivergence(dimension=dimension), x, x.take(np.arange(0)), rows=None)
        assert empty.status is Status.NOT_ESTIMABLE


def test_many_categories_in_tables_of_two():
    """A thousand categories each: the rare ones share a cell, and a million cells are not made."""
    n = 1000
    x = words([f"u{i}" for i in range(n)], [f"v{i}" for i in range(n)])
    found = score(KullbackLeiblerDivergence(dimension="two"), x, x)
    assert found.value == pytest.approx(0, abs=1e-12)
    assert found.details["tables"] == 1
