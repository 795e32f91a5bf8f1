"""The space an intruder compares records in: two tables as points, and which of them are of one person.

Numbers (continuous, ordinal, date) are centred and scaled, or take their rank within their own table;
categories are codes that differ or do not, or differ up to some level of their hierarchy. A missing value is
a category of its own: methods leave missing cells where they are, so an intruder can link by the pattern of
them, and to ignore it would understate the risk.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import polars as pl

from sfumato.core.evidence import Evidence
from sfumato.core.intruder_view import belonging, why_pairs_unknown
from sfumato.core.measure import Counting, Measure, Threat
from sfumato.core.params import Columns, param
from sfumato.core.run import Run
from sfumato.data.hierarchy.likeness import why_not_covered
from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.data.schema import COMPARABLE, Kind
from sfumato.data.table import Table
from sfumato.errors import quoted
from sfumato.kernels.arrays import Floats, Ints, distinct_numbers
from sfumato.risk._coordinates import FixedMetric, KernelMetric, Metric, Scale, as_kernel, coordinates_of

Nominal = Literal["equal", "hierarchy"]

#: How near an inferred number must come to disclose the value.
WITHIN_HELP = "How close a number must be to count as learnt, in per cent of the column's standard deviation."

#: What measures of equal values are blind to.
NOISE_NOT_SEEN = (
    "It compares by equality: it does not find people whose values were changed by more than the unit in "
    "which the original is written."
)

METRIC_HELP = "How the distance between two records is measured."
METRICS: Mapping[str, str] = {
    "euclidean": "The root of the sum of squared differences.",
    "manhattan": "The sum of absolute differences.",
    "chebyshev": "The difference in the column that differs most.",
    "mahalanobis": "Numbers weighted by the inverse of the sum of both tables' covariances.",
    "hamming": "The number of columns that differ.",
    "gower": "The sum of absolute differences, of numbers as shares of the range over both tables.",
}

SCALE_HELP = "By what each number is divided before distances are measured."
SCALES: Mapping[str, str] = {
    "deviation": "The standard deviation in the intruder's table.",
    "range": "The range in the intruder's table.",
    "pooled": "The range over both tables.",
    "rank": "Nothing: ranks replace the numbers.",
}

_SCALES_IN_WORDS = {
    "deviation": "deviations of the intruder's table",
    "range": "ranges of the intruder's table",
    "pooled": "ranges over both tables",
    "rank": "ranks within each table, from 0 to 1",
}


def held_rows(evidence: Evidence, run: Run) -> Ints:
    """The records of the intruder's table that they hold, as the scenario's share says."""
    size = len(evidence.known_table)
    share = evidence.scenario.records
    if share >= 1:
        return np.arange(size, dtype=np.int64)
    held = min(size, max(1, round(share * size)))
    return np.sort(run.rng("scenario", evidence.scenario.name).choice(size, held, replace=False))


def targets_of(evidence: Evidence, rows: Ints, persons: Ints, run: Run) -> Ints:
    """Those of the records ``rows`` that are looked for: of all ``persons``, or of as many as are drawn."""
    asked = evidence.sampling.persons
    if asked is None:
        return rows
    own = persons[rows]
    distinct = distinct_numbers(own)
    if len(distinct) <= asked:
        return rows
    rng = run.rng("targets")
    drawn = rng.choice(distinct, asked, replace=False)
    if part := evidence.sampling.part % math.ceil(len(distinct) / asked):
        drawn = rng.permutation(np.setdiff1d(distinct, drawn))[(part - 1) * asked : part * asked]
    return rows[np.searchsorted(own, np.sort(drawn)) if distinct is own else np.isin(own, drawn)]


@dataclass(frozen=True)
class LinkageSpace:
    """What the intruder compares, as the kernels want it.

    The first columns of ``known_points`` and ``released_points`` count by their difference, the last
    ``n_codes`` by being unequal: that adds their weight to the squared Euclidean distance or to the Manhattan
    distance, or is the least that the Chebyshev distance can be.
    """

    why_empty: ClassVar[str] = "the intruder holds no record of a person in the release"  # where n is 0
    known_points: Floats  # [n, d] the records that the intruder holds
    released_points: Floats  # [m, d] the released records
    metric: KernelMetric
    n_codes: int
    weights: Floats  # [n_codes] at most 1, and 1 where two values are equal or not
    rows: Ints  # [n] which records of the intruder's table they are
    released_rows: Ints  # [m] which records of the release
    truth: Ints | None  # [n] the one of theirs that is the same record; −1: none
    persons: Ints  # [n] whose records they are
    owners: Ints | None  # [m] whose records the released ones are; −1: nobody's
    columns: tuple[str, ...]
    scale: str  # in words

    @property
    def points(self) -> tuple[Floats, Floats]:
        """Both sides as the kernels take them."""
        return self.known_points, self.released_points

    @property
    def distance(self) -> dict[str, Any]:
        """How the kernels take the distances between them."""
        return {"metric": self.metric, "n_codes": self.n_codes, "weights": self.weights}

    def right_links(self) -> tuple[Ints, Ints]:
        """All pairs of a known and a released record that are of the same person."""
        assert self.owners is not None  # measures of true links see to it
        known = pl.DataFrame({"person": self.persons}).with_row_index("known")
        released = pl.DataFrame({"person": self.owners}).with_row_index("released")
        pairs = known.join(released.filter(pl.col("person") >= 0), on="person")
        return pairs["known"].to_numpy().astype(np.int64), pairs["released"].to_numpy().astype(np.int64)

    def shuffle(self, rng: np.random.Generator) -> LinkageSpace:
        """Put the released records into an order that says nothing: neither the file's nor the truth's.

        Sorted by where they lie, then shuffled, so that the order of the file cannot matter.
        """
        points = self.released_points
        order = np.lexsort(points.T) if points.shape[1] else np.arange(len(points))
        order = order[rng.permutation(len(order))]
        places = np.empty(len(order) + 1, dtype=np.int64)
        places[order], places[-1] = np.arange(len(order)), -1  # the truth −1 is the last
        return replace(
            self,
            released_points=points[order],
            released_rows=self.released_rows[order],
            truth=None if self.truth is None else places[self.truth],
            owners=None if self.owners is None else self.owners[order],
        )


class TrueLinkMeasure(Measure):
    """A measure of how many links of an intruder come true: what its kind have in common."""

    aspect = "risk"
    threat: ClassVar[Threat] = "linkability"
    better = "low"
    bounds = (0.0, 1.0)
    kinds = COMPARABLE
    counts = Counting(
        pools_copies=True, intruder_records_only=True, compares_kept_relations=True, opens_suppressed=True
    )

    def columns(self, evidence: Evidence) -> tuple[str, ...]:
        """The columns that the intruder knows and their table has."""
        return known_to_intruder(evidence, super().columns(evidence))

    def why_unsuitable(self, evidence: Evidence) -> str | None:
        """Say why the columns cannot be compared, whoever is who."""
        return why_incomparable(self.name, evidence, self.kinds) or super().refuses(evidence)

    def refuses(self, evidence: Evidence) -> str | None:
        """Refuse a release whose records cannot be told to be right or wrong, or not be compared."""
        return (
            self.why_unsuitable(evidence)
            or why_pairs_unknown(self.name, evidence)
            or why_generalised(self.name, self.columns(evidence), evidence.known_table, evidence.protected)
        )

    def count_details(
        self, space: LinkageSpace, evidence: Evidence, names: tuple[str, ...]
    ) -> dict[str, float | int | str]:
        """How much was looked at."""
        return {
            "columns": len(names),
            "columns_left_out": len(evidence.known_columns) - len(names),
            "records": len(space.known_points),
            "released": len(space.released_points),
        }


class LinkageMeasure(TrueLinkMeasure):
    """A measure of links by distance."""

    metric: FixedMetric = param("euclidean", METRIC_HELP, choices=METRICS)
    scale: Scale = param("deviation", SCALE_HELP, choices=SCALES, when="metric=euclidean|manhattan|chebyshev")
    nominal: Nominal = param(
        "equal",
        "How the distance between two categories is measured.",
        choices={
            "equal": "0 if they are equal, otherwise 1.",
            "hierarchy": "By the number of levels of the column's hierarchy at which they differ.",
        },
    )

    def compares_equal(self) -> bool:
        """Whether it asks if values are equal, as *hamming* distances do."""
        return self.metric == "hamming"

    def why_unsuitable(self, evidence: Evidence) -> str | None:
        """Refuse what has no distance of the kind asked for."""
        return super().why_unsuitable(evidence) or self._why_no_coordinates(evidence)

    def _why_no_coordinates(self, evidence: Evidence) -> str | None:
        names, released = self.columns(evidence), evidence.protected
        asked = [f"scale={self.scale}"] * (self.scale == "rank")
        asked += [f"metric={self.metric}"] * (self.metric == "chebyshev")
        asked += [f"nominal={self.nominal}"] * (self.nominal == "hierarchy")
        if asked and released is not None and released.is_generalised(*names):
            reason = why_generalised(self.name, names, released)
            return f"{reason}; {' and '.join(asked)} has no distance to such values"
        return _without_hierarchies(self.name, evidence, names) if self.nominal == "hierarchy" else None

    def space(self, evidence: Evidence, run: Run, names: tuple[str, ...]) -> LinkageSpace:
        """The space of some columns, by the measure's metric and scale."""
        return space_of(evidence, names, run, metric=self.metric, scale=self.scale, nominal=self.nominal)

    def count_details(
        self, space: LinkageSpace, evidence: Evidence, names: tuple[str, ...]
    ) -> dict[str, float | int | str]:
        """How much was looked at, and how."""
        details = super().count_details(space, evidence, names)
        details = {"metric": self.metric, "scale": space.scale, **details}
        if self.nominal == "hierarchy":
            details["hierarchies"] = sum(1 for name in names if _tree_of(evidence, name, self.nominal))
        return details


def known_to_intruder(evidence: Evidence, names: tuple[str, ...]) -> tuple[str, ...]:
    """Those of ``names`` that the intruder's table has too, as the same kind."""
    schema, original = evidence.known_table.schema, evidence.original.schema
    return tuple(name for name in names if name in schema and schema[name].kind is original[name].kind)


def why_incomparable(measure: str, evidence: Evidence, kinds: frozenset[Kind]) -> str | None:
    """Which of the columns that the intruder knows cannot be compared; None if all can.

    To leave one out without a word would understate the risk. Who looks at ordered columns only says so.
    Of what stands apart from its record nobody but the owner knows whose it is.
    """
    buckets = evidence.buckets
    foreign = () if buckets is None else set(buckets.names) - buckets.own
    faults = [f"`{name}` (in buckets)" for name in evidence.known_columns if name in foreign]
    known, original = evidence.known_table.schema, evidence.original.schema
    for name in evidence.known_columns:
        kind = original[name].kind
        its = known[name].kind if name in known else kind
        shown = kind if evidence.protected is None else evidence.protected.schema[name].kind
        if its is not kind and {its, kind} & kinds:
            faults.append(f"`{name}` ({kind}, in `{evidence.scenario.external}` {its})")
        elif (kind not in kinds and kinds >= COMPARABLE) or (kind in kinds and shown not in kinds):
            faults.append(f"`{name}` ({kind if shown is kind else f'{kind}, released as {shown}'})")
    if not faults:
        return None
    return f"{measure} cannot compare these columns that the intruder knows: {', '.join(faults)}"


def why_generalised(measure: str, names: tuple[str, ...], *tables: Table | None) -> str | None:
    """Why columns cannot be compared value by value; None if these tables hold exact values."""
    coarse = {name for name in names for table in tables if table is not None and table.is_generalised(name)}
    if not coarse:
        return None
    have = f"{quoted(sorted(coarse), ' and ')} {'has' if len(coarse) == 1 else 'have'}"
    return f"{measure} needs exact values, and {have} ranges or groups of values"


def _tree_of(evidence: Evidence, name: str, nominal: Nominal) -> Hierarchy | None:
    """The hierarchy by which a column is compared; None if its values are equal or not."""
    is_nominal = evidence.original.schema[name].kind is Kind.NOMINAL
    return evidence.hierarchy_of(name) if nominal == "hierarchy" and is_nominal else None


def _without_hierarchies(measure: str, evidence: Evidence, names: tuple[str, ...]) -> str | None:
    """Why categories cannot be compared by hierarchies; None if they can. A column may have none."""
    assert evidence.protected is not None  # that was a reason
    tables = evidence.known_table, evidence.protected
    trees = {name: tree for name in names if (tree := _tree_of(evidence, name, "hierarchy"))}
    faults = [fault for name, tree in trees.items() if (fault := why_not_covered(tree, name, *tables))]
    if trees and not faults:
        return None
    got = "; ".join(faults) or "none is declared"
    return f"{measure} needs hierarchies that have all values of their nominal columns: {got}"


def unknown_block(measure: str, evidence: Evidence, block: Columns, names: tuple[str, ...]) -> str | None:
    """Why records cannot be asked to agree in the columns of ``block``; None if the intruder has them all."""
    unknown = set(evidence.original.schema.resolve(block)) - set(names)
    if not unknown:
        return None
    others = quoted(sorted(unknown))
    return f"`block` of {measure} must name columns that the intruder knows, got: {others}"


def space_of(
    evidence: Evidence,
    names: tuple[str, ...],
    run: Run,
    *,
    metric: Metric,
    scale: Scale,
    nominal: Nominal = "equal",
) -> LinkageSpace:
    """Put the intruder's records and the released ones into one space.

    An intruder who knows who is in the file (the scenario's ``membership``) leaves out the records of others.
    """
    assert evidence.protected is not None  # `refuses` saw to it
    known, released = evidence.known_table, evidence.protected
    rows = held_rows(evidence, run)
    persons, owners, truth = belonging(evidence)
    if owners is not None and evidence.scenario.membership:
        rows = rows[np.isin(persons[rows], owners)]
    rows = targets_of(evidence, rows, persons, run)
    scale = "pooled" if metric == "gower" else "deviation" if metric == "mahalanobis" else scale
    trees = {name: _tree_of(evidence, name, nominal) for name in names}
    known_points, released_points, weights = coordinates_of(
        known, released, trees, metric=metric, scale=scale
    )
    return LinkageSpace(
        known_points=np.ascontiguousarray(known_points[rows]),
        released_points=released_points,
        metric=as_kernel(metric),
        n_codes=len(weights),
        weights=weights,
        rows=rows,
        released_rows=np.arange(len(released), dtype=np.int64),
        truth=None if truth is None else truth[rows],
        persons=persons[rows],
        owners=owners,
        columns=names,
        scale="equal or not" if metric == "hamming" else _SCALES_IN_WORDS[scale],
    )
