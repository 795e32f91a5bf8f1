"""Node columns: labels that stand for sets of exact values, and how exact values are told from each other.

A node column is an ``Enum`` of labels, with a `Nodes` table that says which leaf values a label covers. The
label ``*`` is the wildcard and covers every leaf. Leaves are text, and an exact value of any type is found
among them by its canonical text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl
from polars.datatypes import DataTypeClass

from sfumato.data.classes.packing import blocks
from sfumato.data.column_store import distinct_values
from sfumato.data.generalised.cut_codes import STAR, SortedValues, stands_for
from sfumato.errors import DataError, count_noun
from sfumato.kernels.arrays import Codes, Flags, Ints, distinct_numbers

WILDCARD = STAR
MISSING, UNSEEN = -1, -2  # the codes of a null and of a value that is no leaf

DType: TypeAlias = pl.DataType | DataTypeClass
Values: TypeAlias = pl.Series | npt.NDArray[Any] | Sequence[Any]

#: Decimal digits that a float tells apart for certain.
_FLOAT_DIGITS = 15
_TIMES = "%Y-%m-%dT%H:%M:%S%.f"


@dataclass(frozen=True, eq=False)
class Nodes:
    """Which leaf values each label of a node column covers.

    The members are one array of leaf indices cut by ``starts``: those of label ``i`` are
    ``members[starts[i]:starts[i + 1]]``, in ascending order. ``levels`` say how many steps lead up to each
    label, where it is one of a hierarchy.
    """

    leaves: pl.Series
    labels: pl.Series
    starts: Ints
    members: Codes
    levels: Ints | None = None

    @classmethod
    def of_pairs(cls, leaves: pl.Series, labels: pl.Series, codes: Codes, members: Codes) -> Nodes:
        """Build the table from pairs (code of a label, index of a leaf); the wildcard needs none."""
        wild = (labels == WILDCARD).to_numpy()
        n_leaves = max(len(leaves), 1)
        keys = codes.astype(np.int64) * n_leaves + members
        every_leaf = np.flatnonzero(wild)[:, None] * n_leaves + np.arange(len(leaves))
        keys = np.sort(
            np.concatenate([keys, every_leaf.ravel()]), kind="stable"
        )  # numpy's unique hashes: slower
        keys = keys[np.append(True, keys[1:] != keys[:-1])] if len(keys) else keys
        sizes = np.bincount(keys // n_leaves, minlength=len(labels))
        n_empty = int(((sizes == 0) & ~wild).sum())
        n_repeated = len(leaves) - leaves.n_unique() + len(labels) - labels.n_unique()
        if n_empty or n_repeated:
            raise DataError(
                "the labels and leaves of a node table must be distinct and each label must cover a leaf, "
                f"got {n_repeated} repeated and {n_empty} that cover none"
            )
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return cls(leaves, labels, starts, (keys % n_leaves).astype(np.int32))

    @classmethod
    def of(cls, members: Mapping[str, Sequence[str]], *, leaves: Sequence[str]) -> Nodes:
        """Build the table from the member values of each label; the wildcard is added."""
        listed = {**members, WILDCARD: ()}
        known = pl.Series("leaves", leaves, dtype=pl.String)
        values = pl.Series([value for group in listed.values() for value in group], dtype=pl.String)
        found = match_leaves(values, known)
        if (found < 0).any():
            raise DataError(f"the members of a label must be leaves, got {(found < 0).sum()} that are not")
        codes = np.repeat(np.arange(len(listed), dtype=np.int32), [len(group) for group in listed.values()])
        return cls.of_pairs(known, pl.Series("labels", list(listed), dtype=pl.String), codes, found)

    @classmethod
    def union(cls, tables: Sequence[Nodes]) -> Nodes:
        """Join tables of the same column: the leaves and labels of all, each label with its one meaning."""
        leaves = pl.concat([table.leaves.rename("leaves") for table in tables]).unique(maintain_order=True)
        labels = pl.concat([table.labels.rename("labels") for table in tables]).unique(maintain_order=True)
        pairs, sizes = [], []
        for table in tables:
            places = match_leaves(table.labels, labels).astype(np.int64)
            members = match_leaves(table.leaves, leaves)[table.members]
            pairs.append(np.repeat(places, table.sizes) * len(leaves) + members)
            sizes.append((places, table.sizes))
        keys = distinct_numbers(np.concatenate(pairs))
        joined = cls.of_pairs(
            leaves, labels, (keys // len(leaves)).astype(np.int32), (keys % len(leaves)).astype(np.int32)
        )
        tame = (labels != WILDCARD).to_numpy()
        n_torn = sum(int((joined.sizes[places] != own)[tame[places]].sum()) for places, own in sizes)
        if n_torn:
            raise DataError(
                f"a label must cover the same values in all tables of a column, got: {n_torn} that do not"
            )
        return joined

    @cached_property
    def dtype(self) -> pl.Enum:
        """The dtype of a column of these labels."""
        return pl.Enum(self.labels)

    @cached_property
    def sizes(self) -> Ints:
        """The number of leaves that each label covers."""
        return np.diff(self.starts)

    @cached_property
    def lone(self) -> Flags:
        """Which labels stand for a single value without being it: who knows the groups knows the value.

        A code that is cut short stands for others, too, which nobody has.
        """
        one = np.flatnonzero(self.sizes == 1)
        values = self.leaves.gather(self.members[self.starts[one]])
        found = np.zeros(len(self.labels), dtype=np.bool_)
        labels = self.labels.gather(one)
        found[one] = [
            label != value and not stands_for(label, value)
            for label, value in zip(labels, values, strict=True)
        ]
        return found

    @cached_property
    def sorted_leaves(self) -> SortedValues:
        """The leaves in alphabetical order."""
        return SortedValues(self.leaves)

    @cached_property
    def of_digits(self) -> int:
        """The length of leaves that are codes of digits, all of one length; else 0."""
        lengths = self.leaves.str.len_chars().unique()
        alike = len(lengths) == 1 and self.leaves.str.contains(r"^[0-9]+$").all()
        return int(lengths[0]) if alike else 0

    def members_of(self, code: int) -> pl.Series:
        """The leaf values that the label with this code covers."""
        return self.leaves.gather(self.members[self.starts[code] : self.starts[code + 1]])

    def occurring(self, codes: Codes) -> Ints:
        """The labels that some records have, by the codes of the records."""
        found = np.zeros(len(self.labels) + 1, dtype=np.bool_)
        found[codes] = True  # the last is of those that are missing
        return np.flatnonzero(found[:-1])

    def used_codes(self, codes: Codes) -> tuple[Ints, Ints]:
        """The codes that occur, in their order, −1 first, and the place of each record's among them."""
        used = np.append(np.flatnonzero([(codes < 0).any()]) - 1, self.occurring(codes))
        places = np.zeros(len(self.labels) + 1, dtype=np.int64)
        places[used] = np.arange(len(used))
        return used, places[codes]

    def members_of_all(self, codes: Codes | Ints) -> Codes:
        """The places of the leaves that these labels cover, those of one label after the other."""
        sizes = self.sizes[codes]
        within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        found: Codes = self.members[np.repeat(self.starts[codes], sizes) + within]
        return found

    def codes(self, column: pl.Series) -> Codes:
        """The position of each record's label in the table, −1 where it is missing."""
        if isinstance(column.dtype, pl.Enum):  # each label is looked for once, not each record's
            texts, n = column.dtype.categories, len(self.labels)
            found = np.arange(n) if texts.equals(self.labels) else match_leaves(texts, self.labels)
            found = np.append(found.astype(np.int32), np.int32(MISSING))
            codes: Codes = found[column.to_physical().cast(pl.UInt32).fill_null(len(found) - 1).to_numpy()]
        else:
            codes = match_leaves(column.cast(pl.String), self.labels)
        if (codes == UNSEEN).any():
            raise DataError(
                f"`{column.name}` has {count_noun(int((codes == UNSEEN).sum()), 'record')} with a label "
                "that is not in its node table",
                hint="give the table that was made together with the column",
            )
        return codes

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Nodes):
            return NotImplemented
        return (
            self.leaves.to_list() == other.leaves.to_list()
            and self.labels.to_list() == other.labels.to_list()
            and np.array_equal(self.starts, other.starts)
            and np.array_equal(self.members, other.members)
        )

    def __hash__(self) -> int:
        return hash((len(self.leaves), len(self.labels), len(self.members)))

    def __repr__(self) -> str:
        # Counts only: leaves are values of the data, and a traceback may show this.
        return f"Nodes({len(self.labels)} labels of {len(self.leaves)} leaves)"


# Exact values: their text, and where they stand among the leaves ---------------------------------------


def on_distinct(column: pl.Series, function: Callable[[pl.Series], pl.Series]) -> pl.Series:
    """Apply ``function`` to the distinct values only; what is missing stays missing."""
    distinct = distinct_values(column.drop_nulls() if column.null_count() else column)
    if len(distinct) == len(column):
        return function(column).alias(column.name)
    places = pl.Series(np.arange(len(distinct), dtype=np.uint32))
    codes = column.replace_strict(distinct, places, default=None, return_dtype=pl.UInt32)
    return function(distinct).gather(codes).alias(column.name)


def canonical_text(column: pl.Series) -> pl.Series:
    """Write exact values so that equal values have equal text (25 and 25.0: ``25``); NaN is missing."""
    dtype = column.dtype
    if dtype.is_nested() or dtype in {pl.Binary, pl.Object}:
        raise DataError(f"the values of `{column.name}` must be plain values, got {dtype.base_type()}")
    return column if dtype == pl.String else on_distinct(column, _plain_text)


def _plain_text(values: pl.Series) -> pl.Series:
    if isinstance(values.dtype, pl.Decimal):
        exact = values.cast(pl.String).str.replace(r"(\.\d*?)0+$", "${1}").str.strip_chars_end(".")
        digits = exact.str.replace_all(r"\D", "").str.strip_chars_start("0").str.len_chars()
        return exact.zip_with(digits > _FLOAT_DIGITS, _plain_text(values.cast(pl.Float64)))
    if values.dtype.is_float():
        values = values.fill_nan(None)
        whole = ((values == values.floor()) & (values.abs() < 2.0**63)).fill_null(value=False)
        return values.cast(pl.Int64, strict=False).cast(pl.String).zip_with(whole, values.cast(pl.String))
    if isinstance(values.dtype, pl.Datetime):
        if values.dtype.time_zone is None:
            return values.dt.strftime(_TIMES)
        return values.dt.convert_time_zone("UTC").dt.strftime(f"{_TIMES}Z")
    if isinstance(values.dtype, pl.Duration):
        values = values.dt.total_nanoseconds()
    return values.cast(pl.String)


def parse_exact(texts: pl.Series, dtype: DType) -> pl.Series:
    """Read exact values from their canonical text; what does not read is null."""
    if dtype == pl.Date:
        return texts.str.to_date("%Y-%m-%d", strict=False)
    if isinstance(dtype, pl.Datetime):
        times = _utc_times(texts, dtype.time_unit)
        zone = dtype.time_zone
        return times.dt.replace_time_zone(None) if zone is None else times.dt.convert_time_zone(zone)
    if dtype == pl.Time:
        return texts.str.to_time("%H:%M:%S%.f", strict=False)
    if dtype == pl.Boolean:  # polars casts no text to a truth value
        return texts.replace_strict({"true": True, "false": False}, default=None, return_dtype=pl.Boolean)
    values = texts.cast(dtype, strict=False)
    return values.fill_nan(None) if values.dtype.is_float() else values


def zoned_text(times: pl.Series) -> pl.Series:
    """Write times of a zone as its clocks show them, with their distance from UTC."""
    return on_distinct(times, lambda distinct: distinct.dt.strftime(f"{_TIMES}%:z"))


def _utc_times(texts: pl.Series, unit: Literal["ns", "us", "ms"]) -> pl.Series:
    """Read times with their distance from UTC; those that name none are in UTC."""
    texts = texts.str.replace("Z$", "+00:00")
    bare = ~texts.str.contains(r"[+-]\d\d:\d\d$")
    texts = (texts + "+00:00").zip_with(bare, texts)
    return texts.str.to_datetime(f"{_TIMES}%:z", time_unit=unit, time_zone="UTC", strict=False)


def match_leaves(values: pl.Series, leaves: pl.Series) -> Codes:
    """Find each value among the ``leaves``: its index, −1 where it is missing, −2 where it is no leaf.

    Numbers match by value: the leaf ``25``, ``25.0`` or ``025`` matches 25 and 25.0 (first as it is written,
    then as a number, if only one leaf is that number).
    """
    if n_repeated := len(leaves) - leaves.n_unique():  # polars would show which
        raise DataError(f"leaves must be distinct values, got {n_repeated} that repeat others")
    kind = pl.Enum(leaves)
    find: Callable[[pl.Series], pl.Series] = partial(_find_text, kind=kind)
    if values.dtype.is_numeric():
        whole, real = (leaves.cast(number, strict=False) for number in (pl.Int64, pl.Float64))
        number = _plain_text(whole).zip_with(whole.is_not_null(), _plain_text(real))
        of_number = pl.DataFrame({"number": number, "place": np.arange(len(leaves), dtype=np.int32)})
        find = partial(_find_number, kind=kind, places=of_number.drop_nulls().unique("number", keep="none"))
    found = np.empty(len(values), dtype=np.int32)
    for block in blocks(len(values)):
        own = values[block]
        places = find(own) if own.dtype == pl.String else on_distinct(own, find)
        found[block] = (places.fill_null(UNSEEN) if places.null_count() else places).to_numpy()
        if own.null_count() or own.dtype.is_float():
            missing = own.is_null() | own.is_nan() if own.dtype.is_float() else own.is_null()
            found[block][missing.to_numpy()] = MISSING
    return found


def _find_text(values: pl.Series, *, kind: pl.Enum) -> pl.Series:
    texts = values if values.dtype == pl.String else canonical_text(values)
    return texts.cast(kind, strict=False).to_physical().cast(pl.Int32)


def _find_number(values: pl.Series, *, kind: pl.Enum, places: pl.DataFrame) -> pl.Series:
    texts = _plain_text(values)
    as_written = texts.cast(kind, strict=False).to_physical().cast(pl.Int32)
    as_number = texts.replace_strict(places["number"], places["place"], default=None, return_dtype=pl.Int32)
    return as_written.zip_with(as_written.is_not_null(), as_number)
