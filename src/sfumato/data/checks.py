"""Counts where a table breaks what its schema promises: whole numbers, ranges, edit rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import polars as pl

from sfumato.data.rules import Rule
from sfumato.data.schema import Column, Kind
from sfumato.data.table import Table
from sfumato.kernels.arrays import Flags


@dataclass(frozen=True)
class Violation:
    """One promise of the schema, and how many records break it."""

    promise: str
    records: int


def violations(table: Table) -> tuple[Violation, ...]:
    """Every promise that some records break; values that are missing or generalised break none.

    A promise is worded alike for every table of the same schema, so that the counts on an original and on
    its releases can be set side by side.
    """
    counted = (Violation(promise, int(broken.sum())) for promise, broken in breaches(table))
    return tuple(violation for violation in counted if violation.records)


def breaches(table: Table) -> Iterator[tuple[str, Flags]]:
    """Every promise that can be looked at, with the records that break it."""
    for column in table.schema.columns:
        if not is_counted(table, column):
            continue
        values, present = table.frame[column.name].cast(pl.Float64), ~table.missing(column.name)
        broken = {}
        if column.integer:
            broken[whole_promise(column)] = values != values.round()
        if column.lower is not None:
            broken[lower_promise(column)] = values < column.lower
        if column.upper is not None:
            broken[upper_promise(column)] = values > column.upper
        for promise, answers in broken.items():
            yield promise, answers.fill_null(value=False).to_numpy() & present
    exact = [rule for rule in table.schema.rules if not table.is_generalised(*rule.columns)]
    frame = without_missing(table, {name for rule in exact for name in rule.columns})
    for rule in exact:
        yield rule_promise(rule), rule.breaks(frame).to_numpy()


def is_counted(table: Table, column: Column) -> bool:
    """Whether a column is one of exact numbers, of which whole numbers and ranges can be promised."""
    numeric = table.frame.schema[column.name].is_numeric()
    return column.kind is Kind.CONTINUOUS and numeric and not table.is_generalised(column.name)


def without_missing(table: Table, names: Iterable[str]) -> pl.DataFrame:
    """Make every missing value null, be it NaN or a code such as −9, as rules want it."""
    lacking = {name: table.missing(name) for name in names}
    return table.frame.with_columns(
        pl.when(pl.Series(~flags)).then(table.frame[name]).alias(name)
        for name, flags in lacking.items()
        if flags.any()
    )


# How promises are worded: the same words tell where a table stands and what a repair did about it.


def whole_promise(column: Column) -> str:
    """Say that a column holds whole numbers."""
    return f"`{column.name}` is a whole number"


def lower_promise(column: Column) -> str:
    """Say where a column begins."""
    return f"`{column.name}` is at least {column.lower:g}"


def upper_promise(column: Column) -> str:
    """Say where a column ends."""
    return f"`{column.name}` is at most {column.upper:g}"


def rule_promise(rule: Rule) -> str:
    """Say that a rule holds."""
    return f"`{rule.text}` holds"
