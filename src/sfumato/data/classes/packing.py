"""Packing: several columns of codes as one number for each record, and equal numbers told from each other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato.kernels.arrays import Flags, Ints

Unsigned = npt.NDArray[np.unsignedinteger]

#: Packed codes below this many times the number of records are looked up in a table, others are sorted.
_SPARSE = 4
#: The packed codes of several columns must stay below this.
MAX_PACKED_CODE = 2**62
#: Codes below this take four bytes.
_NARROW = 2**32
_LARGEST = 2**64
#: Of many records, codes above this are closed up before they are packed, where a table of them will do.
_MIN_CODES_TO_CLOSE = 2**12
#: Records that are worked on at a time.
_BLOCK = 2**20


@dataclass(frozen=True)
class Coding:
    """A column as whole numbers below ``space``, equal for equal values; 0 is missing. Not all need occur."""

    codes: Unsigned
    space: int


def pack(codings: Iterable[Coding], n: int) -> Coding:
    """Pack the codes of several columns into one number for each of ``n`` records."""
    packed = Coding(np.zeros(n, dtype=np.uint32), 1)
    for coding in codings:
        if coding.space > _MIN_CODES_TO_CLOSE and n >= _BLOCK and fits(coding.space, n):
            coding = closed_up(coding)  # noqa: PLW2901  — a look-up now may spare a sort of all later
        if packed.space > MAX_PACKED_CODE // coding.space:
            packed = closed_up(packed)
        if packed.space > MAX_PACKED_CODE // coding.space:
            coding = closed_up(coding)  # noqa: PLW2901  — the same, without gaps
        space = packed.space * coding.space
        kind = np.dtype(np.uint32 if space <= _NARROW else np.uint64)  # of half the bytes, if they suffice
        codes: Unsigned = packed.codes
        if codes.dtype != kind:
            codes = np.empty(n, kind)
            codes[:] = packed.codes
        if packed.space > 1:
            np.multiply(codes, kind.type(coding.space), out=codes)  # in place: it is ours
        np.add(codes, coding.codes, out=codes, casting="same_kind")
        packed = Coding(codes, space)
    return packed


def closed_up(coding: Coding) -> Coding:
    """The same codes without gaps."""
    of_record, counts = number(coding)
    return Coding(of_record.view(np.uint64), max(len(counts), 1))


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
    order, opens = _in_order(coding)
    n_before = 0
    for block in blocks(len(codes)):
        own = np.cumsum(opens[block])
        numbers[order[block]] = own + (n_before - 1)
        n_before += int(own[-1])
    return numbers, _lengths(opens)


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


def _in_order(coding: Coding) -> tuple[Ints, Flags]:
    """The records in the order of their codes, first ones first, and which begin a run of equal codes."""
    codes = coding.codes
    bits = np.uint64(max(len(codes) - 1, 1).bit_length())
    if coding.space > _LARGEST >> int(bits):
        order = np.argsort(codes, kind="stable")
        return order, _opens(codes[order])
    # Codes and places in one number are sorted several times faster than places by their codes.
    both = np.empty(len(codes), dtype=np.uint64)
    for block in blocks(len(codes)):
        np.left_shift(codes[block], bits, out=both[block], casting="same_kind")
        both[block] |= np.arange(block.start, block.stop, dtype=np.uint64)
    both.sort()
    opens = _opens(both, bits)
    both &= (np.uint64(1) << bits) - np.uint64(1)
    return both.view(np.int64), opens


def distinct_of(codes: npt.NDArray[np.integer], space: int) -> tuple[Ints, Ints]:
    """The distinct codes in ascending order, and how often each occurs."""
    if fits(space, len(codes)):
        counts = _count_codes(codes, max(space, 1))
        present = np.flatnonzero(counts)
        return present, counts[present]
    in_order = np.empty(len(codes), codes.dtype)
    in_order[:] = codes
    in_order.sort()
    opens = _opens(in_order)
    return in_order[opens].astype(np.int64), _lengths(opens)


def firsts_of(numbers: npt.NDArray[np.integer], n: int) -> Ints:
    """The first record of each number, −1 where there is none."""
    firsts: Ints = np.empty(n, dtype=np.int64)
    firsts[:] = -1
    for block in reversed(blocks(len(numbers))):
        firsts[numbers[block][::-1]] = np.arange(block.stop - 1, block.start - 1, -1)  # the last one stays
    return firsts


def fits(space: int, n: int) -> bool:
    """Whether a table of all codes is worth while for ``n`` of them."""
    return space <= _SPARSE * n + 2**16


def _opens(in_order: npt.NDArray[np.integer], bits: np.uint64 | None = None) -> Flags:
    """Which codes begin a run of equal ones; the lowest ``bits`` are no part of a code."""
    opens = np.ones(len(in_order), dtype=np.bool_)
    for block in blocks(len(in_order) - 1):
        after, before = in_order[block.start + 1 : block.stop + 1], in_order[block]
        if bits is not None:
            after, before = after >> bits, before >> bits
        np.not_equal(after, before, out=opens[block.start + 1 : block.stop + 1])
    return opens


def _lengths(opens: Flags) -> Ints:
    """The lengths of the runs that begin where marked."""
    found = np.empty(int(np.count_nonzero(opens)), np.dtype(np.int64))
    n_found = 0
    for block in blocks(len(opens)):
        starts = np.flatnonzero(opens[block])
        np.add(starts, block.start, out=found[n_found : n_found + len(starts)])
        n_found += len(starts)
    for block in blocks(len(found) - 1):
        np.subtract(found[block.start + 1 : block.stop + 1], found[block], out=found[block])
    if len(found):
        found[-1] = len(opens) - found[-1]
    return found
