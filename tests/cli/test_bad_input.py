"""What cannot be done is said in a sentence: no internal error, no cell on the screen, nothing half-written."""

import os
import subprocess
import sys

import pytest

from sfumato import assess
from sfumato.errors import ParameterError

CELL = "Zsofia-Qvist"
ROWS = "\n".join(f"{CELL},{20 + i % 9},{'fm'[i % 2]},{1000.5 + i},{CELL}{i % 3}" for i in range(30))
PLAN = """requirements = ["k >= 3"]
[data]
path = "people.csv"
[columns.name]
kind = "nominal"
role = "identifier"
[columns.age]
kind = "continuous"
role = "key"
[columns.sex]
kind = "nominal"
role = "key"
[columns.income]
kind = "continuous"
role = "sensitive"
[columns.illness]
kind = "nominal"
role = "sensitive"
[[steps]]
method = "mondrian"
columns = ["age", "sex"]
parameters = { k = 3 }
[output]
path = "out.csv"
"""
FILES = {
    "people.csv": f"name,age,sex,income,illness\n{ROWS}\n",
    "empty.csv": "",
    "header.csv": "name,age\n",
    "ragged.csv": f"name,age\n{CELL},3\n{CELL}\n{CELL},3,{CELL}\n",
    "twice.csv": f"age,age\n{CELL},3\n",
    "nameless.csv": f",age,\n{CELL},3,4\n",
    "open.csv": f'name,age\n"{CELL},3\n',
    "odd.xlsx": f"PK {CELL}",
    "odd.parquet": CELL,
    "hierarchy.csv": "f;person\n",
    "plan.toml": PLAN,
    "other.toml": PLAN.replace('"people.csv"', '"header.csv"'),
    "typed.toml": PLAN.replace(
        'kind = "nominal"\nrole = "sensitive"', 'kind = "continuous"\nrole = "sensitive"'
    ),
    "faults.toml": PLAN.replace("mondrian", "mondrain").replace('role = "key"', 'role = "keyy"'),
    "itself.toml": PLAN.replace('"out.csv"', '"people.csv"'),
    "nowhere.toml": PLAN.replace('"out.csv"', '"no/where/out.csv"'),
}
RELEASE = ("--minutes", "0.001", "-m", "mondrian")


@pytest.fixture
def files(tmp_path):
    """A folder of bad files, and a way to see that nothing in it was changed or added."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "junk.csv").write_bytes(bytes(range(256)) * 9 + CELL.encode())

    def seen():
        return {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}

    return seen


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        (("inspect", "empty.csv", "--write-plan", "new.toml"), 3, "`empty.csv` is empty"),
        (("release", "header.csv", *RELEASE), 3, "has names of columns and no records"),
        (("inspect", "junk.csv", "--write-plan", "new.toml"), 3, "is not a text file"),
        (("inspect", "x" * 300 + ".csv"), 3, "name too long"),
        (("release", "ragged.csv", *RELEASE), 3, "has 1 field, its header 2"),
        (("release", "twice.csv", *RELEASE), 3, "have the same name, at positions 1 and 2"),
        (("release", "open.csv", *RELEASE), 3, "open.csv"),
        (("release", "odd.xlsx", *RELEASE), 3, "odd.xlsx"),
        (("release", "people.csv", *RELEASE, "--for", "publick"), 2, "no profile `publick`"),
        (("release", "people.csv", *RELEASE, "--role", "agee=key"), 2, "no column `agee`"),
        (("release", "people.csv", *RELEASE, "--out", "people.csv"), 3, "is a file, not a folder"),
        (("risk", "people.csv", "odd.parquet"), 3, "Parquet"),
        (("utility", "people.csv", "nameless.csv"), 3, "columns without a name"),
        (("check", "typed.toml"), 2, "illness"),
        (("check", "faults.toml"), 2, "mondrian"),
        (("run", "other.toml"), 2, "faults"),
        (("run", "itself.toml", "--overwrite"), 3, "is the same file as the original"),
        (("run", "nowhere.toml"), 3, "there is no folder"),
        (("protect", "mondrian", "people.csv", "--k", "-3", "--out", "o.csv"), 2, "got: `-3`"),
        (("protect", "mondrian", "people.csv", "--require", "k => 3", "--out", "o.csv"), 2, "a comparison"),
        (("protect", "mondrian", "people.csv", "--hierarchy", "sex=hierarchy.csv", "--unjudged", "--out",
          "o.csv"), 3, "does not cover its column"),
    ],
)  # fmt: skip
def test_it_is_said_and_nothing_is_left_behind(run, files, command, code, said):
    before = files()
    ended, out, err = run(*command)
    assert (ended, said in err) == (code, True), err
    assert CELL not in out + err
    assert files() == before


@pytest.mark.parametrize("suffix", ["csv", "xlsx"])
def test_a_full_disk_is_a_sentence_and_leaves_nothing(files, tmp_path, suffix):
    """A file may not grow here: what the system then says is the same as of a disk without room."""
    before = files()
    limited = (
        "import os, resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (60, 60)); "
        "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", limited, "-m", "sfumato", "convert", "people.csv", f"new.{suffix}"],
        cwd=tmp_path,
        env={
            **os.environ,
            "NUMBA_DISABLE_JIT": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
        },  # nothing else is written
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 3
    assert ended.stderr.startswith("error: ")
    assert "Traceback" not in ended.stderr
    assert CELL not in ended.stderr
    assert files() == before


@pytest.mark.parametrize("text", ["9" * 5_000, "[" * 100_000], ids=["digits", "brackets"])
@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("plan.toml", ("check", "plan.toml")),
        ("own.toml", ("profiles", "own.toml")),
        ("releases.private.jsonl", ("run", "plan.toml")),
        ("old.private.json", ("verify", "old.private.json")),
    ],
)
def test_a_number_of_many_digits_or_many_brackets_is_a_sentence(run, tmp_path, name, command, text):
    (tmp_path / "people.csv").write_text(FILES["people.csv"])
    (tmp_path / "plan.toml").write_text(PLAN + 'drop = ["name", "income", "illness"]\n')
    (tmp_path / name).write_text(f"a = {text}" if name.endswith("toml") else f'{{"a": {text}}}')
    code, _, err = run(*command)
    assert code in {2, 3}, err
    assert "error: " in err


def test_risks_of_a_file_that_writes_equal_values_in_several_ways_are_refused(run, tmp_path):
    """Whoever sees it tells the people apart, who would count as alike."""
    for name, rows in (("original.csv", "1,a\n1,a\n"), ("released.csv", "1,a\n1.0,a\n")):
        (tmp_path / name).write_text(f"x,y\n{rows}", encoding="utf-8")
    code, _, err = run("risk", "original.csv", "released.csv", "-m", "k")
    assert code == 2
    assert "`x` writes equal values in several ways" in err
    assert run("utility", "original.csv", "released.csv", "-m", "non-uniform-entropy")[0] == 0
    with pytest.raises(ParameterError, match="write each value in one way"):
        assess(tmp_path / "original.csv", tmp_path / "released.csv", ["k"])
