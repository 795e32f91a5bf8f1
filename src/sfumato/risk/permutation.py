"""Risk in the permutation model: whatever a method does to a column, what protects is the change of ranks.

Ranks are mid-ranks within their own table. Between an original column :math:`X` and its release :math:`Y`
stands :math:`Z`, the values of :math:`X` in the order of :math:`Y` (`reverse_mapping`): from :math:`X` to
:math:`Z` ranks are permuted, from :math:`Z` to :math:`Y` values change and ranks do not.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Laws, Needs, Score, Status, Tells
from sfumato.core.params import param
from sfumato.core.run import Run
from sfumato.kernels.arrays import Floats, Ints
from sfumato.risk._ranked_tables import (
    NOTHING,
    PermutationMeasure,
    RankedTables,
    inner_products,
    rank_tables,
    span,
)


class _CanonicalMeasure(PermutationMeasure):
    """One minus squared canonical correlations of ranks, of records that belong together."""

    cost = "n log n"
    references = ("domingoferrer2020", "domingoferrer2016", "hotelling1936")

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Correlate the ranks of both tables."""
        pair = evidence.remember("permutation model, pairs", lambda: rank_tables(self, evidence, run))
        if isinstance(pair, str) or pair.reason:
            return Score.not_estimable(pair if isinstance(pair, str) else str(pair.reason))
        left = protection(inner_products(pair.original.basis, pair.released.basis))
        return Score(
            value=self.of(left),
            by_column=_by_column(pair),
            details={**pair.details, "largest_correlation": float(np.sqrt(1 - left[0]))},
        )

    def of(self, left: Floats) -> float:
        """The number, from one minus each squared correlation, the least first."""
        raise NotImplementedError  # abstract


def _by_column(pair: RankedTables) -> dict[str, float]:
    """1 − ρ² of each column with its own release."""
    both = np.einsum(
        "ij,ij->j",
        pair.original.parts,
        inner_products(pair.original.basis, pair.released.basis) @ pair.released.parts,
    )
    varies = set(range(len(pair.names))) - set(pair.original.constant) - set(pair.released.constant)
    return {pair.names[i]: float(np.clip(1 - both[i] ** 2, 0.0, 1.0)) for i in sorted(varies)}


class LargestCorrelation(_CanonicalMeasure):
    r"""Confidentiality by the largest canonical correlation of the ranks of original and release (CM1).

    .. math:: CM_1(X, Y) = 1 - \rho_1^2

    where :math:`\rho_1` is the largest correlation that any combination of the original's columns of ranks
    has with any combination of the release's.

    See Also
    --------
    cm2 : counts all canonical correlations; never above this.
    cm3 : needs no pairs, for synthetic data.
    rank-utility : the utility in the same model.

    Notes
    -----
    **How to read it.** Higher is safer. 0 means that some column, or combination of columns, can be read off
    the release by its ranks: one column that is left as it was is enough. 1 means that ranks say nothing;
    independent records have a little less. ``by_column`` gives
    :math:`1 - \rho^2` of each column with its own release.

    **Doubt.** Exact; by QR and SVD of centred ranks. Columns that are constant or a combination of others are
    set aside and named: they change nothing.

    **Missing.** Records that lack a value in either table are set aside and counted, and so are originals
    that were not released. Columns without any value are left out.

    **Ties** share their mean rank. Nominal columns are ranked by their marginality in their hierarchy.

    **Cost.** A sort of each column and a few passes.

    Examples
    --------
    >>> schema = Schema((Column("x", Kind.CONTINUOUS),))
    >>> original = Table(pl.DataFrame({"x": [1.0, 2.0, 3.0, 4.0]}), schema)
    >>> released = Table(pl.DataFrame({"x": [10.0, 30.0, 20.0, 40.0]}), schema)  # correlation of ranks .8
    >>> evidence = Evidence(original, Release.of(released, source_rows=np.arange(4)))
    >>> round(LargestCorrelation().score(evidence, Run(seed=1)).value, 3)
    0.36
    """

    name = "cm1"
    vetted = "published: reference/test_paper_permutation.py::test_confidentiality_of_synthetic_census"
    family = "permutation model"
    title = "Confidentiality by the largest rank correlation (CM1)"

    def of(self, left: Floats) -> float:
        """The least."""
        return float(left[0])


class AllCorrelations(_CanonicalMeasure):
    r"""Confidentiality by all canonical correlations of the ranks of original and release (CM2).

    .. math:: CM_2(X, Y) = \prod_{i=1}^{m} \left(1 - \rho_i^2\right)

    where :math:`\rho_1 \ge \rho_2 \ge \dots` are the canonical correlations of the ranks. For elliptical
    distributions it is :math:`e^{-I(X; Y)}` with the mutual information :math:`I`.

    See Also
    --------
    cm1 : counts the largest only.
    cm3 : needs no pairs, for synthetic data.

    Notes
    -----
    **How to read it.** Higher is safer; never above `cm1`, and 0 where that is 0. Independent records of
    :math:`m` columns have about :math:`1 - m^2 / (n - 1)`.

    **Doubt.** Exact, as `cm1`.

    **Missing.** As in `cm1`.

    **Cost.** A sort of each column and a few passes.
    """

    name = "cm2"
    vetted = "published: reference/test_paper_permutation.py::test_confidentiality_of_synthetic_census"
    family = "permutation model"
    tells = Tells(places={"epsilon": 2})
    title = "Confidentiality by all rank correlations (CM2)"

    def of(self, left: Floats) -> float:
        """The product."""
        return float(np.prod(left))


class SortedCorrelations(PermutationMeasure):
    r"""Confidentiality against an intruder who sorts both tables by one column (CM3).

    .. math:: CM_3(X, Y) = \min_{1 \le j \le m} CM_2(X^{-j}, Y^{-j})

    where :math:`X^{-j}` and :math:`Y^{-j}` are the tables without their :math:`j`-th column, each sorted by
    it: no record needs to be known to belong to another, so synthetic data can be measured.

    See Also
    --------
    cm2 : what is found where the pairs are known.

    Notes
    -----
    **How to read it.** Higher is safer. 0 means that sorting by some column lays other columns side by side
    again; a release of whole records in another order has 0 always. ``by_column`` gives what each column
    yields when both tables are sorted by it.

    **Doubt.** Exact where the column that decides has no ties. Else the order among equals is drawn as often
    as ``draws`` says, the mean counts, and if draws differ the number is an estimate with the least and the
    greatest of them as interval. Of two tables of different size, whose records do not map, the larger is
    sampled: an estimate too.

    **Missing.** As in `cm1`; where records do not map, each table without its incomplete records.

    **Cost.** For each column a pass over all others; that times ``draws`` for those with ties.
    """

    name = "cm3"
    counts = replace(
        PermutationMeasure.counts, laws=Laws(reads_names="Ties in a column are drawn by its name.")
    )
    vetted = "published: reference/test_paper_permutation.py::test_confidentiality_of_synthetic_census"
    family = "permutation model"
    title = "Confidentiality after sorting (CM3)"
    references = ("domingoferrer2020", "domingoferrer2016")
    cost = "n log n"
    needs = Needs(columns=2)  # one to sort by and one to compare

    draws: int = param(5, "How often the order of equal values is drawn at random.", ge=1, le=1000)

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Sort by each column in turn, and correlate the others."""
        pair = evidence.remember("permutation model, pairs", lambda: rank_tables(self, evidence, run))
        if isinstance(pair, str) or pair.reason:
            return Score.not_estimable(pair if isinstance(pair, str) else str(pair.reason))
        found = {
            pair.names[j]: drawn
            for j in run.track(self.title, range(len(pair.names)), len(pair.names))
            if len(drawn := self._sorted_by(pair, j, run))
        }
        if not found:
            return Score.not_estimable("no column is left to compare when both tables are sorted by another")
        if _same_records(pair):  # whose equal values were drawn apart
            found = {name: np.zeros(1) for name in found}
        means = {name: float(drawn.mean()) for name, drawn in found.items()}
        least = min(float(drawn.min()) for drawn in found.values())
        value, most = min(means.values()), min(float(drawn.max()) for drawn in found.values())
        score = Score(value, by_column=means, details=pair.details)
        return _mark_as_random(score, (least, most), sampled="sampled" in pair.details)

    def _sorted_by(self, pair: RankedTables, j: int, run: Run) -> Floats:
        """CM2 of the other columns if both tables are sorted by one, in each draw; none if it is mute."""
        if j in pair.original.constant or j in pair.released.constant:
            return np.empty(0)
        spans = [span(np.delete(each.parts, j, axis=1)) for each in (pair.original, pair.released)]
        if not all(each.shape[1] for each in spans):
            return np.empty(0)
        tied = any(_has_ties(each.ranks[j]) for each in (pair.original, pair.released))
        drawn = []
        for draw in range(self.draws if tied else 1):
            rng = run.rng("ties", pair.names[j], str(draw))
            original, released = (_places(each.ranks, j, rng) for each in (pair.original, pair.released))
            order = np.empty(len(released), dtype=np.int64)
            order[released] = np.arange(len(released))
            products = inner_products(pair.original.basis, pair.released.basis, order[original])
            drawn.append(np.prod(protection(spans[0].T @ products @ spans[1])))
        return np.array(drawn)


def _mark_as_random(score: Score, between: tuple[float, float], *, sampled: bool) -> Score:
    """Say of a number that chance had a part in it."""
    least, most = between
    if least == most and not sampled:
        return score
    reason = "the order of equal values was drawn at random" if least < most else ""
    if sampled:
        reason = " and ".join(filter(None, ("the larger table was sampled", reason)))
    return Score(
        score.value, status=Status.APPROXIMATE, interval=(least, most) if least < most else None,
        by_column=score.by_column, details=score.details, reason=reason,
    )  # fmt: skip


def _has_ties(ranks: Floats) -> bool:
    """Whether mid-ranks are other than the numbers from 1 to n."""
    seen = np.zeros(len(ranks) + 1, dtype=np.bool_)
    seen[ranks.astype(np.int64)] = True
    return int(seen.sum()) < len(ranks)


def _places(ranks: Floats, j: int, rng: np.random.Generator) -> Ints:
    """The place of each record if all are sorted by one column, from 0, in a drawn order among equals."""
    if not _has_ties(ranks[j]):
        return np.asarray(ranks[j] - 1, dtype=np.int64)
    # What is drawn goes by what a record is, not by where it stands: the order of a file is no evidence.
    keys = np.zeros(ranks.shape[1])
    for number, column in enumerate(ranks, start=1):
        keys += np.sin(number) * column  # no sum of whole multiples of these is 0
    drawn = np.empty(len(keys))
    drawn[np.argsort(keys)] = rng.random(len(keys))
    places = np.empty(len(keys), dtype=np.int64)
    # Twice a mid-rank is a whole number, so what is drawn decides among equals only.
    places[np.argsort(2 * ranks[j] + drawn)] = np.arange(len(keys))
    return places


def _same_records(pair: RankedTables) -> bool:
    """Whether both tables have the same records of ranks, in whatever order: then nothing is protected.

    A column without ties shows it by itself; this is for tables of which every column has some.
    """
    original, released = pair.original.ranks, pair.released.ranks
    for first, second in zip(original, released, strict=True):
        if not _has_ties(first) or (np.sort(first) != np.sort(second)).any():
            return False
    sides = [side[:, np.lexsort(side)] for side in (original, released)]
    return np.array_equal(sides[0], sides[1])


# How far values moved ------------------------------------------------------------------------------------


# Ranks of a table as a basis: canonical correlations by QR and SVD ---------------------------------------


def protection(correlations: Floats) -> Floats:
    """1 − ρ² of each canonical correlation, the least first; 0 where rounding is all there is."""
    left = 1.0 - np.minimum(np.linalg.svd(correlations, compute_uv=False), 1.0) ** 2
    return np.where(left < NOTHING, 0.0, left)
