"""The search: for each row the columns of least key, leaf by leaf, the most promising first."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sfumato.kernels.arrays import Floats, Ints, Singles
from sfumato.kernels.assignment.costs import NEVER, CostSpace
from sfumato.kernels.assignment.leaves import ENDLESS, HALF_ULP, LEAF, Blocks, Filter, round_up
from sfumato.kernels.compiling import njit
from sfumato.kernels.norms import Norm
from sfumato.kernels.sorting import sort_places
from sfumato.kernels.threads import share_out

Beat = Callable[[], None]

ALONE = 256  # rows that are searched for sooner than threads are started


class SearchRadius(NamedTuple):
    """How far a row or a column may be from its partner, in the filter's distance."""

    rows: Singles
    columns: Singles


def reach_of(filter_: Filter, row_limits: Ints, column_limits: Ints) -> SearchRadius:
    """Translate limits of cost into distances, to the safe side."""
    scale, inflation = filter_.space.scale, filter_.inflation
    row_slack, column_slack = filter_.row_slack.max(initial=0.0), filter_.column_slack.max(initial=0.0)

    def far(limits: Ints) -> Singles:
        distances = ((limits + 1) / scale + row_slack + column_slack) * inflation
        return np.where(limits >= NEVER, ENDLESS, round_up(distances))

    return SearchRadius(far(row_limits), far(column_limits))


class Sieve(NamedTuple):
    """What a search for one row needs at given prices, for loops that do it themselves."""

    rows: Singles
    blocks: Blocks
    raised: Singles
    tops: Singles
    reach: SearchRadius
    places: Ints
    row_slack: Floats
    column_slack: Floats
    inflation: float
    rounding: float
    reference: int  # prices and keys are taken from here, as prices near 0 are the most exact


def reference_of(prices: Ints) -> int:
    """Return a price in the middle: all fall together, and only their differences count."""
    return int(np.partition(prices, len(prices) // 2)[len(prices) // 2])


def sieve(filter_: Filter, prices: Ints, reach: SearchRadius) -> Sieve:
    """Lay out a filter for loops."""
    reference = reference_of(prices)
    raised, tops = filter_.prices_by_leaf(prices - reference)
    return Sieve(
        filter_.rows, filter_.blocks, raised, tops, reach, filter_.places, filter_.row_slack,
        filter_.column_slack, filter_.inflation, filter_.rounding, reference,
    )  # fmt: skip


@njit(cache=True, nogil=True)
def lower(sieve_: Sieve, space: CostSpace, column: int, price: int) -> None:
    """Tell the sieve that a price fell."""
    exact = ((price - sieve_.reference) / space.scale + sieve_.column_slack[column]) * sieve_.inflation
    raised = np.float32(exact + abs(exact) * 2.4e-7 + 1e-37)
    leaf, slot = divmod(sieve_.places[column], LEAF)
    before = sieve_.raised[leaf, slot]
    sieve_.raised[leaf, slot] = min(raised, before)
    if before == sieve_.tops[leaf]:
        top = -ENDLESS
        for other in sieve_.raised[leaf]:
            top = max(top, other)
        sieve_.tops[leaf] = top


@njit(cache=True, nogil=True)
def search_row(sieve_: Sieve, space: CostSpace, row: int, below: int, keys: Singles, found: Ints) -> int:  # noqa: PLR0917
    """Find the columns of least key of one row, if less than ``below``; return its floor."""
    threshold = np.float64(ENDLESS)
    if below < NEVER:
        wanted = (below + sieve_.reference + sieve_.rounding) / space.scale
        raised = wanted + 8 * HALF_ULP * abs(wanted) + 1.001 * sieve_.row_slack[row]
        threshold = raised * sieve_.inflation + abs(raised) * 2.4e-7 + 1e-37
    keys[:] = np.float32(threshold)
    found[:] = -1
    active = np.full(1, row)
    search_leaf(
        sieve_.rows, active, sieve_.blocks, sieve_.raised, sieve_.tops, sieve_.reach, space.norm, keys, found,
    )  # fmt: skip
    reached = np.float64(keys[0, 0])
    if reached >= ENDLESS:
        return NEVER
    lowered = reached / sieve_.inflation - 4 * HALF_ULP * abs(reached) - sieve_.row_slack[row]
    return np.int64(np.ceil(lowered * space.scale - sieve_.rounding - 1e-6)) - sieve_.reference  # type: ignore[return-value]


def search(  # noqa: PLR0917
    filter_: Filter, active: Ints, k: int, prices: Ints, below: Ints, reach: SearchRadius, *, beat: Beat
) -> tuple[Ints, Singles]:
    """Find up to k columns of least key for each active row, less than ``below``.

    Parameters
    ----------
    active : int64[a]
        Rows, rising.
    prices : int64[m]
    below : int64[a]

    Returns
    -------
    columns : int64[a, k]
        −1 where there are fewer.
    floors : int64[a]
        No column that was passed over has a lesser key.
    """
    reference = reference_of(prices)
    thresholds = filter_.thresholds(np.where(below < NEVER, below + reference, below), active)
    keys = np.repeat(thresholds[:, None], k, axis=1)
    found = np.full((len(active), k), -1, dtype=np.int64)
    raised, tops = filter_.prices_by_leaf(prices - reference)
    bounds = np.unique(np.searchsorted(active, filter_.row_leaves))
    norm = filter_.space.norm

    def work(part: Ints) -> None:
        for leaf in part:
            rows = slice(bounds[leaf], bounds[leaf + 1])
            _search_leaf(
                filter_.rows, active[rows], filter_.blocks, raised, tops, reach, norm, keys[rows],
                found[rows],
            )  # fmt: skip

    if len(active) <= ALONE:
        work(np.arange(len(bounds) - 1))
    else:
        share_out(np.arange(len(bounds) - 1), work, lambda *_: beat(), size=2)
    floors = filter_.floors(keys[:, 0], active)
    return found, np.where(floors < NEVER, floors - reference, floors)


@njit(cache=True, nogil=True, fastmath=True, forceinline=True)
def measure(  # noqa: PLR0917
    point: Singles, block: Singles, begin: int, end: int, norm: Norm, totals: Singles
) -> None:
    """Add the attributes from ``begin`` to ``end`` to the (squared) distances of a point to a block."""
    for c in range(begin, end):
        here, there = point[c], block[c]
        if c >= norm.n_measured:
            weight = np.float32(norm.weights[c - norm.n_measured])
            if norm.largest:
                for slot in range(len(totals)):
                    totals[slot] = max(totals[slot], weight if there[slot] != here else np.float32(0.0))
            else:
                for slot in range(len(totals)):
                    totals[slot] += weight if there[slot] != here else np.float32(0.0)
        elif norm.largest:
            for slot in range(len(totals)):
                totals[slot] = max(totals[slot], abs(here - there[slot]))
        elif norm.euclidean:
            for slot in range(len(totals)):
                difference = here - there[slot]
                totals[slot] += difference * difference
        else:
            for slot in range(len(totals)):
                totals[slot] += abs(here - there[slot])


@njit(cache=True, nogil=True, fastmath=True, forceinline=True)
def n_below(totals: Singles, raised: Singles, threshold: np.float32, euclidean: bool) -> int:  # noqa: FBT001
    """Count the slots whose key is below the threshold, without a square root."""
    count = 0
    if euclidean:
        for slot in range(len(totals)):
            room = threshold + raised[slot]
            count += totals[slot] < room * abs(room)
    else:
        for slot in range(len(totals)):
            count += totals[slot] < threshold + raised[slot]
    return count


@njit(cache=True, nogil=True, fastmath=True, forceinline=True)
def apart_of(low: Singles, high: Singles, other_low: Singles, other_high: Singles, norm: Norm) -> np.float32:
    """Return the least (squared) distance between two boxes."""
    total = np.float32(0.0)
    for c in range(len(low)):
        gap = max(np.float32(0.0), low[c] - other_high[c], other_low[c] - high[c])
        if c >= norm.n_measured:
            part = np.float32(norm.weights[c - norm.n_measured]) if gap > 0 else np.float32(0.0)
        else:
            part = gap * gap if norm.euclidean else gap
        total = max(total, part) if norm.largest else total + part
    return total


@njit(cache=True, nogil=True)
def _highest(keys: Singles) -> np.float32:
    """Return the highest of the thresholds of some rows."""
    highest = keys[0, 0]
    for r in range(1, len(keys)):
        highest = max(highest, keys[r, 0])
    return highest  # type: ignore[no-any-return]


@njit(cache=True, nogil=True)
def _in_order(bounds: Singles, limit: np.float32) -> Ints:
    """Return the places of all bounds up to the limit, the least first."""
    places = np.empty(len(bounds), dtype=np.int64)
    count = 0
    for leaf in range(len(bounds)):
        if bounds[leaf] <= limit:
            places[count] = leaf
            count += 1
    sort_places(places, count, bounds)
    return places[:count]


@njit(cache=True, nogil=True, fastmath=True)
def search_leaf(  # noqa: PLR0917
    rows: Singles, active: Ints, blocks: Blocks, raised: Singles, tops: Singles, reach: SearchRadius,
    norm: Norm, keys: Singles, found: Ints,
) -> None:  # fmt: skip
    """Search for the rows of one leaf, the most promising leaves of columns first."""
    n_leaves, n_attributes = blocks.lows.shape
    k, euclidean = keys.shape[1], norm.euclidean
    low, high = np.empty(n_attributes, dtype=np.float32), np.empty(n_attributes, dtype=np.float32)
    for c in range(n_attributes):
        low[c] = high[c] = rows[active[0], c]
        for row in active:
            low[c], high[c] = min(low[c], rows[row, c]), max(high[c], rows[row, c])
    apart, bounds = np.empty(n_leaves, dtype=np.float32), np.empty(n_leaves, dtype=np.float32)
    largest = np.float32(0.0)
    for leaf in range(n_leaves):
        apart[leaf] = apart_of(low, high, blocks.lows[leaf], blocks.highs[leaf], norm)
        distance = np.sqrt(apart[leaf]) if euclidean else apart[leaf]
        bounds[leaf] = distance - tops[leaf]
        largest = max(largest, distance, abs(tops[leaf]))
    totals = np.empty(LEAF, dtype=np.float32)
    n_first = min(n_attributes, max(3, n_attributes // 3))
    first, rest = (0, n_first), (n_first, n_attributes)
    if 0 < norm.n_measured < n_attributes:  # codes first: one that differs says most
        first, rest = (norm.n_measured, n_attributes), (0, norm.n_measured)
    highest = _highest(keys)
    near = _in_order(bounds, highest + np.float32(1e-6) * (abs(highest) + largest))
    for leaf in near:
        highest = _highest(keys)
        if bounds[leaf] > highest + np.float32(1e-6) * (abs(highest) + largest):
            break
        begin, size = blocks.starts[leaf], blocks.starts[leaf + 1] - blocks.starts[leaf]
        for r in range(len(active)):
            threshold = keys[r, 0]
            room = threshold + tops[leaf]
            limit = room * abs(room) if euclidean else room
            far = reach.rows[active[r]]
            limit = min(limit, far * far if euclidean else far)
            if apart[leaf] > limit:
                continue
            point = rows[active[r]]
            if apart_of(point, point, blocks.lows[leaf], blocks.highs[leaf], norm) > limit:
                continue
            totals[:] = np.float32(0.0)
            block = blocks.coordinates[leaf]
            measure(point, block, first[0], first[1], norm, totals)
            if rest[0] < rest[1]:
                if n_below(totals, raised[leaf], threshold, euclidean) == 0:
                    continue
                measure(point, block, rest[0], rest[1], norm, totals)
            if n_below(totals, raised[leaf], threshold, euclidean) == 0:
                continue
            for slot in range(size):
                room = threshold + raised[leaf, slot]
                if totals[slot] >= (room * abs(room) if euclidean else room):
                    continue
                distance = np.sqrt(totals[slot]) if euclidean else totals[slot]
                key = distance - raised[leaf, slot]
                if distance <= far and distance <= reach.columns[begin + slot]:
                    _replace_worst(keys[r], found[r], k, min(key, threshold), begin + slot)
                    threshold = keys[r, 0]


@njit(cache=True, nogil=True)
def _search_leaf(  # noqa: PLR0917
    rows: Singles, active: Ints, blocks: Blocks, raised: Singles, tops: Singles, reach: SearchRadius,
    norm: Norm, keys: Singles, found: Ints,
) -> None:  # fmt: skip
    """Call `search_leaf` for Python: so it is compiled once, for this and for `search_row`."""
    search_leaf(rows, active, blocks, raised, tops, reach, norm, keys, found)


@njit(cache=True, nogil=True)
def _replace_worst(keys: Singles, found: Ints, k: int, key: np.float32, column: int) -> None:
    """Put a column in the place of the worst, at the top of the heap, and let it sink to its own."""
    place = 0
    while True:
        child = 2 * place + 1
        if child >= k:
            break
        if child + 1 < k and keys[child + 1] > keys[child]:
            child += 1
        if keys[child] <= key:
            break
        keys[place], found[place] = keys[child], found[child]
        place = child
    keys[place], found[place] = key, column
