"""Sorted and close generalisation: the order, the clusters, the bound for every n and k, and the nearest ones."""

from itertools import combinations, product

import numpy as np
import polars as pl
import pytest

from sfumato import kernels
from sfumato.core.run import Run
from sfumato.data.generalised.text_forms import to_text
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import RefusedError, UnreachableError
from sfumato.methods._local_recoding import _needless
from sfumato.methods.close_generalisation import (
    CloseGeneralisation,
    TClosenessFirst,
    closest_of,
    size_for,
)
from sfumato.methods.sorted_generalisation import SortedGeneralisation, as_numbers, from_zero


def keyed(frame, kinds=None, **roles):
    frame = pl.DataFrame(frame)
    columns = tuple(
        Column(name, (kinds or {}).get(name, Kind.CONTINUOUS), roles.get(name, Role.KEY))
        for name in frame.columns
    )
    schema = Schema(columns)
    return Table(frame, schema, targets=schema.with_role(Role.KEY))


def texts(release, name):
    return to_text(release.table.frame[name], release.table.nodes.get(name)).to_list()


def ordered_distance(group, everyone):
    """The ordered distance by its definition: cumulative shares over the distinct values."""
    values = sorted(set(everyone))
    gaps = [
        sum(v <= value for v in group) / len(group) - sum(v <= value for v in everyone) / len(everyone)
        for value in values
    ]
    return sum(map(abs, gaps)) / max(len(values) - 1, 1)


def groups_of(release):
    classes = release.classes
    return [np.flatnonzero(classes == number).tolist() for number in range(classes.max() + 1)]


# The order from zero -----------------------------------------------------------------------------------


def test_the_order_is_that_of_standardised_distances():
    rng = np.random.default_rng(1)
    table = keyed({"a": rng.normal(5, 3, 50), "b": rng.integers(0, 100, 50), "c": np.full(50, 7)})
    a, b = (as_numbers(table, name) for name in "ab")
    naive = np.sqrt((a / a.std()) ** 2 + (b / b.std()) ** 2)
    assert np.argsort(from_zero(table)).tolist() == np.argsort(naive).tolist()


def test_a_key_far_from_zero_does_not_drown_the_others():
    offset = 1e9 + np.array([0.0, 0.0, 0.0, 0.0, 10.0])
    table = keyed({"a": offset, "b": [3.0, 1.0, 4.0, 2.0, 0.0]})
    assert np.argsort(from_zero(table))[:4].tolist() == [1, 3, 0, 2]


@pytest.mark.parametrize(
    "values", [[1e308, -1e308, 0.0], [1e-308, 2e-308, 0.0], [0.0, 0.0, 0.0], [1e308, 1e308, 1.0]]
)
def test_extreme_numbers_have_an_order(values):
    assert np.isfinite(from_zero(keyed({"a": values}))).all()


def test_numbers_count_as_they_are_and_words_by_place():
    kinds = {"a": Kind.NOMINAL, "b": Kind.NOMINAL, "c": Kind.ORDINAL, "d": Kind.NOMINAL}
    frame = {"a": [30, 10, None], "b": ["z", "x", "y"], "c": [5, 7, 9], "d": [True, False, True]}
    table = keyed(frame, kinds)
    assert as_numbers(table, "a").tolist()[:2] == [30.0, 10.0]
    assert np.isnan(as_numbers(table, "a")[2])
    assert as_numbers(table, "b").tolist() == [2.0, 0.0, 1.0]
    assert as_numbers(table, "c").tolist() == [5.0, 7.0, 9.0]
    assert as_numbers(table, "d").tolist() == [1.0, 0.0, 1.0]


# Sorted generalisation ---------------------------------------------------------------------------------


def test_clusters_of_k_and_the_last_up_to_2k_less_1():
    release = SortedGeneralisation(k=2).apply(keyed({"a": [7, 3, 1, 9, 5]}), Run(seed=1))
    assert texts(release, "a") == ["[5;9]", "[1;3]", "[1;3]", "[5;9]", "[5;9]"]


def test_negative_numbers_lie_as_far_from_zero_as_positive_ones():
    release = SortedGeneralisation(k=2, exact_ends=True).apply(keyed({"a": [-9, 1, 10, 2]}), Run(seed=1))
    assert texts(release, "a") == ["[-9;10]", "[1;2]", "[-9;10]", "[1;2]"]


@pytest.mark.parametrize(
    ("sizes", "k", "starts"),
    [
        ([5], 2, [0, 2, 5]),
        ([5, 4], 3, [0, 5, 9]),
        ([1, 1, 7], 3, [0, 3, 6, 9]),
        ([7, 1, 1], 3, [0, 3, 6, 9]),
        ([4, 1, 3, 2], 3, [0, 4, 7, 10]),
        ([1, 1], 3, [0, 2]),
        ([2, 2], 1, [0, 1, 2, 3, 4]),
        ([], 3, [0]),
    ],
)
def test_clusters_lie_in_one_block_if_it_is_large_enough(sizes, k, starts):
    found = kernels.groups.sorted_clusters.neighbours(np.array(sizes, dtype=np.int64), k)
    assert found.tolist() == starts


def test_missing_keys_are_grouped_among_themselves():
    release = SortedGeneralisation(k=2).apply(keyed({"a": [1, 2, None, 3, None]}), Run(seed=1))
    assert texts(release, "a") == ["[1;3]", "[1;3]", None, "[1;3]", None]
    release = SortedGeneralisation(k=2).apply(keyed({"a": [1, 2, None, 3]}), Run(seed=1))
    assert texts(release, "a") == ["[1;2]", "[1;2]", "*", "*"]


def test_groups_that_fail_are_joined_with_neighbours():
    frame = {"a": [1, 2, 3, 4, 5, 6, 7, 8], "ill": list("xxxyxxxy")}
    table = keyed(frame, {"ill": Kind.NOMINAL}, ill=Role.SENSITIVE)
    release = SortedGeneralisation(k=2, also="l >= 2").apply(table, Run(seed=1))
    assert texts(release, "a") == ["[1;4]"] * 4 + ["[5;8]"] * 4
    with pytest.raises(UnreachableError, match="l-diversity"):
        SortedGeneralisation(k=2, also="l >= 3").apply(table, Run(seed=1))


@pytest.mark.parametrize(
    ("fails", "starts", "kept"),
    [
        ([1, 0, 0], [0, 2, 4, 6], [0, 4, 6]),
        ([0, 0, 1], [0, 2, 4, 6], [0, 2, 6]),
        ([1, 1, 1, 1], [0, 2, 4, 6, 8], [0, 4, 8]),
        ([1, 0, 0, 0], [0, 3, 4, 5, 8], [0, 8]),
        ([0, 1], [0, 2, 9], [0, 9]),
    ],
)
def test_failing_groups_grow_by_their_own_size(fails, starts, kept):
    borders = _needless(np.array(fails, dtype=bool), np.array(starts), 1)
    assert np.delete(starts, borders).tolist() == kept


def test_too_few_records_are_an_error():
    with pytest.raises(UnreachableError, match="k-anonymity"):
        SortedGeneralisation(k=3).apply(keyed({"a": [1, 2]}), Run(seed=1))


# Close generalisation ----------------------------------------------------------------------------------


def test_parts_and_clusters_for_every_n_and_k():
    """Every cluster has one of each part, or two of one; there are n // k, of k or more."""
    for n in range(1, 40):
        for k in range(1, n + 1):
            clusters = kernels.groups.sorted_clusters.one_of_each(np.arange(n), np.arange(n)[::-1].copy(), k)
            n_parts, n_clusters = kernels.groups.sorted_clusters.sizes_of(n, k)
            bounds = kernels.groups.sorted_clusters.bounds_of_parts(n, n_parts)
            part = np.searchsorted(bounds, np.arange(n), side="right") - 1
            held = np.zeros((n_clusters, n_parts), dtype=int)
            np.add.at(held, (clusters, part), 1)
            assert n_clusters == n // k
            assert n_parts == k + (n % k) // n_clusters
            assert held.min() == 1
            assert held.sum(axis=1).max() <= n_parts + 1


def test_the_size_of_equation_8():
    assert [size_for(1000, 2, closest_of(1000, k)) for k in (2, 3, 5, 10)] == [2, 3, 5, 10]
    assert size_for(1000, 7, 0.5) == 7
    assert size_for(1000, 2, 1e-9) == 1000
    assert size_for(1, 3, 0.1) == 1


def adversary(n, k):
    """Ages that put the outermost sensitive values of all parts into one cluster."""
    n_parts, _ = kernels.groups.sorted_clusters.sizes_of(n, k)
    bounds = kernels.groups.sorted_clusters.bounds_of_parts(n, n_parts)
    ages = np.empty(n)
    for part in range(n_parts):
        places = np.arange(bounds[part + 1] - bounds[part])
        ages[bounds[part] : bounds[part + 1]] = places if part < n_parts / 2 else places[::-1]
    return ages + 1


@pytest.mark.parametrize(
    ("n", "k"), [(4, 2), (6, 2), (8, 2), (6, 3), (9, 3), (12, 3), (8, 4), (12, 4), (10, 5)]
)
def test_one_of_each_part_is_within_the_bound_which_some_group_reaches(n, k):
    """All groups that take one of each part of n distinct values, and those that leave one part out."""
    parts = np.arange(n).reshape(k, -1).tolist()
    far = [ordered_distance(group, range(n)) for group in product(*parts)]
    assert max(far) == pytest.approx(closest_of(n, k))
    assert closest_of(n, size_for(n, 1, closest_of(n, k))) == pytest.approx(closest_of(n, k))
    without = [ordered_distance((*rest, *pair), range(n))
               for pair in combinations(parts[-1], 2) for rest in product(*parts[:-2])]  # fmt: skip
    assert max(without) > closest_of(n, k)


def test_with_ties_the_bound_fails_and_groups_are_joined():
    table = keyed({"age": [1, 2, 3, 4], "charge": [0, 0, 0, 1]}, charge=Role.SENSITIVE)
    assert ordered_distance([0, 0], [0, 0, 0, 1]) > closest_of(4, 2)
    for method in (CloseGeneralisation(k=2), TClosenessFirst(k=2)):
        assert groups_of(method.apply(table, Run(seed=1))) == [[0, 1, 2, 3]]


def test_the_bound_holds_for_every_n_and_k_against_an_adversary():
    worst = 0
    for n in range(2, 26):
        for k in range(2, min(n, 7)):
            table = keyed({"age": adversary(n, k), "charge": np.arange(n)}, charge=Role.SENSITIVE)
            release = CloseGeneralisation(k=k).apply(table, Run(seed=1))
            for group in groups_of(release):
                assert len(group) >= k
                assert ordered_distance(group, range(n)) <= (n - k) / (2 * (n - 1) * k) + 1e-12
            worst = max(worst, n // k - len(groups_of(release)))
    assert worst >= 1  # the adversary does break the bound before groups are joined


def test_a_given_t_holds_with_ties():
    rng = np.random.default_rng(3)
    for t in (0.05, 0.2):
        charges = rng.integers(0, 4, 101)
        table = keyed({"age": rng.integers(0, 50, 101), "charge": charges}, charge=Role.SENSITIVE)
        release = CloseGeneralisation(k=2, t=t).apply(table, Run(seed=1))
        assert max(ordered_distance(charges[g], charges.tolist()) for g in groups_of(release)) <= t


def test_missing_sensitive_values_are_spread_too():
    charges = [None if i % 3 == 0 else i for i in range(60)]
    table = keyed({"age": list(range(60)), "charge": charges}, charge=Role.SENSITIVE)
    release = CloseGeneralisation(k=3, t=0.2).apply(table, Run(seed=1))
    for group in groups_of(release):
        holes = sum(charges[row] is None for row in group) / len(group)
        assert abs(holes - 1 / 3) <= 0.2


def test_the_first_sensitive_column_governs_and_others_are_asked_for():
    rng = np.random.default_rng(5)
    frame = {"age": rng.integers(0, 50, 90), "x": np.arange(90), "y": rng.permutation(90)}
    table = keyed(frame, x=Role.SENSITIVE, y=Role.SENSITIVE)
    first = CloseGeneralisation(k=3).apply(table, Run(seed=1))
    named = CloseGeneralisation(k=3, sensitive="x").apply(table, Run(seed=1))
    other = CloseGeneralisation(k=3, sensitive=("y", "x")).apply(table, Run(seed=1))
    assert first.table.frame.equals(named.table.frame)
    assert not first.table.frame.equals(other.table.frame)
    also = "t(distance=ordered, sensitive=y) <= 0.12"
    both = CloseGeneralisation(k=3, sensitive="x", also=also).apply(table, Run(seed=1))
    for group in groups_of(both):
        assert ordered_distance(frame["y"][group], range(90)) <= 0.12
        assert ordered_distance(frame["x"][group], range(90)) <= closest_of(90, 3) + 1e-12


def test_what_a_sensitive_column_must_be():
    table = keyed({"a": [1, 2, 3], "s": ["x", "y", "z"]}, {"s": Kind.NOMINAL}, s=Role.SENSITIVE)
    with pytest.raises(RefusedError, match="with an order, got: `s` \\(nominal\\)"):
        CloseGeneralisation(k=2).apply(table, Run(seed=1))
    plain = keyed({"a": [1, 2, 3], "b": [1, 2, 3]})
    with pytest.raises(RefusedError, match="must be given a sensitive column"):
        CloseGeneralisation(k=2, t=0.1).apply(plain, Run(seed=1))
    with pytest.raises(RefusedError, match="must not be a key, got: `b`"):
        CloseGeneralisation(k=2, sensitive="b").apply(plain, Run(seed=1))
    release = CloseGeneralisation(k=2).apply(plain, Run(seed=1))
    assert release.notes == ("no column is sensitive: the groups are only k-anonymous",)


# t-closeness first -------------------------------------------------------------------------------------


def naive_nearest(points, order, k):
    """The third algorithm by its words, on lists."""
    n_parts, n_clusters = kernels.groups.sorted_clusters.sizes_of(len(order), k)
    bounds = kernels.groups.sorted_clusters.bounds_of_parts(len(order), n_parts)
    parts = [list(order[bounds[i] : bounds[i + 1]]) for i in range(n_parts)]
    clusters, ahead = np.full(len(order), -1), None

    def distance(row, centre):
        return float(((points[row] - centre) ** 2).sum())

    for number in range(n_clusters):
        left = [row for part in parts for row in part]
        centre = points[left].mean(axis=0) if number % 2 == 0 else ahead
        farthest = max(left, key=lambda row: (distance(row, centre), -row))
        ahead = points[farthest]
        more = next((part for part in parts if len(part) > n_clusters - number), None)
        for part in parts:
            for _ in range(2 if part is more else 1):
                row = min(part, key=lambda row: (distance(row, ahead), row))
                part.remove(row)
                clusters[row] = number
    return clusters


@pytest.mark.parametrize(("n", "k"), [(1, 1), (7, 2), (20, 3), (23, 4), (31, 31), (40, 7), (11, 4)])
def test_nearest_clusters_equal_naive_ones(n, k):
    rng = np.random.default_rng(n)
    points = rng.integers(0, 9, (n, 2)).astype(float)  # whole numbers: no rounding decides a tie
    order = rng.permutation(n)
    found = kernels.groups.sorted_clusters.nearest_of_each(points, order, k)
    assert found.tolist() == naive_nearest(points, order, k).tolist()


def test_nearest_clusters_lose_less_than_sorted_ones():
    rng = np.random.default_rng(8)
    frame = {"a": rng.normal(size=300), "b": rng.normal(size=300), "charge": rng.permutation(300)}
    table = keyed(frame, charge=Role.SENSITIVE)

    def lost(method):
        release = method.apply(table, Run(seed=1))
        for group in groups_of(release):
            assert ordered_distance(frame["charge"][group], range(300)) <= closest_of(300, 5) + 1e-12
        spans = [release.table.frame[name].struct for name in "ab"]
        return sum(float((span.field("hi") - span.field("lo")).sum()) for span in spans)

    assert lost(TClosenessFirst(k=5)) < lost(CloseGeneralisation(k=5))


def test_centres_keep_means_and_need_complete_keys():
    rng = np.random.default_rng(9)
    frame = {"a": rng.normal(size=60), "s": ["x", "y", "z"] * 20, "charge": rng.permutation(60)}
    table = keyed(frame, {"s": Kind.NOMINAL}, charge=Role.SENSITIVE)
    release = TClosenessFirst(k=4, show="centre").apply(table, Run(seed=1))
    assert release.table.frame["a"].mean() == pytest.approx(frame["a"].mean(), abs=1e-12)
    assert min(map(len, groups_of(release))) >= 4
    assert set(release.table.frame["s"]) <= {"x", "y", "z"}
    holes = table.with_values("a", pl.Series([None, *frame["a"][1:]]))
    with pytest.raises(RefusedError, match="missing values in `a`"):
        TClosenessFirst(k=4, show="centre").apply(holes, Run(seed=1))
    assert TClosenessFirst(k=4).apply(holes, Run(seed=1)).classes is not None
