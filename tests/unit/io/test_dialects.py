"""How a text is written is found out, and a release of it is written likewise."""

import io
import sys

import polars as pl
import pytest

from sfumato.core.run import Run
from sfumato.data.generalised.text_forms import to_text
from sfumato.data.guess.columns import guess_schema
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import Table
from sfumato.errors import NoteWarning, ReadError
from sfumato.io import read_contents, read_table, stdin, write
from sfumato.io.formats import FileDialect
from sfumato.methods.mondrian import Mondrian


def contents(folder, text, encoding="utf-8", **how):
    path = folder / "data.csv"
    path.write_bytes(text.encode(encoding))
    return read_contents(path, **how)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a;b\nx;1,5\ny;2,25\n", {"delimiter": ";", "decimal": ","}),
        ('a,b\nx,"1,5"\ny,"2,25"\n', {"decimal": ","}),
        ("a\tb\nx\t1.5\ny\t2.25\n", {"delimiter": "\t"}),
        ("a,b\nx,1.5\ny,2.25\n", {}),
        ("3;1,5\n4;2,25\n", {"delimiter": ";", "decimal": ",", "header": "no"}),
    ],
)
def test_a_plan_says_what_is_not_usual(tmp_path, text, found):
    read = contents(tmp_path, text)
    assert read.reading.to_dict() == found
    assert read.frame.to_series(1).to_list() == [1.5, 2.25]
    again = {**found, "header": found.get("header") != "no"}
    assert contents(tmp_path, text, **again).frame.equals(read.frame)


def test_letters_of_the_west(tmp_path):
    read = contents(tmp_path, "name;town\nÖster;Köln\n", "cp1252")
    assert read.reading.to_dict() == {"delimiter": ";", "encoding": "cp1252"}
    assert "encoding cp1252" in read.reading.notes()[0]


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["1.100,50", "2,5", ""], [1100.5, 2.5, None]),
        (["1 100,50", "2,5", "-3"], [1100.5, 2.5, -3.0]),
        (["1'100.50", "2.5", "3"], [1100.5, 2.5, 3.0]),
        (["1,100.50", "2.5", "3"], [1100.5, 2.5, 3.0]),
    ],
)
def test_thousands_where_decimals_tell_the_signs_apart(tmp_path, texts, numbers):
    read = contents(tmp_path, "a;b\n" + "".join(f"{text};x\n" for text in texts))
    assert read.frame["a"].to_list() == numbers


def test_thousands_in_quotes_between_commas(tmp_path):
    read = contents(tmp_path, 'a,b\n"1,100.50",x\n2.5,y\n')
    assert read.frame.rows() == [(1100.5, "x"), (2.5, "y")]


def test_points_part_thousands_beside_decimal_commas(tmp_path):
    read = contents(tmp_path, "pay;share\n1.100;0,5\n2.350;1,25\n")
    assert read.frame.rows() == [(1100, 0.5), (2350, 1.25)]


def test_a_comma_that_may_be_either_is_asked_about(tmp_path):
    read = contents(tmp_path, "pay\tx\n1,100\ta\n2,350\tb\n")
    assert read.frame["pay"].to_list() == ["1,100", "2,350"]
    schema = guess_schema(read.frame)
    assert schema["pay"].kind is Kind.NOMINAL


@pytest.mark.parametrize(
    ("first", "header"),
    [("34,m,1200", False), ("age,sex,pay", True), ("id,2019,2020", True), ("31.12.1980,m,3", False)],
)
def test_a_first_line_of_values_is_no_header(tmp_path, first, header):
    read = contents(tmp_path, f"{first}\n35,f,1300\n36,m,1400\n")
    assert read.frame.height == 2 + (not header)
    assert (read.frame.columns[0] == "column_1") is not header
    assert contents(tmp_path, f"{first}\n35,f,1300\n", header=True).frame.height == 1


def released(folder, table, like):
    path = folder / "release.csv"
    write(table, path, like=like, overwrite=True)
    return path.read_bytes()


MIXED = Table(
    pl.DataFrame({"a": ["x", "Ö"], "b": [1.5, -9.0], "d": ["2024-12-31", None]}).with_columns(
        pl.col("d").str.to_date()
    ),
    Schema(
        (
            Column("a", Kind.NOMINAL),
            Column("b", Kind.CONTINUOUS, missing=(-9,)),
            Column("d", Kind.DATE, form="dd.mm.yyyy"),
        )
    ),
)


def test_a_release_is_written_as_its_original(tmp_path):
    like = FileDialect(delimiter=";", decimal=",", encoding="cp1252")
    assert released(tmp_path, MIXED, like) == "a;b;d\nx;1,5;31.12.2024\nÖ;-9;\n".encode("cp1252")
    usual = released(tmp_path, MIXED, None)
    assert usual == "a,b,d\nx,1.5,31.12.2024\nÖ,-9,\n".encode()
    quoted = released(tmp_path, MIXED, FileDialect(delimiter=";", quotes="all"))
    assert quoted.startswith(b'"a";"b";"d"\n"x";"1.5"')


def test_letters_that_an_encoding_lacks_are_written_in_utf_8(tmp_path):
    table = MIXED.with_values("a", pl.Series(["Yılmaz", "x"]))
    with pytest.warns(NoteWarning, match="written in UTF-8"):
        written = released(tmp_path, table, FileDialect(encoding="cp1252"))
    assert "Yılmaz" in written.decode()


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".xlsx", ".sav"])
def test_ranges_and_sets_come_back_by_the_schema(tmp_path, suffix):
    original = "born;pay;town\n31.12.1980;1,5;A\n01.02.1990;2,25;B\n15.03.1985;9,5;C\n02.02.1991;4,5;A\n"
    path = tmp_path / "data.csv"
    path.write_text(original)
    found = read_contents(path)
    schema = guess_schema(found.frame)
    schema = schema.replace(Column("town", Kind.NOMINAL), Column("pay", Kind.CONTINUOUS))
    table = read_table(path, schema)
    made = Mondrian(k=2).apply(table.aimed_at(table.names), Run(seed=1)).table
    out = tmp_path / f"release{suffix}"
    write(made, out, like=found.reading)
    back = read_table(out, schema)
    for name in ("born", "pay"):
        assert back.frame[name].to_list() == made.frame[name].to_list()
    assert to_text(back.frame["town"], back.nodes["town"]).equals(
        to_text(made.frame["town"], made.nodes["town"])
    )


class Piped(io.TextIOWrapper):
    def __init__(self, content):
        super().__init__(io.BytesIO(content))


def test_what_is_piped_in_is_read_more_than_once(monkeypatch):
    stdin.stdin_file.cache_clear()
    monkeypatch.setattr(sys, "stdin", Piped(b"a;b\n1;2,5\n"))
    assert read_contents("-").frame.rows() == [(1, 2.5)]
    assert read_contents("-").reading.delimiter == ";"
    stdin.stdin_file().unlink()
    stdin.stdin_file.cache_clear()


def test_a_keyboard_is_no_pipe(monkeypatch):
    stdin.stdin_file.cache_clear()
    monkeypatch.setattr(sys, "stdin", type("Keyboard", (), {"isatty": lambda self: True})())
    with pytest.raises(ReadError, match="from a pipe"):
        read_contents("-")
