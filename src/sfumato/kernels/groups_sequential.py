"""Sequential clustering: records move to better groups, one by one, until none can."""

from __future__ import annotations

import numpy as np
from numba import njit

from sfumato.kernels.boxes import Boxes, Floats, Ints, centred, plant, shift
from sfumato.kernels.groups import Tick, group_means, mdav, refuse_unfit
from sfumato.kernels.relocation import (
    LEAST_GAIN,
    best_group,
    distance_to_mean,
    improve,
    sums_of,
    written_down,
)

FREE_SWEEPS = 20
SWEEPS = 200
CHUNK = 4096  # records visited between two calls of `tick`


def sequential(points: Floats, k: int, rng: np.random.Generator, *, tick: Tick | None = None) -> Ints:
    r"""Group records by sequential clustering, in groups of k to 2k − 1.

    The loss of a partition is the squared error within its groups. A record at distance :math:`d_A` from the
    centroid of its group A, and :math:`d_B` from that of B, changes it by moving from A to B by

    .. math:: \frac{n_B}{n_B + 1} d_B^2 - \frac{n_A}{n_A - 1} d_A^2.

    1. The start is random: :math:`\lfloor n / k \rfloor` records are drawn, and each of the others, in a
       random order, joins the group where the loss rises least.
    2. Records are visited in that order, again and again, and each moves to where the loss falls most, until
       none moves.
    3. Groups of fewer than k are unified, with near ones of their kind (by `groups.mdav` of their centroids),
       and those of 2k or more are split (by `groups.mdav`).
    4. Records are visited as before, but now a group keeps k to 2k − 1 records. Each moves to where the loss
       falls most; or changes places with a record of one of the 8 nearest groups; or makes a new group with
       records that those can spare; or its group dissolves, each member moving to another: whichever of
       these, in this order, first lowers the loss.

    The end is a partition that no single move within the bounds on size can better, unless 200 sweeps have
    not sufficed.

    Parameters
    ----------
    points, k
        As for `groups.mdav`.
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
    places = centred(points)
    order = rng.permutation(n)
    progress = _Progress(n, tick)
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


class _Progress:
    """Tells how many records have come to rest, in numbers that never fall: each of two stages is a half."""

    def __init__(self, n: int, tick: Tick | None) -> None:
        self.n, self.tick, self.stage, self.at_rest = n, tick, 0, 0

    def stir(self) -> None:
        if self.tick is not None:
            self.tick(self.at_rest, self.n)

    def settle(self, n_changes: int) -> None:
        self.at_rest = max(self.at_rest, ((self.stage + 1) * self.n - n_changes) // 2)
        self.stir()


def _free_sweep(points: Floats, groups: Ints, order: Ints, progress: _Progress) -> int:
    """Let each record move to where the loss falls most; return how many did.

    A record in no group (−1), as at the start, joins where the loss rises least.
    """
    placed = groups >= 0
    sizes = np.bincount(groups[placed])
    sums = sums_of(points[placed], groups[placed], len(sizes))
    tree = plant(sums / sizes[:, None], np.arange(len(sizes)))
    n_changes = 0
    for start in range(0, len(order), CHUNK):
        n_changes += _move_freely(tree, points, groups, sizes, sums, order[start : start + CHUNK])
        progress.stir()
    progress.settle(n_changes)
    return n_changes


@njit(cache=True, nogil=True)
def _move_freely(  # noqa: PLR0917
    tree: Boxes, points: Floats, groups: Ints, sizes: Ints, sums: Floats, order: Ints
) -> int:
    """Visit records in their order and let them move, whatever the sizes; return how many did."""
    n_changes = 0
    for record in order:
        here, own, below = points[record], groups[record], np.inf
        if own >= 0:
            size = sizes[own]
            if size == 1:
                continue  # alone it loses nothing
            below = size / (size - 1) * distance_to_mean(here, sums[own], size) * (1.0 - LEAST_GAIN)
        best = best_group(tree, sizes, here, own, len(points), 0.5, below)
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


def _bounded_sweep(points: Floats, groups: Ints, order: Ints, k: int, progress: _Progress) -> int:
    """Let each record lower the loss in one of four ways, within bounds on size; return how often one did."""
    partition = written_down(points, groups, k)  # afresh: no error builds up in the sums
    sizes = partition.sizes
    tree = plant(partition.sums / np.maximum(sizes, 1)[:, None], np.flatnonzero(sizes))
    n_changes = 0
    for start in range(0, len(order), CHUNK):
        n_changes += improve(tree, points, partition, order[start : start + CHUNK], k)
        progress.stir()
    progress.settle(n_changes)
    groups[:] = np.unique(partition.groups, return_inverse=True)[1]
    return n_changes
