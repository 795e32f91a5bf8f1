"""Distance-based record linkage: our kernel against SciPy's k-d tree, side by side.

    python benchmarks/bench_linkage.py [n]

Both get the same records (n × 8, correlated and skewed) and the same releases under light and heavy noise,
find how many records are nearest to their own, and are timed by processor time in one run: a ratio says more
than seconds do. The kernel is compiled before the clock starts. With `--alone` the peer rests, which at a
million records takes long.
"""

import resource
import sys

import numpy as np
import polars as pl
import ratios
from scipy.spatial import cKDTree

from sfumato.core.release import Release
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.kernels.linking import closer_counts

N_COLUMNS = 8
SMALL = "3000"
NOISE = (0.05, 0.15, 1.0)


def records(n, rng):
    """Two common factors and a part of its own in each column, on the scale of incomes; z-scores."""
    common = rng.normal(size=(n, 2)) @ rng.normal(size=(2, N_COLUMNS))
    values = np.exp(0.5 * (common + rng.normal(size=(n, N_COLUMNS))))
    return (values - values.mean(axis=0)) / values.std(axis=0)


def ours(original, released):
    own = np.arange(len(original))
    return closer_counts(original, released, own, own, metric="euclidean").chances.sum()


def peers(original, released):
    """The nearest record of each; ties go to whichever is found, since the tree does not share them."""
    _, nearest = cKDTree(released).query(original, workers=-1)
    return (nearest == np.arange(len(original))).sum()


def table_of(values):
    names = [f"c{i}" for i in range(N_COLUMNS)]
    schema = Schema(tuple(Column(name, Kind.CONTINUOUS, Role.KEY) for name in names))
    return Table(pl.DataFrame(values, schema=names), schema)


def main():
    sizes = [int(word) for word in sys.argv[1:] if word.isdigit()]
    n, alone = sizes[0] if sizes else 20_000, "--alone" in sys.argv
    rng = np.random.default_rng(1)
    original = records(n, rng)
    ours(original[:500], original[:500])
    print(f"DBRL, {n:,} records × {N_COLUMNS} columns, processor seconds")
    same = True
    for noise in NOISE:
        released = original + noise * rng.normal(size=original.shape)
        seconds, links = ratios.least(lambda released=released: ours(original, released))
        release = Release.record_by_record(table_of(released))
        call, _ = ratios.least(ratios.assessing(table_of(original), "dbrl", release))
        peer, found = "scipy: a k-d tree", (None, links)
        if not alone:
            found = ratios.least(lambda released=released: peers(original, released))
            same &= abs(links - found[1]) < 0.5
            print("" if abs(links - found[1]) < 0.5 else "   links DIFFER", end="")
        ratios.beside(f"dbrl, noise of {noise:.0%}, kernel", n, seconds, peer, found[0], at_least=1)
        ratios.beside(f"dbrl, noise of {noise:.0%}, sfumato.assess", n, call, peer, found[0], at_least=0)
    print(f"  peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
