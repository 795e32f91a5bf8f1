"""`inspect` and `convert` as a user types them."""

import json
import re
import stat
import tomllib
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from sfumato.data.schema import Kind, Role
from sfumato.recipes.plan import Plan
from sfumato.testing.secrecy import SENTINEL_NUMBER, SENTINEL_WORD, assert_silent

N = 240


@pytest.fixture
def people(tmp_path):
    """Stays of people in hospitals: names, numbers, related columns, codes for missing values."""
    rng = np.random.default_rng(3)
    town = rng.integers(0, 12, N)
    frame = pl.DataFrame(
        {
            "patient_id": rng.permutation(np.repeat(np.arange(1000, 1080), 3)),
            "e-mail": [f"p{i}@example.org" for i in range(N)],
            "town": [f"town {i}" for i in town],
            "county": [f"county {i // 3}" for i in town],
            "age": np.where(rng.random(N) < 0.1, -9, rng.integers(18, 90, N)),
            "age_group": rng.choice(["18-24", "25-64", "65+"], N),
            "admitted": [f"2026-{1 + i % 12:02}-{1 + i % 28:02}" for i in range(N)],
            "x": rng.choice(["u", "v"], N),
        }
    )
    frame.write_csv(tmp_path / "people.csv")
    return frame


# ------------------------------------------------------------------------------------------- inspect


def test_the_screen_explains_every_column(run, people):
    code, out, err = run("inspect", "people.csv")
    assert code == 0
    rows = {line.split()[0]: line for line in re.sub(r"\n +", " ", out).splitlines()[1:]}
    assert set(rows) == set(people.columns)
    assert "person" in rows["patient_id"]
    assert "its values are e-mail addresses (90% sure)" in rows["e-mail"]
    assert "strongly related to `county`" in rows["town"]
    assert "missing code -9" in rows["age"]
    assert "ranges of numbers, which have an order" in rows["age_group"]
    assert "?" in rows["x"]
    assert re.search(r"people.csv: 240 records, 8 columns \(csv, [\d.]+ kB\)", err)
    for sentence in (
        "`e-mail` is a direct identifier: leave it out",
        "`town` and `county` are strongly related: `town` determines `county`",
        "`age` has codes that may mean missing: check them",
        "80 persons with 3 records each by `patient_id`; 80 of 80 persons",
        "are unique on the 5 likely quasi-identifiers (keys)",
    ):
        assert sentence in err
    assert run("inspect", "people.csv", "--quiet")[2] == ""


def test_it_finds_quasi_identifiers(run, people):
    code, out, _ = run("inspect", "people.csv", "--combinations", "2")
    assert code == 0
    assert "distinction  separation" in out
    assert re.search(r"age, town +0\.\d{4}", out)
    found = json.loads(run("inspect", "people.csv", "--combinations", "2", "--json")[1])["quasi_identifiers"]
    pair = next(each for each in found["strongest"] if each["columns"] == ["age", "town"])
    assert pair["distinction"] == people.select("age", "town").n_unique() / N


def test_json_has_all_of_it(run, people):
    code, out, err = run("inspect", "people.csv", "--json")
    assert (code, err) == (0, "")
    said = json.loads(out)
    assert (said["source"], said["format"], said["records"], said["duplicates"]) == (
        "people.csv",
        "csv",
        N,
        0,
    )
    assert said["bytes"] == Path("people.csv").stat().st_size
    columns = {column["name"]: column for column in said["columns"]}
    assert columns["age"]["missing"] == (people["age"] == -9).sum()
    assert columns["age"]["distinct"] == people["age"].n_unique() - 1
    assert columns["age"]["known_missing_codes"] == ["-9"]
    assert columns["age_group"]["ordered_values"] == 3
    assert columns["town"]["related"] == ["county"]
    assert said["related"][0]["columns"] == ["town", "county"]
    assert said["related"][0]["confidence"] > 0.9
    keys = people.select(said["keys"])
    assert said["unique_on_keys"] == keys.is_unique().sum()
    assert said["unique_share"] == pytest.approx(keys.is_unique().mean())
    assert len(said["warnings"]) >= 5


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_no_cell_is_shown(run, tmp_path, suffix):
    n = 60
    frame = pl.DataFrame(
        {
            "a": [SENTINEL_WORD] * n,
            "b": [f"{SENTINEL_WORD}{i}" for i in range(n)],
            "c": [SENTINEL_NUMBER] * n,
            "d": pl.Series([f"{SENTINEL_WORD} {i % 3}" for i in range(n)], dtype=pl.Enum([f"{SENTINEL_WORD} {i}" for i in range(4)])),
            "e": [f"{918273645 + i}-{918273999}" for i in range(3)] * 20,
            "f": [f"{SENTINEL_WORD} writes to {i}@example.org" for i in range(n)],
        }
    )  # fmt: skip
    path = tmp_path / f"secret{suffix}"
    frame.write_csv(path) if suffix == ".csv" else frame.write_parquet(path)
    for more in ((), ("--json",)):
        code, out, err = run("inspect", path.name, *more)
        assert code == 0
        assert_silent(out + err, "inspect")


def test_a_built_in_data_set(run):
    code, out, err = run("inspect", "builtin:rand?per=person")
    assert code == 0
    assert "declared by the data set" in out
    assert "are strongly related: declared by the data set" in err
    said = json.loads(run("inspect", "builtin:fair", "--json")[1])
    assert (said["format"], said["bytes"], said["records"]) == ("builtin", None, 6366)
    assert said["columns"][0]["label"]


def test_reading_options(run, tmp_path):
    (tmp_path / "odd.csv").write_bytes("Straße|Zahl\nMühle|1,5\nSee|2,5\n".encode("cp1252"))
    said = json.loads(
        run("inspect", "odd.csv", "--json", "--delimiter", "|", "--decimal", ",", "--encoding", "cp1252")[1]
    )
    assert [column["name"] for column in said["columns"]] == ["Straße", "Zahl"]
    assert said["columns"][1]["kind"] == "continuous"
    code, _, err = run("inspect", "builtin:fair", "--delimiter", ";")
    assert code == 2
    assert "`--delimiter` is for files; `builtin:fair` is a built-in data set" in err
    code, _, err = run("inspect", "odd.csv", "--sheet", "first")
    assert code == 2
    assert "sheet" in err


@pytest.mark.parametrize("width", [80, 120])
def test_a_narrow_screen_stays_readable(run, tmp_path, monkeypatch, width):
    """Nothing is wider than the screen, and reasons have room."""
    names = [f"a_rather_long_title_of_the_variable_{i}" for i in range(4)]
    pl.DataFrame({name: ["u", "v"] * 20 for name in names}).write_csv(tmp_path / "wide.csv")
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    code, out, _ = run("inspect", "wide.csv")
    assert code == 0
    plain = re.sub(r"\x1b\[[\d;]*m", "", out)
    assert max(map(len, plain.splitlines())) <= width
    assert "role unknown: choose one" in plain


def test_an_empty_file_with_names_only(run, tmp_path):
    (tmp_path / "empty.csv").write_text("a,b\n")
    code, _, err = run("inspect", "empty.csv")
    assert code == 0
    assert "0 records, 2 columns" in err


# -------------------------------------------------------------------------------------- the starter plan


def test_the_starter_plan_has_everything_found(run, people, tmp_path):
    code, _, _ = run("inspect", "people.csv", "--write-plan", "plan.toml", "--quiet")
    assert code == 0
    text = (tmp_path / "plan.toml").read_text()
    plan = Plan.read(tmp_path / "plan.toml")
    schema = plan.schema
    assert schema.related == (("town", "county"),)
    assert schema["age"].missing == (-9,)
    assert schema["age_group"].order == ("18-24", "25-64", "65+")
    assert schema["admitted"].kind is Kind.DATE
    assert (schema["patient_id"].role, schema["patient_id"].pseudonym) == (Role.PERSON, "person")
    assert plan.output.drop == ("patient_id",)
    assert plan.left_out == ("patient_id", "e-mail")
    assert "# Without a role, so treated as keys: x\n" in text
    assert "# `patient_id` links records" in text
    before = dict(re.findall(r'^# (.*)\n\[columns\."?([^"\]]+)"?\]$', text, re.MULTILINE))
    reasons = {name: reason for reason, name in before.items()}
    assert set(reasons) == set(people.columns)
    assert reasons["x"].startswith("role = identifier | key | sensitive")
    assert reasons["e-mail"].startswith("identifier: its values are e-mail addresses")
    assert "# `town` determines `county`\nrelated = [" in text
    undecided = run("check", "plan.toml")
    assert undecided[0] == 2
    assert "these columns have no role: `x`" in undecided[2]


def test_once_decided_the_starter_plan_runs(run, people, tmp_path):
    run("inspect", "people.csv", "--write-plan", "plan.toml", "--quiet")
    text = (tmp_path / "plan.toml").read_text()
    (tmp_path / "plan.toml").write_text(text.replace("[columns.x]\n", '[columns.x]\nrole = "other"\n'))
    code, _, err = run("run", "plan.toml")
    assert code == 0, err
    assert "e-mail" not in pl.read_csv(tmp_path / "release.csv").columns


def test_strange_names_do_not_spoil_the_plan(run, tmp_path):
    names = ["a b", 'quo"te', "dot.ted", "new\nline", "[columns.x]", "related = ["]
    pl.DataFrame({name: [f"{i % 7}{name}" for i in range(60)] for name in names}).write_parquet(
        tmp_path / "odd.parquet"
    )
    code, _, _ = run("inspect", "odd.parquet", "--write-plan", "plan.toml", "--quiet")
    assert code == 0
    said = tomllib.loads((tmp_path / "plan.toml").read_text())
    assert list(said["columns"]) == names


def test_a_plan_never_replaces_what_is_there(run, people, tmp_path):
    (tmp_path / "plan.toml").write_text("mine")
    code, out, err = run("inspect", "people.csv", "--write-plan", "plan.toml")
    assert (code, out) == (3, "")
    assert "exists already" in err
    assert run("inspect", "people.csv", "--write-plan", "plan.toml", "--overwrite")[0] == 0
    code, _, err = run("inspect", "people.csv", "--write-plan", "people.csv", "--overwrite")
    assert code == 3
    assert "original" in err


def test_the_plan_says_how_the_file_was_read(run, tmp_path):
    (tmp_path / "odd.csv").write_text("a|b\n1|2\n")
    run("inspect", "odd.csv", "--write-plan", "plan.toml", "--delimiter", "|")
    text = (tmp_path / "plan.toml").read_text()
    assert "# Read with --delimiter |" in text or tomllib.loads(text)["data"].get("delimiter") == "|"


# ------------------------------------------------------------------------------------------- convert


def test_there_and_back(run, people, tmp_path):
    assert run("convert", "people.csv", "people.parquet")[0] == 0
    code, out, err = run("convert", "people.parquet", "again.tsv")
    assert (code, out) == (0, "")
    assert "240 records, 8 columns written to again.tsv" in err
    assert "this is not a release" in err
    assert_frame_equal(pl.read_csv(tmp_path / "again.tsv", separator="\t"), people)  # in the same order
    assert run("convert", "people.csv", "q.parquet", "--quiet")[2] == ""


def test_an_original_is_never_overwritten(run, people, tmp_path):
    before = (tmp_path / "people.csv").read_bytes()
    (tmp_path / "link.csv").symlink_to("people.csv")
    for out in ("people.csv", "./people.csv", "link.csv"):
        code, _, err = run("convert", "people.csv", out, "--overwrite")
        assert code == 3
        assert "original" in err
    assert (tmp_path / "people.csv").read_bytes() == before
    assert run("convert", "people.csv", "out.csv")[0] == 0
    assert run("convert", "people.csv", "out.csv")[0] == 3
    assert run("convert", "people.csv", "out.csv", "--overwrite")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        (["peeple.csv", "out.parquet"], 3, "people.csv"),
        (["people.csv", "out.docx"], 3, ".parquet"),
        (["people.csv", "no/out.csv"], 3, "folder"),
        (["people.csv", "out.csv", "--plan", "none.toml"], 3, "plan"),
        (["people.csv", "out.parquet", "--guard"], 2, "guard"),
        (["builtin:fairr", "out.csv"], 2, "fair"),
    ],
)
@pytest.mark.usefixtures("people")
def test_bad_input(run, tmp_path, arguments, code, word):
    found, out, err = run("convert", *arguments)
    assert (found, out) == (code, "")
    assert "error: " in err
    assert word in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["people.csv"]


def test_a_plan_gives_types(run, people, tmp_path):
    run("inspect", "people.csv", "--write-plan", "plan.toml", "--quiet")
    assert run("convert", "people.csv", "typed.parquet", "--plan", "plan.toml")[0] == 0
    typed = pl.read_parquet(tmp_path / "typed.parquet")
    assert typed.schema["admitted"] == pl.Date
    assert typed["admitted"].to_list() == people["admitted"].str.to_date().to_list()
    code, _, err = run("convert", "typed.parquet", "back.csv")
    assert code == 0
    assert "note: not kept: the type (a date is text there) of `admitted`" in err
    (tmp_path / "bare.toml").write_text('[data]\npath = "people.csv"\n')
    code, _, err = run("convert", "people.csv", "x.csv", "--plan", "bare.toml")
    assert code == 2
    assert "declares no columns" in err


def test_what_is_not_kept_is_told(run, tmp_path):
    code, _, err = run("convert", "builtin:fair", "fair.csv")
    assert code == 0
    assert "note: not kept: the label of `rate_marriage`" in err
    assert pl.read_csv(tmp_path / "fair.csv").height == 6366


def test_labels_go_from_format_to_format(run, tmp_path):
    pytest.importorskip("pyreadstat")
    pytest.importorskip("pandas")
    (tmp_path / "data.csv").write_text("sex,age\n1,30\n2,-9\n1,50\n")
    (tmp_path / "plan.toml").write_text(
        '[columns.sex]\nkind = "nominal"\nrole = "key"\nlabel = "sex of the person"\n'
        'labels = [[1, "male"], [2, "female"]]\n'
        '[columns.age]\nkind = "continuous"\nrole = "key"\nmissing = [-9]\n'
    )
    code, _, err = run("convert", "data.csv", "data.sav", "--plan", "plan.toml")
    assert code == 0
    assert "not kept" not in err
    said = json.loads(run("inspect", "data.sav", "--json")[1])
    columns = {column["name"]: column for column in said["columns"]}
    assert (columns["sex"]["label"], columns["sex"]["value_labels"]) == ("sex of the person", 2)
    assert (columns["age"]["missing"], columns["age"]["missing_codes"]) == (1, 1)
    assert "2 value labels" in run("inspect", "data.sav")[1]
    err = run("convert", "data.sav", "flat.csv")[2]
    assert "not kept: the label of `sex`" in err
    assert "not kept: labels of values of `sex`" in err
    assert "not kept: missing codes of `age`" in err


def test_a_file_that_cannot_be_read_again_is_written_all_the_same(run, people, tmp_path, monkeypatch):
    from sfumato import io
    from sfumato.errors import ReadError

    real = io.read_contents

    def fails_for_the_new_file(path, **how):
        if str(path) == "out.parquet":
            raise ReadError("no")
        return real(path, **how)

    monkeypatch.setattr(io, "read_contents", fails_for_the_new_file)
    code, _, err = run("convert", "people.csv", "out.parquet")
    assert code == 0
    assert "could not be read back" in err
    assert pl.read_parquet(tmp_path / "out.parquet").height == people.height


def test_formulas_are_disarmed(run, tmp_path):
    pl.DataFrame({"x": ["=1+1", "plain"], "y": [1, 2]}).write_parquet(tmp_path / "a.parquet")
    assert run("convert", "a.parquet", "a.csv", "--guard")[0] == 0
    assert pl.read_csv(tmp_path / "a.csv")["x"].to_list() == ["'=1+1", "plain"]


def test_a_table_of_a_database(run, people, tmp_path):
    pytest.importorskip("adbc_driver_sqlite")
    pytest.importorskip("pyarrow")
    address = "sqlite:people.db?table=persons"
    assert run("convert", "people.csv", address)[0] == 0
    assert run("convert", address, "back.csv")[0] == 0
    assert_frame_equal(pl.read_csv(tmp_path / "back.csv"), people)
    said = json.loads(run("inspect", address, "--json")[1])
    assert (said["format"], said["records"], said["bytes"]) == ("sqlite", N, None)
    code, _, err = run("convert", address, address, "--overwrite")
    assert code == 3, err
    run("inspect", address, "--write-plan", "plan.toml")
    assert tomllib.loads((tmp_path / "plan.toml").read_text())["data"]["path"] == address


def test_a_failure_leaves_nothing(run, tmp_path):
    pl.DataFrame({"x": [[1, 2], [3]]}).write_parquet(tmp_path / "lists.parquet")
    code, _, err = run("convert", "lists.parquet", "lists.csv")
    assert code == 3
    assert "Traceback" not in err
    assert [path.name for path in tmp_path.iterdir()] == ["lists.parquet"]


def test_a_new_file_may_be_read_as_others_may(run, people, tmp_path):
    run("convert", "people.csv", "out.csv")
    assert (
        stat.S_IMODE((tmp_path / "out.csv").stat().st_mode) & 0o077
        == stat.S_IMODE((tmp_path / "people.csv").stat().st_mode) & 0o077
    )
