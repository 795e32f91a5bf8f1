"""How well every subset of columns tells records apart, by a recursion that leaves out who is told apart.

Column by column each is taken into the subset or left out. Records are grouped by the columns taken, and of a
group only those are told apart that differ in a column to come: leaving a column out makes records equal, and
a group of equal records stays as it is whatever is taken, so that it is looked at no more.
"""

from __future__ import annotations

from math import comb
from typing import NamedTuple, TypeAlias

import numpy as np

from sfumato.kernels.arrays import Codes, Ints
from sfumato.kernels.compiling import njit

#: What is looked at: what each row has in the columns to come, the records it stands for, ends of groups.
Rows: TypeAlias = tuple[Codes, Ints, Ints]
#: For each value: how many rows have it, how many records, and where its rows go.
Room: TypeAlias = tuple[Ints, Ints, Ints]


class Separations(NamedTuple):
    """What each subset does: its columns as bits, its classes, and the records that are equal in it."""

    subsets: Ints
    classes: Ints
    pairs: Ints  # of equal records
    alone: Ints  # records without an equal


def separate(codes: Codes, largest: int) -> Separations:
    """Count the classes of every subset of one to ``largest`` columns.

    Parameters
    ----------
    codes : int32[columns, n]
        From 0, of at most 62 columns; work is least if the first have the most codes.
    """
    n_columns, n = codes.shape
    n_subsets = sum(comb(n_columns, size) for size in range(1, largest + 1))
    found = Separations(*(np.zeros(n_subsets, np.int64) for _ in range(4)))
    if not n:
        return found
    # A rest is what a record has in all columns from one on; of each its code in that, and the rest of it.
    values, nexts = np.zeros((n_columns, n), np.int32), np.zeros((n_columns, n), np.int32)
    rests = np.zeros(n, np.int64)
    for column in reversed(range(n_columns)):
        pairs = rests * (int(codes[column].max()) + 1) + codes[column]
        _, examples, numbers = np.unique(pairs, return_index=True, return_inverse=True)
        values[column, : len(examples)] = codes[column, examples]
        nexts[column, : len(examples)] = rests[examples]
        rests = numbers.astype(np.int64)
    counts = np.bincount(rests)
    _search(values[:, : len(counts)], nexts[:, : len(counts)], counts, largest, found)
    return found


@njit(cache=True, nogil=True)
def _search(values: Codes, nexts: Codes, counts: Ints, largest: int, found: Separations) -> None:
    """Take or leave out each column: first it is taken, and all that follows, then left out."""
    n_columns, n = values.shape
    rests, sizes = np.empty((n_columns, n), np.int32), np.empty((n_columns, n), np.int64)
    ends, n_groups = np.empty((n_columns, n // 2 + 1), np.int64), np.zeros(n_columns, np.int64)
    settled, done = np.zeros((n_columns + 1, 3), np.int64), np.zeros(n_columns, np.int64)
    width = values.max() + 1
    room = np.zeros(width, np.int64), np.zeros(width, np.int64), np.zeros(width, np.int64)
    ends[0, 0], n_groups[0] = n, 1
    for i in range(n):  # to copy a row takes seconds to compile, because its errors speak
        rests[0, i], sizes[0, i] = i, counts[i]
    subset, n_taken, place, level, last = np.int64(0), 0, 0, 0, n_columns - 1
    while level >= 0:
        before, below = (rests[level], sizes[level], ends[level, : n_groups[level]]), min(level + 1, last)
        after = rests[below], sizes[below], ends[below]
        for part in range(3):
            settled[level + 1, part] = settled[level, part]
        if done[level] == 0:
            subset |= np.int64(1) << level
            n_taken += 1
            if level == last:  # rows of a group differ in nothing else: each is a class
                for i in range(before[2][-1] if n_groups[level] else 0):
                    _count(sizes[level, i], settled[level + 1])
                _note(found, place, subset, settled[level + 1])
            else:
                columns = values[level], nexts[level]
                goes_on = n_taken < largest
                n_groups[below], still = _take(columns, before, after, settled[level + 1], goes_on, room)
                _note(found, place, subset, settled[level + 1] + still)
            place += 1
        elif done[level] == 1:
            subset ^= np.int64(1) << level
            n_taken -= 1
            if level < last:
                n_groups[below] = _leave_out(nexts[level], before, after, settled[level + 1])
        else:
            level -= 1
            continue
        done[level] += 1
        if level < last and n_taken < largest:
            level += 1
            done[level] = 0


@njit(cache=True, nogil=True)
def _note(found: Separations, place: int, subset: np.int64, totals: Ints) -> None:
    found.subsets[place], found.classes[place] = subset, totals[0]
    found.pairs[place], found.alone[place] = totals[1], totals[2]


@njit(cache=True, nogil=True)
def _take(  # noqa: PLR0917  — arrays of one search
    columns: tuple[Codes, Codes],
    before: Rows,
    after: Rows,
    settled: Ints,
    goes_on: bool,  # noqa: FBT001
    room: Room,
) -> tuple[int, Ints]:
    """Cut groups finer by a column: one row alone is settled; count the others, and keep them if wanted."""
    (values, nexts), (rests, sizes, ends), (finer, finer_sizes, finer_ends) = columns, before, after
    n_rows, amounts, places = room
    n_finer, cursor, start, still = 0, 0, 0, np.zeros(3, np.int64)
    for end in ends:
        for i in range(start, end):
            value = values[rests[i]]
            n_rows[value] += 1
            amounts[value] += sizes[i]
        for i in range(start, end):
            value = values[rests[i]]
            if n_rows[value] == 1:
                _count(sizes[i], settled)
                continue
            if amounts[value] > 0:  # else it was counted before
                _count(amounts[value], still)
                amounts[value] = 0
                places[value] = cursor
                cursor += n_rows[value]
                finer_ends[n_finer] = cursor
                n_finer += 1
            if goes_on:
                finer[places[value]] = nexts[rests[i]]
                finer_sizes[places[value]] = sizes[i]
                places[value] += 1
        for i in range(start, end):
            n_rows[values[rests[i]]], amounts[values[rests[i]]] = 0, 0
        start = end
    return n_finer, still


@njit(cache=True, nogil=True)
def _leave_out(nexts: Codes, before: Rows, after: Rows, settled: Ints) -> int:
    """Let rows be one that differ in a column only, which follow one another; one row alone is settled."""
    (rests, sizes, ends), (coarser, coarser_sizes, coarser_ends) = before, after
    n_coarser, cursor, start = 0, 0, 0
    for end in ends:
        first, last = cursor, -1
        for i in range(start, end):
            rest = nexts[rests[i]]
            if rest == last:
                coarser_sizes[cursor - 1] += sizes[i]
                continue
            coarser[cursor], coarser_sizes[cursor], last = rest, sizes[i], rest
            cursor += 1
        if cursor == first + 1:
            _count(coarser_sizes[first], settled)
            cursor = first
        else:
            coarser_ends[n_coarser] = cursor
            n_coarser += 1
        start = end
    return n_coarser


@njit(cache=True, nogil=True)
def _count(size: int, totals: Ints) -> None:
    """Count a class of so many records: itself, its pairs, and who is alone in it."""
    totals[0] += 1
    totals[1] += size * (size - 1) // 2
    totals[2] += size == 1
