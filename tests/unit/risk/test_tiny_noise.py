"""Noise below the resolution of the data hides nobody from measures that ask whether values are equal."""

from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest

from sfumato.core.approaches import approaches
from sfumato.core.evidence import Evidence
from sfumato.core.measure import APPROACH
from sfumato.core.release import Release
from sfumato.core.requirement import parse_measure
from sfumato.core.run import Run
from sfumato.data.relations.readings import with_original_numbers
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table

N = 60
SCHEMA = Schema(
    (
        Column("age", Kind.CONTINUOUS, Role.KEY),
        Column("pay", Kind.CONTINUOUS, Role.KEY),
        Column("area", Kind.NOMINAL, Role.KEY),
        Column("dose", Kind.CONTINUOUS, Role.SENSITIVE),
    )
)


def people():
    rng = np.random.default_rng(3)
    return pl.DataFrame(
        {
            "age": rng.permutation(N) + 18.0,
            "pay": np.round(rng.lognormal(8, 1, N), 2),
            "area": rng.choice(list("abc"), N),
            "dose": rng.choice([10.0, 20.0], N),
        }
    )


def noisy(frame, share, *names):
    """Noise of so much of the last digit in which a column is written."""
    rng = np.random.default_rng(4)
    units = {"age": 1.0, "pay": 0.01, "dose": 10.0}
    moved = [pl.col(name) + pl.Series(rng.uniform(-1, 1, N) * share * units[name]) for name in names]
    return frame.with_columns(moved)


def score(name, original, released):
    release = Release.of(Table(released, SCHEMA), source_rows=np.arange(len(released)))
    evidence = Evidence(Table(original, SCHEMA), release)
    return parse_measure(name).score(evidence, Run(seed=1))


@pytest.mark.parametrize("share", [1e-9, 1e-4, 0.4])
@pytest.mark.parametrize(
    "name", ["replicated-uniques", "disco", "exact-match", "direct-matching", "dbrl(metric=hamming)"]
)
def test_everybody_is_found_as_in_the_original(name, share):
    frame = people()
    found = score(name, frame, noisy(frame, share, "age", "pay"))
    assert found.value == score(name, frame, frame).value == 1
    assert "fine" in found.details[APPROACH]


def test_noise_above_the_resolution_is_noise():
    """Of whole numbers moved by up to 20 hardly any comes back by rounding."""
    frame = people()
    assert score("exact-match", frame, noisy(frame, 20, "age", "pay")).value < 0.1


def test_whole_numbers_that_are_others_are_others():
    frame = people()
    moved = frame.with_columns(pl.col("age") + 1)
    found = approaches(Evidence(Table(frame, SCHEMA), Release.record_by_record(Table(moved, SCHEMA))))
    assert not any(each.rounds_numbers for each in found)


@pytest.mark.parametrize("name", ["l-diversity", "alpha-k-anonymity", "beta-likeness"])
def test_a_hair_makes_no_value_another(name):
    """All who share the keys have one dose; with noise of 1e-9 each would have one of their own."""
    frame = (
        people()
        .with_columns(age=pl.lit(40.0), pay=pl.lit(1.0), dose=pl.lit(10.0))
        .with_columns(dose=pl.when(pl.col("area") == "a").then(20.0).otherwise(10.0))
    )
    assert score(name, frame, noisy(frame, 1e-10, "dose")).value == score(name, frame, frame).value


def test_a_day_is_a_day_at_any_hour():
    schema = Schema((Column("born", Kind.DATE, Role.KEY),))
    days = [date(1980, 1, 1) + timedelta(days=37 * i) for i in range(10)]
    original = Table(pl.DataFrame({"born": days}), schema)
    hours = pl.Series("born", [*days[:-1], None]).cast(pl.Datetime("ms")) + timedelta(hours=3, minutes=20)
    read = with_original_numbers(original, Table(hours.to_frame(), schema), ["born"])
    assert read.frame["born"].to_list() == [*days[:-1], None]


@pytest.mark.parametrize(
    "values", [[], [None, None], [5.0], [5.0, 5.0, None], [1e308, -1e308, 5e-324], [0.1, 0.2]]
)
def test_values_of_any_size_are_read(values):
    schema = Schema((Column("x", Kind.CONTINUOUS, Role.KEY),))
    table = Table(pl.DataFrame({"x": values}, schema={"x": pl.Float64}), schema)
    assert with_original_numbers(table, table, ["x"]) is table
