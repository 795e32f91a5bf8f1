"""The tree of boxes against looking at every record, while records leave and move."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from sfumato.kernels.trees.boxes import centre_and_scale, plant, search, shift, take_out


def searched(tree, query, sign, count):
    keys, found = np.empty(count), np.empty(count, dtype=np.int64)
    search(tree, query, sign, keys, found)
    order = np.lexsort((found, keys))
    return found[order].tolist(), keys[order].tolist()


def looked_up(points, there, query, sign, count):
    keys = np.zeros(len(there))
    for column in range(points.shape[1]):  # summed in the order of columns, to meet the same last bit
        difference = points[there, column] - query[column]
        keys += difference * difference
    order = np.lexsort((there, sign * keys))[:count]
    missing = count - len(order)
    found = there[order].tolist() + [len(points)] * missing
    return found, (sign * keys[order]).tolist() + [np.inf] * missing


@examples(80)
@given(
    n=st.integers(1, 400),
    n_columns=st.integers(1, 9),
    count=st.integers(1, 9),
    tied=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_search_equals_looking_at_every_record(n, n_columns, count, tied, seed):
    rng = np.random.default_rng(seed)
    points = (
        rng.integers(-2, 3, (n, n_columns)).astype(np.float64) if tied else rng.normal(size=(n, n_columns))
    )
    there = np.flatnonzero(rng.random(n) < 0.9)
    if not len(there):
        return
    tree = plant(points, there)
    for _ in range(6):
        for query in (points[rng.integers(n)], points[there].mean(axis=0), 10 * rng.normal(size=n_columns)):
            for sign in (1.0, -1.0):
                assert searched(tree, query, sign, count) == looked_up(points, there, query, sign, count)
        for record in rng.permutation(there)[: len(there) // 8]:
            take_out(tree, record)
            there = there[there != record]
        for record in rng.permutation(there)[: len(there) // 8]:
            points[record] = rng.integers(-3, 4, n_columns)
            shift(tree, record, 4 * points[record], 4)
    assert tree.counts[0] == len(there)
    np.testing.assert_allclose(tree.sums[0], points[there].sum(axis=0), rtol=0, atol=1e-9)


@examples(60)
@given(n=st.integers(1, 50), offset=st.sampled_from([0.0, 1e8, -3e11]), seed=st.integers(0, 2**32))
def test_centring_keeps_differences_of_whole_numbers(n, offset, seed):
    points = np.random.default_rng(seed).integers(-9, 10, (n, 3)) + offset
    places = centre_and_scale(points)
    unit = 2.0 ** int(np.frexp(np.abs(points).max())[1])
    np.testing.assert_array_equal((places[:, None] - places[None]) * unit, points[:, None] - points[None])
    assert np.abs(places).max() < 2.0  # both the point and the median lie within 1
