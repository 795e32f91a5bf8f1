"""Linkage to generalised releases: records against boxes of ranges and sets, beside SciPy's nearest points.

    python benchmarks/bench_coverage.py [n]

Mixed records (`patients`), released by Mondrian, by fixed intervals, and by Mondrian after the numbers were
swapped, so that many records lie outside their own box. The measure stands beside what a k-d tree takes for
the nearest of as many exact points in as many columns (ranks, with a little noise): processor time in one
run, so that the ratio says more than the seconds. Kernels are compiled before the clock starts.
"""

import resource
import sys
import time

import numpy as np
import polars as pl
from scipy.spatial import cKDTree

import sfumato
from sfumato.core.release import Release

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


def timed(function, *given, **named):
    began = time.process_time()
    return function(*given, **named), time.process_time() - began


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    small = sfumato.read("builtin:patients?n=500")
    for _, release in releases(small):
        sfumato.assess(small, release, MEASURES, seed=1)
    people = sfumato.read(f"builtin:patients?n={n}")
    _, of_peer = timed(peer, people, np.random.default_rng(1))
    print(f"{n:,} mixed records, processor seconds; nearest of exact points {of_peer:.2f}")
    for name, release in releases(people):
        for measure in MEASURES:
            scores, seconds = timed(sfumato.assess, people, release, [measure], seed=1)
            line = f"  {name:18} {measure:12} {seconds:8.2f}   {seconds / of_peer:7.1f} times"
            print(f"{line}   {scores[measure].value:.4f}", flush=True)
    print(f"  peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
