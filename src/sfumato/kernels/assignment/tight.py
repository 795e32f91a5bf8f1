"""Tight pairs: those that a matching of least cost may have, and what it may exchange among them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.kernels.arrays import Flags, Ints


@dataclass(frozen=True)
class TightPairs:
    """Pairs of groups of identical records that cost no more than their prices, and who may stay alone.

    If both rows and columns may, there can be fewer pairs than either file has records.
    """

    row_groups: Ints  # [row]
    column_groups: Ints  # [column]
    rows: Ints  # [pair] group
    columns: Ints  # [pair] group
    free_rows: Flags  # [row] may be left over
    free_columns: Flags  # [column]

    @property
    def nobody(self) -> tuple[int, int]:
        """The groups with which those are paired that are left over: a row, and a column."""
        return int(self.row_groups.max(initial=-1)) + 1, int(self.column_groups.max(initial=-1)) + 1

    def has(self, rows: Ints, columns: Ints) -> Flags:
        """Whether pairs of records are tight."""
        n_columns = int(self.column_groups.max(initial=0)) + 1
        asked = self.row_groups[rows] * n_columns + self.column_groups[columns]
        found: Flags = np.isin(asked, self.rows * n_columns + self.columns)
        return found


def exchangeable(rows: Ints, columns: Ints, partners: Ints) -> tuple[Ints, Flags]:
    """Return each row's strongly connected part, and of each pair whether a complete matching can have it.

    ``partners`` must be one, of pairs among these; the pairs of a matching are contracted.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    size = len(partners)
    owners = np.empty(size, dtype=np.int64)
    owners[partners] = np.arange(size)
    its = owners[columns]
    graph = csr_array((np.ones(len(rows), dtype=np.int8), (rows, its)), shape=(size, size))
    _, part = connected_components(graph, directed=True, connection="strong")
    return part, part[rows] == part[its]


@dataclass(frozen=True)
class TightComponents:
    """The pairs of groups that matchings of least cost may have, and what is connected by exchanges.

    Units can be moved around a cycle of groups: onto any tight pair, and off those that have some. Every pair
    that has some lies within one part, which is strongly connected by such moves.
    """

    rows: Ints  # [pair] group; the last one is of nobody
    columns: Ints
    of_rows: Ints  # [group]
    of_columns: Ints
    sizes: Ints  # [part] groups in it


def parts_of(tight: TightPairs, partners: Ints) -> TightComponents:
    """Find them, with one matching."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    possible, held = _possible(tight), _matched_groups(tight, partners)
    n_rows, n_columns = (group + 1 for group in tight.nobody)
    size = n_rows + n_columns
    ends = np.concatenate((possible[0], n_rows + held[1])), np.concatenate((n_rows + possible[1], held[0]))
    graph = csr_array((np.ones(len(ends[0]), dtype=np.int8), ends), shape=(size, size))
    _, part = connected_components(graph, directed=True, connection="strong")
    return TightComponents(*possible, part[:n_rows], part[n_rows:], np.bincount(part, minlength=size))


def is_settled(tight: TightPairs, parts: TightComponents, right: tuple[Ints, Ints]) -> bool:
    """Tell whether all matchings of least cost have equally many pairs of the groups that belong together.

    A part has to stay as it is only if it is a tree.
    """
    within = parts.of_rows[parts.rows]
    within = within[within == parts.of_columns[parts.columns]]
    is_tree = np.bincount(within, minlength=len(parts.sizes)) < parts.sizes
    its = parts.of_rows[tight.row_groups[right[0]]]
    movable = (its == parts.of_columns[tight.column_groups[right[1]]]) & ~is_tree[its]
    return not bool((movable & tight.has(*right)).any())


def units_of(tight: TightPairs) -> tuple[Ints, Ints]:
    """How many records each group has; nobody's are those that the other file has more."""
    supplies, rooms = (np.append(np.bincount(each), 0) for each in (tight.row_groups, tight.column_groups))
    more = int(supplies.sum() - rooms.sum())
    supplies[-1], rooms[-1] = max(-more, 0), max(more, 0)
    return supplies, rooms


def _possible(tight: TightPairs) -> tuple[Ints, Ints]:
    """The pairs of groups that a matching of least cost may have, those left over paired with nobody."""
    nobody_row, nobody_column = tight.nobody
    rows = np.unique(tight.row_groups[tight.free_rows])
    columns = np.unique(tight.column_groups[tight.free_columns])
    both = np.arange(1) if len(rows) and len(columns) else np.arange(0)
    return (
        np.concatenate((tight.rows, rows, np.full(len(columns), nobody_row), both + nobody_row)),
        np.concatenate((tight.columns, np.full(len(rows), nobody_column), columns, both + nobody_column)),
    )


def _matched_groups(tight: TightPairs, partners: Ints) -> tuple[Ints, Ints]:
    """The pairs of groups that a matching has, those left over paired with nobody.

    Where both rows and columns may be left over, nobody is also paired with nobody, as often as any others
    are paired: a pair more takes from that what a pair less gives to it.
    """
    nobody_row, nobody_column = tight.nobody
    linked, alone = np.flatnonzero(partners >= 0), np.flatnonzero(partners < 0)
    left = np.setdiff1d(np.arange(len(tight.column_groups)), partners)
    both = np.arange(1 if tight.free_rows.any() and tight.free_columns.any() and len(linked) else 0)
    return (
        np.concatenate(
            (
                tight.row_groups[linked],
                tight.row_groups[alone],
                np.full(len(left), nobody_row),
                both + nobody_row,
            )
        ),
        np.concatenate(
            (
                tight.column_groups[partners[linked]],
                np.full(len(alone), nobody_column),
                tight.column_groups[left],
                both + nobody_column,
            )
        ),
    )
