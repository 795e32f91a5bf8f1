"""Risk by intervals: values that lie near what was released, and links among the records that lie near.

An interval may be a share of a column's standard deviation or of its ranks.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from sfumato import kernels
from sfumato.core.evidence import Evidence
from sfumato.core.measure import Counting, Measure, Needs, Score, Tells
from sfumato.core.params import param
from sfumato.core.run import Run
from sfumato.data.codings import codes_of_both, numbers_of_both
from sfumato.data.persons import persons_of
from sfumato.data.schema import ORDERED, Kind
from sfumato.data.table import Table
from sfumato.kernels.arrays import Floats
from sfumato.risk._spaces import LinkageMeasure, TrueLinkMeasure, space_of, why_generalised
from sfumato.risk.linkage import DISTANCE_TOLERANCE, around_median, deviation, expected_links, mean_of_best

By = Literal["deviation", "rank"]
_BY_MEANS = {
    "deviation": "The standard deviation of the column.",
    "rank": "The number of records: the interval is in ranks.",
}


def limits(values: Floats, released: Floats, *, width: float, by: By) -> tuple[Floats, Floats]:
    """The interval around each released value, half of ``width`` per cent on either side; NaN where missing.

    Where all ``values`` are the same (they may be of one person), the deviation is that of both together. Of
    ranks, the interval goes from the value so many ranks lower to the one so many higher, counted from the
    ends of a group of ties.
    """
    if by == "deviation":
        half = width / 200 * (deviation(values) or deviation(np.concatenate((values, released))))
        reach = half + DISTANCE_TOLERANCE * (np.abs(released) + half)
        return released - reach, released + reach
    ordered = np.sort(released[~np.isnan(released)])
    if not len(ordered):
        return released.copy(), released.copy()
    n_ranks = int(width * len(ordered) / 200)
    firsts = np.searchsorted(ordered, released, side="left") - n_ranks
    lasts = np.searchsorted(ordered, released, side="right") - 1 + n_ranks
    gone = np.isnan(released)
    lows = ordered[np.clip(firsts, 0, len(ordered) - 1)]
    highs = ordered[np.clip(lasts, 0, len(ordered) - 1)]
    return np.where(gone, np.nan, lows), np.where(gone, np.nan, highs)


class IntervalDisclosure(Measure):
    r"""Share of original values that lie in an interval around their released value.

    .. math::

        ID = \frac{1}{V} \sum_{c=1}^{V} \frac{|\{n : x_{n,c} \in [l(y_{n,c}), u(y_{n,c})]\}|}{N}

    where :math:`y_{n,c}` is the released value of the record, and the interval around it has a ``width`` of
    :math:`p` per cent: of the column's standard deviation (:math:`y \pm \frac{p}{200} s`), or of its ranks
    (from the released value :math:`\lfloor p N / 200 \rfloor` ranks lower to that as many higher). With
    ``steps`` it is the mean over that many widths, up to ``width``.

    Notes
    -----
    **How to read it.** The intruder needs nothing but the release: 1 means that whoever takes a released
    value for the true one is never off by more than half the width. ``baseline`` is what the values of a
    record drawn blindly give. ``by_column`` shows which columns are protected least.

    **Doubt.** Exact.

    **Missing.** An original value that is missing is left out: there is nothing to disclose. A released one
    that is missing discloses nothing.

    **Units.** Persons are counted, each by the record that is disclosed most, column by column.

    **Cost.** :math:`O(n \log n)` per column and step.
    """

    name = "interval-disclosure"
    vetted = "brute-forced: unit/risk/test_intervals.py::test_baseline_is_that_of_all_pairs"
    synonyms = ("dRisk",)
    family = "attribute disclosure"
    title = "Interval disclosure"
    tells = Tells(record_sentence="{:.0%} of its values lie in the interval around the released value")
    aspect = "risk"
    threat = "inference"
    better = "low"
    bounds = (0.0, 1.0)
    kinds = ORDERED
    references = ("domingoferrer2001", "agrawal2000")
    cost = "n log n"
    needs = Needs(mapping=True)
    counts = Counting(averages_columns=True, compares_kept_relations=True)

    width: float = param(10.0, "Width of the interval.", gt=0, le=1000, unit="%", symbol="p")
    by: Literal["deviation", "rank"] = param(
        "deviation",
        "What the width is a share of.",
        choices=_BY_MEANS,
        synonyms={"standard deviation-based intervals": "deviation", "rank-based intervals": "rank"},
    )
    steps: int = param(1, "Number of widths, up to `width`, over which the score is averaged.", ge=1, le=100)

    def refuses(self, evidence: Evidence) -> str | None:
        """Refuse where it is not known what was released for whom, or values are not exact."""
        names, tables = self.columns(evidence), (evidence.original, evidence.protected)
        return super().refuses(evidence) or why_generalised(self.name, names, *tables)

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Look into the interval around each released value."""
        names = self.columns(evidence)
        size = len(evidence.original)
        inside, guessed = np.full((len(names), size), np.nan), np.full((len(names), size), np.nan)
        for i, name in enumerate(run.track(self.title, names, len(names))):
            inside[i], guessed[i] = self._disclosure_shares(evidence, name)
        persons = persons_of(evidence.original)
        by_column = {name: mean_of_best(persons, inside[i]) for i, name in enumerate(names)}
        by_column = {name: value for name, value in by_column.items() if not np.isnan(value)}
        if not by_column:
            return Score.not_estimable("no released record belongs to an original value")
        there = ~np.isnan(inside)
        return Score(
            value=float(np.mean(list(by_column.values()))),
            by_column=by_column,
            by_record=np.where(
                there.any(axis=0), np.nansum(inside, axis=0) / np.maximum(there.sum(axis=0), 1), np.nan
            ),
            baseline=float(np.nanmean([mean_of_best(persons, each) for each in guessed])),
            details={
                "columns": len(names),
                "columns_left_out": len(evidence.known_columns) - len(names),
                "values": int(there.sum()),
                "intervals": f"{self.width:g} % of the {self.by if self.by == 'deviation' else 'ranks'}",
            },
        )

    def _disclosure_shares(self, evidence: Evidence, name: str) -> tuple[Floats, Floats]:
        """Whether each original value is in its interval, and in what share of all: means over the steps."""
        assert evidence.protected is not None  # `refuses` saw to it
        assert evidence.source_rows is not None
        values, released = around_median(*numbers_of_both(evidence.original, evidence.protected, name))
        pairs = np.flatnonzero(evidence.source_rows >= 0)
        rows = evidence.source_rows[pairs]
        inside, guessed = np.zeros(len(values)), np.zeros(len(values))
        for step in range(1, self.steps + 1):
            lows, highs = limits(values, released, width=self.width * step / self.steps, by=self.by)
            within = (lows[pairs] <= values[rows]) & (values[rows] <= highs[pairs])
            found = np.zeros(len(values))
            np.maximum.at(found, rows, within.astype(np.float64))  # the nearest of several of one record
            inside += found / self.steps
            there = ~np.isnan(lows)
            begun = np.searchsorted(np.sort(lows[there]), values, side="right")
            ended = np.searchsorted(np.sort(highs[there]), values, side="left")
            guessed += (begun - ended) / max(len(released), 1) / self.steps
        looked_at = np.zeros(len(values), dtype=np.bool_)
        looked_at[rows] = True
        looked_at &= ~np.isnan(values)
        return np.where(looked_at, inside, np.nan), np.where(looked_at, guessed, np.nan)


class IntervalLinkage(LinkageMeasure):
    r"""Share of records linked to their own by distance, among released records near in every column.

    The released record :math:`y` is a candidate for record :math:`x` if in every column :math:`x` lies in the
    interval around :math:`y` (as in `IntervalDisclosure`; nominal values must be equal). Of the candidates
    the nearest is taken, drawing among equals; without a candidate there is no link.

    .. math:: P = \frac{1}{N} \sum_{n=1}^{N} \frac{\chi_n}{|B_n|}

    where :math:`B_n` are the nearest candidates of record :math:`n`, and :math:`\chi_n` is 1 if its own is
    one of them, else 0.

    Notes
    -----
    **How to read it.** An intruder who knows that no value moved far rules out records that are near on the
    whole and far in one column: where that is so (rounding, rank swapping, noise with bounds) it finds more
    than `DistanceLinkage`; with intervals too narrow for the noise it finds less. Try several widths.

    **Doubt.** Exact, ties shared.

    **Missing.** A missing value is a value of its own: candidates are missing there too. Where cells were
    suppressed the score is no more than an estimate.

    **Units.** As in `DistanceLinkage`.

    **Cost.** :math:`O(n \log n)` in few columns, up to :math:`O(n^2)` in many.
    """

    name = "interval-linkage"
    vetted = "brute-forced: unit/risk/test_intervals.py::test_interval_linkage_is_that_of_all_pairs"
    family = "linkage"
    title = "Linkage within intervals"
    tells = Tells(intruder="takes the nearest of the records that are near in every column")
    references = ("herranz2015", "domingoferrer2001")
    cost = "n²"

    width: float = param(50.0, "Width of the interval in each column.", gt=0, le=1000, unit="%", symbol="p")
    by: By = param("deviation", "What the width is a share of.", choices=_BY_MEANS)

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Link each record to the nearest of its candidates."""
        assert evidence.protected is not None  # `refuses` saw to it
        names = self.columns(evidence)
        space = self.space(evidence, run, names)
        if not len(space.known_points):
            return Score.not_estimable(space.why_empty)
        columns = [self._candidates(evidence.known_table, evidence.protected, name) for name in names]
        values, lows, highs = (np.column_stack([column[part] for column in columns]) for part in range(3))
        links = kernels.linking.closer_counts(
            *space.points, space.persons, space.owners, **space.distance, tick=run.ticker(self.title),
            window=kernels.linking.Window(values, lows[space.rows], highs[space.rows], decides=True),
        )  # fmt: skip
        details = self.count_details(space, evidence, names)
        details |= {"own_among_candidates": int(np.isfinite(links.references).sum())}
        return expected_links(evidence, space, links.chances, details)

    def _candidates(self, known: Table, released: Table, name: str) -> tuple[Floats, Floats, Floats]:
        """A column's released values, and from where to where those of each record's candidates lie."""
        if known.schema[name].kind is Kind.NOMINAL:
            codes, others = (each.astype(np.float64) for each in codes_of_both(known, released, name))
            return others, codes, codes
        values, others = around_median(*numbers_of_both(known, released, name))
        # Both ends of the interval grow with the released value: its candidates are a range of such values.
        there = ~np.isnan(others)
        distinct, places = np.unique(others[there], return_inverse=True)
        lows, highs = limits(values, others, width=self.width, by=self.by)
        from_value, to_value = np.empty(len(distinct)), np.empty(len(distinct))
        from_value[places], to_value[places] = lows[there], highs[there]
        first = np.searchsorted(to_value, values, side="left").astype(np.float64)
        last = np.searchsorted(from_value, values, side="right") - 1.0
        placed, gone = np.full(len(others), -1.0), np.isnan(values)
        placed[there] = places
        return placed, np.where(gone, -1.0, first), np.where(gone, -1.0, last)


class RankIntervalLinkage(TrueLinkMeasure):
    r"""Share of records linked to their own by an intruder who knows how far ranks moved at most.

    The intruder of Nin, Herranz and Torra knows the window of rank swapping. In every column the released
    records within :math:`w = \max(1, \lfloor p N / 100 \rfloor)` ranks are candidates; one of those that are
    so in all columns is drawn:

    .. math:: P = \frac{1}{N} \sum_{n=1}^{N} \frac{\chi_n}{|B_n|}, \qquad
        B_n = \bigcap_{c=1}^{V} \{y : |\mathrm{rank}(y_c) - \mathrm{rank}(x_{n,c})| \le w\}

    where :math:`\chi_n` is 1 if the own record is in :math:`B_n`, else 0.

    Notes
    -----
    **How to read it.** Give the ``window`` that the release was made with. Against rank swapping the own
    record is always a candidate, and a few columns leave few others: the window bounds the move, and so
    betrays it. ``own_among_candidates`` says for how many records the window holds.

    **Doubt.** Exact. A value that several records share may have any of their ranks.

    **Missing.** Missing values take no rank; candidates of a record are missing where it is. Where cells were
    suppressed the score is no more than an estimate.

    **Units.** A candidate of the same person is right, and persons are counted, each by the record that is
    found most surely.

    **Cost.** :math:`O(n \log n)` in few columns, up to :math:`O(n^2)` in many.
    """

    name = "rank-interval-linkage"
    vetted = "brute-forced: unit/risk/test_intervals.py::test_rank_intervals_are_those_of_all_pairs"
    synonyms = ("rank-based record linkage",)
    family = "linkage"
    title = "Rank interval linkage"
    tells = Tells(intruder="knows how far ranks moved at most")
    kinds = ORDERED
    references = ("nin2008",)
    cost = "n²"

    window: float = param(
        5.0, "Largest change of rank, in per cent of the records.", gt=0, le=100, unit="%", symbol="p"
    )

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Draw one of each record's candidates."""
        assert evidence.protected is not None  # `refuses` saw to it
        names = self.columns(evidence)
        space = space_of(evidence, (), run, metric="hamming", scale="range")
        if not len(space.known_points):
            return Score.not_estimable(space.why_empty)
        columns = [self._candidates(evidence.known_table, evidence.protected, name) for name in names]
        values, lows, highs = (np.column_stack([column[part] for column in columns]) for part in range(3))
        links = kernels.linking.closer_counts(
            *space.points, space.persons, space.owners, metric="hamming", tick=run.ticker(self.title),
            window=kernels.linking.Window(values, lows[space.rows], highs[space.rows]),
        )  # fmt: skip
        found = np.isfinite(links.references)
        details = self.count_details(space, evidence, names)
        details |= {"own_among_candidates": int(found.sum())}
        if found.any():
            details |= {"median_candidates": float(np.median(links.tied[found]))}
        return expected_links(evidence, space, links.chances, details)

    def _candidates(self, known: Table, released: Table, name: str) -> tuple[Floats, Floats, Floats]:
        """A column's released values as places, and from which to which each record's candidates lie."""
        values, others = numbers_of_both(known, released, name)
        known_values, released_values = np.sort(values[~np.isnan(values)]), np.sort(others[~np.isnan(others)])
        reach = max(1, int(len(released_values) * self.window / 100)) + 1e-6  # stretched ranks are rounded
        # The lowest and highest rank of each group of ties, mine stretched to as many records as released.
        stretch = len(released_values) / max(len(known_values), 1)
        lowest = (np.searchsorted(known_values, values, side="left") + 0.5) * stretch
        highest = (np.searchsorted(known_values, values, side="right") - 0.5) * stretch
        distinct = np.unique(released_values)
        from_rank = np.searchsorted(released_values, distinct, side="left") + 0.5
        to_rank = np.searchsorted(released_values, distinct, side="right") - 0.5
        first = np.searchsorted(to_rank, lowest - reach, side="left").astype(np.float64)
        last = np.searchsorted(from_rank, highest + reach, side="right") - 1.0
        gone = np.isnan(values)
        places = np.where(np.isnan(others), -1.0, np.searchsorted(distinct, others).astype(np.float64))
        return places, np.where(gone, -1.0, first), np.where(gone, -1.0, last)
