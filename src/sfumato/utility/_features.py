"""Features: the records of two tables as numbers that models can be fitted to, coded alike.

Measures by models share three things that stand here: how a column becomes features, an order of records that
does not depend on the file's, and samples of tables that are too large to fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
import polars as pl

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Measure, Needs, Score, Status
from sfumato.core.origin import Origin
from sfumato.core.params import Columns, param
from sfumato.core.release import reorder
from sfumato.core.run import Run
from sfumato.data.generalised.cover import Cover
from sfumato.data.schema import COMPARABLE, Kind, Role
from sfumato.data.table import Table
from sfumato.errors import quoted
from sfumato.kernels.arrays import Flags, Floats, Ints
from sfumato.utility._readings import spans_of, weights_of

#: Categories of a nominal column that have a feature of their own; the rarest beyond count as one.
MAX_CATEGORIES = 20

#: Where a value lies that is farther off: so many standard deviations of the original.
FARTHEST = 1e4

#: What a feature says: a number in standard deviations, the share of a category, or whether nothing is said.
Sort = Literal["number", "share", "hole"]


# What measures by models have in common ----------------------------------------------------------------


#: What larger tables are fitted on.
RECORDS_HELP = "Largest number of records fitted; larger tables are sampled."


class ModelMeasure(Measure):
    """A measure by a model: write ``fit``; sampling and the order of records are seen to."""

    aspect = "utility"
    kinds = COMPARABLE
    needs = Needs(exact_original=True, records=True)

    records: int = param(50_000, RECORDS_HELP, ge=20, unit="records")
    draws: int = param(5, "Number of samples of larger tables.", ge=2, le=100)

    def columns(self, evidence: Evidence) -> tuple[str, ...]:
        """The columns of both tables that compare: of one kind, or made coarser."""
        names = super().columns(evidence)
        if evidence.protected is None:
            return names
        first, second = evidence.original.schema, evidence.protected.schema
        coarse = evidence.protected.is_generalised
        return tuple(name for name in names if first[name].kind is second[name].kind or coarse(name))

    def fit(self, evidence: Evidence, run: Run) -> Score:
        """Score tables that are neither empty nor too large, whose records stand in a fixed order."""
        raise NotImplementedError  # abstract: every measure in the registry has its own

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Fit all records, or samples of them."""
        assert evidence.protected is not None  # `refuses` saw to it
        ordered = in_order(evidence)
        largest = max(len(evidence.original), len(evidence.protected))
        if largest <= self.records:
            return self.fit(ordered, run)
        scores = [
            self.fit(
                sample_of(ordered, self.records / largest, run.rng("sample", draw)),
                run.silent().at("sample", draw),
            )
            for draw in run.track(self.title, range(self.draws), total=self.draws)
        ]
        return self._mean_score(scores)

    def _mean_score(self, scores: Sequence[Score]) -> Score:
        """One score of several samples, with the interval in which their mean lies in 95 of 100 cases."""
        from scipy.special import stdtrit

        for score in scores:
            if score.status is not Status.OK:
                return score
        values = np.array([score.value for score in scores])
        mean = float(values.mean())
        half = float(stdtrit(len(values) - 1, 0.975) * values.std(ddof=1) / np.sqrt(len(values)))
        low, high = self.bounds
        baselines = [score.baseline for score in scores if score.baseline is not None]
        return Score(
            value=mean,
            status=Status.APPROXIMATE,
            interval=(max(low, mean - half), min(high, mean + half)),
            by_column=_means([score.by_column for score in scores]),
            baseline=float(np.mean(baselines)) if len(baselines) == len(scores) else None,
            reason=f"measured on {len(scores)} samples of at most {self.records} records",
            details={**_means([score.details for score in scores]), "draws": len(scores)},
        )


def _means(details: Sequence[Mapping[str, float | int | str]]) -> dict[str, float]:
    """The mean of each number that all of them say."""
    return {
        key: float(np.mean([float(each[key]) for each in details]))
        for key, value in details[0].items()
        if not isinstance(value, str) and all(key in each for each in details)
    }


class TargetMeasure(ModelMeasure):
    """A measure by models that explain one column by others."""

    target_kinds: ClassVar[frozenset[Kind]] = COMPARABLE

    target: Columns = param(("@sensitive",), "Columns to explain, each on its own.")
    predictors: Columns = param((), "Columns that explain them; by default all others.")

    def targets(self, evidence: Evidence) -> tuple[str, ...]:
        """The columns to be explained that both tables have, sorted by name."""
        schema = evidence.original.schema
        wanted = {name for name in schema.resolve(self.target) if schema[name].kind in self.target_kinds}
        return tuple(name for name in self.columns(evidence) if name in wanted)

    def predictors_of(self, evidence: Evidence, target: str) -> tuple[str, ...]:
        """The columns that explain one target, sorted by name."""
        wanted = set(evidence.original.schema.resolve(self.predictors))
        others = (name for name in self.columns(evidence) if name != target)
        return tuple(name for name in others if not wanted or name in wanted)

    def refuses(self, evidence: Evidence) -> str | None:
        """Refuse where nothing can be explained, or nothing is left to explain it."""
        reason = super().refuses(evidence)
        if reason is not None:
            return reason
        found = self.targets(evidence)
        if not found:
            kinds = " or ".join(sorted(self.target_kinds))
            got = f"{quoted(self.target)}, which names none"
            return f"`target` of {self.name} must name a {kinds} column of both tables, got: {got}"
        if not all(self.predictors_of(evidence, name) for name in found):
            return f"{self.name} needs a column that explains {quoted(found)}, and there is none"
        return None

    def why_not_estimable(self, evidence: Evidence) -> str | None:
        """Say of which targets the release tells nothing: to leave them out would praise the release."""
        assert evidence.protected is not None  # `refuses` saw to it
        released = evidence.protected
        empty = [name for name in self.targets(evidence) if len(released) and released.missing(name).all()]
        return (
            f"the release has no value of {quoted(empty)}" if empty else super().why_not_estimable(evidence)
        )


# Records in an order of their own, and samples of them --------------------------------------------------


def in_order(evidence: Evidence) -> Evidence:
    """The same evidence with the records of both tables sorted by what they say.

    Sums, samples and folds then do not depend on the order of a file, which is no evidence.
    """
    return evidence.remember("in order", lambda: _in_order(evidence))


def _in_order(evidence: Evidence) -> Evidence:
    assert evidence.protected is not None
    names = evidence.shared_columns
    original_rows, released_rows = _order_of(evidence.original, names), _order_of(evidence.protected, names)
    return _select_records(evidence, original_rows, released_rows)


def _order_of(table: Table, names: tuple[str, ...]) -> Ints:
    """The records of a table sorted by these columns and their weights; equal ones stay as they are."""
    keys: list[pl.Series] = []
    for name in (*names, *table.schema.with_role(Role.WEIGHT)):
        series = table.frame[name]
        parts = series.struct.unnest().get_columns() if isinstance(series.dtype, pl.Struct) else [series]
        keys += [part for part in parts if not part.dtype.is_nested() and part.dtype != pl.Null]
    if not keys:
        return np.arange(len(table), dtype=np.int64)
    frame = pl.DataFrame([key.alias(str(place)) for place, key in enumerate(keys)])
    order = frame.select(pl.arg_sort_by(frame.columns, nulls_last=True, maintain_order=True))
    return order.to_series().to_numpy().astype(np.int64)


def _select_records(evidence: Evidence, original_rows: Ints, released_rows: Ints) -> Evidence:
    """Keep these records of the original and these released ones, each in this order."""
    release, sources = evidence.release, evidence.source_rows
    assert release is not None
    if sources is not None:
        places = np.full(len(evidence.original) + 1, -1, dtype=np.int64)  # a source of −1 is the last: nobody
        places[original_rows] = np.arange(len(original_rows))
        release = replace(release, origin=Origin.of_rows(places[sources]))
    taken = reorder(release.read_as(release.reading()), released_rows)
    return replace(evidence, original=evidence.original.take(original_rows), release=taken)


def sample_of(evidence: Evidence, share: float, rng: np.random.Generator) -> Evidence:
    """Draw a share of the records, those that map together; a release of nobody's as large a share."""
    assert evidence.protected is not None
    original_rows = _draw_rows(len(evidence.original), share, rng)
    if evidence.source_rows is None:
        return _select_records(evidence, original_rows, _draw_rows(len(evidence.protected), share, rng))
    chosen = np.zeros(len(evidence.original) + 1, dtype=np.bool_)
    chosen[original_rows] = True
    nobodys = evidence.source_rows < 0
    released_rows = chosen[evidence.source_rows] & ~nobodys
    released_rows[np.flatnonzero(nobodys)[_draw_rows(int(nobodys.sum()), share, rng)]] = True
    return _select_records(evidence, original_rows, np.flatnonzero(released_rows))


def _draw_rows(n: int, share: float, rng: np.random.Generator) -> Ints:
    return np.sort(rng.choice(n, min(n, max(round(share * n), min(n, 1))), replace=False))


def weights_of_both(evidence: Evidence) -> tuple[Floats, Floats]:
    """The weights of both tables with mean 1 each; all are 1 unless both tables are weighted.

    A release without weights of its own has those of the records it comes from.
    """
    assert evidence.protected is not None
    first, second = evidence.original.weights, weights_of(evidence)
    if first is None or second is None or not second.sum() > 0:
        return np.ones(len(evidence.original)), np.ones(len(evidence.protected))
    return first / first.mean(), second / second.mean()


# Features ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class FeaturePair:
    """The same features of both tables, complete and finite."""

    original: Floats  # [records, features]
    released: Floats
    columns: tuple[str, ...]  # the column that each feature is of
    sorts: tuple[Sort, ...]

    def keep(self, places: Sequence[int] | Ints) -> FeaturePair:
        """Keep these features, in this order."""
        chosen = [int(place) for place in places]
        return FeaturePair(
            self.original[:, chosen],
            self.released[:, chosen],
            tuple(self.columns[place] for place in chosen),
            tuple(self.sorts[place] for place in chosen),
        )

    @property
    def places(self) -> dict[Sort, Ints]:
        """Where the features of each sort are."""
        sorts = np.array(self.sorts, dtype=object)
        return {sort: np.flatnonzero(sorts == sort) for sort in ("number", "share", "hole")}


def column_spans(evidence: Evidence, name: str) -> tuple[Floats, Cover]:
    """What `spans_of` reads of a column, once for all models of the same records."""
    original, protected = evidence.original, evidence.protected
    assert protected is not None
    return evidence.remember(("spans", name), lambda: spans_of(original, protected, name))


def features_of(evidence: Evidence, names: tuple[str, ...], *, many: int = MAX_CATEGORIES) -> FeaturePair:
    """Make features of these columns of both tables.

    Continuous columns, dates and ordinal columns (by position) give one number each, in standard deviations
    from the mean of the original; a generalised value is taken at its expectation, the middle of a range or
    the mean of a set. Nominal columns give the share of each category, 1 or 0 for exact values and one over
    its size for each member of a set; beyond ``many`` categories the rarest are one. What is missing, or a
    wildcard, is 0, and says so in a feature of its own.
    """
    assert evidence.protected is not None
    blocks: list[tuple[Floats, Floats]] = []
    columns: list[str] = []
    sorts: list[Sort] = []
    for name in names:
        numbers, spans = column_spans(evidence, name)
        if evidence.original.schema[name].kind is Kind.NOMINAL:
            pair = shares_of(numbers, spans, many=many)
            sorts += ["share"] * pair[0].shape[1]
        else:
            pair = _as_columns(standardise_pair(numbers, spans.means))
            sorts += ["number"]
        holes = np.isnan(numbers), spans.uninformative
        if holes[0].any() or holes[1].any():
            pair = _append_indicators(pair, holes)
            sorts += ["hole"]
        blocks.append(pair)
        columns += [name] * pair[0].shape[1]
    first, second = (np.hstack([pair[side] for pair in blocks]) for side in (0, 1))
    return FeaturePair(first, second, tuple(columns), tuple(sorts))


def _as_columns(pair: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    return pair[0][:, None], pair[1][:, None]


def _append_indicators(pair: tuple[Floats, Floats], holes: tuple[Flags, Flags]) -> tuple[Floats, Floats]:
    first, second = (
        np.column_stack([block, gone.astype(np.float64)]) for block, gone in zip(pair, holes, strict=True)
    )
    return first, second


def standardise_pair(numbers: Floats, released: Floats) -> tuple[Floats, Floats]:
    """Centre both on the original's mean and divide by its deviation; what is missing becomes 0."""
    there = numbers[~np.isnan(numbers)]
    there = there if len(there) else released[~np.isnan(released)]
    if not len(there):
        return np.zeros(len(numbers)), np.zeros(len(released))
    # A power of two off, so that no square overflows; around a value that occurs, so that a constant is 0.
    exponent = int(np.frexp(np.abs(there).max())[1])
    origin = np.ldexp(there[0], -exponent)
    reduced = np.ldexp(there, -exponent) - origin
    mean, unit = float(reduced.mean()), float(reduced.std())
    with np.errstate(over="ignore"):
        moved = [np.ldexp(each, -exponent) - origin - mean for each in (numbers, released)]
        if not np.ptp(reduced) > 0:  # a constant has no unit: that of the release, which may vary
            unit = float(np.abs(np.nan_to_num(np.clip(moved[1], -1e100, 1e100))).max(initial=0.0))
        placed = [np.clip(each / (unit or 1.0), -FARTHEST, FARTHEST) for each in moved]
    return np.nan_to_num(placed[0]), np.nan_to_num(placed[1])


def shares_of(numbers: Floats, spans: Cover, *, many: int) -> tuple[Floats, Floats]:
    """The share of each category that the records of both tables may have, given as codes.

    Categories of both tables count; beyond ``many`` the rarest are one, which is the last.
    """
    codes = np.where(np.isnan(numbers), -1, numbers).astype(np.int64)
    labels, owners, members = labels_of(spans)
    n_codes = int(max(codes.max(initial=-1), members.max(initial=-1))) + 1
    sizes = np.bincount(owners, minlength=labels.max(initial=-1) + 1)
    held = np.bincount(labels[labels >= 0], minlength=len(sizes))
    counts = np.bincount(codes[codes >= 0], minlength=n_codes).astype(np.float64)
    counts += np.bincount(members, (held / np.maximum(sizes, 1))[owners], minlength=n_codes)
    slots = np.arange(n_codes)
    if n_codes > many:
        slots[np.argsort(-counts, kind="stable")] = np.minimum(np.arange(n_codes), many - 1)
    width = min(n_codes, many)
    of_code = np.vstack([np.eye(width)[slots], np.zeros((1, width))])  # the last is that of code −1
    keys = owners * width + slots[members]
    parts = np.bincount(keys, 1.0 / np.maximum(sizes, 1)[owners], minlength=len(sizes) * width)
    of_label = np.vstack([parts.astype(np.float64).reshape(len(sizes), width), np.zeros((1, width))])
    return of_code[codes], of_label[labels]


def labels_of(spans: Cover) -> tuple[Ints, Ints, Ints]:
    """The label of each released cell (−1: it says nothing), and the labels with the codes they cover."""
    silent = spans.uninformative
    if spans.sets is not None and spans.codes is not None:
        return np.where(silent, -1, spans.codes), spans.sets.owners, spans.sets.values.astype(np.int64)
    if spans.exact:
        codes = np.where(silent, -1, spans.lows).astype(np.int64)
        each = np.arange(codes.max(initial=-1) + 1)
        return codes, each, each
    ends = np.stack([np.floor(spans.lows[~silent]), np.ceil(spans.highs[~silent])], axis=1).astype(np.int64)
    distinct, found = np.unique(ends, axis=0, return_inverse=True)
    labels = np.full(len(silent), -1, dtype=np.int64)
    labels[~silent] = found.reshape(-1)
    sizes = distinct[:, 1] - distinct[:, 0] + 1
    owners = np.repeat(np.arange(len(distinct)), sizes)
    within = np.arange(len(owners)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return labels, owners, distinct[owners, 0] + within
