"""Centres of groups: mean, median or most frequent value of each, and what is lost by showing them.

All but `group_means` take one column without holes. Whole numbers stay whole, and exact: instants in
nanoseconds are more than a float can hold.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato.kernels.arrays import Floats, Ints, Values
from sfumato.kernels.compiling import njit

#: Two sums of weights that differ by less than this share are alike: adding up may round either.
ALIKE = 1e-12


def means(values: Values, groups: Ints, n_groups: int, weights: Floats | None = None) -> Values:
    r"""Mean of each group.

    .. math:: \bar x_g = x_f + \frac{\sum_{i \in g} w_i (x_i - x_f)}{\sum_{i \in g} w_i}

    with :math:`x_f` the first value of the group: equal values have exactly that mean, and values far from
    zero lose no digits. The mean of whole numbers (an integer type) is rounded to one, halves up.

    Parameters
    ----------
    values : float64[n] or int64[n]
    groups : int64[n]
        From 0 up.
    n_groups : int
    weights : float64[n], optional
        Positive.

    Returns
    -------
    float64[n_groups] or int64[n_groups]
        0 for a group without a value.
    """
    firsts = np.zeros(n_groups, dtype=values.dtype)
    firsts[groups[::-1]] = values[::-1]  # of several the last assigned stays: the first in the group
    differences = (values - firsts[groups]).astype(np.float64)
    totals: Any = np.bincount(groups, weights, minlength=n_groups)
    sums = np.bincount(groups, differences if weights is None else differences * weights, minlength=n_groups)
    moves = sums / np.where(totals > 0, totals, 1)
    if values.dtype.kind in "iu":
        moves = np.floor(moves + 0.5).astype(values.dtype)
    return firsts + moves


def group_means(values: Floats, groups: Ints) -> Floats:
    """Mean of each group in each column, over what is present; NaN where a group has no value.

    Parameters
    ----------
    values : float64[n, d]
        NaN is missing.
    groups : int64[n]
        From 0 up.

    Returns
    -------
    float64[n_groups, d]
    """
    n_groups = int(groups.max(initial=-1)) + 1
    found = np.full((n_groups, values.shape[1]), np.nan)
    for column in range(values.shape[1]):
        present = ~np.isnan(values[:, column])
        of_present = groups[present]
        centres = means(values[present, column], of_present, n_groups)
        found[of_present, column] = centres[of_present]
    return found


def medians(
    values: Values, groups: Ints, n_groups: int, weights: Floats | None = None, *, between: bool = False
) -> Values:
    r"""Median of each group: the lower one, which occurs in it, or the middle of the lower and the upper.

    .. math:: m^- = \min \Bigl\{x : \sum_{x_i \le x} w_i \ge \tfrac12 W\Bigr\}, \qquad
              m^+ = \min \Bigl\{x : \sum_{x_i \le x} w_i > \tfrac12 W\Bigr\}

    with sums over the group, and :math:`W` its total weight.

    Parameters
    ----------
    values, groups, n_groups, weights
        As for `means`.
    between : bool
        Give :math:`(m^- + m^+) / 2`, the usual median of a continuous column, instead of :math:`m^-`.

    Returns
    -------
    float64[n_groups] or int64[n_groups]
        0 for a group without a value.
    """
    order = np.lexsort((values, groups))
    counts = np.bincount(groups, minlength=n_groups)
    starts = np.cumsum(counts) - counts
    if weights is None:
        lower, upper = starts + (counts - 1) // 2, starts + counts // 2
    else:
        lower, upper = _weighted_middles(weights[order], starts, counts)
    filled = counts > 0
    low, high = (values[order[place[filled]]] for place in (lower, upper))
    found = np.zeros(n_groups, dtype=values.dtype)
    found[filled] = low / 2 + high / 2 if between else low
    alike = low == high
    found[np.flatnonzero(filled)[alike]] = low[alike]  # halving the least of floats would lose a digit
    return found


def trimmed_means(values: Values, groups: Ints, n_groups: int, weights: Floats | None = None) -> Values:
    r"""Mean of each group without its lowest and its highest values.

    Of :math:`m` values :math:`\max(1, \lfloor m/4 \rfloor)` are left out at either end, of one or two none.
    Parameters and result as for `means`; values are left out by their number, whatever their weight.
    """
    order = np.lexsort((values, groups))
    counts = np.bincount(groups, minlength=n_groups)
    places = np.arange(len(values)) - (np.cumsum(counts) - counts)[groups[order]]
    out = np.where(counts > 2, np.maximum(counts // 4, 1), 0)[groups[order]]  # noqa: PLR2004
    kept = order[(places >= out) & (places < counts[groups[order]] - out)]
    return means(values[kept], groups[kept], n_groups, None if weights is None else weights[kept])


@njit(cache=True, nogil=True)
def _weighted_middles(weights: Floats, starts: Ints, counts: Ints) -> tuple[Ints, Ints]:
    """Find the places of the lower and upper median of each run of sorted values."""
    lower, upper = starts.copy(), starts.copy()
    for group in range(len(starts)):
        run = weights[starts[group] : starts[group] + counts[group]]
        total = 0.0
        for weight in run:
            total += weight
        so_far, found = 0.0, False
        for place in range(counts[group]):
            so_far += run[place]
            if not found and so_far >= total * (0.5 - ALIKE):
                lower[group], found = starts[group] + place, True
            if so_far > total * (0.5 + ALIKE):
                upper[group] = starts[group] + place
                break
    return lower, upper


def modes(values: Values, groups: Ints, n_groups: int, weights: Floats | None = None) -> Values:
    """Most frequent value of each group; of equals the one more frequent over all, then the lowest.

    Parameters and result as for `means`; with weights, frequent is what has the greatest total weight.
    """
    distinct, codes = np.unique(values, return_inverse=True)
    pairs, members = np.unique(groups * len(distinct) + codes, return_inverse=True)
    here, everywhere = _frequencies(members, weights), _frequencies(codes, weights)
    group, code = np.divmod(pairs, max(len(distinct), 1))
    # The pairs are sorted by group and value, and the sort is stable: the lowest value is first of equals.
    order = np.lexsort((-everywhere[code], -here, group))
    opens = np.diff(group[order], prepend=-1) > 0
    found = np.zeros(n_groups, dtype=values.dtype)
    found[group[order][opens]] = distinct[code[order][opens]]
    return found


def _frequencies(codes: Ints, weights: Floats | None) -> Floats:
    """Sum up the weight of each code, without the last digits, in which the order of adding shows."""
    sums = np.bincount(codes, weights).astype(np.float64)
    if weights is None:
        return sums
    mantissas, exponents = np.frexp(sums)
    return np.ldexp(np.rint(mantissas / ALIKE), exponents)


def sum_of_squares_within(points: Floats, groups: Ints) -> float:
    r"""Sum of squares within groups.

    .. math:: \mathrm{SSE} = \sum_g \sum_{i \in g} \lVert x_i - \bar x_g \rVert^2

    Parameters
    ----------
    points : float64[n, d]
        Complete and finite.
    groups : int64[n]
        From 0 up; all in one give the total sum of squares, SST.
    """
    n_groups = int(groups.max(initial=-1)) + 1
    columns = (points[:, column] for column in range(points.shape[1]))
    return float(sum(((x - means(x, groups, n_groups)[groups]) ** 2).sum() for x in columns))


def sse_ratio(points: Floats, groups: Ints) -> float:
    """Information lost by showing the mean of each group: SSE / SST, from 0 to 1 (0 where nothing varies)."""
    total = sum_of_squares_within(points, np.zeros(len(points), dtype=np.int64))
    return sum_of_squares_within(points, groups) / total if total > 0 else 0.0
