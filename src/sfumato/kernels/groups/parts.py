"""MDAV for many records: cut them into parts, and group each part by itself."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor, wait
from threading import Event

import numpy as np

from sfumato.kernels.arrays import Flags, Floats, Ints
from sfumato.kernels.compiling import njit
from sfumato.kernels.groups.farthest import mdav, refuse_unfit
from sfumato.kernels.moments import canonical_signs
from sfumato.kernels.threads import SLICE, Tick
from sfumato.kernels.trees.boxes import centre_and_scale

PART_RECORDS = 50_000  # records; see the notes of `mdav_in_parts` for what this loses


def mdav_in_parts(
    points: Floats,
    k: int,
    part: int = PART_RECORDS,
    *,
    tick: Tick | None = None,
    group_each: Callable[[Iterator[Floats]], Iterator[Ints]] | None = None,
) -> Ints:
    r"""Group records by MDAV within parts, in groups of k to 2k − 1.

    While a part has more than ``part`` records (and at least :math:`4k`), it is cut across the direction in
    which its records vary most: those lowest along the first principal axis :math:`v` go to one side,

    .. math:: v = \arg\max_{|v| = 1} \sum_i ((x_i - \bar x) \cdot v)^2,

    half of them, rounded down to a multiple of k so that only the last part can have a group of more than k.
    Then each part is grouped by `mdav`. Records that are equal along the axis go by their number, so
    the groups depend on the order of records only where there are ties.

    Parameters
    ----------
    points, k, tick
        As for `mdav`.
    part : int
        Most records in a part (or 4k − 1 if that is more); cut ones have about half of it or more.
    group_each : callable, optional
        Applies `mdav` with this k to the points of each part, elsewhere; by default threads do.

    Returns
    -------
    int64[n]
        The group of each record: part by part, in the order of forming.

    Notes
    -----
    Parts run side by side in threads, whose number does not change the answer. Records near a cut find fewer
    neighbours, so the squared error within groups is greater than that of `mdav`: with parts of
    50,000, 8 columns and k = 5, by 2.4 % for 100,000 independent normals and 9 % for 1,000,000; for 100,000
    correlated log-normals, which have a direction to cut across, by 0.2 %. **Cost:** for parts of p records
    :math:`O(n d^2 \log (n / p) + n p d / k)` at worst.
    """
    refuse_unfit(points, k)
    if part < 1:
        raise ValueError(f"`part` must be at least 1, got: {part}")
    n = len(points)
    if k == 1:
        return np.arange(n)
    places = centre_and_scale(points)
    parts = _cut(places, k, part, tick)
    if group_each is None:
        found: Iterable[Ints] = _group_each(places, k, parts, tick)
    else:
        found = group_each(places[records] for records in parts)
    groups = np.empty(n, dtype=np.int64)
    n_groups = 0
    for records, of_part in zip(parts, found, strict=True):
        groups[records] = of_part + n_groups
        n_groups += int(of_part.max(initial=-1)) + 1
    return groups


def _cut(points: Floats, k: int, part: int, tick: Tick | None) -> list[Ints]:
    """Cut the records into parts; in each they keep their order."""
    parts, uncut = [], [np.arange(len(points))]
    while uncut:
        records = uncut.pop()
        if len(records) <= part or len(records) < 4 * k:
            parts.append(records)
            continue
        lower = _lower_half(points, records, len(records) // 2 // k * k)
        uncut += [records[~lower], records[lower]]  # the lower is cut first
        if tick is not None:
            tick(0, len(points))
    return parts


def _lower_half(points: Floats, records: Ints, count: int) -> Flags:
    """Mark the ``count`` records that are lowest along the first principal axis."""
    mean, covariance = _mean_and_covariance(points, records)
    axis = np.linalg.eigh(covariance)[1][:, -1]
    axis *= canonical_signs(axis)
    along = _project(points, records, mean, axis)
    border = np.partition(along, count)[count]
    lower: Flags = along < border
    on_border = np.flatnonzero(along == border)
    lower[on_border[: count - np.count_nonzero(lower)]] = True
    return lower


@njit(cache=True, nogil=True)
def _mean_and_covariance(points: Floats, records: Ints) -> tuple[Floats, Floats]:
    """Mean and covariance, up to a factor; not by BLAS, whose sums differ with the number of threads."""
    n_columns = points.shape[1]
    mean, products = np.zeros(n_columns), np.zeros((n_columns, n_columns))
    difference = np.empty(n_columns)
    for record in records:
        for column in range(n_columns):
            mean[column] += points[record, column]
    mean /= len(records)
    for record in records:
        for column in range(n_columns):
            difference[column] = points[record, column] - mean[column]
        for column in range(n_columns):
            for other in range(column + 1):
                products[column, other] += difference[column] * difference[other]
    return mean, products  # the lower triangle, which is what `eigh` reads


@njit(cache=True, nogil=True)
def _project(points: Floats, records: Ints, mean: Floats, axis: Floats) -> Floats:
    """Where each record lies along the axis."""
    along = np.zeros(len(records))
    for i in range(len(records)):
        for column in range(points.shape[1]):
            along[i] += (points[records[i], column] - mean[column]) * axis[column]
    return along


def _group_each(points: Floats, k: int, parts: list[Ints], tick: Tick | None) -> list[Ints]:
    """Group each part; only this thread calls ``tick``, and when that raises the others stop."""
    done, stop = np.zeros(len(parts), dtype=np.int64), Event()

    def group(i: int) -> Ints:
        def note(n_done: int, _: int) -> None:
            if stop.is_set():
                raise CancelledError
            done[i] = n_done

        return mdav(points[parts[i]], k, tick=note)

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        tasks = [pool.submit(group, i) for i in range(len(parts))]
        try:
            pending = set(tasks)
            while pending:
                _, pending = wait(pending, timeout=SLICE)
                if tick is not None:
                    tick(int(done.sum()), len(points))
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)
    return [task.result() for task in tasks]
