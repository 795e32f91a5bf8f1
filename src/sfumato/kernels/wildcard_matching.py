"""Leaning on others: where a missing key may be any value, suppressing cells of one record protects many.

A pattern is a whole number whose bits are the keys shown. Two records are alike in some keys if no key that
both show tells them apart. The search takes the change of one record that helps most for its cost, until all
have enough alike to them, and then exchanges what was changed for something cheaper, until nothing is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sfumato.kernels.arrays import Codes, Floats, Ints
from sfumato.kernels.compiling import njit


class WildcardMatching(NamedTuple):
    """What the records show, and how many are alike to each; changed in place."""

    cells: Codes  # [n, keys]
    shown: Ints  # [n] the pattern of the keys that each has
    keys_shown: Ints  # [n] the pattern that each still shows
    asked: Ints  # [combinations] the keys of each as a pattern
    wanted: Ints  # [combinations] how many must be alike in them
    counts: Ints  # [combinations, n] how many are, the record itself among them
    costs: Floats  # [patterns] what it costs to suppress the keys of a pattern
    work: Ints  # [1] pairs of records that may still be looked at


@njit(cache=True, nogil=True)
def improve(lean: WildcardMatching) -> float:
    """Suppress cells until all have enough alike to them, and exchange until no exchange is cheaper.

    Returns
    -------
    float
        The cost; infinite if the work did not suffice or nothing helps. ``kept`` is what was found.

    Notes
    -----
    An exchange gives back all cells of one record, or of two, and mends what that breaks: once without the
    first of them, once with all. **Cost:** each change looks at the records times those that lack others.
    """
    _count(lean)
    if not _mend(lean, -1):
        return np.inf
    _restore_cells(lean)
    best = _cost(lean)
    while True:
        before = best
        rows = np.flatnonzero(lean.keys_shown != lean.shown)
        for i in range(len(rows)):
            best = _try_exchange(lean, rows[i], rows[i], best)
        if best == before:
            for i in range(len(rows)):
                for j in range(i + 1, len(rows)):
                    if best == before and lean.work[0] > 0:
                        best = _try_exchange(lean, rows[i], rows[j], best)
        if best == before or lean.work[0] <= 0:
            return best


@njit(cache=True, nogil=True)
def search_all(lean: WildcardMatching, best: float) -> float:
    """Go through all sets of cells that cost less than ``best``, as far as the work suffices.

    Returns
    -------
    float
        The least cost, with ``kept`` that has it; ``best`` if nothing is cheaper, with ``kept`` as it was.
    """
    found = lean.keys_shown.copy()
    lean.keys_shown[:] = lean.shown
    _count(lean)
    best = _search_deeper(lean, np.zeros_like(lean.keys_shown), 0.0, best, found)
    lean.keys_shown[:] = found
    return best


@njit(cache=True, nogil=True)
def _search_deeper(lean: WildcardMatching, stays: Ints, spent: float, best: float, found: Ints) -> float:
    """Suppress one more of the cells of which a record that lacks others needs one; ``stays`` are decided."""
    row = -1
    for c in range(len(lean.asked)):
        for i in range(len(lean.keys_shown)):
            if row < 0 and lean.counts[c, i] < lean.wanted[c]:
                row = i
    if row < 0:
        found[:] = lean.keys_shown
        return spent
    decided = stays.copy()
    for i in range(len(lean.keys_shown)):
        apart = _differing_keys(lean, row, i, lean.keys_shown[row] & lean.keys_shown[i])
        for j in range(lean.cells.shape[1]):
            for owner in (row, i):
                cost = spent + lean.costs[1 << j]
                if not apart >> j & 1 or decided[owner] >> j & 1 or cost >= best - 1e-9 or lean.work[0] <= 0:
                    continue
                _show(lean, owner, lean.keys_shown[owner] & ~(1 << j))
                best = _search_deeper(lean, decided, cost, best, found)
                _show(lean, owner, lean.keys_shown[owner] | 1 << j)
                decided[owner] |= 1 << j
    return best


@njit(cache=True, nogil=True)
def _try_exchange(lean: WildcardMatching, first: int, second: int, best: float) -> float:
    """Give back the cells of two records (or one) and mend the rest; undo it unless it is cheaper."""
    for without in (first, -1):
        if lean.work[0] <= 0 or lean.keys_shown[first] == lean.shown[first]:
            return best
        shown, counts = lean.keys_shown.copy(), lean.counts.copy()
        _show(lean, first, lean.shown[first])
        _show(lean, second, lean.shown[second])
        if _mend(lean, without):
            _restore_cells(lean)
            cost = _cost(lean)
            if cost < best - 1e-9:
                return cost
        lean.keys_shown[:] = shown
        lean.counts[:] = counts
    return best


@njit(cache=True, nogil=True)
def _cost(lean: WildcardMatching) -> float:
    total = 0.0
    for i in range(len(lean.keys_shown)):
        total += lean.costs[lean.shown[i] & ~lean.keys_shown[i]]
    return total


@njit(cache=True, nogil=True)
def _differing_keys(lean: WildcardMatching, first: int, second: int, both: int) -> int:
    """The keys among these that tell two records apart."""
    found = 0
    for j in range(lean.cells.shape[1]):
        if both >> j & 1 and lean.cells[first, j] != lean.cells[second, j]:
            found |= 1 << j
    return found


@njit(cache=True, nogil=True)
def _count(lean: WildcardMatching) -> None:
    lean.counts[:] = 1
    for i in range(len(lean.keys_shown)):
        for j in range(i):
            apart = _differing_keys(lean, i, j, lean.keys_shown[i] & lean.keys_shown[j])
            for c in range(len(lean.asked)):
                if apart & lean.asked[c] == 0:
                    lean.counts[c, i] += 1
                    lean.counts[c, j] += 1


@njit(cache=True, nogil=True)
def _show(lean: WildcardMatching, row: int, pattern: int) -> None:
    """Let a record show this, and count again who is alike to it."""
    changed = lean.keys_shown[row] ^ pattern
    lean.work[0] -= len(lean.keys_shown)
    for other in range(len(lean.keys_shown)):
        moved = changed & lean.keys_shown[other]
        if other == row or moved == 0 or _differing_keys(lean, row, other, moved) == 0:
            continue
        before = _differing_keys(lean, row, other, lean.keys_shown[row] & lean.keys_shown[other])
        after = _differing_keys(lean, row, other, pattern & lean.keys_shown[other])
        for c in range(len(lean.asked)):
            step = int(after & lean.asked[c] == 0) - int(before & lean.asked[c] == 0)
            lean.counts[c, row] += step
            lean.counts[c, other] += step
    lean.keys_shown[row] = pattern


@njit(cache=True, nogil=True)
def _restore_cells(lean: WildcardMatching) -> None:
    """Show every cell again that nobody needs suppressed, the dearest first."""
    n_keys = lean.cells.shape[1]
    singles = np.array([lean.costs[1 << j] for j in range(n_keys)])
    order = np.argsort(-singles, kind="mergesort")
    for row in range(len(lean.keys_shown)):
        for j in order:
            if (lean.shown[row] & ~lean.keys_shown[row]) >> j & 1:
                _show(lean, row, lean.keys_shown[row] | 1 << j)
                if _lacks(lean):
                    _show(lean, row, lean.keys_shown[row] & ~(1 << j))


@njit(cache=True, nogil=True)
def _lacks(lean: WildcardMatching) -> bool:
    for c in range(len(lean.asked)):
        for i in range(len(lean.keys_shown)):
            if lean.counts[c, i] < lean.wanted[c]:
                return True
    return False


@njit(cache=True, nogil=True)
def _mend(lean: WildcardMatching, without: int) -> bool:
    """Take the change that helps most for its cost, until nobody lacks others; None of record ``without``."""
    n = len(lean.keys_shown)
    while lean.work[0] > 0:
        lacking = np.zeros(n, dtype=np.bool_)
        for c in range(len(lean.asked)):
            lacking |= lean.counts[c] < lean.wanted[c]
        few = np.flatnonzero(lacking)
        if len(few) == 0:
            return True
        lean.work[0] -= n * len(few)
        best, row, pattern = 0.0, -1, 0
        helped = np.zeros(len(lean.costs))
        for i in range(n):
            if i == without or lean.keys_shown[i] == 0:
                continue
            most = _count_helped(lean, i, few, helped)
            if most == 0:
                continue
            if lacking[i]:
                _own(lean, i, helped)
            for suppressed in range(1, len(helped)):
                if (
                    suppressed & ~lean.keys_shown[i] == 0
                    and helped[suppressed] > best * lean.costs[suppressed]
                ):
                    best = helped[suppressed] / lean.costs[suppressed]
                    row, pattern = i, lean.keys_shown[i] & ~suppressed
        if row < 0:
            return False
        _show(lean, row, pattern)
    return False


@njit(cache=True, nogil=True)
def _count_helped(lean: WildcardMatching, row: int, few: Ints, helped: Floats) -> float:
    """How many who lack others get one more alike if a record loses each pattern; and the most of it."""
    helped[:] = 0.0
    total = 0.0
    for other in few:
        if other == row:
            total += 1.0
            continue
        apart = _differing_keys(lean, row, other, lean.keys_shown[row] & lean.keys_shown[other])
        for c in range(len(lean.asked)):
            if apart & lean.asked[c] and lean.counts[c, other] < lean.wanted[c]:
                helped[apart & lean.asked[c]] += 1.0
                total += 1.0
    if total > 0:
        _sum_within(helped)
    return total


@njit(cache=True, nogil=True)
def _own(lean: WildcardMatching, row: int, helped: Floats) -> None:
    """Add what the record itself, which lacks others, gains by losing each pattern."""
    lean.work[0] -= len(lean.keys_shown) * len(lean.asked)
    for c in range(len(lean.asked)):
        lack = lean.wanted[c] - lean.counts[c, row]
        if lack <= 0:
            continue
        gained = np.zeros(len(helped))
        for other in range(len(lean.keys_shown)):
            both = lean.keys_shown[row] & lean.keys_shown[other] & lean.asked[c]
            apart = _differing_keys(lean, row, other, both)
            if apart:
                gained[apart] += 1.0
        _sum_within(gained)
        for pattern in range(len(helped)):
            helped[pattern] += min(gained[pattern], lack)


@njit(cache=True, nogil=True)
def _sum_within(values: Floats) -> None:
    """Give each pattern the sum over all patterns within it."""
    bit = 1
    while bit < len(values):
        for pattern in range(len(values)):
            if pattern & bit:
                values[pattern] += values[pattern ^ bit]
        bit <<= 1
