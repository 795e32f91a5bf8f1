"""The contract as tests: what every method and measure must do, for ours and for a plugin's.

A plugin's own test file needs two lines::

    import pytest
    from sfumato.testing import METHOD_CHECKS

    @pytest.mark.parametrize("check", METHOD_CHECKS, ids=lambda check: check.__name__)
    def test_contract(check):
        check(MyMethod)

Needs hypothesis only where a strategy is asked for.
"""

from __future__ import annotations

from sfumato.testing.engines import PicklingEngine, ThreadEngine
from sfumato.testing.measures import MEASURE_CHECKS
from sfumato.testing.methods import METHOD_CHECKS
from sfumato.testing.strategies import instances, strategy_of
from sfumato.testing.tables import hard_tables, table_of

__all__ = [
    "MEASURE_CHECKS",
    "METHOD_CHECKS",
    "PicklingEngine",
    "ThreadEngine",
    "hard_tables",
    "instances",
    "strategy_of",
    "table_of",
]
