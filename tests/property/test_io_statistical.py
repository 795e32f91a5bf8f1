"""What is written for SPSS, Stata or SAS is read again, with all that the file can say of it."""

from __future__ import annotations

import datetime as dt
import tempfile
from pathlib import Path

import hypothesis.strategies as st
import polars as pl
import pytest
from hypothesis import given
from polars.testing import assert_series_equal

from effort import examples
from sfumato import io
from sfumato.data.generalised.intervals import intervals
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import Table

CHECK = examples(40)
SUFFIXES = [".sav", ".zsav", ".dta", ".xpt"]

# A zero byte ends a text in these files, and blanks at its end are none in two of them.
TEXT = (
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=300)
    | st.sampled_from(
        ["", '"', "''", "a,b", "x\ny", "*", "[1;2]", "007", "é" * 130, "x" * 255, "x" * 256, " x"]
    )
).map(lambda text: text.rstrip(" "))
DAYS = st.dates(dt.date(1583, 1, 1), dt.date(9990, 12, 31))
MILLIS = st.times().map(lambda time: time.replace(microsecond=time.microsecond // 1000 * 1000))
COLUMNS = {
    "whole": (pl.Int64, Kind.CONTINUOUS, st.integers(-(2**53), 2**53)),
    "small": (pl.Int16, Kind.NOMINAL, st.integers(-300, 300)),
    "number": (pl.Float64, Kind.CONTINUOUS, st.floats(-1e74, 1e74).filter(lambda x: not 0 < abs(x) < 1e-78)),
    "text": (pl.String, Kind.NOMINAL, TEXT),
    "word": (pl.Categorical, Kind.ORDINAL, st.sampled_from(["low", "mid", "high"])),
    "day": (pl.Date, Kind.DATE, DAYS),
    "moment": (pl.Datetime("us"), Kind.DATE, st.builds(dt.datetime.combine, DAYS, MILLIS)),
    "hour": (pl.Time, Kind.DATE, MILLIS),
    "flag": (pl.Boolean, Kind.NOMINAL, st.booleans()),
}


def through(table, suffix):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"data{suffix}"
        io.write(table, path)
        return io.read_contents(path), io.read_table(path)


@st.composite
def tables(draw):
    n = draw(st.integers(1, 8))
    names = draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, unique=True))
    # A transport file cannot tell empty texts at its end from filling, so there is always a number.
    frame = pl.DataFrame({"id": range(n)}).with_columns(
        pl.Series(name, draw(st.lists(st.none() | values, min_size=n, max_size=n)), dtype=dtype)
        for name, (dtype, _, values) in COLUMNS.items()
        if name in names
    )
    label = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20).map(str.strip)
    columns = [Column(name, COLUMNS[name][1], label=draw(label)) for name in frame.columns[1:]]
    return Table(frame, Schema((Column("id", Kind.CONTINUOUS), *columns)))


@pytest.mark.parametrize("suffix", SUFFIXES)
@CHECK
@given(table=tables())
def test_values_and_labels(table, suffix):
    found, read = through(table, suffix)
    assert read.names == table.names
    for series in table.frame:
        again, facts = found.frame[series.name], found.facts.get(series.name, {})
        assert facts.get("label", "") == table.schema[series.name].label
        if series.dtype in (pl.String, pl.Categorical):
            series = series.cast(pl.String).replace("", None)  # noqa: PLW2901
        if series.dtype.is_numeric() or series.dtype == pl.Boolean:  # whole numbers come as such
            again, series = again.cast(pl.Float64), series.cast(pl.Float64)  # noqa: PLW2901
        assert_series_equal(again, series, check_exact=True)
        if (
            suffix in {".sav", ".zsav"}
            and table.schema[series.name].kind is not Kind.DATE
            and again.dtype != pl.String
        ):
            assert read.schema[series.name].kind is table.schema[series.name].kind


@st.composite
def coded(draw):
    """Numbers with labels and missing codes of any sort that SPSS takes."""
    whole = draw(st.booleans())
    values = st.integers(-20, 120) if whole else st.integers(-200, 1200).map(lambda n: n / 8)
    cells = draw(st.lists(st.none() | values, min_size=1, max_size=12))
    span = draw(st.none() | st.tuples(values, values).map(sorted).filter(lambda ends: ends[0] < ends[1]))
    codes = draw(st.lists(values, max_size=3 if span is None else 1, unique=True))
    held_back = draw(st.none() | values) if len(codes) < (3 if span is None else 1) else None
    labels = draw(
        st.dictionaries(values, st.text("abc é'\"", max_size=9).map(lambda text: f"a{text}b"), max_size=4)
    )
    column = Column(
        "X",
        draw(st.sampled_from([Kind.NOMINAL, Kind.ORDINAL, Kind.CONTINUOUS])),
        label="An x",
        labels=tuple(labels.items()),
        missing=tuple(codes),
        missing_range=None if span is None else tuple(span),
        suppressed=held_back,
    )
    series = pl.Series(cells, dtype=pl.Int64 if whole else pl.Float64)
    return Table(
        pl.DataFrame({"X": series, "N": range(len(cells))}), Schema((column, Column("N", Kind.CONTINUOUS)))
    )


def labels_of(column):
    labels = {float(value): label for value, label in column.labels}
    return ({} if column.suppressed is None else {float(column.suppressed): "suppressed"}) | labels


@pytest.mark.parametrize("suffix", [".sav", ".zsav"])
@CHECK
@given(table=coded())
def test_spss_keeps_codes_ranges_labels_and_levels(table, suffix):
    _, read = through(table, suffix)
    was, column = table.schema["X"], read.schema["X"]
    assert_series_equal(read.frame["X"].cast(pl.Float64), table.frame["X"].cast(pl.Float64))
    assert column.kind is was.kind
    assert labels_of(column) == labels_of(was)
    assert column.missing_range == was.missing_range
    outside = {
        code
        for code in was.missing_codes
        if not (was.missing_range and was.missing_range[0] <= code <= was.missing_range[1])
    }
    assert set(column.missing) == outside
    assert read.missing("X").tolist() == table.missing("X").tolist()
    _, again = through(read, suffix)  # and what came in goes out as it came
    assert again.schema == read.schema
    assert again.frame.equals(read.frame)


@pytest.mark.parametrize("suffix", [".dta", ".xpt"])
@CHECK
@given(table=coded())
def test_special_missing_values_tell_codes_apart(table, suffix):
    _, read = through(table, suffix)
    missing = table.missing("X")
    assert read.missing("X").tolist() == missing.tolist()
    present = pl.Series(~missing)
    assert read.frame["X"].filter(present).to_list() == table.frame["X"].filter(present).to_list()
    # One letter for each code and one code for each letter; null stays null.
    pairs = set(zip(table.frame["X"].filter(~present), read.frame["X"].filter(~present), strict=True))
    assert len({was for was, _ in pairs}) == len({now for _, now in pairs}) == len(pairs)
    assert all((was is None) == (now is None) for was, now in pairs)
    if suffix == ".dta":
        column = read.schema["X"]
        told = {label for value, label in labels_of(column).items() if value not in column.missing}
        assert told == {
            label
            for value, label in labels_of(table.schema["X"]).items()
            if value % 1 == 0 and not _is_missing(value, table.schema["X"])
        }
    _, again = through(read, suffix)
    assert again.schema == read.schema
    assert again.frame.equals(read.frame)


def _is_missing(value, column):
    within = column.missing_range is not None and column.missing_range[0] <= value <= column.missing_range[1]
    return within or value in column.missing_codes


@CHECK
@given(
    texts=st.lists(TEXT.filter(lambda text: text.strip()), min_size=1, max_size=6),
    meanings=st.dictionaries(
        st.text("abcé漢 ", min_size=1, max_size=12).map(str.strip).filter(bool),
        st.text("xyz", min_size=1),
        max_size=3,
    ),
    codes=st.lists(st.sampled_from(["NA", "-9", "é", "12345678"]), max_size=3, unique=True),
)
def test_spss_keeps_labels_and_codes_of_text(texts, meanings, codes):
    column = Column("t", Kind.ORDINAL, labels=tuple(meanings.items()), missing=tuple(codes))
    table = Table(pl.DataFrame({"t": [*texts, *codes]}), Schema((column,)))
    found, _ = through(table, ".sav")
    assert found.frame["t"].to_list() == [*texts, *codes]
    facts = found.facts["t"]
    assert dict(facts.get("labels", ())) == meanings
    assert set(facts.get("missing", ())) == set(codes)


@pytest.mark.parametrize("suffix", SUFFIXES)
@CHECK
@given(
    ends=st.lists(st.tuples(st.integers(-(10**9), 10**9), st.integers(0, 1000)), min_size=1, max_size=6),
    gone=st.booleans(),
)
def test_intervals(ends, gone, suffix):
    lo, hi = [0, *(low for low, _ in ends)], [1, *(low + width for low, width in ends)]
    column = intervals(lo, hi, missing=[False, gone, *([False] * (len(ends) - 1))])
    table = Table(
        pl.DataFrame({"x": column, "n": range(len(column))}),
        Schema((Column("x", Kind.CONTINUOUS), Column("n", Kind.CONTINUOUS))),
    )
    _, read = through(table, suffix)
    assert read.frame["x"].to_list() == column.to_list()
    assert read.schema["x"].kind is Kind.CONTINUOUS
