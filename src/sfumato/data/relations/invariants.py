"""What a release keeps between columns, or of their order, though it changed the values.

Dates that move together keep the time between them, amounts with one factor for each record their ratios, and
whatever grows with a column its ranks; rotated columns are one linear map of the original ones, which a few
known records solve. An intruder who knows the original values compares these in place of the values. They are
found in the data, whatever method made the release: a pair of columns keeps its difference (its ratio) if
both changed by as much in a good part of the records that changed, clearly more often than in a random
pairing of records or of changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np
import polars as pl

from sfumato.data.codings import decimals_of, microseconds, time_unit_of
from sfumato.data.schema import ORDERED, Column, Kind, Role
from sfumato.data.table import Table
from sfumato.errors import DataError
from sfumato.kernels.arrays import Flags, Floats, Ints

KeptKind = Literal["differences", "ratios", "ranks", "linear"]
KINDS: tuple[KeptKind, ...] = ("differences", "ratios", "ranks", "linear")

_RECORDS = 20_000  # looked at
_SHARE = 0.25  # of the changed records that must keep it
_MIN_RECORDS = 20  # records that must keep it, or all
_NEARLY_ALL = 0.95  # that one constant changed all alike is no chance
_EVIDENCE = 7.0  # so many nats against chance: one in a thousand
_PAIRINGS = 2_000  # compared at random, at least
_TOLERANCE = 1e-6  # of the spread of what is kept
_STEP_PER_ERROR = 50  # a step so much wider than the error parts hardly any two that are the same
_FINEST, _COARSEST = 1e-9, 5e-3  # step, as a share of the spread
_LARGEST = 1e150  # squares of larger numbers are none
_MOST_ZEROS = 6  # in which rounded numbers may end
_SIDES = ("original", "released")


@dataclass(frozen=True)
class KeptRelation:
    """What a release keeps between columns, or in one, whose values it changed.

    An intruder compares that instead of the values. Each derived column is cut into ``steps`` of its own, so
    that what differs by rounding alone is the same; 0 leaves it as it is. ``mark`` sets the names apart from
    those of the tables. Of a linear map ``weights`` [1 + columns, columns] are the constant and the factors
    that make the released values of the original ones.
    """

    kind: KeptKind
    columns: tuple[str, ...]
    steps: tuple[float, ...] = ()
    mark: str = ""
    weights: tuple[tuple[float, ...], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the derived columns: each column with the first, or its ranks."""
        first, *others = self.columns
        if self.kind == "ranks":
            return tuple(f"rank of `{name}`{self.mark}" for name in self.columns)
        if self.kind == "linear":
            return tuple(f"`{name}` as mapped{self.mark}" for name in self.columns)
        sign = "−" if self.kind == "differences" else "/"
        return tuple(f"`{name}` {sign} `{first}`{self.mark}" for name in others)

    def fits(self, table: Table) -> bool:
        """Whether a table has all these columns, with exact values."""
        return all(name in table.schema and _is_exact(table, name) for name in self.columns)

    def derive(self, table: Table, among: Table | None = None, *, released: bool = False) -> Table:
        """The table with what is kept in place of the columns themselves, missing where one of them is.

        Ranks are those in the table itself, or those that its values have among the records of another one.
        What is ``released`` was mapped already.
        """
        derived = table
        columns = self._values(table, among or table, released=released)
        for name, values in zip(self.names, columns, strict=True):
            series = pl.Series(values, nan_to_null=True)
            derived = derived.with_values(name, series, column=Column(name, Kind.CONTINUOUS, Role.KEY))
        return derived.select(name for name in derived.names if name not in self.columns)

    def _values(self, table: Table, among: Table, *, released: bool) -> Iterable[Floats]:
        if self.kind == "ranks":
            return [_ranks(_numbers(table, name), _numbers(among, name)) for name in self.columns]
        read = [_read(_numbers(table, name), self.kind) for name in self.columns]
        steps = self.steps or (0.0,) * len(self.names)
        if self.kind == "linear":
            found = np.column_stack(read)
            found = found if released else _with_constant(found) @ np.array(self.weights)
            return [_cut(each, step) for each, step in zip(found.T, steps, strict=True)]
        return [_cut(each - read[0], step) for each, step in zip(read[1:], steps, strict=True)]


def kept_relations(
    original: Table, released: Table, source_rows: Ints, names: Sequence[str]
) -> tuple[KeptRelation, ...]:
    """Find what a release keeps of the columns that an intruder knows, though it changed their values.

    Looked at are numbers and dates that stand exactly in both tables, in released records whose source is
    known (−1: unknown).
    """
    places = np.flatnonzero(source_rows >= 0)
    columns = _columns(original, released, source_rows, _spread_out(places), names)
    pairs = [pair for kind in KINDS[:2] for pair in _pairs(columns, kind)]
    found = [_relation(columns, kind, group) for kind, group in _groups(pairs)]
    ranked = [column for column in columns if _rank_share(column, all_moved=True)]
    if len(places) > _RECORDS:
        ranked = _columns(original, released, source_rows, places, [column.name for column in ranked])
    for column in ranked:
        between = max((pair.share for pair in pairs if column.name in pair.names), default=0.0)
        if 0 < _rank_share(column) >= between:
            found.append(KeptRelation("ranks", (column.name,)))
    found += _linear_maps([column for column in columns if not column.is_date and column.is_changed])
    return tuple(_with_free_names(each, {*original.names, *released.names}) for each in found)


def changed_columns(
    original: Table, released: Table, source_rows: Ints, names: Sequence[str]
) -> tuple[str, ...]:
    """Those of the columns whose exact numbers or dates changed, by more than rounding, in most records."""
    sample = _spread_out(np.flatnonzero(source_rows >= 0))
    columns = _columns(original, released, source_rows, sample, names)
    return tuple(column.name for column in columns if column.is_changed)


def _with_free_names(relation: KeptRelation, taken: set[str]) -> KeptRelation:
    while taken & set(relation.names):
        relation = replace(relation, mark=f"{relation.mark}′")
    return relation


def _spread_out(places: Ints) -> Ints:
    """Places from all parts of a table, not too many, in an order that has nothing to do with the file's."""
    if len(places) > _RECORDS:
        places = places[np.linspace(0, len(places) - 1, _RECORDS).astype(np.int64)]
    return places[np.argsort(np.arange(len(places)) * 0.6180339887498949 % 1)]  # the golden ratio: no period


# Columns --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _ColumnChange:
    """A column in both tables, record by record."""

    name: str
    is_date: bool
    original: Floats
    released: Floats

    @cached_property
    def units(self) -> tuple[float, float]:
        """In what the original and the released values are written; 0: as finely as can be."""
        both = ~(np.isnan(self.original) | np.isnan(self.released))
        original, released = (
            _unit(side[both], is_date=self.is_date) for side in (self.original, self.released)
        )
        return original, released

    @property
    def is_changed(self) -> bool:
        """Whether most values that are there changed by more than rounding."""
        there = ~(np.isnan(self.original) | np.isnan(self.released))
        _, change, error = self.change("differences")
        return bool(2 * (np.abs(change[there]) > error[there]).sum() > there.sum())

    def change(self, kind: KeptKind) -> tuple[Floats, Floats, Floats]:
        """The original values as they are read for a kind, their changes, and how far rounding may be off."""
        original, released = _read(self.original, kind), _read(self.released, kind)
        known, shown = self.units
        rounding = shown / 2 if shown > known or kind == "ratios" else 0.0
        error = rounding + 8 * np.finfo(np.float64).eps * np.abs(self.released)
        if kind == "ratios":
            with np.errstate(divide="ignore", invalid="ignore"):
                error = np.where(self.released == 0, np.nan, error / np.abs(self.released))
        return original, released - original, error


def _columns(
    original: Table, released: Table, source_rows: Ints, places: Ints, names: Iterable[str]
) -> list[_ColumnChange]:
    columns = []
    for name in names:
        if not all(name in table.schema and _is_exact(table, name) for table in (original, released)):
            continue
        is_date = original.schema[name].kind is Kind.DATE
        if is_date is not (released.schema[name].kind is Kind.DATE):
            continue
        try:
            original_values = _numbers(original.select([name]).take(source_rows[places]), name)
            released_values = _numbers(released.select([name]).take(places), name)
        except DataError:  # text that is no number is no less than what measures of values refuse
            continue
        if (
            max(np.nanmax(np.abs(each), initial=0.0) for each in (original_values, released_values))
            <= _LARGEST
        ):
            columns.append(_ColumnChange(name, is_date, original_values, released_values))
    return columns


def _is_exact(table: Table, name: str) -> bool:
    kind, dtype = table.schema[name].kind, table.frame.schema[name]
    return (
        kind in ORDERED
        and not table.is_generalised(name)
        and (kind is not Kind.ORDINAL or dtype.is_numeric())
    )


def _numbers(table: Table, name: str) -> Floats:
    """The values themselves as numbers, those of dates in microseconds, NaN where missing."""
    if table.schema[name].kind is Kind.ORDINAL:
        values: Floats = table.frame[name].cast(pl.Float64).fill_null(np.nan).to_numpy()
        return np.where(table.missing(name), np.nan, values)
    is_date = table.schema[name].kind is Kind.DATE
    return table.numbers(name) * (microseconds(table.frame.schema[name]) if is_date else 1.0)


def _unit(values: Floats, *, is_date: bool) -> float:
    """What all values are multiples of: a power of ten, or a day, an hour …; 0 if nothing is so coarse."""
    if is_date:
        return time_unit_of(values)
    decimals = decimals_of(values, fewest=-_MOST_ZEROS)
    return 0.0 if decimals is None else 10.0**-decimals


def _ranks(values: Floats, among: Floats) -> Floats:
    """The share of the others below each value, ties half: that of no value is that of a value not there."""
    ordered = np.sort(among[~np.isnan(among)])
    twice = np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")
    return np.where(np.isnan(values), np.nan, twice / (2 * max(len(ordered), 1)))


def _read(values: Floats, kind: KeptKind) -> Floats:
    """Values such that what is kept of them is their difference; of ratios logarithms."""
    if kind != "ratios":
        return values
    logs: Floats = np.log(np.where(values == 0, np.nan, np.abs(values)))
    return logs


# Pairs of columns -----------------------------------------------------------------------------------------


class _PreservedPair(NamedTuple):
    """Two columns that keep something between them, and in what share of the records that changed."""

    kind: KeptKind
    names: tuple[str, str]
    share: float


class _DerivedAgreement(NamedTuple):
    """Which records changed, in which of these the derived value stayed, and by how much it is off there."""

    changed: Flags
    same: Flags
    off: Floats
    spread: float


def _pairs(columns: Sequence[_ColumnChange], kind: KeptKind) -> Iterable[_PreservedPair]:
    changes = [(column, column.change(kind)) for column in columns if kind != "ratios" or not column.is_date]
    for (one, first), (other, second) in combinations(changes, 2):
        if one.is_date is other.is_date and (share := _pair_share(first, second)):
            yield _PreservedPair(kind, (one.name, other.name), share)


def _agreement(first: tuple[Floats, ...], second: tuple[Floats, ...]) -> tuple[_DerivedAgreement, Floats]:
    (original, change, error), (others, other_change, other_error) = first, second
    derived, off = original - others, change - other_change
    there = ~np.isnan(off)
    spread = float(derived[there].std()) if there.any() else 0.0
    tolerance = error + other_error + _TOLERANCE * spread
    with np.errstate(invalid="ignore"):
        changed = there & (np.maximum(np.abs(change), np.abs(other_change)) > tolerance)
        same = changed & (np.abs(off) <= tolerance)
    return _DerivedAgreement(changed, same, off, spread), tolerance


def _pair_share(first: tuple[Floats, ...], second: tuple[Floats, ...]) -> float:
    """In what share of the changed records two columns keep what lies between them; 0 if by chance."""
    agreement, tolerance = _agreement(first, second)
    changed, n_same = agreement.changed, int(agreement.same.sum())
    n_changed = int(changed.sum())
    if not _is_enough(n_same, n_changed):
        return 0
    near, derived = tolerance[changed], (first[0] - second[0])[changed]

    def is_near(one: Floats, other: Floats) -> Flags:
        return np.abs(one - other) <= near

    after = derived + agreement.off[changed]
    if not _is_beyond(n_same, n_changed, _by_chance(after, derived, is_near)):
        return 0
    alike = _by_chance(first[1][changed], second[1][changed], is_near)
    if n_same < _NEARLY_ALL * n_changed and not _is_beyond(n_same, n_changed, alike):
        return 0
    return n_same / n_changed


def _is_enough(n_same: int, n_changed: int) -> bool:
    return n_changed > 0 and n_same >= max(_SHARE * n_changed, min(_MIN_RECORDS, n_changed))


def _by_chance(one: Floats, other: Floats, is_same: Callable[[Floats, Floats], Flags]) -> float:
    """The share of records that agree with another one, each being compared with a few."""
    size = len(one)
    turns = range(1, min(size, 1 + -(-_PAIRINGS // max(size, 1))))
    hits = sum(int(is_same(one, np.roll(other, turn)).sum()) for turn in turns)
    return (hits + 1) / (size * len(turns) + 2)


def _is_beyond(n_same: int, size: int, chance: float) -> bool:
    """Whether so many agree more often than by chance (Chernoff's bound on the tail of the binomial)."""
    share = n_same / size
    rest = (1 - share) * np.log((1 - share) / (1 - chance)) if share < 1 else 0.0
    return share > chance and size * (share * np.log(share / chance) + rest) >= _EVIDENCE


def _groups(pairs: Sequence[_PreservedPair]) -> list[tuple[KeptKind, tuple[str, ...]]]:
    """Columns that hang together by pairs of one kind, in their order."""
    groups: list[tuple[KeptKind, tuple[str, ...]]] = []
    for pair in pairs:
        joined = [group for group in groups if group[0] == pair.kind and set(group[1]) & set(pair.names)]
        names = dict.fromkeys([*(name for _, group in joined for name in group), *pair.names])
        groups = [group for group in groups if group not in joined] + [(pair.kind, tuple(names))]
    return groups


def _relation(columns: Sequence[_ColumnChange], kind: KeptKind, group: tuple[str, ...]) -> KeptRelation:
    of_group = [column for column in columns if column.name in group]
    first, *others = [column.change(kind) for column in of_group]
    steps = tuple(_step(_agreement(other, first)[0]) for other in others)
    return KeptRelation(kind, tuple(column.name for column in of_group), steps)


def _step(agreement: _DerivedAgreement) -> float:
    """How wide to cut what is kept, so that rounding alone sets hardly any apart; 0: not at all."""
    off = np.abs(agreement.off[agreement.same])
    error = float(off.mean()) if len(off) else np.inf
    step = max(_STEP_PER_ERROR * error, _FINEST * agreement.spread)
    return step if step <= _COARSEST * agreement.spread else 0.0


def _cut(values: Floats, step: float) -> Floats:
    return np.round(values / step) * step if step else values


# Ranks ----------------------------------------------------------------------------------------------------


def _rank_share(column: _ColumnChange, *, all_moved: bool = False) -> float:
    """In what share of the records whose value went past another's its rank is kept; 0 if by chance.

    With ``all_moved`` every change counts: in a sample others are farther away than they are.
    """
    there = ~(np.isnan(column.original) | np.isnan(column.released))
    original, released = column.original[there], column.released[there]
    if not len(original):
        return 0.0
    distinct, places, sizes = np.unique(original, return_inverse=True, return_counts=True)
    moved = original != released
    if not all_moved:
        fenced = np.concatenate(([-np.inf], distinct, [np.inf]))
        moved = (released <= fenced[places]) | (released >= fenced[places + 2])
    n_moved = int(moved.sum())
    if 2 * n_moved <= len(original):
        return 0.0
    first, ties = _below(sizes)[places], sizes[places]
    _, places, sizes = np.unique(released, return_inverse=True, return_counts=True)
    second = _below(sizes)[places]
    n_same = int((moved & (first == second) & (ties == sizes[places])).sum())
    chance = _by_chance(second[moved], first[moved], np.equal)
    is_kept = _is_enough(n_same, n_moved) and _is_beyond(n_same, n_moved, chance)
    return n_same / n_moved if is_kept else 0.0


def _below(sizes: Ints) -> Floats:
    """How many are less than each distinct value, of which there are so many."""
    return (np.cumsum(sizes) - sizes).astype(np.float64)


# Linear maps ----------------------------------------------------------------------------------------------


def _linear_maps(columns: Sequence[_ColumnChange]) -> list[KeptRelation]:
    """The map of several changed columns, if one explains nearly all their released values, up to rounding.

    Columns that others do not help to explain are left out: what is kept of these is told by their ranks.
    """
    while len(columns) > 1:
        original, released = (np.column_stack([getattr(each, side) for each in columns]) for side in _SIDES)
        there = ~(np.isnan(original) | np.isnan(released)).any(axis=1)
        original, released = original[there], released[there]
        if len(original) < max(_MIN_RECORDS, 3 * len(columns)):
            return []
        weights = _least_squares(original, released)
        off = np.abs(released - _with_constant(original) @ weights)
        alone = np.column_stack(
            [
                np.abs(values - _with_constant(own) @ _least_squares(own, values))
                for own, values in zip(
                    np.hsplit(original, len(columns)), np.hsplit(released, len(columns)), strict=True
                )
            ]
        )
        near = np.array([each.units[1] / 2 for each in columns]) + _TOLERANCE * released.std(axis=0)
        explained, needless = ((each <= near).mean(axis=0) >= _NEARLY_ALL for each in (off, alone))
        if (kept := explained & ~needless).all():
            steps = [
                _step(_DerivedAgreement(there, each <= width, each, float(spread)))
                for each, width, spread in zip(off.T, near, released.std(axis=0), strict=True)
            ]
            names = tuple(each.name for each in columns)
            return [KeptRelation("linear", names, tuple(steps), weights=tuple(map(tuple, weights.tolist())))]
        columns = [column for column, flag in zip(columns, kept, strict=True) if flag]
    return []


def _with_constant(values: Floats) -> Floats:
    return np.column_stack((np.ones(len(values)), values))


def _least_squares(original: Floats, released: Floats) -> Floats:
    """The constant and the factors [1 + columns, released] that explain released values best."""
    centres, spreads = original.mean(axis=0), original.std(axis=0)
    spreads[spreads == 0] = 1.0
    factors = np.linalg.lstsq(_with_constant((original - centres) / spreads), released)[0]
    factors[1:] /= spreads[:, None]
    factors[0] -= centres @ factors[1:]
    return factors.astype(np.float64)
