"""Trees against brute force: the first split, the sizes of leaves, and who is drawn."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.kernels import cart


def impurity(values, *, classes):
    if not len(values):
        return 0.0
    if not classes:
        return float(((values - values.mean()) ** 2).sum())
    return len(values) - float((np.bincount(values) ** 2).sum()) / len(values)


def best_gain(codes, nominal, target, leaf, *, classes):
    """The most that any split of any predictor takes away: up to a code, or any set of codes."""
    whole, best = impurity(target, classes=classes), 0.0
    for column, is_nominal in zip(codes, nominal, strict=True):
        there = np.unique(column)
        sets = [there[:size] for size in range(1, len(there))]
        if is_nominal:
            sets = [each for size in range(1, len(there)) for each in combinations(there, size)]
        for each in sets:
            left = np.isin(column, each)
            if min(left.sum(), (~left).sum()) >= leaf:
                kept = sum(impurity(target[side], classes=classes) for side in (left, ~left))
                best = max(best, whole - kept)
    return best


@given(st.integers(0, 2**31), st.integers(4, 150), st.integers(1, 6), st.booleans())
def test_the_root_is_split_as_well_as_can_be(seed, n, leaf, classes):
    """Any set of codes for numbers and two classes, where the order of means finds the best one."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 6, (3, n)).astype(np.uint8)
    nominal = np.array([False, True, False])
    target = rng.integers(0, 2, n) if classes else rng.standard_normal(n)
    said = {"classes": target.astype(np.int32)} if classes else {"numbers": target}
    tree = cart.grow(codes, nominal, np.arange(n), leaf=leaf, **said)
    wanted = best_gain(codes, nominal, target, leaf, classes=classes)
    if tree.children[0] < 0:
        assert wanted <= 1e-7 * max(impurity(target, classes=classes), 1e-300) or n < 2 * leaf
        return
    sides = [tree.order[slice(*tree.ranges[tree.children[0] + side])] for side in (0, 1)]
    kept = sum(impurity(target[side], classes=classes) for side in sides)
    assert impurity(target, classes=classes) - kept == pytest.approx(wanted)


@given(st.integers(0, 2**31), st.integers(1, 400), st.integers(1, 12), st.integers(0, 4))
def test_leaves_are_large_enough_and_hold_every_record_once(seed, n, leaf, n_classes):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 256, (2, n)).astype(np.uint8)
    said = (
        {"classes": rng.integers(0, n_classes, n).astype(np.int32)}
        if n_classes
        else {"numbers": rng.random(n)}
    )
    rows = np.sort(rng.permutation(n)[: max(1, n // 2)])
    tree = cart.grow(codes, np.array([True, False]), rows, leaf=leaf, **said)
    ends = tree.ranges[tree.children < 0]
    assert (np.diff(ends, axis=1) >= min(leaf, len(rows))).all()
    assert np.diff(ends, axis=1).sum() == len(rows)
    np.testing.assert_array_equal(np.sort(tree.order), rows)


def test_everyone_is_drawn_from_their_own_leaf():
    """Followed through the tree one by one: the leaf holds the donor, and each of its records is drawn."""
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 40, (3, 500)).astype(np.uint8)
    tree = cart.grow(
        codes, np.array([False, True, False]), np.arange(500), numbers=codes[0] + rng.random(500), leaf=7
    )
    new = rng.integers(0, 60, (3, 3000)).astype(np.uint8)  # with codes that nobody had
    drawn = cart.donors(tree, new, rng.random(3000))
    for record, donor in zip(new.T, drawn, strict=True):
        node = 0
        while tree.children[node] >= 0:
            code = record[tree.columns[node]]
            node = tree.children[node] + 1 - ((tree.sets[node, code >> 3] >> (code & 7)) & 1)
        assert donor in tree.order[slice(*tree.ranges[node])]
    assert len(np.unique(drawn)) > 400


def test_a_target_that_does_not_vary_is_one_leaf():
    codes = np.arange(50, dtype=np.uint8)[None]
    for said in ({"numbers": np.full(50, 3.0)}, {"classes": np.zeros(50, dtype=np.int32)}):
        assert len(cart.grow(codes, np.array([False]), np.arange(50), leaf=5, **said).children) == 1
