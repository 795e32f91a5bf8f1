"""Arrow IPC files: both forms, what others write, and what is damaged."""

from __future__ import annotations

import datetime as dt
import random
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pytest
from polars.testing import assert_frame_equal

from sfumato import io
from sfumato.data.generalised.intervals import intervals
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import ParameterError, ReadError, WriteError

SECRET = "Xanthippe"


@pytest.fixture
def frame():
    return pl.DataFrame(
        {
            "n": [1, None],
            "x": [0.1, float("inf")],
            "t": ["", None],
            "d": [dt.date(1850, 1, 1), None],
            "at": [dt.datetime(2026, 1, 1, 1, 2, 3, 4, tzinfo=dt.UTC), None],
            "flag": [True, None],
            "grade": pl.Series(["low", None], dtype=pl.Enum(["low", "high"])),
            "set": [["a", "b"], None],
            "small": pl.Series([1, None], dtype=pl.Int8),
        }
    )


@pytest.mark.parametrize("name", ["data.arrow", "data.feather", "DATA.ARROW", "data[1].arrow", "b*.arrow"])
def test_what_is_written_is_read(tmp_path, frame, name):
    io.write(frame, tmp_path / name)
    assert_frame_equal(io.read(tmp_path / name), frame)
    assert io.read(tmp_path / name, rows=1).height == 1
    assert io.read(tmp_path / name, rows=0).schema == frame.schema


def test_intervals_stay_structs(tmp_path):
    ages = intervals([20, None, None], [29, None, None], missing=[False, False, True])
    table = Table(pl.DataFrame({"age": ages}), Schema((Column("age", Kind.CONTINUOUS, Role.KEY),)))
    io.write(table, tmp_path / "data.arrow")
    assert io.read(tmp_path / "data.arrow")["age"].equals(ages, null_equal=True)
    assert_frame_equal(io.read_table(tmp_path / "data.arrow", table.schema).frame, table.frame)


def test_others_read_what_we_write(tmp_path, frame):
    io.write(frame.drop("set"), tmp_path / "data.feather")
    read = pyarrow.feather.read_table(tmp_path / "data.feather")
    assert read.column("t").to_pylist() == ["", None]
    assert read.schema.field("t").type == pa.large_string()  # not a view, which older readers do not know
    assert pd.read_feather(tmp_path / "data.feather")["n"].isna().tolist() == [False, True]


def test_what_pandas_writes(tmp_path):
    made = pd.DataFrame({"a": [1.5, None], "b": ["x", None], "c": pd.Categorical(["u", "v"])})
    made.to_feather(tmp_path / "data.feather")
    assert io.read(tmp_path / "data.feather").rows() == [(1.5, "x", "u"), (None, None, "v")]


def test_the_stream_form(tmp_path):
    table = pa.table({"a": [1, 2, 3], "b": ["x", None, "z"]})
    with pa.ipc.new_stream(tmp_path / "data.arrow", table.schema) as sink:
        sink.write(table)
    assert io.read(tmp_path / "data.arrow").rows() == [(1, "x"), (2, None), (3, "z")]
    assert io.read(tmp_path / "data.arrow", rows=2).height == 2


def test_options_of_text_are_refused(tmp_path, frame):
    io.write(frame, tmp_path / "data.arrow")
    with pytest.raises(ParameterError, match="`delimiter` does not apply to Feather files"):
        io.read(tmp_path / "data.arrow", delimiter=";")


def damaged(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    with pytest.raises(ReadError, match=r"Arrow f|Feather") as caught:
        io.read(path)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return str(caught.value)


def test_a_damaged_file(tmp_path, capfd):
    path = tmp_path / "data.arrow"
    io.write(pl.DataFrame({"a": [SECRET] * 100}), path)
    whole = path.read_bytes()
    for content in (b"", SECRET.encode() * 10, b"a,b\n1,2\n"):
        assert "is not in Arrow format" in damaged(path, content)
    assert "version 1 of the Feather format" in damaged(path, b"FEA1" + whole)
    for content in (whole[:-20], whole[:100], b"ARROW1\0\0", b"\xff\xff\xff\xff" + whole):
        assert "damaged or cut short" in damaged(path, content)
    chance = random.Random(1)
    for _ in range(200):  # polars may panic over it, and then still nothing must come out but our sentence
        content = bytearray(whole)
        for place in chance.choices(range(8, len(content)), k=3):
            content[place] ^= 1 << chance.randrange(8)
        path.write_bytes(content)
        try:
            io.read(path)
        except ReadError as error:
            assert SECRET not in str(error)  # noqa: PT017
    assert SECRET not in capfd.readouterr().err


def test_two_columns_of_one_name(tmp_path):
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pa.ipc.new_file(tmp_path / "data.arrow", table.schema) as sink:
        sink.write(table)
    with pytest.raises(ReadError) as caught:
        io.read(tmp_path / "data.arrow")
    assert "a different name for each column" in caught.value.hint


def test_what_arrow_cannot_hold_is_refused(tmp_path):
    with pytest.raises(WriteError, match="these types: Object"):
        io.write(pl.DataFrame({"a": pl.Series([object()], dtype=pl.Object)}), tmp_path / "data.arrow")
    assert list(tmp_path.iterdir()) == []
