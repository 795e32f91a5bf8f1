"""Engines to test on: each must give bit for bit what work done here, in turn, gives."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from sfumato.data.column_store import ColumnStore
from sfumato.engines.memory import MemoryEngine

A = TypeVar("A")
B = TypeVar("B")

#: Records in a block when a small table is to have many.
FEW_RECORDS = 16


@dataclass(frozen=True)
class ThreadEngine(MemoryEngine):
    """Works on several items at once and hands the results over in order."""

    def map(self, work: Callable[[A], B], items: Iterable[A], *, records: int = 0) -> Iterator[B]:  # noqa: ARG002
        """Apply ``work`` to items in four threads."""
        with ThreadPoolExecutor(4) as pool:
            yield from pool.map(work, items)


@dataclass(frozen=True)
class PicklingEngine(MemoryEngine):
    """Pickles all that goes to the work and comes back, as another process or machine would have it.

    None of the ``secrets`` may be in it: the seed, and what the work has no need of.
    """

    secrets: tuple[bytes, ...] = ()

    def map(self, work: Callable[[A], B], items: Iterable[A], *, records: int = 0) -> Iterator[B]:  # noqa: ARG002
        """Send work and item away, work on what arrives there, and fetch the result."""
        for item in items:
            there, sent = self._pickle_and_back((work, item))
            yield self._pickle_and_back(there(sent))

    def _pickle_and_back(self, what: A) -> A:
        carried = pickle.dumps(what)
        assert not any(secret in carried for secret in self.secrets), "work that travels holds a secret"
        back: A = pickle.loads(carried)  # noqa: S301  — our own bytes
        return back


@contextmanager
def columns_in_files() -> Iterator[None]:
    """Let tables that are made here keep every column in a file, however small."""
    with tempfile.TemporaryDirectory() as folder, ColumnStore(Path(folder), min_records=1).active():
        yield


def forms_of(seed: int) -> tuple[bytes, ...]:
    """The ways in which a seed would stand in bytes."""
    raw = seed.to_bytes(16, "little")
    return raw, raw[::-1], str(seed).encode(), f"{seed:x}".encode()
