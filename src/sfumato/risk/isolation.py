"""Risk of those who stand alone: records with nobody near them, whatever their values are.

Who is far from all others is found by an intruder who knows no more than roughly where to look, and stays
alone under noise that hides others in the crowd. Records of any kinds are points (see `data/points.py`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from sfumato import kernels
from sfumato.core.evidence import Evidence
from sfumato.core.intruder_view import seen_table
from sfumato.core.measure import Counting, Laws, Measure, Needs, Score, Tells
from sfumato.core.params import param
from sfumato.core.run import Run
from sfumato.data.persons import best_by_person, persons_of
from sfumato.data.points import points_of
from sfumato.data.schema import COMPARABLE
from sfumato.kernels.arrays import Floats
from sfumato.risk._spaces import why_generalised, why_incomparable

if TYPE_CHECKING:
    from sfumato.kernels.neighbours import NeighbourDistances


#: More times as far counts as this: beside identical records whoever lies apart is infinitely farther.
MOST_TIMES = 1e6


class _IsolationMeasure(Measure):
    """The share of persons who stand alone in the table that an intruder sees."""

    aspect = "risk"
    threat = "singling out"
    better = "low"
    bounds = (0.0, 1.0)
    kinds = COMPARABLE
    needs = Needs(release=False)
    counts = Counting(people=True)
    cost = "n²"

    def refuses(self, evidence: Evidence) -> str | None:
        """Refuse what cannot be placed."""
        tables = evidence.original, evidence.protected
        reason = why_incomparable(self.name, evidence, self.kinds) or super().refuses(evidence)
        return reason or why_generalised(self.name, self.columns(evidence), *tables)

    def crowd(self, evidence: Evidence, run: Run, count: int) -> NeighbourDistances:
        """The nearest others of each record of the table seen, in deviations."""
        table = seen_table(evidence).select(self.columns(evidence))
        points = points_of(table, scale="deviation", nominal="equal")
        persons = persons_of(seen_table(evidence))
        found: NeighbourDistances = kernels.neighbours.crowd(
            points, persons, count, tick=run.ticker(self.title)
        )
        return found

    def score_of(self, evidence: Evidence, alone: Floats, shown: Floats, **details: float | str) -> Score:
        """The score of who is alone (1 or 0; NaN if nobody knows), and what is told of each record."""
        table = seen_table(evidence)
        known = ~np.isnan(alone)
        if not known.any():
            return Score.not_estimable("the table has too few records to tell who stands alone")
        persons = best_by_person(persons_of(table)[known], alone[known])
        return Score(
            value=float(persons.mean()),
            by_record=_of_originals(evidence, shown),
            details={
                "columns": len(self.columns(evidence)),
                "columns_left_out": len(evidence.known_columns) - len(self.columns(evidence)),
                "persons": len(persons),
                "alone": int(persons.sum()),
                **details,
            },
        )


def _of_originals(evidence: Evidence, shown: Floats) -> Floats | None:
    """What is told of released records, for the originals they come from; the greatest of several."""
    if evidence.protected is None:
        return shown
    rows = evidence.source_rows
    if rows is None:
        return None
    largest = np.full(len(evidence.original), -np.inf)
    known = (rows >= 0) & ~np.isnan(shown)
    np.maximum.at(largest, rows[known], shown[known])
    return np.where(np.isneginf(largest), np.nan, largest)


class ClusterIsolation(_IsolationMeasure):
    r"""Share of people who form a cluster of their own in a single-linkage clustering.

    .. math:: \frac{1}{N} \left|\{i : \min_{j \ne i} d(x_i, x_j) > h\}\right|

    Single linkage joins clusters while their nearest records are no farther apart than the ``height``
    :math:`h`, so whoever is left alone has nobody within :math:`h`. Distances are Euclidean, with each number
    in its standard deviations and two unequal categories as far apart as gives their column a variance of 1.

    See Also
    --------
    density-isolation : judges by how crowded the neighbourhood is.
    outlier-disclosure : whether those who lie apart are found in the release.

    Notes
    -----
    **How to read it.** Lower is safer; of the release if there is one, else of the original. Those alone in
    the original are the ones to protect first: `explain --riskiest` lists them. The number of a record is the
    distance to the nearest of another person.

    **Doubt.** Exact. It does not ask who is who: a release may be far from the original and have loners of
    its own, which are nobody.

    **Missing.** A missing value lies at its column's mean.

    **Units.** Records of one person are not each other's neighbours; a person counts as alone if one of the
    person's records is.

    **Cost.** A k-d tree: :math:`O(n \log n)` in few columns, up to :math:`O(n^2)` in many.

    Examples
    --------
    >>> values = pl.DataFrame({"x": [1.0, 1.1, 1.2, 9.0]})
    >>> table = Table(values, Schema((Column("x", Kind.CONTINUOUS),)))
    >>> ClusterIsolation().score(Evidence(table), Run(seed=1)).value
    0.25
    """

    name = "cluster-isolation"
    counts = replace(_IsolationMeasure.counts, laws=Laws(knowledge_is_risk=True))
    vetted = "brute-forced: unit/risk/test_isolation.py::test_clusters_of_one_are_those_of_single_linkage"
    synonyms = ("distance-based clustering", "single-linkage clustering")
    family = "isolation"
    title = "Clusters of one"
    tells = Tells(record_sentence="the nearest record of another person is {:.3g} standard deviations away")
    references = ("bacher2002",)

    height: float = param(
        1.0, "Distance at which the tree of clusters is cut: who is farther off is alone.", gt=0, le=1e6,
        unit="deviations", symbol="h",
    )  # fmt: skip

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Look for the nearest other person of each."""
        radii = self.crowd(evidence, run, 1).radii
        alone = np.where(np.isinf(radii), np.nan, (radii > self.height).astype(np.float64))
        return self.score_of(evidence, alone, np.where(np.isinf(radii), np.nan, radii))


class DensityIsolation(_IsolationMeasure):
    r"""Share of people who are much farther from their neighbours than these are from their own.

    .. math::

        \frac{1}{N} \left|\left\{i : r_k(i) > \lambda \, \frac{1}{|N_k(i)|}
            \sum_{j \in N_k(i)} r_k(j)\right\}\right|

    where :math:`r_k(i)` is the distance to the :math:`k`-th nearest, the inverse of a density, and
    :math:`N_k(i)` are the :math:`k` nearest; :math:`\lambda` is the factor ``farther``.

    See Also
    --------
    cluster-isolation : asks for the nearest only, with one height for all.

    Notes
    -----
    **How to read it.** Lower is safer; of the release if there is one, else of the original. What is far in a
    crowd is near in a sparse region, so no distance has to be chosen. The number of a record is how
    many times as far its neighbours are; 1 is the usual. In many columns all distances are alike, and a lower
    factor means as much.

    **Doubt.** Exact. It does not ask who is who.

    **Missing.** A missing value lies at its column's mean.

    **Units.** Records of one person are not each other's neighbours, and at one place a person counts once; a
    person counts if one of the person's records is isolated.

    **Cost.** One query of a k-d tree: :math:`O(n \log n)` in few columns, up to :math:`O(n^2)` in many.
    """

    name = "density-isolation"
    synonyms = ("density-based clustering", "local outlier factor", "LOF")
    family = "isolation"
    title = "Isolation by density"
    tells = Tells(record_sentence="its neighbours are {:.3g} times as far away as their own neighbours")
    references = ("ichim2009", "breunig2000")

    neighbours: int = param(10, "Number of neighbours by which density is judged.", ge=1, le=1000, symbol="k")
    farther: float = param(
        1.5, "How many times as far as their own its neighbours must be.", gt=1, le=1e6, symbol="λ"
    )

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Compare the density at each record with that at its neighbours."""
        count = min(self.neighbours, len(seen_table(evidence)) - 2)
        if count < 1:
            return Score.not_estimable("the table has too few records to tell who stands alone")
        sparsity = self.crowd(evidence, run, count).sparsity
        alone = np.where(np.isnan(sparsity), np.nan, (sparsity > self.farther).astype(np.float64))
        return self.score_of(evidence, alone, np.minimum(sparsity, MOST_TIMES), neighbours=count)
