"""Generalisation hierarchies: which coarser label each value of a column climbs to.

A hierarchy is a table of text with one row per leaf value and one column per level, from the value itself
(level 0) to a single root, by convention the wildcard ``*``. `sfumato.data.hierarchy.build` makes them from
values, and `sfumato.io.hierarchies` reads and writes them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
import polars as pl

from sfumato.data.generalised.nodes import (
    MISSING,
    UNSEEN,
    WILDCARD,
    DType,
    Nodes,
    canonical_text,
    match_leaves,
)
from sfumato.errors import DataError, ParameterError, PlanError, count_noun
from sfumato.kernels.arrays import Codes

Unseen: TypeAlias = Literal["raise", "root"]


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """The levels of generalisation of one column.

    The constructor takes any table of text, so that a faulty one can be shown and mended; `check` lists what
    is wrong with it, and whatever climbs it refuses while anything is. `from_levels`, and all that builds or
    reads one through it, adds the root where there is none and returns sound hierarchies only.

    Parameters
    ----------
    name : str
        What it is called in messages, usually the column's name.
    levels : polars.DataFrame
        One row per leaf value, one column of text per level; null where a row has fewer levels.
    """

    name: str
    levels: pl.DataFrame

    def __post_init__(self) -> None:
        if self.levels.width == 0:
            raise DataError(f"the hierarchy `{self.name}` has no levels")
        columns = [canonical_text(level).alias(str(i)) for i, level in enumerate(self.levels)]
        object.__setattr__(self, "levels", pl.DataFrame(columns))

    @classmethod
    def from_levels(cls, levels: pl.DataFrame, *, name: str = "") -> Hierarchy:
        """Build from a table of levels; a root ``*`` is added where the last level is not a single label."""
        if levels.width == 1 or levels.to_series(-1).drop_nulls().n_unique() != 1:
            levels = levels.with_columns(pl.lit(WILDCARD).alias("root of all"))
        hierarchy = cls(name, levels)
        hierarchy.require()
        return hierarchy

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Hierarchy):
            return NotImplemented
        return self.name == other.name and self.levels.equals(other.levels)

    def __hash__(self) -> int:
        return hash((self.name, self.levels.shape))

    def __repr__(self) -> str:
        # Counts only: leaves are values of the data, and a traceback may show this.
        return f"Hierarchy({self.name!r}, {self.n_leaves} leaves, {self.height} levels)"

    # What it is ----------------------------------------------------------------------------------------

    @property
    def height(self) -> int:
        """The number of levels, the values themselves and the root included."""
        return self.levels.width

    @property
    def n_leaves(self) -> int:
        """The number of leaf values."""
        return self.levels.height

    @property
    def root(self) -> str:
        """The single label of the last level."""
        return str(self._level_codes[-1][0][0])

    def labels(self, level: int) -> pl.Series:
        """The distinct labels of a level, in the order of its rows; `codes` are positions in it.

        A label that also stands on a lower level and covers other leaves there ("Other" under "Other") has
        its level added, ``Other (level 1)``: in a table of mixed levels nobody could tell the two apart.
        """
        return self._at(level)[0]

    def leaf_codes(self, level: int) -> Codes:
        """The code at a level of each leaf, in the order of the rows."""
        return self._at(level)[1]

    def _at(self, level: int) -> tuple[pl.Series, Codes]:
        if not 0 <= level < self.height:
            raise ParameterError(
                f"`level` of the hierarchy `{self.name}` must be from 0 to {self.height - 1}, got: `{level}`"
            )
        return self._level_codes[level]

    @cached_property
    def _level_codes(self) -> list[tuple[pl.Series, Codes]]:
        """The labels of each level and, for each leaf, the position of its label among them."""
        self.require()
        coded = []
        taken: set[str] = set()
        for i, level in enumerate(self.levels):
            renamed = {}
            ambiguous = self._ambiguous(i)
            if ambiguous and not taken:
                taken = set(pl.concat([level.alias("") for level in self.levels]).unique())
            for label in ambiguous:
                suffixed = f"{label} (level {i})"
                while suffixed in taken:
                    suffixed += "'"
                renamed[label] = suffixed
            taken.update(renamed.values())
            shown = level.replace(list(renamed), list(renamed.values())) if renamed else level
            labels = shown.unique(maintain_order=True).alias("labels")
            coded.append((labels, match_leaves(shown, labels)))
        return coded

    def _ambiguous(self, level: int) -> list[str]:
        """The labels of a level that cover other leaves on a lower one; the wildcard covers all on any."""
        here = self.levels[:, level]
        labels = here.unique()
        labels = labels.filter(labels != WILDCARD)
        clashes: set[str] = set()
        for lower in self.levels[:, :level]:
            shared = labels.filter(labels.is_in(lower.implode()))
            if not len(shared):
                continue
            # A label covers the same leaves on both levels unless it stands in a row where they differ.
            apart = (
                self.levels.select(here.alias("here"), lower.alias("lower")).filter(here != lower).unique()
            )
            standing = shared.is_in(apart["here"].implode()) | shared.is_in(apart["lower"].implode())
            clashes |= set(shared.filter(standing))
        return sorted(clashes)

    # What is wrong with it -----------------------------------------------------------------------------

    def check(self, values: pl.Series | None = None, column: str = "") -> list[str]:
        """The faults of the hierarchy, and of the ``values`` of a ``column`` that it does not hold."""
        faults = list(self._faults)
        if values is not None:
            found = match_leaves(values, self.levels[:, 0].drop_nulls().unique())
            unseen = values.filter(pl.Series(found == UNSEEN))
            if len(unseen):
                faults.append(
                    f"{count_noun(unseen.n_unique(), 'value')} of `{column or values.name}` "
                    f"({count_noun(len(unseen), 'record')}) not among its {self.n_leaves} leaves"
                )
        return faults

    @cached_property
    def _faults(self) -> tuple[str, ...]:
        leaves, faults = self.levels[:, 0], []
        if not self.n_leaves:
            faults.append("no values")
        if n_short := self.levels.select(pl.any_horizontal(pl.all().is_null()).sum()).item():
            faults.append(
                f"{count_noun(n_short, 'row')} with fewer levels than the {self.height} of the deepest"
            )
        if n_twice := leaves.drop_nulls().value_counts().filter(pl.col("count") > 1).height:
            faults.append(f"{count_noun(n_twice, 'value')} on more than one row")
        if (leaves == WILDCARD).any():
            faults.append(f"a value called `{WILDCARD}`, which is the wildcard's name")
        n_narrowed = 0
        for level in range(self.height - 1):
            steps = self.levels[:, level : level + 2].drop_nulls().unique()
            if level:
                n_narrowed += steps.filter(steps[:, 0] == WILDCARD, steps[:, 1] != WILDCARD).height
            if n_split := steps[:, 0].value_counts().filter(pl.col("count") > 1).height:
                labels = f"{count_noun(n_split, 'label')} of level {level}"
                faults.append(f"{labels} with several parents at level {level + 1}")
        if n_narrowed:
            faults.append(f"{count_noun(n_narrowed, 'label')} above `{WILDCARD}`, which nothing can be above")
        if (n_roots := self.levels[:, -1].drop_nulls().n_unique()) > 1:
            faults.append(f"{n_roots} roots instead of one at level {self.height - 1}")
        return tuple(faults)

    def require(self, values: pl.Series | None = None, column: str = "") -> None:
        """Raise what `check` finds: a PlanError, or a DataError if only the data are at fault."""
        faults = self.check(values, column)
        if self._faults:
            raise PlanError.gather(
                f"the hierarchy `{self.name}`",
                faults,
                hint="each row leads from a distinct value through labels with one parent each to the root",
            )
        if faults:
            raise DataError(
                f"the hierarchy `{self.name}` does not cover its column: {faults[0]}",
                hint='add the rows, or let unseen values climb to the root with unseen="root"',
            )

    # Climbing ------------------------------------------------------------------------------------------

    def codes(self, values: pl.Series, level: int, *, unseen: Unseen = "raise") -> Codes:
        """The position of each value's label among `labels(level)`, −1 where it is missing.

        Numbers match by value: the leaf ``25`` is both 25 and 25.0. With ``unseen="root"`` a value that is no
        leaf has the code of the root, which follows the labels of the level where it is not one of them.
        """
        labels, of_leaf = self._at(level)
        found = match_leaves(values, self.levels[:, 0])
        if unseen != "root" and (found == UNSEEN).any():
            self.require(values)
        root = labels.index_of(self.root)
        # Codes −2 and −1, unseen and missing, are the last two places.
        ends = np.array([len(labels) if root is None else root, MISSING], dtype=np.int32)
        return np.concatenate([of_leaf, ends])[found]

    def climb(self, values: pl.Series, level: int) -> pl.Series:
        """The labels of ``values`` at a level, as an Enum; what is missing stays missing."""
        codes, labels = self.codes(values, level), self.labels(level)
        shown = labels.cast(pl.Enum(labels))
        return shown.gather(pl.Series(codes).replace(MISSING, None)).alias(values.name)

    @cached_property
    def ranges_read(self) -> dict[DType, list[pl.Series] | None]:
        """What was read of the labels as ranges of a type, level by level: a search asks again and again."""
        return {}

    def nodes(self) -> Nodes:
        """Every label of every level, and the wildcard, with the leaves that it covers."""
        return self._nodes

    @cached_property
    def _nodes(self) -> Nodes:
        shown = [labels.gather(codes) for labels, codes in self._level_codes]
        stacked = pl.concat(shown)
        labels = pl.concat([stacked, pl.Series("labels", [WILDCARD])]).unique(maintain_order=True)
        rows, codes = (
            np.tile(np.arange(self.n_leaves, dtype=np.int32), self.height),
            match_leaves(stacked, labels),
        )
        levels = np.full(len(labels), self.height - 1)
        np.minimum.at(levels, codes, np.repeat(np.arange(self.height), self.n_leaves))
        return replace(Nodes.of_pairs(self.levels[:, 0].alias("leaves"), labels, codes, rows), levels=levels)
