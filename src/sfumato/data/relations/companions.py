"""Companions: sets of records that lie near each other, and chains of them from one wave to the next.

Arrays in, the number of each record's set out; a record without a companion has a number of its own. What is
missing has none. All of it is sorting or a tree of points: nothing compares every record with every other.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from sfumato.data.classes.packing import Coding, number, pack
from sfumato.data.codings import decimals_of
from sfumato.data.persons import with_own_numbers
from sfumato.kernels.arrays import Flags, Floats, Ints

_PAIRS = 500_000  # of values whose difference is looked at
_FEW_POINTS = 2_000
_LARGE_DRIFT = 0.25  # of the range: what is farther apart is nobody's rise


def number_combinations(*columns: npt.NDArray[np.generic]) -> Ints:
    """Number the distinct combinations of several arrays from 0: one number for each place in them."""
    codings = []
    for column in columns:
        distinct, codes = np.unique(column, return_inverse=True)
        codings.append(Coding(codes.astype(np.uint64), max(len(distinct), 1)))
    return number(pack(codings, len(columns[0])))[0]


def near_sets(points: Floats, cells: Ints, share: float) -> Ints:
    """Link each record to its nearest other of the same cell, where that is among the nearest ``share``.

    ``points`` are [records, coordinates]. Records that are linked, one by the other, are a set.
    """
    there = np.flatnonzero(~np.isnan(points).any(axis=1))
    sets = np.full(len(points), -1, dtype=np.int64)
    if len(there):
        find = _near_values if points.shape[1] == 1 else _near_points
        sets[there] = find(points[there], cells[there], share)
    return with_own_numbers(sets)


def _near_values(points: Floats, cells: Ints, share: float) -> Ints:
    """Sets of numbers in a row: the nearest stands beside."""
    values = points[:, 0]
    order = np.lexsort((values, cells))
    gaps = np.diff(values[order])
    gaps[np.diff(cells[order]) != 0] = np.inf
    before, after = np.append(np.inf, gaps), np.append(gaps, np.inf)
    nearest = np.minimum(before, after)
    close = _close(nearest, share)
    linked = (close & (after == nearest))[:-1] | (close & (before == nearest))[1:]
    sets = np.empty(len(values), dtype=np.int64)
    sets[order] = np.append(0, np.cumsum(~linked))
    return sets


def _close(nearest: Floats, share: float) -> Flags:
    limit = np.quantile(nearest, share, method="lower")
    close: Flags = (nearest <= limit) & np.isfinite(nearest)
    return close


def _near_points(points: Floats, cells: Ints, share: float) -> Ints:
    """Sets of points; those that are equal are one point, or a tree would compare them all."""
    of_point = number_combinations(cells, *points.T)
    firsts, counts = np.unique(of_point, return_index=True, return_counts=True)[1:]
    if len(firsts) == 1:
        return of_point
    apart, far = _add_cell_coordinate(points[firsts], cells[firsts])
    distances, places = _nearest(apart, apart, 2)
    nearest = np.where(counts > 1, 0.0, distances[:, 1])
    nearest[nearest >= far] = np.inf  # of another cell
    close = _close(nearest[of_point], share)[firsts] & (counts == 1)
    return _components(len(firsts), np.flatnonzero(close), places[close, 1])[of_point]


def _nearest(points: Floats, others: Floats, k: int) -> tuple[Floats, Ints]:
    """How far the ``k`` nearest points are from each of the others, and which these are."""
    from scipy.spatial import cKDTree

    found: tuple[Floats, Ints] = cKDTree(points, balanced_tree=False, compact_nodes=False).query(others, k=k)
    return found


def _add_cell_coordinate(points: Floats, cells: Ints) -> tuple[Floats, float]:
    """The points with a coordinate more, by which those of other cells are farther than any of their own."""
    far = 2 * math.sqrt(float((np.ptp(points, axis=0) ** 2).sum())) + 1
    return np.column_stack((points, number_combinations(cells) * far)), far


def _components(n: int, these: Ints, those: Ints) -> Ints:
    """Number the sets of points that links put together, by the first point of each."""
    if n <= _FEW_POINTS:  # SciPy would take longer to load
        return _few_components(n, these, those)
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    links = coo_array((np.ones(len(these), dtype=np.int8), (these, those)), shape=(n, n))
    components: Ints = connected_components(links, directed=False)[1].astype(np.int64)
    return components


def _few_components(n: int, these: Ints, those: Ints) -> Ints:
    """Hand the lowest number on along the links until all of a set have it."""
    lowest, before = np.arange(n), np.empty(0, dtype=np.int64)
    while not np.array_equal(lowest, before):
        before, lower = lowest.copy(), np.minimum(lowest[these], lowest[those])
        for ends in (these, those, before[these], before[those]):
            np.minimum.at(lowest, ends, lower)
        lowest = lowest[lowest]
    return np.unique(lowest, return_inverse=True)[1].astype(np.int64)


# By a common drift ----------------------------------------------------------------------------------------


def drift_chains(values: Floats, cells: Ints) -> Ints:
    """Link records whose values differ by the same amount or factor as those of many others do.

    Exact salaries that all rise by 3 % are so far from each other whatever year they are of.
    """
    there = np.flatnonzero(~np.isnan(values))
    sets = np.full(len(values), -1, dtype=np.int64)
    if 2 * len(np.unique(values[there])) > max(len(there), 2):  # what many share is found by being equal
        is_positive = bool((values[there] > 0).all())
        read = np.log(values[there]) if is_positive else values[there]
        unit = 10.0 ** -(decimals_of(values[there]) or 0)
        width = max(2 * unit / float(np.median(values[there])) if is_positive else unit, 1e-9)
        drift = _commonest_drift(read, width)
        # Each record stands where it would be later, and again where it is.
        row, later = np.tile(np.arange(len(there)), 2), np.repeat([True, False], len(there))
        moved = read[row] + np.where(later, drift, 0.0)
        these, those = _next_values(moved[:, None], cells[there][row], ~later)
        close = np.abs(moved[these] - moved[those]) <= width
        sets[there] = _components(len(there), row[these[close]], row[those[close]])
    return with_own_numbers(sets)


def _commonest_drift(values: Floats, width: float) -> float:
    """The difference, not 0 and not large, that most pairs of values have, some with all being looked at."""
    ordered = np.sort(values)
    some = ordered[:: max(1, len(ordered) * len(ordered) // _PAIRS)]
    apart = (ordered[None] - some[:, None]).ravel()
    apart = apart[(apart > 2 * width) & (apart <= _LARGE_DRIFT * max(np.ptp(ordered), width))]
    if not len(apart):
        return 0.0
    bins, counts = np.unique((apart / width).astype(np.int64), return_counts=True)
    pairs = counts + np.where(np.append(np.diff(bins), 0) == 1, np.append(counts[1:], 0), 0)
    best = bins[np.argmax(pairs)]
    return float(np.median(apart[(apart >= best * width) & (apart < (best + 2) * width)]))


# From wave to wave ----------------------------------------------------------------------------------------


def chains(points: Floats, cells: Ints, waves: Ints) -> Ints:
    """Link records of consecutive waves that are each other's nearest in their cell; chains are the sets.

    ``waves`` count from 0, −1 where it is not known.
    """
    rows = np.flatnonzero(~np.isnan(points).any(axis=1) & (waves >= 0))
    n = len(points)
    if not len(rows):
        return np.arange(n)
    # Each record stands before the next wave, and again behind the last.
    row, behind = np.tile(rows, 2), np.repeat([False, True], len(rows))
    groups = number_combinations(waves[row] - behind, cells[row])
    find = _next_values if points.shape[1] == 1 else _next_points
    these, those = find(points[row], groups, behind)
    return _components(n, row[these], row[those])


def _next_values(points: Floats, groups: Ints, behind: Flags) -> tuple[Ints, Ints]:
    """The pairs, one of either side, that are each other's nearest in a row of numbers."""
    values = points[:, 0]
    order = np.lexsort((behind, values, groups))
    values, groups, sides = values[order], groups[order], behind[order]
    places = np.arange(len(order))
    below, above = (_other_side(sides, places, upwards=upwards) for upwards in (True, False))
    gaps = []
    for other in (below, above):
        is_there = (other >= 0) & (groups[other] == groups)
        gaps.append(np.where(is_there, np.abs(values - values[other]), np.inf))
    partner = np.where(gaps[0] <= gaps[1], below, above)
    partner[np.isinf(np.minimum(*gaps))] = -1
    mutual = np.flatnonzero((partner >= 0) & ~sides & (partner[partner] == places))
    return order[mutual], order[partner[mutual]]


def _other_side(sides: Flags, places: Ints, *, upwards: bool) -> Ints:
    """The last place of the other side before each, or the first one after it; −1 if there is none."""
    if not upwards:
        found = _other_side(sides[::-1], places, upwards=True)[::-1]
        return np.where(found < 0, -1, len(places) - 1 - found)
    last = [np.maximum.accumulate(np.where(sides == side, places, -1)) for side in (False, True)]
    return np.where(sides, last[0], last[1])


def _next_points(points: Floats, groups: Ints, behind: Flags) -> tuple[Ints, Ints]:
    """The pairs, one of either side, that are each other's nearest points; of equal points the first."""
    apart, far = _add_cell_coordinate(points, groups)
    first_rows = np.unique(number_combinations(groups, behind, *points.T), return_index=True)[1]
    left, right = first_rows[~behind[first_rows]], first_rows[behind[first_rows]]
    if not len(left) or not len(right):
        return left[:0], right[:0]
    distances, forth = _nearest(apart[right], apart[left], 1)
    back = _nearest(apart[left], apart[right], 1)[1]
    mutual = (distances < far) & (back[forth] == np.arange(len(left)))
    return left[mutual], right[forth[mutual]]


def wave_ranks(values: Floats, waves: Ints) -> Floats:
    """The rank of each number within its wave, equal ones alike, as a share of those that have one."""
    order, starts, sizes = _by_wave(values, waves)
    in_order = values[order]
    opens = np.append(True, np.diff(in_order) != 0) if len(order) else np.zeros(0, dtype=np.bool_)
    opens[starts] = True
    runs = np.cumsum(opens) - 1
    places = np.arange(len(order)) - np.repeat(starts, sizes) + 0.5
    ranks = np.full(len(values), np.nan)
    ranks[order] = (np.bincount(runs, places) / np.bincount(runs))[runs] / np.repeat(sizes, sizes)
    return ranks


def wave_levels(values: Floats, waves: Ints) -> Floats:
    """Each number from the median of its wave, in logarithms where all are positive, by their spread."""
    with np.errstate(invalid="ignore"):
        scaled = np.log(values) if bool((values[~np.isnan(values)] > 0).all()) else values.copy()
    order, starts, sizes = _by_wave(scaled, waves)
    levels = np.full(len(values), np.nan)
    if len(order):
        middles = (scaled[order[starts + (sizes - 1) // 2]] + scaled[order[starts + sizes // 2]]) / 2
        levels[order] = scaled[order] - np.repeat(middles, sizes)
        levels /= max(float(np.nanstd(levels)), 1e-300)
    return levels


def _by_wave(values: Floats, waves: Ints) -> tuple[Ints, Ints, Ints]:
    """The records that have a value, by wave and value; where each wave begins, and how many it has."""
    there = np.flatnonzero(~np.isnan(values) & (waves >= 0))
    order = there[np.lexsort((values[there], waves[there]))]
    _, starts, sizes = np.unique(waves[order], return_index=True, return_counts=True)
    return order, starts, sizes
