"""The distinct whole numbers of an array."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.kernels.arrays import count_distinct, distinct_numbers


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.int16])
@given(numbers=st.lists(st.integers(-3, 9)), in_order=st.booleans())
def test_distinct_numbers_are_those_of_a_set(numbers, in_order, dtype):
    array = np.array(sorted(numbers) if in_order else numbers, dtype=dtype)
    found = distinct_numbers(array)
    assert found.tolist() == sorted({*numbers})
    assert found.dtype == dtype
    assert count_distinct(array) == len({*numbers})
    assert array.tolist() == (sorted(numbers) if in_order else numbers)  # as it was
