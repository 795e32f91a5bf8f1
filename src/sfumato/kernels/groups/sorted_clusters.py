"""Clusters of records that lie side by side in one order, or one from each part of another order.

Algorithms S2 and S4 of Sánchez, Martínez and Domingo-Ferrer (2016), and the third algorithm of Soria-Comas,
Domingo-Ferrer, Sánchez and Martínez (2015).
"""

from __future__ import annotations

import numpy as np

from sfumato.kernels.arrays import Floats, Ints
from sfumato.kernels.compiling import njit
from sfumato.kernels.threads import Tick


def neighbours(sizes: Ints, k: int) -> Ints:
    """Cut records that follow each other into clusters of k, the last of a block with up to 2k − 1.

    Parameters
    ----------
    sizes : int64[blocks]
        How many records each block has; a cluster lies in one block, unless a block has fewer than k: then
        it counts to the next one, and the last to the one before it.
    k : int
        At least 1.

    Returns
    -------
    int64[clusters + 1]
        Where each cluster begins, and the end.
    """
    total = int(sizes.sum())
    starts = np.zeros(total // k + 1, dtype=np.int64)
    n_clusters = _cut_blocks(sizes, k, starts) if total else 0
    return np.append(starts[:n_clusters], total)


@njit(cache=True, nogil=True)
def _cut_blocks(sizes: Ints, k: int, starts: Ints) -> int:
    """Cut a block when it is sure that nothing is left over to be added to it."""
    begin, total, more, n_clusters = 0, 0, 0, 0
    for number in range(len(sizes) + 1):
        last = number == len(sizes)
        more += 0 if last else sizes[number]
        if last or more >= k:
            if last:
                total, more = total + more, 0
            for each in range(total // k):
                starts[n_clusters] = begin + each * k
                n_clusters += 1
            begin, total, more = begin + total, more, 0
    return max(n_clusters, 1)


def sizes_of(n: int, k: int) -> tuple[int, int]:
    """How many parts records are split into, at least k, and how many clusters there are: n // k, or 1.

    With the number of clusters q = n // k the parts are n // q: what k + (n mod k) // q is in S4.
    """
    n_clusters = max(n // k, 1)
    return n // n_clusters, n_clusters


def bounds_of_parts(n: int, n_parts: int) -> Ints:
    """Where parts as equal as can be begin and end: each end is j·n / parts, rounded."""
    return (2 * n * np.arange(n_parts + 1, dtype=np.int64) + n_parts) // (2 * n_parts)


def one_of_each(order: Ints, ranks: Ints, k: int) -> Ints:
    r"""Cluster records so that each cluster has one of every part of an order, and those of like rank.

    The order is split into :math:`K \ge k` parts as equal as can be; in each the records are put in the order
    of ``ranks``, and the i-th of all parts are cluster i. Parts that have one more than others give it to one
    of the last clusters each, which then have :math:`K + 1`.

    Parameters
    ----------
    order : int64[n]
        The records in the order that every cluster shall represent.
    ranks : int64[n]
        Distinct: which records shall be together.
    k : int

    Returns
    -------
    int64[n]
        The cluster of each record, from 0 up in the order of the ranks.
    """
    n = len(order)
    n_parts, n_clusters = sizes_of(n, k)
    bounds = bounds_of_parts(n, n_parts)
    part = np.repeat(np.arange(n_parts), np.diff(bounds))
    records = order[np.lexsort((ranks[order], part))]
    places = np.arange(n) - bounds[part]
    over = places >= n_clusters
    places[over] = n_clusters - 1 - np.arange(int(over.sum()))
    clusters = np.empty(n, dtype=np.int64)
    clusters[records] = places
    return clusters


def nearest_of_each(points: Floats, order: Ints, k: int, *, tick: Tick | None = None) -> Ints:
    r"""Cluster records so that each cluster has one of every part of an order, near ones together.

    As `one_of_each`, but a cluster is formed around a record by taking the nearest of every part: first
    around the record farthest from the mean of all that are left, then around the one farthest from that,
    and so on. Parts that have one more than others give a second one to one of the first clusters each.

    Parameters
    ----------
    points : float64[n, d]
        Finite.
    order : int64[n]
        The records in the order that every cluster shall represent.
    k : int

    Returns
    -------
    int64[n]
        The cluster of each record, from 0 up in the order in which they are formed. Equal distances go to
        the record that stands first.

    Notes
    -----
    **Cost:** :math:`O(n^2 d / k)`.
    """
    n = len(order)
    n_parts, n_clusters = sizes_of(n, k)
    bounds = bounds_of_parts(n, n_parts)
    left = np.diff(bounds)
    members, clusters = order.copy(), np.full(n, -1, dtype=np.int64)
    ahead = np.zeros(points.shape[1])
    pairs = 64
    for first in range(0, n_clusters, 2 * pairs):
        last = min(first + 2 * pairs, n_clusters)
        _form(points, (members, bounds, left), clusters, ahead, np.array([first, last, n_clusters]))
        if tick is not None:
            tick(last, n_clusters)
    return clusters


@njit(cache=True, nogil=True)
def _form(
    points: Floats, parts: tuple[Ints, Ints, Ints], clusters: Ints, ahead: Floats, numbers: Ints
) -> None:
    """Form the clusters of some numbers; ``ahead`` is the record that the last one was formed around."""
    members, bounds, left = parts
    d = points.shape[1]
    for cluster in range(numbers[0], numbers[1]):
        if cluster % 2 == 0:  # around the farthest from the mean
            ahead[:] = 0.0
            n_left = 0
            for part in range(len(left)):
                for i in range(bounds[part], bounds[part] + left[part]):
                    n_left += 1
                    for j in range(d):
                        ahead[j] += points[members[i], j]
            for j in range(d):
                ahead[j] /= n_left
        farthest, most = -1, -1.0
        for part in range(len(left)):
            place, distance = _extreme(points, members[bounds[part] : bounds[part] + left[part]], ahead, 1.0)
            if distance > most or (distance == most and members[bounds[part] + place] < farthest):
                most, farthest = distance, members[bounds[part] + place]
        for j in range(d):
            ahead[j] = points[farthest, j]
        second = True
        for part in range(len(left)):
            more = second and left[part] > numbers[2] - cluster
            for _ in range(2 if more else 1):
                own = members[bounds[part] : bounds[part] + left[part]]
                place, _distance = _extreme(points, own, ahead, -1.0)
                clusters[own[place]] = cluster
                own[place] = own[-1]
                left[part] -= 1
            second = second and not more


@njit(cache=True, nogil=True)
def _extreme(points: Floats, records: Ints, centre: Floats, sign: float) -> tuple[int, float]:
    """The place of the farthest record (sign 1) or the nearest (−1), the first of equals; and how far."""
    best, at = -np.inf, 0
    for i in range(len(records)):
        distance = 0.0
        for j in range(len(centre)):
            difference = points[records[i], j] - centre[j]
            distance += difference * difference
        if sign * distance > best or (sign * distance == best and records[i] < records[at]):
            best, at = sign * distance, i
    return at, sign * best
