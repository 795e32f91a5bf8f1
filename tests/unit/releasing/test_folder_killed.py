"""A release folder that is overwritten is the old one or the new one, whole, whenever the process is killed."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress

import numpy as np
import polars as pl
import pytest

import sfumato
from sfumato.io import atomic, journal
from sfumato.io.atomic import Staging
from sfumato.io.journal import settle
from sfumato.releasing.checksums import states_of

PLAN = """
requirements = ["exact-match <= 0.9"]
[data]
path = "people.csv"
[columns]
wage = { kind = "continuous", role = "key" }
[[steps]]
method = "correlated-noise"
[output]
path = "out.csv"
"""

#: Releases anew for ever, each time over the release before; where names cannot be exchanged, in two steps.
#: What the reports tell is measured once, so that the process does little but write.
SCRIPT = """
import sys
import sfumato
from sfumato.io import atomic
from sfumato.report.release_result import Released

if "apart" in sys.argv:
    atomic.exchange = lambda one, other: False
made = [sfumato.release("plan.toml", seed=2**64 + each) for each in (1, 2)]
told = {id(each): each.tell(generated="2030-01-01") for each in made}
Released.tell = lambda self, generated: told[id(self)]
print("ready", flush=True)
sys.stdin.readline()
while True:
    for each in made:
        each.write("out", overwrite=True)
"""


@pytest.fixture
def home(tmp_path):
    wage = np.random.default_rng(1).lognormal(8, 1, 60)
    pl.DataFrame({"wage": wage}).write_csv(tmp_path / "people.csv")
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path


def seed_there(home):
    """The seed of the release that is there, all of whose files must be as it wrote them; None if none."""
    assert {path.name for path in home.iterdir()} <= {"people.csv", "plan.toml", "out"}
    folder = home / "out"
    if not folder.exists():
        return None
    assert set(states_of(folder).values()) == {"unchanged"}
    trail = folder / "private" / "trail.private.json"
    assert trail.stat().st_mode & 0o077 == (folder / "private").stat().st_mode & 0o077 == 0
    return int(json.loads(trail.read_text())["seed"], 16)


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("how", ["at once", "apart"])
@pytest.mark.parametrize("kills", [2, pytest.param(50, marks=pytest.mark.slow)])
def test_killed_at_any_instant_the_old_folder_or_the_new(home, kills, how):
    chance, halfway = random.Random(kills), 0
    for _ in range(kills):
        process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, how],
            cwd=home,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout.readline() == "ready\n"
        process.stdin.write("go\n")
        process.stdin.flush()
        time.sleep(chance.uniform(0, 0.3))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdin.close()
        process.stdout.close()
        halfway += any(path.name.startswith(".sfumato") for path in home.iterdir())
        settle(home)  # the next start
        assert seed_there(home) in (None, 2**64 + 1, 2**64 + 2)
    if kills > 10:
        assert halfway > kills / 4, "the kills must find something to complete or to remove"


class Killed(BaseException):
    """The process ends here."""


def at_step(number, counted):
    """Count every change of names, and end the process before the one of that number."""

    def step(original):
        def stepping(*arguments, **options):
            counted.append(original)
            if len(counted) == number:
                raise Killed
            return original(*arguments, **options)

        return stepping

    return step


def die(staging):
    """What a kill does: the locks are gone, and nobody tidies up."""
    for file in staging._journals.values():
        file.close()
    journal.OWN.difference_update(staging._journals)
    staging._journals = {}


@pytest.mark.parametrize("exchanges", [True, False], ids=["at once", "apart"])
@pytest.mark.parametrize("there", ["new", "overwritten"])
def test_stopped_at_each_step(tmp_path, monkeypatch, exchanges, there):
    """Before each change of a name, each sync and each removal: whole, and nothing left but the folder."""
    if not exchanges:
        monkeypatch.setattr(atomic, "exchange", lambda one, other: False)
    number, seen = 0, set()
    while True:
        number += 1
        home = tmp_path / str(number)
        home.mkdir()
        if there == "overwritten":
            (home / "out").mkdir()
            (home / "out" / "a.txt").write_text("old")
        staging, counted = Staging(overwrite=True), []
        step = at_step(number, counted)
        with monkeypatch.context() as patched, suppress(Killed):
            patched.setattr("pathlib.Path.rename", step(atomic.Path.rename))
            patched.setattr("pathlib.Path.unlink", step(atomic.Path.unlink))
            patched.setattr("pathlib.Path.chmod", step(atomic.Path.chmod))
            patched.setattr(atomic, "exchange", step(atomic.exchange))
            patched.setattr(os, "fsync", step(os.fsync))
            patched.setattr(shutil, "rmtree", step(shutil.rmtree))
            patched.setattr(staging, "discard", lambda staging=staging: die(staging))
            with staging:
                (staging.folder(home / "out") / "a.txt").write_text("new")
        settle(home)
        names = {path.name for path in home.iterdir()}
        assert names <= {"out"}
        seen.add((home / "out" / "a.txt").read_text() if names else None)
        if len(counted) < number:
            break
    assert seen == {None if there == "new" else "old", "new"}


def test_a_folder_that_comes_up_meanwhile_is_not_taken(tmp_path):
    staging = Staging()
    (staging.folder(tmp_path / "out") / "a.txt").write_text("ours")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "b.txt").write_text("theirs")
    with pytest.raises(sfumato.errors.WriteError, match="exists already"), staging:
        pass
    assert [path.name for path in tmp_path.rglob("*.txt")] == ["b.txt"]


def test_names_are_exchanged_here_or_it_is_said(tmp_path):
    from sfumato.io.folder_exchange import exchange

    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    swapped = exchange(tmp_path / "one", tmp_path / "other")
    assert (tmp_path / "one" / "other").exists() == swapped
    if sys.platform == "linux":
        assert swapped
    with pytest.raises(FileNotFoundError):
        exchange(tmp_path / "one", tmp_path / "none") or (_ for _ in ()).throw(FileNotFoundError)
