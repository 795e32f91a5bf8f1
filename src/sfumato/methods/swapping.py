"""Swapping: values change places between records, so every column keeps exactly its values."""

from __future__ import annotations

import numpy as np

from sfumato import kernels
from sfumato.core.method import ColumnMethod, ColumnView, Values
from sfumato.core.params import param
from sfumato.data.schema import Kind


class RankSwapping(ColumnMethod):
    r"""Swap each value with one of near rank.

    Each protected column keeps exactly its original values, so every univariate statistic survives; what
    changes is which record holds which value. The smaller the window, the nearer each record stays to its
    own value, and the better joint statistics survive — and the better an intruder does.

    Let :math:`x_{(1)} \le \dots \le x_{(n)}` be the sorted values and

    .. math::

        w = \max\left(1, \left\lfloor \frac{p\,n}{100} \right\rfloor\right)

    the reach of a window of :math:`p` per cent. From the lowest rank up, each rank :math:`i` not yet
    swapped draws a partner :math:`j`, uniformly from the ranks not yet swapped with
    :math:`i < j \le i + w`, and :math:`x_{(i)}` and :math:`x_{(j)}` change places. A rank left without a
    partner keeps its value.

    See Also
    --------
    CorrelatedNoise : moves values instead of exchanging them.

    Notes
    -----
    **When to use.** Continuous, ordinal or date columns whose distribution must be released exactly.
    Columns are swapped independently; correlations shrink towards zero as :math:`p` grows.

    **Guarantees.** The multiset of values is unchanged; no value moves by more than :math:`w` ranks.

    **Risk to know.** The bound on the move is itself information: an intruder who knows :math:`p` can
    discard every record outside the window in each column and intersect what is left (Nin, Herranz and
    Torra 2008). Do not publish :math:`p`.

    **Ties, missing, weights.** Ties are ordered by record and swapped like other values, so columns with
    few distinct values change little. Missing values stay where they are and take no rank. Weights stay
    with their record.

    **Cost.** :math:`O(n \log n)` per column.

    Examples
    --------
    >>> from sfumato.data.schema import Column
    >>> incomes = ColumnView(Column("income", Kind.CONTINUOUS), np.array([10.0, 20, 30, 40, 50, 60]))
    >>> swapped = RankSwapping(window=50).protect_column(incomes, np.random.default_rng(7))
    >>> sorted(swapped.tolist())
    [10.0, 20.0, 30.0, 40.0, 50.0, 60.0]
    """

    name = "rank-swapping"
    title = "Rank swapping"
    kinds = frozenset({Kind.CONTINUOUS, Kind.ORDINAL, Kind.DATE})
    references = ("moore1996", "dalenius1982", "nin2008")
    cost = "n log n"

    window: float = param(
        5.0,
        "Largest distance in rank between two swapped values, in per cent of the records.",
        gt=0,
        le=100,
        unit="%",
        symbol="p",
        log=True,
        tune=(0.1, 100),
        drive=True,
        hint="it is a percentage of the records; 5 is the usual start",
    )

    def protect_column(self, column: ColumnView, rng: np.random.Generator) -> Values:
        """Swap the values of one column."""
        order = np.argsort(column.values, kind="stable")
        reach = max(1, int(len(column) * self.window / 100))
        partner = kernels.ranks.swap_partners(len(column), reach, rng)
        swapped = np.empty_like(column.values)
        swapped[order] = column.values[order][partner]
        return swapped
