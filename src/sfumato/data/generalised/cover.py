"""What the cells of a column stand for, exact or generalised, on one line of numbers.

Every reader of generalised values asks here. Continuous values and dates are the numbers themselves, ordinal
ones their position, nominal ones a code; beside intervals, categories that are numbers are those numbers.
An interval then runs from a low to a high number, a label is a set of the numbers of its leaves, the wildcard
is open at both ends, and what is missing is NaN. Readers differ in what they make of that, and say so: open
ends may be closed (`Cover.closed`), the domain may be declared or seen (`extent`), a missing cell may be any
value or one of its own (`Cover.missing`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import polars as pl

from sfumato.data.classes.packing import distinct_of
from sfumato.data.codings import codes_of_both, microseconds
from sfumato.data.generalised.intervals import ends, is_interval, value_dtype
from sfumato.data.generalised.label_sets import LabelSets, Runs
from sfumato.data.generalised.nodes import WILDCARD, DType, Nodes, match_leaves, parse_exact
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import TEXTUAL, Table
from sfumato.errors import DataError
from sfumato.kernels.arrays import Flags, Floats, Ints

CATEGORIES = frozenset({Kind.NOMINAL, Kind.ORDINAL})

#: Labels whose leaves are told apart at a time: with the number of a leaf they fit into one of 64 bits.
_BITS = 32


@dataclass(frozen=True, eq=False)
class Cover:
    """What each cell of a column may stand for: the numbers from ``lows`` to ``highs``.

    A side without an end is infinite, a wildcard on both; both are NaN where the value is missing. With a
    ``step`` only its multiples lie between. Where there are ``sets``, only the values of the label ``codes``.
    """

    lows: Floats  # [cells]
    highs: Floats  # the same array where all values are exact
    domain: tuple[float, float]  # from the least to the greatest value there can be
    step: float = 0.0
    sets: LabelSets | None = None
    codes: Ints | None = None  # [cells] the labels of the sets; −1: missing

    @classmethod
    def of(cls, table: Table, name: str) -> Cover:
        """Read a column by itself, as numbers; leaves stand in an order in which labels are ranges if any."""
        if name in table.nodes:
            return _of_labels(_nested_sets(table, name), table, name, step=1.0)
        lows, highs, dtype = _numbers(table, name)
        return cls(lows, highs, extent(lows, highs), float(_is_whole(dtype)))

    @property
    def exact(self) -> bool:
        """Whether no cell stands for several values."""
        return self.highs is self.lows

    @property
    def missing(self) -> Flags:
        """Which cells have no value."""
        return np.isnan(self.lows)

    @property
    def wildcards(self) -> Flags:
        """Which cells may be any value, or none."""
        return np.isneginf(self.lows) & np.isposinf(self.highs)

    @property
    def uninformative(self) -> Flags:
        """Which cells say nothing: missing, suppressed, or a wildcard."""
        return self.missing if self.exact else self.missing | self.wildcards

    @property
    def middles(self) -> Floats:
        """The middle of each cell that has two ends, NaN where it says nothing."""
        with np.errstate(invalid="ignore"):  # of a wildcard
            if self.exact:
                return self.lows
            # Half of the smallest number is 0, which lies outside.
            return np.clip(self.lows / 2 + self.highs / 2, self.lows, self.highs)

    @property
    def means(self) -> Floats:
        """The mean of the values of each cell, each alike; of a range that is its middle."""
        if self.sets is None or self.codes is None:
            return self.middles
        return np.where(self.missing, np.nan, np.append(self.sets.means, np.nan)[self.codes])

    def take(self, rows: Ints | slice) -> Cover:
        """Keep these cells; −1 is one of which nothing is said."""
        if isinstance(rows, slice):
            return self
        lows = np.append(self.lows, np.nan)[rows]
        highs = lows if self.exact else np.append(self.highs, np.nan)[rows]
        codes = None if self.codes is None else np.append(self.codes, -1)[rows]
        return replace(self, lows=lows, highs=highs, codes=codes)

    def map_values(self, place: Callable[[Floats], Floats]) -> Cover:
        """The same cells on another line, on which order is kept; what is open stays so."""
        lows = place(self.lows)
        sets = None if self.sets is None else replace(self.sets, places=place(self.sets.places))
        low, high = place(np.array(self.domain))
        highs = lows if self.exact else place(self.highs)
        return replace(self, lows=lows, highs=highs, domain=(float(low), float(high)), step=0.0, sets=sets)

    def close_ends(self, *, wildcards: Literal["whole", "silent"] = "whole") -> Cover:
        """End open sides where the domain does, and at least at the other end.

        Wildcards become the whole domain, or say as little as what is missing.
        """
        if self.exact:
            return self
        low, high = self.domain
        lows = np.where(np.isneginf(self.lows), np.minimum(low, self.highs), self.lows)
        highs = np.where(np.isposinf(self.highs), np.maximum(high, self.lows), self.highs)
        if wildcards == "silent":
            lows[self.wildcards], highs[self.wildcards] = np.nan, np.nan
        return replace(self, lows=lows, highs=highs)

    def holds(self, numbers: Floats) -> Flags:
        """Whether each cell may stand for the number beside it; a missing one (NaN) is held by wildcards."""
        if self.sets is None or self.codes is None:
            return ((self.lows <= numbers) & (numbers <= self.highs)) | self.wildcards
        found = self.wildcards
        there = ~found & ~np.isnan(self.lows) & ~np.isnan(numbers)
        found[there] = self.sets.hold(self.codes[there], numbers[there])
        return found

    def share_of_domain(self) -> Floats:
        """The share of the domain that each cell spans, in [0, 1]; NaN where it is missing.

        A range spans (hi − lo) / (max − min) after it is cut to the domain, a label (members − 1) /
        (leaves − 1). An exact value spans 0 and the wildcard 1.
        """
        if self.exact:
            return np.where(self.missing, np.nan, 0.0)
        if self.sets is not None and self.codes is not None:
            of_label = np.clip((self.sets.sizes - 1) / max(len(self.sets.places) - 1, 1), 0.0, 1.0)
            shares = np.append(of_label, np.nan)[self.codes]
        else:
            low, high = self.domain
            # Halves throughout: the distance of two large ends would overflow.
            shares = np.clip(self.highs, low, high) / 2 - np.clip(self.lows, low, high) / 2
            shares = shares / ((high / 2 - low / 2) or 1.0)
        return np.where(self.missing, np.nan, np.where(self.wildcards, 1.0, shares))

    def boxes(self) -> Runs:
        """The runs of values of each cell; one that says nothing has one that is open, of labels the last."""
        if self.sets is None or self.codes is None:
            silent = self.missing
            sides = np.where(silent, -np.inf, self.lows), np.where(silent, np.inf, self.highs)
            return Runs(np.vstack(sides), np.arange(len(silent)), np.ones(len(silent), dtype=np.int64))
        owners, values, silent = self.sets.owners, self.sets.values, self.uninformative
        opens = np.ones(len(values), dtype=np.bool_)
        opens[1:] = (owners[1:] != owners[:-1]) | (values[1:] != values[:-1] + 1)
        firsts = np.flatnonzero(opens)
        lasts = np.append(firsts[1:], len(values)) - 1 if len(firsts) else firsts
        counts = np.bincount(owners[firsts], minlength=len(self.sets.sizes))
        starts = np.append(np.cumsum(counts) - counts, 0)[self.codes]
        return Runs(
            np.hstack((np.vstack((values[firsts], values[lasts])), [[-np.inf], [np.inf]])),
            np.where(silent, len(firsts), starts),
            np.where(silent, 1, np.append(counts, 1)[self.codes]),
        )


# A column of two tables on one line --------------------------------------------------------------------


def cover_of(known: Table, released: Table, name: str, *, nested: bool = False) -> tuple[Floats, Cover]:
    """The exact values of one table (NaN: missing), and what the cells of another stand for on their line.

    If ``nested``, leaves stand in an order in which labels are ranges as far as can be, whatever their
    values; a value that is no leaf is then NaN, too.
    """
    known = replace(known, nodes={}) if name in known.nodes else known
    if is_interval(known.frame.schema[name]):
        raise DataError(f"column `{name}` holds intervals, and this step needs exact values")
    if nested and name in released.nodes:
        cover = Cover.of(released, name)
        assert cover.sets is not None  # it has labels
        found = match_leaves(known.frame[name], released.nodes[name].leaves)
        found = np.where(known.missing(name), -1, np.maximum(found, -1))
        return np.append(cover.sets.places, np.nan)[found], cover
    known_cover, released_cover = covers_of(known, released, name)
    return known_cover.lows, released_cover


def covers_of(first: Table, second: Table, name: str) -> tuple[Cover, Cover]:
    """Read a column of two tables on one line, whose domain is what the first one states."""
    tables, kind = (first, second), first.schema[name].kind
    ranged = any(is_interval(table.frame.schema[name]) for table in tables)
    values = [
        _of_leaves(table, first, name, ranged=ranged) if name in table.nodes else table for table in tables
    ]
    if kind in CATEGORIES and not ranged:
        codes = codes_of_both(values[0], values[1], name)
        numbers = [np.where(each < 0, np.nan, each.astype(np.float64)) for each in codes]
        read = [(each, each, 1.0) for each in numbers]
    else:
        read = _on_one_scale([_numbers(table, name) for table in values], kind)
    domain = extent(*read[0][:2])
    one, other = (
        _of_labels(_label_sets(table, name, lows), table, name, step=step, domain=domain)
        if name in table.nodes
        else Cover(lows, highs, domain, step)
        for table, (lows, highs, step) in zip(tables, read, strict=True)
    )
    return one, other


def reads_as_numbers(table: Table, name: str, kind: Kind) -> bool:
    """Whether what a column holds are numbers, or dates where the ``kind`` asks for them."""
    dtype = table.frame.schema[name]
    if is_interval(dtype):
        return value_dtype(dtype).is_numeric() is (kind is not Kind.DATE)
    if name in table.nodes:
        leaves = _parse_leaves(table.nodes[name].leaves, pl.Date() if kind is Kind.DATE else pl.Float64())
        return not (leaves.has_nulls() or (leaves.dtype.is_float() and leaves.is_infinite().any()))
    return dtype.is_numeric() if kind is Kind.ORDINAL else table.schema[name].kind is kind


def wildcards(table: Table, name: str) -> Flags:
    """Which cells of a column may be any value."""
    if name in table.nodes:
        column = table.frame[name]
        if isinstance(column.dtype, pl.Enum):  # one label is looked for, not one of each record
            place = column.dtype.categories.index_of(WILDCARD)
            column, wanted = column.to_physical(), -1 if place is None else place
            return (column.cast(pl.Int64) == wanted).fill_null(value=False).to_numpy()
        return (column.cast(pl.String) == WILDCARD).fill_null(value=False).to_numpy()
    return (
        Cover.of(table, name).wildcards
        if table.is_generalised(name)
        else np.zeros(len(table), dtype=np.bool_)
    )


def uninformative_records(table: Table, names: Iterable[str]) -> Flags:
    """Which records say nothing in any of these columns: all is missing or a wildcard."""
    silent = np.ones(len(table), dtype=np.bool_)
    for name in names:
        silent &= table.missing(name) | wildcards(table, name)
    return silent


def suppressed_records(
    table: Table, names: Iterable[str], original: Table | None, rows: Ints | None
) -> Flags:
    """Which records were made to say nothing in all of these columns.

    Who said nothing in the original was not suppressed; where records do not map (``rows``), only a wildcard
    tells that a value was there.
    """
    names = tuple(names)
    silent = uninformative_records(table, names)
    if original is not None and rows is not None:
        silent &= ~np.append(uninformative_records(original, names), False)[rows]
    else:
        silent &= np.any([wildcards(table, name) for name in names], axis=0)
    return silent


def extent(*numbers: Floats, column: Column | None = None) -> tuple[float, float]:
    """From the least to the greatest of some numbers, and of the range that is declared for a column."""
    limits = () if column is None else (column.lower, column.upper)
    found = [float(end) for end in limits if end is not None and np.isfinite(end)]
    for each in numbers:
        there = each[np.isfinite(each)]
        if len(there):
            found += [float(there.min()), float(there.max())]
    return (min(found), max(found)) if found else (0.0, 0.0)


# Exact values, ends and leaves as numbers --------------------------------------------------------------


def _numbers(table: Table, name: str) -> tuple[Floats, Floats, pl.DataType]:
    """The ends of what each cell stands for, and the type they are counted in."""
    series, kind = table.frame[name], table.schema[name].kind
    if is_interval(series.dtype):
        lo, hi = ends(series)
        gone = series.is_null().to_numpy()
        lows, highs = (
            np.where(gone, np.nan, _floats(end.to_physical(), beyond))
            for end, beyond in ((lo, -np.inf), (hi, np.inf))
        )
        return lows, highs, lo.dtype
    if kind not in CATEGORIES:
        numbers = table.numbers(name)
    elif series.dtype.is_numeric():  # intervals are of values, not of positions
        written = series.cast(pl.Float64).fill_null(np.nan).to_numpy()
        numbers = np.where(table.missing(name), np.nan, written)
    else:
        raise DataError(
            f"column `{name}` must hold numbers to lie in ranges, got: {series.dtype.base_type()}"
        )
    return numbers, numbers, series.dtype


def _floats(end: pl.Series, beyond: float) -> Floats:
    """An end as numbers in double precision; numpy converts what is large into a file."""
    if end.null_count():
        end = end.cast(pl.Float64).fill_null(beyond)
    return end.to_numpy().astype(np.float64, copy=False)


def _is_whole(dtype: DType) -> bool:
    return dtype.is_integer() or dtype == pl.Date  # of instants there are as many as of numbers


def _on_one_scale(
    read: list[tuple[Floats, Floats, pl.DataType]], kind: Kind
) -> list[tuple[Floats, Floats, float]]:
    """Count dates of different types in microseconds; and say how far neighbours are apart."""
    units = [microseconds(dtype) if kind is Kind.DATE else 1.0 for _, _, dtype in read]
    units = [1.0] * len(units) if len(set(units)) == 1 else units
    scaled = []
    for (lows, highs, dtype), unit in zip(read, units, strict=True):
        low = lows if unit == 1 else lows * unit
        scaled.append((low, low if highs is lows else highs * unit, unit * _is_whole(dtype)))
    return scaled


def _parse_leaves(leaves: pl.Series, dtype: DType) -> pl.Series:
    texts = leaves.cast(pl.String).str.strip_chars() if dtype.is_float() or dtype == pl.Date else leaves
    values = parse_exact(texts, dtype)
    return parse_exact(texts, pl.Date) if isinstance(dtype, pl.Datetime) and values.has_nulls() else values


def _of_leaves(table: Table, like: Table, name: str, *, ranged: bool) -> Table:
    """The table of a column's leaves as values of the column of another table."""
    column, dtype = like.schema[name], value_dtype(like.frame.schema[name])
    if column.kind is Kind.DATE:
        dtype = dtype if dtype.is_temporal() else pl.Date()
    elif column.kind is Kind.CONTINUOUS or ranged:
        dtype = pl.Float64()
    elif column.kind is Kind.NOMINAL or dtype in TEXTUAL:
        dtype = pl.String()
    leaves = _parse_leaves(table.nodes[name].leaves, dtype)
    if unread := leaves.null_count():
        raise DataError(f"the leaves of `{name}` must be values of its kind, got: {unread} that are not")
    return Table(pl.DataFrame({name: leaves}), Schema((column,)))


# Labels ------------------------------------------------------------------------------------------------


def _label_codes(table: Table, name: str) -> Ints:
    """The label of each cell, −1 where it is missing or a code for that."""
    present = pl.Series(~table.missing(name))
    labels = pl.select(pl.when(present).then(table.frame[name])).to_series().alias(name)
    return table.nodes[name].codes(labels).astype(np.int64)


def _label_sets(table: Table, name: str, places: Floats) -> LabelSets:
    """The values of the labels of a column, where its leaves stand at these places; sorted once for all."""
    what = "label sets", hashlib.blake2b(places.tobytes(), digest_size=16).digest()
    return table.remember(name, what, lambda: LabelSets.of(table.nodes[name], places))


def _nested_sets(table: Table, name: str) -> LabelSets:
    """The same, leaves in an order in which the labels that occur are ranges if any."""

    def make() -> LabelSets:
        nodes, codes = table.nodes[name], _label_codes(table, name)
        return LabelSets.of(
            nodes, _leaf_positions(nodes, distinct_of(codes[codes >= 0], len(nodes.labels))[0])
        )

    return table.remember(name, "nested label sets", make)


def _of_labels(
    sets: LabelSets, table: Table, name: str, *, step: float, domain: tuple[float, float] | None = None
) -> Cover:
    codes, wild = _label_codes(table, name), (table.nodes[name].labels == WILDCARD).to_numpy()
    # Code −1, missing, is the last.
    lows = np.append(np.where(wild, -np.inf, sets.lows), np.nan)[codes]
    highs = np.append(np.where(wild, np.inf, sets.highs), np.nan)[codes]
    return Cover(lows, highs, domain or extent(sets.places), step, sets, codes)


def _leaf_positions(nodes: Nodes, used: Ints) -> Floats:
    """Where each leaf stands if leaves are sorted by the labels they are in, large ones first."""
    wide = used[nodes.sizes[used] > 1]
    firsts, lasts = (nodes.members[end] for end in (nodes.starts[wide], nodes.starts[wide + 1] - 1))
    if (lasts - firsts + 1 == nodes.sizes[wide]).all():  # they are ranges already, such as those of codes
        return np.arange(len(nodes.leaves), dtype=np.float64)
    used = used[np.argsort(nodes.sizes[used], kind="stable")]
    alone = nodes.members[nodes.starts[used[nodes.sizes[used] == 1]]][::-1]
    order = np.concatenate((alone, np.arange(len(nodes.leaves))))
    order = order[np.sort(np.unique(order, return_index=True)[1])]
    # From the largest labels to the smallest, some at a time: the leaves of each go before others that no
    # larger one tells apart, until all are told apart.
    wide, blocks = used[nodes.sizes[used] > 1][::-1], np.zeros(len(order), dtype=np.int64)
    for start in range(0, len(wide), _BITS):
        labels = wide[start : start + _BITS]
        outside = np.full(len(order), 2**_BITS - 1)
        sizes = nodes.sizes[labels]
        within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        members = nodes.members[np.repeat(nodes.starts[labels], sizes) + within]
        np.subtract.at(outside, members, np.repeat(2 ** (_BITS - 1 - np.arange(len(labels))), sizes))
        found, blocks = np.unique(blocks * 2**_BITS + outside, return_inverse=True)
        if len(found) == len(order):
            break
    places = np.empty(len(order))
    places[order[np.argsort(blocks[order], kind="stable")]] = np.arange(len(order))
    return places
