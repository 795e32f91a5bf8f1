"""One question, one verdict: whoever asks whether something may leave gets the same answer.

Each case is tried through every verb that answers it, and in Python.
"""

import json
import re
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sfumato
from seeds import LARGE
from sfumato.cli import _exit_code
from sfumato.core.run import Run
from sfumato.errors import RequirementError, UnknownNameError
from sfumato.methods.mondrian import Mondrian
from sfumato.recipes.demand import label_demands
from sfumato.recipes.plan import Plan
from sfumato.recipes.profile import Profile
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.releasing import decide as deciding
from sfumato.releasing import destination, folder
from sfumato.releasing.carry_out import carry_out
from sfumato.releasing.decide import Decision, decide
from sfumato.releasing.destination import Destination, write_release
from sfumato.releasing.postprocess import postprocessor
from sfumato.study.evaluate import EvaluationCase, evaluate

PLAN = """
requirements = [{requirements}]
[data]
path = "people.csv"
[columns]
mail = {{ kind = "nominal", role = "{mail}" }}
age = {{ kind = "continuous", role = "key" }}
town = {{ kind = "nominal", role = "key" }}
ill = {{ kind = "nominal", role = "{ill}" }}
{scenarios}
[[steps]]
{step}
[output]
path = "out.csv"
"""

GROUPED = 'method = "mondrian"\ncolumns = ["age", "town"]\nparameters = { k = 3 }'
SWAPPED = 'method = "rank-swapping"\ncolumns = ["age"]'


@pytest.fixture
def people(tmp_path, monkeypatch):
    """Sixty people, three alike each in age and town, and addresses that name them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SFUMATO_WIDTH", "80")
    n = 60
    frame = pl.DataFrame(
        {
            "mail": [f"person{i}@example.org" for i in range(n)],
            "age": [20 + i // 3 for i in range(n)],
            "town": [f"T{i // 6}" for i in range(n)],
            "ill": [("flu", "cold", "none")[i % 3] for i in range(n)],
        }
    )
    frame.write_csv(tmp_path / "people.csv")
    return frame


def plan(
    path="plan.toml", *, requirements='"k >= 2"', mail="identifier", ill="sensitive", scenarios="",
    step=GROUPED,
):  # fmt: skip
    """Write a plan."""
    text = PLAN.format(requirements=requirements, mail=mail, ill=ill, scenarios=scenarios, step=step)
    Path(path).write_text(text)
    return path


def verb(capfd, *arguments):
    code = _exit_code([str(each) for each in arguments])
    out, err = capfd.readouterr()
    return code, out, err


def ways_out(path):
    """Every way to a file by the plan, each with the file that it would write."""
    return {
        "run": ("run", path),
        "protect": (
            "protect", "mondrian", "people.csv", "--plan", path, "-c", "age,town", "--k", 2, "-o", "out.csv",
        ),
        "protocol": (
            "protocol", "people.csv", "-m", "mdav(k=3)", "--plan", path, "-c", "age",
            "--local", 1, "--everywhere", 1, "-o", "out.csv",
        ),
        "release": ("release", path, "--out", "rel"),
    }  # fmt: skip


def written():
    return sorted(each.name for each in Path().iterdir() if each.name not in {"people.csv", "plan.toml"})


WAYS = tuple(ways_out(""))


# ------------------------------------------------------------------------------- what names people (case 1)


@pytest.mark.parametrize("way", WAYS)
def test_a_column_that_names_people_leaves_by_no_verb(way, people, capfd):
    path = plan(mail="other")
    code, out, err = verb(capfd, *ways_out(path)[way], "-q")
    assert code == 1, out + err
    assert "identifier-left-in" in err
    assert "example.org" not in out + err
    assert not written()


def test_check_and_gate_and_python_say_the_same_of_it(people, capfd):
    path = plan(mail="other")
    for words in (("check", path), ("gate", path)):
        code, out, err = verb(capfd, *words)
        assert code == 1
        assert "identifier-left-in" in out + err
    with pytest.raises(RequirementError, match="identifier-left-in"):
        sfumato.release(path)
    outcome = carry_out(Plan.read(Path(path)), Run(seed=LARGE + 1))
    decision = decide(outcome, subject="it")
    assert [each.rule for each in decision.findings] == ["identifier-left-in"]
    with pytest.raises(RequirementError, match="identifier-left-in"):
        write_release(decision, Destination(Plan.read(Path(path))))
    assert not written()


@pytest.mark.parametrize("way", WAYS)
def test_it_leaves_with_a_reason_which_is_recorded(way, people, capfd):
    path = plan(mail="other")
    code, out, err = verb(capfd, *ways_out(path)[way], "--override", "made up for a test")
    assert code == 0, out + err
    private = Path("rel/private") if way == "release" else Path()
    (trail,) = private.glob("*.private.json")
    assert json.loads(trail.read_text())["override"]["override"] == "made up for a test"
    ledger = (private / "overrides.private.jsonl").read_text()
    assert "made up for a test" in ledger
    assert verb(capfd, "verify", "rel" if way == "release" else trail)[0] == 0


@pytest.mark.parametrize(
    ("role", "rules"), [("other", ["identifier-left-in"]), ("person", ["identifier-left-in"])]
)
def test_a_number_that_joins_persons_is_no_harmless_column(role, rules, people, capfd):
    """Whatever it is declared as: it repeats, and determines sex and birth date."""
    n = 60
    frame = pl.DataFrame(
        {
            "nr": [4000 + i % n for i in range(3 * n)],
            "sex": [("f", "m")[(i % n) % 2] for i in range(3 * n)],
            "birth date": [f"19{40 + i % n}-01-01" for i in range(3 * n)],
        }
    )
    frame.write_csv("three.csv")
    roles = ["--role", f"nr={role}", "--role", "sex=key", "--role", "birth date=key"]
    code, out, _ = verb(capfd, "gate", "three.csv", *roles, "--require", "k >= 2", "--format", "json")
    assert code == 1
    assert {each["rule"] for each in json.loads(out)["findings"]} >= set(rules)


@pytest.mark.parametrize("way", ["run", "release"])
def test_a_phone_number_in_a_set_leaves_by_no_verb(way, people, capfd):
    """A number that somebody wrote in the place of a town, and that a group of towns names among others."""
    many = pl.concat([people.with_columns(pl.col("town").replace({"T3": "tel. 972 123 456"}))] * 4)
    many.write_csv("people.csv")
    step = GROUPED.replace('"age", "town"', '"town"').replace("k = 3", "k = 48")
    code, out, err = verb(capfd, *ways_out(plan(step=step))[way], "-q")
    assert code == 1, out + err
    assert "contact-left-in: `town` contains phone numbers in 1 different text" in " ".join(err.split())
    assert "972" not in out + err
    assert not written()


def test_a_file_with_a_phone_number_in_a_set_may_not_leave(people, capfd):
    towns = pl.Series(["{Kern|tel. 972 123 456}", "{Kern|Fresno}"] * 30)
    people.select("age", town=towns).write_csv("sets.csv")
    code, out, _ = verb(
        capfd, "gate", "sets.csv", "--role", "age=key", "--role", "town=key", "--require", "uniqueness <= 0.99",
        "--format", "json",
    )  # fmt: skip
    assert code == 1
    assert [each["rule"] for each in json.loads(out)["findings"]] == ["contact-left-in"]


# ------------------------------------------------------------------- what is required of utility alone (case 2)


@pytest.mark.parametrize("way", ["run", "release"])
def test_a_requirement_on_utility_alone_lets_nothing_out(way, people, capfd):
    path = plan(requirements='"column-emd <= 1000"', step=SWAPPED)
    code, out, err = verb(capfd, *ways_out(path)[way], "-q")
    assert code == 1, out + err
    assert "no requirement limits the risk of the release" in err
    assert "only utility is required (column-emd <= 1000)" in err
    assert not written()


def test_gate_check_and_python_do_not_take_utility_for_a_requirement(people, capfd):
    path = plan(requirements='"column-emd <= 1000"', step=SWAPPED)
    code, out, _ = verb(capfd, "gate", path, "--format", "json")
    assert code == 1
    assert [each["rule"] for each in json.loads(out)["findings"]] == ["nothing-required"]
    assert verb(capfd, "check", path)[0] == 1
    with pytest.raises(RequirementError, match="no requirement limits the risk"):
        sfumato.release(path)


@pytest.mark.parametrize(
    "asked", ["k >= 1", "dbrl <= 1", "l >= 1", "individual-risk(fraction=0.1) <= 1 at 95%"]
)
@pytest.mark.parametrize("way", ["run", "protocol", "release"])
def test_a_requirement_that_nothing_misses_lets_nothing_out(way, asked, people, capfd):
    path = plan(requirements=f'"{asked}", "column-emd <= 1000"', step=SWAPPED)
    code, out, err = verb(capfd, *ways_out(path)[way], "-q")
    assert code == 1, out + err
    assert "no requirement limits the risk of the release" in err
    assert "is met by every release: ask for" in " ".join(err.split())
    assert "only utility is required (column-emd <= 1000)" in " ".join(err.split())
    assert not written()


def test_every_verb_says_of_it_what_it_says_of_no_requirement(people, capfd):
    path = plan(requirements='"k >= 1"', step=SWAPPED)
    for words in (("gate", path), ("gate", "people.csv", "--require", "k >= 1", "-r", "ill=other")):
        code, out, _ = verb(capfd, *words, "--format", "json")
        assert code == 1
        (finding,) = [each for each in json.loads(out)["findings"] if each["rule"] == "nothing-required"]
        assert "`k-anonymity >= 1` is met by every release: ask for more than 1" in finding["message"]
    code, _, err = verb(capfd, "check", path)
    assert code == 1
    assert "warning: `k-anonymity >= 1` is met by every release" in " ".join(err.split())
    with pytest.raises(RequirementError, match="no requirement limits the risk"):
        sfumato.release(path)
    code, _, err = verb(capfd, "tune", "people.csv", "--require", "k >= 1", "-c", "age,town")
    assert code == 2
    assert "needs a requirement on risk" in " ".join(err.split())
    code, _, err = verb(capfd, "compare", "people.csv", "--require", "k >= 1", "-c", "age", "-m", "mdav")
    assert code == 2
    assert "needs a requirement that can fail" in " ".join(err.split())


def test_a_plan_without_steps_that_asks_nothing_takes_the_usual_profile(people, capfd):
    """As one without any requirement does."""
    made = []
    for asked in ("", '"dbrl <= 1"'):
        text = Path(plan(requirements=asked)).read_text()
        Path("plan.toml").write_text(text.replace(f"[[steps]]\n{GROUPED}\n", ""))
        made.append(sfumato.release("plan.toml", minutes=0.01, seed=LARGE + 1).plan.demands)
    assert made[0] == made[1] != ()


def test_a_profile_of_ones_own_whose_levels_ask_nothing_judges_nothing(people, capfd):
    text = Profile.load("public").text
    Path("my.toml").write_text(re.sub(r'require = "[^"]*"', 'require = "k >= 1"', text))
    path = plan(requirements="", step=SWAPPED)
    code, _, err = verb(capfd, "release", path, "--for", "my.toml", "--out", "rel")
    assert code == 1
    assert "is met by every release" in " ".join(err.split())
    assert not Path("rel").exists()


def test_beside_a_requirement_that_judges_it_is_named_and_does_not_count(people, capfd):
    path = plan(requirements='"k >= 2", "dbrl <= 1"')
    code, _, err = verb(capfd, "check", path)
    assert code == 0
    assert "warning: `dbrl <= 1` is met by every release: ask for less than 1" in " ".join(err.split())
    assert verb(capfd, "release", path, "--out", "rel")[0] == 0
    public = json.loads(Path("rel/evidence.json").read_text())
    private = json.loads(Path("rel/private/evidence.json").read_text())
    assert '"met": 1, "of": 1' in json.dumps(public)
    assert '"met": 1, "of": 1' in json.dumps(private)
    trail = json.loads(Path("rel/private/trail.private.json").read_text())
    assert [each["judges"] for each in trail["requirements"]] == ["risk", "nothing"]
    assert "dbrl" not in json.dumps(public)


def test_what_leaves_by_the_word_of_its_owner_is_not_called_judged(people, capfd):
    path = plan(requirements='"k >= 1"')
    assert verb(capfd, "run", path, "--unjudged", "--report", "report.html")[0] == 0
    trail = json.loads(Path("out.private.json").read_text())
    assert trail["unjudged"] is True
    assert trail["met"] is None
    assert "Not judged: there is no requirement on risk" in Path("report.html").read_text()


# ------------------------------------------------------------------------------------- every scenario (case 3)

TWO = """
[[scenarios]]
name = "knows the town"
columns = ["town"]
[[scenarios]]
name = "knows all"
columns = ["age", "town"]
"""


def test_a_requirement_must_be_met_against_every_intruder_and_the_worst_is_named(people, capfd):
    path = plan(scenarios=TWO)
    assert verb(capfd, "run", path)[0] == 0
    released = pl.read_csv("out.csv")
    towns = released.group_by("town").len()["len"].min()
    both = released.group_by("age", "town").len()["len"].min()
    assert both < towns
    met = f"k >= {both + 1}"
    code, out, err = verb(capfd, "risk", path, "out.csv", "--require", met)
    assert code == 1, out + err
    assert "knows all: not met" in err
    assert "knows the town: met" in err
    code, out, _ = verb(capfd, "risk", path, "out.csv", "-m", "k", "--json")
    assert code == 0
    assert {name.split(":")[0] for name in json.loads(out)} == {"knows the town", "knows all"}


def test_a_decision_says_the_worst_of_each_requirement(people):
    outcome = carry_out(Plan.read(Path(plan(scenarios=TWO))), Run(seed=LARGE + 1))
    decision = decide(outcome, subject="it")
    (worst,) = decision.worst
    assert worst.scenario == "knows all"
    assert len(decision.judgements) == 2


# ------------------------------------------------------------------ a release brings its plan along (case 4)


def test_whoever_looks_at_a_released_file_judges_it_by_its_own_plan(people, capfd):
    """`ill` is a key for whoever guesses; its release says that it is none."""
    path = plan(ill="other")
    assert verb(capfd, "release", path, "--out", "rel")[0] == 0
    evidence = json.loads(Path("rel/private/trail.private.json").read_text())
    promised = evidence["requirements"][0]["score"]["value"]
    for words in (("risk", "people.csv", "rel/out.csv"), ("risk", "rel")):
        code, out, err = verb(capfd, *words, "-m", "k", "--json")
        assert code == 0, err
        assert json.loads(out)["k-anonymity"]["value"] == promised
        assert "roles and scenarios come from the plan of the release `rel/out.csv`" in err
    scores = sfumato.assess("people.csv", "rel/out.csv", ["k"])
    assert scores["k"].value == promised
    for words in (("gate", "rel/out.csv"), ("gate", "rel")):
        code, out, err = verb(capfd, *words)
        assert code == 0, out + err
        assert "may be released" in out
    assert verb(capfd, "utility", "rel", "-m", "column-emd")[0] == 0
    assert verb(capfd, "explain", "rel", "--record", 0)[0] == 0


def test_roles_that_differ_from_those_of_the_release_are_told(people, capfd):
    assert verb(capfd, "release", plan(ill="other"), "--out", "rel")[0] == 0
    other = plan("other.toml", ill="key")
    _, _, err = verb(capfd, "risk", "people.csv", "rel/out.csv", "--plan", other, "-m", "k")
    assert "`ill` (other then, key now)" in err


ANATOMY = 'method = "anatomy"\ncolumns = ["age", "town"]\nparameters = { l = 2 }'


def test_a_folder_of_several_files_of_one_release_is_judged_and_a_changed_one_is_not(people, capfd):
    path = plan(requirements='"alpha-k-anonymity <= 0.5"', step=ANATOMY)
    assert verb(capfd, "release", path, "--out", "rel")[0] == 0
    assert verb(capfd, "gate", "rel")[0] == 0
    assert verb(capfd, "risk", "rel", "-m", "k")[0] == 0
    for table in Path("rel").glob("out.*.csv"):
        table.write_text(table.read_text() + "\n")
    code, _, err = verb(capfd, "risk", "rel", "-m", "k")
    assert code == 3
    assert "sfumato verify rel" in err


# ------------------------------------------------------------- search and release have one case (case 5)


def test_a_search_judges_what_the_release_is(people, capfd):
    """Persons of several records: their number is left out, but counts all the same in both."""
    rng = np.random.default_rng(1)
    frame = pl.DataFrame(
        {
            "who": [f"P{i // 2}" for i in range(80)],
            "age": rng.integers(20, 60, 80),
            "town": rng.choice(["A", "B", "C"], 80),
            "cost": rng.lognormal(5, 1, 80).round(1),
        }
    )
    roles = {"who": "person", "age": "key", "town": "key", "cost": "sensitive"}
    released = sfumato.release(
        frame, roles=roles, minutes=0.5, seed=LARGE + 1, methods=("mondrian", "rank-swapping"), trials=4
    )
    assert released.outcome.is_met
    tuned = released.tuned
    assert tuned is not None
    part = released.outcome.parts[""]
    case = EvaluationCase(part.original, after=postprocessor(part.plan.output))
    recipe = Recipe((Step(Mondrian(k=4), ("age", "town")),))
    plan = replace(part.plan, recipe=recipe)
    searched = evaluate(recipe, case, plan.demands, Run(seed=LARGE + 1)).scores
    judged = carry_out(plan, Run(seed=LARGE + 1), table=part.original).judgements
    labels = dict(label_demands(plan.demands))
    assert len(labels) == len(judged)
    for label, each in zip(labels, judged, strict=True):
        assert searched[label].value == pytest.approx(each.score.value, nan_ok=True)
        assert searched[label].status is each.score.status


# --------------------------------------------------------------------- combinations of columns (case 6)


@pytest.mark.parametrize("how", [("--subsets", "age,town"), ("--combine", 1)], ids=["subsets", "combine"])
def test_what_a_method_enforces_of_combinations_is_what_it_is_judged_by(how, people, capfd):
    words = ("protect", "local-suppression", "people.csv", "-c", "age,town", "--k", 3, "--drop", "mail")
    code, out, err = verb(capfd, *words, *how, "-r", "ill=other", "-o", "out.csv")
    assert code == 0, out + err
    assert "age: met" in err
    assert "town: met" in err


# ------------------------------------------------------------------------------- whose word a role is (case 7)


def test_who_accepts_a_proposal_has_not_declared_it(people, capfd, monkeypatch):
    from sfumato.cli import _questions as asking
    from sfumato.cli import release

    monkeypatch.setattr(release, "on_terminal", lambda: True)
    answers = iter(["", "other"] + [""] * 9)
    monkeypatch.setattr(asking.click, "prompt", lambda *args, **more: next(answers))
    monkeypatch.setattr(asking, "MIN_PROPOSAL_CONFIDENCE", 2.0)  # everything is asked about
    people.drop("mail").write_csv("people.csv")
    code, out, err = verb(capfd, "release", "people.csv", "--minutes", 0.05, "--out", "rel", "-m", "mondrian")
    assert code == 0, out + err
    columns = Plan.read(Path("rel/private/plan.toml")).schema
    assert "accepted with Enter" in columns["age"].role_basis
    assert columns["town"].role_basis == "answered"
    report = json.loads(Path("rel/private/report.json").read_text())
    assert "declared" not in json.dumps([each["reason"] for each in _columns_of(report)])


def _columns_of(report):
    found = []

    def walk(part):
        if isinstance(part, dict):
            if {"reason", "role"} <= set(part):
                found.append(part)
            for each in part.values():
                walk(each)
        elif isinstance(part, list):
            for each in part:
                walk(each)

    walk(report)
    assert found
    return found


def test_a_guess_is_not_called_a_declaration(people, capfd):
    code, out, _ = verb(capfd, "gate", "people.csv", "--require", "k >= 2", "-r", "ill=other")
    assert code == 1
    assert "declared" not in out


def test_a_role_for_a_column_that_is_not_there_is_refused(people, capfd):
    for words in (
        ("inspect", "people.csv"),
        ("release", "people.csv"),
        ("gate", "people.csv", "--require", "k >= 2"),
    ):
        code, _, err = verb(capfd, *words, "--role", "twon=key")
        assert code == 2, words
        assert "twon" in err
    with pytest.raises(UnknownNameError):
        sfumato.inspect("people.csv", roles={"twon": "key"})
    with pytest.raises(UnknownNameError):
        sfumato.release("people.csv", roles={"twon": "key"})


# -------------------------------------------------------------------------------- every way out (case 8, contract)


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_a_file_asks_for_the_decision(way, people, capfd, monkeypatch):
    """If `decide` refused everything, nothing would be written by any verb."""
    path = plan()
    refusing = deciding.Finding("requirement-missed", "refused by a test")
    original = deciding.decide
    monkeypatch.setattr(
        deciding,
        "decide",
        lambda *args, **more: Decision("it", (refusing,), outcome=original(*args, **more).outcome),
    )
    code, out, err = verb(capfd, *ways_out(path)[way], "-q")
    assert code == 1, out + err
    assert not written()


def test_nothing_is_written_without_a_decision_that_lets_it_leave(people):
    outcome = carry_out(Plan.read(Path(plan())), Run(seed=LARGE + 1))
    closed = Decision("it", (deciding.Finding("requirement-missed", "no"),), outcome=outcome)
    with pytest.raises(RequirementError):
        write_release(closed, Destination(Plan.read(Path("plan.toml"))))
    with pytest.raises(RequirementError):
        folder.ReleaseFolder(Path("rel")).write(closed, Plan.read(Path("plan.toml")), lambda _: {})
    assert not written()
    assert destination.write_release is write_release


def test_the_way_out_of_python_writes_what_the_verb_writes(people, capfd):
    released = sfumato.release(plan(), seed=LARGE + 3)
    assert released.decision.may_leave
    released.write("python")
    assert verb(capfd, "release", "plan.toml", "--out", "verb", "--seed", LARGE + 3)[0] == 0
    assert Path("python/out.csv").read_bytes() == Path("verb/out.csv").read_bytes()


def test_a_decision_is_slim():
    assert len(fields(Decision)) <= 8
