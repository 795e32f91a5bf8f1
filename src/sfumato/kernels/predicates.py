"""Predicates: how many records meet conditions on a few of their columns, and how far the next ones are."""

from __future__ import annotations

import numpy as np

from sfumato.kernels.arrays import Floats, Ints
from sfumato.kernels.compiling import njit
from sfumato.kernels.pace import Tick, share_out


def count_matches(
    columns: Floats,
    asked: Ints,
    lows: Floats,
    highs: Floats,
    *,
    groups: Ints,
    most: int,
    tick: Tick | None = None,
) -> Ints:
    """Count the groups with a record that meets all the ranges of each predicate, up to ``most``.

    Parameters
    ----------
    columns : float64[d, n]
        The values of each column; a missing one is −∞.
    asked : int64[q, k]
        The columns of each predicate; −1 is none.
    lows, highs : float64[q, k]
        From where to where their values must lie, ends included.
    groups : int64[n]
        Of which group each record is; those of a group stand side by side.

    Notes
    -----
    **Cost:** one look at a record for each predicate, until ``most`` are found.
    """
    columns = np.ascontiguousarray(columns, dtype=np.float64)
    counts = np.zeros(len(asked), dtype=np.int64)

    def work(part: Ints) -> None:
        if len(part):
            counts[part] = _counted(columns, asked[part], lows[part], highs[part], groups, most)

    share_out(np.arange(len(asked)), work, tick)
    return counts


def find_isolation(
    cells: tuple[Floats, Floats], asked: Ints, lows: Floats, highs: Floats, *,
    per_unit: Floats, groups: Ints, tick: Tick | None = None,
) -> tuple[Floats, Ints]:  # fmt: skip
    """Find how far the second nearest group is from what each predicate says, and which group is nearest.

    Parameters
    ----------
    cells : two of float64[d, n]
        From where to where the values of each column lie; a missing one is −∞ at both ends.
    asked, lows, highs
        The predicates, as in `count_matches`.
    per_unit : float64[d]
        What a distance in each column is multiplied by; ∞ where values are equal or not.
    groups : int64[n]

    Notes
    -----
    A record is as far as its farthest column. What is missing, and a cell open at both ends, is infinitely
    far from values. **Cost:** one look at a record for each predicate, until two groups are no distance away.
    """
    far, near = np.full(len(asked), np.inf), np.full(len(asked), -1, dtype=np.int64)
    starts, ends = (np.ascontiguousarray(each, dtype=np.float64) for each in cells)

    def work(part: Ints) -> None:
        if len(part):
            said = asked[part], lows[part], highs[part]
            far[part], near[part] = _isolated(starts, ends, *said, per_unit, groups)

    share_out(np.arange(len(asked)), work, tick)
    return far, near


@njit(cache=True, nogil=True)
def _isolated(  # noqa: PLR0917
    starts: Floats, ends: Floats, asked: Ints, lows: Floats, highs: Floats, per_unit: Floats, groups: Ints
) -> tuple[Floats, Ints]:
    far, near = np.full(len(asked), np.inf), np.full(len(asked), -1, dtype=np.int64)
    for q in range(len(asked)):
        best, second = np.inf, np.inf
        for record in range(starts.shape[1]):
            away = 0.0
            for place in range(asked.shape[1]):
                c = asked[q, place]
                if c >= 0:
                    low, high = lows[q, place], highs[q, place]
                    gap = _apart(low, high, starts[c, record], ends[c, record], per_unit[c])
                    away = max(away, gap)
                if away >= second:
                    break
            if away >= second:
                continue
            if groups[record] == near[q]:
                best = min(best, away)
            elif away < best:
                best, second, near[q] = away, best, groups[record]
            else:
                second = away
            if second == 0:
                break
        far[q] = second
    return far, near


@njit(cache=True, nogil=True)
def _apart(low: float, high: float, start: float, end: float, per_unit: float) -> float:
    """How far a range is from another; what is missing, or may be anything, from all but itself."""
    if (start == -np.inf and end == np.inf) or (high == -np.inf) != (end == -np.inf):
        return np.inf
    gap = 0.0 if high == -np.inf else max(low - end, start - high)
    return gap * per_unit if gap > 0 else 0.0


@njit(cache=True, nogil=True)
def _counted(columns: Floats, asked: Ints, lows: Floats, highs: Floats, groups: Ints, most: int) -> Ints:  # noqa: PLR0917
    n = columns.shape[1]
    counts = np.zeros(len(asked), dtype=np.int64)
    for q in range(len(asked)):
        last = -1  # the record that met it before
        for record in range(n):
            met = True
            for place in range(asked.shape[1]):
                column = asked[q, place]
                if column >= 0 and not lows[q, place] <= columns[column, record] <= highs[q, place]:
                    met = False
                    break
            if met and (last < 0 or groups[record] != groups[last]):
                last = record
                counts[q] += 1
                if counts[q] >= most:
                    break
    return counts
