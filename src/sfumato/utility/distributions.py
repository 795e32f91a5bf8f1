"""Utility column by column: how far the distribution of each column of the release is from the original's."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from sfumato import kernels
from sfumato.core.evidence import Evidence
from sfumato.core.measure import Score, Tells
from sfumato.core.params import param
from sfumato.core.run import Run
from sfumato.data.schema import ORDERED, Kind
from sfumato.kernels.arrays import Floats
from sfumato.utility._binnings import binning_of, reading_of
from sfumato.utility._marginals import ColumnDistribution, DistributionMeasure, Generalised, read_both

#: How numbers become categories.
BINS_HELP = "Number of bins for a column of numbers, cut at the original's quantiles."

GENERALISED = {"midpoint": "Its middle.", "expected": "All values it may stand for, in equal shares."}


class ColumnDistance(DistributionMeasure):
    """A distance between the two distributions of each column: what its kind have in common."""

    bounds = (0.0, 1.0)
    cost = "n log n"

    over: Literal["mean", "worst"] = param(
        "mean",
        "How the columns' distances are combined.",
        choices={"mean": "Their mean.", "worst": "The worst column counts."},
    )

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Compare the columns one by one."""
        assert evidence.protected is not None  # `refuses` saw to it
        names = self.columns(evidence)
        tracked = run.track(self.title, names, total=len(names))
        by_column = {name: self.distance(evidence, name) for name in tracked}
        together = np.mean if self.over == "mean" else np.max
        return Score(
            value=float(together(list(by_column.values()))),
            by_column=by_column,
            details={
                "columns": len(names),
                "columns_left_out": len(evidence.shared_columns) - len(names),
                "records": len(evidence.original),
                "released": len(evidence.protected),
            },
        )

    def distance(self, evidence: Evidence, name: str) -> float:
        """The distance of one column."""
        raise NotImplementedError  # abstract: every measure in the registry has its own


# By distribution functions ------------------------------------------------------------------------------


class ColumnEarthMoversDistance(ColumnDistance):
    r"""Least work that turns each column's original distribution into the released one, mean over columns.

    .. math::

        W = \frac{1}{b - a} \int |F(t) - G(t)| \, dt

    where :math:`F` and :math:`G` are the distribution functions of the column in the original and in the
    release, and :math:`a` and :math:`b` the original's smallest and largest value (of ordinal columns:
    positions). For a nominal column every value is 1 from every other, and :math:`W` is the total
    variation distance.

    See Also
    --------
    EarthMoversDistance : looks at all columns together, and so at how they depend on each other.
    KolmogorovSmirnov : looks at the largest difference, not at how far the mass has to go.

    Notes
    -----
    **How to read it.** 0 means that each column has the same distribution; 0.01 that its values moved by one
    per cent of the column's range, on average. Values beyond the original's range can take it above 1. It
    says nothing of how columns go together: rank swapping scores 0.

    **Doubt.** Exact, for exact values. Each table counts by its own weights, if it has any. A generalised
    value is taken at its middle, or its mass is spread over its whole numbers or leaves, or over 100 equal
    parts (fewer where there are more than 40,000 different intervals): exact to half a part.

    **Missing.** A missing value is 1, the whole range, from any value, so suppression costs what it
    suppresses; where more is missing in one table than in the other, the difference goes that way, and the
    rest the least way it can.

    **Cost.** Sorting both columns and one pass; where shares of missing values differ, another
    :math:`O(n \log n)`.

    Examples
    --------
    >>> schema = Schema((Column("age", Kind.CONTINUOUS),))
    >>> original = Table(pl.DataFrame({"age": [20, 30, 40, 60]}), schema)
    >>> released = Table(pl.DataFrame({"age": [22, 30, 40, 60]}), schema)
    >>> ColumnEarthMoversDistance().score(Evidence(original, Release.of(released)), Run(seed=1)).value
    0.0125
    """

    name = "column-emd"
    aliases = ("column-loss",)
    vetted = "brute-forced: unit/utility/test_distributions.py::test_agrees_with_scipy"
    synonyms = ("Wasserstein distance",)
    family = "distributions"
    tells = Tells(places={"default": 0})
    title = "Earth mover's distance by column"
    bounds = (0.0, np.inf)
    references = ("rubner2000", "vallender1974")

    generalised: Generalised = param("expected", "What a generalised cell counts as.", choices=GENERALISED)

    def distance(self, evidence: Evidence, name: str) -> float:
        """The work in one column."""
        kind = evidence.original.schema[name].kind
        if kind is Kind.NOMINAL:
            first, second = both_masses(evidence, name, bins=2, generalised=self.generalised)
            return total_variation(first, second)
        return gap_of(evidence, name, self.generalised)[1]


class KolmogorovSmirnov(ColumnDistance):
    r"""Largest difference between each column's distribution functions, mean over columns.

    .. math::

        D = \sup_t |F(t) - G(t)|

    where :math:`F` and :math:`G` are the distribution functions of the column in the original and in the
    release.

    See Also
    --------
    ColumnEarthMoversDistance : looks at how far the mass has to go.
    TotalVariation : for columns without an order.

    Notes
    -----
    **How to read it.** The largest error in a share such as "at most 30 years old", over all limits. 0
    means the same distribution, 1 that the release lies wholly to one side of the original. It does not
    depend on the unit of a column.

    **Doubt.** Exact, for exact values. Each table counts by its own weights, if it has any. A generalised
    value is taken at its middle, spread evenly over what it stands for (its whole numbers, its leaves or 100
    equal parts), or with ``worst`` wherever the difference is largest: that is the largest distance of all
    exact tables that the release may stand for.

    **Missing.** A missing value is a value of its own, below or above all others, whichever gives the larger
    difference.

    **Cost.** Sorting both columns and one pass.
    """

    name = "kolmogorov-smirnov"
    vetted = "brute-forced: unit/utility/test_distributions.py::test_agrees_with_scipy"
    synonyms = ("KS test", "KS statistic")
    family = "distributions"
    title = "Kolmogorov–Smirnov distance"
    kinds = ORDERED
    references = ("massey1951", "gibbs2002")

    generalised: Literal["midpoint", "expected", "worst"] = param(
        "expected",
        "What a generalised cell counts as.",
        choices={**GENERALISED, "worst": "The one that makes the distance largest."},
    )

    def distance(self, evidence: Evidence, name: str) -> float:
        """The largest difference in one column."""
        if self.generalised != "worst":
            return gap_of(evidence, name, self.generalised)[0]
        assert evidence.protected is not None  # `refuses` saw to it
        one, other = read_both(evidence.original, evidence.protected, name)
        expected = one.distribution("expected")
        first, largest = _line(expected), 0.0
        # The release's distribution function is highest, and lowest, with all values at one end.
        for end in (other.distribution("low"), other.distribution("high")):
            found = kernels.distributions.gap(first, _line(end))
            largest = max(largest, _largest(found, expected.missing - end.missing))
        return largest


def gap_of(evidence: Evidence, name: str, generalised: Generalised) -> tuple[float, float]:
    """The largest difference of a column's distribution functions, and the work between them."""

    def compare() -> tuple[float, float]:
        assert evidence.protected is not None  # `refuses` saw to it
        one, other = read_both(evidence.original, evidence.protected, name)
        return _gap(one.distribution(generalised), other.distribution(generalised))

    return evidence.remember(("gap", name, generalised), compare)


def _gap(one: ColumnDistribution, other: ColumnDistribution) -> tuple[float, float]:
    first, second = _line(one), _line(other)
    found = kernels.distributions.gap(first, second)
    surplus = one.missing - other.missing
    half_area = found.half_area if surplus == 0 else kernels.distributions.half_area_of_part(first, second)
    points = first.points
    half_range = float(points[-1] / 2 - points[0] / 2) if len(points) else 0.0
    return _largest(found, surplus), half_area / (half_range or 0.5) + abs(surplus)


def _line(spread: ColumnDistribution) -> Any:
    points, sums = spread.ascending()
    return kernels.distributions.LineMasses(points, sums, max(spread.n, 1))


def _largest(found: Any, surplus: float) -> float:
    """The largest difference, with what is missing above or below all values."""
    sides = found.highest, -found.lowest, found.highest + surplus, -found.lowest - surplus
    return min(1.0, float(max(sides)))


# By masses in bins --------------------------------------------------------------------------------------


class BinnedDistance(ColumnDistance):
    """A distance between the masses of two distributions: what its kind have in common."""

    bins: int = param(20, BINS_HELP, ge=2, le=10_000)
    generalised: Generalised = param("expected", "What a generalised cell counts as.", choices=GENERALISED)

    def distance(self, evidence: Evidence, name: str) -> float:
        """The distance of one column's masses."""
        masses = both_masses(evidence, name, bins=self.bins, generalised=self.generalised)
        return self.distance_between(*masses)

    def distance_between(self, first: Floats, second: Floats) -> float:
        """The distance of two distributions over the same bins."""
        raise NotImplementedError  # abstract: every measure in the registry has its own


class TotalVariation(BinnedDistance):
    r"""Largest difference in the share of any set of values, mean over columns.

    .. math::

        \delta = \frac{1}{2} \sum_c |p_c - q_c|

    where :math:`p_c` and :math:`q_c` are the shares of category (or bin) :math:`c` in the original and in the
    release. Continuous and date columns are cut into ``bins`` at the original's quantiles, or at its values
    where there are no more than that.

    See Also
    --------
    Hellinger : weighs differences in rare categories more.
    ContingencyDifference : the same for two columns at a time.

    Notes
    -----
    **How to read it.** The share of records that would have to change their value. 0 means the same shares, 1
    that no value of the release is one of the original. Order does not count: to the neighbouring category
    is as far as to any. It lies between Hellinger's :math:`H^2` and :math:`\sqrt 2 H`.

    **Doubt.** Exact, for categories; of numbers only what crosses a bin's edge is seen, so 0 does not mean
    that they are the same. Each table counts by its own weights, if it has any. Generalised values are spread
    evenly over what they stand for, or (not nominal ones) taken at their middle.

    **Missing.** A category of its own: suppressing a share of the values costs that share.

    **Cost.** Sorting the original's column and a few passes.
    """

    name = "total-variation"
    vetted = "brute-forced: unit/utility/test_distributions.py::test_agrees_with_scipy"
    family = "distributions"
    title = "Total variation distance"
    references = ("gibbs2002",)

    def distance_between(self, first: Floats, second: Floats) -> float:
        """Half the sum of absolute differences."""
        return total_variation(first, second)


class Hellinger(BinnedDistance):
    r"""Distance between the square roots of the categories' shares, mean over columns.

    .. math::

        H = \sqrt{\frac{1}{2} \sum_c \left(\sqrt{p_c} - \sqrt{q_c}\right)^2}

    where :math:`p_c` and :math:`q_c` are the shares of category (or bin) :math:`c` in the original and in the
    release. Continuous and date columns are cut into ``bins`` at the original's quantiles, or at its values
    where there are no more than that.

    See Also
    --------
    TotalVariation : weighs all differences alike.
    JensenShannon : nearly proportional to it, in terms of information.

    Notes
    -----
    **How to read it.** 0 means the same shares, 1 that no value of the release is one of the original. A
    difference of a given size counts more where the share is small: losing a rare category shows.

    **Doubt.** Exact, for categories; of numbers only what crosses a bin's edge is seen. Each table counts by
    its own weights, if it has any. Generalised values are spread evenly over what they stand for, or (not
    nominal ones) taken at their middle.

    **Missing.** A category of its own.

    **Cost.** Sorting the original's column and a few passes.
    """

    name = "hellinger"
    vetted = "brute-forced: unit/utility/test_distributions.py::test_agrees_with_scipy"
    family = "distributions"
    title = "Hellinger distance"
    references = ("gibbs2002",)

    def distance_between(self, first: Floats, second: Floats) -> float:
        """The distance of the roots."""
        squares = float(((np.sqrt(first) - np.sqrt(second)) ** 2).sum())
        return min(1.0, float(np.sqrt(squares / 2)))


class JensenShannon(BinnedDistance):
    r"""How well one value reveals whether it is from the original or the release, mean over columns.

    .. math::

        J = \sqrt{\frac{1}{2} \sum_c \left(p_c \log_2 \frac{2 p_c}{p_c + q_c}
            + q_c \log_2 \frac{2 q_c}{p_c + q_c}\right)}

    where :math:`p_c` and :math:`q_c` are the shares of category (or bin) :math:`c` in the original and in the
    release. Continuous and date columns are cut into ``bins`` at the original's quantiles, or at its values
    where there are no more than that.

    See Also
    --------
    Hellinger : nearly proportional to it, without logarithms.

    Notes
    -----
    **How to read it.** Its square is the information, in bits, that a value gives on which table it was
    drawn from, if either is as likely. 0 means the same shares, 1 that no value of the release is one of the
    original. Unlike the divergence of Kullback and Leibler it is finite, symmetric and a metric.

    **Doubt.** Exact, for categories; of numbers only what crosses a bin's edge is seen. Each table counts by
    its own weights, if it has any. Generalised values are spread evenly over what they stand for, or (not
    nominal ones) taken at their middle.

    **Missing.** A category of its own.

    **Cost.** Sorting the original's column and a few passes.
    """

    name = "jensen-shannon"
    vetted = "brute-forced: unit/utility/test_distributions.py::test_agrees_with_scipy"
    family = "distributions"
    title = "Jensen–Shannon distance"
    references = ("lin1991", "endres2003")

    def distance_between(self, first: Floats, second: Floats) -> float:
        """The root of the divergence."""
        bits = _bits_over(first, first + second) + _bits_over(second, first + second)
        return float(np.sqrt(min(max(bits / 2, 0.0), 1.0)))


def _bits_over(masses: Floats, sums: Floats) -> float:
    there = masses > 0
    return float((masses[there] * np.log2(2 * masses[there] / sums[there])).sum())


def total_variation(first: Floats, second: Floats) -> float:
    """Half the sum of absolute differences of two distributions."""
    return min(1.0, float(np.abs(first - second).sum()) / 2)


def both_masses(
    evidence: Evidence, name: str, *, bins: int, generalised: Generalised
) -> tuple[Floats, Floats]:
    """The masses of a column over common bins in the original and in the release, missing values last."""

    def count() -> tuple[Floats, Floats]:
        assert evidence.protected is not None  # `refuses` saw to it
        kind = evidence.original.schema[name].kind
        how = reading_of(kind, generalised)
        readings = read_both(evidence.original, evidence.protected, name)
        one, other = (reading.distribution(how) for reading in readings)
        one = one if kind is Kind.NOMINAL else one.in_order()
        binning = binning_of(one, other, kind, bins=bins)
        return binning.masses(one), binning.masses(other)

    return evidence.remember(("masses", name, bins, generalised), count)
