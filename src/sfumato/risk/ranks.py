"""Risk by ranks: how near an intruder comes who knows the order of the values, not their size.

Ranks make every method comparable: whatever a method does to the values, an intruder who ranks them sees
a permutation (the permutation paradigm of Domingo-Ferrer and Muralidhar).
"""

from __future__ import annotations

import math

import numpy as np

from sfumato import kernels
from sfumato.core.evidence import Evidence
from sfumato.core.measure import Counting, Measure, Scaling, Score, Tells
from sfumato.core.params import param
from sfumato.core.run import Run
from sfumato.data.persons import best_by_person, persons_of
from sfumato.data.schema import ORDERED
from sfumato.data.table import Table
from sfumato.kernels.arrays import Floats
from sfumato.risk._spaces import held_rows, known_to_intruder, targets_of, why_generalised, why_incomparable


def rank_matrix(table: Table, names: tuple[str, ...], *, scale: int) -> Floats:
    """Mid-ranks of several columns, stretched to ``scale`` records so that tables of two sizes compare.

    A value takes no rank where it is missing; the ranks of a column with missing values are stretched
    too, so that its lowest and highest values stay the ends of the scale.
    """
    ranks = np.empty((len(table), len(names)))
    for position, name in enumerate(names):
        column = kernels.ranks.midranks(table.numbers(name))
        present = int((~np.isnan(column)).sum())
        # (r − ½)/n is a value's place in (0, 1) whatever the number of records.
        ranks[:, position] = column if present in {0, scale} else (column - 0.5) * (scale / present) + 0.5
    return ranks


def nearest_ranks(
    measure: Measure, evidence: Evidence, run: Run, *, norm: str
) -> tuple[Floats, tuple[str, ...]]:
    """Rank distance from each record of the intruder's table to the nearest released one, NaN if not held."""
    assert evidence.protected is not None  # `refuses` saw to it
    names = measure.columns(evidence)
    known = evidence.known_table
    scale = len(known)
    held = targets_of(evidence, held_rows(evidence, run), persons_of(known), run)
    known_ranks = rank_matrix(known, names, scale=scale)[held]
    released_ranks = rank_matrix(evidence.protected, names, scale=scale)
    distances = np.full(scale, np.nan)
    distances[held] = kernels.neighbours.nearest_distance(
        known_ranks, released_ranks, norm=norm, tick=run.ticker(measure.title)
    )
    return distances, names


def per_person(known: Table, distances: Floats) -> Floats:
    """The distances that count: one for each person the intruder holds a record of, the smallest.

    Where several records are of one person (the unit), reaching any of them reaches the person.
    """
    held = ~np.isnan(distances)
    return -best_by_person(persons_of(known)[held], -distances[held])


def _looked_at(evidence: Evidence, names: tuple[str, ...]) -> dict[str, int]:
    """How many of the columns the intruder knows were ranked: one that has no order says nothing here."""
    return {"columns": len(names), "columns_left_out": len(evidence.known_columns) - len(names)}


class _RankMeasure(Measure):
    """Compares the ranks of exact values: where nobody knows the value, nobody knows its rank."""

    threat = "linkability"
    counts = Counting(
        pools_copies=True, intruder_records_only=True, averages_columns=True, compares_kept_relations=True
    )
    scales = Scaling(exact_up_to=200_000, persons_drawn=20_000)

    def columns(self, evidence: Evidence) -> tuple[str, ...]:
        """The columns that the intruder knows and their table has."""
        return known_to_intruder(evidence, super().columns(evidence))

    def refuses(self, evidence: Evidence) -> str | None:
        """Refuse ranges and groups of values."""
        tables = evidence.known_table, evidence.protected
        return (
            why_incomparable(self.name, evidence, self.kinds)
            or super().refuses(evidence)
            or why_generalised(self.name, self.columns(evidence), *tables)
        )


class RankLinkage(_RankMeasure):
    r"""Mean log rank distance from each record to the nearest released one.

    .. math::

        R(X, Y) = \frac{1}{m\,n} \sum_{x \in X} \ln d(x, Y), \qquad
        d(x, Y) = \min_{y \in Y} \sqrt{\sum_{i=1}^{m} \left[\mathrm{rank}(x^i) - \mathrm{rank}(y^i)\right]^2}

    where ranks are mid-ranks within their own table and :math:`m` is the number of columns the intruder
    knows. The smaller, the nearer the release comes to the original records, and the greater the risk.
    No true pairs are needed, so synthetic data can be measured too.

    Notes
    -----
    **How to read it.** Higher is safer. Only differences at the same data set and columns mean something.

    **Doubt.** Exact; a record found exactly (:math:`d = 0`) would have :math:`\ln d = -\infty`, so distances
    are floored at ``floor`` (half a rank) and their number is given beside it: they are the riskiest
    records, and leaving them out would understate the risk.

    **Missing.** A value that is missing on either side does not count, and the distance is scaled up to
    all columns; a pair that shares no value is no link. A record that can be linked to none is left out
    and counted.

    **Units.** Where a column tells whose record it is, persons are counted, each by the record nearest to
    a released one.

    **Cost.** :math:`O(n \log n)` in few columns, up to :math:`O(n^2)` in many.
    """

    name = "rank-linkage"
    vetted = "brute-forced: unit/risk/test_rank_measures.py::test_rank_linkage_is_brute_force"
    synonyms = ("record linkage", "rank-based record linkage")
    family = "permutation model"
    tells = Tells(
        places={"default": 0, "report": 19},
        record_sentence="its log rank distance to the nearest released record, per column: {:.3g}",
    )
    title = "Rank linkage R(X,Y)"
    aspect = "risk"
    better = "high"
    kinds = ORDERED
    references = ("domingoferrer2018", "domingoferrer2016")
    cost = "n²"

    floor: float = param(
        0.5, "Smallest distance that counts before the logarithm is taken.", gt=0, le=1e6, unit="ranks"
    )

    @property
    def worst(self) -> float:
        """Every record at the floor, in one column: in several the logarithm is divided by their number."""
        return min(math.log(self.floor), 0.0)

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Link each record to the nearest and average the logarithms."""
        by_record, names = nearest_ranks(self, evidence, run, norm="euclidean")
        distances = per_person(evidence.known_table, by_record)
        linked = distances[np.isfinite(distances)]
        if not len(linked):
            return Score.not_estimable("no pair of records has values in the same column")
        return Score(
            value=float(self._logs(linked).mean()) / len(names),
            by_record=self._logs(np.where(np.isinf(by_record), np.nan, by_record)) / len(names),
            details={
                **_looked_at(evidence, names),
                "records": len(linked),
                "zero_distances": int((linked == 0).sum()),
                "floored": int((linked < self.floor).sum()),
                "not_linkable": len(distances) - len(linked),
            },
        )

    def _logs(self, distances: Floats) -> Floats:
        logs: Floats = np.log(np.maximum(distances, self.floor))
        return logs


class PermutationDistance(_RankMeasure):
    r"""Mean of the largest rank difference to the nearest released record.

    .. math::

        P(X, Y) = \frac{1}{n\,(n-1)} \sum_{x \in X} \min_{y \in Y} \max_{1 \le i \le m}
            \left|\mathrm{rank}(x^i) - \mathrm{rank}(y^i)\right|

    where ranks are mid-ranks within their own table. 0 means that every original record stands in the
    release with all its ranks; 1 that the nearest is as far as can be.

    Notes
    -----
    **How to read it.** Higher is safer; bounded by 0 and 1, so it compares across data sets of different
    size. ``by_column`` gives the mean rank difference of the true pairs in each column, where known.

    **Doubt.** Exact.

    **Missing.** A value missing on either side does not count; a pair that shares no value is no link,
    and a record that can be linked to none is left out and counted.

    **Units.** Where a column tells whose record it is, persons are counted, each by the record nearest to
    a released one.

    **Cost.** :math:`O(n \log n)` in few columns, up to :math:`O(n^2)` in many.
    """

    name = "permutation-distance"
    vetted = "brute-forced: unit/risk/test_rank_measures.py::test_permutation_distance_is_brute_force"
    family = "permutation model"
    tells = Tells(
        places={"default": 0, "report": 18},
        record_sentence="the nearest released record is {:.2%} of all ranks away in its farthest column",
    )
    title = "Permutation distance"
    aspect = "risk"
    better = "high"
    bounds = (0.0, 1.0)
    kinds = ORDERED
    references = ("domingoferrer2016", "domingoferrer2018")
    cost = "n²"

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Link each record by the largest rank difference and average it."""
        by_record, names = nearest_ranks(self, evidence, run, norm="maximum")
        distances = per_person(evidence.known_table, by_record)
        linked = distances[np.isfinite(distances)]
        if not len(linked):
            return Score.not_estimable("no pair of records has values in the same column")
        span = max(len(evidence.known_table) - 1, 1)
        return Score(
            value=float(linked.mean()) / span,
            by_record=np.where(np.isinf(by_record), np.nan, by_record) / span,
            by_column=_true_pairs(evidence, names),
            details={
                **_looked_at(evidence, names),
                "records": len(linked),
                "zero_distances": int((linked == 0).sum()),
                "median_ranks": float(np.median(linked)),
                "not_linkable": len(distances) - len(linked),
            },
        )


def _true_pairs(evidence: Evidence, names: tuple[str, ...]) -> dict[str, float]:
    """Mean rank difference between each released record and its own original, by column."""
    rows = evidence.source_rows
    if rows is None or evidence.protected is None or evidence.scenario.external or not len(rows):
        return {}
    scale, known = len(evidence.original), rows >= 0  # a source of −1 is nobody
    known_ranks = rank_matrix(evidence.original, names, scale=scale)[rows[known]]
    released_ranks = rank_matrix(evidence.protected, names, scale=scale)[known]
    moved = np.abs(known_ranks - released_ranks) / max(scale - 1, 1)
    shared = ~np.isnan(moved)
    return {name: float(moved[shared[:, i], i].mean()) for i, name in enumerate(names) if shared[:, i].any()}
