"""Outlyingness: how far records lie from the middle of all, which outliers cannot move."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sfumato.kernels.arrays import Flags, Floats, Ints
from sfumato.kernels.moments import PairwiseMoments

#: The median absolute deviation of a normal variable, as a multiple of which deviations are told.
_NORMAL_MAD = 1.4826022185056018

#: Standardised values count no more than this when correlations are found.
_HUBER = 2.0

#: How often correlations are found anew among the half of the records that lies nearest.
_CONCENTRATIONS = 3

#: So many records for each column must be in that half for it to tell correlations.
_CORE_RECORDS = 5

#: Fewer values apart from one that most records share have no spread of their own.
_MIN_VALUES = 10

#: Least variance of any direction, as a share of the greatest: none is so thin that nothing may leave it.
_THINNEST = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class RobustCentre:
    """Where the bulk of the records lies, and how it is spread.

    Attributes
    ----------
    centre : float64[d]
        Medians; NaN where nothing is present.
    scale : float64[d]
        Median absolute deviations, in the unit of a normal's standard deviation; 0 for a constant.
    correlation : float64[d, d]
        Of the standardised values, drawn in to ±2, of the half of the records that lies nearest; positive
        definite.
    """

    centre: Floats
    scale: Floats
    correlation: Floats

    @classmethod
    def of(cls, values: Floats) -> RobustCentre:
        """Find the middle of ``values`` (float64[n, d], NaN is missing).

        Drawing in keeps single outliers from moving a correlation; a clump of them, each ordinary in every
        column, is left behind when the correlations are found anew among the nearest half (the
        concentration of Hubert, Rousseeuw and Verdonck 2012).
        """
        columns = [column[~np.isnan(column)] for column in values.T]
        centre = np.array([np.median(column) if len(column) else np.nan for column in columns])
        pairs = zip(columns, centre, strict=True)
        scale = np.array([_median_deviation(column, middle) for column, middle in pairs])
        drawn_in = np.clip((values - centre) / np.where(scale > 0, scale, 1.0), -_HUBER, _HUBER)
        middle = cls(centre, scale, _correlation(drawn_in))
        for _ in range(_CONCENTRATIONS):
            found = scores(*middle.distances(values))
            judged = found[found > -np.inf]
            if len(judged) < 2 * _CORE_RECORDS * values.shape[1]:
                break
            core = (found > -np.inf) & (found <= np.median(judged))
            middle = cls(centre, scale, _correlation(drawn_in[core]))
        return middle

    def distances(self, values: Floats) -> tuple[Floats, Ints]:
        r"""Squared Mahalanobis distance of each record over the columns it has, and how many those are.

        .. math:: d_i^2 = z_{iA}^\top R_{AA}^{-1} z_{iA}, \quad z_{ij} = (x_{ij} - m_j) / s_j

        Constant columns do not count.

        Parameters
        ----------
        values : float64[n, d]
            NaN is missing.

        Returns
        -------
        squares : float64[n]
        sizes : int64[n]
            0 for a record that has no column that varies; its distance is 0.
        """
        squares, sizes = np.zeros(len(values)), np.zeros(len(values), dtype=np.int64)
        for columns, rows in patterns(~np.isnan(values) & (self.scale > 0)):
            standard = (values[np.ix_(rows, columns)] - self.centre[columns]) / self.scale[columns]
            inverse = np.linalg.inv(self.correlation[np.ix_(columns, columns)])
            squares[rows] = np.maximum(((standard @ inverse) * standard).sum(axis=1), 0.0)
            sizes[rows] = len(columns)
        return squares, sizes


def patterns(present: Flags) -> Iterator[tuple[Ints, Ints]]:
    """Yield the columns and the rows of each pattern of what is present, if anything is.

    Parameters
    ----------
    present : bool[n, d]

    Yields
    ------
    columns, rows : int64[p], int64[m]
        Both ascending; every row with a value comes once.
    """
    n, d = present.shape
    if n == 0 or d == 0:
        return
    if present.all():
        yield np.arange(d), np.arange(n)
        return
    bits = np.packbits(present, axis=1)
    words = np.zeros((n, -(-bits.shape[1] // 8) * 8), dtype=np.uint8)
    words[:, : bits.shape[1]] = bits
    keys = words.view(np.uint64)  # whole numbers sort much faster than rows of flags
    _, first, which = np.unique(
        keys[:, 0] if keys.shape[1] == 1 else keys, axis=0, return_index=True, return_inverse=True
    )
    rows_in_turn = np.argsort(which.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(which.ravel()))
    for start, rows in zip(first, np.split(rows_in_turn, ends[:-1]), strict=True):
        columns = np.flatnonzero(present[start])
        if len(columns):
            yield columns, rows


def _median_deviation(values: Floats, middle: float) -> float:
    """Take the median absolute deviation; where half the values are equal, that of the others.

    A few others tell too wide a spread, which would make them ordinary: then all do, by their squares.
    """
    apart = np.abs(values - middle)
    spread = float(np.median(apart)) if len(apart) else 0.0
    others = apart[apart > 0]
    if spread > 0.0 or not len(others):
        return _NORMAL_MAD * spread
    spread = _NORMAL_MAD * float(np.median(others))
    if len(others) >= _MIN_VALUES:
        return spread
    most = float(others.max())
    return min(spread, most * float(np.sqrt(((apart / most) ** 2).mean())))


def _correlation(values: Floats) -> Floats:
    """Correlate pairs of columns, 0 with constants, and let no direction be without variance."""
    covariance = PairwiseMoments.of(values, np.zeros(values.shape[1])).covariance()
    deviation = np.sqrt(np.diagonal(covariance))
    deviation = np.where(deviation > 0, deviation, 1.0)
    correlation = covariance / np.outer(deviation, deviation)
    np.fill_diagonal(correlation, 1.0)
    eigenvalues, vectors = np.linalg.eigh(correlation)
    least = _THINNEST * max(float(eigenvalues.max(initial=0.0)), 0.0)
    return (vectors * np.maximum(eigenvalues, least)) @ vectors.T  # type: ignore[no-any-return]


def scores(squares: Floats, sizes: Ints) -> Floats:
    r"""Make distances over different numbers of columns comparable (Wilson and Hilferty 1931).

    .. math:: t = \frac{(d^2/p)^{1/3} - 1 + 2/(9p)}{\sqrt{2/(9p)}}

    is near a standard normal where :math:`d^2` is a :math:`\chi^2` with :math:`p` degrees of freedom; and for
    records of one :math:`p` it keeps their order. Without any column the score is −∞.
    """
    part = 2.0 / (9.0 * np.maximum(sizes, 1))
    found = (np.cbrt(squares / np.maximum(sizes, 1)) - 1.0 + part) / np.sqrt(part)
    return np.where(sizes > 0, found, -np.inf)


def squares_at(score: float, sizes: Ints) -> Floats:
    """Give the squared distance that has this score over each number of columns: the inverse of `scores`."""
    part = 2.0 / (9.0 * np.maximum(sizes, 1))
    root: Floats = np.maximum(1.0 - part + score * np.sqrt(part), 0.0)
    return sizes * root**3
