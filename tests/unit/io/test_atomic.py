"""Files appear together and whole or not at all, and an original is never overwritten."""

from __future__ import annotations

import json
import os
import stat
from contextlib import suppress

import polars as pl
import pytest

from sfumato import io
from sfumato.errors import WriteError
from sfumato.io import atomic, journal
from sfumato.io.atomic import Staging, check_writable
from sfumato.io.journal import settle


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("failure", [KeyboardInterrupt, RuntimeError, SystemExit])
def test_a_failure_leaves_the_old_file(tmp_path, failure):
    path = tmp_path / "report.html"
    io.write_text(path, "old")

    def fail():
        with Staging(overwrite=True) as staging, staging.open(path) as file:
            file.write(b"half of the n")
            raise failure

    with pytest.raises(failure):
        fail()
    assert path.read_text() == "old"
    assert names(tmp_path) == ["report.html"]


@pytest.mark.parametrize("name", ["data.csv", "data.parquet"])
def test_a_crash_while_writing_a_table_leaves_the_old_file(tmp_path, monkeypatch, name):
    path = tmp_path / name
    io.write(pl.DataFrame({"a": [1]}), path)
    before = path.read_bytes()

    def crash(self, file, **told):
        file.write_bytes(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(pl.DataFrame, "write_csv", crash)
    monkeypatch.setattr(pl.DataFrame, "write_parquet", crash)
    with pytest.raises(KeyboardInterrupt):
        io.write(pl.DataFrame({"a": [2]}), path, overwrite=True)
    assert path.read_bytes() == before
    assert names(tmp_path) == [name]


def test_a_full_disk_is_a_write_error(tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(WriteError, match=r"cannot write `.*`: no space left on device"):
        io.write_text(tmp_path / "a.txt", "x")
    assert names(tmp_path) == []


def test_nothing_is_overwritten_unless_allowed(tmp_path):
    path = tmp_path / "data.csv"
    io.write(pl.DataFrame({"a": [1]}), path)
    with pytest.raises(WriteError, match="exists already"):
        io.write(pl.DataFrame({"a": [2]}), path)
    assert path.read_text() == "a\n1\n"
    io.write(pl.DataFrame({"a": [2]}), path, overwrite=True)
    assert path.read_text() == "a\n2\n"


def test_a_file_that_appears_meanwhile_is_not_overwritten(tmp_path):
    path = tmp_path / "plan.toml"

    def race():
        with Staging() as staging:
            staging.write_text(path, "mine")
            path.write_text("theirs")

    with pytest.raises(WriteError, match="exists already"):
        race()
    assert path.read_text() == "theirs"
    assert names(tmp_path) == ["plan.toml"]


@pytest.mark.parametrize("way", ["same", "dots", "symlink", "hard link", "link to folder"])
def test_an_original_is_never_overwritten(tmp_path, monkeypatch, way):
    original = tmp_path / "original.csv"
    original.write_text("a\n1\n")
    path = tmp_path / "out.csv"
    if way == "same":
        path = original
    elif way == "dots":
        (tmp_path / "sub").mkdir()
        path = tmp_path / "sub" / ".." / "original.csv"
    elif way == "symlink":
        path.symlink_to(original)
    elif way == "hard link":
        path.hardlink_to(original)
    else:
        (tmp_path / "alias").symlink_to(tmp_path, target_is_directory=True)
        path = tmp_path / "alias" / "original.csv"
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WriteError, match="is the same file as the original"):
        io.write(pl.DataFrame({"a": [2]}), path, originals=["original.csv", "gone.csv"], overwrite=True)
    assert original.read_text() == "a\n1\n"


def test_a_symlink_to_another_file_is_followed(tmp_path):
    (tmp_path / "v1.txt").write_text("old")
    (tmp_path / "latest.txt").symlink_to("v1.txt")
    io.write_text(tmp_path / "latest.txt", "new", overwrite=True)
    assert (tmp_path / "v1.txt").read_text() == "new"
    assert (tmp_path / "latest.txt").is_symlink()


def test_the_folder_must_exist(tmp_path):
    with pytest.raises(WriteError, match=r"there is no folder `.*no`") as caught:
        io.write_text(tmp_path / "no" / "a.txt", "x")
    assert "mkdir -p" in caught.value.hint
    (tmp_path / "file").write_text("x")
    with pytest.raises(WriteError, match="is a file, not a folder"):
        io.write_text(tmp_path / "file" / "a.txt", "x")
    (tmp_path / "folder").mkdir()
    with pytest.raises(WriteError, match="is a folder, not a file"):
        io.write_text(tmp_path / "folder", "x", overwrite=True)


def test_a_folder_that_may_not_be_written(tmp_path, monkeypatch):
    def refuse(*told, **more):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(WriteError, match=r"cannot write `.*`: permission denied") as caught:
        io.write_text(tmp_path / "a.txt", "x")
    assert caught.value.hint == "choose a folder in which you may write"


def test_permissions_are_kept(tmp_path):
    path = tmp_path / "a.txt"
    io.write_text(path, "é")
    assert path.read_bytes() == "é".encode()
    path.chmod(0o640)
    io.write_text(path, "new", overwrite=True)
    assert path.stat().st_mode & 0o777 == 0o640


def test_what_would_fail_is_said_before(tmp_path):
    check_writable(tmp_path / "a.csv")
    assert names(tmp_path) == []
    (tmp_path / "a.csv").write_text("a")
    with pytest.raises(WriteError, match="exists already"):
        check_writable(tmp_path / "a.csv")
    with pytest.raises(WriteError, match="is the same file as the original"):
        check_writable(tmp_path / "a.csv", originals=[tmp_path / "a.csv"], overwrite=True)
    with pytest.raises(WriteError, match="there is no folder"):
        check_writable(tmp_path / "no" / "a.csv")
    assert names(tmp_path) == ["a.csv"]


# --------------------------------------------------------------------------------------- several together


OLD = {"a.csv": "old a", "b.csv": "old b", "b.labels.csv": "old labels"}
NEW = {"a.csv": "new a", "b.csv": "new b", "c.json": "new trail"}


def contents(folder):
    return {path.name: path.read_text() for path in folder.rglob("*") if path.is_file()}


def put(folder, files):
    for name, text in files.items():
        (folder / name).write_text(text)


def stage_new(folder, other=None):
    """Stage two tables and a private file; the labels of the second go."""
    staging = Staging(overwrite=True)
    for name, text in NEW.items():
        where = other if other and name == "b.csv" else folder
        staging.write_text(where / name, text, private=name == "c.json")
    staging.remove((other or folder) / "b.labels.csv")
    return staging


def die(staging):
    """What a kill does: the locks are gone, and nobody tidies up."""
    for file in staging._journals.values():
        file.close()
    journal.OWN.difference_update(staging._journals)
    staging._journals = {}


class Killed(BaseException):
    """The process ends here."""


def at_step(number):
    """Count every change of names in a folder, and end the process before the one of that number."""
    taken = 0

    def step(original):
        def stepping(*arguments, **options):
            nonlocal taken
            taken += 1
            if taken == number:
                raise Killed
            return original(*arguments, **options)

        return stepping

    return step


def test_several_files_appear_together(tmp_path):
    put(tmp_path, OLD)
    with stage_new(tmp_path):
        assert {name: contents(tmp_path)[name] for name in OLD} == OLD
    assert contents(tmp_path) == NEW


@pytest.mark.parametrize("failing", ["open", "fsync", "chmod", "journal", "store"])
def test_whatever_fails_before_the_journal_leaves_the_old_files(tmp_path, monkeypatch, failing):
    put(tmp_path, OLD)

    def fail(*told, **more):
        raise OSError(28, "No space left on device")

    staging = stage_new(tmp_path)
    if failing == "store":
        staging.finally_store(lambda: (_ for _ in ()).throw(WriteError("the database is full")))
    elif failing == "journal":
        monkeypatch.setattr(atomic, "write_through", fail)
    elif failing == "chmod":
        monkeypatch.setattr("pathlib.Path.chmod", fail)
    else:
        monkeypatch.setattr(os, failing, fail)
    said = "database is full" if failing == "store" else "no space left"
    more = ["d.csv"] if failing in {"open", "fsync"} else []

    def finish():
        with staging:
            for name in more:
                staging.write_text(tmp_path / name, "one more")

    with pytest.raises(WriteError, match=said):
        finish()
    assert contents(tmp_path) == OLD


def test_a_journal_that_was_only_begun_decides_nothing(tmp_path, monkeypatch):
    """A disk that is full in the middle of the journal; and a process that is killed there."""
    put(tmp_path, OLD)
    staging = stage_new(tmp_path)
    (journal,) = staging._journals
    journal.write_bytes(json.dumps({"moves": [["x", "a.csv"]], "removals": ["b.csv"]})[:-1].encode())
    die(staging)
    settle(tmp_path)
    assert contents(tmp_path) == OLD


@pytest.mark.parametrize("apart", [False, True], ids=["one folder", "two folders"])
@pytest.mark.parametrize("number", range(1, 13))
def test_a_process_killed_at_any_step_leaves_all_or_nothing_at_the_next_start(
    tmp_path, monkeypatch, number, apart
):
    """Before each rename, removal and sync: what the next process finds is the old state or the new one."""
    other = tmp_path / "other" if apart else None
    if other:
        other.mkdir()
    put(tmp_path, {name: text for name, text in OLD.items() if not (apart and name.startswith("b"))})
    put(other or tmp_path, {name: text for name, text in OLD.items() if name.startswith("b")})
    staging = stage_new(tmp_path, other)
    step = at_step(number)
    with monkeypatch.context() as patched, suppress(Killed):
        patched.setattr("pathlib.Path.replace", step(atomic.Path.replace))
        patched.setattr("pathlib.Path.unlink", step(atomic.Path.unlink))
        patched.setattr(os, "fsync", step(os.fsync))
        patched.setattr(staging, "discard", lambda: die(staging))
        with staging:
            pass
    for folder in (other, tmp_path) if number % 2 and other else (tmp_path, other):  # either may be next
        if folder:
            check_writable(folder / "unrelated.csv")
    # The journal is written right away, or after the names in the other folder are on the disk.
    assert contents(tmp_path) == (OLD if apart and number == 1 else NEW)


def test_leftovers_of_the_dead_are_removed_and_those_of_the_living_are_not(tmp_path):
    living, dead = Staging(), Staging()
    living.write_text(tmp_path / "a.csv", "living")
    dead.write_text(tmp_path / "b.csv", "dead")
    die(dead)
    assert len(names(tmp_path)) == 4
    io.write_text(tmp_path / "c.csv", "another")
    assert len(names(tmp_path)) == 3
    with living:
        pass
    assert contents(tmp_path) == {"a.csv": "living", "c.csv": "another"}


def test_what_another_process_has_staged_is_left_alone(tmp_path, monkeypatch):
    """Only the lock says that it lives: the files of this process it would know anyway."""
    living = Staging()
    living.write_text(tmp_path / "a.csv", "living")
    monkeypatch.setattr(journal, "OWN", set())
    settle(tmp_path)
    with living:
        pass
    assert contents(tmp_path) == {"a.csv": "living"}


@pytest.mark.skipif(os.name != "posix", reason="owners of files")
def test_a_journal_of_another_person_is_not_followed(tmp_path, monkeypatch):
    """Or who may write into a shared folder could have anything replaced that the next one may replace."""
    put(tmp_path, {"mine": "precious", "theirs": "bait"})
    said = {"moves": [["theirs", str(tmp_path / "mine")]], "removals": ["mine"], "journals": []}
    (tmp_path / ".sfumato-0123.journal").write_text(json.dumps(said))
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    check_writable(tmp_path / "new.csv")
    assert {"mine", "theirs", ".sfumato-0123.journal"} == set(contents(tmp_path))
    monkeypatch.undo()
    check_writable(tmp_path / "new.csv")
    assert set(contents(tmp_path)) == set()


def test_a_file_in_the_way_of_a_decided_release_is_told_and_the_next_start_completes(tmp_path, monkeypatch):
    put(tmp_path, OLD)

    def fail(self, target):
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr("pathlib.Path.replace", fail)
        with (
            pytest.raises(WriteError, match="cannot rename all new files"),
            stage_new(tmp_path),
        ):
            pass
        with pytest.raises(WriteError, match="cannot rename all new files"):
            check_writable(tmp_path / "new.csv")
    check_writable(tmp_path / "new.csv")
    assert contents(tmp_path) == NEW


def test_two_files_cannot_take_one_name(tmp_path):
    with pytest.raises(WriteError, match="two files would be written to"), Staging(overwrite=True) as staging:  # noqa: PT012
        staging.write_text(tmp_path / "a.csv", "x")
        staging.write_text(tmp_path / "." / "a.csv", "y")
    assert names(tmp_path) == []


def test_tables_are_stored_when_all_is_staged_and_nothing_has_its_name(tmp_path):
    seen = []
    with Staging() as staging:
        staging.finally_store(lambda: seen.append(sorted(contents(tmp_path).values())))
        staging.write_text(tmp_path / "a.csv", "x")
        assert seen == []
    assert seen == [["", "x"]]  # the journal is still empty
    assert contents(tmp_path) == {"a.csv": "x"}


# ---------------------------------------------------------------------------------------------- permissions


@pytest.mark.skipif(os.name != "posix", reason="file modes")
@pytest.mark.parametrize("before", [None, 0o600, 0o640])
def test_nothing_staged_can_be_read_by_more_people_than_the_file(tmp_path, before):
    path = tmp_path / "seed.json"
    if before is not None:
        path.write_text("old")
        path.chmod(before)
    umask = os.umask(0)
    try:
        with Staging(overwrite=True) as staging, staging.open(path, private=before is None) as file:
            file.write(b"secret")
            modes = {stat.S_IMODE(each.stat().st_mode) for each in tmp_path.iterdir()}
            assert modes <= {0o600, before}
    finally:
        os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == (before or 0o600)
    assert path.read_text() == "secret"
