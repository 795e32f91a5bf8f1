"""Levels: key columns coded once at every level of their hierarchies, and written at any of them.

Each key becomes codes of its values and, for each level, the label of each code; a combination of levels, one
for each key, is a node of the lattice of recodings.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl

from sfumato.data.classes.packing import Coding, blocks, firsts_of, number, pack
from sfumato.data.generalised.intervals import end_dtype, ends, exact_intervals, intervals, is_interval
from sfumato.data.generalised.nodes import MISSING, UNSEEN, WILDCARD, DType, match_leaves, parse_exact
from sfumato.data.generalised.text_forms import parse_intervals
from sfumato.data.hierarchy.tree import Hierarchy, Unseen
from sfumato.data.schema import Column, Kind
from sfumato.data.table import Table
from sfumato.errors import DataError
from sfumato.kernels.arrays import Codes, Floats, Ints

#: A year, quarter, month, day or decade as `from_dates` names it.
_CALENDAR = re.compile(
    r"^(?P<year>\d{4})(?:(?P<decade>s)|-Q(?P<quarter>[1-4])|-(?P<month>\d{2})(?:-(?P<day>\d{2}))?)?$"
)


@dataclass(frozen=True, eq=False)
class KeyLevels:
    """One key: the code of each record's value, and the label of each code at every level.

    Code 0 is a missing value; so is label 0, except at a root that is the wildcard, where all are alike.
    """

    column: Column
    hierarchy: Hierarchy | None  # None: nothing is known of the column but missing values
    dtype: pl.DataType
    leaves: Codes  # [codes] the leaf of each code; of code 0 it means nothing; −2: in no hierarchy
    codes: Codes  # [records]

    @classmethod
    def of(cls, table: Table, name: str, hierarchy: Hierarchy | None, unseen: Unseen = "raise") -> KeyLevels:
        """Code a column of exact values along its hierarchy."""
        # What is remembered holds the hierarchy, so that no other one has its identity.
        what = ("levels", id(hierarchy), unseen)
        return table.remember(name, what, lambda: cls._of(table, name, hierarchy, unseen))

    @classmethod
    def _of(cls, table: Table, name: str, hierarchy: Hierarchy | None, unseen: Unseen) -> KeyLevels:
        series, column = table.frame[name], table.schema[name]
        if name in table.nodes or is_interval(series.dtype):
            raise DataError(
                f"column `{name}` is generalised already and cannot be recoded",
                hint="recode before other steps that generalise",
            )
        none, gone = np.zeros(1, dtype=np.int32), table.missing(name)
        if hierarchy is None:
            if not gone.all():
                raise DataError(f"column `{name}` has no hierarchy, so it cannot be recoded")
            return cls(column, None, series.dtype, none, np.zeros(len(series), dtype=np.int32))
        found = np.where(gone, MISSING, match_leaves(series, hierarchy.levels[:, 0]))
        if unseen != "root" and (found == UNSEEN).any():
            present = pl.Series(~gone)
            hierarchy.require(series.filter(present), name)
        places = np.append(np.int32(UNSEEN), np.arange(hierarchy.levels.height, dtype=np.int32))
        code_of = np.zeros(len(places) + 1, dtype=np.int32)  # the last two are of UNSEEN and MISSING
        code_of[found] = 1
        leaves = places[code_of[places] > 0]
        code_of[leaves], code_of[MISSING] = np.arange(1, len(leaves) + 1), 0
        return cls(column, hierarchy, series.dtype, np.append(none, leaves), code_of[found])

    def take(self, rows: Ints) -> KeyLevels:
        """Some of the records, coded by the values that they have."""
        present, codes = np.unique(np.append(0, self.codes[rows]), return_inverse=True)
        return replace(self, leaves=self.leaves[present], codes=codes[1:].astype(np.int32))

    @property
    def height(self) -> int:
        """The number of levels, the values themselves and the root included."""
        return 1 if self.hierarchy is None else self.hierarchy.height

    @property
    def has_missing(self) -> bool:
        """Whether some value is missing."""
        return bool((self.codes == 0).any())

    def covers_missing(self, level: int) -> bool:
        """Whether a missing value is alike to all others at a level: where the wildcard is the only label."""
        return self._is_root(level) and (self._hierarchy.root == WILDCARD or self._has_only_ranges)

    @property
    def _hierarchy(self) -> Hierarchy:
        assert self.hierarchy is not None  # levels above 0 there are only of a hierarchy
        return self.hierarchy

    def _is_root(self, level: int) -> bool:
        return self.hierarchy is not None and level == self.height - 1

    @cached_property
    def labels(self) -> list[Codes]:
        """For each level the label of each code."""
        return [self._labels(level) for level in range(self.height)]

    def _labels(self, level: int) -> Codes:
        if level == 0:
            return np.arange(len(self.leaves), dtype=np.int32)
        if self.covers_missing(level):
            return np.zeros(len(self.leaves), dtype=np.int32)
        # What no hierarchy holds is at the root, which may stand on this level too: one code more if not.
        known = self._of_leaf(level, self._root_code(level))[self._rows[1:]]
        _, dense = np.unique(known, return_inverse=True)
        return np.append(np.int32(0), (dense + 1).astype(np.int32))

    def _root_code(self, level: int) -> int:
        labels = self._hierarchy.labels(level)
        found = labels.index_of(self._hierarchy.root)
        return len(labels) if found is None else found

    def _of_leaf(self, level: int, last: int) -> Codes:
        """The code of each leaf of the hierarchy at a level, and a last one for what it does not hold."""
        return np.append(self._hierarchy.leaf_codes(level), np.int32(last))

    @cached_property
    def _rows(self) -> Codes:
        """The row of the hierarchy of each code; what it does not hold is after its last."""
        return np.where(self.leaves == UNSEEN, self._hierarchy.n_leaves, self.leaves)

    @cached_property
    def widths(self) -> list[Floats]:
        """For each level the share of the hierarchy's leaves that the label of each code covers beyond one.

        That is (s − 1) / (S − 1) for s of S leaves; 0 where the value is missing.
        """
        if self.hierarchy is None:
            return [np.zeros(1)]
        n, found = self.hierarchy.n_leaves, []
        for level in range(self.height):
            codes = self._hierarchy.leaf_codes(level)
            sizes = np.bincount(codes)[codes]
            shares = (sizes - 1) / (n - 1) if n > 1 else np.full(1, float(self._is_root(level)))
            of_code = np.append(shares, 1.0)[self._rows]  # what is in no hierarchy stands at the root
            of_code[0] = 0.0
            found.append(of_code)
        return found

    # Writing -------------------------------------------------------------------------------------------

    def write(self, table: Table, levels: int | Ints) -> Table:
        """Show the column of a table at a level, or each record at its own; the table is the coded one."""
        name = self.column.name
        used = np.unique(levels)
        if self.hierarchy is None or (not used.any() and not (self.leaves == UNSEEN).any()):
            return table
        place = np.searchsorted(used, levels) * len(self.leaves) + self.codes
        if self._has_only_ranges:
            values = pl.concat([self._intervals_at(int(level)) for level in used])
            return table.with_values(name, values.gather(place).alias(name))
        nodes = self._hierarchy.nodes()
        values = pl.concat([self._texts_at(int(level)) for level in used]).cast(nodes.dtype)
        return table.with_nodes(name, values.gather(place).alias(name), nodes)

    def _texts_at(self, level: int) -> pl.Series:
        """The label of each code as text; a missing value is the wildcard where that is the root."""
        texts = pl.concat(
            [_shown_labels(self._hierarchy, level).alias(""), pl.Series("", [self._hierarchy.root])]
        )
        missing = WILDCARD if self.covers_missing(level) else None
        return pl.concat([pl.Series("", [missing], dtype=pl.String), texts.gather(self._rows[1:])])

    @cached_property
    def _has_only_ranges(self) -> bool:
        """Whether all levels are ranges of numbers or dates."""
        if self.column.kind not in {Kind.CONTINUOUS, Kind.DATE} or end_dtype(self.dtype) is None:
            return False
        return self._ranges is not None

    @property
    def _ranges(self) -> list[pl.Series] | None:
        """For each level below the root the range of each leaf of the hierarchy; None if some have none."""
        kind = end_dtype(self.dtype)
        if self.hierarchy is None or self.hierarchy.height == 1 or kind is None:
            return None
        known = self.hierarchy.ranges_read
        if kind not in known:
            known[kind] = _ranges_in(self.hierarchy, kind)
        return known[kind]

    def _intervals_at(self, level: int) -> pl.Series:
        """The range of each code; a missing value is the wildcard where that is the root."""
        kind = end_dtype(self.dtype)
        ranges = self._ranges
        assert kind is not None and ranges is not None  # noqa: PT018  — `_has_only_ranges` saw to it
        wildcard = intervals(pl.Series([None], dtype=kind), pl.Series([None], dtype=kind))
        if self._is_root(level):
            return wildcard.new_from_index(0, len(self.leaves))
        nothing = intervals(
            pl.Series([None], dtype=kind), pl.Series([None], dtype=kind), missing=pl.Series([True])
        )
        every = pl.concat([each.alias("") for each in (ranges[level], wildcard)])
        return pl.concat([nothing.alias(""), every.gather(self._rows[1:])])


def _shown_labels(hierarchy: Hierarchy, level: int) -> pl.Series:
    """The label of each leaf of a hierarchy at a level."""
    return hierarchy.labels(level).gather(hierarchy.leaf_codes(level))


def _ranges_in(hierarchy: Hierarchy, kind: DType) -> list[pl.Series] | None:
    values = parse_exact(hierarchy.levels[:, 0], kind)
    if values.null_count():
        return None
    ranges = [exact_intervals(values)]
    for level in range(1, hierarchy.height - 1):
        found = _ranges_of(_shown_labels(hierarchy, level), values, kind)
        if found is None:
            return None
        ranges.append(found)
    return ranges


def _ranges_of(labels: pl.Series, values: pl.Series, kind: DType) -> pl.Series | None:
    """The range that each label says, or else that its leaves span; None where those of two overlap."""
    ranges = _said_ranges(labels, kind)
    if ranges is not None:
        lo, hi = ends(ranges)
        inside = (lo.is_null() | (lo <= values)) & (hi.is_null() | (values <= hi))
        if inside.all():
            return ranges
    frame = pl.DataFrame({"label": labels, "value": values})
    spans = frame.select(lo=pl.col("value").min().over("label"), hi=pl.col("value").max().over("label"))
    distinct = spans.unique().sort("lo")
    if len(distinct) != labels.n_unique() or (distinct["lo"][1:] <= distinct["hi"][:-1]).any():
        return None
    return intervals(spans["lo"], spans["hi"])


def _said_ranges(labels: pl.Series, kind: DType) -> pl.Series | None:
    if not kind.is_numeric():
        return _calendar_ranges(labels, kind)
    try:
        return parse_intervals(labels, kind)
    except DataError:
        return None


def _calendar_ranges(labels: pl.Series, kind: DType) -> pl.Series | None:
    """From the beginning to the end of years, quarters, months, days and decades."""
    found = labels.str.extract_groups(_CALENDAR.pattern.replace("?P<", "?<")).struct.unnest()
    month = pl.coalesce(
        "month", ((pl.col("quarter").cast(pl.Int32) - 1) * 3 + 1).cast(pl.String), pl.lit("1")
    )
    parts = found.select(
        first=pl.format("{}-{}-{}", "year", month, pl.coalesce("day", pl.lit("1"))).str.to_date(
            "%Y-%m-%d", strict=False
        ),
        length=pl.when(pl.col("decade").is_not_null()).then(pl.lit("120mo"))
        .when(pl.col("day").is_not_null()).then(pl.lit("1d"))
        .when(pl.col("month").is_not_null()).then(pl.lit("1mo"))
        .when(pl.col("quarter").is_not_null()).then(pl.lit("3mo"))
        .otherwise(pl.lit("12mo")),
    )  # fmt: skip
    if parts["first"].null_count():  # another label, or a week: 2020-26
        return None
    first = parts["first"]
    after = first.dt.offset_by(parts["length"])
    if kind == pl.Date:
        return intervals(first, after.dt.offset_by("-1d"))
    lo, beyond = (_midnight(days, kind) for days in (first, after))
    return intervals(lo, (beyond.to_physical() - 1).cast(kind))  # the last tick before


def _midnight(days: pl.Series, kind: DType) -> pl.Series:
    """The beginning of each day, where the clocks of the column are."""
    assert isinstance(kind, pl.Datetime)
    moments = days.cast(pl.Datetime(kind.time_unit))
    if kind.time_zone is None:
        return moments
    return moments.dt.replace_time_zone(kind.time_zone, ambiguous="earliest", non_existent="null")


# All keys together -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class GeneralisationLattice:
    """Several keys: the distinct combinations of their values, and the labels at every level side by side."""

    keys: tuple[KeyLevels, ...]
    of_record: Ints  # [records] the combination of each
    rows: Ints  # [combinations] the first record of each
    leaves: Codes  # [combinations, keys] codes
    counts: Ints  # [combinations] records
    weights: Floats  # [combinations] their weights; their number where there are none
    labels: Codes  # labels of all keys and levels, one after the other
    starts: Ints  # [keys, levels] where those of a key and level begin
    sizes: Ints  # [keys, levels] how many labels there are

    @classmethod
    def of(cls, keys: Sequence[KeyLevels], weights: Floats | None) -> GeneralisationLattice:
        """Find the distinct combinations of the values of the keys."""
        n = len(keys[0].codes) if keys else 0
        codings = [Coding(key.codes.view(np.uint32), len(key.leaves)) for key in keys]
        of_record, counts = number(pack(codings, n))
        rows = firsts_of(of_record, len(counts))
        leaves = np.empty(len(rows) * len(keys), dtype=np.int32).reshape(len(rows), len(keys))
        for place, key in enumerate(keys):
            for block in blocks(len(rows)):
                leaves[block, place] = key.codes[rows[block]]
        heights = [key.height for key in keys]
        starts = np.zeros((len(keys), max(heights, default=1)), dtype=np.int64)
        sizes = np.ones_like(starts)
        pieces, total = [], 0
        for place, key in enumerate(keys):
            for level, labels in enumerate(key.labels):
                starts[place, level], sizes[place, level] = total, int(labels.max(initial=0)) + 1
                pieces.append(labels)
                total += len(labels)
        weights_of = np.empty(len(counts), dtype=np.float64)
        weights_of[:] = counts if weights is None else np.bincount(of_record, weights, minlength=len(counts))
        return cls(
            keys=tuple(keys),
            of_record=of_record,
            rows=rows,
            leaves=leaves,
            counts=counts,
            weights=weights_of,
            labels=np.concatenate(pieces).astype(np.int32),
            starts=starts,
            sizes=sizes,
        )

    @property
    def heights(self) -> tuple[int, ...]:
        """The number of levels of each key."""
        return tuple(key.height for key in self.keys)

    def write(self, table: Table, levels: Sequence[int | Ints]) -> Table:
        """Show every key at its level."""
        for key, level in zip(self.keys, levels, strict=True):
            table = key.write(table, level)
        return table
