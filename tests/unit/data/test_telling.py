"""Columns that give back what was changed, and those that known ones imply."""

import numpy as np
import polars as pl
import pytest

from sfumato.data.relations.key_inference import tellers_of, telling_columns
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table

N = 200
RNG = np.random.default_rng(8)
REGION = RNG.choice(list("abcd"), N, p=[0.4, 0.3, 0.2, 0.1])
NUMBER = RNG.lognormal(3, 0.7, N).round(2)


def table(role=Role.OTHER, kind=Kind.NOMINAL, **columns):
    """A key, and another column."""
    schema = Schema((Column("key", kind, Role.KEY), Column("by", _kind(columns["by"]), role)))
    return Table(pl.DataFrame({name: columns[name] for name in ("key", "by")}), schema)


def _kind(values):
    return Kind.CONTINUOUS if np.asarray(values).dtype.kind == "f" else Kind.NOMINAL


def told(original, released, rows=None):
    rows = np.arange(len(original)) if rows is None else rows
    return telling_columns(original, released, rows, ["key"])


def hiding(original, hidden, value=None):
    """The release in which some records' keys are another value, or none."""
    values = pl.Series(np.where(hidden, value, original.frame["key"].to_numpy().astype(object)).tolist())
    return original.with_values("key", values)


@pytest.mark.parametrize("role", [Role.OTHER, Role.SENSITIVE, Role.WEIGHT])
@pytest.mark.parametrize("value", [None, "a"], ids=["suppressed", "changed"])
def test_a_function_of_the_key_gives_it_back(role, value):
    weights = pl.Series(REGION).replace_strict({"a": 2.5, "b": 1.0, "c": 7.25, "d": 3.0}).to_numpy()
    original = table(role, key=REGION, by=weights)
    (telling,) = told(original, hiding(original, RNG.random(N) < 0.3, value)).tellings
    assert (telling.key, telling.by) == ("key", "by")
    assert (REGION[telling.rows] == REGION).all()


def test_one_hidden_cell_is_enough_where_the_key_follows_exactly():
    original = table(key=REGION, by=np.char.add(REGION, "1"))
    assert told(original, hiding(original, np.arange(N) == 3)).tellings
    assert not told(original, original).tellings


def test_values_that_are_nearly_distinct_tell_nothing():
    original = table(key=REGION, by=np.array([f"{i // 2}" for i in RNG.permutation(N)]))
    assert told(original, hiding(original, np.ones(N, dtype=bool))) == told(original, original)


def test_a_column_that_was_changed_along_tells_nothing():
    original = table(key=REGION, by=np.char.upper(REGION))
    order = RNG.permutation(N)
    assert not told(original, original.take(order), np.arange(N)).tellings


def test_rows_that_left_or_came_from_nowhere():
    original = table(key=REGION, by=np.char.upper(REGION))
    rows = np.append(np.flatnonzero(np.arange(N) % 3 > 0), -1)
    released = hiding(original.take(np.where(rows < 0, 0, rows)), np.ones(len(rows), dtype=bool))
    (telling,) = told(original, released, rows).tellings
    assert (REGION[telling.rows[:-1]] == REGION[rows[:-1]]).all()


def test_an_amount_in_the_same_order_tells_an_amount():
    original = table(Role.SENSITIVE, Kind.CONTINUOUS, key=NUMBER, by=-2.0 * NUMBER)
    released = original.with_values("key", pl.Series(RNG.permutation(NUMBER)))
    (telling,) = told(original, released).tellings
    assert (NUMBER[telling.rows] == NUMBER).mean() > 0.95  # but for equal ones


def test_an_amount_with_noise_of_its_own_is_told_by_a_better_one_only():
    original = table(Role.SENSITIVE, Kind.CONTINUOUS, key=NUMBER, by=NUMBER * (1 + 0.02 * RNG.normal(size=N)))
    coarse, fine = (
        original.with_values("key", pl.Series(NUMBER * (1 + s * RNG.normal(size=N)))) for s in (1, 1e-3)
    )
    assert told(original, coarse).tellings
    assert not told(original, fine).tellings


def test_what_a_key_implies_is_known_with_it():
    zips = RNG.choice([f"{a}{b}" for a in "12" for b in "0123456789"], N)
    original = table(key=zips, by=np.array([each[0] for each in zips]))
    assert told(original, original.select(["by"])).implied == ("by",)
    assert told(original, original).implied == ()


def test_missing_and_constant_columns():
    holes = np.where(RNG.random(N) < 0.2, None, REGION)
    original = table(key=pl.Series(holes.tolist()), by=np.array([f"{each}!" for each in REGION]))
    assert told(original, hiding(original, RNG.random(N) < 0.3)).tellings
    constant = table(key=np.array(["a"] * N), by=REGION)
    assert told(constant, constant.select(["by"])) == told(constant, constant)
    assert not told(original.take(np.arange(20)), original.take(np.arange(20)).select(["by"])).tellings
    none = original.take(np.arange(0))
    assert not told(none, none).tellings


def test_one_record_of_each_person_is_looked_at():
    """Ten records of each of forty persons: a number of their own tells nothing of others."""
    who = np.repeat(np.arange(40), 10)
    columns = (
        Column("who", Kind.NOMINAL, Role.PERSON), Column("key", Kind.NOMINAL, Role.KEY),
        Column("by", Kind.NOMINAL, Role.OTHER),
    )  # fmt: skip
    frame = pl.DataFrame({"who": who, "key": RNG.choice(list("xy"), 40)[who], "by": RNG.permutation(40)[who]})
    original = Table(frame, Schema(columns))
    assert not told(original, original.select(["by"])).tellings


def test_what_would_tell_is_found_before_anything_is_changed():
    original = table(key=REGION, by=np.char.upper(REGION))
    assert tellers_of(original, ["key"]) == ("by",)
    assert tellers_of(table(Role.WEIGHT, key=REGION, by=NUMBER), ["key"]) == ()
    assert tellers_of(table(key=REGION, by=RNG.permutation(REGION)), ["key"]) == ()


@pytest.mark.parametrize("seed", range(40))
def test_independent_columns_tell_nothing(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(30, 300))
    key, by = (rng.choice([f"{i}" for i in range(rng.integers(2, 30))], n) for _ in range(2))
    original = table(key=key, by=by)
    found = told(original, hiding(original, rng.random(n) < rng.random()))
    assert (found.tellings, found.implied) == ((), ())
