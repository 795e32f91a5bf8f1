"""Multiplicative noise: values are multiplied by factors near one, so that large ones move more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from sfumato import kernels
from sfumato.core.block_method import Block, BlockMethod
from sfumato.core.method import Gives
from sfumato.core.params import param
from sfumato.core.randomness import RandomKey
from sfumato.data.relations.invariants import KeptKind
from sfumato.data.schema import Kind
from sfumato.data.table import Table
from sfumato.kernels.arrays import Floats
from sfumato.methods.noise import deviations, match_covariance, moments_of, normals, stream, why_missing

#: What is said of every largest distance of a factor from one.
SPREAD: dict[str, Any] = {
    "gt": 0, "lt": 1, "symbol": "β", "log": True, "tune": (1e-3, 0.999), "drive": True,
    "hint": "0.1 changes a value by at most a tenth",
}  # fmt: skip


class FactorNoise(BlockMethod):
    """Multiplies by factors of mean one. Write ``draw``; there is one pass and nothing to summarise."""

    analyst_note = (
        "Each value was multiplied by a random factor around one: means hold in expectation, zeros stay, and "
        "variances are too large, most where values are large."
    )
    analyst_extras = (
        ("per=cell", "Correlations are weaker."),
        ("per=record", "Ratios of columns hold; covariances do not."),
    )
    kinds = frozenset({Kind.CONTINUOUS})
    gives = Gives(kept=("ratios",))
    rounds = 0

    per: Literal["cell", "record"] = param(
        "cell",
        "What gets a factor of its own.",
        choices={
            "cell": "Each cell.",
            "record": "Each record, for all its protected cells: their ratios stay.",
        },
        label="One factor for",
    )

    def by_person(self) -> bool:
        """Each record has draws of its own."""
        return True

    def kept_relations(self) -> tuple[KeptKind, ...]:
        """Ratios, where one factor serves a record."""
        return self.gives.kept if self.per == "record" else ()

    def draw(self, rng: np.random.Generator, count: int) -> Floats:
        """Draw factors."""
        raise NotImplementedError  # abstract: every method in the registry has its own

    def protect_block(self, block: Block, summaries: Sequence[Any], chance: RandomKey) -> Floats:  # noqa: ARG002
        """Multiply the values of one block."""
        if self.per == "record":
            here = chance.with_values(block.names, lambda: kernels.siphash.value_words(block.values))
            return block.values * self.draw(here.rng("record", "factor"), len(block))[:, None]
        protected = np.empty_like(block.values)
        for place in range(len(block.names)):
            factors = self.draw(stream(block, place, chance), len(block))
            protected[:, place] = block.values[:, place] * factors
        return protected


class UniformNoise(FactorNoise):
    r"""Multiply each value by a uniform factor around one.

    .. math::

        y_{ij} = x_{ij}\,e_{ij}, \qquad e_{ij} \sim U(1 - \beta, 1 + \beta)

    where the factors are independent, or with ``per="record"`` one factor :math:`e_i` serves all protected
    cells of a record. In expectation a mean is kept and

    .. math::

        \operatorname{Var}(Y) = \operatorname{Var}(X) + \frac{\beta^2}{3}\,\overline{x^2},

    with covariances kept for ``per="cell"``, and increased by :math:`\beta^2\,\overline{x z}/3` for
    ``per="record"``.

    See Also
    --------
    LognormalNoise : factors without a bound.
    HohneNoise : restores means and variances.
    UncorrelatedNoise : noise that does not depend on the value.

    Notes
    -----
    **When to use.** Amounts for which a bounded relative error is enough: no value is off by more than
    :math:`100\,\beta` per cent. One factor per record keeps the shares of a total, and a total stays the sum
    of its parts.

    **Guarantees.** :math:`|y - x| \le \beta\,|x|`. Signs and zeros are kept. Unbiased means.

    **Risk to know.** Each release has new noise: an intruder with several releases of the same data averages
    the noise away. Release once, or as a series (``[series]`` in a plan), in which people keep most of their
    noise. The bound reveals to an intruder that :math:`x` lies between :math:`y/(1+\beta)` and
    :math:`y/(1-\beta)`. Zeros are released unchanged. On skewed columns ranks barely change: measure the
    risk. With one factor per record every ratio of two protected columns is released exactly.

    **Ties, missing, weights.** Ties are broken apart except zeros. Missing values stay missing. Weights are
    not used.

    **Cost.** :math:`O(n)`, one pass.

    Examples
    --------
    >>> frame = pl.DataFrame({"income": [10.0, 0.0, -30.0, 40.0]})
    >>> table = Table(frame, Schema((Column("income", Kind.CONTINUOUS),)))
    >>> noisy = UniformNoise(spread=0.2).protect(table, Run(seed=1)).table.frame["income"]
    >>> [int(np.sign(value)) for value in noisy], bool(8 <= noisy[0] <= 12)
    ([1, 0, -1, 1], True)
    """

    name = "uniform-noise"
    vetted = "brute-forced: unit/methods/test_noise_multiplicative.py::test_uniform_noise_is_the_formula"
    synonyms = ("multiplicative noise",)
    family = "noise"
    title = "Multiplicative noise (uniform)"
    references = ("nayak2011", "hundepool2012", "domingoferrer2020")

    spread: float = param(0.1, "Largest distance of a factor from one.", **SPREAD)

    def draw(self, rng: np.random.Generator, count: int) -> Floats:
        """Draw uniform factors."""
        return rng.uniform(1.0 - self.spread, 1.0 + self.spread, count)


class LognormalNoise(FactorNoise):
    r"""Multiply each value by a lognormal factor of mean one.

    .. math::

        y_{ij} = x_{ij}\,e_{ij}, \qquad \ln e_{ij} \sim N\left(-\tfrac{1}{2} s^2, s^2\right)

    where the factors are independent, or with ``per="record"`` one factor :math:`e_i` serves all protected
    cells of a record. Of positive values this is additive noise on their logarithms. In expectation a mean is
    kept and

    .. math::

        \operatorname{Var}(Y) = \operatorname{Var}(X) + \left(e^{s^2} - 1\right)\,\overline{x^2}.

    See Also
    --------
    UniformNoise : factors with a bound.
    HohneNoise : restores means and variances.
    UncorrelatedNoise : noise that does not depend on the value.

    Notes
    -----
    **When to use.** Positive skewed amounts (incomes, turnovers) that are studied on a log scale, where the
    noise is normal and of one size. One factor per record keeps the shares of a total, and a total stays the
    sum of its parts.

    **Guarantees.** Signs and zeros are kept. Unbiased means.

    **Risk to know.** Each release has new noise: an intruder with several releases of the same data averages
    the noise away. Release once, or as a series (``[series]`` in a plan), in which people keep most of their
    noise. For large :math:`s` the mean rests on few huge factors: at :math:`s = 2` half of all factors are
    below 0.14, and sums over few records are far off. Zeros are released unchanged. With one factor per
    record every ratio of two protected columns is released exactly.

    **Ties, missing, weights.** Ties are broken apart except zeros. Missing values stay missing. Weights are
    not used.

    **Cost.** :math:`O(n)`, one pass.

    Examples
    --------
    >>> frame = pl.DataFrame({"pay": [10.0, 20.0], "rent": [5.0, 12.0]})
    >>> table = Table(frame, Schema((Column("pay", Kind.CONTINUOUS), Column("rent", Kind.CONTINUOUS))))
    >>> noisy = LognormalNoise(deviation=0.3, per="record").protect(table, Run(seed=1)).table.frame
    >>> [round(share, 9) for share in noisy["rent"] / noisy["pay"]]
    [0.5, 0.6]
    """

    name = "lognormal-noise"
    vetted = "brute-forced: unit/methods/test_noise_multiplicative.py::test_lognormal_noise_is_the_formula"
    synonyms = ("multiplicative noise",)
    family = "noise"
    title = "Multiplicative noise (lognormal)"
    references = ("muralidhar1995", "nayak2011", "hundepool2012")

    deviation: float = param(
        0.1,
        "Standard deviation of the logarithm of the factor.",
        gt=0,
        le=10,
        symbol="s",
        log=True,
        tune=(1e-3, 5),
        drive=True,
        hint="0.1 changes a value by about a tenth",
    )

    def draw(self, rng: np.random.Generator, count: int) -> Floats:
        """Draw lognormal factors."""
        return rng.lognormal(-(self.deviation**2) / 2, self.deviation, count)


class HohneNoise(BlockMethod):
    r"""Multiply values by random factors around one, then restore means and variances.

    .. math::

        x^a_{ij} = x_{ij}\,(1 + \sigma_i\,|\varepsilon_{ij}|), \qquad
        \varepsilon_{ij} \sim N(0, s^2), \quad \sigma_i = \pm 1

    where the sign :math:`\sigma_i` is drawn once for a record, so that a record's values rise or fall
    together. Then, for ``restore="variances"``, each column is shifted and scaled

    .. math::

        y_{ij} = \frac{s_{X_j}}{s_{X^a_j}} \left(x^a_{ij} - \bar x^a_j\right) + \bar x_j

    and for ``restore="covariances"`` the whole matrix is, by
    :math:`\Sigma_X^{1/2}\,\Sigma_{X^a}^{-1/2}`. Large values move more than small ones, which is what
    business data need.

    See Also
    --------
    UniformNoise : factors alone, with nothing restored.
    CorrelatedNoise : additive noise.

    Notes
    -----
    **When to use.** Skewed amounts (incomes, turnovers), where the largest records need the most noise.

    **Guarantees.** Means and variances (or the whole covariance matrix) of the protected columns are
    those of the original up to rounding, whatever :math:`s`; the covariance matrix if there are more records
    than columns.

    **Risk to know.** Each release has new noise: an intruder with several releases of the same data averages
    the noise away. Release once, or as a series (``[series]`` in a plan), in which people keep most of their
    noise. All zeros of a column become the same value. As :math:`s` grows, restoring the variance shrinks the
    differences among ordinary records. A stratum of one record keeps its values, and a stratum of two shows
    the same two values, swapped or not: no others have their mean and variance.

    **Ties, missing, weights.** Ties are broken apart except zeros. Missing values stay missing; moments are
    over the records that have the values, and restoring covariances requires complete records. Constants
    stay. Weights are not used.

    **Cost.** :math:`O(n)`, five passes.

    Examples
    --------
    >>> frame = pl.DataFrame({"income": [10.0, 20.0, 30.0, 40.0]})
    >>> table = Table(frame, Schema((Column("income", Kind.CONTINUOUS),)))
    >>> release = HohneNoise(deviation=0.5).protect(table, Run(seed=1))
    >>> round(release.table.frame["income"].mean(), 9)
    25.0
    """

    name = "hohne-noise"
    vetted = (
        "brute-forced: unit/methods/test_noise_multiplicative.py::"
        "test_hohne_is_the_formula_with_one_sign_per_record"
    )
    synonyms = ("multiplicative noise",)
    family = "noise"
    title = "Multiplicative noise (Höhne)"
    analyst_note = (
        "Means and variances of all records hold; distributions and figures of subgroups change, most where "
        "values are large."
    )
    analyst_extras = (
        ("restore=variances", "Correlations change."),
        ("restore=covariances", "Correlations hold."),
    )
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
        "variances",
        "Which second moments of the original the release keeps.",
        choices={
            "variances": "The variance of each column.",
            "covariances": "All variances and covariances, for which no value may be missing.",
        },
        label="Keep",
    )

    def by_person(self) -> bool:
        """Each record has draws of its own; what is restored after them tells nothing more."""
        return True

    def refuses(self, table: Table) -> str | None:
        """Refuse to mix columns across records that lack values."""
        return super().refuses(table) or (
            why_missing(table, self.name) if self.restore == "covariances" else None
        )

    def _noisy(self, block: Block, chance: RandomKey) -> Floats:
        signs = 2.0 * chance.rng("record", "sign").integers(0, 2, len(block)) - 1.0
        return block.values * (1.0 + signs[:, None] * np.abs(self.deviation * normals(block, chance)))

    def summarise(self, block: Block, summaries: Sequence[Any], chance: RandomKey) -> Any:
        """Find the moments of the data in rounds 0 and 1, those of the noisy data in rounds 2 and 3."""
        values = block.values if len(summaries) <= 1 else self._noisy(block, chance)
        return moments_of(values, summaries)

    def protect_block(self, block: Block, summaries: Sequence[Any], chance: RandomKey) -> Floats:
        """Multiply, then restore the moments."""
        _, wanted, _, got = summaries
        centred = self._noisy(block, chance) - got.means()
        restored: Floats = self._restore_moments(centred, wanted, got) + wanted.means()
        return restored

    def _restore_moments(self, centred: Floats, wanted: Any, got: Any) -> Floats:
        if self.restore == "variances":
            target, have = wanted.variances(), got.variances()
            factor: Floats = np.sqrt(np.divide(target, have, out=np.zeros_like(target), where=have > 0))
            return centred * factor
        have = got.covariance()
        return match_covariance(centred, wanted=wanted.covariance(), got=have, units=deviations(have))
