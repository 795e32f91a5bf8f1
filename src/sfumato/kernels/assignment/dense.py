"""Small files and files of one attribute, where no search is needed."""

from __future__ import annotations

import numpy as np

from sfumato.kernels.arrays import Flags, Ints
from sfumato.kernels.assignment.costs import NEVER, Space, costs_of_all


def solve_dense(space: Space, limits: Ints) -> tuple[Ints, Ints, Ints, bool]:
    """Solve a small problem by SciPy's dense solver; return partners, both prices and whether all have one.

    Costs have so few bits that its doubles are exact.
    """
    # On use: the library takes more memory than a large problem does.
    from scipy.optimize import linear_sum_assignment
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    costs = costs_of_all(space)
    is_edge = costs <= limits[:, None]
    n, m = costs.shape
    partners = np.full(n, -1, dtype=np.int64)
    matched = maximum_bipartite_matching(csr_array(is_edge), perm_type="column")
    if int((matched >= 0).sum()) < min(n, m):
        return matched.astype(np.int64), np.zeros(n, np.int64), np.zeros(m, np.int64), False
    linked, its = linear_sum_assignment(np.where(is_edge, costs.astype(np.float64), np.inf))
    partners[linked] = its
    if n <= m:
        row_prices, column_prices = _prices(costs, is_edge, partners)
    else:
        owners = np.empty(m, dtype=np.int64)
        owners[its] = linked
        column_prices, row_prices = _prices(costs.T, is_edge.T, owners)
    return partners, row_prices, column_prices, True


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


def solve_on_line(space: Space) -> tuple[Ints, Ints, Ints]:
    """Match two equally large files of one attribute in sorted order; return partners and both prices.

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
    return partners, heights[: len(rows)], -heights[len(rows) :]
