"""Resampling: values are replaced by those of the same rank in bootstrap samples."""

from __future__ import annotations

import numpy as np

from sfumato.core.method import ColumnMethod, ColumnView, Gives
from sfumato.core.params import param
from sfumato.data.schema import Kind
from sfumato.kernels.arrays import Floats, Ints, Values


class Resampling(ColumnMethod):
    r"""Replace each value by the mean of the values of the same rank in bootstrap samples.

    From the values of a column, :math:`t` samples of :math:`n` are drawn independently and with
    replacement, and each is sorted. The record with the i-th smallest value gets

    .. math::

        y_{(i)} = \frac{1}{t} \sum_{h=1}^{t} x^{h}_{(i)}

    where :math:`x^{h}_{(i)}` is the i-th smallest value of sample :math:`h`. With one sample the values are
    original ones, some more than once and some not at all; with many, each value is the mean of its
    neighbours over about :math:`\sqrt{n}/2` ranks to both sides, and hardly random.

    See Also
    --------
    RankSwapping : keeps all values, and changes their order.
    CorrelatedNoise : moves values by noise, independently of their neighbours.

    Notes
    -----
    **When to use.** Continuous, ordinal or date columns whose order must be kept while most values become
    those of neighbours in rank. Light protection for dense columns.

    **Guarantees.** The order is kept: of two records with different values the lower one does not get the
    higher value. All values lie between the least and the greatest original one. The mean is that of the
    original in expectation; the variance is a little smaller, the more so for many samples.

    **Risk to know.** Ranks are kept, so an intruder who links by rank loses nothing but ties. More samples
    mean *less* protection. A record may get its own value back: with one sample the greatest and the least do
    so in two cases of three. The greatest value shrinks towards its neighbours, yet stays the greatest.

    **Ties, missing, weights.** Ties are ranked at random, and may be separated: some of the records that
    share a value get a value of their neighbours in rank. An ordinal column gets the category nearest to the
    mean position. Missing values stay where they are and take no part. Weights are not used.

    **Cost.** :math:`O(n \log n + t\,n)` per column; a sample is drawn in order and needs no sort.

    Examples
    --------
    >>> incomes = ColumnView(Column("income", Kind.CONTINUOUS), np.array([30.0, 10, 20, 60, 50, 40]))
    >>> replaced = Resampling(samples=1).protect_column(incomes, np.random.default_rng(7))
    >>> set(replaced.tolist()) < {10.0, 20.0, 30.0, 40.0, 50.0, 60.0}
    True
    >>> bool((np.diff(replaced[[1, 2, 0, 5, 4, 3]]) >= 0).all())
    True
    """

    name = "resampling"
    synonyms = ("bootstrap resampling",)
    family = "synthetic data"
    title = "Resampling"
    analyst_note = (
        "Values are smoothed along their ranks: order and means hold or nearly hold; tails and variances are "
        "slightly too small."
    )
    kinds = frozenset({Kind.CONTINUOUS, Kind.ORDINAL, Kind.DATE})
    gives = Gives(kept=("ranks",))
    references = ("heer1993", "domingoferrer1999", "hundepool2012")
    cost = "n log n"

    samples: int = param(
        1,
        "Number of samples to average; more samples protect less.",
        ge=1,
        le=1000,
        symbol="t",
        log=True,
        tune=(1, 100),
        drive=True,
        hint="1 protects most; beyond 100 the result hardly depends on chance",
    )

    def protect_column(self, column: ColumnView, rng: np.random.Generator) -> Values:
        """Replace the values of one column."""
        values, n = column.values, len(column)
        shuffled = rng.permutation(n)  # so that chance, not the file, says which of two ties is the lower
        order = shuffled[np.argsort(values[shuffled], kind="stable")]
        # Nanoseconds since 1970 are beyond the whole numbers of a float, those since the first value are not.
        origin = values[order[0]] if values.dtype.kind in "iu" else 0.0
        ordered = (values[order] - origin).astype(np.float64)
        means = _mean_order_statistics(ordered, self.samples, rng)
        if values.dtype.kind in "iu":
            means = np.rint(means)
        replaced = np.empty_like(values)
        replaced[order] = means.astype(values.dtype) + origin
        return replaced


def _mean_order_statistics(ordered: Floats, n_samples: int, rng: np.random.Generator) -> Floats:
    """Average the sorted bootstrap samples of sorted values, rank by rank."""
    means = ordered[_sorted_places(len(ordered), rng)]
    for count in range(2, n_samples + 1):
        # A running mean leaves a value that all samples agree on as it is, to the last digit; each part is
        # divided by itself, for the difference of the largest numbers is beyond them.
        means += ordered[_sorted_places(len(ordered), rng)] / count - means / count
    # The means rise and stay in range but for rounding, which must not break ties into a false order.
    return np.clip(np.maximum.accumulate(means), ordered[0], ordered[-1])


def _sorted_places(n: int, rng: np.random.Generator) -> Ints:
    """Draw n of n places with replacement, in ascending order.

    Sums of n + 1 exponential steps, divided by the last, are distributed as n sorted uniform numbers.
    """
    sums = np.cumsum(rng.standard_exponential(n + 1))
    places: Ints = (sums[:-1] * (n / sums[-1])).astype(np.int64)
    np.minimum(places, n - 1, out=places)  # rounding may reach the end
    return places
