"""Parties as they are in a test: a folder each, with the plan, the public hierarchies and certificates, and own data."""

import csv
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

from sfumato.parties.identity import make_identity

NAMES = ("east", "north", "west")

AGES = [[str(age), f"{age // 10 * 10}-{age // 10 * 10 + 9}", "*"] for age in range(20, 60)]
TOWNS = [["ash", "hill", "*"], ["beech", "hill", "*"], ["cove", "coast", "*"], ["dune", "coast", "*"]]

PLAN = """\
{requirements}

[parties]
leader = "{leader}"
records = "{records}"

[parties.roster]
{roster}

[columns.name]
kind = "nominal"
role = "identifier"
[columns.age]
kind = "continuous"
role = "key"
integer = true
hierarchy = "ages"
[columns.town]
kind = "nominal"
role = "key"
hierarchy = "towns"
[columns.ill]
kind = "nominal"
role = "sensitive"

[resources.ages]
path = "ages.csv"
holds = "hierarchy"
[resources.towns]
path = "towns.csv"
holds = "hierarchy"

[[steps]]
method = "global-recoding"
[steps.parameters]
k = {k}
suppression = {suppression}

[output]
path = "released.csv"
"""


def write_rows(path, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)


def people(n, seed, *, missing=0.05):
    """Records of one party: identifier, age, town and illness; some ages are missing."""
    rng = np.random.default_rng(seed)
    ages = np.clip(rng.normal(38, 9, n).round(), 20, 59).astype(int)
    return [
        [
            f"person {seed}/{i}",
            "" if rng.random() < missing else str(ages[i]),
            rng.choice(["ash", "beech", "cove", "dune"], p=[0.4, 0.3, 0.2, 0.1]),
            rng.choice(["flu", "cold", "none"]),
        ]
        for i in range(n)
    ]


def set_up(
    folder, *, names=NAMES, sizes=(120, 90, 150), records="pooled", k=5, suppression=10.0, required='"k >= 5"'
):
    """Make a folder for the leader and one for each party, all with the same plan; give them by name."""
    keys = folder / "keys"
    keys.mkdir(parents=True)
    prints = {name: make_identity(name, keys).fingerprint for name in (*names, "leader")}
    roster = "\n".join(f'{name} = "{prints[name]}"' for name in names)
    text = PLAN.format(
        leader=prints["leader"], roster=roster, records=records, k=k, suppression=suppression,
        requirements=f"requirements = [{required}]",
    )  # fmt: skip
    places = {}
    for number, name in enumerate((*names, "leader")):
        home = places[name] = folder / name
        home.mkdir()
        (home / "plan.toml").write_text(text, encoding="utf-8")
        write_rows(home / "ages.csv", AGES)
        write_rows(home / "towns.csv", TOWNS)
        for each in (*names, "leader"):
            shutil.copy(keys / f"{each}.pem", home)
        shutil.copy(keys / f"{name}.key", home)
        if name != "leader":
            header = ["name", "age", "town", "ill"]
            write_rows(home / "data.csv", [header, *people(sizes[number], number)])
    return places


def start(home, verb, *arguments):
    """Start a verb of `sfumato party` as a process of its own, in the folder of a party."""
    command = [sys.executable, "-m", "sfumato", "party", verb, *map(str, arguments)]
    return subprocess.Popen(command, cwd=home, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def serve(home, *arguments):
    """Start a leader at a free port; give the process and the address at which it waits."""
    process = start(home, "serve", "plan.toml", "--key", "leader.key", "--at", "127.0.0.1:0", *arguments)
    for line in process.stderr:
        if line.startswith("waiting for"):
            return process, line.split()[-1]
    raise AssertionError(f"the leader does not wait: {process.communicate()}")


def join(home, address, *arguments):
    """Start a party that joins with its data."""
    key = f"{Path(home).name}.key"
    return start(home, "join", "plan.toml", "data.csv", "--key", key, "--at", address, *arguments)


def end(process):
    """Wait for a process; give its exit code and what it said on stderr."""
    out, err = process.communicate(timeout=300)
    assert not out, out
    return process.returncode, err
