"""People who sit out: the share or the file that verbs are given, and what their screens say of it."""

import json

import numpy as np
import polars as pl
import pytest

from seeds import LARGE

PLAN = """requirements = ["linkability <= 0.9 at 95%"]
[data]
path = "people.csv"
control = 0.3
[columns]
age = { kind = "continuous", role = "key" }
area = { kind = "nominal", role = "key" }
height = { kind = "continuous", role = "key" }
[[steps]]
method = "mdav"
columns = ["age", "height"]
parameters = { k = 5 }
[output]
path = "release.csv"
"""


def frame(n, seed):
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "age": rng.integers(18, 90, n),
            "area": rng.choice(["north", "south", "west"], n),
            "height": rng.normal(170, 9, n).round(1),
        }
    )


@pytest.fixture
def folder(tmp_path):
    frame(150, 1).write_csv(tmp_path / "people.csv")
    frame(80, 2).write_csv(tmp_path / "others.csv")
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path


def test_a_plan_is_rehearsed_and_risk_tells_the_same(run, folder):
    code, out, err = run("run", "plan.toml", "--seed", LARGE, "--json")
    assert code == 0, err
    (judged,) = json.loads(out)["requirements"]
    assert json.loads(out)["records"] == 150
    assert judged["score"]["details"]["queries"] == 105
    assert judged["score"]["details"]["control_queries"] == 45
    words = ("risk", "plan.toml", "release.csv", "-m", "linkability", "--seed", LARGE)
    code, out, _ = run(*words, "--json")
    assert json.loads(out)["linkability"] == judged["score"]
    code, out, _ = run(*words)
    assert code == 0
    assert all(word in out for word in ("between", "rate:", "control:", "baseline:", "queries:"))


def test_a_file_of_others_is_a_control_too(run, folder):
    words = ("risk", "people.csv", "people.csv", "-m", "linkability", "--json", "--seed", LARGE)
    code, out, _ = run(*words, "--control", "others.csv")
    assert code == 0
    said = json.loads(out)["linkability"]
    assert said["details"]["control_queries"] == 80
    code, out, _ = run(*words, "--resource", "control=others.csv")
    assert json.loads(out)["linkability"] == said
    code, out, _ = run(*words)
    assert json.loads(out)["linkability"]["status"] == "refused"
    code, out, _ = run(*words, "--control", "people.csv")
    assert "in the original: 150 of its 150" in json.loads(out)["linkability"]["reason"]


@pytest.mark.parametrize(
    ("control", "said"), [("0.2", "needs a plan with steps"), ("1.5", "share"), ("no.csv", "no.csv")]
)
def test_what_cannot_be_a_control_is_said(run, folder, control, said):
    code, _, err = run("risk", "people.csv", "people.csv", "-m", "linkability", "--control", control)
    assert code > 0
    assert said in err


def test_run_and_gate_take_another_control_than_the_plan_says(run, folder):
    for control, asked in (("0.4", 60), ("others.csv", 80)):
        code, out, err = run(
            "run", "plan.toml", "--control", control, "--seed", LARGE, "--json", "--overwrite"
        )
        assert code == 0, err
        (judged,) = json.loads(out)["requirements"]
        assert judged["score"]["details"]["control_queries"] == asked
        code, out, err = run("gate", "plan.toml", "--control", control, "--seed", LARGE)
        assert code == 0, err
        assert "met: linkability" in out
    code, _, err = run("gate", "plan.toml", "--control", "people.csv", "--seed", LARGE)
    assert code == 1
    release = ("gate", "release.csv", "--original", "people.csv", "--require", "linkability <= 0.9 at 95%")
    code, _, err = run(*release, "--control", "0.4")
    assert (code, "a file of other people" in err) == (2, True)


def test_a_plan_of_several_tables_is_rehearsed_by_a_share(run, folder):
    body = PLAN.partition("[data]")
    tables = f"[tables.all]\n{body[0]}[tables.all.data]" + body[2].replace("control = 0.3\n", "")
    for name in ("columns", "[steps", "output"):
        tables = tables.replace(f"[{name}", f"[tables.all.{name}" if name[0] != "[" else "[[tables.all.steps")
    (folder / "tables.toml").write_text(tables)
    code, out, err = run("run", "tables.toml", "--control", "0.4", "--seed", LARGE, "--json")
    assert code == 0, err
    assert '"control_queries": 60' in out
    code, _, err = run("run", "tables.toml", "--control", "others.csv", "--seed", LARGE, "--overwrite")
    assert (code, "several tables" in err) == (2, True)


def test_protect_rehearses_its_step(run, folder):
    words = (
        "protect",
        "mdav",
        "people.csv",
        "--k",
        "5",
        "-c",
        "age,height",
        "-o",
        "out.csv",
        "--seed",
        LARGE,
    )
    require = ("--require", "membership <= 0.95 at 95%")
    code, _, err = run(*words, *require)
    assert code > 0
    assert "control" in err
    code, _, err = run(*words, *require, "--control", "0.3")
    assert code == 0, err
    assert "met: membership" in err


def test_compare_and_tune_rehearse_every_method(run, folder):
    words = (
        "people.csv",
        "--require",
        "linkability <= 0.9 at 95%",
        "--control",
        "0.3",
        "--seed",
        LARGE,
        "--json",
    )
    code, out, err = run("compare", *words, "-m", "mdav", "-m", "rank-swapping", "--repeats", "1")
    assert code == 0, err
    assert {each["reached"] for each in json.loads(out)["outcomes"]} == {"meets the requirements"}
    tuning = ("--method", "mdav", "--trials", "2", "--repeats", "1", "--confirmations", "1")
    code, _, err = run("tune", *words, *tuning, "--write-plan", "made.toml")
    assert code == 0, err
    assert "control = 0.3" in (folder / "made.toml").read_text()
