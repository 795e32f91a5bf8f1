"""Pseudonyms: keyed BLAKE2b, checked against the standard library and by what an intruder cannot do."""

import hashlib

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from sfumato.data.pseudonyms import derive_key, keyed_numbers, pseudonyms

KEY = derive_key(b"secret", "person")


def test_by_the_definition():
    named = pseudonyms(pl.Series("id", ["7", None, "x"]), KEY)
    expected = [hashlib.blake2b(text, key=KEY, digest_size=16).hexdigest() for text in (b"7", b"x")]
    assert named.to_list() == [expected[0], None, expected[1]]
    assert named.name == "id"


@given(st.lists(st.one_of(st.none(), st.integers(-(10**12), 10**12)), max_size=30))
def test_the_same_number_has_the_same_name_whatever_its_type(numbers):
    whole = pl.Series(numbers, dtype=pl.Int64)
    texts = whole.cast(pl.String)
    named = pseudonyms(whole, KEY)
    assert named.to_list() == pseudonyms(texts, KEY).to_list()
    assert named.to_list() == pseudonyms(whole.cast(pl.Float64), KEY).to_list()
    assert named.n_unique() == whole.n_unique()
    assert named.is_null().to_list() == whole.is_null().to_list()


def test_another_secret_or_another_sort_of_number_gives_other_names():
    numbers = pl.Series([1, 2, 3])
    names = [
        tuple(pseudonyms(numbers, derive_key(secret, sort)))
        for secret in (b"a" * 16, b"b" * 16)
        for sort in ("person", "household")
    ]
    assert len(set(names)) == 4


def test_numbers_without_a_sign_are_told_apart_and_mean_the_same_as_their_text():
    """Hashes of 64 bits in a Parquet file: those from 2⁶³ on must not all become one person."""
    numbers = [1, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1]
    unsigned = keyed_numbers(pl.Series(numbers, dtype=pl.UInt64), b"k" * 32)
    assert len(set(unsigned.tolist())) == len(numbers)
    assert unsigned.tolist() == keyed_numbers(pl.Series([str(each) for each in numbers]), b"k" * 32).tolist()
    small = keyed_numbers(pl.Series(numbers[:2], dtype=pl.Int64), b"k" * 32)
    assert unsigned[:2].tolist() == small.tolist()
