"""Pieces: what exact and generalised values may stand for, as whole numbers that can be compared exactly.

The values a column can have are cut into pieces, numbered from 0, such that every released value stands for
whole pieces: an exact value for one, a range for a run of them, a set of values for several runs, and the
wildcard for all. A column is *crisp* if any two of its values stand for the same pieces or share none; then
equal values are all there is to look at.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import polars as pl

from sfumato.data.classes.classes import column_codes
from sfumato.data.classes.packing import number
from sfumato.data.codings import codes_of_both
from sfumato.data.generalised.cover import Cover, covers_of, extent
from sfumato.data.generalised.intervals import end_dtype, is_interval, value_dtype
from sfumato.data.generalised.label_sets import Runs
from sfumato.data.schema import Kind
from sfumato.data.table import Table
from sfumato.kernels.arrays import Codes, Ints, count_distinct
from sfumato.risk._coverage import MAX_BOXES_PER_RECORD

#: A missing value as a value of its own, or as one that may be any.
Holes = Literal["category", "any"]


@dataclass(frozen=True)
class Pieces:
    """One column: the runs of pieces that each record's value stands for."""

    runs: Runs
    disjoint: bool


@dataclass(frozen=True)
class RecordBoxes:
    """Records as boxes of pieces: box ``i`` is of record ``records[i]`` (of the rows asked for)."""

    lows: Codes  # [boxes, columns] the first column numbers the combinations of all crisp columns
    highs: Codes
    records: Ints


def boxes_of(
    table: Table, names: tuple[str, ...], rows: Ints, *, original: Table, holes: Holes
) -> RecordBoxes | None:
    """Make boxes of the records ``rows``; what values there can be is learnt from the original, too.

    None where sets of values that are no ranges make the records fall apart into too many.
    """
    groups, records = np.zeros(len(rows), dtype=np.int64), np.arange(len(rows), dtype=np.int64)
    lows: list[Codes] = []
    highs: list[Codes] = []
    for name in names:
        column = pieces_of(table, name, rows, original=original, holes=holes)
        if column.disjoint:
            codes = column.runs.ends[0, column.runs.starts].astype(np.int64)
            groups = _compact_numbers(groups * (int(codes.max(initial=0)) + 1) + codes)
            continue
        if column.runs.counts[records].sum() > MAX_BOXES_PER_RECORD * max(len(rows), 1):
            return None
        chosen, runs = column.runs.laid_out(records)
        low, high = column.runs.ends[:, runs].astype(np.int32)
        lows, highs = [*(side[chosen] for side in lows), low], [*(side[chosen] for side in highs), high]
        records = records[chosen]
    first = groups[records].astype(np.int32)
    return RecordBoxes(np.column_stack([first, *lows]), np.column_stack([first, *highs]), records)


def _compact_numbers(keys: Ints) -> Ints:
    """Number the keys from 0, so that they stay small."""
    places = pl.Series(keys).rank("dense").to_numpy()
    return places.astype(np.int64) - 1


def pieces_of(table: Table, name: str, rows: Ints, *, original: Table, holes: Holes) -> Pieces:
    """Cut one column into pieces."""
    column, dtype, missing = table.schema[name], table.frame.schema[name], table.missing(name)
    has_holes = missing.any() or (name in original.schema and original.missing(name).any())
    apart = holes == "category" and bool(has_holes)
    if name in table.nodes:
        return _of_labels(Cover.of(table, name).take(rows), apart=apart, holes=holes)
    measured = column.kind in {Kind.CONTINUOUS, Kind.DATE} and end_dtype(dtype) is not None
    if is_interval(dtype) or (measured and holes == "any" and missing.any()):
        cover = _ranges(table, name, original).take(rows)
        whole = cover.step > 0 or column.integer or value_dtype(dtype).is_temporal()  # ticks are counted, too
        return _of_ranges(cover, whole=whole, apart=apart, holes=holes)
    if holes == "category":
        codes, _ = number(column_codes(table, name, apart=True))
        return _single(codes[rows], codes[rows])
    others, codes = codes_of_both(original, table, name)
    seen = max(int(others.max(initial=0)), int(codes.max(initial=0)))
    gone, last = codes[rows] < 0, max(seen, len(column.order) - 1)
    return _single(np.where(gone, 0, codes[rows]), np.where(gone, last, codes[rows]))


def _single(lows: Ints, highs: Ints) -> Pieces:
    """One run for each record; ranges that share nothing can be told by their first piece."""
    ranges = pl.DataFrame({"low": lows, "high": highs}).unique().sort("low", "high")
    low, high = ranges["low"].to_numpy(), ranges["high"].to_numpy()
    one = np.ones(len(lows), dtype=np.int64)
    runs = Runs(np.vstack((lows, highs)), np.arange(len(lows), dtype=np.int64), one)
    return Pieces(runs, disjoint=bool((high[:-1] < low[1:]).all()))


def _ranges(table: Table, name: str, original: Table) -> Cover:
    """Read a column of ranges; its values lie in the declared range, or else between those seen anywhere."""
    source = table
    if name in original.schema:
        given, shown = (value_dtype(each.frame.schema[name]) for each in (original, table))
        if end_dtype(given) is not None and given.is_numeric() == shown.is_numeric():
            source = original
    seen, cover = covers_of(source, table, name)
    domain = extent(seen.lows, seen.highs, cover.lows, cover.highs, column=table.schema[name])
    return replace(cover, domain=domain)


def _of_ranges(cover: Cover, *, whole: bool, apart: bool, holes: Holes) -> Pieces:
    """Ranges of whole numbers, days or ticks: pieces between the cuts; of others: the cuts, and between."""
    gone, wild, closed = cover.missing, cover.wildcards, cover.close_ends()
    lows, highs = (
        np.where(gone, end, side) / (cover.step or 1.0)
        for end, side in zip(cover.domain, (closed.lows, closed.highs), strict=True)
    )
    first, last = np.ceil(lows), np.floor(highs)
    # Numbers so large that the next one is the same are not counted one by one.
    if whole := whole and bool(((first <= last) & (last < last + 1)).all()):
        lows, highs = first, last + 1
    cuts = np.unique(np.concatenate((lows, highs)))
    first, last = np.searchsorted(cuts, lows), np.searchsorted(cuts, highs)
    first, last = (first, last - 1) if whole else (2 * first, 2 * last)
    # Missing values as a category have the piece behind the last, for which the wildcard stands, too.
    hole = len(cuts) - 1 if whole else 2 * len(cuts) - 1
    alone = gone & (holes == "category")
    return _single(np.where(alone, hole, first), np.where(alone | (wild & apart), hole, last))


def _of_labels(cover: Cover, *, apart: bool, holes: Holes) -> Pieces:
    """Sets of values: the leaves are the pieces, in an order in which sets are ranges as far as can be."""
    assert cover.sets is not None  # it has labels
    assert cover.codes is not None
    runs, hole = cover.boxes(), len(cover.sets.places)
    # The last run is the whole column; behind it, the piece of missing values.
    whole = [[0, hole], [hole if apart else max(hole - 1, 0), hole]]
    alone = cover.missing & (holes == "category")
    starts = np.where(alone, runs.ends.shape[1], runs.starts)
    used = np.zeros(len(cover.sets.sizes), dtype=np.bool_)
    used[cover.codes[cover.codes >= 0]] = True
    members = cover.sets.leaves[used[cover.sets.owners]]
    disjoint = count_distinct(members) == len(members)
    return Pieces(
        Runs(np.hstack((runs.ends[:, :-1], whole)), starts, runs.counts),
        disjoint=disjoint and not (cover.uninformative & ~alone).any(),
    )
