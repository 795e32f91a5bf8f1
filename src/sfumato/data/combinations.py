"""Which combinations of columns tell records apart: the finder of quasi-identifiers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from sfumato import kernels
from sfumato.data.classes.classes import column_codes
from sfumato.data.classes.packing import number
from sfumato.data.notebook import Tabular
from sfumato.data.schema import COMPARABLE, STRUCTURAL_ROLES
from sfumato.data.table import Table
from sfumato.errors import ParameterError, count_noun
from sfumato.kernels.arrays import Ints

if TYPE_CHECKING:
    from sfumato.kernels.separation import Separations

#: So many columns can be combined, and so many combinations of them looked at.
_MOST_COLUMNS, _MOST_SUBSETS = 62, 2_000_000

#: Combinations of each size that are shown.
_SHOWN = 20


@dataclass(frozen=True, eq=False)
class ColumnCombinations(Tabular):
    r"""How well every combination of up to ``largest`` columns tells records apart.

    *Distinction* is the number of distinct combinations of values as a share of the records, *separation* the
    share of pairs of records that differ (Motwani and Xu 2007), *alone* the share of records that no other is
    equal to. A missing value is one of its own. Records are counted, not persons.
    """

    records: int
    names: tuple[str, ...]
    largest: int
    found: Separations

    @cached_property
    def order(self) -> Ints:
        """The combinations, small ones first; of a size those that tell most apart."""
        sizes, found = np.bitwise_count(self.found.subsets), self.found
        order: Ints = np.lexsort((found.subsets, found.pairs, -found.classes, sizes))
        return order

    def to_frame(self) -> pl.DataFrame:
        """A row for each combination, small ones first; of a size those that tell most apart."""
        return self._frame(self.order)

    def strongest(self, most: int = _SHOWN) -> pl.DataFrame:
        """The first so many combinations of each size."""
        sizes = np.bitwise_count(self.found.subsets[self.order])
        firsts = np.searchsorted(sizes, sizes)
        return self._frame(self.order[np.arange(len(sizes)) - firsts < most])

    def _frame(self, rows: Ints) -> pl.DataFrame:
        found, n = self.found, self.records
        pairs = n * (n - 1) // 2
        names = np.array(self.names, dtype=object)
        columns = [
            [str(name) for name in sorted(names[_places(bits)])] for bits in found.subsets[rows].tolist()
        ]
        return pl.DataFrame(
            {
                "columns": pl.Series(columns, dtype=pl.List(pl.String)),
                "size": np.bitwise_count(found.subsets[rows]).astype(np.int64),
                "distinction": found.classes[rows] / max(n, 1),
                "separation": (pairs - found.pairs[rows]) / pairs if pairs else np.zeros(len(rows)),
                "alone": found.alone[rows] / max(n, 1),
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON: the strongest of each size."""
        return {
            "columns": sorted(self.names),
            "largest": self.largest,
            "combinations": len(self.found.subsets),
            "strongest": self.strongest().to_dicts(),
        }


def _places(bits: int) -> list[int]:
    return [place for place in range(bits.bit_length()) if bits >> place & 1]


def combine_columns(table: Table, largest: int) -> ColumnCombinations:
    """Look at every combination of up to ``largest`` columns that an intruder could know.

    Identifiers, weights and numbers of persons and households are left out, and so are columns of sets.
    """
    names = [
        each.name for each in table.schema.columns
        if each.role not in STRUCTURAL_ROLES and each.kind in COMPARABLE
    ]  # fmt: skip
    largest = min(largest, len(names))
    _require_few(names, largest)
    codes = [number(column_codes(table, name, apart=True)) for name in names]
    # Columns of many values first: then few records are left to look at when the many small ones come.
    order = sorted(range(len(names)), key=lambda place: (-len(codes[place][1]), names[place]))
    columns = np.array([codes[place][0] for place in order], dtype=np.int32).reshape(len(names), len(table))
    found = kernels.separation.separate(columns, largest)
    return ColumnCombinations(len(table), tuple(names[place] for place in order), largest, found)


def _require_few(names: Sequence[str], largest: int) -> None:
    wanted = sum(comb(len(names), size) for size in range(1, largest + 1))
    if largest < 0 or len(names) > _MOST_COLUMNS or wanted > _MOST_SUBSETS:
        raise ParameterError(
            f"at most {_MOST_SUBSETS:,} combinations of {_MOST_COLUMNS} columns can be looked at, got: "
            f"{wanted:,} of {count_noun(len(names), 'column')}",
            hint="ask for combinations of fewer columns, or give the role `identifier` to those nobody knows",
        )
