"""Every measure of the registry, on mixed records that were swapped and on mixed records that were grouped.

    python benchmarks/bench_measures.py [records …] [--only NAME …] [--by METHOD …] [--minutes 5]

CPU seconds and peak memory (a process for each, kernels compiled before) of `datasets.patients`, at default
settings, and as multiples of the peer: one bare group-by of polars by the nine keys. A measure may take 10
seconds at 10,000 records and 60 at 100,000, or it samples and says so (`approximate`); what it needs beside
the release it is given: people who were not protected, a population, the fraction that was sampled.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

import ratios

import sfumato
from sfumato.core import registry
from sfumato.core.run import Run
from sfumato.data.schema import Role
from sfumato.datasets import patients
from sfumato.errors import SfumatoError

#: What may be taken at a size, in seconds; in proportion beyond.
MOST = {10_000: 10.0, 100_000: 60.0}
#: What a measure may need to be told.
TOLD = {"population": "population", "fraction": 0.05}
POLARS = "a bare group-by"
SMALL = "1200 --only k-anonymity dbrl il1s --by rank-swapping"


def cpu(work):
    start = time.process_time()
    done = work()
    return done, time.process_time() - start


def released(records, by):
    """The records, and a release of their keys by a method that takes some of them."""
    table = patients(records)
    cls = registry.method(by)
    keys = [c.name for c in table.schema.columns if c.role is Role.KEY and c.kind in cls.kinds]
    return table, cls().apply(table.aimed_at(keys), Run(seed=1))


def told(cls):
    """The measure, told what the population is where that is a parameter."""
    declared = {item.name for item in cls.parameters()}
    return cls(**{name: value for name, value in TOLD.items() if name in declared})


def one(name, records, by):
    """Score a release by one measure: what came of it and what it took."""
    measure = told(registry.measure(name))

    def score(n):
        table, release = released(n, by)
        others = {"control": patients(n // 5, seed=1), "population": patients(2 * n)}
        return cpu(lambda: sfumato.assess(table, release, [measure], resources=others, seed=1)[str(measure)])

    try:
        score(1200)  # loads and compiles what is loaded on first use
        found, seconds = score(records)
    except SfumatoError as error:
        return {"reason": error.message}
    if found.status in {"refused", "not-estimable"} and seconds < 1:
        return {"reason": found.reason}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return {"seconds": seconds, "peak": peak, "status": str(found.status), "value": found.value}


def bare(records):
    table = patients(records)
    keys = [column.name for column in table.schema.columns if column.role is Role.KEY]
    table.frame.group_by(keys).len()
    return {"seconds": cpu(lambda: table.frame.group_by(keys).len())[1]}


def in_a_process(name, records, by, minutes):
    """In CPU minutes: others who use the machine make nobody late."""
    most = int(60 * minutes)
    done = subprocess.run(
        [sys.executable, __file__, "--one", name, str(records), by], capture_output=True, text=True,
        check=False, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (most, most)),
    )  # fmt: skip
    if done.returncode < 0:
        return {"reason": f"did not end in {minutes:g} minutes", "late": True}
    if done.returncode:
        return {"reason": done.stderr.splitlines()[-1], "late": True}
    return json.loads(done.stdout.splitlines()[-1])


def shown(name, by, records, found, peer):
    """Print how a measure did; whether it took no more than it may."""
    start = f"{name:32s} {by:14s} {records:>9,} "
    if "reason" in found:
        print(start, found["reason"][:120], flush=True)
        ratios.keep(f"{name} of {by}", ratios.NOT_RUN, {"reason": found["reason"]})
        return not found.get("late")
    allowed = MOST.get(records, 60.0 * records / 100_000)
    fine = found["seconds"] <= allowed or found["status"] == "approximate"
    row = f"{name} of {by}{', on a sample' * (found['status'] == 'approximate')}"
    ratios.beside(row, records, found["seconds"], "polars: a group-by", peer, memory=found["peak"])
    print(f"    {found['value']:.6g} {found['status']}{'' if fine else ' (too slow)'}", flush=True)
    return fine


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("records", nargs="*", type=int, default=[10_000, 100_000])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only these measures")
    parser.add_argument("--by", nargs="+", metavar="METHOD", default=["rank-swapping", "mondrian"])
    parser.add_argument("--minutes", type=float, default=5, help="most for one measure and size (CPU)")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        name, records, by = asked.one
        print(json.dumps(bare(int(records)) if name == POLARS else one(name, int(records), by)))
        return 0
    fine = True
    for records in sorted(asked.records):
        peer = in_a_process(POLARS, records, "", asked.minutes)["seconds"]
        print(f"{POLARS} of {records:,} records by nine keys: {peer:.3f} s")
        for name in asked.only or sorted(registry.measures()):
            for by in asked.by:
                fine &= shown(name, by, records, in_a_process(name, records, by, asked.minutes), peer)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
