"""Renames people without losing them: the same number gets the same name in every table."""

from __future__ import annotations

import hashlib
from functools import partial

import polars as pl

from sfumato.data.generalised.nodes import canonical_text, on_distinct

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
    return on_distinct(canonical_text(numbers), partial(_hashed, key=key)).alias(numbers.name)


def _hashed(texts: pl.Series, key: bytes) -> pl.Series:
    names = [
        None if text is None else hashlib.blake2b(text.encode(), key=key, digest_size=_SIZE).hexdigest()
        for text in texts
    ]
    return pl.Series(names, dtype=pl.String)
