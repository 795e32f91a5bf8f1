"""The noise family against plain noise in numpy, on the same table.

    python benchmarks/bench_noise.py [records]

CPU seconds of one run each on five columns. Plain noise is ``values + normal(n, 5) * values.std(0)``.
"""

from __future__ import annotations

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
from sfumato.methods.sullivan import SullivanNoise

METHODS = [
    UncorrelatedNoise(), CorrelatedNoise(), KimNoise(), KimNoise(restore="exactly"),
    UniformNoise(), UniformNoise(per="record"), LognormalNoise(), HohneNoise(),
    SullivanNoise(), SullivanNoise(values="same"),
    RotationNoise(size=3), RotationNoise(), RotationNoise(size=51),
]  # fmt: skip


def cpu(work):
    start = time.process_time()
    work()
    return time.process_time() - start


def main(records: int = 1_000_000) -> None:
    rng = np.random.default_rng(1)
    values = rng.lognormal(size=(records, 5)).cumsum(axis=1)
    names = list("abcde")
    table = Table(
        pl.DataFrame(values, schema=names), Schema(tuple(Column(n, Kind.CONTINUOUS) for n in names))
    )
    for method in METHODS:  # load what is loaded on first use
        method.apply(table.take(np.arange(100)), Run(seed=1))
    plain = cpu(lambda: values + rng.standard_normal(values.shape) * values.std(axis=0))
    print(f"{records:,} records of 5 columns; plain noise in numpy takes {plain:.2f} s CPU")
    for method in METHODS:
        taken = cpu(lambda method=method: method.apply(table, Run(seed=1)))
        print(f"  {method!s:36s} {taken:6.2f} s CPU = {taken / plain:5.1f} × plain noise")


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:2]))
