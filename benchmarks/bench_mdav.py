"""MDAV: our kernel against a straightforward vectorised numpy MDAV, side by side.

    python benchmarks/bench_mdav.py [n]

Both get the same records (n × 8, k = 5), give the same groups, and are timed by processor time in one run:
a ratio says more than seconds do. The kernel is compiled before the clock starts.
"""

import sys
import time

import numpy as np

from sfumato.kernels.groups import group_means, mdav

N_COLUMNS, K = 8, 5


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
    began = time.process_time()
    groups = function(points, K)
    return groups, time.process_time() - began


def loss(points, groups):
    """SSE / SST in per cent."""
    within = points - group_means(points, groups)[groups]
    return 100 * (within**2).sum() / ((points - points.mean(axis=0)) ** 2).sum()


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    points = np.random.default_rng(1).normal(size=(n, N_COLUMNS))
    mdav(points[:1000], K)
    ours, our_seconds = timed(mdav, points)
    theirs, their_seconds = timed(numpy_mdav, points)
    print(f"MDAV, {n:,} records × {N_COLUMNS} columns, k = {K}, processor seconds")
    print(f"  sfumato {our_seconds:9.2f}   SSE/SST {loss(points, ours):.4f} %")
    print(f"  numpy   {their_seconds:9.2f}   SSE/SST {loss(points, theirs):.4f} %")
    same = np.array_equal(ours, theirs)
    print(f"  ratio   {their_seconds / our_seconds:9.1f}   groups {'identical' if same else 'DIFFER'}")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
