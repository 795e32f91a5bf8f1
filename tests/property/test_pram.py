"""PRAM by brute force: every outcome is enumerated, with its chance."""

from itertools import product

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sfumato import kernels
from sfumato.core.run import Run
from sfumato.data.rules import Rule
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import DataError
from sfumato.front import protect
from sfumato.methods._transitions import even, invariant, restrict_transitions
from sfumato.methods.pram import Pram, corrected_counts


@st.composite
def chains(draw):
    """Counts of categories, transitions that are allowed, a matrix of them, and the least chance to stay."""
    size = draw(st.integers(1, 6))
    counts = draw(hnp.arrays(np.float64, size, elements=st.integers(0, 50).map(float)))
    allowed = draw(hnp.arrays(np.bool_, (size, size)))
    retain = draw(st.floats(0, 1))
    if draw(st.booleans()):
        return counts, allowed, even(allowed, retain), retain
    shares = draw(hnp.arrays(np.float64, (size, size), elements=st.floats(0.001, 1)))
    matrix = restrict_transitions(allowed, shares / shares.sum(axis=1, keepdims=True))
    return counts, allowed, matrix, float(matrix.diagonal().min())


@given(chains())
def test_two_stages_keep_counts_and_bound_and_what_is_forbidden(case):
    counts, allowed, matrix, least = case
    both = invariant(matrix, counts, allowed, least)
    assert (both >= 0).all()
    np.testing.assert_allclose(both.sum(axis=1), 1)
    np.testing.assert_allclose(counts @ both, counts, atol=1e-9)
    assert (both.diagonal() >= least - 1e-12).all()
    barred = ~allowed & ~np.eye(len(counts), dtype=bool)
    assert (both[barred] == 0).all()
    assert (matrix[barred] == 0).all()


@given(chains(), st.integers(0, 2**32))
def test_the_kernel_draws_what_a_naive_search_draws(case, seed):
    _, allowed, matrix, _ = case
    rng = np.random.default_rng(seed)
    size = len(matrix)
    codes = rng.integers(-1, size, 40).astype(np.int32)
    chances = np.concatenate([rng.random(38), [0.0, np.nextafter(1, 0)]])
    moves = matrix - np.diag(matrix.diagonal())
    heaps, stays = moves.cumsum(axis=1), 1 - moves.sum(axis=1)
    drawn = kernels.transitions.move(codes, np.maximum(stays, 0), heaps, chances)
    for code, chance, new in zip(codes, chances, drawn, strict=True):
        if code < 0 or new == code:
            assert code < 0 or chance < stays[code] + 1e-9 or not moves[code].any()
        else:
            assert allowed[code, new]
            assert matrix[code, new] > 0
            assert (
                heaps[code, new] - moves[code, new] - 1e-9 <= chance - stays[code] <= heaps[code, new] + 1e-9
            )


@given(chains(), st.integers(0, 2**32))
def test_of_many_records_each_is_drawn_as_of_few(case, seed):
    """Cells that lead to one category spare the search, and change nothing."""
    _, _, matrix, _ = case
    rng = np.random.default_rng(seed)
    moves = matrix - np.diag(matrix.diagonal())
    heaps, stays = moves.cumsum(axis=1), np.maximum(1 - moves.sum(axis=1), 0)
    n = 16 * 256 * len(matrix) + 1
    rows = rng.integers(-1, len(matrix), n).astype(np.int32)
    chances = np.where(rng.random(n) < 0.5, rng.random(n), rng.integers(0, 256, n) / 256)
    many = kernels.transitions.move(rows, stays, heaps, chances)
    few = [
        kernels.transitions.move(rows[i : i + 999], stays, heaps, chances[i : i + 999])
        for i in range(0, n, 999)
    ]
    np.testing.assert_array_equal(many, np.concatenate(few))


@st.composite
def small_tables(draw):
    n = draw(st.integers(1, 4))
    values = draw(st.lists(st.sampled_from([*"abc", None]), min_size=n, max_size=n))
    weights = draw(st.lists(st.sampled_from([1.0, 2.5]), min_size=n, max_size=n))
    columns = [Column("x", Kind.NOMINAL, Role.KEY)]
    columns += [Column("w", Kind.CONTINUOUS, Role.WEIGHT)] if draw(st.booleans()) else []
    frame = pl.DataFrame({"x": pl.Series(values, dtype=pl.String), "w": weights})
    return Table(frame.select([column.name for column in columns]), Schema(tuple(columns)))


@given(small_tables(), st.floats(0.55, 0.95), st.booleans())
def test_the_corrected_counts_and_their_variances_are_unbiased(table, retain, keeps):
    release = Pram(retain=retain, invariant=keeps).protect(table.aimed_at(["x"]), Run(seed=1))
    rows = release.resources["transitions"].frame
    chances = {(a, b): p for a, b, p in rows.select("from", "to", "probability").iter_rows()}
    values = table.frame["x"].to_list()
    words = sorted({value for value in values if value is not None})
    weights = np.ones(len(table)) if table.weights is None else table.weights
    true = np.array([sum(w for v, w in zip(values, weights, strict=True) if v == word) for word in words])
    mean, second, variance, released = np.zeros((4, len(words)))
    for outcome in product(*([value] if value is None else words for value in values)):
        chance = np.prod(
            [chances.get((a, b), 0.0) for a, b in zip(values, outcome, strict=True) if a is not None]
        )
        if not chance:
            continue
        made = pl.Series("x", outcome, dtype=pl.String)
        other = {"release": release.table.with_values("x", made)}
        try:
            found = corrected_counts(type(release)(other, fit=release.fit))
        except DataError:  # a matrix that is nearly singular
            return
        by_word = {row["category"]: row for row in found.iter_rows(named=True)}
        estimate = np.array([by_word[word]["corrected"] if by_word else 0.0 for word in words])
        mean, second = mean + chance * estimate, second + chance * estimate**2
        variance = variance + chance * np.array([by_word[word]["variance"] for word in words])
        released = released + chance * np.array([by_word[word]["released"] for word in words])
    np.testing.assert_allclose(mean, true, atol=1e-6)
    np.testing.assert_allclose(variance, second - mean**2, atol=1e-5)
    if keeps:
        np.testing.assert_allclose(released, true, atol=1e-9)


@given(st.data())
def test_no_rule_is_broken_and_nothing_forbidden_happens(data):
    n = data.draw(st.integers(1, 40))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    age = rng.integers(0, 30, n)
    marital = np.where(age < 16, "single", rng.choice(["single", "married", "widowed"], n)).astype(object)
    marital[rng.random(n) < 0.1] = None
    sex = rng.choice(["m", "f"], n)
    pregnant = np.where((sex == "f") & (age > 12), rng.choice(["yes", "no"], n), "no")
    frame = pl.DataFrame(
        {"age": age, "marital": pl.Series(marital, dtype=pl.String), "sex": sex, "pregnant": pregnant}
    )
    rules = ("age >= 16 OR marital = 'single'", "sex = 'f' OR pregnant = 'no'", "age > 12 OR pregnant = 'no'")
    schema = Schema(
        (Column("age", Kind.CONTINUOUS), *(Column(name, Kind.NOMINAL) for name in frame.columns[1:])),
        rules=tuple(map(Rule, rules)),
    )
    banned = pl.DataFrame({"column": ["marital"], "from": ["widowed"], "to": ["single"]})
    method = Pram(retain=0.0, invariant=data.draw(st.booleans()), forbidden="never")
    names = data.draw(st.sampled_from([["marital"], ["marital", "pregnant"], ["marital", "pregnant", "sex"]]))
    release = protect(Table(frame, schema), method, columns=names, resources={"never": banned})
    after = release.table.frame
    assert sum(rule.violations(after) for rule in schema.rules) == 0
    assert not ((frame["marital"] == "widowed") & (after["marital"] == "single")).any()
    assert after["marital"].is_null().equals(frame["marital"].is_null())
