"""Columns of both tables in common bins, one column at a time or two."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato.data.schema import Kind
from sfumato.kernels.arrays import Floats, Ints
from sfumato.utility._marginals import ColumnDistribution, ColumnMarginal, Generalised

#: Up to so many cells of two columns are counted at once; above, only those that occur.
_DENSE_CELLS = 4_000_000


@dataclass(frozen=True)
class Binning:
    """Into which bin each value of a column falls; the bin after the last is for what is missing.

    Numbers fall into the bin of the first edge that is not below them, or the last; codes are bins as they
    are, or have places where the rare ones share a bin.
    """

    n_bins: int
    edges: Floats | None = None
    places: Ints | None = None

    def bins_of(self, values: Floats) -> Ints:
        """The bin of each value."""
        absent = np.isnan(values)
        if self.edges is not None:
            bins = np.searchsorted(self.edges, values)
        else:
            bins = np.where(absent, 0.0, values).astype(np.int64)
            bins = bins if self.places is None else self.places[bins]
        bins[absent] = self.n_bins
        return bins

    def masses(self, spread: ColumnDistribution) -> Floats:
        """The mass in each bin, that of what is missing last."""
        if self.edges is not None:
            points, sums = spread.ascending()
            ends = np.append(np.searchsorted(points, self.edges, side="right"), len(points))
            below = sums[ends] if len(sums) else ends / max(spread.n, 1)
            return np.append(np.diff(below, prepend=0.0), spread.missing)
        counted = np.bincount(self.bins_of(spread.points), spread.masses, self.n_bins + 1).astype(np.float64)
        if spread.masses is None:
            counted /= max(spread.n, 1)
        counted[-1] = spread.missing
        return counted


def reading_of(kind: Kind, generalised: Generalised) -> Generalised:
    """How generalised values of a kind are taken: those of a nominal column have no middle."""
    return "expected" if kind is Kind.NOMINAL else generalised


def binning_of(
    first: ColumnDistribution, second: ColumnDistribution, kind: Kind, *, bins: int, most: int | None = None
) -> Binning:
    """The bins of a column: of numbers by the original's quantiles, of codes one for each.

    With ``most`` the codes that are not among the most frequent of the original, so many, share one bin.
    """
    if kind in {Kind.CONTINUOUS, Kind.DATE}:
        edges = quantile_edges(first, bins)
        return Binning(len(edges) + 1, edges=edges)
    if not all(
        _are_codes(each.points) for each in (first, second)
    ):  # middles of groups, numbers of intervals
        edges = quantile_edges(first, max(len(first.points), 1))
        return Binning(len(edges) + 1, edges=edges)
    n_codes = max(int(each.points.max(initial=-1.0)) for each in (first, second)) + 1
    if most is None or n_codes <= most:
        return Binning(n_codes)
    frequency = np.bincount(first.points.astype(np.int64), weights=first.each(), minlength=n_codes)
    places = np.full(n_codes, most - 1)
    places[np.argsort(-frequency, kind="stable")[: most - 1]] = np.arange(most - 1)
    return Binning(most, places=places)


def _are_codes(points: Floats) -> bool:
    is_whole = (points >= 0).all() and (points == np.floor(points)).all()
    return bool(is_whole and points.max(initial=0) < _DENSE_CELLS)


def quantile_edges(spread: ColumnDistribution, bins: int) -> Floats:
    """Upper ends of all bins but the last: the values themselves if they are few, else quantiles."""
    points, sums = spread.ascending()
    if not len(points):
        return points
    fresh = np.concatenate(([True], points[1:] != points[:-1]))
    if np.count_nonzero(fresh) <= bins:
        return points[fresh][:-1]
    orders = np.arange(1, bins) / bins
    if len(sums):
        places = np.searchsorted(sums[1:], orders * sums[-1] * (1 - 1e-12))
    else:
        places = np.ceil(orders * len(points) * (1 - 1e-12)).astype(np.int64) - 1
    edges = np.unique(points[places])
    inner: Floats = edges[edges < points[-1]]
    return inner


@dataclass(frozen=True)
class BinnedColumn:
    """A column of one table by bins: each record in one, or spread over several as its row of shares says."""

    cells: npt.NDArray[np.integer]  # [n] the bin of each record, or n_bins + its group; as small as can be
    n_bins: int  # with the one for what is missing
    shares: Floats | None  # [groups, n_bins]

    @property
    def n_cells(self) -> int:
        """How many cells there can be."""
        return self.n_bins + (0 if self.shares is None else len(self.shares))

    def distribute_groups(self, counts: Floats) -> Floats:
        """Share the counts of groups (first axis) out among the bins."""
        if self.shares is None:
            return counts
        folded: Floats = counts[: self.n_bins] + self.shares.T @ counts[self.n_bins :]
        return folded


def bin_column(reading: ColumnMarginal, binning: Binning, generalised: Generalised) -> BinnedColumn:
    """Put each record of a column into its bin, or its group."""
    n_bins = binning.n_bins + 1
    spreads = generalised == "expected" and reading.groups is not None
    if not spreads:
        return BinnedColumn(_small(binning.bins_of(reading.values), n_bins), n_bins, None)
    assert reading.groups is not None  # `spreads` says so
    assert reading.starts is not None
    assert reading.points is not None
    coarse = reading.groups >= 0
    cells = np.full(len(coarse), n_bins - 1)
    cells[~coarse] = binning.bins_of(reading.values[~coarse])
    cells[coarse] = n_bins + reading.groups[coarse]
    sizes = np.diff(reading.starts)
    owners = np.repeat(np.arange(len(sizes)), sizes)
    places = owners * n_bins + binning.bins_of(reading.points)
    counts = np.bincount(places, minlength=len(sizes) * n_bins).reshape(len(sizes), n_bins)
    shares = counts / np.maximum(sizes, 1)[:, None]
    return BinnedColumn(_small(cells, n_bins + len(sizes)), n_bins, shares)


def _small(cells: Ints, n_cells: int) -> npt.NDArray[np.integer]:
    """Cells as small numbers: all columns of a table are held at once."""
    return cells.astype(np.min_scalar_type(n_cells))


def joint_masses(first: BinnedColumn, second: BinnedColumn, weights: Floats | None) -> Floats:
    """The joint distribution of two columns of a table over their bins."""
    n, m = first.n_cells, second.n_cells
    cells = first.cells.astype(np.int64) * m + second.cells
    if n * m <= _DENSE_CELLS:
        counts = np.bincount(cells, weights=weights, minlength=n * m).reshape(n, m).astype(np.float64)
        joint = second.distribute_groups(first.distribute_groups(counts).T).T
    else:
        joint = _joint_of_many(first, second, cells, weights)
    total = joint.sum()
    return joint / total if total > 0 else joint


def _joint_of_many(first: BinnedColumn, second: BinnedColumn, cells: Ints, weights: Floats | None) -> Floats:
    """The same for many cells, most of them empty."""
    from scipy.sparse import csr_array, eye_array, vstack

    occurring, which = np.unique(cells, return_inverse=True)
    counts = np.bincount(which.ravel(), weights=weights).astype(np.float64)
    sparse = csr_array(
        (counts, (occurring // second.n_cells, occurring % second.n_cells)),
        shape=(first.n_cells, second.n_cells),
    )
    sides = [
        eye_array(side.n_bins, format="csr")
        if side.shares is None
        else vstack([eye_array(side.n_bins), csr_array(side.shares)], format="csr")
        for side in (first, second)
    ]
    joint: Floats = (sides[0].T @ sparse @ sides[1]).toarray()
    return joint
