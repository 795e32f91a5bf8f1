"""Minimal sample uniques by a recursion that is pruned as in SUDA2: who is alone needs no further key.

Only who is alone in all keys (a candidate) can have one; of others each combination is looked at once. Sets
of keys are gone through so that every part of a set comes before it: the first key from the last to the
first, and each further one from the last down. Who is alone without the last key of a set, or in a group
without candidates, is left out, once there are enough of them. Who is alone has a minimal unique unless it
was alone in a part of the set: of each set that has larger ones a bit for each candidate says so. Sets that
are never come to have all bits: without some of their keys every candidate is alone already.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from math import comb
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from sfumato.kernels.arrays import Bytes, Codes, Flags, Floats, Ints
from sfumato.kernels.compiling import by_python, njit
from sfumato.kernels.threads import CompileAllowance, Tick

#: By depth: codes of the records that are left by key, after them the number of each record; their groups;
#: how many records, candidates and groups there are, and at which depth the codes are kept.
Nodes: TypeAlias = tuple[npt.NDArray[np.int32], Codes, Ints]
#: Where each record is counted, what is counted there, and the number of the group or what stands there.
Room: TypeAlias = tuple[Codes, Bytes, Ints]
#: For each set that has larger ones a bit for each candidate that is alone in it; and binomial coefficients.
Known: TypeAlias = tuple[npt.NDArray[np.uint64], Ints]
#: Of how many minimal uniques of each size a candidate, and a code, is a part; and where codes of keys start.
Tallies: TypeAlias = tuple[Codes, Ints, Ints]

#: Bytes that the bits may take; of more candidates some are looked for at a time.
_MAX_BYTES = 1_000_000_000
#: Groups by codes are counted in a table of all while it has at most so many places for each record.
_DENSE = 16
#: Records are left out if no more than this share would remain.
_LEFT = 0.75
#: An odd number that spreads combinations over the table of them.
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
#: Records looked at by numpy, and how many take as long as to begin with a set.
_ALLOWANCE, _PER_SET = CompileAllowance(4_000_000), 1_000
#: What is counted in a place: once, more than once, and a candidate.
_ONCE, _OFTEN, _CANDIDATE = 1, 3, 4


@dataclass(frozen=True, eq=False)
class Uniques:
    """What the minimal uniques of all records add up to."""

    scores: Floats  # [n]
    special: Flags  # [n] who has one
    numbers: Ints  # [dimension + 1] how many there are of each size
    by_code: Floats  # [codes of all keys, one key after the other] the worth of those they take part in


def minimal_uniques(codes: Sequence[Codes], worths: Sequence[float], tick: Tick) -> Uniques:
    """Find all minimal uniques of up to ``len(worths) - 1`` keys, and add up what each is worth by its size.

    Parameters
    ----------
    codes : int32[n] for each key
        From 0.
    worths
        What a minimal unique of so many keys adds; the first is of none.
    """
    n_keys, n, dimension = len(codes), len(codes[0]), len(worths) - 1
    sizes = np.array([int(each.max(initial=-1)) + 1 for each in codes])
    starts = np.concatenate(([0], np.cumsum(sizes)))
    order = np.argsort(-sizes, kind="stable")  # so that who is alone is left out soon
    table = np.stack([codes[key] for key in order])
    n_smaller = sum(comb(n_keys, size) for size in range(dimension))
    few = _ALLOWANCE.takes((n_smaller + comb(n_keys, dimension)) * (n + _PER_SET))
    with by_python(few):
        members = _count_members(table, sizes[order])
    alone, others = np.flatnonzero(members == 1), np.flatnonzero(members > 1)
    step = max(_MAX_BYTES // (8 * n_smaller), 1) * 64
    parts = [alone[start : start + step] for start in range(0, len(alone), step)]
    of_record, of_code = (
        np.zeros((dimension + 1, n), np.int32),
        np.zeros((dimension + 1, starts[-1]), np.int64),
    )
    for place, part in enumerate(parts):
        rows = np.concatenate([part, others, *parts[:place], *parts[place + 1 :]])
        own = np.zeros((dimension + 1, len(part)), np.int32)
        done = partial(_tick_part, tick, place, len(parts))
        given = table[:, rows], sizes[order], (own, of_code, starts[order])
        if few:
            _find_few(*given)
        else:
            _find(*given, done)
        of_record[:, part] = own
    total = sum(comb(n_keys, size) for size in range(1, dimension + 1)) * max(len(parts), 1)
    tick(total, total)
    with by_python(few):
        scores, by_code = (
            _add_up(each.astype(np.int64), np.asarray(worths)) for each in (of_record, of_code)
        )
    special: Flags = np.any(of_record, axis=0)
    return Uniques(scores, special, of_record.sum(axis=1), by_code)


def _tick_part(tick: Tick, place: int, n_parts: int, done: int, total: int) -> None:
    tick(place * total + done, n_parts * total)


def _find(table: Codes, sizes: Ints, found: Tallies, tick: Tick) -> None:
    """Count the minimal uniques of the first records, which are the candidates."""
    (n_keys, n), (dimension, n_candidates) = table.shape, found[0].shape
    dimension -= 1
    binomials = np.array([[comb(key, size) for size in range(dimension + 1)] for key in range(n_keys + 1)])
    shape = int(binomials[-1, :dimension].sum()), -(-n_candidates // 64)
    bits = np.full(shape, np.iinfo(np.uint64).max, np.uint64)
    tables, groups = np.empty((dimension, n_keys + 1, n), np.int32), np.zeros((dimension, n), np.int32)
    tables[0, :-1], tables[0, -1] = table, np.arange(n)
    state = np.tile([n, n_candidates, 1, 0], (dimension, 1))
    n_places = max(_DENSE * n, 2 * int(sizes.max(initial=0)), 4) + 4 * n
    room = np.empty(n, np.int32), np.empty(n_places, np.uint8), np.empty(n_places, np.int64)
    done, total = 0, sum(comb(n_keys, size) for size in range(1, dimension + 1))
    for first in reversed(range(n_keys)):
        for second in (-1, *reversed(range(first + 1, n_keys))):  # −1: the first by itself
            if second >= 0 and dimension == 1:
                break
            tick(done, total)
            _search(sizes, (first, second), (tables, groups, state), room, (bits, binomials), found)
            below = n_keys - 1 - second
            done += 1 if second < 0 else sum(comb(below, size) for size in range(dimension - 1))


def _find_few(table: Codes, sizes: Ints, found: Tallies) -> None:
    """The same as `_find`, set by set by numpy: quicker than compiling while records and sets are few."""
    (n_keys, n), (of_record, of_code, starts) = table.shape, found
    groups: dict[tuple[int, ...], Ints] = {(): np.zeros(n, np.int64)}
    alone: dict[tuple[int, ...], Flags] = {(): np.zeros(n, np.bool_)}
    for size in range(1, len(of_record)):
        for keys in combinations(range(n_keys), size):
            numbers = groups[keys[:-1]] * sizes[keys[-1]] + table[keys[-1]]
            _, groups[keys], counts = np.unique(numbers, return_inverse=True, return_counts=True)
            alone[keys] = counts[groups[keys]] == 1
            parts = [alone[part] for part in combinations(keys, size - 1)]
            minimal = np.flatnonzero((alone[keys] & ~np.any(parts, axis=0))[: of_record.shape[1]])
            of_record[size, minimal] += 1
            for key in keys:
                np.add.at(of_code[size], starts[key] + table[key, minimal], 1)


def _count_few(table: Codes, sizes: Ints) -> Bytes:
    """The same as `_count_members`, by numpy."""
    numbers, room = np.zeros(table.shape[1], np.int64), 1
    for codes, size in zip(table, sizes.tolist(), strict=True):
        if room * size >= 2**63:
            found, numbers = np.unique(numbers, return_inverse=True)
            room = len(found)
        numbers, room = numbers * size + codes, room * size
    _, firsts, counts = np.unique(numbers, return_index=True, return_counts=True)
    members = np.zeros(table.shape[1], np.uint8)
    members[firsts] = np.minimum(counts, 2)
    return members


@njit(_count_few, cache=True, nogil=True)
def _count_members(table: Codes, sizes: Ints) -> Bytes:
    """Whether one record (1) or more (2) have a combination of all keys: at its first, 0 at others."""
    n_keys, n = table.shape
    room, fits = 1.0, True
    for key in range(n_keys):
        room *= sizes[key]
        fits &= room < 2.0**63
    numbers, n_slots = np.zeros(n, np.uint64), 2
    while n_slots < 2 * n:
        n_slots *= 2
    for key in range(n_keys):
        step = np.uint64(sizes[key]) if fits else _SPREAD
        for i in range(n):
            numbers[i] = numbers[i] * step + np.uint64(table[key, i])
    slots, members = np.full(n_slots, -1, np.int32), np.zeros(n, np.uint8)
    for i in range(n):
        slot = _slot(numbers[i], n_slots)
        other = slots[slot]
        while other >= 0 and (numbers[other] != numbers[i] or not (fits or _are_alike(table, i, other))):
            slot = (slot + 1) & (n_slots - 1)
            other = slots[slot]
        if other < 0:
            slots[slot] = other = i
        members[other] = min(members[other] + 1, 2)
    return members


@njit(cache=True, nogil=True)
def _are_alike(table: Codes, one: int, other: int) -> bool:
    """Loops, here and below: what numpy does with slices takes seconds to compile."""
    for key in range(len(table)):  # noqa: SIM110
        if table[key, one] != table[key, other]:
            return False
    return True


@njit(cache=True, nogil=True)
def _slot(number: np.uint64, n_slots: int) -> np.int64:
    return np.int64((number ^ number >> np.uint64(32)) * _SPREAD >> np.uint64(20)) & (n_slots - 1)


@njit(cache=True, nogil=True)
def _search(  # noqa: PLR0917  — arrays of one search
    sizes: Ints, begin: tuple[int, int], nodes: Nodes, room: Room, known: Known, found: Tallies
) -> None:
    """Look at the sets that begin with two keys, or at the first by itself, from large to small keys."""
    tables, groups, state = nodes
    n_keys, dimension = len(sizes), len(found[0]) - 1
    keys, next_key = np.full(dimension + 1, -1), np.full(dimension + 1, -1)
    depth = 0 if begin[1] < 0 else 1
    keys[1], next_key[depth] = begin[0], begin[depth] if state[depth, 0] else -1
    while depth >= 0:
        key = next_key[depth]
        next_key[depth] = key - 1 if depth > 1 else -1
        if key <= keys[depth]:
            depth -= 1
            continue
        keys[depth + 1], n, n_candidates = key, state[depth, 0], state[depth, 1]
        table = tables[state[depth, 3], :, :n]
        n_places = _find_places(table[key], groups[depth], (state[depth, 2], sizes[key]), room)
        _count(n, n_candidates, n_places, room)
        _report(table[:, :n_candidates], keys[1 : depth + 2], room, known, found)
        if depth + 1 < dimension:
            _number_groups(depth, n_places, nodes, room)
        if 0 < depth < dimension - 1 and state[depth + 1, 0]:
            depth += 1
            next_key[depth] = n_keys - 1


@njit(cache=True, nogil=True)
def _find_places(codes: Codes, groups: Codes, sizes: tuple[int, int], room: Room) -> int:
    """Find where each record is counted by its group and code; give how many places there are."""
    (places, _, numbers), (n_groups, n_codes), n = room, sizes, len(codes)
    if n_groups * n_codes <= max(_DENSE * n, 2 * n_codes):
        for i in range(n):
            places[i] = groups[i] * n_codes + codes[i]
        return n_groups * n_codes
    n_slots = 2
    while n_slots < 2 * n:
        n_slots *= 2
    for place in range(n_slots):
        numbers[place] = -1
    for i in range(n):
        number = np.int64(groups[i]) * n_codes + codes[i]
        slot = _slot(np.uint64(number), n_slots)
        while numbers[slot] >= 0 and numbers[slot] != number:
            slot = (slot + 1) & (n_slots - 1)
        numbers[slot] = number
        places[i] = slot
    return n_slots


@njit(cache=True, nogil=True)
def _count(n: int, n_candidates: int, n_places: int, room: Room) -> None:
    """Count in each place whether there is one or more, and a candidate among them."""
    places, counts, _ = room
    for place in range(n_places):
        counts[place] = 0
    for i in range(n_candidates):
        counts[places[i]] = ((counts[places[i]] << 1 | _ONCE) & _OFTEN) | _CANDIDATE
    for i in range(n_candidates, n):
        counts[places[i]] |= (counts[places[i]] << 1 | _ONCE) & _OFTEN


@njit(cache=True, nogil=True)
def _number_groups(depth: int, n_places: int, nodes: Nodes, room: Room) -> None:
    """Number the groups that have a candidate and another; all others are one more, or are left out."""
    (tables, groups, state), (places, counts, numbers) = nodes, room
    n, kept_at = state[depth, 0], state[depth, 3]
    n_groups, n_left = 0, 0
    for place in range(n_places):
        numbers[place] = -1
        if counts[place] == _CANDIDATE | _OFTEN:
            numbers[place] = n_groups
            n_groups += 1
    for i in range(n):
        number = numbers[places[i]]
        groups[depth + 1, i] = number if number >= 0 else n_groups
        n_left += number >= 0
    for part in range(state.shape[1]):
        state[depth + 1, part] = state[depth, part]
    state[depth + 1, 2] = n_groups + 1
    if n_left > _LEFT * n:
        return
    n_candidates, n_left = state[depth, 1], 0
    state[depth + 1, 1] = 0
    for i in range(n):
        if groups[depth + 1, i] < n_groups:
            places[n_left] = i
            n_left += 1
            state[depth + 1, 1] += i < n_candidates
    for key in range(tables.shape[1]):
        for i in range(n_left):
            tables[depth + 1, key, i] = tables[kept_at, key, places[i]]
    for i in range(n_left):
        groups[depth + 1, i] = groups[depth + 1, places[i]]
    state[depth + 1, 0], state[depth + 1, 3] = n_left, depth + 1


@njit(cache=True, nogil=True)
def _report(table: Codes, keys: Ints, room: Room, known: Known, found: Tallies) -> None:
    """Count the minimal uniques of the candidates who are alone in a set of keys."""
    (places, counts, _), (bits, binomials), (of_record, of_code, starts) = room, known, found
    size, rows, before = len(keys), table[-1], np.zeros(bits.shape[1], np.uint64)
    for left_out in range(size if size > 1 else 0):
        place = _place(keys, left_out, binomials)
        for word in range(len(before)):
            before[word] |= bits[place, word]
    for i in range(len(rows)):
        if counts[places[i]] != _ONCE | _CANDIDATE:
            continue
        word, bit = rows[i] >> 6, np.uint64(1) << np.uint64(rows[i] & 63)
        if before[word] & bit:
            continue  # a part of the set was enough
        before[word] |= bit
        of_record[size, rows[i]] += 1
        for key in keys:
            of_code[size, starts[key] + table[key, i]] += 1
    if size < len(of_record) - 1:
        place = _place(keys, size, binomials)
        for word in range(len(before)):
            bits[place, word] = before[word]


@njit(cache=True, nogil=True)
def _place(keys: Ints, left_out: int, binomials: Ints) -> int:
    """Where what is known of a set without one of its keys is kept: smaller sets first."""
    place, size = 0, 0
    for i in range(len(keys)):
        if i != left_out:
            size += 1
            place += binomials[keys[i], size]
    for smaller in range(size):
        place += binomials[-1, smaller]
    return place


@njit(cache=True, nogil=True)
def _add_up(numbers: Ints, worths: Floats) -> Floats:
    """Add up worths one by one, small sizes first."""
    sums = np.zeros(numbers.shape[1])
    for size in range(1, len(worths)):
        for place in range(len(sums)):
            for _ in range(numbers[size, place]):
                sums[place] += worths[size]
    return sums
