"""Groups whose size follows the data: k-Ward joins near records, a spanning tree is cut between far ones."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sfumato.kernels.arrays import Floats, Ints
from sfumato.kernels.compiling import njit
from sfumato.kernels.groups.farthest import mdav, refuse_unfit
from sfumato.kernels.threads import Tick
from sfumato.kernels.trees.boxes import centre_and_scale

STEPS = 512  # joins, or records reached, between two calls of `tick`


def ward(points: Floats, k: int, *, tick: Tick | None = None) -> Ints:
    r"""Group records by k-Ward, in groups of k to 2k − 1.

    The record farthest from the mean takes its :math:`k-1` nearest as a group, and so does, of the others,
    the record farthest from it. Every other record is a group of its own. Then the two groups are joined
    whose union adds least to the sum of squares,

    .. math:: \frac{n_a n_b}{n_a + n_b} \lVert \bar x_a - \bar x_b \rVert^2,

    never two of which both have k records, until all have. A group of 2k or more is parted in the same way.

    Parameters
    ----------
    points, k, tick
        As for `mdav`.

    Returns
    -------
    int64[n]
        The group of each record.

    Notes
    -----
    The published algorithm begins with the two records that are farthest apart, which takes all pairs.
    **Cost:** about :math:`O(n^2 d)`; memory :math:`O(n d)`.

    References
    ----------
    .. [domingoferrer2002] J. Domingo-Ferrer, J. M. Mateo-Sanz (2002). Practical data-oriented
       microaggregation for statistical disclosure control. IEEE Transactions on Knowledge and Data
       Engineering 14, 189–201.
    """
    refuse_unfit(points, k)
    n = len(points)
    if k == 1:
        return np.arange(n)
    places, groups = centre_and_scale(points), np.zeros(n, dtype=np.int64)
    waiting, n_groups, done = [np.arange(n)], 0, 0
    while waiting:
        records = waiting.pop()
        if len(records) < 2 * k:
            groups[records] = n_groups
            n_groups, done = n_groups + 1, done + len(records)
            if tick is not None:
                tick(done, n)
            continue
        parts = _join_to_k(places[records], k, tick and (lambda *_, now=done: tick(now, n)))
        waiting += [records[parts == part] for part in range(int(parts.max()) + 1)]
    return groups


class _Joining(NamedTuple):
    """Groups that are being joined: one that is gone has the size 0 and is ``into`` another."""

    centres: Floats
    sizes: Ints
    into: Ints
    nearest: Ints
    costs: Floats  # of joining the nearest; infinite where a group has k records, and waits to be joined


def _join_to_k(points: Floats, k: int, tick: Tick | None) -> Ints:
    """Join 2k records or more to groups of at least k: two at the ends, and what else comes together."""
    first = _with_nearest(points, int(_squares(points, points.mean(axis=0)).argmax()), k, ())
    second = _with_nearest(points, int(_squares(points, points[first[0]]).argmax()), k, first)
    starts = np.arange(len(points))
    starts[first], starts[second] = first.min(), second.min()
    sizes = np.bincount(starts, minlength=len(points))
    centres = points.copy()
    for members in (first, second):
        centres[members.min()] = points[members].mean(axis=0)
    state = _Joining(centres, sizes, starts.copy(), np.zeros_like(sizes), np.full(len(points), np.inf))
    for group in np.flatnonzero((sizes > 0) & (sizes < k)):
        _find_nearest(state, int(group))
    while _join(state, k, STEPS):
        if tick is not None:
            tick(0, len(points))
    ends = state.into
    while (ends != ends[ends]).any():
        ends = ends[ends]
    return np.unique(ends, return_inverse=True)[1]


def _squares(points: Floats, place: Floats) -> Floats:
    squares: Floats = ((points - place) ** 2).sum(axis=1)
    return squares


def _with_nearest(points: Floats, seed: int, k: int, taken: Ints | tuple[()]) -> Ints:
    """A record and the k − 1 nearest to it that are free; a seed that is taken gives way to a free one."""
    distances = _squares(points, points[seed])
    distances[seed] = -1.0
    distances[np.asarray(taken, dtype=np.int64)] = np.inf
    return np.argsort(distances, kind="stable")[:k]


@njit(cache=True, nogil=True)
def _find_nearest(state: _Joining, group: int) -> None:
    """Set with which other group a small one joins at the least cost, the first of equals."""
    best, least = -1, np.inf
    size, width = state.sizes[group], state.centres.shape[1]
    for other in range(len(state.sizes)):
        if state.sizes[other] == 0 or other == group:
            continue
        square = 0.0
        for column in range(width):
            square += (state.centres[group, column] - state.centres[other, column]) ** 2
        cost = square * size * state.sizes[other] / (size + state.sizes[other])
        if cost < least:
            best, least = other, cost
    state.nearest[group], state.costs[group] = best, least


@njit(cache=True, nogil=True)
def _join(state: _Joining, k: int, n_joins: int) -> bool:
    """Join so often the two groups that cost least; whether there is more to join.

    A join never brings a group nearer to the others than its two parts were, so that only groups whose
    nearest is one of the two look for another.
    """
    for _ in range(n_joins):
        one = int(np.argmin(state.costs))
        if state.costs[one] == np.inf:
            return False
        other = state.nearest[one]
        keep, gone = min(one, other), max(one, other)
        size = state.sizes[keep] + state.sizes[gone]
        share = state.sizes[gone] / size
        for column in range(state.centres.shape[1]):
            state.centres[keep, column] += share * (state.centres[gone, column] - state.centres[keep, column])
        state.sizes[keep], state.sizes[gone], state.into[gone] = size, 0, keep
        state.costs[keep] = state.costs[gone] = np.inf
        for group in range(len(state.sizes)):
            asks = state.costs[group] < np.inf and (
                state.nearest[group] == keep or state.nearest[group] == gone
            )
            if asks or (group == keep and size < k):
                _find_nearest(state, group)
    return True


def spanning_tree(points: Floats, k: int, *, tick: Tick | None = None) -> Ints:
    r"""Group records by cutting their minimum spanning tree, in groups of k to 2k − 1.

    The longest edges of the tree are cut first, each if both sides keep at least k records. What is left of
    2k records or more is grouped by `mdav`.

    Parameters
    ----------
    points, k, tick
        As for `mdav`.

    Returns
    -------
    int64[n]
        The group of each record.

    Notes
    -----
    **Cost:** :math:`O(n^2 d)` by Prim's algorithm; memory :math:`O(n d)`.

    References
    ----------
    .. [laszlo2005] M. Laszlo, S. Mukherjee (2005). Minimum spanning tree partitioning algorithm for
       microaggregation. IEEE Transactions on Knowledge and Data Engineering 17, 902–911.
    """
    refuse_unfit(points, k)
    n = len(points)
    if k == 1 or n < 2 * k:
        return np.arange(n) if k == 1 else np.zeros(n, dtype=np.int64)
    places = centre_and_scale(points)
    order, parents, lengths = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64), np.full(n, np.inf)
    lengths[0] = 0.0
    for reached in range(0, n, STEPS):
        _grow_tree(places, order, parents, lengths, reached, min(reached + STEPS, n))
        if tick is not None:
            tick(reached, n)
    roots = _cut_tree(order, parents, np.argsort(-lengths, kind="stable"), k)
    groups = np.unique(roots, return_inverse=True)[1].astype(np.int64)
    for part in np.flatnonzero(np.bincount(groups) >= 2 * k):
        members = np.flatnonzero(groups == part)
        groups[members] = groups.max() + 1 + mdav(places[members], k)
    return np.unique(groups, return_inverse=True)[1].astype(np.int64)


@njit(cache=True, nogil=True)
def _grow_tree(  # noqa: PLR0917
    points: Floats, order: Ints, parents: Ints, lengths: Floats, reached: int, until: int
) -> None:
    """Prim: reach the record nearest to those reached so far; a length below 0 is that of a reached one.

    The square :math:`s` of an edge in the tree is kept as :math:`-1 - s`.
    """
    n, width = points.shape
    for step in range(reached, until):
        here, least = -1, np.inf
        for record in range(n):
            if lengths[record] >= 0 and (here < 0 or lengths[record] < least):
                here, least = record, lengths[record]
        order[step], lengths[here] = here, -1.0 - least
        for record in range(n):
            if lengths[record] < 0:
                continue
            square = 0.0
            for column in range(width):
                square += (points[record, column] - points[here, column]) ** 2
            if square < lengths[record]:
                lengths[record], parents[record] = square, here


@njit(cache=True, nogil=True)
def _cut_tree(order: Ints, parents: Ints, shortest_first: Ints, k: int) -> Ints:
    """Cut edges, the longest first, where both sides keep k records; the root of each record's part.

    An edge is the one between a record and its parent, towards the record that was reached first.
    """
    n, first = len(order), order[0]
    below, is_cut = np.ones(n, dtype=np.int64), np.zeros(n, dtype=np.bool_)
    for place in range(n - 1, 0, -1):
        below[parents[order[place]]] += below[order[place]]
    is_cut[first] = True
    for edge in shortest_first[::-1]:
        if edge == first or below[edge] < k:
            continue
        root = parents[edge]
        while not is_cut[root]:
            root = parents[root]
        if below[root] - below[edge] < k:
            continue
        is_cut[edge] = True
        above = parents[edge]
        while not is_cut[above]:
            below[above] -= below[edge]
            above = parents[above]
        below[root] -= below[edge]
    roots = np.zeros(n, dtype=np.int64)
    for place in range(n):
        record = order[place]
        roots[record] = record if is_cut[record] else roots[parents[record]]
    return roots
