"""Univariate and block methods against one stable sort, or one plain pass, of the same data.

    python benchmarks/bench_columns.py [records]

CPU seconds of one run each, kernels compiled before. Rank swapping and univariate
microaggregation, whatever the size of groups, may cost at most 4 stable sorts.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import polars as pl

from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import Table
from sfumato.methods.multiplicative_noise import HohneNoise
from sfumato.methods.noise import CorrelatedNoise
from sfumato.methods.swapping import RankSwapping
from sfumato.methods.univariate_microaggregation import IndividualRanking, OptimalMicroaggregation


def cpu(work):
    start = time.process_time()
    work()
    return time.process_time() - start


def main(records: int = 10_000_000) -> None:
    values = np.random.default_rng(1).lognormal(size=records)
    table = Table(pl.DataFrame({"x": values}), Schema((Column("x", Kind.CONTINUOUS),)))
    for method in (RankSwapping(), OptimalMicroaggregation()):
        method.apply(table.take(np.arange(100)), Run(seed=1))  # compile
    sort = cpu(lambda: np.argsort(values, kind="stable"))
    plain = cpu(lambda: values + np.random.default_rng(2).standard_normal(records) * values.std())
    print(f"{records:,} values; a stable sort takes {sort:.2f} s CPU, plain noise in numpy {plain:.2f} s")
    for method, peer, name in [
        (RankSwapping(), sort, "stable sorts"),
        (IndividualRanking(), sort, "stable sorts"),
        (OptimalMicroaggregation(), sort, "stable sorts"),
        (OptimalMicroaggregation(k=500), sort, "stable sorts"),
        (CorrelatedNoise(), plain, "× plain noise"),
        (HohneNoise(), plain, "× plain noise"),
    ]:
        taken = cpu(lambda method=method: method.apply(table, Run(seed=1)))
        print(f"  {method!s:31s} {taken:6.2f} s CPU = {taken / peer:.2f} {name}")


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:2]))
