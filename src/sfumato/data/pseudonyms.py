"""Renames people without losing them: the same number gets the same name in every table."""

from __future__ import annotations

import hashlib
from functools import partial

import numpy as np
import polars as pl

from sfumato import kernels
from sfumato.data.generalised.nodes import canonical_text, on_distinct
from sfumato.kernels.arrays import Words

#: Bytes of a pseudonym: 128 bits, so that no two of many billions meet by chance.
_SIZE = 16
KEY_SIZE = 32


def derive_key(secret: bytes, name: str) -> bytes:
    """Make the key of one sort of number (of persons, of households) from the secret of a run."""
    return hashlib.blake2b(name.encode(), key=secret, person=b"sfumato-pseudo", digest_size=KEY_SIZE).digest()


def pseudonyms(numbers: pl.Series, key: bytes) -> pl.Series:
    """Replace each value by a keyed BLAKE2b hash in hexadecimal; a missing value stays missing.

    Who does not have the key can neither find a number's pseudonym nor, by trying all numbers, the number
    behind one. 5, 5.0 and "5" are one number: tables link whatever type each keeps it in. The hashing goes
    over distinct values, with Python's own BLAKE2, which is not ours to get wrong.
    """
    return on_distinct(canonical_text(numbers), partial(_hash_texts, key=key)).alias(numbers.name)


def _hash_texts(texts: pl.Series, key: bytes) -> pl.Series:
    names = [
        None if text is None else hashlib.blake2b(text.encode(), key=key, digest_size=_SIZE).hexdigest()
        for text in texts
    ]
    return pl.Series(names, dtype=pl.String)


def keyed_numbers(numbers: pl.Series, key: bytes) -> Words:
    """A word of 64 bits for each value, the same for 5, 5.0 and "5", which nobody tells without the key.

    Whole numbers of 64 bits go through SipHash as they are, other values after a keyed hash of their text.
    """
    first, second = np.frombuffer(key[:16], dtype=np.uint64)
    whole = numbers.cast(pl.Int64, strict=False) if numbers.dtype.is_integer() else None
    if whole is not None and whole.null_count() == numbers.null_count():
        plain = whole.fill_null(0).to_numpy().view(np.uint64)
    else:  # numbers without a sign may be too large: they must not all become one
        short = partial(_shorten_texts, key=key)
        plain = on_distinct(canonical_text(numbers), short).fill_null(0).to_numpy()
    words: Words = kernels.siphash.keyed_words(plain, first, second)
    return words


def _shorten_texts(texts: pl.Series, key: bytes) -> pl.Series:
    """Texts as words: whole numbers as themselves, others as a keyed hash."""
    numbers = texts.cast(pl.Int64, strict=False)
    plain = (numbers.cast(pl.String) == texts).fill_null(value=False)
    words = [
        int(number) % 2**64 if is_plain else _word(text, key)
        for text, number, is_plain in zip(texts, numbers, plain, strict=True)
    ]
    return pl.Series(words, dtype=pl.UInt64)


def _word(text: str | None, key: bytes) -> int:
    return int.from_bytes(hashlib.blake2b((text or "").encode(), key=key, digest_size=8).digest(), "little")
