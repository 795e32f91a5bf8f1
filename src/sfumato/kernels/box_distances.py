"""Distances from points to boxes: released records that show ranges in some columns and sets in others.

The *near* distance is that to the nearest point of a box, 0 where it covers; the *far* one that to its
farthest. Of a box of one point both are the distance to it. Boxes stand in the order of their loss. For the
rivals of a point only its own boxes are looked at first; the first that is nearer than these ends the search.

Who may cover a point is asked of `Shown.bits`: a row for each place in each column, with one bit for each
box. Where the rows of all columns meet stand the boxes that may cover it, 64 of them compared at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from sfumato.kernels.arrays import Bytes, Floats, Ints, Words
from sfumato.kernels.compiling import by_python, njit
from sfumato.kernels.threads import CompileAllowance, Tick, share_out

NEVER = 2**62  # the cost of a pair that cannot be
UNITS = 2.0**40  # of a loss: losses that differ by less are equal, since sums of shares round
DISTANCE_TOLERANCE = (
    2.0**-34
)  # as in `kernels.linking`: distances that differ by less of what goes into them are equal

_ALLOWANCE = CompileAllowance(100_000)  # bits set, and columns of pairs, by Python

#: Pairs between two calls of `tick`, so that each takes about a tenth of a second.
_PAIRS = 20_000_000


class QueryPoints(NamedTuple):
    """What is looked for: numbers (NaN: missing) and codes, and in which row of the bits each column is."""

    numbers: Floats  # [n, ranges]
    codes: Ints  # [n, sets of numbers]
    places: Ints  # [n, columns] first those of categories, of these sets of them first


class OwnBoxes(NamedTuple):
    """The boxes that are a point's own."""

    starts: Ints  # [n] they are boxes[starts:ends], ascending
    ends: Ints  # [n]
    boxes: Ints
    counts: Ints  # how many records of each of them are its own


class ReleasedCombinations(NamedTuple):
    """What released records show, in the order of their loss; of those alike, one."""

    lows: Floats  # [g, ranges] −∞ and ∞ where a side is open
    highs: Floats
    ends: Floats  # [2, ranges] from the least to the greatest value there is
    steps: Bytes  # [ranges] 1: values are equal or not, and one unit apart then
    labels: Ints  # [g, sets of numbers] rows of the tables
    near: Floats  # [labels of all columns, codes] the distance of each code from each label
    far: Floats
    bits: Words  # [places of all columns, g / 64] which boxes may be there; of sets of categories, which are
    exact: Bytes  # [g, sets of categories] 1: of one category
    n_steps: int  # columns of categories
    losses: Ints  # [g] ascending, in units
    sizes: Ints  # [g] records
    euclidean: bool


class Pricing(NamedTuple):
    """What a pair costs: distance and loss, in units of 1/``scale``; beyond ``reach`` it cannot be."""

    scale: float
    reach: float


def no_bits(n_rows: int, n_boxes: int) -> Words:
    """Make rows of bits that are not set."""
    return np.zeros((n_rows, -(-n_boxes // 64)), dtype=np.uint64)


def mark(bits: Words, boxes: Ints, firsts: Ints, lasts: Ints) -> None:
    """Set the bits of these boxes from a first to a last row each."""
    with by_python(_ALLOWANCE.takes(int((lasts - firsts + 1).sum()))):
        _mark(bits, boxes, firsts, lasts)


@njit(cache=True, nogil=True)
def _mark(bits: Words, boxes: Ints, firsts: Ints, lasts: Ints) -> None:
    for run in range(len(boxes)):
        word, bit = boxes[run] >> 6, np.uint64(1) << np.uint64(boxes[run] & 63)
        for row in range(firsts[run], lasts[run] + 1):
            bits[row, word] |= bit


@njit(cache=True, nogil=True)
def _next(bits: Words, places: Ints, i: int, first: int, end: int, n_columns: int, most: float) -> int:  # noqa: PLR0917 # fmt: skip
    """The first box from ``first`` on that misses a point in at most ``most`` of some columns, or ``end``.

    Misses of 64 boxes are counted at once, in the bits of three words; four or more are one.
    """
    if most >= min(n_columns, 4):
        return first
    if most < 0.0:
        return end
    skipped, nothing = first & 63, np.uint64(0)
    for word in range(first >> 6, (end + 63) >> 6):
        ones, twos, fours = nothing, nothing, nothing
        for c in range(n_columns):
            misses = ~bits[places[i, c], word]
            both = ones & misses
            fours |= twos & both
            twos ^= both
            ones ^= misses
            if most < 1.0 and ~(ones | twos | fours) == nothing:
                break
        if most < 1.0:
            fours |= ones | twos
        elif most < 2.0:  # noqa: PLR2004
            fours |= twos
        elif most < 3.0:  # noqa: PLR2004
            fours |= twos & ones
        left = ~fours >> np.uint64(skipped)
        if left != nothing:
            box = (word << 6) + skipped
            while left & np.uint64(1) == nothing:
                left >>= np.uint64(1)
                box += 1
            return min(box, end)
        skipped = 0
    return end


@njit(cache=True, nogil=True)
def _gap(x: float, low: float, high: float, least: float, most: float, is_step: int, is_far: bool) -> float:  # noqa: FBT001, PLR0917 # fmt: skip
    """The distance in one column; one unit between a missing value and what is there."""
    if np.isnan(x):
        return 1.0 if is_far or not (low == -np.inf and high == np.inf) else 0.0
    if is_step:
        inside = low == x == high if is_far else low <= x <= high
        return 0.0 if inside else 1.0
    if is_far:
        low = min(least, high) if low == -np.inf else low
        high = max(most, low) if high == np.inf else high
        return float(max(abs(x - low), abs(high - x)))
    return float(max(low - x, x - high, 0.0))


@njit(cache=True, nogil=True, forceinline=True)
def _key(  # noqa: PLR0917
    points: QueryPoints,
    shown: ReleasedCombinations,
    i: int,
    g: int,
    is_far: bool,  # noqa: FBT001
    most: float,
) -> float:
    """The near or far distance, or its square, of a point and a box; something above ``most`` if it is above.

    Compiled into who asks: to hand over all these arrays for each pair would take many times as long.
    """
    key, word, bit, euclidean = 0.0, g >> 6, np.uint64(g & 63), shown.euclidean
    for c in range(shown.exact.shape[1]):
        is_there = shown.bits[points.places[i, c], word] >> bit & np.uint64(1) == 1
        if not is_there or (is_far and shown.exact[g, c] == 0):
            key += 1.0
            if key > most:
                return key
    table = shown.far if is_far else shown.near
    for c in range(points.codes.shape[1]):
        gap = table[shown.labels[g, c], points.codes[i, c]]
        key += gap * gap if euclidean else gap
    for c in range(points.numbers.shape[1]):
        if key > most:
            return key
        ends, low, high = shown.ends, shown.lows[g, c], shown.highs[g, c]
        gap = _gap(points.numbers[i, c], low, high, ends[0, c], ends[1, c], shown.steps[c], is_far)
        key += gap * gap if euclidean else gap
    return key


def closer_counts(
    points: QueryPoints,
    own: OwnBoxes,
    shown: ReleasedCombinations,
    tick: Tick | None = None,
    *,
    reach: float = np.inf,
) -> tuple[Floats, Ints, Ints, Ints]:
    """Count who stands between each point and its own, unless these are all farther than ``reach``.

    A box of no more loss than the own is nearer if its near distance is less, or as small at less loss. One
    of more loss is nearer only if it is so wherever in it the true values lie: to make a record coarser must
    not hide others.

    Returns
    -------
    distances : float64[n]
        The near distance of the nearest of its own, infinite where it has none.
    own, tied, nearer : int64[n]
        Records of its own and all records as near, at the same loss, and whether any is nearer.
    """
    distances, counts = np.full(len(points.numbers), np.inf), np.zeros((3, len(points.numbers)), np.int64)
    ends = np.searchsorted(shown.losses, shown.losses, side="right")

    small = _ALLOWANCE.takes(points.places.size * len(shown.losses))

    def work(part: Ints) -> None:
        with by_python(small):
            _count(points, own, shown, ends, reach, part, distances, counts)

    share_out(np.arange(len(distances)), work, tick)
    return distances, counts[0], counts[1], counts[2]


@njit(cache=True, nogil=True)
def _count(  # noqa: PLR0917
    points: QueryPoints, own: OwnBoxes, shown: ReleasedCombinations, as_lossy: Ints, reach: float,
    asked: Ints, distances: Floats,
    counts: Ints,
) -> None:  # fmt: skip
    """Count for the points ``asked`` for; ``as_lossy`` is where the boxes of each one's loss end."""
    numbers, places = points.numbers, points.places
    bits, losses, euclidean = shown.bits, shown.losses, shown.euclidean
    n_columns, n_boxes = places.shape[1], len(losses)
    for i in asked:
        least = np.inf
        for place in range(own.starts[i], own.ends[i]):
            least = min(least, _key(points, shown, i, own.boxes[place], False, np.inf))
        if own.starts[i] == own.ends[i]:
            continue
        distances[i] = np.sqrt(least) if euclidean else least
        if distances[i] > reach:
            continue
        length = 0.0  # how far out the point lies
        for c in range(numbers.shape[1]):
            if not np.isnan(numbers[i, c]) and not shown.steps[c]:
                length += abs(numbers[i, c])
        slack = DISTANCE_TOLERANCE * (distances[i] + length) if least > 0.0 else 0.0
        low, high = max(distances[i] - slack, 0.0), distances[i] + slack
        if euclidean:
            low, high = low * low, high * high
        loss, end = -1, 0
        for place in range(own.starts[i], own.ends[i]):
            g = own.boxes[place]
            if loss >= 0 and losses[g] > loss:
                break
            key = _key(points, shown, i, g, False, high)
            if key <= high:
                loss, end = losses[g], as_lossy[g]
                counts[0, i] += own.counts[place]
        # Those that cover, of no more loss than the own: if that covers too there are no other rivals.
        g = _next(bits, places, i, 0, end, n_columns, 0.0)
        while g < end:
            key = _key(points, shown, i, g, False, high)
            if key < low or (key <= high and losses[g] < loss):
                counts[2, i] = 1
                break
            if key <= high:
                counts[1, i] += shown.sizes[g]
            g = _next(bits, places, i, g + 1, end, n_columns, 0.0)
        if least <= 0.0 or counts[2, i]:
            continue
        counts[1, i] = 0
        g = _next(bits, places, i, 0, n_boxes, shown.n_steps, high)  # another category is one unit
        while g < n_boxes:
            is_coarser = losses[g] > loss
            key = _key(points, shown, i, g, is_coarser, high)
            if key < low or (key <= high and losses[g] < loss):
                counts[2, i] = 1
                break
            if key <= high and not is_coarser:
                counts[1, i] += shown.sizes[g]
            g = _next(bits, places, i, g + 1, n_boxes, shown.n_steps, high)


@njit(cache=True, nogil=True)
def _reach(pricing: Pricing, most: int, euclidean: bool) -> float:  # noqa: FBT001
    """A key above which a pair costs more than is asked for, or cannot be."""
    if pricing.reach != np.inf:
        return pricing.reach
    reach = (most + 1) / pricing.scale  # costs are rounded
    return reach * abs(reach) if euclidean else reach


@njit(cache=True, nogil=True)
def _highest(prices: Ints) -> int:
    highest = -NEVER
    for price in prices:
        highest = max(highest, price)
    return highest


@njit(cache=True, nogil=True)
def _cost(key: float, reach: float, loss: int, scale: float, euclidean: bool) -> int:  # noqa: FBT001
    """The cost of a pair: the one place where distance and loss become a whole number."""
    if key > reach:
        return NEVER
    distance = np.sqrt(key) if euclidean else key
    return np.int64(np.rint((distance + loss / UNITS) * scale))  # type: ignore[return-value]


def pairs(  # noqa: PLR0917
    points: QueryPoints,
    shown: ReleasedCombinations,
    pricing: Pricing,
    limits: Ints,
    prices: Ints,
    most: int,
    tick: Tick | None,
) -> tuple[Ints, Ints, Ints] | None:
    """List points, boxes and costs where these are at most the point's limit and the box's price together.

    None if there are more than ``most`` such pairs.
    """
    n = len(points.numbers)
    counts, nothing = np.zeros(n, dtype=np.int64), np.zeros((2, 0), dtype=np.int64)
    total = 0
    for first, stop in _spans(points, shown, tick):
        _list(points, shown, pricing, (limits, prices), (first, stop), counts, nothing)
        total += int(counts[first:stop].sum())
        if total > most:
            return None
    found, slots = np.empty((2, total), dtype=np.int64), np.cumsum(counts) - counts
    for first, stop in _spans(points, shown, tick) if total else ():
        _list(points, shown, pricing, (limits, prices), (first, stop), slots, found)
    return np.repeat(np.arange(n), counts), found[0], found[1]


def _spans(points: QueryPoints, shown: ReleasedCombinations, tick: Tick | None) -> Iterator[tuple[int, int]]:
    """Runs of points that take a moment each."""
    n, stride = len(points.numbers), max(1, _PAIRS // max(len(shown.losses), 1))
    for first in range(0, n, stride):
        if tick is not None:
            tick(first, n)
        yield first, min(first + stride, n)


@njit(cache=True, nogil=True)
def _list(  # noqa: PLR0917
    points: QueryPoints, shown: ReleasedCombinations, pricing: Pricing, bounds: tuple[Ints, Ints],
    span: tuple[int, int],
    slots: Ints, found: Ints,
) -> None:  # fmt: skip
    """Write the boxes of each point from its slot on; with nowhere to write, only count them."""
    limits, prices = bounds
    places, bits, losses, euclidean = points.places, shown.bits, shown.losses, shown.euclidean
    writing, n_boxes, highest = found.shape[1] > 0, len(losses), _highest(prices)
    for i in range(span[0], span[1]):
        slot = slots[i]
        width, farthest = places.shape[1], 0.0
        if pricing.reach != 0.0:
            width, farthest = shown.n_steps, _reach(pricing, limits[i] + highest, euclidean)
        g = _next(bits, places, i, 0, n_boxes, width, farthest)
        while g < n_boxes:
            most = limits[i] + prices[g]
            reach = _reach(pricing, most, euclidean)
            key = _key(points, shown, i, g, False, reach)
            cost = _cost(key, reach, losses[g], pricing.scale, euclidean)
            if cost <= most and cost < NEVER:
                if writing:
                    found[0, slot], found[1, slot] = g, cost
                slot += 1
            g = _next(bits, places, i, g + 1, n_boxes, width, farthest)
        if not writing:
            slots[i] = slot


def costs(
    points: QueryPoints, shown: ReleasedCombinations, pricing: Pricing, rows: Ints, boxes: Ints
) -> Ints:
    """What pairs cost, each of a point and a box, where all pairs can be."""
    found = np.empty(len(rows), dtype=np.int64)
    _price(points, shown, pricing, rows, boxes, found)
    return found


@njit(cache=True, nogil=True)
def _price(  # noqa: PLR0917
    points: QueryPoints, shown: ReleasedCombinations, pricing: Pricing, rows: Ints, boxes: Ints, found: Ints
) -> None:
    for place in range(len(rows)):
        key = _key(points, shown, rows[place], boxes[place], False, np.inf)
        found[place] = _cost(key, np.inf, shown.losses[boxes[place]], pricing.scale, shown.euclidean)


def best(  # noqa: PLR0917
    points: QueryPoints,
    shown: ReleasedCombinations,
    pricing: Pricing,
    limits: Ints,
    prices: Ints,
    k: int,
    tick: Tick | None,
) -> tuple[Ints, Ints, Ints]:
    """List points, boxes and costs of the k least costs above prices of each point, below its limit."""
    n = len(points.numbers)
    boxes, keys = np.full((n, k), -1, dtype=np.int64), np.full((n, k), NEVER, dtype=np.int64)

    def work(part: Ints) -> None:
        _best(points, shown, pricing, (limits, prices), part, boxes, keys)

    share_out(np.arange(n), work, tick)
    rows, places = np.nonzero(boxes >= 0)
    its = boxes[rows, places]
    return rows, its, keys[rows, places] + prices[its]


@njit(cache=True, nogil=True)
def _best(  # noqa: PLR0917
    points: QueryPoints, shown: ReleasedCombinations, pricing: Pricing, bounds: tuple[Ints, Ints],
    asked: Ints, boxes: Ints,
    keys: Ints,
) -> None:  # fmt: skip
    limits, prices = bounds
    places, bits, losses, euclidean = points.places, shown.bits, shown.losses, shown.euclidean
    k, n_boxes, highest = boxes.shape[1], len(losses), _highest(prices)
    for i in asked:
        least, last = limits[i], 0  # what a key must be below, and whose place it takes
        n_found, farthest, g = 0, _reach(pricing, least + highest, euclidean), -1
        while True:
            g = _next(bits, places, i, g + 1, n_boxes, shown.n_steps, farthest)
            if g >= n_boxes:
                break
            reach = _reach(pricing, least + prices[g], euclidean)
            far = _key(points, shown, i, g, False, reach)
            key = _cost(far, reach, losses[g], pricing.scale, euclidean) - prices[g]
            if key >= least:
                continue
            if n_found < k:
                last = n_found
                n_found += 1
            boxes[i, last], keys[i, last] = g, key
            if n_found == k:
                last = int(np.argmax(keys[i]))
                least = min(limits[i], keys[i, last])
                farthest = _reach(pricing, least + highest, euclidean)
