"""Groups of near records: MDAV microaggregation, and the means of groups.

MDAV asks two questions over and over: which record is farthest from here, and which few are nearest. So the
records lie in leaves of up to 64 under a binary tree of bounding boxes, and are taken out once grouped.
A box that cannot hold the answer is not opened; where none can be skipped (many columns), what is left is a
vectorised pass over compact memory. The answer is that of the exhaustive search, to the last bit: a distance
is the sum of squared differences in column order, a box's bound the same sum with smaller (or greater) terms,
and rounding keeps that order.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LEAF = 64
MAX_DEPTH = 64  # of the tree, and so the size of a traversal's stack
SLICE = 0.2  # seconds of work between two calls of `tick`: about this to three times this


class _Tree(NamedTuple):
    """Remaining records; node ``i`` has children ``2i + 1`` and ``2i + 2``, the last level are the leaves."""

    coordinates: Floats  # [leaf, column, slot]: slots are contiguous, so a scan is vectorised
    records: Ints  # [leaf, slot]
    homes: Ints  # [record] -> leaf * LEAF + slot
    counts: Ints  # [node] records below it
    firsts: Ints  # [node] lowest record below it: ties go to the lowest
    lows: Floats  # [node, column] its box
    highs: Floats
    sums: Floats  # [node, column]: a centroid that is summed afresh, so no error builds up


def mdav(points: Floats, k: int, *, tick: Callable[[int, int], None] | None = None) -> Ints:
    r"""Group records by maximum distance to the average vector (MDAV), in groups of k to 2k − 1.

    While at least :math:`3k` records remain, with centroid :math:`\bar x`:

    .. math::

        r = \arg\max_i \lVert x_i - \bar x \rVert, \qquad s = \arg\max_i \lVert x_i - x_r \rVert,

    where r forms a group with the :math:`k - 1` remaining records nearest to it, and then s, the farthest
    from r of those still there, with its own. Of the last :math:`2k` to :math:`3k - 1` records r forms one
    more group; the rest is a group. Equal distances go to the lowest record.

    Parameters
    ----------
    points : float64[n, d]
        Complete and finite, in the units in which distances are to be taken.
    k : int
        Least size of a group. Fewer than :math:`2k` records make one group, however few they are.
    tick : callable, optional
        Called as ``tick(records_done, n)`` a few times each second; what it raises ends the run.

    Returns
    -------
    int64[n]
        The group of each record, in the order of forming.

    Notes
    -----
    **Cost:** :math:`O(n^2 d / k)` at worst, far less in few columns; memory :math:`O(n d)`.

    References
    ----------
    .. [domingo2005] J. Domingo-Ferrer, V. Torra (2005). Ordinal, continuous and heterogeneous k-anonymity
       through microaggregation. Data Mining and Knowledge Discovery 11, 195–212.
    """
    n = len(points)
    if k < 1:
        raise ValueError(f"`k` must be at least 1, got: {k}")
    if not np.isfinite(points).all():
        raise ValueError("`points` must be finite")
    if k == 1:
        return np.arange(n)
    centred = _centred(points)
    groups = np.full(n, -1, dtype=np.int64)
    n_rounds = 8
    remaining = np.arange(n)
    while len(remaining) >= 2 * k:
        # A tree grows loose as it empties, so it is built anew each time half of it has gone.
        tree = _plant(centred, remaining)
        floor = max(2 * k, len(remaining) // 2)
        while tree.counts[0] >= floor:
            began = time.perf_counter()
            _form_groups(tree, k, groups, n_rounds, floor)
            seconds = time.perf_counter() - began
            if seconds < SLICE:
                n_rounds *= 2
            elif seconds > 3 * SLICE:
                n_rounds = max(1, n_rounds // 2)
            if tick is not None:
                tick(n - int(tree.counts[0]), n)
        remaining = np.flatnonzero(groups < 0)
    groups[remaining] = groups.max(initial=-1) + 1
    return groups


def _centred(points: Floats) -> Floats:
    """Shift and scale so that sums and squares keep their digits; the groups stay the same.

    By a median that occurs, not a mean, and by a power of two: so differences of whole numbers stay exact,
    and so do ties. The scale keeps squares from overflow and underflow.
    """
    if points.size == 0:  # no record, or no column: then all records lie at one point
        return np.zeros((len(points), 1))
    exponent = int(np.frexp(np.abs(points).max())[1])
    scaled = np.ldexp(points, -exponent)
    middle = (len(points) - 1) // 2
    return np.ascontiguousarray(scaled - np.partition(scaled, middle, axis=0)[middle])


def _plant(points: Floats, remaining: Ints) -> _Tree:
    """Build the tree of the ``remaining`` records."""
    n, n_columns = points.shape
    n_leaves = 1 << ((len(remaining) - 1) // LEAF).bit_length()
    n_nodes = 2 * n_leaves - 1
    tree = _Tree(
        coordinates=np.zeros((n_leaves, n_columns, LEAF)),
        records=np.zeros((n_leaves, LEAF), dtype=np.int64),
        homes=np.zeros(n, dtype=np.int64),
        counts=np.zeros(n_nodes, dtype=np.int64),
        firsts=np.zeros(n_nodes, dtype=np.int64),
        lows=np.zeros((n_nodes, n_columns)),
        highs=np.zeros((n_nodes, n_columns)),
        sums=np.zeros((n_nodes, n_columns)),
    )
    _grow(tree, points, remaining.copy())
    return tree


@njit(cache=True, nogil=True)
def _grow(tree: _Tree, points: Floats, order: Ints) -> None:
    """Halve each node at the median of its widest column, fill the leaves, then sum up their nodes."""
    n_leaves = len(tree.records)
    starts = np.zeros(len(tree.counts), dtype=np.int64)
    tree.counts[0] = len(order)
    for node in range(n_leaves - 1):
        start, count = starts[node], tree.counts[node]
        left = count // 2
        _halve(points, order[start : start + count], left)
        starts[2 * node + 1], tree.counts[2 * node + 1] = start, left
        starts[2 * node + 2], tree.counts[2 * node + 2] = start + left, count - left
    for leaf in range(n_leaves):
        node = n_leaves - 1 + leaf
        for slot in range(tree.counts[node]):
            record = order[starts[node] + slot]
            tree.records[leaf, slot] = record
            tree.homes[record] = leaf * LEAF + slot
            for column in range(points.shape[1]):
                tree.coordinates[leaf, column, slot] = points[record, column]
        _sum_up_leaf(tree, leaf)
    for node in range(n_leaves - 2, -1, -1):
        _sum_up_node(tree, node)


@njit(cache=True, nogil=True)
def _halve(points: Floats, order: Ints, middle: int) -> None:
    """Put the ``middle`` records lowest in the widest column first (quickselect, in place)."""
    widest, width = 0, -1.0
    for column in range(points.shape[1]):
        low = high = points[order[0], column]
        for record in order:
            low = min(low, points[record, column])
            high = max(high, points[record, column])
        if high - low > width:
            widest, width = column, high - low
    left, right = 0, len(order) - 1
    while left < right:
        pivot = points[order[(left + right) // 2], widest]
        i, j = left, right
        while i <= j:
            while points[order[i], widest] < pivot:
                i += 1
            while points[order[j], widest] > pivot:
                j -= 1
            if i <= j:
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if middle <= j:
            right = j
        elif middle >= i:
            left = i
        else:
            return


@njit(cache=True, nogil=True)
def _sum_up_leaf(tree: _Tree, leaf: int) -> None:
    """Set box, sum and lowest record of a leaf from its records."""
    node = len(tree.records) - 1 + leaf
    count = tree.counts[node]
    first = len(tree.homes)
    for slot in range(count):
        first = min(first, tree.records[leaf, slot])
    tree.firsts[node] = first
    for column in range(tree.coordinates.shape[1]):
        low, high, total = np.inf, -np.inf, 0.0
        for slot in range(count):
            value = tree.coordinates[leaf, column, slot]
            low = min(low, value)
            high = max(high, value)
            total += value
        tree.lows[node, column], tree.highs[node, column], tree.sums[node, column] = low, high, total


@njit(cache=True, nogil=True)
def _sum_up_node(tree: _Tree, node: int) -> None:
    """Set box, sum, count and lowest record of an inner node from its two children."""
    left, right = 2 * node + 1, 2 * node + 2
    tree.counts[node] = tree.counts[left] + tree.counts[right]
    tree.firsts[node] = min(tree.firsts[left], tree.firsts[right])
    for column in range(tree.sums.shape[1]):
        tree.lows[node, column] = min(tree.lows[left, column], tree.lows[right, column])
        tree.highs[node, column] = max(tree.highs[left, column], tree.highs[right, column])
        tree.sums[node, column] = tree.sums[left, column] + tree.sums[right, column]


@njit(cache=True, nogil=True)
def _take_out(tree: _Tree, record: np.int64) -> None:
    """Take a record out of its leaf: the leaf's last record fills the hole."""
    leaf, slot = divmod(tree.homes[record], LEAF)
    node = len(tree.records) - 1 + leaf
    last = tree.counts[node] - 1
    moved = tree.records[leaf, last]
    tree.records[leaf, slot] = moved
    tree.homes[moved] = leaf * LEAF + slot
    for column in range(tree.coordinates.shape[1]):
        tree.coordinates[leaf, column, slot] = tree.coordinates[leaf, column, last]
    tree.counts[node] = last
    _sum_up_leaf(tree, leaf)
    while node > 0:
        node = (node - 1) // 2
        _sum_up_node(tree, node)


@njit(cache=True, nogil=True)
def _scan(tree: _Tree, leaf: int, query: Floats, distances: Floats) -> int:
    """Set the squared distances of a leaf's records to ``query``; return how many there are."""
    count = tree.counts[len(tree.records) - 1 + leaf]
    distances[:count] = 0.0
    for column in range(len(query)):
        here, row = query[column], tree.coordinates[leaf, column]
        for slot in range(count):
            difference = row[slot] - here
            distances[slot] += difference * difference
    return int(count)


@njit(cache=True, nogil=True)
def _bound(tree: _Tree, node: int, query: Floats, sign: float) -> float:
    """Bound from below the keys of a node's records (see `_search`)."""
    if tree.counts[node] == 0:
        return np.inf
    bound = 0.0
    for column in range(len(query)):
        below = tree.lows[node, column] - query[column]
        above = query[column] - tree.highs[node, column]
        difference = max(below, above, 0.0) if sign > 0 else min(below, above)
        bound += difference * difference
    return sign * bound


@njit(cache=True, nogil=True)
def _search(tree: _Tree, query: Floats, sign: float, keys: Floats, found: Ints) -> None:
    """Fill the heap (``keys``, ``found``) with the records of least key, the lowest of equals.

    A record's key is ``sign`` times its squared distance to ``query``: +1 finds the nearest, −1 the
    farthest. The worst of those kept is at the top of the heap.
    """
    n_inner = len(tree.records) - 1
    distances = np.empty(LEAF)
    nodes, bounds = np.zeros(MAX_DEPTH, dtype=np.int64), np.full(MAX_DEPTH, -np.inf)
    keys[:] = np.inf
    found[:] = len(tree.homes)
    height = 1
    while height > 0:
        height -= 1
        node, bound = nodes[height], bounds[height]
        if bound > keys[0] or (bound == keys[0] and tree.firsts[node] > found[0]):
            continue
        if node >= n_inner:
            for slot in range(_scan(tree, node - n_inner, query, distances)):
                key, record = sign * distances[slot], tree.records[node - n_inner, slot]
                if key < keys[0] or (key == keys[0] and record < found[0]):
                    _replace_worst(keys, found, key, record)
            continue
        left, right = 2 * node + 1, 2 * node + 2
        of_left, of_right = _bound(tree, left, query, sign), _bound(tree, right, query, sign)
        if of_left < of_right or (of_left == of_right and tree.firsts[left] < tree.firsts[right]):
            left, right, of_left, of_right = right, left, of_right, of_left
        nodes[height], bounds[height] = left, of_left
        nodes[height + 1], bounds[height + 1] = right, of_right  # on top: the more promising goes first
        height += 2


@njit(cache=True, nogil=True)
def _replace_worst(keys: Floats, found: Ints, key: float, record: int) -> None:
    """Put a record in the place of the worst, at the top of the heap, and let it sink to its own."""
    place = 0
    while True:
        child = 2 * place + 1
        if child >= len(keys):
            break
        other = child + 1
        if other < len(keys) and (
            keys[other] > keys[child] or (keys[other] == keys[child] and found[other] > found[child])
        ):
            child = other
        if keys[child] < key or (keys[child] == key and found[child] < record):
            break
        keys[place], found[place] = keys[child], found[child]
        place = child
    keys[place], found[place] = key, record


@njit(cache=True, nogil=True)
def _form_group(tree: _Tree, k: int, opposite: Floats, groups: Ints) -> Floats:
    """Group the record farthest from ``opposite`` with its k − 1 nearest; return where that record is."""
    group = (len(groups) - tree.counts[0]) // k  # each group so far has exactly k records
    keys, found = np.empty(k - 1), np.empty(k - 1, dtype=np.int64)
    _search(tree, opposite, -1.0, keys[:1], found[:1])
    record = found[0]
    leaf, slot = divmod(tree.homes[record], LEAF)
    centre = tree.coordinates[leaf, :, slot].copy()
    groups[record] = group
    _take_out(tree, record)  # before its nearest are sought: it is in its group, whoever else lies there
    _search(tree, centre, 1.0, keys, found)
    for member in found:
        groups[member] = group
        _take_out(tree, member)
    return centre


@njit(cache=True, nogil=True)
def _form_groups(tree: _Tree, k: int, groups: Ints, n_rounds: int, floor: int) -> None:
    """Go ``n_rounds`` rounds, or until fewer than ``floor`` records remain."""
    for _ in range(n_rounds):
        n_remaining = tree.counts[0]
        if n_remaining < floor:
            break
        centre = _form_group(tree, k, tree.sums[0] / n_remaining, groups)
        if n_remaining >= 3 * k:
            _form_group(tree, k, centre, groups)


def group_means(values: Floats, groups: Ints) -> Floats:
    r"""Mean of each group, over what is present.

    .. math:: \bar x_g = x_f + \frac{1}{n_g} \sum_{i \in g} (x_i - x_f)

    with :math:`x_f` the first value of the group: equal values have exactly that mean, and values far from
    zero lose no digits.

    Parameters
    ----------
    values : float64[n, d]
        NaN is missing.
    groups : int64[n]
        From 0 up.

    Returns
    -------
    float64[n_groups, d]
        NaN where a group has no value.
    """
    # One layout, so that one compilation serves all: arrays from a frame are read-only and by column.
    values, groups = np.require(values, np.float64, ["C", "W"]), np.require(groups, np.int64, ["W"])
    return _group_means(values, groups, int(groups.max(initial=-1)) + 1)


@njit(cache=True, nogil=True)
def _group_means(values: Floats, groups: Ints, n_groups: int) -> Floats:
    """Sum the differences to each group's first value, then add their mean to it."""
    n, n_columns = values.shape
    firsts = np.full((n_groups, n_columns), np.nan)
    sums = np.zeros((n_groups, n_columns))
    counts = np.zeros((n_groups, n_columns), dtype=np.int64)
    for i in range(n):
        for column in range(n_columns):
            value = values[i, column]
            if np.isnan(value):
                continue
            group = groups[i]
            if counts[group, column] == 0:
                firsts[group, column] = value
            counts[group, column] += 1
            sums[group, column] += value - firsts[group, column]
    return firsts + sums / np.maximum(counts, 1)
