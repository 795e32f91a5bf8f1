"""Utility by transport: how much work it takes to turn the released distribution into the original one."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from typing import Any, cast

import numpy as np
import polars as pl

from sfumato import kernels
from sfumato.core.evidence import Evidence
from sfumato.core.measure import Score, Status, Tells
from sfumato.core.params import param
from sfumato.core.run import Run
from sfumato.kernels.arrays import Floats, Ints
from sfumato.utility._coordinates import Coordinates, coordinates_of, distances
from sfumato.utility._marginals import DistributionMeasure

#: Iterations after which the exact solver gives up; it needs about ten per record.
_SOLVER_ITERATIONS = 100_000_000
#: A share of all records that is due to rounding.
_NO_MASS = 1e-15
#: How long the way is by a missing value, which is 1 from any other.
_DETOUR = 2.0
_LOADING = threading.Lock()


class EarthMoversDistance(DistributionMeasure):
    r"""Least work that turns the original distribution into the released one.

    .. math::

        U(X, Y) = \frac{\sum_{ij} d_{ij} f_{ij}}{\sum_{ij} f_{ij}}

    where :math:`f` is the flow of records that makes the sum least, and :math:`d_{ij}` the Euclidean distance
    between original record :math:`i` and released record :math:`j` over all columns both tables have. A
    column's distance is :math:`|x - y|` after the original's smallest and largest values were put at 0 and 1
    (ordinal columns: their position; nominal: 0 if equal, else 1), times the ``importance`` that the schema
    gives it.

    See Also
    --------
    SlicedEarthMoversDistance : never above it, and fast at any size.
    ColumnEarthMoversDistance : one column at a time.

    Notes
    -----
    **How to read it.** 0 means the same distribution; the unit is one range of one column. Lower is
    better.

    **Doubt.** Exact up to ``records`` distinct records in either table, and up to ``matched`` records where
    both tables have as many: then the least work is that of a one-to-one assignment, which is solved with a
    proof (to nine digits; without missing numbers, weights and sets of categories). Above, ``sample`` records
    are drawn from each table, pairs together where records map, ``draws`` times: the mean of such draws lies
    above the true distance, and approaches it as ``sample`` grows. The status then is approximate, with the
    interval of the draws. Each table counts by its own weights, if it has any. A
    generalised number is taken at its middle, and a set of categories at the middle of them: nearer to each
    of them than they are to each other.

    **Missing.** A missing value is as far from any value as the whole range (1), and 0 from another
    missing one: suppression costs utility.

    **Cost.** Up to :math:`O(n^3)` time and :math:`O(n^2)` memory in the records solved at once, which
    ``records`` and ``sample`` bound, without those that both tables have; assignment takes between
    :math:`n` and :math:`n^2` per round and memory :math:`O(n)`, for 20,000 records five seconds to a minute.
    """

    name = "earth-movers-distance"
    vetted = "brute-forced: unit/utility/test_transport.py::test_tables_of_two_sizes_are_a_linear_programme"
    synonyms = ("Wasserstein distance", "optimal transport", "EMD")
    family = "distributions"
    tells = Tells(places={"default": 0})
    title = "Earth mover's distance"
    bounds = (0.0, np.inf)
    references = ("rubner2000", "domingoferrer2018")
    cost = "n³"

    records: int = param(5000, "Most distinct records solved exactly.", ge=2, le=20_000, unit="records")
    matched: int = param(
        20_000, "Largest number of records matched one to one, if both tables have as many.", ge=2,
        le=1_000_000, unit="records",
    )  # fmt: skip
    sample: int = param(2000, "Number of records in each sample of larger tables.", ge=2, le=20_000)
    draws: int = param(5, "Number of samples of larger tables.", ge=2, le=1000)

    def quick(self) -> EarthMoversDistance:
        """The same on small samples: hundreds of times as fast, and methods stand in the same order."""
        return replace(self, records=min(self.records, 500), matched=2, draws=2)

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Solve the transport problem between the two tables, or between samples of them."""
        assert evidence.protected is not None  # `refuses` saw to it
        names, n, m = self.columns(evidence), len(evidence.original), len(evidence.protected)
        weighted = evidence.original.weights is not None or evidence.protected.weights is not None
        one_to_one = n == m and not weighted
        some, too_many = None, False
        if max(n, m) > self.records:
            some = coordinates_of(evidence, names, self._draw_samples(evidence, run))
            # What is drawn mostly tells whether all are too many.
            too_many = any(_count_distinct(side) > self.records for side in (some.first, some.second))
        if not too_many or (one_to_one and n <= self.matched):
            space = coordinates_of(evidence, names)
            score = None if too_many else self._exact_work(space, of=n if one_to_one else None)
            if score is None and one_to_one and n <= self.matched and space.complete:
                score = self._work_of_assignment(space, run)
            if score is not None:
                return score
        assert some is not None  # fewer records are solved exactly
        return self._score_samples(some, run)

    def _exact_work(self, space: Coordinates, of: int | None) -> Score | None:
        """The least work between all records; None if too many of them are distinct."""
        original_points = _distinct_records(space.first, space.first_weights)
        released_points = _distinct_records(space.second, space.second_weights)
        if max(len(original_points[0]), len(released_points[0])) > self.records:
            return None
        details = {"columns": space.first.shape[1], "records": len(space.first)}
        return Score(value=transport_cost(space, *original_points, *released_points, of=of), details=details)

    def _work_of_assignment(self, space: Coordinates, run: Run) -> Score | None:
        """The work of the best assignment; None if no proof was found."""
        nominal = np.array(space.nominal, dtype=np.bool_)
        most = float(space.importance.max())
        worth = space.importance / most
        # Numbers first, codes last, with what is missing as a code of its own.
        original_points, released_points = (
            np.hstack((each[:, ~nominal] * worth[~nominal], np.nan_to_num(each[:, nominal], nan=-1.0)))
            for each in (space.first, space.second)
        )
        partners = np.arange(len(original_points))
        if not np.array_equal(original_points, released_points):  # else each stays where it is
            found = kernels.assignment.solve(
                original_points, released_points, "euclidean", n_codes=int(nominal.sum()),
                tick=run.ticker(self.title),
                weights=worth[nominal] ** 2,
            )  # fmt: skip
            if not found.certified:
                return None
            partners = found.partners
        gaps = original_points - released_points[partners]
        n_numbers = int((~nominal).sum())
        squares = (gaps[:, :n_numbers] ** 2).sum(axis=1)
        squares += (gaps[:, n_numbers:] != 0) @ worth[nominal] ** 2
        n, width = original_points.shape
        details = {"columns": width, "records": n, "matched": "one to one"}
        return Score(value=most * float(np.sqrt(squares).mean()), details=details)

    def _draw_samples(self, evidence: Evidence, run: Run) -> tuple[Ints, Ints]:
        """The rows of equally many records of both tables, pairs where they map, sample after sample."""
        assert evidence.protected is not None  # `refuses` saw to it
        n, m, source_rows = len(evidence.original), len(evidence.protected), evidence.source_rows
        size = min(self.sample, self.records, n, m)
        rows, released = (np.empty((self.draws, size), dtype=np.int64) for _ in range(2))
        for draw in range(self.draws):
            rng = run.rng("sample", draw)
            released[draw] = rng.choice(m, size, replace=False)
            if source_rows is None:
                rows[draw] = rng.choice(n, size, replace=False)
            else:
                rows[draw] = source_rows[released[draw]]
                nobodys = rows[draw] < 0
                rows[draw, nobodys] = rng.integers(n, size=int(nobodys.sum()))
        return rows.ravel(), released.ravel()

    def _score_samples(self, some: Coordinates, run: Run) -> Score:
        """The mean work between the samples, which lie one after another."""
        size = len(some.first) // self.draws
        costs, of = [], size if some.first_weights is None and some.second_weights is None else None
        for draw in run.track(self.title, range(self.draws), total=self.draws):
            part = slice(draw * size, (draw + 1) * size)
            first = _distinct_records(some.first[part], _those(some.first_weights, part))
            second = _distinct_records(some.second[part], _those(some.second_weights, part))
            costs.append(transport_cost(some, *first, *second, of=of))
        return Score(
            value=float(np.mean(costs)),
            status=Status.APPROXIMATE,
            interval=(min(costs), max(costs)),
            reason=f"measured on {self.draws} samples of {size} records, which overstates it",
            details={"columns": some.first.shape[1], "records": size, "draws": self.draws},
        )


def _those(weights: Floats | None, rows: slice) -> Floats | None:
    return None if weights is None else weights[rows]


def _count_distinct(points: Floats) -> int:
    return pl.DataFrame(points, orient="row").unique().height


def _distinct_records(points: Floats, weights: Floats | None) -> tuple[Floats, Floats]:
    """The distinct records and the share of each: the same problem, smaller."""
    names = [str(i) for i in range(points.shape[1])]
    records = pl.DataFrame(points, schema=names, orient="row")
    distinct = records.unique().sort(names).with_row_index("place")
    places = records.join(distinct, on=names, how="left", maintain_order="left")["place"].to_numpy()
    masses = np.bincount(places, weights=weights, minlength=len(distinct)).astype(np.float64)
    return distinct.select(names).to_numpy(), masses / masses.sum()


def transport_cost(  # noqa: PLR0917
    space: Coordinates,
    first: Floats,
    first_mass: Floats,
    second: Floats,
    second_mass: Floats,
    of: int | None = None,
) -> float:
    """Solve one transport problem exactly.

    If the masses are those ``of`` so many records on either side, some flow of least work takes each to one
    other. Where few records are alike, to find that is quicker than the general problem.
    """
    if first.shape[1] == 1 and not space.nominal[0] and not (np.isnan(first).any() or np.isnan(second).any()):
        from scipy.stats import wasserstein_distance

        alone = wasserstein_distance(first[:, 0], second[:, 0], first_mass, second_mass)
        return float(alone * space.importance[0])
    if _is_metric(space, first, second):
        first, first_mass, second, second_mass = _without_common(first, first_mass, second, second_mass)
    if of is not None:
        counts = [np.rint(mass * of).astype(np.int64) for mass in (first_mass, second_mass)]
        left = int(counts[0].sum())
        if 2 * len(first) * len(second) > left**2:
            from scipy.optimize import linear_sum_assignment

            first, second = (
                np.repeat(side, n, axis=0) for side, n in zip((first, second), counts, strict=True)
            )
            costs = distances(space, first, second)
            return float(costs[linear_sum_assignment(costs)].sum() / of)
    if not (len(first) and len(second)):
        return 0.0
    costs = distances(space, first, second)
    value, log = _network_simplex()(first_mass, second_mass, costs, numItermax=_SOLVER_ITERATIONS, log=True)
    if log.get("warning"):
        raise RuntimeError("the transport solver did not finish")
    return float(max(value, 0.0))


def _is_metric(space: Coordinates, first: Floats, second: Floats) -> bool:
    """Whether no detour by a third record is shorter, as one by a missing value is from −1 to 2."""
    both = np.vstack((first, second))[:, ~np.array(space.nominal, dtype=np.bool_)]
    both = both[:, np.isnan(both).any(axis=0)]
    spreads = np.fmax.reduce(both, axis=0) - np.fmin.reduce(both, axis=0)  # NaN where all are missing
    return not (spreads > _DETOUR).any()


def _without_common(
    first: Floats, first_mass: Floats, second: Floats, second_mass: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """What is left if the mass that both have in one place stays there, which costs least in a metric."""
    names = [str(i) for i in range(first.shape[1])]
    sides = ((first, first_mass), (second, -second_mass))
    frames = [
        pl.DataFrame(points, schema=names, orient="row").with_columns(mass=mass) for points, mass in sides
    ]
    surplus = pl.concat(frames).group_by(names, maintain_order=True).agg(pl.col("mass").sum())
    places, masses = surplus.select(names).to_numpy(), surplus["mass"].to_numpy()
    more, fewer = masses > _NO_MASS, masses < -_NO_MASS
    return places[more], masses[more], places[fewer], -masses[fewer]


@cache
def _network_simplex() -> Callable[..., Any]:
    """POT's solver without the rest of POT, which loads scikit-learn and pandas: a second."""
    with _LOADING:
        spec = None if "ot" in sys.modules else find_spec("ot")
        if spec is not None:
            sys.modules["ot"] = module_from_spec(spec)  # its folder, as a package that contains nothing else
            try:
                return cast("Callable[..., Any]", import_module("ot.lp").emd2)
            except (ImportError, AttributeError):  # a version whose solver needs more of it
                for name in [each for each in sys.modules if each.startswith("ot.")]:
                    del sys.modules[name]
            finally:
                del sys.modules["ot"]  # who imports it has all of it
        return cast("Callable[..., Any]", import_module("ot.lp").emd2)
