"""`sfumato compare` with requirements, profiles and "as safe as this file"; `sfumato profiles`."""

from __future__ import annotations

import json
import re
import shlex

import numpy as np
import polars as pl
import pytest


@pytest.fixture
def people(tmp_path):
    """A small file of people."""
    rng = np.random.default_rng(4)
    income = rng.lognormal(10, 0.6, 80)
    frame = pl.DataFrame({"income": income.round(2), "tax": (income * rng.uniform(0.1, 0.4, 80)).round(2)})
    frame.write_csv(tmp_path / "people.csv")
    return frame


QUICK = ("--repeats", 1, "--seed", 1, "--rank-by", "il1s")


def test_several_requirements_at_once(run, people):
    code, out, err = run(
        "compare", "people.csv", "-m", "mdav", "-m", "uniform-noise(spread=0.01)",
        "--require", "dbrl <= 0.15", "--require", "k >= 3", *QUICK,
    )  # fmt: skip
    assert code == 0
    head, first, second, *beside = out.splitlines()
    assert head.split()[:6] == ["rank", "method", "parameter", "dbrl", "k-anonymity", "il1s"]
    assert first.split()[:2] == ["1", "mdav"]
    assert second.split()[:2] == ["—", "uniform-noise"]
    assert "requirements not met" in second
    assert "required: dbrl <= 0.15 and k-anonymity >= 3" in err
    assert "uniform-noise: " in err
    assert "k-anonymity >= 3: at most 1, at spread" in err
    assert "1 of 2 methods ranked" in err
    assert [line.split()[0] for line in beside] == ["method", "mdav"]


@pytest.mark.slow
def test_the_answer_for_machines_holds_every_requirement(run, people):
    code, out, _ = run(
        "compare", "people.csv", "-m", "mdav", "--require", "dbrl <= 0.15", "--require", "k >= 3", "--json",
        *QUICK,
    )  # fmt: skip
    assert code == 0
    said = json.loads(out)
    assert [each["requirement"].split("(")[0].split()[0] for each in said["requirements"]] == [
        "dbrl", "k-anonymity",
    ]  # fmt: skip
    (outcome,) = said["outcomes"]
    assert outcome["scores"]["dbrl"]["mean"] <= 0.15
    assert outcome["scores"]["k-anonymity"]["mean"] >= 3
    assert outcome["runs_met"] == 1


def test_nothing_meets_the_requirements(run, people):
    code, _, err = run("compare", "people.csv", "-m", "mdav", "--require", "k >= 500", *QUICK)
    assert code == 4
    assert "error: no method can meet k-anonymity >= 500" in err


def test_as_safe_as_a_file(run, people, tmp_path):
    assert (
        run(
            "protect", "mdav", "people.csv", "--k", 4, "-o", "rel.csv", "--keep-order", "--require", "k >= 4"
        )[0]
        == 0
    )
    code, out, _ = run(
        "compare", "people.csv", "--like", "rel.csv", "--aligned", "--require", "dbrl", "--require", "k",
        "-m", "mdav", "--json", *QUICK,
    )  # fmt: skip
    assert code == 0
    said = json.loads(out)
    assert said["outcomes"][0]["parameters"]["k"] <= 4
    assert said["requirements"][1]["requirement"].endswith(">= 4")
    held = run("compare", "people.csv", "--like", "rel.csv", "--aligned", "--hold", "dbrl", "-m", "mdav",
               "--json", *QUICK)  # fmt: skip
    assert json.loads(held[1])["held"]["level"] == pytest.approx(
        float(said["requirements"][0]["requirement"].split("<= ")[1])
    )
    (tmp_path / "rel.private.json").unlink()  # which tells who is who
    code, _, err = run("compare", "people.csv", "--like", "rel.csv", "--require", "dbrl", "-m", "mdav")
    assert code == 2
    assert "do not map" in err
    assert "aligned" in err


def test_questions_that_contradict_themselves(run, people):
    run("protect", "mdav", "people.csv", "-o", "rel.csv")
    for wrong, told in (
        (("--level", 0.5, "--like", "rel.csv"), "only one of --level and --like"),
        (("--require", "dbrl"), "has no level"),
        (("--require", "dbrl <= 0.1", "--hold", "dbrl"), "`hold` cannot be given together with requirements"),
        (("--require", "dbrl <= 0.1", "--level", 0.5), "`level` cannot be given together with requirements"),
        (("--require", "il1s <= 0.1"), "two measures of utility"),
        (("--profile", "secure"), "requires nothing of this table"),
        (("--profile", "publick"), "there is no profile `publick`"),
    ):
        code, _, err = run("compare", "people.csv", "-m", "mdav", *wrong)
        assert code == 2
        assert told in err


def next_commands(err):
    _, _, told = err.partition("\nNext:\n")
    return [shlex.split(line, comments=True) for line in told.splitlines()]


@pytest.mark.parametrize(
    "asked", [("--level", "0.6", "--tolerance", "0.2"), ("--require", "rank-linkage >= 0.5")]
)
def test_the_next_commands_work_as_they_stand(run, people, tmp_path, asked):
    """Hold another measure; write the plan of the winner, which runs."""
    given = ("-m", "mdav", "-m", "rank-swapping", "--columns", "income,tax", *asked)
    code, _, err = run("compare", "people.csv", *given, *QUICK)
    assert code == 0
    another, write = next_commands(err)
    assert another[:3] == write[:3] == ["sfumato", "compare", "people.csv"]
    assert another[-2:] == ["--hold", "dbrl"]
    assert another.count("--method") == 2
    for command in (another, write):
        assert command[command.index("--rank-by") + 1] == "il1s"
        code, out, err = run(*command[1:], "--seed", 1)
        assert code == 0
        assert out.splitlines()[1].split()[0] == "1"
    plan = tmp_path / "plan.toml"
    winner = write[write.index("--method") + 1].partition("(")[0]
    assert f'method = "{winner}"' in plan.read_text(encoding="utf-8")
    assert run("check", "plan.toml")[0] == 0
    assert run(*write[1:])[0] == 3  # never over a file unasked
    assert [each[-2] for each in next_commands(run(*another[1:], "--seed", 1)[2])] == [
        "--hold",
        "--write-plan",
    ]


def test_the_written_plan_makes_what_was_compared(run, people, tmp_path):
    given = ("-m", "mdav(k=4)", "--columns", "income,tax", "--write-plan", "plan.toml")
    code, _, err = run("compare", "people.csv", *given, *QUICK)
    assert code == 0
    assert "plan: plan.toml" in err
    assert "--write-plan" not in err
    text = (tmp_path / "plan.toml").read_text(encoding="utf-8")
    assert "k = 4" in text
    assert "rank-linkage(floor=0.5) >= 0." in text
    assert run("run", "plan.toml")[0] == 0


def test_the_table_shows_the_loss_over_the_tolerance_and_who_is_tied(run, people):
    given = ("-m", "rank-swapping", "-m", "rank-swapping-buckets", "--level", 0.6, "--tolerance", 0.2)
    code, out, err = run("compare", "people.csv", *given, *QUICK)
    assert code == 0
    assert "(± 20%)" in err
    head, first, second = out.splitlines()[:3]
    assert re.search(r"il1s +at ± 20% +remark", head)
    assert re.search(r" [0-9.]+–[0-9.]+ +tied with rank-swapping", first)
    assert first.split()[0] == second.split()[0] == "1"


@pytest.mark.parametrize("method", ["mdav(k=5", "mdav(k=5)x"])
def test_a_method_with_a_bracket_left_open_is_no_method(run, people, method):
    code, _, err = run("compare", "people.csv", "-m", method, *QUICK)
    assert code == 2
    assert "is not written like a method, name or name(setting=value, …)" in err


def test_a_profile_with_what_does_not_apply_said(run, people):
    code, out, err = run("compare", "people.csv", "--profile", "scientific", "-m", "mdav", *QUICK)
    assert code == 0
    assert "note: k-anonymity >= 3 is left out: scenario `acquaintance`" in err
    assert "required: exact-match <= 0 and dbrl <= 0.1;" in err
    assert out.splitlines()[1].split()[:2] == ["1", "mdav"]


def test_a_report_tells_the_requirements(run, people, tmp_path):
    code, _, _ = run(
        "compare", "people.csv", "-m", "mdav", "-m", "uniform-noise", "--require", "dbrl <= 0.15",
        "--require", "k >= 3", "--report", "r.html", "--public", "--points", 2, *QUICK,
    )  # fmt: skip
    assert code == 0
    told = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert [each["requirement"] for each in told["requirements"]] == ["dbrl <= 0.15", "k-anonymity >= 3"]
    assert told["verdict"][0].startswith("Under dbrl <= 0.15 and k-anonymity >= 3, Microaggregation")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "at their weakest settings that meet the requirements" in page
    assert "spread =" not in page  # the public form tells no parameter
    assert any("cannot meet the requirements" in said for said in told["verdict"])


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("people.csv", "is the same file as the original"),
        ("like.csv", "is the same file as the original"),
        ("r.json", ".json"),
    ],
)
def test_a_report_never_takes_the_place_of_what_was_read(run, people, tmp_path, place, told):
    people.write_csv(tmp_path / "like.csv")
    before = (tmp_path / "people.csv").read_bytes()
    code, out, err = run(
        "compare", "people.csv", "-m", "mdav", "--like", "like.csv", "--aligned", "--hold", "dbrl",
        "--report", place, "--overwrite", *QUICK,
    )  # fmt: skip
    assert (code != 0, out) == (True, "")  # told before the work
    assert told in err
    assert (tmp_path / "people.csv").read_bytes() == (tmp_path / "like.csv").read_bytes() == before


# ----------------------------------------------------------------------------------------------- profiles


def test_profiles_are_listed_shown_and_written_to_edit(run, people, tmp_path):
    code, out, _ = run("profiles")
    assert code == 0
    listed = re.findall(r"^([\w-]+): ", out, re.MULTILINE)
    assert listed == [
        "secure",
        "scientific",
        "industry",
        "public",
        "clinical",
        "hipaa-safe-harbour",
        "netherlands-public",
        "netherlands-researchers",
        "small-cells",
        "three-threats",
    ]
    code, out, _ = run("profiles", "public")
    assert code == 0
    assert "k-anonymity >= 10   (against acquaintance)" in out
    assert "El Emam" in out
    code, out, _ = run("profiles", "public", "--json")
    assert json.loads(out)["requirements"][0]["require"].endswith(">= 10")
    assert len(json.loads(run("profiles", "--json")[1])) == 10
    assert run("profiles", "scientific", "--write", "my.toml")[0] == 0
    text = (tmp_path / "my.toml").read_text(encoding="utf-8")
    (tmp_path / "my.toml").write_text(text.replace("dbrl <= 0.1", "dbrl <= 0.3"), encoding="utf-8")
    code, _, err = run("compare", "people.csv", "--profile", "my.toml", "-m", "mdav", *QUICK)
    assert code == 0
    assert "required: exact-match <= 0 and dbrl <= 0.3;" in err
    assert run("profiles", "scientific", "--write", "my.toml")[0] == 3  # never over a file unasked
    assert run("profiles", "--write", "x.toml")[0] == 2
    code, out, _ = run("profiles", "secure")
    assert "None on the records" in out
