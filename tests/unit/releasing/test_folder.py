"""The release folder: what is in it, what becomes of one that is there, and that it tells a changed byte."""

import json
import os
import shutil
import subprocess

import numpy as np
import polars as pl
import pytest

import sfumato
from sfumato.core.run import Run
from sfumato.errors import PlanError, ReadError, RequirementError, WriteError
from sfumato.releasing.checksums import contents, states_of
from sfumato.releasing.trail import trail_of_file
from sfumato.releasing.verify import verify_release

PLAN = """
requirements = ["exact-match <= 0.9"]

[data]
path = "people.csv"

[columns]
pid = { kind = "nominal", role = "person", pseudonym = "person" }
wage = { kind = "continuous", role = "key" }
town = { kind = "nominal", role = "key" }

[[steps]]
method = "METHOD"
columns = ["wage"]

[output]
path = "out.csv"
MORE
"""

LEAVES = {
    "SHA256SUMS", "change-note.md", "check_release.py", "data-card.md", "evidence.html", "evidence.json", "out.csv",
    "report.html", "report.json",
}  # fmt: skip
STAYS = {
    "private/SHA256SUMS", "private/check_lattice.py", "private/check_original.py", "private/evidence.html", "private/evidence.json", "private/plan.toml",
    "private/report.html", "private/report.json", "private/trail.private.json", "private/releases.private.jsonl",
}  # fmt: skip


@pytest.fixture
def home(tmp_path):
    rng = np.random.default_rng(1)
    frame = {"pid": range(40), "wage": rng.lognormal(8, 1, 40).round(2), "town": rng.choice(["a", "b"], 40)}
    pl.DataFrame(frame).write_csv(tmp_path / "people.csv")
    return tmp_path


def planned(home, method="correlated-noise", more="", name="plan.toml"):
    (home / name).write_text(PLAN.replace("METHOD", method).replace("MORE", more))
    return home / name


def released(home, *, seed=None, **how):
    made = sfumato.release(planned(home, **how), seed=seed)
    return made, made.write(home / "out", overwrite=True)


def wrong(folder, **how):
    (found,) = verify_release(folder, Run(), **how).values()
    return set(found.wrong), found


def test_what_leaves_and_what_stays(home):
    _, written = released(home)
    folder = home / "out"
    assert (
        {path.relative_to(folder).as_posix() for path in written} == LEAVES | STAYS == set(contents(folder))
    )
    assert (folder / "private").stat().st_mode & 0o777 == 0o700
    assert all((folder / name).stat().st_mode & 0o077 == 0 for name in STAYS)
    assert (folder / "out.csv").stat().st_mode & 0o044 == (home / "people.csv").stat().st_mode & 0o044
    assert not [path for path in home.iterdir() if path.name.startswith(".sfumato")]


@pytest.mark.skipif(not shutil.which("sha256sum"), reason="sha256sum of the system")
@pytest.mark.parametrize("where", [".", "private"])
def test_sums_are_those_of_the_system(home, where):
    released(home)
    told = subprocess.run(
        ["sha256sum", "-c", "--strict", "SHA256SUMS"],
        cwd=home / "out" / where,
        capture_output=True,
        check=False,
        text=True,
    )
    assert told.returncode == 0, told.stderr


def test_one_byte_changed_in_any_file_names_that_file(home):
    released(home)
    folder = home / "out"
    for name in sorted(LEAVES | STAYS):
        whole = (folder / name).read_bytes()
        for position in {0, len(whole) // 2, len(whole) - 2, len(whole) - 1}:
            (folder / name).write_bytes(
                whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :]
            )
            states = states_of(folder)
            assert [each for each, state in states.items() if state == "different"] == [name]
            assert "added" not in states.values()
            assert name in wrong(folder)[0]
        (folder / name).write_bytes(whole)
    assert wrong(folder)[0] == set()


def test_a_file_added_or_gone_is_named(home):
    released(home)
    folder = home / "out"
    for name in ("notes.txt", "private/notes.txt", "sub/notes.txt"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("mine")
        assert wrong(folder)[0] == {name}
        (folder / name).unlink()
    (folder / "sub").rmdir()
    for name in sorted(LEAVES | STAYS):
        (folder / name).rename(home / "away")
        found, told = wrong(folder)
        assert name in found
        assert told.files[name] == "missing"
        (home / "away").rename(folder / name)


def test_without_its_private_part_what_leaves_is_compared_with_its_list(home):
    released(home)
    folder = home / "out"
    shutil.move(folder / "private", home / "kept")
    found, told = wrong(folder)
    assert not found
    assert set(told.files) == LEAVES
    assert set(told.files.values()) == {"unchanged"}
    assert "`private` is not here" in told.notes[0]
    (folder / "out.csv").write_text("other")
    assert wrong(folder)[0] == {"out.csv"}


def test_a_signature_is_named_and_left_alone(home):
    made, _ = released(home)
    (home / "out" / "SHA256SUMS.asc").write_text("signed")
    found, told = wrong(home / "out")
    assert not found
    assert told.files["SHA256SUMS.asc"] == "signature"
    assert any("is a signature" in note for note in told.notes)
    with pytest.raises(WriteError, match=r"is signed by .*SHA256SUMS\.asc"):
        made.write(home / "out", overwrite=True)
    assert (home / "out" / "SHA256SUMS.asc").read_text() == "signed"


def test_what_is_made_again_and_what_is_not(home):
    released(home)
    assert wrong(home / "out")[1].files["out.csv"] == "identical"
    assert wrong(home / "out" / "out.csv")[1].files["out.csv"] == "identical"
    assert wrong(home / "out" / "private" / "trail.private.json")[1].files["report.html"] == "unchanged"
    shutil.move(home / "people.csv", home / "moved.csv")
    told = wrong(home / "out")[1]
    assert told.files["out.csv"] == "unchanged"
    assert "--original" in told.notes[0]
    assert wrong(home / "out", original=str(home / "moved.csv"))[1].files["out.csv"] == "identical"
    pl.read_csv(home / "moved.csv").with_columns(pl.col("wage") + 1).write_csv(home / "other.csv")
    with pytest.raises(ReadError, match="its records differ"):
        verify_release(home / "out", Run(), original=str(home / "other.csv"))
    with pytest.raises(ReadError, match="File not found"):
        verify_release(home / "out", Run(), original=str(home / "nowhere.csv"))
    with pytest.raises(ReadError, match="has no private trail of a release"):
        verify_release(home, Run())


def test_noise_that_is_never_repeated_is_verified_by_its_hash(home):
    pytest.importorskip("opendp", reason="noise is drawn by OpenDP")
    plan = planned(home, "private-laplace", 'drop = ["pid", "town"]')  # no ε covers them
    text = plan.read_text().replace(
        'wage = { kind = "continuous",', 'wage = { kind = "continuous", lower = 0, upper = 90000,'
    )
    plan.write_text(text)
    sfumato.release(plan).write(home / "out")
    found, told = wrong(home / "out")
    assert not found
    assert told.files["out.csv"] == "unchanged"
    assert "draws new noise each time" in told.notes[0]


def test_a_trail_of_a_later_version_is_not_read(home):
    released(home)
    trail = home / "out" / "private" / "trail.private.json"
    trail.write_text(json.dumps({**json.loads(trail.read_text()), "trail": 99}))
    shutil.copy(trail, home / "late.private.json")
    with pytest.raises(ReadError, match="later version"):
        verify_release(home / "late.private.json", Run())


# ------------------------------------------------------------------------------------ a folder that is there


def test_a_folder_with_files_needs_leave_and_must_be_a_release(home):
    made, _ = released(home)
    with pytest.raises(WriteError, match="exists already and is not empty"):
        made.write(home / "out")
    (home / "mine").mkdir()
    made.write(home / "mine")  # an empty one is as good as none
    (home / "other").mkdir()
    (home / "other" / "thesis.txt").write_text("mine")
    with pytest.raises(WriteError, match="it is not a release folder"):
        made.write(home / "other", overwrite=True)
    with pytest.raises(WriteError, match="is a file, not a folder"):
        made.write(home / "people.csv", overwrite=True)
    with pytest.raises(WriteError, match=r"Folder not found: .*/no$"):
        made.write(home / "no" / "where")


@pytest.mark.parametrize("name", ["thesis.txt", "private/thesis.txt", "sub/thesis.txt"])
def test_what_is_anybody_elses_is_never_lost(home, name):
    made, _ = released(home)
    (home / "out" / name).parent.mkdir(exist_ok=True)
    (home / "out" / name).write_text("mine")
    with pytest.raises(WriteError, match=f"is not overwritten: `{name}` is not part of its release"):
        made.write(home / "out", overwrite=True)
    assert (home / "out" / name).read_text() == "mine"


def test_what_someone_has_edited_is_not_lost_either(home):
    made, _ = released(home)
    (home / "out" / "data-card.md").write_text("signed by hand")
    with pytest.raises(WriteError, match=r"`data-card\.md` was changed after the release"):
        made.write(home / "out", overwrite=True)


def test_an_original_in_the_folder_is_not_lost(home):
    """Neither one that someone put there nor a table of the release that the next one is made of."""
    released(home)
    text = planned(home, name="again.toml").read_text().replace("people.csv", "out/out.csv")
    (home / "again.toml").write_text(text)
    made = sfumato.release(home / "again.toml")
    with pytest.raises(WriteError, match="it contains the input"):
        made.write(home / "out", overwrite=True)
    assert wrong(home / "out")[0] == set()


def test_the_plan_of_the_folder_edited_takes_its_place(home):
    released(home)
    plan = home / "out" / "private" / "plan.toml"
    plan.write_text(plan.read_text().replace("ratio = 0.1", "ratio = 0.2"))
    sfumato.release(plan).write(home / "out", overwrite=True)
    found, told = wrong(home / "out")
    assert not found
    assert told.files["out.csv"] == "identical"
    assert "ratio = 0.2" in plan.read_text()


def test_ledgers_and_keys_outlive_a_release(home):
    more = 'pseudonym_key = "out/private/people.key"'
    made, _ = released(home, more=more)
    folder = home / "out"
    key = (folder / "private" / "people.key").read_bytes()
    (folder / "private" / "overrides.private.jsonl").write_text('{"reason": "once"}\n')
    first = pl.read_csv(folder / "out.csv")["pid"].sort()
    released(home, more=more)
    assert wrong(folder)[0] == set()
    assert (folder / "private" / "people.key").read_bytes() == key
    assert (folder / "private" / "people.key").stat().st_mode & 0o077 == 0
    assert pl.read_csv(folder / "out.csv")["pid"].sort().equals(first)
    ledger = folder / "private" / "releases.private.jsonl"
    assert len(ledger.read_text().splitlines()) == 2
    assert "once" in (folder / "private" / "overrides.private.jsonl").read_text()
    released(home)  # one that does not use the key
    assert (folder / "private" / "people.key").read_bytes() == key
    made = sfumato.release(planned(home, more='pseudonym_key = "out/people.key"'))
    with pytest.raises(WriteError, match="among the files that are released"):
        made.write(home / "out", overwrite=True)


def test_a_key_that_is_gone_is_no_difference(home):
    released(home, more='pseudonym_key = "people.key"')
    assert wrong(home / "out")[1].files["out.csv"] == "identical"
    (home / "people.key").unlink()
    told = wrong(home / "out")[1]
    assert told.files["out.csv"] == "unchanged"
    assert "the key of the pseudonyms is not" in told.notes[0]


def test_a_run_does_not_write_into_a_release_folder(home, monkeypatch, capfd):
    from sfumato.cli import _exit_code

    released(home)
    monkeypatch.chdir(home)
    assert _exit_code(["run", "out/private/plan.toml", "--overwrite"]) == 3
    assert "is in a release folder" in capfd.readouterr().err
    assert wrong(home / "out")[0] == set()


def test_a_folder_through_a_link_and_one_that_one_is_in(home, monkeypatch):
    made, _ = released(home)
    (home / "deep" / "er").mkdir(parents=True)
    (home / "link").symlink_to(home / "deep" / "er")
    made.write(home / "link" / "out")
    assert wrong(home / "link" / "out")[1].files["out.csv"] == "identical"
    assert wrong(home / "deep" / "er" / "out")[1].files["out.csv"] == "identical"
    monkeypatch.chdir(home / "out")
    with pytest.raises(WriteError, match="is the folder you are in"):
        made.write(home / "out", overwrite=True)


# -------------------------------------------------------------------------- what goes into one, and the gate


def test_several_tables_and_their_plan(home):
    pl.DataFrame({"patient": range(40), "days": [i % 7 for i in range(40)]}).write_csv(home / "stays.csv")
    (home / "tables.toml").write_text(
        """
[release]
title = "A hospital"
[tables.persons]
requirements = ["exact-match <= 0.9"]
data.path = "people.csv"
columns.pid = { kind = "nominal", role = "person", pseudonym = "person" }
columns.wage = { kind = "continuous", role = "key" }
columns.town = { kind = "nominal", role = "key" }
steps = [{ method = "correlated-noise", columns = ["wage"] }]
output.path = "deep/persons.csv"
[tables.stays]
requirements = ["exact-match <= 0.9"]
data.path = "stays.csv"
columns.patient = { kind = "nominal", role = "person", pseudonym = "person" }
columns.days = { kind = "continuous", role = "key" }
output.path = "stays.csv"
"""
    )
    made = sfumato.release(home / "tables.toml")
    assert "persons: " in repr(made)
    made.write(home / "out")
    found, told = wrong(home / "out")
    assert not found
    assert {told.files[name] for name in ("persons.csv", "stays.csv")} == {"identical"}
    assert "A hospital" in (home / "out" / "data-card.md").read_text()
    assert trail_of_file(home / "out" / "persons.csv", made.outcome.parts["persons"].original)["rows"]
    again = sfumato.release(home / "out" / "private" / "plan.toml")
    again.write(home / "out", overwrite=True)
    assert again.plan.about.title == "A hospital"
    text = (home / "tables.toml").read_text()
    (home / "twice.toml").write_text(text.replace("deep/persons", "deep/stays"))
    with pytest.raises(PlanError, match="two tables have the same file name"):
        sfumato.release(home / "twice.toml").write(home / "twice")
    (home / "bare.toml").write_text(text.replace("steps =", "related = [] #"))
    with pytest.raises(PlanError, match="several tables needs steps"):
        sfumato.release(home / "bare.toml")


def test_copies_and_tables_that_are_joined(home):
    sfumato.release(planned(home, more="copies = 2")).write(home / "copies")
    found, told = wrong(home / "copies")
    assert not found
    assert told.files["out.1.csv"] == told.files["out.2.csv"] == "identical"
    original = sfumato.read(home / "plan.toml")
    for name in ("out.1.csv", "out.2.csv"):
        assert trail_of_file(home / "copies" / name, original) is not None
    text = planned(home, "anatomy").read_text().replace('role = "key" }\ntown', 'role = "sensitive" }\ntown')
    text = text.replace('requirements = ["exact-match <= 0.9"]', 'requirements = ["l >= 2"]')
    (home / "apart.toml").write_text(text.replace('columns = ["wage"]', 'columns = ["town"]'))
    made = sfumato.release(home / "apart.toml")
    made.write(home / "apart")
    found, told = wrong(home / "apart")
    assert not found
    assert told.files["out.qit.csv"] == told.files["out.st.csv"] == "identical"
    assert trail_of_file(home / "apart" / "out.qit.csv", made.part.original)["joined"]


def test_a_database_is_no_file_of_a_folder(home):
    plan = planned(home)
    plan.write_text(plan.read_text().replace('"out.csv"', '"sqlite:///x.db?table=t"'))
    with pytest.raises(PlanError, match="needs a file as its output, got: a table of a database"):
        sfumato.release(plan).write(home / "out")
    plan.write_text(plan.read_text().replace('"sqlite:///x.db?table=t"', '"report.json"'))
    with pytest.raises(PlanError, match="cannot have a table called"):
        sfumato.release(plan).write(home / "out")


def test_what_blocks_yields_only_to_a_reason_that_is_recorded(home):
    plan = planned(home)
    plan.write_text(plan.read_text().replace("exact-match <= 0.9", "k >= 39"))
    with pytest.raises(RequirementError, match="requirement-missed"):
        sfumato.release(plan)
    with pytest.raises(RequirementError, match="requirement-missed"):
        sfumato.release(plan, override="  ")
    sfumato.release(plan, override="agreed with the owner").write(home / "out")
    folder = home / "out"
    assert wrong(folder)[1].files["out.csv"] == "identical"
    trail = json.loads((folder / "private" / "trail.private.json").read_text())
    assert trail["override"]["override"] == "agreed with the owner"
    assert "agreed" in (folder / "private" / "overrides.private.jsonl").read_text()
    evidence = json.loads((folder / "private" / "evidence.json").read_text())
    assert evidence["governance"]["overridden"]["reason"] == "agreed with the owner"
    public = json.loads((folder / "evidence.json").read_text())
    assert public["governance"]["overridden"] == {"rules": ["requirement-missed"]}
    plan.write_text(plan.read_text().replace('requirements = ["k >= 39"]', ""))
    with pytest.raises(RequirementError, match="no requirement limits the risk"):
        sfumato.release(plan)
    assert sfumato.release(plan, for_="secure").write(home / "secure")


def test_the_data_of_a_frame_are_named_when_it_is_verified(home):
    frame = pl.read_csv(home / "people.csv").select("wage", "town")
    made = sfumato.release(frame, for_="secure", roles={"wage": "key", "town": "key"})
    made.write(home / "out")
    found, told = wrong(home / "out")
    assert not found
    assert "names no file" in told.notes[0]
    frame.write_csv(home / "frame.csv")
    assert wrong(home / "out", original=str(home / "frame.csv"))[1].files["release.csv"] == "identical"
    if os.name == "posix":
        assert made.source is None


def test_the_next_of_a_series_never_takes_the_place_of_an_earlier_one(home):
    text = planned(home).read_text()
    (home / "first.toml").write_text(text + "[series]\n")
    sfumato.release(home / "first.toml").write(home / "one")
    (home / "next.toml").write_text(text + '[series]\nearlier = ["one"]\n')
    made = sfumato.release(home / "next.toml")
    with pytest.raises(WriteError, match="it contains the input"):
        made.write(home / "one", overwrite=True)
    made.write(home / "two")
    assert wrong(home / "one")[1].files["out.csv"] == wrong(home / "two")[1].files["out.csv"] == "identical"
    (home / "one").rename(home / "moved")
    found, told = wrong(home / "two")
    assert not found
    assert told.files["out.csv"] == "unchanged"
    assert "an earlier release of the series" in told.notes[0]
