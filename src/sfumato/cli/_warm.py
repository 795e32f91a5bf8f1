"""Compile ahead: every method and measure is tried on small tables, so nobody waits for its kernels later."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import cache

from sfumato.core import registry
from sfumato.core.evidence import Evidence
from sfumato.core.measure import Measure
from sfumato.core.method import Method
from sfumato.core.run import Run
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Kind
from sfumato.data.table import Table
from sfumato.errors import SfumatoError
from sfumato.kernels.threads import CompileAllowance
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.testing import table_of

_KEYS = ("a", "b")
_RECORDS = 1100  # more than `kernels.assignment` solves at once


def warm(run: Run) -> None:
    """Compile what the methods and measures need; what is compiled already is only looked up."""
    CompileAllowance.granted = False
    works: list[type[Method | Measure]] = [*registry.methods().values(), *registry.measures().values()]
    for cls in run.track("compiling kernels", works, len(works)):
        for work, kind in _settings(cls):
            with suppress(SfumatoError):  # a work that refuses such a table needs no kernel for it
                _try(work, kind)


def _settings(cls: type[Method | Measure]) -> Iterator[tuple[Method | Measure, Kind]]:
    """The usual setting for every kind of column, and every other choice for one."""
    kinds = sorted(cls.kinds)
    yield from ((cls(), kind) for kind in kinds)
    for declared in cls.parameters():
        choices = (True, False) if declared.type is bool else declared.choices
        for value in choices:
            if value != declared.default:
                with suppress(SfumatoError):  # some choices come only in pairs
                    yield cls(**{declared.name: value}), kinds[0]


def _try(work: Method | Measure, kind: Kind) -> None:
    if isinstance(work, Method):
        Recipe((Step(work, _KEYS),)).apply(_table(kind), Run(seed=1))
        return
    for evidence in _evidence(kind):
        work.score(evidence, Run(seed=1))


@cache
def _table(kind: Kind) -> Table:
    return table_of(kind, missing=0.1)


@cache
def _evidence(kind: Kind) -> list[Evidence]:
    """A small table grouped, and numbers of so many records that the kernels for large tables are called."""
    pairs = [("mondrian", _table(kind))]
    if kind is Kind.CONTINUOUS:
        pairs.append(("rank-swapping", table_of(kind, _RECORDS)))
    found = []
    for name, table in pairs:
        release = Recipe((Step(registry.method(name)(), _KEYS),)).apply(table, Run(seed=1))
        found.append(Evidence(table, release, scenario=Scenario(columns=_KEYS)))
    return found
