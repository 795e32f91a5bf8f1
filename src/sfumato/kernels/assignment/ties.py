"""Ties: what holds in every matching of least cost, when there are several.

The matchings of least cost are exactly the complete matchings of the tight graph, whose pairs cost no more
than their two prices. A pair is in one of them if it is matched or if its ends lie in one strongly connected
part of that graph, its matched pairs contracted [tassa2012]_; inside such a part the fewest and the most true
links are again an assignment, with costs of 0 and 1.

.. [tassa2012] T. Tassa (2012). Finding all maximally-matchable edges in a bipartite graph. Theoretical
   Computer Science 423, 50–58.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, min_weight_full_bipartite_matching

from sfumato.kernels.assignment.assign import Assignment, Tick
from sfumato.kernels.assignment.costs import Bools, Floats, Ints, Metric, costs_of_pairs, frame, limits_of
from sfumato.kernels.assignment.verification import scan

#: Tight pairs beyond which no matching among them is looked for.
MOST_PAIRS = 20_000_000


@dataclass(frozen=True)
class Ties:
    """True links over all matchings of least cost: the fewest, the most, and how many are in every one.

    Not ``exact`` if the tight pairs are too many: no matching has fewer or more, but none may reach them.
    """

    fewest: int
    most: int
    certain: int
    exact: bool


def ties(
    rows: Floats,
    columns: Floats,
    metric: Metric,
    found: Assignment,
    truth: Ints,
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
    truth : int64[n]
        The column that belongs to each row; −1 where none does.
    most_pairs : int
        Give up exactness beyond so many tight pairs.
    """
    if not found.certified:
        raise ValueError("ties are known only of a matching that is proved to cost the least")
    framed = frame(rows, columns, metric, n_codes=n_codes)
    limits = limits_of(framed, radii, len(rows))
    known = np.flatnonzero(truth >= 0)
    costs = costs_of_pairs(framed.space, known, truth[known])
    tight = (costs == found.row_prices[known] + found.column_prices[truth[known]]) & (costs <= limits[known])
    if not tight.any():
        return Ties(0, 0, 0, exact=True)
    _, _, listed = scan(framed, found.row_prices, found.column_prices, limits, n_listed=most_pairs, tick=tick)
    if listed is None:
        return Ties(0, int(tight.sum()), 0, exact=False)
    return ties_among(
        listed, found.row_prices, found.column_prices, found.partners, truth, most_pairs=most_pairs
    )


def ties_among(
    pairs: tuple[Ints, Ints],
    row_prices: Ints,
    column_prices: Ints,
    partners: Ints,
    truth: Ints,
    *,
    most_pairs: int = MOST_PAIRS,
) -> Ties:
    """Count the true links of all matchings of least cost, given all pairs that are tight.

    Of two files of unequal size, records of price 0 in the larger one may be left over.
    """
    made = _with_dummies(row_prices, column_prices, partners, *pairs, most_pairs)
    if made is None:
        return Ties(0, int((truth[pairs[0]] == pairs[1]).sum()), 0, exact=False)
    return _within_parts(*made, truth)


def _with_dummies(  # noqa: PLR0917
    row_prices: Ints, column_prices: Ints, partners: Ints, rows: Ints, columns: Ints, most_pairs: int
) -> tuple[Ints, Ints, Ints] | None:
    """Make both sides equally many by dummies, which are tight with records of price 0; match them too."""
    n, m = len(row_prices), len(column_prices)
    partners = partners.copy()
    if n < m:
        free, extra = np.flatnonzero(column_prices == 0), np.arange(n, m)
        left = np.ones(m, dtype=np.bool_)
        left[partners] = False
        partners = np.concatenate((partners, np.flatnonzero(left)))
        more = np.repeat(extra, len(free)), np.tile(free, len(extra))
    else:
        free, extra = np.flatnonzero(row_prices == 0), np.arange(m, n)
        partners[partners < 0] = extra
        more = np.tile(free, len(extra)), np.repeat(extra, len(free))
    if len(rows) + len(free) * len(extra) > most_pairs:
        return None
    return np.concatenate((rows, more[0])), np.concatenate((columns, more[1])), partners


def _within_parts(rows: Ints, columns: Ints, partners: Ints, truth: Ints) -> Ties:
    """Count in the strongly connected parts of the tight graph."""
    size = len(partners)
    owner = np.empty(size, dtype=np.int64)
    owner[partners] = np.arange(size)
    graph = csr_array((np.ones(len(rows), dtype=np.int8), (rows, owner[columns])), shape=(size, size))
    _, part = connected_components(graph, directed=True, connection="strong")
    wanted = np.concatenate((truth, np.full(size - len(truth), -1)))
    alone = np.bincount(part)[part] == 1
    certain = int((alone & (partners == wanted) & (wanted >= 0)).sum())
    possible = part[rows] == part[owner[columns]]
    rows, columns = rows[possible], columns[possible]
    is_true = wanted[rows] == columns
    # Parts without a true pair, and records alone in theirs, have nothing left to count.
    open_parts = np.unique(part[rows[is_true & ~alone[rows]]])
    inside = np.isin(part[rows], open_parts)
    if not inside.any():
        return Ties(certain, certain, certain, exact=True)
    fewest, most = _extremes(rows[inside], columns[inside], is_true[inside])
    return Ties(certain + fewest, certain + most, certain, exact=True)


def _extremes(rows: Ints, columns: Ints, is_true: Bools) -> tuple[int, int]:
    """The fewest and the most true pairs of a complete matching of these."""
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
