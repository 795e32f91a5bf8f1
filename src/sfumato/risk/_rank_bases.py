"""Ranks of a table as a basis: canonical correlations by QR and SVD; columns that add nothing stand aside."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import qr, solve_triangular

from sfumato import kernels
from sfumato.kernels.arrays import Floats, Ints

#: A column that differs from a combination of others by less than this share of itself says nothing new.
REDUNDANT = 1e-8

#: What is left of 1 − ρ² by rounding alone.
NOTHING = 1e-9

#: Records at a time: what a block needs stays in the cache.
BLOCK = 4096


class Ranked(NamedTuple):
    """The ranks of a table as an orthonormal basis, and each column in it."""

    ranks: Floats  # [m, n] mid-ranks, column by column
    basis: Floats  # [n, k] columns of length 1 around 0, independent of each other
    parts: Floats  # [k, m] each column of ranks, of length 1, as a combination of them
    constant: tuple[int, ...]
    redundant: tuple[int, ...]


def ranked(values: Floats) -> Ranked:
    """Rank complete columns and make a basis of them, by QR: of blocks, then of what is left of each."""
    n, m = values.shape
    ranks = np.stack([kernels.ranks.midranks(column) for column in np.ascontiguousarray(values.T)])
    centred = np.ascontiguousarray(ranks.T) - (n + 1) / 2
    lengths = np.sqrt(np.einsum("ij,ij->j", centred, centred))
    centred /= np.where(lengths > 0, lengths, 1.0)
    blocks = [np.linalg.qr(centred[start : start + BLOCK], mode="r") for start in range(0, n, BLOCK)]
    triangle, pivots = qr(np.vstack(blocks), mode="r", pivoting=True, check_finite=False)
    size = min(triangle.shape)
    rank = int((np.abs(np.diagonal(triangle)[:size]) > REDUNDANT).sum())
    parts = np.zeros((rank, m))
    parts[:, pivots] = triangle[:rank]
    inverse = solve_triangular(triangle[:rank, :rank], np.eye(rank))
    basis = np.empty((n, rank))
    for start in range(0, n, BLOCK):
        basis[start : start + BLOCK] = centred[start : start + BLOCK, pivots[:rank]] @ inverse
    constant = tuple(np.flatnonzero(lengths == 0).tolist())
    redundant = tuple(sorted(set(pivots[rank:].tolist()) - set(constant)))
    return Ranked(ranks, basis, parts, constant, redundant)


def protection(correlations: Floats) -> Floats:
    """1 − ρ² of each canonical correlation, the least first; 0 where rounding is all there is."""
    left = 1.0 - np.minimum(np.linalg.svd(correlations, compute_uv=False), 1.0) ** 2
    return np.where(left < NOTHING, 0.0, left)


def between(first: Floats, second: Floats, partner: Ints | None = None) -> Floats:
    """The inner products of two bases, the second in the order of the partners of the first."""
    total = np.zeros((first.shape[1], second.shape[1]))
    for start in range(0, len(first), BLOCK):
        part = slice(start, start + BLOCK)
        total += first[part].T @ second[part if partner is None else partner[part]]
    return total


def span(parts: Floats) -> Floats:
    """An orthonormal basis of what some columns span, in the coordinates of all."""
    directions, sizes, _ = np.linalg.svd(parts, full_matrices=False)
    kept: Floats = directions[:, sizes > REDUNDANT]
    return kept
