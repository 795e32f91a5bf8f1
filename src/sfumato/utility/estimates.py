"""Utility of estimates: what an analyst would say of a population, from the original and from the release."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal, TypeAlias

import numpy as np

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Measure, Scaling, Score, Tells
from sfumato.core.params import param
from sfumato.core.run import Run
from sfumato.data.schema import COMPARABLE, ORDERED, Kind
from sfumato.kernels.arrays import Floats
from sfumato.utility._binnings import binning_of
from sfumato.utility._correlations import correlations_of_both
from sfumato.utility._marginals import ColumnDistribution, Generalised, read_both, readable_columns
from sfumato.utility.distributions import GENERALISED

Of: TypeAlias = Literal["mean", "variance", "quantile", "correlation"]

#: What lies farther out, in ranges of the original, is put here: fourth powers of it are still numbers.
_FARTHEST = 1e60


@dataclass(frozen=True)
class IntervalEstimate:
    """A number estimated from one table, and its confidence interval."""

    value: float
    low: float
    high: float

    @property
    def is_estimable(self) -> bool:
        """Whether the table had enough values to estimate it."""
        return bool(np.isfinite([self.value, self.low, self.high]).all())


_UNKNOWN = IntervalEstimate(np.nan, np.nan, np.nan)


class EstimateMeasure(Measure):
    """A measure of estimates from both tables: what its kind have in common."""

    aspect = "utility"
    kinds = COMPARABLE
    cost = "n log n"

    of: Of = param(
        "mean",
        "What is estimated.",
        choices={
            "mean": "The mean; of a nominal column the share of each category.",
            "variance": "The variance.",
            "quantile": "The quantile of `order`.",
            "correlation": "The correlation of each pair of columns.",
        },
        synonyms={
            "means": "mean",
            "variances": "variance",
            "quantiles": "quantile",
            "correlations": "correlation",
        },
    )
    order: float = param(0.5, "The quantile: 0.5 is the median.", gt=0, lt=1, when="of=quantile")
    generalised: Generalised = param("expected", "What a generalised cell counts as.", choices=GENERALISED)

    @property
    def level(self) -> float:
        """The confidence of the intervals."""
        return 0.95

    def columns(self, evidence: Evidence) -> tuple[str, ...]:
        """The columns of both tables whose values compare and of which this can be estimated."""
        return readable_columns(evidence, COMPARABLE if self.of == "mean" else ORDERED)

    def refuses(self, evidence: Evidence) -> str | None:
        """Refuse a correlation of one column."""
        reason = super().refuses(evidence)
        if reason is None and self.of == "correlation" and len(self.columns(evidence)) < 2:  # noqa: PLR2004
            return f"{self.name} needs at least two columns to correlate in both tables, and there is one"
        return reason

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Compare the estimates one by one; a column has the mean of its own."""
        assert evidence.protected is not None  # `refuses` saw to it
        names = self.columns(evidence)
        found: dict[tuple[str, ...], list[float]] = {}
        n_lost = 0
        for whose, first, second in self.estimates(evidence, names, run):
            if first.is_estimable:
                n_lost += not second.is_estimable
                found.setdefault(whose, []).append(self.compare(first, second))
        if not found:
            return Score.not_estimable("the original has too few values for any estimate")
        means = {whose: float(np.mean(values)) for whose, values in found.items()}
        by_column = {
            name: float(np.mean(own))
            for name in names
            if (own := [value for whose, value in means.items() if name in whose])
        }
        return Score(
            value=float(np.mean(list(means.values()))),
            by_column=by_column,
            details={
                "of": self.of,
                "columns": len(by_column),
                "columns_left_out": len(evidence.shared_columns) - len(by_column),
                "estimates": sum(map(len, found.values())),
                "estimates_lost": n_lost,
            },
        )

    def compare(self, first: IntervalEstimate, second: IntervalEstimate) -> float:
        """How an estimate from the release compares with that from the original, which is known."""
        raise NotImplementedError  # abstract: every measure in the registry has its own

    def estimates(
        self, evidence: Evidence, names: tuple[str, ...], run: Run
    ) -> Iterator[tuple[tuple[str, ...], IntervalEstimate, IntervalEstimate]]:
        """Yield what is estimated of each column (or pair) in both tables."""
        assert evidence.protected is not None  # `refuses` saw to it
        if self.of == "correlation":
            yield from self._correlations(evidence, names, run)
            return
        for name in run.track(self.title, names, total=len(names)):
            kind = evidence.original.schema[name].kind
            one, other = read_both(evidence.original, evidence.protected, name)
            if kind is Kind.NOMINAL:
                sides = [each.distribution("expected") for each in (one, other)]
                binning = binning_of(sides[0], sides[1], kind, bins=2)
                shares = [_shares_of_present(binning.masses(side), side) for side in sides]
                for first, second in zip(*shares, strict=True):
                    if first or second:
                        before = self._share(first, sides[0].effective)
                        yield (name,), before, self._share(second, sides[1].effective)
            else:
                both = _in_deviations(
                    one.distribution(self.generalised).in_order(),
                    other.distribution(self.generalised).in_order(),
                )
                yield (name,), self._of_numbers(both[0]), self._of_numbers(both[1])

    def _correlations(
        self, evidence: Evidence, names: tuple[str, ...], run: Run
    ) -> Iterator[tuple[tuple[str, ...], IntervalEstimate, IntervalEstimate]]:
        both = correlations_of_both(evidence, names, run, by="value", generalised=self.generalised)
        for i, j in combinations(range(len(names)), 2):
            first, second = (self._correlation(found[i, j], n[i, j]) for found, n in both)
            yield (names[i], names[j]), first, second

    def _quantile(self) -> float:
        """The standard normal deviate of the confidence."""
        from scipy.special import ndtri

        return float(ndtri(0.5 + self.level / 2))

    def _correlation(self, value: float, n: float) -> IntervalEstimate:
        """Fisher's interval."""
        if n <= 3:  # noqa: PLR2004  — its variance is 1 / (n − 3)
            return _UNKNOWN
        with np.errstate(divide="ignore"):
            centre = np.arctanh(value)
        reach = self._quantile() / np.sqrt(n - 3)
        return IntervalEstimate(float(value), float(np.tanh(centre - reach)), float(np.tanh(centre + reach)))

    def _share(self, share: float, n: float) -> IntervalEstimate:
        """Wilson's interval."""
        if n <= 0:
            return _UNKNOWN
        square = self._quantile() ** 2 / n
        centre = (share + square / 2) / (1 + square)
        reach = np.sqrt(square * share * max(1 - share, 0.0) + square**2 / 4) / (1 + square)
        return IntervalEstimate(share, float(centre - reach), float(centre + reach))

    def _of_numbers(self, column: ColumnDistribution) -> IntervalEstimate:
        if column.effective < 2 or not len(column.points):  # noqa: PLR2004  — one value does not vary
            return _UNKNOWN
        if self.of == "quantile":
            return self._position(column)
        masses = column.each()
        mean = float(np.average(column.points, weights=masses))
        squares = (column.points - mean) ** 2
        around = float(np.average(squares, weights=masses))
        variance = around * column.effective / (column.effective - 1)
        if self.of == "variance":
            fourth = float(np.average(squares**2, weights=masses))
            reach = self._quantile() * np.sqrt(max(fourth - around**2, 0.0) / column.effective)
            return IntervalEstimate(variance, variance - reach, variance + reach)
        from scipy.special import stdtrit

        deviate = float(stdtrit(column.effective - 1, 0.5 + self.level / 2))
        reach = deviate * np.sqrt(variance / column.effective)
        return IntervalEstimate(mean, mean - reach, mean + reach)

    def _position(self, column: ColumnDistribution) -> IntervalEstimate:
        """Woodruff's interval: the quantiles of the orders between which the true order is covered."""
        points, sums = column.ascending()
        reach = self._quantile() * np.sqrt(self.order * (1 - self.order) / column.effective)
        orders = np.array([self.order, self.order - reach, self.order + reach])
        if len(sums):
            places = np.searchsorted(sums[1:], orders * sums[-1] * (1 - 1e-12))
        else:
            places = np.ceil(orders * len(points) * (1 - 1e-12)).astype(np.int64) - 1
        value, low, high = points[np.clip(places, 0, len(points) - 1)]
        return IntervalEstimate(float(value), float(low), float(high))


class IntervalOverlap(EstimateMeasure):
    r"""How much the confidence intervals of estimates from both tables overlap, mean over estimates.

    .. math::

        J = \frac{1}{2} \left( \frac{U - L}{U_X - L_X} + \frac{U - L}{U_Y - L_Y} \right)

    where :math:`[L_X, U_X]` and :math:`[L_Y, U_Y]` are the intervals from the original and the release and
    :math:`[L, U]` is what they share (nothing: :math:`J = 0`). They are Student's for means, Wilson's for the
    shares of categories, the asymptotic one for variances, Woodruff's for quantiles and Fisher's for
    correlations.

    See Also
    --------
    EstimateDifference : the same estimates without their intervals.

    Notes
    -----
    **How to read it.** 1 means that an analyst would report the same intervals; 0.8 is usually near enough
    for the same conclusions; 0 that the two exclude each other. It measures a release by what the original
    itself can know: the more records, the less may change.

    **Doubt.** The intervals are those of simple random samples; with weights they use Kish's effective size
    :math:`(\sum w)^2 / \sum w^2`. An interval of no width lies within the other or does not. Noise that a
    method added is not accounted for in the release's interval, as an analyst who is not told of it would
    not.

    **Missing.** Estimates are from the values that are there, and fewer of them give wider intervals. What
    the original lets estimate and the release does not counts 0 (``estimates_lost``); what not even the
    original does is left out.

    **Cost.** A few passes over each column; sorting for quantiles.
    """

    name = "interval-overlap"
    vetted = "brute-forced: unit/utility/test_estimates.py::test_means_have_students_interval"
    synonyms = ("confidence interval overlap", "CIO")
    family = "analyses"
    tells = Tells(places={"report": 3, "models": 1})
    scales = Scaling(exact_up_to=200_000)
    title = "Overlap of confidence intervals"
    better = "high"
    bounds = (0.0, 1.0)
    references = ("karr2006", "woodruff1952", "kish1965", "wilson1931", "fisher1921")

    confidence: float = param(0.95, "Confidence of the intervals.", ge=0.5, le=0.999999)

    @property
    def level(self) -> float:
        """The confidence of the intervals."""
        return self.confidence

    def compare(self, first: IntervalEstimate, second: IntervalEstimate) -> float:
        """The overlap of two intervals."""
        return overlap(first, second) if second.is_estimable else 0.0


class EstimateDifference(EstimateMeasure):
    r"""How far estimates from the release are from those of the original, mean over estimates.

    .. math::

        \frac{|\hat\theta_Y - \hat\theta_X|}{s}

    where :math:`\hat\theta_X` and :math:`\hat\theta_Y` are estimated from the original and from the release,
    and the unit :math:`s` is the original's standard deviation for means and quantiles, its variance for
    variances (of a constant: 1), and 1 for shares and correlations.

    See Also
    --------
    IntervalOverlap : in view of how well the original itself knows them.
    CorrelationDifference : correlations only, also of ranks.

    Notes
    -----
    **How to read it.** 0 means the same estimates; 0.1 of means that they moved by a tenth of a standard
    deviation; of variances, that they changed by 10 %.

    **Doubt.** Exact for these tables. Each counts by its own weights, if it has any. A generalised value is
    taken at its middle, or all that it stands for counts alike.

    **Missing.** Estimates are from the values that are there. What the original lets estimate and the release
    does not is infinitely far; what not even the original does is left out.

    **Cost.** A few passes over each column; sorting for quantiles.
    """

    name = "estimate-difference"
    vetted = "brute-forced: unit/utility/test_estimates.py::test_means_have_students_interval"
    family = "analyses"
    title = "Difference of estimates"
    better = "low"
    bounds = (0.0, np.inf)
    references = ("karr2006", "hundepool2012")

    def compare(self, first: IntervalEstimate, second: IntervalEstimate) -> float:
        """The distance of two estimates; of numbers they are in the original's deviations already."""
        return abs(second.value - first.value) if second.is_estimable else np.inf


def overlap(first: IntervalEstimate, second: IntervalEstimate) -> float:
    """The mean share of each interval that lies in the other; a point lies in it or does not."""
    shared = min(first.high, second.high) - max(first.low, second.low)
    if shared < 0:
        return 0.0
    lengths = [each.high - each.low for each in (first, second)]
    return float(np.mean([min(shared / length, 1.0) if length > 0 else 1.0 for length in lengths]))


def _shares_of_present(masses: Floats, spread: ColumnDistribution) -> list[float]:
    """The shares of categories among the values that are there."""
    there = max(1.0 - spread.missing, 0.0)
    return [float(mass) for mass in (masses[:-1] / there if there > 0 else np.zeros(len(masses) - 1))]


def _in_deviations(
    one: ColumnDistribution, other: ColumnDistribution
) -> tuple[ColumnDistribution, ColumnDistribution]:
    """Both columns in standard deviations of the original, from its middle; of a constant, as they are."""
    if not len(one.points):
        return one, other
    quarters = one.points / 4  # so that no difference overflows
    low, high = quarters.min(), quarters.max()
    middle, unit = (low + high) / 2, high - low
    if unit > 0 and one.effective > 1:
        shares = (quarters - middle) / unit
        mean = np.average(shares, weights=one.each())
        variance = np.average((shares - mean) ** 2, weights=one.each())
        unit *= np.sqrt(variance * one.effective / (one.effective - 1))
    moved = []
    for each in (one, other):
        with np.errstate(over="ignore"):
            points = (each.points / 4 - middle) / (unit or 0.25)
        moved.append(np.clip(points, -_FARTHEST, _FARTHEST))
    return replace(one, points=moved[0]), replace(other, points=moved[1])
