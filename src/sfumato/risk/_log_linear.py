r"""Log-linear models of all cells of the keys: means fitted to a sample, and how far a risk by them is off.

Counts of the sample are Poisson with means :math:`\mu_k = \pi \lambda_k` whose logarithms are sums of terms
of single keys (*independence*), of pairs along a tree, or of all pairs (*two-way*). The first two have closed
forms, so that the cross need not be built; the last is fitted by iterative proportional fitting on all of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from sfumato.core.run import Run
from sfumato.kernels.arrays import Floats, Ints
from sfumato.risk._cells import ContingencyCells

#: Up to so many cells the cross is built; beyond, sums over it are drawn.
MAX_CELLS = 2_000_000
#: So many cells are drawn, where it is not built.
_DRAWS = 200_000
#: How strongly a pair of keys may be smoothed, in people; and the least chance that is told.
_STRENGTHS, _TINY = np.exp(np.linspace(-4.0, 14.0, 73)), 1e-300
#: Rounds of proportional fitting, and how far a margin may be off, in people.
_ROUNDS, _MAX_MARGIN_GAP = 200, 1e-3

Function = Callable[[Floats], Floats]
#: The risk of a sample unique by the mean of how many others there are in its cell, and its two derivatives.
Risk = Callable[[Floats], tuple[Floats, Floats, Floats]]


@dataclass(frozen=True, eq=False)
class CellMeans:
    """The fitted means of the cells that are filled, and of cells that stand for all, with their weights.

    ``others`` are those of the filled cells as they are told without one person there, if they can be: who is
    unique is told by the others, else a model would expect more people where someone happens to be, and know
    nothing of values that nobody of the sample has.
    """

    filled: Floats
    all: Floats
    weights: Floats
    others: Floats | None = None

    def over_all(self, function: Function) -> float:
        """The sum of a function of the mean over all cells, the empty ones too."""
        return float(self.weights @ function(self.all))

    @property
    def filled_means(self) -> Floats:
        """The means of filled cells by which a risk is told."""
        return self.filled if self.others is None else self.others


def _make_cell_means(cells: ContingencyCells, table: Floats, others: Floats | None = None) -> CellMeans:
    everywhere = table.ravel()
    return CellMeans(table[tuple(cells.codes.T)], everywhere, np.ones(len(everywhere)), others)


# Closed forms ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Edge:
    """A key and the one it hangs on: how strongly its chances are drawn to those of the key by itself."""

    key: int
    above: int | None
    strength: float = 0.0


def independence(cells: ContingencyCells, run: Run) -> CellMeans:
    """Every key by itself."""
    return _of_edges(cells, [_Edge(key, None) for key in range(len(cells.sizes))], run)


def tree(cells: ContingencyCells, run: Run) -> CellMeans:
    """Pairs of keys along the tree that tells most (Chow and Liu).

    The tables of pairs are filled by few. So each is smoothed towards independence by as much as tells best
    what one person has from all others.
    """
    return _of_edges(cells, _best_tree(cells), run)


def _best_tree(cells: ContingencyCells) -> list[_Edge]:
    """Each key with the one it hangs on, which stands before it: the largest sum of mutual informations."""
    d = len(cells.sizes)
    information = np.zeros((d, d))
    for first, second in combinations(range(d), 2):
        information[first, second] = information[second, first] = _information(cells, first, second)
    edges, outside = [_Edge(0, None)], list(range(1, d))
    while outside:
        inside = [edge.key for edge in edges]
        gains = information[np.ix_(outside, inside)]
        row, column = np.unravel_index(int(gains.argmax()), gains.shape)
        key, above = outside.pop(int(row)), inside[int(column)]
        edges.append(_Edge(key, above, _strength(cells, key, above)))
    return edges


def _information(cells: ContingencyCells, first: int, second: int) -> float:
    """Mutual information of two keys in the sample, less what chance alone gives."""
    one, other, counts = cells.pair(first, second)
    expected = cells.margin(first)[one] * cells.margin(second)[other] / cells.n
    information = float(counts @ np.log(counts / expected)) / cells.n
    return information - (cells.sizes[first] - 1) * (cells.sizes[second] - 1) / (2 * cells.n)


def _strength(cells: ContingencyCells, key: int, above: int) -> float:
    """By how many people each row of a pair's table is smoothed: each person is told best by the others."""
    one, other, counts = cells.pair(above, key)
    rows, shares = cells.margin(above)[one] - 1, (cells.margin(key)[other] - 1) / max(cells.n - 1, 1)
    logs = [
        counts @ np.log(np.maximum((counts - 1 + strength * shares) / (rows + strength), _TINY))
        for strength in _STRENGTHS
    ]
    return float(_STRENGTHS[int(np.argmax(logs))])


def _of_edges(cells: ContingencyCells, edges: list[_Edge], run: Run) -> CellMeans:
    """The means of a tree (or of single keys): a product of chances given what each key hangs on."""
    filled, others = (
        cells.n * np.prod([_chances(cells, edge, cells.codes, without) for edge in edges], axis=0)
        for without in (0, 1)
    )
    if cells.total > MAX_CELLS:
        chances = _draw_cells(cells, edges, run)
        return CellMeans(filled, cells.n * chances, 1.0 / (chances * len(chances)), others)
    table = np.full((1,) * len(cells.sizes), cells.n)
    for edge in edges:
        shape = [size if key in (edge.key, edge.above) else 1 for key, size in enumerate(cells.sizes)]
        grid = np.indices(shape, sparse=True)
        codes = np.stack([np.broadcast_to(each, shape).ravel() for each in grid], axis=1)
        table = table * _chances(cells, edge, codes).reshape(shape)
    return _make_cell_means(cells, table, others)


def _chances(cells: ContingencyCells, edge: _Edge, codes: Ints, without: int = 0) -> Floats:
    """The chance of the value of a key in each cell, given that of the key above it.

    It is told by all people, or by all without one who is there.
    """
    alone = (cells.margin(edge.key)[codes[:, edge.key]] - without) / max(cells.n - without, 1)
    if edge.above is None:
        return alone
    one, other, counts = cells.pair(edge.above, edge.key)
    above, key, size = codes[:, edge.above], codes[:, edge.key], cells.sizes[edge.key]
    pairs, wanted = one * size + other, above * size + key
    places = np.minimum(np.searchsorted(pairs, wanted), len(pairs) - 1)
    found = np.where(pairs[places] == wanted, counts[places] - without, 0.0)
    rows = cells.margin(edge.above)[above] - without
    return (found + edge.strength * alone) / (rows + edge.strength)


def _draw_cells(cells: ContingencyCells, edges: list[_Edge], run: Run) -> Floats:
    """The chances of cells drawn from the model: a mean over them is a sum over all cells."""
    rng = run.rng("cells")
    codes, chances = np.zeros((_DRAWS, len(cells.sizes)), dtype=np.int64), np.ones(_DRAWS)
    for edge in edges:
        codes[:, edge.key] = _bin_of_points(np.cumsum(cells.margin(edge.key)), rng.random(_DRAWS) * cells.n)
        if edge.above is not None:
            _, other, counts = cells.pair(edge.above, edge.key)  # sorted by the value above
            ends, rows = np.cumsum(counts), cells.margin(edge.above)
            above = codes[:, edge.above]
            points = (np.cumsum(rows) - rows)[above] + rng.random(_DRAWS) * rows[above]
            smoothed = rng.random(_DRAWS) * (rows[above] + edge.strength) < edge.strength
            codes[:, edge.key] = np.where(smoothed, codes[:, edge.key], other[_bin_of_points(ends, points)])
        chances *= _chances(cells, edge, codes)
    return chances


def _bin_of_points(ends: Floats, points: Floats) -> Ints:
    """Between which ends each point lies."""
    return np.minimum(np.searchsorted(ends, points, side="right"), len(ends) - 1)


# Iterative proportional fitting ------------------------------------------------------------------------


def two_way(cells: ContingencyCells, run: Run) -> CellMeans:
    """All pairs of keys, on the whole cross: margin by margin until all are right."""
    pairs = list(combinations(range(len(cells.sizes)), 2)) or [(0, 0)]
    wanted = [_pair_table(cells, first, second) for first, second in pairs]
    table = np.full(cells.sizes, cells.n / cells.total)
    for done in range(_ROUNDS):
        run.tell("Fitting a log-linear model", done, _ROUNDS)
        off = 0.0
        for (first, second), margin in zip(pairs, wanted, strict=True):
            others = tuple(axis for axis in range(table.ndim) if axis not in (first, second))
            sums = table.sum(axis=others, keepdims=True)
            goal = margin.reshape(sums.shape)
            off = max(off, float(np.abs(sums - goal).max()))
            table *= np.divide(goal, sums, out=np.zeros_like(sums), where=sums > 0)
        if off < _MAX_MARGIN_GAP:
            break
    run.tell("Fitting a log-linear model", _ROUNDS, _ROUNDS)
    return _make_cell_means(cells, table)


def _pair_table(cells: ContingencyCells, first: int, second: int) -> Floats:
    if first == second:
        return cells.margin(first)
    one, other, counts = cells.pair(first, second)
    table = np.zeros((cells.sizes[first], cells.sizes[second]))
    table[one, other] = counts
    return table


# Risks by the means --------------------------------------------------------------------------------------


def unique(rest: Floats) -> tuple[Floats, Floats, Floats]:
    """The chance that none of the rest, Poisson of this mean, is in the cell, and its two derivatives."""
    none = np.exp(-rest)
    return none, -none, none


def match(rest: Floats) -> tuple[Floats, Floats, Floats]:
    """The mean of 1/F, where F − 1 is Poisson of this mean, and its two derivatives."""
    from scipy.special import gammainc  # slow to import

    rest = np.maximum(rest, 1e-8)
    terms = [gammainc(power, rest) / rest**power for power in (1, 2, 3)]
    return terms[0], -terms[1], 2 * terms[2]


@dataclass(frozen=True)
class ModelBias:
    """How far the sum of risks by a model is off: its bias, what that may vary, and what the fit may vary."""

    bias: float
    bias_variance: float
    variance: float

    @property
    def off(self) -> float:
        """The bias in standard deviations: above 0 the model is too simple, below it follows the sample."""
        return self.bias / math.sqrt(self.bias_variance) if self.bias_variance > 0 else 0.0


def fit_of(means: CellMeans, counts: Floats, fraction: float, risk: Risk) -> ModelBias:
    r"""The bias of a sum of risks over sample uniques by the means (the statistics B of Skinner and Shlomo).

    .. math::

        B = \sum_k \mu_k e^{-\mu_k} \left\{ -\frac{h'(\lambda_k)}{\pi} (f_k - \mu_k)
            + \frac{h''(\lambda_k)}{2 \pi^2} \left[(f_k - \mu_k)^2 - f_k\right] \right\}

    Of a cell that is empty the term has :math:`f_k = 0`. The first bracket is the bias to first order: below
    0 where all cells hold fewer than the means. The second is :math:`(\mu_k - \pi\lambda_k)^2` on average,
    above 0 where counts scatter more than the model tells, and below where it was fitted to their scatter: it
    tells the two apart, but the risk of a model that is far off may err to either side. The brackets have the
    variances :math:`\mu_k` and :math:`2 \mu_k^2` and are uncorrelated. The linear terms alone bound what
    fitting adds to the variance: a fit is a projection of the counts. Where risks are told by the means that
    others see, the difference is added.
    """
    rest = (1 - fraction) / fraction

    def slopes(mu: Floats) -> tuple[Floats, Floats]:
        alone = mu * np.exp(-mu)
        _, first, second = risk(rest * mu)
        return -alone * rest * first, alone * rest**2 * second / 2

    def term(mu: Floats, f: Floats | float) -> Floats:
        one, two = slopes(mu)
        return one * (f - mu) + two * ((f - mu) ** 2 - f)

    def spread(mu: Floats) -> Floats:
        one, two = slopes(mu)
        return one**2 * mu + 2 * two**2 * mu**2

    bias = float((term(means.filled, counts) - term(means.filled, 0.0)).sum())
    ones = counts == 1
    moved = risk(rest * means.filled_means[ones])[0] - risk(rest * means.filled[ones])[0]
    return ModelBias(
        bias + means.over_all(lambda mu: term(mu, 0.0)) + float(moved.sum()),
        means.over_all(spread),
        means.over_all(lambda mu: slopes(mu)[0] ** 2 * mu),
    )


def spread_of(means: CellMeans, counts: Floats) -> float:
    r"""The variance :math:`\sigma^2` of log-normal factors of the means, by the moments of the counts.

    With a factor of mean 1, the variance of a count is :math:`\mu + \mu^2 (e^{\sigma^2} - 1)`.
    """
    beyond = float((counts**2 - 2 * counts * means.filled - counts).sum())
    squares = means.over_all(np.square)
    return math.log1p(max(beyond + squares, 0.0) / squares)


def log_normal(mu: Floats, fraction: float, variance: float, risk: Risk) -> Floats:
    """The risk of sample uniques whose means have a log-normal factor, given that one person was drawn."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    total, sums = np.zeros(len(mu)), np.zeros(len(mu))
    for node, weight in zip(nodes, weights, strict=True):
        here = mu * math.exp(math.sqrt(variance) * node - variance / 2)
        one = weight * here * np.exp(-here)
        total += one
        sums += one * risk((1 - fraction) / fraction * here)[0]
    return np.divide(sums, total, out=risk((1 - fraction) / fraction * mu)[0].copy(), where=total > 0)
