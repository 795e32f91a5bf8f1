"""The plainest engine: in this process, one block after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TypeVar

from sfumato.data.digest import BLOCK_RECORDS
from sfumato.engines.interface import Stopped

A = TypeVar("A")
B = TypeVar("B")


@dataclass(frozen=True)
class MemoryEngine:
    """Here, now, one after the other."""

    block_records: int = BLOCK_RECORDS
    memory: int | None = field(default=None, kw_only=True)

    def map(self, work: Callable[[A], B], items: Iterable[A], *, records: int = 0) -> Iterator[B]:  # noqa: ARG002
        """Apply ``work`` to every item in turn."""
        return map(work, items)

    @property
    def n_workers(self) -> int:
        """None: one piece after the other."""
        return 0

    def spread(
        self,
        work: Callable[[A, Stopped], B],  # noqa: ARG002  — nothing travels
        items: Sequence[A],
        here: Callable[[A], B],
        check: Callable[[], None],  # noqa: ARG002  — the work itself does
    ) -> Iterator[B]:
        """Do every piece here, in turn."""
        return map(here, items)

    def fold(self, merge: Callable[[B, B], B], items: Iterable[B]) -> B:
        """Merge the items from left to right."""
        return reduce(merge, items)

    def check(self) -> None:
        """Go on: nothing limits it."""
