"""Sets of items: which record has which items, and who has the combinations of a few of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from math import comb
from typing import Literal

import numpy as np
import polars as pl

from sfumato import kernels
from sfumato.data.persons import persons_of
from sfumato.data.schema import Role
from sfumato.data.table import TEXTUAL, Table
from sfumato.errors import DataError
from sfumato.kernels.arrays import Codes, Flags, Floats, Ints, distinct_numbers

#: Occurrences that are held at a time, where the rarest item does not have more.
_BATCH = 4_000_000


@dataclass(frozen=True, eq=False)
class Occurrences:
    """Each item of each record, as whole numbers over all set-valued columns."""

    records: Ints
    items: Ints
    columns: Ints  # [items] the column that each item is of
    values: tuple[
        pl.Series, ...
    ]  # of each column its items in the order of their numbers, which follow a hole
    extra: Ints  # [columns] persons whose sets in this column are missing and may be any
    unknown: Flags  # [n] records that lack one of their sets
    persons: Ints  # [n]
    order: Ints  # [n] the records, those of a person next to each other

    @classmethod
    def of(
        cls, table: Table, names: tuple[str, ...], *, missing: Literal["category", "any", "worst"]
    ) -> Occurrences:
        """Number the items of the set-valued columns; of each column a hole comes first."""
        persons = persons_of(table)
        n = len(persons)
        order = np.argsort(persons, kind="stable") if table.schema.only_role(Role.PERSON) else np.arange(n)
        unknown, extra = np.zeros(n, dtype=np.bool_), np.zeros(len(names), dtype=np.int64)
        records: list[Ints] = []
        items: list[Ints] = []
        columns: list[Ints] = []
        values: list[pl.Series] = []
        for i, name in enumerate(names):
            holders, codes, own, holes = _items_of(table, name)
            unknown |= holes
            if missing == "any":  # what is there of a set with a hole is known all the same
                holders, codes = holders[codes > 0], codes[codes > 0]
                holes[holders] = False
                extra[i] = len(np.setdiff1d(persons[holes], persons[~holes]))  # who has another may have both
            elif missing == "worst":  # a set with a hole is not known; as a category a hole is the code 0
                keep = ~holes[holders]
                holders, codes = holders[keep], codes[keep]
            records.append(holders)
            items.append(codes + sum(len(each) for each in columns))
            columns.append(np.full(len(own) + 1, i, dtype=np.int64))
            values.append(own)
        return cls(
            np.concatenate(records), np.concatenate(items), np.concatenate(columns), tuple(values), extra,
            unknown, persons, order,
        )  # fmt: skip

    def become(self, others: Ints, columns: Ints) -> Occurrences:
        """The same sets of ``others`` in place of the items, each once; those below 0 are left out."""
        items = others[self.items]
        keep = items >= 0
        pairs = distinct_numbers(self.records[keep] * len(columns) + items[keep])
        return replace(self, records=pairs // len(columns), items=pairs % len(columns), columns=columns)

    def among(self, classes: Ints) -> Occurrences:
        """The same sets, the items of each class of records being other items than those of any other."""
        width = len(self.columns)
        pairs, items = np.unique(classes[self.records] * width + self.items, return_inverse=True)
        return replace(self, items=items.reshape(-1), columns=self.columns[pairs % width])

    def sets(self) -> Itemsets:
        """The sets with their items from the rarest to the most common."""
        counts = np.bincount(self.items, minlength=len(self.columns))
        rarest_first = np.argsort(counts, kind="stable")[int((counts == 0).sum()) :]
        places = np.zeros(len(counts), dtype=np.int64)
        places[rarest_first] = np.arange(len(rarest_first))
        rows, coded = np.argsort(self.order)[self.records], places[self.items]
        turn = np.lexsort((coded, rows))
        return Itemsets(
            starts=np.searchsorted(rows[turn], np.arange(len(self.persons) + 1)),
            items=coded[turn].astype(np.int32),
            numbers=rarest_first,
            sorts=self.columns[rarest_first],
            extra=self.extra,
            unknown=self.unknown[self.order],
            persons=self.persons[self.order],
            order=self.order,
        )


@dataclass(frozen=True)
class Supports:
    """How many persons have the combinations of items, as far as they occur."""

    smallest: Ints  # [sizes] the least support of a combination of 1, 2, … items; 0: there is none
    combinations: Ints  # [sizes] how many there are
    by_record: Ints  # [n] the least support of a record's combinations; 0: it has none


@dataclass(frozen=True, eq=False)
class Combinations:
    """Combinations of as many items as ``members`` has rows, wherever they occur."""

    members: Codes  # [size, occurrences]
    records: Ints  # [occurrences]
    supports: Ints  # [occurrences] how many persons have the combination
    n_distinct: int


@dataclass(frozen=True, eq=False)
class Itemsets:
    """The items of each record as whole numbers, rare ones first; one person's records next to each other."""

    starts: Ints  # [n + 1] where a record's items begin
    items: Codes  # ascending within a record, each once
    numbers: Ints  # [items] the number of each among the occurrences
    sorts: Ints  # [items] the column that each item is of
    extra: Ints  # [columns] persons whose sets in this column are missing and may be any
    unknown: Flags  # [n] records that lack one of their sets
    persons: Ints  # [n]
    order: Ints  # [n] the record of the table that each is

    @property
    def n_items(self) -> int:
        """The number of different items."""
        return len(self.sorts)

    def supports(self, size: int, tick: Callable[[int, int], None]) -> Supports:
        """Count who has each combination of up to ``size`` items."""
        n = len(self.persons)
        smallest, combinations = np.zeros((2, size), dtype=np.int64)
        by_record = np.full(n, np.iinfo(np.int64).max)
        for found in self.combinations(size, tick):
            place = len(found.members) - 1
            least, before = int(found.supports.min()), int(smallest[place])
            smallest[place] = min(least, before) if before else least
            combinations[place] += found.n_distinct
            starts = np.flatnonzero(np.append(True, found.records[1:] != found.records[:-1]))
            here = found.records[starts]
            by_record[here] = np.minimum(by_record[here], np.minimum.reduceat(found.supports, starts))
        by_record[by_record == np.iinfo(np.int64).max] = 0
        return Supports(smallest, combinations, by_record)

    def combinations(self, size: int, tick: Callable[[int, int], None]) -> Iterator[Combinations]:
        """All combinations of up to ``size`` items, by their rarest item, many at a time."""
        holders = np.repeat(np.arange(len(self.persons)), np.diff(self.starts))
        block = (np.cumsum(self.work(size)) // _BATCH).astype(np.int64)
        edges = np.append(np.flatnonzero(np.diff(block, prepend=-1)), self.n_items)
        for first, last in pairwise(edges):
            tick(int(last), self.n_items)
            places = np.flatnonzero((self.items >= first) & (self.items < last))
            yield from self._combinations(places, holders, size)

    def work(self, size: int) -> Floats:
        """How often combinations of up to ``size`` items occur, by their rarest item."""
        ends = np.repeat(self.starts[1:], np.diff(self.starts))
        behind = ends - np.arange(len(self.items)) - 1
        longest = int(behind.max(initial=0))
        chosen = [float(sum(comb(n, more) for more in range(size))) for n in range(longest + 1)]
        work = np.bincount(self.items, weights=np.array(chosen)[behind], minlength=self.n_items)
        return work.astype(np.float64)

    def _combinations(self, places: Ints, holders: Ints, size: int) -> Iterator[Combinations]:
        """The combinations whose rarest item stands at one of these places."""
        ids, n_ids = self.items[places] - self.items[places].min(initial=0), self.n_items
        members, sorts = self.items[places][None, :], self.sorts[self.items[places]]
        for length in range(1, size + 1):
            if length > 1:  # by each item behind the last, in the same record
                more = self.starts[holders[places] + 1] - places - 1
                rows = np.repeat(np.arange(len(places)), more)
                within = np.arange(len(rows)) - np.repeat(np.cumsum(more) - more, more)
                places = places[rows] + 1 + within
                sorts = np.where(self.sorts[self.items[places]] == sorts[rows], sorts[rows], -1)
                ids, n_ids = kernels.combinations.refine(ids[rows], n_ids, self.items[places], self.n_items)
                members = np.vstack([members[:, rows], self.items[places]])
            if not len(places):
                return
            records = holders[places]
            counts = kernels.combinations.count_persons(ids, n_ids, self.persons[records])
            supports = counts[ids] + np.append(self.extra, 0)[sorts]
            yield Combinations(members, records, supports, int((counts > 0).sum()))


def _items_of(table: Table, name: str) -> tuple[Ints, Ints, pl.Series, Flags]:
    """The records and codes of a column's items, the items from 1 on, and whose set has a hole (code 0)."""
    series = table.frame[name]
    if series.dtype == pl.Null:
        series = series.cast(pl.List(pl.String))
    if not isinstance(series.dtype, pl.List):
        raise DataError(
            f"column `{name}` does not hold lists of items, but {series.dtype.base_type()}",
            hint='declare its `separator` in the plan, as in separator = ";"',
        )
    frame = pl.DataFrame({"record": np.arange(len(series)), "item": series})
    empty = (series.list.len() == 0).fill_null(value=False)
    frame = frame.filter(~empty).explode("item").unique(maintain_order=True)
    item = frame["item"]
    if item.dtype in TEXTUAL:
        item = item.cast(pl.String)
    if item.dtype.is_float():
        item = item.fill_nan(None)
    codes = item.rank("dense").fill_null(0).to_numpy().astype(np.int64)
    holders = frame["record"].to_numpy().astype(np.int64)
    holes = np.zeros(len(series), dtype=np.bool_)
    holes[holders[codes == 0]] = True
    return holders, codes, item.drop_nulls().unique().sort(), holes
