"""Noise on outliers only: records far from the others move, all others stay as they are."""

from __future__ import annotations

from math import ceil

import numpy as np

from sfumato import kernels
from sfumato.core.method import Method, with_matrix
from sfumato.core.params import param
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.schema import Kind
from sfumato.data.table import Table
from sfumato.kernels.arrays import Flags, Floats
from sfumato.methods.coding import robust_distances


class OutlierNoise(Method):
    r"""Add independent normal noise to multivariate outliers, and leave all other records as they are.

    .. math::

        y_{ij} = x_{ij} + o_i\,\varepsilon_{ij}, \qquad
        \varepsilon_{ij} \sim N\left(0, \left(\frac{\sigma}{100}\, s_j\right)^2\right)

    where :math:`s_j` is the standard deviation of column :math:`j`, and :math:`o_i = 1` for the
    :math:`\lceil p\,n/100 \rceil` records farthest from a robust centre, by the distance of
    ``multivariate-top-coding``, and 0 for the others.

    See Also
    --------
    UncorrelatedNoise : noise on all records.
    MultivariateTopCoding : draws outliers in instead.

    Notes
    -----
    **When to use.** Beside a method that protects the ordinary records, such as microaggregation or rounding,
    which protect outliers least. Alone it protects no one but the outliers.

    **Guarantees.** All records but the outliers are released exactly. Unbiased means.

    **Risk to know.** Who is no outlier is released with true values. An outlier that moves by less than its
    distance from the others stays one: choose the deviation by a measure of linkage. Each release has new
    noise, which an intruder with several releases averages away.

    **Ties, missing, weights.** Records of equal distance are treated alike. Missing values stay missing: a
    record is judged in the columns it has. Constants stay and do not count. Weights are not used.

    **Cost.** :math:`O(n)` for given columns, and :math:`O(d^3)` for each pattern of missing values.

    Examples
    --------
    >>> frame = pl.DataFrame({"height": [150.0, 160, 170, 180, 190, 260], "shoe": [36.0, 38, 40, 42, 44, 58]})
    >>> table = Table(frame, Schema(tuple(Column(name, Kind.CONTINUOUS) for name in frame.columns)))
    >>> release = OutlierNoise(share=10).protect(table, Run(seed=1))
    >>> (release.table.frame["height"] != frame["height"]).to_list()
    [False, False, False, False, False, True]
    """

    name = "outlier-noise"
    vetted = "brute-forced: unit/methods/test_noise.py::test_outliers_alone_get_the_noise_of_all"
    synonyms = ("addNoise", "outdect", "noise on outliers", "noise for outliers")
    family = "noise"
    title = "Noise on outliers"
    analyst_note = (
        "Noise was added to records far from the others: means hold in expectation, variances are slightly "
        "too large, and extremes are not true."
    )
    kinds = frozenset({Kind.CONTINUOUS})
    references = ("templ2008", "alqallaf2002", "hubert2012")

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
        hint="it is a percentage of each column's standard deviation; far outliers need 100 and more",
    )
    share: float = param(
        5.0,
        "Share of the records that get noise, those farthest from the centre.",
        gt=0,
        le=100,
        unit="%",
        symbol="p",
        hint="1 to 10 is usual",
    )

    def protect(self, table: Table, run: Run) -> Release:
        """Find the outliers, and add noise to what they have."""
        values = table.matrix(table.chosen)
        outlying = self._outlying(values)
        protected = values.copy()
        for place, name in enumerate(table.chosen):
            draws = run.rng(name).standard_normal(len(table))[outlying]
            here = values[~np.isnan(values[:, place]), place]
            spread = float(here.std(ddof=1)) if len(here) > 1 else 0.0
            protected[outlying, place] += self.deviation / 100 * spread * draws
        note = f"{int(outlying.sum())} of {len(table)} records got noise; the others show their true values"
        figures = {"records_with_noise": int(outlying.sum())}
        return Release.record_by_record(
            with_matrix(table, table.chosen, protected), notes=(note,), figures=figures
        )

    def _outlying(self, values: Floats) -> Flags:
        """The share of the judged records that lies farthest from the centre, with ties."""
        _, squares, sizes = robust_distances(values, self.name)
        scores = kernels.outlyingness.scores(squares, sizes)
        judged = np.sort(scores[sizes > 0])
        if not len(judged):
            return np.zeros(len(values), dtype=np.bool_)
        wanted = max(ceil(self.share / 100 * len(judged) - 1e-9), 1)  # a share is not quite a number
        outlying: Flags = scores >= judged[-wanted]
        return outlying
