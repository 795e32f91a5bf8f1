"""What a release shows and nothing besides: bytes are searched for what was suppressed."""

import datetime as dt
import io
import struct

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato
from effort import examples
from sfumato.data.hidden_content import strip_hidden
from sfumato.methods.local_suppression import LocalSuppression

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.feather")

SECRET = dt.date(1971, 3, 3)
DAYS = struct.pack("<i", (SECRET - dt.date(1970, 1, 1)).days)
#: By kind of column: the value that is suppressed, another one, and the bytes that would give it away.
CASES = {
    "whole": (777_777, 1, struct.pack("<q", 777_777)),
    "number": (777.125, 1.0, struct.pack("<d", 777.125)),
    "date": (SECRET, dt.date(2000, 1, 1), DAYS),
    "short text": ("Ghost", "Rome", b"Ghost"),
    "long text": ("Ghostville on the lake", "Rome on the seven hills", b"Ghostville"),
    "set": (["Ghostville"], ["Rome"], b"Ghostville"),
    "interval": ({"lo": 777_777, "hi": 777_777}, {"lo": 1, "hi": 2}, struct.pack("<q", 777_777)),
}


def bytes_of(series):
    """Everything that stands in the memory of a column."""
    found = []

    def walk(array):
        if isinstance(array, pa.DictionaryArray):
            walk(array.dictionary)
        found.extend(bytes(buffer) for buffer in array.buffers() if buffer is not None)

    arrow = series.to_arrow()
    for part in arrow.chunks if isinstance(arrow, pa.ChunkedArray) else [arrow]:
        walk(part)
    return b"".join(found)


@pytest.mark.parametrize("case", CASES)
def test_nothing_stands_below_a_null(case):
    secret, other, told = CASES[case]
    series = pl.Series("x", [secret if i == 5 else other for i in range(40)])
    kept = pl.Series([i != 5 for i in range(40)])
    masked = series.zip_with(kept, pl.Series([None], dtype=series.dtype))
    assert told in bytes_of(masked), "polars forgets by itself: this test is no longer needed"
    shown = strip_hidden(masked.to_frame())["x"]
    assert told not in bytes_of(shown)
    assert shown.to_list() == masked.to_list()
    assert shown.dtype == masked.dtype


@pytest.mark.parametrize("dtype", [pl.Categorical, pl.Enum(["Ghost", "Rome"])])
def test_no_category_that_nobody_has(dtype):
    series = pl.Series("x", ["Rome", None, "Rome"], dtype=pl.Enum(["Ghost", "Rome"])).cast(dtype)
    shown = strip_hidden(series.to_frame())["x"]
    assert shown.to_list() == ["Rome", None, "Rome"]
    assert b"Ghost" not in bytes_of(shown)


@pytest.mark.parametrize("inner", [pl.String, pl.Categorical, pl.Enum(["Ghostville", "Rome"])])
@pytest.mark.parametrize("how", ["head", "null"])
def test_no_member_of_a_set_that_nobody_has(inner, how):
    sets = pl.Series("x", [["Rome"], ["Rome", "Rome"], ["Ghostville"]]).cast(pl.List(inner))
    nothing = pl.Series([None], dtype=sets.dtype)
    shown = sets.head(2) if how == "head" else sets.zip_with(pl.Series([True, True, False]), nothing)
    file = io.BytesIO()
    anew = strip_hidden(shown.to_frame())
    pa.feather.write_feather(anew.to_arrow(), file, compression="uncompressed")
    assert anew["x"].to_list() == shown.to_list()
    assert b"Ghostville" not in file.getvalue()
    assert b"Rome" in file.getvalue()


def test_the_order_of_categories_stays():
    levels = pl.Enum(["low", "middle", "high"])
    shown = strip_hidden(pl.DataFrame({"x": pl.Series(["high", "low"], dtype=levels)}))["x"]
    assert shown.dtype == pl.Enum(["low", "high"])


def test_a_text_that_was_replaced_is_gone_though_no_cell_is_missing():
    series = pl.Series("x", ["Ghostville on the lake", "Rome on the seven hills"])
    covered = series.zip_with(pl.Series([False, True]), pl.Series(["*"]))
    assert b"Ghostville" not in bytes_of(strip_hidden(covered.to_frame())["x"])


def test_minus_zero_is_zero():
    shown = strip_hidden(pl.DataFrame({"x": [-0.0, 0.0, None, float("nan")]}))["x"]
    assert np.signbit(shown.drop_nulls().drop_nans().to_numpy()).tolist() == [False, False]
    assert shown.to_list()[2] is None
    assert np.isnan(shown.to_list()[3])


CELLS = {
    pl.Int64: st.integers(-5, 5),
    pl.Float64: st.floats(allow_nan=False),
    pl.String: st.text(max_size=20),
    pl.Boolean: st.booleans(),
    pl.Date: st.dates(),
    pl.Datetime("us"): st.datetimes(),
    pl.List(pl.String): st.lists(st.text(max_size=3), max_size=3),
}


@given(st.data())
@examples(60)
def test_the_cells_are_the_same(data):
    dtype = data.draw(st.sampled_from(list(CELLS)))
    cells = data.draw(st.lists(st.none() | CELLS[dtype], max_size=12))
    series = pl.Series("x", cells, dtype=dtype)
    shown = strip_hidden(series.to_frame())["x"]
    assert shown.dtype == dtype
    assert shown.to_list() == series.to_list()


@pytest.mark.parametrize("native", [pl.DataFrame, lambda columns: pl.DataFrame(columns).to_arrow()])
def test_what_the_front_door_gives_back_holds_no_suppressed_text(native):
    cities = ["Ghostville" if i == 5 else "Rome" for i in range(40)]
    data = native({"city": cities, "age": [30] * 40})
    release = sfumato.protect(data, LocalSuppression(k=5), columns=["city", "age"])
    table = pa.table(release.data)
    found = b"".join(
        bytes(buffer)
        for column in table.columns
        for part in column.chunks
        for buffer in part.buffers()
        if buffer is not None
    )
    assert "Ghostville" not in release.table.frame["city"]
    assert b"Ghostville" not in found
