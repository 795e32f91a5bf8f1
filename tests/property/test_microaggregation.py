"""Laws of microaggregation, and brute force: every partition, every median, every mode."""

from functools import cache

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from effort import examples
from sfumato.core.run import Run
from sfumato.data.points import points_of
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.kernels.groups.centres import means, medians, modes, trimmed_means
from sfumato.kernels.groups.partitions import consecutive, optimal
from sfumato.methods._clusters import clusters_of, join_small
from sfumato.methods.microaggregation import Cbfs, Mdav, SequentialMicroaggregation, VMdav
from sfumato.methods.scalable_microaggregation import MdavInParts, ProjectionMicroaggregation
from sfumato.methods.univariate_microaggregation import IndividualRanking, OptimalMicroaggregation

MULTIVARIATE = [Mdav, VMdav, Cbfs, SequentialMicroaggregation, MdavInParts, ProjectionMicroaggregation]
UNIVARIATE = [IndividualRanking, OptimalMicroaggregation]

numbers = arrays(np.float64, st.tuples(st.integers(1, 40), st.integers(1, 3)), elements=st.floats(-1e6, 1e6))
weights_of = st.floats(0.1, 50)


def table_of(values, weights=None, words=None):
    names = [f"c{i}" for i in range(values.shape[1])]
    columns = [Column(name, Kind.CONTINUOUS) for name in names]
    frame = pl.DataFrame({name: values[:, i] for i, name in enumerate(names)})
    if words is not None:
        frame = frame.with_columns(pl.Series("word", words))
        columns.append(Column("word", Kind.NOMINAL))
        names.append("word")
    if weights is not None:
        frame = frame.with_columns(pl.Series("weight", weights))
        columns.append(Column("weight", Kind.CONTINUOUS, Role.WEIGHT))
    return Table(frame, Schema(tuple(columns))).aimed_at(names)


@pytest.mark.parametrize("method", MULTIVARIATE, ids=lambda method: method.name)
@given(values=numbers, k=st.integers(1, 8), data=st.data())
@examples(30)
def test_groups_have_k_to_2k_minus_1_show_their_centre_and_keep_weighted_means(method, values, k, data):
    assume(k <= len(values))
    weights = np.array(data.draw(st.lists(weights_of, min_size=len(values), max_size=len(values))))
    words = data.draw(st.lists(st.sampled_from("abcde"), min_size=len(values), max_size=len(values)))
    release = method(k=k).apply(table_of(values, weights, words), Run(seed=1))
    sizes = np.bincount(release.classes)
    assert sizes.min() >= k
    assert sizes.max() <= 2 * k - 1
    after = release.table.frame.select(pl.selectors.starts_with("c")).to_numpy()
    told = np.array(release.table.frame["word"].to_list())
    for group in range(len(sizes)):
        members = release.classes == group
        centre = np.average(values[members], axis=0, weights=weights[members])
        np.testing.assert_allclose(after[members], np.tile(centre, (sizes[group], 1)), atol=1e-8, rtol=1e-12)
        assert len(np.unique(after[members], axis=0)) == 1
        here = {word: weights[members & (np.array(words) == word)].sum() for word in "abcde"}
        assert len(set(told[members])) == 1
        assert here[told[members][0]] == pytest.approx(max(here.values()), rel=1e-11)
    np.testing.assert_allclose(weights @ after, weights @ values, atol=1e-5, rtol=1e-12)


@pytest.mark.parametrize("method", UNIVARIATE, ids=lambda method: method.name)
@given(values=arrays(np.float64, st.integers(1, 40), elements=st.floats(-1e6, 1e6)), k=st.integers(1, 8))
def test_univariate_groups_keep_order_and_mean_and_hide_each_value_among_k(method, values, k):
    assume(k <= len(values))
    after = method(k=k).apply(table_of(values[:, None]), Run(seed=1)).table.frame["c0"].to_numpy()
    assert np.unique(after, return_counts=True)[1].min() >= k
    order = np.argsort(values, kind="stable")
    assert (np.diff(after[order]) >= -1e-9).all()
    assert after.mean() == pytest.approx(values.mean(), rel=1e-12, abs=1e-9)


@given(
    seed=st.integers(0, 10**6),
    k=st.integers(2, 4),
    shift=st.integers(-(10**8), 10**8),
    power=st.integers(-3, 3),
)
def test_the_unit_and_the_zero_of_a_column_do_not_matter(seed, k, shift, power):
    """By deviation an income in cents or thousands, from any zero, gives the same groups (the change is exact)."""
    values = np.rint(np.random.default_rng(seed).normal(size=(25, 2)) * 1024) / 1024
    moved = np.column_stack([values[:, 0] * 2.0**power + shift, values[:, 1]])
    one, other = (Mdav(k=k).apply(table_of(each), Run(seed=1)).classes for each in (values, moved))
    np.testing.assert_array_equal(one, other)


# ---------------------------------------------------------------------------------------------- brute force


def squares(values):
    return float(((values - values.mean()) ** 2).sum())


@cache
def compositions(n, k):
    """Every way to cut n sorted values into runs of at least k: the sizes in order."""
    if n == 0:
        return ((),)
    return tuple((size, *rest) for size in range(k, n + 1) for rest in compositions(n - size, k))


@given(
    values=st.one_of(
        st.lists(st.integers(0, 20), min_size=1, max_size=12),
        st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=12),
    ),
    k=st.integers(2, 5),
    offset=st.sampled_from([0.0, 1e8]),
)
@examples(200)
def test_optimal_is_the_best_of_all_partitions(values, k, offset):
    """Of all partitions into groups of k or more, of any size above; the best has groups below 2k."""
    ordered = np.sort(np.array(values, dtype=np.float64)) + offset
    assume(len(ordered) >= k)
    groups = optimal(ordered, k)
    sizes = np.bincount(groups)
    assert sizes.min() >= k
    assert sizes.max() <= 2 * k - 1
    assert (np.diff(groups) >= 0).all()
    least = min(
        sum(squares(run) for run in np.split(ordered, np.cumsum(sizes)[:-1]))
        for sizes in compositions(len(ordered), k)
    )
    found = sum(squares(ordered[groups == group]) for group in range(len(sizes)))
    assert found <= least * (1 + 1e-9) + 1e-12


@given(seed=st.integers(0, 10**6), n=st.integers(20, 150), k=st.integers(2, 40))
def test_optimal_is_the_shortest_path_over_many_blocks(seed, n, k):
    """The plain dynamic programme of Hansen and Mukherjee, with each loss summed on its own."""
    assume(k <= n)
    ordered = np.sort(np.random.default_rng(seed).lognormal(0, 2, n))
    best = np.full(n + 1, np.inf)
    best[0] = 0.0
    for j in range(k, n + 1):
        best[j] = min(best[i] + squares(ordered[i:j]) for i in range(max(0, j - 2 * k + 1), j - k + 1))
    groups = optimal(ordered, k)
    found = sum(squares(ordered[groups == group]) for group in range(groups.max() + 1))
    assert found == pytest.approx(best[n], rel=1e-11)


@given(n=st.integers(0, 60), k=st.integers(1, 10))
def test_consecutive_groups_have_k_but_for_the_last(n, k):
    sizes = np.bincount(consecutive(n, k))
    assert sizes.sum() == n
    assert (sizes[:-1] == k).all()
    assert n < k or k <= sizes[-1] < 2 * k


columns = st.integers(1, 25).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(0, 6), min_size=n, max_size=n),
        st.lists(st.integers(0, 4), min_size=n, max_size=n),
        st.one_of(st.none(), st.lists(st.integers(1, 5), min_size=n, max_size=n)),
    )
)


@given(columns)
def test_centres_are_those_of_records_repeated_by_their_weight(drawn):
    """A whole weight is so many records: every centre is that of the longer column, by the plainest means."""
    values, groups = np.array(drawn[0]), np.array(drawn[1])
    weights = None if drawn[2] is None else np.array(drawn[2], dtype=np.float64)
    times = np.ones(len(values), dtype=int) if weights is None else weights.astype(int)
    everywhere = np.bincount(np.repeat(values, times), minlength=7)
    found = {
        "mean": means(values.astype(float), groups, 5, weights),
        "lower": medians(values, groups, 5, weights),
        "between": medians(values.astype(float), groups, 5, weights, between=True),
        "mode": modes(values, groups, 5, weights),
    }
    for group in set(groups.tolist()):
        mine = np.sort(np.repeat(values[groups == group], times[groups == group]))
        here = np.bincount(mine, minlength=7)
        assert found["mean"][group] == pytest.approx(mine.mean(), rel=1e-12)
        assert found["lower"][group] == mine[(len(mine) - 1) // 2]
        assert found["between"][group] == np.median(mine)
        assert found["mode"][group] == max(range(7), key=lambda v: (here[v], everywhere[v], -v))


# Robust and clustered ------------------------------------------------------------------------------------


@given(
    values=st.lists(st.integers(-50, 50), min_size=1, max_size=40),
    n_groups=st.integers(1, 6),
    weighted=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_trimmed_means_by_sorting_each_group(values, n_groups, weighted, seed):
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, n_groups, len(values))
    weights = rng.uniform(0.1, 5, len(values)) if weighted else None
    found = trimmed_means(np.array(values, dtype=float), groups, n_groups, weights)
    for group in range(n_groups):
        members = sorted((values[i], i) for i in np.flatnonzero(groups == group))
        out = max(1, len(members) // 4) if len(members) > 2 else 0
        kept = members[out : len(members) - out]
        own = [1.0 if weights is None else weights[i] for _, i in kept]
        expected = np.average([value for value, _ in kept], weights=own) if kept else 0
        assert found[group] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("method", MULTIVARIATE, ids=lambda method: method.name)
@given(values=numbers, k=st.integers(1, 6), clusters=st.integers(1, 5), data=st.data())
@examples(20)
def test_robust_groups_within_clusters_have_k_to_2k_minus_1(method, values, k, clusters, data):
    assume(k <= len(values))
    words = data.draw(st.lists(st.sampled_from("abcde"), min_size=len(values), max_size=len(values)))
    made = method(k=k, clusters=clusters, scale="robust", centre={"default": "trimmed", "word": "mode"})
    release = made.apply(table_of(values, words=words), Run(seed=1))
    sizes = np.bincount(release.classes)
    assert (sizes.min() >= k, sizes.max() <= 2 * k - 1, sizes.sum()) == (True, True, len(values))
    after = release.table.frame.select(pl.selectors.starts_with("c")).to_numpy()
    assert all(len(np.unique(after[release.classes == group], axis=0)) == 1 for group in range(len(sizes)))
    if clusters == 1:
        return
    points = points_of(table_of(values, words=words), scale="robust", nominal="frequency")
    within = join_small(points, clusters_of(points, clusters), k)
    assert len(set(zip(release.classes, within, strict=True))) == len(sizes)  # a group is of one cluster


@given(sizes=st.lists(st.integers(1, 6), min_size=1, max_size=6), k=st.integers(1, 8))
def test_small_clusters_join_others_until_none_is_small(sizes, k):
    clusters = np.repeat(np.arange(len(sizes)), sizes)
    points = clusters[:, None] ** 2.0
    joined = join_small(points, clusters, k)
    assert np.bincount(joined).min() >= min(k, len(clusters))
    assert (np.diff(joined) >= 0).all() or len(set(joined)) == 1  # neighbours on the line joined
    assert len(set(zip(clusters, joined, strict=True))) == len(sizes)  # none was torn
