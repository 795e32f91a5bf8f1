"""Univariate microaggregation: each column is grouped on its own, by the order of its values."""

from __future__ import annotations

from typing import Literal

import numpy as np

from sfumato import kernels
from sfumato.core.method import ColumnMethod, ColumnView, Randomness
from sfumato.core.params import PerColumn, param
from sfumato.core.release import BELOW_K
from sfumato.data.schema import Kind
from sfumato.data.table import Table
from sfumato.errors import ParameterError
from sfumato.kernels.arrays import Ints, Values
from sfumato.methods._centres import notes_on_centres, refusal, replace_by_centres


class UnivariateMicroaggregation(ColumnMethod):
    """What all microaggregation of single columns shares; a method writes ``partition``."""

    analyst_note = (
        "Values are centres of small groups of each column: usually means of numbers, existing values of "
        "dates and grades. Means hold or nearly hold, and variances shrink a little."
    )
    kinds = frozenset({Kind.CONTINUOUS, Kind.ORDINAL, Kind.DATE})
    cost = "n log n"
    randomness = Randomness(stochastic=False)

    k: int = param(
        5,
        "Smallest number of values in a group.",
        ge=1,
        unit="values",
        symbol="k",
        log=True,
        tune=(2, 5000),
        drive=True,
        hint="it cannot exceed the number of values; columns treated one by one need larger groups",
    )
    centre: PerColumn[Literal["auto", "mean", "median"]] = param(
        "auto",
        "What a group shows.",
        choices={
            "auto": "The mean of numbers, the median of ordinal columns and dates.",
            "mean": "The mean, for numbers and dates.",
            "median": "The median.",
        },
        hint="a mean needs numbers or dates; set it by column, or choose auto",
    )

    def partition(self, ordered: Values) -> Ints:
        """Give the group of each sorted value: from 0 up, each of k to 2k − 1 values."""
        raise NotImplementedError  # abstract: every method in the registry has its own

    def refuses(self, table: Table) -> str | None:
        """Refuse kinds it cannot take, and centres a column cannot have."""
        return super().refuses(table) or refusal(table, self.centre, name=self.name)

    def drive_range(self, table: Table) -> tuple[float, float]:
        """From pairs to groups of 5,000, or to one group of all values of the column that has fewest."""
        low, high = super().drive_range(table)
        numbers = [len(table) - int(table.missing(name).sum()) for name in table.chosen]
        fewest = max(min((number for number in numbers if number), default=1), 1)
        return min(low, fewest), min(high, fewest)

    def tally(self, table: Table) -> dict[str, float]:
        """How many missing values stand alone: in their column fewer than k are missing."""
        counts = [int(table.missing(name).sum()) for name in table.chosen]
        return {BELOW_K: sum(count for count in counts if count < self.k)} if any(counts) else {}

    def remarks(self, table: Table) -> tuple[str, ...]:
        """Which columns show values of people."""
        return notes_on_centres(table, self.centre)

    def protect_column(self, column: ColumnView, rng: np.random.Generator) -> Values:  # noqa: ARG002
        """Sort the values of one column, group them and show each group's centre."""
        if self.k > len(column):
            raise ParameterError(
                f"`k` of {self.name} must be at most the number of values of `{column.column.name}`, "
                f"{len(column)}, got: `{self.k}`",
                hint="choose a smaller k, or fewer strata",
            )
        values = column.values.astype(np.int64) if column.values.dtype.kind in "iu" else column.values
        order = np.argsort(values, kind="stable")
        ordered = values[order]
        weights = None if column.weights is None else column.weights[order]
        wish = self.centre[column.column.name]
        shown = np.empty_like(ordered)
        shown[order] = replace_by_centres(
            column.column, ordered, self.partition(ordered), wish=wish, weights=weights
        )
        return shown


class IndividualRanking(UnivariateMicroaggregation):
    r"""Sort each column and replace each value by the centre of its group of k neighbours.

    With :math:`x_{(1)} \le \dots \le x_{(n)}` sorted, each value shows the centre of its group:

    .. math::

        y_{(i)} = \frac{1}{k} \sum_{l = k (g-1) + 1}^{k g} x_{(l)}, \qquad g = \lceil i / k \rceil

    where the last group takes what is left over, so it has up to :math:`2k-1` values. The order of values is
    kept, and the loss is small; so is the protection.

    See Also
    --------
    OptimalMicroaggregation : groups of the least loss, at the same :math:`k`.
    Mdav : groups records by several columns together, which is k-anonymous on them.

    Notes
    -----
    **When to use.** Columns known to an intruder one at a time and with some error; large files where little
    may be lost.

    **Guarantees.** Every group has at least :math:`k` values and at most :math:`2k-1`. Means of continuous
    columns are unchanged up to rounding and what the schema declares; the order of values is kept, except for
    new ties.

    **Risk to know.** Columns are grouped separately, so combinations of protected values stay as rare as they
    were: the release is not k-anonymous on several columns, and an intruder who knows a record in several of
    them narrows each value down to the range of a group (Domingo-Ferrer and others 2002). Prefer MDAV for
    keys.

    **Ties, missing, weights.** Equal values keep the order of the file, so they may fall into two groups.
    Missing values stay missing and belong to no group. With a weight column centres are weighted, so weighted
    totals are kept; sizes count values. The median of a continuous column is the middle of its two, of an
    ordinal column or date the lower one, which occurs.

    **Cost.** :math:`O(n \log n)` per column.

    Examples
    --------
    >>> incomes = ColumnView(Column("income", Kind.CONTINUOUS), np.array([10.0, 60, 20, 50, 31, 40, 99]))
    >>> IndividualRanking(k=2).protect_column(incomes, np.random.default_rng(1)).tolist()
    [15.0, 69.66667, 15.0, 69.66667, 35.5, 35.5, 69.66667]
    """

    name = "individual-ranking"
    vetted = (
        "brute-forced: property/test_microaggregation.py::"
        "test_univariate_groups_keep_order_and_mean_and_hide_each_value_among_k"
    )
    synonyms = ("univariate microaggregation", "argus_microaggregation", "onedims")
    family = "microaggregation"
    title = "Individual ranking"
    references = ("defays1993", "domingoferrer2002", "domingoferrer2002attacks")

    def partition(self, ordered: Values) -> Ints:
        """Group by k in turn."""
        groups: Ints = kernels.groups.partitions.consecutive(len(ordered), self.k)
        return groups


class OptimalMicroaggregation(UnivariateMicroaggregation):
    r"""Sort each column and replace values by centres of groups of k to 2k − 1, with the least total loss.

    Of all partitions of a column into groups of at least :math:`k`, the one with the least

    .. math::

        \mathrm{SSE} = \sum_g \sum_{i \in g} (x_i - \bar x_g)^2

    is taken: exactly, not by a heuristic. Groups end at gaps in the sorted values instead of splitting
    clusters. An ordinal column is grouped by the position of its values.

    See Also
    --------
    IndividualRanking : groups of exactly k, whatever the gaps.
    Mdav : groups records by several columns together, which is k-anonymous on them.

    Notes
    -----
    **When to use.** Instead of individual ranking: at the same :math:`k` it never loses more.

    **Guarantees.** Every group has at least :math:`k` values and at most :math:`2k-1`; no partition into such
    groups has a smaller SSE, but for rounding. Means of continuous columns are unchanged up to rounding and
    what the schema declares; the order of values is kept, except for new ties.

    **Risk to know.** As for individual ranking: columns are grouped separately, so the release is not
    k-anonymous on several columns. Tighter groups give an intruder narrower ranges.

    **Ties, missing, weights.** Equal values keep the order of the file, so they may fall into two groups.
    Missing values stay missing and belong to no group. With a weight column centres are weighted, so weighted
    totals are kept; the loss that is made least, and sizes, count each value once. Medians as for individual
    ranking.

    **Cost.** :math:`O(n \log n)` per column, whatever :math:`k`.

    Examples
    --------
    >>> incomes = ColumnView(Column("income", Kind.CONTINUOUS), np.array([10.0, 12, 11, 50, 54, 90, 92]))
    >>> OptimalMicroaggregation(k=2).protect_column(incomes, np.random.default_rng(1)).tolist()
    [11.0, 11.0, 11.0, 52.0, 52.0, 91.0, 91.0]
    """

    name = "optimal-microaggregation"
    vetted = "brute-forced: property/test_microaggregation.py::test_optimal_is_the_best_of_all_partitions"
    synonyms = ("univariate microaggregation", "argus_microaggregation", "Hansen-Mukherjee")
    family = "microaggregation"
    title = "Optimal univariate microaggregation"
    references = ("hansen2003", "domingoferrer2002")

    def partition(self, ordered: Values) -> Ints:
        """Group with the least sum of squares within groups."""
        if (
            ordered.dtype.kind in "iu"
        ):  # instants may be more than a float can hold, the time between them is not
            ordered = ordered - ordered[0]
        groups: Ints = kernels.groups.partitions.optimal(ordered.astype(np.float64, copy=False), self.k)
        return groups
