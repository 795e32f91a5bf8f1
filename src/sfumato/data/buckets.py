"""Buckets: values that stand apart from their records, of which is known in which bucket each record is.

Anatomy shows keys and sensitive values in two tables, slicing shows any columns in several, and bucketisation
shuffles values within one: what holds them together is a number, that of the bucket. Who reads such a release
knows for each record that its value is one of those of its bucket, and how often each stands there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import polars as pl

from sfumato.data.classes.classes import Classes, column_codes
from sfumato.data.classes.packing import Coding, number, pack
from sfumato.data.generalised.ranges import RecordGroups, with_ranges
from sfumato.data.schema import Role, Schema
from sfumato.data.table import Table
from sfumato.errors import DataError
from sfumato.kernels.arrays import Floats, Ints


@dataclass(frozen=True, eq=False)
class Buckets:
    """Records in buckets, and columns whose values stand ``apart`` from them.

    ``values`` holds the records, each with some of the values of its bucket: one of the tables that the
    original may be, and as often as there each value stands in a bucket. Those of the columns ``own`` are
    each record's, as whoever parted them told. Columns of one group of ``apart`` kept together: they are of
    one and the same record, of whichever.
    """

    of_record: Ints  # [records] from 0
    of_values: Ints  # [rows of the values] the same, unless only some records are looked at
    values: Table
    apart: tuple[tuple[str, ...], ...]
    own: frozenset[str] = frozenset()

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that stand apart from their records."""
        return tuple(name for group in self.apart for name in group)

    def place(self, name: str) -> int:
        """The group of columns apart that a column is one of, −1 if it is of none."""
        return next((place for place, group in enumerate(self.apart) if name in group), -1)

    @cached_property
    def reading(self) -> Table:
        """The table as it reads: in the columns apart, each record shows what its bucket spans."""
        return with_ranges(self.values, self.names, RecordGroups.of(self.of_values), exact_ends=True)

    def select_rows(self, rows: Ints) -> Buckets:
        """The same for some of the records, with all the values of their buckets."""
        of_record = self.of_record[rows]
        value_rows = np.flatnonzero(np.isin(self.of_values, of_record))
        return replace(
            self,
            of_record=of_record,
            of_values=self.of_values[value_rows],
            values=self.values.take(value_rows),
        )

    def chances(self, met: Floats) -> Floats:
        """The chance that each record meets conditions [conditions, values] that some values of it meet."""
        n = int(self.of_values.max(initial=-1)) + 1
        sizes = np.maximum(np.bincount(self.of_values, minlength=n), 1)
        shares = np.array([np.bincount(self.of_values, each, minlength=n) / sizes for each in met])
        return shares.reshape(len(met), n)[:, self.of_record]

    def classes(self, values: Table, keys: Sequence[str], learnt: Sequence[str]) -> Classes:
        """Who is alike in what tells the ``learnt`` columns: the bucket, and keys that stand beside them.

        ``values`` are those of the buckets, with whatever else is known of the records.
        """
        beside = [name for group in self.apart if set(group) & set(learnt) for name in group if name in keys]
        buckets = Coding(self.of_values.astype(np.uint64), int(self.of_values.max(initial=0)) + 1)
        codings = [buckets, *(column_codes(values, name, apart=True) for name in sorted(beside))]
        of_record, members = number(pack(codings, len(values)))
        examples = np.empty(len(members), dtype=np.int64)
        examples[of_record[::-1]] = np.arange(len(of_record))[::-1]  # of several the first is kept
        return Classes.known(values, keys, of_record, members, examples=examples, counts={})


@dataclass(frozen=True, eq=False)
class ReleaseLayout:
    """How the tables of a release belong together.

    ``keys`` are the columns by which each table is joined to the others. ``bucketed_columns`` are groups of
    columns whose values are not those of their record but of its bucket, which the keys name. ``sources`` are
    which originals the rows of further tables come from, and ``moved`` the cells of columns of the first, as
    far as the owner knows it. Of a table that is read already ``buckets`` are all that is known.
    """

    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    bucketed_columns: tuple[tuple[str, ...], ...] = ()
    sources: Mapping[str, Ints] = field(default_factory=dict, repr=False)
    moved: Mapping[str, Ints] = field(default_factory=dict, repr=False)
    buckets: Buckets | None = None

    @property
    def is_plain(self) -> bool:
        """Whether every value of the first table is its record's own."""
        return not self.bucketed_columns and self.buckets is None

    def map_rows(self, locate: Callable[[Ints], Ints | None]) -> ReleaseLayout:
        """The same with other rows of the originals; what has none is left out."""
        sources, moved = (
            {name: rows for name, each in known.items() if (rows := locate(each)) is not None}
            for known in (self.sources, self.moved)
        )
        return replace(self, sources=sources, moved=moved)

    def reorder(self, order: Ints) -> ReleaseLayout:
        """The same for records of the first table in another order."""
        return replace(
            self,
            moved={name: each[order] for name, each in self.moved.items()},
            buckets=self.buckets and self.buckets.select_rows(order),
        )

    def groups(self, tables: Mapping[str, Table]) -> Sequence[tuple[str, ...]]:
        """The groups of columns apart from their records: those of further tables, unless it says which."""
        return self.bucketed_columns or [
            tuple(each for each in table.names if each not in self.keys.get(name, ()))
            for name, table in list(tables.items())[1:]
        ]


def join_buckets(tables: Mapping[str, Table], layout: ReleaseLayout, rows: Ints | None) -> Buckets | None:
    """Join tables by their buckets; the first has a row for each record. None: nothing stands apart.

    Where it is known from which originals the rows of the first table and those of another one come
    (``rows`` and ``sources``), or the cells of its columns (``moved``), each record gets its own values back,
    so that what is found of it is its own.
    """
    if layout.buckets is not None:
        return layout.buckets
    (first, values), *others = tables.items()
    by = [name for name in layout.keys.get(first, ()) if name in values.schema]
    shown = {name for table in tables.values() for name in table.names}
    left = tuple(
        group for each in layout.groups(tables) if (group := tuple(name for name in each if name in shown))
    )
    if not left or not (by or others):  # a file without its buckets is read as it stands
        return None
    of_record = _bucket_numbers(values.frame, by)
    own = set[str]()
    for name, cells in layout.moved.items():
        if rows is not None and name in values.schema:
            values = values.with_values(name, values.frame[name].gather(_rows_of_sources(cells, rows)))
            own.add(name)
    for name, table in others:
        shared = [each for each in by if each in table.schema]
        there = table if table.weights is None else _repeat_rows(table)
        sources = layout.sources.get(name)
        if rows is not None and sources is not None and len(sources) == len(rows):
            places = _rows_of_sources(sources, rows)
            own.update(table.names)
        else:
            places = _places(values.frame, there.frame, shared)
        values = _side_by_side(values, there.take(places), shared)
    return Buckets(of_record, of_record, values, left, frozenset(own))


def _rows_of_sources(sources: Ints, rows: Ints) -> Ints:
    """Where the rows of the same originals stand that come from ``sources``."""
    places = np.empty(len(rows), dtype=np.int64)
    places[np.argsort(rows)] = np.argsort(sources)
    return places


def _bucket_numbers(frame: pl.DataFrame, by: Sequence[str]) -> Ints:
    """The number of each row's bucket, from 0; without a column that tells it, all are in one."""
    if not by:
        return np.zeros(frame.height, dtype=np.int64)
    joined = frame[by[0]] if len(by) == 1 else frame.select(pl.struct(by)).to_series()
    return joined.rank("dense").fill_null(0).to_numpy().astype(np.int64)


def _repeat_rows(table: Table) -> Table:
    """The rows of a table with counts as often as these say."""
    assert table.weights is not None  # counts are weights: of how many records a row tells
    return table.take(np.repeat(np.arange(len(table)), table.weights.astype(np.int64)))


def _places(first: pl.DataFrame, second: pl.DataFrame, by: Sequence[str]) -> Ints:
    """For each row of the first table a row of the second of the same bucket, each once."""
    both = (
        _bucket_numbers(pl.concat([first.select(by), second.select(by)]), by) if by else np.zeros(0, np.int64)
    )
    both = both if by else np.zeros(first.height + second.height, dtype=np.int64)
    first_order, second_codes = np.argsort(both[: first.height], kind="stable"), both[first.height :]
    found = np.argsort(second_codes, kind="stable")
    if len(first_order) != len(found) or not np.array_equal(
        both[: first.height][first_order], second_codes[found]
    ):
        raise DataError(
            "the tables of the release do not have the same number of records in each bucket",
            hint="read the files that were written together",
        )
    places = np.empty(len(first_order), dtype=np.int64)
    places[first_order] = found
    return places


def _side_by_side(values: Table, others: Table, by: Sequence[str]) -> Table:
    """Two tables side by side, what both have and counts left out of the second."""
    counted = others.schema.only_role(Role.WEIGHT)
    names = [name for name in others.names if name not in (*by, *values.names, counted)]
    added = others.select(names)
    return Table(
        values.frame.with_columns(added.frame.get_columns()),
        Schema((*values.schema.columns, *added.schema.columns)),
        nodes={**values.nodes, **added.nodes},
    )
