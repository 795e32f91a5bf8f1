"""Spectrum: how the variance of a table is shared out among independent directions."""

from __future__ import annotations

from typing import Literal

import numpy as np

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Measure, Needs, Score
from sfumato.core.params import param
from sfumato.core.run import Run
from sfumato.data.schema import ORDERED
from sfumato.utility._matrices import correlation, covariance, standardised_both
from sfumato.utility._readings import weights_of


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
    synonyms = ("dUtility", "comparison of covariances", "IL_correl")
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
