"""Additive noise: values move at random, by amounts that do not depend on the value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np

from sfumato import kernels
from sfumato.core.block_method import Block, BlockMethod
from sfumato.core.params import PerColumn, param
from sfumato.core.randomness import RandomKey
from sfumato.data.schema import Kind
from sfumato.data.table import Table
from sfumato.errors import quoted
from sfumato.kernels.arrays import Floats


def stream(block: Block, place: int, chance: RandomKey) -> np.random.Generator:
    """The stream of one column: its draws are its own, and in a series go with its values."""
    own, name = block.values[:, [place]], block.names[place]
    return chance.with_values([name], lambda: kernels.siphash.value_words(own)).rng(name)


def normals(block: Block, chance: RandomKey) -> Floats:
    """Standard normal draws for a block, one stream per column."""
    draws = [stream(block, place, chance).standard_normal(len(block)) for place in range(len(block.names))]
    return np.stack(draws, axis=1) if draws else np.empty((len(block), 0))


def deviations(covariance: Floats) -> Floats:
    """Standard deviations, with 1 where nothing varies, so that one can divide by them."""
    variances = np.diagonal(covariance)
    return np.sqrt(np.where(variances > 0, variances, 1.0))


def mixing(covariance: Floats) -> Floats:
    """Make the matrix that gives independent standard normal draws a covariance.

    The root is taken of the correlations: that of the covariances loses every digit of a share that stands
    beside turnovers a hundred million times as large.
    """
    units = deviations(covariance)
    root: Floats = kernels.moments.symmetric_root(covariance / np.outer(units, units))
    return root * units


def match_covariance(centred: Floats, *, wanted: Floats, got: Floats, units: Floats) -> Floats:
    r"""Give centred records of the covariance ``got`` the covariance ``wanted``.

    By :math:`\Sigma_{got}^{-1/2}\,\Sigma_{wanted}^{1/2}`, with the columns first divided by ``units`` for the
    same reason as in `mixing`.
    """
    ours = deviations(wanted)
    turn = kernels.moments.inverse_root(got / np.outer(units, units))
    stretch = kernels.moments.symmetric_root(wanted / np.outer(ours, ours))
    result: Floats = (centred / units) @ turn @ stretch * ours
    return result


def moments_of(values: Floats, summaries: Sequence[Any]) -> Any:
    """Find the means in the first of two rounds, the moments around them in the second."""
    if len(summaries) % 2 == 0:
        return kernels.moments.means_of(values)
    return kernels.moments.PairwiseMoments.of(values, summaries[-1].mean)


def why_missing(table: Table, method: str) -> str | None:
    """Why covariances cannot be restored in this table; None when every record is complete."""
    lacking = quoted(name for name in table.chosen if table.missing(name).any())
    if lacking:
        return f"{method} needs complete columns to restore covariances, got: missing values in {lacking}"
    return None


class MomentNoise(BlockMethod):
    """Draws for each record separately, by the moments of the whole table."""

    kinds = frozenset({Kind.CONTINUOUS})
    rounds = 2
    frozen_rounds = 2

    def by_person(self) -> bool:
        """Each record has draws of its own."""
        return True

    def summarise(self, block: Block, summaries: Sequence[Any], chance: RandomKey) -> Any:  # noqa: ARG002
        """Find the means, then the moments around them."""
        return moments_of(block.values, summaries)


class UncorrelatedNoise(MomentNoise):
    r"""Add independent normal noise to each column.

    .. math::

        y_{ij} = x_{ij} + \varepsilon_{ij}, \qquad
        \varepsilon_{ij} \sim N\left(0, \left(\frac{\sigma}{100}\, f_j\, s_j\right)^2\right)

    where :math:`s_j` is the standard deviation of column :math:`j` and :math:`f_j` its ``multiple``, 1 by
    default. All draws are independent. Means and covariances between columns are those of the original in
    expectation; a variance grows by the factor :math:`1 + (\sigma f_j / 100)^2`, so correlations shrink.

    See Also
    --------
    CorrelatedNoise : noise with the correlations of the data.
    KimNoise : the same, with variances restored.
    UniformNoise : noise in proportion to the value.
    OutlierNoise : noise on outliers only.

    Notes
    -----
    **When to use.** The baseline for other methods. A single column, or columns whose correlations are not
    analysed.

    **Guarantees.** Unbiased means and covariances. The noise of a column does not depend on which other
    columns are protected.

    **Risk to know.** Each release has new noise: an intruder with several releases of the same data averages
    the noise away. Release once, or as a series (``[series]`` in a plan), in which people keep most of their
    noise. Independent errors cancel over columns: an intruder who knows many columns of a person finds the
    record even with much noise. An outlier stays an outlier. Values may leave their range unless the schema
    declares it. With ``keep_zeros`` it is known who has nothing. A column or stratum in which nothing varies,
    or with a single record, gets no noise.

    **Ties, missing, weights.** Ties are broken apart. Missing values stay missing. Weights are not used:
    :math:`s_j` counts each record once.

    **Cost.** :math:`O(n)`, three passes.

    Examples
    --------
    >>> frame = pl.DataFrame({"income": [10.0, 20.0, 30.0, 40.0]})
    >>> table = Table(frame, Schema((Column("income", Kind.CONTINUOUS),)))
    >>> release = UncorrelatedNoise(deviation=1).protect(table, Run(seed=1))
    >>> bool((release.table.frame["income"] - frame["income"]).abs().max() < 1)
    True
    """

    name = "uncorrelated-noise"
    vetted = "brute-forced: unit/methods/test_noise.py::test_uncorrelated_noise_is_the_formula"
    synonyms = (
        "addNoise", "additive noise", "noise addition", "noise masking", "uncorrelated noise addition",
        "additive0", "noise that keeps zeros",
    )  # fmt: skip
    family = "noise"
    title = "Uncorrelated noise"
    analyst_note = (
        "Noise was added to each column: means and covariances hold in expectation; variances are too large, "
        "which pulls correlations and slopes towards zero."
    )
    references = ("spruill1983", "brand2002", "hundepool2012", "herranz2015")

    deviation: float = param(
        10.0,
        "Standard deviation of the noise, in per cent of that of the column.",
        gt=0,
        le=1e6,
        unit="%",
        symbol="σ",
        log=True,
        tune=(0.1, 1000),
        drive=True,
        hint="it is a percentage of each column's standard deviation; 10 to 30 is usual",
    )
    multiple: PerColumn[float] = param(
        1.0,
        "Factor by which the deviation of a column is multiplied.",
        gt=0,
        le=1000,
        symbol="f",
        hint="2 gives a column twice the noise of the others",
        advanced=True,
    )
    keep_zeros: bool = param(
        False,
        "Whether a value of 0 stays 0: who has nothing of something, still has nothing.",
        label="Zeros stay",
        advanced=True,
    )

    def protect_block(self, block: Block, summaries: Sequence[Any], chance: RandomKey) -> Floats:
        """Add the noise of one block."""
        spread = np.sqrt(summaries[1].variances())
        multiples = np.array([self.multiple[name] for name in block.names])
        noisy: Floats = np.empty(block.values.shape, order="F")  # column by column, as it is drawn
        for place, scale in enumerate(self.deviation / 100 * multiples * spread):
            draws = stream(block, place, chance).standard_normal(len(block))
            draws *= scale
            if self.keep_zeros:
                draws[block.values[:, place] == 0] = 0.0
            np.add(block.values[:, place], draws, out=noisy[:, place])
        return noisy


class CorrelatedNoise(MomentNoise):
    r"""Add normal noise with the same correlations as the data.

    .. math::

        Y = X + N(0, \gamma\,\Sigma)

    where :math:`\Sigma` is the covariance matrix of the protected columns. The covariance of the release is
    :math:`(1+\gamma)\,\Sigma` in expectation: means and correlations are kept, variances grow by a known
    factor.

    See Also
    --------
    UncorrelatedNoise : independent noise, column by column.
    KimNoise : restores the variances.
    HohneNoise : noise in proportion to the value, with means and variances restored.
    RankSwapping : exchanges values instead of moving them.

    Notes
    -----
    **When to use.** Several continuous columns whose correlations matter more than their exact marginal
    shapes.

    **Guarantees.** Unbiased means; covariances :math:`(1+\gamma)\Sigma` in expectation.

    **Risk to know.** Each release has new noise: an intruder with several releases of the same data averages
    the noise away. Release once, or as a series (``[series]`` in a plan), in which people keep most of their
    noise. Skewed columns: an outlier stays an outlier, and small values drown while large ones barely move.
    Values may leave their range (a negative income). A column or stratum in which nothing varies, or with a
    single record, gets no noise.

    **Ties, missing, weights.** Ties are broken apart. Missing values stay missing; covariances are taken
    over the records that have both values. Weights are not used.

    **Cost.** :math:`O(n)`, three passes.

    Examples
    --------
    >>> frame = pl.DataFrame({"income": [10.0, 20.0, 30.0, 40.0]})
    >>> table = Table(frame, Schema((Column("income", Kind.CONTINUOUS),)))
    >>> release = CorrelatedNoise(ratio=0.1).protect(table, Run(seed=1))
    >>> bool((release.table.frame["income"] != frame["income"]).all())
    True
    """

    name = "correlated-noise"
    vetted = "brute-forced: unit/methods/test_noise.py::test_correlated_noise_is_the_formula"
    synonyms: ClassVar[tuple[str, ...]] = (
        "addNoise", "additive noise", "noise addition", "correlated noise addition",
    )  # fmt: skip
    family = "noise"
    title = "Correlated noise"
    analyst_note = (
        "Noise was added: means and correlations hold in expectation; variances and covariances are too "
        "large by one factor, which the data owner may disclose."
    )
    references = ("kim1986", "hundepool2012", "domingoferrer2018")

    ratio: float = param(
        0.1,
        "Variance of the noise as a multiple of the variance of the data.",
        gt=0,
        le=1e6,
        symbol="γ",
        log=True,
        tune=(1e-4, 1e3),
        drive=True,
        hint="0.01 is light; at 1 there is as much noise as variance",
    )

    def protect_block(self, block: Block, summaries: Sequence[Any], chance: RandomKey) -> Floats:
        """Add the noise of one block."""
        noisy: Floats = block.values + normals(block, chance) @ mixing(self.ratio * summaries[1].covariance())
        return noisy


class KimNoise(CorrelatedNoise):
    r"""Add correlated noise, then shrink the values so that the covariances match the original.

    .. math::

        y_i = \bar x + c\,(x_i - \bar x + \varepsilon_i), \qquad
        \varepsilon_i \sim N(0, \gamma\,\Sigma), \quad c = \frac{1}{\sqrt{1+\gamma}}

    where :math:`\Sigma` is the covariance matrix of the protected columns and :math:`\bar x` their means.
    The covariance of the release is :math:`c^2 (1+\gamma)\,\Sigma = \Sigma` in expectation. With
    ``restore="exactly"`` the means and covariances that the noisy records :math:`x + \varepsilon` happen to
    have are taken in place of the expected ones, and the release has those of the original itself:

    .. math::

        y_i = \bar x + (x_i + \varepsilon_i - \overline{x + \varepsilon})\,
              \Sigma_{x+\varepsilon}^{-1/2}\,\Sigma^{1/2}

    See Also
    --------
    CorrelatedNoise : leaves the variances larger.
    RotationNoise : keeps covariances exactly with other records' values in place of normal noise.
    SullivanNoise : keeps the distribution of each column instead.

    Notes
    -----
    **When to use.** The release is used for regressions and correlations over all records, computed as from
    the original, without a correction for noise.

    **Guarantees.** Means and covariances in expectation; with ``restore="exactly"`` up to rounding. Collinear
    columns stay collinear.

    **Risk to know.** Each release has new noise: an intruder with several releases of the same data averages
    the noise away. Release once, or as a series (``[series]`` in a plan), in which people keep most of their
    noise. The mean of a subgroup moves towards the mean of all, by the factor :math:`c`: to study strata,
    protect within them. Distributions of skewed columns become more normal, and values may leave their range;
    where the schema declares a range or whole numbers, clipping and rounding keep the moments only
    approximately. A column or stratum in which nothing varies, or with a single record, gets no noise; and
    two records whose moments are restored exactly show their own values, swapped or not.

    **Ties, missing, weights.** Ties are broken apart. Missing values stay missing; covariances are taken over
    the records that have both values, and restoring exactly requires complete records. Constants stay.
    Weights are not used.

    **Cost.** :math:`O(n)`, three passes.

    Examples
    --------
    >>> frame = pl.DataFrame({"income": [10.0, 20.0, 30.0, 40.0]})
    >>> table = Table(frame, Schema((Column("income", Kind.CONTINUOUS),)))
    >>> income = KimNoise(ratio=0.5, restore="exactly").protect(table, Run(seed=1)).table.frame["income"]
    >>> round(income.mean(), 9), round(income.var() / frame["income"].var(), 9)
    (25.0, 1.0)
    """

    name = "kim-noise"
    vetted = "brute-forced: unit/methods/test_noise.py::test_kim_is_the_formula"
    synonyms = (
        "addNoise", "additive noise", "noise and linear transformation",
        "noise addition and linear transformation", "restr", "restricted noise",
    )  # fmt: skip
    family = "noise"
    title = "Noise and linear transformation (Kim)"
    analyst_note = (
        "Means and covariances of all records hold, at least in expectation; distributions, and means and "
        "variances of subgroups, do not."
    )
    analyst_extras = (("restore=exactly", "The means and covariances hold exactly, up to rounding."),)
    references = ("kim1986", "brand2002", "hundepool2012")

    restore: Literal["expectation", "exactly"] = param(
        "expectation",
        "How means and covariances are kept.",
        choices={
            "expectation": "In expectation.",
            "exactly": "Up to rounding, for which no value may be missing; not in a series of releases.",
        },
        label="Keep moments",
    )

    def by_person(self) -> bool:
        """Each record has draws of its own; moments that are restored exactly are those of all."""
        return self.restore == "expectation"

    def refuses(self, table: Table) -> str | None:
        """Refuse to mix columns across records that lack values."""
        return super().refuses(table) or (
            why_missing(table, self.name) if self.restore == "exactly" else None
        )

    def summarise(self, block: Block, summaries: Sequence[Any], chance: RandomKey) -> Any:
        """Find the means, then the moments around them: of the draws as well where they are to be undone."""
        if not summaries or self.restore == "expectation":
            return moments_of(block.values, summaries)
        mean = summaries[0].mean
        # Noise is linear in the draws, so the moments of the two side by side give those of their sum.
        both = np.concatenate([block.values, normals(block, chance)], axis=1)
        return kernels.moments.PairwiseMoments.of(both, np.concatenate([mean, np.zeros_like(mean)]))

    def protect_block(self, block: Block, summaries: Sequence[Any], chance: RandomKey) -> Floats:
        """Add the noise of one block and bring the moments back."""
        moments, d = summaries[1], len(block.names)
        means, covariance = moments.means(), moments.covariance()
        centre, wanted = means[:d], covariance[:d, :d]
        mix = mixing(self.ratio * wanted)
        if self.restore == "expectation":
            shrink = 1.0 / np.sqrt(1.0 + self.ratio)
            protected: Floats = centre + shrink * (block.values - centre + normals(block, chance) @ mix)
            return protected
        noisy = block.values - centre + (normals(block, chance) - means[d:]) @ mix
        cross = covariance[:d, d:] @ mix
        got = wanted + cross + cross.T + mix.T @ covariance[d:, d:] @ mix
        # The original's units for both, so that where it is collinear the noisy records are in the same way.
        exact: Floats = centre + match_covariance(noisy, wanted=wanted, got=got, units=deviations(wanted))
        return exact
