"""What is written is read again, whatever it is; and a short or long line never passes."""

from __future__ import annotations

import datetime as dt
import tempfile
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from polars.testing import assert_frame_equal

from effort import examples
from sfumato import io
from sfumato.data.generalised.intervals import intervals
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import Table
from sfumato.errors import ReadError

# Surrogates are no characters, and a zero byte tells a file that is no text.
TEXT = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12
) | st.sampled_from(
    [
        "",
        '"',
        '""',
        ",",
        "a,b",
        "x\ny",
        "\r\n",
        "tail\r",
        "\t",
        ";",
        "|",
        "*",
        "[1;2]",
        "007",
        "1",
        "é",
        "'",
        "\\",
    ]
)
DAYS = st.dates(dt.date(1800, 1, 1), dt.date(2200, 12, 31))
TIMES = st.builds(dt.datetime.combine, DAYS, st.times())
COLUMNS = {
    "whole": (pl.Int64, st.integers(-(10**18) + 1, 10**18 - 1)),
    "number": (pl.Float64, st.floats(allow_nan=False)),
    "text": (pl.String, TEXT),
    "day": (pl.Date, DAYS),
    "time": (pl.Datetime("us"), TIMES),
    "flag": (pl.Boolean, st.booleans()),
}
CHECK = examples(150)


@st.composite
def frames(draw):
    n = draw(st.integers(1, 8))
    names = draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=2, unique=True))
    data = {}
    for name in names:
        dtype, values = COLUMNS[name]
        cells = draw(st.lists(st.none() | values, min_size=n, max_size=n))
        data[name] = pl.Series(cells, dtype=dtype)
    return pl.DataFrame(data)


def through(frame, suffix, **told):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"data{suffix}"
        io.write(frame, path)
        return io.read(path, **told)


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
@CHECK
@given(frame=frames())
@example(frame=pl.DataFrame({"text": ["a\rb", "tail\r"], "whole": [1, None]}))
@example(frame=pl.DataFrame({"number": [5e-324, 1.7976931348623157e308], "text": [None, ""]}))
@example(frame=pl.DataFrame({"number": [-0.0, 1e16], "text": ["'a'", "'b'"]}))
def test_delimited(frame, suffix):
    # A word at the end keeps text of digits or truth values text, and a first record fixes the other types.
    anchor = {"whole": 1, "number": 0.5, "text": "word", "day": dt.date(2026, 11, 15), "flag": True}
    anchor["time"] = dt.datetime.combine(anchor["day"], dt.time(1, 2, 3, 4))
    last = pl.DataFrame({name: pl.Series([anchor[name]], dtype=frame.schema[name]) for name in frame.columns})
    frame = pl.concat([frame, last])
    dates = [name for name in ("day", "time") if name in frame.columns]
    kinds = {"day": Kind.DATE, "time": Kind.DATE, "text": Kind.NOMINAL, "flag": Kind.NOMINAL}
    schema = Schema(tuple(Column(name, kinds.get(name, Kind.CONTINUOUS)) for name in frame.columns))
    read = through(frame, suffix, schema=schema)
    if dates:
        read = read.with_columns(io.conform(read.select(dates), schema.select(dates)).frame)
    assert_frame_equal(read, frame, check_exact=True)


@CHECK
@given(frame=frames())
def test_parquet(frame):
    assert_frame_equal(through(frame, ".parquet"), frame, check_exact=True)


# A header in single quotes tells that the file's quotes are single.
NAME = TEXT.filter(lambda name: name.strip() and not name.startswith("'"))


@CHECK
@given(names=st.lists(NAME, min_size=2, max_size=5, unique=True))
def test_names_of_columns(names):
    frame = pl.DataFrame({name: ["x, y", None, 'a "b"'] for name in names})
    assert_frame_equal(through(frame, ".tsv"), frame)


ENDS = {
    "whole": st.integers(-(10**9), 10**9),
    "number": st.floats(allow_nan=False, allow_infinity=False),
    "day": DAYS,
}


@st.composite
def interval_columns(draw):
    values = ENDS[draw(st.sampled_from(sorted(ENDS)))]
    pairs = draw(st.lists(st.tuples(values, values), min_size=1, max_size=6))
    lo, hi = [min(pair) for pair in pairs], [max(pair) for pair in pairs]
    n = len(pairs)
    open_lo, open_hi, gone = (draw(st.lists(st.booleans(), min_size=n, max_size=n)) for _ in range(3))
    lo = [None if wide else end for end, wide in zip(lo, open_lo, strict=True)]
    hi = [None if wide else end for end, wide in zip(hi, open_hi, strict=True)]
    return intervals(lo, hi, missing=gone, name="x")


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@CHECK
@given(column=interval_columns())
def test_intervals(column, suffix):
    # An interval among them shows what the column is, were the others all exact.
    end = pl.Series([1], dtype=pl.Int32).cast(column.dtype.fields[0].dtype)
    column = pl.concat([intervals(end, [None], name="x"), column])
    kind = Kind.CONTINUOUS if column.dtype.fields[0].dtype.is_numeric() else Kind.DATE
    table = Table(pl.DataFrame({"x": column, "n": np.arange(len(column))}), _schema(kind))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"data{suffix}"
        io.write(table, path)
        again = io.read_table(path, table.schema).frame["x"]
    assert [_ends(value) for value in again] == [_ends(value) for value in column]


def _schema(kind):
    return Schema((Column("x", kind), Column("n", Kind.CONTINUOUS)))


def _ends(value):
    """Both ends, whether an open end is written as nothing or as infinity."""
    wide = {float("inf"), float("-inf")}
    return value and tuple(None if value[end] in wide else value[end] for end in ("lo", "hi"))


@CHECK
@given(
    cells=st.lists(st.lists(TEXT, min_size=3, max_size=3), min_size=1, max_size=6),
    at=st.integers(0, 5),
    change=st.sampled_from(["short", "long", "empty"]),
)
def test_a_ragged_line_never_passes(cells, at, change):
    quoted = [['"' + cell.replace('"', '""') + '"' for cell in record] for record in cells]
    record = quoted[at % len(quoted)]
    if change == "short":
        record.pop()
    else:
        record.append('"x"' if change == "long" else "")
    content = "\n".join(["a,b,c", *(",".join(record) for record in quoted)])
    for end in ("\n", ""):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "data.csv"
            path.write_bytes((content + end).encode())
            with pytest.raises(ReadError, match=r"line \d+ of `data.csv` has [24] fields, its header 3"):
                io.read(path)
