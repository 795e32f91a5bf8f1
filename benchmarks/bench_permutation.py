"""The metrics of the permutation model against sorting the columns, side by side.

    python benchmarks/bench_permutation.py [n]

An original and a release of n records × 20 columns (one million by default) are ranked and correlated by
cm1, cm2 and cm3, each from scratch. The peer sorts every column of both tables once, as `numpy.argsort` does:
there is no rank without it. Processor time, in one run; a ratio says more than seconds do. At most 6 is asked
for.
"""

import resource
import sys
import time

import numpy as np
import polars as pl

from sfumato.core.evidence import Evidence
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.risk.permutation import AllCorrelations, LargestCorrelation, SortedCorrelations

N_COLUMNS = 20


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


def timed(work):
    began = time.process_time()
    return work(), time.process_time() - began


def main():
    n = next((int(word) for word in sys.argv[1:] if word.isdigit()), 1_000_000)
    sides = tables(n)
    columns = [side.numbers(name) for side in sides for name in side.names]
    np.argsort(columns[0])
    _, peer = timed(lambda: [np.argsort(column) for column in columns])
    print(f"permutation model, {n:,} records × {N_COLUMNS} columns, processor seconds")
    print(f"  sorting     {peer:8.2f}")
    worst = 0.0
    for measure in (LargestCorrelation(), AllCorrelations(), SortedCorrelations()):
        evidence = Evidence(*sides, source_rows=np.arange(n))
        score, seconds = timed(lambda each=measure, of=evidence: each.score(of, Run(seed=1)))
        worst = max(worst, seconds / peer)
        print(
            f"  {measure.name}         {seconds:8.2f}   ratio {seconds / peer:5.2f}   value {score.value:.4f}"
        )
    print(f"  peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")
    return 0 if worst <= 6 else 1


if __name__ == "__main__":
    sys.exit(main())
