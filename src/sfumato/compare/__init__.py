"""Choose: recipes and plans, trials, reaching a level, and the risk–utility map.

The room has the name of a verb of the front door. Python lets only one of the two be ``sfumato.compare``, so
the room answers to being called: ``sfumato.compare(data, …)`` compares.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any


class _Room(ModuleType):
    """A module that is also the verb it is named after."""

    def __call__(self, *arguments: Any, **settings: Any) -> Any:
        """Compare (see ``sfumato.front.compare``); by name, since a room does not know the doors above it."""
        return importlib.import_module("sfumato.front").compare(*arguments, **settings)


sys.modules[__name__].__class__ = _Room
