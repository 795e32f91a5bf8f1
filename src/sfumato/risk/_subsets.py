"""Subsets of the keys: who is alike in a few of them, for all choices of so many.

Each key is coded once. Subsets are gone through so that those which begin alike share their work: the classes
of three keys are those of the first two, cut finer by the third.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sfumato import kernels
from sfumato.data.classes.classes import column_codes
from sfumato.data.classes.packing import number
from sfumato.data.persons import persons_of
from sfumato.data.schema import Role
from sfumato.data.table import Table
from sfumato.kernels.arrays import Codes, Flags, Ints

#: So many subsets of the keys are gone through at most.
MAX_SUBSETS = 20_000


class Cut(NamedTuple):
    """The records cut into classes: the number of each record's class, and how many there are."""

    of_record: Codes
    n_classes: int


@dataclass(frozen=True, eq=False)
class KeyCodes:
    """The keys of a table as whole numbers, records of one person next to each other.

    What is asked and answered here is in this order; ``back`` puts it into that of the table.
    """

    table: Table
    names: tuple[str, ...]
    columns: tuple[Cut, ...]
    holes: tuple[Flags | None, ...]  # where each key is missing, None where it never is
    persons: Ints
    order: Ints | None  # None: that of the table

    @classmethod
    def of(cls, table: Table, names: tuple[str, ...]) -> KeyCodes:
        """Code the keys; a missing value is one of its own."""
        persons, order = persons_of(table), None
        if table.schema.only_role(Role.PERSON) is not None:
            order = np.argsort(persons, kind="stable")
            persons = persons[order]
        coded = [code_column(table, name, order, apart=True) for name in names]
        return cls(
            table, names, tuple(cut for cut, _ in coded), tuple(hole for _, hole in coded), persons, order
        )

    def subsets(self, size: int) -> Iterator[tuple[tuple[int, ...], Cut]]:
        """Yield all subsets of so many keys, as their positions, with the classes they make."""
        n = len(self.table)
        path: list[tuple[int, Cut]] = []  # the keys of the present subset, with the classes up to each
        for subset in combinations(range(len(self.names)), size):
            shared = 0
            while shared < len(path) and path[shared][0] == subset[shared]:
                shared += 1
            del path[shared:]
            for key in subset[shared:]:
                before = path[-1][1] if path else Cut(np.zeros(n, dtype=np.int32), min(n, 1))
                path.append((key, self.cut(before, self.columns[key])))
            yield subset, path[-1][1]

    def cut(self, coarse: Cut, finer: Cut) -> Cut:
        """Cut classes finer."""
        if coarse.n_classes <= 1:
            return finer
        return Cut(*kernels.combinations.refine(*coarse, *finer))

    def count(self, cut: Cut, *, only: Flags | None = None) -> Ints:
        """How many persons there are in each class, if wanted with a record among ``only`` these."""
        of_record, persons = cut.of_record, self.persons
        if only is not None:
            of_record, persons = of_record[only], persons[only]
        counts: Ints = kernels.combinations.count_persons(of_record, cut.n_classes, persons)
        return counts

    def incomplete(self, subset: tuple[int, ...]) -> Flags | None:
        """Which records lack one of these keys; None if none does."""
        there = [holes for key in subset if (holes := self.holes[key]) is not None]
        return np.logical_or.reduce(there) if there else None

    def back(self, values: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        """Put what was found of each record into the order of the table."""
        if self.order is None:
            return values
        placed = np.empty_like(values)
        placed[self.order] = values
        return placed

    def forth(self, values: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        """Put what is known of each record of the table into the order used here."""
        return values if self.order is None else values[self.order]


def code_column(
    table: Table, name: str, order: Ints | None, *, apart: bool = False
) -> tuple[Cut, Flags | None]:
    """One column as numbers from 0 without gaps, and where it is missing."""
    numbers, counts = number(column_codes(table, name, apart=apart))
    gone = table.missing(name)
    if order is not None:
        numbers, gone = numbers[order], gone[order]
    return Cut(numbers.astype(np.int32), len(counts)), gone if gone.any() else None


def too_many(measure: str, n_keys: int, sizes: range) -> str | None:
    """Why there are too many subsets of these sizes; None if there are not."""
    wanted = sum(comb(n_keys, size) for size in sizes)
    if wanted <= MAX_SUBSETS:
        return None
    return (
        f"{measure} must look at no more than {MAX_SUBSETS:,} subsets of the keys, got: {wanted:,} of "
        f"{n_keys} keys; ask for fewer keys at a time, or let the scenario know fewer columns"
    )
