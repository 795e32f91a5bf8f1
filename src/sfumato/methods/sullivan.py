"""Noise on normal scores: the distribution of each column is kept, whatever its shape."""

from __future__ import annotations

from typing import Literal

import numpy as np
import polars as pl

from sfumato import kernels
from sfumato.core.method import Method, set_protected_values
from sfumato.core.params import param
from sfumato.core.randomness import RandomKey
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.core.state import State
from sfumato.data.schema import Kind
from sfumato.data.table import Table
from sfumato.kernels.arrays import Floats, Values
from sfumato.methods.noise import mixing


class SullivanNoise(Method):
    r"""Add correlated noise to normal scores and transform back; each column keeps its distribution.

    Each column is transformed to normal scores, gets noise there, and is transformed back:

    .. math::

        z_{ij} = \Phi^{-1}\left(\frac{r_{ij} - \tfrac12}{n_j}\right), \qquad
        w_i = z_i + N(0, \gamma\,R), \qquad
        y_{ij} = Q_j\left(u_{ij}\right)

    where :math:`r_{ij}` is the mid-rank among the :math:`n_j` values present, :math:`\Phi` the normal
    distribution, :math:`R` the covariance matrix of the scores, and :math:`Q_j` the quantile function of the
    original column. The :math:`u_{ij}` follow the order of the :math:`w_{ij}`, which replaces
    :math:`\Phi(w_{ij}/\sqrt{1+\gamma})`, its limit, because it is also right with ties. For the :math:`k`-th
    of them

    .. math::

        u = \frac{k - \tfrac12}{n_j} \quad (\text{same values}), \qquad
        u \sim U\left(\frac{k-1}{n_j}, \frac{k}{n_j}\right) \quad (\text{new values}).

    With ``values="same"`` a column shows its own values at other records, with ``values="new"`` new values
    between neighbouring ones.

    See Also
    --------
    KimNoise : keeps means and covariances instead of distributions.
    RankSwapping : keeps the values as well, but treats columns separately.

    Notes
    -----
    **When to use.** Skewed, bounded or discrete columns, whose shape additive noise would
    destroy: there are no negative incomes and no ages of 140. The scores keep their correlations in
    expectation, and with them the release nearly keeps its rank correlations.

    **Guarantees.** With ``values="same"`` each column has exactly its original values. With ``values="new"``
    its distribution function moves by no more than :math:`1/n_j` anywhere, and no value leaves the range.

    **Risk to know.** Each release has new noise: an intruder with several releases of the same data averages
    the noise away. Release once. The largest value is shown, exactly or nearly, at some record: top-code it
    if it identifies a person. A value that many records share, such as 0, keeps its records until the noise
    exceeds half of their share. Correlations of the values themselves, unlike those of ranks, are not
    controlled.

    **Ties, missing, weights.** Tied values have one score and are separated by their noise; afterwards as
    many are tied, or one or two fewer with new values. An ordinal column has no values between its categories
    and always shows existing ones. Missing values stay missing and take no rank; :math:`R` is taken over the
    records that have both values. Constants stay. Weights are not used.

    **Cost.** :math:`O(n \log n)` per column.

    Examples
    --------
    >>> frame = pl.DataFrame({"income": [10.0, 20.0, 30.0, 40.0, 900.0]})
    >>> table = Table(frame, Schema((Column("income", Kind.CONTINUOUS),)))
    >>> release = SullivanNoise(ratio=1, values="same").protect(table, Run(seed=1))
    >>> sorted(release.table.frame["income"])
    [10.0, 20.0, 30.0, 40.0, 900.0]
    """

    name = "sullivan-noise"
    vetted = (
        "brute-forced: unit/methods/test_noise_sullivan.py::test_same_values_are_those_of_the_naive_version"
    )
    synonyms = ("noise and non-linear transformation", "noise addition and non-linear transformation")
    family = "noise"
    title = "Noise and non-linear transformation (Sullivan)"
    analyst_note = (
        "Each column keeps its distribution, exactly or nearly; correlations are somewhat weaker, and single "
        "records mean nothing."
    )
    kinds = frozenset({Kind.CONTINUOUS, Kind.ORDINAL, Kind.DATE})
    references = ("sullivan1989", "brand2002", "hundepool2012")
    cost = "n log n"
    state = State("ranks")

    ratio: float = param(
        0.1,
        "Variance of the noise as a multiple of the variance of the scores.",
        gt=0,
        le=1e6,
        symbol="γ",
        log=True,
        tune=(1e-4, 1e3),
        drive=True,
        hint="0.01 is light; at 1 half of every variance is noise",
    )
    values: Literal["new", "same"] = param(
        "new",
        "Which values a column shows; an ordinal column always shows its own.",
        choices={
            "new": "New values between its own, with nearly the same distribution.",
            "same": "Its own, at other records.",
        },
        label="Values shown",
    )

    def protect(self, table: Table, run: Run) -> Release:
        """Score, add noise, and give each column its distribution again."""
        if not len(table) or not table.chosen:
            return Release.unchanged(table)
        numbers = [table.numbers(name) for name in table.chosen]
        scores = np.stack(list(run.engine.map(_scores, numbers, records=len(table))), axis=1)
        moments = kernels.moments.PairwiseMoments.of(scores, np.zeros(scores.shape[1]))
        draws = [run.rng(name, "noise").standard_normal(len(table)) for name in table.chosen]
        noisy = scores + np.stack(draws, axis=1) @ mixing(self.ratio * moments.covariance())
        work = [
            (
                numbers[place],
                noisy[:, place],
                None if self._keeps(table, name) else run.random_key(name, "places"),
            )
            for place, name in enumerate(table.chosen)
        ]
        found_ranks = run.engine.map(_map_to_ranks, work, records=len(table))
        results = run.track(self.title, found_ranks, total=len(work))
        protected = table
        for name, found in zip(table.chosen, results, strict=True):
            if self._keeps(table, name):
                series = table.frame[name].gather(pl.Series(found, dtype=pl.UInt32))
            else:
                series = set_protected_values(table, name, found[~table.missing(name)])
            protected = protected.with_values(name, series)
        return Release.record_by_record(protected)

    def _keeps(self, table: Table, name: str) -> bool:
        """Whether the records of a column change places, and no new value is made."""
        ordinal = table.schema[name].kind is Kind.ORDINAL
        return self.values == "same" or ordinal or bool(table.missing(name).all())


def _scores(numbers: Floats) -> Floats:
    """Normal scores of one column, NaN where missing."""
    from scipy.special import ndtri

    ranks = kernels.ranks.midranks(numbers)
    scores: Floats = ndtri((ranks - 0.5) / max(np.count_nonzero(~np.isnan(ranks)), 1))
    return scores


def _map_to_ranks(work: tuple[Floats, Floats, RandomKey | None]) -> Values:
    """Give the records the values of a column in the order of their noisy scores.

    Without chance, which record's value each of them gets; else new values, NaN where missing.
    """
    numbers, noisy, chance = work
    present = np.flatnonzero(~np.isnan(numbers))
    order = present[np.argsort(noisy[present], kind="stable")]
    by_value = present[np.argsort(numbers[present], kind="stable")]
    if chance is None:
        source = np.arange(len(numbers))
        source[order] = by_value
        return source
    # Half a place to either side of the value whose turn it is, on the straight lines between values.
    places = np.arange(len(order)) + chance.rng().uniform(-0.5, 0.5, len(order))
    fresh = np.full(len(numbers), np.nan)
    fresh[order] = np.interp(places, np.arange(len(order)), numbers[by_value])
    return fresh
