"""Clusters of records: k-means that chance has no part in."""

from __future__ import annotations

import numpy as np

from sfumato import kernels
from sfumato.kernels.arrays import Floats, Ints

#: Rounds after which clusters are taken as they are.
_ROUNDS = 100


def clusters_of(points: Floats, count: int) -> Ints:
    """Put points into so many clusters by k-means, from the mean outwards, the same each time.

    The first centre is the point farthest from the mean, each further one that farthest from those before.
    """
    from scipy.spatial.distance import cdist

    clusters, far = np.zeros(len(points), dtype=np.int64), cdist(points, points.mean(axis=0)[None])[:, 0]
    centres = points[:0]
    while len(centres) < min(count, len(points)) and far.max() > 0:
        centres = np.vstack([centres, points[far.argmax()]])
        far = cdist(points, centres).min(axis=1)
    for _ in range(_ROUNDS if len(centres) else 0):
        nearest = cdist(points, centres).argmin(axis=1)
        if np.array_equal(nearest, clusters):
            break
        clusters = nearest
        there = np.unique(clusters)
        centres[there] = kernels.groups.group_means(points, clusters)[there]
    return clusters


def join_small(points: Floats, clusters: Ints, k: int) -> Ints:
    """Let each cluster of fewer than k points, the smallest first, join the one of the nearest mean."""
    while True:
        _, joined, sizes = np.unique(clusters, return_inverse=True, return_counts=True)
        smallest = int(sizes.argmin())
        if sizes[smallest] >= k or len(sizes) == 1:
            return joined.reshape(-1)
        means = kernels.groups.group_means(points, joined)
        apart = ((means - means[smallest]) ** 2).sum(axis=1)
        apart[smallest] = np.inf
        clusters = np.where(joined == smallest, int(apart.argmin()), joined)
