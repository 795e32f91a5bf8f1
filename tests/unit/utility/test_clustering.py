"""Clusters: indices by hand, by counting pairs, and against scikit-learn."""

import sys
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.run import Run
from sfumato.data.schema import Kind
from sfumato.errors import MissingDependencyError
from sfumato.utility import clustering
from sfumato.utility.clustering import (
    ClusterAgreement,
    ClusterStructure,
    agreement,
    davies_bouldin,
    k_means,
    silhouettes,
)
from toys import table_of

pytest.importorskip("sklearn")


def score(measure, original, protected, rows=None):
    return measure.score(Evidence(original, protected, source_rows=rows), Run(seed=1))


def numeric(values):
    return table_of({f"c{i}": column for i, column in enumerate(values.T)})


def blobs(n=40, seed=1, spread=0.3):
    """Points around four corners, and the corner of each."""
    rng = np.random.default_rng(seed)
    corners = np.arange(n) % 4
    return np.stack([corners % 2, corners // 2], axis=1) * 5.0 + spread * rng.normal(size=(n, 2)), corners


# ------------------------------------------------------------------------------------------------ pairs


def test_agreement_by_hand():
    # Together in the first: 01, 23; in the second: 12, 13, 23; in both: 23; apart in both: 02, 03.
    found = agreement(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1]))
    np.testing.assert_allclose(found["rand"][0], 3 / 6)
    np.testing.assert_allclose(found["fowlkes-mallows"][0], 1 / np.sqrt(2 * 3))


labels = st.integers(2, 9).flatmap(
    lambda n: st.tuples(*(st.lists(st.integers(0, 3), min_size=n, max_size=n) for _ in range(2)))
)


@given(labels)
def test_agreement_counts_pairs(pair):
    first, second = (np.array(each) for each in pair)
    pairs = list(combinations(range(len(first)), 2))
    mine = [first[i] == first[j] for i, j in pairs]
    theirs = [second[i] == second[j] for i, j in pairs]
    both = sum(a and b for a, b in zip(mine, theirs, strict=True))
    found = agreement(first, second)
    np.testing.assert_allclose(found["rand"][0], np.mean([a == b for a, b in zip(mine, theirs, strict=True)]))
    if any(mine) and any(theirs):
        np.testing.assert_allclose(found["fowlkes-mallows"][0], both / np.sqrt(sum(mine) * sum(theirs)))


def test_chance_is_the_mean_over_all_ways_to_deal_the_clusters():
    first, second = np.array([0, 0, 0, 1, 1]), np.array([0, 0, 1, 1, 2])
    dealt = [agreement(first, np.array(each)) for each in permutations(second)]
    for index in ("rand", "fowlkes-mallows"):
        mean = np.mean([found[index][0] for found in dealt])
        np.testing.assert_allclose(agreement(first, second)[index][1], mean)
    np.testing.assert_allclose(np.mean([found["adjusted-rand"][0] for found in dealt]), 0, atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_indices_are_those_of_scikit_learn(seed):
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(seed)
    first, second = rng.integers(4, size=(2, 50))
    points = rng.normal(size=(50, 3)) + first[:, None]
    found = agreement(first, second)
    np.testing.assert_allclose(found["rand"][0], metrics.rand_score(first, second))
    np.testing.assert_allclose(found["adjusted-rand"][0], metrics.adjusted_rand_score(first, second))
    np.testing.assert_allclose(found["fowlkes-mallows"][0], metrics.fowlkes_mallows_score(first, second))
    np.testing.assert_allclose(davies_bouldin(points, first), metrics.davies_bouldin_score(points, first))
    np.testing.assert_allclose(
        silhouettes(points, first, np.arange(50)), metrics.silhouette_samples(points, first), atol=1e-12
    )


# ------------------------------------------------------------------------------------------------ clearness


def test_silhouettes_and_davies_bouldin_by_hand():
    points, groups = np.array([[0.0], [1.0], [4.0]]), np.array([0, 0, 1])
    # a = 1; b = 4 and 3; the third is alone
    np.testing.assert_allclose(silhouettes(points, groups, np.arange(3)), [3 / 4, 2 / 3, 0])
    # centres 1/2 and 4, widths 1/2 and 0: both ratios are (1/2) / (7/2)
    np.testing.assert_allclose(davies_bouldin(points, groups), 1 / 7)


def test_silhouettes_do_not_depend_on_how_many_are_asked_at_a_time(monkeypatch):
    points, corners = blobs()
    whole = silhouettes(points, corners, np.arange(40))
    monkeypatch.setattr(clustering, "_AT_ONCE", 100)
    probes = np.array([3, 7, 11, 39])
    np.testing.assert_allclose(silhouettes(points, corners, probes), whole[probes], rtol=1e-12)


# ------------------------------------------------------------------------------------------------ k-means


def test_clear_clusters_are_found():
    points, corners = blobs()
    found, centres = k_means(points, 4, 5, 1)
    assert agreement(corners, found)["rand"][0] == 1
    np.testing.assert_allclose(centres[found[0]], points[corners == corners[0]].mean(axis=0))


def test_the_best_of_several_starts_counts():
    points = np.random.default_rng(3).normal(size=(200, 2))
    costs = []
    for starts in (1, 20):
        groups, centres = k_means(points, 5, starts, 1)
        costs.append(((points - centres[groups]) ** 2).sum())
        # Each point is with the nearest centre: nothing is left to improve.
        assert (((points[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1) == groups).all()
    assert costs[1] <= costs[0]


def test_a_start_that_is_given_counts_if_it_ends_best():
    points, corners = blobs()
    best = np.stack([points[corners == corner].mean(axis=0) for corner in range(4)])
    found, _ = k_means(points, 4, 1, 1, also=best)
    assert agreement(corners, found)["rand"][0] == 1
    found, _ = k_means(points, 4, 5, 1, also=best + 1000)  # no worse than without it
    assert agreement(corners, found)["rand"][0] == 1


def test_fewer_points_than_clusters_are_clusters_of_their_own():
    points = np.array([[1.0], [1.0], [2.0]])
    labels, _ = k_means(points, 5, 1, 1, also=np.array([[0.0], [1.0], [2.0]]))
    assert labels[0] == labels[1] != labels[2]
    assert not k_means(np.zeros((4, 2)), 3, 1, 1)[0].any()
    assert davies_bouldin(np.arange(3.0)[:, None], np.arange(3)) == 0


def test_without_scikit_learn_clusters_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.cluster", None)
    original = numeric(blobs()[0])
    with pytest.raises(MissingDependencyError, match="sfumato\\[models\\]"):
        score(ClusterStructure(), original, original)


# ------------------------------------------------------------------------------------------------ the measures


@pytest.mark.parametrize("index", ["rand", "fowlkes-mallows"])
def test_the_original_agrees_with_itself(index):
    original = numeric(np.random.default_rng(1).normal(size=(60, 2)))
    found = score(ClusterAgreement(index=index), original, original, np.arange(60))
    assert found.value == 1
    assert found.baseline < 1
    assert found.details["adjusted_rand"] == 1


def test_records_that_changed_places_disagree_by_chance():
    points, _ = blobs(200)
    turned = np.random.default_rng(2).permutation(200)
    found = score(ClusterAgreement(clusters=4), numeric(points), numeric(points[turned]), np.arange(200))
    assert abs(found.value - found.baseline) < 0.02
    # Told where they come from, they agree again.
    found = score(ClusterAgreement(clusters=4), numeric(points), numeric(points[turned]), turned)
    assert found.value == 1


def test_only_records_that_map_make_pairs():
    points, _ = blobs(40)
    more = np.vstack([points, [[100.0, 100.0]]])
    rows = np.append(np.arange(40), -1)
    found = score(ClusterAgreement(clusters=5), numeric(points), numeric(more), rows)
    assert found.details["clusters_released"] == 5
    refused = score(ClusterAgreement(), numeric(points), numeric(points))
    assert refused.status is Status.REFUSED
    assert "map" in refused.reason
    nobody = score(ClusterAgreement(), numeric(points), numeric(points), np.full(40, -1))
    assert nobody.status is Status.NOT_ESTIMABLE


@pytest.mark.parametrize("index", ["silhouette", "davies-bouldin"])
def test_structure_is_that_of_the_two_tables(index):
    clear, _ = blobs(80, spread=0.1)
    blurred, _ = blobs(60, spread=2.0)
    measure = ClusterStructure(index=index, clusters=4)
    same = score(measure, numeric(clear), numeric(clear))
    assert same.value == 0
    found = score(measure, numeric(clear), numeric(blurred))  # records need not map
    np.testing.assert_allclose(found.value, abs(found.details["original"] - found.details["released"]))
    assert found.value > 0.3


def test_probes_come_with_an_interval_that_holds_the_whole():
    clear, _ = blobs(400, spread=0.5)
    blurred, _ = blobs(400, seed=2, spread=1.5)
    whole = score(ClusterStructure(clusters=4), numeric(clear), numeric(blurred))
    probed = score(ClusterStructure(clusters=4, probes=100), numeric(clear), numeric(blurred))
    assert whole.interval is None
    assert probed.interval[0] < whole.value < probed.interval[1]
    assert probed.interval[1] - probed.interval[0] < 0.2


def test_mixed_columns_cluster_by_category_too():
    letters = np.array(["a", "b"] * 30)
    original = table_of({"x": np.random.default_rng(1).normal(size=60), "y": letters}, y=Kind.NOMINAL)
    found = score(ClusterAgreement(clusters=2), original, original, np.arange(60))
    assert found.value == 1


def test_alike_records_have_no_clusters():
    constant = numeric(np.ones((10, 2)))
    varied = numeric(np.arange(20.0).reshape(10, 2))
    assert score(ClusterAgreement(), constant, constant, np.arange(10)).status is Status.NOT_ESTIMABLE
    assert score(ClusterStructure(), varied, constant).status is Status.NOT_ESTIMABLE
    assert 0 <= score(ClusterAgreement(), varied, constant, np.arange(10)).value < 1
