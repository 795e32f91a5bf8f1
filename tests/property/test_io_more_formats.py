"""What goes into Excel, Arrow and SQLite comes out again, but for what these are known not to hold."""

from __future__ import annotations

import datetime as dt
import tempfile
from pathlib import Path

import hypothesis.strategies as st
import polars as pl
import pytest
from hypothesis import example, given
from polars.testing import assert_frame_equal

from effort import examples
from sfumato import io
from sfumato.data.generalised.intervals import intervals
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import Table

SIGNS = [
    "",
    '"',
    '""',
    "'",
    "'a'",
    ",",
    "x\ny",
    "\r\n",
    "tail\r",
    "\t",
    " ",
    " a ",
    "*",
    "[1;2]",
    "007",
    "1",
    "é",
    "\\",
]
SIGNS += [
    "=1+1",
    "#N/A",
    "_x0041_",
    "<r>x",
    "x</r>",
    "<t>&amp;</t>",
    "NULL",
    "\\N",
    "true",
    "\x01",
    "𝄞",
]
TEXT = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0\ufffe\uffff"), max_size=12
) | st.sampled_from(SIGNS)
DAYS = st.dates(dt.date(1800, 1, 1), dt.date(2200, 12, 31))
EXCEL_DAYS = st.dates(dt.date(1900, 1, 1), dt.date(9999, 12, 31))
TIMES = st.builds(dt.datetime.combine, DAYS, st.times())
CLOCKS = st.integers(0, 86_399_999).map(
    lambda thousandths: (dt.datetime.min + dt.timedelta(milliseconds=thousandths)).time()  # noqa: DTZ901
)
EXCEL_TIMES = st.builds(dt.datetime.combine, EXCEL_DAYS, CLOCKS)
COLUMNS = {
    "whole": (pl.Int64, st.integers(-(2**63), 2**63 - 1)),
    "number": (pl.Float64, st.floats(allow_nan=False)),
    "text": (pl.String, TEXT),
    "day": (pl.Date, DAYS),
    "time": (pl.Datetime("us"), TIMES),
    "flag": (pl.Boolean, st.booleans()),
}
EXCEL = COLUMNS | {
    "whole": (pl.Int64, st.integers(-(2**53) + 1, 2**53 - 1)),
    "number": (pl.Float64, st.floats(-1e300, 1e300)),
    "day": (pl.Date, EXCEL_DAYS),
    "time": (pl.Datetime("us"), EXCEL_TIMES),
}
CHECK = examples(100)


@st.composite
def frames(draw, columns=COLUMNS):
    n = draw(st.integers(1, 8))
    data = {}
    for name in draw(st.lists(st.sampled_from(sorted(columns)), min_size=1, unique=True)):
        dtype, values = columns[name]
        cells = draw(st.lists(st.none() | values, min_size=n, max_size=n))
        data[name] = pl.Series(cells, dtype=dtype)
    return pl.DataFrame(data)


def through(data, name, **told):
    with tempfile.TemporaryDirectory() as folder:
        place = f"sqlite:{folder}/data.db?table=x" if name == "sqlite" else Path(folder) / name
        io.write(data, place)
        return io.read(place, **told)


@CHECK
@given(frame=frames())
def test_arrow(frame):
    assert_frame_equal(through(frame, "data.arrow"), frame, check_exact=True)


@CHECK
@given(frame=frames())
@example(
    frame=pl.DataFrame(
        {"text": ["1", "2.5", None], "whole": [None, None, None]}, schema_overrides={"whole": pl.Int64}
    )
)
@example(frame=pl.DataFrame({"number": [-0.0, 5e-324, 1.7976931348623157e308]}))
def test_sqlite(frame):
    assert_frame_equal(through(frame, "sqlite"), frame, check_exact=True)


@CHECK
@given(frame=frames(EXCEL))
@example(frame=pl.DataFrame({"day": [dt.date(1900, 2, 28), dt.date(1900, 3, 1), dt.date(9999, 12, 31)]}))
@example(frame=pl.DataFrame({"text": ["_x0041_", "a\rb", "\x01"], "whole": [1, 2, None]}))
def test_excel(frame):
    # A last record without gaps fixes the type of each column, and makes none of them empty.
    anchor = {"whole": 1, "number": 0.5, "text": "word", "day": dt.date(2026, 11, 15), "flag": True}
    anchor["time"] = dt.datetime.combine(anchor["day"], dt.time(1, 2, 3))
    last = pl.DataFrame({name: pl.Series([anchor[name]], dtype=frame.schema[name]) for name in frame.columns})
    frame = pl.concat([frame, last]).with_columns(count=pl.int_range(pl.len() + 1).slice(0, pl.len()))
    expected = frame
    if "text" in frame.columns:  # Excel does not tell empty text from nothing
        expected = frame.with_columns(pl.col("text").replace("", None))
    read = through(frame, "data.xlsx")
    assert_frame_equal(read, expected, rel_tol=1e-15, abs_tol=0.0)
    exact = [name for name in frame.columns if name != "number"]
    assert_frame_equal(read.select(exact), expected.select(exact), check_exact=True)


@CHECK
@given(texts=st.lists(st.none() | TEXT, min_size=1, max_size=6), number=st.floats(-1e300, 1e300))
def test_a_number_among_texts_hides_nothing(texts, number):
    """A workbook of another program, in which one cell of a column of text is a number."""
    import openpyxl

    said = [
        text for text in texts if text is None or not openpyxl.cell.cell.ILLEGAL_CHARACTERS_RE.search(text)
    ]
    said = [
        text
        for text in said
        if text is None or (text.strip() and "\r" not in text and not text.startswith(("=", "#")))
    ]
    with tempfile.TemporaryDirectory() as folder:
        book = openpyxl.Workbook()
        for row in (["id", "a"], *([place, text] for place, text in enumerate(said)), [len(said), number]):
            book.active.append(row)
        book.save(Path(folder) / "data.xlsx")
        read = io.read(Path(folder) / "data.xlsx")["a"]
    assert read.is_null().to_list() == [text is None for text in [*said, number]]
    assert float(read[-1]) == pytest.approx(number, rel=1e-14)


NAME = TEXT.filter(lambda name: name.strip() and not (name.startswith("^") and name.endswith("$")))


@pytest.mark.parametrize("to", ["data.xlsx", "data.arrow", "sqlite"])
@CHECK
@given(names=st.lists(NAME, min_size=1, max_size=5, unique_by=lambda name: name.encode().lower()))
def test_names_of_columns(names, to):
    frame = pl.DataFrame({name: ["x, y", 'a "b"'] for name in names})
    assert_frame_equal(through(frame, to), frame)


@st.composite
def interval_columns(draw):
    values = draw(st.sampled_from([st.integers(-(10**9), 10**9), st.floats(-1e9, 1e9), DAYS]))
    pairs = draw(st.lists(st.tuples(values, values), min_size=1, max_size=6))
    n = len(pairs)
    open_lo, open_hi, gone = (draw(st.lists(st.booleans(), min_size=n, max_size=n)) for _ in range(3))
    lo = [None if wide else min(pair) for pair, wide in zip(pairs, open_lo, strict=True)]
    hi = [None if wide else max(pair) for pair, wide in zip(pairs, open_hi, strict=True)]
    return intervals(lo, hi, missing=gone, name="x")


@pytest.mark.parametrize("to", ["data.xlsx", "data.arrow", "sqlite"])
@CHECK
@given(column=interval_columns())
def test_intervals(column, to):
    # An interval among them shows what the column is, were the others all exact.
    end = pl.Series([1], dtype=pl.Int32).cast(column.dtype.fields[0].dtype)
    column = pl.concat([intervals(end, [None], name="x"), column])
    kind = Kind.CONTINUOUS if column.dtype.fields[0].dtype.is_numeric() else Kind.DATE
    schema = Schema((Column("x", kind), Column("n", Kind.CONTINUOUS)))
    table = Table(pl.DataFrame({"x": column, "n": pl.int_range(len(column), eager=True)}), schema)
    read = io.conform(through(table, to), schema).frame["x"]
    assert [_ends(value) for value in read] == [_ends(value) for value in column]


def _ends(value):
    """Both ends, whether an open end is written as nothing or as infinity."""
    wide = {float("inf"), float("-inf")}
    return value and tuple(None if value[end] in wide else value[end] for end in ("lo", "hi"))
