"""Moves that exchange values of one column and leave all tables of up to t columns as they are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.kernels.arrays import Ints

#: Joint codes are kept below this, so that they can be multiplied without overflow.
_LARGEST_CODE = 2**62


def combine_codes(columns: Sequence[Ints], n: int) -> Ints:
    """One code for each combination of the codes (not negative) of several columns of n records."""
    total, size = np.zeros(n, dtype=np.int64), 1
    for codes in columns:
        width = int(codes.max(initial=0)) + 1
        if size * width > _LARGEST_CODE:
            total = np.unique(total, return_inverse=True)[1].reshape(n)
            size = int(total.max(initial=0)) + 1
            codes = np.unique(codes, return_inverse=True)[1].reshape(n)  # noqa: PLW2901
            width = int(codes.max(initial=0)) + 1
        total = total * width + codes
        size *= width
    return total


def margin_keeping_exchanges(
    values: Ints, blocks: Sequence[Ints], rows: Ints, *, wanted: int, rng: np.random.Generator
) -> Ints:
    r"""Find pairs of records that may exchange their values and change no table of t of the t + 1 blocks.

    With blocks :math:`A_1, \dots, A_t` and the values :math:`C`, exchanging :math:`C` between two records
    alike in :math:`A_2, \dots, A_t` changes the counts by

    .. math:: \pm (e_a - e_{a'}) \otimes (e_c - e_{c'})

    at one value of :math:`(A_2, \dots, A_t)`. Two such exchanges of opposite sign, alike in
    :math:`A_3, \dots, A_t` and with values p and q of :math:`A_2`, add up to the same times
    :math:`(e_p - e_q)`; two of these of opposite sign, alike in :math:`A_4, \dots, A_t`, and so on. What has
    :math:`t + 1` factors sums to nothing over any one block, so no table that leaves a block out sees it; and
    where a factor vanishes (:math:`a = a'`, :math:`p = q`) the whole table stays as it is.

    Parameters
    ----------
    values : int64[n]
        Codes of the column whose values are exchanged.
    blocks : sequence of int64[n]
        Codes of :math:`A_1, \dots, A_t`, not negative.
    rows : int64[m]
        The records that may take part.
    wanted : int
        Records to be exchanged; the last move may go beyond it by up to :math:`2^t - 1`.
    rng : numpy.random.Generator

    Returns
    -------
    int64[p, 2]
        Pairs of records; no record is in two of them. Only all pairs together keep the tables.

    Notes
    -----
    **Cost:** a few sorts of the m records. One call finds some moves, not all there are: records are paired
    and pairs matched at random, so ask again for more.
    """
    found: list[Ints] = []
    pairs = _pair_rows_of_class(combine_codes(blocks[1:], len(values)), rng.permutation(rows))
    pairs = pairs[values[pairs[:, 0]] != values[pairs[:, 1]]]
    moves = pairs[:, np.newaxis, :]  # [move, pair, side]
    first, second = values[pairs[:, 0]], values[pairs[:, 1]]
    shapes, signs = np.zeros(len(moves), dtype=np.int64), np.ones(len(moves), dtype=np.int64)
    shapes, signs = _multiply_moves(shapes, signs, first, second)
    first, second = blocks[0][pairs[:, 0]], blocks[0][pairs[:, 1]]
    for level in range(1, len(blocks) + 1):
        done = (first == second) | (level == len(blocks))
        taken = rng.permutation(np.flatnonzero(done))[: max(0, -(-wanted // 2**level))]
        found.append(moves[taken].reshape(-1, 2))
        wanted -= len(taken) * 2**level
        if level == len(blocks):
            break
        shapes, signs = _multiply_moves(shapes[~done], signs[~done], first[~done], second[~done])
        moves = moves[~done]
        alike = combine_codes(blocks[level + 1 :], len(values))[moves[:, 0, 0]]
        plus, minus = _opposites(combine_codes([shapes, alike], len(moves)), signs, rng)
        block = blocks[level][moves[:, 0, 0]]
        first, second = block[plus], block[minus]
        moves = np.concatenate([moves[plus], moves[minus]], axis=1)
        shapes, signs = shapes[plus], np.ones(len(plus), dtype=np.int64)
    return np.concatenate(found)


def _pair_rows_of_class(classes: Ints, rows: Ints) -> Ints:
    """Pair the rows of each class, two by two as they stand."""
    order = rows[np.argsort(classes[rows], kind="stable")]
    ordered = classes[order]
    ranks = np.arange(len(order)) - np.searchsorted(ordered, ordered)
    opens = np.flatnonzero((ranks[:-1] % 2 == 0) & (ordered[:-1] == ordered[1:]))
    return np.stack([order[opens], order[opens + 1]], axis=1)


def _multiply_moves(shapes: Ints, signs: Ints, first: Ints, second: Ints) -> tuple[Ints, Ints]:
    """Multiply moves by one more factor, first minus second: of which two values, and with which sign."""
    low, high = np.minimum(first, second), np.maximum(first, second)
    return combine_codes([shapes, low, high], len(shapes)), np.where(first < second, signs, -signs)


def _opposites(kinds: Ints, signs: Ints, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Match moves of one kind and opposite sign, at random, as many as there are of the rarer sign."""
    shuffled = rng.permutation(len(kinds))
    order = shuffled[np.argsort(kinds[shuffled], kind="stable")]
    plus, minus = order[signs[order] > 0], order[signs[order] < 0]
    wanted = kinds[plus]
    places = np.searchsorted(kinds[minus], wanted) + np.arange(len(plus)) - np.searchsorted(wanted, wanted)
    matched = places < np.searchsorted(kinds[minus], wanted, side="right")
    return plus[matched], minus[places[matched]]
