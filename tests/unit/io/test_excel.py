"""Excel workbooks as other programs write them, and as we do."""

from __future__ import annotations

import datetime as dt
import sys
import zipfile
from types import SimpleNamespace

import openpyxl
import pandas as pd
import polars as pl
import pytest
import xlsxwriter
from polars.testing import assert_frame_equal

from sfumato import io
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.errors import MissingDependencyError, ParameterError, ReadError, WriteError
from sfumato.io import excel
from sfumato.io.formats import FileDialect

SECRET = "Xanthippe"
DAY, MOMENT = dt.date(2026, 11, 15), dt.datetime(2026, 11, 15, 1, 2, 3)  # noqa: DTZ001


@pytest.fixture
def workbook(tmp_path):
    """Make a workbook by openpyxl, of one sheet or of several named ones."""

    def make(rows=None, *, at=(1, 1), merge=(), errors=(), **sheets):
        book = openpyxl.Workbook()
        book.remove(book.active)
        for name, content in ({"Sheet": rows} if rows is not None else sheets).items():
            sheet = book.create_sheet(name)
            for i, record in enumerate(content):
                for j, value in enumerate(record):
                    if value is not None:
                        sheet.cell(at[0] + i, at[1] + j, value)
            for cells in merge:
                sheet.merge_cells(cells)
            for cell in errors:
                sheet[cell].data_type = "e"
        book.save(tmp_path / "data.xlsx")
        return tmp_path / "data.xlsx"

    return make


def fails(path, **told):
    with pytest.raises(ReadError) as caught:
        io.read(path, **told)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    return caught.value


# Reading what openpyxl and pandas write -------------------------------------------------------------------


def test_each_type_is_what_it_is(workbook):
    path = workbook(
        [
            ["whole", "number", "text", "day", "moment", "flag", "clock"],
            [1, 0.5, "a", DAY, MOMENT, True, dt.time(1, 2, 3)],
            [None, None, None, None, None, None, None],
            [2.0, 1.0, "  b ", dt.date(1900, 1, 1), DAY, False, None],
        ]
    )
    read = io.read(path)
    assert read.schema == {
        "whole": pl.Int64,
        "number": pl.Float64,
        "text": pl.String,
        "day": pl.Date,
        "moment": pl.Datetime("us"),
        "flag": pl.Boolean,
        "clock": pl.Time,
    }
    midnight = dt.datetime.combine(DAY, dt.time())
    assert read.rows() == [
        (1, 0.5, "a", DAY, MOMENT, True, dt.time(1, 2, 3)),
        (2, 1.0, "  b ", dt.date(1900, 1, 1), midnight, False, None),
    ]


def test_text_of_digits(workbook):
    path = workbook(
        [
            ["zip", "stored", "phone", "account", "exponent", "gaps"],
            ["01234", "12", "+4930", "1" * 19, "1E5", "1.5"],
            ["99999", "-13", "030", "2", "2E3", None],
        ]
    )
    read = io.read(path)
    assert read.rows() == [
        ("01234", 12, "+4930", "1" * 19, "1E5", 1.5),
        ("99999", -13, "030", "2", "2E3", None),
    ]


@pytest.mark.parametrize(
    ("cells", "read"),
    [
        ([1, "word"], ["1", "word"]),
        ([1, 2.5, "word", True], ["1", "2.5", "word", "true"]),
        ([1, "007"], ["1", "007"]),
        ([0.12345678901234, "word", "2.50"], ["0.12345678901234", "word", "2.50"]),
        ([0.12345678901234, "2.50", 1e-12], [0.12345678901234, 2.5, 1e-12]),
        ([1, "2"], [1, 2]),
        ([1, "NULL"], ["1", "NULL"]),
        ([0.12345678901234, "null", "NA"], ["0.12345678901234", "null", "NA"]),
        ([DAY, "NULL"], ["2026-11-15 00:00:00", "NULL"]),
        (["NULL", "NaN", "nan"], ["NULL", "NaN", "nan"]),
        ([1.5, "inf"], ["1.5", "inf"]),
        ([DAY, "unknown"], ["2026-11-15 00:00:00", "unknown"]),
        ([DAY, 5], ["2026-11-15 00:00:00", "5"]),
        ([True, "yes"], ["true", "yes"]),
        ([True, 3], [1, 3]),
        ([*range(3000), "late"], [*map(str, range(3000)), "late"]),
    ],
)
def test_mixed_columns_lose_nothing(workbook, cells, read):
    assert io.read(workbook([["a"], *([cell] for cell in cells)]))["a"].to_list() == read


def test_error_cells_are_missing(workbook):
    rows = [["a", "b", "c"], [1, "#N/A", "#REF!"], ["#DIV/0!", "x", "#REF!"], [3, "y", "#REF!"]]
    path = workbook(rows, errors=["A3", "B2", "C2", "C3", "C4"])
    assert io.read(path).rows() == [(1, None, None), (None, "x", None), (3, "y", None)]


def test_empty_rows_and_columns(workbook):
    rows = [
        ["a", None, "b", "c"],
        [None] * 4,
        [1, None, "x", None],
        [None] * 4,
        [2, None, None, None],
        [""] * 4,
    ]
    read = io.read(workbook(rows))
    assert read.rows() == [(1, "x", None), (2, None, None)]
    assert read.schema == {"a": pl.Int64, "b": pl.String, "c": pl.String}


def test_a_table_that_begins_elsewhere(workbook, capfd):
    path = workbook([["a", None, "b", "none"], [1, None, 2, None]], at=(4, 3))
    assert io.read(path).rows() == [(1, 2, None)]
    assert capfd.readouterr() == ("", "")


def test_empty_texts_are_nothing(workbook):
    assert io.read(workbook([["", ""], ["a", "b"], [1, "x"]])).rows() == [(1, "x")]
    assert "columns without a name" in fails(workbook([[" ", " "], ["a", "b"], [1, SECRET]])).message
    assert io.read(workbook([["a", "b"], ["", ""], [1, "x"]])).rows() == [(1, "x")]


def test_names_that_are_no_text(workbook):
    assert io.read(workbook([[2020, 1.5, DAY, True], [1, 2, 3, 4]])).columns == [
        "2020",
        "1.5",
        "2026-11-15",
        "true",
    ]


def test_faults_of_the_header(workbook):
    error = fails(workbook([["a", None, "c"], [1, SECRET, 3]]))
    assert error.message == "`data.xlsx` has columns without a name, at position 2"
    assert "no merged cells" in error.hint
    error = fails(workbook([["Ages of all", None], ["name", "age"], [SECRET, 3]], merge=["A1:B1"]))
    assert "without a name, at position 2" in error.message
    error = fails(workbook([[SECRET, "b", SECRET], [1, 2, 3]]))
    assert error.message.endswith("have the same name, at positions 1 and 3")
    assert io.read(workbook([["a", "a_1"], [1, 2]])).columns == ["a", "a_1"]
    error = fails(workbook([]))
    assert error.message == "the sheet `Sheet` of `data.xlsx` is empty"
    assert io.read(workbook([["a", "b"]])).schema == {"a": pl.String, "b": pl.String}


def test_which_sheet(workbook):
    found = io.read_contents(workbook(first=[["a"]], second=[["b"], [2], [3]], third=[["c"], [1], [2]]))
    assert found.frame.columns == ["b"]  # the first of the largest
    assert (found.reading.sheet, found.reading.to_dict()) == ("second", {"sheet": "second"})
    path = workbook(first=[["a"], [1]], second=[["b"], [2], [3]], third=[[None, "x"], [1, 2]], fourth=[])
    assert io.read(path, sheet="second").columns == ["b"]
    assert io.read_table(path, sheet="second").names == ("b",)
    assert "others are `first`, `second`, `fourth`: choose with sheet=" in fails(path, sheet="third").hint
    assert "others are" in fails(path, sheet="fourth").hint
    error = fails(path, sheet="secnd")
    assert error.message.startswith("there is no sheet `secnd` in")
    assert error.hint == "did you mean `second`?"


def test_a_sheet_keeps_its_name(workbook, tmp_path):
    found = io.read_contents(workbook(People=[["a"], [1]]))
    assert (found.reading.sheet, found.reading.to_dict()) == ("People", {})  # the only one need not be named
    io.write(found.frame, tmp_path / "out.xlsx", like=found.reading)
    assert openpyxl.load_workbook(tmp_path / "out.xlsx").sheetnames == ["People"]
    io.write(found.frame, tmp_path / "out.csv", like=found.reading)
    assert (tmp_path / "out.csv").read_text() == "a\n1\n"


def test_a_sheet_is_of_workbooks(tmp_path):
    for name in ("data.csv", "data.parquet", "sqlite:data.db?table=x"):
        with pytest.raises(ParameterError, match="`sheet` applies to Excel"):
            io.read(tmp_path / name, sheet="a")
    (tmp_path / "data.xlsx").write_bytes(b"")
    with pytest.raises(ParameterError, match="`delimiter` does not apply to spreadsheets"):
        io.read(tmp_path / "data.xlsx", delimiter=";")


def test_how_many_records(workbook):
    path = workbook([["a"], *([number] for number in range(500))])
    assert io.read(path, rows=3)["a"].to_list() == [0, 1, 2]
    assert io.read(path, rows=0).height == 0
    assert io.read(path, rows=900).height == 500


def test_values_with_a_declared_order_stay_text(workbook):
    schema = Schema((Column("grade", Kind.ORDINAL, Role.KEY, order=("1", "2", "3+")),))
    table = io.read_table(workbook([["grade"], [1], [2]]), schema)
    assert table.frame["grade"].to_list() == ["1", "2"]


def test_dates_with_words_conform(workbook):
    schema = Schema((Column("born", Kind.DATE, Role.KEY, missing=("unknown",)),))
    table = io.read_table(workbook([["born"], [DAY], ["unknown"]]), schema)
    assert table.frame["born"].to_list() == [dt.datetime.combine(DAY, dt.time()), None]


def test_spans_of_time(workbook, tmp_path):
    path = workbook([["a"], [dt.timedelta(hours=30)], [dt.timedelta(minutes=1)]])
    assert io.read(path)["a"].to_list() == [dt.timedelta(hours=30), dt.timedelta(minutes=1)]
    error = fails(workbook([["a"], [dt.timedelta(hours=30)], [SECRET]]))
    assert "mixes durations with other values" in error.message


def test_what_pandas_writes(tmp_path):
    made = pd.DataFrame(
        {"n": [1, None], "t": ["x", None], "d": pd.to_datetime(["2026-01-02", None]), "b": [True, False]}
    )
    made.to_excel(tmp_path / "data.xlsx", index=False)
    assert io.read(tmp_path / "data.xlsx").rows() == [
        (1, "x", dt.date(2026, 1, 2), True),
        (None, None, None, False),
    ]
    made.to_excel(tmp_path / "indexed.xlsx")
    assert "without a name, at position 1" in fails(tmp_path / "indexed.xlsx").message


def test_the_other_calendar_of_excel(tmp_path):
    with xlsxwriter.Workbook(tmp_path / "data.xlsx", {"date_1904": True}) as book:
        sheet = book.add_worksheet()
        sheet.write(0, 0, "d")
        sheet.write_datetime(1, 0, DAY, book.add_format({"num_format": "yyyy-mm-dd"}))
    assert io.read(tmp_path / "data.xlsx").rows() == [(DAY,)]


# Files that are no workbooks ------------------------------------------------------------------------------


def test_files_that_are_something_else(tmp_path, workbook):
    path = tmp_path / "other.xlsx"
    path.write_text(f"a,b\n{SECRET},2\n")
    assert "let its name end in .csv" in fails(path).hint
    path.write_bytes(b"")
    assert "is not an Excel workbook" in fails(path).message
    ole = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)
    path.write_bytes(ole)
    assert fails(path).message.endswith("is in the old .xls format")
    path.write_bytes(ole + "EncryptedPackage".encode("utf-16-le"))
    assert fails(path).message.endswith("is protected by a password")
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("content.xml", SECRET)
    assert "is damaged, or not an Excel workbook" in fails(path).message
    whole = workbook([["a"], [SECRET]]).read_bytes()
    for content in (whole[:-30], whole[: len(whole) // 2], whole[:5]):
        path.write_bytes(content)
        assert "is damaged, or not an Excel workbook" in fails(path).message


def test_missing_packages_say_what_to_install(tmp_path, monkeypatch, workbook):
    path = workbook([["a"], [1]])
    monkeypatch.setitem(sys.modules, "fastexcel", None)
    with pytest.raises(MissingDependencyError, match=r"reading Excel files needs the package `fastexcel`"):
        io.read(path)
    monkeypatch.setitem(sys.modules, "xlsxwriter", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'sfumato\[files\]'"):
        io.write(pl.DataFrame({"a": [1]}), tmp_path / "new.xlsx")
    assert not (tmp_path / "new.xlsx").exists()


# Writing --------------------------------------------------------------------------------------------------


def test_what_is_written_is_read(tmp_path):
    frame = pl.DataFrame(
        {
            "n": [1, None, -(2**53) + 1],
            "x": [0.1, None, 1e300],
            "t": ["=1+1", None, "_x0041_\x01\r\n <&> ünï 𝄞"],
            "zip": ["01", "02", None],
            "d": [dt.date(1900, 1, 1), dt.date(1900, 2, 28), dt.date(9999, 12, 31)],
            "at": [MOMENT, None, dt.datetime(1900, 3, 1, 23, 59, 59, 999000)],  # noqa: DTZ001
            "clock": [dt.time(0), dt.time(23, 59, 59, 999000), None],
            "flag": [True, None, False],
        }
    )
    io.write(frame, tmp_path / "data.xlsx")
    assert_frame_equal(io.read(tmp_path / "data.xlsx"), frame, check_exact=True)
    assert len(openpyxl.load_workbook(tmp_path / "data.xlsx").sheetnames) == 1


def test_others_read_what_we_write(tmp_path):
    frame = pl.DataFrame(
        {"n": [1, 2], "t": ["=SUM(A1)", None], "d": [DAY, None], "at": [MOMENT, None], "b": [True, False]}
    )
    io.write(frame, tmp_path / "data.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "data.xlsx").active
    assert [cell.value for cell in sheet[1]] == ["n", "t", "d", "at", "b"]
    assert [cell.value for cell in sheet[2]] == [
        1,
        "=SUM(A1)",
        dt.datetime.combine(DAY, dt.time()),
        MOMENT,
        True,
    ]
    assert sheet["B2"].data_type == "s"
    assert [cell.value for cell in sheet[3]] == [2, None, None, None, False]
    assert pd.read_excel(tmp_path / "data.xlsx")["d"][0] == pd.Timestamp(DAY)


def test_the_same_table_gives_the_same_bytes(tmp_path, monkeypatch):
    frame = pl.DataFrame({"a": ["x", "y"], "d": [DAY, DAY]})
    io.write(frame, tmp_path / "one.xlsx")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    io.write(frame, tmp_path / "two.xlsx")
    assert (tmp_path / "one.xlsx").read_bytes() == (tmp_path / "two.xlsx").read_bytes()
    with zipfile.ZipFile(tmp_path / "one.xlsx") as file:
        assert b"1980-01-01" in file.read("docProps/core.xml")


def test_dates_that_excel_has_not_are_text(tmp_path):
    frame = pl.DataFrame({"born": [dt.date(1899, 12, 31), DAY], "n": [1, 2]})
    zoned = pl.Series("at", [MOMENT, MOMENT]).dt.replace_time_zone("UTC")
    io.write(frame.with_columns(zoned), tmp_path / "data.xlsx")
    read = io.read(tmp_path / "data.xlsx")
    assert read["born"].to_list() == ["1899-12-31", "2026-11-15"]
    assert read["at"].dtype == pl.String
    schema = Schema((Column("born", Kind.DATE, Role.KEY),))
    assert io.conform(read.select("born"), schema).frame["born"].to_list() == frame["born"].to_list()


def test_nan_and_empty_text_are_missing(tmp_path):
    io.write(pl.DataFrame({"x": [float("nan"), 0.5], "t": ["", "a"], "n": [1, 2]}), tmp_path / "data.xlsx")
    assert io.read(tmp_path / "data.xlsx").rows() == [(None, None, 1), (0.5, "a", 2)]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"a": ["x" * 32_767, "y" * 32_768, "z" * 40_000]},
            "cannot hold 2 of the texts of `a`: longer than 32,767 characters",
        ),
        ({"a": ["𝄞" * 16_384]}, "1 of the texts of `a`: longer"),
        (
            {"a": ["<r><t>x</t></r>", "\ufffe", "_x005F_x0041_", "_x0041_"]},
            "cannot hold 3 of the texts of `a`: with characters",
        ),
        ({"a": [2**53, -(2**60), 1]}, "has 2 numbers too large for Excel"),
        ({"a": [float("inf"), float("-inf"), 1e308]}, "3 numbers too large"),
        ({"a": [[SECRET]]}, "`a` has no `separator`"),
        ({"a": [b"x"]}, "type of `a`, Binary"),
        ({"a": [None, 1, None], "b": ["", "x", None]}, "2 records without any value"),
        ({}, "the table has no columns to write"),
        ({"a": pl.zeros(1_048_576, dtype=pl.Int8, eager=True)}, "has 1,048,576 and 1"),
        ({"x" * 32_768: [1]}, "1 of the names of the columns: longer than"),
    ],
)
def test_what_excel_cannot_hold_is_refused(tmp_path, columns, message):
    with pytest.raises(WriteError) as caught:
        io.write(pl.DataFrame(columns), tmp_path / "data.xlsx")
    assert message in caught.value.message
    assert SECRET not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_too_many_columns(tmp_path):
    # Not through the door: a schema of so many columns takes minutes to check.
    frame = pl.DataFrame({f"c{i}": [1] for i in range(16_385)})
    with pytest.raises(WriteError, match="has 1 and 16,385"):
        excel.write(SimpleNamespace(frame=frame), tmp_path / "data.xlsx", ".xlsx", FileDialect())


def test_the_longest_text(tmp_path):
    long = ["𝄞" * 16_383 + "x", "y" * 32_767]
    io.write(pl.DataFrame({"a": long}), tmp_path / "data.xlsx")
    assert io.read(tmp_path / "data.xlsx")["a"].to_list() == long


def test_names_that_differ_in_case(tmp_path):
    frame = pl.DataFrame({"Age": [1], "age": [2], "*": [3]})
    io.write(frame, tmp_path / "data.xlsx")
    assert_frame_equal(io.read(tmp_path / "data.xlsx"), frame)
