"""An original and its release side by side, small enough to be worked out by hand."""

import numpy as np
import polars as pl

from sfumato.core.evidence import Evidence
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table


def table(columns, kinds=Kind.CONTINUOUS, *, nodes=None, role=Role.KEY, **facts):
    """A table of the columns given, all of one kind or each of its own; a column called weight is one."""
    kinds = kinds if isinstance(kinds, dict) else dict.fromkeys(columns, kinds)
    frame = pl.DataFrame(
        {
            name: column if isinstance(column, pl.Series) else pl.Series(column, strict=False)
            for name, column in columns.items()
        }
    )
    schema = Schema(
        tuple(
            Column(name, Kind.CONTINUOUS, Role.WEIGHT)
            if name == "weight"
            else Column(name, kinds[name], role, **facts.get(name, {}))
            for name in columns
        )
    )
    return Table(frame, schema, nodes=nodes or {})


def beside(original, protected, rows="in order"):
    """The evidence of a release; ``rows=None`` if its records do not map."""
    if isinstance(rows, str):
        rows = np.arange(len(original))
    return Evidence(original, protected, source_rows=None if rows is None else np.asarray(rows))


def score(measure, original, protected, rows="in order"):
    """Measure a release."""
    return measure.score(beside(original, protected, rows), Run(seed=1))


def numeric(values):
    """A table of numbers, columns a, b, c …"""
    return table({chr(ord("a") + i): column for i, column in enumerate(np.asarray(values, dtype=float).T)})
