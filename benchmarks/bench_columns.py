"""Univariate and block methods against one stable sort, or one plain pass, of the same data.

    python benchmarks/bench_columns.py [records]

CPU seconds of one run each, kernels compiled before. Every method that works column by column may cost at
most 4 stable sorts, at its default settings and at harder ones.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import polars as pl

from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import Table
from sfumato.methods.coding import TopBottomCoding
from sfumato.methods.multiplicative_noise import HohneNoise, LognormalNoise, UniformNoise
from sfumato.methods.noise import CorrelatedNoise, UncorrelatedNoise
from sfumato.methods.resampling import Resampling
from sfumato.methods.rounding import Rounding
from sfumato.methods.shuffling import RankShuffling
from sfumato.methods.swapping import RankSwapping, RankSwappingBuckets, RankSwappingDistribution
from sfumato.methods.univariate_microaggregation import IndividualRanking, OptimalMicroaggregation

SORTING = (
    RankSwapping(),
    RankSwappingDistribution(),
    RankSwappingBuckets(),
    RankShuffling(),
    RankShuffling(slide=50),
    Resampling(samples=1),
    Resampling(samples=10),
    IndividualRanking(),
    OptimalMicroaggregation(),
    OptimalMicroaggregation(k=500),
    Rounding(),
    TopBottomCoding(),
)
MOVING = (UncorrelatedNoise(), CorrelatedNoise(), HohneNoise(), UniformNoise(), LognormalNoise())


def cpu(work):
    start = time.process_time()
    work()
    return time.process_time() - start


def main(records: int = 10_000_000) -> None:
    values = np.random.default_rng(1).lognormal(size=records)
    table = Table(pl.DataFrame({"x": values}), Schema((Column("x", Kind.CONTINUOUS),)))
    for method in (*SORTING, *MOVING):
        method.apply(table.take(np.arange(1000)), Run(seed=1))  # compile
    sort = cpu(lambda: np.argsort(values, kind="stable"))
    plain = cpu(lambda: values + np.random.default_rng(2).standard_normal(records) * values.std())
    print(f"{records:,} values; a stable sort takes {sort:.2f} s CPU, plain noise in numpy {plain:.2f} s")
    for methods, peer, name in ((SORTING, sort, "stable sorts"), (MOVING, plain, "× plain noise")):
        for method in methods:
            taken = cpu(lambda method=method: method.apply(table, Run(seed=1)))
            print(f"  {method!s:38s} {taken:6.2f} s CPU = {taken / peer:.2f} {name}")


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:2]))
