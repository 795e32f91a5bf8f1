"""Attacks with a control at 100,000 records × 10 columns, 2,000 queries on each side.

    python benchmarks/bench_attacks.py [n]

Processor seconds of every attack on a noisy release, and the peak memory. Beside them the linkability of
anonymeter, which needs an older numpy: name the interpreter of an environment that has it,

    ANONYMETER_PYTHON=…/bin/python python benchmarks/bench_attacks.py

and it attacks the same files with as many queries; without it the peer is skipped. Both are timed in one run:
a ratio says more than seconds do. At least 10 is asked for, and less than a gigabyte. Kernels are compiled
and files are read before the clock starts.
"""

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
import ratios

import sfumato
from sfumato.core.evidence import Evidence
from sfumato.core.release import Release
from sfumato.core.requirement import parse_measure
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table

QUERIES = 2000
SMALL = "5000"
NUMBERS, WORDS = [f"n{i}" for i in range(6)], [f"w{i}" for i in range(3)]
SCHEMA = Schema(
    (
        *(Column(name, Kind.CONTINUOUS, Role.KEY) for name in NUMBERS),
        *(Column(name, Kind.NOMINAL, Role.KEY) for name in WORDS),
        Column("secret", Kind.NOMINAL, Role.SENSITIVE),
    )
)
ATTACKS = ("linkability", "singling-out", "membership", "inference(by=neighbours)", "inference(by=forest)")

#: What the peer is asked to do, in its own environment.
PEER = """
import sys, time
from importlib.metadata import version
import pandas as pd
from anonymeter.evaluators import LinkabilityEvaluator
ori, syn, control = (pd.read_csv(path) for path in sys.argv[1:4])
first, second = (names.split(",") for names in sys.argv[4:6])
def attack(queries):
    asked = dict(n_attacks=queries, aux_cols=(first, second), n_neighbors=1)
    made = LinkabilityEvaluator(ori=ori, syn=syn, control=control, **asked)
    made.evaluate(n_jobs=1)
    return made.risk().value
attack(10)
began = time.process_time()
value = attack(int(sys.argv[6]))
print(time.process_time() - began, value, version("anonymeter"))
"""


def people(n, rng):
    """Correlated numbers, and words of few values."""
    common = rng.normal(size=(n, 2)) @ rng.normal(size=(2, len(NUMBERS)))
    frame = pl.DataFrame(np.round(np.exp(0.5 * (common + rng.normal(size=common.shape))), 3), schema=NUMBERS)
    words = {name: rng.choice(list("abcdefghij")[: 4 + 3 * i], n) for i, name in enumerate(WORDS)}
    secret = np.where(
        rng.random(n) < 0.6, np.where(frame["n0"] > 1, "x", "y"), rng.choice(["x", "y", "z"], n)
    )
    return frame.with_columns(
        **{name: pl.Series(each) for name, each in words.items()}, secret=pl.Series(secret)
    )


def noisy(frame, rng):
    """The release: every number moved a little."""
    return frame.with_columns(
        pl.Series(name, frame[name].to_numpy() + rng.normal(0, 0.1, len(frame))) for name in NUMBERS
    )


def ours(name, original, release, control):
    measure = parse_measure(name)
    evidence = Evidence(original, Release.of(release), resources={"control": control})
    return measure.score(evidence, Run(seed=1)).value


def call(name, original, release, control):
    return sfumato.assess(
        original.frame, Release.of(release), [name], schema=SCHEMA, resources={"control": control}, seed=1
    )


def peer(frames):
    """Seconds and version of anonymeter's linkability, or None and why there are none."""
    interpreter = os.environ.get("ANONYMETER_PYTHON", "")
    if not interpreter:
        return None, "no environment is named in ANONYMETER_PYTHON"
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder) / f"{i}.csv") for i in range(3)]
        for frame, path in zip(frames, paths, strict=True):
            frame.write_csv(path)
        halves = [",".join(half) for half in parts()]
        done = subprocess.run(
            [interpreter, "-c", PEER, *paths, *halves, str(QUERIES)],
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        return None, f"it ended with code {done.returncode}"
    seconds, value, version = done.stdout.split()
    print(f"  anonymeter's risk {float(value):.4f}")
    return float(seconds), f"anonymeter {version}: linkability"


def parts():
    names = [*NUMBERS, *WORDS]
    return names[::2], names[1::2]


def main():
    sizes = [int(word) for word in sys.argv[1:] if word.isdigit()]
    n, rng = sizes[0] if sizes else 100_000, np.random.default_rng(1)
    original, control = people(n, rng), people(n // 4, rng)
    frames = original, noisy(original, rng), control
    tables = [Table(frame, SCHEMA) for frame in frames]
    small = [Table(frame.head(200), SCHEMA) for frame in frames]
    print(f"attacks, {n:,} records × {len(SCHEMA.columns)} columns, {QUERIES:,} queries, processor seconds")
    theirs, name = peer(frames)
    fine = True
    for attack in ATTACKS:
        halves = "+".join(parts()[0]), "+".join(parts()[1])
        asked = "linkability(first={}, second={})".format(*halves) if attack == "linkability" else attack
        beside = (name, theirs) if attack == "linkability" and theirs is not None else ()
        for kind, work in (("score", ours), ("sfumato.assess", call)):
            work(asked, *small)
            seconds, _ = ratios.least(lambda work=work, asked=asked: work(asked, *tables))
            least = 10 if beside and kind == "score" else 0
            fine &= ratios.beside(f"{attack}, {kind}", n, seconds, *beside, at_least=least)
    if theirs is None:
        ratios.skip("linkability of anonymeter", name)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"  peak memory {memory:.2f} GB")
    return 0 if memory < 1 and fine else 1


if __name__ == "__main__":
    sys.exit(main())
