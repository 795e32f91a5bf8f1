"""`release`: one command from a file to a folder that may leave; and nothing leaves that nobody asked of."""

import json

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from sfumato.cli import cli
from sfumato.cli import release as verb
from sfumato.cli._questions import role_of
from sfumato.recipes.parts import About
from sfumato.recipes.plan import Plan

QUICK = ("--minutes", 0.03, "-m", "mondrian")
#: Enter at what analysts need most, and at each of the four questions on what the release is.
UNSAID = "\n" * 5


@pytest.fixture
def people(tmp_path):
    """A file of 300 people with a name, likely keys, a column nothing speaks for, and a diagnosis."""
    rng = np.random.default_rng(4)
    n = 300
    frame = pl.DataFrame(
        {
            "name": [f"Person {i}" for i in range(n)],
            "age": rng.integers(18, 90, n),
            "sex": rng.choice(["f", "m"], n),
            "zip": rng.choice(["01067", "01069", "04103", "10115"], n),
            "x": rng.integers(0, 4, n),
            "diagnosis": rng.choice(["E11", "I10", "J45", "F32"], n),
        }
    )
    frame.write_csv(tmp_path / "people.csv")
    return frame


@pytest.fixture
def plan(tmp_path):
    """Write a plan that requires what it is told."""

    def write(requirements=""):
        (tmp_path / "plan.toml").write_text(
            f"""{requirements}
[data]
path = "people.csv"
[columns]
name = {{ kind = "nominal", role = "identifier" }}
age = {{ kind = "continuous", role = "key", integer = true }}
sex = {{ kind = "nominal", role = "key" }}
zip = {{ kind = "nominal", role = "key" }}
x = {{ kind = "nominal", role = "other" }}
diagnosis = {{ kind = "nominal", role = "sensitive" }}
[[steps]]
method = "mondrian"
columns = ["age", "sex", "zip"]
[output]
path = "out.csv"
"""
        )
        return "plan.toml"

    return write


def smallest_class(path, keys=("age", "sex", "zip")):
    return pl.read_csv(path).group_by(keys).len()["len"].min()


# ------------------------------------------------------------------------- nothing required, nothing released


def test_a_plan_without_a_requirement_is_not_carried_out(run, people, plan, tmp_path):
    for verb_name in ("check", "run"):
        code, out, err = run(verb_name, plan())
        assert (code, out) == (1, "")
        assert "no requirement limits the risk of the release, so nothing was written; k =" in err
        assert 'hint: write requirements = ["k >= 3"] at the top of the plan; or release without one' in err
    assert not (tmp_path / "out.csv").exists()
    assert "of 300 records are unique on `age`, `sex`, `zip`" in run("check", "plan.toml")[2]
    assert run("check", "plan.toml", "--unjudged")[0] == 0
    assert run("run", "plan.toml", "--unjudged")[0] == 0
    trail = json.loads((tmp_path / "out.private.json").read_text())
    assert trail["unjudged"] is True
    assert trail["met"] is None


@pytest.mark.parametrize("public", [True, False], ids=["public", "internal"])
def test_a_plan_is_carried_out_with_its_report(run, people, plan, tmp_path, public):
    words = ["--report", "told.html", *(["--public"] if public else [])]
    code, _, err = run("run", plan('requirements = ["k >= 3"]'), *words)
    assert code == 0, err
    assert "told.html" in err
    page, twin = (tmp_path / "told.html").read_text(), json.loads((tmp_path / "told.json").read_text())
    assert twin["public"] is public
    assert ("k-anonymity &gt;= 3" in page) is not public
    assert "The requirement of the plan is met." in page
    assert run("run", "plan.toml", *words)[0] != 0  # all of it is there


def test_without_a_release_there_is_no_report(run, people, plan, tmp_path):
    assert run("run", plan('requirements = ["k >= 300"]'), "--report", "told.html")[0] == 1
    assert not (tmp_path / "told.html").exists()
    code, _, err = run("run", "plan.toml", "--public")
    assert code == 2
    assert "`--public` needs `--report FILE.html`" in err
    code, _, err = run("run", "plan.toml", "--report", "people.json", "--overwrite")
    assert code == 2


def test_with_a_requirement_the_same_plan_runs(run, people, plan, tmp_path):
    assert run("check", plan('requirements = ["k >= 3"]'))[0] == 0
    assert run("run", "plan.toml")[0] == 0
    trail = json.loads((tmp_path / "out.private.json").read_text())
    assert (trail["unjudged"], trail["met"]) == (False, True)
    assert smallest_class(tmp_path / "out.csv") >= 3


def test_what_a_method_enforces_is_required_of_all_keys(run, people, tmp_path):
    """Of the keys it left alone a method has promised nothing: the release is judged on all of them."""
    code, _, err = run(
        "protect", "mondrian", "people.csv", "--role", "x=other", "-c", "age,sex,zip", "-o", "all.csv"
    )
    assert code == 0
    assert "met: k-anonymity is" in err
    assert smallest_class(tmp_path / "all.csv") >= 5
    code, _, err = run(
        "protect", "mondrian", "people.csv", "--role", "x=other", "-c", "sex", "-o", "some.csv"
    )
    assert code == 1
    assert "not met: k-anonymity is 1, must be >= 5" in err
    assert not (tmp_path / "some.csv").exists()


def test_protect_asks_what_the_release_must_meet(run, people, tmp_path):
    words = ("protect", "mdav", "people.csv", "-c", "age,sex,zip", "--role", "x=other", "-o", "out.csv")
    code, _, err = run(*words)
    assert code == 1
    assert "no requirement limits the risk of the release, so nothing was written; k = 5: at least 5" in err
    assert "--require 'k >= 3', or --for scientific" in err
    assert not (tmp_path / "out.csv").exists()
    assert run(*words, "--require", "k >= 50")[0] == 1
    assert not (tmp_path / "out.csv").exists()
    assert run(*words, "--require", "k >= 5")[0] == 0
    assert "name" not in pl.read_csv(tmp_path / "out.csv").columns


def test_what_protects_nobody_is_said_loudly(run, people, plan, tmp_path):
    (tmp_path / plan()).write_text(
        (tmp_path / "plan.toml")
        .read_text()
        .replace(
            'method = "mondrian"\ncolumns = ["age", "sex", "zip"]', 'method = "recoding"\ncolumns = ["x"]'
        )
    )
    _, _, err = run("run", "plan.toml", "--unjudged")
    assert (
        "warning: no step protects any of the keys, `age`, `sex`, `zip`: they are released unchanged" in err
    )
    assert "WARNING: in the release k = 1:" in err
    _, _, err = run(
        "protect", "recoding", "people.csv", "--levels", 0, "-c", "zip", "-o", "no.csv", "--unjudged"
    )
    assert "WARNING: step 1 (recoding) changed nothing in zip" in err


# ----------------------------------------------------------------------------------------------- one command


def test_one_command_from_a_file_to_a_folder(run, people, tmp_path):
    code, out, err = run("release", "people.csv", "--for", "scientific", "--role", "x=other", *QUICK)
    assert code == 0, err
    folder = tmp_path / "people-release"
    assert {path.name for path in folder.iterdir()} >= {"release.csv", "report.html", "private"}
    assert smallest_class(folder / "release.csv") >= 3
    assert "name" not in pl.read_csv(folder / "release.csv").columns
    assert "Result: Scientific use file" in out
    assert "Against acquaintance" in out
    assert "Information loss: age given as ranges, typically" in out
    assert "diagnosis untouched" in " ".join(out.split())
    assert "name left out" in out
    assert max(map(len, out.splitlines())) <= 80
    page, own = ((folder / name).read_text() for name in ("report.html", "private/report.html"))
    assert "Public form." in page
    assert "Columns" in page
    assert "k-anonymity" not in page
    assert "k-anonymity &gt;= 3" in own
    assert json.loads((folder / "report.json").read_text())["public"] is True
    assert json.loads((folder / "private" / "report.json").read_text())["public"] is False
    assert run("check", folder / "private" / "plan.toml")[0] == 0


def test_a_key_that_is_dropped_is_no_key_of_the_search(run, people, tmp_path):
    """The profile's intruders know it by name; nothing of what is left has that name."""
    words = ("--for", "scientific", "-y", "--role", "x=other", "--drop", "zip", *QUICK)
    code, out, err = run("release", "people.csv", *words)
    assert code == 0, err
    assert "zip" not in pl.read_csv(tmp_path / "people-release" / "release.csv").columns
    assert "name and zip left out" in " ".join(out.split())


def test_open_roles_are_listed_with_what_to_type(run, people, tmp_path):
    code, _, err = run("release", "people.csv", *QUICK)
    assert code == 2
    assert "these columns have no role: `x`" in err
    assert "--role x=sensitive, key or other; or remove it: --drop x" in err
    assert not (tmp_path / "people-release").exists()


def test_a_wrong_profile_is_told_before_open_roles(run, people):
    code, _, err = run("release", "people.csv", "--for", "publik")
    assert (code, "did you mean `public`" in err, "no role" in err) == (2, True, False)


def test_open_roles_are_asked_on_a_terminal(people, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(verb, "on_terminal", lambda: True)
    words = ["release", "people.csv", *map(str, QUICK)]
    told = CliRunner().invoke(cli, words, input="nonsense\n?\n8\n" + UNSAID)
    assert told.exit_code == 0, told.output
    assert "1 column needs a role" in told.output
    assert "Which role has `x`? (4 distinct values" in told.output
    assert "`nonsense` is not a role" in told.output
    assert 'role = "other"' in (tmp_path / "people-release" / "private" / "plan.toml").read_text()


@pytest.mark.parametrize(
    ("answer", "role"),
    [
        ("1", "key"), ("2", "sensitive"), ("3", "identifier"), ("4", "person"), ("5", "household"),
        ("6", "group"), ("7", "weight"), ("8", "other"), ("key", "key"), ("Sens", "sensitive"), ("p", "person"),
        ("quasi", "key"), ("direct", "identifier"), ("none", "other"), ("9", None), ("keys", None), ("x", None),
    ],
)  # fmt: skip
def test_a_role_is_given_by_number_name_or_beginning(answer, role):
    found = role_of(answer)
    assert (found and found.value) == role


def test_enter_leaves_out_what_nobody_knows(people, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(verb, "on_terminal", lambda: True)
    told = CliRunner().invoke(cli, ["release", "people.csv", *map(str, QUICK)], input="\n" + UNSAID)
    assert told.exit_code == 0, told.output
    assert "x" not in pl.read_csv(tmp_path / "people-release" / "release.csv").columns


def test_what_the_release_is_is_asked_after_the_roles_and_not_twice(people, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(verb, "on_terminal", lambda: True)
    words = ["release", "people.csv", *map(str, QUICK), "--contact", "the clinic"]
    told = CliRunner().invoke(cli, words, input="\n\nPatients\n\n a; b,c ;\n")
    assert told.exit_code == 0, told.output
    assert told.output.index("Which role has `x`? (4 distinct values") < told.output.index(
        "Describe the release"
    )
    assert "contact for questions" not in told.output
    home = tmp_path / "people-release"
    about = Plan.read(home / "private" / "plan.toml").about
    assert about == About(title="Patients", contact="the clinic", recipients=("a", "b,c"))
    assert (
        "## Not stated\n\nDescription, population, reference period, publisher, purpose, "
        in (home / "data-card.md").read_text()
    )
    again = CliRunner().invoke(cli, ["release", str(home / "private" / "plan.toml"), "--overwrite"])
    assert again.exit_code == 0, again.output  # a plan with steps is carried out as it stands
    assert "Describe the release" not in again.output


def test_flags_say_what_the_release_is_before_the_plan_does(run, people, plan, tmp_path):
    path = tmp_path / plan('requirements = ["k >= 3"]')
    path.write_text(f'{path.read_text()}[release]\ntitle = "Old"\nterms = "None but ours"\n')
    flags = ("--title", "New", "--purpose", "Research", "--recipient", "a", "--recipient", "b")
    assert run("release", "plan.toml", *flags, "--out", "rel")[0] == 0
    about = Plan.read(tmp_path / "rel" / "private" / "plan.toml").about
    assert about == About(title="New", purpose="Research", recipients=("a", "b"), terms="None but ours")
    evidence = json.loads((tmp_path / "rel" / "evidence.json").read_text())
    assert evidence["context"]["recipients"] == "a; b"


def test_yes_asks_nothing_and_stops_where_nothing_is_proposed(people, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(verb, "on_terminal", lambda: True)
    told = CliRunner().invoke(cli, ["release", "people.csv", "--yes", *map(str, QUICK)])
    assert told.exit_code != 0
    assert "needs a role" not in told.output
    assert "Describe the release" not in told.output


def test_what_cannot_be_met_is_not_released(run, people, plan, tmp_path):
    path = tmp_path / plan('requirements = ["k >= 3", "earth-movers-distance <= 0.000001"]')
    text = path.read_text()
    path.write_text(text[: text.index("[[steps]]")])
    code, _, err = run("release", "plan.toml", *QUICK)
    assert code == 4, err
    assert "nothing was released" in err
    assert not (tmp_path / "plan-release").exists()


def test_a_secure_release_only_loses_its_names(run, people, tmp_path):
    code, out, _ = run("release", "people.csv", "--for", "secure", "--role", "x=other", "--out", "safe")
    assert code == 0
    assert "There is no requirement on risk" in out
    assert "WARNING: in the release k = 1" in out
    assert json.loads((tmp_path / "safe" / "private" / "trail.private.json").read_text())["unjudged"] is True


def test_an_unknown_profile_or_role(run, people):
    assert run("release", "people.csv", "--role", "x=other", "--for", "publik")[0] == 2
    code, _, err = run("release", "people.csv", "--role", "x=kee")
    assert code == 2
    assert "kee" in err
    assert run("release", "people.csv", "--role", "x")[0] == 2
    assert run("release", "people.csv", "--role", "y=key")[0] == 2


# ----------------------------------------------------------------------------------------------- plan or file


def test_a_plan_stands_for_its_data(run, people, plan):
    plan('requirements = ["k >= 3"]')
    code, out, _ = run("risk", "plan.toml", "-m", "k", "--json")
    assert code == 0
    assert json.loads(out) == json.loads(
        run("risk", "people.csv", "--plan", "plan.toml", "-m", "k", "--json")[1]
    )
    assert run("protect", "mondrian", "plan.toml", "-c", "age,sex,zip", "-o", "o.csv")[0] == 0
    assert run("utility", "plan.toml", "o.csv", "-m", "il1s")[0] in {0, 2}
    assert run("inspect", "plan.toml", "--json")[0] == 0


@pytest.mark.parametrize("verb_name", ["run", "check"])
def test_data_in_place_of_a_plan_say_the_way_on(run, people, verb_name):
    code, _, err = run(verb_name, "people.csv")
    assert code == 2
    assert "is a data file, not a plan" in err
    assert "sfumato release people.csv" in err


def test_a_secure_release_makes_pseudonyms_itself(run, tmp_path):
    """Numbers of persons, and keys that are numbers of someone, are renamed: nothing is overridden."""
    code, out, err = run("release", "builtin:patients?n=60", "--for", "secure", "--out", "safe")
    assert code == 0, err
    assert "oshpd_id replaced by pseudonyms" in out
    frame = pl.DataFrame({"person": np.repeat(np.arange(20) + 7000, 2), "age": np.arange(40) % 9 + 20})
    frame.write_csv(tmp_path / "visits.csv")
    words = ("release", "visits.csv", "--role", "person=person", "--role", "age=key", "--for", "secure")
    assert run(*words, "--out", "again")[0] == 0
    assert not set(pl.read_csv(tmp_path / "again" / "release.csv")["person"]) & set(frame["person"])


def test_what_matters_is_asked_and_kept_in_the_plan(people, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(verb, "on_terminal", lambda: True)
    words = ["release", "people.csv", "--role", "x=other", *map(str, QUICK)]
    told = CliRunner().invoke(cli, words, input="agge\nage, zip\n" + "\n" * 4)
    assert told.exit_code == 0, told.output
    assert "not one of these columns: `agge`" in told.output
    schema = Plan.read(tmp_path / "people-release" / "private" / "plan.toml").schema
    assert {name: schema[name].importance for name in ("age", "zip", "sex")} == {"age": 3, "zip": 3, "sex": 1}
    words = [*words, "--yes", "--matters", "sex", "--out", "again"]
    assert CliRunner().invoke(cli, words).exit_code == 0
    assert Plan.read(tmp_path / "again" / "private" / "plan.toml").schema["sex"].importance == 3
    words[-3] = "lost"
    assert CliRunner().invoke(cli, [*words, "--overwrite"]).exit_code != 0
