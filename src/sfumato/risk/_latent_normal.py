r"""Keys as cut normal variables: thresholds by their margins, correlations by bivariate normal integrals.

Each key is taken for a normal variable that was cut into as many pieces as it has values, and all of them for
jointly normal (a Gaussian copula). The correlation of two keys is the one at which the two cut variables tell
as much of each other as the keys do in the sample. A combination of values is a box of the latent space.
Values without an order are put into the one in which the keys go together most.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from sfumato.core.run import Run
from sfumato.kernels.arrays import Floats, Ints
from sfumato.risk._cells import ContingencyCells, sums

#: Beyond this a normal variable is not seen; and correlations stay within that.
_END, _MAX_CORRELATION = 9.0, 0.99
#: So many pieces at most each of two keys is coarsened to before their correlation is fitted, so that their
#: table has so many people for each pair of pieces: what few people happen to have together tells too much.
_PIECES, _PER_PAIR = 16, 5
#: Nodes of the integral over the correlation, and their weights.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(48)
#: Points of the integral over a box, at most and at least, and box-points that are affordable.
_POINTS, _MIN_POINTS, _AFFORDABLE = 256, 64, 10_000_000
#: Points by keys and boxes that are looked at in one go.
_AT_ONCE = 1_000_000
#: The least eigenvalue of the correlations.
_FLAT = 1e-4
#: A key without an order of up to so many values is put into one.
_ORDERED = 100
#: So many people are drawn from the model.
_DRAWS = 2048


@dataclass(frozen=True, eq=False)
class LatentNormal:
    """The fitted model: where each key is cut, and how the latent variables are correlated."""

    edges: tuple[Floats, ...]  # [keys][values + 1]
    correlations: Floats  # [keys, keys]

    @classmethod
    def fit(cls, cells: ContingencyCells, run: Run) -> LatentNormal:
        """Cut each key by its margin, then correlate each pair by what it tells."""
        edges = tuple(_edges(cells.margin(key)) for key in range(len(cells.sizes)))
        correlations = np.eye(len(edges))
        pairs = list(combinations(range(len(edges)), 2))
        for first, second in run.track("Correlating keys", pairs, len(pairs)):
            found = _correlation(_pair(cells, first, second))
            correlations[first, second] = correlations[second, first] = found
        return cls(edges, _nearest(correlations))

    def lattice_sample(self) -> Ints:
        """The values of people of the model, on a fixed lattice."""
        from scipy.special import ndtri  # slow to import

        latent = ndtri(_lattice(_DRAWS, len(self.edges))) @ np.linalg.cholesky(self.correlations).T
        places = [np.searchsorted(edges[1:-1], latent[:, key]) for key, edges in enumerate(self.edges)]
        return np.stack(places, axis=1)

    def chances(self, codes: Ints, run: Run) -> Floats:
        """The chance of each combination of values, by integrals over boxes on a fixed lattice of points."""
        root: Floats = np.linalg.cholesky(self.correlations).astype(np.float64)
        lows, highs = (
            np.stack([edges[codes[:, key] + end] for key, edges in enumerate(self.edges)], axis=1)
            for end in (0, 1)
        )
        points = _lattice(_n_points(codes.size), codes.shape[1])
        step = max(_AT_ONCE // points.size, 1)
        chances = np.empty(len(codes))
        for start in run.track("Integrating boxes", range(0, len(codes), step), -(-len(codes) // step)):
            part = slice(start, start + step)
            chances[part] = _boxes(lows[part], highs[part], root, points)
        return chances


def _edges(margin: Floats) -> Floats:
    from scipy.special import ndtri  # slow to import

    shares = np.concatenate(([0.0], np.cumsum(margin) / margin.sum()))
    edges: Floats = np.clip(ndtri(np.minimum(shares, 1.0)), -_END, _END)
    return edges


# The order of values without one -------------------------------------------------------------------------


def order_unordered_keys(cells: ContingencyCells, unordered: Sequence[bool]) -> ContingencyCells:
    """The same cells, the values of unordered keys in the order in which the keys go together most.

    It is that of the scores which make the correlations of all pairs largest together, as in a correspondence
    analysis: the first eigenvector of all their tables.
    """
    free = [each and size <= _ORDERED for each, size in zip(unordered, cells.sizes, strict=True)]
    if len(free) == 1 or not any(free):
        return cells
    pieces = [np.arange(size) if is_free else _pieces(cells.margin(key))
              for key, (size, is_free) in enumerate(zip(cells.sizes, free, strict=True))]  # fmt: skip
    starts = np.cumsum([0, *(int(each[-1]) + 1 for each in pieces)])
    scores = _facing(_scores(cells, pieces, starts), starts, free)
    codes = cells.codes.copy()
    for key in np.flatnonzero(free):
        order = np.argsort(scores[starts[key] : starts[key + 1]], kind="stable")
        codes[:, key] = np.argsort(order)[codes[:, key]]
    return replace(cells, codes=codes)


def _scores(cells: ContingencyCells, pieces: list[Ints], starts: Ints) -> Floats:
    """A score for each piece of each key, rounded so that equal ones stay so in any order of records."""
    together = np.zeros((starts[-1], starts[-1]))
    roots = np.concatenate([np.sqrt(sums(each, cells.margin(key))) for key, each in enumerate(pieces)])
    for first, second in combinations(range(len(pieces)), 2):
        one, other, counts = cells.pair(first, second)
        block = together[starts[first] : starts[first + 1], starts[second] : starts[second + 1]]
        np.add.at(block, (pieces[first][one], pieces[second][other]), counts)
        rows, columns = (roots[starts[key] : starts[key + 1]] for key in (first, second))
        block /= np.outer(rows, columns)
        block -= np.outer(rows, columns) / cells.n
    vector = np.linalg.eigh(together, UPLO="U")[1][:, -1]
    scores: Floats = np.round(vector * math.sqrt(cells.n) / roots, 9)
    return scores


def _facing(scores: Floats, starts: Ints, free: Sequence[bool]) -> Floats:
    """The scores the way round in which ordered keys ascend; an eigenvector has no way round of its own.

    Without ordered keys the longer tail comes last, whatever the values are called.
    """
    ascent = sum(
        float(np.arange(stop - start) @ scores[start:stop])
        - (stop - start - 1) / 2 * float(scores[start:stop].sum())
        for start, stop, is_free in zip(starts, starts[1:], free, strict=False)
        if not is_free
    )
    return -scores if (ascent or float((scores**3).sum())) < 0 else scores


# Two keys ------------------------------------------------------------------------------------------------


def _pair(cells: ContingencyCells, first: int, second: int) -> Floats:
    """How often the values of two keys occur together, neighbours put together into a few pieces each."""
    one, other, counts = cells.pair(first, second)
    places = [_pieces(cells.margin(key)) for key in (first, second)]
    table = np.zeros([int(each[-1]) + 1 for each in places])
    np.add.at(table, (places[0][one], places[1][other]), counts)
    return table


def _pieces(margin: Floats) -> Ints:
    """The piece of each value: all their own if they are few, else pieces of about the same weight."""
    most = int(np.clip(math.sqrt(margin.sum() / _PER_PAIR), 2, _PIECES))
    if len(margin) <= most:
        return np.arange(len(margin))
    middles = (np.cumsum(margin) - margin / 2) / margin.sum()
    _, pieces = np.unique(np.floor(middles * most), return_inverse=True)
    return pieces


def _correlation(table: Floats) -> float:
    """The latent correlation at which cut normal variables tell as much of each other as in the table."""
    from scipy.optimize import brentq  # slow to import

    n, rows, columns = float(table.sum()), table.sum(axis=1), table.sum(axis=0)
    bias = (np.count_nonzero(table) - len(rows) - len(columns) + 1) / (2 * n)  # Miller and Madow
    information = _information(table / n) - bias
    if information <= 0:
        return 0.0
    one, other = _edges(rows), _edges(columns)
    sign = math.copysign(1.0, float(_middles(one) @ (table - np.outer(rows, columns) / n) @ _middles(other)))

    def missing(size: float) -> float:
        return _information(rectangles(one, other, sign * size)) - information

    return sign * (
        _MAX_CORRELATION
        if missing(_MAX_CORRELATION) <= 0
        else float(brentq(missing, 0.0, _MAX_CORRELATION, xtol=1e-6))
    )


def _information(shares: Floats) -> float:
    expected = np.outer(shares.sum(axis=1), shares.sum(axis=0))
    there = (shares > 0) & (expected > 0)
    return float(shares[there] @ np.log(shares[there] / expected[there]))


def _middles(edges: Floats) -> Floats:
    return (edges[1:] + edges[:-1]) / 2


def rectangles(one: Floats, other: Floats, correlation: float) -> Floats:
    """The chances of the rectangles between the edges of two normal variables of such a correlation."""
    corners = bivariate(one[:, None], other[None, :], correlation)
    return np.maximum(np.diff(np.diff(corners, axis=0), axis=1), 0.0)


def bivariate(first: Floats, second: Floats, correlation: float) -> Floats:
    r"""The bivariate normal distribution function, by its integral over the correlation.

    .. math::

        \Phi_2(h, k; \rho) = \Phi(h) \Phi(k) + \frac{1}{2\pi} \int_0^{\arcsin \rho}
            \exp\left(-\frac{h^2 + k^2 - 2 h k \sin t}{2 \cos^2 t}\right) dt
    """
    from scipy.special import ndtr  # slow to import

    half = math.asin(correlation) / 2
    angles = half * (_NODES + 1)
    away = (first**2 + second**2)[..., None] - 2 * (first * second)[..., None] * np.sin(angles)
    total = np.exp(-away / (2 * np.cos(angles) ** 2)) @ (half * _WEIGHTS)
    corners: Floats = ndtr(first) * ndtr(second) + total / (2 * math.pi)
    return corners


def _nearest(correlations: Floats) -> Floats:
    """Correlations that can be had together: eigenvalues are lifted above 0, and the diagonal is 1 again."""
    values, vectors = np.linalg.eigh(correlations)
    if values.min() >= _FLAT:
        return correlations
    lifted = (vectors * np.maximum(values, _FLAT)) @ vectors.T
    scale = np.sqrt(np.diag(lifted))
    together: Floats = (lifted / np.outer(scale, scale)).astype(np.float64)
    return together


# Boxes ---------------------------------------------------------------------------------------------------


def _n_points(n_edges: int) -> int:
    return int(np.clip(_AFFORDABLE // max(n_edges, 1), _MIN_POINTS, _POINTS))


def _lattice(n_points: int, dimensions: int) -> Floats:
    """Points spread evenly over the cube (Richtmyer), folded so that both ends meet."""
    steps = np.sqrt(np.array(list(_primes(dimensions)), dtype=np.float64))
    points = np.outer(np.arange(1, n_points + 1), steps) % 1.0
    return 1.0 - np.abs(2 * points - 1)


def _primes(n: int) -> Iterator[int]:
    found: list[int] = []
    candidate = 2
    while len(found) < n:
        if all(candidate % prime for prime in found):
            found.append(candidate)
            yield candidate
        candidate += 1


def _boxes(lows: Floats, highs: Floats, root: Floats, points: Floats) -> Floats:
    """The chances of boxes: one variable after the other given those before (Genz)."""
    from scipy.special import ndtr, ndtri  # slow to import

    n, d = lows.shape
    latent = np.empty((d, n, len(points)))
    chances = np.ones((n, len(points)))
    for key in range(d):
        before = np.tensordot(root[key, :key], latent[:key], axes=1) if key else 0.0
        low = ndtr((lows[:, key, None] - before) / root[key, key])
        wide = ndtr((highs[:, key, None] - before) / root[key, key]) - low
        chances *= wide
        if key + 1 < d:
            inside = np.clip(low + points[None, :, key] * wide, 1e-16, 1 - 1e-16)
            latent[key] = ndtri(inside)
    found: Floats = np.maximum(chances.mean(axis=1), np.finfo(np.float64).tiny)
    return found
