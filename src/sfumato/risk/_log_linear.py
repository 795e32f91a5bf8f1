r"""Log-linear models of all cells of the keys: means fitted to a sample, and how far a risk by them is off.

Counts of the sample are Poisson with means :math:`\mu_k = \pi \lambda_k` whose logarithms are sums of terms of
single keys (*independence*), of pairs along a tree, or of all pairs (*two-way*). The first two have closed
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
from sfumato.risk._cells import Cells

#: Up to so many cells the cross is built; beyond, sums over it are drawn.
MAX_CELLS = 2_000_000
#: So many cells are drawn, where it is not built.
_DRAWS = 200_000
#: Rounds of proportional fitting, and how far a margin may be off, in people.
_ROUNDS, _NEAR = 200, 1e-3

Function = Callable[[Floats], Floats]
#: The risk of a sample unique by the mean of how many others there are in its cell, and its two derivatives.
Risk = Callable[[Floats], tuple[Floats, Floats, Floats]]


@dataclass(frozen=True, eq=False)
class Means:
    """The fitted means of the cells that are filled, and of cells that stand for all, with their weights."""

    filled: Floats
    all: Floats
    weights: Floats

    def over_all(self, function: Function) -> float:
        """The sum of a function of the mean over all cells, the empty ones too."""
        return float(self.weights @ function(self.all))


def _built(cells: Cells, table: Floats) -> Means:
    everywhere = table.ravel()
    return Means(table[tuple(cells.codes.T)], everywhere, np.ones(len(everywhere)))


# Closed forms ------------------------------------------------------------------------------------------


def independence(cells: Cells, run: Run) -> Means:
    """Every key by itself."""
    return _of_tree(cells, [(key, None) for key in range(len(cells.sizes))], run)


def tree(cells: Cells, run: Run) -> Means:
    """Pairs of keys along the tree that tells most (Chow and Liu)."""
    return _of_tree(cells, _best_tree(cells), run)


def _best_tree(cells: Cells) -> list[tuple[int, int | None]]:
    """Each key with the one it hangs on, which stands before it: the largest sum of mutual informations."""
    d = len(cells.sizes)
    told = np.zeros((d, d))
    for first, second in combinations(range(d), 2):
        told[first, second] = told[second, first] = _information(cells, first, second)
    order: list[tuple[int, int | None]] = [(0, None)]
    outside = list(range(1, d))
    while outside:
        inside = [key for key, _ in order]
        gains = told[np.ix_(outside, inside)]
        place = np.unravel_index(int(gains.argmax()), gains.shape)
        order.append((outside[place[0]], inside[place[1]]))
        del outside[place[0]]
    return order


def _information(cells: Cells, first: int, second: int) -> float:
    """Mutual information of two keys in the sample, less what chance alone gives."""
    one, other, counts = cells.pair(first, second)
    expected = cells.margin(first)[one] * cells.margin(second)[other] / cells.n
    told = float(counts @ np.log(counts / expected)) / cells.n
    return told - (cells.sizes[first] - 1) * (cells.sizes[second] - 1) / (2 * cells.n)


def _of_tree(cells: Cells, order: list[tuple[int, int | None]], run: Run) -> Means:
    """The means of a tree (or of single keys): a product of chances given what each key hangs on."""
    filled = np.full(len(cells.codes), cells.n)
    for key, above in order:
        filled *= _chances(cells, key, above, cells.codes)
    if cells.total > MAX_CELLS:
        codes, chances = _drawn(cells, order, run)
        means = cells.n * chances
        return Means(filled, means, 1.0 / (chances * len(codes)))
    table = np.full((1,) * len(cells.sizes), cells.n)
    for key, above in order:
        shape = [size if place in (key, above) else 1 for place, size in enumerate(cells.sizes)]
        grid = np.indices(shape, sparse=True)
        codes = np.stack([np.broadcast_to(each, shape).ravel() for each in grid], axis=1)
        table = table * _chances(cells, key, above, codes).reshape(shape)
    return _built(cells, table)


def _chances(cells: Cells, key: int, above: int | None, codes: Ints) -> Floats:
    """The chance of the value of a key in each cell, given that of the key above it."""
    margin = cells.margin(key)
    if above is None:
        return margin[codes[:, key]] / cells.n
    one, other, counts = cells.pair(above, key)
    pairs, wanted = (a * cells.sizes[key] + b for a, b in ((one, other), (codes[:, above], codes[:, key])))
    places = np.minimum(np.searchsorted(pairs, wanted), len(pairs) - 1)
    found = np.where(pairs[places] == wanted, counts[places], 0.0)
    chances: Floats = found / cells.margin(above)[codes[:, above]]
    return chances


def _drawn(cells: Cells, order: list[tuple[int, int | None]], run: Run) -> tuple[Ints, Floats]:
    """Draw cells from the model, and the chance of each: a mean over them is a sum over all cells."""
    rng = run.rng("cells")
    codes, chances = np.zeros((_DRAWS, len(cells.sizes)), dtype=np.int64), np.ones(_DRAWS)
    for key, above in order:
        points = rng.random(_DRAWS)
        if above is None:
            edges = np.cumsum(cells.margin(key)) / cells.n
            codes[:, key] = np.minimum(np.searchsorted(edges, points, side="right"), len(edges) - 1)
        else:
            one, other, counts = cells.pair(above, key)  # by the value above, so that its pairs are together
            starts = np.searchsorted(one, np.arange(cells.sizes[above] + 1))
            edges = np.cumsum(counts)
            before = np.concatenate(([0.0], edges))
            low, high = starts[codes[:, above]], starts[codes[:, above] + 1]
            wanted = before[low] + points * (before[high] - before[low])
            codes[:, key] = other[np.clip(np.searchsorted(edges, wanted, side="right"), low, high - 1)]
        chances *= _chances(cells, key, above, codes)
    return codes, chances


# Iterative proportional fitting ------------------------------------------------------------------------


def two_way(cells: Cells, run: Run) -> Means:
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
        if off < _NEAR:
            break
    run.tell("Fitting a log-linear model", _ROUNDS, _ROUNDS)
    return _built(cells, table)


def _pair_table(cells: Cells, first: int, second: int) -> Floats:
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
class Fit:
    """How far the sum of risks by a model is off: its bias, what that may vary, and what the fit may vary."""

    bias: float
    bias_variance: float
    variance: float

    @property
    def off(self) -> float:
        """The bias in standard deviations: above 0 too simple a model, which overstates the risk."""
        return self.bias / math.sqrt(self.bias_variance) if self.bias_variance > 0 else 0.0


def fit_of(means: Means, counts: Floats, fraction: float, risk: Risk) -> Fit:
    r"""The bias of a sum of risks over sample uniques by the means (the statistics B of Skinner and Shlomo).

    .. math::

        B = \sum_k \mu_k e^{-\mu_k} \left\{ -\frac{h'(\lambda_k)}{\pi} (f_k - \mu_k)
            + \frac{h''(\lambda_k)}{2 \pi^2} \left[(f_k - \mu_k)^2 - f_k\right] \right\}

    Of a cell that is empty the term has :math:`f_k = 0`. The two brackets have the variances :math:`\mu_k` and
    :math:`2 \mu_k^2` and are uncorrelated. The linear terms alone bound what fitting adds to the variance: a
    fit is a projection of the counts.
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
    return Fit(
        bias + means.over_all(lambda mu: term(mu, 0.0)),
        means.over_all(spread),
        means.over_all(lambda mu: slopes(mu)[0] ** 2 * mu),
    )


def spread_of(means: Means, counts: Floats) -> float:
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
