"""A tree of records of mixed kinds: numbers in boxes, categories in sets of codes.

Columns that place few values, as those of a nominal column do, count together as one code: what it adds to a
squared distance stands in a table, and a node knows which codes lie below it. So a record of nine keys has
nine terms, and not the hundreds of coordinates in which its categories are placed. Records are taken out one
by one, as in `boxes`, and as there the answer is that of the exhaustive search: a distance is the sum of the
terms in one order, and a bound the same sum with smaller (or greater) terms, whose order rounding keeps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sfumato.kernels.arrays import Codes, Floats, Ints
from sfumato.kernels.compiling import by_python, njit
from sfumato.kernels.threads import CompileAllowance
from sfumato.kernels.trees import planting
from sfumato.kernels.trees.boxes import LEAF, LOOSE, descend, replace_worst
from sfumato.kernels.trees.planting import MAX_DEPTH

MAX_CODES = 64  # of one block: as many as a whole number has bits
FEWER = 2  # times fewer terms than columns there must be for codes to pay
FEWEST_COLUMNS, FEWEST_RECORDS = 8, 4 * MAX_CODES
_ALLOWANCE = CompileAllowance(4_000_000)  # cells, by numpy


class CodedRecords(NamedTuple):
    """Records by numbers and codes, and where each code lies."""

    numbers: Floats  # [record, column]
    codes: Codes  # [record, block]
    places: Floats  # [block, code, coordinate]; 0 beyond those of a block
    sizes: Ints  # [block] codes it has
    tables: Floats  # [block, code, code] squared distances
    orders: Ints  # [block, code, place] the codes, the nearest first


class CodedTree(NamedTuple):
    """Remaining records; node ``i`` has children ``2i + 1`` and ``2i + 2``, the last level are the leaves."""

    numbers: Floats  # [leaf, column, slot]
    codes: Codes  # [leaf, block, slot]
    records: Ints  # [leaf, slot]
    homes: Ints  # [record] -> leaf * LEAF + slot
    counts: Ints  # [node] records below it
    firsts: Ints  # [node] lowest record below it
    lows: Floats  # [node, column]
    highs: Floats
    sums: Floats
    masks: Ints  # [node, block] a bit for each code below it
    remaining: Ints  # [block, code] how many records have it


class Query(NamedTuple):
    """A point to search from: its numbers, and how far it is from each code."""

    numbers: Floats
    tables: Floats  # [block, code]
    orders: Ints  # [block, place]


def encode(points: Floats) -> CodedRecords | None:
    """Find the columns that make up codes; None if there are too few of them to pay."""
    if points.shape[1] < FEWEST_COLUMNS or len(points) < FEWEST_RECORDS:
        return None
    with by_python(_ALLOWANCE.takes(points.size)):
        starts, ends, codes, n_codes = _find_blocks(points)
    is_number = np.ones(points.shape[1], dtype=np.bool_)
    for start, end in zip(starts, ends, strict=True):
        is_number[start:end] = False
    if FEWER * (int(is_number.sum()) + len(starts)) > points.shape[1]:
        return None
    widest = int((ends - starts).max())
    places = np.zeros((len(starts), MAX_CODES, widest))
    for block, (start, end) in enumerate(zip(starts, ends, strict=True)):
        places[block, codes[block], : end - start] = points[:, start:end]
    tables = np.zeros((len(starts), MAX_CODES, MAX_CODES))
    for coordinate in range(widest):
        apart = places[:, :, None, coordinate] - places[:, None, :, coordinate]
        tables += apart * apart
    tables[np.arange(MAX_CODES) >= n_codes[:, None]] = np.inf
    orders = np.argsort(np.where(np.isinf(tables).swapaxes(1, 2), np.inf, tables), axis=2, kind="stable")
    numbers = np.ascontiguousarray(points[:, is_number])
    return CodedRecords(numbers, np.ascontiguousarray(codes.T), places, n_codes, tables, orders)


@njit(cache=True, nogil=True)
def _find_blocks(points: Floats) -> tuple[Ints, Ints, Codes, Ints]:
    """Number the values of columns side by side, each of which tells apart one value more than those before.

    Returns where such blocks start and end, the codes by block, and how many there are of each.
    """
    n, n_columns = points.shape
    starts, ends = np.zeros(n_columns, np.int64), np.zeros(n_columns, np.int64)
    codes, n_codes = np.zeros((n_columns // 2 + 1, n), np.int32), np.zeros(n_columns, np.int64)
    n_blocks, begin = 0, 0
    while begin < n_columns:
        here, refined = np.zeros(n, np.int32), np.zeros(n, np.int32)
        size, end = 1, begin
        while end < n_columns:
            more = _refine(points[:, end], here, size, refined)
            if more > MAX_CODES or (end > begin and more > size + 1):
                break
            here, refined = refined, here
            size, end = more, end + 1
        if end > begin + 1:  # a column by itself is as well a number
            starts[n_blocks], ends[n_blocks], n_codes[n_blocks] = begin, end, size
            for record in range(n):  # to copy a row takes seconds to compile, because its errors speak
                codes[n_blocks, record] = here[record]
            n_blocks += 1
        begin = max(end, begin + 1)
    return starts[:n_blocks], ends[:n_blocks], codes[:n_blocks], n_codes[:n_blocks]


def _refine_few(values: Floats, codes: Codes, size: int, refined: Codes) -> int:  # noqa: ARG001
    """As `_refine`, by numpy."""
    own = np.unique(values, return_inverse=True)[1]
    _, firsts, pairs = np.unique(codes * np.int64(len(values)) + own, return_index=True, return_inverse=True)
    if len(firsts) > MAX_CODES:
        return MAX_CODES + 1
    refined[:] = np.argsort(np.argsort(firsts))[pairs]
    return len(firsts)


@njit(_refine_few, cache=True, nogil=True)
def _refine(values: Floats, codes: Codes, size: int, refined: Codes) -> int:
    """Number the pairs of code and value; return how many there are, or one more than there may be."""
    heads, nexts = np.full(size, -1), np.full(MAX_CODES, -1)
    known = np.empty(MAX_CODES)
    count = 0
    for record in range(len(values)):
        entry = heads[codes[record]]
        while entry >= 0 and known[entry] != values[record]:
            entry = nexts[entry]
        if entry < 0:
            if count == MAX_CODES:
                return MAX_CODES + 1
            entry, known[count] = count, values[record]
            nexts[entry], heads[codes[record]] = heads[codes[record]], entry
            count += 1
        refined[record] = entry
    return count


def plant(coded: CodedRecords, remaining: Ints) -> CodedTree:
    """Build the tree of the ``remaining`` records, of which there must be one at least."""
    n_numbers, n_blocks = coded.numbers.shape[1], coded.codes.shape[1]
    points: Floats = np.concatenate((coded.numbers, coded.codes.astype(np.float64)), axis=1)
    # Two codes are as far apart whatever their numbers are: a part with several is as wide as is usual.
    blocks = zip(coded.tables, coded.sizes, strict=True)
    usual = [np.sqrt(np.median(table[:size, :size])) for table, size in blocks]
    most = np.append(np.full(n_numbers, np.inf), usual)
    units = np.append(np.ones(n_numbers), np.full(n_blocks, 1e300))
    order, starts = planting.plant(points, LEAF, among=remaining, units=units, most=most)
    n_leaves = len(starts) - 1
    n_nodes = 2 * n_leaves - 1
    homes = np.zeros(len(points), dtype=np.int64)
    homes[order] = planting.leaf_of(starts, LEAF)
    tree = CodedTree(
        numbers=planting.in_leaves(coded.numbers[order], starts, LEAF),
        codes=planting.in_leaves(coded.codes[order], starts, LEAF),
        records=planting.in_leaves(order, starts, LEAF),
        homes=homes,
        counts=np.append(np.zeros(n_leaves - 1, dtype=np.int64), np.diff(starts)),
        firsts=np.zeros(n_nodes, dtype=np.int64),
        lows=np.zeros((n_nodes, n_numbers)),
        highs=np.zeros((n_nodes, n_numbers)),
        sums=np.zeros((n_nodes, n_numbers)),
        masks=np.zeros((n_nodes, n_blocks), dtype=np.int64),
        remaining=np.array([np.bincount(each, minlength=MAX_CODES) for each in coded.codes[remaining].T]),
    )
    with by_python(_ALLOWANCE.takes(points.size)):
        _fill(tree)
    return tree


@njit(cache=True, nogil=True)
def _fill(tree: CodedTree) -> None:
    """Sum up all leaves and nodes."""
    n_leaves = len(tree.records)
    for leaf in range(n_leaves):
        _sum_up_leaf(tree, leaf)
    for node in range(n_leaves - 2, -1, -1):
        _sum_up_node(tree, node)


def _sum_up_few(tree: CodedTree, leaf: int) -> None:
    """As `_sum_up_leaf`, by numpy."""
    node = len(tree.records) - 1 + leaf
    count = int(tree.counts[node])
    tree.firsts[node] = tree.records[leaf, :count].min(initial=len(tree.homes))
    values = tree.numbers[leaf, :, :count]
    tree.lows[node] = values.min(axis=1, initial=np.inf)
    tree.highs[node] = values.max(axis=1, initial=-np.inf)
    tree.sums[node] = values.cumsum(axis=1)[:, -1] if count else 0.0  # in the order of the slots
    tree.masks[node] = np.bitwise_or.reduce(1 << tree.codes[leaf, :, :count].astype(np.int64), axis=1)


@njit(_sum_up_few, cache=True, nogil=True)
def _sum_up_leaf(tree: CodedTree, leaf: int) -> None:
    """Set box, sets, sums and lowest record of a leaf from its records."""
    node = len(tree.records) - 1 + leaf
    count = tree.counts[node]
    first = len(tree.homes)
    for slot in range(count):
        first = min(first, tree.records[leaf, slot])
    tree.firsts[node] = first
    for column in range(tree.numbers.shape[1]):
        low, high, total = np.inf, -np.inf, 0.0
        for slot in range(count):
            value = tree.numbers[leaf, column, slot]
            low = min(low, value)
            high = max(high, value)
            total += value
        tree.lows[node, column], tree.highs[node, column], tree.sums[node, column] = low, high, total
    for block in range(tree.codes.shape[1]):
        mask = np.int64(0)
        for slot in range(count):
            mask |= np.int64(1) << tree.codes[leaf, block, slot]
        tree.masks[node, block] = mask


@njit(cache=True, nogil=True)
def _sum_up_node(tree: CodedTree, node: int) -> None:
    """Set the same of an inner node from its two children."""
    left, right = 2 * node + 1, 2 * node + 2
    tree.counts[node] = tree.counts[left] + tree.counts[right]
    tree.firsts[node] = min(tree.firsts[left], tree.firsts[right])
    for column in range(tree.sums.shape[1]):
        tree.lows[node, column] = min(tree.lows[left, column], tree.lows[right, column])
        tree.highs[node, column] = max(tree.highs[left, column], tree.highs[right, column])
        tree.sums[node, column] = tree.sums[left, column] + tree.sums[right, column]
    for block in range(tree.masks.shape[1]):
        tree.masks[node, block] = tree.masks[left, block] | tree.masks[right, block]


@njit(cache=True, nogil=True)
def lift(tree: CodedTree, record: int) -> None:
    """Take a record out of its leaf; sets, boxes and sums wait for `settle`."""
    leaf, slot = divmod(tree.homes[record], LEAF)
    node = len(tree.records) - 1 + leaf
    last = tree.counts[node] - 1
    moved = tree.records[leaf, last]
    for block in range(tree.codes.shape[1]):
        tree.remaining[block, tree.codes[leaf, block, slot]] -= 1
        tree.codes[leaf, block, slot] = tree.codes[leaf, block, last]
    for column in range(tree.numbers.shape[1]):
        tree.numbers[leaf, column, slot] = tree.numbers[leaf, column, last]
    tree.records[leaf, slot] = moved
    tree.homes[moved] = leaf * LEAF + slot
    tree.counts[node] = last
    tree.firsts[node] = LOOSE


@njit(cache=True, nogil=True)
def settle(tree: CodedTree, records: Ints) -> None:
    """Sum up the leaves that lifted records have left, and the nodes above them."""
    for record in records:
        leaf = tree.homes[record] // LEAF
        node = len(tree.records) - 1 + leaf
        if tree.firsts[node] == LOOSE:
            _sum_up_leaf(tree, leaf)
            while node > 0:
                node = (node - 1) // 2
                _sum_up_node(tree, node)


def _query_of_few_records(coded: CodedRecords, record: int) -> Query:
    """As `query_of_record`, by numpy."""
    own = np.arange(coded.codes.shape[1]), coded.codes[record]
    return Query(coded.numbers[record].copy(), coded.tables[own], coded.orders[own])


@njit(_query_of_few_records, cache=True, nogil=True)
def query_of_record(coded: CodedRecords, record: int) -> Query:
    """Search from where a record lies."""
    n_blocks = coded.codes.shape[1]
    tables, orders = np.empty((n_blocks, MAX_CODES)), np.empty((n_blocks, MAX_CODES), np.int64)
    for block in range(n_blocks):
        code = coded.codes[record, block]
        for other in range(MAX_CODES):
            tables[block, other] = coded.tables[block, code, other]
            orders[block, other] = coded.orders[block, code, other]
    return Query(coded.numbers[record].copy(), tables, orders)


def _query_of_few_means(coded: CodedRecords, tree: CodedTree) -> Query:
    """As `query_of_mean`, by numpy, in the same order of sums; no search by numpy asks for the orders."""
    shares = tree.remaining / tree.counts[0]
    means = (shares[:, :, None] * coded.places).cumsum(axis=1)[:, -1]
    apart = coded.places - means[:, None]
    return Query(tree.sums[0] / tree.counts[0], (apart * apart).cumsum(axis=2)[:, :, -1], coded.orders[:, 0])


@njit(_query_of_few_means, cache=True, nogil=True)
def query_of_mean(coded: CodedRecords, tree: CodedTree) -> Query:
    """Search from the mean of the records that remain."""
    n_blocks, _, n_coordinates = coded.places.shape
    n_remaining = tree.counts[0]
    tables, orders = np.zeros((n_blocks, MAX_CODES)), np.zeros((n_blocks, MAX_CODES), np.int64)
    mean = np.empty(n_coordinates)
    for block in range(n_blocks):
        size = coded.sizes[block]
        mean[:] = 0.0
        for code in range(size):
            share = tree.remaining[block, code] / n_remaining
            for coordinate in range(n_coordinates):
                mean[coordinate] += share * coded.places[block, code, coordinate]
        for code in range(size):
            for coordinate in range(n_coordinates):
                apart = coded.places[block, code, coordinate] - mean[coordinate]
                tables[block, code] += apart * apart
            place = code
            while place > 0 and tables[block, orders[block, place - 1]] > tables[block, code]:
                orders[block, place] = orders[block, place - 1]
                place -= 1
            orders[block, place] = code
    numbers = np.empty(tree.sums.shape[1])
    for column in range(len(numbers)):
        numbers[column] = tree.sums[0, column] / n_remaining
    return Query(numbers, tables, orders)


@njit(cache=True, nogil=True, forceinline=True)
def _bound_near(tree: CodedTree, node: int, query: Query) -> float:
    """Bound from below the squared distances of a node's records."""
    if tree.counts[node] == 0:
        return np.inf
    bound = 0.0
    for column in range(tree.lows.shape[1]):
        here = query.numbers[column]
        difference = max(tree.lows[node, column] - here, here - tree.highs[node, column], 0.0)
        bound += difference * difference
    for block in range(tree.masks.shape[1]):
        mask, place = tree.masks[node, block], 0
        while not (mask >> query.orders[block, place]) & 1:
            place += 1
        bound += query.tables[block, query.orders[block, place]]
    return bound


@njit(cache=True, nogil=True, forceinline=True)
def _bound_far(tree: CodedTree, node: int, query: Query, sizes: Ints) -> float:
    """Bound from above the squared distances of a node's records."""
    if tree.counts[node] == 0:
        return -np.inf
    bound = 0.0
    for column in range(tree.lows.shape[1]):
        here = query.numbers[column]
        difference = max(tree.highs[node, column] - here, here - tree.lows[node, column])
        bound += difference * difference
    for block in range(tree.masks.shape[1]):
        mask, place = tree.masks[node, block], sizes[block] - 1
        while not (mask >> query.orders[block, place]) & 1:
            place -= 1
        bound += query.tables[block, query.orders[block, place]]
    return bound


@njit(cache=True, nogil=True, forceinline=True)
def _scan(tree: CodedTree, leaf: int, query: Query, distances: Floats) -> int:
    """Set the squared distances of a leaf's records; return how many there are."""
    count = int(tree.counts[len(tree.records) - 1 + leaf])
    distances[:count] = 0.0
    for column in range(tree.numbers.shape[1]):
        here, row = query.numbers[column], tree.numbers[leaf, column]
        for slot in range(count):
            difference = row[slot] - here
            distances[slot] += difference * difference
    for block in range(tree.codes.shape[1]):
        table, codes = query.tables[block], tree.codes[leaf, block]
        for slot in range(count):
            distances[slot] += table[codes[slot]]
    return count


def _search_few(tree: CodedTree, query: Query, sizes: Ints, sign: float, keys: Floats, found: Ints) -> None:  # noqa: ARG001, PLR0917
    """As `search`, by numpy: all distances and bounds are taken at once."""
    differences = tree.numbers - query.numbers[:, None]
    by_code = query.tables[np.arange(len(query.tables))[:, None], tree.codes]
    by_slot = np.concatenate((differences * differences, by_code), axis=1).cumsum(axis=1)[:, -1]
    there, bounds = tree.counts > 0, np.full(len(tree.counts), np.inf)
    over, under = tree.lows[there] - query.numbers, query.numbers - tree.highs[there]
    is_below = (tree.masks[there, :, None] >> np.arange(MAX_CODES) & 1).astype(np.bool_)
    if sign > 0:
        gaps = np.maximum(np.maximum(over, under), 0.0)
        of_codes = np.where(is_below, query.tables, np.inf).min(axis=2)
    else:
        gaps = np.maximum(-over, -under)
        of_codes = np.where(is_below, query.tables, -np.inf).max(axis=2)
    bounds[there] = sign * np.concatenate((gaps * gaps, of_codes), axis=1).cumsum(axis=1)[:, -1]
    descend(tree, sign * by_slot, bounds, keys, found)


@njit(_search_few, cache=True, nogil=True)
def search(tree: CodedTree, query: Query, sizes: Ints, sign: float, keys: Floats, found: Ints) -> None:  # noqa: PLR0917
    """Fill the heap (``keys``, ``found``) with the records of least key, the lowest of equals."""
    n_inner = len(tree.records) - 1
    distances = np.empty(LEAF)
    nodes, bounds = np.zeros(MAX_DEPTH, dtype=np.int64), np.full(MAX_DEPTH, -np.inf)
    keys[:] = np.inf
    found[:] = len(tree.homes)
    height = 1
    while height > 0:
        height -= 1
        node, bound = nodes[height], bounds[height]
        if bound > keys[0] or (bound == keys[0] and tree.firsts[node] > found[0]):
            continue
        if node >= n_inner:
            for slot in range(_scan(tree, node - n_inner, query, distances)):
                key, record = sign * distances[slot], tree.records[node - n_inner, slot]
                if key < keys[0] or (key == keys[0] and record < found[0]):
                    replace_worst(keys, found, key, record)
            continue
        left, right = 2 * node + 1, 2 * node + 2
        if sign > 0:
            of_left, of_right = _bound_near(tree, left, query), _bound_near(tree, right, query)
        else:
            of_left = -_bound_far(tree, left, query, sizes)
            of_right = -_bound_far(tree, right, query, sizes)
        if of_left < of_right or (of_left == of_right and tree.firsts[left] < tree.firsts[right]):
            left, right, of_left, of_right = right, left, of_right, of_left
        nodes[height], bounds[height] = left, of_left
        nodes[height + 1], bounds[height + 1] = right, of_right
        height += 2
