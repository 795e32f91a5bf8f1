"""Queries: whether counting in the release gives the answers of the original."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Counting, Laws, Scaling, Score, Tells
from sfumato.core.params import param
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.buckets import Buckets
from sfumato.data.generalised.cover import Cover
from sfumato.data.generalised.label_sets import LabelSets
from sfumato.data.schema import Kind, Schema
from sfumato.data.table import Table
from sfumato.errors import ParameterError, UnknownNameError
from sfumato.kernels.arrays import Flags, Floats, Ints
from sfumato.utility._features import ModelMeasure, labels_of, weights_of_both
from sfumato.utility._readings import spans_of

#: Answers held at a time: queries by records.
_AT_ONCE = 2_000_000


class QueryError(ModelMeasure):
    r"""Mean relative error of random counting queries answered from the release instead of the original.

    A query counts the records that meet a condition in each of ``dimensions`` columns drawn by chance: a
    range of a number, date or ordinal column, a set of categories of a nominal one. Conditions are drawn so
    that in independent columns a share of ``selectivity`` of the records would meet them all. Over the
    queries,

    .. math::

        \frac{1}{Q} \sum_{q=1}^{Q} \frac{|a_q - b_q|}{\max(a_q, \delta)}

    where :math:`a_q` is the share of the original's records that meet query :math:`q`, :math:`b_q` that of
    the release's, and :math:`\delta` the ``floor``, without which a query of nobody would have an infinite
    error.

    See Also
    --------
    EarthMoversDistance : the whole distribution instead of counts.

    Notes
    -----
    **How to read it.** 0 means that all queries have their right answer, 0.1 that they are off by a tenth on
    average. Lower is better. ``by_column`` is the mean error of the queries that ask for a column.

    **Doubt.** The queries are drawn by chance; the interval is that of the mean over all such queries in 95
    of 100 cases. Shares are compared, so a release of fewer records (a sample, synthetic data) is scaled to
    the original. Tables above ``records`` are sampled, and the status is then approximate.

    **Missing.** A missing or suppressed value meets no condition. A generalised one meets it with the share
    of its values that do (the *expected* count): a range by its overlap, a set by its members, a wildcard by
    the whole domain of its column. Where values stand apart from their records (anatomy, slicing), a record
    meets conditions on them with the share of the values of its bucket that do. Records need not map. Where
    both tables have weights, shares are weighted.

    **Cost.** :math:`O(n)` for each query and dimension, which ``records`` bounds.
    """

    name = "query-error"
    vetted = "brute-forced: unit/utility/test_queries.py::test_queries_are_counts_of_records"
    synonyms = ("counting queries", "average relative error", "range queries")
    family = "analyses"
    tells = Tells(places={"report": 8, "models": 6})
    scales = Scaling(exact_up_to=200_000)
    title = "Error of counting queries"
    better = "low"
    bounds = (0.0, np.inf)
    counts = Counting(
        laws=Laws(reads_names="Its draws follow the order of the columns, which is that of their names.")
    )
    references = ("xiao2006", "lefevre2006workload")
    cost = "n"

    queries: int = param(500, "Number of queries drawn.", ge=2, le=100_000, symbol="Q")
    dimensions: int = param(2, "Number of columns in a query, if there are as many.", ge=1, le=20)
    selectivity: float = param(
        10.0, "Share of records that a query would count if columns were independent.", gt=0, le=100, unit="%"
    )
    floor: float = param(1.0, "Smallest count that divides an error.", gt=0, le=100, unit="%", symbol="δ")

    def fit(self, evidence: Evidence, run: Run) -> Score:
        """Draw the queries and answer each from both tables."""
        names = self.columns(evidence)
        asked = [column for name in names if (column := _queried_column(evidence, name)) is not None]
        if not asked:
            return Score.not_estimable("no column of the original has a value to ask for")
        dimensions = min(self.dimensions, len(asked))
        order = run.rng("columns").random((self.queries, len(asked))).argsort(axis=1)
        chosen = np.zeros((self.queries, len(asked)), dtype=np.bool_)
        np.put_along_axis(chosen, order[:, :dimensions], values=True, axis=1)
        truth, found = self._answers(asked, chosen, evidence, run)
        errors = np.abs(truth - found) / np.maximum(truth, self.floor / 100)
        value = float(errors.mean())
        half = 1.96 * float(errors.std(ddof=1) / np.sqrt(self.queries))
        return Score(
            value=value,
            interval=(max(value - half, 0.0), value + half),
            by_column={
                column.name: float(errors[chosen[:, place]].mean())
                for place, column in enumerate(asked)
                if chosen[:, place].any()
            },
            details={"median": float(np.median(errors)), "worst": float(errors.max())},
        )

    def _answers(
        self, asked: list[QueriedColumn], chosen: Flags, evidence: Evidence, run: Run
    ) -> tuple[Floats, Floats]:
        """The share of the records of each table that meets each query, some queries at a time."""
        weights = weights_of_both(evidence)
        share = (self.selectivity / 100) ** (1 / int(chosen[0].sum()))
        chances = [run.rng("conditions", column.name) for column in asked]
        answers = np.empty((2, self.queries))
        step = max(1, _AT_ONCE // max(len(weights[0]), len(weights[1])))
        starts = range(0, self.queries, step)
        for start in run.track(self.title, starts, total=len(starts)):
            asking = chosen[start : start + step]
            truth, released = np.ones((len(asking), len(weights[0]))), Chances.of(evidence, len(asking))
            for column, rng, rows in zip(asked, chances, asking.T, strict=True):
                conditions = column.draw(int(rows.sum()), share, rng)
                truth[rows] *= conditions.met_by(column.values)
                released.meet(column.name, rows, column.released_chances(conditions))
            for side, met in enumerate((truth, released.of_records())):
                answers[side, start : start + step] = met @ weights[side] / weights[side].sum()
        return answers[0], answers[1]


def expected_count(release: Release, query: Mapping[str, Any]) -> float:
    """How many records of a release meet a query, as far as it tells: the sum of their chances to.

    Parameters
    ----------
    release
        What ``protect`` gave. A generalised cell meets a condition with the share of its values that do, a
        value that stands apart from its record with the share of the values of its bucket; conditions on
        columns that stand apart together are met by one and the same row.
    query
        For each column a value, a list of values, or a pair ``(low, high)``: a range with both ends, of which
        None leaves one open.

    Examples
    --------
    >>> frame = pl.DataFrame({"age": [23, 35, 41, 58], "illness": ["flu", "flu", "ulcer", "angina"]})
    >>> schema = Schema((
    ...     Column("age", Kind.CONTINUOUS, Role.KEY), Column("illness", Kind.NOMINAL, Role.SENSITIVE)
    ... ))
    >>> release = protect(frame, "anatomy(l=2)", schema=schema, seed=1)
    >>> expected_count(release, {"illness": "flu"}), expected_count(release, {"age": (None, 35)})
    (2.0, 2.0)
    >>> expected_count(release, {"age": (None, 35), "illness": "flu"})
    1.0
    """
    shown = Evidence(release.first, release)
    chances = Chances.of(shown, 1)
    for name, wanted in query.items():
        chances.meet(name, np.ones(1, dtype=np.bool_), _chances_of(shown, name, wanted))
    return float(chances.of_records().sum())


def _chances_of(shown: Evidence, name: str, wanted: Any) -> Floats:
    """The chance of each cell, or value apart, to meet one condition [1, cells]."""
    assert shown.protected is not None
    if name not in shown.protected.schema:
        raise UnknownNameError.of("column", name, shown.protected.names)
    column = shown.protected.schema[name]
    ranged = isinstance(wanted, tuple)
    if ranged and (len(wanted) != 2 or column.kind is Kind.NOMINAL):  # noqa: PLR2004  — a pair
        raise ParameterError(
            f"a range of `{name}` must be a pair of ends of a column with an order, got: "
            f"{len(wanted)} values for a {column.kind} column"
        )
    values = [each for each in (wanted if isinstance(wanted, list | tuple) else [wanted]) if each is not None]
    queried = Table(pl.DataFrame({name: pl.Series(values)}), Schema((replace(column, missing=()),)))
    asked = _queried_column(replace(shown, original=queried), name) if values else None
    if asked is None:
        raise ParameterError(f"a condition on `{name}` must name a value, got: none")
    numbers = asked.values
    if ranged:
        ends = np.array([-np.inf, np.inf])
        ends[[each is not None for each in wanted]] = numbers
        return asked.released_chances(Ranges(ends[:1, None], ends[1:, None]))
    if column.kind is Kind.NOMINAL:
        chosen = np.zeros((1, int(numbers.max()) + 2), dtype=np.bool_)
        chosen[0, numbers.astype(np.int64)] = True
        return asked.released_chances(Choices(chosen))
    points = np.unique(numbers)[:, None]
    met: Floats = asked.released_chances(Ranges(points, points)).sum(axis=0, keepdims=True)
    return met


@dataclass(frozen=True, eq=False)
class Chances:
    """The chances of released records to meet several queries: of their own cells, and of their buckets."""

    own: Floats  # [queries, records]
    buckets: Buckets | None
    apart: dict[int, Floats]  # [queries, values] by the group of columns that kept together

    @classmethod
    def of(cls, evidence: Evidence, queries: int) -> Chances:
        """Nothing is asked yet."""
        assert evidence.protected is not None
        return cls(np.ones((queries, len(evidence.protected))), evidence.buckets, {})

    def meet(self, name: str, rows: Flags, chances: Floats) -> None:
        """Some of the queries ask for a column, whose cells or values apart meet them with these chances."""
        place = -1 if self.buckets is None else self.buckets.place(name)
        if place >= 0 and self.buckets is not None:
            everybody = np.ones((len(self.own), len(self.buckets.values)))
            self.apart.setdefault(place, everybody)[rows] *= chances
        else:
            self.own[rows] *= chances

    def of_records(self) -> Floats:
        """The chance of each record to meet each query; of what stands apart nothing but its bucket tells."""
        found = self.own
        for met in self.apart.values():
            assert self.buckets is not None  # nothing stands apart else
            found = found * self.buckets.chances(met)
        return found


@dataclass(frozen=True, eq=False)
class Ranges:
    """Conditions on a column: that a number lies between two, both included."""

    lows: Floats  # [conditions, 1]
    highs: Floats

    def met_by(self, numbers: Floats) -> Flags:
        """Which numbers meet each condition [conditions, numbers]; NaN meets none."""
        inside: Flags = (self.lows <= numbers) & (numbers <= self.highs)
        return inside

    def overlap(self, spans: Cover) -> Floats:
        """The share of each span of numbers (with a step of 1: of whole numbers) that meets each."""
        shared = np.minimum(spans.highs, self.highs) - np.maximum(spans.lows, self.lows) + spans.step
        width = spans.highs - spans.lows + spans.step
        points = ~(width > 0)  # of a span of one number all meets it or nothing
        shares = np.nan_to_num(np.clip(shared / np.where(points, 1.0, width), 0.0, 1.0))
        return np.where(points, self.met_by(spans.lows), shares)


@dataclass(frozen=True, eq=False)
class Choices:
    """Conditions on a nominal column: that its code is one of some."""

    wanted: Flags  # [conditions, codes + 1] the last is that of no code

    def met_by(self, numbers: Floats) -> Flags:
        """Which codes meet each condition; NaN meets none, and so does a code the original does not have."""
        last = self.wanted.shape[1] - 1
        codes = np.where(numbers < last, numbers, last).astype(np.int64)
        return self.wanted[:, codes]


@dataclass(frozen=True, eq=False)
class QueriedColumn:
    """A column that queries ask for: the original's values, and what the released cells stand for."""

    name: str
    values: Floats  # [records] of the original, NaN where missing
    present: Floats  # those that are there, sorted
    counts: Ints  # of a nominal column how often each code occurs, else empty
    spans: Cover
    gone: Flags  # released cells that are missing

    def draw(self, n: int, share: float, rng: np.random.Generator) -> Ranges | Choices:
        """Draw conditions that about this share of the values meets."""
        if not len(self.counts):
            width = max(1, round(share * len(self.present)))
            starts = rng.integers(len(self.present) - width + 1, size=n)
            return Ranges(self.present[starts][:, None], self.present[starts + width - 1][:, None])
        turns = rng.random((n, len(self.counts))).argsort(axis=1)
        before = np.cumsum(self.counts[turns], axis=1) - self.counts[turns]
        wanted = np.zeros((n, len(self.counts) + 1), dtype=np.bool_)
        np.put_along_axis(wanted, turns, before < share * len(self.present), axis=1)
        return Choices(wanted)

    def released_chances(self, conditions: Ranges | Choices) -> Floats:
        """The chance that each released record meets each condition."""
        spans = self.spans
        if spans.sets is not None and spans.codes is not None:
            sizes, owners = spans.sets.sizes, spans.sets.owners
            met = conditions.met_by(spans.sets.values).astype(np.float64)
            shares = np.zeros((len(met), len(sizes) + 1))  # the last is that of code −1
            for row, each in enumerate(met):
                shares[row, :-1] = np.bincount(owners, each, minlength=len(sizes)) / np.maximum(sizes, 1)
            chances = shares[:, spans.codes]
        elif spans.exact or isinstance(conditions, Choices):  # codes are exact, or sets
            chances = conditions.met_by(spans.lows).astype(np.float64)
        else:
            chances = conditions.overlap(spans)
        chances[:, self.gone] = 0.0
        return chances


def _queried_column(evidence: Evidence, name: str) -> QueriedColumn | None:
    """What is asked of a column; None where the original holds no value."""
    assert evidence.protected is not None
    buckets = evidence.buckets
    released = evidence.protected if buckets is None or buckets.place(name) < 0 else buckets.values
    values, spans = spans_of(evidence.original, released, name)
    present = np.sort(values[~np.isnan(values)])
    if not len(present):
        return None
    gone = released.missing(name)
    wild = spans.uninformative & ~gone
    if spans.sets is None and wild.any():  # a wildcard may be any value of the domain
        low, high = spans.domain
        lows, highs = np.where(wild, low, spans.lows), np.where(wild, high, spans.highs)
        spans = replace(spans, lows=lows, highs=highs)
    nominal = evidence.original.schema[name].kind is Kind.NOMINAL
    if nominal and spans.sets is None and not spans.exact:  # a range of categories is a set of them
        labels, owners, members = labels_of(spans)
        starts = np.searchsorted(owners, np.arange(owners.max(initial=-1) + 2))
        sets = LabelSets(starts, members, np.arange(members.max(initial=-1) + 1, dtype=np.float64))
        spans = replace(spans, sets=sets, codes=labels)
    counts = np.bincount(present.astype(np.int64)) if nominal else np.empty(0, dtype=np.int64)
    return QueriedColumn(name, values, present, counts, spans, gone)
