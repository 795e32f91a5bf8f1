"""Pace: long work in slices of time, shared out to threads, with a word between two slices."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache
from typing import ClassVar, TypeAlias

import numpy as np
from threadpoolctl import ThreadpoolController

from sfumato.kernels.arrays import Ints

#: Told how much is done, and of how much; what it raises ends the run.
Tick: TypeAlias = Callable[[int, int], None]

SLICE = 0.2  # seconds of work between two ticks: about this to three times this


def one_thread_of_algebra() -> AbstractContextManager[object]:
    """Have linear algebra done by one thread meanwhile: the same bits on every machine, and no idle waiting.

    On small matrices the threads of a BLAS spend ten times the work in waiting for each other, and what a sum
    rounds to depends on how many there are.
    """
    found = _libraries("scipy.linalg" in sys.modules)  # it brings a BLAS of its own
    limited: AbstractContextManager[object] = found.limit(limits=1, user_api="blas")
    return limited


@cache
def _libraries(_: bool) -> ThreadpoolController:  # noqa: FBT001  — a key
    return ThreadpoolController()


class CompileAllowance:
    """So much small work may go by numpy: no more than compiling a kernel takes, which is quicker then.

    Both ways must give the same answer. Once the kernel was asked for it is there, and is used from then on.
    """

    granted: ClassVar[bool] = True  #: to anybody in this process; who compiles ahead wants the kernels

    def __init__(self, operations: int) -> None:
        self._left = operations

    def takes(self, operations: int) -> bool:
        """Whether work of so many operations may still go by numpy."""
        self._left = self._left - operations if operations <= self._left else 0
        return self.granted and self._left > 0


def next_size(size: int, began: float) -> int:
    """How much to do next, if ``size`` has taken the time since ``began``."""
    seconds = time.perf_counter() - began
    if seconds < SLICE:
        return size * 2
    return max(1, size // 2) if seconds > 3 * SLICE else size


def slices(indices: Ints, size: int = 64) -> Iterator[Ints]:
    """Cut into parts that take their user about as long as `SLICE` asks, the first of a given size."""
    start = 0
    while start < len(indices):
        began = time.perf_counter()
        yield indices[start : start + size]
        start, size = start + size, next_size(size, began)


def share_out(indices: Ints, work: Callable[[Ints], None], tick: Tick | None, *, size: int = 64) -> None:
    """Let threads do slices of the work, and tick between.

    Threads of our own and not numba's: its default pool on some systems dies when two callers meet.
    """
    n_threads = os.cpu_count() or 1
    done = 0
    with ThreadPoolExecutor(n_threads) as pool:
        for part in slices(indices, size):
            list(pool.map(work, np.array_split(part, n_threads)))
            done += len(part)
            if tick is not None:
                tick(done, len(indices))
