"""Partitions of a sorted column into groups of consecutive values: of fixed size, or of least loss.

The best partition is a shortest path: the best one of the first j values ends in some group that begins at i,
after the best one of the first i. Since every group has at least k values, the places j of a block of k can
be settled together: each reaches back to places before the block, all settled. Every group in question
crosses the beginning of the block, so its loss is put together from the part before and the part after,

    loss = loss before + loss after + n_b n_a / (n_b + n_a) · (mean before − mean after)²,

which only adds what is not negative: no digit is lost however far the values lie from zero and however many
they are, where a difference of two running sums of squares over the column would lose all of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sfumato.kernels.arrays import Floats, Ints
from sfumato.kernels.compiling import njit

MAX_DEPTH = 64  # of halving a block, and so the size of the stack
MAX_SQUARABLE = (
    1e100  # the square of a number up to here does not overflow, that of its inverse does not underflow
)


class _Path(NamedTuple):
    """The best partition of the first j values, for each j."""

    begins: Ints  # where its last group begins
    losses: Floats  # its loss, up to a constant


class _SideLosses(NamedTuple):
    """Mean and loss of the 0, 1, 2 … values nearest to the beginning of a block, on one side of it."""

    means: Floats
    losses: Floats


def consecutive(n: int, k: int) -> Ints:
    """Group n sorted values by k in turn; the last group takes what is left over, so it has up to 2k − 1.

    Fewer than 2k values make one group, however few they are.
    """
    if k < 1:
        raise ValueError(f"`k` must be at least 1, got: {k}")
    return np.minimum(np.arange(n, dtype=np.int64) // k, max(n // k - 1, 0))


def optimal(ordered: Floats, k: int) -> Ints:
    r"""Group sorted values in groups of k to 2k − 1 with the least sum of squares within groups.

    .. math:: \min \sum_g \sum_{i \in g} (x_i - \bar x_g)^2

    over all partitions with groups of at least :math:`k`. Some best one has groups of consecutive values,
    none of more than :math:`2k - 1` (Hansen and Mukherjee 2003), so that

    .. math:: f(j) = \min_{j - 2k < i \le j - k} f(i) + w(i, j), \quad f(0) = 0

    finds it, with :math:`w(i, j)` the loss of the values after the i-th up to the j-th. The best :math:`i`
    never falls as :math:`j` grows, since :math:`w(i, j) + w(i', j') \le w(i, j') + w(i', j)` for
    :math:`i \le i' \le j \le j'`: so of each block of k places the middle one is settled first, and halves
    the search of the others.

    Parameters
    ----------
    ordered : float64[n]
        Finite, from low to high.
    k : int
        Least size of a group. Fewer than :math:`2k` values make one group, however few they are.

    Returns
    -------
    int64[n]
        The group of each value, from 0 up.

    Notes
    -----
    **Cost:** :math:`O(n \log k)`; memory :math:`O(n)`.

    References
    ----------
    .. [hansen2003] S. L. Hansen, S. Mukherjee (2003). A polynomial algorithm for optimal univariate
       microaggregation. IEEE Transactions on Knowledge and Data Engineering 15, 1043–1044.
    """
    n = len(ordered)
    if k < 1:
        raise ValueError(f"`k` must be at least 1, got: {k}")
    if not np.isfinite(ordered).all():
        raise ValueError("`ordered` must be finite")
    if k == 1 or n < 2 * k:
        return consecutive(n, k)
    ordered = np.require(ordered, np.float64, ["C", "W"])  # one layout, so that one compilation serves all
    top = float(np.abs(ordered[[0, -1]]).max())
    if not 1 / MAX_SQUARABLE < top < MAX_SQUARABLE:
        ordered = np.ldexp(ordered, -int(np.frexp(top)[1]))  # a power of two: exact, and the groups stay
    return _optimal(ordered, k)


@njit(cache=True, nogil=True)
def _optimal(ordered: Floats, k: int) -> Ints:
    """Settle block after block, then walk back from the end."""
    n = len(ordered)
    path = _Path(np.zeros(n + 1, dtype=np.int64), np.zeros(n + 1))
    before, after = _SideLosses(np.empty(2 * k), np.empty(2 * k)), _SideLosses(np.empty(k), np.empty(k))
    _sum_up(ordered[: 2 * k - 1], ordered[0], before)
    for i in range(2 * k):  # fewer than 2k values are one group
        path.losses[i] = before.losses[i]
    for block in range(2 * k, n + 1, k):
        earliest = max(k, block - 2 * k + 1)
        # Only differences of losses matter: kept small, they keep their digits in a long column.
        base = path.losses[earliest]
        for i in range(earliest, block):
            path.losses[i] -= base
        origin = ordered[block - 1]  # a member of every group in question: its range bounds the errors
        _sum_up(ordered[earliest:block][::-1], origin, before)
        _sum_up(ordered[block : block + k - 1], origin, after)
        _settle(block, k, path, before, after)
    groups = np.empty(n, dtype=np.int64)
    end, n_groups = n, 0
    while end > 0:
        groups[path.begins[end] : end] = -n_groups
        end, n_groups = path.begins[end], n_groups + 1
    return groups + (n_groups - 1)


@njit(cache=True, nogil=True)
def _sum_up(values: Floats, origin: float, side: _SideLosses) -> None:
    """Set mean (from ``origin``) and loss of the first 0, 1, 2 … values, by Welford's update."""
    mean, loss = 0.0, 0.0
    side.means[0], side.losses[0] = mean, loss
    for place in range(len(values)):
        shifted = values[place] - origin
        difference = shifted - mean
        mean += difference / (place + 1)
        loss += difference * (shifted - mean)
        side.means[place + 1], side.losses[place + 1] = mean, loss


@njit(cache=True, nogil=True)
def _settle(block: int, k: int, path: _Path, before: _SideLosses, after: _SideLosses) -> None:
    """Find where the last group begins, for each number of values from ``block`` to the next block."""
    last = min(block + k, len(path.begins)) - 1
    stack = np.empty((MAX_DEPTH, 4), dtype=np.int64)
    stack[0] = block, last, max(k, block - 2 * k + 1), last - k
    height = 1
    while height > 0:
        height -= 1
        low, high, earliest, latest = stack[height]
        j = (low + high) // 2
        n_after = j - block
        mean, loss = after.means[n_after], after.losses[n_after]
        least, best = np.inf, earliest
        for i in range(max(earliest, j - 2 * k + 1), min(latest, j - k) + 1):
            n_before = block - i
            apart = before.means[n_before] - mean
            total = path.losses[i] + before.losses[n_before] + n_before * n_after / (j - i) * apart * apart
            if total < least:
                least, best = total, i
        path.begins[j], path.losses[j] = best, least + loss
        if low < j:
            stack[height] = low, j - 1, earliest, best
            height += 1
        if j < high:
            stack[height] = j + 1, high, best, latest
            height += 1
