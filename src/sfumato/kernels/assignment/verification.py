"""Verification: is an assignment optimal? One pass over all pairs, in no way helped by the solver."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.kernels.arrays import Floats, Ints, Singles, count_distinct
from sfumato.kernels.assignment.costs import (
    CostSpace,
    Frame,
    cost_of,
    costs_of_all,
    costs_of_pairs,
    distinct,
    exact_sum,
    frame,
    limits_of,
)
from sfumato.kernels.assignment.leaves import LEAF, Blocks, leaf_order, plant
from sfumato.kernels.assignment.search import apart_of, measure, n_below, reference_of
from sfumato.kernels.compiling import njit
from sfumato.kernels.norms import Metric
from sfumato.kernels.threads import CompileAllowance, Tick, share_out

_NUMPY_ALLOWANCE = CompileAllowance(100_000_000)  # differences of columns, by numpy


@dataclass(frozen=True)
class OptimalityCheck:
    """What a pass over all pairs found."""

    is_matching: bool  #: no column twice, as many pairs as the smaller file has records, none beyond a radius
    is_feasible: bool  #: the two prices of no pair exceed its cost, and unmatched records' prices its bound
    is_tight: bool  #: those of matched pairs equal it, and those of unmatched records are 0
    cost: int  #: of the matching, summed
    bound: int  #: no complete matching costs less, whatever the prices given
    n_violated: int  #: pairs (of distinct records) whose prices exceed their cost

    @property
    def certified(self) -> bool:
        """Whether the matching is proved to be of least cost."""
        return self.is_matching and self.is_feasible and self.is_tight and self.cost == self.bound


def verify(  # noqa: PLR0917
    rows: Floats,
    columns: Floats,
    metric: Metric,
    row_prices: Ints,
    column_prices: Ints,
    partners: Ints,
    *,
    n_codes: int = 0,
    weights: Floats | None = None,
    radii: Floats | None = None,
    tick: Tick | None = None,
) -> OptimalityCheck:
    r"""Check prices and a matching against every pair.

    With costs :math:`c_{ij}`, prices :math:`u_i + v_j \le c_{ij}` for all pairs and equality for matched ones
    prove that the matching costs least: its cost is :math:`\sum u + \sum v`, and no matching can cost less.
    Of two files of unequal size the larger one's prices are at most 0, and 0 for records left over.

    Notes
    -----
    **Cost:** at most :math:`n m d` operations in single precision with proved error bounds; pairs near the
    limit are computed again, exactly, and a row is not compared with a box of columns whose nearest place is
    too far from it at the box's highest price. Memory :math:`O((n + m) d)`.
    """
    framed = frame(rows, columns, metric, n_codes=n_codes, weights=weights)
    limits = limits_of(framed, radii, len(rows))
    return judge(framed, row_prices, column_prices, partners, limits, tick=tick)


def judge(
    framed: Frame, row_prices: Ints, column_prices: Ints, partners: Ints, limits: Ints, *, tick: Tick | None
) -> OptimalityCheck:
    """Verify in a frame that is already made."""
    space = framed.space
    n, m = len(space.rows), len(space.columns)
    row_prices, column_prices = np.asarray(row_prices, np.int64), np.asarray(column_prices, np.int64)
    partners = np.asarray(partners, np.int64)
    if row_prices.shape != (n,) or column_prices.shape != (m,) or partners.shape != (n,):
        raise ValueError("prices and partners must be one for each record")
    is_linked = (partners >= 0) & (partners < m)
    linked = np.flatnonzero(is_linked)
    is_proper = bool((is_linked | (partners == -1)).all()) and count_distinct(partners[linked]) == len(linked)
    costs = costs_of_pairs(space, linked, partners[linked])
    is_matching = is_proper and len(linked) == min(n, m) and bool((costs <= limits[linked]).all())
    slack, n_violated = _slacks(framed, row_prices, column_prices, limits, tick)
    # Lowering each row's price by its worst violation makes any prices feasible; what they sum to is a bound.
    lowered, capped = row_prices + slack, column_prices
    is_left = np.ones(m, dtype=np.bool_)
    is_left[partners[linked]] = False
    is_bounded, is_tight = True, bool((costs == (row_prices[linked] + column_prices[partners[linked]])).all())
    if n < m:
        is_bounded = bool((column_prices <= 0).all())
        is_tight &= not column_prices[is_left].any()
        capped = np.minimum(column_prices, 0)
    elif n > m:
        is_bounded = bool((row_prices <= 0).all())
        is_tight &= not row_prices[~is_linked].any()
        lowered = np.minimum(lowered, 0)
    return OptimalityCheck(
        is_matching=is_matching,
        is_feasible=n_violated == 0 and is_bounded,
        is_tight=is_tight,
        cost=exact_sum(costs),
        bound=exact_sum(lowered) + exact_sum(capped),
        n_violated=n_violated,
    )


def _slacks(
    framed: Frame, row_prices: Ints, column_prices: Ints, limits: Ints, tick: Tick | None
) -> tuple[Ints, int]:
    """Return by how much each row's price is too high (0 or less), and how many pairs violate."""
    space = framed.space
    if len(space.rows) == 0 or len(space.columns) == 0:
        return np.zeros(len(space.rows), np.int64), 0
    # Of identical records only the highest price can violate, so each point is looked at once.
    order = np.argsort(row_prices)[::-1]
    firsts, groups = distinct(space.rows[order], limits[order])
    firsts = _highest(order, groups, len(firsts))
    of_row = np.empty(len(order), np.int64)
    of_row[order] = groups
    column_order = np.argsort(column_prices)[::-1]
    column_firsts, column_groups = distinct(space.columns[column_order])
    column_firsts = _highest(column_order, column_groups, len(column_firsts))
    small = Frame(
        space._replace(rows=space.rows[firsts], columns=space.columns[column_firsts]),
        framed.unit,
        framed.rounding,
    )
    slack, n_violated, _ = scan(
        small, row_prices[firsts], column_prices[column_firsts], limits[firsts], tick=tick
    )
    return np.minimum(0, slack[of_row] + row_prices[firsts][of_row] - row_prices), n_violated


def _highest(order: Ints, groups: Ints, n_groups: int) -> Ints:
    """Return the first record of each group in ``order``."""
    highest = np.empty(n_groups, dtype=np.int64)
    highest[groups[::-1]] = order[::-1]
    return highest


def scan(
    framed: Frame,
    row_prices: Ints,
    column_prices: Ints,
    limits: Ints,
    *,
    n_listed: int = 0,
    tick: Tick | None = None,
) -> tuple[Ints, int, tuple[Ints, Ints] | None]:
    """Go through all pairs whose cost does not exceed the sum of their prices.

    Returns the least of 0 and cost minus prices of each row, how many pairs are below 0, and, if ``n_listed``
    allows for their number, the pairs at or below 0 (None if there are more; nothing else is told then, for
    the rest is not gone through).
    """
    if _NUMPY_ALLOWANCE.takes(len(framed.space.rows) * framed.space.columns.size):
        return _look_at_all(framed.space, row_prices, column_prices, limits, n_listed)
    row_order, parts = leaf_order(framed.space.rows, framed.space.norm)
    column_order, starts = leaf_order(framed.space.columns, framed.space.norm)
    row_prices, column_prices, limits = row_prices[row_order], column_prices[column_order], limits[row_order]
    space = framed.space._replace(
        rows=framed.space.rows[row_order], columns=framed.space.columns[column_order]
    )
    n, m = len(space.rows), len(space.columns)
    filter_ = plant(Frame(space, framed.unit, framed.rounding), space.rows, space.columns, parts, starts)
    middle = reference_of(column_prices)
    raised, tops = filter_.prices_by_leaf(column_prices - middle)
    thresholds = filter_.thresholds(row_prices + middle + 1, slice(None))
    slack, violated = np.zeros(n, np.int64), np.zeros(len(parts) - 1, np.int64)
    at_most = np.zeros(len(parts) - 1, np.int64)
    listed: dict[int, tuple[Ints, Ints]] = {}

    def work(part: Ints) -> None:
        for leaf in part:
            if n_listed and int(at_most.sum()) > n_listed:
                listed.clear()
                return
            begin, end = parts[leaf], parts[leaf + 1]
            room = min(n_listed, int(end - begin) * m) if n_listed else 0
            pairs = np.empty((2, min(room, 4096)), dtype=np.int64)
            while True:
                violated[leaf], at_most[leaf] = _scan_rows(
                    space, filter_.rows, filter_.blocks, raised, tops, thresholds, row_prices, column_prices,
                    limits, begin, end, slack, pairs,
                )  # fmt: skip
                if at_most[leaf] <= pairs.shape[1] or at_most[leaf] > room:
                    break
                pairs = np.empty((2, at_most[leaf]), dtype=np.int64)
            if at_most[leaf] <= pairs.shape[1]:
                listed[leaf] = (pairs[0, : at_most[leaf]].copy(), pairs[1, : at_most[leaf]].copy())

    share_out(np.arange(len(parts) - 1), work, tick, size=2)
    worst = np.empty(n, np.int64)
    worst[row_order] = slack
    if not n_listed or int(at_most.sum()) > n_listed:
        return worst, int(violated.sum()), None
    in_order = [listed[leaf] for leaf in range(len(parts) - 1)]
    rows, columns = (np.concatenate([np.empty(0, np.int64), *side]) for side in zip(*in_order, strict=True))
    rows, columns = row_order[rows], column_order[columns]
    as_they_came = np.lexsort((columns, rows))
    return worst, int(violated.sum()), (rows[as_they_came], columns[as_they_came])


def _look_at_all(
    space: CostSpace, row_prices: Ints, column_prices: Ints, limits: Ints, n_listed: int
) -> tuple[Ints, int, tuple[Ints, Ints] | None]:
    """Scan small files by numpy."""
    over = costs_of_all(space)
    is_far = over > limits[:, None]
    over -= row_prices[:, None]
    over -= column_prices
    over[is_far] = 1
    rows, columns = np.nonzero(over <= 0)
    found = (rows, columns) if n_listed and len(rows) <= n_listed else None
    return over.min(axis=1, initial=0), int((over < 0).sum()), found


@njit(cache=True, nogil=True, fastmath=True)
def _scan_rows(  # noqa: PLR0917
    space: CostSpace, rows: Singles, blocks: Blocks, raised: Singles, tops: Singles, thresholds: Singles,
    row_prices: Ints, column_prices: Ints, limits: Ints, begin: int, end: int, slack: Ints, pairs: Ints,
) -> tuple[int, int]:  # fmt: skip
    """Scan the rows from ``begin`` to ``end``; return how many pairs violate and how many are at most 0."""
    n_violated, n_listed = 0, 0
    totals = np.empty(LEAF, dtype=np.float32)
    euclidean = space.norm.euclidean
    for leaf in range(len(blocks.coordinates)):
        first, size = blocks.starts[leaf], blocks.starts[leaf + 1] - blocks.starts[leaf]
        low, high = blocks.lows[leaf], blocks.highs[leaf]
        for row in range(begin, end):
            most = thresholds[row] + tops[leaf]
            if apart_of(rows[row], rows[row], low, high, space.norm) > (
                most * abs(most) if euclidean else most
            ):
                continue
            totals[:] = np.float32(0.0)
            measure(rows[row], blocks.coordinates[leaf], 0, rows.shape[1], space.norm, totals)
            if n_below(totals, raised[leaf], thresholds[row], euclidean) == 0:
                continue
            for slot in range(size):
                room = thresholds[row] + raised[leaf, slot]
                if totals[slot] >= (room * abs(room) if euclidean else room):
                    continue
                column = first + slot
                cost = cost_of(space, row, column)
                over = cost - row_prices[row] - column_prices[column]
                if over > 0 or cost > limits[row]:
                    continue
                if n_listed < pairs.shape[1]:
                    pairs[0, n_listed], pairs[1, n_listed] = row, column
                n_listed += 1
                if over < 0:
                    n_violated += 1
                    slack[row] = min(slack[row], over)
    return n_violated, n_listed
