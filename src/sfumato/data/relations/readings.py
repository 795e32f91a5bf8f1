"""Cells that an intruder reads for something else than they show: what is missing, and what is a hair apart.

A suppressed cell may stand for any value, and of what is to be learnt most likely for the one that those have
who are alike. A number that is written finer than all of the original's, and lies
at one of them, is that number: noise below the resolution of the data hides nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import polars as pl

from sfumato.data.classes.classes import Classes, column_codes
from sfumato.data.classes.packing import Coding
from sfumato.data.codings import decimals_of, microseconds, numbers_of_both, time_unit_of
from sfumato.data.generalised.cover import wildcards
from sfumato.data.generalised.intervals import ends
from sfumato.data.generalised.nodes import WILDCARD
from sfumato.data.generalised.suppressing import to_wildcard
from sfumato.data.schema import Kind
from sfumato.data.table import Table
from sfumato.kernels.arrays import Flags, Floats, Ints

#: Share of a column's deviation that is no difference, however finely its values are written.
_NO_DIFFERENCE = 1e-6

#: Distinct values that must all be tens, thousands … to be taken for rounded, and in how many zeros they end.
_ROUND_VALUES, _MOST_ZEROS = 8, 6

_NUMBERS = frozenset({Kind.CONTINUOUS, Kind.DATE})


def with_open_cells(original: Table, released: Table, rows: Ints | None, names: Iterable[str]) -> Table:
    """The release with wildcards for all missing cells of the columns in which some were suppressed.

    Nobody can tell which of them had a value. Without a mapping of ``rows`` a column suppresses that lacks
    values though the original has them all.
    """
    opened = released
    for name in names:
        if Kind.SET in {table.schema[name].kind for table in (original, released)}:
            continue  # what a set may be is none of its values
        gone = released.missing(name)
        lacking = original.missing(name)
        was = np.full(len(gone), lacking.any()) if rows is None else np.append(lacking, True)[rows]
        if (gone & ~was).any():
            opened = to_wildcard(opened, name, gone)
    return opened


def with_likely_values(
    original: Table, released: Table, rows: Ints | None, keys: Sequence[str], names: Sequence[str]
) -> Table:
    """The release with the most frequent value of those who are alike in all cells that may stand for it.

    These are wildcards, labels that cover it and, in a column in which some were suppressed, missing cells.
    Sets of values make nobody alike, and stand for none.
    """
    opened, read = with_open_cells(original, released, rows, names), released
    single = [name for name in released.names if released.schema[name].kind is not Kind.SET]
    coarse = [name for name in names if name in single and opened.is_generalised(name)]
    if not coarse:
        return released
    groups = _classes_of_keys(released, [name for name in keys if name in single])
    for name in coarse:
        if name in opened.nodes:
            found = _likely_labels(groups, opened, name)
        else:
            low, high = (end.to_numpy() for end in ends(opened.frame[name]))
            found = _likely_numbers(groups, low == high, wildcards(opened, name), column_codes(opened, name))
        if not found["found"].is_null().all():
            places = found.select(pl.coalesce("found", "row")).to_series()
            read = read.with_values(name, released.frame[name].gather(places))
    return read


def _classes_of_keys(table: Table, keys: Sequence[str]) -> pl.DataFrame:
    """The class of each record: those alike in the keys have one."""
    classes = Classes.of(table, tuple(keys)).of_record if keys else np.zeros(len(table), dtype=np.int64)
    return pl.DataFrame({"class": classes}).with_row_index("row")


def _amounts(cells: pl.DataFrame) -> pl.DataFrame:
    """How often each exact value stands in each class, the most frequent first, and a row that has it."""
    counted = cells.group_by("class", "value").agg(amount=pl.len(), found=pl.col("row").min())
    return counted.sort("amount", "found", descending=[True, False])


def _likely_numbers(groups: pl.DataFrame, exact: Flags, opened: Flags, codes: Coding) -> pl.DataFrame:
    """Each record with a row whose number it most likely has, none where it is shown."""
    cells = groups.with_columns(value=pl.Series(codes.codes), exact=pl.Series(exact), open=pl.Series(opened))
    best = _amounts(cells.filter("exact")).group_by("class", maintain_order=True).first()
    found = cells.join(best.select("class", "found"), on="class", how="left", maintain_order="left")
    return found.with_columns(found=pl.when("open").then("found"))


def _likely_labels(groups: pl.DataFrame, opened: Table, name: str) -> pl.DataFrame:
    """Each record with a row whose category it most likely has; none where that is shown, or nobody's."""
    nodes = opened.nodes[name]
    is_exact = (nodes.sizes == 1) & (nodes.labels != WILDCARD).to_numpy()
    owners = np.repeat(np.arange(len(nodes.sizes)), nodes.sizes)
    members = pl.DataFrame({"label": owners, "value": nodes.members.astype(np.int64)})
    cells = groups.with_columns(label=pl.Series(nodes.codes(opened.frame[name]).astype(np.int64)))
    single = members.filter(pl.Series(is_exact[owners]))
    amounts = _amounts(cells.join(single, on="label"))
    several = members.filter(pl.Series(~is_exact[owners]))
    asked = cells.select("class", "label").unique().join(several, on="label")
    held = asked.join(amounts, on=["class", "value"]).sort("amount", "found", descending=[True, False])
    best = held.group_by("class", "label", maintain_order=True).first().select("class", "label", "found")
    return cells.join(best, on=["class", "label"], how="left", maintain_order="left")


def with_original_numbers(original: Table, released: Table, names: Iterable[str]) -> Table:
    """The release with each number or date as the one of the original's that lies within half of their unit.

    The unit is that of the last digit in which all of the original's are written: whole numbers, cents, days.
    """
    read = released
    for name in names:
        is_exact = not (original.is_generalised(name) or released.is_generalised(name))
        if is_exact and {each.schema[name].kind for each in (original, released)} <= _NUMBERS:
            read = _with_original_numbers(original, read, name)
    return read


def _with_original_numbers(original: Table, released: Table, name: str) -> Table:
    known, shown = numbers_of_both(original, released, name)
    is_date, dtypes = (
        original.schema[name].kind is Kind.DATE,
        [original.frame.schema[name], released.frame.schema[name]],
    )
    units = [microseconds(dtype) if is_date else 0.0 for dtype in dtypes]
    unit = units[0] if units[0] == units[1] else 1.0
    values, examples, reach = original.remember(name, ("reach", unit), lambda: _reach(known, unit))
    if not len(values) or np.isnan(shown).all():
        return released
    after, order = np.empty(len(shown), dtype=np.int64), np.argsort(shown)
    after[order] = np.searchsorted(values, shown[order])  # in their order they are found near each other
    below, above = np.maximum(after - 1, 0), np.minimum(after, len(values) - 1)
    places = np.where(np.abs(shown - values[below]) <= np.abs(values[above] - shown), below, above)
    apart = np.abs(shown - values[places])
    if not ((apart > 0) & (apart < reach)).any():
        return released
    series, cells = released.frame[name], original.frame[name].gather(pl.Series(examples[places]))
    is_meant = pl.Series(apart < reach)  # not where it is missing
    if cells.dtype != series.dtype and bool((is_meant | pl.Series(np.isnan(shown))).all()):
        series = pl.Series([None], dtype=cells.dtype).new_from_index(0, len(cells))
    return released.with_values(name, cells.cast(series.dtype).zip_with(is_meant, series))


def _reach(known: Floats, microseconds_each: float) -> tuple[Floats, Ints, float]:
    """The distinct values in their order, a record that has each, and how near to one another is that one."""
    there = np.flatnonzero(~np.isnan(known))
    values, first = np.unique(known[there], return_index=True)
    if not len(values):
        return values, first, 0.0
    if microseconds_each:
        unit = time_unit_of(values * microseconds_each) / microseconds_each
    else:
        decimals = decimals_of(values, fewest=-_MOST_ZEROS if len(values) >= _ROUND_VALUES else 0)
        unit = 0.0 if decimals is None else 10.0**-decimals
    exponent = int(np.frexp(np.abs(values).max())[1])  # so that no square overflows
    spread = float(np.ldexp(np.ldexp(known[there], -exponent).std(), exponent))
    return values, there[first], max(unit / 2, _NO_DIFFERENCE * spread)
