"""The noise family against plain noise in numpy, on the same table.

    python benchmarks/bench_noise.py [records]

CPU seconds, the least of three, on five columns. Plain noise is ``values + normal(n, 5) * values.std(0)``.
Then uncorrelated noise, MDAV in parts and individual ranking beside addNoise and mafast of sdcMicro, by
Rscript where that is installed: 2.5 and 3 times as fast is asked for. Mafast sorts one column at a time, so
individual ranking is what it does; MDAV is more.
"""

from __future__ import annotations

import sys

import numpy as np
import polars as pl
import ratios

from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import Table
from sfumato.methods.multiplicative_noise import HohneNoise, LognormalNoise, UniformNoise
from sfumato.methods.noise import CorrelatedNoise, KimNoise, UncorrelatedNoise
from sfumato.methods.rotation import RotationNoise
from sfumato.methods.scalable_microaggregation import MdavInParts
from sfumato.methods.sullivan import SullivanNoise
from sfumato.methods.univariate_microaggregation import IndividualRanking

SMALL = "20000"
METHODS = [
    UncorrelatedNoise(), CorrelatedNoise(), KimNoise(), KimNoise(restore="exactly"),
    UniformNoise(), UniformNoise(per="record"), LognormalNoise(), HohneNoise(),
    SullivanNoise(), SullivanNoise(values="same"),
    RotationNoise(size=3), RotationNoise(), RotationNoise(size=51),
]  # fmt: skip


#: What sdcMicro is asked, and how many times as fast we are to be.
SDCMICRO = (
    (UncorrelatedNoise(), "addNoise(x, noise = 10, method = 'additive')", 2.5),
    (MdavInParts(k=3), "mafast(x, variables = names(x), aggr = 3)", 3),
    (IndividualRanking(k=3), "mafast(x, variables = names(x), aggr = 3)", 3),
)


def beside_sdcmicro(table):
    drawn = f"as.data.frame(t(apply(matrix(rlnorm({len(table)} * 5), ncol = 5), 1, cumsum)))"
    for method, call, least in SDCMICRO:
        name = f"{method}, sdcMicro's {call.partition('(')[0]}"
        peer, theirs = ratios.by_r("sdcMicro", f"set.seed(1); x <- {drawn}", call)
        if theirs is None:
            ratios.skip(name, peer)
        else:
            ratios.protect(name, table, method, peer, theirs, at_least=least)


def main(records: int = 1_000_000) -> None:
    rng = np.random.default_rng(1)
    values = rng.lognormal(size=(records, 5)).cumsum(axis=1)
    names = list("abcde")
    table = Table(
        pl.DataFrame(values, schema=names), Schema(tuple(Column(n, Kind.CONTINUOUS) for n in names))
    )
    for method in (*METHODS, *(each for each, _, _ in SDCMICRO)):  # load what is loaded on first use
        method.apply(table.take(np.arange(100)), Run(seed=1))
    plain, _ = ratios.least(lambda: values + rng.standard_normal(values.shape) * values.std(axis=0))
    for method in METHODS:
        ratios.protect(str(method), table, method, "numpy: plain noise", plain)
    beside_sdcmicro(table)


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:2]))
