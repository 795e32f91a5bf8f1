"""Ties: what holds in every matching of least cost, when there are several.

The matchings of least cost are complete matchings of the tight graph, whose pairs cost no more than their two
prices; and since each cost was rounded, sums that tie may differ by what all roundings together make, so a
pair is tight if it costs no more than that above its prices. A pair is in one of them if it is matched or if
its ends lie in one strongly connected part of that graph, its matched pairs contracted [tassa2012]_; inside
such a part the fewest and the most true links are again an assignment, with costs of 0 and 1.

.. [tassa2012] T. Tassa (2012). Finding all maximally-matchable edges in a bipartite graph. Theoretical
   Computer Science 423, 50–58.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.kernels.arrays import Flags, Floats, Ints
from sfumato.kernels.assignment.assign import Assignment
from sfumato.kernels.assignment.costs import (
    Frame,
    Metric,
    costs_of_pairs,
    distinct,
    doubt_of,
    frame,
    limits_of,
)
from sfumato.kernels.assignment.tight import Tight, exchangeable, is_settled
from sfumato.kernels.assignment.verification import scan
from sfumato.kernels.pace import Tick

#: Tight pairs beyond which no matching among them is looked for.
MOST_PAIRS = 20_000_000


@dataclass(frozen=True)
class Ties:
    """True links over all matchings of least cost: the fewest, the most, and how many are in every one.

    Not ``exact`` if the tight pairs are too many: no matching has fewer or more, but none may reach them.
    ``settled`` if all such matchings have equally many pairs of any two groups of identical records that
    belong together, so that one of them tells how many true links to expect of all.
    """

    fewest: int
    most: int
    certain: int
    exact: bool
    settled: bool


def ties(
    rows: Floats,
    columns: Floats,
    metric: Metric,
    found: Assignment,
    right: tuple[Ints, Ints],
    *,
    n_codes: int = 0,
    radii: Floats | None = None,
    most_pairs: int = MOST_PAIRS,
    tick: Tick | None = None,
) -> Ties:
    """Count the true links of all matchings of least cost.

    Parameters
    ----------
    rows, columns, metric, n_codes, radii
        As they were given to `solve`.
    found : Assignment
        What it found, certified.
    right : pair of int64[q]
        Rows and columns that belong together. Where a row or a column has several, only ``settled`` and
        ``most`` say something.
    most_pairs : int
        Give up exactness beyond so many tight pairs.
    """
    if not found.certified:
        raise ValueError("ties are known only of a matching that is proved to cost the least")
    framed = frame(rows, columns, metric, n_codes=n_codes)
    limits = limits_of(framed, radii, len(rows))
    doubt = doubt_of(framed)
    costs = costs_of_pairs(framed.space, *right)
    prices = found.row_prices[right[0]] + found.column_prices[right[1]]
    is_tight = (costs <= prices + doubt) & (costs <= limits[right[0]])
    if not is_tight.any():
        return Ties(0, 0, 0, exact=True, settled=True)
    # Prices that prove a matching are the same for identical records, so one of each tells of all.
    row_firsts, row_groups = distinct(framed.space.rows, limits)
    column_firsts, column_groups = distinct(framed.space.columns)
    space = framed.space._replace(
        rows=framed.space.rows[row_firsts], columns=framed.space.columns[column_firsts]
    )
    _, _, listed = scan(
        Frame(space, framed.unit, framed.rounding), found.row_prices[row_firsts] + doubt,
        found.column_prices[column_firsts], limits[row_firsts], n_listed=most_pairs, tick=tick,
    )  # fmt: skip
    if listed is None:
        return Ties(0, int(is_tight.sum()), 0, exact=False, settled=False)
    tight = Tight(
        row_groups,
        column_groups,
        *listed,
        free_rows=(found.row_prices >= -doubt) & (len(rows) > len(columns)),
        free_columns=(found.column_prices >= -doubt) & (len(rows) < len(columns)),
    )
    return ties_among(tight, found.partners, right, most_pairs=most_pairs)


def ties_among(
    tight: Tight, partners: Ints, right: tuple[Ints, Ints], *, most_pairs: int = MOST_PAIRS
) -> Ties:
    """Count the true links of all matchings of least cost, given one and all pairs that are tight."""
    settled = is_settled(tight, partners, right)
    is_single = all(len(np.unique(side)) == len(side) for side in right)
    made = _with_dummies(tight, partners, most_pairs) if is_single else None
    if made is None:
        return Ties(0, int(tight.has(*right).sum()), 0, exact=False, settled=settled)
    truth = np.full(len(partners), -1, dtype=np.int64)
    truth[right[0]] = right[1]
    fewest, most, certain = _within_parts(*made, truth)
    return Ties(fewest, most, certain, exact=True, settled=settled or fewest == most)


def _with_dummies(tight: Tight, partners: Ints, most_pairs: int) -> tuple[Ints, Ints, Ints] | None:
    """Pairs of records and a matching of all, with dummies for those that are left over.

    None if that is too much, or if both rows and columns are left over.
    """
    free_rows, free_columns = np.flatnonzero(tight.free_rows), np.flatnonzero(tight.free_columns)
    n, m = len(tight.row_groups), len(tight.column_groups)
    pairs = tight.pairs(most_pairs) if int((partners >= 0).sum()) == min(n, m) else None
    if pairs is None or len(pairs[0]) + abs(n - m) * max(len(free_rows), len(free_columns)) > most_pairs:
        return None
    partners = partners.copy()
    if n < m:
        dummies = np.arange(n, m)
        partners = np.concatenate((partners, np.setdiff1d(np.arange(m), partners)))
        more = np.repeat(dummies, len(free_columns)), np.tile(free_columns, len(dummies))
    else:
        dummies = np.arange(m, n)
        partners[partners < 0] = dummies
        more = np.tile(free_rows, len(dummies)), np.repeat(dummies, len(free_rows))
    return np.concatenate((pairs[0], more[0])), np.concatenate((pairs[1], more[1])), partners


def _within_parts(rows: Ints, columns: Ints, partners: Ints, truth: Ints) -> tuple[int, int, int]:
    """Count in the strongly connected parts of the tight graph: the fewest, the most and the certain."""
    size = len(partners)
    part, possible = exchangeable(rows, columns, partners)
    wanted = np.concatenate((truth, np.full(size - len(truth), -1)))
    alone = np.bincount(part)[part] == 1
    certain = int((alone & (partners == wanted) & (wanted >= 0)).sum())
    rows, columns = rows[possible], columns[possible]
    is_true = wanted[rows] == columns
    # Parts without a true pair, and records alone in theirs, have nothing left to count.
    open_parts = np.unique(part[rows[is_true & ~alone[rows]]])
    inside = np.isin(part[rows], open_parts)
    if not inside.any():
        return certain, certain, certain
    fewest, most = _extremes(rows[inside], columns[inside], is_true[inside])
    return certain + fewest, certain + most, certain


def _extremes(rows: Ints, columns: Ints, is_true: Flags) -> tuple[int, int]:
    """The fewest and the most true pairs of a complete matching of these."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    row_names, row_places = np.unique(rows, return_inverse=True)
    column_names, column_places = np.unique(columns, return_inverse=True)
    size = len(row_names)

    def least_total(weights: Floats) -> int:
        graph = csr_array((weights, (row_places, column_places)), shape=(size, len(column_names)))
        return round(float(graph[min_weight_full_bipartite_matching(graph)].sum()))

    # Weights of 1 and 2, as a weight of 0 would be no pair at all.
    fewest = least_total(np.where(is_true, 2.0, 1.0)) - size
    most = 2 * size - least_total(np.where(is_true, 1.0, 2.0))
    return fewest, most
