"""Predicates: how many records meet conditions on a few of their columns."""

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
