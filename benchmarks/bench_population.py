"""Population risk: SUDA against rare combinations, individual risk against k-anonymity, and many keys.

    python benchmarks/bench_population.py [records]

CPU seconds of one run each. SUDA of six keys may cost at most twice `unsafe-combinations` of the same depth,
at 100,000 and at a million records; 25 keys to a depth of 4 of 100,000 records must stay below 2 GB.
individual-risk may cost at most three times k-anonymity, and six times with 2 % of the keys missing; it is
asked of ten times the records that are named. Where Rscript and sdcMicro are installed, their suda2 stands
beside.
"""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

from sfumato.core.evidence import Evidence
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.risk._subsets import KeyCodes
from sfumato.risk.anonymity import KAnonymity
from sfumato.risk.combinations import UnsafeCombinations
from sfumato.risk.copula import CopulaRisk
from sfumato.risk.individual import IndividualRisk
from sfumato.risk.log_linear import LogLinearRisk
from sfumato.risk.suda import Suda

SIZES = (90, 2, 8, 60, 12, 5)
_R = """
suppressMessages(library(sdcMicro)); data <- read.csv("{path}")
time <- system.time(suda2(data))[["user.self"]]; cat(time)
"""


def cpu(work):
    start = time.process_time()
    done = work()
    return time.process_time() - start, done


def people(records, sizes, *, missing=0.0):
    """Keys of so many values, of which few are common, each leaning on the one before."""
    rng = np.random.default_rng(1)
    columns, before = {}, np.zeros(records, dtype=np.int64)
    for place, size in enumerate(sizes):
        values = np.minimum(rng.geometric(min(2.5 / size, 0.6), records) - 1, size - 1)
        before = np.where(rng.random(records) < 0.3, before % size, values)
        column = pl.Series(before.astype(np.int16))
        if missing:
            column = column.set(pl.Series(rng.random(records) < missing), None)
        columns[f"k{place}"] = column
    schema = Schema(tuple(Column(name, Kind.NOMINAL, Role.KEY) for name in columns))
    return Table(pl.DataFrame(columns), schema)


def show(what, taken, peer="", ratio=None):
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    said = "" if ratio is None else f" = {ratio:5.2f} × {peer}"
    print(f"  {what:52s} {taken:8.2f} s CPU{said}, {memory:.1f} GB so far", flush=True)


def score(measure, table):
    return cpu(lambda: measure.score(Evidence(table), Run(seed=1)))


def beside_r(table):
    """The seconds that sdcMicro takes; None where it is not installed."""
    if shutil.which("Rscript") is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.csv"
        table.frame.write_csv(path)
        script = _R.format(path=path.as_posix())
        done = subprocess.run(["Rscript", "-e", script], capture_output=True, text=True, check=False)
    return float(done.stdout) if done.returncode == 0 and done.stdout else None


def main(records: int = 1_000_000) -> None:
    score(Suda(), people(2000, SIZES))  # load and compile what is loaded on first use
    score(UnsafeCombinations(), people(2000, SIZES))
    for n in (records // 10, records):
        table = people(n, SIZES)
        print(f"{n:,} records, 6 keys")
        peer, _ = score(UnsafeCombinations(), table)
        show("unsafe combinations of up to 3 keys", peer)
        taken, _ = score(Suda(), table)
        show("suda of up to 3 keys", taken, "unsafe combinations", taken / peer)
    taken = beside_r(people(records // 10, SIZES))
    print("  sdcMicro: " + (f"{taken:.2f} s" if taken is not None else "not installed, so not beside"))

    many = people(records // 10, [4 + place % 6 for place in range(25)])
    print(f"{records // 10:,} records, 25 keys: 15,275 subsets of up to 4")
    show("suda of up to 4 keys", score(Suda(dimension=4), many)[0])
    fewer = people(records // 200, [4 + place % 6 for place in range(25)])
    print(f"{records // 200:,} of them")
    measure = Suda(dimension=4)
    keys = KeyCodes.of(fewer, fewer.schema.with_role(Role.KEY))
    measure.by_recursion(keys, Run(seed=1))  # compile it
    peer, _ = cpu(lambda: measure.by_levels(keys, Run(seed=1)))
    show("level by level, as they fit", peer)
    taken, _ = cpu(lambda: measure.by_recursion(keys, Run(seed=1)))
    show("by the recursion, as beyond", taken, "levels", taken / peer)
    for measure in (LogLinearRisk(fraction=0.1), CopulaRisk(fraction=0.1)):
        show(str(measure), score(measure, many)[0])

    for missing, allowed in ((0.0, 3), (0.02, 6)):
        table = people(records * 10, SIZES, missing=missing)
        policy = "any" if missing else "category"
        print(f"{records * 10:,} records, 6 keys, {missing:.0%} of them missing; at most {allowed} ×")
        peer, _ = score(KAnonymity(missing=policy), table)
        show(f"k-anonymity, missing as {policy}", peer)
        taken, _ = score(IndividualRisk(fraction=0.1, missing=policy), table)
        show("individual-risk", taken, "k-anonymity", taken / peer)


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:2]))
