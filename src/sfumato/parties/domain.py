"""The public domain of the keys: every combination of values that the hierarchies hold, whoever has it.

Counts are dense over it, so that their length and order tell nothing of which values occur.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
import polars as pl

from sfumato.data.generalised.levels import KeyLevels
from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.data.schema import Column, Schema
from sfumato.data.table import Table
from sfumato.errors import DataError, PlanError
from sfumato.io import conform
from sfumato.kernels.arrays import Ints
from sfumato.parties.masks import Words

#: The most numbers that a party sends in one turn: 128 MB.
MAX_CELLS = 2**24


@dataclass(frozen=True, eq=False)
class PublicDomain:
    """The keys with all values of their hierarchies: code 0 is missing, code i + 1 the leaf of row i."""

    keys: tuple[KeyLevels, ...]

    @classmethod
    def of(cls, columns: Sequence[Column], hierarchies: Mapping[str, Hierarchy]) -> PublicDomain:
        """Code all values that the hierarchies hold; each key is by itself."""
        keys = []
        for column in columns:
            hierarchy = hierarchies[column.name]
            texts = [*hierarchy.levels[:, 0], None]
            table = conform(pl.DataFrame({column.name: pl.Series(texts, dtype=pl.String)}), Schema((column,)))
            key = KeyLevels.of(table, column.name, hierarchy)
            if len(key.leaves) != len(texts):
                raise PlanError(f"the hierarchy of `{column.name}` has values that are missing codes")
            keys.append(key)
        return cls(tuple(keys))

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the keys."""
        return tuple(key.column.name for key in self.keys)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The number of codes of each key."""
        return tuple(len(key.leaves) for key in self.keys)

    @property
    def n_cells(self) -> int:
        """How many combinations of values there are, missing ones included."""
        return prod(self.shape)

    @property
    def heights(self) -> tuple[int, ...]:
        """The number of levels of each key."""
        return tuple(key.height for key in self.keys)

    def codes(self, table: Table) -> Ints:
        """The code of each record in each key; a value that its hierarchy lacks is refused unnamed."""
        return np.column_stack(
            [np.where(key.codes == 0, 0, key.leaves[key.codes] + 1) for key in self.levels_of(table)]
        ).astype(np.int64)

    def levels_of(self, table: Table) -> list[KeyLevels]:
        """The keys of a table, coded along the public hierarchies."""
        found = []
        for key in self.keys:
            try:
                found.append(KeyLevels.of(table, key.column.name, key.hierarchy))
            except DataError:
                raise DataError(
                    f"column `{key.column.name}` has values that its public hierarchy lacks",
                    hint="`sfumato hierarchy FILE COLUMN --check` counts them; correct them, or let all "
                    "parties agree on a larger hierarchy",
                ) from None
        return found

    def count(self, codes: Ints) -> Words:
        """How many records have each combination of codes."""
        cells = np.ravel_multi_index(tuple(codes.T), self.shape)
        return np.bincount(cells, minlength=self.n_cells).astype(np.uint64)

    def table(self, codes: Ints) -> Table:
        """The keys of records with these codes."""
        columns = [
            pl.Series(key.column.name, [None, *_leaves(key)], dtype=pl.String).gather(codes[:, place])
            for place, key in enumerate(self.keys)
        ]
        return conform(pl.DataFrame(columns), Schema(tuple(key.column for key in self.keys)))

    # Classes of a node ---------------------------------------------------------------------------------

    def class_shape(self, levels: Sequence[int]) -> tuple[int, ...]:
        """The number of labels of each key at a node, that of a missing value included."""
        return tuple(int(key.labels[level].max()) + 1 for key, level in zip(self.keys, levels, strict=True))

    def classes(self, codes: Ints, levels: Sequence[int]) -> Ints:
        """The class of each record at a node, as a number of the public domain."""
        labels = [
            key.labels[level][codes[:, place]]
            for place, (key, level) in enumerate(zip(self.keys, levels, strict=True))
        ]
        return np.ravel_multi_index(tuple(labels), self.class_shape(levels)).astype(np.int64)

    def examples(self, classes: Ints, levels: Sequence[int]) -> Ints:
        """Codes that stand for classes of a node: those of the first value that each label covers."""
        labels = np.unravel_index(classes, self.class_shape(levels))
        firsts = [
            np.unique(key.labels[level], return_index=True)[1]
            for key, level in zip(self.keys, levels, strict=True)
        ]
        return np.column_stack([first[label] for first, label in zip(firsts, labels, strict=True)])


def _leaves(key: KeyLevels) -> pl.Series:
    assert key.hierarchy is not None  # every key of a public domain has one
    return key.hierarchy.levels[:, 0]
