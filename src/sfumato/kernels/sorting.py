"""Sorting inside kernels: numba's own takes longer to compile than what it is used for."""

from __future__ import annotations

from sfumato.kernels.arrays import Ints, Values
from sfumato.kernels.compiling import njit


@njit(cache=True, nogil=True)
def sort_places(places: Ints, count: int, keys: Values) -> None:
    """Sort the first ``count`` places by the keys that stand there, by falling gaps (Shell); not stable."""
    gap = 1
    while 3 * gap + 1 < count:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, count):
            moved, j = places[i], i
            while j >= gap and keys[places[j - gap]] > keys[moved]:
                places[j] = places[j - gap]
                j -= gap
            places[j] = moved
        gap //= 3
