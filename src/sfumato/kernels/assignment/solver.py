"""The solver: search, auction and shortest paths in turn, until nothing unlisted can be better."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sfumato.kernels.arrays import Flags, Ints
from sfumato.kernels.assignment import market as trade
from sfumato.kernels.assignment.costs import NEVER, Frame, costs_of_pairs
from sfumato.kernels.assignment.leaves import Filter, leaf_order, plant, search_coordinates
from sfumato.kernels.assignment.paths import PAUSED, WAITING, augment, open_paths
from sfumato.kernels.assignment.search import reach_of, search, sieve

Beat = Callable[[float], None]

FIRST_K = 10  # columns listed for each row to begin with
NEXT_K = 12
WIDTH = 32  # of a list, to begin with
KEEP = 48  # of a list, after a phase
N_ENTRIES = 4_000_000  # if all pairs are so few, all are listed
MAX_ENTRIES = 60_000_000
SHRINK = 4  # of the step from phase to phase
LAST_STEP = 2e-4  # of the typical key
FIRST_STEP = 2  # times the typical key
FARTHEST_KEY = 1024  # times the largest cost: of who cannot do better shortest paths tell whether they can
EASY = 0.8  # of the columns have a nearest row of their own
EASE = 32  # times smaller is the first step then
BID_SLACK_STEPS = 12  # steps by which a bid may be worse than one for a column not listed
MOST_IN_VAIN = 1_000  # searches that place nobody, before the rest is left without a proof
MAX_BIDS = 60  # for each unit, in a phase
FEW_ROWS_SHARE = 0.02  # of the rows: no reason for another search within a phase
SEARCHES = 5_000  # of single rows between two beats
MAX_SEARCHES = 40  # for each unit, in the first phase
BIDS = 1_000_000  # between two beats
SCANS = 20_000_000


@dataclass
class SolverResult:
    """What the solver hands back, in the order of its input."""

    rows: Ints  # of each holding; one more than there are stands for no row
    columns: Ints
    units: Ints
    row_left: Ints  # units of rows not placed
    row_prices: Ints
    column_prices: Ints
    n_rounds: int


class Solver:
    """A transport problem on distinct records: each row has units to place, each column room for some."""

    def __init__(  # noqa: PLR0917
        self, framed: Frame, supplies: Ints, rooms: Ints, row_limits: Ints, column_limits: Ints, beat: Beat
    ) -> None:
        rows, columns = search_coordinates(framed.space)
        self.row_order, row_leaves = leaf_order(rows, framed.space.norm)
        self.column_order, column_leaves = leaf_order(columns, framed.space.norm)
        space = framed.space._replace(
            rows=framed.space.rows[self.row_order], columns=framed.space.columns[self.column_order]
        )
        ordered = Frame(space, framed.unit, framed.rounding)
        self.filter: Filter = plant(
            ordered, rows[self.row_order], columns[self.column_order], row_leaves, column_leaves
        )
        self.space = space
        self.row_limits, self.column_limits = row_limits[self.row_order], column_limits[self.column_order]
        self.is_bounded = bool((row_limits < NEVER).any() or (column_limits < NEVER).any())
        self.limits = trade.CostBounds(self.row_limits, self.column_limits)
        self.reach = reach_of(self.filter, self.row_limits, self.column_limits)
        self.n, self.m = len(rows), len(columns)
        self.farthest = int(space.scale) * (1 if space.norm.n_measured else columns.shape[1])
        self.supplies = np.append(supplies[self.row_order], int(rooms.sum() - supplies.sum()))
        self.rooms = rooms[self.column_order]
        self.beat = beat
        self.progress = 0.0
        self.n_rounds = 0
        self.is_easy = False  # few columns have the same nearest row: little is contested

    def solve(self, prices: Ints | None, limit: int | None) -> SolverResult:
        """Solve; with prices, from them."""
        self.max_rounds = NEVER if limit is None else limit
        start = self._start() if prices is None else prices[self.column_order]
        self.market = trade.open_market(self.supplies, self.rooms, start)
        self.paths = open_paths(self.n + 1, self.m)
        self.is_whole = self.n * self.m <= N_ENTRIES
        self._list(FIRST_K)
        self._phases(is_warm=prices is not None)
        self._finish()
        return self._flow()

    def _start(self) -> Ints:
        """Price each column at the distance of its nearest row, if all columns are taken in the end.

        Then one that lies far from all others is worth taking at once; at a price of 0 all others would have
        to fall as far first.
        """
        if self.supplies[self.n] > 0:
            return np.zeros(self.m, np.int64)
        space = self.space._replace(rows=self.space.columns, columns=self.space.rows)
        filter_ = plant(
            Frame(space, 1.0, self.filter.rounding), *search_coordinates(space), self.filter.blocks.starts,
            self.filter.row_leaves,
        )  # fmt: skip
        reach = reach_of(filter_, self.column_limits, self.row_limits)
        free, anyhow = np.zeros(self.n, np.int64), np.full(self.m, NEVER)
        found, _ = search(filter_, np.arange(self.m), 1, free, anyhow, reach, beat=self._report_progress)
        there = np.flatnonzero(found[:, 0] >= 0)
        self.is_easy = len(np.unique(found[there, 0])) > EASY * self.m
        start = np.zeros(self.m, np.int64)
        start[there] = costs_of_pairs(space, there, found[there, 0])
        return start

    def _list(self, k: int) -> None:
        """List every column for every row if that is little, else those of k least keys."""
        self._open_lists(self.m if self.is_whole else WIDTH)
        if self.is_whole:
            trade.list_all(self.space, self.lists, self.row_limits, self.column_limits)
        else:
            self.query(np.arange(self.n), k)

    def _open_lists(self, width: int) -> None:
        """Make room for so many entries a row; a last row stands for no record, and may have any column."""
        n, m = self.n, self.m
        starts = np.arange(n + 1) * width
        ends = np.append(starts[1:], n * width + (m if self.supplies[n] > 0 else 0))
        counts = np.zeros(n + 1, dtype=np.int64)
        counts[n] = ends[n] - starts[n]
        heads, costs = np.zeros(ends[n], np.int32), np.zeros(ends[n], np.int64)
        heads[n * width :] = np.arange(counts[n])
        floors = np.full(n + 1, -NEVER)
        floors[n] = NEVER
        self.lists = trade.BidLists(starts, ends, counts, heads, costs, floors, np.zeros(n + 1, np.bool_))
        self.n_used = int(ends[n])

    def _make_room(self, rows: Ints, k: int) -> None:
        """Let each of the rows have room for k more entries: those that have not, move behind all others."""
        old = self.lists
        rows = rows[old.counts[rows] + k > old.ends[rows] - old.starts[rows]]
        if len(rows) == 0:
            return
        ends = self.n_used + np.cumsum(np.minimum(self.m, old.counts[rows] + k + (old.counts[rows] + k) // 2))
        if ends[-1] > len(old.heads):
            more = int(ends[-1]) + int(ends[-1]) // 4 - len(old.heads)
            heads = np.concatenate((old.heads, np.zeros(more, np.int32)))
            self.lists = old._replace(
                heads=heads, costs=np.concatenate((old.costs, np.zeros(more, np.int64)))
            )
        starts = np.concatenate(([self.n_used], ends[:-1]))
        trade.move(self.lists, rows, starts, ends, self.lists)
        self.n_used = int(ends[-1])

    def _report_progress(self) -> None:
        self.beat(self.progress)

    def query(self, active: Ints, k: int) -> None:
        """Search for the columns of k least keys of the active rows and list them."""
        prices = self.market.prices
        below = self.keys(active, k)
        below = np.where(below < NEVER, below + 1, NEVER)
        found, floors = search(self.filter, active, k, prices, below, self.reach, beat=self._report_progress)
        self.lists.floors[active] = np.maximum(self.lists.floors[active], floors)
        self._make_room(active, k)
        trade.admit(self.space, self.lists, active, found, self.row_limits, self.column_limits)
        self.lists.is_rough[active] |= self.keys(active) > self.lists.floors[active]
        self.n_rounds += 1

    def extend(self, rows: Ints) -> bool:
        """Search for more columns than are known to be the best of these rows; no if lists grow too long."""
        k = NEXT_K if len(rows) > self.n // 10 else 4 * NEXT_K
        known = trade.count_known(self.lists, self.market.prices, rows)
        known = np.where(self.lists.is_rough[rows], self.lists.counts[rows], known)
        while len(rows):
            if self.n_used > MAX_ENTRIES:
                return False
            is_turn = known + NEXT_K // 2 <= k
            is_done = is_turn.copy()
            if is_turn.any():
                is_done[is_turn] = self._knows_more(rows[is_turn], min(k, self.m)) | (k >= self.m)
            rows, known, k = rows[~is_done], known[~is_done], 2 * k
        return True

    def _knows_more(self, rows: Ints, k: int) -> Flags:
        """Search for k columns of these rows, and tell which of them know more now.

        A row may not: of columns with equal keys those found may all be listed, and none be known to be the
        best of what is not.
        """
        counts, floors = self.lists.counts[rows], self.lists.floors[rows]
        self.query(rows, k)
        is_more: Flags = (self.lists.counts[rows] > counts) | (self.lists.floors[rows] > floors)
        return is_more

    def keys(self, rows: Ints | None = None, k: int = 1) -> Ints:
        """Return the k-th least key listed by each of the rows."""
        rows = np.arange(self.n + 1) if rows is None else rows
        return trade.least_keys(self.lists, self.market.prices, rows, k)

    def waiting(self, slack: int) -> Ints:
        """Return the rows with units left for which a column not listed may be better by more than this."""
        rows = np.flatnonzero(self.market.left[: self.n] > 0)
        return rows[self.keys(rows) - slack > self.lists.floors[rows]]

    def _bid(self, step: int, *, max_bids: int, max_searches: int = NEVER) -> bool:
        """Auction in portions; rows that wait are searched for together while they are many, then singly.

        Returns no if some row is left because bids or searches were used up.
        """
        n_searches = 0
        slack = BID_SLACK_STEPS * step
        while max_bids > 0 and max_searches > 0 and self.n_rounds < self.max_rounds:
            made = trade.auction(
                self.space, sieve(self.filter, self.market.prices, self.reach), self.lists, self.market,
                self.limits, step, slack, FARTHEST_KEY * self.farthest, min(BIDS, max_bids), n_searches,
            )  # fmt: skip
            self._report_progress()
            max_bids -= made[0]
            max_searches -= made[1]
            if made[0] < BIDS and made[1] == n_searches > 0:
                continue
            waiting = self.waiting(slack)
            if made[0] < BIDS and len(waiting) == 0:
                return True
            is_many = len(waiting) > FEW_ROWS_SHARE * self.n
            self.extend(waiting if is_many else waiting[self.lists.is_rough[waiting]])
            n_searches = min(SEARCHES, max_searches) if len(waiting) <= 4 * FEW_ROWS_SHARE * self.n else 0
        return False

    def _phases(self, *, is_warm: bool) -> None:
        """Auction with ever smaller steps; each phase begins with what the last one left in order."""
        keys = self.keys(np.arange(self.n), min(FIRST_K, self.m))
        is_listed = keys < NEVER
        typical = int(np.median(np.abs(keys[is_listed]))) if is_listed.any() else self.farthest // 16
        step = max(1, typical // 250 if is_warm else FIRST_STEP * typical // (EASE if self.is_easy else 1))
        stop = max(1, int(typical * LAST_STEP))
        n_units = int(self.supplies[: self.n].sum())
        budget = {"max_bids": MAX_BIDS * n_units, "max_searches": MAX_SEARCHES * n_units}
        while not self._bid(step, **budget) and step < self.farthest:
            # What is left is much farther apart than is typical: by such steps prices would fall for ever.
            # Within radii a row has to be pushed off its columns along a path of others, each of which pays.
            if self.n_rounds >= self.max_rounds:
                return
            step = min(step * SHRINK ** (6 if self.is_bounded else 3), self.farthest)
        while step > stop and self.n_rounds < self.max_rounds:
            if not self.is_whole:
                trade.prune(self.lists, self.market.prices, KEEP)
            self.progress += (1 - self.progress) * 0.12
            step //= SHRINK
            self._release(step)
            self._bid(step, max_bids=MAX_BIDS * n_units)

    def _release(self, step: int) -> int:
        """Drop what is not as good, to ``step``, as the best that a row may have."""
        return int(trade.release(self.market, np.minimum(self.keys(), self.lists.floors), step))

    def _finish(self) -> None:
        """Settle exactly by shortest paths, and search for rows that stand in their way."""
        left = self._release(0)
        self._bid(0, max_bids=4 * left + 1000)
        wanted = np.zeros(self.n + 1, dtype=np.bool_)
        n_vain, fewest = 0, int(self.market.left.sum())
        while self.n_rounds < self.max_rounds and n_vain < MOST_IN_VAIN:
            status = augment(self.lists, self.market, self.paths, wanted, SCANS)
            self._report_progress()
            if status == PAUSED:
                continue
            if status != WAITING or not self.extend(np.flatnonzero(wanted)):
                return
            wanted[:] = False
            self.progress += (1 - self.progress) * 0.12
            n_left = int(self.market.left.sum())
            n_vain = n_vain + 1 if n_left >= fewest else 0
            fewest = min(fewest, n_left)

    def _flow(self) -> SolverResult:
        """Return holdings and prices in the order in which the records came."""
        market = self.market
        used = np.concatenate(
            [np.arange(0)]
            + [
                np.arange(begin, begin + count)
                for begin, count in zip(market.starts, market.counts, strict=False)
            ]
        )
        columns = np.repeat(np.arange(self.m), market.counts)
        row_order = np.append(self.row_order, self.n)
        row_prices, column_prices = np.zeros(self.n, np.int64), np.empty(self.m, np.int64)
        keys = self.keys()[: self.n]
        row_prices[self.row_order] = np.where(keys < NEVER, keys, 0)
        column_prices[self.column_order] = market.prices
        if self.supplies[self.n] > 0:
            highest = column_prices.max()
            row_prices, column_prices = row_prices + highest, column_prices - highest
        left = np.empty(self.n + 1, np.int64)
        left[row_order] = market.left
        return SolverResult(
            rows=row_order[market.holders[used]],
            columns=self.column_order[columns],
            units=market.units[used],
            row_left=left,
            row_prices=row_prices,
            column_prices=column_prices,
            n_rounds=self.n_rounds,
        )
