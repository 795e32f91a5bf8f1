"""Information lost record by record: how far each released value lies from its own original."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Measure, Score, Tells
from sfumato.core.params import param
from sfumato.core.run import Run
from sfumato.data.schema import Kind
from sfumato.kernels.arrays import Floats
from sfumato.utility._changes import Changes, changes_of
from sfumato.utility._readings import (
    COMPARABLE,
    Reading,
    by_original,
    coarse_original,
    n_left_out,
    pairs_of,
    unmapped,
)


class MappedLoss(Measure):
    """A mean over columns of what the cells of each have lost against their own originals."""

    aspect = "utility"
    better = "low"
    bounds = (0.0, np.inf)
    kinds = COMPARABLE
    cost = "n"

    generalised: Reading = param(
        "midpoint",
        "How a range or set is read.",
        choices={
            "midpoint": "In its middle.",
            "worst": "At its member farthest from the truth.",
            "expected": "As any of its members, each as likely.",
        },
    )

    def refuses(self, evidence: Evidence) -> str | None:
        """Refuse records that do not map, and an original that is generalised itself."""
        return (
            super().refuses(evidence)
            or unmapped(self.name, evidence)
            or coarse_original(self.name, evidence, self.columns(evidence))
        )

    @abstractmethod
    def losses(self, changes: Changes) -> Floats:
        """What each cell of a column has lost, NaN where the original has no value."""

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Compare each released value with its own original."""
        names, rows = self.columns(evidence), pairs_of(evidence)
        released, sources = rows
        weights = None if evidence.original.weights is None else evidence.original.weights[sources]
        by_column: dict[str, float] = {}
        sums: Floats = np.zeros(1)
        counts: Floats = np.zeros(1)
        n_coarse = n_silent = n_constant = 0
        for name in run.track(self.title, names, len(names)):
            changes = changes_of(evidence, name, rows, self.generalised)
            if changes is None:
                continue
            losses = self.losses(changes)
            known = ~np.isnan(losses)
            by_column[name] = _mean(losses, None if weights is None else weights * known)
            sums, counts = sums + np.where(known, losses, 0.0), counts + known
            n_coarse, n_silent = n_coarse + changes.n_coarse, n_silent + changes.n_silent
            n_constant += changes.variance == 0
        if not by_column:
            return Score.not_estimable("no column of the original has values")
        per_record = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
        return Score(
            value=float(np.mean(list(by_column.values()))),
            by_column=by_column,
            by_record=by_original(per_record, sources, len(evidence.original)),
            details={
                "columns": len(by_column),
                "columns_without_variation": n_constant,
                "records": len(per_record),
                "records_left_out": n_left_out(released),
                "generalised_cells": n_coarse,
                "suppressed_cells": n_silent,
                "weighted": "no" if weights is None else "yes",
            },
        )


def _mean(values: Floats, weights: Floats | None) -> float:
    if weights is None:
        return float(np.nanmean(values))
    return float(np.nansum(values * weights) / weights.sum())


class Il1s(MappedLoss):
    r"""Mean change of a value, as a share of its column's spread (IL1s).

    .. math::

        \mathrm{IL1s} = \frac{1}{m\,n} \sum_{j=1}^{m} \sum_{i=1}^{n} \frac{|x_{ij} - y_{ij}|}{\sqrt 2\, S_j}

    where :math:`S_j` is the standard deviation of column :math:`j` in the original. Divided by the spread
    and not by the value, as IL1 is, a value near 0 does no harm. Ordinal values count by position. Nominal
    ones are corners of a simplex: two that differ are :math:`\sqrt 2` apart, and :math:`S^2 = \frac{n}{n-1}
    (1 - \sum_c p_c^2)`, so that a column of two values has the loss it has as 0 and 1.

    See Also
    --------
    il1 : the change as a share of the value itself.
    sse-ratio : large changes weigh more.
    generalisation-loss : by record, at the worst value of a range.

    Notes
    -----
    **How to read it.** 0 means that no exact value changed; about 0.56 means that
    values of a normal column were replaced by the mean, and 0.80 by those of somebody else. It is a mean:
    tables of different size compare. ``by_column`` shows where, ``by_record`` whose values changed most. A
    range with the truth in its middle counts 0 unless it is read at its ``worst``, and so does a suppressed
    value that is the mean, as in a column that does not vary: ``details`` counts the cells of both sorts.

    **Doubt.** Exact. A column that does not vary in the original has no spread; if it was changed, the
    largest of its changes is taken instead. Where the original has weights, means and deviations are
    weighted.

    **Missing.** A value missing in the original does not count. One that is missing only in the release, a
    wildcard, or a record that was left out, is read as the whole column: at its mean (``midpoint``), at the
    farthest end of its range (``worst``), or as any of its values (``expected``).

    **Cost.** A few passes.

    Examples
    --------
    >>> schema = Schema((Column("x", Kind.CONTINUOUS),))
    >>> original = Table(pl.DataFrame({"x": [-1.0, 1.0, -1.0, 1.0]}), schema)
    >>> released = Table(pl.DataFrame({"x": [-1.0, 1.0, -1.0, 3.0]}), schema)
    >>> evidence = Evidence(original, Release.of(released, source_rows=np.arange(4)))
    >>> round(Il1s().score(evidence, Run(seed=1)).value, 4)  # 2 / 4 of √2 · √(4/3)
    0.3062
    """

    name = "il1s"
    family = "cells"
    tells = Tells(places={"default": 0})
    title = "Mean change in spreads (IL1s)"
    references = ("yancey2002", "mateosanz2005")

    def losses(self, changes: Changes) -> Floats:
        """Each distance, in deviations."""
        return changes.distances / (float(np.sqrt(2.0)) * changes.scale)


class Il1(MappedLoss):
    r"""Mean change of a value, as a share of the value itself (IL1).

    .. math::

        \mathrm{IL1} = \frac{1}{m\,n} \sum_{j=1}^{m} \sum_{i=1}^{n} \frac{|x_{ij} - y_{ij}|}{|x_{ij}|}

    A zero that became something else has lost all it had, and counts as 1, whatever it became. It is
    neither left out nor infinite.

    See Also
    --------
    il1s : steadier, and for more kinds; to be preferred where values lie near 0.

    Notes
    -----
    **How to read it.** 0.1 means that values changed by a tenth on average; 0 that no exact
    value changed. A few values near 0 can outweigh all others. It is a mean: tables of different
    size compare. A range with the truth in its middle counts 0 unless it is read at its ``worst``, and so
    does a suppressed value that is the mean: ``details`` counts the cells of both sorts.

    **Doubt.** Exact. Where the original has weights, means are
    weighted.

    **Missing.** A value missing in the original does not count. One that is missing only in the release, a
    wildcard, or a record that was left out, is read as the whole column: at its mean (``midpoint``), at the
    farthest end of its range (``worst``), or as any of its values (``expected``).

    **Cost.** A few passes.

    Examples
    --------
    >>> schema = Schema((Column("x", Kind.CONTINUOUS),))
    >>> original = Table(pl.DataFrame({"x": [10.0, -4.0, 0.0, 5.0]}), schema)
    >>> released = Table(pl.DataFrame({"x": [11.0, -2.0, 7.0, 5.0]}), schema)
    >>> evidence = Evidence(original, Release.of(released, source_rows=np.arange(4)))
    >>> Il1().score(evidence, Run(seed=1)).value  # a tenth, a half, 1 and 0
    0.4
    """

    name = "il1"
    family = "cells"
    title = "Mean relative change (IL1)"
    kinds = frozenset({Kind.CONTINUOUS})
    references = ("domingoferrer2001", "mateosanz2005")

    def losses(self, changes: Changes) -> Floats:
        """Each distance, as a share of the original value."""
        sizes = np.abs(changes.originals)
        zero = sizes == 0
        with np.errstate(over="ignore"):  # next to 0 the share of a change may be more than a number can say
            shares = changes.distances / np.where(zero, 1.0, sizes)
        return np.where(zero, np.sign(changes.distances), shares)


class SseRatio(MappedLoss):
    r"""Sum of squared changes as a share of the sum of squares around the mean (SSE/SST).

    .. math::

        \frac{SSE}{SST} = \frac{1}{m} \sum_{j=1}^{m}
            \frac{\sum_i (y_{ij} - x_{ij})^2}{\sum_i (x_{ij} - \bar x_j)^2}

    Each column counts alike, whatever its unit: it is the ratio that one gets from standardised columns, as
    the literature on microaggregation reports it. Ordinal values count by position. Nominal ones are
    corners of a simplex, a set of them the centre of its corners, and the sum of squares around the mean is
    :math:`n (1 - \sum_c p_c^2)`.

    See Also
    --------
    il1s : absolute changes, on which outliers weigh less.

    Notes
    -----
    **How to read it.** 0 means that no exact value changed; 1 that the changes are as
    large as the data's own spread, as if every value were replaced by the mean or suppressed; values of
    somebody else would give 2, and noise can go beyond. ``by_column`` shows where. A range with the truth in
    its middle counts 0 unless it is read at its ``worst``, and so does a suppressed value that is the mean:
    ``details`` counts the cells of both sorts.

    **Doubt.** Exact. A column that does not vary in the original has no spread; if it was changed, the
    largest of its changes is taken instead. Where the original has weights, sums and means are weighted.

    **Missing.** A value missing in the original does not count. One that is missing only in the release, a
    wildcard, or a record that was left out, is read as the whole column: at its mean (``midpoint``), at the
    farthest end of its range (``worst``), or as any of its values (``expected``).

    **Cost.** A few passes.

    Examples
    --------
    >>> schema = Schema((Column("x", Kind.CONTINUOUS),))
    >>> original = Table(pl.DataFrame({"x": [1.0, 3.0, 7.0, 9.0]}), schema)
    >>> released = Table(pl.DataFrame({"x": [2.0, 2.0, 8.0, 8.0]}), schema)
    >>> evidence = Evidence(original, Release.of(released, source_rows=np.arange(4)))
    >>> SseRatio().score(evidence, Run(seed=1)).value  # 4 of 40
    0.1
    """

    name = "sse-ratio"
    family = "cells"
    former = ("squares-lost",)
    title = "Sum of squares lost (SSE/SST)"
    references = ("domingoferrer2002", "domingoferrer2005")

    def losses(self, changes: Changes) -> Floats:
        """Each square, as a share of the variance."""
        return changes.squares / changes.total
