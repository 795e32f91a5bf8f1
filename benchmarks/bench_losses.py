"""Information loss against plain passes over, sorts of, and grouping of the same two tables.

    python benchmarks/bench_losses.py [records]

CPU seconds, the least of three, on ten columns of numbers, a release with noise, and one with ranges. A plain
pass is ``np.abs(x - y).mean()`` of all columns; a sort is that of both tables; grouping is polars' by two of
the columns.
"""

from __future__ import annotations

import sys

import numpy as np
import polars as pl
import ratios

from sfumato.core.evidence import Evidence
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.generalised.intervals import intervals
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.utility.ambiguity import Ambiguity, NonUniformEntropy
from sfumato.utility.cells import CellsChanged, SuppressedCells
from sfumato.utility.classes import AverageClassSize, Discernibility
from sfumato.utility.divergence import KullbackLeiblerDivergence
from sfumato.utility.generalisation import GeneralisedInformationLoss, PrecisionLoss
from sfumato.utility.losses import Il1, Il1s, SseRatio
from sfumato.utility.permutation import RankUtility
from sfumato.utility.probabilistic_loss import ProbabilisticInformationLoss
from sfumato.utility.spectrum import EigenvalueDifference

NAMES = list("abcdefghij")
SMALL = "20000"
PASSING = (
    Il1s(), Il1(), SseRatio(), SseRatio(generalised="expected"), CellsChanged(), SuppressedCells(),
    GeneralisedInformationLoss(), PrecisionLoss(), EigenvalueDifference(), RankUtility(of="values"),
)  # fmt: skip
SORTING = (
    ProbabilisticInformationLoss(), RankUtility(), NonUniformEntropy(), Ambiguity(),
    KullbackLeiblerDivergence(), KullbackLeiblerDivergence(dimension="two"),
)  # fmt: skip
GROUPING = (Discernibility(), AverageClassSize())


def tables(records: int):
    rng = np.random.default_rng(1)
    values = rng.lognormal(size=(records, 10))
    roles = [Role.KEY] * 2 + [Role.OTHER] * 8
    schema = Schema(tuple(Column(n, Kind.CONTINUOUS, r) for n, r in zip(NAMES, roles, strict=True)))
    values[:, :2] = np.floor(values[:, :2] * 3)  # keys that repeat
    noisy = values + 0.1 * rng.normal(size=values.shape)
    noisy[:, :2] = np.rint(noisy[:, :2])
    low = np.floor(values)
    coarse = pl.DataFrame([intervals(low[:, i], low[:, i] + 1, name=name) for i, name in enumerate(NAMES)])
    frames = [pl.DataFrame(values, schema=NAMES), pl.DataFrame(noisy, schema=NAMES), coarse]
    return values, noisy, [Table(frame, schema) for frame in frames]


def main(records: int = 1_000_000) -> None:
    small = tables(1000)[2]
    for measure in (*PASSING, *SORTING, *GROUPING):  # load what is loaded on first use
        measure.score(Evidence(small[0], Release.of(small[1], source_rows=np.arange(1000))), Run(seed=1))
    x, y, (original, noisy, coarse) = tables(records)
    passing, _ = ratios.least(lambda: [np.abs(x[:, i] - y[:, i]).mean() for i in range(10)])
    sorting, _ = ratios.least(lambda: [np.sort(each[:, i]) for each in (x, y) for i in range(10)])
    grouping, _ = ratios.least(lambda: [t.frame.group_by("a", "b").len() for t in (original, noisy)])
    rows = np.arange(records)
    for measures, peer, name in (
        (PASSING, passing, "numpy: a pass over both"),
        (SORTING, sorting, "numpy: sorting both"),
        (GROUPING, grouping, "polars: grouping both"),
    ):
        for measure in measures:
            for of, table in (("noise", noisy), ("ranges", coarse)):
                release = Release.of(table, source_rows=rows)
                ratios.assess(f"{measure} of {of}", original, measure, name, peer, release=release)


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:2]))
