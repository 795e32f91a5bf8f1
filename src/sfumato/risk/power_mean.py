"""The power mean of the distances by which values moved among the ranks."""

from __future__ import annotations

import numpy as np

from sfumato import kernels
from sfumato.core.evidence import Evidence
from sfumato.core.measure import Score, Tells
from sfumato.core.params import param
from sfumato.core.run import Run
from sfumato.data.persons import best_by_person, persons_of
from sfumato.kernels.arrays import Floats
from sfumato.risk._rank_moves import original_and_released_values
from sfumato.risk._ranked_tables import (
    PermutationMeasure,
)


class PowerMean(PermutationMeasure):
    r"""Power mean of the rank changes in a column, for the column whose ranks changed least (J).

    .. math::

        J(\alpha) = \frac{1}{n - 1} \left(\frac{1}{n} \sum_{i=1}^{n} p_i^\alpha\right)^{1/\alpha}, \qquad
        J(0) = \frac{1}{n - 1} \prod_{i=1}^{n} p_i^{1/n}

    where :math:`p_i = |\mathrm{rank}(x_i) - \mathrm{rank}(y_i)|` is the permutation distance of record
    :math:`i` in a column. Divided by the greatest distance there is, it compares across tables.

    See Also
    --------
    permutation-distance : to the nearest released record, in all columns together.
    cm1 : all columns together, bounded too.

    Notes
    -----
    **How to read it.** Higher is safer. The lower :math:`\alpha`, the more those values count that hardly
    moved: 1 is the mean, 0 the geometric mean, which is 0 if a single value kept its rank, and far below 0
    only the least distance counts. Above 1 it is those that moved far: then it tells of the loss of utility.
    ``by_column`` has each column, the score is the least.

    **Doubt.** Exact.

    **Missing.** A value that is missing in either table has no rank and does not count. Columns of one value
    are left out: nothing there could move.

    **Units.** Persons are counted, each by the record that moved least. A record released twice counts by the
    nearer.

    **Ties** share their mean rank; the slightest noise parts them, and ranks move though values hardly do.

    **Cost.** A sort of each column.
    """

    name = "power-mean"
    family = "permutation model"
    title = "Power mean of permutation distances"
    tells = Tells(record_sentence="the value that moved least changed its rank by {:.2%} of all ranks")
    references = ("ruiz2018", "domingoferrer2020")
    cost = "n log n"

    alpha: float = param(
        0.5,
        "The power: a lower one gives more weight to values that hardly moved.",
        ge=-100,
        le=100,
        symbol="α",
    )

    def measure(self, evidence: Evidence, run: Run) -> Score:  # noqa: ARG002
        """Average over persons, column by column."""
        assert evidence.source_rows is not None  # `refuses` saw to it
        names, persons = self.columns(evidence), persons_of(evidence.original)
        rows = evidence.source_rows[evidence.source_rows >= 0]
        by_column, least = {}, np.full(len(evidence.original), np.inf)
        for name in names:
            original, released = (
                kernels.ranks.midranks(side) for side in original_and_released_values(evidence, name)
            )
            there = ~np.isnan(original)
            if not there.any() or np.ptp(original[there]) == 0:  # nothing can move
                continue
            apart = np.abs(original - released)[there] / (int(there.sum()) - 1)
            np.minimum.at(least, rows[there], apart)
            by_column[name] = power_mean(-best_by_person(persons[rows[there]], -apart), self.alpha)
        if not by_column:
            return Score.not_estimable("no column has two different values in records that both tables have")
        return Score(
            value=min(by_column.values()),
            by_column=by_column,
            by_record=np.where(np.isinf(least), np.nan, least),
            details={
                "columns": len(by_column),
                "columns_left_out": len(evidence.known_columns) - len(by_column),
                "records": len(rows),
            },
        )


def power_mean(values: Floats, alpha: float) -> float:
    """The power mean of values that are not negative; 0 for a power of 0 or less if one of them is."""
    if alpha <= 0 and not values.all():
        return 0.0
    if alpha == 0:
        return float(np.exp(np.log(values).mean()))
    greatest = float(values.max() if alpha > 0 else values.min())
    if greatest == 0:
        return 0.0
    # As shares of what decides, so that no power overflows or vanishes.
    return float(greatest * np.mean((values / greatest) ** alpha) ** (1 / alpha))
