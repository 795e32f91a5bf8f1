"""Statistical disclosure control: protect microdata, measure risk and utility, compare methods at equal risk.

The front door. Everything a script needs has its name here; each is loaded on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from sfumato.version import __version__

if TYPE_CHECKING:
    from sfumato.core.release import Release
    from sfumato.data.scenario import Scenario
    from sfumato.data.schema import Column, Kind, Role, Schema
    from sfumato.data.table import Table
    from sfumato.engines.opening import engine
    from sfumato.front import assess, compare, inspect, protect, read, release, tune
    from sfumato.recipes.plan import Plan
    from sfumato.recipes.recipe import Recipe
    from sfumato.recipes.step import Step
    from sfumato.study.combine import combine
    from sfumato.utility.queries import expected_count

#: Where each public name lives.
_HOMES = {
    "Column": "sfumato.data.schema",
    "Kind": "sfumato.data.schema",
    "Plan": "sfumato.recipes.plan",
    "Recipe": "sfumato.recipes.recipe",
    "Release": "sfumato.core.release",
    "Role": "sfumato.data.schema",
    "Scenario": "sfumato.data.scenario",
    "Schema": "sfumato.data.schema",
    "Step": "sfumato.recipes.step",
    "Table": "sfumato.data.table",
    "assess": "sfumato.front",
    "combine": "sfumato.study.combine",
    "compare": "sfumato.front",
    "engine": "sfumato.engines.opening",
    "expected_count": "sfumato.utility.queries",
    "inspect": "sfumato.front",
    "protect": "sfumato.front",
    "read": "sfumato.front",
    "release": "sfumato.front",
    "tune": "sfumato.front",
}

#: Rooms that are used by their name: ``sfumato.risk.k_anonymity(frame, ["age", "sex"])``.
_ROOMS = ("arrays", "methods", "risk", "utility")

__all__ = [
    "Column", "Kind", "Plan", "Recipe", "Release", "Role", "Scenario", "Schema", "Step", "Table",
    "__version__", "assess", "combine", "compare", "engine", "expected_count", "inspect", "protect",
    "read", "release", "tune",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Load a public name on first use, so that ``import sfumato`` stays light."""
    if name in _ROOMS:
        return importlib.import_module(f"sfumato.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module `sfumato` has no attribute `{name}`")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return list(__all__)
