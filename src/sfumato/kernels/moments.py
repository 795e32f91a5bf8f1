"""Moments: means and covariances that can be merged from blocks, and roots of covariance matrices.

Two rounds keep all digits however far the values lie from zero: the first finds the means (`means_of`), the
second sums around them (`Moments.of`). Missing values (NaN) are left out pair by pair of columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from sfumato.kernels.arrays import Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class ColumnMeans:
    """Number and mean of the values present in each column.

    Attributes
    ----------
    count : int64[d]
    mean : float64[d]
        NaN where nothing is present.
    """

    count: Ints
    mean: Floats

    def merge(self, other: Self) -> Self:
        r"""Join with the means of other records (Chan, Golub, LeVeque 1983).

        .. math:: \bar x = \bar x_a + \frac{n_b}{n_a + n_b} (\bar x_b - \bar x_a)
        """
        count = self.count + other.count
        mean = self.mean + (other.mean - self.mean) * (other.count / np.maximum(count, 1))
        mean = np.where(self.count == 0, other.mean, np.where(other.count == 0, self.mean, mean))
        return type(self)(count, mean)


def means_of(values: Floats) -> ColumnMeans:
    """Mean of each column of ``values`` (float64[n, d], NaN is missing)."""
    if len(values) == 0:
        return ColumnMeans(np.zeros(values.shape[1], dtype=np.int64), np.full(values.shape[1], np.nan))
    present = ~np.isnan(values)
    whole = bool(present.all())  # then nothing need be set aside
    count = np.full(values.shape[1], len(values)) if whole else present.sum(axis=0)
    # Around a first value, so that a constant column has exactly its constant as mean (and a variance of 0);
    # then once more around what was found, in case that first value is an outlier.
    mean, apart = (
        values[present.argmax(axis=0), np.arange(values.shape[1])],
        np.empty_like(values, dtype=np.float64),
    )
    for _ in range(2):
        np.subtract(values, mean, out=apart)
        if not whole:
            apart[~present] = 0.0
        mean = mean + apart.sum(axis=0) / np.maximum(count, 1)
    return ColumnMeans(count, mean)


@dataclass(frozen=True, slots=True, eq=False)
class PairwiseMoments:
    r"""First and second moments of each pair of columns, over the records that have both.

    With :math:`R_{jk}` the records in which columns j and k are present, and :math:`a` the shift:

    .. math::

        n_{jk} = |R_{jk}|, \quad
        s_{jk} = \sum_{i \in R_{jk}} (x_{ij} - a_j), \quad
        p_{jk} = \sum_{i \in R_{jk}} (x_{ij} - a_j)(x_{ik} - a_k).

    Attributes
    ----------
    shift : float64[d]
        A place near the means. The same for all blocks, or they cannot be merged.
    counts : int64[d, d]
    sums : float64[d, d]
    products : float64[d, d]
    """

    shift: Floats
    counts: Ints
    sums: Floats
    products: Floats

    @classmethod
    def of(cls, values: Floats, shift: Floats) -> Self:
        """Sum up ``values`` (float64[n, d], NaN is missing); a NaN in ``shift`` (no mean) counts as 0."""
        shift = np.where(np.isnan(shift), 0.0, shift)
        is_present = ~np.isnan(values)
        present = is_present.astype(np.float64)  # counts by matrix product are exact, and fast
        centred = values - shift
        if is_present.all():
            counts = np.full((len(shift), len(shift)), len(values))
        else:
            counts, centred = (present.T @ present).astype(np.int64), np.where(is_present, centred, 0.0)
        return cls(shift, counts, centred.T @ present, centred.T @ centred)

    def merge(self, other: Self) -> Self:
        """Join with the moments of other records around the same shift."""
        if not np.array_equal(self.shift, other.shift):
            raise ValueError("moments can be merged only around the same shift")
        return type(self)(
            self.shift, self.counts + other.counts, self.sums + other.sums, self.products + other.products
        )

    def means(self) -> Floats:
        """Mean of each column, NaN where nothing is present."""
        count = np.diagonal(self.counts)
        mean = self.shift + np.diagonal(self.sums) / np.maximum(count, 1)
        return np.where(count > 0, mean, np.nan)

    def covariance(self, *, ddof: int = 1) -> Floats:
        r"""Covariance of each pair of columns; 0 where fewer than two records have both.

        .. math:: c_{jk} = \frac{p_{jk} - s_{jk} s_{kj} / n_{jk}}{n_{jk} - \mathrm{ddof}}

        With missing values it need not be positive semidefinite: `symmetric_root` takes the nearest that is.
        """
        central = self.products - self.sums * self.sums.T / np.maximum(self.counts, 1)
        covariance = np.where(self.counts > 1, central, 0.0) / np.maximum(self.counts - ddof, 1)
        np.fill_diagonal(covariance, np.maximum(np.diagonal(covariance), 0.0))  # rounding may take it below
        return covariance

    def variances(self, *, ddof: int = 1) -> Floats:
        """Variance of each column; 0 where fewer than two values are present."""
        return np.diagonal(self.covariance(ddof=ddof)).copy()


def symmetric_root(matrix: Floats) -> Floats:
    r"""Square root of a symmetric matrix, with what is negative in it set to 0.

    .. math:: A^{1/2} = V \operatorname{diag}\left(\sqrt{\max(\lambda, 0)}\right) V^\top
    """
    eigenvalues, vectors = np.linalg.eigh(matrix)
    return (vectors * np.sqrt(np.maximum(eigenvalues, 0.0))) @ vectors.T  # type: ignore[no-any-return]


def inverse_root(matrix: Floats, rtol: float = 1e-12) -> Floats:
    r"""Inverse square root of a symmetric matrix on the space that it spans (pseudo-inverse).

    .. math::

        A^{-1/2} = V \operatorname{diag}\left(
            \lambda^{-1/2} [\lambda > \mathrm{rtol} \cdot \lambda_{\max}] \right) V^\top

    Parameters
    ----------
    matrix : float64[d, d]
    rtol : float
        Eigenvalues up to this share of the greatest are taken for 0: directions in which nothing varies.
    """
    eigenvalues, vectors = np.linalg.eigh(matrix)
    spans = eigenvalues > rtol * max(eigenvalues.max(initial=0.0), 0.0)
    factors = np.where(spans, 1.0 / np.sqrt(np.where(spans, eigenvalues, 1.0)), 0.0)
    return (vectors * factors) @ vectors.T  # type: ignore[no-any-return]


def canonical_signs(directions: Floats) -> Floats:
    """+1 or −1 for each direction, a row, so that its greatest entry is positive.

    A direction found by a decomposition has either sign, and libraries differ in which. Entries that differ
    by rounding only are alike: then the first of them decides.
    """
    sizes = np.abs(directions)
    greatest = np.argmax(sizes > sizes.max(axis=-1, keepdims=True) * (1 - 1e-9), axis=-1)
    signs: Floats = np.where(
        np.take_along_axis(directions, greatest[..., None], axis=-1)[..., 0] < 0, -1.0, 1.0
    )
    return signs
