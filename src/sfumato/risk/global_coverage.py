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
import polars as pl

from sfumato import kernels
from sfumato.core.run import Run
from sfumato.data.evidence import Evidence
from sfumato.data.table import Floats, Ints
from sfumato.risk.coverage import Covering, TooManyBoxes, covering_of

UNITS = 2.0**30  # of cost, in a loss of 1: what differs by less is equal
MOST_COMPARED = 40_000_000_000  # values of points and boxes that are compared with each other
MOST_PAIRS = 20_000_000  # of points and boxes that cover them
AT_A_TIME = 4_000_000


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
    try:
        covering = covering_of(evidence, names, rows)
    except TooManyBoxes:
        return None
    points, firsts = _grouped(covering.points)
    classes, samples = _classes(covering)
    # Boxes of one record of each class stand for the class.
    class_of = np.full(len(classes), -1, dtype=np.int64)
    class_of[samples] = np.arange(len(samples))
    kept = np.flatnonzero(class_of[covering.records] >= 0)
    lows, highs = covering.lows[kept], covering.highs[kept]
    if len(firsts) * len(kept) * max(len(names), 1) > MOST_COMPARED:
        return None
    found = _inside(covering.points[firsts], lows, highs, run)
    if found is None:
        return None
    losses = np.rint(covering.losses[samples] * UNITS).astype(np.int64)
    covered, covers = found[0], class_of[covering.records[kept]][found[1]]
    order = np.lexsort((covers, covered))  # so that the order of the file does not matter
    return Boxes(points, classes[released], losses, covered[order], covers[order])


def _grouped(points: Floats) -> tuple[Ints, Ints]:
    """Number the distinct points in their order, and name the first of each."""
    if not len(points):
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    _, firsts, groups = np.unique(
        np.nan_to_num(points, nan=np.inf) + 0.0, axis=0, return_index=True, return_inverse=True
    )
    return groups.reshape(-1).astype(np.int64), firsts.astype(np.int64)


def _classes(covering: Covering) -> tuple[Ints, Ints]:
    """Number the released records by what they say: the same boxes; and name one record of each class."""
    n_released = len(covering.losses)
    boxes, _ = _grouped(np.hstack((covering.lows, covering.highs)))
    said = (
        pl.DataFrame({"record": covering.records, "box": boxes})
        .group_by("record")
        .agg(pl.col("box").sort().cast(pl.String).str.join(","))
    )
    every = pl.DataFrame({"record": np.arange(n_released)}).join(said, on="record", how="left")
    texts = every.sort("record")["box"].fill_null("")  # one that says nothing possible covers nobody
    classes = texts.rank("dense").to_numpy().astype(np.int64) - 1
    _, samples = np.unique(classes, return_index=True)
    return classes, samples.astype(np.int64)


def _inside(points: Floats, lows: Floats, highs: Floats, run: Run) -> tuple[Ints, Ints] | None:
    """List the pairs of a point and a box around it; None if they are too many."""
    step = max(1, AT_A_TIME // max(len(points), 1))
    holes = np.isnan(points)
    covered, covering, n_pairs = [np.empty(0, np.int64)], [np.empty(0, np.int64)], 0
    for start in run.track("who covers whom", range(0, len(lows), step), total=-(-len(lows) // step)):
        part = slice(start, start + step)
        inside = np.ones((len(lows[part]), len(points)), dtype=np.bool_)
        for column in range(points.shape[1]):
            low, high = lows[part, column, None], highs[part, column, None]
            within = (low <= points[:, column]) & (points[:, column] <= high)
            if holes[:, column].any():
                within |= holes[:, column] & np.isinf(low) & np.isinf(high)
            inside &= within
        boxes, those = np.nonzero(inside)
        n_pairs += len(boxes)
        if n_pairs > MOST_PAIRS:
            return None
        covered.append(those)
        covering.append(boxes + start)
    return np.concatenate(covered), np.concatenate(covering)


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


def ties_of_boxes(boxes: Boxes, linked: Linked, truth: Ints) -> Any:
    """Count the true links of all linkages of least cost; None if not all that could be linked were."""
    n, m = len(boxes.points), len(boxes.classes)
    if int((linked.partners >= 0).sum()) < min(n, m):
        return None
    # Rows left over have the price 0 in the kernel's terms.
    row_prices = linked.row_prices - (boxes.penalty if n > m else 0)
    columns = linked.column_prices + (boxes.penalty if n > m else 0)
    rows_of, columns_of = np.bincount(boxes.points), np.bincount(boxes.classes, minlength=len(boxes.losses))
    # Identical records have the same price, so one of each tells whether a pair of groups is tight.
    _, some = np.unique(boxes.points, return_index=True)
    price_of_class = np.zeros(len(boxes.losses), dtype=np.int64)
    price_of_class[boxes.classes] = columns
    over = row_prices[some][boxes.covered] + price_of_class[boxes.covering] - boxes.losses[boxes.covering]
    tight = np.flatnonzero(over == 0)
    sizes = rows_of[boxes.covered[tight]] * columns_of[boxes.covering[tight]]
    pairs = None
    if int(sizes.sum()) <= MOST_PAIRS:
        pairs = _pairs_of_groups(boxes, tight, sizes)
    else:
        known = np.flatnonzero(truth >= 0)
        asked = boxes.points[known] * len(boxes.losses) + boxes.classes[truth[known]]
        n_true = int(np.isin(asked, (boxes.covered * len(boxes.losses) + boxes.covering)[tight]).sum())
        return kernels.assignment.Ties(0, n_true, 0, exact=False)
    return kernels.assignment.ties_among(pairs, row_prices, columns, linked.partners, truth)


def _pairs_of_groups(boxes: Boxes, tight: Ints, sizes: Ints) -> tuple[Ints, Ints]:
    """All pairs of records of pairs of groups."""
    row_order, column_order = (
        np.argsort(boxes.points, kind="stable"),
        np.argsort(boxes.classes, kind="stable"),
    )
    row_starts = np.searchsorted(boxes.points[row_order], boxes.covered[tight])
    column_starts = np.searchsorted(boxes.classes[column_order], boxes.covering[tight])
    widths = np.bincount(boxes.classes, minlength=len(boxes.losses))[boxes.covering[tight]]
    within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    wide = np.repeat(widths, sizes)
    rows = row_order[np.repeat(row_starts, sizes) + within // np.maximum(wide, 1)]
    return rows, column_order[np.repeat(column_starts, sizes) + within % np.maximum(wide, 1)]
