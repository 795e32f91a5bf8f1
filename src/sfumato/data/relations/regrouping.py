"""Columns that put records together again without being declared to: weights, stamps, amounts that last.

A number of persons or households that is left out comes back where the records of one unit are *equal* in
columns that others hardly share (an exact weight, the interviewer and the day), lie *near* each other
(amounts with a little noise), or follow each other as a *chain* from wave to wave (salaries that rise by a
few per cent). The attack looks at the released file alone, at every column whatever its role. The truth is
used to score it, and to choose by which columns it is tried: an intruder who knows such files knows that too.

Of many units some are looked at first. With fewer units there are fewer others to be taken for one's own, so
what does not succeed there will not among all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations, product
from typing import ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np
import polars as pl

from sfumato.data.classes.classes import column_codes
from sfumato.data.classes.packing import MAX_PACKED_CODE, Coding, closed_up, distinct_of, number, pack
from sfumato.data.persons import with_own_numbers
from sfumato.data.relations.companions import chains, drift_chains, near_sets, wave_levels, wave_ranks
from sfumato.data.relations.joining import units_of
from sfumato.data.schema import ORDERED, UNIT_ROLES, Role
from sfumato.data.shares import wilson
from sfumato.data.table import Table
from sfumato.errors import DataError
from sfumato.kernels.arrays import Floats, Ints, count_distinct

How: TypeAlias = Literal["equal", "near", "chained"]

#: What of its columns a regrouping goes by, in words.
HOW: Mapping[How, str] = {
    "equal": "equal values of",
    "near": "nearly equal values of",
    "chained": "steadily changing values of",
}

_BELIEVED = 0.25  # the share of right sets from which on an intruder believes them
_Z_95 = 1.959964  # standard deviations of an interval of 95 %
_CHANCE = 0.05  # what is as likely by chance, of all that is tried, is not believed
_SOME_UNITS = (5_000, 50_000)  # units looked at before all of them
_STABLE = 0.95  # the share of units whose records are equal in a column that stays, or differ in a wave
_SELDOM = 0.02  # the share of units with two equal records below which a column is in no pair
_MOST_COLUMNS = 60  # of pairs, and of numbers that are near
_MOST_WAVES = 100
_MOST_WAVE_COLUMNS = 4
_ALIKE = 0.5  # the correlation within units from which on numbers belong to the unit
_NEARLY_ALL = 0.99  # the share of units put together by equality from which on nothing else is tried
_MOST_EQUALITIES, _MOST_SLOW = 24, 3  # ways that are tried on all records where some were looked at first
_MOST_GIVEN = 8


@dataclass(frozen=True, eq=False)
class Regrouping:
    """Sets of released records that an intruder takes for one unit's, and how often that is right.

    Parameters
    ----------
    unit
        The column of the original whose units (persons, households, groups) come back.
    columns
        The released columns it is done by, in the order of the table.
    how
        Whether the records of a set are equal in them, near each other, or a chain from wave to wave.
    numbers
        The set that each released record is put into; a record in no set has a number of its own.
    sets
        Number of sets of two records or more.
    right
        Those of which more than half of the records, and two at least, are one unit's.
    regrouped
        Number of units of which two records at least are in a right set of theirs.
    units
        Number of units that have two released records or more.
    """

    unit: str
    columns: tuple[str, ...]
    how: How
    numbers: Ints = field(repr=False)
    sets: int
    right: int
    regrouped: int
    units: int

    @property
    def share(self) -> float:
        """The share of units that come back."""
        return self.regrouped / self.units if self.units else 0.0

    @property
    def is_trusted(self) -> bool:
        """Whether an intruder believes it: more than a quarter of the sets are right, with 95 % certainty."""
        return bool(self.sets) and wilson(self.right, self.sets, _Z_95)[0] >= _BELIEVED


def released_units(original: Table, source_rows: Ints) -> dict[str, Ints]:
    """Which unit each released record is of, by the columns of the original that tell; −1 where none is."""
    return {name: np.append(codes, -1)[source_rows] for name, codes in units_of(original).items()}


def regroupings(released: Table, units: Mapping[str, Ints]) -> tuple[Regrouping, ...]:
    """Find all regroupings that an intruder would trust, most units first.

    ``units`` has for each column of the original the unit of every released record, −1 where there is none.
    """
    columns = [column.name for column in released.schema.columns if not _joins_already(released, column.name)]
    names = tuple(name for name in columns if name not in units and _is_coded(released, name))
    found = [each for unit, numbers in units.items() for each in _of_unit(released, names, unit, numbers)]
    return tuple(sorted(found, key=lambda each: -each.regrouped))


def right_sets(numbers: Ints, units: Ints) -> tuple[int, Ints]:
    """How many sets have two records or more, and of the right ones the unit that each puts together."""
    sizes, n_units = np.bincount(numbers), int(units.max(initial=-1)) + 1
    of_unit = units >= 0
    pairs, counts = distinct_of(numbers[of_unit] * n_units + units[of_unit], len(sizes) * n_units)
    is_right = (counts > 1) & (2 * counts > sizes[pairs // max(n_units, 1)])
    return int((sizes > 1).sum()), pairs[is_right] % max(n_units, 1)


def right_by_chance(numbers: Ints, units: Ints) -> float:
    r"""How many sets would be right on average if records were put into sets of these sizes at random.

    A set of :math:`s` records is right if :math:`m = \lfloor s/2 \rfloor + 1` of them are one unit's. On
    average :math:`\binom{s}{m} \sum_u \binom{n_u}{m} / \binom{n}{m}` choices of :math:`m` records are, which
    is at least the chance that one is, and nearly that where it is small.
    """
    sizes, of_unit = np.bincount(numbers), np.bincount(units[units >= 0])
    (kinds, sets), (ns, owners) = (np.unique(e[e > 1], return_counts=True) for e in (sizes, of_unit))
    logs, expected = _log_factorials(len(of_unit) and int(of_unit.max())), 0.0
    for size, n_sets in zip(kinds.tolist(), sets.tolist(), strict=True):
        m = size // 2 + 1
        first = int(np.searchsorted(ns, m))  # the units that have so many records
        most = _log_choose(size, m) - _log_choose(len(numbers), m)
        choices = most + logs[ns[first:]] - math.lgamma(m + 1) - logs[ns[first:] - m]
        expected += n_sets * min(float(owners[first:] @ np.exp(np.minimum(choices, 0.0))), 1.0)
    return expected


@lru_cache(maxsize=4)
def _log_factorials(most: int) -> Floats:
    """The logarithms of the factorials of 0, 1, …, so many."""
    return np.fromiter(map(math.lgamma, range(1, most + 2)), dtype=np.float64, count=most + 1)


def _log_choose(n: int, m: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(m + 1) - math.lgamma(n - m + 1)


def _joins_already(released: Table, name: str) -> bool:
    column = released.schema[name]
    return column.role in (*UNIT_ROLES, Role.IDENTIFIER) or bool(column.pseudonym)


def _is_coded(released: Table, name: str) -> bool:
    return not isinstance(released.frame[name].dtype, pl.List | pl.Array | pl.Object)


# Records to look at ---------------------------------------------------------------------------------------


class _UnitAgreement(NamedTuple):
    """The shares of units whose records are all equal in a column, and of those of which two are."""

    all: float
    two: float


@dataclass(frozen=True, eq=False)
class _UnitRecords:
    """Released records, or those of some units, and the unit of each that has two or more; −1 else."""

    table: Table
    units: Ints

    @property
    def share(self) -> float:
        """The share of records that have a companion."""
        return float((self.units >= 0).mean())

    def some(self, most: int) -> _UnitRecords:
        """Those of so many units, and as many of the other records; all, where there are no more units.

        Units are taken by a hash of their numbers: every tenth would be of one kind where kinds take turns.
        """
        n_units = int(self.units.max()) + 1
        if n_units <= most:
            return self
        whose = np.where(self.units < 0, np.arange(len(self.units)), self.units).astype(np.uint64)
        hashed = (whose * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)
        rows = np.flatnonzero(hashed < most / n_units * 2**32)
        return _UnitRecords(self.table.take(rows), _several(self.units[rows]))

    def coding(self, name: str) -> Coding:
        """The values of a column as codes, 0 where missing."""
        return column_codes(self.table, name)

    def numbers(self, name: str) -> Floats | None:
        """A column with an order as numbers; None where it has none, or holds more than exact numbers."""
        if self.table.schema[name].kind not in ORDERED or self.table.is_generalised(name):
            return None
        try:
            return self.table.numbers(name)
        except DataError:  # text among numbers: what is equal is seen all the same
            return None

    def waves(self, name: str) -> Ints:
        """The values of a column counted in their order."""
        return self.table.codes(name).codes

    def cells(self, names: tuple[str, ...]) -> Ints:
        """A number for each record, the same for those that are equal in some columns."""
        return number(pack([self.coding(name) for name in names], len(self.units)))[0]

    def agreement(self, name: str) -> _UnitAgreement:
        """How often records of a unit are equal in a column."""
        coding, there = self.coding(name), self.units >= 0
        sizes = np.bincount(self.units[there])
        if coding.space > MAX_PACKED_CODE // len(sizes):
            coding = closed_up(coding)
        # One number for each pair of unit and value: sorted, equal ones lie next to each other.
        pairs = np.sort(self.units[there] * coding.space + coding.codes[there].astype(np.int64))
        equal = np.bincount(pairs[1:][pairs[1:] == pairs[:-1]] // coding.space, minlength=len(sizes))
        return _UnitAgreement(float((equal == sizes - 1).mean()), float((equal > 0).mean()))


def _several(units: Ints) -> Ints:
    """The units that have two records or more, counted from 0; −1 for the records of others."""
    several = np.full(len(units), -1, dtype=np.int64)
    rows = np.flatnonzero(units >= 0)
    _, places, counts = np.unique(units[rows], return_inverse=True, return_counts=True)
    rows, places = rows[counts[places] > 1], places[counts[places] > 1]
    several[rows] = np.unique(places, return_inverse=True)[1]
    return several


# Ways to put records together -----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Equality:
    """Records are equal in all columns; one that lacks them all is alone."""

    columns: tuple[str, ...]
    how: ClassVar[How] = "equal"

    @property
    def is_tried_last(self) -> bool:
        """Whether many ways are tried before it; a single column is believed as it is."""
        return len(self.columns) > 1

    @property
    def names(self) -> tuple[str, ...]:
        """All columns it takes."""
        return self.columns

    def sets(self, records: _UnitRecords) -> Ints:
        """The set of each record."""
        codings = [records.coding(name) for name in self.columns]
        numbers = number(pack(codings, len(records.units)))[0]
        numbers[np.all([coding.codes == 0 for coding in codings], axis=0)] = -1
        return with_own_numbers(numbers)


@dataclass(frozen=True)
class _NearestGrouping:
    """Records are near each other in some columns of numbers, among those that are equal in others."""

    columns: tuple[str, ...]
    equal: tuple[str, ...] = ()
    how: ClassVar[How] = "near"
    is_tried_last: ClassVar[bool] = True

    @property
    def names(self) -> tuple[str, ...]:
        """All columns it takes."""
        return (*self.columns, *self.equal)

    def sets(self, records: _UnitRecords) -> Ints:
        """The set of each record."""
        numbers = [_numbers(records, name) for name in self.columns]
        if len(numbers) > 1:
            numbers = [wave_ranks(each, np.zeros(len(each), dtype=np.int64)) for each in numbers]
        return near_sets(np.column_stack(numbers), records.cells(self.equal), records.share)


@dataclass(frozen=True)
class _Succession:
    """Records follow each other from wave to wave, near in columns of numbers whose drift is taken off."""

    wave: str
    columns: tuple[str, ...]
    equal: tuple[str, ...] = ()
    by_rank: bool = True
    how: ClassVar[How] = "chained"
    is_tried_last: ClassVar[bool] = True

    @property
    def names(self) -> tuple[str, ...]:
        """All columns it takes."""
        return (self.wave, *self.columns, *self.equal)

    def sets(self, records: _UnitRecords) -> Ints:
        """The set of each record."""
        waves, scale = records.waves(self.wave), wave_ranks if self.by_rank else wave_levels
        numbers = [scale(_numbers(records, name), waves) for name in self.columns]
        return chains(np.column_stack(numbers), records.cells(self.equal), waves)


@dataclass(frozen=True)
class _Drift:
    """Records differ by what many others differ by, too, in a column of numbers."""

    columns: tuple[str, ...]
    equal: tuple[str, ...] = ()
    how: ClassVar[How] = "chained"
    is_tried_last: ClassVar[bool] = True

    @property
    def names(self) -> tuple[str, ...]:
        """All columns it takes."""
        return (*self.columns, *self.equal)

    def sets(self, records: _UnitRecords) -> Ints:
        """The set of each record."""
        return drift_chains(_numbers(records, self.columns[0]), records.cells(self.equal))


_Way: TypeAlias = _Equality | _NearestGrouping | _Succession | _Drift


def _numbers(records: _UnitRecords, name: str) -> Floats:
    """The numbers of a column: those of some records were numbers, and where others are not, none is."""
    numbers = records.numbers(name)
    return np.full(len(records.units), np.nan) if numbers is None else numbers


def _ways(records: _UnitRecords, names: tuple[str, ...]) -> Iterator[_Way]:
    """All ways that are tried."""
    names = tuple(name for name in sorted(names) if len(_distinct(records, name)) > 1)
    agreement = {name: records.agreement(name) for name in names}
    stable = tuple(name for name in names if agreement[name].all >= _STABLE)
    yield from (_Equality((name,)) for name in names)
    often = [name for name in names if agreement[name].two >= _SELDOM]
    often = sorted(often, key=lambda name: -agreement[name].two)[:_MOST_COLUMNS]
    yield from (_Equality(pair) for pair in combinations(often, 2))
    always = tuple(name for name in stable if agreement[name].all == 1)
    yield from (_Equality(each) for each in dict.fromkeys((stable, always)) if len(each) > 2)  # noqa: PLR2004
    numeric = {name: each for name in names if (each := records.numbers(name)) is not None}
    numeric = dict(list(numeric.items())[:_MOST_COLUMNS])
    for columns, equal in _numeric_ways(records, numeric, stable):
        yield _NearestGrouping(columns, equal)
        if len(columns) == 1:
            yield _Drift(columns, equal)
    differing = [
        name
        for name in names
        if agreement[name].two <= 1 - _STABLE
        and len(_distinct(records, name)) <= _MOST_WAVES
        and not records.table.is_generalised(name)
    ]
    for wave in sorted(differing, key=lambda name: len(_distinct(records, name)))[:_MOST_WAVE_COLUMNS]:
        waves = records.waves(wave)
        ranks = {name: wave_ranks(each, waves) for name, each in numeric.items() if name != wave}
        for (columns, equal), by_rank in product(_numeric_ways(records, ranks, stable), (True, False)):
            yield _Succession(wave, columns, equal, by_rank)


def _distinct(records: _UnitRecords, name: str) -> Ints:
    coding = records.coding(name)
    return distinct_of(coding.codes, coding.space)[0]


def _numeric_ways(
    records: _UnitRecords, numeric: Mapping[str, Floats], stable: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Each column of numbers, and all that belong to units, alone and among those equal in what stays."""
    alike = tuple(name for name, each in numeric.items() if _correlation(each, records.units) > _ALIKE)
    for columns in (*((name,) for name in numeric), *((alike,) if len(alike) > 1 else ())):
        equal = tuple(name for name in stable if name not in columns)
        yield from ((columns, each) for each in dict.fromkeys(((), equal)))


def _correlation(values: Floats, units: Ints) -> float:
    """The correlation of two records of a unit (intra-class, from the analysis of variance)."""
    there = (units >= 0) & ~np.isnan(values)
    values, units = values[there], units[there]
    counts = np.bincount(units)
    spare = len(values) - int((counts > 0).sum())
    total = float(values.var()) if len(values) else 0.0
    if not spare or not total:
        return 0.0
    means = np.bincount(units, values) / np.maximum(counts, 1)
    return 1 - float(((values - means[units]) ** 2).sum()) / spare / total


# Which of them succeed ------------------------------------------------------------------------------------


def _of_unit(released: Table, names: tuple[str, ...], unit: str, numbers: Ints) -> list[Regrouping]:
    """The regroupings of the units of one column."""
    everyone = _UnitRecords(released, _several(numbers))
    if everyone.units.max(initial=-1) < 0:
        return []
    ways = list(_ways(everyone.some(_SOME_UNITS[0]), names))
    tried = len(ways)
    for most in _SOME_UNITS:
        records = everyone.some(most)
        if records is not everyone:
            ways = _promising(_results(records, ways, unit, tried))
    found = [each for _, each in _results(everyone, ways, unit, tried) if each.is_trusted]
    return _without_needless(sorted(found, key=lambda each: (-each.regrouped, len(each.columns))))


def _results(
    records: _UnitRecords, ways: Iterable[_Way], unit: str, tried: int
) -> Iterator[tuple[_Way, Regrouping]]:
    """What each way comes to; one that chance might bring about, too, has no set that is right."""
    for way in ways:
        numbers = way.sets(records)
        sets, right = right_sets(numbers, records.units)
        if way.is_tried_last and not (
            _may_be_believed(len(right), sets) and _beats_chance(len(right), numbers, records.units, tried)
        ):
            right = right[:0]
        columns = tuple(name for name in records.table.names if name in way.names)
        counts = sets, len(right), count_distinct(right), int(records.units.max()) + 1
        yield way, Regrouping(unit, columns, way.how, numbers, *counts)


def _promising(found: Iterable[tuple[_Way, Regrouping]]) -> list[_Way]:
    """The ways that may succeed among all records, the best of either sort.

    Where equal values put nearly all together, nobody looks for those that are nearly equal.
    """
    shares = [(each.share, way) for way, each in found if _may_be_believed(each.right, each.sets)]
    shares.sort(key=lambda each: (-each[0], len(each[1].names)))
    equal = [each for each in shares if each[1].how == "equal"]
    slow = [] if equal and equal[0][0] >= _NEARLY_ALL else [each for each in shares if each not in equal]
    return [way for _, way in (*equal[:_MOST_EQUALITIES], *slow[:_MOST_SLOW])]


def _may_be_believed(right: int, sets: int) -> bool:
    """Whether so many right sets leave it possible that an intruder believes the sets."""
    return bool(right) and wilson(right, sets, _Z_95)[1] >= _BELIEVED


def _beats_chance(right: int, numbers: Ints, units: Ints, tried: int) -> bool:
    """Whether so many right sets would hardly come about by chance in any way that was tried (Chernoff)."""
    expected = max(right_by_chance(numbers, units), 1e-300)
    exponent = right - expected - right * math.log(right / expected)
    return right > expected and exponent < math.log(_CHANCE / tried)


def _without_needless(found: list[Regrouping]) -> list[Regrouping]:
    """Leave out what takes all columns of a better one, and more."""
    needed = list[Regrouping]()
    for each in found:
        if not any(set(better.columns) <= set(each.columns) for better in needed):
            needed.append(each)
    return needed[:_MOST_GIVEN]
