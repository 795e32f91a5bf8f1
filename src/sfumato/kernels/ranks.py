"""Ranks: mid-ranks of a column, and the partners of rank swapping."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray


def midranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""Rank values from 1 to n; ties share their mean rank.

    .. math:: r_i = \#\{j : x_j < x_i\} + \tfrac12 (\#\{j : x_j = x_i\} + 1)

    Parameters
    ----------
    values : float64[n]
        A NaN takes no rank and gets NaN: the others are ranked as if it were not there.

    Returns
    -------
    float64[n]
    """
    n = len(values)
    # NaN goes last. Ties share a rank, so their order cannot matter, and a stable sort takes twice as long.
    order = np.argsort(values)
    ordered = values[order]
    n_present = n - int(np.count_nonzero(np.isnan(ordered)))
    ordered = ordered[:n_present]
    opens_tie = np.empty(n_present, dtype=np.bool_)
    opens_tie[:1] = True
    np.not_equal(ordered[1:], ordered[:-1], out=opens_tie[1:])
    starts = np.flatnonzero(opens_tie)

    ranks = np.full(n, np.nan)
    if len(starts) == n_present:  # no tie: the rank is the place
        ranks[order[:n_present]] = np.arange(1.0, n_present + 1.0)
        return ranks
    ends = np.append(starts[1:], n_present)
    ranks[order[:n_present]] = np.repeat(0.5 * (starts + ends + 1), ends - starts)
    return ranks


def swap_partners(n: int, reach: int, rng: np.random.Generator) -> NDArray[np.int64]:
    r"""Draw with which rank each rank changes places in rank swapping.

    From the lowest rank up, each rank :math:`i` not yet swapped draws its partner :math:`j` uniformly from
    the ranks not yet swapped with :math:`i < j \le i + w`. A rank that finds none keeps its place.

    Parameters
    ----------
    n : int
        Number of ranks.
    reach : int
        Largest distance in rank, :math:`w`; anything from :math:`n - 1` up means no limit.
    rng : numpy.random.Generator
        Advanced by one bounded integer for each pair.

    Returns
    -------
    int64[n]
        ``partners[i]``, with ``partners[partners[i]] == i`` and ``abs(partners[i] - i) <= reach``.

    Notes
    -----
    **Cost:** at most a constant number of steps for each rank, whatever the reach and the draws.
    """
    if n < 0 or reach < 0:
        raise ValueError(f"`n` and `reach` must not be negative, got: {n} and {reach}")
    return _swap_partners(n, min(reach, max(n - 1, 0)), rng)


@njit(cache=True, nogil=True)
def _swap_partners(n: int, reach: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Keep the free ranks of the sliding window as a bag: uniform draw, insert and delete in one step each.

    No rank beyond the window was ever within anyone's reach, so each rank that comes into the window is
    free, and the bag is always exactly the set of ranks that rank i may draw from. Rejection sampling would
    need no bag, but has no bound on the number of draws.
    """
    # Two uses of one array, as a rank is never both: the place of a free rank in the bag, and then, once it
    # is settled, its partner.
    partners = np.empty(n, dtype=np.int64)
    bag = np.empty(reach + 1, dtype=np.int64)
    n_free = 0
    settled = np.zeros(n, dtype=np.bool_)
    entering = 0
    for i in range(n):
        while entering < n and entering <= i + reach:
            bag[n_free] = entering
            partners[entering] = n_free
            n_free += 1
            entering += 1
        if settled[i]:
            continue
        n_free = _take_out(partners[i], bag, partners, n_free)
        settled[i] = True
        partners[i] = i
        if n_free > 0:
            place = rng.integers(0, n_free)
            j = bag[place]
            n_free = _take_out(place, bag, partners, n_free)
            settled[j] = True
            partners[i] = j
            partners[j] = i
    return partners


@njit(cache=True, nogil=True)
def _take_out(place: np.int64, bag: NDArray[np.int64], places: NDArray[np.int64], n_free: int) -> int:
    """Fill the hole at ``place`` with the last rank of the bag; return how many are left."""
    last = bag[n_free - 1]
    bag[place] = last
    places[last] = place
    return n_free - 1
