"""Anatomy against one sort of its table, and slicing and bucketisation against Mondrian.

    python benchmarks/bench_buckets.py [records]

CPU seconds, least of three. Anatomy of 10 columns, with what is measured of the release before anyone gets
it, may take 3 times as long as polars takes to sort the table by the sensitive column (with ties in an order
of chance); slicing, and bucketisation, twice as long as Mondrian of the same keys at the same least size.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import polars as pl
import ratios

from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.methods.anatomy import Anatomy
from sfumato.methods.bucketisation import Bucketisation
from sfumato.methods.mondrian import Mondrian
from sfumato.methods.slicing import Slicing

L = 5
SMALL = "20000"


def drawn(records):
    """Nine keys, mixed, and an illness of 40."""
    rng = np.random.default_rng(1)
    numbers = {"age": rng.integers(0, 100, records), "stay": rng.geometric(0.2, records),
               "income": rng.lognormal(10, 1, records), "height": rng.normal(170, 10, records),
               "area": rng.integers(0, 500, records)}  # fmt: skip
    names = {f"name{i}": [f"v{code}" for code in rng.integers(0, 5 + 3 * i, records)] for i in range(4)}
    learnt = {"ill": [f"ill{code}" for code in np.minimum(rng.geometric(0.08, records), 40)]}
    frame = pl.DataFrame({**numbers, **names, **learnt})
    keys = tuple(
        Column(name, Kind.CONTINUOUS if name in numbers else Kind.NOMINAL, Role.KEY)
        for name in frame.columns[:-1]
    )
    return Table(
        frame, Schema((*keys, Column("ill", Kind.NOMINAL, Role.SENSITIVE))), targets=tuple(frame.columns[:-1])
    )


def sort(table):
    chance = pl.Series("chance", np.random.default_rng(1).random(len(table)))
    return table.frame.with_columns(chance).sort("ill", "chance")


def main(records=1_000_000):
    small, table = drawn(2000), drawn(records)
    for method in (Anatomy(l=L), Bucketisation(l=L), Slicing(l=L), Mondrian(k=L)):
        method.apply(small, Run(seed=1))  # loads and compiles
    sort(small)
    print(f"{records:,} records, 9 keys, l = {L}")
    cutting, _ = ratios.least(lambda: Mondrian(k=L).apply(replace(table), Run(seed=1)))
    sorting, _ = ratios.least(lambda: sort(table))
    fine = ratios.protect("anatomy", table, Anatomy(l=L), "polars: a sort", sorting, at_most=3)
    for method in (Bucketisation(l=L), Slicing(l=L)):
        fine &= ratios.protect(method.name, table, method, "Mondrian of the same keys", cutting, at_most=2)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
