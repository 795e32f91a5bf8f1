"""Read → protect → write by every method of the registry, and how each stage grows with the records.

    python benchmarks/bench_methods.py [records …] [--only NAME …] [--minutes 10]

CPU seconds of each stage and peak memory (a process for each, kernels compiled before) of mixed records
(`datasets.patients`) at 10,000 and 100,000 records, or as many as are asked for: say `10000 100000 1000000`.
A method is given the keys of the kinds it takes, at its default settings; where they do not do, it says why.
The peer is a bare read and write of the same file by polars, in the same run. From one size to the next the
whole may grow with an exponent of at most 1.1, beyond the work of a second; MDAV and its relatives, which
compare records with records, are allowed 2.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import polars as pl
import ratios

import sfumato
from sfumato import io
from sfumato.core import registry
from sfumato.core.run import Run
from sfumato.data.schema import Role
from sfumato.datasets import patients
from sfumato.errors import SfumatoError

#: A time below this (seconds) is too short to tell how it grows.
SHORT = 1.0
SMALL = "1000 --only mondrian rank-swapping pram --minutes 2"
MOST = 1.1
#: What a method says of its own cost, where it compares records with records, of the table or of a part.
QUADRATIC = ("n²", "n^2", "n part")


def cpu(work):
    start = time.process_time()
    done = work()
    return done, time.process_time() - start


def chosen(cls, schema):
    """The keys of the kinds that a method takes, or whatever column it takes."""
    fit = [column for column in schema.columns if column.kind in cls.kinds]
    return [column.name for column in fit if column.role is Role.KEY] or [column.name for column in fit]


def one(name, path):
    """Protect a file by one method: the seconds of each stage, or the reason why not."""
    cls, like = registry.method(name), patients(10).schema
    method, names = cls(), chosen(cls, like)
    small = patients(500).aimed_at(names)
    try:
        reason = method.refuses(small)
        if reason is None:
            method.apply(small, Run(seed=1))  # loads and compiles what is loaded on first use
    except SfumatoError as error:
        reason = error.message
    if reason is not None:
        return {"reason": reason}
    io.read_table(path, like, rows=100)
    table, read = cpu(lambda: io.read_table(path, like))
    release, protect = cpu(lambda: sfumato.protect(table, method, columns=names, seed=1))
    with tempfile.TemporaryDirectory() as folder:
        _, write = cpu(
            lambda: [
                io.write(made, Path(folder) / f"{n}.csv") for n, made in enumerate(release.tables.values())
            ]
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return {"read": read, "protect": protect, "write": write, "peak": peak, "cost": cls.cost}


def bare(path):
    """Read and write the file by polars alone."""
    with tempfile.TemporaryDirectory() as folder:
        _, taken = cpu(lambda: pl.read_csv(path).write_csv(Path(folder) / "written.csv"))
    return {"read": taken, "protect": 0.0, "write": 0.0, "cost": "n",
            "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024}  # fmt: skip


def in_a_process(name, path, minutes):
    command = [sys.executable, __file__, "--one", name, str(path)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60 * minutes)
    except subprocess.TimeoutExpired:
        return {"reason": f"did not end in {minutes:g} minutes", "late": True}
    return json.loads(done.stdout.splitlines()[-1])


def total(found):
    return found["read"] + found["protect"] + found["write"]


def told(name, sizes, results, peers):
    """Print how a method did at each size; whether it grew no more than it may."""
    fine, before = True, None
    for size, found, peer in zip(sizes, results, peers, strict=True):
        if "reason" in found:
            print(f"{name:30s} {size:>9,}  {found['reason']}")
            fine &= not found.get("late")
            ratios.keep(name, ratios.NOT_RUN if not found.get("late") else str(size), {**found, "size": size})
            continue
        seconds = total(found)
        ratios.beside(name, size, seconds, "polars: a read and a write", total(peer), memory=found["peak"])
        line = " ".join(f"{found[stage]:8.2f}" for stage in ("read", "protect", "write"))
        line += f" {found['peak']:6d} MB {seconds / total(peer):7.1f} ×"
        if before is not None:
            grown = math.log(seconds / before[1]) / math.log(size / before[0])
            allowed = 2.0 if any(word in found["cost"] for word in QUADRATIC) else MOST
            steep = grown > allowed and seconds > SHORT
            line += f"   n^{grown:.2f}{' (too steep)' if steep else ''}"
            fine &= not steep
        before = size, seconds
        print(f"{name:30s} {size:>9,} {line}", flush=True)
    return fine


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("records", nargs="*", type=int, default=[10_000, 100_000])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only these methods")
    parser.add_argument("--minutes", type=float, default=10, help="most for one method and size")
    parser.add_argument("--one", nargs=2, metavar=("NAME", "FILE"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        name, path = asked.one
        print(json.dumps(bare(path) if name == "polars" else one(name, path)))
        return 0
    sizes, fine = sorted(asked.records), True
    names = asked.only or sorted(registry.methods())
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"patients{size}.csv" for size in sizes]
        for size, path in zip(sizes, paths, strict=True):
            patients(size).frame.write_csv(path)
        print(f"{'CPU seconds':40s}     read  protect    write      peak   polars")
        peers = [in_a_process("polars", path, asked.minutes) for path in paths]
        told("a bare read and write", sizes, peers, peers)
        for name in names:
            fine &= told(name, sizes, [in_a_process(name, path, asked.minutes) for path in paths], peers)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
