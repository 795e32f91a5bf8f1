"""Utility by transport along random directions: for tables too large for the transport of records."""

from __future__ import annotations

import numpy as np

from sfumato import kernels
from sfumato.core.evidence import Evidence
from sfumato.core.measure import Counting, Laws, Score, Status
from sfumato.core.params import param
from sfumato.core.run import Run
from sfumato.kernels.arrays import Floats
from sfumato.utility._coordinates import Coordinates, coordinates_of
from sfumato.utility._marginals import ColumnDistribution, DistributionMeasure

#: Beside the middle of the range, so that no value of the original is more than 1 away.
_ASIDE = np.sqrt(3) / 2


class SlicedEarthMoversDistance(DistributionMeasure):
    r"""Mean work along random directions that turns the original distribution into the released one.

    .. math::

        S = \frac{1}{c_D \, L} \sum_{l=1}^{L} \int |F_l(t) - G_l(t)| \, dt, \qquad
        c_D = \frac{\Gamma(D/2)}{\sqrt\pi \, \Gamma((D+1)/2)}

    where :math:`F_l` and :math:`G_l` are the distribution functions of the original and of the release along
    the :math:`l`-th of :math:`L` directions, drawn uniformly in the :math:`D` dimensions in which records
    lie, and :math:`c_D` is the mean length of a unit vector's shadow on such a direction. Numbers have one
    dimension, in which the original's smallest and largest value are 0 and 1; a nominal column has one for
    each value, and two values are 1 apart.

    See Also
    --------
    EarthMoversDistance : what this approaches from below.
    ColumnEarthMoversDistance : along the columns themselves, exact.

    Notes
    -----
    **How to read it.** In the unit of the earth mover's distance, and never above it (but for the doubt),
    since no direction has more work than the best flow of records has along it. 0 means the same
    distribution; where all records moved by the same step the two agree. Joint structure counts: swapped
    columns show.

    **Doubt.** The mean over random directions is an estimate, so the status is approximate; the interval
    holds the mean over all directions with 95 % confidence (Student's). More ``directions`` narrow it. One
    column of numbers is exact. Each table counts by its own weights, if it has any. A generalised number is
    taken at its middle, a set of categories at the middle of them.

    **Missing.** A missing number lies beside the middle of the range, 0.87 to 1 away from every value of the
    original; a missing category is a value of its own.

    **Cost.** A pass over all columns and sorting both tables, for each direction.
    """

    name = "sliced-emd"
    family = "distributions"
    title = "Sliced earth mover's distance"
    bounds = (0.0, np.inf)
    counts = Counting(
        laws=Laws(reads_names="Its draws follow the order of the columns, which is that of their names.")
    )
    references = ("bonneel2015",)
    cost = "n log n"

    directions: int = param(50, "Number of random directions.", ge=2, le=100_000, symbol="L")

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Average the work over random directions."""
        names = self.columns(evidence)
        space = coordinates_of(evidence, names)
        sizes = [_dimensions(space, i) for i in range(len(names))]
        details = {"columns": len(names), "records": len(space.first), "dimensions": sum(sizes)}
        if sum(sizes) == 1:
            return Score(value=_work(space, space.first[:, 0], space.second[:, 0]), details=details)
        found = []
        for turn in run.track(self.title, range(self.directions), total=self.directions):
            drawn = run.rng("direction", turn).standard_normal(sum(sizes))
            parts = np.split(drawn / np.sqrt((drawn**2).sum()), np.cumsum(sizes)[:-1])
            found.append(_work(space, *(_shadow(space, side, parts) for side in (0, 1))))
        works = np.array(found) / mean_shadow(sum(sizes))
        return _mean_score(works, {**details, "directions": self.directions})


def _mean_score(works: Floats, details: dict[str, int]) -> Score:
    from scipy.special import stdtrit

    value = float(works.mean())
    reach = float(stdtrit(len(works) - 1, 0.975) * works.std(ddof=1) / np.sqrt(len(works)))
    return Score(
        value=value,
        status=Status.APPROXIMATE,
        interval=(max(value - reach, 0.0), value + reach),
        reason=f"estimated from {len(works)} random directions",
        details=details,
    )


def mean_shadow(dimensions: int) -> float:
    """The mean length of a unit vector's projection on a random direction."""
    from scipy.special import gammaln

    return float(np.exp(gammaln(dimensions / 2) - gammaln((dimensions + 1) / 2)) / np.sqrt(np.pi))


def _dimensions(space: Coordinates, i: int) -> int:
    """How many dimensions column i has, one of them for what is missing where something is."""
    sides = space.first[:, i], space.second[:, i]
    holes = any(np.isnan(side).any() for side in sides)
    if not space.nominal[i]:
        return 1 + holes
    if i in space.shares:
        return int(space.shares[i].shape[1]) + holes
    return int(max(np.nanmax(side, initial=-1.0) for side in sides)) + 1 + holes


def _shadow(space: Coordinates, side: int, parts: list[Floats]) -> Floats:
    """The records of one table along a direction, given as its part in each column."""
    points = (space.first, space.second)[side]
    shadow = np.zeros(len(points))
    for i, part in enumerate(parts):
        column = points[:, i]
        absent = np.isnan(column)
        if space.nominal[i]:
            places = space.shares[i] @ part[: space.shares[i].shape[1]] if i in space.shares else part
            seen = np.append(places, part[-1])[np.where(absent, len(places), column).astype(np.int64)]
            shadow += seen / np.sqrt(2)
        elif absent.any():
            shadow += np.where(absent, 0.5 * part[0] + _ASIDE * part[-1], column * part[0])
        else:
            shadow += column * part[0]
    return shadow


def _work(space: Coordinates, first: Floats, second: Floats) -> float:
    """The work between two tables along a direction."""
    lines = []
    for values, weights in ((first, space.first_weights), (second, space.second_weights)):
        masses = None if weights is None else weights / weights.sum()
        points, sums = ColumnDistribution(values, masses, 0.0, len(values), float(len(values))).ascending()
        lines.append(kernels.distributions.LineMasses(points, sums, len(values)))
    return 2.0 * float(kernels.distributions.gap(*lines).half_area)
