"""The engine interface, and the plainest engine: in this process, one block after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from typing import Protocol, TypeVar

A = TypeVar("A")
B = TypeVar("B")

#: Records in one logical block. It is part of what a release means: streams are keyed by block, so every
#: engine must cut the same blocks, however many it works on at a time.
BLOCK_RECORDS = 65_536


class Engine(Protocol):
    """Where work runs; both verbs keep the order of the items, so that engines agree bit for bit."""

    def map(self, work: Callable[[A], B], items: Iterable[A]) -> Iterator[B]:
        """Apply ``work`` to every item; results come in the order of the items."""
        ...

    def fold(self, merge: Callable[[B, B], B], items: Iterable[B]) -> B:
        """Merge the items from left to right."""
        ...


class Memory:
    """Here, now, one after the other."""

    def map(self, work: Callable[[A], B], items: Iterable[A]) -> Iterator[B]:
        """Apply ``work`` to every item in turn."""
        return map(work, items)

    def fold(self, merge: Callable[[B, B], B], items: Iterable[B]) -> B:
        """Merge the items from left to right."""
        return reduce(merge, items)
