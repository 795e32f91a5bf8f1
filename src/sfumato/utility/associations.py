"""Utility of pairs of columns: how far associations in the release are from those in the original."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Literal, TypeAlias

import numpy as np

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Needs, Score, Tells
from sfumato.core.params import param
from sfumato.core.run import Run
from sfumato.data.schema import ORDERED
from sfumato.kernels.arrays import Floats
from sfumato.utility._binnings import BinnedColumn, bin_column, binning_of, joint_masses, reading_of
from sfumato.utility._correlations import correlations_of_both
from sfumato.utility._marginals import DistributionMeasure, Generalised, read_both
from sfumato.utility.distributions import BINS_HELP, GENERALISED, total_variation

Pair: TypeAlias = tuple[str, str]


class PairMeasure(DistributionMeasure):
    """A measure of each pair of columns: what its kind have in common."""

    bounds = (0.0, 1.0)
    needs = Needs(records=True, columns=2)

    over: Literal["mean", "worst"] = param(
        "mean",
        "How the pairs' differences are combined.",
        choices={"mean": "Their mean.", "worst": "The worst pair counts."},
    )

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Compare the pairs; a column has the mean of its pairs."""
        names = self.columns(evidence)
        found = self.differences(evidence, names, run)
        if not found:
            return Score.not_estimable("no pair of columns has two records with both values")
        together = np.mean if self.over == "mean" else np.max
        by_column = {
            name: float(np.mean(own))
            for name in names
            if (own := [value for pair, value in found.items() if name in pair])
        }
        worst = max(found, key=lambda pair: (found[pair], pair))
        return Score(
            value=float(together(list(found.values()))),
            by_column=by_column,
            details={
                "columns": len(names),
                "columns_left_out": len(evidence.shared_columns) - len(names),
                "pairs": len(found),
                "worst_pair": " × ".join(worst),
                "worst": found[worst],
            },
        )

    def differences(self, evidence: Evidence, names: tuple[str, ...], run: Run) -> Mapping[Pair, float]:
        """The difference of each pair."""
        raise NotImplementedError  # abstract: every measure in the registry has its own


# By contingency tables ----------------------------------------------------------------------------------


class ContingencyMeasure(PairMeasure):
    """A measure of two-way tables of counts: what its kind have in common."""

    cost = "n d²"

    bins: int = param(10, BINS_HELP, ge=2, le=1000)
    categories: int = param(
        50, "Number of categories kept in a column; the rarest of the original become one.", ge=2, le=1000
    )
    generalised: Generalised = param("expected", "What a generalised cell counts as.", choices=GENERALISED)

    def differences(self, evidence: Evidence, names: tuple[str, ...], run: Run) -> Mapping[Pair, float]:
        """Compare the two tables of each pair."""
        tables = evidence.remember(
            ("contingency", names, self.bins, self.categories, self.generalised),
            lambda: self._tables(evidence, names, run),
        )
        return {pair: self.difference(*both) for pair, both in tables.items()}

    def difference(self, first: Floats, second: Floats) -> float:
        """The difference of two joint distributions over the same cells."""
        raise NotImplementedError  # abstract: every measure in the registry has its own

    def _tables(
        self, evidence: Evidence, names: tuple[str, ...], run: Run
    ) -> dict[Pair, tuple[Floats, Floats]]:
        """The joint distributions of all pairs, in the original and in the release."""
        assert evidence.protected is not None  # `refuses` saw to it
        columns: list[dict[str, BinnedColumn]] = [{}, {}]
        for name in names:
            kind = evidence.original.schema[name].kind
            readings = read_both(evidence.original, evidence.protected, name)
            how = reading_of(kind, self.generalised)
            spreads = [reading.distribution(how) for reading in readings]
            binning = binning_of(spreads[0], spreads[1], kind, bins=self.bins, most=self.categories)
            for side, reading in zip(columns, readings, strict=True):
                side[name] = bin_column(reading, binning, how)
        weights = evidence.original.weights, evidence.protected.weights
        pairs = list(combinations(names, 2))
        return {
            (a, b): (
                joint_masses(columns[0][a], columns[0][b], weights[0]),
                joint_masses(columns[1][a], columns[1][b], weights[1]),
            )
            for a, b in run.track(self.title, pairs, total=len(pairs))
        }


class ContingencyDifference(ContingencyMeasure):
    r"""Share of records that are in another cell of a two-way table, mean over pairs of columns.

    .. math::

        \delta = \frac{1}{2} \sum_{ab} |p_{ab} - q_{ab}|

    where :math:`p_{ab}` and :math:`q_{ab}` are the shares of records with category (or bin) :math:`a` of one
    column and :math:`b` of the other, in the original and in the release: the total variation distance.
    Continuous and date columns are cut into ``bins`` at the original's quantiles.

    See Also
    --------
    TotalVariation : the same for single columns.
    CramersVDifference : only how strongly two columns go together, whichever cells it is in.

    Notes
    -----
    **How to read it.** The largest error in the share of any set of cells. 0 means the same tables, 1 that no
    record of the release is in a cell of the original. It is at least the distance of either column alone.

    **Doubt.** Exact for these cells; within them nothing is seen. With many cells and few records much of it
    is chance: two samples of the same population differ too. Each table counts by its own weights, if it has
    any. Generalised values are spread evenly over what they stand for, as if columns were independent within
    them, or (not nominal ones) taken at their middle.

    **Missing.** A category of its own, so suppression costs its share.

    **Cost.** Sorting each column once, and one pass for each pair of columns.
    """

    name = "contingency-difference"
    synonyms = ("infoLoss", "comparison of tables")
    family = "associations"
    title = "Difference of two-way tables"
    references = ("gibbs2002", "hundepool2012")

    def difference(self, first: Floats, second: Floats) -> float:
        """Half the sum of absolute differences."""
        return total_variation(first, second)


class CramersVDifference(ContingencyMeasure):
    r"""Difference of the association between two columns (Cramér's V), mean over pairs of columns.

    .. math::

        |V_X - V_Y|, \qquad V = \sqrt{\frac{1}{\min(r, s) - 1}
            \left(\sum_{ab} \frac{p_{ab}^2}{p_{a\cdot} \, p_{\cdot b}} - 1\right)}

    where :math:`p_{ab}` are the shares of a two-way table with :math:`r` and :math:`s` categories that occur,
    of the original :math:`X` or the release :math:`Y`. Continuous and date columns are cut into ``bins`` at
    the original's quantiles.

    See Also
    --------
    MutualInformationDifference : the same by information.
    CorrelationDifference : for numbers whose association is along a line.

    Notes
    -----
    **How to read it.** 0 means that all associations are as strong as they were; 1 that one is complete in
    one table and absent in the other. Only the strength counts, not the form: two tables with the same V can
    have different cells.

    **Doubt.** Exact for these tables. V is biased upwards where cells are many and records few, in both
    tables alike if they are of one size. Each table counts by its own weights, if it has any. Generalised
    values are spread evenly over what they stand for, or (not nominal ones) taken at their middle.

    **Missing.** A category of its own: values that are missing together are an association too. A column with
    one category goes with none (V = 0).

    **Cost.** Sorting each column once, and one pass for each pair of columns.
    """

    name = "cramers-v-difference"
    vetted = "brute-forced: unit/utility/test_associations.py::test_v_agrees_with_scipy"
    family = "associations"
    tells = Tells(places={"report": 2})
    title = "Difference of Cramér's V"
    references = ("cramer1946",)

    def difference(self, first: Floats, second: Floats) -> float:
        """The difference of both."""
        return abs(cramers_v(first) - cramers_v(second))


class MutualInformationDifference(ContingencyMeasure):
    r"""Difference of the mutual information between two columns, mean over pairs of columns.

    .. math::

        |I_X - I_Y|, \qquad I = \sum_{ab} p_{ab} \log_2 \frac{p_{ab}}{p_{a\cdot} \, p_{\cdot b}}

    where :math:`p_{ab}` are the shares of a two-way table of the original :math:`X` or the release
    :math:`Y`. With ``normalised`` each :math:`I` is divided by :math:`\sqrt{H_a H_b}`, the geometric mean of
    the two columns' entropies, and lies between 0 and 1. Continuous and date columns are cut into ``bins`` at
    the original's quantiles.

    See Also
    --------
    CramersVDifference : the same by the chi-square statistic.

    Notes
    -----
    **How to read it.** In bits, or as a share of what could be told. 0 means that each column tells as much
    of each other as it did, though perhaps something else.

    **Doubt.** Exact for these tables; like V it is biased upwards where cells are many and records few. Each
    table counts by its own weights, if it has any. Generalised values are spread evenly over what they stand
    for, or (not nominal ones) taken at their middle.

    **Missing.** A category of its own. A column with one category tells nothing (I = 0).

    **Cost.** Sorting each column once, and one pass for each pair of columns.
    """

    name = "mutual-information-difference"
    family = "associations"
    title = "Difference of mutual information"
    bounds = (0.0, np.inf)
    references = ("cover2006", "strehl2002")

    normalised: bool = param(True, "Whether information counts as a share of the possible, not in bits.")

    def difference(self, first: Floats, second: Floats) -> float:
        """The difference of both."""
        one, other = (mutual_information(each, normalised=self.normalised) for each in (first, second))
        return abs(one - other)


def cramers_v(joint: Floats) -> float:
    """Cramér's V of a joint distribution; 0 if one side is a constant."""
    rows, columns = joint.sum(axis=1), joint.sum(axis=0)
    fewer = min(np.count_nonzero(rows), np.count_nonzero(columns))
    if fewer < 2:  # noqa: PLR2004  — a constant
        return 0.0
    expected = np.outer(rows, columns)
    there = expected > 0
    # From the differences: the sum of squares less 1 would leave nothing of a weak association but rounding.
    phi = float(((joint - expected)[there] ** 2 / expected[there]).sum())
    return float(min(1.0, np.sqrt(phi / (fewer - 1))))


def mutual_information(joint: Floats, *, normalised: bool) -> float:
    """Mutual information of a joint distribution, in bits or as a share of the columns' entropies."""
    rows, columns = joint.sum(axis=1), joint.sum(axis=0)
    there = joint > 0
    shared = float((joint[there] * np.log2(joint[there] / np.outer(rows, columns)[there])).sum())
    shared = max(shared, 0.0)
    if not normalised:
        return shared
    most = np.sqrt(_entropy(rows) * _entropy(columns))
    return float(min(1.0, shared / most)) if most > 0 else 0.0


def _entropy(shares: Floats) -> float:
    there = shares[shares > 0]
    return max(0.0, -float((there * np.log2(there)).sum()))


# By correlations ----------------------------------------------------------------------------------------


class CorrelationDifference(PairMeasure):
    r"""Difference of correlations, mean over pairs of columns.

    .. math::

        |r_X - r_Y|, \qquad r = \frac{\sum_i w_i (a_i - \bar a)(b_i - \bar b)}
            {\sqrt{\sum_i w_i (a_i - \bar a)^2 \sum_i w_i (b_i - \bar b)^2}}

    over the records that have both values, with weights :math:`w` (or 1), in the original :math:`X` and the
    release :math:`Y`. Ordinal columns count by position; with ``by=rank`` all do by their mid-ranks
    (Spearman).

    See Also
    --------
    IntervalOverlap : with ``of=correlation``, in view of how well the original itself knows it.
    CramersVDifference : for categories, and associations of any form.

    Notes
    -----
    **How to read it.** 0 means that all correlations are as they were; 2 is the most, from 1 to −1. Noise
    shrinks correlations towards 0, microaggregation swells them.

    **Doubt.** Exact. With ``expected`` the variance within generalised values counts too, as if columns were
    independent within them, so that correlations shrink; ranks are those of middles.

    **Missing.** Each pair uses the records that have both values. A correlation with a constant counts as 0,
    and so does one that the release has no two records for.

    **Cost.** A few passes, and sorting where ranks are wanted.
    """

    name = "correlation-difference"
    vetted = "brute-forced: unit/utility/test_associations.py::test_correlations_agree_with_numpy"
    synonyms = ("comparison of correlations", "comparison of covariances", "correlations")
    family = "associations"
    tells = Tells(places={"default": 0})
    title = "Difference of correlations"
    bounds = (0.0, 2.0)
    kinds = ORDERED
    references = ("domingoferrer2001", "hundepool2012")
    cost = "n d²"

    by: Literal["value", "rank"] = param(
        "value",
        "What is correlated.",
        choices={"value": "Values (Pearson).", "rank": "Mid-ranks (Spearman)."},
    )
    generalised: Generalised = param("expected", "What a generalised cell counts as.", choices=GENERALISED)

    def differences(self, evidence: Evidence, names: tuple[str, ...], run: Run) -> Mapping[Pair, float]:
        """Compare the two correlations of each pair."""
        both = correlations_of_both(evidence, names, run, by=self.by, generalised=self.generalised)
        (first, n_first), (second, _) = both
        return {
            (names[i], names[j]): float(abs(first[i, j] - second[i, j]))
            for i, j in combinations(range(len(names)), 2)
            if n_first[i, j] > 1  # of a pair that the release has no values of, all correlation is lost
        }
