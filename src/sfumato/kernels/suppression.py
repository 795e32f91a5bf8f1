"""Which cells to suppress: who is alike in the keys that are still shown, pattern by pattern.

A pattern is a whole number whose bits are the keys shown. Records are told from each other by the sum of
random-looking numbers, one for each cell shown: equal cells give equal sums, and different ones the same with
a chance of 2⁻⁶⁴, so whoever uses what is found here counts again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sfumato.kernels.arrays import Codes, Floats, Ints
from sfumato.kernels.compiling import by_python, njit
from sfumato.kernels.threads import CompileAllowance

_FEW_RECORDS = 2_000  # up to which
_ALLOWANCE = CompileAllowance(4_000_000)  # records are looked at by numpy
SPREAD = -7046029254386353131  # 2⁶⁴ divided by the golden ratio, odd: multiplying by it spreads the keys


class KeyRecords(NamedTuple):
    """The keys of all records; those of one person stand next to each other."""

    cells: Codes  # [n, keys] the place of each cell's number among `marks`
    marks: Ints  # one random-looking number for each value of each key
    missing_keys: Ints  # [n] the keys that a record lacks, as bits
    persons: Ints  # [n]


class Terms(NamedTuple):
    """What a class needs, and what it may cost.

    ``bid`` is what the help of records of larger classes may cost, as a share of all that the open records of
    a group have left to lose; below 0 nobody is asked, infinity is any price.
    """

    k: int
    bid: float
    weights: Floats  # [keys] what a cell of each key costs


class SafeRecords(NamedTuple):
    """Records whose class is large enough, changed in place."""

    keys_shown: Ints  # [n] the pattern that each shows; −1 while it has no class
    classes: Ints  # [n]
    sizes: Ints  # [2n] of the classes, by number
    order: Ints  # [n] the records that have a class, in the order in which they got one
    counts: Ints  # [2] how many records have a class, and how many classes there are


def marks_of(n: int) -> Ints:
    """Random-looking numbers for ``n`` values, always the same (SplitMix64)."""
    marks = (np.arange(1, n + 1, dtype=np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
    marks = (marks ^ (marks >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    marks = (marks ^ (marks >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (marks ^ (marks >> np.uint64(31))).view(np.int64)


@njit(cache=True, nogil=True)
def count_matching(records: KeyRecords, matched: Ints, matching: Ints, keys_shown: int) -> Ints:
    """How many persons among the guests show what each host shows in the keys kept.

    Parameters
    ----------
    matched : int64[m]
        Records, ascending; those that lack one of the keys kept count for nobody.
    matching : int64[h]
        Records that have all keys kept.
    keys_shown : int
        The pattern.

    Returns
    -------
    int64[h]
    """
    found = _group_records(records, matching, keys_shown)
    counts = np.zeros(len(found.persons), dtype=np.int64)
    last = np.full(len(found.persons), np.iinfo(np.int64).min, dtype=np.int64)
    for guest in matched:
        if records.missing_keys[guest] & keys_shown:
            continue
        group = found.numbers[_place(found.sums, found.numbers, _sum(records, guest, keys_shown))]
        if group >= 0 and last[group] != records.persons[guest]:
            last[group] = records.persons[guest]
            counts[group] += 1
    return counts[found.of_open]


class _KeyGroups(NamedTuple):
    """Open records that agree in the keys kept."""

    sums: Ints  # a table with open addressing
    numbers: Ints  # of the groups, by place in the table; −1: nothing there
    of_open: Ints  # [open] −1: the record lacks a key
    persons: Ints  # [groups]
    records: Ints  # [groups]


@njit(cache=True, nogil=True)
def _sum(records: KeyRecords, row: int, keys_shown: int) -> int:
    total = 0
    for j in range(records.cells.shape[1]):
        if keys_shown >> j & 1:
            total += records.marks[records.cells[row, j]]
    return total


@njit(cache=True, nogil=True)
def _place(sums: Ints, numbers: Ints, total: int) -> int:
    """Where a sum stands in the table, or would stand."""
    place = (total * SPREAD >> 20) & (len(sums) - 1)
    while numbers[place] >= 0 and sums[place] != total:
        place = (place + 1) & (len(sums) - 1)
    return place


@njit(cache=True, nogil=True)
def _group_records(records: KeyRecords, rows: Ints, keys_shown: int) -> _KeyGroups:
    n, n_places = len(rows), 4
    while n_places < 2 * n:
        n_places *= 2
    sums = np.empty(n_places, dtype=np.int64)
    numbers = np.full(n_places, -1, dtype=np.int64)
    of_open = np.full(n, -1, dtype=np.int64)
    last = np.full(n, np.iinfo(np.int64).min, dtype=np.int64)
    persons, members = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    n_groups = 0
    for i in range(n):
        row = rows[i]
        if records.missing_keys[row] & keys_shown:
            continue
        total = _sum(records, row, keys_shown)
        place = _place(sums, numbers, total)
        if numbers[place] < 0:
            sums[place], numbers[place] = total, n_groups
            n_groups += 1
        group = numbers[place]
        of_open[i] = group
        members[group] += 1
        if last[group] != records.persons[row]:
            last[group] = records.persons[row]
            persons[group] += 1
    return _KeyGroups(sums, numbers, of_open, persons[:n_groups], members[:n_groups])


def settle(records: KeyRecords, settled: SafeRecords, rows: Ints, keys_shown: int, terms: Terms) -> Ints:
    """Give a class to open records that are k alike in the keys kept, if need be with the help of others.

    Parameters
    ----------
    rows : int64[open]
        The records that have no class yet, ascending.
    keys_shown : int
        The pattern.

    Returns
    -------
    int64[still open]

    Notes
    -----
    Those who help leave a class that is still large enough without them; the ones who show least are asked
    first, since they lose least. **Cost:** one pass over all records.
    """
    n = len(settled.order)
    with by_python(n <= _FEW_RECORDS and _ALLOWANCE.takes(n + 1000)):
        return _settle(records, settled, rows, keys_shown, terms)


def _settle_few(records: KeyRecords, settled: SafeRecords, rows: Ints, keys_shown: int, terms: Terms) -> Ints:
    """As `_settle`, by numpy."""
    sums, found = _group_few(records, rows, keys_shown)
    n_groups, k = len(found.persons), terms.k
    answers = _Answers(
        np.full(n_groups, -1), k - found.persons, np.zeros(n_groups), np.empty((0, 2), np.int64)
    )
    if n_groups and answers.needs.max() > 0:
        answers = answers._replace(helpers=_ask_few(records, settled, (sums, keys_shown), terms, answers))
    homes, needs, prices, helpers = answers
    left = 0.0
    for j, weight in enumerate(terms.weights.tolist()):
        left += weight * (keys_shown >> j & 1)
    helped = (homes < 0) & (found.persons < k)
    dear = prices > terms.bid * found.records * left if not np.isinf(terms.bid) else np.False_
    stays_open = helped & ((needs > 0) | dear)
    new = ~stays_open & (homes < 0)
    homes[new] = settled.counts[1] + np.arange(np.count_nonzero(new))
    settled.counts[1] += np.count_nonzero(new)
    np.add.at(settled.sizes, homes[~stays_open], found.persons[~stays_open])
    joining = (helped & ~stays_open)[helpers[:, 1]]
    settled.keys_shown[helpers[joining, 0]] = keys_shown
    settled.classes[helpers[joining, 0]] = homes[helpers[joining, 1]]
    np.add.at(settled.sizes, settled.classes[helpers[:, 0]], 1)  # of the new class, or back in the old one
    safe = found.of_open >= 0
    safe[safe] = ~stays_open[found.of_open[safe]]
    settled.keys_shown[rows[safe]], settled.classes[rows[safe]] = keys_shown, homes[found.of_open[safe]]
    first = settled.counts[0]
    settled.counts[0] += np.count_nonzero(safe)
    settled.order[first : settled.counts[0]] = rows[safe]
    return rows[~safe]


def _sums_of(records: KeyRecords, rows: Ints, keys_shown: int) -> Ints:
    shown = [j for j in range(records.cells.shape[1]) if keys_shown >> j & 1]
    return np.asarray(records.marks[records.cells[rows[:, None], shown]].sum(axis=1))


def _group_few(records: KeyRecords, rows: Ints, keys_shown: int) -> tuple[dict[int, int], _KeyGroups]:
    """The group of each sum, numbered as they first occur; and the groups, without a table."""
    whole = (records.missing_keys[rows] & keys_shown) == 0
    sums = _sums_of(records, rows[whole], keys_shown)
    distinct, firsts, inverse = np.unique(sums, return_index=True, return_inverse=True)
    numbers = np.empty(len(distinct), dtype=np.int64)
    numbers[np.argsort(firsts)] = np.arange(len(distinct))
    groups = numbers[inverse]
    order = np.argsort(groups, kind="stable")
    persons, by_group = records.persons[rows[whole]][order], groups[order]
    opens = np.ones(len(order), dtype=np.bool_)
    opens[1:] = (persons[1:] != persons[:-1]) | (by_group[1:] != by_group[:-1])
    of_open = np.full(len(rows), -1, dtype=np.int64)
    of_open[whole] = groups
    counts = (np.bincount(each, minlength=len(distinct)) for each in (by_group[opens], groups))
    return dict(zip(distinct.tolist(), numbers.tolist(), strict=True)), _KeyGroups(
        distinct, numbers, of_open, *counts
    )


def _ask_few(
    records: KeyRecords,
    settled: SafeRecords,
    wanted: tuple[dict[int, int], int],
    terms: Terms,
    answers: _Answers,
) -> Ints:
    """As `_ask`, of those who can be of any help; returns who helps, and which group."""
    group_of, keys_shown = wanted
    rows = settled.order[: settled.counts[0]][::-1]
    shown = settled.keys_shown[rows]
    asked = shown == keys_shown
    if terms.bid >= 0:
        asked |= ((shown & keys_shown) == keys_shown) & (settled.sizes[settled.classes[rows]] > terms.k)
    rows, helpers = rows[asked], []
    sums = _sums_of(records, rows, keys_shown).tolist()
    for row, pattern, total in zip(rows.tolist(), shown[asked].tolist(), sums, strict=True):
        group = group_of.get(total, -1)
        if group < 0:
            continue
        own = settled.classes[row]
        if pattern == keys_shown:
            answers.homes[group] = own
        elif answers.needs[group] > 0 and settled.sizes[own] > terms.k:
            answers.needs[group] -= 1
            settled.sizes[own] -= 1
            for j, weight in enumerate(terms.weights):
                answers.prices[group] += weight * ((pattern & ~keys_shown) >> j & 1)
            helpers.append((row, group))
    return np.array(helpers, dtype=np.int64).reshape(-1, 2)


@njit(_settle_few, cache=True, nogil=True)
def _settle(records: KeyRecords, settled: SafeRecords, rows: Ints, keys_shown: int, terms: Terms) -> Ints:
    found = _group_records(records, rows, keys_shown)
    n_groups, k = len(found.persons), terms.k
    homes, needs = np.full(n_groups, -1, dtype=np.int64), np.empty(n_groups, dtype=np.int64)
    n_in_need = 0
    for group in range(n_groups):  # numpy's own maximum takes half a second to compile
        needs[group] = k - found.persons[group]
        n_in_need += needs[group] > 0
    prices = np.zeros(n_groups)
    helpers = np.empty((settled.counts[0], 2), dtype=np.int64)
    n_helpers = 0
    if n_in_need:
        answers = _Answers(homes, needs, prices, helpers)
        n_helpers = _ask(records, settled, (found, keys_shown), terms, answers)
    left = 0.0
    for j in range(len(terms.weights)):
        left += terms.weights[j] * (keys_shown >> j & 1)
    for group in range(n_groups):
        helped = homes[group] < 0 and found.persons[group] < k
        dear = not np.isinf(terms.bid) and prices[group] > terms.bid * found.records[group] * left
        if helped and (needs[group] > 0 or dear):
            needs[group] = -1  # stays open
            continue
        needs[group] = 1 if helped else 0  # with or without helpers
        if homes[group] < 0:
            homes[group] = settled.counts[1]
            settled.counts[1] += 1
        settled.sizes[homes[group]] += found.persons[group]
    for i in range(n_helpers):
        row, group = helpers[i, 0], helpers[i, 1]
        if needs[group] == 1:
            settled.keys_shown[row], settled.classes[row] = keys_shown, homes[group]
        settled.sizes[settled.classes[row]] += 1  # of the new class, or back in the old one
    still = np.empty(len(rows), dtype=np.int64)
    n_still = 0
    for i in range(len(rows)):
        group, row = found.of_open[i], rows[i]
        if group < 0 or needs[group] < 0:
            still[n_still] = row
            n_still += 1
            continue
        settled.keys_shown[row], settled.classes[row] = keys_shown, homes[group]
        settled.order[settled.counts[0]] = row
        settled.counts[0] += 1
    return still[:n_still]


class _Answers(NamedTuple):
    """What was found for each group of open records."""

    homes: Ints  # a class that shows just the same; −1: none
    needs: Ints  # how many it still lacks
    prices: Floats  # what its helpers lose
    helpers: Ints  # [records, 2] who helps, and which group


@njit(cache=True, nogil=True)
def _ask(
    records: KeyRecords, settled: SafeRecords, wanted: tuple[_KeyGroups, int], terms: Terms, answers: _Answers
) -> int:
    """Find for each group a class that it can join, or records of larger classes that can join it."""
    found, keys_shown = wanted
    homes, needs, prices, helpers = answers
    weights = terms.weights
    n_helpers = 0
    for s in range(settled.counts[0] - 1, -1, -1):
        row = settled.order[s]
        shown, own = settled.keys_shown[row], settled.classes[row]
        if shown & keys_shown != keys_shown or (
            shown != keys_shown and (terms.bid < 0 or settled.sizes[own] <= terms.k)
        ):
            continue
        group = found.numbers[_place(found.sums, found.numbers, _sum(records, row, keys_shown))]
        if group < 0:
            continue
        if shown == keys_shown:
            homes[group] = own
        elif needs[group] > 0:
            needs[group] -= 1
            settled.sizes[own] -= 1
            for j in range(len(weights)):
                prices[group] += weights[j] * ((shown & ~keys_shown) >> j & 1)
            helpers[n_helpers, 0], helpers[n_helpers, 1] = row, group
            n_helpers += 1
    return n_helpers


@njit(cache=True, nogil=True)
def best_partition(cells: Codes, holes: Ints, k: int, weights: Floats) -> tuple[Ints, float]:
    """Divide a few records into groups of at least k so that suppressing what differs costs least: exactly.

    Parameters
    ----------
    cells : int32[n, keys]
        Up to about 14 records.
    holes : int64[n]
        The keys that a record lacks, as bits.
    weights : float64[keys]

    Returns
    -------
    int64[n], float
        The group of each record, and the cost; infinite if there are fewer than k records.

    Notes
    -----
    A group of 2k records can be divided at no cost, so that no larger ones are looked at.
    **Cost:** up to :math:`3^n` pairs of sets.
    """
    n, n_keys = cells.shape
    n_sets = 1 << n
    costs = np.full(n_sets, np.inf)  # of one group
    for members in range(1, n_sets):
        size, first = 0, -1
        for i in range(n):
            if members >> i & 1:
                size += 1
                first = i if first < 0 else first
        if not k <= size < 2 * k:
            continue
        costs[members] = 0.0
        for j in range(n_keys):
            shown, alike = 0, True
            for i in range(n):
                if members >> i & 1:
                    there = not holes[i] >> j & 1
                    shown += there
                    alike &= there and cells[i, j] == cells[first, j]
            if not alike:
                costs[members] += weights[j] * shown
    best = np.full(n_sets, np.inf)
    choice = np.zeros(n_sets, dtype=np.int64)
    best[0] = 0.0
    for members in range(1, n_sets):
        lowest = members & -members
        rest = members ^ lowest
        part = rest
        while True:  # all subsets of the rest, together with the first of them
            group = part | lowest
            cost = costs[group] + best[members ^ group]
            if cost < best[members]:
                best[members], choice[members] = cost, group
            if part == 0:
                break
            part = (part - 1) & rest
    groups = np.zeros(n, dtype=np.int64)
    members, number = n_sets - 1, 0
    while members and best[n_sets - 1] < np.inf:
        for i in range(n):
            if choice[members] >> i & 1:
                groups[i] = number
        members ^= choice[members]
        number += 1
    return groups, best[n_sets - 1]
