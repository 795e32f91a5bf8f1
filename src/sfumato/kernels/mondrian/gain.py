"""Cuts of Mondrian that tell most of a target: the entropy of its classes falls as far as it can."""

from __future__ import annotations

import numpy as np

from sfumato.kernels.compiling import njit
from sfumato.kernels.mondrian.cuts import (
    GAIN,
    Keys,
    Round,
    Rules,
    Work,
    measure_widths,
    number_labels,
    separate,
)

#: Gains below this many nats for each record are rounding.
NO_GAIN = 1e-12


@njit(cache=True, nogil=True)
def cut_all(keys: Keys, work: Work, now: Round, rules: Rules) -> None:
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
def _best_place(keys: Keys, work: Work, part: tuple[int, int, int], column: int, k: int) -> tuple[float, int]:
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
def _number(keys: Keys, work: Work, part: tuple[int, int, int], column: int) -> None:
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
