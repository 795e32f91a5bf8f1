"""Past the memory of one machine: large columns lie in files, and work keeps to a limit of memory."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from sfumato.engines.memory import MemoryEngine
from sfumato.errors import MemoryLimitError


@dataclass(frozen=True)
class StreamEngine(MemoryEngine):
    """One block after the other, of tables whose large columns lie in files (see `data.column_store`).

    ``memory`` limits the bytes that the process holds beside them; None: whatever there is.
    """

    def check(self) -> None:
        """Raise if the process holds more than it may."""
        if self.memory is not None and (used := memory_in_use()) > self.memory:
            raise MemoryLimitError.of(used, self.memory)


def memory_in_use(process: int | str = "self") -> int:
    """The bytes that a process holds in memory and in no file; 0 where the system does not tell."""
    if sys.platform != "linux":
        return 0
    try:
        lines = Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines()
    except OSError:  # it has ended
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:")), 0)


def available_memory() -> int | None:
    """The bytes of memory that the system can still give; None where it does not tell."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:  # not Linux
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)
