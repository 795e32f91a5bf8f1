"""Suppressing: cells that say nothing any more, either missing or covered by the wildcard."""

from __future__ import annotations

import numpy as np
import polars as pl

from sfumato.data.generalised.intervals import end_dtype, exact_intervals, is_interval
from sfumato.data.generalised.nodes import WILDCARD, Nodes, canonical_text
from sfumato.data.schema import Kind
from sfumato.data.table import Table
from sfumato.kernels.arrays import Flags


def to_missing(table: Table, name: str, rows: Flags) -> Table:
    """Make these cells of a column missing: the code declared for suppressed values, or nothing at all."""
    if not rows.any():
        return table
    series, code = table.frame[name], table.schema[name].suppressed
    nothing = pl.Series([None], dtype=series.dtype)
    if code is not None and not isinstance(series.dtype, pl.Struct) and name not in table.nodes:
        written = pl.Series([code]).cast(series.dtype, strict=False)
        nothing = written if written.null_count() == 0 else nothing
    return table.with_values(name, series.zip_with(pl.Series(~rows), nothing))


def to_wildcard(table: Table, name: str, rows: Flags) -> Table:
    """Cover these cells of a column by the wildcard, which says "any value, or none".

    Numbers and dates become intervals, of which the others are exact; categories become labels.
    """
    if not rows.any():
        return table
    keep = pl.Series(~rows)
    if name not in table.nodes and _has_intervals(table, name):
        table = as_ranges(table, name)
        series = table.frame[name]
        return table.with_values(name, series.zip_with(keep, _whole_line(series.dtype)))
    table = as_labels(table, name)
    nodes = table.nodes[name]
    if WILDCARD not in nodes.labels:
        nodes = Nodes.union([nodes, Nodes.of({}, leaves=nodes.leaves.to_list())])
    covered = table.frame[name].cast(pl.String).zip_with(keep, pl.Series([WILDCARD])).cast(nodes.dtype)
    return table.with_nodes(name, covered, nodes)


def as_ranges(table: Table, name: str) -> Table:
    """Show a column of numbers or dates as ranges, each of one value; what is missing stays missing."""
    series = table.frame[name]
    if is_interval(series.dtype):
        return table
    present = pl.Series(~table.missing(name))
    return table.with_values(
        name, exact_intervals(series.zip_with(present, pl.Series([None], dtype=series.dtype)))
    )


def as_labels(table: Table, name: str) -> Table:
    """Show a column as labels, each of one value; what is missing stays missing."""
    if name in table.nodes:
        return table
    texts = _texts(table, name)
    values = texts.drop_nulls().unique().sort().to_list()
    nodes = Nodes.of({value: [value] for value in values}, leaves=values)
    return table.with_nodes(name, texts.cast(nodes.dtype), nodes)


def _has_intervals(table: Table, name: str) -> bool:
    dtype = table.frame[name].dtype
    ranged = table.schema[name].kind in {Kind.CONTINUOUS, Kind.DATE} and end_dtype(dtype) is not None
    return is_interval(dtype) or ranged


def _whole_line(dtype: pl.DataType) -> pl.Series:
    assert isinstance(dtype, pl.Struct)
    infinite = dtype.fields[0].dtype == pl.Float64
    ends = {"lo": -np.inf, "hi": np.inf} if infinite else {"lo": None, "hi": None}
    return pl.Series([ends], dtype=dtype)


def _texts(table: Table, name: str) -> pl.Series:
    """The exact values as text, missing codes as missing."""
    texts = canonical_text(table.frame[name])
    return texts.zip_with(pl.Series(~table.missing(name)), pl.Series([None], dtype=pl.String))
