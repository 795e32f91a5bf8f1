"""Predicates: how many records meet conditions on a few of their columns, and how far the next ones are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sfumato.kernels.arrays import Flags, Floats, Ints
from sfumato.kernels.compiling import njit
from sfumato.kernels.threads import Tick, share_out


class SortedRecords(NamedTuple):
    """Records of some groups: from where to where each value lies, and in which order.

    A missing value is −∞ at both ends, one that may be any is open at both.
    """

    starts: Floats  # [d, n]
    ends: Floats
    orders: Ints  # [d, n] the records by their starts
    exact: Flags  # [d] every value is one number, missing or any
    groups: Ints  # [n] from 0 on

    @classmethod
    def of(cls, starts: Floats, ends: Floats, groups: Ints) -> SortedRecords:
        """Sort each column once, so that a predicate looks only at records near to what it says."""
        starts, ends = (np.ascontiguousarray(each, dtype=np.float64) for each in (starts, ends))
        is_open = np.isneginf(starts) & np.isposinf(ends)
        exact = ((starts == ends) | is_open).all(axis=1)
        numbers = np.unique(groups, return_inverse=True)[1].astype(np.int64)
        return cls(starts, ends, np.argsort(starts, axis=1, kind="stable"), exact, numbers)

    @property
    def n_groups(self) -> int:
        """How many groups there are."""
        return int(self.groups.max(initial=-1)) + 1


def count_matches(
    asked: Ints, lows: Floats, highs: Floats, records: SortedRecords, *, most: int, tick: Tick | None = None
) -> Ints:
    """Count the groups with a record whose starts meet all the ranges of each predicate, up to ``most``.

    Parameters
    ----------
    asked : int64[q, k]
        The columns of each predicate; −1 is none.
    lows, highs : float64[q, k]
        From where to where their values must lie, ends included.
    records : SortedRecords
    most : int

    Notes
    -----
    **Cost:** for each predicate a look at the records in its narrowest range, until ``most`` are found.
    """
    counts = np.zeros(len(asked), dtype=np.int64)

    def work(part: Ints) -> None:
        if len(part):
            counts[part] = _count_matches(
                asked[part], lows[part], highs[part], records, (records.n_groups, most)
            )

    share_out(np.arange(len(counts)), work, tick)
    return counts


def find_isolation(
    asked: Ints, lows: Floats, highs: Floats, records: SortedRecords, *,
    per_unit: Floats, tick: Tick | None = None,
) -> tuple[Floats, Ints]:  # fmt: skip
    """Find how far the second nearest group is from what each predicate says, and which group is nearest.

    Parameters
    ----------
    asked, lows, highs, records
        As in `count_matches`.
    per_unit : float64[d]
        What a distance in each column is multiplied by; ∞ where values are equal or not.

    Notes
    -----
    A record is as far as its farthest column. What is missing, and a cell open at both ends, is infinitely
    far from values. **Cost:** for each predicate a look at the records that are no farther in one column than
    the second nearest group is in all; at every record where that column has ranges.
    """
    far, near = np.full(len(asked), np.inf), np.full(len(asked), -1, dtype=np.int64)

    def work(part: Ints) -> None:
        if len(part):
            far[part], near[part] = _count_isolated(asked[part], lows[part], highs[part], records, per_unit)

    share_out(np.arange(len(far)), work, tick)
    return far, near


@njit(cache=True, nogil=True)
def _count_matches(
    asked: Ints, lows: Floats, highs: Floats, records: SortedRecords, sizes: tuple[int, int]
) -> Ints:
    size, most = sizes
    counts, marks = np.zeros(len(asked), dtype=np.int64), np.full(size, -1, dtype=np.int64)
    for q in range(len(asked)):
        column, first, last = _window(asked[q], lows[q], highs[q], records)
        for place in range(first, last):
            record = records.orders[column, place] if column >= 0 else place
            if marks[records.groups[record]] == q:
                continue
            met = True
            for k in range(asked.shape[1]):
                c = asked[q, k]
                if c >= 0 and not lows[q, k] <= records.starts[c, record] <= highs[q, k]:
                    met = False
                    break
            if met:
                marks[records.groups[record]] = q
                counts[q] += 1
                if counts[q] >= most:
                    break
    return counts


@njit(cache=True, nogil=True)
def _window(asked: Ints, lows: Floats, highs: Floats, records: SortedRecords) -> tuple[int, int, int]:
    """The column in which fewest records start within the range, and the places of these in its order."""
    column, first, last = -1, 0, records.starts.shape[1]
    for k in range(len(asked)):
        c = asked[k]
        if c >= 0:
            start = _place(records.starts[c], records.orders[c], lows[k], False)
            end = _place(records.starts[c], records.orders[c], highs[k], True)
            if column < 0 or end - start < last - first:
                column, first, last = c, start, end
    return column, first, last


@njit(cache=True, nogil=True)
def _place(values: Floats, order: Ints, value: float, after: bool) -> int:  # noqa: FBT001
    """Where a value stands among others in their order: before its equals, or after."""
    low, high = 0, len(order)
    while low < high:
        middle = (low + high) // 2
        here = values[order[middle]]
        if here < value or (after and here == value):
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def _count_isolated(
    asked: Ints, lows: Floats, highs: Floats, records: SortedRecords, per_unit: Floats
) -> tuple[Floats, Ints]:
    far, near = np.full(len(asked), np.inf), np.full(len(asked), -1, dtype=np.int64)
    for q in range(len(asked)):
        best, second = np.inf, np.inf
        column, first, last = _window(asked[q], lows[q], highs[q], records)
        if column >= 0 and not records.exact[column]:
            column, first, last = -1, 0, records.starts.shape[1]
        place, left, right = first, first - 1, last
        while second > 0:
            if place < last:  # no distance away in this column
                record = records.orders[column, place] if column >= 0 else place
                place += 1
            elif column < 0:
                break
            else:  # the nearer of the next on both sides
                k = _asked_of(asked[q], column)
                below = _along(records, column, left, lows[q, k], highs[q, k]) * per_unit[column]
                above = _along(records, column, right, lows[q, k], highs[q, k]) * per_unit[column]
                if min(below, above) >= second:
                    break
                record = records.orders[column, left if below <= above else right]
                left, right = (left - 1, right) if below <= above else (left, right + 1)
            away = _distance_to_predicate(asked[q], lows[q], highs[q], records, record, per_unit)
            if away >= second:
                continue
            if records.groups[record] == near[q]:
                best = min(best, away)
            elif away < best:
                best, second, near[q] = away, best, records.groups[record]
            else:
                second = away
        far[q] = second
    return far, near


@njit(cache=True, nogil=True)
def _distance_to_predicate(  # noqa: PLR0917
    asked: Ints, lows: Floats, highs: Floats, records: SortedRecords, record: int, per_unit: Floats
) -> float:
    """How far a record is from what a predicate says, in its farthest column."""
    away = 0.0
    for k in range(len(asked)):
        if asked[k] >= 0:
            gap = _gap(lows[k], highs[k], records.starts[asked[k], record], records.ends[asked[k], record])
            away = max(away, gap * per_unit[asked[k]] if gap > 0 else 0.0)
    return away


@njit(cache=True, nogil=True)
def _asked_of(asked: Ints, column: int) -> int:
    for k in range(len(asked)):
        if asked[k] == column:
            return k
    return -1


@njit(cache=True, nogil=True)
def _along(records: SortedRecords, column: int, place: int, low: float, high: float) -> float:
    """How far the record at a place of a column's order is from a range; ∞ beyond both ends."""
    if not 0 <= place < records.orders.shape[1]:
        return np.inf
    record = records.orders[column, place]
    return _gap(low, high, records.starts[column, record], records.ends[column, record])


@njit(cache=True, nogil=True)
def _gap(low: float, high: float, start: float, end: float) -> float:
    """How far a range is from another; what is missing, or may be anything, from all but itself."""
    if (start == -np.inf and end == np.inf) or (high == -np.inf) != (end == -np.inf):
        return np.inf
    return 0.0 if high == -np.inf else max(low - end, start - high, 0.0)
