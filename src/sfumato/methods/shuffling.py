"""Shuffling: the values of a column move between records at random, near their rank or by a model."""

from __future__ import annotations

import numpy as np
import polars as pl

from sfumato import kernels
from sfumato.core.method import ColumnMethod, ColumnView, set_protected_values
from sfumato.core.params import param
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.core.state import State
from sfumato.data.schema import Kind
from sfumato.data.table import Table
from sfumato.kernels.arrays import Floats, Values
from sfumato.methods._analyst_notes import COLUMNS_KEPT
from sfumato.methods._conditional_method import GivenMethod
from sfumato.methods._copula import Copula, NormalScores

#: Narrower windows would leave a value alone where the number of records is odd.
_FEWEST_IN_WINDOW = 3


class RankShuffling(ColumnMethod):
    r"""Shuffle values among records of similar rank.

    Each protected column keeps exactly its original values, and so every univariate statistic; only the
    assignment of values to records changes.

    Let :math:`x_{(1)} \le \dots \le x_{(n)}` be the sorted values. A window of

    .. math::

        w = \max\left(3, \left\lfloor \frac{q\,n}{100} \right\rfloor\right)

    ranks starts at the lowest, and its values are shuffled, all orders being equally likely. Then the window
    moves up by :math:`s \le w` ranks and is shuffled again, until it has covered the highest rank. With
    :math:`s = w`, the default, windows are adjacent blocks; with :math:`s < w` they overlap, and a value may
    move with the window from one to the next.

    See Also
    --------
    RankSwapping : exchanges values in pairs within a window.
    DataShuffling : shuffles whole columns, and keeps the correlations by a model.

    Notes
    -----
    **When to use.** Continuous, ordinal or date columns whose distribution must be released exactly.
    Columns are shuffled independently; correlations shrink as :math:`q` grows.

    **Guarantees.** The multiset of values is unchanged. With :math:`s = w` no value moves by more than
    :math:`w - 1` ranks. With :math:`s < w` none moves down by more than that; upwards there is no bound,
    but the probability of a move by more than :math:`w + j s` ranks falls like :math:`(1 - s/w)^j`.

    **Risk to know.** The bound on the move is itself information, as in rank swapping: do not publish
    :math:`q`. With adjacent blocks the order of the blocks is kept, and an intruder who knows it learns a
    value to within a block. On the 1,080 records and 13 columns of the set Census, windows of 2, 3 and 4 per
    cent leave about 1,068, 1,053 and 1,038 records linked to their own by distance; the literature reports
    90, 41 and 21, which the procedure described there does not give.

    **Ties, missing, weights.** Ties are ordered by record and shuffled like other values, so columns with
    few distinct values change little. Missing values stay where they are and take no rank. Weights stay
    with their record.

    **Cost.** :math:`O(n \log n + n\,w/s)` per column.

    Examples
    --------
    >>> incomes = ColumnView(Column("income", Kind.CONTINUOUS), np.array([10.0, 20, 30, 40, 50, 60]))
    >>> shuffled = RankShuffling(window=50).protect_column(incomes, np.random.default_rng(7))
    >>> sorted(shuffled[:3].tolist()), sorted(shuffled[3:].tolist())
    ([10.0, 20.0, 30.0], [40.0, 50.0, 60.0])
    """

    name = "rank-shuffling"
    vetted = "brute-forced: property/test_shuffling.py::test_rank_shuffling_keeps_values_holes_and_the_bound"
    synonyms = ("shuffling",)
    family = "swapping and shuffling"
    title = "Rank shuffling"
    analyst_note = COLUMNS_KEPT
    kinds = frozenset({Kind.CONTINUOUS, Kind.ORDINAL, Kind.DATE})
    references = ("herranz2009", "herranz2014")
    cost = "n log n"

    window: float = param(
        5.0,
        "Ranks that are shuffled together, in per cent of the records.",
        gt=0,
        le=100,
        unit="%",
        symbol="q",
        log=True,
        tune=(0.1, 100),
        drive=True,
        hint="it is a percentage of the records; 5 is the usual start",
    )
    slide: float = param(
        100.0,
        "How far the window moves on after each shuffle, in per cent of the window.",
        ge=5,
        le=100,
        unit="%",
        symbol="s",
        hint="100 is block by block; 50 shuffles every value twice, 5 twenty times",
        advanced=True,
    )

    def protect_column(self, column: ColumnView, rng: np.random.Generator) -> Values:
        """Shuffle the values of one column."""
        n = len(column)
        width = min(max(_FEWEST_IN_WINDOW, int(n * self.window / 100)), n)
        slide = max(1, round(width * self.slide / 100))
        order = np.argsort(column.values, kind="stable")
        sources = kernels.shuffles.shuffle_in_windows(n, width, slide, rng)
        shuffled = np.empty_like(column.values)
        shuffled[order] = column.values[order][sources]
        return shuffled


class DataShuffling(GivenMethod):
    r"""Shuffle whole columns by a copula model that nearly keeps their rank correlations.

    Each protected column keeps exactly its original values, and the release keeps, in large samples, the rank
    correlations among the protected columns :math:`X` and with the columns :math:`S` that are ``given`` and
    released as they are. The assignment of values to records is drawn from the model alone.

    Values become normal scores :math:`z = \Phi^{-1}\left((r - \frac12)/n\right)` of their ranks :math:`r`,
    and rank correlations :math:`\rho` the correlations :math:`2 \sin(\pi \rho / 6)` of a normal copula;
    these make up the matrix :math:`R`. Then

    .. math::

        Z^* = B\,z_S + \sqrt{1 - \delta^2}\,(z_X - B\,z_S) + \delta\,\varepsilon, \qquad
        B = R_{XS} R_{SS}^{-1}, \quad \varepsilon \sim N(0,\; R_{XX} - B R_{SX})

    and the record whose :math:`Z^*` is the i-th smallest of a column gets the i-th smallest value of that
    column. With an independence :math:`\delta` of 1, the default, this is the method of Muralidhar and
    Sarathy: given :math:`S`, the release depends on the original values only through their distribution.
    Smaller :math:`\delta` keep part of a record's own values, which is our extension.

    See Also
    --------
    RankShuffling : shuffles near the own rank, without a model.
    CorrelatedNoise : keeps correlations by noise that has them.

    Notes
    -----
    **When to use.** Amounts whose distributions must be released exactly and whose monotone relations matter
    more than any one record. Given columns are optional: without them the columns are drawn jointly,
    independent of the others, which is the way to protect all columns of a table.

    **Guarantees.** The multiset of values is unchanged. The normal copula is a model: relations that rise
    and then fall, and sums of parts, are lost.

    **Risk to know.** What the given columns reveal about the protected ones stays in the release, however
    large :math:`\delta`: a given column that is nearly a copy of a protected one reveals it. A category of
    few records is fitted to these; recode it first.

    **Ties, missing, weights.** Ties get the mean of their ranks, and are separated at random. A missing value
    stays where it is and takes no rank; a missing given value counts as an average one. Correlations use the
    records that have both values; if they are inconsistent, the nearest consistent ones are used. Given
    nominal columns enter as one indicator for each category but the first, at most 200 in all. There must be
    ten records for each given column or indicator. Weights are not used.

    **Cost.** :math:`O(d\,n \log n + d^2 n)` for :math:`d` columns and indicators.

    Examples
    --------
    >>> from sfumato.core.params import Columns
    >>> age = np.arange(20.0, 60.0)
    >>> frame = pl.DataFrame({"age": age, "income": 10 * age})
    >>> columns = (Column("age", Kind.CONTINUOUS), Column("income", Kind.CONTINUOUS))
    >>> table = Table(frame, Schema(columns), targets=("income",))
    >>> release = DataShuffling(given=Columns(["age"])).protect(table, Run(seed=1))
    >>> release.table.frame.equals(frame)  # age tells all of income, and the model knows
    True
    >>> shuffled = DataShuffling().protect(table, Run(seed=1)).table.frame["income"]
    >>> shuffled.equals(frame["income"]), shuffled.sort().equals(frame["income"].sort())
    (False, True)
    """

    name = "data-shuffling"
    vetted = "brute-forced: unit/methods/test_shuffling.py::test_data_shuffling_equals_the_naive_version"
    synonyms = ("shuffle", "shuffling")
    family = "swapping and shuffling"
    title = "Data shuffling"
    analyst_note = (
        "Each column keeps its values; rank correlations hold approximately, other relations and small "
        "groups do not."
    )
    kinds = frozenset({Kind.CONTINUOUS, Kind.ORDINAL, Kind.DATE})
    references = ("muralidhar2006", "muralidhar2006b")
    cost = "n log n"
    state = State(per_record=28, per_cell=9)

    def protect(self, table: Table, run: Run) -> Release:
        """Draw scores from the model, and give the values to the records in the order of the scores."""
        if not len(table):
            return Release.unchanged(table)
        scores = NormalScores.of(table, self.given_columns(table), run)
        draws = Copula.fit(scores).draw(scores, table.chosen, self.independence, run)
        protected = table
        for position, name in enumerate(run.track(self.title, table.chosen, total=len(table.chosen))):
            fresh = _assign_by_rank(table, name, scores.shares[:, position], draws[:, position])
            protected = protected.with_values(name, fresh)
        return Release.record_by_record(protected)


def _assign_by_rank(table: Table, name: str, shares: Floats, draws: Floats) -> pl.Series:
    """Give the i-th smallest value of a column to the record with the i-th smallest draw."""
    present = np.flatnonzero(~np.isnan(shares))
    sources = np.empty(len(present), dtype=np.int64)
    sources[np.argsort(draws[present], kind="stable")] = present[np.argsort(shares[present], kind="stable")]
    return set_protected_values(table, name, table.frame[name].gather(pl.Series(sources, dtype=pl.UInt32)))
