"""Neighbours: how far each point is from the nearest of some others."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Literal, TypeAlias

import numpy as np
from scipy.spatial import cKDTree

from sfumato.kernels.arrays import Floats, Ints
from sfumato.kernels.compiling import njit
from sfumato.kernels.pace import Tick, share_out

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
    kernel = _maximum_pairs if norm == "maximum" else _euclidean_pairs
    columns = np.ascontiguousarray(others.T)  # so that the distances to many others are summed side by side

    def work(part: Ints) -> None:
        nearest[part] = kernel(points[part], columns, nearest[part])

    return work


@njit(cache=True, nogil=True)
def _euclidean_pairs(points: Floats, columns: Floats, nearest: Floats) -> Floats:
    """Lower ``nearest`` to the scaled Euclidean distance of each point's nearest other."""
    n_columns, n_others = columns.shape
    lowered = nearest.copy()
    totals, n_shared = np.empty(BLOCK), np.empty(BLOCK)
    for i in range(len(points)):
        present = np.flatnonzero(~np.isnan(points[i]))
        best = so_far = lowered[i] * lowered[i]
        least_scale = n_columns / max(len(present), 1)
        for start in range(0, n_others, BLOCK):
            size = min(BLOCK, n_others - start)
            totals[:size] = 0.0
            n_shared[:size] = 0.0
            for c in present:
                here, column = points[i, c], columns[c, start : start + size]
                for j in range(size):
                    difference = column[j] - here
                    is_shared = difference == difference  # noqa: PLR0124  — false for NaN, and vectorised
                    totals[j] += difference * difference if is_shared else 0.0
                    n_shared[j] += 1.0 if is_shared else 0.0
            for j in range(size):
                if totals[j] * least_scale < best and n_shared[j] > 0:  # few pass: spares most divisions
                    best = min(best, totals[j] * (n_columns / n_shared[j]))
        if best < so_far:
            lowered[i] = np.sqrt(best)
    return lowered


@njit(cache=True, nogil=True)
def _maximum_pairs(points: Floats, columns: Floats, nearest: Floats) -> Floats:
    """Lower ``nearest`` to the greatest difference in a column of each point's nearest other."""
    n_others = columns.shape[1]
    lowered = nearest.copy()
    greatest = np.empty(BLOCK)
    for i in range(len(points)):
        present = np.flatnonzero(~np.isnan(points[i]))
        best = lowered[i]
        for start in range(0, n_others, BLOCK):
            size = min(BLOCK, n_others - start)
            greatest[:size] = -1.0
            for c in present:
                here, column = points[i, c], columns[c, start : start + size]
                for j in range(size):
                    difference = abs(column[j] - here)
                    # Not max(): a comparison with NaN is false and so leaves it out.
                    greatest[j] = difference if difference > greatest[j] else greatest[j]  # noqa: FURB136
            for j in range(size):
                if 0.0 <= greatest[j] < best:
                    best = greatest[j]
        lowered[i] = best
    return lowered
