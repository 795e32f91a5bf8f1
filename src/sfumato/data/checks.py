"""Counts where a table breaks what its schema promises: whole numbers, ranges, edit rules."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import polars as pl

from sfumato.data.schema import Column, Kind
from sfumato.data.table import Table


@dataclass(frozen=True)
class Violation:
    """One promise of the schema, and how many records break it."""

    promise: str
    records: int


def violations(table: Table) -> tuple[Violation, ...]:
    """Every promise that some records break; values that are missing or generalised break none."""
    found = [
        violation
        for column in table.schema.columns
        if column.kind is Kind.CONTINUOUS and table.frame.schema[column.name].is_numeric()
        for violation in _of_column(table, column)
    ]
    exact = [rule for rule in table.schema.rules if not any(_is_generalised(table, n) for n in rule.columns)]
    frame = _without_missing(table, {name for rule in exact for name in rule.columns})
    found += [Violation(f"`{rule.text}` holds", rule.violations(frame)) for rule in exact]
    return tuple(violation for violation in found if violation.records)


def _is_generalised(table: Table, name: str) -> bool:
    return name in table.nodes or isinstance(table.frame.schema[name], pl.Struct)


def _without_missing(table: Table, names: Iterable[str]) -> pl.DataFrame:
    """Make every missing value null, be it NaN or a code such as −9, as rules want it."""
    lacking = {name: table.missing(name) for name in names}
    return table.frame.with_columns(
        pl.when(pl.Series(~flags)).then(table.frame[name]).alias(name)
        for name, flags in lacking.items()
        if flags.any()
    )


def _of_column(table: Table, column: Column) -> list[Violation]:
    values = table.numbers(column.name)
    present = values[~np.isnan(values)]
    found = []
    if column.integer:
        broken = int((present != np.rint(present)).sum())
        found.append(Violation(f"`{column.name}` is a whole number", broken))
    if column.lower is not None:
        broken = int((present < column.lower).sum())
        found.append(Violation(f"`{column.name}` is at least {column.lower:g}", broken))
    if column.upper is not None:
        broken = int((present > column.upper).sum())
        found.append(Violation(f"`{column.name}` is at most {column.upper:g}", broken))
    return found
