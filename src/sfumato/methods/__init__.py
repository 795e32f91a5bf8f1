"""Protect: one file or package per family. A class with a ``name`` here is a method; nothing else to do.

All of them can be had from here (``from sfumato.methods import Mdav``); each is loaded on first use.
"""

from __future__ import annotations

from sfumato.core import registry

__getattr__, __dir__ = registry.offer("methods")
