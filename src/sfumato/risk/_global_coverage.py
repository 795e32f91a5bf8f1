"""Global linkage of generalised releases: all records at once, each to what a released record may stand for.

If all records can be linked to one that covers them, they are: the cost of a pair is the information loss of
the released record then, and other pairs there are none. Where every released record is linked that total is
the same for all linkages, so there are many of least cost: identical points and identical boxes change places
freely, and what holds beyond that is said by the bounds over all linkages. Else, as where values were
perturbed too, a pair costs the distance to the nearest values the released record may stand for, and the
loss of that record.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sfumato import kernels
from sfumato.core.run import Run
from sfumato.kernels.arrays import Ints, count_distinct, distinct_numbers
from sfumato.risk._box_distances import UNITS, BoxDistances

MOST_COMPARED = 20_000_000_000  # pairs of points and classes that are looked at
MOST_LOOKED_AT = 5 * MOST_COMPARED  # in all rounds together
MOST_PAIRS = 20_000_000  # of points and boxes that are listed
_NEAREST, _MOST_NEAREST = 16, 256  # boxes listed for a point at a time
_LISTED = 5_000  # pairs that are listed at a time if there are that many


@dataclass(frozen=True)
class CandidatePairs:
    """Distinct points and distinct released records, what they cost as pairs, and which pairs are listed."""

    near: BoxDistances  # of one record of each group
    points: Ints  # [n] the group of each of the intruder's records
    classes: Ints  # [m] the class of each released record
    pricing: Any  # kernels.box_distances.Pricing: only those that cover, or all
    covered: Ints  # [pair] group of points
    covering: Ints  # [pair] class
    costs: Ints  # [pair]

    @property
    def penalty(self) -> int:
        """The cost of a record that is not linked: more than all others together could save."""
        return (len(self.points) + 1) * (2 * int(UNITS) + 1)

    @property
    def only_covering(self) -> bool:
        """Whether only records that cover can be linked."""
        return bool(self.pricing.reach == 0)

    def with_pairs(self, covered: Ints, covering: Ints, costs: Ints) -> CandidatePairs:
        """List more pairs."""
        return replace(
            self,
            covered=np.concatenate((self.covered, covered)),
            covering=np.concatenate((self.covering, covering)),
            costs=np.concatenate((self.costs, costs)),
        )

    def with_distances(self) -> CandidatePairs:
        """The same records, of which all pairs are possible, and none is listed."""
        shown = self.near.shown
        widths = np.append(np.where(shown.steps, 1.0, np.ptp(shown.ends, axis=0)), np.ones(1))
        widths = np.append(np.maximum(widths, 1.0), np.full(shown.labels.shape[1], shown.near.max(initial=1)))
        widths = np.append(widths, np.ones(shown.exact.shape[1]))
        farthest = np.sqrt((widths**2).sum()) if shown.euclidean else widths.sum()
        pricing = kernels.box_distances.Pricing(UNITS / (1.0 + float(farthest)), np.inf)
        nothing = np.empty(0, dtype=np.int64)
        return replace(self, pricing=pricing, covered=nothing, covering=nothing, costs=nothing)


def boxes_of(nearness: BoxDistances, released: Ints) -> CandidatePairs | None:
    """Group records and the ``released`` ones; None if they are too many."""
    points, samples = nearness.distinct_points()
    if len(samples) * len(nearness.shown.losses) > MOST_COMPARED:
        return None
    pricing, nothing = kernels.box_distances.Pricing(UNITS, 0.0), np.empty(0, dtype=np.int64)
    near, classes = nearness.of_points(samples), nearness.classes[released]
    return CandidatePairs(near, points, classes, pricing, nothing, nothing, nothing)


@dataclass(frozen=True)
class CertifiedLinkage:
    """A linkage of records and the prices that prove it, one for each record."""

    partners: Ints
    row_prices: Ints
    column_prices: Ints

    def limits(self, boxes: CandidatePairs) -> tuple[Ints, Ints]:
        """The highest price of each group of points, and of each class."""
        highest = np.full(int(boxes.points.max(initial=-1)) + 1, -(2**61))
        highest_of_class = np.full(len(boxes.near.shown.losses), -(2**61))
        np.maximum.at(highest, boxes.points, self.row_prices)
        np.maximum.at(highest_of_class, boxes.classes, self.column_prices)
        return highest, highest_of_class


def linked_boxes(
    boxes: CandidatePairs, right: tuple[Ints, Ints], run: Run
) -> tuple[CandidatePairs, CertifiedLinkage] | None:
    """Link to boxes that cover if all can be, else to the nearest; None if pairs are too many to be listed.

    Of all pairs those are listed that are needed: at first the ``right`` ones, so that everybody can be
    linked, and what is nearer to each point than its own; then those that the prices do not rule out, until
    there are none. The points that had such pairs are looked at again before all are. Where several linkages
    cost the least, the one found may be among those with most right pairs; what holds in all is told beside.
    """
    n_points, n_classes = len(boxes.near.points.numbers), len(boxes.near.shown.losses)
    found = boxes.near.covering(most=MOST_PAIRS, tick=run.ticker("who covers whom"))
    if found is None:
        return None
    boxes = boxes.with_pairs(*found)
    linked = link_boxes(boxes, run.rng("linkage"), run)
    if int((linked.partners >= 0).sum()) == min(len(boxes.points), len(boxes.classes)):
        return boxes, linked
    boxes = boxes.with_distances()
    boxes, limits = _with_own(boxes, right)
    prices, rows, looked = np.zeros(n_classes, dtype=np.int64), np.arange(n_points), 0
    is_first = True
    while looked <= MOST_LOOKED_AT:
        few = boxes.near.of_points(rows)
        places, its, costs = kernels.box_distances.best(
            few.points, few.shown, boxes.pricing, limits[rows], prices, _boxes_per_point(len(rows)),
            run.ticker("nearest released records"),
        )  # fmt: skip
        looked += len(rows) * n_classes
        if not len(places) and not is_first:
            if len(rows) == n_points:
                return boxes, linked
            rows = np.arange(n_points)
            continue
        boxes, is_first = boxes.with_pairs(rows[places], its, costs), False
        if len(boxes.costs) > MOST_PAIRS:
            return None
        linked = link_boxes(boxes, run.rng("linkage"), run)
        limits, prices = linked.limits(boxes)
        rows = distinct_numbers(rows[places])
    return None


def _boxes_per_point(n_points: int) -> int:
    """How many boxes are listed for each of so many points: of the last few more of them."""
    return min(max(_NEAREST, _LISTED // max(n_points, 1)), _MOST_NEAREST)


def _with_own(boxes: CandidatePairs, right: tuple[Ints, Ints]) -> tuple[CandidatePairs, Ints]:
    """List the pairs of records and their own, and say what the dearest of each point costs."""
    n_classes = len(boxes.near.shown.losses)
    names = distinct_numbers(boxes.points[right[0]] * n_classes + boxes.classes[right[1]])
    rows, its = names // n_classes, names % n_classes
    costs = kernels.box_distances.costs(boxes.near.points, boxes.near.shown, boxes.pricing, rows, its)
    limits = np.full(len(boxes.near.points.numbers), -1, dtype=np.int64)
    np.maximum.at(limits, rows, costs)
    limits[limits < 0] = kernels.box_distances.NEVER  # whose own is not there
    return boxes.with_pairs(rows, its, costs), limits


def link_boxes(boxes: CandidatePairs, rng: np.random.Generator, run: Run) -> CertifiedLinkage:
    """Link as many as can be at the least total cost of the pairs listed; of several linkages, by chance."""
    supplies = np.bincount(boxes.points)
    rooms = np.bincount(boxes.classes, minlength=len(boxes.near.shown.losses))
    # In an order of chance, so that neither the file's nor that of the values favours anyone.
    row_names, column_names = rng.permutation(len(supplies)), rng.permutation(len(rooms))
    row_places, column_places = np.argsort(row_names), np.argsort(column_names)
    found = kernels.assignment.cover(
        row_places[boxes.covered],
        column_places[boxes.covering],
        boxes.costs,
        supplies[row_names],
        rooms[column_names],
        boxes.penalty,
        beat=run.check,
    )
    partners = np.full(len(boxes.points), -1, dtype=np.int64)
    linked = _members(row_names[np.repeat(found.rows, found.units)], boxes.points)
    partners[linked] = _members(column_names[np.repeat(found.columns, found.units)], boxes.classes)
    return CertifiedLinkage(
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


def tight_pairs(boxes: CandidatePairs, linked: CertifiedLinkage, run: Run) -> tuple[Ints, Ints] | None:
    r"""List the pairs that a linkage of least cost may have; None if prices do not prove one, from all pairs.

    With the penalty :math:`P` of a record that is not linked: :math:`u_i \le P`, :math:`v_j \le 0`, and
    :math:`u_i + v_j \le c_{ij}` for every pair that is possible, with equality for what is linked, not
    linked or left over. Then :math:`\sum u + \sum v` is the cost, and no linkage can cost less. Costs are
    rounded, so that pairs count that cost a little more: by as much as the roundings of all pairs make.
    """
    n, m = len(boxes.points), len(boxes.classes)
    partners, u, v = linked.partners, linked.row_prices, linked.column_prices
    if len(partners) != n or u.shape != (n,) or v.shape != (m,):
        return None
    there = np.flatnonzero(partners != -1)
    its = partners[there]
    if its.min(initial=0) < 0 or its.max(initial=-1) >= m or count_distinct(its) < len(its):
        return None
    limits, prices = linked.limits(boxes)
    most, tick = limits + _doubt(boxes), run.ticker("other linkages")
    found = boxes.near.pairs(boxes.pricing, most, prices, most=MOST_PAIRS, tick=tick)
    if found is None or (found[2] < limits[found[0]] + prices[found[1]]).any():
        return None
    names = found[0] * len(prices) + found[1]  # ascending
    wanted = boxes.points[there] * len(prices) + boxes.classes[its]
    places = np.minimum(np.searchsorted(names, wanted), max(len(names) - 1, 0))
    if len(wanted) and (not len(names) or (names[places] != wanted).any()):
        return None
    is_free = np.ones(m, dtype=np.bool_)
    is_free[its] = False
    is_tight = (u[there] + v[its] == found[2][places]).all() and (u[partners == -1] == boxes.penalty).all()
    is_tight &= not v[is_free].any() and u.max(initial=0) <= boxes.penalty and v.max(initial=0) <= 0
    return (found[0], found[1]) if is_tight else None


def _doubt(boxes: CandidatePairs) -> int:
    """By how much the rounded costs of two linkages may differ that cost the same."""
    return 2 * min(len(boxes.points), len(boxes.classes))


def ties_of_boxes(
    boxes: CandidatePairs, linked: CertifiedLinkage, pairs: tuple[Ints, Ints], right: tuple[Ints, Ints]
) -> Any:
    """Count the true links of all linkages of least cost, which have such pairs only."""
    n_linked, n, m = int((linked.partners >= 0).sum()), len(boxes.points), len(boxes.classes)
    doubt = _doubt(boxes)
    free_rows = (linked.row_prices >= boxes.penalty - doubt) & (n_linked < n)
    free_columns = (linked.column_prices >= -doubt) & (n_linked < m)
    tight = kernels.assignment.TightPairs(boxes.points, boxes.classes, *pairs, free_rows, free_columns)
    return kernels.assignment.ties_among(tight, linked.partners, right)
