"""Covers: the assignment where most pairs are impossible and the possible ones are listed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sfumato.kernels.arrays import Ints
from sfumato.kernels.assignment.costs import NEVER
from sfumato.kernels.assignment.market import BidLists, Market, least_keys, open_market
from sfumato.kernels.assignment.paths import PAUSED, augment, open_paths
from sfumato.kernels.compiling import by_python
from sfumato.kernels.threads import CompileAllowance

SCANS = 20_000_000  # entries read between two beats
_FEW_SCANS = 20_000  # the same by Python
_ALLOWANCE = CompileAllowance(300_000)  # entries read by Python


@dataclass(frozen=True)
class GroupAssignment:
    """Who of each group is linked to whom, and the prices that prove that nothing costs less.

    With rows that are not linked at the cost ``penalty`` each and columns left over at none: a row's price is
    at most the penalty, and equal to it where some of the group are not linked; a column's is at most 0, and
    0 where some are left over; and two prices add up to no more than the cost of their pair.
    """

    rows: Ints  # [flow] group of rows
    columns: Ints  # [flow] group of columns
    units: Ints  # [flow] how many of the one are linked to the other
    row_prices: Ints  # [group]
    column_prices: Ints


def cover(  # noqa: PLR0917
    rows: Ints,
    columns: Ints,
    costs: Ints,
    supplies: Ints,
    rooms: Ints,
    penalty: int,
    *,
    beat: Callable[[], None] = lambda: None,
) -> GroupAssignment:
    """Link as many rows as can be, and those at the least total cost, by shortest augmenting paths.

    Parameters
    ----------
    rows, columns : int64[p]
        The possible pairs of groups, each once.
    costs : int64[p]
        Of the pairs, not negative; all that are linked together must cost less than the ``penalty``.
    supplies : int64[n]
        How many rows each group has.
    rooms : int64[m]
        How many columns each group has.
    penalty : int
        Of a row that is not linked.
    """
    n, m = len(supplies), len(rooms)
    lists = _lists(rows, columns, costs, n, m, penalty)
    market = open_market(
        np.append(supplies, rooms.sum()), np.append(rooms, supplies.sum()), np.zeros(m + 1, np.int64)
    )
    wanted, paths = np.zeros(n + 1, dtype=np.bool_), open_paths(n + 1, m + 1)
    status = PAUSED
    while status == PAUSED:
        small = _ALLOWANCE.takes(_FEW_SCANS)
        with by_python(small):
            status = augment(lists, market, paths, wanted, _FEW_SCANS if small else SCANS)
        beat()
    with by_python(_ALLOWANCE.takes(len(lists.heads))):
        keys = least_keys(lists, market.prices, np.arange(n + 1), 1)
    linked, its, units = _holdings(market)
    is_pair = (linked < n) & (its < m)
    if not is_pair.any():
        return GroupAssignment(*(linked[:0],) * 3, np.full(n, penalty), np.zeros(m, np.int64))
    # Some row is linked, so nobody's row has some of nobody's column: their two prices are 0.
    return GroupAssignment(
        linked[is_pair], its[is_pair], units[is_pair], keys[:n] - keys[n], market.prices[:m] + keys[n]
    )


def _lists(rows: Ints, columns: Ints, costs: Ints, n: int, m: int, penalty: int) -> BidLists:  # noqa: PLR0917
    """List the pairs by rows; each row may have nobody's column, nobody's row any column."""
    counts = np.append(np.bincount(rows, minlength=n) + 1, m + 1)
    ends = np.cumsum(counts)
    starts = ends - counts
    heads, paid = np.full(ends[-1], m, dtype=np.int32), np.full(ends[-1], penalty, dtype=np.int64)
    order = np.argsort(rows, kind="stable")
    places = np.arange(len(rows)) + rows[order]  # one more for each row before
    heads[places], paid[places] = columns[order], costs[order]
    heads[starts[n] :], paid[starts[n] :] = np.arange(m + 1), 0
    return BidLists(starts, ends, counts, heads, paid, np.full(n + 1, NEVER), np.zeros(n + 1, np.bool_))


def _holdings(market: Market) -> tuple[Ints, Ints, Ints]:
    """Return row, column and units of all that is held."""
    columns = np.repeat(np.arange(len(market.counts)), market.counts)
    ends = np.cumsum(market.counts)
    used = np.arange(len(columns)) + np.repeat(market.starts[:-1] - (ends - market.counts), market.counts)
    return market.holders[used], columns, market.units[used]
