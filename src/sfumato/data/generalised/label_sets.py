"""Labels that stand for several leaves, and the runs of numbers that cells stand for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from sfumato.data.classes.packing import fits
from sfumato.data.generalised.nodes import Nodes
from sfumato.kernels.arrays import Flags, Floats, Ints


class Runs(NamedTuple):
    """The runs of numbers that each cell stands for, those of one cell next to each other."""

    ends: Floats  # [2, runs] from and to, both included
    starts: Ints  # [cells] its first run
    counts: Ints  # [cells] how many

    def laid_out(self, cells: Ints) -> tuple[Ints, Ints]:
        """Name each of these cells (by place) once for each of its runs, and the runs."""
        counts = self.counts[cells]
        places = np.repeat(np.arange(len(cells)), counts)
        firsts = np.repeat(self.starts[cells] - np.cumsum(counts) + counts, counts)
        return places, firsts + np.arange(len(places))


@dataclass(frozen=True, eq=False)
class LabelSets:
    """Labels that stand for leaves, which need not be next to each other, in ascending order."""

    starts: Ints  # [labels + 1] the leaves of label c are starts[c] to starts[c + 1]
    leaves: Ints  # [members]
    places: Floats  # [leaves] the number of each; NaN: it is no value
    level_of_label: Ints | None = None  # [labels] the level of each in a hierarchy

    @classmethod
    def of(cls, nodes: Nodes, places: Floats) -> LabelSets:
        """Sort the leaves of each label by their places."""
        owners, values = np.repeat(np.arange(len(nodes.labels)), nodes.sizes), places[nodes.members]
        order = np.lexsort((values, owners))
        order = order[~np.isnan(values[order])]
        sizes = np.bincount(owners[order], minlength=len(nodes.labels))
        starts = np.concatenate([[0], np.cumsum(sizes)])
        return cls(starts, nodes.members[order].astype(np.int64), places, nodes.levels)

    @cached_property
    def values(self) -> Floats:
        """The number of each member, ascending within a label."""
        return self.places[self.leaves]

    @cached_property
    def sizes(self) -> Ints:
        """The number of values that each label covers."""
        return np.diff(self.starts)

    @cached_property
    def owners(self) -> Ints:
        """The label of each member."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @property
    def lows(self) -> Floats:
        """The least value of each label, NaN where it has none."""
        return np.where(self.sizes > 0, np.append(self.values, np.nan)[self.starts[:-1]], np.nan)

    @property
    def highs(self) -> Floats:
        """The greatest value of each label, NaN where it has none."""
        return np.where(self.sizes > 0, np.append(self.values, np.nan)[self.starts[1:] - 1], np.nan)

    @property
    def means(self) -> Floats:
        """The mean of the values of each label, NaN where it has none."""
        sums = np.bincount(self.owners, self.values, minlength=len(self.sizes))
        return np.where(self.sizes > 0, sums / np.maximum(self.sizes, 1), np.nan)

    @property
    def levels(self) -> Ints:
        """How many steps lead from a value up to each label, as its hierarchy counts them.

        Without one they are the widths of the labels around it that differ. A label of one value is on level
        0 either way, as it says no less than the value.
        """
        if self.level_of_label is not None:
            return np.where(self.sizes > 1, self.level_of_label, 0)
        order = np.lexsort((self.sizes[self.owners], self.leaves))
        labels, leaf = self.owners[order], self.leaves[order]
        size = self.sizes[labels]
        opens = np.diff(leaf, prepend=-1) != 0
        wider = np.where(opens, size > 1, np.diff(size, prepend=0) != 0)
        steps = np.cumsum(wider)
        first = np.maximum.accumulate(np.where(opens, np.arange(len(leaf)), 0))
        levels = np.zeros(len(self.sizes), dtype=np.int64)
        np.maximum.at(levels, labels, steps - steps[first] + wider[first])
        return levels

    @cached_property
    def _ranks(self) -> tuple[Floats, Ints]:
        """The values that some label has, ascending, and the rank of each member among them, by label."""
        grid, ranks = np.unique(self.values, return_inverse=True)
        return grid, self.owners * (len(grid) + 1) + ranks

    def up_to(self, codes: Ints, numbers: Floats) -> Ints:
        """Where the values of each label end that are at most the number beside it."""
        grid, keys = self._ranks
        ranks = np.searchsorted(grid, numbers, side="right")
        return np.searchsorted(keys, codes * (len(grid) + 1) + ranks)

    def hold(self, codes: Ints, numbers: Floats) -> Flags:
        """Whether the number beside each label is one of its values."""
        grid, keys = self._ranks
        n_cells, ranks = len(self.sizes) * (len(grid) + 1), np.searchsorted(grid, numbers)
        is_value: Flags = np.append(grid, np.nan)[ranks] == numbers
        wanted = codes * (len(grid) + 1) + ranks
        if fits(n_cells, len(codes)):  # a look-up is many times as fast as a search
            members = np.zeros(n_cells, dtype=np.bool_)
            members[keys] = True
            is_value &= members[wanted]
        else:
            is_value &= np.append(keys, -1)[np.searchsorted(keys, wanted)] == wanted
        return is_value
