"""`sfumato explain`, and the line that says what work will cost, as a user sees them."""

import json

import numpy as np
import polars as pl
import pytest

from seeds import LARGE
from sfumato.core import registry
from sfumato.explain import PRIVATE
from sfumato.study import cost
from sfumato.study.cost import Cost


@pytest.fixture
def people(tmp_path):
    """A small file of people."""
    rng = np.random.default_rng(1)
    frame = pl.DataFrame(
        {
            "age": rng.integers(18, 60, 120),
            "income": rng.lognormal(10, 1, 120).round(2),
            "region": rng.choice(["north", "south"], 120),
            "illness": rng.choice(["Zanzibarquux", "flu"], 120),
        }
    )
    frame.write_csv(tmp_path / "people.csv")
    return frame


PLAN = """
requirements = ["k >= 3"]

[data]
path = "people.csv"
[columns.age]
kind = "continuous"
role = "key"
integer = true
[columns.income]
kind = "continuous"
role = "key"
[columns.region]
kind = "nominal"
role = "key"
[columns.illness]
kind = "nominal"
role = "sensitive"

[[scenarios]]
name = "neighbour"
columns = ["age", "region"]
[[scenarios]]
name = "bank"
columns = ["income"]

[[steps]]
method = "rank-swapping"
columns = ["age", "income"]
parameters = { window = 20 }
[[steps]]
method = "rounding"
columns = ["income"]
parameters = { base = 1000 }

[output]
path = "release.csv"
drop = ["illness"]
"""


@pytest.fixture
def plan(tmp_path, people):
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    return path


# ---------------------------------------------------------------------------------------------------- a record


def test_a_record_of_a_plan(run, people, plan):
    code, out, _ = run(
        "explain", "people.csv", "--record", 17, "--plan", plan, "--seed", 1, "--measure", "dbrl"
    )
    assert code == 0
    assert out.startswith("private: never share this")
    assert "Record 17 of 120 (counted from 0" in out
    assert "Step 1: rank-swapping (window=20.0" in out
    assert "Step 2: rounding" in out
    assert "Step 3: postprocessing" in out
    assert "gives a class of at least 3" in out  # the plan's own k
    assert str(people["income"][17]) in out
    assert "How far its values moved in rank" in out
    assert "of 120" in next(
        line for line in out.splitlines() if line.startswith("income") and "of 120" in line
    )


def test_the_twin_for_machines(run, people, plan):
    arguments = (
        "explain",
        "people.csv",
        "--record",
        17,
        "--plan",
        plan,
        "--seed",
        1,
        "--measure",
        "k",
        "--json",
    )
    code, out, _ = run(*arguments)
    assert code == 0
    said = json.loads(out)
    assert said["private"] == PRIVATE
    assert said["values"]["age"] == people["age"][17]
    assert said["keys"]["keys"] == ["age", "region"]  # what the neighbour knows
    assert [step["step"] for step in said["steps"]] == ["rank-swapping", "rounding", "postprocessing"]
    income = [change for change in said["steps"][1]["changes"] if change["column"] == "income"]
    assert income[0]["after"] % 1000 == 0
    assert run(*arguments)[1] == out
    other = json.loads(run(*arguments, "--scenario", "bank")[1])
    assert other["keys"]["keys"] == ["income"]


def test_a_release_is_explained_by_its_own_trail(run, people, plan, tmp_path):
    plan.write_text(
        PLAN.replace('"k >= 3"', '"exact-match <= 0.9"').replace("[output]", "[output]\nshuffle = false")
    )
    assert run("run", plan, "--seed", LARGE)[0] == 0
    code, out, _ = run(
        "explain", "people.csv", "--record", 5, "--plan", plan, "--replay", "release.private.json",
        "--measure", "k", "--json",
    )  # fmt: skip
    assert code == 0
    changed = {c["column"]: c["after"] for step in json.loads(out)["steps"] for c in step["changes"]}
    released = pl.read_csv(tmp_path / "release.csv")
    assert changed["age"] == released["age"][5]
    assert changed["income"] == released["income"][5]
    assert changed["illness"] == "(no such column)"


def test_a_release_that_is_there(run, people, tmp_path):
    people.with_columns(pl.col("age") + 1).write_csv(tmp_path / "released.csv")
    code, out, _ = run(
        "explain", "people.csv", "--record", 3, "--released", "released.csv", "--aligned", "--json",
        "--measure", "dbrl", "--measure", "k-anonymity", "-c", "age,region",
    )  # fmt: skip
    assert code == 0
    said = json.loads(out)
    assert said["released_as"] == [3]
    assert said["released_keys"]["rarities"][0]["value"] == people["age"][3] + 1
    assert {attack["measure"] for attack in said["attacks"]} == {"dbrl", "k-anonymity"}
    assert said["steps"] == []


def test_methods_named_on_the_way(run, people):
    code, out, _ = run(
        "explain", "people.csv", "--record", 3, "-m", "mdav(k=4)", "-m", "uniform-noise", "-c", "age,income",
        "--measure", "k", "--json",
    )  # fmt: skip
    assert code == 0
    assert [step["step"] for step in json.loads(out)["steps"]] == ["mdav", "uniform-noise"]


def test_the_riskiest(run, people):
    code, out, _ = run("explain", "people.csv", "--riskiest", 4, "--measure", "k", "-c", "region", "--json")
    assert code == 0
    said = json.loads(out)
    counts = people["region"].value_counts().sort("count")
    rare = people.with_row_index().filter(pl.col("region") == counts["region"][0])["index"][:4].to_list()
    assert [each["record"] for each in said["riskiest"]] == rare
    assert said["as_risky"] == counts["count"][0]
    code, out, _ = run("explain", "people.csv", "--riskiest", 4)
    assert out.startswith("private: never share this")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--record", 120], "from 0 to 119"),
        (["--record", 1, "--riskiest", 2], "only one of --record and --riskiest"),
        (["--record", 1, "--released", "people.csv", "-m", "mdav"], "only one of --released and --method"),
        (["--record", 1, "--scenario", "x"], "--scenario needs --plan"),
        (["--record", 1, "-c", "agge"], "there is no column `agge`"),
        (["--riskiest", 2, "--measure", "k", "--measure", "dbrl"], "by one measure"),
        (["--riskiest", 2, "--measure", "separation"], "cannot rank records"),
        (["--riskiest", 2, "--measure", "dbrl"], "cannot rank records"),
        ([], "what to explain about the file"),
    ],
)
def test_what_makes_no_sense_is_refused(run, people, arguments, message):
    code, out, err = run("explain", "people.csv", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert "Zanzibarquux" not in err


def test_an_unknown_scenario(run, plan):
    code, _, err = run("explain", "people.csv", "--record", 1, "--plan", plan, "--scenario", "bnak")
    assert code == 2
    assert "did you mean `bank`" in err


# -------------------------------------------------------------------------------------- a measure, a method


@pytest.mark.parametrize("name", [*registry.measures(), *registry.methods()])
def test_every_name_can_be_explained(run, name):
    code, out, err = run("explain", name)
    assert (code, err) == (0, "")
    assert out.startswith(f"{name} — ")
    assert "Where it comes from" in out


def test_a_measure_in_full(run):
    _, out, _ = run("explain", "dbrl")
    for part in (
        "Lower is safer; it lies between 0 and 1.",
        "How to read it",
        "Doubt",
        "What guessing scores",
    ):
        assert part in out
    assert "Herranz" in out
    assert run("explain", "--measure", "dbrl")[1] == out
    said = json.loads(run("explain", "k", "--json")[1])
    assert (said["name"], said["better"], said["what"]) == ("k-anonymity", "high", "measure of risk")


def test_a_score_in_words(run, people):
    code, out, _ = run(
        "explain", "people.csv", "--measure", "k", "--measure", "dbrl", "-m", "rank-swapping", "--seed", 1
    )
    assert code == 0
    assert "k-anonymity is 1, where higher is safer" in out
    assert "Guessing gives" in out
    said = json.loads(run("explain", "people.csv", "--measure", "k", "--json")[1])
    assert said["k-anonymity"]["in_words"][0].startswith("k-anonymity is 1")
    assert "by_record" not in said["k-anonymity"]


def test_what_is_neither(run, people):
    code, _, err = run("explain", "dbrll")
    assert code == 2
    assert "did you mean `dbrl`" in err
    assert run("explain")[0] == 2
    assert run("explain", "--record", 3)[0] == 2
    assert run("explain", "nothere.csv", "--record", 3)[0] == 3


# ------------------------------------------------------------------------------------------------------ cost


@pytest.fixture
def long_work(monkeypatch):
    """Every table is large, and all work takes three minutes."""
    asked = []

    def estimate(works, table, run):
        asked.append(works)
        return Cost(180, 180, 1.2e9, "a guess")

    monkeypatch.setattr(cost, "FREE_UP_TO_RECORDS", 1)
    monkeypatch.setattr(cost, "estimate", estimate)
    return asked


TAKES = "takes about 3 min and 1.2 GB (a guess); Ctrl-C stops it cleanly"
LINE, OF_STEPS = f"this {TAKES}", f"protecting alone {TAKES}"


def test_verbs_say_what_they_cost(run, people, plan, long_work):
    plan.write_text(PLAN.replace('"k >= 3"', '"exact-match <= 0.9"'))
    protecting = ("protect", "rank-swapping", "people.csv", "-c", "age", "-o", "out.csv", "--unjudged")
    assert OF_STEPS in run(*protecting)[2]
    assert LINE in run("risk", "people.csv", "-m", "k")[2]
    assert LINE in run("utility", "people.csv", "out.csv", "-m", "il1s")[2]
    assert OF_STEPS in run("run", plan)[2]
    assert [len(work.recipe.steps) for work in long_work] == [1, 0, 0, 2]
    assert [len(work.measures) for work in long_work] == [0, 1, 1, 2]  # of the plan: k in two scenarios


def test_no_cost_where_nobody_asked(run, people, long_work):
    code, out, err = run("risk", "people.csv", "-m", "k", "--json", "--quiet")
    assert (code, err, long_work) == (0, "", [])
    json.loads(out)
    code, out, err = run("risk", "people.csv", "-m", "k", "--json")
    assert LINE in err
    json.loads(out)


def test_small_tables_are_not_tried(run, people, monkeypatch):
    monkeypatch.setattr(cost, "estimate", lambda *_: pytest.fail("a small table was tried"))
    assert run("risk", "people.csv", "-m", "k")[0] == 0
