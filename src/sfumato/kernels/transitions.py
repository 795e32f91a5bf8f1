"""Transitions: each record moves to a category drawn from the row of a Markov matrix that it stands in."""

from __future__ import annotations

import numpy as np

from sfumato.kernels.arrays import Codes, Floats
from sfumato.kernels.compiling import njit


@njit(cache=True, nogil=True)
def move(rows: Codes, stays: Floats, heaps: Floats, codes: Codes, chances: Floats) -> Codes:
    r"""Draw the next category of each record.

    Parameters
    ----------
    rows : int32[n]
        The row of the matrix that a record stands in; a negative one stays as it is.
    stays : float64[r]
        The chance of each row to stay.
    heaps : float64[r, K]
        The chances of each row to move, summed from the left: the last is 1 less the chance to stay.
    codes : int32[n]
        The present category.
    chances : float64[n]
        Uniform numbers from 0 to below 1.

    Returns
    -------
    int32[n]
        The next category. One whose chance is 0 is never drawn: no number lies between two equal sums.

    Notes
    -----
    **Cost:** :math:`O(\log K)` for each record that moves.
    """
    moved = codes.copy()
    last = heaps.shape[1] - 1
    for i in range(len(codes)):
        row = rows[i]
        if row < 0 or chances[i] < stays[row] or heaps[row, last] <= 0.0:
            continue
        # Of the numbers above the chance to stay, rounded where it is near 1: never beyond the last sum.
        sought = min(chances[i] - stays[row], np.nextafter(heaps[row, last], 0.0))
        low, high = 0, last
        while low < high:
            middle = (low + high) // 2
            if heaps[row, middle] > sought:
                high = middle
            else:
                low = middle + 1
        moved[i] = low
    return moved


@njit(cache=True, nogil=True)
def tally(rows: Codes, weights: Floats, n_rows: int) -> Floats:
    """Sum the weights of the records of each row, or count them if there are none; a negative row is none."""
    sums = np.zeros(n_rows)
    weighted = len(weights) > 0
    for i in range(len(rows)):
        if rows[i] >= 0:
            sums[rows[i]] += weights[i] if weighted else 1.0
    return sums
