"""Matrices: both tables as numbers in one unit, and how their columns vary together."""

from __future__ import annotations

import numpy as np

from sfumato.core.evidence import Evidence
from sfumato.kernels.arrays import Floats
from sfumato.utility._readings import middles_of

#: Records whose products are summed up at once.
_BLOCK = 1 << 17

#: Eigenvalues that differ by less than this share of their sum are one.
_ALIKE = 1e-9


def standardised_both(evidence: Evidence, names: tuple[str, ...]) -> tuple[Floats, Floats, Floats]:
    """Both tables by the mean and deviation of the original's columns, NaN where missing; the deviations.

    A column that does not vary in the original has the unit of its largest change. Generalised values are at
    their middle.
    """
    assert evidence.protected is not None
    first = np.empty((len(evidence.original), len(names)), order="F")  # filled column by column
    second = np.empty((len(evidence.protected), len(names)), order="F")
    units = np.ones(len(names))
    for i, name in enumerate(names):
        one, other = middles_of(evidence.original, evidence.protected, name)
        present = one[~np.isnan(one)]
        if not len(present):
            first[:, i], second[:, i] = np.nan, np.nan
            continue
        # A power of two off, so that no square overflows; around a first value: a constant is exactly 0.
        exponent = int(np.frexp(max(np.abs(present).max(), np.nanmax(np.abs(other), initial=0.0)))[1])
        one, other, present = (np.ldexp(each, -exponent) for each in (one, other, present))
        origin = present[0]
        centred = present - origin
        mean = centred.mean() if np.ptp(centred) > 0 else 0.0
        unit = float(np.sqrt(((centred - mean) ** 2).mean()))
        unit = unit or float(np.nanmax(np.abs(other - origin), initial=0.0)) or 1.0
        first[:, i], second[:, i] = (one - origin - mean) / unit, (other - origin - mean) / unit
        units[i] = np.ldexp(unit, exponent)
    return first, second, units


def column_means(values: Floats) -> Floats:
    """The mean of each column; 0 where nothing is present."""
    means = np.zeros(values.shape[1])
    for i in range(values.shape[1]):
        present = values[:, i][~np.isnan(values[:, i])]
        if len(present):
            means[i] = present[0] + (present - present[0]).mean()
    return means


def covariance(values: Floats, weights: Floats | None = None) -> Floats:
    """Covariance (over n) of each pair of columns over the records that have both; 0 where none has."""
    m = values.shape[1]
    shift = column_means(values)  # around them, so that offsets cost no digits
    masses, sums, products = np.zeros((m, m)), np.zeros((m, m)), np.zeros((m, m))
    for start in range(0, len(values), _BLOCK):
        block = values[start : start + _BLOCK] - shift
        if weights is None and not np.isnan(block).any():
            masses += len(block)
            sums += block.sum(axis=0)[:, None]
            products += block.T @ block
            continue
        present = (~np.isnan(block)).astype(np.float64)
        filled = np.where(present > 0, block, 0.0)
        shares = np.ones(len(block)) if weights is None else weights[start : start + _BLOCK]
        weighted = filled * shares[:, None]
        masses += present.T @ (present * shares[:, None])
        sums += weighted.T @ present
        products += weighted.T @ filled
    masses = np.where(masses > 0, masses, 1.0)
    found = products / masses - (sums / masses) * (sums.T / masses)
    np.fill_diagonal(found, np.maximum(np.diagonal(found), 0.0))  # rounding may take it below
    return (found + found.T) / 2


def correlation(values: Floats, weights: Floats | None = None) -> Floats:
    """Correlation of each pair of columns; 0 for one that does not vary, with itself as well."""
    found = covariance(values, weights)
    deviations = np.sqrt(np.diagonal(found))
    deviations = np.where(deviations > 0, deviations, 1.0)
    scaled: Floats = np.clip(found / np.outer(deviations, deviations), -1.0, 1.0)
    return scaled


def along_eigenvectors(first: Floats, second: Floats) -> tuple[Floats, Floats]:
    """The variance of both matrices along the eigenvectors of the first, largest of the first first.

    Where several eigenvalues are one, any directions that span their space will do. Those are taken along
    which the second matrix differs most, its own axes there: the answer does not depend on which were found.
    """
    eigenvalues, vectors = np.linalg.eigh(first)
    eigenvalues, vectors = np.maximum(eigenvalues[::-1], 0.0), vectors[:, ::-1]
    opens = np.diff(eigenvalues, prepend=np.inf) < -_ALIKE * float(eigenvalues.sum())
    others = np.empty(len(eigenvalues))
    for space in np.split(np.arange(len(eigenvalues)), np.flatnonzero(opens)[1:]):
        basis = vectors[:, space]
        others[space] = np.linalg.eigvalsh(basis.T @ second @ basis)[::-1]
    return eigenvalues, np.maximum(others, 0.0)
