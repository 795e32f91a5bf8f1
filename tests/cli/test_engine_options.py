"""Where a command works: the same file on every engine, and a sentence where the work cannot be done."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from sfumato.data.column_store import _MIN_RECORDS

RECORDS = _MIN_RECORDS + 5_000
SECRET_SEED = "1234567890123"


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    """A text whose first column turns out to be text in its last record."""
    rng, folder = np.random.default_rng(1), tmp_path_factory.mktemp("people")
    frame = pl.DataFrame({
        "code": [*map(str, rng.integers(0, 9, RECORDS - 1)), "late"],
        "age": rng.integers(18, 90, RECORDS),
        "pay": rng.lognormal(8, 1, RECORDS).round(2),
    })  # fmt: skip
    frame.with_columns(pl.when(pl.col("age") > 20).then("pay").alias("pay")).write_csv(folder / "people.csv")
    return folder / "people.csv"


def sfumato(*arguments, folder, **more):
    return subprocess.Popen(
        [sys.executable, "-m", "sfumato", *map(str, arguments)], cwd=folder, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more,
    )  # fmt: skip


def child_of(work):
    """The number of the process in which a command does its work, once it has one."""
    children = Path(f"/proc/{work.pid}/task/{work.pid}/children")
    for _ in range(6000):
        if found := children.read_text().split():
            return int(found[0])
        time.sleep(0.01)
    raise AssertionError("no child was started")


def noise(people, *more):
    options = ("-c", "age,pay", "--unjudged", "--override", "a test of engines", "--seed", SECRET_SEED)
    roles = ("--role", "code=other", "--role", "age=key", "--role", "pay=key")
    return ("protect", "correlated-noise", people, "-o", "out.parquet", *options, *roles, *more)


@pytest.fixture(scope="module")
def in_memory(people, tmp_path_factory):
    folder = tmp_path_factory.mktemp("memory")
    work = sfumato(*noise(people), folder=folder)
    _, err = work.communicate(timeout=300)
    assert work.returncode == 0, err
    return (folder / "out.parquet").read_bytes()


@pytest.mark.parametrize("engine", ["stream", "local:2"])
def test_every_engine_writes_the_same_bytes(people, in_memory, engine, tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    work = sfumato(*noise(people, "--engine", engine, "--scratch", scratch), folder=tmp_path)
    out, err = work.communicate(timeout=300)
    assert work.returncode == 0, err
    assert (tmp_path / "out.parquet").read_bytes() == in_memory
    assert not list(scratch.iterdir())
    assert SECRET_SEED not in out + err
    assert "Traceback" not in err


def test_a_limit_that_is_passed_is_a_sentence(people, tmp_path):
    work = sfumato(*noise(people, "--memory", "30MB", "--scratch", tmp_path), folder=tmp_path)
    _, err = work.communicate(timeout=300)
    assert work.returncode == 3
    assert "more memory than it may use" in err
    assert not (tmp_path / "out.parquet").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")
def test_a_child_that_is_killed_is_a_sentence(people, tmp_path):
    work = sfumato(*noise(people, "--engine", "stream", "--scratch", tmp_path), folder=tmp_path)
    os.kill(child_of(work), signal.SIGKILL)
    _, err = work.communicate(timeout=60)
    assert work.returncode == 3
    assert "ended by the system (SIGKILL)" in err
    assert not (tmp_path / "out.parquet").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="children end with their parent on Linux")
@pytest.mark.parametrize("seconds", [0.0, 0.4, 1.0])
def test_a_child_ends_with_its_parent(people, tmp_path, seconds):
    work = sfumato(*noise(people, "--engine", "stream", "--scratch", tmp_path), folder=tmp_path)
    child = Path(f"/proc/{child_of(work)}")
    time.sleep(seconds)  # once before it asks for it, and once after
    work.kill()
    work.communicate(timeout=60)  # until nobody holds its output
    for _ in range(600):
        if not child.exists() or "State:\tZ" in (child / "status").read_text():
            break
        time.sleep(0.1)
    else:
        pytest.fail("the child goes on")
    assert not (tmp_path / "out.parquet").exists()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--engine", "steam"), "There is no engine `steam`"),
        (("--memory", "much"), "such as 4GB"),
        (("--engine", "stream", "--scratch", "nowhere"), "scratch folder does not exist"),
        (("--engine", "tls://localhost:1"), "needs certificates"),
    ],
)
def test_what_is_wrong_is_said_before_any_work(run, people, options, sentence):
    code, _, err = run(*noise(people, *options))
    assert code == 2
    assert sentence in err
