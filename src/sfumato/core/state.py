"""How work grows past the memory: what a method or measure holds of all records at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from sfumato.engines.interface import Engine
from sfumato.engines.stream import memory_in_use
from sfumato.errors import MemoryLimitError

#: In blocks; one column after the other; parts of the records after a first cut; all records at once.
Scale: TypeAlias = Literal["blocks", "ranks", "parts", "whole"]


@dataclass(frozen=True)
class State:
    """How work scales, and the bytes that it holds beside files, as ``benchmarks/bench_state.py`` measures.

    ``per_record`` are bytes for each record, ``per_cell`` for each record and column that it looks at; 0 is
    for what does not grow, or was not measured.
    """

    scale: Scale = "whole"
    per_record: int = 0
    per_cell: int = 0

    def bytes_for(self, records: int, columns: int) -> int:
        """What it holds of so many records and columns."""
        return records * (self.per_record + self.per_cell * columns)

    def require_room(self, name: str, records: int, columns: int, engine: Engine) -> None:
        """Raise before any work if it will need more memory than the engine may use."""
        if engine.memory is None or not (needed := self.bytes_for(records, columns)):
            return
        used = memory_in_use()
        if used + needed <= engine.memory:
            return
        raise MemoryLimitError(
            f"{name} of {records:,} records needs about {needed / 1e9:.1f} GB of memory beside the "
            f"{used / 1e9:.1f} GB that are in use, and may use {engine.memory / 1e9:.1f} GB.",
            hint="protect fewer columns at a time, or allow more memory",
        )
