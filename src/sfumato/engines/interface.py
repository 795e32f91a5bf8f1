"""What an engine is, and which one is active: every run that is made within ``active`` works on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, TypeVar

A = TypeVar("A")
B = TypeVar("B")
#: Says whether work is no longer awaited.
Stopped = Callable[[], bool]


class Engine(Protocol):
    """Where work runs; both verbs keep the order of the items, so that engines agree bit for bit.

    What is mapped may travel: it is made of functions that have a name and of plain data, without the seed.
    """

    @property
    def block_records(self) -> int:
        """Records in one logical block: those of a release, unless a test wants many blocks of few."""
        ...

    @property
    def memory(self) -> int | None:
        """The bytes that the process may hold beside files; None: whatever there is."""
        ...

    def map(self, work: Callable[[A], B], items: Iterable[A], *, records: int = 0) -> Iterator[B]:
        """Apply ``work`` to every item; results come in the order of the items.

        An item is about so many ``records`` (0: a block), by which who shares the work out may group items.
        """
        ...

    @property
    def n_workers(self) -> int:
        """How many pieces of work `spread` does at once, elsewhere; 0: it does each here, in turn."""
        ...

    def spread(
        self,
        work: Callable[[A, Stopped], B],
        items: Sequence[A],
        here: Callable[[A], B],
        check: Callable[[], None],
    ) -> Iterator[B]:
        """Do long pieces of work that do not depend on each other; results come in the order of the items.

        ``work`` may travel; what cannot is done ``here``. ``check`` raises if nobody waits for it any more,
        and ``work`` learns of it by what it is given beside the item.
        """
        ...

    def fold(self, merge: Callable[[B, B], B], items: Iterable[B]) -> B:
        """Merge the items from left to right."""
        ...

    def check(self) -> None:
        """Raise if the engine cannot go on, as when its memory is used up."""
        ...


_ACTIVE: ContextVar[Engine | None] = ContextVar("engine", default=None)


def active_engine() -> Engine | None:
    """The engine on which runs work here unless they are given another; None for the plainest."""
    return _ACTIVE.get()


@contextmanager
def active(engine: Engine) -> Iterator[Engine]:
    """Let the runs that are made here work on an engine."""
    token = _ACTIVE.set(engine)
    try:
        yield engine
    finally:
        _ACTIVE.reset(token)
