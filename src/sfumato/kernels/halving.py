"""Halving: the lower part of some records first, without sorting them."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(cache=True, nogil=True)
def lowest_first(values: NDArray[np.float64], order: NDArray[np.int64], middle: int) -> None:
    """Rearrange ``order`` so that its ``middle`` records of lowest value stand first (Hoare's selection)."""
    left, right = 0, len(order) - 1
    while left < right:
        pivot = values[order[(left + right) // 2]]
        i, j = left, right
        while i <= j:
            while values[order[i]] < pivot:
                i += 1
            while values[order[j]] > pivot:
                j -= 1
            if i <= j:
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if middle <= j:
            right = j
        elif middle >= i:
            left = i
        else:
            return
