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


class Leaning(NamedTuple):
    """What the records show, and how many are alike to each; changed in place."""

    cells: Codes  # [n, keys]
    shown: Ints  # [n] the pattern of the keys that each has
    kept: Ints  # [n] the pattern that each still shows
    asked: Ints  # [combinations] the keys of each as a pattern
    wanted: Ints  # [combinations] how many must be alike in them
    counts: Ints  # [combinations, n] how many are, the record itself among them
    costs: Floats  # [patterns] what it costs to suppress the keys of a pattern
    work: Ints  # [1] pairs of records that may still be looked at


@njit(cache=True, nogil=True)
def improved(lean: Leaning) -> float:
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
    _give_back(lean)
    best = _cost(lean)
    while True:
        before = best
        rows = np.flatnonzero(lean.kept != lean.shown)
        for i in range(len(rows)):
            best = _exchanged(lean, rows[i], rows[i], best)
        if best == before:
            for i in range(len(rows)):
                for j in range(i + 1, len(rows)):
                    if best == before and lean.work[0] > 0:
                        best = _exchanged(lean, rows[i], rows[j], best)
        if best == before or lean.work[0] <= 0:
            return best


@njit(cache=True, nogil=True)
def searched(lean: Leaning, best: float) -> float:
    """Go through all sets of cells that cost less than ``best``, as far as the work suffices.

    Returns
    -------
    float
        The least cost, with ``kept`` that has it; ``best`` if nothing is cheaper, with ``kept`` as it was.
    """
    found = lean.kept.copy()
    lean.kept[:] = lean.shown
    _count(lean)
    best = _deepened(lean, np.zeros_like(lean.kept), 0.0, best, found)
    lean.kept[:] = found
    return best


@njit(cache=True, nogil=True)
def _deepened(lean: Leaning, stays: Ints, spent: float, best: float, found: Ints) -> float:
    """Suppress one more of the cells of which a record that lacks others needs one; ``stays`` are decided."""
    row = -1
    for c in range(len(lean.asked)):
        for i in range(len(lean.kept)):
            if row < 0 and lean.counts[c, i] < lean.wanted[c]:
                row = i
    if row < 0:
        found[:] = lean.kept
        return spent
    decided = stays.copy()
    for i in range(len(lean.kept)):
        apart = _apart(lean, row, i, lean.kept[row] & lean.kept[i])
        for j in range(lean.cells.shape[1]):
            for owner in (row, i):
                cost = spent + lean.costs[1 << j]
                if not apart >> j & 1 or decided[owner] >> j & 1 or cost >= best - 1e-9 or lean.work[0] <= 0:
                    continue
                _show(lean, owner, lean.kept[owner] & ~(1 << j))
                best = _deepened(lean, decided, cost, best, found)
                _show(lean, owner, lean.kept[owner] | 1 << j)
                decided[owner] |= 1 << j
    return best


@njit(cache=True, nogil=True)
def _exchanged(lean: Leaning, first: int, second: int, best: float) -> float:
    """Give back the cells of two records (or one) and mend the rest; undo it unless it is cheaper."""
    for without in (first, -1):
        if lean.work[0] <= 0 or lean.kept[first] == lean.shown[first]:
            return best
        kept, counts = lean.kept.copy(), lean.counts.copy()
        _show(lean, first, lean.shown[first])
        _show(lean, second, lean.shown[second])
        if _mend(lean, without):
            _give_back(lean)
            cost = _cost(lean)
            if cost < best - 1e-9:
                return cost
        lean.kept[:] = kept
        lean.counts[:] = counts
    return best


@njit(cache=True, nogil=True)
def _cost(lean: Leaning) -> float:
    total = 0.0
    for i in range(len(lean.kept)):
        total += lean.costs[lean.shown[i] & ~lean.kept[i]]
    return total


@njit(cache=True, nogil=True)
def _apart(lean: Leaning, first: int, second: int, both: int) -> int:
    """The keys among these that tell two records apart."""
    found = 0
    for j in range(lean.cells.shape[1]):
        if both >> j & 1 and lean.cells[first, j] != lean.cells[second, j]:
            found |= 1 << j
    return found


@njit(cache=True, nogil=True)
def _count(lean: Leaning) -> None:
    lean.counts[:] = 1
    for i in range(len(lean.kept)):
        for j in range(i):
            apart = _apart(lean, i, j, lean.kept[i] & lean.kept[j])
            for c in range(len(lean.asked)):
                if apart & lean.asked[c] == 0:
                    lean.counts[c, i] += 1
                    lean.counts[c, j] += 1


@njit(cache=True, nogil=True)
def _show(lean: Leaning, row: int, pattern: int) -> None:
    """Let a record show this, and count again who is alike to it."""
    changed = lean.kept[row] ^ pattern
    lean.work[0] -= len(lean.kept)
    for other in range(len(lean.kept)):
        moved = changed & lean.kept[other]
        if other == row or moved == 0 or _apart(lean, row, other, moved) == 0:
            continue
        before = _apart(lean, row, other, lean.kept[row] & lean.kept[other])
        after = _apart(lean, row, other, pattern & lean.kept[other])
        for c in range(len(lean.asked)):
            step = int(after & lean.asked[c] == 0) - int(before & lean.asked[c] == 0)
            lean.counts[c, row] += step
            lean.counts[c, other] += step
    lean.kept[row] = pattern


@njit(cache=True, nogil=True)
def _give_back(lean: Leaning) -> None:
    """Show every cell again that nobody needs suppressed, the dearest first."""
    n_keys = lean.cells.shape[1]
    singles = np.array([lean.costs[1 << j] for j in range(n_keys)])
    order = np.argsort(-singles, kind="mergesort")
    for row in range(len(lean.kept)):
        for j in order:
            if (lean.shown[row] & ~lean.kept[row]) >> j & 1:
                _show(lean, row, lean.kept[row] | 1 << j)
                if _lacks(lean):
                    _show(lean, row, lean.kept[row] & ~(1 << j))


@njit(cache=True, nogil=True)
def _lacks(lean: Leaning) -> bool:
    for c in range(len(lean.asked)):
        for i in range(len(lean.kept)):
            if lean.counts[c, i] < lean.wanted[c]:
                return True
    return False


@njit(cache=True, nogil=True)
def _mend(lean: Leaning, without: int) -> bool:
    """Take the change that helps most for its cost, until nobody lacks others; None of record ``without``."""
    n = len(lean.kept)
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
            if i == without or lean.kept[i] == 0:
                continue
            most = _helped(lean, i, few, helped)
            if most == 0:
                continue
            if lacking[i]:
                _own(lean, i, helped)
            for suppressed in range(1, len(helped)):
                if suppressed & ~lean.kept[i] == 0 and helped[suppressed] > best * lean.costs[suppressed]:
                    best = helped[suppressed] / lean.costs[suppressed]
                    row, pattern = i, lean.kept[i] & ~suppressed
        if row < 0:
            return False
        _show(lean, row, pattern)
    return False


@njit(cache=True, nogil=True)
def _helped(lean: Leaning, row: int, few: Ints, helped: Floats) -> float:
    """How many who lack others get one more alike if a record loses each pattern; and the most of it."""
    helped[:] = 0.0
    total = 0.0
    for other in few:
        if other == row:
            total += 1.0
            continue
        apart = _apart(lean, row, other, lean.kept[row] & lean.kept[other])
        for c in range(len(lean.asked)):
            if apart & lean.asked[c] and lean.counts[c, other] < lean.wanted[c]:
                helped[apart & lean.asked[c]] += 1.0
                total += 1.0
    if total > 0:
        _sum_within(helped)
    return total


@njit(cache=True, nogil=True)
def _own(lean: Leaning, row: int, helped: Floats) -> None:
    """Add what the record itself, which lacks others, gains by losing each pattern."""
    lean.work[0] -= len(lean.kept) * len(lean.asked)
    for c in range(len(lean.asked)):
        lack = lean.wanted[c] - lean.counts[c, row]
        if lack <= 0:
            continue
        gained = np.zeros(len(helped))
        for other in range(len(lean.kept)):
            both = lean.kept[row] & lean.kept[other] & lean.asked[c]
            apart = _apart(lean, row, other, both)
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
