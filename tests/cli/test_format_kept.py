"""The format that came in goes out, with what it says of its columns, as far as records still show it."""

from pathlib import Path

import numpy as np
import openpyxl
import pandas as pd
import polars as pl
import pytest

from sfumato.io.formats import FORMATS, written_suffix
from sfumato.releasing.prepare import prepare_release
from sfumato.releasing.request import Request

pyreadstat = pytest.importorskip("pyreadstat")
N = 60
LABELS = {
    "sex": {1: "male", 2: "female"},
    "region": {1: "North", 2: "South", 3: "East", 4: "Qxnowhere"},
    "health": {1: "good", 2: "fair", 3: "bad", 8: "Qxunasked", 9: "no answer"},
}
TITLES = {"sex": "Sex of the person", "region": "Where they live", "age": "Age", "health": "How they feel"}
PLAN = """requirements = ["k >= 3"]
[data]
path = "people{suffix}"
[columns.sex]
kind = "nominal"
role = "other"
label = "Sex of the person"
labels = [[1, "male"], [2, "female"]]
[columns.region]
kind = "nominal"
role = "key"
label = "Where they live"
labels = [[1, "North"], [2, "South"], [3, "East"], [4, "Qxnowhere"]]
[columns.age]
kind = "continuous"
role = "key"
[columns.health]
kind = "ordinal"
role = "sensitive"
label = "How they feel"
missing = [8, 9]
labels = [[1, "good"], [2, "fair"], [3, "bad"], [8, "Qxunasked"], [9, "no answer"]]
[[steps]]
method = "mondrian"
columns = ["region", "age"]
"""


@pytest.fixture
def people(tmp_path):
    """Write a file of sixty people; nobody lives nowhere, and everybody was asked."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "sex": rng.integers(1, 3, N).astype(float),
            "region": rng.integers(1, 4, N).astype(float),
            "age": rng.integers(18, 80, N).astype(float),
            "health": rng.choice([1.0, 2.0, 3.0, 9.0], N),
        }
    )

    def write(suffix):
        place = tmp_path / f"people{suffix}"
        titles = [TITLES[name] for name in frame.columns]
        if suffix == ".sav":
            levels = {"sex": "nominal", "region": "nominal", "age": "scale", "health": "ordinal"}
            how = {"variable_measure": levels, "missing_ranges": {"health": [8, 9]}}
            pyreadstat.write_sav(frame, place, column_labels=titles, variable_value_labels=LABELS, **how)
        elif suffix == ".dta":
            labels = {name: meant for name, meant in LABELS.items() if name != "health"}
            pyreadstat.write_dta(frame, place, column_labels=titles, variable_value_labels=labels)
        else:
            frame.to_excel(place, sheet_name="People", index=False)
        (tmp_path / "plan.toml").write_text(PLAN.format(suffix=suffix))
        return place

    return write


def test_spss_keeps_labels_missing_codes_and_levels(run, people, tmp_path):
    people(".sav")
    code, _, err = run("release", "plan.toml", "--out", "out")
    assert code == 0, err
    frame, told = pyreadstat.read_sav(tmp_path / "out" / "release.sav", user_missing=True)
    assert told.column_names_to_labels == TITLES
    assert told.variable_measure["sex"] == "nominal"
    assert told.variable_measure["health"] == "ordinal"
    assert told.missing_ranges == {"health": [{"lo": 9.0, "hi": 9.0}]}
    assert (frame["health"] == 9).any()
    assert told.variable_value_labels["health"] == {1: "good", 2: "fair", 3: "bad", 9: "no answer"}
    meant = told.variable_value_labels["region"]
    assert set(meant) == set(frame["region"].unique()) - {"*"}
    for text, label in meant.items():
        members = text.strip("{}").split("|")
        assert label == " or ".join(LABELS["region"][int(each)] for each in members)
    assert b"Qx" not in (tmp_path / "out" / "release.sav").read_bytes()


def test_stata_keeps_what_it_can_and_a_note_says_the_rest(run, people, tmp_path):
    people(".dta")
    code, out, err = run("release", "plan.toml", "--out", "out")
    assert code == 0, err
    _, told = pyreadstat.read_dta(tmp_path / "out" / "release.dta", user_missing=True)
    assert told.column_names_to_labels == TITLES
    assert told.variable_value_labels["sex"] == LABELS["sex"]
    assert "Note: `release.dta`: labels of values are not kept: `region`." in " ".join(out.split())
    assert b"Qx" not in (tmp_path / "out" / "release.dta").read_bytes()


def test_a_sheet_keeps_its_name(run, people, tmp_path):
    people(".xlsx")
    assert run("release", "plan.toml", "--out", "out")[0] == 0
    assert openpyxl.load_workbook(tmp_path / "out" / "release.xlsx").sheetnames == ["People"]


def test_what_a_text_does_not_tell_is_said(run, people, tmp_path):
    people(".sav")
    (tmp_path / "plan.toml").write_text(PLAN.format(suffix=".sav") + '[output]\npath = "out.csv"\n')
    code, _, err = run("run", "plan.toml")
    assert code == 0, err
    assert "note: `out.csv`: labels are not kept: `sex`, `region`, `age`, `health`" in err.replace("\n", " ")
    assert "note: `out.csv`: missing codes are not marked as missing: `health`" in err


def test_ranges_have_the_labels_of_their_ends(run, people, tmp_path):
    people(".sav")
    arguments = ("mondrian", "people.sav", "-c", "health,age", "-r", "health=key", "--out", "out.sav")
    code, _, err = run("protect", *arguments, "-r", "sex=other", "-r", "region=other", "--k", 3, "--unjudged")
    assert code == 0, err
    _, told = pyreadstat.read_sav(tmp_path / "out.sav", user_missing=True)
    ranges = {text: label for text, label in told.variable_value_labels["health"].items() if text[0] == "["}
    assert ranges
    assert ranges.items() <= {"[1;2]": "good to fair", "[2;3]": "fair to bad", "[1;3]": "good to bad"}.items()


@pytest.mark.parametrize("suffix", [".sav", ".dta", ".zsav", ".parquet", ".pq", ".arrow", ".tab", ".xpt"])
def test_every_door_writes_as_was_read(run, tmp_path, suffix):
    from sfumato.io import write

    frame = pl.DataFrame(
        {"SEX": ["f", "m"] * 20, "AGE": list(range(20, 60)), "ILL": ["a", "b", "c", "d"] * 10}
    )
    write(frame, tmp_path / f"people{suffix}")
    roles = {"SEX": "key", "AGE": "key", "ILL": "sensitive"}
    request = Request(source=str(tmp_path / f"people{suffix}"), roles=roles)
    assert prepare_release(request).plan.output.path == f"release{suffix}"
    assert run("inspect", f"people{suffix}", "--write-plan", "plan.toml")[0] == 0
    assert f'path = "release{suffix}"' in Path("plan.toml").read_text()


def test_what_can_only_be_read_is_written_for_the_same_package():
    assert written_suffix("a.por") == ".sav"
    assert written_suffix("a.sas7bdat") == ".xpt"
    assert {written_suffix(f"a{suffix}") for suffix in FORMATS} <= set(FORMATS)
    assert written_suffix("builtin:rand?per=person") == written_suffix("sqlite:a.db?table=t") == ".csv"
    assert written_suffix("") == ".csv"
