r"""How little microaggregation can lose: a lower bound of the sum of squares within groups of at least k.

A partition is a choice of sets :math:`S` of k to 2k − 1 records that covers each record once, at the cost
:math:`c(S) = \sum_{i<j \in S} d_{ij}^2 / |S|`, its sum of squares. (A set of 2k or more can be parted into
sets of at least k, which never costs more.) By the duality of linear programming every price
:math:`\lambda_i` of the records with

.. math:: \sum_{i \in S} \lambda_i \le c(S) \quad \text{for all } S \qquad (*)

proves that no partition costs less than :math:`\sum_i \lambda_i`. And if (*) is missed by at most
:math:`\delta`, none costs less than :math:`\sum_i \lambda_i - \lfloor n / k \rfloor\, \delta`, since a
partition has at most so many sets. All of it is proved in ``docs/proofs/microaggregation-bound.md``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sfumato.kernels.arrays import Flags, Floats, Ints
from sfumato.kernels.compiling import njit
from sfumato.kernels.groups.centres import sum_of_squares_within
from sfumato.kernels.groups.farthest import mdav, refuse_unfit
from sfumato.kernels.threads import Tick

MOST_RECORDS = 80  # for which sets of records are looked for one by one
MOST_NODES = 500_000  # of the search for a set that is too dear
MOST_ROUNDS = 200
NEIGHBOURS = 8  # times k: so many pairs of a record are shared out
SWEEPS = 200
LEAST_GAIN = 1e-5
EPSILON = 1e-9  # of rounding, as a share of the total sum of squares, by which a bound is lowered


def lower_bound(points: Floats, k: int, *, tick: Tick | None = None) -> float:
    """A number below which the sum of squares within groups of at least k cannot be.

    The better of two: `bound_by_pairs` and, up to 80 records, `bound_by_columns`.

    Parameters
    ----------
    points : float64[n, d]
        Complete and finite.
    k : int
        Least size of a group.
    tick : callable, optional
        Called as ``tick(done, total)`` from time to time; what it raises ends the run.

    Returns
    -------
    float
        0 where k is 1; the total sum of squares where there are fewer than 2k records.
    """
    refuse_unfit(points, k)
    n = len(points)
    total = sum_of_squares_within(points, np.zeros(n, dtype=np.int64))
    if k == 1 or n < 2 * k or total <= 0:
        return 0.0 if k == 1 else total
    points = points[
        np.lexsort(points.T)
    ]  # of pairs equally far apart the first are shared out: not by chance
    prices, pairs = price_by_pairs(points, k, tick=tick)
    bound = float(prices.sum())
    if n <= MOST_RECORDS:
        bound = max(bound, bound_by_columns(points, k, pairs, tick=tick))
    return max(bound - EPSILON * total, 0.0)


class SharedPairs(NamedTuple):
    """The pairs of near records, each from both sides: those of record i are from starts[i] on."""

    starts: Ints
    others: Ints
    twins: Ints  # where the other side of a pair is
    shares: Floats
    beyond: Floats  # [records] what each pair that is not listed is at least worth to it


def price_by_pairs(points: Floats, k: int, *, tick: Tick | None = None) -> tuple[Floats, SharedPairs]:
    r"""Prices of the records that satisfy (*), by sharing out the square of each pair's distance.

    If :math:`d_{ij}^2 = a_{ij} + a_{ji}` with no part below 0, then

    .. math:: \lambda_i = \frac{1}{k} \min_{|J| = k - 1} \sum_{j \in J} a_{ij}

    satisfies (*): the records of a set of size :math:`s` have
    :math:`c(S) = \sum_{i \in S} \frac1s \sum_{j \in S} a_{ij}`, and the mean of the :math:`s` least of
    :math:`0, a_{i1}, a_{i2} \dots` does not fall as :math:`s` grows from k.

    All pairs begin with two halves. What a record has above its :math:`(k-1)`-th least share is of no use to
    it, and goes to the other of the pair: no price falls, some rise, until hardly anything does. Of each
    record the pairs with its 8k nearest are shared out so; those beyond stay halved, and count as if they
    were as near as the last of these.

    Parameters
    ----------
    points, k, tick
        As for `lower_bound`; at least 2k records.

    Returns
    -------
    float64[n], SharedPairs
        The prices, and how the pairs are shared out.

    Notes
    -----
    **Cost:** some sweeps over :math:`8 k n` pairs, which trees find in few columns.
    """
    from scipy.sparse import coo_array  # heavy: asked for by few
    from scipy.spatial import cKDTree

    n = len(points)
    count = n - 1 if n <= MOST_RECORDS else min(NEIGHBOURS * k, n - 1)
    distances, neighbours = cKDTree(points).query(points, count + 1)
    beyond = np.full(n, np.inf) if count == n - 1 else distances[:, -1] ** 2 / 2
    one, other = np.repeat(np.arange(n), count + 1), neighbours.ravel()
    one, other = one[one != other], other[one != other]
    both = np.concatenate([one, other]), np.concatenate([other, one])
    pairs = coo_array((np.ones(2 * len(one)), both), shape=(n, n)).tocsr()  # a pair named twice is one
    pairs.sort_indices()
    rows = np.repeat(np.arange(n), np.diff(pairs.indptr))
    columns = pairs.indices.astype(np.int64)
    shares = ((points[rows] - points[columns]) ** 2).sum(axis=1) / 2
    twins = np.lexsort((rows, columns))
    shared = SharedPairs(pairs.indptr.astype(np.int64), columns, twins, shares, beyond)
    prices, before = np.zeros(n), -1.0
    for sweep in range(SWEEPS):
        _share_out(shared, k, prices)
        if tick is not None:
            tick(sweep, SWEEPS)
        if prices.sum() <= before * (1 + LEAST_GAIN):
            break
        before = float(prices.sum())
    _share_out(shared, k, prices)
    return prices, shared


@njit(cache=True, nogil=True)
def _share_out(pairs: SharedPairs, k: int, prices: Floats) -> None:
    """Let each record in turn give away what it cannot use, and set its price, which stays or rises."""
    for record in range(len(prices)):
        start, end = pairs.starts[record], pairs.starts[record + 1]
        least = np.sort(pairs.shares[start:end])[: k - 1]
        total, top = 0.0, pairs.beyond[record]
        for place in range(k - 1):
            total += min(least[place], top) if place < len(least) else top
        if len(least) == k - 1:
            top = min(least[-1], top)
        prices[record] = total / k
        for pair in range(start, end):
            if pairs.shares[pair] > top:
                pairs.shares[pairs.twins[pair]] += pairs.shares[pair] - top
                pairs.shares[pair] = top


def bound_by_columns(points: Floats, k: int, pairs: SharedPairs, *, tick: Tick | None = None) -> float:
    r"""Lower bound by column generation, for few records, all of whose pairs are shared out.

    The linear program of the sets found so far gives prices; then the sets are searched that miss (*) most
    by these prices, and the program is solved again with them, until there is none. The search is one of
    branch and bound. From a set :math:`P` with :math:`q` records to come, of :math:`s` in all, no set can
    be had for less than

    .. math::

        \frac1s \sum_{i<j \in P} d_{ij}^2 - \sum_{i \in P} \lambda_i + \min_{|Q| = q} \sum_{j \in Q} \Bigl[
        \frac1s \Bigl( \sum_{i \in P} d_{ij}^2 + \min_{|J| = q - 1} \sum_{l \in J} a_{jl} \Bigr)
        - \lambda_j \Bigr]

    with the shares :math:`a` of the pairs. With :math:`\delta_i \ge 0` by how much a set that begins with
    record i misses (*) at most, every round gives the bound :math:`\sum_i \lambda_i` less the
    :math:`\lfloor n / k \rfloor` greatest :math:`\delta_i`, for no two sets begin with the same record. The
    best of all rounds counts, also if the search was cut short.

    Parameters
    ----------
    points, k, tick
        As for `lower_bound`.
    pairs : SharedPairs
        All pairs, from `price_by_pairs`.

    References
    ----------
    .. [aloise2014] D. Aloise, P. Hansen, C. Rocha, É. Santi (2014). Column generation bounds for numerical
       microaggregation. Journal of Global Optimization 60, 165–182.
    """
    from scipy.optimize import linprog  # heavy: asked for by few

    n = len(points)
    squares = ((points[:, None, :] - points[None, :, :]) ** 2).sum(axis=2)
    groups = mdav(points, k)
    columns = [groups == group for group in range(int(groups.max()) + 1)]
    columns += [_nearest_records(each, k) for each in squares]
    ahead = _least_to_come(pairs, n, k)
    bound, nodes = 0.0, MOST_NODES
    for done in range(MOST_ROUNDS):
        members = np.array(columns).T.astype(np.float64)
        costs = ((squares @ members) * members).sum(axis=0) / 2 / members.sum(axis=0)
        solved = linprog(costs, A_eq=members, b_eq=np.ones(n), method="highs")
        if not solved.success:
            break
        prices = solved.eqlin.marginals
        missed, sets, used = _price_sets(squares, prices, ahead, k, nodes)
        bound = max(bound, float(prices.sum() + np.sort(missed)[: n // k].sum()))
        nodes -= used
        fresh = np.flatnonzero(sets.any(axis=1))
        if not len(fresh) or nodes <= 0:
            break
        columns += list(sets[fresh])
        if tick is not None:
            tick(done, MOST_ROUNDS)
    return bound


def _nearest_records(squares: Floats, k: int) -> Flags:
    """A record and its k − 1 nearest, by the squares of distances from it."""
    members = np.zeros(len(squares), dtype=np.bool_)
    members[np.argsort(squares, kind="stable")[:k]] = True
    return members


def _least_to_come(pairs: SharedPairs, n: int, k: int) -> Floats:
    """The sum of the 0, 1, 2 … least shares of each record, [records, 2k − 1]."""
    shares = np.sort(pairs.shares.reshape(n, n - 1), axis=1)[:, : 2 * k - 2]
    sums = np.zeros((n, 2 * k - 1))
    sums[:, 1 : shares.shape[1] + 1] = np.cumsum(shares, axis=1)
    return sums


@njit(cache=True, nogil=True)
def _price_sets(
    squares: Floats, prices: Floats, ahead: Floats, k: int, most_nodes: int
) -> tuple[Floats, Flags, int]:
    """For each record the set that costs least beyond its prices, of those in which no record is before it.

    Returned are a lower bound of that cost, or 0; the set, if one below 0 was found; and the nodes searched.
    """
    n = len(prices)
    missed, sets, used = np.zeros(n), np.zeros((n, n), dtype=np.bool_), 0
    near = EPSILON * np.abs(prices).sum() / n
    for root in range(n - k + 1):
        best = -near
        for size in range(k, min(2 * k, n - root + 1)):
            least, best, used = _search_sets(
                squares, prices, ahead, root, size, best, sets[root], used, most_nodes
            )
            missed[root] = min(missed[root], least)
    return missed, sets, used


@njit(cache=True, nogil=True)
def _search_sets(  # noqa: PLR0917
    squares: Floats,
    prices: Floats,
    ahead: Floats,
    root: int,
    size: int,
    best: float,
    found: Flags,
    used: int,
    most_nodes: int,
) -> tuple[float, float, int]:
    """Search the sets of one size that begin with a record, for one below ``best``."""
    n = len(prices)
    others = root + 1 + np.argsort(squares[root, root + 1 :] / size - prices[root + 1 :], kind="mergesort")
    to_set = np.zeros((size, n))  # by how many are chosen: the squares of distances to these, in all
    to_set[0] = squares[root]
    spent, places = np.zeros(size), np.zeros(size, dtype=np.int64)
    spent[0] = -prices[root]
    chosen, level, least = np.full(size, root), 0, 0.0
    smallest = np.empty(size)
    while level >= 0:
        used += 1
        to_come = size - level - 1
        first, smallest[:to_come] = -1, np.inf
        for place in range(places[level], len(others)):
            record = others[place]
            value = (to_set[level, record] + ahead[record, to_come - 1]) / size - prices[record]
            if value < smallest[to_come - 1]:
                first = record if value < smallest[0] else first
                slot = to_come - 1
                while slot > 0 and smallest[slot - 1] > value:
                    smallest[slot] = smallest[slot - 1]
                    slot -= 1
                smallest[slot] = value
        bound = spent[level] + smallest[:to_come].sum()
        if bound >= best or used > most_nodes or to_come == 1:
            least = min(least, bound)
            if to_come == 1 and bound < best:
                best = bound
                found[:] = False
                found[first] = True
                for each in chosen[: level + 1]:
                    found[each] = True
            level -= 1
            continue
        record = others[places[level]]
        places[level] += 1
        chosen[level + 1], places[level + 1] = record, places[level]
        spent[level + 1] = spent[level] + to_set[level, record] / size - prices[record]
        to_set[level + 1] = to_set[level] + squares[record]
        level += 1
    return least, best, used
