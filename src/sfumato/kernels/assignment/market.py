"""The market: rows bid for columns they have listed, and shortest paths settle what is left.

Rows have units to place and columns room for units, so that records that are identical are one row (or one
column) and never bid against each other. A column's price never rises: a row's *floor*, the least key of a
column that it has not listed, therefore stays true until the row is searched for again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sfumato.kernels.arrays import Codes, Flags, Ints
from sfumato.kernels.assignment.costs import NEVER, CostSpace, cost_of
from sfumato.kernels.assignment.search import Sieve, lower, search_row
from sfumato.kernels.compiling import njit

SEARCHED = 24  # columns listed by a search within the auction


class BidLists(NamedTuple):
    """The columns each row may bid for, and what they cost."""

    starts: Ints  # [row] where its list begins
    ends: Ints  # [row] where its room ends; there may be more of it than entries
    counts: Ints  # [row]
    heads: Codes  # [entry] column
    costs: Ints  # [entry]
    floors: Ints  # [row] no column that is not listed has a lesser key
    is_rough: Flags  # [row] single precision cannot tell its best from the next: it needs a longer list


class CostBounds(NamedTuple):
    """The largest cost of a pair, by row and by column."""

    rows: Ints
    columns: Ints


class Market(NamedTuple):
    """Who holds what at which price."""

    prices: Ints  # [column]
    left: Ints  # [row] units not yet placed
    rooms: Ints  # [column] units it can take
    filled: Ints  # [column] units it has taken
    starts: Ints  # [column]: where its holdings begin; one unit is the least holding
    counts: Ints  # [column] holdings
    holders: Ints  # [holding] row
    units: Ints  # [holding]
    bids: Ints  # [holding] price at which the row took them
    costs: Ints  # [holding]


def open_market(supplies: Ints, rooms: Ints, prices: Ints) -> Market:
    """Open a market in which nothing is held yet."""
    starts = np.concatenate(([0], np.cumsum(rooms)))
    n_holdings = int(starts[-1])
    n = len(rooms)
    return Market(
        prices.copy(), supplies.copy(), rooms, np.zeros(n, np.int64), starts, np.zeros(n, np.int64),
        np.zeros(n_holdings, np.int64), np.zeros(n_holdings, np.int64), np.zeros(n_holdings, np.int64),
        np.zeros(n_holdings, np.int64),
    )  # fmt: skip


@njit(cache=True, nogil=True)
def move(lists: BidLists, rows: Ints, starts: Ints, ends: Ints, old: BidLists) -> None:
    """Move the lists of some rows from their old places to new ones."""
    for r in range(len(rows)):
        row = rows[r]
        begin = old.starts[row]
        lists.starts[row], lists.ends[row] = starts[r], ends[r]
        for entry in range(lists.counts[row]):
            lists.heads[starts[r] + entry] = old.heads[begin + entry]
            lists.costs[starts[r] + entry] = old.costs[begin + entry]


@njit(cache=True, nogil=True)
def admit(  # noqa: PLR0917
    space: CostSpace, lists: BidLists, active: Ints, found: Ints, row_limits: Ints, column_limits: Ints
) -> None:
    """List the columns found that are not listed yet; there must be room."""
    is_listed = np.zeros(len(space.columns), dtype=np.bool_)
    for a in range(len(active)):
        row = active[a]
        begin, end = lists.starts[row], lists.starts[row] + lists.counts[row]
        for entry in range(begin, end):
            is_listed[lists.heads[entry]] = True
        place = end
        for column in found[a]:
            if column < 0 or is_listed[column]:
                continue
            cost = cost_of(space, row, column)
            if cost <= row_limits[row] and cost <= column_limits[column]:
                lists.heads[place], lists.costs[place] = column, cost
                place += 1
        lists.counts[row] = place - begin
        for entry in range(begin, end):
            is_listed[lists.heads[entry]] = False


@njit(cache=True, nogil=True)
def list_all(space: CostSpace, lists: BidLists, row_limits: Ints, column_limits: Ints) -> None:
    """List every column for every row, so that no floor is needed."""
    for row in range(len(space.rows)):
        place = lists.starts[row]
        for column in range(len(space.columns)):
            cost = cost_of(space, row, column)
            if cost <= row_limits[row] and cost <= column_limits[column]:
                lists.heads[place], lists.costs[place] = column, cost
                place += 1
        lists.counts[row] = place - lists.starts[row]
        lists.floors[row] = NEVER


@njit(cache=True, nogil=True)
def _nth(values: Ints, n: int) -> int:
    """Return the n-th least value, counted from 1, and put those that are not above it before it.

    By halves, as `np.partition` does, which takes seconds to compile.
    """
    low, high = 0, len(values) - 1
    while low < high:
        pivot = values[(low + high) >> 1]
        left, right = low, high
        while left <= right:
            while values[left] < pivot:
                left += 1
            while values[right] > pivot:
                right -= 1
            if left <= right:
                values[left], values[right] = values[right], values[left]
                left += 1
                right -= 1
        if n - 1 <= right:
            high = right
        elif n - 1 >= left:
            low = left
        else:
            break
    return values[n - 1]  # type: ignore[no-any-return]


@njit(cache=True, nogil=True)
def least_keys(lists: BidLists, prices: Ints, rows: Ints, k: int) -> Ints:
    """Return the k-th least key in the list of each of the rows, or `NEVER` where it is shorter."""
    keys = np.empty(len(rows), dtype=np.int64)
    for r in range(len(rows)):
        row = rows[r]
        begin, count = lists.starts[row], lists.counts[row]
        if count < k:
            keys[r] = NEVER
        elif k == 1:
            least = NEVER
            for entry in range(begin, begin + count):
                least = min(least, lists.costs[entry] - prices[lists.heads[entry]])
            keys[r] = least
        else:
            listed = np.empty(count, dtype=np.int64)
            for entry in range(count):
                listed[entry] = lists.costs[begin + entry] - prices[lists.heads[begin + entry]]
            keys[r] = _nth(listed, k)
    return keys


@njit(cache=True, nogil=True)
def count_known(lists: BidLists, prices: Ints, rows: Ints) -> Ints:
    """Count for each row the columns listed of which it is certain that no other has a lesser key."""
    counts = np.zeros(len(rows), dtype=np.int64)
    for r in range(len(rows)):
        row = rows[r]
        for entry in range(lists.starts[row], lists.starts[row] + lists.counts[row]):
            counts[r] += lists.costs[entry] - prices[lists.heads[entry]] <= lists.floors[row]
    return counts


@njit(cache=True, nogil=True)
def prune(lists: BidLists, prices: Ints, keep: int) -> None:
    """Shorten lists to their ``keep`` least keys, but for the last row's, which stands for no record."""
    for row in range(len(lists.floors) - 1):
        begin, count = lists.starts[row], lists.counts[row]
        lists.is_rough[row] = False
        if count <= keep:
            continue
        keys = np.empty(count, dtype=np.int64)
        for entry in range(count):
            keys[entry] = lists.costs[begin + entry] - prices[lists.heads[begin + entry]]
        last = _nth(keys.copy(), keep)
        place = begin
        for entry in range(count):
            if keys[entry] > last:
                lists.floors[row] = min(lists.floors[row], keys[entry])
                continue
            lists.heads[place], lists.costs[place] = lists.heads[begin + entry], lists.costs[begin + entry]
            place += 1
        lists.counts[row] = place - begin


@njit(cache=True, nogil=True)
def drop(market: Market, column: int, holding: int, n_units: int) -> None:
    """Give units of a holding back to its row."""
    market.left[market.holders[holding]] += n_units
    market.filled[column] -= n_units
    market.units[holding] -= n_units
    if market.units[holding] == 0:
        market.counts[column] -= 1
        last = market.starts[column] + market.counts[column]
        market.holders[holding], market.units[holding] = market.holders[last], market.units[last]
        market.bids[holding], market.costs[holding] = market.bids[last], market.costs[last]


@njit(cache=True, nogil=True)
def take(market: Market, column: int, row: int, n_units: int, bid: int, cost: int) -> None:  # noqa: PLR0917
    """Let a row hold units of a column."""
    market.left[row] -= n_units
    market.filled[column] += n_units
    begin = market.starts[column]
    for holding in range(begin, begin + market.counts[column]):
        if market.holders[holding] == row and market.bids[holding] == bid:
            market.units[holding] += n_units
            return
    holding = begin + market.counts[column]
    market.holders[holding], market.units[holding] = row, n_units
    market.bids[holding], market.costs[holding] = bid, cost
    market.counts[column] += 1


@njit(cache=True, nogil=True)
def release(market: Market, row_prices: Ints, step: int) -> int:
    """Drop holdings that are dearer than the best by more than ``step``; return how many units are left."""
    for column in range(len(market.prices)):
        price = market.prices[column]
        holding = market.starts[column]
        while holding < market.starts[column] + market.counts[column]:
            over = market.costs[holding] - price - row_prices[market.holders[holding]]
            if over > step or over < 0:
                drop(market, column, holding, market.units[holding])
            else:
                market.bids[holding] = price
                holding += 1
    return market.left.sum()  # type: ignore[no-any-return]


@njit(cache=True, nogil=True)
def _relist(  # noqa: PLR0917
    space: CostSpace, sieve: Sieve, lists: BidLists, market: Market, row: int, limits: CostBounds
) -> None:
    """Search for the best columns of a row at the prices of now and list these alone."""
    place = lists.starts[row]
    k = min(lists.ends[row] - place, len(market.prices), SEARCHED)
    below = NEVER
    if lists.counts[row] >= k:  # then the k least keys are not above those of the columns listed now
        below = -NEVER
        for entry in range(place, place + lists.counts[row]):
            below = max(below, lists.costs[entry] - market.prices[lists.heads[entry]] + 1)
    keys, found = np.empty((1, k), dtype=np.float32), np.empty((1, k), dtype=np.int64)
    floor = search_row(sieve, space, row, below, keys, found)
    lists.floors[row] = floor if k < len(market.prices) else NEVER
    for column in found[0]:
        if column >= 0:
            cost = cost_of(space, row, column)
            if cost <= limits.rows[row] and cost <= limits.columns[column]:
                lists.heads[place], lists.costs[place] = column, cost
                place += 1
    lists.counts[row] = place - lists.starts[row]


@njit(cache=True, nogil=True)
def _choose(lists: BidLists, market: Market, row: int) -> tuple[int, int, int]:
    """Return the entry of a row's best column, its key and the second best; of equals one that has room."""
    best, second, chosen = NEVER, NEVER, -1
    for entry in range(lists.starts[row], lists.starts[row] + lists.counts[row]):
        column = lists.heads[entry]
        key = lists.costs[entry] - market.prices[column]
        if key < best:
            second, best, chosen = best, key, entry
        elif key < second:
            second = key
        if key == best and chosen != entry:
            other = lists.heads[chosen]
            if market.filled[other] == market.rooms[other] and market.filled[column] < market.rooms[column]:
                chosen = entry
    return chosen, best, min(second, lists.floors[row])


@njit(cache=True, nogil=True)
def _bid(market: Market, row: int, column: int, bid: int, cost: int) -> int:
    """Let a row take room of a column, or units of the lowest bid; return the row that lost them, or −1."""
    wanted, loser = market.left[row], -1
    if market.filled[column] < market.rooms[column]:
        wanted = min(wanted, market.rooms[column] - market.filled[column])
    else:
        begin = market.starts[column]
        weakest = begin
        for holding in range(begin + 1, begin + market.counts[column]):
            if market.bids[holding] > market.bids[weakest]:
                weakest = holding
        loser = market.holders[weakest]
        wanted = min(wanted, market.units[weakest])
        drop(market, column, weakest, wanted)
    take(market, column, row, wanted, bid, cost)
    if market.filled[column] == market.rooms[column]:
        begin = market.starts[column]
        price = -NEVER
        for holding in range(begin, begin + market.counts[column]):
            price = max(price, market.bids[holding])
        market.prices[column] = min(price, market.prices[column])
    return loser


@njit(cache=True, nogil=True)
def auction(  # noqa: PLR0917
    space: CostSpace, sieve: Sieve, lists: BidLists, market: Market, limits: CostBounds, step: int,
    slack: int, max_key: int, max_bids: int, max_searches: int,
) -> tuple[int, int]:  # fmt: skip
    """Let rows with units left bid for their best column, down to the second best and ``step`` more.

    What is not listed counts as a column at the row's floor; a row whose best is above it by more than
    ``slack`` is searched for again, or waits, so that prices fall no lower for want of a longer list. So does
    a row whose best is ``max_key`` above what is usual, as the few columns of too many rows become. A step of
    0 is the augmenting row reduction of Jonker and Volgenant: a row with two equally good columns, both
    taken, waits for a shortest path. Returns the numbers of bids and of searches.
    """
    n_bidders = len(space.rows)
    stack = np.empty(n_bidders, dtype=np.int64)
    is_waiting = np.zeros(len(market.left), dtype=np.bool_)
    top = 0
    for row in range(n_bidders - 1, -1, -1):
        if market.left[row] > 0:
            stack[top] = row
            is_waiting[row] = True
            top += 1
    n_bids, n_searches = 0, 0
    while top > 0 and n_bids < max_bids:
        top -= 1
        row = stack[top]
        is_waiting[row] = False
        chosen, best, second = _choose(lists, market, row)
        if best - slack > lists.floors[row] and n_searches < max_searches and not lists.is_rough[row]:
            _relist(space, sieve, lists, market, row, limits)
            n_searches += 1
            chosen, best, second = _choose(lists, market, row)
            lists.is_rough[row] = best - slack > lists.floors[row]
        if chosen < 0 or best + sieve.reference > max_key or best - slack > lists.floors[row]:
            continue
        column: int = np.int64(lists.heads[chosen])  # type: ignore[assignment]  # one type, one compilation
        if second == NEVER:
            second = best + 4 * step
        second = max(second, best)
        bid = market.prices[column] - (second - best) - step
        if bid == market.prices[column] and market.filled[column] == market.rooms[column]:
            continue
        n_bids += 1
        before = market.prices[column]
        loser = _bid(market, row, column, bid, lists.costs[chosen])
        if market.prices[column] < before and max_searches > 0:
            lower(sieve, space, column, market.prices[column])
        for other in (loser, row):
            if 0 <= other < n_bidders and market.left[other] > 0 and not is_waiting[other]:
                stack[top] = other
                is_waiting[other] = True
                top += 1
    return n_bids, n_searches
