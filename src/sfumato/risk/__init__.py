"""How safe: one file or package per family. A class with a ``name`` here is a measure; nothing else to do.

All of them can be had from here (``from sfumato.risk import KAnonymity``); each is loaded on first use.
"""

from __future__ import annotations

from sfumato.core import registry

__getattr__, __dir__ = registry.offer("risk")
