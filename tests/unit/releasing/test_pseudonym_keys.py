"""Pseudonyms under a key of their own: stable over releases, unlinkable without it, and the owner looks back."""

import stat

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.cli import _exit_code
from sfumato.data.pseudonyms import KEY_SIZE, derive_key, pseudonyms
from sfumato.errors import PlanError, ReadError
from sfumato.recipes.plan import Plan
from sfumato.releasing.pseudonym_lookup import look_up
from sfumato.releasing.trail import randomness_of

PLAN = """
[data]
path = "people.csv"
[columns.pid]
kind = "nominal"
role = "identifier"
pseudonym = "person"
[columns.age]
kind = "continuous"
role = "key"
[[steps]]
method = "rank-swapping"
columns = ["age"]
[output]
path = "{out}"
{key}
"""


@pytest.fixture
def folder(tmp_path):
    pl.DataFrame({"pid": range(100, 140), "age": [20 + 2 * i for i in range(40)]}).write_csv(
        tmp_path / "people.csv"
    )
    return tmp_path


def _run(folder, out, key='pseudonym_key = "people.key"'):
    plan = folder / "plan.toml"
    plan.write_text(PLAN.format(out=out, key=key))
    return plan, _exit_code(["run", str(plan), "--unjudged", "-q"])


def test_people_keep_their_names_under_the_key_and_not_without(folder):
    names = {}
    for out in ("one.csv", "two.csv", "three.csv"):
        key = "" if out == "three.csv" else 'pseudonym_key = "people.key"'
        assert _run(folder, out, key)[1] == 0
        names[out] = set(pl.read_csv(folder / out)["pid"])
    assert names["one.csv"] == names["two.csv"]
    assert not names["one.csv"] & names["three.csv"]
    assert stat.S_IMODE((folder / "people.key").stat().st_mode) == 0o600
    key = (folder / "people.key").read_text().strip()
    for private in folder.glob("*.private.json"):
        assert key not in private.read_text()  # who has a trail cannot look back


def test_the_owner_looks_back(folder, capfd):
    plan, _ = _run(folder, "out.csv")
    name = pl.read_csv(folder / "out.csv")["pid"][3]
    assert _exit_code(["lookup", str(plan), name]) == 0
    said = capfd.readouterr().out
    (where, number), = look_up(Plan.read(plan), [name])[name]  # fmt: skip
    assert where == "pid"
    assert number in said
    assert 100 <= int(number) < 140
    assert _exit_code(["lookup", str(plan), name, "0" * 32]) == 3
    assert "1 of 2" in capfd.readouterr().err
    (folder / "people.key").unlink()
    assert _exit_code(["lookup", str(plan), name]) == 3


def test_the_trail_keeps_the_key_where_there_is_no_other(folder):
    plan, _ = _run(folder, "out.csv", "")
    name = pl.read_csv(folder / "out.csv")["pid"][0]
    with pytest.raises(PlanError, match="`pseudonym_key`"):
        look_up(Plan.read(plan), [name])
    secret = randomness_of(folder / "out.private.json").person_secret
    assert len(look_up(Plan.read(plan), [name], secret=secret)[name]) == 1
    assert _exit_code(["lookup", str(plan), name, "--trail", str(folder / "out.private.json")]) == 0


@pytest.mark.parametrize(("text", "mode"), [("xyz", 0o600), ("ab" * 31, 0o600), ("ab" * 32, 0o644)])
def test_a_key_that_is_none_or_that_others_read_is_refused_and_nothing_is_written(folder, text, mode, capfd):
    place = folder / "people.key"
    place.write_text(text)
    place.chmod(mode)
    assert _run(folder, "out.csv")[1] == 3
    assert text not in capfd.readouterr().err
    assert place.read_text() == text
    assert not (folder / "out.csv").exists()


def test_a_release_that_is_not_written_leaves_no_key(folder):
    plan = folder / "plan.toml"
    plan.write_text(
        'requirements = ["k >= 30"]\n' + PLAN.format(out="out.csv", key='pseudonym_key = "people.key"')
    )
    assert _exit_code(["run", str(plan), "-q"]) == 1
    assert not (folder / "people.key").exists()


def test_a_key_is_never_overwritten(folder):
    _run(folder, "out.csv")
    before = (folder / "people.key").read_text()
    plan = folder / "plan.toml"
    plan.write_text(
        PLAN.format(out="people.key", key='pseudonym_key = "people.key"').replace("people.key", "k.csv")
    )
    (folder / "k.csv").write_text(before)
    (folder / "k.csv").chmod(0o600)
    assert _exit_code(["run", str(plan), "--unjudged", "--overwrite", "-q"]) == 3
    assert (folder / "k.csv").read_text() == before


KEYS = st.binary(min_size=KEY_SIZE, max_size=KEY_SIZE)


@given(KEYS, KEYS, st.lists(st.integers(0, 10**6), min_size=1, max_size=20, unique=True))
def test_names_under_two_keys_have_nothing_in_common(one, other, numbers):
    series = pl.Series(numbers)
    first, second = (pseudonyms(series, derive_key(key, "person")) for key in (one, other))
    assert first.n_unique() == len(numbers)
    assert first.equals(second) == (one == other)
    assert one == other or not set(first) & set(second)
    assert not set(pseudonyms(series, derive_key(one, "household"))) & set(first)


def test_a_key_that_is_a_database_is_refused(folder):
    assert _run(folder, "out.csv", 'pseudonym_key = "sqlite:people.db#keys"')[1] in {2, 3}


def test_no_key_is_needed_to_be_read_when_it_is_missing(folder):
    plan, _ = _run(folder, "out.csv")
    (folder / "people.key").unlink()
    with pytest.raises(ReadError, match="Key not found"):
        look_up(Plan.read(plan), ["0" * 32])


def test_protect_and_release_take_a_key_by_name_and_by_the_plan_of_another_folder(folder, monkeypatch):
    """The key is one file wherever the verb is called, and never in the folder that leaves."""
    monkeypatch.chdir(folder)
    words = ["protect", "rank-swapping", "people.csv", "-c", "age", "--unjudged", "-q"]
    assert _exit_code([*words, "--pseudonym-key", "people.key", "-o", "no.csv", "-r", "pid=key"]) == 2
    assert not (folder / "people.key").exists()
    key = ["--role", "pid=person", "--pseudonym-key", "people.key"]
    assert _exit_code([*words, *key, "-o", "one.csv"]) == 0
    plan = PLAN.format(out="out.csv", key='pseudonym_key = "people.key"').replace("identifier", "person")
    (folder / "plan.toml").write_text(plan)
    (folder / "other").mkdir()
    monkeypatch.chdir(folder / "other")
    words[2] = "../people.csv"
    assert _exit_code([*words, "--plan", "../plan.toml", "-o", "two.csv"]) == 0
    release = ["release", "../plan.toml", "-q", "--override", "nothing is required", "--out", "three"]
    assert _exit_code(release) == 0
    names = [
        set(pl.read_csv(folder / each)["pid"]) for each in ("one.csv", "other/two.csv", "other/three/out.csv")
    ]
    assert names[0] == names[1] == names[2]
    assert [each.name for each in folder.rglob("*.key")] == ["people.key"]
