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
import time
from pathlib import Path

import numpy as np
import polars as pl

from sfumato.core.evidence import Evidence
from sfumato.core.release import Release
from sfumato.core.requirement import parse_measure
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table

QUERIES = 2000
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
print(time.process_time() - began, value)
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


def timed(function, *given):
    began = time.process_time()
    return function(*given), time.process_time() - began


def peer(frames):
    """Seconds and risk of anonymeter's linkability, or why there is none."""
    interpreter = os.environ.get("ANONYMETER_PYTHON", "")
    if not interpreter:
        return None, "skipped: no environment is named in ANONYMETER_PYTHON"
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
        return None, f"skipped: it ended with code {done.returncode}"
    seconds, value = map(float, done.stdout.split())
    return seconds, f"risk {value:.4f}"


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
    spent = {}
    for name in ATTACKS:
        if name == "linkability":
            name = f"linkability(first={'+'.join(parts()[0])}, second={'+'.join(parts()[1])})"  # noqa: PLW2901
        ours(name, *small)
        value, seconds = timed(ours, name, *tables)
        spent[name.partition("(")[0]] = spent.get(name.partition("(")[0], seconds)
        print(f"  {name.partition('(first')[0]:26} {seconds:8.2f}   risk {value:.4f}", flush=True)
    seconds, said = peer(frames)
    ratio = (
        "" if seconds is None else f"{seconds:8.2f}   {said}   ratio {seconds / spent['linkability']:6.1f}"
    )
    print(f"  {'anonymeter linkability':26} {ratio or said}")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"  peak memory {memory:.2f} GB")
    return 0 if memory < 1 and (seconds is None or seconds >= 10 * spent["linkability"]) else 1


if __name__ == "__main__":
    sys.exit(main())
