"""Coordinates of records that are compared: numbers scaled, ranked or whitened, categories as codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np

from sfumato import kernels
from sfumato.data.codings import codes_of_both, numbers_of_both
from sfumato.data.hierarchy.likeness import labels_of
from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.data.schema import Kind
from sfumato.data.table import Table
from sfumato.kernels.arrays import Floats

FixedMetric = Literal["euclidean", "manhattan", "chebyshev", "mahalanobis", "hamming", "gower"]
Metric = Literal[FixedMetric, "learned"]
Scale = Literal["deviation", "range", "pooled", "rank"]
KernelMetric = Literal["euclidean", "manhattan", "chebyshev", "hamming"]

#: What lies farther out is put here: squares of it are still numbers.
FARTHEST = 1e100

#: Directions in which records vary by less than this share of the most there is are redundant.
REDUNDANT = 1e-8


def as_kernel(metric: Metric) -> KernelMetric:
    if metric == "gower":
        return "manhattan"
    if metric == "learned":
        return "euclidean"
    return "euclidean" if metric == "mahalanobis" else metric


def coordinates_of(
    known: Table, released: Table, trees: Mapping[str, Hierarchy | None], *, metric: Metric, scale: Scale
) -> tuple[Floats, Floats, Floats]:
    """Give both tables' coordinates, and the weights of the last, which are codes."""
    measured: list[tuple[Floats, Floats]] = []
    coded: list[tuple[Floats, Floats]] = []
    weights: list[Floats] = []
    for name, tree in trees.items():
        if tree is not None:
            levels = [labels_of(tree, table, name).astype(np.float64) for table in (known, released)]
            coded += zip(*(each.T for each in levels), strict=True)
            weights.append(_level_weights(levels[0].shape[1], metric))
            continue
        if known.schema[name].kind is Kind.NOMINAL:
            first, second = codes_of_both(known, released, name)
            coded.append((first.astype(np.float64), second.astype(np.float64)))
            weights.append(np.ones(1))
            continue
        one, other = numbers_of_both(known, released, name)
        if metric == "hamming":
            coded.append(_as_codes(one, other))
            weights.append(np.ones(1))
            continue
        measured.append(_scale_columns(one, other, scale))
        holes = np.isnan(one), np.isnan(other)
        if holes[0].any() or holes[1].any():  # a missing value differs from any that is there by one unit
            coded.append((holes[0].astype(np.float64), holes[1].astype(np.float64)))
            weights.append(np.ones(1))
    known_points, released_points = (
        _stack_side(measured, side, len(table)) for side, table in enumerate((known, released))
    )
    if metric == "mahalanobis":
        known_points, released_points = _whiten(known_points, released_points)
    codes = [_stack_side(coded, side, len(table)) for side, table in enumerate((known, released))]
    counted = np.concatenate(weights) if weights else np.empty(0)
    return np.hstack((known_points, codes[0])), np.hstack((released_points, codes[1])), counted


def _level_weights(n_levels: int, metric: Metric) -> Floats:
    """What the labels of each level count for, from the values up, so that all together count for the height.

    Whoever differs at one level differs at all below: a sum counts them, the greatest is that of the highest.
    """
    if metric == "chebyshev":
        return np.arange(1.0, n_levels + 1) / n_levels
    return np.full(n_levels, 1.0 / n_levels)


def _stack_side(pairs: list[tuple[Floats, Floats]], side: int, size: int) -> Floats:
    return np.column_stack([pair[side] for pair in pairs]) if pairs else np.empty((size, 0))


def _as_codes(first: Floats, second: Floats) -> tuple[Floats, Floats]:
    """Number the distinct values of both; all missing ones are one value."""
    _, codes = np.unique(np.concatenate((first, second)), return_inverse=True, equal_nan=True)
    numbered = codes.astype(np.float64)
    return numbered[: len(first)], numbered[len(first) :]


def _scale_columns(first: Floats, second: Floats, scale: Scale) -> tuple[Floats, Floats]:
    """Shift and divide a column; missing values lie at the first table's mean.

    Of ranks, each takes that within its own table, as a share of its values: missing ones lie in the middle.
    """
    if scale == "rank":
        return _rank_places(first), _rank_places(second)
    placing = CoordinateScale.of(first, second, scale)
    return placing(first), placing(second)


def _rank_places(values: Floats) -> Floats:
    """(r − ½)/n of mid-ranks, the place of a value in (0, 1) whatever the number of records."""
    ranks = kernels.ranks.midranks(values)
    there = ~np.isnan(ranks)
    return np.where(there, (ranks - 0.5) / max(int(there.sum()), 1), 0.5)


class CoordinateScale(NamedTuple):
    """How the numbers of a column become coordinates."""

    origin: float  # half of it
    unit: float
    mean: float

    @classmethod
    def of(cls, first: Floats, second: Floats, scale: Scale) -> CoordinateScale:
        """Find it for a column of two tables.

        Where the first table has one value only (it may be of a single person), the spread of both is taken:
        left as it is, the column of the largest numbers would decide.
        """
        there = [each[~np.isnan(each)] for each in (first, second)]
        of_scale = there[0] if len(there[0]) else there[1]
        if not len(of_scale):
            return cls(0.0, 1.0, 0.0)
        # Around a value that occurs, so that offsets cost no digits; a median, so that one far out does not;
        # in halves, so that no difference overflows.
        origin = np.partition(of_scale, (len(of_scale) - 1) // 2)[(len(of_scale) - 1) // 2] / 2
        of_scale = of_scale / 2 - origin
        exponent = int(np.frexp(np.abs(of_scale).max())[1])
        mean = float(np.ldexp(np.ldexp(of_scale, -exponent).mean(), exponent))
        both = np.concatenate(there) / 2 - origin
        own = 0.0 if scale == "pooled" else _scale_of(of_scale, scale)
        unit = own or _scale_of(both, scale)
        return cls(float(origin), unit or 0.5, mean)

    def __call__(self, values: Floats) -> Floats:
        """Place numbers; what is missing lies at the mean."""
        shifted = values / 2 - self.origin
        with np.errstate(over="ignore"):
            placed: Floats = np.where(np.isnan(shifted), self.mean, shifted) / self.unit
        return np.clip(placed, -FARTHEST, FARTHEST)


def _scale_of(values: Floats, scale: Scale) -> float:
    """The deviation or the range of values; 0 where they are all the same."""
    if not len(values) or values.min() == values.max():
        return 0.0
    if scale != "deviation":
        return float(np.ptp(values))
    exponent = int(np.frexp(np.abs(values).max())[1])  # so that no square overflows
    return float(np.ldexp(np.ldexp(values, -exponent).std(), exponent))


def _whiten(known_points: Floats, released_points: Floats) -> tuple[Floats, Floats]:
    """Make Euclidean distances those of Mahalanobis with the sum of both tables' covariances."""
    if not known_points.shape[1] or not len(known_points) or not len(released_points):
        return known_points, released_points
    total = np.zeros((known_points.shape[1], known_points.shape[1]))
    for each in (known_points, released_points):
        centred = each - each.mean(axis=0)
        total += centred.T @ centred / len(each)
    turned = whitening(total)
    return known_points @ turned, released_points @ turned


def whitening(total: Floats) -> Floats:
    """The map [d, r] after which a matrix of second moments is the identity, without redundant directions."""
    # Each column in its own unit first, so that a wide one cannot make the others look redundant.
    units = np.sqrt(np.diagonal(total))
    units = np.where(units > 0, units, 1.0)
    values, vectors = np.linalg.eigh(total / np.outer(units, units))
    significant = values > REDUNDANT * max(values.max(initial=0.0), 0.0)
    turned: Floats = vectors[:, significant] / np.sqrt(values[significant]) / units[:, None]
    return turned
