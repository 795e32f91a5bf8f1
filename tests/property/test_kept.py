"""Noise of each cell's own keeps nothing between columns, a shift or a factor of each record always does."""

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from sfumato.core.approaches import kept_views
from sfumato.core.evidence import Evidence
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.relations.invariants import kept_relations
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.risk.exact_match import ExactMatch


@st.composite
def originals(draw, *, kinds=("whole", "decimal", "date")):
    """Mixed tables: three columns of one sort, of many values each, some missing, and a word."""
    n, seed = draw(st.integers(30, 200)), draw(st.integers(0, 2**32 - 1))
    rng, sort = np.random.default_rng(seed), draw(st.sampled_from(kinds))
    spread = draw(st.sampled_from([100, 1000, 30_000]))
    values = [
        rng.integers(1, spread, n).astype(float) if sort != "decimal" else rng.uniform(1, spread, n).round(2)
        for _ in range(3)
    ]
    holes = rng.random((3, n)) < draw(st.sampled_from([0, 0.2]))
    return sort, np.where(holes, np.nan, values), rng.choice(list("fm"), n), rng


def as_table(sort, values, words):
    columns = [pl.Series(name, each, nan_to_null=True) for name, each in zip("abc", values, strict=True)]
    if sort == "date":
        columns = [each.round(0).cast(pl.Int32).cast(pl.Date) for each in columns]
    kind = Kind.DATE if sort == "date" else Kind.CONTINUOUS
    schema = [Column(name, kind, Role.KEY) for name in "abc"] + [Column("sex", Kind.NOMINAL, Role.KEY)]
    return Table(pl.DataFrame([*columns, pl.Series("sex", words)]), Schema(tuple(schema)))


def found(original, released):
    rows = np.arange(len(released))
    return {(each.kind, each.columns) for each in kept_relations(original, released, rows, original.names)}


@examples(150)
@given(originals(), st.sampled_from([0.5, 1, 3]))
def test_noise_of_its_own_for_each_cell_keeps_nothing(case, size):
    sort, values, words, rng = case
    noise = rng.normal(0, size * np.nanstd(values, axis=1, keepdims=True), values.shape)
    noise = noise if sort == "decimal" else np.round(noise)
    assert found(as_table(sort, values, words), as_table(sort, values + noise, words)) == set()


@examples(150)
@given(originals())
def test_a_shift_for_each_record_keeps_differences(case):
    sort, values, words, rng = case
    shifts = rng.integers(1, 5000, values.shape[1]) * rng.choice([-1, 1], values.shape[1])
    released = as_table(sort, values + shifts, words)
    assert ("differences", ("a", "b", "c")) in found(as_table(sort, values, words), released)


@examples(150)
@given(originals(kinds=("whole", "decimal")), st.sampled_from([2, None]))
def test_a_factor_for_each_record_keeps_ratios(case, decimals):
    sort, values, words, rng = case
    changed = values * rng.lognormal(0, 1, values.shape[1])
    changed = changed if decimals is None else changed.round(decimals)
    assert ("ratios", ("a", "b", "c")) in found(as_table(sort, values, words), as_table(sort, changed, words))


def found_by_differences(values, changed, words):
    """Brute force: the share of those who alone have their differences."""
    n = len(words)

    def look(side, i):
        a, b, c = side[:, i]
        return round(b - a), round(c - a), words[i]

    known, shown = ([look(side, i) for i in range(n)] for side in (values, changed))
    return sum(all((shown[j] == known[i]) == (j == i) for j in range(n)) for i in range(n)) / n


@examples(60)
@given(originals(kinds=("whole", "date")))
def test_exact_matches_by_differences_are_those_of_a_look_at_every_pair(case):
    sort, values, words, rng = case
    values = np.where(np.isnan(values), 5.0, values)  # what is missing hides as `exact-match` says, not here
    changed = values + rng.integers(1, 5000, values.shape[1])
    release = Release.record_by_record(as_table(sort, changed, words))
    view = kept_views(Evidence(as_table(sort, values, words), release))[0]
    score = ExactMatch().score(view, Run(seed=1))
    assert np.isclose(score.value, found_by_differences(values, changed, words))
