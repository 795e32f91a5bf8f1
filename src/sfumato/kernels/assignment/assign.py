"""Assignment of the records of one file to those of another, at the least total distance, with a proof."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sfumato.kernels.arrays import Flags, Floats, Ints
from sfumato.kernels.assignment.costs import (
    NEVER,
    CostSpace,
    Frame,
    costs_of_all,
    costs_of_pairs,
    distinct,
    frame,
    limits_of,
)
from sfumato.kernels.assignment.solver import Solver, SolverResult
from sfumato.kernels.assignment.verification import judge
from sfumato.kernels.norms import Metric
from sfumato.kernels.threads import Tick

FALLBACK = 2000  # records up to which the matrix of all costs settles what the search could not
DENSE = 1000  # records up to which all costs are computed at once
N_TICKS = 1000  # what a whole solution counts


@dataclass(frozen=True)
class Assignment:
    """A matching, the prices that prove it, and whether they do."""

    partners: Ints  #: column of each row; −1 for a row left over
    row_prices: Ints  #: u, in units of cost
    column_prices: Ints  #: v: u + v is at most the cost of every pair, and equal to it for matched ones
    cost: int  #: of the matching
    bound: int  #: no complete matching costs less
    unit: float  #: distance that one unit of cost stands for
    certified: bool  #: the matching is complete and proved to be of least cost
    complete: bool  #: as many pairs as the smaller file has records; radii can make that impossible

    @property
    def gap(self) -> int:
        """Cost above the bound; 0 if certified."""
        return self.cost - self.bound

    @property
    def distance(self) -> float:
        """Total distance of the matching, to the accuracy of one unit a pair."""
        return self.cost * self.unit


@dataclass
class _PricedMatching:
    partners: Ints
    row_prices: Ints
    column_prices: Ints


def solve(
    rows: Floats,
    columns: Floats,
    metric: Metric,
    *,
    n_codes: int = 0,
    weights: Floats | None = None,
    radii: Floats | None = None,
    tick: Tick | None = None,
    limit: int | None = None,
    dense: int = DENSE,
) -> Assignment:
    r"""Match rows and columns one to one at the least total distance.

    .. math:: \min_\pi \sum_i d(x_i, y_{\pi(i)})

    over all one-to-one maps :math:`\pi` of the smaller file into the larger, with a proof (see `verify`).

    Parameters
    ----------
    rows : float64[n, d]
        Finite.
    columns : float64[m, d]
        Likewise.
    metric, n_codes, weights
        What is measured and what counts by being unequal, as for `norm_of`.
    radii : float64[n], optional
        Pairs farther apart than a row's radius are no pairs (up to one unit of cost, for rounding).
    tick : callable, optional
        Called as ``tick(done, total)`` a few times each second; what it raises ends the run.
    limit : int, optional
        Largest number of rounds of search; after it the result is a matching and a bound, not certified.
    dense : int
        Files of no more records than this are solved with the matrix of all costs.

    Notes
    -----
    Which of several optima is found may depend on the order of the records: shuffle one file before, so that
    its order cannot give the truth away, and see `ties` for what holds in all of them.

    Columns are listed for each row as they are needed: an auction with falling steps [bertsekas1988]_ and
    shortest augmenting paths [jonker1987]_ work on the lists, and no row bids or is placed unless what it has
    not listed is known to be no better. Identical records are one row of several units.
    **Cost:** most of the time goes into the search, between :math:`n` and :math:`n^2`, and :math:`n^2` into
    the last check of all pairs; memory :math:`O(n d)`.

    References
    ----------
    .. [bertsekas1988] D. P. Bertsekas (1988). The auction algorithm: a distributed relaxation method for the
       assignment problem. Annals of Operations Research 14, 105–123.
    .. [jonker1987] R. Jonker, A. Volgenant (1987). A shortest augmenting path algorithm for dense and sparse
       linear assignment problems. Computing 38, 325–340.
    """
    framed = frame(rows, columns, metric, n_codes=n_codes, weights=weights)
    n, m = len(framed.space.rows), len(framed.space.columns)
    limits = limits_of(framed, radii, n)
    unlimited = np.full(n, NEVER)
    most = 0.0

    def beat(share: float) -> None:
        nonlocal most
        most = max(most, share)
        if tick is not None:
            tick(int(most * N_TICKS), N_TICKS)

    if min(n, m) == 0:
        found = _PricedMatching(np.full(n, -1), np.zeros(n, np.int64), np.zeros(m, np.int64))
    elif max(n, m) <= dense:
        found = _solve_dense(framed.space, limits)
    else:
        found = _solve_large(framed, unlimited, None, limit, beat)
        if _exceeds(framed, found.partners, limits):
            found = _solve_large(framed, limits, found, limit, beat)
    verdict = judge(
        framed, found.row_prices, found.column_prices, found.partners, limits, tick=_last_part(tick, most)
    )
    if not verdict.certified and limit is None and dense < max(n, m) <= FALLBACK:
        found = _solve_dense(framed.space, limits)
        verdict = judge(framed, found.row_prices, found.column_prices, found.partners, limits, tick=None)
    return Assignment(
        partners=found.partners,
        row_prices=found.row_prices,
        column_prices=found.column_prices,
        cost=verdict.cost,
        bound=min(verdict.bound, verdict.cost) if verdict.is_matching else verdict.bound,
        unit=framed.unit,
        certified=verdict.certified,
        complete=verdict.is_matching,
    )


def _last_part(tick: Tick | None, most: float) -> Tick | None:
    """Fit the ticks of the verification behind those of the solver."""
    if tick is None:
        return None
    return lambda done, total: tick(int((most + (1 - most) * done / total) * N_TICKS), N_TICKS)


def _exceeds(framed: Frame, partners: Ints, limits: Ints) -> bool:
    """Tell whether a matched pair is farther apart than its row's radius."""
    linked = np.flatnonzero(partners >= 0)
    return bool((costs_of_pairs(framed.space, linked, partners[linked]) > limits[linked]).any())


def _solve_large(
    framed: Frame,
    limits: Ints,
    start: _PricedMatching | None,
    limit: int | None,
    beat: Callable[[float], None],
) -> _PricedMatching:
    """Solve by search, on distinct records; with a start, from its prices."""
    space = framed.space
    n, m = len(space.rows), len(space.columns)
    is_free = bool((limits >= NEVER).all())
    if n == m and space.rows.shape[1] == 1 and space.norm.n_measured == 1 and is_free:
        return _solve_on_line(space)
    if n > m:  # the smaller file bids, so that columns are what is left over
        turned = Frame(space._replace(rows=space.columns, columns=space.rows), framed.unit, framed.rounding)
        prices = None if start is None else start.row_prices
        found = _solve_distinct(turned, np.full(m, NEVER), limits, prices, limit, beat)
        partners = np.full(n, -1, dtype=np.int64)
        owned = np.flatnonzero(found.partners >= 0)
        partners[found.partners[owned]] = owned
        return _PricedMatching(partners, found.column_prices, found.row_prices)
    prices = None if start is None else start.column_prices
    return _solve_distinct(framed, limits, np.full(m, NEVER), prices, limit, beat)


def _solve_distinct(  # noqa: PLR0917
    framed: Frame,
    row_limits: Ints,
    column_limits: Ints,
    prices: Ints | None,
    limit: int | None,
    beat: Callable[[float], None],
) -> _PricedMatching:
    """Collapse identical records, solve, and expand; there are no more rows than columns."""
    space = framed.space
    row_firsts, row_groups = distinct(space.rows, row_limits)
    column_firsts, column_groups = distinct(space.columns, column_limits)
    small = Frame(
        space._replace(rows=space.rows[row_firsts], columns=space.columns[column_firsts]),
        framed.unit,
        framed.rounding,
    )
    solver = Solver(
        small,
        np.bincount(row_groups),
        np.bincount(column_groups),
        row_limits[row_firsts],
        column_limits[column_firsts],
        beat,
    )
    flow = solver.solve(None if prices is None else prices[column_firsts], limit)
    is_free = bool((row_limits >= NEVER).all() and (column_limits >= NEVER).all())
    partners = _expand_groups(flow, row_groups, column_groups, fill=is_free)
    return _PricedMatching(partners, flow.row_prices[row_groups], flow.column_prices[column_groups])


def _expand_groups(flow: SolverResult, row_groups: Ints, column_groups: Ints, *, fill: bool) -> Ints:
    """Turn units that groups hold of each other into partners of records.

    Units not placed are matched with room not filled, so that each record has a place in the count; such
    pairs stay only if ``fill`` says so.
    """
    n_columns = int(column_groups.max()) + 1
    filled = np.bincount(flow.columns, weights=flow.units, minlength=n_columns).astype(np.int64)
    left_columns = np.repeat(np.arange(n_columns), np.bincount(column_groups) - filled)
    left_rows = np.repeat(np.arange(len(flow.row_left)), flow.row_left)
    of_rows = np.concatenate((np.repeat(flow.rows, flow.units), left_rows))
    of_columns = np.concatenate((np.repeat(flow.columns, flow.units), left_columns))
    is_placed = np.arange(len(of_rows)) < len(of_rows) - len(left_rows)
    columns = np.empty(len(of_columns), dtype=np.int64)
    columns[np.argsort(of_columns, kind="stable")] = np.argsort(column_groups, kind="stable")
    by_row = np.argsort(of_rows, kind="stable")[: len(row_groups)]  # behind them: columns left over
    partners = np.empty(len(row_groups), dtype=np.int64)
    partners[np.argsort(row_groups, kind="stable")] = np.where(is_placed[by_row] | fill, columns[by_row], -1)
    return partners


# Small files and files of one attribute, where no search is needed ---------------------------------------


def _solve_dense(space: CostSpace, limits: Ints) -> _PricedMatching:
    """Solve a small problem by SciPy's dense solver; without prices if not all can have a partner.

    Costs have so few bits that its doubles are exact.
    """
    # On use: the library takes more memory than a large problem does.
    from scipy.optimize import linear_sum_assignment
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    costs = costs_of_all(space)
    is_edge = costs <= limits[:, None]
    n, m = costs.shape
    partners, paid = np.full(n, -1, dtype=np.int64), costs.astype(np.float64)
    if not is_edge.all():
        matched = maximum_bipartite_matching(csr_array(is_edge), perm_type="column")
        if int((matched >= 0).sum()) < min(n, m):
            return _PricedMatching(matched.astype(np.int64), np.zeros(n, np.int64), np.zeros(m, np.int64))
        paid[~is_edge] = np.inf
    linked, its = linear_sum_assignment(paid)
    partners[linked] = its
    if n <= m:
        row_prices, column_prices = _prices(costs, is_edge, partners)
    else:
        owners = np.empty(m, dtype=np.int64)
        owners[its] = linked
        column_prices, row_prices = _prices(costs.T, is_edge.T, owners)
    return _PricedMatching(partners, row_prices, column_prices)


def _prices(costs: Ints, is_edge: Flags, partners: Ints) -> tuple[Ints, Ints]:
    """Build prices from an optimal matching of all rows: shortest paths over what exchanges would cost.

    Row i leaves its column for another at the difference of costs; in an optimum no cycle of such exchanges
    gains anything, so that lowering prices along them comes to an end.
    """
    own = costs[np.arange(len(costs)), partners]
    exchanges = np.where(is_edge, costs - own[:, None], NEVER // 2)
    column_prices = np.zeros(costs.shape[1], dtype=np.int64)
    changed = np.arange(len(costs))  # rows whose column fell in price
    row_of = np.full(costs.shape[1], -1, dtype=np.int64)
    row_of[partners] = np.arange(len(costs))
    while len(changed):
        offers = (exchanges[changed] + column_prices[partners[changed]][:, None]).min(axis=0)
        fallen = np.flatnonzero(offers < column_prices)
        column_prices[fallen] = offers[fallen]
        changed = row_of[fallen]
        changed = changed[changed >= 0]
    return own - column_prices[partners], column_prices


def _solve_on_line(space: CostSpace) -> _PricedMatching:
    """Match two equally large files of one attribute in sorted order.

    The prices are values of one function of slope −1, 0 or 1: falling where more rows than columns lie to
    the left, so that what is carried to the right across a place pays for it.
    """
    rows = np.rint(space.rows[:, 0] * space.scale).astype(np.int64)
    columns = np.rint(space.columns[:, 0] * space.scale).astype(np.int64)
    partners = np.empty(len(rows), dtype=np.int64)
    partners[np.argsort(rows, kind="stable")] = np.argsort(columns, kind="stable")
    places = np.concatenate((rows, columns))
    order = np.argsort(places, kind="stable")
    surplus = np.cumsum(np.where(order < len(rows), 1, -1))
    steps = np.diff(places[order], prepend=places[order[:1]])
    heights = np.empty(len(places), dtype=np.int64)
    heights[order] = np.cumsum(-np.sign(np.concatenate(([0], surplus[:-1]))) * steps)
    return _PricedMatching(partners, heights[: len(rows)], -heights[len(rows) :])
