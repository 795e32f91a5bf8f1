"""Counting combinations of codes: which there are, and how many persons have each.

Codes are whole numbers from 0. Combinations of many columns are made column by column. Where several records
are of one person, those records stand next to each other, and persons are counted: a person counts once for a
combination, in however many records it occurs.
"""

from __future__ import annotations

import numpy as np

from sfumato.kernels.arrays import Codes, Ints
from sfumato.kernels.compiling import njit
from sfumato.kernels.threads import CompileAllowance

DENSE = 4  # a table of all combinations is kept while it has at most so many places for each record
FIRST_PLACES, GROWTH = 2**12, 4  # places of combinations at first, and by how much they grow
SPREAD = -7046029254386353131  # 2⁶⁴ divided by the golden ratio, odd: multiplying by it spreads the keys
_ALLOWANCE = CompileAllowance(2_000_000)  # records, by numpy


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
    if _ALLOWANCE.takes(len(ids)):
        return _refine_by_numpy(ids, codes, n_codes)
    refined = np.empty_like(ids)
    if n_ids * n_codes <= DENSE * len(ids) + 1024:
        return refined, _refine_dense(ids, codes, n_codes, np.full(n_ids * n_codes, -1, np.int32), refined)
    keys, numbers, done, n_found = *_places(FIRST_PLACES), 0, 0
    while True:
        done, n_found = _refine_by_hash((ids, codes), n_codes, (keys, numbers), refined, (done, n_found))
        if done == len(ids):
            return refined, n_found
        roomier = _places(GROWTH * len(keys))
        _move(keys, numbers, *roomier)
        keys, numbers = roomier


def _places(n: int) -> tuple[Ints, Codes]:
    """Room for so many combinations, and the number of each; made by numpy, that may put it into a file."""
    return np.full(n, -1, dtype=np.int64), np.empty(n, dtype=np.int32)


def _refine_by_numpy(ids: Codes, codes: Codes, n_codes: int) -> tuple[Codes, int]:
    keys = ids.astype(np.int64) * n_codes + codes
    _, firsts, of_record = np.unique(keys, return_index=True, return_inverse=True)
    numbers = np.empty_like(ids, shape=len(firsts))
    numbers[np.argsort(firsts)] = np.arange(len(firsts))
    return numbers[of_record], len(firsts)


@njit(cache=True, nogil=True)
def _refine_dense(ids: Codes, codes: Codes, n_codes: int, numbers: Codes, refined: Codes) -> int:
    n_found = 0
    for i in range(len(ids)):
        place = np.int64(ids[i]) * n_codes + codes[i]
        if numbers[place] < 0:
            numbers[place] = n_found
            n_found += 1
        refined[i] = numbers[place]
    return n_found


@njit(cache=True, nogil=True)
def _refine_by_hash(
    pairs: tuple[Codes, Codes],
    n_codes: int,
    places: tuple[Ints, Codes],
    refined: Codes,
    so_far: tuple[int, int],
) -> tuple[int, int]:
    """Open addressing, from a record on until half of the places, a power of two, are taken."""
    (ids, codes), (keys, numbers), (start, n_found) = pairs, places, so_far
    n_places = len(keys)
    for i in range(start, len(ids)):
        key = np.int64(ids[i]) * n_codes + codes[i]
        spread = key * SPREAD
        place = (spread ^ (spread >> 32)) & (n_places - 1)
        while keys[place] != key:
            if keys[place] < 0:
                if 2 * n_found >= n_places:
                    return i, n_found
                keys[place] = key
                numbers[place] = n_found
                n_found += 1
                break
            place = (place + 1) & (n_places - 1)
        refined[i] = numbers[place]
    return len(ids), n_found


@njit(cache=True, nogil=True)
def _move(keys: Ints, numbers: Codes, new_keys: Ints, new_numbers: Codes) -> None:
    """Put what is found among few places into more."""
    for old in range(len(keys)):
        if keys[old] < 0:
            continue
        spread = keys[old] * SPREAD
        place = (spread ^ (spread >> 32)) & (len(new_keys) - 1)
        while new_keys[place] >= 0:
            place = (place + 1) & (len(new_keys) - 1)
        new_keys[place], new_numbers[place] = keys[old], numbers[old]


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
    if not _ALLOWANCE.takes(len(ids)):
        return _count_persons(ids, n_ids, persons)
    order = np.argsort(ids, kind="stable")
    pairs = np.stack((ids[order], persons[order]))
    begins = np.append(True, (pairs[:, 1:] != pairs[:, :-1]).any(axis=0))[: len(ids)]
    return np.bincount(pairs[0, begins], minlength=n_ids)


@njit(cache=True, nogil=True)
def _count_persons(ids: Codes, n_ids: int, persons: Ints) -> Ints:
    counts = np.zeros(n_ids, dtype=np.int64)
    last = np.full(n_ids, np.iinfo(np.int64).min, dtype=np.int64)
    for i in range(len(ids)):
        number = ids[i]
        if last[number] != persons[i]:
            last[number] = persons[i]
            counts[number] += 1
    return counts
