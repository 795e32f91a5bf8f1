"""Linking of units: those of an intruder's records that belong together, with released records that do.

Two units lie as far apart as the records of each lie from the nearest of the other's, taken together, and as
the means of both; where the numbers of records differ, each record more or less counts as one unit of
distance. That finds nearly as many as the best assignment of their records does, and costs far less.
"""

from __future__ import annotations

import numpy as np

from sfumato.kernels.arrays import Floats, Ints
from sfumato.kernels.linking import DISTANCE_TOLERANCE
from sfumato.kernels.norms import Metric, keys_of, norm_of
from sfumato.kernels.threads import Tick

_PAIRS = 2**22  # of records compared at once


def unit_chances(
    points: Floats,
    others: Floats,
    units: Ints,
    other_units: Ints,
    *,
    metric: Metric,
    n_codes: int = 0,
    weights: Floats | None = None,
    tick: Tick | None = None,
) -> Floats:
    r"""The chance that the unit of each point is linked to its own among the others, drawing among equals.

    Parameters
    ----------
    points, others : float64[n, d], float64[m, d]
    units, other_units : int64[n], int64[m]
        The unit of each; a unit's own is the one of the same number.
    metric, n_codes, weights
        What is measured and what counts by being unequal, as for `norm_of`.
    tick : callable, optional
        Called as ``tick(done, total)`` for each block; what it raises ends the run.

    Notes
    -----
    Exact up to the slack for ties. **Cost:** :math:`O(n m d)` in blocks.
    """
    norm = norm_of(metric, points.shape[1], n_codes, weights)
    there, other_starts, other_sizes, others = _by_unit(others, other_units)
    distinct, starts, sizes, sorted_points = _by_unit(points, units)
    if not len(there) or not len(distinct):
        return np.zeros(len(points))
    chances, ends = np.zeros(len(distinct)), np.append(starts, len(points))
    of_means = norm._replace(weights=norm.weights[:0])
    means = [
        np.add.reduceat(each[:, : norm.n_measured], begins, axis=0) / counts[:, None]
        for each, begins, counts in ((sorted_points, starts, sizes), (others, other_starts, other_sizes))
    ]
    first = 0
    while first < len(distinct):
        last = first + 1
        while last < len(distinct) and (ends[last + 1] - ends[first]) * len(others) <= _PAIRS:
            last += 1
        block, own_starts = sorted_points[ends[first] : ends[last]], starts[first:last] - starts[first]
        total = _distances(keys_of(block[:, None], others[None], norm), own_starts, other_starts)
        own_sizes = sizes[first:last, None]
        total += (own_sizes + other_sizes) * keys_of(means[0][first:last, None], means[1][None], of_means)
        total += np.abs(own_sizes - other_sizes)
        is_least = total <= total.min(axis=1, keepdims=True) * (1 + DISTANCE_TOLERANCE) + DISTANCE_TOLERANCE
        own = np.minimum(np.searchsorted(there, distinct[first:last]), len(there) - 1)
        is_own = (there[own] == distinct[first:last]) & is_least[np.arange(last - first), own]
        chances[first:last] = np.where(is_own, 1 / is_least.sum(axis=1), 0.0)
        first = last
        if tick is not None:
            tick(int(ends[first]), len(points))
    return chances[np.searchsorted(distinct, units)]


def _distances(keys: Floats, starts: Ints, other_starts: Ints) -> Floats:
    """How far units lie apart, from the keys of all pairs of their records."""
    there = np.add.reduceat(np.minimum.reduceat(keys, other_starts, axis=1), starts, axis=0)
    back = np.add.reduceat(np.minimum.reduceat(keys, starts, axis=0), other_starts, axis=1)
    return there + back


def _by_unit(points: Floats, units: Ints) -> tuple[Ints, Ints, Ints, Floats]:
    """The distinct units, where each begins, how many points it has, and the points sorted by unit."""
    order = np.argsort(units, kind="stable")
    distinct, starts, sizes = np.unique(units[order], return_index=True, return_counts=True)
    return distinct, starts, sizes, points[order]
