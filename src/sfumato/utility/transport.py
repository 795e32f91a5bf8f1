"""Utility by transport: how much work it takes to turn the released distribution into the original one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.core.measure import Measure, Score, Status
from sfumato.core.params import param
from sfumato.core.run import Run
from sfumato.data.evidence import Evidence
from sfumato.data.schema import Kind
from sfumato.data.table import Floats, Table

#: Iterations after which the exact solver gives up; it needs about ten per record.
_SOLVER_ITERATIONS = 100_000_000


class EarthMoversDistance(Measure):
    r"""Least work that turns the original distribution into the released one.

    .. math::

        U(X, Y) = \frac{\sum_{ij} d_{ij} f_{ij}}{\sum_{ij} f_{ij}}

    where :math:`f` is the flow of records that makes the sum least, and :math:`d_{ij}` the Euclidean distance
    between original record :math:`i` and released record :math:`j` over all columns both tables have. A
    column's distance is :math:`|x - y|` after the original's smallest and largest values were put at 0 and 1
    (ordinal columns: their position; nominal: 0 if equal, else 1).

    Notes
    -----
    **How to read it.** 0 means the same distribution; the unit is one range of one column. Lower is
    better.

    **Doubt.** Exact up to ``records`` distinct records in either table. Above, equally many records are
    drawn from both tables, pairs together where records map, ``draws`` times: the mean of such draws lies
    above the true distance, and approaches it as ``records`` grows. The status then is approximate, with
    the interval of the draws.

    **Missing.** A missing value is as far from any value as the whole range (1), and 0 from another
    missing one: suppression costs utility.

    **Cost.** Up to :math:`O(n^3)` time and :math:`O(n^2)` memory in the records solved at once, which
    ``records`` bounds.
    """

    name = "earth-movers-distance"
    title = "Earth mover's distance"
    aspect = "utility"
    better = "low"
    bounds = (0.0, np.inf)
    kinds = frozenset({Kind.CONTINUOUS, Kind.ORDINAL, Kind.NOMINAL, Kind.DATE})
    references = ("rubner2000", "domingoferrer2018")
    cost = "n³"

    records: int = param(
        5000, "Largest number of distinct records solved exactly.", ge=2, le=20_000, unit="records"
    )
    draws: int = param(5, "Number of samples taken when there are more records than that.", ge=2, le=1000)

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Solve the transport problem between the two tables, or between samples of them."""
        assert evidence.protected is not None  # `refuses` saw to it
        names = self.columns(evidence)
        first, second, nominal = comparable(evidence.original, evidence.protected, names)
        if not len(first) or not len(second):
            return Score.not_estimable("one of the tables has no records")
        mine, my_mass = _collapsed(first)
        theirs, their_mass = _collapsed(second)
        if max(len(mine), len(theirs)) <= self.records:
            value = transport_cost(mine, theirs, nominal, my_mass, their_mass)
            return Score(value=value, details={"columns": len(names), "records": len(first)})
        return self._sampled(first, second, nominal, evidence.source_rows, run)

    def _sampled(
        self,
        first: Floats,
        second: Floats,
        nominal: npt.NDArray[np.bool_],
        source_rows: npt.NDArray[np.int64] | None,
        run: Run,
    ) -> Score:
        size = min(self.records, len(first), len(second))
        costs = []
        for draw in run.track(self.title, range(self.draws), total=self.draws):
            rng = run.rng("sample", draw)
            released = rng.choice(len(second), size, replace=False)
            rows = (
                rng.choice(len(first), size, replace=False) if source_rows is None else source_rows[released]
            )
            costs.append(_between(first[rows], second[released], nominal))
        return Score(
            value=float(np.mean(costs)),
            status=Status.APPROXIMATE,
            interval=(min(costs), max(costs)),
            reason=f"measured on {self.draws} samples of {size} records, which overstates it",
            details={"columns": first.shape[1], "records": size, "draws": self.draws},
        )


def comparable(
    original: Table, protected: Table, names: tuple[str, ...]
) -> tuple[Floats, Floats, npt.NDArray[np.bool_]]:
    """Both tables on one scale, NaN where missing, and which columns are nominal."""
    first = np.empty((len(original), len(names)))
    second = np.empty((len(protected), len(names)))
    nominal = np.zeros(len(names), dtype=np.bool_)
    for i, name in enumerate(names):
        kind = original.schema[name].kind
        nominal[i] = kind is Kind.NOMINAL
        if kind in {Kind.NOMINAL, Kind.ORDINAL}:
            first[:, i], second[:, i] = _same_codes(original, protected, name)
        else:
            first[:, i], second[:, i] = original.numbers(name), protected.numbers(name)
        if not nominal[i]:
            low, span = _range(first[:, i])
            first[:, i] = (first[:, i] - low) / span
            second[:, i] = (second[:, i] - low) / span
    return first, second, nominal


def _same_codes(original: Table, protected: Table, name: str) -> tuple[Floats, Floats]:
    """Code a column of both tables into one list of values: the original's, then what is new."""
    mine, theirs = original.codes(name), protected.codes(name)
    place = {value: code for code, value in enumerate(mine.categories.to_list())}
    table = [place.setdefault(value, len(place)) for value in theirs.categories.to_list()]
    lookup = np.array([*table, -1], dtype=np.float64)
    first, second = mine.codes.astype(np.float64), lookup[theirs.codes]
    first[first < 0], second[second < 0] = np.nan, np.nan
    return first, second


def _range(values: Floats) -> tuple[float, float]:
    present = values[~np.isnan(values)]
    if not len(present):
        return 0.0, 1.0
    low, high = float(present.min()), float(present.max())
    return low, (high - low) if high > low else 1.0


def _collapsed(points: Floats) -> tuple[Floats, Floats]:
    """The distinct records and the share of each: the same problem, smaller."""
    distinct, counts = np.unique(points, axis=0, return_counts=True, equal_nan=True)
    return distinct, counts / counts.sum()


def _between(first: Floats, second: Floats, nominal: npt.NDArray[np.bool_]) -> float:
    (mine, my_mass), (theirs, their_mass) = _collapsed(first), _collapsed(second)
    return transport_cost(mine, theirs, nominal, my_mass, their_mass)


def transport_cost(
    first: Floats, second: Floats, nominal: npt.NDArray[np.bool_], first_mass: Floats, second_mass: Floats
) -> float:
    """Solve one transport problem exactly."""
    from ot.lp import emd2

    if first.shape[1] == 1 and not nominal[0] and not (np.isnan(first).any() or np.isnan(second).any()):
        from scipy.stats import wasserstein_distance

        return float(wasserstein_distance(first[:, 0], second[:, 0], first_mass, second_mass))
    costs = _distances(first, second, nominal)
    value, log = emd2(first_mass, second_mass, costs, numItermax=_SOLVER_ITERATIONS, log=True)
    if log.get("warning"):
        raise RuntimeError("the transport solver did not finish")
    return float(max(value, 0.0))


def _distances(first: Floats, second: Floats, nominal: npt.NDArray[np.bool_]) -> Floats:
    from scipy.spatial.distance import cdist

    if not (nominal.any() or np.isnan(first).any() or np.isnan(second).any()):
        complete: Floats = cdist(first, second)
        return complete
    squares = np.zeros((len(first), len(second)))
    for i in range(first.shape[1]):
        difference = np.abs(first[:, i, None] - second[None, :, i])
        if nominal[i]:
            difference = (difference > 0).astype(np.float64)
        mine, theirs = np.isnan(first[:, i]), np.isnan(second[:, i])
        difference[mine[:, None] ^ theirs[None, :]] = 1.0
        difference[mine[:, None] & theirs[None, :]] = 0.0
        squares += difference**2
    return np.sqrt(squares)
