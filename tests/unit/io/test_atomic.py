"""Files appear whole or not at all, and an original is never overwritten."""

from __future__ import annotations

import os

import polars as pl
import pytest

from sfumato import io
from sfumato.errors import WriteError
from sfumato.io.atomic import check_writable, replacing


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("failure", [KeyboardInterrupt, RuntimeError, SystemExit])
def test_a_failure_leaves_the_old_file(tmp_path, failure):
    path = tmp_path / "report.html"
    io.write_text(path, "old")

    def fail():
        with replacing(path, overwrite=True) as file:
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
    with pytest.raises(WriteError, match="got: no space left on device"):
        io.write_bytes(tmp_path / "a.bin", b"x")
    assert names(tmp_path) == []


def test_nothing_is_overwritten_unless_allowed(tmp_path):
    path = tmp_path / "data.csv"
    io.write(pl.DataFrame({"a": [1]}), path)
    with pytest.raises(WriteError, match="must not exist yet"):
        io.write(pl.DataFrame({"a": [2]}), path)
    assert path.read_text() == "a\n1\n"
    io.write(pl.DataFrame({"a": [2]}), path, overwrite=True)
    assert path.read_text() == "a\n2\n"


def test_a_file_that_appears_meanwhile_is_not_overwritten(tmp_path):
    path = tmp_path / "plan.toml"

    def race():
        with replacing(path) as file:
            file.write(b"mine")
            path.write_text("theirs")

    with pytest.raises(WriteError, match="must not exist yet"):
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
    with pytest.raises(WriteError, match="must not be an original"):
        io.write(pl.DataFrame({"a": [2]}), path, originals=["original.csv", "gone.csv"], overwrite=True)
    assert original.read_text() == "a\n1\n"


def test_a_symlink_to_another_file_is_followed(tmp_path):
    (tmp_path / "v1.txt").write_text("old")
    (tmp_path / "latest.txt").symlink_to("v1.txt")
    io.write_text(tmp_path / "latest.txt", "new", overwrite=True)
    assert (tmp_path / "v1.txt").read_text() == "new"
    assert (tmp_path / "latest.txt").is_symlink()


def test_the_folder_must_exist(tmp_path):
    with pytest.raises(WriteError, match=r"must exist, got: `.*`, which does not") as caught:
        io.write_text(tmp_path / "no" / "a.txt", "x")
    assert "mkdir -p" in caught.value.hint
    (tmp_path / "file").write_text("x")
    with pytest.raises(WriteError, match="must be a folder"):
        io.write_text(tmp_path / "file" / "a.txt", "x")
    (tmp_path / "folder").mkdir()
    with pytest.raises(WriteError, match="got: a folder"):
        io.write_text(tmp_path / "folder", "x", overwrite=True)


def test_a_folder_that_may_not_be_written(tmp_path, monkeypatch):
    def refuse(self, *told, **more):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.open", refuse)
    with pytest.raises(WriteError, match="got: permission denied") as caught:
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
    with pytest.raises(WriteError, match="must not exist yet"):
        check_writable(tmp_path / "a.csv")
    with pytest.raises(WriteError, match="must not be an original"):
        check_writable(tmp_path / "a.csv", originals=[tmp_path / "a.csv"], overwrite=True)
    with pytest.raises(WriteError, match="must exist"):
        check_writable(tmp_path / "no" / "a.csv")
    assert names(tmp_path) == ["a.csv"]


def test_a_private_file_is_for_its_owner(tmp_path):
    io.write_text(tmp_path / "seed.toml", "x", private=True)
    assert (tmp_path / "seed.toml").stat().st_mode & 0o777 == 0o600
