"""The cuts of Mondrian: where a part of the records is cut in two, and by which column."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sfumato.kernels.arrays import Codes, Flags, Floats, Ints
from sfumato.kernels.compiling import njit
from sfumato.kernels.sorting import sort_places

#: How a part may be cut by a column: missing from present, at the middle, where a target is best told.
HOLES, MIDDLE, GAIN = 0, 1, 2


class Keys(NamedTuple):
    """The columns that cuts go by. Code 0 is missing, and counts as the lowest."""

    codes: Codes  # [records, columns]; the records change places as they are cut
    places: Floats  # where each code of an ordered column lies on a scale from 0 to 1, column by column
    place_starts: Ints  # [columns]
    labels: Codes  # the label of each code of a nominal column on each level below the root
    widths: Floats  # the share of the column that this label spans
    label_starts: Ints  # [columns]
    n_codes: Ints  # [columns] code 0 among them
    n_levels: Ints  # [columns] 0: the column is ordered
    importance: Floats  # [columns] what its width counts
    natural: Flags  # [columns] whether the labels of a nominal column are numbered in an order to keep


class CutWorkspace(NamedTuple):
    """Room for what is found out of one part at a time."""

    rows: Ints  # [records] which record lies where
    target: Codes  # [records] the class to be told, where cuts go by it; it moves with the records
    cut_keys: Codes  # [records] below the threshold is left, above it right
    moved: Codes  # [records, columns + 1] the right side's codes and target, while the left moves up
    moved_rows: Ints  # [records]
    counts: Ints  # [codes] all 0 between uses
    found: Ints  # [codes]
    widths: Floats  # [columns]
    missing_counts: Ints  # [columns]


class CutRound(NamedTuple):
    """The open parts: from where to where, what was tried in vain, and how they are cut now."""

    parts: Ints  # [parts, 2]
    tried: Flags  # [parts, columns, kinds]
    cuts: Ints  # [parts, 3] column, kind and place; −1 where there is no cut


class CutRules(NamedTuple):
    """When a cut is allowed."""

    k: int
    relaxed: bool


@njit(cache=True, nogil=True)
def cut_all(keys: Keys, work: CutWorkspace, now: CutRound, rules: CutRules) -> None:
    """Cut each part that is not yet, by the widest column left to try."""
    for number in range(len(now.parts)):
        start, end = now.parts[number, 0], now.parts[number, 1]
        if end - start < 2 * rules.k or now.cuts[number, 0] >= 0:
            continue
        measure_widths(keys, work, (start, end))
        tried = now.tried[number]
        while True:
            column, kind = _widest(work, end - start, tried)
            if column < 0:
                break
            threshold, ties = _place_cut(keys, work, (start, end), (column, kind), rules)
            if threshold >= 0:
                now.cuts[number, 0], now.cuts[number, 1] = column, kind
                now.cuts[number, 2] = separate(keys.codes, work, (start, end), threshold, ties)
                break
            tried[column, kind] = True


@njit(cache=True, nogil=True)
def measure_widths(keys: Keys, work: CutWorkspace, part: tuple[int, int]) -> None:
    """The share of each column that a part spans, and how many are missing."""
    start, end = part
    d = keys.codes.shape[1]
    lows = np.full(d, 2**31 - 1, dtype=np.int64)
    highs = np.zeros(d, dtype=np.int64)
    work.missing_counts[:] = 0
    for i in range(start, end):
        for j in range(d):
            code = keys.codes[i, j]
            if code == 0:
                work.missing_counts[j] += 1
            else:
                lows[j] = min(lows[j], code)
                highs[j] = max(highs[j], code)
    for j in range(d):
        if work.missing_counts[j] > 0:
            work.widths[j] = 1.0 if work.missing_counts[j] < end - start else 0.0
        elif lows[j] == highs[j]:
            work.widths[j] = 0.0
        elif keys.n_levels[j] == 0:
            first = keys.place_starts[j]
            work.widths[j] = keys.places[first + highs[j]] - keys.places[first + lows[j]]
        else:
            level, n_found = _common_level(keys, work, part, j)
            if level < keys.n_levels[j]:
                at = keys.label_starts[j] + level * keys.n_codes[j]
                work.widths[j] = keys.widths[at + work.found[0]]
            else:  # only the root is common: a set of values where there are no levels, else everything
                work.widths[j] = (n_found - 1) / (keys.n_codes[j] - 2) if level == 1 else 1.0
        work.widths[j] *= keys.importance[j]


@njit(cache=True, nogil=True)
def _common_level(keys: Keys, work: CutWorkspace, part: tuple[int, int], column: int) -> tuple[int, int]:
    """The lowest level on which all of a part have one label, the root's if none; and how many codes."""
    n_found = 0
    for i in range(part[0], part[1]):
        code = keys.codes[i, column]
        if code > 0 and work.counts[code] == 0:
            work.counts[code] = 1
            work.found[n_found] = code
            n_found += 1
    for place in range(n_found):
        work.counts[work.found[place]] = 0
    level = keys.n_levels[column]
    while level > 0:
        first = keys.label_starts[column] + (level - 1) * keys.n_codes[column]
        label = keys.labels[first + work.found[0]]
        alike = True
        for place in range(1, n_found):
            alike &= keys.labels[first + work.found[place]] == label
        if not alike:
            break
        level -= 1
    return level, n_found


@njit(cache=True, nogil=True)
def _widest(work: CutWorkspace, size: int, tried: Flags) -> tuple[int, int]:
    """The widest column that can still be tried, and by which kind of cut; −1 if none is left."""
    best, column, kind = 0.0, -1, MIDDLE
    for j in range(len(work.widths)):
        mixed = 0 < work.missing_counts[j] < size and not tried[j, HOLES]
        if work.widths[j] > best and (mixed or not tried[j, MIDDLE]):
            best, column, kind = work.widths[j], j, HOLES if mixed else MIDDLE
    return column, kind


@njit(cache=True, nogil=True)
def _place_cut(
    keys: Keys, work: CutWorkspace, part: tuple[int, int], choice: tuple[int, int], rules: CutRules
) -> tuple[int, int]:
    """Number the records so that the left side is below a threshold; and how many at it go left too.

    The threshold is −1 if the column cannot be cut so that k are left on both sides.
    """
    (start, end), (column, kind) = part, choice
    size = end - start
    if kind == HOLES:
        for i in range(start, end):
            work.cut_keys[i] = keys.codes[i, column] > 0
        lighter, threshold, ties = min(work.missing_counts[column], size - work.missing_counts[column]), 1, 0
    elif keys.n_levels[column] > 0:
        lighter, threshold, ties = _part_labels(keys, work, part, column, rules.k), 1, 0
    else:
        picked = work.moved_rows[:size]
        for i in range(size):
            work.cut_keys[start + i] = picked[i] = keys.codes[start + i, column]
        threshold = _select(picked, size // 2)
        below = upto = 0
        for i in range(start, end):
            below += work.cut_keys[i] < threshold
            upto += work.cut_keys[i] <= threshold
        ties = 0
        lighter = max(below, size - upto)
        if rules.relaxed and lighter > 0:
            lighter, ties = size // 2, size // 2 - below
        elif below < size - upto:
            threshold += 1
    return (threshold, ties) if lighter >= rules.k else (-1, 0)


@njit(cache=True, nogil=True)
def _select(values: Ints, rank: int) -> int:
    """The value of a rank, from 0: those below, at and above a pivot are told apart until it is found."""
    low, high = 0, len(values) - 1
    state = np.uint64(88172645463325252)
    while low < high:
        state ^= state << np.uint64(13)
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        pivot = values[low + np.int64(state % np.uint64(high - low + 1))]
        first, place, last = low, low, high
        while place <= last:
            value = values[place]
            if value < pivot:
                values[place], values[first] = values[first], value
                first += 1
                place += 1
            elif value > pivot:
                values[place], values[last] = values[last], value
                last -= 1
            else:
                place += 1
        if rank < first:
            high = first - 1
        elif rank > last:
            low = last + 1
        else:
            low = high = rank
    return int(values[rank])


@njit(cache=True, nogil=True)
def number_labels(keys: Keys, work: CutWorkspace, part: tuple[int, int], column: int) -> int:
    """Number the records by their label below the lowest common one; missing is a label of its own, 0.

    Returns how many there are. ``found`` has the labels by number, which is as they first occur.
    """
    start, end = part
    level, _ = _common_level(keys, work, part, column)
    first = keys.label_starts[column] + max(level - 1, 0) * keys.n_codes[column]
    n_found = 0
    for i in range(start, end):
        code = keys.codes[i, column]
        label = 0 if code == 0 else keys.labels[first + code]
        if work.counts[label] == 0:
            work.found[n_found] = label
            n_found += 1
            work.counts[label] = n_found
        work.cut_keys[i] = work.counts[label] - 1
    for place in range(n_found):
        work.counts[work.found[place]] = 0
    return n_found


@njit(cache=True, nogil=True)
def _part_labels(keys: Keys, work: CutWorkspace, part: tuple[int, int], column: int, k: int) -> int:
    """Part the labels into two runs of their natural order, the most equal; how many the lighter side has.

    Where there is none, or no run leaves k on both sides, they are dealt out, the most frequent first.
    """
    start, end = part
    n_labels = number_labels(keys, work, part, column)
    amounts, in_order = np.zeros(n_labels, dtype=np.int64), np.arange(n_labels)
    for i in range(start, end):
        amounts[work.cut_keys[i]] += 1
    sort_places(in_order, n_labels, work.found)
    lighter, last, below = 0, 0, 0
    for place in range(n_labels):
        below += amounts[in_order[place]]
        if min(below, end - start - below) > lighter:
            lighter, last = min(below, end - start - below), place
    sides = np.zeros(n_labels, dtype=np.int32)
    if lighter >= k and keys.natural[column]:
        sides[in_order[last + 1 :]] = 1
    else:
        lighter = _deal_out(amounts, in_order, sides)
    for i in range(start, end):
        work.cut_keys[i] = sides[work.cut_keys[i]]
    return lighter


@njit(cache=True, nogil=True)
def _deal_out(amounts: Ints, in_order: Ints, sides: Codes) -> int:
    """Deal labels out to two sides, the most frequent first; how many the lighter side has."""
    n_labels = len(amounts)
    by_amount, rarity = np.arange(n_labels), np.empty(n_labels, dtype=np.int64)
    for place in range(n_labels):
        rarity[in_order[place]] = place - amounts[in_order[place]] * n_labels
    sort_places(by_amount, n_labels, rarity)
    left = right = 0
    for label in by_amount:
        if left <= right:
            left += amounts[label]
        else:
            right += amounts[label]
            sides[label] = 1
    return min(left, right)


@njit(cache=True, nogil=True)
def separate(codes: Codes, work: CutWorkspace, part: tuple[int, int], threshold: int, ties: int) -> int:
    """Move the left side before the right, each in its order; the place between them."""
    start, end = part
    d = codes.shape[1]
    place, aside = start, 0
    with_target = len(work.target) > 0
    for i in range(start, end):
        left = work.cut_keys[i] < threshold
        if work.cut_keys[i] == threshold and ties > 0:
            left = True
            ties -= 1
        if left:
            for j in range(d):
                codes[place, j] = codes[i, j]
            work.rows[place] = work.rows[i]
            if with_target:
                work.target[place] = work.target[i]
            place += 1
        else:
            for j in range(d):
                work.moved[aside, j] = codes[i, j]
            work.moved_rows[aside] = work.rows[i]
            if with_target:
                work.moved[aside, d] = work.target[i]
            aside += 1
    for i in range(aside):
        for j in range(d):
            codes[place + i, j] = work.moved[i, j]
        work.rows[place + i] = work.moved_rows[i]
        if with_target:
            work.target[place + i] = work.moved[i, d]
    return place


@njit(cache=True, nogil=True)
def borders(keys: Keys, cut_at: Ints, starts: Ints) -> Codes:
    """The codes on both sides of the last cut below and above each part, in every ordered column.

    ``cut_at`` has a row for each cut, those of larger parts first: from where to where the part went, where
    it was cut, and by which column.
    """
    found = np.zeros((len(starts) - 1, keys.codes.shape[1], 4), dtype=np.int32)
    for number in range(len(cut_at)):
        start, end, place, column = cut_at[number]
        if keys.n_levels[column] > 0:
            continue
        low, high = 0, 2**31 - 1
        for i in range(start, place):
            low = max(low, keys.codes[i, column])
        for i in range(place, end):
            high = min(high, keys.codes[i, column])
        if low == 0 or low >= high:  # missing from present, or equal values on both sides
            continue
        first, middle, last = (
            np.searchsorted(starts, start),
            np.searchsorted(starts, place),
            np.searchsorted(starts, end),
        )
        for part in range(first, middle):
            found[part, column, 2], found[part, column, 3] = low, high
        for part in range(middle, last):
            found[part, column, 0], found[part, column, 1] = low, high
    return found
