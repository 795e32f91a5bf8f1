"""Minimal sample uniques by a recursion that is pruned as in SUDA2: who is alone needs no further key.

Sets of keys are gone through so that every part of a set comes before it: the first key from the last to the
first, and each further one from the last down. In a set only those are looked at who are not alone without
its last key, grouped by what they share. Who is alone then has a minimal unique unless one found before is a
part of the set: for each who is looked at it is known with which further keys that would be so. Such a one
has the last two keys of the larger set, so those of fewer keys than are asked for are kept by record and last
but one key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import TypeAlias

import numpy as np

from sfumato.kernels.arrays import Codes, Flags, Floats, Ints
from sfumato.kernels.compiling import njit
from sfumato.kernels.threads import Tick

#: What is kept: which was kept before by the same record and key, the sets of keys, and how many there are.
Kept: TypeAlias = tuple[Codes, Ints, int]
#: What is added up: worths by size, where the codes of each key start, and the parts of ``Uniques``.
Sums: TypeAlias = tuple[Floats, Ints, Floats, Flags, Ints, Floats]
#: Where what is kept of each key and record begins; and with which keys a record has one, by depth.
Known: TypeAlias = tuple[Codes, Ints]
#: Who is found alone, and for each code how many have it and where they go.
Room: TypeAlias = tuple[Codes, Codes, Ints]
#: So many minimal uniques are kept at first, and at most: 12 bytes each.
_FIRST, MOST_KEPT = 1 << 16, 1 << 26


@dataclass(frozen=True, eq=False)
class Uniques:
    """What the minimal uniques of all records add up to."""

    scores: Floats  # [n]
    special: Flags  # [n] who has one
    numbers: Ints  # [dimension + 1] how many there are of each size
    by_code: Floats  # [codes of all keys, one key after the other] the worth of those they take part in


def minimal_uniques(codes: Sequence[Codes], worths: Sequence[float], tick: Tick) -> Uniques | None:
    """Find all minimal uniques of up to ``len(worths) - 1`` keys, and add up what each is worth by its size.

    Parameters
    ----------
    codes : int32[n] for each of at most 62 keys, whose sets are kept as the bits of a whole number
        From 0.
    worths
        What a minimal unique of so many keys adds; the first is of none.

    Returns
    -------
    Uniques or None
        None if more than ``MOST_KEPT`` would have to be kept.
    """
    n_keys, n, dimension = len(codes), len(codes[0]), len(worths) - 1
    table = np.stack(codes)
    starts = np.concatenate(([0], np.cumsum(table.max(axis=1) + 1))).astype(np.int64)
    found = Uniques(
        np.zeros(n), np.zeros(n, dtype=np.bool_), np.zeros(dimension + 1, np.int64), np.zeros(starts[-1])
    )
    sums = (np.asarray(worths), starts, found.scores, found.special, found.numbers, found.by_code)
    heads, blocked = np.full((n_keys, n), -1, np.int32), np.zeros((dimension + 1, n), np.int64)
    store: Kept = (np.empty(_FIRST, np.int32), np.empty(_FIRST, np.int64), 0)
    done, total = 0, sum(comb(n_keys, size) for size in range(1, dimension + 1))
    for first in reversed(range(n_keys)):
        for second in (-1, *reversed(range(first + 1, n_keys))):  # −1: the first by itself
            if second >= 0 and dimension == 1:
                break
            tick(done, total)
            store = _search(table, dimension, (first, second), (heads, blocked), store, sums)
            if store[2] < 0:
                return None
            below = n_keys - 1 - second
            done += 1 if second < 0 else sum(comb(below, size) for size in range(dimension - 1))
    tick(total, total)
    return found


@njit(cache=True, nogil=True)
def _search(  # noqa: PLR0917  — arrays of one search
    table: Codes, dimension: int, begin: tuple[int, int], known: Known, store: Kept, sums: Sums
) -> Kept:
    """Look at the sets that begin with two keys, or at the first by itself, from large to small keys."""
    n_keys, n = table.shape
    rows, ends = np.empty((dimension + 1, n), np.int32), np.empty((dimension + 1, n // 2 + 2), np.int64)
    n_groups, next_key = np.ones(dimension + 1, np.int64), np.zeros(dimension + 1, np.int64)
    keys = np.full(dimension + 1, -1)
    room = np.empty(n, np.int32), np.zeros(table.max() + 1, np.int32), np.full(table.max() + 1, -1)
    rows[0], ends[0, 0] = np.arange(n), n
    next_key[0], next_key[1] = begin
    depth = 0
    while depth >= 0 and store[2] >= 0:
        key = next_key[depth]
        next_key[depth] = key - 1 if depth > 1 else -1
        if key <= keys[depth]:
            depth -= 1
            continue
        n_groups[depth + 1], n_alone = _cut(
            table[key], rows[depth], ends[depth, : n_groups[depth]], rows[depth + 1], ends[depth + 1], room
        )
        keys[depth + 1] = key
        if depth > 0 or begin[1] < 0:  # the first by itself was looked at before
            store = _report(table, room[0][:n_alone], keys[1 : depth + 2], known, store, sums)
        if depth + 1 < dimension and n_groups[depth + 1]:
            depth += 1
            _block(rows[depth, : ends[depth, n_groups[depth] - 1]], keys[1 : depth + 1], known, store)
            if depth > 1:
                next_key[depth] = n_keys - 1
    return store


@njit(cache=True, nogil=True)
def _block(rows: Codes, keys: Ints, known: Known, store: Kept) -> None:
    """Note with which further keys each record would have a minimal unique that was found before."""
    (heads, blocked), (before, sets, _) = known, store
    depth, last, outside = len(keys), keys[-1], ~_bits(keys)
    for row in rows:
        found, place = blocked[depth - 1, row], heads[last, row]
        while place >= 0:
            rest = sets[place] & outside
            if rest & (rest - 1) == 0:
                found |= rest
            place = before[place]
        blocked[depth, row] = found


@njit(cache=True, nogil=True)
def _bits(keys: Ints) -> np.int64:
    bits = np.int64(0)
    for key in keys:
        bits |= np.int64(1) << key
    return bits


@njit(cache=True, nogil=True)
def _cut(  # noqa: PLR0917  — arrays of one search
    codes: Codes, rows: Codes, ends: Ints, finer: Codes, finer_ends: Ints, room: Room
) -> tuple[int, int]:
    """Cut groups of records finer by one key: who is alone is put apart, the groups that are left follow."""
    alone, counts, places = room
    n_finer, n_alone, cursor, start = 0, 0, 0, 0
    for end in ends:
        for i in range(start, end):
            counts[codes[rows[i]]] += 1
        for i in range(start, end):
            code = codes[rows[i]]
            if counts[code] == 1:
                alone[n_alone] = rows[i]
                n_alone += 1
                continue
            if places[code] < 0:
                places[code] = cursor
                cursor += counts[code]
                finer_ends[n_finer] = cursor
                n_finer += 1
            finer[places[code]] = rows[i]
            places[code] += 1
        for i in range(start, end):
            counts[codes[rows[i]]] = 0
            places[codes[rows[i]]] = -1
        start = end
    return n_finer, n_alone


@njit(cache=True, nogil=True)
def _report(  # noqa: PLR0917  — arrays of one search
    table: Codes, alone: Codes, keys: Ints, known: Known, store: Kept, sums: Sums
) -> Kept:
    """Add up the minimal uniques of those who are alone in a set of keys, and keep them if it is small."""
    worths, starts, scores, special, numbers, by_code = sums
    (heads, blocked), (before, sets, n_kept) = known, store
    size, last, asked = len(keys), keys[-1], _bits(keys)
    for row in alone:
        if blocked[size - 1, row] >> last & 1:
            continue  # a part of the set was enough
        scores[row] += worths[size]
        special[row] = True
        numbers[size] += 1
        for key in keys:
            by_code[starts[key] + table[key, row]] += worths[size]
        blocked[size - 1, row] |= np.int64(1) << last
        if 1 < size < len(worths) - 1:  # else it is a part of nothing that will be looked at, or noted above
            if n_kept == len(sets):
                if n_kept >= MOST_KEPT:
                    return before, sets, -1
                before = np.concatenate((before, np.empty_like(before)))
                sets = np.concatenate((sets, np.empty_like(sets)))
            before[n_kept], sets[n_kept] = heads[keys[-2], row], asked
            heads[keys[-2], row] = n_kept
            n_kept += 1
    return before, sets, n_kept
