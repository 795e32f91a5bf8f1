"""Classes in a population: how many people of another table each class of the release may stand for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from sfumato import kernels
from sfumato.core.evidence import Evidence
from sfumato.core.intruder_view import seen_table
from sfumato.core.release import Release
from sfumato.data.classes.classes import Classes
from sfumato.data.classes.packing import Coding, number, pack
from sfumato.data.generalised.intervals import ends, is_interval
from sfumato.data.schema import Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import DataError, quoted
from sfumato.kernels.arrays import Flags, Floats, Ints
from sfumato.risk._box_distances import nearness_of
from sfumato.risk._coverage import CoverageProblem, TooManyBoxes, covering_of

#: The column that makes a population a table of counts: how many people have the values of a row.
COUNT_COLUMN = "population_count"
_ENDLESS = 1e300  # the end of a range without one
_NAMING_ROLES = (Role.IDENTIFIER, Role.PERSON, Role.HOUSEHOLD)

#: Pairs of people and classes that cover them, where these are listed.
_MOST_PAIRS = 100_000_000


def why_no_population(measure: str, evidence: Evidence, population: str, keys: Sequence[str]) -> str | None:
    """Why the classes cannot be counted in this resource; None when they can."""
    table: object = evidence.resources[population]
    if not isinstance(table, Table):
        return f"`population` of {measure} must name a table, got: `{population}`, which is none"
    absent = quoted(name for name in keys if name not in table.schema)
    if absent:
        return f"{measure} needs all keys in `{population}`, which lacks {absent}"
    return (
        _why_no_counts(population, table)
        if COUNT_COLUMN in table.schema and COUNT_COLUMN not in keys
        else None
    )


def _why_no_counts(population: str, table: Table) -> str | None:
    """Why a table with a column of people is no table of counts; None when it is one."""
    counts, others = people_in(table, ()), table.frame.drop(COUNT_COLUMN)
    named = [each.name for each in table.schema.columns if each.role in _NAMING_ROLES]
    if named:
        return f"`{population}` must hold counts or people, got: `{COUNT_COLUMN}` beside {quoted(named)}"
    if not (counts >= 0).all() or (counts != np.floor(counts)).any():
        return f"`{COUNT_COLUMN}` of `{population}` must be whole numbers, got: others, or missing ones"
    if others.is_duplicated().any():
        return f"`{population}` must have one row for each combination of values, got: some twice"
    return None


def people_in(population: Table, keys: Sequence[str]) -> Floats:
    """How many people each row of a population stands for: one, unless it is a table of counts."""
    if COUNT_COLUMN in population.schema and COUNT_COLUMN not in keys:
        return population.frame[COUNT_COLUMN].cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
    return np.ones(len(population))


def population_sizes(evidence: Evidence, classes: Classes, population: str) -> Ints:
    """How many people of the population may be those of each class, under its policy for missing keys.

    Each record of the population is a person, or as many as its column ``population_count`` says. A
    generalised key covers the exact values that it stands for.
    """
    return evidence.remember(
        ("population", population, classes.keys, classes.missing),
        lambda: _sizes(seen_table(evidence), evidence.resources[population], classes),
    )


def _sizes(table: Table, population: Table, classes: Classes) -> Ints:
    shown = table.take(classes.examples).select(classes.keys)
    counts = people_in(population, classes.keys)
    population, shown = _split_ranges(population.select(classes.keys), shown)
    people, keys = _align_population(population, shown), shown.names
    sizes = np.zeros(len(classes), dtype=np.int64)
    # Which code stands for a missing value is a matter of the file: in the population it may be another.
    present = ~np.column_stack([shown.missing(name) for name in keys])
    lacking = np.column_stack([people.missing(name) for name in keys])
    for pattern, rows in _patterns(present):
        if classes.missing == "worst" and not pattern.all():
            sizes[rows] = 1  # nobody else is surely like a record with a hole
            continue
        for shared, chosen in _patterns_to_compare(pattern, lacking, classes.missing == "any"):
            names = tuple(np.array(keys)[shared])
            part = shown.take(rows).select(names) if names else shown.take(rows)
            sizes[rows] += _count_covered(part, people, names, chosen, counts[chosen])
    return sizes


def _split_ranges(population: Table, shown: Table) -> tuple[Table, Table]:
    """Put the last value of each range of the population beside its first: a record covers both, or no row.

    So rows of a table of counts by bands are counted where the whole band is covered.
    """
    for name in population.names:
        dtype = population.frame.schema[name]
        if not is_interval(dtype):
            continue
        ends_of, last = ends(population.frame[name]), f"{name}, last"
        if not ends_of[0].dtype.is_numeric():
            ranges = f"ranges of {ends_of[0].dtype.to_python().__name__}s in `{name}`"
            raise DataError(f"a population must have ranges of numbers only, got: {ranges}")
        gone = pl.Series(population.missing(name))
        low, high = (
            each.cast(pl.Float64).fill_null(fill).set(gone, None)
            for each, fill in zip(ends_of, (-_ENDLESS, _ENDLESS), strict=True)
        )
        described = replace(population.schema[name], kind=Kind.CONTINUOUS)
        frame = population.frame.with_columns(low.alias(name), high.alias(last))
        schema = Schema((*population.schema.replace(described).columns, replace(described, name=last)))
        population = Table(frame, schema)
        twin = replace(shown.schema[name], name=last)
        nodes = {**shown.nodes, **({last: shown.nodes[name]} if name in shown.nodes else {})}
        shown = Table(
            shown.frame.with_columns(shown.frame[name].alias(last)),
            Schema((*shown.schema.columns, twin)),
            nodes=nodes,
        )
    return population, shown


def _align_population(population: Table, shown: Table) -> Table:
    """Describe the population's keys as the release's: of one kind and order, with missing codes of both."""
    columns = []
    for column in shown.schema.columns:
        own = population.schema[column.name]
        # Generalised values may have got another kind than the exact ones that they cover.
        generalised = shown.is_generalised(column.name)
        missing = tuple(dict.fromkeys((*own.missing_codes, *column.missing_codes)))
        described = own if generalised else replace(column, missing_range=own.missing_range)
        columns.append(replace(described, missing=missing, suppressed=None))
    return Table(population.select(shown.names).frame, Schema(tuple(columns)))


def _patterns(present: Flags) -> Iterator[tuple[Flags, Ints]]:
    patterns, which = np.unique(present, axis=0, return_inverse=True)
    for i, pattern in enumerate(patterns):
        yield pattern, np.flatnonzero(which.ravel() == i)


def _patterns_to_compare(pattern: Flags, lacking: Flags, anything: bool) -> Iterator[tuple[Flags, Ints]]:  # noqa: FBT001
    """Yield the columns to compare by and the people to compare with."""
    if not anything:  # a missing key is like a missing one
        yield pattern, np.flatnonzero(lacking[:, ~pattern].all(axis=1))
        return
    yield from _patterns(~lacking & pattern)


def _count_covered(shown: Table, people: Table, names: tuple[str, ...], chosen: Ints, counts: Floats) -> Ints:
    """How many of the chosen people each record shown covers in these columns."""
    if not names:
        return np.full(len(shown), int(counts.sum()), dtype=np.int64)
    evidence = Evidence(people.select(names), Release.of(shown))
    try:
        found = covering_of(evidence, names, chosen)
    except TooManyBoxes:
        return _covered_by_classes(evidence, names, chosen, counts)
    exact = (found.lows == found.highs).all(axis=0) & np.isfinite(found.lows).all(axis=0)
    groups, box_groups = _group_exact(found, exact)
    if exact.all():
        sizes = np.bincount(groups.astype(np.int64), counts, minlength=int(box_groups.max(initial=0)) + 1)
        return sizes[box_groups.astype(np.int64)].astype(np.int64)  # one box for each record
    points, lows, highs = _with_holes(found)
    inside = kernels.linking.count_inside(
        *_distinct_points(np.column_stack((groups, points[:, ~exact])), counts),
        np.column_stack((box_groups, lows[:, ~exact])),
        np.column_stack((box_groups, highs[:, ~exact])),
    )
    return np.bincount(found.records, weights=inside, minlength=len(shown)).astype(np.int64)


def _covered_by_classes(evidence: Evidence, names: tuple[str, ...], chosen: Ints, counts: Floats) -> Ints:
    """The same where sets of values that are no ranges would make too many boxes."""
    near = nearness_of(evidence, names, chosen, metric="hamming", scale="deviation")
    groups, samples = near.distinct_points()
    found = near.of_points(samples).covering(most=_MOST_PAIRS)
    if found is None:
        raise DataError(
            f"more than {_MOST_PAIRS:,} pairs of people and classes are too many to count",
            hint="generalise along a hierarchy, so that values of a column are ranges or nested groups",
        )
    people, classes, _ = found
    of_points = np.bincount(groups, counts)[people]
    covered = np.bincount(classes, weights=of_points, minlength=len(near.shown.losses))
    return covered.astype(np.int64)[near.classes]


def _group_exact(found: CoverageProblem, exact: Flags) -> tuple[Floats, Floats]:
    """Number the people and the boxes by their values in the exact columns: equal ones alike."""
    n = len(found.points)
    numbers, _ = _number_rows(np.concatenate((found.points, found.lows))[:, exact])
    return numbers[:n].astype(np.float64), numbers[n:].astype(np.float64)


def _with_holes(found: CoverageProblem) -> tuple[Floats, Floats, Floats]:
    """Put missing values at infinity, where only a side that is open in both directions reaches."""
    points = np.where(np.isnan(found.points), np.inf, found.points)
    most = max(np.abs(each[np.isfinite(each)]).max(initial=0.0) for each in (points, found.lows))
    open_above = np.isposinf(found.highs) & ~np.isneginf(found.lows)
    return points, found.lows, np.where(open_above, most, found.highs)


def _number_rows(points: Floats) -> tuple[Any, Ints]:
    """Number the rows of an array, equal ones alike, and count each."""
    codings = []
    for values in points.T:
        distinct, codes = np.unique(values, return_inverse=True)
        codings.append(Coding(codes.astype(np.uint64), max(len(distinct), 1)))
    return number(pack(codings, len(points)))


def _distinct_points(points: Floats, people: Floats) -> tuple[Floats, Ints]:
    """The distinct points, and how many people are at each."""
    numbers, counts = _number_rows(points)
    examples = np.zeros(len(counts), dtype=np.int64)
    examples[numbers] = np.arange(len(points))
    at_each = np.bincount(numbers.astype(np.int64), people, minlength=len(counts)).astype(np.int64)
    return np.ascontiguousarray(points[examples]), at_each
