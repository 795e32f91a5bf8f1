"""Pieces: what exact and generalised values may stand for, as whole numbers that can be compared exactly.

The values a column can have are cut into pieces, numbered from 0, such that every released value stands for
whole pieces: an exact value for one, a range for a run of them, a set of values for several runs, and the
wildcard for all. A column is *crisp* if any two of its values stand for the same pieces or share none; then
equal values are all there is to look at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.data.classes.classes import column_codes
from sfumato.data.classes.packing import number
from sfumato.data.codings import codes_of_both
from sfumato.data.generalised.intervals import end_dtype, ends, exact_intervals, is_interval
from sfumato.data.generalised.nodes import WILDCARD, Nodes
from sfumato.data.schema import Column, Kind
from sfumato.data.table import Ints, Table
from sfumato.risk._coverage import MANY, runs_of_labels

Places = npt.NDArray[np.int32]

#: A missing value as a value of its own, or as one that may be any.
Holes = Literal["category", "any"]

#: Whole numbers are cut to this side of it, so that the next one is still a number.
_FAR = 2**62


@dataclass(frozen=True)
class Pieces:
    """One column: the runs of pieces that each record's value stands for."""

    lows: Ints  # [runs] the first and the last piece of a run
    highs: Ints
    starts: Ints  # [n] the first run of a record's value
    counts: Ints  # [n] how many runs it has
    crisp: bool


@dataclass(frozen=True)
class Boxes:
    """Records as boxes of pieces: box ``i`` is of record ``records[i]`` (of the rows asked for)."""

    lows: Places  # [boxes, columns] the first column numbers the combinations of all crisp columns
    highs: Places
    records: Ints


def boxes_of(
    table: Table, names: tuple[str, ...], rows: Ints, *, original: Table, holes: Holes
) -> Boxes | None:
    """Make boxes of the records ``rows``; what values there can be is learnt from the original, too.

    None where sets of values that are no ranges make the records fall apart into too many.
    """
    groups, records = np.zeros(len(rows), dtype=np.int64), np.arange(len(rows), dtype=np.int64)
    lows: list[Places] = []
    highs: list[Places] = []
    for name in names:
        column = pieces_of(table, name, rows, original=original, holes=holes)
        if column.crisp:
            codes = column.lows[column.starts]
            groups = _numbered(groups * (int(codes.max(initial=0)) + 1) + codes)
            continue
        repeats = column.counts[records]
        if repeats.sum() > MANY * max(len(rows), 1):
            return None
        chosen = np.repeat(np.arange(len(records)), repeats)
        runs = np.repeat(column.starts[records] - np.cumsum(repeats) + repeats, repeats)
        runs += np.arange(len(chosen))
        lows = [*(side[chosen] for side in lows), column.lows[runs].astype(np.int32)]
        highs = [*(side[chosen] for side in highs), column.highs[runs].astype(np.int32)]
        records = records[chosen]
    first = groups[records].astype(np.int32)
    return Boxes(np.column_stack([first, *lows]), np.column_stack([first, *highs]), records)


def _numbered(keys: Ints) -> Ints:
    """Number the keys from 0, so that they stay small."""
    places = pl.Series(keys).rank("dense").to_numpy()
    return places.astype(np.int64) - 1


def pieces_of(table: Table, name: str, rows: Ints, *, original: Table, holes: Holes) -> Pieces:
    """Cut one column into pieces."""
    series, column = table.frame[name], table.schema[name]
    missing = table.missing(name)
    apart = holes == "category" and (
        bool(missing.any()) or (name in original.schema and bool(original.missing(name).any()))
    )
    series = pl.select(pl.when(pl.Series(~missing)).then(series)).to_series()  # codes for missing are missing
    if name in table.nodes:
        return _of_nodes(series.gather(rows), table.nodes[name], apart=apart, holes=holes)
    measured = column.kind in {Kind.CONTINUOUS, Kind.DATE} and end_dtype(series.dtype) is not None
    if measured and holes == "any" and missing.any():
        series = exact_intervals(series)
    if is_interval(series.dtype):
        domain = _domain(series, column, original, name)
        return _of_intervals(series.gather(rows), domain, whole=column.integer, apart=apart, holes=holes)
    if holes == "category":
        codes, _ = number(column_codes(table, name, apart=True))
        return _single(codes[rows], codes[rows])
    others, codes = codes_of_both(original, table, name)
    gone, last = codes[rows] < 0, max(int(others.max(initial=0)), int(codes.max(initial=0)))
    return _single(np.where(gone, 0, codes[rows]), np.where(gone, last, codes[rows]))


def _single(lows: Ints, highs: Ints) -> Pieces:
    """One run for each record; ranges that share nothing can be told by their first piece."""
    ranges = pl.DataFrame({"low": lows, "high": highs}).unique().sort("low", "high")
    low, high = ranges["low"].to_numpy(), ranges["high"].to_numpy()
    crisp = bool((high[:-1] < low[1:]).all())
    one = np.ones(len(lows), dtype=np.int64)
    return Pieces(lows, highs, np.arange(len(lows), dtype=np.int64), one, crisp)


def _domain(series: pl.Series, column: Column, original: Table, name: str) -> tuple[float, float]:
    """From the least to the greatest value the column can have: declared, or else seen anywhere."""
    lo, hi = ends(series)
    seen = [lo, hi]
    if name in original.schema:
        source = original.frame[name]
        if end_dtype(source.dtype) is not None and source.dtype.is_numeric() == lo.dtype.is_numeric():
            there = source.filter(pl.Series(~original.missing(name)))
            seen.append(there if lo.dtype.is_numeric() else there.cast(lo.dtype))
    values = np.concatenate([each.to_physical().cast(pl.Float64).drop_nulls().to_numpy() for each in seen])
    values = values[np.isfinite(values)]
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)
    return (
        low if column.lower is None or np.isinf(column.lower) else min(low, column.lower),
        high if column.upper is None or np.isinf(column.upper) else max(high, column.upper),
    )


def _of_intervals(
    series: pl.Series, domain: tuple[float, float], *, whole: bool, apart: bool, holes: Holes
) -> Pieces:
    """Ranges of whole numbers, days or ticks: pieces between the cuts; of others: the cuts, and between."""
    lo, hi = ends(series)
    gone = series.is_null().to_numpy()
    wild = (lo.is_null() & hi.is_null()).to_numpy() & ~gone
    if lo.dtype != pl.Float64:
        whole = True
        lows, highs = (
            np.clip(end.to_physical().cast(pl.Int64).fill_null(int(beyond)).to_numpy(), -_FAR, _FAR)
            for end, beyond in zip((lo, hi), domain, strict=True)
        )
    else:
        lows, highs = (
            np.clip(end.fill_null(beyond).to_numpy(), -_FAR, _FAR)
            for end, beyond in zip((lo, hi), domain, strict=True)
        )
        if whole := whole and bool((np.ceil(lows) <= np.floor(highs)).all()):
            lows, highs = np.ceil(lows).astype(np.int64), np.floor(highs).astype(np.int64)
    # An open end reaches at least as far as the other, whatever rounding does to the domain.
    lows = np.where(lo.is_null().to_numpy(), np.minimum(lows, highs), lows)
    highs = np.where(hi.is_null().to_numpy(), np.maximum(lows, highs), highs)
    beyond_end = 1 if whole else 0
    cuts = np.unique(np.concatenate((lows, highs + beyond_end)))
    first, last = np.searchsorted(cuts, lows), np.searchsorted(cuts, highs + beyond_end)
    first, last = (first, last - 1) if whole else (2 * first, 2 * last)
    # Missing values as a category have the piece behind the last, for which the wildcard stands, too.
    hole = len(cuts) - 1 if whole else 2 * len(cuts) - 1
    alone = gone & (holes == "category")
    return _single(np.where(alone, hole, first), np.where(alone | (wild & apart), hole, last))


def _of_nodes(series: pl.Series, nodes: Nodes, *, apart: bool, holes: Holes) -> Pieces:
    """Sets of values: the leaves are the pieces, in an order in which sets are ranges as far as can be."""
    codes = nodes.codes(series).astype(np.int64)
    used = np.unique(codes[codes >= 0])
    groups = runs_of_labels(nodes, used)
    hole = len(nodes.leaves)
    # Behind the runs of the labels: the whole column, and the piece of missing values.
    lows = np.append(groups.runs[0], [0, hole])
    highs = np.append(groups.runs[1], [hole if apart else max(hole - 1, 0), hole])
    wild = np.append((nodes.labels == WILDCARD).to_numpy(), [holes == "any"])[codes]  # the last: missing
    starts = np.append(groups.starts, len(lows) - 1)[codes]
    counts = np.append(groups.counts, 1)[codes]
    starts, counts = np.where(wild, len(lows) - 2, starts), np.where(wild, 1, counts)
    kept = np.zeros(len(nodes.labels), dtype=np.bool_)
    kept[used] = True
    members = nodes.members[np.repeat(kept, nodes.sizes)]
    disjoint = len(np.unique(members)) == len(members)
    return Pieces(lows, highs, starts, counts, crisp=disjoint and not wild.any())
