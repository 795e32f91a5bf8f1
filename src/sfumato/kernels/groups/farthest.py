"""Groups around the farthest record: MDAV, CBFS and V-MDAV.

They ask two questions over and over: which record is farthest from here, and which few are nearest. A tree
answers both exactly, and the records are taken out of it once grouped.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from sfumato.kernels.arrays import Floats, Ints
from sfumato.kernels.compiling import by_python, njit
from sfumato.kernels.groups.centres import group_means
from sfumato.kernels.threads import CompileAllowance, Tick, next_size
from sfumato.kernels.trees import codes
from sfumato.kernels.trees.boxes import (
    LEAF,
    BoundingBoxTree,
    centre_and_scale,
    lift,
    mean,
    plant,
    search,
    settle,
    take_out,
)

_ALLOWANCE = CompileAllowance(600_000)  # records searched, by numpy


def mdav(points: Floats, k: int, *, tick: Tick | None = None) -> Ints:
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
    refuse_unfit(points, k)
    if k == 1:
        return np.arange(len(points))
    groups = np.full(len(points), -1, dtype=np.int64)
    places = centre_and_scale(points)
    with _by_numpy_if_few(points, 2 * k):
        coded_records = codes.encode(places)
        if coded_records is None:

            def form(tree: BoundingBoxTree, n_rounds: int, floor: int) -> None:
                _form_pairs(tree, k, groups, n_rounds, floor)

            rest = _use_up(places, groups, least=2 * k, form=form, tick=tick)
        else:

            def form_coded(tree: codes.CodedTree, n_rounds: int, floor: int) -> None:
                _form_coded_pairs(coded_records, tree, k, groups, n_rounds, floor)

            rest = _use_up(coded_records, groups, least=2 * k, form=form_coded, tick=tick, plant=codes.plant)
    groups[rest] = groups.max(initial=-1) + 1
    return groups


def cbfs(points: Floats, k: int, *, tick: Tick | None = None) -> Ints:
    r"""Group records by centroid-based fixed size (CBFS), in groups of k to 2k − 1.

    While at least :math:`k` records remain, the one farthest from their centroid forms a group with the
    :math:`k - 1` nearest to it. Each of the rest, fewer than :math:`k`, joins the group whose centroid, as it
    was formed, is nearest. So one round forms one group where MDAV forms two. Equal distances go to the
    lowest record, or the lowest group.

    Parameters
    ----------
    points, k, tick
        As for `mdav`.

    Returns
    -------
    int64[n]
        The group of each record, in the order of forming.

    Notes
    -----
    **Cost:** as of `mdav`.

    References
    ----------
    .. [laszlo2005] M. Laszlo, S. Mukherjee (2005). Minimum spanning tree partitioning algorithm for
       microaggregation. IEEE Transactions on Knowledge and Data Engineering 17, 902–911.
    """
    refuse_unfit(points, k)
    if k == 1:
        return np.arange(len(points))
    groups = np.full(len(points), -1, dtype=np.int64)

    def form(tree: BoundingBoxTree, n_rounds: int, floor: int) -> None:
        _form_one_by_one(tree, k, groups, n_rounds, floor)

    places = centre_and_scale(points)
    with _by_numpy_if_few(points, k):
        rest = _use_up(places, groups, least=k, form=form, tick=tick)
    _place_rest(places, groups, rest, k)  # all of them fit even into one group of k
    return groups


def vmdav(points: Floats, k: int, gain: float, *, tick: Tick | None = None) -> Ints:
    r"""Group records by MDAV with groups of variable size (V-MDAV), of k to 2k − 1.

    The record that is farthest from the centroid of all, of those that remain, forms a group with the
    :math:`k - 1` nearest to it. Then, up to :math:`2k - 1` records, the remaining record nearest to a
    member joins while

    .. math:: d_{in} < \gamma \, d_{out},

    where :math:`d_{in}` is its distance to the nearest member and :math:`d_{out}` to the nearest other record
    that remains (infinite if there is none). Fewer than :math:`k` at the end each join the group with the
    nearest centroid, as it was formed, that has room. Equal distances go to the lowest record, or group.

    Parameters
    ----------
    points, k, tick
        As for `mdav`.
    gain : float
        :math:`\gamma`, 0 or more: 0 forms groups of k; about 0.2 is for scattered data and 1.1 for clustered.

    Returns
    -------
    int64[n]
        The group of each record, in the order of forming.

    Notes
    -----
    There is always room for the last. When a group is begun and leaves fewer than :math:`k` records, it alone
    has room for them, and each that joins takes one place and one record. When it leaves :math:`k` or more,
    a record may join only if :math:`k` still remain, or as few as the groups have room for.
    **Cost:** as of `mdav`, with n more searches for the nearest.

    References
    ----------
    .. [solanas2006] A. Solanas, A. Martínez-Ballesté (2006). V-MDAV: a multivariate microaggregation with
       variable group size. 17th COMPSTAT Symposium of the IASC, Rome, 917–925.
    """
    refuse_unfit(points, k)
    if not gain >= 0:
        raise ValueError(f"`gain` must be 0 or more, got: {gain}")
    if k == 1:
        return np.arange(len(points))
    groups = np.full(len(points), -1, dtype=np.int64)
    places = centre_and_scale(points)
    tally = np.zeros(2, dtype=np.int64)  # groups so far, and the room in them
    centroid = np.full(places.shape[1], np.nan)

    def form(tree: BoundingBoxTree, n_rounds: int, floor: int) -> None:
        if np.isnan(centroid[0]):
            centroid[:] = tree.sums[0] / tree.counts[0]
        _form_variable(tree, k, gain, places, centroid, groups, tally, n_rounds, floor)

    with _by_numpy_if_few(points, k):
        rest = _use_up(places, groups, least=k, form=form, tick=tick)
    _place_rest(places, groups, rest, k)
    return groups


def _by_numpy_if_few(points: Floats, least: int) -> AbstractContextManager[None]:
    """Have numpy search, where groups of so many are formed among few records: compiling takes longer."""
    return by_python(_ALLOWANCE.takes(len(points) ** 2 // least))


def refuse_unfit(points: Floats, k: int) -> None:
    """Refuse what no grouping can take."""
    if k < 1:
        raise ValueError(f"`k` must be at least 1, got: {k}")
    if not np.isfinite(points).all():
        raise ValueError("`points` must be finite")


def _use_up(
    points: Any,
    groups: Ints,
    *,
    least: int,
    form: Callable[[Any, int, int], None],
    tick: Tick | None,
    plant: Callable[[Any, Ints], Any] = plant,
) -> Ints:
    """Have groups formed while at least ``least`` records remain; return those that then do.

    ``form(tree, n_rounds, floor)`` goes that many rounds, or until fewer than ``floor`` records remain.
    """
    n = len(groups)
    n_rounds = 8
    remaining = np.arange(n)
    while len(remaining) >= least:
        # A tree grows loose as it empties, so it is built anew each time half of it has gone.
        tree = plant(points, remaining)
        floor = max(least, len(remaining) // 2)
        while tree.counts[0] >= floor:
            began = time.perf_counter()
            form(tree, n_rounds, floor)
            n_rounds = next_size(n_rounds, began)
            if tick is not None:
                tick(n - int(tree.counts[0]), n)
        remaining = np.flatnonzero(groups < 0)
    return remaining


def _place_rest(points: Floats, groups: Ints, rest: Ints, k: int) -> None:
    """Have each of the ``rest`` join the nearest group with room; if there is no group, they are one."""
    if len(rest) == len(groups):
        groups[:] = 0
        return
    placed = groups >= 0
    sizes = np.bincount(groups[placed])
    _join_nearest(points, groups, rest, group_means(points[placed], groups[placed]), sizes, k)


@njit(cache=True, nogil=True)
def _join_nearest(points: Floats, groups: Ints, rest: Ints, centres: Floats, sizes: Ints, k: int) -> None:  # noqa: PLR0917
    """Give each of the ``rest`` the group of nearest centre that has fewer than 2k − 1."""
    for record in rest:
        nearest, least = -1, np.inf
        for group in range(len(centres)):
            distance = 0.0
            for column in range(points.shape[1]):
                difference = points[record, column] - centres[group, column]
                distance += difference * difference
            if distance < least and sizes[group] < 2 * k - 1:
                nearest, least = group, distance
        groups[record] = nearest
        sizes[nearest] += 1


@njit(cache=True, nogil=True)
def _form_group(tree: BoundingBoxTree, opposite: Floats, group: int, groups: Ints, members: Ints) -> Floats:
    """Group the record farthest from ``opposite`` with its nearest, as many as ``members`` holds.

    Returns where that record is.
    """
    keys = np.empty(len(members))
    search(tree, opposite, -1.0, keys[:1], members[:1])
    leaf, slot = divmod(tree.homes[members[0]], LEAF)
    centre = tree.coordinates[leaf, :, slot].copy()
    lift(tree, members[0])  # before its nearest are sought: it is in its group, whoever else lies there
    search(tree, centre, 1.0, keys[1:], members[1:])
    for member in members[1:]:
        lift(tree, member)
    settle(tree, members)
    for member in members:
        groups[member] = group
    return centre


@njit(cache=True, nogil=True)
def _form_pairs(tree: BoundingBoxTree, k: int, groups: Ints, n_rounds: int, floor: int) -> None:
    """Go ``n_rounds`` rounds of MDAV, or until fewer than ``floor`` records remain."""
    members = np.empty(k, dtype=np.int64)
    for _ in range(n_rounds):
        n_remaining = tree.counts[0]
        if n_remaining < floor:
            break
        group = (len(groups) - n_remaining) // k  # each group so far has exactly k records
        centre = _form_group(tree, mean(tree.sums[0], n_remaining), group, groups, members)
        if n_remaining >= 3 * k:
            _form_group(tree, centre, group + 1, groups, members)


@njit(cache=True, nogil=True)
def _form_coded_pairs(  # noqa: PLR0917
    records: codes.CodedRecords, tree: codes.CodedTree, k: int, groups: Ints, n_rounds: int, floor: int
) -> None:
    """Do as `_form_pairs` in a tree of codes."""
    members, keys = np.empty(k, dtype=np.int64), np.empty(k)
    for _ in range(n_rounds):
        n_remaining = tree.counts[0]
        if n_remaining < floor:
            break
        group = (len(groups) - n_remaining) // k
        opposite = codes.query_of_mean(records, tree)
        for turn in range(2 if n_remaining >= 3 * k else 1):
            codes.search(tree, opposite, records.sizes, -1.0, keys[:1], members[:1])
            opposite = codes.query_of_record(records, members[0])
            codes.lift(tree, members[0])
            codes.search(tree, opposite, records.sizes, 1.0, keys[1:], members[1:])
            for member in members[1:]:
                codes.lift(tree, member)
            codes.settle(tree, members)
            for member in members:
                groups[member] = group + turn


@njit(cache=True, nogil=True)
def _form_one_by_one(tree: BoundingBoxTree, k: int, groups: Ints, n_rounds: int, floor: int) -> None:
    """Go ``n_rounds`` rounds of CBFS, or until fewer than ``floor`` records remain."""
    members = np.empty(k, dtype=np.int64)
    for _ in range(n_rounds):
        n_remaining = tree.counts[0]
        if n_remaining < floor:
            break
        _form_group(tree, mean(tree.sums[0], n_remaining), (len(groups) - n_remaining) // k, groups, members)


@njit(cache=True, nogil=True)
def _form_variable(  # noqa: PLR0917
    tree: BoundingBoxTree,
    k: int,
    gain: float,
    points: Floats,
    centroid: Floats,
    groups: Ints,
    tally: Ints,
    n_rounds: int,
    floor: int,
) -> None:
    """Go ``n_rounds`` rounds of V-MDAV, or until fewer than ``floor`` records remain."""
    members = np.empty(2 * k - 1, dtype=np.int64)
    for _ in range(n_rounds):
        if tree.counts[0] < floor:
            break
        group, room = tally
        _form_group(tree, centroid, group, groups, members[:k])
        room += k - 1
        n_joined = _extend(tree, k, gain, points, members, room)
        for member in members[k : k + n_joined]:
            groups[member] = group
        tally[0], tally[1] = group + 1, room - n_joined


@njit(cache=True, nogil=True)
def _extend(tree: BoundingBoxTree, k: int, gain: float, points: Floats, members: Ints, room: int) -> int:  # noqa: PLR0917
    """Have near records join the first k ``members``; return how many did."""
    size = k
    keys, nearest = np.empty(len(members)), np.full(len(members), -1, dtype=np.int64)  # of each member
    two_keys, two = np.empty(2), np.empty(2, dtype=np.int64)
    joined = -1
    while size < len(members) and tree.counts[0] > 0 and (tree.counts[0] > k or tree.counts[0] <= room):
        best = 0
        for i in range(size):
            if nearest[i] == joined:  # it has gone from the tree; at first, none has been sought
                search(tree, points[members[i]], 1.0, keys[i : i + 1], nearest[i : i + 1])
            if keys[i] < keys[best] or (keys[i] == keys[best] and nearest[i] < nearest[best]):
                best = i
        # The two nearest to its place: itself and another, or two others at no distance.
        search(tree, points[nearest[best]], 1.0, two_keys, two)
        if not keys[best] < gain * gain * two_keys[0]:
            break
        joined = nearest[best]
        take_out(tree, joined)
        members[size] = joined
        nearest[size] = joined  # so that its own is sought in the next turn
        size += 1
        room -= 1
    return size - k
