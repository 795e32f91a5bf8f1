"""Leaves: columns in small boxes, and the search for those that suit each row best.

What suits row i best has the least key, cost minus price. The search goes in single precision and errs on
one side: a column is passed over only if its exact key cannot lie below the threshold, and what is found is
priced exactly afterwards. Each rounding error is covered where it arises: that of a row by the row's slack,
that of a column by raising its price, that of the sum by a common factor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sfumato.kernels.arrays import Floats, Ints, Singles
from sfumato.kernels.assignment.costs import NEVER, CostSpace, Frame
from sfumato.kernels.norms import Norm
from sfumato.kernels.trees.planting import in_leaves, leaf_of

LEAF = 512
HALF_ULP = 2.0**-24
ENDLESS = np.float32(1e17)  # beyond any key; its square is still a number


class Blocks(NamedTuple):
    """Columns by leaves: [leaf, attribute, slot], with the slots side by side for vector instructions."""

    starts: Ints
    coordinates: Singles
    lows: Singles
    highs: Singles


@dataclass(frozen=True)
class Filter:
    """Both files in single precision, with bounds of what that costs in accuracy."""

    space: CostSpace
    rows: Singles
    blocks: Blocks
    row_leaves: Ints  # starts of the leaves of rows
    places: Ints  # of each column in the blocks
    row_slack: Floats  # error of a key by the rounding of a row's coordinates, in units of distance
    column_slack: Floats
    inflation: float  # factor that covers the error of a sum
    rounding: float  # of a cost, in units of cost

    def prices_by_leaf(self, prices: Ints) -> tuple[Singles, Singles]:
        """Return prices by leaf and slot, rounded to the safe side, and the highest of each leaf."""
        n_leaves = len(self.blocks.coordinates)
        blocked = np.full(n_leaves * LEAF, -ENDLESS, dtype=np.float32)
        blocked[self.places] = round_up((prices / self.space.scale + self.column_slack) * self.inflation)
        by_leaf = blocked.reshape(n_leaves, LEAF)
        return by_leaf, by_leaf.max(axis=1)

    def thresholds(self, keys: Ints, rows: Ints | slice) -> Singles:
        """Return thresholds under which all pairs of the rows with lesser keys are found."""
        wanted = (keys + self.rounding) / self.space.scale
        raised = wanted + 8 * HALF_ULP * np.abs(wanted) + 1.001 * self.row_slack[rows]
        return np.where(keys >= NEVER, ENDLESS, round_up(np.minimum(raised * self.inflation, ENDLESS)))

    def floors(self, thresholds: Singles, rows: Ints) -> Ints:
        """Return keys below which nothing can be that was passed over at the thresholds."""
        reached = thresholds.astype(np.float64)
        # A key is a difference, so its own rounding is not covered by the factor where it is negative.
        lowered = reached / self.inflation - 4 * HALF_ULP * np.abs(reached) - self.row_slack[rows]
        floors = np.ceil(lowered * self.space.scale - self.rounding - 1e-6)
        return np.where(thresholds >= ENDLESS, float(NEVER), floors).astype(np.int64)


def round_up(values: Floats) -> Singles:
    """Return the next single above each value."""
    return np.nextafter(values.astype(np.float32), np.float32(np.inf))


def leaf_order(points: Floats, norm: Norm) -> tuple[Ints, Ints]:
    """Halve at the median of the widest attribute until leaves are small; return the order and the starts."""
    order = np.arange(len(points))
    starts = [len(points)]
    parts = [(0, len(points))] if len(points) else []
    in_order = np.sort(points[:, norm.n_measured :], axis=0)
    while parts:
        begin, end = parts.pop()
        if end - begin <= LEAF:
            starts.append(begin)
            continue
        here = points[order[begin:end]]
        widest = int(np.argmax(_widths(here, norm, in_order)))
        middle = (end - begin) // 2
        order[begin:end] = order[begin:end][np.argpartition(here[:, widest], middle)]
        parts += [(begin, begin + middle), (begin + middle, end)]
    return order, np.sort(np.array(starts, dtype=np.int64))


def _widths(points: Floats, norm: Norm, in_order: Floats) -> Floats:
    """Return, roughly and but for a factor, what halving a part by each attribute adds to its distance.

    That is the variance of a measured one; of codes it is the share of all records (``in_order`` by each of
    them) whose code lies among those of the part, for a code outside adds the same wherever it lies.
    """
    codes = points[:, norm.n_measured :]
    shares = [
        np.searchsorted(all_, its.max(), side="right") - np.searchsorted(all_, its.min())
        if its.min() < its.max()
        else 0
        for all_, its in zip(in_order.T, codes.T, strict=True)
    ]
    shared = norm.weights[: len(shares)] * np.array(shares, dtype=np.float64) / max(len(in_order), 1)
    return np.concatenate((points[:, : norm.n_measured].var(axis=0), shared))


def search_coordinates(space: CostSpace) -> tuple[Floats, Floats]:
    """Return the coordinates by which to search: for Euclidean distances along the principal axes.

    A rotation keeps distances, and boxes around what varies together become tight.
    """
    if not space.norm.euclidean or space.norm.n_measured < space.rows.shape[1] or len(space.columns) <= 1:
        return space.rows, space.columns
    axes = np.linalg.eigh(np.cov(space.columns, rowvar=False).reshape(space.rows.shape[1], -1))[1][:, ::-1]
    return np.ascontiguousarray(space.rows @ axes), np.ascontiguousarray(space.columns @ axes)


def plant(frame: Frame, rows: Floats, columns: Floats, row_leaves: Ints, column_leaves: Ints) -> Filter:
    """Build the filter of a frame from coordinates by which to search, both in the order of their leaves."""
    space = frame.space
    n_leaves = len(column_leaves) - 1
    singles = columns.astype(np.float32)
    starts = column_leaves[:-1]
    blocks = Blocks(
        column_leaves,
        in_leaves(singles, column_leaves, LEAF),
        np.minimum.reduceat(singles, starts) if n_leaves else singles[:0],
        np.maximum.reduceat(singles, starts) if n_leaves else singles[:0],
    )
    return Filter(
        space=space,
        rows=rows.astype(np.float32),
        blocks=blocks,
        row_leaves=row_leaves,
        places=leaf_of(column_leaves, LEAF),
        row_slack=_slack(rows, space),
        column_slack=_slack(columns, space),
        inflation=1 + 4 * HALF_ULP * (columns.shape[1] + 8),
        rounding=frame.rounding,
    )


def _slack(points: Floats, space: CostSpace) -> Floats:
    """Bound the error of a distance by the rounding of one record's coordinates; codes are exact."""
    measured = points[:, : space.norm.n_measured]
    norms = np.sqrt((measured**2).sum(axis=1)) if space.norm.euclidean else np.abs(measured).sum(axis=1)
    return np.asarray(1.01 * HALF_ULP * norms + (1e-30 if space.norm.n_measured else 0.0))
