"""`sfumato hierarchy` as a user types it."""

import json
from functools import partial

import numpy as np
import polars as pl
import pytest

from sfumato.io.hierarchies import read_hierarchy
from toys import SECRET_WORD

PLAN = """
[data]
path = "people.csv"

[columns.age]
kind = "continuous"
role = "key"
missing = [-9]
[columns.town]
kind = "ordinal"
role = "key"
order = ["Ayl", "Bree", "Cork", "Dale", "Elm", "Fife", "unknown"]
missing = ["unknown"]
"""


@pytest.fixture
def hierarchy(run, tmp_path):
    """Run the verb in a folder with a small file of people; give exit code, stdout, stderr."""
    rng = np.random.default_rng(1)
    towns = rng.choice(["Ayl", "Bree", "Cork", "Dale", "Elm"], 200, p=[0.5, 0.3, 0.15, 0.03, 0.02])
    pl.DataFrame({"age": [-9, *rng.integers(0, 90, 199)], "town": towns}).write_csv("people.csv")
    (tmp_path / "plan.toml").write_text(PLAN, encoding="utf-8")
    return partial(run, "hierarchy")


def test_levels_are_shown(hierarchy):
    code, out, err = hierarchy("people.csv", "town")
    assert (code, err) == (0, "")
    lines = [line.split() for line in out.splitlines()]
    assert lines[0] == ["level", "labels", "records", "in", "classes", "below", "5", "such", "as"]
    assert [line[:2] for line in lines[1:]] == [["0", "5"], ["1", "3"], ["2", "1"]]
    assert lines[-1][2] == "0.0%"
    assert lines[1][3:] == ["Ayl,", "Bree,", "Cork,", "…"]  # those that most people have
    assert lines[-1][3:] == ["*"]


def test_labels_that_few_have_are_not_shown(hierarchy, tmp_path):
    towns = ["Ayl"] * 30 + ["Bree"] * 30 + ["Qxalone"] * 2
    pl.DataFrame({"town": towns}).write_csv(tmp_path / "few.csv")
    code, out, _ = hierarchy("few.csv", "town")
    assert code == 0
    assert "Ayl, Bree, …" in out
    assert "Qxalone" not in out


def test_as_json(hierarchy, tmp_path):
    code, out, _ = hierarchy("people.csv", "town", "--json", "-k", "10")
    told = json.loads(out)
    assert code == 0
    assert (told["column"], told["leaves"], told["k"]) == ("town", 5, 10)
    assert told["unseen"] == {"values": 0, "records": 0}
    counts = pl.read_csv(tmp_path / "people.csv")["town"].value_counts()["count"]
    small = counts.filter(counts < 10).sum() / 200
    assert [(each["labels"], each["small"]) for each in told["levels"]] == [(5, small), (3, 0.0), (1, 0.0)]


def test_a_proposal_is_written_and_checked(hierarchy, tmp_path):
    code, out, err = hierarchy("people.csv", "town", "--out", "town.csv")
    assert code == 0
    assert "written: town.csv" in err
    assert "level" in out
    grown = read_hierarchy(tmp_path / "town.csv")
    assert grown.labels(1).to_list() == ["Ayl", "Bree", "{Cork|Dale|Elm}"]
    code, out, _ = hierarchy("people.csv", "town", "--check", "town.csv")
    assert code == 0
    assert out.splitlines()[2].split()[:2] == ["1", "3"]
    code, _, err = hierarchy("people.csv", "town", "--out", "town.csv")
    assert code == 3
    assert "exists already" in err
    assert hierarchy("people.csv", "town", "--out", "town.csv", "--overwrite", "-q")[::2] == (0, "")


def test_the_original_is_not_overwritten(hierarchy, tmp_path):
    before = (tmp_path / "people.csv").read_bytes()
    assert hierarchy("people.csv", "town", "--out", "people.csv", "--overwrite")[0] == 3
    assert (tmp_path / "people.csv").read_bytes() == before


def test_values_outside_a_hierarchy_are_counted(hierarchy, tmp_path):
    (tmp_path / "short.csv").write_text("Ayl;Big;*\nBree;Big;*\nCork;Small;*\n", encoding="utf-8")
    towns = pl.read_csv(tmp_path / "people.csv")["town"]
    missed = int(towns.is_in(["Dale", "Elm"]).sum())
    code, out, err = hierarchy("people.csv", "town", "--check", "short.csv")
    assert code == 3
    assert f"2 values of `town` ({missed} records) not among its 3 leaves" in err
    assert "Dale" not in out + err
    code, out, err = hierarchy("people.csv", "town", "--check", "short.csv", "--json")
    assert code == 3
    assert json.loads(out)["unseen"] == {"values": 2, "records": missed}


def test_a_faulty_file_is_refused(hierarchy, tmp_path):
    (tmp_path / "faulty.csv").write_text(f"Ayl;{SECRET_WORD};*\nAyl;other;*\n", encoding="utf-8")
    code, _, err = hierarchy("people.csv", "town", "--check", "faulty.csv")
    assert code == 2
    assert "1 value on more than one row" in err
    assert SECRET_WORD not in err


def test_a_plan_says_what_the_column_is(hierarchy):
    """Its order joins neighbours, its codes are missing."""
    code, _, _ = hierarchy("people.csv", "town", "--plan", "plan.toml", "--out", "town.csv")
    assert code == 0
    assert read_hierarchy("town.csv").labels(1).to_list() == ["{Ayl|Bree}", "{Cork|Dale}", "{Elm|Fife}"]
    _, out, _ = hierarchy("people.csv", "age", "--plan", "plan.toml", "--json")
    ages = pl.read_csv("people.csv")["age"]
    assert json.loads(out)["leaves"] == ages.filter(ages >= 0).n_unique()


def test_built_in_data(hierarchy, tmp_path):
    code, out, _ = hierarchy("builtin:fair", "educ", "--json")
    assert code == 0
    assert json.loads(out)["levels"][-1]["labels"] == 1


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("people.csv", "twon"), 2, "did you mean `town`?"),
        (("nowhere.csv", "town"), 3, "nowhere.csv"),
        (("people.csv", "town", "--check", "a.csv", "--out", "b.csv"), 2, "only one of --check and --out"),
        (("people.csv", "town", "--check", "nowhere.csv"), 3, "nowhere.csv"),
        (("people.csv", "town", "-k", "1"), 2, "-k"),
        (("empty.csv", "x"), 3, "are missing"),
        (("coarse.csv", "x"), 3, "generalised"),
    ],
)
def test_what_cannot_be_done_says_why(hierarchy, tmp_path, arguments, code, says):
    pl.DataFrame({"x": [None, None], "y": [1, 2]}).write_csv(tmp_path / "empty.csv")
    pl.DataFrame({"x": ["{a|b}", "*", "c"], "y": [1, 2, 3]}).write_csv(tmp_path / "coarse.csv")
    ended, _, err = hierarchy(*arguments)
    assert ended == code
    assert says in err
