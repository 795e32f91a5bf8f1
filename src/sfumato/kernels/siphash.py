"""Keyed numbers: SipHash-2-4 of whole numbers, which nobody foretells without the key."""

from __future__ import annotations

import numpy as np

from sfumato.kernels.arrays import Floats, Words
from sfumato.kernels.compiling import njit

_WORD = np.uint64
#: The constants of SipHash, and its last block for a message of eight bytes.
_STARTS = (
    _WORD(0x736F6D6570736575),
    _WORD(0x646F72616E646F6D),
    _WORD(0x6C7967656E657261),
    _WORD(0x7465646279746573),
)
_LENGTH, _END = _WORD(8 << 56), _WORD(0xFF)


@njit(cache=True, nogil=True)
def _rotate_bits(word: np.uint64, by: int) -> np.uint64:
    return (word << np.uint64(by)) | (word >> np.uint64(64 - by))


@njit(cache=True, nogil=True)
def _mix_words(
    a: np.uint64, b: np.uint64, c: np.uint64, d: np.uint64, rounds: int
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    for _ in range(rounds):
        a += b
        c += d
        b = _rotate_bits(b, 13) ^ a
        d = _rotate_bits(d, 16) ^ c
        a = _rotate_bits(a, 32)
        c += b
        a += d
        b = _rotate_bits(b, 17) ^ c
        d = _rotate_bits(d, 21) ^ a
        c = _rotate_bits(c, 32)
    return a, b, c, d


@njit(cache=True, nogil=True)
def keyed_words(numbers: Words, first: np.uint64, second: np.uint64) -> Words:
    """SipHash-2-4 of each number, as eight bytes from the lowest, under a key of two words.

    Notes
    -----
    **Cost:** :math:`O(n)`; eight rounds for each number.
    """
    made = np.empty_like(numbers)
    for i in range(len(numbers)):
        a, b, c, d = first ^ _STARTS[0], second ^ _STARTS[1], first ^ _STARTS[2], second ^ _STARTS[3]
        for block in (numbers[i], _LENGTH):
            d ^= block
            a, b, c, d = _mix_words(a, b, c, d, 2)
            a ^= block
        c ^= _END
        a, b, c, d = _mix_words(a, b, c, d, 4)
        made[i] = a ^ b ^ c ^ d
    return made


def value_words(columns: Floats) -> Words:
    """One word for the values of each record in some columns: equal ones have the same, NaN among them."""
    found = np.zeros(len(columns), dtype=np.uint64)
    for place in range(columns.shape[1]):
        values = columns[:, place] + 0.0  # −0 is 0
        values[np.isnan(values)] = np.nan  # there are many
        found = keyed_words(found ^ values.view(np.uint64), _STARTS[0], _STARTS[place % 4])
    return found
