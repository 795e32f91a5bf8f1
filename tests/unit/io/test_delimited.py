"""Reading delimited text: how it is written, what is a number, and which line is at fault."""

from __future__ import annotations

import polars as pl
import pytest

from sfumato import io
from sfumato.data.schema import Column, Kind, Schema
from sfumato.errors import ParameterError, ReadError, count_noun

SECRET = "Xanthippe"


def written(folder, content, name="data.csv"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def read(folder, content, name="data.csv", **told):
    return io.read(written(folder, content, name), **told)


def refused(folder, content, name="data.csv", **told):
    with pytest.raises(ReadError) as caught:
        read(folder, content, name, **told)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert SECRET not in str(caught.value)
    return caught.value.message


# How it is written ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_finds_the_delimiter(tmp_path, delimiter):
    lines = [["name", "age", "note"], ["Ann", "31", '"a, b; c\td | e"'], ["Bob", "45", "x"]]
    frame = read(tmp_path, "\n".join(delimiter.join(line) for line in lines) + "\n")
    assert frame.to_dict(as_series=False) == {
        "name": ["Ann", "Bob"],
        "age": [31, 45],
        "note": ["a, b; c\td | e", "x"],
    }


def test_a_told_delimiter_is_taken(tmp_path):
    assert read(tmp_path, "a:b\n1:2\n", delimiter=":").row(0) == (1, 2)
    for wrong in ("", "::", '"', "§"):
        with pytest.raises(ParameterError, match="`delimiter` must be one ASCII character"):
            read(tmp_path, "a:b\n1:2\n", delimiter=wrong or "ab")


def test_a_tsv_file_is_cut_by_tabs(tmp_path):
    assert read(tmp_path, "a,b\tc\n1,2\t3\n", "data.tsv").columns == ["a,b", "c"]


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32", "cp1252", "latin-1"]
)
def test_reads_encodings(tmp_path, encoding):
    text = "Straße;Größe\nMüllerstraße;1\nÅs;2\n"
    told = {"encoding": encoding} if encoding == "utf-16-le" else {}
    frame = read(tmp_path, text.encode(encoding), **told)
    assert frame.columns == ["Straße", "Größe"]
    assert frame["Straße"].to_list() == ["Müllerstraße", "Ås"]


def test_a_western_letter_after_much_ascii_is_read(tmp_path):
    content = b"name,n\n" + b"plain,1\n" * 200_000 + "Zoë,2\n".encode("cp1252")
    assert read(tmp_path, content)["name"][-1] == "Zoë"


def test_bytes_that_are_no_utf8_are_found_by_line(tmp_path):
    content = "name,n\nZoë,1\n".encode() + b"plain,1\n" * 200_000 + SECRET.encode() + b"\xff,2\n"
    assert refused(tmp_path, content) == "line 200003 of `data.csv` is not text in utf-8"
    assert refused(tmp_path, b"a,b\n1,2\n\xff,3\n", encoding="utf-8").startswith("line 3 ")
    assert refused(tmp_path, b"a,b\n1,2\n\xff,3\n", encoding="ascii").startswith("line 3 ")
    assert refused(tmp_path, b"a,b\n1,2\n\xff,30\n", encoding="utf-16").startswith("line 1 ")


def test_a_binary_file_is_refused(tmp_path):
    assert "is not a text file" in refused(tmp_path, b"PK\x03\x04\x00\x00 sheet")


def test_an_unknown_encoding_is_refused(tmp_path):
    with pytest.raises(ParameterError, match="there is no encoding"):
        read(tmp_path, "a\n1\n", encoding="ebcdic-9")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_reads_line_ends(tmp_path, end):
    assert read(tmp_path, end.join(["a,b", "1,x", "2,", ""])).rows() == [(1, "x"), (2, None)]


def test_quotes(tmp_path):
    frame = read(tmp_path, 'a,"b ""c"""\n"x, ""y""\r\nz",1\n')
    assert frame.columns == ["a", 'b "c"']
    assert frame.rows() == [('x, "y"\r\nz', 1)]
    assert read(tmp_path, "a,b\n'x,y','1'\n'z','2'\n").rows() == [("x,y", 1), ("z", 2)]
    assert read(tmp_path, "'a','b'\n'x','1'\n").to_dict(as_series=False) == {"a": ["x"], "b": [1]}
    assert read(tmp_path, "a,b\n'x','1'\n").rows() == [("'x'", "'1'")]  # they may belong to the values
    assert read(tmp_path, 'size,n\n5" pipe,1\n6" pipe,2\n').rows() == [('5" pipe', 1), ('6" pipe', 2)]


def test_decimal_commas_where_the_delimiter_is_none(tmp_path):
    frame = read(tmp_path, "a;b;c\n1,5;1;x\n-2;2;y\n0,25;3;z\n")
    assert frame["a"].to_list() == [1.5, -2.0, 0.25]
    assert frame["b"].dtype == pl.Int64
    assert read(tmp_path, "a;b\n1,5;1.5\n")["a"].to_list() == ["1,5"]  # the file's decimals are points
    assert read(tmp_path, "a\tb\n1,500\tx\n")["a"].to_list() == [
        "1,500"
    ]  # fifteen hundred, or one and a half
    assert read(tmp_path, "a\tb\n1,500\tx\n", decimal=",")["a"].to_list() == [1.5]
    assert read(tmp_path, "a;b\n1.5;2,5\n", decimal=",").rows() == [("1.5", 2.5)]
    assert read(tmp_path, 'a,b\n"1,5",2\n')["a"].to_list() == [1.5]  # a comma in quotes is no delimiter
    with pytest.raises(ParameterError, match="but it is the delimiter"):
        read(tmp_path, "a,b\n1,2\n", decimal=",")
    with pytest.raises(ParameterError, match="`decimal` must be"):
        read(tmp_path, "a,b\n1,2\n", decimal="'")


# What is a number -----------------------------------------------------------------------------------------


def test_codes_stay_text(tmp_path):
    frame = read(tmp_path, "zip,account,phone,x\n99999,1234567890123456789,+4930,0\n01234,5,31,0.5\n")
    assert frame.schema == {"zip": pl.String, "account": pl.String, "phone": pl.String, "x": pl.Float64}
    assert frame["zip"].to_list() == ["99999", "01234"]
    late = "zip,n\n" + "99999,1\n" * 5_000 + "01234,0\n"
    assert read(tmp_path, late).schema == {"zip": pl.String, "n": pl.Int64}
    assert read(tmp_path, "n\n999999999999999999\n-999999999999999999\n")["n"].dtype == pl.Int64
    assert read(tmp_path, "n\n12345678901234567890\n")["n"].dtype == pl.String


def test_the_type_depends_on_all_values(tmp_path):
    content = "a,b,c\n" + "1,1,true\n" * 5_000 + "1.5,x,no\n"
    assert read(tmp_path, content).dtypes == [pl.Float64, pl.String, pl.String]


def test_what_is_missing(tmp_path):
    frame = read(tmp_path, 'n,t,b\n1,x,true\n,,\n"","",""\n')
    assert frame["n"].to_list() == [1, None, None]
    assert frame["t"].to_list() == ["x", None, ""]
    assert frame["b"].to_list() == [True, None, None]


def test_numbers_with_blanks_around_them(tmp_path):
    assert read(tmp_path, "a,b\n1, 2\n 3,4.5 \n").rows() == [(1, 2.0), (3, 4.5)]


def test_truth_values(tmp_path):
    frame = read(tmp_path, "a,b,c,d\ntrue,True,TRUE,yes\nfalse,False,FALSE,no\n")
    assert frame.dtypes == [pl.Boolean, pl.Boolean, pl.Boolean, pl.String]
    assert frame["c"].to_list() == [True, False]


def test_numbers_of_all_sorts(tmp_path):
    frame = read(tmp_path, "a,b\n1e5,nan\n-2E-3,inf\n.5,-1\n")
    assert frame["a"].to_list() == [100000.0, -0.002, 0.5]
    assert str(frame["b"].to_list()) == "[nan, inf, -1.0]"


def test_a_schema_keeps_dates_and_ordered_words_as_written(tmp_path):
    schema = Schema(
        (
            Column("day", Kind.DATE),
            Column("size", Kind.ORDINAL, order=("1", "2", "10")),
            Column("rank", Kind.ORDINAL, order=(1, 2)),
        )
    )
    frame = read(tmp_path, "day,size,rank\n20261115,10,1\n", schema=schema)
    assert frame.row(0) == ("20261115", "10", 1)


# Which line is at fault -----------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("line", "got"),
    [
        (f"{SECRET},2", 2),
        (f"{SECRET},2,3,4", 4),
        (f"{SECRET},2,3,", 4),
        (SECRET, 1),
        (f'"{SECRET}, and",2', 2),
    ],
)
def test_a_ragged_line_is_named(tmp_path, line, got, end):
    before = ["a,b,c", '"x\ny",2,3', "1,2,3"]  # the quoted value takes two lines
    message = refused(tmp_path, end.join([*before, line, "4,5,6", ""]))
    assert message == f"line 5 of `data.csv` has {count_noun(got, 'field')}, its header 3"


@pytest.mark.parametrize("last", ["1,2", "1,2,3,4", "1,2,3,", "1,2,,", "1"])
def test_a_ragged_last_line_without_newline_is_named(tmp_path, last):
    assert refused(tmp_path, f"a,b,c\n1,2,3\n{last}").startswith("line 3 ")


def test_a_short_line_is_not_made_up_for_by_a_long_one(tmp_path):
    assert refused(tmp_path, "a,b,c\n1,2\n4,5,6\n1,2,3,").startswith("line 2 of `data.csv` has 2 fields")
    assert refused(tmp_path, "a,b,c\n1,2\n4,5,6\n1,2,,").startswith("line 2 of `data.csv` has 2 fields")
    assert read(tmp_path, "a,b,c\n4,5,6\n1,2,").rows() == [(4, 5, 6), (1, 2, None)]


def test_a_ragged_line_deep_in_a_file_is_named(tmp_path):
    lines = ["a,b,c", *['"x, y",1,2'] * 300_000]
    for wrong in ("z,1", "z,1,2,3"):
        lines[250_000] = wrong
        assert refused(tmp_path, "\n".join(lines) + "\n").startswith("line 250001 ")


def test_rows_names_of_r_are_explained(tmp_path):
    with pytest.raises(ReadError) as caught:
        read(tmp_path, "a,b\n1,2,3\n2,5,6\n")
    assert "row.names=FALSE" in caught.value.hint


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_blank_lines_are_no_records(tmp_path, end):
    content = end.join(["", "a,b", "1,", "", ",", "3,4", "", ""])
    assert read(tmp_path, content).rows() == [(1, None), (None, None), (3, 4)]
    content = end.join(["a,b", '"x, y",', "", ",", "3,4", "", ""])
    assert read(tmp_path, content).rows() == [("x, y", None), (None, None), ("3", 4)]


def test_in_a_single_column_a_blank_line_is_a_missing_value(tmp_path):
    assert read(tmp_path, "a\n1\n\n3\n")["a"].to_list() == [1, None, 3]


def test_quotes_that_do_not_pair_are_named(tmp_path):
    assert refused(tmp_path, f'a,b\n1,2\n"{SECRET},2\n3,4\n') == (
        "line 3 of `data.csv` opens a quote that is never closed"
    )
    for line in (f'"{SECRET}"x,2', f'{SECRET}"s,2'):
        assert refused(tmp_path, f'a,b\n"1",2\n{line}\n3,4\n') == (
            "line 3 of `data.csv` has a quote within a field"
        )


def test_codes_that_differ_in_their_last_zeros_stay_apart(tmp_path):
    assert read(tmp_path, "icd\n250.0\n250.00\n401.9\n")["icd"].to_list() == ["250.0", "250.00", "401.9"]
    assert read(tmp_path, "x\n2.50\n1.00\n3.25\n")["x"].to_list() == [2.5, 1.0, 3.25]
    assert read(tmp_path, "x\n2\n2.0\n1e1\n10.0\n")["x"].to_list() == [2.0, 2.0, 10.0, 10.0]


def test_a_header_is_required(tmp_path):
    assert refused(tmp_path, "") == "`data.csv` is empty"
    assert "is empty" in refused(tmp_path, "\ufeff\n \n")
    assert refused(tmp_path, f"a,{SECRET},b,{SECRET}\n1,2,3,4\n") == (
        "two columns of `data.csv` have the same name, at positions 2 and 4"
    )
    assert refused(tmp_path, "a,, ,b\n1,2,3,4\n") == (
        "`data.csv` has columns without a name, at positions 2, 3"
    )
    assert "begin with ^ and end with $, at position 2" in refused(tmp_path, "a,^b$\n1,2\n")


def test_a_header_alone_is_a_table_without_records(tmp_path):
    for content in ("a,b", "a,b\n", "a,b\r\n"):
        frame = read(tmp_path, content)
        assert (frame.columns, frame.height) == (["a", "b"], 0)
        assert len(io.read_table(tmp_path / "data.csv")) == 0


def test_the_first_rows(tmp_path):
    content = 'a,b\n"x\ny",1\n\n' + "z,2\n" * 1_000 + "short\n"
    assert read(tmp_path, content, rows=3).rows() == [("x\ny", 1), ("z", 2), ("z", 2)]
    assert read(tmp_path, content, rows=0).height == 0
    assert read(tmp_path, "a,b\n1,2\n", rows=10).height == 1
    with pytest.raises(ParameterError, match="`rows` must be"):
        read(tmp_path, content, rows=-1)
