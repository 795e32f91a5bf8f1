"""Counting queries: conditions and expected counts by hand, and by counting one record at a time."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.generalised.intervals import intervals
from sfumato.data.generalised.nodes import Nodes
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.utility import queries
from sfumato.utility.queries import Choices, QueryError, Ranges, _queried_column
from toys import table_of


def score(original, protected, rows=None, **settings):
    return QueryError(**settings).score(
        Evidence(original, Release.of(protected, source_rows=rows)), Run(seed=1)
    )


def asked(original, protected, name="x"):
    return _queried_column(Evidence(original, Release.of(protected)), name)


def between(low, high):
    return Ranges(np.array([[float(low)]]), np.array([[float(high)]]))


def one_of(*wanted, n_codes):
    flags = np.zeros((1, n_codes + 1), dtype=bool)
    flags[0, list(wanted)] = True
    return Choices(flags)


# ------------------------------------------------------------------------------------------- generalised values


def test_ranges_of_whole_numbers_count_by_members():
    original = table_of({"x": [0, 50, 99]})
    series = intervals(
        pl.Series([20, 30, None, None]),
        pl.Series([29, 30, None, None]),
        missing=[False, False, False, True],
        name="x",
    )
    column = asked(original, Table(pl.DataFrame([series]), original.schema))
    # Asked for 25 to 34: five of the ten from 20 to 29, 30 itself, ten of the hundred there are, nothing.
    np.testing.assert_allclose(column.released_chances(between(25, 34))[0], [0.5, 1, 0.1, 0])


def test_ranges_of_real_numbers_count_by_length():
    original = table_of({"x": [0.0, 100.0]})
    series = intervals(pl.Series([0.0, 7.0, None]), pl.Series([10.0, 7.0, 10.0]), name="x")
    column = asked(original, Table(pl.DataFrame([series]), original.schema))
    np.testing.assert_allclose(column.released_chances(between(5, 20))[0], [0.5, 1, 0.5])


def test_sets_count_by_members_and_the_wildcard_by_all():
    original = table_of({"x": ["a", "b", "c", "d", None]}, x=Kind.NOMINAL)
    nodes = Nodes.of({"ab": ["a", "b"], "c": ["c"]}, leaves=["a", "b", "c", "d"])
    labels = pl.Series("x", ["ab", "c", "*", None, "ab"], dtype=nodes.dtype)
    protected = Table(pl.DataFrame([labels]), original.schema, nodes={"x": nodes})
    column = asked(original, protected)
    wanted = one_of(0, 2, n_codes=4)
    np.testing.assert_allclose(column.released_chances(wanted)[0], [0.5, 1, 0.5, 0, 0.5])
    assert wanted.met_by(column.values)[0].tolist() == [True, False, True, False, False]


def test_a_range_of_categories_is_a_set_of_them():
    original = table_of({"x": [1, 2, 3, 4]}, x=Kind.NOMINAL)
    series = intervals(pl.Series([1, 4]), pl.Series([2, 4]), name="x")
    column = asked(original, Table(pl.DataFrame([series]), original.schema))
    np.testing.assert_allclose(column.released_chances(one_of(0, 3, n_codes=4))[0], [0.5, 1])


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)).map(sorted), min_size=1, max_size=8),
    st.tuples(st.integers(0, 9), st.integers(0, 9)).map(sorted),
)
def test_overlap_is_a_count_of_members(ranges, wanted):
    original = table_of({"x": np.arange(10)})
    series = intervals(
        pl.Series([low for low, _ in ranges]), pl.Series([high for _, high in ranges]), name="x"
    )
    column = asked(original, Table(pl.DataFrame([series]), original.schema))
    expected = [
        np.mean([wanted[0] <= member <= wanted[1] for member in range(low, high + 1)]) for low, high in ranges
    ]
    np.testing.assert_allclose(column.released_chances(between(*wanted))[0], expected)


# ------------------------------------------------------------------------------------------------ conditions


def test_a_range_holds_the_share_that_is_asked_for():
    original = table_of({"x": np.random.default_rng(1).permutation(200).astype(float)})
    column = asked(original, original)
    drawn = column.draw(50, 0.1, np.random.default_rng(2))
    assert (drawn.met_by(column.values).sum(axis=1) == 20).all()
    assert len(np.unique(drawn.lows)) > 20


def test_choices_hold_at_least_the_share_and_no_category_too_many():
    original = table_of({"x": list("aaaabbbccd")}, x=Kind.NOMINAL)
    column = asked(original, original)
    drawn = column.draw(200, 0.3, np.random.default_rng(2))
    met = drawn.met_by(column.values).sum(axis=1)
    assert met.min() >= 3
    largest = [max(column.counts[flags[:-1]]) for flags in drawn.wanted]  # without it they are too few
    assert all(count - most < 3 for count, most in zip(met, largest, strict=True))


# ------------------------------------------------------------------------------------------------ the measure


def mixed(n=120, seed=1):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    return table_of(
        {"x": x, "y": np.rint(3 * x + rng.normal(size=n)), "z": rng.choice(list("abcd"), n)}, z=Kind.NOMINAL
    )


def test_the_original_answers_rightly_and_so_do_its_copies():
    original = mixed()
    assert score(original, original).value == 0
    twice = original.take(np.tile(np.arange(120), 2))
    np.testing.assert_allclose(score(original, twice).value, 0, atol=1e-12)


def test_a_release_that_says_nothing_counts_nobody():
    original = table_of({"x": np.arange(100.0)})
    nothing = table_of({"x": pl.Series("x", [None] * 100, dtype=pl.Float64)})
    found = score(original, nothing)
    assert found.value == 1
    assert found.interval == (1, 1)
    # With a floor of 20 % the ten records that are missed count half.
    np.testing.assert_allclose(score(original, nothing, floor=20.0).value, 0.5)


def test_a_shift_by_half_a_range_loses_half():
    # Queries of 10 of 100 records in a row, over records of which every other one is 1000 away.
    original = table_of({"x": np.arange(100.0)})
    half = table_of({"x": np.where(np.arange(100) % 2, 1000.0, np.arange(100.0))})
    np.testing.assert_allclose(score(original, half, dimensions=1).value, 0.5)


def naive(original, protected, measure):
    """Count every query record by record, from the same draws."""
    evidence = Evidence(original, Release.of(protected))
    columns = [_queried_column(evidence, name) for name in sorted(original.names)]
    run = Run(seed=1)
    d = min(measure.dimensions, len(columns))
    order = run.rng("columns").random((measure.queries, len(columns))).argsort(axis=1)[:, :d]
    wanted = [
        column.draw(int((order == place).any(axis=1).sum()), (measure.selectivity / 100) ** (1 / d), rng)
        for place, (column, rng) in enumerate((c, run.rng("conditions", c.name)) for c in columns)
    ]
    used, errors = [0] * len(columns), []
    for chosen in order:
        counts = []
        for side in (0, 1):
            met = np.ones(len((original, protected)[side]))
            for place in chosen:
                values = columns[place].values if side == 0 else columns[place].spans.lows
                met *= wanted[place].met_by(values)[used[place]]
            counts.append(met.mean())
        for place in chosen:
            used[place] += 1
        errors.append(abs(counts[0] - counts[1]) / max(counts[0], measure.floor / 100))
    return np.mean(errors)


@pytest.mark.parametrize("dimensions", [1, 2, 3, 5])
def test_queries_are_counts_of_records(dimensions):
    measure = QueryError(queries=40, dimensions=dimensions)
    original, protected = mixed(seed=1), mixed(90, seed=2)
    found = measure.score(Evidence(original, Release.of(protected)), Run(seed=1))
    np.testing.assert_allclose(found.value, naive(original, protected, measure), rtol=1e-9)


def test_some_queries_at_a_time_are_all_queries(monkeypatch):
    original, protected = mixed(seed=1), mixed(seed=2)
    whole = score(original, protected, queries=50)
    monkeypatch.setattr(queries, "_AT_ONCE", 120 * 50)
    assert score(original, protected, queries=50).value == whole.value


def test_weights_are_repeated_records():
    schema = Schema((Column("x", Kind.CONTINUOUS), Column("w", Kind.CONTINUOUS, Role.WEIGHT)))
    x, y = np.random.default_rng(1).normal(size=(2, 40))
    weights = np.tile([1, 3], 20)
    tables = [Table(pl.DataFrame({"x": each, "w": weights.astype(float)}), schema) for each in (x, y)]
    evidence = Evidence(tables[0], Release.of(tables[1]))
    plain = _queried_column(evidence, "x").draw(20, 0.2, np.random.default_rng(1))
    found = score(*tables, queries=20, selectivity=20.0)
    assert found.status is Status.OK
    # The share of weight that meets a condition is that of records repeated as often.
    repeated = np.repeat(x, weights)
    np.testing.assert_allclose(
        plain.met_by(x) @ weights / weights.sum(), plain.met_by(repeated).mean(axis=1), rtol=1e-12
    )
    assert (
        found.value != score(*(table.select(["x"]) for table in tables), queries=20, selectivity=20.0).value
    )


def test_errors_are_told_by_column():
    original = mixed()
    worse = original.with_values("z", original.frame["z"].sample(fraction=1.0, shuffle=True, seed=1))
    found = score(original, worse, dimensions=1)
    assert found.by_column["x"] == found.by_column["y"] == 0
    found = score(original, worse)
    assert found.by_column["z"] > found.by_column["x"]
    assert found.interval[0] <= found.value <= found.interval[1]


def test_a_column_with_nothing_in_it_is_not_asked_for():
    nothing = pl.Series("y", [None] * 10, dtype=pl.Float64)
    original = table_of({"x": np.arange(10.0), "y": nothing})
    assert set(score(original, original).by_column) == {"x"}
    alone = table_of({"y": nothing})
    assert score(alone, alone).status is Status.NOT_ESTIMABLE


def test_large_tables_are_sampled():
    original, protected = mixed(600, seed=1), mixed(600, seed=2)
    found = score(original, protected, records=200, queries=50)
    assert found.status is Status.APPROXIMATE
    assert found.interval[0] <= found.value <= found.interval[1]
