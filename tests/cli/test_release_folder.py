"""From a file never seen to a verified release in three commands; and what stands in the way, with its exit code."""

import json
import random
import shutil

import pytest


@pytest.fixture
def clinic(tmp_path):
    draw = random.Random(5)
    lines = ["name,age,sex,town,diagnosis"]
    for number in range(300):
        town, ill = draw.choice(["Bonn", "Kiel", "Ulm"]), draw.choice(["E11", "F32", "I10", "J45"])
        lines.append(f"Person {number},{draw.randint(18, 90)},{draw.choice('fm')},{town},{ill}")
    (tmp_path / "clinic.csv").write_text("\n".join(lines) + "\n")
    return tmp_path / "clinic.csv"


def plan_of(folder, *, k=2, name="identifier", output="out.csv", more=""):
    (folder / "plan.toml").write_text(
        f"""
requirements = ["k >= {k}"]
data.path = "clinic.csv"
columns.name = {{ kind = "nominal", role = "{name}" }}
columns.age = {{ kind = "continuous", role = "key", integer = true }}
columns.sex = {{ kind = "nominal", role = "key" }}
columns.town = {{ kind = "nominal", role = "key" }}
columns.diagnosis = {{ kind = "nominal", role = "sensitive" }}
steps = [{{ method = "mondrian", columns = ["@key"], parameters = {{ k = 5 }} }}]
output.path = "{output}"
{more}
"""
    )
    return "plan.toml"


def states(run, *words):
    code, out, err = run("verify", *words, "--json")
    return code, next(iter(json.loads(out).values()))["files"] if out else {}, err


def test_from_a_file_never_seen_to_a_verified_release_in_three_commands(run, clinic):
    assert run("inspect", "clinic.csv")[0] == 0
    assert run("release", "clinic.csv", "--minutes", "0.01", "-m", "mondrian")[0] == 0
    code, out, _ = run("verify", "clinic-release")
    assert code == 0
    assert "release.csv" in out
    assert "reproduced from the original, byte for byte" in out


def test_a_plan_with_steps_is_carried_out_as_it_stands(run, clinic, tmp_path):
    code, out, err = run("release", plan_of(tmp_path))
    assert code == 0, err
    assert "searching" not in err
    assert "Made by mondrian(k=5)" in out
    assert states(run, "plan-release")[1]["out.csv"] == "identical"
    assert run("release", "plan-release/private/plan.toml")[0] == 3
    code, _, err = run("release", "plan-release/private/plan.toml", "--overwrite")
    assert code == 0, err
    assert states(run, "plan-release")[0] == 0


def test_release_folders_in_a_series(run, clinic, tmp_path):
    """The second knows the people of the first, and both are made again from what they keep."""
    noise = 'requirements = ["dbrl <= 0.5"]\nsteps = [{ method = "uncorrelated-noise", columns = ["age"] }]'
    for wave, earlier in (("one", ""), ("two", 'earlier = ["one"]')):
        plan_of(tmp_path, name="person", more=f'output.drop = ["name"]\n[series]\n{earlier}')
        text = (tmp_path / "plan.toml").read_text().splitlines()
        kept = [line for line in text if not line.startswith(("requirements", "steps"))]
        (tmp_path / "plan.toml").write_text("\n".join([noise, *kept]))
        code, _, err = run("release", "plan.toml", "--out", wave)
        assert code == 0, err
        assert states(run, wave)[1]["out.csv"] == "identical"
    own, public = (
        json.loads((tmp_path / "two" / name).read_text())
        for name in ("private/evidence.json", "evidence.json")
    )
    assert own["identifiability"]["earlier_releases"] == {"see": "report.json#/series", "says": "measured"}
    assert public["identifiability"]["earlier_releases"]["says"] == "confidential: with the owner"
    assert (
        json.loads((tmp_path / "two/private/report.json").read_text())["series"]["persons_in_common"] == 300
    )
    assert "Longitudinal releases" in (tmp_path / "two/private/report.html").read_text()


def test_every_verb_finds_the_trail_in_the_private_part(run, clinic, tmp_path):
    run("release", plan_of(tmp_path), "--out", "rel")
    _, _, err = run("risk", "plan.toml", "rel/out.csv", "-m", "dbrl")
    assert "true matches are checked by the private trail" in err
    assert run("utility", "plan.toml", "rel/out.csv", "-m", "il1s", "--json")[0] in {0, 2}
    gate = (
        "gate",
        "rel/out.csv",
        "--original",
        "clinic.csv",
        "--plan",
        "plan.toml",
        "--require",
        "dbrl <= 0.99",
    )
    code, _, err = run(*gate, "--require", "k >= 299", "--override", "tried")
    assert code == 0, err
    assert "tried" in (tmp_path / "rel" / "private" / "overrides.private.jsonl").read_text()
    assert states(run, "rel")[0] == 0
    assert states(run, "rel/out.csv")[1]["out.csv"] == "identical"


@pytest.mark.parametrize(
    ("changed", "rule"), [({"k": 200}, "requirement-missed"), ({"name": "other"}, "identifier-left-in")]
)
def test_what_blocks_is_said_and_yields_to_a_reason_only(run, clinic, tmp_path, changed, rule):
    path = tmp_path / plan_of(tmp_path, **changed)
    path.write_text(path.read_text())
    clinic.write_text(clinic.read_text().replace("Person ", "person@example.org"))
    code, _, err = run("release", "plan.toml", "--out", "rel")
    assert code == 1
    assert rule in err
    assert "example.org" not in err
    assert not (tmp_path / "rel").exists()
    assert run("release", "plan.toml", "--out", "rel", "--override", " ")[0] == 2
    assert run("release", "plan.toml", "--out", "rel", "--override", "agreed")[0] == 0
    assert states(run, "rel")[0] == 0
    evidence = json.loads((tmp_path / "rel" / "private" / "evidence.json").read_text())
    assert evidence["governance"]["overridden"]["reason"] == "agreed"
    assert evidence["governance"]["overridden"]["rules"] == [rule]


def test_each_fault_is_a_sentence_and_an_exit_code(run, clinic, tmp_path):
    assert run("release", plan_of(tmp_path), "--out", "rel")[0] == 0
    code, _, err = run("verify", ".")  # another folder
    assert (code, err.count("\n")) == (3, 3)
    assert "has no private trail of a release" in err
    assert run("verify", "nowhere")[0] == 3
    (tmp_path / "other.csv").write_text(clinic.read_text().replace("Bonn", "Ulm"))
    code, _, err = run("verify", "rel", "--original", "other.csv")
    assert code == 3
    assert "not the original that was released" in err
    (tmp_path / "rel" / "private" / "trail.private.json").rename(tmp_path / "trail")
    code, files, err = states(run, "rel")
    assert (code, files["private/trail.private.json"]) == (1, "missing")
    said = {**json.loads((tmp_path / "trail").read_text()), "trail": 99}
    (tmp_path / "late.private.json").write_text(json.dumps(said))
    code, _, err = run("verify", "late.private.json")
    assert code == 3
    assert "a later version than sfumato" in err
    shutil.rmtree(tmp_path / "rel" / "private")
    code, files, err = states(run, "rel")
    assert code == 0
    assert files["out.csv"] == "unchanged"
    assert "`private` is not here" in err


def test_where_it_goes_is_looked_at_before_the_work(run, clinic, tmp_path):
    plan_of(tmp_path)
    code, _, err = run("release", "clinic.csv", "--out", ".")
    assert code == 3
    assert "is the folder you are in" in err
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    for words in (("clinic.csv",), ("plan.toml",), ("plan.toml", "--overwrite")):
        code, _, err = run("release", *words, "--out", "full")
        assert code == 3
        assert "searching" not in err
    assert (tmp_path / "full" / "mine.txt").read_text() == "mine"
    assert run("release", "plan.toml", "--out", "no/where")[0] == 3
    plan_of(tmp_path, output="sqlite:///x.db?table=t")
    assert run("release", "plan.toml", "--out", "rel")[0] == 2
    plan_of(tmp_path, output="evidence.json")
    assert run("release", "plan.toml", "--out", "rel")[0] == 2
    assert not (tmp_path / "rel").exists()
    assert not list(tmp_path.glob(".sfumato*"))


def test_whose_a_pseudonym_is_by_the_trail_of_the_folder(run, tmp_path):
    rows = "".join(f"p{i},{20 + i % 9}\n" for i in range(45))
    (tmp_path / "stays.csv").write_text("pid,age\n" + rows)
    (tmp_path / "plan.toml").write_text(
        """
requirements = ["k >= 2"]
data.path = "stays.csv"
columns.pid = { kind = "nominal", role = "identifier", pseudonym = "person" }
columns.age = { kind = "continuous", role = "key" }
steps = [{ method = "mondrian", columns = ["age"] }]
output.path = "out.csv"
"""
    )
    assert run("release", "plan.toml", "--out", "rel")[0] == 0
    name = (tmp_path / "rel" / "out.csv").read_text().splitlines()[1].split(",")[0]
    code, out, err = run("lookup", "rel/private/plan.toml", name, "--json")
    assert code == 0, err
    assert json.loads(out)[name][0][1].startswith("p")
