"""A tree of bounding boxes over records that are taken out one by one: who is nearest, who is farthest.

The records lie in leaves of up to 64 under a binary tree. A box that cannot hold the answer is not opened;
where none can be skipped (many columns), what is left is a vectorised pass over compact memory. The answer is
that of the exhaustive search, to the last bit: a distance is the sum of squared differences in column order,
and a bound is either the same sum with smaller (or greater) terms, whose order rounding keeps, or it has a
margin for rounding.

What is asked at every node is compiled into who asks it (``forceinline``): to hand over a tree of eleven
arrays takes longer than to answer.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sfumato.kernels.arrays import Floats, Ints
from sfumato.kernels.compiling import njit
from sfumato.kernels.trees import planting
from sfumato.kernels.trees.planting import MAX_DEPTH

LEAF = 64
STRETCH = 16  # columns, after which a scan looks whether anybody can still be near enough
LOOSE = -1  # stands for the lowest record of a leaf that is still to be summed up, and is lower than any
MARGIN = 1e-15  # relative, for each term of a sum: a few times what rounding can do


class BoundingBoxTree(NamedTuple):
    """Remaining records; node ``i`` has children ``2i + 1`` and ``2i + 2``, the last level are the leaves."""

    coordinates: Floats  # [leaf, column, slot]: slots are contiguous, so a scan is vectorised
    records: Ints  # [leaf, slot]
    homes: Ints  # [record] -> leaf * LEAF + slot
    counts: Ints  # [node] records below it
    firsts: Ints  # [node] lowest record below it: ties go to the lowest
    lows: Floats  # [node, column] its box
    highs: Floats
    sums: Floats  # [node, column]: a centroid that is summed afresh, so no error builds up
    origin: Floats  # [column] the centroid when the tree was planted
    norms: Floats  # [leaf, slot] squared distances from the origin
    radii: Floats  # [node] the greatest of them


def centre_and_scale(points: Floats) -> Floats:
    """Shift and scale so that sums and squares keep their digits; who is near to whom stays the same.

    By a median that occurs, not a mean, and by a power of two: so differences of whole numbers stay exact,
    and so do ties. The scale keeps squares from overflow and underflow.
    """
    if points.size == 0:  # no record, or no column: then all records lie at one point
        return np.zeros((len(points), 1))
    exponent = int(np.frexp(np.abs(points).max())[1])
    scaled = np.ldexp(points, -exponent)
    middle = (len(points) - 1) // 2
    return np.ascontiguousarray(scaled - np.partition(scaled, middle, axis=0)[middle])


def plant(points: Floats, remaining: Ints) -> BoundingBoxTree:
    """Build the tree of the ``remaining`` records, of which there must be one at least."""
    n, n_columns = points.shape
    order, starts = planting.plant(points, LEAF, among=remaining)
    n_leaves = len(starts) - 1
    n_nodes = 2 * n_leaves - 1
    homes = np.zeros(n, dtype=np.int64)
    homes[order] = planting.leaf_of(starts, LEAF)
    tree = BoundingBoxTree(
        coordinates=np.zeros((n_leaves, n_columns, LEAF)),
        records=planting.in_leaves(order, starts, LEAF),
        homes=homes,
        counts=np.append(np.zeros(n_leaves - 1, dtype=np.int64), np.diff(starts)),
        firsts=np.zeros(n_nodes, dtype=np.int64),
        lows=np.zeros((n_nodes, n_columns)),
        highs=np.zeros((n_nodes, n_columns)),
        sums=np.zeros((n_nodes, n_columns)),
        origin=np.zeros(n_columns),
        norms=np.zeros((n_leaves, LEAF)),
        radii=np.zeros(n_nodes),
    )
    _fill(tree, points, remaining)
    return tree


@njit(cache=True, nogil=True)
def _fill(tree: BoundingBoxTree, points: Floats, remaining: Ints) -> None:
    """Write down where the records lie, then sum up their leaves and nodes."""
    n_leaves = len(tree.records)
    for record in remaining:
        for column in range(points.shape[1]):
            tree.origin[column] += points[record, column] / len(remaining)
    for leaf in range(n_leaves):
        for slot in range(tree.counts[n_leaves - 1 + leaf]):
            _put(tree, leaf, slot, points[tree.records[leaf, slot]], 1)
        _sum_up_leaf(tree, leaf)
    for node in range(n_leaves - 2, -1, -1):
        _sum_up_node(tree, node)


@njit(cache=True, nogil=True)
def _put(tree: BoundingBoxTree, leaf: int, slot: int, total: Floats, size: int) -> None:
    """Write down where the record in a slot lies, at ``total / size``."""
    norm = 0.0
    for column in range(len(total)):
        tree.coordinates[leaf, column, slot] = total[column] / size
        difference = tree.coordinates[leaf, column, slot] - tree.origin[column]
        norm += difference * difference
    tree.norms[leaf, slot] = norm


def _sum_up_small_leaf(tree: BoundingBoxTree, leaf: int) -> None:
    """As `_sum_up_leaf`, by numpy."""
    node = len(tree.records) - 1 + leaf
    count = int(tree.counts[node])
    tree.firsts[node] = tree.records[leaf, :count].min(initial=len(tree.homes))
    tree.radii[node] = tree.norms[leaf, :count].max(initial=0.0)
    values = tree.coordinates[leaf, :, :count]
    tree.lows[node], tree.highs[node] = (
        values.min(axis=1, initial=np.inf),
        values.max(axis=1, initial=-np.inf),
    )
    tree.sums[node] = values.cumsum(axis=1)[:, -1] if count else 0.0  # in the order of the slots


@njit(_sum_up_small_leaf, cache=True, nogil=True)
def _sum_up_leaf(tree: BoundingBoxTree, leaf: int) -> None:
    """Set box, sum and lowest record of a leaf from its records."""
    node = len(tree.records) - 1 + leaf
    count = tree.counts[node]
    first, radius = len(tree.homes), 0.0
    for slot in range(count):
        first = min(first, tree.records[leaf, slot])
        radius = max(radius, tree.norms[leaf, slot])
    tree.firsts[node], tree.radii[node] = first, radius
    for column in range(tree.coordinates.shape[1]):
        low, high, total = np.inf, -np.inf, 0.0
        for slot in range(count):
            value = tree.coordinates[leaf, column, slot]
            low = min(low, value)
            high = max(high, value)
            total += value
        tree.lows[node, column], tree.highs[node, column], tree.sums[node, column] = low, high, total


def _sum_up_small_node(tree: BoundingBoxTree, node: int) -> None:
    """As `_sum_up_node`, by numpy."""
    left, right = 2 * node + 1, 2 * node + 2
    tree.counts[node] = tree.counts[left] + tree.counts[right]
    tree.firsts[node] = min(tree.firsts[left], tree.firsts[right])
    tree.radii[node] = max(tree.radii[left], tree.radii[right])
    tree.lows[node] = np.minimum(tree.lows[left], tree.lows[right])
    tree.highs[node] = np.maximum(tree.highs[left], tree.highs[right])
    tree.sums[node] = tree.sums[left] + tree.sums[right]


@njit(_sum_up_small_node, cache=True, nogil=True)
def _sum_up_node(tree: BoundingBoxTree, node: int) -> None:
    """Set box, sum, count and lowest record of an inner node from its two children."""
    left, right = 2 * node + 1, 2 * node + 2
    tree.counts[node] = tree.counts[left] + tree.counts[right]
    tree.firsts[node] = min(tree.firsts[left], tree.firsts[right])
    tree.radii[node] = max(tree.radii[left], tree.radii[right])
    for column in range(tree.sums.shape[1]):
        tree.lows[node, column] = min(tree.lows[left, column], tree.lows[right, column])
        tree.highs[node, column] = max(tree.highs[left, column], tree.highs[right, column])
        tree.sums[node, column] = tree.sums[left, column] + tree.sums[right, column]


@njit(cache=True, nogil=True)
def _sum_up_path(tree: BoundingBoxTree, leaf: int) -> None:
    """Set what changes above when a leaf's records do."""
    _sum_up_leaf(tree, leaf)
    node = len(tree.records) - 1 + leaf
    while node > 0:
        node = (node - 1) // 2
        _sum_up_node(tree, node)


@njit(cache=True, nogil=True)
def take_out(tree: BoundingBoxTree, record: int) -> None:
    """Take a record out of the tree."""
    lift(tree, record)
    _sum_up_path(tree, tree.homes[record] // LEAF)


@njit(cache=True, nogil=True)
def settle(tree: BoundingBoxTree, records: Ints) -> None:
    """Sum up the leaves that lifted records have left, each once: near records mostly come from one."""
    for record in records:
        leaf = tree.homes[record] // LEAF
        if tree.firsts[len(tree.records) - 1 + leaf] == LOOSE:
            _sum_up_path(tree, leaf)


@njit(cache=True, nogil=True)
def lift(tree: BoundingBoxTree, record: int) -> None:
    """Take a record out of its leaf: the leaf's last record fills the hole.

    The boxes stay as they were, which are too large then: whoever is nearest is found nevertheless. What is
    farthest, and the sums, must wait for `settle`.
    """
    leaf, slot = divmod(tree.homes[record], LEAF)
    node = len(tree.records) - 1 + leaf
    last = tree.counts[node] - 1
    moved = tree.records[leaf, last]
    tree.records[leaf, slot] = moved
    tree.homes[moved] = leaf * LEAF + slot
    tree.norms[leaf, slot] = tree.norms[leaf, last]
    for column in range(tree.coordinates.shape[1]):
        tree.coordinates[leaf, column, slot] = tree.coordinates[leaf, column, last]
    tree.counts[node] = last
    tree.firsts[node] = LOOSE


@njit(cache=True, nogil=True)
def shift(tree: BoundingBoxTree, record: int, total: Floats, size: int) -> None:
    """Give a record another place, ``total / size``: it stays in its leaf, and the boxes follow."""
    leaf, slot = divmod(tree.homes[record], LEAF)
    _put(tree, leaf, slot, total, size)
    _sum_up_path(tree, leaf)


@njit(cache=True, nogil=True)
def mean(total: Floats, size: int) -> Floats:
    """Divide, which written with arrays would take longer to compile."""
    place = np.empty(len(total))
    for column in range(len(total)):
        place[column] = total[column] / size
    return place


@njit(cache=True, nogil=True, forceinline=True)
def scan(tree: BoundingBoxTree, leaf: int, query: Floats, most: float, distances: Floats) -> int:
    """Set the squared distances of a leaf's records to ``query``; return how many there are.

    None, if after some of many columns all are known to be farther than ``most``.
    """
    count = int(tree.counts[len(tree.records) - 1 + leaf])
    distances[:count] = 0.0
    for column in range(len(query)):
        here, row = query[column], tree.coordinates[leaf, column]
        for slot in range(count):
            difference = row[slot] - here
            distances[slot] += difference * difference
        if column % STRETCH == STRETCH - 1 and all_above(most, distances[:count]):
            return 0
    return count


@njit(cache=True, nogil=True, forceinline=True)
def all_above(most: float, distances: Floats) -> bool:
    """Tell whether none is as near."""
    least = np.inf
    for distance in distances:
        least = min(least, distance)
    return bool(least > most)


@njit(cache=True, nogil=True, forceinline=True)
def bound_near(tree: BoundingBoxTree, node: int, query: Floats) -> float:
    """Bound from below the squared distances of a node's records to ``query``."""
    if tree.counts[node] == 0:
        return np.inf
    bound = 0.0
    for column in range(len(query)):
        difference = max(
            tree.lows[node, column] - query[column], query[column] - tree.highs[node, column], 0.0
        )
        bound += difference * difference
    return bound


@njit(cache=True, nogil=True, forceinline=True)
def _bound_far(tree: BoundingBoxTree, node: int, query: Floats, away: Floats, squares: float) -> float:
    r"""Bound from above the squared distances of a node's records to ``query``.

    By the corner of the box, and with the origin :math:`o`, the radius :math:`\rho` around it and
    :math:`a = o - q` (``away``, of ``squares`` :math:`|a|^2`) by

    .. math:: |x - q|^2 = |x - o|^2 + |a|^2 + 2 (x - o) \cdot a
              \le \rho^2 + |a|^2 + 2 \max_{\mathrm{box}} (x - o) \cdot a,

    since in many columns no record lies near a corner.
    """
    if tree.counts[node] == 0:
        return -np.inf
    corner, product, magnitude = 0.0, 0.0, 0.0
    for column in range(len(query)):
        low, high = tree.lows[node, column], tree.highs[node, column]
        difference = max(high - query[column], query[column] - low)
        corner += difference * difference
        leaning, origin = away[column], tree.origin[column]
        most = max((low - origin) * leaning, (high - origin) * leaning)
        product += most
        magnitude += abs(most)
    total = tree.radii[node] + squares
    return float(min(corner, total + 2.0 * product + MARGIN * (len(query) + 8) * (total + 2.0 * magnitude)))


def _search_small(tree: BoundingBoxTree, query: Floats, sign: float, keys: Floats, found: Ints) -> None:
    """As `search`, in the same order; all distances and bounds are taken at once, by numpy."""
    by_slot = sign * _sum_squares(tree.coordinates - query[:, None], axis=1)
    descend(tree, by_slot, _bound_all(tree, query, sign), keys, found)


def descend(tree: Any, by_slot: Floats, bounds: Floats, keys: Floats, found: Ints) -> None:
    """Fill the heap from the keys [leaf, slot] of the records and the bounds of the nodes, as kernels do."""
    n_inner = len(tree.records) - 1
    of_node, counts, firsts = bounds.tolist(), tree.counts.tolist(), tree.firsts.tolist()
    keys[:], found[:] = np.inf, len(tree.homes)
    nodes = [(0, -np.inf)]
    while nodes:
        node, bound = nodes.pop()
        if bound > keys[0] or (bound == keys[0] and firsts[node] > found[0]):
            continue
        if node >= n_inner:
            leaf = node - n_inner
            of_leaf = by_slot[leaf, : counts[node]]
            for slot in np.flatnonzero(of_leaf <= keys[0]).tolist():
                key, record = of_leaf[slot], tree.records[leaf, slot]
                if key < keys[0] or (key == keys[0] and record < found[0]):
                    replace_worst(keys, found, key, record)
            continue
        left, right = 2 * node + 1, 2 * node + 2
        of_left, of_right = of_node[left], of_node[right]
        if of_left < of_right or (of_left == of_right and firsts[left] < firsts[right]):
            left, right, of_left, of_right = right, left, of_right, of_left
        nodes += [(left, of_left), (right, of_right)]


def _bound_all(tree: BoundingBoxTree, query: Floats, sign: float) -> Floats:
    """The bounds of all nodes, as `bound_near` and `_bound_far` have them."""
    bounds = np.full(len(tree.counts), np.inf)
    there = tree.counts > 0
    lows, highs = tree.lows[there], tree.highs[there]
    if sign > 0:
        bounds[there] = _sum_squares(np.maximum(np.maximum(lows - query, query - highs), 0.0), axis=1)
        return bounds
    away = tree.origin - query
    most = np.maximum((lows - tree.origin) * away, (highs - tree.origin) * away)
    corner = _sum_squares(np.maximum(highs - query, query - lows), axis=1)
    total = tree.radii[there] + _sum_squares(away, axis=0)
    product, magnitude = most.cumsum(axis=1)[:, -1], np.abs(most).cumsum(axis=1)[:, -1]
    margin = MARGIN * (len(query) + 8) * (total + 2.0 * magnitude)
    bounds[there] = -np.minimum(corner, total + 2.0 * product + margin)
    return bounds


def _sum_squares(differences: Floats, axis: int) -> Floats:
    """Sum squares in the order of the columns, as the kernels do; numpy's own sum has another."""
    return np.asarray((differences * differences).cumsum(axis=axis).take(-1, axis=axis))


@njit(_search_small, cache=True, nogil=True)
def search(tree: BoundingBoxTree, query: Floats, sign: float, keys: Floats, found: Ints) -> None:
    """Fill the heap (``keys``, ``found``) with the records of least key, the lowest of equals.

    A record's key is ``sign`` times its squared distance to ``query``: +1 finds the nearest, −1 the
    farthest. The worst of those kept is at the top of the heap; what is not filled is infinite.
    """
    n_inner = len(tree.records) - 1
    distances, away, squares = np.empty(LEAF), np.empty(len(query)), 0.0
    for column in range(len(query)):
        away[column] = tree.origin[column] - query[column]
        squares += away[column] * away[column]
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
            most = keys[0] if sign > 0 else np.inf
            for slot in range(scan(tree, node - n_inner, query, most, distances)):
                key, record = sign * distances[slot], tree.records[node - n_inner, slot]
                if key < keys[0] or (key == keys[0] and record < found[0]):
                    replace_worst(keys, found, key, record)
            continue
        left, right = 2 * node + 1, 2 * node + 2
        if sign > 0:
            of_left, of_right = bound_near(tree, left, query), bound_near(tree, right, query)
        else:
            of_left = -_bound_far(tree, left, query, away, squares)
            of_right = -_bound_far(tree, right, query, away, squares)
        if of_left < of_right or (of_left == of_right and tree.firsts[left] < tree.firsts[right]):
            left, right, of_left, of_right = right, left, of_right, of_left
        nodes[height], bounds[height] = left, of_left
        nodes[height + 1], bounds[height + 1] = right, of_right  # on top: the more promising goes first
        height += 2


@njit(cache=True, nogil=True, forceinline=True)
def replace_worst(keys: Floats, found: Ints, key: float, record: int) -> None:
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
