"""What work holds in memory is told before it begins."""

import numpy as np
import polars as pl
import pytest

from sfumato.core.run import Run
from sfumato.core.state import State
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.engines.memory import MemoryEngine
from sfumato.engines.stream import StreamEngine
from sfumato.errors import MemoryLimitError
from sfumato.methods.microaggregation import Mdav


def test_bytes_grow_with_records_and_columns():
    assert State(per_record=10, per_cell=3).bytes_for(1000, 4) == 22_000
    assert State("blocks").bytes_for(10**9, 9) == 0


def test_it_is_refused_before_any_work(monkeypatch):
    monkeypatch.setattr("sfumato.core.state.memory_in_use", lambda: 10**6)
    monkeypatch.setattr("sfumato.engines.stream.memory_in_use", lambda: 10**6)
    monkeypatch.setattr(Mdav, "protect", lambda *_: pytest.fail("it began"))
    columns = [Column(name, Kind.CONTINUOUS, Role.KEY) for name in "ab"]
    table = Table(pl.DataFrame({name: np.arange(1000.0) for name in "ab"}), Schema(tuple(columns)))
    needed = Mdav.state.bytes_for(1000, 2)
    with pytest.raises(MemoryLimitError, match="mdav of 1,000 records needs about") as caught:
        Mdav().apply(table, Run(1, engine=StreamEngine(memory=10**6 + needed - 1)))
    assert "fewer columns" in caught.value.hint
    for engine in (StreamEngine(memory=10**6 + needed), StreamEngine(), MemoryEngine()):
        with pytest.raises(pytest.fail.Exception, match="it began"):
            Mdav().apply(table, Run(1, engine=engine))
