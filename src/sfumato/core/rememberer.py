"""What was made once of something that never changes is kept with it: all who ask share it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Any, TypeVar

T = TypeVar("T")


class Rememberer:
    """Keeps what was made of it, by name, as long as it lives in this process."""

    @cached_property
    def _memory(self) -> dict[Hashable, Any]:
        return {}

    def remember(self, what: Hashable, make: Callable[[], T]) -> T:
        """What was made of it before under this name, or made now."""
        if what not in self._memory:
            self._memory[what] = make()
        made: T = self._memory[what]
        return made

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_memory": {}}  # what can be made again need not travel
