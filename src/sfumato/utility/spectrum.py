"""Spectrum: how variance is shared out among directions, and how each column hangs on the others."""

from __future__ import annotations

from typing import Literal

import numpy as np

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Measure, Needs, Score
from sfumato.core.params import param
from sfumato.core.run import Run
from sfumato.data.schema import ORDERED
from sfumato.kernels.arrays import Floats
from sfumato.utility._matrices import correlation, covariance, standardised_both
from sfumato.utility._readings import weights_of

#: Correlations whose least eigenvalue is below this have no inverse worth its digits.
_SINGULAR = 1e-9


class EigenvalueDifference(Measure):
    r"""Difference of the eigenvalues of the two covariance matrices, as a share of all variance.

    .. math::

        \frac{\sum_j |\lambda_j^X - \lambda_j^Y|}{\sum_j \lambda_j^X}

    where :math:`\lambda_1 \ge \lambda_2 \ge \dots` are the eigenvalues of the covariance matrix of each
    table, in deviations of the original's columns. Other tools divide each difference by its own
    :math:`\lambda_j^X`; where columns are redundant (a total and its parts) that is a division by 0, and a
    trace of noise makes the sum as large as one likes. Divided by the whole variance, a direction in which
    nothing varied counts for what varies there now.

    See Also
    --------
    rank-utility : compares directions, not only sizes; bounded.
    probabilistic-information-loss : compares covariances one by one.

    Notes
    -----
    **How to read it.** 0 means that both tables have the same spread in their main directions;
    the directions themselves may differ, so 0 does not mean that nothing changed: a rotation has 0. 0.1
    means that a tenth of the variance has moved, come or gone. With ``matrix="correlation"`` each table is
    in its own deviations and only correlations count; then at most 2 comes out.

    **Doubt.** Exact. It is at most the sum of the absolute eigenvalues of :math:`C_X - C_Y` (Lidskii), so a
    small change of the data makes a small one here, whatever is redundant. Where tables have weights,
    covariances are weighted.

    **Missing.** Covariances are over the records that have both values; with many missing values an
    eigenvalue may come out below 0, and counts as 0. Generalised values are taken at their middle.

    **Cost.** A few passes.

    Examples
    --------
    >>> schema = Schema((Column("x", Kind.CONTINUOUS), Column("y", Kind.CONTINUOUS)))
    >>> original = Table(pl.DataFrame({"x": [1, 1, -1, -1], "y": [1, 1, -1, -1]}), schema)
    >>> released = Table(pl.DataFrame({"x": [1, 1, -1, -1], "y": [1, -1, 1, -1]}), schema)
    >>> evidence = Evidence(original, Release.of(released))
    >>> EigenvalueDifference().score(evidence, Run(seed=1)).value  # 2, 0 against 1, 1
    1.0
    """

    name = "eigenvalue-difference"
    synonyms = ("dUtility", "comparison of covariances")
    family = "associations"
    title = "Eigenvalue difference"
    aspect = "utility"
    better = "low"
    bounds = (0.0, np.inf)
    kinds = ORDERED
    references = ("templ2015", "domingoferrer2001")
    cost = "n"
    needs = Needs(exact_original=True)

    matrix: Literal["covariance", "correlation"] = param(
        "covariance",
        "Of which matrix the eigenvalues are compared.",
        choices={
            "covariance": "Covariances, in standard deviations of the original: variances count, too.",
            "correlation": "Correlations: only associations of columns count.",
        },
    )

    def measure(self, evidence: Evidence, run: Run) -> Score:  # noqa: ARG002
        """Compare the eigenvalues in their order."""
        assert evidence.protected is not None
        names = self.columns(evidence)
        first, second, _ = standardised_both(evidence, names)
        of = covariance if self.matrix == "covariance" else correlation
        original_values, released_values = (
            np.maximum(np.linalg.eigvalsh(of(each, weights)), 0.0)
            for each, weights in ((first, evidence.original.weights), (second, weights_of(evidence)))
        )
        if original_values.sum() <= 0:
            return Score.not_estimable("no column of the original varies")
        return Score(
            value=float(np.abs(original_values - released_values).sum() / original_values.sum()),
            details={
                "columns": len(names),
                "records": len(first),
                "released": len(second),
                "largest_of_original": float(original_values[-1] / original_values.sum()),
                "largest_of_release": float(released_values[-1] / original_values.sum()),
                "weighted": "no" if evidence.original.weights is None else "yes",
            },
        )


class InverseCorrelationLoss(Measure):
    r"""Change of how strongly each column depends on all others together (Młodak).

    .. math::

        \frac{1}{\sqrt 2} \sqrt{\sum_j \left(\frac{\rho_j^X}{\lVert\rho^X\rVert}
            - \frac{\rho_j^Y}{\lVert\rho^Y\rVert}\right)^2}, \qquad
        \rho_j = (R^{-1})_{jj} = \frac{1}{1 - R_j^2}

    where :math:`R` is the correlation matrix of each table and :math:`R_j^2` the share of the variance of
    column :math:`j` that the other columns explain by a linear regression. Młodak (2020) has the factor 1/2;
    with :math:`1/\sqrt 2`, as in sdcMicro, 1 is the bound.

    See Also
    --------
    CorrelationDifference : compares pairs of columns.
    EigenvalueDifference : also where columns are redundant.

    Notes
    -----
    **How to read it.** 0 means that the columns depend on the others in the same proportions. That is little:
    where all columns correlate alike it is 0 even if the release has no correlation left, and of two columns
    it is always 0, so it asks for three. Read it beside the difference of correlations.

    **Doubt.** Exact, but sensitive where a column is nearly explained by the others: there
    :math:`\rho_j` is large and hangs on small changes. Where tables have weights, correlations are weighted.

    **Missing.** Correlations are over the records that have all values, in either table. If these have no
    inverse, because a column does not vary or is explained by the others (a total and its parts), there is no
    score. Generalised values are taken at their middle.

    **Cost.** A few passes.

    Examples
    --------
    >>> schema = Schema(tuple(Column(name, Kind.CONTINUOUS) for name in "abc"))
    >>> columns = {"a": [1, 1, -1, -1, 0, 0], "b": [1, -1, 1, -1, 0, 0], "c": [0, 0, 0, 0, 1, -1]}
    >>> original = Table(pl.DataFrame(columns), schema)
    >>> released = original.with_values("b", pl.Series([1, 1, 1, -1, 0, 0]))
    >>> evidence = Evidence(original, Release.of(released))
    >>> round(InverseCorrelationLoss().score(evidence, Run(seed=1)).value, 3)
    0.11
    """

    name = "inverse-correlation-loss"
    synonyms = ("IL_correl", "Młodak's correlation loss", "Mlodak", "variance inflation")
    family = "associations"
    title = "Loss of inverse correlations"
    aspect = "utility"
    better = "low"
    bounds = (0.0, 1.0)
    kinds = ORDERED
    references = ("mlodak2020", "mlodak2019")
    cost = "n"
    needs = Needs(exact_original=True, columns=3)

    def measure(self, evidence: Evidence, run: Run) -> Score:  # noqa: ARG002
        """Compare the diagonals of the two inverses, each brought to length 1."""
        names = self.columns(evidence)
        first, second, _ = standardised_both(evidence, names)
        both: list[Floats] = []
        for values, weights in ((first, evidence.original.weights), (second, weights_of(evidence))):
            found = _inverse_diagonal(values, weights)
            if found is None:
                whose = "release" if both else "original"
                return Score.not_estimable(
                    f"the correlations of the {whose} have no inverse: a column does not vary, or others "
                    "explain it, in the records without missing values"
                )
            both.append(found / np.linalg.norm(found))
        apart = both[0] - both[1]
        return Score(
            value=float(min(np.linalg.norm(apart) / np.sqrt(2), 1.0)),
            by_column=dict(zip(names, np.abs(apart).tolist(), strict=True)),
            details={
                "columns": len(names),
                "records": int((~np.isnan(first).any(axis=1)).sum()),
                "released": int((~np.isnan(second).any(axis=1)).sum()),
                "weighted": "no" if evidence.original.weights is None else "yes",
            },
        )


def _inverse_diagonal(values: Floats, weights: Floats | None) -> Floats | None:
    """The diagonal of the inverse of the correlations of complete records; None where there is none."""
    complete = ~np.isnan(values).any(axis=1)
    found = correlation(values[complete], None if weights is None else weights[complete])
    if np.linalg.eigvalsh(found)[0] < _SINGULAR:
        return None
    diagonal: Floats = np.diagonal(np.linalg.inv(found))
    return diagonal
