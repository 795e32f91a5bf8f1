"""Global linkage of generalised releases: all records at once, each to a released record that covers it.

The cost of a pair is the information loss of the released record, if it covers the intruder's; else there is
no such pair. As many records are linked as can be, and those at the least total loss. Where every released
record is linked that total is the same for all linkages, so there are many of least cost: identical points
and identical boxes change places freely, and what holds beyond that is said by the bounds over all linkages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato import kernels
from sfumato.core.run import Run
from sfumato.data.evidence import Evidence
from sfumato.kernels.arrays import Ints
from sfumato.risk._set_coverage import class_covering_of

UNITS = 2.0**30  # of cost, in a loss of 1: what differs by less is equal
MOST_COMPARED = 20_000_000_000  # pairs of points and classes that are looked at
MOST_PAIRS = 20_000_000  # of points and boxes that cover them


@dataclass(frozen=True)
class Boxes:
    """Distinct points and distinct released records, and which of the latter cover which of the former."""

    points: Ints  # [n] the group of each of the intruder's records
    classes: Ints  # [m] the group of each released record
    losses: Ints  # [class] in units
    covered: Ints  # [pair] group of points
    covering: Ints  # [pair] class

    @property
    def penalty(self) -> int:
        """The cost of a record that is not linked: more than all others together could save."""
        return (len(self.points) + 1) * (int(self.losses.max(initial=0)) + 1)


def boxes_of(
    evidence: Evidence, names: tuple[str, ...], rows: Ints, released: Ints, run: Run
) -> Boxes | None:
    """Group the records ``rows`` of the intruder and the ``released`` ones; None if they are too many."""
    covering = class_covering_of(evidence, names, rows)
    points, samples = covering.distinct_points()
    if len(samples) * len(covering.losses) > MOST_COMPARED:
        return None
    found = covering.pairs(samples, most=MOST_PAIRS, tick=run.ticker("who covers whom"))
    if found is None:
        return None
    losses = np.rint(covering.losses * UNITS).astype(np.int64)
    return Boxes(points, covering.classes[released], losses, *found)


@dataclass(frozen=True)
class Linked:
    """A linkage of records and the prices that prove it, one for each record."""

    partners: Ints
    row_prices: Ints
    column_prices: Ints


def link_boxes(boxes: Boxes, rng: np.random.Generator, run: Run) -> Linked:
    """Link as many as can be at the least total loss; which of several such linkages is found is chance."""
    supplies, rooms = np.bincount(boxes.points), np.bincount(boxes.classes, minlength=len(boxes.losses))
    # In an order of chance, so that neither the file's nor that of the values favours anyone.
    row_names, column_names = rng.permutation(len(supplies)), rng.permutation(len(rooms))
    row_places, column_places = np.argsort(row_names), np.argsort(column_names)
    found = kernels.assignment.cover(
        row_places[boxes.covered],
        column_places[boxes.covering],
        boxes.losses[boxes.covering],
        supplies[row_names],
        rooms[column_names],
        boxes.penalty,
        beat=run.check,
    )
    partners = np.full(len(boxes.points), -1, dtype=np.int64)
    linked = _members(row_names[np.repeat(found.rows, found.units)], boxes.points)
    partners[linked] = _members(column_names[np.repeat(found.columns, found.units)], boxes.classes)
    return Linked(
        partners,
        found.row_prices[row_places[boxes.points]],
        found.column_prices[column_places[boxes.classes]],
    )


def _members(units: Ints, groups: Ints) -> Ints:
    """Name a record for each unit of a group, no record twice."""
    order, by_unit = np.argsort(groups, kind="stable"), np.argsort(units, kind="stable")
    of_units = units[by_unit]
    nth = np.arange(len(units)) - np.searchsorted(of_units, of_units)
    members = np.empty(len(units), dtype=np.int64)
    members[by_unit] = order[np.searchsorted(groups[order], of_units) + nth]
    return members


def proves(boxes: Boxes, linked: Linked) -> bool:
    r"""Tell whether prices prove a linkage to be of least cost, from the boxes alone.

    With the penalty :math:`P` of a record that is not linked: :math:`u_i \le P`, :math:`v_j \le 0`, and
    :math:`u_i + v_j \le c_j` for every pair that covers, with equality for what is linked, not linked or
    left over. Then :math:`\sum u + \sum v` is the cost, and no linkage can cost less.
    """
    n, m = len(boxes.points), len(boxes.classes)
    partners, u, v = linked.partners, linked.row_prices, linked.column_prices
    if len(partners) != n or u.shape != (n,) or v.shape != (m,):
        return False
    there = np.flatnonzero(partners != -1)
    its = partners[there]
    if its.min(initial=0) < 0 or its.max(initial=-1) >= m or len(np.unique(its)) < len(its):
        return False
    n_classes = len(boxes.losses)
    pairs = np.sort(boxes.covered * n_classes + boxes.covering)
    wanted = boxes.points[there] * n_classes + boxes.classes[its]
    places = np.minimum(np.searchsorted(pairs, wanted), max(len(pairs) - 1, 0))
    if len(wanted) and (not len(pairs) or (pairs[places] != wanted).any()):
        return False
    losses = boxes.losses[boxes.classes]
    is_free = np.ones(m, dtype=np.bool_)
    is_free[its] = False
    is_tight = (
        (u[there] + v[its] == losses[its]).all()
        and (u[partners == -1] == boxes.penalty).all()
        and not v[is_free].any()
    )
    highest_u = np.full(int(boxes.points.max(initial=-1)) + 1, -(2**62))
    highest_v = np.full(n_classes, -(2**62))
    np.maximum.at(highest_u, boxes.points, u)
    np.maximum.at(highest_v, boxes.classes, v)
    over = highest_u[boxes.covered] + highest_v[boxes.covering] - boxes.losses[boxes.covering]
    return bool(
        is_tight and u.max(initial=0) <= boxes.penalty and v.max(initial=0) <= 0 and over.max(initial=0) <= 0
    )


def ties_of_boxes(boxes: Boxes, linked: Linked, right: tuple[Ints, Ints]) -> Any:
    """Count the true links of all linkages of least cost."""
    # Identical records have the same price, so one of each tells whether a pair of groups is tight.
    _, some = np.unique(boxes.points, return_index=True)
    price_of_class = np.zeros(len(boxes.losses), dtype=np.int64)
    price_of_class[boxes.classes] = linked.column_prices
    prices = linked.row_prices[some][boxes.covered] + price_of_class[boxes.covering]
    is_tight = prices == boxes.losses[boxes.covering]
    is_tight &= np.isin(boxes.covering, boxes.classes)  # of some classes no record may be released
    n_linked, n, m = int((linked.partners >= 0).sum()), len(boxes.points), len(boxes.classes)
    tight = kernels.assignment.Tight(
        boxes.points,
        boxes.classes,
        boxes.covered[is_tight],
        boxes.covering[is_tight],
        free_rows=(linked.row_prices == boxes.penalty) & (n_linked < n),
        free_columns=(linked.column_prices == 0) & (n_linked < m),
    )
    return kernels.assignment.ties_among(tight, linked.partners, right)
