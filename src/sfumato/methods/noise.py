"""Noise: values move at random, in a way that keeps what statistics need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from sfumato import kernels
from sfumato.core.method import Block, BlockMethod
from sfumato.core.params import listed, param
from sfumato.core.run import Run
from sfumato.data.schema import Kind
from sfumato.data.table import Floats, Table


def normals(block: Block, run: Run) -> Floats:
    """Standard normal draws for a block, one stream per column: a column's draws are its own."""
    draws = [run.rng(name).standard_normal(len(block)) for name in block.names]
    return np.stack(draws, axis=1) if draws else np.empty((len(block), 0))


class CorrelatedNoise(BlockMethod):
    r"""Add normal noise that has the correlations of the data.

    .. math::

        Y = X + N(0, \gamma\,\Sigma)

    where :math:`\Sigma` is the covariance matrix of the protected columns. The covariance of the release
    is :math:`(1+\gamma)\,\Sigma` in expectation: means and correlations survive, variances grow by a known
    factor.

    See Also
    --------
    HohneNoise : noise in proportion to the value, with means and variances restored.
    RankSwapping : exchanges values instead of moving them.

    Notes
    -----
    **When to use.** Several continuous columns whose correlations matter more than their exact marginal
    shapes.

    **Guarantees.** Unbiased means; covariances :math:`(1+\gamma)\Sigma` in expectation.

    **Risk to know.** Skewed columns: an outlier stays an outlier, and small values drown while large ones
    barely move. Values may leave their range (a negative income). An intruder who subtracts two releases
    of the same data with different noise averages it away.

    **Ties, missing, weights.** Ties are broken apart. Missing values stay missing; covariances are taken
    over the records that have both values. Weights are not used.

    **Cost.** :math:`O(n)`, three passes.

    Examples
    --------
    >>> import polars as pl
    >>> from sfumato.data.schema import Column, Schema
    >>> from sfumato.data.table import Table
    >>> frame = pl.DataFrame({"income": [10.0, 20.0, 30.0, 40.0]})
    >>> table = Table(frame, Schema((Column("income", Kind.CONTINUOUS),)))
    >>> release = CorrelatedNoise(ratio=0.1).protect(table, Run(seed=1))
    >>> bool((release.table.frame["income"] != frame["income"]).all())
    True
    """

    name = "correlated-noise"
    title = "Correlated noise"
    kinds = frozenset({Kind.CONTINUOUS})
    references = ("kim1986", "hundepool2012", "domingoferrer2018")
    rounds = 2

    ratio: float = param(
        0.1,
        "Variance of the noise as a multiple of the variance of the data.",
        gt=0,
        le=1e6,
        symbol="γ",
        log=True,
        tune=(1e-4, 1e3),
        drive=True,
        hint="0.01 is light, 1 doubles every variance",
    )

    def summarise(self, block: Block, summaries: Sequence[Any], run: Run) -> Any:  # noqa: ARG002
        """Find the means, then the covariances around them."""
        if not summaries:
            return kernels.moments.means_of(block.values)
        return kernels.moments.Moments.of(block.values, summaries[0].mean)

    def protect_block(self, block: Block, summaries: Sequence[Any], run: Run) -> Floats:
        """Add the noise of one block."""
        root: Floats = kernels.moments.symmetric_root(self.ratio * summaries[1].covariance())
        return block.values + normals(block, run) @ root


class HohneNoise(BlockMethod):
    r"""Multiply by noise around one, then restore means and variances.

    .. math::

        x^a_{ij} = x_{ij}\,(1 + \sigma_i\,|\varepsilon_{ij}|), \qquad
        \varepsilon_{ij} \sim N(0, s^2), \quad \sigma_i = \pm 1

    where the sign :math:`\sigma_i` is drawn once for a record, so that a record's values rise or fall
    together. Then, for ``restore="variances"``, each column is moved and stretched

    .. math::

        y_{ij} = \frac{s_{X_j}}{s_{X^a_j}} \left(x^a_{ij} - \bar x^a_j\right) + \bar x_j

    and for ``restore="covariances"`` the whole matrix is, by
    :math:`\Sigma_X^{1/2}\,\Sigma_{X^a}^{-1/2}`. Large values move more than small ones, which is what
    business data need.

    See Also
    --------
    CorrelatedNoise : additive noise.

    Notes
    -----
    **When to use.** Skewed amounts (incomes, turnovers), where the largest records need the most noise.

    **Guarantees.** Means and variances (or the whole covariance matrix) of the protected columns are
    those of the original up to rounding, whatever :math:`s`.

    **Risk to know.** Zeros stay together: every zero of a column becomes one and the same value. As
    :math:`s` grows, restoring the variance shrinks the differences among ordinary records.

    **Ties, missing, weights.** Ties are broken apart except zeros. Missing values stay missing; moments
    are over the records that have the values, and restoring covariances asks for complete records.
    Constants stay. Weights are not used.

    **Cost.** :math:`O(n)`, five passes.

    Examples
    --------
    >>> import polars as pl
    >>> from sfumato.data.schema import Column, Schema
    >>> from sfumato.data.table import Table
    >>> frame = pl.DataFrame({"income": [10.0, 20.0, 30.0, 40.0]})
    >>> table = Table(frame, Schema((Column("income", Kind.CONTINUOUS),)))
    >>> release = HohneNoise(deviation=0.5).protect(table, Run(seed=1))
    >>> round(release.table.frame["income"].mean(), 9)
    25.0
    """

    name = "hohne-noise"
    title = "Multiplicative noise (Höhne)"
    kinds = frozenset({Kind.CONTINUOUS})
    references = ("hohne2004", "hundepool2012", "domingoferrer2018")
    rounds = 4

    deviation: float = param(
        0.2,
        "Standard deviation of the factor around one.",
        gt=0,
        le=1e3,
        symbol="s",
        log=True,
        tune=(1e-3, 20),
        drive=True,
        hint="0.1 changes a value by about a tenth",
    )
    restore: Literal["variances", "covariances"] = param(
        "variances", "Which second moments of the original the release has."
    )

    def refuses(self, table: Table) -> str | None:
        """Refuse to mix columns across records that lack values."""
        reason = super().refuses(table)
        if reason is None and self.restore == "covariances":
            lacking = listed(name for name in table.chosen if table.missing(name).any())
            if lacking:
                return (
                    f"{self.name} must have complete columns to restore covariances, got: holes in {lacking}"
                )
        return reason

    def _noisy(self, block: Block, run: Run) -> Floats:
        signs = 2.0 * run.rng("record", "sign").integers(0, 2, len(block)) - 1.0
        return block.values * (1.0 + signs[:, None] * np.abs(self.deviation * normals(block, run)))

    def summarise(self, block: Block, summaries: Sequence[Any], run: Run) -> Any:
        """Find the moments of the data in rounds 0 and 1, those of the noisy data in rounds 2 and 3."""
        turn = len(summaries)
        values = block.values if turn <= 1 else self._noisy(block, run)
        if turn % 2 == 0:
            return kernels.moments.means_of(values)
        return kernels.moments.Moments.of(values, summaries[-1].mean)

    def protect_block(self, block: Block, summaries: Sequence[Any], run: Run) -> Floats:
        """Multiply, then restore the moments."""
        _, wanted, _, got = summaries
        centred = self._noisy(block, run) - got.means()
        restored: Floats = self._restored(centred, wanted, got) + wanted.means()
        return restored

    def _restored(self, centred: Floats, wanted: Any, got: Any) -> Floats:
        if self.restore == "variances":
            target, have = wanted.variances(), got.variances()
            factor: Floats = np.sqrt(np.divide(target, have, out=np.zeros_like(target), where=have > 0))
            return centred * factor
        roots = kernels.moments
        mixed: Floats = (
            centred @ roots.inverse_root(got.covariance()) @ roots.symmetric_root(wanted.covariance())
        )
        return mixed
