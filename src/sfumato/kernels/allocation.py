"""Where numpy puts large arrays: into a file that is mapped, instead of memory that nothing backs.

Numpy lets each array be taken from, and given back to, functions of one's own (NEP 49). These are compiled,
since small arrays pass through them too. What lies before an array says where it lies: its size, its place in
the file or `_IN_MEMORY`, and the room it has there. Room that was given back is kept for the next arrays of
such a size: to map it anew, and to have each page of it found again, took longer than the work on it.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

import sfumato.kernels.numba_cache  # noqa: F401 — so that what is compiled here is kept too
from sfumato.kernels.compiling import njit

#: What stands for the place in the file of an array that lies in memory.
_IN_MEMORY = -1
#: Bytes before an array in memory, and in the file: as its beginning must be aligned.
_BEFORE, _PAGE = 64, 4096
#: Where numpy's table of functions has the one that sets who allocates.
_SET_HANDLER = 304
#: Where the settings have the fewest bytes for the file; how much uses it: arrays, and who opened it; what is
#: kept at most, in bytes; and the room that is kept, each with its address, size and place in the file.
_MIN_SIZE, _IN_USE, _KEEPS, _KEPT = 8, 16, 24, 32
#: How many pieces of room are kept, and the bytes of what is noted of each.
_N_KEPT, _NOTE = 12, 24
#: Room is used again for arrays of at least this share of it.
_LEAST_SHARE = 2
#: Of the C library: read and write, shared; from the end; free the disk and keep the length.
_READ_WRITE, _SHARED, _FROM_END, _PUNCH_HOLE = 3, 1, 2, 3

_WORD: Any = types.int64
_HALF: Any = types.int32
_NOTHING: Any = types.void
_external: Any = types.ExternalFunction


def _library(name: str, n_words: int) -> Any:
    return _external(name, _WORD(*[_WORD] * n_words))


_malloc, _calloc, _free = _library("malloc", 1), _library("calloc", 2), _library("free", 1)
_mmap, _munmap, _memcpy = _library("mmap", 6), _library("munmap", 2), _library("memcpy", 3)
_memset = _library("memset", 3)
_close = _external("close", _HALF(_HALF))
_lseek = _external("lseek", _WORD(_HALF, _WORD, _HALF))
_reserve = _external("posix_fallocate", _HALF(_HALF, _WORD, _WORD))
_release = _external("fallocate", _HALF(_HALF, _HALF, _WORD, _WORD))


def _read(_typing: Any, _address: Any) -> Any:
    """The whole number at an address."""

    def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        return builder.load(builder.inttoptr(values[0], ir.IntType(64).as_pointer()))

    return _WORD(_WORD), generate


def _write(_typing: Any, _address: Any, _value: Any) -> Any:
    """Write a whole number to an address."""

    def generate(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        builder.store(values[1], builder.inttoptr(values[0], ir.IntType(64).as_pointer()))
        return context.get_dummy_value()

    return _NOTHING(_WORD, _WORD), generate


_word: Any = intrinsic(_read)
_put_word: Any = intrinsic(_write)


def _c_function(signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """Have a function compiled that C can call."""
    made: Callable[[Callable[..., Any]], Any] = numba.cfunc(signature, cache=True)
    return made


@njit(cache=True)
def _begin(base: int, before: int, size: int, place: int) -> int:
    """Note before an array where it lies; and its address."""
    _put_word(base + before - 8, size)
    _put_word(base + before - 16, place)
    return base + before


@njit(cache=True)
def _take_kept(settings: int, size: int) -> int:
    """The note on room that is kept and of about such a size; 0 if there is none."""
    for i in range(_N_KEPT):
        note = settings + _KEPT + _NOTE * i
        room = _word(note + 8)
        if _word(note) != 0 and size <= room <= _LEAST_SHARE * size:
            return note
    return 0


@njit(cache=True)
def _take_from_file(settings: int, size: int) -> int:
    """The address of so many bytes at the end of the file; 0 if the disk is full."""
    file = np.int32(_word(settings))
    place = (_lseek(file, 0, np.int32(_FROM_END)) + _PAGE - 1) // _PAGE * _PAGE
    if _reserve(file, place, size + _PAGE) != 0:
        return 0
    base = _mmap(0, size + _PAGE, _READ_WRITE, _SHARED, np.int64(file), place)
    if base == -1:
        return 0
    _put_word(base + _PAGE - 24, size)
    _put_word(settings + _IN_USE, _word(settings + _IN_USE) + 1)
    return _begin(base, _PAGE, size, place)


@njit(cache=True)
def _take_large(settings: int, size: int) -> int:
    """The address of so many bytes in the file, used before or not; 0 if the disk is full."""
    note = _take_kept(settings, size)
    if note == 0:
        return _take_from_file(settings, size)
    base, place = _word(note), _word(note + 16)
    _put_word(note, 0)
    _put_word(settings + _IN_USE, _word(settings + _IN_USE) + 1)
    return _begin(base, _PAGE, size, place)


@njit(cache=True)
def _let_go(settings: int, base: int, room: int, place: int) -> None:
    """Give room back to the system, and its part of the disk."""
    _munmap(base, room + _PAGE)
    _release(np.int32(_word(settings)), np.int32(_PUNCH_HOLE), place, room + _PAGE)


@njit(cache=True)
def _keep(settings: int, base: int, room: int, place: int) -> None:
    """Keep room for other arrays; what was kept longest goes, if there is too much."""
    kept = room
    for i in range(_N_KEPT):
        note = settings + _KEPT + _NOTE * i
        kept += _word(note + 8) if _word(note) != 0 else 0
        if _word(note) != 0 and (kept > _word(settings + _KEEPS) or i == _N_KEPT - 1):
            _let_go(settings, _word(note), _word(note + 8), _word(note + 16))
            _put_word(note, 0)
    for i in range(_N_KEPT - 1, 0, -1):
        note = settings + _KEPT + _NOTE * i
        for each in range(0, _NOTE, 8):
            _put_word(note + each, _word(note - _NOTE + each))
    first = settings + _KEPT
    _put_word(first, base)
    _put_word(first + 8, room)
    _put_word(first + 16, place)


@njit(cache=True)
def _end(settings: int) -> None:
    """Keep no room from here on."""
    _put_word(settings + _KEEPS, 0)
    for i in range(_N_KEPT):
        note = settings + _KEPT + _NOTE * i
        if _word(note) != 0:
            _let_go(settings, _word(note), _word(note + 8), _word(note + 16))
            _put_word(note, 0)


@njit(cache=True)
def _take(settings: int, size: int) -> int:
    """The address of so many bytes, in the file if they are many; 0 if there are none."""
    if size >= _word(settings + _MIN_SIZE):
        return _take_large(settings, size)
    base = _malloc(size + _BEFORE)
    return 0 if base == 0 else _begin(base, _BEFORE, size, _IN_MEMORY)


@njit(cache=True)
def _give_back(settings: int, address: int) -> None:
    place = _word(address - 16)
    if place == _IN_MEMORY:
        _free(address - _BEFORE)
    else:
        room = _word(address - 24)
        if room <= _word(settings + _KEEPS):
            _keep(settings, address - _PAGE, room, place)
        else:
            _let_go(settings, address - _PAGE, room, place)
        _put_word(settings + _IN_USE, _word(settings + _IN_USE) - 1)
        if _word(settings + _IN_USE) == 0:
            _close(np.int32(_word(settings)))


@_c_function(_WORD(_WORD, _WORD))
def _allocate(settings: int, size: int) -> int:
    return _take(settings, size)


@_c_function(_WORD(_WORD, _WORD, _WORD))
def _allocate_zeros(settings: int, n: int, width: int) -> int:
    if n * width >= _word(settings + _MIN_SIZE):
        if _take_kept(settings, n * width) == 0:
            return _take_from_file(settings, n * width)  # what was never written is 0
        made = _take_large(settings, n * width)
        _memset(made, 0, n * width)
        return made
    base = _calloc(1, n * width + _BEFORE)
    return 0 if base == 0 else _begin(base, _BEFORE, n * width, _IN_MEMORY)


@_c_function(_WORD(_WORD, _WORD, _WORD))
def _reallocate(settings: int, address: int, size: int) -> int:
    made = _take(settings, size)
    if made != 0 and address != 0:
        _memcpy(made, address, min(_word(address - 8), size))
        _give_back(settings, address)
    return made


@_c_function(_NOTHING(_WORD, _WORD, _WORD))
def _deallocate(settings: int, address: int, _size: int) -> None:
    if address != 0:
        _give_back(settings, address)


class _Functions(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("settings", "new", "zeros", "resize", "free")]


class _Handler(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char * 127), ("version", ctypes.c_uint8), ("functions", _Functions)]


#: Kept for ever: an array may outlive whoever made it, and is given back to where it was taken from.
_HANDLERS: list[Any] = []


@contextmanager
def arrays_in_file(file: int, *, min_bytes: int, most_kept: int = 2**31) -> Iterator[None]:
    """Let numpy put arrays of so many bytes into a file, by its descriptor; closed when nothing uses it.

    Arrays that are made by this thread are; kernels take their own from memory. Of room that was given back
    as many bytes as ``most_kept`` stay on the disk for others.
    """
    settings = np.zeros((_KEPT + _N_KEPT * _NOTE) // 8, dtype=np.int64)
    settings[:4] = file, min_bytes, 1, most_kept
    own = (_allocate, _allocate_zeros, _reallocate, _deallocate)
    functions = _Functions(settings.ctypes.data, *(each.address for each in own))
    handler = _Handler(b"sfumato", 1, functions)
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    name = ctypes.c_char_p(b"mem_handler")
    capsule = new(ctypes.addressof(handler), name, None)
    _HANDLERS.append((settings, handler, name, capsule))
    former = _set_handler(capsule)
    try:
        yield
    finally:
        _set_handler(former)
        _end(settings.ctypes.data)
        settings[_IN_USE // settings.itemsize] -= 1
        if not settings[_IN_USE // settings.itemsize]:
            os.close(file)


def _set_handler(capsule: Any) -> Any:
    """Have numpy allocate by a handler from here on; and who did before."""
    from numpy._core.multiarray import _ARRAY_API  # where extensions look

    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(pointer(_ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    function = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(table[_SET_HANDLER])
    return function(capsule)
