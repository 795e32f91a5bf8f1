"""Every verb as a user types it: what goes to stdout, what to stderr, and how it ends."""

import json
import os
import re
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
from sfumato.cli import cli
from sfumato.core import registry
from sfumato.core.measure import Scaling


@pytest.fixture
def people(tmp_path):
    """A small file of people, with a name, a weight and a hole."""
    rng = np.random.default_rng(1)
    n = 120
    frame = pl.DataFrame(
        {
            "name": [f"Person {i}" for i in range(n)],
            "age": rng.integers(18, 90, n),
            "income": rng.lognormal(10, 1, n).round(2),
            "wealth": [None, *rng.lognormal(11, 2, n - 1).round(2)],
            "region": rng.choice(["north", "south"], n),
        }
    )
    frame.write_csv(tmp_path / "people.csv")
    return frame


PLAN = """
requirements = ["rank-linkage >= {level}"]

[data]
path = "people.csv"

[columns.name]
kind = "nominal"
role = "identifier"
[columns.age]
kind = "continuous"
role = "key"
integer = true
[columns.income]
kind = "continuous"
role = "key"
[columns.wealth]
kind = "continuous"
role = "sensitive"
[columns.region]
kind = "nominal"
role = "other"

[[steps]]
method = "rank-swapping"
columns = ["age", "income"]
parameters = {{ window = 20 }}

[output]
path = "release.csv"
drop = ["name"]
"""


@pytest.fixture
def plan(tmp_path, people):
    path = tmp_path / "plan.toml"
    path.write_text(PLAN.format(level=0.1))
    return path


# ------------------------------------------------------------------------------------------------ lists


def test_help_lists_every_verb(run):
    code, out, _ = run("--help")
    assert code == 0
    for verb in cli.list_commands(None):
        assert re.search(rf"^  {verb} +\w", out, re.MULTILINE)


@pytest.mark.parametrize("verb", cli.list_commands(None))
def test_every_verb_has_help(run, verb):
    code, out, _ = run(verb, "--help")
    assert code == 0
    assert out.startswith(f"Usage: sfumato {verb}")


@pytest.mark.parametrize(
    ("verb", "known"), [("methods", registry.methods()), ("measures", registry.measures())]
)
def test_methods_and_measures(run, verb, known):
    code, out, err = run(verb)
    assert (code, err) == (0, "")
    for name in known:
        assert re.search(rf"^  {name}[ ,]", out, re.MULTILINE)
    code, out, _ = run(verb, "--json")
    described = json.loads(out)
    assert {each["name"] for each in described} == set(known)
    for each in described:
        assert {"name", "title", "family", "kinds", "parameters", "references"} <= set(each)
    one = next(iter(known))
    code, out, _ = run(verb, one)
    assert code == 0
    assert "Where it comes from" in out
    assert json.loads(run(verb, one, "--json")[1])["name"] == one


def test_lists_can_be_cut_down_to_a_purpose(run):
    code, out, _ = run("methods", "--for", "nominal,requirements")
    assert code == 0
    assert "  mondrian " in out
    assert "mdav" not in out
    out = run("measures", "--for", "utility,set")[1]
    assert "Utility: cells" in out
    assert "Risk" not in out
    code, _, err = run("methods", "--for", "nominel")
    assert (code, "did you mean `nominal`" in err) == (2, True)


def test_bare_sfumato_greets(run):
    code, out, err = run()
    assert (code, err) == (0, "")
    assert "sfumato inspect FILE" in out
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize("path", [".", "/", ""])
@pytest.mark.parametrize(
    ("verb", "told"),
    [
        (("inspect",), "is a folder, not a file"),
        (("risk",), "is a folder without the private part of a release"),
        (("tune",), "is a folder without the private part of a release"),
        (("run",), "cannot read the plan `{}`: it is a folder"),
        (("convert", "x.csv"), "is a folder, not a file"),
        (("protect", "mdav", "--out", "x.csv"), "is a folder without the private part of a release"),
    ],
)
def test_a_folder_is_not_a_file(run, verb, told, path):
    before = 2 if verb[0] == "protect" else 1
    code, out, err = run(*verb[:before], path, *verb[before:])
    assert (code, out) == (3, "")
    assert told.format(path or ".") in err


def test_a_name_that_no_system_takes_is_said(run):
    code, out, err = run("inspect", "x" * 5000 + ".csv")
    assert (code, out) == (3, "")
    assert "file name too long" in err


def test_an_output_that_takes_nothing_is_said(run):
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "sfumato", "methods"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 3
    assert done.stderr == "error: the output cannot be written: no space left on device\n"


def test_protect_help_lists_every_method_and_its_options(run):
    out = run("protect", "--help")[1]
    for name, method in registry.methods().items():
        assert f"  {name} " in out
        options = run("protect", name, "--help")[1]
        for declared in method.parameters():
            assert f"--{declared.name.replace('_', '-')}" in options


def test_doctor(run):
    code, out, _ = run("doctor", "--json")
    assert code == 0
    assert json.loads(out)["kernels"]["state"] == "ok"


def test_doctor_compiles_ahead(run, monkeypatch):
    """Every setting that is a choice is tried on a kind of column, and one that refuses stops nothing."""
    tried = []
    monkeypatch.setattr(registry, "methods", lambda: {"mdav": registry.method("mdav")})
    monkeypatch.setattr(registry, "measures", lambda: {"k-anonymity": registry.measure("k-anonymity")})
    score = registry.measure("k-anonymity").score
    monkeypatch.setattr(registry.measure("k-anonymity"), "score", lambda *a: tried.append(a) or score(*a))
    code, out, err = run("doctor", "--warm", "--json")
    assert code == 0
    assert json.loads(out)["kernels"]["state"] == "ok"
    assert "compiling kernels" in err
    assert len({evidence.original.schema["a"].kind for _, evidence, _ in tried}) > 3
    assert len({measure for measure, _, _ in tried}) > 1


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(run, shell):
    code, out, _ = run("completion", shell)
    assert code == 0
    assert "_SFUMATO_COMPLETE" in out


# ---------------------------------------------------------------------------------------------- inspect


def test_inspect_and_a_starter_plan_that_works(run, people, tmp_path):
    code, out, err = run("inspect", "people.csv", "--write-plan", "plan.toml")
    assert code == 0
    assert "120 records, 5 columns" in err
    for column in people.columns:
        assert f"\n{column} " in out
    said = tomllib.loads((tmp_path / "plan.toml").read_text())
    assert said["columns"]["name"]["role"] == "identifier"
    assert "drop" not in said["output"]  # its role says enough
    assert {scenario["name"] for scenario in said["scenarios"]} == {"acquaintance", "matching"}
    assert said["steps"][0]["method"] == "mondrian"
    assert "the plan has the requirements of `scientific`" in err
    described = json.loads(run("inspect", "people.csv", "--json")[1])
    assert described["records"] == 120
    assert all(column["role_reason"] for column in described["columns"])


def test_inspect_shows_no_cell(run, people):
    _, out, err = run("inspect", "people.csv")
    assert "Person 7" not in out + err


# ---------------------------------------------------------------------------------------------- protect


def test_protect_imports_the_method_that_is_named_and_no_other(people, tmp_path):
    """Options of one method need no import of the other sixty; nor do their names and summaries."""
    script = (
        "import sys; from sfumato.cli import _exit_code; code = _exit_code(sys.argv[1:]); "
        "print(code, *(name for name in sys.modules if name.startswith('sfumato.methods.')))"
    )

    def modules(*arguments):
        command = [sys.executable, "-c", script, "protect", *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()[-1].split()

    assert modules("--help") == ["0"]
    code, *loaded = modules("mdav", "people.csv", "-c", "age,income", "--unjudged", "-o", "out.csv")
    assert code == "0"
    assert [name for name in loaded if "._" not in name] == ["sfumato.methods.microaggregation"]


@pytest.mark.parametrize(
    ("options", "n_combinations"), [(("--subsets", "age+region,income:2"), 2), (("--combine", 2), 3)]
)
def test_protect_is_judged_by_the_combinations_that_it_enforces(run, people, options, n_combinations):
    keys = [f"--role={name}=key" for name in ("age", "income", "region")]
    code, _, err = run(
        "protect", "local-suppression", "people.csv", "-c", "age,income,region", "--k", 3, *keys, *options,
        "--drop", "name,wealth", "-o", "out.csv",
    )  # fmt: skip
    assert code == 0
    assert err.count(" met: k-anonymity") == n_combinations


def test_protect_writes_a_shuffled_file_without_row_numbers(run, people, tmp_path):
    code, out, err = run(
        "protect", "mdav", "people.csv", "-c", "age,income", "--k", 4, "--unjudged", "-o", "out.csv"
    )
    assert (code, out) == (0, "")
    assert "120 records written to out.csv" in err
    after = pl.read_csv(tmp_path / "out.csv")
    assert after.columns == ["age", "income", "wealth", "region"]
    assert after.group_by("age", "income").len()["len"].min() >= 4
    assert after["wealth"].to_list() != people["wealth"].to_list()
    assert sorted(after["wealth"].drop_nulls()) == sorted(people["wealth"].drop_nulls())


def test_protect_repeats_with_a_seed_and_not_without(run, people, tmp_path):
    def once(name, *more):
        assert (
            run(
                "protect",
                "correlated-noise",
                "people.csv",
                "--unjudged",
                "-c",
                "income",
                "--drop",
                "name",
                "-o",
                name,
                *more,
            )[0]
            == 0
        )
        return (tmp_path / name).read_bytes()

    assert once("a.csv", "--seed", LARGE) == once("b.csv", "--seed", LARGE)
    assert once("c.csv") != once("d.csv")


def test_an_identifier_is_left_out_by_its_role_alone(run, people, tmp_path):
    code, _, err = run("protect", "mdav", "people.csv", "-c", "age", "-o", "out.csv", "--unjudged")
    assert code == 0
    assert "removed, because they identify people: name" in err
    assert "name" not in pl.read_csv(tmp_path / "out.csv").columns


# ----------------------------------------------------------------------------------------- risk, utility


def test_protect_renames_people_and_warns_of_numbers_left_as_they_are(run, tmp_path):
    ids = [f"P-{i}" for i in range(1000, 1060)]
    frame = pl.DataFrame({"patient": ids * 2, "home": ids * 2, "cost": np.arange(120.0)})
    frame.write_csv(tmp_path / "stays.csv")
    (tmp_path / "plan.toml").write_text(
        '[columns]\npatient = { kind = "nominal", role = "person", pseudonym = "person" }\n'
        'home = { kind = "nominal", role = "household" }\ncost = { kind = "continuous", role = "key" }\n'
    )
    verb = ("protect", "rounding", "stays.csv", "--plan", "plan.toml", "-o", "out.csv", "--unjudged")
    code, _, err = run(*verb)
    assert code == 1
    assert "identifier-left-in: `home` is the household's number" in err
    assert not (tmp_path / "out.csv").exists()
    code, _, err = run(*verb, "--override", "the numbers are made up")
    assert code == 0, err
    assert "warning: `home` is the household's number, released unchanged" in err
    assert "`patient` is the" not in err
    out = pl.read_csv(tmp_path / "out.csv")
    assert out["patient"].str.contains("^[0-9a-f]{32}$").all()
    assert out["patient"].n_unique() == 60


def test_a_format_nobody_can_write_is_told_before_the_work(run, people, plan):
    plan.write_text(plan.read_text().replace("release.csv", "release.doc"))
    for arguments in (
        ("protect", "mdav", "people.csv", "--drop", "name", "-o", "out.doc"),
        ("protocol", "people.csv", "-m", "mdav", "-c", "age", "--drop", "name", "-o", "out.doc"),
        ("run", "plan.toml"),
    ):
        code, out, err = run(*arguments)
        assert (code, out) == (3, "")
        assert err.startswith("error: the format of `")


def test_usual_risks_of_a_large_file_are_estimated_and_offer_the_exact_ones(run, people, monkeypatch):
    for name, drawn in (
        ("dbrl", 50),
        ("rank-linkage", 20_000),
        ("permutation-distance", 20_000),
        ("gdbrl", 0),
    ):
        monkeypatch.setattr(registry.measure(name), "scales", Scaling(exact_up_to=100, persons_drawn=drawn))
    both = ("-c", "age,income", "--seed", LARGE)
    run("protect", "rank-swapping", "people.csv", "--unjudged", "--drop", "name", *both, "-o", "out.csv")
    asked = ("risk", "people.csv", "out.csv", *both)
    code, out, err = run(*asked)
    assert code == 0
    assert "estimated from 50 persons drawn, with 95 % confidence" in " ".join(out.split())
    assert "note: for gdbrl of all 120 records add -m gdbrl" in " ".join(err.split())
    said = json.loads(run(*asked, "--json")[1])
    assert said["dbrl"]["status"] == "approximate"
    assert said["gdbrl"]["value"] is None
    named = json.loads(run(*asked, "--json", "-m", "dbrl")[1])["dbrl"]
    assert named["status"] == "ok"
    assert said["dbrl"]["interval"][0] <= named["value"] <= said["dbrl"]["interval"][1]
    assert run(*asked, "--require", "dbrl <= 0.99")[0] == 0  # judged exactly


def test_risk_and_utility_in_json(run, people):
    run(
        "protect",
        "rank-swapping",
        "people.csv",
        "--unjudged",
        "-c",
        "age,income",
        "--drop",
        "name",
        "-o",
        "out.csv",
        "--seed",
        LARGE,
    )
    code, out, _ = run("risk", "people.csv", "out.csv", "-c", "age,income", "--json")
    assert code == 0
    scores = json.loads(out)
    assert scores["rank-linkage"]["status"] == "ok"
    assert 0 < scores["permutation-distance"]["value"] < 1
    assert "by_record" not in scores["rank-linkage"]
    private = json.loads(
        run("risk", "people.csv", "out.csv", "-c", "age,income", "--json", "--per-record")[1]
    )
    assert len(private["rank-linkage"]["by_record"]) == 120
    code, out, _ = run("utility", "people.csv", "out.csv", "-m", "earth-movers-distance")
    assert code == 0
    assert "earth-movers-distance" in out


def test_a_requirement_unmet_is_exit_code_1(run, people):
    run("protect", "mdav", "people.csv", "-c", "age,income", "--unjudged", "-o", "out.csv")
    code, _, err = run("risk", "people.csv", "out.csv", "-c", "age,income", "--require", "rank-linkage >= 99")
    assert code == 1
    assert "not met: rank-linkage is" in err
    assert run("risk", "people.csv", "out.csv", "-c", "age,income", "--require", "rank-linkage >= 0")[0] == 0


ESTIMATE = """
requirements = ["individual-risk(fraction=0.02) <= 0.2 at 90%"]

[data]
path = "drawn.csv"

[columns.area]
kind = "nominal"
role = "key"

[[steps]]
method = "record-suppression"
columns = ["area"]
parameters = { k = 1, also = ["individual-risk(fraction=0.02) <= 0.2 at 90%"] }

[output]
path = "out.csv"
"""


def test_an_estimate_gates_where_it_is_asked_for(run, tmp_path):
    """Verdict, trail and plan say that it is estimated; without a confidence nothing passes."""
    pl.DataFrame({"area": list("aaaaaabbbbbbccc")}).write_csv(tmp_path / "drawn.csv")
    risk, measure = ("risk", "drawn.csv", "-c", "area", "--require"), "individual-risk(fraction=0.02)"
    code, out, err = run(*risk, f"{measure} <= 0.9 at 90%")
    assert code == 0
    assert f"met: {measure} may be 0.1111 (estimated at 90%)" in err
    assert "(90% confidence)" in out
    assert "expected reidentifications" in out
    code, _, err = run(*risk, f"{measure} <= 0.9")
    assert code == 1
    assert "if an estimate will do, say `at 95%`" in err
    assert run(*risk, f"{measure} <= 0.1 at 90%")[0] == 1
    (tmp_path / "plan.toml").write_text(ESTIMATE, encoding="utf-8")
    code, _, err = run("run", "plan.toml")
    assert code == 0, err
    trail = json.loads((tmp_path / "out.private.json").read_text(encoding="utf-8"))
    assert "(estimated at 90%)" in trail["requirements"][0]["verdict"]
    assert trail["requirements"][0]["score"]["confidence"] == 90
    assert "<= 0.2 at 90%" in trail["requirements"][0]["requirement"]


def test_two_requirements_on_one_measure_are_judged_apart(run, people):
    """Both are scored with their own settings: the strict one must not be passed by the lax one's score."""
    run("protect", "mdav", "people.csv", "-c", "age,income", "--unjudged", "-o", "out.csv")
    strict, lax = "rank-linkage >= 4", "rank-linkage(floor=1000000) >= 4"
    common = ["risk", "people.csv", "out.csv", "-c", "@key,income"]
    assert run(*common, "--require", strict)[0] == 1
    code, out, err = run(*common, "--require", lax)
    assert code == 0, out + err
    assert run(*common, "--require", strict, "--require", lax)[0] == 1


def test_the_raw_file_alone_is_refused_with_a_reason(run, people):
    code, out, _ = run("risk", "people.csv", "-c", "age", "--json")
    assert code == 0
    assert json.loads(out)["rank-linkage"]["status"] == "refused"


# ---------------------------------------------------------------------------------------------- compare


def test_compare_ranks_and_reports(run, people, tmp_path):
    code, out, err = run(
        "compare", "people.csv", "-c", "age,income", "-m", "mdav", "-m", "rank-swapping", "--repeats", 2,
        "--points", 3, "--seed", 1, "--report", "report.html",
    )  # fmt: skip
    assert code == 0
    assert re.search(r"^ +1 ", out, re.MULTILINE)
    assert "held at" in err
    html = (tmp_path / "report.html").read_text()
    assert "Person 7" not in html
    assert json.loads((tmp_path / "report.json").read_text())


def test_compare_at_an_unreachable_level_is_exit_code_4(run, people):
    code, _, err = run(
        "compare", "people.csv", "-c", "age,income", "-m", "mdav", "--level", 50, "--repeats", 1
    )
    assert code == 4
    assert "50 is unreachable: the nearest is" in err


# -------------------------------------------------------------------------------------------------- run


def test_run_writes_the_release_and_its_private_trail(run, plan, people, tmp_path):
    code, out, err = run("run", "plan.toml")
    assert (code, out) == (0, "")
    after = pl.read_csv(tmp_path / "release.csv")
    assert after.columns == ["age", "income", "wealth", "region"]
    assert sorted(after["income"]) == sorted(people["income"])
    trail = json.loads((tmp_path / "release.private.json").read_text())
    assert trail["seed"] not in err
    assert (tmp_path / "release.private.json").stat().st_mode & 0o077 == 0
    first = (tmp_path / "release.csv").read_bytes()
    assert run("run", "plan.toml", "--replay", "release.private.json", "--overwrite")[0] == 0
    assert (tmp_path / "release.csv").read_bytes() == first
    assert run("run", "plan.toml", "--overwrite")[0] == 0
    assert (tmp_path / "release.csv").read_bytes() != first


def test_run_writes_nothing_when_a_requirement_is_not_met(run, people, tmp_path):
    (tmp_path / "plan.toml").write_text(PLAN.format(level=99))
    code, _, err = run("run", "plan.toml")
    assert code == 1
    assert "nothing was written" in err
    assert "hint: every run draws new random numbers" in err
    assert not (tmp_path / "release.csv").exists()
    assert "hint: make a step stronger" in run("run", "plan.toml", "--seed", LARGE)[2]


def test_run_tells_what_a_method_notes(run, plan):
    step = 'method = "global-recoding"\ncolumns = ["age", "income"]\n[output]'
    said = plan.read_text().replace("rank-linkage >= 0.1", "k >= 2")
    plan.write_text(re.sub(r'method = "rank-swapping".*\[output\]', step, said, flags=re.DOTALL))
    code, _, err = run("run", "plan.toml")
    assert code == 0
    assert "note: no hierarchy is declared for `age`" in err


@pytest.mark.parametrize("said", ["", "[output]"])
def test_what_cannot_be_written_is_told_before_the_work(run, people, plan, tmp_path, said):
    if said:
        plan.write_text(plan.read_text().replace('path = "release.csv"', ""))
    else:
        (tmp_path / "release.private.json").write_text("{}")
    code, out, err = run("run", "plan.toml", "--json")
    assert (code, out) == ((2, "") if said else (3, ""))
    assert ("the plan names no output" if said else "release.private.json` exists already") in err


def test_check(run, plan):
    code, out, err = run("check", "plan.toml")
    assert (code, out) == (0, "")
    assert "no faults: 1 step" in err


# --------------------------------------------------------------------------------------------- bad input


def three_mistakes(text):
    return (
        text.replace('kind = "continuous"\nrole = "sensitive"', 'kind = "continous"\nrole = "sensitive"')
        .replace("window = 20", "window = 2000")
        .replace("rank-linkage >=", "rank-linkages >=")
    )


def test_a_plan_with_three_mistakes_names_all_three(run, people, tmp_path):
    (tmp_path / "plan.toml").write_text(three_mistakes(PLAN.format(level=0.1)))
    code, _, err = run("check", "plan.toml")
    assert code == 2
    assert "3 faults" in err
    for word in ("`continous`", "above 0 and at most 100, got: `2000`", "did you mean `rank-linkage`"):
        assert word in err


BAD = {
    "a missing file": (["protect", "mdav", "peeple.csv", "-o", "out.csv"], 3, "people.csv"),
    "an unknown column": (["protect", "mdav", "people.csv", "-c", "incom", "-o", "out.csv"], 2, "`income`"),
    "k above n": (
        ["protect", "mdav", "people.csv", "-c", "age", "--drop", "name", "--k", "121", "-o", "out.csv"], 2, "at most",
    ),
    "negative noise": (
        ["protect", "correlated-noise", "people.csv", "-c", "age", "--ratio", "-1", "-o", "out.csv"], 2, "above 0",
    ),
    "not a number": (["protect", "mdav", "people.csv", "--k", "five", "-o", "out.csv"], 2, "`k` of mdav must be a whole number"),
    "a text column": (["protect", "correlated-noise", "people.csv", "-c", "region", "--drop", "name", "-o", "out.csv"], 2, "nominal"),
    "an unknown method": (["protect", "mdaw", "people.csv", "-o", "out.csv"], 2, "`mdav`"),
    "an unknown verb": (["protekt"], 2, "`protect`"),
    "an unknown measure": (["risk", "people.csv", "people.csv", "-m", "rank-linkag"], 2, "`rank-linkage`"),
    "a measure of the other aspect": (["risk", "people.csv", "people.csv", "-m", "earth-movers-distance"], 2, "utility"),
    "a folder that is not there": (
        ["protect", "mdav", "people.csv", "-c", "age", "--drop", "name", "-o", "no/out.csv"], 3, "folder",
    ),
    "the original as output": (
        ["protect", "mdav", "people.csv", "-c", "age", "--drop", "name", "-o", "people.csv", "--overwrite"],
        3, "original",
    ),
    "an unknown format": (["inspect", "people.docx"], 3, ".csv"),
    "a missing plan": (["run", "plan.toml"], 3, "inspect"),
    "an unknown data set": (["inspect", "builtin:randd"], 2, "rand"),
    "a nonsense requirement": (["risk", "people.csv", "people.csv", "--require", "safe"], 2, "rank-linkage >= 0.45"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gives_one_sentence_a_hint_and_nothing_half_written(run, people, tmp_path, case):
    arguments, expected, word = BAD[case]
    (tmp_path / "people.docx").write_text("x")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    code, out, err = run(*arguments)
    assert code == expected
    assert out == ""
    assert "error: " in err
    assert word in err
    assert "Traceback" not in err
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_ragged_file_names_the_line(run, tmp_path):
    (tmp_path / "ragged.csv").write_text("a,b\n1,2\n3,4,Zanzibarquux\n5,6\n")
    code, _, err = run("inspect", "ragged.csv")
    assert code == 3
    assert "line 3" in err
    assert "Zanzibarquux" not in err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written(run, people, tmp_path):
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    code, _, err = run("protect", "mdav", "people.csv", "-c", "age", "--drop", "name", "-o", "locked/out.csv")
    assert code == 3
    assert "may write" in err


def test_an_internal_error_shows_no_cell(run, people, monkeypatch):
    from sfumato.methods.microaggregation import Mdav

    def broken(self, table, run):
        raise KeyError(f"value {table.frame['income'][0]} is odd")

    monkeypatch.setattr(Mdav, "protect", broken)
    code, _, err = run("protect", "mdav", "people.csv", "-c", "age", "--drop", "name", "-o", "out.csv")
    assert code == 70
    assert "KeyError" in err
    assert str(people["income"][0]) not in err


def test_ctrl_c_stops_cleanly(tmp_path):
    """A real process, a real signal in the middle of a search: exit code 130 and no file."""
    command = [
        sys.executable, "-m", "sfumato", "compare", "builtin:patients?n=20000", "-c", "age_yrs,los,charge",
        "-m", "rank-swapping", "--level", "0.5", "--repeats", "50", "--report", "report.html",
    ]  # fmt: skip
    process = subprocess.Popen(
        command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    for line in process.stderr:
        if "reaching the level" in line:
            break
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


def test_the_installed_command_answers():
    done = subprocess.run(
        [sys.executable, "-m", "sfumato", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("sfumato, version ")


@pytest.mark.filterwarnings("always::sfumato.errors.RenamedWarning")
def test_former_words_are_understood_with_a_note(run):
    words = "protect record-suppression builtin:patients?n=60 --show star --k 2 --out out.csv"
    _, _, err = run(*words.split())
    assert "note: `show` = `star` is called `wildcard` now" in err


def test_a_column_that_nobody_decided_on_is_named_and_the_shuffle_told(run, tmp_path):
    rng = np.random.default_rng(2)
    pl.DataFrame({"x": rng.normal(size=60), "y": rng.normal(size=60)}).write_csv(tmp_path / "two.csv")
    code, _, err = run("protect", "rank-swapping", "two.csv", "-c", "x", "--out", "out.csv", "--unjudged")
    assert code == 0
    assert "released unchanged, as no role is given: `y`" in err
    assert "the records were shuffled" in err
    asked = ("-m", "exact-match", "--json")
    code, out, err = run("risk", "two.csv", "out.csv", *asked)
    assert (code, json.loads(out)["exact-match"]["status"]) == (0, "ok")
    assert "private trail" in err
    code, _, err = run("risk", "two.csv", "out.csv", "--aligned", *asked)
    assert code != 0
    assert "order of the original" in err


def test_a_release_looked_at_alone_is_judged_with_what_belongs_together(run, tmp_path):
    pl.DataFrame({"who": ["a", "a", "b", "b"], "ward": ["x", "y", "x", "x"]}).write_csv(
        tmp_path / "stays.csv"
    )
    (tmp_path / "plan.toml").write_text(
        'columns.who = {kind = "nominal", role = "person"}\ncolumns.ward = {kind = "nominal", role = "key"}\n'
    )
    code, out, err = run("risk", "stays.csv", "--plan", "plan.toml", "-m", "uniqueness", "--json")
    assert (code, json.loads(out)["uniqueness"]["value"]) == (0, 1.0)
    assert "records linked by `who` are judged together" in err
