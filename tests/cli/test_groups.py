"""`in every region` as a user types it: every verb that judges knows it, and nothing public names a group."""

import json
import tomllib

import numpy as np
import polars as pl
import pytest

from seeds import LARGE

PLAN = """
requirements = ["k >= 3 in every region", "cells-changed <= 0.9 in every region"]

[data]
path = "people.csv"

[columns]
region = {{ kind = "nominal", role = "other" }}
age = {{ kind = "continuous", role = "key", integer = true }}
sex = {{ kind = "nominal", role = "key" }}
illness = {{ kind = "nominal", role = "sensitive" }}
{steps}
[output]
path = "release.csv"
drop = ["region"]
"""
STEP = """
[[steps]]
method = "mondrian"
columns = ["@key"]
parameters = {{ k = 2, also = [{also}] }}
"""
ENFORCED = '"k >= 3 in every region"'


@pytest.fixture
def people(tmp_path):
    """Two hundred people, eleven of them in the smallest region."""
    rng = np.random.default_rng(1)
    region = np.repeat(["sentinelnorth", "sentinelsouth", "sentineltiny"], [120, 69, 11])
    frame = pl.DataFrame(
        {
            "region": region,
            "age": rng.integers(20, 60, 200),
            "sex": rng.choice(["f", "m"], 200),
            "illness": rng.choice(["flu", "none"], 200),
        }
    )
    frame.write_csv(tmp_path / "people.csv")
    return frame


def write_plan(tmp_path, steps=""):
    (tmp_path / "plan.toml").write_text(PLAN.format(steps=steps))
    return "plan.toml"


def test_a_group_that_is_left_behind_blocks_the_release(run, people, tmp_path):
    plan = write_plan(tmp_path, STEP.format(also=""))
    for verb in (("gate",), ("run", "--seed", LARGE)):
        code, out, err = run(verb[0], plan, *verb[1:])
        assert code == 1
        assert "k-anonymity in every region is 1, must be >= 3" in out + err
        assert "sentinel" not in out + err
    assert not (tmp_path / "release.csv").exists()


def test_a_step_that_enforces_it_leaves_nobody_behind(run, people, tmp_path):
    plan = write_plan(tmp_path, STEP.format(also=ENFORCED))
    code, out, err = run("run", plan, "--seed", LARGE)
    assert code == 0, err
    code, out, err = run("risk", plan, "release.csv", "-m", "k in every region of 20", "--json")
    assert json.loads(out)["k-anonymity in every region of 20"]["value"] == 3
    assert "sentinel" not in out + err
    code, out, _ = run("risk", plan, "release.csv", "-m", "k in every region", "--json", "--per-record")
    by_group = json.loads(out)["k-anonymity in every region"]["by_value"]
    assert by_group["records"]["sentineltiny"] == 11  # for the owner, who asks for it
    code, out, err = run("utility", plan, "release.csv", "--require", "cells-changed <= 0.1 in every region")
    assert code == 1
    assert "cells-changed in every region is" in out + err


def test_tune_obeys_it_and_its_plan_says_so(run, people, tmp_path):
    plan = write_plan(tmp_path)
    few = (
        "--trials",
        "4",
        "--confirmations",
        "1",
        "--seed",
        LARGE,
        "-m",
        "mondrian",
        "-m",
        "local-suppression",
    )
    code, _, err = run("tune", plan, *few, "--write-plan", "best.toml")
    assert code == 0, err
    best = tomllib.loads((tmp_path / "best.toml").read_text())
    assert [each.endswith("in every region") for each in best["requirements"]] == [True, True]
    assert run("gate", "best.toml")[0] == 0


def test_a_release_tells_risk_and_loss_by_group_to_its_owner_alone(run, people, tmp_path):
    plan = write_plan(tmp_path, STEP.format(also=ENFORCED))
    code, _, err = run("release", plan, "--out", "out", "--yes", "--minutes", "1")
    assert code == 0, err
    private = json.loads((tmp_path / "out/private/report.json").read_text())
    (groups,) = private["groups"]
    assert {row["group"]: row["records"] for row in groups["rows"]} == {
        "sentinelnorth": 120, "sentinelsouth": 69, "sentineltiny": 11,
    }  # fmt: skip
    assert len(groups["worst"]) == 2
    assert all(len(row["scores"]) == 2 for row in groups["rows"])
    assert "sentineltiny" in (tmp_path / "out/private/report.html").read_text()
    for path in (tmp_path / "out").iterdir():
        assert path.is_dir() or "sentinel" not in path.read_text(encoding="utf-8")
    public = json.loads((tmp_path / "out/report.json").read_text())
    assert "groups" not in public
    assert json.loads((tmp_path / "out/evidence.json").read_text())["identifiability"]["claims"] == []
    assert run("verify", "out")[0] == 0
