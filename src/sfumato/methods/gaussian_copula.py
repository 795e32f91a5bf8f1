"""Gaussian copula: columns of any kind are drawn jointly from one normal model of their ranks."""

from __future__ import annotations

import numpy as np

from sfumato.core.method import ColumnView, Takes, set_protected_values
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.codings import decimals_of, microseconds, time_unit_of
from sfumato.data.schema import Kind
from sfumato.data.table import Table
from sfumato.kernels.arrays import Floats, Values
from sfumato.methods._analyst_notes import SYNTHETIC
from sfumato.methods._conditional_method import GivenMethod
from sfumato.methods._copula import Copula, NormalScores


class GaussianCopula(GivenMethod):
    r"""Generate columns from a Gaussian copula, which follows their distributions and rank correlations.

    Values become the normal scores :math:`z` of their ranks, as in data shuffling, categories in the order
    of their codes. New scores are drawn given the columns :math:`S` that are ``given``,

    .. math::

        Z^* = B\,z_S + \sqrt{1 - \delta^2}\,(z_X - B\,z_S) + \delta\,\varepsilon, \qquad
        \varepsilon \sim N(0,\; R_{XX} - B R_{SX})

    and a column gets the value at the share :math:`\Phi(Z^*)` of its own distribution. With an independence
    :math:`\delta` of 1, the default, nothing specific to a record is left.

    See Also
    --------
    DataShuffling : uses exactly the original values.
    Synthesis : follows relations of any shape.

    Notes
    -----
    **When to use.** As a baseline for other models, and for numbers whose relations are monotone.

    **Guarantees.** Distributions of columns are kept up to random error, rank correlations of ordered columns
    approximately. Every category occurs in the original column; numbers and dates lie between its values.

    **Risk to know.** Relations that are not monotone are lost: those among nominal columns, whose categories
    have no order, are kept poorly, and rules between columns are violated. What the given columns reveal
    about the others stays in the release.

    **Ties, missing, weights.** Ties are separated at random. Missing values stay where they are; a missing
    given value counts as an average one. Given nominal columns enter as indicators, at most 200. There must
    be ten records for each given column or indicator. Weights are not used.

    **Cost.** :math:`O(d\,n \log n + d^2 n)` for :math:`d` columns and indicators.

    Examples
    --------
    >>> people = pl.DataFrame({"age": [20 + i % 30 for i in range(60)], "job": ["a", "b", "c"] * 20})
    >>> made = sfumato.protect(people, GaussianCopula(), columns=["age", "job"], seed=1).data
    >>> made["age"].is_between(20, 49).all(), sorted(made["job"].unique())
    (True, ['a', 'b', 'c'])
    """

    name = "gaussian-copula"
    synonyms = ("dataGen", "synthetic data")
    title = "Gaussian copula"
    analyst_note = SYNTHETIC
    family = "synthetic data"
    nature = "synthetic"
    kinds = frozenset({Kind.CONTINUOUS, Kind.ORDINAL, Kind.NOMINAL, Kind.DATE})
    takes = Takes(whole_records=True)
    references = ("muralidhar2006", "nowok2016")
    cost = "n log n"

    def protect(self, table: Table, run: Run) -> Release:
        """Draw scores from the model, and take the values at their shares."""
        if not len(table):
            return Release.unchanged(table)
        scores = NormalScores.of(table, self.given_columns(table), run)
        draws = Copula.fit(scores).draw(scores, table.chosen, self.independence, run)
        protected = table
        for place, name in enumerate(run.track(self.title, table.chosen, total=len(table.chosen))):
            view = ColumnView.of(table, name)
            present = ~np.isnan(scores.shares[:, place])
            if present.any():
                fresh = set_protected_values(table, name, _at_shares(view, draws[present, place]))
                protected = protected.with_values(name, fresh)
        return Release.record_by_record(protected)


def _at_shares(column: ColumnView, scores: Floats) -> Values:
    """The values of a column at the shares of normal scores; of numbers and dates also what lies between."""
    from scipy.special import ndtr

    ordered: Values = np.sort(column.values)
    places = np.clip(ndtr(scores) * len(ordered) - 0.5, 0, len(ordered) - 1)
    if column.column.kind not in {Kind.CONTINUOUS, Kind.DATE}:
        nearest: Values = ordered[np.rint(places).astype(np.int64)]
        return nearest
    values: Floats = np.interp(places, np.arange(len(ordered)), ordered)
    if column.column.kind is Kind.DATE and column.dtype is not None:
        own = microseconds(column.dtype)
        unit = time_unit_of(ordered * own) / own or 1.0
        return np.rint(values / unit) * unit
    decimals = decimals_of(ordered)
    return values if decimals is None else values.round(decimals)
