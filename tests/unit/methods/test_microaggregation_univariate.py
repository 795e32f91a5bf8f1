"""Individual ranking and optimal microaggregation through the table shell."""

from datetime import date, datetime

import numpy as np
import polars as pl
import pytest

from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import ParameterError, RefusedError
from sfumato.methods.univariate_microaggregation import IndividualRanking, OptimalMicroaggregation
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step

METHODS = [IndividualRanking, OptimalMicroaggregation]
by_method = pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)


def column_of(values, kind=Kind.CONTINUOUS, **facts):
    series = values if isinstance(values, pl.Series) else pl.Series(values)
    return Table(series.alias("x").to_frame(), Schema((Column("x", kind, **facts),)))


def shown(method, table):
    return method.apply(table, Run(seed=1)).table.frame["x"].to_list()


def test_individual_ranking_by_hand():
    """Sorted 1 2 | 3 4 | 7 8 30: the last group takes the one left over."""
    assert shown(IndividualRanking(k=2), column_of([8.0, 1, 4, 2, 7, 3, 30])) == [
        15,
        1.5,
        3.5,
        1.5,
        15,
        3.5,
        15,
    ]


def test_optimal_by_hand():
    """Sorted 1 2 3 | 50 60 | 98 99: every partition in twos and threes but this cuts a cluster."""
    found = shown(OptimalMicroaggregation(k=2), column_of([99.0, 1, 60, 2, 3, 98, 50]))
    assert found == [98.5, 2, 55, 2, 2, 98.5, 55]


@by_method
def test_fewer_than_2k_values_are_one_group(method):
    assert shown(method(k=2), column_of([0.0, 3, 9])) == [4.0] * 3
    assert shown(method(k=3), column_of([0.0, 3, 9])) == [4.0] * 3
    assert shown(method(k=1), column_of([0.0, 3, 9])) == [0.0, 3, 9]


@by_method
def test_k_is_bounded_by_the_values_that_are_there(method):
    table = column_of([1.0, None, 3.0, None])
    assert shown(method(k=2), table) == [2.0, None, 2.0, None]
    with pytest.raises(
        ParameterError, match=f"`k` of {method.name} must be at most the number of values of `x`, 2"
    ):
        shown(method(k=3), table)
    assert method().drive_range(table) == (2, 2)
    assert method().drive_range(column_of(np.arange(9000.0))) == (2, 5000)
    nothing = column_of(pl.Series([None, None], dtype=pl.Float64))
    assert shown(method(k=3), nothing) == [None, None]
    assert method().drive_range(nothing) == (1, 1)


@by_method
def test_medians(method):
    """Of four numbers the middle of the two, of four grades or dates the lower, which occurs."""
    assert shown(method(k=4, centre="median"), column_of([0.0, 100, 1, 4])) == [2.5] * 4
    order = ("low", "middle", "high", "top")
    grades = column_of(["top", "low", "high", "middle"], Kind.ORDINAL, order=order)
    assert shown(method(k=4), grades) == ["middle"] * 4
    days = [date(2020, 1, day) for day in (9, 1, 3, 2)]
    assert shown(method(k=4), column_of(days, Kind.DATE)) == [date(2020, 1, 2)] * 4
    assert shown(method(k=4, centre="mean"), column_of(days, Kind.DATE)) == [date(2020, 1, 4)] * 4
    assert shown(method(k=4), column_of([str(day) for day in days], Kind.DATE)) == ["2020-01-02"] * 4


@by_method
def test_instants_keep_their_nanoseconds(method):
    start = pl.Series([datetime(2020, 1, 1)] * 4).dt.cast_time_unit("ns").to_physical()  # noqa: DTZ001
    instants = (start + pl.Series([1, 2, 901, 904])).cast(pl.Datetime("ns"))
    for centre, moved in (("median", [1, 1, 901, 901]), ("mean", [2, 2, 903, 903])):
        after = method(k=2, centre=centre).apply(column_of(instants, Kind.DATE), Run(seed=1)).table.frame["x"]
        assert (after.to_physical() - start).to_list() == moved


@by_method
def test_centres_are_weighted(method):
    frame = pl.DataFrame({"x": [1.0, 2.0, 3.0, 100.0, 101.0, 105.0], "w": [1.0, 1.0, 2.0, 7.0, 1.0, 1.0]})
    schema = Schema((Column("x", Kind.CONTINUOUS), Column("w", Kind.CONTINUOUS, Role.WEIGHT)))
    table = Table(frame, schema).aimed_at(("x",))
    assert shown(method(k=3), table) == [9 / 4] * 3 + [100.66667] * 3
    # Half of the weight lies at or below 2, half at 3: the middle. Of the others 100 has more than half.
    assert shown(method(k=3, centre="median"), table) == [2.5] * 3 + [100.0] * 3


def test_the_mean_of_grades_is_refused():
    with pytest.raises(RefusedError, match="`mean` for `x`"):
        shown(OptimalMicroaggregation(centre="mean"), column_of([1, 2, 3, 4, 5, 6], Kind.ORDINAL))


@by_method
def test_a_mean_that_would_read_as_missing_gives_way_to_a_value_that_occurs(method):
    table = column_of([-10, -8, 5, -9, 7], missing=(-9,))
    assert shown(method(k=2, centre="mean"), table) == [-10, -10, 6, -9, 6]


@by_method
def test_within_strata_each_is_grouped_alone(method):
    frame = pl.DataFrame({"x": [1.0, 10.0, 3.0, 30.0], "s": ["a", "b", "a", "b"]})
    schema = Schema((Column("x", Kind.CONTINUOUS), Column("s", Kind.NOMINAL)))
    release = Recipe((Step(method(k=2), ("x",), within=("s",)),)).apply(Table(frame, schema), Run(seed=1))
    assert release.table.frame["x"].to_list() == [2.0, 20.0, 2.0, 20.0]


def test_optimal_never_loses_more_than_individual_ranking_on_census(reference_data):
    values = np.loadtxt(reference_data("census.csv"), delimiter=",", skiprows=1)
    for k in (3, 10, 50):
        for column in values.T:
            table = column_of(column)
            optimal, fixed = (
                ((np.array(shown(method(k=k), table)) - column) ** 2).sum()
                for method in (OptimalMicroaggregation, IndividualRanking)
            )
            assert optimal <= fixed * (1 + 1e-12)
