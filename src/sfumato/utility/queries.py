"""Queries: whether counting in the release gives the answers of the original."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sfumato.core.measure import Score
from sfumato.core.params import param
from sfumato.core.run import Run
from sfumato.data.evidence import Evidence
from sfumato.data.generalised.cover import Cover, Sets
from sfumato.data.schema import Kind
from sfumato.kernels.arrays import Flags, Floats, Ints
from sfumato.utility._features import ModelMeasure, labels_of, weights_of_both
from sfumato.utility._readings import spans_of

#: Answers held at a time: queries by records.
_AT_ONCE = 2_000_000


class QueryError(ModelMeasure):
    r"""Mean relative error of random counts, answered from the release instead of the original.

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
    the whole domain of its column. Records need not map. Where both tables have weights, shares are weighted.

    **Cost.** :math:`O(n)` for each query and dimension, which ``records`` bounds.
    """

    name = "query-error"
    family = "analyses"
    title = "Error of counting queries"
    better = "low"
    bounds = (0.0, np.inf)
    references = ("xiao2006", "lefevre2006workload")
    cost = "n"

    queries: int = param(500, "Number of queries drawn.", ge=2, le=100_000, symbol="Q")
    dimensions: int = param(2, "Number of columns a query asks for, as far as there are.", ge=1, le=20)
    selectivity: float = param(
        10.0, "Records that a query of independent columns would count.", gt=0, le=100, unit="%"
    )
    floor: float = param(1.0, "Least count that an error is relative to.", gt=0, le=100, unit="%", symbol="δ")

    def fit(self, evidence: Evidence, run: Run) -> Score:
        """Draw the queries and answer each from both tables."""
        asked = [column for name in self.columns(evidence) if (column := _asked(evidence, name)) is not None]
        if not asked:
            return Score.not_estimable("no column of the original holds a value to ask for")
        dimensions = min(self.dimensions, len(asked))
        order = run.rng("columns").random((self.queries, len(asked))).argsort(axis=1)
        chosen = np.zeros((self.queries, len(asked)), dtype=np.bool_)
        np.put_along_axis(chosen, order[:, :dimensions], values=True, axis=1)
        truth, found = self._answers(asked, chosen, weights_of_both(evidence), run)
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
        self, asked: list[Asked], chosen: Flags, weights: tuple[Floats, Floats], run: Run
    ) -> tuple[Floats, Floats]:
        """The share of the records of each table that meets each query, some queries at a time."""
        share = (self.selectivity / 100) ** (1 / int(chosen[0].sum()))
        chances = [run.rng("conditions", column.name) for column in asked]
        answers = np.empty((2, self.queries))
        step = max(1, _AT_ONCE // max(len(weights[0]), len(weights[1])))
        starts = range(0, self.queries, step)
        for start in run.track(self.title, starts, total=len(starts)):
            asking = chosen[start : start + step]
            met = [np.ones((len(asking), len(each))) for each in weights]
            for column, rng, rows in zip(asked, chances, asking.T, strict=True):
                conditions = column.draw(int(rows.sum()), share, rng)
                met[0][rows] *= conditions.met_by(column.values)
                met[1][rows] *= column.released(conditions)
            for side in (0, 1):
                answers[side, start : start + step] = met[side] @ weights[side] / weights[side].sum()
        return answers[0], answers[1]


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
class Asked:
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

    def released(self, conditions: Ranges | Choices) -> Floats:
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


def _asked(evidence: Evidence, name: str) -> Asked | None:
    """What is asked of a column; None where the original holds no value."""
    assert evidence.protected is not None
    values, spans = spans_of(evidence.original, evidence.protected, name)
    present = np.sort(values[~np.isnan(values)])
    if not len(present):
        return None
    gone = evidence.protected.missing(name)
    wild = spans.silent & ~gone
    if spans.sets is None and wild.any():  # a wildcard may be any value of the domain
        low, high = spans.domain
        lows, highs = np.where(wild, low, spans.lows), np.where(wild, high, spans.highs)
        spans = replace(spans, lows=lows, highs=highs)
    nominal = evidence.original.schema[name].kind is Kind.NOMINAL
    if nominal and spans.sets is None and not spans.exact:  # a range of categories is a set of them
        labels, owners, members = labels_of(spans)
        starts = np.searchsorted(owners, np.arange(owners.max(initial=-1) + 2))
        sets = Sets(starts, members, np.arange(members.max(initial=-1) + 1, dtype=np.float64))
        spans = replace(spans, sets=sets, codes=labels)
    counts = np.bincount(present.astype(np.int64)) if nominal else np.empty(0, dtype=np.int64)
    return Asked(name, values, present, counts, spans, gone)
