"""Large arrays lie in a file: whatever is made, resized and given back, each holds what was put into it."""

import os
import sys
import tempfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.kernels.allocation import arrays_in_file

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="arrays lie in files on Linux only")
LARGE = 1 << 14


def new_file():
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def is_open(file):
    try:
        os.fstat(file)
    except OSError:
        return False
    return True


ACTIONS = st.tuples(
    st.sampled_from(["empty", "zeros", "resize", "give back"]), st.integers(1, 6 * LARGE), st.integers(0, 40)
)


@settings(max_examples=20)
@given(st.lists(ACTIONS, max_size=60))
def test_each_array_holds_what_was_put_into_it(actions):
    held, file = {}, new_file()
    with arrays_in_file(file, min_bytes=LARGE):
        for turn, (action, size, which) in enumerate(actions):
            value = turn % 251 + 1
            if action == "empty":
                held[which] = (np.empty(size, dtype=np.uint8), value)
                held[which][0].fill(value)
            elif action == "zeros":
                made = np.zeros(size, dtype=np.uint8)
                assert not made.any()
                made.fill(value)
                held[which] = (made, value)
            elif action == "resize" and which in held:
                array, value = held.pop(which)
                before = len(array)
                array.resize(size, refcheck=False)
                assert (array[:before] == value).all()
                array.fill(value)
                held[which] = (array, value)
            else:
                held.pop(which, None)
            assert all((array == value).all() for array, value in held.values())
    assert all((array == value).all() for array, value in held.values())
    assert is_open(file) == any(array.nbytes >= LARGE for array, _ in held.values())
    held.clear()
    array = made = None
    assert not is_open(file)


def test_room_is_used_again_and_the_disk_stays_small():
    file = new_file()
    with arrays_in_file(file, min_bytes=LARGE):
        addresses = set()
        for _ in range(200):
            array = np.empty(4 * LARGE, dtype=np.uint8)
            array.fill(1)
            addresses.add(array.ctypes.data)
            del array
        assert len(addresses) == 1
        kept = [np.ones(i * LARGE, dtype=np.uint8) for i in range(1, 30)]
        del kept
        assert os.fstat(file).st_blocks * 512 < 14 * 30 * LARGE  # of what is given back a few are kept
    assert not is_open(file)


def test_room_that_is_kept_is_limited_in_bytes():
    file = new_file()
    with arrays_in_file(file, min_bytes=LARGE, most_kept=10 * LARGE):
        for sizes in (
            [4] * 12,
            [12],
            [9, 1, 1],
            [3, 30, 3],
        ):  # few large ones, none too large, many small ones
            held = [np.ones(size * LARGE, dtype=np.uint8) for size in sizes]
            assert all(each.all() for each in held)
            del held
            assert os.fstat(file).st_blocks * 512 <= 11 * LARGE
    assert not is_open(file)
