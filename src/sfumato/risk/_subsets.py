"""Subsets of the keys: who is alike in a few of them, for all choices of so many.

Each key is coded once. Subsets are gone through so that those which begin alike share their work: the classes
of three keys are those of the first two, cut finer by the third.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from sfumato import kernels
from sfumato.data.classes.classes import Classes, Missing, column_codes
from sfumato.data.classes.packing import number
from sfumato.data.persons import persons_of
from sfumato.data.schema import Role
from sfumato.data.table import Table
from sfumato.kernels.arrays import Bytes, Codes, Flags, Ints

#: So many subsets of the keys are gone through at most.
MAX_SUBSETS = 20_000


class KeyPartition(NamedTuple):
    """The records cut into classes: the number of each record's class, and how many there are."""

    of_record: Codes
    n_classes: int


@dataclass(frozen=True, eq=False)
class KeyCodes:
    """The keys of a table as whole numbers, records of one person next to each other.

    What is asked and answered here is in this order; ``in_table_order`` puts it into that of the table.
    """

    table: Table
    names: tuple[str, ...]
    columns: tuple[KeyPartition, ...]
    missing: tuple[Flags | None, ...]  # where each key is missing, None where it never is
    persons: Ints
    order: Ints | None  # None: that of the table

    @classmethod
    def of(cls, table: Table, names: tuple[str, ...]) -> KeyCodes:
        """Code the keys; a missing value is one of its own."""
        persons, order = persons_of(table), None
        if table.schema.only_role(Role.PERSON) is not None:
            order = np.argsort(persons, kind="stable")
            persons = persons[order]
        coded = (code_column(table, name, order, apart=True) for name in names)
        columns, missing = zip(*coded, strict=True)
        return cls(table, names, columns, missing, persons, order)

    def subsets(self, size: int) -> Iterator[tuple[tuple[int, ...], KeyPartition]]:
        """Yield all subsets of so many keys, as their positions, with the classes they make."""
        n = len(self.table)
        path: list[tuple[int, KeyPartition]] = []  # the keys of the subset, with the classes up to each
        for subset in combinations(range(len(self.names)), size):
            shared = 0
            while shared < len(path) and path[shared][0] == subset[shared]:
                shared += 1
            del path[shared:]
            for key in subset[shared:]:
                before = path[-1][1] if path else KeyPartition(np.zeros(n, dtype=np.int32), min(n, 1))
                path.append((key, self.cut(before, self.columns[key])))
            yield subset, path[-1][1]

    def cut(self, coarse: KeyPartition, finer: KeyPartition) -> KeyPartition:
        """Cut classes finer."""
        if coarse.n_classes <= 1:
            return finer
        return KeyPartition(*kernels.combinations.refine(*coarse, *finer))

    def count(self, cut: KeyPartition, *, only: Flags | None = None) -> Ints:
        """How many persons there are in each class, if wanted with a record among ``only`` these."""
        of_record, persons = cut.of_record, self.persons
        if only is not None:
            of_record, persons = of_record[only], persons[only]
        counts: Ints = kernels.combinations.count_persons(of_record, cut.n_classes, persons)
        return counts

    def incomplete(self, subset: tuple[int, ...]) -> Flags | None:
        """Which records lack one of these keys; None if none does."""
        there = [holes for key in subset if (holes := self.missing[key]) is not None]
        return np.logical_or.reduce(there) if there else None

    def overlapping(self, subset: tuple[int, ...]) -> Classes:
        """The classes of a subset in which a missing key agrees with every value."""
        return Classes.of(self.table, [self.names[key] for key in subset], missing="any")

    def in_table_order(self, values: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        """Put what was found of each record into the order of the table."""
        if self.order is None:
            return values
        placed = np.empty_like(values)
        placed[self.order] = values
        return placed

    def forth(self, values: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        """Put what is known of each record of the table into the order used here."""
        return values if self.order is None else values[self.order]


class SubsetCounts(NamedTuple):
    """Who is unsafe in a subset of the keys, for whom no part of it is, and how many combinations are."""

    subset: tuple[int, ...]
    unsafe: Flags
    smallest: Flags
    n_combinations: int


class SmallestUnsafe:
    """Combinations of up to ``dimension`` keys that fewer than ``k`` persons have, and the smallest of them.

    Sizes must be asked for in their order: who is unsafe in a subset is in every larger one.
    """

    def __init__(self, keys: KeyCodes, *, k: int, missing: Missing, dimension: int) -> None:
        self.keys, self.k, self.missing = keys, k, missing
        self.sizes = range(1, min(dimension, len(keys.names)) + 1)
        self._below: dict[tuple[int, ...], Bytes] = {}  # who is unsafe in subsets of one key less

    def of_size(self, size: int) -> Iterator[SubsetCounts]:
        """Go through the subsets of so many keys."""
        level: dict[tuple[int, ...], Bytes] = {}
        for subset, cut in self.keys.subsets(size):
            unsafe, n_combinations = self._unsafe(subset, cut)
            yield SubsetCounts(subset, unsafe, unsafe & ~self._in_a_part(subset), n_combinations)
            if size < self.sizes[-1]:
                level[subset] = np.packbits(unsafe)
        self._below = level

    def _in_a_part(self, subset: tuple[int, ...]) -> Flags:
        """Who is unsafe in the subset without one of its keys: then a smaller combination is to blame."""
        n = len(self.keys.table)
        if len(subset) == 1:
            return np.zeros(n, dtype=np.bool_)
        parts = [self._below[part] for part in combinations(subset, len(subset) - 1)]
        return np.unpackbits(np.bitwise_or.reduce(parts), count=n).astype(np.bool_)

    def _unsafe(self, subset: tuple[int, ...], cut: KeyPartition) -> tuple[Flags, int]:
        """Whose combination is unsafe, and how many combinations are."""
        keys, holes = self.keys, self.keys.incomplete(subset)
        if self.missing == "any" and holes is not None:
            classes = keys.overlapping(subset)
            rare = classes.persons < self.k
            return keys.forth(rare[classes.of_record]).astype(np.bool_), int(rare.sum())
        rare = keys.count(cut) < self.k
        flags: Flags = rare[cut.of_record]
        if self.missing == "worst" and holes is not None:
            # Combinations with a missing value are alone, each for itself.
            sizes = np.bincount(cut.of_record[~holes], minlength=cut.n_classes)
            return flags | holes, int((sizes[rare] > 0).sum()) + int(holes.sum())
        return flags, int(rare.sum())


#: A column as numbers from 0 without gaps, and where it is missing; None if it never is.
CodedColumn: TypeAlias = tuple[KeyPartition, Flags | None]


def code_column(table: Table, name: str, order: Ints | None, *, apart: bool = False) -> CodedColumn:
    """Number the values of a column."""
    numbers, counts = number(column_codes(table, name, apart=apart))
    gone = table.missing(name)
    if order is not None:
        numbers, gone = numbers[order], gone[order]
    return KeyPartition(numbers.astype(np.int32), len(counts)), gone if gone.any() else None


def too_many(
    measure: str, n_keys: int, sizes: range, *, most: int = MAX_SUBSETS, by: str = "dimension"
) -> str | None:
    """Why there are too many subsets of these sizes, which a parameter tells; None if there are not."""
    wanted = sum(comb(n_keys, size) for size in sizes)
    if wanted <= most:
        return None
    return (
        f"{measure} would look at {wanted:,} subsets of {n_keys} keys, more than {most:,}: set a "
        f"smaller {by}, or let the intruder of the scenario know fewer columns"
    )
