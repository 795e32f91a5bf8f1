"""The permutation model against its definitions, by eigenvalues and by hand."""

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import rankdata

from pairs import beside, numeric, score, table
from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.hierarchy.likeness import labels_of, marginality
from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.data.schema import Kind, Role
from sfumato.risk._rank_moves import moves_of, reverse_mapping
from sfumato.risk.permutation import AllCorrelations, LargestCorrelation, SortedCorrelations
from sfumato.risk.power_mean import PowerMean, power_mean

CM = LargestCorrelation(), AllCorrelations(), SortedCorrelations()


def brute_cm(x, y):
    """CM1 and CM2 as they are printed: eigenvalues of Cxx⁻¹ Cxy Cyy⁻¹ Cyx of ranks."""
    x, y = (np.column_stack([rankdata(column) for column in side.T]) for side in (x, y))
    m = x.shape[1]
    c = np.cov(np.hstack((x, y)).T)
    squares = np.linalg.eigvals(np.linalg.solve(c[:m, :m], c[:m, m:]) @ np.linalg.solve(c[m:, m:], c[m:, :m]))
    squares = np.clip(squares.real, 0, 1)
    return 1 - squares.max(), np.prod(1 - squares)


def brute_cm3(x, y):
    """Algorithm 1, for columns without ties."""
    found = []
    for j in range(x.shape[1]):
        others = [column for column in range(x.shape[1]) if column != j]
        found.append(brute_cm(x[np.argsort(x[:, j])][:, others], y[np.argsort(y[:, j])][:, others])[1])
    return min(found)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("m", [1, 2, 4])
def test_eigenvalues(seed, m):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(60 - 7 * seed, m)) @ rng.normal(size=(m, m))
    y = x + rng.normal(size=x.shape) * rng.uniform(0.1, 2)
    original, released = numeric(x), numeric(y)
    expected = brute_cm(x, y)
    assert score(CM[0], original, released).value == pytest.approx(expected[0], abs=1e-9)
    assert score(CM[1], original, released).value == pytest.approx(expected[1], abs=1e-9)
    if m > 1:
        found = score(CM[2], original, released, rows=None)
        assert found.status is Status.OK
        assert found.value == pytest.approx(brute_cm3(x, y), abs=1e-9)


def test_ties_by_hand():
    """Ranks 1.5 1.5 3 4 5 against 1 2 3.5 3.5 5: ρ = 9 / 9.5."""
    found = score(CM[0], table({"a": [7, 7, 8, 9, 10]}), table({"a": [1, 2, 3, 3, 4]}))
    assert found.value == pytest.approx(1 - 9**2 / 9.5**2)


tables = st.tuples(st.integers(3, 30), st.integers(1, 4), st.sampled_from([2, 3, 30])).flatmap(
    lambda of: st.tuples(
        *(arrays(np.float64, of[:2], elements=st.integers(0, of[2]).map(float)) for _ in range(2)),
        st.booleans(),
        st.permutations(range(of[0])),
    )
)


@given(tables)
def test_laws_with_ties_and_singular_columns(drawn):
    """CM2 ≤ CM1, both 0 or none; columns that are constant or sums of others change nothing."""
    x, y, redundant, order = drawn
    if redundant:
        x = np.column_stack((x, np.zeros(len(x)), x[:, 0]))
        y = np.column_stack((y, y[:, 0], np.ones(len(x))))
    one, all_, sorted_ = (score(each, numeric(x), numeric(y)) for each in CM)
    assert one.status is all_.status
    if one.status is Status.OK:
        assert 0 <= all_.value <= one.value <= 1
        assert (all_.value == 0) == (one.value == 0)
        again = score(CM[1], numeric(x[order]), numeric(y[order]))
        assert again.value == pytest.approx(all_.value, abs=1e-7)
        twice = score(CM[1], numeric(np.column_stack((x, x[:, 0]))), numeric(np.column_stack((y, y[:, 0]))))
        assert twice.value == pytest.approx(all_.value, abs=1e-7)
    else:
        assert one.reason
        assert math.isnan(one.value)
    if sorted_.status in {Status.OK, Status.APPROXIMATE}:
        assert 0 <= sorted_.value <= 1
    same = score(CM[0], numeric(x), numeric(x))
    assert same.value == 0 or same.status is Status.NOT_ESTIMABLE
    trivial = score(CM[2], numeric(x), numeric(x[order]), rows=None)
    assert trivial.value == 0 or trivial.status in {Status.NOT_ESTIMABLE, Status.REFUSED}
    if trivial.value == 0:
        assert trivial.status is Status.OK


def test_whole_records_swapped_are_seen_by_sorting_alone():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(400, 3))
    y = x[rng.permutation(400)]
    found = [score(each, numeric(x), numeric(y)).value for each in CM]
    assert found[0] > 0.9
    assert found[1] > 0.9
    assert found[2] == 0


@pytest.mark.parametrize("m", [2, 5])
def test_independent_records(m):
    """About 1 − m²/(n − 1): the mean of 20 tables, of which one has a deviation of √2 m/(n − 1)."""
    n, rng = 500, np.random.default_rng(3)
    pairs = [rng.normal(size=(2, n, m)) for _ in range(20)]
    found = [score(CM[1], numeric(x), numeric(y)).value for x, y in pairs]
    assert np.mean(found) == pytest.approx(
        1 - m**2 / (n - 1), abs=4 * math.sqrt(2) * m / (n - 1) / math.sqrt(20)
    )


def test_columns_that_say_nothing_are_named():
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(2, 50, 2))
    original = numeric(np.column_stack((x, np.ones(50), x[:, 1])))
    released = numeric(np.column_stack((y, y[:, 0], np.zeros(50))))
    found = score(CM[1], original, released)
    assert found.value == pytest.approx(score(CM[1], numeric(x), numeric(y)).value)
    assert found.details["constant_in_original"] == "c"
    assert found.details["constant_in_release"] == "d"
    assert found.details["redundant_in_original"] in {"b", "d"}
    assert found.details["redundant_in_release"] in {"a", "c"}
    assert set(found.by_column) == {"a", "b"}


@pytest.mark.parametrize("measure", CM, ids=lambda each: each.name)
def test_no_number_without_a_reason(measure):
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(2, 3, 2))
    few = score(measure, numeric(x), numeric(y))
    assert (few.status, "3 complete records" in few.reason) == (Status.NOT_ESTIMABLE, True)
    gone = score(measure, numeric(x * np.nan), numeric(y))
    assert (gone.status, bool(gone.reason)) == (Status.NOT_ESTIMABLE, True)
    constant = score(measure, numeric(np.ones((20, 2))), numeric(rng.normal(size=(20, 2))))
    assert (constant.status, "varies" in constant.reason) == (Status.NOT_ESTIMABLE, True)
    empty = score(measure, numeric(x[:0]), numeric(y[:0]))
    assert empty.status is Status.NOT_ESTIMABLE


def test_one_column_cannot_be_sorted_and_compared():
    x = np.arange(9.0)[:, None]
    assert "at least 2" in score(CM[2], numeric(x), numeric(x)).reason


def test_pairs_must_be_known_but_to_sort():
    rng = np.random.default_rng(6)
    x, y = rng.normal(size=(2, 40, 2))
    for each in (*CM[:2], PowerMean()):
        assert score(each, numeric(x), numeric(y), rows=None).status is Status.REFUSED
    assert score(CM[2], numeric(x), numeric(y), rows=None).status is Status.OK


def test_records_that_were_left_out_and_that_lack_values():
    """As of the records that are left: those released, without the two that lack a value."""
    rng = np.random.default_rng(7)
    x = rng.normal(size=(40, 2))
    rows = np.r_[5:40]
    y = x[rows] + rng.normal(size=(35, 2))
    lacking = y.copy()
    lacking[3, 1] = lacking[9, 0] = np.nan
    kept = np.setdiff1d(np.arange(35), [3, 9])
    for each in CM:
        found = score(each, numeric(x), numeric(lacking), rows)
        whole = score(each, numeric(x[rows][kept]), numeric(y[kept]))
        assert found.value == pytest.approx(whole.value)
        assert (found.details["incomplete"], found.details["records"]) == (2, 33)


def test_a_column_without_values_does_not_take_all_records_with_it():
    rng = np.random.default_rng(8)
    x, y = rng.normal(size=(2, 30, 3))
    gone = y.copy()
    gone[:, 2] = np.nan
    found = score(CM[1], numeric(x), numeric(gone))
    assert found.value == pytest.approx(score(CM[1], numeric(x[:, :2]), numeric(y[:, :2])).value)
    assert found.details["columns_left_out"] == 1


def test_sizes_that_differ_are_sampled():
    rng = np.random.default_rng(9)
    found = score(CM[2], numeric(rng.normal(size=(80, 3))), numeric(rng.normal(size=(50, 3))), rows=None)
    assert (found.status, found.details["records"]) == (Status.APPROXIMATE, 50)
    assert "sampled" in found.reason


def test_ties_are_drawn_repeatedly():
    rng = np.random.default_rng(10)
    x, y = rng.integers(0, 3, (2, 60, 3)).astype(float)
    found = score(SortedCorrelations(draws=20), numeric(x), numeric(y), rows=None)
    assert found.status is Status.APPROXIMATE
    low, high = found.interval
    assert low < found.value < high
    assert found.value == min(found.by_column.values())


def test_generalised_values_have_no_ranks():
    shown = pl.Series("a", [{"lo": 0.0, "hi": 2.0}] * 9)
    released = table({"a": shown, "b": list(range(9))})
    original = table({"a": list(range(9)), "b": list(range(9))})
    for each in (*CM, PowerMean()):
        assert "exact values" in score(each, original, released).reason


# Nominal columns -----------------------------------------------------------------------------------------

JOBS = Hierarchy.from_levels(
    pl.DataFrame({"job": ["cook", "baker", "nurse"], "field": ["food", "food", "health"]}), name="jobs"
)


def with_jobs(original, released, rows="in order", **resources):
    kinds, facts = {"job": Kind.NOMINAL}, {"job": {"hierarchy": "jobs"}}
    sides = [table({"job": side}, kinds, **facts) for side in (original, released)]
    return Evidence(
        sides[0], Release.of(sides[1], source_rows=beside(*sides, rows=rows).source_rows), resources=resources
    )


def test_marginality_by_hand():
    """Of cook, cook, baker, nurse: cook is 1 from baker and 2 from nurse: 3; baker 2·1 + 2, nurse 3·2."""
    of = table({"job": ["cook", "cook", "baker", "nurse", None]}, Kind.NOMINAL)
    labels = labels_of(JOBS, of, "job")
    found = marginality(labels, labels)
    assert found[:4].tolist() == [3, 3, 4, 6]
    assert math.isnan(found[4])


def test_nominal_columns_are_ranked_by_marginality():
    jobs = ["cook"] * 5 + ["baker"] * 3 + ["nurse"] * 2
    released = ["cook"] * 4 + ["nurse", "baker", "baker", "cook", "nurse", "baker"]
    places = {"cook": 0, "baker": 1, "nurse": 2}
    found = CM[0].score(with_jobs(jobs, released, jobs=JOBS), Run(seed=1))
    x, y = (np.array([[places[job]] for job in side], dtype=float) for side in (jobs, released))
    assert found.value == pytest.approx(brute_cm(x, y)[0])


def test_nominal_columns_without_a_hierarchy_are_refused():
    for each in (CM[0], PowerMean()):
        found = each.score(with_jobs(["cook"] * 5, ["cook"] * 5), Run(seed=1))
        assert (found.status, "`job` has no hierarchy" in found.reason) == (Status.REFUSED, True)
    found = CM[0].score(with_jobs(["cook"] * 5, ["smith"] * 5, jobs=JOBS), Run(seed=1))
    assert "not among its 3 leaves" in found.reason
    assert "smith" not in found.reason


# Reverse mapping and how far values moved ----------------------------------------------------------------


@given(arrays(np.float64, st.tuples(st.just(2), st.integers(1, 20)), elements=st.integers(0, 40).map(float)))
def test_reverse_mapping_has_the_order_of_the_release(pair):
    x, y = pair
    z = reverse_mapping(x, y)
    order = np.argsort(y, kind="stable")
    assert (np.diff(z[order]) >= 0).all()
    if len(np.unique(y)) == len(y):
        assert sorted(z) == sorted(x)


def test_reverse_mapping_of_values_that_are_missing():
    z = reverse_mapping(np.array([1.0, np.nan, 3.0]), np.array([np.nan, 9.0, 8.0]))
    assert z[1:].tolist() == [3.0, 1.0]
    assert math.isnan(z[0])
    with pytest.raises(ValueError, match="as many values"):
        reverse_mapping(np.array([1.0]), np.array([1.0, 2.0]))


@given(
    *(arrays(np.float64, st.integers(1, 12), elements=st.integers(0, 40).map(float)) for _ in "xy"),
    st.integers(0, 99),
)
def test_of_sizes_that_differ_the_larger_is_drawn_from(x, y, seed):
    z = reverse_mapping(x, y, rng=np.random.default_rng(seed))
    there = ~np.isnan(z)
    assert there.sum() == min(len(x), len(y))
    order = np.argsort(y[there], kind="stable")
    assert (np.diff(z[there][order]) >= 0).all()
    if len(np.unique(y)) == len(y):
        assert set(z[there]) <= set(x)
    turned = np.random.default_rng(1).permutation(len(y))  # the order of a file decides nothing
    again = reverse_mapping(x, y[turned], rng=np.random.default_rng(seed))
    np.testing.assert_array_equal(np.sort(again), np.sort(z))


def test_power_means_by_hand():
    values = np.array([1.0, 2.0, 4.0])
    assert power_mean(values, 1) == pytest.approx(7 / 3)
    assert power_mean(values, 0) == pytest.approx(2)
    assert power_mean(values, -1) == pytest.approx(3 / 1.75)
    assert power_mean(values, 2) == pytest.approx(math.sqrt(7))
    assert power_mean(values, 100) == pytest.approx(4, rel=0.02)
    assert power_mean(values, -100) == pytest.approx(1, rel=0.02)
    assert [power_mean(np.array([0.0, 3.0]), alpha) for alpha in (-1, 0, 1)] == [0, 0, 1.5]
    assert power_mean(np.zeros(2), 2) == 0


def test_power_mean_of_the_column_that_moved_least():
    """Column a moves by 1, 1, 0, 0 ranks of 3; b by 3, 1, 1, 3."""
    original = table({"a": [1, 2, 3, 4], "b": [1, 2, 3, 4]})
    released = table({"a": [2, 1, 3, 4], "b": [4, 3, 2, 1]})
    found = score(PowerMean(alpha=1), original, released)
    assert found.by_column == pytest.approx({"a": 0.5 / 3, "b": 2 / 3})
    assert found.value == pytest.approx(0.5 / 3)
    assert found.by_record.tolist() == pytest.approx([1 / 3, 1 / 3, 0, 0])
    assert score(PowerMean(alpha=0), original, released).by_column == pytest.approx(
        {"a": 0, "b": math.sqrt(3) / 3}
    )


def test_power_mean_counts_persons():
    """The first person's records moved by 2 and 1 ranks, the second's by 1 and 0: 1 and 0 count."""
    who = {"who": [1, 1, 2, 2]}
    sides = [
        table({**who, "a": a}, {"who": Kind.NOMINAL, "a": Kind.CONTINUOUS})
        for a in ([1, 2, 3, 4], [3, 1, 2, 4])
    ]
    columns = tuple(
        column if column.name == "a" else type(column)("who", Kind.NOMINAL, Role.PERSON)
        for column in sides[0].schema.columns
    )
    schema = type(sides[0].schema)(columns)
    sides = [type(side)(side.frame, schema) for side in sides]
    found = score(PowerMean(alpha=1), *sides)
    assert found.value == pytest.approx((1 + 0) / 2 / 3)


def test_how_far_the_values_of_a_record_moved():
    original = table({"a": [10, 20, 30, 40], "b": [4.0, None, 2, 1]})
    released = table({"a": [21, 11, 31, 41], "b": [4.0, 3, 2, 1]})
    (move, other) = moves_of(beside(original, released), 0)
    assert (move.column, move.rank, move.released_rank, move.rank_distance, move.of_ranks) == (
        "a",
        1,
        2,
        1,
        4,
    )
    assert (move.as_if, move.to_dict()["moved"]) == (20, 1)
    assert (other.rank_distance, other.of_ranks) == (0, 3)
    assert [each.column for each in moves_of(beside(original, released), 1)] == ["a"]
    assert moves_of(beside(original, released, rows=None), 0) == ()
    assert moves_of(beside(original, released, rows=[1, 2, 3, -1]), 0) == ()
