"""Neighbours: how far each point is from the nearest of some others, or of its own kind."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from scipy.spatial import cKDTree

from sfumato.kernels.arrays import Codes, Floats, Ints
from sfumato.kernels.compiling import njit
from sfumato.kernels.threads import Tick, share_out

Work: TypeAlias = Callable[[Ints], None]

BLOCK = 256  # others at a time: what a pass over them needs stays in the nearest cache


def nearest_distance(
    points: Floats, others: Floats, *, norm: Literal["euclidean", "maximum"], tick: Tick | None = None
) -> Floats:
    r"""Distance from each point to the nearest of ``others``.

    With :math:`S` the columns that both records have, out of :math:`d`:

    .. math::

        \text{euclidean: } \sqrt{\frac{d}{|S|} \sum_{c \in S} (x_c - y_c)^2}, \qquad
        \text{maximum: } \max_{c \in S} |x_c - y_c|.

    Two records that share no column cannot be linked: their distance is infinite.

    Parameters
    ----------
    points : float64[n, d]
        NaN is missing.
    others : float64[m, d]
        Likewise.
    norm : {"euclidean", "maximum"}
    tick : callable, optional
        Called as ``tick(done, total)`` a few times each second; what it raises ends the run.

    Returns
    -------
    float64[n]
        Infinite where no link is possible.

    Notes
    -----
    Exact. Pairs of complete records go by a k-d tree, or in one column by sorting. **Cost:** :math:`d` steps
    for each pair of which one is incomplete.
    """
    if norm not in {"euclidean", "maximum"}:
        raise ValueError(f"`norm` must be `euclidean` or `maximum`, got: `{norm}`")
    if points.shape[1] != others.shape[1]:
        raise ValueError(
            f"points and others must have as many columns, got: {points.shape[1]}, {others.shape[1]}"
        )
    if np.isinf(points).any() or np.isinf(others).any():
        raise ValueError("points and others must be finite or missing")
    if points.shape[1] == 1:
        return _nearest_on_line(points[:, 0], others[:, 0])
    points, others = np.ascontiguousarray(points), np.ascontiguousarray(others)  # one layout, one compilation
    # Equal rows are asked once; among the others they would only make the tree's leaves deep.
    asked, back = _distinct(points)
    distances = _nearest_of_distinct(asked, _distinct(others)[0], norm=norm, tick=tick)
    return distances[back]


class NeighbourDistances(NamedTuple):
    """How near the next ones are to each point, and whether theirs are as near to them."""

    radii: (
        Floats  # [n] distance to the nearest that has so many others within it; infinite if there are fewer
    )
    sparsity: Floats  # [n] that, as a multiple of the mean radius of these others; NaN if there are fewer


def crowd(points: Floats, groups: Ints, count: int, *, tick: Tick | None = None) -> NeighbourDistances:
    """Find the ``count`` nearest others of each point, by Euclidean distance.

    Parameters
    ----------
    points : float64[n, d]
        Finite.
    groups : int64[n]
        Points of one group (of a person) are no others to each other; at one place a group is one other.
    count : int
        From 1.
    tick : callable, optional
        Called as ``tick(done, total)`` a few times each second; what it raises ends the run.

    Notes
    -----
    Exact. Identical points are one place, asked once for each group. Where none of the others' radii is above
    0 the sparsity of a point that lies apart is infinite, and of one that does not 0. **Cost:** a k-d tree's
    query of ``count`` + 1 neighbours, and little beside it; memory ``count`` whole numbers for each point.
    """
    places, back = _distinct(np.ascontiguousarray(points))
    numbers = np.unique(groups, return_inverse=True)[1]
    n_groups = int(numbers.max(initial=-1)) + 1
    members, pair_of = np.unique(back * max(n_groups, 1) + numbers, return_inverse=True)
    homes = members // max(n_groups, 1)
    held = np.bincount(homes, minlength=len(places))
    alone = n_groups == len(points)  # each group is one point: only the own place has some of its own
    radii, nearest = np.full(len(members), np.inf), np.full((len(members), count), -1, dtype=np.int32)
    tree = cKDTree(places, balanced_tree=False, compact_nodes=True) if len(places) else None
    asked, width = np.arange(len(members)), min(count + 1, len(places))

    def work(part: Ints) -> None:
        assert tree is not None
        far, near = (each.reshape(len(part), width) for each in tree.query(places[homes[part]], k=width))
        others = held[near]
        if alone:
            others = others - (near == homes[part, None])
        else:
            codes = near * n_groups + (members[part] % n_groups)[:, None]
            at = np.minimum(np.searchsorted(members, codes), len(members) - 1)
            others = others - (members[at] == codes)
        total = np.cumsum(others, axis=1)
        last = np.argmax(total >= count, axis=1)
        enough = total[:, -1] >= count
        radii[part] = np.where(enough, far[np.arange(len(part)), last], np.inf)
        counted = (others > 0) & (np.arange(width) <= last[:, None]) & enough[:, None]
        slots = np.cumsum(counted, axis=1) - 1
        row, column = np.nonzero(counted)
        nearest[part[row], slots[row, column]] = near[row, column]

    while len(asked):
        share_out(asked, work, tick)
        if width >= len(places):
            break
        asked = asked[np.isinf(radii[asked])]  # where many of its own are near
        width = min(2 * width, len(places))
    at_place = np.full(len(places), np.inf)
    np.minimum.at(at_place, homes, radii)
    return NeighbourDistances(radii[pair_of], _sparsity(radii, nearest, at_place)[pair_of])


def _sparsity(radii: Floats, nearest: Codes, at_place: Floats) -> Floats:
    """Divide each radius by the mean of those of its others."""
    totals, counts = np.zeros(len(radii)), np.zeros(len(radii))
    for column in nearest.T:
        there = column >= 0
        totals[there] += at_place[column[there]]
        counts[there] += 1
    means = totals / np.maximum(counts, 1)
    ratios = np.divide(radii, means, out=np.where(radii > 0, np.inf, 0.0), where=means > 0)
    return np.where(counts > 0, ratios, np.nan)


def _nearest_on_line(points: Floats, others: Floats) -> Floats:
    """Look to the left and to the right of each point's place among the sorted others."""
    # With an end at either side each point has two neighbours.
    others = np.concatenate(([-np.inf], np.sort(others[~np.isnan(others)]), [np.inf]))
    present = ~np.isnan(points)
    distances = np.full(len(points), np.inf)
    place = np.searchsorted(others[1:-1], points[present]) + 1
    with np.errstate(over="ignore"):
        distances[present] = np.minimum(points[present] - others[place - 1], others[place] - points[present])
    return distances


def _distinct(rows: Floats) -> tuple[Floats, Ints]:
    """Return the distinct rows and, for each row, which of them it is; missing equals missing."""
    if rows.size == 0:
        return rows, np.arange(len(rows))
    order = np.lexsort(rows.T)
    ordered = rows[order]
    before, after = ordered[:-1], ordered[1:]
    opens = np.ones(len(rows), dtype=np.bool_)
    opens[1:] = ((before != after) & ~(np.isnan(before) & np.isnan(after))).any(axis=1)
    back = np.empty(len(rows), dtype=np.int64)
    back[order] = np.cumsum(opens) - 1
    return ordered[opens], back


def _nearest_of_distinct(points: Floats, others: Floats, *, norm: str, tick: Tick | None) -> Floats:
    """Ask a tree about pairs of complete records, then go through the pairs in which one is incomplete."""
    has_hole, other_has_hole = np.isnan(points).any(axis=1), np.isnan(others).any(axis=1)
    broken, whole = np.flatnonzero(has_hole), np.flatnonzero(~has_hole)
    broken_others, whole_others = others[other_has_hole], others[~other_has_hole]
    nearest = np.full(len(points), np.inf)
    works = [
        (which, prepare(points, among, nearest, norm))
        for which, among, prepare in (
            (whole, whole_others, _from_tree),
            (whole, broken_others, _from_pairs),
            (broken, others, _from_pairs),
        )
        if len(which) and len(among) and points.shape[1]
    ]
    done, total = 0, sum(len(which) for which, _ in works)
    for which, work in works:
        tell = None if tick is None else functools.partial(_tell, tick, done, total)
        share_out(which, work, tell)
        done += len(which)
    return nearest


def _tell(tick: Tick, before: int, total: int, done: int, _: int) -> None:
    tick(before + done, total)


def _from_tree(points: Floats, others: Floats, nearest: Floats, norm: str) -> Work:
    """Have the distances of complete points to the nearest of complete others set."""
    # Splitting in the middle instead of at the median: far faster to build, as fast to ask.
    tree = cKDTree(others, balanced_tree=False, compact_nodes=True)
    power = np.inf if norm == "maximum" else 2.0

    def work(part: Ints) -> None:
        nearest[part] = tree.query(points[part], k=1, p=power)[0]

    return work


def _from_pairs(points: Floats, others: Floats, nearest: Floats, norm: str) -> Work:
    """Have the distances of points lowered to those of the nearest others, pair by pair."""
    columns = np.ascontiguousarray(others.T)  # so that the distances to many others are summed side by side

    def work(part: Ints) -> None:
        nearest[part] = _nearer_pairs(points[part], columns, nearest[part], norm == "maximum")

    return work


@njit(cache=True, nogil=True)
def _nearer_pairs(points: Floats, columns: Floats, nearest: Floats, largest: bool) -> Floats:  # noqa: FBT001
    """Lower ``nearest`` to the distance of each point's nearest other.

    It is Euclidean and scaled to all columns, or the ``largest`` difference in one.
    """
    n_columns, n_others = columns.shape
    lowered = nearest.copy()
    totals, n_shared = np.empty(BLOCK), np.empty(BLOCK)
    for i in range(len(points)):
        present = np.flatnonzero(~np.isnan(points[i]))
        best = so_far = lowered[i] if largest else lowered[i] * lowered[i]
        least_scale = 1.0 if largest else n_columns / max(len(present), 1)
        for start in range(0, n_others, BLOCK):
            size = min(BLOCK, n_others - start)
            totals[:size] = 0.0
            n_shared[:size] = 0.0
            for c in present:
                here, column = points[i, c], columns[c, start : start + size]
                for j in range(size):
                    difference = column[j] - here
                    is_shared = difference == difference  # noqa: PLR0124  — false for NaN, and vectorised
                    part = (abs(difference) if largest else difference * difference) if is_shared else 0.0
                    totals[j] = max(totals[j], part) if largest else totals[j] + part
                    n_shared[j] += 1.0 if is_shared else 0.0
            for j in range(size):
                if totals[j] * least_scale < best and n_shared[j] > 0:  # few pass: spares most divisions
                    best = min(best, totals[j] * (1.0 if largest else n_columns / n_shared[j]))
        if best < so_far:
            lowered[i] = best if largest else np.sqrt(best)
    return lowered
