"""Tables to test on: ordinary ones of every kind, and those on which careless code breaks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import numpy as np
import polars as pl

from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table

#: What is sensitive in an ordinary table: as often each, in an order that some models want.
_LEARNT = ("s0", "s1", "s2", "s3", "s4", "s5")


def columns_of(kind: Kind, records: int, rng: np.random.Generator) -> list[pl.Series]:
    """Two ordinary columns of a kind."""
    if kind is Kind.CONTINUOUS:
        base = rng.lognormal(3, 1, records)
        return [
            pl.Series("a", base),
            pl.Series("b", np.rint(base * rng.lognormal(0, 0.3, records))).cast(pl.Int64),
        ]
    if kind is Kind.ORDINAL:
        words = np.array(["low", "middle", "high"])
        return [
            pl.Series("a", rng.integers(0, 9, records)),
            pl.Series("b", words[rng.integers(0, 3, records)]),
        ]
    if kind is Kind.DATE:
        start = date(2020, 1, 1)
        days = [[start + timedelta(days=int(d)) for d in rng.integers(0, 900, records)] for _ in range(2)]
        return [pl.Series(name, values, dtype=pl.Date) for name, values in zip("ab", days, strict=True)]
    if kind is Kind.SET:
        sets = [[["x", "y", "z"][: int(size)] for size in rng.integers(0, 4, records)] for _ in range(2)]
        return [
            pl.Series(name, values, dtype=pl.List(pl.String)) for name, values in zip("ab", sets, strict=True)
        ]
    return [
        pl.Series(name, [f"v{int(code)}" for code in rng.integers(0, 5, records)], dtype=pl.String)
        for name in "ab"
    ]


def table_of(kind: Kind, records: int = 60, *, missing: float = 0.0, seed: int = 11) -> Table:
    """A table with two key columns of a kind, a stratum, an untouched column and a sensitive one."""
    rng = np.random.default_rng(seed)
    series = columns_of(kind, records, rng)
    if missing:
        series = [_with_holes(each, rng.random(records) < missing) for each in series]
    frame = pl.DataFrame(series).with_columns(
        pl.Series("stratum", rng.integers(0, 2, records), dtype=pl.Int64),
        pl.Series("other", np.arange(records), dtype=pl.Int64),
        pl.Series("learnt", np.resize(_LEARNT, records), dtype=pl.String),
    )
    order = ("low", "middle", "high") if kind is Kind.ORDINAL else ()
    schema = Schema(
        (
            Column("a", kind, Role.KEY),
            Column("b", kind, Role.KEY, order=order),
            Column("stratum", Kind.NOMINAL, Role.OTHER),
            Column("other", Kind.NOMINAL, Role.OTHER),
            Column("learnt", Kind.ORDINAL, Role.SENSITIVE, order=_LEARNT),
        )
    )
    return Table(frame, schema)


def with_declared_domains(table: Table) -> Table:
    """The same table, with bounds or categories declared of each key, as private methods need it."""
    columns = []
    for name in table.schema.with_role(Role.KEY):
        column = table.schema[name]
        if column.kind is Kind.CONTINUOUS:
            columns.append(replace(column, lower=0.0, upper=1000.0))
        elif column.kind in {Kind.ORDINAL, Kind.NOMINAL} and not column.order:
            columns.append(replace(column, labels=tuple((each, "") for each in table.categories(name))))
    return replace(table, schema=table.schema.replace(*columns))


def _with_holes(series: pl.Series, holes: Any) -> pl.Series:
    return series.to_frame().select(pl.when(pl.Series(~holes)).then(pl.col(series.name))).to_series()


def hard_tables(kind: Kind) -> Iterator[tuple[str, Table]]:
    """Tables on which careless code breaks."""
    usual = table_of(kind)
    yield "missing", table_of(kind, missing=0.3)
    yield "all missing", usual.with_values("a", pl.Series([None] * len(usual), dtype=usual.frame["a"].dtype))
    yield "empty", usual.take(np.arange(0))
    yield "one record", usual.take(np.arange(1))
    yield "two records", usual.take(np.arange(2))
    yield "constant", usual.take(np.zeros(40, dtype=np.int64))
    yield "duplicate columns", usual.with_values("b", usual.frame["a"], column=Column("b", kind, Role.KEY))
    yield "heavy ties", usual.take(np.repeat(np.arange(4), 15))
