"""Tables that a parameter names, with columns of fixed names: chances, populations."""

from __future__ import annotations

import polars as pl

from sfumato.core.method import Method
from sfumato.core.params import Resource
from sfumato.core.run import Run
from sfumato.data.table import Table
from sfumato.errors import RefusedError, quoted


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
