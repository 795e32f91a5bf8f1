"""Microaggregation: records form small groups of neighbours, and each shows its group's centre."""

from __future__ import annotations

from typing import Literal

import numpy as np

from sfumato import kernels
from sfumato.core.method import Method, put_back
from sfumato.core.params import param
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.schema import Kind
from sfumato.data.table import Floats, Table
from sfumato.errors import ParameterError


class Mdav(Method):
    r"""Replace each record by the mean of at least k near ones.

    The records are partitioned into groups of :math:`k` to :math:`2k-1`, and in the protected columns every
    record shows the mean of its group. Means are kept exactly; variances shrink.

    MDAV, maximum distance to average vector: while at least :math:`3k` records remain, the record
    :math:`r` farthest from their mean takes its :math:`k-1` nearest as a group, then the record farthest
    from :math:`r` does; of the last :math:`2k` to :math:`3k-1` records the farthest takes one more group
    and the rest is the last. The distance is

    .. math::

        d(x, y)^2 = \sum_j \frac{(x_j - y_j)^2}{s_j^2}

    where :math:`s_j` is the column's standard deviation, its range, or 1, as ``scale`` says.

    See Also
    --------
    RankSwapping : keeps every value but not who holds it.
    CorrelatedNoise : keeps the shape of the covariances.

    Notes
    -----
    **When to use.** Several continuous columns that are known together; with all keys in one step, every
    combination of protected values occurs at least :math:`k` times.

    **Guarantees.** Every group has at least :math:`k` records and at most :math:`2k-1`; column means are
    unchanged up to rounding.

    **Risk to know.** Only the protected columns are alike in a group: a rare value left in another column
    still singles a record out. A group whose members are all alike keeps their exact values.

    **Ties, missing, weights.** Equal distances go to the record that stands first. Missing values count
    as the column's mean when groups are formed and stay missing; the group's mean is over the values
    present, so where values are missing the groups are not vouched for as equivalence classes. Weights
    are not used: each record counts once.

    **Cost.** :math:`O(n^2/k)`.

    Examples
    --------
    >>> import polars as pl
    >>> from sfumato.data.schema import Column, Schema
    >>> frame = pl.DataFrame({"income": [10.0, 60.0, 20.0, 50.0, 30.0, 40.0]})
    >>> table = Table(frame, Schema((Column("income", Kind.CONTINUOUS),)))
    >>> Mdav(k=3).protect(table, Run(seed=1)).table.frame["income"].to_list()
    [20.0, 50.0, 20.0, 50.0, 20.0, 50.0]
    """

    name = "mdav"
    title = "Microaggregation (MDAV)"
    kinds = frozenset({Kind.CONTINUOUS})
    references = ("domingoferrer2005",)
    cost = "n²"
    stochastic = False

    k: int = param(
        5,
        "Smallest number of records in a group.",
        ge=1,
        unit="records",
        symbol="k",
        log=True,
        tune=(2, 500),
        drive=True,
        hint="3 to 10 is usual; it cannot exceed the number of records",
    )
    scale: Literal["deviation", "range", "none"] = param(
        "deviation", "What one unit of distance is in each column."
    )

    def drive_range(self, table: Table) -> tuple[float, float]:
        """From pairs to groups of 500, or to one group of everyone."""
        low, high = super().drive_range(table)
        return min(low, max(len(table), 1)), min(high, max(len(table), 1))

    def protect(self, table: Table, run: Run) -> Release:
        """Group the records and show each group's mean."""
        rows = np.arange(len(table), dtype=np.int64)
        if not len(table):
            return Release.of(table, source_rows=rows)
        if self.k > len(table):
            raise ParameterError(
                f"`k` of mdav must be at most the number of records, {len(table)}, got: `{self.k}`",
                hint="choose a smaller k, or fewer strata",
            )
        values = table.matrix(table.chosen)
        groups = kernels.groups.mdav(standardised(values, self.scale), self.k, tick=run.ticker(self.title))
        means = kernels.groups.group_means(values, groups)[groups]
        protected = table
        for position, name in enumerate(table.chosen):
            present = means[~table.missing(name), position]
            protected = protected.with_values(name, put_back(table, name, present))
        whole = not np.isnan(values).any()
        return Release.of(protected, source_rows=rows, classes=groups if whole else None)


def standardised(values: Floats, scale: Literal["deviation", "range", "none"]) -> Floats:
    """Centre each column and divide it by its scale; constants and missing values become 0."""
    present = ~np.isnan(values)
    counts = present.sum(axis=0)
    centres = np.divide(
        np.where(present, values, 0).sum(axis=0), counts, where=counts > 0, out=np.zeros(len(counts))
    )
    centred = np.where(present, values - centres, 0.0)
    if scale == "none":
        return centred
    if scale == "deviation":
        spread = np.sqrt((centred**2).sum(axis=0) / np.maximum(counts, 1))
    else:
        spread = centred.max(axis=0, initial=0) - centred.min(axis=0, initial=0)
    return centred / np.where(spread > 0, spread, 1.0)
