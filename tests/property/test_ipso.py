"""Laws of IPSO on any table: singular, constant, far from zero, with fewer records than columns."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.params import Columns
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import Table
from sfumato.methods.ipso import IpsoA, IpsoB, IpsoC

SIZES = st.tuples(st.integers(3, 40), st.integers(1, 6), st.integers(0, 2**31))


def made(size, n_given=0):
    """A table whose columns may be constant, copies of each other, or far from zero."""
    n, d, seed = size
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((n, d)) * 10.0 ** rng.integers(-3, 6, d) + rng.choice([0, 1e6], d)
    if d > 1 and rng.random() < 0.5:
        values[:, 1] = 3 * values[:, 0] + 1
    if rng.random() < 0.3:
        values[:, -1] = 7.0
    given = {f"g{i}": rng.standard_normal(n).tolist() for i in range(n_given)}
    if n_given:
        given["word"] = rng.choice(["a", "b"], n).tolist()
    frame = pl.DataFrame({f"x{i}": values[:, i] for i in range(d)} | given)
    kinds = [Column(name, Kind.NOMINAL if name == "word" else Kind.CONTINUOUS) for name in frame.columns]
    return Table(frame, Schema(tuple(kinds)), targets=tuple(f"x{i}" for i in range(d)))


def drawn(method, table):
    return method.apply(table, Run(seed=3)).table


def design(table):
    """A constant and the given columns."""
    columns = [np.ones(len(table))]
    columns += [table.numbers(name) for name in table.names if name not in table.chosen]
    return np.column_stack(columns)


def coefficients(table):
    return np.linalg.lstsq(design(table), table.matrix(table.chosen), rcond=None)[0]


def residuals(table):
    return table.matrix(table.chosen) - design(table) @ coefficients(table)


def close(first, second, scale):
    np.testing.assert_allclose(first / scale, second / scale, atol=1e-8)


@given(SIZES, st.floats(0.01, 1))
def test_c_keeps_means_and_covariances(size, independence):
    table = made(size)
    before, after = (
        table.matrix(table.chosen),
        drawn(IpsoC(independence=independence), table).matrix(table.chosen),
    )
    scale = np.abs(before).max(axis=0) + 1e-300
    close(after.mean(axis=0), before.mean(axis=0), scale)
    close(
        np.atleast_2d(np.cov(after.T)), np.atleast_2d(np.cov(before.T)), np.outer(scale, scale),
    )  # fmt: skip


@given(SIZES, st.integers(1, 2), st.floats(0.01, 1))
@pytest.mark.parametrize("method", [IpsoB, IpsoC])
def test_coefficients_are_kept_given_columns_numbers_and_words(method, size, n_given, independence):
    table = made((size[0] + 40, *size[1:]), n_given)
    others = [name for name in table.names if name not in table.chosen]
    after = drawn(method(given=Columns(others), independence=independence), table)
    scale = np.abs(table.matrix(table.chosen)).max(axis=0)
    close(coefficients(after), coefficients(table), scale)
    if method is IpsoC:
        mine, theirs = residuals(table), residuals(after)
        close(theirs.T @ theirs, mine.T @ mine, np.outer(scale, scale) * len(table))


@given(SIZES, st.integers(0, 2**31))
@pytest.mark.parametrize("method", [IpsoA, IpsoB, IpsoC])
def test_missing_cells_stay_and_others_get_numbers(method, size, seed):
    table = made((size[0] + 20, *size[1:]))
    holes = np.random.default_rng(seed).random(len(table)) < 0.2
    name = table.chosen[0]
    holed = table.with_values(name, table.frame[name].set(pl.Series(holes), None))
    after = drawn(method(), holed)
    for each in table.chosen:
        np.testing.assert_array_equal(after.missing(each), holed.missing(each))
        assert np.isfinite(after.numbers(each)[~after.missing(each)]).all()


def test_a_varies_where_b_does_not():
    table = made((60, 2, 5), 1)
    others = Columns([name for name in table.names if name not in table.chosen])
    assert not np.allclose(coefficients(drawn(IpsoA(given=others), table)), coefficients(table))


def test_a_small_independence_stays_near_the_record_and_a_large_one_does_not():
    table = made((300, 3, 11))
    before = table.matrix(table.chosen)

    def kept(method, independence):
        after = drawn(method(independence=independence), table).matrix(table.chosen)
        return np.corrcoef(before[:, 0], after[:, 0])[0, 1]

    for method in (IpsoA, IpsoB, IpsoC):
        assert kept(method, 0.05) > 0.99
        assert abs(kept(method, 1.0)) < 0.25


def test_two_records_are_refused():
    table = made((3, 2, 1)).take(np.arange(2))
    assert "3 records" in IpsoC().refuses(table)
