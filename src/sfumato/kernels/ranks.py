"""Ranks: mid-ranks of a column, and the partners of rank swapping in its three variants."""

from __future__ import annotations

import numpy as np

from sfumato.kernels.arrays import Floats, Ints
from sfumato.kernels.compiling import by_python, njit
from sfumato.kernels.threads import CompileAllowance

_ALLOWANCE = CompileAllowance(200_000)  # ranks, by Python


def midranks(values: Floats) -> Floats:
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


def swap_partners(n: int, reach: int, rng: np.random.Generator) -> Ints:
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
    with by_python(_ALLOWANCE.takes(n)):
        return _swap_partners(n, min(reach, max(n - 1, 0)), rng)


@njit(cache=True, nogil=True)
def _swap_partners(n: int, reach: int, rng: np.random.Generator) -> Ints:
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


def distant_partners(n: int, distance: float, rng: np.random.Generator) -> Ints:
    r"""Draw the partners of rank swapping by a normal distance, without a window.

    From the lowest rank up, each rank :math:`i` not yet swapped draws :math:`r \sim N(w, w^2)` until
    :math:`i + r`, rounded, is a rank not yet swapped. After 32 draws in vain (the ranks left may be few and
    far) it draws one of the next :math:`2w` ranks uniformly and takes the first free one from there up, or
    else the highest that is free.

    Parameters
    ----------
    n : int
        Number of ranks.
    distance : float
        Mean and standard deviation of the distance in rank, :math:`w`.
    rng : numpy.random.Generator
        Advanced by at most 32 normals and one bounded integer for each pair.

    Returns
    -------
    int64[n]
        ``partners[i]``, with ``partners[partners[i]] == i``; at most one rank is its own partner.

    Notes
    -----
    **Cost:** at most a constant number of draws for each rank; finding the next free rank is a union-find,
    near-constant too.
    """
    if n < 0 or not 0 <= distance < np.inf:
        raise ValueError(f"`n` and `distance` must not be negative, got: {n} and {distance}")
    with by_python(_ALLOWANCE.takes(n)):
        return _distant_partners(n, min(distance, float(n)), rng)


@njit(cache=True, nogil=True)
def _distant_partners(n: int, distance: float, rng: np.random.Generator) -> Ints:
    """All ranks below i are settled, so whatever is free lies above it."""
    partners = np.full(n, -1, dtype=np.int64)
    next_free = np.arange(n + 1)  # a settled rank points upwards; n means that none is left
    highest = n - 1
    reach = max(1, int(2 * distance))
    for i in range(n):
        if partners[i] >= 0:
            continue
        next_free[i] = i + 1
        j = -1
        for _ in range(32):
            drawn = int(np.rint(i + distance * (1.0 + rng.standard_normal())))
            if i < drawn < n and partners[drawn] < 0:
                j = drawn
                break
        if j < 0 and i < n - 1:
            j = _first_free(next_free, i + 1 + int(rng.integers(0, min(reach, n - 1 - i))))
        if j < 0 or j == n:
            while highest > i and partners[highest] >= 0:
                highest -= 1
            j = max(highest, i)
        partners[i] = j
        partners[j] = i
        next_free[j] = j + 1
    return partners


@njit(cache=True, nogil=True)
def _first_free(next_free: Ints, place: int) -> int:
    """Follow the pointers up to a place that is free, shortening the way for those who come later."""
    while next_free[place] != place:
        next_free[place] = next_free[next_free[place]]
        place = next_free[place]
    return place


def bucket_partners(n: int, n_buckets: int, rng: np.random.Generator) -> Ints:
    r"""Draw the partners of rank swapping by buckets, near ones more often than far ones.

    The ranks are cut into :math:`p` buckets of equal size (to within one). From the lowest rank up, each
    rank not yet swapped, in bucket :math:`r`, draws a bucket :math:`s \ge r` with

    .. math:: P(s \mid r) = \frac{2^{-(s - r + 1)}}{1 - 2^{-(p - r)}}, \qquad r, s = 0, \dots, p - 1,

    and then its partner uniformly from the ranks of bucket s not yet swapped. Where s has none left, the
    next bucket up that has some takes its place, or else the highest that has.

    Parameters
    ----------
    n : int
        Number of ranks.
    n_buckets : int
        Number of buckets, :math:`p`, at least 1; above n it counts as n.
    rng : numpy.random.Generator
        Advanced by one double and one bounded integer for each pair.

    Returns
    -------
    int64[n]
        ``partners[i]``, with ``partners[partners[i]] == i``; at most one rank is its own partner.

    Notes
    -----
    **Cost:** near-constant for each rank, whatever the buckets and the draws.
    """
    if n < 0 or n_buckets < 1:
        raise ValueError(f"`n` must not be negative and `n_buckets` at least 1, got: {n} and {n_buckets}")
    with by_python(_ALLOWANCE.takes(n)):
        return _bucket_partners(n, max(1, min(n_buckets, n)), rng)


@njit(cache=True, nogil=True)
def _bucket_partners(n: int, n_buckets: int, rng: np.random.Generator) -> Ints:
    """Keep the free ranks of each bucket as a bag: uniform draw and delete in one step each."""
    bucket_of = np.empty(n, dtype=np.int64)
    starts = np.zeros(n_buckets, dtype=np.int64)
    counts = np.zeros(n_buckets, dtype=np.int64)
    for i in range(n):
        bucket = i * n_buckets // n
        bucket_of[i] = bucket
        if counts[bucket] == 0:
            starts[bucket] = i
        counts[bucket] += 1
    bag, places = np.arange(n), np.arange(n)
    next_free = np.arange(n_buckets + 1)
    highest = n_buckets - 1
    partners = np.full(n, -1, dtype=np.int64)
    for i in range(n):
        if partners[i] >= 0:
            continue
        own = bucket_of[i]
        partners[i] = i
        counts[own] = _take_out(places[i], bag, places, starts[own] + counts[own]) - starts[own]
        if counts[own] == 0:
            next_free[own] = own + 1
        while highest >= own and counts[highest] == 0:
            highest -= 1
        if highest < own:  # nobody is left
            continue
        share = 1.0 - 0.5 ** (n_buckets - own)
        step = int(-np.log2(1.0 - rng.random() * share))
        chosen = min(_first_free(next_free, min(own + step, n_buckets - 1)), highest)
        place = starts[chosen] + rng.integers(0, counts[chosen])
        j = bag[place]
        counts[chosen] = _take_out(place, bag, places, starts[chosen] + counts[chosen]) - starts[chosen]
        if counts[chosen] == 0:
            next_free[chosen] = chosen + 1
        partners[i] = j
        partners[j] = i
    return partners


@njit(cache=True, nogil=True)
def _take_out(place: np.int64, bag: Ints, places: Ints, n_free: int) -> int:
    """Fill the hole at ``place`` with the last rank of the bag; return how many are left."""
    last = bag[n_free - 1]
    bag[place] = last
    places[last] = place
    return n_free - 1
