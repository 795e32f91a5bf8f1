"""Linkage to generalised releases: records against boxes of ranges and sets, beside SciPy's nearest points.

    python benchmarks/bench_coverage.py [n]

Mixed records (`patients`), released by Mondrian, by fixed intervals, and by Mondrian after the numbers were
swapped, so that many records lie outside their own box. The measure stands beside what a k-d tree takes for
the nearest of as many exact points in as many columns (ranks, with a little noise): processor time in one
run, so that the ratio says more than the seconds. Kernels are compiled before the clock starts.
"""

import resource
import sys

import numpy as np
import polars as pl
import ratios
from scipy.spatial import cKDTree

import sfumato
from sfumato.core.release import Release

SMALL = "1000"
MEASURES = ("dbrl", "gdbrl", "exact-match", "uniqueness")


def releases(people):
    """The name of each release, and what it is."""
    yield "mondrian", sfumato.protect(people, "mondrian", seed=1)
    yield "naive-coarsening", sfumato.protect(people, "naive-coarsening", seed=1)
    swapped = sfumato.protect(people, "rank-swapping", seed=1).table
    coarse = sfumato.protect(swapped, "mondrian", seed=1)
    yield "swapped, mondrian", Release.of(coarse.table, source_rows=np.arange(len(people)))


def peer(people, rng):
    """The nearest of as many exact points."""
    keys = people.schema.names[:9]
    ranks = people.frame.select(pl.col(keys).rank("dense")).to_numpy().astype(float)
    points = (ranks - ranks.mean(axis=0)) / ranks.std(axis=0)
    return cKDTree(points + 0.05 * rng.normal(size=points.shape)).query(points)


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    small = sfumato.read("builtin:patients?n=500")
    for _, release in releases(small):
        sfumato.assess(small, release, MEASURES, seed=1)
    people = sfumato.read(f"builtin:patients?n={n}")
    of_peer, _ = ratios.least(lambda: peer(people, np.random.default_rng(1)))
    for name, release in releases(people):
        for measure in MEASURES:
            seconds, _ = ratios.least(ratios.assessing(people, measure, release))
            row = f"{measure} of {name}, sfumato.assess"
            ratios.beside(row, n, seconds, "scipy: nearest of exact points", of_peer)
    print(f"  peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
