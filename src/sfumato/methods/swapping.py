"""Swapping: records exchange values, so every column keeps exactly its values."""

from __future__ import annotations

import numpy as np

from sfumato import kernels
from sfumato.core.method import ColumnMethod, ColumnView
from sfumato.core.params import param
from sfumato.data.schema import Kind
from sfumato.kernels.arrays import Ints, Values
from sfumato.methods._analyst_notes import COLUMNS_KEPT


class RankSwapping(ColumnMethod):
    r"""Swap each value with one of similar rank.

    Each protected column keeps exactly its original values, and so every univariate statistic; only the
    assignment of values to records changes. The smaller the window, the closer each record stays to its own
    value, and the better joint statistics are kept — and the more an intruder can infer.

    Let :math:`x_{(1)} \le \dots \le x_{(n)}` be the sorted values and

    .. math::

        w = \max\left(1, \left\lfloor \frac{p\,n}{100} \right\rfloor\right)

    the reach of a window of :math:`p` per cent. From the lowest rank up, each rank :math:`i` not yet swapped
    draws a partner :math:`j`, uniformly from the ranks not yet swapped with :math:`i < j \le i + w`, and
    :math:`x_{(i)}` and :math:`x_{(j)}` are exchanged. A rank without a partner keeps its value.

    See Also
    --------
    RankSwappingDistribution : the same without a window that an intruder can use.
    RankSwappingBuckets : likewise, by buckets of ranks.
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
    >>> incomes = ColumnView(Column("income", Kind.CONTINUOUS), np.array([10.0, 20, 30, 40, 50, 60]))
    >>> swapped = RankSwapping(window=50).protect_column(incomes, np.random.default_rng(7))
    >>> sorted(swapped.tolist())
    [10.0, 20.0, 30.0, 40.0, 50.0, 60.0]
    """

    name = "rank-swapping"
    vetted = "brute-forced: unit/methods/test_swapping.py::test_keeps_the_multiset_the_holes_and_the_window"
    synonyms = ("rankSwap", "argus_rankswap")
    family = "swapping and shuffling"
    title = "Rank swapping"
    analyst_note = COLUMNS_KEPT
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
        reach = max(1, int(len(column) * self.window / 100))
        return swap_values(column.values, kernels.ranks.swap_partners(len(column), reach, rng))


def swap_values(values: Values, partners: Ints) -> Values:
    """Let the values at rank i and at rank ``partners[i]`` change places; ties rank as the records stand."""
    order = np.argsort(values, kind="stable")
    swapped = np.empty_like(values)
    swapped[order] = values[order][partners]
    return swapped


class RankSwappingDistribution(ColumnMethod):
    r"""Swap each value with one at a normally distributed distance in rank.

    As in rank swapping every column keeps exactly its values, but no window bounds how far a value moves: an
    intruder who knows :math:`p` cannot rule out any record.

    Let :math:`x_{(1)} \le \dots \le x_{(n)}` be the sorted values. From the lowest rank up, each rank
    :math:`i` not yet swapped draws

    .. math::

        r \sim N\!\left(w, w^2\right), \qquad w = \frac{p\,n}{100},

    until rank :math:`i + r`, rounded, exists and is not yet swapped; then :math:`x_{(i)}` and :math:`x_{(i +
    r)}` are exchanged. After 32 failed draws the partner is the first free rank from a uniform draw out of
    the next :math:`\max(1, 2w)` ranks up, or the highest free one. Of an odd number of values one keeps its
    place.

    See Also
    --------
    RankSwapping : bounds how far a value goes.
    RankSwappingBuckets : has no bound either, and is coarser at short distances.

    Notes
    -----
    **When to use.** Where `RankSwapping` would do and the parameter is, or may become, known.

    **Guarantees.** The multiset of values is unchanged. About one value in forty moves farther than
    :math:`3w`.

    **Risk to know.** Most values still move by little more than :math:`w` ranks, so distances link records
    much as they do after rank swapping; only the attack that intersects windows fails. The literature
    leaves open which normal distribution is meant: mean and deviation :math:`w` are those that reproduce
    the published numbers of links on the Census set; half of it gives far more links.

    **Ties, missing, weights.** Ties are ordered by record and swapped like other values, so columns with
    few distinct values change little. Missing values stay where they are and take no rank. Weights stay
    with their record.

    **Cost.** :math:`O(n \log n)` per column.

    Examples
    --------
    >>> incomes = ColumnView(Column("income", Kind.CONTINUOUS), np.array([10.0, 20, 30, 40, 50, 60]))
    >>> swapped = RankSwappingDistribution(distance=30).protect_column(incomes, np.random.default_rng(7))
    >>> sorted(swapped.tolist())
    [10.0, 20.0, 30.0, 40.0, 50.0, 60.0]
    """

    name = "rank-swapping-distribution"
    vetted = "brute-forced: unit/methods/test_swapping_variants.py::test_distances_follow_the_definition"
    family = "swapping and shuffling"
    title = "Rank swapping by distance (p-distribution)"
    analyst_note = COLUMNS_KEPT
    kinds = RankSwapping.kinds
    references = ("nin2008", "herranz2015")
    cost = "n log n"

    distance: float = param(
        5.0,
        "Mean and standard deviation of the distance in rank, in per cent of the records.",
        gt=0,
        le=100,
        unit="%",
        symbol="p",
        log=True,
        tune=(0.1, 100),
        drive=True,
        hint="it is a percentage of the records; 2 to 10 is usual",
    )

    def protect_column(self, column: ColumnView, rng: np.random.Generator) -> Values:
        """Swap the values of one column."""
        distance = len(column) * self.distance / 100
        return swap_values(column.values, kernels.ranks.distant_partners(len(column), distance, rng))


class RankSwappingBuckets(ColumnMethod):
    r"""Swap each value with one from its own bucket of ranks or, less often, from a more distant one.

    As in rank swapping every column keeps exactly its values, but no window bounds how far a value goes.

    The ranks are cut into :math:`p = \max(1, 100 / w)` buckets of equal size (to within one), where
    :math:`w` is the width in per cent of the records. From the lowest rank up, each rank not yet swapped,
    in bucket :math:`r`, draws a bucket :math:`s` with

    .. math::

        P(s \mid r) = \frac{1}{K} \cdot \frac{1}{2^{\,s - r + 1}}, \qquad s = r, r + 1, \dots, p,

    where :math:`K` makes the probabilities sum to one, and then its partner uniformly from the ranks of
    bucket :math:`s` not yet swapped. If there are none left, the next higher bucket with free ranks is used,
    or else the highest one. Of an odd number of values one keeps its place.

    See Also
    --------
    RankSwapping : bounds how far a value goes.
    RankSwappingDistribution : the same aim with a normal distance.

    Notes
    -----
    **When to use.** Where `RankSwapping` would do and the parameter is, or may become, known.

    **Guarantees.** The multiset of values is unchanged. A value moves to a bucket at least :math:`d` buckets
    away with a probability of about :math:`2^{-d}`.

    **Risk to know.** About half of the values stay in their bucket, and an intruder who guesses this is right
    as often. Nin, Herranz and Torra set the number of buckets :math:`p`; here the width is set, so that a
    larger value protects more and is comparable with the window of rank swapping.

    **Ties, missing, weights.** Ties are ordered by record and swapped like other values, so columns with
    few distinct values change little. Missing values stay where they are and take no rank. Weights stay
    with their record.

    **Cost.** :math:`O(n \log n)` per column.

    Examples
    --------
    >>> incomes = ColumnView(Column("income", Kind.CONTINUOUS), np.array([10.0, 20, 30, 40, 50, 60]))
    >>> swapped = RankSwappingBuckets(width=50).protect_column(incomes, np.random.default_rng(7))
    >>> sorted(swapped.tolist())
    [10.0, 20.0, 30.0, 40.0, 50.0, 60.0]
    """

    name = "rank-swapping-buckets"
    vetted = (
        "brute-forced: unit/methods/test_swapping_variants.py::test_buckets_follow_the_definition_exactly"
    )
    family = "swapping and shuffling"
    title = "Rank swapping by buckets (p-buckets)"
    analyst_note = COLUMNS_KEPT
    kinds = RankSwapping.kinds
    references = ("nin2008",)
    cost = "n log n"

    width: float = param(
        5.0,
        "Width of a bucket of ranks, in per cent of the records.",
        gt=0,
        le=100,
        unit="%",
        symbol="w",
        log=True,
        tune=(0.1, 100),
        drive=True,
        hint="it is a percentage of the records; 5 makes 20 buckets",
    )

    def protect_column(self, column: ColumnView, rng: np.random.Generator) -> Values:
        """Swap the values of one column."""
        narrowest = 100 / max(len(column), 1)
        n_buckets = max(1, round(100 / max(self.width, narrowest)))
        return swap_values(column.values, kernels.ranks.bucket_partners(len(column), n_buckets, rng))
