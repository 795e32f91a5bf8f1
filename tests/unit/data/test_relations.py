"""Columns that tell the same story are found, and those that only seem to are not."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl
import pytest

from sfumato.data.guess.columns import guess, guess_related, guess_schema
from sfumato.data.relations.associations import determination, find_related
from sfumato.data.schema import Column, Kind, Role

RNG = np.random.default_rng(11)
N = 3000


def nominal(*names):
    return [Column(name, Kind.NOMINAL) for name in names]


def continuous(*names):
    return [Column(name, Kind.CONTINUOUS) for name in names]


def related(data, columns):
    return find_related(pl.DataFrame(data), columns)


def groups(data, columns):
    return {frozenset(relation.columns) for relation in related(data, columns)}


TOWN = RNG.integers(0, 60, N)


# The measure ----------------------------------------------------------------------------------------------


def test_by_hand():
    """Two values of a with 30 records each: of b the first has all alike, the second 20 and 10.

    Pairs alike: (30·29 + 20·19 + 10·9) / 29, each record counting alike, is 46.2 of 60 records: p = 0.770.
    Of all records 50 have one value of b and 10 the other: q = (50·49 + 10·9) / (60·59) = 0.718.
    """
    a, b = np.repeat([0, 1], 30), np.repeat([0, 0, 1], [30, 20, 10])
    p = (30 + (20 * 19 + 10 * 9) / 29) / 60
    q = (50 * 49 + 10 * 9) / (60 * 59)
    assert determination(a, b)[0] == pytest.approx((p - q) / (1 - q))


def test_the_ends_of_the_scale():
    assert determination(TOWN, TOWN // 10) == (1.0, pytest.approx(0.1, abs=0.05))
    assert determination(TOWN, RNG.permutation(TOWN))[0] == pytest.approx(0, abs=0.01)
    assert determination(np.arange(N), TOWN)[0] == 0  # distinct values determine nothing
    assert determination(np.zeros(N, dtype=np.int64), TOWN) == (pytest.approx(0, abs=0.01), 0)


def test_many_categories_do_not_look_related():
    """Where Cramér's V of two unrelated columns of 500 values in 3000 records is far above 0."""
    a, b = RNG.integers(0, 500, N), RNG.integers(0, 500, N)
    assert max(map(abs, determination(a, b))) < 0.02


def test_records_that_lack_one_of_the_two_do_not_count():
    told = TOWN // 10
    assert determination(np.where(RNG.random(N) < 0.5, -1, TOWN), told)[0] == 1
    assert determination(np.where(np.arange(N) < N - 40, -1, TOWN), told) == (0.0, 0.0)  # too few are left


# What is found --------------------------------------------------------------------------------------------


def test_hospital_and_county():
    hospital = np.where(RNG.random(N) < 0.97, TOWN, RNG.integers(0, 60, N))
    data = {"hospital": hospital, "county": TOWN // 6, "sex": RNG.integers(0, 2, N), "zip": TOWN * 7}
    (found,) = related(data, nominal("hospital", "county", "sex", "zip"))
    assert found.columns == ("hospital", "county", "zip")
    assert "`zip` determines `county`" in found.reason
    assert "`hospital` nearly determines `county`" in found.reason
    assert 0.6 < found.confidence <= 0.95


def test_two_names_for_one_thing():
    (found,) = related({"code": TOWN, "label": [f"town {i}" for i in TOWN]}, nominal("code", "label"))
    assert found.reason == "`code` and `label` determine each other"


def test_a_quantity_and_its_classes():
    income = RNG.lognormal(10, 1, N)
    data = {"income": income, "class": np.digitize(income, [10_000, 30_000]), "other": RNG.normal(size=N)}
    columns = [*continuous("income"), *nominal("class"), *continuous("other")]
    assert groups(data, columns) == {frozenset({"income", "class"})}


def test_numbers_that_rise_and_fall_together():
    euro = RNG.lognormal(10, 1, N)
    data = {
        "euro": euro,
        "dollar": euro * 1.1 + RNG.normal(size=N),
        "debt": -np.sqrt(euro),
        "x": RNG.normal(size=N),
    }
    (found,) = related(data, continuous("euro", "dollar", "debt", "x"))
    assert found.columns == ("euro", "dollar", "debt")
    assert "`euro` and `dollar` rise and fall together" in found.reason


def test_gaps_do_not_hide_it():
    euro = RNG.lognormal(10, 1, N)
    gaps = np.where(RNG.random(N) < 0.2, np.nan, euro * 2)
    assert groups({"a": euro, "b": gaps}, continuous("a", "b")) == {frozenset("ab")}


def test_birth_and_age():
    days = [dt.date(1940, 1, 1) + dt.timedelta(days=int(day)) for day in RNG.integers(0, 25_000, N)]
    data = {"birth": days, "age": [2026 - day.year for day in days]}
    assert groups(data, [Column("birth", Kind.DATE), *continuous("age")]) == {frozenset({"birth", "age"})}


def test_missing_codes_are_no_story():
    """Two questions that were not put to the same people have only that in common."""
    skipped = RNG.random(N) < 0.6
    data = {
        "a": np.where(skipped, -9, RNG.integers(0, 5, N)),
        "b": np.where(skipped, -9, RNG.integers(0, 5, N)),
    }
    assert groups(data, [Column(name, Kind.NOMINAL, missing=(-9,)) for name in "ab"]) == set()
    assert groups(data, nominal("a", "b")) == set()  # −9 as a value of its own: related, but not so strongly


# What is not found ----------------------------------------------------------------------------------------


def test_trivial_cases_are_passed_over():
    data = {
        "distinct": np.arange(N),
        "text": [f"t{i}" for i in range(N)],
        "constant": np.ones(N, dtype=np.int64),
        "nothing": pl.Series([None] * N, dtype=pl.String),
        "rare": np.r_[np.ones(3, dtype=np.int64), np.zeros(N - 3, dtype=np.int64)],
        "town": TOWN,
    }
    assert related(data, nominal(*data)) == ()


def test_structure_is_passed_over():
    """A person's number determines all that does not change, an identifier and a weight may by chance."""
    data = {"pid": TOWN, "name": TOWN, "w": TOWN, "county": TOWN // 10}
    columns = [
        Column("pid", Kind.NOMINAL, Role.PERSON),
        Column("name", Kind.NOMINAL, Role.IDENTIFIER),
        Column("w", Kind.CONTINUOUS, Role.WEIGHT),
        Column("county", Kind.NOMINAL),
    ]
    assert related(data, columns) == ()


@pytest.mark.parametrize("role", [Role.PERSON, Role.HOUSEHOLD])
def test_several_records_of_a_person_are_not_several_signs(role):
    """Each person's birthday and street are in all their records, which relates them to nothing else."""
    person = np.repeat(np.arange(500), 6)
    data = {
        "person": person,
        "day": RNG.permutation(500)[person],
        "street": RNG.integers(0, 400, 500)[person],
    }
    columns = [Column("person", Kind.NOMINAL, role), *nominal("day", "street")]
    assert related(data, columns) == ()
    assert related(data, nominal("day", "street")) != ()  # if nobody said whose records they are


def test_correlated_is_not_the_same_story():
    x = RNG.normal(size=N)
    assert related({"x": x, "y": x + RNG.normal(size=N)}, continuous("x", "y")) == ()
    assert related({"a": TOWN % 2, "b": np.where(RNG.random(N) < 0.8, TOWN % 2, 0)}, nominal("a", "b")) == ()


def test_few_records_say_nothing():
    assert related({"a": [1, 2] * 20, "b": [1, 2] * 20}, nominal("a", "b")) == ()
    assert related({"a": []}, nominal("a")) == ()


# The doors ------------------------------------------------------------------------------------------------


def test_a_proposed_schema_names_them():
    frame = pl.DataFrame(
        {"zip": TOWN + 10_000, "county": TOWN // 6, "income": RNG.lognormal(10, 1, N).round(2)}
    )
    assert guess_schema(frame).related == (("zip", "county"),)
    (found,) = guess_related(frame, guess(frame))
    assert found.reason == "`zip` determines `county`"


def test_any_type_of_value_is_taken():
    frame = pl.DataFrame(
        {
            "text": [f"t{i}" for i in TOWN],
            "category": pl.Series([f"t{i}" for i in TOWN], dtype=pl.Categorical),
            "flag": TOWN > 30,
            "list": [[int(i)] for i in TOWN],
            "interval": pl.Series([{"lo": int(i), "hi": int(i) + 1} for i in TOWN]),
            "time": pl.Series(TOWN % 24 * 3_600_000_000).cast(pl.Datetime("us")),
            "number as text": [f"{i}.5" if i else "NA" for i in TOWN],
        }
    )
    (found,) = guess_related(frame, guess(frame))
    assert {"text", "category", "flag"} <= set(found.columns)
    assert "and" in found.reason
    assert "more such pairs" in found.reason


def test_no_reason_holds_a_value():
    frame = pl.DataFrame({"a": [f"Xanthippe {i}" for i in TOWN], "b": [f"Socrates {i // 6}" for i in TOWN]})
    (found,) = related(frame, nominal("a", "b"))
    assert "Xanthippe" not in found.reason
    assert "Socrates" not in found.reason


def test_large_tables_are_sampled_evenly():
    """The first half of the file is not the whole story."""
    n = 100_000
    town = RNG.integers(0, 60, n)
    told = np.where(np.arange(n) < n // 2, town // 6, RNG.integers(0, 10, n))
    assert groups({"town": town, "county": town // 6}, nominal("town", "county")) == {
        frozenset({"town", "county"})
    }
    assert groups({"town": town, "county": told}, nominal("town", "county")) == set()
