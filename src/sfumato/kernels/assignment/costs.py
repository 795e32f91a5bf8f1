"""Costs: distances as whole numbers, so that optimality and ties are decided exactly.

Records are shifted by a median that occurs and scaled by a power of two, so that neither offsets of 1e8 nor
distances of 1e-9 or 1e12 lose digits. A cost is the distance in units of ``unit``, rounded once, by one
function that no compiler flag may reorder.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sfumato.kernels.arrays import Floats, Ints
from sfumato.kernels.compiling import njit
from sfumato.kernels.norms import Metric, Norm, keys_of, norm_of

_PAIRS = 2**16  # priced at once
NEVER = 2**62  # above any cost or price
MAX_BITS = 42  # of a cost: sums along a path stay whole numbers even in the doubles of SciPy's dense solver
MAX_BITS_OF_SUMS = 60
CODE_BITS = 10  # of the cost of one differing code, if there are only codes: finer than 1 lets prices settle


class CostSpace(NamedTuple):
    """Where two files of records lie, as the loops see it."""

    rows: Floats  # [n, d]
    columns: Floats  # [m, d]
    norm: Norm  # weights in the unit of the coordinates
    scale: float  # units of cost in one unit of distance


@dataclass(frozen=True)
class Frame:
    """A space, and what one unit of its costs stands for."""

    space: CostSpace
    unit: float
    rounding: float  # how far a cost may be from the distance it stands for, in units


def frame(
    rows: Floats, columns: Floats, metric: Metric, *, n_codes: int = 0, weights: Floats | None = None
) -> Frame:
    """Shift and scale two files so that the cost of any pair is a whole number of moderate size.

    Parameters
    ----------
    rows : float64[n, d]
    columns : float64[m, d]
    metric, n_codes, weights
        As for `norm_of`.
    """
    rows, columns = np.asarray(rows, dtype=np.float64), np.asarray(columns, dtype=np.float64)
    _check(rows, columns)
    norm = norm_of(metric, rows.shape[1], n_codes, weights)
    n_measured, n_codes, euclidean = norm.n_measured, len(norm.weights), norm.euclidean
    pooled = np.concatenate((rows, columns))
    codes = _compact_codes(pooled[:, n_measured:])
    largest_count = max(len(rows), len(columns), 1)
    bits = min(MAX_BITS, MAX_BITS_OF_SUMS - largest_count.bit_length())
    if n_measured == 0:
        weight, scale, unit, rounding = 1.0, 2.0**CODE_BITS, 2.0**-CODE_BITS, 0.0
        if euclidean or (norm.weights < 1).any():
            room = max(8, int(norm.weights.sum()).bit_length())
            scale, unit, rounding = 2.0 ** (bits - room), 2.0 ** (room - bits), 1.0
        measured = pooled[:, :0]
    else:
        measured, exponent = _scale_to_unit(pooled[:, :n_measured], n_codes, euclidean=euclidean)
        scale, rounding, weight = 2.0**bits, 1.0, 0.0
        if n_codes:  # one unit of the data, or its square
            weight = float(np.ldexp(1.0, -2 * exponent if euclidean else -exponent))
        unit = float(np.ldexp(1.0, exponent - bits))
        if not euclidean or (n_measured == 1 and n_codes == 0):
            # On a grid the differences are exact, and so are their sums, and so is a matching by sorting.
            measured, rounding = np.rint(measured * scale) / scale, 0.0 if n_codes == 0 else 1.0
    points = np.ascontiguousarray(np.concatenate((measured, codes), axis=1))
    if points.shape[1] == 0:
        points = np.zeros((len(points), 1))
        n_measured = 1
    norm = norm._replace(n_measured=n_measured, weights=norm.weights * weight)
    space = CostSpace(points[: len(rows)], points[len(rows) :], norm, scale)
    return Frame(space, unit, rounding)


def _check(rows: Floats, columns: Floats) -> None:
    """Say what is wrong with the tables."""
    if not rows.ndim == columns.ndim == 2 or rows.shape[1] != columns.shape[1]:  # noqa: PLR2004  — tables
        raise ValueError(
            f"rows and columns must be tables of as many attributes, got: {rows.shape}, {columns.shape}"
        )
    if not np.isfinite(rows).all() or not np.isfinite(columns).all():
        raise ValueError("rows and columns must be finite")


def _compact_codes(codes: Floats) -> Floats:
    """Number the codes of each column from 0, so that they are exact in single precision too."""
    numbered = np.empty(codes.shape)
    for column in range(codes.shape[1]):
        numbered[:, column] = np.unique(codes[:, column], return_inverse=True)[1].reshape(-1)
    return numbered


def _scale_to_unit(values: Floats, n_codes: int, *, euclidean: bool) -> tuple[Floats, int]:
    """Return the values centred and divided by 2**exponent, so that no two records are farther than 1."""
    if len(values) == 0:
        return values, 0
    first = int(np.frexp(np.abs(values).max())[1]) + 1  # so that no difference overflows
    scaled = np.ldexp(values, -first)
    middle = (len(values) - 1) // 2
    centred = scaled - np.partition(scaled, middle, axis=0)[middle]
    widths = centred.max(axis=0) - centred.min(axis=0)
    if not widths.any():
        return centred, _exponent_of(float(n_codes))
    second = int(np.frexp(widths.max())[1])
    relative = np.ldexp(widths, -second)
    farthest = float(np.sqrt((relative**2).sum()) if euclidean else relative.sum())
    second += _exponent_of(farthest * (1 + 1e-9))
    if n_codes:  # their weight is in the units of the data
        second = max(second, _exponent_of(float(n_codes)) - first) + 1
    return np.ldexp(centred, -second), first + second


def _exponent_of(value: float) -> int:
    return int(np.frexp(value)[1])


@njit(cache=True, nogil=True, fastmath=False)  # said outright: a callee would inherit its caller's flag
def cost_of(space: CostSpace, row: int, column: int) -> int:
    """Return the cost of a pair: the one place where a distance becomes a whole number."""
    total, norm = 0.0, space.norm
    for c in range(space.rows.shape[1]):
        difference = space.rows[row, c] - space.columns[column, c]
        if c >= norm.n_measured:
            part = norm.weights[c - norm.n_measured] if difference != 0.0 else 0.0
        else:
            part = difference * difference if norm.euclidean else abs(difference)
        total = max(total, part) if norm.largest else total + part
    if norm.euclidean:
        total = np.sqrt(total)
    return np.int64(np.rint(total * space.scale))  # type: ignore[return-value]  # numba has but one integer


def costs_of_pairs(space: CostSpace, rows: Ints, columns: Ints) -> Ints:
    """Return the cost of each pair, as `cost_of` does."""
    costs = np.empty(len(rows), dtype=np.int64)
    for start in range(0, len(rows), _PAIRS):
        part = slice(start, start + _PAIRS)
        costs[part] = _costs(space, space.rows[rows[part]], space.columns[columns[part]])
    return costs


def costs_of_all(space: CostSpace) -> Ints:
    """Return the costs of all pairs, as `cost_of` does; for small files only."""
    costs = np.empty((len(space.rows), len(space.columns)), dtype=np.int64)
    columns = np.asfortranarray(space.columns)  # an attribute lies side by side, as it is gone through
    size = max(1, _PAIRS // max(len(columns), 1))
    for start in range(0, len(costs), size):
        part = slice(start, start + size)
        costs[part] = _costs(space, space.rows[part, None], columns)
    return costs


def _costs(space: CostSpace, rows: Floats, columns: Floats) -> Ints:
    keys = keys_of(rows, columns, space.norm)
    if space.norm.euclidean:
        np.sqrt(keys, out=keys)
    keys *= space.scale
    return np.rint(keys, out=keys).astype(np.int64)


def limits_of(frame_: Frame, radii: Floats | None, n: int) -> Ints:
    """Return the largest cost each row may pay: its radius, with one unit for rounding."""
    if radii is None:
        return np.full(n, NEVER, dtype=np.int64)
    radii = np.asarray(radii, dtype=np.float64)
    if radii.shape != (n,) or np.isnan(radii).any():
        raise ValueError(f"`radii` must be one number for each of the {n} rows, got: shape {radii.shape}")
    with np.errstate(over="ignore"):
        limits = np.floor(radii / frame_.unit + 1.5)
    return np.where(limits < NEVER, np.maximum(limits, -1.0), float(NEVER)).astype(np.int64)


def doubt_of(framed: Frame) -> int:
    """By how many units the rounded costs of two matchings may differ whose distances sum to the same.

    A cost is rounded once, by half a unit; on a grid each coordinate of both records is.
    """
    space, norm = framed.space, framed.space.norm
    if norm.n_measured == 0 and framed.rounding == 0:
        return 0
    on_grid = not norm.euclidean or space.rows.shape[1] == 1
    return 2 * min(len(space.rows), len(space.columns)) * (norm.n_measured + 1 if on_grid else 1)


def distinct(points: Floats, *labels: Ints) -> tuple[Ints, Ints]:
    """Return which record stands for each group of identical ones, and the group of each record.

    Records are identical if they lie at the same point and have the same labels.
    """
    if len(points) == 0:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    order = np.lexsort((*labels, *points.T))
    opens = np.ones(len(points), dtype=np.bool_)
    opens[1:] = (points[order[1:]] != points[order[:-1]]).any(axis=1)
    for label in labels:
        opens[1:] |= label[order[1:]] != label[order[:-1]]
    groups = np.empty(len(points), dtype=np.int64)
    groups[order] = np.cumsum(opens) - 1
    return order[opens], groups


def exact_sum(values: Ints) -> int:
    """Sum without overflow, however large the values are."""
    return (int((values >> 32).sum()) << 32) + int((values & 0xFFFFFFFF).sum())
