"""Who stands alone, and where records are sparse, against SciPy's k-d tree, side by side.

    python benchmarks/bench_isolation.py [n]

`cluster-isolation` and `density-isolation` of n records × 6 columns (one million by default), from the table
to the score. The peer builds `scipy.spatial.cKDTree` of the same points and asks once for the 10 nearest
neighbours of each. Processor time, in one run; a ratio says more than seconds do. At most 4 is asked for.
"""

import resource
import sys

import numpy as np
import polars as pl
import ratios
from scipy.spatial import cKDTree

from sfumato.data.points import points_of
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.risk.isolation import ClusterIsolation, DensityIsolation

N_COLUMNS = 6
SMALL = "20000"


def people(n):
    rng = np.random.default_rng(1)
    common = rng.normal(size=(n, 2)) @ rng.normal(size=(2, N_COLUMNS))
    values = np.exp(0.5 * (common + rng.normal(size=(n, N_COLUMNS))))
    names = [f"c{i}" for i in range(N_COLUMNS)]
    schema = Schema(tuple(Column(name, Kind.CONTINUOUS, Role.KEY) for name in names))
    return Table(pl.DataFrame({name: values[:, i] for i, name in enumerate(names)}), schema)


def main():
    n = next((int(word) for word in sys.argv[1:] if word.isdigit()), 1_000_000)
    table = people(n)
    points = points_of(table, scale="deviation", nominal="equal")
    peer, _ = ratios.least(lambda: cKDTree(points).query(points, k=10, workers=-1))
    print(f"isolation, {n:,} records × {N_COLUMNS} columns")
    fine = [
        ratios.assess(each.name, table, each, "scipy: 10 neighbours by a k-d tree", peer, at_most=4)
        for each in (ClusterIsolation(), DensityIsolation())
    ]
    print(f"  peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())
