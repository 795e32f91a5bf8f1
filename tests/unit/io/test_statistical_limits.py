"""What does not fit the files of SPSS, Stata and SAS is said before they are written."""

from __future__ import annotations

import datetime as dt

import pandas as pd
import polars as pl
import pyreadstat
import pytest
from polars.testing import assert_frame_equal

from sfumato import io
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import Table
from sfumato.errors import WriteError
from sfumato.io import statistical
from sfumato.io.statistical import clocks
from sfumato.io.statistical.variables import from_column

SECRET = "Xanthippe"
WRITTEN = [".sav", ".zsav", ".dta", ".xpt"]


def one(name="x", *values, dtype=None, kind=Kind.NOMINAL, **facts):
    """A table of one column."""
    return Table(pl.DataFrame({name: pl.Series(values, dtype=dtype)}), Schema((Column(name, kind, **facts),)))


def through(table, path):
    io.write(table, path, overwrite=True)
    return io.read_contents(path)


def written(table, path):
    io.write(table, path, overwrite=True)
    return path


# What does not fit -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("suffix", "name", "fault"),
    [
        (".sav", "two words", "does not suit .*: names must begin with a letter"),
        (".sav", "_x", "does not suit .*: names must begin with a letter"),
        (".sav", "1x", "does not suit .*: names must begin with a letter"),
        (".sav", "x.", "does not suit .*: names must begin with a letter.* and not end with a point"),
        (".sav", "é" * 33, "is longer than 64 bytes"),
        (".sav", "with", "is reserved in SPSS"),
        (".dta", "a.b", "does not suit .*: names must begin with a letter or _"),
        (".dta", "a" * 33, "is longer than 32 letters"),
        (".dta", "str8", "is reserved in Stata"),
        (".xpt", "é", "does not suit .*: names must begin with a letter from A to Z or _"),
        (".xpt", "a" * 33, "is longer than 32 bytes"),
        (".xpt", "_n_", "is reserved in SAS"),
    ],
)
def test_names(tmp_path, suffix, name, fault):
    with pytest.raises(WriteError, match=f"the name `.*` {fault}"):
        io.write(pl.DataFrame({name: [1]}), tmp_path / f"x{suffix}")
    assert list(tmp_path.iterdir()) == []


def test_names_that_differ_in_capitals(tmp_path):
    frame = pl.DataFrame({"age": [1], "Age": [2]})
    for suffix in (".sav", ".xpt"):
        with pytest.raises(WriteError, match="case is ignored: `age`, `Age`"):
            io.write(frame, tmp_path / f"x{suffix}")
    io.write(frame, tmp_path / "x.dta")
    assert_frame_equal(io.read(tmp_path / "x.dta"), frame)


@pytest.mark.parametrize("suffix", [".sav", ".dta", ".xpt"])
def test_all_names_that_do_fit(tmp_path, suffix):
    names = {
        ".sav": ["a.b$#@_", "日本", "Ab" * 32],
        ".dta": ["_x", "日本", "a" * 32],
        ".xpt": ["_x", "A9", "a" * 32],
    }
    frame = pl.DataFrame({name: [1, 2] for name in names[suffix]})
    io.write(frame, tmp_path / f"x{suffix}")
    assert_frame_equal(io.read(tmp_path / f"x{suffix}"), frame)


def test_a_long_name_with_labels(tmp_path):
    table = one("a" * 32, 1, labels=((1, "one"),))
    with pytest.raises(WriteError, match="longer than 31 letters, and its values have labels"):
        io.write(table, tmp_path / "x.dta")


@pytest.mark.parametrize(
    ("values", "must"),
    [
        ([2**53 + 1], "1 number above 2\\^53"),
        ([2**64 - 1], "number.* above 2"),
        ([float("inf"), 1.0], "`X` has 1 infinite number"),
        ([[1, 2]], "`X` has no `separator`"),
        ([dt.timedelta(1)], "`X` has the type Duration"),
        ([f"{SECRET}\0"], "`X` has 1 text with a zero byte"),
    ],
)
@pytest.mark.parametrize("suffix", WRITTEN)
def test_values_that_no_package_holds(tmp_path, suffix, values, must):
    with pytest.raises(WriteError, match=must) as caught:
        io.write(pl.DataFrame({"X": values}), tmp_path / f"x{suffix}")
    assert SECRET not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_numbers_and_texts_beyond_a_package(tmp_path):
    for suffix, number in ((".dta", 1e308), (".xpt", 1e75), (".sav", 1.7976931348623157e308)):
        with pytest.raises(WriteError, match=r"`X` has 1 number above .*, the largest"):
            io.write(pl.DataFrame({"X": [number, 1.0]}), tmp_path / f"x{suffix}")
    for suffix in (".sav", ".xpt"):
        with pytest.raises(WriteError, match="`X` has 1 text longer than 32,767 bytes"):
            io.write(pl.DataFrame({"X": ["é" * 20_000, "x"]}), tmp_path / f"x{suffix}")
    long = pl.DataFrame({"X": ["é" * 20_000, None, "x", "é" * 20_000]})
    io.write(long, tmp_path / "x.dta")
    assert_frame_equal(io.read(tmp_path / "x.dta"), long)


def test_faults_are_told_together(tmp_path):
    with pytest.raises(WriteError, match="do not fit a file of SPSS, for 3 reasons") as caught:
        io.write(pl.DataFrame({"a b": [1], "c d": [float("inf")]}), tmp_path / "x.sav")
    assert caught.value.message.count("\n  - ") == 3
    with pytest.raises(WriteError, match="has no columns to write"):
        io.write(pl.DataFrame(), tmp_path / "x.sav")


def test_what_the_library_itself_refuses_is_told_without_its_words(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise ValueError(SECRET)

    monkeypatch.setattr(pyreadstat, "write_sav", refuse)
    with pytest.raises(WriteError, match="a file of SPSS cannot hold") as caught:
        io.write(pl.DataFrame({"a": [SECRET]}), tmp_path / "x.sav")
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    assert list(tmp_path.iterdir()) == []


def test_a_variable_does_not_show_its_cells():
    variable = from_column(pl.Series("x", [SECRET]), Column("x", Kind.NOMINAL), clocks.SPSS)
    assert SECRET not in repr(variable)


def test_the_last_record_of_a_transport_file_must_not_be_empty(tmp_path):
    with pytest.raises(WriteError, match="the last record has no text"):
        io.write(pl.DataFrame({"T": ["a", None]}), tmp_path / "x.xpt")
    io.write(pl.DataFrame({"T": ["a", None], "X": [None, None]}), tmp_path / "x.xpt")
    assert io.read(tmp_path / "x.xpt").height == 2


# Types and labels ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", WRITTEN)
def test_types(tmp_path, suffix):
    frame = pl.DataFrame(
        {
            "B": [True, None, False],
            "E": pl.Series(["low", "high", None], dtype=pl.Enum(["low", "high"])),
            "C": pl.Series(["x", None, "y"], dtype=pl.Categorical),
            "D": pl.Series(["1.50", None, "2.25"]).cast(pl.Decimal(10, 2)),
            "U": pl.Series([1, None, 255], dtype=pl.UInt8),
            "F": pl.Series([0.5, None, float("nan")], dtype=pl.Float32),
            "BIG": [2**53, -(2**53), 2147483621],
            "NONE": pl.Series([None, None, None]),
            "Z": pl.Series([dt.datetime(2020, 1, 1, 12)] * 3).dt.replace_time_zone("Europe/Berlin"),  # noqa: DTZ001
        }
    )
    io.write(frame, tmp_path / f"x{suffix}")
    found = io.read_contents(tmp_path / f"x{suffix}")
    assert found.frame["B"].to_list() == [1, None, 0]
    assert found.frame["E"].to_list() == ["low", "high", None]
    assert found.frame["C"].to_list() == ["x", None, "y"]
    assert found.frame["D"].to_list() == [1.5, None, 2.25]
    assert found.frame["U"].to_list() == [1, None, 255]
    assert found.frame["F"].to_list() == [0.5, None, None]
    assert found.frame["BIG"].to_list() == [2**53, -(2**53), 2147483621]
    assert found.frame["NONE"].to_list() == [None] * 3
    assert found.frame["Z"].to_list() == [dt.datetime(2020, 1, 1, 12)] * 3  # noqa: DTZ001
    if suffix != ".xpt":
        assert found.facts["B"]["labels"] == ((0, "false"), (1, "true"))


@pytest.mark.parametrize("suffix", WRITTEN)
def test_no_records(tmp_path, suffix):
    frame = pl.DataFrame({"X": pl.Series([], dtype=pl.Int64), "T": pl.Series([], dtype=pl.String)})
    io.write(frame, tmp_path / f"x{suffix}")
    assert_frame_equal(io.read(tmp_path / f"x{suffix}"), frame)


def test_labels_that_are_longer_than_the_values(tmp_path):
    table = one("t", "m", "w", None, labels=(("ö" * 20, "long"), ("m", "man")))
    assert dict(through(table, tmp_path / "x.sav").facts["t"]["labels"]) == {"m": "man", "ö" * 20: "long"}
    assert io.read(tmp_path / "x.sav")["t"].to_list() == ["m", "w", None]


def test_labels_that_are_too_long_are_cut_and_show_it(tmp_path):
    table = one("x", 1, label="é" * 300, labels=((1, "ü" * 9000),))
    for suffix, label, meaning in ((".sav", 126, 58), (".dta", 79, 7999), (".xpt", 126, None)):
        assert statistical.losses(table, suffix)[0] == "labels are cut: `x`"
        facts = through(table, tmp_path / f"x{suffix}").facts["x"]
        assert facts["label"] == "é" * label + "…"
        assert meaning is None or facts["labels"] == ((1, "ü" * meaning + "…"),)


def test_labels_that_stata_has_no_place_for(tmp_path):
    frame = pl.DataFrame({"t": ["m", "w"], "x": [1.5, 2.0]})
    columns = (
        Column("t", Kind.ORDINAL, labels=(("m", "man"),), missing=("w",), order=("w", "m")),
        Column("x", Kind.CONTINUOUS, labels=((1.5, "half"), (2, "two"), (1e10, "many"))),
    )
    table = Table(frame, Schema(columns))
    assert statistical.losses(table, ".dta") == [
        "the order of values is not kept: `t`",
        "Stata has no ordinal variables: `t`",
        "Stata has no missing codes for text: `t`",
        "labels of values are not kept: `t`, `x`",
    ]
    assert through(table, tmp_path / "x.dta").facts["x"]["labels"] == ((2.0, "two"),)
    assert through(table, tmp_path / "x.sav").facts["t"] == {
        "kind": "ordinal",
        "labels": (("m", "man"),),
        "missing": ("w",),
    }


def test_text_that_is_digits_stays_text_but_dates_are_read(tmp_path):
    frame = pl.DataFrame({"POSTCODE": ["12345", "54321"] * 10, "DAY": ["2020-01-01", "2021-12-31"] * 10})
    for suffix in WRITTEN:
        io.write(frame, tmp_path / f"x{suffix}")
        table = io.read_table(tmp_path / f"x{suffix}")
        assert table.schema["POSTCODE"].kind is Kind.NOMINAL
        assert table.frame["POSTCODE"].dtype == pl.String
        assert table.schema["DAY"].kind is Kind.DATE


def test_transport_files_of_the_old_and_the_new_version(tmp_path):
    for name, start in (("X", b"LIBRARY"), ("x", b"LIBV8"), ("LONGERNAME", b"LIBV8")):
        io.write(pl.DataFrame({name: [1, None]}), tmp_path / "x.xpt", overwrite=True)
        assert (tmp_path / "x.xpt").read_bytes()[20:].startswith(start)
        assert io.read(tmp_path / "x.xpt").columns == [name]
    assert pd.read_sas(written(pl.DataFrame({"X": [1, 2]}), tmp_path / "y.xpt"))["X"].tolist() == [1, 2]
