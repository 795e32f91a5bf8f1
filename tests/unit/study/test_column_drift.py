"""Which columns moved between two waves: tests against scipy's, false alarms, and waves as if none had."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from effort import examples
from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.study.column_drift import find_drift, with_distribution_of

SCHEMA = Schema(
    (
        Column("age", Kind.CONTINUOUS, Role.KEY),
        Column("town", Kind.NOMINAL, Role.KEY),
        Column("school", Kind.ORDINAL, Role.OTHER, order=("low", "middle", "high")),
    )
)


def wave(n, seed, *, older=0.0, towns=(0.5, 0.3, 0.2), gone=0.0):
    rng = np.random.default_rng(seed)
    age = rng.normal(40 + older, 10, n)
    frame = pl.DataFrame(
        {
            "age": pl.Series(np.where(rng.random(n) < gone, np.nan, age)).fill_nan(None),
            "town": rng.choice(["A", "B", "C", "D"][: len(towns)], n, p=towns),
            "school": rng.choice(["low", "middle", "high"], n),
        }
    )
    return Table(frame, SCHEMA)


def found(before, now, **more):
    return {each.column: each for each in find_drift(before, now, more)}


def test_distances_and_tests_are_those_of_scipy():
    before, now = wave(700, 1), wave(500, 2, older=1.5, towns=(0.4, 0.35, 0.25))
    drifts = found(before, now)
    peer = stats.ks_2samp(before.frame["age"], now.frame["age"], method="asymp")
    assert drifts["age"].distance == pytest.approx(peer.statistic)
    assert drifts["age"].p == pytest.approx(peer.pvalue, rel=0.15)  # scipy corrects for small samples
    counts = [[(t.frame["town"] == town).sum() for town in "ABC"] for t in (before, now)]
    assert drifts["town"].p == pytest.approx(stats.chi2_contingency(counts).pvalue)
    shares = [np.array(each) / sum(each) for each in counts]
    assert drifts["town"].distance == pytest.approx(np.abs(shares[0] - shares[1]).sum() / 2)


def test_waves_of_one_population_seldom_raise_an_alarm():
    moved = [
        any(each.moved for each in find_drift(wave(200, i), wave(300, 10_000 + i), {})) for i in range(300)
    ]
    assert sum(moved) <= 9  # of 300 with a chance of at most 1 in 100: more than 9 in 1 of 1,000


def test_several_records_of_a_person_count_once():
    schema = Schema((Column("who", Kind.NOMINAL, Role.PERSON), *SCHEMA.columns))

    def repeated(table, times):
        frame = table.frame.with_columns(who=pl.int_range(len(table)).cast(pl.String))
        return Table(pl.concat([frame] * times), schema)

    before, now = wave(60, 1), wave(60, 2, older=6)
    once, often = (
        {e.column: e.p for e in find_drift(repeated(before, t), repeated(now, t), {})} for t in (1, 9)
    )
    assert once == pytest.approx(often)
    apart = [Table(pl.concat([table.frame] * 9), SCHEMA) for table in (before, now)]
    assert found(*apart)["age"].moved


def test_what_is_new_is_said():
    before, now = wave(500, 1), wave(500, 2, older=30, towns=(0.4, 0.3, 0.2, 0.1), gone=0.2)
    levels = Hierarchy.from_levels(pl.DataFrame({"0": ["A", "B"], "1": ["x", "y"]}), name="town")
    drifts = found(before, now, town=levels)
    assert drifts["town"].categories == 1
    new = (now.frame["town"] == "D").sum()
    assert drifts["town"].in_new == new
    assert drifts["town"].outside_hierarchy == now.frame["town"].is_in(["C", "D"]).sum()
    assert f"{new} records in 1 new category" in drifts["town"].sentence
    assert drifts["age"].missing == (0.0, now.frame["age"].null_count() / 500)
    assert drifts["age"].beyond_range == (now.frame["age"] > before.frame["age"].max()).sum()
    assert "`age` moved: differs by" in drifts["age"].sentence
    assert "missing 0 % → " in drifts["age"].sentence
    assert not drifts["school"].is_told


def test_a_column_that_is_missing_throughout_or_constant_or_of_one_record():
    empty = Table(pl.DataFrame({"age": [None] * 40, "town": ["A"] * 40, "school": ["low"] * 40},
                               schema_overrides={"age": pl.Float64}), SCHEMA)  # fmt: skip
    assert not any(each.is_told for each in find_drift(empty, empty, {}))
    full = wave(40, 3, towns=(1.0,))
    assert found(empty, full)["age"].moved
    assert found(full, empty)["age"].moved
    assert found(full, empty)["age"].beyond_range == 0
    one = full.take(np.array([0]))
    assert not any(each.moved for each in find_drift(full, one, {}))
    for before, now in ((empty, full), (full, empty), (full, one), (one, full)):
        for name in SCHEMA.names:
            back = with_distribution_of(before, now, name, np.random.default_rng(1))
            assert found(before, back)[name].p > 0.05


@given(st.integers(0, 10_000), st.sampled_from(SCHEMA.names), st.integers(20, 80))
@examples(60)
def test_given_back_a_column_is_distributed_as_it_was_and_the_others_stay(seed, name, n):
    before, now = wave(60, seed), wave(n, seed + 1, older=20, towns=(0.1, 0.2, 0.3, 0.4), gone=0.3)
    back = with_distribution_of(before, now, name, np.random.default_rng(seed))
    others = [each for each in SCHEMA.names if each != name]
    assert back.frame.select(others).equals(now.frame.select(others))
    drift = found(before, back)[name]
    assert drift.distance <= 4 / min(n, 60)
    assert not drift.categories
    assert not drift.beyond_range
    if name == "town":  # as few changed as can be
        assert (back.frame[name] != now.frame[name]).mean() <= found(before, now)[name].distance + 3 / n
    if name == "age":
        pair = pl.DataFrame({"now": now.frame[name], "back": back.frame[name]}).drop_nulls().sort("now")
        assert pair["back"].is_sorted()


def test_whole_numbers_are_compared_with_fractions():
    whole, broken = (
        wave(200, 1).frame.with_columns(age=age) for age in (pl.int_range(200), pl.int_range(200) + 0.5)
    )
    before, now = Table(whole, SCHEMA), Table(broken, SCHEMA)
    for first, second in ((before, now), (now, before)):
        assert found(first, second)["age"].distance == pytest.approx(1 / 200)
        back = with_distribution_of(first, second, "age", np.random.default_rng(1))
        assert back.frame["age"].equals(first.frame["age"])
