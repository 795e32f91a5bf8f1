"""Transitions: each record moves to a category drawn from the row of a Markov matrix that it stands in."""

from __future__ import annotations

import numpy as np

from sfumato.kernels.arrays import Codes, Floats
from sfumato.kernels.compiling import njit

#: Cells that the numbers from 0 to 1 are cut into where records are many: a power of 2, for exact cuts.
_CELLS = 256


@njit(cache=True, nogil=True)
def move(rows: Codes, stays: Floats, heaps: Floats, chances: Floats) -> Codes:
    r"""Draw the next category of each record.

    Parameters
    ----------
    rows : int32[n]
        The row of one or more matrices below each other that a record stands in, which tells its present
        category too; a negative one has none.
    stays : float64[r]
        The chance of each row to stay.
    heaps : float64[r, K]
        The chances of each row to move, summed from the left: the last is 1 less the chance to stay.
    chances : float64[n]
        Uniform numbers from 0 to below 1.

    Returns
    -------
    int32[n]
        The next category, −1 where there is none. One whose chance is 0 is never drawn: no number lies
        between two equal sums.

    Notes
    -----
    **Cost:** :math:`O(\log K)` for each record that moves. Of many records most need no search: the numbers
    from 0 to 1 are cut into cells, and most cells lead to one category.
    """
    moved = np.empty_like(rows)
    n_rows = heaps.shape[0]
    n_cells = _CELLS if len(rows) > 16 * _CELLS * n_rows else 1
    # Where all numbers of a cell lead to the same category no search is needed; −1: they do not.
    guide = np.empty((n_rows, n_cells), dtype=np.int32)
    for row in range(n_rows):
        for cell in range(n_cells):
            first = _next(row, stays, heaps, cell / n_cells)
            last = _next(row, stays, heaps, np.nextafter((cell + 1) / n_cells, 0.0))
            guide[row, cell] = first if first == last else -1
    for i in range(len(rows)):
        row = rows[i]
        if row < 0:
            moved[i] = -1
            continue
        found = guide[row, int(chances[i] * n_cells)]
        moved[i] = found if found >= 0 else _next(row, stays, heaps, chances[i])
    return moved


@njit(cache=True, nogil=True)
def _next(row: int, stays: Floats, heaps: Floats, chance: float) -> int:
    """The category that a number leads to."""
    high = heaps.shape[1] - 1
    most = heaps[row, high]
    if chance < stays[row] or most <= 0.0:
        return int(row % heaps.shape[1])
    # Of the numbers above the chance to stay, rounded where it is near 1: never beyond the last sum.
    sought = min(chance - stays[row], np.nextafter(most, 0.0))
    low = 0
    while low < high:
        middle = (low + high) // 2
        if heaps[row, middle] > sought:
            high = middle
        else:
            low = middle + 1
    return low


@njit(cache=True, nogil=True)
def tally(rows: Codes, weights: Floats, n_rows: int) -> Floats:
    """Sum the weights of the records of each row, or count them if there are none; a negative row is none."""
    sums = np.zeros(n_rows)
    weighted = len(weights) > 0
    for i in range(len(rows)):
        if rows[i] >= 0:
            sums[rows[i]] += weights[i] if weighted else 1.0
    return sums
