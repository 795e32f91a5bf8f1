"""Sets of items: who is rare in a few of the items of a set-valued column (purchases, diagnoses, places)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import comb
from typing import Literal

import numpy as np
import polars as pl

from sfumato import kernels
from sfumato.core.measure import Measure, Score
from sfumato.core.params import param
from sfumato.core.run import Run
from sfumato.data.classes.classes import seen_table
from sfumato.data.evidence import Evidence
from sfumato.data.persons import persons_of
from sfumato.data.schema import Kind, Role
from sfumato.data.table import TEXTUAL, Table
from sfumato.errors import DataError
from sfumato.kernels.arrays import Codes, Flags, Floats, Ints
from sfumato.risk._key_measures import EMPTY, by_original, counted_in

#: Occurrences of combinations that are counted at most, in all and of those that share their rarest item.
MAX_COMBINATIONS = 1_000_000_000
MAX_COMBINATIONS_OF_ONE = 100_000_000

#: Occurrences that are held at a time, where the rarest item does not have more.
_BATCH = 4_000_000


class KmAnonymity(Measure):
    r"""Smallest number of records that share any combination of up to m items that occurs.

    .. math::

        k = \min_{X : |X| \le m,\ \mathrm{supp}(X) > 0} \mathrm{supp}(X), \qquad
        \mathrm{supp}(X) = |\{r : X \subseteq r\}|

    A table of sets is :math:`k^m`-anonymous if an intruder who knows up to :math:`m` items of a person
    cannot narrow them down to fewer than :math:`k` records. Of several set-valued columns the items are
    known together, an item of one column being different from the same in another.

    See Also
    --------
    KAnonymity : columns of single values, all of them known.
    LkcPrivacy : columns of single values, a few of them known.

    Notes
    -----
    **How to read it.** 1 means that somebody is pointed out by m items. ``by_record`` is the
    smallest number that share one of the record's combinations, so it says whose set must be changed;
    ``details`` has the smallest support and the number of combinations for each number of items
    (``smallest_1``, ``combinations_1``, …).

    **Doubt.** Exact.

    **Missing.** A set that is missing is an item of its own by default (``category``), and so is a missing
    item. As ``any`` such a set counts for every combination of items of its column (but not together with
    items of other columns), and a set of which some items are missing for those that are there; at ``worst``
    a record without its set, or an item of it, is alone. An empty set is not missing: nothing of it can be
    known.

    **Units.** Where a column tells whose record it is, persons are counted that have all the items in one
    record; as ``any`` those whose sets are all missing are added.

    **Cost.** Grows with the number of combinations in the sets: a set of :math:`s` items has
    :math:`\binom{s}{m}` of :math:`m`. More than a thousand million occurrences are refused.

    Examples
    --------
    >>> import polars as pl
    >>> from sfumato.core.run import Run
    >>> from sfumato.data.evidence import Evidence
    >>> from sfumato.data.schema import Column, Kind, Role, Schema
    >>> from sfumato.data.table import Table
    >>> baskets = [["beer", "wine"], ["beer", "milk"], ["beer", "milk"], ["beer", "wine"]]
    >>> frame = pl.DataFrame({"basket": baskets})
    >>> table = Table(frame, Schema((Column("basket", Kind.SET, Role.KEY),)))
    >>> KmAnonymity(m=2).score(Evidence(table), Run(seed=1)).value
    2.0
    """

    name = "km-anonymity"
    family = "who is alike"
    title = "kᵐ-anonymity"
    aspect = "risk"
    better = "high"
    bounds = (0.0, np.inf)
    kinds = frozenset({Kind.SET})
    needs_release = False
    references = ("terrovitis2008",)
    cost = "n"

    m: int = param(2, "Largest number of items an intruder knows.", ge=1, le=5)
    missing: Literal["category", "any", "worst"] = param(
        "category",
        "What a missing set counts for: an item of its own, any items, or the worst it could be.",
    )

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Count who has each combination."""
        table, names = seen_table(evidence), self.columns(evidence)
        if not len(table):
            return Score.not_estimable(EMPTY)
        sets = Sets.of(table, names, missing=self.missing)
        work = sets.work(self.m)
        if work.sum() > MAX_COMBINATIONS or work.max(initial=0) > MAX_COMBINATIONS_OF_ONE:
            return Score.not_estimable(
                f"the sets must hold at most {MAX_COMBINATIONS:,} combinations of up to {self.m} items, and "
                f"{MAX_COMBINATIONS_OF_ONE:,} with the same rarest item, got: {work.sum():.3g} and "
                f"{work.max():.3g}; ask for fewer items at a time, or group items"
            )
        found = sets.supports(self.m, run, self.title)
        by_record = found.by_record
        if self.missing == "worst":
            by_record = np.where(sets.unknown, 1, by_record)
        if not by_record.any():
            return Score.not_estimable("no record has an item")
        # Of whom no item can be known, nothing is: everybody has no item at least.
        by_record = np.where(by_record > 0, by_record, len(np.unique(sets.persons)))
        details: dict[str, float | int | str] = {
            "columns": len(names),
            "columns_left_out": len(evidence.known_columns) - len(names),
            "items": sets.n_items,
        }
        for size in range(1, self.m + 1):
            details |= {
                f"combinations_{size}": int(found.combinations[size - 1]),
                f"smallest_{size}": int(found.smallest[size - 1]),
            }
        in_turn = by_record[np.argsort(sets.order)].astype(np.float64)
        return Score(
            value=float(by_record.min()),
            by_record=by_original(evidence, in_turn, worst="low"),
            details=details | {"counted": counted_in(table)},
        )


@dataclass(frozen=True)
class Supports:
    """How many persons have the combinations of items, as far as they occur."""

    smallest: Ints  # [sizes] the least support of a combination of 1, 2, … items; 0: there is none
    combinations: Ints  # [sizes] how many there are
    by_record: Ints  # [n] the least support of a record's combinations; 0: it has none


@dataclass(frozen=True, eq=False)
class Sets:
    """The items of each record as whole numbers, rare ones first; one person's records next to each other."""

    starts: Ints  # [n + 1] where a record's items begin
    items: Codes  # ascending within a record, each once
    sorts: Ints  # [items] the column that each item is of
    extra: Ints  # [columns] persons whose sets in this column are missing and may be any
    unknown: Flags  # [n] records that lack one of their sets
    persons: Ints  # [n]
    order: Ints  # [n] the record of the table that each is

    @property
    def n_items(self) -> int:
        """The number of different items."""
        return len(self.sorts)

    @classmethod
    def of(
        cls, table: Table, names: tuple[str, ...], *, missing: Literal["category", "any", "worst"]
    ) -> Sets:
        """Code the items of the set-valued columns."""
        persons = persons_of(table)
        n = len(persons)
        order = np.argsort(persons, kind="stable") if table.schema.only_role(Role.PERSON) else np.arange(n)
        unknown, extra = np.zeros(n, dtype=np.bool_), np.zeros(len(names), dtype=np.int64)
        records: list[Ints] = []
        items: list[Ints] = []
        sorts: list[Ints] = []
        for i, name in enumerate(names):
            holders, codes, n_codes, holes = _items_of(table, name)
            unknown |= holes
            if missing == "any":  # what is there of a set with a hole is known all the same
                holders, codes = holders[codes > 0], codes[codes > 0]
                holes[holders] = False
                extra[i] = len(np.setdiff1d(persons[holes], persons[~holes]))  # who has another may have both
            elif missing == "worst":  # a set with a hole is not known; as a category a hole is the code 0
                kept = ~holes[holders]
                holders, codes = holders[kept], codes[kept]
            records.append(holders)
            items.append(codes + sum(len(each) for each in sorts))
            sorts.append(np.full(n_codes, i, dtype=np.int64))
        every_record, every_item = np.concatenate(records), np.concatenate(items)
        every_sort = np.concatenate(sorts)
        counts = np.bincount(every_item, minlength=len(every_sort))
        rarest_first = np.argsort(counts, kind="stable")[int((counts == 0).sum()) :]
        places = np.zeros(len(counts), dtype=np.int64)
        places[rarest_first] = np.arange(len(rarest_first))
        rows, coded = np.argsort(order)[every_record], places[every_item]
        turn = np.lexsort((coded, rows))
        starts = np.searchsorted(rows[turn], np.arange(n + 1))
        return cls(
            starts, coded[turn].astype(np.int32), every_sort[rarest_first], extra, unknown[order],
            persons[order], order,
        )  # fmt: skip

    def supports(self, size: int, run: Run, task: str) -> Supports:
        """Count who has each combination of up to ``size`` items, by its rarest item."""
        found = Supports(
            np.zeros(size, dtype=np.int64),
            np.zeros(size, dtype=np.int64),
            np.full(len(self.persons), np.iinfo(np.int64).max),
        )
        holders = np.repeat(np.arange(len(self.persons)), np.diff(self.starts))
        block = (np.cumsum(self.work(size)) // _BATCH).astype(np.int64)
        edges = np.append(np.flatnonzero(np.diff(block, prepend=-1)), self.n_items)
        for first, last in pairwise(edges):
            run.tell(task, int(last), self.n_items)
            self._count(np.flatnonzero((self.items >= first) & (self.items < last)), holders, size, found)
        found.by_record[found.by_record == np.iinfo(np.int64).max] = 0
        return found

    def work(self, size: int) -> Floats:
        """How often combinations of up to ``size`` items occur, by their rarest item."""
        ends = np.repeat(self.starts[1:], np.diff(self.starts))
        behind = ends - np.arange(len(self.items)) - 1
        longest = int(behind.max(initial=0))
        chosen = [float(sum(comb(n, more) for more in range(size))) for n in range(longest + 1)]
        work = np.bincount(self.items, weights=np.array(chosen)[behind], minlength=self.n_items)
        return work.astype(np.float64)

    def _count(self, places: Ints, holders: Ints, size: int, found: Supports) -> None:
        """Count the combinations whose rarest item stands at one of these places, and note the least."""
        ids, n_ids = self.items[places] - self.items[places].min(initial=0), self.n_items
        sorts = self.sorts[self.items[places]]
        for length in range(1, size + 1):
            if length > 1:  # by each item behind the last, in the same record
                more = self.starts[holders[places] + 1] - places - 1
                rows = np.repeat(np.arange(len(places)), more)
                within = np.arange(len(rows)) - np.repeat(np.cumsum(more) - more, more)
                places = places[rows] + 1 + within
                sorts = np.where(self.sorts[self.items[places]] == sorts[rows], sorts[rows], -1)
                ids, n_ids = kernels.combinations.refine(ids[rows], n_ids, self.items[places], self.n_items)
            if not len(places):
                return
            records = holders[places]
            counts = kernels.combinations.count_persons(ids, n_ids, self.persons[records])
            supports = counts[ids] + np.append(self.extra, 0)[sorts]
            least = int(supports.min())
            before = int(found.smallest[length - 1])
            found.smallest[length - 1] = min(least, before) if before else least
            found.combinations[length - 1] += int((counts > 0).sum())
            starts = np.flatnonzero(np.append(True, records[1:] != records[:-1]))
            here = records[starts]
            found.by_record[here] = np.minimum(found.by_record[here], np.minimum.reduceat(supports, starts))


def _items_of(table: Table, name: str) -> tuple[Ints, Ints, int, Flags]:
    """The records and codes of a column's items, the number of codes, and whose set has a hole (code 0)."""
    series = table.frame[name]
    if series.dtype == pl.Null:
        series = series.cast(pl.List(pl.String))
    if not isinstance(series.dtype, pl.List):
        raise DataError(f"column `{name}` must hold lists of items, got: {series.dtype.base_type()}")
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
    return holders, codes, int(codes.max(initial=0)) + 1, holes
