"""A seed that somebody gives: a small one makes no release, and none tells who is behind a pseudonym."""

import hashlib
import json
import random
import secrets
from dataclasses import replace

import polars as pl
import pytest

import sfumato
from seeds import LARGE
from sfumato.core.randomness import ByPlace, series_secret
from sfumato.core.run import Run
from sfumato.data.pseudonyms import derive_key
from sfumato.errors import RequirementError
from sfumato.recipes.plan import Plan
from sfumato.releasing.carry_out import carry_out
from sfumato.releasing.decide import decide
from sfumato.releasing.destination import Destination, write_release

PLAN = """requirements = ["k >= 3"]
[data]
path = "in.csv"
[columns]
patient = { kind = "nominal", role = "person", pseudonym = "patient" }
area = { kind = "nominal", role = "key" }
job = { kind = "nominal", role = "sensitive" }
STEPS
[output]
path = "out.csv"
"""
PRAM = '[[steps]]\nmethod = "pram"\ncolumns = ["job"]\n'
WAYS = {
    "run": ("run", "plan.toml"),
    "release": ("release", "plan.toml", "--out", "rel"),
    "protect": ("protect", "pram", "in.csv", "-c", "job", "--plan", "plan.toml", "-o", "out.csv"),
    "protocol": (
        "protocol", "in.csv", "-m", "pram", "-c", "job", "--plan", "plan.toml", "--local", 1,
        "--everywhere", 1, "-o", "out.csv",
    ),
}  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    drawn = random.Random(3)
    numbers = drawn.sample(range(10**5, 10**6), 60)
    rows = [(number, drawn.choice("ab"), drawn.choice(["cook", "smith", "clerk"])) for number in numbers]
    pl.DataFrame(rows, schema=["patient", "area", "job"], orient="row").write_csv(tmp_path / "in.csv")
    planned(tmp_path)
    return tmp_path


def planned(folder, steps=PRAM, more=""):
    (folder / "plan.toml").write_text(PLAN.replace("STEPS", steps) + more)
    return Plan.read(folder / "plan.toml")


def there(folder):
    return {path.name for path in folder.iterdir()} - {"in.csv", "plan.toml"}


def renamed(folder, secret):
    """The pseudonyms that follow from a secret, by hand."""
    key = derive_key(secret, "patient")
    numbers = pl.read_csv(folder / "in.csv")["patient"].cast(pl.String)
    return {hashlib.blake2b(each.encode(), key=key, digest_size=16).hexdigest() for each in numbers}


@pytest.mark.parametrize("way", WAYS)
def test_a_small_seed_writes_nothing_and_says_the_way_on(run, folder, way):
    code, _, err = run(*WAYS[way], "--seed", 424242)
    assert code == 1
    assert all(
        word in err for word in ("seed-guessable", "leave out --seed", "128 random bits", "--override")
    )
    assert "424242" not in err
    assert not there(folder)
    assert run(*WAYS[way], "--seed", LARGE - 1)[0] == 1
    assert not there(folder)


@pytest.mark.parametrize("way", ["run", "release"])
def test_an_experiment_is_written_and_its_pseudonyms_do_not_follow_from_the_seed(run, folder, way):
    code, _, err = run(*WAYS[way], "--seed", 42, "--override", "experiment")
    assert code == 0, err
    home, trail = (
        (folder / "rel", "private/trail.private.json") if way == "release" else (folder, "out.private.json")
    )
    said = json.loads((home / trail).read_text())
    assert said["seed_given"] is True
    assert [each["rule"] for each in said["override"]["findings"]] == ["seed-guessable"]
    names = set(pl.read_csv(home / "out.csv")["patient"])
    assert not names & renamed(folder, Run(seed=42).randomness.secret)
    assert not names & renamed(folder, Run(seed=42).randomness.person_secret)
    assert names == renamed(folder, int(said["person_seed"], 16).to_bytes(16, "little"))  # as its owner knows
    assert run("verify", home / trail)[0] == 0
    assert run("lookup", "plan.toml", min(names), "--trail", home / trail)[0] == 0


def test_the_same_large_seed_gives_the_same_but_for_pseudonyms(run, folder):
    frames = []
    for more in ((), ("--overwrite",)):
        assert run("run", "plan.toml", "--seed", LARGE + 7, *more)[0] == 0
        frames.append(pl.read_csv(folder / "out.csv"))
    assert frames[0].drop("patient").equals(frames[1].drop("patient"))
    assert not set(frames[0]["patient"]) & set(frames[1]["patient"])
    again = (folder / "out.csv").read_bytes()
    assert run("run", "plan.toml", "--replay", "out.private.json", "--overwrite")[0] == 0
    assert (folder / "out.csv").read_bytes() == again


def test_a_replay_is_judged_as_what_it_makes_again(run, folder):
    assert run("run", "plan.toml", "--seed", 42, "--override", "experiment")[0] == 0
    written = (folder / "out.csv").read_bytes()
    replay = ("run", "plan.toml", "--replay", "out.private.json", "--overwrite")
    assert "seed-guessable" in run(*replay)[2]
    assert run(*replay, "--override", "experiment")[0] == 0
    assert (folder / "out.csv").read_bytes() == written


def test_a_seed_of_the_system_is_not_flagged_however_small(run, folder, monkeypatch):
    monkeypatch.setattr(secrets, "randbits", lambda _: 5)
    assert run("run", "plan.toml")[0] == 0
    said = json.loads((folder / "out.private.json").read_text())
    assert (int(said["seed"], 16), said["seed_given"]) == (5, False)
    assert run("run", "plan.toml", "--replay", "out.private.json", "--overwrite")[0] == 0


@pytest.mark.parametrize(
    ("steps", "shuffle", "code"), [("", "false", 0), ("", "true", 1), (PRAM, "false", 1)]
)
def test_only_what_hangs_on_the_seed_is_held_back(run, folder, steps, shuffle, code):
    planned(folder, steps, f"shuffle = {shuffle}\n")
    assert run("run", "plan.toml", "--seed", 1)[0] == code
    assert run("gate", "plan.toml", "--seed", 1)[0] == 0  # nothing is written


def test_python_judges_alike(folder):
    with pytest.raises(RequirementError, match="seed-guessable") as caught:
        sfumato.release(folder / "plan.toml", seed=1)
    assert "leave out --seed" in (caught.value.hint or "")
    made = sfumato.release(folder / "plan.toml", seed=1, override="experiment")
    assert made.write(folder / "rel")
    assert json.loads((folder / "rel/private/trail.private.json").read_text())["seed_given"] is True
    outcome = carry_out(Plan.read(folder / "plan.toml"), Run(seed=1))
    with pytest.raises(RequirementError, match="seed-guessable"):
        write_release(decide(outcome, subject="it"), Destination(Plan.read(folder / "plan.toml")))


# ------------------------------------------------------------------------------- trails of earlier versions


def as_earlier_version(folder, plan):
    """A release whose one seed keyed persons too, with a trail that knows no other."""
    outcome = carry_out(plan, Run(randomness=ByPlace(LARGE + 3, person_seed=LARGE + 3)))
    write_release(decide(outcome, subject="it"), Destination(plan))
    place = folder / "out.private.json"
    said = json.loads(place.read_text())
    assert said.pop("person_seed") == said["seed"]
    place.write_text(json.dumps({**said, "trail": 2}))
    return outcome


def test_trails_of_earlier_versions_are_still_verified_replayed_and_looked_up(run, folder):
    as_earlier_version(folder, Plan.read(folder / "plan.toml"))
    written = (folder / "out.csv").read_bytes()
    names = set(pl.read_csv(folder / "out.csv")["patient"])
    assert names == renamed(folder, (LARGE + 3).to_bytes(16, "little"))
    code, out, _ = run("verify", "out.csv", "--json")
    (told,) = json.loads(out).values()
    assert (code, told["files"]["out.csv"]) == (0, "identical")
    assert run("lookup", "plan.toml", min(names), "--trail", "out.private.json")[0] == 0
    assert run("run", "plan.toml", "--replay", "out.private.json", "--overwrite")[0] == 0
    assert (folder / "out.csv").read_bytes() == written


NOISE = '[[steps]]\nmethod = "pram"\ncolumns = ["job"]\n[series]\n'


def test_the_secret_of_a_series_does_not_follow_from_the_seed(run, folder):
    planned(folder, NOISE)
    assert run("run", "plan.toml", "--seed", LARGE + 1)[0] == 0
    secret = json.loads((folder / "out.private.json").read_text())["series"]["secret"]
    assert secret != series_secret(LARGE + 1).hex()
    assert run("verify", "out.csv")[0] == 0
    plan = planned(folder, NOISE + 'earlier = ["out.private.json"]\n')
    later = carry_out(replace(plan, output=replace(plan.output, path="later.csv")), Run())
    assert later.parts[""].member.series.secret.hex() == secret


def test_a_gate_judges_a_series_by_the_seed_it_is_given(run, folder):
    planned(folder, NOISE)
    path = folder / "plan.toml"
    path.write_text(path.read_text().replace('"k >= 3"', '"k >= 3", "t-closeness <= 0.9"'))
    told = {run("gate", "plan.toml", "--seed", 1, "--format", "json")[1] for _ in range(3)}
    assert len(told) == 1


@pytest.mark.parametrize("steps", [PRAM, NOISE], ids=["outside", "in a series"])
def test_a_series_goes_on_from_the_trail_of_an_earlier_version(folder, steps):
    as_earlier_version(folder, planned(folder, steps))
    plan = planned(folder, NOISE + 'earlier = ["out.private.json"]\n')
    later = carry_out(replace(plan, output=replace(plan.output, path="later.csv")), Run())
    assert later.parts[""].member.series.secret == series_secret(LARGE + 3)
