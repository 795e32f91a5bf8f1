"""Trees that tell a column by others, and draws from their leaves (Breiman and others 1984).

Predictors are codes below `CODES`, so that a split is a set of codes: a record whose code is in it goes left.
Records stand in one order that each split sorts anew within its node, and a leaf is a range of that order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.arrays import Bytes, Codes, Flags, Floats, Ints, Values
from sfumato.kernels.compiling import njit

CODES = 256  # of a predictor; 0 is missing
_WORDS = CODES // 8
_MIN_RECORDS_DENSE = (
    64  # records of a node from which on all codes are gone through, and not only those that are there
)


class CartTree(NamedTuple):
    """Nodes from the root on, the two children of one beside each other."""

    columns: NDArray[np.int16]  # [nodes] the predictor that a node asks for
    sets: Bytes  # [nodes, CODES / 8] a bit for each code that goes left
    children: Ints  # [nodes] the left one, −1 of a leaf
    ranges: Ints  # [nodes, 2] from where to where its records stand in the order
    order: Codes  # [records]


def grow(
    predictors: Bytes,
    nominal: Flags,
    rows: Ints,
    *,
    classes: Codes | None = None,
    numbers: Floats | None = None,
    leaf: int,
    least_gain: float = 1e-8,
) -> CartTree:
    """Grow a tree whose leaves have at least ``leaf`` records.

    Parameters
    ----------
    predictors : uint8[d, n]
        Codes of each predictor; 0 is missing, and counts as the lowest.
    nominal : bool[d]
        Whether any set of codes may go left; else it is those up to one.
    rows : int64[m]
        The records to grow it from.
    classes : int32[n], optional
        What is to be told as classes from 0 on, by the Gini index; or
    numbers : float64[n], optional
        as numbers, by their squared deviations.
    leaf : int
    least_gain : float
        Share of the whole impurity that a split must take away.
    """
    most = 2 * max(len(rows) // leaf, 1)
    targets = np.zeros(len(rows), dtype=np.int32) if classes is None else classes[rows]
    values = np.zeros(len(rows)) if numbers is None else numbers[rows]
    n_classes = 0 if classes is None else int(targets.max(initial=0)) + 1
    tree = CartTree(
        np.zeros(most, dtype=np.int16),
        np.zeros((most, _WORDS), dtype=np.uint8),
        np.full(most, -1, dtype=np.int64),
        np.zeros((most, 2), dtype=np.int64),
        rows.astype(np.int32),
    )
    n = _grow(predictors, nominal, (targets, values, n_classes), tree, (leaf, least_gain))
    columns, sets, children, ranges, order = tree
    return CartTree(columns[:n].copy(), sets[:n].copy(), children[:n].copy(), ranges[:n].copy(), order)


def donors(tree: CartTree, predictors: Bytes, uniforms: Floats) -> Ints:
    """Draw for each record one of those in its leaf: ``predictors`` uint8[d, m], ``uniforms`` float64[m]."""
    found = np.empty(len(uniforms), dtype=np.int64)
    _draw(tree, predictors, uniforms, found)
    return found


class _NodeWorkspace(NamedTuple):
    """Room for what is found out of one node at a time."""

    counts: Ints  # [codes]
    sums: Floats  # [codes]
    present: Ints  # [codes]
    starts: Ints  # [codes]
    codes: Bytes  # [records] the node's, of the predictor that is looked at
    by_code: Codes  # [records] the classes of the node, in the order of the codes
    left: Ints  # [classes]
    right: Ints  # [classes]
    best: Bytes  # [codes / 8]


class _SplitNode(NamedTuple):
    """What is known of a node before it is split."""

    n: int
    n_classes: int
    total: float  # of the numbers
    squares: float  # of the counts of classes
    whole: float  # what a split is measured against
    common: int  # the commonest class
    impurity: float


@njit(cache=True, nogil=True)
def _grow(
    predictors: Bytes,
    nominal: Flags,
    target: tuple[Codes, Floats, int],
    tree: CartTree,
    limits: tuple[int, float],
) -> int:
    """Split nodes until none can be; return how many there are. The target moves with the records."""
    (classes, numbers, n_classes), (leaf, least_gain) = target, limits
    n = len(tree.order)
    work = _NodeWorkspace(
        np.zeros(CODES, dtype=np.int64),
        np.zeros(CODES),
        np.zeros(CODES, dtype=np.int64),
        np.zeros(CODES, dtype=np.int64),
        np.empty(n, dtype=np.uint8),
        np.empty(n, dtype=np.int32),
        np.zeros(max(n_classes, 1), dtype=np.int64),
        np.zeros(max(n_classes, 1), dtype=np.int64),
        np.zeros(_WORDS, dtype=np.uint8),
    )
    moved, moved_numbers = np.empty(n, dtype=np.int32), np.empty(n)
    tree.ranges[0, 1] = n
    n_nodes, least, node = 1, 0.0, 0
    while node < n_nodes:
        start, stop = tree.ranges[node, 0], tree.ranges[node, 1]
        part, targets, values = tree.order[start:stop], classes[start:stop], numbers[start:stop]
        about = _about(targets, values, n_classes, work)
        if node == 0:
            least = least_gain * about.impurity
        if stop - start >= 2 * leaf and about.impurity > least:
            column, n_left = _best(predictors, nominal, (part, targets, values), about, work, (leaf, least))
            if column >= 0:
                codes = predictors[column]
                if n_classes == 0:
                    _part_with(codes, part, values, work.best, (moved, moved_numbers))
                else:
                    _part_with(codes, part, targets, work.best, (moved, work.by_code))
                tree.columns[node] = column
                tree.sets[node] = work.best
                tree.children[node] = n_nodes
                tree.ranges[n_nodes, 0], tree.ranges[n_nodes, 1] = start, start + n_left
                tree.ranges[n_nodes + 1, 0], tree.ranges[n_nodes + 1, 1] = start + n_left, stop
                n_nodes += 2
        for c in targets if n_classes > 0 else targets[:0]:
            work.right[c] = 0
        node += 1
    return n_nodes


@njit(cache=True, nogil=True)
def _about(targets: Codes, values: Floats, n_classes: int, work: _NodeWorkspace) -> _SplitNode:
    """Sum up a node; how often each class is there stays in ``work.right``."""
    n, total, squares, common = len(targets), 0.0, 0.0, 0
    if n_classes == 0:
        for value in values:
            total += value
            squares += value * value
        whole = total * total / max(n, 1)
        return _SplitNode(n, 0, total, 0.0, whole, 0, max(squares - whole, 0.0))
    for c in targets:  # never over all classes, of which there may be more than records
        squares += 2.0 * work.right[c] + 1.0
        work.right[c] += 1
        if work.right[c] > work.right[common]:
            common = c
    whole = squares / max(n, 1)
    return _SplitNode(n, n_classes, 0.0, squares, whole, common, n - whole)


@njit(cache=True, nogil=True)
def _best(  # noqa: PLR0917
    predictors: Bytes,
    nominal: Flags,
    records: tuple[Codes, Codes, Floats],
    about: _SplitNode,
    work: _NodeWorkspace,
    limits: tuple[int, float],
) -> tuple[int, int]:
    """Find the split that takes most impurity away; its codes stay in ``work.best``. −1 if there is none."""
    part, targets, values = records
    leaf, best_gain = limits
    best_column, best_left = -1, 0
    for column in range(len(predictors)):
        n_present = _count(predictors[column], part, targets, values, about, work)
        if n_present > 1:
            if nominal[column]:
                _by_mean(work, n_present)
            if about.n_classes == 0:
                gain, place, n_left = _split_numbers(work, n_present, about, leaf)
            else:
                gain, place, n_left = _split_classes(targets, work, n_present, about, leaf)
            if gain > best_gain:
                best_gain, best_column, best_left = gain, column, n_left
                _keep(work, n_present, place, nominal[column])
        for i in range(n_present):
            work.counts[work.present[i]] = 0
            work.sums[work.present[i]] = 0.0
    return best_column, best_left


@njit(cache=True, nogil=True)
def _count(  # noqa: PLR0917
    codes: Bytes, part: Codes, targets: Codes, values: Floats, about: _SplitNode, work: _NodeWorkspace
) -> int:
    """Count the codes of a node, with the sums of the target (of the commonest class); list those present."""
    counts, sums, present = work.counts, work.sums, work.present
    for i in range(len(part)):
        work.codes[i] = codes[part[i]]
    n_present = 0
    if about.n_classes == 0:
        for i in range(len(part)):
            counts[work.codes[i]] += 1
            sums[work.codes[i]] += values[i]
    else:
        for i in range(len(part)):
            counts[work.codes[i]] += 1
            sums[work.codes[i]] += targets[i] == about.common
    if len(part) >= _MIN_RECORDS_DENSE:
        for code in range(CODES):
            if counts[code] > 0:
                present[n_present] = code
                n_present += 1
        return n_present
    for at in range(len(part)):
        code = int(work.codes[at])
        if counts[code] > 0:  # not listed yet: those that are have their count turned round
            counts[code] = -counts[code]
            j = n_present - 1
            while j >= 0 and present[j] > code:
                present[j + 1] = present[j]
                j -= 1
            present[j + 1] = code
            n_present += 1
    for i in range(n_present):
        counts[present[i]] = -counts[present[i]]
    return n_present


@njit(cache=True, nogil=True)
def _by_mean(work: _NodeWorkspace, n_present: int) -> None:
    """Put the codes in the order of their mean target: the best set of them is then one of the first."""
    present = work.present
    for i in range(1, n_present):
        code, j = present[i], i - 1
        mean = work.sums[code] / work.counts[code]
        while j >= 0 and work.sums[present[j]] / work.counts[present[j]] > mean:
            present[j + 1] = present[j]
            j -= 1
        present[j + 1] = code


@njit(cache=True, nogil=True)
def _split_numbers(
    work: _NodeWorkspace, n_present: int, about: _SplitNode, leaf: int
) -> tuple[float, int, int]:
    """Where to part the codes in their order: the gain, after how many codes, and how many records."""
    best, place, best_left = 0.0, -1, 0
    n_left, left = 0, 0.0
    for i in range(n_present - 1):
        n_left += work.counts[work.present[i]]
        left += work.sums[work.present[i]]
        n_right, right = about.n - n_left, about.total - left
        if n_right < leaf:
            break
        if n_left >= leaf:
            gain = left * left / n_left + right * right / n_right - about.whole
            if gain > best:
                best, place, best_left = gain, i, n_left
    return best, place, best_left


@njit(cache=True, nogil=True)
def _split_classes(
    targets: Codes, work: _NodeWorkspace, n_present: int, about: _SplitNode, leaf: int
) -> tuple[float, int, int]:
    """As for numbers; the classes of the records in the order of the codes tell how each side changes."""
    start = 0
    for i in range(n_present):
        work.starts[work.present[i]] = start
        start += work.counts[work.present[i]]
    for i in range(about.n):
        code = work.codes[i]
        work.by_code[work.starts[code]] = targets[i]
        work.starts[code] += 1
    best, place, best_left = 0.0, -1, 0
    n_left, squares_left, squares_right = 0, 0.0, about.squares
    for i in range(n_present - 1):
        for at in range(n_left, n_left + work.counts[work.present[i]]):
            c = work.by_code[at]
            squares_left += 2 * work.left[c] + 1
            squares_right -= 2 * (work.right[c] - work.left[c]) - 1
            work.left[c] += 1
        n_left += work.counts[work.present[i]]
        n_right = about.n - n_left
        if n_right < leaf:
            break
        if n_left >= leaf:
            gain = squares_left / n_left + squares_right / n_right - about.whole
            if gain > best:
                best, place, best_left = gain, i, n_left
    for at in range(n_left):
        work.left[work.by_code[at]] = 0
    return best, place, best_left


@njit(cache=True, nogil=True)
def _keep(work: _NodeWorkspace, n_present: int, place: int, is_nominal: bool) -> None:  # noqa: FBT001
    """Note which codes go left; one that the node has not goes with its neighbours, or where most go."""
    if not is_nominal:
        work.best[:] = 0
        for code in range(work.present[place + 1]):
            work.best[code >> 3] |= np.uint8(1 << (code & 7))
        return
    n_left, n = 0, 0
    for i in range(n_present):
        n += work.counts[work.present[i]]
        if i == place:
            n_left = n
    work.best[:] = 255 if 2 * n_left > n else 0
    for i in range(n_present):
        bit = np.uint8(1 << (work.present[i] & 7))
        if i <= place:
            work.best[work.present[i] >> 3] |= bit
        else:
            work.best[work.present[i] >> 3] &= np.uint8(255) ^ bit


@njit(cache=True, nogil=True)
def _part_with(
    codes: Bytes, part: Codes, target: Values, going_left: Bytes, moved: tuple[Codes, Values]
) -> int:
    """Let the records whose code is in the set stand first, with their target, each side in its order."""
    n_left, n_right = 0, 0
    for i in range(len(part)):
        record, value = part[i], target[i]
        code = codes[record]
        if (going_left[code >> 3] >> (code & 7)) & 1:
            part[n_left], target[n_left] = record, value
            n_left += 1
        else:
            moved[0][n_right], moved[1][n_right] = record, value
            n_right += 1
    for i in range(n_right):
        part[n_left + i], target[n_left + i] = moved[0][i], moved[1][i]
    return n_left


@njit(cache=True, nogil=True)
def _draw(tree: CartTree, predictors: Bytes, uniforms: Floats, found: Ints) -> None:
    """Part the records as the tree does, node by node: so what is looked at lies side by side."""
    n = len(uniforms)
    order, chances = np.arange(n).astype(np.int32), uniforms.copy()
    moved, moved_chances = np.empty(n, dtype=np.int32), np.empty(n)
    ranges = np.zeros((len(tree.children), 2), dtype=np.int64)
    ranges[0, 1] = n
    for node in range(len(tree.children)):
        start, stop = ranges[node, 0], ranges[node, 1]
        part, drawn, child = order[start:stop], chances[start:stop], tree.children[node]
        if child >= 0:
            codes = predictors[tree.columns[node]]
            n_left = _part_with(codes, part, drawn, tree.sets[node], (moved, moved_chances))
            ranges[child, 0], ranges[child, 1] = start, start + n_left
            ranges[child + 1, 0], ranges[child + 1, 1] = start + n_left, stop
            continue
        first, size = tree.ranges[node, 0], tree.ranges[node, 1] - tree.ranges[node, 0]
        for i in range(len(part)):
            found[part[i]] = tree.order[first + min(int(drawn[i] * size), size - 1)]
