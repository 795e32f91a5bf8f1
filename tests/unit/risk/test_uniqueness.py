"""Uniqueness with ranges, sets and wildcards: the paper's examples and small tables worked out by hand."""

from datetime import date

import numpy as np
import polars as pl
import pytest

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.generalised.intervals import exact_intervals, intervals
from sfumato.data.generalised.nodes import Nodes
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.risk.uniqueness import Uniqueness

COUNTIES = Nodes.of(
    {"Kern": ["Kern"], "Fresno": ["Fresno"], "Napa": ["Napa"], "south": ["Kern", "Fresno"],
     "ends": ["Fresno", "Napa"]},
    leaves=["Fresno", "Kern", "Napa"],
)  # fmt: skip


def table_with(*series, nodes=None, kind=Kind.CONTINUOUS, **facts):
    columns = tuple(
        Column(each.name, Kind.NOMINAL if nodes and each.name in nodes else kind, Role.KEY, **facts)
        for each in series
    )
    return Table(pl.DataFrame(list(series)), Schema(columns), nodes=nodes or {})


def ages(*ranges, dtype=pl.Int64, name="age"):
    """Make a column of ranges; None is missing, a number is exact, (None, None) the wildcard."""
    pairs = [each if isinstance(each, tuple) else (each, each) for each in ranges]
    gone = [each is None for each in ranges]
    lo, hi = (pl.Series([pair[side] for pair in pairs], dtype=dtype) for side in (0, 1))
    return intervals(lo, hi, missing=gone, name=name)


def score_of(table, measure=None, **evidence):
    return (measure or Uniqueness()).score(Evidence(table, **evidence), Run(seed=1))


def unique_in(table, measure=None, **evidence):
    """Whether each record is unique, where the score agrees with that."""
    score = score_of(table, measure, **evidence)
    assert score.status is Status.OK
    assert score.value == score.by_record.mean()
    assert score.details["unique"] == score.by_record.sum()
    return score.by_record.astype(bool).tolist()


# ------------------------------------------------------------------------------------- the paper's examples


def test_exact_record_hides_behind_a_range_but_not_the_range_behind_it():
    assert unique_in(table_with(ages(26, (24, 28)))) == [False, True]


def test_range_is_unique_if_one_of_its_values_fits_nowhere_else():
    everybody = [24, 25, 26, 27, 28]
    assert unique_in(table_with(ages((24, 28), *everybody)))[0] is False
    for absent in everybody:
        others = [age for age in everybody if age != absent]
        assert unique_in(table_with(ages((24, 28), *others)))[0] is True


def test_wildcard_covers_the_whole_domain_by_definition():
    """`*` covers the ages from 0 to 85; of two wildcards each fits the other."""
    column = ages((None, None), (0, 40), (41, 85))
    assert unique_in(table_with(column, lower=0, upper=85), Uniqueness(missing="any")) == [
        False,
        False,
        False,
    ]
    short = ages((None, None), (0, 40), (41, 84))
    assert unique_in(table_with(short, lower=0, upper=85), Uniqueness(missing="any")) == [True, False, False]
    twice = table_with(ages((None, None), (None, None), 7))
    assert unique_in(twice, Uniqueness(missing="any")) == [False, False, False]
    assert unique_in(table_with(ages((None, None), 7)), Uniqueness(missing="any")) == [
        False,
        False,
    ]  # 7 is all there is


@pytest.mark.parametrize("policy", ["category", "worst"])
def test_one_suppressed_record_hides_nobody(policy):
    """By the definition it would hide all others: 1 of 500, which the details say."""
    table = table_with(ages((None, None), *range(1, 500)))
    score = Uniqueness(missing=policy).score(Evidence(table), Run(seed=1))
    assert score.value == 1
    assert score.details["unique_by_definition"] == 1
    twice = table_with(ages((None, None), (None, None), 7))
    assert unique_in(twice, Uniqueness(missing=policy)) == [False, False, True]


def test_masked_zip_code_is_a_range():
    """937** covers 93700 to 93799."""
    assert unique_in(table_with(ages(93_722, (93_700, 93_799)))) == [False, True]


# ----------------------------------------------------------------------------------------------- geometry


def test_neighbouring_ranges_of_whole_numbers_leave_no_gap_and_of_others_do():
    whole = ages((24, 28), (24, 25), (26, 28))
    assert unique_in(table_with(whole)) == [False, False, False]
    real = ages((24, 28), (24, 25), (26, 28), dtype=pl.Float64)
    assert unique_in(table_with(real)) == [True, False, False]
    assert unique_in(table_with(real, integer=True)) == [False, False, False]
    touching = ages((24, 28), (24, 26), (26, 28), dtype=pl.Float64)
    assert unique_in(table_with(touching)) == [False, False, False]


def test_ranges_between_whole_numbers_of_a_declared_integer_are_taken_for_real_ones():
    column = ages((0.2, 0.7), (0, 1), dtype=pl.Float64)
    assert unique_in(table_with(column, integer=True)) == [False, True]


def test_dates_are_days():
    days = [date(2020, 1, day) for day in (1, 3, 4, 6)]
    column = intervals([days[0], days[0], days[2]], [days[3], days[1], days[3]], name="day")
    assert unique_in(table_with(column, kind=Kind.DATE)) == [False, False, False]
    gap = intervals([days[0], days[0], days[3]], [days[3], days[1], days[3]], name="day")
    assert unique_in(table_with(gap, kind=Kind.DATE)) == [True, False, False]


def test_several_boxes_cover_together_what_none_covers_alone():
    """Four quarters around a hole, and the plug."""
    x = ages((0, 2), (0, 1), (2, 2), (1, 2), (0, 0), name="x")
    y = ages((0, 2), (0, 0), (0, 1), (2, 2), (1, 2), name="y")
    assert unique_in(table_with(x, y)) == [True, False, False, False, False]
    plugged = [pl.concat([column, ages(1, name=column.name)]) for column in (x, y)]
    assert unique_in(table_with(*plugged)) == [False] * 6


def test_sets_that_are_no_ranges():
    county = pl.Series("county", ["south", "Kern", "ends", "Fresno"], dtype=COUNTIES.dtype)
    table = table_with(county, nodes={"county": COUNTIES})
    # South is Kern and Fresno, both there; of the ends, Napa is nobody else's.
    assert unique_in(table) == [False, False, True, False]
    wild = table_with(
        pl.Series("county", ["*", "Kern", "ends", "Fresno"], dtype=COUNTIES.dtype), nodes={"county": COUNTIES}
    )
    assert unique_in(wild, Uniqueness(missing="any")) == [False, False, False, False]
    assert unique_in(wild) == [True, True, True, False]


def test_on_a_grid_unique_is_who_is_alone_in_a_cell():
    """Paper 003, S3: fixed ranges; only equal cells touch, so nothing is to be taken away."""
    rng = np.random.default_rng(7)
    values = rng.integers(0, 86, (400, 2))
    cuts = np.array([0, 5, 10, 16, 21, 26, 32, 37, 43, 48, 53, 59, 64, 69, 75, 80, 86])
    cell = np.searchsorted(cuts, values, side="right") - 1
    columns = [
        intervals(cuts[cell[:, i]], cuts[cell[:, i] + 1] - 1, name=name) for i, name in enumerate(("x", "y"))
    ]
    counts = np.zeros((16, 16), dtype=int)
    np.add.at(counts, (cell[:, 0], cell[:, 1]), 1)
    score = score_of(table_with(*columns))
    np.testing.assert_array_equal(score.by_record, counts[cell[:, 0], cell[:, 1]] == 1)
    assert score.details["fitted"] == 0
    assert 0 < score.value < 1


def test_sets_that_fall_apart_into_too_many_boxes_are_undecided():
    rng = np.random.default_rng(3)
    leaves = np.array([f"{i}" for i in range(1000)])
    nodes = Nodes.of({f"set {i}": leaves[rng.random(1000) < 0.5] for i in range(20)}, leaves=leaves)
    column = pl.Series("code", [f"set {i}" for i in range(20)], dtype=nodes.dtype)
    score = score_of(table_with(pl.concat([column, column[:1]]), nodes={"code": nodes}))
    assert score.status is Status.APPROXIMATE
    assert score.value == 19 / 21  # all that are alone; the first is not
    assert score.interval == (0.0, 19 / 21)


# ----------------------------------------------------------------------------------- exact values, raw files


def test_exact_values_are_unique_if_nobody_has_the_same():
    table = Table(
        pl.DataFrame({"sex": ["m", "m", "f", None], "age": [1.5, 1.5, 1.5, 2.0]}),
        Schema((Column("sex", Kind.NOMINAL, Role.KEY), Column("age", Kind.CONTINUOUS, Role.KEY))),
    )
    assert unique_in(table) == [False, False, True, True]


def test_sorting_filtering_and_unused_categories_change_nothing():
    kind = pl.Enum(["never", "b", "a"])
    frame = pl.DataFrame({"x": pl.Series(["a", "b", "b", "a", "b"], dtype=kind), "y": [1, 1, 2, 1, 2]})
    schema = Schema((Column("x", Kind.NOMINAL, Role.KEY), Column("y", Kind.ORDINAL, Role.KEY)))
    assert unique_in(Table(frame, schema)) == [False, True, False, False, False]
    turned = frame.sort("y", descending=True)
    assert unique_in(Table(turned, schema)) == [False, False, False, True, False]
    assert unique_in(Table(frame.filter(pl.col("y") == 1), schema)) == [False, True, False]


def test_a_declared_code_is_missing():
    frame = pl.DataFrame({"age": [-9, -9, 30]})
    table = Table(frame, Schema((Column("age", Kind.CONTINUOUS, Role.KEY, missing=(-9,)),)))
    assert unique_in(table) == [False, False, True]
    assert unique_in(table, Uniqueness(missing="worst")) == [True, True, True]


def test_what_the_intruder_knows_decides():
    frame = pl.DataFrame({"sex": ["m", "m", "f", "f"], "job": ["cook", "smith", "cook", "cook"]})
    schema = Schema(tuple(Column(name, Kind.NOMINAL, Role.KEY) for name in ("sex", "job")))
    table = Table(frame, schema)
    assert unique_in(table) == [True, True, False, False]
    assert unique_in(table, scenario=Scenario(columns=("sex",))) == [False] * 4
    assert unique_in(table, scenario=Scenario(columns=("job",))) == [False, True, False, False]


# ------------------------------------------------------------------------------------------ missing, persons


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("category", [True, False, False, True]),  # nobody else lacks it
        ("any", [False, False, False, False]),  # 1 to 3 are all there, and may be what is missing
        ("worst", [True, False, False, True]),
    ],
)
def test_missing_value_by_policy(policy, expected):
    column = ages(None, (1, 2), (1, 2), 3)
    assert unique_in(table_with(column), Uniqueness(missing=policy)) == expected


def test_as_any_an_exact_number_may_be_any_number_of_the_domain():
    """The true value behind the hole may be 2, which nobody has."""
    table = Table(
        pl.DataFrame({"age": [1, None, 3]}),
        Schema((Column("age", Kind.CONTINUOUS, Role.KEY, integer=True),)),
    )
    assert unique_in(table, Uniqueness(missing="any")) == [False, True, False]
    nominal = Table(table.frame, Schema((Column("age", Kind.NOMINAL, Role.KEY),)))
    assert unique_in(nominal, Uniqueness(missing="any")) == [False, False, False]


def test_as_any_a_value_that_was_in_the_original_may_be_missing():
    schema = Schema((Column("county", Kind.NOMINAL, Role.KEY),))
    original = Table(pl.DataFrame({"county": ["Kern", "Fresno", "Napa"]}), schema)
    release = Table(pl.DataFrame({"county": ["Kern", "Fresno", None]}), schema)
    rows = np.arange(3)
    found = unique_in(original, Uniqueness(missing="any"), release=Release.of(release, source_rows=rows))
    assert found == [False, False, True]


def test_as_any_ranges_of_the_original_say_what_values_there_are():
    """Column x shows 1.75 alone and holes; somebody was a 1.5, and the original holds a wildcard, too."""
    schema = Schema((Column("x", Kind.CONTINUOUS, Role.KEY), Column("y", Kind.NOMINAL, Role.KEY)))
    shown = {"y": ["n", None, None]}
    known = intervals([1.75, 1.5, None], [1.75, 1.5, None], name="x")
    holes = intervals([1.75, 1.75, 1.75], [1.75, 1.75, 1.75], missing=[False, True, False], name="x")
    original = Table(pl.DataFrame({"x": known, "y": ["n", "s", "e"]}), schema)
    released = Table(pl.DataFrame({"x": holes, **shown}), schema)
    evidence = Evidence(original, Release.of(released, source_rows=np.arange(3)))
    assert Uniqueness(missing="any").score(evidence, Run(seed=1)).by_record.tolist() == [0, 1, 0]


def test_as_any_a_missing_value_may_be_each_of_a_declared_order():
    schema = Schema((Column("x", Kind.ORDINAL, Role.KEY, order=("small", "middle", "large")),))
    for there in ("small", "large"):
        table = Table(pl.DataFrame({"x": [there, None]}), schema)
        assert Uniqueness(missing="any").score(Evidence(table), Run(seed=1)).by_record.tolist() == [0, 1]


def test_missing_values_and_wildcards_are_told_apart_and_hide_nobody():
    column = ages(None, (None, None), 5)
    score = score_of(table_with(column))
    assert score.by_record.tolist() == [1, 1, 1]
    assert score.details["unique_by_definition"] == 0  # 5 or nothing is all that the wildcard may be
    assert score_of(table_with(column, lower=0, upper=9)).details["unique_by_definition"] == 1
    county = pl.Series("county", [None, "*", "Kern"], dtype=COUNTIES.dtype)
    found = score_of(table_with(county, nodes={"county": COUNTIES}))
    assert found.value == 1
    assert found.details["unique_by_definition"] == 1


def test_persons_are_counted_and_do_not_hide_themselves():
    table = table_with(ages(26, (24, 28), 26, 40))
    schema = Schema((*table.schema.columns, Column("who", Kind.NOMINAL, Role.PERSON)))
    same = Table(table.frame.with_columns(who=pl.Series(["a", "a", "a", "b"])), schema)
    score = score_of(same)
    assert score.by_record.tolist() == [1, 1, 1, 1]
    assert score.value == 1
    others = Table(table.frame.with_columns(who=pl.Series(["a", "b", "a", "b"])), schema)
    score = score_of(others)
    assert score.by_record.tolist() == [0, 1, 0, 1]
    assert score.value == 0.5  # of two persons


# --------------------------------------------------------------------------------------------- doubt, shells


def hard_table():
    """A square cut into many small ones but one: to see that it is covered takes some work."""
    cells = [(x, y) for x in range(6) for y in range(6)]
    x = ages((0, 5), *(x for x, _ in cells), name="x")
    y = ages((0, 5), *(y for _, y in cells), name="y")
    return table_with(x, y)


def test_what_is_undecided_counts_as_unique_and_is_said():
    table = hard_table()
    assert unique_in(table) == [False] * 37
    score = score_of(table, Uniqueness(effort=20))
    assert score.status is Status.APPROXIMATE
    assert score.value == 1 / 37
    assert score.interval == (0.0, 1 / 37)
    assert score.details["undecided"] == 1
    assert score.by_record[0] == 1
    assert score.reason


def test_records_of_a_release_are_traced_to_the_original():
    original = table_with(exact_intervals(pl.Series("age", [1, 2, 3, 4])))
    release = table_with(ages(4, (1, 2), (1, 2)))
    score = score_of(original, release=Release.of(release, source_rows=np.array([3, 0, 1])))
    np.testing.assert_array_equal(score.by_record, [0, 0, np.nan, 1])
    assert score.value == 1 / 3
    assert score_of(original, release=Release.of(release)).by_record is None


def test_nobody_and_somebody():
    nobody = table_with(ages(1)).take(np.arange(0))
    assert score_of(nobody).status is Status.NOT_ESTIMABLE
    assert unique_in(table_with(ages((None, None)))) == [True]
    for policy in ("category", "any", "worst"):
        assert unique_in(table_with(ages(None)), Uniqueness(missing=policy)) == [True]


def test_a_key_that_cannot_be_compared_is_refused_not_left_out():
    table = Table(
        pl.DataFrame({"age": [1, 2], "items": [["a"], ["b"]]}),
        Schema((Column("age", Kind.CONTINUOUS, Role.KEY), Column("items", Kind.SET, Role.KEY))),
    )
    score = score_of(table)
    assert score.status is Status.REFUSED
    assert "`items`" in score.reason
