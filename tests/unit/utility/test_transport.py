"""Earth mover's distance against optimal assignment, linear programming and hand-worked cases."""

import subprocess
import sys

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linear_sum_assignment, linprog
from scipy.spatial.distance import cdist

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.generalised.intervals import intervals
from sfumato.data.generalised.nodes import Nodes
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.kernels import assignment
from sfumato.utility._coordinates import coordinates_of, distances
from sfumato.utility.slices import SlicedEarthMoversDistance, mean_shadow
from sfumato.utility.transport import EarthMoversDistance


def table_of(columns, kinds):
    frame = pl.DataFrame({f"c{i}": column for i, column in enumerate(columns)}, strict=False)
    return Table(frame, Schema(tuple(Column(f"c{i}", kind) for i, kind in enumerate(kinds))))


def numeric(values):
    return table_of(list(values.T), [Kind.CONTINUOUS] * values.shape[1])


def emd(original, protected, measure=None, rows=None):
    return (measure or EarthMoversDistance()).score(
        Evidence(original, Release.of(protected, source_rows=rows)), Run(seed=1)
    )


same_size = st.tuples(st.integers(1, 12), st.integers(1, 3)).flatmap(
    lambda shape: st.tuples(
        *(arrays(np.float64, shape, elements=st.integers(-5, 5).map(float)) for _ in range(2))
    )
)


def scaled(x, y):
    low, span = x.min(axis=0), np.ptp(x, axis=0)
    span = np.where(span > 0, span, 1.0)
    return (x - low) / span, (y - low) / span


@given(same_size)
def test_tables_of_one_size_are_an_assignment(pair):
    x, y = pair
    costs = cdist(*scaled(x, y))
    expected = costs[linear_sum_assignment(costs)].mean()
    np.testing.assert_allclose(emd(numeric(x), numeric(y)).value, expected, rtol=1e-9, atol=1e-9)


@given(
    arrays(np.float64, st.tuples(st.integers(1, 6), st.just(2)), elements=st.integers(0, 5).map(float)),
    arrays(np.float64, st.tuples(st.integers(1, 6), st.just(2)), elements=st.integers(0, 5).map(float)),
)
def test_tables_of_two_sizes_are_a_linear_programme(x, y):
    costs = cdist(*scaled(x, y))
    n, m = costs.shape
    rows = np.kron(np.eye(n), np.ones(m))
    columns = np.kron(np.ones(n), np.eye(m))
    best = linprog(
        costs.ravel(), A_eq=np.vstack([rows, columns]), b_eq=np.r_[np.full(n, 1 / n), np.full(m, 1 / m)]
    )
    np.testing.assert_allclose(emd(numeric(x), numeric(y)).value, best.fun, rtol=1e-8, atol=1e-9)


def distance_of(one, other):
    """Two records of a number, a word and a number, None where missing."""
    squares = 0.0
    for i, (a, b) in enumerate(zip(one, other, strict=True)):
        if a is None or b is None:
            squares += (a is None) != (b is None)
        else:
            squares += a != b if i == 1 else (a - b) ** 2
    return np.sqrt(squares)


records = st.tuples(
    st.sampled_from([None, 0.0, 1.0, 5.0]), st.sampled_from([None, "a", "b"]), st.sampled_from([0.0, 1.0])
)


@given(st.lists(records, min_size=1, max_size=6), st.lists(records, min_size=1, max_size=6), st.booleans())
def test_mixed_tables_are_a_linear_programme(some, others, near):
    """Records that both have, missing values, and numbers many ranges away."""
    first, second = [(0.0, "a", 0.0), (1.0, "b", 1.0), *some], [*some[:2], *others]
    first = [(None if a is None else min(a, 1.0), b, c) for a, b, c in first]
    second = [(None if a is None else min(a, 1.0) if near else a, b, c) for a, b, c in second]
    costs = np.array([[distance_of(one, other) for other in second] for one in first])
    n, m = costs.shape
    best = linprog(
        costs.ravel(),
        A_eq=np.vstack([np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))]),
        b_eq=np.r_[np.full(n, 1 / n), np.full(m, 1 / m)],
    )
    kinds = (Kind.CONTINUOUS, Kind.NOMINAL, Kind.CONTINUOUS)
    tables = [
        table_of([list(column) for column in zip(*side, strict=True)], kinds) for side in (first, second)
    ]
    np.testing.assert_allclose(emd(*tables).value, best.fun, rtol=1e-8, atol=1e-9)


def test_a_missing_value_may_lie_on_the_way():
    """0 to 5 ranges costs 5 directly, and 2 where the missing one moves there and is replaced."""
    x, y = (table_of([side, [1.0] * 3], [Kind.CONTINUOUS] * 2) for side in ([0, 1, None], [1, None, 5]))
    assert emd(x, y).value == pytest.approx(2 / 3)


def test_a_column_without_values_costs_nothing():
    x, y = (table_of([side, [None] * 3], [Kind.CONTINUOUS] * 2) for side in ([0.0, 1, 2], [1.0, 2, 2]))
    assert emd(x, y).value == pytest.approx(1 / 3)


def test_the_solver_comes_without_the_rest_of_its_library():
    code = """
import sys
from sfumato.utility.transport import _network_simplex
value = _network_simplex()([0.5, 0.5], [0.25, 0.75], [[0.0, 1.0], [1.0, 0.0]])
print(value, "ot" in sys.modules, "sklearn" in sys.modules)
import ot
print(ot.emd2([0.5, 0.5], [0.25, 0.75], [[0.0, 1.0], [1.0, 0.0]]), callable(ot.sinkhorn), ot.lp.emd2 is ot.emd2)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0.25", "False", "False", "0.25", "True", "True"]


def test_by_hand():
    """One column 0…10: {0, 10} to {1, 10} moves half the mass by a tenth of the range: 0.05."""
    score = emd(numeric(np.array([[0.0], [10.0]])), numeric(np.array([[1.0], [10.0]])))
    assert score.value == pytest.approx(0.05)
    assert score.status is Status.OK


def test_only_the_same_distribution_costs_nothing():
    x = np.random.default_rng(0).normal(size=(50, 3))
    assert emd(numeric(x), numeric(x[::-1])).value == pytest.approx(0, abs=1e-12)
    assert emd(numeric(x), numeric(np.vstack([x, x]))).value == pytest.approx(0, abs=1e-12)
    assert emd(numeric(x), numeric(x + 0.001)).value > 1e-5


def test_a_suppressed_value_costs_its_whole_range():
    """Ten records, one cell suppressed of one column: a tenth of the mass moves by 1."""
    x = table_of([np.arange(10.0), np.zeros(10)], [Kind.CONTINUOUS] * 2)
    y = table_of([[None, *np.arange(1.0, 10)], np.zeros(10)], [Kind.CONTINUOUS] * 2)
    assert emd(x, y).value == pytest.approx(0.1)
    assert emd(y, y).value == pytest.approx(0, abs=1e-12)


def test_words_are_equal_or_not():
    """{a, a, b, c} to {a, b, b, c}: a quarter of the mass changes its word."""
    x = table_of([["a", "a", "b", "c"], [1.0] * 4], [Kind.NOMINAL, Kind.CONTINUOUS])
    y = table_of([["a", "b", "b", "c"], [1.0] * 4], [Kind.NOMINAL, Kind.CONTINUOUS])
    assert emd(x, y).value == pytest.approx(0.25)
    new = table_of([["a", "a", "b", "z"], [1.0] * 4], [Kind.NOMINAL, Kind.CONTINUOUS])
    assert emd(x, new).value == pytest.approx(0.25)


def test_joint_structure_counts():
    """Both columns keep their values, but the pairing is turned round: marginals alone would see 0."""
    x = np.array([[0.0, 0.0], [1.0, 1.0]] * 5)
    y = np.array([[0.0, 1.0], [1.0, 0.0]] * 5)
    assert emd(numeric(x), numeric(y)).value == pytest.approx(1.0)


def test_large_tables_are_sampled_and_say_so():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(600, 2))
    y = x + 0.3 * rng.normal(size=x.shape)
    exact = emd(numeric(x), numeric(y), rows=np.arange(600))
    sampled = EarthMoversDistance(records=150, matched=150, draws=5)
    rough = emd(numeric(x), numeric(y), sampled, rows=np.arange(600))
    assert rough.status is Status.APPROXIMATE
    assert rough.interval[0] <= rough.value <= rough.interval[1]
    assert rough.details["records"] == 150
    assert exact.value < rough.value < 2 * exact.value  # a sample overstates it, as the docstring says


def test_a_sample_is_no_larger_than_asked():
    x = np.random.default_rng(4).normal(size=(600, 2))
    found = emd(numeric(x), numeric(x[:-1] + 0.1), EarthMoversDistance(records=300, sample=50))
    assert found.details["records"] == 50
    few = emd(numeric(x[:40]), numeric(x[:39] + 0.1), EarthMoversDistance(records=40, sample=5))
    assert few.status is Status.OK  # what can be solved as a whole is


def test_released_records_of_nobody_are_sampled_too():
    x = np.random.default_rng(5).normal(size=(300, 2))
    rows = np.where(np.arange(300) < 30, -1, np.arange(300))
    found = emd(numeric(x), numeric(x + 0.1), EarthMoversDistance(records=100, matched=2), rows=rows)
    assert found.status is Status.APPROXIMATE
    assert 0 < found.value < np.inf


def test_some_records_lie_where_they_lie_among_all():
    """Ranges, ordinal positions and labels are those of whole tables, though few records are read."""
    rng = np.random.default_rng(7)
    nodes = Nodes.of({"ab": ["a", "b"], "c": ["c"]}, leaves=["a", "b", "c"])
    kinds = [Kind.CONTINUOUS, Kind.NOMINAL, Kind.ORDINAL, Kind.CONTINUOUS, Kind.NOMINAL]
    x, y = (
        table_of(
            [
                [None, *rng.normal(size=79)],
                np.array(list("klmn"))[rng.integers(0, 4, 80)],
                rng.integers(0, 40, 80),
                rng.normal(size=80),
                np.array(list("abc"))[rng.integers(0, 3, 80)],
            ],
            kinds,
        )
        for _ in range(2)
    )
    labels = pl.Series(np.where(rng.random(80) < 0.5, "ab", "c"), dtype=nodes.dtype)
    coarse = intervals(np.floor(y.frame["c3"].to_numpy()), np.ceil(y.frame["c3"].to_numpy()))
    y = Table(y.frame.with_columns(c3=coarse, c4=labels), y.schema, nodes={"c4": nodes})
    evidence, names = Evidence(x, Release.of(y)), ("c0", "c1", "c2", "c3", "c4")
    rows = rng.choice(80, 30), rng.choice(80, 20)
    whole, some = coordinates_of(evidence, names), coordinates_of(evidence, names, rows)
    among_all = distances(whole, whole.first[rows[0]], whole.second[rows[1]])
    np.testing.assert_array_equal(distances(some, some.first, some.second), among_all)


def test_triangle_inequality():
    rng = np.random.default_rng(6)
    x = rng.uniform(size=(40, 2))
    x[0], x[1] = 0.0, 1.0  # the same ranges in all three
    y, z = x.copy(), x.copy()
    y[2:], z[2:] = rng.uniform(size=(2, 38, 2))
    a, b, c = numeric(x), numeric(y), numeric(z)
    assert emd(a, c).value <= emd(a, b).value + emd(b, c).value + 1e-12


# One to one ---------------------------------------------------------------------------------------------


def test_more_records_are_matched_one_to_one():
    """The same by assignment as by transport, when both tables have as many records."""
    rng = np.random.default_rng(8)
    x = rng.normal(size=(300, 3))
    y = x + 0.2 * rng.normal(size=x.shape)
    whole = emd(numeric(x), numeric(y))
    matched = emd(numeric(x), numeric(y), EarthMoversDistance(records=100))
    assert matched.status is Status.OK
    assert matched.details["matched"] == "one to one"
    assert matched.value == pytest.approx(whole.value, rel=1e-8)


def test_equal_tables_need_no_assignment(monkeypatch):
    monkeypatch.setattr(assignment, "solve", None)
    x = numeric(np.random.default_rng(8).normal(size=(300, 3)))
    found = emd(x, x, EarthMoversDistance(records=100))
    assert (found.value, found.status) == (0.0, Status.OK)
    assert found.details["matched"] == "one to one"


def test_words_are_matched_one_to_one():
    rng = np.random.default_rng(9)
    kinds = [Kind.NOMINAL, Kind.CONTINUOUS, Kind.NOMINAL]
    words = np.array(["a", "b", "c", None], dtype=object)
    x, y = (
        table_of(
            [
                words[rng.integers(0, 4, 250)].tolist(),
                rng.normal(size=250),
                words[rng.integers(0, 3, 250)].tolist(),
            ],
            kinds,
        )
        for _ in range(2)
    )
    matched = emd(x, y, EarthMoversDistance(records=100))
    assert "matched" in matched.details
    assert matched.value == pytest.approx(emd(x, y).value, rel=1e-8)


def test_holes_and_weights_and_other_sizes_are_not_matched():
    x = np.random.default_rng(10).normal(size=(200, 2))
    holed = x.copy()
    holed[3, 1] = np.nan
    for other in (holed, x[:-1]):
        found = emd(numeric(x), numeric(other), EarthMoversDistance(records=50, draws=2))
        assert found.status is Status.APPROXIMATE
    found = emd(weighted(x, np.ones(200)), numeric(x), EarthMoversDistance(records=50, draws=2))
    assert found.status is Status.APPROXIMATE


# Weights and generalised values -------------------------------------------------------------------------


def weighted(values, weights):
    frame = pl.DataFrame({f"c{i}": column for i, column in enumerate(values.T)}).with_columns(
        weight=pl.Series(weights, dtype=pl.Float64)
    )
    columns = [Column(f"c{i}", Kind.CONTINUOUS) for i in range(values.shape[1])]
    return Table(frame, Schema((*columns, Column("weight", Kind.CONTINUOUS, Role.WEIGHT))))


@pytest.mark.parametrize("measure", [EarthMoversDistance(), SlicedEarthMoversDistance(directions=20)])
def test_a_weight_of_three_is_three_records(measure):
    rng = np.random.default_rng(11)
    x, y = rng.normal(size=(6, 2)), rng.normal(size=(4, 2))
    times = np.array([1, 3, 2, 1, 1, 2]), np.array([2, 1, 1, 3])
    long = numeric(np.repeat(x, times[0], axis=0)), numeric(np.repeat(y, times[1], axis=0))
    short = weighted(x, times[0]), weighted(y, times[1])
    assert emd(*short, measure).value == pytest.approx(emd(*long, measure).value, rel=1e-9)


def test_intervals_lie_at_their_middle():
    x = table_of([np.arange(11), np.zeros(11)], [Kind.CONTINUOUS] * 2)
    y = table_of([intervals(np.arange(11) - 1, np.arange(11) + 3), np.zeros(11)], [Kind.CONTINUOUS] * 2)
    assert emd(x, y).value == pytest.approx(0.1)
    assert emd(y, y).value == pytest.approx(0, abs=1e-12)
    assert emd(x, y, SlicedEarthMoversDistance()).value == pytest.approx(0.1, rel=0.5)


def test_a_set_of_words_lies_between_them():
    """Of two words: (½, ½) to (1, 0), each divided by √2, is √(2 · ¼) / √2 = ½ away."""
    nodes = Nodes.of({"ab": ["a", "b"], "a": ["a"], "b": ["b"], "c": ["c"]}, leaves=["a", "b", "c"])
    kinds = [Kind.NOMINAL, Kind.CONTINUOUS]
    x = table_of([["a", "b", "c", "c"], [0.0] * 4], kinds)
    labels = pl.Series(["ab", "ab", "c", "c"], dtype=nodes.dtype)
    y = Table(x.frame.with_columns(c0=labels), x.schema, nodes={"c0": nodes})
    assert emd(x, y).value == pytest.approx(0.25)
    assert emd(y, y).value == pytest.approx(0, abs=1e-12)
    sliced = emd(x, y, SlicedEarthMoversDistance(directions=400))
    assert sliced.interval[0] <= 0.25  # never above the distance itself, but for chance
    assert emd(y, y, SlicedEarthMoversDistance(directions=5)).value == 0


# Slices -------------------------------------------------------------------------------------------------


def test_the_mean_shadow():
    """In one dimension all of it, in two 2/π, in three ½."""
    assert [mean_shadow(d) for d in (1, 2, 3)] == pytest.approx([1, 2 / np.pi, 0.5])


def test_one_column_is_exact_in_slices():
    x, y = np.random.default_rng(1).normal(size=(2, 100, 1))
    sliced = emd(numeric(x), numeric(y), SlicedEarthMoversDistance())
    assert sliced.status is Status.OK
    assert sliced.value == pytest.approx(emd(numeric(x), numeric(y)).value)


def test_a_step_of_all_records_is_the_same_in_slices():
    """Its length is 0.5 = |(0.3, 0.4)|; the interval of 95 % holds it at this seed."""
    x = np.random.default_rng(2).uniform(size=(200, 2))
    x[0], x[1] = 0.0, 1.0
    sliced = emd(numeric(x), numeric(x + np.array([0.3, 0.4])), SlicedEarthMoversDistance(directions=2000))
    assert sliced.status is Status.APPROXIMATE
    assert sliced.interval[0] <= 0.5 <= sliced.interval[1]
    assert sliced.interval[1] - sliced.interval[0] < 0.03
    assert emd(numeric(x), numeric(x + np.array([0.3, 0.4]))).value == pytest.approx(0.5)


@pytest.mark.parametrize("seed", range(6))
def test_slices_are_not_above_the_distance(seed):
    """Mixed kinds with holes: the lower end of a 95 % interval is above the mean in 1 of 40 cases."""
    rng = np.random.default_rng(seed)
    kinds = [Kind.CONTINUOUS, Kind.NOMINAL, Kind.ORDINAL]
    words = np.array(["a", "b", "c", None], dtype=object)

    def drawn(shift):
        numbers = np.clip(rng.uniform(size=60) + shift, 0, 1)
        numbers[:2] = 0.0, 1.0
        holed = [None if rng.random() < 0.1 else v for v in numbers]
        return table_of([holed, words[rng.integers(0, 4, 60)].tolist(), rng.integers(0, 5, 60)], kinds)

    x, y = drawn(0.0), drawn(0.2)
    assert emd(x, y, SlicedEarthMoversDistance(directions=200)).interval[0] <= emd(x, y).value


def test_slices_see_joint_structure():
    x = np.array([[0.0, 0.0], [1.0, 1.0]] * 5)
    y = np.array([[0.0, 1.0], [1.0, 0.0]] * 5)
    assert emd(numeric(x), numeric(y), SlicedEarthMoversDistance(directions=200)).value > 0.3
    assert emd(numeric(x), numeric(x[::-1]), SlicedEarthMoversDistance(directions=5)).value == 0
