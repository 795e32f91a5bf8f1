"""`sfumato tune` as a user types it."""

import json
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from seeds import LARGE

ASKED = (
    "--require",
    "dbrl <= 0.2",
    "-m",
    "mdav",
    "-m",
    "rank-swapping",
    "--rank-by",
    "column-emd",
    "--repeats",
    "2",
)
FEW = ("--trials", "6", "--confirmations", "2", "--seed", "1")


@pytest.fixture
def people(tmp_path):
    rng = np.random.default_rng(1)
    n = 80
    frame = pl.DataFrame(
        {
            "name": [f"Person {i}" for i in range(n)],
            "income": rng.lognormal(10, 1, n).round(2),
            "wealth": rng.lognormal(11, 2, n).round(2),
        }
    )
    path = tmp_path / "people.csv"
    frame.write_csv(path)
    return path


@pytest.fixture
def declared(tmp_path):
    """A plan that says what the columns are and what is required."""
    path = tmp_path / "asked.toml"
    path.write_text(
        'requirements = ["dbrl <= 0.3"]\n[data]\npath = "people.csv"\n'
        '[columns.name]\nkind = "nominal"\nrole = "identifier"\n'
        '[columns.income]\nkind = "continuous"\nrole = "key"\n'
        '[columns.wealth]\nkind = "continuous"\nrole = "key"\n'
    )
    return path


def test_words_a_frontier_and_a_plan_that_runs(run, people, declared, tmp_path):
    (tmp_path / "plans").mkdir()
    plan = tmp_path / "plans" / "plan.toml"
    asked = ("tune", people, "--plan", declared, *ASKED, *FEW, "--write-plan", plan)
    code, out, err = run(*asked, "-o", "safe.csv")
    assert code == 0
    lines = out.splitlines()
    assert lines[0].startswith("Recommended: ")
    assert any(
        line.startswith("It meets dbrl <= 0.2 in each of") or "in one fresh run" in line for line in lines
    )
    assert any(line.startswith("Tried: ") for line in lines)
    assert any(line.split()[:1] == ["column-emd"] and "recipe" in line for line in lines)
    assert "… single methods" in err
    assert f"plan: {plan}" in err
    said = tomllib.loads(plan.read_text())
    assert said["data"] == {"path": "../people.csv"}
    assert said["output"] == {"path": "safe.csv", "drop": ["name"]}
    assert said["requirements"][0].startswith("dbrl")
    code, _, err = run("run", plan, "--seed", LARGE + 3)
    assert code == 0, err
    assert (tmp_path / "plans" / "safe.csv").exists()
    code, _, err = run(*asked)
    assert code == 3
    assert "exists already" in err


def test_what_stands_in_the_way_of_a_plan_is_said(run, people, tmp_path):
    """Nobody has said what `wealth` is: the plan is written, but would not run."""
    asked = ("--require", "dbrl <= 0.9", "-m", "mdav", "--rank-by", "column-emd", "--write-plan", "plan.toml")
    code, out, err = run("tune", people, *asked)
    assert code == 0
    assert out.startswith("Recommended: mdav")
    assert "before it can run: these columns have no role: `wealth`" in err


def test_json_and_the_ledger_that_goes_on(run, people, tmp_path):
    asked = (
        "tune",
        people,
        *ASKED,
        "--trials",
        "6",
        "--confirmations",
        "2",
        "--json",
        "-q",
        "--ledger",
        "t.sqlite",
    )
    code, out, err = run(*asked)
    assert (code, err) == (0, "")
    first = json.loads(out)
    assert first["counts"]["tried"] >= 4
    assert first["recommended"]["requirements"][0]["score"]["mean"] <= 0.2
    private = json.loads((tmp_path / "t.sqlite.private.json").read_text())
    assert private["seed_given"] is False
    assert private["seed"] not in out
    code, out, _ = run(*asked, "--workers", "2")
    assert json.loads(out) == first
    code, _, err = run(*asked, "--seed", "5")
    assert code == 3
    assert "is of another search" in err


def test_out_of_reach_is_exit_code_4_with_the_closest(run, people):
    code, out, err = run(
        "tune", people, "--require", "k >= 5", "-m", "rank-swapping", "--rank-by", "column-emd", *FEW
    )
    assert (code, out) == (4, "")
    assert "tried meets k-anonymity >= 5" in err
    assert "the closest is" in err
    assert "k-anonymity is 1, must be >= 5" in err


@pytest.mark.parametrize(
    ("more", "match"),
    [
        (("--group", "money"), "a group must be written NAME=COLUMN,COLUMN"),
        (("--group", "money=nothing"), "there is no column `nothing`"),
        (("-m", "magic"), "there is no method `magic`"),
        (("-c", "nothing"), "there is no column `nothing`"),
        (("--profile", "magic"), "there is no profile `magic`"),
        (("--rank-by", "magic"), "there is no measure `magic`"),
    ],
)
def test_what_is_not_there_is_said_before_any_work(run, people, more, match):
    code, _, err = run("tune", people, "--require", "dbrl <= 0.2", *more)
    assert code == 2
    assert match in err


def test_nothing_required_is_an_error(run, people):
    code, _, err = run("tune", people)
    assert code == 2
    assert "the search needs a requirement on risk" in err


def test_groups_a_plan_and_its_requirements(run, people, declared):
    code, out, err = run(
        "tune", people, "--plan", declared, "--group", "both=income,wealth", "-m", "mdav", "--rank-by", "column-emd",
        "--trials", "3", "--json", "-q", "--seed", "1",
    )  # fmt: skip
    assert code == 0, err
    said = json.loads(out)
    assert said["groups"] == {"both": ["income", "wealth"]}
    assert [each["requirement"][:4] for each in said["recommended"]["requirements"]] == ["dbrl"]


def test_ctrl_c_leaves_a_ledger_and_says_how_to_go_on(people, tmp_path):
    asked = [
        sys.executable, "-m", "sfumato", "tune", str(people), *ASKED, "--confirmations", "2", "--seed", "1",
        "--trials", "400", "--ledger", "t.sqlite",
    ]  # fmt: skip
    child = subprocess.Popen(asked, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    ledger = Path(tmp_path) / "t.sqlite"
    started = time.monotonic()
    while not ledger.exists() and time.monotonic() - started < 60:
        time.sleep(0.05)
    time.sleep(0.5)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=60)
    assert child.returncode == 130, err
    assert "finished work is in `t.sqlite`" in err
    assert "the same command continues where it was" in err
    assert ledger.stat().st_size > 0
