"""Ties: what holds in every matching of least cost, when there are several.

The matchings of least cost are complete matchings of the tight graph, whose pairs cost no more than their two
prices; and since each cost was rounded, sums that tie may differ by what all roundings together make, so a
pair is tight if it costs no more than that above its prices. A pair is in one of them if it is matched or if
its ends lie in one strongly connected part of that graph, its matched pairs contracted [tassa2012]_; inside
such a part the fewest and the most true links are again an assignment, with costs of 0 and 1. Identical
records are one row, or one column, of several units.

.. [tassa2012] T. Tassa (2012). Finding all maximally-matchable edges in a bipartite graph. Theoretical
   Computer Science 423, 50–58.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.kernels.arrays import Flags, Floats, Ints, count_distinct
from sfumato.kernels.assignment.assign import Assignment
from sfumato.kernels.assignment.costs import Frame, costs_of_pairs, distinct, doubt_of, frame, limits_of
from sfumato.kernels.assignment.covers import cover
from sfumato.kernels.assignment.tight import TightComponents, TightPairs, is_settled, parts_of, units_of
from sfumato.kernels.assignment.verification import scan
from sfumato.kernels.norms import Metric
from sfumato.kernels.threads import Tick

#: Tight pairs beyond which no matching among them is looked for.
MOST_PAIRS = 20_000_000
#: One unit in the whole numbers in which shares are added up.
_ONE = 1 << 24
PAIR = 2  # groups of a part that are linked to each other alone


@dataclass(frozen=True)
class TiedLinks:
    """True links over all matchings of least cost: the fewest, the most, and how many are in every one.

    Not ``exact`` if the tight pairs are too many: no matching has fewer or more, but none may reach them.
    ``settled`` if all such matchings have equally many pairs of any two groups of identical records that
    belong together, so that one of them tells how many true links to expect of all. Else they can be expected
    to have at most ``expected``, whichever is drawn; None if nobody has looked.
    """

    fewest: int
    most: int
    certain: int
    exact: bool
    settled: bool
    expected: float | None = None


def ties(
    rows: Floats,
    columns: Floats,
    metric: Metric,
    found: Assignment,
    right: tuple[Ints, Ints],
    *,
    n_codes: int = 0,
    weights: Floats | None = None,
    radii: Floats | None = None,
    most_pairs: int = MOST_PAIRS,
    tick: Tick | None = None,
) -> TiedLinks:
    """Count the true links of all matchings of least cost.

    Parameters
    ----------
    rows, columns, metric, n_codes, weights, radii
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
    framed = frame(rows, columns, metric, n_codes=n_codes, weights=weights)
    limits = limits_of(framed, radii, len(rows))
    doubt = doubt_of(framed)
    costs = costs_of_pairs(framed.space, *right)
    prices = found.row_prices[right[0]] + found.column_prices[right[1]]
    is_tight = (costs <= prices + doubt) & (costs <= limits[right[0]])
    if not is_tight.any():
        return TiedLinks(0, 0, 0, exact=True, settled=True)
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
        return TiedLinks(0, int(is_tight.sum()), 0, exact=False, settled=False)
    tight = TightPairs(
        row_groups,
        column_groups,
        *listed,
        free_rows=(found.row_prices >= -doubt) & (len(rows) > len(columns)),
        free_columns=(found.column_prices >= -doubt) & (len(rows) < len(columns)),
    )
    return ties_among(tight, found.partners, right, most_pairs=most_pairs)


def ties_among(
    tight: TightPairs, partners: Ints, right: tuple[Ints, Ints], *, most_pairs: int = MOST_PAIRS
) -> TiedLinks:
    """Count the true links of all matchings of least cost, given one and all pairs that are tight."""
    parts = parts_of(tight, partners)
    settled = is_settled(tight, parts, right)
    is_single = all(count_distinct(side) == len(side) for side in right)
    is_full = int((partners >= 0).sum()) == min(len(tight.row_groups), len(tight.column_groups))
    if not is_single or not is_full or len(parts.rows) > most_pairs:
        return TiedLinks(0, int(tight.has(*right).sum()), 0, exact=False, settled=settled)
    fewest, most, certain, expected = _extremes(tight, parts, right)
    settled = settled or fewest == most
    return TiedLinks(
        fewest, most, certain, exact=True, settled=settled, expected=None if settled else expected
    )


def _extremes(
    tight: TightPairs, parts: TightComponents, right: tuple[Ints, Ints]
) -> tuple[int, int, int, float]:
    r"""The fewest and the most true links of a complete matching of tight pairs, and how many all have.

    Last the most that can be expected, if those who are identical change places at random: of :math:`f` units
    between groups of :math:`a` and :math:`b` records :math:`f t / (a b)`.

    Identical records change places freely. So of :math:`f` units between two groups that have :math:`t` true
    pairs up to :math:`\min(f, t)` are true links, and none need be one, unless both groups are a single
    record: else the one of a true link changes places with another of its group, and is in none then, nor is
    the other. What is left to choose is :math:`f`, a transport problem of groups instead of records.
    """
    n_columns = len(parts.of_columns)
    supplies, rooms = units_of(tight)
    true, counts = np.unique(
        tight.row_groups[right[0]] * n_columns + tight.column_groups[right[1]], return_counts=True
    )
    names = parts.rows * n_columns + parts.columns
    places = np.minimum(np.searchsorted(true, names), len(true) - 1)
    n_true = np.where(true[places] == names, counts[places], 0)
    is_one = (n_true > 0) & (supplies[parts.rows] == 1) & (rooms[parts.columns] == 1)
    its = parts.of_rows[parts.rows]
    is_inside = its == parts.of_columns[parts.columns]
    is_certain = is_one & is_inside & (parts.sizes[its] == PAIR)
    certain = int(is_certain.sum())
    # Parts without a true pair, and records alone in theirs, have nothing left to count.
    is_open = np.isin(its, np.unique(its[is_inside & (n_true > 0) & ~is_certain]))
    inside = np.flatnonzero(is_inside & is_open)
    if not len(inside):
        return certain, certain, certain, float(certain)
    rows, row_places = np.unique(parts.rows[inside], return_inverse=True)
    columns, column_places = np.unique(parts.columns[inside], return_inverse=True)
    few = _least_total(row_places, column_places, is_one[inside], supplies[rows], rooms[columns])
    room = _with_room(row_places, column_places, n_true[inside], supplies[rows], rooms[columns])
    total = int(supplies[rows].sum())
    most = certain + total - _least_total(*room)
    shares = n_true[inside] / (supplies[parts.rows[inside]] * rooms[parts.columns[inside]]).clip(1)
    missed = _fewest_missed(row_places, column_places, shares, supplies[rows], rooms[columns])
    return certain + few, most, certain, min(float(most), certain + total - missed)


def _fewest_missed(rows: Ints, columns: Ints, shares: Floats, supplies: Ints, rooms: Ints) -> float:
    """The fewest units that miss, if a share of those of a pair is right; rounded down, so none are fewer."""
    costs = np.floor((1.0 - shares) * _ONE).astype(np.int64)
    found = cover(rows, columns, costs, supplies, rooms, int(_ONE * (supplies.sum() + 1)))
    return float(found.row_prices @ supplies + found.column_prices @ rooms) / _ONE


def _with_room(
    rows: Ints, columns: Ints, n_true: Ints, supplies: Ints, rooms: Ints
) -> tuple[Ints, Ints, Flags, Ints, Ints]:
    """The same pairs, each at a cost of 1, and beside those with true ones a way at none for so many units.

    It leads from the row to a column of that room, which a row of as many units fills where it is not used;
    where it is, that row takes the place in the pair's own column.
    """
    some = np.flatnonzero(n_true)
    more_rows, more_columns = len(supplies) + np.arange(len(some)), len(rooms) + np.arange(len(some))
    return (
        np.concatenate((rows, rows[some], more_rows, more_rows)),
        np.concatenate((columns, more_columns, more_columns, columns[some])),
        np.arange(len(rows) + 3 * len(some)) < len(rows),
        np.concatenate((supplies, n_true[some])),
        np.concatenate((rooms, n_true[some])),
    )


def _least_total(rows: Ints, columns: Ints, is_dear: Flags, supplies: Ints, rooms: Ints) -> int:
    """The fewest units of dear pairs when all units are placed."""
    found = cover(rows, columns, is_dear.astype(np.int64), supplies, rooms, int(supplies.sum()) + 1)
    costs = found.row_prices @ supplies + found.column_prices @ rooms
    return int(costs)
