"""The noise family against plain noise in numpy, on the same table.

    python benchmarks/bench_noise.py [records]

CPU seconds of one run each on five columns. Plain noise is ``values + normal(n, 5) * values.std(0)``. Then
uncorrelated noise, MDAV in parts and individual ranking beside addNoise and mafast of sdcMicro, by Rscript
where that is installed; elsewhere beside what the project's goals say of it for a million records on 2 cores:
0.91 s and 11.3 s. Mafast sorts one column at a time, so individual ranking is what it does; MDAV is more.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time

import numpy as np
import polars as pl

from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import Table
from sfumato.methods.multiplicative_noise import HohneNoise, LognormalNoise, UniformNoise
from sfumato.methods.noise import CorrelatedNoise, KimNoise, UncorrelatedNoise
from sfumato.methods.rotation import RotationNoise
from sfumato.methods.scalable_microaggregation import MdavInParts
from sfumato.methods.sullivan import SullivanNoise
from sfumato.methods.univariate_microaggregation import IndividualRanking

METHODS = [
    UncorrelatedNoise(), CorrelatedNoise(), KimNoise(), KimNoise(restore="exactly"),
    UniformNoise(), UniformNoise(per="record"), LognormalNoise(), HohneNoise(),
    SullivanNoise(), SullivanNoise(values="same"),
    RotationNoise(size=3), RotationNoise(), RotationNoise(size=51),
]  # fmt: skip


#: What sdcMicro is asked, and the CPU seconds for a million records where it is not there to be asked.
SDCMICRO = (
    (UncorrelatedNoise(), "addNoise(x, noise = 10, method = 'additive')", 0.91),
    (MdavInParts(k=3), "mafast(x, variables = names(x), aggr = 3)", 11.3),
    (IndividualRanking(k=3), "mafast(x, variables = names(x), aggr = 3)", 11.3),
)


def cpu(work):
    start = time.process_time()
    work()
    return time.process_time() - start


def of_sdcmicro(call, records):
    """The least CPU seconds of three calls of sdcMicro on as many records drawn alike; None without it."""
    rscript = shutil.which("Rscript")
    code = (
        f"suppressMessages(library(sdcMicro)); set.seed(1); "
        f"x <- as.data.frame(t(apply(matrix(rlnorm({records} * 5), ncol = 5), 1, cumsum))); "
        f"used <- sapply(1:3, function(i) sum(system.time({call})[1:2])); cat(min(used))"
    )
    if rscript is None:
        return None
    done = subprocess.run([rscript, "-e", code], capture_output=True, text=True, check=False)
    return float(done.stdout.split()[-1]) if done.returncode == 0 and done.stdout.split() else None


def beside_sdcmicro(table):
    for method, call, known in SDCMICRO:
        taken = min(cpu(lambda method=method: method.apply(table, Run(seed=1))) for _ in range(3))
        theirs = None
        if len(table) <= 1_000_000:
            theirs = of_sdcmicro(call, len(table))
        said = "" if theirs is not None else " (sdcMicro is not run here: as the goals say, by the records)"
        theirs = known * len(table) / 1_000_000 if theirs is None else theirs
        print(
            f"  {method!s:20s} {taken:6.2f} s, {call.split('(')[0]} {theirs:.2f} s "
            f"= {theirs / taken:.1f} times{said}"
        )


def main(records: int = 1_000_000) -> None:
    rng = np.random.default_rng(1)
    values = rng.lognormal(size=(records, 5)).cumsum(axis=1)
    names = list("abcde")
    table = Table(
        pl.DataFrame(values, schema=names), Schema(tuple(Column(n, Kind.CONTINUOUS) for n in names))
    )
    for method in (*METHODS, *(each for each, _, _ in SDCMICRO)):  # load what is loaded on first use
        method.apply(table.take(np.arange(100)), Run(seed=1))
    plain = cpu(lambda: values + rng.standard_normal(values.shape) * values.std(axis=0))
    print(f"{records:,} records of 5 columns; plain noise in numpy takes {plain:.2f} s CPU")
    for method in METHODS:
        taken = cpu(lambda method=method: method.apply(table, Run(seed=1)))
        print(f"  {method!s:36s} {taken:6.2f} s CPU = {taken / plain:5.1f} × plain noise")
    beside_sdcmicro(table)


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:2]))
