"""Leaning on few: where a missing key may be anything, records that show little are like all others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sfumato import kernels
from sfumato.data.classes.classes import Classes
from sfumato.data.classes.packing import Coding, closed_up, number
from sfumato.data.generalised.suppressing import to_missing
from sfumato.data.table import Table
from sfumato.kernels.arrays import Ints
from sfumato.methods._key_cells import ClassSizeRule, KeyCells

if TYPE_CHECKING:
    from sfumato.kernels.wildcard_matching import WildcardMatching

#: From so many records times patterns on, only patterns that lose the telling keys first are tried.
_ALL_UP_TO_PAIRS = 20_000_000


#: Up to so many records and keys changes are exchanged one by one, with so many pairs of records looked at.
_EXCHANGE_UP_TO_RECORDS, _EXCHANGE_UP_TO_KEYS, _PAIRS = 20_000, 12, 50_000_000

#: Up to so many cells all sets of them are gone through, with as much work.
_ALL_SETS_UP_TO_CELLS = 64

#: Why cells of others are not relied on.
TOO_LARGE = (
    "rely_on_others was not used: it does not support combinations of keys where persons have several "
    f"records, or more than {_EXCHANGE_UP_TO_RECORDS} records or {_EXCHANGE_UP_TO_KEYS} keys"
)

#: What is said where the work ended the search.
UNTRIED = "not all exchanges of suppressed cells were tried: fewer suppressed cells may be enough"


def rely_on_wildcards(
    table: Table, cells: KeyCells, asked: Sequence[ClassSizeRule], otherwise: Callable[[], Ints]
) -> tuple[Ints, str]:
    """What each record shows if cells suppressed in some may protect others; and what there is to say of it.

    From several starts, cells are exchanged until no exchange is cheaper; the cheapest of all is taken.
    """
    whole = len(asked) == 1 and asked[0].keys == cells.everything
    small = len(cells) <= _EXCHANGE_UP_TO_RECORDS and len(cells.names) <= _EXCHANGE_UP_TO_KEYS
    if not (small and cells.has_one_record_each):
        return (
            (rely_on_few_wildcards(table, cells, asked[0].k, otherwise), "")
            if whole
            else (otherwise(), TOO_LARGE)
        )
    covered = otherwise()
    few = rely_on_few_wildcards(table, cells, max(each.k for each in asked), lambda: covered)
    best, least, note = covered, np.inf, ""
    for start in (few, cells.in_table_order(cells.shown_patterns), covered):
        state = _state(cells, asked, start)
        cost = kernels.wildcard_matching.improve(state)
        if cost < least - 1e-9:
            best, least, note = (
                cells.in_table_order(state.keys_shown),
                cost,
                "" if state.work[0] > 0 else UNTRIED,
            )
    if len(cells) * len(cells.names) <= _ALL_SETS_UP_TO_CELLS:
        state = _state(cells, asked, best)
        kernels.wildcard_matching.search_all(state, least)
        best, note = cells.in_table_order(state.keys_shown), "" if state.work[0] > 0 else UNTRIED
    return best, note


def _state(cells: KeyCells, asked: Sequence[ClassSizeRule], keys_shown: Ints) -> WildcardMatching:
    return kernels.wildcard_matching.WildcardMatching(
        cells=cells.records.cells,
        shown=cells.shown_patterns,
        keys_shown=keys_shown[cells.order],
        asked=np.array([each.keys for each in asked], dtype=np.int64),
        wanted=np.array([each.k for each in asked], dtype=np.int64),
        counts=np.zeros((len(asked), len(cells)), dtype=np.int64),
        costs=cells.worth(np.arange(1 << len(cells.names), dtype=np.int64)),
        work=np.array([_PAIRS // len(asked)], dtype=np.int64),
    )


def rely_on_few_wildcards(table: Table, cells: KeyCells, k: int, otherwise: Callable[[], Ints]) -> Ints:
    """What each record shows if a few show little so that all others are alike to them; or ``otherwise``.

    For a pattern, as many records of those that agree in it show no more than it as their rarest one lacks
    others alike. Of all patterns and what there is otherwise the cheapest is taken.
    """
    shown = cells.in_table_order(cells.shown_patterns)
    worth = cells.worth(shown)
    sizes = _class_counts(table, cells)
    patterns = cells.patterns()
    if len(patterns) * len(table) > _ALL_UP_TO_PAIRS:
        patterns = _losing_in_turn(cells)
    best, least = shown, np.inf
    for pattern in patterns:
        groups = _groups(cells, pattern)
        people = np.bincount(groups)
        rarest = np.full(len(people), k)
        np.minimum.at(rarest, groups, sizes)
        if people[rarest < k].min(initial=k) < k:
            continue
        lost = worth.mean() - float(cells.worth(np.array([pattern]))[0])
        if float((k - rarest).sum()) * lost < least:
            tried = _match_by_wildcards(table, cells, k, pattern, groups)
            cost = float((worth - cells.worth(tried)).sum())
            if cost < least:
                best, least = tried, cost
    if least <= (sizes < k).sum() * cells.weights.min():  # otherwise each of these loses a cell at least
        return best
    others = otherwise()
    return others if float((worth - cells.worth(others)).sum()) < least else best


def _losing_in_turn(cells: KeyCells) -> list[int]:
    left, patterns = cells.everything, []
    for position in np.argsort(-cells.telling / cells.weights, kind="stable"):
        left &= ~(1 << int(position))
        patterns.append(left)
    return patterns


def _groups(cells: KeyCells, pattern: int) -> Ints:
    """Number the records by their values in the keys of a pattern."""
    positions = [j for j in range(len(cells.names)) if pattern >> j & 1]
    packed = Coding(np.zeros(len(cells), dtype=np.uint64), 1)
    for position in positions:
        column = cells.records.cells[:, position].astype(np.uint64)
        space = int(column.max()) + 1
        packed = closed_up(Coding(packed.codes * np.uint64(space) + column, packed.space * space))
    return cells.in_table_order(number(packed)[0])


def _class_counts(table: Table, cells: KeyCells) -> Ints:
    classes = Classes.of(table, cells.names, missing="any")
    return classes.persons[classes.of_record]


def _match_by_wildcards(table: Table, cells: KeyCells, k: int, pattern: int, groups: Ints) -> Ints:
    """Let the rarest of each group show no more than the pattern, until all have enough alike to them."""
    keys_shown = cells.in_table_order(cells.shown_patterns)
    current = table
    while True:
        sizes = _class_counts(current, cells)
        rarest = np.full(int(groups.max()) + 1, k)
        np.minimum.at(rarest, groups, sizes)
        able = keys_shown & ~pattern != 0
        order = np.lexsort((sizes, ~able, groups))  # by group: those that can lose something, rarest first
        starts = np.searchsorted(groups[order], np.arange(len(rarest)))
        turn = np.arange(len(order)) - starts[groups[order]]
        chosen = order[turn < (k - rarest)[groups[order]]]
        chosen = chosen[able[chosen]]
        if not len(chosen):
            return keys_shown  # nobody is rare, or nothing is left to lose
        keys_shown[chosen] &= pattern
        for position, name in enumerate(cells.names):
            if not pattern >> position & 1:
                rows = np.zeros(len(table), dtype=np.bool_)
                rows[chosen] = True
                current = to_missing(current, name, rows)
