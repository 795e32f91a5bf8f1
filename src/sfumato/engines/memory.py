"""The engine interface, and the plainest engine: in this process, one block after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Protocol, TypeVar

from sfumato.data.digest import BLOCK_RECORDS

A = TypeVar("A")
B = TypeVar("B")


class Engine(Protocol):
    """Where work runs; both verbs keep the order of the items, so that engines agree bit for bit.

    What is mapped may travel: it is made of functions that have a name and of plain data, without the seed.
    """

    @property
    def block_records(self) -> int:
        """Records in one logical block: those of a release, unless a test wants many blocks of few."""
        ...

    def map(self, work: Callable[[A], B], items: Iterable[A]) -> Iterator[B]:
        """Apply ``work`` to every item; results come in the order of the items."""
        ...

    def fold(self, merge: Callable[[B, B], B], items: Iterable[B]) -> B:
        """Merge the items from left to right."""
        ...


@dataclass(frozen=True)
class MemoryEngine:
    """Here, now, one after the other."""

    block_records: int = BLOCK_RECORDS

    def map(self, work: Callable[[A], B], items: Iterable[A]) -> Iterator[B]:
        """Apply ``work`` to every item in turn."""
        return map(work, items)

    def fold(self, merge: Callable[[B, B], B], items: Iterable[B]) -> B:
        """Merge the items from left to right."""
        return reduce(merge, items)
