"""No text of a release is run as a formula by a spreadsheet."""

from __future__ import annotations

import datetime as dt

import openpyxl
import polars as pl
import pytest

from sfumato import io
from sfumato.data.generalised.intervals import intervals
from sfumato.data.generalised.nodes import Nodes
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import ParameterError, WriteError

RISKY = [
    "=1+1", "+1+1", "-1+1", "@SUM(A1)", "\tx", "\rx", "\nx", "=", "-", "+", "@", "--5", "-5 euro", "+49 30 1234",
    '=HYPERLINK("http://evil")', "-2+3+cmd|' /C calc'!A0", "＝1+1", "－x", "＋x", "＠x", "-5\n",
]  # fmt: skip
HARMLESS = ["", "x", "5", "-5", "+5", "-5.25", "-5,25", "-1e-9", "+4930123456", "'=1", " =1", "a=b", "[-5;3]", "*"]  # fmt: skip


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".xlsx"])
def test_risky_texts_get_an_apostrophe(tmp_path, suffix):
    path = tmp_path / f"data{suffix}"
    io.write(pl.DataFrame({"t": [*RISKY, *HARMLESS[1:], None], "n": -1}), path, guard=True)
    read = io.read(path)["t"].to_list()
    assert read == ["'" + text for text in RISKY] + HARMLESS[1:] + [None]


def test_without_the_guard_text_is_as_it_was(tmp_path):
    io.write(pl.DataFrame({"t": RISKY, "n": -1}), tmp_path / "data.csv")
    assert io.read(tmp_path / "data.csv")["t"].to_list() == RISKY


def test_numbers_and_dates_are_untouched(tmp_path):
    frame = pl.DataFrame(
        {"n": [-1, None], "x": [-0.5, 1.0], "d": [dt.date(2020, 1, 1), None], "b": [True, None]}
    )
    io.write(frame, tmp_path / "data.csv", guard=True)
    assert (tmp_path / "data.csv").read_text() == "n,x,d,b\n-1,-0.5,2020-01-01,true\n,1.0,,\n"


def test_names_of_columns_are_guarded(tmp_path):
    io.write(pl.DataFrame({"=a": [1], "-5": [2], "b": [3]}), tmp_path / "data.csv", guard=True)
    assert (tmp_path / "data.csv").read_text().splitlines()[0] == "'=a,-5,b"
    with pytest.raises(WriteError, match="would have the same name when guarded"):
        io.write(pl.DataFrame({"=a": [1], "'=a": [2]}), tmp_path / "other.csv", guard=True)


def test_order_and_categories_and_generalised_values(tmp_path):
    nodes = Nodes.of({"-a": ["-a"], "both": ["-a", "b"]}, leaves=["-a", "b"])
    frame = pl.DataFrame(
        {
            "kind": pl.Series(["=x", "y"], dtype=pl.Categorical),
            "grade": pl.Series(["+hi", "lo"], dtype=pl.Enum(["lo", "+hi"])),
            "place": pl.Series(["-a", "both"], dtype=nodes.dtype),
            "age": intervals([-5, -3], [-5, 2]),
        }
    )
    # The schema lists the columns in another order than the file has them.
    columns = (Column("age", Kind.CONTINUOUS, Role.KEY), Column("place", Kind.NOMINAL, Role.KEY))
    schema = Schema(
        (*columns, Column("grade", Kind.ORDINAL), Column("kind", Kind.NOMINAL)), related=(("age", "kind"),)
    )
    io.write(Table(frame, schema, nodes={"place": nodes}), tmp_path / "data.csv", guard=True)
    assert (tmp_path / "data.csv").read_text() == (
        "kind,grade,place,age\n'=x,'+hi,'-a,-5\ny,lo,{-a|b},[-3;2]\n"
    )


def test_excel_cells_are_text_with_and_without_the_guard(tmp_path):
    for guard in (False, True):
        path = tmp_path / f"{guard}.xlsx"
        io.write(pl.DataFrame({"=t": [*RISKY, "{=1+1}", "http://x", "mailto:x"]}), path, guard=guard)
        sheet = openpyxl.load_workbook(path).active
        assert {cell.data_type for cell in sheet["A"]} == {"s"}
        assert all(cell.hyperlink is None for cell in sheet["A"])


@pytest.mark.parametrize("target", ["data.parquet", "data.arrow", "sqlite:data.db?table=x"])
def test_where_no_spreadsheet_looks_it_is_refused(tmp_path, monkeypatch, target):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ParameterError, match="`guard` applies to delimited text and Excel"):
        io.write(pl.DataFrame({"t": ["=1"]}), target, guard=True)
    assert list(tmp_path.iterdir()) == []
