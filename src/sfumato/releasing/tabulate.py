"""Tables by columns: how many persons each cell has, and the totals and means of amounts in it.

A missing value of a column to count by is a category of its own. Records that lack an amount are left out of
its total and its mean. Where a column numbers persons, a person counts once in a cell, however many records
are there, and a mean is the total by persons. By weight, a count is the sum of weights, of each person in a
cell that of the first record there, and totals and means are of amounts times the weight of their record.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from sfumato.data.persons import persons_of
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import PlanError
from sfumato.kernels.arrays import Flags, Floats, Ints
from sfumato.recipes.parts import CountTable


@dataclass(frozen=True, eq=False)
class Tabulation:
    """The cells of a table in order: the place of each record, and what an intruder may read in them."""

    asked: CountTable
    table: Table
    cells: Ints  # [records] the cell of each
    firsts: Ints  # [cells] a record of each

    @classmethod
    def of(cls, table: Table, asked: CountTable) -> Tabulation:
        """Sort the records into cells: the order of records tells who is who."""
        sets = [name for name in asked.columns if table.schema[name].kind is Kind.SET]
        if sets:
            raise PlanError(f"the table `{asked.name}` must not count by `{sets[0]}`, which holds sets")
        for name in asked.values:
            if not table.frame[name].dtype.is_numeric():
                raise PlanError(
                    f"the table `{asked.name}` needs numbers in `{name}`, got: generalised values",
                    hint='make it of the original: counts = "original"',
                )
        return cls(asked, table, *cells_of(table, asked.columns))

    @property
    def by_person(self) -> bool:
        """Whether persons are counted, by their numbers."""
        return self.table.schema.only_role(Role.PERSON) is not None

    @cached_property
    def persons(self) -> Ints:
        """Whose each record is."""
        return persons_of(self.table)

    @cached_property
    def codes(self) -> Ints:
        """[cells, columns] the place of each cell among the values of each column."""
        each = [cells_of(self.table, [name])[0][self.firsts] for name in self.asked.columns]
        return np.column_stack(each)

    @cached_property
    def counts(self) -> Ints:
        """How many persons, or records where none are numbered, each cell has."""
        return self.contributors(np.ones(len(self.cells), dtype=np.bool_))

    def contributors(self, records: Flags) -> Ints:
        """How many persons have such records in each cell."""
        return np.bincount(self.cells[self._once(records)], minlength=len(self.firsts))

    def _once(self, records: Flags) -> Ints:
        """The first of such records of each person in each cell."""
        rows = np.flatnonzero(records)
        if not self.by_person:
            return rows
        pairs = np.column_stack([self.cells[rows], self.persons[rows]])
        return rows[np.unique(pairs, axis=0, return_index=True)[1]]

    def amounts(self, name: str) -> Floats:
        """What each record adds to the total of a column, NaN where it is missing."""
        weights = self.table.weights if self.asked.weighted else None
        numbers = self.table.numbers(name)
        return numbers if weights is None else numbers * weights

    def to_table(self, rounded: Ints | None = None) -> Table:
        """The table as it is written; of rounded counts without those that are 0, as empty cells are."""
        shown, names = self.table.select(self.asked.columns), list(self.asked.columns)
        added: dict[str, pl.Series] = {}

        def add(name: str, values: Sequence[float] | Ints) -> None:
            taken = free_name(name, (*names, *added))
            added[taken] = pl.Series(taken, values)

        if self.asked.weighted and self.table.weights is not None:
            everyone = np.ones(len(self.cells), dtype=np.bool_)
            add("weighted", self._sums(self.table.weights, self._once(everyone)))
        else:
            add("persons" if self.by_person else "records", self.counts if rounded is None else rounded)
        for name in self.asked.values:
            present = ~np.isnan(self.amounts(name))
            totals = self._sums(self.amounts(name), np.flatnonzero(present))
            if name in self.asked.totals:
                add(f"total of {name}", totals)
            if name in self.asked.means:
                by = self.contributors(present).tolist()
                if self.asked.weighted and self.table.weights is not None:
                    by = self._sums(self.table.weights, self._once(present))
                pairs = zip(totals, by, strict=True)
                add(f"mean of {name}", [total / n if n else math.nan for total, n in pairs])
        frame = shown.frame[self.firsts].with_columns(
            each.fill_nan(None) if each.dtype.is_float() else each for each in added.values()
        )
        if rounded is not None:
            frame = frame.filter(pl.Series(rounded > 0))
        columns = [
            Column(name, Kind.CONTINUOUS, Role.OTHER, integer=each.dtype.is_integer())
            for name, each in added.items()
        ]
        return Table(frame, Schema((*shown.schema.columns, *columns)), nodes=shown.nodes)

    def _sums(self, amounts: Floats, rows: Ints) -> list[float]:
        """The sum in each cell, correctly rounded: whatever the order of the records, it is the same."""
        order = rows[np.argsort(self.cells[rows], kind="stable")]
        ends = np.cumsum(np.bincount(self.cells[rows], minlength=len(self.firsts)))
        return [math.fsum(part) for part in np.split(amounts[order], ends[:-1])]


def cells_of(table: Table, columns: Sequence[str]) -> tuple[Ints, Ints]:
    """The cell of each record, cells sorted by the values of columns, and the first record of each."""
    places = [str(place) for place, _ in enumerate(columns)]  # a column may be called * or ^a$
    frame = pl.DataFrame([table.frame[name].alias(at) for name, at in zip(columns, places, strict=True)])
    rows = frame.with_row_index("row").group_by(places, maintain_order=True).agg(pl.col("row"))
    grouped = rows.sort(places, nulls_last=True)["row"]
    sizes = grouped.list.len().to_numpy()
    cells: Ints = np.empty(len(frame), dtype=np.int64)
    cells[grouped.explode().to_numpy()] = np.repeat(np.arange(len(sizes)), sizes)
    return cells, grouped.list.first().to_numpy().astype(np.int64)


def free_name(name: str, taken: Collection[str]) -> str:
    """A name that no column has: the name itself, or with blanks added."""
    return name if name not in taken else free_name(f"{name} ", taken)
