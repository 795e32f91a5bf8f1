"""Safe weights: a record leaves with the mean weight of its released class in place of its own.

An exact weight is the same for a whole household and puts it together again; one that is the same for a
stratum gives back the area that was swapped or made coarse. The mean of a class is a function of released
keys alone. Classes are made of as many keys as leave in each at least ``LEAST_RECORDS`` records of
``LEAST_UNITS`` units, those first by which the weights differ most.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from sfumato.core.release import ExactWeights, Release
from sfumato.data.classes.classes import column_codes
from sfumato.data.classes.packing import Coding, distinct_of, number, pack
from sfumato.data.constraints import clip
from sfumato.data.generalised.cover import covers_of
from sfumato.data.persons import with_own_numbers
from sfumato.data.relations.joining import units_of
from sfumato.data.schema import COMPARABLE, STRUCTURAL_ROLES, Column, Kind, Role
from sfumato.data.table import Table
from sfumato.kernels.arrays import Flags, Floats, Ints

#: Records that share a mean, and different persons, households or groups among them.
LEAST_RECORDS, LEAST_UNITS = 10, 5
#: The share of the weights' variance that a further key must explain.
_LEAST_GAIN = 0.001
#: Records of a category whose share someone would publish.
_LARGE_CATEGORY = 30


def average_weights(table: Table, release: Release, original: Table) -> tuple[Table, ExactWeights | None]:
    """The table as it leaves, its weights averaged, and what these were; None where nothing is to average.

    The sum of all weights stays, and so do their totals by each of the keys that make the classes, and by all
    of these together, up to rounding. Declared whole weights become decimals, within their bounds. A weight
    that is missing stays so, and is in no mean: that it is missing is told. Weights that a step names in its
    columns are its author's own decision.

    A mean would still tell a key that was hidden from a class in which all had the same value: a key that
    makes such a class is not used. Where privacy was paid for, nothing but the release is looked at.
    """
    name = table.schema.only_role(Role.WEIGHT)
    if name is None or table.is_generalised(name) or any(name in step.columns for step in release.steps):
        return table, None
    exact = table.numbers(name)
    there = np.flatnonzero(~np.isnan(exact))
    if not len(there):
        return table, None
    keys = [each for each in _keys_of(original) if each in table.schema]
    coded = {each: column_codes(table, each, apart=True) for each in keys}
    classing = _WeightClasses(
        exact[there],
        tuple(each[there] for each in _units_of(table, release, original)),
        tuple((codes[there], flags[there]) for codes, flags in _hidden_keys(table, release, original)),
    )
    present = {each: replace(code, codes=code.codes[there]) for each, code in coded.items()}
    by, classes = classing.refine(present)
    averaged = exact.copy()
    averaged[there] = _means(exact[there], classes, table.schema[name])
    return _with_weights(table, name, exact, averaged), ExactWeights(exact, by)


def estimate_changes(table: Table, exact: ExactWeights) -> dict[str, float]:
    """How much averaged weights change the mean of each other column, or the share of a category, relatively.

    A mean is held against that of the numbers without their signs; small categories are left out.
    """
    weight, there = str(table.schema.only_role(Role.WEIGHT)), np.flatnonzero(~np.isnan(exact.values))
    both, found = (exact.values[there], table.numbers(weight)[there]), {}
    for column in table.schema.columns:
        if column.role in STRUCTURAL_ROLES or column.name in exact.by or column.kind not in COMPARABLE:
            continue
        if column.kind is Kind.CONTINUOUS and not table.is_generalised(column.name):
            found[column.name] = _mean_change(table.numbers(column.name)[there], *both)
        else:
            coding = column_codes(table, column.name)
            found[column.name] = _share_change(replace(coding, codes=coding.codes[there]), *both)
    return {name: change for name, change in found.items() if np.isfinite(change)}


def _mean_change(values: Floats, before: Floats, after: Floats) -> float:
    known = ~np.isnan(values)
    values, before, after = values[known], before[known], after[known]
    with np.errstate(invalid="ignore", divide="ignore"):  # of no value, or weights that come to nothing
        moved = after @ values / after.sum() - before @ values / before.sum()
        return float(abs(moved / (before @ np.abs(values) / before.sum())))


def _share_change(coding: Coding, before: Floats, after: Floats) -> float:
    places, sizes = number(coding)
    with np.errstate(invalid="ignore", divide="ignore"):
        one, other = (np.bincount(places, each) / each.sum() for each in (before, after))
        return float(np.abs(other / one - 1)[sizes >= _LARGE_CATEGORY].max(initial=0.0))


def _keys_of(original: Table) -> list[str]:
    schema = original.schema
    return sorted(each for each in schema.with_role(Role.KEY) if schema[each].kind in COMPARABLE)


def _units_of(table: Table, release: Release, original: Table) -> Iterator[Ints]:
    """Which unit each record is of, by every column that tells."""
    rows = None if release.budget else release.source_rows
    whole = original if rows is not None else table if release.budget else release.first
    for codes in units_of(whole).values():
        yield with_own_numbers(codes if rows is None else np.append(codes, -1)[rows])


def _hidden_keys(table: Table, release: Release, original: Table) -> Iterator[tuple[Ints, Flags]]:
    """What each key was that the release hides of someone, in codes, and of whom."""
    rows = None if release.budget else release.source_rows
    if rows is None:
        return
    known = rows >= 0
    beside = original.take(np.where(known, rows, 0)) if len(original) else original
    for name in _keys_of(original):
        hidden = known.copy()
        if name in table.schema:
            before, after = covers_of(beside, table, name)
            same = (after.lows == before.lows) & (after.highs == before.lows)
            hidden &= ~(same | (before.missing & after.missing))
        if hidden.any():
            codes = column_codes(beside, name)
            yield np.where(known, number(codes)[0] + 1, 0), hidden


def _means(weights: Floats, classes: Ints, column: Column) -> Floats:
    """The mean of each record's class: exactly the weight where all have the same, and no missing code."""
    firsts = np.unique(classes, return_index=True)[1]
    apart = np.bincount(classes, weights - weights[firsts][classes]) / np.bincount(classes)
    largest = np.full(len(firsts), -np.inf)
    np.maximum.at(largest, classes, weights)
    unbound = replace(column, integer=False, lower=None, upper=None)  # a mean is within
    return clip(unbound, largest, weights[firsts] + apart)[classes]


def _with_weights(table: Table, name: str, exact: Floats, averaged: Floats) -> Table:
    there = ~np.isnan(exact)
    if np.array_equal(exact[there], averaged[there]):
        return table
    column, values = table.schema[name], table.frame[name].cast(pl.Float64, strict=False)
    whole = column.integer and bool((averaged[there] == np.rint(averaged[there])).all())
    shown = pl.select(pl.when(pl.Series(there)).then(pl.Series(averaged)).otherwise(values)).to_series()
    return table.with_values(name, shown, column=replace(column, integer=whole))


@dataclass(frozen=True)
class _WeightClasses:
    """Which classes may have a mean: by how many ``units`` are in them, and what ``hidden`` keys were."""

    weights: Floats
    units: tuple[Ints, ...]
    hidden: tuple[tuple[Ints, Flags], ...]

    def refine(self, keys: Mapping[str, Coding]) -> tuple[tuple[str, ...], Ints]:
        """Add the key that explains most, as long as one may be added that explains enough.

        A key that may not be added makes classes that are too small, or tell, with any others as well.
        """
        by, n = tuple[str, ...](), len(self.weights)
        classes = np.zeros(n, dtype=np.int64)
        explained, left = self._variance_between(classes), dict(keys)
        enough = _LEAST_GAIN * float(((self.weights - self.weights.mean()) ** 2).sum())
        while left:
            own = Coding(classes.astype(np.uint64), int(classes.max()) + 1)
            gains = {}
            for name, coding in left.items():
                finer, sizes = number(pack([own, coding], n))
                if sizes.min() >= LEAST_RECORDS:
                    gains[name] = self._variance_between(finer) - explained
            left = {name: left[name] for name in gains}
            best = max(gains, key=lambda name: (gains[name], name), default="")
            if not best or gains[best] <= 0 or gains[best] < enough:
                break
            finer, _ = number(pack([own, left.pop(best)], n))
            if self._may_have_means(finer):
                by, classes, explained = (*by, best), finer, explained + gains[best]
        return by, classes

    def _variance_between(self, classes: Ints) -> float:
        """The sum of squares of the weights between classes."""
        sums = np.bincount(classes, self.weights - self.weights.mean())
        return float((sums**2 / np.bincount(classes)).sum())

    def _may_have_means(self, classes: Ints) -> bool:
        """Whether each class is of enough units, and none tells a hidden key."""
        return all(_distinct(classes, units).min() >= LEAST_UNITS for units in self.units) and not any(
            ((_distinct(classes, codes) == 1) & (np.bincount(classes, hidden) > 0)).any()
            for codes, hidden in self.hidden
            if np.ptp(codes) > 0  # what all have is told by any
        )


def _distinct(classes: Ints, values: Ints) -> Ints:
    """How many different values each class has."""
    width = int(values.max()) + 1
    pairs, _ = distinct_of(classes * width + values, (int(classes.max()) + 1) * width)
    return np.bincount(pairs // width)
