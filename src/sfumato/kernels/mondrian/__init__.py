"""Mondrian: records cut in two again and again, always by one column, as long as both sides may be shown."""

from __future__ import annotations

from sfumato.kernels.mondrian.cuts import Keys
from sfumato.kernels.mondrian.parts import partition

__all__ = ["Keys", "partition"]
