"""Shortest paths: the exact end of an assignment, one augmentation after the other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sfumato.kernels.arrays import Flags, Ints
from sfumato.kernels.assignment.costs import NEVER
from sfumato.kernels.assignment.market import BidLists, Market, drop, take
from sfumato.kernels.compiling import njit

SETTLED, PAUSED, WAITING = 0, 1, 2


class Paths(NamedTuple):
    """Work space of `augment`, so that it can be called again and again."""

    distances: Ints  # [column]
    from_rows: Ints  # [column] the row from which it was reached
    from_costs: Ints  # [column] what it costs that row
    is_settled: Flags  # [column]
    is_seen: Flags  # [row]
    via: Ints  # [row] the column from which it was reached
    is_hopeless: Flags  # [row] it has units that can never be placed
    at: Ints  # [1] the row to go on with after a pause


def open_paths(n_rows: int, n_columns: int) -> Paths:
    """Make the work space."""
    return Paths(
        np.full(n_columns, NEVER), np.zeros(n_columns, np.int64), np.zeros(n_columns, np.int64),
        np.zeros(n_columns, np.bool_), np.zeros(n_rows, np.bool_), np.zeros(n_rows, np.int64),
        np.zeros(n_rows, np.bool_), np.zeros(1, np.int64),
    )  # fmt: skip


@njit(cache=True, nogil=True)
def _push(keys: Ints, items: Ints, size: int, key: int, item: int) -> None:
    """Add an entry to a heap of ``size``."""
    place = size
    while place > 0:
        parent = (place - 1) >> 1
        if keys[parent] <= key:
            break
        keys[place], items[place] = keys[parent], items[parent]
        place = parent
    keys[place], items[place] = key, item


@njit(cache=True, nogil=True)
def _pop(keys: Ints, items: Ints, size: int) -> None:
    """Take the top off a heap of ``size``: its last entry moves there and sinks."""
    key, item = keys[size - 1], items[size - 1]
    place = 0
    while True:
        child = 2 * place + 1
        if child >= size - 1:
            break
        if child + 1 < size - 1 and keys[child + 1] < keys[child]:
            child += 1
        if keys[child] >= key:
            break
        keys[place], items[place] = keys[child], items[child]
        place = child
    keys[place], items[place] = key, item


@njit(cache=True, nogil=True)
def _double_room(values: Ints) -> Ints:
    """Make room for as many again."""
    longer = np.empty(2 * len(values), dtype=np.int64)
    for i in range(len(values)):  # an assignment of slices takes seconds to compile
        longer[i] = values[i]
    return longer


@njit(cache=True, nogil=True)
def _holding_of(market: Market, column: int, row: int) -> int:
    """Return a holding of the row in the column."""
    holding = market.starts[column]
    while market.holders[holding] != row:
        holding += 1
    return holding  # type: ignore[no-any-return]


@njit(cache=True, nogil=True)
def _shift(market: Market, paths: Paths, root: int, end: int) -> None:
    """Move as many units as the path allows, along it from the root to the column at its end."""
    n_units = min(market.left[root], market.rooms[end] - market.filled[end])
    row = paths.from_rows[end]
    while row != root:
        column = paths.via[row]
        n_units = min(n_units, market.units[_holding_of(market, column, row)])
        row = paths.from_rows[column]
    column = end
    while True:
        row = paths.from_rows[column]
        cost = paths.from_costs[column]
        if row == root:
            take(market, column, row, n_units, market.prices[column], cost)
            return
        before = paths.via[row]
        drop(market, before, _holding_of(market, before, row), n_units)
        take(market, column, row, n_units, market.prices[column], cost)
        column = before


@njit(cache=True, nogil=True)
def augment(lists: BidLists, market: Market, paths: Paths, wanted: Flags, max_scans: int) -> int:
    """Place units that are left by shortest augmenting paths (Dijkstra on reduced costs).

    Every holding must be as good for its row as anything listed or not. A path is taken only if no column
    that is not listed could make it shorter; otherwise the rows that would have to be searched for are marked
    as wanted. Returns `SETTLED`, `PAUSED` after so many entries read, or `WAITING` for wanted rows.
    """
    keys, items = np.empty(1024, dtype=np.int64), np.empty(1024, dtype=np.int64)
    touched = np.empty(len(market.prices), np.int64)
    seen, horizons = np.empty(len(market.left), np.int64), np.empty(len(market.left), np.int64)
    n_scans = 0
    for root in range(paths.at[0], len(market.left)):
        while market.left[root] > 0 and not paths.is_hopeless[root]:
            if n_scans >= max_scans:
                paths.at[0] = root
                return PAUSED
            size, n_touched, n_seen, n_scanned = 0, 0, 1, 0
            nearest, horizon, end, column = NEVER, NEVER, -1, -1
            offset = 0
            seen[0] = root
            paths.is_seen[root] = True
            while True:
                while n_scanned < n_seen:  # the root, then the rows that hold the column settled last
                    row = seen[n_scanned]
                    begin = lists.starts[row]
                    n_scans += lists.counts[row] + 1
                    if column >= 0:
                        held = market.costs[_holding_of(market, column, row)]
                        offset = held - market.prices[column] - paths.distances[column]
                    horizons[n_scanned] = lists.floors[row] - offset if lists.floors[row] < NEVER else NEVER
                    horizon = min(horizon, horizons[n_scanned])
                    n_scanned += 1
                    for entry in range(begin, begin + lists.counts[row]):
                        head: int = np.int64(lists.heads[entry])  # type: ignore[assignment]
                        if paths.is_settled[head]:
                            continue
                        distance = lists.costs[entry] - market.prices[head] - offset
                        if distance >= paths.distances[head] or distance >= nearest:
                            continue
                        if paths.distances[head] == NEVER:
                            touched[n_touched] = head
                            n_touched += 1
                        paths.distances[head] = distance
                        paths.from_rows[head], paths.from_costs[head] = row, lists.costs[entry]
                        if market.filled[head] < market.rooms[head]:
                            nearest, end = distance, head
                            continue
                        if size == len(keys):
                            keys, items = _double_room(keys), _double_room(items)
                        _push(keys, items, size, distance, head)
                        size += 1
                column = -1
                while size > 0 and column < 0:
                    head, distance = items[0], keys[0]
                    _pop(keys, items, size)
                    size -= 1
                    if not paths.is_settled[head] and distance == paths.distances[head]:
                        column = head
                if column < 0 or paths.distances[column] >= min(nearest, horizon):
                    break
                paths.is_settled[column] = True
                for holding in range(market.starts[column], market.starts[column] + market.counts[column]):
                    row = market.holders[holding]
                    if not paths.is_seen[row]:
                        paths.is_seen[row] = True
                        paths.via[row] = column
                        seen[n_seen] = row
                        n_seen += 1
            is_found = end >= 0 and nearest <= horizon
            for t in range(n_touched):
                head = touched[t]
                if paths.is_settled[head] and is_found:
                    market.prices[head] += paths.distances[head] - nearest
                paths.is_settled[head] = False
                paths.distances[head] = NEVER
            for s in range(n_seen):
                paths.is_seen[seen[s]] = False
            if is_found:
                _shift(market, paths, root, end)
                continue
            if horizon == NEVER:  # no path, and nothing unlisted: there will never be one
                paths.is_hopeless[root] = True
                break
            for s in range(n_scanned):  # all rows whose list ends before the path does, or before it may
                wanted[seen[s]] |= horizons[s] < nearest and horizons[s] <= horizon + (nearest - horizon) // 2
            break
    paths.at[0] = 0
    for row in range(len(wanted)):
        if wanted[row]:
            return WAITING
    return SETTLED
