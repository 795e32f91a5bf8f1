"""The tree of codes against looking at every record, while records leave."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from sfumato.kernels.trees import codes as tree_of_codes


@pytest.fixture(autouse=True)
def small_tables_are_coded(monkeypatch):
    monkeypatch.setattr(tree_of_codes, "FEWEST_RECORDS", 1)


def mixed(rng, n, sizes, n_numbers):
    """Numbers, and categories each of which has a coordinate; some are missing, at the mean of all."""
    blocks = []
    for size in sizes:
        codes = rng.integers(-1, size, n)
        places = np.vstack((np.diag(rng.uniform(0.5, 2.0, size)) - 0.25, np.zeros(size)))
        blocks.append(places[codes])
    return np.hstack((*blocks, rng.normal(size=(n, n_numbers))))


@examples(40)
@given(
    n=st.integers(2, 300),
    sizes=st.lists(st.integers(4, 12), min_size=2, max_size=4),
    n_numbers=st.integers(0, 2),
    count=st.integers(1, 9),
    seed=st.integers(0, 2**32),
)
def test_search_equals_looking_at_every_record(n, sizes, n_numbers, count, seed):
    rng = np.random.default_rng(seed)
    records = tree_of_codes.encode(mixed(rng, n, sizes, n_numbers))
    if records is None:
        return
    there = np.arange(n)
    tree = tree_of_codes.plant(records, there)
    while len(there):
        for query in (
            tree_of_codes.query_of_record(records, rng.integers(n)),
            tree_of_codes.query_of_mean(records, tree),
        ):
            terms = [(records.numbers[there, c] - query.numbers[c]) ** 2 for c in range(n_numbers)]
            terms += [query.tables[b][records.codes[there, b]] for b in range(len(query.tables))]
            distances = np.zeros(len(there))
            for term in terms:  # in one order, to meet the same last bit
                distances += term
            for sign in (1.0, -1.0):
                keys, found = np.empty(count), np.empty(count, dtype=np.int64)
                tree_of_codes.search(tree, query, records.sizes, sign, keys, found)
                expected = there[np.lexsort((there, sign * distances))[:count]]
                assert found[np.lexsort((found, keys))][: len(expected)].tolist() == expected.tolist()
        gone = rng.permutation(there)[: max(1, len(there) // 3)]
        for record in gone:
            tree_of_codes.lift(tree, record)
        tree_of_codes.settle(tree, gone)
        there = np.setdiff1d(there, gone)
        assert tree.counts[0] == len(there)


@examples(25)
@given(
    n=st.integers(1, 80), sizes=st.lists(st.integers(2, 9), min_size=3, max_size=5), seed=st.integers(0, 99)
)
def test_codes_tell_apart_what_the_columns_do(n, sizes, seed):
    points = mixed(np.random.default_rng(seed), n, sizes, 1)
    records = tree_of_codes.encode(points)
    if records is None:
        return
    total = np.zeros((n, n))
    for block in range(records.codes.shape[1]):
        its = records.codes[:, block]
        total += records.tables[block][its[:, None], its]
    for column in records.numbers.T:
        total += (column[:, None] - column) ** 2
    np.testing.assert_allclose(total, ((points[:, None] - points) ** 2).sum(axis=2), rtol=1e-12, atol=1e-12)


def test_few_columns_and_numbers_stay_numbers():
    rng = np.random.default_rng(1)
    assert tree_of_codes.encode(rng.normal(size=(500, 20))) is None
    assert tree_of_codes.encode(mixed(rng, 500, (5,), 1)) is None
