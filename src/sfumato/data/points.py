"""Records as points: columns of every kind in one space, so that near records have little between them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np

from sfumato import kernels
from sfumato.data.hierarchy.likeness import labels_of
from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.data.schema import Kind
from sfumato.data.table import Table
from sfumato.kernels.arrays import Floats, Ints

Scale = Literal["deviation", "range", "robust", "none"]
SCALES: dict[str, str] = {
    "deviation": "The standard deviation of the column.",
    "range": "The distance from the least to the greatest value of the column.",
    "robust": "Robust covariances of all numbers and dates, which outliers cannot move (Mahalanobis).",
    "none": "The unit in which the column is written.",
}
Nominal = Literal["frequency", "equal", "hierarchy"]

#: Coordinates a nominal column may take; the values beyond, the rarest, count as one.
MAX_COORDINATES = 50

#: Labels a level of a hierarchy may have to count; values are told apart by the levels above otherwise.
MAX_LABELS = 1000


def points_of(
    table: Table, *, scale: Scale, nominal: Nominal, hierarchies: Mapping[str, Hierarchy] | None = None
) -> Floats:
    """Place the records of a table by its chosen columns, around zero; complete and finite.

    Continuous columns are placed by their value, dates by their time, ordinal columns by the position of
    their value in its order (`standardise`); nominal ones by `places_of`, or with ``nominal="hierarchy"`` by
    `places_in` the one that is given for them. A missing value lies at the mean, with ``scale="robust"`` at
    the median.
    """
    blocks, ordered = [], []
    for name in table.chosen:
        tree = (hierarchies or {}).get(name) if nominal == "hierarchy" else None
        if tree is not None:
            blocks.append(_by_labels(labels_of(tree, table, name), scale=scale))
        elif table.schema[name].kind is Kind.NOMINAL:
            blocks.append(_spread_out(table.codes(name).codes, scale=scale, nominal=nominal))
        elif scale == "robust":
            ordered.append(np.where(table.missing(name), np.nan, standardise(table.numbers(name), scale)))
        else:
            blocks.append(standardise(table.numbers(name), scale)[:, None])
    if ordered:
        blocks.append(_uncorrelate(np.column_stack(ordered)))
    return np.concatenate(blocks, axis=1) if blocks else np.zeros((len(table), 1))


def standardise(values: Floats, scale: Scale) -> Floats:
    """Centre a column and divide it by its deviation, its range or 1; constants and missing become 0."""
    present = ~np.isnan(values)
    there = values[present]
    if not len(there):
        return np.zeros(len(values))
    # A power of two off, so that no square overflows; around a first value, so that a constant is exactly 0.
    exponent = int(np.frexp(np.abs(there).max())[1])
    centred = np.ldexp(there, -exponent)
    centred = centred - centred[0]
    centred = centred - centred.mean()
    if scale == "none":
        unit = float(np.ldexp(1.0, -exponent))
    elif scale == "range":
        unit = float(np.ptp(centred))
    else:
        unit = float(np.sqrt((centred**2).mean()))
    placed = np.zeros(len(values))
    placed[present] = centred / unit if unit > 0 else 0.0
    return placed


def _uncorrelate(values: Floats) -> Floats:
    """Place records so that their distances are Mahalanobis distances by robust covariances."""
    middle = kernels.outlyingness.RobustCentre.of(values)
    varies = middle.scale > 0
    standard = np.where(varies, (values - middle.centre) / np.where(varies, middle.scale, 1.0), 0.0)
    placed: Floats = np.nan_to_num(standard) @ kernels.moments.inverse_root(middle.correlation)
    return placed


def places_of(shares: Floats, *, scale: Scale, nominal: Nominal) -> Floats:
    r"""Place the values of a nominal column so that distances say how much it means to differ.

    .. math::

        d(a, b)^2 = \frac{1}{C - 1} \left(\frac{1}{p_a} + \frac{1}{p_b}\right)
        \quad \text{or} \quad
        d(a, b)^2 = \frac{2}{1 - \sum_c p_c^2}
        \qquad (a \ne b)

    for ``nominal="frequency"`` (the chi-square distance of multiple correspondence analysis: a rare value is
    far from all others) or ``"equal"``, where :math:`p_a` is the share of value :math:`a` and :math:`C` the
    number of values. Either way the variance of the column is 1 over all coordinates, as that of a
    standardised number. With ``scale="range"`` the two values farthest apart are at distance 1.

    Parameters
    ----------
    shares : float64[C]
        Positive, with sum 1.

    Returns
    -------
    float64[C, d]
        One row per value; their mean, weighted by the shares, is 0. Two values need one coordinate only.
    """
    n_values = len(shares)
    if n_values < 2:  # noqa: PLR2004  — a constant tells nobody apart
        return np.zeros((n_values, 1))
    if nominal == "frequency":
        weights = 1.0 / (shares * (n_values - 1))
    else:
        weights = np.full(n_values, 1.0 / (1.0 - (shares**2).sum()))
    if scale == "range":
        weights = weights / np.sort(weights)[-2:].sum()
    if n_values == 2:  # noqa: PLR2004
        return np.array([[-shares[1]], [shares[0]]]) * float(np.sqrt(weights.sum()))
    roots = np.sqrt(weights)
    return np.diag(roots) - shares * roots


def places_in(labels: Ints, shares: Floats, *, scale: Scale) -> Floats:
    r"""Place the values of a nominal column so that distances say how far apart they are in a hierarchy.

    .. math:: d(a, b)^2 \propto h(a, b)

    where :math:`h` is the height of the lowest label that covers both. As in `places_of`, the variance of the
    column is 1 over all coordinates, or the two values farthest apart are at distance 1.

    Parameters
    ----------
    labels : int64[C, levels]
        The label of each value at each level below the root.
    shares : float64[C]
        Positive, with sum 1.

    Returns
    -------
    float64[C, d]
        The main coordinates, `MAX_COORDINATES` at most.
    """
    coarse_columns = [column for column in labels.T if len(np.unique(column)) <= MAX_LABELS]
    if not coarse_columns:
        return np.zeros((len(labels), 1))
    patterns, back = np.unique(np.column_stack(coarse_columns), axis=0, return_inverse=True)
    # Two values that differ at a level differ in two of its coordinates.
    marks = np.hstack([column[:, None] == np.unique(column) for column in patterns.T]) / np.sqrt(2.0)
    weights = np.bincount(back, shares)
    centred = marks - weights @ marks
    directions, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    main = sizes > 1e-9 * max(float(sizes.max(initial=0.0)), 1.0)
    placed = (directions * sizes)[:, main][:, :MAX_COORDINATES]
    if not placed.shape[1]:
        return np.zeros((len(labels), 1))
    if scale == "range":
        # Heights are an ultrametric: from any value the farthest is as far as any two are.
        unit = np.sqrt(float((patterns != patterns[:1]).sum(axis=1).max()))
    else:
        unit = np.sqrt(float(weights @ (placed**2).sum(axis=1)))
    spread: Floats = placed[back.reshape(-1)] / unit
    return spread


def _by_labels(labels: Ints, *, scale: Scale) -> Floats:
    """Place records by the labels of a nominal column (−1: missing)."""
    values, codes = np.unique(labels, axis=0, return_inverse=True)
    codes, there = codes.reshape(-1), values[:, 0] >= 0
    counts = np.bincount(codes, minlength=len(values)) * there
    if not counts.any():
        return np.zeros((len(labels), 1))
    places = places_in(values[there], (counts / counts.sum())[there], scale=scale)
    rows = np.zeros((len(values), places.shape[1]))
    rows[there] = places
    return rows[codes]


def _spread_out(codes: Ints, *, scale: Scale, nominal: Nominal) -> Floats:
    """Place records by a nominal column given as codes (−1: missing)."""
    counts = np.bincount(codes[codes >= 0])
    places_in_order = np.empty(len(counts), dtype=np.int64)
    places_in_order[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
    lumped = (
        np.minimum(places_in_order, MAX_COORDINATES - 1)
        if len(counts) > MAX_COORDINATES
        else np.arange(len(counts))
    )
    totals = np.bincount(lumped, counts)
    places = places_of(totals / max(totals.sum(), 1.0), scale=scale, nominal=nominal)
    if not len(places):
        return np.zeros((len(codes), 1))
    rows = np.vstack([places[lumped], np.zeros((1, places.shape[1]))])  # the last row is that of code −1
    placed: Floats = rows[codes]
    return placed
