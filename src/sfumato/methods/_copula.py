"""A normal copula: columns as ranks, and what the given ones tell of those that are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Self

import numpy as np

from sfumato import kernels
from sfumato.core.run import Run
from sfumato.data.digest import BLOCK_RECORDS
from sfumato.data.schema import Kind
from sfumato.data.table import Table
from sfumato.kernels.arrays import Floats, Ints
from sfumato.methods._conditional_method import indicators

if TYPE_CHECKING:
    from sfumato.kernels.moments import PairwiseMoments

#: Directions of the given columns with less than this share of the variance are one column said twice.
_SAME_DIRECTION = 1e-6


@dataclass(frozen=True)
class NormalScores:
    """Columns as the model sees them: the protected ones, the given ones with an order, then indicators.

    ``shares`` are float64[n, d], the share of the values below (ties: half of theirs), NaN where missing;
    ``categories`` the codes of each given nominal column, with how many codes it has.
    """

    shares: Floats
    categories: tuple[tuple[Ints, int], ...]
    n_protected: int

    @classmethod
    def of(cls, table: Table, given: Sequence[str], run: Run) -> Self:
        """Rank the columns."""
        nominal = [name for name in given if table.schema[name].kind is Kind.NOMINAL]
        ordered = [*table.chosen, *(name for name in given if name not in nominal)]
        shares = np.empty((len(table), len(ordered)))
        for position, name in enumerate(run.track("ranking the columns", ordered, total=len(ordered))):
            ranks = kernels.ranks.midranks(table.numbers(name))
            shares[:, position] = (ranks - 0.5) / max(1, np.count_nonzero(~np.isnan(ranks)))
        coded = [table.codes(name) for name in nominal]
        categories = tuple((codes.codes, len(codes.categories)) for codes in coded)
        return cls(shares, categories, len(table.chosen))

    def blocks(self) -> list[slice]:
        """Cut the records into blocks, for the scores of all of them at once may be far larger than these."""
        return [slice(start, start + BLOCK_RECORDS) for start in range(0, len(self.shares), BLOCK_RECORDS)]

    def features(self, rows: slice) -> Floats:
        """Normal scores and indicators of a block, NaN where missing."""
        from scipy.special import ndtri

        dummies = [indicators(codes[rows], count) for codes, count in self.categories]
        features: Floats = np.hstack([ndtri(self.shares[rows]), *dummies])
        return features

    def moments(self, rows: slice) -> tuple[PairwiseMoments, PairwiseMoments]:
        """Moments of the ranks and of the features of a block."""
        features, middle = self.features(rows), np.full(self.shares.shape[1], 0.5)
        of = kernels.moments.PairwiseMoments.of
        return of(self.shares[rows], middle), of(features, np.zeros(features.shape[1]))


def _merge_moments(
    first: tuple[PairwiseMoments, PairwiseMoments], second: tuple[PairwiseMoments, PairwiseMoments]
) -> tuple[PairwiseMoments, PairwiseMoments]:
    return first[0].merge(second[0]), first[1].merge(second[1])


@dataclass(frozen=True)
class Copula:
    """A normal copula: what the scores of the given columns tell of those of the protected ones."""

    centre: Floats
    scale: Floats
    slopes: Floats
    root: Floats

    @classmethod
    def fit(cls, scores: NormalScores) -> Self:
        """Fit the model to the ranks."""
        n_ordered, n_protected = scores.shares.shape[1], scores.n_protected
        ranked, joint = reduce(_merge_moments, [scores.moments(rows) for rows in scores.blocks()])
        matrix = _correlation(joint.covariance())
        by_ranks = 2 * np.sin(np.pi / 6 * _correlation(ranked.covariance()))
        matrix[:n_ordered, :n_ordered] = by_ranks
        matrix = _nearest_possible(matrix)
        across = matrix[:n_protected, n_protected:]
        slopes = across @ np.linalg.pinv(
            matrix[n_protected:, n_protected:], rcond=_SAME_DIRECTION, hermitian=True
        )
        unexplained = matrix[:n_protected, :n_protected] - slopes @ across.T
        root = kernels.moments.symmetric_root((unexplained + unexplained.T) / 2)
        centre = np.nan_to_num(joint.means())
        return cls(centre, np.sqrt(joint.variances()), slopes, root)

    def draw(self, scores: NormalScores, names: Sequence[str], independence: float, run: Run) -> Floats:
        """Draw the scores of the protected columns, each from the stream of its own."""
        draws = np.stack([run.rng(name).standard_normal(len(scores.shares)) for name in names], axis=1)
        blocks = scores.blocks()
        for rows in run.track("drawing from the model", blocks, total=len(blocks)):
            draws[rows] = self._draw_scores(scores.features(rows), draws[rows], independence)
        return draws

    def _draw_scores(self, features: Floats, normals: Floats, independence: float) -> Floats:
        """The scores of some records, whose standard normals are given."""
        n_protected = len(self.root)
        spread = np.where(self.scale > 0, self.scale, 1.0)
        standard = np.nan_to_num((features - self.centre) / spread)
        expected = standard[:, n_protected:] @ self.slopes.T
        own = standard[:, :n_protected] - expected
        drawn: Floats = expected + np.sqrt(1 - independence**2) * own + independence * (normals @ self.root.T)
        return drawn


def _correlation(covariance: Floats) -> Floats:
    """Make correlations of covariances; a column that does not vary has none."""
    deviations = np.sqrt(np.diagonal(covariance))
    product = np.outer(deviations, deviations)
    correlation: Floats = np.divide(covariance, product, out=np.zeros_like(covariance), where=product > 0)
    np.clip(correlation, -1.0, 1.0, out=correlation)
    np.fill_diagonal(correlation, 1.0)
    return correlation


def _nearest_possible(matrix: Floats) -> Floats:
    """Set what is negative among the eigenvalues to 0: correlations taken pair by pair may contradict."""
    half: Floats = kernels.moments.symmetric_root(matrix)
    whole = half @ half
    deviations = np.sqrt(np.diagonal(whole))
    nearest: Floats = whole / np.outer(deviations, deviations)
    return nearest
