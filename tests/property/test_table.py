"""Laws of tables: what holds for every column somebody may bring."""

import math
from itertools import pairwise

import numpy as np
import polars as pl
from hypothesis import assume, given
from hypothesis import strategies as st

from effort import examples
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import Table

HOLES = st.none()


def column(cells, dtype, size=12):
    return st.lists(st.one_of(HOLES, cells), max_size=size).map(lambda values: pl.Series(values, dtype=dtype))


SORTS = (
    column(st.integers(-(2**40), 2**40), pl.Int64),
    column(st.one_of(st.floats(-1e9, 1e9), st.just(math.nan)), pl.Float64),
    column(st.text(max_size=3), pl.String),
    column(st.booleans(), pl.Boolean),
    column(st.dates(), pl.Date),
    column(st.lists(st.one_of(HOLES, st.text(max_size=2)), max_size=3), pl.List(pl.String), 8),
)
COLUMNS = st.one_of(*SORTS)
#: Two columns of one type out of so few values that they are often the same.
PAIRS = st.one_of(
    *(
        st.tuples(few, few)
        for few in (
            column(st.sampled_from([0, 1]), pl.Int64, 2),
            column(st.sampled_from([0.0, 1.0, math.nan]), pl.Float64, 2),
            column(st.sampled_from(["", "a", "aa"]), pl.String, 3),
            column(st.booleans(), pl.Boolean, 3),
            column(st.lists(st.sampled_from([None, "", "a"]), max_size=2), pl.List(pl.String), 2),
            column(st.lists(st.lists(st.just(1), max_size=2), max_size=2), pl.List(pl.List(pl.Int64)), 2),
        )
    )
)
CODES = st.lists(
    st.one_of(st.integers(-3, 3), st.floats(-3, 3), st.sampled_from([".", "-2", "1.0", "x"])), max_size=3
)


def table_of(series, kind=Kind.NOMINAL, **facts):
    return Table(pl.DataFrame({"x": series}), Schema((Column("x", kind, **facts),)))


def as_python(series):
    """Cells that compare as data do: NaN equals NaN, null only null."""
    return [("nan",) if isinstance(v, float) and math.isnan(v) else v for v in series.to_list()]


@examples(300)
@given(PAIRS)
def test_two_columns_have_one_fingerprint_only_if_they_are_the_same(pair):
    first, second = pair
    same = as_python(first) == as_python(second)
    assert (table_of(first).digest == table_of(second).digest) == same


@given(series=COLUMNS, data=st.data())
def test_changing_one_cell_changes_the_fingerprint(series, data):
    assume(len(series))
    place = data.draw(st.integers(0, len(series) - 1))
    cells = series.to_list()
    assume(cells[place] is not None)
    cells[place] = None
    changed = pl.Series(cells, dtype=series.dtype)
    assert table_of(series).digest != table_of(changed).digest


@given(series=COLUMNS, cuts=st.lists(st.integers(0, 12), max_size=4))
def test_chunks_never_count(series, cuts):
    """A column that was read in pieces, or cut out of a longer one, is the same column."""
    ends = sorted({min(cut, len(series)) for cut in cuts} | {0, len(series)})
    pieces = [series[start:end] for start, end in pairwise(ends)] or [series]
    longer = pl.concat([series, series])
    assert table_of(pl.concat(pieces, rechunk=False)).digest == table_of(series).digest
    assert table_of(longer[len(series) :]).digest == table_of(series).digest


@given(columns=st.lists(COLUMNS, min_size=2, max_size=4), seed=st.integers(0, 99))
def test_the_order_of_columns_never_counts(columns, seed):
    length = min(len(series) for series in columns)
    names = [f"c{i}" for i in range(len(columns))]
    frame = pl.DataFrame({name: series.head(length) for name, series in zip(names, columns, strict=True)})
    table = Table(frame, Schema(tuple(Column(name, Kind.NOMINAL) for name in names)))
    turned = np.random.default_rng(seed).permutation(names).tolist()
    assert table.select(turned).digest == table.digest


@given(series=COLUMNS)
def test_codes_are_what_sorting_in_python_gives(series):
    assume(series.dtype != pl.List(pl.String))
    table = table_of(series)
    codes = table.codes("x")
    assert table.narrow_codes("x").tolist() == codes.codes.tolist()
    present = [v for v in as_python(series) if v is not None and v != ("nan",)]
    assert codes.categories.to_list() == sorted(set(present))
    for code, cell, missing in zip(codes.codes, as_python(series), table.missing("x"), strict=True):
        assert (code == -1) == missing == (cell is None or cell == ("nan",))
        assert missing or codes.categories[int(code)] == cell
    again = codes.decode(codes.codes)
    assert (
        again.fill_nan(None).to_list() == series.fill_nan(None).to_list()
        if series.dtype.is_float()
        else (again.to_list() == series.to_list())
    )


def is_code(cell, codes):
    """What a person would say: a cell is a code if it is the same number, or the same text."""
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return True
    for code in codes:
        try:
            if float(cell) == float(code):
                return True
        except ValueError:
            continue
    return False


@given(
    values=st.lists(st.one_of(HOLES, st.integers(-3, 3), st.floats(-3, 3), st.just(math.nan)), max_size=10),
    codes=CODES,
    dtype=st.sampled_from([pl.Int8, pl.Int64, pl.Float64]),
)
def test_missing_is_what_a_person_would_say(values, codes, dtype):
    if dtype != pl.Float64:
        values = [None if v is None or math.isnan(v) else int(v) for v in values]
    else:
        values = [None if v is None else float(v) for v in values]
    table = table_of(pl.Series(values, dtype=dtype), Kind.CONTINUOUS, missing=tuple(codes))
    assert table.missing("x").tolist() == [is_code(v, codes) for v in values]
    numbers = table.numbers("x")
    np.testing.assert_array_equal(np.isnan(numbers), table.missing("x"))
    kept = ~table.missing("x")
    np.testing.assert_array_equal(numbers[kept], [float(v) for v, k in zip(values, kept, strict=True) if k])


@given(series=COLUMNS, rows=st.lists(st.integers(0, 11), max_size=20))
def test_taking_records_takes_everything_about_them(series, rows):
    rows = np.array([row for row in rows if row < len(series)], dtype=np.int64)
    table = table_of(series)
    taken = table.take(rows)
    assert len(taken) == len(rows)
    np.testing.assert_array_equal(taken.missing("x"), table.missing("x")[rows])
    assert as_python(taken.frame["x"]) == [as_python(series)[row] for row in rows]
