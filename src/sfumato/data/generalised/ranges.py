"""Ranges: records in groups, and what the values of a group span, shown instead of what each record has.

Numbers and dates span an interval that is widened to round ends (`sfumato.data.generalised.round_ends`),
ordered categories all between the lowest and the highest, other categories the set of those that occur, and
categories with a hierarchy climb to their lowest common label, or, where it is asked for, span a set where no
label below the root is common.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from sfumato.data.classes.packing import distinct_of
from sfumato.data.column_store import gather, join_pieces, store_column
from sfumato.data.generalised.intervals import end_dtype, ends, intervals, is_interval
from sfumato.data.generalised.nodes import MISSING, WILDCARD, DType, Nodes, canonical_text, match_leaves
from sfumato.data.generalised.round_ends import Cuts, round_outwards
from sfumato.data.generalised.text_forms import set_texts
from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.data.schema import Column, Kind
from sfumato.data.table import Table
from sfumato.kernels.arrays import Flags, Ints, Values, distinct_numbers

#: Whole numbers that 64 bits with a sign may not hold.
_WIDE_TYPES = (pl.UInt64, pl.Int128)

#: Sets whose labels are written at a time: it takes ten times their texts to join them.
_SETS_AT_ONCE = 2**14


@dataclass(frozen=True, eq=False)
class RecordGroups:
    """Records in groups: ``order`` has those of a group side by side, and ``starts`` where each begins."""

    order: Ints  # [records]
    starts: Ints  # [groups + 1] no group is empty
    cuts: Mapping[str, Cuts] = field(default_factory=dict)  # by column, where the groups were cut apart

    @classmethod
    def of(cls, numbers: Ints) -> RecordGroups:
        """Make groups of records with equal numbers, in the order of the numbers."""
        order = np.argsort(numbers, kind="stable")
        in_order = numbers[order]
        opens = np.ones(len(numbers), dtype=np.bool_)
        np.not_equal(in_order[1:], in_order[:-1], out=opens[1:])
        return cls(order, np.append(np.flatnonzero(opens), len(numbers)))

    def __len__(self) -> int:
        return len(self.starts) - 1

    @cached_property
    def sizes(self) -> Ints:
        """The number of records of each group."""
        return np.diff(self.starts)

    @cached_property
    def of_record(self) -> Ints:
        """The group of each record."""
        numbers = np.empty(len(self.order), dtype=np.int64)
        numbers[self.order] = np.repeat(np.arange(len(self)), self.sizes)
        return numbers

    def lowest(self, values: Values, known: Flags) -> Values:
        """The lowest of the known values of each group; the highest there can be where none is known."""
        return self._extreme(values, known, _limits(values)[1], np.minimum)

    def highest(self, values: Values, known: Flags) -> Values:
        """The highest of the known values of each group; the lowest there can be where none is known."""
        return self._extreme(values, known, _limits(values)[0], np.maximum)

    def _extreme(self, values: Values, known: Flags, otherwise: Any, pick: np.ufunc) -> Values:
        shown = values if known.all() else np.where(known, values, otherwise)
        found: Values = pick.reduceat(shown[self.order], self.starts[:-1])
        return found

    def totals(self, flags: Flags) -> Ints:
        """The number of records of each group that are flagged."""
        if not flags.any():
            return np.zeros(len(self), dtype=np.int64)
        counts: Ints = np.add.reduceat(flags[self.order], self.starts[:-1], dtype=np.int64)
        return counts


def _limits(values: Values) -> tuple[Any, Any]:
    facts: Any = np.finfo(values.dtype) if values.dtype.kind == "f" else np.iinfo(values.dtype)
    return values.dtype.type(facts.min), values.dtype.type(facts.max)


def with_ranges(
    table: Table,
    names: Iterable[str],
    groups: RecordGroups,
    *,
    hierarchies: Mapping[str, Hierarchy] | None = None,
    sets_above: Collection[str] = (),
    cover_missing: bool = False,
    exact_ends: bool = False,
) -> Table:
    """Show in some columns the range that the values of each record's group span, exact or ranges themselves.

    Where some of a group are missing and others are not, the whole group shows the wildcard, "any value, or
    none"; where all are missing they stay so, unless ``cover_missing`` covers these too. So records of a
    group are always alike. A hierarchy is climbed by categories, in columns ``sets_above`` not to its root:
    what has no other label in common is a set. Numbers and dates span intervals, which end at round numbers
    unless ``exact_ends`` asks for the values that are there.
    """
    if not len(table):
        return table
    columns, nodes = [], dict(table.nodes)
    for name in names:
        hierarchy = (hierarchies or {}).get(name)
        column, found = _ranges(
            table,
            name,
            groups,
            hierarchy,
            sets_above=name in sets_above,
            cover_missing=cover_missing,
            exact_ends=exact_ends,
        )
        columns.append(store_column(column).alias(name))  # before the next one takes as much memory
        if found is not None:
            nodes[name] = found
    return replace(table, frame=table.frame.with_columns(columns), nodes=nodes)


def _ranges(
    table: Table,
    name: str,
    groups: RecordGroups,
    hierarchy: Hierarchy | None,
    *,
    sets_above: bool,
    cover_missing: bool,
    exact_ends: bool,
) -> tuple[pl.Series, Nodes | None]:
    missing = table.missing(name)
    n_known = groups.sizes - groups.totals(missing)
    covered = (n_known < groups.sizes) & ((n_known > 0) | cover_missing)
    shown = (n_known > 0) & ~covered
    if is_interval(table.frame.schema[name]):
        return _joined_intervals(table.frame[name], groups, shown, covered), None
    numbers = None if hierarchy is not None and is_categorical(table, name) else numbers_and_type(table, name)
    if numbers is not None:
        limits = _ends(table.schema[name], numbers, ~missing, groups, exact=exact_ends)
        return _intervals(limits, numbers[1], groups, shown, covered), None
    if name in table.nodes:
        places, nodes = _joined_sets(table, name, groups, shown)
    elif hierarchy is not None:
        series = table.frame[name]
        present = series.zip_with(pl.Series(~missing), pl.Series([None], dtype=series.dtype))
        places, nodes = _common_labels(present, groups, shown, hierarchy, sets_above=sets_above)
    else:
        places, nodes = _sets(table, name, groups, shown)
    wildcard = nodes.labels.index_of(WILDCARD)
    assert wildcard is not None  # both have it
    codes = np.where(covered, wildcard, places).astype(np.uint32)[groups.of_record]
    column = gather(nodes.labels.cast(nodes.dtype), codes)
    gone = ~(shown | covered)
    if gone.any():
        column = column.zip_with(pl.Series(~gone[groups.of_record]), pl.Series([None], dtype=nodes.dtype))
    return column, nodes


def is_categorical(table: Table, name: str) -> bool:
    """Whether a column holds categories, which may have a hierarchy."""
    return table.schema[name].kind in {Kind.ORDINAL, Kind.NOMINAL}


def numbers_and_type(table: Table, name: str) -> tuple[Values, DType] | None:
    """A column that spans intervals as numbers, and the type of their ends; None for categories.

    Ordinal columns of numbers in their natural order are among them. What stands for a missing value means
    nothing.
    """
    column, series = table.schema[name], table.frame[name]
    dtype = series.dtype
    plain = column.kind is Kind.CONTINUOUS or (
        column.kind is Kind.ORDINAL and not column.order and dtype.is_numeric()
    )
    if plain and dtype.is_integer() and dtype not in _WIDE_TYPES:
        return series.cast(pl.Int64).fill_null(0).to_numpy(), pl.Int64
    if plain:
        source = table if column.kind is Kind.CONTINUOUS else _as_continuous(table, name)
        floats = np.nan_to_num(source.numbers(name), nan=0.0) + 0.0  # −0 is 0
        return (floats.astype(np.int64), pl.Int64) if dtype.is_integer() else (floats, pl.Float64)
    if column.kind is Kind.DATE and end_dtype(dtype) is not None:
        return series.to_physical().cast(pl.Int64).fill_null(0).to_numpy(), dtype
    if column.kind is Kind.DATE and not dtype.is_temporal():
        return np.nan_to_num(table.numbers(name), nan=0.0).astype(np.int64), pl.Date
    return None


def _as_continuous(table: Table, name: str) -> Table:
    only = table.select([name])
    column = table.schema[name]
    plain = type(column)(name, Kind.CONTINUOUS, missing=column.missing, missing_range=column.missing_range,
                         suppressed=column.suppressed)  # fmt: skip
    return only.with_values(name, table.frame[name], column=plain)


def _ends(
    column: Column, numbers: tuple[Values, DType], known: Flags, groups: RecordGroups, *, exact: bool
) -> tuple[Values, Values]:
    """The ends of what each group spans, moved outwards to round numbers but not beyond declared bounds."""
    values, dtype = numbers
    lows, highs = groups.lowest(values, known), groups.highest(values, known)
    if exact:
        return lows, highs
    spans = groups.totals(~known) < groups.sizes
    new_lows, new_highs = lows.copy(), highs.copy()
    cuts = groups.cuts.get(column.name)
    cuts = None if cuts is None else Cuts(cuts.below[spans], cuts.above[spans])
    new_lows[spans], new_highs[spans] = round_outwards(lows[spans], highs[spans], values[known], dtype, cuts)
    for bound, end, inwards in ((column.lower, new_lows, np.maximum), (column.upper, new_highs, np.minimum)):
        if bound is not None and abs(bound) < 2.0**62:
            inwards(end, end.dtype.type(bound), out=end)
    new_lows, new_highs = np.minimum(new_lows, lows), np.maximum(new_highs, highs)
    return new_lows, new_highs


def _intervals(
    ends: tuple[Values, Values], dtype: DType, groups: RecordGroups, shown: Flags, covered: Flags
) -> pl.Series:
    keep, nothing = pl.Series(shown), pl.Series([None], dtype=dtype)
    lows, highs = (pl.Series(np.where(shown, end, 0)).cast(dtype).zip_with(keep, nothing) for end in ends)
    return gather(intervals(lows, highs, missing=~(shown | covered)), groups.of_record)


def _joined_intervals(column: pl.Series, groups: RecordGroups, shown: Flags, covered: Flags) -> pl.Series:
    """The interval from the lowest to the highest end in each group, open where one of them is."""
    low, high = ends(column)
    gone = pl.col("cell").is_null()
    found = (
        pl.DataFrame({"group": groups.of_record, "low": low, "high": high, "cell": column})
        .group_by("group", maintain_order=False)
        .agg(
            pl.when((pl.col(name).is_null() & ~gone).any()).then(None).otherwise(lowest).alias(name)
            for name, lowest in (("low", pl.col("low").min()), ("high", pl.col("high").max()))
        )
        .sort("group")
    )
    keep, nothing = pl.Series(shown), pl.Series([None], dtype=low.dtype)
    lows, highs = (found[name].zip_with(keep, nothing) for name in ("low", "high"))
    return intervals(lows, highs, missing=~(shown | covered)).gather(groups.of_record)


def _joined_sets(table: Table, name: str, groups: RecordGroups, shown: Flags) -> tuple[Ints, Nodes]:
    """The place of the set of all that the labels of a group cover, 0 where it shows none."""
    nodes = table.nodes[name]
    codes = nodes.codes(table.frame[name])
    there = np.flatnonzero(codes >= 0)
    sizes = nodes.sizes[codes[there]]
    of_cell, within = _laid_out(sizes)
    members = nodes.members[nodes.starts[codes[there]][of_cell] + within].astype(np.int64)
    owners = groups.of_record[there[of_cell]]
    order = np.argsort(owners, kind="stable")
    starts = np.searchsorted(owners[order], np.arange(len(groups) + 1))
    used = shown & (np.diff(starts) > 0)
    laid = RecordGroups(order, starts)
    set_of_group, of_set, found = _occurring(members, max(len(nodes.leaves), 1), laid, used)
    labels = _set_labels(of_set, found, nodes.leaves)
    if WILDCARD not in labels:
        labels = pl.concat([labels, pl.Series("labels", [WILDCARD])])
    made = Nodes.of_pairs(nodes.leaves, labels, of_set.astype(np.int32), found.astype(np.int32))
    return set_of_group, made


def _common_labels(
    values: pl.Series, groups: RecordGroups, shown: Flags, hierarchy: Hierarchy, *, sets_above: bool
) -> tuple[Ints, Nodes]:
    """The place of the lowest label of the hierarchy that all of a group have, 0 where it shows none."""
    texts = pl.repeat(None, len(groups), dtype=pl.String, eager=True)
    open_, rows = shown.copy(), hierarchy.codes(values, 0)
    for level in range(hierarchy.height - sets_above):
        codes = np.where(rows >= 0, hierarchy.leaf_codes(level)[rows], MISSING)
        low = groups.lowest(codes, codes >= 0)
        here = open_ & (low == groups.highest(codes, codes >= 0))
        labels = hierarchy.labels(level).gather(np.where(here, low, 0))
        texts = texts.zip_with(pl.Series(~here), labels)
        open_ &= ~here
    nodes = hierarchy.nodes()
    places = np.maximum(nodes.codes(texts).astype(np.int64), 0)
    if not sets_above:
        return places, nodes
    return _labels_and_sets(nodes, places, rows.astype(np.int64), groups, (shown, open_))


def _labels_and_sets(
    nodes: Nodes, places: Ints, codes: Ints, groups: RecordGroups, shown: tuple[Flags, Flags]
) -> tuple[Ints, Nodes]:
    """The labels that groups show and, for the groups of the second flags, the sets of leaves that occur."""
    used = distinct_numbers(places[shown[0] & ~shown[1]])
    of_label, within = _laid_out(nodes.sizes[used])
    set_of_group, of_set, members = _occurring(codes, len(nodes.leaves), groups, shown[1])
    sets = _set_labels(of_set, members, nodes.leaves)
    listed = pl.concat([nodes.labels.gather(used), sets, pl.Series("labels", [WILDCARD])])
    labels = listed.unique(maintain_order=True)  # a set of all leaves is the wildcard
    made = Nodes.of_pairs(
        nodes.leaves,
        labels,
        match_leaves(listed, labels)[np.concatenate([of_label, of_set + len(used)])],
        np.concatenate([nodes.members[nodes.starts[used][of_label] + within], members.astype(np.int32)]),
    )
    found = np.where(shown[1], set_of_group + len(used), np.searchsorted(used, places))
    return match_leaves(listed, labels)[np.minimum(found, len(listed) - 1)].astype(np.int64), made


def _sets(table: Table, name: str, groups: RecordGroups, shown: Flags) -> tuple[Ints, Nodes]:
    """The place of the set of categories that each group spans, 0 where it shows none."""
    coded = table.codes(name)
    leaves = canonical_text(coded.categories).alias("leaves")
    spanned = _occurring if table.schema[name].kind is Kind.NOMINAL else _codes_in_range
    set_of_group, of_set, members = spanned(coded.codes, max(len(leaves), 1), groups, shown)
    labels = _set_labels(of_set, members, leaves)
    if WILDCARD not in labels:
        labels = pl.concat([labels, pl.Series("labels", [WILDCARD])])
    return set_of_group, Nodes.of_pairs(leaves, labels, of_set.astype(np.int32), members.astype(np.int32))


def _occurring(codes: Ints, n_codes: int, groups: RecordGroups, shown: Flags) -> tuple[Ints, Ints, Ints]:
    """The distinct codes of a group: its set, and pairs of a set and a code, ascending."""
    numbers = np.repeat(np.where(shown, np.cumsum(shown) - 1, -1), groups.sizes)
    in_order = codes[groups.order]
    keep = numbers >= 0
    pairs, _ = distinct_of(numbers[keep] * n_codes + in_order[keep], int(shown.sum()) * n_codes)
    starts = np.searchsorted(pairs, np.arange(int(shown.sum()) + 1) * n_codes)
    members = pairs % n_codes
    same, firsts = _equal_sets(members, starts, n_codes)
    sizes = np.diff(starts)[firsts]
    set_of_group = np.zeros(len(groups), dtype=np.int64)
    set_of_group[shown] = same
    of_set, within = _laid_out(sizes)
    return set_of_group, of_set, members[starts[firsts][of_set] + within]


def _equal_sets(members: Ints, starts: Ints, n_codes: int) -> tuple[Ints, Ints]:
    """Number sets so that equal ones have one number, one member after the other; and the first of each."""
    sizes = np.diff(starts)
    numbers = np.zeros(len(sizes), dtype=np.int64)
    longer, place = np.arange(len(sizes)), 0
    while len(longer):
        codes = numbers[longer] * n_codes + members[starts[longer] + place]
        numbers[longer] = np.unique(codes, return_inverse=True)[1]
        place += 1
        longer = longer[sizes[longer] > place]
    keys = numbers * (place + 1) + sizes
    _, firsts, same = np.unique(keys, return_index=True, return_inverse=True)
    return same.astype(np.int64), firsts.astype(np.int64)


def _codes_in_range(codes: Ints, n_codes: int, groups: RecordGroups, shown: Flags) -> tuple[Ints, Ints, Ints]:
    """All codes from the lowest to the highest of a group: its set, and pairs of a set and a code."""
    known = codes >= 0
    low, high = groups.lowest(codes, known), groups.highest(codes, known)
    distinct, places = np.unique((low * n_codes + high)[shown], return_inverse=True)
    set_of_group = np.zeros(len(groups), dtype=np.int64)
    set_of_group[shown] = places
    first = distinct // n_codes
    of_set, within = _laid_out(distinct % n_codes - first + 1)
    return set_of_group, of_set, first[of_set] + within


def _laid_out(sizes: Ints) -> tuple[Ints, Ints]:
    """The set and the place in it of each member of sets of these sizes."""
    of_set = np.repeat(np.arange(len(sizes)), sizes)
    return of_set, np.arange(len(of_set)) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def _set_labels(of_set: Ints, members: Ints, leaves: pl.Series) -> pl.Series:
    """Write each set as its text form, some at a time: the value itself, ``{a|b}``, or ``*`` for all."""
    sizes = np.bincount(of_set)
    ends = np.cumsum(sizes)

    def write(first: int) -> pl.Series:
        here = slice(first, first + _SETS_AT_ONCE)
        texts = set_texts(leaves, sizes[here], members[(ends - sizes)[first] : ends[here][-1]])
        every = (sizes[here] == len(leaves)) & (sizes[here] > 1)
        return texts.set(pl.Series(every), WILDCARD) if every.any() else texts

    if not len(sizes):
        return pl.Series("labels", [], dtype=pl.String)
    return join_pieces(write(first) for first in range(0, len(sizes), _SETS_AT_ONCE)).alias("labels")
