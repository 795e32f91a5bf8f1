"""The types of arrays, once: a name says what the numbers are and how they are stored."""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Singles: TypeAlias = NDArray[np.float32]
Ints: TypeAlias = NDArray[np.int64]
Codes: TypeAlias = NDArray[np.int32]
Bytes: TypeAlias = NDArray[np.uint8]
Words: TypeAlias = NDArray[np.uint64]
Flags: TypeAlias = NDArray[np.bool_]
Values: TypeAlias = NDArray[Any]

Number = TypeVar("Number", bound=np.number[Any])


def distinct_numbers(numbers: NDArray[Number]) -> NDArray[Number]:
    """The distinct numbers in ascending order; of whole ones `numpy.unique` takes a hundred times as long."""
    if (numbers[1:] > numbers[:-1]).all():
        return numbers
    in_order = np.sort(numbers)
    is_first = np.ones(len(in_order), dtype=np.bool_)
    np.not_equal(in_order[1:], in_order[:-1], out=is_first[1:])
    return in_order[is_first]


def count_distinct(numbers: NDArray[np.integer]) -> int:
    """How many distinct whole numbers there are."""
    return len(distinct_numbers(numbers))
