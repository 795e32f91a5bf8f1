"""Parts: the rounds of cuts, and which of them are taken.

The records of a part lie side by side, so that a part is a pair of ends and a cut a place between them. In
each round every open part is cut by one column; whether its two sides may stand is asked for all together.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sfumato.kernels.arrays import Codes, Flags, Ints
from sfumato.kernels.compiling import by_python, njit
from sfumato.kernels.mondrian import cuts
from sfumato.kernels.mondrian.cuts import (
    GAIN,
    CutRound,
    CutRules,
    CutWorkspace,
    Keys,
    measure_widths,
    number_labels,
    separate,
)
from sfumato.kernels.threads import CompileAllowance, Tick

_ALLOWANCE = CompileAllowance(100_000)  # codes looked at, by Python

#: Gains below this many nats for each record are rounding.
NO_GAIN = 1e-12


def partition(
    keys: Keys,
    k: int,
    *,
    relaxed: bool = False,
    target: Codes | None = None,
    failing: Callable[[Ints, Ints], Flags] | None = None,
    tick: Tick | None = None,
) -> tuple[Ints, Ints, Codes]:
    r"""Cut records into parts of at least k, by the widest column first.

    A part is cut by the column of greatest width that can be: an ordered one where the two sides are most
    equal in number (of two such places the lower), a nominal one so between the labels below the lowest
    common one, if they are in a natural order; if not, or if no such place leaves k on both sides, these are
    dealt out from the most frequent down to the side that has fewer. A column in which some of a part are
    missing and others not has width 1, and missing is cut from present first. Ties between columns go to the
    first. A cut must leave at least k records on both sides.

    Parameters
    ----------
    keys : Keys
        Its ``codes`` are changed in place.
    k : int
        Least number of records of a part.
    relaxed : bool
        Split records with the middle value of an ordered column between the sides, the first of them to the
        left, so that the sides are equal.
    target : int32[n], optional
        A class from 0 up for each record: cuts go where they tell most of it (information gain), and by
        width where none tells anything.
    failing : callable, optional
        Given the order of the records and the starts of all parts (and their end), which parts may not
        stand. A cut is taken only if neither side fails, and nothing that stood before comes to fail.
    tick : callable, optional
        Told how many records are in parts that are final, and of how many.

    Returns
    -------
    order : int64[n]
        The records, part by part; within a part in no particular order.
    starts : int64[parts + 1]
    borders : int32[parts, columns, 4]
        Where the last cut below and the last above a part went in an ordered column: the highest code on its
        left and the lowest on its right; 0 where there was none.

    Notes
    -----
    **Cost:** :math:`O(n d \log n)` for balanced cuts in :math:`d` columns, times the columns that are tried
    in vain; memory for two copies of the codes.
    """
    n, d = keys.codes.shape
    if n == 0:
        return np.zeros(0, dtype=np.int64), np.zeros(1, dtype=np.int64), np.zeros((0, d, 4), dtype=np.int32)
    rules, work = CutRules(max(k, 1), relaxed), _room(keys, target)
    opens = np.zeros(n, dtype=np.bool_)
    opens[0] = True
    parts, tried = np.array([[0, n]], dtype=np.int64), np.zeros((1, d, 3), dtype=np.bool_)
    done, cut_at = 0, [np.zeros((0, 4), dtype=np.int64)]
    small = target is None and _ALLOWANCE.takes(n * d * n.bit_length())
    while len(parts):
        now = CutRound(parts, tried, np.full((len(parts), 3), -1, dtype=np.int64))
        if target is not None:
            _cut_by_gain(keys, work, now, rules)
        with by_python(small):
            cuts.cut_all(keys, work, now, rules)
        cut = now.cuts[:, 0] >= 0
        now = CutRound(parts[cut], tried[cut], now.cuts[cut])
        done += int(np.diff(parts[~cut], axis=1).sum())
        taken = np.ones(len(now.parts), dtype=np.bool_)
        if failing is not None and len(now.parts):
            taken = _accept_cuts(work.rows, opens, now, failing)
        opens[now.cuts[taken, 2]] = True
        cut_at.append(np.column_stack((now.parts[taken], now.cuts[taken][:, [2, 0]])))
        parts, tried, closed = _next_parts(now, taken, rules.k)
        done += closed
        if tick is not None:
            tick(done, n)
    starts = np.append(np.flatnonzero(opens), n)
    with by_python(small):
        return work.rows, starts, cuts.borders(keys, np.concatenate(cut_at), starts)


def _next_parts(now: CutRound, taken: Flags, k: int) -> tuple[Ints, Flags, int]:
    """The parts left open, with what was tried of them; and how many records are in those too small."""
    places = now.cuts[taken, 2]
    lefts = np.column_stack((now.parts[taken, 0], places))
    rights = np.column_stack((places, now.parts[taken, 1]))
    halves = np.concatenate([lefts, rights])
    large = np.diff(halves, axis=1)[:, 0] >= 2 * k
    parts = np.concatenate([now.parts[~taken], halves[large]])
    fresh = np.zeros((int(large.sum()), *now.tried.shape[1:]), dtype=np.bool_)
    tried = np.concatenate([now.tried[~taken], fresh])
    in_turn = np.argsort(parts[:, 0], kind="stable")
    return parts[in_turn], tried[in_turn], int(np.diff(halves[~large], axis=1).sum())


def _room(keys: Keys, target: Codes | None) -> CutWorkspace:
    n, d = keys.codes.shape
    most = int(keys.n_codes.max(initial=1)) + 1
    return CutWorkspace(
        rows=np.arange(n, dtype=np.int64),
        target=np.zeros(0, dtype=np.int32) if target is None else target.astype(np.int32),
        cut_keys=np.empty(n, dtype=np.int32),
        moved=np.empty((n, d + 1), dtype=np.int32),
        moved_rows=np.empty(n, dtype=np.int64),
        counts=np.zeros(most, dtype=np.int64),
        found=np.empty(most, dtype=np.int64),
        widths=np.empty(d),
        missing_counts=np.empty(d, dtype=np.int64),
    )


def _accept_cuts(rows: Ints, opens: Flags, now: CutRound, failing: Callable[[Ints, Ints], Flags]) -> Flags:
    """Which cuts leave nothing that fails; those that do by themselves are marked as tried."""
    taken = np.ones(len(now.parts), dtype=np.bool_)
    while taken.any():
        trial = opens.copy()
        trial[now.cuts[taken, 2]] = True
        starts = np.flatnonzero(trial)
        fails = failing(rows, np.append(starts, len(rows)))
        if not fails.any():
            break
        lefts = np.searchsorted(starts, now.parts[:, 0])
        bad = taken & (fails[lefts] | fails[np.minimum(lefts + 1, len(fails) - 1)])
        own = np.zeros(len(fails), dtype=np.bool_)
        own[lefts[taken]] = own[lefts[taken] + 1] = True
        if (fails & ~own).any() and int(taken.sum()) > 1:  # too many at once: the others may try again
            taken[np.flatnonzero(taken)[(int(taken.sum()) + 1) // 2 :]] = False
            continue
        bad = bad if bad.any() else taken.copy()  # a cut that makes others fail
        chosen = np.flatnonzero(bad)
        now.tried[chosen, now.cuts[chosen, 0], now.cuts[chosen, 1]] = True
        taken &= ~bad
    return taken


# Cuts that tell most of a target: the entropy of its classes falls as far as it can -----------------------


@njit(cache=True, nogil=True)
def _cut_by_gain(keys: Keys, work: CutWorkspace, now: CutRound, rules: CutRules) -> None:
    r"""Cut each part where the target's classes are told apart best; leave it where no cut tells anything.

    Of all columns and places that leave k records on both sides, the one with the largest gain

    .. math:: n H(n) - n_l H(n_l) - n_r H(n_r)

    of the entropy :math:`H`, the first of equals. The labels of a nominal column are put in the order of the
    share of the part's commonest class, which for two classes loses nothing.
    """
    n_classes = work.target.max() + 1 if len(work.target) else 0
    for number in range(len(now.parts)):
        start, end = now.parts[number, 0], now.parts[number, 1]
        if end - start < 2 * rules.k:
            continue
        measure_widths(keys, work, (start, end))
        best, column = 0.0, -1
        for j in range(keys.codes.shape[1]):
            if work.widths[j] > 0 and not now.tried[number, j, GAIN]:
                gain, _ = _best_place(keys, work, (start, end, n_classes), j, rules.k)
                if gain > best + NO_GAIN * (end - start):
                    best, column = gain, j
        if column >= 0:
            _, threshold = _best_place(keys, work, (start, end, n_classes), column, rules.k)
            now.cuts[number, 0], now.cuts[number, 1] = column, GAIN
            now.cuts[number, 2] = separate(keys.codes, work, (start, end), threshold, 0)


@njit(cache=True, nogil=True)
def _best_place(
    keys: Keys, work: CutWorkspace, part: tuple[int, int, int], column: int, k: int
) -> tuple[float, int]:
    """What the best cut by a column tells of the target, in nats, and its threshold."""
    start, end, n_classes = part
    size = end - start
    _number(keys, work, part, column)
    left, right = np.zeros(n_classes, dtype=np.int64), np.zeros(n_classes, dtype=np.int64)
    for i in range(start, end):
        right[work.target[i]] += 1
    before = _disorder(right, size)
    best, threshold = 0.0, -1
    # The place of a record makes its key unlike all others, so that any sort will do.
    in_order = np.argsort(work.cut_keys[start:end] * size + np.arange(size))
    for i in range(size - k):
        record = start + in_order[i]
        left[work.target[record]] += 1
        right[work.target[record]] -= 1
        if i + 1 >= k and work.cut_keys[start + in_order[i + 1]] != work.cut_keys[record]:
            gain = before - _disorder(left, i + 1) - _disorder(right, size - i - 1)
            if gain > best + NO_GAIN * size:
                best, threshold = gain, work.cut_keys[record] + 1
    return best, threshold


@njit(cache=True, nogil=True)
def _disorder(counts: np.ndarray, total: int) -> float:
    """The entropy of counts, times their total."""
    disorder = total * np.log(total)
    for count in counts:
        if count > 0:
            disorder -= count * np.log(count)
    return float(disorder)


@njit(cache=True, nogil=True)
def _number(keys: Keys, work: CutWorkspace, part: tuple[int, int, int], column: int) -> None:
    """Number the records of a part by a column: by code, or by label in the order of the share of a class."""
    start, end, n_classes = part
    if keys.n_levels[column] == 0:
        for i in range(start, end):
            work.cut_keys[i] = keys.codes[i, column]
        return
    n_labels = number_labels(keys, work, (start, end), column)
    classes = np.zeros(n_classes, dtype=np.int64)
    for i in range(start, end):
        classes[work.target[i]] += 1
    commonest = np.argmax(classes)
    hits, amounts = np.zeros(n_labels, dtype=np.int64), np.zeros(n_labels, dtype=np.int64)
    for i in range(start, end):
        amounts[work.cut_keys[i]] += 1
        hits[work.cut_keys[i]] += work.target[i] == commonest
    ranks = np.empty(n_labels, dtype=np.int32)
    in_order = np.argsort(hits * 2**30 // amounts * (keys.n_codes[column] + 1) + work.found[:n_labels])
    for rank in range(n_labels):
        ranks[in_order[rank]] = rank
    for i in range(start, end):
        work.cut_keys[i] = ranks[work.cut_keys[i]]
