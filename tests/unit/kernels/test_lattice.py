"""Kernels of the lattice: classes joined as a dictionary would, nodes in the order of their bounds."""

import itertools

import numpy as np
import pytest

from sfumato import kernels


def _classes(rng, n, values, levels):
    """Random codes and, for each key and level, random labels."""
    leaves = np.column_stack([rng.integers(0, v, n) for v in values]).astype(np.int32)
    leaves = np.unique(leaves, axis=0)
    labels, starts, sizes = (
        [],
        np.zeros((len(values), levels), np.int64),
        np.zeros((len(values), levels), np.int64),
    )
    for key, v in enumerate(values):
        for level in range(levels):
            starts[key, level] = sum(map(len, labels))
            labels.append(rng.integers(0, max(1, v >> level), v).astype(np.int32))
            sizes[key, level] = labels[-1].max() + 1
    return leaves, np.concatenate(labels), starts, sizes


@pytest.mark.parametrize("keys", [1, 3, 40])  # the labels of 40 keys do not fit into one number
def test_joins_what_has_the_same_labels(keys):
    rng = np.random.default_rng(keys)
    leaves, labels, starts, sizes = _classes(rng, 300, [rng.integers(2, 30) for _ in range(keys)], 3)
    counts, weights = rng.integers(1, 9, len(leaves)), rng.random(len(leaves))
    for level in range(3):
        of_part = np.zeros(len(leaves), dtype=np.int64)
        parts = (np.arange(len(leaves)), counts, weights, of_part)
        firsts, sums, totals = kernels.lattice.merge(leaves, labels, starts[:, level], sizes[:, level], parts)
        wanted = {}
        for row, count, weight in zip(leaves, counts, weights, strict=True):
            shown = tuple(labels[starts[:, level] + row])
            had = wanted.get(shown, (0, 0.0))
            wanted[shown] = (had[0] + count, had[1] + weight)
        mine = [tuple(labels[starts[:, level] + leaves[first]]) for first in firsts]
        assert mine == list(wanted)
        assert sums.tolist() == [count for count, _ in wanted.values()]
        np.testing.assert_allclose(totals, [weight for _, weight in wanted.values()], rtol=1e-12)
        assert [mine[c] for c in of_part] == [tuple(labels[starts[:, level] + row]) for row in leaves]


def test_sums_over_marked_classes():
    rng = np.random.default_rng(2)
    leaves, labels, starts, _ = _classes(rng, 50, [5, 7], 2)
    amounts, weights = rng.random(len(labels)), rng.random(len(leaves))
    marked = rng.random(len(leaves)) < 0.4
    found = kernels.lattice.sum_over_classes(
        leaves, amounts, starts[:, 1], (np.arange(len(leaves)), weights, marked)
    )
    wanted = [
        sum(
            w * amounts[starts[key, 1] + row[key]]
            for row, w, m in zip(leaves, weights, marked, strict=True)
            if m
        )
        for key in range(2)
    ]
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize("listed", [False, True])
def test_gives_nodes_in_the_order_of_their_bounds_without_those_ruled_out(listed):
    rng = np.random.default_rng(5)
    heights = np.array([3, 4, 2, 3])
    terms = np.zeros((4, 4))
    for key, height in enumerate(heights):
        terms[key, :height] = np.cumsum(rng.random(height))
    tops = np.array([[1, 2, 0, 1], [0, 3, 1, 0]])
    marks = np.zeros(heights.prod(), np.uint8)
    for top in tops:
        marks.reshape(heights)[tuple(slice(0, level + 1) for level in top)] = 1
    nodes = list(itertools.product(*map(range, heights)))
    bounds = {node: sum(terms[key, level] for key, level in enumerate(node)) for node in nodes}
    limit = sorted(bounds.values())[50]
    wanted = sorted(
        (bound, node)
        for node, bound in bounds.items()
        if bound <= limit and not any((np.array(node) <= top).all() for top in tops)
    )
    hopeless = (np.zeros(0, np.uint8), tops) if listed else (marks, np.zeros((0, 4), np.int64))
    front, found = kernels.lattice.frontier(), []
    while True:
        front, node, score, _ = kernels.lattice.next_node(
            front, terms, heights, hopeless, (limit + 1e-9, 10**6)
        )
        if node == kernels.lattice.NONE_BETTER:
            break
        found.append((score, tuple(int(level) for level in np.unravel_index(node, heights))))
    assert [node for _, node in found] == [node for _, node in wanted]
    np.testing.assert_allclose([score for score, _ in found], [bound for bound, _ in wanted], rtol=1e-12)


def test_stops_when_too_many_are_passed_by():
    heights, terms = np.array([5, 5]), np.zeros((2, 5))
    hopeless = (np.ones(25, np.uint8), np.zeros((0, 2), np.int64))
    _, node, _, passed = kernels.lattice.next_node(
        kernels.lattice.frontier(), terms, heights, hopeless, (np.inf, 7)
    )
    assert (node, passed) == (kernels.lattice.TOO_MANY, 8)


def test_raised_bounds_keep_the_order():
    heights, terms = np.array([4, 4]), np.zeros((2, 4))
    hopeless = (np.zeros(16, np.uint8), np.zeros((0, 2), np.int64))
    front, seen = kernels.lattice.frontier(), []
    while True:
        front, node, score, _ = kernels.lattice.next_node(front, terms, heights, hopeless, (np.inf, 100))
        if node < 0:
            break
        levels = np.array(np.unravel_index(node, heights))
        seen.append((score, node))
        own = float(levels[0] * 10 + levels[1])
        kernels.lattice.raise_bounds(front, heights, levels, own)
    assert len({node for _, node in seen}) == 16
    scores = [score for score, _ in seen]
    assert scores == sorted(scores)


def test_counts_of_coarser_classes_are_sums_of_those_of_their_parts():
    rng = np.random.default_rng(4)
    finer = rng.integers(0, 3, (30, 7)) * rng.integers(0, 9, (30, 7))
    of_part = np.append(np.arange(5), rng.integers(0, 5, 25))
    classes, values = np.nonzero(finer)
    found = kernels.lattice.join_counts(of_part, classes, values, finer[classes, values], (5, 7))
    wanted = np.zeros((5, 7), dtype=np.int64)
    np.add.at(wanted, of_part, finer)
    assert [each.tolist() for each in found[:2]] == [each.tolist() for each in np.nonzero(wanted)]
    assert found[2].tolist() == wanted[wanted > 0].tolist()
    assert found[3].tolist() == [0, *np.cumsum((wanted > 0).sum(axis=1)).tolist()]
