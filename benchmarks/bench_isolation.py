"""Who stands alone, and where records are sparse, against SciPy's k-d tree, side by side.

    python benchmarks/bench_isolation.py [n]

`cluster-isolation` and `density-isolation` of n records × 6 columns (one million by default), from the table
to the score. The peer builds `scipy.spatial.cKDTree` of the same points and asks once for the 10 nearest
neighbours of each. Processor time, in one run; a ratio says more than seconds do. At most 4 is asked for.
"""

import resource
import sys
import time

import numpy as np
import polars as pl
from scipy.spatial import cKDTree

from sfumato.core.evidence import Evidence
from sfumato.core.run import Run
from sfumato.data.points import points_of
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.risk.isolation import ClusterIsolation, DensityIsolation

N_COLUMNS = 6


def people(n):
    rng = np.random.default_rng(1)
    common = rng.normal(size=(n, 2)) @ rng.normal(size=(2, N_COLUMNS))
    values = np.exp(0.5 * (common + rng.normal(size=(n, N_COLUMNS))))
    names = [f"c{i}" for i in range(N_COLUMNS)]
    schema = Schema(tuple(Column(name, Kind.CONTINUOUS, Role.KEY) for name in names))
    return Table(pl.DataFrame({name: values[:, i] for i, name in enumerate(names)}), schema)


def timed(work):
    began = time.process_time()
    return work(), time.process_time() - began


def main():
    n = next((int(word) for word in sys.argv[1:] if word.isdigit()), 1_000_000)
    table = people(n)
    points = points_of(table, scale="deviation", nominal="equal")
    _, peer = timed(lambda: cKDTree(points).query(points, k=10, workers=-1))
    print(f"isolation, {n:,} records × {N_COLUMNS} columns, processor seconds")
    print(f"  10 neighbours by a k-d tree {peer:8.2f}")
    worst = 0.0
    for measure in (ClusterIsolation(), DensityIsolation()):
        score, seconds = timed(lambda each=measure: each.score(Evidence(table), Run(seed=1)))
        worst = max(worst, seconds / peer)
        print(f"  {measure.name:<27} {seconds:8.2f}   ratio {seconds / peer:5.2f}   value {score.value:.4f}")
    print(f"  peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")
    return 0 if worst <= 4 else 1


if __name__ == "__main__":
    sys.exit(main())
