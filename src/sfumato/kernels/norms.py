"""Norms: what the columns of records add to a distance, for all that compare records of mixed kinds."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import numpy as np

from sfumato.kernels.arrays import Floats

Metric = Literal["euclidean", "manhattan", "chebyshev", "hamming"]


class Norm(NamedTuple):
    """How differences become a key: a distance, or its square if it is Euclidean."""

    n_measured: int  # so many columns count by their difference, the others by being unequal
    euclidean: bool
    largest: bool  # the greatest of the columns counts (Chebyshev), not their sum
    weights: Floats  # what each of the others adds to the key where it is unequal


def norm_of(metric: Metric, n_columns: int, n_codes: int, weights: Floats | None = None) -> Norm:
    """Read what a kernel is told of the columns, or say what is wrong with it.

    Parameters
    ----------
    metric : {"euclidean", "manhattan", "chebyshev", "hamming"}
        Hamming distances count the columns that differ: then all are codes.
    n_columns : int
    n_codes : int
        So many of the last columns are codes.
    weights : float64[n_codes], optional
        What two unequal codes add to the squared (Euclidean) or plain distance, above 0 and at most 1; 1 each
        if not given.
    """
    if metric not in get_args(Metric):
        listed = "`euclidean`, `manhattan`, `chebyshev` or `hamming`"
        raise ValueError(f"`metric` must be {listed}, got: `{metric}`")
    if not 0 <= n_codes <= n_columns:
        raise ValueError(f"`n_codes` must be from 0 to {n_columns}, got: {n_codes}")
    n_codes = n_columns if metric == "hamming" else n_codes
    weights = np.ones(n_codes) if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
    if weights.shape != (n_codes,) or not ((weights > 0) & (weights <= 1)).all():
        raise ValueError(f"`weights` must be {n_codes} numbers above 0 and at most 1, one per coded column")
    return Norm(n_columns - n_codes, metric == "euclidean", metric == "chebyshev", weights)


def keys_of(first: Floats, second: Floats, norm: Norm) -> Floats:
    """Return the keys of points laid beside each other; the last axis of both is that of their columns.

    Summed column by column, and so the same to the last bit as in compiled loops.
    """
    total = np.zeros(np.broadcast_shapes(first.shape[:-1], second.shape[:-1]))
    part = np.empty_like(total)
    for column in range(first.shape[-1]):
        np.subtract(first[..., column], second[..., column], out=part)
        if column >= norm.n_measured:
            np.multiply(part != 0.0, norm.weights[column - norm.n_measured], out=part)
        elif norm.euclidean:
            np.multiply(part, part, out=part)
        else:
            np.abs(part, out=part)
        (np.maximum if norm.largest else np.add)(total, part, out=total)
    return total
