"""Counting combinations of codes: which there are, and how many persons have each.

Codes are whole numbers from 0. Combinations of many columns are made column by column. Where several records
are of one person, those records stand next to each other, and persons are counted: a person counts once for a
combination, in however many records it occurs.
"""

from __future__ import annotations

import numpy as np

from sfumato.kernels.arrays import Codes, Ints
from sfumato.kernels.compiling import njit

DENSE = 4  # a table of all combinations is kept while it has at most so many places for each record
SPREAD = -7046029254386353131  # 2⁶⁴ divided by the golden ratio, odd: multiplying by it spreads the keys


def refine(ids: Codes, n_ids: int, codes: Codes, n_codes: int) -> tuple[Codes, int]:
    """Number the combinations of ``ids`` and ``codes`` that occur, in the order in which they come.

    Parameters
    ----------
    ids, codes : int32[n]
        From 0 to below ``n_ids`` and ``n_codes``.

    Returns
    -------
    int32[n], int
        The number of each record's combination, and how many there are.
    """
    n = len(ids)
    if n_ids * n_codes <= DENSE * n + 1024:
        return _refine_dense(ids, codes, n_ids * n_codes, n_codes)
    return _refine_by_hash(ids, codes, n_codes, 1 << (2 * n).bit_length())


@njit(cache=True, nogil=True)
def _refine_dense(ids: Codes, codes: Codes, n_places: int, n_codes: int) -> tuple[Codes, int]:
    numbers = np.full(n_places, -1, dtype=np.int32)
    refined = np.empty_like(ids)
    n_found = 0
    for i in range(len(ids)):
        place = np.int64(ids[i]) * n_codes + codes[i]
        if numbers[place] < 0:
            numbers[place] = n_found
            n_found += 1
        refined[i] = numbers[place]
    return refined, n_found


@njit(cache=True, nogil=True)
def _refine_by_hash(ids: Codes, codes: Codes, n_codes: int, n_places: int) -> tuple[Codes, int]:
    """Open addressing: at most half of the places are taken, which are as many as a power of two."""
    keys = np.full(n_places, -1, dtype=np.int64)
    numbers = np.empty(n_places, dtype=np.int32)
    refined = np.empty_like(ids)
    n_found = 0
    for i in range(len(ids)):
        key = np.int64(ids[i]) * n_codes + codes[i]
        spread = key * SPREAD
        place = (spread ^ (spread >> 32)) & (n_places - 1)
        while keys[place] != key:
            if keys[place] < 0:
                keys[place] = key
                numbers[place] = n_found
                n_found += 1
                break
            place = (place + 1) & (n_places - 1)
        refined[i] = numbers[place]
    return refined, n_found


@njit(cache=True, nogil=True)
def count_persons(ids: Codes, n_ids: int, persons: Ints) -> Ints:
    """How many persons there are of each number; records of one person stand next to each other.

    Parameters
    ----------
    ids : int32[n]
        From 0 to below ``n_ids``.
    persons : int64[n]

    Returns
    -------
    int64[n_ids]
    """
    counts = np.zeros(n_ids, dtype=np.int64)
    last = np.full(n_ids, np.iinfo(np.int64).min, dtype=np.int64)
    for i in range(len(ids)):
        number = ids[i]
        if last[number] != persons[i]:
            last[number] = persons[i]
            counts[number] += 1
    return counts
