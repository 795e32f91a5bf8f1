"""Probabilistic information loss: how far statistics have moved, against how far chance would move them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Measure, Needs, Score
from sfumato.core.run import Run
from sfumato.data.schema import ORDERED
from sfumato.kernels.arrays import Floats, Ints
from sfumato.utility._matrices import column_means, covariance, standardised_both

#: The quantiles compared are the multiples of 1/20 between 0 and 1: 5 %, 10 % … 95 %.
_PARTS = 20

#: A difference of statistics, of columns in standard deviations, that comes from rounding alone.
_FLOAT_TOLERANCE = 1e-12

#: Records whose products are summed up at once.
_BLOCK = 1 << 17


class ProbabilisticInformationLoss(Measure):
    r"""Mean probability that chance alone would change a statistic less than the release did (PIL).

    .. math::

        \mathrm{pil}(\theta) = 2 \Pr\left(0 \le Z \le
            \frac{|\hat\theta_Y - \hat\theta_X|}{\sqrt{\operatorname{Var}(\hat\theta)}}\right),
        \qquad Z \sim N(0, 1)

    where :math:`\hat\theta_X` and :math:`\hat\theta_Y` are a statistic of the original and of the release,
    and the variance is that of the statistic in samples of the release's size :math:`n` from the original:

    .. math::

        \operatorname{Var}(\bar x) = \frac{\mu_{20}}{n}, \quad
        \operatorname{Var}(s_x^2) = \frac{\mu_{40} - \mu_{20}^2}{n}, \quad
        \operatorname{Var}(s_{xy}) = \frac{\mu_{22} - \mu_{11}^2}{n},

    .. math::

        \operatorname{Var}(r) = \frac{1}{n} \left[\rho_{22} + \frac{r^2}{4} (\rho_{40} + \rho_{04} + 2
        \rho_{22})
            - r (\rho_{31} + \rho_{13})\right]

    with :math:`\mu_{kl}` the central moments and :math:`\rho_{kl}` those of standardised columns. For a
    quantile :math:`Q_p` the share of original values below that of the release is held against :math:`p`,
    whose variance is :math:`p (1 - p) / n`: to first order the same as the formula :math:`p (1 - p) / (n
    f(Q_p)^2)`, without an estimate of the density :math:`f`.

    The value is the mean of five means: of the means, variances and quantiles (5 %, 10 % … 95 %) of all
    columns, and of the covariances and correlations of all pairs.

    See Also
    --------
    il1s : how far the values moved, record by record.
    interval-overlap : how much the confidence intervals of estimates have in common.

    Notes
    -----
    **How to read it.** 0 means that none of the statistics has changed, 1 that all have moved farther than
    sampling would ever move them. Bounded, so no outlier can dominate it. A fresh sample of the same
    population would have about 0.6. With many records every change is more than chance would make, and the
    value is near 1 for any but the most careful release. ``by_column`` is the mean over the statistics that
    involve a column; ``details`` has the five means.

    **Doubt.** The normal distribution of the statistics holds for many records. Where a statistic has no
    variance (a constant, a perfect correlation) any change of it counts as 1. Weights are not used.

    **Missing.** Statistics are of the values that are there, covariances of the records that have both. A
    column of which nothing is left counts as 1. Generalised values are taken at their middle.

    **Cost.** Sorting each column of both tables, and a few passes.

    Examples
    --------
    >>> schema = Schema((Column("x", Kind.CONTINUOUS),))
    >>> original = Table(pl.DataFrame({"x": [-1.0, 1.0] * 50}), schema)
    >>> released = Table(pl.DataFrame({"x": [-0.9, 1.1] * 50}), schema)
    >>> score = ProbabilisticInformationLoss().score(Evidence(original, Release.of(released)), Run(seed=1))
    >>> round(score.details["mean"], 4)  # one standard error of the mean away
    0.6827
    """

    name = "probabilistic-information-loss"
    vetted = "brute-forced: unit/utility/test_probabilistic_loss.py::test_the_formulas_written_out"
    family = "analyses"
    title = "Probabilistic information loss (PIL)"
    aspect = "utility"
    better = "low"
    bounds = (0.0, 1.0)
    kinds = ORDERED
    references = ("mateosanz2005",)
    cost = "n log n"
    needs = Needs(exact_original=True)

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Compare the statistics of all columns and pairs."""
        assert evidence.protected is not None
        names = self.columns(evidence)
        first, second, _ = standardised_both(evidence, names)
        columns = np.flatnonzero((~np.isnan(first)).any(axis=0))
        if not len(second) or not len(columns):
            return Score.not_estimable("no column has values in the original, or the release has no records")
        if len(columns) < len(names):
            first, second, names = first[:, columns], second[:, columns], tuple(names[i] for i in columns)
        found = _StatisticLosses(len(names))
        _moments(first, second, found)
        for i in run.track(self.title, range(len(names)), len(names)):
            found.add("quantiles", i, i, _quantiles(first[:, i], second[:, i]))
        means = {statistic: float(np.mean(values)) for statistic, values in found.values.items()}
        of_columns = (float(np.mean(values)) for values in found.of_column)
        by_column = dict(zip(names, of_columns, strict=True))
        return Score(
            value=float(np.mean(list(means.values()))),
            by_column=by_column,
            details={
                **dict(sorted(means.items())),
                "columns": len(names),
                "records": len(first),
                "released": len(second),
            },
        )


@dataclass
class _StatisticLosses:
    """The losses found so far, by statistic and by column."""

    n_columns: int
    values: dict[str, list[float]] = field(default_factory=dict)
    of_column: list[list[float]] = field(init=False)

    def __post_init__(self) -> None:
        self.of_column = [[] for _ in range(self.n_columns)]

    def add(self, statistic: str, one: int, other: int, loss: float) -> None:
        """Note what a statistic of one or two columns has lost."""
        self.values.setdefault(statistic, []).append(loss)
        for column in {one, other}:
            self.of_column[column].append(loss)


def _moments(first: Floats, second: Floats, found: _StatisticLosses) -> None:
    """Compare means, variances, covariances and correlations."""
    counts = _counts(second)
    shifts = [column_means(first), column_means(second)]
    original_values, released_values = covariance(first), covariance(second)
    squares, cubes = _high_moments(first, shifts[0])
    for i in range(found.n_columns):
        n = int(counts[i, i])
        found.add("mean", i, i, _loss(shifts[0][i] - shifts[1][i], original_values[i, i], n))
        found.add(
            "variance",
            i,
            i,
            _loss(
                original_values[i, i] - released_values[i, i], squares[i, i] - original_values[i, i] ** 2, n
            ),
        )
        for j in range(i):
            n, moved = int(counts[i, j]), original_values[i, j] - released_values[i, j]
            found.add("covariance", i, j, _loss(moved, squares[i, j] - original_values[i, j] ** 2, n))
            deviations = (
                np.sqrt(original_values[i, i] * original_values[j, j]),
                np.sqrt(released_values[i, i] * released_values[j, j]),
            )
            if deviations[0] == 0:  # it has no correlation to lose
                continue
            before = original_values[i, j] / deviations[0]
            moved = np.inf if deviations[1] == 0 else before - released_values[i, j] / deviations[1]
            spread = _of_correlation(original_values, squares, cubes, i, j)
            found.add("correlation", i, j, _loss(moved, spread, n))


def _of_correlation(original_values: Floats, squares: Floats, cubes: Floats, i: int, j: int) -> float:
    """The variance of a correlation, times the number of records."""
    both = original_values[i, i] * original_values[j, j]
    correlation = original_values[i, j] / np.sqrt(both)
    fours = (
        squares[i, i] / original_values[i, i] ** 2
        + squares[j, j] / original_values[j, j] ** 2
        + 2 * squares[i, j] / both
    )
    threes = (cubes[i, j] / original_values[i, i] + cubes[j, i] / original_values[j, j]) / np.sqrt(both)
    return float(squares[i, j] / both + correlation**2 / 4 * fours - correlation * threes)


def _counts(values: Floats) -> Ints:
    """How many records have each pair of columns."""
    counts = np.zeros((values.shape[1], values.shape[1]))
    for start in range(0, len(values), _BLOCK):
        present = (~np.isnan(values[start : start + _BLOCK])).astype(np.float64)
        counts += present.T @ present
    return counts.astype(np.int64)


def _high_moments(original: Floats, means: Floats) -> tuple[Floats, Floats]:
    """The means of x²y² and of x³y for each pair of columns (x in rows), over the records that have both."""
    m = original.shape[1]
    counts, squares, cubes = np.zeros((m, m)), np.zeros((m, m)), np.zeros((m, m))
    for start in range(0, len(original), _BLOCK):
        block = original[start : start + _BLOCK] - means
        present = (~np.isnan(block)).astype(np.float64)
        values = np.where(present > 0, block, 0.0)
        counts += present.T @ present
        squares += (values**2).T @ values**2
        cubes += (values**3).T @ values
    counts = np.maximum(counts, 1.0)
    return squares / counts, cubes / counts


def _loss(moved: float, variance: float, n: int) -> float:
    """Twice the probability that a normal variable lies between 0 and what the statistic has moved."""
    from scipy.special import erf

    if n == 0:  # nothing is left of it
        return 1.0
    if abs(moved) <= _FLOAT_TOLERANCE:
        return 0.0
    error = np.sqrt(max(variance, 0.0) / n)
    return float(erf(abs(moved) / error / np.sqrt(2.0))) if error > 0 else 1.0


def _quantiles(original: Floats, released: Floats) -> float:
    """The mean loss of the quantiles of one column."""
    original_values, released_values = (np.sort(each[~np.isnan(each)]) for each in (original, released))
    if not len(released_values):
        return 1.0
    parts = np.arange(1, _PARTS)
    places = released_values[
        -(-parts * len(released_values) // _PARTS) - 1
    ]  # the least value with a share of p at or below it
    shares = parts / _PARTS
    # Between the share below a value and that up to it lies every p of which it is the quantile.
    below, up_to = (
        np.searchsorted(original_values, places, side=side) / len(original_values)
        for side in ("left", "right")
    )
    apart = np.maximum(np.maximum(below - shares, shares - up_to), 0.0)
    variances = shares * (1 - shares)
    pairs, n = zip(apart, variances, strict=True), len(released_values)
    losses = [_loss(move, spread, n) for move, spread in pairs]
    return float(np.mean(losses))
