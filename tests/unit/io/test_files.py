"""Which file is read and written, Parquet, and text forms of generalised values."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from sfumato import io
from sfumato.core.evidence import Evidence
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.generalised.cover import Cover
from sfumato.data.generalised.intervals import intervals
from sfumato.data.generalised.nodes import Nodes
from sfumato.data.generalised.text_forms import to_text
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import ParameterError, ReadError, WriteError
from sfumato.methods.suppression import AttributeSuppression
from sfumato.risk.linkage import DistanceLinkage

SECRET = "Xanthippe"


def generalised_table():
    nodes = Nodes.of({"valley": ["Kern", "Fresno"], "Kern": ["Kern"]}, leaves=["Fresno", "Kern", "Napa"])
    frame = pl.DataFrame(
        {
            "age": intervals([20, 30, None, None], [29, 30, None, None], missing=[False, False, False, True]),
            "county": pl.Series(["valley", "Kern", "*", None], dtype=nodes.dtype),
        }
    )
    schema = Schema((Column("age", Kind.CONTINUOUS, Role.KEY), Column("county", Kind.NOMINAL, Role.KEY)))
    return Table(frame, schema, nodes={"county": nodes})


def test_an_unknown_suffix_names_those_that_work(tmp_path):
    with pytest.raises(ReadError, match=r"`data\.docx` is not known.*\.csv, \.tsv, .*\.parquet"):
        io.read(tmp_path / "data.docx")
    with pytest.raises(WriteError, match=r"\.csv"):
        io.write(pl.DataFrame({"a": [1]}), tmp_path / "data")
    assert list(tmp_path.iterdir()) == []


def test_a_suffix_in_capitals_works(tmp_path):
    io.write(pl.DataFrame({"a": [1]}), tmp_path / "DATA.CSV")
    assert io.read(str(tmp_path / "DATA.CSV")).rows() == [(1,)]


def test_files_that_are_alike_in_their_endings_only_are_not_near(tmp_path):
    for name in ("one.csv", "patients.sav"):
        (tmp_path / name).write_bytes(b"a\n1\n")
    with pytest.raises(ReadError) as caught:
        io.read(tmp_path / "patiens.csv")
    assert caught.value.hint == "did you mean `patients.sav`?"


def test_a_missing_file_suggests_near_ones(tmp_path):
    (tmp_path / "census.csv").write_text("a\n1\n")
    with pytest.raises(ReadError) as caught:
        io.read(tmp_path / "cencus.csv")
    assert caught.value.hint == "did you mean `census.csv`?"
    with pytest.raises(ReadError, match=r"File not found: .*\s+hint: there is no folder"):
        io.read(tmp_path / "no" / "census.csv")
    (tmp_path / "census.csv").unlink()
    with pytest.raises(ReadError) as caught:
        io.read(tmp_path / "census.csv")
    assert caught.value.hint.endswith("has no data file")


def test_a_folder_is_no_file(tmp_path):
    (tmp_path / "data.csv").mkdir()
    with pytest.raises(ReadError, match="is a folder, not a file"):
        io.read(tmp_path / "data.csv")


def test_a_name_with_wildcards_is_one_file(tmp_path):
    for name in ("a[1].csv", "b*.csv", "c[1].parquet"):
        io.write(pl.DataFrame({"a": [name]}), tmp_path / name)
    for name in ("a[1].csv", "b*.csv", "c[1].parquet"):
        assert io.read(tmp_path / name)["a"].to_list() == [name]


def test_parquet_round_trip(tmp_path):
    frame = pl.DataFrame(
        {"n": [1, None], "x": [0.1, float("inf")], "t": ["", None], "d": [dt.date(2026, 1, 1), None]}
    )
    io.write(frame, tmp_path / "data.parquet")
    assert_frame_equal(io.read(tmp_path / "data.parquet"), frame)
    assert io.read(tmp_path / "data.parquet", rows=1).height == 1
    with pytest.raises(ParameterError, match="`delimiter` does not apply to Parquet files"):
        io.read(tmp_path / "data.parquet", delimiter=";")


@pytest.mark.parametrize("damage", ["empty", "text", "cut", "middle"])
def test_a_damaged_parquet_file(tmp_path, damage):
    path = tmp_path / "data.parquet"
    io.write(pl.DataFrame({"a": [SECRET] * 100}), path)
    whole = path.read_bytes()
    path.write_bytes(
        {
            "empty": b"",
            "text": SECRET.encode() * 10,
            "cut": whole[:-20],
            "middle": whole[:10] + b"\0" * 30 + whole[40:],
        }[damage]
    )
    with pytest.raises(ReadError, match="Parquet f") as caught:
        io.read(path)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


def test_what_text_cannot_hold_is_refused(tmp_path):
    frame = pl.DataFrame({"ok": [1], "list": [[SECRET]], "bytes": [b"x"], "span": [dt.timedelta(1)]})
    with pytest.raises(WriteError, match="`list` has no `separator`"):
        io.write(frame, tmp_path / "data.csv")
    with pytest.raises(WriteError, match="cannot be written as text: `bytes`, `span`") as caught:
        io.write(frame.drop("list"), tmp_path / "data.csv")
    assert SECRET not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_generalised_values_go_through_text(tmp_path):
    table = generalised_table()
    io.write(table, tmp_path / "release.csv")
    assert (tmp_path / "release.csv").read_text() == ("age,county\n[20;29],{Fresno|Kern}\n30,Kern\n*,*\n,\n")
    again = io.read_table(tmp_path / "release.csv", table.schema)
    assert again.frame["age"].to_list() == table.frame["age"].to_list()
    assert again.frame["county"].to_list() == ["{Fresno|Kern}", "Kern", "*", None]
    assert to_text(again.frame["county"], again.nodes["county"]).to_list() == [
        "{Fresno|Kern}",
        "Kern",
        "*",
        None,
    ]


def test_generalised_values_go_through_parquet(tmp_path):
    table = generalised_table()
    io.write(table, tmp_path / "release.parquet")
    again = io.read_table(tmp_path / "release.parquet", table.schema)
    assert again.frame["age"].equals(table.frame["age"], null_equal=True)
    assert to_text(again.frame["county"], again.nodes["county"]).to_list() == [
        "{Fresno|Kern}",
        "Kern",
        "*",
        None,
    ]


def test_no_row_numbers_are_written(tmp_path):
    io.write(pl.DataFrame({"a": [5, 3]}), tmp_path / "data.csv")
    assert (tmp_path / "data.csv").read_text() == "a\n5\n3\n"


@pytest.mark.parametrize("ending", ["csv", "parquet", "xlsx"])
def test_minus_zero_is_written_as_zero_since_people_are_counted_so(tmp_path, ending):
    table = Table(pl.DataFrame({"x": [0.0, -0.0, 1.5]}), Schema((Column("x", Kind.CONTINUOUS, Role.KEY),)))
    io.write(table, tmp_path / f"x.{ending}")
    again = io.read(tmp_path / f"x.{ending}")["x"].to_list()
    assert [str(float(value)) for value in again] == ["0.0", "0.0", "1.5"]


def test_a_tsv_file_is_written_with_tabs(tmp_path):
    frame = pl.DataFrame({"a": ["x\ty", "z"], "b": [1, 2]})
    io.write(frame, tmp_path / "data.tsv")
    assert (tmp_path / "data.tsv").read_text() == 'a\tb\n"x\ty"\t1\nz\t2\n'
    assert_frame_equal(io.read(tmp_path / "data.tsv"), frame)


def test_without_a_schema_one_is_proposed(tmp_path):
    (tmp_path / "data.csv").write_text(
        "age,income,born\n31,.,2001-02-03\n45,100.5,1999-12-31\n45,80,2000-01-01\n"
    )
    table = io.read_table(tmp_path / "data.csv")
    assert table.frame["income"].to_list() == [None, 100.5, 80.0]
    assert table.frame["born"].dtype == pl.Date
    assert table.schema["income"].missing == (".",)


@pytest.mark.parametrize("ending", ["csv", "parquet", "xlsx"])
def test_a_column_of_stars_reads_back_and_links_nobody(tmp_path, ending):
    schema = Schema((Column("job", Kind.NOMINAL, Role.KEY), Column("age", Kind.CONTINUOUS, Role.KEY)))
    original = Table(pl.DataFrame({"job": ["cook", "cook", "smith", "nurse"], "age": [1, 2, 3, 4]}), schema)
    stars = AttributeSuppression(k=4).apply(original, Run(seed=1)).table
    io.write(stars, tmp_path / f"stars.{ending}")
    again = io.read_table(tmp_path / f"stars.{ending}", schema)
    assert Cover.of(again, "job").wildcards.all()
    assert Cover.of(again, "job").share_of_domain().tolist() == [1.0] * 4
    score = DistanceLinkage().measure(
        Evidence(original, Release.of(again, source_rows=np.arange(4))), Run(seed=1)
    )
    assert score.value == 0.25
