"""Memory that is no longer used goes back to the system: else the peaks of all steps add up."""

from __future__ import annotations

import ctypes
import sys

#: Work on fewer records leaves little, and asking costs a moment.
LARGE_RECORDS = 200_000


def free_memory(n_records: int) -> None:
    """Give back what work on so many records has freed, where the system's library is glibc."""
    if n_records >= LARGE_RECORDS and sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
