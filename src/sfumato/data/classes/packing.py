"""Packing: several columns of codes as one number for each record, and equal numbers told from each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato.kernels.arrays import Ints

Unsigned = npt.NDArray[np.unsignedinteger]

#: Packed codes below this many times the number of records are looked up in a table, others are sorted.
_SPARSE = 4
#: The packed codes of several columns must stay below this.
MAX_PACKED_CODE = 2**62
#: Codes below this take four bytes.
_NARROW = 2**32
_LARGEST = 2**64
#: Records that are worked on at a time.
_BLOCK = 2**20


@dataclass(frozen=True)
class Coding:
    """A column as whole numbers below ``space``, equal for equal values; 0 is missing. Not all need occur."""

    codes: Unsigned
    space: int


def pack(codings: Sequence[Coding], n: int) -> Coding:
    """Pack the codes of several columns into one number for each of ``n`` records."""
    packed = Coding(np.zeros(n, dtype=np.uint32), 1)
    for coding in codings:
        if packed.space > MAX_PACKED_CODE // coding.space:
            packed = closed_up(packed)
        if packed.space > MAX_PACKED_CODE // coding.space:
            coding = closed_up(coding)  # noqa: PLW2901  — the same, without gaps
        space = packed.space * coding.space
        kind = np.dtype(np.uint32 if space <= _NARROW else np.uint64)  # of half the bytes, if they suffice
        codes: Unsigned = packed.codes.astype(kind, copy=False)
        if packed.space > 1:
            np.multiply(codes, kind.type(coding.space), out=codes)  # in place: it is ours
        np.add(codes, coding.codes, out=codes, casting="same_kind")
        packed = Coding(codes, space)
    return packed


def closed_up(coding: Coding) -> Coding:
    """The same codes without gaps."""
    of_record, counts = number(coding)
    return Coding(of_record.astype(np.uint64), max(len(counts), 1))


def number(coding: Coding) -> tuple[Ints, Ints]:
    """Number the distinct codes in their order: the number of each record, and how many records have it."""
    codes = coding.codes
    numbers = np.empty(len(codes), dtype=np.int64)
    if fits(coding.space, len(codes)):
        counts = _count_codes(codes, coding.space)
        present = np.flatnonzero(counts)
        places = np.zeros(coding.space, dtype=np.int64)
        places[present] = np.arange(len(present))
        for block in blocks(len(codes)):
            numbers[block] = places[codes[block]]
        return numbers, counts[present]
    order, starts = _in_order(coding)
    sizes = np.diff(np.append(starts, len(codes)))
    numbers[order] = np.repeat(np.arange(len(starts)), sizes)
    return numbers, sizes


def blocks(n: int, least: int = 0) -> list[slice]:
    """Parts of ``n`` records one after the other, so that no copy of all need be held at a time."""
    size = max(_BLOCK, least)
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def _count_codes(codes: npt.NDArray[np.integer], space: int) -> Ints:
    """How often each code below ``space`` occurs."""
    counts = np.zeros(space, dtype=np.int64)
    for block in blocks(len(codes), least=space):
        counts += np.bincount(codes[block].astype(np.int64), minlength=space)
    return counts


def _in_order(coding: Coding) -> tuple[Ints, Ints]:
    """The records in the order of their codes, first ones first, and where runs of equal codes begin."""
    codes = coding.codes
    bits = np.uint64(max(len(codes) - 1, 1).bit_length())
    if coding.space > _LARGEST >> int(bits):
        order = np.argsort(codes, kind="stable")
        return order, _starts(codes[order])
    # Codes and places in one number are sorted several times faster than places by their codes.
    both = codes.astype(np.uint64)
    both <<= bits
    both |= np.arange(len(codes), dtype=np.uint64)
    both.sort()
    starts = _starts(both >> bits)
    both &= (np.uint64(1) << bits) - np.uint64(1)
    return both.view(np.int64), starts


def distinct_of(codes: npt.NDArray[np.integer], space: int) -> tuple[Ints, Ints]:
    """The distinct codes in ascending order, and how often each occurs."""
    if fits(space, len(codes)):
        counts = _count_codes(codes, max(space, 1))
        present = np.flatnonzero(counts)
        return present, counts[present]
    in_order = np.sort(codes)
    starts = _starts(in_order)
    return in_order[starts].astype(np.int64), np.diff(np.append(starts, len(codes)))


def fits(space: int, n: int) -> bool:
    """Whether a table of all codes is worth while for ``n`` of them."""
    return space <= _SPARSE * n + 2**16


def _starts(in_order: npt.NDArray[np.integer]) -> Ints:
    """Where runs of equal codes begin."""
    opens = np.ones(len(in_order), dtype=np.bool_)
    np.not_equal(in_order[1:], in_order[:-1], out=opens[1:])
    return np.flatnonzero(opens)
