"""Files in fixed format, with the description of µ-ARGUS beside them: what is read, written and refused."""

from __future__ import annotations

import datetime as dt
import gzip
import tempfile
from pathlib import Path

import hypothesis.strategies as st
import polars as pl
import pytest
from hypothesis import given

from effort import examples
from sfumato import io
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import NoteWarning, ParameterError, ReadError, WriteError

DESCRIPTION = """\
hh 1 3 "998" "999"
  <HOUSE_ID>
town 4  2 X
  <RECODABLE>
  <CODELIST> "town.cdl"
  <IDLEVEL>  1
weight 6 5
  <NUMERIC>
  <DECIMALS> 2
  <WEIGHT>
income 12 4 9999
  <NUMERIC>
status 17 1 9
  <RECODABLE>
  <IDLEVEL> 0
"""
RECORDS = "  1A 22.22  150 1\r\n  2BB 9.50 9999 9\r\n999X  1.00      2\r\n"


@pytest.fixture
def survey(tmp_path):
    (tmp_path / "survey.rda").write_text(DESCRIPTION)
    (tmp_path / "survey.asc").write_bytes(RECORDS.encode())
    (tmp_path / "town.cdl").write_text("A,Aberdeen\nBB,Bath\n")
    return tmp_path / "survey.asc"


def test_places_codes_roles_and_labels_are_those_of_the_description(survey):
    found = io.read_contents(survey)
    assert found.frame.to_dict(as_series=False) == {
        "hh": [1, 2, 999],
        "town": ["A", "BB", "X"],
        "weight": [22.22, 9.5, 1.0],
        "income": [150, 9999, None],
        "status": [1, 9, 2],
    }
    assert found.facts["hh"] == {"missing": (998, 999), "kind": Kind.NOMINAL, "role": Role.HOUSEHOLD}
    assert found.facts["town"] == {
        "missing": ("X",),
        "role": Role.KEY,
        "labels": (("A", "Aberdeen"), ("BB", "Bath")),
    }
    assert found.facts["weight"] == {"kind": Kind.CONTINUOUS, "role": Role.WEIGHT}
    assert found.facts["income"] == {"missing": (9999,), "kind": Kind.CONTINUOUS}
    assert found.facts["status"] == {"missing": (9,)}
    table = io.read_table(survey)
    assert table.schema["weight"].role is Role.WEIGHT
    assert table.missing("income").tolist() == [False, True, True]
    assert len(io.read(survey, rows=2)) == 2


def test_a_code_list_that_is_not_there_is_noted(survey):
    (survey.parent / "town.cdl").unlink()
    with pytest.warns(NoteWarning, match=r"`town.cdl` of `town` is not there"):
        assert "labels" not in io.read_contents(survey).facts["town"]


@pytest.mark.parametrize(
    ("description", "must"),
    [
        ("", "name each column once, got: none"),
        ("a 1 1\na 2 1\n", "name each column once, got: `a`, `a`"),
        ("a 0 1\n", "line 1 of `survey.rda` must have a name, a first place"),
        ("a 1\n", "line 1 of `survey.rda`"),
        ('<SEPARATOR> ","\na 4\n', "free format"),
        ("a 1 1\nb 17 2\n", "is cut short: 3 records with fewer than the 18 characters"),
    ],
)
def test_what_a_description_must_say(survey, description, must):
    survey.with_suffix(".rda").write_text(description)
    with pytest.raises(ReadError, match=must):
        io.read(survey)


def test_a_file_without_its_description_is_not_read(survey):
    survey.with_suffix(".rda").write_bytes(gzip.compress(b"RDX3"))
    with pytest.raises(ReadError, match="workspace of R"):
        io.read(survey)
    survey.with_suffix(".rda").unlink()
    with pytest.raises(ReadError, match=r"there is no `survey.rda`"):
        io.read(survey)
    with pytest.raises(ParameterError, match="`delimiter` does not apply"):
        io.read(survey, delimiter=";")


def test_what_is_written_by_hand(tmp_path):
    frame = pl.DataFrame(
        {
            "sex": [1, None, 2],
            "job": ["cook", None, "é"],
            "pay": [10.25, None, 7.0],
            "born": [dt.date(2020, 1, 2), None, dt.date(2021, 1, 1)],
        }
    )
    schema = Schema(
        (
            Column("sex", Kind.NOMINAL, Role.KEY, missing=(9,)),
            Column("job", Kind.NOMINAL, Role.OTHER),
            Column("pay", Kind.CONTINUOUS, Role.WEIGHT),
            Column("born", Kind.DATE, Role.KEY),
        )
    )
    place = tmp_path / "release.asc"
    io.write(Table(frame, schema), place)
    assert place.read_text(encoding="utf-8").splitlines() == [
        " 1cook10.252020-01-02",
        "99X" + " " * 18,
        " 2é     7.02021-01-01",
    ]
    assert place.with_suffix(".rda").read_text() == (
        'sex 1 2 "99" "9"\n    <RECODABLE>\n    <IDLEVEL> 1\njob 3 4 "X"\n    <RECODABLE>\n    <IDLEVEL> 0\n'
        "pay 7 5\n    <NUMERIC>\n    <DECIMALS> 2\n    <WEIGHT>\nborn 12 10\n"
    )


@pytest.mark.parametrize("bad", [[" a"], ["a "], [""], ["a\nb"], [b"x"]], ids=str)
def test_what_would_not_be_read_again_is_not_written(tmp_path, bad):
    with pytest.raises(WriteError, match="cannot be written in fixed format"):
        io.write(pl.DataFrame({"a": bad}), tmp_path / "a.asc")
    with pytest.raises(WriteError, match="`two words`"):
        io.write(pl.DataFrame({"two words": [1]}), tmp_path / "a.asc")
    assert list(tmp_path.iterdir()) == []


def test_the_description_of_an_original_is_not_overwritten(survey):
    with pytest.raises(WriteError, match="survey"):
        io.write(pl.DataFrame({"a": [1]}), survey.with_name("survey.asc"), originals=[survey], overwrite=True)
    io.write(pl.DataFrame({"a": [1]}), survey.with_name("other.asc"), originals=[survey])
    assert survey.with_suffix(".rda").read_text() == DESCRIPTION


words = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc", "Z"]), min_size=1, max_size=6)
COLUMNS = {
    "i": (Kind.CONTINUOUS, pl.Int64, st.integers(-(10**9), 10**9)),
    "x": (Kind.CONTINUOUS, pl.Float64, st.floats(-1e12, 1e12).map(lambda value: round(value, 4))),
    "w": (Kind.NOMINAL, pl.String, words.map(lambda word: f"w{word}")),
    "n": (Kind.NOMINAL, pl.Int64, st.integers(1, 120)),
    "d": (Kind.DATE, pl.Date, st.dates()),
}


@given(st.data())
@examples(60)
def test_what_is_written_is_read_again(data):
    n = data.draw(st.integers(1, 8))
    frame = pl.DataFrame(
        {
            name: pl.Series(data.draw(st.lists(st.none() | cell, min_size=n, max_size=n)), dtype=dtype)
            for name, (_, dtype, cell) in COLUMNS.items()
        }
    )
    schema = Schema(tuple(Column(name, kind, Role.KEY) for name, (kind, _, _) in COLUMNS.items()))
    table = Table(frame, schema)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "a.asc"
        io.write(table, place)
        again = io.read_table(place, schema)
    for name in frame.columns:
        assert again.missing(name).tolist() == table.missing(name).tolist()
        there = pl.Series(~table.missing(name))
        assert again.frame[name].filter(there).to_list() == frame[name].filter(there).to_list()
