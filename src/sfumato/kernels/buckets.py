"""Buckets: in which groups of records one value is too frequent among those who are alike."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sfumato.kernels.arrays import Flags, Ints
from sfumato.kernels.compiling import njit


class ClassValueCodes(NamedTuple):
    """What is counted, as codes from 0 up: who is alike, and which value they have.

    Values tell who is alike, too: none is that of two codes.
    """

    alike: Ints  # [n]
    values: Ints  # [n]


def too_frequent(order: Ints, parts: Ints, cells: ClassValueCodes, most: int) -> Flags:
    r"""Tell in which groups some value is that of more than one in ``most`` of the records that are alike.

    Parameters
    ----------
    order : int64[n]
        The records, those of a group side by side.
    parts : int64[groups, 2]
        The records of group g are ``order[parts[g, 0]:parts[g, 1]]``.
    cells : Cells
    most : int

    Returns
    -------
    bool[groups]

    Notes
    -----
    **Cost:** that of going through the groups, and a counter for each code.
    """
    people = np.zeros(int(cells.alike.max(initial=0)) + 1, dtype=np.int64)
    counts = np.zeros(int(cells.values.max(initial=0)) + 1, dtype=np.int64)
    return _too_frequent(order, parts, cells, most, ClassValueCodes(people, counts))


@njit(cache=True)
def _too_frequent(
    order: Ints, parts: Ints, cells: ClassValueCodes, most: int, counted: ClassValueCodes
) -> Flags:
    found = np.zeros(len(parts), dtype=np.bool_)
    for group in range(len(parts)):
        for place in range(parts[group, 0], parts[group, 1]):
            row = order[place]
            counted.alike[cells.alike[row]] += 1
            counted.values[cells.values[row]] += 1
        for place in range(parts[group, 0], parts[group, 1]):
            row = order[place]
            if counted.values[cells.values[row]] * most > counted.alike[cells.alike[row]]:
                found[group] = True
                break
        for place in range(parts[group, 0], parts[group, 1]):
            row = order[place]
            counted.alike[cells.alike[row]] = 0
            counted.values[cells.values[row]] = 0
    return found
