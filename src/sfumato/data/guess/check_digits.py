"""The arithmetic of check digits, on many numbers at once.

Each function takes texts that have the shape of their number already (all of one length, capital letters,
no spaces) and says which of them have the right check digits. Which number is checked how stands in
`sfumato.data.guess.identifiers`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from sfumato.kernels.arrays import Flags, Ints

_LONGEST_CARD = 19
_DAYS = np.array([0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])

#: Verhoeff's tables: the multiplication of the dihedral group of order 10, and the powers of a permutation.
_DIHEDRAL = np.array(
    [[(i + j) % 5 if j < 5 else 5 + (i + j) % 5 for j in range(10)] for i in range(5)]  # noqa: PLR2004
    + [[5 + (i - j) % 5 if j < 5 else (i - j) % 5 for j in range(10)] for i in range(5, 10)]  # noqa: PLR2004
)
_PERMUTATION = np.array([1, 5, 7, 6, 2, 8, 3, 0, 9, 4])


def digits_of(texts: pl.Series) -> Ints:
    """One row of digits for each text; a letter is 10 for A to 35 for Z, as base 36 writes them."""
    if not len(texts):
        return np.zeros((0, 1), dtype=np.int64)
    width = len(texts[0])
    codes = np.array(texts.to_list(), dtype=f"S{width}").view(np.uint8).reshape(len(texts), width)
    return np.where(codes >= ord("A"), codes - np.int64(ord("A") - 10), codes - np.int64(ord("0")))


def number_of(digits: Ints) -> Ints:
    """The number that a row of at most 18 digits writes."""
    return weighted(digits, [10**place for place in range(digits.shape[1] - 1, -1, -1)])


def weighted(digits: Ints, weights: Sequence[int]) -> Ints:
    """The sum of the first digits, each times its weight."""
    return np.asarray(digits[:, : len(weights)] @ np.array(weights, dtype=np.int64))


def is_day(day: Ints, month: Ints) -> Flags:
    """Whether a day and a month go together in some year."""
    known = (month >= 1) & (month <= 12)  # noqa: PLR2004
    return known & (day >= 1) & (day <= _DAYS[np.where(known, month, 0)])


def luhn(texts: pl.Series) -> Flags:
    """Every second digit from the right doubled, the sum of all digits is a multiple of 10.

    As zeros in front do not count, the texts may differ in length, up to that of the longest card number.
    """
    digits = digits_of(texts.str.zfill(_LONGEST_CARD))
    doubled = 2 * digits[:, -2::-2]
    total = digits[:, ::-2].sum(axis=1) + (doubled - 9 * (doubled > 9)).sum(axis=1)  # noqa: PLR2004
    return np.asarray(total % 10 == 0)


def verhoeff(texts: pl.Series) -> Flags:
    """The digits from the right, each permuted as often as its place says, multiply to the identity."""
    digits = digits_of(texts)
    product = np.zeros(len(digits), dtype=np.int64)
    power = np.arange(10)
    for place in range(digits.shape[1] - 1, -1, -1):
        product = _DIHEDRAL[product, power[digits[:, place]]]
        power = _PERMUTATION[power]
    return np.asarray(product == 0)


def mod_11_10(texts: pl.Series) -> Flags:
    """ISO 7064, mod 11,10: a product carried from digit to digit, here over all digits."""
    digits = digits_of(texts)
    product = np.full(len(digits), 10, dtype=np.int64)
    for place in range(digits.shape[1] - 1):
        total = (digits[:, place] + product) % 10
        product = np.where(total == 0, 10, total) * 2 % 11
    return np.asarray((product + digits[:, -1]) % 10 == 1)


def mod_97(texts: pl.Series) -> Flags:
    """ISO 7064, mod 97-10: the first four characters at the end, letters as two digits, remainder 1 (IBAN).

    The texts may differ in length.
    """
    letters = [chr(code) for code in range(ord("A"), ord("Z") + 1)]
    turned = texts.str.slice(4) + texts.str.slice(0, 4)
    written = turned.str.replace_many(letters, [str(value) for value in range(10, 36)])
    digits = digits_of(written.str.zfill(int(written.str.len_bytes().max() or 1)))  # type: ignore[arg-type]
    rest = np.zeros(len(digits), dtype=np.int64)
    for place in range(digits.shape[1]):
        rest = (rest * 10 + digits[:, place]) % 97
    return np.asarray(rest == 1)


def sums_to(modulus: int, digits: Ints, weights: Sequence[int]) -> Flags:
    """Whether the weighted sum of the digits is a multiple of the modulus."""
    return np.asarray(weighted(digits, weights) % modulus == 0)


def letter_of(texts: pl.Series, numbers: Ints, alphabet: str) -> Flags:
    """Whether the last character is the one that stands at the remainder of the number in the alphabet."""
    expected = pl.Series(list(alphabet)).gather(numbers % len(alphabet))
    return (texts.str.slice(-1) == expected).to_numpy()
