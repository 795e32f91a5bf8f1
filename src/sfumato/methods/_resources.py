"""What parameters and columns name: tables with columns of fixed names, and hierarchies."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import polars as pl

from sfumato.core.method import Method
from sfumato.core.params import Resource
from sfumato.core.run import Run
from sfumato.data.hierarchy.grow import present_values
from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.data.schema import Column
from sfumato.data.table import Table
from sfumato.errors import PlanError, RefusedError, UnknownNameError, quoted

T = TypeVar("T")


def declared_hierarchy(run: Run, resource: str, column: str) -> Hierarchy:
    """The hierarchy that a resource is, which a column or parameter names."""
    try:
        hierarchy: object = run.resource(Resource(resource))
    except UnknownNameError as error:
        message = f"{error.message}, the hierarchy of `{column}`"
        raise UnknownNameError(message, hint=error.hint) from None
    if not isinstance(hierarchy, Hierarchy):
        raise PlanError(
            f"the resource `{resource}` of `{column}` must be a hierarchy, got: something else",
            hint='declare it in the plan with holds = "hierarchy"',
        )
    return hierarchy


def built_hierarchy(table: Table, name: str, build: Callable[[Column, pl.Series], T]) -> T:
    """The hierarchy that is built of the values of a column, once for a table; or what there is instead."""
    column = table.schema[name]
    found = table.remember(name, build, lambda: [build(column, present_values(column, table.frame[name]))])
    return found[0]


def columns_of(method: Method, parameter: str, run: Run, names: tuple[str, ...]) -> pl.DataFrame | None:
    """The table that a parameter names, which must have these columns; None if it names none."""
    named: Resource | None = getattr(method, parameter)
    if named is None:
        return None
    given: object = run.resource(named)
    frame = given.frame if isinstance(given, Table) else given
    if isinstance(frame, pl.DataFrame) and set(names) <= set(frame.columns):
        return frame
    found = quoted(frame.columns) if isinstance(frame, pl.DataFrame) else f"a {type(given).__name__.lower()}"
    raise RefusedError(
        f"`{parameter}` of {method.name} must name a table with the columns {', '.join(names)}, got: {found}"
    )
