"""Classification by groups of alike records: what the released keys still tell of a class."""

from __future__ import annotations

import numpy as np
import polars as pl

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Measure, Score
from sfumato.core.params import Columns, param
from sfumato.core.run import Run
from sfumato.data.codings import codes_of_both
from sfumato.data.generalised.cover import wildcards
from sfumato.data.schema import COMPARABLE, Kind
from sfumato.data.table import Table
from sfumato.errors import quoted
from sfumato.kernels.arrays import Flags, Floats, Ints
from sfumato.utility._readings import weights_of


class ClassificationMetric(Measure):
    r"""Share of records that were suppressed, or not in the majority class of the records with equal keys.

    .. math::

        CM = \frac{1}{N} \sum_{r=1}^{N} \text{penalty}(r)

    where the penalty of a record is 1 if it was suppressed, or if its class is not the most frequent one
    among the released records that have the same values in all keys; else 0. It is the training error of the
    best rule that knows nothing but the released keys.

    See Also
    --------
    Prediction : the error of a model on records that it has not seen.

    Notes
    -----
    **How to read it.** 0 means that the released keys still decide the class, 1 that all was suppressed.
    ``baseline`` is the metric of the original's own keys: the difference was lost by the release. Lower is
    better; the mean over several targets, ``by_column`` has each. Keys that identify everyone decide any
    class, so a release full of unique records scores well: it measures what is left, not what is safe.

    **Doubt.** Exact. It knows which keys are equal and not which are near: noise on the keys makes every
    record unique and the metric 0. It is meant for releases by generalisation, suppression and
    microaggregation.

    **Missing.** A record is suppressed if it was left out of the release (where records map), or if all its
    keys are missing or wildcards. One missing key is a value like another: records that lack the same keys
    are alike. The class of a record is that of its original where records map, else the released one;
    records whose class is missing are left out. Weights, the original's or the release's own, count records.

    **Cost.** One grouping of the release by its keys.
    """

    name = "classification-metric"
    vetted = "brute-forced: unit/utility/test_classification.py::test_one_record_at_a_time"
    synonyms = ("classification", "CM")
    family = "analyses"
    title = "Classification metric"
    aspect = "utility"
    better = "low"
    bounds = (0.0, 1.0)
    kinds = COMPARABLE
    references = ("iyengar2002", "carvalho2023")
    cost = "n log n"

    target: Columns = param(("@sensitive",), "Columns with the classes, each on its own.")

    def columns(self, evidence: Evidence) -> tuple[str, ...]:
        """The keys of both tables: those of the scenario, or of that role, or all; without the target."""
        wanted = evidence.original.schema.resolve(self.target)
        known = tuple(name for name in evidence.known_columns if name not in wanted)
        return evidence.of_kinds(known, self.kinds)

    def targets(self, evidence: Evidence) -> tuple[str, ...]:
        """The columns with the classes, nominal or ordinal ones, sorted by name."""
        wanted = evidence.original.schema.resolve(self.target)
        named = tuple(name for name in evidence.shared_columns if name in wanted)
        return evidence.of_kinds(named, frozenset({Kind.NOMINAL, Kind.ORDINAL}))

    def refuses(self, evidence: Evidence) -> str | None:
        """Refuse where there is no class column, or where only ranges or sets of classes are known."""
        reason = super().refuses(evidence)
        if reason is not None:
            return reason
        found = self.targets(evidence)
        if not found:
            got = f"{quoted(self.target)}, which names none"
            return f"`target` of {self.name} must name a nominal or ordinal column of both tables, got: {got}"
        assert evidence.protected is not None  # the first reason saw to it
        tables = evidence.original, evidence.protected
        coarse = [name for name in found if any(table.is_generalised(name) for table in tables)]
        if coarse:
            return f"{self.name} needs exact classes, and {quoted(coarse)} has ranges or sets of values"
        return None

    def measure(self, evidence: Evidence, run: Run) -> Score:  # noqa: ARG002  — it takes no chance
        """Group the release by its keys and see who is not with the majority."""
        assert evidence.protected is not None  # `refuses` saw to it
        keys = self.columns(evidence)
        original_classes, released_classes = (
            class_of_records(table, keys) for table in (evidence.original, evidence.protected)
        )
        weights, released_weights = evidence.original.weights, weights_of(evidence)
        weights = np.ones(len(evidence.original)) if weights is None else weights
        if released_weights is None:
            released_weights = np.ones(len(evidence.protected))
        found: dict[str, tuple[float, float]] = {}
        for target in self.targets(evidence):
            classes, released = codes_of_both(evidence.original, evidence.protected, target)
            baseline = _share(penalties(*original_classes, classes, classes, weights), weights)
            truth, sources = released, evidence.source_rows
            if sources is not None:
                truth = np.append(classes, -1)[sources]  # a source of −1 is the last: nobody's class
            lost = penalties(*released_classes, released, truth, released_weights)
            if sources is None:
                share = _share(lost, released_weights)
                found[target] = 1.0 if np.isnan(share) and len(lost) else share, baseline  # no class is left
            else:
                found[target] = _share(_by_original(lost, sources, classes), weights), baseline
        known = [pair for pair in found.values() if not np.isnan(pair[0])]
        if not known:
            return Score.not_estimable("no record has a class")
        return Score(
            value=float(np.mean([value for value, _ in known])),
            by_column={target: value for target, (value, _) in found.items() if not np.isnan(value)},
            baseline=float(np.mean([baseline for _, baseline in known])),
            details={
                "groups": int(released_classes[0].max(initial=-1)) + 1,
                "suppressed": int(released_classes[1].sum()),
            },
        )


def _share(lost: Floats, weights: Floats) -> float:
    """The weighted mean of the penalties that are known, NaN where none is."""
    known = ~np.isnan(lost)
    total = weights[known].sum()
    return float((lost[known] * weights[known]).sum() / total) if total > 0 else np.nan


def _by_original(lost: Floats, sources: Ints, classes: Ints) -> Floats:
    """The penalty of each original record: the mean of its copies, 1 if it has none, NaN without a class."""
    known = (sources >= 0) & ~np.isnan(lost)
    counts = np.bincount(sources[known], minlength=len(classes))
    sums = np.bincount(sources[known], lost[known], minlength=len(classes))
    means = np.where(counts > 0, sums / np.maximum(counts, 1), 1.0)
    return np.where(classes < 0, np.nan, means)


def class_of_records(table: Table, keys: tuple[str, ...]) -> tuple[Ints, Flags]:
    """The group of each record, those of the same keys; and which records say nothing in any key."""
    series, silent = [], np.ones(len(table), dtype=np.bool_)
    for place, name in enumerate(keys):
        missing = table.missing(name)
        column = table.frame[name]
        shown = pl.select(pl.when(pl.Series(~missing)).then(column).alias(str(place))).to_series()
        series.append(shown)
        silent &= missing | wildcards(table, name)
    frame = pl.DataFrame(series)
    firsts = frame.with_row_index("row").select(pl.col("row").first().over(frame.columns)).to_series()
    groups = np.unique(firsts.to_numpy(), return_inverse=True)[1].astype(np.int64)
    return groups, silent


def penalties(groups: Ints, suppressed: Flags, seen: Ints, truth: Ints, weights: Floats) -> Floats:
    """1 for each record suppressed, or whose true class is not the most frequent one of its group, else 0.

    Of classes that are equally frequent the first counts. NaN where the true class is missing (−1).
    """
    n_groups, n_classes = int(groups.max(initial=-1)) + 1, int(max(seen.max(initial=-1), 0)) + 1
    votes = (seen >= 0) & ~suppressed
    keys, places = np.unique(groups[votes] * n_classes + seen[votes], return_inverse=True)
    counts = np.bincount(places, weights[votes], minlength=len(keys))
    # The last of each group when sorted by weight is its majority; of equals, the smallest class.
    order = np.lexsort((-(keys % n_classes), counts, keys // n_classes))
    majority = np.full(n_groups, -1, dtype=np.int64)
    majority[keys[order] // n_classes] = keys[order] % n_classes
    lost = (suppressed | (majority[groups] != truth)).astype(np.float64)
    return np.where(truth < 0, np.nan, lost)
