"""`protect`, `run` and `protocol` go one way out: the same bytes, the same judgement, the same private trail."""

import json
import stat

import numpy as np
import polars as pl
import pytest

from seeds import LARGE
from sfumato.recipes.plan import Plan


@pytest.fixture
def people(tmp_path):
    """A file of people with a name, a number, a date and parts of a total."""
    rng = np.random.default_rng(1)
    n = 90
    wage, rent = rng.lognormal(8, 1, n).round(), rng.lognormal(6, 1, n).round()
    frame = pl.DataFrame(
        {
            "name": [f"Person {i}" for i in range(n)],
            "pid": rng.permutation(np.arange(1000, 1000 + n)),
            "born": pl.date_range(
                pl.date(1950, 1, 1), pl.date(1950, 1, 1) + pl.duration(days=n - 1), eager=True
            ),
            "wage": wage,
            "rent": rent,
            "income": wage + rent,
            "region": rng.choice(["north", "south"], n),
        }
    )
    frame.write_csv(tmp_path / "people.csv")
    return frame


PLAN = """
rules = ["income = wage + rent"]
{requirements}

[columns]
name = {{ kind = "nominal", role = "identifier" }}
pid = {{ kind = "nominal", role = "person", pseudonym = "person" }}
born = {{ kind = "date", role = "other" }}
wage = {{ kind = "continuous", role = "key", integer = true }}
rent = {{ kind = "continuous", role = "key", integer = true }}
income = {{ kind = "continuous", role = "key" }}
region = {{ kind = "nominal", role = "other" }}

[output]
drop = ["name"]
{output}
"""


@pytest.fixture
def plan(tmp_path):
    """Write the plan that says of the columns what a file cannot."""

    def write(requirements="", output="repair = true"):
        (tmp_path / "plan.toml").write_text(PLAN.format(requirements=requirements, output=output))

    return write


def trail_of(folder, name):
    return json.loads((folder / f"{name}.private.json").read_text(encoding="utf-8"))


NOISE = ("protect", "correlated-noise", "people.csv", "-c", "wage,rent", "--drop", "name,pid", "--unjudged")


@pytest.mark.parametrize("more", [(), ("--within", "region"), ("--keep-order",), ("--plan", "plan.toml")])
def test_what_protect_wrote_is_made_again_from_its_trail(run, people, plan, tmp_path, more):
    plan()
    code, _, err = run(*NOISE, *more, "-o", "out.csv")
    assert code == 0, err
    assert "written: out.csv, out.private.json\ndo not share out.private.json" in err
    trail, first = trail_of(tmp_path, "out"), (tmp_path / "out.csv").read_bytes()
    assert trail["seed"] not in err
    assert trail["seed_given"] is False
    assert [step["method"] for step in trail["steps"]] == ["correlated-noise"]
    assert list(trail["inputs"]) == ["people.csv"]
    assert stat.S_IMODE((tmp_path / "out.private.json").stat().st_mode) == 0o600
    (tmp_path / "again.toml").write_text(Plan.from_dict(trail["plan"]).to_toml())
    assert run("run", "again.toml", "--unjudged", "--replay", "out.private.json", "--overwrite")[0] == 0
    assert (tmp_path / "out.csv").read_bytes() == first
    assert run("run", "again.toml", "--unjudged", "--overwrite")[0] == 0
    assert (tmp_path / "out.csv").read_bytes() != first


def test_a_file_and_a_hierarchy_from_other_folders_are_found_again(run, people, tmp_path):
    (tmp_path / "deep").mkdir()
    assert run("hierarchy", "people.csv", "region", "--out", "deep/region.csv")[0] == 0
    (tmp_path / "deep" / "plan.toml").write_text(
        '[resources.zone]\npath = "region.csv"\nholds = "hierarchy"\n'
    )
    code, _, err = run(
        "protect", "recoding", tmp_path / "people.csv", "-c", "region", "--levels", 1, "--drop", "name,pid",
        "--hierarchy", "region=deep/region.csv", "--plan", "deep/plan.toml", "-o", "deep/out.csv",
        "--unjudged",
    )  # fmt: skip
    assert code == 0, err
    trail = trail_of(tmp_path / "deep", "out")
    assert set(trail["inputs"]) == {str(tmp_path / "people.csv"), "deep/region.csv"}
    assert set(trail["plan"]["resources"]) == {"zone", "hierarchy of region"}


def test_the_three_verbs_give_the_same_but_for_pseudonyms(run, people, plan, tmp_path):
    plan()
    shared = ("-c", "wage,rent", "--plan", "plan.toml", "--seed", LARGE)
    assert run("protect", "mdav", "people.csv", "--k", 4, *shared, "-o", "protect.csv", "--unjudged")[0] == 0
    said = trail_of(tmp_path, "protect")["plan"]
    said["output"]["path"] = "run.csv"
    (tmp_path / "again.toml").write_text(Plan.from_dict(said).to_toml())
    assert run("run", "again.toml", "--unjudged", "--seed", LARGE)[0] == 0
    limits = ("--local", 0.99, "--everywhere", 0.99)
    assert run("protocol", "people.csv", "-m", "mdav(k=4)", *limits, *shared, "-o", "protocol.csv")[0] == 0
    frames = [pl.read_csv(tmp_path / f"{verb}.csv") for verb in ("protect", "run", "protocol")]
    assert all(each.drop("pid").equals(frames[0].drop("pid")) for each in frames)
    assert len({each["pid"][0] for each in frames}) == 3  # no seed gives a pseudonym
    trails = [trail_of(tmp_path, verb) for verb in ("protect", "run", "protocol")]
    for key in ("columns", "inputs", "contents", "seed", "seed_given", "changes", "broken_promises"):
        assert trails[0][key] == trails[1][key] == trails[2][key]
    assert trails[0]["plan"]["steps"] == trails[2]["plan"]["steps"]


def test_the_limits_of_the_protocol_are_judged_on_what_is_written(run, people, plan, tmp_path):
    plan(requirements='requirements = ["rank-linkage >= 0"]')
    code, _, err = run(
        "protocol", "people.csv", "-m", "mdav(k=30)", "-c", "wage,rent", "--plan", "plan.toml", "-o", "out.csv",
        "--local", 0.2, "--everywhere", 0.3,
    )  # fmt: skip
    assert code == 0, err
    trail = trail_of(tmp_path, "out")
    judged = [
        (each["scenario"], each["requirement"].split("(")[0], each["met"]) for each in trail["requirements"]
    ]
    assert judged == [
        ("default", "rank-linkage", True),
        ("protocol", "dbrl", True),
        ("protocol", "gdbrl", True),
    ]
    assert trail["protocol"]["accepted"] is True
    assert "protocol: met: dbrl is" in err
    plan(requirements='requirements = ["rank-linkage >= 99"]')
    code, _, err = run(
        "protocol", "people.csv", "-m", "mdav(k=30)", "-c", "wage,rent", "--plan", "plan.toml", "-o", "no.csv",
        "--local", 0.2, "--everywhere", 0.3,
    )  # fmt: skip
    assert code == 1
    assert "1 of 3 requirements are not met, so nothing was written" in err
    assert not list(tmp_path.glob("no*"))


@pytest.mark.parametrize("level", [0, 99])
def test_protect_is_judged_by_the_requirements_of_its_plan(run, people, plan, tmp_path, level):
    plan(requirements=f'requirements = ["rank-linkage >= {level}"]')
    code, _, err = run(*NOISE, "--plan", "plan.toml", "-o", "out.csv")
    assert code == (1 if level else 0)
    assert ("nothing was written" if level else "default: met: rank-linkage is") in err
    assert (tmp_path / "out.csv").exists() is not bool(level)
    assert (tmp_path / "out.private.json").exists() is not bool(level)


def test_protect_repairs_and_drops_what_its_plan_says(run, people, plan, tmp_path):
    plan(output="repair = true")
    words = ("protect", "correlated-noise", "people.csv", "-c", "wage,rent", "--plan", "plan.toml")
    code, _, err = run(*words, "--drop", "born", "-o", "out.csv", "--unjudged")
    assert code == 0, err
    after = pl.read_csv(tmp_path / "out.csv")
    assert after.columns == ["pid", "wage", "rent", "income", "region"]
    assert (after["income"] == after["wage"] + after["rent"]).all()
    assert (after["income"].sort() != people["income"].sort()).any()
    assert trail_of(tmp_path, "out")["changes"]
    assert " cells" in err


def test_a_trail_that_is_there_is_another_release_s(run, people, tmp_path):
    (tmp_path / "out.private.json").write_text("another seed")
    code, _, err = run(*NOISE, "-o", "out.csv")
    assert code == 3
    assert "`out.private.json` exists already" in err
    assert not (tmp_path / "out.csv").exists()
    assert run(*NOISE, "-o", "out.csv", "--overwrite")[0] == 0


def test_the_codebook_is_named_among_what_was_written(run, tmp_path):
    """Of twelve words five stay, and seven are a group; twelve records have each, so all may be named."""
    words = [f"word {number}" for number in range(12)]
    (tmp_path / "words.csv").write_text("\n".join(["w", *words * 12]) + "\n")
    code, _, err = run(
        "protect",
        "recoding",
        "words.csv",
        "-c",
        "w",
        "--levels",
        1,
        "-o",
        "out.csv",
        "--unjudged",
    )
    assert code == 0, err
    assert "written: out.csv, out.labels.csv, out.private.json" in err
    assert "the codebook of the group labels is out.labels.csv" in err
