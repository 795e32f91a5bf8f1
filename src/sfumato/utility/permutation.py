"""Permutation: utility in the permutation model, in which every method does nothing but permute ranks."""

from __future__ import annotations

from typing import Literal

import numpy as np

from sfumato import kernels
from sfumato.core.evidence import Evidence
from sfumato.core.measure import Measure, Needs, Score
from sfumato.core.params import param
from sfumato.core.run import Run
from sfumato.data.schema import ORDERED
from sfumato.kernels.arrays import Floats
from sfumato.utility._matrices import along_eigenvectors, covariance, standardised_both
from sfumato.utility._readings import middles_of

#: What a sum of squared differences of shares may be from rounding alone.
_NOTHING = 1e-18


class RankUtility(Measure):
    r"""How much of the original's covariances, of ranks or values, the release still has (UM).

    .. math::

        UM(X, Y) = 1 - \min\left(1, \frac{\sum_j (\hat\lambda_j^X - \hat\lambda_j^{Y|X})^2}
            {\sum_j (\hat\lambda_j^X - 1/m)^2}\right), \qquad
        \lambda_j^X = v_j^\top C_{XX} v_j, \quad \lambda_j^{Y|X} = v_j^\top C_{YY} v_j

    where :math:`C_{XX}` and :math:`C_{YY}` are the covariance matrices of the ranks in the two tables,
    :math:`v_j` the eigenvectors of :math:`C_{XX}`, and a hat scales to sum 1. The eigenvectors of the
    original are used for both tables, so that a rotation of the data does not go unnoticed. It is 1 if the
    variance is shared out among these directions as it was, and 0 if it is as far from that as that of data
    without any correlation. If the original has no correlation at all it is 1 for a release that has none
    either, and 0 for others.

    See Also
    --------
    permutation-distance : the risk in the same model.
    eigenvalue-difference : compares sizes of variances, not directions.
    probabilistic-information-loss : looks at means and quantiles as well.

    Notes
    -----
    **How to read it.** Higher is better. It compares all methods on one bounded scale,
    synthetic data as well. It sees how columns go together, and nothing else: with ``of="ranks"`` a release
    with other values in the same order has 1. Of values those columns count most that vary most in their
    unit; in deviations of the original all count alike.

    **Doubt.** Exact. Weights are not used. Where eigenvalues are equal their directions are not defined,
    and those count along which the release differs most; redundant columns do no harm.

    **Missing.** A missing value has no rank; covariances are over the records that have both values.
    Generalised values are ranked by their middle.

    **Cost.** A sort of each column.

    Examples
    --------
    >>> schema = Schema((Column("x", Kind.CONTINUOUS), Column("y", Kind.CONTINUOUS)))
    >>> original = Table(pl.DataFrame({"x": [1, 2, 3, 4], "y": [10, 20, 40, 30]}), schema)
    >>> released = Table(pl.DataFrame({"x": [1, 2, 3, 4], "y": [10, 40, 20, 30]}), schema)
    >>> evidence = Evidence(original, Release.of(released))  # correlations of ranks .8 and .4
    >>> round(RankUtility().score(evidence, Run(seed=1)).value, 3)
    0.75
    """

    name = "rank-utility"
    vetted = "brute-forced: unit/utility/test_spectrum.py::test_utility_as_the_paper_writes_it"
    synonyms = ("comparison of covariances",)
    family = "associations"
    title = "Utility of the permutation model (UM)"
    aspect = "utility"
    better = "high"
    bounds = (0.0, 1.0)
    kinds = ORDERED
    references = ("domingoferrer2020", "domingoferrer2016")
    cost = "n log n"
    needs = Needs(exact_original=True, columns=2)

    of: Literal["ranks", "values", "standardised"] = param(
        "ranks",
        "What the covariances are of.",
        choices={
            "ranks": "Ranks.",
            "values": "Values: columns that vary more in their unit count more.",
            "standardised": "Values in standard deviations of the original: all columns count equally.",
        },
    )

    def measure(self, evidence: Evidence, run: Run) -> Score:  # noqa: ARG002
        """Compare the variances along the original's eigenvectors."""
        assert evidence.protected is not None
        names = self.columns(evidence)
        if self.of == "ranks":
            first, second = _ranks(evidence, names)
        else:
            first, second, units = standardised_both(evidence, names)
            if self.of == "values":
                first, second = (each * (units / units.max()) for each in (first, second))
        original_values, released_values = along_eigenvectors(covariance(first), covariance(second))
        if original_values.sum() <= 0:
            return Score.not_estimable("no column of the original varies")
        details = {"columns": len(names), "records": len(first), "released": len(second)}
        if released_values.sum() <= 0:
            return Score(value=0.0, details={**details, "released_variation": "none"})
        return Score(
            value=_utility(original_values / original_values.sum(), released_values / released_values.sum()),
            details=details,
        )


def _ranks(evidence: Evidence, names: tuple[str, ...]) -> tuple[Floats, Floats]:
    """Mid-ranks of both tables as places between −½ and ½, so that tables of any size compare."""
    assert evidence.protected is not None
    first = np.empty((len(evidence.original), len(names)), order="F")
    second = np.empty((len(evidence.protected), len(names)), order="F")
    for i, name in enumerate(names):
        middles = middles_of(evidence.original, evidence.protected, name)
        for side, values in zip((first, second), middles, strict=True):
            n_present = max(int((~np.isnan(values)).sum()), 1)
            side[:, i] = (kernels.ranks.midranks(values) - (n_present + 1) / 2) / n_present
    return first, second


def _utility(original_values: Floats, released_values: Floats) -> float:
    difference = float(((original_values - released_values) ** 2).sum())
    most = float(((original_values - 1.0 / len(original_values)) ** 2).sum())
    if most <= _NOTHING:
        return 1.0 if difference <= _NOTHING else 0.0
    return 1.0 - min(1.0, difference / most)
