"""Cells of the keys to suppress: the fewest that let enough people be alike in what is still shown.

What a record shows is a pattern, a whole number whose bits are keys in the order of their names.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING

import numpy as np

from sfumato import kernels
from sfumato.core.params import PerColumn
from sfumato.core.run import Run
from sfumato.data.classes.classes import column_codes
from sfumato.data.classes.packing import number
from sfumato.data.persons import persons_of
from sfumato.data.table import Table
from sfumato.errors import RefusedError, UnreachableError
from sfumato.kernels.arrays import Flags, Floats, Ints, count_distinct

if TYPE_CHECKING:
    from sfumato.kernels.suppression import KeyRecords, SafeRecords

#: So many keys fit into a pattern.
MOST_KEYS = 60
#: So many patterns are tried at most: all of up to twelve keys.
_MOST_PATTERNS = 4096
#: Groups of records that lack the same keys; of more, the rarest count for nobody but themselves.
_MOST_GUESTS = 16
#: So many records that no pattern settled are tried to join the classes next to them, one by one.
_MOST_TO_JOIN = 64
#: Up to so many records the best division into classes is found exactly.
_EXACT_UP_TO_RECORDS = 12
#: What is paid for the help of other records, as a share of what is at stake; the best of them is taken.
_BIDS = (-1.0, 0.0, 0.1, 0.25, 0.5, 1.0)
#: From so many records times patterns on, only the bid that is mostly best is tried.
_ALL_BIDS_UP_TO_PAIRS = 20_000_000
_USUAL_BIDS = (0.1,)


@dataclass(frozen=True, eq=False, repr=False)
class KeyCells:
    """The keys of a table as patterns and numbers; what is asked and answered is in the table's order."""

    names: tuple[str, ...]
    weights: Floats  # [keys] what a cell of each costs
    records: KeyRecords  # those of one person next to each other
    order: Ints  # [n] the record of the table that each is
    telling: Floats  # [keys] how far a key tells records apart

    @classmethod
    def of(cls, table: Table, names: Sequence[str], importance: PerColumn[float]) -> KeyCells:
        """Code the keys."""
        names = tuple(sorted(names))
        if len(names) > MOST_KEYS:
            raise RefusedError(f"keys to be suppressed must be at most {MOST_KEYS}, got: {len(names)}")
        persons = persons_of(table)
        order = np.argsort(persons, kind="stable")
        cells = np.zeros((len(table), len(names)), dtype=np.int32)
        holes = np.zeros(len(table), dtype=np.int64)
        telling = np.zeros(len(names))
        start = 0
        for position, name in enumerate(names):
            coding = column_codes(table, name)
            codes, counts = number(coding)
            cells[:, position] = codes[order] + start
            holes |= (coding.codes == 0)[order].astype(np.int64) << position
            start += len(counts)
            telling[position] = np.log1p(len(counts))
        marks = kernels.suppression.marks_of(start)
        records = kernels.suppression.KeyRecords(cells, marks, holes, persons[order])
        weights = np.array([importance[name] * table.schema[name].importance for name in names])
        return cls(names, weights, records, order, telling)

    def __len__(self) -> int:
        return len(self.order)

    def __repr__(self) -> str:  # what is in a traceback must not show its cells
        return f"KeyCells({len(self)} records, {len(self.names)} keys)"

    @property
    def everything(self) -> int:
        """The pattern of all keys."""
        return (1 << len(self.names)) - 1

    @cached_property
    def shown_patterns(self) -> Ints:
        """The pattern of each record as it came, in the order of the persons."""
        return self.everything & ~self.records.missing_keys

    @cached_property
    def has_one_record_each(self) -> bool:
        """Whether every record is another person's."""
        return bool((np.diff(self.records.persons) != 0).all())

    @cached_property
    def n_persons(self) -> int:
        """The number of persons."""
        return count_distinct(self.records.persons)

    def pattern(self, names: Iterable[str]) -> int:
        """The pattern that shows these keys."""
        return sum(1 << self.names.index(name) for name in set(names))

    def worth(self, patterns: Ints) -> Floats:
        """What the cells that each pattern shows would cost to suppress."""
        total = np.zeros(len(patterns))
        for position, weight in enumerate(self.weights):
            total += weight * ((patterns >> position) & 1)
        return total

    def patterns(self, within: int | None = None) -> list[int]:
        """The patterns to be tried, those that show most first; the last shows nothing."""
        keys = self.everything if within is None else within
        found = np.array(sorted(self._worth_trying(keys)), dtype=np.int64)
        tells = np.zeros(len(found))
        for position, telling in enumerate(self.telling):
            tells += telling * ((found >> position) & 1)
        # Of those that show as much, the ones that tell least: in them records agree first.
        order = np.lexsort((found, np.round(tells, 9), -np.round(self.worth(found), 9)))
        return [int(pattern) for pattern in found[order]]

    def _worth_trying(self, keys: int) -> set[int]:
        positions = [j for j in range(len(self.names)) if keys >> j & 1]
        if 2 ** len(positions) <= _MOST_PATTERNS:
            chosen = (part for size in range(len(positions) + 1) for part in combinations(positions, size))
            return {sum(1 << j for j in part) for part in chosen}
        found, size = {0, keys}, 1  # all that suppress few keys, and those that lose the telling ones first
        while sum(comb(len(positions), each) for each in range(size + 1)) <= _MOST_PATTERNS:
            found |= {keys - sum(1 << j for j in part) for part in combinations(positions, size)}
            size += 1
        in_turn = sorted(positions, key=lambda j: (-self.telling[j] / self.weights[j], j))
        for also in (0, *(1 << j for j in positions)):
            left = keys & ~also
            for position in in_turn:
                left &= ~(1 << position)
                found.add(left)
        lacking, counts = np.unique(self.records.missing_keys & keys, return_counts=True)
        often = lacking[np.argsort(-counts, kind="stable")][: _MOST_PATTERNS // 64]
        few = sorted(found, key=lambda pattern: -pattern.bit_count())[: 2 * len(positions)]
        return found | {pattern & ~int(holes) for pattern in few for holes in often}

    def in_table_order(self, values: Ints) -> Ints:
        """Put what was found of each record into the order of the table."""
        placed = np.empty_like(values)
        placed[self.order] = values
        return placed

    def suppressed_cells(self, keys_shown: Ints) -> Flags:
        """Which cells of the table are suppressed if its records, in their order, show only this."""
        positions = np.arange(len(self.names))
        lost = self.in_table_order(self.shown_patterns) & ~keys_shown
        return (lost[:, None] >> positions & 1).astype(np.bool_)


# Whatever a record shows fits k of the originals -------------------------------------------------------


@dataclass(frozen=True)
class ClassSizeRule:
    """At least k people must be alike in these keys."""

    keys: int  # a pattern
    k: int


def cover_originals(cells: KeyCells, asked: Sequence[ClassSizeRule], run: Run, task: str) -> Ints:
    """The most that each record can show so that k originals fit it in all the keys asked for: a pattern.

    An original that lacks a key fits any value of it. Exact where all patterns are tried and persons have
    one record each.
    """
    keys_shown = np.zeros(len(cells), dtype=np.int64)
    rows = np.arange(len(cells), dtype=np.int64)
    union = 0
    for each in asked:
        union |= each.keys
    apart = cells.everything & ~union  # nobody asks for these, so they stay
    rare: dict[ClassSizeRule, Flags] = {}
    for pattern in run.track(task, patterns := cells.patterns(union), len(patterns)):
        if not len(rows):
            break
        fits = cells.records.missing_keys[rows] & pattern == 0
        for each in dict.fromkeys(ClassSizeRule(one.keys & pattern, one.k) for one in asked):
            if each not in rare:
                rare[each] = _rare(cells, each, rows)
            fits &= ~rare[each][rows]
        if len(asked) == 1:
            rare.clear()  # each is asked once
        keys_shown[rows[fits]] = pattern
        rows = rows[~fits]
    if len(rows):
        raise too_few(cells, max(each.k for each in asked))
    return cells.in_table_order(keys_shown | (cells.shown_patterns & apart))


def too_few(cells: KeyCells, k: int) -> UnreachableError:
    """The error of a table that has not enough people."""
    return UnreachableError(
        f"k = {k} needs a table of at least {k} people, got: {cells.n_persons}", hint="choose a smaller k"
    )


def _rare(cells: KeyCells, asked: ClassSizeRule, rows: Ints) -> Flags:
    """Which of these records fewer than k originals fit, if they show just the keys asked for."""
    records, count = cells.records, kernels.suppression.count_matching
    matching = rows[records.missing_keys[rows] & asked.keys == 0]
    counts = count(records, np.arange(len(cells), dtype=np.int64), matching, asked.keys)
    if cells.has_one_record_each:
        few = counts < asked.k
        for holes, matched in _incomplete(cells):
            if holes & asked.keys and few.any():
                counts[few] += count(records, matched, matching[few], asked.keys & ~holes)
                few = counts < asked.k
    rare = np.ones(len(cells), dtype=np.bool_)
    rare[matching] = counts < asked.k
    return rare


def _incomplete(cells: KeyCells) -> list[tuple[int, Ints]]:
    """The records that lack keys, by the keys they lack: the most frequent patterns."""
    lacking, counts = np.unique(cells.records.missing_keys, return_counts=True)
    often = lacking[np.argsort(-counts, kind="stable")]
    often = often[often > 0][:_MOST_GUESTS]
    return [(int(holes), np.flatnonzero(cells.records.missing_keys == holes)) for holes in often]


# Records that show the same are a class of k -----------------------------------------------------------


def form_classes(cells: KeyCells, asked: ClassSizeRule, run: Run, task: str) -> Ints:
    """What each record can show so that at least k show the same, a missing key being a value: a pattern.

    The fewest cells on tables of a few records, few on others.
    """
    if cells.n_persons < asked.k:
        raise too_few(cells, asked.k)
    apart = cells.everything & ~asked.keys
    if len(cells) <= _EXACT_UP_TO_RECORDS and cells.has_one_record_each and not apart:
        groups, _ = kernels.suppression.best_partition(
            cells.records.cells, cells.records.missing_keys, asked.k, cells.weights
        )
        return cells.in_table_order(_agreeing_keys(cells, groups, cells.everything))
    patterns = cells.patterns(asked.keys)
    bids = _BIDS if len(cells) * len(patterns) < _ALL_BIDS_UP_TO_PAIRS else _USUAL_BIDS
    best, least = cells.shown_patterns, np.inf
    for bid in run.track(task, bids if cells.has_one_record_each else (-1.0,), len(bids)):
        keys_shown = _settle_classes(cells, asked, patterns, bid, run)
        cost = float(cells.worth(cells.shown_patterns & asked.keys & ~keys_shown).sum())
        if cost < least:
            best, least = keys_shown, cost
    return cells.in_table_order(best | (cells.shown_patterns & apart))


def _settle_classes(
    cells: KeyCells, asked: ClassSizeRule, patterns: Sequence[int], bid: float, run: Run
) -> Ints:
    """Go through the patterns, those that show most first, and give a class to whom they can."""
    n = len(cells)
    state: SafeRecords = kernels.suppression.SafeRecords(
        keys_shown=np.full(n, -1, dtype=np.int64),
        classes=np.full(n, -1, dtype=np.int64),
        sizes=np.zeros(2 * n + 1, dtype=np.int64),
        order=np.zeros(n, dtype=np.int64),
        counts=np.zeros(2, dtype=np.int64),
    )
    rows = np.arange(n, dtype=np.int64)
    for pattern in patterns[:-1]:
        run.check()
        if len(rows):
            terms = kernels.suppression.Terms(asked.k, bid, cells.weights)
            rows = kernels.suppression.settle(cells.records, state, rows, pattern, terms)
    return _place_unsettled(cells, asked, state, rows)


def _place_unsettled(cells: KeyCells, asked: ClassSizeRule, state: SafeRecords, rows: Ints) -> Ints:
    """Place the records that no pattern settled: they show nothing, or join the classes next to them."""
    ways = []
    if len(rows) <= _MOST_TO_JOIN and state.counts[0]:
        joined = type(state)(*(each.copy() for each in state))
        for row in rows:
            _join_nearest(cells, joined, int(row), asked.keys)
        ways.append(_agreeing_keys(cells, joined.classes, asked.keys))
    if len(rows):
        price = np.inf if cells.has_one_record_each else -1.0
        terms = kernels.suppression.Terms(asked.k, price, cells.weights)
        left = kernels.suppression.settle(cells.records, state, rows, 0, terms)
        for row in left:  # fewer than k, and nobody who could help them
            _join_nearest(cells, state, int(row), asked.keys)
        ways.append(_agreeing_keys(cells, state.classes, asked.keys))
    return min(ways, key=lambda keys_shown: -float(cells.worth(keys_shown).sum()))


def _join_nearest(cells: KeyCells, state: SafeRecords, row: int, keys: int) -> None:
    """Put a record into the class that loses least by it."""
    records = cells.records
    members = state.order[: state.counts[0]]
    agreed = state.keys_shown[members].copy()
    for position in range(len(cells.names)):
        differs = records.cells[members, position] != records.cells[row, position]
        agreed[differs | bool(records.missing_keys[row] >> position & 1)] &= ~(1 << position)
    lost = cells.worth(state.keys_shown[members]) - cells.worth(agreed)
    classes = state.classes[members]
    costs = np.bincount(classes, weights=lost, minlength=int(state.counts[1]))
    own = np.full(len(costs), -np.inf)
    own[classes] = -cells.worth(agreed)  # the same for all of a class
    costs = np.where(np.isneginf(own), np.inf, costs + own)  # a class may have been left by all
    best = int(np.argmin(costs))
    joined = members[classes == best]
    pattern = agreed[classes == best][0] & keys
    state.keys_shown[joined] = state.keys_shown[row] = pattern
    state.classes[row] = best
    state.order[state.counts[0]] = row
    state.counts[0] += 1


def _agreeing_keys(cells: KeyCells, classes: Ints, keys: int) -> Ints:
    """The keys in which all records of a class have the same value, for each record."""
    order = np.argsort(classes, kind="stable")
    starts = np.flatnonzero(np.diff(classes[order], prepend=-1))
    sizes = np.diff(np.append(starts, len(classes)))
    agreed = keys & ~np.bitwise_or.reduceat(cells.records.missing_keys[order], starts)
    for position in range(len(cells.names)):
        column = cells.records.cells[order, position]
        differ = np.minimum.reduceat(column, starts) != np.maximum.reduceat(column, starts)
        agreed[differ] &= ~(1 << position)
    keys_shown = np.empty(len(classes), dtype=np.int64)
    keys_shown[order] = np.repeat(agreed, sizes)
    return keys_shown
