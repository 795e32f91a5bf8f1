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


@dataclass(frozen=True)
class Coding:
    """A column as whole numbers below ``space``, equal for equal values; 0 is missing. Not all need occur."""

    codes: Unsigned
    space: int


def pack(codings: Sequence[Coding], n: int) -> Coding:
    """Pack the codes of several columns into one number for each of ``n`` records."""
    packed = Coding(np.zeros(n, dtype=np.uint64), 1)
    for coding in codings:
        if packed.space > MAX_PACKED_CODE // coding.space:
            packed = closed_up(packed)
        if packed.space > MAX_PACKED_CODE // coding.space:
            coding = closed_up(coding)  # noqa: PLW2901  — the same, without gaps
        codes = packed.codes * np.uint64(coding.space) + coding.codes
        packed = Coding(codes, packed.space * coding.space)
    return packed


def closed_up(coding: Coding) -> Coding:
    """The same codes without gaps."""
    of_record, counts = number(coding)
    return Coding(of_record.astype(np.uint64), max(len(counts), 1))


def number(coding: Coding) -> tuple[Ints, Ints]:
    """Number the distinct codes in their order: the number of each record, and how many records have it."""
    codes = coding.codes
    if fits(coding.space, len(codes)):
        counts = np.bincount(codes.astype(np.int64), minlength=coding.space)
        present = np.flatnonzero(counts)
        places = np.zeros(coding.space, dtype=np.int64)
        places[present] = np.arange(len(present))
        return places[codes], counts[present]
    order = np.argsort(codes, kind="stable")
    starts = _starts(codes[order])
    sizes = np.diff(np.append(starts, len(codes)))
    numbers = np.empty(len(codes), dtype=np.int64)
    numbers[order] = np.repeat(np.arange(len(starts)), sizes)
    return numbers, sizes


def distinct_of(codes: npt.NDArray[np.integer], space: int) -> tuple[Ints, Ints]:
    """The distinct codes in ascending order, and how often each occurs."""
    if fits(space, len(codes)):
        counts = np.bincount(codes.astype(np.int64), minlength=1)
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
