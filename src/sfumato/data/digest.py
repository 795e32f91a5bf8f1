"""The fingerprint of a table's contents, folded over blocks, so that a stream of blocks has it too."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import polars as pl

#: Records in one logical block. It is part of what a release means: streams of chance are keyed by block and
#: the fingerprint of a table is folded over blocks, so everybody must cut the same ones.
BLOCK_RECORDS = 65_536


def digest_of(names: Iterable[str], blocks: Iterable[pl.DataFrame]) -> bytes:
    """Fold the fingerprint of a table from its logical blocks, in their order.

    Every block but the last holds `BLOCK_RECORDS` records. The order of the columns, their types where they
    hold the same values, and how the memory lies do not count.
    """
    state = hashlib.blake2b(digest_size=32)
    for name in sorted(names):
        state.update(_with_length(name.encode()))
    parts = [block for block in blocks if block.height]  # a stream of nothing may come as one empty block
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # who hashes lets others have Python meanwhile
        for found in pool.map(block_digest, parts):
            state.update(found)
    state.update(sum(block.height for block in parts).to_bytes(8, "little"))
    return state.digest()


def block_digest(block: pl.DataFrame) -> bytes:
    """Fingerprint one block; the names of its columns only order them."""
    state = hashlib.blake2b(digest_size=32)
    for name in sorted(block.columns):
        _add(state, block[name])
    return state.digest()


def _add(state: Any, series: pl.Series) -> None:
    """Add where values are missing, then those that are there: what lies under a null never counts."""
    whole, dtype = not series.null_count(), series.dtype
    holes = bytes((len(series) + 7) // 8) if whole else np.packbits(series.is_null().to_numpy()).tobytes()
    state.update(_with_length(holes))
    present = series if whole else series.drop_nulls()
    if not len(present):
        return  # nothing, of whatever type
    if isinstance(dtype, pl.Struct):
        for part in dtype.fields:
            state.update(b"part" + _with_length(part.name.encode()))
            _add(state, present.struct.field(part.name))
    elif isinstance(dtype, pl.List | pl.Array):
        lists = present.arr.to_list() if isinstance(dtype, pl.Array) else present
        state.update(b"list" + lists.list.len().to_numpy().astype(np.int64).tobytes())
        _add(state, lists.explode())
    elif (dtype.is_numeric() and not dtype.is_decimal()) or dtype.is_temporal() or dtype == pl.Boolean:
        _add_numbers(state, present.to_physical())
    else:
        _add_texts(state, present.bin.encode("hex") if dtype == pl.Binary else present.cast(pl.String))


def _add_numbers(state: Any, physical: pl.Series) -> None:
    """Add numbers in the widest type, so that the same ones in a narrower type add the same."""
    numbers = physical.cast(pl.Float64 if physical.dtype.is_float() else pl.Int64, strict=False)
    if numbers.null_count():
        _add_texts(state, physical.cast(pl.String))  # more than 64 bits can hold
        return
    values = numbers.to_numpy()
    if np.isnan(values).any():
        values = numbers.fill_nan(float("nan")).to_numpy()  # there are many NaN, all of one meaning
    state.update(b"number")
    state.update(np.ascontiguousarray(values))


def _add_texts(state: Any, texts: pl.Series) -> None:
    """Add the lengths, then the texts in one: the lengths keep "ab", "c" apart from "a", "bc"."""
    state.update(b"text")
    state.update(texts.str.len_bytes().to_numpy().astype(np.int64))
    state.update(texts.str.join("").cast(pl.Binary).item())


def _with_length(part: bytes) -> bytes:
    return len(part).to_bytes(8, "little") + part
