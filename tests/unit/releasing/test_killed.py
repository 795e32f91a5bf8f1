"""A process that is killed while it releases two linked tables leaves the old release or the new one."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pytest

from sfumato.recipes.parts import fingerprint
from sfumato.recipes.plan import Plan
from sfumato.releasing.destination import Destination

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")

PLAN = """
[tables.persons.data]
path = "persons.csv"
[tables.persons.columns]
pid = { kind = "nominal", role = "identifier", pseudonym = "person" }
age = { kind = "continuous", role = "key" }
[[tables.persons.steps]]
method = "rank-swapping"
[tables.persons.output]
path = "persons.out.csv"

[tables.stays.data]
path = "stays.csv"
[tables.stays.columns]
patient = { kind = "nominal", role = "person", pseudonym = "person" }
days = { kind = "continuous", role = "key" }
[[tables.stays.steps]]
method = "rank-swapping"
[tables.stays.output]
path = "OTHER/stays.out.csv"
"""

#: Releases anew for ever, each time over the release before.
SCRIPT = """
import sys
from pathlib import Path
from sfumato.core.run import Run
from sfumato.recipes.plan import Plan
from sfumato.releasing.carry_out import carry_out
from sfumato.releasing.decide import decide
from sfumato.releasing.destination import Destination, write_release

plan = Plan.read(Path("plan.toml"))
destination = Destination(plan, overwrite=True)
made = [carry_out(plan, Run(seed=2**64 + each)) for each in (1, 2)]
print("ready", flush=True)
sys.stdin.readline()
while True:
    for outcome in made:
        write_release(decide(outcome, subject="it", unjudged=True), destination)
"""

RELEASED = {"persons.out.csv", "stays.out.csv", "tables.private.json", "releases.private.jsonl"}


@pytest.fixture(params=[".", "other"], ids=["one folder", "two folders"])
def hospital(tmp_path, request):
    rng = np.random.default_rng(1)
    pl.DataFrame({"pid": range(60), "age": rng.integers(0, 90, 60)}).write_csv(tmp_path / "persons.csv")
    stays = {"patient": rng.integers(0, 60, 200), "days": rng.integers(1, 30, 200)}
    pl.DataFrame(stays).write_csv(tmp_path / "stays.csv")
    (tmp_path / "other").mkdir()
    (tmp_path / "plan.toml").write_text(PLAN.replace("OTHER", request.param))
    return tmp_path


def started(folder):
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    return process


def seed_there(folder):
    """The seed of the release that is there, whose files must be all there and belong together; None if none."""
    found = {path.name: path for path in folder.rglob("*") if path.is_file()}
    assert set(found) - {"persons.csv", "stays.csv", "plan.toml"} in (set(), RELEASED)
    if "tables.private.json" not in found:
        return None
    trail = json.loads(found["tables.private.json"].read_text())
    for part in trail["tables"].values():
        assert fingerprint(found[part["output"]["name"]]) == part["output"]["sha256"]
    assert found["tables.private.json"].stat().st_mode & 0o077 == 0
    return int(trail["seed"], 16)


@pytest.mark.parametrize("kills", [3, pytest.param(50, marks=pytest.mark.slow)])
def test_killed_at_any_instant_all_or_nothing(hospital, kills):
    """Most kills fall into writing: the process does nothing else. The first ones find no older release."""
    chance = random.Random(kills)
    destination = Destination(Plan.read(hospital / "plan.toml"), overwrite=True)
    halfway = 0
    for _ in range(kills):
        process = started(hospital)
        process.stdin.write("go\n")
        process.stdin.flush()
        time.sleep(chance.uniform(0, 0.03))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdin.close()
        process.stdout.close()
        halfway += any(path.name.startswith(".sfumato") for path in hospital.rglob("*"))
        destination.check()  # the next start
        assert seed_there(hospital) in (None, 2**64 + 1, 2**64 + 2)
    if kills > 10:
        assert halfway > kills / 4, "the kills must find something to complete or to remove"
