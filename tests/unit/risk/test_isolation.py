"""Who stands alone, against clustering by SciPy and all pairs; and outliers that are found again."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import cdist

from pairs import beside, numeric, score, table
from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.run import Run
from sfumato.data.points import points_of
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.kernels.neighbours import crowd
from sfumato.kernels.outlyingness import RobustCentre
from sfumato.risk.isolation import MOST_TIMES, ClusterIsolation, DensityIsolation
from sfumato.risk.linkage import DistanceLinkage
from sfumato.risk.outliers import OutlierDisclosure, RobustIntervals, RobustIntervalsInCrowds

OF_ONE = ClusterIsolation(), DensityIsolation()
RULES = ("quantile", "deviations", "mahalanobis", "density")


def original_alone(measure, of):
    return measure.score(Evidence(of), Run(seed=1))


# ------------------------------------------------------------------------------------------------ the kernel


def brute_crowd(points, groups, count):
    """Radii and sparsity by all pairs: at one place a group is one other."""
    far = cdist(points, points)
    radii, near = [], []
    for i in range(len(points)):
        others = {}
        for j in np.flatnonzero(groups != groups[i]):
            others[(tuple(points[j]), groups[j])] = far[i, j]
        ordered = sorted((distance, place) for (place, _), distance in others.items())
        if len(ordered) < count:
            radii.append(np.inf)
            near.append(None)
            continue
        radii.append(ordered[count - 1][0])
        near.append({place for distance, place in ordered[:count]})
    radii = np.array(radii)
    at = {}
    for point, radius in zip(map(tuple, points), radii, strict=True):
        at[point] = min(at.get(point, np.inf), radius)
    sparsity = []
    for radius, places in zip(radii, near, strict=True):
        mean = np.nan if places is None else np.mean([at[place] for place in places])
        sparsity.append(
            radius / mean if mean > 0 else mean if np.isnan(mean) else np.inf if radius > 0 else 0.0
        )
    return radii, np.array(sparsity)


@given(
    st.integers(1, 25).flatmap(
        lambda n: st.tuples(
            arrays(np.float64, (n, 2), elements=st.sampled_from([0.0, 1.0, 2.5, 7.25, 19.5])),
            st.one_of(st.just(np.arange(n)), arrays(np.int64, n, elements=st.integers(0, 4))),
            st.integers(1, 4),
        )
    )
)
def test_the_nearest_others_are_those_of_all_pairs(drawn):
    points, groups, count = drawn
    found = crowd(points, groups, count)
    radii, sparsity = brute_crowd(points, groups, count)
    np.testing.assert_allclose(found.radii, radii)
    # Of others that are as far any may be the last: where there are none the means agree.
    far = cdist(points, points)
    apart = [len(np.unique(row)) == len(np.unique(points, axis=0)) for row in far]
    np.testing.assert_allclose(found.sparsity[apart], sparsity[apart])


def test_many_of_ones_own_do_not_hide_who_is_next():
    points = np.r_[np.linspace(0, 1, 40), [5.0]][:, None]
    groups = np.r_[np.zeros(40), [1]].astype(np.int64)
    found = crowd(points, groups, 1)
    np.testing.assert_allclose(found.radii[:40], 5 - np.linspace(0, 1, 40))
    assert found.radii[40] == 4


# -------------------------------------------------------------------------------------------- clusters of one


@given(
    arrays(
        np.float64, st.tuples(st.integers(2, 30), st.integers(1, 3)), elements=st.integers(0, 12).map(float)
    ),
    st.sampled_from([0.3, 1.0, 1.7]),
)
def test_clusters_of_one_are_those_of_single_linkage(values, height):
    found = original_alone(ClusterIsolation(height=height), numeric(values))
    points = points_of(numeric(values), scale="deviation", nominal="equal")
    labels = fcluster(linkage(points, "single"), height, criterion="distance")
    sizes = np.bincount(labels)[labels]
    assert found.value == pytest.approx((sizes == 1).mean())


def test_clusters_of_one_of_mixed_columns_by_hand():
    """The colours' variance is 1, so that two are √(2/(1 − Σp²)) apart; only blue is alone in its colour."""
    people = table(
        {"x": [1.0, 1, 1, 1], "c": ["red", "red", "red", "blue"]}, {"x": Kind.CONTINUOUS, "c": Kind.NOMINAL}
    )
    found = original_alone(ClusterIsolation(), people)
    apart = np.sqrt(2 / (1 - (0.75**2 + 0.25**2)))
    np.testing.assert_allclose(found.by_record, [0, 0, 0, apart])
    assert found.value == 0.25
    assert found.details["alone"] == 1


def test_a_release_is_judged_by_itself_and_told_by_original():
    original = numeric([[1.0], [2], [3], [50]])
    released = numeric([[2.0], [2], [2]])
    found = score(ClusterIsolation(), original, released, rows=[3, 1, 2])
    assert found.value == 0
    np.testing.assert_array_equal(found.by_record, [np.nan, 0, 0, 0])
    assert score(ClusterIsolation(), original, released, rows=None).by_record is None


def people_of(persons, values):
    schema = Schema((Column("who", Kind.NOMINAL, Role.PERSON), Column("x", Kind.CONTINUOUS, Role.KEY)))
    return Table(pl.DataFrame({"who": persons, "x": values}), schema)


def test_persons_are_no_company_to_themselves():
    """The second person's two records are near each other, and far from all others."""
    found = original_alone(ClusterIsolation(), people_of([1, 2, 2, 3, 4], [0.0, 90, 91, 1, 2]))
    assert found.value == 0.25
    assert found.details["persons"] == 4


@pytest.mark.parametrize("measure", OF_ONE, ids=lambda each: each.name)
def test_no_number_without_a_reason(measure):
    for values in ([[1.0]], np.empty((0, 1))):
        found = original_alone(measure, numeric(values))
        assert (found.status, bool(found.reason)) == (Status.NOT_ESTIMABLE, True)
    one = original_alone(measure, people_of([1, 1, 1], [1.0, 2, 3]))
    assert one.status is Status.NOT_ESTIMABLE
    gone = original_alone(measure, numeric(np.full((6, 2), np.nan)))
    assert gone.value == 0  # all alike
    coarse = table({"a": pl.Series([{"lo": 0.0, "hi": 2.0}] * 9)})
    assert "exact values" in score(measure, numeric(np.ones((9, 1))), coarse).reason


# -------------------------------------------------------------------------------------------------- density


def test_density_by_hand():
    """On a line 0, 1, 2, 3, 13 with 2 neighbours the radii are 2, 1, 1, 2, 11; the last has 2 and 1 beside it."""
    of = numeric([[0.0], [1], [2], [3], [13]])
    found = original_alone(DensityIsolation(neighbours=2, farther=2), of)
    np.testing.assert_allclose(found.by_record, [2 / 1, 1 / 1.5, 1 / 1.5, 2 / 1, 11 / 1.5])
    assert found.value == 0.2


def test_one_apart_from_clumps_of_identical_records_is_isolated():
    of = numeric(np.r_[np.zeros(20), np.ones(20), [5.0]][:, None])
    found = original_alone(DensityIsolation(neighbours=3, farther=2), of)
    assert found.by_record[40] == MOST_TIMES
    assert found.value == pytest.approx(1 / 41)


def test_what_is_far_in_a_crowd_is_near_where_people_are_few():
    rng = np.random.default_rng(1)
    crowd_, village = rng.normal(size=(300, 2)) * 0.01, rng.normal(size=(60, 2)) + 40
    found = original_alone(DensityIsolation(), numeric(np.r_[crowd_, village, [[0.3, 0.3]]]))
    assert found.by_record[-1] > 5
    assert found.by_record.argmax() == 360


# ------------------------------------------------------------------------------------------------- outliers


@pytest.fixture(scope="module")
def firms():
    rng = np.random.default_rng(2)
    values = rng.multivariate_normal([0, 0], [[1, 0.95], [0.95, 1]], 300)
    values[:3] = [[9, 9], [-8, -8], [2, -2]]  # the third is odd in no column alone
    return values


@pytest.mark.parametrize(
    ("rule", "odd"), [("deviations", [0, 1]), ("mahalanobis", [0, 1, 2]), ("density", [0, 1, 2])]
)
def test_who_is_extreme(firms, rule, odd):
    found = score(OutlierDisclosure(rule=rule, farther=2), numeric(firms), numeric(firms))
    extreme = np.flatnonzero(~np.isnan(found.by_record))
    assert set(odd) <= set(extreme.tolist())
    assert len(extreme) < 20
    assert (found.value, found.details["extreme"]) == (1, len(extreme))
    if rule == "deviations":
        by_hand = (np.abs(firms - firms.mean(axis=0)) > 3 * firms.std(axis=0)).any(axis=1)
        np.testing.assert_array_equal(extreme, np.flatnonzero(by_hand))


def test_the_tails_of_each_column(firms):
    found = score(OutlierDisclosure(rule="quantile", tail=2), numeric(firms), numeric(firms))
    low, high = np.quantile(firms, [0.02, 0.98], axis=0)
    outside = ((firms < low) | (firms > high)).any(axis=1)
    np.testing.assert_array_equal(~np.isnan(found.by_record), outside)


@pytest.mark.parametrize("rule", RULES)
def test_outliers_are_linked_as_everybody_is(firms, rule):
    rng = np.random.default_rng(3)
    released = numeric(firms + rng.normal(size=firms.shape) * 0.5)
    everybody = score(DistanceLinkage(), numeric(firms), released)
    found = score(OutlierDisclosure(rule=rule), numeric(firms), released)
    extreme = ~np.isnan(found.by_record)
    np.testing.assert_array_equal(found.by_record[extreme], everybody.by_record[extreme])
    assert found.value == pytest.approx(everybody.by_record[extreme].mean())
    assert found.details["everybody"] == everybody.value
    assert found.value > everybody.value
    assert found.baseline == pytest.approx(1 / 300)


def test_nobody_is_extreme_and_nothing_is_there():
    flat = numeric(np.arange(20.0)[:, None])
    found = score(OutlierDisclosure(), flat, flat)
    assert (found.value, found.details["extreme"]) == (0, 0)
    gone = score(OutlierDisclosure(), numeric(np.full((20, 1), np.nan)), flat)
    assert gone.status is Status.NOT_ESTIMABLE
    nominal = table({"a": list("xyz")}, Kind.NOMINAL)
    assert "column, and there is none" in score(OutlierDisclosure(), nominal, nominal).reason
    assert score(OutlierDisclosure(), flat, flat, rows=None).status is Status.REFUSED


@pytest.mark.parametrize("rule", RULES)
def test_the_one_who_is_not_as_all_others_is_extreme(rule):
    """Where all others are equal there is no spread by which nobody would be far out."""
    values = numeric(np.r_[np.zeros(99), [100.0]][:, None])
    found = score(OutlierDisclosure(rule=rule), values, values)
    assert (found.value, found.details["extreme"], found.by_record[99]) == (1, 1, 1)


@pytest.mark.parametrize("rule", RULES)
def test_three_records(rule):
    few = numeric([[1.0, 2], [3, 4], [5, 900]])
    found = score(OutlierDisclosure(rule=rule), few, few)
    assert 0 <= found.value <= 1


# ------------------------------------------------------------------------------------------- RMDID1, RMDID2


def brute_rmdid(original, released, width, near, neighbours):
    middle = RobustCentre.of(original)
    squares = middle.distances(original)[0]
    x, y = (original - middle.centre) / middle.scale, (released - middle.centre) / middle.scale
    inside = (np.abs(x - y) <= width / 100 * squares[:, None]).all(axis=1)
    crowded = ((cdist(y, y) <= near / 100).sum(axis=1) - 1) >= neighbours
    return inside, inside & ~crowded


@pytest.mark.parametrize("noise", [0.0, 0.02, 0.2])
def test_robust_intervals_are_those_of_all_pairs(firms, noise):
    rng = np.random.default_rng(4)
    released = np.round(firms + noise * rng.normal(size=firms.shape), 1)
    first, second = brute_rmdid(firms, released, 2, 20, 2)
    found = score(RobustIntervals(width=2), numeric(firms), numeric(released))
    np.testing.assert_array_equal(found.by_record, first)
    assert found.value == first.mean()
    squares = RobustCentre.of(firms).distances(firms)[0]
    assert found.details["weighted"] == pytest.approx(squares[first].sum() / squares.sum())
    crowded = score(
        RobustIntervalsInCrowds(width=2, near=20, neighbours=2), numeric(firms), numeric(released)
    )
    np.testing.assert_array_equal(crowded.by_record, second)
    assert crowded.value <= found.value
    assert second.any()


def test_robust_intervals_where_values_are_missing():
    """The first record is judged by what it has in both tables; the last has nothing in the release."""
    rng = np.random.default_rng(5)
    values = rng.normal(size=(30, 2))
    released = values.copy()
    released[0, 1] = released[29] = np.nan
    found = score(RobustIntervals(), numeric(values), numeric(released))
    assert found.by_record[0] == 1
    assert found.by_record[29] == 0
    lost = score(RobustIntervals(), numeric(values), numeric(values[1:]), rows=np.r_[1:30])
    assert np.isnan(lost.by_record[0])
    assert lost.value == 1
    constant = score(RobustIntervals(), numeric(np.ones((9, 1))), numeric(np.ones((9, 1))))
    assert (constant.status, "varies" in constant.reason) == (Status.NOT_ESTIMABLE, True)


def test_persons_are_no_crowd():
    """Ten records of one person side by side hide nobody; of ten persons they do."""
    values = np.r_[np.linspace(-1, 1, 30), np.full(10, 9.0)]
    alone, crowded = (
        people_of(np.r_[np.arange(30), who], values) for who in (np.full(10, 99), np.arange(50, 60))
    )
    measure = RobustIntervalsInCrowds()
    assert measure.score(beside(alone, alone), Run(seed=1)).by_record[-1] == 1
    assert measure.score(beside(crowded, crowded), Run(seed=1)).by_record[-1] == 0
