"""What can never hold ends `release` and `tune` at once; a person at a terminal may choose what to do."""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from sfumato.cli import _questions, cli
from sfumato.cli import release as verb
from sfumato.data.schema import Role
from sfumato.recipes.plan import Plan
from sfumato.releasing.prepare import prepare_release
from sfumato.releasing.request import Request
from sfumato.tuning.feasibility import Obstacle

QUICK = ("--minutes", 0.03, "-m", "mondrian")
#: Enter at what analysts need most, and at each of the four questions on what the release is.
UNSAID = "\n" * 5


@pytest.fixture
def members(tmp_path):
    """A file of 200 people who are in a union, or not, and have one of many codes of illness."""
    rng = np.random.default_rng(4)
    n = 200
    frame = pl.DataFrame(
        {
            "age": rng.integers(18, 90, n),
            "sex": rng.choice(["f", "m"], n),
            "union": rng.choice(["yes", "no"], n),
            "diagnosis": [f"{'EIJF'[place % 4]}{place % 80:02d}" for place in rng.permutation(n)],
        }
    )
    frame.write_csv(tmp_path / "members.csv")
    return frame


def asked(*roles):
    named = {"age": "key", "sex": "key", "union": "sensitive", "diagnosis": "other", **dict(roles)}
    return [word for name, role in named.items() for word in ("--role", f"{name}={role}")]


@pytest.fixture
def on_terminal(members, tmp_path, monkeypatch):
    """Type a release at a terminal."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(verb, "on_terminal", lambda: True)

    def go(typed, *words):
        return CliRunner().invoke(cli, ["release", "members.csv", *map(str, (*words, *QUICK))], input=typed)

    return go


@pytest.mark.parametrize("verb_name", ["release", "tune"])
def test_what_can_never_hold_ends_at_once(run, members, tmp_path, verb_name):
    """However many minutes there are."""
    words = (verb_name, "members.csv", "--for", "public", *asked(), "--minutes", 60)
    code, out, err = run(*words, "--json")
    assert code == 4
    assert (
        "l-diversity >= 3 cannot be met: with all 200 records in one class it is 2, because of `union`" in err
    )
    assert "The nearest that can be met: l-diversity >= 2" in err
    assert "--drop union" in err
    assert "minutes" not in err
    (found,) = json.loads(out)["obstacles"]
    assert (found["columns"], found["nearest"], found["is_final"]) == (["union"], "l-diversity >= 2", True)
    assert not (tmp_path / "members-release").exists()


def test_the_flag_that_is_named_helps(run, members, tmp_path):
    words = ("--for", "public", *asked(), "--drop", "union")
    code, out, err = run("release", "members.csv", *words, *QUICK, "--json")
    assert code == 0, err
    assert "cannot hold" not in err
    assert json.loads(out)["obstacles"] == []
    assert "union" not in pl.read_csv(tmp_path / "members-release" / "release.csv").columns
    few = ("--require", "k >= 3", "-m", "mondrian", "--trials", 2, "--confirmations", 1)
    code, _, err = run("tune", "members.csv", *asked(), "--drop", "union", *few, "--write-plan", "found.toml")
    assert code == 0, err
    assert Plan.read(tmp_path / "found.toml").output.drop == ("union",)
    assert run("release", "members.csv", *words, "--drop", "onion")[0] == 2


def test_enter_leaves_out_what_can_never_hold(on_terminal, tmp_path):
    told = on_terminal("x\n\n" + UNSAID, "--for", "public", *asked())
    assert told.exit_code == 0, told.output
    assert "l-diversity >= 3 cannot be met" in told.output
    assert "1 remove `union`" in told.output
    assert "`x` is not one of the numbers" in told.output
    folder = tmp_path / "members-release"
    assert "union" not in pl.read_csv(folder / "release.csv").columns
    plan = Plan.read(folder / "private" / "plan.toml")
    assert plan.output.drop == ("union",)
    column = plan.schema["union"]  # nothing keeps what does not leave diverse
    assert (column.role, column.role_basis) == ("other", "left out; sensitive, should it ever leave")


def test_or_the_person_stops(on_terminal, tmp_path):
    told = on_terminal("2\n" + UNSAID, "--for", "public", *asked())
    assert told.exit_code != 0
    assert not (tmp_path / "members-release").exists()


def test_what_is_costly_is_told_and_goes_on(on_terminal, tmp_path):
    roles = ("--for", "public", *asked(("union", "other"), ("diagnosis", "sensitive")))
    told = on_terminal("\n" + UNSAID, *roles)
    assert told.exit_code == 0, told.output
    assert "1 continue unchanged" in told.output
    assert "because of `diagnosis` (80 values)" in told.output
    assert "diagnosis" in pl.read_csv(tmp_path / "members-release" / "release.csv").columns


@pytest.mark.parametrize("later", [False, True])
def test_nothing_is_asked_of_what_is_left_out(members, tmp_path, later):
    """A method would keep it diverse and close all the same, were it still sensitive."""
    roles = {"age": "key", "sex": "key", "union": "sensitive", "diagnosis": "sensitive"}
    gone = ("union", "diagnosis")
    now = {} if later else {"output": {"drop": gone}}
    asked = Request(source=tmp_path / "members.csv", profile="public", roles=roles, **now)
    prepared = prepare_release(asked)
    prepared = prepared.leaving_out(gone) if later else prepared
    assert prepared.plan.output.drop == gone
    assert prepared.table.schema == prepared.plan.schema
    assert prepared.table.schema.with_role(Role.SENSITIVE) == ()
    assert {str(each) for each in prepared.plan.demands} == {
        "k-anonymity >= 10", "k-anonymity >= 3", "dbrl <= 0.05", "gdbrl <= 0.05"
    }  # fmt: skip


def test_tune_tells_it_too(run, members):
    roles = ("--for", "public", *asked(("union", "other"), ("diagnosis", "sensitive")))
    code, out, err = run("tune", "members.csv", *roles, *QUICK, "--json")
    assert code in {0, 4}
    assert "because of `diagnosis` (80 values)" in err
    assert json.loads(out)["obstacles"][0]["columns"] == ["diagnosis"]


def test_nothing_is_asked_where_nothing_stands_in_the_way(on_terminal):
    told = on_terminal(UNSAID, "--for", "scientific", *asked())
    assert told.exit_code == 0, told.output
    assert "because of" not in told.output
    assert "continue unchanged" not in told.output


@pytest.mark.parametrize(("typed", "final", "left_out"), [
    ("", True, ("a", "b")), ("1", True, ("a", "b")), ("2", True, ()), ("", False, ()), ("2", False, ("a", "b")),
])  # fmt: skip
def test_what_is_left_out(monkeypatch, typed, final, left_out):
    best = 1.0 if final else None
    found = [Obstacle("l >= 2", (name,), (1,), 9, best, is_final=final, classes=1) for name in "ab"]
    monkeypatch.setattr(_questions, "_prompt_text", lambda _question: typed)
    assert _questions.ask_obstacles(found) == left_out
    assert _questions.ask_obstacles([replace(each, columns=(), values=()) for each in found]) == ()
