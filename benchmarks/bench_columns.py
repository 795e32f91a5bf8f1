"""Univariate and block methods against one stable sort, or one plain pass, of the same data.

    python benchmarks/bench_columns.py [records]

CPU seconds, the least of three, kernels compiled before. Every method that works column by column may cost at
most 4 stable sorts, at its default settings and at harder ones.
"""

from __future__ import annotations

import sys

import numpy as np
import polars as pl
import ratios

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
SMALL = "200000"
MOVING = (UncorrelatedNoise(), CorrelatedNoise(), HohneNoise(), UniformNoise(), LognormalNoise())


def main(records: int = 10_000_000) -> int:
    values = np.random.default_rng(1).lognormal(size=records)
    table = Table(pl.DataFrame({"x": values}), Schema((Column("x", Kind.CONTINUOUS),)))
    for method in (*SORTING, *MOVING):
        method.apply(table.take(np.arange(1000)), Run(seed=1))  # compile
    sort, _ = ratios.least(lambda: np.argsort(values, kind="stable"))
    plain, _ = ratios.least(lambda: values + np.random.default_rng(2).standard_normal(records) * values.std())
    fine = [
        ratios.protect(str(method), table, method, "numpy: a stable sort", sort, at_most=4)
        for method in SORTING
    ]
    for method in MOVING:
        ratios.protect(str(method), table, method, "numpy: plain noise", plain)
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main(*(int(argument) for argument in sys.argv[1:2])))
