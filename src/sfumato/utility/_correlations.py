"""Correlations of the columns of both tables, pair by pair over the records that have both values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

import numpy as np

from sfumato import kernels
from sfumato.core.evidence import Evidence
from sfumato.core.run import Run
from sfumato.data.points import standardise
from sfumato.kernels.arrays import Floats
from sfumato.utility._marginals import ColumnMarginal, Generalised, read_both

#: Records at a time when sums over pairs of columns are taken.
_BLOCK = 1 << 16

#: A column of this variance, where it is 1 over all records, is a constant.
_CONSTANT = 1e-12


def correlations_of_both(
    evidence: Evidence,
    names: tuple[str, ...],
    run: Run,
    *,
    by: Literal["value", "rank"],
    generalised: Generalised,
) -> list[tuple[Floats, Floats]]:
    """The correlations of all pairs in both tables, and the effective numbers of records behind them."""
    assert evidence.protected is not None  # `refuses` saw to it
    found = []
    for side in range(2):
        readings = (read_both(evidence.original, evidence.protected, name)[side] for name in names)
        run.check()
        found.append(correlations(readings, by=by, generalised=generalised))
    return found


def correlations(
    readings: Iterable[ColumnMarginal], *, by: Literal["value", "rank"], generalised: Generalised
) -> tuple[Floats, Floats]:
    """The correlations of columns of a table, 0 with a constant, and effective numbers of records.

    Of a column nothing is kept but its standardised values.
    """
    columns, shrinks, weights = [], [], None
    for reading in readings:
        values, weights = reading.values, reading.weights
        if by == "rank":
            values = kernels.ranks.midranks(values)
        shrinks.append(_shrink(reading) if by == "value" and generalised == "expected" else 1.0)
        columns.append(np.where(np.isnan(values), np.nan, standardise(values, "deviation")))
        del reading, values  # before the next is read
    plain, effective = _pairwise(columns, weights)
    shrunk: Floats = np.clip(plain * np.outer(shrinks, shrinks), -1.0, 1.0)
    return shrunk, effective


def _shrink(reading: ColumnMarginal) -> float:
    """By how much the deviation of the middles falls short of that of all that they may stand for."""
    reading = _in_a_safe_unit(reading)
    within = reading.variances()
    if within is None or reading.groups is None:
        return 1.0
    middle = reading.distribution("midpoint")
    masses = middle.each()
    if not len(masses) or masses.sum() <= 0:
        return 1.0
    mean = np.average(middle.points, weights=masses)
    between = float(np.average((middle.points - mean) ** 2, weights=masses))
    weights = np.ones(len(reading.values)) if reading.weights is None else reading.weights
    inside = np.append(within, 0.0)[reading.groups] * ~np.isnan(reading.values)
    added = float((weights * inside).sum() / weights[~np.isnan(reading.values)].sum())
    return float(np.sqrt(between / (between + added))) if between > 0 else 0.0


def _in_a_safe_unit(reading: ColumnMarginal) -> ColumnMarginal:
    """The same with a power of two off, so that no square overflows."""
    if reading.points is None:
        return reading
    values, points = reading.values, reading.points
    largest = max(float(np.nanmax(np.abs(each), initial=0.0)) for each in (values, points))
    exponent = int(np.frexp(largest)[1])
    return replace(reading, values=np.ldexp(values, -exponent), points=np.ldexp(points, -exponent))


def _pairwise(columns: list[Floats], weights: Floats | None) -> tuple[Floats, Floats]:
    """Correlate columns around zero, each pair over the records that have both."""
    d, n = len(columns), len(columns[0])
    totals = np.zeros((5, d, d))
    for start in range(0, n, _BLOCK):
        block = np.column_stack([column[start : start + _BLOCK] for column in columns])
        here = (~np.isnan(block)).astype(np.float64)
        values = np.where(here > 0, block, 0.0)
        w = np.ones(len(block)) if weights is None else weights[start : start + _BLOCK]
        scaled = values * w[:, None]
        totals[0] += (here * w[:, None]).T @ here
        totals[1] += scaled.T @ here
        totals[2] += (scaled * values).T @ here
        totals[3] += scaled.T @ values
        totals[4] += (here * w[:, None] ** 2).T @ here
    mass = np.where(totals[0] > 0, totals[0], 1.0)
    means = totals[1] / mass
    variances = np.maximum(totals[2] / mass - means**2, 0.0)
    covariances = totals[3] / mass - means * means.T
    scales = np.sqrt(variances * variances.T)
    sound = (variances > _CONSTANT) & (variances.T > _CONSTANT)
    found = np.where(sound, covariances / np.where(sound, scales, 1.0), 0.0)
    effective = totals[0] ** 2 / np.where(totals[4] > 0, totals[4], 1.0)
    return np.clip(found, -1.0, 1.0), effective
