"""Sequential clustering: records move to better groups, one by one, until none can.

The loss is the squared error within groups. A record can move, change places with another, or make a new
group with others, and a group can dissolve; each is done only if it lowers the loss.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sfumato.kernels.arrays import Floats, Ints
from sfumato.kernels.compiling import njit
from sfumato.kernels.groups.centres import group_means
from sfumato.kernels.groups.farthest import mdav, refuse_unfit
from sfumato.kernels.threads import Tick
from sfumato.kernels.trees.boxes import (
    LEAF,
    BoundingBoxTree,
    bound_near,
    centre_and_scale,
    mean,
    plant,
    replace_worst,
    scan,
    search,
    shift,
    take_out,
)
from sfumato.kernels.trees.planting import MAX_DEPTH, push_children

FREE_SWEEPS = 20
SWEEPS = 200
CHUNK = 4096  # records visited between two calls of `tick`
NEIGHBOUR_GROUPS = 8  # groups with which a record may change places, or from which a new group may be made
LEAST_GAIN = 1e-9  # relative: less is rounding, and could go round in circles


def sequential(points: Floats, k: int, rng: np.random.Generator, *, tick: Tick | None = None) -> Ints:
    r"""Group records by sequential clustering, in groups of k to 2k − 1.

    The loss of a partition is the squared error within its groups. A record at distance :math:`d_A` from the
    centroid of its group A, and :math:`d_B` from that of B, changes it by moving from A to B by

    .. math:: \frac{n_B}{n_B + 1} d_B^2 - \frac{n_A}{n_A - 1} d_A^2.

    1. The start is random: :math:`\lfloor n / k \rfloor` records are drawn, and each of the others, in a
       random order, joins the group where the loss rises least.
    2. Records are visited in that order, again and again, and each moves to where the loss falls most, until
       none moves.
    3. Groups of fewer than k are unified, with near ones of their kind (by `mdav` of their centroids),
       and those of 2k or more are split (by `mdav`).
    4. Records are visited as before, but now a group keeps k to 2k − 1 records. Each moves to where the loss
       falls most; or changes places with a record of one of the 8 nearest groups; or makes a new group with
       records that those can spare; or its group dissolves, each member moving to another: whichever of
       these, in this order, first lowers the loss.

    The end is a partition that no single move within the bounds on size can better, unless 200 sweeps have
    not sufficed.

    Parameters
    ----------
    points, k
        As for `mdav`.
    rng : numpy.random.Generator
        The start and the order of visits are drawn from it.
    tick : callable, optional
        Called as ``tick(records_at_rest, n)`` a few times each second; what it raises ends the run.

    Returns
    -------
    int64[n]
        The group of each record.

    Notes
    -----
    The published algorithm begins with a wholly random partition, whose centroids all lie in the middle: that
    needs more sweeps and every centroid for each record. It lets groups outgrow 2k − 1, and has no step 4.
    **Cost:** a sweep is about :math:`O(n d \log n)` in few columns.

    References
    ----------
    .. [goldberger2010] J. Goldberger, T. Tassa (2010). Efficient anonymizations with enhanced utility.
       Transactions on Data Privacy 3, 149–175.
    """
    refuse_unfit(points, k)
    n = len(points)
    if k == 1:
        return np.arange(n)
    if n < 2 * k:
        return np.zeros(n, dtype=np.int64)
    places = centre_and_scale(points)
    order = rng.permutation(n)
    progress = _RelocationProgress(n, tick)
    groups = np.full(n, -1, dtype=np.int64)
    groups[order[: n // k]] = np.arange(n // k)
    for _ in range(FREE_SWEEPS):
        if not _free_sweep(places, groups, order, progress):
            break
    groups = _bound_sizes(places, groups, k)
    progress.stage = 1
    for _ in range(SWEEPS):
        if not _bounded_sweep(places, groups, order, k, progress):
            break
    return np.unique(groups, return_inverse=True)[1].astype(np.int64)


class _RelocationProgress:
    """Tells how many records have come to rest, in numbers that never fall: each of two stages is a half."""

    def __init__(self, n: int, tick: Tick | None) -> None:
        self.n, self.tick, self.stage, self.at_rest = n, tick, 0, 0

    def stir(self) -> None:
        if self.tick is not None:
            self.tick(self.at_rest, self.n)

    def settle(self, n_changes: int) -> None:
        self.at_rest = max(self.at_rest, ((self.stage + 1) * self.n - n_changes) // 2)
        self.stir()


def _free_sweep(points: Floats, groups: Ints, order: Ints, progress: _RelocationProgress) -> int:
    """Let each record move to where the loss falls most; return how many did.

    A record in no group (−1), as at the start, joins where the loss rises least.
    """
    placed = groups >= 0
    sizes = np.bincount(groups[placed])
    sums = _sums_of(points[placed], groups[placed], len(sizes))
    tree = plant(sums / sizes[:, None], np.arange(len(sizes)))
    n_changes = 0
    for start in range(0, len(order), CHUNK):
        n_changes += _relocate_unconstrained(tree, points, groups, sizes, sums, order[start : start + CHUNK])
        progress.stir()
    progress.settle(n_changes)
    return n_changes


@njit(cache=True, nogil=True)
def _relocate_unconstrained(  # noqa: PLR0917
    tree: BoundingBoxTree, points: Floats, groups: Ints, sizes: Ints, sums: Floats, order: Ints
) -> int:
    """Visit records in their order and let them move, whatever the sizes; return how many did."""
    n_changes = 0
    for record in order:
        here, own, below = points[record], groups[record], np.inf
        if own >= 0:
            size = sizes[own]
            if size == 1:
                continue  # alone it loses nothing
            below = size / (size - 1) * _distance_to_mean(here, sums[own], size) * (1.0 - LEAST_GAIN)
        best = _best_group(tree, sizes, here, own, len(points), 0.5, below)
        if best < 0:
            continue
        groups[record] = best
        for group, sign in ((own, -1), (best, 1)):
            if group >= 0:
                sizes[group] += sign
                for column in range(len(here)):
                    sums[group, column] += sign * here[column]
                shift(tree, group, sums[group], sizes[group])
        n_changes += 1
    return n_changes


def _bound_sizes(points: Floats, groups: Ints, k: int) -> Ints:
    """Unify groups of fewer than k with each other while there are two, then split those of 2k or more."""
    while True:
        sizes = np.bincount(groups)
        small = np.flatnonzero(sizes < k)
        if not len(small):
            break
        centres = group_means(points, groups)
        into = np.arange(len(sizes))
        if len(small) > 1:
            into[small] = len(sizes) + mdav(centres[small], 2)
        else:
            distances = ((centres - centres[small]) ** 2).sum(axis=1)
            distances[small] = np.inf
            into[small] = np.argmin(distances)
        groups = np.unique(into[groups], return_inverse=True)[1]
    n_groups, ends = len(sizes), np.cumsum(sizes)
    order = np.argsort(groups, kind="stable")
    for group in np.flatnonzero(sizes >= 2 * k):
        records = order[ends[group] - sizes[group] : ends[group]]
        pieces = mdav(points[records], k)
        groups[records] = np.where(pieces == 0, group, n_groups + pieces - 1)
        n_groups += int(pieces.max())
    return groups


def _bounded_sweep(points: Floats, groups: Ints, order: Ints, k: int, progress: _RelocationProgress) -> int:
    """Let each record lower the loss in one of four ways, within bounds on size; return how often one did."""
    partition = _written_down(points, groups, k)  # afresh: no error builds up in the sums
    sizes = partition.sizes
    tree = plant(partition.sums / np.maximum(sizes, 1)[:, None], np.flatnonzero(sizes))
    n_changes = 0
    for start in range(0, len(order), CHUNK):
        n_changes += _improve(tree, points, partition, order[start : start + CHUNK], k)
        progress.stir()
    progress.settle(n_changes)
    groups[:] = np.unique(partition.groups, return_inverse=True)[1]
    return n_changes


# A partition, and four ways to better it ----------------------------------------------------------------


class Partition(NamedTuple):
    """Who is in which group; there is room for as many groups again as there can be."""

    groups: Ints  # [record]
    slots: Ints  # [record] its place among the members of its group
    members: Ints  # [group, slot]: 2k of them, since for a moment a swap needs one more
    sizes: Ints  # [group]
    sums: Floats  # [group, column]
    n_groups: Ints  # [1]: higher ones are not in use, and of lower ones those that dissolved


def _written_down(points: Floats, groups: Ints, k: int) -> Partition:
    """Write down a partition whose groups have k to 2k − 1 records."""
    most = 2 * (len(points) // k)
    sizes = np.bincount(groups, minlength=most)
    slots = np.empty(len(points), dtype=np.int64)
    members = np.full((most, 2 * k), -1, dtype=np.int64)
    order = np.argsort(groups, kind="stable")
    slots[order] = np.arange(len(points)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    members[groups, slots] = np.arange(len(points))
    n_groups = np.array([groups.max() + 1])
    return Partition(groups, slots, members, sizes, _sums_of(points, groups, most), n_groups)


@njit(cache=True, nogil=True)
def _sums_of(points: Floats, groups: Ints, n_groups: int) -> Floats:
    """Sum of each group."""
    sums = np.zeros((n_groups, points.shape[1]))
    for i in range(len(points)):
        for column in range(points.shape[1]):
            sums[groups[i], column] += points[i, column]
    return sums


@njit(cache=True, nogil=True)
def _distance_to_mean(here: Floats, total: Floats, size: int) -> float:
    """Squared distance to the mean of ``size`` records of that ``total``."""
    distance = 0.0
    for column in range(len(here)):
        difference = here[column] - total[column] / size
        distance += difference * difference
    return distance


@njit(cache=True, nogil=True)
def _best_group(  # noqa: PLR0917
    tree: BoundingBoxTree, sizes: Ints, here: Floats, own: int, most: int, share: float, below: float
) -> int:
    """Find the group of fewer than ``most`` to whose loss a record adds least, if less than ``below``.

    What a record adds is at least ``share`` of its squared distance. Returns −1 if there is no such group.
    """
    n_inner = len(tree.records) - 1
    distances = np.empty(LEAF)
    nodes, bounds = np.zeros(MAX_DEPTH, dtype=np.int64), np.zeros(MAX_DEPTH)
    best = -1
    height = 1
    while height > 0:
        height -= 1
        node = nodes[height]
        if share * bounds[height] >= below:
            continue
        if node >= n_inner:
            for slot in range(scan(tree, node - n_inner, here, np.inf, distances)):
                group = tree.records[node - n_inner, slot]
                size = sizes[group]
                added = size / (size + 1) * distances[slot]
                if added < below and group != own and size < most:
                    best, below = group, added
            continue
        of_left, of_right = bound_near(tree, 2 * node + 1, here), bound_near(tree, 2 * node + 2, here)
        height = push_children(nodes, bounds, height, node, of_left, of_right)
    return best


@njit(cache=True, nogil=True)
def _improve(tree: BoundingBoxTree, points: Floats, partition: Partition, order: Ints, k: int) -> int:
    """Visit records in their order; return how many lowered the loss."""
    n_changes = 0
    keys, near = np.empty(NEIGHBOUR_GROUPS), np.empty(NEIGHBOUR_GROUPS, dtype=np.int64)
    for record in order:
        own = partition.groups[record]
        if not _is_in(tree, own):
            continue  # until the next sweep
        size = partition.sizes[own]
        here = points[record]
        if size > k:
            leaving = size / (size - 1) * _distance_to_mean(here, partition.sums[own], size)
            below = leaving * (1.0 - LEAST_GAIN)
            best = _best_group(tree, partition.sizes, here, own, 2 * k - 1, k / (k + 1), below)
            if best >= 0:
                _move(tree, points, partition, record, best)
                n_changes += 1
                continue
        search(tree, here, 1.0, keys, near)
        partner = _best_swap(points, partition, record, near)
        if partner >= 0:
            _move(tree, points, partition, record, partition.groups[partner])
            _move(tree, points, partition, partner, own)
            n_changes += 1
        elif size > k and _make_group(tree, points, partition, record, near, k):
            n_changes += 1
        elif partition.slots[record] == 0:  # once for each group
            n_changes += _dissolve(tree, points, partition, own, k)
    return n_changes


@njit(cache=True, nogil=True)
def _move(tree: BoundingBoxTree, points: Floats, partition: Partition, record: int, group: int) -> None:
    """Move a record to another group, which has room."""
    own, slot = partition.groups[record], partition.slots[record]
    last = partition.sizes[own] - 1
    moved = partition.members[own, last]
    partition.members[own, slot] = moved
    partition.slots[moved] = slot
    partition.members[group, partition.sizes[group]] = record
    partition.slots[record] = partition.sizes[group]
    partition.groups[record] = group
    partition.sizes[own] -= 1
    partition.sizes[group] += 1
    for column in range(points.shape[1]):
        partition.sums[own, column] -= points[record, column]
        partition.sums[group, column] += points[record, column]
    for changed in (own, group):
        if partition.sizes[changed] > 0 and _is_in(tree, changed):
            shift(tree, changed, partition.sums[changed], partition.sizes[changed])


@njit(cache=True, nogil=True)
def _is_in(tree: BoundingBoxTree, group: int) -> bool:
    """Whether the tree has a group; one made or dissolved in this sweep it has not."""
    leaf, slot = divmod(tree.homes[group], LEAF)
    return bool(tree.records[leaf, slot] == group and slot < tree.counts[len(tree.records) - 1 + leaf])


@njit(cache=True, nogil=True)
def _best_swap(points: Floats, partition: Partition, record: int, near: Ints) -> int:
    r"""Find the record in the ``near`` groups by whose change of places with this one the loss falls most.

    For x in A and y in B, with centroids a and b, it changes by

    .. math:: |y - a|^2 - |x - a|^2 + |x - b|^2 - |y - b|^2 - |x - y|^2 (1 / n_A + 1 / n_B).
    """
    own, here = partition.groups[record], points[record]
    own_size = partition.sizes[own]
    centre = mean(partition.sums[own], own_size)
    from_own = _distance_to_mean(here, partition.sums[own], own_size)
    partner, least = -1, 0.0
    for group in near:
        if group == own or group >= len(partition.sizes):
            continue
        size = partition.sizes[group]
        other_centre = mean(partition.sums[group], size)
        before = from_own - _distance_to_mean(here, partition.sums[group], size)
        weight = 1.0 / own_size + 1.0 / size
        for slot in range(size):
            other = partition.members[group, slot]
            change, scale = -before, from_own
            for column in range(len(here)):
                value = points[other, column]
                to_own, to_other = value - centre[column], value - other_centre[column]
                apart = value - here[column]
                change += to_own * to_own - to_other * to_other - weight * apart * apart
                scale += to_other * to_other
            if change < least and change < -LEAST_GAIN * scale:
                partner, least = other, change
    return partner


@njit(cache=True, nogil=True)
def _make_group(  # noqa: PLR0917
    tree: BoundingBoxTree, points: Floats, partition: Partition, record: int, near: Ints, k: int
) -> int:
    """Make a group of a record and the k − 1 nearest that ``near`` groups can spare, if the loss falls.

    Returns how many groups were made, 0 or 1.
    """
    n_spare = 0
    for group in near:
        if group < len(partition.sizes):
            n_spare += partition.sizes[group] - k
    if n_spare < k or partition.n_groups[0] == len(partition.sizes):
        return 0
    chosen = _nearest_to_spare(points, partition, record, near, k)
    if chosen[0] != record or chosen[-1] < 0:
        return 0
    loss = _loss(points, chosen, points[record], 0)
    saved = 0.0
    for group in near:
        if group < len(partition.sizes):
            leaving = chosen[partition.groups[chosen] == group]
            size = partition.sizes[group]
            saved += _loss(points, leaving, mean(partition.sums[group], size), size)
    if not loss < saved * (1.0 - LEAST_GAIN):
        return 0
    made = partition.n_groups[0]
    partition.n_groups[0] += 1
    for member in chosen:
        _move(tree, points, partition, member, made)
    return 1


@njit(cache=True, nogil=True)
def _dissolve(tree: BoundingBoxTree, points: Floats, partition: Partition, own: int, k: int) -> int:
    """Let all members of a group move to others, if the loss falls; return how many groups dissolved."""
    members = partition.members[own, : partition.sizes[own]].copy()
    loss = _loss(points, members, mean(partition.sums[own], len(members)), 0) * (1.0 - LEAST_GAIN)
    # First a glance, as if each were the only one to move; if that is promising, in earnest.
    for in_earnest in (False, True):
        left = loss
        for i in range(len(members)):
            here = points[members[i]]
            best = _best_group(tree, partition.sizes, here, own, 2 * k - 1, k / (k + 1), left)
            if best < 0:
                if in_earnest:
                    for member in members[:i]:
                        _move(tree, points, partition, member, own)
                return 0
            size = partition.sizes[best]
            left -= size / (size + 1) * _distance_to_mean(here, partition.sums[best], size)
            if in_earnest:
                _move(tree, points, partition, members[i], best)
    take_out(tree, own)
    return 1


@njit(cache=True, nogil=True)
def _loss(points: Floats, records: Ints, place: Floats, size: int) -> float:
    r"""Squared error of some records; or, if there is a size, by how much that of a group of so many falls.

    With the sum S of differences from a place, and Q of their squares, their own loss is
    :math:`Q - |S|^2 / m`; and if the place is the centroid of a group of n that m of them leave, it loses
    :math:`Q + |S|^2 / (n - m)`.
    """
    loss = 0.0
    for column in range(points.shape[1]):
        total = 0.0
        for record in records:
            difference = points[record, column] - place[column]
            total += difference
            loss += difference * difference
        loss += total * total / (size - len(records))
    return loss


@njit(cache=True, nogil=True)
def _nearest_to_spare(points: Floats, partition: Partition, record: int, near: Ints, k: int) -> Ints:
    """Choose a record and the nearest to it, k in all, of which no group gives more than it has above k.

    The last is −1 if there are not as many.
    """
    most = len(near) * (2 * k - 1)
    # A heap with the nearest at the top, and of equals the lowest: so both are negative.
    keys, candidates = np.full(most, np.inf), np.empty(most, dtype=np.int64)
    n_candidates = 0
    for group in near:
        if group < len(partition.sizes) and partition.sizes[group] > k:
            for slot in range(partition.sizes[group]):
                member = partition.members[group, slot]
                key = 1.0 if member == record else -_distance_to_mean(points[member], points[record], 1)
                replace_worst(keys, candidates, key, -member)
                n_candidates += 1
    for _ in range(most - n_candidates):
        replace_worst(keys, candidates, -np.inf, 0)
    chosen = np.full(k, -1, dtype=np.int64)
    n_chosen = 0
    for _ in range(n_candidates):
        candidate = -candidates[0]
        replace_worst(keys, candidates, -np.inf, 0)
        group = partition.groups[candidate]
        n_given = 0
        for member in chosen[:n_chosen]:
            n_given += partition.groups[member] == group
        if n_given < partition.sizes[group] - k:
            chosen[n_chosen] = candidate
            n_chosen += 1
            if n_chosen == k:
                break
    return chosen
