"""The metrics of the permutation model against sorting the columns, side by side.

    python benchmarks/bench_permutation.py [n]

An original and a release of n records × 20 columns (one million by default) are ranked and correlated by
cm1, cm2 and cm3, each from scratch. The peer sorts every column of both tables once, as `numpy.argsort` does:
there is no rank without it. Processor time, in one run; a ratio says more than seconds do. At most 6 is asked
for.
"""

import resource
import sys

import numpy as np
import polars as pl
import ratios

from sfumato.core.release import Release
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.risk.permutation import AllCorrelations, LargestCorrelation, SortedCorrelations

N_COLUMNS = 20
SMALL = "20000"


def tables(n):
    rng = np.random.default_rng(1)
    original = rng.normal(size=(n, 3)) @ rng.normal(size=(3, N_COLUMNS)) + rng.normal(size=(n, N_COLUMNS))
    released = original + 0.5 * rng.normal(size=original.shape)
    names = [f"c{i:02}" for i in range(N_COLUMNS)]
    schema = Schema(tuple(Column(name, Kind.CONTINUOUS, Role.KEY) for name in names))
    return [
        Table(pl.DataFrame({name: side[:, i] for i, name in enumerate(names)}), schema)
        for side in (original, released)
    ]


def main():
    n = next((int(word) for word in sys.argv[1:] if word.isdigit()), 1_000_000)
    sides = tables(n)
    columns = [side.numbers(name) for side in sides for name in side.names]
    np.argsort(columns[0])
    peer, _ = ratios.least(lambda: [np.argsort(column) for column in columns])
    print(f"permutation model, {n:,} records × {N_COLUMNS} columns")
    release = Release.record_by_record(sides[1])
    fine = [
        ratios.assess(
            each.name, sides[0], each, "numpy: sorting both tables", peer, release=release, at_most=6
        )
        for each in (LargestCorrelation(), AllCorrelations(), SortedCorrelations())
    ]
    print(f"  peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())
