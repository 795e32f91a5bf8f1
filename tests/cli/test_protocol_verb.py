"""`sfumato protocol`: accepted with its bound, or without one, and the reason and nothing written."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pytest

from seeds import LARGE


@pytest.fixture
def people(tmp_path):
    """A small file of people, with names."""
    rng = np.random.default_rng(4)
    frame = pl.DataFrame(
        {
            "name": [f"Person {i}" for i in range(100)],
            "income": rng.lognormal(10, 1, 100).round(2),
            "wealth": rng.lognormal(11, 2, 100).round(2),
        }
    )
    frame.write_csv(tmp_path / "people.csv")
    return frame


LIMITS = ("--local", 0.1, "--everywhere", 0.1)
COLUMNS = ("-c", "income,wealth", "--drop", "name")


def test_one_method_is_raised_until_it_is_accepted(run, people, tmp_path):
    code, out, err = run(
        "protocol", "people.csv", "-m", "rank-swapping(window=1)", "-o", "out.csv", "--seed", LARGE, "--attempts", 1,
        *LIMITS, *COLUMNS,
    )  # fmt: skip
    assert code == 0
    lines = out.splitlines()
    assert lines[0].split() == ["attempt", "method", "δ", "dbrl", "gdbrl", "verdict"]
    assert "window = 1 " in lines[1]
    assert "above 0.1" in lines[1]
    assert lines[-1].split()[-1] == "accepted"
    assert len(lines) > 2
    assert "released with the bound Δ = " in err
    assert "written: out.csv, out.private.json" in err
    released = pl.read_csv(tmp_path / "out.csv")
    assert released.columns == ["income", "wealth"]
    assert sorted(released["income"]) == sorted(people["income"])  # swapped, none invented
    trail = json.loads((tmp_path / "out.private.json").read_text(encoding="utf-8"))
    assert trail["protocol"]["accepted"] is True
    assert trail["seed_given"] is True
    assert stat.S_IMODE((tmp_path / "out.private.json").stat().st_mode) == 0o600


def test_the_accepted_file_measures_as_low_as_was_said(run, people):
    run("protocol", "people.csv", "-m", "correlated-noise(ratio=20)", "-o", "out.csv", "--seed", LARGE,
        "--keep-order", *LIMITS, *COLUMNS)  # fmt: skip
    code, out, _ = run(
        "risk", "people.csv", "out.csv", "--aligned", "-m", "dbrl", "-m", "gdbrl", "-c", "income,wealth", "--json",
        "--require", "dbrl <= 0.1", "--require", "gdbrl <= 0.1",
    )  # fmt: skip
    assert code == 0
    assert set(json.loads(out)) == {"dbrl", "gdbrl"}


def test_a_release_is_suppressed_with_its_reason_and_nothing_is_written(run, people, tmp_path):
    before = sorted(tmp_path.iterdir())
    code, out, err = run(
        "protocol", "people.csv", "-m", "mdav(k=2)", "-m", "correlated-noise(ratio=0.0001)", "-o", "out.csv",
        "--attempts", 2, "--json", *COLUMNS,
    )  # fmt: skip
    assert code == 1
    said = json.loads(out)
    assert [each["step"]["method"] for each in said["attempts"]] == [
        "mdav", "correlated-noise", "correlated-noise",
    ]  # fmt: skip
    assert said["bound"] is None
    assert "error: not released after 3 attempts: dbrl is" in err
    assert "nothing was written" in err
    assert sorted(tmp_path.iterdir()) == before


def test_what_cannot_go_well_is_told_before_the_work(run, people, tmp_path):
    method = ("-m", "mdav")
    (tmp_path / "there.csv").write_text("x\n")
    people.write_csv(tmp_path / "more.csv")
    for arguments, told, exit_code in (
        (
            ("people.csv", *method, "-o", "people.csv", "--overwrite", *COLUMNS),
            "same file as the original",
            3,
        ),
        (("people.csv", *method, "-o", "there.csv", *COLUMNS), "exists already", 3),
        (
            ("people.csv", *method, "-o", "more.csv", "--overwrite", "--resource", "r=more.csv", *COLUMNS),
            "same file as the original",
            3,
        ),
        (("people.csv", *method, "-o", "o.csv", "--drop", "nome"), "there is no column `nome`", 2),
        (("people.csv", *method, "-o", "o.csv", "--local", 5, *COLUMNS), "share from 0 to 1", 2),
        (("people.csv", "-m", "mdaw", "-o", "o.csv", *COLUMNS), "there is no method `mdaw`", 2),
        (("people.csv", "-o", "o.csv", *COLUMNS), "--method", 2),
    ):
        code, _, err = run("protocol", *arguments)
        assert code == exit_code
        assert told in err
    assert not (tmp_path / "o.csv").exists()


def test_a_plan_without_intruders_leaves_the_one_who_knows_the_columns(run, people, tmp_path):
    """By the keys of the plan, which the method does not touch, everyone would be hidden at once."""
    people.with_columns(one=1).write_csv(tmp_path / "people.csv")
    role = '{{ kind = "{}", role = "{}" }}'.format
    (tmp_path / "plan.toml").write_text(
        f"[columns]\nname = {role('nominal', 'identifier')}\nincome = {role('continuous', 'sensitive')}\n"
        f"wealth = {role('continuous', 'sensitive')}\none = {role('nominal', 'key')}\n"
    )
    asked = ("protocol", "people.csv", "-m", "rank-swapping(window=1)", "--attempts", 1, "--rungs", 2,
             "--seed", LARGE, "--json", *COLUMNS)  # fmt: skip
    tried = [json.loads(run(*asked, "-o", f"{i}.csv", *more)[1])
             for i, more in enumerate([(), ("--plan", "plan.toml")])]  # fmt: skip
    assert tried[0] == tried[1]
    assert tried[0]["attempts"][0]["local"]["value"] > 0.5


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_ctrl_c_leaves_nothing_behind(tmp_path):
    rng = np.random.default_rng(1)
    pl.DataFrame(rng.lognormal(size=(20000, 6)), schema=list("abcdef")).write_csv(tmp_path / "big.csv")
    command = [
        sys.executable, "-m", "sfumato", "protocol", "big.csv", "-m", "correlated-noise(ratio=0.3)", "-o", "out.csv",
        "--local", "0", "--everywhere", "0", "--attempts", "1000",
    ]  # fmt: skip
    started = subprocess.Popen(
        command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    for line in started.stderr:
        if "attempts" in line:
            break
    time.sleep(0.3)
    started.send_signal(signal.SIGINT)
    _, err = started.communicate(timeout=120)
    assert started.returncode == 130
    assert "stopp" in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["big.csv"]
