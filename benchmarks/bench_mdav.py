"""MDAV: our kernel against a straightforward vectorised numpy MDAV, and its relatives against it.

    python benchmarks/bench_mdav.py [n]         n × 8 against numpy: 20,000, or say 100,000 and wait
    python benchmarks/bench_mdav.py --exact 1000000
    python benchmarks/bench_mdav.py --parts 10000000

Both get the same records (k = 5), give the same groups, and are timed by processor time in one run: a ratio
says more than seconds do. Kernels are compiled before the clock starts. MDAV in parts must lose at most 3 %
more than MDAV, in squared error within groups, at 100,000 × 8.
"""

import argparse
import resource
import sys
import time

import numpy as np
import polars as pl
import ratios

from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import Table
from sfumato.kernels.groups import cbfs, group_means, mdav, mdav_in_parts, sequential, vmdav
from sfumato.methods.microaggregation import Mdav

N_COLUMNS, K = 8, 5
SMALL = "3000 --relatives 10000"


def normals(n):
    return np.random.default_rng(1).normal(size=(n, N_COLUMNS))


def log_normals(n):
    """Skewed and correlated, like incomes and taxes."""
    mixing = np.linalg.cholesky(np.full((N_COLUMNS, N_COLUMNS), 0.5) + 0.5 * np.eye(N_COLUMNS))
    points = np.exp(normals(n) @ mixing.T)
    return (points - points.mean(axis=0)) / points.std(axis=0)


def numpy_mdav(points, k):
    """MDAV with one vectorised pass for each question, over the records that remain."""
    remaining = np.arange(len(points))
    there = points
    groups = np.empty(len(points), dtype=np.int64)
    n_groups = 0
    while len(remaining) >= 2 * k:
        place = there.mean(axis=0)
        for _ in range(2 if len(remaining) >= 3 * k else 1):
            differences = there - place
            place = there[np.argmax(np.einsum("ij,ij->i", differences, differences))]
            differences = there - place
            members = np.argpartition(np.einsum("ij,ij->i", differences, differences), k - 1)[:k]
            groups[remaining[members]] = n_groups
            n_groups += 1
            stays = np.ones(len(remaining), dtype=np.bool_)
            stays[members] = False
            remaining, there = remaining[stays], there[stays]
    groups[remaining] = n_groups
    return groups


def timed(function, points):
    began, began_wall = time.process_time(), time.perf_counter()
    groups = function(points, K)
    return groups, time.process_time() - began, time.perf_counter() - began_wall


def loss(points, groups):
    """SSE / SST in per cent."""
    within = points - group_means(points, groups)[groups]
    return 100 * (within**2).sum() / ((points - points.mean(axis=0)) ** 2).sum()


def sequentially(points, k):
    return sequential(points, k, np.random.default_rng(1))


def compare_with_numpy(n):
    points = normals(n)
    seconds, ours = ratios.least(lambda: mdav(points, K))
    theirs, groups = ratios.least(lambda: numpy_mdav(points, K), times=1)
    same, peer = np.array_equal(ours, groups), "numpy: a vectorised MDAV"
    print(f"MDAV, {n:,} records × {N_COLUMNS} columns, k = {K}: groups {'identical' if same else 'DIFFER'}")
    ratios.beside("mdav, kernel", n, seconds, peer, theirs, at_least=1)
    names = [f"c{i}" for i in range(N_COLUMNS)]
    table = Table(
        pl.DataFrame(points, schema=names), Schema(tuple(Column(each, Kind.CONTINUOUS) for each in names))
    )
    taken, _ = ratios.least(ratios.protecting(table, Mdav(k=K)))
    ratios.beside("mdav, sfumato.protect", n, taken, peer, theirs, at_least=0)
    beside_sdcmicro(table)
    return same


def beside_sdcmicro(table):
    """MDAV of sdcMicro, which takes minutes at 100,000 records."""
    drawn = f"set.seed(1); x <- as.data.frame(matrix(rnorm({len(table)} * {N_COLUMNS}), ncol = {N_COLUMNS}))"
    peer, theirs = ratios.by_r("sdcMicro", drawn, f"microaggregation(x, method = 'mdav', aggr = {K})")
    if theirs is None:
        ratios.skip("mdav, sdcMicro's microaggregation", peer)
    else:
        ratios.protect("mdav beside sdcMicro", table, Mdav(k=K), peer, theirs, at_least=10)


def compare_relatives(n, kinds):
    """Time and loss, each as a ratio to MDAV's; true if parts lose no more than they may."""
    most = 0.0
    for draw in (normals, log_normals):
        points = draw(n)
        groups, seconds, _ = timed(mdav, points)
        of_mdav = loss(points, groups)
        print(f"{n:,} × {N_COLUMNS} {draw.__name__}, k = {K}: MDAV {seconds:.2f} s, SSE/SST {of_mdav:.4f} %")
        for name, function in kinds.items():
            groups, taken, _ = timed(function, points)
            ratio = loss(points, groups) / of_mdav
            ratios.beside(f"{name} of {draw.__name__}", n, taken, "MDAV of the same records", seconds)
            print(f"    {ratio:8.4f} of its loss")
            most = max(most, ratio if function is mdav_in_parts else 0.0)
    return most <= 1.03


def report_large(function, n):
    points = normals(n)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    groups, seconds, wall = timed(function, points)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ratios.beside(f"{function.__name__} alone, kernel", n, seconds, memory=peak / 1000)
    print(f"    {wall:.0f} s, {(peak - before) / 1e6:.2f} GB more than the records before; "
          f"SSE/SST {loss(points, groups):.4f} %")  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("n", nargs="?", type=int, default=20_000)
    parser.add_argument("--relatives", type=int, default=100_000, metavar="N", help="parts of N records")
    parser.add_argument("--exact", type=int, metavar="N", help="only MDAV, of N records")
    parser.add_argument("--parts", type=int, metavar="N", help="only MDAV in parts, of N records")
    asked = parser.parse_args()
    others = {
        "CBFS": cbfs,
        "V-MDAV, gain 0.2": lambda points, k: vmdav(points, k, 0.2),
        "sequential clustering": sequentially,
    }
    for function in (mdav, *others.values(), lambda points, k: mdav_in_parts(points, k, 200)):
        function(normals(1000), K)
    if asked.exact or asked.parts:
        for function, n in ((mdav, asked.exact), (mdav_in_parts, asked.parts)):
            if n:
                report_large(function, n)
        return 0
    right = compare_with_numpy(asked.n)
    compare_relatives(10_000, others)
    return 0 if compare_relatives(asked.relatives, {"MDAV in parts": mdav_in_parts}) and right else 1


if __name__ == "__main__":
    sys.exit(main())
